package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

func TestRMSNormF32(t *testing.T) {
	rt, r := open(t), source(230)
	var w worst
	for i, s := range normShapes {
		scale, eps := normScales[i%len(normScales)], float32(math.Pow(10, -float64(i%7)))
		where := fmt.Sprintf("%+v scale %g eps %g", s, scale, eps)
		x, weight := normals(r, s.rows*s.dim, scale), normals(r, s.dim, 1)
		in, wt, out := newBuffer(t, rt, x), newBuffer(t, rt, weight), output[float32](t, rt, s.rows*s.dim)
		encode(t, rt, min(s.rows, 1), func(p *runtime.Pass) error { return RMSNormF32(p, out.s, in.s, wt.s, s.rows, s.dim, eps) })
		want := oracle.RMSNorm(x, weight, s.rows, s.dim, float64(eps))
		// Some ten roundings of 2^-24, most of them in the sum of squares, whose terms are positive.
		w.compare(t, where, widen(out.written()), want, func(i int) float64 { return 6e-7*math.Abs(want[i]) + 1e-44 })
		in.untouched()
		// In place.
		encode(t, rt, min(s.rows, 1), func(p *runtime.Pass) error { return RMSNormF32(p, in.s, in.s, wt.s, s.rows, s.dim, eps) })
		sameBits(t, where+" in place", in, out)
	}
	w.log(t, "6e-7 of the value", "RMSNormF32")
}

// A NaN stays in its row; a row of zeros is saved by eps; longer slices are left alone.
func TestRMSNormF32Extremes(t *testing.T) {
	rt := open(t)
	x, weight := make([]float32, 4*40), make([]float32, 50)
	for i := range x {
		x[i] = 1
	}
	for i := range weight {
		weight[i] = 1
	}
	x[50] = float32(math.NaN())
	clear(x[80:120])
	in, wt, out := newBuffer(t, rt, x), newBuffer(t, rt, weight), output[float32](t, rt, len(x))
	encode(t, rt, 1, func(p *runtime.Pass) error { return RMSNormF32(p, out.s, in.s, wt.s, 3, 40, 1e-6) })
	for i, v := range out.get() {
		var fine bool
		switch i / 40 {
		case 0:
			fine = math.Abs(float64(v)-1) < 1e-6
		case 1:
			fine = v != v
		case 2:
			fine = v == 0
		case 3:
			fine = math.Float32bits(v) == math.Float32bits(sentinel[float32]())
		}
		if !fine {
			t.Fatalf("element %d is %v", i, v)
		}
	}
}

func TestRMSNormF32Recorded(t *testing.T) {
	rt, r := open(t), source(231)
	weight, x, out := newBuffer(t, rt, normals(r, 300, 1)), newBuffer(t, rt, normals(r, 900, 1)), output[float32](t, rt, 900)
	norm := func(p *runtime.Pass) error { return RMSNormF32(p, out.s, x.s, weight.s, 3, 300, 1e-6) }
	replays(t, rt, []target{out}, func(i int) { x.set(normals(r, 900, math.Pow(10, float64(i)))) }, norm)
	twin(t, rt, []target{out}, []scalar{{slot: 3, u: 3}, {slot: 4, u: 300}, {slot: 5, f: 1e-6, float: true}}, norm,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeRMSNormF32(p, out.s, x.s, weight.s, 3, 300, 1e-6, bind)
		})
}

func TestRMSNormF32Refuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	x, weight, out, f := output[float32](t, rt, 64), output[float32](t, rt, 32), output[float32](t, rt, 64), output[float32](t, foreign, 64)
	type slice = runtime.Slice[float32]
	norm := func(o, x, w slice, rows, dim int, eps float32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return RMSNormF32(p, o, x, w, rows, dim, eps) }
	}
	refuses(t, rt, "nn.RMSNormF32", []target{x, weight, out}, []refusal{
		{"no pass", func(*runtime.Pass) error { return RMSNormF32(nil, out.s, x.s, weight.s, 2, 32, 1) }, runtime.ErrMisuse, nil},
		{"eps 0", norm(out.s, x.s, weight.s, 2, 32, 0), runtime.ErrScalar, []string{"eps"}},
		{"eps NaN", norm(out.s, x.s, weight.s, 2, 32, float32(math.NaN())), runtime.ErrScalar, []string{"eps"}},
		{"rows negative", norm(out.s, x.s, weight.s, -1, 32, 1), runtime.ErrShape, []string{"rows"}},
		{"dim 0", norm(out.s, x.s, weight.s, 2, 0, 1), runtime.ErrShape, []string{"dim"}},
		{"product huge", norm(out.s, x.s, weight.s, math.MaxInt32, math.MaxInt32, 1), runtime.ErrLimit, []string{"rows * dim"}},
		{"x short", norm(out.s, x.s.Slice(1, 64), weight.s, 2, 32, 1), runtime.ErrShape, []string{"x", "63", "64"}},
		{"weight short", norm(out.s, x.s, weight.s.Slice(0, 31), 2, 32, 1), runtime.ErrShape, []string{"weight", "31"}},
		{"out short", norm(out.s.Slice(0, 63), x.s, weight.s, 2, 32, 1), runtime.ErrShape, []string{"out", "63"}},
		{"out foreign", norm(f.s, x.s, weight.s, 2, 32, 1), runtime.ErrForeign, []string{"out"}},
		{"out shifted", norm(x.s.Slice(1, 33), x.s.Slice(0, 32), weight.s, 1, 32, 1), runtime.ErrOverlap, []string{"out", "x"}},
		{"out is the weight", norm(weight.s, x.s, weight.s, 1, 32, 1), runtime.ErrOverlap, []string{"out", "weight"}},
	})
}
