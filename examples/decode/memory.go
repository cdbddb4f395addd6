package main

import (
	"errors"
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

// memory allocates device memory and remembers how to give it back. After the first error it does nothing more.
type memory struct {
	rt      *runtime.Runtime
	err     error
	release []func() error
}

// fail keeps the first error.
func (a *memory) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *memory) free() error {
	var errs []error
	for i := len(a.release) - 1; i >= 0; i-- {
		errs = append(errs, a.release[i]())
	}
	a.release = nil
	return errors.Join(errs...)
}

// keep takes a new slice, or the error of making it.
func keep[T runtime.Element](a *memory, what string, s runtime.Slice[T], err error) runtime.Slice[T] {
	if err != nil {
		a.fail(fmt.Errorf("%s: %w", what, err))
		return runtime.Slice[T]{}
	}
	a.release = append(a.release, s.Release)
	return s
}

// zeros is device memory for n elements.
func zeros[T runtime.Element](a *memory, what string, n int) runtime.Slice[T] {
	if a.err != nil {
		return runtime.Slice[T]{}
	}
	s, err := runtime.NewSlice[T](a.rt, n)
	return keep(a, what, s, err)
}

// upload is device memory with a copy of data.
func upload[T runtime.Element](a *memory, what string, data []T) runtime.Slice[T] {
	if a.err != nil {
		return runtime.Slice[T]{}
	}
	s, err := runtime.SliceOf(a.rt, data)
	return keep(a, what, s, err)
}

// part is element i of n equal parts of a slice.
func part[T runtime.Element](s runtime.Slice[T], i, n int) runtime.Slice[T] {
	return s.Slice(i*n, (i+1)*n)
}
