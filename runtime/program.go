package runtime

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A Program is work that was encoded once by [Runtime.Record] and can be submitted any number of times: an indirect
// command buffer with its pipelines, buffers, barriers and scalars, or, where the device cannot, the list of what to
// encode again. Either way a replay has the same effect as encoding the work anew.
//
// A program keeps the memory that it was recorded with: slices may be released before it. Its methods may be called from
// several goroutines, and several replays may be in flight: they take effect one after another.
type Program struct {
	rt       *Runtime
	refs     atomic.Int64 // one for the owner until Release, one for each replay under way or in flight
	released atomic.Bool

	cmds    []command
	binds   []bufferBind
	tgs     []groupMemory
	uses    []use
	scalars []scalarUse
	chunks  []*chunk

	pipelines []*pipeline
	barriers  int
	indirect  []indirectBuffer // none when replays encode again
	why       string           // why there is none
	reads     []mtl.Resource   // the buffers that are only read
	writes    []mtl.Resource   // those that are written
	prime     bool             // each pipeline is set once more, see DeviceInfo.Primed
	debug     debugNames
}

// indirectBuffer is an indirect command buffer and the number of commands in it.
type indirectBuffer struct {
	mtl mtl.IndirectCommandBuffer
	n   int
}

// newProgram takes over what a recording pass has gathered.
func newProgram(rt *Runtime, st *passState) (*Program, error) {
	prog := &Program{rt: rt, barriers: st.barriers, debug: st.debug.clone()}
	prog.refs.Store(1)
	prog.cmds = append(prog.cmds, st.cmds...)
	prog.binds = append(prog.binds, st.binds...)
	prog.tgs = append(prog.tgs, st.tgs...)
	prog.scalars = append(prog.scalars, st.scalars...)
	seen := map[*pipeline]bool{}
	for i := range prog.cmds {
		if pl := prog.cmds[i].pl; !seen[pl] {
			seen[pl] = true
			prog.pipelines = append(prog.pipelines, pl)
		}
	}
	prog.listResources(st)
	if len(prog.cmds) > 0 {
		if prog.why = prog.unfit(); prog.why == "" {
			if err := prog.build(); err != nil {
				prog.dropIndirect()
				prog.why = err.Error()
			}
		}
		if prog.why != "" {
			rt.cfg.log.Warn("program is encoded again on each replay", "reason", prog.why, "commands", len(prog.cmds))
		}
	}
	if !rt.keepProgram(prog) {
		prog.dropIndirect()
		return nil, &Error{Func: "Runtime.Record", Err: ErrClosed}
	}
	// The references and the chunks of the pass are the program's from here on.
	for _, u := range st.uses {
		if u.a != nil {
			prog.uses = append(prog.uses, u)
		}
	}
	prog.chunks = append(prog.chunks, st.chunks...)
	st.handOver()
	rt.stats.programs.Add(1)
	return prog, nil
}

// listResources sorts the buffers by what the program does to them. An allocation has one buffer.
func (prog *Program) listResources(st *passState) {
	for _, u := range st.uses {
		switch {
		case u.a == nil:
		case u.write:
			prog.writes = append(prog.writes, u.a.buf.Resource)
		default:
			prog.reads = append(prog.reads, u.a.buf.Resource)
		}
	}
	for _, c := range st.chunks {
		prog.reads = append(prog.reads, c.buf.Resource)
	}
}

// Replay submits the program's work without waiting, as [Runtime.Submit] does. It encodes one execution and allocates
// nothing.
func (prog *Program) Replay() (Submission, error) {
	const fn = "Program.Replay"
	if prog == nil || prog.released.Load() || !prog.hold() {
		return Submission{}, &Error{Func: fn, Have: "a program that was released", Need: "a live program", Err: ErrClosed}
	}
	rt := prog.rt
	if err := rt.enter(fn); err != nil {
		prog.unref()
		return Submission{}, err
	}
	defer rt.leave()
	if len(prog.cmds) == 0 {
		prog.unref()
		return Submission{}, nil
	}
	pool := objc.NewPool()
	defer pool.Drain()
	times, work := rt.newTimes(), rt.traceWork("replay")
	seq, err := prog.submit(fn, times, work)
	if err != nil {
		work.dropped()
		prog.unref()
		return Submission{}, err
	}
	rt.stats.replays.Add(1)
	rt.stats.replayed.Add(uint64(len(prog.cmds)))
	return Submission{rt, seq, times}, nil
}

