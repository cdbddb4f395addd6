package mtl

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ingot-metal/ingot/objc"
)

// answering makes an object with some methods.
func answering(t *testing.T, class string, methods map[string]objc.Method) objc.ID {
	t.Helper()
	id := objc.NewGoClass(class, methods).New(nil)
	t.Cleanup(func() {
		id.Release()
		if err := objc.TakeError(); err != nil {
			t.Error(err)
		}
	})
	return id
}

func TestSetBytes(t *testing.T) {
	got := ""
	e := ComputeCommandEncoderOf(answering(t, "MTLComputeCommandEncoder", map[string]objc.Method{
		"setBytes:length:atIndex:":                 func(c *objc.Call) { got = fmt.Sprintf("%s %d", c.Bytes(0, 1), c.Uint(2)) },
		"setBytes:length:attributeStride:atIndex:": func(c *objc.Call) { got = fmt.Sprintf("%s %d %d", c.Bytes(0, 1), c.Uint(2), c.Uint(3)) },
	}))
	e.SetBytes([]byte("scalar"), 7)
	if got != "scalar 7" {
		t.Error(got)
	}
	e.SetBytesAttributeStride([]byte("strided"), 4, 8)
	if got != "strided 4 8" {
		t.Error(got)
	}
	e.SetBytes(nil, 7)
	if got != " 7" {
		t.Error(got)
	}
}

func TestSetBuffers(t *testing.T) {
	got := ""
	e := ComputeCommandEncoderOf(answering(t, "MTLComputeCommandEncoder", map[string]objc.Method{
		"setBuffers:offsets:withRange:": func(c *objc.Call) {
			n := c.Uint(3)
			got = fmt.Sprint(c.IDs(0, n), c.Uints(1, n), c.Uint(2))
		},
		"setBuffers:offsets:attributeStrides:withRange:": func(c *objc.Call) {
			n := c.Uint(4)
			got = fmt.Sprint(c.IDs(0, n), c.Uints(1, n), c.Uints(2, n), c.Uint(3))
		},
	}))
	b := []Buffer{BufferOf(answering(t, "MTLBuffer", nil)), {}}
	want := fmt.Sprint([]objc.ID{b[0].ID(), 0}, []uint{8, 16}, 3)
	if err := e.SetBuffers(b, []uint{8, 16}, 3); err != nil || got != want {
		t.Error(got, want, err)
	}
	want = fmt.Sprint([]objc.ID{b[0].ID(), 0}, []uint{8, 16}, []uint{1, 2}, 3)
	if err := e.SetBuffersAttributeStrides(b, []uint{8, 16}, []uint{1, 2}, 3); err != nil || got != want {
		t.Error(got, want, err)
	}
	if err := e.SetBuffers(b, []uint{8}, 3); err == nil || !strings.Contains(err.Error(), "2 buffers with 1 offsets") {
		t.Error(err)
	}
	if err := e.SetBuffersAttributeStrides(b, []uint{8, 16}, nil, 3); err == nil {
		t.Error("no error")
	}
}

func TestBufferContents(t *testing.T) {
	memory := []byte("contents of a buffer")
	b := BufferOf(answering(t, "MTLBuffer", map[string]objc.Method{
		"contents": func(c *objc.Call) { c.ReturnPointer(unsafe.Pointer(&memory[0])) },
		"length":   func(c *objc.Call) { c.Return(uintptr(len(memory))) },
	}))
	if got := b.Contents(); !bytes.Equal(got, memory) || &got[0] != &memory[0] || b.ContentsPointer() != unsafe.Pointer(&memory[0]) {
		t.Error(got)
	}
	private := BufferOf(answering(t, "MTLBuffer", map[string]objc.Method{"contents": func(c *objc.Call) {}}))
	if private.Contents() != nil || private.ContentsPointer() != nil || (Buffer{}).Contents() != nil {
		t.Error("contents from nowhere")
	}
}

func TestDeviceByHand(t *testing.T) {
	got := ""
	d := DeviceOf(answering(t, "MTLDevice", map[string]objc.Method{
		"newBufferWithBytes:length:options:": func(c *objc.Call) {
			got = fmt.Sprintf("%q %d", c.Bytes(0, 1), c.Uint(2))
			c.ReturnNew(c.ID().Retain())
		},
		"newLibraryWithData:error:": func(c *objc.Call) {
			b, _ := objc.DataBytes(c.Object(0))
			if len(b) == 0 {
				c.Fail(1, LibraryErrorDomain, int(LibraryErrorInternal), "empty")
				return
			}
			got = string(b)
			c.ReturnNew(c.ID().Retain())
		},
		"sampleTimestamps:gpuTimestamp:": func(c *objc.Call) { *(*uint64)(c.Pointer(0)), *(*uint64)(c.Pointer(1)) = 11, 22 },
	}))
	b := d.NewBufferWithBytes([]byte("bytes"), ResourceStorageModePrivate)
	if got != `"bytes" 32` || b.IsNil() {
		t.Error(got)
	}
	b.Release()
	b = d.NewBufferWithBytes(nil, 0)
	if got != `"" 0` {
		t.Error(got)
	}
	b.Release()
	l, err := d.NewLibraryWithData([]byte("MTLB"))
	if err != nil || got != "MTLB" {
		t.Error(got, err)
	}
	l.Release()
	if _, err := d.NewLibraryWithData(nil); !errors.Is(err, &objc.Error{Domain: LibraryErrorDomain, Code: int(LibraryErrorInternal)}) {
		t.Error(err)
	}
	if cpu, gpu := d.SampleTimestamps(); cpu != 11 || gpu != 22 {
		t.Error(cpu, gpu)
	}
}

