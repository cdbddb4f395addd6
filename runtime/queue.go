package runtime

import (
	"context"
	"math"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingot-metal/ingot/mtl"
)

const (
	// flights is the length of the ring of submissions: more than may be in flight, so that a place is free when its turn
	// comes. Its command buffers are kept until their place is taken, to be asked for their times.
	flights = 64
	// waitSlice is how long a waiter sleeps before it looks at the status again: a command buffer that failed may never
	// signal its event.
	waitSlice = 10 * time.Millisecond
)

// flight is a submission that was committed.
type flight struct {
	cb    mtl.CommandBuffer // retained
	st    *passState        // what a direct pass uses, nil for a replay
	ed    *edition          // what a replay uses, nil for a direct pass
	times *gpuTimes         // to be filled in, or nil
	trace *tracedWork       // what a trace notes of it, or nil
	uses  []use             // the memory of either, as it was when it was committed
	lane  *lane             // of a stream, nil for the runtime's own work
	// producers are the submissions that last wrote to what this one uses and are in flight or have failed.
	producers []uint64
	cause     *Error // it is to count as failed, for this reason
}

// queue is the command queue and what is in flight on it. Submissions are numbered from 1 in the order of their commits,
// and complete in that order.
type queue struct {
	rt       *Runtime
	mtl      mtl.CommandQueue
	desc     mtl.CommandBufferDescriptor
	event    mtl.SharedEvent // signalled with the number of each submission
	timeouts bool            // the event can be waited for with a timeout

	done    atomic.Uint64 // all submissions up to this one have completed
	failing atomic.Int64  // how many of them have failed

	// life is held for reading by who waits for the event, so that close does not release it under them.
	life sync.RWMutex
	shut bool

	mu        sync.Mutex
	seq       uint64 // the last one committed
	ring      [flights]flight
	failures  map[uint64]*Error
	failed    *Error    // the first failure: what comes after it fails too
	progress  time.Time // when something was last committed or completed
	tidy      *time.Timer
	armed     bool     // the timer runs
	abandoned []flight // given up and never seen to complete: what they use is never released
}

func (q *queue) start(rt *Runtime) error {
	q.rt = rt
	q.failures = map[uint64]*Error{}
	q.progress = time.Now()
	q.tidy = time.AfterFunc(math.MaxInt64, q.housekeep)
	q.tidy.Stop()
	refuse := func(op, text string) error { return &Error{Func: "Open", Err: &DeviceError{Op: op, Text: text}} }
	q.mtl = rt.dev.NewCommandQueueWithMaxCommandBufferCount(uint(rt.cfg.maxInFlight + maxOpenPasses + MaxStreams + 1))
	if q.mtl.IsNil() {
		return refuse("newCommandQueueWithMaxCommandBufferCount:", "the device made no queue")
	}
	q.mtl.SetLabel("ingot")
	desc, err := mtl.NewCommandBufferDescriptor(rt.dev)
	if err != nil {
		return refuse("MTLCommandBufferDescriptor", err.Error())
	}
	q.desc = desc
	// The command buffer holds what it uses, in addition to the runtime, and says which encoder failed.
	desc.SetRetainedReferences(true)
	desc.SetErrorOptions(mtl.CommandBufferErrorOptionEncoderExecutionStatus)
	q.event = rt.dev.NewSharedEvent()
	if q.event.IsNil() {
		return refuse("newSharedEvent", "the device made no event")
	}
	q.timeouts = q.event.RespondsTo("waitUntilSignaledValue:timeoutMS:")
	return nil
}

// newCommandBuffer makes a command buffer. It is borrowed from the pool that the caller has open.
func (q *queue) newCommandBuffer(fn string) (mtl.CommandBuffer, error) {
	cb := q.mtl.CommandBufferWithDescriptor(q.desc)
	if cb.IsNil() {
		return cb, &Error{Func: fn, Err: &DeviceError{Op: "commandBufferWithDescriptor:", Text: "the queue made no command buffer"}}
	}
	return cb, nil
}

