package simt

import (
	"github.com/ingot-metal/ingot/metallib/air"
)

func (lw *lowerer) alloca(f *frame, in *air.Instr) []*val {
	n := uint64(1)
	if len(in.Args) > 0 {
		c := lw.scalar(f, in.Args[0])
		if !c.isConst() {
			lw.fail("an alloca whose size is not constant")
		}
		n = c.imm
	}
	size := air.Size(in.SourceType)
	if n > maxPrivate || size > maxPrivate || n*size > maxPrivate {
		lw.fail("a private variable of %d times %d bytes is over the limit of %d", n, size, maxPrivate)
	}
	align := max(in.Align, air.Align(in.SourceType))
	r := lw.mem.addPrivate(n*size, align, in.Name)
	if lw.mem.laneStride > maxPrivate {
		lw.fail("private variables take %d bytes, over the limit of %d", lw.mem.laneStride, maxPrivate)
	}
	return []*val{lw.c64(pointer(r))}
}

func (lw *lowerer) gep(f *frame, in *air.Instr) []*val {
	bases := lw.value(f, in.Args[0])
	n := max(1, in.Ty.Lanes())
	out := make([]*val, n)
	for i := range out {
		p := bases[min(i, len(bases)-1)]
		t := in.SourceType
		for k, a := range in.Args[1:] {
			idxs := lw.value(f, a)
			idx := idxs[min(i, len(idxs)-1)]
			w := a.Type().ScalarBits()
			if k > 0 {
				if t.Kind == air.StructKind {
					if !idx.isConst() || idx.imm >= uint64(len(t.Fields)) {
						lw.fail("getelementptr with a bad field index")
					}
					offs, _ := air.StructLayout(t)
					p = lw.emit(opAdd64, 0, p, lw.c64(offs[idx.imm]))
					t = t.Fields[idx.imm]
					continue
				}
				if t.Elem == nil {
					lw.fail("getelementptr into %s", t)
				}
				t = t.Elem
			}
			size := air.Size(t)
			if in.SourceType.Kind == air.VectorKind && k > 0 && t == in.SourceType.Elem {
				size = uint64(t.ScalarBits()+7) / 8
			}
			p = lw.emit(opIndex64, size, p, lw.sextCast(idx, w, 64))
		}
		out[i] = p
	}
	return out
}

// run is a group of leaves of one size that lie next to each other in memory.
type run struct {
	first, n int
	off      uint64
	esize    uint32
}

// runs groups the scalars of a type into accesses of at most 8 elements.
func (lw *lowerer) runs(t *air.Type) []run {
	var rs []run
	for i, l := range lw.leaves(t) {
		b := l.t.ScalarBits()
		size := uint32(b+7) / 8
		if l.packed {
			lw.fail("memory access of type %s is not supported", t)
		}
		if last := len(rs) - 1; last >= 0 {
			r := &rs[last]
			if r.esize == size && r.off+uint64(r.n)*uint64(size) == l.off && r.n < 8 && t.Kind == air.VectorKind {
				r.n++
				continue
			}
		}
		rs = append(rs, run{i, 1, l.off, size})
	}
	return rs
}

// load reads a value of type t.
func (lw *lowerer) load(p *val, t *air.Type, align uint64) []*val {
	if align == 0 {
		align = air.Align(t)
	}
	ls := lw.leaves(t)
	if t.Kind == air.VectorKind && len(ls) > 0 && ls[0].packed {
		return lw.loadPacked(p, t)
	}
	out := make([]*val, len(ls))
	for _, r := range lw.runs(t) {
		a := alignAt(align, r.off)
		if r.esize&(r.esize-1) != 0 { // three, five … bytes
			out[r.first] = lw.loadBytes(p, r.off, r.esize, ls[r.first].wide())
			continue
		}
		vs := lw.loadRun(p, r.off, r.esize, r.n, a)
		for i, v := range vs {
			k := r.first + i
			if b := ls[k].t.ScalarBits(); b%8 != 0 {
				v = lw.mask(v, b)
			}
			out[k] = v
		}
	}
	return out
}

// alignAt is the alignment known at an offset from an address aligned to a.
func alignAt(a, off uint64) uint64 {
	if off == 0 {
		return a
	}
	return min(a, off&-off)
}

