package nn_test

import (
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// A matrix of 6-bit codes, as MLX stores it, is multiplied with two vectors of bfloat16.
func ExampleQMMAffine() {
	const rows, cols, m = 3, 64, 2
	w := make([]float32, rows*cols)
	for i := range w {
		w[i] = float32(i%cols) - 32 // -32 to 31
	}
	a, err := quant.QuantizeAffine(w, rows, cols, quant.AffineFormat{Bits: 6, GroupSize: 64, Scale: quant.ScaleBF16})
	if err != nil {
		log.Fatal(err)
	}
	x := make([]float32, m*cols)
	x[0], x[cols+40] = 2, 1 // the first vector picks 2 * -32, the second 8

	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	bank, err := nn.UploadAffine(rt, a)
	if err != nil {
		log.Fatal(err)
	}
	in, err := runtime.SliceOf(rt, half.BFloat16s(x))
	if err != nil {
		log.Fatal(err)
	}
	y, err := runtime.NewSlice[float32](rt, m*rows)
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.Run(func(p *runtime.Pass) error { return nn.QMMAffine(p, y, bank, in, m) }); err != nil {
		log.Fatal(err)
	}
	got := make([]float32, m*rows)
	if err := y.Read(got); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bank.Format(), got)
	// Output: 6-bit codes in groups of 64, BF16 [-64 -64 -64 8 8 8]
}
