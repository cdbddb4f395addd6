package runtime_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/ingot-metal/ingot/runtime"
)

// A mapping shows device memory as a Go slice; while it is held, work on the same bytes is refused.
func ExampleSlice_Map() {
	rt := open()
	defer rt.Close()
	x, err := runtime.NewSlice[float32](rt, 4)
	if err != nil {
		log.Fatal(err)
	}
	m, err := x.Map()
	if err != nil {
		log.Fatal(err)
	}
	for i := range m.Data() {
		m.Data()[i] = float32(i) / 2
	}
	fmt.Println(errors.Is(x.Write(make([]float32, 4)), runtime.ErrBusy))
	if err := m.Unmap(); err != nil {
		log.Fatal(err)
	}
	got := make([]float32, 4)
	fmt.Println(x.Read(got), got)
	// Output:
	// true
	// <nil> [0 0.5 1 1.5]
}

// Weights in a file are mapped, not read: a tensor is a part of the bytes as elements.
func ExampleMapFile() {
	dir, err := os.MkdirTemp("", "weights")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := binary.LittleEndian.AppendUint64(nil, 2) // a header: the number of elements
	file = binary.LittleEndian.AppendUint32(file, math.Float32bits(1.5))
	file = binary.LittleEndian.AppendUint32(file, math.Float32bits(-2))
	path := filepath.Join(dir, "weights")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		log.Fatal(err)
	}

	rt := open()
	defer rt.Close() // which unmaps the file
	bytes, err := runtime.MapFile(rt, path)
	if err != nil {
		log.Fatal(err)
	}
	weights, err := runtime.As[float32](bytes.View().Bytes(8, 16))
	if err != nil {
		log.Fatal(err)
	}
	got := make([]float32, weights.Len())
	fmt.Println(weights.Read(got), got, weights.ReadOnly())
	// Output: <nil> [1.5 -2] true
}

// The temporaries of a step are taken from an arena and given back together.
func ExampleTempArena() {
	rt := open()
	defer rt.Close()
	arena, err := runtime.NewTempArena(rt, 64<<10)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		hidden, err := runtime.Temp[float32](arena, 1000)
		if err != nil {
			log.Fatal(err)
		}
		scores, err := runtime.Temp[float32](arena, 10)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hidden.Len(), scores.Len(), arena.Len())
		if err := arena.Reset(); err != nil { // waits for the work that uses them
			log.Fatal(err)
		}
	}
	// Output:
	// 1000 10 4136
	// 1000 10 4136
}

// A budget refuses memory before the device is asked for it.
func ExampleWithMemoryBudget() {
	rt := open(runtime.WithMemoryBudget(1 << 20))
	defer rt.Close()
	x, err := runtime.NewSlice[float32](rt, 200_000)
	if err != nil {
		log.Fatal(err)
	}
	_, err = runtime.NewSlice[float32](rt, 200_000, runtime.Private)
	fmt.Println(err, errors.Is(err, runtime.ErrLimit))
	s := rt.MemStats()
	fmt.Println(s.Live, s.Held, s.Budget)
	_ = x
	// Output:
	// NewSlice: have 800000 bytes beside 800000 in use, need at most 1048576 in all, the memory budget: limit exceeded true
	// 800000 800000 1048576
}
