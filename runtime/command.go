package runtime

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// commandKind is what a command does.
type commandKind uint8

const (
	kindDispatch commandKind = iota
	kindCopy                 // the first binding to the second
	kindFill                 // of the first binding
)

// blit says whether the command belongs into a blit encoder.
func (k commandKind) blit() bool { return k != kindDispatch }

// command is one dispatch, copy or fill with its barrier. Its bindings are in slices beside it.
type command struct {
	pl            *pipeline // of a dispatch
	grid, threads Size
	kind          commandKind
	exact         bool // grid counts threads, not threadgroups
	value         byte // of a fill
	wanted        bool // a barrier before it was asked for, whatever conflicts
	barrier       bool // there is one before it
	bind, binds   int  // first and number, in the slice of bindings
	tg, tgs       int
	group         int32 // of its pass or program, see debugGroup
}

// bufferBind is what is bound to one slot of a dispatch, or one side of a copy.
type bufferBind struct {
	buf    mtl.Buffer
	off    uint64
	a      *allocation // nil for a constant
	n      int
	use    int32 // its position in the tracker of who plans the barriers
	access uint8 // 0 for a constant
	slot   uint8
	fixed  bool // a scalar of the caller's own storage, which Program.Bind leaves alone
}

func (b *bufferBind) reads() bool  { return b.access&accessRead != 0 }
func (b *bufferBind) writes() bool { return b.access&accessWrite != 0 }
func (b *bufferBind) lo() int      { return int(b.off) }
func (b *bufferBind) hi() int      { return int(b.off) + b.n }

// meets says whether the two touch the same byte.
func (b *bufferBind) meets(o *bufferBind) bool {
	return b.a != nil && b.a == o.a && b.lo() < o.hi() && o.lo() < b.hi()
}

// declareBytes tells a device with checks what a dispatch was given: the object is the encoder or indirect command that the
// buffers have been bound on.
func (rt *Runtime) declareBytes(id objc.ID, binds []bufferBind) {
	if rt.declare == nil {
		return
	}
	for i := range binds {
		rt.declare(id, int(binds[i].slot), uint64(binds[i].n))
	}
}

// groupMemory is the length of one threadgroup memory argument.
type groupMemory struct {
	index  uint8
	length uint32
}

// planner places barriers in a list of commands. Passes do the same as they encode, command by command.
type planner struct {
	hazards tracker
	drop    func(*command) bool // for tests: says which barriers to leave out
}

// plan sets the barrier of each command and returns how many there are. Commands of another kind than the one before are in
// another encoder, which orders them without a barrier.
func (pl *planner) plan(cmds []command, binds []bufferBind, tracked bool) (barriers int) {
	t := &pl.hazards
	t.reset()
	for i := range cmds {
		cmd := &cmds[i]
		uses := binds[cmd.bind : cmd.bind+cmd.binds]
		for k := range uses {
			if b := &uses[k]; b.a != nil {
				pos, _ := t.pos(b.a.id)
				b.use = int32(pos)
			}
		}
		if i > 0 && cmd.kind.blit() != cmds[i-1].kind.blit() {
			cmd.barrier = false
			t.barrier()
		} else {
			cmd.barrier = i > 0 && (cmd.wanted || tracked && t.conflicts(uses))
			if cmd.barrier {
				t.barrier()
				cmd.barrier = pl.drop == nil || !pl.drop(cmd)
				barriers++
			}
		}
		if tracked {
			t.note(uses)
		}
	}
	return barriers
}

// conflicts says whether one of the accesses, whose positions are known, must come after a barrier.
func (t *tracker) conflicts(uses []bufferBind) bool {
	for i := range uses {
		if b := &uses[i]; b.a != nil && t.conflict(int(b.use), b.lo(), b.hi(), b.writes()) {
			return true
		}
	}
	return false
}

// note adds the accesses of one command.
func (t *tracker) note(uses []bufferBind) {
	for i := range uses {
		if b := &uses[i]; b.a != nil {
			t.add(int(b.use), b.lo(), b.hi(), b.reads(), b.writes())
		}
	}
}
