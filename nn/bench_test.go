package nn

import (
	"testing"
	"time"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// goGEMV is the plain Go loop that the device is compared with: the same product in float32.
func goGEMV(y []float32, q quant.Q4MLX, x []float32) {
	words, groups := q.Cols/quant.CodesPerWord, q.Cols/q.GroupSize
	for r := range y {
		sum := float32(0)
		for g := range groups {
			scale, bias := q.ScalesBiases[2*(r*groups+g)].Float32(), q.ScalesBiases[2*(r*groups+g)+1].Float32()
			dot, total := float32(0), float32(0)
			for w := range q.GroupSize / quant.CodesPerWord {
				word := q.Packed[r*words+g*q.GroupSize/quant.CodesPerWord+w]
				at := g*q.GroupSize + w*quant.CodesPerWord
				for j := range quant.CodesPerWord {
					v := x[at+j]
					dot += float32(word>>(4*j)&15) * v
					total += v
				}
			}
			sum += scale*dot + bias*total
		}
		y[r] = sum
	}
}

// BenchmarkGEMVQ4MLX multiplies a 2048 by 2048 matrix on the device and, in the same run, in a plain Go loop; "x-go-loop" is
// the ratio of their times.
func BenchmarkGEMVQ4MLX(b *testing.B) {
	rt, r := open(b), source(91)
	const n = 2048
	m := randomBank(b, rt, r, n, n, 64)
	x := half.BFloat16s(normals(r, n, 1))
	in, y := newBuffer(b, rt, x), output[float32](b, rt, n)
	call := func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, m.bank, in.s) }
	encode(b, rt, 1, call)
	wide, host := half.Float32s(x), make([]float32, n)
	var device, loop time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := rt.Run(call); err != nil {
			b.Fatal(err)
		}
		mid := time.Now()
		goGEMV(host, m.host, wide)
		device += mid.Sub(begin)
		loop += time.Since(mid)
	}
	b.ReportMetric(float64(device.Nanoseconds())/float64(b.N), "device-ns/op")
	b.ReportMetric(float64(loop.Nanoseconds())/float64(b.N), "loop-ns/op")
	b.ReportMetric(float64(device)/float64(loop), "x-go-loop")
}

// encodeMany encodes calls on passes that are thrown away, and reports the time of one call; allocations are those of a
// thousand.
func encodeMany(b *testing.B, rt *runtime.Runtime, call func(p *runtime.Pass) error) {
	b.ReportAllocs()
	const n = 1000
	var total time.Duration
	for b.Loop() {
		b.StopTimer()
		err := rt.Run(func(p *runtime.Pass) error {
			if err := call(p); err != nil { // pipelines, arenas
				return err
			}
			b.StartTimer()
			begin := time.Now()
			for range n {
				if err := call(p); err != nil {
					return err
				}
			}
			total += time.Since(begin)
			b.StopTimer()
			return errThrownAway
		})
		if err != errThrownAway {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(n*b.N), "ns/call")
}
