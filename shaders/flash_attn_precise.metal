// Prefill attention with float16 queries and keys and everything after in float32, for heads of 64, 128 and 256.

#include "attn_precise.h"

#define INGOT_PRECISE_BQ 32u // query rows of a threadgroup: 8 for each of 4 simdgroups
#define INGOT_PRECISE_BK 16u // keys of a tile

// A simdgroup has its 8 rows of Q and their sums in registers, as 8 x 8 matrices; tiles of K and V go through threadgroup
// memory, with zeros for keys from kL on, which are not read. Tiles of keys start at multiples of 16, so that a row's result
// does not depend on how the rows are cut into calls.
template <uint D, typename VT>
INGOT_FUNC void ingot_attn_precise(device const half* q, device const half* k, device const VT* v, device float* o,
                                   constant ingot_attn_params& p, constant ingot_attn_mask_params& mp, device const half* mask,
                                   device const uchar* blk, constant ingot_attn_precise_params& pp, device const float* norms,
                                   device const float* sinks, threadgroup half* ks, threadgroup float* vs, uint3 group,
                                   uint thread_index, uint simdgroup, uint lane) {
    const uint threads = 128u;
    const uint pairs = D / 2u;
    const uint BQ = INGOT_PRECISE_BQ;
    const uint BK = INGOT_PRECISE_BK;
    uint qL = uint(p.qL);
    uint kL = uint(p.kL);
    uint head = group.y;
    uint head_kv = head / uint(p.gqa_factor);
    uint t0 = group.x * BQ;
    q += long(group.z) * p.Q_strides[0] + long(head) * p.Q_strides[1];
    k += long(group.z) * p.K_strides[0] + long(head_kv) * p.K_strides[1];
    v += long(group.z) * p.V_strides[0] + long(head_kv) * p.V_strides[1];
    o += long(group.z) * p.O_strides[0] + long(head) * p.O_strides[1];
    ulong norm0 = ulong(long(group.z) * pp.n_strides[0] + long(head_kv) * pp.n_strides[1]);
    if (ingot_has_mask) {
        mask += long(group.z) * mp.M_strides[0] + long(head) * mp.M_strides[1];
    }

    // Q goes to registers through the memory of V.
    threadgroup half* qs = (threadgroup half*)vs;
    for (uint i = thread_index; i < BQ * pairs; i += threads) {
        uint row = i / pairs;
        half2 x = half2(0.0h);
        if (ingot_align_q || t0 + row < qL) {
            x = *(device const half2*)(q + long(t0 + row) * p.Q_strides[2] + long(i % pairs * 2u));
        }
        ((threadgroup half2*)qs)[i] = x;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_half8x8 rows[D / 8u];
    simdgroup_float8x8 sums[D / 8u];
#pragma unroll
    for (uint d = 0u; d < D / 8u; d++) {
        simdgroup_load(rows[d], qs + simdgroup * 8u * D + d * 8u, D);
        sums[d] = make_filled_simdgroup_matrix<float, 8>(0.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint column = ingot_cell_column(lane);
    uint t = t0 + simdgroup * 8u + ingot_cell_row(lane);
    bool row_live = ingot_align_q || t < qL;
    long pos = long(p.qL_off) + long(t);
    uint first = 0u;
    uint end = uint(p.NK);
    if (ingot_do_causal) {
        uint last = min(t0 + BQ, qL) - 1u;
        end = uint(min(long(end), (long(p.qL_off) + long(last)) / long(BK) + 1l));
    }
    if (ingot_has_window && long(p.qL_off) + long(t0) >= long(pp.window)) {
        first = uint((long(p.qL_off) + long(t0) - long(pp.window) + 1l) / long(BK));
    }
    float most = -FLT_MAX;
    float weight = 0.0f;
    for (uint tile = first; tile < end; tile++) {
        uint kind = 1u;
        if (ingot_has_blk) {
            kind = uint(blk[ulong(group.x) * ulong(p.NK) + ulong(tile)]);
            if (kind == 0u) {
                continue;
            }
        }
        for (uint i = thread_index; i < BK * pairs; i += threads) {
            uint key = tile * BK + i / pairs;
            long at = long(i % pairs * 2u);
            half2 a = half2(0.0h);
            float2 b = float2(0.0f);
            if (ingot_align_k || key < kL) {
                a = *(device const half2*)(k + long(key) * p.K_strides[2] + at);
                b = ingot_precise_v2(v, ulong(long(key) * p.V_strides[2] + at), norms, norm0 + ulong(key), pp);
            }
            ((threadgroup half2*)ks)[i] = a;
            ((threadgroup float2*)vs)[i] = b;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        simdgroup_float8x8 scores[2];
        float2 exponents[2];
        bool2 seen[2];
        float most_now = most;
#pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            scores[j] = make_filled_simdgroup_matrix<float, 8>(0.0f);
#pragma unroll
            for (uint d = 0u; d < D / 8u; d++) {
                simdgroup_half8x8 keys;
                simdgroup_load(keys, ks + j * 8u * D + d * 8u, D, ulong2(0), true);
                simdgroup_multiply_accumulate(scores[j], rows[d], keys, scores[j]);
            }
            float2 dots = scores[j].thread_elements();
#pragma unroll
            for (uint e = 0u; e < 2u; e++) {
                uint key = tile * BK + j * 8u + column + e;
                bool sees = row_live && (ingot_align_k || key < kL) && ingot_precise_sees(pos, long(key), pp.window);
                float x = ingot_precise_exponent<true>(dots[e], p);
                if (ingot_has_mask && sees && kind != 2u) {
                    x += float(mask[long(t) * mp.M_strides[2] + long(key)]) * M_LOG2E_F;
                }
                exponents[j][e] = x;
                seen[j][e] = sees;
                most_now = sees ? fmax(most_now, x) : most_now;
            }
        }
        most_now = fmax(most_now, simd_shuffle_xor(most_now, ushort(1)));
        most_now = fmax(most_now, simd_shuffle_xor(most_now, ushort(8)));
        float keep = ingot_precise_exp<true>(most - most_now);
        most = most_now;
        float part = 0.0f;
#pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            float2 w;
#pragma unroll
            for (uint e = 0u; e < 2u; e++) {
                w[e] = seen[j][e] ? ingot_precise_exp<true>(exponents[j][e] - most) : 0.0f;
                part += w[e];
            }
            scores[j].thread_elements() = w;
        }
        part += simd_shuffle_xor(part, ushort(1));
        part += simd_shuffle_xor(part, ushort(8));
        weight = fma(weight, keep, part);
#pragma unroll
        for (uint d = 0u; d < D / 8u; d++) {
            sums[d].thread_elements() *= keep;
#pragma unroll
            for (uint j = 0u; j < 2u; j++) {
                simdgroup_float8x8 values;
                simdgroup_load(values, vs + j * 8u * D + d * 8u, D);
                simdgroup_multiply_accumulate(sums[d], scores[j], values, sums[d]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    float keep = 1.0f;
    if (ingot_has_sinks) {
        float sink = sinks[head] * M_LOG2E_F;
        float most_now = fmax(most, sink);
        keep = ingot_precise_exp<true>(most - most_now);
        weight = fma(weight, keep, ingot_precise_exp<true>(sink - most_now));
    }
    // No key seen: weight is exactly 0. A NaN weight is not, and stays visible.
    float factor = weight == 0.0f ? 0.0f : keep / weight;
    if (row_live) {
#pragma unroll
        for (uint d = 0u; d < D / 8u; d++) {
            *(device float2*)(o + long(t) * p.O_strides[2] + long(d * 8u + column)) = sums[d].thread_elements() * factor;
        }
    }
}

// o = softmax(scale q k^T + mask) v, scores and weights to base 2.
//
// Slots: 0 q f16 [B, H, qL, D], 1 k f16 [B, Hkv, capacity, D], 2 v f32 [B, Hkv, kL, D] or f16 as k, 3 o f32 as q,
//        4 parameters, 5 strides of the mask, 6 mask f16 [qL, kL] or [B, H, qL, kL], 7 u8 [NQ, NK]: what is in the mask's
//        tiles, 8 sinks f32 [H], 9 more parameters. 6 is read with constant 300,
//        7 with 303, 8 with 312.
// Geometry: ceil(qL / 32) x H x B threadgroups of 32 x 4 threads. q, k, v and o start at a multiple of 8 bytes.
// Threadgroup memory: 96 D bytes, static.
template <uint D, typename VT>
kernel void flash_attn_prefill_precise(device const half* q [[buffer(0)]],
                                       device const half* k [[buffer(1)]],
                                       device const VT* v [[buffer(2)]],
                                       device float* o [[buffer(3)]],
                                       constant ingot_attn_params& p [[buffer(4)]],
                                       constant ingot_attn_mask_params& mp [[buffer(5)]],
                                       device const half* mask [[buffer(6)]],
                                       device const uchar* blk [[buffer(7)]],
                                       device const float* sinks [[buffer(8)]],
                                       constant ingot_attn_precise_params& pp [[buffer(9)]],
                                       uint3 group [[threadgroup_position_in_grid]],
                                       uint thread_index [[thread_index_in_threadgroup]],
                                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                                       uint lane [[thread_index_in_simdgroup]]) {
    threadgroup half ks[INGOT_PRECISE_BK * D];
    threadgroup float vs[INGOT_PRECISE_BK * D];
    ingot_attn_precise<D, VT>(q, k, v, o, p, mp, mask, blk, pp, nullptr, sinks, ks, vs, group, thread_index, simdgroup, lane);
}

// The same with V as codes, which are dequantised on the way to threadgroup memory.
//
// Slots: those above, with 2 v u8 [B, Hkv, capacity, D] and 10 norms f32 [B, Hkv, capacity].
// Geometry: as above. Threadgroup memory: 96 D bytes, static.
template <uint D>
kernel void flash_attn_prefill_precise_codes(device const half* q [[buffer(0)]],
                                             device const half* k [[buffer(1)]],
                                             device const uchar* v [[buffer(2)]],
                                             device float* o [[buffer(3)]],
                                             constant ingot_attn_params& p [[buffer(4)]],
                                             constant ingot_attn_mask_params& mp [[buffer(5)]],
                                             device const half* mask [[buffer(6)]],
                                             device const uchar* blk [[buffer(7)]],
                                             device const float* sinks [[buffer(8)]],
                                             constant ingot_attn_precise_params& pp [[buffer(9)]],
                                             device const float* norms [[buffer(10)]],
                                             uint3 group [[threadgroup_position_in_grid]],
                                             uint thread_index [[thread_index_in_threadgroup]],
                                             uint simdgroup [[simdgroup_index_in_threadgroup]],
                                             uint lane [[thread_index_in_simdgroup]]) {
    threadgroup half ks[INGOT_PRECISE_BK * D];
    threadgroup float vs[INGOT_PRECISE_BK * D];
    ingot_attn_precise<D, uchar>(q, k, v, o, p, mp, mask, blk, pp, norms, sinks, ks, vs, group, thread_index, simdgroup, lane);
}

typedef decltype(flash_attn_prefill_precise<64, float>) precise_f32;
typedef decltype(flash_attn_prefill_precise<64, half>) precise_f16;
typedef decltype(flash_attn_prefill_precise_codes<64>) precise_codes;

template [[host_name("flash_attn_prefill_precise_d64_v32")]] kernel precise_f32 flash_attn_prefill_precise<64, float>;
template [[host_name("flash_attn_prefill_precise_d128_v32")]] kernel precise_f32 flash_attn_prefill_precise<128, float>;
template [[host_name("flash_attn_prefill_precise_d256_v32")]] kernel precise_f32 flash_attn_prefill_precise<256, float>;
template [[host_name("flash_attn_prefill_precise_d64_v16")]] kernel precise_f16 flash_attn_prefill_precise<64, half>;
template [[host_name("flash_attn_prefill_precise_d128_v16")]] kernel precise_f16 flash_attn_prefill_precise<128, half>;
template [[host_name("flash_attn_prefill_precise_d256_v16")]] kernel precise_f16 flash_attn_prefill_precise<256, half>;
template [[host_name("flash_attn_prefill_precise_d64_vcodes")]] kernel precise_codes flash_attn_prefill_precise_codes<64>;
template [[host_name("flash_attn_prefill_precise_d128_vcodes")]] kernel precise_codes flash_attn_prefill_precise_codes<128>;
template [[host_name("flash_attn_prefill_precise_d256_vcodes")]] kernel precise_codes flash_attn_prefill_precise_codes<256>;
