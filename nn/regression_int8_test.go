package nn

import (
	"fmt"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

// Mistakes that other libraries made with matrix products and recorded, in products of bytes; see regression_test.go.

// Shapes that are no multiple of a tile, and a number of products that is none of a step: each byte of the tail counts, one at
// a time, and what lies behind it does not.
func TestRegressionInt8Tails(t *testing.T) {
	rt := open(t)
	for _, k := range []int{1, 2, 3, 4, 5, 63, 64, 65, 66, 127, 129} {
		for layout := range 4 {
			d := GEMMInt8Dims{M: 2, N: 3, K: k, TransA: layout&2 != 0, TransB: layout&1 != 0}
			host := oracle.IntProduct{A: make([]int8, 2*k), B: make([]int8, 3*k), M: 2, N: 3, K: k, TransA: d.TransA, TransB: d.TransB}
			for i := range host.B {
				host.B[i] = int8(i%100 + 1)
			}
			a, b := bytesOf(t, rt, host.A), bytesOf(t, rt, host.B)
			sums := output[int32](t, rt, 6)
			for _, at := range []int{0, k - 1, k, 2*k - 1} {
				clear(host.A)
				host.A[at] = -7
				if err := a.Write(host.A); err != nil {
					t.Fatal(err)
				}
				sums.reset()
				encode(t, rt, 1, func(p *runtime.Pass) error { return GEMMInt8(p, sums.s, a, b, d) })
				sameSums(t, fmt.Sprintf("%+v with one at %d", d, at), sums.written(), host.Sums())
			}
		}
	}
}

// Operands that are views into longer memory, at every offset from a word: the offset counts, and alignment is not assumed.
func TestRegressionInt8AnyByte(t *testing.T) {
	rt, r := open(t), source(710)
	d := GEMMInt8Dims{M: 5, N: 6, K: 12}
	all := randomBytes(r, 300)
	whole, sums := bytesOf(t, rt, all), output[int32](t, rt, 4*30)
	for shift := range 4 {
		host := oracle.IntProduct{A: all[shift:], B: all[100+2*shift:], M: d.M, N: d.N, K: d.K}
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMMInt8(p, sums.s.Slice(30*shift, 30*shift+30), whole.Slice(shift, 300), whole.Slice(100+2*shift, 300), d)
		})
		sameSums(t, fmt.Sprint("shifted by ", shift), sums.get()[30*shift:30*shift+30], host.Sums())
	}
	sums.written()
}

// Products that the sign, the order of the operands, a transposed matrix, or rows and columns mixed up would change: numbers
// worked out by hand, for every kernel by its name, so that none is tested by another one's result.
func TestRegressionInt8EveryKernelByHand(t *testing.T) {
	rt := open(t)
	// a = (1 -2 3; 0 127 -128), b = (2 0; -1 4; -128 5)
	a, at := []int8{1, -2, 3, 0, 127, -128}, []int8{1, 0, -2, 127, 3, -128}
	b, bt := []int8{2, 0, -1, 4, -128, 5}, []int8{2, -1, -128, 0, 4, 5}
	want := []int64{2 + 2 - 384, -8 + 15, -127 + 16384, 508 - 640}
	scales := []float32{0.5, -2, 4, 0.25} // two for columns, two for rows
	s := newBuffer(t, rt, scales)
	ran := map[string]bool{}
	for layout := range 4 {
		d := GEMMInt8Dims{M: 2, N: 2, K: 3, TransA: layout&2 != 0, TransB: layout&1 != 0}
		left, right := bytesOf(t, rt, [][]int8{a, at}[layout>>1]), bytesOf(t, rt, [][]int8{b, bt}[layout&1])
		sums, scaled := output[int32](t, rt, 4), output[float32](t, rt, 4)
		encode(t, rt, 2, func(p *runtime.Pass) error {
			if err := GEMMInt8(p, sums.s, left, right, d); err != nil {
				return err
			}
			return GEMMInt8Scaled(p, scaled.s, left, right, GEMMInt8Scales{Columns: s.s.Slice(0, 2), Rows: s.s.Slice(2, 4)}, d)
		})
		sameSums(t, fmt.Sprintf("%+v", d), sums.written(), want)
		for i, v := range scaled.written() {
			if float64(v) != float64(want[i])*float64(scales[i%2])*float64(scales[2+i/2]) {
				t.Errorf("%+v: element %d is %v", d, i, v)
			}
		}
		ran[int8Kernels[layout]], ran[int8ScaledKernels[layout]] = true, true
	}
	if len(ran) != 8 {
		t.Errorf("%d kernels", len(ran))
	}
}
