package nn

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// gemvShapes: fewer rows than a simdgroup takes, ragged rows, several threadgroups, columns below, at and beyond the
// 512 of a step, every group size.
var gemvShapes = []struct{ rows, cols, group int }{
	{1, 32, 32}, {2, 64, 64}, {3, 96, 32}, {4, 128, 128}, {5, 160, 32}, {7, 256, 64}, {8, 256, 256}, {9, 320, 64}, {12, 512, 512},
	{13, 544, 32}, {31, 640, 128}, {33, 1024, 64}, {64, 768, 256}, {65, 1088, 64}, {2, 4096, 512}, {6, 5376, 128}, {257, 128, 64},
}

// gemvBudget is what a product may be off, relative to the sum of the magnitudes of its terms, scale * code * x and
// bias * x: the 17 roundings of a lane's step and the five levels of the tree over lanes are each 2^-24 of a partial sum
// that is far smaller than that sum.
const gemvBudget = 1.0 / (1 << 25)

func vector(x []half.BFloat16) []float32 { return half.Float32s(x) }

func TestGEMVQ4MLX(t *testing.T) {
	rt, r := open(t), source(21)
	var w worst
	for i, s := range gemvShapes {
		scale := []float64{1, 1e4, 1e-4, 1e30, 1e-25}[i%5]
		where := fmt.Sprintf("%+v scale %g", s, scale)
		m := randomBank(t, rt, r, s.rows, s.cols, s.group)
		x := half.BFloat16s(normals(r, s.cols, scale))
		in, y := newBuffer(t, rt, x), output[float32](t, rt, s.rows)
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, m.bank, in.s) })
		want, size := oracle.GEMVQ4(m.o, vector(x)), oracle.GEMVQ4Magnitude(m.o, vector(x))
		w.compare(t, where, widen(y.written()), want, func(i int) float64 { return size[i] * gemvBudget })
	}
	w.log(t, "2^-25 of the terms' magnitude", "GEMVQ4MLX")
}

// Banks whose codes, scales or biases are at their ends: all codes 15, a scale of 0, a bias of 0, negative scales, and
// one code different from zero at each place of a word in turn, which a wrong mask or shift would show.
func TestGEMVQ4MLXExtremeBanks(t *testing.T) {
	rt, r := open(t), source(22)
	const rows, cols, group = 9, 192, 64
	x := half.BFloat16s(normals(r, cols, 1))
	in := newBuffer(t, rt, x)
	bf := half.BFloat16FromFloat32
	for name, fill := range map[string]func(q *quant.Q4MLX){
		"all 15": func(q *quant.Q4MLX) {
			for i := range q.Packed {
				q.Packed[i] = 0xffffffff
			}
		},
		"all 0":    func(q *quant.Q4MLX) {},
		"scale 0":  func(q *quant.Q4MLX) { fillPairs(q, 0, bf(1.5)) },
		"bias 0":   func(q *quant.Q4MLX) { fillPairs(q, bf(1.5), 0) },
		"negative": func(q *quant.Q4MLX) { fillPairs(q, bf(-2), bf(-3)) },
		"large":    func(q *quant.Q4MLX) { fillPairs(q, bf(1e30), bf(-8e30)) },
		"small":    func(q *quant.Q4MLX) { fillPairs(q, bf(1e-30), bf(-8e-30)) },
	} {
		q := quant.Q4MLX{Rows: rows, Cols: cols, GroupSize: group, Packed: make([]uint32, rows*cols/8), ScalesBiases: make([]half.BFloat16, 2*rows*cols/group)}
		fillPairs(&q, bf(0.5), bf(-4))
		for i := range q.Packed {
			q.Packed[i] = 15 << (4 * (i % 8))
		}
		if name == "all 0" {
			clear(q.Packed)
		}
		fill(&q)
		m, y := upload(t, rt, q), output[float32](t, rt, rows)
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, m.bank, in.s) })
		want, size := oracle.GEMVQ4(m.o, vector(x)), oracle.GEMVQ4Magnitude(m.o, vector(x))
		var w worst
		w.compare(t, name, widen(y.written()), want, func(i int) float64 { return size[i] * gemvBudget })
	}
}

