// RMS normalisation of rows (Zhang and Sennrich, arXiv:1910.07467). The weight multiplies as it is: Gemma's (1 + w) is
// folded on the host.

#include "common.h"
#include "reduce.h"

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
