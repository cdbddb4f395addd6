package simt

import (
	"math/bits"
	"unsafe"

	"github.com/ingot-metal/ingot/metallib/air"
)

const (
	simdWidth = 32
	allLanes  = 1<<simdWidth - 1
)

// instKind tells the main loop how to run an instruction.
type instKind uint8

const (
	// kindPlain instructions write only what they may write, whatever lanes run.
	kindPlain instKind = iota
	// kindLanes instructions compute all lanes; while other lanes wait elsewhere only those of the running group may be
	// written.
	kindLanes
	// kindControl instructions set the next position themselves.
	kindControl
)

// An inst is one instruction. Operands are byte offsets in the register file of a simdgroup: of 32 32-bit or 64-bit lanes,
// or of one such value for what is the same in all lanes.
type inst struct {
	fn      func(*warp, *inst)
	d, a, b uint32
	c       uint32
	imm     uint64
	x       *xinst
	kind    instKind
	wide    bool // the result has 64-bit lanes
}

// An operand is an argument of an instruction with a variable number of them.
type operand struct {
	reg  uint32
	uni  bool
	wide bool
}

// xinst is what only some instructions need.
type xinst struct {
	src    *air.Instr
	region int
	size   uint64 // bytes per element
	n      int
	amask  uint64 // alignment less one
	dst    []uint32
	dstUni bool
	args   []operand
	sub    uint32
	bits   uint32
	edges  [2]edge
	cost   int64
	// In a checked or counted program: the instruction's number, whether its address is uniform, and what else it does.
	code           uint32
	together       stamp  // stampTogether if the simdgroup makes the access as a whole
	moved          uint32 // the results that are only moved on
	uniAddr        bool
	plain, counted func(*warp, *inst)
}

// An edge is a way from one block to another: where it goes and the phis to set on the way.
type edge struct {
	pc    int32
	moves []move // of what differs by lane, in an order that overwrites nothing still needed
	uni   []move // of uniform values, to be done after moves
	both  []move // uni as it was before it was put in order
}

type move struct {
	d, s uint32
	kind moveKind
}

type moveKind uint8

const (
	move32 moveKind = iota // 32 lanes of 32 bits
	move64
	moveUni32 // one value
	moveUni64
	moveFill32 // one value to the lanes that take the edge
	moveFill64
	moveAll32 // one value to all lanes: a uniform phi that is also read lane by lane
	moveAll64
)

// waiting is a group of lanes waiting at a block.
type waiting struct {
	pc   int32
	mask uint32
}

type stopReason uint8

const (
	running stopReason = iota
	atBarrier
	ended
)

// A warp is the state of one simdgroup.
type warp struct {
	base unsafe.Pointer // the register file
	regs []region
	prog *Program
	// mask are the lanes that run; div is set while others wait.
	mask uint32
	div  bool
	stop stopReason
	pc   int32
	all  uint32 // the lanes that exist
	nw   int
	wait [simdWidth]waiting // by falling pc

	g             *group
	bufs          *[MaxBuffers]Buffer
	access        func(slot int, offset, size uint64, kind Access) // the dispatch's
	atomic        bool                                             // an atomic operation is under way
	group, origin [3]uint32                                        // position of the threadgroup, and of its first thread
	simd          uint32
	file          []uint64
	private       []byte
	tmp           inst
	saved         []uint64 // room for the uniform phis of an edge

	// In the checking mode: the ticks of the last simdgroup barriers, and which private bytes were written.
	since [checkSpaces]uint32
	waits uint32
	init  []byte
}

func (w *warp) u32(off uint32) *[32]uint32  { return (*[32]uint32)(unsafe.Add(w.base, off)) }
func (w *warp) u64(off uint32) *[32]uint64  { return (*[32]uint64)(unsafe.Add(w.base, off)) }
func (w *warp) f32(off uint32) *[32]float32 { return (*[32]float32)(unsafe.Add(w.base, off)) }
func (w *warp) one32(off uint32) uint32     { return *(*uint32)(unsafe.Add(w.base, off)) }
func (w *warp) one64(off uint32) uint64     { return *(*uint64)(unsafe.Add(w.base, off)) }

// get is an operand's value in a lane.
func (w *warp) get(o operand, l int) uint64 {
	if o.wide {
		if o.uni {
			return w.one64(o.reg)
		}
		return w.u64(o.reg)[l&31]
	}
	if o.uni {
		return uint64(w.one32(o.reg))
	}
	return uint64(w.u32(o.reg)[l&31])
}

