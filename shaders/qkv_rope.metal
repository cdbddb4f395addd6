// Per-head RMS normalisation, rotary position embedding and the key-value cache store of one attention layer.

#include "common.h"

#define INGOT_ROPE_GROUP_ROWS 8u    // head rows of a threadgroup: one simdgroup each

// For every position t and head: y = x / sqrt(mean(x^2) + eps) * weight (V: only if v_norm is not 0), then for Q and K
// the rotation of the pairs (y[p], y[p + D/2]), p < rotary_dim / 2, by the angle (pos + t) * inv_freq[p]:
//   y[p] cos - y[p + D/2] sin,  y[p + D/2] cos + y[p] sin
// Q, K and V are rewritten in place; K and V also go to dst_k and dst_v from element kv_offset on.
//
// pos and kv_offset are read on the device. A store that would not fit the capacity, or positions beyond 32 bits, make the
// whole launch a no-op: Q, K and V stay as they were.
//
// Slots: 0 q f32 [T, Hq, D], 1 k f32 [T, Hkv, D], 2 v f32 [T, Hkv, D], 3 q_weight f32 [D], 4 k_weight f32 [D],
//        5 v_weight f32 [D] (bound but not read if v_norm is 0), 6 T, 7 Hq, 8 Hkv, 9 D (even), 10 rotary_dim (even, <= D),
//        11 pos u32 (device), 13 eps f32, 14 dst_k f32 [capacity], 15 dst_v f32 [capacity], 16 kv_offset u32 (device),
//        17 capacity in elements, 18 inv_freq f32 [rotary_dim / 2], from the host: a device pow is some ulps off, and the
//        position multiplies them; 19 v_norm.
// Geometry: one simdgroup of 32 lanes per head row, eight rows per threadgroup of 256 threads,
//           ceil(T (Hq + 2 Hkv) / 8) threadgroups.
// Threadgroup memory: none.
// Sources: RoPE, Su et al., arXiv:2104.09864, with the halves paired as in GPT-NeoX and Gemma; query and key norms as in
// Gemma 3, arXiv:2503.19786.
kernel void rms_qkv_rope_kv_store(device float* q [[buffer(0)]],
                                  device float* k [[buffer(1)]],
                                  device float* v [[buffer(2)]],
                                  device const float* q_weight [[buffer(3)]],
                                  device const float* k_weight [[buffer(4)]],
                                  device const float* v_weight [[buffer(5)]],
                                  constant uint& T [[buffer(6)]],
                                  constant uint& Hq [[buffer(7)]],
                                  constant uint& Hkv [[buffer(8)]],
                                  constant uint& D [[buffer(9)]],
                                  constant uint& rotary_dim [[buffer(10)]],
                                  device const uint* pos [[buffer(11)]],
                                  constant float& eps [[buffer(13)]],
                                  device float* dst_k [[buffer(14)]],
                                  device float* dst_v [[buffer(15)]],
                                  device const uint* kv_offset [[buffer(16)]],
                                  constant uint& capacity [[buffer(17)]],
                                  device const float* inv_freq [[buffer(18)]],
                                  constant uint& v_norm [[buffer(19)]],
                                  uint tile [[threadgroup_position_in_grid]],
                                  uint lane [[thread_index_in_simdgroup]],
                                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    if (row >= q_rows + 2ul * kv_rows) {
        return;
    }
    ulong span = kv_rows * ulong(D);
    ulong offset = ulong(kv_offset[0]);
    if (span > ulong(capacity) || offset > ulong(capacity) - span) {
        return;
    }
    uint first = pos[0];
    if (first > 0xffffffffu - (T - 1u)) {
        return;
    }

    device float* x = q;
    device const float* weight = q_weight;
    device float* cache = dst_k;
    uint heads = Hq;
    bool store = false;
    bool norm = true;
    bool rotate = true;
    if (row >= q_rows) {
        row -= q_rows;
        store = true;
        heads = Hkv;
        if (row < kv_rows) {
            x = k;
            weight = k_weight;
        } else {
            row -= kv_rows;
            x = v;
            weight = v_weight;
            cache = dst_v;
            norm = v_norm != 0u;
            rotate = false;
        }
    }
    ulong at = row * ulong(D);
    ulong to = offset + at;
    uint half_dim = D / 2u;

    float inverse = 1.0f;
    if (norm) {
        float squares = 0.0f;
        for (uint p = lane; p < half_dim; p += 32u) {
            float a = x[at + ulong(p)];
            float b = x[at + ulong(p) + ulong(half_dim)];
            squares = fma(a, a, squares);
            squares = fma(b, b, squares);
        }
        squares = simd_sum(squares);
        inverse = precise::rsqrt(squares / float(D) + eps);
    }

    float position = float(first + uint(row / ulong(heads)));
    for (uint p = lane; p < half_dim; p += 32u) {
        ulong low = at + ulong(p);
        ulong high = low + ulong(half_dim);
        float a = x[low];
        float b = x[high];
        if (norm) {
            a = a * inverse * weight[p];
            b = b * inverse * weight[p + half_dim];
        }
        if (rotate && p < rotary_dim / 2u) {
            float angle = position * inv_freq[p];
            float c = precise::cos(angle);
            float s = precise::sin(angle);
            float turned = fma(a, c, -(b * s));
            b = fma(b, c, a * s);
            a = turned;
        }
        x[low] = a;
        x[high] = b;
        if (store) {
            cache[to + ulong(p)] = a;
            cache[to + ulong(p) + ulong(half_dim)] = b;
        }
    }
}
