// Products of matrices in MLX's affine format, Y [M, N] = X [M, K] W^T; see affine.h.
//
// Slots of all kernels: 0 x [M, K], 4 elements aligned, 1 packed u32 [N, K * BITS / 32], 8-byte aligned, 2 scales
// [N, K / group_size], 3 biases likewise, 4 y [M, N], 5 M, N, K, group_size. group_size is a multiple of 32 and divides 512.
// Function constants: the types of x, y, and scales and biases; see affine.h.

#include "common.h"
#include "affine.h"
#include "qmm_affine.h"

#define INGOT_QMV_ROWS 4          // rows of W that a simdgroup computes at once
#define INGOT_QMV_GROUP_ROWS 8u   // those of a threadgroup: two simdgroups
#define INGOT_QMV_BLOCK 512u      // columns of a step: 16 for each lane

// y[m, n] = sum over k of x[m, k] * w[n, k] for NV rows m at once, each bit for bit what it is alone
//
// The last row of x stands in for rows past the end, which are not stored. A lane takes 16 columns of a step for all rows. A row's groups contribute scale * sum(code * x) + bias * sum(x), and the operations
// for an element, and their order, depend on K and group_size alone.
//
// Kernels: qmv_affine_b{BITS}_m{NV}.
//
// Slots: see above.
// Geometry: ceil(N / 8) x ceil(M / NV) threadgroups of 64 threads. Threadgroup memory: none.
// Source: qmv_fast of MLX (mlx/backend/metal/kernels/quantized.h).
template <uint BITS, uint NV>
kernel void qmv_affine(device const uchar* x [[buffer(0)]],
                       device const uint* packed [[buffer(1)]],
                       device const uchar* scales [[buffer(2)]],
                       device const uchar* biases [[buffer(3)]],
                       device uchar* y [[buffer(4)]],
                       constant ingot_affine_shape& p [[buffer(5)]],
                       uint2 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    uint row0 = group.x * INGOT_QMV_GROUP_ROWS + simdgroup * uint(INGOT_QMV_ROWS);
    uint first = group.y * NV;
    if (row0 >= p.N || first >= p.M) {
        return;
    }
    ulong row_words = ulong(p.K / 32u) * ulong(BITS);
    ulong row_groups = ulong(p.K / p.group_size);
    ulong word[INGOT_QMV_ROWS];
    ulong number[INGOT_QMV_ROWS];
    float sum[NV][INGOT_QMV_ROWS];
#pragma unroll
    for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
        ulong row = ulong(min(row0 + r, p.N - 1u)); // the last row stands in for rows past the end
        word[r] = row * row_words + ulong(lane * (BITS / 2u));
        number[r] = row * row_groups + ulong(lane * 16u / p.group_size);
#pragma unroll
        for (uint m = 0u; m < NV; m++) {
            sum[m][r] = 0.0f;
        }
    }
    float4 places = ingot_affine_places<BITS>();
    ulong quad[NV];
#pragma unroll
    for (uint m = 0u; m < NV; m++) {
        quad[m] = ulong(min(first + m, p.M - 1u)) * ulong(p.K / 4u) + ulong(lane) * 4ul;
    }
    for (uint col = lane * 16u; col < p.K; col += INGOT_QMV_BLOCK) {
        uint words[INGOT_QMV_ROWS][BITS / 2u];
        float dot[NV][INGOT_QMV_ROWS];
        float total[NV];
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
            ingot_affine_words<BITS>(packed, word[r], words[r]);
            word[r] += ulong(16u * BITS);
        }
#pragma unroll
        for (uint m = 0u; m < NV; m++) {
            total[m] = 0.0f;
#pragma unroll
            for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
                dot[m][r] = 0.0f;
            }
        }
#pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            float4 code[INGOT_QMV_ROWS];
#pragma unroll
            for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
                code[r] = ingot_affine_quad<BITS>(words[r], i);
            }
#pragma unroll
            for (uint m = 0u; m < NV; m++) {
                float4 v = ingot_affine_load(x, quad[m] + ulong(i));
                total[m] += (v.x + v.y) + (v.z + v.w);
                v = v * places;
#pragma unroll
                for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
                    float t = fma(v.x, code[r].x, dot[m][r]);
                    t = fma(v.y, code[r].y, t);
                    t = fma(v.z, code[r].z, t);
                    dot[m][r] = fma(v.w, code[r].w, t);
                }
            }
        }
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
            float scale = ingot_affine_number(scales, number[r]);
            float bias = ingot_affine_number(biases, number[r]);
            number[r] += ulong(INGOT_QMV_BLOCK / p.group_size);
#pragma unroll
            for (uint m = 0u; m < NV; m++) {
                sum[m][r] = fma(scale, dot[m][r], fma(bias, total[m], sum[m][r]));
            }
        }
#pragma unroll
        for (uint m = 0u; m < NV; m++) {
            quad[m] += 128ul;
        }
    }
