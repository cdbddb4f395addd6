package simt

import (
	"math/bits"
	"unsafe"
)

// resolve checks an access of any kind and gives its place in memory.
func (w *warp) resolve(p uint64, lane int, size, amask uint64, write bool, in *inst) unsafe.Pointer {
	r := w.regionAt(p, in)
	if r != 0 && r < len(w.regs) {
		rg := &w.regs[r]
		off := p - rg.origin
		if size <= rg.size && off <= rg.size-size && p&amask == 0 && !(write && w.readOnly(r)) {
			if w.access != nil && r < firstRegion {
				w.note(r, off, size, write)
			}
			return unsafe.Add(rg.base, uintptr(off)+uintptr(lane)*rg.stride)
		}
	}
	w.accessFault(p, lane, size, amask+1, write, in)
	return nil
}

// regionAt is the region that p leads to. Where bindings share memory, the pointer says which memory, the instruction which
// binding.
func (w *warp) regionAt(p uint64, in *inst) int {
	r := regionOf(p)
	if h := in.x.region; h > 0 && h < firstRegion && regionOf(w.regs[h].origin) == r {
		return h
	}
	return r
}

func (w *warp) readOnly(r int) bool {
	return r >= firstRegion && w.prog.mem.regions[r-firstRegion].kind == regionConst && w.prog.mem.frozen
}

// peek and poke move one element.
func peek(p unsafe.Pointer, size uint64) uint64 {
	switch size {
	case 1:
		return uint64(get8(p))
	case 2:
		return uint64(get16(p))
	case 4:
		return uint64(get32(p))
	}
	return get64(p)
}

func poke(p unsafe.Pointer, size, v uint64) {
	switch size {
	case 1:
		put8(p, uint32(v))
	case 2:
		put16(p, uint32(v))
	case 4:
		put32(p, uint32(v))
	default:
		put64(p, v)
	}
}

// execLoad is a load of any shape from a different address in every lane.
func execLoad(w *warp, in *inst) {
	a := w.u64(in.a)
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		w.loadLane(in, a[l]+in.imm, l)
	}
}

func (w *warp) loadLane(in *inst, p uint64, l int) {
	x := in.x
	q := w.resolve(p, l, x.size*uint64(x.n), x.amask, false, in)
	for k := range x.dst {
		w.put(in, k, l, peek(unsafe.Add(q, uint64(k)*x.size), x.size))
	}
}

// execLoadUni is a load from one address by all lanes, of memory that is the same for them.
func execLoadUni(w *warp, in *inst) {
	w.loadLane(in, w.one64(in.a)+in.imm, w.firstLane())
}

// execLoadUniLanes is a load from one pointer that leads every lane to memory of its own.
func execLoadUniLanes(w *warp, in *inst) {
	p := w.one64(in.a) + in.imm
	for m := w.mask; m != 0; m &= m - 1 {
		w.loadLane(in, p, bits.TrailingZeros32(m)&31)
	}
}

// A span is the checked form of a region for accesses of one size.
type span struct {
	base   unsafe.Pointer
	adj    uint64 // added to an address it gives the offset in the region
	lim    uint64 // the last offset where an access fits
	stride uintptr
	ok     bool
}

func (w *warp) span(x *xinst, size uint64) span {
	rg := &w.regs[x.region]
	if rg.size < size || w.access != nil {
		return span{}
	}
	return span{rg.base, -rg.origin, rg.size - size, rg.stride, true}
}

// execLoadPart is execLoad with the region known, for when not all lanes run.
func execLoadPart(w *warp, in *inst) {
	x := in.x
	s := w.span(x, x.size*uint64(x.n))
	if !s.ok {
		execLoad(w, in)
		return
	}
	a := w.u64(in.a)
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.loadLane(in, p, l)
			continue
		}
		q := unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride)
		switch x.size {
		case 4:
			for k, d := range x.dst {
				w.u32(d)[l] = get32(unsafe.Add(q, 4*k))
			}
		case 2:
			for k, d := range x.dst {
				w.u32(d)[l] = get16(unsafe.Add(q, 2*k))
			}
		default:
			for k, d := range x.dst {
				w.u32(d)[l] = get8(unsafe.Add(q, k))
			}
		}
	}
}

