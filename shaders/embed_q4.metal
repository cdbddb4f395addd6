// Embedding lookup in a signed 4-bit table with zero points.

#include "common.h"

// out[t, c] = out_scale * scale * (code - zero) of row ids[t]; an id outside the vocabulary gives a row of zeros.
//
// Codes are -8 to 7 in two's complement, eight to a word, the first in the lowest bits.
//
// Slots: 0 packed u32 [vocab, hidden / 8], 1 scales f32 [vocab, hidden / group_size], 2 zeros f32 as scales,
//        3 ids u32 [n_tokens], 4 out f32 [n_tokens, hidden], 5 hidden, 6 group_size (a multiple of 8), 7 vocab, 8 n_tokens,
//        9 out_scale f32.
// Geometry: one thread for each word of eight columns, 64 threads per threadgroup, any number of threadgroups.
// Threadgroup memory: none.
kernel void embed_lookup_q4(device const uint* packed [[buffer(0)]],
                            device const float* scales [[buffer(1)]],
                            device const float* zeros [[buffer(2)]],
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
    ulong group = ulong(id) * ulong(hidden / group_size) + ulong(word * 8u / group_size);
    float scale = scales[group];
    float zero = zeros[group];
    for (uint j = 0u; j < 8u; j++) {
        int code = int(w << (28u - 4u * j)) >> 28;
        out[at + ulong(j)] = out_scale * (scale * (float(code) - zero));
    }
}
