package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/ingot-metal/ingot/mtl"
	_ "github.com/ingot-metal/ingot/mtl/soft" // beside the GPU, also on a Mac
	"github.com/ingot-metal/ingot/objc"
	"github.com/ingot-metal/ingot/runtime"
)

// listDevices prints the names of the devices.
func listDevices(out io.Writer) error {
	_, err := fmt.Fprintln(out, strings.Join(deviceNames(nil), "\n"))
	return err
}

// deviceNames are the names of the devices. It gives each device to visit, if there is one; the device lives until visit
// returns, and longer in what visit made of it.
func deviceNames(visit func(mtl.Device, string)) []string {
	pool := objc.NewPool()
	defer pool.Drain()
	var names []string
	for _, d := range mtl.Devices() {
		name := d.Name()
		names = append(names, name)
		if visit != nil {
			visit(d, name)
		}
		d.Release()
	}
	return names
}

// openRuntime opens the first device whose name contains name, in any case; the best one if name is empty.
func openRuntime(name string) (rt *runtime.Runtime, err error) {
	if name == "" {
		return runtime.Open()
	}
	names := deviceNames(func(d mtl.Device, full string) {
		if rt == nil && err == nil && strings.Contains(strings.ToLower(full), strings.ToLower(name)) {
			rt, err = runtime.Open(runtime.WithDevice(d))
		}
	})
	if rt == nil && err == nil {
		err = fmt.Errorf("no device has %q in its name; there are %q", name, names)
	}
	return rt, err
}
