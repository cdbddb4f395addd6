package soft

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A commandBuffer is MTLCommandBuffer.
type commandBuffer struct {
	object
	queue    *queue
	retained bool
	options  mtl.CommandBufferErrorOption
	serial   uint64 // unique, never 0

	// Encoding. One goroutine encodes at a time, as in Metal.
	rec     *recording
	encoder encoder // the open one
	groups  int     // debug groups open
	first   *failure

	enqueued, committed bool // guarded by the queue's lock
	given               bool // the queue has room again

	seen encoderSet // what the host had seen complete when it committed
	ran  encoderSet // what had run in the queue at the end

	mu        sync.Mutex
	changed   sync.Cond
	status    mtl.CommandBufferStatus
	finished  bool // and the handlers have been called
	err       objc.ID
	scheduled []objc.Block
	completed []objc.Block
	times     [4]float64 // kernel start and end, GPU start and end
}

var serials atomic.Uint64

// newCommandBuffer waits for room in the queue. The caller owns the result.
func (q *queue) newCommandBuffer(retained bool, options uint64) objc.ID {
	q.acquire()
	cb := &commandBuffer{queue: q, retained: retained, options: mtl.CommandBufferErrorOption(options), serial: serials.Add(1)}
	cb.dev = q.dev
	cb.changed.L = &cb.mu
	cb.rec = q.dev.takeRecording()
	q.id.Retain()
	cb.id = q.dev.adopt(q.dev.classes.commandBuffer, cb)
	return cb.id
}

// Dealloc lets go of everything. A command buffer that was committed is held until it completed.
func (cb *commandBuffer) Dealloc() {
	cb.queue.mu.Lock()
	waits := cb.enqueued && !cb.committed
	cb.queue.mu.Unlock()
	if waits {
		cb.queue.drop(cb)
	}
	cb.letGo()
	for _, b := range append(cb.scheduled, cb.completed...) {
		b.Release()
	}
	cb.err.Release()
	cb.queue.id.Release()
	cb.dev.forget()
}

// letGo gives back what was held for the execution.
func (cb *commandBuffer) letGo() {
	if rec := cb.rec; rec != nil {
		cb.rec = nil
		if cb.committed {
			for _, e := range rec.executions {
				e.icb.end(e)
			}
		}
		for _, id := range rec.held {
			id.Release()
		}
		cb.dev.giveRecording(rec)
	}
	if !cb.given {
		cb.given = true
		cb.queue.giveUp()
	}
}

// ObjcError makes a message that could not be delivered an error of the command buffer.
func (cb *commandBuffer) ObjcError(err error) { cb.fail(mtl.CommandBufferErrorInternal, "%v", err) }

// fail notes the first misuse of the command buffer: it will not be executed, and says why.
func (cb *commandBuffer) fail(code mtl.CommandBufferError, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	cb.mu.Lock()
	status := cb.status
	if cb.first == nil && status < mtl.CommandBufferStatusCommitted {
		cb.first = &failure{code: code, text: text, encoder: -1}
	}
	cb.mu.Unlock()
	if status >= mtl.CommandBufferStatusCommitted {
		cb.dev.misuse("%s, in a command buffer that was committed before", text)
	}
}

// hold keeps a resource alive until the command buffer completed, unless it was made not to.
func (cb *commandBuffer) hold(r *resource) {
	if !cb.retained || r.holder.Load() == cb.serial {
		return
	}
	r.holder.Store(cb.serial)
	cb.rec.held = append(cb.rec.held, r.id.Retain())
}

// keep keeps an object that is not a resource alive.
func (cb *commandBuffer) keep(id objc.ID, holder *atomic.Uint64) {
	if holder.Load() == cb.serial {
		return
	}
	holder.Store(cb.serial)
	cb.rec.held = append(cb.rec.held, id.Retain())
}

// add appends a command.
func (cb *commandBuffer) add(o op) *command {
	rec := cb.rec
	if n := len(rec.commands); n < cap(rec.commands) {
		rec.commands = rec.commands[:n+1]
	} else {
		rec.commands = append(rec.commands, command{})
	}
	c := &rec.commands[len(rec.commands)-1]
	c.op = o
	c.encoder = int32(len(rec.encodings) - 1)
	return c
}

