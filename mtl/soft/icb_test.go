package soft

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// newICB makes an indirect command buffer; change may alter the descriptor before.
func (r *rig) newICB(n uint, change func(d mtl.IndirectCommandBufferDescriptor)) mtl.IndirectCommandBuffer {
	icb := r.tryICB(n, change)
	require.False(r.t, icb.IsNil(), "%v", Refusal(r.dev))
	r.t.Cleanup(icb.Release)
	return icb
}

func (r *rig) tryICB(n uint, change func(d mtl.IndirectCommandBufferDescriptor)) mtl.IndirectCommandBuffer {
	d, err := mtl.NewIndirectCommandBufferDescriptor(r.dev)
	require.NoError(r.t, err)
	defer d.Release()
	d.SetCommandTypes(mtl.IndirectCommandTypeConcurrentDispatch | mtl.IndirectCommandTypeConcurrentDispatchThreads)
	d.SetInheritBuffers(false)
	d.SetInheritPipelineState(false)
	d.SetMaxKernelBufferBindCount(31)
	if change != nil {
		change(d)
	}
	return r.dev.NewIndirectCommandBufferWithDescriptor(d, n, 0)
}

// record writes command i: a kernel with buffers from slot 0 on, for n threads.
func (r *rig) record(icb mtl.IndirectCommandBuffer, i uint, kernel string, n uint, buffers ...mtl.Buffer) mtl.IndirectComputeCommand {
	c := icb.IndirectComputeCommandAtIndex(i)
	c.SetComputePipelineState(r.pipeline(kernel))
	for k, b := range buffers {
		c.SetKernelBuffer(b, 0, uint(k))
	}
	c.ConcurrentDispatchThreads(size(n), size(min(n, 64)))
	return c
}

// execute encodes the execution of commands whose buffers are declared.
func (r *rig) execute(icb mtl.IndirectCommandBuffer, at, n uint, declared ...mtl.Buffer) mtl.CommandBuffer {
	return r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
		for _, b := range declared {
			e.UseResource(b.Resource, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
		}
		e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: at, Length: n})
	})
}

// TestReplayEqualsDirect records a chain and compares each replay with the same work encoded directly.
func TestReplayEqualsDirect(t *testing.T) {
	for _, order := range []Order{Encoded, Reversed, Shuffled} {
		r := newRig(t, Options{Order: order})
		direct, replayed := words(t, r.dev, 0, 1, 2, 3), words(t, r.dev, 0, 1, 2, 3)
		icb := r.newICB(10, nil)
		require.EqualValues(t, 10, icb.Size())
		for i := range uint(10) {
			c := r.record(icb, i, []string{"twice_plus_one", "plus_ten"}[i%2], 4, replayed)
			if i > 0 {
				c.SetBarrier()
			}
		}
		for range 3 {
			mustRun(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
				for i := range 10 {
					r.run(e, []string{"twice_plus_one", "plus_ten"}[i%2], 4, direct)
				}
			}))
			mustRun(t, r.execute(icb, 0, 10, replayed))
			require.Equal(t, wordsOf(direct), wordsOf(replayed))
		}
		require.EqualValues(t, 30, Stats(r.dev).IndirectCommands)
	}
}

// TestBarriersOrder finds the hazard when a barrier is missing.
func TestBarriersOrder(t *testing.T) {
	r := newRig(t, Options{})
	x := words(t, r.dev, 1, 1, 1, 1)
	x.SetLabel("state")
	icb := r.newICB(2, nil)
	icb.SetLabel("step")
	r.record(icb, 0, "twice_plus_one", 4, x)
	c := r.record(icb, 1, "plus_ten", 4, x)
	mustFail(t, r.execute(icb, 0, 2, x), mtl.CommandBufferErrorInvalidResource, "hazard without a barrier",
		`command 1 of indirect command buffer "step" (kernel "plus_ten")`, `bytes 0 to 16 of buffer "state"`, "slot 0 (x)",
		`command 0 of indirect command buffer "step" (kernel "twice_plus_one")`)
	serial := r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.UseResource(x.Resource, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
		e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 0, Length: 2})
	})
	mustFail(t, serial, mtl.CommandBufferErrorInvalidResource, "hazard without a barrier")
	c.SetBarrier()
	mustRun(t, r.execute(icb, 0, 2, x))
	c.ClearBarrier()
	require.ErrorContains(t, func() error {
		cb := r.execute(icb, 0, 2, x)
		cb.Commit()
		cb.WaitUntilCompleted()
		return cb.Error()
	}(), "hazard")
	// A barrier of the encoder between two executions orders them as well.
	mustRun(t, r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
		e.UseResource(x.Resource, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
		e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 0, Length: 1})
		e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
		e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 1, Length: 1})
	}))
}

