package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// elementsOf are numbers rounded to T.
func elementsOf[T Float](x []float32) []T {
	out := make([]T, len(x))
	switch out := any(out).(type) {
	case []float32:
		copy(out, x)
	case []half.Float16:
		half.EncodeFloat16(out, x)
	case []half.BFloat16:
		half.EncodeBFloat16(out, x)
	}
	return out
}

// asFloat32 are the numbers that elements are.
func asFloat32[T Float](x []T) []float32 {
	out := make([]float32, len(x))
	for i, v := range widen(x) {
		out[i] = float32(v)
	}
	return out
}

// roundingOf is what rounding x to O may add to an error.
func roundingOf[O Float](x float64) float64 {
	switch elementKind[O]() {
	case kindFloat16:
		return math.Abs(x)*0x1p-11 + 0x1p-25
	case kindBFloat16:
		return math.Abs(x)*0x1p-8 + 0x1p-134
	}
	return 0
}

// denseBudget is what a sum of k products in float32 and the epilogue may be off by: for each unit of the terms' magnitude
// 2^-24 for every addition, in whatever order, and for the rounding of a product, where those of f32 are rounded, and of the
// epilogue's three; below 2^-126 a GPU may have zeros. An activation adds what MLPSiLU and MLPGELUTanh are allowed.
func denseBudget(p *oracle.Product) func(i int) float64 {
	size, want := p.Magnitude(), p.Result()
	before := *p
	before.Act = oracle.ActNone
	args := before.Result()
	return func(i int) float64 {
		a := float64(p.K+4) * (0x1p-24*size[i] + 0x1p-126)
		if p.Act == oracle.ActGELU || p.Act == oracle.ActSiLU {
			a += gatedAllowed(p.Act, args[i], 1, want[i])
		}
		return a
	}
}

// denseProduct is a product on the device, with its operands between sentinels.
type denseProduct[O, T Float] struct {
	t       testing.TB
	host    oracle.Product
	d       GEMMDims
	e       Epilogue[O]
	a, b    *buffer[T]
	c, out  *buffer[O]
	bias    *buffer[float32]
	inPlace bool
}

// terms says what an epilogue has.
type terms struct {
	c, bias     bool
	act         Activation
	alpha, beta float32
	inPlace     bool
}

// plain is no epilogue.
var plain = terms{alpha: 1}

// newDense puts a product of such shape on the device; draw makes its elements. Matrices of a batch lie apart by the
// strides of d.
func newDense[O, T Float](t testing.TB, rt *runtime.Runtime, draw func(n int) []float32, d GEMMDims, s terms) *denseProduct[O, T] {
	t.Helper()
	batch := max(d.Batch, 1)
	reach := func(stride, n int) int {
		if n == 0 {
			return 0
		}
		return (batch-1)*stride + n
	}
	a, b := elementsOf[T](draw(reach(d.StrideA, d.M*d.K))), elementsOf[T](draw(reach(d.StrideB, d.K*d.N)))
	x := &denseProduct[O, T]{t: t, d: d, inPlace: s.inPlace}
	x.a, x.b = newBuffer(t, rt, a), newBuffer(t, rt, b)
	x.out = output[O](t, rt, reach(d.StrideOut, d.M*d.N))
	x.host = oracle.Product{A: asFloat32(a), B: asFloat32(b), TransA: d.TransA, TransB: d.TransB, M: d.M, N: d.N, K: d.K, Alpha: float64(s.alpha),
		Batch: batch, StrideA: d.StrideA, StrideB: d.StrideB, Act: oracle.Activation(s.act)}
	x.e = Epilogue[O]{Alpha: s.alpha, Act: s.act}
	if s.c {
		x.e.Beta, x.host.Beta, x.e.StrideC = s.beta, float64(s.beta), d.StrideOut
		c := elementsOf[O](draw(reach(d.StrideOut, d.M*d.N)))
		x.c = newBuffer(t, rt, c)
		if s.inPlace {
			x.out = x.c
		}
		x.e.C, x.host.C, x.host.StrideC = x.c.s, asFloat32(c), d.StrideOut
	}
	if s.bias {
		bias := draw(d.N)
		x.bias = newBuffer(t, rt, bias)
		x.e.Bias, x.host.Bias = x.bias.s, bias
	}
	return x
}

func (x *denseProduct[O, T]) plain() bool {
	return x.e.Alpha == 1 && x.e.Beta == 0 && x.e.Act == ActNone && x.bias == nil
}

// call encodes the product, as a plain one if it is that.
func (x *denseProduct[O, T]) call(p *runtime.Pass) error {
	if x.plain() {
		return GEMM(p, x.out.s, x.a.s, x.b.s, x.d)
	}
	return GEMMEpilogue(p, x.out.s, x.a.s, x.b.s, x.d, x.e)
}

// run runs the product anew and gives its results, without what lies between those of a batch, which must be untouched.
func (x *denseProduct[O, T]) run(rt *runtime.Runtime) []O {
	x.t.Helper()
	x.out.reset()
	encode(x.t, rt, 1, x.call)
	for _, b := range []interface{ untouched() }{x.a, x.b} {
		b.untouched()
	}
	return x.results(x.out)
}

func (x *denseProduct[O, T]) results(from *buffer[O]) []O {
	x.t.Helper()
	all, n := from.get(), x.d.M*x.d.N
	var out []O
	for i := range max(x.d.Batch, 1) {
		out = append(out, all[i*x.d.StrideOut:][:n]...)
		if i+1 < x.d.Batch {
			for j, v := range all[i*x.d.StrideOut+n : (i+1)*x.d.StrideOut] {
				if bitsOf(v) != bitsOf(from.image[pad+i*x.d.StrideOut+n+j]) {
					x.t.Fatalf("%d behind result %d of the batch: %v", j, i, v)
				}
			}
		}
	}
	for i, v := range out {
		if bitsOf(v) == bitsOf(sentinel[O]()) {
			x.t.Fatalf("element %d of %d was not written", i, len(out))
		}
	}
	return out
}

