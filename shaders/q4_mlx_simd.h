// What the kernels with a simdgroup for each four rows do after the sums, for both layouts of a bank; see q4_mlx.h.

#ifndef INGOT_Q4_MLX_SIMD_H
#define INGOT_Q4_MLX_SIMD_H

#include "common.h"
#include "gelu.h"
#include "q4_mlx.h"

// y[r] = w[r] . x for the four rows of a simdgroup
template <bool I4>
INGOT_FUNC void ingot_q4_gemv(device const uint2* packed, device const bfloat2* sb, device const bfloat4* x,
                              device float* y, uint rows, uint cols, uint group_size, uint tile, uint lane,
                              uint simdgroup) {
    uint row0 = tile * INGOT_Q4_GROUP_ROWS + simdgroup * uint(INGOT_Q4_ROWS);
    if (row0 >= rows) {
        return;
    }
    float sum[INGOT_Q4_ROWS];
    ingot_q4_rows<I4>(packed, sb, x, rows, cols, group_size, row0, lane, sum);
    if (lane == 0u) {
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            if (r < rows - row0) {
                y[ulong(row0) + ulong(r)] = sum[r];
            }
        }
    }
}

// y[r] = resid[r] + w[r] . x; resid may be y
template <bool I4>
INGOT_FUNC void ingot_q4_gemv_add(device const uint2* packed, device const bfloat2* sb, device const bfloat4* x,
                                  device float* y, uint rows, uint cols, uint group_size, device const float* resid,
                                  uint tile, uint lane, uint simdgroup) {
    uint row0 = tile * INGOT_Q4_GROUP_ROWS + simdgroup * uint(INGOT_Q4_ROWS);
    if (row0 >= rows) {
        return;
    }
    float sum[INGOT_Q4_ROWS];
    ingot_q4_rows<I4>(packed, sb, x, rows, cols, group_size, row0, lane, sum);
    if (lane == 0u) {
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            if (r < rows - row0) {
                ulong at = ulong(row0) + ulong(r);
                y[at] = resid[at] + sum[r];
            }
        }
    }
}

// mid[r] = gelu(gate[r] . x) * (up[r] . x), stored as f32 or, if mid_bf16 is not 0, as bf16
template <bool I4>
INGOT_FUNC void ingot_q4_gate_up(device const uint2* gate_packed, device const bfloat2* gate_sb,
                                 device const uint2* up_packed, device const bfloat2* up_sb, device const bfloat4* x,
                                 device bfloat* mid, uint rows, uint cols, uint group_size, uint mid_bf16, uint tile,
                                 uint lane, uint simdgroup) {
    uint row0 = tile * INGOT_Q4_GROUP_ROWS + simdgroup * uint(INGOT_Q4_ROWS);
    if (row0 >= rows) {
        return;
    }
    float gate[INGOT_Q4_ROWS];
    float up[INGOT_Q4_ROWS];
    ingot_q4_rows<I4>(gate_packed, gate_sb, x, rows, cols, group_size, row0, lane, gate);
    ingot_q4_rows<I4>(up_packed, up_sb, x, rows, cols, group_size, row0, lane, up);
    if (lane == 0u) {
        device float* mid32 = (device float*)mid;
#pragma unroll
        for (uint r = 0u; r < uint(INGOT_Q4_ROWS); r++) {
            if (r < rows - row0) {
                float value = ingot_gelu(gate[r]) * up[r];
                ulong at = ulong(row0) + ulong(r);
                if (mid_bf16 != 0u) {
                    mid[at] = bfloat(value);
                } else {
                    mid32[at] = value;
                }
            }
        }
    }
}

#endif
