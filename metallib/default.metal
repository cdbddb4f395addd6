// Joined from several files by buildmetallib. Change those, not this.

#line 1 "argmax.metal"
// The most likely token in several passes, and for few logits together with their capped values.

#line 1 "common.h"
// What all shaders share.

#ifndef INGOT_COMMON_H
#define INGOT_COMMON_H

#include <metal_stdlib>
using namespace metal;

// A helper that never stays a call: arrays passed to it live in registers.
#define INGOT_FUNC static inline __attribute__((always_inline))

#endif
#line 4 "argmax.metal"
#line 1 "argmax.h"
// The greatest finite number of a threadgroup and its index.

#ifndef INGOT_ARGMAX_H
#define INGOT_ARGMAX_H

#line 7 "argmax.h"
#line 1 "reduce.h"
// Sums over a threadgroup, for kernels that give each row a threadgroup.

#ifndef INGOT_REDUCE_H
#define INGOT_REDUCE_H

#line 7 "reduce.h"

// Most simdgroups of a threadgroup: 1,024 threads of 32 lanes.
#define INGOT_MAX_SIMDGROUPS 32

// The sum of v over all threads, in every thread. All threads of the threadgroup call it, in whole simdgroups of 32.
// scratch has INGOT_MAX_SIMDGROUPS floats that nobody else uses; a second sum needs a second scratch.
INGOT_FUNC float ingot_row_sum(float v, threadgroup float* scratch, uint lane, uint simdgroup, uint simdgroups) {
    float sum = simd_sum(v);
    if (simdgroups > 1u) {
        if (lane == 0u) {
            scratch[simdgroup] = sum;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float part = 0.0f;
        if (lane < simdgroups) {
            part = scratch[lane];
        }
        sum = simd_sum(part);
    }
    return sum;
}

#endif
#line 8 "argmax.h"

#define INGOT_NOTHING 0xffffffffu

// Takes x, whose index is id, if it is greater than the best so far or as great with a lower index. x is finite. Before the
// first number best is -FLT_MAX and at is INGOT_NOTHING, which every index is below.
INGOT_FUNC void ingot_argmax_take(float x, uint id, thread float* best, thread uint* at) {
    if (x > *best || (x == *best && id < *at)) {
        *best = x;
        *at = id;
    }
}

// The best of the simdgroup in every lane.
INGOT_FUNC void ingot_argmax_simdgroup(thread float* best, thread uint* at) {
#pragma unroll
    for (uint m = 16u; m > 0u; m /= 2u) {
        float other = simd_shuffle_xor(*best, ushort(m));
        uint other_at = simd_shuffle_xor(*at, ushort(m));
        ingot_argmax_take(other, other_at, best, at);
    }
}

// The best of the threadgroup, in every lane of its first simdgroup. All threads call it, in whole simdgroups of 32. values
// and indices have INGOT_MAX_SIMDGROUPS elements that nobody else uses.
INGOT_FUNC void ingot_argmax_group(thread float* best, thread uint* at, threadgroup float* values, threadgroup uint* indices,
                                   uint lane, uint simdgroup, uint simdgroups) {
    ingot_argmax_simdgroup(best, at);
    if (lane == 0u) {
        values[simdgroup] = *best;
        indices[simdgroup] = *at;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    *best = -FLT_MAX;
    *at = INGOT_NOTHING;
    if (lane < simdgroups) {
        *best = values[lane];
        *at = indices[lane];
    }
    ingot_argmax_simdgroup(best, at);
}

#endif
#line 5 "argmax.metal"
#line 1 "softcap.h"
// Logit softcapping.

#ifndef INGOT_SOFTCAP_H
#define INGOT_SOFTCAP_H

#line 7 "softcap.h"

// Not infinite and not NaN, from the bits: stays right under any floating-point flags.
INGOT_FUNC bool ingot_finite(float x) {
    return (as_type<uint>(x) & 0x7f800000u) != 0x7f800000u;
}

// softcap(x) = cap * tanh(x / cap)     (Gemma 2 report, arXiv:2408.00118, section 2)
// A cap that is not positive and finite means none: x comes back. So it does where x / cap is so small that tanh changes
// nothing in f32 (z^2 / 3 < 2^-26), which also keeps a quotient that is flushed to zero from losing x. x / cap is limited
// to +-16, where tanh has long been +-1.
INGOT_FUNC float ingot_softcap(float x, float cap) {
    if (!ingot_finite(cap) || cap <= 0.0f) {
        return x;
    }
    float z = x / cap;
    if (z > -1e-4f && z < 1e-4f) {
        return x;
    }
    z = z > 16.0f ? 16.0f : z;
    z = z < -16.0f ? -16.0f : z;
    return cap * precise::tanh(z);
}

#endif
#line 6 "argmax.metal"

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
#line 1 "cast.metal"
// Casts among f32, f16 and bf16, and copies of bits.
//
// Round to nearest, ties to even; beyond the largest finite value the result is infinite. NaN stays NaN.

#line 6 "cast.metal"
#line 1 "convert.h"
// Conversions between f32 and bf16 by their bits: the same on every device and under any floating-point flags.

#ifndef INGOT_CONVERT_H
#define INGOT_CONVERT_H

#line 7 "convert.h"

// The bf16 nearest to x, ties to even; what rounds beyond the largest becomes infinite. Subnormal numbers are kept. A NaN
// becomes quiet and keeps its sign and the upper bits of its payload: cut off without care, one whose payload is small
// would become infinite.
INGOT_FUNC ushort ingot_bf16_bits(float x) {
    uint bits = as_type<uint>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return ushort((bits >> 16u) | 0x40u);
    }
    return ushort((bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u);
}

INGOT_FUNC float ingot_from_bf16_bits(ushort bits) {
    return as_type<float>(uint(bits) << 16u);
}

// Not a number, from the bits.
INGOT_FUNC bool ingot_nan(float x) {
    return (as_type<uint>(x) & 0x7fffffffu) > 0x7f800000u;
}

#endif
#line 7 "cast.metal"

// dst[i] = f16(src[i]), i < n: to nearest, ties to even. From 65,520 on the result is infinite.
//
// Slots: 0 src f32, 1 dst f16, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_f32_f16(device const float* src [[buffer(0)]],
                         device half* dst [[buffer(1)]],
                         constant uint& n [[buffer(2)]],
                         uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = half(src[gid]);
}

// dst[i] = bf16(src[i]), i < n: to nearest, ties to even.
//
// Slots: 0 src f32, 1 dst bf16, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_f32_bf16(device const float* src [[buffer(0)]],
                          device ushort* dst [[buffer(1)]],
                          constant uint& n [[buffer(2)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = ingot_bf16_bits(src[gid]);
}

// dst[i] = src[i], i < n: exact.
//
// Slots: 0 src f16, 1 dst f32, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_f16_f32(device const half* src [[buffer(0)]],
                         device float* dst [[buffer(1)]],
                         constant uint& n [[buffer(2)]],
                         uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = float(src[gid]);
}

// dst[i] = src[i], i < n: exact.
//
// Slots: 0 src bf16, 1 dst f32, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_bf16_f32(device const ushort* src [[buffer(0)]],
                          device float* dst [[buffer(1)]],
                          constant uint& n [[buffer(2)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = ingot_from_bf16_bits(src[gid]);
}

// dst[i] = bf16(src[i]), i < n: to nearest, ties to even; f16 has three bits more.
//
// Slots: 0 src f16, 1 dst bf16, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_f16_bf16(device const half* src [[buffer(0)]],
                          device ushort* dst [[buffer(1)]],
                          constant uint& n [[buffer(2)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = ingot_bf16_bits(float(src[gid]));
}

// dst[i] = f16(src[i]), i < n: to nearest, ties to even. From 65,536 on the result is infinite, below 2^-25 it is zero.
//
// Slots: 0 src bf16, 1 dst f16, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_bf16_f16(device const ushort* src [[buffer(0)]],
                          device half* dst [[buffer(1)]],
                          constant uint& n [[buffer(2)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = half(ingot_from_bf16_bits(src[gid]));
}

// dst[i] = src[i], i < n: the bits, whatever they mean.
//
// Slots: 0 src [n], 32 bits each, 1 dst [n], 32 bits each, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void copy_b32(device const uint* src [[buffer(0)]],
                     device uint* dst [[buffer(1)]],
                     constant uint& n [[buffer(2)]],
                     uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = src[gid];
}

// dst[i] = src[i], i < n: the bits, whatever they mean.
//
// Slots: 0 src [n], 16 bits each, 1 dst [n], 16 bits each, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void copy_b16(device const ushort* src [[buffer(0)]],
                     device ushort* dst [[buffer(1)]],
                     constant uint& n [[buffer(2)]],
                     uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = src[gid];
}
#line 1 "decode_advance.metal"
// The end of a decode step: what the next one needs, without the host.

#line 4 "decode_advance.metal"

// Words of the decode state. The single u32 values are also what other kernels of the step bind.
#define INGOT_STATE_TOKEN 0            // token that the step embeds
#define INGOT_STATE_POSITION 1         // its position
#define INGOT_STATE_KV_LENGTH 2        // keys in the cache once the step has stored its own: position + 1
#define INGOT_STATE_CACHE_OFFSET 3     // element of the cache where the step stores: position * kv_stride
#define INGOT_STATE_PRODUCED 4         // tokens in the output list
#define INGOT_STATE_STATUS 5           // one of the below
#define INGOT_STATE_PROMPT_LENGTH 6    // tokens in the prompt list; written by the host, limited to its capacity
                                       // word 7 is reserved

#define INGOT_RUNNING 0u
#define INGOT_END_TOKEN 1u      // an end token was produced; it is the last of the list
#define INGOT_OUTPUT_FULL 2u    // the output list has no room for another token
#define INGOT_CACHE_FULL 3u     // the cache has no room for another position
#define INGOT_NO_TOKEN 4u       // no logit was finite

// The next token is the prompt's at position + 1, or, past the prompt, the argmax, which is appended to the output list.
// Then token, position, KV length and cache offset move on by one, unless the sequence ended: the status says why, the
// counters keep their values, and with a status other than "running" the launch is a no-op. So a step may be replayed any
// number of times; no write goes past a list or the cache.
//
// Slots: 0 state u32 [8], 1 prompt u32 [prompt_capacity], 2 argmax u32 [1], 3 output u32 [output_capacity],
//        4 prompt_capacity, 5 output_capacity, 6 kv_capacity in positions, 7 kv_stride in elements per position
//        (kv_capacity * kv_stride is at most 0xffffffff), 8 end_tokens u32 [n_end] (bound but not read if n_end is 0), 9 n_end.
// Geometry: one thread.
// Threadgroup memory: none.
kernel void decode_advance(device uint* state [[buffer(0)]],
                           device const uint* prompt [[buffer(1)]],
                           device const uint* argmax [[buffer(2)]],
                           device uint* output [[buffer(3)]],
                           constant uint& prompt_capacity [[buffer(4)]],
                           constant uint& output_capacity [[buffer(5)]],
                           constant uint& kv_capacity [[buffer(6)]],
                           constant uint& kv_stride [[buffer(7)]],
                           device const uint* end_tokens [[buffer(8)]],
                           constant uint& n_end [[buffer(9)]],
                           uint gid [[thread_position_in_grid]]) {
    if (gid != 0u || state[INGOT_STATE_STATUS] != INGOT_RUNNING) {
        return;
    }
    ulong next = ulong(state[INGOT_STATE_POSITION]) + 1ul;
    uint produced = state[INGOT_STATE_PRODUCED];
    uint prompt_length = state[INGOT_STATE_PROMPT_LENGTH];
    if (prompt_length > prompt_capacity) {
        prompt_length = prompt_capacity;
    }
    uint status = INGOT_RUNNING;
    uint token = 0u;
    if (next < ulong(prompt_length)) {
        token = prompt[next];
    } else {
        token = argmax[0];
        if (token == 0xffffffffu) {
            status = INGOT_NO_TOKEN;
        } else if (produced >= output_capacity) {
            status = INGOT_OUTPUT_FULL;
        } else {
            output[ulong(produced)] = token;
            produced += 1u;
            for (uint i = 0u; i < n_end; i++) {
                if (end_tokens[ulong(i)] == token) {
                    status = INGOT_END_TOKEN;
                }
            }
            if (status == INGOT_RUNNING && produced >= output_capacity) {
                status = INGOT_OUTPUT_FULL;
            }
        }
    }
    if (status == INGOT_RUNNING && next >= ulong(kv_capacity)) {
        status = INGOT_CACHE_FULL;
    }
    state[INGOT_STATE_PRODUCED] = produced;
    state[INGOT_STATE_STATUS] = status;
    if (status == INGOT_RUNNING) {
        state[INGOT_STATE_TOKEN] = token;
        state[INGOT_STATE_POSITION] = uint(next);
        state[INGOT_STATE_KV_LENGTH] = uint(next + 1ul);
        state[INGOT_STATE_CACHE_OFFSET] = uint(next * ulong(kv_stride));
    }
}
#line 1 "elementwise.metal"
// Operations on single elements: scaling, adding, capping.

#line 4 "elementwise.metal"
#line 5 "elementwise.metal"
#line 6 "elementwise.metal"

// x[i] = scale * x[i], i < n
//
// Slots: 0 x f32 (in and out), 1 scale f32, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void scale_f32_inplace(device float* x [[buffer(0)]],
                              constant float& scale [[buffer(1)]],
                              constant uint& n [[buffer(2)]],
                              uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    x[gid] = scale * x[gid];
}

// out[i] = a[i] + b[i], i < n
//
// Slots: 0 a f32, 1 b f32, 2 out f32 (may be a or b itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void add_f32(device const float* a [[buffer(0)]],
                    device const float* b [[buffer(1)]],
                    device float* out [[buffer(2)]],
                    constant uint& n [[buffer(3)]],
                    uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = a[gid] + b[gid];
}

// As add_f32, of f16: the sum in f32, rounded to f16.
//
// Slots: 0 a f16, 1 b f16, 2 out f16 (may be a or b itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void add_f16(device const half* a [[buffer(0)]],
                    device const half* b [[buffer(1)]],
                    device half* out [[buffer(2)]],
                    constant uint& n [[buffer(3)]],
                    uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = half(float(a[gid]) + float(b[gid]));
}

// As add_f32, of bf16: the sum in f32, rounded to bf16.
//
// Slots: 0 a bf16, 1 b bf16, 2 out bf16 (may be a or b itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void add_bf16(device const ushort* a [[buffer(0)]],
                     device const ushort* b [[buffer(1)]],
                     device ushort* out [[buffer(2)]],
                     constant uint& n [[buffer(3)]],
                     uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_bf16_bits(ingot_from_bf16_bits(a[gid]) + ingot_from_bf16_bits(b[gid]));
}

// out[r, c] = x[r, c] + bias[c], r < rows, c < cols
//
// Slots: 0 x f32 [rows, cols], 1 bias f32 [cols], 2 out f32 (may be x itself), 3 rows, 4 cols.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void add_bias_f32(device const float* x [[buffer(0)]],
                         device const float* bias [[buffer(1)]],
                         device float* out [[buffer(2)]],
                         constant uint& rows [[buffer(3)]],
                         constant uint& cols [[buffer(4)]],
                         uint gid [[thread_position_in_grid]]) {
    if (ulong(gid) >= ulong(rows) * ulong(cols)) {
        return;
    }
    out[gid] = x[gid] + bias[gid % cols];
}

// logits[i] = softcap(logits[i]), cap * tanh(x / cap), i < n
//
// Slots: 0 logits f32 (in and out), 1 softcap f32 (device; not positive or not finite: no cap), 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void softcap_logits(device float* logits [[buffer(0)]],
                           device const float* softcap [[buffer(1)]],
                           constant uint& n [[buffer(2)]],
                           uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    logits[gid] = ingot_softcap(logits[gid], softcap[0]);
}
#line 1 "embed_affine.metal"
// Embedding lookup in a table in MLX's affine format; see affine.h.

#line 4 "embed_affine.metal"
#line 1 "affine.h"
// Reading matrices in MLX's affine format as checkpoints hold them: codes of 4, 6 or 8 bits, scales and biases of f32, f16 or bf16.
//
// The codes of a row are a stream of bits, the lowest first: 16 codes are BITS / 2 words.

#ifndef INGOT_AFFINE_H
#define INGOT_AFFINE_H

#line 9 "affine.h"
#line 10 "affine.h"

// Function constants: the types of x, of y, and of scales and biases.
constant uint ingot_affine_x [[function_constant(400)]];
constant uint ingot_affine_y [[function_constant(401)]];
constant uint ingot_affine_scale [[function_constant(402)]];

#define INGOT_AFFINE_F32 0
#define INGOT_AFFINE_F16 1
#define INGOT_AFFINE_BF16 2

// Number `at` of scales or biases, widened: exact.
INGOT_FUNC float ingot_affine_number(device const uchar* numbers, ulong at) {
    if (ingot_affine_scale == INGOT_AFFINE_F16) {
        return float(((device const half*)numbers)[at]);
    }
    if (ingot_affine_scale == INGOT_AFFINE_BF16) {
        return ingot_from_bf16_bits(((device const ushort*)numbers)[at]);
    }
    return ((device const float*)numbers)[at];
}

// Elements 4 at to 4 at + 3 of x, widened: exact.
INGOT_FUNC float4 ingot_affine_load(device const uchar* x, ulong at) {
    if (ingot_affine_x == INGOT_AFFINE_F16) {
        return float4(((device const half4*)x)[at]);
    }
    if (ingot_affine_x == INGOT_AFFINE_BF16) {
        return as_type<float4>(uint4(((device const ushort4*)x)[at]) << 16u);
    }
    return ((device const float4*)x)[at];
}

// Element `at` of y is v, rounded to its type, ties to even; beyond the largest finite number it is infinite.
INGOT_FUNC void ingot_affine_store(device uchar* y, ulong at, float v) {
    if (ingot_affine_y == INGOT_AFFINE_F16) {
        ((device half*)y)[at] = half(v);
    } else if (ingot_affine_y == INGOT_AFFINE_BF16) {
        ((device ushort*)y)[at] = ingot_bf16_bits(v);
    } else {
        ((device float*)y)[at] = v;
    }
}

// The words of 16 codes.
template <uint BITS>
INGOT_FUNC void ingot_affine_words(device const uint* packed, ulong at, thread uint* words) {
    if (BITS == 6u) {
        words[0] = packed[at];
        words[1] = packed[at + 1ul];
        words[2] = packed[at + 2ul];
        return;
    }
#pragma unroll
    for (uint i = 0u; i < BITS / 4u; i++) {
        uint2 two = *(device const uint2*)(packed + at + ulong(2u * i));
        words[2u * i] = two.x;
        words[2u * i + 1u] = two.y;
    }
}

// Codes 4 i to 4 i + 3 of 16, left where they are in their bits: each is 2^(BITS j) times its code, but with 8 bits.
template <uint BITS>
INGOT_FUNC float4 ingot_affine_quad(thread const uint* words, uint i) {
    if (BITS == 4u) {
        uint w = words[i / 2u] >> i % 2u * 16u;
        return float4(float(w & 0x000fu), float(w & 0x00f0u), float(w & 0x0f00u), float(w & 0xf000u));
    }
    if (BITS == 6u) {
        uint w = words[2] >> 8u;
        if (i == 0u) {
            w = words[0];
        } else if (i == 1u) {
            w = words[0] >> 24u | words[1] << 8u;
        } else if (i == 2u) {
            w = words[1] >> 16u | words[2] << 16u;
        }
        return float4(float(w & 0x00003fu), float(w & 0x000fc0u), float(w & 0x03f000u), float(w & 0xfc0000u));
    }
    return float4(as_type<uchar4>(words[i]));
}

// What such a quad is to be multiplied by, or x instead of it. Powers of two: exact.
template <uint BITS>
INGOT_FUNC float4 ingot_affine_places() {
    if (BITS == 4u) {
        return float4(1.0f, 0.0625f, 0.00390625f, 0.000244140625f);
    }
    if (BITS == 6u) {
        return float4(1.0f, 0.015625f, 0.000244140625f, 0.000003814697265625f);
    }
    return float4(1.0f);
}

// Weights 4 i to 4 i + 3 of 16: scale * code + bias, rounded once.
template <uint BITS>
INGOT_FUNC float4 ingot_affine_weights(thread const uint* words, uint i, float scale, float bias) {
    return fma(float4(scale), ingot_affine_quad<BITS>(words, i) * ingot_affine_places<BITS>(), float4(bias));
}

#endif
#line 5 "embed_affine.metal"

// out[t, c] = out_scale * (scale * code + bias) of row ids[t]; an id outside the vocabulary gives a row of zeros.
//
// Kernels: embed_lookup_affine_b{BITS}. Function constant: the type of scales and biases.
//
// Slots: 0 packed u32 [vocab, hidden * BITS / 32], 8-byte aligned, 1 scales [vocab, hidden / group_size], 2 biases likewise,
//        3 ids u32 [n_tokens], 4 out f32 [n_tokens, hidden], 5 hidden, 6 group_size, 7 vocab, 8 n_tokens, 9 out_scale f32.
// Geometry: one thread for each 16 columns, 64 threads per threadgroup, any number of threadgroups.
// Threadgroup memory: none.
template <uint BITS>
kernel void embed_lookup_affine(device const uint* packed [[buffer(0)]],
                                device const uchar* scales [[buffer(1)]],
                                device const uchar* biases [[buffer(2)]],
                                device const uint* ids [[buffer(3)]],
                                device float* out [[buffer(4)]],
                                constant uint& hidden [[buffer(5)]],
                                constant uint& group_size [[buffer(6)]],
                                constant uint& vocab [[buffer(7)]],
                                constant uint& n_tokens [[buffer(8)]],
                                constant float& out_scale [[buffer(9)]],
                                uint gid [[thread_position_in_grid]]) {
    uint pieces = hidden / 16u;
    if (ulong(gid) >= ulong(n_tokens) * ulong(pieces)) {
        return;
    }
    uint token = gid / pieces;
    uint piece = gid - token * pieces;
    ulong at = ulong(token) * ulong(hidden) + ulong(piece) * 16ul;
    uint id = ids[token];
    if (id >= vocab) {
        for (uint j = 0u; j < 16u; j++) {
            out[at + ulong(j)] = 0.0f;
        }
        return;
    }
    uint words[BITS / 2u];
    ingot_affine_words<BITS>(packed, (ulong(id) * ulong(pieces) + ulong(piece)) * ulong(BITS / 2u), words);
    ulong number = ulong(id) * ulong(hidden / group_size) + ulong(piece * 16u / group_size);
    float scale = ingot_affine_number(scales, number);
    float bias = ingot_affine_number(biases, number);
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float4 w = out_scale * ingot_affine_weights<BITS>(words, i, scale, bias);
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            out[at + ulong(4u * i + j)] = w[j];
        }
    }
}

typedef decltype(embed_lookup_affine<4>) embed_lookup_affine_kernel;

template [[host_name("embed_lookup_affine_b4")]] kernel embed_lookup_affine_kernel embed_lookup_affine<4>;
template [[host_name("embed_lookup_affine_b6")]] kernel embed_lookup_affine_kernel embed_lookup_affine<6>;
template [[host_name("embed_lookup_affine_b8")]] kernel embed_lookup_affine_kernel embed_lookup_affine<8>;
#line 1 "embed_q4.metal"
// Embedding lookup in a signed 4-bit table with zero points.

#line 4 "embed_q4.metal"

// out[t, c] = out_scale * scale * (code - zero) of row ids[t]; an id outside the vocabulary gives a row of zeros.
//
// Codes are -8 to 7 in two's complement, eight to a word, the first in the lowest bits.
//
// Slots: 0 packed u32 [vocab, hidden / 8], 1 scales f32 [vocab, hidden / group_size], 2 zeros f32 as scales,
//        3 ids u32 [n_tokens], 4 out f32 [n_tokens, hidden], 5 hidden, 6 group_size (a multiple of 8), 7 vocab, 8 n_tokens,
//        9 out_scale f32.
// Geometry: one thread for each word of eight columns, 64 threads per threadgroup, any number of threadgroups.
// Threadgroup memory: none.
kernel void embed_lookup_q4(device const uint* packed [[buffer(0)]],
                            device const float* scales [[buffer(1)]],
                            device const float* zeros [[buffer(2)]],
                            device const uint* ids [[buffer(3)]],
                            device float* out [[buffer(4)]],
                            constant uint& hidden [[buffer(5)]],
                            constant uint& group_size [[buffer(6)]],
                            constant uint& vocab [[buffer(7)]],
                            constant uint& n_tokens [[buffer(8)]],
                            constant float& out_scale [[buffer(9)]],
                            uint gid [[thread_position_in_grid]]) {
    uint words = hidden / 8u;
    ulong total = ulong(n_tokens) * ulong(words);
    if (ulong(gid) >= total) {
        return;
    }
    uint token = gid / words;
    uint word = gid - token * words;
    ulong at = ulong(token) * ulong(hidden) + ulong(word) * 8ul;
    uint id = ids[token];
    if (id >= vocab) {
        for (uint j = 0u; j < 8u; j++) {
            out[at + ulong(j)] = 0.0f;
        }
        return;
    }
    uint w = packed[ulong(id) * ulong(words) + ulong(word)];
    ulong group = ulong(id) * ulong(hidden / group_size) + ulong(word * 8u / group_size);
    float scale = scales[group];
    float zero = zeros[group];
    for (uint j = 0u; j < 8u; j++) {
        int code = int(w << (28u - 4u * j)) >> 28;
        out[at + ulong(j)] = out_scale * (scale * (float(code) - zero));
    }
}
#line 1 "embed_q4_mlx.metal"
// Embedding lookup in an MLX 4-bit affine table.

#line 4 "embed_q4_mlx.metal"

// out[t, c] = out_scale * (scale * code + bias) of row ids[t]; an id outside the vocabulary gives a row of zeros.
//
// Slots: 0 packed u32 [vocab, hidden / 8], 1 sb bfloat2 [vocab, hidden / group_size], 3 ids u32 [n_tokens],
//        4 out f32 [n_tokens, hidden], 5 hidden, 6 group_size, 7 vocab, 8 n_tokens, 9 out_scale f32 (Gemma: sqrt(hidden)).
// Geometry: one thread for each word of eight columns, 64 threads per threadgroup, any number of threadgroups.
// Threadgroup memory: none.
// Source: the format of MLX (mx.quantize, mode "affine").
kernel void embed_lookup_q4_mlx(device const uint* packed [[buffer(0)]],
                                device const bfloat2* sb [[buffer(1)]],
                                device const uint* ids [[buffer(3)]],
                                device float* out [[buffer(4)]],
                                constant uint& hidden [[buffer(5)]],
                                constant uint& group_size [[buffer(6)]],
                                constant uint& vocab [[buffer(7)]],
                                constant uint& n_tokens [[buffer(8)]],
                                constant float& out_scale [[buffer(9)]],
                                uint gid [[thread_position_in_grid]]) {
    uint words = hidden / 8u;
    ulong total = ulong(n_tokens) * ulong(words);
    if (ulong(gid) >= total) {
        return;
    }
    uint token = gid / words;
    uint word = gid - token * words;
    ulong at = ulong(token) * ulong(hidden) + ulong(word) * 8ul;
    uint id = ids[token];
    if (id >= vocab) {
        for (uint j = 0u; j < 8u; j++) {
            out[at + ulong(j)] = 0.0f;
        }
        return;
    }
    uint w = packed[ulong(id) * ulong(words) + ulong(word)];
    bfloat2 s = sb[ulong(id) * ulong(hidden / group_size) + ulong(word * 8u / group_size)];
    float scale = float(s.x);
    float bias = float(s.y);
    for (uint j = 0u; j < 8u; j++) {
        out[at + ulong(j)] = out_scale * fma(scale, float((w >> (4u * j)) & 15u), bias);
    }
}
#line 1 "embed_weights.metal"
// Embedding lookup in a table of any type of weights.

#line 4 "embed_weights.metal"
#line 5 "embed_weights.metal"
#line 1 "weights.h"
// Reading rows of weights of any type, four at a time, as the numbers they are.
//
// A struct below is a place within a row: a run of `values` weights, of which ingot_quad gives weights 4 i to 4 i + 3, to
// the bit what the definition of the format gives in f32. Rows start at a multiple of 16 bytes if they are of f32, q4_k or q5_k,
// of 8 if of f16 or bf16, and else of 2. The block formats are those of ggml; see package nn/quant: `block` weights in
// `bytes` bytes.

#ifndef INGOT_WEIGHTS_H
#define INGOT_WEIGHTS_H

#line 12 "weights.h"

// Four bytes that lie at a multiple of two.
INGOT_FUNC uint ingot_bytes4(device const ushort* at) { return uint(at[0]) | uint(at[1]) << 16u; }

// Four codes, one in each byte.
INGOT_FUNC float4 ingot_codes(uint four) { return float4(as_type<uchar4>(four)); }

// The bytes of a row of a block format.
template <typename W>
INGOT_FUNC ulong ingot_row_bytes(uint cols) {
    return ulong(cols / uint(W::block)) * ulong(W::bytes);
}

struct ingot_f32 {
    enum { values = 4 };
    device const float4* at;
};

INGOT_FUNC void ingot_seek(thread ingot_f32& s, device const uchar* row, uint run) { s.at = (device const float4*)row + run; }
INGOT_FUNC float4 ingot_quad(thread const ingot_f32& s, uint) { return *s.at; }

struct ingot_f16 {
    enum { values = 4 };
    device const half4* at;
};

INGOT_FUNC void ingot_seek(thread ingot_f16& s, device const uchar* row, uint run) { s.at = (device const half4*)row + run; }
INGOT_FUNC float4 ingot_quad(thread const ingot_f16& s, uint) { return float4(*s.at); }

struct ingot_bf16 {
    enum { values = 4 };
    device const ushort4* at;
};

INGOT_FUNC void ingot_seek(thread ingot_bf16& s, device const uchar* row, uint run) { s.at = (device const ushort4*)row + run; }
INGOT_FUNC float4 ingot_quad(thread const ingot_bf16& s, uint) { return as_type<float4>(uint4(*s.at) << 16u); }

// Q8_0: blocks of 34 bytes for 32 weights, d f16 and 32 signed codes; w = d q. A run is half a block.
struct ingot_q8_0 {
    enum { values = 16, block = 32, bytes = 34 };
    float d;
    device const ushort* codes;
};

INGOT_FUNC void ingot_seek(thread ingot_q8_0& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 2u) * 34ul;
    s.d = float(*(device const half*)block);
    s.codes = (device const ushort*)(block + 2) + (run % 2u) * 8u;
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q8_0& s, uint i) {
    return s.d * float4(as_type<char4>(ingot_bytes4(s.codes + 2u * i)));
}

// Q4_0: blocks of 18 bytes for 32 weights, d f16 and 16 bytes, whose low halves are the codes of the first 16 weights;
// w = d (q - 8). A run is half a block.
struct ingot_q4_0 {
    enum { values = 16, block = 32, bytes = 18 };
    float d;
    uint shift;
    device const ushort* codes;
};

INGOT_FUNC void ingot_seek(thread ingot_q4_0& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 2u) * 18ul;
    s.d = float(*(device const half*)block);
    s.shift = run % 2u * 4u;
    s.codes = (device const ushort*)(block + 2);
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q4_0& s, uint i) {
    return s.d * (ingot_codes(ingot_bytes4(s.codes + 2u * i) >> s.shift & 0x0f0f0f0fu) - 8.0f);
}

// IQ4_NL: as Q4_0, but w = d T[q].
struct ingot_iq4_nl {
    enum { values = 16, block = 32, bytes = 18 };
    float d;
    uint shift;
    device const ushort* codes;
};

constant float ingot_iq4_nl_values[16] = {-127.0f, -104.0f, -83.0f, -65.0f, -49.0f, -35.0f, -22.0f, -10.0f,
                                          1.0f, 13.0f, 25.0f, 38.0f, 53.0f, 69.0f, 89.0f, 113.0f};

INGOT_FUNC void ingot_seek(thread ingot_iq4_nl& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 2u) * 18ul;
    s.d = float(*(device const half*)block);
    s.shift = run % 2u * 4u;
    s.codes = (device const ushort*)(block + 2);
}

INGOT_FUNC float4 ingot_quad(thread const ingot_iq4_nl& s, uint i) {
    uint four = ingot_bytes4(s.codes + 2u * i) >> s.shift;
    return s.d * float4(ingot_iq4_nl_values[four & 15u], ingot_iq4_nl_values[four >> 8u & 15u],
                        ingot_iq4_nl_values[four >> 16u & 15u], ingot_iq4_nl_values[four >> 24u & 15u]);
}

// Q5_0: blocks of 22 bytes for 32 weights, d f16, the fifth bits of the 32 codes, and the other four as in Q4_0;
// w = d (q - 16). A run is half a block.
struct ingot_q5_0 {
    enum { values = 16, block = 32, bytes = 22 };
    float d;
    uint shift;
    uint high;
    device const ushort* codes;
};

INGOT_FUNC void ingot_seek(thread ingot_q5_0& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 2u) * 22ul;
    s.d = float(*(device const half*)block);
    s.shift = run % 2u * 4u;
    s.high = ((device const ushort*)block)[1u + run % 2u];
    s.codes = (device const ushort*)(block + 6);
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q5_0& s, uint i) {
    // The multiplication puts a copy of the four bits at every seventh place: bit b of them is bit 8 b of the product.
    uint fifth = ((s.high >> 4u * i & 15u) * 0x00204081u & 0x01010101u) << 4u;
    return s.d * (ingot_codes((ingot_bytes4(s.codes + 2u * i) >> s.shift & 0x0f0f0f0fu) | fifth) - 16.0f);
}

// The scale and the offset of run j of a block of Q4_K or Q5_K, each of 6 bits, from its 12 bytes at `at`. Of the first four
// of each, the upper two bits of a byte belong to the last four.
INGOT_FUNC float2 ingot_k_scale(device const uchar* at, uint j) {
    uint low = at[j & 3u];          // scale j, and the top of scale j + 4
    uint high = at[(j & 3u) + 4u];  // offset j, and the top of offset j + 4
    uint last = at[(j & 3u) + 8u];  // the low halves of scale and offset j + 4
    bool first = j < 4u;
    uint scale = first ? low & 63u : (last & 15u) | low >> 6u << 4u;
    uint offset = first ? high & 63u : last >> 4u | high >> 6u << 4u;
    return float2(float(scale), float(offset));
}

// Q4_K: blocks of 144 bytes for 256 weights, d and dmin f16, 12 bytes of scales and offsets, and 128 bytes, each 32 of which
// hold two runs of 32 weights; w = d scale q - dmin offset.
struct ingot_q4_k {
    enum { values = 32, block = 256, bytes = 144 };
    float d;
    float m;
    uint shift;
    device const uint* codes;
};

INGOT_FUNC void ingot_seek(thread ingot_q4_k& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 8u) * 144ul;
    uint j = run % 8u;
    float2 scale = ingot_k_scale(block + 4, j);
    half2 d = *(device const half2*)block;
    s.d = float(d.x) * scale.x;
    s.m = float(d.y) * scale.y;
    s.shift = j % 2u * 4u;
    s.codes = (device const uint*)(block + 16) + j / 2u * 8u;
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q4_k& s, uint i) {
    return fma(float4(s.d), ingot_codes(s.codes[i] >> s.shift & 0x0f0f0f0fu), float4(-s.m));
}

// Q5_K: blocks of 176 bytes, as Q4_K with 32 bytes before the 128: bit j of byte i is the fifth bit of weight i of run j.
struct ingot_q5_k {
    enum { values = 32, block = 256, bytes = 176 };
    float d;
    float m;
    uint run;
    device const uint* codes;
    device const uint* high;
};

INGOT_FUNC void ingot_seek(thread ingot_q5_k& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 8u) * 176ul;
    uint j = run % 8u;
    float2 scale = ingot_k_scale(block + 4, j);
    half2 d = *(device const half2*)block;
    s.d = float(d.x) * scale.x;
    s.m = float(d.y) * scale.y;
    s.run = j;
    s.high = (device const uint*)(block + 16);
    s.codes = (device const uint*)(block + 48) + j / 2u * 8u;
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q5_k& s, uint i) {
    uint fifth = (s.high[i] >> s.run & 0x01010101u) << 4u;
    return fma(float4(s.d), ingot_codes((s.codes[i] >> s.run % 2u * 4u & 0x0f0f0f0fu) | fifth), float4(-s.m));
}

// Q6_K: blocks of 210 bytes for 256 weights. Each half of a block has four runs of 32 weights: their low four bits are in 64
// bytes, two runs in each 32 of them, and their high two in 32. The halves' low bits come first, then their high bits, then 16
// signed scales, each of 16 weights, and d f16; w = d scale (q - 32).
struct ingot_q6_k {
    enum { values = 32, block = 256, bytes = 210 };
    float2 d;
    uint low_shift;
    uint high_shift;
    device const ushort* low;
    device const ushort* high;
};

INGOT_FUNC void ingot_seek(thread ingot_q6_k& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 8u) * 210ul;
    uint j = run % 4u;
    uint part = run % 8u / 4u;
    s.low = (device const ushort*)block + part * 32u + j % 2u * 16u;
    s.low_shift = j / 2u * 4u;
    s.high = (device const ushort*)block + 64u + part * 16u;
    s.high_shift = j * 2u;
    char2 scale = as_type<char2>(((device const ushort*)block)[96u + run % 8u]);
    s.d = float(*(device const half*)(block + 208)) * float2(scale);
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q6_k& s, uint i) {
    uint low = ingot_bytes4(s.low + 2u * i) >> s.low_shift & 0x0f0f0f0fu;
    uint high = (ingot_bytes4(s.high + 2u * i) >> s.high_shift & 0x03030303u) << 4u;
    return (i < 4u ? s.d.x : s.d.y) * (ingot_codes(low | high) - 32.0f);
}

#endif
#line 6 "embed_weights.metal"

INGOT_FUNC float ingot_embed_number(float x) { return x; }
INGOT_FUNC float ingot_embed_number(half x) { return float(x); }
INGOT_FUNC float ingot_embed_number(ushort bits) { return ingot_from_bf16_bits(bits); }

// out[t, c] = scale * table[ids[t], c]; an id outside the vocabulary gives a row of zeros. The table is of numbers.
//
// Kernels: embed_lookup_{f32,f16,bf16}, by the type of the table.
//
// Slots: 0 table T [vocab, cols], 1 ids u32 [tokens], 2 out f32 [tokens, cols], 3 cols, 4 vocab, 5 tokens, 6 scale f32.
// Geometry: a thread for each column, 64 threads per threadgroup, ceil(cols / 64) x tokens threadgroups.
// Threadgroup memory: none.
template <typename T>
kernel void embed_lookup_numbers(device const T* table [[buffer(0)]],
                                 device const uint* ids [[buffer(1)]],
                                 device float* out [[buffer(2)]],
                                 constant uint& cols [[buffer(3)]],
                                 constant uint& vocab [[buffer(4)]],
                                 constant uint& tokens [[buffer(5)]],
                                 constant float& scale [[buffer(6)]],
                                 uint2 at [[thread_position_in_grid]]) {
    if (at.x >= cols || at.y >= tokens) {
        return;
    }
    uint id = ids[at.y];
    float v = 0.0f;
    if (id < vocab) {
        v = scale * ingot_embed_number(table[ulong(id) * ulong(cols) + ulong(at.x)]);
    }
    out[ulong(at.y) * ulong(cols) + ulong(at.x)] = v;
}

// The same with a table in a block format.
//
// Kernels: embed_lookup_{q4_0,q5_0,q8_0,iq4_nl,q4_K,q5_K,q6_K}, by the format.
//
// Slots: 0 table, rows of whole blocks, aligned as weights.h says, 1 ids u32 [tokens], 2 out f32 [tokens, cols], 3 cols,
//        4 vocab, 5 tokens, 6 scale f32.
// Geometry: a thread for each four columns, 64 threads per threadgroup, ceil(cols / 256) x tokens threadgroups.
// Threadgroup memory: none.
template <typename W>
kernel void embed_lookup_blocks(device const uchar* table [[buffer(0)]],
                                device const uint* ids [[buffer(1)]],
                                device float* out [[buffer(2)]],
                                constant uint& cols [[buffer(3)]],
                                constant uint& vocab [[buffer(4)]],
                                constant uint& tokens [[buffer(5)]],
                                constant float& scale [[buffer(6)]],
                                uint2 at [[thread_position_in_grid]]) {
    if (at.x >= cols / 4u || at.y >= tokens) {
        return;
    }
    uint id = ids[at.y];
    float4 v = float4(0.0f);
    if (id < vocab) {
        constexpr uint quads = uint(W::values) / 4u;
        W place;
        ingot_seek(place, table + ulong(id) * ingot_row_bytes<W>(cols), at.x / quads);
        v = scale * ingot_quad(place, at.x % quads);
    }
    device float* to = out + (ulong(at.y) * ulong(cols) + ulong(at.x) * 4ul);
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
}

typedef decltype(embed_lookup_numbers<float>) embed_f32;
typedef decltype(embed_lookup_numbers<half>) embed_f16;
typedef decltype(embed_lookup_numbers<ushort>) embed_bf16;
typedef decltype(embed_lookup_blocks<ingot_q4_0>) embed_blocks;

template [[host_name("embed_lookup_f32")]] kernel embed_f32 embed_lookup_numbers<float>;
template [[host_name("embed_lookup_f16")]] kernel embed_f16 embed_lookup_numbers<half>;
template [[host_name("embed_lookup_bf16")]] kernel embed_bf16 embed_lookup_numbers<ushort>;
template [[host_name("embed_lookup_q4_0")]] kernel embed_blocks embed_lookup_blocks<ingot_q4_0>;
template [[host_name("embed_lookup_q5_0")]] kernel embed_blocks embed_lookup_blocks<ingot_q5_0>;
template [[host_name("embed_lookup_q8_0")]] kernel embed_blocks embed_lookup_blocks<ingot_q8_0>;
template [[host_name("embed_lookup_iq4_nl")]] kernel embed_blocks embed_lookup_blocks<ingot_iq4_nl>;
template [[host_name("embed_lookup_q4_K")]] kernel embed_blocks embed_lookup_blocks<ingot_q4_k>;
template [[host_name("embed_lookup_q5_K")]] kernel embed_blocks embed_lookup_blocks<ingot_q5_k>;
template [[host_name("embed_lookup_q6_K")]] kernel embed_blocks embed_lookup_blocks<ingot_q6_k>;
#line 1 "flash_attn_blk.metal"
// What is in the tiles of an attention mask.

#line 4 "flash_attn_blk.metal"

// blk[i, j] = 0 if every element of tile (i, j) of the mask is minus infinity, 2 if every one is 0, else 1. Tiles at the edge are what
// there is of them.
//
// Slots: 0 mask f16 [qL, kL], 1 blk u8 [ceil(qL / BQ), ceil(kL / BK)], 2 qL, 3 kL, 4 BQ, 5 BK (the tile: BQ rows, BK keys).
// Geometry: ceil(kL / BK) x ceil(qL / BQ) threadgroups of 32 threads. Threadgroup memory: none.
kernel void flash_attn_prefill_blk(device const half* mask [[buffer(0)]],
                                   device uchar* blk [[buffer(1)]],
                                   constant uint& qL [[buffer(2)]],
                                   constant uint& kL [[buffer(3)]],
                                   constant uint& BQ [[buffer(4)]],
                                   constant uint& BK [[buffer(5)]],
                                   uint2 tile [[threadgroup_position_in_grid]],
                                   uint2 tiles [[threadgroups_per_grid]],
                                   uint lane [[thread_index_in_simdgroup]]) {
    bool all_hidden = true;
    bool all_zero = true;
    for (uint i = lane; i < BQ * BK; i += 32u) {
        ulong row = ulong(tile.y) * ulong(BQ) + ulong(i / BK);
        ulong key = ulong(tile.x) * ulong(BK) + ulong(i % BK);
        if (row < ulong(qL) && key < ulong(kL)) {
            ushort bits = as_type<ushort>(mask[row * ulong(kL) + key]);
            all_hidden = all_hidden && bits == 0xfc00u;
            all_zero = all_zero && (bits & 0x7fffu) == 0u;
        }
    }
    all_hidden = simd_all(all_hidden);
    all_zero = simd_all(all_zero);
    if (lane == 0u) {
        blk[ulong(tile.y) * ulong(tiles.x) + ulong(tile.x)] = all_hidden ? uchar(0) : all_zero ? uchar(2) : uchar(1);
    }
}
#line 1 "flash_attn_decode.metal"
// FlashDecoding: attention of one query row per batch item and head, split over the key-value cache. One kernel makes
// partial results of chunks of keys, another one merges them.

#line 5 "flash_attn_decode.metal"
#line 1 "attn_decode.h"
// Attention of a single query row, split over the key-value cache: FlashDecoding.

#ifndef INGOT_ATTN_DECODE_H
#define INGOT_ATTN_DECODE_H

#line 1 "attn_kv.h"
// What the attention kernels share: which keys a query sees, and reading caches of f32, f16 and bf16.

#ifndef INGOT_ATTN_KV_H
#define INGOT_ATTN_KV_H

#line 7 "attn_kv.h"

// One past the last key that the query at q_abs may see among keys at kv_pos, kv_pos + 1, ...; at most tkv.
INGOT_FUNC uint ingot_attn_end(ulong q_abs, ulong kv_pos, uint tkv) {
    if (q_abs < kv_pos) {
        return 0u;
    }
    ulong seen = q_abs - kv_pos + 1ul;
    return seen < ulong(tkv) ? uint(seen) : tkv;
}

// The first key that it may see: the last `window` positions including its own, all of them if window is 0. At most end.
INGOT_FUNC uint ingot_attn_first(ulong q_abs, ulong kv_pos, uint window, uint end) {
    if (window == 0u || q_abs + 1ul <= ulong(window)) {
        return 0u;
    }
    ulong low = q_abs + 1ul - ulong(window);
    if (low <= kv_pos) {
        return 0u;
    }
    ulong first = low - kv_pos;
    return first < ulong(end) ? uint(first) : end;
}

// Four elements of a cache, widened: exact. bf16 is read as its bits, which are the upper half of the f32.
INGOT_FUNC float4 ingot_kv4(float4 x) { return x; }
INGOT_FUNC float4 ingot_kv4(half4 x) { return float4(x); }
INGOT_FUNC float4 ingot_kv4(ushort4 x) { return as_type<float4>(uint4(x) << 16u); }

// o[at] = x, as bf16 if that is asked for.
INGOT_FUNC void ingot_attn_store(device float* o, ulong at, float x, uint out_bf16) {
    if (out_bf16 != 0u) {
        ((device bfloat*)o)[at] = bfloat(x);
    } else {
        o[at] = x;
    }
}

#endif
#line 7 "attn_decode.h"
#line 8 "attn_decode.h"

// The partial result of one head over keys start to start + C - 1: with s the scores of those that are seen,
//   part[0] = m = max s, part[1] = sum of e^(s - m), part[2 + i] = sum of e^(s - m) v[i]
// If none is seen, part[0] = -FLT_MAX, part[1] = 0, and the rest is not written.
//
// D: head dimension. C: keys of a chunk. R: lanes of a key, so 32 / R keys at a time. KV: four elements of a cache. A lane
// owns the float4s dl, dl + R, ... of the head dimension, dl = lane % R. Each group of R lanes walks keys of its own with an
// online softmax; the groups are merged at the end, always in the same order.
template <uint D, uint C, uint R, typename KV>
INGOT_FUNC void ingot_attn_decode(device const float4* q, device const KV* k, device const KV* v, device float* part,
                                  uint start, uint end, uint first, ulong row, ulong at, ulong stride, float scale,
                                  float softcap, uint lane) {
    const uint quads = D / 4u / R;
    const uint keys = 32u / R;
    uint dl = lane % R;
    uint mine = lane / R;

    float query[D / R];
    float sum[D / R];
#pragma unroll
    for (uint i = 0u; i < quads; i++) {
        float4 value = q[row * ulong(D / 4u) + ulong(dl + i * R)];
        query[4u * i] = value.x;
        query[4u * i + 1u] = value.y;
        query[4u * i + 2u] = value.z;
        query[4u * i + 3u] = value.w;
        sum[4u * i] = 0.0f;
        sum[4u * i + 1u] = 0.0f;
        sum[4u * i + 2u] = 0.0f;
        sum[4u * i + 3u] = 0.0f;
    }
    // The keys of this chunk that are seen.
    uint from = first > start ? first : start;
    uint to = end - start < C ? end : start + C;
    at += ulong(from + mine) * stride + ulong(dl);
    float most = -FLT_MAX;
    float weight = 0.0f;
    for (uint base = from; base < to; base += keys) {
        bool live = mine < to - base;
        float score = 0.0f;
        if (live) {
#pragma unroll
            for (uint i = 0u; i < quads; i++) {
                float4 value = ingot_kv4(k[at + ulong(i * R)]);
                score = fma(query[4u * i], value.x, score);
                score = fma(query[4u * i + 1u], value.y, score);
                score = fma(query[4u * i + 2u], value.z, score);
                score = fma(query[4u * i + 3u], value.w, score);
            }
        }
#pragma unroll
        for (uint m = R / 2u; m > 0u; m /= 2u) {
            score += simd_shuffle_xor(score, ushort(m));
        }
        if (live) {
            score = ingot_softcap(score * scale, softcap);
            float most_now = fmax(most, score);
            float keep = precise::exp(most - most_now);
            float p = precise::exp(score - most_now);
            weight = fma(weight, keep, p);
            most = most_now;
#pragma unroll
            for (uint i = 0u; i < quads; i++) {
                float4 value = ingot_kv4(v[at + ulong(i * R)]);
                sum[4u * i] = fma(p, value.x, sum[4u * i] * keep);
                sum[4u * i + 1u] = fma(p, value.y, sum[4u * i + 1u] * keep);
                sum[4u * i + 2u] = fma(p, value.z, sum[4u * i + 2u] * keep);
                sum[4u * i + 3u] = fma(p, value.w, sum[4u * i + 3u] * keep);
            }
        }
        at += ulong(keys) * stride;
    }

#pragma unroll
    for (uint m = R; m < 32u; m *= 2u) {
        float other = simd_shuffle_xor(most, ushort(m));
        float other_weight = simd_shuffle_xor(weight, ushort(m));
        float most_now = fmax(most, other);
        float keep = precise::exp(most - most_now);
        float other_keep = precise::exp(other - most_now);
        weight = fma(weight, keep, other_weight * other_keep);
        most = most_now;
#pragma unroll
        for (uint i = 0u; i < D / R; i++) {
            sum[i] = fma(sum[i], keep, simd_shuffle_xor(sum[i], ushort(m)) * other_keep);
        }
    }
    if (lane == 0u) {
        part[0] = most;
        part[1] = weight;
    }
    if (lane < R && weight != 0.0f) {
#pragma unroll
        for (uint i = 0u; i < quads; i++) {
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                part[2u + 4u * (dl + i * R) + j] = sum[4u * i + j];
            }
        }
    }
}

#endif
#line 6 "flash_attn_decode.metal"

// The partial results of attention, see ingot_attn_decode, over each chunk of C keys that has one of the first Tkv:
//   partials[b, h, chunk] = m, l, acc[D]
// Which keys a head sees is as in flash_attn_rows with Tq = 1. Chunks that start at Tkv or behind are not written. Where no
// key of a chunk is seen, m = -FLT_MAX and l = 0 are written, acc is not.
//
// Tkv, q_pos and kv_pos are read on the device; Tkv is limited to capacity, which is also the stride of a batch in K and V.
//
// Kernels: flash_attn_decode_partial_h{D}_c{C}_r{R} for caches of f32, with _f16 or _bf16 behind for the others. R is how
// many lanes share a key.
//
// Slots: 0 q f32 [B, 1, H, D], 1 k f32, f16 or bf16 [B, capacity, Hkv, D], 2 v as k, 3 partials f32
//        [B, H, ceil(capacity / C), D + 2], 4 B, 6 Tkv u32 (device), 7 H, 8 Hkv (divides H), 9 window (0: all), 10 scale
//        f32, 11 q_pos u32 (device), 12 kv_pos u32 (device), 13 capacity in positions, 15 softcap f32 of the scores (not
//        positive or not finite: none).
// Geometry: ceil(capacity / C) x ceil(B H / n) threadgroups of n simdgroups, a head for each: neighbours, so that those
//           which share keys read them together. q, k and v start at a multiple of 16 bytes.
// Threadgroup memory: none.
// Source: Dao et al., "Flash-Decoding for long-context inference", 2023.
template <uint D, uint C, uint R, typename KV>
kernel void flash_attn_decode_partial(device const float4* q [[buffer(0)]],
                                      device const KV* k [[buffer(1)]],
                                      device const KV* v [[buffer(2)]],
                                      device float* partials [[buffer(3)]],
                                      constant uint& B [[buffer(4)]],
                                      device const uint* Tkv [[buffer(6)]],
                                      constant uint& H [[buffer(7)]],
                                      constant uint& Hkv [[buffer(8)]],
                                      constant uint& window [[buffer(9)]],
                                      constant float& scale [[buffer(10)]],
                                      device const uint* q_pos [[buffer(11)]],
                                      device const uint* kv_pos [[buffer(12)]],
                                      constant uint& capacity [[buffer(13)]],
                                      constant float& softcap [[buffer(15)]],
                                      uint2 tile [[threadgroup_position_in_grid]],
                                      uint simdgroup [[simdgroup_index_in_threadgroup]],
                                      uint simdgroups [[simdgroups_per_threadgroup]],
                                      uint lane [[thread_index_in_simdgroup]]) {
    ulong row = ulong(tile.y) * ulong(simdgroups) + ulong(simdgroup);
    if (row >= ulong(B) * ulong(H)) {
        return;
    }
    uint tkv = Tkv[0];
    if (tkv > capacity) {
        tkv = capacity;
    }
    ulong start = ulong(tile.x) * ulong(C);
    if (start >= ulong(tkv)) {
        return;
    }
    uint batch = uint(row) / H;
    uint head = uint(row) - batch * H;
    uint head_kv = head / (H / Hkv);
    ulong q_abs = ulong(q_pos[0]);
    uint end = ingot_attn_end(q_abs, ulong(kv_pos[0]), tkv);
    uint first = ingot_attn_first(q_abs, ulong(kv_pos[0]), window, end);
    if (end < uint(start)) {
        end = uint(start); // all keys of the chunk come after the query
    }
    ulong chunks = (ulong(capacity) + ulong(C - 1u)) / ulong(C);
    ulong stride = ulong(Hkv) * ulong(D / 4u);
    ingot_attn_decode<D, C, R, KV>(q, k, v, partials + (row * chunks + ulong(tile.x)) * ulong(D + 2u), uint(start), end, first,
                                   row, ulong(batch) * ulong(capacity) * stride + ulong(head_kv) * ulong(D / 4u), stride,
                                   scale, softcap, lane);
}

// o[b, h] = sum of e^(m - most) acc / (sum of e^(m - most) l + e^(sinks[h] - most)) over the chunks of b, h with one of the
// first Tkv keys, in order, most = the largest m among those with l other than 0, and sinks[h] if there are sinks. Zeros if
// there is no such chunk. acc of the others is not read.
//
// Kernels: flash_attn_decode_reduce_h{D}_c{C}.
//
// Slots: 0 partials f32 as flash_attn_decode_partial leaves them, 1 o f32 or bf16 [B, 1, H, D], 2 B, 3 Tkv u32 (device), 4 H,
//        5 out_bf16, 6 capacity in positions, 7 sinks f32 [H] (bound but not read if has_sinks is 0), 8 has_sinks.
// Geometry: 1 x (B H) threadgroups of any number of threads, up to one for each element of a head.
// Threadgroup memory: none.
template <uint D, uint C>
kernel void flash_attn_decode_reduce(device const float* partials [[buffer(0)]],
                                     device float* o [[buffer(1)]],
                                     constant uint& B [[buffer(2)]],
                                     device const uint* Tkv [[buffer(3)]],
                                     constant uint& H [[buffer(4)]],
                                     constant uint& out_bf16 [[buffer(5)]],
                                     constant uint& capacity [[buffer(6)]],
                                     device const float* sinks [[buffer(7)]],
                                     constant uint& has_sinks [[buffer(8)]],
                                     uint2 tile [[threadgroup_position_in_grid]],
                                     uint2 tid [[thread_position_in_threadgroup]],
                                     uint2 threads [[threads_per_threadgroup]]) {
    ulong row = ulong(tile.y);
    if (row >= ulong(B) * ulong(H)) {
        return;
    }
    uint tkv = Tkv[0];
    if (tkv > capacity) {
        tkv = capacity;
    }
    ulong chunks = (ulong(capacity) + ulong(C - 1u)) / ulong(C);
    uint live = tkv / C;
    if (live * C < tkv) {
        live++;
    }
    ulong begin = row * chunks * ulong(D + 2u);

    float most = -FLT_MAX;
    bool seen = false;
    for (uint i = 0u; i < live; i++) {
        ulong at = begin + ulong(i) * ulong(D + 2u);
        if (partials[at + 1ul] != 0.0f) {
            most = fmax(most, partials[at]);
            seen = true;
        }
    }
    float sink = 0.0f;
    if (has_sinks != 0u) {
        sink = sinks[tile.y % H];
        most = fmax(most, sink);
    }
    for (uint d = tid.x; d < D; d += threads.x) {
        float sum = 0.0f;
        float weight = 0.0f;
        for (uint i = 0u; i < live; i++) {
            ulong at = begin + ulong(i) * ulong(D + 2u);
            float l = partials[at + 1ul];
            if (l != 0.0f) {
                float keep = precise::exp(partials[at] - most);
                weight = fma(keep, l, weight);
                sum = fma(keep, partials[at + 2ul + ulong(d)], sum);
            }
        }
        if (has_sinks != 0u) {
            weight += precise::exp(sink - most);
        }
        // A weight of 0 with a key seen cannot be; a NaN one stays visible.
        float inverse = seen ? 1.0f / weight : 0.0f;
        ingot_attn_store(o, row * ulong(D) + ulong(d), sum * inverse, out_bf16);
    }
}

typedef decltype(flash_attn_decode_partial<128, 256, 8, float4>) partial_f32;
typedef decltype(flash_attn_decode_partial<128, 256, 8, half4>) partial_f16;
typedef decltype(flash_attn_decode_partial<128, 256, 8, ushort4>) partial_bf16;
typedef decltype(flash_attn_decode_reduce<128, 256>) reduce_f32;

// What is launched unless another setting is asked for, every cache:
template [[host_name("flash_attn_decode_partial_h8_c256_r1")]] kernel partial_f32 flash_attn_decode_partial<8, 256, 1, float4>;
template [[host_name("flash_attn_decode_partial_h16_c256_r2")]] kernel partial_f32 flash_attn_decode_partial<16, 256, 2, float4>;
template [[host_name("flash_attn_decode_partial_h32_c256_r4")]] kernel partial_f32 flash_attn_decode_partial<32, 256, 4, float4>;
template [[host_name("flash_attn_decode_partial_h64_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<64, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h80_c256_r4")]] kernel partial_f32 flash_attn_decode_partial<80, 256, 4, float4>;
template [[host_name("flash_attn_decode_partial_h96_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<96, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<128, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h192_c128_r16")]] kernel partial_f32 flash_attn_decode_partial<192, 128, 16, float4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r16")]] kernel partial_f32 flash_attn_decode_partial<256, 128, 16, float4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r32")]] kernel partial_f32 flash_attn_decode_partial<512, 128, 32, float4>;
template [[host_name("flash_attn_decode_partial_h8_c256_r1_f16")]] kernel partial_f16 flash_attn_decode_partial<8, 256, 1, half4>;
template [[host_name("flash_attn_decode_partial_h16_c256_r2_f16")]] kernel partial_f16 flash_attn_decode_partial<16, 256, 2, half4>;
template [[host_name("flash_attn_decode_partial_h32_c256_r4_f16")]] kernel partial_f16 flash_attn_decode_partial<32, 256, 4, half4>;
template [[host_name("flash_attn_decode_partial_h64_c256_r8_f16")]] kernel partial_f16 flash_attn_decode_partial<64, 256, 8, half4>;
template [[host_name("flash_attn_decode_partial_h80_c256_r4_f16")]] kernel partial_f16 flash_attn_decode_partial<80, 256, 4, half4>;
template [[host_name("flash_attn_decode_partial_h96_c256_r8_f16")]] kernel partial_f16 flash_attn_decode_partial<96, 256, 8, half4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r8_f16")]] kernel partial_f16 flash_attn_decode_partial<128, 256, 8, half4>;
template [[host_name("flash_attn_decode_partial_h192_c128_r16_f16")]] kernel partial_f16 flash_attn_decode_partial<192, 128, 16, half4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r16_f16")]] kernel partial_f16 flash_attn_decode_partial<256, 128, 16, half4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r32_f16")]] kernel partial_f16 flash_attn_decode_partial<512, 128, 32, half4>;
template [[host_name("flash_attn_decode_partial_h8_c256_r1_bf16")]] kernel partial_bf16 flash_attn_decode_partial<8, 256, 1, ushort4>;
template [[host_name("flash_attn_decode_partial_h16_c256_r2_bf16")]] kernel partial_bf16 flash_attn_decode_partial<16, 256, 2, ushort4>;
template [[host_name("flash_attn_decode_partial_h32_c256_r4_bf16")]] kernel partial_bf16 flash_attn_decode_partial<32, 256, 4, ushort4>;
template [[host_name("flash_attn_decode_partial_h64_c256_r8_bf16")]] kernel partial_bf16 flash_attn_decode_partial<64, 256, 8, ushort4>;
template [[host_name("flash_attn_decode_partial_h80_c256_r4_bf16")]] kernel partial_bf16 flash_attn_decode_partial<80, 256, 4, ushort4>;
template [[host_name("flash_attn_decode_partial_h96_c256_r8_bf16")]] kernel partial_bf16 flash_attn_decode_partial<96, 256, 8, ushort4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r8_bf16")]] kernel partial_bf16 flash_attn_decode_partial<128, 256, 8, ushort4>;
template [[host_name("flash_attn_decode_partial_h192_c128_r16_bf16")]] kernel partial_bf16 flash_attn_decode_partial<192, 128, 16, ushort4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r16_bf16")]] kernel partial_bf16 flash_attn_decode_partial<256, 128, 16, ushort4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r32_bf16")]] kernel partial_bf16 flash_attn_decode_partial<512, 128, 32, ushort4>;

// Other settings, for tuning:
template [[host_name("flash_attn_decode_partial_h128_c64_r8")]] kernel partial_f32 flash_attn_decode_partial<128, 64, 8, float4>;
template [[host_name("flash_attn_decode_partial_h128_c64_r16")]] kernel partial_f32 flash_attn_decode_partial<128, 64, 16, float4>;
template [[host_name("flash_attn_decode_partial_h128_c64_r32")]] kernel partial_f32 flash_attn_decode_partial<128, 64, 32, float4>;
template [[host_name("flash_attn_decode_partial_h128_c128_r8")]] kernel partial_f32 flash_attn_decode_partial<128, 128, 8, float4>;
template [[host_name("flash_attn_decode_partial_h128_c128_r16")]] kernel partial_f32 flash_attn_decode_partial<128, 128, 16, float4>;
template [[host_name("flash_attn_decode_partial_h128_c128_r32")]] kernel partial_f32 flash_attn_decode_partial<128, 128, 32, float4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r16")]] kernel partial_f32 flash_attn_decode_partial<128, 256, 16, float4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r32")]] kernel partial_f32 flash_attn_decode_partial<128, 256, 32, float4>;
template [[host_name("flash_attn_decode_partial_h256_c64_r8")]] kernel partial_f32 flash_attn_decode_partial<256, 64, 8, float4>;
template [[host_name("flash_attn_decode_partial_h256_c64_r16")]] kernel partial_f32 flash_attn_decode_partial<256, 64, 16, float4>;
template [[host_name("flash_attn_decode_partial_h256_c64_r32")]] kernel partial_f32 flash_attn_decode_partial<256, 64, 32, float4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r8")]] kernel partial_f32 flash_attn_decode_partial<256, 128, 8, float4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r32")]] kernel partial_f32 flash_attn_decode_partial<256, 128, 32, float4>;
template [[host_name("flash_attn_decode_partial_h256_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<256, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h256_c256_r16")]] kernel partial_f32 flash_attn_decode_partial<256, 256, 16, float4>;
template [[host_name("flash_attn_decode_partial_h256_c256_r32")]] kernel partial_f32 flash_attn_decode_partial<256, 256, 32, float4>;
template [[host_name("flash_attn_decode_partial_h512_c64_r8")]] kernel partial_f32 flash_attn_decode_partial<512, 64, 8, float4>;
template [[host_name("flash_attn_decode_partial_h512_c64_r16")]] kernel partial_f32 flash_attn_decode_partial<512, 64, 16, float4>;
template [[host_name("flash_attn_decode_partial_h512_c64_r32")]] kernel partial_f32 flash_attn_decode_partial<512, 64, 32, float4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r8")]] kernel partial_f32 flash_attn_decode_partial<512, 128, 8, float4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r16")]] kernel partial_f32 flash_attn_decode_partial<512, 128, 16, float4>;
template [[host_name("flash_attn_decode_partial_h512_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<512, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h512_c256_r16")]] kernel partial_f32 flash_attn_decode_partial<512, 256, 16, float4>;
template [[host_name("flash_attn_decode_partial_h512_c256_r32")]] kernel partial_f32 flash_attn_decode_partial<512, 256, 32, float4>;

template [[host_name("flash_attn_decode_reduce_h8_c256")]] kernel reduce_f32 flash_attn_decode_reduce<8, 256>;
template [[host_name("flash_attn_decode_reduce_h16_c256")]] kernel reduce_f32 flash_attn_decode_reduce<16, 256>;
template [[host_name("flash_attn_decode_reduce_h32_c256")]] kernel reduce_f32 flash_attn_decode_reduce<32, 256>;
template [[host_name("flash_attn_decode_reduce_h64_c256")]] kernel reduce_f32 flash_attn_decode_reduce<64, 256>;
template [[host_name("flash_attn_decode_reduce_h80_c256")]] kernel reduce_f32 flash_attn_decode_reduce<80, 256>;
template [[host_name("flash_attn_decode_reduce_h96_c256")]] kernel reduce_f32 flash_attn_decode_reduce<96, 256>;
template [[host_name("flash_attn_decode_reduce_h192_c128")]] kernel reduce_f32 flash_attn_decode_reduce<192, 128>;
template [[host_name("flash_attn_decode_reduce_h128_c64")]] kernel reduce_f32 flash_attn_decode_reduce<128, 64>;
template [[host_name("flash_attn_decode_reduce_h128_c128")]] kernel reduce_f32 flash_attn_decode_reduce<128, 128>;
template [[host_name("flash_attn_decode_reduce_h128_c256")]] kernel reduce_f32 flash_attn_decode_reduce<128, 256>;
template [[host_name("flash_attn_decode_reduce_h256_c64")]] kernel reduce_f32 flash_attn_decode_reduce<256, 64>;
template [[host_name("flash_attn_decode_reduce_h256_c128")]] kernel reduce_f32 flash_attn_decode_reduce<256, 128>;
template [[host_name("flash_attn_decode_reduce_h256_c256")]] kernel reduce_f32 flash_attn_decode_reduce<256, 256>;
template [[host_name("flash_attn_decode_reduce_h512_c64")]] kernel reduce_f32 flash_attn_decode_reduce<512, 64>;
template [[host_name("flash_attn_decode_reduce_h512_c128")]] kernel reduce_f32 flash_attn_decode_reduce<512, 128>;
template [[host_name("flash_attn_decode_reduce_h512_c256")]] kernel reduce_f32 flash_attn_decode_reduce<512, 256>;
#line 1 "flash_attn_precise.metal"
// Prefill attention with float16 queries and keys and everything after in float32, for heads of 64, 128 and 256.

#line 1 "attn_precise.h"
// What the precise attention kernels share: parameters, which keys a row sees, scores, weights, and V in its three forms.

#ifndef INGOT_ATTN_PRECISE_H
#define INGOT_ATTN_PRECISE_H

#line 7 "attn_precise.h"
#line 1 "tqhb.h"
// The codec of vectors in a KV cache that nn/quant calls TQHB: codebooks, signs and the value of a code.

#ifndef INGOT_TQHB_H
#define INGOT_TQHB_H

#line 7 "tqhb.h"
#line 1 "zz_tqhb.h"
// Code generated by gencodebook; DO NOT EDIT.
//
// The levels of least mean squared error for the standard normal distribution (Lloyd and Max), and the signs of the rotation.

#ifndef INGOT_ZZ_TQHB_H
#define INGOT_ZZ_TQHB_H

constant float ingot_tqhb_levels_5[32] = {
	-3.26073241f, -2.69111967f, -2.31773949f, -2.02872849f, -1.78723323f, -1.57622802f, -1.38634038f, -1.21180439f,
	-1.0487833f, -0.894565105f, -0.747135699f, -0.604933619f, -0.466699511f, -0.331378311f, -0.198051825f, -0.0658896565f,
	0.0658896565f, 0.198051825f, 0.331378311f, 0.466699511f, 0.604933619f, 0.747135699f, 0.894565105f, 1.0487833f,
	1.21180439f, 1.38634038f, 1.57622802f, 1.78723323f, 2.02872849f, 2.31773949f, 2.69111967f, 3.26073241f,
};

constant float ingot_tqhb_levels_6[64] = {
	-3.74410129f, -3.24043703f, -2.9174068f, -2.67227387f, -2.47130489f, -2.29898119f, -2.14681029f, -2.00961113f,
	-1.88397729f, -1.76754189f, -1.65858889f, -1.55583119f, -1.45827639f, -1.36514103f, -1.27579451f, -1.18972015f,
	-1.10648823f, -1.02573633f, -0.947154939f, -0.870476604f, -0.795467675f, -0.721921921f, -0.649655581f, -0.578503013f,
	-0.508313775f, -0.438949674f, -0.37028265f, -0.302192837f, -0.234566987f, -0.167296901f, -0.100278288f, -0.0334095061f,
	0.0334095061f, 0.100278288f, 0.167296901f, 0.234566987f, 0.302192837f, 0.37028265f, 0.438949674f, 0.508313775f,
	0.578503013f, 0.649655581f, 0.721921921f, 0.795467675f, 0.870476604f, 0.947154939f, 1.02573633f, 1.10648823f,
	1.18972015f, 1.27579451f, 1.36514103f, 1.45827639f, 1.55583119f, 1.65858889f, 1.76754189f, 1.88397729f,
	2.00961113f, 2.14681029f, 2.29898119f, 2.47130489f, 2.67227387f, 2.9174068f, 3.24043703f, 3.74410129f,
};

constant float ingot_tqhb_levels_8[256] = {
	-4.60353565f, -4.18659544f, -3.92563772f, -3.73166633f, -3.57558799f, -3.44407177f, -3.32984853f, -3.22850013f,
	-3.13713264f, -3.05374193f, -2.97688222f, -2.90547299f, -2.83868575f, -2.77587056f, -2.71650767f, -2.66017389f,
	-2.60652137f, -2.55525947f, -2.50614262f, -2.4589622f, -2.41353869f, -2.36971712f, -2.32736182f, -2.28635454f,
	-2.2465899f, -2.20797539f, -2.17042828f, -2.13387418f, -2.09824657f, -2.06348515f, -2.02953577f, -1.9963485f,
	-1.96387839f, -1.9320842f, -1.90092802f, -1.87037516f, -1.8403933f, -1.81095314f, -1.78202689f, -1.75358939f,
	-1.72561693f, -1.69808745f, -1.67098033f, -1.6442765f, -1.61795783f, -1.59200752f, -1.56640983f, -1.54114962f,
	-1.51621318f, -1.49158704f, -1.46725869f, -1.44321656f, -1.41944933f, -1.39594638f, -1.37269759f, -1.34969366f,
	-1.32692528f, -1.30438399f, -1.28206146f, -1.25994992f, -1.23804176f, -1.21632993f, -1.19480765f, -1.17346823f,
	-1.15230536f, -1.1313132f, -1.11048603f, -1.08981812f, -1.06930423f, -1.04893923f, -1.02871823f, -1.00863647f,
	-0.988689363f, -0.968872607f, -0.949181795f, -0.929612935f, -0.910162032f, -0.890825272f, -0.871598899f, -0.852479279f,
	-0.833463013f, -0.814546704f, -0.795727015f, -0.777000844f, -0.758365035f, -0.739816606f, -0.721352637f, -0.702970266f,
	-0.684666753f, -0.666439414f, -0.648285508f, -0.630202591f, -0.612188101f, -0.594239593f, -0.576354682f, -0.558531046f,
	-0.540766299f, -0.523058295f, -0.50540477f, -0.487803608f, -0.470252663f, -0.452749878f, -0.435293198f, -0.417880654f,
	-0.400510222f, -0.383179963f, -0.365888f, -0.348632425f, -0.331411391f, -0.314223051f, -0.297065586f, -0.279937238f,
	-0.262836218f, -0.245760784f, -0.228709206f, -0.211679757f, -0.194670752f, -0.177680492f, -0.160707325f, -0.143749565f,
	-0.126805589f, -0.10987372f, -0.0929523557f, -0.0760398582f, -0.0591346025f, -0.0422349833f, -0.0253393836f, -0.0084461933f,
	0.0084461933f, 0.0253393836f, 0.0422349833f, 0.0591346025f, 0.0760398582f, 0.0929523557f, 0.10987372f, 0.126805589f,
	0.143749565f, 0.160707325f, 0.177680492f, 0.194670752f, 0.211679757f, 0.228709206f, 0.245760784f, 0.262836218f,
	0.279937238f, 0.297065586f, 0.314223051f, 0.331411391f, 0.348632425f, 0.365888f, 0.383179963f, 0.400510222f,
	0.417880654f, 0.435293198f, 0.452749878f, 0.470252663f, 0.487803608f, 0.50540477f, 0.523058295f, 0.540766299f,
	0.558531046f, 0.576354682f, 0.594239593f, 0.612188101f, 0.630202591f, 0.648285508f, 0.666439414f, 0.684666753f,
	0.702970266f, 0.721352637f, 0.739816606f, 0.758365035f, 0.777000844f, 0.795727015f, 0.814546704f, 0.833463013f,
	0.852479279f, 0.871598899f, 0.890825272f, 0.910162032f, 0.929612935f, 0.949181795f, 0.968872607f, 0.988689363f,
	1.00863647f, 1.02871823f, 1.04893923f, 1.06930423f, 1.08981812f, 1.11048603f, 1.1313132f, 1.15230536f,
	1.17346823f, 1.19480765f, 1.21632993f, 1.23804176f, 1.25994992f, 1.28206146f, 1.30438399f, 1.32692528f,
	1.34969366f, 1.37269759f, 1.39594638f, 1.41944933f, 1.44321656f, 1.46725869f, 1.49158704f, 1.51621318f,
	1.54114962f, 1.56640983f, 1.59200752f, 1.61795783f, 1.6442765f, 1.67098033f, 1.69808745f, 1.72561693f,
	1.75358939f, 1.78202689f, 1.81095314f, 1.8403933f, 1.87037516f, 1.90092802f, 1.9320842f, 1.96387839f,
	1.9963485f, 2.02953577f, 2.06348515f, 2.09824657f, 2.13387418f, 2.17042828f, 2.20797539f, 2.2465899f,
	2.28635454f, 2.32736182f, 2.36971712f, 2.41353869f, 2.4589622f, 2.50614262f, 2.55525947f, 2.60652137f,
	2.66017389f, 2.71650767f, 2.77587056f, 2.83868575f, 2.90547299f, 2.97688222f, 3.05374193f, 3.13713264f,
	3.22850013f, 3.32984853f, 3.44407177f, 3.57558799f, 3.73166633f, 3.92563772f, 4.18659544f, 4.60353565f,
};

constant uint ingot_tqhb_signs[16] = {
	0x7b1dcdafu, 0xe220a839u, 0xa1b965f4u, 0x6e789e6au, 0x8009454fu, 0x06c45d18u, 0x724c81ecu, 0xf88bb8a8u,
	0x51a8749bu, 0x1b39896au, 0x747ea2eau, 0x53cb9f0cu, 0x1f4532e1u, 0x2c829abeu, 0xc916ab3cu, 0xc584133au,
};

#endif
#line 8 "tqhb.h"

// The codebook of 5, 6 or 8 bits.
INGOT_FUNC constant float* ingot_tqhb_levels(uint bits) {
    if (bits == 5u) {
        return ingot_tqhb_levels_5;
    }
    return bits == 6u ? ingot_tqhb_levels_6 : ingot_tqhb_levels_8;
}

// What a level is multiplied with: the norm over the square root of the dimension, or over the factor.
INGOT_FUNC float ingot_tqhb_scale(float norm, float divisor) { return norm / divisor; }

// The value of a code. Codes beyond the codebook count as the last one.
INGOT_FUNC float ingot_tqhb_value(constant float* levels, uint bits, uchar code, float scale) {
    return levels[min(uint(code), (1u << bits) - 1u)] * scale;
}

#endif
#line 8 "attn_precise.h"

// Shapes, strides in elements: (batch, head, row). NQ and NK are numbers of tiles, *_aligned of whole ones, *_rem the rows left.
struct ingot_attn_params {
    int B;
    int H;
    int D;
    int qL;
    int kL;
    int gqa_factor;
    float scale;
    float softcap;
    int NQ;
    int NK;
    int NQ_aligned;
    int NK_aligned;
    int qL_rem;
    int kL_rem;
    int qL_off; // position of query row 0 among the keys
    int pad;
    long Q_strides[3];
    long K_strides[3];
    long V_strides[3];
    long O_strides[3];
};

struct ingot_attn_mask_params {
    long M_strides[3];
};

struct ingot_attn_precise_params {
    int window;
    int codebook_bits;
    float divisor; // of norms: sqrt(D), or the factor of D = 512
    int norms_per_pos;
    long n_strides[3];
};

constant bool ingot_align_q [[function_constant(200)]];     // qL is whole tiles
constant bool ingot_align_k [[function_constant(201)]];     // kL is whole tiles
constant bool ingot_has_mask [[function_constant(300)]];    // an additive mask
constant bool ingot_do_causal [[function_constant(301)]];   // keys up to the row's position
constant bool ingot_has_blk [[function_constant(303)]];     // the mask's tiles are classified
constant bool ingot_has_window [[function_constant(310)]];  // the last `window` of these
constant bool ingot_has_softcap [[function_constant(311)]]; // softcap tanh(score / softcap)
constant bool ingot_has_sinks [[function_constant(312)]];   // a weight without a value for each head

// Whether the row at position pos among the keys sees key.
INGOT_FUNC bool ingot_precise_sees(long pos, long key, int window) {
    if (ingot_do_causal && key > pos) {
        return false;
    }
    return !ingot_has_window || pos - key < long(window);
}

// The exponent of a score: to base 2 or e.
template <bool EXP2>
INGOT_FUNC float ingot_precise_exponent(float dot, constant ingot_attn_params& p) {
    if (ingot_has_softcap) {
        float capped = p.softcap * precise::tanh(dot * p.scale / p.softcap);
        return EXP2 ? capped * M_LOG2E_F : capped;
    }
    return EXP2 ? dot * (p.scale * M_LOG2E_F) : dot * p.scale;
}

template <bool EXP2>
INGOT_FUNC float ingot_precise_exp(float x) {
    return EXP2 ? precise::exp2(x) : precise::exp(x);
}

// Two numbers of V from element `at` on, widened. Norms of codes are at `norm`.
INGOT_FUNC float2 ingot_precise_v2(device const float* v, ulong at, device const float*, ulong, constant ingot_attn_precise_params&) {
    return *(device const float2*)(v + at);
}
INGOT_FUNC float2 ingot_precise_v2(device const half* v, ulong at, device const float*, ulong, constant ingot_attn_precise_params&) {
    return float2(*(device const half2*)(v + at));
}
INGOT_FUNC float2 ingot_precise_v2(device const uchar* v, ulong at, device const float* norms, ulong norm,
                                   constant ingot_attn_precise_params& p) {
    uint bits = uint(p.codebook_bits);
    uchar2 code = *(device const uchar2*)(v + at);
    constant float* levels = ingot_tqhb_levels(bits);
    float scale = ingot_tqhb_scale(norms[norm], p.divisor);
    return float2(ingot_tqhb_value(levels, bits, code.x, scale), ingot_tqhb_value(levels, bits, code.y, scale));
}

// The row and the first of the two columns of a lane's elements in an 8 x 8 simdgroup matrix.
INGOT_FUNC uint ingot_cell_row(uint lane) { return ((lane / 4u) & 4u) + (lane / 2u) % 4u; }
INGOT_FUNC uint ingot_cell_column(uint lane) { return ((lane / 4u) & 2u) * 2u + lane % 2u * 2u; }

#endif
#line 4 "flash_attn_precise.metal"

#define INGOT_PRECISE_BQ 32u // query rows of a threadgroup: 8 for each of 4 simdgroups
#define INGOT_PRECISE_BK 16u // keys of a tile

// A simdgroup has its 8 rows of Q and their sums in registers, as 8 x 8 matrices; tiles of K and V go through threadgroup
// memory, with zeros for keys from kL on, which are not read. Tiles of keys start at multiples of 16, so that a row's result
// does not depend on how the rows are cut into calls.
template <uint D, typename VT>
INGOT_FUNC void ingot_attn_precise(device const half* q, device const half* k, device const VT* v, device float* o,
                                   constant ingot_attn_params& p, constant ingot_attn_mask_params& mp, device const half* mask,
                                   device const uchar* blk, constant ingot_attn_precise_params& pp, device const float* norms,
                                   device const float* sinks, threadgroup half* ks, threadgroup float* vs, uint3 group,
                                   uint thread_index, uint simdgroup, uint lane) {
    const uint threads = 128u;
    const uint pairs = D / 2u;
    const uint BQ = INGOT_PRECISE_BQ;
    const uint BK = INGOT_PRECISE_BK;
    uint qL = uint(p.qL);
    uint kL = uint(p.kL);
    uint head = group.y;
    uint head_kv = head / uint(p.gqa_factor);
    uint t0 = group.x * BQ;
    q += long(group.z) * p.Q_strides[0] + long(head) * p.Q_strides[1];
    k += long(group.z) * p.K_strides[0] + long(head_kv) * p.K_strides[1];
    v += long(group.z) * p.V_strides[0] + long(head_kv) * p.V_strides[1];
    o += long(group.z) * p.O_strides[0] + long(head) * p.O_strides[1];
    ulong norm0 = ulong(long(group.z) * pp.n_strides[0] + long(head_kv) * pp.n_strides[1]);
    if (ingot_has_mask) {
        mask += long(group.z) * mp.M_strides[0] + long(head) * mp.M_strides[1];
    }

    // Q goes to registers through the memory of V.
    threadgroup half* qs = (threadgroup half*)vs;
    for (uint i = thread_index; i < BQ * pairs; i += threads) {
        uint row = i / pairs;
        half2 x = half2(0.0h);
        if (ingot_align_q || t0 + row < qL) {
            x = *(device const half2*)(q + long(t0 + row) * p.Q_strides[2] + long(i % pairs * 2u));
        }
        ((threadgroup half2*)qs)[i] = x;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_half8x8 rows[D / 8u];
    simdgroup_float8x8 sums[D / 8u];
#pragma unroll
    for (uint d = 0u; d < D / 8u; d++) {
        simdgroup_load(rows[d], qs + simdgroup * 8u * D + d * 8u, D);
        sums[d] = make_filled_simdgroup_matrix<float, 8>(0.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint column = ingot_cell_column(lane);
    uint t = t0 + simdgroup * 8u + ingot_cell_row(lane);
    bool row_live = ingot_align_q || t < qL;
    long pos = long(p.qL_off) + long(t);
    uint first = 0u;
    uint end = uint(p.NK);
    if (ingot_do_causal) {
        uint last = min(t0 + BQ, qL) - 1u;
        end = uint(min(long(end), (long(p.qL_off) + long(last)) / long(BK) + 1l));
    }
    if (ingot_has_window && long(p.qL_off) + long(t0) >= long(pp.window)) {
        first = uint((long(p.qL_off) + long(t0) - long(pp.window) + 1l) / long(BK));
    }
    float most = -FLT_MAX;
    float weight = 0.0f;
    for (uint tile = first; tile < end; tile++) {
        uint kind = 1u;
        if (ingot_has_blk) {
            kind = uint(blk[ulong(group.x) * ulong(p.NK) + ulong(tile)]);
            if (kind == 0u) {
                continue;
            }
        }
        for (uint i = thread_index; i < BK * pairs; i += threads) {
            uint key = tile * BK + i / pairs;
            long at = long(i % pairs * 2u);
            half2 a = half2(0.0h);
            float2 b = float2(0.0f);
            if (ingot_align_k || key < kL) {
                a = *(device const half2*)(k + long(key) * p.K_strides[2] + at);
                b = ingot_precise_v2(v, ulong(long(key) * p.V_strides[2] + at), norms, norm0 + ulong(key), pp);
            }
            ((threadgroup half2*)ks)[i] = a;
            ((threadgroup float2*)vs)[i] = b;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        simdgroup_float8x8 scores[2];
        float2 exponents[2];
        bool2 seen[2];
        float most_now = most;
#pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            scores[j] = make_filled_simdgroup_matrix<float, 8>(0.0f);
#pragma unroll
            for (uint d = 0u; d < D / 8u; d++) {
                simdgroup_half8x8 keys;
                simdgroup_load(keys, ks + j * 8u * D + d * 8u, D, ulong2(0), true);
                simdgroup_multiply_accumulate(scores[j], rows[d], keys, scores[j]);
            }
            float2 dots = scores[j].thread_elements();
#pragma unroll
            for (uint e = 0u; e < 2u; e++) {
                uint key = tile * BK + j * 8u + column + e;
                bool sees = row_live && (ingot_align_k || key < kL) && ingot_precise_sees(pos, long(key), pp.window);
                float x = ingot_precise_exponent<true>(dots[e], p);
                if (ingot_has_mask && sees && kind != 2u) {
                    x += float(mask[long(t) * mp.M_strides[2] + long(key)]) * M_LOG2E_F;
                }
                exponents[j][e] = x;
                seen[j][e] = sees;
                most_now = sees ? fmax(most_now, x) : most_now;
            }
        }
        most_now = fmax(most_now, simd_shuffle_xor(most_now, ushort(1)));
        most_now = fmax(most_now, simd_shuffle_xor(most_now, ushort(8)));
        float keep = ingot_precise_exp<true>(most - most_now);
        most = most_now;
        float part = 0.0f;
#pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            float2 w;
#pragma unroll
            for (uint e = 0u; e < 2u; e++) {
                w[e] = seen[j][e] ? ingot_precise_exp<true>(exponents[j][e] - most) : 0.0f;
                part += w[e];
            }
            scores[j].thread_elements() = w;
        }
        part += simd_shuffle_xor(part, ushort(1));
        part += simd_shuffle_xor(part, ushort(8));
        weight = fma(weight, keep, part);
#pragma unroll
        for (uint d = 0u; d < D / 8u; d++) {
            sums[d].thread_elements() *= keep;
#pragma unroll
            for (uint j = 0u; j < 2u; j++) {
                simdgroup_float8x8 values;
                simdgroup_load(values, vs + j * 8u * D + d * 8u, D);
                simdgroup_multiply_accumulate(sums[d], scores[j], values, sums[d]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    float keep = 1.0f;
    if (ingot_has_sinks) {
        float sink = sinks[head] * M_LOG2E_F;
        float most_now = fmax(most, sink);
        keep = ingot_precise_exp<true>(most - most_now);
        weight = fma(weight, keep, ingot_precise_exp<true>(sink - most_now));
    }
    // No key seen: weight is exactly 0. A NaN weight is not, and stays visible.
    float factor = weight == 0.0f ? 0.0f : keep / weight;
    if (row_live) {
#pragma unroll
        for (uint d = 0u; d < D / 8u; d++) {
            *(device float2*)(o + long(t) * p.O_strides[2] + long(d * 8u + column)) = sums[d].thread_elements() * factor;
        }
    }
}

// o = softmax(scale q k^T + mask) v, scores and weights to base 2.
//
// Slots: 0 q f16 [B, H, qL, D], 1 k f16 [B, Hkv, capacity, D], 2 v f32 [B, Hkv, kL, D] or f16 as k, 3 o f32 as q,
//        4 parameters, 5 strides of the mask, 6 mask f16 [qL, kL] or [B, H, qL, kL], 7 u8 [NQ, NK]: what is in the mask's
//        tiles, 8 sinks f32 [H], 9 more parameters. 6 is read with constant 300,
//        7 with 303, 8 with 312.
// Geometry: ceil(qL / 32) x H x B threadgroups of 32 x 4 threads. q, k, v and o start at a multiple of 8 bytes.
// Threadgroup memory: 96 D bytes, static.
template <uint D, typename VT>
kernel void flash_attn_prefill_precise(device const half* q [[buffer(0)]],
                                       device const half* k [[buffer(1)]],
                                       device const VT* v [[buffer(2)]],
                                       device float* o [[buffer(3)]],
                                       constant ingot_attn_params& p [[buffer(4)]],
                                       constant ingot_attn_mask_params& mp [[buffer(5)]],
                                       device const half* mask [[buffer(6)]],
                                       device const uchar* blk [[buffer(7)]],
                                       device const float* sinks [[buffer(8)]],
                                       constant ingot_attn_precise_params& pp [[buffer(9)]],
                                       uint3 group [[threadgroup_position_in_grid]],
                                       uint thread_index [[thread_index_in_threadgroup]],
                                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                                       uint lane [[thread_index_in_simdgroup]]) {
    threadgroup half ks[INGOT_PRECISE_BK * D];
    threadgroup float vs[INGOT_PRECISE_BK * D];
    ingot_attn_precise<D, VT>(q, k, v, o, p, mp, mask, blk, pp, nullptr, sinks, ks, vs, group, thread_index, simdgroup, lane);
}

// The same with V as codes, which are dequantised on the way to threadgroup memory.
//
// Slots: those above, with 2 v u8 [B, Hkv, capacity, D] and 10 norms f32 [B, Hkv, capacity].
// Geometry: as above. Threadgroup memory: 96 D bytes, static.
template <uint D>
kernel void flash_attn_prefill_precise_codes(device const half* q [[buffer(0)]],
                                             device const half* k [[buffer(1)]],
                                             device const uchar* v [[buffer(2)]],
                                             device float* o [[buffer(3)]],
                                             constant ingot_attn_params& p [[buffer(4)]],
                                             constant ingot_attn_mask_params& mp [[buffer(5)]],
                                             device const half* mask [[buffer(6)]],
                                             device const uchar* blk [[buffer(7)]],
                                             device const float* sinks [[buffer(8)]],
                                             constant ingot_attn_precise_params& pp [[buffer(9)]],
                                             device const float* norms [[buffer(10)]],
                                             uint3 group [[threadgroup_position_in_grid]],
                                             uint thread_index [[thread_index_in_threadgroup]],
                                             uint simdgroup [[simdgroup_index_in_threadgroup]],
                                             uint lane [[thread_index_in_simdgroup]]) {
    threadgroup half ks[INGOT_PRECISE_BK * D];
    threadgroup float vs[INGOT_PRECISE_BK * D];
    ingot_attn_precise<D, uchar>(q, k, v, o, p, mp, mask, blk, pp, norms, sinks, ks, vs, group, thread_index, simdgroup, lane);
}

typedef decltype(flash_attn_prefill_precise<64, float>) precise_f32;
typedef decltype(flash_attn_prefill_precise<64, half>) precise_f16;
typedef decltype(flash_attn_prefill_precise_codes<64>) precise_codes;

template [[host_name("flash_attn_prefill_precise_d64_v32")]] kernel precise_f32 flash_attn_prefill_precise<64, float>;
template [[host_name("flash_attn_prefill_precise_d128_v32")]] kernel precise_f32 flash_attn_prefill_precise<128, float>;
template [[host_name("flash_attn_prefill_precise_d256_v32")]] kernel precise_f32 flash_attn_prefill_precise<256, float>;
template [[host_name("flash_attn_prefill_precise_d64_v16")]] kernel precise_f16 flash_attn_prefill_precise<64, half>;
template [[host_name("flash_attn_prefill_precise_d128_v16")]] kernel precise_f16 flash_attn_prefill_precise<128, half>;
template [[host_name("flash_attn_prefill_precise_d256_v16")]] kernel precise_f16 flash_attn_prefill_precise<256, half>;
template [[host_name("flash_attn_prefill_precise_d64_vcodes")]] kernel precise_codes flash_attn_prefill_precise_codes<64>;
template [[host_name("flash_attn_prefill_precise_d128_vcodes")]] kernel precise_codes flash_attn_prefill_precise_codes<128>;
template [[host_name("flash_attn_prefill_precise_d256_vcodes")]] kernel precise_codes flash_attn_prefill_precise_codes<256>;
#line 1 "flash_attn_precise_d512.metal"
// Prefill attention with float16 queries and keys and everything after in float32, for heads of 512, from a cache.

#line 4 "flash_attn_precise_d512.metal"

#define INGOT_PRECISE512_Q 8u  // query rows of a threadgroup
#define INGOT_PRECISE512_C 64u // keys of a chunk: 8 for each of 8 simdgroups

// Eight rows are too few to give each simdgroup its own, and their sums too many for one: a simdgroup computes the scores of 8 keys
// of a chunk, the weights of one row, and 64 columns of the sums. A block of 8 keys that ends beyond kL goes through the simdgroup's own 64 halves of scratch, with zeros; each lane loads its own
// elements of V.
template <typename VT>
INGOT_FUNC void ingot_attn_precise512(device const half* q, device const half* k, device const VT* v, device float* o,
                                      constant ingot_attn_params& p, constant ingot_attn_precise_params& pp,
                                      device const float* norms, device const float* sinks, threadgroup half* qs,
                                      threadgroup float* ss, threadgroup float* keeps, threadgroup half* scratch, uint3 group,
                                      uint thread_index, uint simdgroup, uint lane) {
    const uint D = 512u;
    const uint C = INGOT_PRECISE512_C;
    uint qL = uint(p.qL);
    uint kL = uint(p.kL);
    uint head = group.y;
    uint head_kv = head / uint(p.gqa_factor);
    uint t0 = group.x * INGOT_PRECISE512_Q;
    q += long(group.z) * p.Q_strides[0] + long(head) * p.Q_strides[1];
    k += long(group.z) * p.K_strides[0] + long(head_kv) * p.K_strides[1];
    v += long(group.z) * p.V_strides[0] + long(head_kv) * p.V_strides[1];
    o += long(group.z) * p.O_strides[0] + long(head) * p.O_strides[1];
    ulong norm0 = ulong(long(group.z) * pp.n_strides[0] + long(head_kv) * pp.n_strides[1]);
    scratch += simdgroup * 64u;

    for (uint i = thread_index; i < INGOT_PRECISE512_Q * D / 2u; i += 256u) {
        uint row = i / (D / 2u);
        half2 x = half2(0.0h);
        if (ingot_align_q || t0 + row < qL) {
            x = *(device const half2*)(q + long(t0 + row) * p.Q_strides[2] + long(i % (D / 2u) * 2u));
        }
        ((threadgroup half2*)qs)[i] = x;
    }
    simdgroup_float8x8 sums[8];
#pragma unroll
    for (uint j = 0u; j < 8u; j++) {
        sums[j] = make_filled_simdgroup_matrix<float, 8>(0.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint cell_row = ingot_cell_row(lane);
    uint cell_column = ingot_cell_column(lane);
    long pos = long(p.qL_off) + long(t0 + simdgroup); // of the row whose weights are this simdgroup's
    bool row_live = ingot_align_q || t0 + simdgroup < qL;
    uint first = 0u;
    uint end = uint(p.NK);
    if (ingot_do_causal) {
        uint last = min(t0 + INGOT_PRECISE512_Q, qL) - 1u;
        end = uint(min(long(end), (long(p.qL_off) + long(last)) / long(C) + 1l));
    }
    if (ingot_has_window && long(p.qL_off) + long(t0) >= long(pp.window)) {
        first = uint((long(p.qL_off) + long(t0) - long(pp.window) + 1l) / long(C));
    }
    float most = -FLT_MAX;
    float weight = 0.0f;
    for (uint chunk = first; chunk < end; chunk++) {
        uint key0 = chunk * C + simdgroup * 8u;
        simdgroup_float8x8 scores = make_filled_simdgroup_matrix<float, 8>(0.0f);
        if (ingot_align_k || key0 + 8u <= kL) {
            device const half* from = k + long(key0) * p.K_strides[2];
            for (uint d = 0u; d < D; d += 8u) {
                simdgroup_half8x8 rows;
                simdgroup_half8x8 keys;
                simdgroup_load(rows, qs + d, D);
                simdgroup_load(keys, from + d, ulong(p.K_strides[2]), ulong2(0), true);
                simdgroup_multiply_accumulate(scores, rows, keys, scores);
            }
        } else if (key0 < kL) {
            for (uint d = 0u; d < D; d += 8u) {
                uint key = key0 + cell_row;
                half2 x = half2(0.0h);
                if (key < kL) {
                    x = *(device const half2*)(k + long(key) * p.K_strides[2] + long(d + cell_column));
                }
                *(threadgroup half2*)(scratch + cell_row * 8u + cell_column) = x;
                simdgroup_barrier(mem_flags::mem_threadgroup);
                simdgroup_half8x8 rows;
                simdgroup_half8x8 keys;
                simdgroup_load(rows, qs + d, D);
                simdgroup_load(keys, scratch, 8, ulong2(0), true);
                simdgroup_multiply_accumulate(scores, rows, keys, scores);
                simdgroup_barrier(mem_flags::mem_threadgroup);
            }
        }
        simdgroup_store(scores, ss + simdgroup * 8u, C);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        float2 exponents;
        bool2 seen;
        float most_now = most;
#pragma unroll
        for (uint e = 0u; e < 2u; e++) {
            uint key = chunk * C + lane * 2u + e;
            exponents[e] = ingot_precise_exponent<false>(ss[simdgroup * C + lane * 2u + e], p);
            seen[e] = row_live && (ingot_align_k || key < kL) && ingot_precise_sees(pos, long(key), pp.window);
            most_now = seen[e] ? fmax(most_now, exponents[e]) : most_now;
        }
        most_now = simd_max(most_now);
        float keep = ingot_precise_exp<false>(most - most_now);
        most = most_now;
        float part = 0.0f;
#pragma unroll
        for (uint e = 0u; e < 2u; e++) {
            float w = seen[e] ? ingot_precise_exp<false>(exponents[e] - most) : 0.0f;
            ss[simdgroup * C + lane * 2u + e] = w;
            part += w;
        }
        weight = fma(weight, keep, simd_sum(part));
        if (lane == 0u) {
            keeps[simdgroup] = keep;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        keep = keeps[cell_row];
#pragma unroll
        for (uint j = 0u; j < 8u; j++) {
            sums[j].thread_elements() *= keep;
        }
        for (uint b = 0u; b < C / 8u; b++) {
            uint base = chunk * C + b * 8u;
            if (!ingot_align_k && base >= kL) {
                break;
            }
            uint key = base + cell_row;
            bool live = ingot_align_k || key < kL;
            simdgroup_float8x8 weights;
            simdgroup_load(weights, ss + b * 8u, C);
#pragma unroll
            for (uint j = 0u; j < 8u; j++) {
                uint d = simdgroup * 64u + j * 8u + cell_column;
                float2 x = float2(0.0f);
                if (live) {
                    x = ingot_precise_v2(v, ulong(long(key) * p.V_strides[2] + long(d)), norms,
                                         norm0 + ulong(key) * ulong(pp.norms_per_pos) + ulong(d / 256u), pp);
                }
                simdgroup_float8x8 values;
                values.thread_elements() = x;
                simdgroup_multiply_accumulate(sums[j], weights, values, sums[j]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    float keep = 1.0f;
    if (ingot_has_sinks) {
        float sink = sinks[head];
        float most_now = fmax(most, sink);
        keep = ingot_precise_exp<false>(most - most_now);
        weight = fma(weight, keep, ingot_precise_exp<false>(sink - most_now));
    }
    if (lane == 0u) {
        // No key seen: weight is exactly 0. A NaN weight is not, and stays visible.
        keeps[simdgroup] = weight == 0.0f ? 0.0f : keep / weight;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float factor = keeps[cell_row];
    uint t = t0 + cell_row;
    if (ingot_align_q || t < qL) {
#pragma unroll
        for (uint j = 0u; j < 8u; j++) {
            *(device float2*)(o + long(t) * p.O_strides[2] + long(simdgroup * 64u + j * 8u + cell_column)) =
                sums[j].thread_elements() * factor;
        }
    }
}

// o = softmax(scale q k^T) v, scores and weights to base e, keys up to the row's position with constant 301.
//
// Slots: 0 q f16 [B, H, qL, 512], 1 k f16 [B, Hkv, capacity, 512], 2 v f32 [B, Hkv, kL, 512] or f16 as k, 3 o f32 as q,
//        4 parameters, 8 sinks f32 [H], 9 more parameters. 8 is read with
//        constant 312.
// Geometry: ceil(qL / 8) x H x B threadgroups of 32 x 8 threads. q, k, v and o start at a multiple of 8 bytes.
// Threadgroup memory: 11,296 bytes, static.
template <typename VT>
kernel void flash_attn_prefill_precise512(device const half* q [[buffer(0)]],
                                          device const half* k [[buffer(1)]],
                                          device const VT* v [[buffer(2)]],
                                          device float* o [[buffer(3)]],
                                          constant ingot_attn_params& p [[buffer(4)]],
                                          device const float* sinks [[buffer(8)]],
                                          constant ingot_attn_precise_params& pp [[buffer(9)]],
                                          uint3 group [[threadgroup_position_in_grid]],
                                          uint thread_index [[thread_index_in_threadgroup]],
                                          uint simdgroup [[simdgroup_index_in_threadgroup]],
                                          uint lane [[thread_index_in_simdgroup]]) {
    threadgroup half qs[INGOT_PRECISE512_Q * 512u];
    threadgroup float ss[INGOT_PRECISE512_Q * INGOT_PRECISE512_C];
    threadgroup float keeps[8];
    threadgroup half scratch[8u * 64u];
    ingot_attn_precise512<VT>(q, k, v, o, p, pp, nullptr, sinks, qs, ss, keeps, scratch, group, thread_index, simdgroup, lane);
}

// The same with V as codes, which each lane dequantises as it loads them.
//
// Slots: those above, with 2 v u8 [B, Hkv, capacity, 512] and 10 norms f32 [B, Hkv, capacity, 2].
// Geometry: as above. Threadgroup memory: 11,296 bytes, static.
kernel void flash_attn_prefill_precise_d512_vcodes(device const half* q [[buffer(0)]],
                                                   device const half* k [[buffer(1)]],
                                                   device const uchar* v [[buffer(2)]],
                                                   device float* o [[buffer(3)]],
                                                   constant ingot_attn_params& p [[buffer(4)]],
                                                   device const float* sinks [[buffer(8)]],
                                                   constant ingot_attn_precise_params& pp [[buffer(9)]],
                                                   device const float* norms [[buffer(10)]],
                                                   uint3 group [[threadgroup_position_in_grid]],
                                                   uint thread_index [[thread_index_in_threadgroup]],
                                                   uint simdgroup [[simdgroup_index_in_threadgroup]],
                                                   uint lane [[thread_index_in_simdgroup]]) {
    threadgroup half qs[INGOT_PRECISE512_Q * 512u];
    threadgroup float ss[INGOT_PRECISE512_Q * INGOT_PRECISE512_C];
    threadgroup float keeps[8];
    threadgroup half scratch[8u * 64u];
    ingot_attn_precise512<uchar>(q, k, v, o, p, pp, norms, sinks, qs, ss, keeps, scratch, group, thread_index, simdgroup, lane);
}

typedef decltype(flash_attn_prefill_precise512<float>) precise512_f32;
typedef decltype(flash_attn_prefill_precise512<half>) precise512_f16;

template [[host_name("flash_attn_prefill_precise_d512_v32")]] kernel precise512_f32 flash_attn_prefill_precise512<float>;
template [[host_name("flash_attn_prefill_precise_d512_v16")]] kernel precise512_f16 flash_attn_prefill_precise512<half>;
#line 1 "flash_attn_rows.metal"
// Flash attention by query rows.

#line 4 "flash_attn_rows.metal"
#line 1 "attn_rows.h"
// Attention of query rows over a key-value cache, each row on its own lanes of a simdgroup.

#ifndef INGOT_ATTN_ROWS_H
#define INGOT_ATTN_ROWS_H

#line 7 "attn_rows.h"
#line 8 "attn_rows.h"

// D: head dimension. R: lanes of a query row, so 32 / R rows per simdgroup. G: simdgroups of a full threadgroup. KV: four
// elements of a cache, float4, half4 or ushort4 for bf16.
// A lane owns the float4s dl, dl + R, ... of the head dimension, dl = lane % R.
//
// The simdgroup walks the keys that any of its rows sees, so control flow is uniform around the shuffles; a row takes part
// only in its own keys, which makes what lies outside its window irrelevant, NaN included.
// Online softmax: Milakov and Gimelshein, arXiv:1805.02867; FlashAttention, Dao et al., arXiv:2205.14135.
template <uint D, uint R, uint G, typename KV>
INGOT_FUNC void ingot_attn_rows(device const float4* q, device const KV* k, device const KV* v, device float* o,
                                uint tq, uint tkv, uint heads, uint heads_kv, uint window, float scale, uint q_pos,
                                uint kv_pos, uint out_bf16, uint capacity, float softcap,
                                device const float* sinks, bool has_sinks, uint tile, uint batch_head, uint simdgroup,
                                uint lane) {
    const uint quads = D / 4u / R;
    const uint rows = 32u / R;
    ulong t0 = ulong(tile) * ulong(G * rows) + ulong(simdgroup * rows);
    if (t0 >= ulong(tq)) {
        return;
    }
    ulong last = t0 + ulong(rows - 1u);
    if (last >= ulong(tq)) {
        last = ulong(tq) - 1ul;
    }
    ulong t = t0 + ulong(lane / R);
    uint dl = lane % R;
    bool live = t <= last;
    uint batch = batch_head / heads;
    uint head = batch_head - batch * heads;
    uint head_kv = head / (heads / heads_kv);
    if (tkv > capacity) {
        tkv = capacity;
    }

    // Keys of this row, and of all rows of the simdgroup: both ends grow with the position.
    uint end = 0u;
    uint first = 0u;
    if (live) {
        end = ingot_attn_end(ulong(q_pos) + t, ulong(kv_pos), tkv);
        first = ingot_attn_first(ulong(q_pos) + t, ulong(kv_pos), window, end);
    }
    uint end_all = ingot_attn_end(ulong(q_pos) + last, ulong(kv_pos), tkv);
    uint first_all = ingot_attn_first(ulong(q_pos) + t0, ulong(kv_pos), window, end_all);

    ulong row = ((ulong(batch) * ulong(tq) + t) * ulong(heads) + ulong(head)) * ulong(D / 4u) + ulong(dl);
    float query[D / R];
    float sum[D / R];
#pragma unroll
    for (uint i = 0u; i < quads; i++) {
        float4 value = float4(0.0f);
        if (live) {
            value = q[row + ulong(i * R)];
        }
        query[4u * i] = value.x;
        query[4u * i + 1u] = value.y;
        query[4u * i + 2u] = value.z;
        query[4u * i + 3u] = value.w;
        sum[4u * i] = 0.0f;
        sum[4u * i + 1u] = 0.0f;
        sum[4u * i + 2u] = 0.0f;
        sum[4u * i + 3u] = 0.0f;
    }

    ulong stride = ulong(heads_kv) * ulong(D / 4u);
    ulong at = (ulong(batch) * ulong(capacity) + ulong(first_all)) * stride + ulong(head_kv) * ulong(D / 4u) + ulong(dl);
    float most = -FLT_MAX;
    float weight = 0.0f;
    for (uint key = first_all; key < end_all; key++) {
        float score = 0.0f;
#pragma unroll
        for (uint i = 0u; i < quads; i++) {
            float4 value = ingot_kv4(k[at + ulong(i * R)]);
            score = fma(query[4u * i], value.x, score);
            score = fma(query[4u * i + 1u], value.y, score);
            score = fma(query[4u * i + 2u], value.z, score);
            score = fma(query[4u * i + 3u], value.w, score);
        }
#pragma unroll
        for (uint m = R / 2u; m > 0u; m /= 2u) {
            score += simd_shuffle_xor(score, ushort(m));
        }
        if (key >= first && key < end) {
            score = ingot_softcap(score * scale, softcap);
            float most_now = fmax(most, score);
            float keep = precise::exp(most - most_now);
            float p = precise::exp(score - most_now);
            weight = fma(weight, keep, p);
            most = most_now;
#pragma unroll
            for (uint i = 0u; i < quads; i++) {
                float4 value = ingot_kv4(v[at + ulong(i * R)]);
                sum[4u * i] = fma(p, value.x, sum[4u * i] * keep);
                sum[4u * i + 1u] = fma(p, value.y, sum[4u * i + 1u] * keep);
                sum[4u * i + 2u] = fma(p, value.z, sum[4u * i + 2u] * keep);
                sum[4u * i + 3u] = fma(p, value.w, sum[4u * i + 3u] * keep);
            }
        }
        at += stride;
    }

    if (live) {
        if (has_sinks && weight != 0.0f) {
            float sink = sinks[head];
            float most_now = fmax(most, sink);
            float keep = precise::exp(most - most_now);
            weight = fma(weight, keep, precise::exp(sink - most_now));
#pragma unroll
            for (uint i = 0u; i < D / R; i++) {
                sum[i] *= keep;
            }
        }
        // No key seen: weight is exactly 0. A NaN weight is not, and stays visible.
        float inverse = weight == 0.0f ? 0.0f : 1.0f / weight;
        ulong out = row * 4ul;
#pragma unroll
        for (uint i = 0u; i < quads; i++) {
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                ingot_attn_store(o, out + ulong(i * R * 4u + j), sum[4u * i + j] * inverse, out_bf16);
            }
        }
    }
}

#endif
#line 5 "flash_attn_rows.metal"

// o[b, t, h] = softmax over the visible keys s of (scale * q[b, t, h] . k[b, s, h']) times v[b, s, h'],
// h' = h / (H / Hkv). The query is at position q_pos + t, key s at kv_pos + s; it is visible if it is among the first Tkv,
// not after the query, and, with window > 0, among the last `window` positions up to the query's own. A query that sees
// nothing gets zeros.
//
// Tkv, q_pos and kv_pos are read on the device; Tkv is limited to capacity, which is also the stride of a batch in K and V.
//
// Kernels: flash_attn_rows_h{D}_r{R}_g{G} for caches of f32, with _f16 or _bf16 behind for the others. D is the head
// dimension, R the lanes of a query row, G the simdgroups of a full threadgroup.
//
// Slots: 0 q f32 [B, Tq, H, D], 1 k f32, f16 or bf16 [B, capacity, Hkv, D], 2 v as k, 3 o f32 or bf16 [B, Tq, H, D] (f32:
//        may be q itself), 4 B, 5 Tq, 6 Tkv u32 (device), 7 H, 8 Hkv (divides H), 9 window (0: all), 10 scale f32,
//        11 q_pos u32 (device), 12 kv_pos u32 (device), 13 out_bf16, 14 capacity in positions.
// Geometry: ceil(Tq / rows) x (B H) threadgroups, rows = G 32 / R; 32 / R query rows per simdgroup, G simdgroups, or as few
//           as cover Tq if that is less than rows. q, k and v start at a multiple of 16 bytes.
// Threadgroup memory: none.
template <uint D, uint R, uint G, typename KV>
kernel void flash_attn_rows(device const float4* q [[buffer(0)]],
                            device const KV* k [[buffer(1)]],
                            device const KV* v [[buffer(2)]],
                            device float* o [[buffer(3)]],
                            constant uint& B [[buffer(4)]],
                            constant uint& Tq [[buffer(5)]],
                            device const uint* Tkv [[buffer(6)]],
                            constant uint& H [[buffer(7)]],
                            constant uint& Hkv [[buffer(8)]],
                            constant uint& window [[buffer(9)]],
                            constant float& scale [[buffer(10)]],
                            device const uint* q_pos [[buffer(11)]],
                            device const uint* kv_pos [[buffer(12)]],
                            constant uint& out_bf16 [[buffer(13)]],
                            constant uint& capacity [[buffer(14)]],
                            uint2 tile [[threadgroup_position_in_grid]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]]) {
    if (ulong(tile.y) >= ulong(B) * ulong(H)) {
        return;
    }
    ingot_attn_rows<D, R, G, KV>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], out_bf16, capacity,
                                 0.0f, (device const float*)q, false, tile.x, tile.y, simdgroup, lane);
}

// flash_attn_rows with a cap on the scores and attention sinks: each score is capped, softcap tanh(score / softcap), if
// softcap is positive and finite, and e^sinks[h] is added to the denominator of the softmax of every query that sees a key.
//
// Kernels: flash_attn_rows_h{D}_r{R}_g{G}_opt, _f16_opt and _bf16_opt.
//
// Slots: those of flash_attn_rows; 15 softcap f32, 16 sinks f32 [H] (bound but not read if has_sinks is 0), 17 has_sinks.
// Geometry: that of flash_attn_rows.
// Threadgroup memory: none.
// Sources: softcap, Gemma 2 report, arXiv:2408.00118; sinks, Xiao et al., arXiv:2309.17453.
template <uint D, uint R, uint G, typename KV>
kernel void flash_attn_rows_opt(device const float4* q [[buffer(0)]],
                                device const KV* k [[buffer(1)]],
                                device const KV* v [[buffer(2)]],
                                device float* o [[buffer(3)]],
                                constant uint& B [[buffer(4)]],
                                constant uint& Tq [[buffer(5)]],
                                device const uint* Tkv [[buffer(6)]],
                                constant uint& H [[buffer(7)]],
                                constant uint& Hkv [[buffer(8)]],
                                constant uint& window [[buffer(9)]],
                                constant float& scale [[buffer(10)]],
                                device const uint* q_pos [[buffer(11)]],
                                device const uint* kv_pos [[buffer(12)]],
                                constant uint& out_bf16 [[buffer(13)]],
                                constant uint& capacity [[buffer(14)]],
                                constant float& softcap [[buffer(15)]],
                                device const float* sinks [[buffer(16)]],
                                constant uint& has_sinks [[buffer(17)]],
                                uint2 tile [[threadgroup_position_in_grid]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]]) {
    if (ulong(tile.y) >= ulong(B) * ulong(H)) {
        return;
    }
    ingot_attn_rows<D, R, G, KV>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], out_bf16, capacity,
                                 softcap, sinks, has_sinks != 0u, tile.x, tile.y, simdgroup, lane);
}

typedef decltype(flash_attn_rows<128, 8, 8, float4>) rows_f32;
typedef decltype(flash_attn_rows<128, 8, 8, half4>) rows_f16;
typedef decltype(flash_attn_rows<128, 8, 8, ushort4>) rows_bf16;
typedef decltype(flash_attn_rows_opt<128, 8, 8, float4>) rows_f32_opt;
typedef decltype(flash_attn_rows_opt<128, 8, 8, half4>) rows_f16_opt;
typedef decltype(flash_attn_rows_opt<128, 8, 8, ushort4>) rows_bf16_opt;

// What is launched unless another setting is asked for, every cache, and with fewer simdgroups for devices that do not take
// as many threads:
template [[host_name("flash_attn_rows_h8_r1_g8")]] kernel rows_f32 flash_attn_rows<8, 1, 8, float4>;
template [[host_name("flash_attn_rows_h16_r2_g8")]] kernel rows_f32 flash_attn_rows<16, 2, 8, float4>;
template [[host_name("flash_attn_rows_h32_r4_g8")]] kernel rows_f32 flash_attn_rows<32, 4, 8, float4>;
template [[host_name("flash_attn_rows_h64_r8_g8")]] kernel rows_f32 flash_attn_rows<64, 8, 8, float4>;
template [[host_name("flash_attn_rows_h80_r4_g8")]] kernel rows_f32 flash_attn_rows<80, 4, 8, float4>;
template [[host_name("flash_attn_rows_h96_r8_g8")]] kernel rows_f32 flash_attn_rows<96, 8, 8, float4>;
template [[host_name("flash_attn_rows_h128_r8_g8")]] kernel rows_f32 flash_attn_rows<128, 8, 8, float4>;
template [[host_name("flash_attn_rows_h192_r16_g8")]] kernel rows_f32 flash_attn_rows<192, 16, 8, float4>;
template [[host_name("flash_attn_rows_h192_r16_g16")]] kernel rows_f32 flash_attn_rows<192, 16, 16, float4>;
template [[host_name("flash_attn_rows_h256_r16_g8")]] kernel rows_f32 flash_attn_rows<256, 16, 8, float4>;
template [[host_name("flash_attn_rows_h256_r16_g32")]] kernel rows_f32 flash_attn_rows<256, 16, 32, float4>;
template [[host_name("flash_attn_rows_h512_r32_g8")]] kernel rows_f32 flash_attn_rows<512, 32, 8, float4>;
template [[host_name("flash_attn_rows_h512_r32_g32")]] kernel rows_f32 flash_attn_rows<512, 32, 32, float4>;
template [[host_name("flash_attn_rows_h8_r1_g8_f16")]] kernel rows_f16 flash_attn_rows<8, 1, 8, half4>;
template [[host_name("flash_attn_rows_h16_r2_g8_f16")]] kernel rows_f16 flash_attn_rows<16, 2, 8, half4>;
template [[host_name("flash_attn_rows_h32_r4_g8_f16")]] kernel rows_f16 flash_attn_rows<32, 4, 8, half4>;
template [[host_name("flash_attn_rows_h64_r8_g8_f16")]] kernel rows_f16 flash_attn_rows<64, 8, 8, half4>;
template [[host_name("flash_attn_rows_h80_r4_g8_f16")]] kernel rows_f16 flash_attn_rows<80, 4, 8, half4>;
template [[host_name("flash_attn_rows_h96_r8_g8_f16")]] kernel rows_f16 flash_attn_rows<96, 8, 8, half4>;
template [[host_name("flash_attn_rows_h128_r8_g8_f16")]] kernel rows_f16 flash_attn_rows<128, 8, 8, half4>;
template [[host_name("flash_attn_rows_h192_r16_g8_f16")]] kernel rows_f16 flash_attn_rows<192, 16, 8, half4>;
template [[host_name("flash_attn_rows_h192_r16_g16_f16")]] kernel rows_f16 flash_attn_rows<192, 16, 16, half4>;
template [[host_name("flash_attn_rows_h256_r16_g8_f16")]] kernel rows_f16 flash_attn_rows<256, 16, 8, half4>;
template [[host_name("flash_attn_rows_h256_r16_g32_f16")]] kernel rows_f16 flash_attn_rows<256, 16, 32, half4>;
template [[host_name("flash_attn_rows_h512_r32_g8_f16")]] kernel rows_f16 flash_attn_rows<512, 32, 8, half4>;
template [[host_name("flash_attn_rows_h512_r32_g32_f16")]] kernel rows_f16 flash_attn_rows<512, 32, 32, half4>;
template [[host_name("flash_attn_rows_h8_r1_g8_bf16")]] kernel rows_bf16 flash_attn_rows<8, 1, 8, ushort4>;
template [[host_name("flash_attn_rows_h16_r2_g8_bf16")]] kernel rows_bf16 flash_attn_rows<16, 2, 8, ushort4>;
template [[host_name("flash_attn_rows_h32_r4_g8_bf16")]] kernel rows_bf16 flash_attn_rows<32, 4, 8, ushort4>;
template [[host_name("flash_attn_rows_h64_r8_g8_bf16")]] kernel rows_bf16 flash_attn_rows<64, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h80_r4_g8_bf16")]] kernel rows_bf16 flash_attn_rows<80, 4, 8, ushort4>;
template [[host_name("flash_attn_rows_h96_r8_g8_bf16")]] kernel rows_bf16 flash_attn_rows<96, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h128_r8_g8_bf16")]] kernel rows_bf16 flash_attn_rows<128, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h192_r16_g8_bf16")]] kernel rows_bf16 flash_attn_rows<192, 16, 8, ushort4>;
template [[host_name("flash_attn_rows_h192_r16_g16_bf16")]] kernel rows_bf16 flash_attn_rows<192, 16, 16, ushort4>;
template [[host_name("flash_attn_rows_h256_r16_g8_bf16")]] kernel rows_bf16 flash_attn_rows<256, 16, 8, ushort4>;
template [[host_name("flash_attn_rows_h256_r16_g32_bf16")]] kernel rows_bf16 flash_attn_rows<256, 16, 32, ushort4>;
template [[host_name("flash_attn_rows_h512_r32_g8_bf16")]] kernel rows_bf16 flash_attn_rows<512, 32, 8, ushort4>;
template [[host_name("flash_attn_rows_h512_r32_g32_bf16")]] kernel rows_bf16 flash_attn_rows<512, 32, 32, ushort4>;
template [[host_name("flash_attn_rows_h8_r1_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<8, 1, 8, float4>;
template [[host_name("flash_attn_rows_h16_r2_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<16, 2, 8, float4>;
template [[host_name("flash_attn_rows_h32_r4_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<32, 4, 8, float4>;
template [[host_name("flash_attn_rows_h64_r8_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<64, 8, 8, float4>;
template [[host_name("flash_attn_rows_h80_r4_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<80, 4, 8, float4>;
template [[host_name("flash_attn_rows_h96_r8_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<96, 8, 8, float4>;
template [[host_name("flash_attn_rows_h128_r8_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<128, 8, 8, float4>;
template [[host_name("flash_attn_rows_h192_r16_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<192, 16, 8, float4>;
template [[host_name("flash_attn_rows_h192_r16_g16_opt")]] kernel rows_f32_opt flash_attn_rows_opt<192, 16, 16, float4>;
template [[host_name("flash_attn_rows_h256_r16_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<256, 16, 8, float4>;
template [[host_name("flash_attn_rows_h256_r16_g32_opt")]] kernel rows_f32_opt flash_attn_rows_opt<256, 16, 32, float4>;
template [[host_name("flash_attn_rows_h512_r32_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<512, 32, 8, float4>;
template [[host_name("flash_attn_rows_h512_r32_g32_opt")]] kernel rows_f32_opt flash_attn_rows_opt<512, 32, 32, float4>;
template [[host_name("flash_attn_rows_h8_r1_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<8, 1, 8, half4>;
template [[host_name("flash_attn_rows_h16_r2_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<16, 2, 8, half4>;
template [[host_name("flash_attn_rows_h32_r4_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<32, 4, 8, half4>;
template [[host_name("flash_attn_rows_h64_r8_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<64, 8, 8, half4>;
template [[host_name("flash_attn_rows_h80_r4_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<80, 4, 8, half4>;
template [[host_name("flash_attn_rows_h96_r8_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<96, 8, 8, half4>;
template [[host_name("flash_attn_rows_h128_r8_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<128, 8, 8, half4>;
template [[host_name("flash_attn_rows_h192_r16_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<192, 16, 8, half4>;
template [[host_name("flash_attn_rows_h192_r16_g16_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<192, 16, 16, half4>;
template [[host_name("flash_attn_rows_h256_r16_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<256, 16, 8, half4>;
template [[host_name("flash_attn_rows_h256_r16_g32_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<256, 16, 32, half4>;
template [[host_name("flash_attn_rows_h512_r32_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<512, 32, 8, half4>;
template [[host_name("flash_attn_rows_h512_r32_g32_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<512, 32, 32, half4>;
template [[host_name("flash_attn_rows_h8_r1_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<8, 1, 8, ushort4>;
template [[host_name("flash_attn_rows_h16_r2_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<16, 2, 8, ushort4>;
template [[host_name("flash_attn_rows_h32_r4_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<32, 4, 8, ushort4>;
template [[host_name("flash_attn_rows_h64_r8_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<64, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h80_r4_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<80, 4, 8, ushort4>;
template [[host_name("flash_attn_rows_h96_r8_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<96, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h128_r8_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<128, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h192_r16_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<192, 16, 8, ushort4>;
template [[host_name("flash_attn_rows_h192_r16_g16_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<192, 16, 16, ushort4>;
template [[host_name("flash_attn_rows_h256_r16_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<256, 16, 8, ushort4>;
template [[host_name("flash_attn_rows_h256_r16_g32_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<256, 16, 32, ushort4>;
template [[host_name("flash_attn_rows_h512_r32_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<512, 32, 8, ushort4>;
template [[host_name("flash_attn_rows_h512_r32_g32_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<512, 32, 32, ushort4>;

// Other settings, for tuning:
template [[host_name("flash_attn_rows_h128_r8_g16")]] kernel rows_f32 flash_attn_rows<128, 8, 16, float4>;
template [[host_name("flash_attn_rows_h128_r8_g32")]] kernel rows_f32 flash_attn_rows<128, 8, 32, float4>;
template [[host_name("flash_attn_rows_h128_r16_g8")]] kernel rows_f32 flash_attn_rows<128, 16, 8, float4>;
template [[host_name("flash_attn_rows_h128_r16_g16")]] kernel rows_f32 flash_attn_rows<128, 16, 16, float4>;
template [[host_name("flash_attn_rows_h128_r16_g32")]] kernel rows_f32 flash_attn_rows<128, 16, 32, float4>;
template [[host_name("flash_attn_rows_h128_r32_g8")]] kernel rows_f32 flash_attn_rows<128, 32, 8, float4>;
template [[host_name("flash_attn_rows_h128_r32_g16")]] kernel rows_f32 flash_attn_rows<128, 32, 16, float4>;
template [[host_name("flash_attn_rows_h128_r32_g32")]] kernel rows_f32 flash_attn_rows<128, 32, 32, float4>;
template [[host_name("flash_attn_rows_h256_r8_g8")]] kernel rows_f32 flash_attn_rows<256, 8, 8, float4>;
template [[host_name("flash_attn_rows_h256_r8_g16")]] kernel rows_f32 flash_attn_rows<256, 8, 16, float4>;
template [[host_name("flash_attn_rows_h256_r8_g32")]] kernel rows_f32 flash_attn_rows<256, 8, 32, float4>;
template [[host_name("flash_attn_rows_h256_r16_g16")]] kernel rows_f32 flash_attn_rows<256, 16, 16, float4>;
template [[host_name("flash_attn_rows_h256_r32_g8")]] kernel rows_f32 flash_attn_rows<256, 32, 8, float4>;
template [[host_name("flash_attn_rows_h256_r32_g16")]] kernel rows_f32 flash_attn_rows<256, 32, 16, float4>;
template [[host_name("flash_attn_rows_h256_r32_g32")]] kernel rows_f32 flash_attn_rows<256, 32, 32, float4>;
template [[host_name("flash_attn_rows_h512_r8_g8")]] kernel rows_f32 flash_attn_rows<512, 8, 8, float4>;
template [[host_name("flash_attn_rows_h512_r8_g16")]] kernel rows_f32 flash_attn_rows<512, 8, 16, float4>;
template [[host_name("flash_attn_rows_h512_r8_g32")]] kernel rows_f32 flash_attn_rows<512, 8, 32, float4>;
template [[host_name("flash_attn_rows_h512_r16_g8")]] kernel rows_f32 flash_attn_rows<512, 16, 8, float4>;
template [[host_name("flash_attn_rows_h512_r16_g16")]] kernel rows_f32 flash_attn_rows<512, 16, 16, float4>;
template [[host_name("flash_attn_rows_h512_r16_g32")]] kernel rows_f32 flash_attn_rows<512, 16, 32, float4>;
template [[host_name("flash_attn_rows_h512_r32_g16")]] kernel rows_f32 flash_attn_rows<512, 32, 16, float4>;
#line 1 "flash_attn_tiled.metal"
// Flash attention by tiles of query rows and keys: the plain way, to compare flash_attn_rows with.

#line 4 "flash_attn_tiled.metal"
#line 5 "flash_attn_tiled.metal"

// A simdgroup takes BR query rows and walks the keys that any of them sees, BC at a time: scores of all pairs, then for each
// row the maximum so far and the weights, then the sums, of which a lane owns the columns lane, lane + 32, ... . Tiles of keys
// start at multiples of BC, so that a row's result does not depend on the others. A pair that is not seen has the weight
// -1, and its value is not read.
template <uint D, uint BR, uint BC>
INGOT_FUNC void ingot_attn_tiled(device const float4* q, device const float4* k, device const float* v, device float* o,
                                 uint tq, uint tkv, uint heads, uint heads_kv, uint window, float scale, uint q_pos,
                                 uint kv_pos, uint out_bf16, uint capacity, uint tile, uint batch_head, uint lane,
                                 threadgroup float* weights, threadgroup float* keeps) {
    const uint cells = BR * BC;
    const uint parts = cells < 32u ? 32u / cells : 1u; // lanes that share a pair
    const uint columns = D / 32u;
    ulong t0 = ulong(tile) * ulong(BR);
    ulong last = t0 + ulong(BR - 1u);
    if (last >= ulong(tq)) {
        last = ulong(tq) - 1ul;
    }
    uint batch = batch_head / heads;
    uint head = batch_head - batch * heads;
    uint head_kv = head / (heads / heads_kv);
    if (tkv > capacity) {
        tkv = capacity;
    }
    uint end_all = ingot_attn_end(ulong(q_pos) + last, ulong(kv_pos), tkv);
    uint first_all = ingot_attn_first(ulong(q_pos) + t0, ulong(kv_pos), window, end_all);

    ulong row0 = (ulong(batch) * ulong(tq) + t0) * ulong(heads) + ulong(head);
    ulong cache = ulong(batch) * ulong(capacity) * ulong(heads_kv) + ulong(head_kv);
    float sum[BR * columns];
#pragma unroll
    for (uint i = 0u; i < BR * columns; i++) {
        sum[i] = 0.0f;
    }
    float most = -FLT_MAX; // of row `lane`, if lane < BR
    float weight = 0.0f;
    for (uint base = first_all / BC * BC; base < end_all; base += BC) {
        for (uint cell = lane / parts; cell < cells; cell += 32u / parts) {
            ulong t = t0 + ulong(cell / BC);
            uint key = base + cell % BC;
            bool seen = false;
            if (t <= last) {
                uint end = ingot_attn_end(ulong(q_pos) + t, ulong(kv_pos), tkv);
                seen = key >= ingot_attn_first(ulong(q_pos) + t, ulong(kv_pos), window, end) && key < end;
            }
            float score = 0.0f;
            if (seen) {
                ulong at = (row0 + ulong(cell / BC) * ulong(heads)) * ulong(D / 4u);
                ulong from = (cache + ulong(key) * ulong(heads_kv)) * ulong(D / 4u);
                for (uint i = lane % parts; i < D / 4u; i += parts) {
                    float4 a = q[at + ulong(i)];
                    float4 b = k[from + ulong(i)];
                    score = fma(a.x, b.x, score);
                    score = fma(a.y, b.y, score);
                    score = fma(a.z, b.z, score);
                    score = fma(a.w, b.w, score);
                }
            }
#pragma unroll
            for (uint m = parts / 2u; m > 0u; m /= 2u) {
                score += simd_shuffle_xor(score, ushort(m));
            }
            if (lane % parts == 0u) {
                weights[2u * cell] = score * scale;
                weights[2u * cell + 1u] = seen ? 1.0f : 0.0f;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane < BR) {
            float most_now = most;
            for (uint c = 0u; c < BC; c++) {
                uint cell = lane * BC + c;
                if (weights[2u * cell + 1u] != 0.0f) {
                    most_now = fmax(most_now, weights[2u * cell]);
                }
            }
            float keep = precise::exp(most - most_now);
            weight *= keep;
            most = most_now;
            keeps[lane] = keep;
            for (uint c = 0u; c < BC; c++) {
                uint cell = lane * BC + c;
                if (weights[2u * cell + 1u] != 0.0f) {
                    float p = precise::exp(weights[2u * cell] - most);
                    weights[2u * cell] = p;
                    weight += p;
                } else {
                    weights[2u * cell] = -1.0f;
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint r = 0u; r < BR; r++) {
            float keep = keeps[r];
#pragma unroll
            for (uint i = 0u; i < columns; i++) {
                sum[r * columns + i] *= keep;
            }
            for (uint c = 0u; c < BC; c++) {
                float p = weights[2u * (r * BC + c)];
                if (!(p < 0.0f)) {
                    ulong from = (cache + ulong(base + c) * ulong(heads_kv)) * ulong(D) + ulong(lane);
#pragma unroll
                    for (uint i = 0u; i < columns; i++) {
                        sum[r * columns + i] = fma(p, v[from + ulong(32u * i)], sum[r * columns + i]);
                    }
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    if (lane < BR) {
        // No key seen: weight is exactly 0. A NaN weight is not, and stays visible.
        keeps[lane] = weight == 0.0f ? 0.0f : 1.0f / weight;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint r = 0u; r < BR; r++) {
        if (t0 + ulong(r) <= last) {
            float inverse = keeps[r];
            ulong at = (row0 + ulong(r) * ulong(heads)) * ulong(D) + ulong(lane);
#pragma unroll
            for (uint i = 0u; i < columns; i++) {
                ingot_attn_store(o, at + ulong(32u * i), sum[r * columns + i] * inverse, out_bf16);
            }
        }
    }
}

// The formula, visibility and live values of flash_attn_rows, for D = 128.
//
// Slots: 0 q f32 [B, Tq, H, 128], 1 k f32 [B, capacity, Hkv, 128], 2 v as k, 3 o f32 as q (may be q itself), 4 B, 5 Tq, 6 Tkv
//        u32 (device), 7 H, 8 Hkv (divides H), 9 window (0: all), 10 scale f32, 11 q_pos u32 (device), 12 kv_pos u32
//        (device), 13 capacity in positions.
// Geometry: ceil(Tq / 8) x (B H) threadgroups of 32 threads. q and k start at a multiple of 16 bytes.
// Threadgroup memory: 544 bytes, static.
kernel void flash_attn_swa_h128(device const float4* q [[buffer(0)]],
                                device const float4* k [[buffer(1)]],
                                device const float* v [[buffer(2)]],
                                device float* o [[buffer(3)]],
                                constant uint& B [[buffer(4)]],
                                constant uint& Tq [[buffer(5)]],
                                device const uint* Tkv [[buffer(6)]],
                                constant uint& H [[buffer(7)]],
                                constant uint& Hkv [[buffer(8)]],
                                constant uint& window [[buffer(9)]],
                                constant float& scale [[buffer(10)]],
                                device const uint* q_pos [[buffer(11)]],
                                device const uint* kv_pos [[buffer(12)]],
                                constant uint& capacity [[buffer(13)]],
                                uint2 tile [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float weights[128];
    threadgroup float keeps[8];
    if (ulong(tile.y) >= ulong(B) * ulong(H) || ulong(tile.x) * 8ul >= ulong(Tq)) {
        return;
    }
    ingot_attn_tiled<128, 8, 8>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], 0u, capacity, tile.x, tile.y,
                                lane, weights, keeps);
}

// The same for D = 256.
//
// Slots: 0 to 12 those of flash_attn_swa_h128 with 256 for 128, but 3 o f32 or bf16; 13 out_bf16, 14 capacity in positions.
// Geometry: that of flash_attn_swa_h128.
// Threadgroup memory: 544 bytes, static.
kernel void flash_attn_swa_h256(device const float4* q [[buffer(0)]],
                                device const float4* k [[buffer(1)]],
                                device const float* v [[buffer(2)]],
                                device float* o [[buffer(3)]],
                                constant uint& B [[buffer(4)]],
                                constant uint& Tq [[buffer(5)]],
                                device const uint* Tkv [[buffer(6)]],
                                constant uint& H [[buffer(7)]],
                                constant uint& Hkv [[buffer(8)]],
                                constant uint& window [[buffer(9)]],
                                constant float& scale [[buffer(10)]],
                                device const uint* q_pos [[buffer(11)]],
                                device const uint* kv_pos [[buffer(12)]],
                                constant uint& out_bf16 [[buffer(13)]],
                                constant uint& capacity [[buffer(14)]],
                                uint2 tile [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float weights[128];
    threadgroup float keeps[8];
    if (ulong(tile.y) >= ulong(B) * ulong(H) || ulong(tile.x) * 8ul >= ulong(Tq)) {
        return;
    }
    ingot_attn_tiled<256, 8, 8>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], out_bf16, capacity, tile.x,
                                tile.y, lane, weights, keeps);
}

// The same for D = 512, without a window.
//
// Slots: 0 q f32 [B, Tq, H, 512], 1 k f32 [B, capacity, Hkv, 512], 2 v as k, 3 o f32 or bf16 as q (f32: may be q itself), 4 B,
//        5 Tq, 6 Tkv u32 (device), 7 H, 8 Hkv (divides H), 9 scale f32, 10 q_pos u32 (device), 11 kv_pos u32 (device),
//        12 out_bf16, 13 capacity in positions.
// Geometry: ceil(Tq / 4) x (B H) threadgroups of 32 threads. q and k start at a multiple of 16 bytes.
// Threadgroup memory: 144 bytes, static.
kernel void flash_attn_global_h512(device const float4* q [[buffer(0)]],
                                   device const float4* k [[buffer(1)]],
                                   device const float* v [[buffer(2)]],
                                   device float* o [[buffer(3)]],
                                   constant uint& B [[buffer(4)]],
                                   constant uint& Tq [[buffer(5)]],
                                   device const uint* Tkv [[buffer(6)]],
                                   constant uint& H [[buffer(7)]],
                                   constant uint& Hkv [[buffer(8)]],
                                   constant float& scale [[buffer(9)]],
                                   device const uint* q_pos [[buffer(10)]],
                                   device const uint* kv_pos [[buffer(11)]],
                                   constant uint& out_bf16 [[buffer(12)]],
                                   constant uint& capacity [[buffer(13)]],
                                   uint2 tile [[threadgroup_position_in_grid]],
                                   uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float weights[32];
    threadgroup float keeps[4];
    if (ulong(tile.y) >= ulong(B) * ulong(H) || ulong(tile.x) * 4ul >= ulong(Tq)) {
        return;
    }
    ingot_attn_tiled<512, 4, 4>(q, k, v, o, Tq, Tkv[0], H, Hkv, 0u, scale, q_pos[0], kv_pos[0], out_bf16, capacity, tile.x, tile.y,
                                lane, weights, keeps);
}
#line 1 "gated_mlp.metal"
// The middle of a gated feed-forward block (Shazeer, arXiv:2002.05202): the activated gate times up.

#line 4 "gated_mlp.metal"
#line 5 "gated_mlp.metal"
#line 1 "gelu.h"
// The tanh form of GELU, without the tanh.

#ifndef INGOT_GELU_H
#define INGOT_GELU_H

#line 7 "gelu.h"

// gelu(x) = x/2 * (1 + tanh(u)), u = sqrt(2/pi) * (x + 0.044715 x^3)     (Hendrycks and Gimpel, arXiv:1606.08415)
//         = x / (1 + exp(-2u))                                           (the same function)
// The second form has no cancellation where tanh(u) is near -1 and needs no care for a tanh that overflows.
// u is limited to where exp(-2u) is finite; the value there is right to 1e-36. NaN stays NaN, +inf gives +inf, -inf
// gives about -0.
INGOT_FUNC float ingot_gelu(float x) {
    float low = x < -20.0f ? -20.0f : x;
    float c = low > 20.0f ? 20.0f : low;
    float u = 0.7978845608028654f * fma(0.044715f * c * c, c, c);
    float limited = u < -44.0f ? -44.0f : u;
    return low / (1.0f + precise::exp(-2.0f * limited));
}

#endif
#line 6 "gated_mlp.metal"
#line 1 "silu.h"
// SiLU, which is also called swish.

#ifndef INGOT_SILU_H
#define INGOT_SILU_H

#line 7 "silu.h"

// silu(x) = x / (1 + exp(-x)). x is limited to -104, where the result is -0: the quotient of infinities is NaN. NaN stays
// NaN.
INGOT_FUNC float ingot_silu(float x) {
    float low = x < -104.0f ? -104.0f : x;
    return low / (1.0f + precise::exp(-low));
}

#endif
#line 7 "gated_mlp.metal"

// out[i] = silu(gate[i]) * up[i], i < n
//
// Slots: 0 gate f32, 1 up f32, 2 out f32 (may be gate or up itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void mlp_silu(device const float* gate [[buffer(0)]],
                     device const float* up [[buffer(1)]],
                     device float* out [[buffer(2)]],
                     constant uint& n [[buffer(3)]],
                     uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_silu(gate[gid]) * up[gid];
}

// out[i] = bf16(silu(gate[i]) * up[i]), i < n
//
// Slots: 0 gate f32, 1 up f32, 2 out bf16, 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void mlp_silu_bf16(device const float* gate [[buffer(0)]],
                          device const float* up [[buffer(1)]],
                          device ushort* out [[buffer(2)]],
                          constant uint& n [[buffer(3)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_bf16_bits(ingot_silu(gate[gid]) * up[gid]);
}

// out[i] = gelu(gate[i]) * up[i], i < n, the tanh form of GELU
//
// Slots: 0 gate f32, 1 up f32, 2 out f32 (may be gate or up itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void mlp_gelu_tanh(device const float* gate [[buffer(0)]],
                          device const float* up [[buffer(1)]],
                          device float* out [[buffer(2)]],
                          constant uint& n [[buffer(3)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_gelu(gate[gid]) * up[gid];
}

// out[i] = bf16(gelu(gate[i]) * up[i]), i < n, the tanh form of GELU
//
// Slots: 0 gate f32, 1 up f32, 2 out bf16, 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void mlp_gelu_tanh_bf16(device const float* gate [[buffer(0)]],
                               device const float* up [[buffer(1)]],
                               device ushort* out [[buffer(2)]],
                               constant uint& n [[buffer(3)]],
                               uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_bf16_bits(ingot_gelu(gate[gid]) * up[gid]);
}
#line 1 "gemm_dense.metal"
// Products of dense matrices on simdgroup matrices.

#line 4 "gemm_dense.metal"
#line 1 "gemm_dense.h"
// What the products of dense matrices and vectors share: their function constants, what follows the sums, and reading
// matrices of f32, f16 and bf16.

#ifndef INGOT_GEMM_DENSE_H
#define INGOT_GEMM_DENSE_H

#line 8 "gemm_dense.h"
#line 9 "gemm_dense.h"
#line 10 "gemm_dense.h"
#line 11 "gemm_dense.h"

// Function constants. All sources are compiled as one, so that no two constants may have an index in common.
constant bool ingot_dense_trans_a [[function_constant(100)]];    // a is stored transposed
constant bool ingot_dense_trans_b [[function_constant(101)]];    // b is
constant bool ingot_dense_wide_a [[function_constant(102)]];     // a starts at a multiple of four elements
constant bool ingot_dense_wide_b [[function_constant(103)]];     // b does
constant bool ingot_dense_has_c [[function_constant(104)]];      // beta * c is added
constant bool ingot_dense_has_bias [[function_constant(105)]];   // the bias is added
constant uint ingot_dense_act [[function_constant(106)]];        // the activation
constant uint ingot_dense_out [[function_constant(107)]];        // the type of out and c

#define INGOT_ACT_NONE 0
#define INGOT_ACT_RELU 1
#define INGOT_ACT_GELU 2
#define INGOT_ACT_SILU 3

#define INGOT_OUT_F32 0
#define INGOT_OUT_F16 1
#define INGOT_OUT_BF16 2

// Says that all rows of matrices that start at a multiple of four elements do so, so that four can be read at once.
INGOT_FUNC bool ingot_dense_rows(bool start, uint cols, uint stride) {
    return start && (cols | stride) % 4u == 0u;
}

// Element at of c, widened: exact.
INGOT_FUNC float ingot_dense_load(device const uchar* c, ulong at) {
    if (ingot_dense_out == INGOT_OUT_F16) {
        return float(((device const half*)c)[at]);
    }
    if (ingot_dense_out == INGOT_OUT_BF16) {
        return ingot_from_bf16_bits(((device const ushort*)c)[at]);
    }
    return ((device const float*)c)[at];
}

// Element at of out is x, rounded to its type, ties to even; beyond the largest finite number it is infinite.
INGOT_FUNC void ingot_dense_store(device uchar* out, ulong at, float x) {
    if (ingot_dense_out == INGOT_OUT_F16) {
        ((device half*)out)[at] = half(x);
    } else if (ingot_dense_out == INGOT_OUT_BF16) {
        ((device ushort*)out)[at] = ingot_bf16_bits(x);
    } else {
        ((device float*)out)[at] = x;
    }
}

// act(alpha * sum + beta * c[at_c] + bias[n]), without the terms that there are not.
INGOT_FUNC float ingot_dense_finish(float sum, float alpha, float beta, device const uchar* c, ulong at_c,
                                    device const float* bias, uint n) {
    float x = alpha * sum;
    if (ingot_dense_has_c) {
        x = fma(beta, ingot_dense_load(c, at_c), x);
    }
    if (ingot_dense_has_bias) {
        x = x + bias[n];
    }
    if (ingot_dense_act == INGOT_ACT_RELU) {
        return x < 0.0f ? 0.0f : x;
    }
    if (ingot_dense_act == INGOT_ACT_GELU) {
        return ingot_gelu(x);
    }
    if (ingot_dense_act == INGOT_ACT_SILU) {
        return ingot_silu(x);
    }
    return x;
}

#endif
#line 5 "gemm_dense.metal"
#line 1 "gemm_tile.h"
// What products on simdgroup matrices share: a threadgroup holds a block of each operand in threadgroup memory, and each of its
// simdgroups multiplies a part of the rows with a part of the columns.

#ifndef INGOT_GEMM_TILE_H
#define INGOT_GEMM_TILE_H

#line 8 "gemm_tile.h"
#line 9 "gemm_tile.h"

#define INGOT_GEMM_PART 32     // a simdgroup computes a part of this many rows and columns, 4 by 4 matrices of 8 by 8
#define INGOT_GEMM_PAD 16      // bytes between rows in threadgroup memory, against conflicts of its banks

// simdgroup_load whose last argument is a literal, the only form that Apple's compiler is known to be given.
template <typename T>
INGOT_FUNC void ingot_gemm_load(thread simdgroup_matrix<T, 8, 8>& m, threadgroup T* from, ulong row, bool transposed) {
    if (transposed) {
        simdgroup_load(m, from, row, ulong2(0ul, 0ul), true);
    } else {
        simdgroup_load(m, from, row, ulong2(0ul, 0ul), false);
    }
}

// Copies a block of ROWS by COLS elements of a row-major matrix [rows, cols], from (row, col) on, to threadgroup memory,
// where they are of type TO and rows are LD elements apart. Where the matrix ends there are zeros: nothing is read beyond it.
// wide says that its rows start at multiples of four elements, so that four are read at once; col is such a multiple.
template <typename TO, typename T, uint ROWS, uint COLS, uint LD, uint THREADS>
INGOT_FUNC void ingot_gemm_stage(threadgroup TO* to, device const T* from, uint rows, uint cols, uint row, uint col, bool wide,
                                 uint tid) {
    typedef vec<T, 4> T4;
    typedef vec<TO, 4> TO4;
    if (wide) {
        for (uint i = tid; i < ROWS * COLS / 4u; i += THREADS) {
            uint r = i / (COLS / 4u);
            uint c = i % (COLS / 4u) * 4u;
            T4 x = T4(T(0.0f));
            if (row + r < rows && col + c < cols) {
                x = *(device const T4*)(from + (ulong(row + r) * ulong(cols) + ulong(col + c)));
            }
            *(threadgroup TO4*)(to + (r * LD + c)) = TO4(x);
        }
        return;
    }
    for (uint i = tid; i < ROWS * COLS; i += THREADS) {
        uint r = i / COLS;
        uint c = i % COLS;
        T x = T(0.0f);
        if (row + r < rows && col + c < cols) {
            x = from[ulong(row + r) * ulong(cols) + ulong(col + c)];
        }
        to[r * LD + c] = TO(x);
    }
}

INGOT_FUNC void ingot_gemm_zero(thread simdgroup_float8x8 (&sum)[4][4]) {
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
}

// Adds the products of STEP values of k to a part's sums, eight at a time in order. The blocks are stored with k along their
// rows, which are LONG elements apart, or with k down their columns, in rows FLAT elements apart: a if it is transposed, b if
// it is not.
template <typename T, uint STEP, uint LONG, uint FLAT>
INGOT_FUNC void ingot_gemm_multiply(thread simdgroup_float8x8 (&sum)[4][4], threadgroup T* block_a, threadgroup T* block_b,
                                    uint part_row, uint part_col, bool trans_a, bool trans_b) {
    ulong ld_a = trans_a ? ulong(FLAT) : ulong(LONG);
    ulong ld_b = trans_b ? ulong(LONG) : ulong(FLAT);
#pragma unroll
    for (uint k = 0u; k < STEP; k += 8u) {
        simdgroup_matrix<T, 8, 8> ma[4];
        simdgroup_matrix<T, 8, 8> mb[4];
#pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            uint m = part_row + 8u * i;
            uint n = part_col + 8u * i;
            uint at_a = trans_a ? k * FLAT + m : m * LONG + k;
            uint at_b = trans_b ? n * LONG + k : k * FLAT + n;
            ingot_gemm_load(ma[i], block_a + at_a, ld_a, trans_a);
            ingot_gemm_load(mb[i], block_b + at_b, ld_b, trans_b);
        }
#pragma unroll
        for (uint i = 0u; i < 4u; i++) {
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                simdgroup_multiply_accumulate(sum[i][j], ma[i], mb[j], sum[i][j]);
            }
        }
    }
}

// Finishes and stores the sums of a part whose first element is at row and col of a result [M, N]. Eight rows at a time go through
// threadgroup memory, where a lane has a column; nobody else may use that memory by then.
INGOT_FUNC void ingot_gemm_finish(thread simdgroup_float8x8 (&sum)[4][4], threadgroup float* memory, uint simdgroup, uint lane,
                                  uint row, uint col, uint M, uint N, device uchar* out, ulong first_out,
                                  device const uchar* c, ulong first_c, float alpha, float beta, device const float* bias) {
    threadgroup float* rows = memory + simdgroup * (8u * uint(INGOT_GEMM_PART));
    uint n = col + lane;
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        simdgroup_barrier(mem_flags::mem_threadgroup); // the rows before have been read
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            simdgroup_store(sum[i][j], rows + 8u * j, ulong(INGOT_GEMM_PART));
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint r = 0u; r < 8u; r++) {
            uint m = row + 8u * i + r;
            if (m < M && n < N) {
                ulong at = ulong(m) * ulong(N) + ulong(n);
                float x = ingot_dense_finish(rows[r * uint(INGOT_GEMM_PART) + lane], alpha, beta, c, first_c + at, bias, n);
                ingot_dense_store(out, first_out + at, x);
            }
        }
    }
}

#endif
#line 6 "gemm_dense.metal"

#define INGOT_GEMM_STEP 64     // bytes of a row of a, or of a column of b, that a threadgroup holds at a time

// out[i][m][n] = act(alpha * sum over k of a[i][m][k] * b[i][k][n] + beta * c[i][m][n] + bias[n]), m < M, n < N, k < K
//
// Sums are f32, eight products of k at a time in order, zeros after the last: what an element is does not depend on M, N,
// its place or the other elements, nor on the kernel of the two that computes it.
//
// Kernels: gemm_dense_{f32,f16,bf16}_t{32,64}, by the type T of a and b and the rows and columns of a tile.
// Function constants: see gemm_dense.h. out and c have a type of their own.
//
// Slots: 0 a T [M, K], or [K, M] if it is transposed, 1 b T [K, N], or [N, K], 2 out f32, f16 or bf16 [M, N], 3 M, 4 N, 5 K,
//        6 and 7 elements from one a and b of the batch to the next, 8 bias f32 [N], 9 alpha f32, 10 beta f32,
//        11 c as out, may be out, 12 and 13 elements from one c and out to the next. bias and c are bound but not read
//        if their function constants are false, a and b if K is 0.
// Geometry: ceil(N / tile) x ceil(M / tile) x batch threadgroups of (tile / 32)^2 simdgroups.
// Threadgroup memory: 5,120 bytes with tiles of 32, 10,240 with tiles of 64.
template <typename T, uint SIDE>
kernel void gemm_dense(device const T* a [[buffer(0)]],
                       device const T* b [[buffer(1)]],
                       device uchar* out [[buffer(2)]],
                       constant uint& M [[buffer(3)]],
                       constant uint& N [[buffer(4)]],
                       constant uint& K [[buffer(5)]],
                       constant uint& stride_a [[buffer(6)]],
                       constant uint& stride_b [[buffer(7)]],
                       device const float* bias [[buffer(8)]],
                       constant float& alpha [[buffer(9)]],
                       constant float& beta [[buffer(10)]],
                       device const uchar* c [[buffer(11)]],
                       constant uint& stride_c [[buffer(12)]],
                       constant uint& stride_out [[buffer(13)]],
                       uint3 tile [[threadgroup_position_in_grid]],
                       uint tid [[thread_index_in_threadgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
    constexpr uint TILE = SIDE * uint(INGOT_GEMM_PART);
    constexpr uint THREADS = SIDE * SIDE * 32u;
    constexpr uint STEP = uint(INGOT_GEMM_STEP) / uint(sizeof(T));
    constexpr uint PAD = uint(INGOT_GEMM_PAD) / uint(sizeof(T));
    // A block of a and one of b, each as it is stored, so that rows are read in order: TILE by STEP, or STEP by TILE.
    constexpr uint LD_LONG = STEP + PAD;
    constexpr uint LD_FLAT = TILE + PAD;
    constexpr uint BLOCK = TILE * LD_LONG > STEP * LD_FLAT ? TILE * LD_LONG : STEP * LD_FLAT;
    threadgroup float4 memory[2u * BLOCK * uint(sizeof(T)) / 16u];
    threadgroup T* block_a = (threadgroup T*)memory;
    threadgroup T* block_b = block_a + BLOCK;

    uint row0 = tile.y * TILE;
    uint col0 = tile.x * TILE;
    if (row0 >= M || col0 >= N) {
        return;
    }
    a += ulong(tile.z) * ulong(stride_a);
    b += ulong(tile.z) * ulong(stride_b);
    uint part_row = simdgroup / SIDE * uint(INGOT_GEMM_PART);
    uint part_col = simdgroup % SIDE * uint(INGOT_GEMM_PART);
    bool wide_a = ingot_dense_rows(ingot_dense_wide_a, ingot_dense_trans_a ? M : K, stride_a);
    bool wide_b = ingot_dense_rows(ingot_dense_wide_b, ingot_dense_trans_b ? K : N, stride_b);

    simdgroup_float8x8 sum[4][4];
    ingot_gemm_zero(sum);
    for (uint k0 = 0u; k0 < K; k0 += STEP) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the block before has been used
        if (ingot_dense_trans_a) {
            ingot_gemm_stage<T, T, STEP, TILE, LD_FLAT, THREADS>(block_a, a, K, M, k0, row0, wide_a, tid);
        } else {
            ingot_gemm_stage<T, T, TILE, STEP, LD_LONG, THREADS>(block_a, a, M, K, row0, k0, wide_a, tid);
        }
        if (ingot_dense_trans_b) {
            ingot_gemm_stage<T, T, TILE, STEP, LD_LONG, THREADS>(block_b, b, N, K, col0, k0, wide_b, tid);
        } else {
            ingot_gemm_stage<T, T, STEP, TILE, LD_FLAT, THREADS>(block_b, b, K, N, k0, col0, wide_b, tid);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ingot_gemm_multiply<T, STEP, LD_LONG, LD_FLAT>(sum, block_a, block_b, part_row, part_col, ingot_dense_trans_a,
                                                       ingot_dense_trans_b);
    }

    threadgroup_barrier(mem_flags::mem_threadgroup);
    ingot_gemm_finish(sum, (threadgroup float*)memory, simdgroup, lane, row0 + part_row, col0 + part_col, M, N, out,
                      ulong(tile.z) * ulong(stride_out), c, ulong(tile.z) * ulong(stride_c), alpha, beta, bias);
}

typedef decltype(gemm_dense<float, 1>) gemm_dense_f32;
typedef decltype(gemm_dense<half, 1>) gemm_dense_f16;
typedef decltype(gemm_dense<bfloat, 1>) gemm_dense_bf16;

template [[host_name("gemm_dense_f32_t32")]] kernel gemm_dense_f32 gemm_dense<float, 1>;
template [[host_name("gemm_dense_f32_t64")]] kernel gemm_dense_f32 gemm_dense<float, 2>;
template [[host_name("gemm_dense_f16_t32")]] kernel gemm_dense_f16 gemm_dense<half, 1>;
template [[host_name("gemm_dense_f16_t64")]] kernel gemm_dense_f16 gemm_dense<half, 2>;
template [[host_name("gemm_dense_bf16_t32")]] kernel gemm_dense_bf16 gemm_dense<bfloat, 1>;
template [[host_name("gemm_dense_bf16_t64")]] kernel gemm_dense_bf16 gemm_dense<bfloat, 2>;
#line 1 "gemm_int8.metal"
// Products of matrices of signed bytes, with sums exact in 32 bits.
//
//   sum[m, n] = sum over k of a[m, k] * b[k, n],  m < M, n < N, k < K
//
// a is [M, K], or [K, M] in the kernels whose first letter is t; b is [K, N], or [N, K] if the second one is t. K is at most
// 131,071: so many products of -128 and -128 are the most that an int holds. No order of additions, and no part of a sum,
// leads beyond what the magnitudes of all products add up to, so that the sum is exact.
//
// A threadgroup computes 32 rows and 32 columns, a thread 4 of each, eight apart.

#line 12 "gemm_int8.metal"

#define INGOT_INT8_TILE 32u       // rows, and columns, of a threadgroup
#define INGOT_INT8_THREADS 64u    // threads of a threadgroup
#define INGOT_INT8_STEP 64u       // products of each sum between two barriers
#define INGOT_INT8_PITCH 68u      // bytes of a tile's row: a step, and a word so that eight rows lie in different banks
#define INGOT_INT8_EACH 4         // rows, and columns, of a thread
#define INGOT_INT8_APART 8u       // from one row, or column, of a thread to the next

// tile[r, k] = from[first + r, k0 + k], zero beyond rows or K; from is [K, rows] if ACROSS, else [rows, K]. Neighbouring
// threads read neighbouring bytes.
template <bool ACROSS>
INGOT_FUNC void ingot_int8_fill(threadgroup char* tile, device const char* from, uint first, uint rows, uint k0, uint K,
                                uint thread_index) {
    for (uint i = thread_index; i < INGOT_INT8_TILE * INGOT_INT8_STEP; i += INGOT_INT8_THREADS) {
        uint r = ACROSS ? i % INGOT_INT8_TILE : i / INGOT_INT8_STEP;
        uint k = ACROSS ? i / INGOT_INT8_TILE : i % INGOT_INT8_STEP;
        char v = char(0);
        if (first + r < rows && k0 + k < K) {
            ulong row = ulong(first + r);
            ulong col = ulong(k0 + k);
            v = from[ACROSS ? col * ulong(rows) + row : row * ulong(K) + col];
        }
        tile[r * INGOT_INT8_PITCH + k] = v;
    }
}

// The 16 sums of a thread: rows row0 + 8 i and columns col0 + 8 j at sum[4 i + j]. All threads of the threadgroup call it.
template <bool TA, bool TB>
INGOT_FUNC void ingot_int8_sums(device const char* a, device const char* b, threadgroup char* tile_a, threadgroup char* tile_b,
                                uint M, uint N, uint K, uint2 tile, uint thread_index, thread int* sum) {
#pragma unroll
    for (uint i = 0u; i < uint(INGOT_INT8_EACH * INGOT_INT8_EACH); i++) {
        sum[i] = 0;
    }
    uint row = thread_index / INGOT_INT8_APART * INGOT_INT8_PITCH;
    uint col = thread_index % INGOT_INT8_APART * INGOT_INT8_PITCH;
    for (uint k0 = 0u; k0 < K; k0 += INGOT_INT8_STEP) {
        ingot_int8_fill<TA>(tile_a, a, tile.y * INGOT_INT8_TILE, M, k0, K, thread_index);
        ingot_int8_fill<!TB>(tile_b, b, tile.x * INGOT_INT8_TILE, N, k0, K, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint steps = min(K - k0, INGOT_INT8_STEP);
        for (uint k = 0u; k < steps; k += 4u) {
            int4 right[INGOT_INT8_EACH];
#pragma unroll
            for (uint j = 0u; j < uint(INGOT_INT8_EACH); j++) {
                right[j] = int4(*(threadgroup const char4*)(tile_b + col + j * INGOT_INT8_APART * INGOT_INT8_PITCH + k));
            }
#pragma unroll
            for (uint i = 0u; i < uint(INGOT_INT8_EACH); i++) {
                int4 left = int4(*(threadgroup const char4*)(tile_a + row + i * INGOT_INT8_APART * INGOT_INT8_PITCH + k));
#pragma unroll
                for (uint j = 0u; j < uint(INGOT_INT8_EACH); j++) {
                    int4 p = left * right[j];
                    sum[i * uint(INGOT_INT8_EACH) + j] += (p.x + p.y) + (p.z + p.w);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// c[m, n] = sum[m, n]
//
// Slots: 0 a, 1 b, 2 c i32 [M, N], 3 M, 4 N, 5 K.
// Geometry: ceil(N / 32) x ceil(M / 32) threadgroups of 64 threads.
// Threadgroup memory: 4,352 bytes, static.
template <bool TA, bool TB>
kernel void gemm_int8_i32(device const char* a [[buffer(0)]],
                          device const char* b [[buffer(1)]],
                          device int* c [[buffer(2)]],
                          constant uint& M [[buffer(3)]],
                          constant uint& N [[buffer(4)]],
                          constant uint& K [[buffer(5)]],
                          uint2 tile [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup char4 tile_a[INGOT_INT8_TILE * INGOT_INT8_PITCH / 4u];
    threadgroup char4 tile_b[INGOT_INT8_TILE * INGOT_INT8_PITCH / 4u];
    int sum[INGOT_INT8_EACH * INGOT_INT8_EACH];
    ingot_int8_sums<TA, TB>(a, b, (threadgroup char*)tile_a, (threadgroup char*)tile_b, M, N, K, tile, thread_index, sum);
    uint row0 = tile.y * INGOT_INT8_TILE + thread_index / INGOT_INT8_APART;
    uint col0 = tile.x * INGOT_INT8_TILE + thread_index % INGOT_INT8_APART;
#pragma unroll
    for (uint i = 0u; i < uint(INGOT_INT8_EACH); i++) {
#pragma unroll
        for (uint j = 0u; j < uint(INGOT_INT8_EACH); j++) {
            uint m = row0 + i * INGOT_INT8_APART;
            uint n = col0 + j * INGOT_INT8_APART;
            if (m < M && n < N) {
                c[ulong(m) * ulong(N) + ulong(n)] = sum[i * uint(INGOT_INT8_EACH) + j];
            }
        }
    }
}

typedef decltype(gemm_int8_i32<false, false>) gemm_int8_i32_kernel;
template [[host_name("gemm_int8_nn_i32")]] kernel gemm_int8_i32_kernel gemm_int8_i32<false, false>;
template [[host_name("gemm_int8_nt_i32")]] kernel gemm_int8_i32_kernel gemm_int8_i32<false, true>;
template [[host_name("gemm_int8_tn_i32")]] kernel gemm_int8_i32_kernel gemm_int8_i32<true, false>;
template [[host_name("gemm_int8_tt_i32")]] kernel gemm_int8_i32_kernel gemm_int8_i32<true, true>;

// c[m, n] = float(sum[m, n]) * b_scale[n], and then * a_scale[m] if has_a_scale
//
// Slots: 0 a, 1 b, 2 c f32 [M, N], 3 M, 4 N, 5 K, 8 b_scale f32 [N], 9 a_scale f32 [M] (not read without has_a_scale),
//        10 has_a_scale.
// Geometry: ceil(N / 32) x ceil(M / 32) threadgroups of 64 threads.
// Threadgroup memory: 4,352 bytes, static.
template <bool TA, bool TB>
kernel void gemm_int8_f32(device const char* a [[buffer(0)]],
                          device const char* b [[buffer(1)]],
                          device float* c [[buffer(2)]],
                          constant uint& M [[buffer(3)]],
                          constant uint& N [[buffer(4)]],
                          constant uint& K [[buffer(5)]],
                          device const float* b_scale [[buffer(8)]],
                          device const float* a_scale [[buffer(9)]],
                          constant uint& has_a_scale [[buffer(10)]],
                          uint2 tile [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup char4 tile_a[INGOT_INT8_TILE * INGOT_INT8_PITCH / 4u];
    threadgroup char4 tile_b[INGOT_INT8_TILE * INGOT_INT8_PITCH / 4u];
    int sum[INGOT_INT8_EACH * INGOT_INT8_EACH];
    ingot_int8_sums<TA, TB>(a, b, (threadgroup char*)tile_a, (threadgroup char*)tile_b, M, N, K, tile, thread_index, sum);
    uint row0 = tile.y * INGOT_INT8_TILE + thread_index / INGOT_INT8_APART;
    uint col0 = tile.x * INGOT_INT8_TILE + thread_index % INGOT_INT8_APART;
#pragma unroll
    for (uint i = 0u; i < uint(INGOT_INT8_EACH); i++) {
#pragma unroll
        for (uint j = 0u; j < uint(INGOT_INT8_EACH); j++) {
            uint m = row0 + i * INGOT_INT8_APART;
            uint n = col0 + j * INGOT_INT8_APART;
            if (m < M && n < N) {
                float v = float(sum[i * uint(INGOT_INT8_EACH) + j]) * b_scale[n];
                if (has_a_scale != 0u) {
                    v *= a_scale[m];
                }
                c[ulong(m) * ulong(N) + ulong(n)] = v;
            }
        }
    }
}

typedef decltype(gemm_int8_f32<false, false>) gemm_int8_f32_kernel;
template [[host_name("gemm_int8_nn_f32")]] kernel gemm_int8_f32_kernel gemm_int8_f32<false, false>;
template [[host_name("gemm_int8_nt_f32")]] kernel gemm_int8_f32_kernel gemm_int8_f32<false, true>;
template [[host_name("gemm_int8_tn_f32")]] kernel gemm_int8_f32_kernel gemm_int8_f32<true, false>;
template [[host_name("gemm_int8_tt_f32")]] kernel gemm_int8_f32_kernel gemm_int8_f32<true, true>;
#line 1 "gemm_q4_mlx.metal"
// Products of MLX 4-bit affine weights with up to eight bf16 vectors, Y = X W^T; see gemm_q4_mlx.h.
//
// In all kernels a simdgroup computes four rows and a threadgroup of 64 threads eight, for all vectors; banks and x start at
// a multiple of 8 bytes. M beyond 8 counts as 8. No threadgroup memory.

#line 7 "gemm_q4_mlx.metal"
#line 1 "gemm_q4_mlx.h"
// Products of MLX 4-bit affine weight rows with up to eight bf16 vectors at once; see q4_mlx.h.

#ifndef INGOT_GEMM_Q4_MLX_H
#define INGOT_GEMM_Q4_MLX_H

#line 7 "gemm_q4_mlx.h"
#line 1 "q4_mlx.h"
// Dot products of MLX 4-bit affine weight rows with a bf16 vector.
//
// A bank of [rows, cols] weights: w[r, c] = scale * code + bias, a scale and a bias for each group_size columns of a row.
//   packed  uint32 words [rows, cols / 8], eight codes each, the lowest bits first
//   sb      bfloat2 [rows, cols / group_size]: scale, bias
// group_size is 32, 64, 128, 256 or 512 and divides cols, so cols is a multiple of 32.
//
// That is the row-major layout. The interleaved one has tiles of four rows, the last one padded: of their codes each
// 8 bytes, 16 columns, come from the next row, and each scale with its bias as well.

#ifndef INGOT_Q4_MLX_H
#define INGOT_Q4_MLX_H

#line 15 "q4_mlx.h"

#define INGOT_Q4_ROWS 4           // rows that a simdgroup computes at once
#define INGOT_Q4_GROUP_ROWS 8u    // rows of a threadgroup: two simdgroups
#define INGOT_Q4_LANE_COLS 16u    // columns that a lane takes per step
#define INGOT_Q4_BLOCK 512u       // columns of a step: 32 lanes * 16

// Where the four rows from row0 on start for a lane, as indices of packed and sb; the last row stands in for rows past the
// end, unless the layout has them.
template <bool I4>
INGOT_FUNC void ingot_q4_places(uint rows, uint cols, uint group_size, uint row0, uint lane, thread ulong* word,
                                thread ulong* group) {
    ulong row_words = ulong(cols / INGOT_Q4_LANE_COLS);
    ulong row_groups = ulong(cols / group_size);
    ulong first_group = ulong(lane * INGOT_Q4_LANE_COLS / group_size);
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
        if (I4) {
            word[r] = ulong(row0) * row_words + ulong(lane * uint(INGOT_Q4_ROWS) + r);
            group[r] = ulong(row0) * row_groups + first_group * ulong(INGOT_Q4_ROWS) + ulong(r);
        } else {
            ulong row = ulong(row0) + ulong(r);
            if (row >= ulong(rows)) {
                row = ulong(rows) - 1ul;
            }
            word[r] = row * row_words + ulong(lane);
            group[r] = row * row_groups + first_group;
        }
    }
}

// Indices from one step of 512 columns to the next.
template <bool I4>
INGOT_FUNC ulong ingot_q4_stride(ulong n) {
    return I4 ? n * ulong(INGOT_Q4_ROWS) : n;
}

// acc + the dot product of four codes with x. The codes are the low 16 bits of w, left where they are: x[j] has been
// divided by 16^j instead, which is exact.
INGOT_FUNC float ingot_q4_dot4(uint w, thread const float* x, float acc) {
    acc = fma(x[0], float(w & 0x000fu), acc);
    acc = fma(x[1], float(w & 0x00f0u), acc);
    acc = fma(x[2], float(w & 0x0f00u), acc);
    acc = fma(x[3], float(w & 0xf000u), acc);
    return acc;
}

// sum[i] = the dot product of row row0 + i with x, in every lane; the last row stands in for rows past the end.
// One simdgroup; row0 < rows. Reads packed and x in steps of 8 bytes.
//
// Per step a lane holds 16 elements of x and their sum, and uses them for four rows: a row's groups contribute
// scale * sum(code * x) + bias * sum(x). Algorithm: qmv_fast and qdot of MLX (mlx/backend/metal/kernels/quantized.h).
// The arithmetic does not depend on the layout, I4.
template <bool I4>
INGOT_FUNC void ingot_q4_rows(device const uint2* packed, device const bfloat2* sb, device const bfloat4* x, uint rows,
                              uint cols, uint group_size, uint row0, uint lane, thread float* sum) {
    ulong word_step = ingot_q4_stride<I4>(32ul);
    ulong group_step = ingot_q4_stride<I4>(ulong(INGOT_Q4_BLOCK / group_size));
    ulong word[INGOT_Q4_ROWS];
    ulong group[INGOT_Q4_ROWS];
    ingot_q4_places<I4>(rows, cols, group_size, row0, lane, word, group);
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
        sum[r] = 0.0f;
    }
    ulong quad = ulong(lane) * 4ul;
    for (uint col = lane * INGOT_Q4_LANE_COLS; col < cols; col += INGOT_Q4_BLOCK) {
        float xs[16];
        float total = 0.0f;
#pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            bfloat4 v = x[quad + ulong(i)];
            float a = float(v.x);
            float b = float(v.y);
            float c = float(v.z);
            float d = float(v.w);
            total += (a + b) + (c + d);
            xs[4u * i] = a;
            xs[4u * i + 1u] = b * 0.0625f;
            xs[4u * i + 2u] = c * 0.00390625f;
            xs[4u * i + 3u] = d * 0.000244140625f;
        }
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            uint2 w = packed[word[r]];
            bfloat2 s = sb[group[r]];
            float dot = ingot_q4_dot4(w.x, xs, 0.0f);
            dot = ingot_q4_dot4(w.x >> 16u, xs + 4, dot);
            dot = ingot_q4_dot4(w.y, xs + 8, dot);
            dot = ingot_q4_dot4(w.y >> 16u, xs + 12, dot);
            sum[r] = fma(float(s.x), dot, fma(float(s.y), total, sum[r]));
            word[r] += word_step;
            group[r] += group_step;
        }
        quad += 128ul;
    }
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
        sum[r] = simd_sum(sum[r]);
    }
}

#endif
#line 8 "gemm_q4_mlx.h"

#define INGOT_GEMM_M 8    // most vectors of a launch

// y[m, r] = w[r] . x[m], plus resid[m, r] if ADD, for the four rows of a simdgroup and m < min(M, 8).
//
// Codes are converted once and used for all vectors. For each row and vector the operations are those of ingot_q4_rows,
// in its order, so that the bits are the same.
template <bool I4, bool ADD>
INGOT_FUNC void ingot_q4_gemm(device const uint2* packed, device const bfloat2* sb, device const bfloat4* x,
                              device float* y, uint rows, uint cols, uint group_size, uint M, device const float* resid,
                              uint tile, uint lane, uint simdgroup) {
    uint row0 = tile * INGOT_Q4_GROUP_ROWS + simdgroup * uint(INGOT_Q4_ROWS);
    if (row0 >= rows) {
        return;
    }
    ulong word_step = ingot_q4_stride<I4>(32ul);
    ulong group_step = ingot_q4_stride<I4>(ulong(INGOT_Q4_BLOCK / group_size));
    ulong word[INGOT_Q4_ROWS];
    ulong group[INGOT_Q4_ROWS];
    ingot_q4_places<I4>(rows, cols, group_size, row0, lane, word, group);
    float sum[INGOT_GEMM_M][INGOT_Q4_ROWS];
#pragma unroll
    for (uint m = 0u; m < uint(INGOT_GEMM_M); m++) {
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            sum[m][r] = 0.0f;
        }
    }
    ulong vector_quads = ulong(cols / 4u);
    ulong quad = ulong(lane) * 4ul;
    for (uint col = lane * INGOT_Q4_LANE_COLS; col < cols; col += INGOT_Q4_BLOCK) {
        uint half_words[INGOT_Q4_ROWS][4];
        float dot[INGOT_GEMM_M][INGOT_Q4_ROWS];
        float total[INGOT_GEMM_M];
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            uint2 w = packed[word[r]];
            half_words[r][0] = w.x;
            half_words[r][1] = w.x >> 16u;
            half_words[r][2] = w.y;
            half_words[r][3] = w.y >> 16u;
            word[r] += word_step;
        }
#pragma unroll
        for (uint m = 0u; m < uint(INGOT_GEMM_M); m++) {
            total[m] = 0.0f;
#pragma unroll
            for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
                dot[m][r] = 0.0f;
            }
        }
#pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            float code[INGOT_Q4_ROWS][4];
#pragma unroll
            for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
                uint w = half_words[r][i];
                code[r][0] = float(w & 0x000fu);
                code[r][1] = float(w & 0x00f0u);
                code[r][2] = float(w & 0x0f00u);
                code[r][3] = float(w & 0xf000u);
            }
#pragma unroll
            for (uint m = 0u; m < uint(INGOT_GEMM_M); m++) {
                if (m < M) {
                    bfloat4 v = x[ulong(m) * vector_quads + quad + ulong(i)];
                    float a = float(v.x);
                    float b = float(v.y);
                    float c = float(v.z);
                    float d = float(v.w);
                    total[m] += (a + b) + (c + d);
                    b *= 0.0625f;
                    c *= 0.00390625f;
                    d *= 0.000244140625f;
#pragma unroll
                    for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
                        float t = fma(a, code[r][0], dot[m][r]);
                        t = fma(b, code[r][1], t);
                        t = fma(c, code[r][2], t);
                        dot[m][r] = fma(d, code[r][3], t);
                    }
                }
            }
        }
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            bfloat2 s = sb[group[r]];
            group[r] += group_step;
#pragma unroll
            for (uint m = 0u; m < uint(INGOT_GEMM_M); m++) {
                sum[m][r] = fma(float(s.x), dot[m][r], fma(float(s.y), total[m], sum[m][r]));
            }
        }
        quad += 128ul;
    }
#pragma unroll
    for (uint m = 0u; m < uint(INGOT_GEMM_M); m++) {
        if (m < M) {
#pragma unroll
            for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
                float v = simd_sum(sum[m][r]);
                if (lane == 0u && r < rows - row0) {
                    ulong at = ulong(m) * ulong(rows) + ulong(row0) + ulong(r);
                    y[at] = ADD ? resid[at] + v : v;
                }
            }
        }
    }
}

#endif
#line 8 "gemm_q4_mlx.metal"

// y[m, r] = sum over c of w[r, c] * x[m, c]
//
// Slots: 0 packed, 1 sb, 3 x bf16 [M, cols], 4 y f32 [M, rows], 5 rows, 6 cols, 7 group_size, 8 M.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemm_q4_mlx_simd(device const uint2* packed [[buffer(0)]],
                             device const bfloat2* sb [[buffer(1)]],
                             device const bfloat4* x [[buffer(3)]],
                             device float* y [[buffer(4)]],
                             constant uint& rows [[buffer(5)]],
                             constant uint& cols [[buffer(6)]],
                             constant uint& group_size [[buffer(7)]],
                             constant uint& M [[buffer(8)]],
                             uint tile [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gemm<false, false>(packed, sb, x, y, rows, cols, group_size, M, y, tile, lane, simdgroup);
}

// y[m, r] = resid[m, r] + sum over c of w[r, c] * x[m, c]
//
// Slots: 0 packed, 1 sb, 3 x bf16 [M, cols], 4 y f32 [M, rows], 5 rows, 6 cols, 7 group_size, 8 M, 9 resid f32 [M, rows],
//        may be y.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemm_q4_mlx_simd_add(device const uint2* packed [[buffer(0)]],
                                 device const bfloat2* sb [[buffer(1)]],
                                 device const bfloat4* x [[buffer(3)]],
                                 device float* y [[buffer(4)]],
                                 constant uint& rows [[buffer(5)]],
                                 constant uint& cols [[buffer(6)]],
                                 constant uint& group_size [[buffer(7)]],
                                 constant uint& M [[buffer(8)]],
                                 device const float* resid [[buffer(9)]],
                                 uint tile [[threadgroup_position_in_grid]],
                                 uint lane [[thread_index_in_simdgroup]],
                                 uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gemm<false, true>(packed, sb, x, y, rows, cols, group_size, M, resid, tile, lane, simdgroup);
}

// y[m, r] = sum over c of w[r, c] * x[m, c]; w interleaved
//
// Slots: 0 packed, 1 sb, 3 x bf16 [M, cols], 4 y f32 [M, rows], 5 rows, 6 cols, 7 group_size, 8 M.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemm_q4_mlx_simd_i4(device const uint2* packed [[buffer(0)]],
                                device const bfloat2* sb [[buffer(1)]],
                                device const bfloat4* x [[buffer(3)]],
                                device float* y [[buffer(4)]],
                                constant uint& rows [[buffer(5)]],
                                constant uint& cols [[buffer(6)]],
                                constant uint& group_size [[buffer(7)]],
                                constant uint& M [[buffer(8)]],
                                uint tile [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gemm<true, false>(packed, sb, x, y, rows, cols, group_size, M, y, tile, lane, simdgroup);
}

// y[m, r] = resid[m, r] + sum over c of w[r, c] * x[m, c]; w interleaved
//
// Slots: 0 packed, 1 sb, 3 x bf16 [M, cols], 4 y f32 [M, rows], 5 rows, 6 cols, 7 group_size, 8 M, 9 resid f32 [M, rows],
//        may be y.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemm_q4_mlx_simd_add_i4(device const uint2* packed [[buffer(0)]],
                                    device const bfloat2* sb [[buffer(1)]],
                                    device const bfloat4* x [[buffer(3)]],
                                    device float* y [[buffer(4)]],
                                    constant uint& rows [[buffer(5)]],
                                    constant uint& cols [[buffer(6)]],
                                    constant uint& group_size [[buffer(7)]],
                                    constant uint& M [[buffer(8)]],
                                    device const float* resid [[buffer(9)]],
                                    uint tile [[threadgroup_position_in_grid]],
                                    uint lane [[thread_index_in_simdgroup]],
                                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gemm<true, true>(packed, sb, x, y, rows, cols, group_size, M, resid, tile, lane, simdgroup);
}
#line 1 "gemm_weights.metal"
// Products of many rows with weights of any type on simdgroup matrices. A threadgroup turns a block of weights into float32 numbers
// once for all rows of its tile.

#line 5 "gemm_weights.metal"
#line 6 "gemm_weights.metal"
#line 7 "gemm_weights.metal"
#line 8 "gemm_weights.metal"

#define INGOT_GEMM_WEIGHTS_COLS 64   // rows of weights, which are columns of the result, in a tile
#define INGOT_GEMM_WEIGHTS_STEP 32   // columns of weights that a threadgroup holds at a time
#define INGOT_GEMM_WEIGHTS_LD 36     // floats from one row to the next there: a step, and a pad against conflicts of banks

// Function constant: the type of x, as those of out; see gemm_dense.h.
constant uint ingot_gemm_weights_x [[function_constant(108)]];

// What a threadgroup holds of x and of w at a time, each in rows of INGOT_GEMM_WEIGHTS_LD floats. A thread copies the same part of each
// step, which it knows from ingot_weights_begin on; rows past the last one are copies of that one, whose results are not stored.

// Four columns of some rows of x, whose rows start at multiples of four elements, and which has whole steps.
template <uint SIDE>
struct ingot_x_rows {
    device const uchar* row[4];
};

// Elements of x, by their bytes: which of the types they are of is a function constant.
INGOT_FUNC uint ingot_weights_x_size() { return ingot_gemm_weights_x == INGOT_OUT_F32 ? 4u : 2u; }

template <uint SIDE>
INGOT_FUNC void ingot_weights_begin_x(thread ingot_x_rows<SIDE>& s, device const uchar* x, uint M, uint K, uint first, uint tid) {
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        uint row = min(first + tid / 8u + i * (8u * SIDE), M - 1u);
        s.row[i] = x + (ulong(row) * ulong(K) + ulong(tid % 8u * 4u)) * ulong(ingot_weights_x_size());
    }
}

template <uint SIDE>
INGOT_FUNC void ingot_weights_stage_x(thread const ingot_x_rows<SIDE>& s, threadgroup float* to, uint k0, uint tid) {
    to += tid / 8u * uint(INGOT_GEMM_WEIGHTS_LD) + tid % 8u * 4u;
    ulong at = ulong(k0) * ulong(ingot_weights_x_size());
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float4 v;
        if (ingot_gemm_weights_x == INGOT_OUT_F16) {
            v = float4(*(device const half4*)(s.row[i] + at));
        } else if (ingot_gemm_weights_x == INGOT_OUT_BF16) {
            v = as_type<float4>(uint4(*(device const ushort4*)(s.row[i] + at)) << 16u);
        } else {
            v = *(device const float4*)(s.row[i] + at);
        }
        *(threadgroup float4*)(to + i * (8u * SIDE * uint(INGOT_GEMM_WEIGHTS_LD))) = v;
    }
}

// x that starts anywhere and has any number of columns, those past the last as zeros.
template <uint SIDE>
INGOT_FUNC void ingot_weights_stage_any_x(threadgroup float* to, device const uchar* x, uint M, uint K, uint row, uint k0, bool wide, uint tid) {
    constexpr uint ROWS = SIDE * uint(INGOT_GEMM_PART);
    if (ingot_gemm_weights_x == INGOT_OUT_F16) {
        ingot_gemm_stage<float, half, ROWS, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, 64u * SIDE>(
            to, (device const half*)x, M, K, row, k0, wide, tid);
    } else if (ingot_gemm_weights_x == INGOT_OUT_BF16) {
        ingot_gemm_stage<float, bfloat, ROWS, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, 64u * SIDE>(
            to, (device const bfloat*)x, M, K, row, k0, wide, tid);
    } else {
        ingot_gemm_stage<float, float, ROWS, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, 64u * SIDE>(
            to, (device const float*)x, M, K, row, k0, wide, tid);
    }
}

// Weights in a block format, of which there are whole steps, and x: 16 of each 32 columns of one or two rows of weights, half a run of
// weights.h or a whole one.
template <typename W, uint SIDE>
struct ingot_blocks_tile {
    enum { side = SIDE };
    ingot_x_rows<SIDE> x;
    device const uchar* row[2 / SIDE];
};

template <typename W, uint SIDE>
INGOT_FUNC void ingot_weights_begin(thread ingot_blocks_tile<W, SIDE>& s, device const uchar* x, device const uchar* w, uint M, uint N, uint K,
                                    uint row0, uint col0, uint tid) {
    ingot_weights_begin_x(s.x, x, M, K, row0, tid);
    ulong bytes = ingot_row_bytes<W>(K);
#pragma unroll
    for (uint i = 0u; i < 2u / SIDE; i++) {
        s.row[i] = w + ulong(min(col0 + tid / 2u + i * 32u, N - 1u)) * bytes;
    }
}

template <typename W, uint SIDE>
INGOT_FUNC void ingot_weights_stage(thread const ingot_blocks_tile<W, SIDE>& s, threadgroup float* to_x, threadgroup float* to_w,
                                    device const uchar* x, device const uchar*, uint M, uint, uint K, uint row0, uint, uint k0, uint tid) {
    if (ingot_dense_wide_a) {
        ingot_weights_stage_x(s.x, to_x, k0, tid);
    } else {
        ingot_weights_stage_any_x<SIDE>(to_x, x, M, K, row0, k0, false, tid);
    }
    uint col = tid % 2u * 16u;
    to_w += tid / 2u * uint(INGOT_GEMM_WEIGHTS_LD) + col;
#pragma unroll
    for (uint i = 0u; i < 2u / SIDE; i++) {
        W place;
        ingot_seek(place, s.row[i], (k0 + col) / uint(W::values));
        uint quad = col % uint(W::values) / 4u;
#pragma unroll
        for (uint q = 0u; q < 4u; q++) {
            *(threadgroup float4*)(to_w + i * (32u * uint(INGOT_GEMM_WEIGHTS_LD)) + 4u * q) = ingot_quad(place, quad + q);
        }
    }
}

// Weights that are numbers of type T, and x: both with any start and any number of columns. If there are whole steps, and all rows
// start at multiples of four elements, a thread copies four columns of some rows of both.
template <typename T, uint SIDE>
struct ingot_numbers_tile {
    enum { side = SIDE };
    ingot_x_rows<SIDE> x;
    device const T* row[8 / SIDE];
    bool wide_x;
    bool wide_w;
};

template <typename T, uint SIDE>
INGOT_FUNC void ingot_weights_begin(thread ingot_numbers_tile<T, SIDE>& s, device const uchar* x, device const uchar* w, uint M, uint N, uint K,
                                    uint row0, uint col0, uint tid) {
    s.wide_x = ingot_dense_rows(ingot_dense_wide_a, K, 0u);
    s.wide_w = ingot_dense_rows(ingot_dense_wide_b, K, 0u);
    ingot_weights_begin_x(s.x, x, M, K, row0, tid);
#pragma unroll
    for (uint i = 0u; i < 8u / SIDE; i++) {
        uint row = min(col0 + tid / 8u + i * (8u * SIDE), N - 1u);
        s.row[i] = (device const T*)w + (ulong(row) * ulong(K) + ulong(tid % 8u * 4u));
    }
}

template <typename T, uint SIDE>
INGOT_FUNC void ingot_weights_stage(thread const ingot_numbers_tile<T, SIDE>& s, threadgroup float* to_x, threadgroup float* to_w,
                                    device const uchar* x, device const uchar* w, uint M, uint N, uint K, uint row0, uint col0, uint k0,
                                    uint tid) {
    if (s.wide_x && s.wide_w && K % uint(INGOT_GEMM_WEIGHTS_STEP) == 0u) {
        typedef vec<T, 4> T4;
        ingot_weights_stage_x(s.x, to_x, k0, tid);
        to_w += tid / 8u * uint(INGOT_GEMM_WEIGHTS_LD) + tid % 8u * 4u;
#pragma unroll
        for (uint i = 0u; i < 8u / SIDE; i++) {
            *(threadgroup float4*)(to_w + i * (8u * SIDE * uint(INGOT_GEMM_WEIGHTS_LD))) = float4(*(device const T4*)(s.row[i] + ulong(k0)));
        }
        return;
    }
    ingot_weights_stage_any_x<SIDE>(to_x, x, M, K, row0, k0, s.wide_x, tid);
    ingot_gemm_stage<float, T, INGOT_GEMM_WEIGHTS_COLS, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, 64u * SIDE>(
        to_w, (device const T*)w, N, K, col0, k0, s.wide_w, tid);
}

// out[m][n] = act(alpha * sum over k of x[m][k] * w[n][k] + beta * c[m][n] + bias[n]), m < M, n < N, k < K
//
// Weights and x are f32 in the tile, each exactly what its type says. Sums are f32, eight products of k at a time in order, zeros after
// the last: what an element is does not depend on M, N, its place or the other elements, nor on the kernel of the two that
// computes it. It is what gemm_dense_f32 gives for the same numbers.
//
// Kernels: gemm_weights_{f32,f16,bf16,q4_0,q5_0,q8_0,iq4_nl,q4_K,q5_K,q6_K}_t{32,64}, by the type of w and the rows of x in a
// tile.
// Function constants: see gemm_dense.h, and above.
//
// Slots: 0 x f32, f16 or bf16 [M, K], 1 w [N, K], in blocks aligned as weights.h says, 2 out f32, f16 or bf16 [M, N], 3 M, 4 N,
//        5 K, 8 bias f32 [N], 9 alpha f32, 10 beta f32, 11 c as out, may be out. bias and c are bound but not read if their
//        function constants are false.
// Geometry: ceil(N / 64) x ceil(M / tile) threadgroups of two simdgroups for each 32 rows of a tile.
// Threadgroup memory: 13,824 bytes with tiles of 32, 18,432 with tiles of 64.
template <typename T>
kernel void gemm_weights(device const uchar* x [[buffer(0)]],
                         device const uchar* w [[buffer(1)]],
                         device uchar* out [[buffer(2)]],
                         constant uint& M [[buffer(3)]],
                         constant uint& N [[buffer(4)]],
                         constant uint& K [[buffer(5)]],
                         device const float* bias [[buffer(8)]],
                         constant float& alpha [[buffer(9)]],
                         constant float& beta [[buffer(10)]],
                         device const uchar* c [[buffer(11)]],
                         uint2 tile [[threadgroup_position_in_grid]],
                         uint tid [[thread_index_in_threadgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
    constexpr uint TILE = uint(T::side) * uint(INGOT_GEMM_PART);
    threadgroup float4 memory[(TILE + uint(INGOT_GEMM_WEIGHTS_COLS)) * uint(INGOT_GEMM_WEIGHTS_LD) / 4u];
    threadgroup float* block_x = (threadgroup float*)memory;
    threadgroup float* block_w = block_x + TILE * uint(INGOT_GEMM_WEIGHTS_LD);

    uint row0 = tile.y * TILE;
    uint col0 = tile.x * uint(INGOT_GEMM_WEIGHTS_COLS);
    if (row0 >= M || col0 >= N) {
        return;
    }
    uint part_row = simdgroup / 2u * uint(INGOT_GEMM_PART);
    uint part_col = simdgroup % 2u * uint(INGOT_GEMM_PART);
    T part;
    ingot_weights_begin(part, x, w, M, N, K, row0, col0, tid);

    simdgroup_float8x8 sum[4][4];
    ingot_gemm_zero(sum);
    for (uint k0 = 0u; k0 < K; k0 += uint(INGOT_GEMM_WEIGHTS_STEP)) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the block before has been used
        ingot_weights_stage(part, block_x, block_w, x, w, M, N, K, row0, col0, k0, tid);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ingot_gemm_multiply<float, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, INGOT_GEMM_WEIGHTS_LD>(
            sum, block_x, block_w, part_row, part_col, false, true);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ingot_gemm_finish(sum, (threadgroup float*)memory, simdgroup, lane, row0 + part_row, col0 + part_col, M, N, out, 0ul, c, 0ul,
                      alpha, beta, bias);
}

typedef decltype(gemm_weights<ingot_blocks_tile<ingot_q4_0, 1>>) gemm_of_weights;

template [[host_name("gemm_weights_q4_0_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q4_0, 1>>;
template [[host_name("gemm_weights_q4_0_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q4_0, 2>>;
template [[host_name("gemm_weights_q5_0_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q5_0, 1>>;
template [[host_name("gemm_weights_q5_0_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q5_0, 2>>;
template [[host_name("gemm_weights_q8_0_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q8_0, 1>>;
template [[host_name("gemm_weights_q8_0_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q8_0, 2>>;
template [[host_name("gemm_weights_iq4_nl_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_iq4_nl, 1>>;
template [[host_name("gemm_weights_iq4_nl_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_iq4_nl, 2>>;
template [[host_name("gemm_weights_q4_K_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q4_k, 1>>;
template [[host_name("gemm_weights_q4_K_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q4_k, 2>>;
template [[host_name("gemm_weights_q5_K_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q5_k, 1>>;
template [[host_name("gemm_weights_q5_K_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q5_k, 2>>;
template [[host_name("gemm_weights_q6_K_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q6_k, 1>>;
template [[host_name("gemm_weights_q6_K_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q6_k, 2>>;
template [[host_name("gemm_weights_f32_t32")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<float, 1>>;
template [[host_name("gemm_weights_f32_t64")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<float, 2>>;
template [[host_name("gemm_weights_f16_t32")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<half, 1>>;
template [[host_name("gemm_weights_f16_t64")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<half, 2>>;
template [[host_name("gemm_weights_bf16_t32")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<bfloat, 1>>;
template [[host_name("gemm_weights_bf16_t64")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<bfloat, 2>>;
#line 1 "gemv_dense.metal"
// Products of dense matrices and vectors.

#line 4 "gemv_dense.metal"
#line 5 "gemv_dense.metal"

#define INGOT_GEMV_ROWS 4       // rows that a simdgroup computes together
#define INGOT_GEMV_SIMDGROUPS 2 // of a threadgroup
#define INGOT_GEMV_BLOCK 128    // columns that a simdgroup reads at a time, four for each lane

// Elements of a matrix or a vector, widened: exact. bf16 is read as its bits.
INGOT_FUNC float ingot_gemv_wide(float x) { return x; }
INGOT_FUNC float ingot_gemv_wide(half x) { return float(x); }
INGOT_FUNC float ingot_gemv_wide(ushort x) { return ingot_from_bf16_bits(x); }
INGOT_FUNC float4 ingot_gemv_wide(float4 x) { return x; }
INGOT_FUNC float4 ingot_gemv_wide(half4 x) { return float4(x); }
INGOT_FUNC float4 ingot_gemv_wide(ushort4 x) { return as_type<float4>(uint4(x) << 16u); }

// Elements col to col + 3 of n, zeros for those behind its end, which are not read. wide says that n is a
// multiple of four and the first one starts at a multiple of four elements.
template <typename T>
INGOT_FUNC float4 ingot_gemv_load(device const T* from, uint col, uint n, bool wide) {
    float4 x = float4(0.0f);
    if (col >= n) {
        return x;
    }
    if (wide) {
        return ingot_gemv_wide(*(device const vec<T, 4>*)(from + col));
    }
    uint left = n - col;
    x.x = ingot_gemv_wide(from[col]);
    if (left > 1u) {
        x.y = ingot_gemv_wide(from[col + 1u]);
    }
    if (left > 2u) {
        x.z = ingot_gemv_wide(from[col + 2u]);
    }
    if (left > 3u) {
        x.w = ingot_gemv_wide(from[col + 3u]);
    }
    return x;
}

// y[i][r] = act(alpha * sum over k of w[i][r][k] * x[i][k] + beta * c[i][r] + bias[r]), r < rows, k < cols
//
// Sums are f32: a lane's four products of 128 in order, then those of the lanes. What a row gives does not depend on the
// other rows.
//
// Kernels: gemv_dense_{f32,f16,bf16}, by the type T of w and x, where bf16 are read as their bits.
// Function constants: wide_a for x, wide_b for w and those of what follows the sums; see gemm_dense.h. y and c have a type
// of their own.
//
// Slots: 0 x T [cols], 1 w T [rows, cols], 2 y f32, f16 or bf16 [rows], 4 rows, 5 cols, 6 and 7 elements from one x and w of
//        the batch to the next, 8 bias f32 [rows], 9 alpha f32, 10 beta f32, 11 c as y, may be y, 12 and 13 elements from one c
//        and y to the next. bias and c are bound but not read if their function constants are false, x and w if cols is 0.
// Geometry: ceil(rows / 8) x batch threadgroups of 64 threads, two simdgroups with four rows each.
// Threadgroup memory: none.
template <typename T>
kernel void gemv_dense(device const T* x [[buffer(0)]],
                       device const T* w [[buffer(1)]],
                       device uchar* y [[buffer(2)]],
                       constant uint& rows [[buffer(4)]],
                       constant uint& cols [[buffer(5)]],
                       constant uint& stride_x [[buffer(6)]],
                       constant uint& stride_w [[buffer(7)]],
                       device const float* bias [[buffer(8)]],
                       constant float& alpha [[buffer(9)]],
                       constant float& beta [[buffer(10)]],
                       device const uchar* c [[buffer(11)]],
                       constant uint& stride_c [[buffer(12)]],
                       constant uint& stride_y [[buffer(13)]],
                       uint2 tile [[threadgroup_position_in_grid]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
    uint row0 = (tile.x * uint(INGOT_GEMV_SIMDGROUPS) + simdgroup) * uint(INGOT_GEMV_ROWS);
    if (row0 >= rows) {
        return;
    }
    x += ulong(tile.y) * ulong(stride_x);
    w += ulong(tile.y) * ulong(stride_w);
    device const T* line[INGOT_GEMV_ROWS];
    float sum[INGOT_GEMV_ROWS];
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_GEMV_ROWS); r++) {
        uint at = row0 + r < rows ? row0 + r : rows - 1u; // what is not there is not stored
        line[r] = w + ulong(at) * ulong(cols);
        sum[r] = 0.0f;
    }
    bool wide_x = ingot_dense_rows(ingot_dense_wide_a, cols, stride_x);
    bool wide_w = ingot_dense_rows(ingot_dense_wide_b, cols, stride_w);
    for (uint k = 4u * lane; k < cols; k += uint(INGOT_GEMV_BLOCK)) {
        float4 v = ingot_gemv_load(x, k, cols, wide_x);
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_GEMV_ROWS); r++) {
            float4 m = ingot_gemv_load(line[r], k, cols, wide_w);
            sum[r] = fma(m.w, v.w, fma(m.z, v.z, fma(m.y, v.y, fma(m.x, v.x, sum[r]))));
        }
    }
    ulong first_c = ulong(tile.y) * ulong(stride_c);
    ulong first_y = ulong(tile.y) * ulong(stride_y);
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_GEMV_ROWS); r++) {
        float total = simd_sum(sum[r]);
        uint at = row0 + r;
        if (lane == r && at < rows) {
            float v = ingot_dense_finish(total, alpha, beta, c, first_c + ulong(at), bias, at);
            ingot_dense_store(y, first_y + ulong(at), v);
        }
    }
}

#define INGOT_GEMV_T_COLS 128      // results of a threadgroup, four for each lane
#define INGOT_GEMV_T_SIMDGROUPS 8  // of a threadgroup, at most

// y[i][r] = act(alpha * sum over k of w[i][k][r] * x[i][k] + beta * c[i][r] + bias[r]), r < rows, k < cols: w is transposed
//
// Sums are f32. A simdgroup takes every so many-th k, in order, then their sums are added in the order of the simdgroups. What
// a row gives does not depend on the other rows.
//
// Kernels: gemv_dense_t_{f32,f16,bf16}. Function constants: as gemv_dense, without wide_a.
//
// Slots: as gemv_dense, but 1 w T [cols, rows].
// Geometry: ceil(rows / 128) x batch threadgroups of up to eight simdgroups, each with the same rows.
// Threadgroup memory: 4,096 bytes.
template <typename T>
kernel void gemv_dense_t(device const T* x [[buffer(0)]],
                         device const T* w [[buffer(1)]],
                         device uchar* y [[buffer(2)]],
                         constant uint& rows [[buffer(4)]],
                         constant uint& cols [[buffer(5)]],
                         constant uint& stride_x [[buffer(6)]],
                         constant uint& stride_w [[buffer(7)]],
                         device const float* bias [[buffer(8)]],
                         constant float& alpha [[buffer(9)]],
                         constant float& beta [[buffer(10)]],
                         device const uchar* c [[buffer(11)]],
                         constant uint& stride_c [[buffer(12)]],
                         constant uint& stride_y [[buffer(13)]],
                         uint2 tile [[threadgroup_position_in_grid]],
                         uint2 place [[thread_position_in_threadgroup]],
                         uint2 threads [[threads_per_threadgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint simdgroups [[simdgroups_per_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float4 partial[INGOT_GEMV_T_SIMDGROUPS * INGOT_GEMV_T_COLS / 4];
    uint row0 = tile.x * uint(INGOT_GEMV_T_COLS);
    x += ulong(tile.y) * ulong(stride_x);
    w += ulong(tile.y) * ulong(stride_w);
    bool wide = ingot_dense_rows(ingot_dense_wide_b, rows, stride_w);
    float4 sum = float4(0.0f);
    for (uint k = simdgroup; k < cols; k += simdgroups) {
        float4 m = ingot_gemv_load(w + ulong(k) * ulong(rows), row0 + 4u * lane, rows, wide);
        float4 v = float4(ingot_gemv_wide(x[k]));
        sum = fma(m, v, sum);
    }
    partial[simdgroup * (uint(INGOT_GEMV_T_COLS) / 4u) + lane] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ulong first_c = ulong(tile.y) * ulong(stride_c);
    ulong first_y = ulong(tile.y) * ulong(stride_y);
    threadgroup const float* parts = (threadgroup const float*)partial;
    for (uint i = place.x; i < uint(INGOT_GEMV_T_COLS); i += threads.x) {
        uint at = row0 + i;
        if (at < rows) {
            float total = parts[i];
            for (uint s = 1u; s < simdgroups; s++) {
                total = total + parts[s * uint(INGOT_GEMV_T_COLS) + i];
            }
            float v = ingot_dense_finish(total, alpha, beta, c, first_c + ulong(at), bias, at);
            ingot_dense_store(y, first_y + ulong(at), v);
        }
    }
}

typedef decltype(gemv_dense<float>) gemv_dense_f32;
typedef decltype(gemv_dense<half>) gemv_dense_f16;
typedef decltype(gemv_dense<ushort>) gemv_dense_bf16;
typedef decltype(gemv_dense_t<float>) gemv_dense_t_f32;
typedef decltype(gemv_dense_t<half>) gemv_dense_t_f16;
typedef decltype(gemv_dense_t<ushort>) gemv_dense_t_bf16;

template [[host_name("gemv_dense_f32")]] kernel gemv_dense_f32 gemv_dense<float>;
template [[host_name("gemv_dense_f16")]] kernel gemv_dense_f16 gemv_dense<half>;
template [[host_name("gemv_dense_bf16")]] kernel gemv_dense_bf16 gemv_dense<ushort>;
template [[host_name("gemv_dense_t_f32")]] kernel gemv_dense_t_f32 gemv_dense_t<float>;
template [[host_name("gemv_dense_t_f16")]] kernel gemv_dense_t_f16 gemv_dense_t<half>;
template [[host_name("gemv_dense_t_bf16")]] kernel gemv_dense_t_bf16 gemv_dense_t<ushort>;
#line 1 "gemv_q4.metal"
// Matrix-vector products with signed 4-bit weights with zero points.
//
// A bank of [rows, cols] weights: w[r, c] = scale * (q - zero), a scale and a zero point for each group_size columns of a row.
//   packed  uint32 words [rows, cols / 8], eight codes each in two's complement, the lowest bits first
//   scales  f32 [rows, cols / group_size], zeros likewise
// group_size is a multiple of 8 and divides cols. The lanes take a word at a time, whose columns contribute
// scale * (sum(q * x) - zero * sum(x)).

#line 10 "gemv_q4.metal"
#line 11 "gemv_q4.metal"

#define INGOT_Q4S_ROWS 4           // rows that a simdgroup of gemv_q4 computes at once
#define INGOT_Q4S_GROUP_ROWS 8u    // rows of its threadgroup: two simdgroups

// The sum over the eight codes of w of code * x
INGOT_FUNC float ingot_q4s_dot8(uint w, thread const float* x) {
    float dot = 0.0f;
#pragma unroll
    for (uint i = 0u; i < 8u; i++) {
        dot = fma(x[i], float(int(w << (28u - 4u * i)) >> 28), dot);
    }
    return dot;
}

// x[0..7] = from[0..7]; gives their sum
INGOT_FUNC float ingot_q4s_load8(device const float* from, thread float* x) {
    float total = 0.0f;
#pragma unroll
    for (uint i = 0u; i < 8u; i++) {
        x[i] = from[i];
        total += x[i];
    }
    return total;
}

// y[r] = sum over c of w[r, c] * x[c]
//
// Slots: 0 packed, 1 scales, 2 zeros, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 8) threadgroups of 64 threads; a simdgroup computes four rows. Threadgroup memory: none.
kernel void gemv_q4(device const uint* packed [[buffer(0)]],
                    device const float* scales [[buffer(1)]],
                    device const float* zeros [[buffer(2)]],
                    device const float* x [[buffer(3)]],
                    device float* y [[buffer(4)]],
                    constant uint& rows [[buffer(5)]],
                    constant uint& cols [[buffer(6)]],
                    constant uint& group_size [[buffer(7)]],
                    uint tile [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    uint row0 = tile * INGOT_Q4S_GROUP_ROWS + simdgroup * uint(INGOT_Q4S_ROWS);
    if (row0 >= rows) {
        return;
    }
    ulong row_words = ulong(cols / 8u);
    ulong row_groups = ulong(cols / group_size);
    ulong at[INGOT_Q4S_ROWS];
    float sum[INGOT_Q4S_ROWS];
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_Q4S_ROWS); r++) {
        at[r] = ulong(row0) + ulong(r);
        if (at[r] >= ulong(rows)) {
            at[r] = ulong(rows) - 1ul; // stands in for rows past the end
        }
        sum[r] = 0.0f;
    }
    for (uint col = lane * 8u; col < cols; col += 256u) {
        float xs[8];
        float total = ingot_q4s_load8(x + ulong(col), xs);
        ulong word = ulong(col / 8u);
        ulong g = ulong(col / group_size);
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4S_ROWS); r++) {
            ulong group = at[r] * row_groups + g;
            float dot = ingot_q4s_dot8(packed[at[r] * row_words + word], xs);
            sum[r] = fma(scales[group], fma(-zeros[group], total, dot), sum[r]);
        }
    }
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_Q4S_ROWS); r++) {
        float v = simd_sum(sum[r]);
        if (lane == 0u && r < rows - row0) {
            y[ulong(row0) + ulong(r)] = v;
        }
    }
}

// y[r] = sum over c of w[r, c] * x[c], with all threads of a threadgroup on one row
//
// Slots: 0 packed, 1 scales, 2 zeros, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: a threadgroup per row, of whole simdgroups, 128 threads. Threadgroup memory: 128 bytes, static.
kernel void gemv_q4_tiled(device const uint* packed [[buffer(0)]],
                          device const float* scales [[buffer(1)]],
                          device const float* zeros [[buffer(2)]],
                          device const float* x [[buffer(3)]],
                          device float* y [[buffer(4)]],
                          constant uint& rows [[buffer(5)]],
                          constant uint& cols [[buffer(6)]],
                          constant uint& group_size [[buffer(7)]],
                          uint row [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]],
                          uint threads [[threads_per_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]],
                          uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float scratch[INGOT_MAX_SIMDGROUPS];
    if (row >= rows) {
        return;
    }
    device const uint* words = packed + ulong(row) * ulong(cols / 8u);
    ulong first_group = ulong(row) * ulong(cols / group_size);
    float sum = 0.0f;
    for (uint word = thread_index; word < cols / 8u; word += threads) {
        float xs[8];
        float total = ingot_q4s_load8(x + ulong(word) * 8ul, xs);
        ulong group = first_group + ulong(word * 8u / group_size);
        float dot = ingot_q4s_dot8(words[word], xs);
        sum = fma(scales[group], fma(-zeros[group], total, dot), sum);
    }
    sum = ingot_row_sum(sum, scratch, lane, simdgroup, simdgroups);
    if (thread_index == 0u) {
        y[row] = sum;
    }
}
#line 1 "gemv_q4_mlx.metal"
// Matrix-vector products with MLX 4-bit affine weights in row-major order and a bf16 vector; see q4_mlx.h for the layout and the
// algorithm.
//
// In all kernels a simdgroup computes four rows and a threadgroup of 64 threads eight; packed is read as pairs of words,
// so banks and x start at a multiple of 8 bytes. No threadgroup memory.

#line 8 "gemv_q4_mlx.metal"
#line 1 "q4_mlx_simd.h"
// What the kernels with a simdgroup for each four rows do after the sums, for both layouts of a bank; see q4_mlx.h.

#ifndef INGOT_Q4_MLX_SIMD_H
#define INGOT_Q4_MLX_SIMD_H

#line 7 "q4_mlx_simd.h"
#line 8 "q4_mlx_simd.h"
#line 9 "q4_mlx_simd.h"

// y[r] = w[r] . x for the four rows of a simdgroup
template <bool I4>
INGOT_FUNC void ingot_q4_gemv(device const uint2* packed, device const bfloat2* sb, device const bfloat4* x,
                              device float* y, uint rows, uint cols, uint group_size, uint tile, uint lane,
                              uint simdgroup) {
    uint row0 = tile * INGOT_Q4_GROUP_ROWS + simdgroup * uint(INGOT_Q4_ROWS);
    if (row0 >= rows) {
        return;
    }
    float sum[INGOT_Q4_ROWS];
    ingot_q4_rows<I4>(packed, sb, x, rows, cols, group_size, row0, lane, sum);
    if (lane == 0u) {
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            if (r < rows - row0) {
                y[ulong(row0) + ulong(r)] = sum[r];
            }
        }
    }
}

// y[r] = resid[r] + w[r] . x; resid may be y
template <bool I4>
INGOT_FUNC void ingot_q4_gemv_add(device const uint2* packed, device const bfloat2* sb, device const bfloat4* x,
                                  device float* y, uint rows, uint cols, uint group_size, device const float* resid,
                                  uint tile, uint lane, uint simdgroup) {
    uint row0 = tile * INGOT_Q4_GROUP_ROWS + simdgroup * uint(INGOT_Q4_ROWS);
    if (row0 >= rows) {
        return;
    }
    float sum[INGOT_Q4_ROWS];
    ingot_q4_rows<I4>(packed, sb, x, rows, cols, group_size, row0, lane, sum);
    if (lane == 0u) {
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            if (r < rows - row0) {
                ulong at = ulong(row0) + ulong(r);
                y[at] = resid[at] + sum[r];
            }
        }
    }
}

// mid[r] = gelu(gate[r] . x) * (up[r] . x), stored as f32 or, if mid_bf16 is not 0, as bf16
template <bool I4>
INGOT_FUNC void ingot_q4_gate_up(device const uint2* gate_packed, device const bfloat2* gate_sb,
                                 device const uint2* up_packed, device const bfloat2* up_sb, device const bfloat4* x,
                                 device bfloat* mid, uint rows, uint cols, uint group_size, uint mid_bf16, uint tile,
                                 uint lane, uint simdgroup) {
    uint row0 = tile * INGOT_Q4_GROUP_ROWS + simdgroup * uint(INGOT_Q4_ROWS);
    if (row0 >= rows) {
        return;
    }
    float gate[INGOT_Q4_ROWS];
    float up[INGOT_Q4_ROWS];
    ingot_q4_rows<I4>(gate_packed, gate_sb, x, rows, cols, group_size, row0, lane, gate);
    ingot_q4_rows<I4>(up_packed, up_sb, x, rows, cols, group_size, row0, lane, up);
    if (lane == 0u) {
        device float* mid32 = (device float*)mid;
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            if (r < rows - row0) {
                float value = ingot_gelu(gate[r]) * up[r];
                ulong at = ulong(row0) + ulong(r);
                if (mid_bf16 != 0u) {
                    mid[at] = bfloat(value);
                } else {
                    mid32[at] = value;
                }
            }
        }
    }
}

#endif
#line 9 "gemv_q4_mlx.metal"

// y[r] = sum over c of w[r, c] * x[c]
//
// Slots: 0 packed, 1 sb, 3 x bf16 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemv_q4_mlx_simd(device const uint2* packed [[buffer(0)]],
                             device const bfloat2* sb [[buffer(1)]],
                             device const bfloat4* x [[buffer(3)]],
                             device float* y [[buffer(4)]],
                             constant uint& rows [[buffer(5)]],
                             constant uint& cols [[buffer(6)]],
                             constant uint& group_size [[buffer(7)]],
                             uint tile [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gemv<false>(packed, sb, x, y, rows, cols, group_size, tile, lane, simdgroup);
}

// y[r] = resid[r] + sum over c of w[r, c] * x[c]
//
// Slots: 0 packed, 1 sb, 3 x bf16 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size, 8 resid f32 [rows], may be y.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemv_q4_mlx_simd_add(device const uint2* packed [[buffer(0)]],
                                 device const bfloat2* sb [[buffer(1)]],
                                 device const bfloat4* x [[buffer(3)]],
                                 device float* y [[buffer(4)]],
                                 constant uint& rows [[buffer(5)]],
                                 constant uint& cols [[buffer(6)]],
                                 constant uint& group_size [[buffer(7)]],
                                 device const float* resid [[buffer(8)]],
                                 uint tile [[threadgroup_position_in_grid]],
                                 uint lane [[thread_index_in_simdgroup]],
                                 uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gemv_add<false>(packed, sb, x, y, rows, cols, group_size, resid, tile, lane, simdgroup);
}

// k = Wk x, v = Wv x in one launch; both of the same shape.
//
// Slots: 0 k packed, 1 k sb, 3 v packed, 4 v sb, 6 x bf16 [cols], 7 k f32 [rows], 8 v f32 [rows], 9 rows, 10 cols,
//        11 group_size, 12 tiles_k = ceil(rows / 8).
// Geometry: 2 tiles_k threadgroups of 64 threads; each works on one matrix, exactly as gemv_q4_mlx_simd does.
kernel void gemv_q4_mlx_simd_kv(device const uint2* k_packed [[buffer(0)]],
                                device const bfloat2* k_sb [[buffer(1)]],
                                device const uint2* v_packed [[buffer(3)]],
                                device const bfloat2* v_sb [[buffer(4)]],
                                device const bfloat4* x [[buffer(6)]],
                                device float* k [[buffer(7)]],
                                device float* v [[buffer(8)]],
                                constant uint& rows [[buffer(9)]],
                                constant uint& cols [[buffer(10)]],
                                constant uint& group_size [[buffer(11)]],
                                constant uint& tiles_k [[buffer(12)]],
                                uint tile [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    device const uint2* packed = k_packed;
    device const bfloat2* sb = k_sb;
    device float* y = k;
    if (tile >= tiles_k) {
        tile -= tiles_k;
        packed = v_packed;
        sb = v_sb;
        y = v;
    }
    ingot_q4_gemv<false>(packed, sb, x, y, rows, cols, group_size, tile, lane, simdgroup);
}

// q = Wq x, k = Wk x, v = Wv x in one launch; k and v have the same shape.
//
// Slots: 0 q packed, 1 q sb, 2 k packed, 3 k sb, 4 v packed, 5 v sb, 6 x bf16 [cols], 7 q f32 [rows_q], 8 k f32 [rows_kv],
//        9 v f32 [rows_kv], 10 rows_q, 11 rows_kv, 12 cols, 13 group_size, 14 tiles_q = ceil(rows_q / 8),
//        15 tiles_kv = ceil(rows_kv / 8).
// Geometry: tiles_q + 2 tiles_kv threadgroups of 64 threads; each works on one matrix, exactly as gemv_q4_mlx_simd does.
kernel void gemv_q4_mlx_simd_qkv(device const uint2* q_packed [[buffer(0)]],
                                 device const bfloat2* q_sb [[buffer(1)]],
                                 device const uint2* k_packed [[buffer(2)]],
                                 device const bfloat2* k_sb [[buffer(3)]],
                                 device const uint2* v_packed [[buffer(4)]],
                                 device const bfloat2* v_sb [[buffer(5)]],
                                 device const bfloat4* x [[buffer(6)]],
                                 device float* q [[buffer(7)]],
                                 device float* k [[buffer(8)]],
                                 device float* v [[buffer(9)]],
                                 constant uint& rows_q [[buffer(10)]],
                                 constant uint& rows_kv [[buffer(11)]],
                                 constant uint& cols [[buffer(12)]],
                                 constant uint& group_size [[buffer(13)]],
                                 constant uint& tiles_q [[buffer(14)]],
                                 constant uint& tiles_kv [[buffer(15)]],
                                 uint tile [[threadgroup_position_in_grid]],
                                 uint lane [[thread_index_in_simdgroup]],
                                 uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    device const uint2* packed = q_packed;
    device const bfloat2* sb = q_sb;
    device float* y = q;
    uint rows = rows_q;
    if (tile >= tiles_q) {
        tile -= tiles_q;
        rows = rows_kv;
        if (tile < tiles_kv) {
            packed = k_packed;
            sb = k_sb;
            y = k;
        } else {
            tile -= tiles_kv;
            packed = v_packed;
            sb = v_sb;
            y = v;
        }
    }
    ingot_q4_gemv<false>(packed, sb, x, y, rows, cols, group_size, tile, lane, simdgroup);
}

// mid[r] = gelu(gate[r]) * up[r], gate = Wg x, up = Wu x; as f32, or as bf16 if mid_bf16 is not 0
//
// Slots: 0 gate packed, 1 gate sb, 3 up packed, 4 up sb, 6 x bf16 [cols], 7 mid f32 or bf16 [rows], 8 rows, 9 cols,
//        10 group_size, 11 mid_bf16.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemv_q4_mlx_simd_gate_up_gelu(device const uint2* gate_packed [[buffer(0)]],
                                          device const bfloat2* gate_sb [[buffer(1)]],
                                          device const uint2* up_packed [[buffer(3)]],
                                          device const bfloat2* up_sb [[buffer(4)]],
                                          device const bfloat4* x [[buffer(6)]],
                                          device bfloat* mid [[buffer(7)]],
                                          constant uint& rows [[buffer(8)]],
                                          constant uint& cols [[buffer(9)]],
                                          constant uint& group_size [[buffer(10)]],
                                          constant uint& mid_bf16 [[buffer(11)]],
                                          uint tile [[threadgroup_position_in_grid]],
                                          uint lane [[thread_index_in_simdgroup]],
                                          uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gate_up<false>(gate_packed, gate_sb, up_packed, up_sb, x, mid, rows, cols, group_size, mid_bf16, tile, lane,
                      simdgroup);
}
#line 1 "gemv_q4_mlx_blocked.metal"
// Matrix-vector products with MLX 4-bit affine weights in blocks of 16 rows and an f32 vector; see q4_mlx.h for the format.
//
// A block holds 16 rows, the last one padded: group after group, and of each group the codes, or the scale and bias, of row
// after row. Group g of row 16 b + r is at (b * cols / group_size + g) * 16 + r.
//
// A threadgroup of 256 threads computes a block: thread t works on row t % 16 and takes every 16th run of 16 columns.
// x is held in threadgroup memory piece by piece, so that cols has no limit.

#line 10 "gemv_q4_mlx_blocked.metal"
#line 11 "gemv_q4_mlx_blocked.metal"
#line 1 "q4_mlx_f32.h"
// Dot products of MLX 4-bit affine weights with an f32 vector; see q4_mlx.h for the format.

#ifndef INGOT_Q4_MLX_F32_H
#define INGOT_Q4_MLX_F32_H

#line 7 "q4_mlx_f32.h"

// Columns of x that a threadgroup holds at once: a multiple of every group size.
#define INGOT_Q4_X_TILE 2048u

// Adds to dot the sum of code * x over the eight codes of w, and to total that of x.
template <typename P>
INGOT_FUNC void ingot_q4_dot8(uint w, P x, thread float& dot, thread float& total) {
#pragma unroll
    for (uint i = 0u; i < 8u; i++) {
        float v = x[i];
        dot = fma(v, float((w >> (4u * i)) & 15u), dot);
        total += v;
    }
}

// Columns base to base + n of x into tile. All threads of the threadgroup call it; before, tile may be in use still.
INGOT_FUNC void ingot_q4_stage(device const float* x, uint base, uint n, threadgroup float* tile, uint thread_index,
                               uint threads) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < n; i += threads) {
        tile[i] = x[ulong(base) + ulong(i)];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

#endif
#line 12 "gemv_q4_mlx_blocked.metal"

#define INGOT_BLOCK_ROWS 16u    // rows of a block
#define INGOT_BLOCK_LANES 16u   // threads of a row

// The share of one thread in a row's sum over columns base to base + n, of which tile holds x.
INGOT_FUNC float ingot_q4_block_part(device const uint2* packed, device const bfloat2* sb, threadgroup const float* tile,
                                     uint base, uint n, uint cols, uint group_size, uint block, uint row, uint part,
                                     float sum) {
    ulong block_group = ulong(block) * ulong(cols / group_size);
    uint group_packs = group_size / 16u;
    for (uint c = part * 16u; c < n; c += INGOT_BLOCK_LANES * 16u) {
        uint g = (base + c) / group_size;
        ulong group = (block_group + ulong(g)) * ulong(INGOT_BLOCK_ROWS) + ulong(row);
        uint2 w = packed[group * ulong(group_packs) + ulong((base + c) / 16u - g * group_packs)];
        bfloat2 s = sb[group];
        float dot = 0.0f;
        float total = 0.0f;
        ingot_q4_dot8(w.x, tile + c, dot, total);
        ingot_q4_dot8(w.y, tile + (c + 8u), dot, total);
        sum = fma(float(s.x), dot, fma(float(s.y), total, sum));
    }
    return sum;
}

// The sum of a row's shares, in order, for threads 0 to 15; scratch has 256 floats.
INGOT_FUNC float ingot_q4_block_sum(threadgroup const float* scratch, uint row) {
    float sum = 0.0f;
    for (uint i = 0u; i < INGOT_BLOCK_LANES; i++) {
        sum += scratch[i * INGOT_BLOCK_ROWS + row];
    }
    return sum;
}

// y[r] = sum over c of w[r, c] * x[c]
//
// Slots: 0 packed, 1 sb, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 16) threadgroups of 256 threads. Threadgroup memory: 9,216 bytes, static.
kernel void gemv_q4_mlx_blocked(device const uint2* packed [[buffer(0)]],
                                device const bfloat2* sb [[buffer(1)]],
                                device const float* x [[buffer(3)]],
                                device float* y [[buffer(4)]],
                                constant uint& rows [[buffer(5)]],
                                constant uint& cols [[buffer(6)]],
                                constant uint& group_size [[buffer(7)]],
                                uint block [[threadgroup_position_in_grid]],
                                uint thread_index [[thread_index_in_threadgroup]],
                                uint threads [[threads_per_threadgroup]]) {
    threadgroup float tile[INGOT_Q4_X_TILE];
    threadgroup float scratch[INGOT_BLOCK_ROWS * INGOT_BLOCK_LANES];
    uint row = thread_index % INGOT_BLOCK_ROWS;
    uint part = thread_index / INGOT_BLOCK_ROWS;
    float sum = 0.0f;
    for (uint base = 0u; base < cols; base += INGOT_Q4_X_TILE) {
        uint n = min(cols - base, INGOT_Q4_X_TILE);
        ingot_q4_stage(x, base, n, tile, thread_index, threads);
        sum = ingot_q4_block_part(packed, sb, tile, base, n, cols, group_size, block, row, part, sum);
    }
    scratch[thread_index] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ulong at = ulong(block) * ulong(INGOT_BLOCK_ROWS) + ulong(row);
    if (part == 0u && at < ulong(rows)) {
        y[at] = ingot_q4_block_sum(scratch, row);
    }
}

// mid[r] = gelu(gate[r]) * up[r], gate = Wg x, up = Wu x; as f32, or as bf16 if mid_bf16 is not 0
//
// Slots: 0 gate packed, 1 gate sb, 3 up packed, 4 up sb, 6 x f32 [cols], 7 mid f32 or bf16 [rows], 8 rows, 9 cols,
//        10 group_size, 11 mid_bf16.
// Geometry: ceil(rows / 16) threadgroups of 256 threads. Threadgroup memory: 10,240 bytes, static.
kernel void gemv_q4_mlx_blocked_gate_up_gelu(device const uint2* gate_packed [[buffer(0)]],
                                             device const bfloat2* gate_sb [[buffer(1)]],
                                             device const uint2* up_packed [[buffer(3)]],
                                             device const bfloat2* up_sb [[buffer(4)]],
                                             device const float* x [[buffer(6)]],
                                             device bfloat* mid [[buffer(7)]],
                                             constant uint& rows [[buffer(8)]],
                                             constant uint& cols [[buffer(9)]],
                                             constant uint& group_size [[buffer(10)]],
                                             constant uint& mid_bf16 [[buffer(11)]],
                                             uint block [[threadgroup_position_in_grid]],
                                             uint thread_index [[thread_index_in_threadgroup]],
                                             uint threads [[threads_per_threadgroup]]) {
    threadgroup float tile[INGOT_Q4_X_TILE];
    threadgroup float gate_scratch[INGOT_BLOCK_ROWS * INGOT_BLOCK_LANES];
    threadgroup float up_scratch[INGOT_BLOCK_ROWS * INGOT_BLOCK_LANES];
    uint row = thread_index % INGOT_BLOCK_ROWS;
    uint part = thread_index / INGOT_BLOCK_ROWS;
    float gate = 0.0f;
    float up = 0.0f;
    for (uint base = 0u; base < cols; base += INGOT_Q4_X_TILE) {
        uint n = min(cols - base, INGOT_Q4_X_TILE);
        ingot_q4_stage(x, base, n, tile, thread_index, threads);
        gate = ingot_q4_block_part(gate_packed, gate_sb, tile, base, n, cols, group_size, block, row, part, gate);
        up = ingot_q4_block_part(up_packed, up_sb, tile, base, n, cols, group_size, block, row, part, up);
    }
    gate_scratch[thread_index] = gate;
    up_scratch[thread_index] = up;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ulong at = ulong(block) * ulong(INGOT_BLOCK_ROWS) + ulong(row);
    if (part == 0u && at < ulong(rows)) {
        float value = ingot_gelu(ingot_q4_block_sum(gate_scratch, row)) * ingot_q4_block_sum(up_scratch, row);
        if (mid_bf16 != 0u) {
            mid[at] = bfloat(value);
        } else {
            ((device float*)mid)[at] = value;
        }
    }
}
#line 1 "gemv_q4_mlx_f32.metal"
// Matrix-vector products with MLX 4-bit affine weights in row-major order and an f32 vector; see q4_mlx.h for the format.
//
// Three ways to share out the rows: a thread for each, for tall matrices; a simdgroup for each; a threadgroup for each, for
// few long rows. The first two hold a piece of x in threadgroup memory for all their rows.

#line 7 "gemv_q4_mlx_f32.metal"
#line 8 "gemv_q4_mlx_f32.metal"
#line 9 "gemv_q4_mlx_f32.metal"

// y[r] = sum over c of w[r, c] * x[c], a thread for each row
//
// Slots: 0 packed, 1 sb, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 128) threadgroups of 128 threads, or one of fewer if there are fewer rows.
// Threadgroup memory: 8,192 bytes, static.
kernel void gemv_q4_mlx(device const uint2* packed [[buffer(0)]],
                        device const bfloat2* sb [[buffer(1)]],
                        device const float* x [[buffer(3)]],
                        device float* y [[buffer(4)]],
                        constant uint& rows [[buffer(5)]],
                        constant uint& cols [[buffer(6)]],
                        constant uint& group_size [[buffer(7)]],
                        uint group_index [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
    threadgroup float tile[INGOT_Q4_X_TILE];
    ulong row = ulong(group_index) * ulong(threads) + ulong(thread_index);
    ulong word = row * ulong(cols / 16u);
    ulong group = row * ulong(cols / group_size);
    float sum = 0.0f;
    for (uint base = 0u; base < cols; base += INGOT_Q4_X_TILE) {
        uint n = min(cols - base, INGOT_Q4_X_TILE);
        ingot_q4_stage(x, base, n, tile, thread_index, threads);
        if (row < ulong(rows)) {
            for (uint c = 0u; c < n; c += group_size) {
                float dot = 0.0f;
                float total = 0.0f;
                for (uint i = 0u; i < group_size; i += 16u) {
                    uint2 w = packed[word];
                    ingot_q4_dot8(w.x, tile + (c + i), dot, total);
                    ingot_q4_dot8(w.y, tile + (c + i + 8u), dot, total);
                    word++;
                }
                bfloat2 s = sb[group];
                sum = fma(float(s.x), dot, fma(float(s.y), total, sum));
                group++;
            }
        }
    }
    if (row < ulong(rows)) {
        y[row] = sum;
    }
}

// y[r] = sum over c of w[r, c] * x[c], a simdgroup for each row
//
// Slots: 0 packed, 1 sb, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 4) threadgroups of 128 threads. Threadgroup memory: 8,192 bytes, static.
kernel void gemv_q4_mlx_wide(device const uint2* packed [[buffer(0)]],
                             device const bfloat2* sb [[buffer(1)]],
                             device const float* x [[buffer(3)]],
                             device float* y [[buffer(4)]],
                             constant uint& rows [[buffer(5)]],
                             constant uint& cols [[buffer(6)]],
                             constant uint& group_size [[buffer(7)]],
                             uint group_index [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             uint threads [[threads_per_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]],
                             uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float tile[INGOT_Q4_X_TILE];
    ulong row = ulong(group_index) * ulong(simdgroups) + ulong(simdgroup);
    ulong first_word = row * ulong(cols / 16u);
    ulong first_group = row * ulong(cols / group_size);
    float sum = 0.0f;
    for (uint base = 0u; base < cols; base += INGOT_Q4_X_TILE) {
        uint n = min(cols - base, INGOT_Q4_X_TILE);
        ingot_q4_stage(x, base, n, tile, thread_index, threads);
        if (row < ulong(rows)) {
            for (uint c = lane * 16u; c < n; c += 512u) {
                uint2 w = packed[first_word + ulong((base + c) / 16u)];
                bfloat2 s = sb[first_group + ulong((base + c) / group_size)];
                float dot = 0.0f;
                float total = 0.0f;
                ingot_q4_dot8(w.x, tile + c, dot, total);
                ingot_q4_dot8(w.y, tile + (c + 8u), dot, total);
                sum = fma(float(s.x), dot, fma(float(s.y), total, sum));
            }
        }
    }
    sum = simd_sum(sum);
    if (lane == 0u && row < ulong(rows)) {
        y[row] = sum;
    }
}

// y[r] = sum over c of w[r, c] * x[c], a threadgroup for each row
//
// Slots: 0 packed, 1 sb, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: a threadgroup per row, of whole simdgroups, 128 threads. Threadgroup memory: 128 bytes, static.
kernel void gemv_q4_mlx_tiled(device const uint2* packed [[buffer(0)]],
                              device const bfloat2* sb [[buffer(1)]],
                              device const float* x [[buffer(3)]],
                              device float* y [[buffer(4)]],
                              constant uint& rows [[buffer(5)]],
                              constant uint& cols [[buffer(6)]],
                              constant uint& group_size [[buffer(7)]],
                              uint row [[threadgroup_position_in_grid]],
                              uint thread_index [[thread_index_in_threadgroup]],
                              uint threads [[threads_per_threadgroup]],
                              uint lane [[thread_index_in_simdgroup]],
                              uint simdgroup [[simdgroup_index_in_threadgroup]],
                              uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float scratch[INGOT_MAX_SIMDGROUPS];
    if (row >= rows) {
        return;
    }
    ulong first_word = ulong(row) * ulong(cols / 16u);
    ulong first_group = ulong(row) * ulong(cols / group_size);
    float sum = 0.0f;
    for (uint word = thread_index; word < cols / 16u; word += threads) {
        uint2 w = packed[first_word + ulong(word)];
        bfloat2 s = sb[first_group + ulong(word * 16u / group_size)];
        device const float* from = x + ulong(word) * 16ul;
        float dot = 0.0f;
        float total = 0.0f;
        ingot_q4_dot8(w.x, from, dot, total);
        ingot_q4_dot8(w.y, from + 8, dot, total);
        sum = fma(float(s.x), dot, fma(float(s.y), total, sum));
    }
    sum = ingot_row_sum(sum, scratch, lane, simdgroup, simdgroups);
    if (thread_index == 0u) {
        y[row] = sum;
    }
}
#line 1 "gemv_q4_mlx_i4.metal"
// Matrix-vector products with MLX 4-bit affine weights in tiles of four interleaved rows and a bf16 vector; see q4_mlx.h for the layout and the
// algorithm.
//
// In all kernels a simdgroup computes four rows and a threadgroup of 64 threads eight; packed is read as pairs of words,
// so banks and x start at a multiple of 8 bytes. No threadgroup memory.

#line 8 "gemv_q4_mlx_i4.metal"
#line 9 "gemv_q4_mlx_i4.metal"

// y[r] = sum over c of w[r, c] * x[c]; w interleaved
//
// Slots: 0 packed, 1 sb, 3 x bf16 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemv_q4_mlx_simd_i4(device const uint2* packed [[buffer(0)]],
                                device const bfloat2* sb [[buffer(1)]],
                                device const bfloat4* x [[buffer(3)]],
                                device float* y [[buffer(4)]],
                                constant uint& rows [[buffer(5)]],
                                constant uint& cols [[buffer(6)]],
                                constant uint& group_size [[buffer(7)]],
                                uint tile [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gemv<true>(packed, sb, x, y, rows, cols, group_size, tile, lane, simdgroup);
}

// y[r] = resid[r] + sum over c of w[r, c] * x[c]; w interleaved
//
// Slots: 0 packed, 1 sb, 3 x bf16 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size, 8 resid f32 [rows], may be y.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemv_q4_mlx_simd_add_i4(device const uint2* packed [[buffer(0)]],
                                    device const bfloat2* sb [[buffer(1)]],
                                    device const bfloat4* x [[buffer(3)]],
                                    device float* y [[buffer(4)]],
                                    constant uint& rows [[buffer(5)]],
                                    constant uint& cols [[buffer(6)]],
                                    constant uint& group_size [[buffer(7)]],
                                    device const float* resid [[buffer(8)]],
                                    uint tile [[threadgroup_position_in_grid]],
                                    uint lane [[thread_index_in_simdgroup]],
                                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gemv_add<true>(packed, sb, x, y, rows, cols, group_size, resid, tile, lane, simdgroup);
}

// k = Wk x, v = Wv x in one launch; both of the same shape, interleaved.
//
// Slots: 0 k packed, 1 k sb, 3 v packed, 4 v sb, 6 x bf16 [cols], 7 k f32 [rows], 8 v f32 [rows], 9 rows, 10 cols,
//        11 group_size, 12 tiles_k = ceil(rows / 8).
// Geometry: 2 tiles_k threadgroups of 64 threads; each works on one matrix, exactly as gemv_q4_mlx_simd does.
kernel void gemv_q4_mlx_simd_kv_i4(device const uint2* k_packed [[buffer(0)]],
                                   device const bfloat2* k_sb [[buffer(1)]],
                                   device const uint2* v_packed [[buffer(3)]],
                                   device const bfloat2* v_sb [[buffer(4)]],
                                   device const bfloat4* x [[buffer(6)]],
                                   device float* k [[buffer(7)]],
                                   device float* v [[buffer(8)]],
                                   constant uint& rows [[buffer(9)]],
                                   constant uint& cols [[buffer(10)]],
                                   constant uint& group_size [[buffer(11)]],
                                   constant uint& tiles_k [[buffer(12)]],
                                   uint tile [[threadgroup_position_in_grid]],
                                   uint lane [[thread_index_in_simdgroup]],
                                   uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    device const uint2* packed = k_packed;
    device const bfloat2* sb = k_sb;
    device float* y = k;
    if (tile >= tiles_k) {
        tile -= tiles_k;
        packed = v_packed;
        sb = v_sb;
        y = v;
    }
    ingot_q4_gemv<true>(packed, sb, x, y, rows, cols, group_size, tile, lane, simdgroup);
}

// q = Wq x, k = Wk x, v = Wv x in one launch; k and v have the same shape; all interleaved.
//
// Slots: 0 q packed, 1 q sb, 2 k packed, 3 k sb, 4 v packed, 5 v sb, 6 x bf16 [cols], 7 q f32 [rows_q], 8 k f32 [rows_kv],
//        9 v f32 [rows_kv], 10 rows_q, 11 rows_kv, 12 cols, 13 group_size, 14 tiles_q = ceil(rows_q / 8),
//        15 tiles_kv = ceil(rows_kv / 8).
// Geometry: tiles_q + 2 tiles_kv threadgroups of 64 threads; each works on one matrix, exactly as gemv_q4_mlx_simd does.
kernel void gemv_q4_mlx_simd_qkv_i4(device const uint2* q_packed [[buffer(0)]],
                                    device const bfloat2* q_sb [[buffer(1)]],
                                    device const uint2* k_packed [[buffer(2)]],
                                    device const bfloat2* k_sb [[buffer(3)]],
                                    device const uint2* v_packed [[buffer(4)]],
                                    device const bfloat2* v_sb [[buffer(5)]],
                                    device const bfloat4* x [[buffer(6)]],
                                    device float* q [[buffer(7)]],
                                    device float* k [[buffer(8)]],
                                    device float* v [[buffer(9)]],
                                    constant uint& rows_q [[buffer(10)]],
                                    constant uint& rows_kv [[buffer(11)]],
                                    constant uint& cols [[buffer(12)]],
                                    constant uint& group_size [[buffer(13)]],
                                    constant uint& tiles_q [[buffer(14)]],
                                    constant uint& tiles_kv [[buffer(15)]],
                                    uint tile [[threadgroup_position_in_grid]],
                                    uint lane [[thread_index_in_simdgroup]],
                                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    device const uint2* packed = q_packed;
    device const bfloat2* sb = q_sb;
    device float* y = q;
    uint rows = rows_q;
    if (tile >= tiles_q) {
        tile -= tiles_q;
        rows = rows_kv;
        if (tile < tiles_kv) {
            packed = k_packed;
            sb = k_sb;
            y = k;
        } else {
            tile -= tiles_kv;
            packed = v_packed;
            sb = v_sb;
            y = v;
        }
    }
    ingot_q4_gemv<true>(packed, sb, x, y, rows, cols, group_size, tile, lane, simdgroup);
}

// mid[r] = gelu(gate[r]) * up[r], gate = Wg x, up = Wu x; as f32, or as bf16 if mid_bf16 is not 0; interleaved
//
// Slots: 0 gate packed, 1 gate sb, 3 up packed, 4 up sb, 6 x bf16 [cols], 7 mid f32 or bf16 [rows], 8 rows, 9 cols,
//        10 group_size, 11 mid_bf16.
// Geometry: ceil(rows / 8) threadgroups of 64 threads.
kernel void gemv_q4_mlx_simd_gate_up_gelu_i4(device const uint2* gate_packed [[buffer(0)]],
                                             device const bfloat2* gate_sb [[buffer(1)]],
                                             device const uint2* up_packed [[buffer(3)]],
                                             device const bfloat2* up_sb [[buffer(4)]],
                                             device const bfloat4* x [[buffer(6)]],
                                             device bfloat* mid [[buffer(7)]],
                                             constant uint& rows [[buffer(8)]],
                                             constant uint& cols [[buffer(9)]],
                                             constant uint& group_size [[buffer(10)]],
                                             constant uint& mid_bf16 [[buffer(11)]],
                                             uint tile [[threadgroup_position_in_grid]],
                                             uint lane [[thread_index_in_simdgroup]],
                                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_q4_gate_up<true>(gate_packed, gate_sb, up_packed, up_sb, x, mid, rows, cols, group_size, mid_bf16, tile, lane,
                     simdgroup);
}
#line 1 "gemv_q8.metal"
// Matrix-vector products with 8-bit affine weights.
//
// A bank of [rows, cols] weights: w[r, c] = scale * (q - zero), a scale and a zero point for each group_size columns of a row.
//   packed  int8 [rows, cols]
//   scales  f32 [rows, cols / group_size], zeros likewise
// group_size is any that divides cols. No threadgroup memory.

#line 9 "gemv_q8.metal"

#define INGOT_Q8_ROWS 4           // rows that a simdgroup computes at once
#define INGOT_Q8_GROUP_ROWS 8u    // rows of a threadgroup: two simdgroups

// The four rows from row0 on, W columns of a group per lane and step; the last row stands in for rows past the end.
// A lane's columns contribute scale * (sum(q * x) - zero * sum(x)).
template <uint W>
INGOT_FUNC void ingot_q8_rows(device const char* packed, device const float* scales, device const float* zeros,
                              device const float* x, uint rows, uint cols, uint group_size, uint row0, uint lane,
                              thread float* sum) {
    ulong row_groups = ulong(cols / group_size);
    ulong row[INGOT_Q8_ROWS];
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_Q8_ROWS); r++) {
        row[r] = ulong(row0) + ulong(r);
        if (row[r] >= ulong(rows)) {
            row[r] = ulong(rows) - 1ul;
        }
        sum[r] = 0.0f;
    }
    for (uint col = lane * W; col < cols; col += 32u * W) {
        float xs[W];
        float total = 0.0f;
#pragma unroll
        for (uint i = 0u; i < W; i++) {
            xs[i] = x[ulong(col) + ulong(i)];
            total += xs[i];
        }
        ulong g = ulong(col / group_size);
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q8_ROWS); r++) {
            ulong at = row[r] * ulong(cols) + ulong(col);
            float dot = 0.0f;
            if (W == 4u) {
                char4 q = *(device const char4*)(packed + at);
                dot = fma(xs[0], float(q.x), dot);
                dot = fma(xs[1 % W], float(q.y), dot);
                dot = fma(xs[2 % W], float(q.z), dot);
                dot = fma(xs[3 % W], float(q.w), dot);
            } else {
                dot = xs[0] * float(packed[at]);
            }
            ulong group = row[r] * row_groups + g;
            sum[r] = fma(scales[group], fma(-zeros[group], total, dot), sum[r]);
        }
    }
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_Q8_ROWS); r++) {
        sum[r] = simd_sum(sum[r]);
    }
}

// y[r] = sum over c of w[r, c] * x[c]
//
// Slots: 0 packed, 1 scales, 2 zeros, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 8) threadgroups of 64 threads. If group_size is a multiple of 4, a lane takes four columns at once and
//           packed starts at a multiple of 4 bytes, as then every row does; otherwise a lane takes one.
kernel void gemv_q8(device const char* packed [[buffer(0)]],
                    device const float* scales [[buffer(1)]],
                    device const float* zeros [[buffer(2)]],
                    device const float* x [[buffer(3)]],
                    device float* y [[buffer(4)]],
                    constant uint& rows [[buffer(5)]],
                    constant uint& cols [[buffer(6)]],
                    constant uint& group_size [[buffer(7)]],
                    uint tile [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    uint row0 = tile * INGOT_Q8_GROUP_ROWS + simdgroup * uint(INGOT_Q8_ROWS);
    if (row0 >= rows) {
        return;
    }
    float sum[INGOT_Q8_ROWS];
    if (group_size % 4u == 0u) {
        ingot_q8_rows<4u>(packed, scales, zeros, x, rows, cols, group_size, row0, lane, sum);
    } else {
        ingot_q8_rows<1u>(packed, scales, zeros, x, rows, cols, group_size, row0, lane, sum);
    }
    if (lane == 0u) {
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q8_ROWS); r++) {
            if (r < rows - row0) {
                y[ulong(row0) + ulong(r)] = sum[r];
            }
        }
    }
}
#line 1 "kv_cache.metal"
// What is kept of past positions: stores at a place that is read on the device, and a ring buffer put in order.

#line 4 "kv_cache.metal"
#line 5 "kv_cache.metal"

// Whether n elements fit at offset of a cache of that capacity; no sum can wrap.
INGOT_FUNC bool ingot_fits(uint offset, uint n, uint capacity) {
    return n <= capacity && offset <= capacity - n;
}

// dst[offset + i] = src[i], i < n; nothing if that does not fit within capacity
//
// Slots: 0 src f32 [n], 1 dst f32 [capacity], 2 n, 3 offset u32 (device), 4 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep(device const float* src [[buffer(0)]],
                              device float* dst [[buffer(1)]],
                              constant uint& n [[buffer(2)]],
                              device const uint* offset [[buffer(3)]],
                              constant uint& capacity [[buffer(4)]],
                              uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    dst[ulong(to) + ulong(gid)] = src[gid];
}

// dst_k[offset + i] = k[i] and dst_v[offset + i] = v[i], i < n; nothing if that does not fit within capacity
//
// Slots: 0 k f32 [n], 1 v f32 [n], 2 dst_k f32 [capacity], 3 dst_v f32 [capacity], 4 n, 5 offset u32 (device),
//        6 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_pair(device const float* k [[buffer(0)]],
                                   device const float* v [[buffer(1)]],
                                   device float* dst_k [[buffer(2)]],
                                   device float* dst_v [[buffer(3)]],
                                   constant uint& n [[buffer(4)]],
                                   device const uint* offset [[buffer(5)]],
                                   constant uint& capacity [[buffer(6)]],
                                   uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    ulong at = ulong(to) + ulong(gid);
    dst_k[at] = k[gid];
    dst_v[at] = v[gid];
}

// dst[offset + i] = f16(src[i]), i < n; nothing if that does not fit within capacity
//
// Slots: 0 src f32 [n], 1 dst f16 [capacity], 2 n, 3 offset u32 (device), 4 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_f16(device const float* src [[buffer(0)]],
                                  device half* dst [[buffer(1)]],
                                  constant uint& n [[buffer(2)]],
                                  device const uint* offset [[buffer(3)]],
                                  constant uint& capacity [[buffer(4)]],
                                  uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    dst[ulong(to) + ulong(gid)] = half(src[gid]);
}

// dst_k[offset + i] = f16(k[i]) and dst_v[offset + i] = f16(v[i]), i < n; nothing if that does not fit within capacity
//
// Slots: 0 k f32 [n], 1 v f32 [n], 2 dst_k f16 [capacity], 3 dst_v f16 [capacity], 4 n, 5 offset u32 (device),
//        6 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_pair_f16(device const float* k [[buffer(0)]],
                                       device const float* v [[buffer(1)]],
                                       device half* dst_k [[buffer(2)]],
                                       device half* dst_v [[buffer(3)]],
                                       constant uint& n [[buffer(4)]],
                                       device const uint* offset [[buffer(5)]],
                                       constant uint& capacity [[buffer(6)]],
                                       uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    ulong at = ulong(to) + ulong(gid);
    dst_k[at] = half(k[gid]);
    dst_v[at] = half(v[gid]);
}

// dst[offset + i] = bf16(src[i]), i < n; nothing if that does not fit within capacity
//
// Slots: 0 src f32 [n], 1 dst bf16 [capacity], 2 n, 3 offset u32 (device), 4 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_bf16(device const float* src [[buffer(0)]],
                                   device ushort* dst [[buffer(1)]],
                                   constant uint& n [[buffer(2)]],
                                   device const uint* offset [[buffer(3)]],
                                   constant uint& capacity [[buffer(4)]],
                                   uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    dst[ulong(to) + ulong(gid)] = ingot_bf16_bits(src[gid]);
}

// dst_k[offset + i] = bf16(k[i]) and dst_v[offset + i] = bf16(v[i]), i < n; nothing if that does not fit within capacity
//
// Slots: 0 k f32 [n], 1 v f32 [n], 2 dst_k bf16 [capacity], 3 dst_v bf16 [capacity], 4 n, 5 offset u32 (device),
//        6 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_pair_bf16(device const float* k [[buffer(0)]],
                                        device const float* v [[buffer(1)]],
                                        device ushort* dst_k [[buffer(2)]],
                                        device ushort* dst_v [[buffer(3)]],
                                        constant uint& n [[buffer(4)]],
                                        device const uint* offset [[buffer(5)]],
                                        constant uint& capacity [[buffer(6)]],
                                        uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    ulong at = ulong(to) + ulong(gid);
    dst_k[at] = ingot_bf16_bits(k[gid]);
    dst_v[at] = ingot_bf16_bits(v[gid]);
}

// dst[t, i] = src[(start + t) mod capacity, i], t < min(filled, capacity), i < slot: what a ring buffer holds, the oldest
// first. The elements have 32 bits, whatever they mean. What lies behind in dst stays as it is.
//
// Slots: 0 src [capacity, slot], 1 dst [capacity, slot], 2 slot, 3 capacity, 4 filled u32 (device), 5 start u32 (device).
// Geometry: one thread for each of capacity * slot elements, any number per threadgroup; their number is below 2^32.
// Threadgroup memory: none.
kernel void kv_ring_densify_b32(device const uint* src [[buffer(0)]],
                                device uint* dst [[buffer(1)]],
                                constant uint& slot [[buffer(2)]],
                                constant uint& capacity [[buffer(3)]],
                                device const uint* filled [[buffer(4)]],
                                device const uint* start [[buffer(5)]],
                                uint gid [[thread_position_in_grid]]) {
    uint t = gid / slot;
    if (t >= capacity || t >= filled[0]) {
        return;
    }
    uint i = gid - t * slot;
    ulong from = (ulong(start[0]) + ulong(t)) % ulong(capacity);
    dst[ulong(gid)] = src[from * ulong(slot) + ulong(i)];
}

// dst[t, i] = src[(start + t) mod capacity, i], t < min(filled, capacity), i < slot: what a ring buffer holds, the oldest
// first. The elements have 16 bits, whatever they mean. What lies behind in dst stays as it is.
//
// Slots: 0 src [capacity, slot], 1 dst [capacity, slot], 2 slot, 3 capacity, 4 filled u32 (device), 5 start u32 (device).
// Geometry: one thread for each of capacity * slot elements, any number per threadgroup; their number is below 2^32.
// Threadgroup memory: none.
kernel void kv_ring_densify_b16(device const ushort* src [[buffer(0)]],
                                device ushort* dst [[buffer(1)]],
                                constant uint& slot [[buffer(2)]],
                                constant uint& capacity [[buffer(3)]],
                                device const uint* filled [[buffer(4)]],
                                device const uint* start [[buffer(5)]],
                                uint gid [[thread_position_in_grid]]) {
    uint t = gid / slot;
    if (t >= capacity || t >= filled[0]) {
        return;
    }
    uint i = gid - t * slot;
    ulong from = (ulong(start[0]) + ulong(t)) % ulong(capacity);
    dst[ulong(gid)] = src[from * ulong(slot) + ulong(i)];
}
#line 1 "qkv_rope.metal"
// Per-head RMS normalisation, rotary position embedding and the key-value cache store of one attention layer.
//
// Sources: RoPE, Su et al., arXiv:2104.09864, with the halves paired as in GPT-NeoX and Gemma; query and key norms as in
// Gemma 3, arXiv:2503.19786.

#line 7 "qkv_rope.metal"
#line 1 "qkv_rope.h"
// Per-head biases, RMS normalisation and rotary position embedding of one attention layer's queries, keys and values.

#ifndef INGOT_QKV_ROPE_H
#define INGOT_QKV_ROPE_H

#line 7 "qkv_rope.h"

#define INGOT_ROPE_GROUP_ROWS 8u    // head rows of a threadgroup: one simdgroup each

INGOT_FUNC void ingot_cache_store(device float* cache, ulong at, float x) { cache[at] = x; }
INGOT_FUNC void ingot_cache_store(device half* cache, ulong at, float x) { cache[at] = half(x); }
INGOT_FUNC void ingot_cache_store(device bfloat* cache, ulong at, float x) { cache[at] = bfloat(x); }

// Which elements turn together, of y[0] ... y[D - 1] and the pairs p < rotary_dim / 2.
#define INGOT_ROPE_HALVES 0u            // p and p + D / 2
#define INGOT_ROPE_ROTARY_HALVES 1u     // p and p + rotary_dim / 2
#define INGOT_ROPE_NEIGHBOURS 2u        // 2 p and 2 p + 1

// Operands that a call may have or not.
#define INGOT_ROPE_Q_WEIGHT 1u
#define INGOT_ROPE_K_WEIGHT 2u
#define INGOT_ROPE_Q_BIAS 4u
#define INGOT_ROPE_K_BIAS 8u
#define INGOT_ROPE_V_BIAS 16u

// What not all models have.
struct ingot_rope_options {
    device const float* q_bias;    // [Hq, D]
    device const float* k_bias;    // [Hkv, D]
    device const float* v_bias;    // [Hkv, D]
    uint operands;                 // INGOT_ROPE_Q_WEIGHT and so on: those that there are
    uint pairing;
    float factor;                  // of cos and sin
};

// Both norms, no biases, halves, and angles as they are.
INGOT_FUNC ingot_rope_options ingot_rope_plain(device const float* any) {
    ingot_rope_options o;
    o.q_bias = any;
    o.k_bias = any;
    o.v_bias = any;
    o.operands = INGOT_ROPE_Q_WEIGHT | INGOT_ROPE_K_WEIGHT;
    o.pairing = INGOT_ROPE_HALVES;
    o.factor = 1.0f;
    return o;
}

// The p-th of the D / 2 pairs of elements. Behind the first rotary_dim / 2 pairs come those of the elements that do not turn.
INGOT_FUNC uint2 ingot_rope_pair(uint p, uint D, uint rotary_dim, uint pairing) {
    if (pairing == INGOT_ROPE_NEIGHBOURS) {
        return uint2(2u * p, 2u * p + 1u);
    }
    uint half_dim = D / 2u;
    if (pairing == INGOT_ROPE_ROTARY_HALVES) {
        uint turning = rotary_dim / 2u;
        return p < turning ? uint2(p, p + turning) : uint2(p + turning, p + half_dim);
    }
    return uint2(p, p + half_dim);
}

// For every position t and head: y = (x + bias) / sqrt(mean((x + bias)^2) + eps) * weight (without a weight, and V if v_norm
// is 0, just x + bias), then for Q and K the rotation of the pairs (a, b) by the angle (first + t) * inv_freq[p],
// p < rotary_dim / 2:
//   (a cos - b sin) factor,  (b cos + a sin) factor
// Q, K and V are rewritten in place; if there are caches, K and V also go to dst_k and dst_v from element `offset` on, which
// must fit. first + T must be at most 2^32. A simdgroup takes the head row; one behind the last does nothing.
template <typename C>
INGOT_FUNC void ingot_qkv_rope(device float* q, device float* k, device float* v, device const float* q_weight,
                               device const float* k_weight, device const float* v_weight, ulong q_rows, ulong kv_rows,
                               uint Hq, uint Hkv, uint D, uint rotary_dim, uint first, float eps, bool caches,
                               device C* dst_k, device C* dst_v, ulong offset, device const float* inv_freq, uint v_norm,
                               ingot_rope_options options, ulong row, uint lane) {
    device float* x = q;
    device const float* weight = q_weight;
    device const float* bias = options.q_bias;
    device C* cache = dst_k;
    uint heads = Hq;
    bool store = false;
    bool norm = (options.operands & INGOT_ROPE_Q_WEIGHT) != 0u;
    bool shift = (options.operands & INGOT_ROPE_Q_BIAS) != 0u;
    bool rotate = true;
    if (row >= q_rows) {
        row -= q_rows;
        store = caches;
        heads = Hkv;
        if (row < kv_rows) {
            x = k;
            weight = k_weight;
            bias = options.k_bias;
            norm = (options.operands & INGOT_ROPE_K_WEIGHT) != 0u;
            shift = (options.operands & INGOT_ROPE_K_BIAS) != 0u;
        } else {
            row -= kv_rows;
            x = v;
            weight = v_weight;
            bias = options.v_bias;
            cache = dst_v;
            norm = v_norm != 0u;
            shift = (options.operands & INGOT_ROPE_V_BIAS) != 0u;
            rotate = false;
        }
    }
    ulong at = row * ulong(D);
    ulong to = offset + at;
    ulong of_head = (row % ulong(heads)) * ulong(D);
    uint half_dim = D / 2u;

    // A lane reads and writes pairs of its own only, so nothing need be ordered between lanes.
    float inverse = 1.0f;
    if (norm) {
        float squares = 0.0f;
        for (uint p = lane; p < half_dim; p += 32u) {
            uint2 pair = ingot_rope_pair(p, D, rotary_dim, options.pairing);
            float a = x[at + ulong(pair.x)];
            float b = x[at + ulong(pair.y)];
            if (shift) {
                a += bias[of_head + ulong(pair.x)];
                b += bias[of_head + ulong(pair.y)];
            }
            squares = fma(a, a, squares);
            squares = fma(b, b, squares);
        }
        squares = simd_sum(squares);
        inverse = precise::rsqrt(squares / float(D) + eps);
    }

    float position = float(first + uint(row / ulong(heads)));
    for (uint p = lane; p < half_dim; p += 32u) {
        uint2 pair = ingot_rope_pair(p, D, rotary_dim, options.pairing);
        ulong low = at + ulong(pair.x);
        ulong high = at + ulong(pair.y);
        float a = x[low];
        float b = x[high];
        if (shift) {
            a += bias[of_head + ulong(pair.x)];
            b += bias[of_head + ulong(pair.y)];
        }
        if (norm) {
            a = a * inverse * weight[pair.x];
            b = b * inverse * weight[pair.y];
        }
        if (rotate && p < rotary_dim / 2u) {
            float angle = position * inv_freq[p];
            float c = precise::cos(angle) * options.factor;
            float s = precise::sin(angle) * options.factor;
            float turned = fma(a, c, -(b * s));
            b = fma(b, c, a * s);
            a = turned;
        }
        x[low] = a;
        x[high] = b;
        if (store) {
            ingot_cache_store(cache, to + ulong(pair.x), a);
            ingot_cache_store(cache, to + ulong(pair.y), b);
        }
    }
}

// Whether `span` elements fit a cache of `capacity` elements from element `offset` on.
INGOT_FUNC bool ingot_store_fits(ulong span, ulong offset, uint capacity) {
    return span <= ulong(capacity) && offset <= ulong(capacity) - span;
}

// Whether the positions first, first + 1, ... of T rows are all 32-bit numbers. T is not 0.
INGOT_FUNC bool ingot_positions_fit(uint first, uint T) { return first <= 0xffffffffu - (T - 1u); }

#endif
#line 8 "qkv_rope.metal"

// For every position t and head: y = x / sqrt(mean(x^2) + eps) * weight (V: only if v_norm is not 0), then for Q and K
// the rotation of the pairs (y[p], y[p + D/2]), p < rotary_dim / 2, by the angle (pos + t) * inv_freq[p]:
//   y[p] cos - y[p + D/2] sin,  y[p + D/2] cos + y[p] sin
// Q, K and V are rewritten in place; K and V also go to dst_k and dst_v from element kv_offset on.
//
// pos and kv_offset are read on the device. A store that would not fit the capacity, or positions beyond 32 bits, make the
// whole launch a no-op: Q, K and V stay as they were.
//
// Kernels: rms_qkv_rope_kv_store for caches of f32, with _f16 or _bf16 behind for the others, which get rounded numbers, to
// nearest, ties to even; Q, K and V are not rounded.
//
// Slots: 0 q f32 [T, Hq, D], 1 k f32 [T, Hkv, D], 2 v f32 [T, Hkv, D], 3 q_weight f32 [D], 4 k_weight f32 [D],
//        5 v_weight f32 [D] (bound but not read if v_norm is 0), 6 T, 7 Hq, 8 Hkv, 9 D (even), 10 rotary_dim (even, <= D),
//        11 pos u32 (device), 13 eps f32, 14 dst_k f32, f16 or bf16 [capacity], 15 dst_v as dst_k, 16 kv_offset u32
//        (device), 17 capacity in elements, 18 inv_freq f32 [rotary_dim / 2], from the host: a device pow is some ulps off,
//        and the position multiplies them; 19 v_norm.
// Geometry: one simdgroup of 32 lanes per head row, eight rows per threadgroup of 256 threads,
//           ceil(T (Hq + 2 Hkv) / 8) threadgroups.
// Threadgroup memory: none.
template <typename C>
kernel void rms_qkv_rope_kv_store(device float* q [[buffer(0)]],
                                  device float* k [[buffer(1)]],
                                  device float* v [[buffer(2)]],
                                  device const float* q_weight [[buffer(3)]],
                                  device const float* k_weight [[buffer(4)]],
                                  device const float* v_weight [[buffer(5)]],
                                  constant uint& T [[buffer(6)]],
                                  constant uint& Hq [[buffer(7)]],
                                  constant uint& Hkv [[buffer(8)]],
                                  constant uint& D [[buffer(9)]],
                                  constant uint& rotary_dim [[buffer(10)]],
                                  device const uint* pos [[buffer(11)]],
                                  constant float& eps [[buffer(13)]],
                                  device C* dst_k [[buffer(14)]],
                                  device C* dst_v [[buffer(15)]],
                                  device const uint* kv_offset [[buffer(16)]],
                                  constant uint& capacity [[buffer(17)]],
                                  device const float* inv_freq [[buffer(18)]],
                                  constant uint& v_norm [[buffer(19)]],
                                  uint tile [[threadgroup_position_in_grid]],
                                  uint lane [[thread_index_in_simdgroup]],
                                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    if (row >= q_rows + 2ul * kv_rows) {
        return;
    }
    ulong offset = ulong(kv_offset[0]);
    uint first = pos[0];
    if (!ingot_store_fits(kv_rows * ulong(D), offset, capacity) || !ingot_positions_fit(first, T)) {
        return;
    }
    ingot_qkv_rope<C>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, first, eps, true, dst_k,
                      dst_v, offset, inv_freq, v_norm, ingot_rope_plain(inv_freq), row, lane);
}

// rms_qkv_rope_kv_store with what not all models have: biases that are added before the norms, no norms, other
// pairs, and a factor that multiplies cos and sin. pairing is 0 for the pairs (p, p + D/2), 1 for (p, p + rotary_dim/2), 2 for
// (2p, 2p + 1). operands is the sum of 1 (q_weight), 2 (k_weight), 4 (q_bias), 8 (k_bias), 16 (v_bias), of those that there
// are: without a weight those heads have no norm, and what there is not is bound but not read.
//
// Kernels: rms_qkv_rope_kv_store_opt, _f16_opt and _bf16_opt.
//
// Slots: those of rms_qkv_rope_kv_store; 20 pairing, 21 factor f32, 22 q_bias f32 [Hq, D], 23 k_bias f32 [Hkv, D],
//        24 v_bias f32 [Hkv, D], 25 operands.
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
// Sources: biases, Qwen2, arXiv:2407.10671; factors, YaRN, arXiv:2309.00071; neighbours, RoFormer, arXiv:2104.09864.
template <typename C>
kernel void rms_qkv_rope_kv_store_opt(device float* q [[buffer(0)]],
                                      device float* k [[buffer(1)]],
                                      device float* v [[buffer(2)]],
                                      device const float* q_weight [[buffer(3)]],
                                      device const float* k_weight [[buffer(4)]],
                                      device const float* v_weight [[buffer(5)]],
                                      constant uint& T [[buffer(6)]],
                                      constant uint& Hq [[buffer(7)]],
                                      constant uint& Hkv [[buffer(8)]],
                                      constant uint& D [[buffer(9)]],
                                      constant uint& rotary_dim [[buffer(10)]],
                                      device const uint* pos [[buffer(11)]],
                                      constant float& eps [[buffer(13)]],
                                      device C* dst_k [[buffer(14)]],
                                      device C* dst_v [[buffer(15)]],
                                      device const uint* kv_offset [[buffer(16)]],
                                      constant uint& capacity [[buffer(17)]],
                                      device const float* inv_freq [[buffer(18)]],
                                      constant uint& v_norm [[buffer(19)]],
                                      constant uint& pairing [[buffer(20)]],
                                      constant float& factor [[buffer(21)]],
                                      device const float* q_bias [[buffer(22)]],
                                      device const float* k_bias [[buffer(23)]],
                                      device const float* v_bias [[buffer(24)]],
                                      constant uint& operands [[buffer(25)]],
                                      uint tile [[threadgroup_position_in_grid]],
                                      uint lane [[thread_index_in_simdgroup]],
                                      uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    if (row >= q_rows + 2ul * kv_rows) {
        return;
    }
    ulong offset = ulong(kv_offset[0]);
    uint first = pos[0];
    if (!ingot_store_fits(kv_rows * ulong(D), offset, capacity) || !ingot_positions_fit(first, T)) {
        return;
    }
    ingot_rope_options options;
    options.q_bias = q_bias;
    options.k_bias = k_bias;
    options.v_bias = v_bias;
    options.operands = operands;
    options.pairing = pairing;
    options.factor = factor;
    ingot_qkv_rope<C>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, first, eps, true, dst_k,
                      dst_v, offset, inv_freq, v_norm, options, row, lane);
}

typedef decltype(rms_qkv_rope_kv_store<float>) store_f32;
typedef decltype(rms_qkv_rope_kv_store<half>) store_f16;
typedef decltype(rms_qkv_rope_kv_store<bfloat>) store_bf16;
typedef decltype(rms_qkv_rope_kv_store_opt<float>) store_f32_opt;
typedef decltype(rms_qkv_rope_kv_store_opt<half>) store_f16_opt;
typedef decltype(rms_qkv_rope_kv_store_opt<bfloat>) store_bf16_opt;

template [[host_name("rms_qkv_rope_kv_store")]] kernel store_f32 rms_qkv_rope_kv_store<float>;
template [[host_name("rms_qkv_rope_kv_store_f16")]] kernel store_f16 rms_qkv_rope_kv_store<half>;
template [[host_name("rms_qkv_rope_kv_store_bf16")]] kernel store_bf16 rms_qkv_rope_kv_store<bfloat>;
template [[host_name("rms_qkv_rope_kv_store_opt")]] kernel store_f32_opt rms_qkv_rope_kv_store_opt<float>;
template [[host_name("rms_qkv_rope_kv_store_f16_opt")]] kernel store_f16_opt rms_qkv_rope_kv_store_opt<half>;
template [[host_name("rms_qkv_rope_kv_store_bf16_opt")]] kernel store_bf16_opt rms_qkv_rope_kv_store_opt<bfloat>;

// The norms and rotations of rms_qkv_rope_kv_store without caches. pos is a number of the host. Positions beyond 32 bits
// make the whole launch a no-op. If Hkv is 0, there are queries only, and k, v and their weights are bound but not used.
//
// Slots: 0 q f32 [T, Hq, D], 1 k f32 [T, Hkv, D], 2 v f32 [T, Hkv, D], 3 q_weight f32 [D], 4 k_weight f32 [D],
//        5 v_weight f32 [D] (bound but not read if v_norm is 0), 6 T, 7 Hq, 8 Hkv, 9 D (even), 10 rotary_dim (even, <= D),
//        11 pos, 13 eps f32, 18 inv_freq f32 [rotary_dim / 2], 19 v_norm.
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
kernel void rms_qkv_rope(device float* q [[buffer(0)]],
                         device float* k [[buffer(1)]],
                         device float* v [[buffer(2)]],
                         device const float* q_weight [[buffer(3)]],
                         device const float* k_weight [[buffer(4)]],
                         device const float* v_weight [[buffer(5)]],
                         constant uint& T [[buffer(6)]],
                         constant uint& Hq [[buffer(7)]],
                         constant uint& Hkv [[buffer(8)]],
                         constant uint& D [[buffer(9)]],
                         constant uint& rotary_dim [[buffer(10)]],
                         constant uint& pos [[buffer(11)]],
                         constant float& eps [[buffer(13)]],
                         device const float* inv_freq [[buffer(18)]],
                         constant uint& v_norm [[buffer(19)]],
                         uint tile [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    if (row >= q_rows + 2ul * kv_rows || !ingot_positions_fit(pos, T)) {
        return;
    }
    ingot_qkv_rope<float>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, pos, eps, false, k, v,
                          0ul, inv_freq, v_norm, ingot_rope_plain(inv_freq), row, lane);
}

// rms_qkv_rope with what rms_qkv_rope_kv_store_opt adds.
//
// Slots: those of rms_qkv_rope; 20 pairing, 21 factor f32, 22 q_bias f32 [Hq, D], 23 k_bias f32 [Hkv, D],
//        24 v_bias f32 [Hkv, D], 25 operands.
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
kernel void rms_qkv_rope_opt(device float* q [[buffer(0)]],
                             device float* k [[buffer(1)]],
                             device float* v [[buffer(2)]],
                             device const float* q_weight [[buffer(3)]],
                             device const float* k_weight [[buffer(4)]],
                             device const float* v_weight [[buffer(5)]],
                             constant uint& T [[buffer(6)]],
                             constant uint& Hq [[buffer(7)]],
                             constant uint& Hkv [[buffer(8)]],
                             constant uint& D [[buffer(9)]],
                             constant uint& rotary_dim [[buffer(10)]],
                             constant uint& pos [[buffer(11)]],
                             constant float& eps [[buffer(13)]],
                             device const float* inv_freq [[buffer(18)]],
                             constant uint& v_norm [[buffer(19)]],
                             constant uint& pairing [[buffer(20)]],
                             constant float& factor [[buffer(21)]],
                             device const float* q_bias [[buffer(22)]],
                             device const float* k_bias [[buffer(23)]],
                             device const float* v_bias [[buffer(24)]],
                             constant uint& operands [[buffer(25)]],
                             uint tile [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    if (row >= q_rows + 2ul * kv_rows || !ingot_positions_fit(pos, T)) {
        return;
    }
    ingot_rope_options options;
    options.q_bias = q_bias;
    options.k_bias = k_bias;
    options.v_bias = v_bias;
    options.operands = operands;
    options.pairing = pairing;
    options.factor = factor;
    ingot_qkv_rope<float>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, pos, eps, false, k, v,
                          0ul, inv_freq, v_norm, options, row, lane);
}

// rms_qkv_rope with a position that is read on the device.
//
// Slots: those of rms_qkv_rope, but 11 pos u32 (device).
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
kernel void rms_qkv_rope_posbuf(device float* q [[buffer(0)]],
                                device float* k [[buffer(1)]],
                                device float* v [[buffer(2)]],
                                device const float* q_weight [[buffer(3)]],
                                device const float* k_weight [[buffer(4)]],
                                device const float* v_weight [[buffer(5)]],
                                constant uint& T [[buffer(6)]],
                                constant uint& Hq [[buffer(7)]],
                                constant uint& Hkv [[buffer(8)]],
                                constant uint& D [[buffer(9)]],
                                constant uint& rotary_dim [[buffer(10)]],
                                device const uint* pos [[buffer(11)]],
                                constant float& eps [[buffer(13)]],
                                device const float* inv_freq [[buffer(18)]],
                                constant uint& v_norm [[buffer(19)]],
                                uint tile [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    uint first = pos[0];
    if (row >= q_rows + 2ul * kv_rows || !ingot_positions_fit(first, T)) {
        return;
    }
    ingot_qkv_rope<float>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, first, eps, false, k, v,
                          0ul, inv_freq, v_norm, ingot_rope_plain(inv_freq), row, lane);
}

// rms_qkv_rope_posbuf with what rms_qkv_rope_kv_store_opt adds.
//
// Slots: those of rms_qkv_rope_posbuf; 20 pairing, 21 factor f32, 22 q_bias f32 [Hq, D], 23 k_bias f32 [Hkv, D],
//        24 v_bias f32 [Hkv, D], 25 operands.
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
kernel void rms_qkv_rope_posbuf_opt(device float* q [[buffer(0)]],
                                    device float* k [[buffer(1)]],
                                    device float* v [[buffer(2)]],
                                    device const float* q_weight [[buffer(3)]],
                                    device const float* k_weight [[buffer(4)]],
                                    device const float* v_weight [[buffer(5)]],
                                    constant uint& T [[buffer(6)]],
                                    constant uint& Hq [[buffer(7)]],
                                    constant uint& Hkv [[buffer(8)]],
                                    constant uint& D [[buffer(9)]],
                                    constant uint& rotary_dim [[buffer(10)]],
                                    device const uint* pos [[buffer(11)]],
                                    constant float& eps [[buffer(13)]],
                                    device const float* inv_freq [[buffer(18)]],
                                    constant uint& v_norm [[buffer(19)]],
                                    constant uint& pairing [[buffer(20)]],
                                    constant float& factor [[buffer(21)]],
                                    device const float* q_bias [[buffer(22)]],
                                    device const float* k_bias [[buffer(23)]],
                                    device const float* v_bias [[buffer(24)]],
                                    constant uint& operands [[buffer(25)]],
                                    uint tile [[threadgroup_position_in_grid]],
                                    uint lane [[thread_index_in_simdgroup]],
                                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    uint first = pos[0];
    if (row >= q_rows + 2ul * kv_rows || !ingot_positions_fit(first, T)) {
        return;
    }
    ingot_rope_options options;
    options.q_bias = q_bias;
    options.k_bias = k_bias;
    options.v_bias = v_bias;
    options.operands = operands;
    options.pairing = pairing;
    options.factor = factor;
    ingot_qkv_rope<float>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, first, eps, false, k, v,
                          0ul, inv_freq, v_norm, options, row, lane);
}
#line 1 "qmm_affine.metal"
// Products with matrices in the affine format whose scales and biases are f32, Y [M, N] = X [M, K] W^T; see qmm_affine.h.
//
// Slots of all kernels: 0 x f32 [M, K], 1 codes [N, K], 2 scales f32 [N, K / group_size], 3 biases likewise, 4 y f32 [M, N],
// 5 M, N, K, group_size. codes are bytes, or in the packed kernel u32 words of eight, the lowest four bits first.

#line 7 "qmm_affine.metal"
#line 1 "qmm_affine.h"
// What the products with matrices in the affine format share: Y [M, N] = X [M, K] W^T for W [N, K], w = scale * code + bias.
//
// A row of W has a scale and a bias for each group_size columns; group_size divides K.

#ifndef INGOT_QMM_AFFINE_H
#define INGOT_QMM_AFFINE_H

#line 9 "qmm_affine.h"

struct ingot_affine_shape {
    uint M;
    uint N;
    uint K;
    uint group_size;
};

// A weight: scale * code + bias, rounded once. All kernels but those that sum codes multiply with this number.
INGOT_FUNC float ingot_affine_weight(uint code, float scale, float bias) { return fma(scale, float(code), bias); }

// Copies a block of TILE rows and BK columns of x, from (row, k) on, to threadgroup memory. Rows past the last are zeros.
template <uint TILE, uint BK, uint THREADS>
INGOT_FUNC void ingot_affine_stage_x(threadgroup float* to, device const float* x, uint M, uint K, uint row, uint k, uint tid) {
    for (uint i = tid; i < TILE * BK; i += THREADS) {
        uint r = row + i / BK;
        to[i] = r < M ? x[ulong(r) * ulong(K) + ulong(k + i % BK)] : 0.0f;
    }
}

// The same of W, whose groups are BK columns wide, from codes of a byte.
template <uint TILE, uint BK, uint THREADS>
INGOT_FUNC void ingot_affine_stage_w(threadgroup float* to, device const uchar* codes, device const float* scales,
                                     device const float* biases, uint N, uint K, uint row, uint k, uint tid) {
    for (uint i = tid; i < TILE * BK; i += THREADS) {
        uint r = row + i / BK;
        float w = 0.0f;
        if (r < N) {
            ulong group = ulong(r) * ulong(K / BK) + ulong(k / BK);
            w = ingot_affine_weight(codes[ulong(r) * ulong(K) + ulong(k + i % BK)], scales[group], biases[group]);
        }
        to[i] = w;
    }
}

// The same from words of eight 4-bit codes, the lowest first.
template <uint TILE, uint BK, uint THREADS>
INGOT_FUNC void ingot_affine_stage_w(threadgroup float* to, device const uint* words, device const float* scales,
                                     device const float* biases, uint N, uint K, uint row, uint k, uint tid) {
    for (uint i = tid; i < TILE * BK / 8u; i += THREADS) {
        uint r = row + i / (BK / 8u);
        uint word = 0u;
        float scale = 0.0f;
        float bias = 0.0f;
        if (r < N) {
            ulong group = ulong(r) * ulong(K / BK) + ulong(k / BK);
            word = words[ulong(r) * ulong(K / 8u) + ulong(k / 8u + i % (BK / 8u))];
            scale = scales[group];
            bias = biases[group];
        }
#pragma unroll
        for (uint j = 0u; j < 8u; j++) {
            to[8u * i + j] = ingot_affine_weight(word >> 4u * j & 15u, scale, bias);
        }
    }
}

// A tile of Y on simdgroup matrices, for SIDE by SIDE simdgroups, each of PART by PART matrices of 8 by 8; groups are BK columns wide.
// memory holds two blocks of a tile's rows by BK.
//
// An element adds its products up eight at a time in the order of the columns, whatever M, N and its place.
template <uint SIDE, uint PART, uint BK, typename C>
INGOT_FUNC void ingot_affine_tile(device const float* x, device const C* codes, device const float* scales, device const float* biases,
                                  device float* y, constant ingot_affine_shape& p, threadgroup float* memory, uint2 tile, uint tid,
                                  uint simdgroup) {
    constexpr uint TILE = SIDE * PART * 8u;
    constexpr uint THREADS = SIDE * SIDE * 32u;
    uint row0 = tile.x * TILE;
    uint col0 = tile.y * TILE;
    if (row0 >= p.M || col0 >= p.N) {
        return;
    }
    threadgroup float* block_x = memory;
    threadgroup float* block_w = memory + TILE * BK;
    uint part_row = simdgroup / SIDE * PART * 8u;
    uint part_col = simdgroup % SIDE * PART * 8u;
    simdgroup_float8x8 sum[PART][PART];
#pragma unroll
    for (uint i = 0u; i < PART; i++) {
#pragma unroll
        for (uint j = 0u; j < PART; j++) {
            sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    for (uint k0 = 0u; k0 < p.K; k0 += BK) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the blocks before have been used
        ingot_affine_stage_x<TILE, BK, THREADS>(block_x, x, p.M, p.K, row0, k0, tid);
        ingot_affine_stage_w<TILE, BK, THREADS>(block_w, codes, scales, biases, p.N, p.K, col0, k0, tid);
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint k = 0u; k < BK; k += 8u) {
            simdgroup_float8x8 mx[PART];
            simdgroup_float8x8 mw[PART];
#pragma unroll
            for (uint i = 0u; i < PART; i++) {
                simdgroup_load(mx[i], block_x + (part_row + 8u * i) * BK + k, ulong(BK), ulong2(0ul, 0ul), false);
                simdgroup_load(mw[i], block_w + (part_col + 8u * i) * BK + k, ulong(BK), ulong2(0ul, 0ul), true);
            }
#pragma unroll
            for (uint i = 0u; i < PART; i++) {
#pragma unroll
                for (uint j = 0u; j < PART; j++) {
                    simdgroup_multiply_accumulate(sum[i][j], mx[i], mw[j], sum[i][j]);
                }
            }
        }
    }
    // All simdgroups of a tile take the same branch.
    if (row0 + TILE <= p.M && col0 + TILE <= p.N) {
#pragma unroll
        for (uint i = 0u; i < PART; i++) {
#pragma unroll
            for (uint j = 0u; j < PART; j++) {
                ulong at = ulong(row0 + part_row + 8u * i) * ulong(p.N) + ulong(col0 + part_col + 8u * j);
                simdgroup_store(sum[i][j], y + at, ulong(p.N));
            }
        }
        return;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint i = 0u; i < PART; i++) {
#pragma unroll
        for (uint j = 0u; j < PART; j++) {
            simdgroup_store(sum[i][j], memory + (part_row + 8u * i) * TILE + part_col + 8u * j, ulong(TILE));
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = tid; i < TILE * TILE; i += THREADS) {
        uint r = row0 + i / TILE;
        uint c = col0 + i % TILE;
        if (r < p.M && c < p.N) {
            y[ulong(r) * ulong(p.N) + ulong(c)] = memory[i];
        }
    }
}

#endif
#line 8 "qmm_affine.metal"

// y[m, n] = sum over k of x[m, k] * w[n, k], a thread for each element
//
// The sum is one fma for each k in order.
//
// Slots: see above; any group_size that divides K.
// Geometry: ceil(M / X) x ceil(N / Y) threadgroups of X x Y threads. Threadgroup memory: none.
kernel void qmm_affine_t_f32(device const float* x [[buffer(0)]],
                             device const uchar* codes [[buffer(1)]],
                             device const float* scales [[buffer(2)]],
                             device const float* biases [[buffer(3)]],
                             device float* y [[buffer(4)]],
                             constant ingot_affine_shape& p [[buffer(5)]],
                             uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.M || at.y >= p.N) {
        return;
    }
    device const float* v = x + ulong(at.x) * ulong(p.K);
    device const uchar* row = codes + ulong(at.y) * ulong(p.K);
    ulong group = ulong(at.y) * ulong(p.K / p.group_size);
    float sum = 0.0f;
    for (uint k0 = 0u; k0 < p.K; k0 += p.group_size) {
        float scale = scales[group];
        float bias = biases[group];
        for (uint k = k0; k < k0 + p.group_size; k++) {
            sum = fma(v[k], ingot_affine_weight(row[k], scale, bias), sum);
        }
        group++;
    }
    y[ulong(at.x) * ulong(p.N) + ulong(at.y)] = sum;
}

// y[m, n] = sum over k of x[m, k] * w[n, k], tiles of 16 by 16; the bits of qmm_affine_t_f32
//
// Slots: see above; group_size 32.
// Geometry: ceil(M / 16) x ceil(N / 16) threadgroups of 16 x 16 threads.
// Threadgroup memory: 0, 2,688 bytes: 16 by 32 of x, 16 scales, 16 biases, 16 by 32 codes.
kernel void qmm_affine_t_f32_tiled(device const float* x [[buffer(0)]],
                                   device const uchar* codes [[buffer(1)]],
                                   device const float* scales [[buffer(2)]],
                                   device const float* biases [[buffer(3)]],
                                   device float* y [[buffer(4)]],
                                   constant ingot_affine_shape& p [[buffer(5)]],
                                   threadgroup float* memory [[threadgroup(0)]],
                                   uint2 tile [[threadgroup_position_in_grid]],
                                   uint2 at [[thread_position_in_threadgroup]],
                                   uint tid [[thread_index_in_threadgroup]]) {
    threadgroup float* block_x = memory;
    threadgroup float* block_s = memory + 512;
    threadgroup float* block_b = block_s + 16;
    threadgroup uchar* block_q = (threadgroup uchar*)(block_b + 16);
    uint row0 = tile.x * 16u;
    uint col0 = tile.y * 16u;
    if (row0 >= p.M || col0 >= p.N) {
        return;
    }
    float sum = 0.0f;
    for (uint k0 = 0u; k0 < p.K; k0 += 32u) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the blocks before have been used
        ingot_affine_stage_x<16u, 32u, 256u>(block_x, x, p.M, p.K, row0, k0, tid);
        for (uint i = tid; i < 512u; i += 256u) {
            uint r = col0 + i / 32u;
            block_q[i] = r < p.N ? codes[ulong(r) * ulong(p.K) + ulong(k0 + i % 32u)] : uchar(0);
        }
        if (tid < 16u) {
            uint r = min(col0 + tid, p.N - 1u);
            ulong group = ulong(r) * ulong(p.K / 32u) + ulong(k0 / 32u);
            block_s[tid] = scales[group];
            block_b[tid] = biases[group];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float scale = block_s[at.y];
        float bias = block_b[at.y];
        for (uint k = 0u; k < 32u; k++) {
            sum = fma(block_x[at.x * 32u + k], ingot_affine_weight(block_q[at.y * 32u + k], scale, bias), sum);
        }
    }
    uint m = row0 + at.x;
    uint n = col0 + at.y;
    if (m < p.M && n < p.N) {
        y[ulong(m) * ulong(p.N) + ulong(n)] = sum;
    }
}

// y[m, n] = sum over k of x[m, k] * w[n, k], tiles of 8 by 8 on a simdgroup matrix
//
// Slots: see above; group_size 32.
// Geometry: ceil(M / 8) x ceil(N / 8) threadgroups of 32 threads.
// Threadgroup memory: 0, 2,048 bytes: 8 by 32 of x and of w.
kernel void qmm_affine_t_f32_simd(device const float* x [[buffer(0)]],
                                  device const uchar* codes [[buffer(1)]],
                                  device const float* scales [[buffer(2)]],
                                  device const float* biases [[buffer(3)]],
                                  device float* y [[buffer(4)]],
                                  constant ingot_affine_shape& p [[buffer(5)]],
                                  threadgroup float* memory [[threadgroup(0)]],
                                  uint2 tile [[threadgroup_position_in_grid]],
                                  uint tid [[thread_index_in_threadgroup]],
                                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_affine_tile<1, 1, 32>(x, codes, scales, biases, y, p, memory, tile, tid, simdgroup);
}

// y[m, n] = sum over k of x[m, k] * w[n, k], tiles of 32 by 32, a quarter for each of four simdgroups
//
// Slots: see above; group_size 32.
// Geometry: ceil(M / 32) x ceil(N / 32) threadgroups of 128 threads.
// Threadgroup memory: 0, 8,192 bytes: 32 by 32 of x and of w.
kernel void qmm_affine_t_f32_simd4(device const float* x [[buffer(0)]],
                                   device const uchar* codes [[buffer(1)]],
                                   device const float* scales [[buffer(2)]],
                                   device const float* biases [[buffer(3)]],
                                   device float* y [[buffer(4)]],
                                   constant ingot_affine_shape& p [[buffer(5)]],
                                   threadgroup float* memory [[threadgroup(0)]],
                                   uint2 tile [[threadgroup_position_in_grid]],
                                   uint tid [[thread_index_in_threadgroup]],
                                   uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_affine_tile<2, 2, 32>(x, codes, scales, biases, y, p, memory, tile, tid, simdgroup);
}

// As qmm_affine_t_f32_simd4
//
// Slots: see above; group_size 64.
// Geometry: ceil(M / 32) x ceil(N / 32) threadgroups of 128 threads.
// Threadgroup memory: 0, 16,384 bytes: 32 by 64 of x and of w.
kernel void qmm_affine_t_f32_simd4_gs64(device const float* x [[buffer(0)]],
                                        device const uchar* codes [[buffer(1)]],
                                        device const float* scales [[buffer(2)]],
                                        device const float* biases [[buffer(3)]],
                                        device float* y [[buffer(4)]],
                                        constant ingot_affine_shape& p [[buffer(5)]],
                                        threadgroup float* memory [[threadgroup(0)]],
                                        uint2 tile [[threadgroup_position_in_grid]],
                                        uint tid [[thread_index_in_threadgroup]],
                                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_affine_tile<2, 2, 64>(x, codes, scales, biases, y, p, memory, tile, tid, simdgroup);
}

// As qmm_affine_t_f32_simd4, and with its bits, from packed codes
//
// Slots: see above; codes in words, group_size 32.
// Geometry: ceil(M / 32) x ceil(N / 32) threadgroups of 128 threads.
// Threadgroup memory: 0, 8,192 bytes: 32 by 32 of x and of w.
kernel void qmm_affine_t_packed_simd4_b4(device const float* x [[buffer(0)]],
                                         device const uint* codes [[buffer(1)]],
                                         device const float* scales [[buffer(2)]],
                                         device const float* biases [[buffer(3)]],
                                         device float* y [[buffer(4)]],
                                         constant ingot_affine_shape& p [[buffer(5)]],
                                         threadgroup float* memory [[threadgroup(0)]],
                                         uint2 tile [[threadgroup_position_in_grid]],
                                         uint tid [[thread_index_in_threadgroup]],
                                         uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_affine_tile<2, 2, 32>(x, codes, scales, biases, y, p, memory, tile, tid, simdgroup);
}
#line 1 "qmm_affine_bank.metal"
// Products of matrices in MLX's affine format, Y [M, N] = X [M, K] W^T; see affine.h.
//
// Slots of all kernels: 0 x [M, K], 4 elements aligned, 1 packed u32 [N, K * BITS / 32], 8-byte aligned, 2 scales
// [N, K / group_size], 3 biases likewise, 4 y [M, N], 5 M, N, K, group_size. group_size is a multiple of 32 and divides 512.
// Function constants: the types of x, y, and scales and biases; see affine.h.

#line 8 "qmm_affine_bank.metal"
#line 9 "qmm_affine_bank.metal"
#line 10 "qmm_affine_bank.metal"

#define INGOT_QMV_ROWS 4          // rows of W that a simdgroup computes at once
#define INGOT_QMV_GROUP_ROWS 8u   // those of a threadgroup: two simdgroups
#define INGOT_QMV_BLOCK 512u      // columns of a step: 16 for each lane

// y[m, n] = sum over k of x[m, k] * w[n, k] for NV rows m at once, each bit for bit what it is alone
//
// The last row of x stands in for rows past the end, which are not stored. A lane takes 16 columns of a step for all rows. A row's groups contribute scale * sum(code * x) + bias * sum(x), and the operations
// for an element, and their order, depend on K and group_size alone.
//
// Kernels: qmv_affine_b{BITS}_m{NV}.
//
// Slots: see above.
// Geometry: ceil(N / 8) x ceil(M / NV) threadgroups of 64 threads. Threadgroup memory: none.
// Source: qmv_fast of MLX (mlx/backend/metal/kernels/quantized.h).
template <uint BITS, uint NV>
kernel void qmv_affine(device const uchar* x [[buffer(0)]],
                       device const uint* packed [[buffer(1)]],
                       device const uchar* scales [[buffer(2)]],
                       device const uchar* biases [[buffer(3)]],
                       device uchar* y [[buffer(4)]],
                       constant ingot_affine_shape& p [[buffer(5)]],
                       uint2 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    uint row0 = group.x * INGOT_QMV_GROUP_ROWS + simdgroup * uint(INGOT_QMV_ROWS);
    uint first = group.y * NV;
    if (row0 >= p.N || first >= p.M) {
        return;
    }
    ulong row_words = ulong(p.K / 32u) * ulong(BITS);
    ulong row_groups = ulong(p.K / p.group_size);
    ulong word[INGOT_QMV_ROWS];
    ulong number[INGOT_QMV_ROWS];
    float sum[NV][INGOT_QMV_ROWS];
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
        ulong row = ulong(min(row0 + r, p.N - 1u)); // the last row stands in for rows past the end
        word[r] = row * row_words + ulong(lane * (BITS / 2u));
        number[r] = row * row_groups + ulong(lane * 16u / p.group_size);
#pragma unroll
        for (uint m = 0u; m < NV; m++) {
            sum[m][r] = 0.0f;
        }
    }
    float4 places = ingot_affine_places<BITS>();
    ulong quad[NV];
#pragma unroll
    for (uint m = 0u; m < NV; m++) {
        quad[m] = ulong(min(first + m, p.M - 1u)) * ulong(p.K / 4u) + ulong(lane) * 4ul;
    }
    for (uint col = lane * 16u; col < p.K; col += INGOT_QMV_BLOCK) {
        uint words[INGOT_QMV_ROWS][BITS / 2u];
        float dot[NV][INGOT_QMV_ROWS];
        float total[NV];
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
            ingot_affine_words<BITS>(packed, word[r], words[r]);
            word[r] += ulong(16u * BITS);
        }
#pragma unroll
        for (uint m = 0u; m < NV; m++) {
            total[m] = 0.0f;
#pragma unroll
            for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
                dot[m][r] = 0.0f;
            }
        }
#pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            float4 code[INGOT_QMV_ROWS];
#pragma unroll
            for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
                code[r] = ingot_affine_quad<BITS>(words[r], i);
            }
#pragma unroll
            for (uint m = 0u; m < NV; m++) {
                float4 v = ingot_affine_load(x, quad[m] + ulong(i));
                total[m] += (v.x + v.y) + (v.z + v.w);
                v = v * places;
#pragma unroll
                for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
                    float t = fma(v.x, code[r].x, dot[m][r]);
                    t = fma(v.y, code[r].y, t);
                    t = fma(v.z, code[r].z, t);
                    dot[m][r] = fma(v.w, code[r].w, t);
                }
            }
        }
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
            float scale = ingot_affine_number(scales, number[r]);
            float bias = ingot_affine_number(biases, number[r]);
            number[r] += ulong(INGOT_QMV_BLOCK / p.group_size);
#pragma unroll
            for (uint m = 0u; m < NV; m++) {
                sum[m][r] = fma(scale, dot[m][r], fma(bias, total[m], sum[m][r]));
            }
        }
#pragma unroll
        for (uint m = 0u; m < NV; m++) {
            quad[m] += 128ul;
        }
    }
#pragma unroll
    for (uint m = 0u; m < NV; m++) {
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
            float v = simd_sum(sum[m][r]);
            if (lane == 0u && m < p.M - first && r < p.N - row0) {
                ingot_affine_store(y, ulong(first + m) * ulong(p.N) + ulong(row0 + r), v);
            }
        }
    }
}

typedef decltype(qmv_affine<4, 1>) qmv_affine_kernel;

template [[host_name("qmv_affine_b4_m1")]] kernel qmv_affine_kernel qmv_affine<4, 1>;
template [[host_name("qmv_affine_b4_m2")]] kernel qmv_affine_kernel qmv_affine<4, 2>;
template [[host_name("qmv_affine_b4_m3")]] kernel qmv_affine_kernel qmv_affine<4, 3>;
template [[host_name("qmv_affine_b4_m4")]] kernel qmv_affine_kernel qmv_affine<4, 4>;
template [[host_name("qmv_affine_b4_m5")]] kernel qmv_affine_kernel qmv_affine<4, 5>;
template [[host_name("qmv_affine_b4_m6")]] kernel qmv_affine_kernel qmv_affine<4, 6>;
template [[host_name("qmv_affine_b4_m7")]] kernel qmv_affine_kernel qmv_affine<4, 7>;
template [[host_name("qmv_affine_b4_m8")]] kernel qmv_affine_kernel qmv_affine<4, 8>;
template [[host_name("qmv_affine_b6_m1")]] kernel qmv_affine_kernel qmv_affine<6, 1>;
template [[host_name("qmv_affine_b6_m2")]] kernel qmv_affine_kernel qmv_affine<6, 2>;
template [[host_name("qmv_affine_b6_m3")]] kernel qmv_affine_kernel qmv_affine<6, 3>;
template [[host_name("qmv_affine_b6_m4")]] kernel qmv_affine_kernel qmv_affine<6, 4>;
template [[host_name("qmv_affine_b6_m5")]] kernel qmv_affine_kernel qmv_affine<6, 5>;
template [[host_name("qmv_affine_b6_m6")]] kernel qmv_affine_kernel qmv_affine<6, 6>;
template [[host_name("qmv_affine_b6_m7")]] kernel qmv_affine_kernel qmv_affine<6, 7>;
template [[host_name("qmv_affine_b6_m8")]] kernel qmv_affine_kernel qmv_affine<6, 8>;
template [[host_name("qmv_affine_b8_m1")]] kernel qmv_affine_kernel qmv_affine<8, 1>;
template [[host_name("qmv_affine_b8_m2")]] kernel qmv_affine_kernel qmv_affine<8, 2>;
template [[host_name("qmv_affine_b8_m3")]] kernel qmv_affine_kernel qmv_affine<8, 3>;
template [[host_name("qmv_affine_b8_m4")]] kernel qmv_affine_kernel qmv_affine<8, 4>;
template [[host_name("qmv_affine_b8_m5")]] kernel qmv_affine_kernel qmv_affine<8, 5>;
template [[host_name("qmv_affine_b8_m6")]] kernel qmv_affine_kernel qmv_affine<8, 6>;
template [[host_name("qmv_affine_b8_m7")]] kernel qmv_affine_kernel qmv_affine<8, 7>;
template [[host_name("qmv_affine_b8_m8")]] kernel qmv_affine_kernel qmv_affine<8, 8>;

#define INGOT_QMM_COLS 64u    // rows of W of a tile, which are columns of y
#define INGOT_QMM_STEP 32u    // columns that a threadgroup holds at a time
#define INGOT_QMM_LD 36u      // from one row to the next in threadgroup memory, against conflicts of its banks

// y[m, n] = sum over k of x[m, k] * w[n, k], tiles of ROWS by 64 on simdgroup matrices
//
// Each weight is dequantised once for a tile, and rounded once, to f32. An element adds its products up eight at a time in the order
// of the columns: its bits depend neither on M, N and its place nor on ROWS.
//
// Kernels: qmm_affine_b{BITS}_t{ROWS}.
//
// Slots: see above.
// Geometry: ceil(N / 64) x ceil(M / ROWS) threadgroups of 128 threads, 2 by 2 simdgroups.
// Threadgroup memory: 13,824 bytes with 32 rows, 18,432 with 64.
template <uint BITS, uint ROWS>
kernel void qmm_affine(device const uchar* x [[buffer(0)]],
                       device const uint* packed [[buffer(1)]],
                       device const uchar* scales [[buffer(2)]],
                       device const uchar* biases [[buffer(3)]],
                       device uchar* y [[buffer(4)]],
                       constant ingot_affine_shape& p [[buffer(5)]],
                       uint2 tile [[threadgroup_position_in_grid]],
                       uint tid [[thread_index_in_threadgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
    constexpr uint PART = ROWS / 16u; // matrices of 8 rows of a simdgroup
    threadgroup float4 memory[(ROWS + INGOT_QMM_COLS) * INGOT_QMM_LD / 4u];
    threadgroup float* block_x = (threadgroup float*)memory;
    threadgroup float* block_w = block_x + ROWS * INGOT_QMM_LD;
    uint row0 = tile.y * ROWS;
    uint col0 = tile.x * INGOT_QMM_COLS;
    if (row0 >= p.M || col0 >= p.N) {
        return;
    }
    uint part_row = simdgroup / 2u * (ROWS / 2u);
    uint part_col = simdgroup % 2u * 32u;
    ulong quads = ulong(p.K / 4u);
    uint w_row = tid / 2u; // a thread dequantises half a row of a block
    uint w_half = tid % 2u;
    bool has_row = col0 + w_row < p.N;
    ulong word = ulong(col0 + w_row) * (ulong(p.K / 32u) * ulong(BITS)) + ulong(w_half * (BITS / 2u));
    ulong number = ulong(col0 + w_row) * ulong(p.K / p.group_size);

    simdgroup_float8x8 sum[PART][4];
#pragma unroll
    for (uint i = 0u; i < PART; i++) {
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    for (uint k0 = 0u; k0 < p.K; k0 += INGOT_QMM_STEP) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the blocks before have been used
        for (uint i = tid; i < ROWS * (INGOT_QMM_STEP / 4u); i += 128u) {
            uint r = i / (INGOT_QMM_STEP / 4u);
            uint q = i % (INGOT_QMM_STEP / 4u);
            float4 v = float4(0.0f);
            if (row0 + r < p.M) {
                v = ingot_affine_load(x, ulong(row0 + r) * quads + ulong(k0 / 4u + q));
            }
            *(threadgroup float4*)(block_x + (r * INGOT_QMM_LD + 4u * q)) = v;
        }
        threadgroup float4* row = (threadgroup float4*)(block_w + (w_row * INGOT_QMM_LD + w_half * 16u));
        if (has_row) {
            uint words[BITS / 2u];
            ingot_affine_words<BITS>(packed, word, words);
            float scale = ingot_affine_number(scales, number + ulong(k0 / p.group_size));
            float bias = ingot_affine_number(biases, number + ulong(k0 / p.group_size));
#pragma unroll
            for (uint i = 0u; i < 4u; i++) {
                row[i] = ingot_affine_weights<BITS>(words, i, scale, bias);
            }
        } else {
#pragma unroll
            for (uint i = 0u; i < 4u; i++) {
                row[i] = float4(0.0f);
            }
        }
        word += ulong(BITS);
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint k = 0u; k < INGOT_QMM_STEP; k += 8u) {
            simdgroup_float8x8 mx[PART];
            simdgroup_float8x8 mw[4];
#pragma unroll
            for (uint i = 0u; i < PART; i++) {
                simdgroup_load(mx[i], block_x + ((part_row + 8u * i) * INGOT_QMM_LD + k), ulong(INGOT_QMM_LD), ulong2(0ul, 0ul), false);
            }
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                simdgroup_load(mw[j], block_w + ((part_col + 8u * j) * INGOT_QMM_LD + k), ulong(INGOT_QMM_LD), ulong2(0ul, 0ul), true);
            }
#pragma unroll
            for (uint i = 0u; i < PART; i++) {
#pragma unroll
                for (uint j = 0u; j < 4u; j++) {
                    simdgroup_multiply_accumulate(sum[i][j], mx[i], mw[j], sum[i][j]);
                }
            }
        }
    }

    // Eight rows of a simdgroup at a time go through threadgroup memory, where a lane has a column.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float* rows = block_x + simdgroup * 256u;
    uint n = col0 + part_col + lane;
#pragma unroll
    for (uint i = 0u; i < PART; i++) {
        simdgroup_barrier(mem_flags::mem_threadgroup); // the rows before have been read
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            simdgroup_store(sum[i][j], rows + 8u * j, 32ul);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint r = 0u; r < 8u; r++) {
            uint m = row0 + part_row + 8u * i + r;
            if (m < p.M && n < p.N) {
                ingot_affine_store(y, ulong(m) * ulong(p.N) + ulong(n), rows[r * 32u + lane]);
            }
        }
    }
}

typedef decltype(qmm_affine<4, 32>) qmm_affine_kernel;

template [[host_name("qmm_affine_b4_t32")]] kernel qmm_affine_kernel qmm_affine<4, 32>;
template [[host_name("qmm_affine_b4_t64")]] kernel qmm_affine_kernel qmm_affine<4, 64>;
template [[host_name("qmm_affine_b6_t32")]] kernel qmm_affine_kernel qmm_affine<6, 32>;
template [[host_name("qmm_affine_b6_t64")]] kernel qmm_affine_kernel qmm_affine<6, 64>;
template [[host_name("qmm_affine_b8_t32")]] kernel qmm_affine_kernel qmm_affine<8, 32>;
template [[host_name("qmm_affine_b8_t64")]] kernel qmm_affine_kernel qmm_affine<8, 64>;
#line 1 "qmm_affine_plane.metal"
// Products with matrices of 4-bit codes in tiles of 64 rows, for up to 32 rows of x, which are rounded to bf16 first.

#line 4 "qmm_affine_plane.metal"
#line 5 "qmm_affine_plane.metal"
#line 6 "qmm_affine_plane.metal"

// table[m, k] = bf16(x[m, k]), and sums[m / 8, k / 64, m % 8] = the sum of a group's 64; rows from M on are zeros
//
// Slots: 0 x f32 [M, K], 1 table bf16 [ceil(M / 8) * 8, K], 2 sums f32 [ceil(M / 8), K / 64, 8], 3 M, N, K, 64.
// Geometry: K / 64 x ceil(M / 8) threadgroups of 256 threads, a simdgroup for each row. Threadgroup memory: none.
kernel void qmm_affine_t_packed_simd4_b4_gs64_bf16_prepare(device const float* x [[buffer(0)]],
                                                           device ushort* table [[buffer(1)]],
                                                           device float* sums [[buffer(2)]],
                                                           constant ingot_affine_shape& p [[buffer(3)]],
                                                           uint2 tile [[threadgroup_position_in_grid]],
                                                           uint simdgroup [[simdgroup_index_in_threadgroup]],
                                                           uint lane [[thread_index_in_simdgroup]]) {
    uint row = tile.y * 8u + simdgroup;
    ulong at = ulong(row) * ulong(p.K) + ulong(tile.x * 64u + lane * 2u);
    ushort a = 0u;
    ushort b = 0u;
    if (row < p.M) {
        a = ingot_bf16_bits(x[at]);
        b = ingot_bf16_bits(x[at + 1ul]);
    }
    table[at] = a;
    table[at + 1ul] = b;
    float sum = simd_sum(ingot_from_bf16_bits(a) + ingot_from_bf16_bits(b));
    if (lane == 0u) {
        sums[(ulong(tile.y) * ulong(p.K / 64u) + ulong(tile.x)) * 8ul + ulong(simdgroup)] = sum;
    }
}

// Two codes, exactly, as a pair of bf16.
INGOT_FUNC uint ingot_affine_bf16_pair(uint low, uint high) {
    return as_type<uint>(float(low)) >> 16u | as_type<uint>(float(high));
}

// y[m, n] = sum over groups g of scale * (sum over k in g of code * table[m, k]) + bias * sums[m / 8, g, m % 8]
//
// Word c of the four that a row has for 32 columns holds the codes of columns 4 c to 4 c + 3 and 16 + 4 c to 16 + 4 c + 3, the even ones
// in its low half. A simdgroup takes 16 rows of weights. The sum of a group is on simdgroup matrices, whose products are exact;
// an element adds the groups up in order.
//
// Slots: 0 table, 1 sums, 2 codes u32 [N / 64, K / 32, 64, 4], 3 scales (low) and biases (high), bf16 pairs [N / 64, K / 64, 64],
//        4 y f32 [M, N], 5 M, N, K, 64.
// Geometry: N / 64 x ceil(M / 8) threadgroups of 128 threads.
// Threadgroup memory: 10,240 bytes.
kernel void qmm_affine_t_packed_simd4_b4_gs64_bf16(device const bfloat* table [[buffer(0)]],
                                                   device const float* sums [[buffer(1)]],
                                                   device const uint4* codes [[buffer(2)]],
                                                   device const uint* metadata [[buffer(3)]],
                                                   device float* y [[buffer(4)]],
                                                   constant ingot_affine_shape& p [[buffer(5)]],
                                                   uint2 tile [[threadgroup_position_in_grid]],
                                                   uint simdgroup [[simdgroup_index_in_threadgroup]],
                                                   uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint all_codes[4 * 512];  // 16 rows by 64 bf16 for each simdgroup
    threadgroup float all_sums[4 * 128];  // 8 by 16
    threadgroup uint* pairs = all_codes + simdgroup * 512u;
    threadgroup bfloat* block = (threadgroup bfloat*)pairs;
    threadgroup float* dots = all_sums + simdgroup * 128u;
    uint groups = p.K / 64u;
    uint col = lane % 16u;
    uint half_group = lane / 16u;
    uint col_in_tile = simdgroup * 16u + col;
    device const bfloat* rows = table + ulong(tile.y) * 8ul * ulong(p.K);
    float total[4];
#pragma unroll
    for (uint j = 0u; j < 4u; j++) {
        total[j] = 0.0f;
    }
    for (uint g = 0u; g < groups; g++) {
        uint4 words = codes[(ulong(tile.x) * ulong(groups * 2u) + ulong(g * 2u + half_group)) * 64ul + ulong(col_in_tile)];
#pragma unroll
        for (uint c = 0u; c < 4u; c++) {
            uint w = words[c];
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                uint both = w >> 4u * j;
                pairs[col * 32u + half_group * 16u + j / 2u * 8u + c * 2u + j % 2u] = ingot_affine_bf16_pair(both & 15u, both >> 16u & 15u);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_float8x8 sum[2];
        sum[0] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        sum[1] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma unroll
        for (uint k = 0u; k < 64u; k += 8u) {
            simdgroup_bfloat8x8 mx;
            simdgroup_load(mx, rows + ulong(g * 64u + k), ulong(p.K), ulong2(0ul, 0ul), false);
#pragma unroll
            for (uint j = 0u; j < 2u; j++) {
                simdgroup_bfloat8x8 mw;
                simdgroup_load(mw, block + j * 512u + k, 64ul, ulong2(0ul, 0ul), true);
                simdgroup_multiply_accumulate(sum[j], mx, mw, sum[j]);
            }
        }
        simdgroup_store(sum[0], dots, 16ul);
        simdgroup_store(sum[1], dots + 8, 16ul);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        uint meta = metadata[(ulong(tile.x) * ulong(groups) + ulong(g)) * 64ul + ulong(col_in_tile)];
        float scale = as_type<float>(meta << 16u);
        float bias = as_type<float>(meta & 0xffff0000u);
        device const float* group_sums = sums + (ulong(tile.y) * ulong(groups) + ulong(g)) * 8ul;
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            uint r = half_group + 2u * j;
            total[j] = fma(scale, dots[r * 16u + col], fma(bias, group_sums[r], total[j]));
        }
    }
#pragma unroll
    for (uint j = 0u; j < 4u; j++) {
        uint m = tile.y * 8u + half_group + 2u * j;
        if (m < p.M) {
            y[ulong(m) * ulong(p.N) + ulong(tile.x * 64u + col_in_tile)] = total[j];
        }
    }
}
#line 1 "rms_norm.metal"
// RMS normalisation of rows (Zhang and Sennrich, arXiv:1910.07467). The weight multiplies as it is: Gemma's (1 + w) is
// folded on the host.

#line 5 "rms_norm.metal"
#line 6 "rms_norm.metal"

// 1 / sqrt(mean(x^2) + eps) of a row, in every thread of its threadgroup. Sums in f32: |x| stays below 1e18 or so.
INGOT_FUNC float ingot_inverse_rms(device const float* x, uint dim, float eps, threadgroup float* scratch, uint thread_index,
                                   uint threads, uint lane, uint simdgroup, uint simdgroups) {
    float squares = 0.0f;
    for (uint i = thread_index; i < dim; i += threads) {
        float v = x[i];
        squares = fma(v, v, squares);
    }
    squares = ingot_row_sum(squares, scratch, lane, simdgroup, simdgroups);
    return precise::rsqrt(squares / float(dim) + eps);
}

// out[r, i] = x[r, i] / sqrt(mean(x[r]^2) + eps) * weight[i]
//
// Slots: 0 x f32 [rows, dim], 1 weight f32 [dim], 2 out f32 [rows, dim] (may be x itself), 3 rows, 4 dim,
//        5 eps f32.
// Geometry: one threadgroup per row; 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 128 bytes, static.
kernel void rms_norm_f32(device const float* x [[buffer(0)]],
                         device const float* weight [[buffer(1)]],
                         device float* out [[buffer(2)]],
                         constant uint& rows [[buffer(3)]],
                         constant uint& dim [[buffer(4)]],
                         constant float& eps [[buffer(5)]],
                         uint row [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_position_in_threadgroup]],
                         uint threads [[threads_per_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float scratch[INGOT_MAX_SIMDGROUPS];
    if (row >= rows) {
        return;
    }
    ulong base = ulong(row) * ulong(dim);
    float inverse = ingot_inverse_rms(x + base, dim, eps, scratch, thread_index, threads, lane, simdgroup, simdgroups);
    for (uint i = thread_index; i < dim; i += threads) {
        ulong at = base + ulong(i);
        out[at] = x[at] * inverse * weight[i];
    }
}

// out[r, i] = bf16(x[r, i] / sqrt(mean(x[r]^2) + eps) * weight[i])
//
// Slots: 0 x f32 [rows, dim], 1 weight f32 [dim], 2 out bf16 [rows, dim], 3 rows, 4 dim, 5 eps f32.
// Geometry: one threadgroup per row; 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 128 bytes, static.
kernel void rms_norm_bf16(device const float* x [[buffer(0)]],
                          device const float* weight [[buffer(1)]],
                          device bfloat* out [[buffer(2)]],
                          constant uint& rows [[buffer(3)]],
                          constant uint& dim [[buffer(4)]],
                          constant float& eps [[buffer(5)]],
                          uint row [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_position_in_threadgroup]],
                          uint threads [[threads_per_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]],
                          uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float scratch[INGOT_MAX_SIMDGROUPS];
    if (row >= rows) {
        return;
    }
    ulong base = ulong(row) * ulong(dim);
    float inverse = ingot_inverse_rms(x + base, dim, eps, scratch, thread_index, threads, lane, simdgroup, simdgroups);
    for (uint i = thread_index; i < dim; i += threads) {
        ulong at = base + ulong(i);
        out[at] = bfloat(x[at] * inverse * weight[i]);
    }
}

// resid[r, i] = layer_scale * (resid[r, i] + x[r, i] / sqrt(mean(x[r]^2) + eps) * weight[i])
//
// Slots: 0 x f32 [rows, dim], 1 weight f32 [dim], 2 resid f32 [rows, dim] (in and out; may be x itself), 3 rows, 4 dim,
//        5 eps f32, 6 layer_scale f32 (1 for models without one).
// Geometry: one threadgroup per row; 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 128 bytes, static.
kernel void rms_norm_residual_add_f32(device const float* x [[buffer(0)]],
                                      device const float* weight [[buffer(1)]],
                                      device float* resid [[buffer(2)]],
                                      constant uint& rows [[buffer(3)]],
                                      constant uint& dim [[buffer(4)]],
                                      constant float& eps [[buffer(5)]],
                                      constant float& layer_scale [[buffer(6)]],
                                      uint row [[threadgroup_position_in_grid]],
                                      uint thread_index [[thread_position_in_threadgroup]],
                                      uint threads [[threads_per_threadgroup]],
                                      uint lane [[thread_index_in_simdgroup]],
                                      uint simdgroup [[simdgroup_index_in_threadgroup]],
                                      uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float scratch[INGOT_MAX_SIMDGROUPS];
    if (row >= rows) {
        return;
    }
    ulong base = ulong(row) * ulong(dim);
    float inverse = ingot_inverse_rms(x + base, dim, eps, scratch, thread_index, threads, lane, simdgroup, simdgroups);
    for (uint i = thread_index; i < dim; i += threads) {
        ulong at = base + ulong(i);
        resid[at] = layer_scale * fma(x[at] * inverse, weight[i], resid[at]);
    }
}
#line 1 "row_exact_matvec.metal"
// Matrix-vector products for up to eight vectors at once, of which each is bit for bit what it is alone.

#line 4 "row_exact_matvec.metal"
#line 1 "row_exact.h"
// Products of rows of weights with one to eight vectors, each bit for bit the same whatever the others are.

#ifndef INGOT_ROW_EXACT_H
#define INGOT_ROW_EXACT_H

#line 7 "row_exact.h"
#line 8 "row_exact.h"

// What all products of a launch share; in elements of f32 but for the last two, which are in bytes.
struct RowExactMvParams {
    uint k;
    uint n;
    uint x_row_stride;
    uint x_batch_stride;
    uint y_row_stride;
    uint y_batch_stride;
    uint tgs_per_batch;
    uint pad;
    ulong w_row_bytes;
    ulong w_batch_bytes;
};

// y[b, j, r] = W[b, r] . x[b, j] for the NR0 rows r of a threadgroup and all j < M.
//
// The runs of a row of weights are dealt out to the threads of the threadgroup in turn. A thread adds up the products of its
// runs in the order of the columns, one fma each; then simd_sum adds those of a simdgroup, and another one the
// sums of the simdgroups, if there are several. So the order depends on k and the number of simdgroups alone: neither on M and j
// nor on NR0 and r.
//
// The last row of a batch stands in for rows past its end, which are not stored.
template <typename W, uint NR0, uint M>
INGOT_FUNC void ingot_row_exact(device const uchar* w, device const float4* x, device float* y,
                                constant RowExactMvParams& p, threadgroup float* partial, uint group, uint thread_index,
                                uint lane, uint simdgroup, uint simdgroups) {
    uint batch = group / p.tgs_per_batch;
    uint row0 = (group - batch * p.tgs_per_batch) * NR0;
    device const uchar* row[NR0];
#pragma unroll
    for (uint r = 0u; r < NR0; r++) {
        row[r] = w + ulong(batch) * p.w_batch_bytes + ulong(min(row0 + r, p.n - 1u)) * p.w_row_bytes;
    }
    device const float4* vector = x + ulong(batch) * ulong(p.x_batch_stride / 4u);
    ulong next = ulong(p.x_row_stride / 4u);
    float sum[NR0][M];
#pragma unroll
    for (uint r = 0u; r < NR0; r++) {
#pragma unroll
        for (uint j = 0u; j < M; j++) {
            sum[r][j] = 0.0f;
        }
    }
    uint runs = p.k / uint(W::values);
    for (uint run = thread_index; run < runs; run += 32u * simdgroups) {
        W at[NR0];
#pragma unroll
        for (uint r = 0u; r < NR0; r++) {
            ingot_seek(at[r], row[r], run);
        }
        device const float4* column = vector + ulong(run) * ulong(W::values / 4);
        for (uint i = 0u; i < uint(W::values / 4); i++) {
            float4 weight[NR0];
#pragma unroll
            for (uint r = 0u; r < NR0; r++) {
                weight[r] = ingot_quad(at[r], i);
            }
#pragma unroll
            for (uint j = 0u; j < M; j++) {
                float4 v = column[ulong(j) * next + ulong(i)];
#pragma unroll
                for (uint r = 0u; r < NR0; r++) {
                    float t = fma(weight[r].x, v.x, sum[r][j]);
                    t = fma(weight[r].y, v.y, t);
                    t = fma(weight[r].z, v.z, t);
                    sum[r][j] = fma(weight[r].w, v.w, t);
                }
            }
        }
    }
    y += ulong(batch) * ulong(p.y_batch_stride) + ulong(row0);
#pragma unroll
    for (uint r = 0u; r < NR0; r++) {
#pragma unroll
        for (uint j = 0u; j < M; j++) {
            float v = simd_sum(sum[r][j]);
            if (lane == 0u) {
                if (simdgroups > 1u) {
                    partial[(r * M + j) * 32u + simdgroup] = v;
                } else if (r < p.n - row0) {
                    y[ulong(j) * ulong(p.y_row_stride) + ulong(r)] = v;
                }
            }
        }
    }
    if (simdgroups == 1u) {
        return;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = simdgroup; i < NR0 * M; i += simdgroups) {
        float v = simd_sum(lane < simdgroups ? partial[i * 32u + lane] : 0.0f);
        uint r = i / M;
        if (lane == 0u && r < p.n - row0) {
            y[ulong(i - r * M) * ulong(p.y_row_stride) + ulong(r)] = v;
        }
    }
}

#endif
#line 5 "row_exact_matvec.metal"

// y[b, j, r] = sum over c of W[b, r, c] * x[b, j, c],  b < batches, j < M, r < n, c < k
//
// with a product's strides and the rows of weights as p has them; see row_exact.h for the order of the sums.
//
// Kernels: row_exact_mv_{type}_f32_r{NR0}_m{M}. The type is that of the weights, NR0 how many of their rows a threadgroup
// takes, M the number of vectors.
//
// Slots: 0 weights, rows of p.w_row_bytes bytes, aligned to 8 bytes if f16 or bf16, 16 if f32, q4_K or q5_K, and else 2;
//        1 x f32, 16-byte aligned; 2 y f32; 3 p. k is a multiple of 4, 32 or 256 for dense weights, blocks of 32 and
//        of 256; x_row_stride and x_batch_stride are multiples of 4. The products' outputs do not overlap.
// Geometry: tgs_per_batch for each batch, tgs_per_batch = ceil(n / NR0), threadgroups of 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 0, NR0 * M * 32 floats.
template <typename W, uint NR0, uint M>
kernel void row_exact_mv(device const uchar* w [[buffer(0)]],
                         device const float4* x [[buffer(1)]],
                         device float* y [[buffer(2)]],
                         constant RowExactMvParams& p [[buffer(3)]],
                         threadgroup float* partial [[threadgroup(0)]],
                         uint group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_position_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint simdgroups [[simdgroups_per_threadgroup]]) {
    ingot_row_exact<W, NR0, M>(w, x, y, p, partial, group, thread_index, lane, simdgroup, simdgroups);
}

typedef decltype(row_exact_mv<ingot_f16, 1, 1>) row_exact;

template [[host_name("row_exact_mv_f16_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_f16, 1, 1>;
template [[host_name("row_exact_mv_f16_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_f16, 1, 2>;
template [[host_name("row_exact_mv_f16_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_f16, 1, 3>;
template [[host_name("row_exact_mv_f16_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_f16, 1, 4>;
template [[host_name("row_exact_mv_f16_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_f16, 1, 5>;
template [[host_name("row_exact_mv_f16_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_f16, 1, 6>;
template [[host_name("row_exact_mv_f16_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_f16, 1, 7>;
template [[host_name("row_exact_mv_f16_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_f16, 1, 8>;
template [[host_name("row_exact_mv_f16_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_f16, 2, 1>;
template [[host_name("row_exact_mv_f16_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_f16, 2, 2>;
template [[host_name("row_exact_mv_f16_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_f16, 2, 3>;
template [[host_name("row_exact_mv_f16_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_f16, 2, 4>;
template [[host_name("row_exact_mv_f16_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_f16, 2, 5>;
template [[host_name("row_exact_mv_f16_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_f16, 2, 6>;
template [[host_name("row_exact_mv_f16_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_f16, 2, 7>;
template [[host_name("row_exact_mv_f16_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_f16, 2, 8>;

template [[host_name("row_exact_mv_q8_0_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 1>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 2>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 3>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 4>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 5>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 6>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 7>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 8>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 1>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 2>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 3>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 4>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 5>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 6>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 7>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 8>;

template [[host_name("row_exact_mv_q4_K_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 1>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 2>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 3>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 4>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 5>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 6>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 7>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 8>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 1>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 2>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 3>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 4>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 5>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 6>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 7>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 8>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m1")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 1>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m2")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 2>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m3")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 3>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m4")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 4>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m5")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 5>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m6")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 6>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m7")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 7>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m8")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 8>;

template [[host_name("row_exact_mv_q6_K_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 1>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 2>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 3>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 4>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 5>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 6>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 7>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 8>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 1>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 2>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 3>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 4>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 5>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 6>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 7>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 8>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m1")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 1>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m2")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 2>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m3")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 3>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m4")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 4>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m5")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 5>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m6")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 6>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m7")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 7>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m8")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 8>;

template [[host_name("row_exact_mv_q5_0_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 1>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 2>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 3>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 4>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 5>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 6>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 7>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 8>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 1>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 2>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 3>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 4>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 5>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 6>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 7>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 8>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m1")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 1>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m2")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 2>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m3")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 3>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m4")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 4>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m5")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 5>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m6")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 6>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m7")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 7>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m8")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 8>;

template [[host_name("row_exact_mv_q4_0_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 1>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 2>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 3>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 4>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 5>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 6>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 7>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 8>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 1>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 2>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 3>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 4>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 5>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 6>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 7>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 8>;

template [[host_name("row_exact_mv_q5_K_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 1>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 2>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 3>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 4>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 5>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 6>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 7>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 8>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 1>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 2>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 3>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 4>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 5>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 6>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 7>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 8>;

template [[host_name("row_exact_mv_iq4_nl_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 1>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 2>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 3>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 4>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 5>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 6>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 7>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 8>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 1>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 2>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 3>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 4>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 5>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 6>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 7>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 8>;

template [[host_name("row_exact_mv_bf16_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 1>;
template [[host_name("row_exact_mv_bf16_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 2>;
template [[host_name("row_exact_mv_bf16_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 3>;
template [[host_name("row_exact_mv_bf16_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 4>;
template [[host_name("row_exact_mv_bf16_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 5>;
template [[host_name("row_exact_mv_bf16_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 6>;
template [[host_name("row_exact_mv_bf16_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 7>;
template [[host_name("row_exact_mv_bf16_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 8>;
template [[host_name("row_exact_mv_bf16_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 1>;
template [[host_name("row_exact_mv_bf16_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 2>;
template [[host_name("row_exact_mv_bf16_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 3>;
template [[host_name("row_exact_mv_bf16_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 4>;
template [[host_name("row_exact_mv_bf16_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 5>;
template [[host_name("row_exact_mv_bf16_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 6>;
template [[host_name("row_exact_mv_bf16_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 7>;
template [[host_name("row_exact_mv_bf16_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 8>;

template [[host_name("row_exact_mv_f32_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_f32, 1, 1>;
template [[host_name("row_exact_mv_f32_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_f32, 1, 2>;
template [[host_name("row_exact_mv_f32_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_f32, 1, 3>;
template [[host_name("row_exact_mv_f32_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_f32, 1, 4>;
template [[host_name("row_exact_mv_f32_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_f32, 1, 5>;
template [[host_name("row_exact_mv_f32_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_f32, 1, 6>;
template [[host_name("row_exact_mv_f32_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_f32, 1, 7>;
template [[host_name("row_exact_mv_f32_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_f32, 1, 8>;
template [[host_name("row_exact_mv_f32_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_f32, 2, 1>;
template [[host_name("row_exact_mv_f32_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_f32, 2, 2>;
template [[host_name("row_exact_mv_f32_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_f32, 2, 3>;
template [[host_name("row_exact_mv_f32_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_f32, 2, 4>;
template [[host_name("row_exact_mv_f32_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_f32, 2, 5>;
template [[host_name("row_exact_mv_f32_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_f32, 2, 6>;
template [[host_name("row_exact_mv_f32_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_f32, 2, 7>;
template [[host_name("row_exact_mv_f32_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_f32, 2, 8>;
#line 1 "row_reduce.metal"
// Softmax, sum and maximum of rows.

#line 4 "row_reduce.metal"
#line 5 "row_reduce.metal"
#line 6 "row_reduce.metal"

// The greater one; NaN if either is.
INGOT_FUNC float ingot_max(float a, float b) {
    return (b > a || ingot_nan(b)) ? b : a;
}

// The maximum of v over all threads, in every thread, NaN if one is. What is said of ingot_row_sum holds here.
INGOT_FUNC float ingot_row_max(float v, threadgroup float* scratch, uint lane, uint simdgroup, uint simdgroups) {
#pragma unroll
    for (uint m = 16u; m > 0u; m /= 2u) {
        v = ingot_max(v, simd_shuffle_xor(v, ushort(m)));
    }
    if (simdgroups > 1u) {
        if (lane == 0u) {
            scratch[simdgroup] = v;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane < simdgroups) {
            v = scratch[lane];
        }
#pragma unroll
        for (uint m = 16u; m > 0u; m /= 2u) {
            v = ingot_max(v, simd_shuffle_xor(v, ushort(m)));
        }
    }
    return v;
}

// out[r, i] = exp(x[r, i] - m) / sum over j of exp(x[r, j] - m), m = max over j of x[r, j]
//
// A row that is -inf throughout is uniform, 1 / cols; one that has a NaN or +inf is NaN.
//
// Slots: 0 x f32 [rows, cols], 1 out f32 [rows, cols] (may be x itself), 2 cols, 3 rows.
// Geometry: one threadgroup per row; 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 256 bytes, static.
kernel void softmax_rows_f32(device const float* x [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             constant uint& cols [[buffer(2)]],
                             constant uint& rows [[buffer(3)]],
                             uint row [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_position_in_threadgroup]],
                             uint threads [[threads_per_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]],
                             uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float max_scratch[INGOT_MAX_SIMDGROUPS];
    threadgroup float sum_scratch[INGOT_MAX_SIMDGROUPS];
    if (row >= rows) {
        return;
    }
    ulong base = ulong(row) * ulong(cols);
    // At least -FLT_MAX, so that the difference from -inf is -inf and not NaN.
    float highest = -FLT_MAX;
    for (ulong i = ulong(thread_index); i < ulong(cols); i += ulong(threads)) {
        highest = ingot_max(highest, x[base + i]);
    }
    highest = ingot_row_max(highest, max_scratch, lane, simdgroup, simdgroups);
    float sum = 0.0f;
    for (ulong i = ulong(thread_index); i < ulong(cols); i += ulong(threads)) {
        sum += precise::exp(x[base + i] - highest);
    }
    sum = ingot_row_sum(sum, sum_scratch, lane, simdgroup, simdgroups);
    bool uniform_row = sum == 0.0f;
    for (ulong i = ulong(thread_index); i < ulong(cols); i += ulong(threads)) {
        float e = precise::exp(x[base + i] - highest);
        out[base + i] = uniform_row ? 1.0f / float(cols) : e / sum;
    }
}

// out[r] = sum over i of x[r, i]
//
// Slots: 0 x f32 [rows, cols], 1 out f32 [rows], 2 cols, 3 rows.
// Geometry: one threadgroup per row; 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 128 bytes, static.
kernel void row_sum_f32(device const float* x [[buffer(0)]],
                        device float* out [[buffer(1)]],
                        constant uint& cols [[buffer(2)]],
                        constant uint& rows [[buffer(3)]],
                        uint row [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_position_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]],
                        uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float scratch[INGOT_MAX_SIMDGROUPS];
    if (row >= rows) {
        return;
    }
    ulong base = ulong(row) * ulong(cols);
    float sum = 0.0f;
    for (ulong i = ulong(thread_index); i < ulong(cols); i += ulong(threads)) {
        sum += x[base + i];
    }
    sum = ingot_row_sum(sum, scratch, lane, simdgroup, simdgroups);
    if (thread_index == 0u) {
        out[row] = sum;
    }
}

// out[r] = max over i of x[r, i]; NaN if one is
//
// Slots: 0 x f32 [rows, cols], 1 out f32 [rows], 2 cols, 3 rows.
// Geometry: one threadgroup per row; 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 128 bytes, static.
kernel void row_max_f32(device const float* x [[buffer(0)]],
                        device float* out [[buffer(1)]],
                        constant uint& cols [[buffer(2)]],
                        constant uint& rows [[buffer(3)]],
                        uint row [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_position_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]],
                        uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float scratch[INGOT_MAX_SIMDGROUPS];
    if (row >= rows) {
        return;
    }
    ulong base = ulong(row) * ulong(cols);
    // From the row itself: whatever it holds, -inf included, is at least the maximum of nothing.
    float highest = x[base];
    for (ulong i = ulong(thread_index); i < ulong(cols); i += ulong(threads)) {
        highest = ingot_max(highest, x[base + i]);
    }
    highest = ingot_row_max(highest, scratch, lane, simdgroup, simdgroups);
    if (thread_index == 0u) {
        out[row] = highest;
    }
}
#line 1 "softcap_argmax.metal"
// The most likely token.

#line 4 "softcap_argmax.metal"
#line 5 "softcap_argmax.metal"
#line 6 "softcap_argmax.metal"

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
#line 1 "tqhb.metal"
// Vectors of a KV cache, rotated and quantised to a byte a number: nn/quant's TQHB on the device.

#line 4 "tqhb.metal"
#line 5 "tqhb.metal"

// A simdgroup encodes a vector; lane l has the numbers l E, l E + 1, ..., E = D / 32. The sums and differences of the rotation
// are those of the host, in the same order.
template <uint D>
INGOT_FUNC void ingot_tqhb_encode(device const float* x, device uchar* codes, device float* norms, uint bits, float divisor,
                                  uint lane) {
    const uint E = D / 32u;
    float v[E];
#pragma unroll
    for (uint i = 0u; i < E; i++) {
        uint at = lane * E + i;
        uint sign = ingot_tqhb_signs[at / 32u] >> (at % 32u) << 31u;
        v[i] = as_type<float>(as_type<uint>(x[at]) ^ sign);
    }
#pragma unroll
    for (uint h = 1u; h < E; h *= 2u) {
#pragma unroll
        for (uint i = 0u; i < E; i++) {
            if ((i & h) == 0u) {
                float a = v[i];
                float b = v[i + h];
                v[i] = a + b;
                v[i + h] = a - b;
            }
        }
    }
#pragma unroll
    for (uint m = 1u; m < 32u; m *= 2u) {
        bool upper = (lane & m) != 0u;
#pragma unroll
        for (uint i = 0u; i < E; i++) {
            float other = simd_shuffle_xor(v[i], ushort(m));
            v[i] = upper ? other - v[i] : v[i] + other;
        }
    }
    const float root = D == 64u ? 0.125f : D == 128u ? 0.088388348f : D == 256u ? 0.0625f : 0.044194174f; // 1 / sqrt(D)
    float squares = 0.0f;
#pragma unroll
    for (uint i = 0u; i < E; i++) {
        v[i] *= root;
        squares = fma(v[i], v[i], squares);
    }
    float norm;
    if (D == 512u) { // halves have norms of their own; both sums are taken by all lanes
        float low = simd_sum(lane < 16u ? squares : 0.0f);
        float high = simd_sum(lane < 16u ? 0.0f : squares);
        norm = precise::sqrt((lane < 16u ? low : high) * (1.0f / 256.0f));
        if (lane % 16u == 0u) {
            norms[lane / 16u] = norm;
        }
    } else {
        norm = precise::sqrt(simd_sum(squares));
        if (lane == 0u) {
            norms[0] = norm;
        }
    }
    float scale = norm > 1e-10f ? divisor / norm : 0.0f;
    constant float* levels = ingot_tqhb_levels(bits);
#pragma unroll
    for (uint i = 0u; i < E; i++) {
        // How many of the middles between levels are below.
        float w = v[i] * scale;
        uint code = 0u;
        for (uint step = 1u << (bits - 1u); step > 0u; step /= 2u) {
            uint next = code + step;
            if ((levels[next - 1u] + levels[next]) * 0.5f < w) {
                code = next;
            }
        }
        codes[lane * E + i] = uchar(code);
    }
}

// codes[h, pos, :], norms[h, pos, :] = TQHB of x[t, h, :], pos = start[0] + t for token t and head h; modulo capacity if ring is
// not 0, and nothing is written to a position from capacity on if it is.
//
// Slots: 0 x f32 [T, Hkv, D], 1 codes u8 [Hkv, capacity, D], 2 norms f32 [Hkv, capacity, D > 256 ? 2 : 1], 3 start u32
//        (device), 4 T, 5 Hkv, 6 capacity, 7 bits (5, 6 or 8), 8 divisor f32 (sqrt(D), or the factor of D = 512), 9 ring.
// Geometry: T Hkv threadgroups of 32 threads. Threadgroup memory: none.
template <uint D>
kernel void tqhb_encode(device const float* x [[buffer(0)]],
                        device uchar* codes [[buffer(1)]],
                        device float* norms [[buffer(2)]],
                        device const uint* start [[buffer(3)]],
                        constant uint& T [[buffer(4)]],
                        constant uint& Hkv [[buffer(5)]],
                        constant uint& capacity [[buffer(6)]],
                        constant uint& bits [[buffer(7)]],
                        constant float& divisor [[buffer(8)]],
                        constant uint& ring [[buffer(9)]],
                        uint group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    uint t = group / Hkv;
    uint head = group - t * Hkv;
    ulong pos = ulong(start[0]) + ulong(t);
    if (ring != 0u) {
        pos %= ulong(capacity);
    }
    if (t >= T || pos >= ulong(capacity)) {
        return;
    }
    ulong at = ulong(head) * ulong(capacity) + pos;
    ingot_tqhb_encode<D>(x + ulong(group) * ulong(D), codes + at * ulong(D), norms + at * ulong(D / 512u + 1u), bits, divisor,
                         lane);
}

typedef decltype(tqhb_encode<64>) tqhb_encoder;
template [[host_name("tqhb_encode_h64")]] kernel tqhb_encoder tqhb_encode<64>;
template [[host_name("tqhb_encode_h128")]] kernel tqhb_encoder tqhb_encode<128>;
template [[host_name("tqhb_encode_h256")]] kernel tqhb_encoder tqhb_encode<256>;
template [[host_name("tqhb_encode_h512")]] kernel tqhb_encoder tqhb_encode<512>;

// out[i] = level[codes[i]] (norm / divisor), still rotated; the norm is that of i's block of numbers.
//
// Slots: 0 codes u8 [n], 1 norms f32 [n / block], 2 out f32 [n], 3 n, 4 block (64, 128 or 256), 5 bits (5, 6 or 8), 6 divisor
//        f32.
// Geometry: a thread for each number. Threadgroup memory: none.
kernel void tqhb_dequantize(device const uchar* codes [[buffer(0)]],
                            device const float* norms [[buffer(1)]],
                            device float* out [[buffer(2)]],
                            constant uint& n [[buffer(3)]],
                            constant uint& block [[buffer(4)]],
                            constant uint& bits [[buffer(5)]],
                            constant float& divisor [[buffer(6)]],
                            uint i [[thread_position_in_grid]]) {
    if (i >= n) {
        return;
    }
    out[i] = ingot_tqhb_value(ingot_tqhb_levels(bits), bits, codes[i], ingot_tqhb_scale(norms[i / block], divisor));
}

