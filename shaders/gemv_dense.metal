// Products of dense matrices and vectors.

#include "common.h"
#include "gemm_dense.h"

#define INGOT_GEMV_ROWS 4       // rows that a simdgroup computes together
#define INGOT_GEMV_SIMDGROUPS 2 // of a threadgroup
#define INGOT_GEMV_BLOCK 128    // columns that a simdgroup reads at a time, four for each lane

// Elements of a matrix or a vector, widened: exact. bf16 is read as its bits.
INGOT_FUNC float ingot_gemv_wide(float x) { return x; }
INGOT_FUNC float ingot_gemv_wide(half x) { return float(x); }
INGOT_FUNC float ingot_gemv_wide(ushort x) { return ingot_from_bf16_bits(x); }
INGOT_FUNC float4 ingot_gemv_wide(float4 x) { return x; }
INGOT_FUNC float4 ingot_gemv_wide(half4 x) { return float4(x); }
INGOT_FUNC float4 ingot_gemv_wide(ushort4 x) { return as_type<float4>(uint4(x) << 16u); }

// Elements col to col + 3 of n, zeros for those behind its end, which are not read. wide says that n is a
// multiple of four and the first one starts at a multiple of four elements.
template <typename T>
INGOT_FUNC float4 ingot_gemv_load(device const T* from, uint col, uint n, bool wide) {
    float4 x = float4(0.0f);
    if (col >= n) {
        return x;
    }
    if (wide) {
        return ingot_gemv_wide(*(device const vec<T, 4>*)(from + col));
    }
    uint left = n - col;
    x.x = ingot_gemv_wide(from[col]);
    if (left > 1u) {
        x.y = ingot_gemv_wide(from[col + 1u]);
    }
    if (left > 2u) {
        x.z = ingot_gemv_wide(from[col + 2u]);
    }
    if (left > 3u) {
        x.w = ingot_gemv_wide(from[col + 3u]);
    }
    return x;
}

// y[i][r] = act(alpha * sum over k of w[i][r][k] * x[i][k] + beta * c[i][r] + bias[r]), r < rows, k < cols
//
// Sums are f32: a lane's four products of 128 in order, then those of the lanes. What a row gives does not depend on the
// other rows.
//
// Kernels: gemv_dense_{f32,f16,bf16}, by the type T of w and x, where bf16 are read as their bits.
// Function constants: wide_a for x, wide_b for w and those of what follows the sums; see gemm_dense.h. y and c have a type
// of their own.
//
// Slots: 0 x T [cols], 1 w T [rows, cols], 2 y f32, f16 or bf16 [rows], 4 rows, 5 cols, 6 and 7 elements from one x and w of
//        the batch to the next, 8 bias f32 [rows], 9 alpha f32, 10 beta f32, 11 c as y, may be y, 12 and 13 elements from one c
//        and y to the next. bias and c are bound but not read if their function constants are false, x and w if cols is 0.
// Geometry: ceil(rows / 8) x batch threadgroups of 64 threads, two simdgroups with four rows each.
// Threadgroup memory: none.
template <typename T>
kernel void gemv_dense(device const T* x [[buffer(0)]],
                       device const T* w [[buffer(1)]],
                       device uchar* y [[buffer(2)]],
                       constant uint& rows [[buffer(4)]],
                       constant uint& cols [[buffer(5)]],
                       constant uint& stride_x [[buffer(6)]],
                       constant uint& stride_w [[buffer(7)]],
                       device const float* bias [[buffer(8)]],
                       constant float& alpha [[buffer(9)]],
                       constant float& beta [[buffer(10)]],
                       device const uchar* c [[buffer(11)]],
                       constant uint& stride_c [[buffer(12)]],
                       constant uint& stride_y [[buffer(13)]],
                       uint2 tile [[threadgroup_position_in_grid]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
    uint row0 = (tile.x * uint(INGOT_GEMV_SIMDGROUPS) + simdgroup) * uint(INGOT_GEMV_ROWS);
    if (row0 >= rows) {
        return;
    }
    x += ulong(tile.y) * ulong(stride_x);
    w += ulong(tile.y) * ulong(stride_w);
    device const T* line[INGOT_GEMV_ROWS];
    float sum[INGOT_GEMV_ROWS];
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_GEMV_ROWS); r++) {
        uint at = row0 + r < rows ? row0 + r : rows - 1u; // what is not there is not stored
        line[r] = w + ulong(at) * ulong(cols);
        sum[r] = 0.0f;
    }
    bool wide_x = ingot_dense_rows(ingot_dense_wide_a, cols, stride_x);
    bool wide_w = ingot_dense_rows(ingot_dense_wide_b, cols, stride_w);
    for (uint k = 4u * lane; k < cols; k += uint(INGOT_GEMV_BLOCK)) {
        float4 v = ingot_gemv_load(x, k, cols, wide_x);
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_GEMV_ROWS); r++) {
            float4 m = ingot_gemv_load(line[r], k, cols, wide_w);
            sum[r] = fma(m.w, v.w, fma(m.z, v.z, fma(m.y, v.y, fma(m.x, v.x, sum[r]))));
        }
    }
    ulong first_c = ulong(tile.y) * ulong(stride_c);
    ulong first_y = ulong(tile.y) * ulong(stride_y);
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_GEMV_ROWS); r++) {
        float total = simd_sum(sum[r]);
        uint at = row0 + r;
        if (lane == r && at < rows) {
            float v = ingot_dense_finish(total, alpha, beta, c, first_c + ulong(at), bias, at);
            ingot_dense_store(y, first_y + ulong(at), v);
        }
    }
}

