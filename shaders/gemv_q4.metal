// Matrix-vector products with signed 4-bit weights with zero points.
//
// A bank of [rows, cols] weights: w[r, c] = scale * (q - zero), a scale and a zero point for each group_size columns of a row.
//   packed  uint32 words [rows, cols / 8], eight codes each in two's complement, the lowest bits first
//   scales  f32 [rows, cols / group_size], zeros likewise
// group_size is a multiple of 8 and divides cols. The lanes take a word at a time, whose columns contribute
// scale * (sum(q * x) - zero * sum(x)).

#include "common.h"
#include "reduce.h"

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
