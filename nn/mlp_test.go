package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// elementCounts are lengths around those of simdgroups and threadgroups.
var elementCounts = []int{0, 1, 2, 31, 32, 33, 63, 100, 255, 256, 257, 511, 512, 513, 1000, 4099}

// gates are gates and ups of ordinary sizes with extremes among them.
func gates(n int, seed uint64) (gate, up []float32) {
	r := source(seed)
	gate, up = normals(r, n, math.Pow(10, float64(n%4-1))), normals(r, n, 2)
	extremes := []float32{0, float32(math.Copysign(0, -1)), 1e-30, -1e-30, 20, -20, 64, -64, 87, -87, 89, -103.9, -104, -110, 1e4, -1e4, 3e30, -3e30}
	for i := 0; i < n; i += 7 {
		gate[i] = extremes[r.IntN(len(extremes))]
	}
	return gate, up
}

// gatedAllowed is what the float32 result may be off by, relative to the exact activation. The argument of exp has been
// rounded four times for GELU and not at all for SiLU; exp, the sum, the quotient and the product add some five roundings
// of 2^-24. Where exp overflows or its argument is limited, results below 2^-119 become others. The formula of GELU itself, in float64, is off by 2^-53 of its factor where
// 1 + tanh cancels.
func gatedAllowed(act oracle.Activation, gate, up, want float64) float64 {
	relative, absolute := 6e-7, 0x1p-119*math.Abs(up)
	if act == oracle.ActGELU {
		u := math.Min(math.Abs(math.Sqrt(2/math.Pi)*(gate+0.044715*gate*gate*gate)), 44)
		e := math.Exp(-2 * u)
		absolute += 0x1p-52 * math.Abs(gate*up)
		if gate > 0 {
			relative += 6e-7 * u * e / (1 + e)
		} else {
			relative += 6e-7 * u / (1 + e)
		}
	}
	return relative*math.Abs(want) + absolute
}

func testMLP[T FloatOrBFloat](t *testing.T, name string, act oracle.Activation, call func(p *runtime.Pass, out runtime.Slice[T], gate, up runtime.Slice[float32], n int) error) {
	rt := open(t)
	var w worst
	for _, n := range elementCounts {
		gate, up := gates(n, uint64(n)+200)
		g, u, out := newBuffer(t, rt, gate), newBuffer(t, rt, up), output[T](t, rt, n)
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return call(p, out.s, g.s, u.s, n) })
		want := oracle.Gated(gate, up, act)
		allowed := func(i int) float64 {
			a := gatedAllowed(act, float64(gate[i]), float64(up[i]), want[i])
			if isBFloat[T]() {
				a += math.Abs(want[i])/256 + 0x1p-134
			}
			return a
		}
		w.compare(t, fmt.Sprintf("n %d", n), widen(out.written()), want, allowed)
		g.untouched()
		u.untouched()
	}
	w.log(t, "error budget", name)
}

func TestMLPSiLU(t *testing.T) { testMLP(t, "MLPSiLU", oracle.ActSiLU, MLPSiLU[float32]) }
func TestMLPSiLUBF16(t *testing.T) {
	testMLP(t, "MLPSiLU", oracle.ActSiLU, MLPSiLU[half.BFloat16])
}
func TestMLPGELUTanh(t *testing.T) { testMLP(t, "MLPGELUTanh", oracle.ActGELU, MLPGELUTanh[float32]) }
func TestMLPGELUTanhBF16(t *testing.T) {
	testMLP(t, "MLPGELUTanh", oracle.ActGELU, MLPGELUTanh[half.BFloat16])
}

// The result may replace an operand.
func TestMLPInPlace(t *testing.T) {
	rt := open(t)
	for _, n := range []int{1, 300} {
		gate, up := gates(n, 201)
		plain := func(call func(p *runtime.Pass, out runtime.Slice[float32], gate, up runtime.Slice[float32], n int) error) {
			g, u, out := newBuffer(t, rt, gate), newBuffer(t, rt, up), output[float32](t, rt, n)
			encode(t, rt, 1, func(p *runtime.Pass) error { return call(p, out.s, g.s, u.s, n) })
			encode(t, rt, 1, func(p *runtime.Pass) error { return call(p, g.s, g.s, u.s, n) })
			sameBits(t, "over gate", g, out)
			g.reset()
			encode(t, rt, 1, func(p *runtime.Pass) error { return call(p, u.s, g.s, u.s, n) })
			sameBits(t, "over up", u, out)
			encode(t, rt, 1, func(p *runtime.Pass) error { return call(p, g.s, g.s, g.s, n) }) // all three
		}
		plain(MLPSiLU[float32])
		plain(MLPGELUTanh[float32])
	}
}

// sameBits fails unless both buffers have the same bits.
func sameBits(t *testing.T, where string, got, want target) {
	t.Helper()
	g, w := got.bits(), want.bits()
	for i := range w {
		if g[i] != w[i] {
			t.Fatalf("%s: element %d is %#x, want %#x", where, i, g[i], w[i])
		}
	}
}

