package runtime

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// encoder encodes commands into a command buffer: into a compute encoder with what was set on it, so that nothing is set
// twice, or into a blit encoder. Passes and programs that are re-encoded go through it alike.
//
// Encoders of one command buffer are ordered by Metal where they use the same resource, one of them for writing.
type encoder struct {
	rt    *Runtime
	cb    mtl.CommandBuffer         // borrowed, as the encoders, from the pool of its user
	mtl   mtl.ComputeCommandEncoder // at most one of the two is open
	blit  mtl.BlitCommandEncoder
	pl    *pipeline
	bufs  [MaxBuffers]objc.ID
	offs  [MaxBuffers]uint64
	tg    [MaxBuffers]uint32
	tgSet uint32 // arguments with a length that is not zero

	debug  *debugNames
	group  int32 // that is open
	posted int   // signposts that have been inserted
	count  int   // commands
	work   *tracedWork
}

// concurrentEncoder makes an encoder whose dispatches run at the same time unless a barrier orders them. It is borrowed.
func concurrentEncoder(fn string, cb mtl.CommandBuffer) (mtl.ComputeCommandEncoder, error) {
	e := cb.ComputeCommandEncoderWithDispatchType(mtl.DispatchTypeConcurrent)
	if e.IsNil() {
		return e, &Error{Func: fn, Err: &DeviceError{Op: "computeCommandEncoderWithDispatchType:", Text: "the command buffer made no encoder"}}
	}
	return e, nil
}

// begin begins to encode into a command buffer.
func (e *encoder) begin(rt *Runtime, cb mtl.CommandBuffer, debug *debugNames, work *tracedWork) {
	*e = encoder{rt: rt, cb: cb, debug: debug, work: work}
}

// open sees to it that an encoder for the command is open. A barrier within blits is another encoder, and so is a dispatch
// that a trace times apart. When it fails, none is open, and what was encoded before stays encoded.
func (e *encoder) open(fn string, cmd *command) error {
	if cmd.kind.blit() {
		if !e.blit.IsNil() && !cmd.barrier {
			return nil
		}
		e.end()
		if e.blit = e.cb.BlitCommandEncoder(); e.blit.IsNil() {
			return &Error{Func: fn, Err: &DeviceError{Op: "blitCommandEncoder", Text: "the command buffer made no encoder"}}
		}
		e.label(e.debug.title())
		return nil
	}
	apart := e.work.apart()
	if !e.mtl.IsNil() && !apart {
		return nil
	}
	e.end()
	var c mtl.ComputeCommandEncoder
	var err error
	name := e.debug.title()
	if apart {
		name = cmd.pl.info.name
		c, err = e.work.encoder(fn, e.cb, name, cmd.group, e.count)
	} else {
		c, err = concurrentEncoder(fn, e.cb)
	}
	if err != nil {
		return err
	}
	*e = encoder{rt: e.rt, cb: e.cb, mtl: c, debug: e.debug, posted: e.posted, count: e.count, work: e.work} // nothing is set on it
	e.label(name)
	return nil
}

// end ends the open encoder, if there is one.
func (e *encoder) end() {
	c := e.current()
	if c.IsNil() {
		return
	}
	e.enter(0)
	e.signposts(e.count)
	c.EndEncoding()
	e.mtl, e.blit = mtl.ComputeCommandEncoder{}, mtl.BlitCommandEncoder{}
}

// current is the open encoder, nil if there is none.
func (e *encoder) current() mtl.CommandEncoder {
	if e.mtl.IsNil() {
		return e.blit.CommandEncoder
	}
	return e.mtl.CommandEncoder
}

// mark enters the group of the next command and counts it.
func (e *encoder) mark(cmd *command) {
	e.enter(cmd.group)
	e.signposts(e.count)
	e.count++
}

func (e *encoder) barrier() { e.mtl.MemoryBarrierWithScope(mtl.BarrierScopeBuffers) }

// encode encodes a command for which open has succeeded.
func (e *encoder) encode(cmd *command, binds []bufferBind, tgs []groupMemory) {
	if cmd.kind.blit() {
		e.mark(cmd)
	}
	switch cmd.kind {
	case kindCopy:
		src, dst := &binds[0], &binds[1]
		e.blit.CopyFromBuffer(src.buf, uint(src.off), dst.buf, uint(dst.off), uint(dst.n))
	case kindFill:
		e.blit.FillBuffer(binds[0].buf, mtl.Range{Location: uint(binds[0].off), Length: uint(binds[0].n)}, cmd.value)
	default:
		e.dispatch(cmd, binds, tgs)
	}
}

func (e *encoder) dispatch(cmd *command, binds []bufferBind, tgs []groupMemory) {
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
	e.rt.declareBytes(e.mtl.ID(), binds)
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
	stamp := e.stampsOf(cmd)
	e.mark(cmd)
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
