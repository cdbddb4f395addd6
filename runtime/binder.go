package runtime

import (
	"fmt"
	"math/bits"
	"sync/atomic"
)

// A ScalarBinder lets the caller of an Unsafe variant put scalars of its own in place of those that the function
// would have stored. It accepts exactly the scalar slots of the launch, blocks of parameters among them, each once, from
// storage of the same runtime, and each must hold the value that the function validated, at the time of the call. See
// [Launch.Scalars].
type ScalarBinder struct {
	l    *Launch
	done uint32
	err  *Error
}

// Uint32 puts s at index.
func (b *ScalarBinder) Uint32(index int, s Scalar[uint32]) error {
	return b.bind(index, kindUint32, s.pool, s.index, 4)
}

// Int32 puts s at index.
func (b *ScalarBinder) Int32(index int, s Scalar[int32]) error {
	return b.bind(index, kindInt32, s.pool, s.index, 4)
}

// Float32 puts s at index.
func (b *ScalarBinder) Float32(index int, s Scalar[float32]) error {
	return b.bind(index, kindFloat32, s.pool, s.index, 4)
}

// Block puts s at index, in place of parameters.
func (b *ScalarBinder) Block(index int, s ScalarBlock) error {
	return b.bind(index, kindParams, s.pool, s.index, s.n)
}

func (b *ScalarBinder) refuse(index int, have, need string, sentinel error) error {
	e := &Error{Func: "ScalarBinder", Arg: fmt.Sprintf("index %d", index), Have: have, Need: need, Err: sentinel}
	if b.err == nil {
		b.err = e
	}
	return e
}

func (b *ScalarBinder) bind(index int, kind bindKind, pool *ScalarPool, place, n int) error {
	if b == nil {
		b = new(ScalarBinder)
	}
	l := b.l
	if l == nil {
		return b.refuse(index, "a binder used after its function has returned", "the binder of a running call", ErrMisuse)
	}
	if index < 0 || index >= MaxBuffers || l.bound&(1<<index) == 0 || !l.binds[index].kind.own() {
		return b.refuse(index, "no scalar slot", "one of "+slotList(l.scalarSlots()), ErrKernel)
	}
	bind := &l.binds[index]
	switch {
	case b.done&(1<<index) != 0:
		return b.refuse(index, "a second scalar", "one", ErrMisuse)
	case kind != bind.kind:
		return b.refuse(index, kind.String(), bind.kind.String(), ErrScalar)
	case pool == nil && kind == kindParams:
		return b.refuse(index, "the zero ScalarBlock", "a block from NewScalarBlock", ErrMisuse)
	case pool == nil:
		return b.refuse(index, "the zero Scalar", "a scalar from NewScalar", ErrMisuse)
	case n != bind.n:
		return b.refuse(index, fmt.Sprintf("%d bytes", n), fmt.Sprint(bind.n), ErrScalar)
	case pool.store.view.a.rt != l.rt:
		return b.refuse(index, "a scalar of another runtime", "one of the pass's runtime", ErrForeign)
	}
	if e := pool.store.view.invalid(); e != nil {
		return b.refuse(index, e.Have, "live storage", e.Err)
	}
	if !pool.store.view.a.hold() {
		return b.refuse(index, "released storage", "live storage", ErrClosed)
	}
	var value uint32
	same := true
	if kind == kindParams {
		same = ScalarBlock{pool, place, n}.holds(l.inline[bind.off : bind.off+bind.n])
	} else {
		value = atomic.LoadUint32(Scalar[uint32]{pool, place}.word())
	}
	pool.store.view.a.unref()
	switch {
	case !same:
		return b.refuse(index, "other bytes", "those that were validated", ErrScalar)
	case kind != kindParams && value != bind.bits:
		return b.refuse(index, kind.format(value), kind.format(bind.bits)+", the value that was validated", ErrScalar)
	}
	bind.pool, bind.place = pool, place
	b.done |= 1 << index
	return nil
}

// finish says whether every scalar slot was bound.
func (b *ScalarBinder) finish() *Error {
	if b.err != nil {
		return b.err
	}
	if missing := b.l.scalarSlots() &^ b.done; missing != 0 {
		return &Error{Func: "ScalarBinder", Arg: fmt.Sprintf("index %d", bits.TrailingZeros32(missing)), Have: "no scalar",
			Need: "a scalar at each of " + slotList(b.l.scalarSlots()), Err: ErrMisuse}
	}
	return nil
}

// slotList is "slots 3, 4, 5".
func slotList(mask uint32) string {
	if mask == 0 {
		return "no slots"
	}
	s := "slots "
	for first := true; mask != 0; mask &= mask - 1 {
		if !first {
			s += ", "
		}
		first = false
		s += fmt.Sprint(bits.TrailingZeros32(mask))
	}
	return s
}
