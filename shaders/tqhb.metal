// Vectors of a KV cache, rotated and quantised to a byte a number: nn/quant's TQHB on the device.

#include "common.h"
#include "tqhb.h"

// A simdgroup encodes a vector; lane l has the numbers l E, l E + 1, ..., E = D / 32. The sums and differences of the rotation
// are those of the host, in the same order.
template <uint D>
INGOT_FUNC void ingot_tqhb_encode(device const float* x, device uchar* codes, device float* norms, uint bits, float divisor,
                                  uint lane) {
    const uint E = D / 32u;
    float v[E];
#pragma unroll
    for (uint i = 0u; i < E; i++) {
        uint at = lane * E + i;
        uint sign = ingot_tqhb_signs[at / 32u] >> (at % 32u) << 31u;
        v[i] = as_type<float>(as_type<uint>(x[at]) ^ sign);
    }
#pragma unroll
    for (uint h = 1u; h < E; h *= 2u) {
#pragma unroll
        for (uint i = 0u; i < E; i++) {
            if ((i & h) == 0u) {
                float a = v[i];
                float b = v[i + h];
                v[i] = a + b;
                v[i + h] = a - b;
            }
        }
    }
#pragma unroll
    for (uint m = 1u; m < 32u; m *= 2u) {
        bool upper = (lane & m) != 0u;
#pragma unroll
        for (uint i = 0u; i < E; i++) {
            float other = simd_shuffle_xor(v[i], ushort(m));
            v[i] = upper ? other - v[i] : v[i] + other;
        }
    }
    const float root = D == 64u ? 0.125f : D == 128u ? 0.088388348f : D == 256u ? 0.0625f : 0.044194174f; // 1 / sqrt(D)
    float squares = 0.0f;
#pragma unroll
    for (uint i = 0u; i < E; i++) {
        v[i] *= root;
        squares = fma(v[i], v[i], squares);
    }
    float norm;
    if (D == 512u) { // halves have norms of their own; both sums are taken by all lanes
        float low = simd_sum(lane < 16u ? squares : 0.0f);
        float high = simd_sum(lane < 16u ? 0.0f : squares);
        norm = precise::sqrt((lane < 16u ? low : high) * (1.0f / 256.0f));
        if (lane % 16u == 0u) {
            norms[lane / 16u] = norm;
        }
    } else {
        norm = precise::sqrt(simd_sum(squares));
        if (lane == 0u) {
            norms[0] = norm;
        }
    }
    float scale = norm > 1e-10f ? divisor / norm : 0.0f;
    constant float* levels = ingot_tqhb_levels(bits);
#pragma unroll
    for (uint i = 0u; i < E; i++) {
        // How many of the middles between levels are below.
        float w = v[i] * scale;
        uint code = 0u;
        for (uint step = 1u << (bits - 1u); step > 0u; step /= 2u) {
            uint next = code + step;
            if ((levels[next - 1u] + levels[next]) * 0.5f < w) {
                code = next;
            }
        }
        codes[lane * E + i] = uchar(code);
    }
}

// codes[h, pos, :], norms[h, pos, :] = TQHB of x[t, h, :], pos = start[0] + t for token t and head h; modulo capacity if ring is
// not 0, and nothing is written to a position from capacity on if it is.
//
// Slots: 0 x f32 [T, Hkv, D], 1 codes u8 [Hkv, capacity, D], 2 norms f32 [Hkv, capacity, D > 256 ? 2 : 1], 3 start u32
//        (device), 4 T, 5 Hkv, 6 capacity, 7 bits (5, 6 or 8), 8 divisor f32 (sqrt(D), or the factor of D = 512), 9 ring.
// Geometry: T Hkv threadgroups of 32 threads. Threadgroup memory: none.
template <uint D>
kernel void tqhb_encode(device const float* x [[buffer(0)]],
                        device uchar* codes [[buffer(1)]],
                        device float* norms [[buffer(2)]],
                        device const uint* start [[buffer(3)]],
                        constant uint& T [[buffer(4)]],
                        constant uint& Hkv [[buffer(5)]],
                        constant uint& capacity [[buffer(6)]],
                        constant uint& bits [[buffer(7)]],
                        constant float& divisor [[buffer(8)]],
                        constant uint& ring [[buffer(9)]],
                        uint group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    uint t = group / Hkv;
    uint head = group - t * Hkv;
    ulong pos = ulong(start[0]) + ulong(t);
    if (ring != 0u) {
        pos %= ulong(capacity);
    }
    if (t >= T || pos >= ulong(capacity)) {
        return;
    }
    ulong at = ulong(head) * ulong(capacity) + pos;
    ingot_tqhb_encode<D>(x + ulong(group) * ulong(D), codes + at * ulong(D), norms + at * ulong(D / 512u + 1u), bits, divisor,
                         lane);
}

typedef decltype(tqhb_encode<64>) tqhb_encoder;
template [[host_name("tqhb_encode_h64")]] kernel tqhb_encoder tqhb_encode<64>;
template [[host_name("tqhb_encode_h128")]] kernel tqhb_encoder tqhb_encode<128>;
template [[host_name("tqhb_encode_h256")]] kernel tqhb_encoder tqhb_encode<256>;
template [[host_name("tqhb_encode_h512")]] kernel tqhb_encoder tqhb_encode<512>;

// out[i] = level[codes[i]] (norm / divisor), still rotated; the norm is that of i's block of numbers.
//
// Slots: 0 codes u8 [n], 1 norms f32 [n / block], 2 out f32 [n], 3 n, 4 block (64, 128 or 256), 5 bits (5, 6 or 8), 6 divisor
//        f32.
// Geometry: a thread for each number. Threadgroup memory: none.
kernel void tqhb_dequantize(device const uchar* codes [[buffer(0)]],
                            device const float* norms [[buffer(1)]],
                            device float* out [[buffer(2)]],
                            constant uint& n [[buffer(3)]],
                            constant uint& block [[buffer(4)]],
                            constant uint& bits [[buffer(5)]],
                            constant float& divisor [[buffer(6)]],
                            uint i [[thread_position_in_grid]]) {
    if (i >= n) {
        return;
    }
    out[i] = ingot_tqhb_value(ingot_tqhb_levels(bits), bits, codes[i], ingot_tqhb_scale(norms[i / block], divisor));
}