// ready tells whether something can be encoded now, and notes the misuse if not.
func (cb *commandBuffer) ready(what string) bool {
	switch {
	case cb.committed:
		cb.fail(mtl.CommandBufferErrorInternal, "%s after the command buffer was committed", what)
	case cb.encoder != nil:
		cb.fail(mtl.CommandBufferErrorInternal, "%s while an encoder is open: endEncoding comes first", what)
	default:
		return true
	}
	return false
}

func (cb *commandBuffer) enqueue() {
	cb.queue.mu.Lock()
	defer cb.queue.mu.Unlock()
	if !cb.enqueued {
		cb.enqueued = true
		cb.queue.enqueue(cb)
		cb.setStatus(mtl.CommandBufferStatusEnqueued)
	}
}

// commit hands the command buffer to the queue.
func (cb *commandBuffer) commit() {
	if cb.committed {
		cb.dev.misuse("commit of a command buffer that was committed before")
		return
	}
	if cb.encoder != nil {
		cb.fail(mtl.CommandBufferErrorInternal, "commit while an encoder is open: endEncoding comes first")
		cb.encoder.close()
	}
	if cb.groups != 0 {
		cb.fail(mtl.CommandBufferErrorInternal, "commit with %d debug groups open", cb.groups)
	}
	if f := cb.dev.takeMisuse(); f != nil && cb.first == nil {
		cb.first = f
	}
	cb.seen = cb.dev.ledger.observed()
	cb.id.Retain()
	cb.dev.commits.Add(1)
	cb.queue.mu.Lock()
	defer cb.queue.mu.Unlock()
	if !cb.enqueued {
		cb.enqueued = true
		cb.queue.enqueue(cb)
	}
	cb.committed = true
	for _, e := range cb.rec.executions {
		e.icb.begin(e)
	}
	cb.setStatus(mtl.CommandBufferStatusCommitted)
	cb.queue.kick()
}

func (cb *commandBuffer) setStatus(s mtl.CommandBufferStatus) {
	cb.mu.Lock()
	cb.status = s
	cb.mu.Unlock()
	cb.changed.Broadcast()
}

func (cb *commandBuffer) hasHandlers() bool {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return len(cb.completed) > 0
}

// execute runs on the queue's goroutine.
func (cb *commandBuffer) execute(x *executor) {
	dev := cb.dev
	cb.mark(0)
	cb.mu.Lock()
	cb.status = mtl.CommandBufferStatusScheduled
	handlers := cb.scheduled
	cb.scheduled = nil
	cb.mu.Unlock()
	cb.changed.Broadcast()
	if len(handlers) > 0 {
		dev.goroutines.Add(1)
		cb.id.Retain()
		go func() {
			defer dev.goroutines.Add(-1)
			defer cb.id.Release()
			cb.call(handlers)
		}()
	}
	cb.mark(1)
	cb.mark(2)
	f := cb.before()
	if f == nil {
		f = x.execute(cb)
	}
	cb.mark(3)
	if f != nil {
		cb.err = cb.nsError(f)
		dev.failures.Add(1)
	}
}

// before is what ends a command buffer before it begins.
func (cb *commandBuffer) before() *failure {
	dev := cb.dev
	if dev.fails(&dev.faults.remove) {
		dev.remove()
	}
	if dev.fails(&dev.faults.hang) {
		<-dev.removed
	}
	switch {
	case dev.isRemoved():
		return removedFailure()
	case dev.fails(&dev.faults.commit):
		return &failure{code: mtl.CommandBufferErrorInternal, text: "this command buffer was told to fail", encoder: -1}
	}
	return cb.first
}

