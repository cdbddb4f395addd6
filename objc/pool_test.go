package objc

import (
	"runtime"
	"testing"
)

func TestPoolNesting(t *testing.T) {
	before := LiveObjects()
	class := NewGoClass("Pooled", nil)
	a, b := &mortal{}, &mortal{}
	outer := NewPool()
	class.New(a).Autorelease()
	inner := NewPool()
	class.New(b).Autorelease()
	if a.deaths.Load() != 0 || b.deaths.Load() != 0 {
		t.Error("died early")
	}
	inner.Drain()
	if a.deaths.Load() != 0 || b.deaths.Load() != 1 {
		t.Error("the inner pool drained wrong")
	}
	outer.Drain()
	if a.deaths.Load() != 1 {
		t.Error("the outer pool did not drain")
	}
	wantClean(t, before)
}

// reborn autoreleases another object as it dies.
type reborn struct {
	class *GoClass
	left  int
}

func (r *reborn) Dealloc() {
	if r.left > 0 {
		r.class.New(&reborn{r.class, r.left - 1}).Autorelease()
	}
}

func TestPoolDrainsWhatDyingObjectsAdd(t *testing.T) {
	before := LiveObjects()
	class := NewGoClass("Reborn", nil)
	outer := NewPool()
	p := NewPool()
	class.New(&reborn{class, 5}).Autorelease()
	p.Drain()
	outer.Drain()
	wantClean(t, before)
	p = NewPool()
	class.New(&reborn{class, 5}).Autorelease()
	p.Drain()
	// Without an outer pool what the last drain adds goes nowhere else: nothing is parked.
	if Parked() != 0 {
		t.Error(Parked())
	}
	wantClean(t, before)
}

func TestPoolMisuse(t *testing.T) {
	before := LiveObjects()
	p := NewPool()
	p.Drain()
	p.Drain()
	wantError(t, "drained twice")
	Pool{}.Drain()
	wantError(t, "NewPool did not make")

	outer := NewPool()
	inner := NewPool()
	NewGoClass("X", nil).New(nil).Autorelease()
	outer.Drain()
	wantError(t, "1 opened inside it")
	inner.Drain()
	wantError(t, "drained twice")

	p = NewPool()
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: this thread is another one, and ends here
		p.Drain()
		done <- true
	}()
	<-done
	wantError(t, "another thread")
	p.Drain()
	wantClean(t, before)
}

func TestParked(t *testing.T) {
	before := LiveObjects()
	class := NewGoClass("X", nil)
	class.New(nil).Autorelease()
	// A pool of somebody else does not get it.
	p := NewPool()
	p.Drain()
	if Parked() != 1 || LiveObjects() != before+1 {
		t.Error(Parked(), LiveObjects())
	}
	ReleaseParked()
	if Parked() != 0 {
		t.Error(Parked())
	}
	wantClean(t, before)
}

func TestThreadID(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here := threadID()
	if here == 0 || here != threadID() {
		t.Error(here)
	}
	other := make(chan uintptr)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		other <- threadID()
	}()
	if <-other == here {
		t.Error("two threads with one name")
	}
}
