// <metal_math>, <metal_common>, <metal_geometric> and <metal_relational>. Fast math is off: a plain name is the precise
// function (air.exp.f32), fast:: the fast one (air.fast_exp.f32, for float only: half has no fast variants).
#define __F1_(F, AIRNAME, T, SUFFIX) T F(T) __AIR("air." AIRNAME "." SUFFIX) __PURE;
#define __F2_(F, AIRNAME, T, SUFFIX) T F(T, T) __AIR("air." AIRNAME "." SUFFIX) __PURE;
#define __F3_(F, AIRNAME, T, SUFFIX) T F(T, T, T) __AIR("air." AIRNAME "." SUFFIX) __PURE;
#define __FLOATS(M, F, AIRNAME) M(F, AIRNAME, float, "f32") M(F, AIRNAME, float2, "v2f32") M(F, AIRNAME, float3, "v3f32") M(F, AIRNAME, float4, "v4f32")
#define __HALVES(M, F, AIRNAME) M(F, AIRNAME, half, "f16") M(F, AIRNAME, half2, "v2f16") M(F, AIRNAME, half3, "v3f16") M(F, AIRNAME, half4, "v4f16")
#define __BOTH(M, F) __FLOATS(M, F, #F) __HALVES(M, F, #F)
// Functions with a fast variant, then those without.
#define __WITH_FAST(DO) \
  DO(__F1_, acos) DO(__F1_, acosh) DO(__F1_, asin) DO(__F1_, asinh) DO(__F1_, atan) DO(__F1_, atanh) DO(__F1_, ceil) DO(__F1_, cos) \
  DO(__F1_, cosh) DO(__F1_, cospi) DO(__F1_, exp) DO(__F1_, exp10) DO(__F1_, exp2) DO(__F1_, fabs) DO(__F1_, floor) DO(__F1_, fract) \
  DO(__F1_, log) DO(__F1_, log10) DO(__F1_, log2) DO(__F1_, rint) DO(__F1_, round) DO(__F1_, rsqrt) DO(__F1_, sin) DO(__F1_, sinh) \
  DO(__F1_, sinpi) DO(__F1_, sqrt) DO(__F1_, tan) DO(__F1_, tanh) DO(__F1_, tanpi) DO(__F1_, trunc) DO(__F1_, saturate) \
  DO(__F2_, atan2) DO(__F2_, fmax) DO(__F2_, fmin) DO(__F2_, fmod) DO(__F2_, pow) DO(__F2_, powr) \
  DO(__F3_, clamp) DO(__F3_, fmax3) DO(__F3_, fmin3)
