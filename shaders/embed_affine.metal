// Embedding lookup in a table in MLX's affine format; see affine.h.

#include "common.h"
#include "affine.h"

// out[t, c] = out_scale * (scale * code + bias) of row ids[t]; an id outside the vocabulary gives a row of zeros.
//
// Kernels: embed_lookup_affine_b{BITS}. Function constant: the type of scales and biases.
//
// Slots: 0 packed u32 [vocab, hidden * BITS / 32], 8-byte aligned, 1 scales [vocab, hidden / group_size], 2 biases likewise,
//        3 ids u32 [n_tokens], 4 out f32 [n_tokens, hidden], 5 hidden, 6 group_size, 7 vocab, 8 n_tokens, 9 out_scale f32.
// Geometry: one thread for each 16 columns, 64 threads per threadgroup, any number of threadgroups.
// Threadgroup memory: none.
template <uint BITS>
kernel void embed_lookup_affine(device const uint* packed [[buffer(0)]],
                                device const uchar* scales [[buffer(1)]],
                                device const uchar* biases [[buffer(2)]],
                                device const uint* ids [[buffer(3)]],
                                device float* out [[buffer(4)]],
                                constant uint& hidden [[buffer(5)]],
                                constant uint& group_size [[buffer(6)]],
                                constant uint& vocab [[buffer(7)]],
                                constant uint& n_tokens [[buffer(8)]],
                                constant float& out_scale [[buffer(9)]],
                                uint gid [[thread_position_in_grid]]) {
    uint pieces = hidden / 16u;
    if (ulong(gid) >= ulong(n_tokens) * ulong(pieces)) {
        return;
    }
    uint token = gid / pieces;
    uint piece = gid - token * pieces;
    ulong at = ulong(token) * ulong(hidden) + ulong(piece) * 16ul;
    uint id = ids[token];
    if (id >= vocab) {
        for (uint j = 0u; j < 16u; j++) {
            out[at + ulong(j)] = 0.0f;
        }
        return;
    }
    uint words[BITS / 2u];
    ingot_affine_words<BITS>(packed, (ulong(id) * ulong(pieces) + ulong(piece)) * ulong(BITS / 2u), words);
    ulong number = ulong(id) * ulong(hidden / group_size) + ulong(piece * 16u / group_size);
    float scale = ingot_affine_number(scales, number);
    float bias = ingot_affine_number(biases, number);
#pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float4 w = out_scale * ingot_affine_weights<BITS>(words, i, scale, bias);
#pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            out[at + ulong(4u * i + j)] = w[j];
        }
    }
}

typedef decltype(embed_lookup_affine<4>) embed_lookup_affine_kernel;

template [[host_name("embed_lookup_affine_b4")]] kernel embed_lookup_affine_kernel embed_lookup_affine<4>;
template [[host_name("embed_lookup_affine_b6")]] kernel embed_lookup_affine_kernel embed_lookup_affine<6>;
template [[host_name("embed_lookup_affine_b8")]] kernel embed_lookup_affine_kernel embed_lookup_affine<8>;
