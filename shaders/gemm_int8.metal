// Products of matrices of signed bytes, with sums exact in 32 bits.
//
//   sum[m, n] = sum over k of a[m, k] * b[k, n],  m < M, n < N, k < K
//
// a is [M, K], or [K, M] in the kernels whose first letter is t; b is [K, N], or [N, K] if the second one is t. K is at most
// 131,071: so many products of -128 and -128 are the most that an int holds. No order of additions, and no part of a sum,
// leads beyond what the magnitudes of all products add up to, so that the sum is exact.
//
// A threadgroup computes 32 rows and 32 columns, a thread 4 of each, eight apart.

#include "common.h"

#define INGOT_INT8_TILE 32u       // rows, and columns, of a threadgroup
#define INGOT_INT8_THREADS 64u    // threads of a threadgroup
#define INGOT_INT8_STEP 64u       // products of each sum between two barriers
#define INGOT_INT8_PITCH 68u      // bytes of a tile's row: a step, and a word so that eight rows lie in different banks
#define INGOT_INT8_EACH 4         // rows, and columns, of a thread
#define INGOT_INT8_APART 8u       // from one row, or column, of a thread to the next

// tile[r, k] = from[first + r, k0 + k], zero beyond rows or K; from is [K, rows] if ACROSS, else [rows, K]. Neighbouring
// threads read neighbouring bytes.
template <bool ACROSS>
INGOT_FUNC void ingot_int8_fill(threadgroup char* tile, device const char* from, uint first, uint rows, uint k0, uint K,
                                uint thread_index) {
    for (uint i = thread_index; i < INGOT_INT8_TILE * INGOT_INT8_STEP; i += INGOT_INT8_THREADS) {
        uint r = ACROSS ? i % INGOT_INT8_TILE : i / INGOT_INT8_STEP;
        uint k = ACROSS ? i / INGOT_INT8_TILE : i % INGOT_INT8_STEP;
        char v = char(0);
        if (first + r < rows && k0 + k < K) {
            ulong row = ulong(first + r);
            ulong col = ulong(k0 + k);
            v = from[ACROSS ? col * ulong(rows) + row : row * ulong(K) + col];
        }
        tile[r * INGOT_INT8_PITCH + k] = v;
    }
}