// TestUndeclared wants buffers that only indirect commands name to be declared, or resident.
func TestUndeclared(t *testing.T) {
	r := newRig(t, Options{})
	x := words(t, r.dev, 1)
	x.SetLabel("state")
	icb := r.newICB(1, nil)
	r.record(icb, 0, "plus_ten", 1, x)
	mustFail(t, r.execute(icb, 0, 1), mtl.CommandBufferErrorInvalidResource,
		`buffer "state" at slot 0 (x) of kernel "plus_ten" is neither declared with useResource nor resident`)

	desc, err := mtl.NewResidencySetDescriptor(r.dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetLabel("set")
	set, err := r.dev.NewResidencySetWithDescriptor(desc)
	require.NoError(t, err)
	defer set.Release()
	require.Equal(t, "set", set.Label())
	set.AddAllocation(x.Allocation)
	require.True(t, set.ContainsAllocation(x.Allocation))
	require.EqualValues(t, 1, set.AllocationCount())
	use := func() mtl.CommandBuffer {
		cb := r.queue.CommandBuffer()
		cb.UseResidencySet(set)
		e := cb.ComputeCommandEncoder()
		e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 0, Length: 1})
		e.EndEncoding()
		return cb
	}
	mustFail(t, use(), mtl.CommandBufferErrorInvalidResource, "nor resident") // not committed yet
	set.Commit()
	set.RequestResidency()
	require.EqualValues(t, 4, set.AllocatedSize())
	require.Equal(t, x.ID(), set.AllAllocations().At(0).ID())
	mustRun(t, use())
	r.queue.AddResidencySet(set)
	mustRun(t, r.execute(icb, 0, 1))
	r.queue.RemoveResidencySet(set)
	mustFail(t, r.execute(icb, 0, 1), mtl.CommandBufferErrorInvalidResource, "nor resident")
	r.queue.AddResidencySets([]mtl.ResidencySet{set, set})
	mustRun(t, r.execute(icb, 0, 1))
	r.queue.RemoveResidencySets([]mtl.ResidencySet{set})
	y := words(t, r.dev, 1)
	set.AddAllocations([]mtl.Allocation{y.Allocation, x.Allocation})
	require.EqualValues(t, 2, set.AllocationCount())
	set.RemoveAllocation(y.Allocation)
	set.RemoveAllocations([]mtl.Allocation{y.Allocation})
	require.False(t, set.ContainsAllocation(y.Allocation))
	set.RemoveAllAllocations()
	set.EndResidency()
	set.Commit()
	require.Zero(t, set.AllocationCount())
	require.EqualValues(t, 31, wordsOf(x)[0])
}

// TestHeapDeclared declares a whole heap.
func TestHeapDeclared(t *testing.T) {
	r := newRig(t, Options{})
	desc, err := mtl.NewHeapDescriptor(r.dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetSize(1024)
	desc.SetStorageMode(mtl.StorageModeShared)
	heap := r.dev.NewHeapWithDescriptor(desc)
	defer heap.Release()
	x := heap.NewBufferWithLength(4, 0)
	defer x.Release()
	icb := r.newICB(1, nil)
	r.record(icb, 0, "plus_ten", 1, x)
	mustRun(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.UseHeap(heap)
		e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 0, Length: 1})
	}))
	require.EqualValues(t, 10, wordsOf(x)[0])
}

