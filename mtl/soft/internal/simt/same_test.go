package simt

import (
	"hash/fnv"
	"math/rand"
	"testing"
)

// resultsHash is what all operations give on a fixed set of arguments; it was the same on amd64 and arm64.
const resultsHash = 0x908ee9b5775241a

// TestSameEverywhere finds a machine on which an operation gives another result: by fused multiplications, assembly in
// package math, or conversions that processors do differently.
func TestSameEverywhere(t *testing.T) {
	rng := rand.New(rand.NewSource(42))
	h := fnv.New64a()
	var b [8]byte
	for o := op(1); o < opLaneOps; o++ {
		info := &laneOps[o]
		for i := 0; i < 3000; i++ {
			var x [3]uint64
			for k := range x {
				x[k] = interesting(rng)
				if !info.argWide[k] {
					x[k] = uint64(uint32(x[k]))
				}
			}
			v := info.eval(x[0], x[1], x[2], uint64(1+i%3))
			if sameBits(v, 0x7fc00000) || sameBits(v, 0x7ff8000000000000) {
				v = 0x7fc00000 // only the bits of a NaN may differ
			}
			for k := range b {
				b[k] = byte(v >> (8 * k))
			}
			h.Write(b[:])
		}
	}
	if got := h.Sum64(); got != resultsHash {
		t.Errorf("the results hash to %#x, want %#x", got, uint64(resultsHash))
	}
}
