package nn_test

import (
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// A layer of two outputs over three inputs, for two rows at once: weights as they are mostly stored, a row for each output, a
// bias and ReLU.
func ExampleGEMMEpilogue() {
	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	x, err := runtime.SliceOf(rt, half.Float16s([]float32{1, 2, 3, -1, 0, 1}))
	if err != nil {
		log.Fatal(err)
	}
	w, err := runtime.SliceOf(rt, half.Float16s([]float32{1, 1, 1, 2, 0, -1}))
	if err != nil {
		log.Fatal(err)
	}
	bias, err := runtime.SliceOf(rt, []float32{0.5, 1})
	if err != nil {
		log.Fatal(err)
	}
	y, err := runtime.NewSlice[float32](rt, 4)
	if err != nil {
		log.Fatal(err)
	}
	err = rt.Run(func(p *runtime.Pass) error {
		return nn.GEMMEpilogue(p, y, x, w, nn.GEMMDims{M: 2, N: 2, K: 3, TransB: true},
			nn.Epilogue[float32]{Alpha: 1, Bias: bias, Act: nn.ActReLU})
	})
	if err != nil {
		log.Fatal(err)
	}
	out := make([]float32, 4)
	if err := y.Read(out); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
	// Output: [6.5 0 0.5 0]
}
