//go:build linux && objcdouble

package mtl

import (
	"os"
	"testing"
	"time"

	"github.com/ingot-metal/ingot/objc"
)

// TestDouble takes the way of a small program through the C double of Metal, whose library OBJCDOUBLE names.
func TestDouble(t *testing.T) {
	if os.Getenv("OBJCDOUBLE") == "" {
		t.Skip("OBJCDOUBLE does not name the library of the C double")
	}
	live := func() int {
		n, err := objc.CallC(objc.System, "objcdouble_live_objects")
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	before := live()
	pool := objc.NewPool()
	for _, d := range Devices() {
		if !d.ID().IsGo() && d.Name() == "" {
			t.Error("a device without a name")
		}
		d.Release()
	}
	d, err := SystemDefaultDevice()
	if err != nil {
		t.Fatal(err)
	}
	if s := d.MaxThreadsPerThreadgroup(); s.Width == 0 {
		t.Error(s)
	}
	b := d.NewBufferWithBytes([]byte("some bytes"), ResourceStorageModeShared)
	if string(b.Contents()) != "some bytes" {
		t.Errorf("%q", b.Contents())
	}
	if _, err := d.NewLibraryWithData([]byte("rubbish")); err == nil {
		t.Error("a library of rubbish")
	}
	l, err := d.NewLibraryWithData([]byte("MTLB"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := NewFunctionConstantValues(d)
	if err != nil {
		t.Fatal(err)
	}
	values.SetUint32(0, 1)
	f, err := l.NewFunctionWithNameConstantValues("kernel", values)
	if err != nil || f.Name() != "kernel" {
		t.Fatal(f.Name(), err)
	}
	desc, err := NewComputePipelineDescriptor(d)
	if err != nil {
		t.Fatal(err)
	}
	desc.SetComputeFunction(f)
	state, reflection, err := d.NewComputePipelineStateWithDescriptor(desc, 0)
	if err != nil || state.ThreadExecutionWidth() != 32 {
		t.Fatal(err)
	}
	q := d.NewCommandQueue()
	cb := q.CommandBuffer()
	e := cb.ComputeCommandEncoderWithDispatchType(DispatchTypeConcurrent)
	e.SetComputePipelineState(state)
	e.SetBuffer(b, 0, 0)
	e.SetBytes([]byte{1, 2, 3, 4}, 1)
	if err := e.SetBuffers([]Buffer{b}, []uint{0}, 2); err != nil {
		t.Error(err)
	}
	e.DispatchThreads(Size{64, 1, 1}, Size{32, 1, 1})
	e.EndEncoding()
	event := d.NewSharedEvent()
	cb.EncodeSignalEvent(event.Event, 9)
	done := make(chan CommandBufferStatus, 1)
	if err := cb.AddCompletedHandler(func(cb CommandBuffer) { done <- cb.Status() }); err != nil {
		t.Fatal(err)
	}
	cb.Commit()
	if !event.WaitUntilSignaledValue(9, 60_000) {
		t.Error("the event did not come")
	}
	select {
	case s := <-done:
		if s != CommandBufferStatusCompleted {
			t.Error(s)
		}
	case <-time.After(time.Minute):
		t.Error("not completed")
	}
	if cb.Error() != nil || cb.GPUEndTime() <= cb.GPUStartTime() {
		t.Error(cb.Error(), cb.GPUStartTime(), cb.GPUEndTime())
	}
	for _, o := range []Object{b.Object, l.Object, values.Object, f.Object, desc.Object, state.Object, reflection.Object, q.Object, event.Object, d.Object} {
		o.Release()
	}
	pool.Drain()
	for late := time.Now().Add(time.Minute); live() != before && time.Now().Before(late); { // the handler's thread lets go last
		time.Sleep(time.Millisecond)
	}
	if n := live(); n != before {
		t.Errorf("%d objects leaked", n-before)
	}
	if err := objc.TakeError(); err != nil {
		t.Error(err)
	}
}
