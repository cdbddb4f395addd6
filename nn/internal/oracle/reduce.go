package oracle

import "math"

// SoftmaxRows is the softmax of each row, with the row's maximum subtracted first, which changes nothing but keeps the
// exponentials from overflowing:
//
//	out[r][c] = e^(x[r][c] − max_r) / Σ_k e^(x[r][k] − max_r)
//
// A row that is −∞ throughout, so that every term would be e^−∞ = 0, is uniform: 1/cols. A row that has +∞ or NaN is NaN.
func SoftmaxRows[T Real](x []T, rows, cols int) []float64 {
	out := make([]float64, rows*cols)
	for r := range rows {
		softmax(out[r*cols:(r+1)*cols], x[r*cols:(r+1)*cols])
	}
	return out
}

// SoftmaxRowsMagnitude is out·(1 + max_r − x), elementwise: the scale of an implementation's rounding error. The
// difference from the maximum is rounded in proportion to itself, and the exponential turns that into a relative error of
// the term. The error of the sum is relative to its value, since all its terms are positive.
func SoftmaxRowsMagnitude[T Real](x []T, rows, cols int) []float64 {
	out, highest := SoftmaxRows(x, rows, cols), RowMax(x, rows, cols)
	for i, v := range out {
		if !math.IsInf(float64(x[i]), -1) { // those are exact
			out[i] = v * (1 + highest[i/cols] - float64(x[i]))
		}
	}
	return out
}

// RowSum is the sum of each row.
func RowSum[T Real](x []T, rows, cols int) []float64 {
	return fold(x, rows, cols, 0, func(a, v float64) float64 { return a + v })
}

// RowSumMagnitude is the sum of each row's absolute values.
func RowSumMagnitude[T Real](x []T, rows, cols int) []float64 {
	return fold(x, rows, cols, 0, func(a, v float64) float64 { return a + abs(v) })
}

// RowMax is the largest number of each row, NaN if the row has one, −∞ if it is empty.
func RowMax[T Real](x []T, rows, cols int) []float64 {
	return fold(x, rows, cols, math.Inf(-1), func(a, v float64) float64 { return max(a, v) })
}

func fold[T Real](x []T, rows, cols int, start float64, f func(a, v float64) float64) []float64 {
	out := make([]float64, rows)
	for r := range out {
		out[r] = start
		for _, v := range x[r*cols : (r+1)*cols] {
			out[r] = f(out[r], float64(v))
		}
	}
	return out
}

func softmax[T Real](out []float64, x []T) {
	highest := RowMax(x, 1, len(x))[0]
	total := 0.0
	for i, v := range x {
		out[i] = 1
		if !math.IsInf(highest, -1) {
			out[i] = math.Exp(float64(v) - highest)
		}
		total += out[i]
	}
	for i := range out {
		out[i] /= total
	}
}
