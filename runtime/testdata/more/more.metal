// Kernels of a second library for the runtime's tests: go run ./cmd/buildmetallib -route clang -o runtime/testdata/more/more.metallib runtime/testdata/more
#include <metal_stdlib>
using namespace metal;

// x[gid] = 3 x[gid]
kernel void triple(device uint* x [[buffer(0)]], uint gid [[thread_position_in_grid]]) { x[gid] *= 3u; }

// Writes to what it declares as read only.
kernel void sneaky(device const uint* x [[buffer(0)]], device uint* out [[buffer(1)]], uint gid [[thread_position_in_grid]]) {
    out[gid] = x[gid];
    ((device uint*)x)[gid] = 7u;
}

// out[gid] = x[gid + shift]
kernel void shifted(device const uint* x [[buffer(0)]], device uint* out [[buffer(1)]], constant uint& shift [[buffer(2)]],
                    uint gid [[thread_position_in_grid]]) {
    out[gid] = x[gid + shift];
}
