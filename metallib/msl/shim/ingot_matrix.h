// <metal_matrix>: matrices of C columns of R rows, in columns.
namespace metal {
template<typename T, int C, int R> struct matrix {
  vec<T, R> columns[C];
  matrix() = default;
  __INLINE explicit matrix(T diagonal) {
    for (int i = 0; i < C; i++) for (int j = 0; j < R; j++) columns[i][j] = i == j ? diagonal : T(0);
  }
  template<typename U> __INLINE explicit matrix(matrix<U, C, R> o) {
    for (int i = 0; i < C; i++) columns[i] = __builtin_convertvector(o.columns[i], __vec<T, R>);
  }
  template<typename... V, typename = enable_if_t<sizeof...(V) + 2 == C && C != 1>>
  __INLINE matrix(vec<T, R> a, vec<T, R> b, V... v) : columns{a, b, v...} {}
#define __SPACE(AS) \
  __INLINE AS vec<T, R>& operator[](int i) AS { return columns[i]; } \
  __INLINE const AS vec<T, R>& operator[](int i) const AS { return columns[i]; }
  __SPACE(__private) __SPACE(__global) __SPACE(__local)
#undef __SPACE
  __INLINE const __constant vec<T, R>& operator[](int i) const __constant { return columns[i]; }
};
template<typename T, int C, int R> __INLINE matrix<T, C, R> operator+(matrix<T, C, R> a, matrix<T, C, R> b) {
  for (int i = 0; i < C; i++) a.columns[i] += b.columns[i];
  return a;
}
template<typename T, int C, int R> __INLINE matrix<T, C, R> operator-(matrix<T, C, R> a, matrix<T, C, R> b) {
  for (int i = 0; i < C; i++) a.columns[i] -= b.columns[i];
  return a;
}
template<typename T, int C, int R> __INLINE matrix<T, C, R> operator*(matrix<T, C, R> a, T s) {
  for (int i = 0; i < C; i++) a.columns[i] *= s;
  return a;
}
template<typename T, int C, int R> __INLINE matrix<T, C, R> operator*(T s, matrix<T, C, R> a) { return a * s; }
template<typename T, int C, int R> __INLINE vec<T, R> operator*(matrix<T, C, R> m, vec<T, C> v) {
  vec<T, R> r = m.columns[0] * v[0];
  for (int i = 1; i < C; i++) r += m.columns[i] * v[i];
  return r;
}
template<typename T, int C, int R> __INLINE vec<T, C> operator*(vec<T, R> v, matrix<T, C, R> m) {
  vec<T, C> r;
  for (int i = 0; i < C; i++) r[i] = dot(v, m.columns[i]);
  return r;
}
template<typename T, int C, int R, int K> __INLINE matrix<T, C, R> operator*(matrix<T, K, R> a, matrix<T, C, K> b) {
  matrix<T, C, R> r;
  for (int i = 0; i < C; i++) r.columns[i] = a * b.columns[i];
  return r;
}
template<typename T, int C, int R> __INLINE matrix<T, R, C> transpose(matrix<T, C, R> m) {
  matrix<T, R, C> r;
  for (int i = 0; i < C; i++) for (int j = 0; j < R; j++) r.columns[j][i] = m.columns[i][j];
  return r;
}
}
#define __MATRICES(T) \
  typedef metal::matrix<T, 2, 2> T##2x2; typedef metal::matrix<T, 2, 3> T##2x3; typedef metal::matrix<T, 2, 4> T##2x4; \
  typedef metal::matrix<T, 3, 2> T##3x2; typedef metal::matrix<T, 3, 3> T##3x3; typedef metal::matrix<T, 3, 4> T##3x4; \
  typedef metal::matrix<T, 4, 2> T##4x2; typedef metal::matrix<T, 4, 3> T##4x3; typedef metal::matrix<T, 4, 4> T##4x4;
__MATRICES(float) __MATRICES(half)
#undef __MATRICES

// <metal_simdgroup_matrix>: an 8 by 8 matrix spread over the lanes of a SIMD-group.
template<typename T> using __vec64 = T __attribute__((ext_vector_type(64)));
#define __MATRIX_TYPE(T, S) \
  __vec64<T> __sgm_filled(T) __AIR("air.simdgroup_matrix_8x8_init_filled.v64" S "." S) __CONV; \
  __vec64<T> __sgm_diag(T) __AIR("air.simdgroup_matrix_8x8_init_diag.v64" S "." S) __CONV;
