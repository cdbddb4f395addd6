package oracle

import (
	"math"
	"testing"
)

func TestArgmaxPass(t *testing.T) {
	equal(t, []int{0, 1, 1, 2}, []int{ArgmaxGroups(0), ArgmaxGroups(1), ArgmaxGroups(256), ArgmaxGroups(257)})

	logits := make([]float32, 600)
	logits[3], logits[7] = 2, 1
	for i := 256; i < 512; i++ {
		logits[i] = float32(nan)
	}
	logits[599] = 2
	ids, values, margins := ArgmaxPass(logits, nil, 0)
	equal(t, []uint32{3, NoToken, 599}, ids)
	equal(t, []float64{2, 0, 2}, values)
	equal(t, []float64{1, inf, 2}, margins)
	// The group without a choice has the value 0, which does not count.
	ids, values, margins = ArgmaxPass([]float64{-1, 0, -2}, []uint32{3, NoToken, 599}, 0)
	equal(t, []uint32{3}, ids)
	equal(t, []float64{-1}, values)
	equal(t, []float64{1}, margins)
	// Of equals the lowest id, not the first place.
	ids, _, margins = ArgmaxPass([]float64{5, 5, 5}, []uint32{9, 2, 4}, 0)
	equal(t, []uint32{2}, ids)
	equal(t, []float64{0}, margins)

	_, values, _ = ArgmaxPass(logits, nil, 10)
	near(t, []float64{10 * math.Tanh(0.2), 0, 10 * math.Tanh(0.2)}, values, 1e-15)

	ids, values, margins = ArgmaxPass([]float32(nil), nil, 0)
	equal(t, 0, len(ids)+len(values)+len(margins))
}

// However many passes there are, they end where a single one does.
func TestArgmaxPasses(t *testing.T) {
	for _, n := range []int{1, 256, 257, 65536, 65537} {
		logits := make([]float64, n)
		for i := range logits {
			logits[i] = float64(i * 7919 % n / 3)
			if i%5 == 0 {
				logits[i] = nan
			}
		}
		want, value, _ := SoftcapArgmax(logits, 1e6)
		var ids []uint32
		limit := 1e6 // far enough that no two logits have equal capped values
		values := logits
		for first := true; first || len(values) > 1; first = false {
			ids, values, _ = ArgmaxPass(values, ids, limit)
			limit = 0
		}
		equal(t, want, ids[0], n)
		equal(t, value, values[0], n)
	}
}

func TestSoftcapSample(t *testing.T) {
	logits := []float64{1, inf, 2, -inf}
	want := []float64{4 * math.Tanh(0.25), 4, 4 * math.Tanh(0.5), -4}
	near(t, want, SoftcapLogits(logits, 4), 1e-15)
	capped, token, margin := SoftcapSample(logits, 4)
	near(t, want, capped, 1e-15)
	equal(t, uint32(2), token)
	near1(t, want[2]-want[0], margin, 1e-15)
	equal(t, true, math.IsNaN(SoftcapLogits([]float32{float32(nan)}, 4)[0]))
	equal(t, logits, SoftcapLogits(logits, 0))
}
