// Embedding lookup in an MLX 4-bit affine table.

#include "common.h"

// out[t, c] = out_scale * (scale * code + bias) of row ids[t]; an id outside the vocabulary gives a row of zeros.
//
// Slots: 0 packed u32 [vocab, hidden / 8], 1 sb bfloat2 [vocab, hidden / group_size], 3 ids u32 [n_tokens],
//        4 out f32 [n_tokens, hidden], 5 hidden, 6 group_size, 7 vocab, 8 n_tokens, 9 out_scale f32 (Gemma: sqrt(hidden)).
// Geometry: one thread for each word of eight columns, 64 threads per threadgroup, any number of threadgroups.
// Threadgroup memory: none.
// Source: the format of MLX (mx.quantize, mode "affine").
kernel void embed_lookup_q4_mlx(device const uint* packed [[buffer(0)]],
                                device const bfloat2* sb [[buffer(1)]],
                                device const uint* ids [[buffer(3)]],
                                device float* out [[buffer(4)]],
                                constant uint& hidden [[buffer(5)]],
                                constant uint& group_size [[buffer(6)]],
                                constant uint& vocab [[buffer(7)]],
                                constant uint& n_tokens [[buffer(8)]],
                                constant float& out_scale [[buffer(9)]],
                                uint gid [[thread_position_in_grid]]) {
    uint words = hidden / 8u;
    ulong total = ulong(n_tokens) * ulong(words);
    if (ulong(gid) >= total) {
        return;
    }
    uint token = gid / words;
    uint word = gid - token * words;
    ulong at = ulong(token) * ulong(hidden) + ulong(word) * 8ul;
    uint id = ids[token];
    if (id >= vocab) {
        for (uint j = 0u; j < 8u; j++) {
            out[at + ulong(j)] = 0.0f;
        }
        return;
    }
    uint w = packed[ulong(id) * ulong(words) + ulong(word)];
    bfloat2 s = sb[ulong(id) * ulong(hidden / group_size) + ulong(word * 8u / group_size)];
    float scale = float(s.x);
    float bias = float(s.y);
    for (uint j = 0u; j < 8u; j++) {
        out[at + ulong(j)] = out_scale * fma(scale, float((w >> (4u * j)) & 15u), bias);
    }
}
