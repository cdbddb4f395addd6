package runtime

import (
	"fmt"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A call's work is first gathered in a stage, which is dropped when the closure fails. Then it joins the chunk command by
// command, with the barriers that it needs there, and the policy decides after each whether the chunk is committed.

// encode gathers and joins. f is the future of the work, if there is one.
func (s *Stream) encode(fn string, encode func(p *Pass) error, f *future) error {
	if encode == nil {
		return &Error{Func: fn, Arg: "encode", Have: "nil", Need: "a function", Err: ErrMisuse}
	}
	pool, err := s.begin(fn)
	if err != nil {
		return err
	}
	defer s.end(pool)
	stage := s.rt.newPassState(true)
	stage.stream, stage.stage = s, true
	p := &Pass{rt: s.rt, st: stage}
	defer func() {
		p.st = nil
		stage.abandon()
	}()
	if err := encode(p); err != nil {
		return err
	}
	p.st = nil
	if e := stage.openGroup(fn); e != nil {
		return e
	}
	return s.join(fn, stage, f)
}

func (s *Stream) join(fn string, stage *passState, f *future) error {
	if len(stage.cmds) == 0 {
		return nil
	}
	for i := range stage.cmds {
		if err := s.place(fn, stage, i); err != nil {
			if i > 0 {
				// A part of the call has been encoded, and what was encoded before it cannot be told from it.
				e := &Error{Func: fn, Have: fmt.Sprintf("%d of %d commands encoded", i, len(stage.cmds)), Err: err}
				if s.chunk == nil {
					s.lane.failed.set(e)
				}
				s.commitAs(fn, e)
			}
			return err
		}
		s.stats.dispatches.Add(1)
		if i == len(stage.cmds)-1 && f != nil {
			s.futures = append(s.futures, f)
			s.chunk.useWhole(f.a) // the host does not see parts of it earlier
		}
		rt := s.rt
		var commit bool
		busy := s.policy.undecided() && rt.queue.inFlight() > 0
		if s.policy, commit = s.policy.dispatched(busy, rt.mem.fresh.Load() > s.made); commit {
			next := s.policy
			if err := s.commit(fn); err != nil {
				return err
			}
			s.policy = next
		}
	}
	s.stats.calls.Add(1)
	return nil
}

// place encodes command i of the stage into the chunk.
func (s *Stream) place(fn string, stage *passState, i int) error {
	st := s.chunk
	if st == nil {
		st = s.rt.newPassState(false)
		st.stream = s
		st.work = s.rt.traceWork("stream")
		s.chunk, s.made = st, s.rt.mem.fresh.Load()
	}
	cmd := &stage.cmds[i]
	binds := stage.binds[cmd.bind : cmd.bind+cmd.binds]
	for j := range binds {
		b, d := &binds[j], &st.binding[j]
		*d = *b
		if b.a != nil {
			d.use = st.use(b.a, b.writes(), !b.fixed)
			continue
		}
		c, off, err := st.room(b.n)
		if err != nil {
			return err
		}
		copy(c.at(off, b.n), stage.constant(b))
		d.buf, d.off = c.buf, uint64(off)
	}
	groups := copy(st.group[:], stage.tgs[cmd.tg:cmd.tg+cmd.tgs])
	// Without tracking, the order of calls is kept by a barrier between them.
	wanted := cmd.wanted || i == 0 && s.rt.cfg.hazards == HazardsManual
	st.barrierWanted = st.barrierWanted || wanted && st.count > 0
	st.cmd = *cmd
	if err := st.add(fn, cmd.binds, groups); err != nil {
		return err
	}
	if i == 0 || st.count == 1 {
		for _, u := range stage.scalars {
			u.state().open.Add(1)
			st.scalars = append(st.scalars, u)
		}
	}
	return nil
}

// constant is the value of a constant that the stage has recorded.
func (st *passState) constant(b *bufferBind) []byte {
	for _, c := range st.chunks {
		if c.buf == b.buf {
			return c.at(int(b.off), b.n)
		}
	}
	return nil
}

// id is the open encoder, 0 if none is.
func (e *encoder) id() objc.ID {
	if e.mtl != (mtl.ComputeCommandEncoder{}) {
		return e.mtl.ID()
	}
	return e.blit.ID()
}
