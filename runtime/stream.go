package runtime

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// MaxStreams is how many streams of a runtime may be open at a time: each can hold a command buffer.
const MaxStreams = 64

// A Stream takes work dispatch by dispatch and commits it in chunks, without waiting: small ones while the device is idle, so
// that it starts at once, larger ones of up to 256 dispatches while it is busy. Its work takes effect in the order in which it
// was encoded. [Compute] gives what a stream will have computed as a [Future].
//
// Work that has been encoded and not committed is pending. Whoever else uses its memory, another stream, a pass, a replay or
// the host, first has it committed, so that the order of calls is the order of effects. [Stream.Commit] and a wait
// commit it too.
//
// A failure ends the stream: it fails all that comes after it in the stream, and whatever uses memory that failed work
// wrote, and nothing else. [Stream.Err] tells; to go on, open another stream and write the memory anew.
//
// The calls of one stream follow each other: a call while another one is under way, from another goroutine or from its own
// closure, is refused with [ErrBusy]. Futures may be waited for and read from any goroutine.
type Stream struct {
	rt   *Runtime
	lane lane

	using  atomic.Bool // a call is under way
	wanted atomic.Bool // somebody waits for pending work to be committed

	// mu is held by the call under way, and by whoever commits pending work from outside.
	mu      sync.Mutex
	closed  bool
	chunk   *passState // pending work, nil if there is none
	held    heldObjects
	futures []*future // of the chunk
	policy  chunkPolicy
	made    uint64 // buffers that the runtime had made for memory when the chunk began
	last    uint64 // the last submission
	times   *gpuTimes
	fail    bool // the next commit

	memory streamMemory
	stats  streamCounters
}

// heldObjects are those of the chunk, which outlives the pool of the call that made them.
type heldObjects struct {
	cb      mtl.CommandBuffer
	encoder objc.ID
}

// streamCounters count what a stream does.
type streamCounters struct {
	calls, dispatches, commits, replays, reused atomic.Uint64
}

// StreamStats are what a stream has done.
type StreamStats struct {
	// Calls of Encode and Compute that encoded something, and the Dispatches, copies and fills in them.
	Calls, Dispatches uint64
	// Commits of command buffers with them, and Replays of programs.
	Commits, Replays uint64
	// Reused is how many results got memory that pending or unfinished work of the stream had used.
	Reused uint64
	// Pending is how many dispatches are encoded and not committed.
	Pending int
}

// NewStream opens a stream.
func (rt *Runtime) NewStream() (*Stream, error) {
	const fn = "Runtime.NewStream"
	if err := rt.enter(fn); err != nil {
		return nil, err
	}
	defer rt.leave()
	s := &Stream{rt: rt}
	s.memory.s = s
	if n := rt.streams.add(s); n > MaxStreams {
		return nil, &Error{Func: fn, Have: fmt.Sprintf("%d open streams", n-1), Need: fmt.Sprintf("at most %d", MaxStreams), Err: ErrLimit}
	}
	return s, nil
}

// begin begins a call: nobody else uses the stream until end.
func (s *Stream) begin(fn string) (pool objc.Pool, err error) {
	if s == nil || s.rt == nil {
		return pool, &Error{Func: fn, Have: "no stream", Need: "a stream from NewStream", Err: ErrMisuse}
	}
	if !s.using.CompareAndSwap(false, true) {
		return pool, &Error{Func: fn, Have: "a stream in use by another call", Need: "one call at a time", Err: ErrBusy}
	}
	if err := s.rt.enter(fn); err != nil {
		s.using.Store(false)
		return pool, err
	}
	s.mu.Lock()
	if s.closed {
		err = &Error{Func: fn, Have: "a stream that was closed", Need: "an open stream", Err: ErrClosed}
	} else if e := s.lane.failed.get(); e != nil {
		err = &Error{Func: fn, Have: "a stream that has failed", Need: "another stream", Err: e}
	}
	if err != nil {
		s.unlock()
		return pool, err
	}
	return objc.NewPool(), nil
}

