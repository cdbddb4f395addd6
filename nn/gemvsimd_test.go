package nn

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// both is a matrix in both layouts of the kernels with a simdgroup for four rows.
type both struct {
	m    matrix
	tile Q4MLXInterleavedBank
	o    oracle.Matrix // of tile
}

func randomBoth(t testing.TB, rt *runtime.Runtime, seed uint64, rows, cols, group int) both {
	t.Helper()
	q := quantizedMLX(t, source(seed), rows, cols, group)
	tile, o := interleavedMatrix(t, rt, q)
	return both{upload(t, rt, q), tile, o}
}

// The interleaved layout gives the right products, and the bits of the row-major one.
func TestGEMVQ4MLXInterleaved(t *testing.T) {
	rt, r := open(t), source(301)
	var w, wm worst
	for i, s := range gemvShapes {
		scale := []float64{1, 1e4, 1e-4, 1e10, 1e-12}[i%5]
		where := fmt.Sprintf("%+v scale %g", s, scale)
		b := randomBoth(t, rt, uint64(310+i), s.rows, s.cols, s.group)
		other := randomBoth(t, rt, uint64(340+i), s.rows, s.cols, s.group)
		x := half.BFloat16s(normals(r, s.cols, scale))
		in, y, plain := newBuffer(t, rt, x), output[float32](t, rt, s.rows), output[float32](t, rt, s.rows)
		mid32, mid16, midPlain := output[float32](t, rt, s.rows), output[half.BFloat16](t, rt, s.rows), output[float32](t, rt, s.rows)
		encode(t, rt, 5, func(p *runtime.Pass) error {
			for _, err := range []error{GEMVQ4MLX(p, y.s, b.tile, in.s), GEMVQ4MLX(p, plain.s, b.m.bank, in.s),
				GEMVQ4MLXGateUpGELU(p, mid32.s, b.tile, other.tile, in.s), GEMVQ4MLXGateUpGELU(p, mid16.s, b.tile, other.tile, in.s),
				GEMVQ4MLXGateUpGELU(p, midPlain.s, b.m.bank, other.m.bank, in.s)} {
				if err != nil {
					return err
				}
			}
			return nil
		})
		want, size := oracle.GEMV(b.o, vector(x)), oracle.GEMVMagnitude(b.o, vector(x))
		w.compare(t, where, widen(y.written()), want, func(i int) float64 { return size[i] * gemvBudget })
		wm.compare(t, where, widen(mid32.written()), oracle.GateUp(b.o, other.o, vector(x), oracle.ActGELU), gateUpAllowed(b.m, other.m, vector(x)))
		sameBits(t, where, plain, y)
		sameBits(t, where, midPlain, mid32)
		for j, v := range mid16.written() {
			if v != half.BFloat16FromFloat32(mid32.get()[j]) {
				t.Fatalf("%s: row %d: bfloat16 %v of float32 %v", where, j, v, mid32.get()[j])
			}
		}
	}
	w.log(t, "2^-25 of the terms' magnitude", "GEMVQ4MLX")
	wm.log(t, "errors of the products, propagated,", "GEMVQ4MLXGateUpGELU")
}

// A residual is added with one rounding to the bits of the product alone, in both layouts, also where it lies in the output.
func TestGEMVQ4MLXAdd(t *testing.T) {
	rt, r := open(t), source(302)
	var w worst
	for i, s := range gemvShapes {
		where := fmt.Sprintf("%+v", s)
		b := randomBoth(t, rt, uint64(370+i), s.rows, s.cols, s.group)
		x := half.BFloat16s(normals(r, s.cols, 1))
		// Longer than needed, with numbers there: a sentinel plus a number is a sentinel, and would hide a write too far.
		resid := normals(r, s.rows+4, []float64{1, 100, 1e-3}[i%3])
		in, add, plain := newBuffer(t, rt, x), newBuffer(t, rt, resid), output[float32](t, rt, s.rows)
		y, tile, inPlace := output[float32](t, rt, s.rows), output[float32](t, rt, s.rows), newBuffer(t, rt, resid)
		encode(t, rt, 4, func(p *runtime.Pass) error {
			for _, err := range []error{GEMVQ4MLX(p, plain.s, b.m.bank, in.s), GEMVQ4MLXAdd(p, y.s, b.m.bank, in.s, add.s),
				GEMVQ4MLXAdd(p, tile.s, b.tile, in.s, add.s), GEMVQ4MLXAdd(p, inPlace.s, b.m.bank, in.s, inPlace.s)} {
				if err != nil {
					return err
				}
			}
			return nil
		})
		want, size := oracle.GEMVAdd(b.o, vector(x), resid[:s.rows]), oracle.GEMVMagnitude(b.o, vector(x))
		got := y.written()
		w.compare(t, where, widen(got), want, func(i int) float64 { return size[i]*gemvBudget + math.Abs(want[i])/(1<<24) })
		for j, v := range plain.written() {
			if got[j] != resid[j]+v {
				t.Fatalf("%s: row %d: %v, want %v + %v", where, j, got[j], resid[j], v)
			}
		}
		sameBits(t, where+" interleaved", y, tile)
		for j, v := range inPlace.get() {
			if j < s.rows && v != got[j] || j >= s.rows && v != resid[j] {
				t.Fatalf("%s in place: element %d: %v", where, j, v)
			}
		}
		add.untouched()
	}
	w.log(t, "2^-25 of the terms' magnitude and 2^-24 of the value", "GEMVQ4MLXAdd")
}

