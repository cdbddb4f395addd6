package nn_test

import (
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// A query of Llama 3.1 at position 1000. The first pair turns by 1000 radians; the second one by 0.525, where it would by 1.414
// without the scaling, since it turns only 1.8 times in a text of the original length.
func ExampleRMSQKVRoPE() {
	freq, factor, err := nn.RoPEParameters{
		Theta: 500000, RotaryDim: 4,
		Scaling: nn.RoPELlama3{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalPositions: 8192},
	}.InverseFrequencies()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("angles %.3f and %.3f\n", 1000*freq[0], 1000*freq[1])

	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	q, err := runtime.SliceOf(rt, []float32{1, 1, 0, 0}) // the pairs are elements 0 and 2, 1 and 3
	if err != nil {
		log.Fatal(err)
	}
	inverse, err := runtime.SliceOf(rt, freq)
	if err != nil {
		log.Fatal(err)
	}
	// No weights, so no norms, as Llama has none; no key heads, so queries only.
	heads := nn.QKVHeads{
		Q: q, T: 1, HeadsQ: 1, HeadDim: 4,
		InvFreq: inverse, RotaryDim: 4, Pairing: nn.RoPEHalves, AttentionFactor: factor,
	}
	if err := rt.Run(func(p *runtime.Pass) error { return nn.RMSQKVRoPE(p, heads, 1000) }); err != nil {
		log.Fatal(err)
	}
	turned := make([]float32, 4)
	if err := q.Read(turned); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f\n", turned)
	// Output:
	// angles 1000.000 and 0.525
	// [0.56 0.87 0.83 0.50]
}
