package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// spread makes neighbours of very different size, so that every addition rounds and another order gives other bits.
func spread(r *rand.Rand, x []float32) []float32 {
	for i := range x {
		x[i] = float32(math.Ldexp(float64(x[i]), r.IntN(20)-10))
	}
	return x
}

// affineBudget is what a product of the router may be off by.
func affineBudget(o oracle.Matrix, x []float32, m int) func(i int) float64 {
	_, k := o.Shape()
	size, budget := weightMagnitude(o, x, m), codesBudget(k)
	if m <= MaxQMMAffineVectors {
		size, budget = oracle.GEMMMagnitude(o, x, m), vectorsBudget(k)
	}
	return func(i int) float64 { return size[i]*budget + 1e-36 }
}

// testQMMAffine multiplies in every shape, each in another format, and holds the result against float64.
func testQMMAffine[O, T Float](t *testing.T, rt *runtime.Runtime, w *worst, seed uint64, shapes []qmmShape) {
	t.Helper()
	r, formats := source(seed), affineFormats()
	for i, s := range shapes {
		f := formats[(5*i+int(seed))%len(formats)]
		k := s.groups * f.GroupSize
		m := randomAffine(t, rt, r, f, s.n, k)
		x := elementsOf[T](normals(r, s.m*k, []float64{1, 1e2, 1e-2}[i%3]))
		in, y := newBuffer(t, rt, x), output[O](t, rt, s.m*s.n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return QMMAffine(p, y.s, m.bank, in.s, s.m) })
		wide := asFloat32(x)
		want, budget := oracle.GEMM(m.o, wide, s.m), affineBudget(m.o, wide, s.m)
		w.compare(t, fmt.Sprintf("%+v %v", s, f), widen(y.written()), want,
			func(i int) float64 { return budget(i) + roundingOf[O](want[i])*1.001 })
		if err := ValidateQMMAffine(rt, y.s, m.bank, in.s, s.m); err != nil {
			t.Error(err)
		}
	}
}

func TestQMMAffine(t *testing.T) {
	numbersOnly(t)
	rt := open(t)
	var some [3][]qmmShape // for all types but one, which has all shapes
	for i, s := range qmmShapes {
		some[i%3] = append(some[i%3], s)
	}
	var f32, f16, bf16 worst
	testQMMAffine[float32, float32](t, rt, &f32, 1520, qmmShapes)
	testQMMAffine[float32, half.Float16](t, rt, &f32, 1521, some[1])
	testQMMAffine[float32, half.BFloat16](t, rt, &f32, 1522, some[2])
	f32.log(t, "2^-24 of the magnitude for each rounding", "QMMAffine")
	testQMMAffine[half.Float16, float32](t, rt, &f16, 1523, some[0])
	testQMMAffine[half.Float16, half.Float16](t, rt, &f16, 1524, some[1])
	testQMMAffine[half.Float16, half.BFloat16](t, rt, &f16, 1525, some[2])
	f16.log(t, "sums' and rounding to float16", "QMMAffine")
	testQMMAffine[half.BFloat16, float32](t, rt, &bf16, 1526, some[0])
	testQMMAffine[half.BFloat16, half.Float16](t, rt, &bf16, 1527, some[1])
	testQMMAffine[half.BFloat16, half.BFloat16](t, rt, &bf16, 1528, some[2])
	bf16.log(t, "sums' and rounding to bfloat16", "QMMAffine")
}

// All formats, groups of 256 and 512 too, over more columns than a step of a simdgroup.
func TestQMMAffineFormats(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(1530)
	var w worst
	formats := affineFormats()
	for _, bits := range []int{4, 6, 8} {
		formats = append(formats, quant.AffineFormat{Bits: bits, GroupSize: 256, Scale: quant.ScaleBF16}, quant.AffineFormat{Bits: bits, GroupSize: 512, Scale: quant.ScaleF16})
	}
	for _, f := range formats {
		k := ceilDiv(544, f.GroupSize) * f.GroupSize
		a := randomAffine(t, rt, r, f, 6, k)
		for _, m := range []int{3, 18} {
			x := normals(r, m*k, 1)
			in, y := newBuffer(t, rt, x), output[float32](t, rt, m*6)
			encode(t, rt, 1, func(p *runtime.Pass) error { return QMMAffine(p, y.s, a.bank, in.s, m) })
			w.compare(t, fmt.Sprintf("%v, %d vectors", f, m), widen(y.written()), oracle.GEMM(a.o, x, m), affineBudget(a.o, x, m))
		}
	}
	w.log(t, "2^-24 of the magnitude for each rounding", "QMMAffine")
}

