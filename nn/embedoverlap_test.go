package nn

import (
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// No lookup writes over its ids or a part of its table.
func TestEmbedLookupRefusesOverlaps(t *testing.T) {
	rt, r := open(t), source(1543)
	out := output[float32](t, rt, 1024)
	ids, err := runtime.As[uint32](out.s.View())
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := runtime.As[uint8](out.s.View())
	if err != nil {
		t.Fatal(err)
	}
	own := newBuffer(t, rt, []uint32{0})
	f := quant.AffineFormat{Bits: 8, GroupSize: 64, Scale: quant.ScaleF32}
	affine := randomAffine(t, rt, r, f, 2, 64).bank
	mlx := randomBank(t, rt, r, 2, 64, 64).bank
	q4, err := quant.QuantizeQ4(normals(r, 128, 1), 2, 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := UploadQ4(rt, q4)
	if err != nil {
		t.Fatal(err)
	}
	dense, err := UploadDense(rt, normals(r, 128, 1), 2, 64)
	if err != nil {
		t.Fatal(err)
	}
	over := []string{"out", "ids"}
	for _, c := range []struct {
		fn   string
		call func(p *runtime.Pass) error
	}{
		{"nn.EmbedLookup", func(p *runtime.Pass) error { return EmbedLookup(p, out.s, dense, ids.Slice(63, 64), 1, 1) }},
		{"nn.EmbedLookupAffine", func(p *runtime.Pass) error { return EmbedLookupAffine(p, out.s, affine, ids.Slice(63, 64), 1, 1) }},
		{"nn.EmbedLookupQ4", func(p *runtime.Pass) error { return EmbedLookupQ4(p, out.s, signed, ids.Slice(63, 64), 1, 1) }},
		{"nn.EmbedLookupQ4MLX", func(p *runtime.Pass) error { return EmbedLookupQ4MLX(p, out.s, mlx, ids.Slice(63, 64), 1, 1) }},
	} {
		refuses(t, rt, c.fn, []target{out}, []refusal{{"out over ids", c.call, runtime.ErrOverlap, over}})
	}
	// Each part of a table.
	parts := [3]runtime.Slice[uint8]{affine.Weight(), affine.Scales(), affine.Biases()}
	for i := range parts {
		in := parts
		in[i] = bytes.Slice(0, parts[i].Len())
		table, err := NewAffineBank(f, in[0], in[1], in[2], 2, 64)
		if err != nil {
			t.Fatal(err)
		}
		refuses(t, rt, "nn.EmbedLookupAffine", []target{out}, []refusal{{"out over a table's part",
			func(p *runtime.Pass) error { return EmbedLookupAffine(p, out.s, table, own.s, 1, 1) }, runtime.ErrOverlap, []string{"out", "the table"}}})
	}
}
