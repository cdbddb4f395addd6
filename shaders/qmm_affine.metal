// Products with matrices in the affine format whose scales and biases are f32, Y [M, N] = X [M, K] W^T; see qmm_affine.h.
//
// Slots of all kernels: 0 x f32 [M, K], 1 codes [N, K], 2 scales f32 [N, K / group_size], 3 biases likewise, 4 y f32 [M, N],
// 5 M, N, K, group_size. codes are bytes, or in the packed kernel u32 words of eight, the lowest four bits first.

#include "common.h"
#include "qmm_affine.h"

// y[m, n] = sum over k of x[m, k] * w[n, k], a thread for each element
//
// The sum is one fma for each k in order.
//
// Slots: see above; any group_size that divides K.
// Geometry: ceil(M / X) x ceil(N / Y) threadgroups of X x Y threads. Threadgroup memory: none.
kernel void qmm_affine_t_f32(device const float* x [[buffer(0)]],
                             device const uchar* codes [[buffer(1)]],
                             device const float* scales [[buffer(2)]],
                             device const float* biases [[buffer(3)]],
                             device float* y [[buffer(4)]],
                             constant ingot_affine_shape& p [[buffer(5)]],
                             uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.M || at.y >= p.N) {
        return;
    }
    device const float* v = x + ulong(at.x) * ulong(p.K);
    device const uchar* row = codes + ulong(at.y) * ulong(p.K);
    ulong group = ulong(at.y) * ulong(p.K / p.group_size);
    float sum = 0.0f;
    for (uint k0 = 0u; k0 < p.K; k0 += p.group_size) {
        float scale = scales[group];
        float bias = biases[group];
        for (uint k = k0; k < k0 + p.group_size; k++) {
            sum = fma(v[k], ingot_affine_weight(row[k], scale, bias), sum);
        }
        group++;
    }
    y[ulong(at.x) * ulong(p.N) + ulong(at.y)] = sum;
}

// y[m, n] = sum over k of x[m, k] * w[n, k], tiles of 16 by 16; the bits of qmm_affine_t_f32
//
// Slots: see above; group_size 32.
// Geometry: ceil(M / 16) x ceil(N / 16) threadgroups of 16 x 16 threads.
// Threadgroup memory: 0, 2,688 bytes: 16 by 32 of x, 16 scales, 16 biases, 16 by 32 codes.
kernel void qmm_affine_t_f32_tiled(device const float* x [[buffer(0)]],
                                   device const uchar* codes [[buffer(1)]],
                                   device const float* scales [[buffer(2)]],
                                   device const float* biases [[buffer(3)]],
                                   device float* y [[buffer(4)]],
                                   constant ingot_affine_shape& p [[buffer(5)]],
                                   threadgroup float* memory [[threadgroup(0)]],
                                   uint2 tile [[threadgroup_position_in_grid]],
                                   uint2 at [[thread_position_in_threadgroup]],
                                   uint tid [[thread_index_in_threadgroup]]) {
    threadgroup float* block_x = memory;
    threadgroup float* block_s = memory + 512;
    threadgroup float* block_b = block_s + 16;
    threadgroup uchar* block_q = (threadgroup uchar*)(block_b + 16);
    uint row0 = tile.x * 16u;
    uint col0 = tile.y * 16u;
    if (row0 >= p.M || col0 >= p.N) {
        return;
    }
    float sum = 0.0f;
    for (uint k0 = 0u; k0 < p.K; k0 += 32u) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // the blocks before have been used
        ingot_affine_stage_x<16u, 32u, 256u>(block_x, x, p.M, p.K, row0, k0, tid);
        for (uint i = tid; i < 512u; i += 256u) {
            uint r = col0 + i / 32u;
            block_q[i] = r < p.N ? codes[ulong(r) * ulong(p.K) + ulong(k0 + i % 32u)] : uchar(0);
        }
        if (tid < 16u) {
            uint r = min(col0 + tid, p.N - 1u);
            ulong group = ulong(r) * ulong(p.K / 32u) + ulong(k0 / 32u);
            block_s[tid] = scales[group];
            block_b[tid] = biases[group];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float scale = block_s[at.y];
        float bias = block_b[at.y];
        for (uint k = 0u; k < 32u; k++) {
            sum = fma(block_x[at.x * 32u + k], ingot_affine_weight(block_q[at.y * 32u + k], scale, bias), sum);
        }
    }
    uint m = row0 + at.x;
    uint n = col0 + at.y;
    if (m < p.M && n < p.N) {
        y[ulong(m) * ulong(p.N) + ulong(n)] = sum;
    }
}

