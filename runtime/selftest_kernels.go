package runtime

import (
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

// The known answers: small shapes that still have ragged edges, and the formulas in float64.

const selfEps = 1e-6

// normalised is x / sqrt(mean(x^2) + eps) * weight, by rows.
func normalised(x, weight []float32) []float64 {
	y := make([]float64, len(x))
	for row := 0; row < len(x); row += len(weight) {
		squares := 0.0
		for i := range weight {
			squares += float64(x[row+i]) * float64(x[row+i])
		}
		inverse := 1 / math.Sqrt(squares/float64(len(weight))+selfEps)
		for i, w := range weight {
			y[row+i] = float64(x[row+i]) * inverse * float64(w)
		}
	}
	return y
}

func selfNorm(m *selfMemory) (groups, threads Size) {
	const rows, dim = 3, 70
	x, w := pattern(rows*dim, 1), pattern(dim, 2)
	want := normalised(x, w)
	input(m, 0, x)
	input(m, 1, w)
	output(m, 2, toBF16(zeros(rows*dim)), want, 1.0/256, maxAbs(want), bf16)
	m.uints(3, rows, dim)
	m.float(5, selfEps)
	return D1(rows), D1(64)
}

func selfNormAdd(m *selfMemory) (groups, threads Size) {
	const rows, dim, scale = 2, 70, 0.5
	x, w, resid := pattern(rows*dim, 3), pattern(dim, 4), pattern(rows*dim, 5)
	want := normalised(x, w)
	for i := range want {
		want[i] = scale * (float64(resid[i]) + want[i])
	}
	input(m, 0, x)
	input(m, 1, w)
	output(m, 2, resid, want, 1e-5, maxAbs(want), f32)
	m.uints(3, rows, dim)
	m.float(5, selfEps)
	m.float(6, scale)
	return D1(rows), D1(32)
}

// q4 is a bank of 4-bit affine weights as MLX has it: words of eight codes, and for each group a scale and a bias.
type q4 struct {
	rows, cols, group int
	packed            []uint32
	sb                []half.BFloat16
}

func newQ4(rows, cols, group, seed int) *q4 {
	b := &q4{rows: rows, cols: cols, group: group, packed: make([]uint32, rows*cols/8)}
	for i := range rows * cols {
		b.packed[i/8] |= uint32((i*5+i/7+seed)&15) << (4 * (i & 7))
	}
	for i := range rows * cols / group {
		b.sb = append(b.sb, half.BFloat16FromFloat32(float32(1+(i+seed)%5)/64), half.BFloat16FromFloat32(float32((i*3+seed)%7-4)/32))
	}
	return b
}

// row is one row of weights.
func (b *q4) row(r int) []float64 {
	w := make([]float64, b.cols)
	for c := range w {
		i := r*b.cols + c
		code := float64(b.packed[i/8] >> (4 * (i & 7)) & 15)
		w[c] = bf16(b.sb[i/b.group*2])*code + bf16(b.sb[i/b.group*2+1])
	}
	return w
}

// product is the bank times x, and what its rounding is measured against.
func (b *q4) product(x []half.BFloat16) (y []float64, scale float64) {
	for r := range b.rows {
		sum, size := 0.0, 0.0
		for c, w := range b.row(r) {
			sum += w * bf16(x[c])
			size += math.Abs(w * bf16(x[c]))
		}
		y = append(y, sum)
		scale = max(scale, size)
	}
	return y, scale
}

func (b *q4) bind(m *selfMemory, packed, sb int) {
	input(m, packed, b.packed)
	input(m, sb, b.sb)
}

func selfEmbed(m *selfMemory) (groups, threads Size) {
	const vocab, hidden, group, scale = 5, 96, 32, 3.0
	bank := newQ4(vocab, hidden, group, 6)
	ids := []uint32{3, vocab, 0} // the second is outside the vocabulary
	want := make([]float64, len(ids)*hidden)
	for t, id := range ids {
		if id < vocab {
			for c, w := range bank.row(int(id)) {
				want[t*hidden+c] = scale * w
			}
		}
	}
	bank.bind(m, 0, 1)
	input(m, 3, ids)
	output(m, 4, zeros(len(want)), want, 1e-6, maxAbs(want), f32)
	m.uints(5, hidden, group, vocab, uint32(len(ids)))
	m.float(9, scale)
	return D1((len(ids)*hidden/8 + 63) / 64), D1(64)
}

func selfGEMV(m *selfMemory) (groups, threads Size) {
	const rows, cols, group = 11, 544, 32
	bank, x := newQ4(rows, cols, group, 7), toBF16(pattern(cols, 8))
	want, scale := bank.product(x)
	bank.bind(m, 0, 1)
	input(m, 3, x)
	output(m, 4, zeros(rows), want, 1e-5, scale, f32)
	m.uints(5, rows, cols, group)
	return D1((rows + 7) / 8), D1(64)
}

func selfQKV(m *selfMemory) (groups, threads Size) {
	const rowsQ, rowsKV, cols, group = 17, 5, 128, 64
	tilesQ, tilesKV := (rowsQ+7)/8, (rowsKV+7)/8
	x := toBF16(pattern(cols, 9))
	input(m, 6, x)
	for i, rows := range []int{rowsQ, rowsKV, rowsKV} {
		bank := newQ4(rows, cols, group, 10+i)
		want, scale := bank.product(x)
		bank.bind(m, 2*i, 2*i+1)
		output(m, 7+i, zeros(rows), want, 1e-5, scale, f32)
	}
	m.uints(10, rowsQ, rowsKV, cols, group, uint32(tilesQ), uint32(tilesKV))
	return D1(tilesQ + 2*tilesKV), D1(64)
}

func selfGateUp(m *selfMemory) (groups, threads Size) {
	const rows, cols, group = 9, 96, 32
	gate, up, x := newQ4(rows, cols, group, 13), newQ4(rows, cols, group, 14), toBF16(pattern(cols, 15))
	g, _ := gate.product(x)
	u, _ := up.product(x)
	want := make([]float64, rows)
	for i := range want {
		want[i] = g[i] / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g[i]+0.044715*g[i]*g[i]*g[i]))) * u[i]
	}
	gate.bind(m, 0, 1)
	up.bind(m, 3, 4)
	input(m, 6, x)
	output(m, 7, toBF16(zeros(rows)), want, 1.0/256, maxAbs(want), bf16)
	m.uints(8, rows, cols, group, 1)
	return D1((rows + 7) / 8), D1(64)
}