// The loads below are execLoad for common shapes, with the region known and all lanes running. Whatever is out of the
// ordinary goes to execLoad, which is right for everything.

func execLoad32(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 4)
	if w.mask != allLanes || !s.ok {
		execLoadPart(w, in)
		return
	}
	a, d := w.u64(in.a), w.u32(x.dst[0])
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.loadLane(in, p, l)
			continue
		}
		d[l] = get32(unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride))
	}
}

func execLoad16(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 2)
	if w.mask != allLanes || !s.ok {
		execLoadPart(w, in)
		return
	}
	a, d := w.u64(in.a), w.u32(x.dst[0])
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.loadLane(in, p, l)
			continue
		}
		d[l] = get16(unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride))
	}
}

func execLoad8(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 1)
	if w.mask != allLanes || !s.ok {
		execLoadPart(w, in)
		return
	}
	a, d := w.u64(in.a), w.u32(x.dst[0])
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim {
			w.loadLane(in, p, l)
			continue
		}
		d[l] = get8(unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride))
	}
}

func execLoad32x2(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 8)
	if w.mask != allLanes || !s.ok {
		execLoadPart(w, in)
		return
	}
	a, d0, d1 := w.u64(in.a), w.u32(x.dst[0]), w.u32(x.dst[1])
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.loadLane(in, p, l)
			continue
		}
		v := get64(unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride))
		d0[l], d1[l] = uint32(v), uint32(v>>32)
	}
}

func execLoad32x4(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 16)
	if w.mask != allLanes || !s.ok {
		execLoadPart(w, in)
		return
	}
	a := w.u64(in.a)
	d0, d1, d2, d3 := w.u32(x.dst[0]), w.u32(x.dst[1]), w.u32(x.dst[2]), w.u32(x.dst[3])
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.loadLane(in, p, l)
			continue
		}
		q := unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride)
		v, u := get64(q), get64(unsafe.Add(q, 8))
		d0[l], d1[l], d2[l], d3[l] = uint32(v), uint32(v>>32), uint32(u), uint32(u>>32)
	}
}

func execLoad16x2(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 4)
	if w.mask != allLanes || !s.ok {
		execLoadPart(w, in)
		return
	}
	a, d0, d1 := w.u64(in.a), w.u32(x.dst[0]), w.u32(x.dst[1])
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.loadLane(in, p, l)
			continue
		}
		v := get32(unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride))
		d0[l], d1[l] = v&0xffff, v>>16
	}
}

func execLoad16x4(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 8)
	if w.mask != allLanes || !s.ok {
		execLoadPart(w, in)
		return
	}
	a := w.u64(in.a)
	d0, d1, d2, d3 := w.u32(x.dst[0]), w.u32(x.dst[1]), w.u32(x.dst[2]), w.u32(x.dst[3])
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.loadLane(in, p, l)
			continue
		}
		v := get64(unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride))
		d0[l], d1[l], d2[l], d3[l] = uint32(v&0xffff), uint32(v>>16&0xffff), uint32(v>>32&0xffff), uint32(v>>48)
	}
}

// loadForm chooses the function for a load.
func loadForm(x *xinst, uniAddr, lanesOwn bool) func(*warp, *inst) {
	if uniAddr {
		if lanesOwn {
			return execLoadUniLanes
		}
		return execLoadUni
	}
	if x.region == 0 {
		return execLoad
	}
	for _, d := range x.dst {
		if d == noReg {
			return execLoad
		}
	}
	switch x.size<<8 | uint64(x.n) {
	case 0x401:
		return execLoad32
	case 0x402:
		return execLoad32x2
	case 0x404:
		return execLoad32x4
	case 0x201:
		return execLoad16
	case 0x202:
		return execLoad16x2
	case 0x204:
		return execLoad16x4
	case 0x101:
		return execLoad8
	}
	if x.size < 8 {
		return execLoadPart
	}
	return execLoad
}

