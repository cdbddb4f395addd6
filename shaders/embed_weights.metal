// Embedding lookup in a table of any type of weights.

#include "common.h"
#include "convert.h"
#include "weights.h"

INGOT_FUNC float ingot_embed_number(float x) { return x; }
INGOT_FUNC float ingot_embed_number(half x) { return float(x); }
INGOT_FUNC float ingot_embed_number(ushort bits) { return ingot_from_bf16_bits(bits); }

// out[t, c] = scale * table[ids[t], c]; an id outside the vocabulary gives a row of zeros. The table is of numbers.
//
// Kernels: embed_lookup_{f32,f16,bf16}, by the type of the table.
//
// Slots: 0 table T [vocab, cols], 1 ids u32 [tokens], 2 out f32 [tokens, cols], 3 cols, 4 vocab, 5 tokens, 6 scale f32.
// Geometry: a thread for each column, 64 threads per threadgroup, ceil(cols / 64) x tokens threadgroups.
// Threadgroup memory: none.
template <typename T>
kernel void embed_lookup_numbers(device const T* table [[buffer(0)]],
                                 device const uint* ids [[buffer(1)]],
                                 device float* out [[buffer(2)]],
                                 constant uint& cols [[buffer(3)]],
                                 constant uint& vocab [[buffer(4)]],
                                 constant uint& tokens [[buffer(5)]],
                                 constant float& scale [[buffer(6)]],
                                 uint2 at [[thread_position_in_grid]]) {
    if (at.x >= cols || at.y >= tokens) {
        return;
    }
    uint id = ids[at.y];
    float v = 0.0f;
    if (id < vocab) {
        v = scale * ingot_embed_number(table[ulong(id) * ulong(cols) + ulong(at.x)]);
    }
    out[ulong(at.y) * ulong(cols) + ulong(at.x)] = v;
}

// The same with a table in a block format.
//
// Kernels: embed_lookup_{q4_0,q5_0,q8_0,iq4_nl,q4_K,q5_K,q6_K}, by the format.
//
// Slots: 0 table, rows of whole blocks, aligned as weights.h says, 1 ids u32 [tokens], 2 out f32 [tokens, cols], 3 cols,
//        4 vocab, 5 tokens, 6 scale f32.
// Geometry: a thread for each four columns, 64 threads per threadgroup, ceil(cols / 256) x tokens threadgroups.
// Threadgroup memory: none.
template <typename W>
kernel void embed_lookup_blocks(device const uchar* table [[buffer(0)]],
                                device const uint* ids [[buffer(1)]],
                                device float* out [[buffer(2)]],
                                constant uint& cols [[buffer(3)]],
                                constant uint& vocab [[buffer(4)]],
                                constant uint& tokens [[buffer(5)]],
                                constant float& scale [[buffer(6)]],
                                uint2 at [[thread_position_in_grid]]) {
    if (at.x >= cols / 4u || at.y >= tokens) {
        return;
    }
    uint id = ids[at.y];
    float4 v = float4(0.0f);
    if (id < vocab) {
        constexpr uint quads = uint(W::values) / 4u;
        W place;
        ingot_seek(place, table + ulong(id) * ingot_row_bytes<W>(cols), at.x / quads);
        v = scale * ingot_quad(place, at.x % quads);
    }
    device float* to = out + (ulong(at.y) * ulong(cols) + ulong(at.x) * 4ul);
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
}

typedef decltype(embed_lookup_numbers<float>) embed_f32;
typedef decltype(embed_lookup_numbers<half>) embed_f16;
typedef decltype(embed_lookup_numbers<ushort>) embed_bf16;
typedef decltype(embed_lookup_blocks<ingot_q4_0>) embed_blocks;

template [[host_name("embed_lookup_f32")]] kernel embed_f32 embed_lookup_numbers<float>;
template [[host_name("embed_lookup_f16")]] kernel embed_f16 embed_lookup_numbers<half>;
template [[host_name("embed_lookup_bf16")]] kernel embed_bf16 embed_lookup_numbers<ushort>;
template [[host_name("embed_lookup_q4_0")]] kernel embed_blocks embed_lookup_blocks<ingot_q4_0>;
template [[host_name("embed_lookup_q5_0")]] kernel embed_blocks embed_lookup_blocks<ingot_q5_0>;
template [[host_name("embed_lookup_q8_0")]] kernel embed_blocks embed_lookup_blocks<ingot_q8_0>;
template [[host_name("embed_lookup_iq4_nl")]] kernel embed_blocks embed_lookup_blocks<ingot_iq4_nl>;
template [[host_name("embed_lookup_q4_K")]] kernel embed_blocks embed_lookup_blocks<ingot_q4_k>;
template [[host_name("embed_lookup_q5_K")]] kernel embed_blocks embed_lookup_blocks<ingot_q5_k>;
template [[host_name("embed_lookup_q6_K")]] kernel embed_blocks embed_lookup_blocks<ingot_q6_k>;
