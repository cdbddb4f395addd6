package soft

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
)

// A work encodes something with a compute encoder.
type work func(e mtl.ComputeCommandEncoder)

// commit encodes works, each with an encoder of its own, into one command buffer, and commits it.
func (r *rig) commit(q mtl.CommandQueue, works ...work) mtl.CommandBuffer {
	cb := q.CommandBuffer()
	for _, f := range works {
		e := cb.ComputeCommandEncoderWithDispatchType(mtl.DispatchTypeConcurrent)
		f(e)
		e.EndEncoding()
	}
	cb.Commit()
	return cb
}

func (r *rig) ok(cb mtl.CommandBuffer) {
	r.t.Helper()
	cb.WaitUntilCompleted()
	require.Equal(r.t, mtl.CommandBufferStatusCompleted, cb.Status(), "%v", cb.Error())
}

func (r *rig) unordered(cb mtl.CommandBuffer, texts ...string) {
	r.t.Helper()
	cb.WaitUntilCompleted()
	require.Equal(r.t, mtl.CommandBufferStatusError, cb.Status())
	for _, text := range append(texts, "hazard between encoders") {
		require.ErrorContains(r.t, cb.Error(), text)
	}
}

func (r *rig) buffer(o mtl.ResourceOptions) mtl.Buffer {
	b := r.dev.NewBufferWithLength(1024, o)
	require.False(r.t, b.IsNil())
	r.t.Cleanup(b.Release)
	return b
}

// TestEncoders has pairs of encoders that touch one buffer, in one command buffer and in two.
func TestEncoders(t *testing.T) {
	for name, two := range map[string]bool{"one command buffer": false, "two command buffers": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			out := r.buffer(0)
			pair := func(a, b work) mtl.CommandBuffer {
				if !two {
					return r.commit(r.queue, a, b)
				}
				r.commit(r.queue, a)
				return r.commit(r.queue, b)
			}
			tracked, untracked := r.buffer(0), r.buffer(mtl.ResourceHazardTrackingModeUntracked)
			for _, c := range []struct {
				name string
				bad  bool
				a, b func(x mtl.Buffer) work
			}{
				{"write, write", true, r.puts(0, 8), r.puts(0, 8)},
				{"write, read", true, r.puts(0, 8), r.gets(out, 4, 8)},
				{"read, write", true, r.gets(out, 0, 8), r.puts(7, 8)},
				{"read, read", false, r.gets(out, 0, 8), r.gets(r.buffer(0), 0, 8)},
				{"other bytes", false, r.puts(0, 8), r.puts(8, 8)},
			} {
				r.ok(pair(c.a(tracked), c.b(tracked)))
				cb := pair(c.a(untracked), c.b(untracked))
				if c.bad {
					r.unordered(cb, "not tracked", "bytes ")
				} else {
					r.ok(cb)
				}
			}

			// What orders them all the same.
			fence := r.dev.NewFence()
			t.Cleanup(fence.Release)
			a, b := r.puts(0, 8)(untracked), r.gets(out, 0, 8)(untracked)
			r.ok(pair(func(e mtl.ComputeCommandEncoder) { a(e); e.UpdateFence(fence) },
				func(e mtl.ComputeCommandEncoder) { e.WaitForFence(fence); b(e) }))
			other := r.dev.NewFence()
			t.Cleanup(other.Release)
			r.unordered(pair(func(e mtl.ComputeCommandEncoder) { a(e); e.UpdateFence(fence) },
				func(e mtl.ComputeCommandEncoder) { e.WaitForFence(other); b(e) }))
			// Another resource, which is tracked, orders the whole encoders.
			r.ok(pair(func(e mtl.ComputeCommandEncoder) { a(e); r.put(e, tracked, 0, 1, 1) },
				func(e mtl.ComputeCommandEncoder) { b(e); r.get(e, tracked, r.buffer(0), 100, 1) }))
			r.ok(pair(a, func(e mtl.ComputeCommandEncoder) {
				e.BarrierAfterQueueStages(mtl.StageDispatch, mtl.StageDispatch)
				b(e)
			}))
		})
	}
}

func (r *rig) puts(from, n uint32) func(mtl.Buffer) work {
	return func(x mtl.Buffer) work {
		return func(e mtl.ComputeCommandEncoder) { r.put(e, x, from, n, 7) }
	}
}

