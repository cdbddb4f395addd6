package simt

import (
	"math/rand"

	"github.com/ingot-metal/ingot/metallib/air"
)

const genVars = 6

// genBudget is the number of statements of a random kernel.
var genBudget = 60

// A gen makes random kernels: integer and floating-point arithmetic on a few variables, nested branches, loops whose
// trip counts differ by lane, switches, early returns, private variables, loads and stores. Variables become SSA values as
// they are built (Braun et al., 2013), so phis of all kinds occur.
type gen struct {
	*bld
	rng    *rand.Rand
	defs   map[*air.Block]*[genVars]air.Value
	sealed map[*air.Block]bool
	open   map[*air.Block]*[genVars]*air.Instr
	preds  map[*air.Block][]*air.Block
	depth  int
	budget int
	loops  []genLoop

	out, in  *air.Arg
	tid      air.Value
	slots    air.Value // an array of its own for every thread
	uniforms []air.Value
}

type genLoop struct{ next, exit *air.Block }

// newGen builds a random kernel: out holds genVars+8 words per thread, in 64 words.
func newGen(seed int64) *gen {
	g := &gen{bld: newBld(), rng: rand.New(rand.NewSource(seed)), defs: map[*air.Block]*[genVars]air.Value{}, sealed: map[*air.Block]bool{},
		open: map[*air.Block]*[genVars]*air.Instr{}, preds: map[*air.Block][]*air.Block{}, budget: genBudget}
	g.out, g.in = g.buffer("out", 0), g.buffer("in", 1)
	tid := g.builtin("thread_position_in_grid")
	group := g.builtin("threadgroup_position_in_grid")
	lane := g.builtin("thread_index_in_simdgroup")
	g.tid = tid
	g.sealed[g.b] = true
	slots := g.add(&air.Instr{Op: air.OpAlloca, Ty: g.m.Pointer(nil, 0), SourceType: g.m.Array(g.i(32), 8), Args: []air.Value{g.c(1)}})
	g.slots = slots
	for k := 0; k < 8; k++ {
		g.put(g.c(k*3), slots, g.c(k))
	}
	g.uniforms = []air.Value{group, g.at(g.i(32), g.in, g.c(3)), g.c(5)}
	seeds := []air.Value{tid, lane, group, g.at(g.i(32), g.in, g.c(1)), g.c(7), g.at(g.i(32), g.in, g.op(air.OpAnd, tid, g.c(63)))}
	for v := range genVars {
		g.write(v, seeds[v])
	}
	g.stmts(4 + g.rng.Intn(4))
	g.finish()
	return g
}

// finish stores the variables and returns.
func (g *gen) finish() {
	base := g.op(air.OpMul, g.tid, g.c(genVars+8))
	for v := range genVars {
		g.put(g.read(v), g.out, g.op(air.OpAdd, base, g.c(v)))
	}
	for k := 0; k < 8; k++ {
		g.put(g.at(g.i(32), g.slots, g.c(k)), g.out, g.op(air.OpAdd, base, g.c(genVars+k)))
	}
	g.ret()
}

func (g *gen) write(v int, x air.Value) {
	d := g.defs[g.b]
	if d == nil {
		d = &[genVars]air.Value{}
		g.defs[g.b] = d
	}
	d[v] = x
}

func (g *gen) read(v int) air.Value { return g.readIn(g.b, v) }

func (g *gen) readIn(b *air.Block, v int) air.Value {
	if d := g.defs[b]; d != nil && d[v] != nil {
		return d[v]
	}
	save := g.b
	g.b = b
	defer func() { g.b = save }()
	var x air.Value
	switch {
	case !g.sealed[b]:
		phi := g.phi(b)
		o := g.open[b]
		if o == nil {
			o = &[genVars]*air.Instr{}
			g.open[b] = o
		}
		o[v] = phi
		x = phi
	case len(g.preds[b]) == 1:
		x = g.readIn(g.preds[b][0], v)
	default:
		phi := g.phi(b)
		g.write(v, phi)
		g.fillPhi(phi, b, v)
		x = phi
	}
	g.b = b
	g.write(v, x)
	return x
}

