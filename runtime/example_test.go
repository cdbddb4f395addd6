package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
)

// The examples run on a software device of their own, so that they print the same everywhere. A program leaves
// WithDevice out and gets the GPU on macOS.
func open(opts ...runtime.Option) *runtime.Runtime {
	dev := soft.New(soft.Options{})
	defer dev.Release() // the runtime keeps a reference of its own
	rt, err := runtime.Open(append(opts, runtime.WithDevice(dev))...)
	if err != nil {
		log.Fatal(err)
	}
	return rt
}

// argmax encodes the kernel that finds the greatest of n logits. Package nn has functions for all kernels, which
// check their arguments further.
func argmax(p *runtime.Pass, logits runtime.Slice[float32], token runtime.Slice[uint32], limit, value runtime.Slice[float32]) error {
	k := p.Kernel("softcap_argmax_one_pass")
	k.Read(0, logits.View())
	k.Write(1, token.View())
	k.Read(2, limit.View())
	k.Uint32(3, uint32(logits.Len()))
	k.Write(4, value.View())
	return k.Dispatch(runtime.D1(1), runtime.D1(64))
}

func Example() {
	rt := open()
	defer rt.Close()

	logits, err := runtime.SliceOf(rt, []float32{0.5, -1, 4.25, 4})
	if err != nil {
		log.Fatal(err)
	}
	token, _ := runtime.NewSlice[uint32](rt, 1)
	limit, _ := runtime.NewSlice[float32](rt, 1) // zero: no softcap
	value, _ := runtime.NewSlice[float32](rt, 1)

	if err := rt.Run(func(p *runtime.Pass) error { return argmax(p, logits, token, limit, value) }); err != nil {
		log.Fatal(err)
	}
	t, v := make([]uint32, 1), make([]float32, 1)
	if err := errors.Join(token.Read(t), value.Read(v)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(t[0], v[0])
	// Output: 2 4.25
}

func ExampleRuntime_Record() {
	rt := open()
	defer rt.Close()

	logits, err := runtime.SliceOf(rt, []float32{1, 3, 2})
	if err != nil {
		log.Fatal(err)
	}
	token, _ := runtime.NewSlice[uint32](rt, 1)
	limit, _ := runtime.NewSlice[float32](rt, 1)
	value, _ := runtime.NewSlice[float32](rt, 1)

	prog, err := rt.Record(func(p *runtime.Pass) error { return argmax(p, logits, token, limit, value) })
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Release()
	for _, data := range [][]float32{{1, 3, 2}, {9, 3, 2}} {
		if err := logits.Write(data); err != nil {
			log.Fatal(err)
		}
		s, err := prog.Replay() // encodes one execution, and allocates nothing
		if err != nil {
			log.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := s.Wait(ctx); err != nil {
			log.Fatal(err)
		}
		cancel()
		t := make([]uint32, 1)
		if err := token.Read(t); err != nil {
			log.Fatal(err)
		}
		fmt.Println(t[0])
	}
	fmt.Println(prog)
	// Output:
	// 1
	// 0
	// program of 1 commands, 0 barriers, indirect
}

func ExampleLaunch_Scalars() {
	rt := open()
	defer rt.Close()

	logits, err := runtime.SliceOf(rt, []float32{1, 3, 2, 8})
	if err != nil {
		log.Fatal(err)
	}
	token, _ := runtime.NewSlice[uint32](rt, 1)
	limit, _ := runtime.NewSlice[float32](rt, 1)
	value, _ := runtime.NewSlice[float32](rt, 1)

	// A scalar of the caller's own storage can change between replays.
	pool, err := runtime.NewScalarPool(rt, 1)
	if err != nil {
		log.Fatal(err)
	}
	n, _ := runtime.NewScalar(pool, uint32(logits.Len()))

	prog, err := rt.Record(func(p *runtime.Pass) error {
		k := p.Kernel("softcap_argmax_one_pass")
		k.Read(0, logits.View())
		k.Write(1, token.View())
		k.Read(2, limit.View())
		k.Uint32(3, uint32(logits.Len()))
		k.Write(4, value.View())
		k.Scalars(func(b *runtime.ScalarBinder) error { return b.Uint32(3, n) })
		return k.Dispatch(runtime.D1(1), runtime.D1(64))
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, count := range []uint32{4, 3} {
		if err := errors.Join(n.Set(count), prog.Run()); err != nil {
			log.Fatal(err)
		}
		t := make([]uint32, 1)
		if err := token.Read(t); err != nil {
			log.Fatal(err)
		}
		fmt.Println(t[0])
	}
	// Output:
	// 3
	// 1
}

func ExampleError() {
	rt := open()
	defer rt.Close()

	x, err := runtime.NewSlice[float32](rt, 8)
	if err != nil {
		log.Fatal(err)
	}
	err = x.Slice(4, 9).Read(make([]float32, 5))
	fmt.Println(err)
	fmt.Println(errors.Is(err, runtime.ErrShape))
	// Output:
	// Slice.Read: [4:9]: have 8 elements, need 0 <= i <= j <= length: shape mismatch
	// true
}

func ExampleRuntime_SelfTest() {
	rt := open()
	defer rt.Close()
	fmt.Println(rt.SelfTest(), rt.LibraryOrigin())
	// Output: <nil> embedded
}

func ExampleRuntime_WriteTrace() {
	rt := open()
	defer rt.Close()
	logits, err := runtime.SliceOf(rt, []float32{-1, 2, 0.5, 9})
	if err != nil {
		log.Fatal(err)
	}
	token, _ := runtime.NewSlice[uint32](rt, 1)
	limit, _ := runtime.NewSlice[float32](rt, 1)
	value, _ := runtime.NewSlice[float32](rt, 1)

	var file bytes.Buffer // for ui.perfetto.dev
	err = rt.WriteTrace(&file, runtime.TraceOptions{Kernels: true}, func() error {
		return rt.Run(func(p *runtime.Pass) error {
			return errors.Join(p.Label("choose"), argmax(p, logits, token, limit, value))
		})
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"choose", "softcap_argmax_one_pass"} {
		fmt.Println(name, bytes.Contains(file.Bytes(), []byte(`"name":"`+name+`"`)))
	}
	// Output:
	// choose true
	// softcap_argmax_one_pass true
}

// Two slices change places at every replay: each replay reads what the one before it wrote.
func ExampleProgram_Bind() {
	rt := open()
	defer rt.Close()
	state, err := runtime.SliceOf(rt, []uint32{7, 0})
	if err != nil {
		log.Fatal(err)
	}
	next, err := runtime.NewSlice[uint32](rt, 2)
	if err != nil {
		log.Fatal(err)
	}
	step, err := rt.Record(func(p *runtime.Pass) error { // a shift by one, as an example
		if err := p.Fill(next.View(), 0); err != nil {
			return err
		}
		return p.Copy(next.Slice(1, 2).View(), state.Slice(0, 1).View())
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if _, err := step.Replay(); err != nil {
			log.Fatal(err)
		}
		// state is used in part only, so its parts are what moves.
		from := []runtime.Slice[uint32]{state.Slice(0, 1), next}
		to := []runtime.Slice[uint32]{next.Slice(0, 1), state}
		if err := step.Bind(runtime.Rebind(from[0], to[0]), runtime.Rebind(from[1], to[1])); err != nil {
			log.Fatal(err)
		}
		state, next = next, state
		got := make([]uint32, 2)
		if err := state.Read(got); err != nil {
			log.Fatal(err)
		}
		fmt.Println(got)
	}
	// Output:
	// [0 7]
	// [0 0]
}

// Layers of a program replayed one by one, and two programs as one.
func ExampleJoin() {
	rt := open()
	defer rt.Close()
	x, err := runtime.NewSlice[uint8](rt, 8)
	if err != nil {
		log.Fatal(err)
	}
	record := func(name string, lo, hi int, value byte) *runtime.Program {
		prog, err := rt.Record(func(p *runtime.Pass) error {
			if err := p.Section(name); err != nil {
				return err
			}
			return p.Fill(x.Slice(lo, hi).View(), value)
		})
		if err != nil {
			log.Fatal(err)
		}
		return prog
	}
	both, err := runtime.Join(record("first", 0, 8, 1), record("second", 4, 8, 2))
	if err != nil {
		log.Fatal(err)
	}
	got := make([]uint8, 8)
	for _, section := range both.Sections() {
		if _, err := both.ReplayRange(section.First, section.End); err != nil {
			log.Fatal(err)
		}
		if err := x.Read(got); err != nil {
			log.Fatal(err)
		}
		fmt.Println(section.Name, got)
	}
	fmt.Println(both.Stats().Barriers)
	// Output:
	// first [1 1 1 1 1 1 1 1]
	// second [1 1 1 1 2 2 2 2]
	// 1
}
