// Packed vectors: elements side by side without padding, converted to and from vectors where they are used.
template<typename T, int N> struct __packed_elements;
template<typename T> struct __packed_elements<T, 2> { T x, y; };
template<typename T> struct __packed_elements<T, 3> { T x, y, z; };
template<typename T> struct __packed_elements<T, 4> { T x, y, z, w; };
template<typename T, int N> struct __packed : __packed_elements<T, N> {
  typedef __vec<T, N> V;
  typedef __packed_elements<T, N> E;
  __packed() = default;
  __INLINE __packed(V v) { __put(this, v); }
  __INLINE __packed(T a, T b) : E{a, b} {}
  __INLINE __packed(T a, T b, T c) : E{a, b, c} {}
  __INLINE __packed(T a, T b, T c, T d) : E{a, b, c, d} {}
#define __SPACE(AS) \
  __INLINE operator V() const AS { return __get(this); } \
  __INLINE T operator[](int i) const AS { return ((const AS T*)this)[i]; }
#define __WRITABLE(AS) \
  template<int M> __INLINE void operator=(__vec<T, M> v) AS { __put(this, v); } \
  __INLINE AS T& operator[](int i) AS { return ((AS T*)this)[i]; }
  __SPACE(__private) __SPACE(__global) __SPACE(__local) __SPACE(__constant)
  __WRITABLE(__private) __WRITABLE(__global) __WRITABLE(__local)
#undef __SPACE
#undef __WRITABLE
  template<typename P> static __INLINE V __get(P p) {
    if constexpr (N == 2) return V{p->x, p->y};
    else if constexpr (N == 3) return V{p->x, p->y, p->z};
    else return V{p->x, p->y, p->z, p->w};
  }
  template<typename P> static __INLINE void __put(P p, V v) {
    p->x = v.x;
    p->y = v.y;
    if constexpr (N > 2) p->z = v[2];
    if constexpr (N > 3) p->w = v[3];
  }
};
template<typename T, int N> struct __element<__packed<T, N>> { typedef T type; static constexpr int lanes = N; };
#define __PACKED(T) typedef __packed<T, 2> packed_##T##2; typedef __packed<T, 3> packed_##T##3; typedef __packed<T, 4> packed_##T##4;
__PACKED(char) __PACKED(uchar) __PACKED(short) __PACKED(ushort) __PACKED(int) __PACKED(uint) __PACKED(long) __PACKED(ulong)
__PACKED(half) __PACKED(float) __PACKED(bfloat)
#undef __PACKED
