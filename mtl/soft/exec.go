package soft

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
)

// An executor runs the command buffers of one queue, one after the other. All its memory is used again.
type executor struct {
	queue *queue
	dev   *device
	rand  *rand.Rand

	// The encoder that is being executed.
	encoder    int
	concurrent bool
	declared   bitset // resources declared with useResource, useHeap, or bound
	primed     bitset // pipelines that were set and dispatched with no threads
	sets       []*residencySet

	// The dispatches that no barrier separates.
	steps  []step
	order  []int
	binds  []binding
	memory []threadgroupMemory
	uses   []use
	round  uint64
	window window
	fresh  []*trace
	done   []origin // of the window's dispatches that were traced

	// What orders the encoder that runs; see ledger.
	place        int    // its place in the ledger
	serial       uint64 // of its command buffer
	declarations []declaration
	declaredAt   []int32    // by storage index, where in declarations
	all          encoderSet // the encoders of the queue so far
	waited       encoderSet // what is before them because the queue waited for events

	dispatch simt.Dispatch
	current  [bufferSlots]*trace // traces of the dispatch that runs, by slot
	bases    [bufferSlots]uint64 // where what is bound starts in its storage
	access   func(slot int, offset, size uint64, kind simt.Access)
}

// A step is one dispatch of a window, or a barrier for some resources in it.
type step struct {
	origin
	threads     bool
	pipeline    *pipeline
	grid, group [3]uint32
	indirect    *buffer
	at          uint64
	binds       []binding
	memory      []threadgroupMemory
	partial     bool     // no dispatch, but a barrier for one resource
	barrier     *storage // the resource's memory, nil if it has none
	icb         *indirect
	traced      bool
}

// An origin is where a dispatch came from, for error texts.
type origin struct {
	encoder  int
	number   int // of the dispatch in the encoder
	command  int // of the indirect command buffer, or -1
	blit     bool
	icbName  *indirect
	pipeline *pipeline
	binds    []binding
}

// A use is how the dispatches of a window use one storage.
type use struct {
	round   uint64
	first   int32 // a dispatch that uses it
	several bool  // more than one does
	written bool  // one may write to it
}

func newExecutor(q *queue) *executor {
	x := &executor{queue: q, dev: q.dev, rand: rand.New(rand.NewPCG(q.dev.opts.Seed, 1))}
	x.window.pool = q.dev.pages
	x.access = x.noteAccess
	return x
}

// execute runs a command buffer.
func (x *executor) execute(cb *commandBuffer) (f *failure) {
	defer func() {
		// A bug of this package must not take the program with it, nor be mistaken for success.
		if r := recover(); r != nil {
			f = &failure{code: mtl.CommandBufferErrorInternal, text: fmt.Sprintf("the software device failed: %v", r), encoder: x.encoder}
		}
		cb.ran = x.all
		x.forget()
	}()
	x.encoder, x.serial = -1, cb.serial
	x.sets = append(x.sets[:0], x.queue.residencySets()...)
	for i := range cb.rec.commands {
		c := &cb.rec.commands[i]
		if c.op == opUseSet {
			x.sets = append(x.sets, c.set)
		}
	}
	for i := range cb.rec.commands {
		if x.dev.isRemoved() {
			return removedFailure()
		}
		c := &cb.rec.commands[i]
		if c.op == opBegin && !x.dev.opts.NoHazards {
			x.encoder = int(c.encoder)
			x.beginOrder(cb, i)
		}
		if f := x.command(cb, c); f != nil {
			if f.encoder < 0 && c.encoder >= 0 && c.op != opSignal && c.op != opWait {
				f.encoder = x.encoder
			}
			if f.encoder >= 0 && f.encoder < len(cb.rec.encodings) {
				f.text = fmt.Sprintf("%s: %s", cb.rec.encodings[f.encoder].name(f.encoder), f.text)
			}
			return f
		}
	}
	return nil
}

// forget drops what the executor refers to.
func (x *executor) forget() {
	x.window.reset()
	clear(x.steps)
	clear(x.binds[:cap(x.binds)])
	clear(x.sets[:cap(x.sets)])
	clear(x.done[:cap(x.done)])
	clear(x.declarations[:cap(x.declarations)])
	x.steps, x.binds, x.memory, x.sets, x.done = x.steps[:0], x.binds[:0], x.memory[:0], x.sets[:0], x.done[:0]
	x.declarations = x.declarations[:0]
	x.dispatch = simt.Dispatch{}
}

