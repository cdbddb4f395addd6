// Flash attention by query rows.

#include "common.h"
#include "attn_rows.h"

// o[b, t, h] = softmax over the visible keys s of (scale * q[b, t, h] . k[b, s, h']) times v[b, s, h'],
// h' = h / (H / Hkv). The query is at position q_pos + t, key s at kv_pos + s; it is visible if it is among the first Tkv,
// not after the query, and, with window > 0, among the last `window` positions up to the query's own. A query that sees
// nothing gets zeros.
//
// Tkv, q_pos and kv_pos are read on the device; Tkv is limited to capacity, which is also the stride of a batch in K and V.
//
// Kernels: flash_attn_rows_h{D}_r{R}_g{G} for caches of f32, with _f16 or _bf16 behind for the others. D is the head
// dimension, R the lanes of a query row, G the simdgroups of a full threadgroup.
//
// Slots: 0 q f32 [B, Tq, H, D], 1 k f32, f16 or bf16 [B, capacity, Hkv, D], 2 v as k, 3 o f32 or bf16 [B, Tq, H, D] (f32:
//        may be q itself), 4 B, 5 Tq, 6 Tkv u32 (device), 7 H, 8 Hkv (divides H), 9 window (0: all), 10 scale f32,
//        11 q_pos u32 (device), 12 kv_pos u32 (device), 13 out_bf16, 14 capacity in positions.
// Geometry: ceil(Tq / rows) x (B H) threadgroups, rows = G 32 / R; 32 / R query rows per simdgroup, G simdgroups, or as few
//           as cover Tq if that is less than rows. q, k and v start at a multiple of 16 bytes.
// Threadgroup memory: none.
template <uint D, uint R, uint G, typename KV>
kernel void flash_attn_rows(device const float4* q [[buffer(0)]],
                            device const KV* k [[buffer(1)]],
                            device const KV* v [[buffer(2)]],
                            device float* o [[buffer(3)]],
                            constant uint& B [[buffer(4)]],
                            constant uint& Tq [[buffer(5)]],
                            device const uint* Tkv [[buffer(6)]],
                            constant uint& H [[buffer(7)]],
                            constant uint& Hkv [[buffer(8)]],
                            constant uint& window [[buffer(9)]],
                            constant float& scale [[buffer(10)]],
                            device const uint* q_pos [[buffer(11)]],
                            device const uint* kv_pos [[buffer(12)]],
                            constant uint& out_bf16 [[buffer(13)]],
                            constant uint& capacity [[buffer(14)]],
                            uint2 tile [[threadgroup_position_in_grid]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]]) {
    if (ulong(tile.y) >= ulong(B) * ulong(H)) {
        return;
    }
    ingot_attn_rows<D, R, G, KV>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], out_bf16, capacity,
                                 0.0f, (device const float*)q, false, tile.x, tile.y, simdgroup, lane);
}

// flash_attn_rows with a cap on the scores and attention sinks: each score is capped, softcap tanh(score / softcap), if
// softcap is positive and finite, and e^sinks[h] is added to the denominator of the softmax of every query that sees a key.
//
// Kernels: flash_attn_rows_h{D}_r{R}_g{G}_opt, _f16_opt and _bf16_opt.
//
// Slots: those of flash_attn_rows; 15 softcap f32, 16 sinks f32 [H] (bound but not read if has_sinks is 0), 17 has_sinks.
// Geometry: that of flash_attn_rows.
// Threadgroup memory: none.
// Sources: softcap, Gemma 2 report, arXiv:2408.00118; sinks, Xiao et al., arXiv:2309.17453.
template <uint D, uint R, uint G, typename KV>
kernel void flash_attn_rows_opt(device const float4* q [[buffer(0)]],
                                device const KV* k [[buffer(1)]],
                                device const KV* v [[buffer(2)]],
                                device float* o [[buffer(3)]],
                                constant uint& B [[buffer(4)]],
                                constant uint& Tq [[buffer(5)]],
                                device const uint* Tkv [[buffer(6)]],
                                constant uint& H [[buffer(7)]],
                                constant uint& Hkv [[buffer(8)]],
                                constant uint& window [[buffer(9)]],
                                constant float& scale [[buffer(10)]],
                                device const uint* q_pos [[buffer(11)]],
                                device const uint* kv_pos [[buffer(12)]],
                                constant uint& out_bf16 [[buffer(13)]],
                                constant uint& capacity [[buffer(14)]],
                                constant float& softcap [[buffer(15)]],
                                device const float* sinks [[buffer(16)]],
                                constant uint& has_sinks [[buffer(17)]],
                                uint2 tile [[threadgroup_position_in_grid]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]]) {
    if (ulong(tile.y) >= ulong(B) * ulong(H)) {
        return;
    }
    ingot_attn_rows<D, R, G, KV>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], out_bf16, capacity,
                                 softcap, sinks, has_sinks != 0u, tile.x, tile.y, simdgroup, lane);
}

