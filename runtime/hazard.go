package runtime

// The hazard tracker: which bytes have been read and written since the last barrier. It knows allocations by number only.
//
// A barrier orders everything before it with everything after it, so in a given order of dispatches, placing one only when
// a dispatch conflicts with what came since the last barrier gives the fewest barriers that are enough.

// span is a range of bytes [lo, hi).
type span struct{ lo, hi int }

// spanSet is a set of bytes as sorted ranges that neither overlap nor touch.
type spanSet []span

// search is the position of the first range that ends after lo.
func (s spanSet) search(lo int) int {
	i, j := 0, len(s)
	for i < j {
		if m := int(uint(i+j) >> 1); s[m].hi <= lo {
			i = m + 1
		} else {
			j = m
		}
	}
	return i
}

// overlaps says whether a byte of [lo, hi) is in the set.
func (s spanSet) overlaps(lo, hi int) bool {
	i := s.search(lo)
	return i < len(s) && s[i].lo < hi
}

// add puts [lo, hi) into the set.
func (s *spanSet) add(lo, hi int) {
	set := *s
	// From the first range that overlaps or touches [lo, hi) to the last one.
	i := set.search(lo)
	if i > 0 && set[i-1].hi == lo {
		i--
	}
	j := i
	for j < len(set) && set[j].lo <= hi {
		j++
	}
	if i == j {
		set = append(set, span{})
		copy(set[i+1:], set[i:])
		set[i] = span{lo, hi}
	} else {
		set[i] = span{min(lo, set[i].lo), max(hi, set[j-1].hi)}
		set = append(set[:i+1], set[j:]...)
	}
	*s = set
}

// joinNearest makes one range of the two that have the fewest bytes between them.
func (s *spanSet) joinNearest() {
	set := *s
	best := 1
	for i := 2; i < len(set); i++ {
		if set[i].lo-set[i-1].hi < set[best].lo-set[best-1].hi {
			best = i
		}
	}
	set[best-1].hi = set[best].hi
	*s = append(set[:best], set[best+1:]...)
}

// tracked is what is known of one allocation.
type tracked struct {
	epoch         uint64 // of the sets: those of an earlier epoch are empty
	reads, writes spanSet
}

// tracker is the state of one pass. Allocations are found by number in a hash table with open addressing, which, like
// the sets, is kept from pass to pass so that a steady state allocates nothing.
type tracker struct {
	epoch uint64 // counts barriers and passes
	era   uint32 // counts passes: entries of an earlier era are free
	index []trackerEntry
	used  []tracked
	n     int
}

type trackerEntry struct {
	id  uint64
	era uint32
	pos int32
}

// reset forgets everything.
func (t *tracker) reset() {
	t.n = 0
	t.epoch++
	if t.era++; t.era == 0 {
		clear(t.index)
		t.era = 1
	}
}

// barrier forgets the accesses and keeps the allocations' places.
func (t *tracker) barrier() { t.epoch++ }

// pos is the allocation's place, counted from 0 in the order of first use, and whether it is new.
func (t *tracker) pos(id uint64) (pos int, fresh bool) {
	if 2*(t.n+1) > len(t.index) {
		t.grow()
	}
	mask := uint64(len(t.index) - 1)
	for h := id * 0x9E3779B97F4A7C15 >> 20; ; h++ {
		e := &t.index[h&mask]
		if e.era != t.era {
			*e = trackerEntry{id, t.era, int32(t.n)}
			if t.n == len(t.used) {
				t.used = append(t.used, tracked{})
			}
			t.used[t.n].epoch = 0
			t.n++
			return t.n - 1, true
		}
		if e.id == id {
			return int(e.pos), false
		}
	}
}

func (t *tracker) grow() {
	if t.era == 0 {
		t.reset()
	}
	old := t.index
	t.index = make([]trackerEntry, max(64, 2*len(old)))
	mask := uint64(len(t.index) - 1)
	for _, e := range old {
		if e.era != t.era {
			continue
		}
		h := e.id * 0x9E3779B97F4A7C15 >> 20
		for t.index[h&mask].era == t.era {
			h++
		}
		t.index[h&mask] = e
	}
}

// conflict says whether an access to bytes [lo, hi) of the allocation at pos must come after a barrier: it reads what was
// written since the last one, or writes what was read or written.
func (t *tracker) conflict(pos, lo, hi int, write bool) bool {
	u := &t.used[pos]
	if u.epoch != t.epoch {
		return false
	}
	return u.writes.overlaps(lo, hi) || write && u.reads.overlaps(lo, hi)
}

// add notes an access. Accesses of one dispatch are all asked about before any is added, so that a dispatch does not
// conflict with itself.
func (t *tracker) add(pos, lo, hi int, read, write bool) {
	u := &t.used[pos]
	if u.epoch != t.epoch {
		u.epoch = t.epoch
		u.reads, u.writes = u.reads[:0], u.writes[:0]
	}
	if write {
		// Whatever conflicts with a read conflicts with a write of the same bytes, so the write alone is enough.
		u.writes.add(lo, hi)
	} else if read {
		u.reads.add(lo, hi)
	}
}
