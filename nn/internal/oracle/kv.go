package oracle

// KVStore copies src to element offset of a cache that holds capacity elements. If src does not fit there, offset >
// capacity or len(src) > capacity − offset, nothing is copied: the offset comes from device memory and may be anything.
// The result is the cache afterwards.
//
// A cache of a narrower type stores rounded numbers: pass src rounded ([RoundF16s], [RoundBF16s]).
func KVStore[D, S Real](cache []D, src []S, offset, capacity uint64) []float64 {
	out := widen(cache)
	if n := uint64(len(src)); offset <= capacity && n <= capacity-offset {
		copy(out[offset:offset+n], widen(src))
	}
	return out
}

// KVStorePair is [KVStore] of keys and of values at the same offset of caches of the same capacity.
func KVStorePair[D, S Real](cacheK, cacheV []D, k, v []S, offset, capacity uint64) (outK, outV []float64) {
	return KVStore(cacheK, k, offset, capacity), KVStore(cacheV, v, offset, capacity)
}

// RingDensify copies the filled slots of a ring buffer in the order in which they were written, oldest first, to the
// front of dst:
//
//	out[t][i] = ring[(start + t) mod capacity][i]      t < min(filled, capacity), i < slot
//
// slot is the number of elements per slot. What lies behind keeps what dst has. start and filled come from device memory
// and may be anything; start + t does not wrap.
func RingDensify[D, S Real](dst []D, ring []S, slot, capacity int, filled, start uint64) []float64 {
	out := widen(dst)
	if capacity == 0 {
		return out
	}
	for t := range min(filled, uint64(capacity)) {
		at := int((start%uint64(capacity) + t) % uint64(capacity) * uint64(slot))
		copy(out[int(t)*slot:], widen(ring[at:at+slot]))
	}
	return out
}
