package simt

import (
	"fmt"

	"github.com/ingot-metal/ingot/metallib/air"
)

// maxOps and maxBlocks bound the size of a lowered kernel: inlining of a hostile module must not exhaust memory or time.
// The largest known kernels have some tens of thousands of operations.
const (
	maxOps    = 1 << 18
	maxBlocks = 1 << 14
)

// compileError is the panic that leaves the lowering.
type compileError struct{ msg string }

type constKey struct {
	imm  uint64
	wide bool
}

// A lowerer turns a kernel into the scalar graph.
type lowerer struct {
	m      *air.Module
	mem    *layout
	blocks []*block
	cur    *block
	consts map[constKey]*val
	args   map[uint64]*val
	tables map[*[32]uint64]*val
	cse    map[cseKey]*val
	nvals  int32
	stack  []*air.Function
	// at is the instruction being lowered, for errors and reports.
	at *air.Instr
	// matrix is set when values of 64 elements are simdgroup matrices, of which each lane holds two.
	matrix bool
	fenced bool // there are fences
	types  map[*air.Type][]leaf
	nested int // depth of the type that leaves splits
	opt    *Options
	kernel *air.Kernel
}

type cseKey struct {
	op      op
	imm     uint64
	a, b, c *val
}

// A frame is one inlined function.
type frame struct {
	fn     *air.Function
	vals   map[air.Value][]*val
	blocks map[*air.Block]*block
	// from lists, for every block, the air blocks that its preds end.
	from map[*air.Block][]*air.Block
	phis []pendingPhi
	rets []ret
}

type pendingPhi struct {
	in   *air.Instr
	vals []*val
}

type ret struct {
	end  *block
	vals []*val
}

func (lw *lowerer) fail(format string, args ...any) {
	panic(compileError{fmt.Sprintf(format, args...)})
}

func (lw *lowerer) newBlock() *block {
	if len(lw.blocks) >= maxBlocks {
		lw.fail("the kernel has more than %d blocks after inlining", maxBlocks)
	}
	b := &block{id: len(lw.blocks)}
	lw.blocks = append(lw.blocks, b)
	return b
}

func (lw *lowerer) setBlock(b *block) {
	lw.cur = b
	clear(lw.cse)
}

func (lw *lowerer) newVal(o op, wide bool, imm uint64, args ...*val) *val {
	lw.nvals++
	if lw.nvals > maxOps {
		lw.fail("the kernel has more than %d operations after inlining", maxOps)
	}
	return &val{op: o, wide: wide, imm: imm, args: args, blk: lw.cur, id: lw.nvals}
}

// add appends an operation that has an ext.
func (lw *lowerer) add(o op, wide bool, imm uint64, x *ext, args ...*val) *val {
	v := lw.newVal(o, wide, imm, args...)
	v.ext = x
	x.src = lw.at
	lw.cur.ins = append(lw.cur.ins, v)
	return v
}

// outs makes the n results of p.
func (lw *lowerer) outs(p *val, n int, wide bool) []*val {
	r := make([]*val, n)
	for i := range r {
		r[i] = lw.newVal(opOut, wide, uint64(i), p)
	}
	p.ext.outs = r
	return r
}

func (lw *lowerer) constant(imm uint64, wide bool) *val {
	k := constKey{imm, wide}
	v := lw.consts[k]
	if v == nil {
		v = lw.newVal(opConst, wide, imm)
		v.blk = nil
		v.uni = true
		lw.consts[k] = v
	}
	return v
}

func (lw *lowerer) c32(imm uint32) *val { return lw.constant(uint64(imm), false) }
func (lw *lowerer) c64(imm uint64) *val { return lw.constant(imm, true) }

// arg is a value supplied at launch.
func (lw *lowerer) arg(kind argKind, index int, wide bool) *val {
	imm := uint64(kind)<<32 | uint64(index)
	v := lw.args[imm]
	if v == nil {
		v = lw.newVal(opArg, wide, imm)
		v.blk = nil
		lw.args[imm] = v
	}
	return v
}

