package oracle

import (
	"math"
	"testing"
)

func TestRoundF16(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{0, 0}, {1, 1}, {inf, inf}, {-inf, -inf},
		{1 + 1.0/2048, 1},               // half way to 1+2⁻¹⁰: to the even one
		{1 + 3.0/2048, 1 + 1.0/512},     // half way: up to the even one
		{1 + 1.01/2048, 1 + 1.0/1024},   // just above half
		{65504, 65504},                  // the largest
		{65519.99, 65504}, {65520, inf}, // half way to 2¹⁶, which is even
		{-65520, -inf}, {1e300, inf},
		{math.Ldexp(1, -24), math.Ldexp(1, -24)}, // the least positive
		{math.Ldexp(1, -25), 0},                  // half of it: to even
		{math.Ldexp(3, -25), math.Ldexp(2, -24)},
		{math.Ldexp(1023.5, -24), math.Ldexp(1, -14)}, // from the subnormal to the normal numbers
	} {
		equal(t, c.want, RoundF16(c.x), c.x)
	}
	equal(t, true, math.IsNaN(RoundF16(nan)))
	equal(t, []float64{1, 3.140625}, RoundF16s([]float32{1, math.Pi}))

	equal(t, 1.0, F16(0x3c00))
	equal(t, -2.0, F16(0xc000))
	equal(t, 65504.0, F16(0x7bff))
	equal(t, math.Ldexp(1, -24), F16(1))
	equal(t, math.Ldexp(1, -14), F16(0x0400))
	equal(t, inf, F16(0x7c00))
	equal(t, -inf, F16(0xfc00))
	equal(t, true, math.IsNaN(F16(0x7c01)))
	for bits := range uint16(0x7c00) {
		a, b := F16(bits), F16(bits+1)
		equal(t, a, RoundF16(a))
		if bits < 0x7bff {
			mid, even := (a+b)/2, a
			if bits&1 == 1 {
				even = b
			}
			equal(t, even, RoundF16(mid), bits)
			equal(t, a, RoundF16(math.Nextafter(mid, 0)), bits)
			equal(t, -b, RoundF16(-math.Nextafter(mid, inf)), bits)
		}
	}
}

func TestRoundF32(t *testing.T) {
	for _, x := range []float64{0, 1, math.Pi, -1e-40, 1e-45, 7e-46, 7.1e-46, 3e38, 3.5e38, math.MaxFloat32, 3.4028235677973366e38, 1 + math.Ldexp(1, -24), 1 + math.Ldexp(3, -24), inf} {
		equal(t, float64(float32(x)), RoundF32(x), x)
	}
	equal(t, []float64{float64(float32(math.Pi)), 2}, RoundF32s([]float64{math.Pi, 2}))
}
