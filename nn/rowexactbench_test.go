package nn

import (
	"fmt"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
)

// rowExactInstructions are the instructions that the software device executes for one product of m vectors.
func rowExactInstructions(t testing.TB, wt WeightType, n, k, m int) uint64 {
	t.Helper()
	dev := soft.New(soft.Options{Counts: true})
	defer dev.Release()
	rt, err := runtime.Open(runtime.WithDevice(dev))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	w := randomRowExact(t, rt, source(660), wt, n, k)
	x, y := newBuffer(t, rt, normals(source(661), m*k, 1)), output[float32](t, rt, m*n)
	how := RowExactAuto(wt, RowExactContiguous(m, n, k)) // not that of the device, whose limit takes all pipelines to know
	encode(t, rt, 1, func(p *runtime.Pass) error { return w.scheduled(p, y.s, x.s, RowExactContiguous(m, n, k), how) })
	kernel := rowExactKernel(wt, how.Rows, m)
	if d := soft.Stats(dev).Kernels[kernel].Dispatches; d != 1 {
		t.Fatalf("%d dispatches of %s", d, kernel)
	}
	return soft.Stats(dev).Kernels[kernel].Instructions
}

// Four vectors cost less than twice the instructions of one where weights have to be decoded: that is done once for all.
func TestRowExactSharesDecoding(t *testing.T) {
	for _, wt := range WeightTypes() {
		one, four := rowExactInstructions(t, wt, 64, 4096, 1), rowExactInstructions(t, wt, 64, 4096, 4)
		t.Logf("%v: four vectors take %.2f times the instructions of one", wt, float64(four)/float64(one))
		if wt.Block() != 0 && four >= 2*one {
			t.Errorf("%v: %d instructions for four vectors, %d for one", wt, four, one)
		}
	}
}

// BenchmarkRowExact multiplies with four vectors at once and with four one after the other; "x-of-one" is how many times the
// instructions of a single vector all four take, which is 4 one after the other.
func BenchmarkRowExact(b *testing.B) {
	const n, k = 512, 4096
	for _, wt := range WeightTypes() {
		for _, m := range []int{1, 4} {
			b.Run(fmt.Sprintf("%v/m=%d", wt, m), func(b *testing.B) {
				rt := open(b)
				w := randomRowExact(b, rt, source(662), wt, n, k)
				x, y := newBuffer(b, rt, normals(source(663), 4*k, 1)), output[float32](b, rt, 4*n)
				call := func(p *runtime.Pass) error {
					for j := 0; j < 4; j += m {
						if err := w.call(p, y.s.Slice(j*n, (j+m)*n), x.s.Slice(j*k, (j+m)*k), RowExactContiguous(m, n, k)); err != nil {
							return err
						}
					}
					return nil
				}
				encode(b, rt, 4/m, call)
				for b.Loop() {
					if err := rt.Run(call); err != nil {
						b.Fatal(err)
					}
				}
				all := rowExactInstructions(b, wt, n, k, m) * uint64(4/m)
				b.ReportMetric(float64(all)/float64(rowExactInstructions(b, wt, n, k, 1)), "x-of-one")
			})
		}
	}
}
