// FlashDecoding: attention of one query row per batch item and head, split over the key-value cache. One kernel makes
// partial results of chunks of keys, another one merges them.

#include "common.h"
#include "attn_decode.h"

// The partial results of attention, see ingot_attn_decode, over each chunk of C keys that has one of the first Tkv:
//   partials[b, h, chunk] = m, l, acc[D]
// Which keys a head sees is as in flash_attn_rows with Tq = 1. Chunks that start at Tkv or behind are not written. Where no
// key of a chunk is seen, m = -FLT_MAX and l = 0 are written, acc is not.
//
// Tkv, q_pos and kv_pos are read on the device; Tkv is limited to capacity, which is also the stride of a batch in K and V.
//
// Kernels: flash_attn_decode_partial_h{D}_c{C}_r{R} for caches of f32, with _f16 or _bf16 behind for the others. R is how
// many lanes share a key.
//
// Slots: 0 q f32 [B, 1, H, D], 1 k f32, f16 or bf16 [B, capacity, Hkv, D], 2 v as k, 3 partials f32
//        [B, H, ceil(capacity / C), D + 2], 4 B, 6 Tkv u32 (device), 7 H, 8 Hkv (divides H), 9 window (0: all), 10 scale
//        f32, 11 q_pos u32 (device), 12 kv_pos u32 (device), 13 capacity in positions, 15 softcap f32 of the scores (not
//        positive or not finite: none).
// Geometry: ceil(capacity / C) x ceil(B H / n) threadgroups of n simdgroups, a head for each: neighbours, so that those
//           which share keys read them together. q, k and v start at a multiple of 16 bytes.
// Threadgroup memory: none.
// Source: Dao et al., "Flash-Decoding for long-context inference", 2023.
template <uint D, uint C, uint R, typename KV>
kernel void flash_attn_decode_partial(device const float4* q [[buffer(0)]],
                                      device const KV* k [[buffer(1)]],
                                      device const KV* v [[buffer(2)]],
                                      device float* partials [[buffer(3)]],
                                      constant uint& B [[buffer(4)]],
                                      device const uint* Tkv [[buffer(6)]],
                                      constant uint& H [[buffer(7)]],
                                      constant uint& Hkv [[buffer(8)]],
                                      constant uint& window [[buffer(9)]],
                                      constant float& scale [[buffer(10)]],
                                      device const uint* q_pos [[buffer(11)]],
                                      device const uint* kv_pos [[buffer(12)]],
                                      constant uint& capacity [[buffer(13)]],
                                      constant float& softcap [[buffer(15)]],
                                      uint2 tile [[threadgroup_position_in_grid]],
                                      uint simdgroup [[simdgroup_index_in_threadgroup]],
                                      uint simdgroups [[simdgroups_per_threadgroup]],
                                      uint lane [[thread_index_in_simdgroup]]) {
    ulong row = ulong(tile.y) * ulong(simdgroups) + ulong(simdgroup);
    if (row >= ulong(B) * ulong(H)) {
        return;
    }
    uint tkv = Tkv[0];
    if (tkv > capacity) {
        tkv = capacity;
    }
    ulong start = ulong(tile.x) * ulong(C);
    if (start >= ulong(tkv)) {
        return;
    }
    uint batch = uint(row) / H;
    uint head = uint(row) - batch * H;
    uint head_kv = head / (H / Hkv);
    ulong q_abs = ulong(q_pos[0]);
    uint end = ingot_attn_end(q_abs, ulong(kv_pos[0]), tkv);
    uint first = ingot_attn_first(q_abs, ulong(kv_pos[0]), window, end);
    if (end < uint(start)) {
        end = uint(start); // all keys of the chunk come after the query
    }
    ulong chunks = (ulong(capacity) + ulong(C - 1u)) / ulong(C);
    ulong stride = ulong(Hkv) * ulong(D / 4u);
    ingot_attn_decode<D, C, R, KV>(q, k, v, partials + (row * chunks + ulong(tile.x)) * ulong(D + 2u), uint(start), end, first,
                                   row, ulong(batch) * ulong(capacity) * stride + ulong(head_kv) * ulong(D / 4u), stride,
                                   scale, softcap, lane);
}