func TestEncoderInfos(t *testing.T) {
	label := objc.NSString("first")
	post := objc.NSString("post")
	posts := objc.NSArray(post)
	info := answering(t, "MTLCommandBufferEncoderInfo", map[string]objc.Method{
		"label":           func(c *objc.Call) { c.ReturnBorrowed(label) },
		"errorState":      func(c *objc.Call) { c.Return(uintptr(CommandEncoderErrorStateFaulted)) },
		"debugSignposts":  func(c *objc.Call) { c.ReturnBorrowed(posts) },
		"unusedByAnybody": func(c *objc.Call) {},
	})
	list := objc.NSArray(info)
	dict := answering(t, "NSDictionary", map[string]objc.Method{"objectForKey:": func(c *objc.Call) {
		if objc.GoString(c.Object(0)) == commandBufferEncoderInfoErrorKey {
			c.ReturnBorrowed(list)
		}
	}})
	failure := answering(t, "NSError", map[string]objc.Method{"userInfo": func(c *objc.Call) { c.ReturnBorrowed(dict) }})
	cb := CommandBufferOf(answering(t, "MTLCommandBuffer", map[string]objc.Method{"error": func(c *objc.Call) { c.ReturnBorrowed(failure) }}))
	infos := cb.EncoderInfos()
	if len(infos) != 1 || infos[0].Label != "first" || infos[0].State != CommandEncoderErrorStateFaulted || !slices.Equal(infos[0].Signposts, []string{"post"}) {
		t.Error(infos)
	}
	fine := CommandBufferOf(answering(t, "MTLCommandBuffer", map[string]objc.Method{"error": func(c *objc.Call) {}}))
	if fine.EncoderInfos() != nil || (CommandBuffer{}).EncoderInfos() != nil {
		t.Error("infos from nowhere")
	}
	for _, id := range []objc.ID{label, list, posts, post} {
		id.Release()
	}
}

func TestRegisteredDevices(t *testing.T) {
	if objc.Available() == nil {
		t.Skip("there is a system device")
	}
	restore := registered.devices
	registered.devices = nil
	names := registered.names
	registered.names = nil
	defer func() { registered.devices, registered.names = restore, names }()
	if _, err := SystemDefaultDevice(); err == nil || !strings.Contains(err.Error(), "mtl/soft") {
		t.Error(err)
	}
	if l := Devices(); len(l) != 0 {
		t.Error(l)
	}
	a, b := DeviceOf(answering(t, "A", nil)), DeviceOf(answering(t, "B", nil))
	RegisterDevices("b", func() []Device { return []Device{b} })
	RegisterDevices("a", func() []Device { return []Device{{}, a} })
	d, err := SystemDefaultDevice()
	if err != nil || d != a {
		t.Error(d, err)
	}
	d.Release()
	if l := Devices(); !slices.Equal(l, []Device{a, b}) {
		t.Error(l)
	}
	a.Release()
	b.Release()
	RegisterDevices("a", func() []Device { return nil })
	if d, err := SystemDefaultDevice(); err != nil || d != b {
		t.Error(d, err)
	}
	b.Release()
}

func TestArray(t *testing.T) {
	before := objc.LiveObjects()
	s := ObjectOf(objc.NSString("text"))
	a := NewArray(s, Object{})
	s.Release()
	if a.Len() != 1 || a.At(0) != s || !a.At(1).IsNil() || !slices.Equal(a.Strings(), []string{"text"}) || (Array{}).Len() != 0 {
		t.Error(a.Len(), a.Strings())
	}
	a.Retain()
	a.Release()
	a.Release()
	if n := objc.LiveObjects(); n != before {
		t.Errorf("%d objects leaked", n-before)
	}
}

func BenchmarkSetBuffer(b *testing.B) {
	e := ComputeCommandEncoderOf(objc.NewGoClass("E", map[string]objc.Method{"setBuffer:offset:atIndex:": func(c *objc.Call) {}}).New(nil))
	defer e.Release()
	b.ReportAllocs()
	for b.Loop() {
		e.SetBuffer(Buffer{}, 16, 3)
	}
}

func BenchmarkDispatchThreads(b *testing.B) {
	e := ComputeCommandEncoderOf(objc.NewGoClass("E", map[string]objc.Method{"dispatchThreads:threadsPerThreadgroup:": func(c *objc.Call) {}}).New(nil))
	defer e.Release()
	b.ReportAllocs()
	for b.Loop() {
		e.DispatchThreads(Size{1024, 1, 1}, Size{64, 1, 1})
	}
}

func TestSharedCaptureManager(t *testing.T) {
	if objc.Available() == nil {
		t.Skip("there is an Objective-C runtime")
	}
	if m := SharedCaptureManager(); !m.IsNil() || m.IsCapturing() {
		t.Error("a manager from nowhere")
	}
}
