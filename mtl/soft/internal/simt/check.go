package simt

import (
	"sort"
	"sync"
)

// The checking mode (Options.Checks) keeps a history of every byte that threads share and compares each access with it.
//
// Time is a counter of barriers: a threadgroup barrier, a simdgroup barrier and the start of a threadgroup begin a new
// tick. Two accesses to a byte by different threads are a race if one of them writes, not both are atomic, and no barrier
// whose flags name the memory lies between them: a threadgroup barrier, or a simdgroup barrier for threads of one
// simdgroup. A barrier with other flags, or none, still waits for what was read before it, so it orders a read before a
// write. Threadgroups of a dispatch are ordered by nothing.
//
// Metal promises nothing about threads of a simdgroup without a simdgroup barrier between them, but much that is shipped
// counts on their running in lock step (Apple's compiler and GPUs keep it up). So accesses by one simdgroup in different
// instructions are in order, unless Options.NoLockStep asks for the strict reading; threads that write different values
// to a byte in one instruction always race.
//
// A checked dispatch runs on one goroutine, so that what is found, and where, is the same each time.
//
// What is left out on purpose, since kernels that work everywhere do it: a write that leaves the bytes as they are (several
// threads that store the same value) is no race; what all lanes store at once may be read by each of them; loads and
// stores of simdgroup matrices are made by the simdgroup as a whole, in order with what its threads do; kernels with a
// fence may pass data from threadgroup to threadgroup, which is not followed. Loads that only move a value on, such as the
// load of a vector to set one element, may read what was never written.

// checkSpace is a kind of memory that barriers name.
type checkSpace uint8

const (
	spaceDevice checkSpace = iota
	spaceShared
	checkSpaces
)

// The flags of barriers, as Metal numbers them.
const (
	flagDevice = 1
	flagShared = 2
)

type checkKind uint8

const (
	checkRead checkKind = iota
	checkWrite
	checkAtomic
)

var checkNames = [...]string{checkRead: "read", checkWrite: "wrote", checkAtomic: "changed atomically"}

// A stamp is an access: the tick in the upper 32 bits, then 20 bits of the instruction's number, whether all running
// lanes made it together, and the thread's index in its threadgroup. Zero is none.
type stamp uint64

const (
	stampThread   = MaxThreads - 1
	stampTogether = 1 << 11
	stampCode     = 12
	maxStampCode  = 1<<20 - 1
)

func (s stamp) tick() uint32   { return uint32(s >> 32) }
func (s stamp) thread() uint32 { return uint32(s) & stampThread }
func (s stamp) code() int      { return int(uint32(s) >> stampCode) }

// A cell is the history of a few bytes: the last write, and two readers and two threads with atomics, chosen so that
// whoever conflicts with any conflicts with one of them.
type cell struct {
	w, r1, r2, a1, a2 stamp
}

const (
	pageCells = 1024
	// maxPages bounds the history of device memory at 40 MiB. Beyond it the oldest is forgotten.
	maxPages = 1024
	// tickLimit is when the history is dropped and time starts anew.
	tickLimit = 1<<32 - 1<<20
	// A cell is four bytes (1<<coarsest) until something smaller is accessed.
	coarsest = 2
)

type cellPage [pageCells]cell

// A shadow is the history of one buffer.
type shadow struct {
	shift uint8
	pages []*cellPage
}

type pagePlace struct {
	slot  int
	index int
}

// A checker is the state of the checking mode for one dispatch. Its memory is used again by later ones.
type checker struct {
	g     *group
	tick  uint32
	first uint32 // when the dispatch began
	begun uint32 // when the threadgroup began
	since [checkSpaces]uint32
	waits uint32 // the last barrier, whatever its flags
	// starts are the ticks at which the threadgroups of the dispatch began, in the order in which they ran.
	starts []uint32

	canon   [MaxBuffers]uint8 // slots that share memory keep its history at one of them
	watched uint32            // slots whose memory the kernel may write through some slot
	aliased bool              // a slot is watched that the kernel does not write through
	buffers [MaxBuffers]shadow

	shared      []cell
	sharedShift uint8

	free []*cellPage
	live []pagePlace // a ring of the pages in use once there are maxPages
	next int

	order order
	turn  []*warp
}

var checkers = sync.Pool{New: func() any { return &checker{tick: 1} }}

// newChecker takes a checker for the dispatch of g.
func newChecker(g *group) *checker {
	c := checkers.Get().(*checker)
	c.g = g
	c.advance()
	c.first = c.tick
	c.starts = c.starts[:0]
	c.sharedShift = coarsest
	if need := len(g.shared) + 1<<coarsest; len(c.shared) < need {
		c.shared = make([]cell, need)
	}
	p, d := g.prog, g.d
	c.watched, c.aliased = 0, false
	for i := range c.canon {
		c.canon[i] = uint8(i)
		if p.usesBuffer>>i&1 != 0 && d.Buffers[i].Mem != nil {
			c.canon[i] = uint8(sameMemory(d, p.usesBuffer, i))
		}
	}
	for i := range c.canon {
		for k := range c.canon {
			if p.writes>>i&1 != 0 && c.canon[i] == c.canon[k] {
				c.watched |= 1 << k
			}
		}
	}
	c.aliased = c.watched&p.usesBuffer&^p.writes != 0
	for i := range c.buffers {
		s := &c.buffers[i]
		s.shift = coarsest
		if c.watched>>i&1 != 0 && int(c.canon[i]) == i {
			n := (len(d.Buffers[i].Mem) + pageCells - 1) / pageCells // enough for cells of one byte
			if cap(s.pages) < n {
				s.pages = make([]*cellPage, n)
			}
			s.pages = s.pages[:n]
		}
	}
	c.order = newOrder(d.Order, d.Seed, groupsOf(d))
	return c
}

