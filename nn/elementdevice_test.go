package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// elementChain is a pass in which the kernels on elements and rows feed each other, over memory of its own.
func elementChain(t testing.TB, rt *runtime.Runtime) (step func(p *runtime.Pass) error, results []target) {
	t.Helper()
	const rows, hidden, slots = 3, 320, 4
	const n = rows * hidden
	r := source(420)
	table, ids, weight := randomSigned(t, rt, r, 9, hidden, 40), newBuffer(t, rt, []uint32{8, 0, 77}), newBuffer(t, rt, normals(r, hidden, 1))
	x, y, gate, up := output[float32](t, rt, n), output[float32](t, rt, n), output[float32](t, rt, n), newBuffer(t, rt, normals(r, n, 1))
	h, b, mid := output[half.Float16](t, rt, n), output[half.BFloat16](t, rt, n), output[half.BFloat16](t, rt, n)
	cacheK, cacheV := newBuffer(t, rt, make([]half.BFloat16, slots*hidden)), newBuffer(t, rt, make([]half.BFloat16, slots*hidden))
	dense, offset, filled, begin := newBuffer(t, rt, make([]half.BFloat16, slots*hidden)), newBuffer(t, rt, []uint32{hidden}), newBuffer(t, rt, []uint32{3}), newBuffer(t, rt, []uint32{1})
	sum, top, limit, token, value := output[float32](t, rt, rows), output[float32](t, rt, rows), newBuffer(t, rt, []float32{2}), output[uint32](t, rt, 2), output[float32](t, rt, 1)
	scratch, scratchValue := output[uint32](t, rt, ArgmaxScratch(n)), output[float32](t, rt, ArgmaxScratch(n))
	calls := []func(p *runtime.Pass) error{
		func(p *runtime.Pass) error { return EmbedLookupQ4(p, x.s, table.bank, ids.s, rows, 2) },
		func(p *runtime.Pass) error { return RMSNormF32(p, y.s, x.s, weight.s, rows, hidden, 1e-6) },
		func(p *runtime.Pass) error { return Cast(p, h.s, y.s, n) },
		func(p *runtime.Pass) error { return AddInPlace(p, h.s, h.s, n) },
		func(p *runtime.Pass) error { return Cast(p, b.s, h.s, n) },
		func(p *runtime.Pass) error { return Cast(p, gate.s, b.s, n) },
		func(p *runtime.Pass) error { return MLPGELUTanh(p, mid.s, gate.s, up.s, n) },
		func(p *runtime.Pass) error { return MLPSiLU(p, gate.s, gate.s, up.s, n) },
		func(p *runtime.Pass) error { return Add(p, x.s, x.s, gate.s, n) },
		func(p *runtime.Pass) error { return ScaleInPlaceF32(p, x.s, n, 1.5) },
		func(p *runtime.Pass) error {
			return KVStoreTimestepPair(p, KVPair[half.BFloat16]{CacheK: cacheK.s, CacheV: cacheV.s, K: x.s, V: gate.s, Offset: offset.s, N: hidden, Capacity: slots * hidden})
		},
		func(p *runtime.Pass) error {
			return KVStoreTimestep(p, cacheK.s, y.s, offset.s, 2*hidden, slots*hidden)
		},
		func(p *runtime.Pass) error {
			return KVRingDensify(p, KVRing[half.BFloat16]{Dst: dense.s, Src: cacheK.s, Filled: filled.s, Start: begin.s, Slot: hidden, Capacity: slots})
		},
		func(p *runtime.Pass) error {
			return Argmax(p, ArgmaxArgs{Token: token.s.Slice(0, 1), Value: value.s, Logits: x.s, Softcap: limit.s, ScratchIndex: scratch.s, ScratchValue: scratchValue.s, N: n})
		},
		func(p *runtime.Pass) error { return SoftcapSample(p, token.s.Slice(1, 2), y.s, limit.s, 200) },
		func(p *runtime.Pass) error { return SoftcapLogits(p, x.s, limit.s, n) },
		func(p *runtime.Pass) error { return RowSumF32(p, sum.s, x.s, rows, hidden) },
		func(p *runtime.Pass) error { return RowMaxF32(p, top.s, x.s, rows, hidden) },
		func(p *runtime.Pass) error { return SoftmaxRowsF32(p, x.s, x.s, rows, hidden) },
		func(p *runtime.Pass) error { return Copy(p, y.s.Slice(200, 400), x.s.Slice(0, 200), 200) },
	}
	step = func(p *runtime.Pass) error {
		for _, call := range calls {
			if err := call(p); err != nil {
				return err
			}
		}
		return nil
	}
	return step, []target{x, y, gate, h, b, mid, cacheK, cacheV, dense, sum, top, token, value}
}

// Devices that run concurrent work in any order, check every hazard, or give few threads: the same bits, directly and
// replayed. Sums over rows depend on the number of threads, so those results are compared on devices that give all.
func TestElementsOnEveryDevice(t *testing.T) {
	var want []uint32
	for _, c := range []struct {
		name string
		o    soft.Options
	}{
		{"plain", soft.Options{}}, {"one worker", soft.Options{Workers: 1}}, {"reversed", soft.Options{Order: soft.Reversed}},
		{"shuffled", soft.Options{Order: soft.Shuffled, Seed: 3}}, {"shuffled again", soft.Options{Order: soft.Shuffled, Seed: 4}},
		{"no indirect compute", soft.Options{NoIndirectCompute: true}}, {"first families", soft.Options{Families: soft.AppleFamilies(7)}},
		{"macOS 14", soft.Options{OSVersion: soft.Version{Major: 14}}},
	} {
		rt := openOn(t, c.o)
		step, results := elementChain(t, rt)
		prog, err := rt.Record(step)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for _, way := range []string{"direct", "replayed"} {
			for _, b := range results {
				b.reset()
			}
			if way == "direct" {
				encode(t, rt, 21, step)
			} else if err := prog.Run(); err != nil {
				t.Fatal(c.name, err)
			}
			var got []uint32
			for _, b := range results {
				got = append(got, b.bits()...)
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: not the same bits as plain and direct", c.name, way)
			}
		}
		if err := prog.Release(); err != nil {
			t.Error(err)
		}
	}
}

// A device whose pipelines allow few threads: the kernels with a thread for each element take what they get.
func TestElementsFewThreads(t *testing.T) {
	const n = 1000
	for _, threads := range []int{32, 48, 64, 100, 255} {
		rt, r := openOn(t, soft.Options{MaxThreads: threads}), source(421)
		a, b := normals(r, n, 1), normals(r, n, 1)
		va, vb, out := newBuffer(t, rt, a), newBuffer(t, rt, b), output[float32](t, rt, n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return Add(p, out.s, va.s, vb.s, n) })
		for i, v := range out.written() {
			if v != a[i]+b[i] {
				t.Fatalf("%d threads: element %d is %v, want %v", threads, i, v, a[i]+b[i])
			}
		}
		encode(t, rt, 1, func(p *runtime.Pass) error { return ScaleInPlaceF32(p, out.s, n, -2) })
		for i, v := range out.get() {
			if math.Abs(float64(v)) != 2*math.Abs(float64(a[i]+b[i])) {
				t.Fatalf("%d threads: element %d is %v", threads, i, v)
			}
		}
	}
}
