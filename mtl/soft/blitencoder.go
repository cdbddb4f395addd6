package soft

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A blitEncoder is MTLBlitCommandEncoder. Its commands run in order.
type blitEncoder struct {
	encoderBase
}

func (cb *commandBuffer) beginBlit(c *objc.Call) {
	if !cb.ready("blitCommandEncoder") {
		c.Return(0)
		return
	}
	e := &blitEncoder{}
	e.begin(cb, "blit", e)
	cb.add(opBegin)
	e.id = cb.dev.adopt(cb.dev.classes.blitEncoder, e)
	c.ReturnBorrowed(e.id.Autorelease())
}

// Dealloc ends an encoder that was left open.
func (e *blitEncoder) Dealloc() {
	dev := e.dev
	e.finish()
	dev.forget()
}

func (e *blitEncoder) misuse(format string, args ...any) {
	e.cb.fail(mtl.CommandBufferErrorInvalidResource, format, args...)
}

// span checks bytes of a buffer: inside it, and multiples of four as macOS wants.
func (e *blitEncoder) span(b *buffer, at, n uint64, what string) bool {
	switch {
	case at > uint64(len(b.mem)) || n > uint64(len(b.mem))-at:
		e.misuse("%s: %d bytes at %d of %s, which has %d", what, n, at, b.name(), len(b.mem))
	case at%4 != 0 || n%4 != 0:
		e.misuse("%s: %d bytes at %d of %s: both must be multiples of 4", what, n, at, b.name())
	case n == 0:
		e.misuse("%s: no bytes at %d of %s", what, at, b.name())
	default:
		return true
	}
	return false
}

func (e *blitEncoder) copy(c *objc.Call) {
	const what = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"
	if !e.open(what) {
		return
	}
	from, to := e.bufferArg(c, 0, what), e.bufferArg(c, 2, what)
	if from == nil || to == nil {
		return
	}
	at, dst, n := uint64(c.Word(1)), uint64(c.Word(3)), uint64(c.Word(4))
	if !e.span(from, at, n, what) || !e.span(to, dst, n, what) {
		return
	}
	if from.storage == to.storage && from.base+at < to.base+dst+n && to.base+dst < from.base+at+n {
		e.misuse("%s: bytes %d to %d of %s overlap their destination at %d", what, at, at+n, from.name(), dst)
		return
	}
	e.cb.hold(&from.resource)
	e.cb.hold(&to.resource)
	cmd := e.cb.add(opCopy)
	cmd.from, cmd.to, cmd.at, cmd.dst, cmd.n = from, to, at, dst, n
}

func (e *blitEncoder) fill(c *objc.Call) {
	const what = "fillBuffer:range:value:"
	if !e.open(what) {
		return
	}
	b := e.bufferArg(c, 0, what)
	at, n := uint64(c.Word(1)), uint64(c.Word(2))
	if b == nil || !e.span(b, at, n, what) {
		return
	}
	e.cb.hold(&b.resource)
	cmd := e.cb.add(opFill)
	cmd.to, cmd.dst, cmd.n, cmd.fill = b, at, n, byte(c.Word(3))
}

func (e *blitEncoder) synchronize(c *objc.Call) {
	const what = "synchronizeResource:"
	if !e.open(what) {
		return
	}
	b := e.bufferArg(c, 0, what)
	if b == nil {
		return
	}
	if b.storageMode() != mtl.StorageModeManaged {
		e.misuse("%s: %s is not managed", what, b.name())
		return
	}
	e.cb.hold(&b.resource)
	e.cb.add(opSynchronize).to = b
}

// commands adds a command about a range of an indirect command buffer.
func (e *blitEncoder) commands(c *objc.Call, o op, what string) {
	if !e.open(what) {
		return
	}
	icb := e.icbArg(c, 0, what)
	if icb == nil {
		return
	}
	at, n := uint64(c.Word(1)), uint64(c.Word(2))
	if !icb.contains(at, n) {
		e.misuse("%s: commands %d to %d of %s, which has %d", what, at, at+n, icb.name(), len(icb.commands))
		return
	}
	e.cb.hold(&icb.resource)
	cmd := e.cb.add(o)
	cmd.icb, cmd.at, cmd.n = icb, at, n
}

func (e *blitEncoder) copyCommands(c *objc.Call) {
	const what = "copyIndirectCommandBuffer:sourceRange:destination:destinationIndex:"
	if !e.open(what) {
		return
	}
	from, to := e.icbArg(c, 0, what), e.icbArg(c, 3, what)
	if from == nil || to == nil {
		return
	}
	at, n, dst := uint64(c.Word(1)), uint64(c.Word(2)), uint64(c.Word(4))
	switch {
	case !from.contains(at, n) || !to.contains(dst, n):
		e.misuse("%s: %d commands from %d on of %s (which has %d) to %d of %s (which has %d)",
			what, n, at, from.name(), len(from.commands), dst, to.name(), len(to.commands))
		return
	case !from.like(to):
		e.misuse("%s: %s and %s were made with different descriptors", what, from.name(), to.name())
		return
	}
	e.cb.hold(&from.resource)
	e.cb.hold(&to.resource)
	cmd := e.cb.add(opCopyICB)
	cmd.icb, cmd.toICB, cmd.at, cmd.n, cmd.dst = from, to, at, n, dst
}

func blitEncoderMethods() methods[*blitEncoder] {
	type enc = *blitEncoder
	m := methods[enc]{
		"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:": func(e enc, c *objc.Call) { e.copy(c) },
		"fillBuffer:range:value:":                                      func(e enc, c *objc.Call) { e.fill(c) },
		"synchronizeResource:":                                         func(e enc, c *objc.Call) { e.synchronize(c) },
		"resetCommandsInBuffer:withRange:": func(e enc, c *objc.Call) {
			e.commands(c, opResetICB, "resetCommandsInBuffer:withRange:")
		},
		"optimizeIndirectCommandBuffer:withRange:": func(e enc, c *objc.Call) {
			e.commands(c, opOptimizeICB, "optimizeIndirectCommandBuffer:withRange:")
		},
		"copyIndirectCommandBuffer:sourceRange:destination:destinationIndex:": func(e enc, c *objc.Call) { e.copyCommands(c) },
	}
	m["sampleCountersInBuffer:atSampleIndex:withBarrier:"] = func(e enc, c *objc.Call) {
		e.sampleCounters(c, mtl.CounterSamplingPointAtBlitBoundary)
	}
	m["resolveCounters:inRange:destinationBuffer:destinationOffset:"] = func(e enc, c *objc.Call) { e.resolveCounters(c) }
	return m.with(encoderMethods[enc]())
}
