package runtime

import "fmt"

// A View is a range of bytes of device memory without an element type: what a kernel is given. Views are values; the
// zero View is not valid. A View does not keep its memory from being released, but work that uses it does.
type View struct {
	a      *allocation
	off, n int
	// bad is why a slicing went wrong. It is reported where the view is used.
	bad *Error
}

// Len is the length in bytes.
func (v View) Len() int { return v.n }

// Offset is the distance in bytes from the start of the allocation.
func (v View) Offset() int { return v.off }

// Storage is the storage of the memory, Shared for the zero View.
func (v View) Storage() Storage {
	if v.a == nil {
		return Shared
	}
	return v.a.storage
}

// ReadOnly says whether neither kernels nor the host may write to the memory, as that of a mapped file.
func (v View) ReadOnly() bool { return v.a != nil && v.a.readOnly }

// Runtime is the runtime whose memory this is, nil for the zero View.
func (v View) Runtime() *Runtime {
	if v.a == nil {
		return nil
	}
	return v.a.rt
}

// Valid says why the view cannot be used: it is zero, came from bounds out of range, was released, or its runtime is
// closed.
func (v View) Valid() error {
	if e := v.invalid(); e != nil {
		return e
	}
	return nil
}

func (v View) invalid() *Error {
	switch {
	case v.bad != nil:
		return v.bad
	case v.a == nil:
		return &Error{Func: "View.Valid", Have: "the zero Slice or View", Need: "device memory", Err: ErrShape}
	case v.a.released.Load():
		return &Error{Func: "View.Valid", Have: "memory that was released", Need: "live memory", Err: ErrClosed}
	case v.a.rt.closed.Load():
		return &Error{Func: "View.Valid", Have: "memory of a closed runtime", Need: "live memory", Err: ErrClosed}
	}
	return nil
}

// Overlaps says whether the two views share a byte.
func (v View) Overlaps(w View) bool {
	return v.a != nil && v.a == w.a && v.n > 0 && w.n > 0 && v.off < w.off+w.n && w.off < v.off+v.n
}

// Same says whether the two views are the same bytes.
func (v View) Same(w View) bool { return v.a == w.a && v.off == w.off && v.n == w.n }

// Bytes is the part of the view from byte i up to byte j. Bounds out of range give a view that is not valid and says so.
func (v View) Bytes(i, j int) View {
	if v.bad != nil {
		return v
	}
	if i < 0 || j < i || j > v.n {
		return View{a: v.a, bad: &Error{Func: "View.Bytes", Arg: fmt.Sprintf("[%d:%d]", i, j),
			Have: fmt.Sprintf("%d bytes", v.n), Need: "0 <= i <= j <= length", Err: ErrShape}}
	}
	return View{a: v.a, off: v.off + i, n: j - i}
}
