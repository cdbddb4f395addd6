// Matrix-vector products with MLX 4-bit affine weights in blocks of 16 rows and an f32 vector; see q4_mlx.h for the format.
//
// A block holds 16 rows, the last one padded: group after group, and of each group the codes, or the scale and bias, of row
// after row. Group g of row 16 b + r is at (b * cols / group_size + g) * 16 + r.
//
// A threadgroup of 256 threads computes a block: thread t works on row t % 16 and takes every 16th run of 16 columns.
// x is held in threadgroup memory piece by piece, so that cols has no limit.

#include "common.h"
#include "gelu.h"
#include "q4_mlx_f32.h"

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
