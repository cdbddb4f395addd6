package simt

// constReg is a constant and where it lives in every register file.
type constReg struct {
	reg   uint32
	imm   uint64
	wide  bool
	bcast bool
	table *[32]uint64
}

// An emitter makes the instructions of a program.
type emitter struct {
	*regalloc
	p     *Program
	fixes []fix
	moves uint32 // a register for breaking cycles of moves
}

// fix is an edge whose target is not placed yet.
type fix struct {
	e *edge
	b *block
}

// emit allocates registers and writes the code of p.
func emit(p *Program, f *flow, mem *layout) {
	r := &regalloc{flow: f}
	e := &emitter{regalloc: r, p: p}
	// What must be in all lanes is known once the forms are chosen.
	forms := map[*val]func(*warp, *inst){}
	for _, b := range f.blocks {
		for _, v := range b.ins {
			e.needs(v, forms)
		}
	}
	p.scratch = r.fresh(slot64)
	e.moves = r.fresh(slot64)
	r.ranges()
	r.coalesce()
	e.place()
	r.assign()
	for _, b := range f.blocks {
		b.pc = int32(len(p.code))
		n := len(b.ins) + 1
		for _, v := range b.ins {
			e.instr(v, forms[v])
		}
		e.terminator(b, int64(n))
	}
	for _, x := range e.fixes {
		x.e.pc = x.b.pc
	}
	p.regBytes = r.size
}

// needs notes which uniform values an operation reads lane by lane.
func (e *emitter) needs(v *val, forms map[*val]func(*warp, *inst)) {
	if v.op < opLaneOps {
		if v.uni {
			forms[v] = laneOps[v.op].uni
			return
		}
		fn, fill := form(v)
		forms[v] = fn
		for _, a := range fill {
			a.bcast = true
		}
	}
}

// place gives registers to what lives for ever.
func (e *emitter) place() {
	seen := map[*val]bool{}
	put := func(v *val) {
		if seen[v] || !e.permanent(v) {
			return
		}
		seen[v] = true
		switch v.op {
		case opLaneTab:
			v.reg = e.fresh(slot64)
			e.p.consts = append(e.p.consts, constReg{reg: v.reg, wide: true, table: v.ext.table})
		case opConst:
			v.reg = e.fresh(slotKind(v))
			e.p.consts = append(e.p.consts, constReg{reg: v.reg, imm: v.imm, wide: v.wide, bcast: v.bcast})
		case opArg:
			v.reg = e.fresh(slotKind(v))
			kind := argKind(v.imm >> 32)
			e.p.args = append(e.p.args, argSlot{kind: kind, index: int(uint32(v.imm)), reg: v.reg, uni: v.uni, bcast: v.bcast})
			if kind == argBuffer {
				e.p.usesBuffer |= 1 << uint32(v.imm)
			}
		}
	}
	each(e.blocks, func(v *val) {
		put(v)
		for _, a := range v.args {
			put(a)
		}
	})
	for _, b := range e.blocks {
		if b.cond != nil {
			put(b.cond)
		}
	}
}

func (e *emitter) operand(v *val) operand { return operand{reg: regOf(v), uni: v.uni, wide: v.wide} }

func (e *emitter) operands(vs []*val) []operand {
	out := make([]operand, len(vs))
	for i, v := range vs {
		out[i] = e.operand(v)
	}
	return out
}

func (e *emitter) add(in inst) { e.p.code = append(e.p.code, in) }

// fill writes a uniform value to all lanes after it is computed.
func (e *emitter) fill(v *val) {
	if !v.uni || !find(v).bcast && !v.bcast || v.uses == 0 {
		return
	}
	in := inst{fn: execFill32, d: regOf(v), a: regOf(v), wide: v.wide}
	if v.wide {
		in.fn = execFill64
	}
	e.add(in)
}

