// Kernels with one fault each, for the tests of the checking mode. With good set, the fault is not there. They run in
// threadgroups of 64 threads, with in[i] = i + 1 and everything else zero.

#include <metal_stdlib>
using namespace metal;

constant bool good [[function_constant(0)]];

#define ARGS device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]], device uint *more [[buffer(2)]], \
    uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]
#define SHARED mem_flags::mem_threadgroup
#define DEVICE mem_flags::mem_device

// Memory never written.

kernel void unwritten_shared(ARGS) {
    threadgroup uint a[64];
    if (good || t != 5) {
        a[t] = in[t];
    }
    threadgroup_barrier(SHARED);
    out[t] = a[t];
}

kernel void unwritten_argument(ARGS, threadgroup uint *scratch [[threadgroup(0)]]) {
    if (good || t < 60) {
        scratch[t] = in[t];
    }
    threadgroup_barrier(SHARED);
    out[t] = scratch[t];
}

// What the threadgroup before left behind.
kernel void unwritten_stale(ARGS) {
    threadgroup uint a[64];
    if (good || g == 0) {
        a[t] = in[t];
    }
    threadgroup_barrier(SHARED);
    out[g * 64 + t] = a[t];
}

kernel void unwritten_private(ARGS) {
    uint a[8];
    for (uint k = 0; k < 8; k++) {
        if (good || k != 3) {
            a[k] = in[k + t];
        }
    }
    out[t] = a[in[t] & 7];
}

kernel void unwritten_byte(ARGS) {
    threadgroup uchar a[64];
    if (good || t < 63) {
        a[t] = uchar(in[t]);
    }
    threadgroup_barrier(SHARED);
    out[t] = a[63 - t];
}

kernel void unwritten_atomic(ARGS) {
    threadgroup atomic_uint n;
    if (good && t == 0) {
        atomic_store_explicit(&n, 0u, memory_order_relaxed);
    }
    threadgroup_barrier(SHARED);
    out[t] = atomic_fetch_add_explicit(&n, 1u, memory_order_relaxed);
}

// Races within a threadgroup.

kernel void missing_barrier(ARGS) {
    threadgroup uint a[64];
    a[t] = 0;
    threadgroup_barrier(SHARED);
    a[t] = in[t];
    if (good) {
        threadgroup_barrier(SHARED);
    }
    out[t] = a[63 - t];
}

kernel void missing_second(ARGS) {
    threadgroup uint a[64];
    a[t] = in[t];
    threadgroup_barrier(SHARED);
    uint v = a[63 - t];
    if (good) {
        threadgroup_barrier(SHARED);
    }
    a[t] = v + 100;
    threadgroup_barrier(SHARED);
    out[t] = a[t];
}

// The next tile overwrites what is still read.
kernel void missing_in_loop(ARGS) {
    threadgroup uint a[64];
    uint sum = 0;
    for (uint k = 0; k < 3; k++) {
        a[t] = in[k * 64 + t];
        threadgroup_barrier(SHARED);
        sum += a[63 - t];
        if (good) {
            threadgroup_barrier(SHARED);
        }
    }
    out[t] = sum;
}

kernel void same_place(ARGS) {
    threadgroup uint a[64];
    a[good ? t : t & 31] = in[t];
    threadgroup_barrier(SHARED);
    out[t] = a[t & 31];
}

// Two lanes in one instruction.
kernel void same_instruction(ARGS) {
    threadgroup uint a[64];
    a[good ? t : t / 2] = in[t];
    threadgroup_barrier(SHARED);
    out[t] = a[t / 2];
}

kernel void same_byte(ARGS) {
    threadgroup uchar a[128];
    a[t] = uchar(in[t]);
    if (t == 40 && !good) {
        a[39] = 0;
    }
    threadgroup_barrier(SHARED);
    out[t] = a[t];
}

kernel void wrong_flags(ARGS) {
    threadgroup uint a[64];
    a[t] = in[t];
    if (good) {
        threadgroup_barrier(SHARED);
    } else {
        threadgroup_barrier(DEVICE);
    }
    out[t] = a[63 - t];
}

kernel void no_flags(ARGS) {
    threadgroup uint a[64];
    a[t] = in[t];
    if (good) {
        threadgroup_barrier(SHARED);
    } else {
        threadgroup_barrier(mem_flags::mem_none);
    }
    out[t] = a[63 - t];
}

kernel void device_missing(ARGS) {
    out[t] = in[t];
    if (good) {
        threadgroup_barrier(DEVICE);
    }
    more[t] = out[63 - t];
}

kernel void device_flags(ARGS) {
    out[t] = in[t];
    if (good) {
        threadgroup_barrier(DEVICE);
    } else {
        threadgroup_barrier(SHARED);
    }
    more[t] = out[63 - t];
}

