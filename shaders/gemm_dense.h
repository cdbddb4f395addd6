// What the products of dense matrices and vectors share: their function constants, what follows the sums, and reading
// matrices of f32, f16 and bf16.

#ifndef INGOT_GEMM_DENSE_H
#define INGOT_GEMM_DENSE_H

#include "common.h"
#include "convert.h"
#include "gelu.h"
#include "silu.h"

// Function constants. All sources are compiled as one, so that no two constants may have an index in common.
constant bool ingot_dense_trans_a [[function_constant(100)]];    // a is stored transposed
constant bool ingot_dense_trans_b [[function_constant(101)]];    // b is
constant bool ingot_dense_wide_a [[function_constant(102)]];     // a starts at a multiple of four elements
constant bool ingot_dense_wide_b [[function_constant(103)]];     // b does
constant bool ingot_dense_has_c [[function_constant(104)]];      // beta * c is added
constant bool ingot_dense_has_bias [[function_constant(105)]];   // the bias is added
constant uint ingot_dense_act [[function_constant(106)]];        // the activation
constant uint ingot_dense_out [[function_constant(107)]];        // the type of out and c

#define INGOT_ACT_NONE 0
#define INGOT_ACT_RELU 1
#define INGOT_ACT_GELU 2
#define INGOT_ACT_SILU 3

#define INGOT_OUT_F32 0
#define INGOT_OUT_F16 1
#define INGOT_OUT_BF16 2

// Says that all rows of matrices that start at a multiple of four elements do so, so that four can be read at once.
INGOT_FUNC bool ingot_dense_rows(bool start, uint cols, uint stride) {
    return start && (cols | stride) % 4u == 0u;
}

// Element at of c, widened: exact.
INGOT_FUNC float ingot_dense_load(device const uchar* c, ulong at) {
    if (ingot_dense_out == INGOT_OUT_F16) {
        return float(((device const half*)c)[at]);
    }
    if (ingot_dense_out == INGOT_OUT_BF16) {
        return ingot_from_bf16_bits(((device const ushort*)c)[at]);
    }
    return ((device const float*)c)[at];
}

// Element at of out is x, rounded to its type, ties to even; beyond the largest finite number it is infinite.
INGOT_FUNC void ingot_dense_store(device uchar* out, ulong at, float x) {
    if (ingot_dense_out == INGOT_OUT_F16) {
        ((device half*)out)[at] = half(x);
    } else if (ingot_dense_out == INGOT_OUT_BF16) {
        ((device ushort*)out)[at] = ingot_bf16_bits(x);
    } else {
        ((device float*)out)[at] = x;
    }
}

// act(alpha * sum + beta * c[at_c] + bias[n]), without the terms that there are not.
INGOT_FUNC float ingot_dense_finish(float sum, float alpha, float beta, device const uchar* c, ulong at_c,
                                    device const float* bias, uint n) {
    float x = alpha * sum;
    if (ingot_dense_has_c) {
        x = fma(beta, ingot_dense_load(c, at_c), x);
    }
    if (ingot_dense_has_bias) {
        x = x + bias[n];
    }
    if (ingot_dense_act == INGOT_ACT_RELU) {
        return x < 0.0f ? 0.0f : x;
    }
    if (ingot_dense_act == INGOT_ACT_GELU) {
        return ingot_gelu(x);
    }
    if (ingot_dense_act == INGOT_ACT_SILU) {
        return ingot_silu(x);
    }
    return x;
}

#endif
