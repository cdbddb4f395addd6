// The end of a decode step: what the next one needs, without the host.

#include "common.h"

// Words of the decode state. The single u32 values are also what other kernels of the step bind.
#define INGOT_STATE_TOKEN 0            // token that the step embeds
#define INGOT_STATE_POSITION 1         // its position
#define INGOT_STATE_KV_LENGTH 2        // keys in the cache once the step has stored its own: position + 1
#define INGOT_STATE_CACHE_OFFSET 3     // element of the cache where the step stores: position * kv_stride
#define INGOT_STATE_PRODUCED 4         // tokens in the output list
#define INGOT_STATE_STATUS 5           // one of the below
#define INGOT_STATE_PROMPT_LENGTH 6    // tokens in the prompt list; written by the host, limited to its capacity
                                       // word 7 is reserved

#define INGOT_RUNNING 0u
#define INGOT_END_TOKEN 1u      // an end token was produced; it is the last of the list
#define INGOT_OUTPUT_FULL 2u    // the output list has no room for another token
#define INGOT_CACHE_FULL 3u     // the cache has no room for another position
#define INGOT_NO_TOKEN 4u       // no logit was finite

// The next token is the prompt's at position + 1, or, past the prompt, the argmax, which is appended to the output list.
// Then token, position, KV length and cache offset move on by one, unless the sequence ended: the status says why, the
// counters keep their values, and with a status other than "running" the launch is a no-op. So a step may be replayed any
// number of times; no write goes past a list or the cache.
//
// Slots: 0 state u32 [8], 1 prompt u32 [prompt_capacity], 2 argmax u32 [1], 3 output u32 [output_capacity],
//        4 prompt_capacity, 5 output_capacity, 6 kv_capacity in positions, 7 kv_stride in elements per position
//        (kv_capacity * kv_stride is at most 0xffffffff), 8 end_tokens u32 [n_end] (bound but not read if n_end is 0), 9 n_end.
// Geometry: one thread.
// Threadgroup memory: none.
kernel void decode_advance(device uint* state [[buffer(0)]],
                           device const uint* prompt [[buffer(1)]],
                           device const uint* argmax [[buffer(2)]],
                           device uint* output [[buffer(3)]],
                           constant uint& prompt_capacity [[buffer(4)]],
                           constant uint& output_capacity [[buffer(5)]],
                           constant uint& kv_capacity [[buffer(6)]],
                           constant uint& kv_stride [[buffer(7)]],
                           device const uint* end_tokens [[buffer(8)]],
                           constant uint& n_end [[buffer(9)]],
                           uint gid [[thread_position_in_grid]]) {
    if (gid != 0u || state[INGOT_STATE_STATUS] != INGOT_RUNNING) {
        return;
    }
    ulong next = ulong(state[INGOT_STATE_POSITION]) + 1ul;
    uint produced = state[INGOT_STATE_PRODUCED];
    uint prompt_length = state[INGOT_STATE_PROMPT_LENGTH];
    if (prompt_length > prompt_capacity) {
        prompt_length = prompt_capacity;
    }
    uint status = INGOT_RUNNING;
    uint token = 0u;
    if (next < ulong(prompt_length)) {
        token = prompt[next];
    } else {
        token = argmax[0];
        if (token == 0xffffffffu) {
            status = INGOT_NO_TOKEN;
        } else if (produced >= output_capacity) {
            status = INGOT_OUTPUT_FULL;
        } else {
            output[ulong(produced)] = token;
            produced += 1u;
            for (uint i = 0u; i < n_end; i++) {
                if (end_tokens[ulong(i)] == token) {
                    status = INGOT_END_TOKEN;
                }
            }
            if (status == INGOT_RUNNING && produced >= output_capacity) {
                status = INGOT_OUTPUT_FULL;
            }
        }
    }
    if (status == INGOT_RUNNING && next >= ulong(kv_capacity)) {
        status = INGOT_CACHE_FULL;
    }
    state[INGOT_STATE_PRODUCED] = produced;
    state[INGOT_STATE_STATUS] = status;
    if (status == INGOT_RUNNING) {
        state[INGOT_STATE_TOKEN] = token;
        state[INGOT_STATE_POSITION] = uint(next);
        state[INGOT_STATE_KV_LENGTH] = uint(next + 1ul);
        state[INGOT_STATE_CACHE_OFFSET] = uint(next * ulong(kv_stride));
    }
}
