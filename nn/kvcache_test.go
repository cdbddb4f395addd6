package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// storeShapes are elements and capacities.
var storeShapes = [][2]int{{1, 1}, {1, 7}, {2, 2}, {31, 100}, {32, 64}, {33, 33}, {64, 1000}, {255, 600}, {256, 256}, {257, 300}, {512, 1024}, {1000, 4096}, {0, 5}, {0, 0}}

// offsets are those at, next to and far beyond what n elements of a capacity allow.
func offsets(n, capacity int) []uint32 {
	return []uint32{0, 1, uint32(capacity - n), uint32(capacity - n + 1), uint32(capacity - 1), uint32(capacity), uint32(capacity + 1), math.MaxUint32, uint32(-n), uint32(-n + 1), 1 << 31}
}

// roundTo are the numbers as type T stores them.
func roundTo[T Float](x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = round[T](float64(v))
	}
	return out
}

// stored is what a store must give: numbers of type T, whose bits are known.
func stored[T Float](t *testing.T, where string, b *buffer[T], want []float64) {
	t.Helper()
	got := b.get()
	exact(t, where, widen(got), want)
}

func testKVStore[T Float](t *testing.T) {
	defer logExact(t, "KVStoreTimestep", "KVStoreTimestepPair")()
	rt := open(t)
	for i, s := range storeShapes {
		n, capacity := s[0], s[1]
		for _, at := range offsets(n, capacity) {
			where := fmt.Sprintf("%d of %d at %d", n, capacity, at)
			x, y := numbers[float32](n, uint64(280+i)), numbers[float32](n, uint64(380+i))
			src, src2, offset := newBuffer(t, rt, x), newBuffer(t, rt, y), newBuffer(t, rt, []uint32{at})
			old, old2 := numbers[T](capacity, 281), numbers[T](capacity, 282)
			dst, k, v := newBuffer(t, rt, old), newBuffer(t, rt, old), newBuffer(t, rt, old2)
			encode(t, rt, 2*min(n, 1), func(p *runtime.Pass) error {
				if err := KVStoreTimestep(p, dst.s, src.s, offset.s, n, capacity); err != nil {
					return err
				}
				return KVStoreTimestepPair(p, KVPair[T]{CacheK: k.s, CacheV: v.s, K: src.s, V: src2.s, Offset: offset.s, N: n, Capacity: capacity})
			})
			stored(t, where, dst, oracle.KVStore(widen(old), roundTo[T](x), uint64(at), uint64(capacity)))
			wantK, wantV := oracle.KVStorePair(widen(old), widen(old2), roundTo[T](x), roundTo[T](y), uint64(at), uint64(capacity))
			stored(t, where+" keys", k, wantK)
			stored(t, where+" values", v, wantV)
			src.untouched()
			offset.untouched()
			if uint64(at)+uint64(n) > uint64(capacity) {
				dst.untouched()
				k.untouched()
				v.untouched()
			}
		}
	}
}

func TestKVStoreTimestep(t *testing.T) {
	t.Run("f32", testKVStore[float32])
	t.Run("f16", testKVStore[half.Float16])
	t.Run("bf16", testKVStore[half.BFloat16])
}