// o[b, h] = sum of e^(m - most) acc / (sum of e^(m - most) l + e^(sinks[h] - most)) over the chunks of b, h with one of the
// first Tkv keys, in order, most = the largest m among those with l other than 0, and sinks[h] if there are sinks. Zeros if
// there is no such chunk. acc of the others is not read.
//
// Kernels: flash_attn_decode_reduce_h{D}_c{C}.
//
// Slots: 0 partials f32 as flash_attn_decode_partial leaves them, 1 o f32 or bf16 [B, 1, H, D], 2 B, 3 Tkv u32 (device), 4 H,
//        5 out_bf16, 6 capacity in positions, 7 sinks f32 [H] (bound but not read if has_sinks is 0), 8 has_sinks.
// Geometry: 1 x (B H) threadgroups of any number of threads, up to one for each element of a head.
// Threadgroup memory: none.
template <uint D, uint C>
kernel void flash_attn_decode_reduce(device const float* partials [[buffer(0)]],
                                     device float* o [[buffer(1)]],
                                     constant uint& B [[buffer(2)]],
                                     device const uint* Tkv [[buffer(3)]],
                                     constant uint& H [[buffer(4)]],
                                     constant uint& out_bf16 [[buffer(5)]],
                                     constant uint& capacity [[buffer(6)]],
                                     device const float* sinks [[buffer(7)]],
                                     constant uint& has_sinks [[buffer(8)]],
                                     uint2 tile [[threadgroup_position_in_grid]],
                                     uint2 tid [[thread_position_in_threadgroup]],
                                     uint2 threads [[threads_per_threadgroup]]) {
    ulong row = ulong(tile.y);
    if (row >= ulong(B) * ulong(H)) {
        return;
    }
    uint tkv = Tkv[0];
    if (tkv > capacity) {
        tkv = capacity;
    }
    ulong chunks = (ulong(capacity) + ulong(C - 1u)) / ulong(C);
    uint live = tkv / C;
    if (live * C < tkv) {
        live++;
    }
    ulong begin = row * chunks * ulong(D + 2u);

    float most = -FLT_MAX;
    bool seen = false;
    for (uint i = 0u; i < live; i++) {
        ulong at = begin + ulong(i) * ulong(D + 2u);
        if (partials[at + 1ul] != 0.0f) {
            most = fmax(most, partials[at]);
            seen = true;
        }
    }
    float sink = 0.0f;
    if (has_sinks != 0u) {
        sink = sinks[tile.y % H];
        most = fmax(most, sink);
    }
    for (uint d = tid.x; d < D; d += threads.x) {
        float sum = 0.0f;
        float weight = 0.0f;
        for (uint i = 0u; i < live; i++) {
            ulong at = begin + ulong(i) * ulong(D + 2u);
            float l = partials[at + 1ul];
            if (l != 0.0f) {
                float keep = precise::exp(partials[at] - most);
                weight = fma(keep, l, weight);
                sum = fma(keep, partials[at + 2ul + ulong(d)], sum);
            }
        }
        if (has_sinks != 0u) {
            weight += precise::exp(sink - most);
        }
        // A weight of 0 with a key seen cannot be; a NaN one stays visible.
        float inverse = seen ? 1.0f / weight : 0.0f;
        ingot_attn_store(o, row * ulong(D) + ulong(d), sum * inverse, out_bf16);
    }
}

typedef decltype(flash_attn_decode_partial<128, 256, 8, float4>) partial_f32;
typedef decltype(flash_attn_decode_partial<128, 256, 8, half4>) partial_f16;
typedef decltype(flash_attn_decode_partial<128, 256, 8, ushort4>) partial_bf16;
typedef decltype(flash_attn_decode_reduce<128, 256>) reduce_f32;

