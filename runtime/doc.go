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
// [Pass.Copy] and [Pass.Fill] are ordered with dispatches in the same way. With [HazardsManual] only [Pass.Barrier] orders
// dispatches. A closure may start another pass on the same runtime: that one is committed first, and is no part of the
// outer one.
//
// # Memory
//
// A [Slice] is typed device memory; its parts and [View]s refer to the same allocation. Memory is zero when it is new, comes
// from a pool and goes back to it once no work uses it. [Slice.Read] and [Slice.Write] wait for the submitted work that touches
// the same bytes; [Slice.Map] lends the memory itself, and keeps work off it until [Mapping.Unmap]. [Private] memory is the
// device's alone: copies go through the device. [WrapBuffer], [WrapMemory] and [MapFile] take memory that is there already,
// the latter without reading it; [As] makes elements of its bytes. A [TempArena] is for temporaries that end together.
// [WithMemoryBudget] bounds everything, [Runtime.Trim] gives the pool back, [Runtime.MemStats] tells what is held.
//
// # Programs
//
// [Runtime.Record] encodes work once, into an indirect command buffer with its barriers inside; [Program.Replay] then sends a
// handful of messages, whatever the number of dispatches. What a replay computes is what encoding the work anew would, to
// the bit, on every device: where one has no indirect command buffers for compute, replays encode the recorded list again.
// Values that change from replay to replay are device memory that kernels read, or scalars of a [ScalarPool], whose Set is
// refused with [ErrBusy] while a replay that reads them is in flight. [Program.Bind] exchanges memory between replays,
// [Program.ReplayRange] replays a part, and [Join] makes one program of several. [Runtime.Prewarm] makes pipelines before they
// are needed, and [Runtime.AddLibrary] adds kernels. [Runtime.Check] asks whether work would be taken, and keeps nothing.
//
// # Streams
//
// A [Stream] takes work call by call and commits it in chunks on its own, without waiting; results are futures. Use it where
// the work is not known as a whole, such as an evaluator of arrays; [Runtime.Submit] where a pass is one unit, [Runtime.Record]
// where the same work comes again and again. Streams of one runtime share its queue, so that they take turns on the device;
// what sets them apart is that a failure stays within one.
//
// # Seeing
//
// [Runtime.Stats] counts, [Submission.GPUTime] and [WithGPUTimes] give the device's time. [Runtime.StartTrace] and
// [Runtime.WriteTrace] note what host and device do when, down to single kernels, for a trace viewer, and
// [Runtime.Capture] makes a document for Xcode; [Pass.Label], [Pass.PushDebugGroup] and [Pass.InsertDebugSignpost] give
// names. Nothing of this costs anything until it is asked for. docs/tracing.md explains how to look at it.
//
// # Concurrency
//
// The methods of [Runtime], [Program], [Submission], [Slice], [View], [Mapping],
// [TempArena], [ScalarPool] and [Scalar] may be called from
// several goroutines. A [Pass], its [Launch] and a [ScalarBinder] belong to the closure that was given them, and to the
// goroutine it runs on; after the closure has returned they refuse everything with [ErrMisuse]. Two goroutines that use one pass
// at the same time are not told apart: as with a bytes.Buffer, anything may come of it, a panic included. Each can have a pass of
// its own.
//
// # Failures
//
// Every error that this package makes is an [*Error] over one of the sentinels below. A command buffer that fails makes
// the runtime unusable for further work, since what comes later is in the same order: [Runtime.Err] tells, and [Runtime.Reopen]
// starts anew. One of a stream only ends the stream. Either way the memory that failed work wrote is marked: reading it, and
// work that uses it, is an error until the host has written the whole of the allocation. A device that is lost ([ErrDeviceLost])
// or makes no progress within the limit of [WithTimeout] is given up, whoever waits for it or nobody.
//
// Completion is noticed by whoever waits or calls, on his goroutine. While work is in flight a timer looks after what nobody
// waits for, every 25 ms, so that its memory is given back; nothing runs while nothing is in flight, or after Close.
package runtime
