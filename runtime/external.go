package runtime

import (
	"fmt"
	"os"
	goruntime "runtime"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// Memory that the runtime did not allocate: Metal buffers of the caller, and memory of the caller without a copy.

// WrapBuffer makes a slice of a Metal buffer that the caller has made on the same device, for as many elements as it
// holds. The runtime keeps a reference of its own until the slice has been released and no work uses it any more; the
// caller's reference stays the caller's, who may release it at any time.
//
// Until then the runtime alone orders what uses the buffer: other queues, and the host through contents, must leave it
// alone. A buffer can be wrapped once at a time. Buffers of a heap, and those without hazard tracking, are refused, since
// Metal orders the runtime's submissions only where it tracks what they use.
func WrapBuffer[T Element](rt *Runtime, buf mtl.Buffer) (Slice[T], error) {
	a, err := rt.wrap("WrapBuffer", buf, sizeOf[T]())
	if err != nil {
		return Slice[T]{}, err
	}
	return Slice[T]{view: View{a: a, n: a.size}, owner: true}, nil
}

var selContents = objc.RegisterName("contents")

func (rt *Runtime) wrap(fn string, buf mtl.Buffer, elem int) (*allocation, error) {
	if err := rt.opened(fn); err != nil {
		return nil, err
	}
	refuse := func(have, need string, sentinel error) (*allocation, error) {
		return nil, &Error{Func: fn, Arg: "buf", Have: have, Need: need, Err: sentinel}
	}
	rt.life.RLock()
	defer rt.life.RUnlock()
	if e := rt.unusable(); e != nil {
		return nil, &Error{Func: fn, Err: e}
	}
	if buf.IsNil() {
		return refuse("nil", "a Metal buffer", ErrMisuse)
	}
	if id := buf.ID(); !id.RespondsTo(selContents) {
		return refuse("an object of class "+id.ClassName(), "a Metal buffer", ErrMisuse)
	}
	defer objc.NewPool().Drain()
	if dev := buf.Device(); dev.ID() != rt.dev.ID() && dev.RegistryID() != rt.dev.RegistryID() {
		return refuse("a buffer of another device", "one of the runtime's", ErrForeign)
	}
	n := int(buf.Length())
	a := &allocation{rt: rt, buf: buf, size: n / elem * elem, class: n, foreign: true}
	switch buf.StorageMode() {
	case mtl.StorageModeShared:
	case mtl.StorageModePrivate:
		a.storage = Private
	case mtl.StorageModeManaged:
		a.storage = Managed
	default:
		return refuse("memoryless storage", "shared, private or managed storage", ErrMisuse)
	}
	switch {
	case a.size == 0:
		return refuse(fmt.Sprintf("%d bytes", n), fmt.Sprintf("at least one element of %d", elem), ErrShape)
	case !buf.Heap().IsNil():
		return refuse("a buffer of a heap", "one of its own memory", ErrMisuse)
	case buf.HazardTrackingMode() == mtl.HazardTrackingModeUntracked:
		return refuse("a buffer without hazard tracking", "one with it", ErrMisuse)
	case a.storage == Private && n%4 != 0:
		return refuse(fmt.Sprintf("%d bytes of private memory", n), "a multiple of 4, which the device copies", ErrShape)
	}
	if a.storage != Private {
		if a.base = buf.ContentsPointer(); a.base == nil {
			return nil, &Error{Func: fn, Err: &DeviceError{Op: "contents", Text: "the buffer has no memory that the host sees"}}
		}
	}
	return a, rt.adopt(fn, a, func() error {
		buf.Retain()
		return nil
	})
}

// adopt counts in an allocation that the runtime did not make, unless its memory belongs to one already. What take does
// gives it its reference on the buffer.
func (rt *Runtime) adopt(fn string, a *allocation, take func() error) error {
	rt.queue.reap()
	if e := rt.claim(fn, a); e != nil {
		return e
	}
	if e := rt.reserve(fn, a.class); e != nil {
		rt.disclaim(a)
		return e
	}
	if err := take(); err != nil {
		rt.disclaim(a)
		rt.unreserve(a.class)
		return err
	}
	rt.resident.add(a.buf, a.class)
	a.drop = func() {
		rt.disclaim(a)
		rt.unreserve(a.class)
		rt.resident.remove(a.buf, a.class)
		rt.resident.flush() // or the set would hold it
		a.buf.Release()
	}
	rt.enlist(a)
	return nil
}

// claim notes that memory belongs to an allocation.
func (rt *Runtime) claim(fn string, a *allocation) *Error {
	m := &rt.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.claimed {
		switch {
		case !a.buf.IsNil() && a.buf == other.buf:
			return &Error{Func: fn, Arg: "buf", Have: "a buffer that is wrapped", Need: "one that is not, or whose slice was released and is not used any more", Err: ErrBusy}
		case a.base != nil && other.base != nil && a.overlaps(other) && !(a.readOnly && other.readOnly):
			return &Error{Func: fn, Arg: "mem", Have: "memory of another slice", Need: "memory that is not, or whose slice was released and is not used any more", Err: ErrOverlap}
		}
	}
	if m.claimed == nil {
		m.claimed = map[*allocation]struct{}{}
	}
	m.claimed[a] = struct{}{}
	return nil
}

func (rt *Runtime) disclaim(a *allocation) {
	rt.mem.mu.Lock()
	delete(rt.mem.claimed, a)
	rt.mem.mu.Unlock()
}

// overlaps says whether two allocations have host memory in common.
func (a *allocation) overlaps(b *allocation) bool {
	from, other := uintptr(a.base), uintptr(b.base)
	return from < other+uintptr(b.class) && other < from+uintptr(a.class)
}

// MemoryOptions say what [WrapMemory] may do with memory of the caller.
type MemoryOptions struct {
	// ReadOnly refuses kernels and host copies that would write to it.
	ReadOnly bool
	// Release is called once, on a goroutine of its own, when the slice has been released and the device has let go of the
	// memory: it may be freed then. It is not called when WrapMemory returns an error. Memory that a device which was given up
	// may still use is never released.
	Release func()
}

// WrapMemory makes a slice of the caller's memory without copying it: memory that is mapped, or from another allocator.
// It must consist of whole pages, and stay where it is until the device has let go of it. Memory of Go's garbage collector
// is kept alive for as long.
func WrapMemory[T Element](rt *Runtime, mem []T, o MemoryOptions) (Slice[T], error) {
	const fn = "WrapMemory"
	if err := rt.opened(fn); err != nil {
		return Slice[T]{}, err
	}
	done := func() {
		goruntime.KeepAlive(mem)
		if o.Release != nil {
			go o.Release() // which may call the runtime
		}
	}
	a, err := rt.wrapMemory(fn, bytesOf(mem), o.ReadOnly, done)
	if err != nil {
		return Slice[T]{}, err
	}
	return Slice[T]{view: View{a: a, n: a.size}, owner: true}, nil
}

// wrapMemory makes an allocation of memory without a copy. When the device lets go of it, done is called, on any thread.
func (rt *Runtime) wrapMemory(fn string, mem []byte, readOnly bool, done func()) (*allocation, error) {
	refuse := func(have, need string, sentinel error) (*allocation, error) {
		return nil, &Error{Func: fn, Arg: "mem", Have: have, Need: need, Err: sentinel}
	}
	page := os.Getpagesize()
	base := unsafe.Pointer(unsafe.SliceData(mem))
	switch {
	case len(mem) == 0:
		return refuse("no memory", "at least one page", ErrShape)
	case uintptr(base)%uintptr(page) != 0 || len(mem)%page != 0:
		return refuse(fmt.Sprintf("%d bytes at %#x", len(mem), base), fmt.Sprintf("whole pages of %d", page), ErrShape)
	}
	if e := rt.tooLong(fn, len(mem)); e != nil {
		return nil, e
	}
	rt.life.RLock()
	defer rt.life.RUnlock()
	if e := rt.unusable(); e != nil {
		return nil, &Error{Func: fn, Err: e}
	}
	a := &allocation{rt: rt, base: base, size: len(mem), class: len(mem), foreign: true, readOnly: readOnly}
	return a, rt.adopt(fn, a, func() error {
		const op = "newBufferWithBytesNoCopy:length:options:deallocator:"
		made := false
		buf, err := rt.dev.NewBufferWithBytesNoCopy(base, uint(len(mem)), mtl.ResourceStorageModeShared, func(unsafe.Pointer, uint) {
			if made {
				done()
			}
		})
		if err != nil || buf.IsNil() {
			text := "the device made no buffer"
			if err != nil {
				text = err.Error()
			}
			return &Error{Func: fn, Have: fmt.Sprintf("%d bytes", len(mem)), Need: "memory that the device takes", Err: &DeviceError{Op: op, Text: text}}
		}
		if buf.ContentsPointer() != base {
			buf.Release()
			return &Error{Func: fn, Err: &DeviceError{Op: op, Text: "the buffer is not of the memory that was given"}}
		}
		made = true
		a.buf = buf
		rt.stats.buffers.Add(1)
		return nil
	})
}

// As is memory as elements of another type, such as weights in a file that was mapped as bytes: a part of the slice that
// owns the memory. The view must begin at a multiple of the element's size and have a whole number of elements.
func As[T Element](v View) (Slice[T], error) {
	size := sizeOf[T]()
	if e := v.invalid(); e != nil {
		return Slice[T]{}, &Error{Func: "As", Arg: e.Arg, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	if v.off%size != 0 || v.n%size != 0 {
		return Slice[T]{}, &Error{Func: "As", Arg: "v", Have: fmt.Sprintf("%d bytes at offset %d", v.n, v.off),
			Need: fmt.Sprintf("multiples of %d, the size of an element", size), Err: ErrShape}
	}
	return Slice[T]{view: v}, nil
}
