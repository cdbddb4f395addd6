package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// gemv is a product with a vector: denseProduct with one row, whose a is x and whose b is w.
type gemv[O, T Float] struct {
	*denseProduct[O, T]
	v GEMVDims
}

// newGEMV puts a product with a vector on the device.
func newGEMV[O, T Float](t testing.TB, rt *runtime.Runtime, draw func(n int) []float32, v GEMVDims, s terms) *gemv[O, T] {
	t.Helper()
	d := GEMMDims{M: 1, N: v.Rows, K: v.Cols, TransB: !v.Trans, Batch: v.Batch, StrideA: v.StrideX, StrideB: v.StrideW, StrideOut: v.StrideY}
	return &gemv[O, T]{newDense[O, T](t, rt, draw, d, s), v}
}

func (x *gemv[O, T]) call(p *runtime.Pass) error {
	if x.plain() {
		return GEMV(p, x.out.s, x.b.s, x.a.s, x.v)
	}
	return GEMVEpilogue(p, x.out.s, x.b.s, x.a.s, x.v, x.e)
}

func (x *gemv[O, T]) run(rt *runtime.Runtime) []O {
	x.t.Helper()
	x.out.reset()
	encode(x.t, rt, 1, x.call)
	x.a.untouched()
	x.b.untouched()
	return x.results(x.out)
}

// gemvDenseShapes have rows and columns at and beside what a lane, a simdgroup and a threadgroup take, in both kernels.
var gemvDenseShapes = []GEMVDims{
	{Rows: 1, Cols: 1}, {Rows: 3, Cols: 2}, {Rows: 4, Cols: 3}, {Rows: 5, Cols: 4}, {Rows: 7, Cols: 5}, {Rows: 8, Cols: 127}, {Rows: 9, Cols: 128}, {Rows: 11, Cols: 129},
	{Rows: 16, Cols: 130}, {Rows: 17, Cols: 131}, {Rows: 31, Cols: 256}, {Rows: 64, Cols: 7}, {Rows: 127, Cols: 8}, {Rows: 128, Cols: 9}, {Rows: 129, Cols: 33},
	{Rows: 130, Cols: 16}, {Rows: 131, Cols: 15}, {Rows: 257, Cols: 24}, {Rows: 2, Cols: 4099}, {Rows: 3, Cols: 4096}, {Rows: 6, Cols: 0}, {Rows: 1000, Cols: 1},
}

func testGEMV[O, T Float](t *testing.T, seed uint64) {
	rt, r := open(t), source(seed)
	var w worst
	for _, d := range gemvDenseShapes {
		for _, trans := range []bool{false, true} {
			d.Trans = trans
			x := newGEMV[O, T](t, rt, func(n int) []float32 { return normals(r, n, 1) }, d, plain)
			x.check(fmt.Sprintf("%+v", d), x.run(rt), &w)
		}
	}
	w.log(t, "2^-24 of the terms' magnitude per addition", "GEMV")
}

func TestGEMVDenseF32(t *testing.T)  { testGEMV[float32, float32](t, 840) }
func TestGEMVDenseF16(t *testing.T)  { testGEMV[float32, half.Float16](t, 841) }
func TestGEMVDenseBF16(t *testing.T) { testGEMV[float32, half.BFloat16](t, 842) }

// testGEMVExact is testExact for products with vectors.
func testGEMVExact[O, T Float](t *testing.T, rt *runtime.Runtime, seed int) (cases int) {
	r := source(uint64(850 + seed))
	for i, d := range gemvDenseShapes {
		if (i+seed)%3 != 0 && d.Cols < 4000 {
			continue
		}
		if i%2 == 0 {
			d.Batch, d.StrideW, d.StrideX, d.StrideY = 3, d.Rows*d.Cols+i%3*2, d.Cols+i%5, d.Rows+i%4
		}
		for _, trans := range []bool{false, true} {
			d.Trans = trans
			for _, s := range []terms{plain, {alpha: 2, c: true, beta: -3, bias: true, act: ActReLU}, {alpha: -1, c: true, beta: 1, inPlace: true}} {
				x := newGEMV[O, T](t, rt, func(n int) []float32 { return integers(r, n) }, d, s)
				got, want := x.run(rt), rounded[O](x.host.Result())
				for j, v := range widen(got) {
					if v != want[j] {
						t.Fatalf("%+v %+v: element %d is %v, want %v", d, s, j, v, want[j])
					}
				}
				cases++
			}
		}
	}
	return cases
}

