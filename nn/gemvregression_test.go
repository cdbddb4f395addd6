package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Mistakes in products with quantised weights that other libraries made and recorded; see regression_test.go.

// exactly checks one product of a family whose terms are small whole numbers, so that every sum is exact in any order.
func exactly(t *testing.T, rt *runtime.Runtime, where string, o oracle.Matrix, call func(p *runtime.Pass, y, x vec32) error) {
	t.Helper()
	rows, cols := o.Shape()
	x := make([]float32, cols)
	for i := range x {
		x[i] = float32(i%7 - 3)
	}
	in, err := runtime.SliceOf(rt, x) // the allocation ends with the vector
	if err != nil {
		t.Fatal(err)
	}
	defer in.Release()
	y := output[float32](t, rt, rows)
	encode(t, rt, 1, func(p *runtime.Pass) error { return call(p, y.s, in) })
	want := oracle.GEMV(o, x)
	for i, v := range y.written() {
		if float64(v) != want[i] {
			t.Fatalf("%s: row %d is %v, want %v", where, i, v, want[i])
		}
	}
}

// wholeQ8 and the like are matrices of whole numbers with zero points or biases that are whole too.
func wholeQ8(rows, cols, group int) quant.Q8 {
	q := quant.Q8{Rows: rows, Cols: cols, GroupSize: group, Codes: make([]int8, rows*cols),
		Scales: make([]float32, rows*cols/group), Zeros: make([]float32, rows*cols/group)}
	for i := range q.Codes {
		q.Codes[i] = int8(i*37%256 - 128)
	}
	for i := range q.Scales {
		q.Scales[i], q.Zeros[i] = float32(i%3+1), float32(i%5-2)
	}
	return q
}

func wholeQ4(rows, cols, group int) quant.Q4 {
	q := quant.Q4{Rows: rows, Cols: cols, GroupSize: group, Packed: make([]uint32, rows*cols/8),
		Scales: make([]float32, rows*cols/group), Zeros: make([]float32, rows*cols/group)}
	for i := range q.Packed {
		q.Packed[i] = uint32(i+1) * 0x9e3779b9
	}
	for i := range q.Scales {
		q.Scales[i], q.Zeros[i] = float32(i%3+1), float32(i%5-2)
	}
	return q
}

func wholeMLX(rows, cols, group int) quant.Q4MLX {
	q := quant.Q4MLX{Rows: rows, Cols: cols, GroupSize: group, Packed: make([]uint32, rows*cols/8), ScalesBiases: make([]half.BFloat16, 2*rows*cols/group)}
	for i := range q.Packed {
		q.Packed[i] = uint32(i+1) * 0x9e3779b9
	}
	for i := range rows * cols / group {
		q.ScalesBiases[2*i], q.ScalesBiases[2*i+1] = half.BFloat16FromFloat32(float32(i%3+1)), half.BFloat16FromFloat32(float32(i%11-9))
	}
	return q
}

// 8-bit products with ragged rows, and with groups that leave a lane one byte at a time.
func TestRegressionQ8RaggedRowsAndSingleBytes(t *testing.T) {
	rt := open(t)
	for rows := 1; rows <= 17; rows++ {
		for _, c := range [][2]int{{4, 4}, {7, 7}, {12, 3}, {130, 2}, {132, 4}, {33, 1}, {160, 32}} {
			bank, o := q8Matrix(t, rt, wholeQ8(rows, c[0], c[1]))
			exactly(t, rt, "8 bits", o, func(p *runtime.Pass, y, x vec32) error { return GEMVQ8(p, y, bank, x) })
		}
	}
}

// A kernel with a threadgroup for each row, launched with the grid of one with eight rows or a thread for each: only the
// first rows would be written, without any error.
func TestRegressionTiledKernelsWriteEveryRow(t *testing.T) {
	rt := open(t)
	const rows, cols, group = 512, 64, 32
	q4, o4 := q4Matrix(t, rt, wholeQ4(rows, cols, group))
	mlx := wholeMLX(rows, cols, group)
	m := upload(t, rt, mlx)
	blocked, _ := blockedMatrix(t, rt, mlx)
	for _, c := range []struct {
		name string
		o    oracle.Matrix
		call func(p *runtime.Pass, y, x vec32) error
	}{
		{"GEMVQ4", o4, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4(p, y, q4, x) }},
		{"GEMVQ4Tiled", o4, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4Tiled(p, y, q4, x) }},
		{"GEMVQ4MLXF32", m.o, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXF32(p, y, m.bank, x) }},
		{"GEMVQ4MLXF32Wide", m.o, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXF32Wide(p, y, m.bank, x) }},
		{"GEMVQ4MLXF32Tiled", m.o, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXF32Tiled(p, y, m.bank, x) }},
		{"GEMVQ4MLXBlocked", m.o, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXBlocked(p, y, blocked, x) }},
	} {
		exactly(t, rt, c.name, c.o, c.call)
	}
}

