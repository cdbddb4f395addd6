package runtime

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ingot-metal/ingot/objc"
)

// TraceOptions say what a trace notes.
type TraceOptions struct {
	// Kernels times every dispatch, where the device samples counters: see [Trace.KernelTimes]. Dispatches then run one after
	// another, each in an encoder of its own on most GPUs, so that a pass takes longer than it would; results are the same.
	// Without it, the device works as always, and the trace has its time for each pass and replay.
	Kernels bool
	// Limit is how many events are kept at most, 262,144 if it is 0. What comes later is counted by [Trace.Lost].
	Limit int
}

const defaultTraceLimit = 1 << 18

// A Trace notes what the host and the device do, from [Runtime.StartTrace] to [Trace.Stop], with times: encoding, commits,
// waits, allocations and compilations on the host, passes, replays, copies and kernels on the device. [Trace.WriteTo]
// writes it for a viewer. Its methods may be called from several goroutines, also after the runtime was closed.
type Trace struct {
	rt      *Runtime
	device  string
	kernels bool
	limit   int
	start   time.Time
	clock   clock
	sampler sampler

	mu      sync.Mutex
	events  []traceEvent
	lost    int
	noTimes string // why there are no times of kernels
	stopped bool
	pending int // submissions under way that note
}

// traceLane is where an event is shown: what happens on one lane at a time is shown on lines of its own.
type traceLane uint8

const (
	laneEncode traceLane = iota
	laneCommit
	laneWait
	laneAllocate
	laneCompile
	laneHostCopy
	lanePasses // the first one of the device
	laneGroups
	laneKernels
	lanes
)

var laneNames = [lanes]string{"encode", "commit", "wait", "allocate", "compile", "copy", "passes", "groups", "kernels"}

func (l traceLane) gpu() bool { return l >= lanePasses }

// traceEvent is something that took time, or a moment: a signpost.
type traceEvent struct {
	lane       traceLane
	post       bool
	depth      uint8 // of a group
	name       string
	start, end time.Duration // since the trace began
	seq        uint64        // of the submission, 0 if there is none
	bytes      int
	count      int // dispatches
	group      string
	note       string
}

// StartTrace begins a trace. A runtime takes one at a time, and none costs what it would do: one look at a word wherever
// something could be noted.
func (rt *Runtime) StartTrace(o TraceOptions) (*Trace, error) {
	const fn = "Runtime.StartTrace"
	if err := rt.enter(fn); err != nil {
		return nil, err
	}
	defer rt.leave()
	if o.Limit < 0 {
		return nil, &Error{Func: fn, Arg: "Limit", Have: fmt.Sprint(o.Limit), Need: "0 or more events", Err: ErrLimit}
	}
	if o.Limit == 0 {
		o.Limit = defaultTraceLimit
	}
	defer objc.NewPool().Drain()
	t := &Trace{rt: rt, device: rt.info.Name, kernels: o.Kernels, limit: o.Limit, start: time.Now()}
	t.clock.start(rt.dev)
	if o.Kernels {
		t.noTimes = t.sampler.start(rt.dev)
	} else {
		t.noTimes = "not asked for with TraceOptions.Kernels"
	}
	if !rt.trace.CompareAndSwap(nil, t) {
		t.sampler.close()
		return nil, &Error{Func: fn, Have: "a trace that is being taken", Need: "none", Err: ErrBusy}
	}
	rt.cfg.log.Debug("trace started", "kernels", o.Kernels, "without kernel times", t.noTimes)
	return t, nil
}