// finish makes the result known, calls the handlers and lets go of what was held. Whoever waits goes on when all of
// that is done.
func (cb *commandBuffer) finish() {
	cb.letGo()
	cb.mu.Lock()
	cb.status = mtl.CommandBufferStatusCompleted
	if cb.err != 0 {
		cb.status = mtl.CommandBufferStatusError
	}
	handlers := cb.completed
	cb.completed = nil
	cb.mu.Unlock()
	if len(handlers) > 0 {
		cb.dev.ledger.observe(&cb.ran)
	}
	cb.call(handlers)
	cb.id.Release()
	cb.mu.Lock()
	cb.finished = true
	cb.mu.Unlock()
	cb.changed.Broadcast()
}

func (cb *commandBuffer) call(handlers []objc.Block) {
	for _, b := range handlers {
		if err := objc.InvokeBlock(b, uintptr(cb.id)); err != nil {
			cb.dev.misuse("a handler: %v", err)
		}
		b.Release()
	}
}

// mark notes a time.
func (cb *commandBuffer) mark(i int) {
	now := seconds()
	cb.mu.Lock()
	cb.times[i] = now
	cb.mu.Unlock()
}

func (cb *commandBuffer) time(i int) float64 {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if cb.status < mtl.CommandBufferStatusCompleted {
		return 0
	}
	return cb.times[i]
}

// epoch is the zero of the device's clock. It lies before the program started, so that no time is zero.
var epoch = time.Now().Add(-time.Second)

// seconds is the device's monotonic clock.
func seconds() float64 { return time.Since(epoch).Seconds() }

// waitFor waits for a state that only a committed command buffer reaches.
func (cb *commandBuffer) waitFor(what string, reached func() bool) {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if cb.status < mtl.CommandBufferStatusCommitted {
		cb.dev.misuse("%s of a command buffer that was not committed", what)
		return
	}
	for !reached() {
		cb.changed.Wait()
	}
}

// addHandler keeps a block for later.
func (cb *commandBuffer) addHandler(list *[]objc.Block, what string, block objc.Block) {
	if block == 0 {
		return
	}
	cb.mu.Lock()
	late := cb.status >= mtl.CommandBufferStatusCommitted
	if !late {
		*list = append(*list, block.Retain())
	}
	cb.mu.Unlock()
	if late {
		cb.dev.misuse("%s of a command buffer that was committed before", what)
	}
}

// event adds a command for an event.
func (cb *commandBuffer) event(o op, what string, c *objc.Call) {
	e := valueOf[*event](c.Word(0))
	if !cb.ready(what) {
		return
	}
	if e == nil || e.dev != cb.dev {
		cb.fail(mtl.CommandBufferErrorInvalidResource, "%s: %s is no event of this device", what, describe(c.Object(0)))
		return
	}
	cmd := cb.add(o)
	cmd.encoder = -1
	cmd.event, cmd.at = e, uint64(c.Word(1))
	cb.rec.held = append(cb.rec.held, e.id.Retain())
}

func (cb *commandBuffer) useSet(id objc.ID) {
	if !cb.retainable("useResidencySet:") {
		return
	}
	s := setOf(cb.dev, id)
	if s == nil {
		return
	}
	cmd := cb.add(opUseSet)
	cmd.set = s
	cb.rec.held = append(cb.rec.held, s.id.Retain())
}

// retainable tells whether the command buffer still takes commands, open encoder or not.
func (cb *commandBuffer) retainable(what string) bool {
	if cb.committed {
		cb.fail(mtl.CommandBufferErrorInternal, "%s after the command buffer was committed", what)
		return false
	}
	return true
}

