// Sums over a threadgroup, for kernels that give each row a threadgroup.

#ifndef INGOT_REDUCE_H
#define INGOT_REDUCE_H

#include "common.h"

// Most simdgroups of a threadgroup: 1,024 threads of 32 lanes.
#define INGOT_MAX_SIMDGROUPS 32

// The sum of v over all threads, in every thread. All threads of the threadgroup call it, in whole simdgroups of 32.
// scratch has INGOT_MAX_SIMDGROUPS floats that nobody else uses; a second sum needs a second scratch.
INGOT_FUNC float ingot_row_sum(float v, threadgroup float* scratch, uint lane, uint simdgroup, uint simdgroups) {
    float sum = simd_sum(v);
    if (simdgroups > 1u) {
        if (lane == 0u) {
            scratch[simdgroup] = sum;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float part = 0.0f;
        if (lane < simdgroups) {
            part = scratch[lane];
        }
        sum = simd_sum(part);
    }
    return sum;
}

#endif
