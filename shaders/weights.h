// Reading rows of weights of any type, four at a time, as the numbers they are.
//
// A struct below is a place within a row: a run of `values` weights, of which ingot_quad gives weights 4 i to 4 i + 3, to
// the bit what the definition of the format gives in f32. Rows start at a multiple of 16 bytes if they are of f32, q4_k or q5_k,
// of 8 if of f16 or bf16, and else of 2. The block formats are those of ggml; see package nn/quant: `block` weights in
// `bytes` bytes.

#ifndef INGOT_WEIGHTS_H
#define INGOT_WEIGHTS_H

#include "common.h"

// Four bytes that lie at a multiple of two.
INGOT_FUNC uint ingot_bytes4(device const ushort* at) { return uint(at[0]) | uint(at[1]) << 16u; }

// Four codes, one in each byte.
INGOT_FUNC float4 ingot_codes(uint four) { return float4(as_type<uchar4>(four)); }

// The bytes of a row of a block format.
template <typename W>
INGOT_FUNC ulong ingot_row_bytes(uint cols) {
    return ulong(cols / uint(W::block)) * ulong(W::bytes);
}

struct ingot_f32 {
    enum { values = 4 };
    device const float4* at;
};

INGOT_FUNC void ingot_seek(thread ingot_f32& s, device const uchar* row, uint run) { s.at = (device const float4*)row + run; }
INGOT_FUNC float4 ingot_quad(thread const ingot_f32& s, uint) { return *s.at; }

struct ingot_f16 {
    enum { values = 4 };
    device const half4* at;
};

INGOT_FUNC void ingot_seek(thread ingot_f16& s, device const uchar* row, uint run) { s.at = (device const half4*)row + run; }
INGOT_FUNC float4 ingot_quad(thread const ingot_f16& s, uint) { return float4(*s.at); }

struct ingot_bf16 {
    enum { values = 4 };
    device const ushort4* at;
};

INGOT_FUNC void ingot_seek(thread ingot_bf16& s, device const uchar* row, uint run) { s.at = (device const ushort4*)row + run; }
INGOT_FUNC float4 ingot_quad(thread const ingot_bf16& s, uint) { return as_type<float4>(uint4(*s.at) << 16u); }

// Q8_0: blocks of 34 bytes for 32 weights, d f16 and 32 signed codes; w = d q. A run is half a block.
struct ingot_q8_0 {
    enum { values = 16, block = 32, bytes = 34 };
    float d;
    device const ushort* codes;
};

INGOT_FUNC void ingot_seek(thread ingot_q8_0& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 2u) * 34ul;
    s.d = float(*(device const half*)block);
    s.codes = (device const ushort*)(block + 2) + (run % 2u) * 8u;
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q8_0& s, uint i) {
    return s.d * float4(as_type<char4>(ingot_bytes4(s.codes + 2u * i)));
}

// Q4_0: blocks of 18 bytes for 32 weights, d f16 and 16 bytes, whose low halves are the codes of the first 16 weights;
// w = d (q - 8). A run is half a block.
struct ingot_q4_0 {
    enum { values = 16, block = 32, bytes = 18 };
    float d;
    uint shift;
    device const ushort* codes;
};

INGOT_FUNC void ingot_seek(thread ingot_q4_0& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 2u) * 18ul;
    s.d = float(*(device const half*)block);
    s.shift = run % 2u * 4u;
    s.codes = (device const ushort*)(block + 2);
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q4_0& s, uint i) {
    return s.d * (ingot_codes(ingot_bytes4(s.codes + 2u * i) >> s.shift & 0x0f0f0f0fu) - 8.0f);
}

// IQ4_NL: as Q4_0, but w = d T[q].
struct ingot_iq4_nl {
    enum { values = 16, block = 32, bytes = 18 };
    float d;
    uint shift;
    device const ushort* codes;
};

constant float ingot_iq4_nl_values[16] = {-127.0f, -104.0f, -83.0f, -65.0f, -49.0f, -35.0f, -22.0f, -10.0f,
                                          1.0f, 13.0f, 25.0f, 38.0f, 53.0f, 69.0f, 89.0f, 113.0f};

INGOT_FUNC void ingot_seek(thread ingot_iq4_nl& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 2u) * 18ul;
    s.d = float(*(device const half*)block);
    s.shift = run % 2u * 4u;
    s.codes = (device const ushort*)(block + 2);
}

INGOT_FUNC float4 ingot_quad(thread const ingot_iq4_nl& s, uint i) {
    uint four = ingot_bytes4(s.codes + 2u * i) >> s.shift;
    return s.d * float4(ingot_iq4_nl_values[four & 15u], ingot_iq4_nl_values[four >> 8u & 15u],
                        ingot_iq4_nl_values[four >> 16u & 15u], ingot_iq4_nl_values[four >> 24u & 15u]);
}

// Q5_0: blocks of 22 bytes for 32 weights, d f16, the fifth bits of the 32 codes, and the other four as in Q4_0;
// w = d (q - 16). A run is half a block.
struct ingot_q5_0 {
    enum { values = 16, block = 32, bytes = 22 };
    float d;
    uint shift;
    uint high;
    device const ushort* codes;
};

