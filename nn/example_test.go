package nn_test

import (
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// A matrix is quantised, uploaded, and multiplied with a vector.
func Example() {
	const rows, cols = 3, 32
	w := make([]float32, rows*cols)
	for i := range w {
		w[i] = float32(i%cols%16) - 8
	}
	q, err := quant.QuantizeQ4MLX(w, rows, cols, 32)
	if err != nil {
		log.Fatal(err)
	}
	x := make([]float32, cols)
	x[0], x[9] = 2, 1 // picks 2 * -8 + 1

	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	bank, err := nn.UploadQ4MLX(rt, q)
	if err != nil {
		log.Fatal(err)
	}
	in, err := runtime.SliceOf(rt, half.BFloat16s(x))
	if err != nil {
		log.Fatal(err)
	}
	y, err := runtime.NewSlice[float32](rt, rows)
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.Run(func(p *runtime.Pass) error { return nn.GEMVQ4MLX(p, y, bank, in) }); err != nil {
		log.Fatal(err)
	}
	out := make([]float32, rows)
	if err := y.Read(out); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)

	// Refused: 31 elements are not 32.
	err = rt.Run(func(p *runtime.Pass) error { return nn.GEMVQ4MLX(p, y, bank, in.Slice(0, 31)) })
	fmt.Println(err)
	// Output:
	// [-15 -15 -15]
	// nn.GEMVQ4MLX: x: have 31 elements, need at least 32: shape mismatch
}

// A recorded step is replayed over a prompt and what follows it; the argmax stands in for a model.
func ExampleDecodeAdvance() {
	rt, err := runtime.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	prompt := []uint32{11, 12, 13}
	start, err := nn.StartDecode(prompt)
	if err != nil {
		log.Fatal(err)
	}
	words := start.Words()
	upload := func(data []uint32) runtime.Slice[uint32] {
		s, err := runtime.SliceOf(rt, data)
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	step := nn.DecodeStep{State: upload(words[:]), Prompt: upload(prompt), Argmax: upload([]uint32{7}), Output: upload(make([]uint32, 4)),
		KVCapacity: 64, KVStride: 128}
	prog, err := rt.Record(func(p *runtime.Pass) error { return nn.DecodeAdvance(p, step) })
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Release()
	for range 8 {
		if err := prog.Run(); err != nil {
			log.Fatal(err)
		}
		if err := step.State.Read(words[:]); err != nil {
			log.Fatal(err)
		}
		s := nn.DecodeStateOf(words)
		fmt.Println(s.Token, s.Position, s.CacheOffset, s.Produced, s.Status)
	}
	// Output:
	// 12 1 128 0 running
	// 13 2 256 0 running
	// 7 3 384 1 running
	// 7 4 512 2 running
	// 7 5 640 3 running
	// 7 5 640 4 output full
	// 7 5 640 4 output full
	// 7 5 640 4 output full
}
