package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// KVStoreTimestep puts the keys or the values of one position, or of several in a row, into a cache:
//
//	dst[o + i] = T(src[i]),  o = offset[0],  i < n
//
// If they do not fit, o > capacity or n > capacity - o, nothing is written; no sum can wrap. What is written to caches of
// float16 and bfloat16 is rounded to nearest, ties to even, and infinite beyond the largest finite number.
//
// Shapes: src [n], dst [capacity], offset [1]; longer slices are allowed. Capacity and offset count elements. capacity is
// at least n and at most 2^32 - 1. n == 0 is a no-op. offset is read on the device when the pass runs.
//
// Slots: 0 src, 1 dst, 3 offset; scalars 2 n, 4 capacity (uint32).
//
// dst, all of its capacity, must not overlap src or offset. Deterministic. Errors: ErrShape, ErrLimit, ErrForeign,
// ErrClosed, ErrOverlap.
func KVStoreTimestep[T Float](p *runtime.Pass, dst runtime.Slice[T], src runtime.Slice[float32], offset runtime.Slice[uint32], n, capacity int) error {
	return kvStoreTimestep("nn.KVStoreTimestep", p, dst, src, offset, n, capacity, nil)
}

// UnsafeKVStoreTimestep is [KVStoreTimestep] with scalars 2 and 4 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeKVStoreTimestep[T Float](p *runtime.Pass, dst runtime.Slice[T], src runtime.Slice[float32], offset runtime.Slice[uint32], n, capacity int,
	bind func(*runtime.ScalarBinder) error) error {
	return kvStoreTimestep("nn.UnsafeKVStoreTimestep", p, dst, src, offset, n, capacity, bind)
}