func TestGEMVDenseExact(t *testing.T) {
	numbersOnly(t)
	rt, cases := open(t), 0
	for i, test := range []func(*testing.T, *runtime.Runtime, int) int{
		testGEMVExact[float32, float32], testGEMVExact[float32, half.Float16], testGEMVExact[float32, half.BFloat16],
		testGEMVExact[half.Float16, float32], testGEMVExact[half.Float16, half.Float16], testGEMVExact[half.Float16, half.BFloat16],
		testGEMVExact[half.BFloat16, float32], testGEMVExact[half.BFloat16, half.Float16], testGEMVExact[half.BFloat16, half.BFloat16],
	} {
		cases += test(t, rt, i)
	}
	t.Logf("%d cases, no error", cases)
}

// A part of the rows gives the part of the result, bit for bit, wherever it starts and whatever else there is.
func TestGEMVDenseRowsAreIndependent(t *testing.T) {
	rt, r := open(t), source(843)
	const rows, cols = 37, 260
	w, x := newBuffer(t, rt, elementsOf[half.BFloat16](normals(r, rows*cols, 1))), newBuffer(t, rt, elementsOf[half.BFloat16](normals(r, cols, 1)))
	all := output[float32](t, rt, rows)
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMV(p, all.s, w.s, x.s, GEMVDims{Rows: rows, Cols: cols}) })
	want := all.written()
	for _, c := range [][2]int{{0, 1}, {1, 6}, {3, 37}, {36, 37}, {8, 16}} {
		n := c[1] - c[0]
		y := output[float32](t, rt, n)
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMV(p, y.s, w.s.Slice(c[0]*cols, c[1]*cols), x.s, GEMVDims{Rows: n, Cols: cols})
		})
		sameElements(t, fmt.Sprint("rows ", c), want[c[0]:c[1]], y.written())
		// As a batch of rows, which is how a device without simdgroup matrices multiplies matrices.
		y.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMV(p, y.s, w.s.Slice(c[0]*cols, c[1]*cols), x.s, GEMVDims{Rows: 1, Cols: cols, Batch: n, StrideW: cols, StrideY: 1})
		})
		sameElements(t, fmt.Sprint("a batch of rows ", c), want[c[0]:c[1]], y.written())
	}
	// Elements of a transposed matrix do not depend on the others either.
	wt := newBuffer(t, rt, elementsOf[half.BFloat16](normals(r, rows*cols, 1)))
	encode(t, rt, 1, func(p *runtime.Pass) error {
		return GEMV(p, all.s, wt.s, x.s, GEMVDims{Rows: rows, Cols: cols, Trans: true})
	})
	want = all.written()
	for _, from := range []int{0, 1, 30, 36} {
		part := make([]half.BFloat16, 0, cols*(rows-from))
		for k := range cols {
			part = append(part, wt.get()[k*rows+from:(k+1)*rows]...)
		}
		wp, y := newBuffer(t, rt, part), output[float32](t, rt, rows-from)
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMV(p, y.s, wp.s, x.s, GEMVDims{Rows: rows - from, Cols: cols, Trans: true})
		})
		sameElements(t, fmt.Sprint("transposed from ", from), want[from:], y.written())
	}
}

// The activations, with everything else an epilogue has, on every type of result.
func TestGEMVDenseEpilogue(t *testing.T) {
	rt, r := open(t), source(844)
	var w worst
	cases := 0
	for act := ActNone; act <= ActSiLU; act++ {
		for i, d := range []GEMVDims{{Rows: 37, Cols: 40}, {Rows: 130, Cols: 9, Trans: true}} {
			s := terms{c: i == 0, bias: true, act: act, alpha: 0.75, beta: -1.5}
			x := newGEMV[float32, float32](t, rt, func(n int) []float32 { return normals(r, n, 2) }, d, s)
			x.check(fmt.Sprintf("%v %+v", act, d), x.run(rt), &w)
			cases++
		}
	}
	t.Logf("%d cases", cases)
	w.log(t, "2^-24 of the terms' magnitude per addition, and the activation's,", "GEMVEpilogue")
}

// A row with NaN is NaN behind every activation, and no other row is.
func TestGEMVDenseActivationsKeepNaN(t *testing.T) {
	rt := open(t)
	const rows, cols = 6, 5
	for act := ActNone; act <= ActSiLU; act++ {
		for _, trans := range []bool{false, true} {
			w := make([]float32, rows*cols)
			for i := range w {
				w[i] = float32(i%7 - 3)
			}
			at := 2*cols + 1
			if trans {
				at = rows + 2
			}
			w[at] = float32(math.NaN())
			in, x, y := newBuffer(t, rt, w), newBuffer(t, rt, []float32{1, 2, 3, 4, 5}), output[float32](t, rt, rows)
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return GEMVEpilogue(p, y.s, in.s, x.s, GEMVDims{Rows: rows, Cols: cols, Trans: trans}, Epilogue[float32]{Alpha: 1, Act: act})
			})
			for i, v := range y.get() {
				if nan := v != v; nan != (i == 2) {
					t.Errorf("%v, transposed %v: row %d is %v", act, trans, i, v)
				}
			}
		}
	}
}
