#include <metal_stdlib>
using namespace metal;

// Calls what the standard library has, so that every declaration is compiled and lowered.
template <typename T> static T floats(T x, T y, T z) {
  T r = acos(x) + acosh(x) + asin(x) + asinh(x) + atan(x) + atanh(x) + ceil(x) + cos(x) + cosh(x) + cospi(x) + exp(x) + exp10(x) +
        exp2(x) + fabs(x) + floor(x) + fract(x) + log(x) + log10(x) + log2(x) + rint(x) + round(x) + rsqrt(x) + sin(x) + sinh(x) +
        sinpi(x) + sqrt(x) + tan(x) + tanh(x) + tanpi(x) + trunc(x) + saturate(x) + atan2(x, y) + fmax(x, y) + fmin(x, y) + fmod(x, y) +
        pow(x, y) + powr(x, y) + clamp(x, y, z) + fmax3(x, y, z) + fmin3(x, y, z) + fma(x, y, z) + mix(x, y, z) + sign(x) + max(x, y) +
        min(x, y) + max3(x, y, z) + min3(x, y, z) + abs(x) + fdim(x, y) + smoothstep(x, y, z) + copysign(x, y);
  return r;
}
template <typename T> static T fastOnes(T x, T y) {
  return fast::exp(x) + fast::log(x) + fast::sin(x) + fast::rsqrt(x) + fast::pow(x, y) + fast::max(x, y) + fast::divide(x, y) + precise::exp(x) +
         precise::tanh(x) + precise::sqrt(x) + precise::divide(x, y);
}
kernel void floating(device float4* f [[buffer(0)]], device half4* h [[buffer(1)]], device bfloat4* b [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  f[0] = floats(f[i], f[i + 1], f[i + 2]);
  f[1].xyz = floats(f[i].xyz, f[i + 1].xyz, f[i + 2].xyz);
  f[2].xy = floats(f[i].xy, f[i + 1].xy, f[i + 2].xy);
  f[3].x = floats(f[i].x, f[i + 1].x, f[i + 2].x);
  h[0] = floats(h[i], h[i + 1], h[i + 2]);
  h[1].xyz = floats(h[i].xyz, h[i + 1].xyz, h[i + 2].xyz);
  h[2].xy = floats(h[i].xy, h[i + 1].xy, h[i + 2].xy);
  h[3].x = floats(h[i].x, h[i + 1].x, h[i + 2].x);
  f[4] = fastOnes(f[i], f[i + 1]);
  f[5].x = fastOnes(f[i].x, f[i + 1].x);
  float c, s = sincos(f[i].x, c);
  f[6] = float4(c, s, fast::sincos(f[i].y, c), c);
  f[7] = float4(dot(f[i], f[i]), length(f[i].xyz), distance(f[i].xy, f[i].zw), dot(normalize(f[i]), f[1]));
  f[8].xyz = cross(f[i].xyz, f[i + 1].xyz);
  f[9] = select(f[i], f[i + 1], f[i] < f[i + 2]);
  f[10] = float4(isnan(f[i].x), isinf(f[i].y), isfinite(f[i].z), signbit(f[i].w));
  f[11] = any(isnan(f[i])) && all(f[i] > 0.0) ? step(f[i].x, f[i].y) : isunordered(f[i].x, f[i].y);
  f[12] = select(f[i].x, f[i].y, i > 4);
  b[0] = b[i] * b[i + 1] + bfloat4(h[i]) - bfloat4(f[i]);
  f[13] = float4(b[i]) + float4(h[i]) + float4(as_type<half2>(f[i].x), as_type<half2>(f[i].y));
  h[4] = half4(b[i]) + half(2.5bf) + h[i] * 2.0;
  f[14] = max(f[i], 1.0f) + min(f[i], f[i].x) + clamp(f[i], 0.0f, 1.0f) + mix(f[i], f[i + 1], 0.5f);
  f[15] = f[i] * f[i].x + 2 * f[i] + float4(i);
  f[16].x = numeric_limits<float>::max() + numeric_limits<half>::epsilon() + numeric_limits<bfloat>::lowest() + INFINITY + M_PI_F + float(M_PI_H) + float(HALF_MAX);
}
template <typename T> static T integers(T x, T y, T z) {
  return max(x, y) + min(x, y) + max3(x, y, z) + min3(x, y, z) + median3(x, y, z) + clamp(x, y, z) + addsat(x, y) + subsat(x, y) + T(absdiff(x, y)) +
         rotate(x, y) + extract_bits(x, 2, 3) + insert_bits(x, y, 2, 3) + abs(x) + popcount(x) + clz(x) + ctz(x) + reverse_bits(x) + mulhi(x, y);
}
kernel void integer(device uint* u [[buffer(0)]], device long* l [[buffer(1)]], device short4* s [[buffer(2)]], device char4* c [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  u[0] = integers(u[i], u[i + 1], u[i + 2]);
  u[1] = integers(as_type<int>(u[i]), 5, int(u[i + 1]));
  l[0] = integers(l[i], l[i + 1], l[i + 2]);
  l[1] = integers(ulong(l[i]), ulong(l[i + 1]), ulong(l[i + 2]));
  s[0].x = integers(s[i].x, s[i].y, s[i].z);
  s[1].x = integers(ushort(s[i].x), ushort(s[i].y), ushort(s[i].z));
  s[2] = max(s[i], s[i + 1]) + min(s[i], short(3)) + clamp(s[i], short(0), short(9));
  c[0] = max(c[i], c[i + 1]) + char4(s[i]) + char4(uchar4(c[i]));
  u[2] = madhi(u[i], u[i + 1], u[i + 2]) + mul24(u[i], 3u) + mad24(u[i], 5u, u[i]) + uint(mul24(-3, int(u[i])));
  u[3] = uint(float(u[i])) + uint(float(int(u[i]))) + uint(half(s[i].x)) + uint(short(half(u[i]))) + uint(bfloat(u[i]));
  u[4] = any(s[i] > s[i + 1]) + all(c[i] == c[i + 1]);
}
template <typename T> static T lanes(T x, ushort d) {
  return simd_sum(x) + simd_product(x) + simd_min(x) + simd_max(x) + simd_prefix_inclusive_sum(x) + simd_prefix_exclusive_sum(x) +
         simd_prefix_inclusive_product(x) + simd_prefix_exclusive_product(x) + simd_broadcast_first(x) + simd_broadcast(x, 3) + simd_shuffle(x, d) +
         simd_shuffle_xor(x, 1) + simd_shuffle_up(x, 1) + simd_shuffle_down(x, 16) + simd_shuffle_rotate_up(x, 1) + simd_shuffle_rotate_down(x, 1) +
         simd_shuffle_and_fill_up(x, x, 1) + simd_shuffle_and_fill_down(x, x, 1, 8) + quad_sum(x) + quad_shuffle_xor(x, 1) + quad_broadcast(x, 2);
}
kernel void simdgroup(device float4* f [[buffer(0)]], device uint* u [[buffer(1)]], device half* h [[buffer(2)]], device short* s [[buffer(3)]],
                      device ulong* l [[buffer(4)]], uint i [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  f[i] = lanes(f[i], lane);
  f[i].x = lanes(f[i].x, lane);
  u[i] = lanes(u[i], lane) + simd_and(u[i]) + simd_or(u[i]) + simd_xor(u[i]);
  u[i + 1] = lanes(int(u[i]), lane);
  h[i] = lanes(h[i], lane);
  s[i] = lanes(s[i], lane);
  simdgroup_barrier(mem_flags::mem_none);
  simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  l[i] = ulong(simd_ballot(u[i] > 3)) + ulong(simd_active_threads_mask()) + simd_all(u[i] > 3) + simd_any(u[i] > 4) + simd_is_first() +
         simd_ballot(true).all() + simd_ballot(u[i] == 0).any();
}
kernel void atomics(device atomic_int* a [[buffer(0)]], device atomic_uint* b [[buffer(1)]], device atomic_float* c [[buffer(2)]], device int* r [[buffer(3)]],
                    uint i [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint t;
  threadgroup atomic_int n[4];
  if (i == 0) atomic_store_explicit(&t, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int v = atomic_load_explicit(a, memory_order_relaxed) + atomic_fetch_add_explicit(a, 1, memory_order_relaxed) + atomic_fetch_sub_explicit(a, 1, memory_order_relaxed) +
          atomic_fetch_min_explicit(a, 1, memory_order_relaxed) + atomic_fetch_max_explicit(a, 1, memory_order_relaxed) + atomic_fetch_and_explicit(a, 1, memory_order_relaxed) +
          atomic_fetch_or_explicit(a, 1, memory_order_relaxed) + atomic_fetch_xor_explicit(a, 1, memory_order_relaxed) + atomic_exchange_explicit(a, 1, memory_order_relaxed);
  uint expected = 3;
  while (!atomic_compare_exchange_weak_explicit(b, &expected, expected + 1, memory_order_relaxed, memory_order_relaxed)) {}
  atomic_fetch_add_explicit(&t, i, memory_order_relaxed);
  atomic_fetch_max_explicit(&n[i & 3], int(i), memory_order_relaxed);
  r[i] = v + expected + atomic_load_explicit(&t, memory_order_relaxed) + int(atomic_fetch_add_explicit(c, 1.0, memory_order_relaxed));
}
kernel void matrices(device float4x4* m [[buffer(0)]], device half4x4* n [[buffer(1)]], device float* f [[buffer(2)]], device half* h [[buffer(3)]], threadgroup float* t [[threadgroup(0)]]) {
  float4x4 a = m[0], b = float4x4(n[0]);
  m[1] = a * b + transpose(a) - float4x4(2.0);
  m[2][1] = a * float4(1, 2, 3, 4) + float4(0, 1, 0, 1) * b;
  simdgroup_float8x8 x, y(1.0), z = make_filled_simdgroup_matrix<float, 8>(0.0);
  simdgroup_half8x8 w;
  simdgroup_load(x, f, 8);
  simdgroup_load(w, h, 16, ulong2(8, 0), true);
  simdgroup_multiply_accumulate(z, x, w, z);
  simdgroup_multiply(y, x, x);
  simdgroup_store(z, f + 64, 8);
  simdgroup_store(y, t, 8);
}
// Shapes of integer code that optimisers turn into intrinsics.
kernel void folded(device uint* u [[buffer(0)]], device ulong* l [[buffer(1)]], device float* f [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  uint a = u[i], b = u[i + 1];
  ulong x = l[i], y = l[i + 1];
  if (y != 0 && x * y / y != x) u[0] = 1;
  if (a + b < a) u[1] = 2;
  u[2] = (a > b) - (a < b);
  l[0] = x < y ? 0 : x - y;
  f[0] = isnan(f[i]) || isinf(f[i]) || f[i] == 0 ? 0 : f[i];
  f[1] = as_type<float>((as_type<uint>(f[i]) & 0x7fffffffu) | (as_type<uint>(f[i + 1]) & 0x80000000u));
  f[2] = as_type<float>(as_type<uint>(f[i]) & 0x7fffffffu);
  f[3] = float(uchar(a)) + float(a & 7u) + float(ushort(a >> 3));
  int c[16] = {0};
  for (uint k = 0; k < 16; k++) c[(a >> k) & 15] += k;
  u[3] = c[b & 15];
}
