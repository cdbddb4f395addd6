package mtl

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ingot-metal/ingot/objc"
)

func TestSampleBufferAttachments(t *testing.T) {
	before := objc.LiveObjects()
	d := goDevice(t)
	buffer := CounterSampleBufferOf(answering(t, "MTLCounterSampleBuffer", nil))
	pass, err := NewComputePassDescriptor(d)
	if err != nil {
		t.Fatal(err)
	}
	pool := objc.NewPool()
	a := pass.SampleBufferAttachments().ObjectAtIndexedSubscript(1)
	a.SetSampleBuffer(buffer)
	a.SetStartOfEncoderSampleIndex(4)
	a.SetEndOfEncoderSampleIndex(CounterDontSample)
	if got := pass.SampleBufferAttachments().ObjectAtIndexedSubscript(1); got != a || got.SampleBuffer() != buffer {
		t.Error("the descriptor is another one")
	}
	if first := pass.SampleBufferAttachments().ObjectAtIndexedSubscript(0); !first.SampleBuffer().IsNil() {
		t.Error("a sample buffer from nowhere")
	}
	copied := ComputePassDescriptorOf(objc.ID(objc.Send(pass.ID(), selCopy)))
	a.SetStartOfEncoderSampleIndex(5)
	pass.SampleBufferAttachments().SetObject(a, 2)
	pass.SampleBufferAttachments().SetObject(ComputePassSampleBufferAttachmentDescriptor{}, 1)
	for i, want := range []string{"{0 false}", "{0 false}", "{5 true}"} {
		a := pass.SampleBufferAttachments().ObjectAtIndexedSubscript(uint(i))
		if got := fmt.Sprintf("{%d %t}", a.StartOfEncoderSampleIndex(), !a.SampleBuffer().IsNil()); got != want {
			t.Errorf("attachment %d: %s, want %s", i, got, want)
		}
	}
	if c := copied.SampleBufferAttachments().ObjectAtIndexedSubscript(1); c.SampleBuffer() != buffer || c.StartOfEncoderSampleIndex() != 4 || c.EndOfEncoderSampleIndex() != CounterDontSample {
		t.Error("the copy changed")
	}
	if x := pass.SampleBufferAttachments().ObjectAtIndexedSubscript(4); !x.IsNil() || objc.TakeError() == nil {
		t.Error("a fifth attachment")
	}
	pass.SampleBufferAttachments().SetObject(a, 4)
	if objc.TakeError() == nil {
		t.Error("a fifth attachment was set")
	}
	copied.Release()
	pool.Drain()
	pass.Release()
	if n := objc.LiveObjects() - 2; n != before { // the device and the sample buffer go with the test
		t.Errorf("%d objects leaked", n-before)
	}
}

// counterSetClass answers with a name.
var counterSetClass = objc.NewGoClass("MTLCounterSet", map[string]objc.Method{
	"name": func(c *objc.Call) { c.ReturnString(c.Self().(string)) },
})

func TestTimestampCounterSet(t *testing.T) {
	for _, names := range [][]string{nil, {"statistic"}, {"statistic", CommonCounterSetTimestamp}} {
		pool := objc.NewPool()
		d := DeviceOf(answering(t, "MTLDevice", map[string]objc.Method{"counterSets": func(c *objc.Call) {
			var ids []objc.ID
			for _, n := range names {
				ids = append(ids, counterSetClass.New(n).Autorelease())
			}
			c.ReturnBorrowed(objc.NSArray(ids...).Autorelease())
		}}))
		if set := TimestampCounterSet(d); set.IsNil() != (len(names) < 2) || !set.IsNil() && set.Name() != CommonCounterSetTimestamp {
			t.Errorf("%v: %q", names, set.Name())
		}
		pool.Drain()
	}
}

func TestResolveTimestamps(t *testing.T) {
	have := []byte{1, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
	b := CounterSampleBufferOf(answering(t, "MTLCounterSampleBuffer", map[string]objc.Method{"resolveCounterRange:": func(c *objc.Call) {
		if c.Uint(0) != 3 {
			return // nil
		}
		data, err := objc.Data(c.ID(), have[:min(8*c.Uint(1), 16)])
		if err != nil {
			t.Error(err)
		}
		c.ReturnBorrowed(data.Autorelease())
	}}))
	got, err := ResolveTimestamps(b, 3, 2)
	if err != nil || got[0] != 1 || got[1] != CounterErrorValue {
		t.Error(got, err)
	}
	for _, r := range [][2]uint{{3, 3}, {0, 1}} {
		if got, err := ResolveTimestamps(b, r[0], r[1]); err == nil {
			t.Error(r, got)
		}
	}
	if got, err := ResolveTimestamps(CounterSampleBuffer{}, 0, 1); err == nil {
		t.Error(got)
	}
}

func TestCaptureDescriptor(t *testing.T) {
	d := goDevice(t)
	c, err := NewCaptureDescriptor(d)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	c.SetCaptureObject(d.Object)
	if c.CaptureObject() != d.Object {
		t.Error("another capture object")
	}
	file := filepath.Join(t.TempDir(), "grüße.gputrace")
	if err := SetCaptureOutput(c, file); err != nil {
		t.Error(err)
	}
	if path := objc.GoString(objc.ID(objc.Send(c.OutputURL().ID(), objc.RegisterName("path")))); path != file {
		t.Error(path)
	}
	if err := SetCaptureOutput(c, ""); err == nil {
		t.Error("a file without a name")
	}
}

// TestCaptureManagerFor finds none for a device that is no hardware.
func TestCaptureManagerFor(t *testing.T) {
	d := goDevice(t)
	if m := CaptureManagerFor(d); !m.IsNil() {
		t.Error("a manager from nowhere")
	}
}
