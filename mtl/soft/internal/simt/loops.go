package simt

// A loop is a natural loop: its header dominates it.
type loop struct {
	header *block
	latch  *block
	parent *loop
	depth  int
	blocks map[*block]bool
	// divergent is set when lanes may leave in different iterations or by different ways.
	divergent  bool
	start, end int32
}

func (l *loop) contains(b *block) bool { return l.blocks[b] }

// postOrder lists the blocks reachable from the first, each after its successors.
func postOrder(entry *block) []*block {
	var out []*block
	type item struct {
		b *block
		i int
	}
	seen := map[*block]bool{entry: true}
	stack := []item{{entry, 0}}
	for len(stack) > 0 {
		t := &stack[len(stack)-1]
		if s := t.b.succs(); t.i < len(s) {
			// The second way first, so that the first comes first in reverse.
			n := s[len(s)-1-t.i]
			t.i++
			if !seen[n] {
				seen[n] = true
				stack = append(stack, item{n, 0})
			}
			continue
		}
		out = append(out, t.b)
		stack = stack[:len(stack)-1]
	}
	return out
}

// dominators sets idom and domDepth (Cooper, Harvey and Kennedy).
func dominators(blocks []*block) {
	post := postOrder(blocks[0])
	num := map[*block]int{}
	for i, b := range post {
		num[b] = i
		b.idom = nil
	}
	entry := blocks[0]
	entry.idom = entry
	for changed := true; changed; {
		changed = false
		for i := len(post) - 2; i >= 0; i-- {
			b := post[i]
			var d *block
			for _, p := range b.preds {
				if p.idom == nil {
					continue
				}
				if d == nil {
					d = p
					continue
				}
				x, y := d, p
				for x != y {
					for num[x] < num[y] {
						x = x.idom
					}
					for num[y] < num[x] {
						y = y.idom
					}
				}
				d = x
			}
			if b.idom != d {
				b.idom = d
				changed = true
			}
		}
	}
	entry.idom = nil
	entry.domDepth = 0
	for i := len(post) - 2; i >= 0; i-- {
		post[i].domDepth = post[i].idom.domDepth + 1
	}
}

func dominates(a, b *block) bool {
	for b != nil && b.domDepth > a.domDepth {
		b = b.idom
	}
	return a == b
}

// A flow is the control-flow graph with its loops, blocks in order.
type flow struct {
	blocks []*block
	loops  []*loop
	// irreducible is set when some cycle has two entries: then nothing is known to be uniform.
	irreducible bool
}

// findFlow finds the loops, gives each one latch and orders the blocks.
func findFlow(blocks []*block, newBlock func() *block) *flow {
	f := &flow{blocks: blocks}
	for {
		dominators(f.blocks)
		f.findLoops()
		if f.irreducible || !f.addLatches(newBlock) {
			break
		}
	}
	if f.irreducible {
		post := postOrder(blocks[0])
		f.blocks = f.blocks[:0:0]
		for i := len(post) - 1; i >= 0; i-- {
			f.blocks = append(f.blocks, post[i])
		}
		f.loops = nil
		for _, b := range f.blocks {
			b.loop = nil
		}
	} else {
		f.blocks = f.order(nil, blocks[0], nil)
	}
	for i, b := range f.blocks {
		b.order = i
	}
	return f
}

