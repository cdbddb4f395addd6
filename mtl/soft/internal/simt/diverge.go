package simt

// A divergence analysis finds the values that are the same in all lanes that compute them together, and hence need be
// computed only once. A value differs by lane if an operand does, or if it depends on which way lanes took: a phi where
// ways join that lanes may have taken apart, or a value that outlives a loop that lanes leave in different iterations.
type divergence struct {
	*flow
	users map[*val][]*val
	// condOf lists the blocks whose branch tests a value.
	condOf  map[*val][]*block
	work    []*val
	private bool // the program has private memory
	mem     *layout
	done    map[*block]bool
}

// analyse sets uni of all values.
func analyse(f *flow, mem *layout) {
	d := &divergence{flow: f, users: map[*val][]*val{}, condOf: map[*val][]*block{}, mem: mem, done: map[*block]bool{}, private: mem.laneStride > 0}
	each(f.blocks, func(v *val) {
		v.uni = true
		if v.ext != nil {
			for _, o := range v.ext.outs {
				o.uni = true
				d.users[v] = append(d.users[v], o)
			}
		}
		for _, a := range v.args {
			a.uni = true
			d.users[a] = append(d.users[a], v)
		}
	})
	for _, b := range f.blocks {
		if b.cond != nil {
			b.cond.uni = true
			d.condOf[b.cond] = append(d.condOf[b.cond], b)
		}
	}
	source := func(v *val) {
		if d.varies(v) {
			d.mark(v)
		}
		for _, a := range v.args {
			if a.blk == nil && d.varies(a) {
				d.mark(a)
			}
		}
	}
	each(f.blocks, source)
	for _, b := range f.blocks {
		if b.cond != nil && b.cond.blk == nil && d.varies(b.cond) {
			d.mark(b.cond)
		}
	}
	if f.irreducible {
		each(f.blocks, func(v *val) {
			d.mark(v)
			if v.ext != nil {
				for _, o := range v.ext.outs {
					d.mark(o)
				}
			}
		})
	}
	for len(d.work) > 0 {
		v := d.work[len(d.work)-1]
		d.work = d.work[:len(d.work)-1]
		for _, u := range d.users[v] {
			d.visit(u, v)
		}
		for _, b := range d.condOf[v] {
			if !d.done[b] && b.term == termBranch {
				d.done[b] = true
				d.diverges(b)
			}
		}
	}
}

func (d *divergence) mark(v *val) {
	if v.uni {
		v.uni = false
		d.work = append(d.work, v)
	}
}

// varies tells whether v differs by lane of itself.
func (d *divergence) varies(v *val) bool {
	switch v.op {
	case opConst:
		return false
	case opArg:
		return v.imm>>32 == uint64(argBuiltin) && !uniformBuiltin(int(uint32(v.imm))>>2)
	case opLaneTab, opAtomic, opMem:
		return true
	case opLoad:
		return d.ownMemory(v)
	case opCross:
		return !v.ext.uniResult && !v.ext.uniArgs
	}
	return false
}

// ownMemory tells whether equal pointers may lead lanes to memory of their own.
func (d *divergence) ownMemory(v *val) bool {
	if !d.private {
		return false
	}
	r := v.ext.region
	return r == 0 || r >= firstRegion && d.mem.regions[r-firstRegion].kind == regionPrivate
}

// visit propagates to the user u of a value that differs by lane.
func (d *divergence) visit(u, v *val) {
	switch u.op {
	case opCross:
		if u.ext.uniResult || u.ext.uniArgs && u.args[u.ext.n] != v {
			return
		}
	case opStore, opBarrier, opSync:
		return
	}
	d.mark(u)
}

// diverges marks what depends on the way taken at the end of b, whose condition differs by lane.
func (d *divergence) diverges(b *block) {
	labels := map[*block]*block{}
	pending := map[*block]bool{}
	back := map[*loop][]*block{} // labels that arrive at the headers of loops around b
	join := func(s *block) {
		for _, p := range s.phis {
			d.mark(p)
		}
	}
	visit := func(from, s, label *block) {
		if s.order <= from.order {
			if s.loop != nil && s.loop.contains(b) {
				back[s.loop] = append(back[s.loop], label)
			}
			return
		}
		switch old := labels[s]; {
		case old == nil:
			labels[s] = label
			pending[s] = true
		case old != label:
			labels[s] = s
			pending[s] = true
			join(s)
		}
	}
	for _, s := range b.succs() {
		visit(b, s, s)
	}
	cur := b.loop
	// The labels are followed in the order of the blocks; the loops around b are settled when everything in them is done.
	for i := b.order + 1; i <= len(d.blocks); i++ {
		for cur != nil && (i == len(d.blocks) || !cur.contains(d.blocks[i])) {
			d.leave(cur, labels, pending, back[cur], join)
			cur = cur.parent
		}
		if i == len(d.blocks) {
			break
		}
		s := d.blocks[i]
		if !pending[s] {
			continue
		}
		if len(pending) == 1 && !d.openBack(cur, back) {
			return // all lanes are here
		}
		delete(pending, s)
		label := labels[s]
		for _, t := range s.succs() {
			visit(s, t, label)
		}
	}
}

func (d *divergence) openBack(l *loop, back map[*loop][]*block) bool {
	for ; l != nil; l = l.parent {
		if len(back[l]) > 0 {
			return true
		}
	}
	return false
}

// leave decides whether lanes leave loop l apart: some go back to its header, or to different exits, by different ways.
func (d *divergence) leave(l *loop, labels map[*block]*block, pending map[*block]bool, back []*block, join func(*block)) {
	distinct := map[*block]bool{}
	exits := false
	for _, x := range back {
		distinct[x] = true
	}
	for s := range pending {
		exits = true
		distinct[labels[s]] = true
	}
	if !exits || len(distinct) < 2 {
		return
	}
	for _, x := range d.loopBlocks(l) {
		for _, s := range x.succs() {
			if !l.contains(s) && s.order > x.order {
				labels[s] = s
				pending[s] = true
				join(s)
			}
			if !l.contains(s) && s.order <= x.order {
				// An exit to an enclosing loop's header would be that loop's latch, which is a block of its own.
				continue
			}
		}
	}
	if l.divergent {
		return
	}
	l.divergent = true
	outside := func(v *val) {
		for _, u := range d.users[v] {
			if u.op == opPhi {
				// A phi reads its operand where the edge starts.
				for i, a := range u.args {
					switch {
					case a != v:
					case !l.contains(u.blk.preds[i]):
						d.mark(v)
						v.outlives = true
					case !l.contains(u.blk):
						d.mark(u)
					}
				}
				continue
			}
			if !l.contains(u.blk) {
				d.mark(v)
				v.outlives = true
			}
		}
		for _, b := range d.condOf[v] {
			if !l.contains(b) {
				d.mark(v)
				v.outlives = true
			}
		}
	}
	for _, b := range d.loopBlocks(l) {
		for _, v := range b.phis {
			outside(v)
		}
		for _, v := range b.ins {
			outside(v)
			if v.ext != nil {
				for _, o := range v.ext.outs {
					outside(o)
				}
			}
		}
	}
}
