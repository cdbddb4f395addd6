// <metal_atomic>: relaxed atomics on device and threadgroup memory.
namespace metal {
enum memory_order { memory_order_relaxed = 0 };
template<typename T> struct atomic { T __s; };
template<typename T> using _atomic = atomic<T>;
// OpenCL has types of these names; the rewriter renames them.
typedef atomic<int> __msl_atomic_int;
typedef atomic<uint> __msl_atomic_uint;
typedef atomic<float> __msl_atomic_float;

// Operands of the intrinsics: address, value, order (0 relaxed), scope (2 device, 1 threadgroup), volatile.
#define __RMW(NAME, OP, T, SPACE, AIRSPACE, SCOPE, SUFFIX) \
  T __atomic_##OP(volatile SPACE T*, T, int, int, bool) __AIR("air.atomic." AIRSPACE "." #OP "." SUFFIX) __attribute__((nothrow)); \
  __INLINE T atomic_##NAME##_explicit(volatile SPACE atomic<T>* object, T operand, memory_order) { \
    return __atomic_##OP(&object->__s, operand, 0, SCOPE, true); }
#define __ACCESS(T, SPACE, AIRSPACE, SCOPE, SUFFIX) \
  T __atomic_load(const volatile SPACE T*, int, int, bool) __AIR("air.atomic." AIRSPACE ".load." SUFFIX) __attribute__((nothrow)); \
  void __atomic_store(volatile SPACE T*, T, int, int, bool) __AIR("air.atomic." AIRSPACE ".store." SUFFIX) __attribute__((nothrow)); \
  T __atomic_cmpxchg(volatile SPACE T*, __private T*, T, int, int, int, bool) __AIR("air.atomic." AIRSPACE ".cmpxchg.weak." SUFFIX) __attribute__((nothrow)); \
  __INLINE T atomic_load_explicit(const volatile SPACE atomic<T>* object, memory_order) { \
    return __atomic_load(&object->__s, 0, SCOPE, true); } \
  __INLINE void atomic_store_explicit(volatile SPACE atomic<T>* object, T desired, memory_order) { \
    __atomic_store(&object->__s, desired, 0, SCOPE, true); } \
  /* The intrinsic gives the old value; MSL wants to know whether it was the expected one, and what it was. */ \
  __INLINE bool atomic_compare_exchange_weak_explicit(volatile SPACE atomic<T>* object, __private T* expected, T desired, memory_order, memory_order) { \
    T want = *expected; \
    T old = __atomic_cmpxchg(&object->__s, expected, desired, 0, 0, SCOPE, true); \
    *expected = old; \
    return old == want; } \
  __RMW(exchange, xchg, T, SPACE, AIRSPACE, SCOPE, SUFFIX)
#define __INTEGERS(T, SPACE, AIRSPACE, SCOPE, SIGN) \
  __ACCESS(T, SPACE, AIRSPACE, SCOPE, "i32") \
  __RMW(fetch_add, add, T, SPACE, AIRSPACE, SCOPE, SIGN ".i32") __RMW(fetch_sub, sub, T, SPACE, AIRSPACE, SCOPE, SIGN ".i32") \
  __RMW(fetch_min, min, T, SPACE, AIRSPACE, SCOPE, SIGN ".i32") __RMW(fetch_max, max, T, SPACE, AIRSPACE, SCOPE, SIGN ".i32") \
  __RMW(fetch_and, and, T, SPACE, AIRSPACE, SCOPE, SIGN ".i32") __RMW(fetch_or, or, T, SPACE, AIRSPACE, SCOPE, SIGN ".i32") \
  __RMW(fetch_xor, xor, T, SPACE, AIRSPACE, SCOPE, SIGN ".i32")
__INTEGERS(int, __global, "global", 2, "s") __INTEGERS(uint, __global, "global", 2, "u")
__INTEGERS(int, __local, "local", 1, "s") __INTEGERS(uint, __local, "local", 1, "u")
__ACCESS(float, __global, "global", 2, "f32") __ACCESS(float, __local, "local", 1, "f32")
__RMW(fetch_add, add, float, __global, "global", 2, "f32") __RMW(fetch_sub, sub, float, __global, "global", 2, "f32")
#undef __RMW
#undef __ACCESS
#undef __INTEGERS
}
