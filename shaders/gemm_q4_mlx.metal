// Products of MLX 4-bit affine weights with up to eight bf16 vectors, Y = X W^T; see gemm_q4_mlx.h.
//
// In all kernels a simdgroup computes four rows and a threadgroup of 64 threads eight, for all vectors; banks and x start at
// a multiple of 8 bytes. M beyond 8 counts as 8. No threadgroup memory.

#include "common.h"
#include "gemm_q4_mlx.h"

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
