package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ingot-metal/ingot/runtime"
)

func ExampleStream() {
	rt := open()
	defer rt.Close()
	s, err := rt.NewStream()
	if err != nil {
		log.Fatal(err)
	}
	limit, _ := runtime.NewSlice[float32](rt, 1) // zero: no softcap
	value, _ := runtime.NewSlice[float32](rt, 1)
	var tokens []*runtime.Future[uint32]
	for _, logits := range [][]float32{{0, 3, 1}, {5, 4, 3}, {1, 2, 9}} {
		x, err := runtime.SliceOf(rt, logits)
		if err != nil {
			log.Fatal(err)
		}
		// Nothing waits here: the stream commits what it has encoded by and by.
		token, err := runtime.Compute(s, 1, func(p *runtime.Pass, out runtime.Slice[uint32]) error {
			return argmax(p, x, out, limit, value)
		})
		if err := errors.Join(err, x.Release()); err != nil {
			log.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	got := make([]uint32, 1)
	for _, token := range tokens {
		if err := errors.Join(token.Read(context.Background(), got), token.Release()); err != nil {
			log.Fatal(err)
		}
		fmt.Println(got[0])
	}
	fmt.Println(s.Stats().Commits, s.Close())
	// Output:
	// 1
	// 0
	// 2
	// 1 <nil>
}
