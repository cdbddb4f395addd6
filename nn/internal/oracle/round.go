package oracle

import "math"

// RoundBF16 is the bfloat16 number nearest to x, ties to even, as a float64.
//
// A bfloat16 has 8 significant bits and the exponents of a float32: numbers below 2⁻¹²⁶ are multiples of 2⁻¹³³, and
// what rounds beyond the largest, 2¹²⁷·(2−2⁻⁷), becomes an infinity. NaN stays NaN.
func RoundBF16(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	_, exp := math.Frexp(x) // x = f·2^exp with ½ ≤ |f| < 1
	ulp := exp - 8
	if ulp < -133 {
		ulp = -133
	}
	// Both scalings are by powers of two and exact: the quotient has the bits of x, and the rounded one has at most 9.
	y := math.Ldexp(math.RoundToEven(math.Ldexp(x, -ulp)), ulp)
	if math.Abs(y) >= math.Ldexp(1, 128) {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return y
}

// RoundBF16s rounds every number of x with [RoundBF16].
func RoundBF16s[T Real](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = RoundBF16(float64(v))
	}
	return out
}

// BF16 is the number that a bfloat16's 16 bits stand for.
func BF16(bits uint16) float64 {
	return float64(math.Float32frombits(uint32(bits) << 16))
}
