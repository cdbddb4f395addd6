package soft

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// TestMisuse wants every misuse of a command buffer to be its error.
func TestMisuse(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	b := newBuffer(t, dev, 64)
	for _, c := range []struct {
		name string
		do   func(cb mtl.CommandBuffer)
		text string
	}{
		{"two encoders", func(cb mtl.CommandBuffer) { cb.BlitCommandEncoder(); cb.ComputeCommandEncoder() }, "endEncoding comes first"},
		{"open encoder", func(cb mtl.CommandBuffer) { cb.BlitCommandEncoder() }, "commit while an encoder is open"},
		{"ended twice", func(cb mtl.CommandBuffer) { e := cb.BlitCommandEncoder(); e.EndEncoding(); e.EndEncoding() }, "after endEncoding"},
		{"debug group left", func(cb mtl.CommandBuffer) { cb.PushDebugGroup("x") }, "1 debug groups open"},
		{"debug group missing", func(cb mtl.CommandBuffer) { cb.PopDebugGroup() }, "popDebugGroup without"},
		{"fill too far", func(cb mtl.CommandBuffer) {
			e := cb.BlitCommandEncoder()
			e.FillBuffer(b, mtl.Range{Location: 32, Length: 36}, 0)
			e.EndEncoding()
		}, "36 bytes at 32"},
		{"fill odd", func(cb mtl.CommandBuffer) {
			e := cb.BlitCommandEncoder()
			e.FillBuffer(b, mtl.Range{Location: 2, Length: 4}, 0)
			e.EndEncoding()
		}, "multiples of 4"},
		{"copy overlap", func(cb mtl.CommandBuffer) {
			e := cb.BlitCommandEncoder()
			e.CopyFromBuffer(b, 0, b, 16, 32)
			e.EndEncoding()
		}, "overlap"},
		{"copy of nothing", func(cb mtl.CommandBuffer) {
			e := cb.BlitCommandEncoder()
			e.CopyFromBuffer(mtl.Buffer{}, 0, b, 16, 32)
			e.EndEncoding()
		}, "nil is no buffer"},
		{"synchronize shared", func(cb mtl.CommandBuffer) {
			e := cb.BlitCommandEncoder()
			e.SynchronizeResource(b.Resource)
			e.EndEncoding()
		}, "is not managed"},
		{"no fence", func(cb mtl.CommandBuffer) {
			e := cb.BlitCommandEncoder()
			e.UpdateFence(mtl.Fence{})
			e.EndEncoding()
		}, "no fence of this device"},
		{"slot", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.SetBuffer(b, 0, 31)
			e.EndEncoding()
		}, "buffer index 31; there are 31"},
		{"no bytes", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.SetBytes(nil, 0)
			e.EndEncoding()
		}, "0 bytes at index 0"},
		{"too many bytes", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.SetBytes(make([]byte, 4097), 0)
			e.EndEncoding()
		}, "4097 bytes at index 0"},
		{"offset of nothing", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.SetBufferOffset(4, 0)
			e.EndEncoding()
		}, "no buffer is bound"},
		{"threadgroup memory", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.SetThreadgroupMemoryLength(40, 0)
			e.EndEncoding()
		}, "multiples of 16"},
		{"no pipeline", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.DispatchThreadgroups(mtl.Size{Width: 1, Height: 1, Depth: 1}, mtl.Size{Width: 1, Height: 1, Depth: 1})
			e.EndEncoding()
		}, "without a pipeline"},
		{"nil pipeline", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.SetComputePipelineState(mtl.ComputePipelineState{})
			e.EndEncoding()
		}, "nil is no pipeline"},
		{"usage", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.UseResource(b.Resource, 0)
			e.EndEncoding()
		}, "is no usage"},
		{"scope", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.MemoryBarrierWithScope(0)
			e.EndEncoding()
		}, "is no scope"},
		{"stage input", func(cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.SetStageInRegion(mtl.Region{})
			e.EndEncoding()
		}, "not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer objc.NewPool().Drain()
			cb := q.CommandBuffer()
			fill(cb, b, 77)
			c.do(cb)
			cb.Commit()
			cb.WaitUntilCompleted()
			require.ErrorContains(t, cb.Error(), c.text)
			require.Zero(t, b.Contents()[0], "nothing of a misused command buffer runs")
		})
	}
	// The queue goes on.
	cb := q.CommandBuffer()
	fill(cb, b, 1)
	mustRun(t, cb)
}