func invalid(format string, args ...any) *failure {
	return &failure{code: mtl.CommandBufferErrorInvalidResource, text: fmt.Sprintf(format, args...), encoder: -1}
}

func (x *executor) command(cb *commandBuffer, c *command) *failure {
	switch c.op {
	case opBegin:
		x.encoder = int(c.encoder)
		x.concurrent = c.concurrent
		clear(x.declared)
		clear(x.primed)
	case opEnd:
		return x.flush()
	case opDispatch:
		return x.addDispatch(c)
	case opExecute:
		return x.addCommands(c)
	case opBarrier:
		return x.flush()
	case opBarrierResource:
		if x.concurrent {
			x.steps = append(x.steps, step{barrier: c.storage, partial: true})
		}
	case opUse:
		if c.resource.freed.Load() {
			return invalid("useResource names a resource that has been released")
		}
		x.declared.add(c.resource.index)
	case opUseSet:
	case opCopy, opFill, opSynchronize:
		return x.blit(c)
	case opResetICB:
		if c.icb.freed.Load() {
			return invalid("%s has been released", c.icb.name())
		}
		c.icb.reset(c.at, c.n)
	case opCopyICB:
		if c.icb.freed.Load() || c.toICB.freed.Load() {
			return invalid("an indirect command buffer of a copy has been released")
		}
		c.icb.copyTo(c.toICB, c.at, c.n, c.dst)
	case opOptimizeICB:
		// Commands are kept in the form in which they are executed.
	case opSample:
		if !c.concurrent {
			if f := x.flush(); f != nil {
				return f
			}
		}
		c.samples.sample(c.at)
	case opResolve:
		return x.resolve(c)
	case opFenceUpdate, opFenceWait, opQueueBarrier:
		// Encoders of a queue run in order.
	case opSignal:
		x.dev.ledger.orderEvent(c.event, &x.all)
		c.event.signal(c.at)
	case opWait:
		if !c.event.wait(c.at, time.Duration(x.dev.opts.EventTimeout)*time.Millisecond, x.dev.removed) {
			if x.dev.isRemoved() {
				return removedFailure()
			}
			return &failure{code: mtl.CommandBufferErrorTimeout, encoder: -1,
				text: fmt.Sprintf("the wait for value %d of event %q took longer than %d ms; its value is %d",
					c.at, c.event.label(), x.dev.opts.EventTimeout, c.event.current())}
		}
		x.dev.ledger.waitEvent(c.event, &x.waited)
	}
	return nil
}

func (x *executor) blit(c *command) *failure {
	if c.from != nil && c.from.freed.Load() || c.to.freed.Load() {
		return invalid("a buffer of a blit has been released")
	}
	if f := x.orderBlit(c); f != nil {
		return f
	}
	switch c.op {
	case opCopy:
		copy(c.to.mem[c.dst:c.dst+c.n], c.from.mem[c.at:c.at+c.n])
	case opFill:
		mem := c.to.mem[c.dst : c.dst+c.n]
		for i := range mem {
			mem[i] = c.fill
		}
	case opSynchronize:
		c.to.synchronize()
	}
	return nil
}

// addDispatch adds a dispatch to the window. In a serial encoder every dispatch is a window of its own.
func (x *executor) addDispatch(c *command) *failure {
	for i := range c.binds {
		if b := c.binds[i].buf; b != nil && !b.freed.Load() {
			x.declared.add(b.index)
		}
	}
	if x.dev.opts.FirstFamilies {
		x.primed.add(c.pipeline.index)
	}
	x.steps = append(x.steps, step{
		origin:  origin{encoder: x.encoder, number: int(c.number), command: -1, pipeline: c.pipeline, binds: c.binds},
		threads: c.threads, pipeline: c.pipeline, grid: c.grid, group: c.group, indirect: c.indirect, at: c.at,
		binds: c.binds, memory: c.memory,
	})
	if !x.concurrent {
		return x.flush()
	}
	return nil
}

// addCommands adds the commands of an indirect command buffer to the window.
func (x *executor) addCommands(c *command) *failure {
	b := c.icb
	if b.freed.Load() {
		return invalid("executeCommandsInBuffer: %s has been released", b.name())
	}
	at, n := c.at, c.n
	if c.indirect != nil {
		// The range is in memory that earlier dispatches may write.
		if f := x.readRange(c, &at, &n); f != nil {
			return f
		}
	}
	if !b.contains(at, n) {
		return invalid("executeCommandsInBuffer: commands %d to %d of %s, which has %d", at, at+n, b.name(), len(b.commands))
	}
	for i := at; i < at+n; i++ {
		b.mu.RLock()
		cmd := &b.commands[i]
		set, barrier, misuse := cmd.set, cmd.barrier, cmd.err
		b.mu.RUnlock()
		if misuse != "" {
			return invalid("command %d of %s: %s", i, b.name(), misuse)
		}
		if !set {
			continue
		}
		if barrier {
			if f := x.flush(); f != nil {
				return f
			}
		}
		s, f := x.indirectStep(c, b, int(i))
		if f != nil {
			return f
		}
		x.steps = append(x.steps, s)
		x.dev.indirectCommands.Add(1)
	}
	if !x.concurrent {
		return x.flush()
	}
	return nil
}

