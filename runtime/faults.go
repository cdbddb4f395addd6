package runtime

import (
	"fmt"
	"slices"
	"time"

	"github.com/ingot-metal/ingot/mtl"
)

// What fails when work fails.
//
// A failure of the runtime's own work (Run, Submit, Replay) makes the runtime unusable, since its work is one sequence. A
// failure in a stream ends that stream. In both cases it goes with the memory: what reads from, or writes a part of, an
// allocation that failed work wrote fails too, whoever submitted it. An allocation whose whole length the host has written
// anew is fit for use again. The loss of the device ends everything.

// tidyEvery is how often the queue looks after work that nobody waits for.
const tidyEvery = 25 * time.Millisecond

// lane is an order of submissions of its own, in which a failure ends what follows.
type lane struct {
	failed errorCell
}

// producers lists the submissions that last wrote to what is used and are in flight or have failed. The queue is locked.
func (q *queue) producers(list []uint64, uses []use) []uint64 {
	done := q.done.Load()
	for i := range uses {
		u := &uses[i]
		if u.a == nil {
			continue
		}
		w := u.a.lastW.Load()
		if w == 0 || w <= done && (len(q.failures) == 0 || q.failures[w] == nil) || slices.Contains(list, w) {
			continue
		}
		list = append(list, w)
	}
	return list
}

// tainted is why memory cannot be used: work that wrote to it has failed.
func (q *queue) tainted(a *allocation) *Error {
	if q.failing.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.failures[a.lastW.Load()]; e != nil {
		return &Error{Have: "memory that failed work wrote", Need: "memory written anew", Err: e}
	}
	return nil
}

// knownFailure is the failure of one of the producers, if one has failed already. The queue is locked.
func (q *queue) knownFailure(producers []uint64) *Error {
	if len(q.failures) == 0 {
		return nil
	}
	for _, w := range producers {
		if e := q.failures[w]; e != nil {
			return e
		}
	}
	return nil
}

// conclude decides how a submission has ended, and whom its failure concerns. What failed first in its order counts; then
// the error of its own command buffer; then that of a submission whose results it used. The queue is locked.
func (q *queue) conclude(seq uint64, f *flight, own *Error) {
	err, whole := own, f.lane == nil
	if own == nil {
		err = f.cause
	}
	follows := func(e *Error, what string) *Error {
		return &Error{Func: "Submission", Have: fmt.Sprintf("submission %d, which %s", seq, what), Err: e}
	}
	switch {
	case q.failed != nil && err == nil:
		err = follows(q.failed, "follows one that failed")
	case f.lane != nil && f.lane.failed.get() != nil:
		err = follows(f.lane.failed.get(), "follows one of its stream that failed")
	case err == nil:
		if e := q.knownFailure(f.producers); e != nil {
			err, whole = follows(e, "uses what failed work wrote"), false
		}
	}
	if err == nil {
		return
	}
	q.failures[seq] = err
	q.failing.Add(1)
	if f.lane != nil {
		f.lane.failed.set(err)
	}
	if (whole || lost(err)) && q.failed == nil {
		q.failed = err
		q.rt.fail(err)
	}
}

// lost says whether the error means that the device will do no more work for this process.
func lost(err *Error) bool {
	for e := err; e != nil; {
		switch cause := e.Err.(type) {
		case *Error:
			e = cause
			continue
		case *DeviceError:
			return cause.Is(ErrDeviceLost)
		}
		break
	}
	return false
}

// commandBufferDomain is the domain of the errors of command buffers.
const commandBufferDomain = "MTLCommandBufferErrorDomain"

// means says whether the error of a command buffer is of the kind of the sentinel.
func (e *DeviceError) means(target error) bool {
	if e.Domain != commandBufferDomain {
		return false
	}
	switch mtl.CommandBufferError(e.Code) {
	case mtl.CommandBufferErrorTimeout:
		return target == ErrTimeout
	case mtl.CommandBufferErrorOutOfMemory:
		return target == ErrOutOfMemory
	case mtl.CommandBufferErrorAccessRevoked, mtl.CommandBufferErrorDeviceRemoved:
		return target == ErrDeviceLost
	}
	return false
}

// giveUpStalled gives the device up if it has made no progress for too long. The queue is locked.
func (q *queue) giveUpStalled() {
	if stalled := time.Since(q.progress); stalled > q.rt.cfg.timeout {
		q.giveUp(stalled)
	}
}

// giveUp fails everything in flight. What it uses stays allocated for ever, since the device may still write to it.
func (q *queue) giveUp(stalled time.Duration) {
	e := &Error{Func: "Runtime", Have: fmt.Sprintf("a device that made no progress for %v", stalled.Round(time.Millisecond)),
		Need: fmt.Sprintf("progress within %v", q.rt.cfg.timeout),
		Err:  because(ErrTimeout, &DeviceError{Op: "command buffer", Text: "did not complete"})}
	q.rt.fail(e)
	if q.failed == nil {
		q.failed = e
	}
	for seq := q.done.Load() + 1; seq <= q.seq; seq++ {
		f := &q.ring[seq%flights]
		q.failures[seq] = e
		q.abandoned = append(q.abandoned, *f)
		if f.lane != nil {
			f.lane.failed.set(e)
		}
		*f = flight{}
	}
	q.done.Store(q.seq)
}

// housekeep runs from time to time while work is in flight, on a goroutine of its own that ends at once: it gives back what
// completed work used though nobody waits for it, and gives up a device that nobody waits for.
func (q *queue) housekeep() {
	q.life.RLock()
	defer q.life.RUnlock()
	if q.shut {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reapLocked(); q.done.Load() < q.seq {
		q.giveUpStalled()
	}
	if q.armed = q.done.Load() < q.seq; q.armed {
		q.tidy.Reset(tidyEvery)
	}
}
