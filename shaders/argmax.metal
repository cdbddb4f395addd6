// The most likely token in several passes, and for few logits together with their capped values.

#include "common.h"
#include "argmax.h"
#include "softcap.h"

// Numbers that a threadgroup of argmax_f32 chooses from, whatever its number of threads.
#define INGOT_ARGMAX_GROUP 256u

// For each group g of 256 neighbouring values:
// out_index[g] = the index of the greatest finite value, the lowest one among equals; 0xffffffff if there is none
// out_value[g] = that value, with has_softcap capped: cap * tanh(x / cap); 0 if there is none
//
// The index of a value is its position, or with has_index_in what index_in says; those that it calls 0xffffffff are ignored.
// So the results of one pass are the operands of the next. Values are compared as they are: capping is strictly increasing,
// and what rounding and a saturated tanh would make equal stays apart.
//
// Slots: 0 values f32 [n], 1 out_index u32 [ceil(n / 256)], 2 out_value f32 [ceil(n / 256)], 3 n, 4 index_in u32 [n] (not
//        read without has_index_in), 5 has_index_in, 6 softcap f32 (device; not positive or not finite: no cap; not read
//        without has_softcap), 7 has_softcap.
// Geometry: ceil(n / 256) threadgroups, 32 to 1,024 threads, a multiple of 32; 256 use each thread once.
// Threadgroup memory: 256 bytes, static.
kernel void argmax_f32(device const float* values [[buffer(0)]],
                       device uint* out_index [[buffer(1)]],
                       device float* out_value [[buffer(2)]],
                       constant uint& n [[buffer(3)]],
                       device const uint* index_in [[buffer(4)]],
                       constant uint& has_index_in [[buffer(5)]],
                       device const float* softcap [[buffer(6)]],
                       constant uint& has_softcap [[buffer(7)]],
                       uint group [[threadgroup_position_in_grid]],
                       uint thread_index [[thread_position_in_threadgroup]],
                       uint threads [[threads_per_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float best_value[INGOT_MAX_SIMDGROUPS];
    threadgroup uint best_index[INGOT_MAX_SIMDGROUPS];
    ulong start = ulong(group) * ulong(INGOT_ARGMAX_GROUP);
    if (start >= ulong(n)) {
        return;
    }
    float best = -FLT_MAX;
    uint at = INGOT_NOTHING;
    for (uint i = thread_index; i < INGOT_ARGMAX_GROUP; i += threads) {
        ulong from = start + ulong(i);
        if (from < ulong(n)) {
            float x = values[from];
            uint id = uint(from);
            if (has_index_in != 0u) {
                id = index_in[from];
            }
            if (ingot_finite(x) && id != INGOT_NOTHING) {
                ingot_argmax_take(x, id, &best, &at);
            }
        }
    }
    ingot_argmax_group(&best, &at, best_value, best_index, lane, simdgroup, simdgroups);
    if (thread_index == 0u) {
        out_index[group] = at;
        float value = best;
        if (at == INGOT_NOTHING) {
            value = 0.0f;
        } else if (has_softcap != 0u) {
            value = ingot_softcap(best, softcap[0]);
        }
        out_value[group] = value;
    }
}

// token = the index of the greatest finite logit, the lowest one among equals; 0xffffffff if no logit is finite
// logits[i] = softcap(logits[i]), cap * tanh(x / cap), i < n
//
// The token is that of the logits as they came.
//
// Slots: 0 logits f32 [n] (in and out), 1 token u32, 2 softcap f32 (device; not positive or not finite: no cap), 3 n (at
//        most 256: others are neither read nor written).
// Geometry: one threadgroup, 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 256 bytes, static.
kernel void softcap_sample(device float* logits [[buffer(0)]],
                           device uint* token [[buffer(1)]],
                           device const float* softcap [[buffer(2)]],
                           constant uint& n [[buffer(3)]],
                           uint thread_index [[thread_position_in_threadgroup]],
                           uint threads [[threads_per_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]],
                           uint simdgroup [[simdgroup_index_in_threadgroup]],
                           uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float best_value[INGOT_MAX_SIMDGROUPS];
    threadgroup uint best_index[INGOT_MAX_SIMDGROUPS];
    uint count = n < INGOT_ARGMAX_GROUP ? n : INGOT_ARGMAX_GROUP;
    float cap = softcap[0];
    float best = -FLT_MAX;
    uint at = INGOT_NOTHING;
    for (uint i = thread_index; i < count; i += threads) {
        float x = logits[i];
        if (ingot_finite(x)) {
            ingot_argmax_take(x, i, &best, &at);
        }
        logits[i] = ingot_softcap(x, cap);
    }
    ingot_argmax_group(&best, &at, best_value, best_index, lane, simdgroup, simdgroups);
    if (thread_index == 0u) {
        token[0] = at;
    }
}
