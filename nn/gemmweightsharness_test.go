package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// gemmWeightsCalls are the entry points under test with some bank.
type gemmWeightsCalls[O, T Float] struct {
	plain            func(p *runtime.Pass, y runtime.Slice[O], x runtime.Slice[T], m int) error
	epilogue         func(p *runtime.Pass, y runtime.Slice[O], x runtime.Slice[T], m int, e Epilogue[O]) error
	twin             func(p *runtime.Pass, y runtime.Slice[O], x runtime.Slice[T], m int, bind binding) error
	twinEpilogue     func(p *runtime.Pass, y runtime.Slice[O], x runtime.Slice[T], m int, e Epilogue[O], bind binding) error
	validate         func(rt *runtime.Runtime, y runtime.Slice[O], x runtime.Slice[T], m int) error
	validateEpilogue func(rt *runtime.Runtime, y runtime.Slice[O], x runtime.Slice[T], m int, e Epilogue[O]) error
}

func gemmWeightsCallsOf[O, T Float, W WeightBank](w W) gemmWeightsCalls[O, T] {
	return gemmWeightsCalls[O, T]{
		func(p *runtime.Pass, y runtime.Slice[O], x runtime.Slice[T], m int) error {
			return GEMMWeights(p, y, w, x, m)
		},
		func(p *runtime.Pass, y runtime.Slice[O], x runtime.Slice[T], m int, e Epilogue[O]) error {
			return GEMMWeightsEpilogue(p, y, w, x, m, e)
		},
		func(p *runtime.Pass, y runtime.Slice[O], x runtime.Slice[T], m int, bind binding) error {
			return UnsafeGEMMWeights(p, y, w, x, m, bind)
		},
		func(p *runtime.Pass, y runtime.Slice[O], x runtime.Slice[T], m int, e Epilogue[O], bind binding) error {
			return UnsafeGEMMWeightsEpilogue(p, y, w, x, m, e, bind)
		},
		func(rt *runtime.Runtime, y runtime.Slice[O], x runtime.Slice[T], m int) error {
			return ValidateGEMMWeights(rt, y, w, x, m)
		},
		func(rt *runtime.Runtime, y runtime.Slice[O], x runtime.Slice[T], m int, e Epilogue[O]) error {
			return ValidateGEMMWeightsEpilogue(rt, y, w, x, m, e)
		},
	}
}

func gemmWeightsCallsFor[O, T Float](bank any) gemmWeightsCalls[O, T] {
	switch w := bank.(type) {
	case BlockBank:
		return gemmWeightsCallsOf[O, T](w)
	case DenseBank[float32]:
		return gemmWeightsCallsOf[O, T](w)
	case DenseBank[half.Float16]:
		return gemmWeightsCallsOf[O, T](w)
	case DenseBank[half.BFloat16]:
		return gemmWeightsCallsOf[O, T](w)
	}
	panic("unreachable")
}

// weightsProduct is a product on the device, with its operands between sentinels.
type weightsProduct[O, T Float] struct {
	t      testing.TB
	rt     *runtime.Runtime
	calls  gemmWeightsCalls[O, T]
	host   oracle.Product
	m      int
	plain  bool
	e      Epilogue[O]
	x      *buffer[T]
	c, out *buffer[O]
	bias   *buffer[float32]
}

// newWeightsProduct puts rows for a product with weights on the device.
func newWeightsProduct[O, T Float](t testing.TB, rt *runtime.Runtime, r *rand.Rand, w rowExactWeights, m int, s terms) *weightsProduct[O, T] {
	t.Helper()
	n, k := w.o.Rows, w.o.Cols
	data := elementsOf[T](normals(r, m*k, 1))
	g := &weightsProduct[O, T]{t: t, rt: rt, calls: gemmWeightsCallsFor[O, T](w.bank), m: m, plain: s == plain}
	g.x, g.out = newBuffer(t, rt, data), output[O](t, rt, m*n)
	g.host = oracle.Product{A: asFloat32(data), B: w.o.Data, TransB: true, M: m, N: n, K: k, Alpha: float64(s.alpha), Act: oracle.Activation(s.act)}
	g.e = Epilogue[O]{Alpha: s.alpha, Act: s.act}
	if s.c {
		c := elementsOf[O](normals(r, m*n, 3))
		g.e.Beta, g.host.Beta, g.host.C = s.beta, float64(s.beta), asFloat32(c)
		g.c = newBuffer(t, rt, c)
		if s.inPlace {
			g.out = g.c
		}
		g.e.C = g.c.s
	}
	if s.bias {
		g.host.Bias = normals(r, n, 3)
		g.bias = newBuffer(t, rt, g.host.Bias)
		g.e.Bias = g.bias.s
	}
	return g
}

func (g *weightsProduct[O, T]) call(p *runtime.Pass) error {
	if g.plain {
		return g.calls.plain(p, g.out.s, g.x.s, g.m)
	}
	return g.calls.epilogue(p, g.out.s, g.x.s, g.m, g.e)
}

// run runs the product anew and gives its results. What is only read stays.
func (g *weightsProduct[O, T]) run() []O {
	g.t.Helper()
	g.out.reset()
	encode(g.t, g.rt, 1, g.call)
	g.x.untouched()
	return g.out.written()
}

// verify compares results with the oracle.
func (g *weightsProduct[O, T]) verify(where string, got []O, w *worst) {
	g.t.Helper()
	want, budget := g.host.Result(), denseBudget(&g.host)
	w.compare(g.t, where, widen(got), want, func(i int) float64 { return budget(i) + roundingOf[O](want[i]) })
}