// What is launched unless another setting is asked for, every cache:
template [[host_name("flash_attn_decode_partial_h8_c256_r1")]] kernel partial_f32 flash_attn_decode_partial<8, 256, 1, float4>;
template [[host_name("flash_attn_decode_partial_h16_c256_r2")]] kernel partial_f32 flash_attn_decode_partial<16, 256, 2, float4>;
template [[host_name("flash_attn_decode_partial_h32_c256_r4")]] kernel partial_f32 flash_attn_decode_partial<32, 256, 4, float4>;
template [[host_name("flash_attn_decode_partial_h64_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<64, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h80_c256_r4")]] kernel partial_f32 flash_attn_decode_partial<80, 256, 4, float4>;
template [[host_name("flash_attn_decode_partial_h96_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<96, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<128, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h192_c128_r16")]] kernel partial_f32 flash_attn_decode_partial<192, 128, 16, float4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r16")]] kernel partial_f32 flash_attn_decode_partial<256, 128, 16, float4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r32")]] kernel partial_f32 flash_attn_decode_partial<512, 128, 32, float4>;
template [[host_name("flash_attn_decode_partial_h8_c256_r1_f16")]] kernel partial_f16 flash_attn_decode_partial<8, 256, 1, half4>;
template [[host_name("flash_attn_decode_partial_h16_c256_r2_f16")]] kernel partial_f16 flash_attn_decode_partial<16, 256, 2, half4>;
template [[host_name("flash_attn_decode_partial_h32_c256_r4_f16")]] kernel partial_f16 flash_attn_decode_partial<32, 256, 4, half4>;
template [[host_name("flash_attn_decode_partial_h64_c256_r8_f16")]] kernel partial_f16 flash_attn_decode_partial<64, 256, 8, half4>;
template [[host_name("flash_attn_decode_partial_h80_c256_r4_f16")]] kernel partial_f16 flash_attn_decode_partial<80, 256, 4, half4>;
template [[host_name("flash_attn_decode_partial_h96_c256_r8_f16")]] kernel partial_f16 flash_attn_decode_partial<96, 256, 8, half4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r8_f16")]] kernel partial_f16 flash_attn_decode_partial<128, 256, 8, half4>;
template [[host_name("flash_attn_decode_partial_h192_c128_r16_f16")]] kernel partial_f16 flash_attn_decode_partial<192, 128, 16, half4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r16_f16")]] kernel partial_f16 flash_attn_decode_partial<256, 128, 16, half4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r32_f16")]] kernel partial_f16 flash_attn_decode_partial<512, 128, 32, half4>;
template [[host_name("flash_attn_decode_partial_h8_c256_r1_bf16")]] kernel partial_bf16 flash_attn_decode_partial<8, 256, 1, ushort4>;
template [[host_name("flash_attn_decode_partial_h16_c256_r2_bf16")]] kernel partial_bf16 flash_attn_decode_partial<16, 256, 2, ushort4>;
template [[host_name("flash_attn_decode_partial_h32_c256_r4_bf16")]] kernel partial_bf16 flash_attn_decode_partial<32, 256, 4, ushort4>;
template [[host_name("flash_attn_decode_partial_h64_c256_r8_bf16")]] kernel partial_bf16 flash_attn_decode_partial<64, 256, 8, ushort4>;
template [[host_name("flash_attn_decode_partial_h80_c256_r4_bf16")]] kernel partial_bf16 flash_attn_decode_partial<80, 256, 4, ushort4>;
template [[host_name("flash_attn_decode_partial_h96_c256_r8_bf16")]] kernel partial_bf16 flash_attn_decode_partial<96, 256, 8, ushort4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r8_bf16")]] kernel partial_bf16 flash_attn_decode_partial<128, 256, 8, ushort4>;
template [[host_name("flash_attn_decode_partial_h192_c128_r16_bf16")]] kernel partial_bf16 flash_attn_decode_partial<192, 128, 16, ushort4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r16_bf16")]] kernel partial_bf16 flash_attn_decode_partial<256, 128, 16, ushort4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r32_bf16")]] kernel partial_bf16 flash_attn_decode_partial<512, 128, 32, ushort4>;

