// Small kernels for the tests of the software device. TestKernelsAreCurrent says how the library is made from them.

#include <metal_stdlib>
using namespace metal;

// out[i] = a[i] + b[i] for i < n.
kernel void add(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *out [[buffer(2)]],
                constant uint &n [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    if (i < n) {
        out[i] = a[i] + b[i];
    }
}

// x[i] = x[i] * 2 + 1: repeated, it shows in how many dispatches, and in which order, something ran.
kernel void twice_plus_one(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = x[i] * 2 + 1; }

// x[i] += 10.
kernel void plus_ten(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] += 10; }

// out[from + i] = value, with everything but the destination in constants.
struct Put {
    uint from;
    uint value;
};

kernel void put(device uint *out [[buffer(0)]], constant Put &p [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    out[p.from + i] = p.value;
}

// out[i] = in[from + i].
kernel void get(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]], constant Put &p [[buffer(2)]],
                uint i [[thread_position_in_grid]]) {
    out[i] = in[p.from + i];
}

// Copies by 16 bytes, by half words and by bytes, and of one element to many.
kernel void copy4(device const uint4 *in [[buffer(0)]], device uint4 *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    out[i] = in[i];
}

kernel void copy_half(device const half *in [[buffer(0)]], device half *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    out[i] = in[i];
}

kernel void copy_byte(device const uchar *in [[buffer(0)]], device uchar *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    out[i] = in[i];
}

kernel void spread(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    out[i] = in[0];
}

// Reads one element too far in the last thread.
kernel void too_far(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    out[i] = in[i + 1];
}

// A barrier that only some threads reach.
kernel void divergent(device float *out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    if (i < 7) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    out[i] = 1;
}

// Never ends.
kernel void endless(device uint *x [[buffer(0)]]) {
    while (x[0] == 0) {
        x[1] += 1;
    }
}

// count += 1 per thread.
kernel void count(device atomic_uint *counter [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed);
}

// out[group] = the sum of in over the threadgroup, in threadgroup memory of the caller's length.
kernel void sum(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], threadgroup float *part [[threadgroup(0)]],
                uint i [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]],
                uint size [[threads_per_threadgroup]]) {
    part[i] = in[group * size + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i == 0) {
        float s = 0;
        for (uint k = 0; k < size; k++) {
            s += part[k];
        }
        out[group] = s;
    }
}

// As sum, for up to 64 threads.
kernel void sum64(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], uint i [[thread_index_in_threadgroup]],
                  uint size [[threads_per_threadgroup]]) {
    threadgroup float part[64];
    part[i] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i == 0) {
        float s = 0;
        for (uint k = 0; k < size; k++) {
            s += part[k];
        }
        out[0] = s;
    }
}

constant uint factor [[function_constant(0)]];
constant bool negate [[function_constant(1)]];

// x[i] = x[i] * factor, negated if asked for.
kernel void scale(device int *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    int v = x[i] * int(factor);
    x[i] = negate ? -v : v;
}

constant uint bonus [[function_constant(3)]];

// x[i] += the bonus, which is 100 if none is set.
kernel void reward(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    x[i] += is_function_constant_defined(bonus) ? bonus : 100;
}

// As sum64, but the last thread forgets its part.
kernel void lopsided(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup float piece[64];
    if (i < 63) {
        piece[i] = in[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i == 0) {
        out[0] = piece[63];
    }
}