func (r *rig) gets(out mtl.Buffer, from, n uint32) func(mtl.Buffer) work {
	return func(x mtl.Buffer) work {
		return func(e mtl.ComputeCommandEncoder) { r.get(e, x, out, from, n) }
	}
}

// TestThreeEncoders passes order on: the first is before the third since the second is between them.
func TestThreeEncoders(t *testing.T) {
	r := newRig(t, Options{})
	x, between, out := r.buffer(mtl.ResourceHazardTrackingModeUntracked), r.buffer(0), r.buffer(0)
	first := func(e mtl.ComputeCommandEncoder) { r.put(e, x, 0, 8, 1); r.put(e, between, 0, 8, 1) }
	second := r.puts(8, 8)(between)
	third := func(e mtl.ComputeCommandEncoder) { r.get(e, x, out, 0, 8); r.get(e, between, r.buffer(0), 0, 8) }
	r.ok(r.commit(r.queue, first, second, third))
	r.unordered(r.commit(r.queue, first, second, r.gets(out, 0, 8)(x)))
}

// TestHostOrders commits after the host has seen what came before.
func TestHostOrders(t *testing.T) {
	r := newRig(t, Options{})
	x := r.buffer(mtl.ResourceHazardTrackingModeUntracked)
	w := r.puts(0, 8)(x)
	r.ok(r.commit(r.queue, w))
	r.ok(r.commit(r.queue, w))
	event := r.dev.NewSharedEvent()
	t.Cleanup(event.Release)
	signal := func(v uint64) mtl.CommandBuffer {
		cb := r.queue.CommandBuffer()
		e := cb.ComputeCommandEncoder()
		w(e)
		e.EndEncoding()
		cb.EncodeSignalEvent(event.Event, v)
		cb.Commit()
		return cb
	}
	signal(1)
	require.True(t, event.WaitUntilSignaledValue(1, 10_000))
	cb := signal(2)
	for event.SignaledValue() < 2 {
	}
	r.ok(r.commit(r.queue, w))
	r.ok(cb)
}

// TestQueues has two queues use one buffer, which Metal does not order whatever its tracking.
func TestQueues(t *testing.T) {
	r := newRig(t, Options{})
	q := newQueue(t, r.dev)
	x := r.buffer(0)
	event := r.dev.NewEvent()
	t.Cleanup(event.Release)
	// The device learns that two queues use the buffer when the second one does.
	r.ok(r.commit(q, r.puts(0, 8)(x)))
	r.ok(r.commit(r.queue, r.puts(0, 8)(x)))

	cb := q.CommandBuffer()
	e := cb.ComputeCommandEncoder()
	r.put(e, x, 0, 8, 5)
	e.EndEncoding()
	cb.EncodeSignalEvent(event, 1)
	cb.Commit()
	late := r.queue.CommandBuffer()
	late.EncodeWaitForEvent(event, 1)
	e = late.ComputeCommandEncoder()
	r.put(e, x, 0, 8, 6)
	e.EndEncoding()
	late.Commit()
	r.ok(late)
	r.ok(cb)

	// Nothing that Metal knows of orders these two. They run one after the other all the same, since the race detector would be right
	// about them: the host lets the second begin when the first has ended, which it has not asked the device.
	gate := r.dev.NewSharedEvent()
	t.Cleanup(gate.Release)
	first := r.commit(q, r.puts(0, 8)(x))
	second := r.queue.CommandBuffer()
	second.EncodeWaitForEvent(gate.Event, 1)
	e = second.ComputeCommandEncoder()
	r.put(e, x, 4, 8, 7)
	e.EndEncoding()
	second.Commit()
	ended := valueOf[*commandBuffer](uintptr(first.ID()))
	waitFor(t, "the first to end", func() bool {
		ended.mu.Lock()
		defer ended.mu.Unlock()
		return ended.status >= mtl.CommandBufferStatusCompleted
	})
	gate.SetSignaledValue(1)
	r.unordered(second, "of another queue", "no event orders them")
	r.ok(first)
	r.commit(q, r.puts(0, 8)(x))
	r.ok(r.commit(r.queue, r.puts(8, 8)(x)))
}

