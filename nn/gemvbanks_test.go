package nn

import (
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestQ8Bank(t *testing.T) {
	rt, foreign := open(t), open(t)
	q, err := quant.QuantizeQ8(normals(source(650), 3*40, 1), 3, 40, 8)
	if err != nil {
		t.Fatal(err)
	}
	b, err := UploadQ8(rt, q)
	if err != nil {
		t.Fatal(err)
	}
	if b.Rows() != 3 || b.Cols() != 40 || b.GroupSize() != 8 {
		t.Error(b.Rows(), b.Cols(), b.GroupSize())
	}
	codes, scales, zeros := make([]int8, 120), make([]float32, 15), make([]float32, 15)
	for _, err := range []error{b.Codes().Read(codes), b.Scales().Read(scales), b.Zeros().Read(zeros)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(codes, q.Codes) || !slices.Equal(scales, q.Scales) || !slices.Equal(zeros, q.Zeros) {
		t.Error("not what was uploaded")
	}
	part, err := b.RowRange(1, 3)
	if err != nil || part.Rows() != 2 || part.Codes().View().Offset() != b.Codes().View().Offset()+40 || part.Zeros().Len() != 10 ||
		part.Scales().View().Offset() != b.Scales().View().Offset()+20 {
		t.Error(part, err)
	}
	if err := part.Release(); err == nil {
		t.Error("a part of a bank was released")
	}
	for _, c := range [][2]int{{-1, 2}, {2, 2}, {2, 1}, {0, 4}} {
		_, err := b.RowRange(c[0], c[1])
		checkRefused(t, "nn.Q8Bank.RowRange", refusal{"range", nil, runtime.ErrShape, []string{"[", "3 rows"}}, err)
	}
	_, err = Q8Bank{}.RowRange(0, 1)
	checkRefused(t, "nn.Q8Bank.RowRange", refusal{"zero bank", nil, runtime.ErrShape, []string{"bank", "zero bank"}}, err)

	long, err := runtime.NewSlice[int8](rt, 130)
	if err != nil {
		t.Fatal(err)
	}
	ff := output[float32](t, foreign, 15)
	type c8 = runtime.Slice[int8]
	for _, c := range []struct {
		name              string
		codes             c8
		scales, zeros     vec32
		rows, cols, group int
		sentinel          error
		parts             []string
	}{
		{"no rows", b.Codes(), b.Scales(), b.Zeros(), 0, 40, 8, runtime.ErrShape, []string{"rows"}},
		{"ragged group", b.Codes(), b.Scales(), b.Zeros(), 3, 40, 7, runtime.ErrShape, []string{"columns", "multiple of the group size 7"}},
		{"group 0", b.Codes(), b.Scales(), b.Zeros(), 3, 40, 0, runtime.ErrShape, []string{"group size"}},
		{"codes long", long, b.Scales(), b.Zeros(), 3, 40, 8, runtime.ErrShape, []string{"codes", "130", "120"}},
		{"codes not aligned", long.Slice(2, 122), b.Scales(), b.Zeros(), 3, 40, 8, runtime.ErrShape, []string{"codes", "multiple of 4"}},
		{"scales short", b.Codes(), b.Scales().Slice(1, 15), b.Zeros(), 3, 40, 8, runtime.ErrShape, []string{"scales", "14"}},
		{"zeros zero", b.Codes(), b.Scales(), vec32{}, 3, 40, 8, runtime.ErrShape, []string{"zeros"}},
		{"codes zero", c8{}, b.Scales(), b.Zeros(), 3, 40, 8, runtime.ErrShape, []string{"codes"}},
		{"scales foreign", b.Codes(), ff.s, b.Zeros(), 3, 40, 8, runtime.ErrForeign, []string{"scales"}},
		{"zeros foreign", b.Codes(), b.Scales(), ff.s, 3, 40, 8, runtime.ErrForeign, []string{"zeros"}},
	} {
		_, err := NewQ8Bank(c.codes, c.scales, c.zeros, c.rows, c.cols, c.group)
		checkRefused(t, "nn.NewQ8Bank", refusal{c.name, nil, c.sentinel, c.parts}, err)
	}
	// Bytes may start anywhere where a lane takes one at a time.
	odd, err := NewQ8Bank(long.Slice(3, 123), b.Scales().Slice(0, 12), b.Zeros().Slice(0, 12), 6, 20, 10)
	if err != nil {
		t.Fatal(err)
	}
	x, y := newBuffer(t, rt, make([]float32, 20)), output[float32](t, rt, 6)
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ8(p, y.s, odd, x.s) })
	y.written()

	if err := b.Release(); err != nil {
		t.Error(err)
	}
	if err := b.Release(); err == nil {
		t.Error("released twice")
	}
	bad := q
	bad.Zeros = bad.Zeros[1:]
	_, err = UploadQ8(rt, bad)
	checkRefused(t, "nn.UploadQ8", refusal{"short", nil, runtime.ErrShape, []string{"zeros"}}, err)
	if _, err := UploadQ8(nil, q); err == nil {
		t.Error("no runtime: not refused")
	}
}