// submit encodes and commits. The reference of the caller goes to the queue.
func (prog *Program) submit(fn string, times *gpuTimes, work *tracedWork) (uint64, error) {
	cb, err := prog.rt.queue.newCommandBuffer(fn)
	if err != nil {
		return 0, err
	}
	if work != nil {
		labelBuffer(cb, prog.debug.label)
		work.named(prog.debug)
	}
	switch {
	case len(prog.indirect) == 0:
		err = prog.encodeAgain(fn, cb, work)
	case work.timesKernels():
		err = prog.executeTimed(fn, cb, work)
	default:
		err = prog.execute(fn, cb)
	}
	if err != nil {
		return 0, err
	}
	work.ended(len(prog.cmds))
	return prog.rt.queue.commit(fn, flight{cb: cb, prog: prog, times: times, trace: work})
}

// execute encodes the execution of the indirect command buffers.
func (prog *Program) execute(fn string, cb mtl.CommandBuffer) error {
	enc := concurrentEncoder(cb)
	if enc.IsNil() {
		return &Error{Func: fn, Err: &DeviceError{Op: "computeCommandEncoderWithDispatchType:", Text: "the command buffer made no encoder"}}
	}
	prog.prepare(enc, prog.pipelines)
	for i := range prog.indirect {
		if i > 0 {
			// Barriers inside an indirect command buffer order the commands of that one.
			enc.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
		}
		enc.ExecuteCommandsInBuffer(prog.indirect[i].mtl, mtl.Range{Location: 0, Length: uint(prog.indirect[i].n)})
	}
	enc.EndEncoding()
	return nil
}

// declareAtOnce is how many resources one message declares: so many fit into the memory that messages are made in without
// an allocation.
const declareAtOnce = 512

func declare(enc mtl.ComputeCommandEncoder, resources []mtl.Resource, usage mtl.ResourceUsage) {
	for len(resources) > 0 {
		n := min(len(resources), declareAtOnce)
		enc.UseResources(resources[:n], usage)
		resources = resources[n:]
	}
}

func declarations(resources []mtl.Resource) int {
	return (len(resources) + declareAtOnce - 1) / declareAtOnce
}

// encodeAgain encodes the recorded list.
func (prog *Program) encodeAgain(fn string, cb mtl.CommandBuffer, work *tracedWork) error {
	st := prog.rt.newPassState(false) // for its encoder
	defer st.recycle()
	if err := st.enc.begin(fn, cb, &prog.debug, work); err != nil {
		return err
	}
	for i := range prog.cmds {
		cmd := &prog.cmds[i]
		st.enc.encode(cmd, prog.binds[cmd.bind:cmd.bind+cmd.binds], prog.tgs[cmd.tg:cmd.tg+cmd.tgs])
	}
	return st.endEncoding(fn)
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
	if prog == nil {
		return false, "no program"
	}
	return len(prog.indirect) > 0, prog.why
}

// ProgramStats are facts of a program.
type ProgramStats struct {
	Commands        int // dispatches
	Barriers        int // between them
	Pipelines       int // different ones
	Buffers         int // that a replay declares
	IndirectBuffers int // 0 when replays encode again
	// Messages is how many Metal messages a replay sends from the making of its command buffer to its commit.
	// It is 0 when replays encode again.
	Messages int
}

// Stats are facts of the program, none of a nil one.
func (prog *Program) Stats() ProgramStats {
	if prog == nil {
		return ProgramStats{}
	}
	s := ProgramStats{Commands: len(prog.cmds), Barriers: prog.barriers, Pipelines: len(prog.pipelines),
		Buffers: len(prog.reads) + len(prog.writes), IndirectBuffers: len(prog.indirect)}
	if n := len(prog.indirect); n > 0 {
		s.Messages = 5 + 2*n - 1 // command buffer, encoder, end, signal, commit; executions and barriers between them
		s.Messages += declarations(prog.reads) + declarations(prog.writes)
		if prog.prime {
			s.Messages += 2 * len(prog.pipelines)
		}
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
	prog.dropIndirect()
	for _, u := range prog.uses {
		u.a.unref()
	}
	prog.rt.arena.give(prog.chunks)
}

func (prog *Program) dropIndirect() {
	for _, b := range prog.indirect {
		b.mtl.Release()
	}
	prog.indirect = nil
}

// committed notes on everything used that submission seq uses it.
func (prog *Program) committed(seq uint64) { markUses(prog.uses, prog.scalars, seq) }

// String describes the program in a line.
func (prog *Program) String() string {
	s := prog.Stats()
	how := "encoded again"
	if s.IndirectBuffers > 0 {
		how = "indirect"
	}
	return fmt.Sprintf("program of %d commands, %d barriers, %s", s.Commands, s.Barriers, how)
}
