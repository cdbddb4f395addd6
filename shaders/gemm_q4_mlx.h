// Products of MLX 4-bit affine weight rows with up to eight bf16 vectors at once; see q4_mlx.h.

#ifndef INGOT_GEMM_Q4_MLX_H
#define INGOT_GEMM_Q4_MLX_H

#include "common.h"
#include "q4_mlx.h"

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
