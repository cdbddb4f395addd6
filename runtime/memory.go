package runtime

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl"
)

// deviceBuffer is a buffer and where the host sees it: nowhere if it is private.
type deviceBuffer struct {
	mtl     mtl.Buffer
	base    unsafe.Pointer
	bytes   int
	storage Storage
}

// memory is what a runtime has allocated.
type memory struct {
	zeroed, reused   atomic.Uint64
	fresh            atomic.Uint64 // buffers made for allocations
	mapID            atomic.Uint64
	mappings, mapped atomic.Int64

	mu      sync.Mutex
	pool    bufferPool[deviceBuffer]
	live    map[*allocation]struct{} // allocations with a reference left
	claimed map[*allocation]struct{} // of them those that the runtime did not make
	lastID  uint64
	bytes   int // of live allocations, by size class
	private int // of which private
	foreign int // of which wrapped, or memory of the caller
	held    int // by all buffers: live, pooled, const arena
	peak    int // the most that held has been
	budget  int
}

// newBuffer makes a buffer of exactly n bytes within the budget. When there is not enough memory left, it gives up what
// the pool keeps and tries once more.
func (rt *Runtime) newBuffer(fn string, n int, storage Storage) (deviceBuffer, error) {
	if e := rt.tooLong(fn, n); e != nil {
		return deviceBuffer{}, e
	}
	if e := rt.reserve(fn, n); e != nil {
		return deviceBuffer{}, e
	}
	b := rt.dev.NewBufferWithLength(uint(n), storage.options())
	if b.IsNil() {
		rt.trim(0)
		b = rt.dev.NewBufferWithLength(uint(n), storage.options())
	}
	if b.IsNil() {
		rt.unreserve(n)
		return deviceBuffer{}, &Error{Func: fn, Have: fmt.Sprintf("%d bytes", n), Need: "memory that the device has",
			Err: &DeviceError{Op: "newBufferWithLength:options:", Text: "the device made no buffer"}}
	}
	d := deviceBuffer{mtl: b, bytes: n, storage: storage}
	if storage != Private { // whose contents are nil
		if d.base = b.ContentsPointer(); d.base == nil {
			b.Release()
			rt.unreserve(n)
			return deviceBuffer{}, &Error{Func: fn, Err: &DeviceError{Op: "contents", Text: "the buffer has no memory that the host sees"}}
		}
	}
	rt.resident.add(b, n)
	rt.stats.buffers.Add(1)
	return d, nil
}

func (rt *Runtime) tooLong(fn string, n int) *Error {
	if n <= rt.limits.buffer {
		return nil
	}
	return &Error{Func: fn, Have: fmt.Sprintf("%d bytes", n), Need: fmt.Sprintf("at most %d, the longest buffer of the device", rt.limits.buffer), Err: ErrLimit}
}

// reserve counts n bytes as held before they are allocated, unless that exceeds the budget even without what the pool
// keeps.
func (rt *Runtime) reserve(fn string, n int) *Error {
	m := &rt.mem
	for try := 0; ; try++ {
		m.mu.Lock()
		if m.held+n <= m.budget {
			m.held += n
			m.peak = max(m.peak, m.held)
			m.mu.Unlock()
			return nil
		}
		over, pooled, held := m.held+n-m.budget, m.pool.bytes, m.held
		m.mu.Unlock()
		if try == 1 {
			return &Error{Func: fn, Have: fmt.Sprintf("%d bytes beside %d in use", n, held), Need: fmt.Sprintf("at most %d in all, the memory budget", m.budget), Err: ErrLimit}
		}
		rt.trim(max(0, pooled-over))
	}
}

func (rt *Runtime) unreserve(n int) {
	rt.mem.mu.Lock()
	rt.mem.held -= n
	rt.mem.mu.Unlock()
}

// dropBuffer gives a buffer back to the device. The lock is held.
func (rt *Runtime) dropBuffer(b deviceBuffer) {
	rt.mem.held -= b.bytes
	rt.resident.remove(b.mtl, b.bytes)
	b.mtl.Release()
}

// trim gives up pooled memory until at most keep bytes of it are left, and free chunks of the const arena, and says how
// many bytes that were.
func (rt *Runtime) trim(keep int) (freed int) {
	rt.queue.reap()
	m := &rt.mem
	m.mu.Lock()
	freed = m.pool.bytes
	m.pool.trim(keep, rt.dropBuffer)
	freed -= m.pool.bytes
	m.mu.Unlock()
	freed += rt.arena.trim()
	rt.resident.flush()
	return freed
}

