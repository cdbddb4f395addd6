package mtl

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unsafe"

	"github.com/ingot-metal/ingot/objc"
)

// goDevice is a device that is a Go object: value objects for it are Go objects on every system.
func goDevice(t *testing.T) Device { return DeviceOf(answering(t, "MTLDevice", nil)) }

func TestDescriptors(t *testing.T) {
	before := objc.LiveObjects()
	d := goDevice(t)
	o, err := NewCompileOptions(d)
	if err != nil {
		t.Fatal(err)
	}
	if !o.FastMathEnabled() || o.MathMode() != MathModeFast || o.LanguageVersion() != 0 || o.RequiredThreadsPerThreadgroup() != (Size{}) {
		t.Error("initial values")
	}
	o.SetFastMathEnabled(false)
	o.SetLanguageVersion(LanguageVersion3_1)
	o.SetRequiredThreadsPerThreadgroup(Size{1, 2, 3})
	o.SetInstallName("name")
	o.SetInstallName("another name")
	if o.FastMathEnabled() || o.LanguageVersion() != LanguageVersion3_1 || o.RequiredThreadsPerThreadgroup() != (Size{1, 2, 3}) || o.InstallName() != "another name" {
		t.Error("values that were set")
	}
	o.Release()

	p, err := NewComputePipelineDescriptor(d)
	if err != nil {
		t.Fatal(err)
	}
	f := FunctionOf(answering(t, "MTLFunction", nil))
	pool := objc.NewPool()
	p.SetComputeFunction(f)
	p.SetSupportIndirectCommandBuffers(true)
	p.SetLabel("label")
	if p.ComputeFunction() != f || !p.SupportIndirectCommandBuffers() || p.Label() != "label" {
		t.Error("values that were set")
	}
	c := ComputePipelineDescriptorOf(objc.ID(objc.Send(p.ID(), objc.RegisterName("copy"))))
	p.Reset()
	if !p.ComputeFunction().IsNil() || p.SupportIndirectCommandBuffers() || p.Label() != "" {
		t.Error("reset did not")
	}
	if c.ComputeFunction() != f || !c.SupportIndirectCommandBuffers() || c.Label() != "label" {
		t.Error("the copy changed")
	}
	pool.Drain()
	c.Release()
	p.Release()
	if n := objc.LiveObjects() - 2; n != before { // the device and the function go with the test
		t.Errorf("%d objects leaked", n-before)
	}
}

func TestConstructors(t *testing.T) {
	d := goDevice(t)
	for name, make1 := range map[string]func() (Object, error){
		"CommandBufferDescriptor":       func() (Object, error) { x, err := NewCommandBufferDescriptor(d); return x.Object, err },
		"CommandQueueDescriptor":        func() (Object, error) { x, err := NewCommandQueueDescriptor(d); return x.Object, err },
		"ComputePassDescriptor":         func() (Object, error) { x, err := NewComputePassDescriptor(d); return x.Object, err },
		"CounterSampleBufferDescriptor": func() (Object, error) { x, err := NewCounterSampleBufferDescriptor(d); return x.Object, err },
		"CaptureDescriptor":             func() (Object, error) { x, err := NewCaptureDescriptor(d); return x.Object, err },
		"FunctionDescriptor":            func() (Object, error) { x, err := NewFunctionDescriptor(d); return x.Object, err },
		"ComputePassSampleBufferAttachmentDescriptor": func() (Object, error) {
			x, err := NewComputePassSampleBufferAttachmentDescriptor(d)
			return x.Object, err
		},
		"HeapDescriptor":                  func() (Object, error) { x, err := NewHeapDescriptor(d); return x.Object, err },
		"IndirectCommandBufferDescriptor": func() (Object, error) { x, err := NewIndirectCommandBufferDescriptor(d); return x.Object, err },
		"PipelineBufferDescriptor":        func() (Object, error) { x, err := NewPipelineBufferDescriptor(d); return x.Object, err },
		"ResidencySetDescriptor":          func() (Object, error) { x, err := NewResidencySetDescriptor(d); return x.Object, err },
		"FunctionConstantValues":          func() (Object, error) { x, err := NewFunctionConstantValues(d); return x.Object, err },
	} {
		x, err := make1()
		if err != nil || x.ID().ClassName() != "MTL"+name {
			t.Errorf("%s: %v %v", name, x.ID().ClassName(), err)
		}
		x.Release()
	}
	if _, err := newObject(d, "MTLNoSuchThing"); err == nil || !strings.Contains(err.Error(), "MTLNoSuchThing") {
		t.Error(err)
	}
}

