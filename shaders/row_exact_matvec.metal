// Matrix-vector products for up to eight vectors at once, of which each is bit for bit what it is alone.

#include "common.h"
#include "row_exact.h"

// y[b, j, r] = sum over c of W[b, r, c] * x[b, j, c],  b < batches, j < M, r < n, c < k
//
// with a product's strides and the rows of weights as p has them; see row_exact.h for the order of the sums.
//
// Kernels: row_exact_mv_{type}_f32_r{NR0}_m{M}. The type is that of the weights, NR0 how many of their rows a threadgroup
// takes, M the number of vectors.
//
// Slots: 0 weights, rows of p.w_row_bytes bytes, aligned to 8 bytes if f16 or bf16, 16 if f32, q4_K or q5_K, and else 2;
//        1 x f32, 16-byte aligned; 2 y f32; 3 p. k is a multiple of 4, 32 or 256 for dense weights, blocks of 32 and
//        of 256; x_row_stride and x_batch_stride are multiples of 4. The products' outputs do not overlap.
// Geometry: tgs_per_batch for each batch, tgs_per_batch = ceil(n / NR0), threadgroups of 32 to 1,024 threads, a multiple of 32.
// Threadgroup memory: 0, NR0 * M * 32 floats.
template <typename W, uint NR0, uint M>
kernel void row_exact_mv(device const uchar* w [[buffer(0)]],
                         device const float4* x [[buffer(1)]],
                         device float* y [[buffer(2)]],
                         constant RowExactMvParams& p [[buffer(3)]],
                         threadgroup float* partial [[threadgroup(0)]],
                         uint group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_position_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint simdgroups [[simdgroups_per_threadgroup]]) {
    ingot_row_exact<W, NR0, M>(w, x, y, p, partial, group, thread_index, lane, simdgroup, simdgroups);
}

typedef decltype(row_exact_mv<ingot_f16, 1, 1>) row_exact;

