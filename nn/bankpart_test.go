package nn

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Parts of banks with padding: whole tiles, the last of which may be ragged, and each row bit for bit what it is in the whole.
func TestPaddedRowRange(t *testing.T) {
	rt := open(t)
	const rows, cols, group = 37, 96, 32
	q := quantizedMLX(t, source(660), rows, cols, group)
	blocked, _ := blockedMatrix(t, rt, q)
	tiles, _ := interleavedMatrix(t, rt, q)
	x, x16 := newBuffer(t, rt, normals(source(661), cols, 1)), newBuffer(t, rt, half.BFloat16s(normals(source(662), cols, 1)))
	run := func(n int, call func(p *runtime.Pass, y vec32) error) []uint32 {
		t.Helper()
		y := output[float32](t, rt, n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return call(p, y.s) })
		y.written()
		return y.bits()
	}
	byBlocks := run(rows, func(p *runtime.Pass, y vec32) error { return GEMVQ4MLXBlocked(p, y, blocked, x.s) })
	byTiles := run(rows, func(p *runtime.Pass, y vec32) error { return GEMVQ4MLX(p, y, tiles, x16.s) })

	for _, c := range [][2]int{{0, 16}, {16, 32}, {16, 37}, {32, 37}, {0, 37}} {
		part, err := blocked.RowRange(c[0], c[1])
		if err != nil || part.Rows() != c[1]-c[0] || part.Cols() != cols || part.GroupSize() != group {
			t.Fatal(c, part, err)
		}
		if words, sb, err := quant.Q4MLXBlockedSizes(part.Rows(), cols, group); err != nil || part.Packed().Len() != words || part.ScalesBiases().Len() != sb {
			t.Errorf("%v: %d words, %d scales and biases, want %d and %d", c, part.Packed().Len(), part.ScalesBiases().Len(), words, sb)
		}
		if got := run(part.Rows(), func(p *runtime.Pass, y vec32) error { return GEMVQ4MLXBlocked(p, y, part, x.s) }); !slices.Equal(got, byBlocks[c[0]:c[1]]) {
			t.Errorf("blocks %v: other bits than in the whole", c)
		}
		if err := part.Release(); err == nil {
			t.Error("a part of a bank was released")
		}
	}
	for _, c := range [][2]int{{0, 4}, {4, 12}, {36, 37}, {8, 37}, {0, 37}} {
		part, err := tiles.RowRange(c[0], c[1])
		if err != nil || part.Rows() != c[1]-c[0] || part.Cols() != cols || part.GroupSize() != group {
			t.Fatal(c, part, err)
		}
		if got := run(part.Rows(), func(p *runtime.Pass, y vec32) error { return GEMVQ4MLX(p, y, part, x16.s) }); !slices.Equal(got, byTiles[c[0]:c[1]]) {
			t.Errorf("tiles %v: other bits than in the whole", c)
		}
	}

	for _, c := range []struct {
		i, j int
		text string
	}{{-16, 16, "0 <= i < j <= rows"}, {16, 16, "0 <= i"}, {32, 16, "0 <= i"}, {0, 38, "37 rows"}, {0, 48, "37 rows"}, {8, 16, "multiples of 16"}, {16, 36, "multiples of 16"}} {
		_, err := blocked.RowRange(c.i, c.j)
		checkRefused(t, "nn.Q4MLXBlockedBank.RowRange", refusal{fmt.Sprint(c), nil, runtime.ErrShape, []string{"[", c.text}}, err)
	}
	for _, c := range [][2]int{{2, 8}, {4, 10}, {-4, 4}, {36, 38}} {
		_, err := tiles.RowRange(c[0], c[1])
		checkRefused(t, "nn.Q4MLXInterleavedBank.RowRange", refusal{fmt.Sprint(c), nil, runtime.ErrShape, []string{"[", "37 rows"}}, err)
	}
	_, err := Q4MLXBlockedBank{}.RowRange(0, 16)
	checkRefused(t, "nn.Q4MLXBlockedBank.RowRange", refusal{"zero bank", nil, runtime.ErrShape, []string{"bank", "NewQ4MLXBlockedBank"}}, err)
	_, err = Q4MLXInterleavedBank{}.RowRange(0, 4)
	checkRefused(t, "nn.Q4MLXInterleavedBank.RowRange", refusal{"zero bank", nil, runtime.ErrShape, []string{"bank", "NewQ4MLXInterleavedBank"}}, err)
}

