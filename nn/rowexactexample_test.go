package nn_test

import (
	"fmt"
	"log"
	"slices"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// Three vectors are multiplied at once, and the second of them alone: the bits are the same.
func ExampleRowExactMatvec() {
	const rows, cols, m = 4, 256, 3
	w, x := make([]float32, rows*cols), make([]float32, m*cols)
	for i := range w {
		w[i] = float32(i*37%101) - 50
	}
	for i := range x {
		x[i] = float32(i*i%29) / 7
	}
	blocks := make([]byte, rows*cols/256*quant.BlockQ4_K.Bytes())
	if err := quant.BlockQ4_K.Encode(blocks, w); err != nil {
		log.Fatal(err)
	}

	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	bank, err := nn.UploadBlocks(rt, quant.BlockQ4_K, blocks, rows, cols)
	if err != nil {
		log.Fatal(err)
	}
	in, err := runtime.SliceOf(rt, x)
	if err != nil {
		log.Fatal(err)
	}
	together, err := runtime.NewSlice[float32](rt, m*rows)
	if err != nil {
		log.Fatal(err)
	}
	alone, err := runtime.NewSlice[float32](rt, rows)
	if err != nil {
		log.Fatal(err)
	}
	err = rt.Run(func(p *runtime.Pass) error {
		if err := nn.RowExactMatvec(p, together, bank, in, nn.RowExactContiguous(m, rows, cols)); err != nil {
			return err
		}
		return nn.RowExactMatvec(p, alone, bank, in.Slice(cols, 2*cols), nn.RowExactContiguous(1, rows, cols))
	})
	if err != nil {
		log.Fatal(err)
	}
	a, b := make([]float32, m*rows), make([]float32, rows)
	if err := together.Read(a); err != nil {
		log.Fatal(err)
	}
	if err := alone.Read(b); err != nil {
		log.Fatal(err)
	}
	fmt.Println(slices.Equal(a[rows:2*rows], b))
	// Output: true
}
