package soft_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
)

// Adds two vectors on a device that pretends to be an M1 under macOS 14.
func Example() {
	defer objc.NewPool().Drain()
	dev := soft.New(soft.Options{Name: "Pretended M1", Families: soft.AppleFamilies(7), OSVersion: soft.Version{Major: 14}})
	defer dev.Release()

	data, err := os.ReadFile("testdata/kernels.metallib")
	if err != nil {
		log.Fatal(err)
	}
	lib, err := dev.NewLibraryWithData(data)
	if err != nil {
		log.Fatal(err)
	}
	defer lib.Release()
	fn := lib.NewFunctionWithName("add")
	defer fn.Release()
	pipeline, err := dev.NewComputePipelineStateWithFunction(fn)
	if err != nil {
		log.Fatal(err)
	}
	defer pipeline.Release()

	floats := func(v ...float32) mtl.Buffer {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return dev.NewBufferWithBytes(b, mtl.ResourceStorageModeShared)
	}
	a, b, out := floats(1, 2, 3), floats(10, 20, 30), floats(0, 0, 0)
	defer a.Release()
	defer b.Release()
	defer out.Release()

	queue := dev.NewCommandQueue()
	defer queue.Release()
	run := func(n uint32) error {
		cb := queue.CommandBuffer()
		e := cb.ComputeCommandEncoder()
		e.SetComputePipelineState(pipeline)
		for i, x := range []mtl.Buffer{a, b, out} {
			e.SetBuffer(x, 0, uint(i))
		}
		e.SetBytes(binary.LittleEndian.AppendUint32(nil, n), 3)
		e.DispatchThreads(mtl.Size{Width: uint(n), Height: 1, Depth: 1}, mtl.Size{Width: 32, Height: 1, Depth: 1})
		e.EndEncoding()
		cb.Commit()
		cb.WaitUntilCompleted()
		return cb.Error()
	}
	fmt.Println(run(3))
	for i := range 3 {
		fmt.Println(math.Float32frombits(binary.LittleEndian.Uint32(out.Contents()[4*i:])))
	}
	fmt.Println(run(4) != nil) // one element too far
	// Output:
	// <nil>
	// 11
	// 22
	// 33
	// true
}
