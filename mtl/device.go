package mtl

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ingot-metal/ingot/objc"
)

var registered struct {
	sync.Mutex
	names   []string
	devices map[string]func() []Device
}

// RegisterDevices makes devices that are no hardware known under a name, as database drivers do: devices is asked by
// [Devices] and [SystemDefaultDevice]. A name registered again replaces the one before.
func RegisterDevices(name string, devices func() []Device) {
	registered.Lock()
	defer registered.Unlock()
	if registered.devices == nil {
		registered.devices = map[string]func() []Device{}
	}
	if registered.devices[name] == nil {
		registered.names = append(registered.names, name)
		slices.Sort(registered.names)
	}
	registered.devices[name] = devices
}

// registeredDevices asks all that registered, in the order of their names, outside the lock.
func registeredDevices() []Device {
	registered.Lock()
	var ask []func() []Device
	for _, n := range registered.names {
		if f := registered.devices[n]; f != nil {
			ask = append(ask, f)
		}
	}
	registered.Unlock()
	var list []Device
	for _, f := range ask {
		list = append(list, f()...)
	}
	return list
}

// SystemDefaultDevice is the system's preferred device (MTLCreateSystemDefaultDevice), or the first registered one when
// there is none. The caller releases it.
func SystemDefaultDevice() (Device, error) {
	id, err := objc.CallC(objc.Metal, "MTLCreateSystemDefaultDevice")
	if err == nil && id != 0 {
		return DeviceOf(objc.ID(id)), nil
	}
	if err == nil {
		err = errors.New("the system has no Metal device")
	}
	for _, d := range registeredDevices() {
		if !d.IsNil() {
			d.Retain()
			return d, nil
		}
	}
	return Device{}, fmt.Errorf("mtl: no device: %w, and no software device is registered (import mtl/soft)", err)
}

// Devices are all devices: the system's (MTLCopyAllDevices), then the registered ones. The caller releases each.
func Devices() []Device {
	var list []Device
	if array, err := objc.CallC(objc.Metal, "MTLCopyAllDevices"); err == nil {
		for _, id := range objc.ArrayIDs(objc.ID(array)) {
			list = append(list, DeviceOf(id.Retain()))
		}
		objc.ID(array).Release()
	}
	for _, d := range registeredDevices() {
		if !d.IsNil() {
			d.Retain()
			list = append(list, d)
		}
	}
	return list
}

// NewBufferWithBytes is -[MTLDevice newBufferWithBytes:length:options:] (macOS 10.11): a buffer with a copy of b. The
// result is the caller's to release.
func (x Device) NewBufferWithBytes(b []byte, options ResourceOptions) Buffer {
	var w uintptr
	if len(b) > 0 {
		w = bytesWord(b)
		defer keepAlive(b)
	}
	return x.rawNewBufferWithBytes(w, uint(len(b)), options)
}

// NewLibraryWithData is -[MTLDevice newLibraryWithData:error:] (macOS 10.11) with the bytes of a metallib. The result is the caller's
// to release. A software device may keep data: do not change it afterwards.
func (x Device) NewLibraryWithData(data []byte) (Library, error) {
	id, err := objc.Data(x.id, data)
	if err != nil {
		return Library{}, err
	}
	defer id.Release()
	return x.rawNewLibraryWithData(ObjectOf(id))
}

// SampleTimestamps is -[MTLDevice sampleTimestamps:gpuTimestamp:] (macOS 10.15): the clocks of both sides at one moment.
func (x Device) SampleTimestamps() (cpu, gpu uint64) {
	m := objc.NewScratch()
	defer m.Free()
	w, p := m.Words(2)
	w[0], w[1] = 0, 0
	x.rawSampleTimestamps(p, p+8)
	return uint64(w[0]), uint64(w[1])
}
