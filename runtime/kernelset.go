package runtime

import (
	"context"
	"fmt"
	"slices"
)

// A KernelSet is several kernels between which a caller chooses at run time, without function constants. It is made once,
// for all runtimes.
type KernelSet struct{ names []string }

// NewKernelSet makes a set of kernels by their names.
func NewKernelSet(names ...string) *KernelSet { return &KernelSet{slices.Clone(names)} }

// Names are the kernels' names.
func (s *KernelSet) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.names)
}

// SetThreads is how many threads a threadgroup can have on this device whichever kernel of the set it runs: the least of
// their limits. The first call for a set makes all its pipelines; later ones allocate nothing. It may be called from several
// goroutines.
func (rt *Runtime) SetThreads(set *KernelSet) (int, error) {
	const fn = "Runtime.SetThreads"
	if err := rt.opened(fn); err != nil {
		return 0, err
	}
	if e := rt.unusable(); e != nil {
		return 0, &Error{Func: fn, Err: e}
	}
	if set == nil || len(set.names) == 0 {
		return 0, &Error{Func: fn, Arg: "set", Have: "no kernels", Need: "at least one", Err: ErrMisuse}
	}
	if n, ok := rt.pipes.sets.Load(set); ok {
		return n.(int), nil
	}
	if err := rt.enter(fn); err != nil {
		return 0, err
	}
	defer rt.leave()
	if err := rt.Prewarm(context.Background(), set.names...); err != nil {
		return 0, err
	}
	least := 0
	for i, name := range set.names {
		pl, err := rt.pipeline(&Launch{name: name})
		if err != nil {
			return 0, err
		}
		if n := pl.info.maxThreads; i == 0 || n < least {
			least = n
		}
	}
	if least < executionWidth {
		return 0, &Error{Func: fn, Arg: "set", Have: fmt.Sprintf("a kernel that takes %d threads", least), Need: fmt.Sprintf("at least %d", executionWidth), Err: ErrLimit}
	}
	rt.pipes.sets.Store(set, least)
	return least, nil
}
