// What the precise attention kernels share: parameters, which keys a row sees, scores, weights, and V in its three forms.

#ifndef INGOT_ATTN_PRECISE_H
#define INGOT_ATTN_PRECISE_H

#include "common.h"
#include "tqhb.h"

// Shapes, strides in elements: (batch, head, row). NQ and NK are numbers of tiles, *_aligned of whole ones, *_rem the rows left.
struct ingot_attn_params {
    int B;
    int H;
    int D;
    int qL;
    int kL;
    int gqa_factor;
    float scale;
    float softcap;
    int NQ;
    int NK;
    int NQ_aligned;
    int NK_aligned;
    int qL_rem;
    int kL_rem;
    int qL_off; // position of query row 0 among the keys
    int pad;
    long Q_strides[3];
    long K_strides[3];
    long V_strides[3];
    long O_strides[3];
};

struct ingot_attn_mask_params {
    long M_strides[3];
};

struct ingot_attn_precise_params {
    int window;
    int codebook_bits;
    float divisor; // of norms: sqrt(D), or the factor of D = 512
    int norms_per_pos;
    long n_strides[3];
};

constant bool ingot_align_q [[function_constant(200)]];     // qL is whole tiles
constant bool ingot_align_k [[function_constant(201)]];     // kL is whole tiles
constant bool ingot_has_mask [[function_constant(300)]];    // an additive mask
constant bool ingot_do_causal [[function_constant(301)]];   // keys up to the row's position
constant bool ingot_has_blk [[function_constant(303)]];     // the mask's tiles are classified
constant bool ingot_has_window [[function_constant(310)]];  // the last `window` of these
constant bool ingot_has_softcap [[function_constant(311)]]; // softcap tanh(score / softcap)
constant bool ingot_has_sinks [[function_constant(312)]];   // a weight without a value for each head

// Whether the row at position pos among the keys sees key.
INGOT_FUNC bool ingot_precise_sees(long pos, long key, int window) {
    if (ingot_do_causal && key > pos) {
        return false;
    }
    return !ingot_has_window || pos - key < long(window);
}

// The exponent of a score: to base 2 or e.
template <bool EXP2>
INGOT_FUNC float ingot_precise_exponent(float dot, constant ingot_attn_params& p) {
    if (ingot_has_softcap) {
        float capped = p.softcap * precise::tanh(dot * p.scale / p.softcap);
        return EXP2 ? capped * M_LOG2E_F : capped;
    }
    return EXP2 ? dot * (p.scale * M_LOG2E_F) : dot * p.scale;
}

template <bool EXP2>
INGOT_FUNC float ingot_precise_exp(float x) {
    return EXP2 ? precise::exp2(x) : precise::exp(x);
}

// Two numbers of V from element `at` on, widened. Norms of codes are at `norm`.
INGOT_FUNC float2 ingot_precise_v2(device const float* v, ulong at, device const float*, ulong, constant ingot_attn_precise_params&) {
    return *(device const float2*)(v + at);
}
INGOT_FUNC float2 ingot_precise_v2(device const half* v, ulong at, device const float*, ulong, constant ingot_attn_precise_params&) {
    return float2(*(device const half2*)(v + at));
}
INGOT_FUNC float2 ingot_precise_v2(device const uchar* v, ulong at, device const float* norms, ulong norm,
                                   constant ingot_attn_precise_params& p) {
    uint bits = uint(p.codebook_bits);
    uchar2 code = *(device const uchar2*)(v + at);
    constant float* levels = ingot_tqhb_levels(bits);
    float scale = ingot_tqhb_scale(norms[norm], p.divisor);
    return float2(ingot_tqhb_value(levels, bits, code.x, scale), ingot_tqhb_value(levels, bits, code.y, scale));
}

// The row and the first of the two columns of a lane's elements in an 8 x 8 simdgroup matrix.
INGOT_FUNC uint ingot_cell_row(uint lane) { return ((lane / 4u) & 4u) + (lane / 2u) % 4u; }
INGOT_FUNC uint ingot_cell_column(uint lane) { return ((lane / 4u) & 2u) * 2u + lane % 2u * 2u; }

#endif
