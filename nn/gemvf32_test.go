package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// gemvF32Budget is what these products may be off, relative to the sum of the magnitudes of their terms, scale * code * x and
// scale * zero * x or bias * x: each rounding is 2^-24 of a partial sum. A thread's share is a chain of at most some 8 to
// 512 of them per group, of random signs, and one per group; the measured worst is logged.
const gemvF32Budget = 1.0 / (1 << 23)

// Every product against float64, with weights around zero and far from it, and x from tiny to huge.
func TestGEMVF32(t *testing.T) {
	numbersOnly(t)
	rt := open(t)
	for i, f := range gemvFamilies() {
		t.Run(f.name, func(t *testing.T) {
			r := source(uint64(200 + i))
			var w worst
			for j, s := range f.shapes {
				scale := []float64{1, 1e4, 1e-4, 1e30, 1e-25}[j%5]
				m := f.random(t, rt, r, s, []float32{0, 3, -100}[j%3])
				x := normals(r, s.cols, scale)
				in, y := newBuffer(t, rt, x), output[float32](t, rt, s.rows)
				encode(t, rt, 1, func(p *runtime.Pass) error { return m.call(p, y.s, in.s) })
				want, size := oracle.GEMV(m.o, x), oracle.GEMVMagnitude(m.o, x)
				w.compare(t, fmt.Sprintf("%+v scale %g", s, scale), widen(y.written()), want, func(i int) float64 { return size[i] * gemvF32Budget })
			}
			t.Logf("%d shapes", len(f.shapes))
			w.log(t, "2^-23 of the terms' magnitude", f.name)
		})
	}
}

// One weight different from zero at a time, times x different at each place, which a wrong index, mask or shift would show.
func TestGEMVF32EveryPlace(t *testing.T) {
	rt := open(t)
	for i, f := range gemvFamilies() {
		t.Run(f.name, func(t *testing.T) {
			s := gemvShape{5, 96, 32}
			r := source(uint64(220 + i))
			m := f.random(t, rt, r, s, 0)
			x, y := newBuffer(t, rt, make([]float32, s.cols)), output[float32](t, rt, s.rows)
			for at := range s.cols {
				one := make([]float32, s.cols)
				one[at] = 3
				x.set(one)
				encode(t, rt, 1, func(p *runtime.Pass) error { return m.call(p, y.s, x.s) })
				for row, v := range y.written() {
					want, size := 3*m.o.At(row, at), 3*m.o.Magnitude(row, at)
					if math.Abs(float64(v)-want) > size*gemvF32Budget {
						t.Fatalf("column %d: row %d is %v, want %v", at, row, v, want)
					}
				}
			}
		})
	}
}

func TestGEMVF32Recorded(t *testing.T) {
	rt := open(t)
	for i, f := range gemvFamilies() {
		t.Run(f.name, func(t *testing.T) {
			r := source(uint64(240 + i))
			s := gemvShape{21, 320, 64}
			m := f.random(t, rt, r, s, 1)
			x, y := newBuffer(t, rt, normals(r, s.cols, 1)), output[float32](t, rt, s.rows)
			call := func(p *runtime.Pass) error { return m.call(p, y.s, x.s) }
			replays(t, rt, []target{y}, func(i int) { x.set(normals(r, s.cols, float64(i+1))) }, call)
			twin(t, rt, []target{y}, []scalar{{slot: 5, u: 21}, {slot: 6, u: 320}, {slot: 7, u: 64}}, call,
				func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error { return m.twin(p, y.s, x.s, bind) })
		})
	}
}