func selfRope(m *selfMemory) (groups, threads Size) {
	const positions, hq, hkv, d, rotary, first, offset, capacity = 2, 3, 1, 10, 8, 7, 20, 64
	invFreq := []float32{1, 0.25, 0.0625, 0.015625}
	rotate := func(y []float64, heads int) {
		for row := range len(y) / d {
			for p := range rotary / 2 {
				sin, cos := math.Sincos(float64(first+row/heads) * float64(invFreq[p]))
				a, b := y[row*d+p], y[row*d+p+d/2]
				y[row*d+p], y[row*d+p+d/2] = a*cos-b*sin, b*cos+a*sin
			}
		}
	}
	q, k, v := pattern(positions*hq*d, 16), pattern(positions*hkv*d, 17), pattern(positions*hkv*d, 18)
	wq, wk, wv := pattern(d, 19), pattern(d, 20), pattern(d, 21)
	wantQ, wantK, wantV := normalised(q, wq), normalised(k, wk), normalised(v, wv)
	rotate(wantQ, hq)
	rotate(wantK, hkv)
	cache := func(y []float64) []float64 {
		c := make([]float64, capacity)
		copy(c[offset:], y)
		return c
	}
	output(m, 0, q, wantQ, 1e-5, maxAbs(wantQ), f32)
	output(m, 1, k, wantK, 1e-5, maxAbs(wantK), f32)
	output(m, 2, v, wantV, 1e-5, maxAbs(wantV), f32)
	input(m, 3, wq)
	input(m, 4, wk)
	input(m, 5, wv)
	m.uints(6, positions, hq, hkv, d, rotary)
	input(m, 11, []uint32{first})
	m.float(13, selfEps)
	output(m, 14, zeros(capacity), cache(wantK), 1e-5, maxAbs(wantK), f32)
	output(m, 15, zeros(capacity), cache(wantV), 1e-5, maxAbs(wantV), f32)
	input(m, 16, []uint32{offset})
	m.uints(17, capacity)
	input(m, 18, invFreq)
	m.uints(19, 1)
	return D1((positions*(hq+2*hkv) + 7) / 8), D1(256)
}

