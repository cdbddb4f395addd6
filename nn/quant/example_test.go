package quant_test

import (
	"fmt"

	"github.com/ingot-metal/ingot/nn/quant"
)

func Example() {
	w := make([]float32, 2*32)
	for i := range w {
		w[i] = float32(i%16)/8 - 1 // -1, -0.875, ... 0.875
	}
	q, err := quant.QuantizeQ4MLX(w, 2, 32, 32)
	if err != nil {
		fmt.Println(err)
		return
	}
	back := make([]float32, len(w))
	if err := q.Dequantize(back); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d weights in %d words, scale %v, bias %v\n", len(w), len(q.Packed), q.ScalesBiases[0], q.ScalesBiases[1])
	fmt.Println(back[0], back[1], back[15])

	_, err = quant.QuantizeQ4MLX(w, 2, 32, 64)
	fmt.Println(err)
	// Output:
	// 64 weights in 8 words, scale 0.125, bias -1
	// -1 -0.875 0.875
	// quant.QuantizeQ4MLX: columns: have 32, need a multiple of the group size 64: shape mismatch
}

func ExampleBlockFormat() {
	f := quant.BlockQ8_0
	weights := make([]float32, 64)
	for i := range weights {
		weights[i] = float32(i) / 4
	}
	size, _ := f.Size(len(weights))
	blocks := make([]byte, size)
	if err := f.Encode(blocks, weights); err != nil {
		fmt.Println(err)
		return
	}
	got := make([]float32, 64)
	if err := f.Decode(got, blocks); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v: %d bytes, %.2f %.2f\n", f, size, got[0], got[63])
	// Output: Q8_0: 68 bytes, 0.00 15.75
}
