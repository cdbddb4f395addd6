package nn

import (
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// defined is the number that a shader defines a name as, or -1.
func defined(text, name string) int {
	m := regexp.MustCompile(`#define ` + name + ` (\d+)u?\s`).FindStringSubmatch(text)
	if m == nil {
		return -1
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

type vec32 = runtime.Slice[float32]
type vec16 = runtime.Slice[half.BFloat16]
type binding = func(*runtime.ScalarBinder) error

// product is a matrix on the device in some format, with the product that is under test.
type product struct {
	o    oracle.Matrix
	call func(p *runtime.Pass, y, x vec32) error
	twin func(p *runtime.Pass, y, x vec32, bind binding) error

	validate func(rt *runtime.Runtime, y, x vec32) error
}

// family is a kernel that multiplies with a vector of float32.
type family struct {
	name   string
	shapes []gemvShape
	// random is a matrix of normally distributed weights, moved by offset.
	random func(t testing.TB, rt *runtime.Runtime, r *rand.Rand, s gemvShape, offset float32) product
}

type gemvShape struct{ rows, cols, group int }

// familyOf is a family whose banks have type B and come from a format Q.
func familyOf[Q, B any](name string, shapes []gemvShape, quantize func(w []float32, rows, cols, group int) (Q, error),
	upload func(t testing.TB, rt *runtime.Runtime, q Q) (B, oracle.Matrix), call func(p *runtime.Pass, y vec32, w B, x vec32) error,
	twin func(p *runtime.Pass, y vec32, w B, x vec32, bind binding) error, validate func(rt *runtime.Runtime, y vec32, w B, x vec32) error) family {
	return family{name, shapes, func(t testing.TB, rt *runtime.Runtime, r *rand.Rand, s gemvShape, offset float32) product {
		t.Helper()
		w := normals(r, s.rows*s.cols, 1)
		for i := range w {
			w[i] += offset
		}
		q, err := quantize(w, s.rows, s.cols, s.group)
		if err != nil {
			t.Fatal(err)
		}
		bank, o := upload(t, rt, q)
		return product{o, func(p *runtime.Pass, y, x vec32) error { return call(p, y, bank, x) },
			func(p *runtime.Pass, y, x vec32, bind binding) error { return twin(p, y, bank, x, bind) },
			func(rt *runtime.Runtime, y, x vec32) error { return validate(rt, y, bank, x) }}
	}}
}

func rowMajorMatrix(t testing.TB, rt *runtime.Runtime, q quant.Q4MLX) (Q4MLXBank, oracle.Matrix) {
	t.Helper()
	m := upload(t, rt, q)
	return m.bank, m.o
}

// Shapes of the formats, with rows at and beside multiples of 4, 8, 16 and 128 and columns at and beside what a step, a lane
// or a piece of x takes.
var (
	q8Shapes = []gemvShape{
		{1, 1, 1}, {1, 4, 4}, {2, 5, 5}, {3, 31, 31}, {4, 32, 1}, {5, 33, 11}, {7, 124, 4}, {8, 128, 32}, {9, 132, 12}, {12, 255, 51},
		{13, 256, 256}, {16, 260, 20}, {17, 66, 2}, {31, 512, 64}, {33, 1024, 128}, {65, 96, 6}, {2, 4099, 4099}, {6, 5376, 256},
	}
	q4Shapes = []gemvShape{
		{1, 8, 8}, {2, 16, 8}, {3, 24, 24}, {4, 32, 32}, {5, 40, 8}, {7, 248, 8}, {8, 256, 64}, {9, 264, 24}, {12, 512, 512}, {13, 1016, 8},
		{16, 1024, 128}, {17, 1032, 24}, {31, 96, 48}, {33, 128, 16}, {65, 64, 32}, {2, 5376, 256}, {3, 2048, 1024},
	}
	mlxF32Shapes = []gemvShape{
		{1, 32, 32}, {2, 64, 64}, {3, 96, 32}, {4, 512, 512}, {5, 160, 32}, {7, 256, 256}, {8, 544, 32}, {9, 320, 64}, {15, 128, 128}, {16, 1024, 256},
		{17, 192, 64}, {31, 2016, 32}, {33, 2048, 128}, {64, 2080, 32}, {5, 2560, 512}, {3, 4096, 64}, {2, 4128, 32}, {127, 64, 32}, {129, 96, 32}, {257, 32, 32},
	}
)

func gemvFamilies() []family {
	return []family{
		familyOf("GEMVQ8", q8Shapes, quant.QuantizeQ8, q8Matrix, GEMVQ8, UnsafeGEMVQ8, ValidateGEMVQ8),
		familyOf("GEMVQ4", q4Shapes, quant.QuantizeQ4, q4Matrix, GEMVQ4, UnsafeGEMVQ4, ValidateGEMVQ4),
		familyOf("GEMVQ4Tiled", q4Shapes, quant.QuantizeQ4, q4Matrix, GEMVQ4Tiled, UnsafeGEMVQ4Tiled, ValidateGEMVQ4Tiled),
		familyOf("GEMVQ4MLXF32", mlxF32Shapes, quant.QuantizeQ4MLX, rowMajorMatrix, GEMVQ4MLXF32, UnsafeGEMVQ4MLXF32, ValidateGEMVQ4MLXF32),
		familyOf("GEMVQ4MLXF32Wide", mlxF32Shapes, quant.QuantizeQ4MLX, rowMajorMatrix, GEMVQ4MLXF32Wide, UnsafeGEMVQ4MLXF32Wide, ValidateGEMVQ4MLXF32Wide),
		familyOf("GEMVQ4MLXF32Tiled", mlxF32Shapes, quant.QuantizeQ4MLX, rowMajorMatrix, GEMVQ4MLXF32Tiled, UnsafeGEMVQ4MLXF32Tiled, ValidateGEMVQ4MLXF32Tiled),
		familyOf("GEMVQ4MLXBlocked", mlxF32Shapes, quant.QuantizeQ4MLX, blockedMatrix, GEMVQ4MLXBlocked, UnsafeGEMVQ4MLXBlocked, ValidateGEMVQ4MLXBlocked),
	}
}

// q4Matrix and the like put a bank between sentinels on the device.
func q4Matrix(t testing.TB, rt *runtime.Runtime, q quant.Q4) (Q4Bank, oracle.Matrix) {
	t.Helper()
	packed, scales, zeros := newBuffer(t, rt, q.Packed), newBuffer(t, rt, q.Scales), newBuffer(t, rt, q.Zeros)
	bank, err := NewQ4Bank(packed.s, scales.s, zeros.s, q.Rows, q.Cols, q.GroupSize)
	if err != nil {
		t.Fatal(err)
	}
	return bank, oracle.Q4Signed{Packed: littleEndian(q.Packed), Scales: q.Scales, Zeros: q.Zeros, Rows: q.Rows, Cols: q.Cols, Group: q.GroupSize}
}

// q8Matrix puts the codes at the end of an allocation, where reading on is out of bounds.
func q8Matrix(t testing.TB, rt *runtime.Runtime, q quant.Q8) (Q8Bank, oracle.Matrix) {
	t.Helper()
	codes, err := runtime.SliceOf(rt, q.Codes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { codes.Release() })
	scales, zeros := newBuffer(t, rt, q.Scales), newBuffer(t, rt, q.Zeros)
	bank, err := NewQ8Bank(codes, scales.s, zeros.s, q.Rows, q.Cols, q.GroupSize)
	if err != nil {
		t.Fatal(err)
	}
	return bank, oracle.Q8{Codes: q.Codes, Scales: q.Scales, Zeros: q.Zeros, Rows: q.Rows, Cols: q.Cols, Group: q.GroupSize}
}

func blockedMatrix(t testing.TB, rt *runtime.Runtime, q quant.Q4MLX) (Q4MLXBlockedBank, oracle.Matrix) {
	t.Helper()
	b, err := q.Blocked()
	if err != nil {
		t.Fatal(err)
	}
	packed, sb := newBuffer(t, rt, b.Packed), newBuffer(t, rt, b.ScalesBiases)
	bank, err := NewQ4MLXBlockedBank(packed.s, sb.s, q.Rows, q.Cols, q.GroupSize)
	if err != nil {
		t.Fatal(err)
	}
	return bank, oracle.Q4Bank{Layout: oracle.Blocked16, Packed: littleEndian(b.Packed), ScalesBiases: pairs(b.ScalesBiases), Rows: q.Rows, Cols: q.Cols, Group: q.GroupSize}
}

func interleavedMatrix(t testing.TB, rt *runtime.Runtime, q quant.Q4MLX) (Q4MLXInterleavedBank, oracle.Matrix) {
	t.Helper()
	b, err := q.Interleaved()
	if err != nil {
		t.Fatal(err)
	}
	packed, sb := newBuffer(t, rt, b.Packed), newBuffer(t, rt, b.ScalesBiases)
	bank, err := NewQ4MLXInterleavedBank(packed.s, sb.s, q.Rows, q.Cols, q.GroupSize)
	if err != nil {
		t.Fatal(err)
	}
	return bank, oracle.Q4Bank{Layout: oracle.Interleaved4, Packed: littleEndian(b.Packed), ScalesBiases: pairs(b.ScalesBiases), Rows: q.Rows, Cols: q.Cols, Group: q.GroupSize}
}

func littleEndian(words []uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func pairs(sb []half.BFloat16) []uint32 {
	var w []uint32
	for i := 0; i < len(sb); i += 2 {
		w = append(w, uint32(sb[i])|uint32(sb[i+1])<<16)
	}
	return w
}

func quantizedMLX(t testing.TB, r *rand.Rand, rows, cols, group int) quant.Q4MLX {
	t.Helper()
	q, err := quant.QuantizeQ4MLX(normals(r, rows*cols, 1), rows, cols, group)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
