// Package runtime runs compute kernels on a Metal device: typed memory, passes whose hazards are tracked, programs that
// are recorded once into an indirect command buffer and replayed, and errors instead of panics and hangs.
//
//	rt, err := runtime.Open()
//	x, err := runtime.SliceOf(rt, []float32{1, 2, 3})
//	err = rt.Run(func(p *runtime.Pass) error {
//		k := p.Kernel("my_kernel")
//		k.ReadWrite(0, x.View())
//		k.Uint32(1, uint32(x.Len()))
//		return k.Dispatch(runtime.Size{X: 1, Y: 1, Z: 1}, runtime.Size{X: 32, Y: 1, Z: 1})
//	})
//
// [Open] takes the best device of the system: the GPU on macOS, the software device of package mtl/soft elsewhere.
//
// # Order
//
// Work takes effect as if dispatches ran one after another in the order in which they were encoded, and submissions in
// the order in which they were committed. Dispatches that do not touch each other's bytes may run at the same time: a
// pass notes what each one reads and writes, by byte range, and separates only those that conflict.
//
// # Concurrency
//
// The methods of [Runtime], [Program], [Submission], [Slice], [View], [ScalarPool] and [Scalar] may be called from
// several goroutines. A [Pass], its [Launch] and a [ScalarBinder] belong to the closure that was given them, and to the
// goroutine it runs on; after the closure has returned they refuse everything with [ErrMisuse].
//
// # Failures
//
// Every error that this package makes is an [*Error] over one of the sentinels below. A command buffer that fails, or
// that makes no progress within the limit of [WithTimeout], makes the runtime unusable for further work, since nothing
// can be said about the memory it wrote: [Runtime.Err] tells, and [Runtime.Reopen] starts anew.
package runtime
