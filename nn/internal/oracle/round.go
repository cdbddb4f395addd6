package oracle

import "math"

// RoundBF16 is the bfloat16 number nearest to x, ties to even, as a float64.
//
// A bfloat16 has 8 significant bits and the exponents of a float32: numbers below 2⁻¹²⁶ are multiples of 2⁻¹³³, and
// what rounds beyond the largest, 2¹²⁷·(2−2⁻⁷), becomes an infinity. NaN stays NaN.
func RoundBF16(x float64) float64 {
	return round(x, 8, -133, 128)
}

// RoundF16 is the IEEE half-precision number nearest to x, ties to even, as a float64.
//
// It has 11 significant bits; numbers below 2⁻¹⁴ are multiples of 2⁻²⁴, and what rounds beyond the largest, 65504, becomes
// an infinity: 65520 is the least that does. NaN stays NaN.
func RoundF16(x float64) float64 {
	return round(x, 11, -24, 16)
}

// RoundF32 is the float32 nearest to x, ties to even, as a float64.
func RoundF32(x float64) float64 {
	return round(x, 24, -149, 128)
}

// round is the nearest multiple of 2^least with at most the given number of significant bits, ties to even, or an infinity
// if that is 2^limit or more.
func round(x float64, bits, least, limit int) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	_, exp := math.Frexp(x) // x = f·2^exp with ½ ≤ |f| < 1
	ulp := max(exp-bits, least)
	// Both scalings are by powers of two and exact: the quotient has the bits of x, and the rounded one has at most one
	// bit more than the format.
	y := math.Ldexp(math.RoundToEven(math.Ldexp(x, -ulp)), ulp)
	if math.Abs(y) >= math.Ldexp(1, limit) {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return y
}

// RoundBF16s rounds every number of x with [RoundBF16].
func RoundBF16s[T Real](x []T) []float64 { return roundAll(x, RoundBF16) }

// RoundF16s rounds every number of x with [RoundF16].
func RoundF16s[T Real](x []T) []float64 { return roundAll(x, RoundF16) }

// RoundF32s rounds every number of x with [RoundF32].
func RoundF32s[T Real](x []T) []float64 { return roundAll(x, RoundF32) }

func roundAll[T Real](x []T, round func(float64) float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = round(float64(v))
	}
	return out
}

// BF16 is the number that a bfloat16's 16 bits stand for.
func BF16(bits uint16) float64 {
	return float64(math.Float32frombits(uint32(bits) << 16))
}

// F16 is the number that an IEEE half-precision number's 16 bits stand for: a sign, five bits of exponent with bias 15 and
// ten of fraction.
func F16(bits uint16) float64 {
	sign, exp, frac := 1.0, int(bits>>10&31), float64(bits&1023)
	if bits>>15 == 1 {
		sign = -1
	}
	switch {
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		return math.Inf(int(sign))
	case exp == 0:
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}