func (w *warp) storeLane(in *inst, p uint64, l int) {
	x := in.x
	q := w.resolve(p, l, x.size*uint64(x.n), x.amask, true, in)
	for k, o := range x.args {
		poke(unsafe.Add(q, uint64(k)*x.size), x.size, w.get(o, l))
	}
}

// execStore is a store of any shape.
func execStore(w *warp, in *inst) {
	a := w.u64(in.a)
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		w.storeLane(in, a[l]+in.imm, l)
	}
}

// execStoreUni stores through one pointer: each lane in turn, since the values or the memory differ by lane.
func execStoreUni(w *warp, in *inst) {
	p := w.one64(in.a) + in.imm
	for m := w.mask; m != 0; m &= m - 1 {
		w.storeLane(in, p, bits.TrailingZeros32(m)&31)
	}
}

// execStoreOnce stores the same value to the same place: once is enough.
func execStoreOnce(w *warp, in *inst) {
	w.storeLane(in, w.one64(in.a)+in.imm, w.firstLane())
}

func execStore32(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 4)
	if w.mask != allLanes || !s.ok {
		execStore(w, in)
		return
	}
	a, v := w.u64(in.a), w.u32(x.args[0].reg)
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.storeLane(in, p, l)
			continue
		}
		put32(unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride), v[l])
	}
}

func execStore16(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 2)
	if w.mask != allLanes || !s.ok {
		execStore(w, in)
		return
	}
	a, v := w.u64(in.a), w.u32(x.args[0].reg)
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.storeLane(in, p, l)
			continue
		}
		put16(unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride), v[l])
	}
}

func execStore32x4(w *warp, in *inst) {
	x := in.x
	s := w.span(x, 16)
	if w.mask != allLanes || !s.ok {
		execStore(w, in)
		return
	}
	a := w.u64(in.a)
	v0, v1, v2, v3 := w.u32(x.args[0].reg), w.u32(x.args[1].reg), w.u32(x.args[2].reg), w.u32(x.args[3].reg)
	for l := range a {
		p := a[l] + in.imm
		off := p + s.adj
		if off > s.lim || p&x.amask != 0 {
			w.storeLane(in, p, l)
			continue
		}
		q := unsafe.Add(s.base, uintptr(off)+uintptr(l)*s.stride)
		put32(q, v0[l])
		put32(unsafe.Add(q, 4), v1[l])
		put32(unsafe.Add(q, 8), v2[l])
		put32(unsafe.Add(q, 12), v3[l])
	}
}

func storeForm(x *xinst, uniAddr, lanesOwn, readOnly bool) func(*warp, *inst) {
	allUni := true
	anyUni := false
	for _, o := range x.args {
		allUni = allUni && o.uni
		anyUni = anyUni || o.uni
	}
	if uniAddr {
		if allUni && !lanesOwn {
			return execStoreOnce
		}
		return execStoreUni
	}
	if x.region == 0 || readOnly || anyUni {
		return execStore
	}
	switch x.size<<8 | uint64(x.n) {
	case 0x401:
		return execStore32
	case 0x404:
		return execStore32x4
	case 0x201:
		return execStore16
	}
	return execStore
}

// execCopy is memcpy and memmove: arguments are destination, source and length.
func execCopy(w *warp, in *inst) {
	x := in.x
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		n := w.get(x.args[2], l)
		if n == 0 {
			continue
		}
		src := w.resolve(w.get(x.args[1], l), l, n, 0, false, in)
		dst := w.resolve(w.get(x.args[0], l), l, n, 0, true, in)
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
	}
}

// execSet is memset: destination, byte, length.
func execSet(w *warp, in *inst) {
	x := in.x
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		n := w.get(x.args[2], l)
		if n == 0 {
			continue
		}
		dst := unsafe.Slice((*byte)(w.resolve(w.get(x.args[0], l), l, n, 0, true, in)), n)
		v := byte(w.get(x.args[1], l))
		for i := range dst {
			dst[i] = v
		}
	}
}
