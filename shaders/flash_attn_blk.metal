// What is in the tiles of an attention mask.

#include "common.h"

// blk[i, j] = 0 if every element of tile (i, j) of the mask is minus infinity, 2 if every one is 0, else 1. Tiles at the edge are what
// there is of them.
//
// Slots: 0 mask f16 [qL, kL], 1 blk u8 [ceil(qL / BQ), ceil(kL / BK)], 2 qL, 3 kL, 4 BQ, 5 BK (the tile: BQ rows, BK keys).
// Geometry: ceil(kL / BK) x ceil(qL / BQ) threadgroups of 32 threads. Threadgroup memory: none.
kernel void flash_attn_prefill_blk(device const half* mask [[buffer(0)]],
                                   device uchar* blk [[buffer(1)]],
                                   constant uint& qL [[buffer(2)]],
                                   constant uint& kL [[buffer(3)]],
                                   constant uint& BQ [[buffer(4)]],
                                   constant uint& BK [[buffer(5)]],
                                   uint2 tile [[threadgroup_position_in_grid]],
                                   uint2 tiles [[threadgroups_per_grid]],
                                   uint lane [[thread_index_in_simdgroup]]) {
    bool all_hidden = true;
    bool all_zero = true;
    for (uint i = lane; i < BQ * BK; i += 32u) {
        ulong row = ulong(tile.y) * ulong(BQ) + ulong(i / BK);
        ulong key = ulong(tile.x) * ulong(BK) + ulong(i % BK);
        if (row < ulong(qL) && key < ulong(kL)) {
            ushort bits = as_type<ushort>(mask[row * ulong(kL) + key]);
            all_hidden = all_hidden && bits == 0xfc00u;
            all_zero = all_zero && (bits & 0x7fffu) == 0u;
        }
    }
    all_hidden = simd_all(all_hidden);
    all_zero = simd_all(all_zero);
    if (lane == 0u) {
        blk[ulong(tile.y) * ulong(tiles.x) + ulong(tile.x)] = all_hidden ? uchar(0) : all_zero ? uchar(2) : uchar(1);
    }
}
