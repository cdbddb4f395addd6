package runtime

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// A ScalarBlock is a block of bytes at a fixed device address, such as a struct of parameters in the kernel's layout: what
// [Scalar] is for a single value and [Launch.Uint32], it is for [Launch.Params]. The zero ScalarBlock is not valid.
type ScalarBlock struct {
	pool     *ScalarPool
	index, n int
}

// ScalarPlaces is how many of a pool's places a block of n bytes takes.
func ScalarPlaces(n int) int { return (n + scalarStride - 1) / scalarStride }

// NewScalarBlock takes the next places of the pool and stores data there, 4 to MaxInlineBytes bytes, a multiple of 4.
func NewScalarBlock(pool *ScalarPool, data []byte) (ScalarBlock, error) {
	const fn = "NewScalarBlock"
	n := len(data)
	if n == 0 || n%4 != 0 || n > MaxInlineBytes {
		return ScalarBlock{}, &Error{Func: fn, Arg: "data", Have: fmt.Sprintf("%d bytes", n), Need: fmt.Sprintf("a multiple of 4, 4 to %d", MaxInlineBytes), Err: ErrLimit}
	}
	index, err := pool.take(fn, ScalarPlaces(n))
	if err != nil {
		return ScalarBlock{}, err
	}
	defer pool.mu.Unlock()
	s := ScalarBlock{pool, index, n}
	s.store(data)
	return s, nil
}

// words are the block's memory, in words that are loaded and stored whole: a block may be looked at while it is set.
func (s ScalarBlock) words() []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Add(s.pool.store.view.a.base, s.index*scalarStride)), s.n/4)
}

func (s ScalarBlock) store(data []byte) {
	for i, w := 0, s.words(); i < len(w); i++ {
		atomic.StoreUint32(&w[i], binary.NativeEndian.Uint32(data[4*i:]))
	}
}

// holds says whether the block holds these bytes.
func (s ScalarBlock) holds(data []byte) bool {
	for i, w := 0, s.words(); i < len(w); i++ {
		if atomic.LoadUint32(&w[i]) != binary.NativeEndian.Uint32(data[4*i:]) {
			return false
		}
	}
	return true
}

func (s ScalarBlock) check(fn string, data []byte) error {
	if s.pool == nil {
		return &Error{Func: fn, Have: "the zero ScalarBlock", Need: "a block from NewScalarBlock", Err: ErrMisuse}
	}
	if err := s.pool.store.Valid(); err != nil {
		return &Error{Func: fn, Arg: "pool", Err: because(ErrClosed, err)}
	}
	if len(data) != s.n {
		return &Error{Func: fn, Arg: "data", Have: fmt.Sprintf("%d bytes", len(data)), Need: fmt.Sprint(s.n), Err: ErrShape}
	}
	return nil
}

// Len is the number of bytes.
func (s ScalarBlock) Len() int { return s.n }

// View is the block's address.
func (s ScalarBlock) View() View {
	if s.pool == nil {
		return View{}
	}
	return s.pool.store.view.Bytes(s.index*scalarStride, s.index*scalarStride+s.n)
}

// Get copies the block to dst, which must be as long.
func (s ScalarBlock) Get(dst []byte) error {
	const fn = "ScalarBlock.Get"
	if err := s.check(fn, dst); err != nil {
		return err
	}
	if !s.pool.store.view.a.hold() {
		return &Error{Func: fn, Arg: "pool", Have: "released storage", Err: ErrClosed}
	}
	defer s.pool.store.view.a.unref()
	for i, w := 0, s.words(); i < len(w); i++ {
		binary.NativeEndian.PutUint32(dst[4*i:], atomic.LoadUint32(&w[i]))
	}
	return nil
}

// Set changes the block for later submissions and replays, under the rules of [Scalar.Set]. data must be as long as the
// block; what numbers it holds is not looked at.
func (s ScalarBlock) Set(data []byte) error {
	const fn = "ScalarBlock.Set"
	if err := s.check(fn, data); err != nil {
		return err
	}
	if err := s.pool.beginSet(fn, s.index); err != nil {
		return err
	}
	s.store(data)
	s.pool.endSet(s.index)
	return nil
}
