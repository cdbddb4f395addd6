package oracle

import (
	"math"
	"testing"
)

// decoding is one query row of two heads that share a cache of five positions, three of them filled, D = 1. The scores of
// head 0 are ln2·(1, 2, 3), those of head 1 their doubles.
func decoding() Attention {
	return Attention{
		Q: []float32{1, 2}, K: []float32{1, 2, 3, 99, 99}, V: []float32{8, -4, 2, 99, 99},
		B: 1, Tq: 1, H: 2, Hkv: 1, D: 1, Capacity: 5, Tkv: 3, QPos: 2, Scale: math.Ln2,
	}
}

func TestAttentionSinks(t *testing.T) {
	a := decoding()
	// Weights 2:4:8 and 4:16:64.
	near(t, []float64{(16. - 16 + 16) / 14, (32. - 64 + 128) / 84}, a.Rows(), 1e-6)
	near(t, []float64{(16. + 16 + 16) / 14, (32. + 64 + 128) / 84}, a.Magnitude(), 1e-6)
	near(t, []float64{3 * math.Ln2, 6 * math.Ln2}, a.ScoreMagnitude(), 1e-6)
	a.Scale, a.K[2] = -a.Scale, -3
	near(t, []float64{3 * math.Ln2, 6 * math.Ln2}, a.ScoreMagnitude(), 1e-6)
	a = decoding()

	a.Sinks = []float32{math.Ln2, float32(-inf)}
	near(t, []float64{(16. - 16 + 16) / 16, (32. - 64 + 128) / 84}, a.Rows(), 1e-6)
	near(t, []float64{(16. + 16 + 16) / 16, (32. + 64 + 128) / 84}, a.Magnitude(), 1e-6)
	a.Sinks[0] = 1000 // takes everything, and overflows nothing
	equal(t, 0.0, a.Rows()[0])
	a.Tkv = 0
	equal(t, []float64{0, 0}, a.Rows()) // a sink is not a value
	equal(t, []float64{0, 0}, a.ScoreMagnitude())

	a = decoding()
	a.Q[0] = float32(nan)
	equal(t, true, math.IsNaN(a.Rows()[0]))
}

func TestAttentionSoftcap(t *testing.T) {
	a := decoding()
	a.Tkv, a.Softcap = 2, 1.5
	first, second := 1.5*math.Tanh(math.Ln2/1.5), 1.5*math.Tanh(2*math.Ln2/1.5)
	want := (8*math.Exp(first) - 4*math.Exp(second)) / (math.Exp(first) + math.Exp(second))
	near1(t, want, a.Rows()[0], 1e-6)
}

func TestAttentionWithCache(t *testing.T) {
	a := decoding()
	a.Tkv, a.QPos = 1, 0
	a.V[0] = math.Pi
	equal(t, 3.140625, a.WithCache(RoundBF16).Rows()[0])
	equal(t, float32(math.Pi), a.V[0])
	a.K[0] = 1 + 1.0/4096
	equal(t, float32(1), a.WithCache(RoundF16).K[0])
}

func TestPartials(t *testing.T) {
	a := decoding()
	equal(t, []int{3, 2, 1, 1}, []int{a.LiveChunks(1), a.LiveChunks(2), a.LiveChunks(3), a.LiveChunks(64)})
	p := a.Partials(2) // positions 0 1, 2 3, 4
	equal(t, 6, len(p))
	near(t, []float64{
		2 * math.Ln2, 1.5, 0.5*8 - 4, // e^(s−M) = ½, 1
		3 * math.Ln2, 1, 2,
		Unseen, 0, 0, // not live
		4 * math.Ln2, 1.25, 0.25*8 - 4,
		6 * math.Ln2, 1, 2,
		Unseen, 0, 0,
	}, PackPartials(p), 1e-6)
	equal(t, p, UnpackPartials(PackPartials(p), 1))

	a.Window = 1 // a live chunk that sees nothing
	near(t, []float64{Unseen, 0, 0, 3 * math.Ln2, 1, 2}, PackPartials(a.Partials(2)[:2]), 1e-6)
	near(t, []float64{2, 2}, Reduce(a, PackPartials(a.Partials(2)), 2), 1e-15)

	a.Tkv = math.MaxUint64
	equal(t, 3, a.LiveChunks(2))
}

func TestReduce(t *testing.T) {
	a := decoding()
	a.Sinks = []float32{math.Ln2, 5}
	for chunk := 1; chunk <= 6; chunk++ {
		packed := PackPartials(a.Partials(chunk))
		near(t, a.Rows(), Reduce(a, packed, chunk), 1e-14)
	}
	// Chunks that are not live may hold anything.
	packed := PackPartials(a.Partials(2))
	copy(packed[6:9], []float64{nan, nan, nan})
	copy(packed[15:18], []float64{1e30, 1, 1})
	near(t, a.Rows(), Reduce(a, packed, 2), 1e-14)
	// Head 0: |½·8 − 4| + e^ln2·2, over e^ln2·1.5... as weights 2:4:8 and 2 for the sink: (0 + 16)/16.
	near1(t, 1, ReduceMagnitude(a, packed, 2)[0], 1e-6)
	packed[5] = -2
	near1(t, -1, Reduce(a, packed, 2)[0], 1e-6)
	near1(t, 1, ReduceMagnitude(a, packed, 2)[0], 1e-6)

	a.Tkv = 0
	equal(t, []float64{0, 0}, Reduce(a, packed, 2))

	equal(t, []float64{0, 0, 0}, Merge(nil, 3, 0))
	equal(t, true, math.IsNaN(Merge([]Partial{{M: nan, L: nan, Acc: []float64{1}}}, 1, -inf)[0]))
}