// Keys and values, and queries with them, are bit for bit what each product alone is, in both layouts.
func TestGEMVQ4MLXKV(t *testing.T) {
	rt, r := open(t), source(303)
	var w worst
	for i, s := range gemvShapes {
		where := fmt.Sprintf("%+v", s)
		rowsQ := []int{1, 8, 13, 32}[i%4]
		bk, bv := randomBoth(t, rt, uint64(400+i), s.rows, s.cols, s.group), randomBoth(t, rt, uint64(430+i), s.rows, s.cols, s.group)
		bq := randomBoth(t, rt, uint64(460+i), rowsQ, s.cols, s.group)
		x := half.BFloat16s(normals(r, s.cols, 1))
		in := newBuffer(t, rt, x)
		f := func(n int) *buffer[float32] { return output[float32](t, rt, n) }
		k, v, kt, vt, k1, v1 := f(s.rows), f(s.rows), f(s.rows), f(s.rows), f(s.rows), f(s.rows)
		q1, q3, k3, v3 := f(rowsQ), f(rowsQ), f(s.rows), f(s.rows)
		encode(t, rt, 6, func(p *runtime.Pass) error {
			for _, err := range []error{
				GEMVQ4MLXKV(p, GEMVKV{K: k.s, V: v.s, WK: bk.m.bank, WV: bv.m.bank, X: in.s}),
				GEMVQ4MLXKV(p, GEMVKVOf[Q4MLXInterleavedBank]{K: kt.s, V: vt.s, WK: bk.tile, WV: bv.tile, X: in.s}),
				GEMVQ4MLX(p, k1.s, bk.m.bank, in.s), GEMVQ4MLX(p, v1.s, bv.m.bank, in.s), GEMVQ4MLX(p, q1.s, bq.m.bank, in.s),
				GEMVQ4MLXQKV(p, GEMVQKVOf[Q4MLXInterleavedBank]{Q: q3.s, K: k3.s, V: v3.s, WQ: bq.tile, WK: bk.tile, WV: bv.tile, X: in.s}),
			} {
				if err != nil {
					return err
				}
			}
			return nil
		})
		wantK, sizeK := oracle.GEMV(bk.o, vector(x)), oracle.GEMVMagnitude(bk.o, vector(x))
		wantV, sizeV := oracle.GEMV(bv.o, vector(x)), oracle.GEMVMagnitude(bv.o, vector(x))
		w.compare(t, where+" k", widen(k.written()), wantK, func(i int) float64 { return sizeK[i] * gemvBudget })
		w.compare(t, where+" v", widen(v.written()), wantV, func(i int) float64 { return sizeV[i] * gemvBudget })
		for _, pair := range [][2]target{{k1, k}, {v1, v}, {k1, kt}, {v1, vt}, {q1, q3}, {k1, k3}, {v1, v3}} {
			sameBits(t, where, pair[0], pair[1])
		}
	}
	w.log(t, "2^-25 of the terms' magnitude", "GEMVQ4MLXKV")
}

