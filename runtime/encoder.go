package runtime

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// command is one dispatch with its barrier. Its bindings are in slices beside it.
type command struct {
	pl            *pipeline
	grid, threads Size
	exact         bool // grid counts threads, not threadgroups
	barrier       bool // before it
	bind, binds   int  // first and number, in the slice of bindings
	tg, tgs       int
	group         int32 // of its pass or program, see debugGroup
}

// bufferBind is what is bound to one slot.
type bufferBind struct {
	buf  mtl.Buffer
	off  uint64
	slot uint8
}

// groupMemory is the length of one threadgroup memory argument.
type groupMemory struct {
	index  uint8
	length uint32
}

// encoder is a compute command encoder and what was set on it, so that nothing is set twice. Passes and programs that are
// re-encoded go through it alike.
type encoder struct {
	mtl   mtl.ComputeCommandEncoder // borrowed from the pool of its user
	pl    *pipeline
	bufs  [MaxBuffers]objc.ID
	offs  [MaxBuffers]uint64
	tg    [MaxBuffers]uint32
	tgSet uint32 // arguments with a length that is not zero

	cb     mtl.CommandBuffer // borrowed
	debug  *debugNames
	group  int32 // that is open
	posted int   // signposts that have been inserted
	count  int   // dispatches
	work   *tracedWork
	lost   bool // a dispatch is nowhere, since there was no encoder for it
}

// concurrentEncoder makes an encoder whose dispatches run at the same time unless a barrier orders them. It is borrowed.
func concurrentEncoder(cb mtl.CommandBuffer) mtl.ComputeCommandEncoder {
	return cb.ComputeCommandEncoderWithDispatchType(mtl.DispatchTypeConcurrent)
}

// begin makes an encoder whose dispatches run at the same time unless a barrier orders them.
// Those that a trace times apart get theirs one by one.
func (e *encoder) begin(fn string, cb mtl.CommandBuffer, debug *debugNames, work *tracedWork) error {
	*e = encoder{cb: cb, debug: debug, work: work}
	if work.apart() {
		return nil
	}
	e.mtl = concurrentEncoder(cb)
	if e.mtl.IsNil() {
		return &Error{Func: fn, Err: &DeviceError{Op: "computeCommandEncoderWithDispatchType:", Text: "the command buffer made no encoder"}}
	}
	e.label(debug.label)
	return nil
}

// end ends the encoding, once.
func (e *encoder) end() {
	if !e.mtl.IsNil() {
		e.enter(0)
		e.signposts(e.count)
		e.mtl.EndEncoding()
		e.mtl = mtl.ComputeCommandEncoder{}
	}
}

func (e *encoder) barrier() { e.mtl.MemoryBarrierWithScope(mtl.BarrierScopeBuffers) }

func (e *encoder) encode(cmd *command, binds []bufferBind, tgs []groupMemory) {
	if e.work != nil {
		e.apart(cmd)
	}
	if cmd.barrier {
		e.barrier()
	}
	if e.pl != cmd.pl {
		e.pl = cmd.pl
		e.mtl.SetComputePipelineState(cmd.pl.state)
	}
	for i := range binds {
		b := &binds[i]
		switch {
		case e.bufs[b.slot] != b.buf.ID():
			e.mtl.SetBuffer(b.buf, uint(b.off), uint(b.slot))
			e.bufs[b.slot] = b.buf.ID()
		case e.offs[b.slot] != b.off:
			e.mtl.SetBufferOffset(uint(b.off), uint(b.slot))
		default:
			continue
		}
		e.offs[b.slot] = b.off
	}
	// A length stays set for the kernels that follow and would count against their limit.
	stale := e.tgSet
	for _, g := range tgs {
		stale &^= 1 << g.index
		if e.tg[g.index] != g.length {
			e.mtl.SetThreadgroupMemoryLength(uint(g.length), uint(g.index))
			e.tg[g.index] = g.length
			e.tgSet |= 1 << g.index
		}
	}
	for index := 0; stale != 0; index, stale = index+1, stale>>1 {
		if stale&1 != 0 {
			e.mtl.SetThreadgroupMemoryLength(0, uint(index))
			e.tg[index] = 0
			e.tgSet &^= 1 << index
		}
	}
	e.enter(cmd.group)
	e.signposts(e.count)
	e.count++
	var stamp stamps
	if e.work != nil {
		stamp = e.stampsOf(cmd)
	}
	stamp.take(e.mtl, 0)
	if cmd.exact {
		e.mtl.DispatchThreads(metalSize(cmd.grid), metalSize(cmd.threads))
	} else {
		e.mtl.DispatchThreadgroups(metalSize(cmd.grid), metalSize(cmd.threads))
	}
	stamp.take(e.mtl, 1)
}

func metalSize(s Size) mtl.Size {
	return mtl.Size{Width: uint(s.X), Height: uint(s.Y), Depth: uint(s.Z)}
}
