package soft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
)

// indirectSlot is where the arguments of an indirect dispatch count as bound.
const indirectSlot = bufferSlots

// flush runs the window and ends it: a barrier, the end of the encoder, or a serial encoder's next dispatch.
func (x *executor) flush() *failure {
	f := x.run(false)
	x.window.reset()
	x.done = x.done[:0]
	x.binds, x.memory = x.binds[:0], x.memory[:0]
	return f
}

// run runs what the window holds so far. Whatever ran stays in it until the next barrier. If more is to come that is not
// known yet, every access is noted, since it may meet what comes.
func (x *executor) run(more bool) *failure {
	steps := x.steps
	if len(steps) == 0 {
		return nil
	}
	defer func() {
		clear(steps)
		x.steps = x.steps[:0]
	}()
	if (more || len(steps) > 1 || len(x.done) > 0) && !x.dev.opts.NoHazards {
		x.analyse(more)
	}
	if !x.dev.opts.NoHazards {
		x.traceLoose()
	}
	x.arrange()
	for _, i := range x.order {
		s := &steps[i]
		switch {
		case s.partial:
			if s.barrier != nil {
				x.window.barrier(s.barrier)
			}
		default:
			if x.dev.isRemoved() {
				return removedFailure()
			}
			if f := x.dispatchStep(s); f != nil {
				if f.encoder < 0 {
					f.encoder = s.encoder
				}
				return f
			}
		}
	}
	return nil
}

// arrange decides the order of the steps. Barriers for some resources stay where they are: what is before one runs
// before it.
func (x *executor) arrange() {
	x.order = x.order[:0]
	for i := range x.steps {
		x.order = append(x.order, i)
	}
	if x.dev.opts.Order == Encoded {
		return
	}
	for from := 0; from < len(x.order); {
		to := from
		for to < len(x.order) && !x.steps[x.order[to]].partial {
			to++
		}
		part := x.order[from:to]
		if x.dev.opts.Order == Reversed {
			for i, j := 0, len(part)-1; i < j; i, j = i+1, j-1 {
				part[i], part[j] = part[j], part[i]
			}
		} else {
			x.rand.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		}
		from = to + 1
	}
}

// analyse finds the dispatches that could meet: those that bind the same storage, where one of them may write to it.
// Only they are traced, unless more is to come.
func (x *executor) analyse(more bool) {
	x.round++
	for i := range x.steps {
		s := &x.steps[i]
		x.each(s, func(st *storage, written bool) {
			for st.index >= len(x.uses) {
				x.uses = append(x.uses, use{})
			}
			u := &x.uses[st.index]
			if u.round != x.round {
				*u = use{round: x.round, first: int32(i)}
				// What ran before may meet it, too.
				u.several = x.window.union(st) != nil
			}
			u.several = u.several || more || u.first != int32(i)
			u.written = u.written || more || written || x.window.union(st) != nil
		})
	}
	for i := range x.steps {
		s := &x.steps[i]
		x.each(s, func(st *storage, _ bool) {
			if u := &x.uses[st.index]; u.several && u.written {
				s.traced = true
			}
		})
	}
}

// meets tells whether a storage is one of those that dispatches of the window could meet in.
func (x *executor) meets(st *storage) bool {
	if st.index >= len(x.uses) {
		return false
	}
	u := &x.uses[st.index]
	return u.round == x.round && u.several && u.written
}

// each calls f for each storage that a dispatch could touch.
func (x *executor) each(s *step, f func(st *storage, written bool)) {
	if s.partial || s.pipeline == nil {
		return
	}
	for i := range s.binds {
		b := &s.binds[i]
		if b.buf == nil {
			continue
		}
		if a := s.pipeline.arg(air.BufferArg, b.slot); a != nil && !a.Unused {
			f(b.buf.storage, a.Writable)
		}
	}
	if s.indirect != nil {
		f(s.indirect.storage, false)
	}
}

// where is how error texts call a dispatch.
func (o *origin) where() string {
	if o.blit {
		return "a blit"
	}
	if o.pipeline == nil {
		return fmt.Sprintf("dispatch %d, the execution of %s", o.number, o.icbName.name())
	}
	if o.icbName != nil {
		return fmt.Sprintf("dispatch %d, command %d of %s (kernel %q)", o.number, o.command, o.icbName.name(), o.pipeline.kernel)
	}
	return fmt.Sprintf("dispatch %d (kernel %q)", o.number, o.pipeline.kernel)
}