func (g *gen) phi(b *air.Block) *air.Instr {
	g.n++
	in := &air.Instr{Op: air.OpPhi, Ty: g.i(32), Parent: b}
	n := 0
	for n < len(b.Instrs) && b.Instrs[n].Op == air.OpPhi {
		n++
	}
	b.Instrs = append(b.Instrs[:n:n], append([]*air.Instr{in}, b.Instrs[n:]...)...)
	return in
}

func (g *gen) fillPhi(phi *air.Instr, b *air.Block, v int) {
	for _, p := range g.preds[b] {
		phi.Args = append(phi.Args, g.readIn(p, v))
		phi.Blocks = append(phi.Blocks, p)
	}
}

func (g *gen) seal(b *air.Block) {
	g.sealed[b] = true
	if o := g.open[b]; o != nil {
		for v, phi := range o {
			if phi != nil {
				g.fillPhi(phi, b, v)
			}
		}
	}
}

func (g *gen) edge(to *air.Block) { g.preds[to] = append(g.preds[to], g.b) }

func (g *gen) goTo(to *air.Block) {
	g.edge(to)
	g.br(to)
}

func (g *gen) branch(c air.Value, t, f *air.Block) {
	g.edge(t)
	g.edge(f)
	g.condBr(c, t, f)
}

func (g *gen) stmts(n int) {
	for ; n > 0; n-- {
		if g.budget <= 0 {
			return
		}
		g.budget--
		g.stmt()
	}
}

func (g *gen) stmt() {
	k := g.rng.Intn(12)
	if g.depth >= 4 && k >= 5 {
		k %= 5
	}
	g.depth++
	defer func() { g.depth-- }()
	switch k {
	default:
		g.write(g.rng.Intn(genVars), g.expr(3))
	case 3:
		i := g.op(air.OpAnd, g.expr(1), g.c(7))
		g.put(g.expr(2), g.slots, i)
	case 4:
		i := g.op(air.OpAnd, g.expr(1), g.c(7))
		g.write(g.rng.Intn(genVars), g.at(g.i(32), g.slots, i))
	case 5, 6:
		g.ifStmt()
	case 7, 8, 9:
		g.loop()
	case 10:
		g.switchStmt()
	case 11:
		g.jumpStmt()
	}
}

func (g *gen) cond() air.Value {
	if g.rng.Intn(4) == 0 {
		return g.cmp(air.ICmpULT, g.op(air.OpAnd, g.uniforms[g.rng.Intn(3)], g.c(3)), g.c(2))
	}
	preds := []air.Pred{air.ICmpEQ, air.ICmpNE, air.ICmpUGT, air.ICmpULE, air.ICmpSLT, air.ICmpSGE}
	m := g.c(1<<g.rng.Intn(5) - 1)
	return g.cmp(preds[g.rng.Intn(len(preds))], g.op(air.OpAnd, g.expr(1), m), g.op(air.OpAnd, g.expr(1), m))
}

func (g *gen) ifStmt() {
	t, f, join := g.block("then"), g.block("else"), g.block("join")
	g.branch(g.cond(), t, f)
	g.seal(t)
	g.seal(f)
	g.b = t
	g.stmts(1 + g.rng.Intn(3))
	g.goTo(join)
	g.b = f
	if g.rng.Intn(2) == 0 {
		g.stmts(1 + g.rng.Intn(2))
	}
	g.goTo(join)
	g.seal(join)
	g.b = join
}

func (g *gen) loop() {
	// The counter lives in memory of its own so that statements inside cannot change it.
	n := g.op(air.OpAnd, g.expr(1), g.c(7))
	if g.rng.Intn(3) == 0 {
		n = g.op(air.OpAnd, g.uniforms[g.rng.Intn(3)], g.c(3))
	}
	head, body, next, exit := g.block("head"), g.block("body"), g.block("next"), g.block("exit")
	from := g.b
	g.goTo(head)
	g.b = head
	i := g.phi(head)
	i.Args, i.Blocks = []air.Value{g.c(0)}, []*air.Block{from}
	g.branch(g.cmp(air.ICmpULT, i, n), body, exit)
	g.seal(body)
	g.b = body
	if g.rng.Intn(2) == 0 {
		g.write(g.rng.Intn(genVars), i)
	}
	g.loops = append(g.loops, genLoop{next, exit})
	g.stmts(1 + g.rng.Intn(4))
	g.loops = g.loops[:len(g.loops)-1]
	g.goTo(next)
	g.seal(next)
	g.b = next
	i1 := g.op(air.OpAdd, i, g.c(1))
	i.Args, i.Blocks = append(i.Args, i1), append(i.Blocks, next)
	// Sometimes the loop may also end at its bottom.
	if g.rng.Intn(3) == 0 {
		g.branch(g.cond(), head, exit)
	} else {
		g.goTo(head)
	}
	g.seal(head)
	g.seal(exit)
	g.b = exit
}