// rowExactAffine multiplies m vectors at once and each of them alone, and compares bits.
func rowExactAffine[O, T Float](t *testing.T, rt *runtime.Runtime, r *rand.Rand, f quant.AffineFormat, m, n, k int) {
	t.Helper()
	w := randomAffine(t, rt, r, f, n, k)
	in := newBuffer(t, rt, elementsOf[T](spread(r, normals(r, m*k, 0.01))))
	together, alone := output[O](t, rt, m*n), output[O](t, rt, m*n)
	encode(t, rt, 1+m, func(p *runtime.Pass) error {
		for i := range m {
			if err := QMMAffine(p, alone.s.Slice(i*n, (i+1)*n), w.bank, in.s.Slice(i*k, (i+1)*k), 1); err != nil {
				return err
			}
		}
		return QMMAffine(p, together.s, w.bank, in.s, m)
	})
	together.written()
	sameBits(t, fmt.Sprintf("%v, %d vectors, %d rows of %d", f, m, n, k), together, alone)
}

// Up to 16 vectors, each is bit for bit what it is alone: every number of vectors, every format, every pair of types.
func TestQMMAffineRowExact(t *testing.T) {
	rt, r := open(t), source(1531)
	formats := affineFormats()
	for i := range 3 * MaxQMMAffineVectors {
		f, m, n := formats[(i*7)%len(formats)], i%MaxQMMAffineVectors+1, 1+r.IntN(19)
		k := f.GroupSize * (1 + r.IntN(1100/f.GroupSize))
		switch i % 5 {
		case 0:
			rowExactAffine[float32, float32](t, rt, r, f, m, n, k)
		case 1:
			rowExactAffine[float32, half.BFloat16](t, rt, r, f, m, n, k)
		case 2:
			rowExactAffine[half.BFloat16, half.BFloat16](t, rt, r, f, m, n, k)
		case 3:
			rowExactAffine[half.Float16, half.Float16](t, rt, r, f, m, n, k)
		case 4:
			rowExactAffine[half.BFloat16, float32](t, rt, r, f, m, n, k)
		}
	}
	// Every kernel with each number of bits, over more than one step.
	for _, bits := range []int{4, 6, 8} {
		for _, m := range []int{2, 3, 4, 5, 8, 9, 16} {
			rowExactAffine[float32, float32](t, rt, r, quant.AffineFormat{Bits: bits, GroupSize: 32, Scale: quant.ScaleBF16}, m, 5, 1056)
		}
	}
}

// Beyond 16 vectors the bits depend neither on their number nor on their place, in both tiles.
func TestQMMAffineTilesRowExact(t *testing.T) {
	rt, r := open(t), source(1532)
	for _, bits := range []int{4, 6, 8} {
		f := quant.AffineFormat{Bits: bits, GroupSize: 32, Scale: quant.ScaleF16}
		const n, k, most = 67, 96, 90
		w := randomAffine(t, rt, r, f, n, k)
		in, all := newBuffer(t, rt, spread(r, normals(r, most*k, 1))), output[float32](t, rt, most*n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return QMMAffine(p, all.s, w.bank, in.s, most) })
		got := all.written()
		for _, part := range [][2]int{{0, 17}, {9, 32}, {20, 33}, {73, 17}, {1, 64}, {2, 65}} {
			y := output[float32](t, rt, part[1]*n)
			encode(t, rt, 1, func(p *runtime.Pass) error { return QMMAffine(p, y.s, w.bank, in.s.Slice(part[0]*k, most*k), part[1]) })
			sameElements(t, fmt.Sprintf("%v: vectors %v", f, part), got[part[0]*n:][:part[1]*n], y.written())
		}
	}
}

