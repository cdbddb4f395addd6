package runtime

import (
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

// Known answers of the products with quantised weights.

// zeroPoint is a bank of signed codes with a scale and a zero point for each group.
type zeroPoint struct {
	rows, cols, group int
	codes             []int8
	scales, zeros     []float32
}

// newZeroPoint has codes of so many bits.
func newZeroPoint(rows, cols, group, bits, seed int) *zeroPoint {
	b := &zeroPoint{rows: rows, cols: cols, group: group}
	for i := range rows * cols {
		b.codes = append(b.codes, int8((i*29+i/7+seed)%(1<<bits)-1<<(bits-1)))
	}
	for i := range rows * cols / group {
		b.scales = append(b.scales, float32(1+(i+seed)%5)/64)
		b.zeros = append(b.zeros, float32((i*3+seed)%7-4)/4)
	}
	return b
}

// product is the bank times x, and what its rounding is measured against.
func (b *zeroPoint) product(x []float32) (y []float64, scale float64) {
	y = make([]float64, b.rows)
	for r := range y {
		size := 0.0
		for c, v := range x {
			i := r*b.cols + c
			s, q, z := float64(b.scales[i/b.group])*float64(v), float64(b.codes[i]), float64(b.zeros[i/b.group])
			y[r] += s * (q - z)
			size += math.Abs(s) * (math.Abs(q) + math.Abs(z))
		}
		scale = max(scale, size)
	}
	return y, scale
}

func (b *zeroPoint) launch(m *selfMemory, seed int) (groups, threads Size) {
	x := pattern(b.cols, seed)
	want, scale := b.product(x)
	input(m, 1, b.scales)
	input(m, 2, b.zeros)
	input(m, 3, x)
	output(m, 4, zeros(b.rows), want, 1e-5, scale, f32)
	m.uints(5, uint32(b.rows), uint32(b.cols), uint32(b.group))
	return D1((b.rows + 7) / 8), D1(64)
}

func selfGEMVQ8(m *selfMemory) (groups, threads Size) {
	b := newZeroPoint(11, 132, 12, 8, 40)
	input(m, 0, b.codes)
	return b.launch(m, 41)
}

func selfGEMVQ4(m *selfMemory) (groups, threads Size) {
	b := newZeroPoint(11, 264, 24, 4, 42)
	packed := make([]uint32, len(b.codes)/8)
	for i, c := range b.codes {
		packed[i/8] |= uint32(c&15) << (4 * (i % 8))
	}
	input(m, 0, packed)
	return b.launch(m, 43)
}

// productF32 is the bank times a vector of float32.
func (b *q4) productF32(x []float32) (y []float64, scale float64) {
	for r := range b.rows {
		sum, size := 0.0, 0.0
		for c, w := range b.row(r) {
			sum += w * float64(x[c])
			size += math.Abs(w * float64(x[c]))
		}
		y = append(y, sum)
		scale = max(scale, size)
	}
	return y, scale
}

// tiles is the bank in tiles of rows, the last one padded, of which units of codes and pairs of scale and bias take turns.
func (b *q4) tiles(rows, unit int) (packed []uint32, sb []half.BFloat16) {
	words, pairs := b.cols/8, 2*b.cols/b.group
	for first := 0; first < b.rows; first += rows {
		for k := 0; k < words; k += unit {
			for r := first; r < first+rows; r++ {
				at := min(r, b.rows-1)*words + k // the padding is not looked at
				packed = append(packed, b.packed[at:at+unit]...)
			}
		}
		for k := 0; k < pairs; k += 2 {
			for r := first; r < first+rows; r++ {
				at := min(r, b.rows-1)*pairs + k
				sb = append(sb, b.sb[at:at+2]...)
			}
		}
	}
	return packed, sb
}

func selfGEMVF32(m *selfMemory) (groups, threads Size) {
	const rows, cols, group = 37, 96, 32
	bank, x := newQ4(rows, cols, group, 44), pattern(cols, 45)
	want, scale := bank.productF32(x)
	bank.bind(m, 0, 1)
	input(m, 3, x)
	output(m, 4, zeros(rows), want, 1e-5, scale, f32)
	m.uints(5, rows, cols, group)
	return D1(1), D1(64)
}

func selfGEMVBlocked(m *selfMemory) (groups, threads Size) {
	const rows, cols, group = 19, 192, 64
	bank, x := newQ4(rows, cols, group, 46), pattern(cols, 47)
	want, scale := bank.productF32(x)
	packed, sb := bank.tiles(16, group/8)
	input(m, 0, packed)
	input(m, 1, sb)
	input(m, 3, x)
	output(m, 4, zeros(rows), want, 1e-5, scale, f32)
	m.uints(5, rows, cols, group)
	return D1(2), D1(256)
}

func selfGEMVInterleaved(m *selfMemory) (groups, threads Size) {
	const rows, cols, group = 11, 544, 32
	bank, x := newQ4(rows, cols, group, 48), toBF16(pattern(cols, 49))
	want, scale := bank.product(x)
	packed, sb := bank.tiles(4, 2)
	input(m, 0, packed)
	input(m, 1, sb)
	input(m, 3, x)
	output(m, 4, zeros(rows), want, 1e-5, scale, f32)
	m.uints(5, rows, cols, group)
	return D1((rows + 7) / 8), D1(64)
}

func selfGEMM(m *selfMemory) (groups, threads Size) {
	const rows, cols, group, vectors = 11, 96, 32, 3
	bank, x, resid := newQ4(rows, cols, group, 50), toBF16(pattern(vectors*cols, 51)), pattern(vectors*rows, 52)
	var want []float64
	scale := 1.0
	for i := range vectors {
		y, s := bank.product(x[i*cols : (i+1)*cols])
		for r := range y {
			y[r] += float64(resid[i*rows+r])
		}
		want, scale = append(want, y...), max(scale, s)
	}
	bank.bind(m, 0, 1)
	input(m, 3, x)
	output(m, 4, zeros(len(want)), want, 1e-5, scale, f32)
	m.uints(5, rows, cols, group, vectors)
	input(m, 9, resid)
	return D1((rows + 7) / 8), D1(64)
}
