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
