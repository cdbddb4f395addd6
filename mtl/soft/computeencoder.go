package soft

import (
	"math"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

const (
	bufferSlots      = 31
	threadgroupSlots = 31
	maxInlineBytes   = 4096
)

// A computeEncoder is MTLComputeCommandEncoder.
type computeEncoder struct {
	encoderBase
	concurrent bool
	pipeline   *pipeline
	slots      [bufferSlots]binding
	memory     [threadgroupSlots]uint32
	dispatches int32
	scratch    []binding
	lengths    []threadgroupMemory
}

// beginCompute opens an encoder; desc is what describes it, or nil.
func (cb *commandBuffer) beginCompute(c *objc.Call, kind mtl.DispatchType, desc objc.ID) {
	if !cb.ready("computeCommandEncoder") {
		c.Return(0)
		return
	}
	e := cb.dev.takeComputeEncoder()
	e.concurrent = kind == mtl.DispatchTypeConcurrent
	e.begin(cb, "compute", e)
	cmd := cb.add(opBegin)
	cmd.concurrent = e.concurrent
	if desc != 0 {
		e.attach(desc)
	}
	e.id = cb.dev.adopt(cb.dev.classes.computeEncoder, e)
	c.ReturnBorrowed(e.id.Autorelease())
}

// Dealloc gives the encoder's memory back.
func (e *computeEncoder) Dealloc() {
	dev := e.dev
	e.finish()
	dev.giveComputeEncoder(e)
	dev.forget()
}

// reset empties the encoder for its next use.
func (e *computeEncoder) reset() {
	e.pipeline, e.dispatches, e.cb = nil, 0, nil
	clear(e.atEnd)
	clear(e.slots[:])
	clear(e.memory[:])
	clear(e.scratch[:cap(e.scratch)])
}

func (e *computeEncoder) misuse(format string, args ...any) {
	e.cb.fail(mtl.CommandBufferErrorInvalidResource, format, args...)
}

func (e *computeEncoder) slot(i uint, what string) bool {
	if i >= bufferSlots {
		e.misuse("%s: buffer index %d; there are %d", what, i, bufferSlots)
		return false
	}
	return true
}

func (e *computeEncoder) setBuffer(id objc.ID, off uint64, slot uint, what string) {
	if !e.open(what) || !e.slot(slot, what) {
		return
	}
	s := &e.slots[slot]
	if id == 0 {
		*s = binding{}
		return
	}
	b := valueOf[*buffer](uintptr(id))
	if b == nil || b.dev != e.dev {
		e.misuse("%s: %s at index %d is no buffer of this device", what, describe(id), slot)
		return
	}
	e.cb.hold(&b.resource)
	*s = binding{buf: b, off: off, slot: int(slot)}
}

func (e *computeEncoder) setOffset(off uint64, slot uint, what string) {
	if !e.open(what) || !e.slot(slot, what) {
		return
	}
	if e.slots[slot].buf == nil {
		e.misuse("%s: no buffer is bound at index %d", what, slot)
		return
	}
	e.slots[slot].off, e.slots[slot].declared = off, 0
}

func (e *computeEncoder) setBytes(b []byte, slot uint, what string) {
	if !e.open(what) || !e.slot(slot, what) {
		return
	}
	if len(b) == 0 || len(b) > maxInlineBytes {
		e.misuse("%s: %d bytes at index %d; from 1 to %d can be set", what, len(b), slot, maxInlineBytes)
		return
	}
	e.slots[slot] = binding{bytes: e.cb.rec.addBytes(b), slot: int(slot)}
}

func (e *computeEncoder) setPipeline(c *objc.Call) {
	if !e.open("setComputePipelineState:") {
		return
	}
	p := valueOf[*pipeline](c.Word(0))
	if p == nil || p.dev != e.dev {
		e.misuse("setComputePipelineState: %s is no pipeline of this device", describe(c.Object(0)))
		return
	}
	e.pipeline = p
	if e.cb.retained {
		e.cb.keep(p.id, &p.holder)
	}
}

func (e *computeEncoder) setMemory(length, index uint, what string) {
	if !e.open(what) {
		return
	}
	if index >= threadgroupSlots || length%16 != 0 || length > uint(e.dev.opts.ThreadgroupMemory) {
		e.misuse("%s: %d bytes at index %d; there are %d indices, lengths are multiples of 16 up to %d",
			what, length, index, threadgroupSlots, e.dev.opts.ThreadgroupMemory)
		return
	}
	e.memory[index] = uint32(length)
}

// size is the MTLSize that starts at word i of a message.
func (e *computeEncoder) size(c *objc.Call, i int, what string) (s [3]uint32, ok bool) {
	for k := range s {
		w := uint64(c.Word(i + k))
		if w > math.MaxUint32 {
			e.misuse("%s: %d is too large a size", what, w)
			return s, false
		}
		s[k] = uint32(w)
	}
	return s, true
}

// dispatch adds a command with what is bound now.
func (e *computeEncoder) dispatch(what string) *command {
	if !e.open(what) {
		return nil
	}
	if e.pipeline == nil {
		e.misuse("%s without a pipeline", what)
		return nil
	}
	e.scratch = e.scratch[:0]
	for _, i := range e.pipeline.bufferSlots {
		if s := &e.slots[i]; s.bound() {
			e.scratch = append(e.scratch, *s)
		}
	}
	e.lengths = e.lengths[:0]
	for _, i := range e.pipeline.memorySlots {
		if n := e.memory[i]; n > 0 {
			e.lengths = append(e.lengths, threadgroupMemory{i, n})
		}
	}
	rec := e.cb.rec
	cmd := e.cb.add(opDispatch)
	cmd.pipeline = e.pipeline
	cmd.binds = rec.addBinds(e.scratch)
	cmd.memory = rec.addMemory(e.lengths)
	cmd.number = e.dispatches
	e.dispatches++
	return cmd
}

func (e *computeEncoder) dispatchDirect(c *objc.Call, threads bool, what string) {
	grid, ok := e.size(c, 0, what)
	group, ok2 := e.size(c, 3, what)
	if !ok || !ok2 {
		return
	}
	if cmd := e.dispatch(what); cmd != nil {
		cmd.grid, cmd.group, cmd.threads = grid, group, threads
	}
}

func (e *computeEncoder) dispatchIndirect(c *objc.Call) {
	const what = "dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:"
	group, ok := e.size(c, 2, what)
	b := e.bufferArg(c, 0, what)
	if !ok || b == nil {
		return
	}
	if cmd := e.dispatch(what); cmd != nil {
		e.cb.hold(&b.resource)
		cmd.group, cmd.indirect, cmd.at = group, b, uint64(c.Word(1))
	}
}

// execute adds the commands of an indirect command buffer, of a range or of one that the GPU reads.
func (e *computeEncoder) execute(c *objc.Call, what string, ranged bool) {
	icb := e.icbArg(c, 0, what)
	if !e.open(what) || icb == nil {
		return
	}
	var from *buffer
	if !ranged {
		if from = e.bufferArg(c, 1, what); from == nil {
			return
		}
		e.cb.hold(&from.resource)
	}
	e.cb.hold(&icb.resource)
	var binds []binding
	if icb.inheritBuffers {
		e.scratch = e.scratch[:0]
		for i := range e.slots {
			if s := &e.slots[i]; s.bound() {
				e.scratch = append(e.scratch, *s)
			}
		}
		binds = e.cb.rec.addBinds(e.scratch)
	}
	cmd := e.cb.add(opExecute)
	cmd.icb, cmd.indirect, cmd.binds, cmd.number = icb, from, binds, e.dispatches
	if ranged {
		cmd.at, cmd.n = uint64(c.Word(1)), uint64(c.Word(2))
	} else {
		cmd.at = uint64(c.Word(2))
	}
	if icb.inheritPipeline {
		cmd.pipeline = e.pipeline
	}
	run := execution{icb, 0, uint64(len(icb.commands))}
	if ranged {
		run.at, run.n = cmd.at, cmd.n
	}
	e.cb.rec.executions = append(e.cb.rec.executions, run)
	e.dispatches++
}

func (e *computeEncoder) use(id objc.ID, usage mtl.ResourceUsage, what string) {
	r, ok := objc.Value(id).(anyResource)
	if !ok || r.device() != e.dev {
		e.misuse("%s: %s is no resource of this device", what, describe(id))
		return
	}
	e.cb.hold(r.res())
	cmd := e.cb.add(opUse)
	cmd.resource, cmd.write = r.res(), usage&mtl.ResourceUsageWrite != 0
	switch r := r.(type) {
	case *buffer:
		cmd.to = r
	case *heap:
		cmd.storage = r.storage
	}
}

func (e *computeEncoder) barrier(scope mtl.BarrierScope) {
	const what = "memoryBarrierWithScope:"
	if !e.open(what) {
		return
	}
	if scope == 0 || scope&^(mtl.BarrierScopeBuffers|mtl.BarrierScopeTextures|mtl.BarrierScopeRenderTargets) != 0 {
		e.misuse("%s: %#x is no scope", what, uint64(scope))
		return
	}
	if scope&mtl.BarrierScopeBuffers != 0 {
		e.cb.add(opBarrier)
	}
}

func (e *computeEncoder) barrierResources(ids []objc.ID) {
	const what = "memoryBarrierWithResources:count:"
	if !e.open(what) {
		return
	}
	for _, id := range ids {
		r, ok := objc.Value(id).(anyResource)
		if !ok || r.device() != e.dev {
			e.misuse("%s: %s is no resource of this device", what, describe(id))
			return
		}
		e.cb.hold(r.res())
		cmd := e.cb.add(opBarrierResource)
		cmd.resource = r.res()
		switch r := r.(type) {
		case *buffer:
			cmd.storage = r.storage
		case *heap:
			cmd.storage = r.storage
		}
	}
}

func computeEncoderMethods() methods[*computeEncoder] {
	type enc = *computeEncoder
	m := methods[enc]{
		"dispatchType": func(e enc, c *objc.Call) {
			kind := mtl.DispatchTypeSerial
			if e.concurrent {
				kind = mtl.DispatchTypeConcurrent
			}
			c.Return(uintptr(kind))
		},
		"setComputePipelineState:": func(e enc, c *objc.Call) { e.setPipeline(c) },
		"setBuffer:offset:atIndex:": func(e enc, c *objc.Call) {
			e.setBuffer(c.Object(0), uint64(c.Word(1)), c.Uint(2), "setBuffer:offset:atIndex:")
		},
		"setBuffer:offset:attributeStride:atIndex:": func(e enc, c *objc.Call) {
			e.setBuffer(c.Object(0), uint64(c.Word(1)), c.Uint(3), "setBuffer:offset:attributeStride:atIndex:")
		},
		"setBufferOffset:atIndex:": func(e enc, c *objc.Call) {
			e.setOffset(uint64(c.Word(0)), c.Uint(1), "setBufferOffset:atIndex:")
		},
		"setBufferOffset:attributeStride:atIndex:": func(e enc, c *objc.Call) {
			e.setOffset(uint64(c.Word(0)), c.Uint(2), "setBufferOffset:attributeStride:atIndex:")
		},
		"setBuffers:offsets:withRange:": func(e enc, c *objc.Call) {
			e.setBuffers(c, 2, "setBuffers:offsets:withRange:")
		},
		"setBuffers:offsets:attributeStrides:withRange:": func(e enc, c *objc.Call) {
			e.setBuffers(c, 3, "setBuffers:offsets:attributeStrides:withRange:")
		},
		"setBytes:length:atIndex:": func(e enc, c *objc.Call) {
			e.setBytes(inline(c), c.Uint(2), "setBytes:length:atIndex:")
		},
		"setBytes:length:attributeStride:atIndex:": func(e enc, c *objc.Call) {
			e.setBytes(inline(c), c.Uint(3), "setBytes:length:attributeStride:atIndex:")
		},
		"setThreadgroupMemoryLength:atIndex:": func(e enc, c *objc.Call) {
			e.setMemory(c.Uint(0), c.Uint(1), "setThreadgroupMemoryLength:atIndex:")
		},
		"dispatchThreadgroups:threadsPerThreadgroup:": func(e enc, c *objc.Call) {
			e.dispatchDirect(c, false, "dispatchThreadgroups:threadsPerThreadgroup:")
		},
		"dispatchThreads:threadsPerThreadgroup:": func(e enc, c *objc.Call) {
			e.dispatchDirect(c, true, "dispatchThreads:threadsPerThreadgroup:")
		},
		"dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:": func(e enc, c *objc.Call) {
			e.dispatchIndirect(c)
		},
		"executeCommandsInBuffer:withRange:": func(e enc, c *objc.Call) {
			e.execute(c, "executeCommandsInBuffer:withRange:", true)
		},
		"executeCommandsInBuffer:indirectBuffer:indirectBufferOffset:": func(e enc, c *objc.Call) {
			e.execute(c, "executeCommandsInBuffer:indirectBuffer:indirectBufferOffset:", false)
		},
		"useResource:usage:": func(e enc, c *objc.Call) {
			if e.usage(c.Word(1), "useResource:usage:") {
				e.use(c.Object(0), mtl.ResourceUsage(c.Word(1)), "useResource:usage:")
			}
		},
		"useResources:count:usage:": func(e enc, c *objc.Call) {
			if !e.usage(c.Word(2), "useResources:count:usage:") {
				return
			}
			for _, id := range c.IDs(0, c.Uint(1)) {
				e.use(id, mtl.ResourceUsage(c.Word(2)), "useResources:count:usage:")
			}
		},
		"useHeap:": func(e enc, c *objc.Call) {
			if e.open("useHeap:") {
				e.use(c.Object(0), mtl.ResourceUsageRead, "useHeap:")
			}
		},
		"useHeaps:count:": func(e enc, c *objc.Call) {
			if !e.open("useHeaps:count:") {
				return
			}
			for _, id := range c.IDs(0, c.Uint(1)) {
				e.use(id, mtl.ResourceUsageRead, "useHeaps:count:")
			}
		},
		"sampleCountersInBuffer:atSampleIndex:withBarrier:": func(e enc, c *objc.Call) {
			e.sampleCounters(c, mtl.CounterSamplingPointAtDispatchBoundary)
		},
		"memoryBarrierWithScope:": func(e enc, c *objc.Call) { e.barrier(mtl.BarrierScope(c.Word(0))) },
		"memoryBarrierWithResources:count:": func(e enc, c *objc.Call) {
			e.barrierResources(c.IDs(0, c.Uint(1)))
		},
	}
	for sel, what := range map[string]string{
		"setImageblockWidth:height:": "imageblocks", "setStageInRegion:": "stage input",
		"setStageInRegionWithIndirectBuffer:indirectBufferOffset:": "stage input",
	} {
		m[sel] = func(e enc, c *objc.Call) { e.unsupported(sel, what) }
	}
	return m.with(encoderMethods[enc]())
}

func (e *computeEncoder) usage(w uintptr, what string) bool {
	if !e.open(what) {
		return false
	}
	if u := mtl.ResourceUsage(w); u == 0 || u&^(mtl.ResourceUsageRead|mtl.ResourceUsageWrite|4) != 0 {
		e.misuse("%s: %#x is no usage", what, w)
		return false
	}
	return true
}

// inline are the bytes of a setBytes message. More than can be set are not looked at.
func inline(c *objc.Call) []byte {
	n := uint64(c.Word(1))
	if n > maxInlineBytes {
		return make([]byte, maxInlineBytes+1)
	}
	return bytesAt(c.Word(0), n)
}

// setBuffers binds a range of buffers; the range starts at word r.
func (e *computeEncoder) setBuffers(c *objc.Call, r int, what string) {
	first, n := c.Uint(r), c.Uint(r+1)
	if first > bufferSlots || n > bufferSlots-first {
		e.misuse("%s: indices from %d, %d of them; there are %d", what, first, n, bufferSlots)
		return
	}
	offsets := c.Uints(1, n)
	for i, id := range c.IDs(0, n) {
		off := uint64(0)
		if offsets != nil {
			off = uint64(offsets[i])
		}
		e.setBuffer(id, off, first+uint(i), what)
	}
}