// check compares results with the oracle.
func (x *denseProduct[O, T]) check(where string, got []O, w *worst) {
	x.t.Helper()
	want, budget := x.host.Result(), denseBudget(&x.host)
	w.compare(x.t, where, widen(got), want, func(i int) float64 { return budget(i) + roundingOf[O](want[i]) })
}

func sameElements[O Float](t testing.TB, where string, want, got []O) {
	t.Helper()
	for i := range want {
		if bitsOf(got[i]) != bitsOf(want[i]) {
			t.Fatalf("%s: element %d: %v, want %v to the bit", where, i, got[i], want[i])
		}
	}
}

// gemmShapes have rows, columns and sums at and beside what a matrix, a part, a tile and a step hold, some of them with rows
// at multiples of four.
var gemmShapes = []GEMMDims{
	{M: 1, N: 1, K: 1}, {M: 1, N: 33, K: 7}, {M: 7, N: 1, K: 16}, {M: 8, N: 8, K: 8}, {M: 5, N: 9, K: 17}, {M: 9, N: 4, K: 3}, {M: 31, N: 32, K: 12},
	{M: 32, N: 31, K: 33}, {M: 33, N: 33, K: 32}, {M: 36, N: 40, K: 20}, {M: 63, N: 65, K: 15}, {M: 64, N: 64, K: 64}, {M: 65, N: 63, K: 31}, {M: 2, N: 130, K: 40},
	{M: 129, N: 3, K: 24}, {M: 66, N: 34, K: 48}, {M: 3, N: 5, K: 300}, {M: 97, N: 70, K: 5}, {M: 12, N: 12, K: 0}, {M: 1, N: 1, K: 1000},
}

// testGEMM computes products of all shapes with both tiles: the small ones in all ways of storing, the large ones in one.
func testGEMM[O, T Float](t *testing.T, seed uint64) {
	rt, r := open(t), source(seed)
	var w worst
	for i, d := range gemmShapes {
		for trans := range 4 {
			if d.M*d.N*d.K > 3000 && trans != (i+int(seed))%4 {
				continue
			}
			d.TransA, d.TransB = trans&1 != 0, trans&2 != 0
			x := newDense[O, T](t, rt, func(n int) []float32 { return normals(r, n, 1) }, d, plain)
			where := fmt.Sprintf("%+v", d)
			x.d.Tile = GEMMSmallTile
			small := x.run(rt)
			x.check(where, small, &w)
			x.d.Tile = GEMMLargeTile
			sameElements(t, where+" with large tiles", small, x.run(rt))
		}
	}
	w.log(t, "2^-24 of the terms' magnitude per addition", "GEMM")
}

func TestGEMMF32(t *testing.T)  { testGEMM[float32, float32](t, 800) }
func TestGEMMF16(t *testing.T)  { testGEMM[float32, half.Float16](t, 801) }
func TestGEMMBF16(t *testing.T) { testGEMM[float32, half.BFloat16](t, 802) }

// integers are small whole numbers, whose products and sums are exact in every order.
func integers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(17) - 8)
	}
	return x
}

// rounded is x rounded to O by the oracle.
func rounded[O Float](x []float64) []float64 {
	switch elementKind[O]() {
	case kindFloat16:
		return oracle.RoundF16s(x)
	case kindBFloat16:
		return oracle.RoundBF16s(x)
	}
	return x
}

// testExact computes products of whole numbers, which have one right result: with and without an epilogue and a batch with
// space between the matrices, in every type of result, where those of float16 overflow to infinities.
func testExact[O, T Float](t *testing.T, rt *runtime.Runtime, seed int) (cases int) {
	r := source(uint64(820 + seed))
	for i, d := range gemmShapes {
		if (i+seed)%4 != 0 && d.K < 300 {
			continue // a quarter of the shapes for each of the types, and those with long sums for all
		}
		d.TransA, d.TransB = (i+seed)&1 != 0, (i+seed)&2 != 0
		if i%2 == 0 {
			d.Batch, d.StrideA, d.StrideB, d.StrideOut = 2, d.M*d.K+3, d.K*d.N+4, d.M*d.N+5
		}
		for _, s := range []terms{plain, {alpha: 2, c: true, beta: -3, bias: true, act: ActReLU}, {alpha: -1, c: true, beta: 1, inPlace: true}} {
			x := newDense[O, T](t, rt, func(n int) []float32 { return integers(r, n) }, d, s)
			got, want := x.run(rt), rounded[O](x.host.Result())
			for j, v := range widen(got) {
				if v != want[j] {
					t.Fatalf("%+v %+v: element %d is %v, want %v", d, s, j, v, want[j])
				}
			}
			cases++
		}
	}
	return cases
}

func TestGEMMExact(t *testing.T) {
	numbersOnly(t)
	defer logExact(t, "GEMM", "GEMMEpilogue")()
	rt := open(t)
	for i, test := range []func(*testing.T, *runtime.Runtime, int) int{
		testExact[float32, float32], testExact[float32, half.Float16], testExact[float32, half.BFloat16],
		testExact[half.Float16, float32], testExact[half.Float16, half.Float16], testExact[half.Float16, half.BFloat16],
		testExact[half.BFloat16, float32], testExact[half.BFloat16, half.Float16], testExact[half.BFloat16, half.BFloat16],
	} {
		exactCases += test(t, rt, i)
	}
}
