package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

// reduceShapes are rows and columns: one element, ragged, a simdgroup, a threadgroup, beyond, many rows.
var reduceShapes = [][2]int{
	{0, 5}, {1, 1}, {1, 2}, {3, 31}, {2, 32}, {5, 33}, {300, 1}, {130, 17}, {7, 127}, {4, 128}, {3, 129}, {2, 1000}, {2, 1024}, {1, 1025}, {3, 4096}, {2, 4097}, {1, 20000},
}

// chain is how many additions in float32 lie between an element and the sum of its row: those of a thread, and ten of the
// simdgroups' trees.
func chain(cols int) float64 { return float64(ceilDiv(cols, RowThreads(cols)) + 10) }

func TestSoftmaxRowsF32(t *testing.T) {
	rt, r := open(t), source(240)
	var w worst
	for i, s := range reduceShapes {
		rows, cols := s[0], s[1]
		x := normals(r, rows*cols, []float64{1, 10, 100, 1e-3}[i%4])
		for j := 0; j < rows*cols; j += 11 {
			x[j] = []float32{float32(math.Inf(-1)), -math.MaxFloat32, 300, -1e4}[r.IntN(4)]
		}
		in, out := newBuffer(t, rt, x), output[float32](t, rt, rows*cols)
		encode(t, rt, min(rows, 1), func(p *runtime.Pass) error { return SoftmaxRowsF32(p, out.s, in.s, rows, cols) })
		want, magnitude := oracle.SoftmaxRows(x, rows, cols), oracle.SoftmaxRowsMagnitude(x, rows, cols)
		where := fmt.Sprint(s)
		// The difference and the exponential are off in proportion to the magnitude, and so are the sum's; the sum adds its
		// roundings, the quotient one. Exponentials below 2^-126 may be flushed.
		w.compare(t, where, widen(out.written()), want, func(i int) float64 {
			return (4*magnitude[i]+(chain(cols)+20)*want[i])*0x1p-24 + 0x1p-125
		})
		in.untouched()
		encode(t, rt, min(rows, 1), func(p *runtime.Pass) error { return SoftmaxRowsF32(p, in.s, in.s, rows, cols) })
		sameBits(t, where+" in place", in, out)
	}
	w.log(t, "error budget", "SoftmaxRowsF32")
}

// Rows that the formula alone would make NaN of, and those that it should.
func TestSoftmaxRowsF32Extremes(t *testing.T) {
	rt := open(t)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	fill := func(cols int, v float32) []float32 {
		row := make([]float32, cols)
		for i := range row {
			row[i] = v
		}
		return row
	}
	with := func(row []float32, at int, v float32) []float32 {
		row[at] = v
		return row
	}
	for _, cols := range []int{1, 3, 32, 45, 1500} {
		var x []float32
		last := cols - 1
		for _, row := range [][]float32{
			fill(cols, -inf), fill(cols, -math.MaxFloat32), fill(cols, math.MaxFloat32), with(fill(cols, -inf), last, -5), with(fill(cols, 1), last, nan),
			with(fill(cols, 1), last, inf), fill(cols, 1000), with(fill(cols, -math.MaxFloat32), last, math.MaxFloat32), with(fill(cols, -inf), 0, nan),
			with(fill(cols, -1000), last, -999), // of which no exponential is left unless the maximum is their own
		} {
			x = append(x, row...)
		}
		rows := len(x) / cols
		in, out := newBuffer(t, rt, x), output[float32](t, rt, len(x))
		encode(t, rt, 1, func(p *runtime.Pass) error { return SoftmaxRowsF32(p, out.s, in.s, rows, cols) })
		want := oracle.SoftmaxRows(x, rows, cols)
		var w worst
		w.compare(t, fmt.Sprint(cols, " columns"), widen(out.written()), want, func(i int) float64 { return want[i] * (chain(cols) + 4) * 0x1p-24 })
	}
}

