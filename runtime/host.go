package runtime

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Host copies and the device take turns on an allocation. A copy waits for the submitted work that it conflicts with and
// keeps later submissions from being committed until it is over; a pass that is being encoded makes it fail.
//
// Both sides first say what they are about to do and then look at what the other has said: a copy counts itself in
// reading or writing and then looks for uses, a commit has counted its uses as open or pending and then looks for
// copies. So at least one of them sees the other. The commit waits, which takes as long as copying memory; the copy steps
// back.
type hostState struct {
	// mu keeps copies apart: it is held for the copy and the wait before it.
	mu               sync.RWMutex
	reading, writing atomic.Int32
	pending          atomic.Int32 // replays about to be committed that use it
	pendingW         atomic.Int32 // of which write it
}

// begin waits until the host may read, or write, the allocation. Without an error, end must follow.
func (a *allocation) begin(fn string, write bool) error {
	h := &a.host
	open, last, pending, copying := &a.openW, &a.lastW, &h.pendingW, &h.reading
	if write {
		open, last, pending, copying = &a.open, &a.lastUse, &h.pending, &h.writing
		h.mu.Lock()
	} else {
		h.mu.RLock()
	}
	for try := 0; ; try++ {
		seq := last.Load()
		if err := a.rt.await(fn, seq); err != nil {
			h.unlock(write)
			return err
		}
		copying.Add(1)
		switch {
		case open.Load() > 0:
			copying.Add(-1)
			h.unlock(write)
			return &Error{Func: fn, Have: "a pass that uses the memory and is still being encoded", Need: "no such pass", Err: ErrBusy}
		case pending.Load() == 0 && last.Load() == seq:
			return nil
		}
		copying.Add(-1)
		if try < 10 {
			goruntime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond) // the replay waits for room in the queue
		}
	}
}

// end ends what begin began.
func (a *allocation) end(write bool) {
	if write {
		a.host.writing.Add(-1)
	} else {
		a.host.reading.Add(-1)
	}
	a.host.unlock(write)
}

func (h *hostState) unlock(write bool) {
	if write {
		h.mu.Unlock()
	} else {
		h.mu.RUnlock()
	}
}

// exclude waits for the copies that conflict with what is about to be committed. New ones step back, since the uses are
// counted as open or pending.
func exclude(uses []use, scalars []scalarUse) {
	for _, u := range uses {
		if !u.counted {
			continue
		}
		h := &u.a.host
		for h.writing.Load() > 0 || u.write && h.reading.Load() > 0 {
			goruntime.Gosched()
		}
	}
	for _, s := range scalars {
		for s.state().setting.Load() > 0 {
			goruntime.Gosched()
		}
	}
}

// announce counts the uses of a replay that is about to be committed, by n = 1, and takes that back, by n = -1.
func announce(uses []use, scalars []scalarUse, n int32) {
	for _, u := range uses {
		if u.counted {
			u.a.host.pending.Add(n)
		}
		if u.write {
			u.a.host.pendingW.Add(n)
		}
	}
	for _, s := range scalars {
		s.state().open.Add(n)
	}
}
