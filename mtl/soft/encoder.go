package soft

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// An encoder is the open encoder of a command buffer.
type encoder interface{ close() }

// encoderBase is what compute and blit encoders have in common.
type encoderBase struct {
	object
	cb     *commandBuffer
	index  int // in the recording's encodings
	ended  bool
	groups int
	atEnd  []edgeSample
}

func (e *encoderBase) base() *encoderBase { return e }

// anyEncoder is a compute or a blit encoder.
type anyEncoder interface {
	owned
	base() *encoderBase
}

// begin opens an encoder in a command buffer. The encoder holds the command buffer.
func (e *encoderBase) begin(cb *commandBuffer, kind string, self encoder) {
	e.cb, e.dev = cb, cb.dev
	e.ended, e.groups, e.atEnd = false, 0, e.atEnd[:0]
	e.text.Store(nil)
	cb.rec.encodings = append(cb.rec.encodings, encoding{kind: kind})
	e.index = len(cb.rec.encodings) - 1
	cb.encoder = self
	cb.id.Retain()
}

// close ends the encoder.
func (e *encoderBase) close() {
	if e.ended {
		return
	}
	e.ended = true
	if e.groups != 0 {
		e.cb.fail(mtl.CommandBufferErrorInternal, "endEncoding with %d debug groups open", e.groups)
	}
	for _, s := range e.atEnd {
		e.cb.addSample(s.buffer, s.at, true)
	}
	e.cb.add(opEnd)
	e.cb.encoder = nil
}

// finish is what the last release does: the command buffer learns of an encoder that was left open.
func (e *encoderBase) finish() {
	cb := e.cb
	if !e.ended {
		cb.fail(mtl.CommandBufferErrorInternal, "the %s went away without endEncoding", e.name())
		e.close()
	}
	cb.id.Release()
}

// name is how error texts call the encoder.
func (e *encoderBase) name() string {
	return e.cb.rec.encodings[e.index].name(e.index)
}

// open tells whether the encoder takes commands, and notes the misuse if not.
func (e *encoderBase) open(what string) bool {
	if e.ended {
		e.cb.fail(mtl.CommandBufferErrorInternal, "%s after endEncoding", what)
		return false
	}
	return true
}

// unsupported makes a message about something that the device does not have an error of the command buffer.
func (e *encoderBase) unsupported(sel, what string) {
	if e.open(sel) {
		e.cb.fail(mtl.CommandBufferErrorNotPermitted, "%s: %s are not supported by the software device", sel, what)
	}
}

// ObjcError makes a message that could not be delivered an error of the command buffer.
func (e *encoderBase) ObjcError(err error) { e.cb.ObjcError(err) }

// encoderMethods are those of MTLCommandEncoder.
func encoderMethods[T anyEncoder]() methods[T] {
	m := methods[T]{
		"endEncoding": func(t T, c *objc.Call) {
			if e := t.base(); e.open("endEncoding") {
				e.close()
			}
		},
		"setLabel:": func(t T, c *objc.Call) {
			s := objc.GoString(c.Object(0))
			t.setLabel(s)
			if e := t.base(); !e.ended {
				e.cb.rec.encodings[e.index].label = s
			}
		},
		"insertDebugSignpost:": func(t T, c *objc.Call) {
			if e := t.base(); e.open("insertDebugSignpost:") {
				posts := &e.cb.rec.encodings[e.index].posts
				*posts = append(*posts, objc.GoString(c.Object(0)))
			}
		},
		"pushDebugGroup:": func(t T, c *objc.Call) {
			if e := t.base(); e.open("pushDebugGroup:") {
				e.groups++
			}
		},
		"popDebugGroup": func(t T, c *objc.Call) {
			e := t.base()
			if !e.open("popDebugGroup") {
				return
			}
			if e.groups--; e.groups < 0 {
				e.groups = 0
				e.cb.fail(mtl.CommandBufferErrorInternal, "popDebugGroup without a debug group")
			}
		},
		"barrierAfterQueueStages:beforeStages:": func(t T, c *objc.Call) {
			if e := t.base(); e.open("barrierAfterQueueStages:beforeStages:") {
				e.cb.add(opQueueBarrier)
			}
		},
		"updateFence:":  func(t T, c *objc.Call) { t.base().fence(c, opFenceUpdate, "updateFence:") },
		"waitForFence:": func(t T, c *objc.Call) { t.base().fence(c, opFenceWait, "waitForFence:") },
	}
	return m.with(labelled[T]()).with(deviced[T]())
}

// fence encodes that a fence is updated or waited for. Encoders of a queue run in order here, so that it only matters for
// finding what another device could do.
func (e *encoderBase) fence(c *objc.Call, o op, what string) {
	if !e.open(what) {
		return
	}
	f := valueOf[*fence](c.Word(0))
	if f == nil || f.dev != e.dev {
		e.cb.fail(mtl.CommandBufferErrorInvalidResource, "%s: %s is no fence of this device", what, describe(c.Object(0)))
		return
	}
	e.cb.add(o).fence = f
	e.cb.rec.held = append(e.cb.rec.held, f.id.Retain())
}

// bufferArg is the buffer in word i of a message, or the misuse if there is none of this device.
func (e *encoderBase) bufferArg(c *objc.Call, i int, what string) *buffer {
	b := valueOf[*buffer](c.Word(i))
	if b == nil || b.dev != e.dev {
		e.cb.fail(mtl.CommandBufferErrorInvalidResource, "%s: %s is no buffer of this device", what, describe(c.Object(i)))
		return nil
	}
	return b
}

// icbArg is the indirect command buffer in word i of a message, or the misuse if there is none of this device.
func (e *encoderBase) icbArg(c *objc.Call, i int, what string) *indirect {
	b := valueOf[*indirect](c.Word(i))
	if b == nil || b.dev != e.dev {
		e.cb.fail(mtl.CommandBufferErrorInvalidResource, "%s: %s is no indirect command buffer of this device", what, describe(c.Object(i)))
		return nil
	}
	return b
}
