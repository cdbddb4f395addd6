package runtime

import (
	"context"

	"github.com/ingot-metal/ingot/objc"
)

// A Pass is work being encoded. It lives within the closure given to [Runtime.Run], [Runtime.Submit], [Runtime.Record] or
// [Runtime.Check], and belongs to the goroutine that the closure runs on, which stays on its OS thread for that time. After
// the closure has returned it refuses everything.
//
// A closure may start another pass on the same runtime: that one is committed first.
type Pass struct {
	rt     *Runtime
	st     *passState // nil when the pass is over
	launch Launch
	inBind bool // a function given to Launch.Scalars runs
}

func (p *Pass) live() bool { return p != nil && p.st != nil }

// Runtime is the runtime that the pass belongs to, nil for a nil Pass.
func (p *Pass) Runtime() *Runtime {
	if p == nil {
		return nil
	}
	return p.rt
}

// Count is the number of dispatches encoded so far.
func (p *Pass) Count() int {
	if !p.live() {
		return 0
	}
	return p.st.count
}

// Barriers is the number of barriers encoded so far. Those of a stream are encoded after the closure has returned.
func (p *Pass) Barriers() int {
	if !p.live() {
		return 0
	}
	return p.st.barriers
}

// Kernel starts a launch of the kernel of that name. The launch belongs to the pass: the next call of Kernel reuses it.
func (p *Pass) Kernel(name string) *Launch {
	if !p.live() {
		return &Launch{name: name} // whose Dispatch says why it is refused
	}
	if p.inBind {
		return p.NewLaunch(name)
	}
	p.launch.start(p, name)
	return &p.launch
}

// NewLaunch is Kernel with a launch of its own, which the next call of Kernel leaves alone: for several launches that are
// prepared before one is dispatched, so that all or none are encoded (see [Launch.Check]). It allocates, as Kernel does not.
func (p *Pass) NewLaunch(name string) *Launch {
	l := &Launch{name: name}
	if !p.live() {
		return l // whose Dispatch says why it is refused
	}
	l.start(p, name)
	if p.inBind {
		l.refuse("launch", "one within the bind function of another", "that function to return first", ErrMisuse)
	}
	return l
}

// Barrier orders everything encoded before it with everything after it. Only [HazardsManual] needs it.
func (p *Pass) Barrier() error {
	if !p.live() {
		return &Error{Func: "Pass.Barrier", Have: "a pass that is over", Need: "a pass that is being encoded", Err: ErrMisuse}
	}
	p.st.barrierWanted = p.st.count > 0
	return nil
}

// Run encodes a pass, commits it and waits for it. When encode returns an error or panics, nothing is submitted. Without
// a dispatch there is nothing to do.
func (rt *Runtime) Run(encode func(p *Pass) error) error {
	s, err := rt.submit("Runtime.Run", encode)
	if err != nil || s.rt == nil {
		return err
	}
	return rt.queue.wait(context.Background(), "Runtime.Run", s.seq)
}

// Submit encodes a pass and commits it without waiting, unless [WithMaxInFlight] submissions are pending: then it waits
// for the oldest. When encode returns an error or panics, nothing is submitted.
func (rt *Runtime) Submit(encode func(p *Pass) error) (Submission, error) {
	return rt.submit("Runtime.Submit", encode)
}

func (rt *Runtime) submit(fn string, encode func(p *Pass) error) (Submission, error) {
	if encode == nil {
		return Submission{}, &Error{Func: fn, Arg: "encode", Have: "nil", Need: "a function", Err: ErrMisuse}
	}
	if err := rt.enter(fn); err != nil {
		return Submission{}, err
	}
	defer rt.leave()
	defer objc.NewPool().Drain()
	st := rt.newPassState(false)
	st.work = rt.traceWork("pass")
	p := &Pass{rt: rt, st: st}
	defer func() {
		p.st = nil
		if st != nil {
			st.abandon()
		}
	}()
	if err := encode(p); err != nil {
		return Submission{}, err
	}
	p.st = nil
	if e := st.openGroup(fn); e != nil {
		return Submission{}, e
	}
	if st.count == 0 {
		return Submission{}, nil
	}
	st.endEncoding()
	times, work := rt.newTimes(), st.endWork()
	seq, err := rt.queue.commit(fn, flight{cb: st.cb, st: st, times: times, trace: work})
	if err != nil {
		work.dropped()
		return Submission{}, err
	}
	st = nil // the queue gives it back
	rt.stats.passes.Add(1)
	return Submission{rt, seq, times}, nil
}

// Record encodes a pass into a program that can be submitted any number of times. When encode returns an error or panics,
// nothing is kept.
func (rt *Runtime) Record(encode func(p *Pass) error) (*Program, error) {
	var prog *Program
	err := rt.record("Runtime.Record", encode, func(st *passState) (err error) {
		prog, err = newProgram(rt, st)
		return err
	})
	return prog, err
}

// Check is Record without a program: it gives the error with which encode refuses its arguments, or nil, and runs and keeps nothing.
// So a call, or all calls of a step, can be asked for whether it would be taken. What depends on the moment is left out: memory that the
// host has mapped, and work that failed or is pending.
func (rt *Runtime) Check(encode func(p *Pass) error) error {
	return rt.record("Runtime.Check", encode, func(*passState) error { return nil })
}

// record encodes a pass without a command buffer, and gives what it gathered to keep.
func (rt *Runtime) record(fn string, encode func(p *Pass) error, keep func(st *passState) error) error {
	if encode == nil {
		return &Error{Func: fn, Arg: "encode", Have: "nil", Need: "a function", Err: ErrMisuse}
	}
	if err := rt.enter(fn); err != nil {
		return err
	}
	defer rt.leave()
	defer objc.NewPool().Drain()
	st := rt.newPassState(true)
	p := &Pass{rt: rt, st: st}
	defer func() {
		p.st = nil
		st.abandon()
	}()
	if err := encode(p); err != nil {
		return err
	}
	if e := st.openGroup(fn); e != nil {
		return e
	}
	return keep(st)
}
