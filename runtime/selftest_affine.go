package runtime

import (
	"encoding/binary"
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

// Known answers of the products with matrices in MLX's affine format.

// affineSelf is a matrix with scales and biases that float16 and bfloat16 hold exactly.
type affineSelf struct {
	rows, cols, group int
	codes             []uint8
	scales, biases    []float32
}

func newAffineSelf(rows, cols, group, bits int) affineSelf {
	a := affineSelf{rows: rows, cols: cols, group: group}
	for i := range rows * cols {
		a.codes = append(a.codes, uint8((i*37+i/cols*5+3)%251)&(1<<bits-1))
	}
	for i := range rows * cols / group {
		a.scales, a.biases = append(a.scales, float32(1+i%5)/64), append(a.biases, float32(i*3%7-4)/32)
	}
	return a
}

func (a *affineSelf) at(row, col int) float64 {
	g := row*(a.cols/a.group) + col/a.group
	return float64(a.scales[g])*float64(a.codes[row*a.cols+col]) + float64(a.biases[g])
}

// packed are the codes as a stream of bits, the lowest first.
func (a *affineSelf) packed(bits int) []uint8 {
	out := make([]uint8, len(a.codes)*bits/8)
	for i, code := range a.codes {
		for b := range bits {
			at := i*bits + b
			out[at/8] |= code >> b & 1 << (at % 8)
		}
	}
	return out
}

// product is what m vectors give, and the scale of its error.
func (a *affineSelf) product(x []float32, m int) (want []float64, scale float64) {
	want = make([]float64, m*a.rows)
	for i := range m {
		for r := range a.rows {
			size := 0.0
			for c := range a.cols {
				w := a.at(r, c) * float64(x[i*a.cols+c])
				want[i*a.rows+r] += w
				size += math.Abs(w)
			}
			scale = max(scale, size)
		}
	}
	return want, scale
}

func (a *affineSelf) params(m *selfMemory, slot, vectors int) {
	var params []byte
	for _, v := range []int{vectors, a.rows, a.cols, a.group} {
		params = binary.NativeEndian.AppendUint32(params, uint32(v))
	}
	m.binds = append(m.binds, func(l *Launch) { l.Bytes(slot, params) })
}

// selfAffineVectors: 6-bit codes, scales and biases in bfloat16, vectors in float16.
func selfAffineVectors(m *selfMemory) (groups, threads Size) {
	const vectors = 3
	a := newAffineSelf(13, 544, 32, 6)
	x := pattern(vectors*a.cols, 70)
	want, scale := a.product(x, vectors)
	m.constants = []constant{{400, constantUint32, 1}, {401, constantUint32, 0}, {402, constantUint32, 2}}
	input(m, 0, toF16(x))
	input(m, 1, a.packed(6))
	input(m, 2, toBF16(a.scales))
	input(m, 3, toBF16(a.biases))
	output(m, 4, zeros(len(want)), want, 1e-5, scale, f32)
	a.params(m, 5, vectors)
	return D2(2, 1), D1(64)
}

// selfAffineTile: 8-bit codes, scales and biases in float16, vectors in float32.
func selfAffineTile(m *selfMemory) (groups, threads Size) {
	m.unsupported = !m.rt.info.SIMDMatrix
	const vectors = 35
	a := newAffineSelf(66, 96, 32, 8)
	x := pattern(vectors*a.cols, 71)
	want, scale := a.product(x, vectors)
	m.constants = []constant{{400, constantUint32, 0}, {401, constantUint32, 0}, {402, constantUint32, 1}}
	input(m, 0, x)
	input(m, 1, a.packed(8))
	input(m, 2, toF16(a.scales))
	input(m, 3, toF16(a.biases))
	output(m, 4, zeros(len(want)), want, 1e-5, scale, f32)
	a.params(m, 5, vectors)
	return D2(2, 2), D1(128)
}

// selfAffineSimd4: 4-bit codes in bytes, all else in float32.
func selfAffineSimd4(m *selfMemory) (groups, threads Size) {
	m.unsupported = !m.rt.info.SIMDMatrix
	const vectors = 33
	a := newAffineSelf(35, 96, 32, 4)
	x := pattern(vectors*a.cols, 72)
	want, scale := a.product(x, vectors)
	input(m, 0, x)
	input(m, 1, a.codes)
	input(m, 2, a.scales)
	input(m, 3, a.biases)
	output(m, 4, zeros(len(want)), want, 1e-5, scale, f32)
	a.params(m, 5, vectors)
	m.binds = append(m.binds, func(l *Launch) { l.ThreadgroupMemory(0, 8192) })
	return D2(2, 2), D1(128)
}

// selfAffinePlane: a tile of 64 rows with its table of vectors in bfloat16 and their sums.
func selfAffinePlane(m *selfMemory) (groups, threads Size) {
	m.unsupported = !m.rt.info.SIMDMatrix
	const vectors, tile, group = 5, 64, 64
	a := newAffineSelf(tile, 128, group, 4)
	x := pattern(8*a.cols, 73)
	clear(x[vectors*a.cols:])
	want, scale := a.product(x, vectors)
	n := a.cols / group
	sums, plane, metadata := make([]float32, 8*n), make([]uint32, tile*a.cols/8), make([]uint32, tile*n)
	for i, v := range x {
		sums[i%a.cols/group*8+i/a.cols] += v
	}
	for i, code := range a.codes {
		row, col := i/a.cols, i%a.cols
		pair := col%32/16*2 + col%4/2
		plane[(col/32*tile+row)*4+col%16/4] |= uint32(code) << (4*pair + col%2*16)
	}
	for i := range a.scales {
		metadata[i%n*tile+i/n] = uint32(half.BFloat16FromFloat32(a.scales[i])) | uint32(half.BFloat16FromFloat32(a.biases[i]))<<16
	}
	input(m, 0, toBF16(x))
	input(m, 1, sums)
	input(m, 2, plane)
	input(m, 3, metadata)
	output(m, 4, zeros(len(want)), want, 1e-5, scale, f32)
	a.params(m, 5, vectors)
	return D2(1, 1), D1(128)
}

// selfEmbedAffine: rows of a table of 6-bit codes, and one that it does not have.
func selfEmbedAffine(m *selfMemory) (groups, threads Size) {
	a := newAffineSelf(5, 64, 32, 6)
	ids := []uint32{4, 5, 0, 2}
	want := make([]float64, len(ids)*a.cols)
	for i := range want {
		if id := int(ids[i/a.cols]); id < a.rows {
			want[i] = 3 * a.at(id, i%a.cols)
		}
	}
	m.constants = []constant{{402, constantUint32, 0}}
	input(m, 0, a.packed(6))
	input(m, 1, a.scales)
	input(m, 2, a.biases)
	input(m, 3, ids)
	output(m, 4, zeros(len(want)), want, 1e-6, maxAbs(want), f32)
	m.uints(5, uint32(a.cols), uint32(a.group), uint32(a.rows), uint32(len(ids)))
	m.float(9, 3)
	return D1(1), D1(64)
}
