package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"sync"
	"sync/atomic"
)

// A Specialization names a pipeline: a kernel and its function constants.
type Specialization struct {
	Kernel    string
	Constants []FunctionConstant
}

// A FunctionConstant is the value of one function constant, made by [ConstantBool] and its likes.
type FunctionConstant struct{ c constant }

// ConstantBool is the value of function constant index, which is a bool.
func ConstantBool(index int, v bool) FunctionConstant {
	return FunctionConstant{constant{index, constantBool, boolBits(v)}}
}

// ConstantUint32 is the value of function constant index, which is a uint.
func ConstantUint32(index int, v uint32) FunctionConstant {
	return FunctionConstant{constant{index, constantUint32, v}}
}

// ConstantInt32 is the value of function constant index, which is an int.
func ConstantInt32(index int, v int32) FunctionConstant {
	return FunctionConstant{constant{index, constantInt32, uint32(v)}}
}

// ConstantFloat32 is the value of function constant index, which is a float.
func ConstantFloat32(index int, v float32) FunctionConstant {
	return FunctionConstant{constant{index, constantFloat32, math.Float32bits(v)}}
}

// Prewarm makes the pipelines of kernels, some at a time, so that their first use does not wait for the device's compiler.
// Kernels that need function constants are refused with the device's reason: [Runtime.PrewarmSpecialized] makes those. It returns
// the errors of all kernels that failed, joined; the others are ready. When ctx is done, it begins no more of them, and returns an
// error over [ErrTimeout].
func (rt *Runtime) Prewarm(ctx context.Context, kernels ...string) error {
	return rt.prewarm(ctx, "Runtime.Prewarm", len(kernels), func(i int) *Launch { return &Launch{name: kernels[i]} })
}

// PrewarmSpecialized is [Runtime.Prewarm] of kernels with function constants.
func (rt *Runtime) PrewarmSpecialized(ctx context.Context, list ...Specialization) error {
	return rt.prewarm(ctx, "Runtime.PrewarmSpecialized", len(list), func(i int) *Launch {
		l := &Launch{name: list[i].Kernel}
		for _, c := range list[i].Constants {
			l.constant(c.c.index, c.c.kind, c.c.bits)
		}
		return l
	})
}

// prewarm makes the pipelines of n launches.
func (rt *Runtime) prewarm(ctx context.Context, fn string, n int, launch func(i int) *Launch) error {
	if err := rt.enter(fn); err != nil {
		return err
	}
	defer rt.leave()
	if ctx == nil {
		ctx = context.Background()
	}
	errs := make([]error, n)
	var next, ready atomic.Int64
	var wg sync.WaitGroup
	for range min(n, goruntime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				l := launch(i)
				if l.err != nil {
					errs[i] = l.err
				} else if _, errs[i] = rt.pipeline(l); errs[i] == nil {
					ready.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil && int(next.Load()) < n {
		errs = append(errs, &Error{Func: fn, Have: fmt.Sprintf("%d of %d kernels ready", ready.Load(), n), Err: because(ErrTimeout, err)})
	}
	return errors.Join(errs...)
}