// indirectStep makes a dispatch of a command.
func (x *executor) indirectStep(c *command, b *indirect, i int) (step, *failure) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	cmd := &b.commands[i]
	p := cmd.pipeline
	if b.inheritPipeline {
		p = c.pipeline
	}
	s := step{origin: origin{encoder: x.encoder, number: int(c.number), command: i, icbName: b},
		threads: cmd.threads, grid: cmd.grid, group: cmd.group, icb: b}
	switch {
	case p == nil:
		return s, invalid("command %d of %s has no pipeline", i, b.name())
	case p.freed.Load():
		return s, invalid("command %d of %s: the pipeline of kernel %q has been released", i, b.name(), p.kernel)
	case !p.indirect:
		return s, invalid("command %d of %s: the pipeline of kernel %q was made without supportIndirectCommandBuffers", i, b.name(), p.kernel)
	case x.dev.opts.FirstFamilies && !x.primed.has(p.index):
		return s, invalid("command %d of %s: on this GPU family the pipeline of kernel %q must first be set on the encoder and dispatched with a size of zero",
			i, b.name(), p.kernel)
	}
	from := cmd.binds
	if b.inheritBuffers {
		from = c.binds
	}
	start := len(x.binds)
	for k := range from {
		if p.uses(from[k].slot) {
			x.binds = append(x.binds, from[k])
		}
	}
	first := len(x.memory)
	x.memory = append(x.memory, cmd.memory...)
	s.pipeline, s.binds, s.memory = p, x.binds[start:len(x.binds):len(x.binds)], x.memory[first:len(x.memory):len(x.memory)]
	s.origin.pipeline, s.origin.binds = p, s.binds
	if b.inheritBuffers {
		return s, nil
	}
	for k := range s.binds {
		buf := s.binds[k].buf
		if !x.dev.opts.NoHazards {
			x.loosen(p, &s.binds[k])
		}
		if !buf.freed.Load() && !x.reachable(buf) {
			return s, invalid("command %d of %s: %s at %s of kernel %q is neither declared with useResource nor resident",
				i, b.name(), buf.name(), p.argName(s.binds[k].slot), p.kernel)
		}
	}
	return s, nil
}

// reachable tells whether a buffer that only an indirect command names may be used.
func (x *executor) reachable(b *buffer) bool {
	if x.declared.has(b.index) || b.heap != nil && x.declared.has(b.heap.index) {
		return true
	}
	for _, s := range x.sets {
		if s.has(b.index) || b.heap != nil && s.has(b.heap.index) {
			return true
		}
	}
	return false
}

// readRange runs what comes before, and reads the range of an execution from memory.
func (x *executor) readRange(c *command, at, n *uint64) *failure {
	if c.indirect.freed.Load() {
		return invalid("executeCommandsInBuffer: the buffer of the range has been released")
	}
	mem := c.indirect.mem
	if c.at%4 != 0 || c.at > uint64(len(mem)) || uint64(len(mem))-c.at < 8 {
		return invalid("executeCommandsInBuffer: a range at offset %d of %s, which has %d bytes", c.at, c.indirect.name(), len(mem))
	}
	if f := x.run(true); f != nil {
		return f
	}
	if x.concurrent && !x.dev.opts.NoHazards {
		// The GPU reads the range: that, too, may meet what came before.
		x.fresh = append(x.fresh[:0], x.window.open(c.indirect.storage, len(x.done), indirectSlot))
		x.fresh[0].note(c.indirect.base+c.at, 8, reads, x.window.pool)
		x.done = append(x.done, origin{encoder: x.encoder, number: int(c.number), command: -1, icbName: c.icb})
		if f := x.closeTraces(x.encoder); f != nil {
			return f
		}
	}
	*at, *n = uint64(binary.LittleEndian.Uint32(mem[c.at:])), uint64(binary.LittleEndian.Uint32(mem[c.at+4:]))
	return nil
}