func (g *gen) switchStmt() {
	n := 2 + g.rng.Intn(3)
	join := g.block("join")
	v := g.op(air.OpAnd, g.expr(1), g.c(7))
	in := &air.Instr{Op: air.OpSwitch, Args: []air.Value{v}}
	blocks := []*air.Block{g.block("default")}
	for k := 0; k < n; k++ {
		in.Args = append(in.Args, g.c(k))
		blocks = append(blocks, g.block("case"))
	}
	in.Blocks = blocks
	for _, b := range blocks {
		g.edge(b)
	}
	g.add(in)
	for k, b := range blocks {
		if k > 0 && k+1 < len(blocks) && g.rng.Intn(3) == 0 { // falls through to the next
			g.seal(b)
			g.b = b
			g.stmts(1)
			g.goTo(blocks[k+1])
			continue
		}
		g.seal(b)
		g.b = b
		g.stmts(1 + g.rng.Intn(2))
		g.goTo(join)
	}
	g.seal(join)
	g.b = join
}

// jumpStmt leaves early, if some condition holds: the thread, a loop, or an iteration.
func (g *gen) jumpStmt() {
	t, on := g.block("leave"), g.block("on")
	g.branch(g.cond(), t, on)
	g.seal(t)
	g.b = t
	k := g.rng.Intn(5)
	switch {
	case len(g.loops) == 0 || k == 0:
		g.finish()
	case k < 3:
		g.goTo(g.loops[g.rng.Intn(len(g.loops))].exit)
	default:
		g.goTo(g.loops[g.rng.Intn(len(g.loops))].next)
	}
	g.seal(on)
	g.b = on
}

// expr is a random value of 32 bits.
func (g *gen) expr(d int) air.Value {
	if d == 0 || g.rng.Intn(6) == 0 {
		switch g.rng.Intn(6) {
		case 0:
			return g.c(int(g.rng.Uint32()) >> g.rng.Intn(32))
		case 1:
			return g.uniforms[g.rng.Intn(len(g.uniforms))]
		}
		return g.read(g.rng.Intn(genVars))
	}
	switch g.rng.Intn(10) {
	default:
		ops := []air.Op{air.OpAdd, air.OpSub, air.OpMul, air.OpAnd, air.OpOr, air.OpXor, air.OpShl, air.OpLShr, air.OpAShr,
			air.OpUDiv, air.OpSDiv, air.OpURem, air.OpSRem}
		return g.op(ops[g.rng.Intn(len(ops))], g.expr(d-1), g.expr(d-1))
	case 4:
		return g.add(&air.Instr{Op: air.OpSelect, Ty: g.i(32), Args: []air.Value{g.cond(), g.expr(d - 1), g.expr(d - 1)}})
	case 5:
		return g.narrow(d)
	case 6:
		return g.wide(d)
	case 7:
		return g.float(d)
	case 8:
		return g.vector(d)
	case 9:
		return g.at(g.i(32), g.in, g.op(air.OpAnd, g.expr(d-1), g.c(63)))
	}
}

func (g *gen) narrow(d int) air.Value {
	t := g.i([]int{1, 5, 8, 13, 16, 24, 31}[g.rng.Intn(7)])
	a, b := g.cast(air.OpTrunc, t, g.expr(d-1)), g.cast(air.OpTrunc, t, g.expr(d-1))
	ops := []air.Op{air.OpAdd, air.OpSub, air.OpMul, air.OpShl, air.OpLShr, air.OpAShr, air.OpUDiv, air.OpSDiv, air.OpURem, air.OpSRem, air.OpXor}
	r := g.op(ops[g.rng.Intn(len(ops))], a, b)
	return g.cast([]air.Op{air.OpZExt, air.OpSExt}[g.rng.Intn(2)], g.i(32), r)
}

