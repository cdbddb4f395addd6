// Attention of a single query row, split over the key-value cache: FlashDecoding.

#ifndef INGOT_ATTN_DECODE_H
#define INGOT_ATTN_DECODE_H

#include "attn_kv.h"
#include "softcap.h"

// The partial result of one head over keys start to start + C - 1: with s the scores of those that are seen,
//   part[0] = m = max s, part[1] = sum of e^(s - m), part[2 + i] = sum of e^(s - m) v[i]
// If none is seen, part[0] = -FLT_MAX, part[1] = 0, and the rest is not written.
//
// D: head dimension. C: keys of a chunk. R: lanes of a key, so 32 / R keys at a time. KV: four elements of a cache. A lane
// owns the float4s dl, dl + R, ... of the head dimension, dl = lane % R. Each group of R lanes walks keys of its own with an
// online softmax; the groups are merged at the end, always in the same order.
template <uint D, uint C, uint R, typename KV>
INGOT_FUNC void ingot_attn_decode(device const float4* q, device const KV* k, device const KV* v, device float* part,
                                  uint start, uint end, uint first, ulong row, ulong at, ulong stride, float scale,
                                  float softcap, uint lane) {
    const uint quads = D / 4u / R;
    const uint keys = 32u / R;
    uint dl = lane % R;
    uint mine = lane / R;

    float query[D / R];
    float sum[D / R];
#pragma unroll
    for (uint i = 0u; i < quads; i++) {
        float4 value = q[row * ulong(D / 4u) + ulong(dl + i * R)];
        query[4u * i] = value.x;
        query[4u * i + 1u] = value.y;
        query[4u * i + 2u] = value.z;
        query[4u * i + 3u] = value.w;
        sum[4u * i] = 0.0f;
        sum[4u * i + 1u] = 0.0f;
        sum[4u * i + 2u] = 0.0f;
        sum[4u * i + 3u] = 0.0f;
    }
    // The keys of this chunk that are seen.
    uint from = first > start ? first : start;
    uint to = end - start < C ? end : start + C;
    at += ulong(from + mine) * stride + ulong(dl);
    float most = -FLT_MAX;
    float weight = 0.0f;
    for (uint base = from; base < to; base += keys) {
        bool live = mine < to - base;
        float score = 0.0f;
        if (live) {
#pragma unroll
            for (uint i = 0u; i < quads; i++) {
                float4 value = ingot_kv4(k[at + ulong(i * R)]);
                score = fma(query[4u * i], value.x, score);
                score = fma(query[4u * i + 1u], value.y, score);
                score = fma(query[4u * i + 2u], value.z, score);
                score = fma(query[4u * i + 3u], value.w, score);
            }
        }
#pragma unroll
        for (uint m = R / 2u; m > 0u; m /= 2u) {
            score += simd_shuffle_xor(score, ushort(m));
        }
        if (live) {
            score = ingot_softcap(score * scale, softcap);
            float most_now = fmax(most, score);
            float keep = precise::exp(most - most_now);
            float p = precise::exp(score - most_now);
            weight = fma(weight, keep, p);
            most = most_now;
#pragma unroll
            for (uint i = 0u; i < quads; i++) {
                float4 value = ingot_kv4(v[at + ulong(i * R)]);
                sum[4u * i] = fma(p, value.x, sum[4u * i] * keep);
                sum[4u * i + 1u] = fma(p, value.y, sum[4u * i + 1u] * keep);
                sum[4u * i + 2u] = fma(p, value.z, sum[4u * i + 2u] * keep);
                sum[4u * i + 3u] = fma(p, value.w, sum[4u * i + 3u] * keep);
            }
        }
        at += ulong(keys) * stride;
    }

#pragma unroll
    for (uint m = R; m < 32u; m *= 2u) {
        float other = simd_shuffle_xor(most, ushort(m));
        float other_weight = simd_shuffle_xor(weight, ushort(m));
        float most_now = fmax(most, other);
        float keep = precise::exp(most - most_now);
        float other_keep = precise::exp(other - most_now);
        weight = fma(weight, keep, other_weight * other_keep);
        most = most_now;
#pragma unroll
        for (uint i = 0u; i < D / R; i++) {
            sum[i] = fma(sum[i], keep, simd_shuffle_xor(sum[i], ushort(m)) * other_keep);
        }
    }
    if (lane == 0u) {
        part[0] = most;
        part[1] = weight;
    }
    if (lane < R && weight != 0.0f) {
#pragma unroll
        for (uint i = 0u; i < quads; i++) {
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                part[2u + 4u * (dl + i * R) + j] = sum[4u * i + j];
            }
        }
    }
}

#endif
