package metallib_test

import (
	"fmt"

	"github.com/ingot-metal/ingot/metallib"
)

// A library is written from the modules of its functions and read back.
func Example() {
	lib, err := scaleLibrary("scale")
	if err != nil {
		panic(err)
	}
	data, err := metallib.Write(lib)
	if err != nil {
		panic(err)
	}
	back, err := metallib.Read(data)
	if err != nil {
		panic(err)
	}
	for i := range back.Functions {
		f := &back.Functions[i]
		m, err := f.Module()
		if err != nil {
			panic(err)
		}
		kernels, err := m.Kernels()
		if err != nil {
			panic(err)
		}
		for _, a := range kernels[0].Args {
			fmt.Println(f.Type, f.Name, "takes", a.TypeName, a.Name)
		}
	}
	// Output:
	// kernel scale takes float x
	// kernel scale takes float factor
	// kernel scale takes uint i
}
