package oracle

import "math"

// NoToken is the index of nothing: what there is to choose from when no number is finite.
const NoToken = 0xFFFFFFFF

// SoftcapArgmax is the index of the largest logit and its capped value ([Softcap]). Capping is strictly increasing, so it
// does not change which one that is, though it may round different logits to equal values. Of equal logits the lowest index
// wins. Those that are NaN or infinite are ignored; when no other is left the index is [NoToken] and the value 0.
//
// margin is the distance between the two best capped logits, +∞ when there are not two: a float32 implementation of what
// comes before can be held to the index where the margin is larger than its rounding error, no more.
//
// This is also what a complete argmax in several passes answers, whatever its groups, if it keeps apart what capping
// makes equal: far beyond the limit all logits have the same capped value, and passes that compare those may answer
// another index where margin is 0.
func SoftcapArgmax[T Real](logits []T, limit float64) (index uint32, value, margin float64) {
	return choose(logits, nil, 0, limit)
}

// ArgmaxGroup is how many numbers one group of [ArgmaxPass] chooses from.
const ArgmaxGroup = 256

// ArgmaxGroups is the number of groups of n numbers, ⌈n/256⌉.
func ArgmaxGroups(n int) int { return (n + ArgmaxGroup - 1) / ArgmaxGroup }

// ArgmaxPass is one pass of an argmax in several: [SoftcapArgmax] of each group of [ArgmaxGroup] neighbours. The values
// and indices of one pass are the values and ids of the next, until one group is left.
//
// ids name the values; a nil ids names them 0, 1, 2 … as the first pass does. Of equal values the lowest id wins. A value
// whose id is [NoToken] is ignored, whatever it is. Within a group the values are compared as they come, and the winner's
// is capped. Only the first pass caps, the others pass a limit of 0; or the last one does, which keeps apart what capping
// makes equal.
func ArgmaxPass[T Real](values []T, ids []uint32, limit float64) (indices []uint32, best, margins []float64) {
	for from := 0; from < len(values); from += ArgmaxGroup {
		to := min(from+ArgmaxGroup, len(values))
		var names []uint32
		if ids != nil {
			names = ids[from:to]
		}
		i, v, m := choose(values[from:to], names, uint32(from), limit)
		indices, best, margins = append(indices, i), append(best, v), append(margins, m)
	}
	return indices, best, margins
}

// SoftcapLogits caps each logit with [Softcap]. An infinite one becomes ±limit, NaN stays NaN.
func SoftcapLogits[T Real](logits []T, limit float64) []float64 {
	out := make([]float64, len(logits))
	for i, l := range logits {
		out[i] = Softcap(float64(l), limit)
	}
	return out
}

// SoftcapSample is [SoftcapLogits] together with the token that [SoftcapArgmax] chooses from the logits as they came, and
// its margin. The device serves up to 256 logits so; the formula has no limit.
func SoftcapSample[T Real](logits []T, limit float64) (capped []float64, token uint32, margin float64) {
	token, _, margin = SoftcapArgmax(logits, limit)
	return SoftcapLogits(logits, limit), token, margin
}

// choose is SoftcapArgmax of values named by ids, or first, first+1 … if ids is nil.
func choose[T Real](values []T, ids []uint32, first uint32, limit float64) (index uint32, value, margin float64) {
	index = NoToken
	best, second := math.Inf(-1), math.Inf(-1)
	for i, x := range values {
		v, id := float64(x), first+uint32(i)
		if ids != nil {
			id = ids[i]
		}
		switch {
		case id == NoToken || math.IsNaN(v) || math.IsInf(v, 0):
		case index == NoToken || v > best || v == best && id < index:
			best, second, index = v, best, id
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
