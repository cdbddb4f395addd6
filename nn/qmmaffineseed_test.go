package nn

import (
	"math"
	"reflect"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// A product with the numbers that the tests of the kernels' contract use.
type seedProduct struct {
	t       *testing.T
	rt      *runtime.Runtime
	m, n, k int
	w       quant.AffineCodes
	x       []float32
	in      *buffer[float32]
}

// newSeedProduct makes element i of x, of the codes, and of scales and biases by functions of i.
func newSeedProduct(t *testing.T, m, n, k, group int, x func(i float64) float64, code func(i int) int, scale, bias func(i float64) float64) *seedProduct {
	t.Helper()
	s := &seedProduct{t: t, rt: open(t), m: m, n: n, k: k, w: quant.AffineCodes{Rows: n, Cols: k, GroupSize: group}}
	for i := range m * k {
		s.x = append(s.x, float32(x(float64(i))))
	}
	for i := range n * k {
		s.w.Codes = append(s.w.Codes, uint8(code(i)))
	}
	for i := range n * k / group {
		s.w.Scales, s.w.Biases = append(s.w.Scales, float32(scale(float64(i)))), append(s.w.Biases, float32(bias(float64(i))))
	}
	s.in = newBuffer(t, s.rt, s.x)
	return s
}

// waves is what most of the tests use, and ramps what those of ragged tiles do.
func waves(t *testing.T, m, n, k, group int) *seedProduct {
	return newSeedProduct(t, m, n, k, group, func(i float64) float64 { return math.Sin(i*0.013-0.4) * 0.6 }, func(i int) int { return (i*11 + 3) % 16 },
		func(i float64) float64 { return 0.05 + i*0.003 }, func(i float64) float64 { return -0.2 + i*0.011 })
}

func ramps(t *testing.T, m, n, k, group int, scale, bias float64) *seedProduct {
	return newSeedProduct(t, m, n, k, group, func(i float64) float64 { return i*0.011 - 0.5 }, func(i int) int { return i * 7 % 16 },
		func(i float64) float64 { return 0.07 + i*scale }, func(i float64) float64 { return -0.1 + i*bias })
}

// cpu is the formula, group by group, in float64, rounded to float32.
func (s *seedProduct) cpu() []float32 {
	y := make([]float32, s.m*s.n)
	for r := range s.m {
		for col := range s.n {
			sum := 0.0
			for i := range s.k {
				g := col*(s.k/s.w.GroupSize) + i/s.w.GroupSize
				sum += float64(s.x[r*s.k+i]) * (float64(s.w.Codes[col*s.k+i])*float64(s.w.Scales[g]) + float64(s.w.Biases[g]))
			}
			y[r*s.n+col] = float32(sum)
		}
	}
	return y
}

func (s *seedProduct) run(kernel QMMAffineKernel) []float32 {
	s.t.Helper()
	w, y := uploadAffineCodes(s.t, s.rt, s.w), output[float32](s.t, s.rt, s.m*s.n)
	encode(s.t, s.rt, 1, func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, w.bank, s.in.s, s.m, kernel) })
	return y.written()
}

func (s *seedProduct) packed() []float32 {
	s.t.Helper()
	a, err := s.w.Pack(4)
	if err != nil {
		s.t.Fatal(err)
	}
	w, y := uploadAffine(s.t, s.rt, a), output[float32](s.t, s.rt, s.m*s.n)
	encode(s.t, s.rt, 1, func(p *runtime.Pass) error { return QMMAffinePacked(p, y.s, w.bank, s.in.s, s.m) })
	return y.written()
}

// near fails where got is off by tolerance of a value, or of 1 where it is smaller.
func near(t *testing.T, got, want []float32, tolerance float64) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(float64(got[i])-float64(w)) < tolerance*max(math.Abs(float64(w)), 1)) {
			t.Fatalf("y[%d]: %v, want %v", i, got[i], w)
		}
	}
}

// refusesGroups asserts that a kernel refuses groups of another size than it is built for.
func refusesGroups(t *testing.T, kernel QMMAffineKernel, group int) {
	t.Helper()
	s := waves(t, 1, 1, group, group)
	w, y := uploadAffineCodes(t, s.rt, s.w), output[float32](t, s.rt, 1)
	refuses(t, s.rt, "nn.QMMAffineCodes", []target{y}, []refusal{{"groups", func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, w.bank, s.in.s, 1, kernel) },
		runtime.ErrShape, []string{"w", "groups of", kernel.String()}}})
}