// commit commits a command buffer whose encoding has ended, and takes what it uses: f.st or f.ed. It refuses work that uses
// memory which failed work wrote; only the chunk of a stream, whose calls have been accepted, is committed and then fails.
func (q *queue) commit(fn string, f flight) (uint64, error) {
	span := q.rt.traceHost()
	var scalars []scalarUse
	if f.st != nil {
		f.uses, scalars = f.st.uses, f.st.scalars
	} else {
		f.uses, scalars = f.ed.uses, f.ed.prog.scalars
		announce(f.uses, scalars, 1)
		defer announce(f.uses, scalars, -1)
	}
	if e := exclude(fn, f.uses, scalars); e != nil {
		return 0, e
	}
	if f.ed != nil {
		if err := q.rt.admitReplay(fn, f.uses, f.lane); err != nil {
			return 0, err
		}
	}
	limit := q.rt.cfg.maxInFlight
	if f.lane != nil {
		limit = min(limit, maxStreamInFlight)
	}
	if err := q.lockForCommit(fn, limit); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	seq := q.seq + 1
	slot := &q.ring[seq%flights]
	producers := q.producers(slot.producers[:0], f.uses)
	if e := q.knownFailure(producers); e != nil && (f.lane == nil || f.ed != nil) {
		return 0, &Error{Func: fn, Have: "memory that failed work wrote", Need: "memory written anew", Err: e}
	}
	// Before the open uses are taken back, so that a host copy sees either those or the submission.
	if f.st != nil {
		f.st.committed(seq)
	} else {
		f.ed.committed(seq)
	}
	q.rt.resident.flush()
	f.cb.Retain()
	f.cb.EncodeSignalEvent(q.event.Event, seq)
	f.trace.committing()
	f.cb.Commit()
	if q.done.Load() == q.seq {
		q.progress = time.Now() // the device was idle
	}
	q.seq = seq
	f.producers = producers
	slot.cb.Release() // of a submission that has completed
	*slot = f
	q.rt.stats.submissions.Add(1)
	if !q.armed {
		q.armed = true
		q.tidy.Reset(tidyEvery)
	}
	span.end(laneCommit, fn, seq, 0)
	return seq, nil
}

// lockForCommit locks the queue when there is room for one more submission among at most limit.
func (q *queue) lockForCommit(fn string, limit int) error {
	q.mu.Lock()
	for {
		q.reapLocked()
		if e := q.rt.unusable(); e != nil {
			q.mu.Unlock()
			return &Error{Func: fn, Err: e}
		}
		if q.seq-q.done.Load() < uint64(limit) {
			return nil
		}
		oldest := q.done.Load() + 1
		q.mu.Unlock()
		w := q.rt.beginWait()
		q.pause(oldest, waitSlice)
		w.end(fn, oldest)
		q.mu.Lock()
	}
}

// inFlight is how many submissions have not completed.
func (q *queue) inFlight() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reapLocked()
	return int(q.seq - q.done.Load())
}

// reap takes note of what has completed.
func (q *queue) reap() {
	q.mu.Lock()
	q.reapLocked()
	q.mu.Unlock()
}

func (q *queue) reapLocked() {
	for done := q.done.Load(); done < q.seq; done++ {
		f := &q.ring[(done+1)%flights]
		switch f.cb.Status() {
		case mtl.CommandBufferStatusCompleted:
			q.finish(done+1, f, nil)
		case mtl.CommandBufferStatusError:
			q.finish(done+1, f, commandBufferError(f.cb, done+1))
		default:
			return
		}
	}
}

// finish ends a submission: its result is there, and what it used is given back. own is the error of its command buffer.
func (q *queue) finish(seq uint64, f *flight, own *Error) {
	q.conclude(seq, f, own)
	if f.times != nil {
		f.times.read(f.cb)
	}
	if f.trace != nil {
		f.trace.completed(seq, f.times, q.failures[seq])
	}
	f.times, f.trace = nil, nil
	q.giveBack(f)
	q.progress = time.Now()
	q.done.Store(seq)
}

func (q *queue) giveBack(f *flight) {
	f.uses = nil
	if f.st != nil {
		f.st.completed()
		f.st = nil
	}
	if f.ed != nil {
		f.ed.prog.unref()
		f.ed = nil
	}
	f.lane = nil
}