// selfRopeOptions has queries without a norm but with biases, keys with a norm and none, and neighbours that turn.
func selfRopeOptions(m *selfMemory) (groups, threads Size) {
	const positions, hq, hkv, d, rotary, first, factor = 2, 3, 1, 10, 6, 7, 1.25
	const neighbours, kWeight, qBias = 2, 2, 4
	invFreq := []float32{1, 0.25, 0.0625}
	rotate := func(y []float64, heads int) {
		for row := range len(y) / d {
			for p := range rotary / 2 {
				sin, cos := math.Sincos(float64(first+row/heads) * float64(invFreq[p]))
				a, b := y[row*d+2*p], y[row*d+2*p+1]
				y[row*d+2*p], y[row*d+2*p+1] = factor*(a*cos-b*sin), factor*(b*cos+a*sin)
			}
		}
	}
	q, k, v, wk, bias := pattern(positions*hq*d, 51), pattern(positions*hkv*d, 52), pattern(positions*hkv*d, 53), pattern(d, 54), pattern(hq*d, 55)
	wantQ, wantK, wantV := make([]float64, len(q)), normalised(k, wk), make([]float64, len(v))
	for i := range q {
		wantQ[i] = float64(q[i]) + float64(bias[i%len(bias)])
	}
	for i := range v {
		wantV[i] = float64(v[i])
	}
	rotate(wantQ, hq)
	rotate(wantK, hkv)
	output(m, 0, q, wantQ, 1e-5, maxAbs(wantQ), f32)
	output(m, 1, k, wantK, 1e-5, maxAbs(wantK), f32)
	output(m, 2, v, wantV, 0, 1, f32)
	input(m, 3, wk)
	input(m, 4, wk)
	input(m, 5, wk)
	m.uints(6, positions, hq, hkv, d, rotary, first)
	m.float(13, selfEps)
	input(m, 18, invFreq)
	m.uints(19, 0, neighbours)
	m.float(21, factor)
	input(m, 22, bias)
	input(m, 23, bias)
	input(m, 24, bias)
	m.uints(25, kWeight+qBias)
	return D1((positions*(hq+2*hkv) + 7) / 8), D1(256)
}

func selfAttention(m *selfMemory) (groups, threads Size) {
	const tq, h, hkv, d, capacity, live, first, window, scale = 3, 4, 2, 128, 9, 8, 5, 4, 0.125
	q, k, v := pattern(tq*h*d, 22), pattern(capacity*hkv*d, 23), pattern(capacity*hkv*d, 24)
	want := make([]float64, tq*h*d)
	for t := range tq {
		for head := range h {
			out := want[(t*h+head)*d:][:d]
			total := 0.0
			for s := max(0, first+t-window+1); s <= min(first+t, live-1); s++ {
				at := (s*hkv + head/(h/hkv)) * d
				dot := 0.0
				for i := range d {
					dot += float64(q[(t*h+head)*d+i]) * float64(k[at+i])
				}
				e := math.Exp(scale * dot)
				total += e
				for i := range out {
					out[i] += e * float64(v[at+i])
				}
			}
			for i := range out {
				out[i] /= total
			}
		}
	}
	input(m, 0, q)
	input(m, 1, k)
	input(m, 2, v)
	output(m, 3, zeros(len(want)), want, 2e-5, maxAbs(want), f32)
	m.uints(4, 1, tq)
	input(m, 6, []uint32{live})
	m.uints(7, h, hkv, window)
	m.float(10, scale)
	input(m, 11, []uint32{first})
	input(m, 12, []uint32{0})
	m.uints(13, 0, capacity)
	return D2(1, h), D1(32)
}

func selfArgmax(m *selfMemory) (groups, threads Size) {
	const n, limit = 150, 30
	logits := pattern(n, 25)
	logits[40] = float32(math.NaN())
	logits[41] = float32(math.Inf(1)) // not finite: no token
	logits[97], logits[133] = 21, 21  // the lower one of equals
	input(m, 0, logits)
	output(m, 1, []uint32{0}, []float64{97}, 0, 1, u32)
	input(m, 2, []float32{limit})
	m.uints(3, n)
	output(m, 4, []float32{0}, []float64{limit * math.Tanh(21.0/limit)}, 1e-5, limit, f32)
	return D1(1), D1(96)
}

func selfAdvance(m *selfMemory) (groups, threads Size) {
	const stride = 12
	// At position 2 of a prompt of 3: the next token is the argmax, and it is appended.
	output(m, 0, []uint32{9, 2, 3, 2 * stride, 1, 0, 3, 0}, []float64{42, 3, 4, 3 * stride, 2, 0, 3, 0}, 0, 1, u32)
	input(m, 1, []uint32{7, 8, 9, 0})
	input(m, 2, []uint32{42})
	output(m, 3, []uint32{5, 0, 0}, []float64{5, 42, 0}, 0, 1, u32)
	m.uints(4, 4, 3, 16, stride)
	input(m, 8, []uint32{1})
	m.uints(9, 1)
	return D1(1), D1(1)
}
