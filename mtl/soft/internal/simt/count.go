package simt

import (
	"math/bits"
	"sync"
)

// Counts are what dispatches of a program with counts did (see [Options.Counts] and [Dispatch.Counts]).
type Counts struct {
	mu sync.Mutex
	t  tally
}

// tally is what one worker counts.
type tally struct {
	instructions, lanes uint64
	read, written       [MaxBuffers]uint64
	shared, private     traffic
	barriers            uint64
}

type traffic struct{ read, written uint64 }

// Totals are the sums of [Counts].
type Totals struct {
	// Instructions are those that simdgroups executed, Lanes the lanes that ran, summed over them: 32 per instruction
	// where nothing diverges.
	Instructions, Lanes uint64
	// Barriers are the simdgroups' arrivals at threadgroup barriers.
	Barriers uint64
	// Read and Written are bytes by buffer slot, an atomic being both. What all lanes read from one address that is
	// known to be uniform counts once.
	Read, Written [MaxBuffers]uint64
	// The same for threadgroup memory and private variables.
	ThreadgroupRead, ThreadgroupWritten uint64
	PrivateRead, PrivateWritten         uint64
}

// Totals are the sums so far.
func (c *Counts) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.t
	return Totals{Instructions: t.instructions, Lanes: t.lanes, Barriers: t.barriers, Read: t.read, Written: t.written,
		ThreadgroupRead: t.shared.read, ThreadgroupWritten: t.shared.written, PrivateRead: t.private.read, PrivateWritten: t.private.written}
}

// give adds what a worker counted, and starts it anew.
func (t *tally) give(c *Counts) {
	if c != nil {
		c.mu.Lock()
		s := &c.t
		s.instructions += t.instructions
		s.lanes += t.lanes
		s.barriers += t.barriers
		for i := range t.read {
			s.read[i] += t.read[i]
			s.written[i] += t.written[i]
		}
		s.shared.read += t.shared.read
		s.shared.written += t.shared.written
		s.private.read += t.private.read
		s.private.written += t.private.written
		c.mu.Unlock()
	}
	*t = tally{}
}

// countedForms wraps an instruction that moves data or waits. The others are counted by block, at its end.
func (e *emitter) countedForms(v *val, in *inst) {
	x := in.x
	x.counted = in.fn
	x.uniAddr = v.op != opAtomic && len(v.args) > 0 && v.args[0].uni
	switch v.op {
	case opLoad:
		in.fn = countedLoad
	case opStore:
		in.fn = countedStore
	case opAtomic:
		in.fn = countedAtomic
	case opMem:
		in.fn = countedMem
	case opBarrier:
		in.fn = countedBarrier
	}
}

// countedEnd is the end of a block.
func countedEnd(w *warp, in *inst) {
	t, n := &w.g.counts, uint64(in.x.cost)
	t.instructions += n
	t.lanes += n * uint64(bits.OnesCount32(w.mask))
	in.x.counted(w, in)
}

func countedBarrier(w *warp, in *inst) {
	w.g.counts.barriers++
	in.x.counted(w, in)
}

// move counts bytes moved to or from the memory that an address leads to.
func (w *warp) move(in *inst, p, n uint64, reads, writes bool) {
	t := &w.g.counts
	r := w.regionAt(p, in)
	var to traffic
	if reads {
		to.read = n
	}
	if writes {
		to.written = n
	}
	switch {
	case r <= 0 || r >= len(w.regs): // a fault to come
	case r < firstRegion:
		t.read[r-1] += to.read
		t.written[r-1] += to.written
	default:
		switch w.prog.mem.regions[r-firstRegion].kind {
		case regionShared, regionSharedArg:
			t.shared.read += to.read
			t.shared.written += to.written
		case regionPrivate:
			t.private.read += to.read
			t.private.written += to.written
		}
	}
}

// moveLanes counts a load or store of every running lane.
func (w *warp) moveLanes(in *inst, once, reads, writes bool) {
	x := in.x
	size := x.size * uint64(x.n)
	lanes := uint64(bits.OnesCount32(w.mask))
	if x.uniAddr {
		if once {
			lanes = 1
		}
		w.move(in, w.one64(in.a)+in.imm, size*lanes, reads, writes)
		return
	}
	a := w.u64(in.a)
	if x.region > 0 {
		w.move(in, a[w.firstLane()]+in.imm, size*lanes, reads, writes)
		return
	}
	for m := w.mask; m != 0; m &= m - 1 {
		w.move(in, a[bits.TrailingZeros32(m)&31]+in.imm, size, reads, writes)
	}
}

func countedLoad(w *warp, in *inst) {
	w.moveLanes(in, in.x.dstUni, true, false)
	in.x.counted(w, in)
}

func countedStore(w *warp, in *inst) {
	w.moveLanes(in, false, false, true)
	in.x.counted(w, in)
}

func countedAtomic(w *warp, in *inst) {
	x := in.x
	for m := w.mask; m != 0; m &= m - 1 {
		w.move(in, w.get(x.args[0], bits.TrailingZeros32(m)&31)+in.imm, x.size, x.sub != atomStore, x.sub != atomLoad)
	}
	x.counted(w, in)
}

func countedMem(w *warp, in *inst) {
	x := in.x
	switch {
	case len(x.args) > 3: // a tile: see execTileCopy
		l := w.firstLane()
		arg := func(i int) uint64 { return w.get(x.args[i], l) }
		if n := arg(0) * arg(3) * arg(4); n > 0 {
			w.move(in, arg(1), n, false, true)
			w.move(in, arg(5), min(n, arg(0)*arg(7)*arg(8)), true, false)
		}
	default:
		for m := w.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			n := w.get(x.args[2], l)
			w.move(in, w.get(x.args[0], l), n, false, true)
			if x.sub != memSet {
				w.move(in, w.get(x.args[1], l), n, true, false)
			}
		}
	}
	x.counted(w, in)
}
