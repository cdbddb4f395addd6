package runtime

import (
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

// selfCast rounds to f16: ties, a number too large, and many between.
func selfCast(m *selfMemory) (groups, threads Size) {
	x := append(pattern(67, 30), 1+1.0/2048, 1+3.0/2048, 65504)
	want := make([]float64, len(x))
	for i, v := range x {
		want[i] = float64(half.Float16FromFloat32(v).Float32())
	}
	input(m, 0, x)
	output(m, 1, make([]half.Float16, len(x)), want, 0, 1, func(v half.Float16) float64 { return float64(v.Float32()) })
	m.uints(2, uint32(len(x)))
	return D1(3), D1(32)
}

func selfAdd(m *selfMemory) (groups, threads Size) {
	a, b := pattern(70, 31), pattern(70, 32)
	want := make([]float64, len(a))
	for i := range a {
		want[i] = float64(a[i]) + float64(b[i])
	}
	input(m, 0, a)
	input(m, 1, b)
	output(m, 2, zeros(len(a)), want, 0, 1, f32)
	m.uints(3, uint32(len(a)))
	return D1(3), D1(32)
}

func selfAddBias(m *selfMemory) (groups, threads Size) {
	const rows, cols = 3, 23
	x, bias := pattern(rows*cols, 56), pattern(cols, 57)
	want := make([]float64, len(x))
	for i := range x {
		want[i] = float64(x[i] + bias[i%cols])
	}
	input(m, 0, x)
	input(m, 1, bias)
	output(m, 2, zeros(len(x)), want, 0, 1, f32)
	m.uints(3, rows, cols)
	return D1(3), D1(32)
}

func selfSiLU(m *selfMemory) (groups, threads Size) {
	gate, up := append(pattern(67, 33), -200, 30, -30), pattern(70, 34)
	want := make([]float64, len(gate))
	for i := range gate {
		g := float64(gate[i])
		want[i] = g / (1 + math.Exp(-g)) * float64(up[i])
	}
	input(m, 0, gate)
	input(m, 1, up)
	output(m, 2, zeros(len(gate)), want, 1e-6, maxAbs(want), f32)
	m.uints(3, uint32(len(gate)))
	return D1(3), D1(32)
}

// selfEmbedQ4 looks up three rows of a signed table, one of which does not exist.
func selfEmbedQ4(m *selfMemory) (groups, threads Size) {
	const vocab, hidden, group, scale = 5, 32, 16, 2
	ids := []uint32{4, vocab, 1}
	packed := make([]uint32, vocab*hidden/8)
	code := func(i int) int { return (i*7+i/5)%16 - 8 }
	for i := range vocab * hidden {
		packed[i/8] |= uint32(code(i)&15) << (4 * (i & 7))
	}
	scales, shifts := pattern(vocab*hidden/group, 35), pattern(vocab*hidden/group, 36)
	want := make([]float64, len(ids)*hidden)
	for t, id := range ids {
		for c := range hidden {
			if id < vocab {
				at := int(id)*hidden + c
				want[t*hidden+c] = scale * float64(scales[at/group]) * (float64(code(at)) - float64(shifts[at/group]))
			}
		}
	}
	input(m, 0, packed)
	input(m, 1, scales)
	input(m, 2, shifts)
	input(m, 3, ids)
	output(m, 4, zeros(len(want)), want, 1e-6, maxAbs(want), f32)
	m.uints(5, hidden, group, vocab, uint32(len(ids)))
	m.float(9, scale)
	return D1(1), D1(64)
}

// selfStore writes nine numbers at a place that is read on the device, the last one that fits.
func selfStore(m *selfMemory) (groups, threads Size) {
	const n, capacity, offset = 9, 20, 11
	x, before := pattern(n, 37), pattern(capacity, 38)
	want := make([]float64, capacity)
	for i := range want {
		want[i] = float64(before[i])
		if i >= offset {
			want[i] = float64(x[i-offset])
		}
	}
	input(m, 0, x)
	output(m, 1, before, want, 0, 1, f32)
	m.uints(2, n)
	input(m, 3, []uint32{offset})
	m.uints(4, capacity)
	return D1(1), D1(32)
}

// selfSoftmax has a row of masked elements between others.
func selfSoftmax(m *selfMemory) (groups, threads Size) {
	const rows, cols = 3, 70
	x := pattern(rows*cols, 39)
	want := make([]float64, rows*cols)
	for r := range rows {
		row, out := x[r*cols:][:cols], want[r*cols:][:cols]
		if r == 1 {
			for i := range row {
				row[i] = float32(math.Inf(-1))
				out[i] = 1.0 / cols
			}
			continue
		}
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		for i, v := range row {
			out[i] = math.Exp(float64(v)) / sum
		}
	}
	input(m, 0, x)
	output(m, 1, zeros(len(want)), want, 1e-6, 1, f32)
	m.uints(2, cols, rows)
	return D1(rows), D1(64)
}

// selfArgmaxPass chooses from two groups of neighbours: among equals, and next to what is not finite.
func selfArgmaxPass(m *selfMemory) (groups, threads Size) {
	const n, limit = 300, 2
	x := pattern(n, 40)
	x[17], x[90], x[250], x[299] = 3, 3, float32(math.Inf(1)), 5
	input(m, 0, x)
	output(m, 1, []uint32{9, 9}, []float64{17, 299}, 0, 1, u32)
	output(m, 2, zeros(2), []float64{limit * math.Tanh(3.0/limit), limit * math.Tanh(5.0/limit)}, 1e-6, limit, f32)
	m.uints(3, n)
	input(m, 4, []uint32{0})
	m.uints(5, 0)
	input(m, 6, []float32{limit})
	m.uints(7, 1)
	return D1(2), D1(256)
}
