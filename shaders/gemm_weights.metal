// Products of many rows with weights of any type on simdgroup matrices. A threadgroup turns a block of weights into float32 numbers
// once for all rows of its tile.

#include "common.h"
#include "gemm_dense.h"
#include "gemm_tile.h"
#include "weights.h"

#define INGOT_GEMM_WEIGHTS_COLS 64   // rows of weights, which are columns of the result, in a tile
#define INGOT_GEMM_WEIGHTS_STEP 32   // columns of weights that a threadgroup holds at a time
#define INGOT_GEMM_WEIGHTS_LD 36     // floats from one row to the next there: a step, and a pad against conflicts of banks

// Function constant: the type of x, as those of out; see gemm_dense.h.
constant uint ingot_gemm_weights_x [[function_constant(108)]];

// What a threadgroup holds of x and of w at a time, each in rows of INGOT_GEMM_WEIGHTS_LD floats. A thread copies the same part of each
// step, which it knows from ingot_weights_begin on; rows past the last one are copies of that one, whose results are not stored.

// Four columns of some rows of x, whose rows start at multiples of four elements, and which has whole steps.
template <uint SIDE>
struct ingot_x_rows {
    device const uchar* row[4];
};

// Elements of x, by their bytes: which of the types they are of is a function constant.
INGOT_FUNC uint ingot_weights_x_size() { return ingot_gemm_weights_x == INGOT_OUT_F32 ? 4u : 2u; }

template <uint SIDE>
INGOT_FUNC void ingot_weights_begin_x(thread ingot_x_rows<SIDE>& s, device const uchar* x, uint M, uint K, uint first, uint tid) {
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        uint row = min(first + tid / 8u + i * (8u * SIDE), M - 1u);
        s.row[i] = x + (ulong(row) * ulong(K) + ulong(tid % 8u * 4u)) * ulong(ingot_weights_x_size());
    }
}

template <uint SIDE>
INGOT_FUNC void ingot_weights_stage_x(thread const ingot_x_rows<SIDE>& s, threadgroup float* to, uint k0, uint tid) {
    to += tid / 8u * uint(INGOT_GEMM_WEIGHTS_LD) + tid % 8u * 4u;
    ulong at = ulong(k0) * ulong(ingot_weights_x_size());
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float4 v;
        if (ingot_gemm_weights_x == INGOT_OUT_F16) {
            v = float4(*(device const half4*)(s.row[i] + at));
        } else if (ingot_gemm_weights_x == INGOT_OUT_BF16) {
            v = as_type<float4>(uint4(*(device const ushort4*)(s.row[i] + at)) << 16u);
        } else {
            v = *(device const float4*)(s.row[i] + at);
        }
        *(threadgroup float4*)(to + i * (8u * SIDE * uint(INGOT_GEMM_WEIGHTS_LD))) = v;
    }
}

// x that starts anywhere and has any number of columns, those past the last as zeros.
template <uint SIDE>
INGOT_FUNC void ingot_weights_stage_any_x(threadgroup float* to, device const uchar* x, uint M, uint K, uint row, uint k0, bool wide, uint tid) {
    constexpr uint ROWS = SIDE * uint(INGOT_GEMM_PART);
    if (ingot_gemm_weights_x == INGOT_OUT_F16) {
        ingot_gemm_stage<float, half, ROWS, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, 64u * SIDE>(
            to, (device const half*)x, M, K, row, k0, wide, tid);
    } else if (ingot_gemm_weights_x == INGOT_OUT_BF16) {
        ingot_gemm_stage<float, bfloat, ROWS, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, 64u * SIDE>(
            to, (device const bfloat*)x, M, K, row, k0, wide, tid);
    } else {
        ingot_gemm_stage<float, float, ROWS, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, 64u * SIDE>(
            to, (device const float*)x, M, K, row, k0, wide, tid);
    }
}

// Weights in a block format, of which there are whole steps, and x: 16 of each 32 columns of one or two rows of weights, half a run of
// weights.h or a whole one.
template <typename W, uint SIDE>
struct ingot_blocks_tile {
    enum { side = SIDE };
    ingot_x_rows<SIDE> x;
    device const uchar* row[2 / SIDE];
};

template <typename W, uint SIDE>
INGOT_FUNC void ingot_weights_begin(thread ingot_blocks_tile<W, SIDE>& s, device const uchar* x, device const uchar* w, uint M, uint N, uint K,
                                    uint row0, uint col0, uint tid) {
    ingot_weights_begin_x(s.x, x, M, K, row0, tid);
    ulong bytes = ingot_row_bytes<W>(K);
#pragma unroll
    for (uint i = 0u; i < 2u / SIDE; i++) {
        s.row[i] = w + ulong(min(col0 + tid / 2u + i * 32u, N - 1u)) * bytes;
    }
}