// The tests of the kernels' contract, by their names there.
func TestQMMAffineContract(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"qmm_affine_t_matches_cpu_oracle_4bit_g32", func(t *testing.T) {
			s := waves(t, 8, 16, 64, 32)
			near(t, s.run(QMMAffineScalar), s.cpu(), 1e-3)
		}},
		{"qmm_affine_t_handles_unaligned_m_n", func(t *testing.T) {
			s := ramps(t, 7, 13, 64, 32, 0, 0)
			near(t, s.run(QMMAffineScalar), s.cpu(), 1e-3)
		}},
		{"qmm_affine_t_equals_qdq_then_matmul_composition", func(t *testing.T) {
			s := newSeedProduct(t, 5, 9, 96, 32, func(i float64) float64 { return math.Cos(i*0.017) * 0.5 }, func(i int) int { return (i*13 + 5) % 16 },
				func(i float64) float64 { return 0.04 + i*0.005 }, func(i float64) float64 { return -0.05 + i*0.013 })
			// The weights are dequantised on the device by looking up all rows, and multiplied here.
			a, err := s.w.Pack(4)
			if err != nil {
				t.Fatal(err)
			}
			table, ids, dense := uploadAffine(t, s.rt, a), newBuffer(t, s.rt, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8}), output[float32](t, s.rt, 9*96)
			encode(t, s.rt, 1, func(p *runtime.Pass) error { return EmbedLookupAffine(p, dense.s, table.bank, ids.s, 9, 1) })
			w, want := dense.written(), make([]float32, 5*9)
			for i := range want {
				sum := 0.0
				for k := range 96 {
					sum += float64(s.x[i/9*96+k]) * float64(w[i%9*96+k])
				}
				want[i] = float32(sum)
			}
			near(t, s.run(QMMAffineScalar), want, 1e-3)
		}},
		{"rejects_k_not_divisible_by_group_size", func(t *testing.T) {
			rt := open(t)
			codes, numbers := newBuffer(t, rt, make([]uint8, 32)), newBuffer(t, rt, make([]float32, 1))
			for _, group := range []int{5, 64, 24} { // no power of two; more than there are columns
				_, err := NewAffineCodesBank(codes.s, numbers.s, numbers.s, 1, 32, group)
				checkRefused(t, "nn.NewAffineCodesBank", refusal{"groups", nil, runtime.ErrShape, []string{"", "group size"}}, err)
			}
		}},
		{"qmm_affine_tiled_matches_per_element_kernel", func(t *testing.T) {
			s := waves(t, 32, 64, 128, 32)
			near(t, s.run(QMMAffineTiled), s.run(QMMAffineScalar), 1e-4)
		}},
		{"qmm_affine_tiled_handles_unaligned_m_n", func(t *testing.T) {
			s := ramps(t, 23, 47, 64, 32, 0.001, 0.002)
			near(t, s.run(QMMAffineTiled), s.cpu(), 1e-3)
		}},
		{"qmm_affine_tiled_rejects_non_32_group_size", func(t *testing.T) { refusesGroups(t, QMMAffineTiled, 64) }},
		{"rejects_dtype_mismatch", func(t *testing.T) {
			// Memory of another type does not compile. A bank has the types of the kernels' operands, and no others.
			types := map[string][]reflect.Type{
				"NewAffineCodesBank": {reflect.TypeFor[runtime.Slice[uint8]](), reflect.TypeFor[runtime.Slice[float32]](), reflect.TypeFor[runtime.Slice[float32]]()},
				"QMMAffineCodes":     {reflect.TypeFor[*runtime.Pass](), reflect.TypeFor[runtime.Slice[float32]](), reflect.TypeFor[AffineCodesBank](), reflect.TypeFor[runtime.Slice[float32]]()},
			}
			for name, f := range map[string]any{"NewAffineCodesBank": NewAffineCodesBank, "QMMAffineCodes": QMMAffineCodes} {
				for i, want := range types[name] {
					if got := reflect.TypeOf(f).In(i); got != want {
						t.Errorf("%s, argument %d: %v, want %v", name, i, got, want)
					}
				}
			}
		}},
		{"qmm_affine_simd_matches_per_element_kernel", func(t *testing.T) {
			s := waves(t, 32, 64, 128, 32)
			near(t, s.run(QMMAffineSimd), s.run(QMMAffineScalar), 1e-4)
		}},
		{"qmm_affine_simd_handles_unaligned_m_n", func(t *testing.T) {
			s := ramps(t, 13, 21, 64, 32, 0.001, 0.002)
			near(t, s.run(QMMAffineSimd), s.cpu(), 1e-3)
		}},
		{"qmm_affine_simd_rejects_non_32_group_size", func(t *testing.T) { refusesGroups(t, QMMAffineSimd, 64) }},
		{"qmm_affine_simd4_matches_per_element_kernel", func(t *testing.T) {
			s := waves(t, 32, 64, 128, 32)
			near(t, s.run(QMMAffineSimd4), s.run(QMMAffineScalar), 1e-4)
		}},
		{"qmm_affine_simd4_handles_unaligned_m_n", func(t *testing.T) {
			s := ramps(t, 23, 47, 64, 32, 0.001, 0.002)
			near(t, s.run(QMMAffineSimd4), s.cpu(), 1e-3)
		}},
		{"qmm_affine_simd4_rejects_non_32_group_size", func(t *testing.T) { refusesGroups(t, QMMAffineSimd4, 64) }},
		{"qmm_affine_simd4_gs64_matches_per_element_kernel", func(t *testing.T) {
			s := waves(t, 32, 64, 128, 64)
			near(t, s.run(QMMAffineSimd4GS64), s.run(QMMAffineScalar), 1e-4)
		}},
		{"qmm_affine_simd4_gs64_handles_unaligned_m_n", func(t *testing.T) {
			s := ramps(t, 23, 47, 128, 64, 0.001, 0.002)
			near(t, s.run(QMMAffineSimd4GS64), s.cpu(), 1e-3)
		}},
		{"qmm_affine_simd4_gs64_rejects_non_64_group_size", func(t *testing.T) { refusesGroups(t, QMMAffineSimd4GS64, 32) }},
		{"qmm_affine_packed_gs64_bf16_has_bounded_error", testPlaneBoundedError},
		{"qmm_affine_t_packed_simd4_b4_byte_identity_vs_unpacked_simd4", func(t *testing.T) {
			s := newSeedProduct(t, 32, 64, 128, 32, func(i float64) float64 { return math.Sin(i*0.017+0.3) * 0.4 }, func(i int) int { return (i*7 + 5) % 16 },
				func(i float64) float64 { return 0.04 + i*0.001 }, func(i float64) float64 { return -0.15 + i*0.007 })
			sameElements(t, "packed", s.run(QMMAffineSimd4), s.packed())
		}},
		{"qmm_affine_t_packed_simd4_b4_handles_unaligned_m_n", func(t *testing.T) {
			s := newSeedProduct(t, 17, 50, 96, 32, func(i float64) float64 { return math.Cos(i*0.011-0.2) * 0.5 }, func(i int) int { return (i*13 + 1) % 16 },
				func(i float64) float64 { return 0.06 + i*0.002 }, func(i float64) float64 { return -0.1 + i*0.005 })
			near(t, s.packed(), s.cpu(), 1e-3)
		}},
		{"qmm_affine_t_packed_simd4_b4_rejects_invalid_args", func(t *testing.T) {
			rt, r := open(t), source(1560)
			x, y := newBuffer(t, rt, normals(r, 32*64, 1)), output[float32](t, rt, 32*32)
			with := func(f quant.AffineFormat) func(p *runtime.Pass) error {
				w := randomAffine(t, rt, r, f, 32, 64)
				return func(p *runtime.Pass) error { return QMMAffinePacked(p, y.s, w.bank, x.s, 32) }
			}
			need := "4-bit codes in groups of 32, F32"
			refuses(t, rt, "nn.QMMAffinePacked", []target{y}, []refusal{
				{"8 bits", with(quant.AffineFormat{Bits: 8, GroupSize: 32, Scale: quant.ScaleF32}), runtime.ErrShape, []string{"w", "8-bit", need}},
				{"groups of 64", with(quant.AffineFormat{Bits: 4, GroupSize: 64, Scale: quant.ScaleF32}), runtime.ErrShape, []string{"w", "groups of 64", need}},
				{"scales in bfloat16", with(quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleBF16}), runtime.ErrShape, []string{"w", "BF16", need}},
			})
			// Codes of a byte are another type of bank, which does not compile.
			if got := reflect.TypeOf(QMMAffinePacked).In(2); got != reflect.TypeFor[AffineBank]() {
				t.Error(got)
			}
		}},
	} {
		t.Run(c.name, c.test)
	}
}