func (lw *lowerer) jump(to *block) {
	if lw.cur.term != termNone {
		return
	}
	lw.cur.term, lw.cur.succ[0], lw.cur.src = termJump, to, lw.at
	to.preds = append(to.preds, lw.cur)
}

func (lw *lowerer) branch(c *val, t, f *block) {
	if t == f {
		lw.jump(t)
		return
	}
	lw.cur.term, lw.cur.cond, lw.cur.succ, lw.cur.src = termBranch, c, [2]*block{t, f}, lw.at
	t.preds = append(t.preds, lw.cur)
	f.preds = append(f.preds, lw.cur)
}

// inline lowers a call of fn: its blocks are made, and the current block afterwards is where it returns to.
func (lw *lowerer) inline(fn *air.Function, args [][]*val) []*val {
	if fn.Declaration() {
		lw.fail("function %s has no body", fn.Name)
	}
	for _, f := range lw.stack {
		if f == fn {
			lw.fail("function %s calls itself: recursion is not possible in a kernel", fn.Name)
		}
	}
	lw.stack = append(lw.stack, fn)
	f := &frame{fn: fn, vals: map[air.Value][]*val{}, blocks: map[*air.Block]*block{}, from: map[*air.Block][]*air.Block{}}
	for i, a := range fn.Args {
		if i < len(args) && args[i] != nil {
			f.vals[a] = args[i]
		}
	}
	order, index := reversePostOrder(fn)
	for i, b := range order {
		if i > 0 {
			if len(f.from[b]) == 0 {
				continue // reached only through branches that were folded away
			}
			lw.setBlock(f.blocks[b])
		}
		lw.phis(f, b, i, index)
		for _, in := range b.Instrs {
			if in.Op != air.OpPhi {
				lw.at = in
				lw.instr(f, b, in)
			}
		}
		if b.Terminator() == nil || !b.Terminator().IsTerminator() {
			lw.fail("block %s of %s has no terminator", b.Name, fn.Name)
		}
	}
	for _, p := range f.phis {
		lw.fillPhi(f, p)
	}
	lw.stack = lw.stack[:len(lw.stack)-1]
	return lw.finish(f)
}

// finish joins the returns of an inlined function.
func (lw *lowerer) finish(f *frame) []*val {
	switch len(f.rets) {
	case 0: // never returns: what follows the call is unreachable
		lw.setBlock(lw.newBlock())
		n := len(lw.leaves(f.fn.FuncType.Ret))
		r := make([]*val, n)
		for i, l := range lw.leaves(f.fn.FuncType.Ret) {
			r[i] = lw.constant(0, l.wide())
		}
		return r
	case 1:
		lw.setBlock(f.rets[0].end)
		return f.rets[0].vals
	}
	join := lw.newBlock()
	for _, r := range f.rets {
		lw.cur = r.end
		lw.jump(join)
	}
	lw.setBlock(join)
	var out []*val
	for i := range f.rets[0].vals {
		phi := lw.newVal(opPhi, f.rets[0].vals[i].wide, 0)
		for _, r := range f.rets {
			phi.args = append(phi.args, r.vals[i])
		}
		join.phis = append(join.phis, phi)
		out = append(out, phi)
	}
	return out
}

// phis makes the phis of a block. Where exactly one way leads in, they are just names.
func (lw *lowerer) phis(f *frame, b *air.Block, i int, index map[*air.Block]int) {
	header := false
	for _, in := range b.Instrs {
		if in.Op != air.OpPhi {
			break
		}
		for _, p := range in.Blocks {
			if j, ok := index[p]; ok && j >= i {
				header = true
			}
		}
	}
	var names [][]*val
	var ins []*air.Instr
	for _, in := range b.Instrs {
		if in.Op != air.OpPhi {
			break
		}
		lw.at = in
		if !header && len(f.from[b]) == 1 {
			// Phis read their operands at once: set the names only after all are looked up.
			ins = append(ins, in)
			names = append(names, lw.incoming(f, in, f.from[b][0]))
			continue
		}
		var vs []*val
		for _, l := range lw.leaves(in.Ty) {
			phi := lw.newVal(opPhi, l.wide(), 0)
			lw.cur.phis = append(lw.cur.phis, phi)
			vs = append(vs, phi)
		}
		f.vals[in] = vs
		f.phis = append(f.phis, pendingPhi{in, vs})
	}
	for k, in := range ins {
		f.vals[in] = names[k]
	}
}

