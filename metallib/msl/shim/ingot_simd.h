// <metal_compute>, <metal_simdgroup> and <metal_quadgroup>: barriers and what the lanes of a SIMD-group do together.
namespace metal {
enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
__INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((uint)a | (uint)b); }
__INLINE constexpr mem_flags operator&(mem_flags a, mem_flags b) { return (mem_flags)((uint)a & (uint)b); }
enum thread_scope { thread_scope_thread = 0, thread_scope_threadgroup = 1, thread_scope_device = 2, thread_scope_simdgroup = 4 };
void __wg_barrier(int, int) __AIR("air.wg.barrier") __CONV;
void __simdgroup_barrier(int, int) __AIR("air.simdgroup.barrier") __CONV;
// The second operand is the scope: a threadgroup (1), a SIMD-group (4).
__INLINE void threadgroup_barrier(mem_flags flags) { __wg_barrier((int)flags, 1); }
__INLINE void simdgroup_barrier(mem_flags flags) { __simdgroup_barrier((int)flags, 4); }

// One operand, per scalar and vector type: floating-point types, integers with their signedness.
#define __LANES_F(DO, F) \
  DO(F, float, "f32") DO(F, float2, "v2f32") DO(F, float3, "v3f32") DO(F, float4, "v4f32") \
  DO(F, half, "f16") DO(F, half2, "v2f16") DO(F, half3, "v3f16") DO(F, half4, "v4f16")
#define __LANES_T(DO, F, T, S, B) \
  DO(F, T, S ".i" B) DO(F, T##2, S ".v2i" B) DO(F, T##3, S ".v3i" B) DO(F, T##4, S ".v4i" B)
#define __LANES_I(DO, F) \
  __LANES_T(DO, F, char, "s", "8") __LANES_T(DO, F, uchar, "u", "8") __LANES_T(DO, F, short, "s", "16") __LANES_T(DO, F, ushort, "u", "16") \
  __LANES_T(DO, F, int, "s", "32") __LANES_T(DO, F, uint, "u", "32")
#define __REDUCE(F, T, SUFFIX) T F(T) __AIR("air." #F "." SUFFIX) __CONV;
#define __SHUFFLE(F, T, SUFFIX) T F(T, ushort) __AIR("air." #F "." SUFFIX) __CONV;
#define __FILL(F, T, SUFFIX) \
  T __##F(T, T, ushort, ushort) __AIR("air." #F "." SUFFIX) __CONV; \
  __INLINE T F(T x, T fill, ushort delta) { return __##F(x, fill, delta, 32); } \
  __INLINE T F(T x, T fill, ushort delta, ushort modulo) { return __##F(x, fill, delta, modulo); }
#define __ALL(DO, F) __LANES_F(DO, F) __LANES_I(DO, F)

__ALL(__REDUCE, simd_sum) __ALL(__REDUCE, simd_product) __ALL(__REDUCE, simd_min) __ALL(__REDUCE, simd_max)
__LANES_I(__REDUCE, simd_and) __LANES_I(__REDUCE, simd_or) __LANES_I(__REDUCE, simd_xor)
__ALL(__REDUCE, simd_prefix_inclusive_sum) __ALL(__REDUCE, simd_prefix_exclusive_sum)
__ALL(__REDUCE, simd_prefix_inclusive_product) __ALL(__REDUCE, simd_prefix_exclusive_product)
__ALL(__REDUCE, simd_broadcast_first)
__ALL(__SHUFFLE, simd_broadcast) __ALL(__SHUFFLE, simd_shuffle) __ALL(__SHUFFLE, simd_shuffle_xor)
__ALL(__SHUFFLE, simd_shuffle_up) __ALL(__SHUFFLE, simd_shuffle_down)
__ALL(__SHUFFLE, simd_shuffle_rotate_up) __ALL(__SHUFFLE, simd_shuffle_rotate_down)
__ALL(__FILL, simd_shuffle_and_fill_up) __ALL(__FILL, simd_shuffle_and_fill_down)
__ALL(__REDUCE, quad_sum) __ALL(__REDUCE, quad_product) __ALL(__REDUCE, quad_min) __ALL(__REDUCE, quad_max)
__ALL(__REDUCE, quad_broadcast_first)
__ALL(__SHUFFLE, quad_broadcast) __ALL(__SHUFFLE, quad_shuffle) __ALL(__SHUFFLE, quad_shuffle_xor)
__ALL(__SHUFFLE, quad_shuffle_up) __ALL(__SHUFFLE, quad_shuffle_down)
#undef __LANES_F
#undef __LANES_T
#undef __LANES_I
#undef __REDUCE
#undef __SHUFFLE
#undef __FILL
#undef __ALL

bool simd_all(bool) __AIR("air.simd_all") __CONV;
bool simd_any(bool) __AIR("air.simd_any") __CONV;
bool simd_is_first() __AIR("air.simd_is_first") __CONV;
ulong __simd_ballot(bool) __AIR("air.simd_ballot.i64") __CONV;
ulong __simd_active() __AIR("air.simd_active_threads_mask.i64") __CONV;
bool __simd_vote_all(ulong) __AIR("air.simd_vote_all.i64") __CONV;
bool __simd_vote_any(ulong) __AIR("air.simd_vote_any.i64") __CONV;
struct simd_vote {
  typedef ulong vote_t;
  vote_t v;
  __INLINE explicit simd_vote(vote_t mask) : v(mask) {}
  __INLINE explicit operator vote_t() const { return v; }
  __INLINE bool all() const { return __simd_vote_all(v); }
  __INLINE bool any() const { return __simd_vote_any(v); }
};
__INLINE simd_vote simd_ballot(bool b) { return simd_vote(__simd_ballot(b)); }
__INLINE simd_vote simd_active_threads_mask() { return simd_vote(__simd_active()); }
}