#define __MATRIX_MEMORY(T, S, AS, N) \
  __vec64<T> __sgm_load(const AS T*, ulong, long2, bool) __AIR("air.simdgroup_matrix_8x8_load.v64" S ".p" N S) __CONV; \
  void __sgm_store(__vec64<T>, AS T*, ulong, long2, bool) __AIR("air.simdgroup_matrix_8x8_store.v64" S ".p" N S) __CONV;
#define __MATRIX_MAC(D, SD, A, SA, B, SB) \
  __vec64<D> __sgm_mac(__vec64<A>, __vec64<B>, __vec64<D>) \
    __AIR("air.simdgroup_matrix_8x8_multiply_accumulate.v64" SD ".v64" SA ".v64" SB ".v64" SD) __CONV;
__MATRIX_TYPE(float, "f32") __MATRIX_TYPE(half, "f16") __MATRIX_TYPE(bfloat, "bf16")
__MATRIX_MEMORY(float, "f32", __global, "1") __MATRIX_MEMORY(float, "f32", __local, "3")
__MATRIX_MEMORY(half, "f16", __global, "1") __MATRIX_MEMORY(half, "f16", __local, "3")
__MATRIX_MEMORY(bfloat, "bf16", __global, "1") __MATRIX_MEMORY(bfloat, "bf16", __local, "3")
#define __MATRIX_PAIRS(D, SD) \
  __MATRIX_MAC(D, SD, float, "f32", float, "f32") __MATRIX_MAC(D, SD, float, "f32", half, "f16") __MATRIX_MAC(D, SD, half, "f16", float, "f32") \
  __MATRIX_MAC(D, SD, half, "f16", half, "f16") __MATRIX_MAC(D, SD, bfloat, "bf16", bfloat, "bf16") __MATRIX_MAC(D, SD, float, "f32", bfloat, "bf16") \
  __MATRIX_MAC(D, SD, bfloat, "bf16", float, "f32") __MATRIX_MAC(D, SD, half, "f16", bfloat, "bf16") __MATRIX_MAC(D, SD, bfloat, "bf16", half, "f16")
__MATRIX_PAIRS(float, "f32") __MATRIX_PAIRS(half, "f16") __MATRIX_PAIRS(bfloat, "bf16")
#undef __MATRIX_TYPE
#undef __MATRIX_MEMORY
#undef __MATRIX_MAC
#undef __MATRIX_PAIRS
namespace metal {
template<typename T, int C, int R> struct simdgroup_matrix {
  static_assert(C == 8 && R == 8, "simdgroup matrices are 8 by 8");
  __vec64<T> __v;
  simdgroup_matrix() = default;
  __INLINE explicit simdgroup_matrix(T diagonal) : __v(__sgm_diag(diagonal)) {}
  // Elements 0 and 1 of the vector are the lane's own.
  __INLINE __private vec<T, 2>& thread_elements() { return *(__private vec<T, 2>*)&__v; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
template<typename T, int C, int R = C, typename S> __INLINE simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(S value) {
  simdgroup_matrix<T, C, R> m;
  m.__v = __sgm_filled((T)value);
  return m;
}
template<typename T, int C, int R, typename P>
__INLINE void simdgroup_load(__private simdgroup_matrix<T, C, R>& d, P src, ulong elements_per_row = 8, ulong2 origin = 0, bool transpose = false) {
  d.__v = __sgm_load(src, elements_per_row, __builtin_convertvector(origin, long2), transpose);
}
template<typename T, int C, int R, typename P>
__INLINE void simdgroup_store(simdgroup_matrix<T, C, R> a, P dst, ulong elements_per_row = 8, ulong2 origin = 0, bool transpose = false) {
  __sgm_store(a.__v, dst, elements_per_row, __builtin_convertvector(origin, long2), transpose);
}
template<typename T, typename A, typename B>
__INLINE void simdgroup_multiply_accumulate(__private simdgroup_matrix<T, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<T, 8, 8> c) {
  d.__v = __sgm_mac(a.__v, b.__v, c.__v);
}
template<typename T, typename A, typename B>
__INLINE void simdgroup_multiply(__private simdgroup_matrix<T, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b) {
  d.__v = __sgm_mac(a.__v, b.__v, __sgm_filled(T(0)));
}
template<typename T> __INLINE simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a, simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}
}
