package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
)

// fakeManager stands in for MTLCaptureManager.
type fakeManager struct {
	unsupported, capturing, refuses bool
	log                             []string
}

var fakeManagerClass = objc.NewGoClass("MTLCaptureManager", map[string]objc.Method{
	"supportsDestination:": func(c *objc.Call) {
		c.ReturnBool(!c.Self().(*fakeManager).unsupported && c.Int(0) == int(mtl.CaptureDestinationGPUTraceDocument))
	},
	"isCapturing": func(c *objc.Call) { c.ReturnBool(c.Self().(*fakeManager).capturing) },
	"startCaptureWithDescriptor:error:": func(c *objc.Call) {
		m := c.Self().(*fakeManager)
		if m.refuses {
			c.Fail(1, "MTLCaptureError", int(mtl.CaptureErrorInvalidDescriptor), "no such directory")
			return
		}
		d := mtl.CaptureDescriptorOf(c.Object(0))
		path := objc.GoString(objc.ID(objc.Send(d.OutputURL().ID(), objc.RegisterName("path"))))
		m.log = append(m.log, fmt.Sprint("start ", filepath.Base(path), " ", d.Destination(), " ", mtl.DeviceOf(d.CaptureObject().ID()).Name()))
		m.capturing = true
		c.ReturnBool(true)
	},
	"stopCapture": func(c *objc.Call) {
		m := c.Self().(*fakeManager)
		m.log = append(m.log, "stop")
		m.capturing = false
	},
})

func TestCapture(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	m := &fakeManager{}
	id := fakeManagerClass.New(m)
	defer id.Release()
	rt.cfg.capture = func(mtl.Device) mtl.CaptureManager { return mtl.CaptureManagerOf(id) }
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return errors.Join(p.Label("step"), bump(p, x, 1)) })
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "a.gputrace")
	labels := soft.Stats(dev).Messages["setLabel:"]
	var s Submission
	require.NoError(t, rt.Capture(path, func() error {
		m.log = append(m.log, "work")
		require.ErrorIs(t, rt.Capture(path, func() error { return nil }), ErrBusy)
		s, err = prog.Replay()
		return err
	}))
	require.True(t, s.Done(), "the work belongs to the capture")
	require.Equal(t, []string{"start a.gputrace 2 Ingot Software Device", "work", "stop"}, m.log)
	require.EqualValues(t, 2, soft.Stats(dev).Messages["setLabel:"]-labels, "replays have their names in a capture: command buffer and encoder")
	require.NoError(t, prog.Run())
	require.EqualValues(t, 2, soft.Stats(dev).Messages["setLabel:"]-labels)

	boom := errors.New("boom")
	require.ErrorIs(t, rt.Capture(path, func() error { return boom }), boom)
	require.Panics(t, func() { _ = rt.Capture(path, func() error { panic(boom) }) })
	require.False(t, m.capturing)
	require.Zero(t, rt.naming.Load())
}

func TestCaptureIsRefused(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	dir := t.TempDir()
	path := filepath.Join(dir, "a.gputrace")
	never := func() error { t.Error("called"); return nil }
	err := rt.Capture(path, never)
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorContains(t, err, "Ingot Software Device")
	require.ErrorIs(t, rt.Capture(path, nil), ErrMisuse)
	require.ErrorIs(t, rt.Capture(filepath.Join(dir, "a.trace"), never), ErrMisuse)
	require.ErrorIs(t, rt.Capture("", never), ErrMisuse)
	there := filepath.Join(dir, "there.gputrace")
	require.NoError(t, os.Mkdir(there, 0o777))
	require.ErrorContains(t, rt.Capture(there, never), "which exists")
	for want, m := range map[string]*fakeManager{
		"MTL_CAPTURE_ENABLED=1":       {unsupported: true},
		"a capture that is being":     {capturing: true},
		"capture: MTLCaptureError 3:": {refuses: true},
	} {
		id := fakeManagerClass.New(m)
		rt.cfg.capture = func(mtl.Device) mtl.CaptureManager { return mtl.CaptureManagerOf(id) }
		require.ErrorContains(t, rt.Capture(path, never), want)
		id.Release()
	}
	require.NoError(t, rt.Close())
	require.ErrorIs(t, rt.Capture(path, never), ErrClosed)
	for _, none := range []*Runtime{nil, {}} {
		require.ErrorIs(t, none.Capture(path, never), ErrMisuse)
		_, err := none.StartTrace(TraceOptions{})
		require.ErrorIs(t, err, ErrMisuse)
		require.ErrorIs(t, none.WriteTrace(os.Stderr, TraceOptions{}, never), ErrMisuse)
	}
}
