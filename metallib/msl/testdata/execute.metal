#include <metal_stdlib>
using namespace metal;

constant int factor [[function_constant(3)]];
constant bool twice [[function_constant(4)]];
constant int total = twice ? factor * 2 : factor;
constant bool large = total > 10;

// out[i] = the class of x[i]: tests on floating-point numbers, some of which compilers fold into one.
kernel void classes(device const float* x [[buffer(0)]], device uint* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float v = x[i];
  uint r = 0;
  if (isnan(v)) r |= 1;
  if (isinf(v)) r |= 2;
  if (isfinite(v)) r |= 4;
  if (isnan(v) || isinf(v) || v == 0) r |= 8;
  if (signbit(v)) r |= 16;
  if (isfinite(v) && v != 0) r |= 32;
  if (!(v <= 1) && !isnan(v)) r |= 64;
  if (as_type<uint>(copysign(v, -1.0)) == (as_type<uint>(v) | 0x80000000u)) r |= 128;
  if (as_type<uint>(fabs(v)) == (as_type<uint>(v) & 0x7fffffffu)) r |= 256;
  out[i] = r;
}

// Eight results per pair of integers: what optimisers make of overflow tests, comparisons and saturation.
kernel void integers(device const uint2* x [[buffer(0)]], device ulong* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  uint a = x[i].x, b = x[i].y;
  ulong wide = ulong(a) << 20 | b, other = ulong(b) << 31 | a;
  device ulong* o = out + 8 * i;
  o[0] = a + b < a ? 1 : a + b;
  o[1] = other != 0 && wide * other / other != wide ? 1 : wide * other;
  o[2] = (a > b) - (a < b) + 1;
  o[3] = a < b ? 0 : a - b;
  o[4] = addsat(int(a), int(b)) + 0x100000000l;
  o[5] = mulhi(wide, other);
  o[6] = ulong(popcount(a)) + (ulong(clz(a)) << 8) + (ulong(ctz(b)) << 16) + (ulong(reverse_bits(b)) << 32);
  o[7] = ulong(extract_bits(a, 4, 12)) + (ulong(insert_bits(a, b, 8, 16)) << 16) + (ulong(rotate(a, b)) << 32);
}

// Vectors: constructors, swizzles, conversions, mixed operations, selection, packed elements.
kernel void vectors(device const float4* x [[buffer(0)]], device float* out [[buffer(1)]], device packed_float3* packed [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float4 v = x[i];
  half4 h = (half4)v;
  device float* o = out + 8 * i;
  float4 w = float4(v.xy, 2 * v.z, 1) + float4(float3(v.wzy), 0.5);
  o[0] = dot(w, float4(1, 2, 3, 4));
  o[1] = float(h.y) + float(half(v.x) * h.z);
  int4 n = int4(v);
  o[2] = float(n.x + n.y * n.w);
  float4 s = select(v, w, v < w);
  o[3] = s.x + s.y + s.z + s.w;
  bfloat4 b = bfloat4(v);
  o[4] = float(b.x) + float(b.y * b.z);
  packed[i] = v.yzw;
  o[5] = float3(packed[i]).z + packed[i].x;
  half2 m = h.xy * v.z;
  o[6] = float(m.x) + float(m.y);
  float4 f = {v.x, 2};
  o[7] = f.x + f.y + f.z + f.w;
}

// Sums its threadgroup's values in a static array; function constants scale the result.
kernel void sums(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]],
                 uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]], uint n [[threads_per_threadgroup]]) {
  threadgroup float partial[8];
  threadgroup atomic_uint count;
  if (t == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);
  float sum = simd_sum(x[i]);
  if (t % 32 == 0) partial[t / 32] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) {
    sum = 0;
    for (uint k = 0; k < n / 32; k++) sum += partial[k];
    out[g] = sum * total + (large ? 1000 : 0) + 100000.0 * atomic_load_explicit(&count, memory_order_relaxed);
  }
}

// A simdgroup matrix whose elements the lanes change: all, one of two, in a loop, and swapped.
kernel void matrix_elements(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], device const half* h [[buffer(2)]],
                            uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 a, b;
  simdgroup_load(a, x, 8);
  b = a;
  b.thread_elements() *= float(lane + 1);
  for (uint i = 0; i < uint(x[0]); i++) {
    b.thread_elements().y += a.thread_elements()[i % 2];
  }
  simdgroup_store(b, out, 8);
  simdgroup_half8x8 c;
  simdgroup_load(c, h, 8);
  b.thread_elements() = float2(c.thread_elements().yx);
  simdgroup_store(b, out + 64, 8);
}
