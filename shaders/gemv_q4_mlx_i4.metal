// Matrix-vector products with MLX 4-bit affine weights in tiles of four interleaved rows and a bf16 vector; see q4_mlx.h for the layout and the
// algorithm.
//
// In all kernels a simdgroup computes four rows and a threadgroup of 64 threads eight; packed is read as pairs of words,
// so banks and x start at a multiple of 8 bytes. No threadgroup memory.

#include "common.h"
#include "q4_mlx_simd.h"

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
