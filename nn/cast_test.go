package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// everyFloat16 are all bit patterns of 16 bits.
func everyFloat16[T half.Float16 | half.BFloat16]() []T {
	all := make([]T, 1<<16)
	for i := range all {
		all[i] = T(i)
	}
	return all
}

// hardFloats are the numbers of every exponent at, and next to, what the two narrower types round differently, and random
// bits.
func hardFloats() []float32 {
	r := source(220)
	var all []float32
	for exp := range uint32(256) {
		for _, fraction := range []uint32{0, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0x17fff, 0x18000, 0x18001, 0x3fffff, 0x400000, 0x7fefff, 0x7ff000, 0x7f7fff, 0x7f8000, 0x7fffff} {
			all = append(all, math.Float32frombits(exp<<23|fraction), math.Float32frombits(1<<31|exp<<23|fraction))
		}
	}
	for range 20000 {
		all = append(all, math.Float32frombits(r.Uint32()))
	}
	return all
}

// testCast holds a conversion against the formula, number by number and sign by sign.
func testCast[D, S Float](t *testing.T, src []S, want func(x float64) float64) {
	t.Helper()
	rt := open(t)
	in, out := newBuffer(t, rt, src), output[D](t, rt, len(src))
	encode(t, rt, 1, func(p *runtime.Pass) error { return Cast(p, out.s, in.s, len(src)) })
	wide, got := widen(src), widen(out.get())
	for i, x := range wide {
		w := want(x)
		if math.IsNaN(w) != math.IsNaN(got[i]) || w == w && (got[i] != w || math.Signbit(got[i]) != math.Signbit(w)) {
			t.Fatalf("%T to %T: %v (%#x) became %v, want %v", src[i], out.image[0], x, bitsOf(src[i]), got[i], w)
		}
	}
	in.untouched()
}

func TestCast(t *testing.T) {
	same := func(x float64) float64 { return x }
	testCast[half.Float16](t, hardFloats(), oracle.RoundF16)
	testCast[half.BFloat16](t, hardFloats(), oracle.RoundBF16)
	testCast[float32](t, everyFloat16[half.Float16](), same)
	testCast[float32](t, everyFloat16[half.BFloat16](), same)
	testCast[half.BFloat16](t, everyFloat16[half.Float16](), oracle.RoundBF16)
	testCast[half.Float16](t, everyFloat16[half.BFloat16](), oracle.RoundF16)
}

func TestCastCounts(t *testing.T) {
	defer logExact(t, "Cast")()
	rt := open(t)
	for _, n := range elementCounts {
		x := numbers[float32](n, 221)
		in, h, b, back := newBuffer(t, rt, x), output[half.Float16](t, rt, n), output[half.BFloat16](t, rt, n), output[float32](t, rt, n)
		encode(t, rt, 2*min(n, 1), func(p *runtime.Pass) error {
			if err := Cast(p, h.s, in.s, n); err != nil {
				return err
			}
			return Cast(p, b.s, in.s, n)
		})
		exact(t, fmt.Sprint("f16 ", n), widen(h.written()), oracle.RoundF16s(widen(x)))
		exact(t, fmt.Sprint("bf16 ", n), widen(b.written()), oracle.RoundBF16s(widen(x)))
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return Cast(p, back.s, b.s, n) })
		exact(t, fmt.Sprint("back ", n), widen(back.written()), oracle.RoundBF16s(widen(x)))
	}
	// Longer slices: what lies beyond n is neither read nor written.
	in, out := newBuffer(t, rt, numbers[float32](100, 222)), output[half.BFloat16](t, rt, 100)
	encode(t, rt, 1, func(p *runtime.Pass) error { return Cast(p, out.s, in.s, 60) })
	for i, v := range out.get() {
		if (v == sentinel[half.BFloat16]()) != (i >= 60) {
			t.Fatalf("element %d of 60 is %v", i, v)
		}
	}
}

func testCopy[T word](t *testing.T, call func(p *runtime.Pass, dst, src runtime.Slice[T], n int) error, fill func(i int) T) {
	rt := open(t)
	defer logExact(t, "Copy")()
	for _, n := range elementCounts {
		exactCases++
		x := make([]T, n)
		for i := range x {
			x[i] = fill(i)
		}
		in, out := newBuffer(t, rt, x), output[T](t, rt, n)
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return call(p, out.s, in.s, n) })
		sameBits(t, fmt.Sprintf("%T %d", x, n), out, in)
		in.untouched()
	}
}

// Bits are copied, NaN with its payload and subnormal numbers among them, and so does a conversion to the same type.
func TestCopy(t *testing.T) {
	r := source(223)
	float := func(int) float32 { return math.Float32frombits(r.Uint32()) }
	h := func(int) half.Float16 { return half.Float16(r.Uint32()) }
	b := func(int) half.BFloat16 { return half.BFloat16(r.Uint32()) }
	testCopy(t, Copy[float32], float)
	testCopy(t, Cast[float32, float32], float)
	testCopy(t, Copy[half.Float16], h)
	testCopy(t, Cast[half.Float16, half.Float16], h)
	testCopy(t, Copy[half.BFloat16], b)
	testCopy(t, Cast[half.BFloat16, half.BFloat16], b)
	testCopy(t, Copy[uint32], func(int) uint32 { return r.Uint32() })
}