func (lw *lowerer) incoming(f *frame, in *air.Instr, from *air.Block) []*val {
	for k, p := range in.Blocks {
		if p == from {
			return lw.value(f, in.Args[k])
		}
	}
	lw.fail("phi %%%s of %s has no value for predecessor %s", in.Name, f.fn.Name, from.Name)
	return nil
}

func (lw *lowerer) fillPhi(f *frame, p pendingPhi) {
	lw.at = p.in
	for _, from := range f.from[p.in.Parent] {
		for i, v := range lw.incoming(f, p.in, from) {
			p.vals[i].args = append(p.vals[i].args, v)
		}
	}
}

// target is the block for b as reached from the end of air block from.
func (lw *lowerer) target(f *frame, from, b *air.Block) *block {
	t := f.blocks[b]
	if t == nil {
		t = lw.newBlock()
		f.blocks[b] = t
	}
	f.from[b] = append(f.from[b], from)
	return t
}

func (lw *lowerer) terminator(f *frame, b *air.Block, in *air.Instr) {
	switch in.Op {
	case air.OpRet:
		var vs []*val
		if len(in.Args) > 0 {
			vs = lw.value(f, in.Args[0])
		}
		f.rets = append(f.rets, ret{lw.cur, vs})
	case air.OpBr:
		if len(in.Args) == 0 {
			lw.jump(lw.target(f, b, in.Blocks[0]))
			return
		}
		c := lw.scalar(f, in.Args[0])
		switch {
		case in.Blocks[0] == in.Blocks[1] || c.isConst() && c.imm&1 != 0:
			lw.jump(lw.target(f, b, in.Blocks[0]))
		case c.isConst():
			lw.jump(lw.target(f, b, in.Blocks[1]))
		default:
			lw.branch(c, lw.target(f, b, in.Blocks[0]), lw.target(f, b, in.Blocks[1]))
		}
	case air.OpSwitch:
		// A chain of comparisons: it diverges and reconverges as any branch does.
		v := lw.scalar(f, in.Args[0])
		for i := 1; i < len(in.Args); i++ {
			if in.Blocks[i] == in.Blocks[0] {
				continue
			}
			eq := lw.eq(v, lw.scalar(f, in.Args[i]))
			if eq.isConst() {
				if eq.imm != 0 {
					lw.jump(lw.target(f, b, in.Blocks[i]))
					return
				}
				continue
			}
			next := lw.newBlock()
			lw.branch(eq, lw.target(f, b, in.Blocks[i]), next)
			lw.setBlock(next)
		}
		lw.jump(lw.target(f, b, in.Blocks[0]))
	case air.OpUnreachable:
		lw.cur.term, lw.cur.src = termTrap, in
	default:
		lw.fail("%s: unsupported terminator %s", f.fn.Name, opName(in.Op))
	}
}

// reversePostOrder lists the blocks of fn reachable from its entry, and their positions.
func reversePostOrder(fn *air.Function) ([]*air.Block, map[*air.Block]int) {
	var order []*air.Block
	seen := map[*air.Block]bool{}
	type item struct {
		b *air.Block
		i int
	}
	stack := []item{{fn.Blocks[0], 0}}
	seen[fn.Blocks[0]] = true
	for len(stack) > 0 {
		t := &stack[len(stack)-1]
		term := t.b.Terminator()
		if term != nil && t.i < len(term.Blocks) && term.IsTerminator() {
			s := term.Blocks[t.i]
			t.i++
			if !seen[s] {
				seen[s] = true
				stack = append(stack, item{s, 0})
			}
			continue
		}
		order = append(order, t.b)
		stack = stack[:len(stack)-1]
	}
	index := map[*air.Block]int{}
	for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
		order[i], order[j] = order[j], order[i]
	}
	for i, b := range order {
		index[b] = i
	}
	return order, index
}
