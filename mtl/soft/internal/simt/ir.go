package simt

import (
	"fmt"
	"math/bits"

	"github.com/ingot-metal/ingot/metallib/air"
)

// op is an operation of the scalar graph: a generated lane operation or one of those below.
type op uint16

const (
	opConst   = opLaneOps + 1 + iota // imm
	opArg                            // a builtin or the address of a buffer; imm says which (args.go)
	opPhi                            // args[i] comes from block.preds[i]
	opOut                            // result imm of args[0], an operation with several results
	opLoad                           // args[0] address, imm displacement; results are opOut
	opStore                          // args[0] address, args[1:] values, imm displacement
	opAtomic                         // args[0] address, operands; ext.fn
	opMem                            // memory intrinsics; ext.fn
	opCross                          // operations across lanes; ext.fn
	opBarrier                        // threadgroup barrier
	opSync                           // simdgroup barrier
	opLaneTab                        // a constant that differs by lane: ext.table
)

// laneOp describes a generated operation.
type laneOp struct {
	name    string
	nargs   int
	wide    bool // the result has 64 bits
	comm    bool
	argWide [3]bool
	// eval computes one lane for constant folding.
	eval func(a, b, c, m uint64) uint64
	// uni computes a value that is the same in all lanes; vec are the lane loops, by a bit mask of the arguments that are
	// read from lane 0 only; nil where there is no such form.
	uni func(*warp, *inst)
	vec [8]func(*warp, *inst)
}

// A val is a scalar value: an operation and its arguments.
type val struct {
	op   op
	wide bool
	imm  uint64
	args []*val
	ext  *ext
	blk  *block
	// fwd is the value that replaces this one.
	fwd *val

	id    int32
	uses  int32
	uni   bool // the same in all lanes
	bcast bool // a uniform value that must also be written to all lanes
	fused bool // computed by its only user
	// outlives is set if the value is used outside a loop that lanes leave apart: those outside hold it while others go on.
	outlives bool
	shared   bool // its class has several values

	// Register allocation: the class it belongs to, its live range, its register.
	class  *val
	lo, hi int32
	reg    uint32
}

// ext holds what only some operations have.
type ext struct {
	src    *air.Instr // the instruction it was made from, for reports
	region int        // region of the address if known, else 0
	esize  uint32     // bytes per element of a load or store
	n      int        // elements
	align  uint64
	outs   []*val
	fn     func(*warp, *inst)
	sub    uint32 // variant of an atomic or cross-lane operation
	bits   uint32 // width of its integers
	table  *[32]uint64
	// Properties of cross-lane and memory operations.
	uniResult bool // the result is the same in all active lanes whatever the arguments
	uniArgs   bool // the result is the same if the arguments are
	effect    bool // may not be removed
	anyLane   bool // reads other lanes: uniform arguments need not be broadcast, but its result may not share their registers
}

type termKind uint8

const (
	termNone termKind = iota
	termJump
	termBranch
	termRet
	termTrap
)

// A block is a basic block.
type block struct {
	id    int
	phis  []*val
	ins   []*val
	term  termKind
	cond  *val
	succ  [2]*block
	preds []*block
	src   *air.Instr // terminator, for reports

	// Filled by the analyses.
	order      int
	idom       *block
	domDepth   int
	loop       *loop
	start, end int32 // positions for live ranges
	pc         int32
}

func (b *block) succs() []*block {
	switch b.term {
	case termJump:
		return b.succ[:1]
	case termBranch:
		return b.succ[:2]
	}
	return nil
}

// get follows replacements.
func (v *val) get() *val {
	for v.fwd != nil {
		v = v.fwd
	}
	return v
}

func (v *val) isConst() bool { return v.op == opConst }

func (v *val) effect() bool {
	switch v.op {
	case opStore, opBarrier, opSync:
		return true
	case opLoad, opAtomic, opMem, opCross:
		return v.ext.effect
	}
	return false
}

// width is an upper bound of the number of significant bits of an unsigned reading of v.
func (v *val) width() int { return v.widthDepth(4) }

func (v *val) widthDepth(d int) int {
	full := 32
	if v.wide {
		full = 64
	}
	if d == 0 {
		return full
	}
	switch v.op {
	case opConst:
		return bits.Len64(v.imm)
	case opOut:
		if p := v.args[0]; p.op == opLoad {
			return min(full, int(p.ext.esize)*8)
		}
	case opAnd32, opAnd64:
		return min(v.args[0].widthDepth(d-1), v.args[1].widthDepth(d-1))
	case opOr32, opOr64, opXor32, opXor64:
		return max(v.args[0].widthDepth(d-1), v.args[1].widthDepth(d-1))
	case opLShr32, opLShr64:
		w := v.args[0].widthDepth(d - 1)
		if c := v.args[1]; c.isConst() {
			return max(0, w-int(c.imm&uint64(full-1)))
		}
		return w
	case opUMin32, opUMin64:
		return min(v.args[0].widthDepth(d-1), v.args[1].widthDepth(d-1))
	case opUMax32, opUMax64:
		return max(v.args[0].widthDepth(d-1), v.args[1].widthDepth(d-1))
	case opURem32, opURem64, opUDiv32, opUDiv64:
		return v.args[0].widthDepth(d - 1)
	case opZExt64, opTrunc64:
		return min(full, v.args[0].widthDepth(d-1))
	case opSelect32, opSelect64:
		return max(v.args[1].widthDepth(d-1), v.args[2].widthDepth(d-1))
	case opF32ToHalf, opF32ToBFloat, opF64ToHalf, opF64ToBFloat, opF64ToHalfDir, opF64ToBFloatDir:
		return 16
	case opF32ToU, opF64ToU, opF32ToS, opF64ToS:
		return int(v.imm)
	case opPopCount32, opClz32, opCtz32, opPopCount64, opClz64, opCtz64:
		return 7
	case opArg:
		if argKind(v.imm>>32) == argBuiltin {
			return 32
		}
	}
	if v.op >= opEq32 && v.op <= opSLe32 || v.op >= opEq64 && v.op <= opSLe64 ||
		v.op >= opFOEq32 && v.op <= opFUNe32 || v.op >= opFOEq64 && v.op <= opFUNe64 {
		return 1
	}
	return full
}

func (v *val) String() string {
	if v.op == opConst {
		return fmt.Sprintf("#%#x", v.imm)
	}
	var name string
	if v.op < opLaneOps {
		name = laneOps[v.op].name
	} else {
		name = [...]string{"const", "arg", "phi", "out", "load", "store", "atomic", "mem", "cross", "barrier", "sync", "lanetab"}[v.op-opConst]
	}
	s := fmt.Sprintf("v%d = %s", v.id, name)
	for _, a := range v.args {
		if a.isConst() {
			s += " " + a.String()
		} else {
			s += fmt.Sprintf(" v%d", a.id)
		}
	}
	if v.imm != 0 {
		s += fmt.Sprintf(" [%#x]", v.imm)
	}
	if v.uni {
		s += " uniform"
	}
	return s
}