// y[m, n] = sum over k of x[m, k] * w[n, k], tiles of 8 by 8 on a simdgroup matrix
//
// Slots: see above; group_size 32.
// Geometry: ceil(M / 8) x ceil(N / 8) threadgroups of 32 threads.
// Threadgroup memory: 0, 2,048 bytes: 8 by 32 of x and of w.
kernel void qmm_affine_t_f32_simd(device const float* x [[buffer(0)]],
                                  device const uchar* codes [[buffer(1)]],
                                  device const float* scales [[buffer(2)]],
                                  device const float* biases [[buffer(3)]],
                                  device float* y [[buffer(4)]],
                                  constant ingot_affine_shape& p [[buffer(5)]],
                                  threadgroup float* memory [[threadgroup(0)]],
                                  uint2 tile [[threadgroup_position_in_grid]],
                                  uint tid [[thread_index_in_threadgroup]],
                                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_affine_tile<1, 1, 32>(x, codes, scales, biases, y, p, memory, tile, tid, simdgroup);
}

// y[m, n] = sum over k of x[m, k] * w[n, k], tiles of 32 by 32, a quarter for each of four simdgroups
//
// Slots: see above; group_size 32.
// Geometry: ceil(M / 32) x ceil(N / 32) threadgroups of 128 threads.
// Threadgroup memory: 0, 8,192 bytes: 32 by 32 of x and of w.
kernel void qmm_affine_t_f32_simd4(device const float* x [[buffer(0)]],
                                   device const uchar* codes [[buffer(1)]],
                                   device const float* scales [[buffer(2)]],
                                   device const float* biases [[buffer(3)]],
                                   device float* y [[buffer(4)]],
                                   constant ingot_affine_shape& p [[buffer(5)]],
                                   threadgroup float* memory [[threadgroup(0)]],
                                   uint2 tile [[threadgroup_position_in_grid]],
                                   uint tid [[thread_index_in_threadgroup]],
                                   uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_affine_tile<2, 2, 32>(x, codes, scales, biases, y, p, memory, tile, tid, simdgroup);
}

// As qmm_affine_t_f32_simd4
//
// Slots: see above; group_size 64.
// Geometry: ceil(M / 32) x ceil(N / 32) threadgroups of 128 threads.
// Threadgroup memory: 0, 16,384 bytes: 32 by 64 of x and of w.
kernel void qmm_affine_t_f32_simd4_gs64(device const float* x [[buffer(0)]],
                                        device const uchar* codes [[buffer(1)]],
                                        device const float* scales [[buffer(2)]],
                                        device const float* biases [[buffer(3)]],
                                        device float* y [[buffer(4)]],
                                        constant ingot_affine_shape& p [[buffer(5)]],
                                        threadgroup float* memory [[threadgroup(0)]],
                                        uint2 tile [[threadgroup_position_in_grid]],
                                        uint tid [[thread_index_in_threadgroup]],
                                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_affine_tile<2, 2, 64>(x, codes, scales, biases, y, p, memory, tile, tid, simdgroup);
}

// As qmm_affine_t_f32_simd4, and with its bits, from packed codes
//
// Slots: see above; codes in words, group_size 32.
// Geometry: ceil(M / 32) x ceil(N / 32) threadgroups of 128 threads.
// Threadgroup memory: 0, 8,192 bytes: 32 by 32 of x and of w.
kernel void qmm_affine_t_packed_simd4_b4(device const float* x [[buffer(0)]],
                                         device const uint* codes [[buffer(1)]],
                                         device const float* scales [[buffer(2)]],
                                         device const float* biases [[buffer(3)]],
                                         device float* y [[buffer(4)]],
                                         constant ingot_affine_shape& p [[buffer(5)]],
                                         threadgroup float* memory [[threadgroup(0)]],
                                         uint2 tile [[threadgroup_position_in_grid]],
                                         uint tid [[thread_index_in_threadgroup]],
                                         uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ingot_affine_tile<2, 2, 32>(x, codes, scales, biases, y, p, memory, tile, tid, simdgroup);
}
