package simt

// Regions of addresses are found at compile time where one can say: an address computed from a pointer into a region stays
// in it, as LLVM's rules for getelementptr demand. The region chooses a faster access and tells whether memory is private;
// bounds are checked all the same.

const regionTop = -1 // nothing known yet

// findRegions sets the region of loads, stores and atomics.
func findRegions(blocks []*block, mem *layout) {
	reg := map[*val]int{}
	at := func(v *val) int {
		switch v.op {
		case opConst:
			if r := regionOf(v.imm); r < firstRegion+len(mem.regions) {
				return r
			}
			return 0
		case opArg:
			if v.imm>>32 == uint64(argBuffer) {
				return int(uint32(v.imm)) + 1
			}
			return 0
		case opPhi, opAdd64, opSub64, opIndex64, opIndexU32, opIndexS32, opSelect64:
			if r, ok := reg[v]; ok {
				return r
			}
			return regionTop
		}
		return 0
	}
	meet := func(vs []*val) int {
		r := regionTop
		for _, a := range vs {
			switch x := at(a); {
			case x == regionTop || x == r:
			case r == regionTop:
				r = x
			default:
				return 0
			}
		}
		return r
	}
	for changed := true; changed; {
		changed = false
		each(blocks, func(v *val) {
			if !v.wide {
				return
			}
			var r int
			switch v.op {
			case opPhi:
				r = meet(v.args)
			case opSelect64:
				r = meet(v.args[1:])
			case opAdd64, opSub64, opIndex64, opIndexU32, opIndexS32:
				if r = at(v.args[0]); r == 0 && v.op != opSub64 {
					r = max(0, at(v.args[1]))
				}
			default:
				return
			}
			if old, ok := reg[v]; !ok && r != regionTop || ok && old != r {
				if ok && old == 0 {
					return // only ever downwards
				}
				reg[v] = r
				changed = true
			}
		})
	}
	each(blocks, func(v *val) {
		switch v.op {
		case opLoad, opStore, opAtomic:
			v.ext.region = max(0, at(v.args[0]))
		}
	})
}