// pause waits until submission seq has signalled, at most d, and gives the device up if it makes no progress.
func (q *queue) pause(seq uint64, d time.Duration) {
	q.life.RLock()
	defer q.life.RUnlock()
	if q.shut {
		return
	}
	signalled := false
	if q.timeouts {
		signalled = q.event.WaitUntilSignaledValue(seq, max(1, uint64(d/time.Millisecond)))
	} else {
		for end := time.Now().Add(d); !signalled && time.Now().Before(end); {
			if signalled = q.event.SignaledValue() >= seq; !signalled {
				time.Sleep(50 * time.Microsecond)
			}
		}
	}
	if signalled {
		// The status follows the signal at once, but not at the same time.
		for range 20 {
			if q.passed(seq) {
				return
			}
			goruntime.Gosched()
		}
		time.Sleep(20 * time.Microsecond)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reapLocked()
	if q.done.Load() < seq {
		q.giveUpStalled()
	}
}

// passed says whether a submission has completed, well or not.
func (q *queue) passed(seq uint64) bool {
	if seq <= q.done.Load() {
		return true
	}
	q.reap()
	return seq <= q.done.Load()
}

// result is the error of a completed submission.
func (q *queue) result(seq uint64) *Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[seq]
}

// wait waits for a submission, until ctx is done or the device is given up, and returns its error.
func (q *queue) wait(ctx context.Context, fn string, seq uint64) error {
	if err := q.completion(ctx, fn, seq); err != nil {
		return err
	}
	if e := q.result(seq); e != nil {
		return &Error{Func: fn, Err: e}
	}
	return nil
}

// completion waits for a submission to complete, well or not. The waiting goroutine itself takes note of it.
func (q *queue) completion(ctx context.Context, fn string, seq uint64) error {
	if q.passed(seq) {
		return nil
	}
	w := q.rt.beginWait()
	err := q.sleep(ctx, fn, seq)
	w.end(fn, seq)
	return err
}

func (q *queue) sleep(ctx context.Context, fn string, seq uint64) error {
	for !q.passed(seq) {
		slice := waitSlice
		if err := ctx.Err(); err != nil {
			return &Error{Func: fn, Have: "work that has not completed", Err: because(ErrTimeout, err)}
		}
		if end, ok := ctx.Deadline(); ok {
			slice = min(slice, max(time.Until(end), 0))
		}
		q.pause(seq, slice)
	}
	return nil
}

// conflict is the last submission that a host access to the allocation has to wait for, given the last one that conflicts
// with an access to any byte: 0 if there is none.
func (q *queue) conflict(a *allocation, r hostRange, last uint64) uint64 {
	if last <= q.done.Load() {
		return last // whose error the access returns
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.failures) > 0 {
		return last // it may be that of memory that failed work wrote
	}
	for seq := q.seq; seq > q.done.Load(); seq-- {
		for i := range q.ring[seq%flights].uses {
			if u := &q.ring[seq%flights].uses[i]; u.a == a && u.counted && u.meets(r.lo, r.hi, r.write) {
				return seq
			}
		}
	}
	return 0
}

// drain waits for everything in flight, and returns the failure that has made the runtime unusable.
func (q *queue) drain(ctx context.Context, fn string) error {
	q.mu.Lock()
	last := q.seq
	q.mu.Unlock()
	if err := q.completion(ctx, fn, last); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failed != nil {
		return &Error{Func: fn, Err: q.failed}
	}
	return nil
}

// close releases the queue's objects. Nothing is in flight any more but what was given up, and that keeps what it uses.
func (q *queue) close() {
	q.life.Lock()
	defer q.life.Unlock()
	q.shut = true
	if q.tidy != nil {
		q.tidy.Stop()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := q.abandoned[:0]
	for _, f := range q.abandoned {
		if s := f.cb.Status(); s == mtl.CommandBufferStatusCompleted || s == mtl.CommandBufferStatusError {
			q.giveBack(&f)
			f.trace.dropped()
			f.cb.Release()
		} else {
			kept = append(kept, f)
		}
	}
	q.abandoned = kept
	for i := range q.ring {
		// A device holds a command buffer for a moment after its status says that it has completed.
		q.ring[i].cb.WaitUntilCompleted()
		q.ring[i].cb.Release()
		q.ring[i] = flight{}
	}
	q.event.Release()
	q.desc.Release()
	q.mtl.Release()
}