func testRing[T Float](t *testing.T) {
	defer logExact(t, "KVRingDensify")()
	rt := open(t)
	for i, s := range [][2]int{{1, 1}, {1, 5}, {5, 1}, {4, 3}, {7, 32}, {8, 33}, {3, 100}, {31, 8}, {32, 8}, {16, 128}, {100, 3}, {257, 1}, {2, 0}} {
		capacity, slot := s[0], s[1]
		ring, old := numbers[T](capacity*slot, uint64(290+i)), numbers[T](capacity*slot, 289)
		src, dst := newBuffer(t, rt, ring), newBuffer(t, rt, old)
		filled, begin := newBuffer(t, rt, []uint32{0}), newBuffer(t, rt, []uint32{0})
		c := uint32(capacity)
		for _, live := range [][2]uint32{{0, 0}, {1, 0}, {c, 0}, {c, 1}, {c - 1, c - 1}, {c + 1, c / 2}, {math.MaxUint32, c - 1}, {c, c}, {c / 2, c + 1}, {c, math.MaxUint32}, {1, math.MaxUint32}, {0, 1}} {
			filled.set([]uint32{live[0]})
			begin.set([]uint32{live[1]})
			dst.reset()
			encode(t, rt, min(slot, 1), func(p *runtime.Pass) error {
				return KVRingDensify(p, KVRing[T]{Dst: dst.s, Src: src.s, Filled: filled.s, Start: begin.s, Slot: slot, Capacity: capacity})
			})
			exact(t, fmt.Sprint(s, live), widen(dst.get()), oracle.RingDensify(widen(old), widen(ring), slot, capacity, uint64(live[0]), uint64(live[1])))
			src.untouched()
		}
	}
}

func TestKVRingDensify(t *testing.T) {
	t.Run("f32", testRing[float32])
	t.Run("f16", testRing[half.Float16])
	t.Run("bf16", testRing[half.BFloat16])
}

func testKVRecorded[T Float](t *testing.T) {
	const n, capacity, slot = 60, 240, 30
	rt, r := open(t), source(283)
	x, y, offset := newBuffer(t, rt, normals(r, n, 1)), newBuffer(t, rt, normals(r, n, 1)), newBuffer(t, rt, []uint32{0})
	k, v, dense := newBuffer(t, rt, numbers[T](capacity, 284)), newBuffer(t, rt, numbers[T](capacity, 285)), output[T](t, rt, capacity)
	filled, begin := newBuffer(t, rt, []uint32{0}), newBuffer(t, rt, []uint32{0})
	vary := func(i int) {
		x.set(normals(r, n, float64(i+1)))
		offset.set([]uint32{[]uint32{0, capacity - n, capacity - n + 1}[i]})
		filled.set([]uint32{[]uint32{3, 8, 9}[i]})
		begin.set([]uint32{[]uint32{7, 5, 100}[i]})
	}
	pair := KVPair[T]{CacheK: k.s, CacheV: v.s, K: x.s, V: y.s, Offset: offset.s, N: n, Capacity: capacity}
	ring := KVRing[T]{Dst: dense.s, Src: k.s, Filled: filled.s, Start: begin.s, Slot: slot, Capacity: capacity / slot}
	type bind = func(*runtime.ScalarBinder) error
	for _, c := range []struct {
		outs    []target
		scalars []scalar
		plain   func(p *runtime.Pass) error
		unsafe  func(p *runtime.Pass, b bind) error
	}{
		{[]target{k}, []scalar{{slot: 2, u: n}, {slot: 4, u: capacity}}, func(p *runtime.Pass) error { return KVStoreTimestep(p, k.s, x.s, offset.s, n, capacity) },
			func(p *runtime.Pass, b bind) error {
				return UnsafeKVStoreTimestep(p, k.s, x.s, offset.s, n, capacity, b)
			}},
		{[]target{k, v}, []scalar{{slot: 4, u: n}, {slot: 6, u: capacity}}, func(p *runtime.Pass) error { return KVStoreTimestepPair(p, pair) },
			func(p *runtime.Pass, b bind) error { return UnsafeKVStoreTimestepPair(p, pair, b) }},
		{[]target{dense}, []scalar{{slot: 2, u: slot}, {slot: 3, u: capacity / slot}}, func(p *runtime.Pass) error { return KVRingDensify(p, ring) },
			func(p *runtime.Pass, b bind) error { return UnsafeKVRingDensify(p, ring, b) }},
	} {
		replays(t, rt, c.outs, vary, c.plain)
		twin(t, rt, c.outs, c.scalars, c.plain, c.unsafe)
	}
}