// The 16 sums of a thread: rows row0 + 8 i and columns col0 + 8 j at sum[4 i + j]. All threads of the threadgroup call it.
template <bool TA, bool TB>
INGOT_FUNC void ingot_int8_sums(device const char* a, device const char* b, threadgroup char* tile_a, threadgroup char* tile_b,
                                uint M, uint N, uint K, uint2 tile, uint thread_index, thread int* sum) {
#pragma unroll
    for (uint i = 0u; i < uint(INGOT_INT8_EACH * INGOT_INT8_EACH); i++) {
        sum[i] = 0;
    }
    uint row = thread_index / INGOT_INT8_APART * INGOT_INT8_PITCH;
    uint col = thread_index % INGOT_INT8_APART * INGOT_INT8_PITCH;
    for (uint k0 = 0u; k0 < K; k0 += INGOT_INT8_STEP) {
        ingot_int8_fill<TA>(tile_a, a, tile.y * INGOT_INT8_TILE, M, k0, K, thread_index);
        ingot_int8_fill<!TB>(tile_b, b, tile.x * INGOT_INT8_TILE, N, k0, K, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint steps = min(K - k0, INGOT_INT8_STEP);
        for (uint k = 0u; k < steps; k += 4u) {
            int4 right[INGOT_INT8_EACH];
#pragma unroll
            for (uint j = 0u; j < uint(INGOT_INT8_EACH); j++) {
                right[j] = int4(*(threadgroup const char4*)(tile_b + col + j * INGOT_INT8_APART * INGOT_INT8_PITCH + k));
            }
#pragma unroll
            for (uint i = 0u; i < uint(INGOT_INT8_EACH); i++) {
                int4 left = int4(*(threadgroup const char4*)(tile_a + row + i * INGOT_INT8_APART * INGOT_INT8_PITCH + k));
#pragma unroll
                for (uint j = 0u; j < uint(INGOT_INT8_EACH); j++) {
                    int4 p = left * right[j];
                    sum[i * uint(INGOT_INT8_EACH) + j] += (p.x + p.y) + (p.z + p.w);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// c[m, n] = sum[m, n]
//
// Slots: 0 a, 1 b, 2 c i32 [M, N], 3 M, 4 N, 5 K.
// Geometry: ceil(N / 32) x ceil(M / 32) threadgroups of 64 threads.
// Threadgroup memory: 4,352 bytes, static.
template <bool TA, bool TB>
kernel void gemm_int8_i32(device const char* a [[buffer(0)]],
                          device const char* b [[buffer(1)]],
                          device int* c [[buffer(2)]],
                          constant uint& M [[buffer(3)]],
                          constant uint& N [[buffer(4)]],
                          constant uint& K [[buffer(5)]],
                          uint2 tile [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup char4 tile_a[INGOT_INT8_TILE * INGOT_INT8_PITCH / 4u];
    threadgroup char4 tile_b[INGOT_INT8_TILE * INGOT_INT8_PITCH / 4u];
    int sum[INGOT_INT8_EACH * INGOT_INT8_EACH];
    ingot_int8_sums<TA, TB>(a, b, (threadgroup char*)tile_a, (threadgroup char*)tile_b, M, N, K, tile, thread_index, sum);
    uint row0 = tile.y * INGOT_INT8_TILE + thread_index / INGOT_INT8_APART;
    uint col0 = tile.x * INGOT_INT8_TILE + thread_index % INGOT_INT8_APART;
#pragma unroll
    for (uint i = 0u; i < uint(INGOT_INT8_EACH); i++) {
#pragma unroll
        for (uint j = 0u; j < uint(INGOT_INT8_EACH); j++) {
            uint m = row0 + i * INGOT_INT8_APART;
            uint n = col0 + j * INGOT_INT8_APART;
            if (m < M && n < N) {
                c[ulong(m) * ulong(N) + ulong(n)] = sum[i * uint(INGOT_INT8_EACH) + j];
            }
        }
    }
}

typedef decltype(gemm_int8_i32<false, false>) gemm_int8_i32_kernel;
template [[host_name("gemm_int8_nn_i32")]] kernel gemm_int8_i32_kernel gemm_int8_i32<false, false>;
template [[host_name("gemm_int8_nt_i32")]] kernel gemm_int8_i32_kernel gemm_int8_i32<false, true>;
template [[host_name("gemm_int8_tn_i32")]] kernel gemm_int8_i32_kernel gemm_int8_i32<true, false>;
template [[host_name("gemm_int8_tt_i32")]] kernel gemm_int8_i32_kernel gemm_int8_i32<true, true>;

// c[m, n] = float(sum[m, n]) * b_scale[n], and then * a_scale[m] if has_a_scale
//
// Slots: 0 a, 1 b, 2 c f32 [M, N], 3 M, 4 N, 5 K, 8 b_scale f32 [N], 9 a_scale f32 [M] (not read without has_a_scale),
//        10 has_a_scale.
// Geometry: ceil(N / 32) x ceil(M / 32) threadgroups of 64 threads.
// Threadgroup memory: 4,352 bytes, static.
template <bool TA, bool TB>
kernel void gemm_int8_f32(device const char* a [[buffer(0)]],
                          device const char* b [[buffer(1)]],
                          device float* c [[buffer(2)]],
                          constant uint& M [[buffer(3)]],
                          constant uint& N [[buffer(4)]],
                          constant uint& K [[buffer(5)]],
                          device const float* b_scale [[buffer(8)]],
                          device const float* a_scale [[buffer(9)]],
                          constant uint& has_a_scale [[buffer(10)]],
                          uint2 tile [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup char4 tile_a[INGOT_INT8_TILE * INGOT_INT8_PITCH / 4u];
    threadgroup char4 tile_b[INGOT_INT8_TILE * INGOT_INT8_PITCH / 4u];
    int sum[INGOT_INT8_EACH * INGOT_INT8_EACH];
    ingot_int8_sums<TA, TB>(a, b, (threadgroup char*)tile_a, (threadgroup char*)tile_b, M, N, K, tile, thread_index, sum);
    uint row0 = tile.y * INGOT_INT8_TILE + thread_index / INGOT_INT8_APART;
    uint col0 = tile.x * INGOT_INT8_TILE + thread_index % INGOT_INT8_APART;
#pragma unroll
    for (uint i = 0u; i < uint(INGOT_INT8_EACH); i++) {
#pragma unroll
        for (uint j = 0u; j < uint(INGOT_INT8_EACH); j++) {
            uint m = row0 + i * INGOT_INT8_APART;
            uint n = col0 + j * INGOT_INT8_APART;
            if (m < M && n < N) {
                float v = float(sum[i * uint(INGOT_INT8_EACH) + j]) * b_scale[n];
                if (has_a_scale != 0u) {
                    v *= a_scale[m];
                }
                c[ulong(m) * ulong(N) + ulong(n)] = v;
            }
        }
    }
}

typedef decltype(gemm_int8_f32<false, false>) gemm_int8_f32_kernel;
template [[host_name("gemm_int8_nn_f32")]] kernel gemm_int8_f32_kernel gemm_int8_f32<false, false>;
template [[host_name("gemm_int8_nt_f32")]] kernel gemm_int8_f32_kernel gemm_int8_f32<false, true>;
template [[host_name("gemm_int8_tn_f32")]] kernel gemm_int8_f32_kernel gemm_int8_f32<true, false>;
template [[host_name("gemm_int8_tt_f32")]] kernel gemm_int8_f32_kernel gemm_int8_f32<true, true>;
