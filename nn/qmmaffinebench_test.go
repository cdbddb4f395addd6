package nn

import (
	"fmt"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// affineInstructions are the instructions that the software device executes for a call, and the bytes that it moves.
func affineInstructions(t testing.TB, call func(rt *runtime.Runtime) func(p *runtime.Pass) error) (instructions, moved uint64) {
	t.Helper()
	dev := soft.New(soft.Options{Counts: true})
	defer dev.Release()
	rt, err := runtime.Open(runtime.WithDevice(dev))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if err := rt.Run(call(rt)); err != nil {
		t.Fatal(err)
	}
	for _, k := range soft.Stats(dev).Kernels {
		instructions += k.Instructions
		for slot := range k.Read {
			moved += k.Read[slot] + k.Written[slot]
		}
	}
	return instructions, moved
}

const affineBenchRows, affineBenchCols = 256, 2048

// affineBench is a product of m vectors by the router, and by what one would do without it: GEMVQ4MLX for each vector.
func affineBench(t testing.TB, m int) (router, each func(rt *runtime.Runtime) func(p *runtime.Pass) error) {
	router = func(rt *runtime.Runtime) func(p *runtime.Pass) error {
		r := source(1599)
		w := randomAffine(t, rt, r, planeFormat, affineBenchRows, affineBenchCols)
		x, y := newBuffer(t, rt, half.BFloat16s(normals(r, m*affineBenchCols, 1))), output[float32](t, rt, m*affineBenchRows)
		return func(p *runtime.Pass) error { return QMMAffine(p, y.s, w.bank, x.s, m) }
	}
	each = func(rt *runtime.Runtime) func(p *runtime.Pass) error {
		r := source(1599)
		q, err := randomAffine(t, rt, r, planeFormat, affineBenchRows, affineBenchCols).host.Q4MLX()
		if err != nil {
			t.Fatal(err)
		}
		w := upload(t, rt, q)
		x, y := newBuffer(t, rt, half.BFloat16s(normals(r, m*affineBenchCols, 1))), output[float32](t, rt, m*affineBenchRows)
		return func(p *runtime.Pass) error {
			for i := range m {
				err := GEMVQ4MLX(p, y.s.Slice(i*affineBenchRows, (i+1)*affineBenchRows), w.bank, x.s.Slice(i*affineBenchCols, (i+1)*affineBenchCols))
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	return router, each
}

// Many vectors take less than a third of the instructions that they take one by one, and few of them fewer bytes.
func TestQMMAffineSharesWork(t *testing.T) {
	for _, m := range []int{1, 16, 32} {
		router, each := affineBench(t, m)
		instructions, moved := affineInstructions(t, router)
		one, bytes := affineInstructions(t, each)
		t.Logf("%d vectors: %.2f of the instructions and %.2f of the bytes of GEMVQ4MLX for each", m, float64(instructions)/float64(one), float64(moved)/float64(bytes))
		if m > MaxQMMAffineVectors && 3*instructions >= one || m > 1 && 4*moved >= 3*bytes {
			t.Errorf("%d vectors: %d instructions and %d bytes, one by one %d and %d", m, instructions, moved, one, bytes)
		}
	}
}

// BenchmarkQMMAffine multiplies with a 4-bit matrix; "x-of-gemv" is how many times the instructions it takes that GEMVQ4MLX for each vector takes.
func BenchmarkQMMAffine(b *testing.B) {
	for _, m := range []int{1, 4, 8, 16, 32, 128} {
		router, each := affineBench(b, m)
		for _, c := range []struct {
			name  string
			count int
			call  func(rt *runtime.Runtime) func(p *runtime.Pass) error
		}{{"QMMAffine", 1, router}, {"GEMVQ4MLX", m, each}} {
			b.Run(fmt.Sprintf("m=%d/%s", m, c.name), func(b *testing.B) {
				rt := open(b)
				call := c.call(rt)
				encode(b, rt, c.count, call)
				for b.Loop() {
					if err := rt.Run(call); err != nil {
						b.Fatal(err)
					}
				}
				all, _ := affineInstructions(b, c.call)
				one, _ := affineInstructions(b, each)
				b.ReportMetric(float64(all)/float64(one), "x-of-gemv")
			})
		}
	}
}

// BenchmarkQMMAffineKernels multiplies 32 vectors by each kernel for codes of a byte, and from packed codes; "x-of-scalar" is how many times the
// instructions it takes that the kernel with a thread for each element takes.
func BenchmarkQMMAffineKernels(b *testing.B) {
	const m, n, k = 32, 128, 512
	codes := func(kernel QMMAffineKernel) func(rt *runtime.Runtime) func(p *runtime.Pass) error {
		return func(rt *runtime.Runtime) func(p *runtime.Pass) error {
			r := source(1598)
			w := randomAffineCodes(b, rt, r, n, k, max(kernel.GroupSize(), 32))
			x, y := newBuffer(b, rt, normals(r, m*k, 1)), output[float32](b, rt, m*n)
			return func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, w.bank, x.s, m, kernel) }
		}
	}
	calls := map[string]func(rt *runtime.Runtime) func(p *runtime.Pass) error{
		"packed": func(rt *runtime.Runtime) func(p *runtime.Pass) error {
			r := source(1598)
			w := randomAffine(b, rt, r, quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}, n, k)
			x, y := newBuffer(b, rt, normals(r, m*k, 1)), output[float32](b, rt, m*n)
			return func(p *runtime.Pass) error { return QMMAffinePacked(p, y.s, w.bank, x.s, m) }
		},
		"plane": func(rt *runtime.Runtime) func(p *runtime.Pass) error {
			r := source(1598)
			q := newPlaneProduct(b, rt, uploadAffinePlane(b, rt, randomAffine(b, rt, r, planeFormat, n, k).host), normals(r, m*k, 1), m)
			return func(p *runtime.Pass) error { return QMMAffinePlane(p, q.a) }
		},
	}
	for _, kernel := range QMMAffineKernels() {
		calls[kernel.String()] = codes(kernel)
	}
	scalar, _ := affineInstructions(b, codes(QMMAffineScalar))
	for name, c := range calls {
		b.Run(name, func(b *testing.B) {
			rt := open(b)
			call := c(rt)
			for b.Loop() {
				if err := rt.Run(call); err != nil {
					b.Fatal(err)
				}
			}
			all, _ := affineInstructions(b, c)
			b.ReportMetric(float64(all)/float64(scalar), "x-of-scalar")
		})
	}
}
