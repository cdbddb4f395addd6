package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// gemmWeightsShapes have rows, rows of weights and columns at and beside what a matrix, a part, a tile, a run and a step
// hold. Columns are rounded up to whole blocks.
var gemmWeightsShapes = []struct{ m, n, k int }{
	{1, 1, 1}, {1, 2, 3}, {2, 1, 32}, {3, 5, 33}, {7, 8, 64}, {8, 7, 40}, {9, 9, 96}, {5, 31, 31}, {4, 32, 36}, {6, 33, 65}, {1, 63, 128}, {2, 64, 100}, {3, 65, 160},
	{1, 127, 32}, {2, 128, 33}, {1, 130, 63}, {16, 3, 256}, {17, 4, 288}, {15, 66, 20}, {31, 1, 512}, {31, 9, 64}, {32, 1, 544}, {32, 8, 32}, {32, 40, 4}, {33, 2, 64},
	{33, 33, 34}, {34, 17, 12}, {40, 7, 96}, {47, 3, 160}, {48, 2, 352}, {63, 1, 257}, {63, 5, 68}, {64, 4, 33}, {64, 36, 16}, {65, 1, 300}, {65, 3, 64}, {66, 18, 8},
	{95, 2, 32}, {96, 6, 95}, {97, 1, 128}, {100, 3, 7}, {127, 2, 36}, {128, 1, 64}, {129, 5, 5}, {3, 2, 1500}, {1, 1, 4100}, {0, 4, 64},
}

// gemmWeightsTerms are what follows the products of the shapes, in turn.
var gemmWeightsTerms = []terms{plain, {alpha: 1, bias: true}, {alpha: 1, c: true, beta: 1, inPlace: true}, plain, {alpha: -2, c: true, beta: 0.5, bias: true, act: ActSiLU}}

// testGEMMWeights computes one of the shapes.
func testGEMMWeights[O, T Float](t *testing.T, rt *runtime.Runtime, r *rand.Rand, wt WeightType, i int, w *worst) {
	t.Helper()
	s, unit := gemmWeightsShapes[i], wt.info().values
	m := randomRowExact(t, rt, r, wt, s.n, ceilDiv(s.k, unit)*unit)
	g := newWeightsProduct[O, T](t, rt, r, m, s.m, gemmWeightsTerms[i%len(gemmWeightsTerms)])
	if s.m == 0 {
		encode(t, rt, 0, g.call)
		g.out.untouched()
		return
	}
	g.verify(fmt.Sprintf("%v %+v, O %d, T %d", wt, s, elementKind[O](), elementKind[T]()), g.run(), w)
}

// Every type of weights with every type of rows and results.
func TestGEMMWeights(t *testing.T) {
	numbersOnly(t)
	rt := open(t)
	for _, wt := range WeightTypes() {
		t.Run(wt.String(), func(t *testing.T) {
			r := source(1000 + uint64(wt))
			var w, halves worst
			for i := range gemmWeightsShapes {
				switch (i + int(wt)) % 9 {
				case 0, 1:
					testGEMMWeights[float32, float32](t, rt, r, wt, i, &w)
				case 2:
					testGEMMWeights[float32, half.Float16](t, rt, r, wt, i, &w)
				case 3:
					testGEMMWeights[float32, half.BFloat16](t, rt, r, wt, i, &w)
				case 4:
					testGEMMWeights[half.Float16, float32](t, rt, r, wt, i, &halves)
				case 5:
					testGEMMWeights[half.Float16, half.Float16](t, rt, r, wt, i, &halves)
				case 6:
					testGEMMWeights[half.BFloat16, half.BFloat16](t, rt, r, wt, i, &halves)
				case 7:
					testGEMMWeights[half.BFloat16, float32](t, rt, r, wt, i, &halves)
				case 8:
					testGEMMWeights[half.Float16, half.BFloat16](t, rt, r, wt, i, &halves)
				}
			}
			w.log(t, "2^-24 of the terms' magnitude per addition", "GEMMWeights", "GEMMWeightsEpilogue")
			halves.log(t, "same and the rounding of the result", "GEMMWeights", "GEMMWeightsEpilogue")
		})
	}
}