func kvStoreTimestep[T Float](fn string, p *runtime.Pass, dst runtime.Slice[T], src runtime.Slice[float32], offset runtime.Slice[uint32], n, capacity int,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.kvCapacity("n", "capacity", n, capacity)
	size := floatSize[T]()
	c.memory(memory{"src", src.View(), n, 4}, memory{"dst", dst.View(), capacity, size}, memory{"offset", offset.View(), 1, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	to, from, at := first(dst.View(), capacity, size), first(src.View(), n, 4), first(offset.View(), 1, 4)
	c.disjoint(1, operand{"dst", to}, operand{"src", from}, operand{"offset", at})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(kernelOf[T]("kv_store_timestep", "kv_store_timestep_f16", "kv_store_timestep_bf16"))
	l.Read(0, from)
	l.Write(1, to)
	l.Uint32(2, uint32(n))
	l.Read(3, at)
	l.Uint32(4, uint32(capacity))
	l.Scalars(bind)
	return dispatchElements(l, n)
}

// kvCapacity refuses a number of elements, and a capacity that does not hold them or does not fit 32 bits.
func (c *check) kvCapacity(nName, name string, n, capacity int) {
	c.dim(nName, n, 0)
	if c.err == nil && (capacity < 0 || uint64(capacity) > math.MaxUint32) {
		c.refuse(name, fmt.Sprint(capacity), "0 to 2^32-1 elements", runtime.ErrLimit)
	}
	if c.err == nil && capacity < n {
		c.refuse(name, fmt.Sprintf("%d elements", capacity), fmt.Sprintf("at least %d, what one call stores", n), runtime.ErrShape)
	}
}

// KVPair are the operands of [KVStoreTimestepPair].
type KVPair[T Float] struct {
	CacheK, CacheV runtime.Slice[T]       // [Capacity]
	K, V           runtime.Slice[float32] // [N]
	Offset         runtime.Slice[uint32]  // [1], read on the device
	N, Capacity    int                    // in elements
}

// KVStoreTimestepPair is [KVStoreTimestep] of keys and values at once, to the same place of two caches:
//
//	CacheK[o + i] = T(K[i]) and CacheV[o + i] = T(V[i]),  o = Offset[0],  i < N
//
// If they do not fit, o > Capacity or N > Capacity - o, neither is written. What is said there of rounding, shapes and
// errors holds here.
//
// Slots: 0 K, 1 V, 2 CacheK, 3 CacheV, 5 Offset; scalars 4 N, 6 Capacity (uint32).
//
// The caches, all of their capacity, must not overlap each other or anything else. Deterministic.
func KVStoreTimestepPair[T Float](p *runtime.Pass, a KVPair[T]) error {
	return kvStoreTimestepPair("nn.KVStoreTimestepPair", p, &a, nil)
}

// UnsafeKVStoreTimestepPair is [KVStoreTimestepPair] with scalars 4 and 6 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeKVStoreTimestepPair[T Float](p *runtime.Pass, a KVPair[T], bind func(*runtime.ScalarBinder) error) error {
	return kvStoreTimestepPair("nn.UnsafeKVStoreTimestepPair", p, &a, bind)
}

// ValidateKVStoreTimestepPair makes the checks of [KVStoreTimestepPair] without encoding anything.
func ValidateKVStoreTimestepPair[T Float](rt *runtime.Runtime, a KVPair[T]) error {
	c := startOn("nn.ValidateKVStoreTimestepPair", rt)
	kvPair(&c, &a)
	return c.result()
}

type kvPairViews struct{ cacheK, cacheV, k, v, offset runtime.View }

func kvPair[T Float](c *check, a *KVPair[T]) (v kvPairViews) {
	c.kvCapacity("N", "Capacity", a.N, a.Capacity)
	size := floatSize[T]()
	c.memory(memory{"K", a.K.View(), a.N, 4}, memory{"V", a.V.View(), a.N, 4}, memory{"CacheK", a.CacheK.View(), a.Capacity, size},
		memory{"CacheV", a.CacheV.View(), a.Capacity, size}, memory{"Offset", a.Offset.View(), 1, 4})
	if c.err != nil || a.N == 0 {
		return v
	}
	v = kvPairViews{first(a.CacheK.View(), a.Capacity, size), first(a.CacheV.View(), a.Capacity, size), first(a.K.View(), a.N, 4),
		first(a.V.View(), a.N, 4), first(a.Offset.View(), 1, 4)}
	c.disjoint(2, operand{"CacheK", v.cacheK}, operand{"CacheV", v.cacheV}, operand{"K", v.k}, operand{"V", v.v}, operand{"Offset", v.offset})
	return v
}

func kvStoreTimestepPair[T Float](fn string, p *runtime.Pass, a *KVPair[T], bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	v := kvPair(&c, a)
	if c.err != nil || a.N == 0 {
		return c.result()
	}
	l := p.Kernel(kernelOf[T]("kv_store_timestep_pair", "kv_store_timestep_pair_f16", "kv_store_timestep_pair_bf16"))
	l.Read(0, v.k)
	l.Read(1, v.v)
	l.Write(2, v.cacheK)
	l.Write(3, v.cacheV)
	l.Uint32(4, uint32(a.N))
	l.Read(5, v.offset)
	l.Uint32(6, uint32(a.Capacity))
	l.Scalars(bind)
	return dispatchElements(l, a.N)
}

// KVRing are the operands of [KVRingDensify].
type KVRing[T Float] struct {
	Dst, Src       runtime.Slice[T]      // [Capacity, Slot]
	Filled, Start  runtime.Slice[uint32] // [1], read on the device: slots that hold something, and the oldest of them
	Slot, Capacity int                   // elements of a slot, and the number of slots
}

// KVRingDensify copies what a ring buffer holds, the oldest slot first:
//
//	Dst[t, i] = Src[(s + t) mod Capacity, i],  s = Start[0],  t < min(Filled[0], Capacity),  i < Slot
//
// Bits are copied as they are. What lies behind in Dst stays. s + t does not wrap, so any Start is one of a slot.
//
// Shapes: Dst and Src [Capacity, Slot], Filled and Start [1]; longer slices are allowed. Capacity is at least 1; Slot == 0 is
// a no-op. The ring has fewer than 2^32 - 256 elements.
//
// Slots: 0 Src, 1 Dst, 4 Filled, 5 Start; scalars 2 Slot, 3 Capacity (uint32).
//
// Dst must not overlap anything else. Deterministic. Errors: ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap.
func KVRingDensify[T Float](p *runtime.Pass, a KVRing[T]) error {
	return kvRingDensify("nn.KVRingDensify", p, &a, nil)
}

// UnsafeKVRingDensify is [KVRingDensify] with scalars 2 and 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeKVRingDensify[T Float](p *runtime.Pass, a KVRing[T], bind func(*runtime.ScalarBinder) error) error {
	return kvRingDensify("nn.UnsafeKVRingDensify", p, &a, bind)
}

func kvRingDensify[T Float](fn string, p *runtime.Pass, a *KVRing[T], bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("Capacity", a.Capacity, 1)
	c.dim("Slot", a.Slot, 0)
	// A thread's position in the grid is 32 bits wide, up to the end of the last threadgroup.
	n, size := c.product("Capacity * Slot", math.MaxUint32-ElementThreads, a.Capacity, a.Slot), floatSize[T]()
	c.memory(memory{"Src", a.Src.View(), n, size}, memory{"Dst", a.Dst.View(), n, size}, memory{"Filled", a.Filled.View(), 1, 4},
		memory{"Start", a.Start.View(), 1, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	to, from := first(a.Dst.View(), n, size), first(a.Src.View(), n, size)
	filled, begin := first(a.Filled.View(), 1, 4), first(a.Start.View(), 1, 4)
	c.disjoint(1, operand{"Dst", to}, operand{"Src", from}, operand{"Filled", filled}, operand{"Start", begin})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(kernelOf[T]("kv_ring_densify_b32", "kv_ring_densify_b16", "kv_ring_densify_b16"))
	l.Read(0, from)
	l.Write(1, to)
	l.Uint32(2, uint32(a.Slot))
	l.Uint32(3, uint32(a.Capacity))
	l.Read(4, filled)
	l.Read(5, begin)
	l.Scalars(bind)
	return dispatchElements(l, n)
}
