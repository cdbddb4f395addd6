package objc

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool is an autorelease pool of one OS thread: objects that a message returned without giving them away (+0) live
// until it drains. Between NewPool and Drain the goroutine stays on its thread.
type Pool struct {
	thread uintptr
	serial uint64
}

type poolFrame struct {
	serial uint64
	start  int     // where its objects begin
	real   uintptr // token of the runtime's pool; 0 without a runtime
}

type poolStack struct {
	frames  []poolFrame
	objects []ID
}

var pools struct {
	sync.Mutex
	threads map[uintptr]*poolStack
	spare   []*poolStack
	parked  []ID
	serial  uint64
	open    atomic.Int64
}

// NewPool opens a pool on this OS thread, inside the one that is open there, and locks the goroutine to the thread.
// Every pool is drained by the goroutine that opened it:
//
//	defer objc.NewPool().Drain()
//
// What a goroutine leaves in a pool that it never drains is lost.
func NewPool() Pool {
	runtime.LockOSThread()
	f := poolFrame{}
	if Available() == nil {
		f.real = backendPoolPush()
	}
	thread := threadID()
	pools.Lock()
	defer pools.Unlock()
	if pools.threads == nil {
		pools.threads = map[uintptr]*poolStack{}
	}
	s := pools.threads[thread]
	if s == nil {
		if n := len(pools.spare); n > 0 {
			s, pools.spare = pools.spare[n-1], pools.spare[:n-1]
		} else {
			s = new(poolStack)
		}
		pools.threads[thread] = s
	}
	pools.serial++
	pools.open.Add(1)
	f.serial, f.start = pools.serial, len(s.objects)
	s.frames = append(s.frames, f)
	return Pool{thread, f.serial}
}

// Drain releases what the pool holds and unlocks the goroutine from the thread. Draining on another thread, or twice,
// latches an error and does nothing; pools that were opened inside this one and are still open are drained with it, and
// that latches an error too.
func (p Pool) Drain() {
	if p.serial == 0 {
		latch(errors.New("objc: Drain of a Pool that NewPool did not make"))
		return
	}
	if threadID() != p.thread {
		latch(errors.New("objc: pool drained on another thread than it was opened on"))
		return
	}
	pools.Lock()
	s := pools.threads[p.thread]
	at := -1
	if s != nil {
		for i := len(s.frames) - 1; i >= 0 && s.frames[i].serial >= p.serial; i-- {
			if s.frames[i].serial == p.serial {
				at = i
			}
		}
	}
	if at < 0 {
		pools.Unlock()
		latch(errors.New("objc: pool drained twice"))
		return
	}
	inner := len(s.frames) - at - 1
	f := s.frames[at]
	var tokens [4]uintptr
	open := tokens[:0]
	for i := len(s.frames) - 1; i >= at; i-- {
		open = append(open, s.frames[i].real)
	}
	s.frames = s.frames[:at]
	for {
		// Releasing runs Dealloc methods, which may autorelease more into this pool, or open pools of their own.
		n := len(s.objects)
		if n == f.start {
			break
		}
		id := s.objects[n-1]
		s.objects = s.objects[:n-1]
		pools.Unlock()
		id.Release()
		pools.Lock()
	}
	if len(s.frames) == 0 {
		delete(pools.threads, p.thread)
		pools.spare = append(pools.spare, s)
	}
	pools.open.Add(int64(-1 - inner))
	pools.Unlock()
	for _, token := range open {
		if token != 0 {
			backendPoolPop(token)
		}
	}
	if inner > 0 {
		latch(fmt.Errorf("objc: pool drained while %d opened inside it were not", inner))
	}
	for range inner + 1 {
		runtime.UnlockOSThread()
	}
}

func autoreleaseGo(id ID) {
	if lookup(id) == nil {
		latch(staleError(id, "autorelease"))
		return
	}
	var thread uintptr
	if pools.open.Load() > 0 {
		thread = threadID()
	}
	pools.Lock()
	defer pools.Unlock()
	if s := pools.threads[thread]; thread != 0 && s != nil {
		s.objects = append(s.objects, id)
		return
	}
	pools.parked = append(pools.parked, id)
}

// Parked is the number of Go objects that were autoreleased on a thread without a pool. As in Objective-C nothing
// releases them by itself: a goroutine without a pool may move to a thread whose pool belongs to somebody else. It is zero in a
// program that has a pool wherever it borrows objects.
func Parked() int {
	pools.Lock()
	defer pools.Unlock()
	return len(pools.parked)
}

// ReleaseParked releases the objects that [Parked] counts. The caller knows that nobody uses them any more.
func ReleaseParked() {
	pools.Lock()
	ids := pools.parked
	pools.parked = nil
	pools.Unlock()
	for _, id := range ids {
		id.Release()
	}
}
