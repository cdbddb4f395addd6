package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// maxOpenPasses is how many passes may be encoding at a time, besides those in flight. Each holds a command buffer, of
// which a queue has a fixed number and blocks without limit beyond.
const maxOpenPasses = 64

// closeGrace is how long Close waits for passes that are being encoded. It may have been called by the closure of one.
const closeGrace = time.Second

// A Runtime is a device, a queue, a kernel library, and the memory and pipelines that were made on them. Its methods may
// be called from several goroutines.
type Runtime struct {
	cfg      config
	dev      mtl.Device // retained
	info     DeviceInfo
	limits   limits
	libs     libraries
	pipes    pipelines
	mem      memory
	arena    arena
	queue    queue
	times    timesBlock
	trace    atomic.Pointer[Trace] // the one that is being taken
	resident residency
	states   passStates
	streams  streams
	stats    counters

	// declare tells a device with checks how many bytes of a buffer a dispatch is meant to use. It is nil for others.
	declare func(id objc.ID, slot int, n uint64) bool

	// dropBarrier is for tests: it says of a barrier that is needed whether to leave it out.
	dropBarrier func(*command) bool

	naming atomic.Int32 // captures under way, which want the names of replays

	closed atomic.Bool
	failed atomic.Pointer[Error]

	// life is held for reading by short operations that use the device, so that Close does not release it under them.
	life sync.RWMutex

	mu       sync.Mutex
	open     int  // passes, replays and the like under way: Close does not run beside them
	closing  bool // Close waits for them, and no more begin
	programs map[*Program]struct{}
}

// Open opens a device: the one of [WithDevice], or else the best of the system, which is the GPU on macOS and the software
// device elsewhere.
func Open(opts ...Option) (*Runtime, error) {
	rt := &Runtime{cfg: defaults()}
	rt.arena.rt = rt
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(&rt.cfg); err != nil {
			return nil, err
		}
	}
	rt.cfg.options = opts
	defer objc.NewPool().Drain()
	if err := rt.openDevice(); err != nil {
		return nil, err
	}
	if err := rt.start(); err != nil {
		rt.closed.Store(true)
		rt.releaseAll()
		return nil, err
	}
	rt.cfg.log.Info("runtime open", "device", rt.info.Name, "family", rt.info.Family, "library", rt.LibraryOrigin().String(), "indirect", rt.info.Indirect)
	return rt, nil
}

func (rt *Runtime) openDevice() error {
	if rt.cfg.device.IsNil() {
		find := bestDevice
		if rt.cfg.checks {
			find = checkingDevice
		}
		dev, err := find()
		if err != nil {
			return &Error{Func: "Open", Arg: "device", Err: because(ErrDevice, err)}
		}
		rt.dev = dev
		return nil
	}
	if rt.cfg.checks {
		return optionError("WithChecks", "a device from WithDevice", "the device made with soft.Options.Checks instead", ErrMisuse)
	}
	rt.cfg.device.Retain()
	rt.dev = rt.cfg.device
	return nil
}

// start makes what a runtime has from the start.
func (rt *Runtime) start() error {
	if err := rt.probe(); err != nil {
		return err
	}
	rt.mem.pool.limit = rt.cfg.poolLimit
	rt.mem.budget = rt.cfg.budget(rt.info.WorkingSet)
	if err := rt.queue.start(rt); err != nil {
		return err
	}
	rt.resident.start(rt)
	return rt.loadLibrary()
}

