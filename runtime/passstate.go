package runtime

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/ingot-metal/ingot/mtl"
)

// use is an allocation that a pass uses.
type use struct {
	a     *allocation // nil if it could not be held
	write bool
	// counted is set when the use is the allocation's: the caller's own scalars each keep count for themselves.
	counted bool
	// reads and writes are the bytes that the whole pass uses: for host accesses, which wait only for what they meet.
	reads, writes spanSet
}

// maxUseSpans bounds how many ranges a use keeps apart; what it does with more is rounded up.
const maxUseSpans = 64

// note adds bytes to those that the pass uses.
func (u *use) note(lo, hi int, write bool) {
	set := &u.reads
	if write {
		set = &u.writes
	}
	if set.add(lo, hi); len(*set) > maxUseSpans {
		set.joinNearest()
	}
}

// meets says whether the pass writes to bytes of the range, or, if the other side writes there, uses them at all.
func (u *use) meets(lo, hi int, write bool) bool {
	return lo < hi && (u.writes.overlaps(lo, hi) || write && u.reads.overlaps(lo, hi))
}

// forget makes the use empty, and keeps its memory for another one.
func (u *use) forget() { *u = use{reads: u.reads[:0], writes: u.writes[:0]} }

// scalarUse is a scalar of the caller's own storage that a pass uses.
type scalarUse struct {
	pool  *ScalarPool
	place int
}

func (s scalarUse) state() *scalarState { return &s.pool.state[s.place] }

// passState is what a pass has encoded and what it uses. It is kept while its submission is in flight, and then reused.
type passState struct {
	rt        *Runtime
	recording bool
	stage     bool    // a recording whose commands join a stream
	stream    *Stream // of a stage and of the chunk that it joins

	count         int
	last          commandKind // of the last command
	barriers      int
	barrierWanted bool

	hazards tracker
	uses    []use // by position in hazards
	scalars []scalarUse
	chunks  []*chunk

	// Direct encoding.
	cb  mtl.CommandBuffer // borrowed from the pool of the pass
	enc encoder

	// Recording.
	cmds     []command
	binds    []bufferBind
	tgs      []groupMemory
	sections []Section
	names    []boundName

	debug   debugNames
	inGroup int32       // the group that is open, 0 for none
	work    *tracedWork // what a trace notes, or nil

	cmd     command // being added, with its bindings
	binding [MaxBuffers]bufferBind
	group   [MaxBuffers]groupMemory
}

// passStates are those that can be reused.
type passStates struct {
	mu   sync.Mutex
	free []*passState
}

func (rt *Runtime) newPassState(recording bool) *passState {
	s := &rt.states
	s.mu.Lock()
	var st *passState
	if n := len(s.free); n > 0 {
		st = s.free[n-1]
		s.free = s.free[:n-1]
	}
	s.mu.Unlock()
	if st == nil {
		st = &passState{rt: rt}
	}
	st.recording = recording
	st.hazards.reset()
	return st
}

// encode encodes a launch that has been validated. Until everything that can fail has succeeded, nothing reaches the
// encoder.
func (p *Pass) encode(l *Launch, pl *pipeline, grid, threads Size, exact bool) error {
	st := p.st
	n := 0
	for rest := l.bound; rest != 0; rest &= rest - 1 {
		slot := bits.TrailingZeros32(rest)
		b := &l.binds[slot]
		bind := &st.binding[n]
		n++
		*bind = bufferBind{slot: uint8(slot), n: b.n}
		switch {
		case b.kind == kindView:
			bind.a, bind.off, bind.access = b.a, uint64(b.off), b.access
			if bind.use = st.use(b.a, bind.writes(), true); bind.use < 0 {
				return l.wrong(slot, "memory that was released", "live memory", ErrClosed)
			}
			if err := st.refuses(l, bind); err != nil {
				return err
			}
			bind.buf = b.a.buf
		case b.pool != nil:
			a := b.pool.store.view.a
			// A kernel may have written it through its view.
			bind.a, bind.off, bind.access, bind.fixed = a, uint64(b.place*scalarStride), accessRead, true
			if bind.use = st.use(a, false, false); bind.use < 0 {
				return l.wrong(slot, "a scalar of released storage", "live storage", ErrClosed)
			}
			bind.buf = a.buf
		default:
			c, off, err := st.room(b.n)
			if err != nil {
				return err
			}
			if !b.kind.scalar() {
				copy(c.at(off, b.n), l.inline[b.off:b.off+b.n])
			} else {
				binary.NativeEndian.PutUint32(c.at(off, 4), b.bits)
			}
			bind.buf, bind.off = c.buf, uint64(off)
		}
	}
	groups := 0
	for rest := l.groups; rest != 0; rest &= rest - 1 {
		index := bits.TrailingZeros32(rest)
		st.group[groups] = groupMemory{uint8(index), l.tg[index]}
		groups++
	}
	st.cmd = command{pl: pl, grid: grid, threads: threads, exact: exact}
	if err := st.add(l.name, n, groups); err != nil {
		return err
	}
	for rest := l.bound; rest != 0; rest &= rest - 1 {
		if b := &l.binds[bits.TrailingZeros32(rest)]; b.pool != nil {
			s := scalarUse{b.pool, b.place}
			if st.runs() {
				s.state().open.Add(1)
			}
			st.scalars = append(st.scalars, s)
		}
	}
	p.rt.stats.dispatches.Add(1)
	return nil
}

