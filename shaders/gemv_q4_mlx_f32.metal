// Matrix-vector products with MLX 4-bit affine weights in row-major order and an f32 vector; see q4_mlx.h for the format.
//
// Three ways to share out the rows: a thread for each, for tall matrices; a simdgroup for each; a threadgroup for each, for
// few long rows. The first two hold a piece of x in threadgroup memory for all their rows.

#include "common.h"
#include "q4_mlx_f32.h"
#include "reduce.h"

// y[r] = sum over c of w[r, c] * x[c], a thread for each row
//
// Slots: 0 packed, 1 sb, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 128) threadgroups of 128 threads, or one of fewer if there are fewer rows.
// Threadgroup memory: 8,192 bytes, static.
kernel void gemv_q4_mlx(device const uint2* packed [[buffer(0)]],
                        device const bfloat2* sb [[buffer(1)]],
                        device const float* x [[buffer(3)]],
                        device float* y [[buffer(4)]],
                        constant uint& rows [[buffer(5)]],
                        constant uint& cols [[buffer(6)]],
                        constant uint& group_size [[buffer(7)]],
                        uint group_index [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
    threadgroup float tile[INGOT_Q4_X_TILE];
    ulong row = ulong(group_index) * ulong(threads) + ulong(thread_index);
    ulong word = row * ulong(cols / 16u);
    ulong group = row * ulong(cols / group_size);
    float sum = 0.0f;
    for (uint base = 0u; base < cols; base += INGOT_Q4_X_TILE) {
        uint n = min(cols - base, INGOT_Q4_X_TILE);
        ingot_q4_stage(x, base, n, tile, thread_index, threads);
        if (row < ulong(rows)) {
            for (uint c = 0u; c < n; c += group_size) {
                float dot = 0.0f;
                float total = 0.0f;
                for (uint i = 0u; i < group_size; i += 16u) {
                    uint2 w = packed[word];
                    ingot_q4_dot8(w.x, tile + (c + i), dot, total);
                    ingot_q4_dot8(w.y, tile + (c + i + 8u), dot, total);
                    word++;
                }
                bfloat2 s = sb[group];
                sum = fma(float(s.x), dot, fma(float(s.y), total, sum));
                group++;
            }
        }
    }
    if (row < ulong(rows)) {
        y[row] = sum;
    }
}

// y[r] = sum over c of w[r, c] * x[c], a simdgroup for each row
//
// Slots: 0 packed, 1 sb, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: ceil(rows / 4) threadgroups of 128 threads. Threadgroup memory: 8,192 bytes, static.
kernel void gemv_q4_mlx_wide(device const uint2* packed [[buffer(0)]],
                             device const bfloat2* sb [[buffer(1)]],
                             device const float* x [[buffer(3)]],
                             device float* y [[buffer(4)]],
                             constant uint& rows [[buffer(5)]],
                             constant uint& cols [[buffer(6)]],
                             constant uint& group_size [[buffer(7)]],
                             uint group_index [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             uint threads [[threads_per_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]],
                             uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float tile[INGOT_Q4_X_TILE];
    ulong row = ulong(group_index) * ulong(simdgroups) + ulong(simdgroup);
    ulong first_word = row * ulong(cols / 16u);
    ulong first_group = row * ulong(cols / group_size);
    float sum = 0.0f;
    for (uint base = 0u; base < cols; base += INGOT_Q4_X_TILE) {
        uint n = min(cols - base, INGOT_Q4_X_TILE);
        ingot_q4_stage(x, base, n, tile, thread_index, threads);
        if (row < ulong(rows)) {
            for (uint c = lane * 16u; c < n; c += 512u) {
                uint2 w = packed[first_word + ulong((base + c) / 16u)];
                bfloat2 s = sb[first_group + ulong((base + c) / group_size)];
                float dot = 0.0f;
                float total = 0.0f;
                ingot_q4_dot8(w.x, tile + c, dot, total);
                ingot_q4_dot8(w.y, tile + (c + 8u), dot, total);
                sum = fma(float(s.x), dot, fma(float(s.y), total, sum));
            }
        }
    }
    sum = simd_sum(sum);
    if (lane == 0u && row < ulong(rows)) {
        y[row] = sum;
    }
}

// y[r] = sum over c of w[r, c] * x[c], a threadgroup for each row
//
// Slots: 0 packed, 1 sb, 3 x f32 [cols], 4 y f32 [rows], 5 rows, 6 cols, 7 group_size.
// Geometry: a threadgroup per row, of whole simdgroups, 128 threads. Threadgroup memory: 128 bytes, static.
kernel void gemv_q4_mlx_tiled(device const uint2* packed [[buffer(0)]],
                              device const bfloat2* sb [[buffer(1)]],
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
    ulong first_word = ulong(row) * ulong(cols / 16u);
    ulong first_group = ulong(row) * ulong(cols / group_size);
    float sum = 0.0f;
    for (uint word = thread_index; word < cols / 16u; word += threads) {
        uint2 w = packed[first_word + ulong(word)];
        bfloat2 s = sb[first_group + ulong(word * 16u / group_size)];
        device const float* from = x + ulong(word) * 16ul;
        float dot = 0.0f;
        float total = 0.0f;
        ingot_q4_dot8(w.x, from, dot, total);
        ingot_q4_dot8(w.y, from + 8, dot, total);
        sum = fma(float(s.x), dot, fma(float(s.y), total, sum));
    }
    sum = ingot_row_sum(sum, scratch, lane, simdgroup, simdgroups);
    if (thread_index == 0u) {
        y[row] = sum;
    }
}