template <typename W, uint SIDE>
INGOT_FUNC void ingot_weights_stage(thread const ingot_blocks_tile<W, SIDE>& s, threadgroup float* to_x, threadgroup float* to_w,
                                    device const uchar* x, device const uchar*, uint M, uint, uint K, uint row0, uint, uint k0, uint tid) {
    if (ingot_dense_wide_a) {
        ingot_weights_stage_x(s.x, to_x, k0, tid);
    } else {
        ingot_weights_stage_any_x<SIDE>(to_x, x, M, K, row0, k0, false, tid);
    }
    uint col = tid % 2u * 16u;
    to_w += tid / 2u * uint(INGOT_GEMM_WEIGHTS_LD) + col;
#pragma unroll
    for (uint i = 0u; i < 2u / SIDE; i++) {
        W place;
        ingot_seek(place, s.row[i], (k0 + col) / uint(W::values));
        uint quad = col % uint(W::values) / 4u;
#pragma unroll
        for (uint q = 0u; q < 4u; q++) {
            *(threadgroup float4*)(to_w + i * (32u * uint(INGOT_GEMM_WEIGHTS_LD)) + 4u * q) = ingot_quad(place, quad + q);
        }
    }
}

// Weights that are numbers of type T, and x: both with any start and any number of columns. If there are whole steps, and all rows
// start at multiples of four elements, a thread copies four columns of some rows of both.
template <typename T, uint SIDE>
struct ingot_numbers_tile {
    enum { side = SIDE };
    ingot_x_rows<SIDE> x;
    device const T* row[8 / SIDE];
    bool wide_x;
    bool wide_w;
};

template <typename T, uint SIDE>
INGOT_FUNC void ingot_weights_begin(thread ingot_numbers_tile<T, SIDE>& s, device const uchar* x, device const uchar* w, uint M, uint N, uint K,
                                    uint row0, uint col0, uint tid) {
    s.wide_x = ingot_dense_rows(ingot_dense_wide_a, K, 0u);
    s.wide_w = ingot_dense_rows(ingot_dense_wide_b, K, 0u);
    ingot_weights_begin_x(s.x, x, M, K, row0, tid);
#pragma unroll
    for (uint i = 0u; i < 8u / SIDE; i++) {
        uint row = min(col0 + tid / 8u + i * (8u * SIDE), N - 1u);
        s.row[i] = (device const T*)w + (ulong(row) * ulong(K) + ulong(tid % 8u * 4u));
    }
}

template <typename T, uint SIDE>
INGOT_FUNC void ingot_weights_stage(thread const ingot_numbers_tile<T, SIDE>& s, threadgroup float* to_x, threadgroup float* to_w,
                                    device const uchar* x, device const uchar* w, uint M, uint N, uint K, uint row0, uint col0, uint k0,
                                    uint tid) {
    if (s.wide_x && s.wide_w && K % uint(INGOT_GEMM_WEIGHTS_STEP) == 0u) {
        typedef vec<T, 4> T4;
        ingot_weights_stage_x(s.x, to_x, k0, tid);
        to_w += tid / 8u * uint(INGOT_GEMM_WEIGHTS_LD) + tid % 8u * 4u;
#pragma unroll
        for (uint i = 0u; i < 8u / SIDE; i++) {
            *(threadgroup float4*)(to_w + i * (8u * SIDE * uint(INGOT_GEMM_WEIGHTS_LD))) = float4(*(device const T4*)(s.row[i] + ulong(k0)));
        }
        return;
    }
    ingot_weights_stage_any_x<SIDE>(to_x, x, M, K, row0, k0, s.wide_x, tid);
    ingot_gemm_stage<float, T, INGOT_GEMM_WEIGHTS_COLS, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, 64u * SIDE>(
        to_w, (device const T*)w, N, K, col0, k0, s.wide_w, tid);
}