func TestFunctionConstantValues(t *testing.T) {
	before := objc.LiveObjects()
	v, err := NewFunctionConstantValues(goDevice(t))
	if err != nil {
		t.Fatal(err)
	}
	v.SetUint32(0, 7)
	v.SetInt32(1, -7)
	v.SetBool(2, true)
	if err := v.Set(3, DataTypeFloat4, bytes.Repeat([]byte{1}, 16)); err != nil {
		t.Error(err)
	}
	if err := v.SetNamed("name", DataTypeHalf, []byte{1, 2}); err != nil {
		t.Error(err)
	}
	if err := v.SetRange(10, DataTypeUShort, []byte{1, 1, 2, 2}); err != nil {
		t.Error(err)
	}
	x := uint64(99)
	v.SetConstantValue(unsafe.Pointer(&x), DataTypeULong, 4)
	v.SetConstantValueWithName(unsafe.Pointer(&x), DataTypeULong, "long")
	byIndex, byName, ok := ConstantValues(v)
	if !ok || len(byIndex) != 7 || len(byName) != 2 {
		t.Fatal(byIndex, byName, ok)
	}
	order := binary.NativeEndian
	if c := byIndex[0]; c.Type != DataTypeUInt || order.Uint32(c.Bytes) != 7 {
		t.Error(c)
	}
	if c := byIndex[1]; c.Type != DataTypeInt || int32(order.Uint32(c.Bytes)) != -7 {
		t.Error(c)
	}
	if c := byIndex[2]; c.Type != DataTypeBool || c.Bytes[0] != 1 {
		t.Error(c)
	}
	if c := byIndex[11]; c.Type != DataTypeUShort || !bytes.Equal(c.Bytes, []byte{2, 2}) {
		t.Error(c)
	}
	if c := byName["long"]; order.Uint64(c.Bytes) != 99 {
		t.Error(c)
	}
	copied := FunctionConstantValuesOf(objc.ID(objc.Send(v.ID(), objc.RegisterName("copy"))))
	v.Reset()
	if a, b, _ := ConstantValues(v); len(a)+len(b) != 0 {
		t.Error("reset did not")
	}
	if a, b, _ := ConstantValues(copied); len(a) != 7 || len(b) != 2 {
		t.Error("the copy changed")
	}
	copied.Release()
	for name, err := range map[string]error{
		"short": v.Set(0, DataTypeUInt, []byte{1}), "type": v.Set(0, DataTypeStruct, nil), "long": v.SetNamed("n", DataTypeBool, []byte{1, 2}),
		"ragged": v.SetRange(0, DataTypeUInt, []byte{1, 2, 3}), "none": v.SetRange(0, DataTypeUInt, nil), "range type": v.SetRange(0, DataTypeStruct, []byte{1}),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for want, bad := range map[string]func(){
		"setConstantValue:type:atIndex:]: a function constant without a value":          func() { v.SetConstantValue(nil, DataTypeUInt, 0) },
		"setConstantValue:type:atIndex:]: data type 1 cannot be a function constant":    func() { v.SetConstantValue(unsafe.Pointer(&x), DataTypeStruct, 0) },
		"setConstantValue:type:withName:]: data type 1 cannot be a function constant":   func() { v.SetConstantValueWithName(unsafe.Pointer(&x), DataTypeStruct, "n") },
		"setConstantValues:type:withRange:]: data type 1 cannot be a function constant": func() { v.rawSetConstantValues(objc.Pointer(unsafe.Pointer(&x)), DataTypeStruct, Range{0, 1}) },
		"setConstantValue:type:withName:]: a function constant without a value":         func() { v.SetConstantValueWithName(nil, DataTypeInt, "n") },
	} {
		bad()
		if err := objc.TakeError(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, _, ok := ConstantValues(FunctionConstantValues{}); ok {
		t.Error("values from nowhere")
	}
	v.Release()
	if n := objc.LiveObjects() - 1; n != before {
		t.Errorf("%d objects leaked", n-before)
	}
}
