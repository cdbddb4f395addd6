package nn

import (
	"errors"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestGEMMRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	const m, n, k = 4, 6, 5
	a, b, out := output[half.Float16](t, rt, 2*m*k), output[half.Float16](t, rt, 2*k*n), output[float32](t, rt, 4*m*n)
	c, bias := output[float32](t, rt, 2*m*n), output[float32](t, rt, n)
	fa, fout := output[half.Float16](t, foreign, m*k), output[float32](t, foreign, m*n)
	closed, err := runtime.NewSlice[float32](rt, m*n)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Release(); err != nil {
		t.Fatal(err)
	}
	d := GEMMDims{M: m, N: n, K: k}
	outs := []target{a, b, out, c, bias}
	type slice16 = runtime.Slice[half.Float16]
	gemm := func(out vec32, a, b slice16, change func(d *GEMMDims)) func(*runtime.Pass) error {
		d := d
		if change != nil {
			change(&d)
		}
		return func(p *runtime.Pass) error { return GEMM(p, out, a, b, d) }
	}
	dims := func(change func(d *GEMMDims)) func(*runtime.Pass) error { return gemm(out.s, a.s, b.s, change) }
	batched := func(change func(d *GEMMDims)) func(*runtime.Pass) error {
		return dims(func(d *GEMMDims) {
			d.Batch, d.StrideA, d.StrideB, d.StrideOut = 2, m*k, k*n, m*n
			change(d)
		})
	}
	refuses(t, rt, "nn.GEMM", outs, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMM(nil, out.s, a.s, b.s, d) }, runtime.ErrMisuse, nil},
		{"M negative", dims(func(d *GEMMDims) { d.M = -1 }), runtime.ErrShape, []string{"M", "-1"}},
		{"N negative", dims(func(d *GEMMDims) { d.N = -1 }), runtime.ErrShape, []string{"N", "-1"}},
		{"K negative", dims(func(d *GEMMDims) { d.K = -1 }), runtime.ErrShape, []string{"K", "-1"}},
		{"M huge", dims(func(d *GEMMDims) { d.M = math.MaxInt }), runtime.ErrShape, []string{"M"}},
		{"products overflow", dims(func(d *GEMMDims) { d.M, d.N = math.MaxInt32, math.MaxInt32 }), runtime.ErrLimit, []string{"M * N"}},
		{"batch negative", dims(func(d *GEMMDims) { d.Batch = -1 }), runtime.ErrShape, []string{"Batch", "-1"}},
		{"StrideA negative", batched(func(d *GEMMDims) { d.StrideA = -1 }), runtime.ErrShape, []string{"StrideA", "-1"}},
		{"StrideB huge", batched(func(d *GEMMDims) { d.StrideB = math.MaxInt }), runtime.ErrShape, []string{"StrideB"}},
		{"batch times stride overflows", batched(func(d *GEMMDims) { d.Batch, d.StrideA = math.MaxInt32, math.MaxInt32 }), runtime.ErrLimit, []string{"StrideA"}},
		{"results overlap", batched(func(d *GEMMDims) { d.StrideOut = m*n - 1 }), runtime.ErrOverlap, []string{"StrideOut", "23", "24"}},
		{"results in one place", batched(func(d *GEMMDims) { d.StrideOut = 0 }), runtime.ErrOverlap, []string{"StrideOut"}},
		{"tile", dims(func(d *GEMMDims) { d.Tile = 48 }), runtime.ErrShape, []string{"Tile", "48", "32", "64"}},
		{"a short", gemm(out.s, a.s.Slice(0, m*k-1), b.s, nil), runtime.ErrShape, []string{"a", "19", "20"}},
		{"b short", gemm(out.s, a.s, b.s.Slice(0, k*n-1), nil), runtime.ErrShape, []string{"b", "29", "30"}},
		{"out short", gemm(out.s.Slice(0, m*n-1), a.s, b.s, nil), runtime.ErrShape, []string{"out", "23", "24"}},
		{"a of the batch short", batched(func(d *GEMMDims) { d.StrideA++ }), runtime.ErrShape, []string{"a", "40", "41"}},
		{"b of the batch short", batched(func(d *GEMMDims) { d.StrideB++ }), runtime.ErrShape, []string{"b", "60", "61"}},
		{"out of the batch short", batched(func(d *GEMMDims) { d.StrideOut = 3*m*n + 1 }), runtime.ErrShape, []string{"out", "96", "97"}},
		{"a zero", gemm(out.s, slice16{}, b.s, nil), runtime.ErrShape, []string{"a"}},
		{"out zero", gemm(vec32{}, a.s, b.s, nil), runtime.ErrShape, []string{"out"}},
		{"out closed", gemm(closed, a.s, b.s, nil), runtime.ErrClosed, []string{"out"}},
		{"a foreign", gemm(out.s, fa.s, b.s, nil), runtime.ErrForeign, []string{"a"}},
		{"out foreign", gemm(fout.s, a.s, b.s, nil), runtime.ErrForeign, []string{"out"}},
		{"out over a", func(p *runtime.Pass) error {
			return GEMM(p, a.s.Slice(m*k-1, 2*m*k), a.s, b.s, GEMMDims{M: m, N: k, K: k})
		}, runtime.ErrOverlap, []string{"out", "a"}},
		{"out over b", func(p *runtime.Pass) error {
			return GEMM(p, b.s.Slice(k*n-1, 2*k*n), a.s, b.s, d)
		}, runtime.ErrOverlap, []string{"out", "b"}},
	})
	epilogue := func(change func(e *Epilogue[float32])) func(*runtime.Pass) error {
		e := Epilogue[float32]{Alpha: 1, Beta: 1, C: c.s, StrideC: m * n, Bias: bias.s, Act: ActReLU}
		change(&e)
		d := GEMMDims{M: m, N: n, K: k, Batch: 2, StrideA: m * k, StrideB: k * n, StrideOut: m * n}
		return func(p *runtime.Pass) error { return GEMMEpilogue(p, out.s, a.s, b.s, d, e) }
	}
	type e32 = Epilogue[float32]
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	refuses(t, rt, "nn.GEMMEpilogue", outs, []refusal{
		{"alpha", epilogue(func(e *e32) { e.Alpha = nan }), runtime.ErrScalar, []string{"Alpha", "NaN"}},
		{"beta", epilogue(func(e *e32) { e.Beta = inf }), runtime.ErrScalar, []string{"Beta", "Inf"}},
		{"activation", epilogue(func(e *e32) { e.Act = ActSiLU + 1 }), runtime.ErrScalar, []string{"Act", "Activation(4)"}},
		{"StrideC negative", epilogue(func(e *e32) { e.StrideC = -1 }), runtime.ErrShape, []string{"StrideC", "-1"}},
		{"C missing", epilogue(func(e *e32) { e.C = vec32{} }), runtime.ErrShape, []string{"C"}},
		{"C short", epilogue(func(e *e32) { e.C = c.s.Slice(0, 2*m*n-1) }), runtime.ErrShape, []string{"C", "47", "48"}},
		{"C foreign", epilogue(func(e *e32) { e.C, e.StrideC = fout.s, 0 }), runtime.ErrForeign, []string{"C"}},
		{"C closed", epilogue(func(e *e32) { e.C, e.StrideC = closed, 0 }), runtime.ErrClosed, []string{"C"}},
		{"C beside out", epilogue(func(e *e32) { e.C = out.s.Slice(1, 2*m*n+1) }), runtime.ErrOverlap, []string{"out", "C"}},
		{"one C for all that is the first out", epilogue(func(e *e32) { e.C, e.StrideC = out.s, 0 }), runtime.ErrOverlap, []string{"out", "C"}},
		{"bias short", epilogue(func(e *e32) { e.Bias = bias.s.Slice(0, n-1) }), runtime.ErrShape, []string{"Bias", "5", "6"}},
		{"bias foreign", epilogue(func(e *e32) { e.Bias = fout.s }), runtime.ErrForeign, []string{"Bias"}},
		{"bias in out", epilogue(func(e *e32) { e.Bias = out.s.Slice(2*m*n-1, 3*m*n) }), runtime.ErrOverlap, []string{"out", "Bias"}},
	})
	// Preflights say the same without a pass.
	for name, err := range map[string]error{
		"nn.ValidateGEMM":         ValidateGEMM(rt, out.s, a.s.Slice(0, 3), b.s, d),
		"nn.ValidateGEMMEpilogue": ValidateGEMMEpilogue(rt, out.s, a.s, b.s, d, Epilogue[float32]{Alpha: 1, Beta: 1}),
		"nn.ValidateGEMV":         ValidateGEMV(rt, out.s, b.s, a.s.Slice(0, 3), GEMVDims{Rows: n, Cols: k}),
		"nn.ValidateGEMVEpilogue": ValidateGEMVEpilogue(rt, out.s, b.s, a.s, GEMVDims{Rows: n, Cols: k}, Epilogue[float32]{Alpha: 1, Beta: 1}),
	} {
		checkRefused(t, name, refusal{name, nil, runtime.ErrShape, nil}, err)
	}
	for name, err := range map[string]error{
		"GEMM": ValidateGEMM(rt, out.s, a.s, b.s, d), "GEMMEpilogue": ValidateGEMMEpilogue(rt, out.s, a.s, b.s, d, Epilogue[float32]{Alpha: 1, Beta: 1, C: out.s}),
		"GEMV": ValidateGEMV(rt, out.s, b.s, a.s, GEMVDims{Rows: n, Cols: k}), "GEMVEpilogue": ValidateGEMVEpilogue(rt, out.s, b.s, a.s, GEMVDims{Rows: n, Cols: k}, Epilogue[float32]{Alpha: 1}),
	} {
		if err != nil {
			t.Errorf("Validate%s: %v", name, err)
		}
	}
	if err := ValidateGEMM(nil, out.s, a.s, b.s, d); !errors.Is(err, runtime.ErrMisuse) {
		t.Error(err)
	}
}

func TestGEMVDenseRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	const rows, cols = 6, 5
	w, x, y := output[half.Float16](t, rt, 2*rows*cols), output[half.Float16](t, rt, 2*cols), output[float32](t, rt, 4*rows)
	fx := output[half.Float16](t, foreign, cols)
	outs := []target{w, x, y}
	type slice16 = runtime.Slice[half.Float16]
	gemv := func(y vec32, w, x slice16, d GEMVDims) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return GEMV(p, y, w, x, d) }
	}
	dims := func(d GEMVDims) func(*runtime.Pass) error { return gemv(y.s, w.s, x.s, d) }
	d := GEMVDims{Rows: rows, Cols: cols}
	refuses(t, rt, "nn.GEMV", outs, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMV(nil, y.s, w.s, x.s, d) }, runtime.ErrMisuse, nil},
		{"rows negative", dims(GEMVDims{Rows: -1, Cols: cols}), runtime.ErrShape, []string{"Rows", "-1"}},
		{"columns negative", dims(GEMVDims{Rows: rows, Cols: -1}), runtime.ErrShape, []string{"Cols", "-1"}},
		{"overflow", dims(GEMVDims{Rows: math.MaxInt32, Cols: math.MaxInt32}), runtime.ErrLimit, []string{"K * N"}},
		{"batch negative", dims(GEMVDims{Rows: rows, Cols: cols, Batch: -2}), runtime.ErrShape, []string{"Batch", "-2"}},
		{"StrideW negative", dims(GEMVDims{Rows: rows, Cols: cols, StrideW: -2}), runtime.ErrShape, []string{"StrideW", "-2"}},
		{"StrideX negative", dims(GEMVDims{Rows: rows, Cols: cols, StrideX: -2}), runtime.ErrShape, []string{"StrideX", "-2"}},
		{"results overlap", dims(GEMVDims{Rows: rows, Cols: cols, Batch: 2, StrideY: rows - 1}), runtime.ErrOverlap, []string{"StrideY", "5", "6"}},
		{"w short", gemv(y.s, w.s.Slice(0, rows*cols-1), x.s, d), runtime.ErrShape, []string{"w", "29", "30"}},
		{"x short", gemv(y.s, w.s, x.s.Slice(0, cols-1), d), runtime.ErrShape, []string{"x", "4", "5"}},
		{"y short", gemv(y.s.Slice(0, rows-1), w.s, x.s, d), runtime.ErrShape, []string{"y", "5", "6"}},
		{"x foreign", gemv(y.s, w.s, fx.s, d), runtime.ErrForeign, []string{"x"}},
		{"y over x", func(p *runtime.Pass) error {
			return GEMV(p, x.s.Slice(cols-1, 2*cols+1-cols), w.s, x.s, GEMVDims{Rows: 1, Cols: cols})
		}, runtime.ErrOverlap, []string{"y", "x"}},
		{"y in w", func(p *runtime.Pass) error { return GEMV(p, w.s.Slice(rows*cols-1, 2*rows*cols), w.s, x.s, d) }, runtime.ErrOverlap, []string{"y", "w"}},
	})
	refuses(t, rt, "nn.GEMVEpilogue", outs, []refusal{
		{"alpha", func(p *runtime.Pass) error {
			return GEMVEpilogue(p, y.s, w.s, x.s, d, Epilogue[float32]{Alpha: float32(math.Inf(1))})
		}, runtime.ErrScalar, []string{"Alpha"}},
		{"bias short", func(p *runtime.Pass) error {
			return GEMVEpilogue(p, y.s, w.s, x.s, d, Epilogue[float32]{Alpha: 1, Bias: y.s.Slice(2*rows, 3*rows-1)})
		}, runtime.ErrShape, []string{"Bias", "5", "6"}},
	})
}

