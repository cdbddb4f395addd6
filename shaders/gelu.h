// The tanh form of GELU, without the tanh.

#ifndef INGOT_GELU_H
#define INGOT_GELU_H

#include "common.h"

// gelu(x) = x/2 * (1 + tanh(u)), u = sqrt(2/pi) * (x + 0.044715 x^3)     (Hendrycks and Gimpel, arXiv:1606.08415)
//         = x / (1 + exp(-2u))                                           (the same function)
// The second form has no cancellation where tanh(u) is near -1 and needs no care for a tanh that overflows.
// u is limited to where exp(-2u) is finite; the value there is right to 1e-36. NaN stays NaN, +inf gives +inf, -inf
// gives about -0.
INGOT_FUNC float ingot_gelu(float x) {
    float low = x < -20.0f ? -20.0f : x;
    float c = low > 20.0f ? 20.0f : low;
    float u = 0.7978845608028654f * fma(0.044715f * c * c, c, c);
    float limited = u < -44.0f ? -44.0f : u;
    return low / (1.0f + precise::exp(-2.0f * limited));
}

#endif