template [[host_name("row_exact_mv_f16_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_f16, 1, 1>;
template [[host_name("row_exact_mv_f16_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_f16, 1, 2>;
template [[host_name("row_exact_mv_f16_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_f16, 1, 3>;
template [[host_name("row_exact_mv_f16_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_f16, 1, 4>;
template [[host_name("row_exact_mv_f16_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_f16, 1, 5>;
template [[host_name("row_exact_mv_f16_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_f16, 1, 6>;
template [[host_name("row_exact_mv_f16_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_f16, 1, 7>;
template [[host_name("row_exact_mv_f16_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_f16, 1, 8>;
template [[host_name("row_exact_mv_f16_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_f16, 2, 1>;
template [[host_name("row_exact_mv_f16_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_f16, 2, 2>;
template [[host_name("row_exact_mv_f16_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_f16, 2, 3>;
template [[host_name("row_exact_mv_f16_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_f16, 2, 4>;
template [[host_name("row_exact_mv_f16_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_f16, 2, 5>;
template [[host_name("row_exact_mv_f16_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_f16, 2, 6>;
template [[host_name("row_exact_mv_f16_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_f16, 2, 7>;
template [[host_name("row_exact_mv_f16_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_f16, 2, 8>;

template [[host_name("row_exact_mv_q8_0_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 1>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 2>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 3>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 4>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 5>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 6>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 7>;
template [[host_name("row_exact_mv_q8_0_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q8_0, 1, 8>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 1>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 2>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 3>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 4>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 5>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 6>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 7>;
template [[host_name("row_exact_mv_q8_0_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q8_0, 2, 8>;

template [[host_name("row_exact_mv_q4_K_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 1>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 2>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 3>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 4>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 5>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 6>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 7>;
template [[host_name("row_exact_mv_q4_K_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q4_k, 1, 8>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 1>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 2>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 3>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 4>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 5>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 6>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 7>;
template [[host_name("row_exact_mv_q4_K_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q4_k, 2, 8>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m1")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 1>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m2")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 2>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m3")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 3>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m4")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 4>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m5")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 5>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m6")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 6>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m7")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 7>;
template [[host_name("row_exact_mv_q4_K_f32_r4_m8")]] kernel row_exact row_exact_mv<ingot_q4_k, 4, 8>;

template [[host_name("row_exact_mv_q6_K_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 1>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 2>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 3>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 4>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 5>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 6>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 7>;
template [[host_name("row_exact_mv_q6_K_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q6_k, 1, 8>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 1>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 2>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 3>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 4>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 5>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 6>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 7>;
template [[host_name("row_exact_mv_q6_K_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q6_k, 2, 8>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m1")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 1>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m2")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 2>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m3")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 3>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m4")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 4>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m5")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 5>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m6")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 6>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m7")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 7>;
template [[host_name("row_exact_mv_q6_K_f32_r4_m8")]] kernel row_exact row_exact_mv<ingot_q6_k, 4, 8>;

template [[host_name("row_exact_mv_q5_0_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 1>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 2>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 3>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 4>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 5>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 6>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 7>;
template [[host_name("row_exact_mv_q5_0_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q5_0, 1, 8>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 1>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 2>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 3>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 4>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 5>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 6>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 7>;
template [[host_name("row_exact_mv_q5_0_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q5_0, 2, 8>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m1")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 1>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m2")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 2>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m3")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 3>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m4")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 4>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m5")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 5>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m6")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 6>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m7")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 7>;
template [[host_name("row_exact_mv_q5_0_f32_r4_m8")]] kernel row_exact row_exact_mv<ingot_q5_0, 4, 8>;

template [[host_name("row_exact_mv_q4_0_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 1>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 2>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 3>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 4>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 5>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 6>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 7>;
template [[host_name("row_exact_mv_q4_0_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q4_0, 1, 8>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 1>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 2>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 3>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 4>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 5>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 6>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 7>;
template [[host_name("row_exact_mv_q4_0_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q4_0, 2, 8>;

template [[host_name("row_exact_mv_q5_K_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 1>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 2>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 3>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 4>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 5>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 6>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 7>;
template [[host_name("row_exact_mv_q5_K_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_q5_k, 1, 8>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 1>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 2>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 3>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 4>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 5>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 6>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 7>;
template [[host_name("row_exact_mv_q5_K_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_q5_k, 2, 8>;

template [[host_name("row_exact_mv_iq4_nl_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 1>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 2>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 3>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 4>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 5>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 6>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 7>;
template [[host_name("row_exact_mv_iq4_nl_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 1, 8>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 1>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 2>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 3>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 4>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 5>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 6>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 7>;
template [[host_name("row_exact_mv_iq4_nl_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_iq4_nl, 2, 8>;

template [[host_name("row_exact_mv_bf16_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 1>;
template [[host_name("row_exact_mv_bf16_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 2>;
template [[host_name("row_exact_mv_bf16_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 3>;
template [[host_name("row_exact_mv_bf16_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 4>;
template [[host_name("row_exact_mv_bf16_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 5>;
template [[host_name("row_exact_mv_bf16_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 6>;
template [[host_name("row_exact_mv_bf16_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 7>;
template [[host_name("row_exact_mv_bf16_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_bf16, 1, 8>;
template [[host_name("row_exact_mv_bf16_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 1>;
template [[host_name("row_exact_mv_bf16_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 2>;
template [[host_name("row_exact_mv_bf16_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 3>;
template [[host_name("row_exact_mv_bf16_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 4>;
template [[host_name("row_exact_mv_bf16_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 5>;
template [[host_name("row_exact_mv_bf16_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 6>;
template [[host_name("row_exact_mv_bf16_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 7>;
template [[host_name("row_exact_mv_bf16_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_bf16, 2, 8>;

template [[host_name("row_exact_mv_f32_f32_r1_m1")]] kernel row_exact row_exact_mv<ingot_f32, 1, 1>;
template [[host_name("row_exact_mv_f32_f32_r1_m2")]] kernel row_exact row_exact_mv<ingot_f32, 1, 2>;
template [[host_name("row_exact_mv_f32_f32_r1_m3")]] kernel row_exact row_exact_mv<ingot_f32, 1, 3>;
template [[host_name("row_exact_mv_f32_f32_r1_m4")]] kernel row_exact row_exact_mv<ingot_f32, 1, 4>;
template [[host_name("row_exact_mv_f32_f32_r1_m5")]] kernel row_exact row_exact_mv<ingot_f32, 1, 5>;
template [[host_name("row_exact_mv_f32_f32_r1_m6")]] kernel row_exact row_exact_mv<ingot_f32, 1, 6>;
template [[host_name("row_exact_mv_f32_f32_r1_m7")]] kernel row_exact row_exact_mv<ingot_f32, 1, 7>;
template [[host_name("row_exact_mv_f32_f32_r1_m8")]] kernel row_exact row_exact_mv<ingot_f32, 1, 8>;
template [[host_name("row_exact_mv_f32_f32_r2_m1")]] kernel row_exact row_exact_mv<ingot_f32, 2, 1>;
template [[host_name("row_exact_mv_f32_f32_r2_m2")]] kernel row_exact row_exact_mv<ingot_f32, 2, 2>;
template [[host_name("row_exact_mv_f32_f32_r2_m3")]] kernel row_exact row_exact_mv<ingot_f32, 2, 3>;
template [[host_name("row_exact_mv_f32_f32_r2_m4")]] kernel row_exact row_exact_mv<ingot_f32, 2, 4>;
template [[host_name("row_exact_mv_f32_f32_r2_m5")]] kernel row_exact row_exact_mv<ingot_f32, 2, 5>;
template [[host_name("row_exact_mv_f32_f32_r2_m6")]] kernel row_exact row_exact_mv<ingot_f32, 2, 6>;
template [[host_name("row_exact_mv_f32_f32_r2_m7")]] kernel row_exact row_exact_mv<ingot_f32, 2, 7>;
template [[host_name("row_exact_mv_f32_f32_r2_m8")]] kernel row_exact row_exact_mv<ingot_f32, 2, 8>;
