package nn_test

import (
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Four tokens look at themselves and the one before. Values lie in the cache as codes; since all keys are zero, each token
// gets the mean of the two values that it sees.
func ExampleFlashAttnPrecise() {
	const dim, tokens, capacity = 64, 4, 16
	codec := quant.TQHB{Dim: dim, Bits: 8}
	values := make([]float32, tokens*dim) // of one head: token t has t + 1 everywhere
	for i := range values {
		values[i] = float32(i/dim + 1)
	}

	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	q, err := runtime.NewSlice[half.Float16](rt, tokens*dim)
	if err != nil {
		log.Fatal(err)
	}
	k, err := runtime.NewSlice[half.Float16](rt, capacity*dim)
	if err != nil {
		log.Fatal(err)
	}
	v, err := runtime.SliceOf(rt, values)
	if err != nil {
		log.Fatal(err)
	}
	start, err := runtime.SliceOf(rt, []uint32{0}) // where the first token goes
	if err != nil {
		log.Fatal(err)
	}
	cache := nn.TQHBCache{Capacity: capacity, Codec: codec}
	if cache.Codes, err = runtime.NewSlice[uint8](rt, capacity*dim); err != nil {
		log.Fatal(err)
	}
	if cache.Norms, err = runtime.NewSlice[float32](rt, capacity*codec.Norms()); err != nil {
		log.Fatal(err)
	}
	out, err := runtime.NewSlice[float32](rt, tokens*dim)
	if err != nil {
		log.Fatal(err)
	}
	err = rt.Run(func(p *runtime.Pass) error {
		if err := nn.TQHBEncode(p, cache, v, start, tokens, 1, false); err != nil {
			return err
		}
		return nn.FlashAttnPrecise(p, out, q, k, nn.PreciseV{Codes: cache.Codes, Norms: cache.Norms, Codec: codec}, nn.PreciseDims{
			Batch: 1, Heads: 1, HeadsKV: 1, HeadDim: dim, Tq: tokens, Tk: tokens, Capacity: capacity,
			Causal: true, Window: 2, Scale: 0.125,
		})
	})
	if err != nil {
		log.Fatal(err)
	}
	result := make([]float32, tokens*dim)
	if err := out.Read(result); err != nil {
		log.Fatal(err)
	}
	if err := codec.Unrotate(result); err != nil { // codes are of rotated vectors, and so is their mean
		log.Fatal(err)
	}
	for t := range tokens {
		fmt.Printf("%.1f ", result[t*dim])
	}
	// Output: 1.0 1.5 2.5 3.5
}
