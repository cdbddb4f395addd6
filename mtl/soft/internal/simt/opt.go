package simt

// clean removes what cannot be reached or is not used, and joins blocks that follow each other.
func clean(blocks []*block) []*block {
	for {
		blocks = reachable(blocks)
		changed := trivialPhis(blocks)
		if mergeBlocks(blocks) {
			changed = true
		}
		if !changed {
			break
		}
	}
	resolve(blocks)
	removeDead(blocks)
	return blocks
}

// reachable keeps the blocks that the first one leads to.
func reachable(blocks []*block) []*block {
	seen := map[*block]bool{blocks[0]: true}
	work := []*block{blocks[0]}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, s := range b.succs() {
			if !seen[s] {
				seen[s] = true
				work = append(work, s)
			}
		}
	}
	out := blocks[:0:0]
	for _, b := range blocks {
		if !seen[b] {
			continue
		}
		out = append(out, b)
		for i := len(b.preds) - 1; i >= 0; i-- {
			if !seen[b.preds[i]] {
				removePred(b, i)
			}
		}
	}
	return out
}

func removePred(b *block, i int) {
	b.preds = append(b.preds[:i:i], b.preds[i+1:]...)
	for _, p := range b.phis {
		p.args = append(p.args[:i:i], p.args[i+1:]...)
	}
}

// trivialPhis replaces phis whose arguments are all one value.
func trivialPhis(blocks []*block) (changed bool) {
	for again := true; again; {
		again = false
		for _, b := range blocks {
			kept := b.phis[:0]
			for _, p := range b.phis {
				var one *val
				trivial := true
				for _, a := range p.args {
					a = a.get()
					if a == p || a == one {
						continue
					}
					if one != nil {
						trivial = false
						break
					}
					one = a
				}
				if trivial && one != nil {
					p.fwd = one
					again, changed = true, true
					continue
				}
				kept = append(kept, p)
			}
			b.phis = kept
		}
	}
	return changed
}

// mergeBlocks joins a block to its only successor where it is that block's only predecessor.
func mergeBlocks(blocks []*block) (changed bool) {
	for _, b := range blocks {
		for b.term == termJump {
			s := b.succ[0]
			if len(s.preds) != 1 || s == b || s == blocks[0] {
				break
			}
			for _, p := range s.phis {
				p.fwd = p.args[0]
			}
			b.ins = append(b.ins, s.ins...)
			for _, v := range s.ins {
				v.blk = b
			}
			b.term, b.cond, b.succ, b.src = s.term, s.cond, s.succ, s.src
			for _, t := range b.succs() {
				for i, p := range t.preds {
					if p == s {
						t.preds[i] = b
					}
				}
			}
			s.term, s.ins, s.phis, s.preds = termNone, nil, nil, nil
			changed = true
		}
	}
	return changed
}

// resolve follows all replacements.
func resolve(blocks []*block) {
	for _, b := range blocks {
		for _, p := range b.phis {
			p.blk = b
			for i, a := range p.args {
				p.args[i] = a.get()
			}
		}
		for _, v := range b.ins {
			v.blk = b
			for i, a := range v.args {
				v.args[i] = a.get()
			}
			if v.ext != nil {
				for _, o := range v.ext.outs {
					o.blk = b
				}
			}
		}
		if b.cond != nil {
			b.cond = b.cond.get()
		}
	}
}

// removeDead drops operations whose results nobody uses, and counts uses.
func removeDead(blocks []*block) {
	live := map[*val]bool{}
	var work []*val
	mark := func(v *val) {
		if !live[v] {
			live[v] = true
			work = append(work, v)
		}
	}
	for _, b := range blocks {
		for _, v := range b.ins {
			if v.effect() || v.op == opLoad {
				// Loads are kept for the faults that they may cause.
				mark(v)
			}
		}
		if b.cond != nil {
			mark(b.cond)
		}
	}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		for _, a := range v.args {
			mark(a)
		}
	}
	for _, b := range blocks {
		b.phis = keep(b.phis, live)
		b.ins = keep(b.ins, live)
	}
	countUses(blocks)
}

func keep(vs []*val, live map[*val]bool) []*val {
	out := vs[:0]
	for _, v := range vs {
		if live[v] {
			out = append(out, v)
		}
	}
	return out
}

func countUses(blocks []*block) {
	each(blocks, func(v *val) {
		v.uses = 0
		for _, a := range v.args {
			a.uses = 0
		}
		if v.ext != nil {
			for _, o := range v.ext.outs {
				o.uses = 0
			}
		}
	})
	each(blocks, func(v *val) {
		for _, a := range v.args {
			a.uses++
		}
	})
	for _, b := range blocks {
		if b.cond != nil {
			b.cond.uses++
		}
	}
}

// each visits phis and operations, not the results of operations with several.
func each(blocks []*block, f func(*val)) {
	for _, b := range blocks {
		for _, v := range b.phis {
			f(v)
		}
		for _, v := range b.ins {
			f(v)
		}
	}
}

// mergeEqual finds operations computed before on every way to them. The blocks are in an order in which a block comes
// after those that dominate it.
func mergeEqual(blocks []*block) {
	seen := map[cseKey][]*val{}
	for _, b := range blocks {
		kept := b.ins[:0]
		for _, v := range b.ins {
			for i, a := range v.args {
				v.args[i] = a.get()
			}
			if v.op >= opLaneOps {
				kept = append(kept, v)
				continue
			}
			k := cseKey{op: v.op, imm: v.imm, a: v.args[0]}
			if len(v.args) > 1 {
				k.b = v.args[1]
			}
			if len(v.args) > 2 {
				k.c = v.args[2]
			}
			same := seen[k]
			for _, e := range same[max(0, len(same)-16):] {
				if dominates(e.blk, b) {
					v.fwd = e
					break
				}
			}
			if v.fwd == nil {
				seen[k] = append(same, v)
				kept = append(kept, v)
			}
		}
		b.ins = kept
	}
	resolve(blocks)
	removeDead(blocks)
}
