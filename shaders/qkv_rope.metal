// Per-head RMS normalisation, rotary position embedding and the key-value cache store of one attention layer.
//
// Sources: RoPE, Su et al., arXiv:2104.09864, with the halves paired as in GPT-NeoX and Gemma; query and key norms as in
// Gemma 3, arXiv:2503.19786.

#include "common.h"
#include "qkv_rope.h"

// For every position t and head: y = x / sqrt(mean(x^2) + eps) * weight (V: only if v_norm is not 0), then for Q and K
// the rotation of the pairs (y[p], y[p + D/2]), p < rotary_dim / 2, by the angle (pos + t) * inv_freq[p]:
//   y[p] cos - y[p + D/2] sin,  y[p + D/2] cos + y[p] sin
// Q, K and V are rewritten in place; K and V also go to dst_k and dst_v from element kv_offset on.
//
// pos and kv_offset are read on the device. A store that would not fit the capacity, or positions beyond 32 bits, make the
// whole launch a no-op: Q, K and V stay as they were.
//
// Kernels: rms_qkv_rope_kv_store for caches of f32, with _f16 or _bf16 behind for the others, which get rounded numbers, to
// nearest, ties to even; Q, K and V are not rounded.
//
// Slots: 0 q f32 [T, Hq, D], 1 k f32 [T, Hkv, D], 2 v f32 [T, Hkv, D], 3 q_weight f32 [D], 4 k_weight f32 [D],
//        5 v_weight f32 [D] (bound but not read if v_norm is 0), 6 T, 7 Hq, 8 Hkv, 9 D (even), 10 rotary_dim (even, <= D),
//        11 pos u32 (device), 13 eps f32, 14 dst_k f32, f16 or bf16 [capacity], 15 dst_v as dst_k, 16 kv_offset u32
//        (device), 17 capacity in elements, 18 inv_freq f32 [rotary_dim / 2], from the host: a device pow is some ulps off,
//        and the position multiplies them; 19 v_norm.
// Geometry: one simdgroup of 32 lanes per head row, eight rows per threadgroup of 256 threads,
//           ceil(T (Hq + 2 Hkv) / 8) threadgroups.
// Threadgroup memory: none.
template <typename C>
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
                                  device C* dst_k [[buffer(14)]],
                                  device C* dst_v [[buffer(15)]],
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
    ulong offset = ulong(kv_offset[0]);
    uint first = pos[0];
    if (!ingot_store_fits(kv_rows * ulong(D), offset, capacity) || !ingot_positions_fit(first, T)) {
        return;
    }
    ingot_qkv_rope<C>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, first, eps, true, dst_k,
                      dst_v, offset, inv_freq, v_norm, ingot_rope_plain(inv_freq), row, lane);
}

// rms_qkv_rope_kv_store with what not all models have: biases that are added before the norms, no norms, other
// pairs, and a factor that multiplies cos and sin. pairing is 0 for the pairs (p, p + D/2), 1 for (p, p + rotary_dim/2), 2 for
// (2p, 2p + 1). operands is the sum of 1 (q_weight), 2 (k_weight), 4 (q_bias), 8 (k_bias), 16 (v_bias), of those that there
// are: without a weight those heads have no norm, and what there is not is bound but not read.
//
// Kernels: rms_qkv_rope_kv_store_opt, _f16_opt and _bf16_opt.
//
// Slots: those of rms_qkv_rope_kv_store; 20 pairing, 21 factor f32, 22 q_bias f32 [Hq, D], 23 k_bias f32 [Hkv, D],
//        24 v_bias f32 [Hkv, D], 25 operands.
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
// Sources: biases, Qwen2, arXiv:2407.10671; factors, YaRN, arXiv:2309.00071; neighbours, RoFormer, arXiv:2104.09864.
template <typename C>
kernel void rms_qkv_rope_kv_store_opt(device float* q [[buffer(0)]],
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
                                      device C* dst_k [[buffer(14)]],
                                      device C* dst_v [[buffer(15)]],
                                      device const uint* kv_offset [[buffer(16)]],
                                      constant uint& capacity [[buffer(17)]],
                                      device const float* inv_freq [[buffer(18)]],
                                      constant uint& v_norm [[buffer(19)]],
                                      constant uint& pairing [[buffer(20)]],
                                      constant float& factor [[buffer(21)]],
                                      device const float* q_bias [[buffer(22)]],
                                      device const float* k_bias [[buffer(23)]],
                                      device const float* v_bias [[buffer(24)]],
                                      constant uint& operands [[buffer(25)]],
                                      uint tile [[threadgroup_position_in_grid]],
                                      uint lane [[thread_index_in_simdgroup]],
                                      uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    if (row >= q_rows + 2ul * kv_rows) {
        return;
    }
    ulong offset = ulong(kv_offset[0]);
    uint first = pos[0];
    if (!ingot_store_fits(kv_rows * ulong(D), offset, capacity) || !ingot_positions_fit(first, T)) {
        return;
    }
    ingot_rope_options options;
    options.q_bias = q_bias;
    options.k_bias = k_bias;
    options.v_bias = v_bias;
    options.operands = operands;
    options.pairing = pairing;
    options.factor = factor;
    ingot_qkv_rope<C>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, first, eps, true, dst_k,
                      dst_v, offset, inv_freq, v_norm, options, row, lane);
}

