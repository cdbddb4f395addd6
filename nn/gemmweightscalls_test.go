package nn

import (
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func init() {
	for t, names := range gemmWeightsKernels {
		if t == 0 {
			continue
		}
		wide := "102 bool, "
		if WeightType(t).Block() == 0 {
			wide += "103 bool, "
		}
		for _, name := range names {
			kernelSlots[name] = "0r 1r 2w 3u 4u 5u 8r 9f 10f 11r"
			kernelConstants[name] = wide + "104 bool, 105 bool, 106 uint, 107 uint, 108 uint"
		}
	}
}

// weightsScalars are the scalars of a product.
func weightsScalars(m, n, k int, alpha, beta float32) []scalar {
	return []scalar{{slot: 3, u: uint32(m)}, {slot: 4, u: uint32(n)}, {slot: 5, u: uint32(k)}, {slot: 9, f: alpha, float: true}, {slot: 10, f: beta, float: true}}
}

func TestGEMMWeightsRecorded(t *testing.T) {
	rt, r := open(t), source(1080)
	const m, n, k = 35, 33, 64
	for _, c := range []struct {
		wt    WeightType
		batch bool // the product is a GEMM, which has the strides of a batch
	}{{WeightQ5_0, false}, {WeightF32, false}, {WeightBF16, true}} {
		w := randomRowExact(t, rt, r, c.wt, n, k)
		for _, s := range []terms{plain, {alpha: 2, beta: 0.5, c: true, bias: true, act: ActSiLU}} {
			g := newWeightsProduct[float32, half.BFloat16](t, rt, r, w, m, s)
			replays(t, rt, []target{g.out}, func(i int) { g.x.set(elementsOf[half.BFloat16](normals(r, m*k, float64(i+1)))) }, g.call)
			scalars := weightsScalars(m, n, k, g.e.Alpha, g.e.Beta)
			if c.batch {
				scalars = append(scalars, []scalar{{slot: 6}, {slot: 7}, {slot: 12}, {slot: 13}}...)
			}
			twin(t, rt, []target{g.out}, scalars, g.call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
				if g.plain {
					return g.calls.twin(p, g.out.s, g.x.s, m, bind)
				}
				return g.calls.twinEpilogue(p, g.out.s, g.x.s, m, g.e, bind)
			})
		}
	}
}