// out[m][n] = act(alpha * sum over k of x[m][k] * w[n][k] + beta * c[m][n] + bias[n]), m < M, n < N, k < K
//
// Weights and x are f32 in the tile, each exactly what its type says. Sums are f32, eight products of k at a time in order, zeros after
// the last: what an element is does not depend on M, N, its place or the other elements, nor on the kernel of the two that
// computes it. It is what gemm_dense_f32 gives for the same numbers.
//
// Kernels: gemm_weights_{f32,f16,bf16,q4_0,q5_0,q8_0,iq4_nl,q4_K,q5_K,q6_K}_t{32,64}, by the type of w and the rows of x in a
// tile.
// Function constants: see gemm_dense.h, and above.
//
// Slots: 0 x f32, f16 or bf16 [M, K], 1 w [N, K], in blocks aligned as weights.h says, 2 out f32, f16 or bf16 [M, N], 3 M, 4 N,
//        5 K, 8 bias f32 [N], 9 alpha f32, 10 beta f32, 11 c as out, may be out. bias and c are bound but not read if their
//        function constants are false.
// Geometry: ceil(N / 64) x ceil(M / tile) threadgroups of two simdgroups for each 32 rows of a tile.
// Threadgroup memory: 13,824 bytes with tiles of 32, 18,432 with tiles of 64.
template <typename T>
kernel void gemm_weights(device const uchar* x [[buffer(0)]],
                         device const uchar* w [[buffer(1)]],
                         device uchar* out [[buffer(2)]],
                         constant uint& M [[buffer(3)]],
                         constant uint& N [[buffer(4)]],
                         constant uint& K [[buffer(5)]],
                         device const float* bias [[buffer(8)]],
                         constant float& alpha [[buffer(9)]],
                         constant float& beta [[buffer(10)]],
                         device const uchar* c [[buffer(11)]],
                         uint2 tile [[threadgroup_position_in_grid]],
                         uint tid [[thread_index_in_threadgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
    constexpr uint TILE = uint(T::side) * uint(INGOT_GEMM_PART);
    threadgroup float4 memory[(TILE + uint(INGOT_GEMM_WEIGHTS_COLS)) * uint(INGOT_GEMM_WEIGHTS_LD) / 4u];
    threadgroup float* block_x = (threadgroup float*)memory;
    threadgroup float* block_w = block_x + TILE * uint(INGOT_GEMM_WEIGHTS_LD);

    uint row0 = tile.y * TILE;
    uint col0 = tile.x * uint(INGOT_GEMM_WEIGHTS_COLS);
    if (row0 >= M || col0 >= N) {
        return;
    }
    uint part_row = simdgroup / 2u * uint(INGOT_GEMM_PART);
    uint part_col = simdgroup % 2u * uint(INGOT_GEMM_PART);
    T part;
    ingot_weights_begin(part, x, w, M, N, K, row0, col0, tid);

    simdgroup_float8x8 sum[4][4];
    ingot_gemm_zero(sum);
    for (uint k0 = 0u; k0 < K; k0 += uint(INGOT_GEMM_WEIGHTS_STEP)) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the block before has been used
        ingot_weights_stage(part, block_x, block_w, x, w, M, N, K, row0, col0, k0, tid);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ingot_gemm_multiply<float, INGOT_GEMM_WEIGHTS_STEP, INGOT_GEMM_WEIGHTS_LD, INGOT_GEMM_WEIGHTS_LD>(
            sum, block_x, block_w, part_row, part_col, false, true);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ingot_gemm_finish(sum, (threadgroup float*)memory, simdgroup, lane, row0 + part_row, col0 + part_col, M, N, out, 0ul, c, 0ul,
                      alpha, beta, bias);
}

typedef decltype(gemm_weights<ingot_blocks_tile<ingot_q4_0, 1>>) gemm_of_weights;

template [[host_name("gemm_weights_q4_0_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q4_0, 1>>;
template [[host_name("gemm_weights_q4_0_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q4_0, 2>>;
template [[host_name("gemm_weights_q5_0_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q5_0, 1>>;
template [[host_name("gemm_weights_q5_0_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q5_0, 2>>;
template [[host_name("gemm_weights_q8_0_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q8_0, 1>>;
template [[host_name("gemm_weights_q8_0_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q8_0, 2>>;
template [[host_name("gemm_weights_iq4_nl_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_iq4_nl, 1>>;
template [[host_name("gemm_weights_iq4_nl_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_iq4_nl, 2>>;
template [[host_name("gemm_weights_q4_K_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q4_k, 1>>;
template [[host_name("gemm_weights_q4_K_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q4_k, 2>>;
template [[host_name("gemm_weights_q5_K_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q5_k, 1>>;
template [[host_name("gemm_weights_q5_K_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q5_k, 2>>;
template [[host_name("gemm_weights_q6_K_t32")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q6_k, 1>>;
template [[host_name("gemm_weights_q6_K_t64")]] kernel gemm_of_weights gemm_weights<ingot_blocks_tile<ingot_q6_k, 2>>;
template [[host_name("gemm_weights_f32_t32")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<float, 1>>;
template [[host_name("gemm_weights_f32_t64")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<float, 2>>;
template [[host_name("gemm_weights_f16_t32")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<half, 1>>;
template [[host_name("gemm_weights_f16_t64")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<half, 2>>;
template [[host_name("gemm_weights_bf16_t32")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<bfloat, 1>>;
template [[host_name("gemm_weights_bf16_t64")]] kernel gemm_of_weights gemm_weights<ingot_numbers_tile<bfloat, 2>>;
