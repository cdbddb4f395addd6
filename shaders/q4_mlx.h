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

#include "common.h"

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
