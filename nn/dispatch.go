package nn

import (
	"errors"

	"github.com/ingot-metal/ingot/runtime"
)

// dispatchRows launches threadgroups that reduce rows of n elements, with RowThreads threads each, or with fewer where
// the kernel's pipeline allows no more on this device: the kernels take any number of whole simdgroups.
func dispatchRows(l *runtime.Launch, groups, n int) error {
	for threads := RowThreads(n); ; threads = threads / (2 * SIMDWidth) * SIMDWidth {
		err := l.Dispatch(runtime.D1(groups), runtime.D1(threads))
		if err == nil || threads < 2*SIMDWidth || !errors.Is(err, runtime.ErrLimit) {
			return err
		}
	}
}
