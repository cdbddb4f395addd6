package runtime

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl"
)

// deviceBuffer is a buffer of shared storage and where the host sees it.
type deviceBuffer struct {
	mtl  mtl.Buffer
	base unsafe.Pointer
}

// memory is what a runtime has allocated.
type memory struct {
	mu     sync.Mutex
	pool   bufferPool[deviceBuffer]
	live   map[*allocation]struct{} // allocations with a reference left
	lastID uint64
	bytes  int // of live allocations, by size class
}

// newBuffer makes a buffer of exactly n bytes. When the device has no memory left, it gives up what the pool keeps and
// tries once more.
func (rt *Runtime) newBuffer(fn string, n int) (deviceBuffer, error) {
	if n > rt.limits.buffer {
		return deviceBuffer{}, &Error{Func: fn, Have: fmt.Sprintf("%d bytes", n), Need: fmt.Sprintf("at most %d, the longest buffer of the device", rt.limits.buffer), Err: ErrLimit}
	}
	b := rt.dev.NewBufferWithLength(uint(n), mtl.ResourceStorageModeShared)
	if b.IsNil() {
		rt.queue.reap()
		rt.mem.mu.Lock()
		rt.mem.pool.trim(0, rt.dropBuffer)
		rt.mem.mu.Unlock()
		b = rt.dev.NewBufferWithLength(uint(n), mtl.ResourceStorageModeShared)
	}
	if b.IsNil() {
		return deviceBuffer{}, &Error{Func: fn, Have: fmt.Sprintf("%d bytes", n), Need: "memory that the device has",
			Err: &DeviceError{Op: "newBufferWithLength:options:", Text: "the device made no buffer"}}
	}
	base := b.ContentsPointer()
	if base == nil {
		b.Release()
		return deviceBuffer{}, &Error{Func: fn, Err: &DeviceError{Op: "contents", Text: "the buffer has no memory that the host sees"}}
	}
	rt.stats.buffers.Add(1)
	return deviceBuffer{b, base}, nil
}

func (rt *Runtime) dropBuffer(b deviceBuffer) { b.mtl.Release() }

// allocate makes an allocation of n bytes, all zero if zero is set.
func (rt *Runtime) allocate(fn string, n int, zero bool) (*allocation, error) {
	rt.life.RLock()
	defer rt.life.RUnlock()
	if e := rt.unusable(); e != nil {
		return nil, &Error{Func: fn, Err: e}
	}
	class := sizeClass(n)
	if rt.limits.exact {
		class = max(n, 1)
	}
	if class > rt.limits.buffer && n <= rt.limits.buffer {
		class = n
	}
	m := &rt.mem
	m.mu.Lock()
	b, ok := m.pool.take(class)
	m.mu.Unlock()
	if !ok {
		var err error
		if b, err = rt.newBuffer(fn, class); err != nil {
			return nil, err
		}
	}
	a := &allocation{rt: rt, buf: b.mtl, base: b.base, size: n, class: class}
	a.refs.Store(1)
	if zero {
		clear(unsafe.Slice((*byte)(b.base), n))
	}
	m.mu.Lock()
	m.lastID++
	a.id = m.lastID
	if m.live == nil {
		m.live = map[*allocation]struct{}{}
	}
	m.live[a] = struct{}{}
	m.bytes += class
	m.mu.Unlock()
	rt.stats.allocations.Add(1)
	return a, nil
}

// recycle takes the memory of an allocation without references. No submitted work uses it any more.
func (rt *Runtime) recycle(a *allocation) {
	m := &rt.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, a)
	m.bytes -= a.class
	b := deviceBuffer{a.buf, a.base}
	if a.labelled.Load() {
		a.buf.SetLabel("")
	}
	if rt.closed.Load() {
		rt.dropBuffer(b)
		return
	}
	m.pool.put(a.class, b, rt.dropBuffer)
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