// Numbers beyond float16 become infinite, NaN and infinities go where they belong and nowhere else.
func TestQMMAffineExtremes(t *testing.T) {
	rt := open(t)
	const n, k = 5, 64
	for _, m := range []int{3, 20} {
		r := source(1533)
		w := randomAffine(t, rt, r, quant.AffineFormat{Bits: 8, GroupSize: 64, Scale: quant.ScaleF32}, n, k)
		x := normals(r, m*k, 1)
		for c := range k {
			x[k+c] *= 1e6
		}
		x[2*k+7] = float32(math.NaN())
		in, y, f := newBuffer(t, rt, x), output[half.Float16](t, rt, m*n), output[float32](t, rt, m*n)
		encode(t, rt, 2, func(p *runtime.Pass) error {
			if err := QMMAffine(p, f.s, w.bank, in.s, m); err != nil {
				return err
			}
			return QMMAffine(p, y.s, w.bank, in.s, m)
		})
		for i, v := range f.get() {
			want := half.Float16FromFloat32(v)
			if got := y.get()[i]; i/n == 2 && !got.IsNaN() || i/n != 2 && got != want {
				t.Errorf("%d vectors: element %d: %v, want %v", m, i, got, want)
			}
		}
		if !y.get()[n].IsInf(0) {
			t.Error("a sum of 1e6 in float16:", y.get()[n])
		}
	}
}

func TestQMMAffineRoute(t *testing.T) {
	for _, c := range []struct {
		m      int
		matrix bool
		want   QMMAffineRoute
		kernel string
		groups [2]int // for 65 rows
	}{
		{0, true, QMMAffineRoute{Vectors: 1}, "qmv_affine_b6_m1", [2]int{9, 0}}, {1, true, QMMAffineRoute{Vectors: 1}, "qmv_affine_b6_m1", [2]int{9, 1}},
		{2, true, QMMAffineRoute{Vectors: 2}, "qmv_affine_b6_m2", [2]int{9, 1}}, {3, true, QMMAffineRoute{Vectors: 3}, "qmv_affine_b6_m3", [2]int{9, 1}},
		{4, false, QMMAffineRoute{Vectors: 4}, "qmv_affine_b6_m4", [2]int{9, 1}}, {7, true, QMMAffineRoute{Vectors: 7}, "qmv_affine_b6_m7", [2]int{9, 1}},
		{8, true, QMMAffineRoute{Vectors: 8}, "qmv_affine_b6_m8", [2]int{9, 1}}, {9, true, QMMAffineRoute{Vectors: 5}, "qmv_affine_b6_m5", [2]int{9, 2}},
		{12, true, QMMAffineRoute{Vectors: 6}, "qmv_affine_b6_m6", [2]int{9, 2}}, {13, true, QMMAffineRoute{Vectors: 7}, "qmv_affine_b6_m7", [2]int{9, 2}},
		{16, true, QMMAffineRoute{Vectors: 8}, "qmv_affine_b6_m8", [2]int{9, 2}}, {17, true, QMMAffineRoute{Tile: 32}, "qmm_affine_b6_t32", [2]int{2, 1}},
		{17, false, QMMAffineRoute{Vectors: 6}, "qmv_affine_b6_m6", [2]int{9, 3}}, {32, true, QMMAffineRoute{Tile: 32}, "qmm_affine_b6_t32", [2]int{2, 1}},
		{33, true, QMMAffineRoute{Tile: 64}, "qmm_affine_b6_t64", [2]int{2, 1}}, {65, true, QMMAffineRoute{Tile: 64}, "qmm_affine_b6_t64", [2]int{2, 2}},
		{1 << 20, false, QMMAffineRoute{Vectors: 8}, "qmv_affine_b6_m8", [2]int{9, 1 << 17}}, {-3, true, QMMAffineRoute{Vectors: 1}, "qmv_affine_b6_m1", [2]int{9, -3}},
	} {
		got := QMMAffineRouteFor(c.m, c.matrix)
		if got != c.want || got.Kernel(6) != c.kernel {
			t.Errorf("%d vectors, simdgroup matrices %v: %+v, %s", c.m, c.matrix, got, got.Kernel(6))
		}
		groups, threads := got.Geometry(c.m, 65)
		if c.m >= 0 && (groups != runtime.D2(c.groups[0], c.groups[1]) || threads != runtime.D1(map[bool]int{true: 128, false: 64}[got.Tile != 0])) {
			t.Errorf("%d vectors: %v of %v", c.m, groups, threads)
		}
	}
	for _, bad := range []QMMAffineRoute{{}, {Vectors: 9}, {Vectors: -1}, {Tile: 16}, {Vectors: 8, Tile: 32}} {
		if bad.Kernel(4) != "" {
			t.Errorf("%+v has a kernel", bad)
		}
	}
	for _, bits := range []int{-4, 0, 2, 5, 16} {
		if k := (QMMAffineRoute{Vectors: 1}).Kernel(bits); k != "" {
			t.Errorf("%d bits: %s", bits, k)
		}
	}
}
