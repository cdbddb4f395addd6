package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// affineFormats are all formats with groups that checkpoints have.
func affineFormats() (list []quant.AffineFormat) {
	for _, bits := range []int{4, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			for _, scale := range []quant.ScaleType{quant.ScaleF32, quant.ScaleF16, quant.ScaleBF16} {
				list = append(list, quant.AffineFormat{Bits: bits, GroupSize: group, Scale: scale})
			}
		}
	}
	return list
}

// affineMatrix is a bank between sentinels on the device, with its host form and its formula.
type affineMatrix struct {
	bank AffineBank
	host quant.Affine
	o    oracle.Affine
}

// randomAffine has any codes, and scales and biases for weights of about 1 whose sum nearly cancels.
func randomAffine(t testing.TB, rt *runtime.Runtime, r *rand.Rand, f quant.AffineFormat, rows, cols int) affineMatrix {
	t.Helper()
	a, err := quant.QuantizeAffine(normals(r, rows*cols, 1), rows, cols, f)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Weight {
		a.Weight[i] = byte(r.Uint32())
	}
	return uploadAffine(t, rt, a)
}

func uploadAffine(t testing.TB, rt *runtime.Runtime, a quant.Affine) affineMatrix {
	t.Helper()
	weight, scales, biases := newBuffer(t, rt, a.Weight), newBuffer(t, rt, a.Scales), newBuffer(t, rt, a.Biases)
	bank, err := NewAffineBank(a.Format, weight.s, scales.s, biases.s, a.Rows, a.Cols)
	if err != nil {
		t.Fatal(err)
	}
	codes, err := a.Unpack()
	if err != nil {
		t.Fatal(err)
	}
	return affineMatrix{bank, a, oracle.Affine{Packed: a.Weight, Scales: codes.Scales, Biases: codes.Biases, Rows: a.Rows, Cols: a.Cols, Group: a.Format.GroupSize, Bits: a.Format.Bits}}
}

// affineCodes is a matrix with a byte for each code on the device.
type affineCodes struct {
	bank AffineCodesBank
	host quant.AffineCodes
	o    oracle.Affine
}

func uploadAffineCodes(t testing.TB, rt *runtime.Runtime, a quant.AffineCodes) affineCodes {
	t.Helper()
	codes, scales, biases := newBuffer(t, rt, a.Codes), newBuffer(t, rt, a.Scales), newBuffer(t, rt, a.Biases)
	bank, err := NewAffineCodesBank(codes.s, scales.s, biases.s, a.Rows, a.Cols, a.GroupSize)
	if err != nil {
		t.Fatal(err)
	}
	return affineCodes{bank, a, oracle.Affine{Packed: a.Codes, Scales: a.Scales, Biases: a.Biases, Rows: a.Rows, Cols: a.Cols, Group: a.GroupSize, Bits: 8}}
}

func randomAffineCodes(t testing.TB, rt *runtime.Runtime, r *rand.Rand, rows, cols, group int) affineCodes {
	t.Helper()
	groups := rows * cols / group
	a := quant.AffineCodes{Rows: rows, Cols: cols, GroupSize: group, Codes: make([]uint8, rows*cols), Scales: normals(r, groups, 0.01), Biases: normals(r, groups, 1)}
	for i := range a.Codes {
		a.Codes[i] = uint8(r.Uint32())
	}
	return uploadAffineCodes(t, rt, a)
}

// affinePlane is a matrix in tiles of 64 rows on the device.
type affinePlane struct {
	bank AffinePlaneBank
	o    oracle.Affine
}

func uploadAffinePlane(t testing.TB, rt *runtime.Runtime, a quant.Affine) affinePlane {
	t.Helper()
	p, err := a.Plane()
	if err != nil {
		t.Fatal(err)
	}
	plane, metadata := newBuffer(t, rt, p.Plane), newBuffer(t, rt, p.Metadata)
	bank, err := NewAffinePlaneBank(plane.s, metadata.s, a.Rows, a.Cols)
	if err != nil {
		t.Fatal(err)
	}
	return affinePlane{bank, uploadAffine(t, rt, a).o}
}

// planeProduct are the operands of a product with such a matrix; its scratch is as it comes.
type planeProduct struct {
	a     QMMAffinePlaneArgs
	x, y  *buffer[float32]
	table *buffer[half.BFloat16]
	sums  *buffer[float32]
}

func newPlaneProduct(t testing.TB, rt *runtime.Runtime, w affinePlane, x []float32, m int) planeProduct {
	t.Helper()
	table, sums := QMMAffinePlaneScratch(m, w.o.Cols)
	p := planeProduct{x: newBuffer(t, rt, x), y: output[float32](t, rt, m*w.o.Rows), table: output[half.BFloat16](t, rt, table), sums: output[float32](t, rt, sums)}
	p.a = QMMAffinePlaneArgs{Y: p.y.s, W: w.bank, X: p.x.s, M: m, Table: p.table.s, Sums: p.sums.s}
	return p
}

// qmmShape is a shape of a product; groups are those of a row.
type qmmShape struct{ m, n, groups int }

// Rows and vectors at and beside 4, 8, 16, 32 and 64, in more than forty shapes.
var qmmShapes = []qmmShape{
	{1, 1, 1}, {1, 8, 2}, {2, 3, 1}, {3, 7, 3}, {4, 4, 1}, {5, 9, 2}, {7, 13, 2}, {8, 8, 1}, {8, 16, 2}, {9, 5, 1},
	{11, 31, 1}, {12, 33, 2}, {13, 21, 2}, {15, 17, 1}, {16, 16, 3}, {16, 1, 1}, {17, 15, 1}, {17, 50, 3}, {19, 2, 2}, {23, 47, 2},
	{24, 24, 1}, {25, 40, 1}, {29, 3, 4}, {31, 64, 1}, {32, 32, 1}, {32, 64, 4}, {33, 31, 1}, {33, 65, 2}, {37, 1, 3}, {40, 63, 1},
	{47, 9, 1}, {48, 48, 2}, {55, 30, 1}, {63, 33, 1}, {64, 64, 1}, {65, 63, 1}, {66, 6, 2}, {70, 70, 1}, {1, 129, 1}, {2, 100, 9},
	{3, 66, 2}, {6, 257, 1}, {130, 2, 1}, {1, 5, 33}, {10, 12, 17},
}

// codesBudget is what a sum of k products with weights that were rounded once may be off by: 2^-24 of the sum of |w x| for each of k
// additions, whatever their order, and for the weight.
func codesBudget(k int) float64 { return float64(k+2) * 0x1p-24 }

// weightMagnitude is the sum of |w x| for whole weights, whatever their terms are.
func weightMagnitude(o oracle.Matrix, x []float32, m int) []float64 {
	rows, cols := o.Shape()
	return oracle.GEMMMagnitude(oracle.Dense[float64]{Data: oracle.Expand(o), Rows: rows, Cols: cols}, x, m)
}

// vectorsBudget is the same for the kernels that take vectors: 16 additions in a lane, a product and a sum each for scale and bias of each step
// of 512 columns, five levels of the sum over 32 lanes.
func vectorsBudget(k int) float64 { return float64(16+4*ceilDiv(k, 512)+5) * 0x1p-24 }

// planeBudget: the 64 products of a group, which are exact, and a product and a sum each for scale and bias of each group.
func planeBudget(k int) float64 { return float64(64+4*k/64) * 0x1p-24 }

// bf16s are numbers rounded to bfloat16.
func bf16s(x []float32) []float32 { return asFloat32(half.BFloat16s(x)) }
