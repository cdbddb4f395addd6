package runtime

import (
	"fmt"
	"math"
	"sync"
)

// A TempArena is memory for temporaries of a step: [Temp] takes the next part of it, which costs no more than adding up,
// and [TempArena.Reset] takes all parts back at once. The temporaries of before a reset are invalid after it: uses of
// them are refused like those of released memory.
//
// A TempArena may be used by several goroutines.
type TempArena struct {
	rt  *Runtime
	own *allocation // holds the buffer

	mu       sync.Mutex
	now      *allocation // the parts since the last reset; nil after Release
	used     int
	high     int
	released bool
}

// tempAlign is what temporaries begin at a multiple of: as all memory of a runtime does.
const tempAlign = 256

// NewTempArena makes an arena of so many bytes, [Shared] unless a storage is given.
func NewTempArena(rt *Runtime, bytes int, storage ...Storage) (*TempArena, error) {
	const fn = "NewTempArena"
	mode, err := storageOf(fn, storage)
	if err != nil {
		return nil, err
	}
	if err := rt.opened(fn); err != nil {
		return nil, err
	}
	if bytes < 1 || bytes > math.MaxInt-tempAlign {
		return nil, &Error{Func: fn, Arg: "bytes", Have: fmt.Sprint(bytes), Need: "at least 1", Err: ErrShape}
	}
	own, err := rt.allocate(fn, bytes, mode, true)
	if err != nil {
		return nil, err
	}
	t := &TempArena{rt: rt, own: own}
	t.now = t.generation()
	return t, nil
}

// generation is a new allocation of the arena's memory, whose parts are valid until the next reset. It holds the memory
// and counts as none of its own.
func (t *TempArena) generation() *allocation {
	o := t.own
	o.refs.Add(1)
	a := &allocation{rt: o.rt, buf: o.buf, base: o.base, storage: o.storage, size: o.size, of: o, drop: o.unref}
	// Clearing may be pending, or have failed.
	a.lastUse.Store(o.lastUse.Load())
	a.lastW.Store(o.lastW.Load())
	o.rt.enlist(a)
	return a
}

// Temp takes memory for n elements from the arena, all zero. It is released by [TempArena.Reset] or with the arena, not by
// itself. An arena without room for it returns [ErrLimit].
func Temp[T Element](t *TempArena, n int) (Slice[T], error) {
	const fn = "Temp"
	if t == nil || t.rt == nil {
		return Slice[T]{}, &Error{Func: fn, Arg: "t", Have: "no arena", Need: "one from NewTempArena", Err: ErrMisuse}
	}
	size := sizeOf[T]()
	if n < 0 || n > math.MaxInt/size {
		return Slice[T]{}, &Error{Func: fn, Arg: "n", Have: fmt.Sprint(n), Need: fmt.Sprintf("0 to %d elements", math.MaxInt/size), Err: ErrShape}
	}
	off, a, err := t.take(fn, n*size)
	if err != nil {
		return Slice[T]{}, err
	}
	return Slice[T]{view: View{a: a, off: off, n: n * size}}, nil
}

func (t *TempArena) take(fn string, bytes int) (int, *allocation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.invalid(fn); e != nil {
		return 0, nil, e
	}
	off := (t.used + tempAlign - 1) &^ (tempAlign - 1)
	if off > t.own.size || bytes > t.own.size-off {
		return 0, nil, &Error{Func: fn, Arg: "n", Have: fmt.Sprintf("%d bytes beside %d in use", bytes, t.used), Need: fmt.Sprintf("at most %d in all, the length of the arena", t.own.size), Err: ErrLimit}
	}
	t.used = off + bytes
	t.high = max(t.high, t.used)
	return off, t.now, nil
}

// invalid refuses an arena that was released. The lock is held.
func (t *TempArena) invalid(fn string) *Error {
	switch {
	case t.released:
		return &Error{Func: fn, Arg: "t", Have: "an arena that was released", Need: "a live arena", Err: ErrClosed}
	case t.rt.closed.Load():
		return &Error{Func: fn, Arg: "t", Have: "an arena of a closed runtime", Need: "a live arena", Err: ErrClosed}
	}
	return nil
}

// Reset takes all temporaries back and clears their memory for the next ones. It first waits for the submitted work that
// uses them; whether that failed matters only if the runtime has become unusable. It returns [ErrBusy], and nothing changes, while a pass that uses
// one is being encoded, a program that was recorded with one lives, or one is mapped.
func (t *TempArena) Reset() error {
	const fn = "TempArena.Reset"
	if t == nil || t.rt == nil {
		return &Error{Func: fn, Have: "no arena", Need: "one from NewTempArena", Err: ErrMisuse}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.invalid(fn); e != nil {
		return e
	}
	if t.used == 0 {
		return nil
	}
	if e := t.rt.admit(nil, t.now, true); e != nil {
		return &Error{Func: fn, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	if err := t.rt.await(fn, t.now.lastUse.Load(), true); err != nil {
		return err
	}
	t.rt.life.RLock()
	defer t.rt.life.RUnlock()
	if e := t.rt.unusable(); e != nil {
		return &Error{Func: fn, Err: e}
	}
	// From here on nothing takes a reference on the old temporaries any more.
	if !t.now.refs.CompareAndSwap(1, 0) {
		return &Error{Func: fn, Have: "temporaries in use by a pass that is being encoded, a program, or the host", Need: "none in use", Err: ErrBusy}
	}
	old := t.now
	if err := t.rt.zero(fn, t.own, 0, t.used); err != nil {
		old.refs.Store(1)
		return err
	}
	old.released.Store(true)
	t.used = 0
	t.now = t.generation()
	t.rt.recycle(old)
	return nil
}

// Len is how many bytes are in use, Cap how many there are, and High the most that have been in use.
func (t *TempArena) Len() int { return t.figure(func() int { return t.used }) }

// Cap is how many bytes the arena has.
func (t *TempArena) Cap() int { return t.figure(func() int { return t.own.size }) }

// High is the most that has been in use between two resets: how long the arena needs to be.
func (t *TempArena) High() int { return t.figure(func() int { return t.high }) }

func (t *TempArena) figure(f func() int) int {
	if t == nil || t.rt == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return f()
}

// Release gives the arena back, under the same rules as [Slice.Release]: work that was encoded before keeps the memory.
func (t *TempArena) Release() error {
	const fn = "TempArena.Release"
	if t == nil || t.rt == nil {
		return &Error{Func: fn, Have: "no arena", Need: "one from NewTempArena", Err: ErrMisuse}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.invalid(fn); e != nil {
		return e
	}
	t.released = true
	for _, a := range []*allocation{t.now, t.own} {
		if !a.released.Swap(true) {
			a.unref()
		}
	}
	return nil
}