// Other settings, for tuning:
template [[host_name("flash_attn_decode_partial_h128_c64_r8")]] kernel partial_f32 flash_attn_decode_partial<128, 64, 8, float4>;
template [[host_name("flash_attn_decode_partial_h128_c64_r16")]] kernel partial_f32 flash_attn_decode_partial<128, 64, 16, float4>;
template [[host_name("flash_attn_decode_partial_h128_c64_r32")]] kernel partial_f32 flash_attn_decode_partial<128, 64, 32, float4>;
template [[host_name("flash_attn_decode_partial_h128_c128_r8")]] kernel partial_f32 flash_attn_decode_partial<128, 128, 8, float4>;
template [[host_name("flash_attn_decode_partial_h128_c128_r16")]] kernel partial_f32 flash_attn_decode_partial<128, 128, 16, float4>;
template [[host_name("flash_attn_decode_partial_h128_c128_r32")]] kernel partial_f32 flash_attn_decode_partial<128, 128, 32, float4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r16")]] kernel partial_f32 flash_attn_decode_partial<128, 256, 16, float4>;
template [[host_name("flash_attn_decode_partial_h128_c256_r32")]] kernel partial_f32 flash_attn_decode_partial<128, 256, 32, float4>;
template [[host_name("flash_attn_decode_partial_h256_c64_r8")]] kernel partial_f32 flash_attn_decode_partial<256, 64, 8, float4>;
template [[host_name("flash_attn_decode_partial_h256_c64_r16")]] kernel partial_f32 flash_attn_decode_partial<256, 64, 16, float4>;
template [[host_name("flash_attn_decode_partial_h256_c64_r32")]] kernel partial_f32 flash_attn_decode_partial<256, 64, 32, float4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r8")]] kernel partial_f32 flash_attn_decode_partial<256, 128, 8, float4>;
template [[host_name("flash_attn_decode_partial_h256_c128_r32")]] kernel partial_f32 flash_attn_decode_partial<256, 128, 32, float4>;
template [[host_name("flash_attn_decode_partial_h256_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<256, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h256_c256_r16")]] kernel partial_f32 flash_attn_decode_partial<256, 256, 16, float4>;
template [[host_name("flash_attn_decode_partial_h256_c256_r32")]] kernel partial_f32 flash_attn_decode_partial<256, 256, 32, float4>;
template [[host_name("flash_attn_decode_partial_h512_c64_r8")]] kernel partial_f32 flash_attn_decode_partial<512, 64, 8, float4>;
template [[host_name("flash_attn_decode_partial_h512_c64_r16")]] kernel partial_f32 flash_attn_decode_partial<512, 64, 16, float4>;
template [[host_name("flash_attn_decode_partial_h512_c64_r32")]] kernel partial_f32 flash_attn_decode_partial<512, 64, 32, float4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r8")]] kernel partial_f32 flash_attn_decode_partial<512, 128, 8, float4>;
template [[host_name("flash_attn_decode_partial_h512_c128_r16")]] kernel partial_f32 flash_attn_decode_partial<512, 128, 16, float4>;
template [[host_name("flash_attn_decode_partial_h512_c256_r8")]] kernel partial_f32 flash_attn_decode_partial<512, 256, 8, float4>;
template [[host_name("flash_attn_decode_partial_h512_c256_r16")]] kernel partial_f32 flash_attn_decode_partial<512, 256, 16, float4>;
template [[host_name("flash_attn_decode_partial_h512_c256_r32")]] kernel partial_f32 flash_attn_decode_partial<512, 256, 32, float4>;

template [[host_name("flash_attn_decode_reduce_h8_c256")]] kernel reduce_f32 flash_attn_decode_reduce<8, 256>;
template [[host_name("flash_attn_decode_reduce_h16_c256")]] kernel reduce_f32 flash_attn_decode_reduce<16, 256>;
template [[host_name("flash_attn_decode_reduce_h32_c256")]] kernel reduce_f32 flash_attn_decode_reduce<32, 256>;
template [[host_name("flash_attn_decode_reduce_h64_c256")]] kernel reduce_f32 flash_attn_decode_reduce<64, 256>;
template [[host_name("flash_attn_decode_reduce_h80_c256")]] kernel reduce_f32 flash_attn_decode_reduce<80, 256>;
template [[host_name("flash_attn_decode_reduce_h96_c256")]] kernel reduce_f32 flash_attn_decode_reduce<96, 256>;
template [[host_name("flash_attn_decode_reduce_h192_c128")]] kernel reduce_f32 flash_attn_decode_reduce<192, 128>;
template [[host_name("flash_attn_decode_reduce_h128_c64")]] kernel reduce_f32 flash_attn_decode_reduce<128, 64>;
template [[host_name("flash_attn_decode_reduce_h128_c128")]] kernel reduce_f32 flash_attn_decode_reduce<128, 128>;
template [[host_name("flash_attn_decode_reduce_h128_c256")]] kernel reduce_f32 flash_attn_decode_reduce<128, 256>;
template [[host_name("flash_attn_decode_reduce_h256_c64")]] kernel reduce_f32 flash_attn_decode_reduce<256, 64>;
template [[host_name("flash_attn_decode_reduce_h256_c128")]] kernel reduce_f32 flash_attn_decode_reduce<256, 128>;
template [[host_name("flash_attn_decode_reduce_h256_c256")]] kernel reduce_f32 flash_attn_decode_reduce<256, 256>;
template [[host_name("flash_attn_decode_reduce_h512_c64")]] kernel reduce_f32 flash_attn_decode_reduce<512, 64>;
template [[host_name("flash_attn_decode_reduce_h512_c128")]] kernel reduce_f32 flash_attn_decode_reduce<512, 128>;
template [[host_name("flash_attn_decode_reduce_h512_c256")]] kernel reduce_f32 flash_attn_decode_reduce<512, 256>;