func TestGEMVF32Refuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	for i, f := range gemvFamilies() {
		t.Run(f.name, func(t *testing.T) {
			r := source(uint64(260 + i))
			s := gemvShape{8, 64, 32}
			m, theirs := f.random(t, rt, r, s, 0), f.random(t, foreign, r, s, 0)
			x, y := output[float32](t, rt, 68), output[float32](t, rt, 24)
			fx, fy := output[float32](t, foreign, 64), output[float32](t, foreign, 8)
			call := func(m product, y, x vec32) func(*runtime.Pass) error {
				return func(p *runtime.Pass) error { return alike(t, m.call(p, y, x), m.validate(rt, y, x)) }
			}
			y8 := y.s.Slice(0, 8)
			refuses(t, rt, "nn."+f.name, []target{x, y}, []refusal{
				{"no pass", func(*runtime.Pass) error { return m.call(nil, y8, x.s) }, runtime.ErrMisuse, nil},
				{"x short", call(m, y8, x.s.Slice(0, 63)), runtime.ErrShape, []string{"x", "63", "64"}},
				{"y short", call(m, y.s.Slice(0, 7), x.s), runtime.ErrShape, []string{"y", "7", "8"}},
				{"x zero", call(m, y8, vec32{}), runtime.ErrShape, []string{"x"}},
				{"y zero", call(m, vec32{}, x.s), runtime.ErrShape, []string{"y"}},
				{"bank foreign", call(theirs, y8, x.s), runtime.ErrForeign, []string{"w"}},
				{"x foreign", call(m, y8, fx.s), runtime.ErrForeign, []string{"x"}},
				{"y foreign", call(m, fy.s, x.s), runtime.ErrForeign, []string{"y"}},
				{"y in x", call(m, x.s.Slice(10, 18), x.s), runtime.ErrOverlap, []string{"y", "x"}},
			})
			encode(t, rt, 1, call(m, y8, x.s))
			y.reset()
			checkRefused(t, "nn.Validate"+f.name, refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt"}}, m.validate(nil, y8, x.s))
			refuses(t, rt, "nn.Unsafe"+f.name, []target{x, y}, []refusal{
				{"x short", func(p *runtime.Pass) error { return m.twin(p, y8, x.s.Slice(0, 63), nil) }, runtime.ErrShape, []string{"x"}},
			})
		})
	}
	x, y := output[float32](t, rt, 64), output[float32](t, rt, 8)
	for name, call := range map[string]func(p *runtime.Pass) error{
		"nn.GEMVQ8":           func(p *runtime.Pass) error { return GEMVQ8(p, y.s, Q8Bank{}, x.s) },
		"nn.GEMVQ4":           func(p *runtime.Pass) error { return GEMVQ4(p, y.s, Q4Bank{}, x.s) },
		"nn.GEMVQ4Tiled":      func(p *runtime.Pass) error { return GEMVQ4Tiled(p, y.s, Q4Bank{}, x.s) },
		"nn.GEMVQ4MLXF32":     func(p *runtime.Pass) error { return GEMVQ4MLXF32(p, y.s, Q4MLXBank{}, x.s) },
		"nn.GEMVQ4MLXBlocked": func(p *runtime.Pass) error { return GEMVQ4MLXBlocked(p, y.s, Q4MLXBlockedBank{}, x.s) },
	} {
		refuses(t, rt, name, []target{y}, []refusal{{"zero bank", call, runtime.ErrShape, []string{"w", "zero bank"}}})
	}
	// An output that lies in the bank's own scales.
	q, err := quant.QuantizeQ8(normals(source(280), 8*64, 1), 8, 64, 8)
	if err != nil {
		t.Fatal(err)
	}
	bank, _ := q8Matrix(t, rt, q)
	refuses(t, rt, "nn.GEMVQ8", nil, []refusal{{"y in w", func(p *runtime.Pass) error {
		return GEMVQ8(p, bank.Scales().Slice(0, 8), bank, x.s)
	}, runtime.ErrOverlap, []string{"y", "w"}}})
}