func TestRowSumF32(t *testing.T) {
	rt, r := open(t), source(241)
	var w worst
	for i, s := range reduceShapes {
		rows, cols := s[0], s[1]
		x := normals(r, rows*cols, math.Pow(10, float64(i%7-3)))
		in, out := newBuffer(t, rt, x), output[float32](t, rt, rows)
		encode(t, rt, min(rows, 1), func(p *runtime.Pass) error { return RowSumF32(p, out.s, in.s, rows, cols) })
		want, magnitude := oracle.RowSum(x, rows, cols), oracle.RowSumMagnitude(x, rows, cols)
		w.compare(t, fmt.Sprint(s), widen(out.written()), want, func(i int) float64 { return chain(cols) * 0x1p-24 * magnitude[i] })
		in.untouched()
	}
	w.log(t, "2^-24 of the sum of magnitudes, for each addition on the way,", "RowSumF32")
	// Whole numbers add up exactly, and every element counts once.
	for _, cols := range []int{1, 33, 1024, 4100} {
		x := make([]float32, 3*cols)
		for i := range x {
			x[i] = float32(i%7 - 2)
		}
		in, out := newBuffer(t, rt, x), output[float32](t, rt, 3)
		encode(t, rt, 1, func(p *runtime.Pass) error { return RowSumF32(p, out.s, in.s, 3, cols) })
		exact(t, fmt.Sprint("whole numbers ", cols), widen(out.written()), oracle.RowSum(x, 3, cols))
	}
	x := []float32{1, float32(math.NaN()), 2, 1, float32(math.Inf(1)), 3, float32(math.Inf(1)), 0, float32(math.Inf(-1)), -1, -2, float32(math.Inf(-1))}
	in, out := newBuffer(t, rt, x), output[float32](t, rt, 4)
	encode(t, rt, 1, func(p *runtime.Pass) error { return RowSumF32(p, out.s, in.s, 4, 3) })
	exact(t, "not finite", widen(out.written()), oracle.RowSum(x, 4, 3))
}

func TestRowMaxF32(t *testing.T) {
	defer logExact(t, "RowMaxF32")()
	rt, r := open(t), source(242)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, s := range reduceShapes {
		rows, cols := s[0], s[1]
		for _, v := range []float32{0, inf, -inf, nan, math.MaxFloat32} {
			x := normals(r, rows*cols, 10)
			for row := range rows {
				if v == -inf && row%2 == 0 {
					for i := range cols {
						x[row*cols+i] = -inf // throughout
					}
				} else if v != 0 {
					x[row*cols+r.IntN(cols)] = v
				} else {
					for i := range cols {
						x[row*cols+i] -= 100 // nothing positive
					}
				}
			}
			in, out := newBuffer(t, rt, x), output[float32](t, rt, rows)
			encode(t, rt, min(rows, 1), func(p *runtime.Pass) error { return RowMaxF32(p, out.s, in.s, rows, cols) })
			exact(t, fmt.Sprint(s, v), widen(out.written()), oracle.RowMax(x, rows, cols))
			in.untouched()
		}
	}
}

// Few threads per threadgroup give the same maxima and sums and softmaxes within their bounds.
func TestRowReduceFewThreads(t *testing.T) {
	for _, threads := range []int{32, 96, 1000} {
		rt, r := openOn(t, soft.Options{MaxThreads: threads}), source(243)
		x := normals(r, 2*4500, 3)
		in, soft, sum, top := newBuffer(t, rt, x), output[float32](t, rt, 9000), output[float32](t, rt, 2), output[float32](t, rt, 2)
		encode(t, rt, 3, func(p *runtime.Pass) error {
			if err := SoftmaxRowsF32(p, soft.s, in.s, 2, 4500); err != nil {
				return err
			}
			if err := RowSumF32(p, sum.s, in.s, 2, 4500); err != nil {
				return err
			}
			return RowMaxF32(p, top.s, in.s, 2, 4500)
		})
		var w worst
		want := oracle.SoftmaxRows(x, 2, 4500)
		w.compare(t, "softmax", widen(soft.written()), want, func(i int) float64 { return 2e-5*want[i] + 1e-30 })
		magnitude := oracle.RowSumMagnitude(x, 2, 4500)
		w.compare(t, "sum", widen(sum.written()), oracle.RowSum(x, 2, 4500), func(i int) float64 { return 1e-5 * magnitude[i] })
		exact(t, "max", widen(top.written()), oracle.RowMax(x, 2, 4500))
	}
}

