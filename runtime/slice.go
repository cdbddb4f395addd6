package runtime

import (
	"fmt"
	"math"
)

// A Slice is typed device memory, like a Go slice: a value that refers to a range of an allocation. Parts made with
// [Slice.Slice] share the allocation.
type Slice[T Element] struct {
	view View
	// owner is set in the slice that NewSlice returned and in its copies, not in parts of it: only these may release.
	owner bool
}

// NewSlice allocates device memory for n elements, all zero. The memory starts at a multiple of 256 bytes. It is [Shared]
// unless a storage is given.
func NewSlice[T Element](rt *Runtime, n int, storage ...Storage) (Slice[T], error) {
	const fn = "NewSlice"
	mode, err := storageOf(fn, storage)
	if err != nil {
		return Slice[T]{}, err
	}
	return newSlice[T](fn, rt, n, mode, true)
}

// SliceOf allocates device memory, as NewSlice does, and copies data into it.
func SliceOf[T Element](rt *Runtime, data []T, storage ...Storage) (Slice[T], error) {
	const fn = "SliceOf"
	mode, err := storageOf(fn, storage)
	if err != nil {
		return Slice[T]{}, err
	}
	s, err := newSlice[T](fn, rt, len(data), mode, false)
	if err != nil {
		return s, err
	}
	if err := s.view.a.copyIn(fn, bytesOf(data), 0); err != nil {
		_ = s.Release()
		return Slice[T]{}, err
	}
	return s, nil
}

func newSlice[T Element](fn string, rt *Runtime, n int, storage Storage, zero bool) (Slice[T], error) {
	if err := rt.opened(fn); err != nil {
		return Slice[T]{}, err
	}
	bytes, err := lengthOf[T](fn, n)
	if err != nil {
		return Slice[T]{}, err
	}
	a, err := rt.allocate(fn, bytes, storage, zero)
	if err != nil {
		return Slice[T]{}, err
	}
	return Slice[T]{view: View{a: a, n: bytes}, owner: true}, nil
}

// lengthOf is the length of n elements in bytes.
func lengthOf[T Element](fn string, n int) (int, error) {
	size := sizeOf[T]()
	if n < 0 || n > math.MaxInt/size {
		return 0, &Error{Func: fn, Arg: "n", Have: fmt.Sprint(n), Need: fmt.Sprintf("0 to %d elements", math.MaxInt/size), Err: ErrShape}
	}
	return n * size, nil
}

// Len is the number of elements.
func (s Slice[T]) Len() int { return s.view.n / sizeOf[T]() }

// Storage is the storage of the memory.
func (s Slice[T]) Storage() Storage { return s.view.Storage() }

// ReadOnly says whether neither kernels nor the host may write to the memory, as that of a mapped file.
func (s Slice[T]) ReadOnly() bool { return s.view.ReadOnly() }

// View is the slice's range of bytes.
func (s Slice[T]) View() View { return s.view }

// Runtime is the runtime that the memory belongs to, nil for the zero Slice.
func (s Slice[T]) Runtime() *Runtime { return s.view.Runtime() }

// Valid says why the slice cannot be used, as [View.Valid] does.
func (s Slice[T]) Valid() error { return s.view.Valid() }

// Slice is the part from element i up to element j, in the same memory. Bounds out of range give a slice that is not
// valid, and every use of it returns the reason.
func (s Slice[T]) Slice(i, j int) Slice[T] {
	n, size := s.Len(), sizeOf[T]()
	if s.view.bad != nil {
		return Slice[T]{view: s.view}
	}
	if i < 0 || j < i || j > n {
		return Slice[T]{view: View{a: s.view.a, bad: &Error{Func: "Slice.Slice", Arg: fmt.Sprintf("[%d:%d]", i, j),
			Have: fmt.Sprintf("%d elements", n), Need: "0 <= i <= j <= length", Err: ErrShape}}}
	}
	return Slice[T]{view: View{a: s.view.a, off: s.view.off + i*size, n: (j - i) * size}}
}

