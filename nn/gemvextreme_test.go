package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// extremes are matrices of 9 rows whose codes, scales and zero points or biases are at their ends, by what is extreme.
func extremes(t testing.TB, rt *runtime.Runtime) map[string]product {
	t.Helper()
	const rows, cols, group = 9, 192, 64
	all := map[string]product{}
	add := func(name string, o oracle.Matrix, calls ...func(p *runtime.Pass, y, x vec32) error) {
		for i, call := range calls {
			all[name+" "+string(rune('a'+i))] = product{o: o, call: call}
		}
	}
	for name, e := range map[string]struct {
		low, high   bool // all codes at that end
		scale, zero float32
	}{
		"lowest codes": {low: true, scale: 0.5, zero: 3}, "highest codes": {high: true, scale: 0.5, zero: 3}, "negative scale": {scale: -2, zero: -1.5},
		"scale 0": {zero: 7}, "zero point 0": {scale: 3}, "far zero point": {scale: 1, zero: 1e6}, "fine zero point": {scale: 1, zero: -1e-6},
		"large": {scale: 1e30, zero: 100}, "small": {scale: 1e-30, zero: -100},
	} {
		q8, q4, mlx := wholeQ8(rows, cols, group), wholeQ4(rows, cols, group), wholeMLX(rows, cols, group)
		for i := range q8.Codes {
			switch {
			case e.low:
				q8.Codes[i] = -128
			case e.high:
				q8.Codes[i] = 127
			}
		}
		for i := range q4.Packed {
			switch {
			case e.low:
				q4.Packed[i], mlx.Packed[i] = 0x88888888, 0
			case e.high:
				q4.Packed[i], mlx.Packed[i] = 0x77777777, 0xffffffff
			}
		}
		for i := range q8.Scales {
			q8.Scales[i], q8.Zeros[i], q4.Scales[i], q4.Zeros[i] = e.scale, e.zero, e.scale, e.zero
		}
		fillPairs(&mlx, half.BFloat16FromFloat32(e.scale), half.BFloat16FromFloat32(-e.scale*e.zero))
		b8, o8 := q8Matrix(t, rt, q8)
		odd := q8 // of the same numbers, in groups that leave a lane one byte at a time
		odd.GroupSize, odd.Cols, odd.Codes = 63, 189, q8.Codes[:rows*189]
		b1, o1 := q8Matrix(t, rt, odd)
		b4, o4 := q4Matrix(t, rt, q4)
		m := upload(t, rt, mlx)
		block, _ := blockedMatrix(t, rt, mlx)
		add("8 bits, "+name, o8, func(p *runtime.Pass, y, x vec32) error { return GEMVQ8(p, y, b8, x) })
		add("8 bits one by one, "+name, o1, func(p *runtime.Pass, y, x vec32) error { return GEMVQ8(p, y, b1, x) })
		add("4 bits, "+name, o4, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4(p, y, b4, x) },
			func(p *runtime.Pass, y, x vec32) error { return GEMVQ4Tiled(p, y, b4, x) })
		add("MLX, "+name, m.o, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXF32(p, y, m.bank, x) },
			func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXF32Wide(p, y, m.bank, x) },
			func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXF32Tiled(p, y, m.bank, x) },
			func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXBlocked(p, y, block, x) })
	}
	return all
}

func TestGEMVF32ExtremeBanks(t *testing.T) {
	rt, r := open(t), source(700)
	x := normals(r, 192, 1)
	in, y := newBuffer(t, rt, x), output[float32](t, rt, 9)
	nan := append([]float32{}, x...)
	nan[77] = float32(math.NaN())
	bad := newBuffer(t, rt, nan)
	var w worst
	for name, m := range extremes(t, rt) {
		y.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error { return m.call(p, y.s, in.s) })
		_, cols := m.o.Shape()
		want, size := oracle.GEMV(m.o, x[:cols]), oracle.GEMVMagnitude(m.o, x[:cols])
		w.compare(t, name, widen(y.written()), want, func(i int) float64 { return size[i]*gemvF32Budget + 1e-44 })
		// A number that is none reaches every row, whatever it is multiplied with.
		encode(t, rt, 1, func(p *runtime.Pass) error { return m.call(p, y.s, bad.s) })
		for i, v := range y.written() {
			if v == v {
				t.Errorf("%s: row %d is %v with a NaN in x", name, i, v)
			}
		}
	}
	w.log(t, "2^-23 of the terms' magnitude", "GEMVQ8", "GEMVQ4", "GEMVQ4MLXF32")
}