// TestLateMisuse wants misuse after the commit to be the error of the next command buffer.
func TestLateMisuse(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	b := newBuffer(t, dev, 64)
	for _, c := range []struct {
		text string
		do   func(cb mtl.CommandBuffer)
	}{
		{"commit of a command buffer that was committed", func(cb mtl.CommandBuffer) { cb.Commit() }},
		{"after the command buffer was committed", func(cb mtl.CommandBuffer) { cb.BlitCommandEncoder() }},
		{"addCompletedHandler:", func(cb mtl.CommandBuffer) { _ = cb.AddCompletedHandler(func(mtl.CommandBuffer) {}) }},
	} {
		cb := q.CommandBuffer()
		fill(cb, b, 1)
		mustRun(t, cb)
		c.do(cb)
		mustFail(t, q.CommandBuffer(), mtl.CommandBufferErrorInternal, c.text)
	}
	q.CommandBuffer().WaitUntilCompleted() // does not hang
	mustFail(t, q.CommandBuffer(), mtl.CommandBufferErrorInternal, "not committed")
}

// TestUnknownSelector latches the error, and fails the command buffer.
func TestUnknownSelector(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	cb := q.CommandBuffer()
	require.Zero(t, objc.Send(cb.ID(), objc.RegisterName("renderCommandEncoderWithDescriptor:"), 0))
	require.ErrorIs(t, objc.TakeError(), objc.ErrUnknownSelector)
	mustFail(t, cb, mtl.CommandBufferErrorInternal, "renderCommandEncoderWithDescriptor:")
	objc.Send(dev.ID(), objc.RegisterName("newTextureWithDescriptor:"), 0)
	require.ErrorIs(t, objc.TakeError(), objc.ErrUnknownSelector)
	mustFail(t, q.CommandBuffer(), mtl.CommandBufferErrorInternal, "newTextureWithDescriptor:")
}

// TestZeroWords sends every selector of every object with nothing but zeros: nil objects, null pointers, no sizes. None may
// panic or hang.
func TestZeroWords(t *testing.T) {
	r := newRig(t, Options{Faults: Faults{}})
	x := words(t, r.dev, 1)
	heapDesc, err := mtl.NewHeapDescriptor(r.dev)
	require.NoError(t, err)
	defer heapDesc.Release()
	heapDesc.SetSize(1024)
	heap := r.dev.NewHeapWithDescriptor(heapDesc)
	set, err := r.dev.NewResidencySetWithDescriptor(mtl.ResidencySetDescriptor{})
	require.NoError(t, err)
	fn := r.lib.NewFunctionWithName("scale")
	event, shared, fence := r.dev.NewEvent(), r.dev.NewSharedEvent(), r.dev.NewFence()
	icb := r.newICB(1, nil)
	p := r.pipeline("sum")
	cb := r.queue.CommandBuffer()
	blit := r.queue.CommandBuffer().BlitCommandEncoder()
	compute := r.queue.CommandBuffer().ComputeCommandEncoder()
	reflection := p.Reflection()
	objects := []objc.ID{r.dev.ID(), r.queue.ID(), cb.ID(), blit.ID(), compute.ID(), x.ID(), heap.ID(), set.ID(), r.lib.ID(), fn.ID(),
		event.ID(), shared.ID(), fence.ID(), icb.ID(), icb.IndirectComputeCommandAtIndex(0).ID(), p.ID(), reflection.ID(),
		reflection.Bindings().At(0).ID(), reflection.Bindings().At(2).ID(), reflection.Arguments().At(0).ID(),
		r.dev.Architecture().ID()}
	all := map[string]*objc.GoClass{}
	for _, c := range metalClasses(deviceOf(r.dev).classes) {
		all[c.Name()] = c
	}
	sent := 0
	for _, id := range objects {
		class := all[id.ClassName()]
		require.NotNil(t, class, id.ClassName())
		for _, sel := range class.Selectors() {
			out := objc.Send(id, objc.RegisterName(sel), make([]uintptr, 16)...)
			sent++
			if strings.HasPrefix(sel, "new") && out != 0 {
				objc.ID(out).Release()
			}
			require.NoError(t, objc.TakeError(), "-[%s %s]", id.ClassName(), sel)
		}
	}
	require.Greater(t, sent, 300)
	for _, o := range []mtl.Object{heap.Object, set.Object, fn.Object, event.Object, shared.Object, fence.Object} {
		o.Release()
	}
	// All of it was misuse, and is told.
	mustFail(t, r.queue.CommandBuffer(), mtl.CommandBufferErrorInternal, "misuse")
}
