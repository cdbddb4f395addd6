package runtime

import (
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
)

// An edition is a program for one set of memory: its commands with what they are bound to, and the indirect command buffers
// made of that. A program has one until Bind is called while replays are in flight.
type edition struct {
	prog     *Program
	cmds     []command
	binds    []bufferBind
	uses     []use // which hold the memory
	names    []boundName
	barriers int
	indirect []indirectBuffer // none when replays encode again; all but the last of the same length
	why      string           // why there is none
	reads    []mtl.Resource   // the buffers that are only read
	writes   []mtl.Resource   // those that are written

	open    int           // replays that are being submitted, guarded by prog.mu
	lastUse atomic.Uint64 // the last submission of it
}

// indirectBuffer is an indirect command buffer and the number of commands in it.
type indirectBuffer struct {
	mtl mtl.IndirectCommandBuffer
	n   int
}

func (ed *edition) bindsOf(i int) []bufferBind {
	cmd := &ed.cmds[i]
	return ed.binds[cmd.bind : cmd.bind+cmd.binds]
}

// take gives the current edition to somebody who submits it, and put takes it back.
func (prog *Program) take() *edition {
	prog.mu.Lock()
	defer prog.mu.Unlock()
	prog.now.open++
	return prog.now
}

func (prog *Program) put(ed *edition) {
	prog.mu.Lock()
	ed.open--
	prog.mu.Unlock()
}

// idle says whether nobody submits the edition or waits for its completion. prog.mu is held.
func (ed *edition) idle() bool { return ed.open == 0 && ed.prog.rt.passed(ed.lastUse.Load()) }

// listResources sorts the buffers by what the commands do to them. An allocation has one buffer.
func (ed *edition) listResources() {
	ed.reads, ed.writes = ed.reads[:0], ed.writes[:0]
	for _, u := range ed.uses {
		if u.write {
			ed.writes = append(ed.writes, u.a.buf.Resource)
		} else {
			ed.reads = append(ed.reads, u.a.buf.Resource)
		}
	}
}

// submit encodes and commits commands first to end. The caller's reference to the program goes to the queue.
func (ed *edition) submit(fn string, first, end int, times *gpuTimes, work *tracedWork, in *lane) (uint64, error) {
	q := &ed.prog.rt.queue
	cb, err := q.newCommandBuffer(fn)
	if err != nil {
		return 0, err
	}
	// Names cost messages and memory: a replay has them where somebody looks.
	var names *debugNames
	if work != nil || ed.prog.rt.naming.Load() > 0 {
		names = &ed.prog.debug
		labelBuffer(cb, names.label)
		work.named(*names)
	}
	if err := ed.encode(fn, cb, first, end, names, work); err != nil {
		return 0, err
	}
	work.ended(end - first)
	return q.commit(fn, flight{cb: cb, ed: ed, times: times, trace: work, lane: in})
}

// encode encodes commands first to end: dispatches as an execution of the indirect command buffers where there are some.
func (ed *edition) encode(fn string, cb mtl.CommandBuffer, first, end int, names *debugNames, work *tracedWork) error {
	prog := ed.prog
	st := prog.rt.newPassState(false) // for its encoder
	defer st.recycle()
	enc := &st.enc
	enc.begin(prog.rt, cb, names, work)
	enc.count = first
	enc.posted = names.postsBefore(first)
	for _, r := range prog.runs {
		lo, hi := max(r.first, first), min(r.end, end)
		if lo >= hi {
			continue
		}
		if len(ed.indirect) > 0 && !r.blit {
			var err error
			if ordinal := r.ordinal + lo - r.first; work.timesKernels() {
				err = ed.executeTimed(fn, enc, ordinal, lo, hi)
			} else if err = enc.open(fn, &ed.cmds[lo]); err == nil {
				ed.execute(enc.mtl, ordinal, hi-lo)
				enc.count += hi - lo
			}
			if err != nil {
				return err
			}
			continue
		}
		for i := lo; i < hi; i++ {
			cmd := &ed.cmds[i]
			if err := enc.open(fn, cmd); err != nil {
				return err
			}
			enc.encode(cmd, ed.bindsOf(i), prog.tgs[cmd.tg:cmd.tg+cmd.tgs])
		}
	}
	enc.end()
	return nil
}

// committed notes on everything used that submission seq uses it.
func (ed *edition) committed(seq uint64) {
	markUses(ed.uses, ed.prog.scalars, seq)
	raise(&ed.lastUse, seq)
}

func (ed *edition) dropIndirect() {
	for _, b := range ed.indirect {
		b.mtl.Release()
	}
	ed.indirect = nil
}

// free gives everything back. Nothing uses the edition any more.
func (ed *edition) free() {
	ed.dropIndirect()
	for _, u := range ed.uses {
		u.a.unref()
	}
	ed.uses = nil
}