#pragma unroll
    for (uint m = 0u; m < NV; m++) {
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_QMV_ROWS); r++) {
            float v = simd_sum(sum[m][r]);
            if (lane == 0u && m < p.M - first && r < p.N - row0) {
                ingot_affine_store(y, ulong(first + m) * ulong(p.N) + ulong(row0 + r), v);
            }
        }
    }
}

typedef decltype(qmv_affine<4, 1>) qmv_affine_kernel;

template [[host_name("qmv_affine_b4_m1")]] kernel qmv_affine_kernel qmv_affine<4, 1>;
template [[host_name("qmv_affine_b4_m2")]] kernel qmv_affine_kernel qmv_affine<4, 2>;
template [[host_name("qmv_affine_b4_m3")]] kernel qmv_affine_kernel qmv_affine<4, 3>;
template [[host_name("qmv_affine_b4_m4")]] kernel qmv_affine_kernel qmv_affine<4, 4>;
template [[host_name("qmv_affine_b4_m5")]] kernel qmv_affine_kernel qmv_affine<4, 5>;
template [[host_name("qmv_affine_b4_m6")]] kernel qmv_affine_kernel qmv_affine<4, 6>;
template [[host_name("qmv_affine_b4_m7")]] kernel qmv_affine_kernel qmv_affine<4, 7>;
template [[host_name("qmv_affine_b4_m8")]] kernel qmv_affine_kernel qmv_affine<4, 8>;
template [[host_name("qmv_affine_b6_m1")]] kernel qmv_affine_kernel qmv_affine<6, 1>;
template [[host_name("qmv_affine_b6_m2")]] kernel qmv_affine_kernel qmv_affine<6, 2>;
template [[host_name("qmv_affine_b6_m3")]] kernel qmv_affine_kernel qmv_affine<6, 3>;
template [[host_name("qmv_affine_b6_m4")]] kernel qmv_affine_kernel qmv_affine<6, 4>;
template [[host_name("qmv_affine_b6_m5")]] kernel qmv_affine_kernel qmv_affine<6, 5>;
template [[host_name("qmv_affine_b6_m6")]] kernel qmv_affine_kernel qmv_affine<6, 6>;
template [[host_name("qmv_affine_b6_m7")]] kernel qmv_affine_kernel qmv_affine<6, 7>;
template [[host_name("qmv_affine_b6_m8")]] kernel qmv_affine_kernel qmv_affine<6, 8>;
template [[host_name("qmv_affine_b8_m1")]] kernel qmv_affine_kernel qmv_affine<8, 1>;
template [[host_name("qmv_affine_b8_m2")]] kernel qmv_affine_kernel qmv_affine<8, 2>;
template [[host_name("qmv_affine_b8_m3")]] kernel qmv_affine_kernel qmv_affine<8, 3>;
template [[host_name("qmv_affine_b8_m4")]] kernel qmv_affine_kernel qmv_affine<8, 4>;
template [[host_name("qmv_affine_b8_m5")]] kernel qmv_affine_kernel qmv_affine<8, 5>;
template [[host_name("qmv_affine_b8_m6")]] kernel qmv_affine_kernel qmv_affine<8, 6>;
template [[host_name("qmv_affine_b8_m7")]] kernel qmv_affine_kernel qmv_affine<8, 7>;
template [[host_name("qmv_affine_b8_m8")]] kernel qmv_affine_kernel qmv_affine<8, 8>;

#define INGOT_QMM_COLS 64u    // rows of W of a tile, which are columns of y
#define INGOT_QMM_STEP 32u    // columns that a threadgroup holds at a time
#define INGOT_QMM_LD 36u      // from one row to the next in threadgroup memory, against conflicts of its banks