func (e *emitter) instr(v *val, fn func(*warp, *inst)) {
	if v.op < opLaneOps {
		in := inst{fn: fn, d: regOf(v), imm: v.imm, wide: v.wide, kind: kindLanes}
		if v.uni || e.private(v) {
			in.kind = kindPlain
		}
		for i, a := range v.args {
			switch i {
			case 0:
				in.a = regOf(a)
			case 1:
				in.b = regOf(a)
			case 2:
				in.c = regOf(a)
			}
		}
		e.add(in)
		e.fill(v)
		return
	}
	x := v.ext
	xi := &xinst{src: x.src, region: x.region, size: uint64(x.esize), n: x.n, sub: x.sub, bits: x.bits}
	if x.align > 0 {
		xi.amask = x.align - 1
	}
	for _, o := range x.outs {
		reg := noReg
		if o.uses > 0 {
			reg = regOf(o)
		}
		xi.dst = append(xi.dst, reg)
		xi.dstUni = o.uni
	}
	in := inst{imm: v.imm, x: xi, wide: v.wide}
	switch v.op {
	case opLoad:
		in.a = regOf(v.args[0])
		in.fn = loadForm(xi, v.args[0].uni, !xi.dstUni)
	case opStore:
		in.a = regOf(v.args[0])
		xi.args = e.operands(v.args[1:])
		own := x.region == 0 && e.p.mem.laneStride > 0 || x.region >= firstRegion && e.p.mem.regions[x.region-firstRegion].kind == regionPrivate
		ro := x.region >= firstRegion && e.p.mem.regions[x.region-firstRegion].kind == regionConst
		in.fn = storeForm(xi, v.args[0].uni, own, ro)
	case opAtomic, opMem, opCross:
		in.fn = x.fn
		xi.args = e.operands(v.args)
	case opBarrier:
		in.fn, in.kind = execBarrier, kindControl
		e.p.barriers = true
	case opSync:
		in.fn = execSync
	}
	if e.p.checks {
		e.checkedForms(v, &in)
	}
	if e.p.counts {
		e.countedForms(v, &in)
	}
	e.add(in)
	for _, o := range x.outs {
		e.fill(o)
	}
}

func (e *emitter) terminator(b *block, cost int64) {
	x := &xinst{src: b.src, cost: cost}
	in := inst{x: x, kind: kindControl}
	switch b.term {
	case termJump:
		in.fn = execJump
		e.edge(&x.edges[0], b, b.succ[0])
	case termBranch:
		in.a = regOf(b.cond)
		in.fn = execBranch
		if b.cond.uni {
			in.fn = execBranchUni
		}
		e.edge(&x.edges[0], b, b.succ[0])
		e.edge(&x.edges[1], b, b.succ[1])
	case termRet:
		in.fn = execRet
	default:
		in.fn = execTrap
	}
	if e.p.counts {
		x.counted, in.fn = in.fn, countedEnd
	}
	e.add(in)
}

// edge prepares the moves of the phis of to.
func (e *emitter) edge(ed *edge, from, to *block) {
	e.fixes = append(e.fixes, fix{ed, to})
	i := 0
	for to.preds[i] != from {
		i++
	}
	var ms, us []move
	for _, p := range to.phis {
		if p.uses == 0 {
			continue
		}
		a := p.args[i]
		d, s := regOf(p), regOf(a)
		if d == s && !(p.uni && p.bcast && !a.bcast) {
			continue
		}
		k := move32
		switch {
		case p.uni && p.bcast:
			k = moveAll32
		case p.uni:
			k = moveUni32
		case a.uni:
			k = moveFill32
		}
		if p.wide {
			k++
		}
		if p.uni {
			us = append(us, move{d: d, s: s, kind: k})
		} else {
			ms = append(ms, move{d: d, s: s, kind: k})
		}
	}
	ed.both = append([]move(nil), us...)
	ed.moves, ed.uni = e.sequence(ms), e.sequence(us)
	e.p.maxMoves = max(e.p.maxMoves, len(us))
}

// sequence orders moves that happen at once so that none overwrites what another still reads.
func (e *emitter) sequence(ms []move) []move {
	var out []move
	for len(ms) > 0 {
		ready := -1
		for i, m := range ms {
			free := true
			for j, o := range ms {
				if i != j && o.s == m.d {
					free = false
					break
				}
			}
			if free {
				ready = i
				break
			}
		}
		if ready < 0 {
			// A cycle: keep the value that the first move overwrites to the side.
			m := ms[0]
			save := move{d: e.moves, s: m.d, kind: m.kind}
			switch m.kind {
			case moveFill32, moveAll32:
				save.kind = move32
			case moveFill64, moveAll64:
				save.kind = move64
			}
			out = append(out, save)
			for j := range ms {
				if ms[j].s == m.d {
					ms[j].s = e.moves
				}
			}
			continue
		}
		out = append(out, ms[ready])
		ms = append(ms[:ready:ready], ms[ready+1:]...)
	}
	return out
}
