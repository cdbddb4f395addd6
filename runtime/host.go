package runtime

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The host and the device take turns on an allocation. A copy waits for the submitted work that it conflicts with and
// keeps later submissions from being committed until it is over; a pass that is being encoded makes it fail. A mapping
// begins like a copy, and then lasts: work that conflicts with it is refused.
//
// Both sides first say what they are about to do and then look at what the other has said: a copy counts itself in
// reading or writing and then looks for uses, a commit has counted its uses as open or pending and then looks for
// copies. So at least one of them sees the other. The commit waits, which takes as long as copying memory; the copy steps
// back. A mapping is entered in the list while it counts as a copy, so that a commit which has waited finds it there.
type hostState struct {
	// mu keeps copies apart.
	mu               sync.RWMutex
	reading, writing atomic.Int32
	pending          atomic.Int32 // replays about to be committed that use it
	pendingW         atomic.Int32 // of which write it

	leases  atomic.Int32 // length of mapping
	mapping []lease      // guarded by leaseMu
	leaseMu sync.Mutex
}

// lease is a range of bytes that the host has mapped.
type lease struct {
	hostRange
	id uint64
}

// mapped says whether the host has mapped bytes of the range, in a way that conflicts with reading, or writing, them.
func (h *hostState) mapped(lo, hi int, write bool) bool {
	if h.leases.Load() == 0 || lo == hi {
		return false
	}
	h.leaseMu.Lock()
	defer h.leaseMu.Unlock()
	for _, l := range h.mapping {
		if l.lo < hi && lo < l.hi && (l.write || write) {
			return true
		}
	}
	return false
}

// mappedAgainst says whether the host has mapped bytes in a way that conflicts with a use.
func (h *hostState) mappedAgainst(u *use) bool {
	if h.leases.Load() == 0 {
		return false
	}
	h.leaseMu.Lock()
	defer h.leaseMu.Unlock()
	for _, l := range h.mapping {
		if u.meets(l.lo, l.hi, l.write) {
			return true
		}
	}
	return false
}

// lease enters a mapping, or takes it out.
func (h *hostState) lease(l lease) {
	h.leaseMu.Lock()
	defer h.leaseMu.Unlock()
	h.mapping = append(h.mapping, l)
	h.leases.Add(1)
}

func (h *hostState) unlease(id uint64) {
	h.leaseMu.Lock()
	defer h.leaseMu.Unlock()
	for i := range h.mapping {
		if h.mapping[i].id == id {
			last := len(h.mapping) - 1
			h.mapping[i] = h.mapping[last]
			h.mapping = h.mapping[:last]
			h.leases.Add(-1)
			return
		}
	}
}

// hostRange is a range of bytes that the host is to read or write.
type hostRange struct {
	lo, hi int
	write  bool
	// writes is set when the host gives bytes new values, which managed memory also sees as a write when it does not; renews
	// when it does so for the whole allocation: it does not matter any more then whether the work that wrote it has failed.
	writes, renews bool
}

// hostRange is what an access of the host to the view's bytes takes.
func (v View) hostRange(write bool) hostRange {
	switch r := (hostRange{v.off, v.off + v.n, write, write, write && v.off == 0 && v.n == v.a.size}); {
	case v.n == 0 || v.a.storage == Shared:
		return r
	case v.a.storage == Private: // blits move whole words
		r.lo, r.hi = words(r.lo, r.hi)
		return r
	}
	// A managed buffer is brought up to date as a whole, which writes to what the host sees of it.
	return hostRange{0, v.a.class, true, write, write && v.off == 0 && v.n == v.a.size}
}

// begin waits until the host may read, or write, a range of the allocation. Without an error, end must follow.
func (a *allocation) begin(fn string, r hostRange) error {
	h := &a.host
	open, last, pending, copying := &a.openW, &a.lastW, &h.pendingW, &h.reading
	if r.write {
		open, last, pending, copying = &a.open, &a.lastUse, &h.pending, &h.writing
	}
	for try := 0; ; try++ {
		written := a.lastW.Load()
		if err := a.waitForHost(fn, r, last.Load()); err != nil {
			return err
		}
		// The wait was without the lock, so that it keeps no other copies up.
		h.lock(r.write)
		copying.Add(1)
		var refused *Error
		switch {
		case h.mapped(r.lo, r.hi, r.write):
			refused = mappedError(fn, r)
		case open.Load() > 0:
			refused = &Error{Func: fn, Have: "a pass that uses the memory and is still being encoded", Need: "no such pass", Err: ErrBusy}
		case pending.Load() == 0 && a.lastW.Load() == written && a.rt.passed(a.rt.queue.conflict(a, r, last.Load())):
			if r.renews {
				a.lastW.Store(0)
			}
			return nil
		}
		copying.Add(-1)
		h.unlock(r.write)
		if refused != nil {
			return refused
		}
		pauseHost(try) // the replay waits for room in the queue
	}
}

// waitForHost waits for the work that an access has to wait for, given the last that conflicts with an access to any byte.
func (a *allocation) waitForHost(fn string, r hostRange, last uint64) error {
	if a.host.mapped(r.lo, r.hi, r.write) {
		return mappedError(fn, r)
	}
	if e := a.rt.admit(nil, a, r.write); e != nil {
		return &Error{Func: fn, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	if err := a.rt.await(fn, a.rt.queue.conflict(a, r, last), r.write); err != nil {
		return err
	}
	if r.write && !r.writes { // it has waited for all uses, and shows what was written
		return a.rt.await(fn, a.rt.queue.conflict(a, hostRange{lo: r.lo, hi: r.hi}, a.lastW.Load()), false)
	}
	return nil
}

func mappedError(fn string, r hostRange) *Error {
	return &Error{Func: fn, Arg: fmt.Sprintf("bytes %d to %d", r.lo, r.hi), Have: "memory that is mapped", Need: "the end of the mapping", Err: ErrBusy}
}

// end ends what begin began.
func (a *allocation) end(r hostRange) {
	if r.write {
		a.host.writing.Add(-1)
	} else {
		a.host.reading.Add(-1)
	}
	a.host.unlock(r.write)
}

func (h *hostState) lock(write bool) {
	if write {
		h.mu.Lock()
	} else {
		h.mu.RLock()
	}
}

func (h *hostState) unlock(write bool) {
	if write {
		h.mu.Unlock()
	} else {
		h.mu.RUnlock()
	}
}

// pauseHost lets others run: most copies are short, those of private memory are not.
func pauseHost(try int) {
	if try < 10 {
		goruntime.Gosched()
	} else {
		time.Sleep(50 * time.Microsecond)
	}
}

// exclude waits for the copies that conflict with what is about to be committed. New ones step back, since the uses are
// counted as open or pending. What conflicts with a mapping is refused.
func exclude(fn string, uses []use, scalars []scalarUse) *Error {
	for i := range uses {
		u := &uses[i]
		if !u.counted {
			continue
		}
		h := &u.a.host
		for try := 0; h.writing.Load() > 0 || u.write && h.reading.Load() > 0; try++ {
			pauseHost(try)
		}
		if h.mappedAgainst(u) {
			return &Error{Func: fn, Have: "work on memory that the host has mapped", Need: "the end of the mapping", Err: ErrBusy}
		}
	}
	for _, s := range scalars {
		for s.state().setting.Load() > 0 {
			goruntime.Gosched()
		}
	}
	return nil
}

// announce counts the uses of a replay that is about to be committed, by n = 1, and takes that back, by n = -1.
func announce(uses []use, scalars []scalarUse, n int32) {
	for i := range uses {
		u := &uses[i]
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
