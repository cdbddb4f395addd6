package runtime

import (
	"sync/atomic"
)

// A Runtime is a device, a queue, a kernel library, and the memory and pipelines that were made on them. Its methods may
// be called from several goroutines.
type Runtime struct {
	cfg    config
	limits limits

	closed atomic.Bool
	failed atomic.Pointer[Error]
}

// Err is why the runtime takes no more work: [ErrClosed] after Close, the device's failure after a failure, nil otherwise.
func (rt *Runtime) Err() error {
	if e := rt.unusable(); e != nil {
		return e
	}
	return nil
}

func (rt *Runtime) unusable() *Error {
	if rt.closed.Load() {
		return &Error{Func: "Runtime", Err: ErrClosed}
	}
	return rt.failed.Load()
}