// end ends a call.
func (s *Stream) end(pool objc.Pool) {
	if s.wanted.Swap(false) {
		s.commit("Stream")
	}
	s.hold()
	pool.Drain()
	s.unlock()
	// Somebody who came too late for the look above, and too early for the lock, is served here.
	if s.wanted.Load() {
		s.commitPending("Stream")
	}
}

func (s *Stream) unlock() {
	s.mu.Unlock()
	s.rt.leave()
	s.using.Store(false)
}

// commitPending commits pending work for somebody else, unless a call is under way.
func (s *Stream) commitPending(fn string) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	s.wanted.Store(false)
	if s.chunk != nil {
		defer objc.NewPool().Drain()
		s.commit(fn)
	}
	return true
}

// Encode encodes work into the stream. When encode returns an error or panics, the stream is as it was before.
func (s *Stream) Encode(encode func(p *Pass) error) error {
	return s.encode("Stream.Encode", encode, nil)
}

// Replay adds a replay of a program to the stream, as a command buffer of its own.
func (s *Stream) Replay(prog *Program) error {
	const fn = "Stream.Replay"
	pool, err := s.begin(fn)
	if err != nil {
		return err
	}
	defer s.end(pool)
	if prog != nil && prog.rt != nil && prog.rt != s.rt {
		return &Error{Func: fn, Arg: "prog", Have: "a program of another runtime", Need: "one of the stream's runtime", Err: ErrForeign}
	}
	if err := prog.enter(fn); err != nil {
		return err
	}
	defer s.rt.leave()
	if err := s.commit(fn); err != nil {
		prog.unref()
		return err
	}
	ed := prog.take()
	sub, err := prog.replay(fn, ed, 0, len(ed.cmds), &s.lane)
	if err != nil || sub.rt == nil {
		return err
	}
	s.last, s.times = sub.seq, sub.times
	s.stats.replays.Add(1)
	return nil
}

// Commit commits pending work without waiting, unless 10 command buffers are in flight: then it waits for one to complete. The
// submission is that of the stream's last work, pending until now or not.
func (s *Stream) Commit() (Submission, error) {
	const fn = "Stream.Commit"
	pool, err := s.begin(fn)
	if err != nil {
		return Submission{}, err
	}
	defer s.end(pool)
	if err := s.commit(fn); err != nil {
		return Submission{}, err
	}
	return s.submission(), nil
}

func (s *Stream) submission() Submission {
	if s.last == 0 {
		return Submission{}
	}
	return Submission{s.rt, s.last, s.times}
}

// Wait commits pending work and waits for all work of the stream. It returns the stream's first failure, and ends early with
// an error over [ErrTimeout] and the context's error when ctx is done; the work goes on then. A nil ctx is like
// context.Background.
func (s *Stream) Wait(ctx context.Context) error {
	const fn = "Stream.Wait"
	pool, err := s.begin(fn)
	if err != nil {
		return err
	}
	err = s.commit(fn)
	last := s.last
	s.policy = s.policy.drained()
	s.end(pool)
	if err != nil || last == 0 {
		return err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if err := s.rt.queue.completion(ctx, fn, last); err != nil {
		return err
	}
	if e := s.lane.failed.get(); e != nil {
		return &Error{Func: fn, Err: e}
	}
	return nil
}

// Err is the first failure of the stream that has been seen, nil if there is none. A failure of the runtime is one of all its
// streams.
func (s *Stream) Err() error {
	if s == nil || s.rt == nil {
		return &Error{Func: "Stream.Err", Have: "no stream", Need: "a stream from NewStream", Err: ErrMisuse}
	}
	if !s.rt.closed.Load() {
		s.rt.queue.reap()
	}
	if e := s.lane.failed.get(); e != nil {
		return e
	}
	if e := s.rt.failed.Load(); e != nil {
		return e
	}
	return nil
}

// Close commits pending work and ends the stream. It does not wait: the work goes on, and its futures stay valid. A stream
// that has failed can be closed as well.
func (s *Stream) Close() error {
	const fn = "Stream.Close"
	if s == nil || s.rt == nil {
		return &Error{Func: fn, Have: "no stream", Need: "a stream from NewStream", Err: ErrMisuse}
	}
	if !s.using.CompareAndSwap(false, true) {
		return &Error{Func: fn, Have: "a stream in use by another call", Need: "one call at a time", Err: ErrBusy}
	}
	defer s.using.Store(false)
	return s.close(fn)
}

// close is also how the runtime closes its streams.
func (s *Stream) close(fn string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &Error{Func: fn, Have: "a stream that was closed", Need: "an open stream", Err: ErrClosed}
	}
	s.closed = true
	if s.chunk != nil {
		defer objc.NewPool().Drain()
		err = s.commit(fn)
	}
	s.memory.close()
	s.rt.streams.remove(s)
	return err
}

