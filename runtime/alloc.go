package runtime

import (
	"sync/atomic"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl"
)

// allocation is one piece of device memory and what is pending on it.
//
// It is reference counted: the owner's Slice holds one reference until Release, and so does each pass, submission and
// program that uses it, and each host copy for as long as it runs. The memory goes back to the pool with the last one.
type allocation struct {
	rt    *Runtime
	id    uint64 // never used again by this runtime
	buf   mtl.Buffer
	base  unsafe.Pointer // nil where the host does not see it
	size  int            // as asked for
	class int            // of the buffer
	drop  func()         // what ends it, if it does not go to the pool
	of    *allocation    // what holds its buffer, if it is the temporaries of an arena
	loan  *loan          // of a stream that has lent the buffer, or nil

	storage  Storage
	foreign  bool // a buffer, or memory, that the runtime did not make
	readOnly bool

	refs     atomic.Int64
	released atomic.Bool
	labelled atomic.Bool
	open     atomic.Int32  // passes being encoded that use it
	openW    atomic.Int32  // of which write it
	lastUse  atomic.Uint64 // the last submission that used it
	lastW    atomic.Uint64 // the last submission that wrote it
	host     hostState
}

// hold takes a reference, unless the last one has gone.
func (a *allocation) hold() bool {
	for {
		n := a.refs.Load()
		if n <= 0 {
			return false
		}
		if a.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (a *allocation) unref() {
	if a.refs.Add(-1) == 0 {
		a.rt.recycle(a)
	}
}

// at is memory of the allocation as the host sees it.
func (a *allocation) at(off, n int) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(a.base, off)), n)
}

// raise sets v to n unless it is greater already.
func raise(v *atomic.Uint64, n uint64) {
	for {
		old := v.Load()
		if old >= n || v.CompareAndSwap(old, n) {
			return
		}
	}
}