// The blocked kernel must not read a row-major bank: that is another type. Were it given the memory of one all the same,
// nearly every row would be wrong, unless a row has one group, where both layouts are the same.
func TestRegressionBlockedBankOfRowMajorMemory(t *testing.T) {
	rt := open(t)
	for _, c := range []struct{ cols, group, wrong int }{{256, 64, 63}, {64, 64, 0}} {
		q := wholeMLX(64, c.cols, c.group)
		blocked, o := blockedMatrix(t, rt, q)
		exactly(t, rt, "repacked", o, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXBlocked(p, y, blocked, x) })

		packed, sb := newBuffer(t, rt, q.Packed), newBuffer(t, rt, q.ScalesBiases)
		mistaken, err := NewQ4MLXBlockedBank(packed.s, sb.s, 64, c.cols, c.group)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float32, c.cols)
		for i := range x {
			x[i] = float32(i%7 - 3)
		}
		in, y := newBuffer(t, rt, x), output[float32](t, rt, 64)
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLXBlocked(p, y.s, mistaken, in.s) })
		wrong := 0
		for i, want := range oracle.GEMV(o, x) {
			if float64(y.written()[i]) != want {
				wrong++
			}
		}
		if wrong < c.wrong-3 || c.wrong == 0 && wrong > 0 {
			t.Errorf("%d columns in groups of %d: %d of 64 rows differ between the layouts, want %d or so", c.cols, c.group, wrong, c.wrong)
		}
	}
}

// Tiled banks are padded to whole tiles, and no kernel reads past them, for every group size and every remainder of rows.
// Group sizes that the kernels cannot take and ragged groups are refused (see TestPaddedBanks and the quant package).
func TestRegressionTiledBanksArePadded(t *testing.T) {
	rt := open(t)
	for _, group := range []int{32, 64, 128, 256, 512} {
		for _, rows := range []int{1, 2, 3, 4, 5, 15, 16, 17, 31} {
			q := wholeMLX(rows, group, group)
			tiles, err := q.Interleaved()
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := q.Blocked()
			if err != nil {
				t.Fatal(err)
			}
			tile, err := UploadQ4MLXInterleaved(rt, tiles) // the allocations hold the bank and nothing else
			if err != nil {
				t.Fatal(err)
			}
			block, err := UploadQ4MLXBlocked(rt, blocks)
			if err != nil {
				t.Fatal(err)
			}
			_, o := rowMajorMatrix(t, rt, q)
			exactly(t, rt, "blocked", o, func(p *runtime.Pass, y, x vec32) error { return GEMVQ4MLXBlocked(p, y, block, x) })
			x := make([]half.BFloat16, group)
			for i := range x {
				x[i] = half.BFloat16FromFloat32(float32(i%7 - 3))
			}
			in, err := runtime.SliceOf(rt, x)
			if err != nil {
				t.Fatal(err)
			}
			y := output[float32](t, rt, rows)
			encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, tile, in) })
			want := oracle.GEMV(o, vector(x))
			for i, v := range y.written() {
				if float64(v) != want[i] {
					t.Fatalf("interleaved: row %d is %v, want %v", i, v, want[i])
				}
			}
			for _, b := range []interface{ Release() error }{tile, block, in} {
				if err := b.Release(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, group := range []int{8, 16, 48, 96, 1024} {
		if quant.CheckQ4MLX(4, group, group) == nil {
			t.Errorf("groups of %d are taken", group)
		}
	}
}

// Nine vectors are refused, not cut to eight; eight are all computed; fewer leave what follows alone.
func TestRegressionGEMMOfNineVectors(t *testing.T) {
	rt := open(t)
	b := upload(t, rt, wholeMLX(5, 32, 32))
	x := make([]half.BFloat16, 9*32)
	for i := range x {
		x[i] = half.BFloat16FromFloat32(float32(i%13 - 6))
	}
	in, y := newBuffer(t, rt, x), output[float32](t, rt, 9*5)
	refuses(t, rt, "nn.GEMMQ4MLX", []target{y}, []refusal{
		{"nine", func(p *runtime.Pass) error { return GEMMQ4MLX(p, y.s, b.bank, in.s, 9) }, runtime.ErrLimit, []string{"m", "9", "8"}},
	})
	want := oracle.GEMM(b.o, vector(x), 9)
	for m := 1; m <= 8; m++ {
		y.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMMQ4MLX(p, y.s, b.bank, in.s, m) })
		for i, v := range y.get() {
			if i < m*5 && float64(v) != want[i] || i >= m*5 && bitsOf(v) != bitsOf(sentinel[float32]()) {
				t.Fatalf("%d vectors: element %d is %v, want %v or nothing", m, i, v, want[i])
			}
		}
	}
}

