// Per-head RMS normalisation and rotary position embedding of one attention layer's queries, keys and values.

#ifndef INGOT_QKV_ROPE_H
#define INGOT_QKV_ROPE_H

#include "common.h"

#define INGOT_ROPE_GROUP_ROWS 8u    // head rows of a threadgroup: one simdgroup each

INGOT_FUNC void ingot_cache_store(device float* cache, ulong at, float x) { cache[at] = x; }
INGOT_FUNC void ingot_cache_store(device half* cache, ulong at, float x) { cache[at] = half(x); }
INGOT_FUNC void ingot_cache_store(device bfloat* cache, ulong at, float x) { cache[at] = bfloat(x); }

// For every position t and head: y = x / sqrt(mean(x^2) + eps) * weight (V: only if v_norm is not 0), then for Q and K
// the rotation of the pairs (y[p], y[p + D/2]), p < rotary_dim / 2, by the angle (first + t) * inv_freq[p]:
//   y[p] cos - y[p + D/2] sin,  y[p + D/2] cos + y[p] sin
// Q, K and V are rewritten in place; if there are caches, K and V also go to dst_k and dst_v from element `offset` on, which
// must fit. first + T must be at most 2^32. A simdgroup takes the head row; one behind the last does nothing.
template <typename C>
INGOT_FUNC void ingot_qkv_rope(device float* q, device float* k, device float* v, device const float* q_weight,
                               device const float* k_weight, device const float* v_weight, ulong q_rows, ulong kv_rows,
                               uint Hq, uint Hkv, uint D, uint rotary_dim, uint first, float eps, bool caches,
                               device C* dst_k, device C* dst_v, ulong offset, device const float* inv_freq, uint v_norm,
                               ulong row, uint lane) {
    device float* x = q;
    device const float* weight = q_weight;
    device C* cache = dst_k;
    uint heads = Hq;
    bool store = false;
    bool norm = true;
    bool rotate = true;
    if (row >= q_rows) {
        row -= q_rows;
        store = caches;
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
            ingot_cache_store(cache, to + ulong(p), a);
            ingot_cache_store(cache, to + ulong(p) + ulong(half_dim), b);
        }
    }
}

// Whether the positions first, first + 1, ... of T rows are all 32-bit numbers. T is not 0.
INGOT_FUNC bool ingot_positions_fit(uint first, uint T) { return first <= 0xffffffffu - (T - 1u); }

#endif