// y[m, n] = sum over k of x[m, k] * w[n, k], tiles of ROWS by 64 on simdgroup matrices
//
// Each weight is dequantised once for a tile, and rounded once, to f32. An element adds its products up eight at a time in the order
// of the columns: its bits depend neither on M, N and its place nor on ROWS.
//
// Kernels: qmm_affine_b{BITS}_t{ROWS}.
//
// Slots: see above.
// Geometry: ceil(N / 64) x ceil(M / ROWS) threadgroups of 128 threads, 2 by 2 simdgroups.
// Threadgroup memory: 13,824 bytes with 32 rows, 18,432 with 64.
template <uint BITS, uint ROWS>
kernel void qmm_affine(device const uchar* x [[buffer(0)]],
                       device const uint* packed [[buffer(1)]],
                       device const uchar* scales [[buffer(2)]],
                       device const uchar* biases [[buffer(3)]],
                       device uchar* y [[buffer(4)]],
                       constant ingot_affine_shape& p [[buffer(5)]],
                       uint2 tile [[threadgroup_position_in_grid]],
                       uint tid [[thread_index_in_threadgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
    constexpr uint PART = ROWS / 16u; // matrices of 8 rows of a simdgroup
    threadgroup float4 memory[(ROWS + INGOT_QMM_COLS) * INGOT_QMM_LD / 4u];
    threadgroup float* block_x = (threadgroup float*)memory;
    threadgroup float* block_w = block_x + ROWS * INGOT_QMM_LD;
    uint row0 = tile.y * ROWS;
    uint col0 = tile.x * INGOT_QMM_COLS;
    if (row0 >= p.M || col0 >= p.N) {
        return;
    }
    uint part_row = simdgroup / 2u * (ROWS / 2u);
    uint part_col = simdgroup % 2u * 32u;
    ulong quads = ulong(p.K / 4u);
    uint w_row = tid / 2u; // a thread dequantises half a row of a block
    uint w_half = tid % 2u;
    bool has_row = col0 + w_row < p.N;
    ulong word = ulong(col0 + w_row) * (ulong(p.K / 32u) * ulong(BITS)) + ulong(w_half * (BITS / 2u));
    ulong number = ulong(col0 + w_row) * ulong(p.K / p.group_size);

    simdgroup_float8x8 sum[PART][4];
#pragma unroll
    for (uint i = 0u; i < PART; i++) {
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    for (uint k0 = 0u; k0 < p.K; k0 += INGOT_QMM_STEP) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the blocks before have been used
        for (uint i = tid; i < ROWS * (INGOT_QMM_STEP / 4u); i += 128u) {
            uint r = i / (INGOT_QMM_STEP / 4u);
            uint q = i % (INGOT_QMM_STEP / 4u);
            float4 v = float4(0.0f);
            if (row0 + r < p.M) {
                v = ingot_affine_load(x, ulong(row0 + r) * quads + ulong(k0 / 4u + q));
            }
            *(threadgroup float4*)(block_x + (r * INGOT_QMM_LD + 4u * q)) = v;
        }
        threadgroup float4* row = (threadgroup float4*)(block_w + (w_row * INGOT_QMM_LD + w_half * 16u));
        if (has_row) {
            uint words[BITS / 2u];
            ingot_affine_words<BITS>(packed, word, words);
            float scale = ingot_affine_number(scales, number + ulong(k0 / p.group_size));
            float bias = ingot_affine_number(biases, number + ulong(k0 / p.group_size));
#pragma unroll
            for (uint i = 0u; i < 4u; i++) {
                row[i] = ingot_affine_weights<BITS>(words, i, scale, bias);
            }
        } else {
#pragma unroll
            for (uint i = 0u; i < 4u; i++) {
                row[i] = float4(0.0f);
            }
        }
        word += ulong(BITS);
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint k = 0u; k < INGOT_QMM_STEP; k += 8u) {
            simdgroup_float8x8 mx[PART];
            simdgroup_float8x8 mw[4];
#pragma unroll
            for (uint i = 0u; i < PART; i++) {
                simdgroup_load(mx[i], block_x + ((part_row + 8u * i) * INGOT_QMM_LD + k), ulong(INGOT_QMM_LD), ulong2(0ul, 0ul), false);
            }
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                simdgroup_load(mw[j], block_w + ((part_col + 8u * j) * INGOT_QMM_LD + k), ulong(INGOT_QMM_LD), ulong2(0ul, 0ul), true);
            }
#pragma unroll
            for (uint i = 0u; i < PART; i++) {
#pragma unroll
                for (uint j = 0u; j < 4u; j++) {
                    simdgroup_multiply_accumulate(sum[i][j], mx[i], mw[j], sum[i][j]);
                }
            }
        }
    }

    // Eight rows of a simdgroup at a time go through threadgroup memory, where a lane has a column.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float* rows = block_x + simdgroup * 256u;
    uint n = col0 + part_col + lane;
#pragma unroll
    for (uint i = 0u; i < PART; i++) {
        simdgroup_barrier(mem_flags::mem_threadgroup); // the rows before have been read
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            simdgroup_store(sum[i][j], rows + 8u * j, 32ul);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint r = 0u; r < 8u; r++) {
            uint m = row0 + part_row + 8u * i + r;
            if (m < p.M && n < p.N) {
                ingot_affine_store(y, ulong(m) * ulong(p.N) + ulong(n), rows[r * 32u + lane]);
            }
        }
    }
}

typedef decltype(qmm_affine<4, 32>) qmm_affine_kernel;

template [[host_name("qmm_affine_b4_t32")]] kernel qmm_affine_kernel qmm_affine<4, 32>;
template [[host_name("qmm_affine_b4_t64")]] kernel qmm_affine_kernel qmm_affine<4, 64>;
template [[host_name("qmm_affine_b6_t32")]] kernel qmm_affine_kernel qmm_affine<6, 32>;
template [[host_name("qmm_affine_b6_t64")]] kernel qmm_affine_kernel qmm_affine<6, 64>;
template [[host_name("qmm_affine_b8_t32")]] kernel qmm_affine_kernel qmm_affine<8, 32>;
template [[host_name("qmm_affine_b8_t64")]] kernel qmm_affine_kernel qmm_affine<8, 64>;