// dispatchStep checks a dispatch and runs it.
func (x *executor) dispatchStep(s *step) *failure {
	if f := x.readGrid(s); f != nil {
		return f
	}
	if s.grid[0] == 0 || s.grid[1] == 0 || s.grid[2] == 0 {
		return nil // nothing to do
	}
	if text := x.check(s); text != "" {
		return invalid("%s: %s", s.where(), text)
	}
	d := &x.dispatch
	d.Threads, d.Steps = s.group, x.dev.opts.StepLimit
	d.Order, d.Counts = simt.Order(x.dev.opts.Order), nil
	if d.Order == simt.Shuffled {
		d.Seed = x.rand.Uint64()
	}
	if c := s.pipeline.counts; c != nil {
		d.Counts = &c.counts
		c.dispatches.Add(1)
	}
	if s.threads {
		d.Grid = s.grid
		for i := range d.Groups {
			d.Groups[i] = uint32((uint64(s.grid[i]) + uint64(s.group[i]) - 1) / uint64(s.group[i]))
		}
	} else {
		d.Groups, d.Grid = s.grid, [3]uint32{}
	}
	d.Buffers = [bufferSlots]simt.Buffer{}
	d.ThreadgroupMemory = [threadgroupSlots]uint32{}
	for i := range s.binds {
		switch b := &s.binds[i]; {
		case b.buf != nil:
			d.Buffers[b.slot] = simt.Buffer{Mem: s.memoryOf(i), Offset: b.off, Name: b.buf.label()}
		default:
			d.Buffers[b.slot] = simt.Buffer{Mem: b.bytes}
		}
	}
	for _, m := range s.memory {
		d.ThreadgroupMemory[m.index] = m.length
	}
	x.dev.dispatches.Add(1)
	x.dev.threadgroups.Add(uint64(d.Groups[0]) * uint64(d.Groups[1]) * uint64(d.Groups[2]))
	if !s.traced {
		return x.runProgram(s)
	}
	x.openTraces(s)
	if f := x.runProgram(s); f != nil {
		x.dropTraces()
		return f
	}
	return x.closeTraces(s.encoder)
}

func (x *executor) runProgram(s *step) *failure {
	err := s.pipeline.program.Run(&x.dispatch, x.dev.opts.Workers)
	if err == nil {
		return nil
	}
	f := &failure{code: mtl.CommandBufferErrorInternal, encoder: -1}
	var fault *simt.Fault
	if errors.As(err, &fault) {
		f.code = faultCode(fault)
		f.text = fmt.Sprintf("%s: %v%s", s.where(), fault, x.boundTo(s, fault))
	} else {
		f.text = fmt.Sprintf("%s: %v", s.where(), err)
	}
	return f
}

// faultCode is the code that a real device would give, or the nearest to it.
func faultCode(f *simt.Fault) mtl.CommandBufferError {
	switch f.Kind {
	case simt.FaultOutOfBounds, simt.FaultMisaligned, simt.FaultNull, simt.FaultBadPointer, simt.FaultConstantWrite:
		return mtl.CommandBufferErrorPageFault
	case simt.FaultUnbound, simt.FaultThreadgroup, simt.FaultTooManyThreads, simt.FaultDispatch:
		return mtl.CommandBufferErrorInvalidResource
	case simt.FaultUnwritten, simt.FaultRace, simt.FaultGroupRace:
		return mtl.CommandBufferErrorInvalidResource
	case simt.FaultStepLimit, simt.FaultDivergentBarrier:
		return mtl.CommandBufferErrorTimeout
	}
	return mtl.CommandBufferErrorInternal
}

// boundTo says what was bound at the slot of a fault.
func (x *executor) boundTo(s *step, f *simt.Fault) string {
	if f.Memory != simt.MemoryBuffer {
		return ""
	}
	for i := range s.binds {
		b := &s.binds[i]
		switch {
		case b.slot != f.Slot:
		case b.buf == nil:
			return fmt.Sprintf("; bound are %d bytes set on the encoder", len(b.bytes))
		default:
			text := fmt.Sprintf("; bound is %s (%d bytes) at offset %d", b.buf.name(), len(b.buf.mem), b.off)
			if b.declared != 0 {
				text += fmt.Sprintf(", of which %d bytes were declared", b.declared)
			}
			return text
		}
	}
	return ""
}

// readGrid reads the size of an indirect dispatch.
func (x *executor) readGrid(s *step) *failure {
	if s.indirect == nil {
		return nil
	}
	if s.indirect.freed.Load() {
		return invalid("%s: its indirect buffer has been released", s.where())
	}
	mem := s.indirect.mem
	if s.at%4 != 0 || s.at > uint64(len(mem)) || uint64(len(mem))-s.at < 12 {
		return invalid("%s: indirect arguments at offset %d of %s, which has %d bytes", s.where(), s.at, s.indirect.name(), len(mem))
	}
	for i := range s.grid {
		s.grid[i] = binary.LittleEndian.Uint32(mem[s.at+uint64(i)*4:])
	}
	return nil
}

