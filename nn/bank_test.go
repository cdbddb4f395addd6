package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestNewQ4MLXBank(t *testing.T) {
	rt, foreign := open(t), open(t)
	packed, sb := output[uint32](t, rt, 3*96/8+4), output[half.BFloat16](t, rt, 2*3*3+2)
	fp, fs := output[uint32](t, foreign, 36), output[half.BFloat16](t, foreign, 18)
	p36, s18 := packed.s.Slice(0, 36), sb.s.Slice(0, 18)
	b, err := NewQ4MLXBank(p36, s18, 3, 96, 32)
	if err != nil || b.Rows() != 3 || b.Cols() != 96 || b.GroupSize() != 32 || b.Packed().Len() != 36 || b.ScalesBiases().Len() != 18 {
		t.Fatal(b, err)
	}
	type p = runtime.Slice[uint32]
	type s = runtime.Slice[half.BFloat16]
	for _, c := range []struct {
		name              string
		packed            p
		sb                s
		rows, cols, group int
		sentinel          error
		parts             []string
	}{
		{"no rows", p36, s18, 0, 96, 32, runtime.ErrShape, []string{"rows"}},
		{"rows negative", p36, s18, -3, 96, 32, runtime.ErrShape, []string{"rows"}},
		{"rows huge", p36, s18, math.MaxInt, 96, 32, runtime.ErrShape, []string{"rows"}},
		{"product huge", p36, s18, math.MaxInt32, math.MaxInt32 / 512 * 512, 512, runtime.ErrShape, nil},
		{"no columns", p36, s18, 3, 0, 32, runtime.ErrShape, []string{"columns"}},
		{"ragged", p36, s18, 3, 96, 64, runtime.ErrShape, []string{"columns", "multiple of the group size 64"}},
		{"group 16", p36, s18, 3, 96, 16, runtime.ErrShape, []string{"group size"}},
		{"group 0", p36, s18, 3, 96, 0, runtime.ErrShape, []string{"group size"}},
		{"group 1024", p36, s18, 3, 1024, 1024, runtime.ErrShape, []string{"group size"}},
		{"packed short", p36.Slice(0, 35), s18, 3, 96, 32, runtime.ErrShape, []string{"packed", "35", "36"}},
		{"packed long", packed.s.Slice(0, 37), s18, 3, 96, 32, runtime.ErrShape, []string{"packed", "37"}},
		{"pairs short", p36, s18.Slice(0, 17), 3, 96, 32, runtime.ErrShape, []string{"scalesBiases", "17"}},
		{"packed not aligned", packed.s.Slice(1, 37), s18, 3, 96, 32, runtime.ErrShape, []string{"packed", "8 bytes"}},
		{"pairs not aligned", p36, sb.s.Slice(1, 19), 3, 96, 32, runtime.ErrShape, []string{"scalesBiases", "4 bytes"}},
		{"packed zero", p{}, s18, 3, 96, 32, runtime.ErrShape, []string{"packed"}},
		{"pairs zero", p36, s{}, 3, 96, 32, runtime.ErrShape, []string{"scalesBiases"}},
		{"two runtimes", p36, fs.s, 3, 96, 32, runtime.ErrForeign, []string{"scalesBiases"}},
		{"two runtimes again", fp.s, s18, 3, 96, 32, runtime.ErrForeign, []string{"scalesBiases"}},
	} {
		_, err := NewQ4MLXBank(c.packed, c.sb, c.rows, c.cols, c.group)
		checkRefused(t, "nn.NewQ4MLXBank", refusal{c.name, nil, c.sentinel, c.parts}, err)
	}
	for _, c := range [][2]int{{-1, 2}, {2, 2}, {2, 1}, {0, 4}} {
		_, err := b.RowRange(c[0], c[1])
		checkRefused(t, "nn.Q4MLXBank.RowRange", refusal{"range", nil, runtime.ErrShape, []string{"[", "3 rows"}}, err)
	}
	_, err = Q4MLXBank{}.RowRange(0, 1)
	checkRefused(t, "nn.Q4MLXBank.RowRange", refusal{"zero bank", nil, runtime.ErrShape, []string{"bank", "zero bank"}}, err)
	part, err := b.RowRange(1, 3)
	if err != nil || part.Rows() != 2 || part.Packed().View().Offset() != p36.View().Offset()+48 || part.ScalesBiases().View().Offset() != s18.View().Offset()+12 {
		t.Error(part, err)
	}
	if err := part.Release(); err == nil {
		t.Error("a part of a bank was released")
	}
}

func TestUploadQ4MLX(t *testing.T) {
	rt := open(t)
	q, err := quant.QuantizeQ4MLX(normals(source(71), 5*64, 1), 5, 64, 32)
	if err != nil {
		t.Fatal(err)
	}
	b, err := UploadQ4MLX(rt, q)
	if err != nil {
		t.Fatal(err)
	}
	packed, sb := make([]uint32, len(q.Packed)), make([]half.BFloat16, len(q.ScalesBiases))
	if err := b.Packed().Read(packed); err != nil {
		t.Fatal(err)
	}
	if err := b.ScalesBiases().Read(sb); err != nil {
		t.Fatal(err)
	}
	for i := range packed {
		if packed[i] != q.Packed[i] {
			t.Fatalf("word %d", i)
		}
	}
	for i := range sb {
		if sb[i] != q.ScalesBiases[i] {
			t.Fatalf("scale or bias %d", i)
		}
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
	if err := b.Release(); err == nil {
		t.Error("released twice")
	}
	bad := q
	bad.Packed = bad.Packed[1:]
	_, err = UploadQ4MLX(rt, bad)
	checkRefused(t, "nn.UploadQ4MLX", refusal{"short", nil, runtime.ErrShape, []string{"packed"}}, err)
	bad = q
	bad.ScalesBiases = append([]half.BFloat16{0x7fc0}, bad.ScalesBiases[1:]...)
	_, err = UploadQ4MLX(rt, bad)
	checkRefused(t, "nn.UploadQ4MLX", refusal{"NaN", nil, runtime.ErrScalar, []string{"scales and biases", "NaN"}}, err)
	if _, err := UploadQ4MLX(nil, q); err == nil {
		t.Error("no runtime: not refused")
	}
}
