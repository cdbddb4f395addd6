// Products of rows of weights with one to eight vectors, each bit for bit the same whatever the others are.

#ifndef INGOT_ROW_EXACT_H
#define INGOT_ROW_EXACT_H

#include "common.h"
#include "weights.h"

// What all products of a launch share; in elements of f32 but for the last two, which are in bytes.
struct RowExactMvParams {
    uint k;
    uint n;
    uint x_row_stride;
    uint x_batch_stride;
    uint y_row_stride;
    uint y_batch_stride;
    uint tgs_per_batch;
    uint pad;
    ulong w_row_bytes;
    ulong w_batch_bytes;
};

// y[b, j, r] = W[b, r] . x[b, j] for the NR0 rows r of a threadgroup and all j < M.
//
// The runs of a row of weights are dealt out to the threads of the threadgroup in turn. A thread adds up the products of its
// runs in the order of the columns, one fma each; then simd_sum adds those of a simdgroup, and another one the
// sums of the simdgroups, if there are several. So the order depends on k and the number of simdgroups alone: neither on M and j
// nor on NR0 and r.
//
// The last row of a batch stands in for rows past its end, which are not stored.
template <typename W, uint NR0, uint M>
INGOT_FUNC void ingot_row_exact(device const uchar* w, device const float4* x, device float* y,
                                constant RowExactMvParams& p, threadgroup float* partial, uint group, uint thread_index,
                                uint lane, uint simdgroup, uint simdgroups) {
    uint batch = group / p.tgs_per_batch;
    uint row0 = (group - batch * p.tgs_per_batch) * NR0;
    device const uchar* row[NR0];
#pragma unroll
    for (uint r = 0u; r < NR0; r++) {
        row[r] = w + ulong(batch) * p.w_batch_bytes + ulong(min(row0 + r, p.n - 1u)) * p.w_row_bytes;
    }
    device const float4* vector = x + ulong(batch) * ulong(p.x_batch_stride / 4u);
    ulong next = ulong(p.x_row_stride / 4u);
    float sum[NR0][M];
#pragma unroll
    for (uint r = 0u; r < NR0; r++) {
#pragma unroll
        for (uint j = 0u; j < M; j++) {
            sum[r][j] = 0.0f;
        }
    }
    uint runs = p.k / uint(W::values);
    for (uint run = thread_index; run < runs; run += 32u * simdgroups) {
        W at[NR0];
#pragma unroll
        for (uint r = 0u; r < NR0; r++) {
            ingot_seek(at[r], row[r], run);
        }
        device const float4* column = vector + ulong(run) * ulong(W::values / 4);
        for (uint i = 0u; i < uint(W::values / 4); i++) {
            float4 weight[NR0];
#pragma unroll
            for (uint r = 0u; r < NR0; r++) {
                weight[r] = ingot_quad(at[r], i);
            }
#pragma unroll
            for (uint j = 0u; j < M; j++) {
                float4 v = column[ulong(j) * next + ulong(i)];
#pragma unroll
                for (uint r = 0u; r < NR0; r++) {
                    float t = fma(weight[r].x, v.x, sum[r][j]);
                    t = fma(weight[r].y, v.y, t);
                    t = fma(weight[r].z, v.z, t);
                    sum[r][j] = fma(weight[r].w, v.w, t);
                }
            }
        }
    }
    y += ulong(batch) * ulong(p.y_batch_stride) + ulong(row0);
#pragma unroll
    for (uint r = 0u; r < NR0; r++) {
#pragma unroll
        for (uint j = 0u; j < M; j++) {
            float v = simd_sum(sum[r][j]);
            if (lane == 0u) {
                if (simdgroups > 1u) {
                    partial[(r * M + j) * 32u + simdgroup] = v;
                } else if (r < p.n - row0) {
                    y[ulong(j) * ulong(p.y_row_stride) + ulong(r)] = v;
                }
            }
        }
    }
    if (simdgroups == 1u) {
        return;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = simdgroup; i < NR0 * M; i += simdgroups) {
        float v = simd_sum(lane < simdgroups ? partial[i * 32u + lane] : 0.0f);
        uint r = i / M;
        if (lane == 0u && r < p.n - row0) {
            y[ulong(i - r * M) * ulong(p.y_row_stride) + ulong(r)] = v;
        }
    }
}

#endif
