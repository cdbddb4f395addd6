package oracle

import (
	"math"
	"testing"
)

func TestMatrixProducts(t *testing.T) {
	w := Dense[float32]{Data: []float32{1, 2, -3, 4, 0, 5}, Rows: 2, Cols: 3}
	equal(t, []float64{1, 2, -3, 4, 0, 5}, Expand(w))
	equal(t, 3.0, w.Magnitude(0, 2))
	x := []float32{1, 1, 1, 2, 0, -1}
	equal(t, []float64{0, 9}, GEMV(w, x[:3]))
	equal(t, []float64{0, 9, 5, 3}, GEMM(w, x, 2))
	equal(t, []float64{6, 9, 5, 13}, GEMMMagnitude(w, x, 2))
	equal(t, []float64{5, 13}, GEMVMagnitude(w, x[3:]))
	// The residual has a number for each vector and row.
	equal(t, []float64{1, 11, 8, 7}, GEMMAdd(w, x, []float32{1, 2, 3, 4}, 2))
	equal(t, []float64{1, 11}, GEMVAdd(w, x[:3], []float64{1, 2}))
	equal(t, [][]float64{{0, 9}, {7}}, GEMVs(x[:3], w, Dense[float64]{Data: []float64{3, 3, 1}, Rows: 1, Cols: 3}))
	equal(t, []float64{8, 0, 10, 0, 0, 0, 2, 4, -6}, Embed(w, []uint32{1, 2, 0}, 2))
	equal(t, 0, len(GEMM(w, x, 0)))
}

func TestGateUp(t *testing.T) {
	gate := Dense[float64]{Data: []float64{60, 40, -60, -40, 3, -3}, Rows: 3, Cols: 2}
	up := Dense[float64]{Data: []float64{1, 2, 3, 4, 1, -2}, Rows: 3, Cols: 2}
	x := []float64{1, 1}
	near(t, []float64{300, 0, 0}, GateUp(gate, up, x, ActSiLU), 1e-12)
	// 1.1·100·3 + 100·3; 1.1·100·7; 1.1·6·1.
	near(t, []float64{630, 770, 6.6}, GateUpMagnitude(gate, up, x, ActSiLU), 1e-12)
}

func TestQ4IsAMatrix(t *testing.T) {
	rows, cols := bank().Shape()
	equal(t, []int{2, 16}, []int{rows, cols})
	equal(t, 0.5*15+1, bank().Magnitude(0, 15))
	equal(t, 1*2+3., bank().Magnitude(1, 9))
}

func TestQ8(t *testing.T) {
	m := Q8{
		Codes:  []int8{1, -2, 3, -128, 127, 0, 5, 6},
		Scales: []float32{2, 0.5, -1, 1}, Zeros: []float32{1, -0.5, 3, 0},
		Rows: 2, Cols: 4, Group: 2,
	}
	equal(t, []float64{0, -6, 1.75, -63.75, -124, 3, 5, 6}, Expand(m))
	equal(t, 2*(2+1.), m.Magnitude(0, 1))
	equal(t, 1*(127+3.), m.Magnitude(1, 0))
	m.Zeros[2] = -3
	equal(t, 1*(127+3.), m.Magnitude(1, 0))
	m.Zeros[2] = 3
	equal(t, []float64{-6 + 3.5 - 191.25, -124*0 + 3 + 10 + 18}, GEMV(m, []float64{0, 1, 2, 3}))
}

func TestQ4Signed(t *testing.T) {
	m := Q4Signed{
		Packed: []byte{0x10, 0x87, 0xf9, 0x2e}, // 0 1, 7 −8; −7 −1, −2 2
		Scales: []float32{1, 2, -1, 0.5}, Zeros: []float32{0, 1, 2, -4},
		Rows: 2, Cols: 4, Group: 2,
	}
	var codes []int
	for i := range 8 {
		codes = append(codes, m.Code(i/4, i%4))
	}
	equal(t, []int{0, 1, 7, -8, -7, -1, -2, 2}, codes)
	equal(t, []float64{0, 1, 12, -18, 9, 3, 1, 3}, Expand(m))
	equal(t, 2*(8+1.), m.Magnitude(0, 3))
	equal(t, 7+2., m.Magnitude(1, 0))
	equal(t, 0.5*(2+4.), m.Magnitude(1, 3))
	equal(t, []float64{1 + 12 - 18, 3 + 1 + 3}, GEMV(m, []float32{0, 1, 1, 1}))
	equal(t, []float64{9, 3, 1, 3, 0, 0, 0, 0}, Embed(m, []uint32{1, math.MaxUint32}, 1))
}

// Codes of 6 bits straddle bytes: 1, 33, 62, 20 are the bits 000001 100001 111110 010100, the lowest first in each byte.
func TestAffine(t *testing.T) {
	m := Affine{Packed: []byte{0b01_000001, 0b1110_1000, 0b010100_11}, Scales: []float32{2, -1}, Biases: []float32{-3, 0.5}, Rows: 2, Cols: 2, Group: 2, Bits: 6}
	want := []float64{2*1 - 3, 2*33 - 3, -62 + 0.5, -20 + 0.5}
	for i, got := range Expand(m) {
		if got != want[i] {
			t.Errorf("weight %d: %v, want %v", i, got, want[i])
		}
	}
	if got := m.Magnitude(1, 0); got != 62.5 {
		t.Error(got)
	}
	four := Affine{Packed: []byte{0x21, 0xf3}, Scales: []float32{1}, Biases: []float32{0}, Rows: 1, Cols: 4, Group: 4, Bits: 4}
	eight := Affine{Packed: []byte{7, 255}, Scales: []float32{1}, Biases: []float32{0}, Rows: 1, Cols: 2, Group: 2, Bits: 8}
	if four.At(0, 0) != 1 || four.At(0, 1) != 2 || four.At(0, 2) != 3 || four.At(0, 3) != 15 || eight.At(0, 1) != 255 {
		t.Error(Expand(four), Expand(eight))
	}
}