typedef decltype(rms_qkv_rope_kv_store<float>) store_f32;
typedef decltype(rms_qkv_rope_kv_store<half>) store_f16;
typedef decltype(rms_qkv_rope_kv_store<bfloat>) store_bf16;
typedef decltype(rms_qkv_rope_kv_store_opt<float>) store_f32_opt;
typedef decltype(rms_qkv_rope_kv_store_opt<half>) store_f16_opt;
typedef decltype(rms_qkv_rope_kv_store_opt<bfloat>) store_bf16_opt;

template [[host_name("rms_qkv_rope_kv_store")]] kernel store_f32 rms_qkv_rope_kv_store<float>;
template [[host_name("rms_qkv_rope_kv_store_f16")]] kernel store_f16 rms_qkv_rope_kv_store<half>;
template [[host_name("rms_qkv_rope_kv_store_bf16")]] kernel store_bf16 rms_qkv_rope_kv_store<bfloat>;
template [[host_name("rms_qkv_rope_kv_store_opt")]] kernel store_f32_opt rms_qkv_rope_kv_store_opt<float>;
template [[host_name("rms_qkv_rope_kv_store_f16_opt")]] kernel store_f16_opt rms_qkv_rope_kv_store_opt<half>;
template [[host_name("rms_qkv_rope_kv_store_bf16_opt")]] kernel store_bf16_opt rms_qkv_rope_kv_store_opt<bfloat>;

// The norms and rotations of rms_qkv_rope_kv_store without caches. pos is a number of the host. Positions beyond 32 bits
// make the whole launch a no-op. If Hkv is 0, there are queries only, and k, v and their weights are bound but not used.
//
// Slots: 0 q f32 [T, Hq, D], 1 k f32 [T, Hkv, D], 2 v f32 [T, Hkv, D], 3 q_weight f32 [D], 4 k_weight f32 [D],
//        5 v_weight f32 [D] (bound but not read if v_norm is 0), 6 T, 7 Hq, 8 Hkv, 9 D (even), 10 rotary_dim (even, <= D),
//        11 pos, 13 eps f32, 18 inv_freq f32 [rotary_dim / 2], 19 v_norm.
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
kernel void rms_qkv_rope(device float* q [[buffer(0)]],
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
                         constant uint& pos [[buffer(11)]],
                         constant float& eps [[buffer(13)]],
                         device const float* inv_freq [[buffer(18)]],
                         constant uint& v_norm [[buffer(19)]],
                         uint tile [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    if (row >= q_rows + 2ul * kv_rows || !ingot_positions_fit(pos, T)) {
        return;
    }
    ingot_qkv_rope<float>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, pos, eps, false, k, v,
                          0ul, inv_freq, v_norm, ingot_rope_plain(inv_freq), row, lane);
}