kernel void atomic_and_write(ARGS) {
    if (t == 0) {
        out[0] = in[5];
    }
    if (good) {
        threadgroup_barrier(DEVICE);
    }
    atomic_fetch_add_explicit((device atomic_uint *)out, 1u, memory_order_relaxed);
}

kernel void atomic_and_read(ARGS) {
    atomic_fetch_add_explicit((device atomic_uint *)out, 1u, memory_order_relaxed);
    if (good) {
        threadgroup_barrier(DEVICE);
    }
    more[t] = out[0];
}

// The first simdgroup reads the sums of the others.
kernel void partial_sums(ARGS, uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint part[2];
    if (t < 2) {
        part[t] = 0;
    }
    threadgroup_barrier(SHARED);
    uint sum = simd_sum(in[t]);
    if (lane == 0) {
        part[s] = sum;
    }
    if (good) {
        threadgroup_barrier(SHARED);
    }
    if (t == 0) {
        out[0] = part[0] + part[1];
    }
}

// A barrier of the simdgroup where the threadgroup needs one.
kernel void narrow_barrier(ARGS) {
    threadgroup uint a[64];
    a[t] = 0;
    threadgroup_barrier(SHARED);
    a[t] = in[t];
    if (good) {
        threadgroup_barrier(SHARED);
    } else {
        simdgroup_barrier(SHARED);
    }
    out[t] = a[63 - t];
}

// Lock step hides this one.
kernel void lock_step(ARGS) {
    threadgroup uint a[64];
    a[t] = in[t];
    if (good) {
        simdgroup_barrier(SHARED);
    }
    out[t] = a[t ^ 1];
}

// And the two sides of a branch.
kernel void two_sides(ARGS) {
    threadgroup uint a[64];
    a[t] = in[t];
    simdgroup_barrier(SHARED);
    if (t & 1) {
        a[t] = 7;
    } else {
        out[t] = a[good ? t : t + 1];
    }
}

// Races between threadgroups.

kernel void groups_write(ARGS) { out[good ? g * 64 + t : t] = in[g * 64 + t]; }

kernel void groups_read(ARGS) {
    out[g * 64 + t] = in[g * 64 + t];
    more[g * 64 + t] = out[(good ? g : (g + 1) % 3) * 64 + t];
}

// One half too far.
kernel void groups_halo(device ushort *out [[buffer(0)]], device const uint *in [[buffer(1)]],
                        uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
    out[g * 64 + t] = ushort(in[t]);
    if (t == 63 && !good) {
        out[g * 64 + 64] = 9;
    }
}

kernel void groups_count(ARGS) {
    if (t == 0) {
        if (good) {
            atomic_fetch_add_explicit((device atomic_uint *)out, 1u, memory_order_relaxed);
        } else {
            out[0] += 1;
        }
    }
}

// Right, unless both slots are bound to one buffer.
kernel void reverse(ARGS) { out[t] = in[63 - t]; }

// Sets out[1 + k] to the number of the simdgroup that came at k, counting over all threadgroups: right, but the order
// decides the result.
kernel void tickets(device uint *out [[buffer(0)]], uint g [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]],
                    uint n [[simdgroups_per_threadgroup]]) {
    threadgroup_barrier(mem_flags::mem_none);
    if (lane == 0) {
        uint k = atomic_fetch_add_explicit((device atomic_uint *)out, 1u, memory_order_relaxed);
        out[1 + k] = g * n + s;
    }
}

// What works everywhere, though it may look wrong: the same value from many threads, vectors set one element at a time,
// sums that lane 0 writes, private arrays copied with their padding, scratch memory of each simdgroup.
struct Padded {
    uchar a;
    uint b;
};

kernel void idioms(ARGS, uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint part[32];
    threadgroup uint flag;
    threadgroup uint3 v[2];
    flag = 7;
    if (s == 0) {
        part[lane] = 0;
    }
    threadgroup_barrier(SHARED);
    uint sum = simd_sum(in[t]);
    if (lane == 0) {
        part[s] = sum;
    }
    threadgroup_barrier(SHARED);
    sum = simd_sum(part[lane]);
    float4 sets[2];
    for (uint k = 0; k < 8; k++) {
        sets[k / 4][k % 4] = float(in[k + t]);
    }
    Padded p[2];
    for (uint k = 0; k < 2; k++) {
        p[k].a = uchar(k);
        p[k].b = in[k];
    }
    Padded q = p[t & 1];
    if (lane == 0) {
        v[s] = uint3(flag, sum, q.b);
    }
    threadgroup_barrier(SHARED);
    out[t] = v[s].y + uint(sets[t / 4 % 2][t % 4]) + q.a;
    more[0] = v[s].x;
}
