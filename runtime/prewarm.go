package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
)

// Prewarm makes the pipelines of kernels, some at a time, so that their first use does not wait for the device's compiler.
// Kernels that need function constants are refused with the device's reason; those are made on first use, as all are
// that are not prewarmed. It returns the errors of all kernels that failed, joined; the others are ready. When ctx is done, it
// begins no more of them, and returns an error over [ErrTimeout].
func (rt *Runtime) Prewarm(ctx context.Context, kernels ...string) error {
	const fn = "Runtime.Prewarm"
	if err := rt.enter(fn); err != nil {
		return err
	}
	defer rt.leave()
	if ctx == nil {
		ctx = context.Background()
	}
	errs := make([]error, len(kernels))
	var next, ready atomic.Int64
	var wg sync.WaitGroup
	for range min(len(kernels), goruntime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(kernels) {
					return
				}
				if _, errs[i] = rt.pipeline(&Launch{name: kernels[i]}); errs[i] == nil {
					ready.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil && int(next.Load()) < len(kernels) {
		errs = append(errs, &Error{Func: fn, Have: fmt.Sprintf("%d of %d kernels ready", ready.Load(), len(kernels)), Err: because(ErrTimeout, err)})
	}
	return errors.Join(errs...)
}
