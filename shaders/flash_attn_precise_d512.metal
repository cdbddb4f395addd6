// Prefill attention with float16 queries and keys and everything after in float32, for heads of 512, from a cache.

#include "attn_precise.h"

#define INGOT_PRECISE512_Q 8u  // query rows of a threadgroup
#define INGOT_PRECISE512_C 64u // keys of a chunk: 8 for each of 8 simdgroups

// Eight rows are too few to give each simdgroup its own, and their sums too many for one: a simdgroup computes the scores of 8 keys
// of a chunk, the weights of one row, and 64 columns of the sums. A block of 8 keys that ends beyond kL goes through the simdgroup's own 64 halves of scratch, with zeros; each lane loads its own
// elements of V.
template <typename VT>
INGOT_FUNC void ingot_attn_precise512(device const half* q, device const half* k, device const VT* v, device float* o,
                                      constant ingot_attn_params& p, constant ingot_attn_precise_params& pp,
                                      device const float* norms, device const float* sinks, threadgroup half* qs,
                                      threadgroup float* ss, threadgroup float* keeps, threadgroup half* scratch, uint3 group,
                                      uint thread_index, uint simdgroup, uint lane) {
    const uint D = 512u;
    const uint C = INGOT_PRECISE512_C;
    uint qL = uint(p.qL);
    uint kL = uint(p.kL);
    uint head = group.y;
    uint head_kv = head / uint(p.gqa_factor);
    uint t0 = group.x * INGOT_PRECISE512_Q;
    q += long(group.z) * p.Q_strides[0] + long(head) * p.Q_strides[1];
    k += long(group.z) * p.K_strides[0] + long(head_kv) * p.K_strides[1];
    v += long(group.z) * p.V_strides[0] + long(head_kv) * p.V_strides[1];
    o += long(group.z) * p.O_strides[0] + long(head) * p.O_strides[1];
    ulong norm0 = ulong(long(group.z) * pp.n_strides[0] + long(head_kv) * pp.n_strides[1]);
    scratch += simdgroup * 64u;

    for (uint i = thread_index; i < INGOT_PRECISE512_Q * D / 2u; i += 256u) {
        uint row = i / (D / 2u);
        half2 x = half2(0.0h);
        if (ingot_align_q || t0 + row < qL) {
            x = *(device const half2*)(q + long(t0 + row) * p.Q_strides[2] + long(i % (D / 2u) * 2u));
        }
        ((threadgroup half2*)qs)[i] = x;
    }
    simdgroup_float8x8 sums[8];
#pragma unroll
    for (uint j = 0u; j < 8u; j++) {
        sums[j] = make_filled_simdgroup_matrix<float, 8>(0.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint cell_row = ingot_cell_row(lane);
    uint cell_column = ingot_cell_column(lane);
    long pos = long(p.qL_off) + long(t0 + simdgroup); // of the row whose weights are this simdgroup's
    bool row_live = ingot_align_q || t0 + simdgroup < qL;
    uint first = 0u;
    uint end = uint(p.NK);
    if (ingot_do_causal) {
        uint last = min(t0 + INGOT_PRECISE512_Q, qL) - 1u;
        end = uint(min(long(end), (long(p.qL_off) + long(last)) / long(C) + 1l));
    }
    if (ingot_has_window && long(p.qL_off) + long(t0) >= long(pp.window)) {
        first = uint((long(p.qL_off) + long(t0) - long(pp.window) + 1l) / long(C));
    }
    float most = -FLT_MAX;
    float weight = 0.0f;
    for (uint chunk = first; chunk < end; chunk++) {
        uint key0 = chunk * C + simdgroup * 8u;
        simdgroup_float8x8 scores = make_filled_simdgroup_matrix<float, 8>(0.0f);
        if (ingot_align_k || key0 + 8u <= kL) {
            device const half* from = k + long(key0) * p.K_strides[2];
            for (uint d = 0u; d < D; d += 8u) {
                simdgroup_half8x8 rows;
                simdgroup_half8x8 keys;
                simdgroup_load(rows, qs + d, D);
                simdgroup_load(keys, from + d, ulong(p.K_strides[2]), ulong2(0), true);
                simdgroup_multiply_accumulate(scores, rows, keys, scores);
            }
        } else if (key0 < kL) {
            for (uint d = 0u; d < D; d += 8u) {
                uint key = key0 + cell_row;
                half2 x = half2(0.0h);
                if (key < kL) {
                    x = *(device const half2*)(k + long(key) * p.K_strides[2] + long(d + cell_column));
                }
                *(threadgroup half2*)(scratch + cell_row * 8u + cell_column) = x;
                simdgroup_barrier(mem_flags::mem_threadgroup);
                simdgroup_half8x8 rows;
                simdgroup_half8x8 keys;
                simdgroup_load(rows, qs + d, D);
                simdgroup_load(keys, scratch, 8, ulong2(0), true);
                simdgroup_multiply_accumulate(scores, rows, keys, scores);
                simdgroup_barrier(mem_flags::mem_threadgroup);
            }
        }
        simdgroup_store(scores, ss + simdgroup * 8u, C);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        float2 exponents;
        bool2 seen;
        float most_now = most;
#pragma unroll
        for (uint e = 0u; e < 2u; e++) {
            uint key = chunk * C + lane * 2u + e;
            exponents[e] = ingot_precise_exponent<false>(ss[simdgroup * C + lane * 2u + e], p);
            seen[e] = row_live && (ingot_align_k || key < kL) && ingot_precise_sees(pos, long(key), pp.window);
            most_now = seen[e] ? fmax(most_now, exponents[e]) : most_now;
        }
        most_now = simd_max(most_now);
        float keep = ingot_precise_exp<false>(most - most_now);
        most = most_now;
        float part = 0.0f;
#pragma unroll
        for (uint e = 0u; e < 2u; e++) {
            float w = seen[e] ? ingot_precise_exp<false>(exponents[e] - most) : 0.0f;
            ss[simdgroup * C + lane * 2u + e] = w;
            part += w;
        }
        weight = fma(weight, keep, simd_sum(part));
        if (lane == 0u) {
            keeps[simdgroup] = keep;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        keep = keeps[cell_row];
#pragma unroll
        for (uint j = 0u; j < 8u; j++) {
            sums[j].thread_elements() *= keep;
        }
        for (uint b = 0u; b < C / 8u; b++) {
            uint base = chunk * C + b * 8u;
            if (!ingot_align_k && base >= kL) {
                break;
            }
            uint key = base + cell_row;
            bool live = ingot_align_k || key < kL;
            simdgroup_float8x8 weights;
            simdgroup_load(weights, ss + b * 8u, C);
#pragma unroll
            for (uint j = 0u; j < 8u; j++) {
                uint d = simdgroup * 64u + j * 8u + cell_column;
                float2 x = float2(0.0f);
                if (live) {
                    x = ingot_precise_v2(v, ulong(long(key) * p.V_strides[2] + long(d)), norms,
                                         norm0 + ulong(key) * ulong(pp.norms_per_pos) + ulong(d / 256u), pp);
                }
                simdgroup_float8x8 values;
                values.thread_elements() = x;
                simdgroup_multiply_accumulate(sums[j], weights, values, sums[j]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    float keep = 1.0f;
    if (ingot_has_sinks) {
        float sink = sinks[head];
        float most_now = fmax(most, sink);
        keep = ingot_precise_exp<false>(most - most_now);
        weight = fma(weight, keep, ingot_precise_exp<false>(sink - most_now));
    }
    if (lane == 0u) {
        // No key seen: weight is exactly 0. A NaN weight is not, and stays visible.
        keeps[simdgroup] = weight == 0.0f ? 0.0f : keep / weight;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float factor = keeps[cell_row];
    uint t = t0 + cell_row;
    if (ingot_align_q || t < qL) {
#pragma unroll
        for (uint j = 0u; j < 8u; j++) {
            *(device float2*)(o + long(t) * p.O_strides[2] + long(simdgroup * 64u + j * 8u + cell_column)) =
                sums[j].thread_elements() * factor;
        }
    }
}

// o = softmax(scale q k^T) v, scores and weights to base e, keys up to the row's position with constant 301.
//
// Slots: 0 q f16 [B, H, qL, 512], 1 k f16 [B, Hkv, capacity, 512], 2 v f32 [B, Hkv, kL, 512] or f16 as k, 3 o f32 as q,
//        4 parameters, 8 sinks f32 [H], 9 more parameters. 8 is read with
//        constant 312.
// Geometry: ceil(qL / 8) x H x B threadgroups of 32 x 8 threads. q, k, v and o start at a multiple of 8 bytes.
// Threadgroup memory: 11,296 bytes, static.
template <typename VT>
kernel void flash_attn_prefill_precise512(device const half* q [[buffer(0)]],
                                          device const half* k [[buffer(1)]],
                                          device const VT* v [[buffer(2)]],
                                          device float* o [[buffer(3)]],
                                          constant ingot_attn_params& p [[buffer(4)]],
                                          device const float* sinks [[buffer(8)]],
                                          constant ingot_attn_precise_params& pp [[buffer(9)]],
                                          uint3 group [[threadgroup_position_in_grid]],
                                          uint thread_index [[thread_index_in_threadgroup]],
                                          uint simdgroup [[simdgroup_index_in_threadgroup]],
                                          uint lane [[thread_index_in_simdgroup]]) {
    threadgroup half qs[INGOT_PRECISE512_Q * 512u];
    threadgroup float ss[INGOT_PRECISE512_Q * INGOT_PRECISE512_C];
    threadgroup float keeps[8];
    threadgroup half scratch[8u * 64u];
    ingot_attn_precise512<VT>(q, k, v, o, p, pp, nullptr, sinks, qs, ss, keeps, scratch, group, thread_index, simdgroup, lane);
}

// The same with V as codes, which each lane dequantises as it loads them.
//
// Slots: those above, with 2 v u8 [B, Hkv, capacity, 512] and 10 norms f32 [B, Hkv, capacity, 2].
// Geometry: as above. Threadgroup memory: 11,296 bytes, static.
kernel void flash_attn_prefill_precise_d512_vcodes(device const half* q [[buffer(0)]],
                                                   device const half* k [[buffer(1)]],
                                                   device const uchar* v [[buffer(2)]],
                                                   device float* o [[buffer(3)]],
                                                   constant ingot_attn_params& p [[buffer(4)]],
                                                   device const float* sinks [[buffer(8)]],
                                                   constant ingot_attn_precise_params& pp [[buffer(9)]],
                                                   device const float* norms [[buffer(10)]],
                                                   uint3 group [[threadgroup_position_in_grid]],
                                                   uint thread_index [[thread_index_in_threadgroup]],
                                                   uint simdgroup [[simdgroup_index_in_threadgroup]],
                                                   uint lane [[thread_index_in_simdgroup]]) {
    threadgroup half qs[INGOT_PRECISE512_Q * 512u];
    threadgroup float ss[INGOT_PRECISE512_Q * INGOT_PRECISE512_C];
    threadgroup float keeps[8];
    threadgroup half scratch[8u * 64u];
    ingot_attn_precise512<uchar>(q, k, v, o, p, pp, norms, sinks, qs, ss, keeps, scratch, group, thread_index, simdgroup, lane);
}

typedef decltype(flash_attn_prefill_precise512<float>) precise512_f32;
typedef decltype(flash_attn_prefill_precise512<half>) precise512_f16;

template [[host_name("flash_attn_prefill_precise_d512_v32")]] kernel precise512_f32 flash_attn_prefill_precise512<float>;
template [[host_name("flash_attn_prefill_precise_d512_v16")]] kernel precise512_f16 flash_attn_prefill_precise512<half>;