func (f *flow) findLoops() {
	f.loops = nil
	byHeader := map[*block]*loop{}
	post := postOrder(f.blocks[0])
	num := map[*block]int{}
	for i, b := range post {
		num[b] = i
		b.loop = nil
	}
	for i := len(post) - 1; i >= 0; i-- {
		h := post[i]
		for _, p := range h.preds {
			if num[p] > num[h] {
				continue // a forward edge
			}
			if !dominates(h, p) {
				f.irreducible = true
				return
			}
			l := byHeader[h]
			if l == nil {
				l = &loop{header: h, blocks: map[*block]bool{h: true}}
				byHeader[h] = l
				f.loops = append(f.loops, l) // outer headers come first
			}
			l.latch = p
			work := []*block{p}
			for len(work) > 0 {
				b := work[len(work)-1]
				work = work[:len(work)-1]
				if l.blocks[b] {
					continue
				}
				l.blocks[b] = true
				work = append(work, b.preds...)
			}
		}
	}
	// Headers appear in reverse post-order, so an enclosing loop comes before those inside.
	for _, l := range f.loops {
		l.parent = l.header.loop
		if l.parent != nil {
			l.depth = l.parent.depth + 1
		}
		for b := range l.blocks {
			b.loop = l
		}
	}
}

// addLatches gives every loop a single way back to its header, from a block of that loop alone. It tells whether it
// changed anything.
func (f *flow) addLatches(newBlock func() *block) bool {
	changed := false
	for _, l := range f.loops {
		var back []int
		for i, p := range l.header.preds {
			if l.blocks[p] {
				back = append(back, i)
			}
		}
		if len(back) == 1 && l.latch.loop == l {
			continue
		}
		changed = true
		h, n := l.header, newBlock()
		n.term, n.succ[0], n.src = termJump, h, l.latch.src
		for _, p := range h.phis {
			q := &val{op: opPhi, wide: p.wide, blk: n, id: p.id}
			for _, i := range back {
				q.args = append(q.args, p.args[i])
			}
			n.phis = append(n.phis, q)
		}
		for _, i := range back {
			p := h.preds[i]
			n.preds = append(n.preds, p)
			for k := range p.succ {
				if p.succ[k] == h {
					p.succ[k] = n
				}
			}
		}
		for k := len(back) - 1; k >= 0; k-- {
			removePred(h, back[k])
		}
		h.preds = append(h.preds, n)
		for i, p := range h.phis {
			p.args = append(p.args, n.phis[i])
		}
		f.blocks = append(f.blocks, n)
	}
	return changed
}

// order lists the blocks of a region so that joins come after what they join and inner loops are contiguous.
func (f *flow) order(l *loop, entry *block, out []*block) []*block {
	// nodes of the region: its own blocks, and inner loops by their headers.
	rep := func(b *block) *block {
		if l != nil && !l.blocks[b] {
			return nil
		}
		for x := b.loop; x != l; x = x.parent {
			if x == nil {
				return nil
			}
			b = x.header
		}
		return b
	}
	succs := func(b *block) []*block {
		var s []*block
		add := func(from *block) {
			for _, t := range from.succs() {
				if r := rep(t); r != nil && r != b && t != entry {
					s = append(s, r)
				}
			}
		}
		if b.loop == l {
			add(b)
			return s
		}
		in := b.loop
		for in.parent != l {
			in = in.parent
		}
		for _, x := range f.loopBlocks(in) {
			add(x)
		}
		return s
	}
	type item struct {
		b *block
		s []*block
	}
	seen := map[*block]bool{entry: true}
	stack := []item{{entry, succs(entry)}}
	var post []*block
	for len(stack) > 0 {
		t := &stack[len(stack)-1]
		if n := len(t.s); n > 0 {
			b := t.s[n-1]
			t.s = t.s[:n-1]
			if !seen[b] {
				seen[b] = true
				stack = append(stack, item{b, succs(b)})
			}
			continue
		}
		post = append(post, t.b)
		stack = stack[:len(stack)-1]
	}
	for i := len(post) - 1; i >= 0; i-- {
		b := post[i]
		if b.loop == l {
			out = append(out, b)
			continue
		}
		in := b.loop
		for in.parent != l {
			in = in.parent
		}
		out = f.order(in, in.header, out)
	}
	return out
}

// loopBlocks lists a loop's blocks in a fixed order.
func (f *flow) loopBlocks(l *loop) []*block {
	var out []*block
	for _, b := range f.blocks {
		if l.blocks[b] {
			out = append(out, b)
		}
	}
	return out
}