func groupsOf(d *Dispatch) uint64 {
	return uint64(d.Groups[0]) * uint64(d.Groups[1]) * uint64(d.Groups[2])
}

// release keeps the memory for another dispatch.
func (c *checker) release() {
	for _, p := range c.live {
		s := &c.buffers[p.slot]
		c.free = append(c.free, s.pages[p.index])
		s.pages[p.index] = nil
	}
	c.live, c.next, c.g = c.live[:0], 0, nil
	clear(c.turn)
	c.turn = c.turn[:0]
	checkers.Put(c)
}

// advance begins a new tick.
func (c *checker) advance() {
	if c.tick++; c.tick < tickLimit {
		return
	}
	// Time starts anew, with nothing known.
	clear(c.shared)
	for _, p := range c.free {
		*p = cellPage{}
	}
	for _, p := range c.live {
		*c.buffers[p.slot].pages[p.index] = cellPage{}
	}
	c.tick, c.first, c.begun = 2, 1, 1
	c.since, c.waits = [checkSpaces]uint32{1, 1}, 1
	clear(c.starts)
	for _, w := range c.g.warps {
		w.since, w.waits = [checkSpaces]uint32{1, 1}, 1
	}
}

// begin starts a threadgroup.
func (c *checker) begin() {
	c.advance()
	c.begun, c.waits = c.tick, c.tick
	c.since = [checkSpaces]uint32{c.tick, c.tick}
	c.starts = append(c.starts, c.tick)
}

// barrier is a threadgroup barrier that all simdgroups have reached.
func (c *checker) barrier(flags uint64) {
	c.advance()
	c.waits = c.tick
	if flags&flagDevice != 0 {
		c.since[spaceDevice] = c.tick
	}
	if flags&flagShared != 0 {
		c.since[spaceShared] = c.tick
	}
}

// step begins an instruction: in lock step, what the simdgroup did before is done.
func (c *checker) step(w *warp) {
	if c.g.prog.noLockStep {
		return
	}
	c.advance()
	w.since, w.waits = [checkSpaces]uint32{c.tick, c.tick}, c.tick
}

// sync is a simdgroup barrier.
func (c *checker) sync(w *warp, flags uint64) {
	c.advance()
	w.waits = c.tick
	if flags&flagDevice != 0 {
		w.since[spaceDevice] = c.tick
	}
	if flags&flagShared != 0 {
		w.since[spaceShared] = c.tick
	}
}

// A party is the access under way.
type party struct {
	w     *warp
	space checkSpace
	self  stamp
	kind  checkKind
}

// clashes tells whether an earlier access is by another thread and nothing orders it before this one.
func (c *checker) clashes(s stamp, did checkKind, p *party) bool {
	t := s.tick()
	since, own := c.since[p.space], p.w.since[p.space]
	if did == checkRead {
		since, own = c.waits, p.w.waits
	}
	if t < since {
		// Before the last barrier, or by another threadgroup of the dispatch.
		return t < c.begun && p.space == spaceDevice && t >= c.first && !c.g.prog.fenced
	}
	a, b := s.thread(), p.self.thread()
	if a == b {
		return false
	}
	if a/simdWidth == b/simdWidth {
		return t >= own && (s|p.self)&stampTogether == 0
	}
	return true
}

// visit compares an access with the history of a cell, gives the access that it conflicts with (0 if none), and becomes
// part of the history.
func (c *checker) visit(x *cell, p *party) (other stamp, did checkKind) {
	if p.kind != checkAtomic {
		if c.clashes(x.a1, checkAtomic, p) {
			return x.a1, checkAtomic
		}
		if c.clashes(x.a2, checkAtomic, p) {
			return x.a2, checkAtomic
		}
	}
	if c.clashes(x.w, checkWrite, p) {
		return x.w, checkWrite
	}
	if p.kind != checkRead {
		if c.clashes(x.r1, checkRead, p) {
			return x.r1, checkRead
		}
		if c.clashes(x.r2, checkRead, p) {
			return x.r2, checkRead
		}
	}
	switch p.kind {
	case checkRead:
		c.place(&x.r1, &x.r2, p)
	case checkAtomic:
		c.place(&x.a1, &x.a2, p)
	default:
		x.w = p.self
	}
	return 0, 0
}