// TestInherit takes pipeline and buffers from the encoder.
func TestInherit(t *testing.T) {
	r := newRig(t, Options{})
	x, y := words(t, r.dev, 1, 1), words(t, r.dev, 1, 1)
	icb := r.newICB(2, func(d mtl.IndirectCommandBufferDescriptor) {
		d.SetInheritBuffers(true)
		d.SetInheritPipelineState(true)
		d.SetMaxKernelBufferBindCount(0)
	})
	for i := range uint(2) {
		c := icb.IndirectComputeCommandAtIndex(i)
		c.ConcurrentDispatchThreadgroups(size(1), size(2))
		if i > 0 {
			c.SetBarrier()
		}
	}
	encode := func(kernel string, b mtl.Buffer) mtl.CommandBuffer {
		return r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
			e.SetComputePipelineState(r.pipeline(kernel))
			e.SetBuffer(b, 0, 0)
			e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 0, Length: 2})
		})
	}
	mustRun(t, encode("plus_ten", x))
	mustRun(t, encode("twice_plus_one", y))
	require.Equal(t, []uint32{21, 21}, wordsOf(x))
	require.Equal(t, []uint32{7, 7}, wordsOf(y))
	mustFail(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 0, Length: 1})
	}), mtl.CommandBufferErrorInvalidResource, "has no pipeline")
	icb.IndirectComputeCommandAtIndex(0).SetKernelBuffer(x, 0, 0)
	mustFail(t, encode("plus_ten", x), mtl.CommandBufferErrorInvalidResource, "command 0", "the descriptor said inheritBuffers")
}

func TestICBLimits(t *testing.T) {
	r := newRig(t, Options{})
	x := words(t, r.dev, 1)
	for _, c := range []struct {
		n      uint
		change func(d mtl.IndirectCommandBufferDescriptor)
		text   string
	}{
		{maxIndirectCommands + 1, nil, "from 1 to 16384"},
		{0, nil, "from 1 to 16384"},
		{1, func(d mtl.IndirectCommandBufferDescriptor) { d.SetMaxKernelBufferBindCount(32) }, "there are 31 slots"},
		{1, func(d mtl.IndirectCommandBufferDescriptor) { d.SetCommandTypes(mtl.IndirectCommandTypeDraw) }, "only concurrent dispatches"},
	} {
		require.True(t, r.tryICB(c.n, c.change).IsNil())
		require.ErrorContains(t, Refusal(r.dev), c.text)
	}
	fn := r.lib.NewFunctionWithName("plus_ten")
	defer fn.Release()
	plain, err := r.dev.NewComputePipelineStateWithFunction(fn)
	require.NoError(t, err)
	defer plain.Release()
	require.False(t, plain.SupportIndirectCommandBuffers())
	for _, c := range []struct {
		name string
		do   func(c mtl.IndirectComputeCommand)
		text string
	}{
		{"pipeline", func(c mtl.IndirectComputeCommand) { c.SetComputePipelineState(plain) }, "without supportIndirectCommandBuffers"},
		{"no pipeline", func(c mtl.IndirectComputeCommand) { c.SetComputePipelineState(mtl.ComputePipelineState{}) }, "nil is no pipeline"},
		{"slot", func(c mtl.IndirectComputeCommand) { c.SetKernelBuffer(x, 0, 4) }, "maxKernelBufferBindCount is 4"},
		{"offset", func(c mtl.IndirectComputeCommand) { c.SetKernelBuffer(x, math.MaxUint32+1, 0) }, "does not fit into 32 bits"},
		{"memory", func(c mtl.IndirectComputeCommand) { c.SetThreadgroupMemoryLength(8, 0) }, "multiples of 16"},
		{"stage input", func(c mtl.IndirectComputeCommand) { c.SetStageInRegion(mtl.Region{}) }, "not supported"},
		{"kind", func(c mtl.IndirectComputeCommand) { c.ConcurrentDispatchThreadgroups(size(1), size(1)) }, "commandTypes are 0x40"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer objc.NewPool().Drain()
			icb := r.tryICB(2, func(d mtl.IndirectCommandBufferDescriptor) {
				d.SetMaxKernelBufferBindCount(4)
				d.SetCommandTypes(mtl.IndirectCommandTypeConcurrentDispatchThreads)
			})
			defer icb.Release()
			cmd := r.record(icb, 1, "plus_ten", 1, x)
			c.do(cmd)
			mustFail(t, r.execute(icb, 0, 2, x), mtl.CommandBufferErrorInvalidResource, "command 1", c.text)
			mustRun(t, r.execute(icb, 0, 1, x)) // the other command is empty
			cmd.Reset()
			r.record(icb, 1, "plus_ten", 1, x)
			mustRun(t, r.execute(icb, 0, 2, x))
		})
	}
	icb := r.newICB(2, nil)
	mustFail(t, r.execute(icb, 1, 2), mtl.CommandBufferErrorInvalidResource, "commands 1 to 3")
	require.True(t, icb.IndirectComputeCommandAtIndex(2).IsNil())
	mustFail(t, r.queue.CommandBuffer(), mtl.CommandBufferErrorInternal, "indirectComputeCommandAtIndex: 2")
}