#define INGOT_GEMV_T_COLS 128      // results of a threadgroup, four for each lane
#define INGOT_GEMV_T_SIMDGROUPS 8  // of a threadgroup, at most

// y[i][r] = act(alpha * sum over k of w[i][k][r] * x[i][k] + beta * c[i][r] + bias[r]), r < rows, k < cols: w is transposed
//
// Sums are f32. A simdgroup takes every so many-th k, in order, then their sums are added in the order of the simdgroups. What
// a row gives does not depend on the other rows.
//
// Kernels: gemv_dense_t_{f32,f16,bf16}. Function constants: as gemv_dense, without wide_a.
//
// Slots: as gemv_dense, but 1 w T [cols, rows].
// Geometry: ceil(rows / 128) x batch threadgroups of up to eight simdgroups, each with the same rows.
// Threadgroup memory: 4,096 bytes.
template <typename T>
kernel void gemv_dense_t(device const T* x [[buffer(0)]],
                         device const T* w [[buffer(1)]],
                         device uchar* y [[buffer(2)]],
                         constant uint& rows [[buffer(4)]],
                         constant uint& cols [[buffer(5)]],
                         constant uint& stride_x [[buffer(6)]],
                         constant uint& stride_w [[buffer(7)]],
                         device const float* bias [[buffer(8)]],
                         constant float& alpha [[buffer(9)]],
                         constant float& beta [[buffer(10)]],
                         device const uchar* c [[buffer(11)]],
                         constant uint& stride_c [[buffer(12)]],
                         constant uint& stride_y [[buffer(13)]],
                         uint2 tile [[threadgroup_position_in_grid]],
                         uint2 place [[thread_position_in_threadgroup]],
                         uint2 threads [[threads_per_threadgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint simdgroups [[simdgroups_per_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float4 partial[INGOT_GEMV_T_SIMDGROUPS * INGOT_GEMV_T_COLS / 4];
    uint row0 = tile.x * uint(INGOT_GEMV_T_COLS);
    x += ulong(tile.y) * ulong(stride_x);
    w += ulong(tile.y) * ulong(stride_w);
    bool wide = ingot_dense_rows(ingot_dense_wide_b, rows, stride_w);
    float4 sum = float4(0.0f);
    for (uint k = simdgroup; k < cols; k += simdgroups) {
        float4 m = ingot_gemv_load(w + ulong(k) * ulong(rows), row0 + 4u * lane, rows, wide);
        float4 v = float4(ingot_gemv_wide(x[k]));
        sum = fma(m, v, sum);
    }
    partial[simdgroup * (uint(INGOT_GEMV_T_COLS) / 4u) + lane] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ulong first_c = ulong(tile.y) * ulong(stride_c);
    ulong first_y = ulong(tile.y) * ulong(stride_y);
    threadgroup const float* parts = (threadgroup const float*)partial;
    for (uint i = place.x; i < uint(INGOT_GEMV_T_COLS); i += threads.x) {
        uint at = row0 + i;
        if (at < rows) {
            float total = parts[i];
            for (uint s = 1u; s < simdgroups; s++) {
                total = total + parts[s * uint(INGOT_GEMV_T_COLS) + i];
            }
            float v = ingot_dense_finish(total, alpha, beta, c, first_c + ulong(at), bias, at);
            ingot_dense_store(y, first_y + ulong(at), v);
        }
    }
}

typedef decltype(gemv_dense<float>) gemv_dense_f32;
typedef decltype(gemv_dense<half>) gemv_dense_f16;
typedef decltype(gemv_dense<ushort>) gemv_dense_bf16;
typedef decltype(gemv_dense_t<float>) gemv_dense_t_f32;
typedef decltype(gemv_dense_t<half>) gemv_dense_t_f16;
typedef decltype(gemv_dense_t<ushort>) gemv_dense_t_bf16;

template [[host_name("gemv_dense_f32")]] kernel gemv_dense_f32 gemv_dense<float>;
template [[host_name("gemv_dense_f16")]] kernel gemv_dense_f16 gemv_dense<half>;
template [[host_name("gemv_dense_bf16")]] kernel gemv_dense_bf16 gemv_dense<ushort>;
template [[host_name("gemv_dense_t_f32")]] kernel gemv_dense_t_f32 gemv_dense_t<float>;
template [[host_name("gemv_dense_t_f16")]] kernel gemv_dense_t_f16 gemv_dense_t<half>;
template [[host_name("gemv_dense_t_bf16")]] kernel gemv_dense_t_bf16 gemv_dense_t<ushort>;