// TestDeclarations executes indirect commands whose buffers Metal knows of in different ways.
func TestDeclarations(t *testing.T) {
	r := newRig(t, Options{})
	x, out := r.buffer(0), r.buffer(0)
	x.SetLabel("x")
	value := words(t, r.dev, 0, 9)
	icb := r.newICB(1, nil)
	c := icb.IndirectComputeCommandAtIndex(0)
	c.SetComputePipelineState(r.pipeline("put"))
	c.SetKernelBuffer(x, 0, 0)
	c.SetKernelBuffer(value, 0, 1)
	c.ConcurrentDispatchThreads(size(8), size(8))
	desc, err := mtl.NewResidencySetDescriptor(r.dev)
	require.NoError(t, err)
	defer desc.Release()
	set, err := r.dev.NewResidencySetWithDescriptor(desc)
	require.NoError(t, err)
	t.Cleanup(set.Release)
	set.AddAllocation(x.Allocation)
	set.AddAllocation(value.Allocation)
	set.Commit()
	r.queue.AddResidencySet(set)

	replay := func(usage mtl.ResourceUsage) work {
		return func(e mtl.ComputeCommandEncoder) {
			if usage != 0 {
				e.UseResource(x.Resource, usage)
			}
			e.ExecuteCommandsInBuffer(icb, mtl.Range{Length: 1})
		}
	}
	read := r.gets(out, 0, 8)(x)
	const both = mtl.ResourceUsageRead | mtl.ResourceUsageWrite
	r.ok(r.commit(r.queue, replay(both), replay(both), read, replay(both)))
	// Residency declares nothing: the device learns so the first time, and finds it from then on.
	r.ok(r.commit(r.queue, replay(0)))
	r.unordered(r.commit(r.queue, replay(0), replay(0)), `buffer "x"`, "command 0 of")
	r.unordered(r.commit(r.queue, replay(0), read), `buffer "x"`)
	r.unordered(r.commit(r.queue, replay(mtl.ResourceUsageRead), replay(mtl.ResourceUsageRead)), `buffer "x"`)
	r.ok(r.commit(r.queue, replay(both), read, replay(both)))
}

// TestBlitOrder copies and fills what is not tracked.
func TestBlitOrder(t *testing.T) {
	r := newRig(t, Options{})
	tracked, untracked := r.buffer(0), r.buffer(mtl.ResourceHazardTrackingModeUntracked)
	for _, x := range []mtl.Buffer{tracked, untracked} {
		cb := r.queue.CommandBuffer()
		e := cb.ComputeCommandEncoder()
		r.put(e, x, 0, 8, 1)
		e.EndEncoding()
		b := cb.BlitCommandEncoder()
		b.CopyFromBuffer(x, 0, r.buffer(0), 0, 64)
		b.EndEncoding()
		cb.Commit()
		if x == tracked {
			r.ok(cb)
		} else {
			r.unordered(cb, "a blit reads bytes 0 to 32")
		}
	}
}

// TestHeapOrder has buffers of heaps, which are tracked where the heap is.
func TestHeapOrder(t *testing.T) {
	r := newRig(t, Options{})
	for _, mode := range []mtl.HazardTrackingMode{mtl.HazardTrackingModeDefault, mtl.HazardTrackingModeTracked} {
		desc, err := mtl.NewHeapDescriptor(r.dev)
		require.NoError(t, err)
		desc.SetSize(4096)
		desc.SetStorageMode(mtl.StorageModeShared)
		desc.SetHazardTrackingMode(mode)
		heap := r.dev.NewHeapWithDescriptor(desc)
		desc.Release()
		require.False(t, heap.IsNil())
		x := heap.NewBufferWithLength(1024, 0)
		require.False(t, x.IsNil())
		cb := r.commit(r.queue, r.puts(0, 8)(x), r.puts(0, 8)(x))
		if mode == mtl.HazardTrackingModeTracked {
			r.ok(cb)
		} else {
			r.unordered(cb)
		}
		x.Release()
		heap.Release()
	}
}

// TestManyEncoders goes round the ledger some times.
func TestManyEncoders(t *testing.T) {
	r := newRig(t, Options{})
	x, y := r.buffer(mtl.ResourceHazardTrackingModeUntracked), r.buffer(0)
	for range 3 * orderWindow {
		r.ok(r.commit(r.queue, r.puts(0, 8)(x), r.puts(0, 8)(y), r.gets(r.buffer(0), 0, 4)(y)))
	}
	r.unordered(r.commit(r.queue, r.puts(0, 8)(x), r.puts(0, 8)(x)))
}