// The residual of a product with several vectors has rows for each of them.
func TestRegressionGEMMResidualPerVector(t *testing.T) {
	rt := open(t)
	const m, rows = 6, 9
	b := upload(t, rt, wholeMLX(rows, 64, 32))
	resid := make([]float32, m*rows)
	for i := range resid {
		resid[i] = float32(1000 * i)
	}
	x := make([]half.BFloat16, m*64) // zeros: what remains is the residual
	in, add, y := newBuffer(t, rt, x), newBuffer(t, rt, resid), output[float32](t, rt, m*rows)
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMMQ4MLXAdd(p, y.s, b.bank, in.s, add.s, m) })
	for i, v := range y.written() {
		if v != resid[i] {
			t.Fatalf("element %d is %v, want %v", i, v, resid[i])
		}
	}
	refuses(t, rt, "nn.GEMMQ4MLXAdd", nil, []refusal{{"one row", func(p *runtime.Pass) error {
		return GEMMQ4MLXAdd(p, y.s, b.bank, in.s, add.s.Slice(0, rows), m)
	}, runtime.ErrShape, []string{"residual", "9", "54"}}})
}

// Keys and values computed together drifted by a unit in the last place from each alone: all forms give the same bits, at
// widths where the order of a sum shows.
func TestRegressionFusedProductsKeepTheBits(t *testing.T) {
	rt, r := open(t), source(660)
	const rows, cols, group = 12, 5376, 128
	k, v := randomBoth(t, rt, 661, rows, cols, group), randomBoth(t, rt, 662, rows, cols, group)
	x := newBuffer(t, rt, half.BFloat16s(normals(r, cols, 1)))
	f := func() *buffer[float32] { return output[float32](t, rt, rows) }
	k1, v1, k2, v2, k3, v3, q3, k4, v4 := f(), f(), f(), f(), f(), f(), f(), f(), f()
	encode(t, rt, 6, func(p *runtime.Pass) error {
		for _, err := range []error{GEMVQ4MLX(p, k1.s, k.m.bank, x.s), GEMVQ4MLX(p, v1.s, v.tile, x.s),
			GEMVQ4MLXKV(p, GEMVKV{K: k2.s, V: v2.s, WK: k.m.bank, WV: v.m.bank, X: x.s}),
			GEMVQ4MLXQKV(p, GEMVQKV{Q: q3.s, K: k3.s, V: v3.s, WQ: k.m.bank, WK: k.m.bank, WV: v.m.bank, X: x.s}),
			GEMMQ4MLX(p, k4.s, k.tile, x.s, 1), GEMMQ4MLX(p, v4.s, v.m.bank, x.s, 1)} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, got := range []target{k2, k3, q3, k4} {
		sameBits(t, "keys", got, k1)
	}
	for _, got := range []target{v2, v3, v4} {
		sameBits(t, "values", got, v1)
	}
	size := oracle.GEMVMagnitude(k.o, widen(x.get()))
	for i, want := range oracle.GEMV(k.o, widen(x.get())) {
		if math.Abs(float64(k1.written()[i])-want) > size[i]*gemvBudget {
			t.Fatalf("row %d is %v, want %v", i, k1.written()[i], want)
		}
	}
}
