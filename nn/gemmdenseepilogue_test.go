package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Every activation with and without the other terms, small and large arguments.
func TestGEMMEpilogue(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(860)
	var w, wHalf, wBF worst
	cases := 0
	for act := ActNone; act <= ActSiLU; act++ {
		for i, s := range []terms{
			{alpha: 1}, {alpha: -0.5, bias: true}, {alpha: 2, c: true, beta: 1}, {alpha: 0.75, c: true, beta: -1.5, bias: true}, {alpha: 0, c: true, beta: 3, bias: true},
			{alpha: 1e-3, bias: true}, {alpha: 1, c: true, beta: 1e-6, inPlace: true},
		} {
			s.act = act
			d := GEMMDims{M: 11 + 30*(i%2), N: 37, K: 20 + i, TransA: i%3 == 1, TransB: i%2 == 0}
			draw := func(n int) []float32 { return normals(r, n, []float64{1, 5, 0.1}[i%3]) }
			where := fmt.Sprintf("%+v %+v", d, s)
			x := newDense[float32, float32](t, rt, draw, d, s)
			x.check(where, x.run(rt), &w)
			y := newDense[half.Float16, half.Float16](t, rt, draw, d, s)
			y.check(where+" f16", y.run(rt), &wHalf)
			z := newDense[half.BFloat16, half.BFloat16](t, rt, draw, d, s)
			z.check(where+" bf16", z.run(rt), &wBF)
			cases += 3
		}
	}
	t.Logf("%d cases", cases)
	w.log(t, "2^-24 of the terms' magnitude per addition, and the activation's,", "GEMMEpilogue")
	wHalf.log(t, "same and a rounding to f16", "GEMMEpilogue")
	wBF.log(t, "same and a rounding to bf16", "GEMMEpilogue")
}

// An epilogue without effect is none: the same bits. With Beta 0 it does not matter what C is.
func TestGEMMEpilogueWithoutEffect(t *testing.T) {
	rt, r := open(t), source(861)
	x := newDense[float32, half.Float16](t, rt, func(n int) []float32 { return normals(r, n, 1) }, GEMMDims{M: 9, N: 33, K: 17}, plain)
	want := x.run(rt)
	released, err := runtime.NewSlice[float32](rt, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := released.Release(); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]Epilogue[float32]{
		"alpha": {Alpha: 1}, "the result": {Alpha: 1, C: x.out.s}, "half the result": {Alpha: 1, C: x.out.s.Slice(100, 200)}, "released": {Alpha: 1, C: released},
	} {
		x.out.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMMEpilogue(p, x.out.s, x.a.s, x.b.s, x.d, e) })
		sameElements(t, name, want, x.out.written())
	}
}

// One C for all products of a batch, one a or one b for all: the same bits as the products alone.
func TestGEMMBroadcast(t *testing.T) {
	rt, r := open(t), source(862)
	const m, n, k, batch = 10, 35, 12, 4
	a, b := newBuffer(t, rt, normals(r, batch*m*k, 1)), newBuffer(t, rt, normals(r, batch*k*n, 1))
	c, bias := newBuffer(t, rt, normals(r, m*n, 1)), newBuffer(t, rt, normals(r, n, 1))
	e := Epilogue[float32]{Alpha: 1.5, Beta: 0.5, C: c.s, Bias: bias.s, Act: ActGELU}
	for _, s := range []struct{ strideA, strideB int }{{m * k, k * n}, {0, k * n}, {m * k, 0}, {0, 0}, {k, n}} { // the last ones overlap, as windows do
		out, alone := output[float32](t, rt, batch*m*n), output[float32](t, rt, batch*m*n)
		encode(t, rt, batch+1, func(p *runtime.Pass) error {
			if err := GEMMEpilogue(p, out.s, a.s, b.s, GEMMDims{M: m, N: n, K: k, Batch: batch, StrideA: s.strideA, StrideB: s.strideB, StrideOut: m * n}, e); err != nil {
				return err
			}
			for i := range batch {
				if err := GEMMEpilogue(p, alone.s.Slice(i*m*n, (i+1)*m*n), a.s.Slice(i*s.strideA, i*s.strideA+m*k), b.s.Slice(i*s.strideB, i*s.strideB+k*n),
					GEMMDims{M: m, N: n, K: k}, e); err != nil {
					return err
				}
			}
			return nil
		})
		sameElements(t, fmt.Sprintf("%+v", s), alone.written(), out.written())
	}
}

// What the terms overflow to, and numbers that are none, go through the epilogue as through its formula.
func TestGEMMEpilogueExtremes(t *testing.T) {
	rt := open(t)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		a, c, bias float32
		act        Activation
		want       float64
	}{
		{inf, 0, 0, ActNone, math.Inf(1)}, {-inf, 0, 0, ActNone, math.Inf(-1)}, {-inf, 0, 0, ActReLU, 0}, {inf, 0, 0, ActReLU, math.Inf(1)},
		{inf, 0, 0, ActGELU, math.Inf(1)}, {-inf, 0, 0, ActGELU, 0}, {inf, 0, 0, ActSiLU, math.Inf(1)}, {-inf, 0, 0, ActSiLU, 0},
		{nan, 0, 0, ActNone, math.NaN()}, {nan, 0, 0, ActReLU, math.NaN()}, {nan, 0, 0, ActGELU, math.NaN()}, {nan, 0, 0, ActSiLU, math.NaN()},
		{1, nan, 0, ActReLU, math.NaN()}, {1, 0, nan, ActReLU, math.NaN()}, {inf, -inf, 0, ActNone, math.NaN()}, {3e38, 3e38, 0, ActNone, math.Inf(1)},
		{3e38, -3e38, 1, ActNone, 1}, {-1e4, 0, 0, ActGELU, 0}, {1e4, 0, 0, ActGELU, 1e4}, {-300, 0, 0, ActSiLU, 0}, {300, 0, 0, ActSiLU, 300},
	} {
		a, b := newBuffer(t, rt, []float32{c.a}), newBuffer(t, rt, []float32{1})
		cc, bias, out := newBuffer(t, rt, []float32{c.c}), newBuffer(t, rt, []float32{c.bias}), output[float32](t, rt, 1)
		e := Epilogue[float32]{Alpha: 1, Beta: 1, C: cc.s, Bias: bias.s, Act: c.act}
		for name, call := range map[string]func(p *runtime.Pass) error{
			"GEMM": func(p *runtime.Pass) error { return GEMMEpilogue(p, out.s, a.s, b.s, GEMMDims{M: 1, N: 1, K: 1}, e) },
			"GEMV": func(p *runtime.Pass) error { return GEMVEpilogue(p, out.s, b.s, a.s, GEMVDims{Rows: 1, Cols: 1}, e) },
		} {
			out.reset()
			encode(t, rt, 1, call)
			if got := float64(out.get()[0]); !(got == c.want || math.Abs(got-c.want) < 1e-30 || got != got && c.want != c.want) {
				t.Errorf("%s: %+v: %v", name, c, got)
			}
		}
	}
}