func TestGEMVSimdRecorded(t *testing.T) {
	rt, r := open(t), source(304)
	const rows, cols, group = 21, 320, 64
	a, b, c := randomBoth(t, rt, 490, rows, cols, group), randomBoth(t, rt, 491, rows, cols, group), randomBoth(t, rt, 492, 13, cols, group)
	x := newBuffer(t, rt, half.BFloat16s(normals(r, cols, 1)))
	resid := newBuffer(t, rt, normals(r, rows, 1))
	y, v, q := output[float32](t, rt, rows), output[float32](t, rt, rows), output[float32](t, rt, 13)
	mid := output[half.BFloat16](t, rt, rows)
	plain := []scalar{{slot: 5, u: rows}, {slot: 6, u: cols}, {slot: 7, u: group}}
	kv := []scalar{{slot: 9, u: rows}, {slot: 10, u: cols}, {slot: 11, u: group}, {slot: 12, u: 3}}
	rowMajor := GEMVKV{K: y.s, V: v.s, WK: a.m.bank, WV: b.m.bank, X: x.s}
	tiles := GEMVKVOf[Q4MLXInterleavedBank]{K: y.s, V: v.s, WK: a.tile, WV: b.tile, X: x.s}
	qkv := GEMVQKVOf[Q4MLXInterleavedBank]{Q: q.s, K: y.s, V: v.s, WQ: c.tile, WK: a.tile, WV: b.tile, X: x.s}
	type pass = *runtime.Pass
	for _, e := range []struct {
		name    string
		outs    []target
		scalars []scalar
		call    func(p pass) error
		twin    func(p pass, bind binding) error
	}{
		{"interleaved", []target{y}, plain, func(p pass) error { return GEMVQ4MLX(p, y.s, a.tile, x.s) },
			func(p pass, bind binding) error { return UnsafeGEMVQ4MLX(p, y.s, a.tile, x.s, bind) }},
		{"add", []target{y}, plain, func(p pass) error { return GEMVQ4MLXAdd(p, y.s, a.m.bank, x.s, resid.s) },
			func(p pass, bind binding) error { return UnsafeGEMVQ4MLXAdd(p, y.s, a.m.bank, x.s, resid.s, bind) }},
		{"add interleaved", []target{y}, plain, func(p pass) error { return GEMVQ4MLXAdd(p, y.s, a.tile, x.s, resid.s) },
			func(p pass, bind binding) error { return UnsafeGEMVQ4MLXAdd(p, y.s, a.tile, x.s, resid.s, bind) }},
		{"kv", []target{y, v}, kv, func(p pass) error { return GEMVQ4MLXKV(p, rowMajor) },
			func(p pass, bind binding) error { return UnsafeGEMVQ4MLXKV(p, rowMajor, bind) }},
		{"kv interleaved", []target{y, v}, kv, func(p pass) error { return GEMVQ4MLXKV(p, tiles) },
			func(p pass, bind binding) error { return UnsafeGEMVQ4MLXKV(p, tiles, bind) }},
		{"qkv interleaved", []target{q, y, v}, []scalar{{slot: 10, u: 13}, {slot: 11, u: rows}, {slot: 12, u: cols}, {slot: 13, u: group}, {slot: 14, u: 2}, {slot: 15, u: 3}},
			func(p pass) error { return GEMVQ4MLXQKV(p, qkv) }, func(p pass, bind binding) error { return UnsafeGEMVQ4MLXQKV(p, qkv, bind) }},
		{"gate up interleaved", []target{mid}, []scalar{{slot: 8, u: rows}, {slot: 9, u: cols}, {slot: 10, u: group}, {slot: 11, u: 1}},
			func(p pass) error { return GEMVQ4MLXGateUpGELU(p, mid.s, a.tile, b.tile, x.s) },
			func(p pass, bind binding) error {
				return UnsafeGEMVQ4MLXGateUpGELU(p, mid.s, a.tile, b.tile, x.s, bind)
			}},
	} {
		t.Run(e.name, func(t *testing.T) {
			replays(t, rt, e.outs, func(i int) { x.set(half.BFloat16s(normals(r, cols, float64(i+1)))) }, e.call)
			twin(t, rt, e.outs, e.scalars, e.call, e.twin)
		})
	}
}

func TestGEMVSimdRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	b, o := randomBoth(t, rt, 495, 8, 64, 32), randomBoth(t, rt, 496, 8, 64, 64)
	tall, wide, theirs := randomBoth(t, rt, 497, 7, 64, 32), randomBoth(t, rt, 498, 8, 96, 32), randomBoth(t, foreign, 499, 8, 64, 32)
	x, y := output[half.BFloat16](t, rt, 68), output[float32](t, rt, 24)
	fx, fy := output[half.BFloat16](t, foreign, 64), output[float32](t, foreign, 8)
	y8, r8 := y.s.Slice(0, 8), y.s.Slice(8, 16)
	outs := []target{x, y}
	add := func(y vec32, w Q4MLXInterleavedBank, x vec16, resid vec32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			return alike(t, GEMVQ4MLXAdd(p, y, w, x, resid), ValidateGEMVQ4MLXAdd(rt, y, w, x, resid))
		}
	}
	refuses(t, rt, "nn.GEMVQ4MLXAdd", outs, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMVQ4MLXAdd(nil, y8, b.m.bank, x.s, r8) }, runtime.ErrMisuse, nil},
		{"zero bank", add(y8, Q4MLXInterleavedBank{}, x.s, r8), runtime.ErrShape, []string{"w", "zero bank", "NewQ4MLXInterleavedBank"}},
		{"zero row-major bank", func(p *runtime.Pass) error { return GEMVQ4MLXAdd(p, y8, Q4MLXBank{}, x.s, r8) }, runtime.ErrShape, []string{"w", "zero bank"}},
		{"x short", add(y8, b.tile, x.s.Slice(0, 63), r8), runtime.ErrShape, []string{"x", "63"}},
		{"x not aligned", add(y8, b.tile, x.s.Slice(2, 66), r8), runtime.ErrShape, []string{"x", "multiple of 8"}},
		{"residual short", add(y8, b.tile, x.s, y.s.Slice(8, 15)), runtime.ErrShape, []string{"residual", "7"}},
		{"residual zero", add(y8, b.tile, x.s, vec32{}), runtime.ErrShape, []string{"residual"}},
		{"y short", add(y.s.Slice(0, 7), b.tile, x.s, r8), runtime.ErrShape, []string{"y", "7"}},
		{"y half over residual", add(y8, b.tile, x.s, y.s.Slice(4, 12)), runtime.ErrOverlap, []string{"y", "residual"}},
		{"bank foreign", add(y8, theirs.tile, x.s, r8), runtime.ErrForeign, []string{"w"}},
		{"x foreign", add(y8, b.tile, fx.s, r8), runtime.ErrForeign, []string{"x"}},
		{"residual foreign", add(y8, b.tile, x.s, fy.s), runtime.ErrForeign, []string{"residual"}},
		{"y foreign", add(fy.s, b.tile, x.s, r8), runtime.ErrForeign, []string{"y"}},
	})
	base := GEMVKVOf[Q4MLXInterleavedBank]{K: y8, V: r8, WK: b.tile, WV: b.tile, X: x.s}
	kv := func(change func(a *GEMVKVOf[Q4MLXInterleavedBank])) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			a := base
			change(&a)
			return alike(t, GEMVQ4MLXKV(p, a), ValidateGEMVQ4MLXKV(rt, a))
		}
	}
	type args = *GEMVKVOf[Q4MLXInterleavedBank]
	refuses(t, rt, "nn.GEMVQ4MLXKV", outs, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMVQ4MLXKV(nil, base) }, runtime.ErrMisuse, nil},
		{"WK zero", kv(func(a args) { a.WK = Q4MLXInterleavedBank{} }), runtime.ErrShape, []string{"WK", "zero bank"}},
		{"WV zero", kv(func(a args) { a.WV = Q4MLXInterleavedBank{} }), runtime.ErrShape, []string{"WV", "zero bank"}},
		{"WV groups", kv(func(a args) { a.WV = o.tile }), runtime.ErrShape, []string{"WV", "groups of 64"}},
		{"WV rows", kv(func(a args) { a.WV = tall.tile }), runtime.ErrShape, []string{"WV", "7 rows"}},
		{"WV columns", kv(func(a args) { a.WV = wide.tile }), runtime.ErrShape, []string{"WV", "96 columns"}},
		{"WV foreign", kv(func(a args) { a.WV = theirs.tile }), runtime.ErrForeign, []string{"WV"}},
		{"X short", kv(func(a args) { a.X = x.s.Slice(8, 68) }), runtime.ErrShape, []string{"X", "60"}},
		{"X not aligned", kv(func(a args) { a.X = x.s.Slice(1, 65) }), runtime.ErrShape, []string{"X"}},
		{"K short", kv(func(a args) { a.K = y.s.Slice(0, 7) }), runtime.ErrShape, []string{"K", "7"}},
		{"V short", kv(func(a args) { a.V = y.s.Slice(8, 15) }), runtime.ErrShape, []string{"V", "7"}},
		{"K foreign", kv(func(a args) { a.K = fy.s }), runtime.ErrForeign, []string{"K"}},
		{"V over K", kv(func(a args) { a.V = y.s.Slice(7, 15) }), runtime.ErrOverlap, []string{"K", "V"}},
	})
	encode(t, rt, 2, func(p *runtime.Pass) error { return errors.Join(add(y8, b.tile, x.s, r8)(p), kv(func(args) {})(p)) })
}
