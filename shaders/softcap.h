// Logit softcapping.

#ifndef INGOT_SOFTCAP_H
#define INGOT_SOFTCAP_H

#include "common.h"

// Not infinite and not NaN, from the bits: stays right under any floating-point flags.
INGOT_FUNC bool ingot_finite(float x) {
    return (as_type<uint>(x) & 0x7f800000u) != 0x7f800000u;
}

// softcap(x) = cap * tanh(x / cap)     (Gemma 2 report, arXiv:2408.00118, section 2)
// A cap that is not positive and finite means none: x comes back. So it does where x / cap is so small that tanh changes
// nothing in f32 (z^2 / 3 < 2^-26), which also keeps a quotient that is flushed to zero from losing x. x / cap is limited
// to +-16, where tanh has long been +-1.
INGOT_FUNC float ingot_softcap(float x, float cap) {
    if (!ingot_finite(cap) || cap <= 0.0f) {
        return x;
    }
    float z = x / cap;
    if (z > -1e-4f && z < 1e-4f) {
        return x;
    }
    z = z > 16.0f ? 16.0f : z;
    z = z < -16.0f ? -16.0f : z;
    return cap * precise::tanh(z);
}

#endif
