// What is kept of past positions: stores at a place that is read on the device, and a ring buffer put in order.

#include "common.h"
#include "convert.h"

// Whether n elements fit at offset of a cache of that capacity; no sum can wrap.
INGOT_FUNC bool ingot_fits(uint offset, uint n, uint capacity) {
    return n <= capacity && offset <= capacity - n;
}

// dst[offset + i] = src[i], i < n; nothing if that does not fit within capacity
//
// Slots: 0 src f32 [n], 1 dst f32 [capacity], 2 n, 3 offset u32 (device), 4 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep(device const float* src [[buffer(0)]],
                              device float* dst [[buffer(1)]],
                              constant uint& n [[buffer(2)]],
                              device const uint* offset [[buffer(3)]],
                              constant uint& capacity [[buffer(4)]],
                              uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    dst[ulong(to) + ulong(gid)] = src[gid];
}

// dst_k[offset + i] = k[i] and dst_v[offset + i] = v[i], i < n; nothing if that does not fit within capacity
//
// Slots: 0 k f32 [n], 1 v f32 [n], 2 dst_k f32 [capacity], 3 dst_v f32 [capacity], 4 n, 5 offset u32 (device),
//        6 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_pair(device const float* k [[buffer(0)]],
                                   device const float* v [[buffer(1)]],
                                   device float* dst_k [[buffer(2)]],
                                   device float* dst_v [[buffer(3)]],
                                   constant uint& n [[buffer(4)]],
                                   device const uint* offset [[buffer(5)]],
                                   constant uint& capacity [[buffer(6)]],
                                   uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    ulong at = ulong(to) + ulong(gid);
    dst_k[at] = k[gid];
    dst_v[at] = v[gid];
}

// dst[offset + i] = f16(src[i]), i < n; nothing if that does not fit within capacity
//
// Slots: 0 src f32 [n], 1 dst f16 [capacity], 2 n, 3 offset u32 (device), 4 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_f16(device const float* src [[buffer(0)]],
                                  device half* dst [[buffer(1)]],
                                  constant uint& n [[buffer(2)]],
                                  device const uint* offset [[buffer(3)]],
                                  constant uint& capacity [[buffer(4)]],
                                  uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    dst[ulong(to) + ulong(gid)] = half(src[gid]);
}

// dst_k[offset + i] = f16(k[i]) and dst_v[offset + i] = f16(v[i]), i < n; nothing if that does not fit within capacity
//
// Slots: 0 k f32 [n], 1 v f32 [n], 2 dst_k f16 [capacity], 3 dst_v f16 [capacity], 4 n, 5 offset u32 (device),
//        6 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_pair_f16(device const float* k [[buffer(0)]],
                                       device const float* v [[buffer(1)]],
                                       device half* dst_k [[buffer(2)]],
                                       device half* dst_v [[buffer(3)]],
                                       constant uint& n [[buffer(4)]],
                                       device const uint* offset [[buffer(5)]],
                                       constant uint& capacity [[buffer(6)]],
                                       uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    ulong at = ulong(to) + ulong(gid);
    dst_k[at] = half(k[gid]);
    dst_v[at] = half(v[gid]);
}

// dst[offset + i] = bf16(src[i]), i < n; nothing if that does not fit within capacity
//
// Slots: 0 src f32 [n], 1 dst bf16 [capacity], 2 n, 3 offset u32 (device), 4 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_bf16(device const float* src [[buffer(0)]],
                                   device ushort* dst [[buffer(1)]],
                                   constant uint& n [[buffer(2)]],
                                   device const uint* offset [[buffer(3)]],
                                   constant uint& capacity [[buffer(4)]],
                                   uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    dst[ulong(to) + ulong(gid)] = ingot_bf16_bits(src[gid]);
}

// dst_k[offset + i] = bf16(k[i]) and dst_v[offset + i] = bf16(v[i]), i < n; nothing if that does not fit within capacity
//
// Slots: 0 k f32 [n], 1 v f32 [n], 2 dst_k bf16 [capacity], 3 dst_v bf16 [capacity], 4 n, 5 offset u32 (device),
//        6 capacity; all in elements.
// Geometry: one thread for each element, any number per threadgroup.
// Threadgroup memory: none.
kernel void kv_store_timestep_pair_bf16(device const float* k [[buffer(0)]],
                                        device const float* v [[buffer(1)]],
                                        device ushort* dst_k [[buffer(2)]],
                                        device ushort* dst_v [[buffer(3)]],
                                        constant uint& n [[buffer(4)]],
                                        device const uint* offset [[buffer(5)]],
                                        constant uint& capacity [[buffer(6)]],
                                        uint gid [[thread_position_in_grid]]) {
    uint to = offset[0];
    if (gid >= n || !ingot_fits(to, n, capacity)) {
        return;
    }
    ulong at = ulong(to) + ulong(gid);
    dst_k[at] = ingot_bf16_bits(k[gid]);
    dst_v[at] = ingot_bf16_bits(v[gid]);
}

// dst[t, i] = src[(start + t) mod capacity, i], t < min(filled, capacity), i < slot: what a ring buffer holds, the oldest
// first. The elements have 32 bits, whatever they mean. What lies behind in dst stays as it is.
//
// Slots: 0 src [capacity, slot], 1 dst [capacity, slot], 2 slot, 3 capacity, 4 filled u32 (device), 5 start u32 (device).
// Geometry: one thread for each of capacity * slot elements, any number per threadgroup; their number is below 2^32.
// Threadgroup memory: none.
kernel void kv_ring_densify_b32(device const uint* src [[buffer(0)]],
                                device uint* dst [[buffer(1)]],
                                constant uint& slot [[buffer(2)]],
                                constant uint& capacity [[buffer(3)]],
                                device const uint* filled [[buffer(4)]],
                                device const uint* start [[buffer(5)]],
                                uint gid [[thread_position_in_grid]]) {
    uint t = gid / slot;
    if (t >= capacity || t >= filled[0]) {
        return;
    }
    uint i = gid - t * slot;
    ulong from = (ulong(start[0]) + ulong(t)) % ulong(capacity);
    dst[ulong(gid)] = src[from * ulong(slot) + ulong(i)];
}

// dst[t, i] = src[(start + t) mod capacity, i], t < min(filled, capacity), i < slot: what a ring buffer holds, the oldest
// first. The elements have 16 bits, whatever they mean. What lies behind in dst stays as it is.
//
// Slots: 0 src [capacity, slot], 1 dst [capacity, slot], 2 slot, 3 capacity, 4 filled u32 (device), 5 start u32 (device).
// Geometry: one thread for each of capacity * slot elements, any number per threadgroup; their number is below 2^32.
// Threadgroup memory: none.
kernel void kv_ring_densify_b16(device const ushort* src [[buffer(0)]],
                                device ushort* dst [[buffer(1)]],
                                constant uint& slot [[buffer(2)]],
                                constant uint& capacity [[buffer(3)]],
                                device const uint* filled [[buffer(4)]],
                                device const uint* start [[buffer(5)]],
                                uint gid [[thread_position_in_grid]]) {
    uint t = gid / slot;
    if (t >= capacity || t >= filled[0]) {
        return;
    }
    uint i = gid - t * slot;
    ulong from = (ulong(start[0]) + ulong(t)) % ulong(capacity);
    dst[ulong(gid)] = src[from * ulong(slot) + ulong(i)];
}
