// Per-head biases, RMS normalisation and rotary position embedding of one attention layer's queries, keys and values.

#ifndef INGOT_QKV_ROPE_H
#define INGOT_QKV_ROPE_H

#include "common.h"

#define INGOT_ROPE_GROUP_ROWS 8u    // head rows of a threadgroup: one simdgroup each

INGOT_FUNC void ingot_cache_store(device float* cache, ulong at, float x) { cache[at] = x; }
INGOT_FUNC void ingot_cache_store(device half* cache, ulong at, float x) { cache[at] = half(x); }
INGOT_FUNC void ingot_cache_store(device bfloat* cache, ulong at, float x) { cache[at] = bfloat(x); }

// Which elements turn together, of y[0] ... y[D - 1] and the pairs p < rotary_dim / 2.
#define INGOT_ROPE_HALVES 0u            // p and p + D / 2
#define INGOT_ROPE_ROTARY_HALVES 1u     // p and p + rotary_dim / 2
#define INGOT_ROPE_NEIGHBOURS 2u        // 2 p and 2 p + 1

// Operands that a call may have or not.
#define INGOT_ROPE_Q_WEIGHT 1u
#define INGOT_ROPE_K_WEIGHT 2u
#define INGOT_ROPE_Q_BIAS 4u
#define INGOT_ROPE_K_BIAS 8u
#define INGOT_ROPE_V_BIAS 16u

// What not all models have.
struct ingot_rope_options {
    device const float* q_bias;    // [Hq, D]
    device const float* k_bias;    // [Hkv, D]
    device const float* v_bias;    // [Hkv, D]
    uint operands;                 // INGOT_ROPE_Q_WEIGHT and so on: those that there are
    uint pairing;
    float factor;                  // of cos and sin
};

// Both norms, no biases, halves, and angles as they are.
INGOT_FUNC ingot_rope_options ingot_rope_plain(device const float* any) {
    ingot_rope_options o;
    o.q_bias = any;
    o.k_bias = any;
    o.v_bias = any;
    o.operands = INGOT_ROPE_Q_WEIGHT | INGOT_ROPE_K_WEIGHT;
    o.pairing = INGOT_ROPE_HALVES;
    o.factor = 1.0f;
    return o;
}

// The p-th of the D / 2 pairs of elements. Behind the first rotary_dim / 2 pairs come those of the elements that do not turn.
INGOT_FUNC uint2 ingot_rope_pair(uint p, uint D, uint rotary_dim, uint pairing) {
    if (pairing == INGOT_ROPE_NEIGHBOURS) {
        return uint2(2u * p, 2u * p + 1u);
    }
    uint half_dim = D / 2u;
    if (pairing == INGOT_ROPE_ROTARY_HALVES) {
        uint turning = rotary_dim / 2u;
        return p < turning ? uint2(p, p + turning) : uint2(p + turning, p + half_dim);
    }
    return uint2(p, p + half_dim);
}

// For every position t and head: y = (x + bias) / sqrt(mean((x + bias)^2) + eps) * weight (without a weight, and V if v_norm
// is 0, just x + bias), then for Q and K the rotation of the pairs (a, b) by the angle (first + t) * inv_freq[p],
// p < rotary_dim / 2:
//   (a cos - b sin) factor,  (b cos + a sin) factor
// Q, K and V are rewritten in place; if there are caches, K and V also go to dst_k and dst_v from element `offset` on, which
// must fit. first + T must be at most 2^32. A simdgroup takes the head row; one behind the last does nothing.
template <typename C>
INGOT_FUNC void ingot_qkv_rope(device float* q, device float* k, device float* v, device const float* q_weight,
                               device const float* k_weight, device const float* v_weight, ulong q_rows, ulong kv_rows,
                               uint Hq, uint Hkv, uint D, uint rotary_dim, uint first, float eps, bool caches,
                               device C* dst_k, device C* dst_v, ulong offset, device const float* inv_freq, uint v_norm,
                               ingot_rope_options options, ulong row, uint lane) {
    device float* x = q;
    device const float* weight = q_weight;
    device const float* bias = options.q_bias;
    device C* cache = dst_k;
    uint heads = Hq;
    bool store = false;
    bool norm = (options.operands & INGOT_ROPE_Q_WEIGHT) != 0u;
    bool shift = (options.operands & INGOT_ROPE_Q_BIAS) != 0u;
    bool rotate = true;
    if (row >= q_rows) {
        row -= q_rows;
        store = caches;
        heads = Hkv;
        if (row < kv_rows) {
            x = k;
            weight = k_weight;
            bias = options.k_bias;
            norm = (options.operands & INGOT_ROPE_K_WEIGHT) != 0u;
            shift = (options.operands & INGOT_ROPE_K_BIAS) != 0u;
        } else {
            row -= kv_rows;
            x = v;
            weight = v_weight;
            bias = options.v_bias;
            cache = dst_v;
            norm = v_norm != 0u;
            shift = (options.operands & INGOT_ROPE_V_BIAS) != 0u;
            rotate = false;
        }
    }
    ulong at = row * ulong(D);
    ulong to = offset + at;
    ulong of_head = (row % ulong(heads)) * ulong(D);
    uint half_dim = D / 2u;

    // A lane reads and writes pairs of its own only, so nothing need be ordered between lanes.
    float inverse = 1.0f;
    if (norm) {
        float squares = 0.0f;
        for (uint p = lane; p < half_dim; p += 32u) {
            uint2 pair = ingot_rope_pair(p, D, rotary_dim, options.pairing);
            float a = x[at + ulong(pair.x)];
            float b = x[at + ulong(pair.y)];
            if (shift) {
                a += bias[of_head + ulong(pair.x)];
                b += bias[of_head + ulong(pair.y)];
            }
            squares = fma(a, a, squares);
            squares = fma(b, b, squares);
        }
        squares = simd_sum(squares);
        inverse = precise::rsqrt(squares / float(D) + eps);
    }

    float position = float(first + uint(row / ulong(heads)));
    for (uint p = lane; p < half_dim; p += 32u) {
        uint2 pair = ingot_rope_pair(p, D, rotary_dim, options.pairing);
        ulong low = at + ulong(pair.x);
        ulong high = at + ulong(pair.y);
        float a = x[low];
        float b = x[high];
        if (shift) {
            a += bias[of_head + ulong(pair.x)];
            b += bias[of_head + ulong(pair.y)];
        }
        if (norm) {
            a = a * inverse * weight[pair.x];
            b = b * inverse * weight[pair.y];
        }
        if (rotate && p < rotary_dim / 2u) {
            float angle = position * inv_freq[p];
            float c = precise::cos(angle) * options.factor;
            float s = precise::sin(angle) * options.factor;
            float turned = fma(a, c, -(b * s));
            b = fma(b, c, a * s);
            a = turned;
        }
        x[low] = a;
        x[high] = b;
        if (store) {
            ingot_cache_store(cache, to + ulong(pair.x), a);
            ingot_cache_store(cache, to + ulong(pair.y), b);
        }
    }
}

// Whether `span` elements fit a cache of `capacity` elements from element `offset` on.
INGOT_FUNC bool ingot_store_fits(ulong span, ulong offset, uint capacity) {
    return span <= ulong(capacity) && offset <= ulong(capacity) - span;
}

// Whether the positions first, first + 1, ... of T rows are all 32-bit numbers. T is not 0.
INGOT_FUNC bool ingot_positions_fit(uint first, uint T) { return first <= 0xffffffffu - (T - 1u); }

#endif
