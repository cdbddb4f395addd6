// What the attention kernels share: which keys a query sees, and reading caches of f32, f16 and bf16.

#ifndef INGOT_ATTN_KV_H
#define INGOT_ATTN_KV_H

#include "common.h"

// One past the last key that the query at q_abs may see among keys at kv_pos, kv_pos + 1, ...; at most tkv.
INGOT_FUNC uint ingot_attn_end(ulong q_abs, ulong kv_pos, uint tkv) {
    if (q_abs < kv_pos) {
        return 0u;
    }
    ulong seen = q_abs - kv_pos + 1ul;
    return seen < ulong(tkv) ? uint(seen) : tkv;
}

// The first key that it may see: the last `window` positions including its own, all of them if window is 0. At most end.
INGOT_FUNC uint ingot_attn_first(ulong q_abs, ulong kv_pos, uint window, uint end) {
    if (window == 0u || q_abs + 1ul <= ulong(window)) {
        return 0u;
    }
    ulong low = q_abs + 1ul - ulong(window);
    if (low <= kv_pos) {
        return 0u;
    }
    ulong first = low - kv_pos;
    return first < ulong(end) ? uint(first) : end;
}

// Four elements of a cache, widened: exact. bf16 is read as its bits, which are the upper half of the f32.
INGOT_FUNC float4 ingot_kv4(float4 x) { return x; }
INGOT_FUNC float4 ingot_kv4(half4 x) { return float4(x); }
INGOT_FUNC float4 ingot_kv4(ushort4 x) { return as_type<float4>(uint4(x) << 16u); }

// o[at] = x, as bf16 if that is asked for.
INGOT_FUNC void ingot_attn_store(device float* o, ulong at, float x, uint out_bf16) {
    if (out_bf16 != 0u) {
        ((device bfloat*)o)[at] = bfloat(x);
    } else {
        o[at] = x;
    }
}

#endif