// Stop ends the trace, once the work submitted so far has completed, so that its times are in it. It ends early, with
// an error over [ErrTimeout], when ctx is done: what completes later is still noted. The failure of work that is traced
// is not Stop's.
func (t *Trace) Stop(ctx context.Context) error {
	const fn = "Trace.Stop"
	if t == nil || t.rt == nil {
		return &Error{Func: fn, Have: "no trace", Need: "one of Runtime.StartTrace", Err: ErrMisuse}
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if !t.rt.trace.CompareAndSwap(t, nil) {
		return &Error{Func: fn, Have: "a trace that was stopped", Need: "one that is being taken", Err: ErrClosed}
	}
	err := t.rt.queue.completion(ctx, fn, t.rt.queue.lastCommitted())
	t.mu.Lock()
	t.stopped = true
	t.closeIfIdle()
	n, lost := len(t.events), t.lost
	t.mu.Unlock()
	t.rt.cfg.log.Debug("trace stopped", "events", n, "lost", lost)
	return err
}

// closeIfIdle gives the sampler's objects back when nothing will be noted any more. The lock is held.
func (t *Trace) closeIfIdle() {
	if t.stopped && t.pending == 0 {
		t.sampler.close()
	}
}

// stopTrace ends the trace of a runtime that is being closed. Nothing is in flight but what was given up.
func (rt *Runtime) stopTrace() {
	if t := rt.trace.Swap(nil); t != nil {
		t.mu.Lock()
		t.stopped = true
		t.closeIfIdle()
		t.mu.Unlock()
	}
}

// WriteTrace takes a trace while f runs, and writes it to w as [Trace.WriteTo] does, also when f returns an error. It
// returns that error first.
func (rt *Runtime) WriteTrace(w io.Writer, o TraceOptions, f func() error) error {
	const fn = "Runtime.WriteTrace"
	switch {
	case w == nil:
		return &Error{Func: fn, Arg: "w", Have: "nil", Need: "a writer", Err: ErrMisuse}
	case f == nil:
		return &Error{Func: fn, Arg: "f", Have: "nil", Need: "a function", Err: ErrMisuse}
	}
	t, err := rt.StartTrace(o)
	if err != nil {
		return err
	}
	stop := func() error { return t.Stop(context.Background()) }
	returned := false
	defer func() {
		if !returned { // f panics: whoever recovers may take another trace
			_ = stop()
		}
	}()
	err = f()
	returned = true
	serr := stop()
	_, werr := t.WriteTo(w)
	for _, e := range []error{err, serr, werr} {
		if e != nil {
			return e
		}
	}
	return nil
}

// Lost is how many events and times of kernels the trace does not have: beyond its limit, or not measured by the device.
func (t *Trace) Lost() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

// KernelTimes says whether the trace has times of kernels, and if not, why not.
func (t *Trace) KernelTimes() (ok bool, why string) {
	if t == nil {
		return false, "no trace"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.noTimes == "", t.noTimes
}

// add keeps an event. The lock is held.
func (t *Trace) add(e traceEvent) {
	if len(t.events) >= t.limit {
		t.lost++
		return
	}
	t.events = append(t.events, e)
}

// A hostSpan is something that the host does, from its begin to its end. The zero hostSpan, which is what there is
// without a trace, does nothing.
type hostSpan struct {
	t     *Trace
	begun time.Time
}

// traceHost begins a span, if a trace is being taken.
func (rt *Runtime) traceHost() hostSpan {
	if t := rt.trace.Load(); t != nil {
		return hostSpan{t, time.Now()}
	}
	return hostSpan{}
}

// end ends the span.
func (s hostSpan) end(l traceLane, name string, seq uint64, bytes int) {
	if s.t == nil {
		return
	}
	now := time.Now()
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.t.add(traceEvent{lane: l, name: name, start: s.begun.Sub(s.t.start), end: now.Sub(s.t.start), seq: seq, bytes: bytes})
}

// A waitSpan is a wait for the device.
type waitSpan struct {
	rt    *Runtime
	begun time.Time
}

func (rt *Runtime) beginWait() waitSpan { return waitSpan{rt, time.Now()} }

func (w waitSpan) end(fn string, seq uint64) {
	w.rt.stats.waits.Add(1)
	w.rt.stats.waited.Add(uint64(time.Since(w.begun)))
	if t := w.rt.trace.Load(); t != nil {
		hostSpan{t, w.begun}.end(laneWait, fn, seq, 0)
	}
}
