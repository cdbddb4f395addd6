package oracle

import (
	"math"
	"testing"
)

// Two batches, two rows, two heads that share one key/value head, D = 3, and a cache with room for one more position.
func TestAttentionLayout(t *testing.T) {
	ln2 := float32(math.Ln2)
	a := Attention{
		Q: []float32{
			0, 0, 0, 1, 0, 0 /* row 1 */, 0, 0, 0, 0, 1, 0,
			0, 0, 1, 0, 1, 0 /* row 1 */, 1, 0, 0, 0, 0, 1,
		},
		K: []float32{0, 0, 0, ln2, 2 * ln2, 0, 9, 9, 9 /* batch 1 */, 0, 0, 0, 0, 0, 3 * ln2, 9, 9, 9},
		V: []float32{0, 1, 2, 15, 16, 17, 9, 9, 9 /* batch 1 */, 9, 18, 27, 0, 0, 0, 9, 9, 9},
		B: 2, Tq: 2, H: 2, Hkv: 1, D: 3, Capacity: 3, Tkv: 2, Scale: 1,
	}
	// Row 0 sees the first key. In row 1 the weights are 1:1 and 1:4, in batch 1 they are 1:1 and 1:8.
	near(t, []float64{
		0, 1, 2, 0, 1, 2, 7.5, 8.5, 9.5, 12, 13, 14,
		9, 18, 27, 9, 18, 27, 4.5, 9, 13.5, 1, 2, 3,
	}, a.Rows(), 1e-5)
	near(t, []float64{0, 0, 0, 2 * math.Ln2, 0, 0, 0, 3 * math.Ln2}, a.ScoreMagnitude(), 1e-6)
	near(t, a.Rows(), a.Magnitude(), 0) // no value is negative

	// The second rows alone, as a decode step has them. The chunk of the last position is not live.
	a.Q, a.Tq, a.QPos = append(append([]float32{}, a.Q[6:12]...), a.Q[18:]...), 1, 1
	packed := PackPartials(a.Partials(1))
	equal(t, 2*2*3*5, len(packed))
	near(t, []float64{0, 1, 0, 1, 2, 2 * math.Ln2, 1, 15, 16, 17, Unseen, 0, 0, 0, 0}, packed[15:30], 1e-6)
	near(t, []float64{0, 1, 9, 18, 27, 3 * math.Ln2, 1, 0, 0, 0, Unseen, 0, 0, 0, 0}, packed[45:60], 1e-6)
	near(t, []float64{7.5, 8.5, 9.5, 12, 13, 14, 4.5, 9, 13.5, 1, 2, 3}, Reduce(a, packed, 1), 1e-5)
	a.Sinks = []float32{float32(-inf), 0} // 1:4 and 1, 1:8 and 1
	near(t, []float64{7.5, 8.5, 9.5, 10, 65. / 6, 70. / 6, 4.5, 9, 13.5, 0.9, 1.8, 2.7}, Reduce(a, packed, 1), 1e-5)
}
