package oracle

import (
	"math"
	"testing"
)

func TestProduct(t *testing.T) {
	// A = (1 2 3; 4 5 6), B = (1 0; −1 1; 2 −2): AB = (5 −4; 11 −7).
	p := Product{
		A: []float32{1, 2, 3, 4, 5, 6}, B: []float32{1, 0, -1, 1, 2, -2},
		M: 2, N: 2, K: 3, Alpha: 1,
	}
	want, size := []float64{5, -4, 11, -7}, []float64{9, 8, 21, 17}
	equal(t, want, p.Result())
	equal(t, size, p.Magnitude())

	transA, transB := []float32{1, 4, 2, 5, 3, 6}, []float32{1, -1, 2, 0, 1, -2}
	tn, nt := p, p
	tn.A, tn.TransA = transA, true
	equal(t, want, tn.Result())
	nt.B, nt.TransB = transB, true
	equal(t, want, nt.Result())
	tn.B, tn.TransB = transB, true
	equal(t, want, tn.Result())
	equal(t, size, tn.Magnitude())

	// 2·AB − C + bias.
	p.Alpha, p.Beta, p.C, p.Bias = 2, -1, []float32{1, 2, 3, 4}, []float32{-10, 3}
	equal(t, []float64{-1, -7, 9, -15}, p.Result())
	equal(t, []float64{29, 21, 55, 41}, p.Magnitude())
	p.Act = ActReLU
	equal(t, []float64{0, 0, 9, 0}, p.Result())
	p.Act = ActSiLU
	near(t, []float64{1.1 * 29, 1.1 * 21, 1.1 * 55, 1.1 * 41}, p.Magnitude(), 1e-12)

	// With Beta 0 it does not matter what C holds.
	p.Act, p.Beta, p.C[0] = ActNone, 0, float32(nan)
	equal(t, []float64{0, -5, 12, -11}, p.Result())

	p.K, p.Bias = 0, nil
	equal(t, make([]float64, 4), p.Result())
}

func TestProductBatch(t *testing.T) {
	// One row each of the batch; B is the same for all, and C strides by two though it has one element.
	p := Product{
		A: []float32{1, 2, 3, 4, 5, 6}, B: []float32{10, 1}, C: []float32{100, 0, 200, 0, 300},
		M: 1, N: 1, K: 2, Alpha: 1, Beta: 1, Batch: 3, StrideA: 2, StrideC: 2,
	}
	equal(t, []float64{112, 234, 356}, p.Result())
	p.StrideA, p.StrideB, p.B = 0, 1, []float32{10, 1, 0, 5}
	equal(t, []float64{112, 201, 310}, p.Result())
}

func TestIntProduct(t *testing.T) {
	p := IntProduct{A: []int8{1, 2, 3, 4, 5, 6}, B: []int8{1, 0, -1, 1, 2, -2}, M: 2, N: 2, K: 3}
	equal(t, []int64{5, -4, 11, -7}, p.Sums())
	equal(t, []float64{5, -4, 11, -7}, p.Result())
	p.BScale = []float32{2, 0.5}
	equal(t, []float64{10, -2, 22, -3.5}, p.Result())
	p.AScale = []float32{1, -1}
	equal(t, []float64{10, -2, -22, 3.5}, p.Result())
	p.BScale = nil
	equal(t, []float64{5, -4, -11, 7}, p.Result())
	p = IntProduct{A: []int8{1, 4, 2, 5, 3, 6}, B: []int8{1, -1, 2, 0, 1, -2}, TransA: true, TransB: true, M: 2, N: 2, K: 3}
	equal(t, []int64{5, -4, 11, -7}, p.Sums())

	// The longest sum of the largest products that 32 bits hold.
	ones := make([]int8, 131072)
	for i := range ones {
		ones[i] = -128
	}
	p = IntProduct{A: ones, B: ones, M: 1, N: 1, K: 131071}
	equal(t, []int64{math.MaxInt32 - 16383}, p.Sums())
	p.K++
	equal(t, []int64{math.MaxInt32 + 1}, p.Sums())
}