// A released bank is refused by name.
func TestProductsRefuseReleasedBanks(t *testing.T) {
	rt := open(t)
	q := quantizedMLX(t, source(651), 5, 64, 32)
	tiles, err := q.Interleaved()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := q.Blocked()
	if err != nil {
		t.Fatal(err)
	}
	tile, err := UploadQ4MLXInterleaved(rt, tiles)
	if err != nil {
		t.Fatal(err)
	}
	block, err := UploadQ4MLXBlocked(rt, blocks)
	if err != nil {
		t.Fatal(err)
	}
	if tile.Rows() != 5 || tile.Cols() != 64 || tile.GroupSize() != 32 || tile.Packed().Len() != 8*8 || tile.ScalesBiases().Len() != 2*8*2 {
		t.Error("interleaved:", tile.Rows(), tile.Cols(), tile.GroupSize(), tile.Packed().Len(), tile.ScalesBiases().Len())
	}
	if block.Rows() != 5 || block.Cols() != 64 || block.GroupSize() != 32 || block.Packed().Len() != 16*8 || block.ScalesBiases().Len() != 2*16*2 {
		t.Error("blocked:", block.Rows(), block.Cols(), block.GroupSize(), block.Packed().Len(), block.ScalesBiases().Len())
	}
	words := make([]uint32, 64)
	if err := tile.Packed().Read(words); err != nil || !slices.Equal(words, tiles.Packed) {
		t.Error("not what was uploaded", err)
	}
	for _, b := range []interface{ Release() error }{tile, block} {
		if err := b.Release(); err != nil {
			t.Error(err)
		}
		if err := b.Release(); err == nil {
			t.Error("released twice")
		}
	}
	x, x16, y := newBuffer(t, rt, make([]float32, 64)), newBuffer(t, rt, make([]half.BFloat16, 64)), output[float32](t, rt, 5)
	refuses(t, rt, "", []target{y}, []refusal{
		{"interleaved", func(p *runtime.Pass) error { return GEMVQ4MLX(p, y.s, tile, x16.s) }, runtime.ErrClosed, []string{"w"}},
		{"blocked", func(p *runtime.Pass) error { return GEMVQ4MLXBlocked(p, y.s, block, x.s) }, runtime.ErrClosed, []string{"w"}},
	})
	if _, err := UploadQ4MLXBlocked(nil, blocks); err == nil {
		t.Error("no runtime: not refused")
	}
	if _, err := UploadQ4MLXInterleaved(nil, tiles); err == nil {
		t.Error("no runtime: not refused")
	}
	tiles.Packed = tiles.Packed[1:]
	_, err = UploadQ4MLXInterleaved(rt, tiles)
	checkRefused(t, "nn.UploadQ4MLXInterleaved", refusal{"short", nil, runtime.ErrShape, []string{"packed"}}, err)
	blocks.ScalesBiases[0] = 0x7fc0
	_, err = UploadQ4MLXBlocked(rt, blocks)
	checkRefused(t, "nn.UploadQ4MLXBlocked", refusal{"NaN", nil, runtime.ErrScalar, []string{"scales and biases"}}, err)
}

