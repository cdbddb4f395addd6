package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Numbers from the ends of what the types hold, zeros and cancelling sums.
func TestGEMMExtremes(t *testing.T) {
	rt, r := open(t), source(870)
	var w worst
	scaled := func(scale float64) func(n int) []float32 {
		return func(n int) []float32 { return normals(r, n, scale) }
	}
	list := func(of ...float32) func(n int) []float32 {
		return func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = of[r.IntN(len(of))]
			}
			return x
		}
	}
	d := GEMMDims{M: 34, N: 9, K: 45}
	cases := 0
	for name, draw := range map[string]func(n int) []float32{
		"large": scaled(1e16), "small": scaled(1e-18), "tiny": scaled(1e-24), "zeros": list(0, float32(math.Copysign(0, -1))), "cancelling": list(1e4, -1e4, 1e-4),
		"mixed": list(1e12, 1, -1e-12, 0, -1e12), "ones": list(1, -1),
	} {
		for trans := range 4 {
			d.TransA, d.TransB = trans&1 != 0, trans&2 != 0
			newDense[float32, float32](t, rt, draw, d, plain).verify(rt, name, &w)
			newDense[float32, half.BFloat16](t, rt, draw, d, plain).verify(rt, name+" bf16", &w)
			cases += 2
		}
	}
	for name, draw := range map[string]func(n int) []float32{
		"largest": list(65504, -65504, 60000), "smallest": list(0x1p-24, -0x1p-14, 0x1p-15), "mixed": list(65504, 0x1p-24, -1), "zeros": list(0),
	} {
		newDense[float32, half.Float16](t, rt, draw, d, plain).verify(rt, name+" f16", &w)
		cases++
	}
	t.Logf("%d cases", cases)
	w.log(t, "2^-24 of the terms' magnitude per addition", "GEMM")
}

func (x *denseProduct[O, T]) verify(rt *runtime.Runtime, where string, w *worst) {
	x.t.Helper()
	x.check(where, x.run(rt), w)
}

// What is too large for the type of the result is infinite, what is exactly between two numbers goes to the even one, and
// subnormal results stay.
func TestGEMMRoundsResults(t *testing.T) {
	rt := open(t)
	one := newBuffer(t, rt, []float32{1, 1})
	for _, c := range []struct{ a, b, f16, bf16 float64 }{
		{65504, 0, 65504, 65536}, {65504, 15, 65504, 65536}, {65504, 16, math.Inf(1), 65536}, {-65520, 0, math.Inf(-1), -65536}, {1e6, 0, math.Inf(1), 999424},
		{2048, 1, 2048, 2048}, {2050, 1, 2052, 2048}, {256, 1, 257, 256}, {258, 1, 259, 260}, {0x1p-24, 0, 0x1p-24, 0x1p-24}, {0x1p-25, 0, 0, 0x1p-25},
		{3 * 0x1p-25, 0, 0x1p-23, 3 * 0x1p-25}, {3e38, 3e38, math.Inf(1), math.Inf(1)}, {-0x1.ffp+127, 0, math.Inf(-1), math.Inf(-1)},
	} {
		a := newBuffer(t, rt, []float32{float32(c.a), float32(c.b)})
		h, b := output[half.Float16](t, rt, 2), output[half.BFloat16](t, rt, 2)
		encode(t, rt, 4, func(p *runtime.Pass) error {
			for _, err := range []error{
				GEMM(p, h.s.Slice(0, 1), a.s, one.s, GEMMDims{M: 1, N: 1, K: 2}), GEMV(p, h.s.Slice(1, 2), a.s, one.s, GEMVDims{Rows: 1, Cols: 2}),
				GEMM(p, b.s.Slice(0, 1), a.s, one.s, GEMMDims{M: 1, N: 1, K: 2}), GEMV(p, b.s.Slice(1, 2), a.s, one.s, GEMVDims{Rows: 1, Cols: 2, Trans: true}),
			} {
				if err != nil {
					return err
				}
			}
			return nil
		})
		for i := range 2 {
			if got := float64(h.get()[i].Float32()); got != c.f16 {
				t.Errorf("%v + %v in f16 is %v, want %v", c.a, c.b, got, c.f16)
			}
			if got := float64(b.get()[i].Float32()); got != c.bf16 {
				t.Errorf("%v + %v in bf16 is %v, want %v", c.a, c.b, got, c.bf16)
			}
		}
	}
}

