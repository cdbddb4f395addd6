// What products on simdgroup matrices share: a threadgroup holds a block of each operand in threadgroup memory, and each of its
// simdgroups multiplies a part of the rows with a part of the columns.

#ifndef INGOT_GEMM_TILE_H
#define INGOT_GEMM_TILE_H

#include "common.h"
#include "gemm_dense.h"

#define INGOT_GEMM_PART 32     // a simdgroup computes a part of this many rows and columns, 4 by 4 matrices of 8 by 8
#define INGOT_GEMM_PAD 16      // bytes between rows in threadgroup memory, against conflicts of its banks

// simdgroup_load whose last argument is a literal, the only form that Apple's compiler is known to be given.
template <typename T>
INGOT_FUNC void ingot_gemm_load(thread simdgroup_matrix<T, 8, 8>& m, threadgroup T* from, ulong row, bool transposed) {
    if (transposed) {
        simdgroup_load(m, from, row, ulong2(0ul, 0ul), true);
    } else {
        simdgroup_load(m, from, row, ulong2(0ul, 0ul), false);
    }
}

// Copies a block of ROWS by COLS elements of a row-major matrix [rows, cols], from (row, col) on, to threadgroup memory,
// where they are of type TO and rows are LD elements apart. Where the matrix ends there are zeros: nothing is read beyond it.
// wide says that its rows start at multiples of four elements, so that four are read at once; col is such a multiple.
template <typename TO, typename T, uint ROWS, uint COLS, uint LD, uint THREADS>
INGOT_FUNC void ingot_gemm_stage(threadgroup TO* to, device const T* from, uint rows, uint cols, uint row, uint col, bool wide,
                                 uint tid) {
    typedef vec<T, 4> T4;
    typedef vec<TO, 4> TO4;
    if (wide) {
        for (uint i = tid; i < ROWS * COLS / 4u; i += THREADS) {
            uint r = i / (COLS / 4u);
            uint c = i % (COLS / 4u) * 4u;
            T4 x = T4(T(0.0f));
            if (row + r < rows && col + c < cols) {
                x = *(device const T4*)(from + (ulong(row + r) * ulong(cols) + ulong(col + c)));
            }
            *(threadgroup TO4*)(to + (r * LD + c)) = TO4(x);
        }
        return;
    }
    for (uint i = tid; i < ROWS * COLS; i += THREADS) {
        uint r = i / COLS;
        uint c = i % COLS;
        T x = T(0.0f);
        if (row + r < rows && col + c < cols) {
            x = from[ulong(row + r) * ulong(cols) + ulong(col + c)];
        }
        to[r * LD + c] = TO(x);
    }
}

INGOT_FUNC void ingot_gemm_zero(thread simdgroup_float8x8 (&sum)[4][4]) {
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
}

// Adds the products of STEP values of k to a part's sums, eight at a time in order. The blocks are stored with k along their
// rows, which are LONG elements apart, or with k down their columns, in rows FLAT elements apart: a if it is transposed, b if
// it is not.
template <typename T, uint STEP, uint LONG, uint FLAT>
INGOT_FUNC void ingot_gemm_multiply(thread simdgroup_float8x8 (&sum)[4][4], threadgroup T* block_a, threadgroup T* block_b,
                                    uint part_row, uint part_col, bool trans_a, bool trans_b) {
    ulong ld_a = trans_a ? ulong(FLAT) : ulong(LONG);
    ulong ld_b = trans_b ? ulong(LONG) : ulong(FLAT);
#pragma unroll
    for (uint k = 0u; k < STEP; k += 8u) {
        simdgroup_matrix<T, 8, 8> ma[4];
        simdgroup_matrix<T, 8, 8> mb[4];
#pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            uint m = part_row + 8u * i;
            uint n = part_col + 8u * i;
            uint at_a = trans_a ? k * FLAT + m : m * LONG + k;
            uint at_b = trans_b ? n * LONG + k : k * FLAT + n;
            ingot_gemm_load(ma[i], block_a + at_a, ld_a, trans_a);
            ingot_gemm_load(mb[i], block_b + at_b, ld_b, trans_b);
        }
#pragma unroll
        for (uint i = 0u; i < 4u; i++) {
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                simdgroup_multiply_accumulate(sum[i][j], ma[i], mb[j], sum[i][j]);
            }
        }
    }
}

// Finishes and stores the sums of a part whose first element is at row and col of a result [M, N]. Eight rows at a time go through
// threadgroup memory, where a lane has a column; nobody else may use that memory by then.
INGOT_FUNC void ingot_gemm_finish(thread simdgroup_float8x8 (&sum)[4][4], threadgroup float* memory, uint simdgroup, uint lane,
                                  uint row, uint col, uint M, uint N, device uchar* out, ulong first_out,
                                  device const uchar* c, ulong first_c, float alpha, float beta, device const float* bias) {
    threadgroup float* rows = memory + simdgroup * (8u * uint(INGOT_GEMM_PART));
    uint n = col + lane;
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        simdgroup_barrier(mem_flags::mem_threadgroup); // the rows before have been read
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            simdgroup_store(sum[i][j], rows + 8u * j, ulong(INGOT_GEMM_PART));
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint r = 0u; r < 8u; r++) {
            uint m = row + 8u * i + r;
            if (m < M && n < N) {
                ulong at = ulong(m) * ulong(N) + ulong(n);
                float x = ingot_dense_finish(rows[r * uint(INGOT_GEMM_PART) + lane], alpha, beta, c, first_c + at, bias, n);
                ingot_dense_store(out, first_out + at, x);
            }
        }
    }
}

#endif
