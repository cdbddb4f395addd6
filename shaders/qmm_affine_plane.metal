// Products with matrices of 4-bit codes in tiles of 64 rows, for up to 32 rows of x, which are rounded to bf16 first.

#include "common.h"
#include "convert.h"
#include "qmm_affine.h"

// table[m, k] = bf16(x[m, k]), and sums[m / 8, k / 64, m % 8] = the sum of a group's 64; rows from M on are zeros
//
// Slots: 0 x f32 [M, K], 1 table bf16 [ceil(M / 8) * 8, K], 2 sums f32 [ceil(M / 8), K / 64, 8], 3 M, N, K, 64.
// Geometry: K / 64 x ceil(M / 8) threadgroups of 256 threads, a simdgroup for each row. Threadgroup memory: none.
kernel void qmm_affine_t_packed_simd4_b4_gs64_bf16_prepare(device const float* x [[buffer(0)]],
                                                           device ushort* table [[buffer(1)]],
                                                           device float* sums [[buffer(2)]],
                                                           constant ingot_affine_shape& p [[buffer(3)]],
                                                           uint2 tile [[threadgroup_position_in_grid]],
                                                           uint simdgroup [[simdgroup_index_in_threadgroup]],
                                                           uint lane [[thread_index_in_simdgroup]]) {
    uint row = tile.y * 8u + simdgroup;
    ulong at = ulong(row) * ulong(p.K) + ulong(tile.x * 64u + lane * 2u);
    ushort a = 0u;
    ushort b = 0u;
    if (row < p.M) {
        a = ingot_bf16_bits(x[at]);
        b = ingot_bf16_bits(x[at + 1ul]);
    }
    table[at] = a;
    table[at + 1ul] = b;
    float sum = simd_sum(ingot_from_bf16_bits(a) + ingot_from_bf16_bits(b));
    if (lane == 0u) {
        sums[(ulong(tile.y) * ulong(p.K / 64u) + ulong(tile.x)) * 8ul + ulong(simdgroup)] = sum;
    }
}

// Two codes, exactly, as a pair of bf16.
INGOT_FUNC uint ingot_affine_bf16_pair(uint low, uint high) {
    return as_type<uint>(float(low)) >> 16u | as_type<uint>(float(high));
}

// y[m, n] = sum over groups g of scale * (sum over k in g of code * table[m, k]) + bias * sums[m / 8, g, m % 8]
//
// Word c of the four that a row has for 32 columns holds the codes of columns 4 c to 4 c + 3 and 16 + 4 c to 16 + 4 c + 3, the even ones
// in its low half. A simdgroup takes 16 rows of weights. The sum of a group is on simdgroup matrices, whose products are exact;
// an element adds the groups up in order.
//
// Slots: 0 table, 1 sums, 2 codes u32 [N / 64, K / 32, 64, 4], 3 scales (low) and biases (high), bf16 pairs [N / 64, K / 64, 64],
//        4 y f32 [M, N], 5 M, N, K, 64.
// Geometry: N / 64 x ceil(M / 8) threadgroups of 128 threads.
// Threadgroup memory: 10,240 bytes.
kernel void qmm_affine_t_packed_simd4_b4_gs64_bf16(device const bfloat* table [[buffer(0)]],
                                                   device const float* sums [[buffer(1)]],
                                                   device const uint4* codes [[buffer(2)]],
                                                   device const uint* metadata [[buffer(3)]],
                                                   device float* y [[buffer(4)]],
                                                   constant ingot_affine_shape& p [[buffer(5)]],
                                                   uint2 tile [[threadgroup_position_in_grid]],
                                                   uint simdgroup [[simdgroup_index_in_threadgroup]],
                                                   uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint all_codes[4 * 512];  // 16 rows by 64 bf16 for each simdgroup
    threadgroup float all_sums[4 * 128];  // 8 by 16
    threadgroup uint* pairs = all_codes + simdgroup * 512u;
    threadgroup bfloat* block = (threadgroup bfloat*)pairs;
    threadgroup float* dots = all_sums + simdgroup * 128u;
    uint groups = p.K / 64u;
    uint col = lane % 16u;
    uint half_group = lane / 16u;
    uint col_in_tile = simdgroup * 16u + col;
    device const bfloat* rows = table + ulong(tile.y) * 8ul * ulong(p.K);
    float total[4];
#pragma unroll
    for (uint j = 0u; j < 4u; j++) {
        total[j] = 0.0f;
    }
    for (uint g = 0u; g < groups; g++) {
        uint4 words = codes[(ulong(tile.x) * ulong(groups * 2u) + ulong(g * 2u + half_group)) * 64ul + ulong(col_in_tile)];
#pragma unroll
        for (uint c = 0u; c < 4u; c++) {
            uint w = words[c];
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                uint both = w >> 4u * j;
                pairs[col * 32u + half_group * 16u + j / 2u * 8u + c * 2u + j % 2u] = ingot_affine_bf16_pair(both & 15u, both >> 16u & 15u);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_float8x8 sum[2];
        sum[0] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        sum[1] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma unroll
        for (uint k = 0u; k < 64u; k += 8u) {
            simdgroup_bfloat8x8 mx;
            simdgroup_load(mx, rows + ulong(g * 64u + k), ulong(p.K), ulong2(0ul, 0ul), false);
#pragma unroll
            for (uint j = 0u; j < 2u; j++) {
                simdgroup_bfloat8x8 mw;
                simdgroup_load(mw, block + j * 512u + k, 64ul, ulong2(0ul, 0ul), true);
                simdgroup_multiply_accumulate(sum[j], mx, mw, sum[j]);
            }
        }
        simdgroup_store(sum[0], dots, 16ul);
        simdgroup_store(sum[1], dots + 8, 16ul);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        uint meta = metadata[(ulong(tile.x) * ulong(groups) + ulong(g)) * 64ul + ulong(col_in_tile)];
        float scale = as_type<float>(meta << 16u);
        float bias = as_type<float>(meta & 0xffff0000u);
        device const float* group_sums = sums + (ulong(tile.y) * ulong(groups) + ulong(g)) * 8ul;
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            uint r = half_group + 2u * j;
            total[j] = fma(scale, dots[r * 16u + col], fma(bias, group_sums[r], total[j]));
        }
    }
#pragma unroll
    for (uint j = 0u; j < 4u; j++) {
        uint m = tile.y * 8u + half_group + 2u * j;
        if (m < p.M) {
            y[ulong(m) * ulong(p.N) + ulong(tile.x * 64u + col_in_tile)] = total[j];
        }
    }
}
