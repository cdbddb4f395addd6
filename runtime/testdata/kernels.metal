// Kernels for the runtime's tests. They are compiled into kernels.metallib, beside this file:
// go run ./cmd/buildmetallib -route clang -o runtime/testdata/kernels.metallib runtime/testdata
#include <metal_stdlib>
using namespace metal;

// dst[i] = value
kernel void fill(device uint* dst [[buffer(0)]], constant uint& value [[buffer(1)]], constant uint& n [[buffer(2)]],
                 uint gid [[thread_position_in_grid]]) {
    for (uint i = gid; i < n; i += 32u) {
        dst[i] = value;
    }
}

// dst[i] = src[i]
kernel void copy(device const uint* src [[buffer(0)]], device uint* dst [[buffer(1)]], constant uint& n [[buffer(2)]],
                 uint gid [[thread_position_in_grid]]) {
    for (uint i = gid; i < n; i += 32u) {
        dst[i] = src[i];
    }
}

// x[i] = 3 x[i] + v, so that the order of two of them matters
kernel void add(device uint* x [[buffer(0)]], constant uint& v [[buffer(1)]], constant uint& n [[buffer(2)]],
                uint gid [[thread_position_in_grid]]) {
    for (uint i = gid; i < n; i += 32u) {
        x[i] = 3u * x[i] + v;
    }
}

// out[group] = sum of the group's elements of x, through threadgroup memory
kernel void group_sum(device const uint* x [[buffer(0)]], device uint* out [[buffer(1)]], threadgroup uint* part [[threadgroup(0)]],
                      uint gid [[thread_position_in_grid]], uint tid [[thread_position_in_threadgroup]],
                      uint group [[threadgroup_position_in_grid]], uint size [[threads_per_threadgroup]]) {
    part[tid] = x[gid];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid == 0u) {
        uint sum = 0u;
        for (uint i = 0u; i < size; i++) {
            sum += part[i];
        }
        out[group] = sum;
    }
}

constant bool doubled [[function_constant(0)]];
constant uint bias [[function_constant(1)]];

// x[gid] = (doubled ? 2 : 1) gid + bias
kernel void number(device uint* x [[buffer(0)]], uint gid [[thread_position_in_grid]]) {
    x[gid] = (doubled ? 2u : 1u) * gid + bias;
}
