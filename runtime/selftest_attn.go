package runtime

import "math"

// selfPartial is attention of one query over two chunks of 64 keys, the second with one: maximum, sum and products of each.
func selfPartial(m *selfMemory) (groups, threads Size) {
	const h, hkv, d, capacity, live, chunk, window, scale = 2, 1, 128, 70, 65, 64, 40, 0.125
	q, k, v := pattern(h*d, 26), pattern(capacity*hkv*d, 27), pattern(capacity*hkv*d, 28)
	want := make([]float64, h*2*(d+2))
	for head := range h {
		for c := range 2 {
			out := want[(head*2+c)*(d+2):][:d+2]
			out[0] = math.Inf(-1)
			var scores [chunk]float64
			from, to := max(c*chunk, live-window), min((c+1)*chunk, live)
			for s := from; s < to; s++ {
				dot := 0.0
				for i := range d {
					dot += float64(q[head*d+i]) * float64(k[s*d+i])
				}
				scores[s-c*chunk] = scale * dot
				out[0] = max(out[0], scale*dot)
			}
			for s := from; s < to; s++ {
				e := math.Exp(scores[s-c*chunk] - out[0])
				out[1] += e
				for i := range d {
					out[2+i] += e * float64(v[s*d+i])
				}
			}
		}
	}
	input(m, 0, q)
	input(m, 1, k)
	input(m, 2, v)
	output(m, 3, zeros(len(want)), want, 2e-5, maxAbs(want), f32)
	m.uints(4, 1)
	input(m, 6, []uint32{live})
	m.uints(7, h, hkv, window)
	m.float(10, scale)
	input(m, 11, []uint32{live - 1})
	input(m, 12, []uint32{0})
	m.uints(13, capacity)
	m.float(15, 0)
	return D2(2, 1), D1(h * 32)
}

// selfReduce merges three chunks of 64 keys, of which the second one saw none, for a head with a sink.
func selfReduce(m *selfMemory) (groups, threads Size) {
	const d, capacity, live, sink = 128, 256, 190, 0.5
	partials := pattern(4*(d+2), 29)
	want := make([]float64, d)
	total := math.Exp(sink - 2)
	for c, p := range [...]struct{ m, l float32 }{{2, 1.5}, {-math.MaxFloat32, 0}, {-1, 3}} {
		at := partials[c*(d+2):]
		at[0], at[1] = p.m, p.l
		if p.l != 0 {
			e := math.Exp(float64(p.m) - 2)
			total += e * float64(p.l)
			for i := range want {
				want[i] += e * float64(at[2+i])
			}
		}
	}
	for i := range want {
		want[i] /= total
	}
	input(m, 0, partials)
	output(m, 1, zeros(d), want, 1e-5, maxAbs(want), f32)
	m.uints(2, 1)
	input(m, 3, []uint32{live})
	m.uints(4, 1, 0, capacity)
	input(m, 7, []float32{sink})
	m.uints(8, 1)
	return D2(1, 1), D1(128)
}

// selfTiled is attention of two tiles of query rows, the second with one row, over two tiles of keys and a rest.
func selfTiled(m *selfMemory) (groups, threads Size) {
	const tq, h, hkv, d, capacity, live, first, window, scale = 9, 2, 1, 128, 20, 18, 8, 7, 0.125
	q, k, v := pattern(tq*h*d, 30), pattern(capacity*hkv*d, 31), pattern(capacity*hkv*d, 32)
	want := make([]float64, tq*h*d)
	for row := range tq * h {
		out, total, at := want[row*d:][:d], 0.0, first+row/h
		for s := max(0, at-window+1); s <= min(at, live-1); s++ {
			dot := 0.0
			for i := range d {
				dot += float64(q[row*d+i]) * float64(k[s*d+i])
			}
			e := math.Exp(scale * dot)
			total += e
			for i := range out {
				out[i] += e * float64(v[s*d+i])
			}
		}
		for i := range out {
			out[i] /= total
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
	m.uints(13, capacity)
	return D2(2, h), D1(32)
}
