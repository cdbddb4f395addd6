// Conversions between f32 and bf16 by their bits: the same on every device and under any floating-point flags.

#ifndef INGOT_CONVERT_H
#define INGOT_CONVERT_H

#include "common.h"

// The bf16 nearest to x, ties to even; what rounds beyond the largest becomes infinite. Subnormal numbers are kept. A NaN
// becomes quiet and keeps its sign and the upper bits of its payload: cut off without care, one whose payload is small
// would become infinite.
INGOT_FUNC ushort ingot_bf16_bits(float x) {
    uint bits = as_type<uint>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return ushort((bits >> 16u) | 0x40u);
    }
    return ushort((bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u);
}

INGOT_FUNC float ingot_from_bf16_bits(ushort bits) {
    return as_type<float>(uint(bits) << 16u);
}

// Not a number, from the bits.
INGOT_FUNC bool ingot_nan(float x) {
    return (as_type<uint>(x) & 0x7fffffffu) > 0x7f800000u;
}

#endif
