// Reading matrices in MLX's affine format as checkpoints hold them: codes of 4, 6 or 8 bits, scales and biases of f32, f16 or bf16.
//
// The codes of a row are a stream of bits, the lowest first: 16 codes are BITS / 2 words.

#ifndef INGOT_AFFINE_H
#define INGOT_AFFINE_H

#include "common.h"
#include "convert.h"

// Function constants: the types of x, of y, and of scales and biases.
constant uint ingot_affine_x [[function_constant(400)]];
constant uint ingot_affine_y [[function_constant(401)]];
constant uint ingot_affine_scale [[function_constant(402)]];

#define INGOT_AFFINE_F32 0
#define INGOT_AFFINE_F16 1
#define INGOT_AFFINE_BF16 2

// Number `at` of scales or biases, widened: exact.
INGOT_FUNC float ingot_affine_number(device const uchar* numbers, ulong at) {
    if (ingot_affine_scale == INGOT_AFFINE_F16) {
        return float(((device const half*)numbers)[at]);
    }
    if (ingot_affine_scale == INGOT_AFFINE_BF16) {
        return ingot_from_bf16_bits(((device const ushort*)numbers)[at]);
    }
    return ((device const float*)numbers)[at];
}

// Elements 4 at to 4 at + 3 of x, widened: exact.
INGOT_FUNC float4 ingot_affine_load(device const uchar* x, ulong at) {
    if (ingot_affine_x == INGOT_AFFINE_F16) {
        return float4(((device const half4*)x)[at]);
    }
    if (ingot_affine_x == INGOT_AFFINE_BF16) {
        return as_type<float4>(uint4(((device const ushort4*)x)[at]) << 16u);
    }
    return ((device const float4*)x)[at];
}

// Element `at` of y is v, rounded to its type, ties to even; beyond the largest finite number it is infinite.
INGOT_FUNC void ingot_affine_store(device uchar* y, ulong at, float v) {
    if (ingot_affine_y == INGOT_AFFINE_F16) {
        ((device half*)y)[at] = half(v);
    } else if (ingot_affine_y == INGOT_AFFINE_BF16) {
        ((device ushort*)y)[at] = ingot_bf16_bits(v);
    } else {
        ((device float*)y)[at] = v;
    }
}

// The words of 16 codes.
template <uint BITS>
INGOT_FUNC void ingot_affine_words(device const uint* packed, ulong at, thread uint* words) {
    if (BITS == 6u) {
        words[0] = packed[at];
        words[1] = packed[at + 1ul];
        words[2] = packed[at + 2ul];
        return;
    }
#pragma unroll
    for (uint i = 0u; i < BITS / 4u; i++) {
        uint2 two = *(device const uint2*)(packed + at + ulong(2u * i));
        words[2u * i] = two.x;
        words[2u * i + 1u] = two.y;
    }
}

// Codes 4 i to 4 i + 3 of 16, left where they are in their bits: each is 2^(BITS j) times its code, but with 8 bits.
template <uint BITS>
INGOT_FUNC float4 ingot_affine_quad(thread const uint* words, uint i) {
    if (BITS == 4u) {
        uint w = words[i / 2u] >> i % 2u * 16u;
        return float4(float(w & 0x000fu), float(w & 0x00f0u), float(w & 0x0f00u), float(w & 0xf000u));
    }
    if (BITS == 6u) {
        uint w = words[2] >> 8u;
        if (i == 0u) {
            w = words[0];
        } else if (i == 1u) {
            w = words[0] >> 24u | words[1] << 8u;
        } else if (i == 2u) {
            w = words[1] >> 16u | words[2] << 16u;
        }
        return float4(float(w & 0x00003fu), float(w & 0x000fc0u), float(w & 0x03f000u), float(w & 0xfc0000u));
    }
    return float4(as_type<uchar4>(words[i]));
}

// What such a quad is to be multiplied by, or x instead of it. Powers of two: exact.
template <uint BITS>
INGOT_FUNC float4 ingot_affine_places() {
    if (BITS == 4u) {
        return float4(1.0f, 0.0625f, 0.00390625f, 0.000244140625f);
    }
    if (BITS == 6u) {
        return float4(1.0f, 0.015625f, 0.000244140625f, 0.000003814697265625f);
    }
    return float4(1.0f);
}

// Weights 4 i to 4 i + 3 of 16: scale * code + bias, rounded once.
template <uint BITS>
INGOT_FUNC float4 ingot_affine_weights(thread const uint* words, uint i, float scale, float bias) {
    return fma(float4(scale), ingot_affine_quad<BITS>(words, i) * ingot_affine_places<BITS>(), float4(bias));
}

#endif
