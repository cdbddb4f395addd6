// Operations on single elements: scaling, adding, capping.

#include "common.h"
#include "convert.h"
#include "softcap.h"

// x[i] = scale * x[i], i < n
//
// Slots: 0 x f32 (in and out), 1 scale f32, 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void scale_f32_inplace(device float* x [[buffer(0)]],
                              constant float& scale [[buffer(1)]],
                              constant uint& n [[buffer(2)]],
                              uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    x[gid] = scale * x[gid];
}

// out[i] = a[i] + b[i], i < n
//
// Slots: 0 a f32, 1 b f32, 2 out f32 (may be a or b itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void add_f32(device const float* a [[buffer(0)]],
                    device const float* b [[buffer(1)]],
                    device float* out [[buffer(2)]],
                    constant uint& n [[buffer(3)]],
                    uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = a[gid] + b[gid];
}

// As add_f32, of f16: the sum in f32, rounded to f16.
//
// Slots: 0 a f16, 1 b f16, 2 out f16 (may be a or b itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void add_f16(device const half* a [[buffer(0)]],
                    device const half* b [[buffer(1)]],
                    device half* out [[buffer(2)]],
                    constant uint& n [[buffer(3)]],
                    uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = half(float(a[gid]) + float(b[gid]));
}

// As add_f32, of bf16: the sum in f32, rounded to bf16.
//
// Slots: 0 a bf16, 1 b bf16, 2 out bf16 (may be a or b itself), 3 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void add_bf16(device const ushort* a [[buffer(0)]],
                     device const ushort* b [[buffer(1)]],
                     device ushort* out [[buffer(2)]],
                     constant uint& n [[buffer(3)]],
                     uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    out[gid] = ingot_bf16_bits(ingot_from_bf16_bits(a[gid]) + ingot_from_bf16_bits(b[gid]));
}

// out[r, c] = x[r, c] + bias[c], r < rows, c < cols
//
// Slots: 0 x f32 [rows, cols], 1 bias f32 [cols], 2 out f32 (may be x itself), 3 rows, 4 cols.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void add_bias_f32(device const float* x [[buffer(0)]],
                         device const float* bias [[buffer(1)]],
                         device float* out [[buffer(2)]],
                         constant uint& rows [[buffer(3)]],
                         constant uint& cols [[buffer(4)]],
                         uint gid [[thread_position_in_grid]]) {
    if (ulong(gid) >= ulong(rows) * ulong(cols)) {
        return;
    }
    out[gid] = x[gid] + bias[gid % cols];
}

// logits[i] = softcap(logits[i]), cap * tanh(x / cap), i < n
//
// Slots: 0 logits f32 (in and out), 1 softcap f32 (device; not positive or not finite: no cap), 2 n.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void softcap_logits(device float* logits [[buffer(0)]],
                           device const float* softcap [[buffer(1)]],
                           constant uint& n [[buffer(2)]],
                           uint gid [[thread_position_in_grid]]) {
    if (gid >= n) {
        return;
    }
    logits[gid] = ingot_softcap(logits[gid], softcap[0]);
}
