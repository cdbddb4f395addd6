// Softmax, sum and maximum of rows.

#include "common.h"
#include "convert.h"
#include "reduce.h"

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
