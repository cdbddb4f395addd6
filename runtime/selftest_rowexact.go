package runtime

import (
	"encoding/binary"
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

// Known answers of the row-exact products, and of a lookup in blocks.

// rowExact binds rows of weights and as many vectors as the kernel takes, whose products with two simdgroups to a threadgroup are
// the answer. data are the rows, of rowBytes each, weights what they say.
func (m *selfMemory) rowExact(data []uint8, weights []float64, rows, perGroup, vectors, seed int) (groups, threads Size) {
	cols := len(weights) / rows
	x := pattern(vectors*cols, seed)
	want, scale := make([]float64, vectors*rows), 0.0
	for j := range vectors {
		for r := range rows {
			size := 0.0
			for c, w := range weights[r*cols : (r+1)*cols] {
				want[j*rows+r] += w * float64(x[j*cols+c])
				size += math.Abs(w * float64(x[j*cols+c]))
			}
			scale = max(scale, size)
		}
	}
	groups = D1((rows + perGroup - 1) / perGroup)
	var params []byte
	for _, v := range []uint32{uint32(cols), uint32(rows), uint32(cols), 0, uint32(rows), 0, uint32(groups.X), 0} {
		params = binary.NativeEndian.AppendUint32(params, v)
	}
	params = binary.NativeEndian.AppendUint64(params, uint64(len(data)/rows))
	params = binary.NativeEndian.AppendUint64(params, uint64(len(data)))
	input(m, 0, data)
	input(m, 1, x)
	output(m, 2, zeros(len(want)), want, 1e-5, scale, f32)
	m.binds = append(m.binds, func(l *Launch) {
		l.Bytes(3, params)
		l.ThreadgroupMemory(0, perGroup*vectors*32*4)
	})
	return groups, D1(64)
}

func selfRowExactQ8(m *selfMemory) (groups, threads Size) {
	const rows, cols = 5, 1056
	data, weights := selfBlocksQ8(rows * cols / 32)
	return m.rowExact(data, weights, rows, 2, 3, 60)
}

// selfBlocksQ8 are n blocks of a float16 scale and 32 signed codes.
func selfBlocksQ8(n int) (data []uint8, weights []float64) {
	for block := range n {
		d := half.Float16FromFloat32(float32(1+block%7) / 256)
		data = binary.LittleEndian.AppendUint16(data, uint16(d))
		for i := range 32 {
			code := int8(block*31 + i*13)
			data = append(data, uint8(code))
			weights = append(weights, float64(d.Float32())*float64(code))
		}
	}
	return data, weights
}

func selfRowExactQ4K(m *selfMemory) (groups, threads Size) {
	const rows, cols = 3, 512
	data, weights := selfBlocksQ4K(rows * cols / 256)
	return m.rowExact(data, weights, rows, 2, 2, 61)
}

// selfEmbedBlocks looks up three rows of a table in blocks, one of which does not exist.
func selfEmbedBlocks(m *selfMemory) (groups, threads Size) {
	const vocab, cols, scale = 3, 512, 2
	ids := []uint32{2, vocab, 0}
	data, weights := selfBlocksQ4K(vocab * cols / 256)
	want := make([]float64, len(ids)*cols)
	for t, id := range ids {
		for c := range cols {
			if id < vocab {
				want[t*cols+c] = scale * weights[int(id)*cols+c]
			}
		}
	}
	input(m, 0, data)
	input(m, 1, ids)
	output(m, 2, zeros(len(want)), want, 1e-6, maxAbs(want), f32)
	m.uints(3, cols, vocab, uint32(len(ids)))
	m.float(6, scale)
	return D2(2, len(ids)), D1(64)
}

// selfBlocksQ4K are n blocks of two float16 scales, eight scales and offsets of 6 bits, and 256 codes of 4 bits.
func selfBlocksQ4K(n int) (data []uint8, weights []float64) {
	for block := range n {
		d, dmin := half.Float16FromFloat32(float32(1+block)/512), half.Float16FromFloat32(float32(3-block)/64)
		data = binary.LittleEndian.AppendUint16(data, uint16(d))
		data = binary.LittleEndian.AppendUint16(data, uint16(dmin))
		var scale, offset [8]int
		for j := range scale {
			scale[j], offset[j] = (block*17+j*9+5)%64, (block*5+j*23)%64
		}
		for j := range 4 {
			data = append(data, uint8(scale[j]|scale[j+4]>>4<<6))
		}
		for j := range 4 {
			data = append(data, uint8(offset[j]|offset[j+4]>>4<<6))
		}
		for j := 4; j < 8; j++ {
			data = append(data, uint8(scale[j]&15|offset[j]&15<<4))
		}
		code := func(i int) int { return (i*7 + i/32 + block) % 16 }
		for i := range 128 {
			first := i/32*64 + i%32
			data = append(data, uint8(code(first)|code(first+32)<<4))
		}
		for i := range 256 {
			weights = append(weights, float64(d.Float32())*float64(scale[i/32])*float64(code(i))-float64(dmin.Float32())*float64(offset[i/32]))
		}
	}
	return data, weights
}
