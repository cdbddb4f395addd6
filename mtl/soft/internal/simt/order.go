package simt

import "math/bits"

// An Order is the order in which the threadgroups of a checked dispatch run, and the simdgroups between barriers. Metal
// may choose any.
type Order uint8

// The orders.
const (
	InOrder Order = iota
	Reversed
	Shuffled
)

// An order is a permutation of n numbers.
type order struct {
	kind Order
	n    uint64
	seed uint64
	half uint // bits of each half of a Feistel network over at least n numbers
}

func newOrder(kind Order, seed, n uint64) order {
	return order{kind: kind, n: n, seed: seed, half: uint(bits.Len64(max(n, 2)-1)+1) / 2}
}

// at is where number i < n goes.
func (o *order) at(i uint64) uint64 {
	switch o.kind {
	case Reversed:
		return o.n - 1 - i
	case Shuffled:
		// A network permutes the numbers of an even number of bits, at most four times too many: walk until one is in range.
		for {
			i = o.mix(i)
			if i < o.n {
				return i
			}
		}
	}
	return i
}

func (o *order) mix(i uint64) uint64 {
	mask := uint64(1)<<o.half - 1
	l, r := i>>o.half&mask, i&mask
	for k := uint64(0); k < 4; k++ {
		l, r = r, l^scramble(o.seed+scramble(r<<3+k))&mask
	}
	return l<<o.half | r
}

// scramble is the finisher of SplitMix64.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