// admits says why encode would not take the memory of a launch, in the same words.
func (p *Pass) admits(l *Launch) error {
	for rest := l.bound; rest != 0; rest &= rest - 1 {
		slot := bits.TrailingZeros32(rest)
		b := &l.binds[slot]
		if b.kind != kindView {
			continue
		}
		bind := bufferBind{slot: uint8(slot), n: b.n, a: b.a, off: uint64(b.off), access: b.access}
		if err := p.st.refuses(l, &bind); err != nil {
			return err
		}
	}
	return nil
}

// refuses says why the pass cannot take live memory for a launch now.
func (st *passState) refuses(l *Launch, b *bufferBind) error {
	if st.mapped(b) {
		return l.wrong(int(b.slot), "memory that the host has mapped", "the end of the mapping", ErrBusy)
	}
	if e := st.admit(b.a, b.writes()); e != nil {
		return l.wrong(int(b.slot), e.Have, e.Need, e.Err)
	}
	return nil
}

// add adds the command in st.cmd, with the first n of st.binding and the first groups of st.group, and the barrier it
// needs. On an error the pass is as it was.
func (st *passState) add(fn string, n, groups int) error {
	cmd := &st.cmd
	binds, tgs := st.binding[:n], st.group[:groups]
	tracked := st.rt.cfg.hazards == HazardsTracked && !st.stage // which are found when it joins
	// Commands of another kind go into another encoder, which orders them.
	turn := st.count > 0 && cmd.kind.blit() != st.last.blit()
	cmd.wanted, cmd.group = st.barrierWanted, st.inGroup
	cmd.barrier = !turn && (cmd.wanted || tracked && st.hazards.conflicts(binds))
	if !st.recording {
		if st.cb.IsNil() {
			cb, err := st.rt.queue.newCommandBuffer(fn)
			if err != nil {
				return err
			}
			st.cb = cb
			labelBuffer(cb, st.debug.label)
			st.enc.begin(st.rt, cb, &st.debug, st.work)
		}
		if err := st.enc.open(fn, cmd); err != nil {
			return err
		}
	}

	// From here on nothing fails.
	st.barrierWanted = false
	if turn || cmd.barrier {
		st.hazards.barrier()
	}
	if cmd.barrier {
		st.barriers++
	}
	if cmd.barrier && !st.stage {
		st.rt.stats.barriers.Add(1)
		cmd.barrier = st.rt.dropBarrier == nil || !st.rt.dropBarrier(cmd)
	}
	if tracked {
		st.hazards.note(binds)
	}
	noteUses(st.uses, binds)
	if st.recording {
		cmd.bind, cmd.binds = len(st.binds), n
		cmd.tg, cmd.tgs = len(st.tgs), groups
		st.cmds = append(st.cmds, *cmd)
		st.binds = append(st.binds, binds...)
		st.tgs = append(st.tgs, tgs...)
	} else {
		st.enc.encode(cmd, binds, tgs)
	}
	st.last = cmd.kind
	st.count++
	return nil
}

// mapped says whether the host has a mapping that keeps the pass from using the memory.
func (st *passState) mapped(b *bufferBind) bool {
	return st.runs() && b.a.host.mapped(b.lo(), b.hi(), b.writes())
}

// admit says why the pass cannot use memory now: pending work of a stream that cannot be committed yet, or work that wrote
// to it and failed.
func (st *passState) admit(a *allocation, write bool) *Error {
	if !st.runs() {
		return nil
	}
	if e := st.rt.admit(st, a, write); e != nil {
		return e
	}
	return st.rt.queue.tainted(a)
}

// noteUses adds the bytes of one command to the uses of its memory.
func noteUses(uses []use, binds []bufferBind) {
	for i := range binds {
		if b := &binds[i]; b.a != nil && !b.fixed {
			uses[b.use].note(b.lo(), b.hi(), b.writes())
		}
	}
}

