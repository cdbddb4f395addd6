package oracle

import "math"

// Pairing says which elements of a head turn together.
type Pairing int

const (
	Halves       Pairing = iota // i and i + D/2
	RotaryHalves                // i and i + rotaryDim/2
	Neighbours                  // 2i and 2i + 1
)

// Pair is the pair that turns with the i-th frequency, of a head of length d.
func (p Pairing) Pair(i, d, rotaryDim int) (int, int) {
	switch p {
	case RotaryHalves:
		return i, i + rotaryDim/2
	case Neighbours:
		return 2 * i, 2*i + 1
	}
	return i, i + d/2
}

// RoPE rotates one head of length D in place by its position, in the NeoX arrangement: element p turns together with
// element p + D/2 by the angle position·freq[p],
//
//	a, b = x[p], x[p+D/2]
//	x[p], x[p+D/2] = a·cos − b·sin, b·cos + a·sin
//
// for the first rotaryDim/2 pairs. The others stay as they are.
func RoPE[F Real](head []float64, freq []F, rotaryDim int, position uint64) {
	RoPEPaired(head, freq, rotaryDim, position, Halves, 1)
}

// RoPEPaired is [RoPE] of other pairs; what turns is multiplied by factor.
func RoPEPaired[F Real](head []float64, freq []F, rotaryDim int, position uint64, pairing Pairing, factor float64) {
	for p := range rotaryDim / 2 {
		sin, cos := math.Sincos(float64(position) * float64(freq[p]))
		i, j := pairing.Pair(p, len(head), rotaryDim)
		a, b := head[i], head[j]
		head[i], head[j] = factor*(a*cos-b*sin), factor*(b*cos+a*sin)
	}
}

// QKV are the projections of T consecutive positions and what turns them into attention's operands.
type QKV struct {
	Q, K, V []float32 // [T][Hq][D], [T][Hkv][D], [T][Hkv][D]

	// QWeight, KWeight, VWeight are the norm weights, [D]. Without one, those heads are not normalised: the values of Gemma 3,
	// and all of Llama.
	QWeight, KWeight, VWeight []float32

	// QBias, KBias, VBias are added to each row before anything else: [Hq][D], [Hkv][D], [Hkv][D], or nil.
	QBias, KBias, VBias []float32

	T, Hq, Hkv, D, RotaryDim int

	Position uint64    // of the first of the T positions
	InvFreq  []float32 // [RotaryDim/2]
	Eps      float64

	Pairing Pairing
	Factor  float64 // of what turns; 0 for 1
}

// QKVResult is what [QKV.RoPE] and [QKV.Store] compute: the operands, and the caches after the step.
type QKVResult struct {
	Q, K, V        []float64
	CacheK, CacheV []float64
	Skipped        bool // the store was refused: nothing changed
}

// RoPE adds the biases, normalises each head that has a weight by [RMSNorm], and rotates those of Q and K by [RoPEPaired],
// position Position + t for row t.
func (s QKV) RoPE() QKVResult {
	return QKVResult{
		Q: s.heads(s.Q, s.QBias, s.QWeight, s.Hq, true),
		K: s.heads(s.K, s.KBias, s.KWeight, s.Hkv, true),
		V: s.heads(s.V, s.VBias, s.VWeight, s.Hkv, false),
	}
}

// Live is [QKV.RoPE] with a position that is read on the device and may be anything: if Position or that of a later row is
// no uint32, the operation is skipped and everything keeps what it has.
func (s QKV) Live() QKVResult {
	if !s.positions() {
		return QKVResult{Q: widen(s.Q), K: widen(s.K), V: widen(s.V), Skipped: true}
	}
	return s.RoPE()
}

// QOnly is [QKV.RoPE] of the queries alone, in Q of the result. Keys, values and their weights need not be there, and if
// they are, they stay as they are.
func (s QKV) QOnly() QKVResult {
	return QKVResult{Q: s.heads(s.Q, s.QBias, s.QWeight, s.Hq, true), K: widen(s.K), V: widen(s.V)}
}

// Magnitude is the scale of the rounding error of Q, K and V: |a|+|b| where a pair of normalised elements turns, which
// bounds what an error of the angle does as well as the terms' absolute values, and |x| elsewhere.
func (s QKV) Magnitude() QKVResult {
	upright := s
	upright.InvFreq = make([]float32, s.RotaryDim/2) // no speed, no turn
	r := upright.RoPE()
	for _, x := range [][]float64{r.Q, r.K} {
		for at := 0; at < len(x); at += s.D {
			for p := range s.RotaryDim / 2 {
				i, j := s.Pairing.Pair(p, s.D, s.RotaryDim)
				a, b := &x[at+i], &x[at+j]
				*a = abs(*a) + abs(*b)
				*b = *a
			}
		}
	}
	return QKVResult{Q: magnitudes(r.Q), K: magnitudes(r.K), V: magnitudes(r.V)}
}

// Store is [QKV.RoPE] followed by copying the T·Hkv·D finished keys and values to element offset of the two caches,
// which hold capacity elements each.
//
// If they do not fit there, offset + T·Hkv·D > capacity, or if a position is no uint32, the whole operation is skipped:
// queries, keys, values and caches keep what they have. Offset and position come from device memory, so they may be
// anything, and the sums are those of mathematics: they do not wrap.
//
// A cache of a narrower type stores rounded numbers: round CacheK and CacheV ([RoundF16s], [RoundBF16s]), which leaves
// what such a cache held before as it is. Q, K and V are not rounded by it.
func (s QKV) Store(cacheK, cacheV []float32, offset, capacity uint64) QKVResult {
	n := uint64(s.T) * uint64(s.Hkv) * uint64(s.D)
	if n > capacity || offset > capacity-n || !s.positions() {
		return QKVResult{
			Q: widen(s.Q), K: widen(s.K), V: widen(s.V),
			CacheK: widen(cacheK), CacheV: widen(cacheV),
			Skipped: true,
		}
	}
	r := s.RoPE()
	r.CacheK, r.CacheV = widen(cacheK), widen(cacheV)
	copy(r.CacheK[offset:offset+n], r.K)
	copy(r.CacheV[offset:offset+n], r.V)
	return r
}

// positions tells whether the positions of all rows are uint32.
func (s QKV) positions() bool {
	return s.T == 0 || s.Position <= math.MaxUint32 && uint64(s.T)-1 <= math.MaxUint32-s.Position
}

func (s QKV) heads(x, bias, weight []float32, heads int, rotate bool) []float64 {
	out := widen(x[:s.T*heads*s.D])
	if bias != nil {
		for i := range out {
			out[i] += float64(bias[i%(heads*s.D)])
		}
	}
	if weight != nil {
		out = RMSNorm(out, weight, s.T*heads, s.D, s.Eps)
	}
	factor := s.Factor
	if factor == 0 {
		factor = 1
	}
	if rotate {
		for t := range s.T {
			for h := range heads {
				at := (t*heads + h) * s.D
				RoPEPaired(out[at:at+s.D], s.InvFreq, s.RotaryDim, s.Position+uint64(t), s.Pairing, factor)
			}
		}
	}
	return out
}

func widen[T Real](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
