package oracle

import (
	"math"
	"testing"
)

func TestQKVLive(t *testing.T) {
	s := qkv()
	equal(t, s.RoPE(), s.Live())
	s.Position = math.MaxUint32 - 1
	equal(t, false, s.Live().Skipped)
	for _, p := range []uint64{math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64} { // two rows: the second has no number
		s.Position = p
		equal(t, QKVResult{Q: widen(s.Q), K: widen(s.K), V: widen(s.V), Skipped: true}, s.Live(), p)
	}
	s.T = 0
	equal(t, false, s.Live().Skipped)
}

func TestQKVQOnly(t *testing.T) {
	s := qkv()
	r := s.QOnly()
	equal(t, s.RoPE().Q, r.Q)
	equal(t, widen(s.K), r.K)
	equal(t, widen(s.V), r.V)
	s.K, s.V, s.KWeight = nil, nil, nil
	equal(t, r.Q, s.QOnly().Q)
}

func TestQKVMagnitude(t *testing.T) {
	s := qkv()
	r := s.Magnitude()
	near(t, []float64{3, 3, 3, 3, 3, 3, 3, 3}, r.Q, 1e-6)
	near(t, []float64{7, 7, 7, 7}, r.K, 1e-6)
	equal(t, []float64{7, 8, 9, 10}, r.V)

	s = QKV{
		Q: []float32{1, -1, 1, -1}, K: []float32{1, -1, 1, -1}, V: []float32{-1, 1, -2, 3},
		QWeight: []float32{1, 2, 3, 4}, KWeight: []float32{1, 2, 3, 4},
		T: 1, Hq: 1, Hkv: 1, D: 4, RotaryDim: 2, InvFreq: []float32{1},
	}
	r = s.Magnitude()
	near(t, []float64{4, 2, 4, 4}, r.Q, 1e-6) // the pair of 0 and 2 turns
	equal(t, r.Q, r.K)
	equal(t, []float64{1, 1, 2, 3}, r.V)
}

// Several key/value heads: all of them are stored, and the slices may be longer than the shape.
func TestQKVHeads(t *testing.T) {
	s := QKV{
		Q: []float32{1, 1, 1, 1}, K: []float32{1, 1, -1, 1, 9}, V: []float32{3, 4, 5, 6, 7},
		QWeight: []float32{1, 1}, KWeight: []float32{1, 2},
		T: 1, Hq: 2, Hkv: 2, D: 2, Position: math.MaxUint32,
	}
	equal(t, false, s.Live().Skipped) // the last position there is
	cache := make([]float32, 6)
	r := s.Store(cache, cache, 1, 6)
	equal(t, false, r.Skipped)
	near(t, []float64{0, 1, 2, -1, 2, 0}, r.CacheK, 1e-15)
	equal(t, []float64{0, 3, 4, 5, 6, 0}, r.CacheV)
	equal(t, []float64{3, 4, 5, 6}, r.V)
	equal(t, true, s.Store(cache, cache, 3, 6).Skipped)
}

// A quarter turn of each pair, whose elements can be told apart, of a head of eight of which six turn.
func TestRoPEPaired(t *testing.T) {
	freq := []float64{math.Pi / 2, math.Pi / 2, math.Pi / 2}
	for pairing, want := range map[Pairing][]float64{
		Halves:       {-5, -6, -7, 4, 1, 2, 3, 8},
		RotaryHalves: {-4, -5, -6, 1, 2, 3, 7, 8},
		Neighbours:   {-2, 1, -4, 3, -6, 5, 7, 8},
	} {
		head := []float64{1, 2, 3, 4, 5, 6, 7, 8}
		RoPEPaired(head, freq, 6, 1, pairing, 1)
		near(t, want, head, 1e-12)
		head = []float64{1, 2, 3, 4, 5, 6, 7, 8}
		RoPEPaired(head, freq, 6, 4, pairing, 0.5) // a whole turn, and half of what turned
		for i := range head {
			k := 0.5
			if want[i] == float64(i+1) {
				k = 1
			}
			near(t, []float64{k * float64(i+1)}, head[i:i+1], 1e-12)
		}
	}
}

// Biases belong to heads, come before the norm, and a head without a weight is not normalised.
func TestQKVBiases(t *testing.T) {
	s := QKV{
		Q: []float32{1, 1, 5, 6, 0, 0, 0, 1}, K: []float32{3, 4, 5, 6}, V: []float32{7, 8, 9, 10},
		QBias: []float32{2, 3, -2, 2}, VBias: []float32{10, 20},
		T: 2, Hq: 2, Hkv: 1, D: 2,
	}
	r := s.RoPE()
	equal(t, []float64{3, 4, 3, 8, 2, 3, -2, 3}, r.Q)
	equal(t, []float64{3, 4, 5, 6}, r.K)
	equal(t, []float64{17, 28, 19, 30}, r.V)
	s.QWeight = []float32{1, 2}
	near(t, []float64{3 / math.Sqrt(12.5), 8 / math.Sqrt(12.5)}, s.RoPE().Q[:2], 1e-12)
}
