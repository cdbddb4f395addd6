package runtime

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

const (
	// maxIndirectCommands is how many commands an indirect command buffer holds (Metal feature set tables: 16,384 on the Mac2
	// family, which Macs with Apple silicon belong to as well).
	maxIndirectCommands = 16384
	// maxIndirectOffset is the greatest buffer offset in an indirect command: it is kept in 32 bits and wraps silently.
	maxIndirectOffset = math.MaxUint32
	// poolEvery is after how many commands the build opens another pool, since each command is a borrowed object.
	poolEvery = 512
)

// unfit says why the program cannot be an indirect command buffer, "" if it can.
func (prog *Program) unfit() string {
	rt := prog.rt
	if !rt.info.Indirect {
		return rt.info.NoIndirect
	}
	for _, pl := range prog.pipelines {
		if !pl.indirect {
			return fmt.Sprintf("kernel %s has no pipeline for indirect command buffers", pl.info.name)
		}
	}
	for i := range prog.binds {
		if off := prog.binds[i].off; off > rt.limits.indirectOff {
			return fmt.Sprintf("a buffer offset of %d, beyond the %d that an indirect command can hold", off, rt.limits.indirectOff)
		}
	}
	return ""
}

// build makes the indirect command buffers.
func (prog *Program) build() error {
	rt := prog.rt
	prog.prime = rt.info.Primed
	desc, err := rt.indirectDescriptor()
	if err != nil {
		return err
	}
	defer desc.Release()
	for start := 0; start < len(prog.cmds); start += rt.limits.indirectMax {
		cmds := prog.cmds[start:min(start+rt.limits.indirectMax, len(prog.cmds))]
		icb := rt.dev.NewIndirectCommandBufferWithDescriptor(desc, uint(len(cmds)), mtl.ResourceStorageModeShared)
		if icb.IsNil() {
			return &DeviceError{Op: "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:",
				Text: fmt.Sprintf("the device made no indirect command buffer for %d commands", len(cmds))}
		}
		if prog.debug.label != "" {
			icb.SetLabel(prog.debug.label)
		}
		prog.indirect = append(prog.indirect, indirectBuffer{icb, len(cmds)})
		for first := 0; first < len(cmds); first += poolEvery {
			if err := prog.fill(icb, cmds, first, min(first+poolEvery, len(cmds))); err != nil {
				return err
			}
		}
	}
	return nil
}

// indirectDescriptor describes buffers whose commands carry everything themselves.
func (rt *Runtime) indirectDescriptor() (mtl.IndirectCommandBufferDescriptor, error) {
	desc, err := mtl.NewIndirectCommandBufferDescriptor(rt.dev)
	if err != nil {
		return desc, err
	}
	desc.SetCommandTypes(mtl.IndirectCommandTypeConcurrentDispatch | mtl.IndirectCommandTypeConcurrentDispatchThreads)
	desc.SetInheritBuffers(false)
	desc.SetInheritPipelineState(false)
	desc.SetMaxKernelBufferBindCount(MaxBuffers)
	if desc.RespondsTo("setMaxKernelThreadgroupMemoryBindCount:") { // macOS 14
		desc.SetMaxKernelThreadgroupMemoryBindCount(MaxBuffers)
	}
	return desc, nil
}

// fill writes commands first to end of an indirect command buffer.
func (prog *Program) fill(icb mtl.IndirectCommandBuffer, cmds []command, first, end int) error {
	defer objc.NewPool().Drain()
	for i := first; i < end; i++ {
		cmd := &cmds[i]
		c := icb.IndirectComputeCommandAtIndex(uint(i))
		if c.IsNil() {
			return &DeviceError{Op: "indirectComputeCommandAtIndex:", Text: fmt.Sprintf("no command %d of %d", i, len(cmds))}
		}
		c.SetComputePipelineState(cmd.pl.state)
		for _, b := range prog.binds[cmd.bind : cmd.bind+cmd.binds] {
			c.SetKernelBuffer(b.buf, uint(b.off), uint(b.slot))
		}
		for _, g := range prog.tgs[cmd.tg : cmd.tg+cmd.tgs] {
			c.SetThreadgroupMemoryLength(uint(g.length), uint(g.index))
		}
		if cmd.barrier {
			c.SetBarrier()
		}
		if cmd.exact {
			c.ConcurrentDispatchThreads(metalSize(cmd.grid), metalSize(cmd.threads))
		} else {
			c.ConcurrentDispatchThreadgroups(metalSize(cmd.grid), metalSize(cmd.threads))
		}
	}
	return nil
}