// No rows or columns are no work; without K there are results, of the other terms alone.
func TestGEMMWithoutWork(t *testing.T) {
	rt := open(t)
	out, c, bias := output[float32](t, rt, 6), newBuffer(t, rt, []float32{1, -2, 3, 4, -5, 6}), newBuffer(t, rt, []float32{10, 20, 30})
	var none runtime.Slice[float32]
	empty := out.s.Slice(0, 0)
	for _, d := range []GEMMDims{{M: 0, N: 3, K: 2}, {M: 3, N: 0, K: 2}, {}, {M: 0, N: 3, K: 2, Batch: 5}} {
		a, b := empty, c.s
		if d.M > 0 {
			a, b = c.s, empty
		}
		encode(t, rt, 0, func(p *runtime.Pass) error { return GEMM(p, empty, a, b, d) })
		encode(t, rt, 0, func(p *runtime.Pass) error { return GEMM(p, out.s, a, b, d) })
	}
	encode(t, rt, 0, func(p *runtime.Pass) error { return GEMV(p, empty, empty, c.s, GEMVDims{Rows: 0, Cols: 6}) })
	out.untouched()
	if err := ValidateGEMM(rt, out.s, none, c.s, GEMMDims{M: 0, N: 3, K: 2}); !errors.Is(err, runtime.ErrShape) {
		t.Errorf("a slice that is none, for nothing: %v", err) // it has no runtime
	}
	e := Epilogue[float32]{Alpha: 1, Beta: 2, C: c.s, Bias: bias.s, Act: ActReLU}
	want := []float32{12, 16, 36, 18, 10, 42}
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMMEpilogue(p, out.s, empty, empty, GEMMDims{M: 2, N: 3}, e) })
	sameElements(t, "without K", want, out.written())
	for _, trans := range []bool{false, true} {
		out.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMVEpilogue(p, out.s, empty, empty, GEMVDims{Rows: 3, Trans: trans, Batch: 2, StrideY: 3}, Epilogue[float32]{Alpha: 1, Beta: 2, C: c.s, StrideC: 3, Bias: bias.s, Act: ActReLU})
		})
		sameElements(t, "without columns", want, out.written())
	}
	// A float16 result that is shorter than any slot but its own.
	one := output[half.Float16](t, rt, 1)
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMM(p, one.s, empty, empty, GEMMDims{M: 1, N: 1}) })
	if got := one.written()[0]; got != 0 {
		t.Error(got)
	}
}
