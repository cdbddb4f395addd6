package nn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Mistakes that other libraries recorded of such products, each with the test that would have shown it.

// Rows, columns and sums of every length up to one beyond a matrix, a part and a tile. All elements of the result differ,
// so that each is the right one in its place.
func TestRegressionGEMMOddShapes(t *testing.T) {
	rt := open(t)
	const most = 66
	// a[m, k] = 1 where k = m mod K, else 0; b[k, n] = 1 + k * most + n: row m of the result is row m mod K of b.
	cases := 0
	for i, s := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65} {
		for j, d := range []GEMMDims{{M: s, N: most - s, K: 1 + s%9}, {M: 1 + s%9, N: s, K: most - s}, {M: most - s, N: 1 + s%9, K: s}, {M: s, N: s, K: s}} {
			d.TransA, d.TransB = (i+j)&1 != 0, (i+j)&2 != 0
			a, b := make([]float32, d.M*d.K), make([]float32, d.K*d.N)
			for m := range d.M {
				if d.TransA {
					a[m%d.K*d.M+m] = 1
				} else {
					a[m*d.K+m%d.K] = 1
				}
			}
			for k := range d.K {
				for n := range d.N {
					v := float32(1 + k*most + n)
					if d.TransB {
						b[n*d.K+k] = v
					} else {
						b[k*d.N+n] = v
					}
				}
			}
			ba, bb, out := newBuffer(t, rt, a), newBuffer(t, rt, b), output[float32](t, rt, d.M*d.N)
			encode(t, rt, 1, func(p *runtime.Pass) error { return GEMM(p, out.s, ba.s, bb.s, d) })
			for e, v := range out.written() {
				if want := float32(1 + e/d.N%d.K*most + e%d.N); v != want {
					t.Fatalf("%+v: row %d, column %d is %v, want %v", d, e/d.N, e%d.N, v, want)
				}
			}
			cases++
		}
	}
	if cases != 68 {
		t.Error(cases)
	}
}

// The last sums of a K that is no multiple of anything: each term counts, and what lies behind a row is not read. The
// operands end where their memory ends.
func TestRegressionGEMMTailOfK(t *testing.T) {
	rt := open(t)
	for k := 1; k <= 70; k += 3 {
		a, b := make([]half.BFloat16, k), make([]half.BFloat16, k)
		for i := range k {
			a[i], b[i] = half.BFloat16FromFloat32(float32(int(1)<<(i%8))), half.BFloat16FromFloat32(1)
		}
		want := float32(0)
		for _, v := range a {
			want += v.Float32()
		}
		sa, err := runtime.SliceOf(rt, a)
		if err != nil {
			t.Fatal(err)
		}
		sb, err := runtime.SliceOf(rt, b)
		if err != nil {
			t.Fatal(err)
		}
		out := output[float32](t, rt, 6)
		encode(t, rt, 6, func(p *runtime.Pass) error {
			for i := range 4 {
				if err := GEMM(p, out.s.Slice(i, i+1), sa, sb, GEMMDims{M: 1, N: 1, K: k, TransA: i&1 != 0, TransB: i&2 != 0}); err != nil {
					return err
				}
			}
			for i := range 2 {
				if err := GEMV(p, out.s.Slice(4+i, 5+i), sa, sb, GEMVDims{Rows: 1, Cols: k, Trans: i == 1}); err != nil {
					return err
				}
			}
			return nil
		})
		for i, v := range out.written() {
			if v != want {
				t.Fatalf("K %d, way %d: %v, want %v", k, i, v, want)
			}
		}
		sa.Release()
		sb.Release()
	}
}

// A C far larger than the product: it is added, once, and its rounding is the result's, which is what a budget must count.
func TestRegressionGEMMBudgetHasC(t *testing.T) {
	rt, r := open(t), source(890)
	var w worst
	x := newDense[float32, float32](t, rt, func(n int) []float32 { return normals(r, n, 1) }, GEMMDims{M: 33, N: 40, K: 9}, terms{alpha: 1e-3, c: true, beta: 1e4, inPlace: true})
	x.verify(rt, "large C", &w)
	// The same twice over: what the result replaces is what is added next.
	once := x.results(x.out)
	encode(t, rt, 1, x.call)
	x.host.C = once
	x.check("again", x.results(x.out), &w)
	w.log(t, "2^-24 of the terms' magnitude per addition", "GEMMEpilogue")
}

