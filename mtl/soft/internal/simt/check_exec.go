package simt

import (
	"math/bits"
	"strings"
	"unsafe"
)

// The instructions of a checked program: each makes sure that the access is in bounds as usual, compares it with the
// history, and does what the unchecked one does.

// checkedForms replaces the function of an instruction that accesses memory or orders accesses.
func (e *emitter) checkedForms(v *val, in *inst) {
	x := in.x
	x.code = uint32(min(len(e.p.code), maxStampCode))
	x.plain = in.fn
	if x.src != nil {
		if f := x.src.CalleeFunction(); f != nil && strings.HasPrefix(f.Name, "air.simdgroup_matrix") {
			x.together = stampTogether
		}
	}
	for i, o := range v.ext.outs {
		if !e.p.needed[o] {
			x.moved |= 1 << i
		}
	}
	switch v.op {
	case opLoad:
		x.uniAddr = v.args[0].uni
		switch r := x.region; {
		case r > 0 && r < firstRegion && e.p.writes>>(r-1)&1 == 0:
			in.fn = checkedForeignLoad
		case r >= firstRegion && e.p.mem.regions[r-firstRegion].kind == regionConst:
		default:
			in.fn = checkedLoad
		}
	case opStore:
		x.uniAddr = v.args[0].uni
		in.fn = checkedStore
	case opAtomic:
		in.fn = checkedAtomic
	case opMem:
		in.fn = checkedMem
	case opSync:
		in.fn = checkedSync
	}
}

// findWrites notes the buffers that a program may write.
func (p *Program) findWrites(blocks []*block) {
	unknown := false
	each(blocks, func(v *val) {
		switch v.op {
		case opStore, opAtomic:
			if r := v.ext.region; r == 0 {
				unknown = true
			} else if r < firstRegion {
				p.writes |= 1 << (r - 1)
			}
		case opMem:
			unknown = true
		}
	})
	p.hidden = p.writes
	for _, a := range p.kernel.Args {
		if a.Writable && a.Index >= 0 && a.Index < MaxBuffers {
			p.hidden &^= 1 << a.Index
		}
		if unknown && a.Writable && a.Index >= 0 && a.Index < MaxBuffers {
			p.writes |= 1 << a.Index
		}
	}
}

// HiddenWrites are the buffer slots that a program with checks writes to although its kernel declares them as read only:
// whoever orders dispatches by what kernels declare does not know. What is written through pointers that the compiler cannot
// follow is not among them.
func (p *Program) HiddenWrites() uint32 { return p.hidden }

// findNeeded finds the values that a program computes with, as opposed to those that it only moves within
// threadgroup and private memory.
func findNeeded(blocks []*block) map[*val]bool {
	needed := map[*val]bool{}
	var work []*val
	need := func(v *val) {
		if v != nil && !needed[v] {
			needed[v] = true
			work = append(work, v)
		}
	}
	for _, b := range blocks {
		need(b.cond)
		for _, v := range b.ins {
			switch v.op {
			case opStore:
				need(v.args[0])
				if v.ext.region < firstRegion { // to a buffer, or who knows
					for _, a := range v.args[1:] {
						need(a)
					}
				}
			case opSelect32, opSelect64:
				need(v.args[0])
			case opPhi, opOut:
			default:
				for _, a := range v.args {
					need(a)
				}
			}
		}
	}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if v.op == opPhi || v.op == opSelect32 || v.op == opSelect64 {
			for _, a := range v.args {
				need(a)
			}
		}
	}
	return needed
}

// checkedForeignLoad is a load from a buffer that the kernel does not write, unless it is bound at another slot, too.
func checkedForeignLoad(w *warp, in *inst) {
	if w.g.chk.aliased {
		checkedLoad(w, in)
		return
	}
	in.x.plain(w, in)
}

func checkedLoad(w *warp, in *inst) {
	w.g.chk.step(w)
	x := in.x
	size := x.size * uint64(x.n)
	if x.uniAddr {
		p := w.one64(in.a) + in.imm
		first := w.firstLane()
		if x.dstUni {
			w.loadLane(in, p, first)
			w.checkLoad(in, p, first, size)
			if last := 31 - bits.LeadingZeros32(w.mask); last > first {
				w.check(in, p, last, size, checkRead, 0)
			}
			return
		}
		for m := w.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			w.loadLane(in, p, l)
			w.checkLoad(in, p, l, size)
		}
		return
	}
	a := w.u64(in.a)
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := a[l] + in.imm
		w.loadLane(in, p, l)
		w.checkLoad(in, p, l, size)
	}
}

// checkLoad checks a load, of whose elements only those that are used must have been written.
func (w *warp) checkLoad(in *inst, p uint64, l int, size uint64) {
	x := in.x
	w.check(in, p, l, size, checkRead, 0)
	for k, d := range x.dst {
		if d != noReg && x.moved>>k&1 == 0 {
			w.checkWritten(in, p+uint64(k)*x.size, l, x.size)
		}
	}
}

