package runtime

import (
	"fmt"
	"math"
	"slices"

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

// unfit says why the edition cannot be in indirect command buffers, "" if it can.
func (ed *edition) unfit() string {
	rt := ed.prog.rt
	switch {
	case len(ed.cmds) == 0:
		return ""
	case ed.prog.dispatches == 0:
		return "no dispatches"
	case !rt.info.Indirect:
		return rt.info.NoIndirect
	}
	for _, pl := range ed.prog.pipelines {
		if !pl.indirect {
			return fmt.Sprintf("kernel %s has no pipeline for indirect command buffers", pl.info.name)
		}
	}
	for i := range ed.cmds {
		if ed.cmds[i].kind != kindDispatch {
			continue
		}
		for k := range ed.bindsOf(i) {
			if off := ed.bindsOf(i)[k].off; off > rt.limits.indirectOff {
				return fmt.Sprintf("a buffer offset of %d, beyond the %d that an indirect command can hold", off, rt.limits.indirectOff)
			}
		}
	}
	return ""
}

// build makes the indirect command buffers, or says in ed.why that replays encode again.
func (ed *edition) build() {
	if ed.why = ed.unfit(); ed.why == "" && len(ed.cmds) > 0 {
		if err := ed.buildIndirect(); err != nil {
			ed.dropIndirect()
			ed.why = err.Error()
		}
	}
}

func (ed *edition) buildIndirect() error {
	rt := ed.prog.rt
	desc, err := rt.indirectDescriptor()
	if err != nil {
		return err
	}
	defer desc.Release()
	for left := ed.prog.dispatches; left > 0; {
		n := min(left, rt.limits.indirectMax)
		icb := rt.dev.NewIndirectCommandBufferWithDescriptor(desc, uint(n), mtl.ResourceStorageModeShared)
		if icb.IsNil() {
			return &DeviceError{Op: "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:",
				Text: fmt.Sprintf("the device made no indirect command buffer for %d commands", n)}
		}
		if label := ed.prog.debug.label; label != "" {
			icb.SetLabel(label)
		}
		ed.indirect = append(ed.indirect, indirectBuffer{icb, n})
		left -= n
	}
	return ed.fill(nil)
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

// fill writes the commands into the indirect command buffers: those that differ from old, which is what is in them, or all
// when old is nil.
func (ed *edition) fill(old *edition) error {
	ordinal, open := 0, objc.NewPool()
	defer func() { open.Drain() }()
	for i := range ed.cmds {
		cmd := &ed.cmds[i]
		if cmd.kind != kindDispatch {
			continue
		}
		k, at := ordinal/ed.indirect[0].n, ordinal%ed.indirect[0].n
		ordinal++
		if old != nil && old.cmds[i].barrier == cmd.barrier && slices.Equal(old.bindsOf(i), ed.bindsOf(i)) {
			continue
		}
		if ordinal%poolEvery == 0 {
			open.Drain()
			open = objc.NewPool()
		}
		c := ed.indirect[k].mtl.IndirectComputeCommandAtIndex(uint(at))
		if c.IsNil() {
			return &DeviceError{Op: "indirectComputeCommandAtIndex:", Text: fmt.Sprintf("no command %d of %d", at, ed.indirect[k].n)}
		}
		if old != nil {
			ed.change(c, i, old)
		} else {
			ed.write(c, i)
		}
	}
	return nil
}

// write writes command i.
func (ed *edition) write(c mtl.IndirectComputeCommand, i int) {
	cmd := &ed.cmds[i]
	c.SetComputePipelineState(cmd.pl.state)
	for _, b := range ed.bindsOf(i) {
		c.SetKernelBuffer(b.buf, uint(b.off), uint(b.slot))
	}
	ed.prog.rt.declareBytes(c.ID(), ed.bindsOf(i))
	for _, g := range ed.prog.tgs[cmd.tg : cmd.tg+cmd.tgs] {
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

// change makes command i of old into that of ed: they differ in buffers and barrier only.
func (ed *edition) change(c mtl.IndirectComputeCommand, i int, old *edition) {
	was, is := old.bindsOf(i), ed.bindsOf(i)
	for k := range is {
		if b := &is[k]; *b != was[k] {
			c.SetKernelBuffer(b.buf, uint(b.off), uint(b.slot))
		}
	}
	ed.prog.rt.declareBytes(c.ID(), is)
	if cmd := &ed.cmds[i]; cmd.barrier != old.cmds[i].barrier {
		if cmd.barrier {
			c.SetBarrier()
		} else {
			c.ClearBarrier()
		}
	}
}

// execute encodes the execution of n dispatches, from the dispatch with the number ordinal on.
func (ed *edition) execute(enc mtl.ComputeCommandEncoder, ordinal, n int) {
	ed.prepare(enc, ed.prog.pipelines)
	for first := true; n > 0; first = false {
		if !first {
			// Barriers inside an indirect command buffer order the commands of that one.
			enc.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
		}
		b, at := ed.place(ordinal)
		m := min(n, b.n-at)
		enc.ExecuteCommandsInBuffer(b.mtl, mtl.Range{Location: uint(at), Length: uint(m)})
		ordinal, n = ordinal+m, n-m
	}
}

// place is where a dispatch is among the indirect command buffers.
func (ed *edition) place(ordinal int) (b *indirectBuffer, at int) {
	return &ed.indirect[ordinal/ed.indirect[0].n], ordinal % ed.indirect[0].n
}

// prepare does what an encoder needs before it executes commands with some pipelines.
func (ed *edition) prepare(enc mtl.ComputeCommandEncoder, pipelines []*pipeline) {
	if ed.prog.rt.info.Primed {
		for _, pl := range pipelines {
			enc.SetComputePipelineState(pl.state)
			enc.DispatchThreadgroups(mtl.Size{}, mtl.Size{})
		}
	}
	// What indirect commands use is neither resident nor tracked unless the encoder is told.
	declare(enc, ed.reads, mtl.ResourceUsageRead)
	declare(enc, ed.prog.constants, mtl.ResourceUsageRead)
	declare(enc, ed.writes, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
}

// executions is how many messages execute sends.
func (ed *edition) executions(ordinal, n int) int {
	if len(ed.indirect) == 0 {
		return 0
	}
	prog, per := ed.prog, ed.indirect[0].n
	buffers := (ordinal+n-1)/per - ordinal/per + 1
	messages := 2*buffers - 1 + declarations(ed.reads) + declarations(prog.constants) + declarations(ed.writes)
	if prog.rt.info.Primed {
		messages += 2 * len(prog.pipelines)
	}
	return messages
}

// declareAtOnce is how many resources one message declares: so many fit into the memory that messages are made in without
// an allocation.
const declareAtOnce = 512

func declare(enc mtl.ComputeCommandEncoder, resources []mtl.Resource, usage mtl.ResourceUsage) {
	for len(resources) > 0 {
		n := min(len(resources), declareAtOnce)
		enc.UseResources(resources[:n], usage)
		resources = resources[n:]
	}
}

func declarations(resources []mtl.Resource) int {
	return (len(resources) + declareAtOnce - 1) / declareAtOnce
}
