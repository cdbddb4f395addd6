package oracle

import (
	"math"
	"testing"
)

func TestKVStore(t *testing.T) {
	cache, src := []float32{0, 1, 2, 3, 4, 5}, []float64{10, 11}
	equal(t, []float64{0, 10, 11, 3, 4, 5}, KVStore(cache, src, 1, 5))
	equal(t, []float64{0, 1, 2, 10, 11, 5}, KVStore(cache, src, 3, 5)) // the last place of five
	for _, offset := range []uint64{4, 5, 6, math.MaxUint32 - 1, math.MaxUint64 - 1} {
		equal(t, widen(cache), KVStore(cache, src, offset, 5), offset)
	}
	equal(t, widen(cache), KVStore(cache, src, 0, 1))
	equal(t, widen(cache), KVStore(cache, src[:0], 5, 5))
	equal(t, float32(1), cache[1])

	k, v := KVStorePair(cache, cache[:4], src, []float64{20, 21}, 2, 4)
	equal(t, []float64{0, 1, 10, 11, 4, 5}, k)
	equal(t, []float64{0, 1, 20, 21}, v)
}

func TestRingDensify(t *testing.T) {
	ring := []float32{0, 1, 10, 11, 20, 21} // three slots of two
	dst := []float64{-1, -2, -3, -4, -5, -6, -7}
	equal(t, []float64{20, 21, 0, 1, -5, -6, -7}, RingDensify(dst, ring, 2, 3, 2, 2))
	equal(t, []float64{10, 11, 20, 21, 0, 1, -7}, RingDensify(dst, ring, 2, 3, 99, 4)) // filled counts as 3, start as 1
	equal(t, dst, RingDensify(dst, ring, 2, 3, 0, 1))
	equal(t, dst, RingDensify(dst, ring, 2, 0, 5, 1))
	// 2³² − 1 is slot 0; the next one is slot 1, though a sum of 32 bits would be 0.
	equal(t, []float64{0, 1, 10, 11, 20, 21, -7}, RingDensify(dst, ring, 2, 3, 3, math.MaxUint32))
	equal(t, []float64{0, 1}, RingDensify(dst, ring, 2, 3, 1, math.MaxUint64)[:2]) // 2⁶⁴ − 1 is slot 0 as well
}
