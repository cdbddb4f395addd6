// Products of dense matrices on simdgroup matrices.

#include "common.h"
#include "gemm_dense.h"
#include "gemm_tile.h"

#define INGOT_GEMM_STEP 64     // bytes of a row of a, or of a column of b, that a threadgroup holds at a time

// out[i][m][n] = act(alpha * sum over k of a[i][m][k] * b[i][k][n] + beta * c[i][m][n] + bias[n]), m < M, n < N, k < K
//
// Sums are f32, eight products of k at a time in order, zeros after the last: what an element is does not depend on M, N,
// its place or the other elements, nor on the kernel of the two that computes it.
//
// Kernels: gemm_dense_{f32,f16,bf16}_t{32,64}, by the type T of a and b and the rows and columns of a tile.
// Function constants: see gemm_dense.h. out and c have a type of their own.
//
// Slots: 0 a T [M, K], or [K, M] if it is transposed, 1 b T [K, N], or [N, K], 2 out f32, f16 or bf16 [M, N], 3 M, 4 N, 5 K,
//        6 and 7 elements from one a and b of the batch to the next, 8 bias f32 [N], 9 alpha f32, 10 beta f32,
//        11 c as out, may be out, 12 and 13 elements from one c and out to the next. bias and c are bound but not read
//        if their function constants are false, a and b if K is 0.
// Geometry: ceil(N / tile) x ceil(M / tile) x batch threadgroups of (tile / 32)^2 simdgroups.
// Threadgroup memory: 5,120 bytes with tiles of 32, 10,240 with tiles of 64.
template <typename T, uint SIDE>
kernel void gemm_dense(device const T* a [[buffer(0)]],
                       device const T* b [[buffer(1)]],
                       device uchar* out [[buffer(2)]],
                       constant uint& M [[buffer(3)]],
                       constant uint& N [[buffer(4)]],
                       constant uint& K [[buffer(5)]],
                       constant uint& stride_a [[buffer(6)]],
                       constant uint& stride_b [[buffer(7)]],
                       device const float* bias [[buffer(8)]],
                       constant float& alpha [[buffer(9)]],
                       constant float& beta [[buffer(10)]],
                       device const uchar* c [[buffer(11)]],
                       constant uint& stride_c [[buffer(12)]],
                       constant uint& stride_out [[buffer(13)]],
                       uint3 tile [[threadgroup_position_in_grid]],
                       uint tid [[thread_index_in_threadgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
    constexpr uint TILE = SIDE * uint(INGOT_GEMM_PART);
    constexpr uint THREADS = SIDE * SIDE * 32u;
    constexpr uint STEP = uint(INGOT_GEMM_STEP) / uint(sizeof(T));
    constexpr uint PAD = uint(INGOT_GEMM_PAD) / uint(sizeof(T));
    // A block of a and one of b, each as it is stored, so that rows are read in order: TILE by STEP, or STEP by TILE.
    constexpr uint LD_LONG = STEP + PAD;
    constexpr uint LD_FLAT = TILE + PAD;
    constexpr uint BLOCK = TILE * LD_LONG > STEP * LD_FLAT ? TILE * LD_LONG : STEP * LD_FLAT;
    threadgroup float4 memory[2u * BLOCK * uint(sizeof(T)) / 16u];
    threadgroup T* block_a = (threadgroup T*)memory;
    threadgroup T* block_b = block_a + BLOCK;

    uint row0 = tile.y * TILE;
    uint col0 = tile.x * TILE;
    if (row0 >= M || col0 >= N) {
        return;
    }
    a += ulong(tile.z) * ulong(stride_a);
    b += ulong(tile.z) * ulong(stride_b);
    uint part_row = simdgroup / SIDE * uint(INGOT_GEMM_PART);
    uint part_col = simdgroup % SIDE * uint(INGOT_GEMM_PART);
    bool wide_a = ingot_dense_rows(ingot_dense_wide_a, ingot_dense_trans_a ? M : K, stride_a);
    bool wide_b = ingot_dense_rows(ingot_dense_wide_b, ingot_dense_trans_b ? K : N, stride_b);

    simdgroup_float8x8 sum[4][4];
    ingot_gemm_zero(sum);
    for (uint k0 = 0u; k0 < K; k0 += STEP) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the block before has been used
        if (ingot_dense_trans_a) {
            ingot_gemm_stage<T, T, STEP, TILE, LD_FLAT, THREADS>(block_a, a, K, M, k0, row0, wide_a, tid);
        } else {
            ingot_gemm_stage<T, T, TILE, STEP, LD_LONG, THREADS>(block_a, a, M, K, row0, k0, wide_a, tid);
        }
        if (ingot_dense_trans_b) {
            ingot_gemm_stage<T, T, TILE, STEP, LD_LONG, THREADS>(block_b, b, N, K, col0, k0, wide_b, tid);
        } else {
            ingot_gemm_stage<T, T, STEP, TILE, LD_FLAT, THREADS>(block_b, b, K, N, k0, col0, wide_b, tid);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ingot_gemm_multiply<T, STEP, LD_LONG, LD_FLAT>(sum, block_a, block_b, part_row, part_col, ingot_dense_trans_a,
                                                       ingot_dense_trans_b);
    }

    threadgroup_barrier(mem_flags::mem_threadgroup);
    ingot_gemm_finish(sum, (threadgroup float*)memory, simdgroup, lane, row0 + part_row, col0 + part_col, M, N, out,
                      ulong(tile.z) * ulong(stride_out), c, ulong(tile.z) * ulong(stride_c), alpha, beta, bias);
}

typedef decltype(gemm_dense<float, 1>) gemm_dense_f32;
typedef decltype(gemm_dense<half, 1>) gemm_dense_f16;
typedef decltype(gemm_dense<bfloat, 1>) gemm_dense_bf16;

template [[host_name("gemm_dense_f32_t32")]] kernel gemm_dense_f32 gemm_dense<float, 1>;
template [[host_name("gemm_dense_f32_t64")]] kernel gemm_dense_f32 gemm_dense<float, 2>;
template [[host_name("gemm_dense_f16_t32")]] kernel gemm_dense_f16 gemm_dense<half, 1>;
template [[host_name("gemm_dense_f16_t64")]] kernel gemm_dense_f16 gemm_dense<half, 2>;
template [[host_name("gemm_dense_bf16_t32")]] kernel gemm_dense_bf16 gemm_dense<bfloat, 1>;
template [[host_name("gemm_dense_bf16_t64")]] kernel gemm_dense_bf16 gemm_dense<bfloat, 2>;