// More tiles than a panel of eight, each way, with a rest: a walk through panels must not leave any out or go beyond.
func TestRegressionGEMMMoreThanEightTiles(t *testing.T) {
	rt := open(t)
	for _, d := range []GEMMDims{{M: 9*32 + 1, N: 3, K: 1}, {M: 2, N: 17*32 - 1, K: 1}, {M: 9*64 + 1, N: 65, K: 1}, {M: 33, N: 8*64 + 1, K: 1}} {
		a, b := make([]float32, d.M), make([]float32, d.N)
		for i := range a {
			a[i] = float32(i + 1)
		}
		for i := range b {
			b[i] = float32(2*i + 1)
		}
		ba, bb, out := newBuffer(t, rt, a), newBuffer(t, rt, b), output[float32](t, rt, d.M*d.N)
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMM(p, out.s, ba.s, bb.s, d) })
		for i, v := range out.written() {
			if want := a[i/d.N] * b[i%d.N]; v != want {
				t.Fatalf("%+v: row %d, column %d is %v, want %v", d, i/d.N, i%d.N, v, want)
			}
		}
	}
}

// Results of a batch that overlap each other are refused, whatever the strides of the operands; results that touch are not.
func TestRegressionGEMMBatchedResultsOverlap(t *testing.T) {
	rt := open(t)
	a, b, out := newBuffer(t, rt, make([]float32, 12)), newBuffer(t, rt, make([]float32, 12)), output[float32](t, rt, 40)
	d := GEMMDims{M: 3, N: 3, K: 2, Batch: 3}
	for stride := range 9 {
		d.StrideOut = stride
		refuses(t, rt, "nn.GEMM", []target{out}, []refusal{{fmt.Sprint("stride ", stride), func(p *runtime.Pass) error { return GEMM(p, out.s, a.s, b.s, d) }, runtime.ErrOverlap, []string{"StrideOut"}}})
	}
	d.StrideOut = 9
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMM(p, out.s.Slice(0, 27), a.s, b.s, d) })
}

