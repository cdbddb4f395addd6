package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// The calls of both kinds of products, and their preflights, refuse the same.
func TestGEMMWeightsRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(1090)
	const m, n, k = 4, 6, 64
	q, f := randomRowExact(t, rt, r, WeightQ5_0, n, k), randomRowExact(t, rt, r, WeightBF16, n, k)
	same, other := randomRowExact(t, rt, r, WeightF32, n, k), randomRowExact(t, foreign, r, WeightQ5_0, n, k)
	x, y, c, bias := newBuffer(t, rt, normals(r, 2*m*k, 1)), output[float32](t, rt, 4*m*n), output[float32](t, rt, m*n), output[float32](t, rt, n)
	theirs := output[float32](t, foreign, m*k)
	dropped, err := UploadDense(rt, make([]float32, n*k), n, k)
	if err != nil {
		t.Fatal(err)
	}
	if err := dropped.Release(); err != nil {
		t.Fatal(err)
	}
	both, err := runtime.NewSlice[float32](rt, 4*k)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := NewDenseBank(both.Slice(0, 2*k), 2, k)
	if err != nil {
		t.Fatal(err)
	}
	type e32 = Epilogue[float32]
	fine := e32{Alpha: 1}
	with := func(change func(e *e32)) e32 {
		e := e32{Alpha: 1, Beta: 1, C: c.s, Bias: bias.s, Act: ActReLU}
		change(&e)
		return e
	}
	var plainCalls, epilogueCalls []refusal
	for _, bank := range []any{q.bank, f.bank, same.bank} {
		for _, c := range []struct {
			name     string
			bank     any
			y, x     vec32
			m        int
			e        e32
			sentinel error
			parts    []string
		}{
			{"m negative", bank, y.s, x.s, -1, fine, runtime.ErrShape, []string{"m", "-1"}},
			{"m huge", bank, y.s, x.s, math.MaxInt, fine, runtime.ErrShape, []string{"m"}},
			{"x short", bank, y.s, x.s.Slice(0, m*k-1), m, fine, runtime.ErrShape, []string{"x", "255", "256"}},
			{"y short", bank, y.s.Slice(0, m*n-1), x.s, m, fine, runtime.ErrShape, []string{"y", "23", "24"}},
			{"y short for so many rows", bank, y.s, x.s, 1 << 20, fine, runtime.ErrShape, []string{"x"}},
			{"zero bank", BlockBank{}, y.s, x.s, m, fine, runtime.ErrShape, []string{"w", "zero bank", "NewBlockBank"}},
			{"zero bank of numbers", DenseBank[half.Float16]{}, y.s, x.s, m, fine, runtime.ErrShape, []string{"w", "zero bank", "NewDenseBank"}},
			{"zero bank of the rows' type", DenseBank[float32]{}, y.s, x.s, m, fine, runtime.ErrShape, []string{"w", "zero bank"}},
			{"zero x", bank, y.s, vec32{}, m, fine, runtime.ErrShape, []string{"x"}},
			{"zero y", bank, vec32{}, x.s, m, fine, runtime.ErrShape, []string{"y"}},
			{"released weights", dropped, y.s, x.s, m, fine, runtime.ErrClosed, []string{"w"}},
			{"foreign weights", other.bank, y.s, x.s, m, fine, runtime.ErrForeign, []string{"w"}},
			{"foreign x", bank, y.s, theirs.s, m, fine, runtime.ErrForeign, []string{"x"}},
			{"foreign y", bank, theirs.s, x.s, m, fine, runtime.ErrForeign, []string{"y"}},
			{"y over x", bank, x.s.Slice(m*k-1, 2*m*k), x.s, m, fine, runtime.ErrOverlap, []string{"y", "x"}},
			{"y over the weights", shared, both.Slice(2*k-1, 4*k), x.s, m, fine, runtime.ErrOverlap, []string{"y", "w"}},
			{"alpha", bank, y.s, x.s, m, with(func(e *e32) { e.Alpha = float32(math.NaN()) }), runtime.ErrScalar, []string{"Alpha", "NaN"}},
			{"beta", bank, y.s, x.s, m, with(func(e *e32) { e.Beta = float32(math.Inf(1)) }), runtime.ErrScalar, []string{"Beta", "Inf"}},
			{"activation", bank, y.s, x.s, m, with(func(e *e32) { e.Act = ActSiLU + 1 }), runtime.ErrScalar, []string{"Act", "Activation(4)"}},
			{"C missing", bank, y.s, x.s, m, with(func(e *e32) { e.C = vec32{} }), runtime.ErrShape, []string{"C"}},
			{"C short", bank, y.s, x.s, m, with(func(e *e32) { e.C = c.s.Slice(0, m*n-1) }), runtime.ErrShape, []string{"C", "23", "24"}},
			{"C foreign", bank, y.s, x.s, m, with(func(e *e32) { e.C = theirs.s }), runtime.ErrForeign, []string{"C"}},
			{"C beside y", bank, y.s, x.s, m, with(func(e *e32) { e.C = y.s.Slice(1, m*n+1) }), runtime.ErrOverlap, []string{"y", "C"}},
			{"bias short", bank, y.s, x.s, m, with(func(e *e32) { e.Bias = bias.s.Slice(0, n-1) }), runtime.ErrShape, []string{"Bias", "5", "6"}},
			{"bias foreign", bank, y.s, x.s, m, with(func(e *e32) { e.Bias = theirs.s }), runtime.ErrForeign, []string{"Bias"}},
			{"bias in y", bank, y.s, x.s, m, with(func(e *e32) { e.Bias = y.s.Slice(m*n-1, 2*m*n) }), runtime.ErrOverlap, []string{"y", "Bias"}},
		} {
			calls := gemmWeightsCallsFor[float32, float32](c.bank)
			if c.e == fine {
				plainCalls = append(plainCalls, refusal{c.name, func(p *runtime.Pass) error {
					return alike(t, calls.plain(p, c.y, c.x, c.m), calls.validate(rt, c.y, c.x, c.m))
				}, c.sentinel, c.parts})
			}
			epilogueCalls = append(epilogueCalls, refusal{c.name, func(p *runtime.Pass) error {
				return alike(t, calls.epilogue(p, c.y, c.x, c.m, c.e), calls.validateEpilogue(rt, c.y, c.x, c.m, c.e))
			}, c.sentinel, c.parts})
		}
		calls := gemmWeightsCallsFor[float32, float32](bank)
		plainCalls = append(plainCalls, refusal{"no pass", func(*runtime.Pass) error { return calls.plain(nil, y.s, x.s, m) }, runtime.ErrMisuse, []string{"p", "nil"}})
		for _, e := range []e32{fine, with(func(*e32) {}), with(func(e *e32) { e.C = y.s })} {
			if err := calls.validateEpilogue(rt, y.s, x.s, m, e); err != nil {
				t.Error(err)
			}
		}
		if err := calls.validate(rt, y.s, x.s, m); err != nil {
			t.Error(err)
		}
		checkRefused(t, "nn.ValidateGEMMWeights", refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt"}}, calls.validate(nil, y.s, x.s, m))
	}
	outs := []target{x, y, c, bias}
	refuses(t, rt, "nn.GEMMWeights", outs, plainCalls)
	refuses(t, rt, "nn.GEMMWeightsEpilogue", outs, epilogueCalls)
}

// A device without simdgroup matrices says so.
func TestGEMMWeightsWithoutMatrices(t *testing.T) {
	rt, r := openOn(t, soft.Options{Families: []mtl.GPUFamily{mtl.GPUFamilyMac2, mtl.GPUFamilyCommon1, mtl.GPUFamilyCommon2, mtl.GPUFamilyCommon3}}), source(1091)
	for _, wt := range []WeightType{WeightQ8_0, WeightF32, WeightF16} {
		w := randomRowExact(t, rt, r, wt, 3, 32)
		g := newWeightsProduct[float32, float32](t, rt, r, w, 2, plain)
		refuses(t, rt, "nn.GEMMWeights", []target{g.out}, []refusal{{"no matrices", g.call, runtime.ErrLimit, []string{"device", "simdgroup matrices", "Apple family 7"}}})
	}
}
