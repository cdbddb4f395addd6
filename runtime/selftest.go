package runtime

import (
	"errors"
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

// SelfTest runs small inputs through kernels of every family of the embedded library, directly and as a replayed program, and
// compares with answers computed on the host in float64: to know that this device, this system and this library
// give right results together. The error joins one for each kernel that does not. Kernels that a library of
// [WithLibrary] does not have are left out.
func (rt *Runtime) SelfTest() error {
	if err := rt.opened("Runtime.SelfTest"); err != nil {
		return err
	}
	var all []error
	done := 0
	for i := range selfTests {
		ran, err := rt.selfTest(&selfTests[i])
		if !ran {
			continue
		}
		done++
		if err != nil {
			all = append(all, &Error{Func: "Runtime.SelfTest", Arg: selfTests[i].kernel, Err: err})
		}
		if rt.Err() != nil {
			break
		}
	}
	if done == 0 {
		return &Error{Func: "Runtime.SelfTest", Have: "a library without any of the kernels", Err: ErrKernel}
	}
	return errors.Join(all...)
}

// selfTest is a known answer of one kernel.
type selfTest struct {
	kernel string
	// build makes the memory, and gives what binds it and dispatches.
	build func(m *selfMemory) (groups, threads Size)
}

var selfTests = []selfTest{
	{"rms_norm_bf16", selfNorm},
	{"rms_norm_residual_add_f32", selfNormAdd},
	{"embed_lookup_q4_mlx", selfEmbed},
	{"gemv_q4_mlx_simd", selfGEMV},
	{"gemv_q4_mlx_simd_qkv", selfQKV},
	{"gemv_q4_mlx_simd_gate_up_gelu", selfGateUp},
	{"gemv_q4_mlx_simd_i4", selfGEMVInterleaved},
	{"gemm_q4_mlx_simd_add", selfGEMM},
	{"gemv_q4_mlx", selfGEMVF32},
	{"gemv_q4_mlx_blocked", selfGEMVBlocked},
	{"gemv_q4", selfGEMVQ4},
	{"gemv_q8", selfGEMVQ8},
	{"gemm_int8_nt_f32", selfGEMMInt8},
	{"row_exact_mv_q8_0_f32_r2_m3", selfRowExactQ8},
	{"row_exact_mv_q4_K_f32_r2_m2", selfRowExactQ4K},
	{"qmv_affine_b6_m4", selfAffineVectors},
	{"qmm_affine_b8_t64", selfAffineTile},
	{"qmm_affine_t_f32_simd4", selfAffineSimd4},
	{"qmm_affine_t_packed_simd4_b4_gs64_bf16", selfAffinePlane},
	{"embed_lookup_affine_b6", selfEmbedAffine},
	{"rms_qkv_rope_kv_store", selfRope},
	{"rms_qkv_rope_opt", selfRopeOptions},
	{"flash_attn_rows_h128_r8_g8", selfAttention},
	{"flash_attn_swa_h128", selfTiled},
	{"flash_attn_decode_partial_h128_c64_r8", selfPartial},
	{"flash_attn_decode_reduce_h128_c64", selfReduce},
	{"softcap_argmax_one_pass", selfArgmax},
	{"argmax_f32", selfArgmaxPass},
	{"cast_f32_f16", selfCast},
	{"add_f32", selfAdd},
	{"add_bias_f32", selfAddBias},
	{"mlp_silu", selfSiLU},
	{"embed_lookup_q4", selfEmbedQ4},
	{"embed_lookup_q4_K", selfEmbedBlocks},
	{"kv_store_timestep", selfStore},
	{"softmax_rows_f32", selfSoftmax},
	{"decode_advance", selfAdvance},
	{"gemm_dense_f32_t32", selfGEMMF32},
	{"gemm_dense_f16_t64", selfGEMMF16},
	{"gemm_dense_bf16_t32", selfGEMMBF16},
	{"gemm_weights_q8_0_t32", selfGEMMWeights},
	{"gemv_dense_f16", selfGEMVDense},
	{"gemv_dense_t_bf16", selfGEMVDenseTrans},
	{"flash_attn_prefill_precise_d64_v16", selfPrecise},
	{"flash_attn_prefill_precise_d512_v16", selfPrecise512},
	{"flash_attn_prefill_blk", selfMaskTiles},
	{"tqhb_encode_h64", selfEncode},
}

// selfTest runs one known answer, unless the device cannot or a library of the user's does not have the kernel.
func (rt *Runtime) selfTest(t *selfTest) (ran bool, err error) {
	m := &selfMemory{rt: rt}
	defer m.release()
	groups, threads := t.build(m)
	if m.err != nil {
		return true, m.err
	}
	if m.unsupported {
		return false, nil
	}
	l := Launch{name: t.kernel}
	l.nconst = copy(l.consts[:], m.constants)
	if _, err := rt.pipeline(&l); err != nil {
		return !isNoKernel(err) || rt.LibraryOrigin() != OriginUser, err
	}
	return true, m.run(t.kernel, groups, threads)
}

// run runs the kernel directly and as a program, and compares.
func (m *selfMemory) run(kernel string, groups, threads Size) error {
	rt := m.rt
	encode := func(p *Pass) error {
		l := p.Kernel(kernel)
		for _, c := range m.constants {
			l.constant(c.index, c.kind, c.bits)
		}
		for _, bind := range m.binds {
			bind(l)
		}
		return l.Dispatch(groups, threads)
	}
	if err := rt.Run(encode); err != nil {
		return err
	}
	if err := m.check("direct"); err != nil {
		return err
	}
	if err := m.reset(); err != nil {
		return err
	}
	prog, err := rt.Record(encode)
	if err != nil {
		return err
	}
	defer func() { _ = prog.Release() }()
	if err := prog.Run(); err != nil {
		return err
	}
	return m.check("replayed")
}

// selfMemory is what a known answer binds. The first error counts.
type selfMemory struct {
	rt  *Runtime
	err error
	// unsupported says that this device does not have what the kernel needs.
	unsupported bool
	constants   []constant // of the kernel, by index

	binds  []func(l *Launch)
	checks []func() error
	resets []func() error
	frees  []func() error
}

func (m *selfMemory) release() {
	for _, f := range m.frees {
		_ = f() // fails only if the runtime was closed meanwhile
	}
}

func (m *selfMemory) reset() error {
	for _, f := range m.resets {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (m *selfMemory) check(how string) error {
	for _, f := range m.checks {
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", how, err)
		}
	}
	return nil
}

// hold puts data on the device.
func hold[T Element](m *selfMemory, data []T) Slice[T] {
	s, err := SliceOf(m.rt, data)
	if err != nil {
		m.err = errors.Join(m.err, err)
		return s
	}
	m.frees = append(m.frees, s.Release)
	m.resets = append(m.resets, func() error { return s.Write(data) })
	return s
}

// input binds data that the kernel reads.
func input[T Element](m *selfMemory, slot int, data []T) {
	s := hold(m, data)
	m.binds = append(m.binds, func(l *Launch) { l.Read(slot, s.View()) })
}

// output binds memory that the kernel must turn from before into want, each element within tolerance of it relative
// to scale. A guard element on each side must stay as it is.
func output[T Element](m *selfMemory, slot int, before []T, want []float64, tolerance, scale float64, value func(T) float64) {
	const guards = 16 // keeps the alignment that kernels need
	data := make([]T, guards+len(before)+guards)
	for i := range data {
		data[i] = T(77)
	}
	copy(data[guards:], before)
	s := hold(m, data)
	m.binds = append(m.binds, func(l *Launch) { l.ReadWrite(slot, s.Slice(guards, guards+len(before)).View()) })
	m.checks = append(m.checks, func() error {
		got := make([]T, len(data))
		if err := s.Read(got); err != nil {
			return err
		}
		for i, v := range got {
			at := i - guards
			if at < 0 || at >= len(before) {
				if v != T(77) {
					return fmt.Errorf("slot %d: element %d, outside of the output, was written", slot, at)
				}
				continue
			}
			if d := math.Abs(value(v) - want[at]); !(d <= tolerance*scale) {
				return fmt.Errorf("slot %d: element %d is %v, not %v (differs by %.3g, allowed %.3g)", slot, at, value(v), want[at], d, tolerance*scale)
			}
		}
		return nil
	})
}

func (m *selfMemory) uints(slot int, values ...uint32) {
	for i, v := range values {
		m.binds = append(m.binds, func(l *Launch) { l.Uint32(slot+i, v) })
	}
}

func (m *selfMemory) float(slot int, v float32) {
	m.binds = append(m.binds, func(l *Launch) { l.Float32(slot, v) })
}

func f32(v float32) float64        { return float64(v) }
func bf16(v half.BFloat16) float64 { return float64(v.Float32()) }
func u32(v uint32) float64         { return float64(v) }

// pattern is n different small numbers, the same each time, that bfloat holds exactly.
func pattern(n, seed int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32((i*37+seed*11)%61-30) / 32
	}
	return s
}

func toF16(s []float32) []half.Float16 { return half.Float16s(s) }

func toBF16(s []float32) []half.BFloat16 {
	b := make([]half.BFloat16, len(s))
	for i, v := range s {
		b[i] = half.BFloat16FromFloat32(v)
	}
	return b
}

func zeros(n int) []float32 { return make([]float32, n) }

func maxAbs(s []float64) float64 {
	m := 1e-6
	for _, v := range s {
		m = max(m, math.Abs(v))
	}
	return m
}