func TestKVRecorded(t *testing.T) {
	t.Run("f32", testKVRecorded[float32])
	t.Run("f16", testKVRecorded[half.Float16])
	t.Run("bf16", testKVRecorded[half.BFloat16])
}

func TestKVRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	src, src2, dst, dst2, live, live2 := output[float32](t, rt, 32), output[float32](t, rt, 32), output[float32](t, rt, 64), output[float32](t, rt, 64), output[uint32](t, rt, 1), output[uint32](t, rt, 1)
	f, fl := output[float32](t, foreign, 64), output[uint32](t, foreign, 1)
	d16 := output[half.BFloat16](t, rt, 64)
	type slice = runtime.Slice[float32]
	type word = runtime.Slice[uint32]
	store := func(d, s slice, o word, n, capacity int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return KVStoreTimestep(p, d, s, o, n, capacity) }
	}
	all := []target{src, src2, dst, dst2, live, live2, d16}
	refuses(t, rt, "nn.KVStoreTimestep", all, []refusal{
		{"no pass", func(*runtime.Pass) error { return KVStoreTimestep(nil, dst.s, src.s, live.s, 1, 1) }, runtime.ErrMisuse, nil},
		{"n negative", store(dst.s, src.s, live.s, -1, 64), runtime.ErrShape, []string{"n"}},
		{"n huge", store(dst.s, src.s, live.s, math.MaxInt32+1, 64), runtime.ErrShape, []string{"n"}},
		{"capacity below n", store(dst.s, src.s, live.s, 32, 31), runtime.ErrShape, []string{"capacity", "31", "32"}},
		{"capacity negative", store(dst.s, src.s, live.s, 0, -1), runtime.ErrLimit, []string{"capacity"}},
		{"capacity beyond 32 bits", store(dst.s, src.s, live.s, 1, 1<<32), runtime.ErrLimit, []string{"capacity"}},
		{"src short", store(dst.s, src.s.Slice(0, 31), live.s, 32, 64), runtime.ErrShape, []string{"src", "31"}},
		{"dst short", store(dst.s, src.s, live.s, 32, 65), runtime.ErrShape, []string{"dst", "64", "65"}},
		{"dst short without work", store(dst.s, src.s, live.s, 0, 65), runtime.ErrShape, []string{"dst"}},
		{"no offset", store(dst.s, src.s, word{}, 32, 64), runtime.ErrShape, []string{"offset"}},
		{"offset foreign", store(dst.s, src.s, fl.s, 32, 64), runtime.ErrForeign, []string{"offset"}},
		{"dst foreign", store(f.s, src.s, live.s, 32, 64), runtime.ErrForeign, []string{"dst"}},
		{"src in dst, where the offset might lead", store(dst.s, dst.s.Slice(40, 64), live.s, 24, 64), runtime.ErrOverlap, []string{"dst", "src"}},
		{"bf16 short", func(p *runtime.Pass) error { return KVStoreTimestep(p, d16.s.Slice(0, 63), src.s, live.s, 32, 64) }, runtime.ErrShape, []string{"dst", "63"}},
	})
	good := KVPair[float32]{CacheK: dst.s, CacheV: dst2.s, K: src.s, V: src2.s, Offset: live.s, N: 32, Capacity: 64}
	pair := func(change func(a *KVPair[float32])) func(*runtime.Pass) error {
		a := good
		change(&a)
		return func(p *runtime.Pass) error {
			err := KVStoreTimestepPair(p, a)
			if v := ValidateKVStoreTimestepPair(rt, a); (v == nil) != (err == nil) {
				t.Errorf("ValidateKVStoreTimestepPair says %v, the call %v", v, err)
			}
			return err
		}
	}
	refuses(t, rt, "nn.KVStoreTimestepPair", all, []refusal{
		{"no pass", func(*runtime.Pass) error { return KVStoreTimestepPair(nil, good) }, runtime.ErrMisuse, nil},
		{"N negative", pair(func(a *KVPair[float32]) { a.N = -1 }), runtime.ErrShape, []string{"N"}},
		{"capacity below N", pair(func(a *KVPair[float32]) { a.Capacity = 31 }), runtime.ErrShape, []string{"Capacity"}},
		{"K short", pair(func(a *KVPair[float32]) { a.K = a.K.Slice(0, 31) }), runtime.ErrShape, []string{"K", "31"}},
		{"V short", pair(func(a *KVPair[float32]) { a.V = a.V.Slice(0, 31) }), runtime.ErrShape, []string{"V", "31"}},
		{"CacheK short", pair(func(a *KVPair[float32]) { a.CacheK = a.CacheK.Slice(0, 63) }), runtime.ErrShape, []string{"CacheK", "63"}},
		{"CacheV short", pair(func(a *KVPair[float32]) { a.CacheV = a.CacheV.Slice(0, 63) }), runtime.ErrShape, []string{"CacheV", "63"}},
		{"no offset", pair(func(a *KVPair[float32]) { a.Offset = word{} }), runtime.ErrShape, []string{"Offset"}},
		{"CacheV foreign", pair(func(a *KVPair[float32]) { a.CacheV = f.s }), runtime.ErrForeign, []string{"CacheV"}},
		{"one cache", pair(func(a *KVPair[float32]) { a.CacheV = a.CacheK }), runtime.ErrOverlap, []string{"CacheK", "CacheV"}},
		{"V in CacheK", pair(func(a *KVPair[float32]) { a.V = a.CacheK.Slice(32, 64) }), runtime.ErrOverlap, []string{"CacheK", "V"}},
		{"K in CacheV", pair(func(a *KVPair[float32]) { a.K = a.CacheV.Slice(32, 64) }), runtime.ErrOverlap, []string{"CacheV", "K"}},
	})
	if err := ValidateKVStoreTimestepPair(rt, good); err != nil {
		t.Error(err)
	}
	ringOf := KVRing[float32]{Dst: dst.s, Src: dst2.s, Filled: live.s, Start: live2.s, Slot: 8, Capacity: 8}
	ring := func(change func(a *KVRing[float32])) func(*runtime.Pass) error {
		a := ringOf
		change(&a)
		return func(p *runtime.Pass) error { return KVRingDensify(p, a) }
	}
	refuses(t, rt, "nn.KVRingDensify", all, []refusal{
		{"no pass", func(*runtime.Pass) error { return KVRingDensify(nil, ringOf) }, runtime.ErrMisuse, nil},
		{"no capacity", ring(func(a *KVRing[float32]) { a.Capacity = 0 }), runtime.ErrShape, []string{"Capacity"}},
		{"no capacity without work", ring(func(a *KVRing[float32]) { a.Capacity, a.Slot = 0, 0 }), runtime.ErrShape, []string{"Capacity"}},
		{"slot negative", ring(func(a *KVRing[float32]) { a.Slot = -1 }), runtime.ErrShape, []string{"Slot"}},
		{"grid beyond 32 bits", ring(func(a *KVRing[float32]) { a.Capacity, a.Slot = 1<<17, 1<<15 }), runtime.ErrLimit, []string{"Capacity * Slot"}},
		{"src short", ring(func(a *KVRing[float32]) { a.Src = a.Src.Slice(0, 63) }), runtime.ErrShape, []string{"Src", "63"}},
		{"dst short", ring(func(a *KVRing[float32]) { a.Dst = a.Dst.Slice(0, 63) }), runtime.ErrShape, []string{"Dst", "63"}},
		{"no filled", ring(func(a *KVRing[float32]) { a.Filled = word{} }), runtime.ErrShape, []string{"Filled"}},
		{"start foreign", ring(func(a *KVRing[float32]) { a.Start = fl.s }), runtime.ErrForeign, []string{"Start"}},
		{"in place", ring(func(a *KVRing[float32]) { a.Dst = a.Src }), runtime.ErrOverlap, []string{"Dst", "Src"}},
	})
}
