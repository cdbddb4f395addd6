package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

func TestNewQ4Bank(t *testing.T) {
	rt, foreign := open(t), open(t)
	packed, scales, zeros := output[uint32](t, rt, 3*40/8+4), output[float32](t, rt, 16), output[float32](t, rt, 16)
	fp, fs := output[uint32](t, foreign, 15), output[float32](t, foreign, 15)
	p15, s15, z15 := packed.s.Slice(0, 15), scales.s.Slice(1, 16), zeros.s.Slice(0, 15)
	b, err := NewQ4Bank(p15, s15, z15, 3, 40, 8)
	if err != nil || b.Rows() != 3 || b.Cols() != 40 || b.GroupSize() != 8 || b.Packed().Len() != 15 || b.Scales().Len() != 15 || b.Zeros().Len() != 15 {
		t.Fatal(b, err)
	}
	type p = runtime.Slice[uint32]
	type s = runtime.Slice[float32]
	for _, c := range []struct {
		name              string
		packed            p
		scales, zeros     s
		rows, cols, group int
		sentinel          error
		parts             []string
	}{
		{"no rows", p15, s15, z15, 0, 40, 8, runtime.ErrShape, []string{"rows"}},
		{"rows huge", p15, s15, z15, math.MaxInt, 40, 8, runtime.ErrShape, []string{"rows"}},
		{"product huge", p15, s15, z15, math.MaxInt32, math.MaxInt32 / 8 * 8, 8, runtime.ErrShape, nil},
		{"no columns", p15, s15, z15, 3, 0, 8, runtime.ErrShape, []string{"columns"}},
		{"ragged", p15, s15, z15, 3, 40, 16, runtime.ErrShape, []string{"columns", "multiple of the group size 16"}},
		{"group 4", p15, s15, z15, 3, 40, 4, runtime.ErrShape, []string{"group size"}},
		{"group 0", p15, s15, z15, 3, 40, 0, runtime.ErrShape, []string{"group size"}},
		{"packed short", p15.Slice(0, 14), s15, z15, 3, 40, 8, runtime.ErrShape, []string{"packed", "14", "15"}},
		{"packed long", packed.s.Slice(0, 16), s15, z15, 3, 40, 8, runtime.ErrShape, []string{"packed", "16"}},
		{"scales short", p15, s15.Slice(1, 15), z15, 3, 40, 8, runtime.ErrShape, []string{"scales", "14"}},
		{"zeros long", p15, s15, zeros.s, 3, 40, 8, runtime.ErrShape, []string{"zeros", "16"}},
		{"packed zero", p{}, s15, z15, 3, 40, 8, runtime.ErrShape, []string{"packed"}},
		{"scales zero", p15, s{}, z15, 3, 40, 8, runtime.ErrShape, []string{"scales"}},
		{"zeros zero", p15, s15, s{}, 3, 40, 8, runtime.ErrShape, []string{"zeros"}},
		{"scales of another runtime", p15, fs.s, z15, 3, 40, 8, runtime.ErrForeign, []string{"scales"}},
		{"zeros of another runtime", p15, s15, fs.s, 3, 40, 8, runtime.ErrForeign, []string{"zeros"}},
		{"packed of another runtime", fp.s, s15, z15, 3, 40, 8, runtime.ErrForeign, []string{"scales"}},
	} {
		_, err := NewQ4Bank(c.packed, c.scales, c.zeros, c.rows, c.cols, c.group)
		checkRefused(t, "nn.NewQ4Bank", refusal{c.name, nil, c.sentinel, c.parts}, err)
	}
	for _, c := range [][2]int{{-1, 2}, {2, 2}, {2, 1}, {0, 4}} {
		_, err := b.RowRange(c[0], c[1])
		checkRefused(t, "nn.Q4Bank.RowRange", refusal{"range", nil, runtime.ErrShape, []string{"[", "3 rows"}}, err)
	}
	_, err = Q4Bank{}.RowRange(0, 1)
	checkRefused(t, "nn.Q4Bank.RowRange", refusal{"zero bank", nil, runtime.ErrShape, []string{"bank", "zero bank"}}, err)
	part, err := b.RowRange(1, 3)
	if err != nil || part.Rows() != 2 || part.Packed().View().Offset() != p15.View().Offset()+20 || part.Scales().View().Offset() != s15.View().Offset()+20 ||
		part.Zeros().View().Offset() != z15.View().Offset()+20 || part.Zeros().Len() != 10 {
		t.Error(part, err)
	}
	if err := part.Release(); err == nil {
		t.Error("a part of a bank was released")
	}
}

func TestUploadQ4(t *testing.T) {
	rt := open(t)
	q, err := quant.QuantizeQ4(normals(source(171), 5*48, 1), 5, 48, 24)
	if err != nil {
		t.Fatal(err)
	}
	b, err := UploadQ4(rt, q)
	if err != nil {
		t.Fatal(err)
	}
	packed, scales, zeros := make([]uint32, len(q.Packed)), make([]float32, len(q.Scales)), make([]float32, len(q.Zeros))
	for _, err := range []error{b.Packed().Read(packed), b.Scales().Read(scales), b.Zeros().Read(zeros)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(packed, q.Packed) || !slices.Equal(scales, q.Scales) || !slices.Equal(zeros, q.Zeros) {
		t.Error("not what was uploaded")
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
	if err := b.Release(); err == nil {
		t.Error("released twice")
	}
	bad := q
	bad.Zeros = bad.Zeros[1:]
	_, err = UploadQ4(rt, bad)
	checkRefused(t, "nn.UploadQ4", refusal{"short", nil, runtime.ErrShape, []string{"zeros"}}, err)
	bad.Zeros = append([]float32{float32(math.Inf(1))}, q.Zeros[1:]...)
	_, err = UploadQ4(rt, bad)
	checkRefused(t, "nn.UploadQ4", refusal{"infinite", nil, runtime.ErrScalar, []string{"zeros"}}, err)
	if _, err := UploadQ4(nil, q); err == nil {
		t.Error("no runtime: not refused")
	}
}