// Products with several vectors keep a NaN to the vector that has it.
func TestGEMMKeepsVectorsApart(t *testing.T) {
	rt := open(t)
	b := upload(t, rt, wholeMLX(6, 544, 32))
	x := make([]half.BFloat16, 8*544)
	for i := range x {
		x[i] = half.BFloat16FromFloat32(float32(i%5 - 2))
	}
	x[3*544+530] = 0x7fc0 // NaN
	x[5*544] = 0x7f80     // infinity
	in, y := newBuffer(t, rt, x), output[float32](t, rt, 8*6)
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMMQ4MLX(p, y.s, b.bank, in.s, 8) })
	for i, v := range y.written() {
		if finite := v-v == 0; finite != (i/6 != 3 && i/6 != 5) {
			t.Errorf("vector %d, row %d: %v", i/6, i%6, v)
		}
	}
}

// A part of a bank gives the part of the product, bit for bit, wherever it starts.
func TestGEMVF32RowsAreIndependent(t *testing.T) {
	rt, r := open(t), source(701)
	const rows = 29
	whole := func(cols int, call func(y, x vec32, from, to int) func(p *runtime.Pass) error) {
		t.Helper()
		x, y := newBuffer(t, rt, normals(r, cols, 1)), output[float32](t, rt, rows)
		encode(t, rt, 1, call(y.s, x.s, 0, rows))
		all := y.written()
		for _, c := range [][2]int{{0, 1}, {1, 6}, {3, 29}, {28, 29}, {8, 16}} {
			out := output[float32](t, rt, c[1]-c[0])
			encode(t, rt, 1, call(out.s, x.s, c[0], c[1]))
			for i, v := range out.written() {
				if bitsOf(v) != bitsOf(all[c[0]+i]) {
					t.Fatalf("rows %v: row %d: %v, want %v", c, i, v, all[c[0]+i])
				}
			}
		}
	}
	for _, c := range [][2]int{{260, 20}, {189, 63}} { // whose rows start at any byte
		bank, _ := q8Matrix(t, rt, wholeQ8(rows, c[0], c[1]))
		whole(c[0], func(y, x vec32, from, to int) func(p *runtime.Pass) error {
			return func(p *runtime.Pass) error {
				part, err := bank.RowRange(from, to)
				if err != nil {
					return err
				}
				return GEMVQ8(p, y, part, x)
			}
		})
	}
	q4, _ := q4Matrix(t, rt, wholeQ4(rows, 264, 24))
	for _, call := range []func(p *runtime.Pass, y vec32, w Q4Bank, x vec32) error{GEMVQ4, GEMVQ4Tiled} {
		whole(264, func(y, x vec32, from, to int) func(p *runtime.Pass) error {
			return func(p *runtime.Pass) error {
				part, err := q4.RowRange(from, to)
				if err != nil {
					return err
				}
				return call(p, y, part, x)
			}
		})
	}
	mlx := upload(t, rt, wholeMLX(rows, 544, 32))
	for _, call := range []func(p *runtime.Pass, y vec32, w Q4MLXBank, x vec32) error{GEMVQ4MLXF32, GEMVQ4MLXF32Wide, GEMVQ4MLXF32Tiled} {
		whole(544, func(y, x vec32, from, to int) func(p *runtime.Pass) error {
			return func(p *runtime.Pass) error {
				part, err := mlx.bank.RowRange(from, to)
				if err != nil {
					return err
				}
				return call(p, y, part, x)
			}
		})
	}
}