// rms_qkv_rope with what rms_qkv_rope_kv_store_opt adds.
//
// Slots: those of rms_qkv_rope; 20 pairing, 21 factor f32, 22 q_bias f32 [Hq, D], 23 k_bias f32 [Hkv, D],
//        24 v_bias f32 [Hkv, D], 25 operands.
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
kernel void rms_qkv_rope_opt(device float* q [[buffer(0)]],
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
                             constant uint& pos [[buffer(11)]],
                             constant float& eps [[buffer(13)]],
                             device const float* inv_freq [[buffer(18)]],
                             constant uint& v_norm [[buffer(19)]],
                             constant uint& pairing [[buffer(20)]],
                             constant float& factor [[buffer(21)]],
                             device const float* q_bias [[buffer(22)]],
                             device const float* k_bias [[buffer(23)]],
                             device const float* v_bias [[buffer(24)]],
                             constant uint& operands [[buffer(25)]],
                             uint tile [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    if (row >= q_rows + 2ul * kv_rows || !ingot_positions_fit(pos, T)) {
        return;
    }
    ingot_rope_options options;
    options.q_bias = q_bias;
    options.k_bias = k_bias;
    options.v_bias = v_bias;
    options.operands = operands;
    options.pairing = pairing;
    options.factor = factor;
    ingot_qkv_rope<float>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, pos, eps, false, k, v,
                          0ul, inv_freq, v_norm, options, row, lane);
}

// rms_qkv_rope with a position that is read on the device.
//
// Slots: those of rms_qkv_rope, but 11 pos u32 (device).
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
kernel void rms_qkv_rope_posbuf(device float* q [[buffer(0)]],
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
                                device const float* inv_freq [[buffer(18)]],
                                constant uint& v_norm [[buffer(19)]],
                                uint tile [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    uint first = pos[0];
    if (row >= q_rows + 2ul * kv_rows || !ingot_positions_fit(first, T)) {
        return;
    }
    ingot_qkv_rope<float>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, first, eps, false, k, v,
                          0ul, inv_freq, v_norm, ingot_rope_plain(inv_freq), row, lane);
}

// rms_qkv_rope_posbuf with what rms_qkv_rope_kv_store_opt adds.
//
// Slots: those of rms_qkv_rope_posbuf; 20 pairing, 21 factor f32, 22 q_bias f32 [Hq, D], 23 k_bias f32 [Hkv, D],
//        24 v_bias f32 [Hkv, D], 25 operands.
// Geometry: that of rms_qkv_rope_kv_store.
// Threadgroup memory: none.
kernel void rms_qkv_rope_posbuf_opt(device float* q [[buffer(0)]],
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
                                    device const float* inv_freq [[buffer(18)]],
                                    constant uint& v_norm [[buffer(19)]],
                                    constant uint& pairing [[buffer(20)]],
                                    constant float& factor [[buffer(21)]],
                                    device const float* q_bias [[buffer(22)]],
                                    device const float* k_bias [[buffer(23)]],
                                    device const float* v_bias [[buffer(24)]],
                                    constant uint& operands [[buffer(25)]],
                                    uint tile [[threadgroup_position_in_grid]],
                                    uint lane [[thread_index_in_simdgroup]],
                                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    ulong q_rows = ulong(T) * ulong(Hq);
    ulong kv_rows = ulong(T) * ulong(Hkv);
    ulong row = ulong(tile) * ulong(INGOT_ROPE_GROUP_ROWS) + ulong(simdgroup);
    uint first = pos[0];
    if (row >= q_rows + 2ul * kv_rows || !ingot_positions_fit(first, T)) {
        return;
    }
    ingot_rope_options options;
    options.q_bias = q_bias;
    options.k_bias = k_bias;
    options.v_bias = v_bias;
    options.operands = operands;
    options.pairing = pairing;
    options.factor = factor;
    ingot_qkv_rope<float>(q, k, v, q_weight, k_weight, v_weight, q_rows, kv_rows, Hq, Hkv, D, rotary_dim, first, eps, false, k, v,
                          0ul, inv_freq, v_norm, options, row, lane);
}
