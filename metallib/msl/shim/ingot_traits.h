// <metal_type_traits>, <metal_limits> and <metal_array>.
namespace metal {
template<typename T, T V> struct integral_constant {
  static constexpr T value = V;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return V; }
};
template<bool B> using bool_constant = integral_constant<bool, B>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;
template<typename A, typename B> struct is_same : bool_constant<__is_same(A, B)> {};
template<typename A, typename B> constexpr bool is_same_v = is_same<A, B>::value;
template<bool B, typename T = void> struct enable_if {};
template<typename T> struct enable_if<true, T> { typedef T type; };
template<bool B, typename T = void> using enable_if_t = typename enable_if<B, T>::type;
template<bool B, typename T, typename F> struct conditional { typedef T type; };
template<typename T, typename F> struct conditional<false, T, F> { typedef F type; };
template<bool B, typename T, typename F> using conditional_t = typename conditional<B, T, F>::type;
template<typename...> using void_t = void;
template<typename T> struct remove_reference { typedef __remove_reference_t(T) type; };
template<typename T> using remove_reference_t = typename remove_reference<T>::type;
template<typename T> struct remove_cv { typedef typename ::__plain<T>::type type; };
template<typename T> using remove_cv_t = typename remove_cv<T>::type;
template<typename T> struct remove_const { typedef __remove_const(T) type; };
template<typename T> using remove_const_t = typename remove_const<T>::type;
template<typename T> struct is_floating_point : false_type {};
template<> struct is_floating_point<float> : true_type {};
template<> struct is_floating_point<half> : true_type {};
template<> struct is_floating_point<bfloat> : true_type {};
template<typename T> constexpr bool is_floating_point_v = is_floating_point<T>::value;
template<typename T> struct is_integral : bool_constant<__is_integral(T)> {};
template<typename T> constexpr bool is_integral_v = is_integral<T>::value;
template<typename T> struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template<typename T> constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template<typename T> struct is_signed : bool_constant<__is_signed(T) || is_floating_point<T>::value> {};
template<typename T> constexpr bool is_signed_v = is_signed<T>::value;
template<typename T> struct is_unsigned : bool_constant<__is_unsigned(T)> {};
template<typename T> constexpr bool is_unsigned_v = is_unsigned<T>::value;
template<typename T> struct is_pointer : bool_constant<__is_pointer(T)> {};
template<typename T> constexpr bool is_pointer_v = is_pointer<T>::value;
template<typename A, typename B> struct is_convertible : bool_constant<__is_convertible(A, B)> {};
template<typename A, typename B> constexpr bool is_convertible_v = is_convertible<A, B>::value;
template<typename T> struct is_void : bool_constant<__is_void(T)> {};
template<typename T> struct is_empty : bool_constant<__is_empty(T)> {};
template<typename T> struct is_class : bool_constant<__is_class(T)> {};
template<typename T> struct make_unsigned { typedef __make_unsigned(T) type; };
template<typename T> using make_unsigned_t = typename make_unsigned<T>::type;
template<typename T> struct make_signed { typedef __make_signed(T) type; };
template<typename T> using make_signed_t = typename make_signed<T>::type;
template<typename T> struct make_scalar { typedef typename ::__element<T>::type type; };
template<typename T> using make_scalar_t = typename make_scalar<T>::type;
template<typename T> struct vec_elements : integral_constant<int, ::__element<T>::lanes> {};
template<typename T> constexpr int vec_elements_v = vec_elements<T>::value;

template<typename T> struct numeric_limits { static constexpr bool is_specialized = false; };
#define __LIMITS(T, LOWEST, MIN, MAX, INTEGER) \
  template<> struct numeric_limits<T> { \
    static constexpr bool is_specialized = true, is_integer = INTEGER, is_signed = T(-1) < T(0); \
    static constexpr T min() { return MIN; } \
    static constexpr T max() { return MAX; } \
    static constexpr T lowest() { return LOWEST; }
#define __INTEGER_LIMITS(T, LOWEST, MAX) __LIMITS(T, LOWEST, LOWEST, MAX, true) };
#define __FLOAT_LIMITS(T, MIN, MAX, EPSILON, DIGITS) __LIMITS(T, (T)(-(MAX)), (T)(MIN), (T)(MAX), false) \
    static constexpr int digits = DIGITS; \
    static constexpr T epsilon() { return (T)(EPSILON); } \
    static constexpr T infinity() { return (T)__builtin_inff(); } \
    static constexpr T quiet_NaN() { return (T)__builtin_nanf(""); } };
__INTEGER_LIMITS(bool, false, true)
__INTEGER_LIMITS(char, (-128), 127)
__INTEGER_LIMITS(uchar, 0, 255)
__INTEGER_LIMITS(short, (-32768), 32767)
__INTEGER_LIMITS(ushort, 0, 65535)
__INTEGER_LIMITS(int, (-2147483647 - 1), 2147483647)
__INTEGER_LIMITS(uint, 0, 4294967295U)
__INTEGER_LIMITS(long, (-9223372036854775807L - 1), 9223372036854775807L)
__INTEGER_LIMITS(ulong, 0, 18446744073709551615UL)
__FLOAT_LIMITS(float, 0x1.0p-126f, 0x1.fffffep127f, 0x1.0p-23f, 24)
__FLOAT_LIMITS(half, 0x1.0p-14f, 0x1.ffcp15f, 0x1.0p-10f, 11)
__FLOAT_LIMITS(bfloat, 0x1.0p-126f, 0x1.fep127f, 0x1.0p-7f, 8)
#undef __LIMITS
#undef __INTEGER_LIMITS
#undef __FLOAT_LIMITS

template<typename T, size_t N> struct array {
  T __elems[N];
  __INLINE constexpr size_t size() const { return N; }
  __INLINE constexpr __private T& operator[](size_t i) __private { return __elems[i]; }
  __INLINE constexpr const __private T& operator[](size_t i) const __private { return __elems[i]; }
  __INLINE __global T& operator[](size_t i) __global { return __elems[i]; }
  __INLINE const __global T& operator[](size_t i) const __global { return __elems[i]; }
  __INLINE __local T& operator[](size_t i) __local { return __elems[i]; }
  __INLINE const __local T& operator[](size_t i) const __local { return __elems[i]; }
  __INLINE const __constant T& operator[](size_t i) const __constant { return __elems[i]; }
};

// A value that is the same in all threads; here it is the value itself.
template<typename T> using uniform = T;
template<typename T> __INLINE constexpr T make_uniform(T x) { return x; }
}