// Read copies the elements to dst, which must be of the same length. It first waits for the submitted work that writes
// any of these bytes, and returns that work's error if it failed; work on other parts of the allocation goes on. A pass
// that is still being encoded is not waited for: if it writes to the allocation, Read returns [ErrBusy], as it does when
// the elements are mapped for writing.
func (s Slice[T]) Read(dst []T) error {
	const fn = "Slice.Read"
	if err := s.hostAccess(fn, "dst", len(dst), false); err != nil {
		return err
	}
	defer s.hostDone(false)
	return s.view.a.copyOut(fn, bytesOf(dst), s.view.off)
}

// Write copies src, which must be of the same length, to the elements. It first waits for the submitted work that uses
// any of these bytes, so that work sees the elements as they were when it was submitted; work on other parts of the
// allocation goes on. A pass that is still being encoded is not waited for: if it uses the allocation, Write returns
// [ErrBusy], as it does when the elements are mapped. Read-only memory is refused with [ErrMisuse].
func (s Slice[T]) Write(src []T) error {
	const fn = "Slice.Write"
	if err := s.hostAccess(fn, "src", len(src), true); err != nil {
		return err
	}
	defer s.hostDone(true)
	return s.view.a.copyIn(fn, bytesOf(src), s.view.off)
}

// hostAccess checks a host copy and waits for the work that it has to wait for. Without an error hostDone
// must follow: until then a reference on the allocation is held, so that neither Release nor Close on another goroutine takes the memory away under the copy.
func (s Slice[T]) hostAccess(fn, arg string, n int, write bool) error {
	if e := s.view.invalid(); e != nil {
		return &Error{Func: fn, Arg: e.Arg, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	if n != s.Len() {
		return &Error{Func: fn, Arg: arg, Have: fmt.Sprintf("%d elements", n), Need: fmt.Sprint(s.Len()), Err: ErrShape}
	}
	if write && s.view.a.readOnly {
		return &Error{Func: fn, Have: "read-only memory", Need: "memory that can be written", Err: ErrMisuse}
	}
	if !s.view.a.hold() {
		return &Error{Func: fn, Have: "memory that was released", Need: "live memory", Err: ErrClosed}
	}
	if err := s.view.a.begin(fn, s.view.hostRange(write)); err != nil {
		s.view.a.unref()
		return err
	}
	return nil
}

func (s Slice[T]) hostDone(write bool) {
	s.view.a.end(s.view.hostRange(write))
	s.view.a.unref()
}

// Label names the allocation in the errors of the software device and in Metal's tools.
func (s Slice[T]) Label(name string) error {
	if e := s.view.invalid(); e != nil {
		return &Error{Func: "Slice.Label", Arg: e.Arg, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	a := s.view.a
	if !a.hold() {
		return &Error{Func: "Slice.Label", Have: "memory that was released", Need: "live memory", Err: ErrClosed}
	}
	defer a.unref()
	if a.of != nil {
		a.of.labelled.Store(true) // which is what goes to the pool
	}
	a.labelled.Store(true)
	a.buf.SetLabel(name)
	return nil
}

// Release gives the memory back. Work that was encoded before keeps it until it has completed, and programs that were
// recorded with it until they are released; any new use is refused with [ErrClosed]. Only the slice that NewSlice or
// SliceOf returned can be released, and only once; its parts go with it.
func (s Slice[T]) Release() error {
	switch {
	case s.view.a == nil:
		return &Error{Func: "Slice.Release", Have: "the zero Slice", Need: "a slice of device memory", Err: ErrShape}
	case !s.owner:
		return &Error{Func: "Slice.Release", Have: "a part of another slice", Need: "the slice that NewSlice or SliceOf returned", Err: ErrMisuse}
	case s.view.a.rt.closed.Load():
		return &Error{Func: "Slice.Release", Have: "memory of a closed runtime", Need: "live memory", Err: ErrClosed}
	case s.view.a.released.Swap(true):
		return &Error{Func: "Slice.Release", Have: "memory that was released", Need: "live memory", Err: ErrClosed}
	}
	s.view.a.unref()
	return nil
}
