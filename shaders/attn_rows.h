// Attention of query rows over a key-value cache, each row on its own lanes of a simdgroup.

#ifndef INGOT_ATTN_ROWS_H
#define INGOT_ATTN_ROWS_H

#include "attn_kv.h"
#include "softcap.h"

// D: head dimension. R: lanes of a query row, so 32 / R rows per simdgroup. G: simdgroups of a full threadgroup. KV: four
// elements of a cache, float4, half4 or ushort4 for bf16.
// A lane owns the float4s dl, dl + R, ... of the head dimension, dl = lane % R.
//
// The simdgroup walks the keys that any of its rows sees, so control flow is uniform around the shuffles; a row takes part
// only in its own keys, which makes what lies outside its window irrelevant, NaN included.
// Online softmax: Milakov and Gimelshein, arXiv:1805.02867; FlashAttention, Dao et al., arXiv:2205.14135.
template <uint D, uint R, uint G, typename KV>
INGOT_FUNC void ingot_attn_rows(device const float4* q, device const KV* k, device const KV* v, device float* o,
                                uint tq, uint tkv, uint heads, uint heads_kv, uint window, float scale, uint q_pos,
                                uint kv_pos, uint out_bf16, uint capacity, float softcap,
                                device const float* sinks, bool has_sinks, uint tile, uint batch_head, uint simdgroup,
                                uint lane) {
    const uint quads = D / 4u / R;
    const uint rows = 32u / R;
    ulong t0 = ulong(tile) * ulong(G * rows) + ulong(simdgroup * rows);
    if (t0 >= ulong(tq)) {
        return;
    }
    ulong last = t0 + ulong(rows - 1u);
    if (last >= ulong(tq)) {
        last = ulong(tq) - 1ul;
    }
    ulong t = t0 + ulong(lane / R);
    uint dl = lane % R;
    bool live = t <= last;
    uint batch = batch_head / heads;
    uint head = batch_head - batch * heads;
    uint head_kv = head / (heads / heads_kv);
    if (tkv > capacity) {
        tkv = capacity;
    }

    // Keys of this row, and of all rows of the simdgroup: both ends grow with the position.
    uint end = 0u;
    uint first = 0u;
    if (live) {
        end = ingot_attn_end(ulong(q_pos) + t, ulong(kv_pos), tkv);
        first = ingot_attn_first(ulong(q_pos) + t, ulong(kv_pos), window, end);
    }
    uint end_all = ingot_attn_end(ulong(q_pos) + last, ulong(kv_pos), tkv);
    uint first_all = ingot_attn_first(ulong(q_pos) + t0, ulong(kv_pos), window, end_all);

    ulong row = ((ulong(batch) * ulong(tq) + t) * ulong(heads) + ulong(head)) * ulong(D / 4u) + ulong(dl);
    float query[D / R];
    float sum[D / R];
#pragma unroll
    for (uint i = 0u; i < quads; i++) {
        float4 value = float4(0.0f);
        if (live) {
            value = q[row + ulong(i * R)];
        }
        query[4u * i] = value.x;
        query[4u * i + 1u] = value.y;
        query[4u * i + 2u] = value.z;
        query[4u * i + 3u] = value.w;
        sum[4u * i] = 0.0f;
        sum[4u * i + 1u] = 0.0f;
        sum[4u * i + 2u] = 0.0f;
        sum[4u * i + 3u] = 0.0f;
    }

    ulong stride = ulong(heads_kv) * ulong(D / 4u);
    ulong at = (ulong(batch) * ulong(capacity) + ulong(first_all)) * stride + ulong(head_kv) * ulong(D / 4u) + ulong(dl);
    float most = -FLT_MAX;
    float weight = 0.0f;
    for (uint key = first_all; key < end_all; key++) {
        float score = 0.0f;
#pragma unroll
        for (uint i = 0u; i < quads; i++) {
            float4 value = ingot_kv4(k[at + ulong(i * R)]);
            score = fma(query[4u * i], value.x, score);
            score = fma(query[4u * i + 1u], value.y, score);
            score = fma(query[4u * i + 2u], value.z, score);
            score = fma(query[4u * i + 3u], value.w, score);
        }
#pragma unroll
        for (uint m = R / 2u; m > 0u; m /= 2u) {
            score += simd_shuffle_xor(score, ushort(m));
        }
        if (key >= first && key < end) {
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
        at += stride;
    }

    if (live) {
        if (has_sinks && weight != 0.0f) {
            float sink = sinks[head];
            float most_now = fmax(most, sink);
            float keep = precise::exp(most - most_now);
            weight = fma(weight, keep, precise::exp(sink - most_now));
#pragma unroll
            for (uint i = 0u; i < D / R; i++) {
                sum[i] *= keep;
            }
        }
        // No key seen: weight is exactly 0. A NaN weight is not, and stays visible.
        float inverse = weight == 0.0f ? 0.0f : 1.0f / weight;
        ulong out = row * 4ul;
#pragma unroll
        for (uint i = 0u; i < quads; i++) {
#pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                ingot_attn_store(o, out + ulong(i * R * 4u + j), sum[4u * i + j] * inverse, out_bf16);
            }
        }
    }
}

#endif