func fillPairs(q *quant.Q4MLX, scale, bias half.BFloat16) {
	for i := 0; i < len(q.ScalesBiases); i += 2 {
		q.ScalesBiases[i], q.ScalesBiases[i+1] = scale, bias
	}
}

// One row more or less must not change a row's result, and parts of a bank give the parts of the product.
func TestGEMVQ4MLXRowsAreIndependent(t *testing.T) {
	rt, r := open(t), source(23)
	m := randomBank(t, rt, r, 29, 256, 64)
	in, y := newBuffer(t, rt, half.BFloat16s(normals(r, 256, 1))), output[float32](t, rt, 29)
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, m.bank, in.s) })
	all := y.written()
	for _, c := range [][2]int{{0, 1}, {1, 6}, {3, 29}, {28, 29}, {8, 16}} {
		part, err := m.bank.RowRange(c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		out := output[float32](t, rt, c[1]-c[0])
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLX(p, out.s, part, in.s) })
		for i, v := range out.written() {
			if v != all[c[0]+i] {
				t.Fatalf("rows %v: row %d: %v, want %v", c, i, v, all[c[0]+i])
			}
		}
	}
}

func TestGEMVQ4MLXQKV(t *testing.T) {
	rt, r := open(t), source(24)
	var w worst
	for _, s := range []struct{ q, kv, cols, group int }{
		{1, 1, 32, 32}, {8, 8, 64, 64}, {9, 1, 96, 32}, {1, 9, 128, 128}, {16, 7, 256, 64}, {256, 128, 128, 64}, {33, 17, 320, 64},
		{5, 64, 512, 256}, {64, 5, 544, 32}, {7, 7, 640, 128}, {40, 24, 1024, 512}, {12, 4, 2560, 64},
	} {
		where := fmt.Sprintf("%+v", s)
		wq, wk, wv := randomBank(t, rt, r, s.q, s.cols, s.group), randomBank(t, rt, r, s.kv, s.cols, s.group), randomBank(t, rt, r, s.kv, s.cols, s.group)
		x := half.BFloat16s(normals(r, s.cols, 1))
		in := newBuffer(t, rt, x)
		outs := []*buffer[float32]{output[float32](t, rt, s.q), output[float32](t, rt, s.kv), output[float32](t, rt, s.kv)}
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMVQ4MLXQKV(p, GEMVQKV{Q: outs[0].s, K: outs[1].s, V: outs[2].s, WQ: wq.bank, WK: wk.bank, WV: wv.bank, X: in.s})
		})
		q, k, v := oracle.GEMVQ4QKV(wq.o, wk.o, wv.o, vector(x))
		for i, m := range []matrix{wq, wk, wv} {
			size := oracle.GEMVQ4Magnitude(m.o, vector(x))
			w.compare(t, fmt.Sprint(where, " ", i), widen(outs[i].written()), [][]float64{q, k, v}[i], func(i int) float64 { return size[i] * gemvBudget })
			// The same kernel alone gives the same bits.
			alone := output[float32](t, rt, m.host.Rows)
			encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLX(p, alone.s, m.bank, in.s) })
			for j, b := range alone.bits() {
				if b != outs[i].bits()[j] {
					t.Fatalf("%s: matrix %d, row %d: %#x, alone %#x", where, i, j, outs[i].bits()[j], b)
				}
			}
		}
	}
	w.log(t, "2^-25 of the terms' magnitude", "GEMVQ4MLXQKV")
}

// gateUpAllowed propagates the errors of the two products through gelu(g) * u.
func gateUpAllowed(gate, up matrix, x []float32) func(i int) float64 {
	g, u := oracle.GEMVQ4(gate.o, x), oracle.GEMVQ4(up.o, x)
	gs, us := oracle.GEMVQ4Magnitude(gate.o, x), oracle.GEMVQ4Magnitude(up.o, x)
	const b = gemvBudget
	return func(i int) float64 {
		// The slope of gelu is at most 1.13; gelu itself is computed within some 1e-6 of its value where that is not tiny.
		gelu := math.Abs(oracle.GELUTanh(g[i]))
		return 1.13*gs[i]*b*math.Abs(u[i]) + (gelu+1e-6)*us[i]*b + (2e-6*gelu+1e-30)*math.Abs(u[i]) + 1e-37
	}
}