// Banks in tiles need exactly their memory, padding included, and its alignment.
func TestPaddedBanks(t *testing.T) {
	rt, foreign := open(t), open(t)
	packed, sb := output[uint32](t, rt, 33*8), output[half.BFloat16](t, rt, 33*4)
	fsb := output[half.BFloat16](t, foreign, 32*4)
	type p = runtime.Slice[uint32]
	for _, c := range []struct {
		name              string
		packed            func(n int) p
		sb                func(n int) vec16
		rows, cols, group int
		sentinel          error
		parts             []string
	}{
		{"group 48", nil, nil, 17, 96, 48, runtime.ErrShape, []string{"group size", "48"}},
		{"group 1024", nil, nil, 17, 1024, 1024, runtime.ErrShape, []string{"group size"}},
		{"ragged group", nil, nil, 17, 96, 64, runtime.ErrShape, []string{"columns", "multiple of the group size 64"}},
		{"no rows", nil, nil, 0, 64, 32, runtime.ErrShape, []string{"rows"}},
		{"packed without padding", func(int) p { return packed.s.Slice(0, 17*8) }, nil, 17, 64, 32, runtime.ErrShape, []string{"packed", "136"}},
		{"packed long", func(n int) p { return packed.s.Slice(0, n+8) }, nil, 17, 64, 32, runtime.ErrShape, []string{"packed"}},
		{"packed not aligned", func(n int) p { return packed.s.Slice(1, n+1) }, nil, 17, 64, 32, runtime.ErrShape, []string{"packed", "multiple of 8"}},
		{"sb without padding", nil, func(int) vec16 { return sb.s.Slice(0, 17*4) }, 17, 64, 32, runtime.ErrShape, []string{"scalesBiases", "68"}},
		{"sb not aligned", nil, func(n int) vec16 { return sb.s.Slice(1, n+1) }, 17, 64, 32, runtime.ErrShape, []string{"scalesBiases", "multiple of 4"}},
		{"sb foreign", nil, func(n int) vec16 { return fsb.s.Slice(0, n) }, 17, 64, 32, runtime.ErrForeign, []string{"scalesBiases"}},
		{"packed zero", func(int) p { return p{} }, nil, 17, 64, 32, runtime.ErrShape, []string{"packed"}},
	} {
		memory := func(rows int) (p, vec16) {
			words, pairs := packed.s.Slice(0, rows*8), sb.s.Slice(0, rows*4)
			if c.packed != nil {
				words = c.packed(rows * 8)
			}
			if c.sb != nil {
				pairs = c.sb(rows * 4)
			}
			return words, pairs
		}
		words, pairs := memory(32)
		_, err := NewQ4MLXBlockedBank(words, pairs, c.rows, c.cols, c.group)
		checkRefused(t, "nn.NewQ4MLXBlockedBank", refusal{c.name, nil, c.sentinel, c.parts}, err)
		words, pairs = memory(20)
		_, err = NewQ4MLXInterleavedBank(words, pairs, c.rows, c.cols, c.group)
		checkRefused(t, "nn.NewQ4MLXInterleavedBank", refusal{c.name, nil, c.sentinel, c.parts}, err)
	}
	if _, err := NewQ4MLXBlockedBank(packed.s.Slice(0, 32*8), sb.s.Slice(0, 32*4), 17, 64, 32); err != nil {
		t.Error(err)
	}
	if _, err := NewQ4MLXInterleavedBank(packed.s.Slice(0, 20*8), sb.s.Slice(0, 20*4), 17, 64, 32); err != nil {
		t.Error(err)
	}
}