INGOT_FUNC void ingot_seek(thread ingot_q5_0& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 2u) * 22ul;
    s.d = float(*(device const half*)block);
    s.shift = run % 2u * 4u;
    s.high = ((device const ushort*)block)[1u + run % 2u];
    s.codes = (device const ushort*)(block + 6);
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q5_0& s, uint i) {
    // The multiplication puts a copy of the four bits at every seventh place: bit b of them is bit 8 b of the product.
    uint fifth = ((s.high >> 4u * i & 15u) * 0x00204081u & 0x01010101u) << 4u;
    return s.d * (ingot_codes((ingot_bytes4(s.codes + 2u * i) >> s.shift & 0x0f0f0f0fu) | fifth) - 16.0f);
}

// The scale and the offset of run j of a block of Q4_K or Q5_K, each of 6 bits, from its 12 bytes at `at`. Of the first four
// of each, the upper two bits of a byte belong to the last four.
INGOT_FUNC float2 ingot_k_scale(device const uchar* at, uint j) {
    uint low = at[j & 3u];          // scale j, and the top of scale j + 4
    uint high = at[(j & 3u) + 4u];  // offset j, and the top of offset j + 4
    uint last = at[(j & 3u) + 8u];  // the low halves of scale and offset j + 4
    bool first = j < 4u;
    uint scale = first ? low & 63u : (last & 15u) | low >> 6u << 4u;
    uint offset = first ? high & 63u : last >> 4u | high >> 6u << 4u;
    return float2(float(scale), float(offset));
}

// Q4_K: blocks of 144 bytes for 256 weights, d and dmin f16, 12 bytes of scales and offsets, and 128 bytes, each 32 of which
// hold two runs of 32 weights; w = d scale q - dmin offset.
struct ingot_q4_k {
    enum { values = 32, block = 256, bytes = 144 };
    float d;
    float m;
    uint shift;
    device const uint* codes;
};

INGOT_FUNC void ingot_seek(thread ingot_q4_k& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 8u) * 144ul;
    uint j = run % 8u;
    float2 scale = ingot_k_scale(block + 4, j);
    half2 d = *(device const half2*)block;
    s.d = float(d.x) * scale.x;
    s.m = float(d.y) * scale.y;
    s.shift = j % 2u * 4u;
    s.codes = (device const uint*)(block + 16) + j / 2u * 8u;
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q4_k& s, uint i) {
    return fma(float4(s.d), ingot_codes(s.codes[i] >> s.shift & 0x0f0f0f0fu), float4(-s.m));
}

// Q5_K: blocks of 176 bytes, as Q4_K with 32 bytes before the 128: bit j of byte i is the fifth bit of weight i of run j.
struct ingot_q5_k {
    enum { values = 32, block = 256, bytes = 176 };
    float d;
    float m;
    uint run;
    device const uint* codes;
    device const uint* high;
};

INGOT_FUNC void ingot_seek(thread ingot_q5_k& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 8u) * 176ul;
    uint j = run % 8u;
    float2 scale = ingot_k_scale(block + 4, j);
    half2 d = *(device const half2*)block;
    s.d = float(d.x) * scale.x;
    s.m = float(d.y) * scale.y;
    s.run = j;
    s.high = (device const uint*)(block + 16);
    s.codes = (device const uint*)(block + 48) + j / 2u * 8u;
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q5_k& s, uint i) {
    uint fifth = (s.high[i] >> s.run & 0x01010101u) << 4u;
    return fma(float4(s.d), ingot_codes((s.codes[i] >> s.run % 2u * 4u & 0x0f0f0f0fu) | fifth), float4(-s.m));
}

// Q6_K: blocks of 210 bytes for 256 weights. Each half of a block has four runs of 32 weights: their low four bits are in 64
// bytes, two runs in each 32 of them, and their high two in 32. The halves' low bits come first, then their high bits, then 16
// signed scales, each of 16 weights, and d f16; w = d scale (q - 32).
struct ingot_q6_k {
    enum { values = 32, block = 256, bytes = 210 };
    float2 d;
    uint low_shift;
    uint high_shift;
    device const ushort* low;
    device const ushort* high;
};

INGOT_FUNC void ingot_seek(thread ingot_q6_k& s, device const uchar* row, uint run) {
    device const uchar* block = row + ulong(run / 8u) * 210ul;
    uint j = run % 4u;
    uint part = run % 8u / 4u;
    s.low = (device const ushort*)block + part * 32u + j % 2u * 16u;
    s.low_shift = j / 2u * 4u;
    s.high = (device const ushort*)block + 64u + part * 16u;
    s.high_shift = j * 2u;
    char2 scale = as_type<char2>(((device const ushort*)block)[96u + run % 8u]);
    s.d = float(*(device const half*)(block + 208)) * float2(scale);
}

INGOT_FUNC float4 ingot_quad(thread const ingot_q6_k& s, uint i) {
    uint low = ingot_bytes4(s.low + 2u * i) >> s.low_shift & 0x0f0f0f0fu;
    uint high = (ingot_bytes4(s.high + 2u * i) >> s.high_shift & 0x03030303u) << 4u;
    return (i < 4u ? s.d.x : s.d.y) * (ingot_codes(low | high) - 32.0f);
}

#endif
