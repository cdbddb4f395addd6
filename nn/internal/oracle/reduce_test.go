package oracle

import (
	"math"
	"testing"
)

func TestSoftmaxRows(t *testing.T) {
	x := []float64{
		math.Log(1), math.Log(2), math.Log(5),
		1000, 1000, -inf,
		-inf, -inf, -inf,
		-2000, -2000 + math.Ln2, -inf,
	}
	third := 1.0 / 3
	near(t, []float64{1. / 8, 2. / 8, 5. / 8, 0.5, 0.5, 0, third, third, third, third, 2 * third, 0}, SoftmaxRows(x, 4, 3), 1e-13)
	near(t, []float64{(1 + math.Log(5)) / 8, (1 + math.Log(2.5)) / 4, 5. / 8, 0.5, 0.5, 0, third, third, third, third * (1 + math.Ln2), 2 * third, 0},
		SoftmaxRowsMagnitude(x, 4, 3), 1e-13)
	for _, bad := range []float64{inf, nan} {
		for _, v := range SoftmaxRows([]float64{1, bad}, 1, 2) {
			equal(t, true, math.IsNaN(v), bad)
		}
	}
	equal(t, 0, len(SoftmaxRows([]float32{}, 3, 0)))
}

func TestRowReductions(t *testing.T) {
	x := []float32{1, -2, 4, -8, -3, -16}
	equal(t, []float64{3, -27}, RowSum(x, 2, 3))
	equal(t, []float64{7, 27}, RowSumMagnitude(x, 2, 3))
	equal(t, []float64{4, -3}, RowMax(x, 2, 3))
	equal(t, []float64{-inf, inf}, RowMax([]float64{-inf, -inf, inf, -1}, 2, 2))
	equal(t, true, math.IsNaN(RowMax([]float64{inf, nan}, 1, 2)[0]))
	equal(t, []float64{0, 0}, RowSum(x, 2, 0))
	equal(t, []float64{-inf}, RowMax(x, 1, 0))
}