func TestMLPNotFinite(t *testing.T) {
	rt := open(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	gate, up := []float32{nan, 1, inf, -inf, inf, -inf, -3}, []float32{1, nan, 2, 2, -1, -1, inf}
	g, u, out := newBuffer(t, rt, gate), newBuffer(t, rt, up), output[float32](t, rt, len(gate))
	for name, call := range map[string]func(p *runtime.Pass, out runtime.Slice[float32], gate, up runtime.Slice[float32], n int) error{
		"silu": MLPSiLU[float32], "gelu": MLPGELUTanh[float32],
	} {
		encode(t, rt, 1, func(p *runtime.Pass) error { return call(p, out.s, g.s, u.s, len(gate)) })
		got := out.get()
		for i, check := range []func(v float64) bool{
			math.IsNaN, math.IsNaN, func(v float64) bool { return math.IsInf(v, 1) }, func(v float64) bool { return math.Abs(v) < 1e-30 },
			func(v float64) bool { return math.IsInf(v, -1) }, func(v float64) bool { return math.Abs(v) < 1e-30 }, func(v float64) bool { return math.IsInf(v, -1) },
		} {
			if !check(float64(got[i])) {
				t.Errorf("%s(%v) * %v = %v", name, gate[i], up[i], got[i])
			}
		}
	}
}

func TestMLPRecorded(t *testing.T) {
	rt, r := open(t), source(202)
	g, u, out, out16 := newBuffer(t, rt, normals(r, 700, 1)), newBuffer(t, rt, normals(r, 700, 1)), output[float32](t, rt, 700), output[half.BFloat16](t, rt, 700)
	vary := func(i int) { g.set(normals(r, 700, float64(i+1))) }
	scalars := []scalar{{slot: 3, u: 700}}
	type bind = func(*runtime.ScalarBinder) error
	for _, c := range []struct {
		out    target
		plain  func(p *runtime.Pass) error
		unsafe func(p *runtime.Pass, b bind) error
	}{
		{out, func(p *runtime.Pass) error { return MLPSiLU(p, out.s, g.s, u.s, 700) },
			func(p *runtime.Pass, b bind) error { return UnsafeMLPSiLU(p, out.s, g.s, u.s, 700, b) }},
		{out16, func(p *runtime.Pass) error { return MLPSiLU(p, out16.s, g.s, u.s, 700) },
			func(p *runtime.Pass, b bind) error { return UnsafeMLPSiLU(p, out16.s, g.s, u.s, 700, b) }},
		{out, func(p *runtime.Pass) error { return MLPGELUTanh(p, out.s, g.s, u.s, 700) },
			func(p *runtime.Pass, b bind) error { return UnsafeMLPGELUTanh(p, out.s, g.s, u.s, 700, b) }},
		{out16, func(p *runtime.Pass) error { return MLPGELUTanh(p, out16.s, g.s, u.s, 700) },
			func(p *runtime.Pass, b bind) error { return UnsafeMLPGELUTanh(p, out16.s, g.s, u.s, 700, b) }},
	} {
		replays(t, rt, []target{c.out}, vary, c.plain)
		twin(t, rt, []target{c.out}, scalars, c.plain, c.unsafe)
	}
}

func TestMLPRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	g, u, out, out16 := output[float32](t, rt, 64), output[float32](t, rt, 64), output[float32](t, rt, 64), output[half.BFloat16](t, rt, 64)
	f := output[float32](t, foreign, 64)
	type slice = runtime.Slice[float32]
	for fn, call := range map[string]func(p *runtime.Pass, out, gate, up slice, n int) error{"nn.MLPSiLU": MLPSiLU[float32], "nn.MLPGELUTanh": MLPGELUTanh[float32]} {
		with := func(o, g, u slice, n int) func(*runtime.Pass) error {
			return func(p *runtime.Pass) error { return call(p, o, g, u, n) }
		}
		refuses(t, rt, fn, []target{g, u, out}, []refusal{
			{"no pass", func(*runtime.Pass) error { return call(nil, out.s, g.s, u.s, 1) }, runtime.ErrMisuse, nil},
			{"n negative", with(out.s, g.s, u.s, -1), runtime.ErrShape, []string{"n"}},
			{"n huge", with(out.s, g.s, u.s, math.MaxInt32+1), runtime.ErrShape, []string{"n"}},
			{"gate short", with(out.s, g.s.Slice(0, 63), u.s, 64), runtime.ErrShape, []string{"gate", "63", "64"}},
			{"up short", with(out.s, g.s, u.s, 65), runtime.ErrShape, nil},
			{"out short", with(out.s.Slice(1, 64), g.s, u.s, 64), runtime.ErrShape, []string{"out", "63"}},
			{"gate zero", with(out.s, slice{}, u.s, 64), runtime.ErrShape, []string{"gate"}},
			{"up foreign", with(out.s, g.s, f.s, 64), runtime.ErrForeign, []string{"up"}},
			{"out foreign", with(f.s, g.s, u.s, 64), runtime.ErrForeign, []string{"out"}},
			{"out in gate", with(g.s.Slice(1, 33), g.s.Slice(0, 32), u.s, 32), runtime.ErrOverlap, []string{"out", "gate"}},
			{"out in up", with(u.s.Slice(0, 32), g.s, u.s.Slice(31, 63), 32), runtime.ErrOverlap, []string{"out", "up"}},
		})
	}
	refuses(t, rt, "nn.MLPGELUTanh", []target{out16}, []refusal{
		{"bf16 short", func(p *runtime.Pass) error { return MLPGELUTanh(p, out16.s.Slice(0, 63), g.s, u.s, 64) }, runtime.ErrShape, []string{"out", "63"}},
	})
}