func checkedStore(w *warp, in *inst) {
	w.g.chk.step(w)
	x := in.x
	if !x.uniAddr {
		a := w.u64(in.a)
		for m := w.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			w.checkedStoreLane(in, a[l]+in.imm, l, 0)
		}
		return
	}
	p := w.one64(in.a) + in.imm
	for m := w.mask; m != 0; m &= m - 1 {
		w.checkedStoreLane(in, p, bits.TrailingZeros32(m)&31, 0)
	}
}

func (w *warp) checkedStoreLane(in *inst, p uint64, l int, flags stamp) {
	x := in.x
	size := x.size * uint64(x.n)
	q := w.resolve(p, l, size, x.amask, true, in)
	var buf [64]byte
	for k, o := range x.args {
		poke(unsafe.Pointer(&buf[uint64(k)*x.size]), x.size, w.get(o, l))
	}
	mem := unsafe.Slice((*byte)(q), size)
	w.checkWrite(in, p, l, mem, buf[:size], flags)
	copy(mem, buf[:size])
}

// checkWrite checks a write of new over old.
func (w *warp) checkWrite(in *inst, p uint64, l int, old, new []byte, flags stamp) {
	if string(old) == string(new) && w.markSame(in, p, l, uint64(len(new))) {
		return
	}
	w.check(in, p, l, uint64(len(new)), checkWrite, flags)
}

// checkedAtomic lets one lane after the other go.
func checkedAtomic(w *warp, in *inst) {
	w.g.chk.step(w)
	x := in.x
	mask := w.mask
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := w.get(x.args[0], l) + in.imm
		w.mask = 1 << l
		if w.inside(in, p, x.size) {
			if x.sub != atomStore && (x.sub != atomXchg || len(x.dst) > 0 && x.dst[0] != noReg) {
				w.checkWritten(in, p, l, x.size)
			}
			w.check(in, p, l, x.size, checkAtomic, 0)
		}
		x.plain(w, in)
	}
	w.mask = mask
}

// checkedMem is execCopy, execSet or execTileCopy.
func checkedMem(w *warp, in *inst) {
	w.g.chk.step(w)
	x := in.x
	if len(x.args) > 3 {
		x.plain(w, in) // which checks by itself
		return
	}
	mask := w.mask
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		n := w.get(x.args[2], l)
		dst, src := w.get(x.args[0], l), w.get(x.args[1], l)
		w.mask = 1 << l
		// What is out of bounds is left to the plain instruction.
		if n > 0 && w.inside(in, dst, n) {
			q := unsafe.Slice((*byte)(w.place(in, dst, l)), n)
			switch {
			case len(x.args) == 3 && x.sub == memSet:
				same := true
				for _, b := range q {
					same = same && b == byte(src)
				}
				if !same || !w.markSame(in, dst, l, n) {
					w.check(in, dst, l, n, checkWrite, 0)
				}
			case w.inside(in, src, n):
				w.check(in, src, l, n, checkRead, 0)
				init := w.initOf(in, src, l, n)
				w.checkWrite(in, dst, l, q, unsafe.Slice((*byte)(w.place(in, src, l)), n), 0)
				// Padding is copied, too: what was never written stays so.
				if to := w.initOf(in, dst, l, n); init != nil && to != nil {
					copy(to, init)
				}
			}
		}
		x.plain(w, in)
	}
	w.mask = mask
}

// checkTile checks an access by a simdgroup as a whole, if checks are on.
func (w *warp) checkTile(in *inst, p uint64, l int, n uint64, kind checkKind) {
	if w.g.chk == nil {
		return
	}
	w.check(in, p, l, n, kind, stampTogether)
	if kind == checkRead {
		w.checkWritten(in, p, l, n)
	}
}

// inside tells whether an access is within a region.
func (w *warp) inside(in *inst, p, n uint64) bool {
	r := w.regionAt(p, in)
	if r == 0 || r >= len(w.regs) {
		return false
	}
	rg := &w.regs[r]
	return n <= rg.size && p-rg.origin <= rg.size-n
}

// place is where an address inside a region leads a lane.
func (w *warp) place(in *inst, p uint64, l int) unsafe.Pointer {
	rg := &w.regs[w.regionAt(p, in)]
	return unsafe.Add(rg.base, uintptr(p-rg.origin)+uintptr(l)*rg.stride)
}

func checkedSync(w *warp, in *inst) {
	w.checkConverged(in)
	w.g.chk.sync(w, in.imm)
}

// A site is a place in memory that has a history.
type site struct {
	region int
	off    uint64 // from the start of the region
	slot   int    // the buffer that keeps the history, -1 for threadgroup memory
	at     uint64 // in it
}

// site finds where an access inside a region lies, false if no other thread can meet it there.
func (w *warp) site(in *inst, p uint64) (s site, ok bool) {
	c := w.g.chk
	r := w.regionAt(p, in)
	off := p - w.regs[r].origin
	if r < firstRegion {
		if c.watched>>(r-1)&1 == 0 {
			return s, false
		}
		return site{r, off, int(c.canon[r-1]), off + w.g.d.Buffers[r-1].Offset}, true
	}
	switch w.prog.mem.regions[r-firstRegion].kind {
	case regionShared, regionSharedArg:
		return site{r, off, -1, off + uint64(uintptr(w.regs[r].base)-uintptr(unsafe.Pointer(&w.g.shared[0])))}, true
	}
	return s, false
}

