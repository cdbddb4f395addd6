package runtime

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// The sentinels that an [*Error] wraps. Ask with errors.Is.
var (
	// ErrShape: lengths, shapes or alignments do not fit.
	ErrShape = errors.New("shape mismatch")
	// ErrOverlap: memory overlaps where it must not.
	ErrOverlap = errors.New("overlapping memory")
	// ErrForeign: the object belongs to another runtime.
	ErrForeign = errors.New("belongs to another runtime")
	// ErrClosed: the object was closed or released.
	ErrClosed = errors.New("closed or released")
	// ErrBusy: the object is in use by work that has not completed.
	ErrBusy = errors.New("in use by pending work")
	// ErrLimit: a limit of the device or of Metal is exceeded.
	ErrLimit = errors.New("limit exceeded")
	// ErrDevice: the device, a command buffer, or a library failed. See [DeviceError].
	ErrDevice = errors.New("device failure")
	// ErrScalar: a scalar has a value or a type that is not allowed.
	ErrScalar = errors.New("invalid scalar")
	// ErrKernel: there is no such kernel, or it does not have such a slot.
	ErrKernel = errors.New("no such kernel or slot")
	// ErrMisuse: a call that is not allowed at this point, such as using a pass after its closure has returned.
	ErrMisuse = errors.New("misuse")
	// ErrTimeout: the work did not complete in time. An error over it is also one over ErrDevice if the device is given up.
	ErrTimeout = errors.New("timed out")
	// ErrOutOfMemory: the device had no memory for a command buffer's work. Such an error is an ErrDevice, too.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrDeviceLost: the device was removed, or takes no more work from this process. It is an ErrDevice, too.
	ErrDeviceLost = errors.New("device lost")
)

// An Error says which argument of which function was refused, what it has and what it needs. Fields that do not apply
// are empty.
type Error struct {
	// Func is the function or method, such as "nn.RMSNormF32" or "Slice.Read", or the kernel whose launch was refused.
	Func string
	// Arg is the argument or object, such as "out" or "slot 3".
	Arg string
	// Have and Need are what the argument has and what the function needs.
	Have, Need string
	// Err is one of the sentinels, or an error that wraps one.
	Err error
}

// Error is of the form "func: arg: have …, need …: sentinel".
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	var b strings.Builder
	part := func(separator, text string) {
		if text == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString(separator)
		}
		b.WriteString(text)
	}
	part("", e.Func)
	part(": ", e.Arg)
	if e.Have != "" {
		part(": ", "have "+e.Have)
	}
	if e.Need != "" {
		if e.Have != "" {
			part(", ", "need "+e.Need)
		} else {
			part(": ", "need "+e.Need)
		}
	}
	if e.Err != nil {
		part(": ", e.Err.Error())
	}
	return b.String()
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// A DeviceError is what Metal reported: the NSError of a command buffer, a library or a pipeline. It is an [ErrDevice].
type DeviceError struct {
	// Op is what failed, such as "command buffer" or "pipeline gemv".
	Op string
	// Domain and Code are those of the NSError, empty and 0 when Metal gave none.
	Domain string
	Code   int
	// Text is Metal's description.
	Text string
	// Encoders says of each encoder of a command buffer how far it came, where the device reports it.
	Encoders []string
}

// Error names the operation, the domain, the code and the text.
func (e *DeviceError) Error() string {
	if e == nil {
		return "<nil>"
	}
	var b strings.Builder
	b.WriteString(e.Op)
	b.WriteString(": ")
	if e.Domain != "" {
		fmt.Fprintf(&b, "%s %d: ", e.Domain, e.Code)
	}
	if e.Text == "" {
		b.WriteString("Metal gave no reason")
	}
	b.WriteString(e.Text)
	for i, s := range e.Encoders {
		if i == 0 {
			b.WriteString(" [")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(s)
	}
	if len(e.Encoders) > 0 {
		b.WriteString("]")
	}
	return b.String()
}

// Is makes every DeviceError an [ErrDevice], and those of command buffers an [ErrTimeout], [ErrOutOfMemory] or
// [ErrDeviceLost] where Metal's code says so.
func (e *DeviceError) Is(target error) bool {
	return target == ErrDevice || e != nil && e.means(target)
}

// errorCell holds the first error that it was given.
type errorCell struct{ p atomic.Pointer[Error] }

func (c *errorCell) get() *Error { return c.p.Load() }

func (c *errorCell) set(e *Error) { c.p.CompareAndSwap(nil, e) }

// failure joins sentinel and cause, so that errors.Is finds both and the text says both.
type failure struct {
	sentinel, cause error
}

func (f *failure) Error() string          { return f.sentinel.Error() + ": " + f.cause.Error() }
func (f *failure) Unwrap() []error        { return []error{f.sentinel, f.cause} }
func because(sentinel, cause error) error { return &failure{sentinel, cause} }