// place puts an access in one of two places so that what conflicts with any access so far conflicts with one of the two:
// they are kept from different threadgroups, else simdgroups, else threads.
func (c *checker) place(s1, s2 *stamp, p *party) {
	a, b := *s1, *s2
	first := c.first
	if p.space == spaceShared {
		first = c.begun
	}
	same := func(s stamp) bool { return s.tick() >= c.begun && s.thread() == p.self.thread() }
	switch simd := p.self.thread() / simdWidth; {
	case a.tick() < first || same(a):
		*s1 = p.self
	case b.tick() < first || same(b):
		*s2 = p.self
	case b.tick() < c.begun:
		*s2 = p.self
	case a.tick() < c.begun:
		*s2 = p.self
	case a.tick() < c.since[p.space]:
		*s1 = p.self
	case b.tick() < c.since[p.space]:
		*s2 = p.self
	case a.thread()/simdWidth == b.thread()/simdWidth:
		if a.tick() < b.tick() {
			*s1 = p.self
		} else {
			*s2 = p.self
		}
	case a.thread()/simdWidth == simd:
		*s1 = p.self
	default:
		*s2 = p.self
	}
}

// written tells whether threadgroup memory has been written since the threadgroup began.
func (c *checker) written(x *cell) bool {
	return x.w.tick() >= c.begun || x.a1.tick() >= c.begun || x.a2.tick() >= c.begun
}

// sharedCells are the cells of n bytes of threadgroup memory.
func (c *checker) sharedCells(off, n uint64) []cell {
	for c.sharedShift > 0 && (off|n)&(1<<c.sharedShift-1) != 0 {
		// Something smaller than a cell is accessed: make them smaller.
		for i := len(c.g.shared) >> c.sharedShift; i >= 0; i-- {
			if k := 2 * i; k < len(c.shared) {
				c.shared[k] = c.shared[i]
				if k+1 < len(c.shared) {
					c.shared[k+1] = c.shared[i]
				}
			}
		}
		c.sharedShift--
	}
	return c.shared[off>>c.sharedShift : (off+n)>>c.sharedShift]
}

// cell is the history of the bytes at off of a buffer; the shift must suit the access.
func (c *checker) cell(slot int, off uint64) *cell {
	s := &c.buffers[slot]
	i := off >> s.shift
	p := s.pages[i/pageCells]
	if p == nil {
		p = c.page(slot, int(i/pageCells))
	}
	return &p[i%pageCells]
}

// page makes a page of history, or takes the oldest.
func (c *checker) page(slot, index int) (p *cellPage) {
	at := pagePlace{slot, index}
	switch n := len(c.free); {
	case len(c.live) >= maxPages:
		old := &c.live[c.next]
		p = c.buffers[old.slot].pages[old.index]
		c.buffers[old.slot].pages[old.index] = nil
		*p = cellPage{}
		*old = at
		c.next = (c.next + 1) % maxPages
	case n > 0:
		p, c.free = c.free[n-1], c.free[:n-1]
		c.live = append(c.live, at)
	default:
		p = new(cellPage)
		c.live = append(c.live, at)
	}
	c.buffers[slot].pages[index] = p
	return p
}

// refine makes the cells of a buffer small enough for an access.
func (c *checker) refine(slot int, off, n uint64) {
	s := &c.buffers[slot]
	for s.shift > 0 && (off|n)&(1<<s.shift-1) != 0 {
		old := append([]*cellPage(nil), s.pages...)
		clear(s.pages)
		kept := c.live[:0]
		for _, p := range c.live {
			if p.slot != slot {
				kept = append(kept, p)
			}
		}
		c.live, c.next = kept, 0
		s.shift--
		for i, p := range old {
			if p == nil {
				continue
			}
			for k := range p {
				if p[k] == (cell{}) || p[k].newest() < c.first {
					continue
				}
				at := (uint64(i)*pageCells + uint64(k)) << (s.shift + 1)
				*c.cell(slot, at), *c.cell(slot, at+1<<s.shift) = p[k], p[k]
			}
			*p = cellPage{}
			c.free = append(c.free, p)
		}
	}
}

func (x *cell) newest() uint32 { return max(x.w, x.r1, x.r2, x.a1, x.a2).tick() }

// groupAt is the number of the threadgroup that ran at a tick.
func (c *checker) groupAt(t uint32) uint64 {
	i := sort.Search(len(c.starts), func(i int) bool { return c.starts[i] > t })
	return c.order.at(uint64(max(0, i-1)))
}

// arrange is an order for simdgroups until the next barrier.
func (c *checker) arrange(warps []*warp) []*warp {
	if c.order.kind == InOrder {
		return warps
	}
	c.turn = c.turn[:0]
	for i := range warps {
		c.turn = append(c.turn, warps[c.simdAt(uint32(i), uint32(len(warps)), c.tick)])
	}
	return c.turn
}

// simdAt is the simdgroup that runs as number i of n; turn makes it another random order.
func (c *checker) simdAt(i, n, turn uint32) uint32 {
	o := newOrder(c.order.kind, c.order.seed+uint64(turn-c.first), uint64(n))
	return uint32(o.at(uint64(i)))
}
