package nn

import (
	"errors"

	"github.com/ingot-metal/ingot/runtime"
)

// dispatchRows launches threadgroups that reduce rows of n elements, with RowThreads threads each.
func dispatchRows(l *runtime.Launch, groups, n int) error {
	return dispatchGroups(l, groups, RowThreads(n))
}

// dispatchGroups launches threadgroups of that many threads, or of fewer where the kernel's pipeline allows no more on this
// device: the kernels take any number of whole simdgroups.
func dispatchGroups(l *runtime.Launch, groups, threads int) error {
	return dispatchSimdgroups(l, runtime.D1(groups), threads)
}

// dispatchSimdgroups is dispatchGroups for a grid of more dimensions.
func dispatchSimdgroups(l *runtime.Launch, groups runtime.Size, threads int) error {
	for ; ; threads = threads / (2 * SIMDWidth) * SIMDWidth {
		err := l.Dispatch(groups, runtime.D1(threads))
		if err == nil || threads < 2*SIMDWidth || !errors.Is(err, runtime.ErrLimit) {
			return err
		}
	}
}

// dispatchElements launches a thread for each of n elements, ElementThreads to a threadgroup, or fewer where the kernel's
// pipeline allows no more on this device.
func dispatchElements(l *runtime.Launch, n int) error {
	for threads := ElementThreads; ; threads /= 2 {
		err := l.Dispatch(runtime.D1(ceilDiv(n, threads)), runtime.D1(threads))
		if err == nil || threads <= SIMDWidth || !errors.Is(err, runtime.ErrLimit) {
			return err
		}
	}
}
