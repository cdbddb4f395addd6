package runtime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A Program is work that was encoded once by [Runtime.Record] and can be submitted any number of times: an indirect
// command buffer with its pipelines, buffers, barriers and scalars, or, where the device cannot, the list of what to
// encode again. Either way a replay has the same effect as encoding the work anew. Parts of it can be replayed
// ([Program.ReplayRange]), memory can be exchanged between replays ([Program.Bind]), and programs can be joined ([Join]).
//
// A program keeps the memory that it is bound to: slices may be released before it. Its methods may be called from
// several goroutines, and several replays may be in flight: they take effect one after another.
type Program struct {
	rt       *Runtime
	refs     atomic.Int64 // one for the owner until Release, one for each replay under way or in flight, and for each joined program
	released atomic.Bool

	// What all editions share.
	tgs        []groupMemory
	scalars    []scalarUse
	chunks     []*chunk       // its constants
	constants  []mtl.Resource // their buffers, and those of parts
	parts      []*Program     // that it was joined from: they keep their constants for it
	pipelines  []*pipeline
	runs       []run
	dispatches int
	sections   []Section
	debug      debugNames

	mu       sync.Mutex // guards what follows
	now      *edition   // what replays submit
	editions []*edition
	next     draft
}

// run is a stretch of commands of one kind: what goes into one encoder.
type run struct {
	first, end int
	blit       bool
	ordinal    int // dispatches before it
}

// newProgram takes over what a recording pass has gathered.
func newProgram(rt *Runtime, st *passState) (*Program, error) {
	prog := &Program{rt: rt, tgs: slices.Clone(st.tgs), scalars: slices.Clone(st.scalars), debug: st.debug.clone()}
	prog.refs.Store(1)
	prog.sections = endSections(slices.Clone(st.sections), len(st.cmds))
	for _, c := range st.chunks {
		prog.constants = append(prog.constants, c.buf.Resource)
	}
	ed := &edition{prog: prog, cmds: slices.Clone(st.cmds), binds: slices.Clone(st.binds), names: slices.Clone(st.names), barriers: st.barriers}
	for _, u := range st.uses {
		if u.a != nil {
			ed.uses = append(ed.uses, u)
		}
	}
	if !prog.begin(ed) {
		return nil, &Error{Func: "Runtime.Record", Err: ErrClosed}
	}
	// The references and the chunks of the pass are the program's from here on.
	prog.chunks = slices.Clone(st.chunks)
	st.handOver()
	return prog, nil
}

// begin makes ed the program's first edition. It is false when the runtime is closed, and nothing is kept then.
func (prog *Program) begin(ed *edition) bool {
	prog.outline(ed.cmds)
	ed.listResources()
	ed.build()
	prog.now, prog.editions = ed, []*edition{ed}
	if ed.why != "" && len(ed.cmds) > 0 && prog.dispatches > 0 {
		prog.rt.cfg.log.Warn("program is encoded again on each replay", "reason", ed.why, "commands", len(ed.cmds))
	}
	if !prog.rt.keepProgram(prog) {
		ed.dropIndirect()
		return false
	}
	prog.rt.stats.programs.Add(1)
	return true
}

// outline notes what does not depend on the memory.
func (prog *Program) outline(cmds []command) {
	seen := map[*pipeline]bool{}
	for i := range cmds {
		cmd := &cmds[i]
		if n := len(prog.runs); n == 0 || prog.runs[n-1].blit != cmd.kind.blit() {
			prog.runs = append(prog.runs, run{first: i, blit: cmd.kind.blit(), ordinal: prog.dispatches})
		}
		prog.runs[len(prog.runs)-1].end = i + 1
		if cmd.kind == kindDispatch {
			prog.dispatches++
			if !seen[cmd.pl] {
				seen[cmd.pl] = true
				prog.pipelines = append(prog.pipelines, cmd.pl)
			}
		}
	}
}

// Replay submits the program's work without waiting, as [Runtime.Submit] does. It encodes one execution and allocates
// nothing.
func (prog *Program) Replay() (Submission, error) {
	const fn = "Program.Replay"
	if err := prog.enter(fn); err != nil {
		return Submission{}, err
	}
	defer prog.rt.leave()
	ed := prog.take()
	return prog.replay(fn, ed, 0, len(ed.cmds), nil)
}

// ReplayRange is Replay for the commands from i up to j, counted from 0 in the order of recording: dispatches, copies
// and fills. The range of a section is what [Program.Section] returns. Work that was submitted before comes first, as always.
func (prog *Program) ReplayRange(i, j int) (Submission, error) {
	const fn = "Program.ReplayRange"
	if err := prog.enter(fn); err != nil {
		return Submission{}, err
	}
	defer prog.rt.leave()
	ed := prog.take()
	if i < 0 || j < i || j > len(ed.cmds) {
		n := len(ed.cmds)
		prog.put(ed)
		prog.unref()
		return Submission{}, &Error{Func: fn, Arg: fmt.Sprintf("[%d:%d]", i, j), Have: fmt.Sprintf("a program of %d commands", n), Need: "0 <= i <= j <= commands", Err: ErrShape}
	}
	return prog.replay(fn, ed, i, j, nil)
}

