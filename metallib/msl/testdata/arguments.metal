#include <metal_stdlib>
using namespace metal;

struct Inner {
  half4 h;
  char c[3];
};

struct Params {
  uint n;
  float3 scale;
  int3 shape[2];
  Inner inner;
  bool flag;
};

// Every kind of argument, in Metal's order of slots.
[[max_total_threads_per_threadgroup(128)]] kernel void arguments(
    device float* a [[buffer(0)]], device const half2* b [[buffer(4)]], const device void* c [[buffer(2)]],
    constant Params& p [[buffer(3)]], constant long* table [[buffer(7)]], device Params* ps [[buffer(8)]],
    device atomic_uint* counter [[buffer(9)]], device packed_float3* packed [[buffer(10)]],
    threadgroup float* shared [[threadgroup(0)]], threadgroup bfloat4* more [[threadgroup(3)]],
    device uchar* __restrict bytes [[buffer(30)]],
    uint3 position [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]],
    uint2 group [[threadgroup_position_in_grid]], ushort3 size [[threads_per_threadgroup]]) {
  uint i = position.x + group.y * size.z;
  if (i >= p.n) return;
  shared[lane] = float(b[i].x) + p.scale.y;
  more[lane] = bfloat4(float4(shared[lane]));
  threadgroup_barrier(mem_flags::mem_threadgroup);
  a[i] = shared[lane ^ 1] + float(more[lane ^ 1].w) + float(table[i]) + float(((device const int*)c)[i]);
  packed[i] = packed_float3(float3(ps[i].scale) + float3(packed[i]));
  ps[i].inner.h.z = p.inner.h.w;
  ps[i].flag = p.flag;
  bytes[i] = uchar(p.shape[1].y);
  atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed);
}
