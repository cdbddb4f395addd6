// Matrix-vector products with 8-bit affine weights.
//
// A bank of [rows, cols] weights: w[r, c] = scale * (q - zero), a scale and a zero point for each group_size columns of a row.
//   packed  int8 [rows, cols]
//   scales  f32 [rows, cols / group_size], zeros likewise
// group_size is any that divides cols. No threadgroup memory.

#include "common.h"

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
