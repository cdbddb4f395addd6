// The codec of vectors in a KV cache that nn/quant calls TQHB: codebooks, signs and the value of a code.

#ifndef INGOT_TQHB_H
#define INGOT_TQHB_H

#include "common.h"
#include "zz_tqhb.h"

// The codebook of 5, 6 or 8 bits.
INGOT_FUNC constant float* ingot_tqhb_levels(uint bits) {
    if (bits == 5u) {
        return ingot_tqhb_levels_5;
    }
    return bits == 6u ? ingot_tqhb_levels_6 : ingot_tqhb_levels_8;
}

// What a level is multiplied with: the norm over the square root of the dimension, or over the factor.
INGOT_FUNC float ingot_tqhb_scale(float norm, float divisor) { return norm / divisor; }

// The value of a code. Codes beyond the codebook count as the last one.
INGOT_FUNC float ingot_tqhb_value(constant float* levels, uint bits, uchar code, float scale) {
    return levels[min(uint(code), (1u << bits) - 1u)] * scale;
}

#endif
