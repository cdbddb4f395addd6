package soft

import (
	"testing"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// BenchmarkEncode is the cost of encoding a dispatch with three messages: pipeline, buffer, dispatch.
func BenchmarkEncode(b *testing.B) {
	r := newRig(b, Options{Workers: 1})
	x := words(b, r.dev, make([]uint32, 64)...)
	p := r.pipeline("plus_ten")
	one := size(0)
	b.ReportAllocs()
	var e mtl.ComputeCommandEncoder
	var cb mtl.CommandBuffer
	var pool objc.Pool
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 {
			if i > 0 {
				e.EndEncoding()
				cb.Commit()
				cb.WaitUntilCompleted()
				pool.Drain()
			}
			pool = objc.NewPool()
			cb = r.queue.CommandBuffer()
			e = cb.ComputeCommandEncoder()
		}
		e.SetComputePipelineState(p)
		e.SetBuffer(x, 0, 0)
		e.DispatchThreads(one, one)
	}
	e.EndEncoding()
	pool.Drain()
}

// BenchmarkDispatch is a dispatch of one threadgroup from encoding to completion, a hundred at a time.
func BenchmarkDispatch(b *testing.B) {
	r := newRig(b, Options{})
	x := words(b, r.dev, make([]uint32, 64)...)
	b.ReportAllocs()
	for b.Loop() {
		func() {
			defer objc.NewPool().Drain()
			cb := r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
				for range 100 {
					r.run(e, "plus_ten", 64, x)
				}
			})
			cb.Commit()
			cb.WaitUntilCompleted()
		}()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/dispatch")
}

// BenchmarkReplay is the execution of a hundred recorded commands, with a barrier at each.
func BenchmarkReplay(b *testing.B) {
	r := newRig(b, Options{})
	x := words(b, r.dev, make([]uint32, 64)...)
	icb := r.newICB(100, nil)
	for i := range uint(100) {
		r.record(icb, i, "plus_ten", 64, x).SetBarrier()
	}
	b.ReportAllocs()
	for b.Loop() {
		func() {
			defer objc.NewPool().Drain()
			cb := r.execute(icb, 0, 100, x)
			cb.Commit()
			cb.WaitUntilCompleted()
		}()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/command")
}

// BenchmarkTraced compares dispatches that write parts of one buffer, traced and not.
func BenchmarkTraced(b *testing.B) {
	for _, c := range []struct {
		name string
		opts Options
	}{{"watched", Options{}}, {"not", Options{NoHazards: true}}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, c.opts)
			x := words(b, r.dev, make([]uint32, 2<<16)...)
			for b.Loop() {
				func() {
					defer objc.NewPool().Drain()
					cb := r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
						e.SetComputePipelineState(r.pipeline("twice_plus_one"))
						for i := range uint(2) {
							e.SetBuffer(x, i<<18, 0)
							e.DispatchThreadgroups(size(1<<16/256), size(256))
						}
					})
					cb.Commit()
					cb.WaitUntilCompleted()
				}()
			}
		})
	}
}
