// What libraries of kernels do with templates, macros and address spaces.
#include <metal_simdgroup>
#include <metal_stdlib>

#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
#define UNROLL _Pragma("clang loop unroll(full)")

using namespace metal;
typedef half float16_t;
typedef bfloat bfloat16_t;

constant bool has_weight [[function_constant(20)]];
static constexpr constant int per_thread = 4;
constant constexpr float scales[3] = {0.5, 1.0, 2.0};

struct complex64_t {
  float real;
  float imag;
  complex64_t() = default;
  constexpr complex64_t(float r, float i) thread : real(r), imag(i) {}
  constexpr complex64_t(float r, float i) threadgroup : real(r), imag(i) {}
  complex64_t(float r) thread : real{r}, imag{0} {}
  float norm() const device { return real * real + imag * imag; }
  float norm() const thread { return real * real + imag * imag; }
};
constexpr complex64_t operator*(complex64_t a, complex64_t b) { return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real}; }

template <typename T> struct AccumulatorOf { typedef float type; };
template <> struct AccumulatorOf<int> { using type = int; };

template <typename T, typename U = float> struct Sum {
  template <typename V> METAL_FUNC U operator()(U a, V b) { return a + static_cast<U>(b); }
  static constexpr U init() { return U(0); }
};

template <typename T, typename Op, int N = per_thread> METAL_FUNC float fold(const device T* x, Op op) {
  float values[N];
  UNROLL
  for (int i = 0; i < N; i++) values[i] = op(Op::init(), x[i]);
  float r = 0;
  for (int i = 0; i < N; i++) r += values[i] * scales[i % 3];
  return r;
}

template <typename T, typename = enable_if_t<is_floating_point_v<T>>> METAL_FUNC T half_of(T x) { return x / T(2); }
template <typename T, enable_if_t<is_integral_v<T>, bool> = true> METAL_FUNC T half_of(T x) { return x >> 1; }

template <typename T, int N_READS = 2>
[[kernel]] void reduce_rows(const device T* x, const device T* w, device T* out, constant float& eps, const constant int64_t* strides,
                            const constant int& n [[buffer(9)]], uint gid [[threadgroup_position_in_grid]], uint lid [[thread_position_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]]) {
  using Acc = typename AccumulatorOf<T>::type;
  constexpr int SIMD_SIZE = 32;
  threadgroup Acc local_sums[SIMD_SIZE];
  threadgroup float local_mean[1];
  Acc acc = Acc(0);
  x += gid * size_t(strides[0]) + lid * N_READS;
  for (int i = 0; i < N_READS; i++) {
    Acc xi = static_cast<Acc>(x[i]);
    acc += xi * xi;
  }
  acc = simd_sum(acc);
  if (group == 0) local_sums[lane] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) local_sums[group] = acc;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (group == 0) {
    acc = simd_sum(local_sums[lane]);
    if (lane == 0) local_mean[0] = metal::precise::rsqrt(float(acc) / n + eps);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const auto scale = [&](int i) { return has_weight ? float(w[lid + i]) : 1.0f; };
  for (int i = 0; i < N_READS; i++) out[gid * n + i] = static_cast<T>(half_of(T(float(x[i]) * local_mean[0] * scale(i))));
  if (lid == 0) out[gid] = T(fold(x, Sum<T>{}));
}
instantiate_kernel("reduce_rows_f32", reduce_rows, float)
instantiate_kernel("reduce_rows_f16", reduce_rows, float16_t, 4)
instantiate_kernel("reduce_rows_bf16", reduce_rows, bfloat16_t)
instantiate_kernel("reduce_rows_i32", reduce_rows, int)

union Bits {
  uint2 words;
  ushort parts[4];
};

template <typename T, int W> METAL_FUNC vec<T, W> load(const device T* p) { return *(const device vec<T, W>*)p; }

kernel void complexes(device complex64_t* c [[buffer(0)]], device float4* v [[buffer(1)]], const device uint2* u [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  complex64_t z = c[i];
  z = z * complex64_t(0, 1) * complex64_t(2.0);
  c[i + 1] = z;
  v[0].x = c[i].norm() + z.norm();
  Bits b;
  b.words = u[i];
  v[1] = float4(b.parts[0], b.parts[1], b.parts[2], b.parts[3]);
  v[2] = float4(load<uint, 2>((const device uint*)u), load<uint, 2>((const device uint*)u + 2));
  device float* f = reinterpret_cast<device float*>(v + 3);
  f[i] = float(i) / numeric_limits<uint>::max();
  switch (i & 3) {
    case 0: v[4] = float4(0); break;
    case 1: v[4].xy = float2(1, 2); break;
    default: v[4].zw += v[4].xy;
  }
}
