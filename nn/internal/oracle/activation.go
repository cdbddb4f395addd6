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

// SoftcapArgmax is the index of the largest logit and its capped value ([Softcap]). Capping is strictly increasing, so it
// does not change which one that is, though it may round different logits to equal values. Of equal logits the lowest index
// wins. Those that are NaN or infinite are ignored; when no other is left the index is [NoToken] and the value 0.
//
// margin is the distance between the two best capped logits, +∞ when there are not two: a float32 implementation of what
// comes before can be held to the index where the margin is larger than its rounding error, no more.
func SoftcapArgmax[T Real](logits []T, limit float64) (index uint32, value, margin float64) {
	index = NoToken
	best, second := math.Inf(-1), math.Inf(-1)
	for i, l := range logits {
		v := float64(l)
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
		case index == NoToken || v > best:
			best, second, index = v, best, uint32(i)
		case v > second:
			second = v
		}
	}
	switch {
	case index == NoToken:
		return index, 0, math.Inf(1)
	case math.IsInf(second, -1):
		return index, Softcap(best, limit), math.Inf(1)
	}
	return index, Softcap(best, limit), Softcap(best, limit) - Softcap(second, limit)
}
