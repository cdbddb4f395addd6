#include <metal_stdlib>
using namespace metal;

constant bool has_weight [[function_constant(0)]];
constant uint scale_mode [[function_constant(1)]];
constant bool plain = !has_weight && scale_mode == 0;

struct Params {
  uint rows, dim;
  float eps;
};

// out[r][i] = x[r][i] / sqrt(mean(x[r]^2) + eps) * weight[i], one threadgroup per row.
template <typename T>
kernel void rms_norm(device const T* x [[buffer(0)]],
                     device const bfloat* weight [[buffer(1)]],
                     device T* out [[buffer(2)]],
                     constant Params& p [[buffer(3)]],
                     uint row [[threadgroup_position_in_grid]],
                     uint tid [[thread_index_in_threadgroup]],
                     uint threads [[threads_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint group [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[32];
  threadgroup float inverse;
  const size_t base = size_t(row) * p.dim;
  float sum = 0;
  for (uint i = tid; i < p.dim; i += threads) {
    float v = float(x[base + i]);
    sum = fma(v, v, sum);
  }
  sum = simd_sum(sum);
  if (lane == 0) partial[group] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (group == 0) {
    sum = simd_sum(lane < (threads + 31) / 32 ? partial[lane] : 0.0);
    if (lane == 0) inverse = precise::rsqrt(sum / float(p.dim) + p.eps);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < p.dim; i += threads) {
    float v = float(x[base + i]) * inverse;
    if (!plain && has_weight) v *= float(weight[i]);
    out[base + i] = T(v);
  }
}

template [[host_name("rms_norm_bf16")]] kernel void rms_norm<bfloat>(
    device const bfloat*, device const bfloat*, device bfloat*, constant Params&, uint, uint, uint, uint, uint);
template [[host_name("rms_norm_f32")]] kernel void rms_norm<float>(
    device const float*, device const bfloat*, device float*, constant Params&, uint, uint, uint, uint, uint);