typedef decltype(flash_attn_rows<128, 8, 8, float4>) rows_f32;
typedef decltype(flash_attn_rows<128, 8, 8, half4>) rows_f16;
typedef decltype(flash_attn_rows<128, 8, 8, ushort4>) rows_bf16;
typedef decltype(flash_attn_rows_opt<128, 8, 8, float4>) rows_f32_opt;
typedef decltype(flash_attn_rows_opt<128, 8, 8, half4>) rows_f16_opt;
typedef decltype(flash_attn_rows_opt<128, 8, 8, ushort4>) rows_bf16_opt;

// What is launched unless another setting is asked for, every cache, and with fewer simdgroups for devices that do not take
// as many threads:
template [[host_name("flash_attn_rows_h8_r1_g8")]] kernel rows_f32 flash_attn_rows<8, 1, 8, float4>;
template [[host_name("flash_attn_rows_h16_r2_g8")]] kernel rows_f32 flash_attn_rows<16, 2, 8, float4>;
template [[host_name("flash_attn_rows_h32_r4_g8")]] kernel rows_f32 flash_attn_rows<32, 4, 8, float4>;
template [[host_name("flash_attn_rows_h64_r8_g8")]] kernel rows_f32 flash_attn_rows<64, 8, 8, float4>;
template [[host_name("flash_attn_rows_h80_r4_g8")]] kernel rows_f32 flash_attn_rows<80, 4, 8, float4>;
template [[host_name("flash_attn_rows_h96_r8_g8")]] kernel rows_f32 flash_attn_rows<96, 8, 8, float4>;
template [[host_name("flash_attn_rows_h128_r8_g8")]] kernel rows_f32 flash_attn_rows<128, 8, 8, float4>;
template [[host_name("flash_attn_rows_h192_r16_g8")]] kernel rows_f32 flash_attn_rows<192, 16, 8, float4>;
template [[host_name("flash_attn_rows_h192_r16_g16")]] kernel rows_f32 flash_attn_rows<192, 16, 16, float4>;
template [[host_name("flash_attn_rows_h256_r16_g8")]] kernel rows_f32 flash_attn_rows<256, 16, 8, float4>;
template [[host_name("flash_attn_rows_h256_r16_g32")]] kernel rows_f32 flash_attn_rows<256, 16, 32, float4>;
template [[host_name("flash_attn_rows_h512_r32_g8")]] kernel rows_f32 flash_attn_rows<512, 32, 8, float4>;
template [[host_name("flash_attn_rows_h512_r32_g32")]] kernel rows_f32 flash_attn_rows<512, 32, 32, float4>;
template [[host_name("flash_attn_rows_h8_r1_g8_f16")]] kernel rows_f16 flash_attn_rows<8, 1, 8, half4>;
template [[host_name("flash_attn_rows_h16_r2_g8_f16")]] kernel rows_f16 flash_attn_rows<16, 2, 8, half4>;
template [[host_name("flash_attn_rows_h32_r4_g8_f16")]] kernel rows_f16 flash_attn_rows<32, 4, 8, half4>;
template [[host_name("flash_attn_rows_h64_r8_g8_f16")]] kernel rows_f16 flash_attn_rows<64, 8, 8, half4>;
template [[host_name("flash_attn_rows_h80_r4_g8_f16")]] kernel rows_f16 flash_attn_rows<80, 4, 8, half4>;
template [[host_name("flash_attn_rows_h96_r8_g8_f16")]] kernel rows_f16 flash_attn_rows<96, 8, 8, half4>;
template [[host_name("flash_attn_rows_h128_r8_g8_f16")]] kernel rows_f16 flash_attn_rows<128, 8, 8, half4>;
template [[host_name("flash_attn_rows_h192_r16_g8_f16")]] kernel rows_f16 flash_attn_rows<192, 16, 8, half4>;
template [[host_name("flash_attn_rows_h192_r16_g16_f16")]] kernel rows_f16 flash_attn_rows<192, 16, 16, half4>;
template [[host_name("flash_attn_rows_h256_r16_g8_f16")]] kernel rows_f16 flash_attn_rows<256, 16, 8, half4>;
template [[host_name("flash_attn_rows_h256_r16_g32_f16")]] kernel rows_f16 flash_attn_rows<256, 16, 32, half4>;
template [[host_name("flash_attn_rows_h512_r32_g8_f16")]] kernel rows_f16 flash_attn_rows<512, 32, 8, half4>;
template [[host_name("flash_attn_rows_h512_r32_g32_f16")]] kernel rows_f16 flash_attn_rows<512, 32, 32, half4>;
template [[host_name("flash_attn_rows_h8_r1_g8_bf16")]] kernel rows_bf16 flash_attn_rows<8, 1, 8, ushort4>;
template [[host_name("flash_attn_rows_h16_r2_g8_bf16")]] kernel rows_bf16 flash_attn_rows<16, 2, 8, ushort4>;
template [[host_name("flash_attn_rows_h32_r4_g8_bf16")]] kernel rows_bf16 flash_attn_rows<32, 4, 8, ushort4>;
template [[host_name("flash_attn_rows_h64_r8_g8_bf16")]] kernel rows_bf16 flash_attn_rows<64, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h80_r4_g8_bf16")]] kernel rows_bf16 flash_attn_rows<80, 4, 8, ushort4>;
template [[host_name("flash_attn_rows_h96_r8_g8_bf16")]] kernel rows_bf16 flash_attn_rows<96, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h128_r8_g8_bf16")]] kernel rows_bf16 flash_attn_rows<128, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h192_r16_g8_bf16")]] kernel rows_bf16 flash_attn_rows<192, 16, 8, ushort4>;
template [[host_name("flash_attn_rows_h192_r16_g16_bf16")]] kernel rows_bf16 flash_attn_rows<192, 16, 16, ushort4>;
template [[host_name("flash_attn_rows_h256_r16_g8_bf16")]] kernel rows_bf16 flash_attn_rows<256, 16, 8, ushort4>;
template [[host_name("flash_attn_rows_h256_r16_g32_bf16")]] kernel rows_bf16 flash_attn_rows<256, 16, 32, ushort4>;
template [[host_name("flash_attn_rows_h512_r32_g8_bf16")]] kernel rows_bf16 flash_attn_rows<512, 32, 8, ushort4>;
template [[host_name("flash_attn_rows_h512_r32_g32_bf16")]] kernel rows_bf16 flash_attn_rows<512, 32, 32, ushort4>;
template [[host_name("flash_attn_rows_h8_r1_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<8, 1, 8, float4>;
template [[host_name("flash_attn_rows_h16_r2_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<16, 2, 8, float4>;
template [[host_name("flash_attn_rows_h32_r4_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<32, 4, 8, float4>;
template [[host_name("flash_attn_rows_h64_r8_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<64, 8, 8, float4>;
template [[host_name("flash_attn_rows_h80_r4_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<80, 4, 8, float4>;
template [[host_name("flash_attn_rows_h96_r8_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<96, 8, 8, float4>;
template [[host_name("flash_attn_rows_h128_r8_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<128, 8, 8, float4>;
template [[host_name("flash_attn_rows_h192_r16_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<192, 16, 8, float4>;
template [[host_name("flash_attn_rows_h192_r16_g16_opt")]] kernel rows_f32_opt flash_attn_rows_opt<192, 16, 16, float4>;
template [[host_name("flash_attn_rows_h256_r16_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<256, 16, 8, float4>;
template [[host_name("flash_attn_rows_h256_r16_g32_opt")]] kernel rows_f32_opt flash_attn_rows_opt<256, 16, 32, float4>;
template [[host_name("flash_attn_rows_h512_r32_g8_opt")]] kernel rows_f32_opt flash_attn_rows_opt<512, 32, 8, float4>;
template [[host_name("flash_attn_rows_h512_r32_g32_opt")]] kernel rows_f32_opt flash_attn_rows_opt<512, 32, 32, float4>;
template [[host_name("flash_attn_rows_h8_r1_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<8, 1, 8, half4>;
template [[host_name("flash_attn_rows_h16_r2_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<16, 2, 8, half4>;
template [[host_name("flash_attn_rows_h32_r4_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<32, 4, 8, half4>;
template [[host_name("flash_attn_rows_h64_r8_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<64, 8, 8, half4>;
template [[host_name("flash_attn_rows_h80_r4_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<80, 4, 8, half4>;
template [[host_name("flash_attn_rows_h96_r8_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<96, 8, 8, half4>;
template [[host_name("flash_attn_rows_h128_r8_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<128, 8, 8, half4>;
template [[host_name("flash_attn_rows_h192_r16_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<192, 16, 8, half4>;
template [[host_name("flash_attn_rows_h192_r16_g16_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<192, 16, 16, half4>;
template [[host_name("flash_attn_rows_h256_r16_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<256, 16, 8, half4>;
template [[host_name("flash_attn_rows_h256_r16_g32_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<256, 16, 32, half4>;
template [[host_name("flash_attn_rows_h512_r32_g8_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<512, 32, 8, half4>;
template [[host_name("flash_attn_rows_h512_r32_g32_f16_opt")]] kernel rows_f16_opt flash_attn_rows_opt<512, 32, 32, half4>;
template [[host_name("flash_attn_rows_h8_r1_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<8, 1, 8, ushort4>;
template [[host_name("flash_attn_rows_h16_r2_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<16, 2, 8, ushort4>;
template [[host_name("flash_attn_rows_h32_r4_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<32, 4, 8, ushort4>;
template [[host_name("flash_attn_rows_h64_r8_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<64, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h80_r4_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<80, 4, 8, ushort4>;
template [[host_name("flash_attn_rows_h96_r8_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<96, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h128_r8_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<128, 8, 8, ushort4>;
template [[host_name("flash_attn_rows_h192_r16_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<192, 16, 8, ushort4>;
template [[host_name("flash_attn_rows_h192_r16_g16_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<192, 16, 16, ushort4>;
template [[host_name("flash_attn_rows_h256_r16_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<256, 16, 8, ushort4>;
template [[host_name("flash_attn_rows_h256_r16_g32_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<256, 16, 32, ushort4>;
template [[host_name("flash_attn_rows_h512_r32_g8_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<512, 32, 8, ushort4>;
template [[host_name("flash_attn_rows_h512_r32_g32_bf16_opt")]] kernel rows_bf16_opt flash_attn_rows_opt<512, 32, 32, ushort4>;

// Other settings, for tuning:
template [[host_name("flash_attn_rows_h128_r8_g16")]] kernel rows_f32 flash_attn_rows<128, 8, 16, float4>;
template [[host_name("flash_attn_rows_h128_r8_g32")]] kernel rows_f32 flash_attn_rows<128, 8, 32, float4>;
template [[host_name("flash_attn_rows_h128_r16_g8")]] kernel rows_f32 flash_attn_rows<128, 16, 8, float4>;
template [[host_name("flash_attn_rows_h128_r16_g16")]] kernel rows_f32 flash_attn_rows<128, 16, 16, float4>;
template [[host_name("flash_attn_rows_h128_r16_g32")]] kernel rows_f32 flash_attn_rows<128, 16, 32, float4>;
template [[host_name("flash_attn_rows_h128_r32_g8")]] kernel rows_f32 flash_attn_rows<128, 32, 8, float4>;
template [[host_name("flash_attn_rows_h128_r32_g16")]] kernel rows_f32 flash_attn_rows<128, 32, 16, float4>;
template [[host_name("flash_attn_rows_h128_r32_g32")]] kernel rows_f32 flash_attn_rows<128, 32, 32, float4>;
template [[host_name("flash_attn_rows_h256_r8_g8")]] kernel rows_f32 flash_attn_rows<256, 8, 8, float4>;
template [[host_name("flash_attn_rows_h256_r8_g16")]] kernel rows_f32 flash_attn_rows<256, 8, 16, float4>;
template [[host_name("flash_attn_rows_h256_r8_g32")]] kernel rows_f32 flash_attn_rows<256, 8, 32, float4>;
template [[host_name("flash_attn_rows_h256_r16_g16")]] kernel rows_f32 flash_attn_rows<256, 16, 16, float4>;
template [[host_name("flash_attn_rows_h256_r32_g8")]] kernel rows_f32 flash_attn_rows<256, 32, 8, float4>;
template [[host_name("flash_attn_rows_h256_r32_g16")]] kernel rows_f32 flash_attn_rows<256, 32, 16, float4>;
template [[host_name("flash_attn_rows_h256_r32_g32")]] kernel rows_f32 flash_attn_rows<256, 32, 32, float4>;
template [[host_name("flash_attn_rows_h512_r8_g8")]] kernel rows_f32 flash_attn_rows<512, 8, 8, float4>;
template [[host_name("flash_attn_rows_h512_r8_g16")]] kernel rows_f32 flash_attn_rows<512, 8, 16, float4>;
template [[host_name("flash_attn_rows_h512_r8_g32")]] kernel rows_f32 flash_attn_rows<512, 8, 32, float4>;
template [[host_name("flash_attn_rows_h512_r16_g8")]] kernel rows_f32 flash_attn_rows<512, 16, 8, float4>;
template [[host_name("flash_attn_rows_h512_r16_g16")]] kernel rows_f32 flash_attn_rows<512, 16, 16, float4>;
template [[host_name("flash_attn_rows_h512_r16_g32")]] kernel rows_f32 flash_attn_rows<512, 16, 32, float4>;
template [[host_name("flash_attn_rows_h512_r32_g16")]] kernel rows_f32 flash_attn_rows<512, 32, 16, float4>;
