// <metal_integer>.
namespace metal {
#define __INTEGER(T, U, BITS) \
  __INLINE T max(T a, T b) { return __builtin_elementwise_max(a, b); } \
  __INLINE T min(T a, T b) { return __builtin_elementwise_min(a, b); } \
  __INLINE T max3(T a, T b, T c) { return max(max(a, b), c); } \
  __INLINE T min3(T a, T b, T c) { return min(min(a, b), c); } \
  __INLINE T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); } \
  __INLINE T clamp(T x, T lo, T hi) { return min(max(x, lo), hi); } \
  __INLINE T addsat(T a, T b) { return __builtin_elementwise_add_sat(a, b); } \
  __INLINE T subsat(T a, T b) { return __builtin_elementwise_sub_sat(a, b); } \
  __INLINE U absdiff(T a, T b) { return a > b ? U(a) - U(b) : U(b) - U(a); } \
  __INLINE T rotate(T x, T n) { return T(U(U(x) << (U(n) & U(BITS - 1))) | U(U(x) >> (U(-U(n)) & U(BITS - 1)))); } \
  __INLINE T extract_bits(T x, uint offset, uint bits) { \
    return bits == 0 ? T(0) : T(T(U(x) << (BITS - bits - offset)) >> (BITS - bits)); } \
  __INLINE T insert_bits(T base, T insert, uint offset, uint bits) { \
    U mask = bits >= BITS ? U(~U(0)) : U(((U(1) << bits) - U(1)) << offset); \
    return T((U(base) & U(~mask)) | (U(U(insert) << offset) & mask)); }
__INTEGER(char, uchar, 8) __INTEGER(uchar, uchar, 8) __INTEGER(short, ushort, 16) __INTEGER(ushort, ushort, 16)
__INTEGER(int, uint, 32) __INTEGER(uint, uint, 32) __INTEGER(long, ulong, 64) __INTEGER(ulong, ulong, 64)
#undef __INTEGER
#define __ABS(T) __INLINE T abs(T a) { return __builtin_elementwise_abs(a); }
__ABS(char) __ABS(short) __ABS(int) __ABS(long)
#undef __ABS
#define __ABS(T) __INLINE T abs(T a) { return a; }
__ABS(uchar) __ABS(ushort) __ABS(uint) __ABS(ulong)
#undef __ABS
#define __VECTOR(T, N) \
  __INLINE T##N max(T##N a, T##N b) { return __builtin_elementwise_max(a, b); } \
  __INLINE T##N min(T##N a, T##N b) { return __builtin_elementwise_min(a, b); } \
  __INLINE T##N max(T##N a, T b) { return __builtin_elementwise_max(a, T##N(b)); } \
  __INLINE T##N min(T##N a, T b) { return __builtin_elementwise_min(a, T##N(b)); } \
  __INLINE T##N clamp(T##N x, T##N lo, T##N hi) { return min(max(x, lo), hi); } \
  __INLINE T##N clamp(T##N x, T lo, T hi) { return min(max(x, lo), hi); }
#define __VECTORS(T) __VECTOR(T, 2) __VECTOR(T, 3) __VECTOR(T, 4)
__VECTORS(char) __VECTORS(uchar) __VECTORS(short) __VECTORS(ushort) __VECTORS(int) __VECTORS(uint) __VECTORS(long) __VECTORS(ulong)
#undef __VECTOR
#undef __VECTORS
#define __BITS(T, I, N) \
  I __popcount(I) __AIR("air.popcount.i" #N) __PURE; \
  I __clz(I, bool) __AIR("air.clz.i" #N) __PURE; \
  I __ctz(I, bool) __AIR("air.ctz.i" #N) __PURE; \
  I __reverse_bits(I) __AIR("air.reverse_bits.i" #N) __PURE;
__BITS(char, uchar, 8) __BITS(short, ushort, 16) __BITS(int, uint, 32) __BITS(long, ulong, 64)
#undef __BITS
#define __BITS(T, U) \
  __INLINE T popcount(T x) { return (T)__popcount((U)x); } \
  __INLINE T clz(T x) { return (T)__clz((U)x, false); } \
  __INLINE T ctz(T x) { return (T)__ctz((U)x, false); } \
  __INLINE T reverse_bits(T x) { return (T)__reverse_bits((U)x); }
__BITS(char, uchar) __BITS(uchar, uchar) __BITS(short, ushort) __BITS(ushort, ushort) __BITS(int, uint) __BITS(uint, uint) __BITS(long, ulong) __BITS(ulong, ulong)
#undef __BITS
int mulhi(int, int) __AIR("air.mul_hi.s.i32") __PURE;
uint mulhi(uint, uint) __AIR("air.mul_hi.u.i32") __PURE;
long mulhi(long, long) __AIR("air.mul_hi.s.i64") __PURE;
ulong mulhi(ulong, ulong) __AIR("air.mul_hi.u.i64") __PURE;
__INLINE short mulhi(short a, short b) { return (short)(((int)a * b) >> 16); }
__INLINE ushort mulhi(ushort a, ushort b) { return (ushort)(((uint)a * b) >> 16); }
__INLINE int madhi(int a, int b, int c) { return mulhi(a, b) + c; }
__INLINE uint madhi(uint a, uint b, uint c) { return mulhi(a, b) + c; }
__INLINE int mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
__INLINE uint mul24(uint a, uint b) { return (a & 0xffffffu) * (b & 0xffffffu); }
__INLINE int mad24(int a, int b, int c) { return mul24(a, b) + c; }
__INLINE uint mad24(uint a, uint b, uint c) { return mul24(a, b) + c; }
}
