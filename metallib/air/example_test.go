package air_test

import (
	"fmt"

	"github.com/ingot-metal/ingot/metallib/air"
)

// A module is written as bitcode, read back, and asked about its kernels.
func Example() {
	code, err := air.Write(saxpy())
	if err != nil {
		panic(err)
	}
	m, err := air.Read(code)
	if err != nil {
		panic(err)
	}
	k, err := m.Kernel("saxpy")
	if err != nil {
		panic(err)
	}
	for _, a := range k.Args {
		if a.Kind == air.BufferArg {
			fmt.Printf("buffer %d: %s %s, writable: %t\n", a.Index, a.TypeName, a.Name, a.Writable)
		} else {
			fmt.Printf("%s: %s %s\n", a.Builtin, a.TypeName, a.Name)
		}
	}
	fmt.Println(k.Function.Blocks[0].Instrs[5])
	// Output:
	// buffer 0: float x, writable: false
	// buffer 1: float y, writable: true
	// buffer 2: float a, writable: false
	// thread_position_in_grid: uint i
	// %10 = fmul float %7, %9
}
