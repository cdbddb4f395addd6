package runtime

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// An Option changes how [Open] opens a runtime.
type Option func(*config) error

// Hazards is how a pass orders dispatches that touch the same memory.
type Hazards uint8

const (
	// HazardsTracked: the pass places the fewest barriers that order conflicting dispatches. The default.
	HazardsTracked Hazards = iota
	// HazardsManual: only [Pass.Barrier] orders dispatches within a pass. What the caller forgets is a race.
	HazardsManual
)

const (
	// DefaultMaxInFlight is how many submissions may be pending before the next one waits. Metal's queues hold 64 command
	// buffers and block without limit beyond, so a runtime stays well below.
	DefaultMaxInFlight = 16
	// MaxMaxInFlight is the most that WithMaxInFlight takes.
	MaxMaxInFlight = 60
	// DefaultTimeout is how long a runtime waits for a device that makes no progress.
	DefaultTimeout = 2 * time.Minute
	// DefaultPoolLimit is how many bytes of released memory a runtime keeps for reuse.
	DefaultPoolLimit = 256 << 20
)

// config is what the options set.
type config struct {
	options     []Option
	library     []byte
	haveLibrary bool
	log         *slog.Logger
	maxInFlight int
	timeout     time.Duration
	hazards     Hazards
	poolLimit   int
	memory      int // budget, 0 for what the device recommends
	noIndirect  bool
	checks      bool
	times       bool
	device      mtl.Device
	builtin     builtin
	capture     captureManager
}

var selNewCommandQueue = objc.RegisterName("newCommandQueueWithMaxCommandBufferCount:")

func defaults() config {
	return config{log: slog.New(slog.DiscardHandler), builtin: embedded(), capture: mtl.CaptureManagerFor,
		maxInFlight: DefaultMaxInFlight, timeout: DefaultTimeout, poolLimit: DefaultPoolLimit}
}

func optionError(option, have, need string, sentinel error) *Error {
	return &Error{Func: "Open", Arg: option, Have: have, Need: need, Err: sentinel}
}

// WithDevice opens a device of your choice, such as one of mtl.Devices or soft.New. The runtime keeps a reference of its own.
func WithDevice(dev mtl.Device) Option {
	return func(c *config) error {
		if dev.IsNil() {
			return optionError("WithDevice", "nil", "a device", ErrMisuse)
		}
		if id := dev.ID(); !id.RespondsTo(selNewCommandQueue) {
			return optionError("WithDevice", "an object of class "+id.ClassName(), "a Metal device", ErrMisuse)
		}
		c.device = dev
		return nil
	}
}

// WithLibrary uses the kernels of a .metallib instead of the embedded default library. There is no fallback to source for
// it: when the device refuses it, Open fails.
func WithLibrary(data []byte) Option {
	return func(c *config) error {
		if len(data) == 0 {
			return optionError("WithLibrary", "no data", "a .metallib", ErrMisuse)
		}
		c.library, c.haveLibrary = data, true
		return nil
	}
}

// WithLogger logs what a user may want to know: the device and the library at level Info, fallbacks at Warn, failures of the
// device at Error, pipelines, traces and the end at Debug. Off by default.
func WithLogger(log *slog.Logger) Option {
	return func(c *config) error {
		if log == nil {
			log = slog.New(slog.DiscardHandler)
		}
		c.log = log
		return nil
	}
}

// WithMaxInFlight sets how many submissions may be pending: the next one waits for the oldest.
func WithMaxInFlight(n int) Option {
	return func(c *config) error {
		if n < 1 || n > MaxMaxInFlight {
			return optionError("WithMaxInFlight", fmt.Sprint(n), fmt.Sprintf("1 to %d", MaxMaxInFlight), ErrLimit)
		}
		c.maxInFlight = n
		return nil
	}
}

// WithTimeout sets how long the device may make no progress before the runtime gives it up with [ErrTimeout].
func WithTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return optionError("WithTimeout", d.String(), "a positive duration", ErrLimit)
		}
		c.timeout = d
		return nil
	}
}

// WithHazards sets who orders dispatches within a pass: the runtime, which is the default, or the caller.
func WithHazards(h Hazards) Option {
	return func(c *config) error {
		if h > HazardsManual {
			return optionError("WithHazards", fmt.Sprint(h), "HazardsTracked or HazardsManual", ErrMisuse)
		}
		c.hazards = h
		return nil
	}
}

// WithPoolLimit sets how many bytes of released memory are kept for reuse; 0 keeps none.
func WithPoolLimit(bytes int) Option {
	return func(c *config) error {
		if bytes < 0 {
			return optionError("WithPoolLimit", fmt.Sprint(bytes), "0 or more bytes", ErrLimit)
		}
		c.poolLimit = bytes
		return nil
	}
}

// WithMemoryBudget sets how many bytes a runtime may hold in all: live and pooled memory, scalars, wrapped buffers and mapped
// files. What would exceed it is refused with [ErrLimit] before anything is allocated, after pooled memory has been given
// up. 0, the default, means what the device recommends ([DeviceInfo.WorkingSet]); more than that is allowed, and may fail
// on the device.
func WithMemoryBudget(bytes int) Option {
	return func(c *config) error {
		if bytes < 0 {
			return optionError("WithMemoryBudget", fmt.Sprint(bytes), "0 or more bytes", ErrLimit)
		}
		c.memory = bytes
		return nil
	}
}

// WithoutIndirect makes programs re-encode their work on each replay, even where the device has indirect command buffers
// for compute. Results are the same.
func WithoutIndirect() Option {
	return func(c *config) error {
		c.noIndirect = true
		return nil
	}
}

// WithGPUTimes makes every submission keep its GPU time from its completion on, see [Submission.GPUTime]. It costs two
// messages for each submission when that has completed, and 32 bytes for as long as the submission is held.
func WithGPUTimes() Option {
	return func(c *config) error {
		c.times = true
		return nil
	}
}

// WithChecks opens a software device that finds races and reads of memory never written in kernels, and what kernels do
// otherwise than declared: writes to what they declare as read only, and accesses beyond the view that was bound, though the memory
// goes on (unless one dispatch binds the same memory twice). A submission with one fails. It is for where Open takes the software device; a device of your own is made with checks (see package
// mtl/soft), and a GPU has none, so that Open fails with [ErrDevice] on macOS.
func WithChecks(on bool) Option {
	return func(c *config) error {
		c.checks = on
		return nil
	}
}
