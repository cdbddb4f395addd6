package oracle

import "math"

// GELUTanh is the tanh form of GELU: ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
//
// For large |x| it is x or 0. The factor x is the argument itself: an implementation that clamps it where it guards the
// tanh clips large activations.
func GELUTanh(x float64) float64 {
	if math.IsInf(x, -1) {
		return 0 // the limit; the formula would multiply ∞ by 0
	}
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// Softcap is limit·tanh(v/limit), which keeps v within ±limit. A limit that is not a positive finite number means no
// cap: v.
func Softcap(v, limit float64) float64 {
	if !(limit > 0) || math.IsInf(limit, 1) {
		return v
	}
	return limit * math.Tanh(v/limit)
}

// NoToken is what [SoftcapArgmax] answers when there is nothing to choose from.
const NoToken = 0xFFFFFFFF

// SoftcapArgmax is the index of the largest of the capped logits ([Softcap]). Of equal ones the lowest index wins.
// Logits that are NaN or infinite are ignored; when no other is left the index is [NoToken].
//
// margin is the distance to the second best capped logit (+∞ when there is none): a float32 implementation can be held
// to the index where the margin is larger than its rounding error, no more.
func SoftcapArgmax[T Real](logits []T, limit float64) (index uint32, margin float64) {
	index = NoToken
	best, second := math.Inf(-1), math.Inf(-1)
	for i, l := range logits {
		if v := float64(l); math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		v := Softcap(float64(l), limit)
		if index == NoToken || v > best {
			best, second, index = v, best, uint32(i)
		} else if v > second {
			second = v
		}
	}
	if math.IsInf(second, -1) {
		return index, math.Inf(1)
	}
	return index, best - second
}