// TestOffsetsWrap drops the upper half of an offset, as hardware does.
func TestOffsetsWrap(t *testing.T) {
	r := newRig(t, Options{OffsetsWrap: true})
	x := words(t, r.dev, 1, 1)
	icb := r.newICB(1, nil)
	c := r.record(icb, 0, "plus_ten", 1, x)
	c.SetKernelBuffer(x, 1<<32+4, 0)
	mustRun(t, r.execute(icb, 0, 1, x))
	require.Equal(t, []uint32{1, 11}, wordsOf(x))
}

// TestICBHoldsNothing finds buffers and pipelines that were released under an indirect command buffer.
func TestICBHoldsNothing(t *testing.T) {
	r := newRig(t, Options{})
	x := r.dev.NewBufferWithLength(4, 0)
	x.SetLabel("gone")
	icb := r.newICB(1, nil)
	r.record(icb, 0, "plus_ten", 1, x)
	x.Release()
	mustFail(t, r.execute(icb, 0, 1), mtl.CommandBufferErrorInvalidResource, `buffer "gone"`, "has been released")

	y := words(t, r.dev, 1)
	fn := r.lib.NewFunctionWithName("plus_ten")
	desc, err := mtl.NewComputePipelineDescriptor(r.dev)
	require.NoError(t, err)
	desc.SetComputeFunction(fn)
	desc.SetSupportIndirectCommandBuffers(true)
	p, _, err := r.dev.NewComputePipelineStateWithDescriptor(desc, 0)
	require.NoError(t, err)
	c := icb.IndirectComputeCommandAtIndex(0)
	c.SetComputePipelineState(p)
	c.SetKernelBuffer(y, 0, 0)
	for _, o := range []mtl.Object{fn.Object, desc.Object, p.Object} {
		o.Release()
	}
	mustFail(t, r.execute(icb, 0, 1, y), mtl.CommandBufferErrorInvalidResource, `the pipeline of kernel "plus_ten" has been released`)
}

// TestFirstFamilies wants each pipeline of an indirect command buffer to be dispatched once with nothing to do.
func TestFirstFamilies(t *testing.T) {
	r := newRig(t, Options{Families: AppleFamilies(8)})
	x := words(t, r.dev, 1)
	icb := r.newICB(1, nil)
	r.record(icb, 0, "plus_ten", 1, x)
	mustFail(t, r.execute(icb, 0, 1, x), mtl.CommandBufferErrorInvalidResource, `kernel "plus_ten" must first be set on the encoder`)
	mustRun(t, r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(r.pipeline("plus_ten"))
		e.DispatchThreadgroups(mtl.Size{}, mtl.Size{})
		e.UseResource(x.Resource, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
		e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 0, Length: 1})
	}))
	require.EqualValues(t, 11, wordsOf(x)[0])
}

