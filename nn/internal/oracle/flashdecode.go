package oracle

import "math"

// Partial is attention over some of the keys, not yet divided: with s the scores of the keys seen,
//
//	M = max s      L = Σ e^(s−M)      Acc = Σ e^(s−M)·v
//
// L is 0 if no key was seen; M is then [Unseen] and means nothing.
type Partial struct {
	M, L float64
	Acc  []float64 // [D]
}

// Unseen is the maximum of no scores, the lowest float32: a kernel cannot rely on −∞.
const Unseen = -math.MaxFloat32

// LiveChunks is how many chunks of the cache have filled positions: ⌈min(Tkv, Capacity)/chunk⌉. Decoding writes partial
// results for those only, and merges no others.
func (a Attention) LiveChunks(chunk int) int {
	return (int(min(a.Tkv, uint64(a.Capacity))) + chunk - 1) / chunk
}

// Partials is the first pass of decoding (Tq is 1) that is split over the cache: attention of every head over each chunk
// of neighbouring positions apart, [B][H][chunks] with ⌈Capacity/chunk⌉ chunks. Those that are not live see nothing. A
// live one may see nothing either, with a window. Sinks have no part in it.
func (a Attention) Partials(chunk int) []Partial {
	var out []Partial
	for b := range a.B {
		for h := range a.H {
			for from := 0; from < a.Capacity; from += chunk {
				to := min(from+chunk, a.Capacity)
				out = append(out, a.partial(b, 0, h, from, to, func(v float64) float64 { return v }))
			}
		}
	}
	return out
}

// PackPartials lays partial results out as the device keeps them: D+2 numbers each, M, L and Acc.
func PackPartials(partials []Partial) []float64 {
	var out []float64
	for _, p := range partials {
		out = append(append(out, p.M, p.L), p.Acc...)
	}
	return out
}

// UnpackPartials is the inverse of [PackPartials], for heads of d elements.
func UnpackPartials[T Real](packed []T, d int) []Partial {
	out := make([]Partial, len(packed)/(d+2))
	for i := range out {
		at := packed[i*(d+2) : (i+1)*(d+2)]
		out[i] = Partial{M: float64(at[0]), L: float64(at[1]), Acc: widen(at[2:])}
	}
	return out
}

// Merge is attention over the keys of all the partial results together, exactly: with m the largest M among those that
// saw a key, and the sink,
//
//	out = Σ e^(M−m)·Acc / (Σ e^(M−m)·L + e^(sink−m))
//
// A sink of −∞ is none. If no key was seen, the result is zero, d of them.
func Merge(partials []Partial, d int, sink float64) []float64 {
	out := make([]float64, d)
	highest, seen := sink, false
	for _, p := range partials {
		if p.L != 0 {
			highest, seen = max(highest, p.M), true
		}
	}
	if !seen {
		return out
	}
	total := math.Exp(sink - highest)
	for _, p := range partials {
		if p.L != 0 {
			w := math.Exp(p.M - highest)
			total += w * p.L
			for i, v := range p.Acc {
				out[i] += w * v
			}
		}
	}
	for i := range out {
		out[i] /= total
	}
	return out
}

// Reduce is the second pass of decoding: [Merge] of the live chunks of every head, [B][H][D], from partial results in the
// layout of [Attention.Partials] and [PackPartials]. They may come from the device: what chunks that are not live hold
// does not matter.
func Reduce[T Real](a Attention, packed []T, chunk int) []float64 {
	chunks, live := (a.Capacity+chunk-1)/chunk, a.LiveChunks(chunk)
	partials := UnpackPartials(packed, a.D)
	out := make([]float64, 0, a.B*a.H*a.D)
	for row := range a.B * a.H {
		out = append(out, Merge(partials[row*chunks:row*chunks+live], a.D, a.sink(row%a.H))...)
	}
	return out
}

// ReduceMagnitude is [Reduce] with the absolute values of the accumulators: the scale of the merge's own rounding error.
func ReduceMagnitude[T Real](a Attention, packed []T, chunk int) []float64 {
	partials := UnpackPartials(packed, a.D)
	for i := range partials {
		partials[i].Acc = magnitudes(partials[i].Acc)
	}
	return Reduce(a, PackPartials(partials), chunk)
}