// A product with rows that are 1 at one column and 0 elsewhere is the weights, to the bit: the kernels read every code and scale of
// each format as the codec does, whether a step is half a run or a whole one.
func TestGEMMWeightsReadsWeights(t *testing.T) {
	numbersOnly(t)
	rt := open(t)
	for _, wt := range WeightTypes() {
		r, unit := source(1020+uint64(wt)), wt.info().values
		k := max(2*unit, 40)
		const n = 3
		w := randomRowExact(t, rt, r, wt, n, k)
		x := make([]float32, k*k)
		for c := range k {
			x[c*k+c] = 1
		}
		for _, m := range []int{k, 32} { // both tiles
			in, y := newBuffer(t, rt, elementsOf[half.Float16](x)), output[float32](t, rt, k*n)
			calls := gemmWeightsCallsFor[float32, half.Float16](w.bank)
			encode(t, rt, ceilDiv(k, m), func(p *runtime.Pass) error {
				for c := 0; c < k; c += m {
					rows := min(m, k-c)
					if err := calls.plain(p, y.s.Slice(c*n, (c+rows)*n), in.s.Slice(c*k, (c+rows)*k), rows); err != nil {
						return err
					}
				}
				return nil
			})
			got := y.written()
			for c := range k {
				for row := range n {
					if v, want := got[c*n+row], w.o.Data[row*k+c]; v != want {
						t.Fatalf("%v, %d rows at a time: row %d, column %d: %v, the codec has %v", wt, m, row, c, v, want)
					}
				}
			}
		}
	}
}

// A row of a result has the same bits whatever else is computed: alone, among others, with some of the rows of weights only,
// from rows that start anywhere, and as a GEMM of the decoded weights.
func TestGEMMWeightsKeepsBits(t *testing.T) {
	numbersOnly(t)
	rt := open(t)
	for _, wt := range WeightTypes() {
		r, unit := source(1040+uint64(wt)), wt.info().values
		const m, n = 66, 67
		k := ceilDiv(70, unit) * unit
		w := randomRowExact(t, rt, r, wt, n, k)
		g := newWeightsProduct[float32, float32](t, rt, r, w, m, plain)
		want := g.run()
		b, err := UploadDense(rt, w.o.Data, n, k)
		if err != nil {
			t.Fatal(err)
		}
		out := output[float32](t, rt, m*n)
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMM(p, out.s, g.x.s, b.Data(), GEMMDims{M: m, N: n, K: k, TransB: true})
		})
		sameElements(t, wt.String()+" as GEMM", want, out.written())
		if err := b.Release(); err != nil {
			t.Error(err)
		}
		for _, part := range [][2]int{{0, 1}, {65, 66}, {1, 33}, {5, 38}} {
			y := output[float32](t, rt, (part[1]-part[0])*n)
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return g.calls.plain(p, y.s, g.x.s.Slice(part[0]*k, part[1]*k), part[1]-part[0])
			})
			sameElements(t, fmt.Sprintf("%v, rows %v", wt, part), want[part[0]*n:part[1]*n], y.written())
		}
		for _, part := range [][2]int{{66, 67}, {3, 67}} {
			some, err := w.rows(part[0], part[1])
			if err != nil {
				t.Fatal(err)
			}
			width := part[1] - part[0]
			y := output[float32](t, rt, m*width)
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return gemmWeightsCallsFor[float32, float32](some.bank).plain(p, y.s, g.x.s, m)
			})
			got := y.written()
			for i := range m {
				sameElements(t, fmt.Sprintf("%v, rows of weights %v", wt, part), want[i*n+part[0]:i*n+part[1]], got[i*width:(i+1)*width])
			}
		}
		for _, shift := range []int{1, 4} {
			moved := newBuffer(t, rt, make([]float32, m*k+4))
			moved.set(append(make([]float32, shift), asFloat32(g.x.get())...))
			y := output[float32](t, rt, m*n+1)
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return g.calls.plain(p, y.s.Slice(1, m*n+1), moved.s.Slice(shift, shift+m*k), m)
			})
			sameElements(t, fmt.Sprintf("%v, moved by %d", wt, shift), want, y.get()[1:])
		}
	}
}

