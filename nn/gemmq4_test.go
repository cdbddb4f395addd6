package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Every number of vectors, every shape: right, and for each vector the bits of the product alone, in both layouts; with a
// residual those bits plus it, with one rounding. Nothing beyond m vectors is written.
func TestGEMMQ4MLX(t *testing.T) {
	rt, r := open(t), source(501)
	var w, wa worst
	for i, s := range gemvShapes {
		m := i%MaxGEMMVectors + 1
		where := fmt.Sprintf("%+v %d vectors", s, m)
		b := randomBoth(t, rt, uint64(510+i), s.rows, s.cols, s.group)
		x := half.BFloat16s(normals(r, m*s.cols, []float64{1, 1e4, 1e-4, 1e30, 1e-25}[i%5]))
		resid := normals(r, m*s.rows+4, 1) // longer than needed, with numbers there
		in, add := newBuffer(t, rt, x), newBuffer(t, rt, resid)
		f := func(n int) *buffer[float32] { return output[float32](t, rt, n) }
		y, tile, sum, sumTile, inPlace := f(m*s.rows), f(m*s.rows), f(m*s.rows), f(m*s.rows), newBuffer(t, rt, resid)
		alone := f(m * s.rows)
		encode(t, rt, 5+m, func(p *runtime.Pass) error {
			for _, err := range []error{GEMMQ4MLX(p, y.s, b.m.bank, in.s, m), GEMMQ4MLX(p, tile.s, b.tile, in.s, m),
				GEMMQ4MLXAdd(p, sum.s, b.m.bank, in.s, add.s, m), GEMMQ4MLXAdd(p, sumTile.s, b.tile, in.s, add.s, m),
				GEMMQ4MLXAdd(p, inPlace.s, b.tile, in.s, inPlace.s, m)} {
				if err != nil {
					return err
				}
			}
			for i := range m {
				if err := GEMVQ4MLX(p, alone.s.Slice(i*s.rows, (i+1)*s.rows), b.m.bank, in.s.Slice(i*s.cols, (i+1)*s.cols)); err != nil {
					return err
				}
			}
			return nil
		})
		want, size := oracle.GEMM(b.o, vector(x), m), oracle.GEMMMagnitude(b.o, vector(x), m)
		got := y.written()
		w.compare(t, where, widen(got), want, func(i int) float64 { return size[i] * gemvBudget })
		sameBits(t, where+": alone", alone, y)
		sameBits(t, where+": interleaved", y, tile)
		wantSum := oracle.GEMMAdd(b.o, vector(x), resid[:m*s.rows], m)
		wa.compare(t, where, widen(sum.written()), wantSum, func(i int) float64 { return size[i]*gemvBudget + math.Abs(wantSum[i])/(1<<24) })
		for j, v := range sum.get() {
			if v != resid[j]+got[j] {
				t.Fatalf("%s: element %d: %v, want %v + %v", where, j, v, resid[j], got[j])
			}
		}
		sameBits(t, where+": interleaved sum", sum, sumTile)
		for j, v := range inPlace.get() {
			if j < m*s.rows && v != sum.get()[j] || j >= m*s.rows && v != resid[j] {
				t.Fatalf("%s in place: element %d: %v", where, j, v)
			}
		}
	}
	w.log(t, "2^-25 of the terms' magnitude", "GEMMQ4MLX")
	wa.log(t, "2^-25 of the terms' magnitude and 2^-24 of the value", "GEMMQ4MLXAdd")
}

// The bits of the products alone also where every addition rounds: neighbouring elements of x are of very different size.
func TestGEMMQ4MLXKeepsTheOrder(t *testing.T) {
	rt, r := open(t), source(503)
	const rows, cols, group, m = 9, 544, 32, 5
	b := randomBoth(t, rt, 504, rows, cols, group)
	x := normals(r, m*cols, 1)
	for i := range x {
		x[i] *= float32(math.Pow(2, float64(r.IntN(40)-20)))
	}
	in, together, alone := newBuffer(t, rt, half.BFloat16s(x)), output[float32](t, rt, m*rows), output[float32](t, rt, m*rows)
	encode(t, rt, 1+m, func(p *runtime.Pass) error {
		for i := range m {
			if err := GEMVQ4MLX(p, alone.s.Slice(i*rows, (i+1)*rows), b.m.bank, in.s.Slice(i*cols, (i+1)*cols)); err != nil {
				return err
			}
		}
		return GEMMQ4MLX(p, together.s, b.tile, in.s, m)
	})
	together.written()
	sameBits(t, "together", together, alone)
}

