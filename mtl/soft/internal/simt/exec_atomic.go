package simt

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// The atomic operations (xinst.sub).
const (
	atomLoad = iota
	atomStore
	atomXchg
	atomCmpXchg
	atomAdd
	atomSub
	atomUMin
	atomUMax
	atomSMin
	atomSMax
	atomAnd
	atomOr
	atomXor
	atomNand
	atomFAdd
	atomFSub
	atomFMin
	atomFMax
)

// atomicValue is the new value of a read-modify-write of w bits.
func atomicValue(sub uint32, old, v, w uint64) uint64 {
	switch sub {
	case atomStore, atomXchg:
		return v
	case atomAdd:
		v = old + v
	case atomSub:
		v = old - v
	case atomUMin:
		v = min(old, v)
	case atomUMax:
		v = max(old, v)
	case atomSMin:
		v = uint64(min(sext(old, w), sext(v, w)))
	case atomSMax:
		v = uint64(max(sext(old, w), sext(v, w)))
	case atomAnd:
		v &= old
	case atomOr:
		v |= old
	case atomXor:
		v ^= old
	case atomNand:
		v = ^(v & old)
	case atomFAdd, atomFSub, atomFMin, atomFMax:
		a, b := math.Float32frombits(uint32(old)), math.Float32frombits(uint32(v))
		switch sub {
		case atomFAdd:
			a += b
		case atomFSub:
			a -= b
		case atomFMin:
			a = fmin32(a, b)
		default:
			a = fmax32(a, b)
		}
		return uint64(math.Float32bits(a))
	}
	return v & widthMask(w)
}

// unaligned orders atomics on memory whose Go address does not have the alignment that the processor needs (a caller's
// buffer may start anywhere).
var unaligned sync.Mutex

// littleEndian tells the byte order of this machine: atomics work on whole words.
var littleEndian = func() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}()

// execAtomic performs an atomic of every lane in turn: args are the address and the operands. Orders stronger than
// relaxed come for free: Go's atomics are sequentially consistent.
func execAtomic(w *warp, in *inst) {
	x := in.x
	w.atomic = true
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		q := w.resolve(w.get(x.args[0], l)+in.imm, l, x.size, x.size-1, x.sub != atomLoad, in)
		var v, want uint64
		if x.sub != atomLoad {
			v = w.get(x.args[1], l)
		}
		if x.sub == atomCmpXchg {
			want = w.get(x.args[2], l)
		}
		old := atomicAt(q, x.size, x.sub, v, want, uint64(x.bits))
		if len(x.dst) > 0 {
			w.put(in, 0, l, old)
		}
	}
	w.atomic = false
}

func atomicAt(q unsafe.Pointer, size uint64, sub uint32, v, want, width uint64) (old uint64) {
	switch {
	case uintptr(q)&uintptr(size-1) != 0 || !littleEndian || size < 4:
		unaligned.Lock()
		defer unaligned.Unlock()
		old = peek(q, size)
		switch {
		case sub == atomLoad:
		case sub == atomCmpXchg:
			if old == want {
				poke(q, size, v)
			}
		default:
			poke(q, size, atomicValue(sub, old, v, width))
		}
		return old
	case size == 4:
		p := (*uint32)(q)
		for {
			o := atomic.LoadUint32(p)
			switch {
			case sub == atomLoad || sub == atomCmpXchg && o != uint32(want):
				return uint64(o)
			case sub == atomCmpXchg:
				if atomic.CompareAndSwapUint32(p, o, uint32(v)) {
					return uint64(o)
				}
			case atomic.CompareAndSwapUint32(p, o, uint32(atomicValue(sub, uint64(o), v, width))):
				return uint64(o)
			}
		}
	}
	p := (*uint64)(q)
	for {
		o := atomic.LoadUint64(p)
		switch {
		case sub == atomLoad || sub == atomCmpXchg && o != want:
			return o
		case sub == atomCmpXchg:
			if atomic.CompareAndSwapUint64(p, o, v) {
				return o
			}
		case atomic.CompareAndSwapUint64(p, o, atomicValue(sub, o, v, width)):
			return o
		}
	}
}
