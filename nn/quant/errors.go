package quant

import (
	"errors"
	"strings"
)

// The sentinels that an [*Error] wraps. Ask with errors.Is.
var (
	// ErrShape: lengths or shapes do not fit.
	ErrShape = errors.New("shape mismatch")
	// ErrValue: a number that the format cannot hold.
	ErrValue = errors.New("value out of range")
)

// An Error says which argument of which function was refused, what it has and what it needs.
type Error struct {
	Func, Arg, Have, Need string
	// Err is one of the sentinels.
	Err error
}

// Error is the text, in one line.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	var b strings.Builder
	b.WriteString("quant.")
	b.WriteString(e.Func)
	b.WriteString(": ")
	b.WriteString(e.Arg)
	b.WriteString(": have ")
	b.WriteString(e.Have)
	b.WriteString(", need ")
	b.WriteString(e.Need)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap is the sentinel.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

func shape(fn, arg, have, need string) error {
	return &Error{Func: fn, Arg: arg, Have: have, Need: need, Err: ErrShape}
}
