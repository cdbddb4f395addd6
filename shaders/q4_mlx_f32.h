// Dot products of MLX 4-bit affine weights with an f32 vector; see q4_mlx.h for the format.

#ifndef INGOT_Q4_MLX_F32_H
#define INGOT_Q4_MLX_F32_H

#include "common.h"

// Columns of x that a threadgroup holds at once: a multiple of every group size.
#define INGOT_Q4_X_TILE 2048u

// Adds to dot the sum of code * x over the eight codes of w, and to total that of x.
template <typename P>
INGOT_FUNC void ingot_q4_dot8(uint w, P x, thread float& dot, thread float& total) {
#pragma unroll
    for (uint i = 0u; i < 8u; i++) {
        float v = x[i];
        dot = fma(v, float((w >> (4u * i)) & 15u), dot);
        total += v;
    }
}

// Columns base to base + n of x into tile. All threads of the threadgroup call it; before, tile may be in use still.
INGOT_FUNC void ingot_q4_stage(device const float* x, uint base, uint n, threadgroup float* tile, uint thread_index,
                               uint threads) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < n; i += threads) {
        tile[i] = x[ulong(base) + ulong(i)];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

#endif
