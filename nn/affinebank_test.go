package nn

import (
	"errors"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

func TestAffineBank(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(1590)
	f := quant.AffineFormat{Bits: 6, GroupSize: 32, Scale: quant.ScaleF16}
	m := randomAffine(t, rt, r, f, 5, 64)
	bank, err := UploadAffine(rt, m.host)
	if err != nil {
		t.Fatal(err)
	}
	if bank.Rows() != 5 || bank.Cols() != 64 || bank.Format() != f || bank.Weight().Len() != 5*48 || bank.Scales().Len() != 20 || bank.Biases().Len() != 20 {
		t.Error(bank)
	}
	part, err := bank.RowRange(1, 4)
	if err != nil || part.Rows() != 3 {
		t.Fatal(err)
	}
	x, all, some := newBuffer(t, rt, normals(r, 64, 1)), output[float32](t, rt, 5), output[float32](t, rt, 3)
	encode(t, rt, 2, func(p *runtime.Pass) error {
		if err := QMMAffine(p, all.s, bank, x.s, 1); err != nil {
			return err
		}
		return QMMAffine(p, some.s, part, x.s, 1)
	})
	sameElements(t, "rows 1 to 3", all.written()[1:4], some.written())
	for _, bad := range [][2]int{{-1, 2}, {2, 2}, {4, 6}} {
		checkRefused(t, "nn.AffineBank.RowRange", refusal{"rows", nil, runtime.ErrShape, []string{"[", "5 rows"}}, second(bank.RowRange(bad[0], bad[1])))
	}
	checkRefused(t, "nn.AffineBank.RowRange", refusal{"zero", nil, runtime.ErrShape, []string{"bank", "zero bank"}}, second(AffineBank{}.RowRange(0, 1)))
	checkRefused(t, "nn.AffineBank.Release", refusal{"zero", nil, runtime.ErrShape, []string{"bank", "zero bank"}}, AffineBank{}.Release())
	if err := part.Release(); !errors.Is(err, runtime.ErrMisuse) {
		t.Error("a part was released:", err)
	}
	if err := bank.Release(); err != nil {
		t.Error(err)
	}
	checkRefused(t, "nn.AffineBank.Release", refusal{"twice", nil, runtime.ErrClosed, []string{"weight"}}, bank.Release())

	bytes := newBuffer(t, rt, make([]uint8, 512)).s
	theirs := newBuffer(t, foreign, make([]uint8, 512)).s
	weight, numbers := bytes.Slice(0, 240), bytes.Slice(240, 260)
	for _, c := range []struct {
		name                   string
		f                      quant.AffineFormat
		weight, scales, biases runtime.Slice[uint8]
		rows, cols             int
		sentinel               error
		parts                  []string
	}{
		{"bits", quant.AffineFormat{Bits: 5, GroupSize: 32, Scale: quant.ScaleF16}, weight, numbers, numbers, 5, 64, runtime.ErrShape, []string{"bits", "5"}},
		{"groups", quant.AffineFormat{Bits: 6, GroupSize: 48, Scale: quant.ScaleF16}, weight, numbers, numbers, 5, 64, runtime.ErrShape, []string{"group size"}},
		{"scale", quant.AffineFormat{Bits: 6, GroupSize: 32}, weight, numbers, numbers, 5, 64, runtime.ErrShape, []string{"scale type"}},
		{"rows", f, weight, numbers, numbers, 0, 64, runtime.ErrShape, []string{"rows"}},
		{"columns", f, weight, numbers, numbers, 5, 63, runtime.ErrShape, []string{"columns"}},
		{"weight short", f, weight.Slice(0, 239), numbers, numbers, 5, 64, runtime.ErrShape, []string{"weight", "239", "240"}},
		{"weight long", f, bytes, numbers, numbers, 5, 64, runtime.ErrShape, []string{"weight", "512"}},
		{"scales", f, weight, numbers.Slice(0, 18), numbers, 5, 64, runtime.ErrShape, []string{"scales", "18", "20"}},
		{"biases", f, weight, numbers, bytes, 5, 64, runtime.ErrShape, []string{"biases", "512"}},
		{"weight not aligned", f, bytes.Slice(4, 244), numbers, numbers, 5, 64, runtime.ErrShape, []string{"weight", "multiple of 8"}},
		{"scales not aligned", f, weight, bytes.Slice(241, 261), numbers, 5, 64, runtime.ErrShape, []string{"scales", "multiple of 2"}},
		{"biases not aligned", quant.AffineFormat{Bits: 6, GroupSize: 32, Scale: quant.ScaleF32}, weight, bytes.Slice(240, 280), bytes.Slice(242, 282), 5, 64, runtime.ErrShape, []string{"biases", "multiple of 4"}},
		{"zero", f, runtime.Slice[uint8]{}, numbers, numbers, 5, 64, runtime.ErrShape, []string{"weight"}},
		{"foreign", f, weight, numbers, theirs.Slice(0, 20), 5, 64, runtime.ErrForeign, []string{"biases", "of weight"}},
	} {
		checkRefused(t, "nn.NewAffineBank", refusal{c.name, nil, c.sentinel, c.parts}, second(NewAffineBank(c.f, c.weight, c.scales, c.biases, c.rows, c.cols)))
	}
	bad := m.host
	bad.Scales = []byte{0, 0x7c}
	checkRefused(t, "nn.UploadAffine", refusal{"short", nil, runtime.ErrShape, []string{"scales"}}, second(UploadAffine(rt, bad)))
	bad.Scales = append([]byte{0, 0x7c}, m.host.Scales[2:]...)
	checkRefused(t, "nn.UploadAffine", refusal{"infinite", nil, runtime.ErrScalar, []string{"scales", "+Inf at index 0"}}, second(UploadAffine(rt, bad)))
	if _, err := UploadAffine(nil, m.host); err == nil {
		t.Error("no runtime")
	}
}

func TestAffineCodesBank(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(1591)
	host := randomAffineCodes(t, rt, r, 3, 32, 16).host
	bank, err := UploadAffineCodes(rt, host)
	if err != nil {
		t.Fatal(err)
	}
	if bank.Rows() != 3 || bank.Cols() != 32 || bank.GroupSize() != 16 {
		t.Error(bank)
	}
	if err := bank.Release(); err != nil {
		t.Error(err)
	}
	checkRefused(t, "nn.AffineCodesBank.Release", refusal{"twice", nil, runtime.ErrClosed, []string{"codes"}}, bank.Release())
	checkRefused(t, "nn.AffineCodesBank.Release", refusal{"zero", nil, runtime.ErrShape, []string{"bank", "zero bank"}}, AffineCodesBank{}.Release())
	codes, numbers, theirs := newBuffer(t, rt, make([]uint8, 96)).s, newBuffer(t, rt, make([]float32, 6)).s, newBuffer(t, foreign, make([]float32, 6)).s
	checkRefused(t, "nn.NewAffineCodesBank", refusal{"codes", nil, runtime.ErrShape, []string{"codes", "95", "96"}}, second(NewAffineCodesBank(codes.Slice(1, 96), numbers, numbers, 3, 32, 16)))
	checkRefused(t, "nn.NewAffineCodesBank", refusal{"scales", nil, runtime.ErrShape, []string{"scales", "5", "6"}}, second(NewAffineCodesBank(codes, numbers.Slice(1, 6), numbers, 3, 32, 16)))
	checkRefused(t, "nn.NewAffineCodesBank", refusal{"biases", nil, runtime.ErrShape, []string{"biases", "5", "6"}}, second(NewAffineCodesBank(codes, numbers, numbers.Slice(1, 6), 3, 32, 16)))
	checkRefused(t, "nn.NewAffineCodesBank", refusal{"foreign", nil, runtime.ErrForeign, []string{"biases", "of codes"}}, second(NewAffineCodesBank(codes, numbers, theirs, 3, 32, 16)))
	bad := host
	bad.Codes = nil
	checkRefused(t, "nn.UploadAffineCodes", refusal{"no codes", nil, runtime.ErrShape, []string{"codes"}}, second(UploadAffineCodes(rt, bad)))
	bad = host
	bad.Biases = append([]float32{float32(math.Inf(-1))}, host.Biases[1:]...)
	checkRefused(t, "nn.UploadAffineCodes", refusal{"infinite", nil, runtime.ErrScalar, []string{"biases", "-Inf"}}, second(UploadAffineCodes(rt, bad)))
}

func TestAffinePlaneBank(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(1592)
	p, err := randomAffine(t, rt, r, planeFormat, 64, 128).host.Plane()
	if err != nil {
		t.Fatal(err)
	}
	bank, err := UploadAffinePlane(rt, p)
	if err != nil {
		t.Fatal(err)
	}
	if bank.Rows() != 64 || bank.Cols() != 128 {
		t.Error(bank)
	}
	if err := bank.Release(); err != nil {
		t.Error(err)
	}
	checkRefused(t, "nn.AffinePlaneBank.Release", refusal{"twice", nil, runtime.ErrClosed, []string{"plane"}}, bank.Release())
	checkRefused(t, "nn.AffinePlaneBank.Release", refusal{"zero", nil, runtime.ErrShape, []string{"bank", "zero bank"}}, AffinePlaneBank{}.Release())
	words, numbers, theirs := newBuffer(t, rt, make([]uint32, 1028)).s, newBuffer(t, rt, make([]uint32, 128)).s, newBuffer(t, foreign, make([]uint32, 128)).s
	plane := words.Slice(0, 1024)
	checkRefused(t, "nn.NewAffinePlaneBank", refusal{"rows", nil, runtime.ErrShape, []string{"rows", "65"}}, second(NewAffinePlaneBank(plane, numbers, 65, 128)))
	checkRefused(t, "nn.NewAffinePlaneBank", refusal{"plane", nil, runtime.ErrShape, []string{"plane", "1028", "1024"}}, second(NewAffinePlaneBank(words, numbers, 64, 128)))
	checkRefused(t, "nn.NewAffinePlaneBank", refusal{"metadata", nil, runtime.ErrShape, []string{"metadata", "127", "128"}}, second(NewAffinePlaneBank(plane, numbers.Slice(0, 127), 64, 128)))
	checkRefused(t, "nn.NewAffinePlaneBank", refusal{"not aligned", nil, runtime.ErrShape, []string{"plane", "multiple of 16"}}, second(NewAffinePlaneBank(words.Slice(2, 1026), numbers, 64, 128)))
	checkRefused(t, "nn.NewAffinePlaneBank", refusal{"foreign", nil, runtime.ErrForeign, []string{"metadata", "of plane"}}, second(NewAffinePlaneBank(plane, theirs, 64, 128)))
	infinite := p
	infinite.Metadata = append([]uint32{0x7f80}, p.Metadata[1:]...)
	checkRefused(t, "nn.UploadAffinePlane", refusal{"infinite", nil, runtime.ErrScalar, []string{"metadata", "0x7f80"}}, second(UploadAffinePlane(rt, infinite)))
	bad := p
	bad.Metadata = nil
	checkRefused(t, "nn.UploadAffinePlane", refusal{"no metadata", nil, runtime.ErrShape, []string{"metadata"}}, second(UploadAffinePlane(rt, bad)))
}