func TestCastRecorded(t *testing.T) {
	const n = 600
	rt, r := open(t), source(224)
	x, y := newBuffer(t, rt, normals(r, n, 1)), output[float32](t, rt, n)
	h, h2 := newBuffer(t, rt, half.Float16s(normals(r, n, 1))), output[half.Float16](t, rt, n)
	b, b2 := newBuffer(t, rt, half.BFloat16s(normals(r, n, 1))), output[half.BFloat16](t, rt, n)
	vary := func(i int) {
		x.set(normals(r, n, float64(i+1)))
		h.set(half.Float16s(normals(r, n, 10)))
		b.set(half.BFloat16s(normals(r, n, 10)))
	}
	type bind = func(*runtime.ScalarBinder) error
	for _, c := range []struct {
		out    target
		plain  func(p *runtime.Pass) error
		unsafe func(p *runtime.Pass, b bind) error
	}{
		{h2, func(p *runtime.Pass) error { return Cast(p, h2.s, x.s, n) }, func(p *runtime.Pass, f bind) error { return UnsafeCast(p, h2.s, x.s, n, f) }},
		{b2, func(p *runtime.Pass) error { return Cast(p, b2.s, x.s, n) }, func(p *runtime.Pass, f bind) error { return UnsafeCast(p, b2.s, x.s, n, f) }},
		{y, func(p *runtime.Pass) error { return Cast(p, y.s, h.s, n) }, func(p *runtime.Pass, f bind) error { return UnsafeCast(p, y.s, h.s, n, f) }},
		{y, func(p *runtime.Pass) error { return Cast(p, y.s, b.s, n) }, func(p *runtime.Pass, f bind) error { return UnsafeCast(p, y.s, b.s, n, f) }},
		{b2, func(p *runtime.Pass) error { return Cast(p, b2.s, h.s, n) }, func(p *runtime.Pass, f bind) error { return UnsafeCast(p, b2.s, h.s, n, f) }},
		{h2, func(p *runtime.Pass) error { return Cast(p, h2.s, b.s, n) }, func(p *runtime.Pass, f bind) error { return UnsafeCast(p, h2.s, b.s, n, f) }},
		{y, func(p *runtime.Pass) error { return Copy(p, y.s, x.s, n) }, func(p *runtime.Pass, f bind) error { return UnsafeCopy(p, y.s, x.s, n, f) }},
		{h2, func(p *runtime.Pass) error { return Copy(p, h2.s, h.s, n) }, func(p *runtime.Pass, f bind) error { return UnsafeCopy(p, h2.s, h.s, n, f) }},
	} {
		replays(t, rt, []target{c.out}, vary, c.plain)
		twin(t, rt, []target{c.out}, []scalar{{slot: 2, u: n}}, c.plain, c.unsafe)
	}
}

func TestCastRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	x, h, f, fh := output[float32](t, rt, 64), output[half.Float16](t, rt, 64), output[float32](t, foreign, 64), output[half.Float16](t, foreign, 64)
	type slice = runtime.Slice[float32]
	cast := func(d runtime.Slice[half.Float16], s slice, n int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return Cast(p, d, s, n) }
	}
	refuses(t, rt, "nn.Cast", []target{x, h}, []refusal{
		{"no pass", func(*runtime.Pass) error { return Cast(nil, h.s, x.s, 1) }, runtime.ErrMisuse, nil},
		{"n negative", cast(h.s, x.s, -1), runtime.ErrShape, []string{"n"}},
		{"n huge", cast(h.s, x.s, math.MaxInt), runtime.ErrShape, []string{"n"}},
		{"src short", cast(h.s, x.s.Slice(0, 63), 64), runtime.ErrShape, []string{"src", "63"}},
		{"dst short", cast(h.s.Slice(0, 63), x.s, 64), runtime.ErrShape, []string{"dst", "63"}},
		{"dst zero", cast(runtime.Slice[half.Float16]{}, x.s, 64), runtime.ErrShape, []string{"dst"}},
		{"src foreign", cast(h.s, f.s, 64), runtime.ErrForeign, []string{"src"}},
		{"dst foreign", cast(fh.s, x.s, 64), runtime.ErrForeign, []string{"dst"}},
	})
	copies := func(d, s slice, n int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return Copy(p, d, s, n) }
	}
	refuses(t, rt, "nn.Copy", []target{x}, []refusal{
		{"no pass", func(*runtime.Pass) error { return Copy(nil, x.s, x.s, 1) }, runtime.ErrMisuse, nil},
		{"n negative", copies(x.s, x.s, -1), runtime.ErrShape, []string{"n"}},
		{"overlap", copies(x.s.Slice(0, 32), x.s.Slice(31, 63), 32), runtime.ErrOverlap, []string{"dst", "src"}},
		{"itself", copies(x.s, x.s, 64), runtime.ErrOverlap, []string{"dst", "src"}},
		{"src short", copies(x.s.Slice(0, 32), x.s.Slice(33, 64), 32), runtime.ErrShape, []string{"src", "31"}},
		{"src foreign", copies(x.s, f.s, 64), runtime.ErrForeign, []string{"src"}},
	})
}
