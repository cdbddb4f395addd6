package mtl_test

import (
	"fmt"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A device in Go: it answers Metal's selectors, here two of them.
func Example() {
	class := objc.NewGoClass("ExampleDevice", map[string]objc.Method{
		"name":                     func(c *objc.Call) { c.ReturnString("an example") },
		"maxThreadsPerThreadgroup": func(c *objc.Call) { c.Return(1024, 1024, 64) },
	})
	device := mtl.DeviceOf(class.New(nil))
	defer device.Release()
	fmt.Println(device.Name(), device.MaxThreadsPerThreadgroup())
	// Output: an example {1024 1024 64}
}

// Descriptors are made for a device and hold what is set.
func ExampleNewComputePipelineDescriptor() {
	device := mtl.DeviceOf(objc.NewGoClass("ExampleDevice", nil).New(nil))
	defer device.Release()
	d, err := mtl.NewComputePipelineDescriptor(device)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Release()
	d.SetLabel("softmax")
	d.SetSupportIndirectCommandBuffers(true)
	fmt.Println(d.Label(), d.SupportIndirectCommandBuffers())
	// Output: softmax true
}
