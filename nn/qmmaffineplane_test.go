package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

var planeFormat = quant.AffineFormat{Bits: 4, GroupSize: 64, Scale: quant.ScaleBF16}

// Every number of vectors up to 32, with one to several tiles of rows and groups: against float64 with the vectors rounded as the first
// kernel says, within what sums of float32 lose; and against the vectors as they are within what rounding them costs on top.
func TestQMMAffinePlane(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(1510)
	var w worst
	for i := range 44 {
		m, n, k := i%32+1, 64*(i%3+1), 64*(i%5+1)
		if i%7 == 0 {
			n, k = 64, 64*13
		}
		a := uploadAffinePlane(t, rt, randomAffine(t, rt, r, planeFormat, n, k).host)
		x := normals(r, m*k, []float64{1, 1e4, 1e-4, 1e15, 1e-15}[i%5])
		p := newPlaneProduct(t, rt, a, x, m)
		encode(t, rt, 2, func(pass *runtime.Pass) error { return QMMAffinePlane(pass, p.a) })
		rounded, where := bf16s(x), fmt.Sprintf("%d vectors, %d rows of %d", m, n, k)
		got, want, size := widen(p.y.written()), oracle.GEMM(a.o, rounded, m), oracle.GEMMMagnitude(a.o, rounded, m)
		w.compare(t, where, got, want, func(i int) float64 { return size[i]*planeBudget(k) + 1e-36 })
		exact, dense := oracle.GEMM(a.o, x, m), weightMagnitude(a.o, x, m)
		var whole worst
		whole.compare(t, where+" without rounding", got, exact, func(i int) float64 { return dense[i]*0x1p-9*1.01 + size[i]*planeBudget(k)*1.01 + 1e-36 })
		// The scratch: the vectors in bfloat16, zeros to the end of a tile, and the groups' sums.
		table := widen(p.table.written())
		for j, v := range table {
			want := 0.0
			if j < m*k {
				want = float64(rounded[j])
			}
			if v != want {
				t.Fatalf("%s: number %d of the table: %v, want %v", where, j, v, want)
			}
		}
		for j, v := range p.sums.written() {
			row, g := j/(8*k/64)*8+j%8, j/8%(k/64)
			sum, size := 0.0, 0.0
			for _, v := range table[row*k+64*g:][:64] {
				sum, size = sum+v, size+math.Abs(v)
			}
			if math.Abs(float64(v)-sum) > 6*0x1p-24*size {
				t.Fatalf("%s: sum %d: %v, want %v", where, j, v, sum)
			}
		}
	}
	w.log(t, "2^-24 of the terms' magnitude for each column of a group and four of each group", "QMMAffinePlane")
}

// A vector is the same bits whatever the number of vectors and its place.
func TestQMMAffinePlanePlaces(t *testing.T) {
	rt, r := open(t), source(1511)
	const n, k, most = 128, 192, 32
	a := uploadAffinePlane(t, rt, randomAffine(t, rt, r, planeFormat, n, k).host)
	x := spread(r, normals(r, most*k, 1))
	all := newPlaneProduct(t, rt, a, x, most)
	encode(t, rt, 2, func(p *runtime.Pass) error { return QMMAffinePlane(p, all.a) })
	want := all.y.written()
	for _, part := range [][2]int{{0, 1}, {31, 1}, {3, 9}, {8, 24}, {5, 17}} {
		p := newPlaneProduct(t, rt, a, x[part[0]*k:][:part[1]*k], part[1])
		encode(t, rt, 2, func(pass *runtime.Pass) error { return QMMAffinePlane(pass, p.a) })
		sameElements(t, fmt.Sprint(part), want[part[0]*n:][:part[1]*n], p.y.written())
	}
}

func TestQMMAffinePlaneScratch(t *testing.T) {
	for _, c := range []struct{ m, cols, table, sums int }{{1, 64, 512, 8}, {8, 64, 512, 8}, {9, 128, 2048, 32}, {32, 64, 2048, 32}, {33, 64, 0, 0}, {0, 64, 0, 0}, {-1, 64, 0, 0}, {1, 32, 0, 0}, {1, 0, 0, 0}, {1, math.MaxInt, 0, 0}} {
		if table, sums := QMMAffinePlaneScratch(c.m, c.cols); table != c.table || sums != c.sums {
			t.Errorf("%+v: %d and %d", c, table, sums)
		}
	}
}
