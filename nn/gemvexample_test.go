package nn_test

import (
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Two vectors are multiplied with an interleaved matrix at once, and added to what is there.
func ExampleGEMMQ4MLXAdd() {
	const rows, cols, m = 3, 32, 2
	w := make([]float32, rows*cols)
	for i := range w {
		w[i] = float32(i%cols%16) - 8
	}
	q, err := quant.QuantizeQ4MLX(w, rows, cols, 32)
	if err != nil {
		log.Fatal(err)
	}
	tiles, err := q.Interleaved()
	if err != nil {
		log.Fatal(err)
	}
	x := make([]float32, m*cols)
	x[0], x[cols+9] = 2, 1 // the first vector picks 2 * -8, the second 1

	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	bank, err := nn.UploadQ4MLXInterleaved(rt, tiles)
	if err != nil {
		log.Fatal(err)
	}
	in, err := runtime.SliceOf(rt, half.BFloat16s(x))
	if err != nil {
		log.Fatal(err)
	}
	y, err := runtime.SliceOf(rt, []float32{1, 2, 3, 4, 5, 6})
	if err != nil {
		log.Fatal(err)
	}
	err = rt.Run(func(p *runtime.Pass) error { return nn.GEMMQ4MLXAdd(p, y, bank, in, y, m) })
	if err != nil {
		log.Fatal(err)
	}
	out := make([]float32, m*rows)
	if err := y.Read(out); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
	// Output: [-15 -14 -13 5 6 7]
}
