package runtime

import (
	"context"
	"sync/atomic"
	"time"
)

// FutureState is how far a [Future] has come.
type FutureState uint8

const (
	// FuturePending: encoded, but not committed. Only the stream itself has the work in its order.
	FuturePending FutureState = iota
	// FutureExposed: committed. Other streams, passes and programs can use the result, and are ordered after the work.
	FutureExposed
	// FuturePublished: complete. The host can read it without waiting.
	FuturePublished
	// FutureFailed: there is no result. [Future.Err] says why.
	FutureFailed
)

// String names the state.
func (s FutureState) String() string {
	if int(s) < len(futureStates) {
		return futureStates[s]
	}
	return "unknown"
}

var futureStates = [...]string{"pending", "exposed", "published", "failed"}

// future is what is known of the work of a [Future], whatever its type.
type future struct {
	s       *Stream
	seq     atomic.Uint64 // of the submission, 0 while the work is pending
	a       *allocation
	empty   bool      // there is no work
	encoded bool      // the call has succeeded
	failed  errorCell // why it could not be committed
}

// A Future is memory that a stream will have computed. Results are published in the order in which their work was
// committed. Its methods may be called from several goroutines.
type Future[T Element] struct {
	f     future
	slice Slice[T]
}

// Compute allocates n elements and encodes the work that computes them into the stream. The closure must have all of out
// written: its memory may hold anything before. When the closure returns an error or panics, nothing has happened. The future
// owns the memory; release it when the result is used no more.
func Compute[T Element](s *Stream, n int, encode func(p *Pass, out Slice[T]) error) (*Future[T], error) {
	const fn = "Compute"
	if s == nil || s.rt == nil {
		return nil, &Error{Func: fn, Have: "no stream", Need: "a stream from NewStream", Err: ErrMisuse}
	}
	if encode == nil {
		return nil, &Error{Func: fn, Arg: "encode", Have: "nil", Need: "a function", Err: ErrMisuse}
	}
	size, err := lengthOf[T](fn, n)
	if err != nil {
		return nil, err
	}
	f := &Future[T]{f: future{s: s}}
	var a *allocation
	defer func() {
		if !f.f.encoded && a != nil && !a.released.Swap(true) {
			a.unref()
		}
	}()
	err = s.encode(fn, func(p *Pass) error {
		var err error
		if a, err = s.memory.allocate(fn, size); err != nil {
			return err
		}
		f.slice = Slice[T]{view: View{a: a, n: size}, owner: true}
		if err := encode(p, f.slice); err != nil {
			return err
		}
		f.f.a, f.f.empty = a, p.Count() == 0
		return nil
	}, &f.f)
	if err != nil {
		return nil, err
	}
	if f.f.encoded = true; f.f.empty && a.lastUse.Load() != 0 {
		// Nothing orders the host after what used the memory before.
		if err := s.rt.queue.completion(context.Background(), fn, a.lastUse.Load()); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Slice is the result's memory, for work that is encoded later, in any stream or pass: it is ordered after the work that
// computes it. The future owns it, so that Release of the slice is refused.
func (f *Future[T]) Slice() Slice[T] {
	if f == nil {
		return Slice[T]{}
	}
	return Slice[T]{view: f.slice.view}
}

// State is how far the result has come.
func (f *Future[T]) State() FutureState {
	if f == nil || f.f.s == nil {
		return FutureFailed
	}
	seq := f.f.seq.Load()
	switch {
	case f.f.failed.get() != nil:
		return FutureFailed
	case f.f.empty:
		return FuturePublished
	case seq == 0:
		return FuturePending
	case !f.f.s.rt.queue.passed(seq):
		return FutureExposed
	case f.f.s.rt.queue.result(seq) != nil:
		return FutureFailed
	}
	return FuturePublished
}

// Ready says whether waiting would return at once: the result is published, or has failed.
func (f *Future[T]) Ready() bool { return f.State() >= FuturePublished }

// Err is why there is no result, nil while that is not known and when there is one.
func (f *Future[T]) Err() error {
	const fn = "Future.Err"
	switch {
	case f == nil:
		return (*future)(nil).result(fn)
	case f.State() != FutureFailed:
		return nil
	}
	return f.f.result(fn)
}

func (f *future) result(fn string) error {
	if f == nil || f.s == nil {
		return &Error{Func: fn, Have: "no future", Need: "one from Compute", Err: ErrMisuse}
	}
	e := f.failed.get()
	if seq := f.seq.Load(); e == nil && seq != 0 {
		e = f.s.rt.queue.result(seq)
	}
	if e != nil {
		return &Error{Func: fn, Err: e}
	}
	return nil
}

// Wait commits the work if it is pending, waits until it has completed, and returns its error. It ends early with an error
// over [ErrTimeout] and the context's error when ctx is done; the work goes on then. A closure that encodes into the same
// stream must not wait for its pending results: that is refused with [ErrBusy], though only after the time of [WithTimeout].
func (f *Future[T]) Wait(ctx context.Context) error {
	if f == nil {
		return (*future)(nil).result("Future.Wait")
	}
	return f.f.wait(ctx, "Future.Wait")
}

// Read waits for the result as Wait does, and copies it to dst, which must be of the same length.
func (f *Future[T]) Read(ctx context.Context, dst []T) error {
	if f == nil {
		return (*future)(nil).result("Future.Read")
	}
	if err := f.f.wait(ctx, "Future.Read"); err != nil {
		return err
	}
	return f.slice.Read(dst)
}

// Release gives the memory back. Work that was encoded before keeps it until it has completed; new uses are refused with
// [ErrClosed]. Later results of the same stream may get the memory before, ordered after that work: at once if it is 16 MiB or
// more, else when pending work has been committed.
func (f *Future[T]) Release() error {
	const fn = "Future.Release"
	if f == nil || f.f.s == nil {
		return (*future)(nil).result(fn)
	}
	a := f.slice.view.a
	switch {
	case f.f.s.rt.closed.Load():
		return &Error{Func: fn, Have: "memory of a closed runtime", Need: "live memory", Err: ErrClosed}
	case a.released.Swap(true):
		return &Error{Func: fn, Have: "memory that was released", Need: "live memory", Err: ErrClosed}
	}
	f.f.s.memory.release(a)
	a.unref()
	return nil
}

// wait waits for the work, which it commits first.
func (f *future) wait(ctx context.Context, fn string) error {
	if f.s == nil {
		return (*future)(nil).result(fn)
	}
	if f.empty {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	rt := f.s.rt
	for start := time.Now(); f.seq.Load() == 0 && f.failed.get() == nil; {
		if err := ctx.Err(); err != nil {
			return &Error{Func: fn, Have: "work that has not been committed", Err: because(ErrTimeout, err)}
		}
		f.s.wanted.Store(true)
		if f.commitNow(fn) {
			continue
		}
		if f.seq.Load() == 0 && rt.closed.Load() {
			return &Error{Func: fn, Have: "a closed runtime", Err: ErrClosed}
		}
		if e := rt.failed.Load(); f.seq.Load() == 0 && e != nil { // then nothing is committed any more
			return &Error{Func: fn, Err: e}
		}
		if time.Since(start) > rt.cfg.timeout {
			return &Error{Func: fn, Have: "pending work of a stream that is encoding", Need: "the end of that call", Err: ErrBusy}
		}
		time.Sleep(waitPending)
	}
	seq := f.seq.Load()
	if seq == 0 {
		return f.result(fn)
	}
	return rt.queue.wait(ctx, fn, seq)
}

// commitNow commits the chunk unless a call of the stream is under way.
func (f *future) commitNow(fn string) bool {
	rt := f.s.rt
	if rt.enter(fn) != nil {
		return false
	}
	defer rt.leave()
	return f.s.commitPending(fn)
}
