// Casts among f32, f16 and bf16, and copies of bits.
//
// Round to nearest, ties to even; beyond the largest finite value the result is infinite. NaN stays NaN.

#include "common.h"
#include "convert.h"

// dst[i] = f16(src[i]), i < n: to nearest, ties to even. From 65,520 on the result is infinite.
//
// Slots: 0 src f32, 1 dst f16, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_f32_f16(device const float* src [[buffer(0)]],
                         device half* dst [[buffer(1)]],
                         constant uint& n [[buffer(2)]],
                         uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = half(src[gid]);
}

// dst[i] = bf16(src[i]), i < n: to nearest, ties to even.
//
// Slots: 0 src f32, 1 dst bf16, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_f32_bf16(device const float* src [[buffer(0)]],
                          device ushort* dst [[buffer(1)]],
                          constant uint& n [[buffer(2)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = ingot_bf16_bits(src[gid]);
}

// dst[i] = src[i], i < n: exact.
//
// Slots: 0 src f16, 1 dst f32, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_f16_f32(device const half* src [[buffer(0)]],
                         device float* dst [[buffer(1)]],
                         constant uint& n [[buffer(2)]],
                         uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = float(src[gid]);
}

// dst[i] = src[i], i < n: exact.
//
// Slots: 0 src bf16, 1 dst f32, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_bf16_f32(device const ushort* src [[buffer(0)]],
                          device float* dst [[buffer(1)]],
                          constant uint& n [[buffer(2)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = ingot_from_bf16_bits(src[gid]);
}

// dst[i] = bf16(src[i]), i < n: to nearest, ties to even; f16 has three bits more.
//
// Slots: 0 src f16, 1 dst bf16, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_f16_bf16(device const half* src [[buffer(0)]],
                          device ushort* dst [[buffer(1)]],
                          constant uint& n [[buffer(2)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = ingot_bf16_bits(float(src[gid]));
}

// dst[i] = f16(src[i]), i < n: to nearest, ties to even. From 65,536 on the result is infinite, below 2^-25 it is zero.
//
// Slots: 0 src bf16, 1 dst f16, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void cast_bf16_f16(device const ushort* src [[buffer(0)]],
                          device half* dst [[buffer(1)]],
                          constant uint& n [[buffer(2)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = half(ingot_from_bf16_bits(src[gid]));
}

// dst[i] = src[i], i < n: the bits, whatever they mean.
//
// Slots: 0 src [n], 32 bits each, 1 dst [n], 32 bits each, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void copy_b32(device const uint* src [[buffer(0)]],
                     device uint* dst [[buffer(1)]],
                     constant uint& n [[buffer(2)]],
                     uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = src[gid];
}

// dst[i] = src[i], i < n: the bits, whatever they mean.
//
// Slots: 0 src [n], 16 bits each, 1 dst [n], 16 bits each, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void copy_b16(device const ushort* src [[buffer(0)]],
                     device ushort* dst [[buffer(1)]],
                     constant uint& n [[buffer(2)]],
                     uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    dst[gid] = src[gid];
}
