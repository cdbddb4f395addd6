// The most likely token.

#include "common.h"
#include "reduce.h"
#include "softcap.h"

// token = the index of the greatest finite logit, the lowest one among equals; 0xffffffff if no logit is finite.
// value = softcap(logits[token]), cap * tanh(x / cap); 0 without a token.
//
// Softcapping is strictly increasing, so the greatest logit is also the greatest capped one; comparing the logits keeps
// apart what rounding and a saturated tanh would make equal, and spends one tanh instead of n. logits are only read.
//
// Slots: 0 logits f32 [n], 1 token u32, 2 cap f32 (device; not positive or not finite: no cap), 3 n, 4 value f32.
// Geometry: one threadgroup, 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 256 bytes, static.
kernel void softcap_argmax_one_pass(device const float* logits [[buffer(0)]],
                                    device uint* token [[buffer(1)]],
                                    device const float* cap [[buffer(2)]],
                                    constant uint& n [[buffer(3)]],
                                    device float* value [[buffer(4)]],
                                    uint thread_index [[thread_position_in_threadgroup]],
                                    uint threads [[threads_per_threadgroup]],
                                    uint lane [[thread_index_in_simdgroup]],
                                    uint simdgroup [[simdgroup_index_in_threadgroup]],
                                    uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float best_value[INGOT_MAX_SIMDGROUPS];
    threadgroup uint best_index[INGOT_MAX_SIMDGROUPS];

    // A logit of -FLT_MAX still wins over none: its index is lower.
    float best = -FLT_MAX;
    uint at = 0xffffffffu;
    for (ulong i = ulong(thread_index); i < ulong(n); i += ulong(threads)) {
        float x = logits[i];
        if (ingot_finite(x) && (x > best || at == 0xffffffffu)) {
            best = x;
            at = uint(i);
        }
    }
#pragma unroll
    for (uint m = 16u; m > 0u; m /= 2u) {
        float other = simd_shuffle_xor(best, ushort(m));
        uint other_at = simd_shuffle_xor(at, ushort(m));
        if (other > best || (other == best && other_at < at)) {
            best = other;
            at = other_at;
        }
    }
    if (lane == 0u) {
        best_value[simdgroup] = best;
        best_index[simdgroup] = at;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup != 0u) {
        return;
    }
    best = -FLT_MAX;
    at = 0xffffffffu;
    if (lane < simdgroups) {
        best = best_value[lane];
        at = best_index[lane];
    }
#pragma unroll
    for (uint m = 16u; m > 0u; m /= 2u) {
        float other = simd_shuffle_xor(best, ushort(m));
        uint other_at = simd_shuffle_xor(at, ushort(m));
        if (other > best || (other == best && other_at < at)) {
            best = other;
            at = other_at;
        }
    }
    if (lane == 0u) {
        token[0] = at;
        value[0] = at == 0xffffffffu ? 0.0f : ingot_softcap(best, cap[0]);
    }
}
