// The middle of a gated feed-forward block (Shazeer, arXiv:2002.05202): the activated gate times up.

#include "common.h"
#include "convert.h"
#include "gelu.h"
#include "silu.h"

// out[i] = silu(gate[i]) * up[i], i < n
//
// Slots: 0 gate f32, 1 up f32, 2 out f32 (may be gate or up itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void mlp_silu(device const float* gate [[buffer(0)]],
                     device const float* up [[buffer(1)]],
                     device float* out [[buffer(2)]],
                     constant uint& n [[buffer(3)]],
                     uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_silu(gate[gid]) * up[gid];
}

// out[i] = bf16(silu(gate[i]) * up[i]), i < n
//
// Slots: 0 gate f32, 1 up f32, 2 out bf16, 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void mlp_silu_bf16(device const float* gate [[buffer(0)]],
                          device const float* up [[buffer(1)]],
                          device ushort* out [[buffer(2)]],
                          constant uint& n [[buffer(3)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_bf16_bits(ingot_silu(gate[gid]) * up[gid]);
}

// out[i] = gelu(gate[i]) * up[i], i < n, the tanh form of GELU
//
// Slots: 0 gate f32, 1 up f32, 2 out f32 (may be gate or up itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void mlp_gelu_tanh(device const float* gate [[buffer(0)]],
                          device const float* up [[buffer(1)]],
                          device float* out [[buffer(2)]],
                          constant uint& n [[buffer(3)]],
                          uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_gelu(gate[gid]) * up[gid];
}

// out[i] = bf16(gelu(gate[i]) * up[i]), i < n, the tanh form of GELU
//
// Slots: 0 gate f32, 1 up f32, 2 out bf16, 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void mlp_gelu_tanh_bf16(device const float* gate [[buffer(0)]],
                               device const float* up [[buffer(1)]],
                               device ushort* out [[buffer(2)]],
                               constant uint& n [[buffer(3)]],
                               uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_bf16_bits(ingot_gelu(gate[gid]) * up[gid]);
}