// UnsafeGEMMWeights replayed with fewer rows leaves the others as they are, and those that it computes have their bits.
func TestGEMMWeightsLiveRows(t *testing.T) {
	rt, r := open(t), source(1081)
	const m, n, k = 70, 33, 64
	w := randomRowExact(t, rt, r, WeightIQ4_NL, n, k)
	g := newWeightsProduct[float32, float32](t, rt, r, w, m, plain)
	g.calls = gemmWeightsCallsOf[float32, float32](w.bank.(BlockBank))
	want := g.run()
	pool, err := runtime.NewScalarPool(rt, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Release()
	rows, err := runtime.NewScalar[uint32](pool, m)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := rt.Record(func(p *runtime.Pass) error {
		return g.calls.twin(p, g.out.s, g.x.s, m, func(b *runtime.ScalarBinder) error {
			for _, s := range weightsScalars(m, n, k, 1, 0)[1:] {
				if err := s.bind(b, pool); err != nil {
					return err
				}
			}
			return b.Uint32(3, rows)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Release()
	for _, live := range []int{70, 65, 64, 7, 1, 0, 70} {
		g.out.reset()
		if err := rows.Set(uint32(live)); err != nil {
			t.Fatal(err)
		}
		if err := prog.Run(); err != nil {
			t.Fatal(err)
		}
		got := g.out.get()
		sameElements(t, "rows that are computed", want[:live*n], got[:live*n])
		for i, v := range got[live*n:] {
			if bitsOf(v) != bitsOf(sentinel[float32]()) {
				t.Fatalf("%d rows: element %d behind them was written", live, i)
			}
		}
	}
}

// All pipelines of a call are there afterwards, whatever its number of rows.
func TestPrewarmGEMMWeights(t *testing.T) {
	rt, r := open(t), source(1082)
	bias := newBuffer(t, rt, normals(r, 5, 1))
	for _, e := range []Epilogue[half.Float16]{{Alpha: 1}, {Alpha: 1, Beta: 1, Bias: bias.s, Act: ActGELU}} {
		before := rt.Stats().Pipelines
		if err := PrewarmGEMMWeights[half.Float16, half.BFloat16](t.Context(), rt, e, WeightTypes()...); err != nil {
			t.Fatal(err)
		}
		made := rt.Stats().Pipelines
		if made-before != 20 {
			t.Errorf("%d pipelines", made-before)
		}
		for _, wt := range WeightTypes() {
			w := randomRowExact(t, rt, r, wt, 5, 256)
			for _, m := range []int{2, 33} {
				g := newWeightsProduct[half.Float16, half.BFloat16](t, rt, r, w, m, terms{alpha: 1, c: e.Beta != 0, beta: 1, bias: e.Beta != 0, act: e.Act})
				encode(t, rt, 1, g.call)
			}
		}
		if n := rt.Stats().Pipelines; n != made {
			t.Errorf("%d pipelines at first, %d later", made, n)
		}
	}
	err := PrewarmGEMMWeights[float32, float32](t.Context(), rt, Epilogue[float32]{}, WeightQ4_0, 77)
	checkRefused(t, "nn.PrewarmGEMMWeights", refusal{"no type", nil, runtime.ErrShape, []string{"types", "77"}}, err)
	err = PrewarmGEMMWeights[float32, float32](t.Context(), rt, Epilogue[float32]{Act: 9}, WeightQ4_0)
	checkRefused(t, "nn.PrewarmGEMMWeights", refusal{"activation", nil, runtime.ErrScalar, []string{"Act", "9"}}, err)
	old := openOn(t, soft.Options{Families: []mtl.GPUFamily{mtl.GPUFamilyMac2}})
	err = PrewarmGEMMWeights[float32, float32](t.Context(), old, Epilogue[float32]{}, WeightQ4_0)
	checkRefused(t, "nn.PrewarmGEMMWeights", refusal{"no matrices", nil, runtime.ErrLimit, []string{"device", "simdgroup matrices"}}, err)
	err = PrewarmGEMMWeights[float32, float32](t.Context(), nil, Epilogue[float32]{}, WeightQ4_0)
	checkRefused(t, "nn.PrewarmGEMMWeights", refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt"}}, err)
}

// A device whose pipelines allow few threads: the small tile needs two simdgroups, the large one four, and what needs more is
// refused and leaves the pass alone.
func TestGEMMWeightsFewThreads(t *testing.T) {
	for _, threads := range []int{32, 64, 96} {
		rt, r := openOn(t, soft.Options{MaxThreads: threads}), source(1083)
		w := randomRowExact(t, rt, r, WeightQ8_0, 9, 64)
		small, large := newWeightsProduct[float32, float32](t, rt, r, w, 32, plain), newWeightsProduct[float32, float32](t, rt, r, w, 33, plain)
		refuses(t, rt, "", []target{large.out}, []refusal{{"large tile", large.call, runtime.ErrLimit, nil}})
		if threads < 64 {
			refuses(t, rt, "", []target{small.out}, []refusal{{"small tile", small.call, runtime.ErrLimit, nil}})
			continue
		}
		var worst worst
		small.verify("small tile", small.run(), &worst)
	}
}

func TestGEMMWeightsGeometry(t *testing.T) {
	for _, c := range []struct{ m, want int }{{0, 32}, {1, 32}, {32, 32}, {33, 64}, {64, 64}, {4096, 64}, {-1, 32}} {
		if got := GEMMWeightsTileFor(c.m); got != c.want {
			t.Errorf("GEMMWeightsTileFor(%d) = %d, want %d", c.m, got, c.want)
		}
	}
	for _, c := range []struct {
		tile, m, rows   int
		groups, threads runtime.Size
	}{
		{32, 1, 1, runtime.D2(1, 1), runtime.D1(64)}, {32, 32, 64, runtime.D2(1, 1), runtime.D1(64)}, {64, 65, 65, runtime.D2(2, 2), runtime.D1(128)},
		{64, 512, 11008, runtime.D2(172, 8), runtime.D1(128)},
	} {
		if groups, threads := GEMMWeightsGeometry(c.tile, c.m, c.rows); groups != c.groups || threads != c.threads {
			t.Errorf("%+v: %v groups of %v", c, groups, threads)
		}
	}
	GEMMWeightsGeometry(0, 0, 0) // what no launch has gives no launch, and no panic
	GEMMWeightsGeometry(-1, -1, -1)
}

// gemmWeightsDenseCalls are products with small operands, each with an output of its own.
func gemmWeightsDenseCalls(t testing.TB, rt *runtime.Runtime) (calls []productCall, outs []target) {
	t.Helper()
	r := source(1084)
	a := newWeightsProduct[float32, half.Float16](t, rt, r, randomRowExact(t, rt, r, WeightQ6_K, 70, 256), 37, plain)
	b := newWeightsProduct[float32, float32](t, rt, r, randomRowExact(t, rt, r, WeightBF16, 70, 30), 9, terms{alpha: 1, c: true, beta: 1, inPlace: true})
	return []productCall{{"GEMMWeights", a.call}, {"GEMMWeightsEpilogue", b.call}}, []target{a.out, b.out}
}

// The kernels' names say the type as those of the row-exact products do.
func TestGEMMWeightsKernels(t *testing.T) {
	for _, wt := range WeightTypes() {
		for i, tile := range []string{"_t32", "_t64"} {
			if got, want := gemmWeightsKernels[wt][i], "gemm_weights_"+rowExactTypes[wt].kernel+tile; got != want || !slices.Contains(metallib.DefaultInfo().Kernels, got) {
				t.Errorf("%v: %s, want %s, which the library has", wt, got, want)
			}
		}
		if got, want := embedLookupKernels[wt], "embed_lookup_"+rowExactTypes[wt].kernel; got != want {
			t.Errorf("%v: %s, want %s", wt, got, want)
		}
	}
}
