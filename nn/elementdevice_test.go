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
		encode(t, rt, 1, func(p *runtime.Pass) error { return AddBias(p, va.s, va.s, vb.s, 2, n/2) })
		for i, v := range va.get() {
			if v != a[i]+b[i%(n/2)] {
				t.Fatalf("%d threads: element %d with a bias is %v, want %v", threads, i, v, a[i]+b[i%(n/2)])
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

// sliceOf is an allocation that holds the elements and nothing else.
func sliceOf[T runtime.Element](t testing.TB, rt *runtime.Runtime, data []T) runtime.Slice[T] {
	t.Helper()
	s, err := runtime.SliceOf(rt, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Release() })
	return s
}

// Operands that end where their memory ends: a kernel that reads or writes one element further fails the pass, also where
// what it read there would not have changed the result.
func TestElementsInExactMemory(t *testing.T) {
	rt, r := open(t), source(422)
	for _, n := range []int{1, 31, 65, 255, 257, 1023, 1029} {
		f := func(n int) runtime.Slice[float32] { return sliceOf(t, rt, normals(r, n, 1)) }
		h, b := sliceOf(t, rt, make([]half.Float16, n)), sliceOf(t, rt, make([]half.BFloat16, n))
		words := func(n int) runtime.Slice[uint32] { return sliceOf(t, rt, make([]uint32, n)) }
		few := min(n, MaxSampleLogits)
		table := randomSigned(t, rt, r, 3, 8*n, 8).host
		bank, err := UploadQ4(rt, table)
		if err != nil {
			t.Fatal(err)
		}
		defer bank.Release()
		groups, scratch := ArgmaxGroups(n), max(ArgmaxScratch(n), 1)
		for name, call := range map[string]func(p *runtime.Pass) error{
			"RMSNormF32":      func(p *runtime.Pass) error { return RMSNormF32(p, f(3*n), f(3*n), f(n), 3, n, 1e-6) },
			"MLPSiLU":         func(p *runtime.Pass) error { return MLPSiLU(p, f(n), f(n), f(n), n) },
			"MLPSiLU bf16":    func(p *runtime.Pass) error { return MLPSiLU(p, b, f(n), f(n), n) },
			"MLPGELUTanh":     func(p *runtime.Pass) error { return MLPGELUTanh(p, f(n), f(n), f(n), n) },
			"GELU bf16":       func(p *runtime.Pass) error { return MLPGELUTanh(p, b, f(n), f(n), n) },
			"ScaleInPlaceF32": func(p *runtime.Pass) error { return ScaleInPlaceF32(p, f(n), n, 2) },
			"Add f32":         func(p *runtime.Pass) error { return Add(p, f(n), f(n), f(n), n) },
			"Add f16":         func(p *runtime.Pass) error { return AddInPlace(p, h, h, n) },
			"Add bf16":        func(p *runtime.Pass) error { return AddInPlace(p, b, b, n) },
			"AddBias":         func(p *runtime.Pass) error { return AddBias(p, f(3*n), f(3*n), f(n), 3, n) },
			"Cast f32 f16":    func(p *runtime.Pass) error { return Cast(p, h, f(n), n) },
			"Cast f32 bf16":   func(p *runtime.Pass) error { return Cast(p, b, f(n), n) },
			"Cast f16 f32":    func(p *runtime.Pass) error { return Cast(p, f(n), h, n) },
			"Cast bf16 f32":   func(p *runtime.Pass) error { return Cast(p, f(n), b, n) },
			"Cast f16 bf16":   func(p *runtime.Pass) error { return Cast(p, b, h, n) },
			"Cast bf16 f16":   func(p *runtime.Pass) error { return Cast(p, h, b, n) },
			"Copy 32":         func(p *runtime.Pass) error { return Copy(p, f(n), f(n), n) },
			"Copy 16":         func(p *runtime.Pass) error { return Copy(p, h, sliceOf(t, rt, make([]half.Float16, n)), n) },
			"SoftmaxRowsF32":  func(p *runtime.Pass) error { return SoftmaxRowsF32(p, f(3*n), f(3*n), 3, n) },
			"RowSumF32":       func(p *runtime.Pass) error { return RowSumF32(p, f(3), f(3*n), 3, n) },
			"RowMaxF32":       func(p *runtime.Pass) error { return RowMaxF32(p, f(3), f(3*n), 3, n) },
			"SoftcapLogits":   func(p *runtime.Pass) error { return SoftcapLogits(p, f(n), f(1), n) },
			"SoftcapSample":   func(p *runtime.Pass) error { return SoftcapSample(p, words(1), f(few), f(1), few) },
			"SoftcapArgmax":   func(p *runtime.Pass) error { return SoftcapArgmax(p, words(1), f(1), f(n), f(1), n) },
			"ArgmaxPass": func(p *runtime.Pass) error {
				return ArgmaxPass(p, ArgmaxOperands{Index: words(groups), Value: f(groups), Values: f(n), Indices: words(n), Softcap: f(1), N: n})
			},
			"Argmax": func(p *runtime.Pass) error {
				return Argmax(p, ArgmaxArgs{Token: words(1), Value: f(1), Logits: f(n), ScratchIndex: words(scratch), ScratchValue: f(scratch), N: n})
			},
			"KVStoreTimestep":     func(p *runtime.Pass) error { return KVStoreTimestep(p, f(n), f(n), words(1), n, n) },
			"KVStoreTimestep f16": func(p *runtime.Pass) error { return KVStoreTimestep(p, h, f(n), words(1), n, n) },
			"KVStoreTimestepPair": func(p *runtime.Pass) error {
				return KVStoreTimestepPair(p, KVPair[float32]{CacheK: f(n), CacheV: f(n), K: f(n), V: f(n), Offset: words(1), N: n, Capacity: n})
			},
			"KVStoreTimestepPair bf16": func(p *runtime.Pass) error {
				return KVStoreTimestepPair(p, KVPair[half.BFloat16]{CacheK: b, CacheV: sliceOf(t, rt, make([]half.BFloat16, n)), K: f(n), V: f(n), Offset: words(1), N: n, Capacity: n})
			},
			"KVRingDensify": func(p *runtime.Pass) error {
				return KVRingDensify(p, KVRing[float32]{Dst: f(3 * n), Src: f(3 * n), Filled: sliceOf(t, rt, []uint32{9}), Start: sliceOf(t, rt, []uint32{2}), Slot: n, Capacity: 3})
			},
			"KVRingDensify 16": func(p *runtime.Pass) error {
				return KVRingDensify(p, KVRing[half.Float16]{Dst: h, Src: sliceOf(t, rt, make([]half.Float16, n)), Filled: sliceOf(t, rt, []uint32{9}), Start: sliceOf(t, rt, []uint32{2}), Slot: 1, Capacity: n})
			},
			"EmbedLookupQ4": func(p *runtime.Pass) error {
				return EmbedLookupQ4(p, f(3*8*n), bank, sliceOf(t, rt, []uint32{2, 3, 0}), 3, 1)
			},
		} {
			if err := rt.Run(call); err != nil {
				t.Fatalf("%s, n %d: %v", name, n, err)
			}
		}
	}
}