// Parts of larger slices, as later chunks are: where a part starts counts in every operand and every product of a batch.
func TestRegressionGEMMPartsOfSlices(t *testing.T) {
	rt, r := open(t), source(891)
	const m, n, k, chunks = 5, 37, 9, 4
	a, b, c, bias := newBuffer(t, rt, integers(r, chunks*m*k)), newBuffer(t, rt, integers(r, chunks*k*n)), newBuffer(t, rt, integers(r, chunks*m*n)), newBuffer(t, rt, integers(r, chunks*n))
	out := output[float32](t, rt, chunks*m*n)
	call := func(i, batch int) func(p *runtime.Pass) error {
		return func(p *runtime.Pass) error {
			return GEMMEpilogue(p, out.s.Slice(i*m*n, chunks*m*n), a.s.Slice(i*m*k, chunks*m*k), b.s.Slice(i*k*n, chunks*k*n),
				GEMMDims{M: m, N: n, K: k, Batch: batch, StrideA: m * k, StrideB: k * n, StrideOut: m * n},
				Epilogue[float32]{Alpha: 1, Beta: 1, C: c.s.Slice(i*m*n, chunks*m*n), StrideC: m * n, Bias: bias.s.Slice(i*n, (i+1)*n)})
		}
	}
	encode(t, rt, 3, func(p *runtime.Pass) error {
		for _, err := range []error{call(0, 1)(p), call(1, 2)(p), call(3, 1)(p)} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	av, bv, cv, biasv := a.get(), b.get(), c.get(), bias.get()
	for i, v := range out.written() {
		chunk, row, col := i/(m*n), i/n%m, i%n
		want := cv[i] + biasv[[chunks]int{0, 1, 1, 3}[chunk]*n+col]
		for j := range k {
			want += av[chunk*m*k+row*k+j] * bv[chunk*k*n+j*n+col]
		}
		if v != want {
			t.Fatalf("chunk %d, row %d, column %d is %v, want %v", chunk, row, col, v, want)
		}
	}
}

// Tests that look kernels up by names that do not exist test nothing: all kernels of the family are launched by some
// combination of types and shape, and they are exactly those of the library.
func TestRegressionDenseKernelNames(t *testing.T) {
	var launched, have []string
	for kind := range 3 {
		launched = append(launched, gemmDenseKernels[kind][0], gemmDenseKernels[kind][1], gemvDenseKernels[kind][0], gemvDenseKernels[kind][1])
	}
	for _, name := range metallib.DefaultInfo().Kernels {
		if strings.HasPrefix(name, "gemm_dense") || strings.HasPrefix(name, "gemv_dense") {
			have = append(have, name)
		}
	}
	slices.Sort(launched)
	if !slices.Equal(launched, have) {
		t.Errorf("nn launches %v, the library has %v", launched, have)
	}
	rt, r := open(t), source(892)
	draw := func(n int) []float32 { return integers(r, n) }
	right := func(name string, got []float32, want []float64) {
		t.Helper()
		for i, v := range widen(got) {
			if v != want[i] {
				t.Fatalf("%s: element %d is %v, want %v", name, i, v, want[i])
			}
		}
	}
	for _, tile := range []int{GEMMSmallTile, GEMMLargeTile} {
		d := GEMMDims{M: 40, N: 41, K: 42, Tile: tile}
		x, y, z := newDense[float32, float32](t, rt, draw, d, plain), newDense[float32, half.Float16](t, rt, draw, d, plain), newDense[float32, half.BFloat16](t, rt, draw, d, plain)
		right("f32", x.run(rt), x.host.Result())
		right("f16", y.run(rt), y.host.Result())
		right("bf16", z.run(rt), z.host.Result())
	}
	for _, trans := range []bool{false, true} {
		d := GEMVDims{Rows: 41, Cols: 42, Trans: trans}
		x, y, z := newGEMV[float32, float32](t, rt, draw, d, plain), newGEMV[float32, half.Float16](t, rt, draw, d, plain), newGEMV[float32, half.BFloat16](t, rt, draw, d, plain)
		right("f32", x.run(rt), x.host.Result())
		right("f16", y.run(rt), y.host.Result())
		right("bf16", z.run(rt), z.host.Result())
	}
	for _, name := range launched {
		if rt.KernelOrigin(name) == runtime.OriginNone {
			t.Errorf("%s did not run", name)
		}
	}
}

// Nothing is assumed of where operands start: from every element of a slice on, with and without an epilogue, the bits are
// the same.
func TestRegressionDenseAlignment(t *testing.T) {
	testAlignment[float32, float32](t)
	testAlignment[half.BFloat16, half.Float16](t)
}

func testAlignment[O, T Float](t *testing.T) {
	t.Helper()
	rt, r := open(t), source(893)
	const m, n, k, slack = 9, 36, 20, 9 // whose rows are multiples of four
	a, b, c, bias := normals(r, m*k, 1), normals(r, k*n, 1), normals(r, m*n, 1), normals(r, n, 1)
	var want, wantV []O
	for i := range slack {
		at := func(i int, x []float32) []float32 { return append(make([]float32, i), x...) }
		// Each operand at another start, and back to the first.
		ia, ib, ic, io := i, i*2%slack, i*4%slack, i*5%slack
		ba, bb := newBuffer(t, rt, elementsOf[T](at(ia, a))), newBuffer(t, rt, elementsOf[T](at(ib, b)))
		bc, bbias, out := newBuffer(t, rt, elementsOf[O](at(ic, c))), newBuffer(t, rt, at(i, bias)), output[O](t, rt, io+m*n)
		for trans := range 4 {
			d := GEMMDims{M: m, N: n, K: k, TransA: trans&1 != 0, TransB: trans&2 != 0}
			out.reset()
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return GEMMEpilogue(p, out.s.Slice(io, io+m*n), ba.s.Slice(ia, ia+m*k), bb.s.Slice(ib, ib+k*n), d,
					Epilogue[O]{Alpha: 2, Beta: 0.5, C: bc.s.Slice(ic, ic+m*n), Bias: bbias.s.Slice(i, i+n), Act: ActSiLU})
			})
			got := out.get()[io:]
			if i == 0 {
				want = append(want, got...)
			}
			sameElements(t, fmt.Sprintf("%+v, start %d", d, i), want[trans*m*n:][:m*n], got)
		}
		for trans := range 2 {
			out.reset()
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return GEMVEpilogue(p, out.s.Slice(io, io+n), bb.s.Slice(ib, ib+k*n), ba.s.Slice(ia, ia+k), GEMVDims{Rows: n, Cols: k, Trans: trans == 1},
					Epilogue[O]{Alpha: 2, Beta: 0.5, C: bc.s.Slice(ic, ic+n), Bias: bbias.s.Slice(i, i+n), Act: ActSiLU})
			})
			got := out.get()[io:][:n]
			if i == 0 {
				wantV = append(wantV, got...)
			}
			sameElements(t, fmt.Sprintf("vector, transposed %d, start %d", trans, i), wantV[trans*n:][:n], got)
		}
	}
}

