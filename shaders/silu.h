// SiLU, which is also called swish.

#ifndef INGOT_SILU_H
#define INGOT_SILU_H

#include "common.h"

// silu(x) = x / (1 + exp(-x)). x is limited to -104, where the result is -0: the quotient of infinities is NaN. NaN stays
// NaN.
INGOT_FUNC float ingot_silu(float x) {
    float low = x < -104.0f ? -104.0f : x;
    return low / (1.0f + precise::exp(-low));
}

#endif
