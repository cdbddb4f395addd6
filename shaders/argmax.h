// The greatest finite number of a threadgroup and its index.

#ifndef INGOT_ARGMAX_H
#define INGOT_ARGMAX_H

#include "common.h"
#include "reduce.h"

#define INGOT_NOTHING 0xffffffffu

// Takes x, whose index is id, if it is greater than the best so far or as great with a lower index. x is finite. Before the
// first number best is -FLT_MAX and at is INGOT_NOTHING, which every index is below.
INGOT_FUNC void ingot_argmax_take(float x, uint id, thread float* best, thread uint* at) {
    if (x > *best || (x == *best && id < *at)) {
        *best = x;
        *at = id;
    }
}

// The best of the simdgroup in every lane.
INGOT_FUNC void ingot_argmax_simdgroup(thread float* best, thread uint* at) {
#pragma unroll
    for (uint m = 16u; m > 0u; m /= 2u) {
        float other = simd_shuffle_xor(*best, ushort(m));
        uint other_at = simd_shuffle_xor(*at, ushort(m));
        ingot_argmax_take(other, other_at, best, at);
    }
}

// The best of the threadgroup, in every lane of its first simdgroup. All threads call it, in whole simdgroups of 32. values
// and indices have INGOT_MAX_SIMDGROUPS elements that nobody else uses.
INGOT_FUNC void ingot_argmax_group(thread float* best, thread uint* at, threadgroup float* values, threadgroup uint* indices,
                                   uint lane, uint simdgroup, uint simdgroups) {
    ingot_argmax_simdgroup(best, at);
    if (lane == 0u) {
        values[simdgroup] = *best;
        indices[simdgroup] = *at;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    *best = -FLT_MAX;
    *at = INGOT_NOTHING;
    if (lane < simdgroups) {
        *best = values[lane];
        *at = indices[lane];
    }
    ingot_argmax_simdgroup(best, at);
}

#endif