// check says what is wrong with a dispatch, nothing if it may run.
func (x *executor) check(s *step) string {
	p := s.pipeline
	if p.freed.Load() {
		return "its pipeline has been released"
	}
	if hidden := p.program.HiddenWrites(); hidden != 0 {
		return fmt.Sprintf("the kernel writes to %s, which it declares as read only", p.argName(bits.TrailingZeros32(hidden)))
	}
	total := uint64(1)
	for i, n := range s.group {
		switch {
		case n == 0:
			return fmt.Sprintf("a threadgroup of %v threads for a grid of %v", s.group, s.grid)
		case uint64(n) > uint64(x.dev.opts.MaxThreads):
			return fmt.Sprintf("a threadgroup of %v threads; the device allows %d in one dimension", s.group, x.dev.opts.MaxThreads)
		case p.required[i] != 0 && n != p.required[i]:
			return fmt.Sprintf("a threadgroup of %v threads; the pipeline was made for %v", s.group, p.required)
		}
		total *= uint64(n)
	}
	if total > uint64(p.maxThreads) {
		return fmt.Sprintf("a threadgroup of %v, that is %d threads; the pipeline's maxTotalThreadsPerThreadgroup is %d", s.group, total, p.maxThreads)
	}
	if p.multiple && total%uint64(p.width) != 0 {
		return fmt.Sprintf("a threadgroup of %d threads; the pipeline was promised multiples of %d", total, p.width)
	}
	if s.threads {
		for i := range s.grid {
			if uint64(s.grid[i]) > math.MaxUint32-uint64(s.group[i]) {
				return fmt.Sprintf("a grid of %v threads is too large", s.grid)
			}
		}
	} else {
		for i := range s.grid {
			if uint64(s.grid[i])*uint64(s.group[i]) > math.MaxUint32 {
				return fmt.Sprintf("a grid of %v threadgroups of %v threads is too large", s.grid, s.group)
			}
		}
	}
	if text := x.checkMemory(s); text != "" {
		return text
	}
	return x.checkBinds(s)
}

// checkMemory checks threadgroup memory.
func (x *executor) checkMemory(s *step) string {
	p := s.pipeline
	sum := uint64(p.static)
	for _, m := range s.memory {
		sum += uint64(m.length)
	}
	if sum > uint64(x.dev.opts.ThreadgroupMemory) {
		return fmt.Sprintf("%d bytes of threadgroup memory, %d of them declared by the kernel; the device has %d", sum, p.static, x.dev.opts.ThreadgroupMemory)
	}
	for i := range p.args {
		a := &p.args[i]
		if a.Kind != air.ThreadgroupArg || !a.needed {
			continue
		}
		found := false
		for _, m := range s.memory {
			found = found || m.index == a.Index && m.length > 0
		}
		if !found {
			return fmt.Sprintf("no length is set for threadgroup memory %d (%s)", a.Index, a.Name)
		}
	}
	return ""
}

// checkBinds checks what is bound against what the kernel declares.
func (x *executor) checkBinds(s *step) string {
	p := s.pipeline
	for i := range p.args {
		a := &p.args[i]
		if a.Kind != air.BufferArg {
			continue
		}
		b := s.bind(a.Index)
		if b == nil {
			if a.needed {
				return fmt.Sprintf("nothing is bound at slot %d (%s)", a.Index, a.Name)
			}
			continue
		}
		size, off := uint64(len(b.bytes)), uint64(0)
		if b.buf != nil {
			if b.buf.freed.Load() {
				return fmt.Sprintf("%s at slot %d (%s) has been released", b.buf.name(), a.Index, a.Name)
			}
			size, off = uint64(len(b.buf.mem)), b.off
			if off >= size {
				return fmt.Sprintf("offset %d at slot %d (%s) is beyond %s, which has %d bytes", off, a.Index, a.Name, b.buf.name(), size)
			}
			align := uint64(max(a.Align, 1))
			if a.Space == 2 {
				align = max(align, uint64(x.dev.opts.ConstantAlignment))
			}
			if off%align != 0 {
				return fmt.Sprintf("offset %d at slot %d (%s, %s) of %s is not a multiple of %d", off, a.Index, a.Name, a.TypeName, b.buf.name(), align)
			}
		}
		if need := uint64(a.BufferSize); size-off < need {
			what := "bytes set on the encoder"
			if b.buf != nil {
				what = b.buf.name()
			}
			return fmt.Sprintf("slot %d (%s, %s) needs %d bytes; from offset %d on %s has %d", a.Index, a.Name, a.TypeName, need, off, what, size-off)
		}
	}
	return ""
}

func (s *step) bind(slot int) *binding {
	for i := range s.binds {
		if s.binds[i].slot == slot {
			return &s.binds[i]
		}
	}
	return nil
}

func (p *pipeline) uses(slot int) bool {
	for _, i := range p.bufferSlots {
		if i == slot {
			return true
		}
	}
	return false
}