// dispatchesIn counts the dispatches among commands first to end.
func (prog *Program) dispatchesIn(first, end int) (n int) {
	for _, r := range prog.runs {
		if lo, hi := max(r.first, first), min(r.end, end); lo < hi && !r.blit {
			n += hi - lo
		}
	}
	return n
}

// enter begins the use of a live program of a runtime that is open: it holds the program, and the runtime must be left.
func (prog *Program) enter(fn string) error {
	if prog == nil || prog.rt == nil || prog.released.Load() || !prog.hold() {
		return &Error{Func: fn, Have: "a program that was released", Need: "a live program", Err: ErrClosed}
	}
	if err := prog.rt.enter(fn); err != nil {
		prog.unref()
		return err
	}
	return nil
}

// replay submits commands of an edition that was taken, of a program that is held, in the order of a stream or in the runtime's.
func (prog *Program) replay(fn string, ed *edition, first, end int, in *lane) (Submission, error) {
	defer prog.put(ed)
	if first == end {
		prog.unref()
		return Submission{}, nil
	}
	pool := objc.NewPool()
	defer pool.Drain()
	times, work := prog.rt.newTimes(), prog.rt.traceWork("replay")
	seq, err := ed.submit(fn, first, end, times, work, in)
	if err != nil {
		work.dropped()
		prog.unref()
		return Submission{}, err
	}
	prog.rt.stats.replays.Add(1)
	prog.rt.stats.replayed.Add(uint64(prog.dispatchesIn(first, end)))
	return Submission{prog.rt, seq, times}, nil
}

// Run replays the program and waits for it.
func (prog *Program) Run() error {
	s, err := prog.Replay()
	if err != nil || s.rt == nil {
		return err
	}
	return s.rt.queue.wait(context.Background(), "Program.Run", s.seq)
}

// Indirect says whether replays execute an indirect command buffer, and if not, why not.
func (prog *Program) Indirect() (ok bool, why string) {
	if prog == nil || prog.rt == nil {
		return false, "no program"
	}
	prog.mu.Lock()
	defer prog.mu.Unlock()
	return len(prog.now.indirect) > 0, prog.now.why
}

// ProgramStats are facts of a program.
type ProgramStats struct {
	Commands int // dispatches, copies and fills
	Blits    int // of which copies and fills
	Barriers int // between them
	// Encoders is how many a replay makes: one, and another at each change between dispatches and blits, and at each
	// barrier between blits.
	Encoders        int
	Pipelines       int // different ones
	Buffers         int // that a replay declares
	IndirectBuffers int // 0 when replays encode again
	// Messages is how many Metal messages a replay sends from the making of its command buffer to its commit.
	// It is 0 when replays encode again.
	Messages int
	// Editions is how many sets of memory the program is encoded for: 1, and up to 4 after [Program.Bind].
	Editions int
}

// Stats are facts of the program, none of a nil one.
func (prog *Program) Stats() ProgramStats {
	if prog == nil || prog.rt == nil {
		return ProgramStats{}
	}
	prog.mu.Lock()
	defer prog.mu.Unlock()
	ed := prog.now
	s := ProgramStats{Commands: len(ed.cmds), Blits: len(ed.cmds) - prog.dispatches, Barriers: ed.barriers, Pipelines: len(prog.pipelines),
		Buffers: len(ed.reads) + len(ed.writes) + len(prog.constants), IndirectBuffers: len(ed.indirect), Editions: len(prog.editions)}
	messages := 3 // command buffer, signal, commit
	for _, r := range prog.runs {
		s.Encoders++
		messages += 2 // and its end
		if !r.blit {
			messages += ed.executions(r.ordinal, r.end-r.first)
			continue
		}
		messages += r.end - r.first
		for i := r.first + 1; i < r.end; i++ {
			if ed.cmds[i].barrier {
				s.Encoders++
				messages += 2
			}
		}
	}
	if len(ed.indirect) > 0 {
		s.Messages = messages
	}
	return s
}

// Release gives the program back: its memory as soon as the replays in flight have completed. It can be released once.
func (prog *Program) Release() error {
	if prog == nil || prog.rt == nil || prog.released.Swap(true) {
		return &Error{Func: "Program.Release", Have: "a program that was released", Need: "a live program", Err: ErrClosed}
	}
	prog.unref()
	return nil
}

func (prog *Program) hold() bool {
	for {
		n := prog.refs.Load()
		if n <= 0 {
			return false
		}
		if prog.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (prog *Program) unref() {
	if prog.refs.Add(-1) != 0 {
		return
	}
	prog.rt.forgetProgram(prog)
	for _, ed := range prog.editions {
		ed.free()
	}
	prog.rt.arena.give(prog.chunks)
	for _, p := range prog.parts {
		p.unref()
	}
}

// String describes the program in a line.
func (prog *Program) String() string {
	s := prog.Stats()
	how := "encoded again"
	if s.IndirectBuffers > 0 {
		how = "indirect"
	}
	return fmt.Sprintf("program of %d commands, %d barriers, %s", s.Commands, s.Barriers, how)
}
