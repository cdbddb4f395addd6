// Types of the Metal Shading Language and the functions that the rewriter calls.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#pragma OPENCL EXTENSION __cl_clang_variadic_functions : enable
#pragma OPENCL EXTENSION __cl_clang_non_portable_kernel_param_types : enable

#define __INLINE inline __attribute__((always_inline))
#define __AIR(name) __asm(name)
// A function of its operands only. The driver drops the "convergent" that C++ for OpenCL gives to every function.
#define __PURE __attribute__((const, nothrow))
#define __CONV __attribute__((convergent, nothrow))

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
typedef ulong size_t;
typedef long ptrdiff_t;
typedef ulong uintptr_t;
typedef long intptr_t;
typedef decltype(nullptr) nullptr_t;
typedef __bf16 bfloat;

template<typename T, int N> using __vec = T __attribute__((ext_vector_type(N)));

#define __VECTORS(T) \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4)));
__VECTORS(char) __VECTORS(uchar) __VECTORS(short) __VECTORS(ushort) __VECTORS(int) __VECTORS(uint) __VECTORS(long) __VECTORS(ulong)
__VECTORS(half) __VECTORS(float) __VECTORS(bfloat)
#undef __VECTORS
// Comparisons of vectors give integers (0 or -1) here; vectors of bool are these.
typedef int2 bool2;
typedef int3 bool3;
typedef int4 bool4;

template<typename T> struct __element { typedef T type; static constexpr int lanes = 1; };
template<typename T, int N> struct __element<__vec<T, N>> { typedef T type; static constexpr int lanes = N; };

// Conversions. clang has none between half and bfloat, which go by way of float: that is exact one way and rounds once
// the other.
template<typename A, typename B> constexpr bool __by_float =
  __is_same(A, half) && __is_same(B, bfloat) || __is_same(A, bfloat) && __is_same(B, half);
template<typename T, int N> struct __packed;
template<typename E, typename S> __INLINE constexpr E __convert(S s) {
  if constexpr (__by_float<E, S>) return (E)(float)s;
  else return (E)s;
}
template<typename E, typename S, int N> __INLINE constexpr __vec<E, N> __convert(__vec<S, N> s) {
  if constexpr (__by_float<E, S>) return __builtin_convertvector(__builtin_convertvector(s, __vec<float, N>), __vec<E, N>);
  else return __builtin_convertvector(s, __vec<E, N>);
}
template<typename E, typename S, int N> __INLINE constexpr __vec<E, N> __convert(__packed<S, N> s) { return __convert<E>((__vec<S, N>)s); }

// T(a...) and (T)a for a T that is or may be a vector.
template<typename T> struct __maker {
  template<typename... A> static __INLINE constexpr T make(A... a) { return T(a...); }
  template<typename A> static __INLINE constexpr T make(A a) {
    if constexpr (__by_float<T, A>) return (T)(float)a;
    else return (T)a;
  }
};
template<typename E, int N> struct __maker<__vec<E, N>> {
  typedef __vec<E, N> V;
  static __INLINE constexpr V make() { return V(E(0)); }
  template<typename S> static __INLINE constexpr V make(S s) { return V(__convert<E>(s)); }
  template<typename S, int M> static __INLINE constexpr V make(__vec<S, M> s) {
    static_assert(M == N, "a vector is converted to one of another length");
    return __convert<E>(s);
  }
  template<typename S, int M> static __INLINE constexpr V make(__packed<S, M> s) { return make((__vec<S, M>)s); }
  template<typename A, typename B, typename... R> static __INLINE constexpr V make(A a, B b, R... r) {
    return V{__convert<E>(a), __convert<E>(b), __convert<E>(r)...};
  }
  // = {a, b}: what is not given is zero.
  template<typename... A> static __INLINE constexpr V fill(A... a) {
    if constexpr (sizeof...(A) == 0) return V(E(0));
    else if constexpr ((__element<A>::lanes + ... + 0) == N) return V{__convert<E>(a)...};
    else if constexpr ((__element<A>::lanes + ... + 0) + 1 == N) return V{__convert<E>(a)..., E(0)};
    else if constexpr ((__element<A>::lanes + ... + 0) + 2 == N) return V{__convert<E>(a)..., E(0), E(0)};
    else return V{__convert<E>(a)..., E(0), E(0), E(0)};
  }
};
template<typename T, typename... A> __INLINE constexpr T __msl_make(A... a) { return __maker<T>::make(a...); }
template<typename T, typename... A> __INLINE constexpr T __msl_fill(A... a) { return __maker<T>::fill(a...); }

// The scalar side of a mixed operation: MSL converts it to the element type of the vector on the other side.
template<typename V> struct __plain { typedef V type; };
template<typename V> struct __plain<const V> : __plain<V> {};
template<typename V> struct __plain<V&> : __plain<V> {};
template<typename V> struct __plain<V&&> : __plain<V> {};
template<typename V> struct __plain<__private V> : __plain<V> {};
template<typename V> struct __plain<__global V> : __plain<V> {};
template<typename V> struct __plain<__local V> : __plain<V> {};
template<typename V> struct __plain<__constant V> : __plain<V> {};
template<typename V> struct __plain<const __private V> : __plain<V> {};
template<typename V> struct __plain<const __global V> : __plain<V> {};
template<typename V> struct __plain<const __local V> : __plain<V> {};
template<typename V> struct __plain<const __constant V> : __plain<V> {};
template<typename V> struct __mixer { template<typename S> static __INLINE constexpr S mix(S s) { return s; } };
template<typename E, int N> struct __mixer<__vec<E, N>> { template<typename S> static __INLINE constexpr E mix(S s) { return (E)s; } };
template<typename V, typename S> __INLINE constexpr auto __msl_mix(S s) { return __mixer<typename __plain<V>::type>::mix(s); }

template<typename T, typename U> __INLINE constexpr T as_type(U u) {
  static_assert(sizeof(T) == sizeof(U), "as_type between types of different sizes");
  return __builtin_bit_cast(T, u);
}

// A threadgroup variable inside a function is a reference to one of these, moved to threadgroup memory afterwards.
template<typename T, int ID> __global T __msl_tgvar;
template<typename T> __local T* __msl_as3(__global T*) __PURE;

// Function constants: derived ones are stored once, and is_function_constant_defined asks about one.
template<typename T> void __msl_fc_store(const __constant T*, T);
template<typename T> bool __msl_fc_defined(const __constant T*) __PURE;

namespace metal {
template<typename T, int N> using vec = T __attribute__((ext_vector_type(N)));
using ::__msl_make; using ::__msl_fill; using ::as_type; using ::bfloat; using ::__msl_tgvar;
#define __USE(T) using ::T##2; using ::T##3; using ::T##4;
__USE(bool) __USE(char) __USE(uchar) __USE(short) __USE(ushort) __USE(int) __USE(uint) __USE(long) __USE(ulong) __USE(half) __USE(float) __USE(bfloat)
using ::uchar; using ::ushort; using ::uint; using ::ulong; using ::size_t; using ::ptrdiff_t;
using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t; using ::int32_t; using ::uint32_t; using ::int64_t; using ::uint64_t;
}
namespace simd {
#define __msl_simd_names __USE(char) __USE(uchar) __USE(short) __USE(ushort) __USE(int) __USE(uint) __USE(long) __USE(ulong) __USE(half) __USE(float)
__msl_simd_names
using ::__msl_make; using ::__msl_fill;
#undef __msl_simd_names
#undef __USE
}
