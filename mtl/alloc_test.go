//go:build !race

package mtl

import (
	"testing"

	"github.com/ingot-metal/ingot/objc"
)

// TestHotBindingsAllocateNothing is about what a decode step sends. Under the race detector pools drop what they hold.
func TestHotBindingsAllocateNothing(t *testing.T) {
	nothing := func(c *objc.Call) {}
	methods := map[string]objc.Method{}
	for _, sel := range []string{
		"setComputePipelineState:", "setBuffer:offset:atIndex:", "setBytes:length:atIndex:", "setBuffers:offsets:withRange:", "setThreadgroupMemoryLength:atIndex:",
		"dispatchThreadgroups:threadsPerThreadgroup:", "dispatchThreads:threadsPerThreadgroup:", "memoryBarrierWithScope:", "memoryBarrierWithResources:count:",
		"useResources:count:usage:", "executeCommandsInBuffer:withRange:", "endEncoding", "concurrentDispatchThreadgroups:threadsPerThreadgroup:", "setKernelBuffer:offset:atIndex:", "setBarrier",
	} {
		methods[sel] = nothing
	}
	id := objc.NewGoClass("Hot", methods).New(nil)
	defer id.Release()
	e, c, pool := ComputeCommandEncoderOf(id), IndirectComputeCommandOf(id), ComputePipelineStateOf(id)
	b := BufferOf(id)
	buffers, offsets, resources := []Buffer{b, b}, []uint{0, 4}, []Resource{b.Resource, b.Resource}
	one := Size{1, 1, 1}
	n := testing.AllocsPerRun(200, func() {
		var scalar [16]byte
		e.SetComputePipelineState(pool)
		e.SetBuffer(b, 16, 1)
		e.SetBytes(scalar[:], 2)
		if e.SetBuffers(buffers, offsets, 3) != nil {
			panic("refused")
		}
		e.SetThreadgroupMemoryLength(64, 0)
		e.DispatchThreadgroups(one, one)
		e.DispatchThreads(one, one)
		e.MemoryBarrierWithScope(BarrierScopeBuffers)
		e.MemoryBarrierWithResources(resources)
		e.UseResources(resources, ResourceUsageRead)
		e.ExecuteCommandsInBuffer(IndirectCommandBuffer{}, Range{0, 9})
		e.EndEncoding()
		c.SetKernelBuffer(b, 0, 0)
		c.ConcurrentDispatchThreadgroups(one, one)
		c.SetBarrier()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := objc.TakeError(); err != nil {
		t.Error(err)
	}
}
