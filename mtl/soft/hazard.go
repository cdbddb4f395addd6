package soft

import (
	"math/bits"
	"sync/atomic"
)

// Hazards between dispatches that no barrier separates are found exactly, by the byte: whenever two such dispatches bind
// the same storage and one of them could write it, every access that either makes through that slot is noted in a trace
// while it runs, and the traces are compared. Dispatches that cannot meet are not traced and cost nothing.

// An access is what a kernel does to memory.
type access uint8

const (
	reads access = iota
	writes
	atomics
	accessKinds
)

// A page has one bit for each of 64 KiB.
const (
	pageBits = 16
	pageLen  = 1 << pageBits / 64
)

type page [pageLen]uint64

// A byteSet is a set of bytes of one storage, by pages that exist where a byte is in the set. Several threads may note
// at a time.
type byteSet struct {
	pages []atomic.Pointer[page]
}

// grow makes room for a storage of n bytes. It must not run beside note.
func (s *byteSet) grow(n uint64) {
	want := int((n + 1<<pageBits - 1) >> pageBits)
	if cap(s.pages) >= want {
		s.pages = s.pages[:want]
		return
	}
	s.pages = make([]atomic.Pointer[page], want)
}

// note adds size bytes from off on.
func (s *byteSet) note(off, size uint64, pool *pagePool) {
	for size > 0 {
		p := s.page(off>>pageBits, pool)
		if p == nil {
			return
		}
		bit := off & 63
		n := min(size, 64-bit)
		mask := ^uint64(0) >> (64 - n) << bit
		word := &p[off&(1<<pageBits-1)>>6]
		if atomic.LoadUint64(word)&mask != mask {
			atomic.OrUint64(word, mask)
		}
		off += n
		size -= n
	}
}

func (s *byteSet) page(i uint64, pool *pagePool) *page {
	if i >= uint64(len(s.pages)) {
		return nil
	}
	if p := s.pages[i].Load(); p != nil {
		return p
	}
	fresh := pool.get()
	if s.pages[i].CompareAndSwap(nil, fresh) {
		return fresh
	}
	pool.put(fresh)
	return s.pages[i].Load()
}

// meets finds the first run of bytes that both sets have.
func (s *byteSet) meets(t *byteSet) (from, to uint64, ok bool) {
	for i := range min(len(s.pages), len(t.pages)) {
		p, q := s.pages[i].Load(), t.pages[i].Load()
		if p == nil || q == nil {
			continue
		}
		for w := range p {
			both := p[w] & q[w]
			if both == 0 {
				continue
			}
			from = uint64(i)<<pageBits + uint64(w)<<6 + uint64(bits.TrailingZeros64(both))
			return from, runEnd(s, t, from), true
		}
	}
	return 0, 0, false
}

// runEnd is where the common run of bytes that starts at from ends.
func runEnd(s, t *byteSet, from uint64) uint64 {
	for at := from; ; at++ {
		i := at >> pageBits
		if i >= uint64(min(len(s.pages), len(t.pages))) {
			return at
		}
		p, q := s.pages[i].Load(), t.pages[i].Load()
		if p == nil || q == nil || p[at&(1<<pageBits-1)>>6]&q[at&(1<<pageBits-1)>>6]>>(at&63)&1 == 0 {
			return at
		}
	}
}

// join adds all bytes of t.
func (s *byteSet) join(t *byteSet, pool *pagePool) {
	for i := range t.pages {
		q := t.pages[i].Load()
		if q == nil {
			continue
		}
		p := s.page(uint64(i), pool)
		if p == nil {
			return
		}
		for w := range q {
			p[w] |= q[w]
		}
	}
}

// clear empties the set.
func (s *byteSet) clear(pool *pagePool) {
	for i := range s.pages {
		if p := s.pages[i].Swap(nil); p != nil {
			pool.put(p)
		}
	}
	s.pages = s.pages[:0]
}

// A pagePool keeps pages for the next trace. Pages are taken by many threads.
type pagePool struct {
	free chan *page
}

