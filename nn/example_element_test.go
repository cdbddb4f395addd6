package nn_test

import (
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// The most likely of 600 tokens, found by three threadgroups and then one.
func ExampleArgmax() {
	const n = 600
	logits := make([]float32, n)
	logits[123], logits[599] = 4, 60
	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	in, err := runtime.SliceOf(rt, logits)
	if err != nil {
		log.Fatal(err)
	}
	limit, err := runtime.SliceOf(rt, []float32{30})
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := runtime.NewSlice[uint32](rt, 1+nn.ArgmaxScratch(n))
	if err != nil {
		log.Fatal(err)
	}
	values, err := runtime.NewSlice[float32](rt, 1+nn.ArgmaxScratch(n))
	if err != nil {
		log.Fatal(err)
	}
	a := nn.ArgmaxArgs{Token: tokens.Slice(0, 1), Value: values.Slice(0, 1), Logits: in, Softcap: limit,
		ScratchIndex: tokens.Slice(1, tokens.Len()), ScratchValue: values.Slice(1, values.Len()), N: n}
	if err := rt.Run(func(p *runtime.Pass) error { return nn.Argmax(p, a) }); err != nil {
		log.Fatal(err)
	}
	var token [1]uint32
	var value [1]float32
	if err := tokens.Slice(0, 1).Read(token[:]); err != nil {
		log.Fatal(err)
	}
	if err := values.Slice(0, 1).Read(value[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d passes: token %d, %.2f\n", nn.ArgmaxPasses(n), token[0], value[0])
	// Output: 2 passes: token 599, 28.92
}

// The frequencies of Llama 3.1, from the numbers of its configuration: the first pair turns as it always did, the last an eighth
// as fast.
func ExampleRoPEParameters_InverseFrequencies() {
	p := nn.RoPEParameters{Theta: 500000, RotaryDim: 128}
	plain, _, err := p.InverseFrequencies()
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Scaling = nn.RoPELlama3{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalPositions: 8192}
	freq, factor, err := p.InverseFrequencies()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(freq), freq[0]/plain[0], freq[63]/plain[63], factor)
	// Output: 64 1 0.125 1
}

// A step is asked for whether it would be taken, before anything runs: what its second call is given is too short.
func Example_check() {
	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	x, err := runtime.SliceOf(rt, []float32{1, 2, 3, 4})
	if err != nil {
		log.Fatal(err)
	}
	step := func(p *runtime.Pass) error {
		if err := nn.ScaleInPlaceF32(p, x, 4, 10); err != nil {
			return err
		}
		return nn.AddBias(p, x, x, x.Slice(0, 1), 2, 2)
	}
	fmt.Println(rt.Check(step))
	got := make([]float32, 4)
	if err := x.Read(got); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output:
	// nn.AddBias: bias: have 1 elements, need at least 2: shape mismatch
	// [1 2 3 4]
}