func (g *gen) wide(d int) air.Value {
	t := g.i([]int{33, 40, 48, 63, 64}[g.rng.Intn(5)])
	ext := []air.Op{air.OpZExt, air.OpSExt}
	a, b := g.cast(ext[g.rng.Intn(2)], t, g.expr(d-1)), g.cast(ext[g.rng.Intn(2)], t, g.expr(d-1))
	ops := []air.Op{air.OpAdd, air.OpSub, air.OpMul, air.OpShl, air.OpLShr, air.OpAShr, air.OpUDiv, air.OpSDiv, air.OpURem, air.OpSRem}
	r := g.op(ops[g.rng.Intn(len(ops))], a, g.op(ops[g.rng.Intn(3)], a, b))
	if g.rng.Intn(3) == 0 {
		c := g.cmp([]air.Pred{air.ICmpULT, air.ICmpSLT, air.ICmpNE, air.ICmpSGE}[g.rng.Intn(4)], r, b)
		return g.cast(air.OpZExt, g.i(32), c)
	}
	if g.rng.Intn(2) == 0 {
		r = g.op(air.OpLShr, r, g.cn(t.Bits, uint64(g.rng.Intn(t.Bits-31))))
	}
	return g.cast(air.OpTrunc, g.i(32), r)
}

func (g *gen) float(d int) air.Value {
	t := []*air.Type{g.m.Float(), g.m.Float(), g.m.Half(), g.m.BFloat()}[g.rng.Intn(4)]
	toF := []air.Op{air.OpUIToFP, air.OpSIToFP}[g.rng.Intn(2)]
	a, b := g.cast(toF, t, g.expr(d-1)), g.cast(toF, t, g.expr(d-1))
	ops := []air.Op{air.OpFAdd, air.OpFSub, air.OpFMul, air.OpFDiv}
	r := g.op(ops[g.rng.Intn(4)], g.op(ops[g.rng.Intn(4)], a, b), a)
	switch g.rng.Intn(4) {
	case 0:
		return g.cast(air.OpZExt, g.i(32), g.cmp(air.Pred(g.rng.Intn(16)), r, b))
	case 1:
		// A NaN's bits may differ, so only what is not one is looked at.
		z := g.cmp(air.FCmpORD, r, r)
		v := g.cast(air.OpFPToSI, g.i(32), r)
		if t == g.m.Float() {
			v = g.cast(air.OpBitCast, g.i(32), r)
		}
		return g.add(&air.Instr{Op: air.OpSelect, Ty: g.i(32), Args: []air.Value{z, v, g.c(9)}})
	}
	i := g.i([]int{8, 16, 32}[g.rng.Intn(3)])
	v := g.cast([]air.Op{air.OpFPToUI, air.OpFPToSI}[g.rng.Intn(2)], i, r)
	if i.Bits < 32 {
		v = g.cast([]air.Op{air.OpZExt, air.OpSExt}[g.rng.Intn(2)], g.i(32), v)
	}
	return v
}

func (g *gen) vector(d int) air.Value {
	t := g.m.Vector(g.i(32), 4)
	var v air.Value = &air.Const{Kind: air.NullConst, Ty: t}
	for k := 0; k < 4; k++ {
		i := air.Value(g.c(k))
		if g.rng.Intn(4) == 0 {
			i = g.op(air.OpAnd, g.expr(0), g.c(3))
		}
		v = g.add(&air.Instr{Op: air.OpInsertElement, Ty: t, Args: []air.Value{v, g.expr(0), i}})
	}
	w := g.op([]air.Op{air.OpAdd, air.OpXor, air.OpMul}[g.rng.Intn(3)], v, v)
	mask := &air.Const{Kind: air.AggregateConst, Ty: t}
	for range 4 {
		mask.Elems = append(mask.Elems, g.c(g.rng.Intn(8)))
	}
	s := g.add(&air.Instr{Op: air.OpShuffleVector, Ty: t, Args: []air.Value{v, w, mask}})
	return g.add(&air.Instr{Op: air.OpExtractElement, Ty: g.i(32), Args: []air.Value{s, g.op(air.OpAnd, g.expr(0), g.c(3))}})
}