func TestNoIndirectCompute(t *testing.T) {
	r := newRig(t, Options{NoIndirectCompute: true})
	require.True(t, r.tryICB(1, nil).IsNil())
	require.ErrorContains(t, Refusal(r.dev), "no indirect command buffers for compute")
	fn := r.lib.NewFunctionWithName("plus_ten")
	defer fn.Release()
	desc, err := mtl.NewComputePipelineDescriptor(r.dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetComputeFunction(fn)
	desc.SetSupportIndirectCommandBuffers(true)
	_, _, err = r.dev.NewComputePipelineStateWithDescriptor(desc, 0)
	require.ErrorContains(t, err, "no indirect command buffers for compute")
}

// TestBlitCommands resets, copies and optimises commands in the order of the queue.
func TestBlitCommands(t *testing.T) {
	r := newRig(t, Options{})
	x := words(t, r.dev, 1)
	from, to := r.newICB(2, nil), r.newICB(4, nil)
	r.record(from, 0, "plus_ten", 1, x)
	r.record(from, 1, "twice_plus_one", 1, x).SetBarrier()
	cb := r.queue.CommandBuffer()
	e := cb.BlitCommandEncoder()
	e.CopyIndirectCommandBuffer(from, mtl.Range{Location: 0, Length: 2}, to, 1)
	e.OptimizeIndirectCommandBuffer(to, mtl.Range{Location: 0, Length: 4})
	e.ResetCommandsInBuffer(from, mtl.Range{Location: 0, Length: 2})
	e.EndEncoding()
	mustRun(t, cb)
	mustRun(t, r.execute(from, 0, 2))
	require.EqualValues(t, 1, wordsOf(x)[0])
	mustRun(t, r.execute(to, 0, 4, x))
	require.EqualValues(t, 23, wordsOf(x)[0])
	to.ResetWithRange(mtl.Range{Location: 1, Length: 1})
	mustRun(t, r.execute(to, 0, 4, x))
	require.EqualValues(t, 47, wordsOf(x)[0])

	other := r.newICB(2, func(d mtl.IndirectCommandBufferDescriptor) { d.SetMaxKernelBufferBindCount(3) })
	cb = r.queue.CommandBuffer()
	e = cb.BlitCommandEncoder()
	e.CopyIndirectCommandBuffer(from, mtl.Range{Location: 0, Length: 1}, other, 0)
	e.EndEncoding()
	mustFail(t, cb, mtl.CommandBufferErrorInvalidResource, "different descriptors")
}

// TestIndirectRange reads the range of an execution from memory that the same encoder writes before.
func TestIndirectRange(t *testing.T) {
	r := newRig(t, Options{})
	x, y, rng := words(t, r.dev, 1), words(t, r.dev, 1), words(t, r.dev, 0, 0, 0)
	icb := r.newICB(2, nil)
	r.record(icb, 0, "plus_ten", 1, x)
	r.record(icb, 1, "plus_ten", 1, y)
	encode := func(kind mtl.DispatchType, at uint) mtl.CommandBuffer {
		return r.encode(kind, func(e mtl.ComputeCommandEncoder) {
			e.UseResource(x.Resource, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
			e.UseResource(y.Resource, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
			e.SetComputePipelineState(r.pipeline("put"))
			e.SetBuffer(rng, 0, 0)
			e.SetBytes(constants(1, 1), 1) // rng[1] = 1, rng[2] = 1
			e.DispatchThreads(size(2), size(2))
			e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
			e.ExecuteCommandsInBufferIndirectBuffer(icb, rng, at)
		})
	}
	mustRun(t, encode(mtl.DispatchTypeSerial, 4))
	mustRun(t, encode(mtl.DispatchTypeConcurrent, 4))
	require.EqualValues(t, 1, wordsOf(x)[0])
	require.EqualValues(t, 21, wordsOf(y)[0])
	mustFail(t, encode(mtl.DispatchTypeSerial, 8), mtl.CommandBufferErrorInvalidResource, "a range at offset 8")
}

// TestHazardWithIndirectRange finds a hazard between a dispatch and a command whose range was read from memory later.
func TestHazardWithIndirectRange(t *testing.T) {
	r := newRig(t, Options{})
	x, y, rng := words(t, r.dev, 1, 1), words(t, r.dev, 1, 1), words(t, r.dev, 0, 1)
	icb := r.newICB(2, nil)
	r.record(icb, 0, "plus_ten", 2, x)
	r.record(icb, 1, "plus_ten", 2, y)
	encode := func(b mtl.Buffer) mtl.CommandBuffer {
		return r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
			e.UseResources([]mtl.Resource{x.Resource, y.Resource}, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
			r.put(e, b, 1, 1, 5)
			e.ExecuteCommandsInBufferIndirectBuffer(icb, rng, 0)
		})
	}
	mustFail(t, encode(x), mtl.CommandBufferErrorInvalidResource, "hazard without a barrier", "bytes 4 to 8")
	mustRun(t, encode(y))
	// The range is read by the GPU, too.
	mustFail(t, r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
		r.put(e, rng, 1, 1, 1)
		e.ExecuteCommandsInBufferIndirectBuffer(icb, rng, 0)
	}), mtl.CommandBufferErrorInvalidResource, "hazard without a barrier", "the execution of indirect command buffer", "bytes 4 to 8", "its indirect arguments")
	// What comes after the execution may meet what came before it.
	mustFail(t, r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
		e.UseResource(x.Resource, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
		r.put(e, y, 1, 1, 5)
		e.ExecuteCommandsInBufferIndirectBuffer(icb, rng, 0)
		r.put(e, y, 0, 2, 5)
	}), mtl.CommandBufferErrorInvalidResource, "hazard without a barrier", "bytes 4 to 8")
}