// Uploads to no runtime, and to one that is closed, name the function.
func TestUploadsRefuse(t *testing.T) {
	r := source(665)
	mlx := quantizedMLX(t, r, 64, 64, 64)
	blocks, err := mlx.Blocked()
	if err != nil {
		t.Fatal(err)
	}
	tiles, err := mlx.Interleaved()
	if err != nil {
		t.Fatal(err)
	}
	affine, err := mlx.Affine()
	if err != nil {
		t.Fatal(err)
	}
	codes, err := affine.Unpack()
	if err != nil {
		t.Fatal(err)
	}
	plane, err := affine.Plane()
	if err != nil {
		t.Fatal(err)
	}
	weights := normals(r, 64*64, 1)
	q4, err := quant.QuantizeQ4(weights, 64, 64, 32)
	if err != nil {
		t.Fatal(err)
	}
	q8, err := quant.QuantizeQ8(weights, 64, 64, 32)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := runtime.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for fn, upload := range map[string]func(rt *runtime.Runtime) error{
		"nn.UploadQ4MLX":            func(rt *runtime.Runtime) error { return second(UploadQ4MLX(rt, mlx)) },
		"nn.UploadQ4MLXBlocked":     func(rt *runtime.Runtime) error { return second(UploadQ4MLXBlocked(rt, blocks)) },
		"nn.UploadQ4MLXInterleaved": func(rt *runtime.Runtime) error { return second(UploadQ4MLXInterleaved(rt, tiles)) },
		"nn.UploadAffine":           func(rt *runtime.Runtime) error { return second(UploadAffine(rt, affine)) },
		"nn.UploadAffineCodes":      func(rt *runtime.Runtime) error { return second(UploadAffineCodes(rt, codes)) },
		"nn.UploadAffinePlane":      func(rt *runtime.Runtime) error { return second(UploadAffinePlane(rt, plane)) },
		"nn.UploadQ4":               func(rt *runtime.Runtime) error { return second(UploadQ4(rt, q4)) },
		"nn.UploadQ8":               func(rt *runtime.Runtime) error { return second(UploadQ8(rt, q8)) },
		"nn.UploadDense":            func(rt *runtime.Runtime) error { return second(UploadDense(rt, weights, 64, 64)) },
		"nn.UploadBlocks": func(rt *runtime.Runtime) error {
			return second(UploadBlocks(rt, quant.BlockQ8_0, make([]byte, 64*68), 64, 64))
		},
	} {
		checkRefused(t, fn, refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt", "nil"}}, upload(nil))
		checkRefused(t, fn, refusal{"closed runtime", nil, runtime.ErrClosed, nil}, upload(closed))
	}
}

// Releasing a bank twice, a part or the zero bank names the bank's method and the part.
func TestReleaseBankErrors(t *testing.T) {
	rt := open(t)
	mlx := quantizedMLX(t, source(663), 16, 64, 32)
	blocks, err := mlx.Blocked()
	if err != nil {
		t.Fatal(err)
	}
	tiles, err := mlx.Interleaved()
	if err != nil {
		t.Fatal(err)
	}
	weights := normals(source(664), 16*64, 1)
	q4, err := quant.QuantizeQ4(weights, 16, 64, 32)
	if err != nil {
		t.Fatal(err)
	}
	q8, err := quant.QuantizeQ8(weights, 16, 64, 32)
	if err != nil {
		t.Fatal(err)
	}
	type bank interface{ Release() error }
	for _, c := range []struct {
		name, first string
		upload      func() (bank, error)
		zero        bank
		part        func(b bank) (bank, error)
	}{
		{"Q4MLXBank", "packed", func() (bank, error) { return UploadQ4MLX(rt, mlx) }, Q4MLXBank{}, func(b bank) (bank, error) { return b.(Q4MLXBank).RowRange(0, 16) }},
		{"Q4Bank", "packed", func() (bank, error) { return UploadQ4(rt, q4) }, Q4Bank{}, func(b bank) (bank, error) { return b.(Q4Bank).RowRange(0, 4) }},
		{"Q8Bank", "codes", func() (bank, error) { return UploadQ8(rt, q8) }, Q8Bank{}, func(b bank) (bank, error) { return b.(Q8Bank).RowRange(0, 4) }},
		{"Q4MLXBlockedBank", "packed", func() (bank, error) { return UploadQ4MLXBlocked(rt, blocks) }, Q4MLXBlockedBank{},
			func(b bank) (bank, error) { return b.(Q4MLXBlockedBank).RowRange(0, 16) }},
		{"Q4MLXInterleavedBank", "packed", func() (bank, error) { return UploadQ4MLXInterleaved(rt, tiles) }, Q4MLXInterleavedBank{},
			func(b bank) (bank, error) { return b.(Q4MLXInterleavedBank).RowRange(4, 8) }},
	} {
		fn := "nn." + c.name + ".Release"
		checkRefused(t, fn, refusal{"zero", nil, runtime.ErrShape, []string{"bank", "zero bank", "New" + c.name}}, c.zero.Release())
		b, err := c.upload()
		if err != nil {
			t.Fatal(c.name, err)
		}
		part, err := c.part(b)
		if err != nil {
			t.Fatal(c.name, err)
		}
		checkRefused(t, fn, refusal{"part", nil, runtime.ErrMisuse, []string{c.first, "part of another"}}, part.Release())
		if err := b.Release(); err != nil {
			t.Error(c.name, err)
		}
		checkRefused(t, fn, refusal{"twice", nil, runtime.ErrClosed, []string{c.first, "released"}}, b.Release())
	}
	packed, foreign := newBuffer(t, rt, mlx.Packed), newBuffer(t, open(t), mlx.ScalesBiases)
	_, err = NewQ4MLXBank(packed.s, foreign.s, 16, 64, 32)
	checkRefused(t, "nn.NewQ4MLXBank", refusal{"foreign", nil, runtime.ErrForeign, []string{"scalesBiases", "the runtime of packed"}}, err)
}
