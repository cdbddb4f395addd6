package nn_test

import (
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// A prompt of three tokens: their embeddings, and the product of all of them with a matrix in blocks, added to a residual.
func ExampleGEMMWeightsEpilogue() {
	const vocab, dim = 5, 32
	w := make([]float32, vocab*dim)
	for i := range w {
		w[i] = float32(i % dim % (i/dim + 2))
	}
	blocks := make([]byte, vocab*quant.BlockQ8_0.Bytes())
	if err := quant.BlockQ8_0.Encode(blocks, w); err != nil {
		log.Fatal(err)
	}

	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	table, err := nn.UploadBlocks(rt, quant.BlockQ8_0, blocks, vocab, dim)
	if err != nil {
		log.Fatal(err)
	}
	ids, err := runtime.SliceOf(rt, []uint32{4, 0, 2})
	if err != nil {
		log.Fatal(err)
	}
	x, err := runtime.NewSlice[float32](rt, 3*dim)
	if err != nil {
		log.Fatal(err)
	}
	y, err := runtime.SliceOf(rt, make([]float32, 3*vocab)) // the residual, and the result in its place
	if err != nil {
		log.Fatal(err)
	}
	err = rt.Run(func(p *runtime.Pass) error {
		if err := nn.EmbedLookup(p, x, table, ids, 3, 1); err != nil {
			return err
		}
		return nn.GEMMWeightsEpilogue(p, y, table, x, 3, nn.Epilogue[float32]{Alpha: 1, Beta: 1, C: y})
	})
	if err != nil {
		log.Fatal(err)
	}
	out := make([]float32, 3*vocab)
	if err := y.Read(out); err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		fmt.Printf("%.0f\n", out[i*vocab:(i+1)*vocab])
	}
	// Output:
	// [46 96 118 151 276]
	// [16 16 32 31 46]
	// [32 46 112 89 118]
}