// classOf is how long a buffer for n bytes is.
func (rt *Runtime) classOf(n int, storage Storage) int {
	class := sizeClass(n)
	if rt.limits.exact {
		class = max(n, 1)
		if storage == Private { // blits move whole words
			class = (class + 3) &^ 3
		}
	}
	if class > rt.limits.buffer && n <= rt.limits.buffer {
		class = n
	}
	return class
}

// allocate makes an allocation of n bytes, all zero if zero is set.
func (rt *Runtime) allocate(fn string, n int, storage Storage, zero bool) (*allocation, error) {
	rt.life.RLock()
	defer rt.life.RUnlock()
	if e := rt.unusable(); e != nil {
		return nil, &Error{Func: fn, Err: e}
	}
	if e := rt.tooLong(fn, n); e != nil { // before it is rounded up
		return nil, e
	}
	span := rt.traceHost()
	b, err := rt.takeBuffer(fn, n, storage)
	if err != nil {
		return nil, err
	}
	a := &allocation{rt: rt, buf: b.mtl, base: b.base, storage: b.storage, size: n, class: b.bytes}
	rt.enlist(a)
	if zero {
		if err := rt.zero(fn, a, 0, n); err != nil {
			a.unref()
			return nil, err
		}
	}
	rt.stats.bytesAllocated.Add(uint64(b.bytes))
	span.end(laneAllocate, fn, 0, b.bytes)
	return a, nil
}

// takeBuffer takes a buffer for n bytes out of the pool, or makes one. It holds anything.
func (rt *Runtime) takeBuffer(fn string, n int, storage Storage) (deviceBuffer, error) {
	class := rt.classOf(n, storage)
	m := &rt.mem
	m.mu.Lock()
	b, ok := m.pool.take(poolKey{class, storage})
	m.mu.Unlock()
	if ok {
		m.reused.Add(1)
		return b, nil
	}
	b, err := rt.newBuffer(fn, class, storage)
	if err == nil {
		m.fresh.Add(1)
	}
	return b, err
}

// enlist counts an allocation in and gives it a number and its owner's reference.
func (rt *Runtime) enlist(a *allocation) {
	a.refs.Store(1)
	m := &rt.mem
	m.mu.Lock()
	m.lastID++
	a.id = m.lastID
	if m.live == nil {
		m.live = map[*allocation]struct{}{}
	}
	m.live[a] = struct{}{}
	m.count(a, 1)
	m.mu.Unlock()
	rt.stats.allocations.Add(1)
}

// count counts an allocation in, with 1, or out, with -1. The lock is held.
func (m *memory) count(a *allocation, sign int) {
	m.bytes += sign * a.class
	if a.storage == Private {
		m.private += sign * a.class
	}
	if a.foreign {
		m.foreign += sign * a.class
	}
}

// zero clears bytes of an allocation that nothing uses.
func (rt *Runtime) zero(fn string, a *allocation, lo, hi int) error {
	rt.mem.zeroed.Add(uint64(hi - lo))
	if a.storage == Shared {
		clear(unsafe.Slice((*byte)(unsafe.Add(a.base, lo)), hi-lo))
		return nil
	}
	return rt.zeroOnDevice(fn, a, lo, hi)
}

// recycle takes the memory of an allocation without references. No submitted work uses it any more.
func (rt *Runtime) recycle(a *allocation) {
	m := &rt.mem
	m.mu.Lock()
	delete(m.live, a)
	m.count(a, -1)
	if a.drop != nil {
		m.mu.Unlock()
		a.drop()
		return
	}
	if a.loan != nil && !a.loan.gone(a) {
		m.mu.Unlock()
		return // another result of the stream has the buffer
	}
	defer m.mu.Unlock()
	b := deviceBuffer{a.buf, a.base, a.class, a.storage}
	if a.labelled.Load() {
		a.buf.SetLabel("")
	}
	if rt.closed.Load() {
		rt.dropBuffer(b)
		return
	}
	m.pool.put(poolKey{a.class, a.storage}, b, rt.dropBuffer)
}

// releaseMemory ends every allocation that its owner has not released, and empties the pool. The runtime is closed.
func (rt *Runtime) releaseMemory() {
	m := &rt.mem
	m.mu.Lock()
	live := make([]*allocation, 0, len(m.live))
	for a := range m.live {
		live = append(live, a)
	}
	m.mu.Unlock()
	for _, a := range live {
		if !a.released.Swap(true) {
			a.unref()
		}
	}
	m.mu.Lock()
	m.pool.trim(0, rt.dropBuffer)
	m.mu.Unlock()
}
