package runtime

import (
	"encoding/binary"
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

// bytes binds a block of parameters.
func (m *selfMemory) bytes(slot int, data []byte) {
	m.binds = append(m.binds, func(l *Launch) { l.Bytes(slot, data) })
}

// selfPrecise is causal attention of 33 rows that see the last 20 of up to 40 keys, for heads of 64, float16 values and a sink.
func selfPrecise(m *selfMemory) (groups, threads Size) {
	return selfPreciseRows(m, 64, 33, 40, 32, 16, true)
}

// selfPrecise512 is the same of 9 rows and 70 keys, for heads of 512.
func selfPrecise512(m *selfMemory) (groups, threads Size) {
	return selfPreciseRows(m, 512, 9, 70, 8, 64, false)
}

func selfPreciseRows(m *selfMemory, d, tq, tk, tileQ, tileK int, masks bool) (groups, threads Size) {
	const scale, window, sink = 0.125, 20, 0.5
	offset := tk - tq
	q, k, v := toF16(pattern(tq*d, 60)), toF16(pattern(tk*d, 61)), toF16(pattern(tk*d, 62))
	want := make([]float64, tq*d)
	for t := range tq {
		pos, total := offset+t, math.Exp(sink)
		for j := max(0, pos-window+1); j <= pos; j++ {
			dot := 0.0
			for i := range d {
				dot += float64(q[t*d+i].Float32()) * float64(k[j*d+i].Float32())
			}
			e := math.Exp(scale * dot)
			total += e
			for i := range d {
				want[t*d+i] += e * float64(v[j*d+i].Float32())
			}
		}
		for i := range d {
			want[t*d+i] /= total
		}
	}
	m.unsupported = !m.rt.info.SIMDMatrix
	input(m, 0, q)
	input(m, 1, k)
	input(m, 2, v)
	output(m, 3, zeros(len(want)), want, 1e-5, maxAbs(want), f32)
	le := binary.LittleEndian
	var p, pp []byte
	for _, x := range []uint32{1, 1, uint32(d), uint32(tq), uint32(tk), 1, math.Float32bits(scale), 0, uint32((tq + tileQ - 1) / tileQ),
		uint32((tk + tileK - 1) / tileK), uint32(tq / tileQ), uint32(tk / tileK), uint32(tq % tileQ), uint32(tk % tileK), uint32(offset), 0} {
		p = le.AppendUint32(p, x)
	}
	for _, rows := range []int{tq, tk, tk, tq} {
		for _, s := range []int{rows * d, rows * d, d} {
			p = le.AppendUint64(p, uint64(s))
		}
	}
	for _, x := range []uint32{window, 8, math.Float32bits(1), 1} {
		pp = le.AppendUint32(pp, x)
	}
	pp = append(pp, make([]byte, 24)...)
	m.bytes(4, p)
	m.bytes(9, pp)
	input(m, 8, []float32{sink})
	flag := func(index int, is bool) {
		c := constant{index: index, kind: constantBool}
		if is {
			c.bits = 1
		}
		m.constants = append(m.constants, c)
	}
	flag(200, false)
	flag(201, false)
	if masks {
		flag(300, false)
	}
	flag(301, true)
	if masks {
		flag(303, false)
		m.bytes(5, make([]byte, 24))
		input(m, 6, []half.Float16{0})
		input(m, 7, []uint8{0})
	}
	flag(310, true)
	flag(311, false)
	flag(312, true)
	simdgroups := 8
	if masks {
		simdgroups = 4
	}
	return D3((tq+tileQ-1)/tileQ, 1, 1), D2(32, simdgroups)
}

// selfMaskTiles says what is in four tiles of 32 rows and 16 keys, two of them cut off.
func selfMaskTiles(m *selfMemory) (groups, threads Size) {
	const rows, keys = 33, 20
	mask := make([]half.Float16, rows*keys)
	for i := range mask {
		if row, key := i/keys, i%keys; row < 32 && key < 16 || row == 32 && key == 17 {
			mask[i] = half.Float16FromFloat32(float32(math.Inf(-1)))
		}
	}
	input(m, 0, mask)
	output(m, 1, []uint8{9, 9, 9, 9}, []float64{0, 2, 2, 1}, 0, 1, func(v uint8) float64 { return float64(v) })
	m.uints(2, rows, keys, 32, 16)
	return D2(2, 2), D1(32)
}

// selfEncode rotates a vector that is zero but for its first number: all become -1, the sign of that number being minus, and -1 is
// nearest to level 8 of 32, -1.0488.
func selfEncode(m *selfMemory) (groups, threads Size) {
	x, want := zeros(64), make([]float64, 64)
	x[0] = 8
	for i := range want {
		want[i] = 8
	}
	input(m, 0, x)
	output(m, 1, make([]uint8, 64), want, 0, 1, func(v uint8) float64 { return float64(v) })
	output(m, 2, zeros(1), []float64{8}, 1e-6, 8, f32)
	input(m, 3, []uint32{0})
	m.uints(4, 1, 1, 1, 5)
	m.float(8, 8)
	m.uints(9, 0)
	return D1(1), D1(32)
}