// put sets result k of in for a lane; a uniform result has one value.
func (w *warp) put(in *inst, k, l int, v uint64) {
	d := in.x.dst[k]
	if d == noReg {
		return
	}
	if in.x.dstUni {
		l = 0
	}
	if in.wide {
		w.u64Lane(d, l, v)
	} else {
		*(*uint32)(unsafe.Add(w.base, d+uint32(l)*4)) = uint32(v)
	}
}

// putAll sets result k of in to the same value for all running lanes.
func (w *warp) putAll(in *inst, k int, v uint64) {
	if in.x.dstUni {
		w.put(in, k, 0, v)
		return
	}
	for m := w.mask; m != 0; m &= m - 1 {
		w.put(in, k, bits.TrailingZeros32(m)&31, v)
	}
}

func (w *warp) u64Lane(d uint32, l int, v uint64) {
	*(*uint64)(unsafe.Add(w.base, d+uint32(l)*8)) = v
}

// noReg marks a result that nothing uses.
const noReg = ^uint32(0)

// run executes until a barrier or the end.
func (w *warp) run() {
	code := w.prog.code
	pc := w.pc
	w.stop = running
	for {
		in := &code[pc]
		switch in.kind {
		case kindPlain:
			in.fn(w, in)
			pc++
		case kindLanes:
			if w.div {
				w.masked(in)
			} else {
				in.fn(w, in)
			}
			pc++
		default:
			w.pc = pc
			in.fn(w, in)
			pc = w.pc
			if w.stop != running {
				return
			}
		}
	}
}

// masked computes all lanes to the side and keeps those of the running group.
func (w *warp) masked(in *inst) {
	w.tmp = *in
	w.tmp.d = w.prog.scratch
	in.fn(w, &w.tmp)
	if in.wide {
		d, s := w.u64(in.d), w.u64(w.prog.scratch)
		for m := w.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			d[l] = s[l]
		}
		return
	}
	d, s := w.u32(in.d), w.u32(w.prog.scratch)
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = s[l]
	}
}

// enqueue lets lanes wait at pc.
func (w *warp) enqueue(pc int32, mask uint32) {
	i := w.nw
	for i > 0 && w.wait[i-1].pc < pc {
		i--
	}
	if i > 0 && w.wait[i-1].pc == pc {
		w.wait[i-1].mask |= mask
		return
	}
	copy(w.wait[i+1:w.nw+1], w.wait[i:w.nw])
	w.wait[i] = waiting{pc, mask}
	w.nw++
}

// next runs the group that waits at the lowest block.
func (w *warp) next() {
	w.nw--
	w.pc, w.mask = w.wait[w.nw].pc, w.wait[w.nw].mask
	w.div = w.nw > 0
}

// transfer lets the running group go on at pc, or another group if one waits lower.
func (w *warp) transfer(pc int32) {
	if !w.div {
		w.pc = pc
		return
	}
	low := &w.wait[w.nw-1]
	switch {
	case pc < low.pc:
		w.pc = pc
	case pc == low.pc:
		w.mask |= low.mask
		w.nw--
		w.pc, w.div = pc, w.nw > 0
	default:
		w.enqueue(pc, w.mask)
		w.next()
	}
}

func (w *warp) spend(in *inst) {
	w.g.budget -= in.x.cost
	if w.g.budget < 0 {
		w.fault(&Fault{Kind: FaultStepLimit, Slot: -1, Detail: "the threadgroup ran longer than its limit of instructions allows"}, in, w.firstLane())
	}
}

func (w *warp) firstLane() int { return bits.TrailingZeros32(w.mask|1<<31) & 31 }

func execJump(w *warp, in *inst) {
	w.spend(in)
	e := &in.x.edges[0]
	w.follow(e)
}

func execBranchUni(w *warp, in *inst) {
	w.spend(in)
	e := &in.x.edges[1]
	if w.one32(in.a) != 0 {
		e = &in.x.edges[0]
	}
	w.follow(e)
}

func execBranch(w *warp, in *inst) {
	w.spend(in)
	c := w.u32(in.a)
	var t uint32
	for l := 0; l < 32; l += 4 {
		t |= (c[l]&1)<<(l&31) | (c[l+1]&1)<<((l+1)&31) | (c[l+2]&1)<<((l+2)&31) | (c[l+3]&1)<<((l+3)&31)
	}
	w.split(in, t&w.mask)
}

// split sends the lanes of t over the first edge and the other running ones over the second.
func (w *warp) split(in *inst, t uint32) {
	e0, e1 := &in.x.edges[0], &in.x.edges[1]
	switch t {
	case w.mask:
	case 0:
		e0 = e1
	default:
		f := w.mask &^ t
		w.div = true
		w.moves(e0.moves, t)
		w.moves(e1.moves, f)
		w.uniMoves(e0, e1)
		w.enqueue(e0.pc, t)
		w.enqueue(e1.pc, f)
		w.next()
		return
	}
	w.follow(e0)
}

