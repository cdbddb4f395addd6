package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// One rounding: the bits are those of the exact product, rounded.
func TestScaleInPlaceF32(t *testing.T) {
	defer logExact(t, "ScaleInPlaceF32")()
	rt, r := open(t), source(210)
	for i, n := range elementCounts {
		scale := []float32{2, -0.3, 0, 1e-20, 1e20, 1}[i%6]
		x := normals(r, n, math.Pow(10, float64(i%5-2)))
		if n > 30 {
			x[3], x[7], x[30] = float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32
		}
		io := newBuffer(t, rt, x)
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return ScaleInPlaceF32(p, io.s, n, scale) })
		exact(t, fmt.Sprintf("n %d scale %g", n, scale), widen(io.get()), oracle.RoundF32s(oracle.Scale(x, float64(scale))))
	}
	long := newBuffer(t, rt, normals(r, 100, 1))
	encode(t, rt, 1, func(p *runtime.Pass) error { return ScaleInPlaceF32(p, long.s, 60, 0) })
	for i, v := range long.get() {
		if (v == 0) != (i < 60) {
			t.Fatalf("element %d of 60 is %v", i, v)
		}
	}
}

// exact fails unless the numbers are equal, NaN being equal to itself.
func exact(t *testing.T, where string, got, want []float64) {
	t.Helper()
	exactCases++
	var w worst
	w.compare(t, where, got, want, func(int) float64 { return 0 })
}

// numbers are n numbers of a type, with extremes among them.
func numbers[T Float](n int, seed uint64) []T {
	r := source(seed)
	out := make([]T, n)
	for i := range out {
		switch p := any(&out[i]).(type) {
		case *float32:
			*p = float32(r.NormFloat64())
			if r.IntN(8) == 0 {
				*p = []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32, 1e-30, 0}[r.IntN(7)]
			}
		case *half.Float16:
			*p = half.Float16(r.Uint32()) // any bits
		case *half.BFloat16:
			*p = half.BFloat16FromFloat32(float32(r.NormFloat64()))
			if r.IntN(8) == 0 {
				*p = []half.BFloat16{0x7f80, 0xff80, 0x7fc0, 0x7f7f, 0xff7f, 0x0080, 0x8000}[r.IntN(7)]
			}
		}
	}
	return out
}

func round[T Float](x float64) float64 {
	var zero T
	switch any(zero).(type) {
	case half.Float16:
		return oracle.RoundF16(oracle.RoundF32(x))
	case half.BFloat16:
		return oracle.RoundBF16(oracle.RoundF32(x))
	}
	return oracle.RoundF32(x)
}

// The sum of two float32 numbers, and of two narrower ones in float32, is rounded as IEEE says: the bits are known.
func testAdd[T Float](t *testing.T) {
	defer logExact(t, "Add", "AddInPlace")()
	rt := open(t)
	for i, n := range elementCounts {
		a, b := numbers[T](n, uint64(211+i)), numbers[T](n, uint64(311+i))
		va, vb, out := newBuffer(t, rt, a), newBuffer(t, rt, b), output[T](t, rt, n)
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return Add(p, out.s, va.s, vb.s, n) })
		want := oracle.Add(widen(a), widen(b))
		for i := range want {
			want[i] = round[T](want[i])
		}
		where := fmt.Sprintf("%T, n %d", a, n)
		exact(t, where, widen(out.get()), want)
		va.untouched()
		vb.untouched()
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return AddInPlace(p, va.s, vb.s, n) })
		sameBits(t, where+" in place", va, out)
		va.reset()
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return Add(p, vb.s, va.s, vb.s, n) })
		sameBits(t, where+" over b", vb, out)
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return AddInPlace(p, va.s, va.s, n) })
		for i := range want {
			want[i] = round[T](2 * widen(a[i : i+1])[0])
		}
		exact(t, where+" doubled", widen(va.get()), want)
	}
}

func TestAdd(t *testing.T) {
	t.Run("f32", testAdd[float32])
	t.Run("f16", testAdd[half.Float16])
	t.Run("bf16", testAdd[half.BFloat16])
}

