package simt

// fuse joins operations that the executor has one instruction for. Only what differs by lane is worth it, and only where
// the inner operation has no other user and lies in the same block.
func fuse(blocks []*block) {
	for _, b := range blocks {
		for _, v := range b.ins {
			if !v.uni && v.op < opLaneOps {
				fuseVal(v)
			}
		}
		kept := b.ins[:0]
		for _, v := range b.ins {
			if !v.fused {
				kept = append(kept, v)
			}
		}
		b.ins = kept
	}
}

func inner(v, a *val, o op) bool { return a.op == o && a.uses == 1 && a.blk == v.blk && !a.uni }

func fuseVal(v *val) {
	take := func(o op, imm uint64, gone *val, args ...*val) {
		gone.fused = true
		v.op, v.imm, v.args = o, imm, args
	}
	switch v.op {
	case opFMul32:
		for i, a := range v.args {
			if !inner(v, a, opU32ToF32) && !(inner(v, a, opS32ToF32) && a.args[0].width() < 32) {
				continue
			}
			x, mask := a.args[0], uint64(1<<32-1)
			if x.op == opAnd32 && x.uses == 1 && x.blk == v.blk && x.args[1].isConst() && !x.uni {
				mask = x.args[1].imm
				x.fused = true
				x = x.args[0]
			}
			take(opUMaskMul32, mask, a, x, v.args[1-i])
			return
		}
	case opFAdd32:
		for i, a := range v.args {
			if inner(v, a, opUMaskMul32) {
				take(opUMaskMulAdd32, a.imm, a, a.args[0], a.args[1], v.args[1-i])
				return
			}
		}
		for i, a := range v.args {
			if inner(v, a, opFMul32) {
				take(opFMulAdd32, 0, a, a.args[0], a.args[1], v.args[1-i])
				return
			}
		}
	case opFMA32:
		// A factor of at most 24 bits is exact in single precision.
		for i, a := range v.args[:2] {
			if !inner(v, a, opU32ToF32) {
				continue
			}
			x := a.args[0]
			if x.op != opAnd32 || x.uses != 1 || x.blk != v.blk || !x.args[1].isConst() || x.uni || x.args[1].imm >= 1<<24 {
				continue
			}
			x.fused = true
			take(opUMaskFMA32, x.args[1].imm, a, x.args[0], v.args[1-i], v.args[2])
			return
		}
	case opFSub32:
		if a := v.args[0]; inner(v, a, opFMul32) {
			take(opFMulSub32, 0, a, a.args[0], a.args[1], v.args[1])
		} else if a := v.args[1]; inner(v, a, opFMul32) {
			take(opFSubMul32, 0, a, a.args[0], a.args[1], v.args[0])
		}
	case opAnd32:
		if a := v.args[0]; inner(v, a, opLShr32) && v.args[1].isConst() && a.args[1].isConst() {
			take(opAndShr32, v.args[1].imm<<32|a.args[1].imm&31, a, a.args[0])
		}
	case opTrunc64:
		if a := v.args[0]; inner(v, a, opLShr64) && a.args[1].isConst() {
			take(opTruncShr64, a.args[1].imm&63, a, a.args[0])
		}
	}
}

// form chooses the lane loop for an operation and tells which of its uniform arguments must be in all lanes.
func form(v *val) (fn func(*warp, *inst), fill []*val) {
	info := &laneOps[v.op]
	want := 0
	for i, a := range v.args {
		if a.uni {
			want |= 1 << i
		}
	}
	if info.comm && want == 1 {
		v.args[0], v.args[1] = v.args[1], v.args[0]
		want = 2
	}
	// The form that reads the most uniform arguments from one place.
	best, count := 0, -1
	for m := range info.vec {
		if info.vec[m] == nil || m&^want != 0 {
			continue
		}
		n := 0
		for x := m; x != 0; x &= x - 1 {
			n++
		}
		if n > count {
			best, count = m, n
		}
	}
	for i, a := range v.args {
		if want>>i&1 != 0 && best>>i&1 == 0 {
			fill = append(fill, a)
		}
	}
	return info.vec[best], fill
}
