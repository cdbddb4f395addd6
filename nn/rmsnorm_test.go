package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// normShapes go from one element to several per thread, with rows of fewer elements than a simdgroup, more rows than
// a threadgroup has threads, and dimensions that no power of two divides.
var normShapes = []struct{ rows, dim int }{
	{1, 1}, {1, 2}, {3, 31}, {2, 32}, {5, 33}, {1, 64}, {4, 127}, {1, 128}, {3, 129}, {2, 640}, {130, 17}, {1, 1152}, {2, 2560},
	{1, 4096}, {1, 4097}, {1, 9001}, {1030, 5}, {0, 128},
}

// The greatest magnitudes, the smallest, and rows that only eps keeps from dividing by zero.
var normScales = []float64{1, 1e15, 1e-15, 1e-30, 0}

func TestRMSNormBF16(t *testing.T) {
	rt, r := open(t), source(11)
	var w worst
	for i, s := range normShapes {
		scale, eps := normScales[i%len(normScales)], float32(1e-6)
		where := fmt.Sprintf("%+v scale %g", s, scale)
		x, weight := normals(r, s.rows*s.dim, scale), normals(r, s.dim, 1)
		in, wt, out := newBuffer(t, rt, x), newBuffer(t, rt, weight), output[half.BFloat16](t, rt, s.rows*s.dim)
		encode(t, rt, min(s.rows, 1), func(p *runtime.Pass) error {
			return RMSNormBF16(p, out.s, in.s, wt.s, s.rows, s.dim, eps)
		})
		want := oracle.RMSNorm(x, weight, s.rows, s.dim, float64(eps))
		// Half a unit in the last of 8 bits, 2^-8, plus 1e-6 for the sum; below 2^-126 the unit is constant.
		w.compare(t, where, widen(out.written()), want, func(i int) float64 {
			return math.Abs(want[i])*(1.0/256+1e-6) + 0x1p-134
		})
	}
	w.log(t, "2^-8 of the value", "RMSNormBF16")
}

func TestRMSNormResidualAddF32(t *testing.T) {
	rt, r := open(t), source(12)
	var w worst
	for i, s := range normShapes {
		scale, eps, layer := normScales[i%len(normScales)], float32(1e-5), []float32{1, 0.5, -2, 0, 1e-3}[i%5]
		where := fmt.Sprintf("%+v scale %g layer %g", s, scale, layer)
		x, weight, resid := normals(r, s.rows*s.dim, scale), normals(r, s.dim, 1), normals(r, s.rows*s.dim, 3)
		in, wt, io := newBuffer(t, rt, x), newBuffer(t, rt, weight), newBuffer(t, rt, resid)
		encode(t, rt, min(s.rows, 1), func(p *runtime.Pass) error {
			return RMSNormResidualAddF32(p, io.s, in.s, wt.s, s.rows, s.dim, eps, layer)
		})
		want := oracle.RMSNormResidualAdd(resid, x, weight, s.rows, s.dim, float64(eps), float64(layer))
		normed := oracle.RMSNorm(x, weight, s.rows, s.dim, float64(eps))
		// The branch has some ten roundings of 2^-24, most of them in the sum of squares; the sum and the scale one each.
		w.compare(t, where, widen(io.get()), want, func(i int) float64 {
			return math.Abs(float64(layer))*(6e-7*math.Abs(normed[i])+1.5e-7*math.Abs(float64(resid[i]))) + 1e-44
		})
	}
	w.log(t, "6e-7 of the branch and 1.5e-7 of the residual", "RMSNormResidualAddF32")
}

// x itself may be the residual.
func TestRMSNormResidualAddInPlace(t *testing.T) {
	rt, r := open(t), source(13)
	for _, s := range []struct{ rows, dim int }{{1, 1}, {3, 100}, {2, 5000}} {
		x, weight := normals(r, s.rows*s.dim, 1), normals(r, s.dim, 1)
		io, wt := newBuffer(t, rt, x), newBuffer(t, rt, weight)
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return RMSNormResidualAddF32(p, io.s, io.s, wt.s, s.rows, s.dim, 1e-6, 1)
		})
		want := oracle.RMSNormResidualAdd(x, x, weight, s.rows, s.dim, 1e-6, 1)
		var w worst
		w.compare(t, fmt.Sprint(s), widen(io.get()), want, func(i int) float64 { return 1e-6 * (1 + math.Abs(want[i])) })
	}
}

// Not a number must stay visible, in its row only.
func TestRMSNormNaN(t *testing.T) {
	rt := open(t)
	x := make([]float32, 3*40)
	for i := range x {
		x[i] = 1
	}
	x[50] = float32(math.NaN())
	weight := make([]float32, 40)
	in, wt, out := newBuffer(t, rt, x), newBuffer(t, rt, weight), output[half.BFloat16](t, rt, len(x))
	encode(t, rt, 1, func(p *runtime.Pass) error { return RMSNormBF16(p, out.s, in.s, wt.s, 3, 40, 1e-6) })
	for i, v := range out.written() {
		if v.IsNaN() != (i/40 == 1) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
}

func TestRMSNormRecorded(t *testing.T) {
	rt, r := open(t), source(14)
	weight := newBuffer(t, rt, normals(r, 300, 1))
	x, out, io := newBuffer(t, rt, normals(r, 900, 1)), output[half.BFloat16](t, rt, 900), newBuffer(t, rt, normals(r, 900, 1))
	vary := func(i int) { x.set(normals(r, 900, math.Pow(10, float64(i)))) }

	norm := func(p *runtime.Pass) error { return RMSNormBF16(p, out.s, x.s, weight.s, 3, 300, 1e-6) }
	replays(t, rt, []target{out}, vary, norm)
	twin(t, rt, []target{out}, []scalar{{slot: 3, u: 3}, {slot: 4, u: 300}, {slot: 5, f: 1e-6, float: true}}, norm,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeRMSNormBF16(p, out.s, x.s, weight.s, 3, 300, 1e-6, bind)
		})

	add := func(p *runtime.Pass) error {
		return RMSNormResidualAddF32(p, io.s, x.s, weight.s, 3, 300, 1e-6, 0.75)
	}
	replays(t, rt, []target{io}, vary, add)
	twin(t, rt, []target{io},
		[]scalar{{slot: 3, u: 3}, {slot: 4, u: 300}, {slot: 5, f: 1e-6, float: true}, {slot: 6, f: 0.75, float: true}}, add,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeRMSNormResidualAddF32(p, io.s, x.s, weight.s, 3, 300, 1e-6, 0.75, bind)
		})
}

func TestRMSNormRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	x, weight, out, io := output[float32](t, rt, 64), output[float32](t, rt, 32), output[half.BFloat16](t, rt, 64), output[float32](t, rt, 64)
	fx, fo := output[float32](t, foreign, 64), output[half.BFloat16](t, foreign, 64)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	type slice = runtime.Slice[float32]
	norm := func(o runtime.Slice[half.BFloat16], x, w slice, rows, dim int, eps float32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return RMSNormBF16(p, o, x, w, rows, dim, eps) }
	}
	refuses(t, rt, "nn.RMSNormBF16", []target{x, weight, out}, []refusal{
		{"no pass", func(*runtime.Pass) error { return RMSNormBF16(nil, out.s, x.s, weight.s, 2, 32, 1) }, runtime.ErrMisuse, nil},
		{"eps 0", norm(out.s, x.s, weight.s, 2, 32, 0), runtime.ErrScalar, []string{"eps"}},
		{"eps negative", norm(out.s, x.s, weight.s, 2, 32, -1), runtime.ErrScalar, []string{"eps"}},
		{"eps NaN", norm(out.s, x.s, weight.s, 2, 32, nan), runtime.ErrScalar, []string{"eps"}},
		{"eps infinite", norm(out.s, x.s, weight.s, 2, 32, inf), runtime.ErrScalar, []string{"eps"}},
		{"rows negative", norm(out.s, x.s, weight.s, -2, 32, 1), runtime.ErrShape, []string{"rows"}},
		{"dim 0", norm(out.s, x.s, weight.s, 2, 0, 1), runtime.ErrShape, []string{"dim"}},
		{"dim 0 without rows", norm(out.s, x.s, weight.s, 0, 0, 1), runtime.ErrShape, []string{"dim"}},
		{"dim huge", norm(out.s, x.s, weight.s, 2, math.MaxInt32+1, 1), runtime.ErrShape, []string{"dim"}},
		{"product huge", norm(out.s, x.s, weight.s, math.MaxInt32, math.MaxInt32, 1), runtime.ErrLimit, []string{"rows * dim"}},
		{"x short", norm(out.s, x.s.Slice(1, 64), weight.s, 2, 32, 1), runtime.ErrShape, []string{"x", "63", "64"}},
		{"weight short", norm(out.s, x.s, weight.s.Slice(0, 31), 2, 32, 1), runtime.ErrShape, []string{"weight", "31"}},
		{"weight short without rows", norm(out.s, x.s, weight.s.Slice(0, 31), 0, 32, 1), runtime.ErrShape, []string{"weight"}},
		{"out short", norm(out.s.Slice(0, 63), x.s, weight.s, 2, 32, 1), runtime.ErrShape, []string{"out", "63"}},
		{"x foreign", norm(out.s, fx.s, weight.s, 2, 32, 1), runtime.ErrForeign, []string{"x"}},
		{"out foreign", norm(fo.s, x.s, weight.s, 2, 32, 1), runtime.ErrForeign, []string{"out"}},
		{"x zero", norm(out.s, slice{}, weight.s, 2, 32, 1), runtime.ErrShape, []string{"x"}},
	})
	add := func(r, x, w slice, rows, dim int, eps, layer float32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return RMSNormResidualAddF32(p, r, x, w, rows, dim, eps, layer) }
	}
	refuses(t, rt, "nn.RMSNormResidualAddF32", []target{x, weight, io}, []refusal{
		{"layer NaN", add(io.s, x.s, weight.s, 2, 32, 1, nan), runtime.ErrScalar, []string{"layerScale"}},
		{"layer infinite", add(io.s, x.s, weight.s, 2, 32, 1, inf), runtime.ErrScalar, []string{"layerScale"}},
		{"eps 0", add(io.s, x.s, weight.s, 2, 32, 0, 1), runtime.ErrScalar, []string{"eps"}},
		{"x overlaps resid", add(io.s.Slice(0, 32), io.s.Slice(16, 48), weight.s, 1, 32, 1, 1), runtime.ErrOverlap, []string{"resid", "x"}},
		{"weight in resid", add(io.s, x.s, io.s.Slice(32, 64), 2, 32, 1, 1), runtime.ErrOverlap, []string{"resid", "weight"}},
		{"resid short", add(io.s.Slice(0, 63), x.s, weight.s, 2, 32, 1, 1), runtime.ErrShape, []string{"resid", "63"}},
		{"resid foreign", add(fx.s, x.s, weight.s, 2, 32, 1, 1), runtime.ErrForeign, []string{"resid"}},
	})
}
