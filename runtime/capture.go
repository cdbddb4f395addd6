package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// captureManager finds Metal's capture manager for a device. Tests put another in its place.
type captureManager func(mtl.Device) mtl.CaptureManager

// Capture captures what is sent to the device while f runs, and the work submitted by then, into a GPU trace document that
// Xcode opens. The file must not exist and its name must end in .gputrace. Metal captures only for a process whose
// environment has MTL_CAPTURE_ENABLED=1 from its start on, or whose Info.plist sets MetalCaptureEnabled; otherwise, on the
// software device, and while something else captures, Capture returns an error and does not call f. The error of f comes
// first; the document is written in any case.
func (rt *Runtime) Capture(path string, f func() error) error {
	const fn = "Runtime.Capture"
	if err := rt.opened(fn); err != nil {
		return err
	}
	if f == nil {
		return &Error{Func: fn, Arg: "f", Have: "nil", Need: "a function", Err: ErrMisuse}
	}
	if err := capturePath(fn, path); err != nil {
		return err
	}
	stop, err := rt.startCapture(fn, path)
	if err != nil {
		return err
	}
	defer stop() // also when f panics
	err = f()
	// What was submitted must have been committed to be in the document, and its failure is not the capture's.
	if werr := rt.queue.completion(context.Background(), fn, rt.queue.lastCommitted()); err == nil {
		err = werr
	}
	return err
}

// capturePath refuses what Metal does not write to.
func capturePath(fn, path string) error {
	if filepath.Ext(path) != ".gputrace" {
		return &Error{Func: fn, Arg: "path", Have: fmt.Sprintf("%q", path), Need: "a name that ends in .gputrace", Err: ErrMisuse}
	}
	if _, err := os.Lstat(path); err == nil {
		return &Error{Func: fn, Arg: "path", Have: fmt.Sprintf("%q, which exists", path), Need: "the name of a new file", Err: ErrMisuse}
	}
	return nil
}

// startCapture starts a capture; stop ends it. The runtime stays open until then.
func (rt *Runtime) startCapture(fn, path string) (stop func(), err error) {
	rt.life.RLock()
	defer rt.life.RUnlock()
	if e := rt.unusable(); e != nil {
		return nil, &Error{Func: fn, Err: e}
	}
	defer objc.NewPool().Drain()
	manager := rt.cfg.capture(rt.dev)
	switch {
	case manager.IsNil():
		return nil, &Error{Func: fn, Have: fmt.Sprintf("the device %q", rt.info.Name), Need: "a GPU under macOS", Err: ErrDevice}
	case !manager.SupportsDestination(mtl.CaptureDestinationGPUTraceDocument):
		return nil, &Error{Func: fn, Have: "a process that Metal does not capture", Need: "MTL_CAPTURE_ENABLED=1 in its environment from the start on", Err: ErrDevice}
	case manager.IsCapturing():
		return nil, &Error{Func: fn, Have: "a capture that is being taken", Need: "none", Err: ErrBusy}
	}
	desc, err := mtl.NewCaptureDescriptor(rt.dev)
	if err == nil {
		defer desc.Release()
		desc.SetCaptureObject(rt.dev.Object)
		desc.SetDestination(mtl.CaptureDestinationGPUTraceDocument)
		if err = mtl.SetCaptureOutput(desc, path); err == nil {
			err = manager.StartCaptureWithDescriptor(desc)
		}
	}
	if err != nil {
		return nil, &Error{Func: fn, Err: deviceError("capture", err)}
	}
	manager.Retain()
	rt.naming.Add(1)
	return func() {
		rt.naming.Add(-1)
		manager.StopCapture()
		manager.Release()
	}, nil
}

// lastCommitted is the number of the last submission.
func (q *queue) lastCommitted() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.seq
}