func newPagePool() *pagePool { return &pagePool{free: make(chan *page, 256)} }

func (p *pagePool) get() *page {
	select {
	case pg := <-p.free:
		return pg
	default:
		return new(page)
	}
}

func (p *pagePool) put(pg *page) {
	*pg = page{}
	select {
	case p.free <- pg:
	default:
	}
}

// A trace is what one dispatch did to one storage through one slot.
type trace struct {
	storage  *storage
	dispatch int // which dispatch of the window
	slot     int
	sets     [accessKinds]byteSet
}

func (t *trace) note(off, size uint64, what access, pool *pagePool) {
	t.sets[what].note(off, size, pool)
}

func (t *trace) clear(pool *pagePool) {
	for i := range t.sets {
		t.sets[i].clear(pool)
	}
	t.storage = nil
}

// clashes lists which pairs of accesses by two dispatches are hazards. Two atomics are none.
var clashes = [...][2]access{
	{writes, writes}, {reads, writes}, {writes, reads}, {atomics, writes}, {writes, atomics}, {reads, atomics}, {atomics, reads},
}

// A clash is a hazard that was found.
type clash struct {
	earlier, later *trace
	did, does      access
	from, to       uint64
}

// meets finds a hazard between what two traces did.
func (t *trace) meets(earlier *trace) (clash, bool) {
	for _, pair := range clashes {
		if from, to, ok := t.sets[pair[1]].meets(&earlier.sets[pair[0]]); ok {
			return clash{earlier, t, pair[0], pair[1], from, to}, true
		}
	}
	return clash{}, false
}

// A window keeps the traces of the dispatches since the last barrier.
type window struct {
	pool   *pagePool
	traces []*trace // of dispatches that ran
	unions []*trace // what they did together, one per storage
	spare  []*trace
}

// open makes a trace for a dispatch that is about to run.
func (w *window) open(s *storage, dispatch, slot int) *trace {
	var t *trace
	if n := len(w.spare); n > 0 {
		t, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		t = new(trace)
	}
	t.storage, t.dispatch, t.slot = s, dispatch, slot
	for i := range t.sets {
		t.sets[i].grow(uint64(len(s.mem)))
	}
	return t
}

func (w *window) drop(t *trace) {
	t.clear(w.pool)
	w.spare = append(w.spare, t)
}

// close takes the traces of a dispatch that ran and compares them with those before it.
func (w *window) close(fresh []*trace) (clash, bool) {
	for _, t := range fresh {
		u := w.union(t.storage)
		if u == nil {
			continue
		}
		if _, hit := t.meets(u); !hit {
			continue
		}
		for _, e := range w.traces {
			if e.storage == t.storage {
				if c, hit := t.meets(e); hit {
					return c, true
				}
			}
		}
	}
	for _, t := range fresh {
		u := w.union(t.storage)
		if u == nil {
			u = w.open(t.storage, 0, 0)
			w.unions = append(w.unions, u)
		}
		for i := range u.sets {
			u.sets[i].join(&t.sets[i], w.pool)
		}
		w.traces = append(w.traces, t)
	}
	return clash{}, false
}

func (w *window) union(s *storage) *trace {
	for _, u := range w.unions {
		if u.storage == s {
			return u
		}
	}
	return nil
}

// barrier forgets what was done to a storage.
func (w *window) barrier(s *storage) {
	w.traces = w.keep(w.traces, s)
	w.unions = w.keep(w.unions, s)
}

func (w *window) keep(list []*trace, s *storage) []*trace {
	kept := list[:0]
	for _, t := range list {
		if t.storage == s {
			w.drop(t)
		} else {
			kept = append(kept, t)
		}
	}
	return kept
}

// reset forgets everything: a barrier, or the end of the encoder.
func (w *window) reset() {
	for _, t := range w.traces {
		w.drop(t)
	}
	for _, t := range w.unions {
		w.drop(t)
	}
	w.traces, w.unions = w.traces[:0], w.unions[:0]
}