// Stats are the counts at this moment, none of a nil stream.
func (s *Stream) Stats() StreamStats {
	if s == nil {
		return StreamStats{}
	}
	c := &s.stats
	st := StreamStats{Calls: c.calls.Load(), Dispatches: c.dispatches.Load(), Commits: c.commits.Load(), Replays: c.replays.Load(), Reused: c.reused.Load()}
	if s.mu.TryLock() { // or a call is under way, whose work is not pending yet
		if s.chunk != nil {
			st.Pending = s.chunk.count
		}
		s.mu.Unlock()
	}
	return st
}

// FailNextCommit lets the next command buffer that the stream commits fail when it has run: for tests of what a program does
// then.
func (s *Stream) FailNextCommit() error {
	pool, err := s.begin("Stream.FailNextCommit")
	if err != nil {
		return err
	}
	s.fail = true
	s.end(pool)
	return nil
}

// commit commits the chunk. The stream is locked, and a pool is open.
func (s *Stream) commit(fn string) error { return s.commitAs(fn, nil) }

// commitAs commits the chunk, which counts as failed if there is a cause.
func (s *Stream) commitAs(fn string, cause *Error) error {
	st := s.chunk
	if st == nil {
		return nil
	}
	s.chunk = nil
	st.endEncoding()
	held := s.held
	s.held = heldObjects{}
	defer held.release()
	if st.count == 0 { // its first command could not be encoded
		st.endWork().dropped()
		st.abandon()
		return nil
	}
	if s.fail && cause == nil {
		s.fail, cause = false, &Error{Func: "Stream.FailNextCommit", Err: &DeviceError{Op: "command buffer", Text: "injected failure"}}
	}
	s.policy = s.policy.committed()
	times, work := s.rt.newTimes(), st.endWork()
	seq, err := s.rt.queue.commit(fn, flight{cb: st.cb, st: st, lane: &s.lane, times: times, trace: work, cause: cause})
	if err != nil {
		work.dropped()
		st.abandon()
		e := &Error{Func: fn, Have: "work that could not be committed", Err: err}
		s.lane.failed.set(e)
		for _, f := range s.futures {
			f.failed.set(e)
		}
	} else {
		s.last, s.times = seq, times
		s.stats.commits.Add(1)
		s.rt.stats.passes.Add(1)
		for _, f := range s.futures {
			f.seq.Store(seq)
		}
	}
	clear(s.futures)
	s.futures = s.futures[:0]
	s.memory.committed(seq)
	return err
}

// hold keeps the objects of the chunk beyond the pool of the call.
func (s *Stream) hold() {
	st := s.chunk
	if st == nil || st.cb.IsNil() {
		return
	}
	if s.held.cb.IsNil() {
		st.cb.Retain()
		s.held.cb = st.cb
	}
	if now := st.enc.id(); now != s.held.encoder {
		s.held.encoder.Release()
		s.held.encoder = now.Retain()
	}
}

func (h *heldObjects) release() {
	h.encoder.Release()
	h.cb.Release()
}

// waitPending is how long somebody who waits for pending work to be committed sleeps before he looks again.
const waitPending = 200 * time.Microsecond