func commandBufferMethods() methods[*commandBuffer] {
	m := methods[*commandBuffer]{
		"enqueue": func(cb *commandBuffer, c *objc.Call) { cb.enqueue() },
		"commit":  func(cb *commandBuffer, c *objc.Call) { cb.commit() },
		"addScheduledHandler:": func(cb *commandBuffer, c *objc.Call) {
			cb.addHandler(&cb.scheduled, "addScheduledHandler:", objc.Block(c.Word(0)))
		},
		"addCompletedHandler:": func(cb *commandBuffer, c *objc.Call) {
			cb.addHandler(&cb.completed, "addCompletedHandler:", objc.Block(c.Word(0)))
		},
		"waitUntilScheduled": func(cb *commandBuffer, c *objc.Call) {
			cb.waitFor("waitUntilScheduled", func() bool { return cb.status >= mtl.CommandBufferStatusScheduled })
		},
		"waitUntilCompleted": func(cb *commandBuffer, c *objc.Call) {
			cb.waitFor("waitUntilCompleted", func() bool { return cb.finished })
			cb.dev.ledger.observe(&cb.ran)
		},
		"computeCommandEncoder": func(cb *commandBuffer, c *objc.Call) { cb.beginCompute(c, mtl.DispatchTypeSerial, 0) },
		"computeCommandEncoderWithDispatchType:": func(cb *commandBuffer, c *objc.Call) {
			cb.beginCompute(c, mtl.DispatchType(c.Word(0)), 0)
		},
		"computeCommandEncoderWithDescriptor:": func(cb *commandBuffer, c *objc.Call) {
			kind := mtl.DispatchTypeSerial
			if id := c.Object(0); id != 0 {
				kind = mtl.DispatchType(readUint(id, "dispatchType"))
			}
			cb.beginCompute(c, kind, c.Object(0))
		},
		"blitCommandEncoder":                func(cb *commandBuffer, c *objc.Call) { cb.beginBlit(c) },
		"blitCommandEncoderWithDescriptor:": func(cb *commandBuffer, c *objc.Call) { cb.beginBlit(c) },
		"encodeSignalEvent:value:":          func(cb *commandBuffer, c *objc.Call) { cb.event(opSignal, "encodeSignalEvent:value:", c) },
		"encodeWaitForEvent:value:":         func(cb *commandBuffer, c *objc.Call) { cb.event(opWait, "encodeWaitForEvent:value:", c) },
		"pushDebugGroup:":                   func(cb *commandBuffer, c *objc.Call) { cb.groups++ },
		"popDebugGroup": func(cb *commandBuffer, c *objc.Call) {
			if cb.groups--; cb.groups < 0 {
				cb.groups = 0
				cb.fail(mtl.CommandBufferErrorInternal, "popDebugGroup without a debug group")
			}
		},
		"useResidencySet:": func(cb *commandBuffer, c *objc.Call) { cb.useSet(c.Object(0)) },
		"useResidencySets:count:": func(cb *commandBuffer, c *objc.Call) {
			for _, id := range c.IDs(0, c.Uint(1)) {
				cb.useSet(id)
			}
		},
		"commandQueue":       func(cb *commandBuffer, c *objc.Call) { c.ReturnBorrowed(cb.queue.id) },
		"retainedReferences": func(cb *commandBuffer, c *objc.Call) { c.ReturnBool(cb.retained) },
		"errorOptions":       func(cb *commandBuffer, c *objc.Call) { c.Return(uintptr(cb.options)) },
		"status": func(cb *commandBuffer, c *objc.Call) {
			cb.mu.Lock()
			defer cb.mu.Unlock()
			if cb.status >= mtl.CommandBufferStatusCompleted {
				cb.dev.ledger.observe(&cb.ran)
			}
			c.Return(uintptr(cb.status))
		},
		"error": func(cb *commandBuffer, c *objc.Call) {
			cb.mu.Lock()
			defer cb.mu.Unlock()
			if cb.status == mtl.CommandBufferStatusError {
				c.ReturnBorrowed(cb.err)
			}
		},
		// Kernels of this device print nothing.
		"logs":            func(cb *commandBuffer, c *objc.Call) { c.Return(0) },
		"kernelStartTime": func(cb *commandBuffer, c *objc.Call) { c.ReturnFloat64(cb.time(0)) },
		"kernelEndTime":   func(cb *commandBuffer, c *objc.Call) { c.ReturnFloat64(cb.time(1)) },
		"GPUStartTime":    func(cb *commandBuffer, c *objc.Call) { c.ReturnFloat64(cb.time(2)) },
		"GPUEndTime":      func(cb *commandBuffer, c *objc.Call) { c.ReturnFloat64(cb.time(3)) },
	}
	return m.with(labelled[*commandBuffer]()).with(deviced[*commandBuffer]())
}