#define __FAST_ONE(M, F) __FLOATS(M, F, "fast_" #F) __HALVES(M, F, #F)
namespace metal {
__WITH_FAST(__BOTH)
__BOTH(__F3_, fma) __BOTH(__F3_, mix) __BOTH(__F1_, sign)
namespace precise { __WITH_FAST(__BOTH) __BOTH(__F3_, fma) }
namespace fast { __WITH_FAST(__FAST_ONE) __BOTH(__F3_, fma) }

#define __SINCOS(NAME, T, SUFFIX) T __##NAME(T, __private T*) __AIR("air." #NAME "." SUFFIX) __attribute__((nothrow));
__SINCOS(sincos, float, "f32") __SINCOS(sincos, half, "f16") __SINCOS(fast_sincos, float, "f32")
#undef __SINCOS
__INLINE float sincos(float x, __private float& c) { return __sincos(x, &c); }
__INLINE half sincos(half x, __private half& c) { return __sincos(x, &c); }
namespace fast { __INLINE float sincos(float x, __private float& c) { return __fast_sincos(x, &c); } }
namespace precise { __INLINE float sincos(float x, __private float& c) { return __sincos(x, &c); } }

#define __COMMON(T) \
  __INLINE T max(T a, T b) { return fmax(a, b); } \
  __INLINE T min(T a, T b) { return fmin(a, b); } \
  __INLINE T max3(T a, T b, T c) { return fmax3(a, b, c); } \
  __INLINE T min3(T a, T b, T c) { return fmin3(a, b, c); } \
  __INLINE T abs(T a) { return fabs(a); } \
  __INLINE T fdim(T a, T b) { return fmax(a - b, T(0)); } \
  __INLINE T smoothstep(T lo, T hi, T x) { T t = saturate((x - lo) / (hi - lo)); return t * t * (T(3) - T(2) * t); }
__COMMON(float) __COMMON(float2) __COMMON(float3) __COMMON(float4) __COMMON(half) __COMMON(half2) __COMMON(half3) __COMMON(half4)
#undef __COMMON
#define __FAST_COMMON(T) \
  __INLINE T max(T a, T b) { return fmax(a, b); } \
  __INLINE T min(T a, T b) { return fmin(a, b); } \
  __INLINE T abs(T a) { return fabs(a); } \
  __INLINE T divide(T a, T b) { return a / b; }
namespace fast { __FAST_COMMON(float) __FAST_COMMON(float2) __FAST_COMMON(float3) __FAST_COMMON(float4) }
namespace precise { __FAST_COMMON(float) __FAST_COMMON(float2) __FAST_COMMON(float3) __FAST_COMMON(float4) }
#undef __FAST_COMMON
__INLINE float divide(float a, float b) { return a / b; }
__INLINE half divide(half a, half b) { return a / b; }

// A vector with scalars beside it.
#define __MIXED(V, S) \
  __INLINE V max(V a, S b) { return fmax(a, V(b)); } \
  __INLINE V min(V a, S b) { return fmin(a, V(b)); } \
  __INLINE V clamp(V x, S lo, S hi) { return clamp(x, V(lo), V(hi)); } \
  __INLINE V mix(V a, V b, S t) { return mix(a, b, V(t)); }
__MIXED(float2, float) __MIXED(float3, float) __MIXED(float4, float) __MIXED(half2, half) __MIXED(half3, half) __MIXED(half4, half)
#undef __MIXED

// Tests, on the value's bits where a comparison would not do.
#define __TESTS(T, I, ONE, EXPONENT, SIGN) \
  __INLINE I isnan(T x) { return x != x; } \
  __INLINE I isinf(T x) { return fabs(x) == T(__builtin_inff()); } \
  __INLINE I isfinite(T x) { return fabs(x) < T(__builtin_inff()); } \
  __INLINE I isunordered(T a, T b) { return (a != a) | (b != b); } \
  __INLINE I signbit(T x) { return I(as_type<ONE>(x) < ONE(0)); } \
  __INLINE T copysign(T a, T b) { return as_type<T>((ONE)((as_type<ONE>(a) & (ONE)~(SIGN)) | (as_type<ONE>(b) & (ONE)(SIGN)))); } \
  __INLINE T step(T edge, T x) { return x < edge ? T(0) : T(1); }
__TESTS(float, bool, int, 0x7f800000, (int)0x80000000) __TESTS(half, bool, short, 0x7c00, (short)0x8000)
#undef __TESTS
#define __VECTOR_TESTS(T, I, E, SIGN) \
  __INLINE I isnan(T x) { return x != x; } \
  __INLINE I isinf(T x) { return fabs(x) == T(__builtin_inff()); } \
  __INLINE I isfinite(T x) { return fabs(x) < T(__builtin_inff()); } \
  __INLINE T copysign(T a, T b) { return as_type<T>((as_type<I>(a) & ~I((E)SIGN)) | (as_type<I>(b) & I((E)SIGN))); }
__VECTOR_TESTS(float2, int2, int, 0x80000000) __VECTOR_TESTS(float3, int3, int, 0x80000000) __VECTOR_TESTS(float4, int4, int, 0x80000000)
__VECTOR_TESTS(half2, short2, short, 0x8000) __VECTOR_TESTS(half3, short3, short, 0x8000) __VECTOR_TESTS(half4, short4, short, 0x8000)
#undef __VECTOR_TESTS
__INLINE bool isnan(bfloat x) { return x != x; }

float dot(float2, float2) __AIR("air.dot.v2f32") __PURE;
float dot(float3, float3) __AIR("air.dot.v3f32") __PURE;
float dot(float4, float4) __AIR("air.dot.v4f32") __PURE;
half dot(half2, half2) __AIR("air.dot.v2f16") __PURE;
half dot(half3, half3) __AIR("air.dot.v3f16") __PURE;
half dot(half4, half4) __AIR("air.dot.v4f16") __PURE;
template<typename T, int N> __INLINE T length_squared(vec<T, N> v) { return dot(v, v); }
template<typename T, int N> __INLINE T length(vec<T, N> v) { return sqrt(dot(v, v)); }
template<typename T, int N> __INLINE T distance_squared(vec<T, N> a, vec<T, N> b) { return dot(a - b, a - b); }
template<typename T, int N> __INLINE T distance(vec<T, N> a, vec<T, N> b) { return sqrt(dot(a - b, a - b)); }
template<typename T, int N> __INLINE vec<T, N> normalize(vec<T, N> v) { return v * vec<T, N>(rsqrt(dot(v, v))); }
template<typename T> __INLINE vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) { return a.yzx * b.zxy - a.zxy * b.yzx; }

// select(a, b, c) is c ? b : a, lane by lane.
template<typename T> __INLINE T select(T a, T b, bool c) { return c ? b : a; }
#define __SELECT(V, M) \
  __INLINE V select(V a, V b, M c) { return c ? b : a; }
#define __SELECTS(N) \
  __SELECT(float##N, int##N) __SELECT(int##N, int##N) __SELECT(uint##N, int##N) __SELECT(half##N, short##N) __SELECT(short##N, short##N) \
  __SELECT(ushort##N, short##N) __SELECT(char##N, char##N) __SELECT(uchar##N, char##N) __SELECT(long##N, long##N) __SELECT(ulong##N, long##N)
__SELECTS(2) __SELECTS(3) __SELECTS(4)
#undef __SELECT
#undef __SELECTS
#define __ANYALL(T) \
  __INLINE bool any(T##2 v) { return (v.x | v.y) != 0; } \
  __INLINE bool any(T##3 v) { return (v.x | v.y | v.z) != 0; } \
  __INLINE bool any(T##4 v) { return (v.x | v.y | v.z | v.w) != 0; } \
  __INLINE bool all(T##2 v) { return v.x != 0 && v.y != 0; } \
  __INLINE bool all(T##3 v) { return v.x != 0 && v.y != 0 && v.z != 0; } \
  __INLINE bool all(T##4 v) { return v.x != 0 && v.y != 0 && v.z != 0 && v.w != 0; }
__ANYALL(char) __ANYALL(short) __ANYALL(int) __ANYALL(long)
#undef __ANYALL
__INLINE bool any(bool v) { return v; }
__INLINE bool all(bool v) { return v; }
}
#undef __WITH_FAST
#undef __FAST_ONE
#undef __BOTH