// Both signs of everything in the blocked gate and up product, with gates from the flat part of GELU to the linear one.
func TestGEMVQ4MLXBlockedGateUpGELU(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(281)
	var w32, w16 worst
	for i, s := range mlxF32Shapes {
		scale := []float64{0.1, 1, 0.01, 100, 1e6}[i%5]
		where := fmt.Sprintf("%+v scale %g", s, scale)
		qg, qu := quantizedMLX(t, r, s.rows, s.cols, s.group), quantizedMLX(t, r, s.rows, s.cols, s.group)
		gate, og := blockedMatrix(t, rt, qg)
		up, ou := blockedMatrix(t, rt, qu)
		x := normals(r, s.cols, scale)
		in, mid32, mid16 := newBuffer(t, rt, x), output[float32](t, rt, s.rows), output[half.BFloat16](t, rt, s.rows)
		g, u := output[float32](t, rt, s.rows), output[float32](t, rt, s.rows)
		encode(t, rt, 4, func(p *runtime.Pass) error {
			for _, err := range []error{GEMVQ4MLXBlockedGateUpGELU(p, mid32.s, gate, up, in.s), GEMVQ4MLXBlockedGateUpGELU(p, mid16.s, gate, up, in.s),
				GEMVQ4MLXBlocked(p, g.s, gate, in.s), GEMVQ4MLXBlocked(p, u.s, up, in.s)} {
				if err != nil {
					return err
				}
			}
			return nil
		})
		want, size := oracle.GateUp(og, ou, x, oracle.ActGELU), oracle.GateUpMagnitude(og, ou, x, oracle.ActGELU)
		us := oracle.GEMVMagnitude(ou, x)
		// The errors of both sums, and 2e-6 of the value for GELU itself, whose tail has an absolute error below 1e-36.
		allowed := func(i int) float64 { return size[i]*gemvF32Budget + 2e-6*math.Abs(want[i]) + 1e-30*us[i] }
		got32 := mid32.written()
		w32.compare(t, where, widen(got32), want, allowed)
		w16.compare(t, where, widen(mid16.written()), want, func(i int) float64 { return allowed(i) + math.Abs(want[i])/256 })
		for j, b := range mid16.get() {
			if b != half.BFloat16FromFloat32(got32[j]) {
				t.Fatalf("%s: row %d: bfloat16 %v of float32 %v", where, j, b, got32[j])
			}
		}
		// The products are those of the plain kernel: what GELU makes of its bits is what came out.
		gs, uv := g.written(), u.written()
		for j, v := range got32 {
			want := oracle.GELUTanh(float64(gs[j])) * float64(uv[j])
			if math.Abs(float64(v)-want) > 2e-6*math.Abs(want)+1e-30*math.Abs(float64(uv[j])) {
				t.Fatalf("%s: row %d: %v, want %v of gate %v and up %v", where, j, v, want, gs[j], uv[j])
			}
		}
	}
	w32.log(t, "errors of the products, propagated,", "GEMVQ4MLXBlockedGateUpGELU")
	w16.log(t, "errors of the products, propagated, and 2^-8 of the value,", "GEMVQ4MLXBlockedGateUpGELU")

	qg, qu := quantizedMLX(t, r, 21, 320, 64), quantizedMLX(t, r, 21, 320, 64)
	gate, _ := blockedMatrix(t, rt, qg)
	up, _ := blockedMatrix(t, rt, qu)
	x, mid, mid32 := newBuffer(t, rt, normals(r, 320, 1)), output[half.BFloat16](t, rt, 21), output[float32](t, rt, 21)
	call := func(p *runtime.Pass) error { return GEMVQ4MLXBlockedGateUpGELU(p, mid.s, gate, up, x.s) }
	replays(t, rt, []target{mid}, func(i int) { x.set(normals(r, 320, float64(i+1))) }, call)
	scalars := []scalar{{slot: 8, u: 21}, {slot: 9, u: 320}, {slot: 10, u: 64}, {slot: 11, u: 1}}
	twin(t, rt, []target{mid}, scalars, call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeGEMVQ4MLXBlockedGateUpGELU(p, mid.s, gate, up, x.s, bind)
	})

	short, _ := blockedMatrix(t, rt, quantizedMLX(t, r, 16, 320, 64)) // as much memory, other rows
	groups, _ := blockedMatrix(t, rt, quantizedMLX(t, r, 21, 320, 32))
	wide, _ := blockedMatrix(t, rt, quantizedMLX(t, r, 21, 384, 64))
	refuse := func(mid vec32, a, b Q4MLXBlockedBank, x vec32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			return alike(t, GEMVQ4MLXBlockedGateUpGELU(p, mid, a, b, x), ValidateGEMVQ4MLXBlockedGateUpGELU(rt, mid, a, b, x))
		}
	}
	encode(t, rt, 1, refuse(mid32.s, gate, up, x.s))
	refuses(t, rt, "nn.GEMVQ4MLXBlockedGateUpGELU", []target{mid32, mid}, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMVQ4MLXBlockedGateUpGELU(nil, mid32.s, gate, up, x.s) }, runtime.ErrMisuse, nil},
		{"gate zero", refuse(mid32.s, Q4MLXBlockedBank{}, up, x.s), runtime.ErrShape, []string{"wGate", "zero bank"}},
		{"up zero", refuse(mid32.s, gate, Q4MLXBlockedBank{}, x.s), runtime.ErrShape, []string{"wUp", "zero bank"}},
		{"up rows", refuse(mid32.s, gate, short, x.s), runtime.ErrShape, []string{"wUp", "16 rows"}},
		{"up groups", refuse(mid32.s, gate, groups, x.s), runtime.ErrShape, []string{"wUp", "groups of 32"}},
		{"up columns", refuse(mid32.s, gate, wide, x.s), runtime.ErrShape, []string{"wUp", "384 columns"}},
		{"mid short", refuse(mid32.s.Slice(0, 20), gate, up, x.s), runtime.ErrShape, []string{"mid", "20"}},
		{"x short", refuse(mid32.s, gate, up, x.s.Slice(0, 319)), runtime.ErrShape, []string{"x", "319"}},
		{"mid in x", refuse(x.s.Slice(0, 21), gate, up, x.s), runtime.ErrOverlap, []string{"mid", "x"}},
	})
}
