package runtime

import (
	"sync/atomic"
	"unsafe"
)

// A Mapping is a range of device memory as a Go slice, for as long as it is held. It is a lease: until [Mapping.Unmap],
// work on the same bytes is refused with [ErrBusy], where it is encoded and where it is submitted, as are copies of the
// host and other mappings. The memory stays where it is for that time, even if the slice is released or the runtime
// closed.
//
// A mapping made with [Slice.MapRead] excludes only what writes to the bytes.
type Mapping[T Element] struct {
	data atomic.Pointer[[]T]
	view View
	id   uint64
	// write is set if the mapping was made for writing, too.
	write bool
}

// Map maps the elements for reading and writing. It first waits for the submitted work that uses any of these bytes, and
// returns that work's error if it failed. A pass that uses the allocation and is still being encoded makes Map fail with
// [ErrBusy], as does another mapping of the same bytes. Private and read-only memory is refused with [ErrMisuse].
func (s Slice[T]) Map() (*Mapping[T], error) { return mapSlice("Slice.Map", s, true) }

// MapRead is [Slice.Map] for reading only. It waits only for the work that writes the bytes; work that reads them, and
// other mappings for reading, may go on beside it. Nothing may be written to the data.
func (s Slice[T]) MapRead() (*Mapping[T], error) { return mapSlice("Slice.MapRead", s, false) }

func mapSlice[T Element](fn string, s Slice[T], write bool) (*Mapping[T], error) {
	v := s.view
	if e := v.invalid(); e != nil {
		return nil, &Error{Func: fn, Arg: e.Arg, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	switch {
	case v.a.storage == Private:
		return nil, &Error{Func: fn, Have: "private memory", Need: "memory that the host sees", Err: ErrMisuse}
	case write && v.a.readOnly:
		return nil, &Error{Func: fn, Have: "read-only memory", Need: "memory that can be written, or MapRead", Err: ErrMisuse}
	case !v.a.hold():
		return nil, &Error{Func: fn, Have: "memory that was released", Need: "live memory", Err: ErrClosed}
	}
	r := v.hostRange(write)
	r.writes, r.renews = false, false // it shows what is there
	if err := v.a.begin(fn, r); err != nil {
		v.a.unref()
		return nil, err
	}
	defer v.a.end(r)
	if v.a.storage == Managed && v.n > 0 {
		if err := v.a.synchronize(fn); err != nil {
			v.a.unref()
			return nil, err
		}
	}
	m := &Mapping[T]{view: v, write: write, id: v.a.rt.mem.mapID.Add(1)}
	data := elementsOf[T](v.a.at(v.off, v.n))
	m.data.Store(&data)
	if v.n > 0 {
		v.a.host.lease(lease{r, m.id})
	}
	v.a.rt.mem.mappings.Add(1)
	v.a.rt.mem.mapped.Add(int64(v.n))
	return m, nil
}

// Data is the memory, nil after Unmap. What was taken from it must not be used after Unmap.
func (m *Mapping[T]) Data() []T {
	if m == nil {
		return nil
	}
	if data := m.data.Load(); data != nil {
		return *data
	}
	return nil
}

// Unmap ends the mapping: later work sees what was written. It can be called once.
func (m *Mapping[T]) Unmap() error {
	if m == nil || m.data.Swap(nil) == nil {
		return &Error{Func: "Mapping.Unmap", Have: "no mapping, or one that has ended", Need: "a mapping", Err: ErrClosed}
	}
	a := m.view.a
	if m.write {
		a.modified(m.view.off, m.view.n)
	}
	a.host.unlease(m.id)
	a.rt.mem.mappings.Add(-1)
	a.rt.mem.mapped.Add(int64(-m.view.n))
	a.unref()
	return nil
}

// elementsOf is memory as elements.
func elementsOf[T Element](b []byte) []T {
	if len(b) == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}