// Each row gets the vector, with the one rounding that IEEE says; in place too, and whatever the numbers are.
func TestAddBias(t *testing.T) {
	defer logExact(t, "AddBias")()
	rt := open(t)
	for i, c := range []struct{ rows, cols int }{{1, 1}, {1, 7}, {7, 1}, {3, 32}, {2, 255}, {5, 256}, {3, 257}, {257, 3}, {4, 1000}, {64, 64}, {2, 4097}, {33, 31}, {0, 5}} {
		n := c.rows * c.cols
		x, b := numbers[float32](n, uint64(411+i)), numbers[float32](c.cols, uint64(431+i))
		vx, vb, out := newBuffer(t, rt, x), newBuffer(t, rt, b), output[float32](t, rt, n)
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return AddBias(p, out.s, vx.s, vb.s, c.rows, c.cols) })
		want := make([]float64, n)
		for j := range want {
			want[j] = oracle.RoundF32(float64(x[j]) + float64(b[j%c.cols]))
		}
		where := fmt.Sprintf("%d x %d", c.rows, c.cols)
		exact(t, where, widen(out.get()), want)
		vx.untouched()
		vb.untouched()
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return AddBias(p, vx.s, vx.s, vb.s, c.rows, c.cols) })
		sameBits(t, where+" in place", vx, out)
	}
}

func TestSoftcapLogits(t *testing.T) {
	rt, r := open(t), source(213)
	var w worst
	inf := float32(math.Inf(1))
	for i, n := range elementCounts {
		for _, limit := range []float32{30, 0, -1, 1e-3, 1e30, inf, float32(math.NaN())} {
			x := normals(r, n, math.Pow(10, float64(i%6-1)))
			if n > 30 {
				x[3], x[5], x[7], x[30], x[9] = inf, -inf, float32(math.NaN()), math.MaxFloat32, 1e-30
			}
			io, capacity := newBuffer(t, rt, x), newBuffer(t, rt, []float32{limit})
			encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return SoftcapLogits(p, io.s, capacity.s, n) })
			want := oracle.SoftcapLogits(x, float64(limit))
			// One division, one tanh of a few units in the last place, one product.
			w.compare(t, fmt.Sprintf("n %d cap %g", n, limit), widen(io.get()), want, func(i int) float64 { return 5e-7 * math.Abs(want[i]) })
		}
	}
	w.log(t, "5e-7 of the value", "SoftcapLogits")
}

func TestElementwiseRecorded(t *testing.T) {
	rt, r := open(t), source(214)
	const n = 600
	x, y, out, limit := newBuffer(t, rt, normals(r, n, 1)), newBuffer(t, rt, normals(r, n, 1)), output[float32](t, rt, n), newBuffer(t, rt, []float32{5})
	h, h2, hout := newBuffer(t, rt, half.Float16s(normals(r, n, 1))), newBuffer(t, rt, half.Float16s(normals(r, n, 1))), output[half.Float16](t, rt, n)
	b, b2, bout := newBuffer(t, rt, half.BFloat16s(normals(r, n, 1))), newBuffer(t, rt, half.BFloat16s(normals(r, n, 1))), output[half.BFloat16](t, rt, n)
	vary := func(i int) {
		y.set(normals(r, n, float64(i+1)))
		x.set(normals(r, n, 10))
		h.set(half.Float16s(normals(r, n, 10)))
		b.set(half.BFloat16s(normals(r, n, 10)))
		limit.set([]float32{[]float32{3, 0, 50}[i]}) // the cap lives on the device
	}
	type bind = func(*runtime.ScalarBinder) error
	for _, c := range []struct {
		out     target
		scalars []scalar
		plain   func(p *runtime.Pass) error
		unsafe  func(p *runtime.Pass, b bind) error
	}{
		{x, []scalar{{slot: 1, f: 0.7, float: true}, {slot: 2, u: n}}, func(p *runtime.Pass) error { return ScaleInPlaceF32(p, x.s, n, 0.7) },
			func(p *runtime.Pass, b bind) error { return UnsafeScaleInPlaceF32(p, x.s, n, 0.7, b) }},
		{out, []scalar{{slot: 3, u: n}}, func(p *runtime.Pass) error { return Add(p, out.s, x.s, y.s, n) },
			func(p *runtime.Pass, b bind) error { return UnsafeAdd(p, out.s, x.s, y.s, n, b) }},
		{hout, []scalar{{slot: 3, u: n}}, func(p *runtime.Pass) error { return Add(p, hout.s, h.s, h2.s, n) },
			func(p *runtime.Pass, b bind) error { return UnsafeAdd(p, hout.s, h.s, h2.s, n, b) }},
		{bout, []scalar{{slot: 3, u: n}}, func(p *runtime.Pass) error { return Add(p, bout.s, b.s, b2.s, n) },
			func(p *runtime.Pass, bi bind) error { return UnsafeAdd(p, bout.s, b.s, b2.s, n, bi) }},
		{x, []scalar{{slot: 3, u: n}}, func(p *runtime.Pass) error { return AddInPlace(p, x.s, y.s, n) },
			func(p *runtime.Pass, b bind) error { return UnsafeAddInPlace(p, x.s, y.s, n, b) }},
		{x, []scalar{{slot: 3, u: 3}, {slot: 4, u: 200}}, func(p *runtime.Pass) error { return AddBias(p, x.s, x.s, y.s, 3, 200) },
			func(p *runtime.Pass, b bind) error { return UnsafeAddBias(p, x.s, x.s, y.s, 3, 200, b) }},
		{x, []scalar{{slot: 2, u: n}}, func(p *runtime.Pass) error { return SoftcapLogits(p, x.s, limit.s, n) },
			func(p *runtime.Pass, b bind) error { return UnsafeSoftcapLogits(p, x.s, limit.s, n, b) }},
	} {
		replays(t, rt, []target{c.out}, vary, c.plain)
		twin(t, rt, []target{c.out}, c.scalars, c.plain, c.unsafe)
	}
}

func TestElementwiseRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	x, y, out, limit, f := output[float32](t, rt, 64), output[float32](t, rt, 64), output[float32](t, rt, 64), output[float32](t, rt, 1), output[float32](t, foreign, 64)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	type slice = runtime.Slice[float32]
	scale := func(x slice, n int, s float32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return ScaleInPlaceF32(p, x, n, s) }
	}
	refuses(t, rt, "nn.ScaleInPlaceF32", []target{x}, []refusal{
		{"no pass", func(*runtime.Pass) error { return ScaleInPlaceF32(nil, x.s, 1, 1) }, runtime.ErrMisuse, nil},
		{"scale NaN", scale(x.s, 64, nan), runtime.ErrScalar, []string{"scale", "NaN"}},
		{"scale infinite", scale(x.s, 64, inf), runtime.ErrScalar, []string{"scale"}},
		{"scale NaN of nothing", scale(x.s, 0, nan), runtime.ErrScalar, []string{"scale"}},
		{"n negative", scale(x.s, -1, 1), runtime.ErrShape, []string{"n"}},
		{"n huge", scale(x.s, math.MaxInt, 1), runtime.ErrShape, []string{"n"}},
		{"x short", scale(x.s, 65, 1), runtime.ErrShape, []string{"x", "64", "65"}},
		{"x zero", scale(slice{}, 1, 1), runtime.ErrShape, []string{"x"}},
		{"x foreign", scale(f.s, 64, 1), runtime.ErrForeign, []string{"x"}},
	})
	sum := func(o, a, b slice, n int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return Add(p, o, a, b, n) }
	}
	refuses(t, rt, "nn.Add", []target{x, y, out}, []refusal{
		{"no pass", func(*runtime.Pass) error { return Add(nil, out.s, x.s, y.s, 1) }, runtime.ErrMisuse, nil},
		{"n negative", sum(out.s, x.s, y.s, -1), runtime.ErrShape, []string{"n"}},
		{"a short", sum(out.s, x.s.Slice(0, 63), y.s, 64), runtime.ErrShape, []string{"a", "63"}},
		{"b short", sum(out.s, x.s, y.s.Slice(0, 63), 64), runtime.ErrShape, []string{"b", "63"}},
		{"out short", sum(out.s.Slice(0, 63), x.s, y.s, 64), runtime.ErrShape, []string{"out", "63"}},
		{"b foreign", sum(out.s, x.s, f.s, 64), runtime.ErrForeign, []string{"b"}},
		{"out shifted from a", sum(x.s.Slice(1, 33), x.s.Slice(0, 32), y.s, 32), runtime.ErrOverlap, []string{"out", "a"}},
		{"out shifted from b", sum(y.s.Slice(1, 33), x.s, y.s.Slice(0, 32), 32), runtime.ErrOverlap, []string{"out", "b"}},
	})
	refuses(t, rt, "nn.AddInPlace", []target{x, y}, []refusal{
		{"y short", func(p *runtime.Pass) error { return AddInPlace(p, x.s, y.s.Slice(0, 63), 64) }, runtime.ErrShape, []string{"y", "63"}},
		{"x short", func(p *runtime.Pass) error { return AddInPlace(p, x.s.Slice(0, 63), y.s, 64) }, runtime.ErrShape, []string{"x", "63"}},
		{"y shifted", func(p *runtime.Pass) error { return AddInPlace(p, x.s.Slice(0, 32), x.s.Slice(31, 63), 32) }, runtime.ErrOverlap, []string{"x", "y"}},
	})
	biased := func(o, x, b slice, rows, cols int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return AddBias(p, o, x, b, rows, cols) }
	}
	refuses(t, rt, "nn.AddBias", []target{x, y, out}, []refusal{
		{"no pass", func(*runtime.Pass) error { return AddBias(nil, out.s, x.s, y.s, 1, 1) }, runtime.ErrMisuse, nil},
		{"rows negative", biased(out.s, x.s, y.s, -1, 4), runtime.ErrShape, []string{"rows"}},
		{"no columns", biased(out.s, x.s, y.s, 4, 0), runtime.ErrShape, []string{"cols"}},
		{"product huge", biased(out.s, x.s, y.s, math.MaxInt32, 2), runtime.ErrLimit, []string{"rows * cols"}},
		{"x short", biased(out.s, x.s.Slice(0, 63), y.s, 8, 8), runtime.ErrShape, []string{"x", "63", "64"}},
		{"bias short", biased(out.s, x.s, y.s.Slice(0, 7), 8, 8), runtime.ErrShape, []string{"bias", "7", "8"}},
		{"bias zero", biased(out.s, x.s, slice{}, 8, 8), runtime.ErrShape, []string{"bias"}},
		{"out short", biased(out.s.Slice(0, 63), x.s, y.s, 8, 8), runtime.ErrShape, []string{"out", "63"}},
		{"x foreign", biased(out.s, f.s, y.s, 8, 8), runtime.ErrForeign, []string{"x"}},
		{"out shifted from x", biased(x.s.Slice(1, 33), x.s.Slice(0, 32), y.s, 4, 8), runtime.ErrOverlap, []string{"out", "x"}},
		{"out is bias", biased(x.s.Slice(0, 8), y.s, x.s.Slice(0, 8), 1, 8), runtime.ErrOverlap, []string{"out", "bias"}},
		{"bias in x in place", biased(x.s, x.s, x.s.Slice(8, 16), 8, 8), runtime.ErrOverlap, []string{"out", "bias"}},
	})
	capped := func(x, limit slice, n int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return SoftcapLogits(p, x, limit, n) }
	}
	refuses(t, rt, "nn.SoftcapLogits", []target{x, limit}, []refusal{
		{"no pass", func(*runtime.Pass) error { return SoftcapLogits(nil, x.s, limit.s, 1) }, runtime.ErrMisuse, nil},
		{"n negative", capped(x.s, limit.s, -1), runtime.ErrShape, []string{"n"}},
		{"logits short", capped(x.s, limit.s, 65), runtime.ErrShape, []string{"logits", "64"}},
		{"no cap", capped(x.s, slice{}, 64), runtime.ErrShape, []string{"softcap"}},
		{"cap empty", capped(x.s, limit.s.Slice(1, 1), 64), runtime.ErrShape, []string{"softcap"}},
		{"cap foreign", capped(x.s, f.s, 64), runtime.ErrForeign, []string{"softcap"}},
		{"cap among the logits", capped(x.s, x.s.Slice(63, 64), 64), runtime.ErrOverlap, []string{"logits", "softcap"}},
	})
}