// TestUnknownCommandSelector fails whoever executes the command.
func TestUnknownCommandSelector(t *testing.T) {
	r := newRig(t, Options{})
	x := words(t, r.dev, 1)
	icb := r.newICB(1, nil)
	c := r.record(icb, 0, "plus_ten", 1, x)
	objc.Send(c.ID(), objc.RegisterName("drawPrimitives:"), 0)
	require.ErrorIs(t, objc.TakeError(), objc.ErrUnknownSelector)
	mustFail(t, r.execute(icb, 0, 1, x), mtl.CommandBufferErrorInvalidResource, "command 0", "drawPrimitives:")
	cb := r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		objc.Send(e.ID(), objc.RegisterName("setTexture:atIndex:"), 0, 0)
	})
	require.ErrorIs(t, objc.TakeError(), objc.ErrUnknownSelector)
	mustFail(t, cb, mtl.CommandBufferErrorInternal, "setTexture:atIndex:")
}

// TestICBThreadgroupMemory sets threadgroup memory per command.
func TestICBThreadgroupMemory(t *testing.T) {
	r := newRig(t, Options{})
	in, out := floats(t, r.dev, 1, 2, 3, 4), floats(t, r.dev, 0)
	icb := r.newICB(1, func(d mtl.IndirectCommandBufferDescriptor) { d.SetMaxKernelThreadgroupMemoryBindCount(1) })
	c := icb.IndirectComputeCommandAtIndex(0)
	c.SetComputePipelineState(r.pipeline("sum"))
	c.SetKernelBuffer(in, 0, 0)
	c.SetKernelBufferAttributeStride(out, 0, 0, 1)
	c.SetThreadgroupMemoryLength(32, 0)
	c.SetThreadgroupMemoryLength(16, 0)
	c.ConcurrentDispatchThreadgroups(size(1), size(4))
	mustRun(t, r.execute(icb, 0, 1, in, out))
	require.EqualValues(t, 10, floatsOf(out)[0])
	c.SetThreadgroupMemoryLength(16, 1)
	mustFail(t, r.execute(icb, 0, 1, in, out), mtl.CommandBufferErrorInvalidResource, "maxKernelThreadgroupMemoryBindCount is 1")
}

// TestReplayAllocations wants a replay to allocate as much for a thousand commands as for ten.
func TestReplayAllocations(t *testing.T) {
	if racing {
		t.Skip("the race detector allocates")
	}
	r := newRig(t, Options{Workers: 1})
	x := words(t, r.dev, 1)
	replay := func(n uint) func() {
		icb := r.newICB(n, nil)
		for i := range n {
			r.record(icb, i, "plus_ten", 1, x).SetBarrier()
		}
		return func() {
			defer objc.NewPool().Drain()
			cb := r.execute(icb, 0, n, x)
			cb.Commit()
			cb.WaitUntilCompleted()
		}
	}
	few, many := replay(10), replay(1000)
	many()
	require.InDelta(t, testing.AllocsPerRun(10, few), testing.AllocsPerRun(10, many), 10)
}

// TestChangedInFlight finds commands that are changed while they are executed.
func TestChangedInFlight(t *testing.T) {
	r := newRig(t, Options{})
	x := words(t, r.dev, 1)
	icb := r.newICB(3, nil)
	icb.SetLabel("step")
	r.record(icb, 1, "plus_ten", 1, x)
	event := r.dev.NewSharedEvent()
	defer event.Release()
	cb := r.queue.CommandBuffer()
	cb.EncodeWaitForEvent(event.Event, 1)
	e := cb.ComputeCommandEncoder()
	e.UseResource(x.Resource, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
	e.ExecuteCommandsInBuffer(icb, mtl.Range{Location: 1, Length: 1})
	e.EndEncoding()
	icb.IndirectComputeCommandAtIndex(1).ClearBarrier() // not committed yet
	cb.Commit()
	icb.IndirectComputeCommandAtIndex(2).SetBarrier() // another command
	icb.IndirectComputeCommandAtIndex(1).SetBarrier()
	event.SetSignaledValue(1)
	cb.WaitUntilCompleted()
	require.NoError(t, cb.Error())
	icb.IndirectComputeCommandAtIndex(1).ClearBarrier()
	mustFail(t, r.queue.CommandBuffer(), mtl.CommandBufferErrorInternal,
		`commands 1 to 2 of indirect command buffer "step" are changed while a command buffer that executes commands 1 to 2 is in flight`)
	mustRun(t, r.execute(icb, 0, 3, x))
}
