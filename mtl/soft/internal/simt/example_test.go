package simt_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
)

// One row of root mean square normalisation, by a kernel of the embedded library.
func Example() {
	lib, err := metallib.Read(metallib.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	const name = "rms_norm_bf16"
	var program *simt.Program
	for _, f := range lib.Functions {
		if f.Name != name {
			continue
		}
		module, err := air.Read(f.Bitcode)
		if err != nil {
			fmt.Println(err)
			return
		}
		if program, err = simt.Compile(module, name, simt.Options{}); err != nil {
			fmt.Println(err)
			return
		}
	}
	floats := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	word := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	d := &simt.Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{32, 1, 1}}
	out := make([]byte, 2*4)
	for slot, mem := range [][]byte{floats(3, -3, 3, 3), floats(1, 1, 2, 0.5), out, word(1), word(4), floats(0)} {
		d.Buffers[slot].Mem = mem
	}
	if err := program.Run(d, 1); err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; i < 4; i++ { // bfloat16 is the upper half of a float32
		fmt.Print(math.Float32frombits(uint32(binary.LittleEndian.Uint16(out[2*i:]))<<16), " ")
	}

	// Too short a buffer is a fault that says where.
	d.Buffers[0].Mem = floats(3, -3, 3)
	fmt.Println(program.Run(d, 1) != nil)
	// Output: 1 -1 2 0.5 true
}
