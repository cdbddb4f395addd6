package nn

import (
	"errors"
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

// rowRange refuses rows i up to j of a bank that has them not, or not as whole tiles of its layout: the last one may be
// shorter, where the bank ends.
func rowRange(fn, maker string, i, j, rows, tile int) error {
	if rows == 0 {
		return &runtime.Error{Func: fn, Arg: "bank", Have: "the zero bank", Need: "a bank from " + maker, Err: runtime.ErrShape}
	}
	arg := fmt.Sprintf("[%d:%d]", i, j)
	if i < 0 || j <= i || j > rows {
		return &runtime.Error{Func: fn, Arg: arg, Have: fmt.Sprintf("%d rows", rows), Need: "0 <= i < j <= rows", Err: runtime.ErrShape}
	}
	if i%tile != 0 || j%tile != 0 && j != rows {
		return &runtime.Error{Func: fn, Arg: arg, Have: fmt.Sprintf("%d rows in tiles of %d", rows, tile),
			Need: fmt.Sprintf("multiples of %d, or the last row as the end", tile), Err: runtime.ErrShape}
	}
	return nil
}

// bankPart is memory of a bank.
type bankPart struct {
	name    string
	release func() error
}

// releaseBank releases all parts, and gives the first error in the name of the bank's method.
func releaseBank(fn, maker string, rows int, parts ...bankPart) error {
	if rows == 0 {
		return &runtime.Error{Func: fn, Arg: "bank", Have: "the zero bank", Need: "a bank from " + maker, Err: runtime.ErrShape}
	}
	var first error
	for _, p := range parts {
		err := p.release()
		if err == nil || first != nil {
			continue
		}
		first = err
		var e *runtime.Error
		if errors.As(err, &e) {
			first = &runtime.Error{Func: fn, Arg: p.name, Have: e.Have, Need: e.Need, Err: e.Err}
		}
	}
	return first
}

// uploads are copies to device memory, all or none, for a function whose errors name it.
type uploads struct {
	fn      string
	rt      *runtime.Runtime
	release []func() error
	err     error
}

func uploaded[T runtime.Element](u *uploads, data []T) (s runtime.Slice[T]) {
	if u.err != nil {
		return s
	}
	s, err := runtime.SliceOf(u.rt, data)
	if err == nil {
		u.release = append(u.release, s.Release)
		return s
	}
	u.err = err
	var e *runtime.Error
	if errors.As(err, &e) {
		u.err = &runtime.Error{Func: u.fn, Arg: e.Arg, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	return s
}

// undo gives back what was uploaded before the first error, which it returns.
func (u *uploads) undo() error {
	for _, release := range u.release {
		_ = release()
	}
	return u.err
}