// enter counts an operation that must not run while the runtime is closed.
func (rt *Runtime) enter(fn string) error {
	if err := rt.opened(fn); err != nil {
		return err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if e := rt.unusable(); e != nil {
		return &Error{Func: fn, Err: e}
	}
	if rt.closing {
		return &Error{Func: fn, Have: "a runtime that is being closed", Err: ErrClosed}
	}
	if rt.open >= maxOpenPasses {
		return &Error{Func: fn, Have: fmt.Sprintf("%d passes that are being encoded", rt.open), Need: fmt.Sprintf("at most %d", maxOpenPasses), Err: ErrBusy}
	}
	rt.open++
	return nil
}

// opened refuses a runtime that Open did not make.
func (rt *Runtime) opened(fn string) error {
	switch {
	case rt == nil:
		return &Error{Func: fn, Arg: "rt", Have: "nil", Need: "an open runtime", Err: ErrMisuse}
	case rt.dev.IsNil():
		return &Error{Func: fn, Arg: "rt", Have: "the zero Runtime", Need: "a runtime from Open", Err: ErrMisuse}
	}
	return nil
}

func (rt *Runtime) leave() {
	rt.mu.Lock()
	rt.open--
	rt.mu.Unlock()
}

// Err is why the runtime takes no more work: an error over [ErrClosed] after Close, what failed after a failure, and nil
// otherwise.
func (rt *Runtime) Err() error {
	if err := rt.opened("Runtime.Err"); err != nil {
		return err
	}
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

// fail makes the runtime unusable. The first failure counts.
func (rt *Runtime) fail(e *Error) {
	if rt.failed.CompareAndSwap(nil, e) {
		rt.cfg.log.Error("device failure", "error", e.Error())
	}
}

// Wait waits for all work that was submitted before, that of streams as well, and returns the failure of the runtime if there
// was one; a failure that only concerns a stream is told by the stream. It ends early, as [Submission.Wait] does, when ctx is done.
func (rt *Runtime) Wait(ctx context.Context) error {
	if err := rt.opened("Runtime.Wait"); err != nil {
		return err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	return rt.queue.drain(ctx, "Runtime.Wait")
}

// Close waits for the submitted work, within the limit of [WithTimeout], and releases everything: memory, programs,
// pipelines. Passes that are being encoded by other goroutines have a second to end; if one does not, or Close was called
// by the closure of one, Close does nothing and returns [ErrBusy]. It returns the device's failure if the work it waited for
// failed and nobody has been told.
func (rt *Runtime) Close() error {
	const fn = "Runtime.Close"
	if err := rt.opened(fn); err != nil {
		return err
	}
	if err := rt.stopEntering(fn); err != nil {
		return err
	}
	known := rt.failed.Load()
	defer objc.NewPool().Drain()
	err := rt.queue.drain(context.Background(), fn)
	rt.life.Lock()
	defer rt.life.Unlock()
	stats := rt.Stats()
	rt.releaseAll()
	rt.cfg.log.Debug("runtime closed", "submissions", stats.Submissions, "dispatches", stats.Dispatches+stats.Replayed, "barriers", stats.Barriers,
		"waits", stats.Waits, "waited", stats.WaitTime, "allocations", stats.Allocations)
	if known != nil {
		return nil // it was reported before
	}
	return err
}

// stopEntering closes the runtime for new work once what is under way has ended.
func (rt *Runtime) stopEntering(fn string) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closed.Load() || rt.closing {
		return &Error{Func: fn, Err: ErrClosed}
	}
	rt.closing = true
	for end := time.Now().Add(closeGrace); rt.open > 0; {
		if time.Now().After(end) {
			rt.closing = false
			return &Error{Func: fn, Have: "a pass that is being encoded", Need: "none", Err: ErrBusy}
		}
		rt.mu.Unlock()
		time.Sleep(100 * time.Microsecond)
		rt.mu.Lock()
	}
	rt.mu.Unlock()
	rt.closeStreams() // nobody else can use them any more
	rt.mu.Lock()
	rt.closed.Store(true)
	return nil
}

// releaseAll releases what the runtime has, in whatever state opening left it.
func (rt *Runtime) releaseAll() {
	rt.mu.Lock()
	programs := make([]*Program, 0, len(rt.programs))
	for p := range rt.programs {
		programs = append(programs, p)
	}
	rt.mu.Unlock()
	for _, p := range programs {
		if !p.released.Swap(true) {
			p.unref()
		}
	}
	rt.queue.close()
	rt.stopTrace()
	rt.releaseMemory()
	rt.arena.trim()
	rt.resident.close()
	rt.closePipelines()
	rt.closeLibraries()
	rt.dev.Release()
}

// Reopen closes the runtime and opens a new one with the same options: how to start anew after a failure. Slices,
// programs and scalars of the old one are gone with it.
func (rt *Runtime) Reopen() (*Runtime, error) {
	if err := rt.opened("Runtime.Reopen"); err != nil {
		return nil, err
	}
	if err := rt.Close(); errors.Is(err, ErrBusy) {
		return nil, err
	}
	return Open(rt.cfg.options...)
}

// keepProgram counts a program among those that Close releases.
func (rt *Runtime) keepProgram(p *Program) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closed.Load() {
		return false
	}
	if rt.programs == nil {
		rt.programs = map[*Program]struct{}{}
	}
	rt.programs[p] = struct{}{}
	return true
}

func (rt *Runtime) forgetProgram(p *Program) {
	rt.mu.Lock()
	delete(rt.programs, p)
	rt.mu.Unlock()
}

// await waits, for a host copy, until submission seq has completed. A copy that writes does not mind that it failed, unless
// the runtime is unusable.
func (rt *Runtime) await(fn string, seq uint64, write bool) error {
	if seq == 0 {
		return nil
	}
	err := rt.queue.wait(context.Background(), fn, seq)
	if write && rt.unusable() == nil {
		return nil
	}
	return err
}

// passed says whether a submission has completed.
func (rt *Runtime) passed(seq uint64) bool { return rt.queue.passed(seq) }
