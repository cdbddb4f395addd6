package nn

import (
	"testing"
	"time"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
)

// promptWork is what the software device does for m rows of a prompt.
type promptWork struct {
	instructions, weights uint64 // weights: bytes that were read of them
}

// promptCall multiplies m rows with weights, so many at a time: all by GEMMWeights if that is 0, else by the row-exact products.
func promptCall(w rowExactWeights, y, x vec32, m, atOnce int) func(p *runtime.Pass) error {
	n, k := w.o.Rows, w.o.Cols
	if atOnce == 0 {
		calls := gemmWeightsCallsFor[float32, float32](w.bank)
		return func(p *runtime.Pass) error { return calls.plain(p, y, x, m) }
	}
	return func(p *runtime.Pass) error {
		for i := 0; i < m; i += atOnce {
			rows := min(atOnce, m-i)
			s := RowExactContiguous(rows, n, k)
			how := RowExactAuto(w.t, s) // not that of the device, whose limit takes all pipelines to know
			if err := w.scheduled(p, y.Slice(i*n, (i+rows)*n), x.Slice(i*k, (i+rows)*k), s, how); err != nil {
				return err
			}
		}
		return nil
	}
}

// workOfPrompt counts what a way to multiply m rows does.
func workOfPrompt(t testing.TB, wt WeightType, n, k, m, atOnce int) (work promptWork) {
	t.Helper()
	dev := soft.New(soft.Options{Counts: true})
	defer dev.Release()
	rt, err := runtime.Open(runtime.WithDevice(dev))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	w := randomRowExact(t, rt, source(1100), wt, n, k)
	x, y := newBuffer(t, rt, normals(source(1101), m*k, 1)), output[float32](t, rt, m*n)
	if err := rt.Run(promptCall(w, y.s, x.s, m, atOnce)); err != nil {
		t.Fatal(err)
	}
	slot := 0
	if atOnce == 0 {
		slot = 1
	}
	for _, s := range soft.Stats(dev).Kernels {
		work.instructions += s.Instructions
		work.weights += s.Read[slot]
	}
	return work
}

// A prompt's product reads and decodes weights once for a tile of rows: in two tiles of 64 it reads twice what it does in one,
// and far less than the row-exact products do for 16 rows or for one at a time, in fewer instructions.
func TestGEMMWeightsSharesDecoding(t *testing.T) {
	numbersOnly(t)
	const n, k, m = 64, 512, 64
	for _, wt := range WeightTypes() {
		tile, two := workOfPrompt(t, wt, n, k, m, 0), workOfPrompt(t, wt, n, k, 2*m, 0)
		sixteen, one := workOfPrompt(t, wt, n, k, m, 16), workOfPrompt(t, wt, n, k, m, 1)
		t.Logf("%v, %d rows in one product: 16 rows at a time take %.1f times the instructions and %.1f times the bytes of weights, one at a time %.1f and %.1f",
			wt, m, float64(sixteen.instructions)/float64(tile.instructions), float64(sixteen.weights)/float64(tile.weights),
			float64(one.instructions)/float64(tile.instructions), float64(one.weights)/float64(tile.weights))
		if two.weights != 2*tile.weights {
			t.Errorf("%v: %d bytes of weights are read for two tiles, %d for one", wt, two.weights, tile.weights)
		}
		// A byte with bits of several runs of weights is read for each: 32 bytes of a block of Q5_K for all eight.
		if most := uint64(4 * n * wt.RowBytes(k)); tile.weights > most {
			t.Errorf("%v: %d bytes of weights are read for a tile, more than %d", wt, tile.weights, most)
		}
		if sixteen.weights < 3*tile.weights || one.weights < 24*tile.weights || sixteen.instructions < 2*tile.instructions {
			t.Errorf("%v: one tile %+v, 16 rows at a time %+v, one row %+v", wt, tile, sixteen, one)
		}
	}
}

// BenchmarkGEMMWeights multiplies 64 rows in one product; "x-of-16" and "x-of-1" are the times that the row-exact products take
// for 16 rows and for one row at a time, over its own, in the same run.
func BenchmarkGEMMWeights(b *testing.B) {
	const n, k, m = 256, 1024, 64
	for _, wt := range WeightTypes() {
		b.Run(wt.String(), func(b *testing.B) {
			rt := open(b)
			w := randomRowExact(b, rt, source(1102), wt, n, k)
			x, y := newBuffer(b, rt, normals(source(1103), m*k, 1)), output[float32](b, rt, m*n)
			var spent [3]time.Duration
			for i, atOnce := range []int{0, 16, 1} {
				if err := rt.Run(promptCall(w, y.s, x.s, m, atOnce)); err != nil { // makes the pipelines
					b.Fatal(i, err)
				}
			}
			for b.Loop() {
				for i, atOnce := range []int{0, 16, 1} {
					begin := time.Now()
					if err := rt.Run(promptCall(w, y.s, x.s, m, atOnce)); err != nil {
						b.Fatal(err)
					}
					spent[i] += time.Since(begin)
				}
			}
			b.ReportMetric(float64(spent[0].Nanoseconds())/float64(b.N), "tile-ns/op")
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "x-of-16")
			b.ReportMetric(float64(spent[2])/float64(spent[0]), "x-of-1")
		})
	}
}

// BenchmarkEncodeGEMMWeights is the host's cost of one call, without the device's work.
func BenchmarkEncodeGEMMWeights(b *testing.B) {
	rt := open(b)
	calls, _ := gemmWeightsDenseCalls(b, rt)
	for _, c := range calls {
		b.Run(c.name, func(b *testing.B) { encodeMany(b, rt, c.call) })
	}
}
