package runtime

import (
	"fmt"
	"slices"
)

// Join makes one program of several, which run one after another when it is replayed: with as few barriers as if all had been
// recorded in one. It is bound to what they are bound to now; their names and sections are its own, too. In programs of
// [HazardsManual] there is a barrier at each seam. A program may come more than once. The programs can be used and released
// independently of the joined one, which keeps what it needs of them.
func Join(progs ...*Program) (*Program, error) {
	const fn = "Join"
	if len(progs) == 0 {
		return nil, &Error{Func: fn, Arg: "progs", Have: "none", Need: "at least one program", Err: ErrMisuse}
	}
	for i, p := range progs {
		arg := fmt.Sprintf("progs[%d]", i)
		switch {
		case p == nil || p.rt == nil || p.released.Load():
			return nil, &Error{Func: fn, Arg: arg, Have: "a program that was released", Need: "a live program", Err: ErrClosed}
		case p.rt != progs[0].rt:
			return nil, &Error{Func: fn, Arg: arg, Have: "a program of another runtime", Need: "programs of one runtime", Err: ErrForeign}
		}
	}
	rt := progs[0].rt
	if err := rt.enter(fn); err != nil {
		return nil, err
	}
	defer rt.leave()
	prog := &Program{rt: rt}
	prog.refs.Store(1)
	ed := &edition{prog: prog}
	done := false
	defer func() {
		if !done {
			ed.free()
			for _, p := range prog.parts {
				p.unref()
			}
		}
	}()
	for _, p := range progs {
		if err := prog.append(fn, ed, p); err != nil {
			return nil, err
		}
	}
	var pl planner
	pl.drop = rt.dropBarrier
	ed.barriers = pl.plan(ed.cmds, ed.binds, rt.cfg.hazards == HazardsTracked)
	// What the parts were bound to when they were appended is held one by one until here.
	held := ed.uses
	ok := ed.hold(&pl.hazards)
	for _, u := range held {
		u.a.unref()
	}
	if !ok || !prog.begin(ed) {
		return nil, &Error{Func: fn, Err: ErrClosed}
	}
	done = true
	return prog, nil
}

// append adds what p does to the draft of a joined program.
func (prog *Program) append(fn string, ed *edition, p *Program) error {
	if !slices.Contains(prog.parts, p) {
		if !p.hold() {
			return &Error{Func: fn, Have: "a program that was released", Need: "a live program", Err: ErrClosed}
		}
		prog.parts = append(prog.parts, p)
		prog.constants = append(prog.constants, p.constants...)
		prog.scalars = append(prog.scalars, p.scalars...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now
	at, binds, tgs := len(ed.cmds), len(ed.binds), len(prog.tgs)
	groups := prog.debug.append(&p.debug, at)
	for i := range now.cmds {
		cmd := now.cmds[i]
		if cmd.group != 0 {
			cmd.group += groups
		}
		cmd.bind += binds
		cmd.tg += tgs
		cmd.wanted = cmd.wanted || i == 0 && at > 0 && prog.rt.cfg.hazards == HazardsManual
		ed.cmds = append(ed.cmds, cmd)
	}
	ed.binds = append(ed.binds, now.binds...)
	prog.tgs = append(prog.tgs, p.tgs...)
	for _, s := range p.sections {
		prog.sections = append(prog.sections, Section{s.Name, at + s.First, at + s.End})
	}
	for _, u := range now.uses {
		if u.a.hold() { // which the program's own reference lets succeed
			ed.uses = append(ed.uses, u)
		}
	}
	for _, n := range now.names {
		names, err := addName(fn, ed.names, n)
		if err != nil {
			return err
		}
		ed.names = names
	}
	return nil
}
