package nn

import (
	"errors"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestBlockBank(t *testing.T) {
	rt := open(t)
	r := source(690)
	for _, f := range quant.BlockFormats() {
		const rows = 4
		k := 2 * f.Values()
		data := randomBlocks(r, f, rows*k)
		b, err := UploadBlocks(rt, f, data, rows, k)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(data))
		if err := b.Data().Read(got); err != nil || string(got) != string(data) {
			t.Fatal(f, err)
		}
		if b.Format() != f || b.Type() != WeightTypeOf(f) || b.Type().Block() != f || b.Rows() != rows || b.Cols() != k || b.Type().String() != f.String() {
			t.Errorf("%v: %+v", f, b)
		}
		part, err := b.RowRange(1, 3)
		if err != nil || part.Rows() != 2 || part.Data().Len() != len(data)/2 || part.Data().View().Offset() != len(data)/4 {
			t.Errorf("%v: %+v, %v", f, part, err)
		}
		if err := part.Release(); !errors.Is(err, runtime.ErrMisuse) {
			t.Error(err)
		}
		again, err := NewBlockBank(f, b.Data(), rows, k)
		if err != nil || again != b {
			t.Error(again, err)
		}
		align := 2
		if f == quant.BlockQ4_K || f == quant.BlockQ5_K {
			align = 16
		}
		long, err := runtime.NewSlice[uint8](rt, len(data)+align)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewBlockBank(f, long.Slice(align, len(data)+align), rows, k); err != nil {
			t.Error(f, err)
		}
		for name, c := range map[string]refusal{
			"aligned": {"", func(*runtime.Pass) error {
				return second(NewBlockBank(f, long.Slice(align/2, len(data)+align/2), rows, k))
			}, runtime.ErrShape, []string{"data", "multiple of"}},
			"length": {"", func(*runtime.Pass) error { return second(NewBlockBank(f, long, rows, k)) }, runtime.ErrShape, []string{"data", "exactly"}},
			"cols":   {"", func(*runtime.Pass) error { return second(NewBlockBank(f, b.Data(), rows, k-1)) }, runtime.ErrShape, []string{"cols", "multiple of", f.String()}},
			"rows":   {"", func(*runtime.Pass) error { return second(NewBlockBank(f, b.Data(), 0, k)) }, runtime.ErrShape, []string{"rows"}},
			"huge": {"", func(*runtime.Pass) error {
				return second(NewBlockBank(f, b.Data(), math.MaxInt32, math.MaxInt32/256*256))
			}, runtime.ErrLimit, []string{"rows * bytes of a row"}},
			"format":     {"", func(*runtime.Pass) error { return second(NewBlockBank(0, b.Data(), rows, k)) }, runtime.ErrShape, []string{"format", "BlockFormat(0)"}},
			"no columns": {"", func(*runtime.Pass) error { return second(NewBlockBank(f, b.Data().Slice(0, 0), rows, 0)) }, runtime.ErrShape, []string{"cols", "0"}},
			"format 9":   {"", func(*runtime.Pass) error { return second(NewBlockBank(99, b.Data(), rows, k)) }, runtime.ErrShape, []string{"format"}},
			"zero":       {"", func(*runtime.Pass) error { return second(NewBlockBank(f, runtime.Slice[uint8]{}, rows, k)) }, runtime.ErrShape, []string{"data"}},
		} {
			c.name = f.String() + " " + name
			checkRefused(t, "nn.NewBlockBank", c, c.call(nil))
		}
		checkRefused(t, "nn.UploadBlocks", refusal{"length", nil, runtime.ErrShape, []string{"data"}}, second(UploadBlocks(rt, f, data[1:], rows, k)))
		checkRefused(t, "nn.UploadBlocks", refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt"}}, second(UploadBlocks(nil, f, data, rows, k)))
		checkRefused(t, "nn.BlockBank.RowRange", refusal{"range", nil, runtime.ErrShape, []string{"[2:2]"}}, second(b.RowRange(2, 2)))
		if err := b.Release(); err != nil {
			t.Error(err)
		}
		checkRefused(t, "nn.NewBlockBank", refusal{"released", nil, runtime.ErrClosed, []string{"data"}}, second(NewBlockBank(f, b.Data(), rows, k)))
	}
	checkRefused(t, "nn.BlockBank.RowRange", refusal{"zero bank", nil, runtime.ErrShape, []string{"bank", "NewBlockBank"}}, second(BlockBank{}.RowRange(0, 1)))
}

func TestDenseBank(t *testing.T) {
	rt := open(t)
	data := []half.BFloat16{1, 2, 3, 4, 5, 6}
	b, err := UploadDense(rt, data, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	if b.Rows() != 3 || b.Cols() != 2 || b.Type() != WeightBF16 || b.Data().Len() != 6 {
		t.Errorf("%+v", b)
	}
	part, err := b.RowRange(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]half.BFloat16, 4)
	if err := part.Data().Read(got); err != nil || got[0] != 3 || got[3] != 6 {
		t.Error(got, err)
	}
	f16, err := UploadDense(rt, make([]half.Float16, 4), 2, 2)
	if err != nil || f16.Type() != WeightF16 {
		t.Error(f16.Type(), err)
	}
	f32, err := UploadDense(rt, make([]float32, 4), 2, 2)
	if err != nil || f32.Type() != WeightF32 {
		t.Error(f32.Type(), err)
	}
	again, err := NewDenseBank(b.Data(), 3, 2)
	if err != nil || again != b {
		t.Error(again, err)
	}
	for _, c := range []struct {
		fn    string
		err   error
		want  error
		parts []string
	}{
		{"nn.NewDenseBank", second(NewDenseBank(b.Data(), 2, 2)), runtime.ErrShape, []string{"data", "6", "exactly 4"}},
		{"nn.NewDenseBank", second(NewDenseBank(b.Data(), 0, 2)), runtime.ErrShape, []string{"rows"}},
		{"nn.NewDenseBank", second(NewDenseBank(b.Data(), 3, -2)), runtime.ErrShape, []string{"cols"}},
		{"nn.NewDenseBank", second(NewDenseBank(b.Data(), math.MaxInt32, math.MaxInt32)), runtime.ErrLimit, []string{"rows * cols"}},
		{"nn.NewDenseBank", second(NewDenseBank(runtime.Slice[float32]{}, 1, 1)), runtime.ErrShape, []string{"data"}},
		{"nn.UploadDense", second(UploadDense(rt, data, 2, 2)), runtime.ErrShape, []string{"data"}},
		{"nn.UploadDense", second(UploadDense[float32](nil, nil, 2, 2)), runtime.ErrMisuse, []string{"rt"}},
		{"nn.DenseBank.RowRange", second(b.RowRange(1, 4)), runtime.ErrShape, []string{"[1:4]", "3 rows"}},
		{"nn.DenseBank.RowRange", second(DenseBank[float32]{}.RowRange(0, 1)), runtime.ErrShape, []string{"bank", "zero bank"}},
	} {
		checkRefused(t, c.fn, refusal{c.fn, nil, c.want, c.parts}, c.err)
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
}

func TestWeightType(t *testing.T) {
	types := WeightTypes()
	if len(types) != 10 || types[0] != WeightF32 || types[9] != WeightQ6_K {
		t.Error(types)
	}
	for _, wt := range types {
		unit, bytes := 1, 4
		if f := wt.Block(); f != 0 {
			unit, bytes = f.Values(), f.Bytes()
			if WeightTypeOf(f) != wt || wt.String() != f.String() {
				t.Error(wt, f)
			}
		} else if wt != WeightF32 {
			bytes = 2
		}
		if got := wt.RowBytes(3 * unit); got != 3*bytes {
			t.Errorf("%v: %d bytes", wt, got)
		}
		if got := wt.RowBytes(3*unit - 1); unit > 1 && got != 0 {
			t.Errorf("%v: %d bytes for no whole number of blocks", wt, got)
		}
		if wt.RowBytes(-unit) != 0 || wt.RowBytes(1<<40) != 0 || wt.RowBytes(0) != 0 {
			t.Error(wt)
		}
	}
	if WeightType(0).String() != "WeightType(0)" || WeightType(0).Block() != 0 || WeightType(0).RowBytes(4) != 0 || WeightTypeOf(0) != 0 || WeightTypeOf(99) != 0 {
		t.Error("what is no type has values")
	}
}
