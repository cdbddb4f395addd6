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
// Slots: 0 q f32 [B, Tq, H, 128], 1 k f32 [B, capacity, Hkv, 128], 2 v as k, 3 o f32 or bf16 [B, Tq, H, 128] (f32: may be
//        q itself), 4 B, 5 Tq, 6 Tkv u32 (device), 7 H, 8 Hkv (divides H), 9 window (0: all), 10 scale f32,
//        11 q_pos u32 (device), 12 kv_pos u32 (device), 13 out_bf16, 14 capacity in positions.
// Geometry: ceil(Tq / 32) x (B H) threadgroups; eight lanes per query row, four rows per simdgroup, eight simdgroups
//           (256 threads), or as few as cover Tq if that is less than 32: ceil(Tq / 4).
//           q, k and v start at a multiple of 16 bytes.
// Threadgroup memory: none.
kernel void flash_attn_rows_h128_r8_g8(device const float4* q [[buffer(0)]],
                                       device const float4* k [[buffer(1)]],
                                       device const float4* v [[buffer(2)]],
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
    ingot_attn_rows<128, 8, 8>(q, k, v, o, Tq, Tkv[0], H, Hkv, window, scale, q_pos[0], kv_pos[0], out_bf16, capacity,
                               tile.x, tile.y, simdgroup, lane);
}
