package runtime

import "sync"

// largeResult is the size from which the memory of a released result can be used again within the same chunk. That costs a
// barrier, so that smaller memory waits for the commit.
const largeResult = 16 << 20

// streamMemory hands out memory for the results of a stream. What is released while work of the stream still uses it is not
// lost until that has completed: a later result of the stream can have it at once, since its work is ordered after.
type streamMemory struct {
	s *Stream

	mu     sync.Mutex
	closed bool
	spare  []*loan // can be used again now
	after  []*loan // after the commit of pending work
}

// A loan is a buffer that serves one result after the other. Each has an allocation of its own, so that uses of a released
// one are refused.
type loan struct {
	m        *streamMemory
	b        deviceBuffer
	holders  int    // allocations that are not gone yet
	labelled bool   // a label is set on the buffer
	free     bool   // in spare or after
	recent   bool   // the chunk that is pending uses it
	last     uint64 // the last submission known to use it
}

// allocate makes an allocation for a result. The stream is locked.
func (m *streamMemory) allocate(fn string, n int) (*allocation, error) {
	rt := m.s.rt
	rt.life.RLock()
	defer rt.life.RUnlock()
	if e := rt.unusable(); e != nil {
		return nil, &Error{Func: fn, Err: e}
	}
	l := m.take(rt.classOf(n, Shared))
	if l == nil {
		b, err := rt.takeBuffer(fn, n, Shared)
		if err != nil {
			return nil, err
		}
		l = &loan{m: m, b: b, holders: 1}
	} else {
		m.s.stats.reused.Add(1)
	}
	a := &allocation{rt: rt, buf: l.b.mtl, base: l.b.base, storage: l.b.storage, size: n, class: l.b.bytes, loan: l}
	rt.enlist(a)
	if l.last != 0 {
		// Who reads it, or writes to it from the host, comes after the work of the one before.
		a.lastUse.Store(l.last)
		a.lastW.Store(l.last)
	}
	if l.recent {
		if st := m.s.chunk; st != nil {
			st.useWhole(a)
			st.barrierWanted = st.count > 0
		}
	}
	return a, nil
}

// take takes a loan of the length out of spare.
func (m *streamMemory) take(class int) *loan {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.spare) - 1; i >= 0; i-- {
		if l := m.spare[i]; l.b.bytes == class {
			m.spare = append(m.spare[:i], m.spare[i+1:]...)
			l.free = false
			l.holders++
			return l
		}
	}
	return nil
}

// release notes that a result is not needed any more, though work may still use it.
func (m *streamMemory) release(a *allocation) {
	l := a.loan
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || l == nil {
		return
	}
	l.last = max(l.last, a.lastUse.Load())
	l.recent = a.open.Load() > 0
	l.free = true
	if !l.recent || a.class >= largeResult {
		m.spare = append(m.spare, l)
	} else {
		m.after = append(m.after, l)
	}
}

// committed makes what the chunk used available. The chunk became submission seq.
func (m *streamMemory) committed(seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, list := range [][]*loan{m.spare, m.after} {
		for _, l := range list {
			if l.recent {
				l.recent, l.last = false, max(l.last, seq)
			}
		}
	}
	m.spare = append(m.spare, m.after...)
	m.after = m.after[:0]
}

// gone notes that nothing uses an allocation any more, and says whether no other one has the buffer either.
func (l *loan) gone(a *allocation) (last bool) {
	m := l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	l.labelled = l.labelled || a.labelled.Load()
	if l.holders--; l.holders > 0 {
		return false
	}
	a.labelled.Store(l.labelled)
	if l.free {
		m.spare = without(m.spare, l)
		m.after = without(m.after, l)
		l.free = false
	}
	return true
}

func without(list []*loan, l *loan) []*loan {
	for i, o := range list {
		if o == l {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// close ends the reuse: what is released goes back to the runtime when its work has completed.
func (m *streamMemory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, list := range [][]*loan{m.spare, m.after} {
		for _, l := range list {
			l.free = false
		}
	}
	m.spare, m.after = nil, nil
}
