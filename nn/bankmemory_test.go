package nn

import (
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Every part of every bank must be live memory.
func TestBanksOfReleasedMemory(t *testing.T) {
	rt := open(t)
	const rows, cols, group = 64, 64, 64
	words, numbers := rows*cols/8, rows*cols/group
	affine := quant.AffineFormat{Bits: 4, GroupSize: group, Scale: quant.ScaleF32}
	for _, c := range []struct {
		fn    string
		parts []string
		make  func(dead int) error
	}{
		{"nn.NewQ4MLXBank", []string{"packed", "scalesBiases"}, func(dead int) error {
			return second(NewQ4MLXBank(dying[uint32](t, rt, words, dead == 0), dying[half.BFloat16](t, rt, 2*numbers, dead == 1), rows, cols, group))
		}},
		{"nn.NewQ4MLXBlockedBank", []string{"packed", "scalesBiases"}, func(dead int) error {
			return second(NewQ4MLXBlockedBank(dying[uint32](t, rt, words, dead == 0), dying[half.BFloat16](t, rt, 2*numbers, dead == 1), rows, cols, group))
		}},
		{"nn.NewQ4MLXInterleavedBank", []string{"packed", "scalesBiases"}, func(dead int) error {
			return second(NewQ4MLXInterleavedBank(dying[uint32](t, rt, words, dead == 0), dying[half.BFloat16](t, rt, 2*numbers, dead == 1), rows, cols, group))
		}},
		{"nn.NewQ4Bank", []string{"packed", "scales", "zeros"}, func(dead int) error {
			return second(NewQ4Bank(dying[uint32](t, rt, words, dead == 0), dying[float32](t, rt, numbers, dead == 1), dying[float32](t, rt, numbers, dead == 2), rows, cols, group))
		}},
		{"nn.NewQ8Bank", []string{"codes", "scales", "zeros"}, func(dead int) error {
			return second(NewQ8Bank(dying[int8](t, rt, rows*cols, dead == 0), dying[float32](t, rt, numbers, dead == 1), dying[float32](t, rt, numbers, dead == 2), rows, cols, group))
		}},
		{"nn.NewAffineBank", []string{"weight", "scales", "biases"}, func(dead int) error {
			return second(NewAffineBank(affine, dying[uint8](t, rt, rows*cols/2, dead == 0), dying[uint8](t, rt, 4*numbers, dead == 1), dying[uint8](t, rt, 4*numbers, dead == 2), rows, cols))
		}},
		{"nn.NewAffineCodesBank", []string{"codes", "scales", "biases"}, func(dead int) error {
			return second(NewAffineCodesBank(dying[uint8](t, rt, rows*cols, dead == 0), dying[float32](t, rt, numbers, dead == 1), dying[float32](t, rt, numbers, dead == 2), rows, cols, group))
		}},
		{"nn.NewAffinePlaneBank", []string{"plane", "metadata"}, func(dead int) error {
			return second(NewAffinePlaneBank(dying[uint32](t, rt, words, dead == 0), dying[uint32](t, rt, numbers, dead == 1), rows, cols))
		}},
		{"nn.NewDenseBank", []string{"data"}, func(dead int) error {
			return second(NewDenseBank(dying[float32](t, rt, rows*cols, dead == 0), rows, cols))
		}},
		{"nn.NewBlockBank", []string{"data"}, func(dead int) error {
			return second(NewBlockBank(quant.BlockQ8_0, dying[uint8](t, rt, rows*cols/32*34, dead == 0), rows, cols))
		}},
	} {
		if err := c.make(-1); err != nil {
			t.Error(c.fn, err)
		}
		for i, part := range c.parts {
			checkRefused(t, c.fn, refusal{"released " + part, nil, runtime.ErrClosed, []string{part}}, c.make(i))
		}
	}
}

// dying is new memory, released at once or at the end of the test.
func dying[T runtime.Element](t *testing.T, rt *runtime.Runtime, n int, dead bool) runtime.Slice[T] {
	t.Helper()
	s, err := runtime.NewSlice[T](rt, n)
	if err != nil {
		t.Fatal(err)
	}
	if !dead {
		t.Cleanup(func() { s.Release() })
	} else if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Where not all parts of a bank find memory, none keeps any.
func TestUploadsKeepNothing(t *testing.T) {
	codes := quant.AffineCodes{Rows: 64, Cols: 1024, GroupSize: 2, Codes: make([]uint8, 64<<10), Scales: make([]float32, 32<<10), Biases: make([]float32, 32<<10)}
	partly := 0
	for budget := 32 << 10; budget <= 512<<10; budget += 32 << 10 {
		rt, err := runtime.Open(runtime.WithMemoryBudget(budget))
		if err != nil {
			t.Fatal(err)
		}
		bank, err := UploadAffineCodes(rt, codes)
		if m := rt.MemStats(); err != nil {
			checkRefused(t, "nn.UploadAffineCodes", refusal{"budget", nil, runtime.ErrLimit, nil}, err)
			if m.Live != 0 {
				t.Errorf("budget of %d: %d bytes are kept: %v", budget, m.Live, err)
			}
			if m.Allocations > 0 {
				partly++
			}
		} else if err := bank.Release(); err != nil {
			t.Error(err)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
	if partly == 0 {
		t.Error("no budget was enough for some parts only")
	}
}
