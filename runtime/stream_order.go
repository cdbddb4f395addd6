package runtime

import (
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Pending work of a stream is not in the queue yet. Whoever uses its memory in a way that conflicts first has it committed,
// so that what was called first takes effect first.

// streams are the open streams of a runtime.
type streams struct {
	open atomic.Int32

	mu   sync.Mutex
	list []*Stream // replaced, never changed
}

// add adds a stream if there are not too many, and says how many there are with it.
func (l *streams) add(s *Stream) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.list) + 1
	if n <= MaxStreams {
		l.list = append(slices.Clip(l.list), s)
		l.open.Store(int32(n))
	}
	return n
}

func (l *streams) remove(s *Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(slices.Clone(l.list), func(o *Stream) bool { return o == s })
	l.open.Store(int32(len(l.list)))
}

func (l *streams) all() []*Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list
}

// pending says whether work that is being encoded conflicts with a use of the allocation, beside that of st and of the
// chunk of its stream.
func (a *allocation) pendingBeside(st *passState, write bool) bool {
	n := a.openW.Load()
	if write {
		n = a.open.Load()
	}
	if n == 0 || st == nil {
		return n > 0
	}
	n -= st.opens(a, write)
	if n > 0 && st.stage && st.stream.chunk != nil {
		n -= st.stream.chunk.opens(a, write)
	}
	return n > 0
}

// opens is what the pass has added to the open uses of an allocation, or to the open uses that write.
func (st *passState) opens(a *allocation, write bool) int32 {
	if pos, ok := st.hazards.find(a.id); ok && pos < len(st.uses) {
		if u := &st.uses[pos]; u.a == a && (write && u.counted || !write && u.write) {
			return 1
		}
	}
	return 0
}

// find is the allocation's place, if it has one.
func (t *tracker) find(id uint64) (pos int, ok bool) {
	if len(t.index) == 0 {
		return 0, false
	}
	mask := uint64(len(t.index) - 1)
	for h := id * 0x9E3779B97F4A7C15 >> 20; ; h++ {
		e := &t.index[h&mask]
		if e.era != t.era {
			return 0, false
		}
		if e.id == id {
			return int(e.pos), true
		}
	}
}

// admit sees to it that what st, or the host if st is nil, is about to do with the allocation comes after the pending work
// of streams that it conflicts with. It refuses that while such a stream is encoding.
func (rt *Runtime) admit(st *passState, a *allocation, write bool) *Error {
	if rt.streams.open.Load() == 0 {
		return nil
	}
	var self *lane
	if st != nil && st.stream != nil {
		self = &st.stream.lane
	}
	return rt.settle(st, self, a, write)
}

func (rt *Runtime) settle(st *passState, self *lane, a *allocation, write bool) *Error {
	if !a.pendingBeside(st, write) {
		return nil
	}
	busy := false
	for _, s := range rt.streams.all() {
		if &s.lane != self {
			busy = !s.release(a, write) || busy
		}
	}
	if busy && a.pendingBeside(st, write) {
		return &Error{Have: "memory that a stream uses which is encoding", Need: "the end of that call, or Commit before", Err: ErrBusy}
	}
	return nil
}

// release commits the chunk if it conflicts with a use of the allocation. It says whether it could.
func (s *Stream) release(a *allocation, write bool) bool {
	for !s.mu.TryLock() {
		if s.using.Load() {
			return false
		}
		goruntime.Gosched() // somebody commits it already
	}
	conflicts := s.chunk != nil && s.chunk.opens(a, write) > 0
	s.mu.Unlock()
	return !conflicts || s.commitPending("Stream")
}

// admitReplay does it for all that a replay uses.
func (rt *Runtime) admitReplay(fn string, uses []use, self *lane) error {
	if rt.streams.open.Load() == 0 {
		return nil
	}
	for i := range uses {
		if u := &uses[i]; u.a != nil {
			if e := rt.settle(nil, self, u.a, u.write); e != nil {
				return &Error{Func: fn, Have: e.Have, Need: e.Need, Err: e.Err}
			}
		}
	}
	return nil
}

// closeStreams commits the pending work of all streams and closes them. No call is under way.
func (rt *Runtime) closeStreams() {
	for _, s := range rt.streams.all() {
		s.close("Runtime.Close")
	}
}