// A number that is none, or not finite, reaches what it is a part of, and nothing else: not through the zeros around a tile,
// nor from one product of a batch to the next.
func TestGEMMKeepsElementsApart(t *testing.T) {
	rt := open(t)
	const m, n, k, batch = 35, 34, 19, 3
	for trans := range 4 {
		d := GEMMDims{M: m, N: n, K: k, TransA: trans&1 != 0, TransB: trans&2 != 0, Batch: batch, StrideA: m * k, StrideB: k * n, StrideOut: m * n}
		a, b := make([]half.Float16, batch*m*k), make([]half.Float16, batch*k*n)
		for i := range a {
			a[i] = half.Float16FromFloat32(float32(i%5 + 1))
		}
		for i := range b {
			b[i] = half.Float16FromFloat32(float32(i%7 + 1))
		}
		at := func(row, col, rows, cols int, trans bool) int {
			if trans {
				return col*rows + row
			}
			return row*cols + col
		}
		a[m*k+at(33, 18, m, k, d.TransA)] = 0x7e00 // NaN in row 33 of product 1
		a[2*m*k+at(2, 0, m, k, d.TransA)] = 0x7c00 // infinity in row 2 of product 2
		b[at(18, 32, k, n, d.TransB)] = 0xfc00     // -infinity in column 32 of product 0
		ba, bb, out := newBuffer(t, rt, a), newBuffer(t, rt, b), output[float32](t, rt, batch*m*n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMM(p, out.s, ba.s, bb.s, d) })
		for i, v := range out.written() {
			product, row, col := i/(m*n), i/n%m, i%n
			nan, pos, neg := product == 1 && row == 33, product == 2 && row == 2, product == 0 && col == 32
			if v != v != nan || math.IsInf(float64(v), 1) != pos || math.IsInf(float64(v), -1) != neg {
				t.Fatalf("%+v: product %d, row %d, column %d is %v", d, product, row, col, v)
			}
		}
	}
}

// An element has the same bits whatever M and N are, where its row and column are, in which batch it is computed, how the
// operands are stored and where they start.
func TestGEMMElementsAreIndependent(t *testing.T) {
	rt, r := open(t), source(871)
	const m, n, k = 70, 66, 37
	a, b := elementsOf[half.BFloat16](normals(r, m*k, 1)), elementsOf[half.BFloat16](normals(r, k*n, 1))
	transposed := func(x []half.BFloat16, rows, cols int) []half.BFloat16 {
		y := make([]half.BFloat16, len(x))
		for i, v := range x {
			y[i%cols*rows+i/cols] = v
		}
		return y
	}
	bt := transposed(b, k, n)
	ba, bb, bbt, bat := newBuffer(t, rt, a), newBuffer(t, rt, b), newBuffer(t, rt, bt), newBuffer(t, rt, transposed(a, m, k))
	out := output[float32](t, rt, m*n)
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMM(p, out.s, ba.s, bb.s, GEMMDims{M: m, N: n, K: k}) })
	want := out.written()
	for trans := 1; trans < 4; trans++ {
		out.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error {
			x, y := ba.s, bb.s
			if trans&1 != 0 {
				x = bat.s
			}
			if trans&2 != 0 {
				y = bbt.s
			}
			return GEMM(p, out.s, x, y, GEMMDims{M: m, N: n, K: k, TransA: trans&1 != 0, TransB: trans&2 != 0})
		})
		sameElements(t, fmt.Sprint("stored in way ", trans), want, out.written())
	}
	// Parts of the rows and of the columns; a row at a time, in a batch.
	for _, c := range []struct{ from, rows, left, cols int }{{0, 1, 0, n}, {5, 40, 0, n}, {69, 1, 0, n}, {0, m, 3, 60}, {31, 2, 65, 1}, {1, 33, 1, 33}} {
		part := output[float32](t, rt, c.rows*c.cols)
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMM(p, part.s, ba.s.Slice(c.from*k, (c.from+c.rows)*k), bbt.s.Slice(c.left*k, (c.left+c.cols)*k), GEMMDims{M: c.rows, N: c.cols, K: k, TransB: true})
		})
		var part2 []float32
		for i := range c.rows {
			part2 = append(part2, want[(c.from+i)*n+c.left:][:c.cols]...)
		}
		sameElements(t, fmt.Sprintf("%+v", c), part2, part.written())
	}
	out.reset()
	encode(t, rt, 1, func(p *runtime.Pass) error {
		return GEMM(p, out.s, ba.s, bb.s, GEMMDims{M: 1, N: n, K: k, Batch: m, StrideA: k, StrideOut: n})
	})
	sameElements(t, "a batch of rows", want, out.written())
}