func TestGEMMQ4MLXRecorded(t *testing.T) {
	rt, r := open(t), source(502)
	const rows, cols, group, m = 21, 320, 64, 5
	b := randomBoth(t, rt, 540, rows, cols, group)
	x, resid, y := newBuffer(t, rt, half.BFloat16s(normals(r, m*cols, 1))), newBuffer(t, rt, normals(r, m*rows, 1)), output[float32](t, rt, m*rows)
	scalars := []scalar{{slot: 5, u: rows}, {slot: 6, u: cols}, {slot: 7, u: group}, {slot: 8, u: m}}
	type pass = *runtime.Pass
	for name, e := range map[string]struct {
		call func(p pass) error
		twin func(p pass, bind binding) error
	}{
		"plain": {func(p pass) error { return GEMMQ4MLX(p, y.s, b.m.bank, x.s, m) },
			func(p pass, bind binding) error { return UnsafeGEMMQ4MLX(p, y.s, b.m.bank, x.s, m, bind) }},
		"interleaved": {func(p pass) error { return GEMMQ4MLX(p, y.s, b.tile, x.s, m) },
			func(p pass, bind binding) error { return UnsafeGEMMQ4MLX(p, y.s, b.tile, x.s, m, bind) }},
		"add": {func(p pass) error { return GEMMQ4MLXAdd(p, y.s, b.m.bank, x.s, resid.s, m) },
			func(p pass, bind binding) error { return UnsafeGEMMQ4MLXAdd(p, y.s, b.m.bank, x.s, resid.s, m, bind) }},
		"add interleaved": {func(p pass) error { return GEMMQ4MLXAdd(p, y.s, b.tile, x.s, resid.s, m) },
			func(p pass, bind binding) error { return UnsafeGEMMQ4MLXAdd(p, y.s, b.tile, x.s, resid.s, m, bind) }},
	} {
		t.Run(name, func(t *testing.T) {
			replays(t, rt, []target{y}, func(i int) { x.set(half.BFloat16s(normals(r, m*cols, float64(i+1)))) }, e.call)
			twin(t, rt, []target{y}, scalars, e.call, e.twin)
		})
	}
}

func TestGEMMQ4MLXRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	b, theirs := randomBoth(t, rt, 541, 8, 64, 32), randomBoth(t, foreign, 542, 8, 64, 32)
	x, y := output[half.BFloat16](t, rt, 9*64+4), output[float32](t, rt, 160)
	fy := output[float32](t, foreign, 80)
	gemm := func(y vec32, w Q4MLXBank, x vec16, m int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			return alike(t, GEMMQ4MLX(p, y, w, x, m), ValidateGEMMQ4MLX(rt, y, w, x, m))
		}
	}
	outs := []target{x, y}
	refuses(t, rt, "nn.GEMMQ4MLX", outs, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMMQ4MLX(nil, y.s, b.m.bank, x.s, 1) }, runtime.ErrMisuse, nil},
		{"m negative", gemm(y.s, b.m.bank, x.s, -1), runtime.ErrShape, []string{"m", "-1"}},
		{"m 9", gemm(y.s, b.m.bank, x.s, 9), runtime.ErrLimit, []string{"m", "9", "at most 8"}},
		{"m huge", gemm(y.s, b.m.bank, x.s, math.MaxInt), runtime.ErrShape, []string{"m"}},
		{"zero bank", gemm(y.s, Q4MLXBank{}, x.s, 1), runtime.ErrShape, []string{"w", "zero bank"}},
		{"zero bank and no vectors", gemm(y.s, Q4MLXBank{}, x.s, 0), runtime.ErrShape, []string{"w", "zero bank"}},
		{"x short", gemm(y.s, b.m.bank, x.s.Slice(0, 2*64-1), 2), runtime.ErrShape, []string{"x", "127", "128"}},
		{"x not aligned", gemm(y.s, b.m.bank, x.s.Slice(2, 66), 1), runtime.ErrShape, []string{"x", "multiple of 8"}},
		{"y short", gemm(y.s.Slice(0, 15), b.m.bank, x.s, 2), runtime.ErrShape, []string{"y", "15", "16"}},
		{"bank foreign", gemm(y.s, theirs.m.bank, x.s, 1), runtime.ErrForeign, []string{"w"}},
		{"y foreign", gemm(fy.s, b.m.bank, x.s, 1), runtime.ErrForeign, []string{"y"}},
	})
	add := func(y vec32, resid vec32, m int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			return alike(t, GEMMQ4MLXAdd(p, y, b.tile, x.s, resid, m), ValidateGEMMQ4MLXAdd(rt, y, b.tile, x.s, resid, m))
		}
	}
	y16 := y.s.Slice(0, 16)
	refuses(t, rt, "nn.GEMMQ4MLXAdd", outs, []refusal{
		{"m 9", add(y.s, y.s, 9), runtime.ErrLimit, []string{"m", "9"}},
		{"residual for one vector", add(y16, y.s.Slice(16, 24), 2), runtime.ErrShape, []string{"residual", "8", "16"}},
		{"residual zero", add(y16, vec32{}, 2), runtime.ErrShape, []string{"residual"}},
		{"residual foreign", add(y16, fy.s, 2), runtime.ErrForeign, []string{"residual"}},
		{"y half over residual", add(y16, y.s.Slice(8, 24), 2), runtime.ErrOverlap, []string{"y", "residual"}},
	})
	// No vectors are no work.
	encode(t, rt, 0, gemm(y.s, b.m.bank, x.s, 0))
	encode(t, rt, 0, add(y.s, y.s, 0))
	y.untouched()
}