func TestRowReduceRecorded(t *testing.T) {
	const rows, cols = 3, 400
	rt, r := open(t), source(244)
	x, out, one := newBuffer(t, rt, normals(r, rows*cols, 1)), output[float32](t, rt, rows*cols), output[float32](t, rt, rows)
	vary := func(i int) { x.set(normals(r, rows*cols, float64(i+1))) }
	type bind = func(*runtime.ScalarBinder) error
	for _, c := range []struct {
		out    target
		plain  func(p *runtime.Pass) error
		unsafe func(p *runtime.Pass, b bind) error
	}{
		{out, func(p *runtime.Pass) error { return SoftmaxRowsF32(p, out.s, x.s, rows, cols) },
			func(p *runtime.Pass, b bind) error { return UnsafeSoftmaxRowsF32(p, out.s, x.s, rows, cols, b) }},
		{one, func(p *runtime.Pass) error { return RowSumF32(p, one.s, x.s, rows, cols) },
			func(p *runtime.Pass, b bind) error { return UnsafeRowSumF32(p, one.s, x.s, rows, cols, b) }},
		{one, func(p *runtime.Pass) error { return RowMaxF32(p, one.s, x.s, rows, cols) },
			func(p *runtime.Pass, b bind) error { return UnsafeRowMaxF32(p, one.s, x.s, rows, cols, b) }},
	} {
		replays(t, rt, []target{c.out}, vary, c.plain)
		twin(t, rt, []target{c.out}, []scalar{{slot: 2, u: cols}, {slot: 3, u: rows}}, c.plain, c.unsafe)
	}
}

func TestRowReduceRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	x, out, f := output[float32](t, rt, 64), output[float32](t, rt, 64), output[float32](t, foreign, 64)
	type slice = runtime.Slice[float32]
	for fn, call := range map[string]func(p *runtime.Pass, out, x slice, rows, cols int) error{
		"nn.SoftmaxRowsF32": SoftmaxRowsF32, "nn.RowSumF32": RowSumF32, "nn.RowMaxF32": RowMaxF32,
	} {
		with := func(o, x slice, rows, cols int) func(*runtime.Pass) error {
			return func(p *runtime.Pass) error { return call(p, o, x, rows, cols) }
		}
		short, need := out.s.Slice(0, 1), "2"
		if fn == "nn.SoftmaxRowsF32" {
			short, need = out.s.Slice(0, 63), "64"
		}
		refuses(t, rt, fn, []target{x, out}, []refusal{
			{"no pass", func(*runtime.Pass) error { return call(nil, out.s, x.s, 2, 32) }, runtime.ErrMisuse, nil},
			{"rows negative", with(out.s, x.s, -1, 32), runtime.ErrShape, []string{"rows"}},
			{"no columns", with(out.s, x.s, 2, 0), runtime.ErrShape, []string{"cols"}},
			{"no columns without rows", with(out.s, x.s, 0, 0), runtime.ErrShape, []string{"cols"}},
			{"columns huge", with(out.s, x.s, 1, math.MaxInt), runtime.ErrShape, []string{"cols"}},
			{"product huge", with(out.s, x.s, math.MaxInt32, math.MaxInt32), runtime.ErrLimit, []string{"rows * cols"}},
			{"x short", with(out.s, x.s.Slice(1, 64), 2, 32), runtime.ErrShape, []string{"x", "63", "64"}},
			{"out short", with(short, x.s, 2, 32), runtime.ErrShape, []string{"out", need}},
			{"x foreign", with(out.s, f.s, 2, 32), runtime.ErrForeign, []string{"x"}},
			{"out foreign", with(f.s, x.s, 2, 32), runtime.ErrForeign, []string{"out"}},
			{"out shifted", with(x.s.Slice(1, 33), x.s.Slice(0, 32), 1, 32), runtime.ErrOverlap, []string{"out", "x"}},
			{"out zero", with(slice{}, x.s, 2, 32), runtime.ErrShape, []string{"out"}},
		})
	}
	for fn, call := range map[string]func(p *runtime.Pass, out, x slice, rows, cols int) error{"nn.RowSumF32": RowSumF32, "nn.RowMaxF32": RowMaxF32} {
		refuses(t, rt, fn, []target{x}, []refusal{
			{"out is the start of x", func(p *runtime.Pass) error { return call(p, x.s, x.s, 1, 1) }, runtime.ErrOverlap, []string{"out", "x"}},
		})
	}
}