// check compares an access inside a region with the history.
func (w *warp) check(in *inst, p uint64, l int, n uint64, kind checkKind, flags stamp) {
	c := w.g.chk
	s, ok := w.site(in, p)
	if !ok {
		if kind != checkRead {
			for i, init := 0, w.initOf(in, p, l, n); i < len(init); i++ {
				init[i] = 1
			}
		}
		return
	}
	me := party{w: w, space: spaceShared, kind: kind,
		self: stamp(c.tick)<<32 | stamp(in.x.code)<<stampCode | flags | in.x.together | stamp(w.simd*simdWidth+uint32(l))}
	if s.slot < 0 {
		cells := c.sharedCells(s.at, n)
		for i := range cells {
			if other, did := c.visit(&cells[i], &me); other != 0 {
				w.race(in, s, l, n, &me, other, did)
			}
		}
		return
	}
	me.space = spaceDevice
	c.refine(s.slot, s.at, n)
	for at, step := s.at, uint64(1)<<c.buffers[s.slot].shift; at < s.at+n; at += step {
		if other, did := c.visit(c.cell(s.slot, at), &me); other != 0 {
			w.race(in, s, l, n, &me, other, did)
		}
	}
}

// markSame is a write that changes nothing: it cannot be told from none. If a lane of the same simdgroup wrote the value,
// both may read it. It is false if the memory holds what nobody has written yet.
func (w *warp) markSame(in *inst, p uint64, l int, n uint64) bool {
	c := w.g.chk
	s, ok := w.site(in, p)
	if !ok {
		return false
	}
	simd := w.simd
	mark := func(x *cell) {
		if x.w.tick() >= c.begun && x.w.thread()/simdWidth == simd {
			if x.w.thread() != simd*simdWidth+uint32(l) {
				x.w |= stampTogether
			}
		}
	}
	if s.slot < 0 {
		cells := c.sharedCells(s.at, n)
		for i := range cells {
			if !c.written(&cells[i]) {
				return false
			}
		}
		for i := range cells {
			mark(&cells[i])
		}
		return true
	}
	c.refine(s.slot, s.at, n)
	for at, step := s.at, uint64(1)<<c.buffers[s.slot].shift; at < s.at+n; at += step {
		mark(c.cell(s.slot, at))
	}
	return true
}

// checkWritten makes sure that what a lane reads of threadgroup or private memory was written.
func (w *warp) checkWritten(in *inst, p uint64, l int, n uint64) {
	c := w.g.chk
	r := w.regionAt(p, in)
	if r < firstRegion {
		return
	}
	if info := &w.prog.mem.regions[r-firstRegion]; info.kind == regionShared && info.data != nil {
		return
	}
	off := p - w.regs[r].origin
	if s, ok := w.site(in, p); ok {
		cells := c.sharedCells(s.at, n)
		for i := range cells {
			if !c.written(&cells[i]) {
				w.unwritten(in, r, off, l, n)
			}
		}
		return
	}
	for _, b := range w.initOf(in, p, l, n) {
		if b == 0 {
			w.unwritten(in, r, off, l, n)
		}
	}
}

// initOf tells which of a lane's private bytes were written, nil for other memory.
func (w *warp) initOf(in *inst, p uint64, l int, n uint64) []byte {
	r := w.regionAt(p, in)
	if r < firstRegion {
		return nil
	}
	info := &w.prog.mem.regions[r-firstRegion]
	if info.kind != regionPrivate {
		return nil
	}
	at := info.off + p - w.regs[r].origin + uint64(l)*w.prog.mem.laneStride
	return w.init[at : at+n]
}

func (w *warp) unwritten(in *inst, r int, off uint64, l int, n uint64) {
	f := &Fault{Kind: FaultUnwritten, Slot: -1, Offset: off, Size: n}
	w.memoryOf(f, r)
	w.fault(f, in, l)
}

// race reports two accesses in conflict.
func (w *warp) race(in *inst, s site, l int, n uint64, me *party, other stamp, did checkKind) {
	c := w.g.chk
	f := &Fault{Kind: FaultRace, Slot: -1, Offset: s.off, Size: n}
	w.memoryOf(f, s.region)
	group := w.group
	if other.tick() < c.begun {
		f.Kind = FaultGroupRace
		group = w.g.position(c.groupAt(other.tick()))
	}
	size := w.g.sizeOf(group)
	if product(size) > 0 {
		t := other.thread()
		o := [3]uint32{t % size[0], t / size[0] % size[1], t / size[0] / size[1]}
		for i := range o {
			o[i] += group[i] * w.g.d.Threads[i]
		}
		f.Other.Thread = o
	}
	f.Access, f.Other.Access, f.Other.Threadgroup = checkNames[me.kind], checkNames[did], group
	if k := other.code(); k < maxStampCode {
		f.Other.Instruction = describe(w.prog.code[k].x.src)
	}
	w.fault(f, in, l)
}
