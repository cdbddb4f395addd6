package runtime

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// ScalarElement is what a [Scalar] can hold.
type ScalarElement interface{ ~uint32 | ~int32 | ~float32 }

// scalarStride keeps each scalar at an offset that every GPU family takes for a constant buffer (4 bytes on Apple
// families, 32 on Macs with other GPUs).
const scalarStride = 32

// A ScalarPool is storage for scalars whose addresses never change: for the Unsafe variants of package nn, whose scalars
// a recorded program reads anew on each replay.
type ScalarPool struct {
	store Slice[uint32]
	cap   int

	mu   sync.Mutex
	used int
	// state has one entry for each scalar: which submission used it last, and how many open passes use it.
	state []scalarState
}

type scalarState struct {
	lastUse atomic.Uint64
	open    atomic.Int32
	setting atomic.Int32 // Sets under way, which a commit waits for; see hostState
}

// NewScalarPool allocates storage for capacity scalars.
func NewScalarPool(rt *Runtime, capacity int) (*ScalarPool, error) {
	if capacity < 1 || capacity > math.MaxInt32/scalarStride {
		return nil, &Error{Func: "NewScalarPool", Arg: "capacity", Have: fmt.Sprint(capacity),
			Need: fmt.Sprintf("1 to %d", math.MaxInt32/scalarStride), Err: ErrLimit}
	}
	store, err := newSlice[uint32]("NewScalarPool", rt, capacity*scalarStride/4, Shared, true)
	if err != nil {
		return nil, err
	}
	return &ScalarPool{store: store, cap: capacity, state: make([]scalarState, capacity)}, nil
}

// Len is the number of scalars handed out, Cap the number there is room for.
func (s *ScalarPool) Len() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// Cap is the number of scalars there is room for.
func (s *ScalarPool) Cap() int {
	if s == nil {
		return 0
	}
	return s.cap
}

// Runtime is the runtime that the pool belongs to, nil for a nil or zero pool.
func (s *ScalarPool) Runtime() *Runtime {
	if s == nil {
		return nil
	}
	return s.store.Runtime()
}

// Release gives the storage back, under the same rules as [Slice.Release]. The pool's scalars are then refused.
func (s *ScalarPool) Release() error {
	if s == nil || s.store.view.a == nil {
		return &Error{Func: "ScalarPool.Release", Have: "no pool", Need: "a pool from NewScalarPool", Err: ErrMisuse}
	}
	if err := s.store.Release(); err != nil {
		e := *err.(*Error)
		e.Func = "ScalarPool.Release"
		return &e
	}
	return nil
}

// A Scalar is one value at a fixed device address. The zero Scalar is not valid.
type Scalar[T ScalarElement] struct {
	pool  *ScalarPool
	index int
}

// NewScalar takes the next place of the pool and stores v there.
func NewScalar[T ScalarElement](pool *ScalarPool, v T) (Scalar[T], error) {
	index, err := pool.take("NewScalar", 1)
	if err != nil {
		return Scalar[T]{}, err
	}
	defer pool.mu.Unlock()
	s := Scalar[T]{pool, index}
	atomic.StoreUint32(s.word(), bitsOf(v))
	return s, nil
}

// take gives the first of the next n places. Without an error the pool is locked.
func (s *ScalarPool) take(fn string, n int) (int, error) {
	if s == nil {
		return 0, &Error{Func: fn, Arg: "pool", Have: "nil", Need: "a scalar pool", Err: ErrMisuse}
	}
	if err := s.store.Valid(); err != nil {
		return 0, &Error{Func: fn, Arg: "pool", Err: because(ErrClosed, err)}
	}
	s.mu.Lock()
	if n > s.cap-s.used {
		have := fmt.Sprintf("%d scalars, all taken", s.cap)
		if s.used < s.cap {
			have = fmt.Sprintf("%d free places", s.cap-s.used)
		}
		s.mu.Unlock()
		need := "a free place"
		if n > 1 {
			need = fmt.Sprintf("%d free places", n)
		}
		return 0, &Error{Func: fn, Arg: "pool", Have: have, Need: need, Err: ErrLimit}
	}
	s.used += n
	return s.used - n, nil
}

func bitsOf[T ScalarElement](v T) uint32 { return *(*uint32)(unsafe.Pointer(&v)) }

func (s Scalar[T]) word() *uint32 {
	return (*uint32)(unsafe.Add(s.pool.store.view.a.base, s.index*scalarStride))
}

func (s Scalar[T]) check(fn string) error {
	if s.pool == nil {
		return &Error{Func: fn, Have: "the zero Scalar", Need: "a scalar from NewScalar", Err: ErrMisuse}
	}
	if err := s.pool.store.Valid(); err != nil {
		return &Error{Func: fn, Arg: "pool", Err: because(ErrClosed, err)}
	}
	return nil
}

// View is the scalar's address: 4 bytes.
func (s Scalar[T]) View() View {
	if s.pool == nil {
		return View{}
	}
	return s.pool.store.view.Bytes(s.index*scalarStride, s.index*scalarStride+4)
}

// Get is the value.
func (s Scalar[T]) Get() (T, error) {
	var v T
	if err := s.check("Scalar.Get"); err != nil {
		return v, err
	}
	if !s.pool.store.view.a.hold() {
		return v, &Error{Func: "Scalar.Get", Arg: "pool", Have: "released storage", Err: ErrClosed}
	}
	defer s.pool.store.view.a.unref()
	bits := atomic.LoadUint32(s.word())
	return *(*T)(unsafe.Pointer(&bits)), nil
}

// Set changes the value for later submissions and replays. It is refused with [ErrBusy], and nothing changes, while a
// submission that uses the scalar has not completed or a pass that uses it is being encoded. A float that is not finite
// is refused with [ErrScalar].
func (s Scalar[T]) Set(v T) error {
	const fn = "Scalar.Set"
	if err := s.check(fn); err != nil {
		return err
	}
	if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
		return &Error{Func: fn, Arg: "v", Have: fmt.Sprint(v), Need: "a finite value", Err: ErrScalar}
	}
	if err := s.pool.beginSet(fn, s.index); err != nil {
		return err
	}
	atomic.StoreUint32(s.word(), bitsOf(v))
	s.pool.endSet(s.index)
	return nil
}

// beginSet refuses to change the place while something uses it. Without an error endSet must follow.
func (s *ScalarPool) beginSet(fn string, index int) error {
	a := s.store.view.a
	if !a.hold() {
		return &Error{Func: fn, Arg: "pool", Have: "released storage", Err: ErrClosed}
	}
	state := &s.state[index]
	state.setting.Add(1)
	a.host.writing.Add(1) // for work that uses the whole storage as a view
	if state.open.Load() > 0 || a.open.Load() > 0 || a.host.pending.Load() > 0 {
		s.endSet(index)
		return &Error{Func: fn, Have: "a pass or replay that uses the scalar and is still being encoded", Need: "no such pass", Err: ErrBusy}
	}
	if last := max(state.lastUse.Load(), a.lastUse.Load()); !a.rt.passed(last) {
		s.endSet(index)
		return &Error{Func: fn, Have: "a submission that uses the scalar and has not completed", Need: "its completion", Err: ErrBusy}
	}
	return nil
}

func (s *ScalarPool) endSet(index int) {
	a := s.store.view.a
	a.host.writing.Add(-1)
	s.state[index].setting.Add(-1)
	a.unref()
}