// What rounding the vectors to bfloat16 costs: 2^-9 of each product at most, about 2^-9 / sqrt(3) of their root mean square.
func testPlaneBoundedError(t *testing.T) {
	bf16 := func(x float64) float64 { return float64(half.BFloat16FromFloat32(float32(x)).Float32()) }
	s := newSeedProduct(t, 31, 64, 128, 64, func(i float64) float64 { return math.Sin(i*0.013-0.7) * 0.5 }, func(i int) int { return (i*11 + 3) % 16 },
		func(i float64) float64 { return bf16(0.01 + i*0.0001) }, func(i float64) float64 { return bf16(-0.1 + i*0.0002) })
	a := quant.Affine{Format: planeFormat, Rows: 64, Cols: 128, Weight: make([]byte, 64*128/2)}
	if err := quant.PackBits(a.Weight, s.w.Codes, 4); err != nil {
		t.Fatal(err)
	}
	for i := range s.w.Scales {
		scale, bias := half.BFloat16FromFloat32(s.w.Scales[i]), half.BFloat16FromFloat32(s.w.Biases[i])
		a.Scales, a.Biases = append(a.Scales, byte(scale), byte(scale>>8)), append(a.Biases, byte(bias), byte(bias>>8))
	}
	p := newPlaneProduct(t, s.rt, uploadAffinePlane(t, s.rt, a), s.x, 31)
	encode(t, s.rt, 2, func(pass *runtime.Pass) error { return QMMAffinePlane(pass, p.a) })
	got, want := p.y.written(), s.cpu()
	errors, size, worst := 0.0, 0.0, 0.0
	for i, w := range want {
		e := float64(got[i]) - float64(w)
		errors, size = errors+e*e, size+float64(w)*float64(w)
		worst = max(worst, math.Abs(e)/max(math.Abs(float64(w)), 1))
	}
	rms := math.Sqrt(errors / size)
	t.Logf("relative root mean square error %.3g, greatest scaled error %.3g", rms, worst)
	if rms > 5e-3 || worst > 5e-3 {
		t.Error("beyond 5e-3")
	}
}