func (lw *lowerer) loadRun(p *val, off uint64, esize uint32, n int, align uint64) []*val {
	p, disp := splitAddress(p, off)
	wide := esize == 8
	if p.isConst() {
		if b := lw.mem.constBytes(p.imm+disp, uint64(esize)*uint64(n)); b != nil {
			out := make([]*val, n)
			for i := range out {
				out[i] = lw.constant(leBytes(b[i*int(esize):(i+1)*int(esize)]), wide)
			}
			return out
		}
	}
	x := &ext{esize: esize, n: n, align: align}
	return lw.outs(lw.add(opLoad, wide, disp, x, p), n, wide)
}

// splitAddress takes the constant part off an address.
func splitAddress(p *val, off uint64) (*val, uint64) {
	for p.op == opAdd64 && p.args[1].isConst() && regionOf(p.args[1].imm) == 0 {
		off += p.args[1].imm
		p = p.args[0]
	}
	return p, off
}

func leBytes(b []byte) (v uint64) {
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}

func (lw *lowerer) loadBytes(p *val, off uint64, n uint32, wide bool) *val {
	var r *val
	for i := uint32(0); i < n; i++ {
		b := lw.loadRun(p, off+uint64(i), 1, 1, 1)[0]
		if wide {
			b = lw.to64(b)
		}
		if i == 0 {
			r = b
			continue
		}
		b = lw.emit(pick([2]op{opShl32, opShl64}, wide), 0, b, lw.constant(uint64(8*i), wide))
		r = lw.emit(pick([2]op{opOr32, opOr64}, wide), 0, r, b)
	}
	return r
}

// loadPacked reads a vector of elements that are not whole bytes, which LLVM packs bit by bit.
func (lw *lowerer) loadPacked(p *val, t *air.Type) []*val {
	w := t.Elem.ScalarBits()
	n := t.Lanes()
	if w*n > 64 {
		lw.fail("a load of %s is not supported", t)
	}
	bytes := uint32(w*n+7) / 8
	v := lw.loadBytes(p, 0, bytes, bytes > 4)
	vb := 32
	if v.wide {
		vb = 64
	}
	out := make([]*val, n)
	for i := range out {
		out[i] = lw.gather([]*val{v}, vb, i*w, w)
	}
	return out
}

func (lw *lowerer) store(p *val, vs []*val, t *air.Type, align uint64) {
	if align == 0 {
		align = air.Align(t)
	}
	ls := lw.leaves(t)
	if t.Kind == air.VectorKind && len(ls) > 0 && ls[0].packed {
		lw.storePacked(p, vs, t)
		return
	}
	for _, r := range lw.runs(t) {
		if r.esize&(r.esize-1) != 0 {
			lw.storeBytes(p, vs[r.first], r.off, r.esize)
			continue
		}
		q, disp := splitAddress(p, r.off)
		x := &ext{esize: r.esize, n: r.n, align: alignAt(align, r.off), effect: true}
		lw.add(opStore, false, disp, x, append([]*val{q}, vs[r.first:r.first+r.n]...)...)
	}
}

func (lw *lowerer) storeBytes(p, v *val, off uint64, n uint32) {
	for i := uint32(0); i < n; i++ {
		b := lw.emit(pick([2]op{opLShr32, opLShr64}, v.wide), 0, v, lw.constant(uint64(8*i), v.wide))
		q, disp := splitAddress(p, off+uint64(i))
		lw.add(opStore, false, disp, &ext{esize: 1, n: 1, align: 1, effect: true}, q, lw.to32(b))
	}
}

func (lw *lowerer) storePacked(p *val, vs []*val, t *air.Type) {
	w := t.Elem.ScalarBits()
	if w*len(vs) > 64 {
		lw.fail("a store of %s is not supported", t)
	}
	bytes := uint32(w*len(vs)+7) / 8
	wide := bytes > 4
	r := lw.constant(0, wide)
	for i, v := range vs {
		if wide {
			v = lw.to64(v)
		}
		v = lw.emit(pick([2]op{opShl32, opShl64}, wide), 0, v, lw.constant(uint64(i*w), wide))
		r = lw.emit(pick([2]op{opOr32, opOr64}, wide), 0, r, v)
	}
	lw.storeBytes(p, r, 0, bytes)
}
