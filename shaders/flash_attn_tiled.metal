// Flash attention by tiles of query rows and keys: the plain way, to compare flash_attn_rows with.

#include "common.h"
#include "attn_kv.h"

// A simdgroup takes BR query rows and walks the keys that any of them sees, BC at a time: scores of all pairs, then for each
// row the maximum so far and the weights, then the sums, of which a lane owns the columns lane, lane + 32, ... . Tiles of keys
// start at multiples of BC, so that a row's result does not depend on the others. A pair that is not seen has the weight
// -1, and its value is not read.
template <uint D, uint BR, uint BC>
INGOT_FUNC void ingot_attn_tiled(device const float4* q, device const float4* k, device const float* v, device float* o,
                                 uint tq, uint tkv, uint heads, uint heads_kv, uint window, float scale, uint q_pos,
                                 uint kv_pos, uint out_bf16, uint capacity, uint tile, uint batch_head, uint lane,
                                 threadgroup float* weights, threadgroup float* keeps) {
    const uint cells = BR * BC;
    const uint parts = cells < 32u ? 32u / cells : 1u; // lanes that share a pair
    const uint columns = D / 32u;
    ulong t0 = ulong(tile) * ulong(BR);
    ulong last = t0 + ulong(BR - 1u);
    if (last >= ulong(tq)) {
        last = ulong(tq) - 1ul;
    }
    uint batch = batch_head / heads;
    uint head = batch_head - batch * heads;
    uint head_kv = head / (heads / heads_kv);
    if (tkv > capacity) {
        tkv = capacity;
    }
    uint end_all = ingot_attn_end(ulong(q_pos) + last, ulong(kv_pos), tkv);
    uint first_all = ingot_attn_first(ulong(q_pos) + t0, ulong(kv_pos), window, end_all);

    ulong row0 = (ulong(batch) * ulong(tq) + t0) * ulong(heads) + ulong(head);
    ulong cache = ulong(batch) * ulong(capacity) * ulong(heads_kv) + ulong(head_kv);
    float sum[BR * columns];
#pragma unroll
    for (uint i = 0u; i < BR * columns; i++) {
        sum[i] = 0.0f;
    }
    float most = -FLT_MAX; // of row `lane`, if lane < BR
    float weight = 0.0f;
    for (uint base = first_all / BC * BC; base < end_all; base += BC) {
        for (uint cell = lane / parts; cell < cells; cell += 32u / parts) {
            ulong t = t0 + ulong(cell / BC);
            uint key = base + cell % BC;
            bool seen = false;
            if (t <= last) {
                uint end = ingot_attn_end(ulong(q_pos) + t, ulong(kv_pos), tkv);
                seen = key >= ingot_attn_first(ulong(q_pos) + t, ulong(kv_pos), window, end) && key < end;
            }
            float score = 0.0f;
            if (seen) {
                ulong at = (row0 + ulong(cell / BC) * ulong(heads)) * ulong(D / 4u);
                ulong from = (cache + ulong(key) * ulong(heads_kv)) * ulong(D / 4u);
                for (uint i = lane % parts; i < D / 4u; i += parts) {
                    float4 a = q[at + ulong(i)];
                    float4 b = k[from + ulong(i)];
                    score = fma(a.x, b.x, score);
                    score = fma(a.y, b.y, score);
                    score = fma(a.z, b.z, score);
                    score = fma(a.w, b.w, score);
                }
            }
#pragma unroll
            for (uint m = parts / 2u; m > 0u; m /= 2u) {
                score += simd_shuffle_xor(score, ushort(m));
            }
            if (lane % parts == 0u) {
                weights[2u * cell] = score * scale;
                weights[2u * cell + 1u] = seen ? 1.0f : 0.0f;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane < BR) {
            float most_now = most;
            for (uint c = 0u; c < BC; c++) {
                uint cell = lane * BC + c;
                if (weights[2u * cell + 1u] != 0.0f) {
                    most_now = fmax(most_now, weights[2u * cell]);
                }
            }
            float keep = precise::exp(most - most_now);
            weight *= keep;
            most = most_now;
            keeps[lane] = keep;
            for (uint c = 0u; c < BC; c++) {
                uint cell = lane * BC + c;
                if (weights[2u * cell + 1u] != 0.0f) {
                    float p = precise::exp(weights[2u * cell] - most);
                    weights[2u * cell] = p;
                    weight += p;
                } else {
                    weights[2u * cell] = -1.0f;
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint r = 0u; r < BR; r++) {
            float keep = keeps[r];
#pragma unroll
            for (uint i = 0u; i < columns; i++) {
                sum[r * columns + i] *= keep;
            }
            for (uint c = 0u; c < BC; c++) {
                float p = weights[2u * (r * BC + c)];
                if (!(p < 0.0f)) {
                    ulong from = (cache + ulong(base + c) * ulong(heads_kv)) * ulong(D) + ulong(lane);
#pragma unroll
                    for (uint i = 0u; i < columns; i++) {
                        sum[r * columns + i] = fma(p, v[from + ulong(32u * i)], sum[r * columns + i]);
                    }
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    if (lane < BR) {
        // No key seen: weight is exactly 0. A NaN weight is not, and stays visible.
        keeps[lane] = weight == 0.0f ? 0.0f : 1.0f / weight;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint r = 0u; r < BR; r++) {
        if (t0 + ulong(r) <= last) {
            float inverse = keeps[r];
            ulong at = (row0 + ulong(r) * ulong(heads)) * ulong(D) + ulong(lane);
#pragma unroll
            for (uint i = 0u; i < columns; i++) {
                ingot_attn_store(o, at + ulong(32u * i), sum[r * columns + i] * inverse, out_bf16);
            }
        }
    }
}

// The formula, visibility and live values of flash_attn_rows, for D = 128.
//
// Slots: 0 q f32 [B, Tq, H, 128], 1 k f32 [B, capacity, Hkv, 128], 2 v as k, 3 o f32 as q (may be q itself), 4 B, 5 Tq, 6 Tkv
//        u32 (device), 7 H, 8 Hkv (divides H), 9 window (0: all), 10 scale f32, 11 q_pos u32 (device), 12 kv_pos u32
//        (device), 13 capacity in positions.
// Geometry: ceil(Tq / 8) x (B H) threadgroups of 32 threads. q and k start at a multiple of 16 bytes.
// Threadgroup memory: 544 bytes, static.
kernel void flash_attn_swa_h128(device const float4* q [[buffer(0)]],
                                device const float4* k [[buffer(1)]],
                                device const float* v [[buffer(2)]],
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
                                constant uint& capacity [[buffer(13)]],
                                uint2 tile [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float weights[128];
    threadgroup float keeps[8];
    if (ulong(tile.y) >= ulong(B) * ulong(H) || ulong(tile.x) * 8ul >= ulong(Tq)) {
        return;
    }
    ingot_attn_tiled<128, 8, 8>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], 0u, capacity, tile.x, tile.y,
                                lane, weights, keeps);
}

// The same for D = 256.
//
// Slots: 0 to 12 those of flash_attn_swa_h128 with 256 for 128, but 3 o f32 or bf16; 13 out_bf16, 14 capacity in positions.
// Geometry: that of flash_attn_swa_h128.
// Threadgroup memory: 544 bytes, static.
kernel void flash_attn_swa_h256(device const float4* q [[buffer(0)]],
                                device const float4* k [[buffer(1)]],
                                device const float* v [[buffer(2)]],
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
                                uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float weights[128];
    threadgroup float keeps[8];
    if (ulong(tile.y) >= ulong(B) * ulong(H) || ulong(tile.x) * 8ul >= ulong(Tq)) {
        return;
    }
    ingot_attn_tiled<256, 8, 8>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], out_bf16, capacity, tile.x,
                                tile.y, lane, weights, keeps);
}

// The same for D = 512, without a window.
//
// Slots: 0 q f32 [B, Tq, H, 512], 1 k f32 [B, capacity, Hkv, 512], 2 v as k, 3 o f32 or bf16 as q (f32: may be q itself), 4 B,
//        5 Tq, 6 Tkv u32 (device), 7 H, 8 Hkv (divides H), 9 scale f32, 10 q_pos u32 (device), 11 kv_pos u32 (device),
//        12 out_bf16, 13 capacity in positions.
// Geometry: ceil(Tq / 4) x (B H) threadgroups of 32 threads. q and k start at a multiple of 16 bytes.
// Threadgroup memory: 144 bytes, static.
kernel void flash_attn_global_h512(device const float4* q [[buffer(0)]],
                                   device const float4* k [[buffer(1)]],
                                   device const float* v [[buffer(2)]],
                                   device float* o [[buffer(3)]],
                                   constant uint& B [[buffer(4)]],
                                   constant uint& Tq [[buffer(5)]],
                                   device const uint* Tkv [[buffer(6)]],
                                   constant uint& H [[buffer(7)]],
                                   constant uint& Hkv [[buffer(8)]],
                                   constant float& scale [[buffer(9)]],
                                   device const uint* q_pos [[buffer(10)]],
                                   device const uint* kv_pos [[buffer(11)]],
                                   constant uint& out_bf16 [[buffer(12)]],
                                   constant uint& capacity [[buffer(13)]],
                                   uint2 tile [[threadgroup_position_in_grid]],
                                   uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float weights[32];
    threadgroup float keeps[4];
    if (ulong(tile.y) >= ulong(B) * ulong(H) || ulong(tile.x) * 4ul >= ulong(Tq)) {
        return;
    }
    ingot_attn_tiled<512, 4, 4>(q, k, v, o, Tq, Tkv[0], H, Hkv, 0u, scale, q_pos[0], kv_pos[0], out_bf16, capacity, tile.x, tile.y,
                                lane, weights, keeps);
}