// Two products with the same operand in one launch have the bits of each alone: sums that share a loop drifted.
func TestRegressionDenseTogetherAndAlone(t *testing.T) {
	rt, r := open(t), source(894)
	const rows, cols = 13, 70
	w, x := newBuffer(t, rt, elementsOf[half.BFloat16](normals(r, 2*rows*cols, 1))), newBuffer(t, rt, elementsOf[half.BFloat16](normals(r, cols, 1)))
	both, alone := output[float32](t, rt, 4*rows), output[float32](t, rt, 4*rows)
	encode(t, rt, 6, func(p *runtime.Pass) error {
		for i, trans := range []bool{false, true} {
			d := GEMVDims{Rows: rows, Cols: cols, Trans: trans, Batch: 2, StrideW: rows * cols, StrideY: rows}
			if err := GEMV(p, both.s.Slice(2*i*rows, 2*(i+1)*rows), w.s, x.s, d); err != nil {
				return err
			}
			d.Batch = 1
			for j := range 2 {
				at := 2*i + j
				if err := GEMV(p, alone.s.Slice(at*rows, (at+1)*rows), w.s.Slice(j*rows*cols, (j+1)*rows*cols), x.s, d); err != nil {
					return err
				}
			}
		}
		return nil
	})
	sameElements(t, "two together", alone.written(), both.written())
}

// Infinities and numbers that are none come out as arithmetic has it: no kernel has an infinity of its own that a compiler
// could fold, and none tests for them. (That no shader writes INFINITY is TestShadersAvoidFragileMath.)
func TestRegressionDenseInfinities(t *testing.T) {
	rt := open(t)
	inf := math.Inf(1)
	for _, c := range []struct{ a, b, want float64 }{
		{inf, 1, inf}, {-inf, 1, -inf}, {inf, -inf, -inf}, {inf, 0, math.NaN()}, {math.NaN(), 0, math.NaN()}, {math.MaxFloat32, 2, inf}, {-math.MaxFloat32, 2, -inf},
	} {
		for _, k := range []int{1, 9, 130} { // the rest of the sum is zeros
			a, b := make([]float32, k), make([]float32, k)
			a[k-1], b[k-1] = float32(c.a), float32(c.b)
			ba, bb, out := newBuffer(t, rt, a), newBuffer(t, rt, b), output[float32](t, rt, 3)
			encode(t, rt, 3, func(p *runtime.Pass) error {
				for _, err := range []error{GEMM(p, out.s.Slice(0, 1), ba.s, bb.s, GEMMDims{M: 1, N: 1, K: k}), GEMV(p, out.s.Slice(1, 2), ba.s, bb.s, GEMVDims{Rows: 1, Cols: k}),
					GEMV(p, out.s.Slice(2, 3), ba.s, bb.s, GEMVDims{Rows: 1, Cols: k, Trans: true})} {
					if err != nil {
						return err
					}
				}
				return nil
			})
			for i, v := range widen(out.get()) {
				if v != c.want && !(v != v && c.want != c.want) {
					t.Errorf("%v times %v at the end of %d, way %d: %v, want %v", c.a, c.b, k, i, v, c.want)
				}
			}
		}
	}
}
