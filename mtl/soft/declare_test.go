package soft

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
)

func TestDeclareBytes(t *testing.T) {
	for _, checks := range []bool{true, false} {
		r := newRig(t, Options{Checks: checks})
		require.Equal(t, checks, Checking(r.dev))
		in, out := words(t, r.dev, 0, 1, 2, 3, 4, 5, 6, 7), words(t, r.dev, make([]uint32, 8)...)
		direct := func(bytes uint64, slot int, took bool, n uint, twice bool) mtl.CommandBuffer {
			return r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
				e.SetComputePipelineState(r.pipeline("get"))
				e.SetBuffer(in, 4, 0)
				to := out
				if twice {
					to = in
				}
				e.SetBuffer(to, 16, 1)
				e.SetBytes(constants(0, 0), 2)
				require.Equal(t, took && checks, DeclareBytes(e.ID(), slot, bytes))
				e.DispatchThreads(size(n), size(n))
			})
		}
		mustRun(t, direct(8, 0, true, 2, false))
		mustRun(t, direct(1<<40, 0, true, 3, false))
		mustRun(t, direct(4, 2, false, 3, false)) // bytes of the encoder's
		mustRun(t, direct(4, 9, false, 3, false)) // nothing there
		mustRun(t, direct(4, -1, false, 3, false))
		mustRun(t, direct(4, 31, false, 3, false))
		mustRun(t, direct(8, 0, true, 3, true)) // twice the same memory is not checked
		icb := r.newICB(1, func(mtl.IndirectCommandBufferDescriptor) {})
		given := words(t, r.dev, 0, 0)
		c := r.record(icb, 0, "get", 3, in, out, given)
		require.Equal(t, checks, DeclareBytes(c.ID(), 0, 8))
		require.False(t, DeclareBytes(c.ID(), 4, 8))
		require.False(t, DeclareBytes(r.dev.ID(), 0, 8))
		if checks {
			const text = "out of bounds: buffer 0 (in): 4 bytes at offset"
			mustFail(t, direct(8, 0, true, 3, false), mtl.CommandBufferErrorPageFault, text, "(32 bytes) at offset 4, of which 8 bytes were declared")
			mustFail(t, r.execute(icb, 0, 1, in, out, given), mtl.CommandBufferErrorPageFault, text, "of which 8 bytes were declared")
			c.SetKernelBuffer(in, 0, 0) // which ends the declaration
		}
		mustRun(t, r.execute(icb, 0, 1, in, out, given))
	}
	require.False(t, Checking(mtl.Device{}))
}
