package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// rowExactCase is a shape of a product; k counts units of 4, 32 or 256 columns, by the type.
type rowExactCase struct{ m, n, units, batch int }

// Vectors from one to as many as a call takes, rows at and beside the packings, columns at and beside what a thread and a
// simdgroup takes, and so few rows that a row is split over several simdgroups.
var rowExactCases = []rowExactCase{
	{1, 1, 1, 1}, {8, 1, 2, 1}, {2, 2, 3, 1}, {3, 3, 5, 2}, {4, 4, 1, 3}, {5, 5, 31, 1}, {6, 7, 2, 2}, {7, 8, 33, 1}, {8, 9, 4, 2}, {1, 17, 7, 1}, {9, 5, 3, 1}, {12, 3, 2, 3},
	{16, 6, 1, 2}, {13, 4, 130, 1}, {2, 300, 1, 1}, {1, 2, 517, 1},
}

// unitsOf limits the columns of formats with long blocks.
func (c rowExactCase) k(t WeightType) int {
	unit := max(t.info().values, 4)
	return min(c.units, 4200/unit) * unit
}

// Every type, every shape, every layout: right, nothing is written elsewhere.
func TestRowExactMatvec(t *testing.T) {
	rt := open(t)
	for _, wt := range WeightTypes() {
		t.Run(wt.String(), func(t *testing.T) {
			r := source(600 + uint64(wt))
			var w worst
			for i, c := range rowExactCases {
				l := rowExactLayouts[i%len(rowExactLayouts)]
				s := l.shape(c.m, c.batch, c.n, c.k(wt))
				where := fmt.Sprintf("%s %+v", l.name, s)
				m := randomRowExact(t, rt, r, wt, c.n*c.batch+i%2, s.K) // a row too many does not matter
				nx, ny := s.lengths()
				x := normals(r, nx, []float64{1, 1e4, 1e-4, 1e15, 1e-15}[i%5])
				in, y := newBuffer(t, rt, x), output[float32](t, rt, ny)
				count := 1
				if c.m > MaxRowExactVectors {
					count = 2
				}
				encode(t, rt, count, func(p *runtime.Pass) error { return m.call(p, y.s, in.s, s) })
				how, err := RowExactFor(rt, wt, s)
				if err != nil {
					t.Fatal(err)
				}
				m.compare(t, &w, where, s, x, s.outputs(t, where, y), how.Simdgroups)
				if err := m.validate(y.s, in.s, s); err != nil {
					t.Error(err)
				}
			}
			w.log(t, "roundings of 2^-24 of the terms' magnitude", "RowExactMatvec")
		})
	}
}

// A product with a vector that is 1 at one column and 0 elsewhere is that column of the weights, to the bit: the kernels read
// every code, every scale and every bit of each format as the codec does.
func TestRowExactReadsWeights(t *testing.T) {
	numbersOnly(t)
	rt := open(t)
	for _, wt := range WeightTypes() {
		r := source(620 + uint64(wt))
		unit := max(wt.info().values, 4)
		k := max(unit, 8) * 2
		const n = 3
		m := randomRowExact(t, rt, r, wt, n, k)
		x := make([]float32, k*k)
		for c := range k {
			x[c*k+c] = 1
		}
		in, y := newBuffer(t, rt, x), output[float32](t, rt, k*n)
		encode(t, rt, k/8, func(p *runtime.Pass) error {
			for c := 0; c < k; c += 8 {
				if err := m.call(p, y.s.Slice(c*n, (c+8)*n), in.s.Slice(c*k, (c+8)*k), RowExactContiguous(8, n, k)); err != nil {
					return err
				}
			}
			return nil
		})
		got := y.written()
		for c := range k {
			for row := range n {
				if v, want := got[c*n+row], m.o.Data[row*k+c]; v != want {
					t.Fatalf("%v: row %d, column %d: %v, the codec has %v", wt, row, c, v, want)
				}
			}
		}
	}
}

// What a vector holds does not reach the others, not even NaN and infinities.
func TestRowExactKeepsVectorsApart(t *testing.T) {
	rt, r := open(t), source(640)
	const n, m, k = 5, 8, 256
	for _, wt := range []WeightType{WeightF16, WeightQ4_K, WeightQ5_0} {
		w := randomRowExact(t, rt, r, wt, n, k)
		x := normals(r, m*k, 1)
		in, y, bad := newBuffer(t, rt, x), output[float32](t, rt, m*n), output[float32](t, rt, m*n)
		call := func(y *buffer[float32]) {
			encode(t, rt, 1, func(p *runtime.Pass) error { return w.call(p, y.s, in.s, RowExactContiguous(m, n, k)) })
		}
		call(y)
		want := y.written()
		for j, v := range map[int]float32{0: float32(math.NaN()), 2: float32(math.Inf(1)), 3: float32(math.Inf(-1)), 7: math.MaxFloat32} {
			for c := range k {
				x[j*k+c] = v
			}
		}
		in.set(x)
		call(bad)
		for i, v := range bad.get() {
			switch i / n {
			case 0:
				if v == v {
					t.Fatalf("%v: a vector of NaN gives %v", wt, v)
				}
			case 1, 4, 5, 6:
				if bitsOf(v) != bitsOf(want[i]) {
					t.Fatalf("%v: vector %d, row %d: %v beside extreme vectors, else %v", wt, i/n, i%n, v, want[i])
				}
			}
		}
	}
}

// Weights that the codec quantised multiply as what they decode to.
func TestRowExactOfEncodedWeights(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(641)
	const n, k = 6, 512
	for _, f := range quant.BlockFormats() {
		data, w := make([]byte, n*k/f.Values()*f.Bytes()), make([]float32, n*k)
		if err := f.Encode(data, normals(r, n*k, 1)); err != nil {
			t.Fatal(err)
		}
		if err := f.Decode(w, data); err != nil {
			t.Fatal(err)
		}
		bank, err := UploadBlocks(rt, f, data, n, k)
		if err != nil {
			t.Fatal(err)
		}
		m := rowExactOf(rt, bank, oracle.Dense[float32]{Data: w, Rows: n, Cols: k})
		s := RowExactContiguous(2, n, k)
		x := normals(r, 2*k, 1)
		in, y := newBuffer(t, rt, x), output[float32](t, rt, 2*n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return m.call(p, y.s, in.s, s) })
		var worst worst
		m.compare(t, &worst, f.String(), s, x, y.written(), RowExactSimdgroups(m.t, n, k))
		if err := bank.Release(); err != nil {
			t.Error(err)
		}
	}
}
