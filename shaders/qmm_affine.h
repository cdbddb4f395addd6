// What the products with matrices in the affine format share: Y [M, N] = X [M, K] W^T for W [N, K], w = scale * code + bias.
//
// A row of W has a scale and a bias for each group_size columns; group_size divides K.

#ifndef INGOT_QMM_AFFINE_H
#define INGOT_QMM_AFFINE_H

#include "common.h"

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
