package simt

import (
	"container/heap"
	"sort"
)

// The register file of a simdgroup: first what lives for ever (constants, launch values), then what is allocated by live
// ranges. Registers are blocks of 32 lanes of 32 or 64 bits, or one 64-bit word for a value that is the same in all lanes
// and never read lane by lane. The three kinds never share space, so an instruction may write onto its own operands.
//
// Live ranges are without holes in the order of the blocks, and span the loops that a value is live around. Then no lane
// that waits elsewhere holds a value in a register that the running group may write for all lanes: waiting lanes wait at
// later blocks, and what they will read was defined before. So even a value that differs by lane may be written in all
// lanes, needed there or not (private), unless it shares its register with a phi, which lanes may hold already, or is used
// outside a loop that lanes leave in different iterations.
type regalloc struct {
	*flow
	size uint32
	free [3][]uint32
}

const (
	slotOne = iota
	slot32
	slot64
)

var slotSize = [3]uint32{8, 4 * simdWidth, 8 * simdWidth}

func slotKind(v *val) int {
	switch {
	case v.uni && !v.bcast:
		return slotOne
	case v.wide:
		return slot64
	}
	return slot32
}

func (r *regalloc) fresh(kind int) uint32 {
	off := r.size
	r.size += slotSize[kind]
	return off
}

func (r *regalloc) take(kind int) uint32 {
	if n := len(r.free[kind]); n > 0 {
		off := r.free[kind][n-1]
		r.free[kind] = r.free[kind][:n-1]
		return off
	}
	return r.fresh(kind)
}

// find is the representative of a class.
func find(v *val) *val {
	for v.class != nil {
		v = v.class
	}
	return v
}

// results are the values that an operation defines.
func results(v *val) []*val {
	if v.ext != nil && v.ext.outs != nil {
		return v.ext.outs
	}
	return []*val{v}
}

func (r *regalloc) permanent(v *val) bool {
	return v.op == opConst || v.op == opArg || v.op == opLaneTab
}

// ranges numbers the program and finds the live ranges.
func (r *regalloc) ranges() {
	pos := int32(2)
	for _, b := range r.blocks {
		b.start = pos
		pos += 2
		for _, v := range b.ins {
			for _, d := range results(v) {
				d.lo, d.hi = pos+1, pos+1
			}
			pos += 2
		}
		b.end = pos
		pos += 2
	}
	for _, l := range r.loops {
		l.start, l.end = 1<<30, 0
		for b := range l.blocks {
			l.start, l.end = min(l.start, b.start), max(l.end, b.end)
		}
	}
	for _, b := range r.blocks {
		for _, p := range b.phis {
			p.lo, p.hi = b.start, b.start
			for _, q := range b.preds {
				p.lo = min(p.lo, q.end)
				if q.order >= b.order {
					p.hi = max(p.hi, b.start)
				}
			}
		}
	}
	use := func(a *val, at *block, pos int32) {
		if r.permanent(a) {
			return
		}
		a.hi = max(a.hi, pos)
		def := a.blk
		// Live around every loop that contains the use but not the definition.
		for l := at.loop; l != nil; l = l.parent {
			if !l.contains(def) {
				a.hi = max(a.hi, l.end)
			}
		}
		// And through every loop that contains the definition but not the use.
		for l := def.loop; l != nil; l = l.parent {
			if !l.contains(at) {
				a.lo, a.hi = min(a.lo, l.start), max(a.hi, l.end)
			}
		}
	}
	for _, b := range r.blocks {
		for _, p := range b.phis {
			for i, q := range b.preds {
				use(p.args[i], q, q.end)
			}
		}
		pos := b.start + 2
		for _, v := range b.ins {
			at := pos
			if v.ext != nil && v.ext.anyLane {
				at++ // other lanes' operands are read after the first results are written
			}
			for _, a := range v.args {
				use(a, b, at)
			}
			pos += 2
		}
		if b.cond != nil {
			use(b.cond, b, b.end)
		}
	}
	if r.irreducible { // no loops are known: everything lives for ever
		each(r.blocks, func(v *val) {
			for _, d := range results(v) {
				d.lo, d.hi = 0, 1<<30
			}
		})
	}
}

// coalesce lets phis share registers with their arguments, so that most need no moves.
func (r *regalloc) coalesce() {
	for _, b := range r.blocks {
		for _, p := range b.phis {
			// The way around the loop first: it is taken most often.
			for pass := 0; pass < 2; pass++ {
				for i, a := range p.args {
					if (b.preds[i].order >= b.order) == (pass == 0) {
						r.unite(p, a)
					}
				}
			}
		}
	}
}

func (r *regalloc) unite(p, a *val) {
	if r.permanent(a) || a.uni != p.uni || a.wide != p.wide || a.uni && a.bcast != p.bcast {
		return
	}
	x, y := find(p), find(a)
	if x == y || max(x.lo, y.lo) < min(x.hi, y.hi) {
		return
	}
	y.class = x
	x.shared, y.shared = true, true
	x.lo, x.hi = min(x.lo, y.lo), max(x.hi, y.hi)
}

// assign gives every class a register, by linear scan.
func (r *regalloc) assign() {
	var classes []*val
	seen := map[*val]bool{}
	add := func(v *val) {
		c := find(v)
		if !seen[c] && !r.permanent(v) {
			seen[c] = true
			classes = append(classes, c)
		}
	}
	each(r.blocks, func(v *val) {
		if v.ext != nil && v.ext.outs != nil {
			for _, o := range v.ext.outs {
				if o.uses > 0 {
					add(o)
				}
			}
			return
		}
		if v.op == opStore || v.op == opBarrier || v.op == opSync || v.op == opMem {
			return
		}
		add(v)
	})
	sort.SliceStable(classes, func(i, j int) bool { return classes[i].lo < classes[j].lo })
	var active byEnd
	for _, c := range classes {
		for len(active) > 0 && active[0].hi < c.lo {
			a := heap.Pop(&active).(*val)
			r.free[slotKind(a)] = append(r.free[slotKind(a)], a.reg)
		}
		c.reg = r.take(slotKind(c))
		heap.Push(&active, c)
	}
}

// byEnd is a heap of classes, the one that ends first on top.
type byEnd []*val

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].hi < h[j].hi }
func (h byEnd) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byEnd) Push(x any)        { *h = append(*h, x.(*val)) }
func (h *byEnd) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}

// private tells whether writing v in all lanes harms none.
func (r *regalloc) private(v *val) bool { return !r.irreducible && !v.shared && !v.outlives }

func regOf(v *val) uint32 { return find(v).reg }