// use notes that the pass uses an allocation, and holds it. It gives the allocation's position, or -1 when it is gone.
func (st *passState) use(a *allocation, write, counted bool) int32 {
	pos, fresh := st.hazards.pos(a.id)
	if fresh {
		if n := len(st.uses); n < cap(st.uses) {
			st.uses = st.uses[:n+1]
		} else {
			st.uses = append(st.uses, use{})
		}
	}
	u := &st.uses[pos]
	if u.a == nil {
		// What joins a chunk was live when the stage took it.
		if a.released.Load() && (st.stream == nil || st.stage) || !a.hold() {
			return -1
		}
		u.a = a
	}
	if counted && !u.counted {
		u.counted = true
		if st.runs() {
			a.open.Add(1)
		}
	}
	if write && !u.write {
		u.write = true
		if st.runs() {
			a.openW.Add(1)
		}
	}
	return int32(pos)
}

// useWhole notes that the pass writes to all of an allocation.
func (st *passState) useWhole(a *allocation) {
	if pos := st.use(a, true, true); pos >= 0 {
		st.uses[pos].note(0, a.size, true)
	}
}

// runs says whether the pass's commands will run without being asked for again: recordings for programs do not.
func (st *passState) runs() bool { return !st.recording || st.stage }

// room finds place for n bytes in the const arena.
func (st *passState) room(n int) (*chunk, int, error) {
	align := st.rt.limits.constantAlign
	if len(st.chunks) > 0 {
		c := st.chunks[len(st.chunks)-1]
		if off, ok := c.room(n, align); ok {
			c.used = off + n
			return c, off, nil
		}
	}
	c, err := st.rt.arena.take()
	if err != nil {
		return nil, 0, err
	}
	st.chunks = append(st.chunks, c)
	c.used = n
	return c, 0, nil
}

func (st *passState) endEncoding() { st.enc.end() }

// close takes back what counts the pass as open. A recording does not count: it runs nothing.
func (st *passState) close() {
	if !st.runs() {
		return
	}
	for _, u := range st.uses {
		if u.counted {
			u.a.open.Add(-1)
		}
		if u.write {
			u.a.openW.Add(-1)
		}
	}
	for _, s := range st.scalars {
		s.state().open.Add(-1)
	}
}

// committed notes on everything used that submission seq uses it.
func (st *passState) committed(seq uint64) {
	markUses(st.uses, st.scalars, seq)
	st.close()
}

func markUses(uses []use, scalars []scalarUse, seq uint64) {
	for _, u := range uses {
		if u.counted {
			raise(&u.a.lastUse, seq)
		}
		if u.write {
			raise(&u.a.lastW, seq)
		}
	}
	for _, s := range scalars {
		raise(&s.state().lastUse, seq)
	}
}

// completed gives back what the pass used: its submission has completed.
func (st *passState) completed() {
	for _, u := range st.uses {
		if u.a != nil {
			u.a.unref()
		}
	}
	st.rt.arena.give(st.chunks)
	st.recycle()
}

// abandon ends a pass that is not submitted, or whose content was handed to a program.
func (st *passState) abandon() {
	st.enc.end()
	st.endWork().dropped()
	st.close()
	st.completed()
}

// handOver ends a recording whose uses a program has taken over.
func (st *passState) handOver() {
	clear(st.uses)
	clear(st.scalars)
	clear(st.chunks)
	st.uses, st.scalars, st.chunks = st.uses[:0], st.scalars[:0], st.chunks[:0]
}

// recycle makes the state ready for another pass.
func (st *passState) recycle() {
	for i := range st.uses {
		st.uses[i].forget()
	}
	clear(st.scalars)
	clear(st.chunks)
	clear(st.cmds)
	clear(st.binds)
	clear(st.binding[:])
	clear(st.names)
	clear(st.sections)
	st.sections, st.names = st.sections[:0], st.names[:0]
	st.uses, st.scalars, st.chunks = st.uses[:0], st.scalars[:0], st.chunks[:0]
	st.cmds, st.binds, st.tgs = st.cmds[:0], st.binds[:0], st.tgs[:0]
	st.cb = mtl.CommandBuffer{}
	st.stage, st.stream = false, nil
	st.enc = encoder{}
	st.debug.reset()
	st.inGroup = 0
	st.count, st.barriers, st.barrierWanted = 0, 0, false
	s := &st.rt.states
	s.mu.Lock()
	s.free = append(s.free, st)
	s.mu.Unlock()
}