func TestGEMVQ4MLXGateUpGELU(t *testing.T) {
	rt, r := open(t), source(25)
	var w32, w16 worst
	for i, s := range gemvShapes {
		// Gates from far in the flat part of GELU to far in the linear one.
		scale := []float64{0.1, 1, 0.01, 100, 1e6}[i%5]
		where := fmt.Sprintf("%+v scale %g", s, scale)
		gate, up := randomBank(t, rt, r, s.rows, s.cols, s.group), randomBank(t, rt, r, s.rows, s.cols, s.group)
		x := half.BFloat16s(normals(r, s.cols, scale))
		in, mid32, mid16 := newBuffer(t, rt, x), output[float32](t, rt, s.rows), output[half.BFloat16](t, rt, s.rows)
		encode(t, rt, 2, func(p *runtime.Pass) error {
			if err := GEMVQ4MLXGateUpGELU(p, mid32.s, gate.bank, up.bank, in.s); err != nil {
				return err
			}
			return GEMVQ4MLXGateUpGELU(p, mid16.s, gate.bank, up.bank, in.s)
		})
		want := oracle.GEMVQ4GateUpGELU(gate.o, up.o, vector(x))
		allowed := gateUpAllowed(gate, up, vector(x))
		got32 := mid32.written()
		w32.compare(t, where, widen(got32), want, allowed)
		w16.compare(t, where, widen(mid16.written()), want, func(i int) float64 { return allowed(i) + math.Abs(want[i])/256 })
		for j, b := range mid16.get() {
			if b != half.BFloat16FromFloat32(got32[j]) {
				t.Fatalf("%s: row %d: bfloat16 %v of float32 %v", where, j, b, got32[j])
			}
		}
	}
	w32.log(t, "errors of the products, propagated,", "GEMVQ4MLXGateUpGELU")
	w16.log(t, "errors of the products, propagated, and 2^-8 of the value,", "GEMVQ4MLXGateUpGELU")
}

func TestGEMVRecorded(t *testing.T) {
	rt, r := open(t), source(26)
	const rows, kv, cols, group = 21, 13, 320, 64
	a, b, k, v := randomBank(t, rt, r, rows, cols, group), randomBank(t, rt, r, rows, cols, group), randomBank(t, rt, r, kv, cols, group), randomBank(t, rt, r, kv, cols, group)
	x := newBuffer(t, rt, half.BFloat16s(normals(r, cols, 1)))
	vary := func(i int) { x.set(half.BFloat16s(normals(r, cols, float64(i+1)))) }

	y := output[float32](t, rt, rows)
	gemv := func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, a.bank, x.s) }
	replays(t, rt, []target{y}, vary, gemv)
	twin(t, rt, []target{y}, []scalar{{slot: 5, u: rows}, {slot: 6, u: cols}, {slot: 7, u: group}}, gemv,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeGEMVQ4MLX(p, y.s, a.bank, x.s, bind)
		})

	ok, ov := output[float32](t, rt, kv), output[float32](t, rt, kv)
	operands := GEMVQKV{Q: y.s, K: ok.s, V: ov.s, WQ: a.bank, WK: k.bank, WV: v.bank, X: x.s}
	qkv := func(p *runtime.Pass) error { return GEMVQ4MLXQKV(p, operands) }
	replays(t, rt, []target{y, ok, ov}, vary, qkv)
	twin(t, rt, []target{y, ok, ov}, []scalar{{slot: 10, u: rows}, {slot: 11, u: kv}, {slot: 12, u: cols}, {slot: 13, u: group}, {slot: 14, u: 3}, {slot: 15, u: 2}}, qkv,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeGEMVQ4MLXQKV(p, operands, bind)
		})

	mid := output[half.BFloat16](t, rt, rows)
	gateUp := func(p *runtime.Pass) error { return GEMVQ4MLXGateUpGELU(p, mid.s, a.bank, b.bank, x.s) }
	replays(t, rt, []target{mid}, vary, gateUp)
	scalars := []scalar{{slot: 8, u: rows}, {slot: 9, u: cols}, {slot: 10, u: group}, {slot: 11, u: 1}}
	twin(t, rt, []target{mid}, scalars, gateUp, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeGEMVQ4MLXGateUpGELU(p, mid.s, a.bank, b.bank, x.s, bind)
	})
	scalars[3].u = 0
	twin(t, rt, []target{y}, scalars, func(p *runtime.Pass) error { return GEMVQ4MLXGateUpGELU(p, y.s, a.bank, b.bank, x.s) },
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeGEMVQ4MLXGateUpGELU(p, y.s, a.bank, b.bank, x.s, bind)
		})
}

func TestGEMVRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(27)
	m, other := randomBank(t, rt, r, 8, 64, 64), randomBank(t, rt, r, 8, 64, 32)
	wide, tall, theirs := randomBank(t, rt, r, 8, 128, 64), randomBank(t, rt, r, 9, 64, 64), randomBank(t, foreign, r, 8, 64, 64)
	x, y := output[half.BFloat16](t, rt, 68), output[float32](t, rt, 24)
	fx, fy := output[half.BFloat16](t, foreign, 64), output[float32](t, foreign, 8)
	type vec = runtime.Slice[half.BFloat16]
	type slice = runtime.Slice[float32]
	y8 := y.s.Slice(0, 8)
	gemv := func(y slice, w Q4MLXBank, x vec) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return alike(t, GEMVQ4MLX(p, y, w, x), ValidateGEMVQ4MLX(rt, y, w, x)) }
	}
	outs := []target{x, y}
	refuses(t, rt, "nn.GEMVQ4MLX", outs, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMVQ4MLX(nil, y8, m.bank, x.s) }, runtime.ErrMisuse, nil},
		{"zero bank", gemv(y8, Q4MLXBank{}, x.s), runtime.ErrShape, []string{"w", "zero bank"}},
		{"x short", gemv(y8, m.bank, x.s.Slice(0, 63)), runtime.ErrShape, []string{"x", "63", "64"}},
		{"x not aligned", gemv(y8, m.bank, x.s.Slice(1, 65)), runtime.ErrShape, []string{"x", "multiple of 8 bytes"}},
		{"y short", gemv(y.s.Slice(0, 7), m.bank, x.s), runtime.ErrShape, []string{"y", "7"}},
		{"bank foreign", gemv(y8, theirs.bank, x.s), runtime.ErrForeign, []string{"w"}},
		{"x foreign", gemv(y8, m.bank, fx.s), runtime.ErrForeign, []string{"x"}},
		{"y foreign", gemv(fy.s, m.bank, x.s), runtime.ErrForeign, []string{"y"}},
		{"x zero", gemv(y8, m.bank, vec{}), runtime.ErrShape, []string{"x"}},
	})

	base := GEMVQKV{Q: y8, K: y.s.Slice(8, 16), V: y.s.Slice(16, 24), WQ: m.bank, WK: m.bank, WV: m.bank, X: x.s}
	qkv := func(change func(a *GEMVQKV)) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			a := base
			change(&a)
			return alike(t, GEMVQ4MLXQKV(p, a), ValidateGEMVQ4MLXQKV(rt, a))
		}
	}
	refuses(t, rt, "nn.GEMVQ4MLXQKV", outs, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMVQ4MLXQKV(nil, base) }, runtime.ErrMisuse, nil},
		{"WQ zero", qkv(func(a *GEMVQKV) { a.WQ = Q4MLXBank{} }), runtime.ErrShape, []string{"WQ"}},
		{"WK zero", qkv(func(a *GEMVQKV) { a.WK = Q4MLXBank{} }), runtime.ErrShape, []string{"WK"}},
		{"WK columns", qkv(func(a *GEMVQKV) { a.WK = wide.bank }), runtime.ErrShape, []string{"WK", "128 columns"}},
		{"WV groups", qkv(func(a *GEMVQKV) { a.WV = other.bank }), runtime.ErrShape, []string{"WV", "groups of 32"}},
		{"WV rows", qkv(func(a *GEMVQKV) { a.WV = tall.bank }), runtime.ErrShape, []string{"WV", "9 rows"}},
		{"WV foreign", qkv(func(a *GEMVQKV) { a.WV = theirs.bank }), runtime.ErrForeign, []string{"WV"}},
		{"X not aligned", qkv(func(a *GEMVQKV) { a.X = x.s.Slice(2, 66) }), runtime.ErrShape, []string{"X"}},
		{"X short", qkv(func(a *GEMVQKV) { a.X = x.s.Slice(8, 68) }), runtime.ErrShape, []string{"X"}},
		{"Q short", qkv(func(a *GEMVQKV) { a.Q = y.s.Slice(0, 7) }), runtime.ErrShape, []string{"Q"}},
		{"V foreign", qkv(func(a *GEMVQKV) { a.V = fy.s }), runtime.ErrForeign, []string{"V"}},
		{"Q over K", qkv(func(a *GEMVQKV) { a.Q = y.s.Slice(1, 9) }), runtime.ErrOverlap, []string{"Q", "K"}},
		{"V is K", qkv(func(a *GEMVQKV) { a.V = a.K }), runtime.ErrOverlap, []string{"K", "V"}},
	})

	gateUp := func(mid slice, a, b Q4MLXBank, x vec) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			return alike(t, GEMVQ4MLXGateUpGELU(p, mid, a, b, x), ValidateGEMVQ4MLXGateUpGELU(rt, mid, a, b, x))
		}
	}
	mid16 := output[half.BFloat16](t, rt, 12)
	gateUp16 := func(mid vec, x vec) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return GEMVQ4MLXGateUpGELU(p, mid, m.bank, m.bank, x) }
	}
	refuses(t, rt, "nn.GEMVQ4MLXGateUpGELU", append(outs, mid16), []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMVQ4MLXGateUpGELU(nil, y8, m.bank, m.bank, x.s) }, runtime.ErrMisuse, nil},
		{"gate zero", gateUp(y8, Q4MLXBank{}, m.bank, x.s), runtime.ErrShape, []string{"wGate"}},
		{"up zero", gateUp(y8, m.bank, Q4MLXBank{}, x.s), runtime.ErrShape, []string{"wUp"}},
		{"up columns", gateUp(y8, m.bank, wide.bank, x.s), runtime.ErrShape, []string{"wUp", "128"}},
		{"up rows", gateUp(y8, m.bank, tall.bank, x.s), runtime.ErrShape, []string{"wUp", "9 rows"}},
		{"up groups", gateUp(y8, m.bank, other.bank, x.s), runtime.ErrShape, []string{"wUp", "groups of 32"}},
		{"mid short", gateUp(y.s.Slice(0, 7), m.bank, m.bank, x.s), runtime.ErrShape, []string{"mid"}},
		{"mid foreign", gateUp(fy.s, m.bank, m.bank, x.s), runtime.ErrForeign, []string{"mid"}},
		{"mid half as long", gateUp16(mid16.s.Slice(0, 7), x.s), runtime.ErrShape, []string{"mid", "7"}},
		{"mid at an odd place", gateUp16(mid16.s.Slice(1, 9), x.s), runtime.ErrShape, []string{"mid", "multiple of 4"}},
		{"mid is x", gateUp16(x.s.Slice(0, 8), x.s), runtime.ErrOverlap, []string{"mid", "x"}},
	})
	encode(t, rt, 3, func(p *runtime.Pass) error {
		return errors.Join(gemv(y8, m.bank, x.s)(p), qkv(func(*GEMVQKV) {})(p), gateUp(y8, m.bank, m.bank, x.s)(p))
	})
	for _, err := range []error{ValidateGEMVQ4MLX(nil, y8, m.bank, x.s), ValidateGEMVQ4MLXQKV(nil, base), ValidateGEMVQ4MLXGateUpGELU(nil, y8, m.bank, m.bank, x.s)} {
		checkRefused(t, "", refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt"}}, err)
	}
}