// follow sends the whole running group over an edge.
func (w *warp) follow(e *edge) {
	if len(e.moves) > 0 {
		w.moves(e.moves, w.mask)
	}
	if len(e.uni) > 0 {
		w.moves(e.uni, w.mask)
	}
	w.transfer(e.pc)
}

// uniMoves sets the uniform phis of two edges taken at once: neither may see what the other has set.
func (w *warp) uniMoves(e0, e1 *edge) {
	if len(e1.uni) == 0 || len(e0.uni) == 0 {
		w.moves(e0.uni, w.mask)
		w.moves(e1.uni, w.mask)
		return
	}
	for i := range e1.both {
		w.saved[i] = w.one64(e1.both[i].s)
	}
	w.moves(e0.uni, w.mask)
	for i, m := range e1.both {
		v := w.saved[i]
		switch m.kind {
		case moveUni32:
			*(*uint32)(unsafe.Add(w.base, m.d)) = uint32(v)
		case moveUni64:
			*(*uint64)(unsafe.Add(w.base, m.d)) = v
		case moveAll32:
			d := w.u32(m.d)
			for l := range d {
				d[l] = uint32(v)
			}
		case moveAll64:
			d := w.u64(m.d)
			for l := range d {
				d[l] = v
			}
		}
	}
}

// moves sets phis for the lanes of mask.
func (w *warp) moves(ms []move, mask uint32) {
	for i := range ms {
		m := &ms[i]
		switch m.kind {
		case move32:
			d, s := w.u32(m.d), w.u32(m.s)
			if !w.div {
				*d = *s
				continue
			}
			for k := mask; k != 0; k &= k - 1 {
				l := bits.TrailingZeros32(k) & 31
				d[l] = s[l]
			}
		case move64:
			d, s := w.u64(m.d), w.u64(m.s)
			if !w.div {
				*d = *s
				continue
			}
			for k := mask; k != 0; k &= k - 1 {
				l := bits.TrailingZeros32(k) & 31
				d[l] = s[l]
			}
		case moveUni32:
			*(*uint32)(unsafe.Add(w.base, m.d)) = w.one32(m.s)
		case moveUni64:
			*(*uint64)(unsafe.Add(w.base, m.d)) = w.one64(m.s)
		case moveFill32:
			d, v := w.u32(m.d), w.one32(m.s)
			if !w.div {
				for l := range d {
					d[l] = v
				}
				continue
			}
			for k := mask; k != 0; k &= k - 1 {
				d[bits.TrailingZeros32(k)&31] = v
			}
		case moveFill64:
			d, v := w.u64(m.d), w.one64(m.s)
			if !w.div {
				for l := range d {
					d[l] = v
				}
				continue
			}
			for k := mask; k != 0; k &= k - 1 {
				d[bits.TrailingZeros32(k)&31] = v
			}
		case moveAll32:
			d, v := w.u32(m.d), w.one32(m.s)
			for l := range d {
				d[l] = v
			}
		case moveAll64:
			d, v := w.u64(m.d), w.one64(m.s)
			for l := range d {
				d[l] = v
			}
		}
	}
}

func execRet(w *warp, in *inst) {
	w.spend(in)
	if w.nw == 0 {
		w.stop = ended
		return
	}
	w.next()
}

func execTrap(w *warp, in *inst) {
	w.fault(&Fault{Kind: FaultUnreachable, Slot: -1}, in, w.firstLane())
}

// execBarrier stops the simdgroup until all others of the threadgroup are there.
func execBarrier(w *warp, in *inst) {
	w.checkConverged(in)
	w.stop = atBarrier
	w.pc++
}

// execSync is a barrier of the simdgroup: lanes run in lock step, so there is nothing to wait for.
func execSync(w *warp, in *inst) { w.checkConverged(in) }

func (w *warp) checkConverged(in *inst) {
	if w.div || w.mask != w.all {
		missing := w.all &^ w.mask
		w.fault(&Fault{Kind: FaultDivergentBarrier, Slot: -1,
			Detail: barrierDetail(bits.OnesCount32(w.mask), bits.OnesCount32(missing))}, in, w.firstLane())
	}
}

// Fill instructions write a uniform value to all lanes.
func execFill32(w *warp, in *inst) {
	d, v := w.u32(in.d), w.one32(in.a)
	for l := 0; l < 32; l += 4 {
		d[l], d[l+1], d[l+2], d[l+3] = v, v, v, v
	}
}

func execFill64(w *warp, in *inst) {
	d, v := w.u64(in.d), w.one64(in.a)
	for l := 0; l < 32; l += 4 {
		d[l], d[l+1], d[l+2], d[l+3] = v, v, v, v
	}
}
