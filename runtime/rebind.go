package runtime

import (
	"fmt"
	"slices"
	"time"
)

// maxEditions is for how many sets of memory a program stays encoded: enough to change memory at every replay with some
// replays in flight.
const maxEditions = 4

// A Rebinding exchanges memory of a program: see [Program.Bind]. It is made by [Rebind] and [RebindName].
type Rebinding struct {
	from, to View
	name     string
	named    bool
	elem     any // its zero
}

// Rebind puts to in the place of from, wherever the program now uses from or a part of it.
func Rebind[T Element](from, to Slice[T]) Rebinding {
	return Rebinding{from: from.view, to: to.view, elem: *new(T)}
}

// RebindName puts to in the place of the memory that now has the name, which [Bindable] gave when the program was
// recorded.
func RebindName[T Element](name string, to Slice[T]) Rebinding {
	return Rebinding{name: name, named: true, to: to.view, elem: *new(T)}
}

// boundName is a name and what it stands for.
type boundName struct {
	name string
	view View
	elem any
}

// Bindable gives memory a name in the program that is being recorded, for [RebindName]. In work that is not recorded it only
// checks.
func Bindable[T Element](p *Pass, name string, s Slice[T]) error {
	const fn = "Bindable"
	if !p.live() {
		return &Error{Func: fn, Have: "a pass that is over", Need: "a pass that is being encoded", Err: ErrMisuse}
	}
	if e := s.view.invalid(); e != nil {
		return &Error{Func: fn, Arg: name, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	if s.view.a.rt != p.rt {
		return &Error{Func: fn, Arg: name, Have: "memory of another runtime", Need: "memory of the pass's runtime", Err: ErrForeign}
	}
	names, err := addName(fn, p.st.names, boundName{name, s.view, *new(T)})
	if err == nil && p.st.recording {
		p.st.names = names
	}
	return err
}

// addName adds a name, which may come twice if it means the same.
func addName(fn string, names []boundName, n boundName) ([]boundName, error) {
	for _, o := range names {
		if o.name != n.name {
			continue
		}
		if !o.view.Same(n.view) || o.elem != n.elem {
			return names, &Error{Func: fn, Arg: n.name, Have: "a name that has other memory", Need: "one memory for each name", Err: ErrMisuse}
		}
		return names, nil
	}
	return append(names, n), nil
}

// draft is what a program will be bound to. It is kept to be used again.
type draft struct {
	planner planner
	cmds    []command
	binds   []bufferBind
	names   []boundName
}

// Bind exchanges memory for the replays to come: all that lies in the memory of each rebinding moves to the same place in
// the new memory, which must be of the same length. Several rebindings take effect at once, so that two slices can be
// swapped. Replays in flight, and those whose Replay returned before, keep what they were bound to; nothing is waited for
// unless that many sets of memory are in flight that there is none to reuse (4).
//
// Barriers are placed anew for the new memory: where it overlaps with other memory of the program, the effect is that of the
// same commands encoded anew. Refused, with nothing changed, are an exchange after which the memory of one dispatch
// overlaps with what that dispatch writes where it did not before, memory that a command uses only in part, offsets that
// a kernel cannot take, and in programs of [HazardsManual] any overlap of the new memory with other memory of the
// program, since their barriers are the caller's.
//
// A program keeps the memory of up to 4 sets until it is bound again or released. Binding a set that it has kept encodes
// nothing.
func (prog *Program) Bind(list ...Rebinding) error {
	const fn = "Program.Bind"
	if err := prog.enter(fn); err != nil {
		return err
	}
	defer prog.rt.leave()
	defer prog.unref()
	prog.mu.Lock()
	defer prog.mu.Unlock()
	for {
		if err := prog.draw(fn, list); err != nil {
			return err
		}
		done, err := prog.adopt(fn)
		if done || err != nil {
			return err
		}
		// All editions are in flight. Somebody else may bind the program meanwhile.
		oldest := prog.editions[0].lastUse.Load()
		for _, ed := range prog.editions {
			oldest = min(oldest, ed.lastUse.Load())
		}
		prog.mu.Unlock()
		prog.rt.stats.waits.Add(1)
		if prog.rt.passed(oldest) {
			time.Sleep(50 * time.Microsecond) // one is being submitted
		} else {
			prog.rt.queue.pause(oldest, waitSlice)
		}
		prog.mu.Lock()
		if e := prog.rt.unusable(); e != nil {
			return &Error{Func: fn, Err: e}
		}
	}
}

// draw makes prog.next of the current edition and the rebindings, all but its barriers.
func (prog *Program) draw(fn string, list []Rebinding) error {
	ed, d := prog.now, &prog.next
	for i := range list {
		if err := prog.check(fn, &list[i], list[:i]); err != nil {
			return err
		}
	}
	d.binds = append(d.binds[:0], ed.binds...)
	var used uint64
	for i := range d.binds {
		b := &d.binds[i]
		if b.a == nil || b.fixed {
			continue
		}
		for k := range list {
			r := &list[k]
			if b.a != r.from.a || b.hi() <= r.from.off || r.from.off+r.from.n <= b.lo() {
				continue
			}
			if b.lo() < r.from.off || r.from.off+r.from.n < b.hi() {
				return &Error{Func: fn, Arg: r.arg(), Have: fmt.Sprintf("bytes %d to %d of an allocation of which a command uses %d to %d", r.from.off, r.from.off+r.from.n, b.lo(), b.hi()),
					Need: "memory that commands use as a whole or not at all", Err: ErrOverlap}
			}
			used |= 1 << k
			b.a, b.buf, b.off = r.to.a, r.to.a.buf, uint64(r.to.off+b.lo()-r.from.off)
			break
		}
	}
	for k := range list {
		if used&(1<<k) == 0 {
			return &Error{Func: fn, Arg: list[k].arg(), Have: "memory that the program does not use", Need: "memory that it uses", Err: ErrMisuse}
		}
	}
	d.names = append(d.names[:0], ed.names...)
	for i := range d.names {
		for k := range list {
			v, r := &d.names[i].view, &list[k]
			if v.a == r.from.a && r.from.off <= v.off && v.off+v.n <= r.from.off+r.from.n {
				*v = View{a: r.to.a, off: r.to.off + v.off - r.from.off, n: v.n}
				break
			}
		}
	}
	for i := range ed.cmds {
		if err := prog.fits(fn, i); err != nil {
			return err
		}
	}
	if prog.rt.cfg.hazards == HazardsManual {
		return prog.apart(fn, list)
	}
	return nil
}

func (r *Rebinding) arg() string {
	if r.named {
		return fmt.Sprintf("%q", r.name)
	}
	return "from"
}

// maxRebindings is how many rebindings one call takes.
const maxRebindings = 64

// check checks one rebinding by itself and against those before it, and finds the memory of its name.
func (prog *Program) check(fn string, r *Rebinding, before []Rebinding) error {
	if len(before) == maxRebindings {
		return &Error{Func: fn, Have: fmt.Sprintf("more than %d rebindings", maxRebindings), Need: "several calls", Err: ErrLimit}
	}
	if r.named {
		i := slices.IndexFunc(prog.now.names, func(n boundName) bool { return n.name == r.name })
		if i < 0 {
			return &Error{Func: fn, Arg: r.arg(), Have: "no such name", Need: "a name given with Bindable", Err: ErrMisuse}
		}
		if n := &prog.now.names[i]; n.elem != r.elem {
			return &Error{Func: fn, Arg: r.arg(), Have: fmt.Sprintf("elements of %T", r.elem), Need: fmt.Sprintf("%T", n.elem), Err: ErrShape}
		}
		r.from = prog.now.names[i].view
	}
	if r.from.bad != nil || r.from.a == nil || r.from.n == 0 {
		return &Error{Func: fn, Arg: r.arg(), Have: "no memory", Need: "memory that the program uses", Err: ErrShape}
	}
	if e := r.to.invalid(); e != nil {
		return &Error{Func: fn, Arg: "to", Have: e.Have, Need: e.Need, Err: e.Err}
	}
	switch {
	case r.to.a.rt != prog.rt:
		return &Error{Func: fn, Arg: "to", Have: "memory of another runtime", Need: "memory of the program's runtime", Err: ErrForeign}
	case r.to.n != r.from.n:
		return &Error{Func: fn, Arg: "to", Have: fmt.Sprintf("%d bytes", r.to.n), Need: fmt.Sprintf("%d, the length of what it replaces", r.from.n), Err: ErrShape}
	}
	for i := range before {
		if before[i].from.Overlaps(r.from) {
			return &Error{Func: fn, Arg: r.arg(), Have: "memory that another rebinding moves, too", Need: "memory that is moved once", Err: ErrOverlap}
		}
	}
	return nil
}

// fits checks that command i can work on its new memory.
func (prog *Program) fits(fn string, i int) error {
	cmd := &prog.now.cmds[i]
	was, is := prog.now.bindsOf(i), prog.next.binds[cmd.bind:cmd.bind+cmd.binds]
	for k := range is {
		b := &is[k]
		if b.a == was[k].a && b.off == was[k].off {
			continue
		}
		align := blitStep
		if cmd.kind == kindDispatch {
			align = max(cmd.pl.info.slots[b.slot].align, 1)
		}
		if b.lo()%align != 0 {
			return &Error{Func: fn, Arg: "to", Have: fmt.Sprintf("byte offset %d for command %d", b.lo(), i), Need: fmt.Sprintf("a multiple of %d", align), Err: ErrShape}
		}
		for o := range is {
			if o != k && (b.writes() || is[o].writes()) && b.meets(&is[o]) && !was[k].meets(&was[o]) {
				return &Error{Func: fn, Arg: "to", Have: fmt.Sprintf("memory that overlaps with other memory of command %d", i), Need: "memory apart, since one of the two is written", Err: ErrOverlap}
			}
		}
	}
	return nil
}

// apart checks that the new memory shares nothing with what the program uses already, in which case the caller's
// barriers order it as they ordered the old one.
func (prog *Program) apart(fn string, list []Rebinding) error {
	now, next := prog.now.binds, prog.next.binds
	for i := range next {
		if next[i].a == now[i].a && next[i].off == now[i].off {
			continue
		}
		for k := range next {
			if (next[i].writes() || next[k].writes()) && next[i].meets(&next[k]) && !now[i].meets(&now[k]) {
				return &Error{Func: fn, Arg: "to", Have: "memory that overlaps with other memory of the program", Need: "memory apart, since the program's barriers are the caller's", Err: ErrOverlap}
			}
		}
	}
	return nil
}

// adopt makes prog.next the current edition: one that is there already, one that nothing uses, or a new one. It is false
// when all are in flight.
func (prog *Program) adopt(fn string) (bool, error) {
	d := &prog.next
	for _, ed := range prog.editions {
		if ed.bound(d.binds) {
			prog.now = ed
			copy(ed.names, d.names) // a name for memory that no command uses may have moved
			return true, nil
		}
	}
	prog.forgetReleased()
	var old *edition
	switch {
	case prog.now.idle():
		old = prog.now
	default:
		for _, ed := range prog.editions {
			if ed.idle() {
				old = ed
			}
		}
		if old == nil && len(prog.editions) == maxEditions {
			return false, nil
		}
	}
	d.cmds = append(d.cmds[:0], prog.now.cmds...)
	d.planner.drop = prog.rt.dropBarrier
	barriers := d.planner.plan(d.cmds, d.binds, prog.rt.cfg.hazards == HazardsTracked)
	ed := &edition{prog: prog, cmds: slices.Clone(d.cmds), binds: slices.Clone(d.binds), names: slices.Clone(d.names), barriers: barriers}
	if !ed.hold(&d.planner.hazards) {
		return false, &Error{Func: fn, Arg: "to", Have: "memory that was released", Need: "live memory", Err: ErrClosed}
	}
	ed.listResources()
	if old == nil {
		ed.build()
		prog.editions = append(prog.editions, ed)
	} else {
		ed.replace(old)
		prog.editions[slices.Index(prog.editions, old)] = ed
	}
	prog.now = ed
	return true, nil
}

// bound says whether the edition is bound to exactly that.
func (ed *edition) bound(binds []bufferBind) bool {
	for i := range binds {
		if a, b := &ed.binds[i], &binds[i]; a.a != b.a || a.off != b.off {
			return false
		}
	}
	return true
}

// hold takes references on the memory that the commands use, whose positions the tracker has given. It is false when some of it
// has gone.
func (ed *edition) hold(t *tracker) bool {
	ed.uses = make([]use, t.n)
	for i := range ed.binds {
		b := &ed.binds[i]
		if b.a == nil {
			continue
		}
		u := &ed.uses[b.use]
		if u.a == nil {
			if !b.a.hold() {
				for k := range ed.uses {
					if a := ed.uses[k].a; a != nil {
						a.unref()
					}
				}
				ed.uses = nil
				return false
			}
			u.a = b.a
		}
		u.write = u.write || b.writes()
		u.counted = u.counted || !b.fixed
	}
	noteUses(ed.uses, ed.binds)
	return true
}

// replace takes over the indirect command buffers of an edition that nothing uses any more, and frees it. Where they cannot be
// changed they are made anew, and where that fails, replays encode again.
func (ed *edition) replace(old *edition) {
	if ed.why = ed.unfit(); ed.why == "" && len(old.indirect) > 0 {
		ed.indirect, old.indirect = old.indirect, nil
		if err := ed.fill(old); err != nil {
			ed.dropIndirect()
		}
	}
	if ed.why == "" && len(ed.indirect) == 0 {
		ed.build()
	}
	old.free()
}

// forgetReleased gives up editions that nothing uses and whose memory has been released by its owner. prog.mu is held.
func (prog *Program) forgetReleased() {
	prog.editions = slices.DeleteFunc(prog.editions, func(ed *edition) bool {
		if ed == prog.now || !ed.idle() {
			return false
		}
		for _, u := range ed.uses {
			if u.a.released.Load() {
				ed.free()
				return true
			}
		}
		return false
	})
}