// Rows and weights in every pair of types, starting at and beside multiples of four elements, give the bits of float32.
func testGEMMWeightsOfNumbers[T, U Float](t *testing.T, rt *runtime.Runtime) {
	t.Helper()
	r := source(1060)
	const m, n = 37, 66
	for _, k := range []int{36, 45, 64} {
		x, w := elementsOf[T](normals(r, m*k+4, 1)), elementsOf[U](normals(r, n*k+4, 1))
		in, weights := newBuffer(t, rt, x), newBuffer(t, rt, w)
		for _, shift := range [][2]int{{0, 0}, {1, 0}, {0, 3}, {2, 2}} {
			bank, err := NewDenseBank(weights.s.Slice(shift[1], shift[1]+n*k), n, k)
			if err != nil {
				t.Fatal(err)
			}
			y, want := output[float32](t, rt, m*n), output[float32](t, rt, m*n)
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return gemmWeightsCallsFor[float32, T](bank).plain(p, y.s, in.s.Slice(shift[0], shift[0]+m*k), m)
			})
			a, b := newBuffer(t, rt, asFloat32(x[shift[0]:shift[0]+m*k])), newBuffer(t, rt, asFloat32(w[shift[1]:shift[1]+n*k]))
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return GEMM(p, want.s, a.s, b.s, GEMMDims{M: m, N: n, K: k, TransB: true})
			})
			sameElements(t, fmt.Sprintf("kinds %d and %d, %d columns, moved by %v", elementKind[T](), elementKind[U](), k, shift), want.written(), y.written())
		}
	}
}

func TestGEMMWeightsOfNumbers(t *testing.T) {
	numbersOnly(t)
	rt := open(t)
	testGEMMWeightsOfNumbers[float32, float32](t, rt)
	testGEMMWeightsOfNumbers[float32, half.Float16](t, rt)
	testGEMMWeightsOfNumbers[float32, half.BFloat16](t, rt)
	testGEMMWeightsOfNumbers[half.Float16, float32](t, rt)
	testGEMMWeightsOfNumbers[half.Float16, half.Float16](t, rt)
	testGEMMWeightsOfNumbers[half.Float16, half.BFloat16](t, rt)
	testGEMMWeightsOfNumbers[half.BFloat16, float32](t, rt)
	testGEMMWeightsOfNumbers[half.BFloat16, half.Float16](t, rt)
	testGEMMWeightsOfNumbers[half.BFloat16, half.BFloat16](t, rt)
}

// What a row holds does not reach the others, not even NaN and infinities; nor do weights reach other columns.
func TestGEMMWeightsKeepsRowsApart(t *testing.T) {
	rt, r := open(t), source(1070)
	const m, n, k = 40, 70, 256
	for _, wt := range []WeightType{WeightQ4_K, WeightQ5_0, WeightBF16} {
		w := randomRowExact(t, rt, r, wt, n, k)
		g := newWeightsProduct[float32, float32](t, rt, r, w, m, plain)
		want := g.run()
		x := asFloat32(g.x.get())
		bad := map[int]float32{0: float32(math.NaN()), 2: float32(math.Inf(1)), 31: float32(math.Inf(-1)), 39: math.MaxFloat32}
		for j, v := range bad {
			for c := range k {
				x[j*k+c] = v
			}
		}
		g.x.set(x)
		encode(t, rt, 1, g.call)
		for i, v := range g.out.get() {
			if _, spoilt := bad[i/n]; !spoilt && bitsOf(v) != bitsOf(want[i]) {
				t.Fatalf("%v: row %d, column %d: %v beside extreme rows, else %v", wt, i/n, i%n, v, want[i])
			}
			if i/n == 0 && v == v {
				t.Fatalf("%v: a row of NaN gives %v", wt, v)
			}
		}
	}
}
