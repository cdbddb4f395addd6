package oracle

import "math"

// Attention is causal attention of a block of query rows over a key/value cache.
type Attention struct {
	Q    []float32 // [B][Tq][H][D]
	K, V []float32 // [B][Capacity][Hkv][D]

	B, Tq, H, Hkv, D int

	// Capacity is the number of positions a cache has room for, and its stride between batches. Tkv of them are
	// filled; a larger Tkv counts as Capacity.
	Capacity int
	Tkv      uint64

	QPos, KVPos uint64 // absolute positions of query row 0 and of cache row 0
	Window      uint64 // positions a query sees, its own included; 0 means all before it
	Scale       float64

	// Softcap limits the scores to ±Softcap by [Softcap], after the scale. 0 means no cap.
	Softcap float64

	// Sinks are logits, [H], that take part in a head's softmax without a value: they take weight from the keys. nil
	// means none, and so does −∞ for one head.
	Sinks []float32
}

// WithCache is the same attention over a cache of a narrower type: K and V rounded with [RoundF16] or [RoundBF16].
func (a Attention) WithCache(round func(float64) float64) Attention {
	a.K, a.V = narrow(a.K, round), narrow(a.V, round)
	return a
}

func narrow(x []float32, round func(float64) float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(round(float64(v)))
	}
	return out
}

// Rows computes attention, [B][Tq][H][D]:
//
//	s_j = softcap(Scale · q·k[b][j][h'])      h' = h / (H/Hkv)
//	out[b][t][h] = Σ_j e^s_j · v[b][j][h'] / (Σ_j e^s_j + e^Sinks[h])
//
// over the cache rows j < min(Tkv, Capacity) that query row t may see. With q = QPos+t and k = KVPos+j these are the
// ones with k ≤ q and, if there is a window, k ≥ max(0, q−Window+1). A row that sees nothing is zero, whatever its sink.
func (a Attention) Rows() []float64 {
	return a.rows(func(v float64) float64 { return v })
}

// Magnitude is [Attention.Rows] with the absolute values of V: the sum of the terms' absolute values, weighted as they
// are. An output is off by its roundings relative to this, and by what its scores are off, twice over, since the weights
// are e^s over a sum of such.
func (a Attention) Magnitude() []float64 { return a.rows(abs) }

// ScoreMagnitude is the largest |Scale|·Σ_d |q_d·k_d| among the keys that a row sees, [B][Tq][H], 0 if it sees none: the
// scale of a score's rounding error. [Softcap]'s slope is at most 1.
func (a Attention) ScoreMagnitude() []float64 {
	out := make([]float64, 0, a.B*a.Tq*a.H)
	for b := range a.B {
		for t := range a.Tq {
			for h := range a.H {
				q, largest := a.query(b, t, h), 0.0
				for j := range a.Capacity {
					if a.Visible(t, j) {
						largest = max(largest, abs(a.Scale)*dot(magnitudes(q), magnitudes(a.cache(a.K, b, j, h))))
					}
				}
				out = append(out, largest)
			}
		}
	}
	return out
}

// Visible tells whether query row t may see cache row j.
func (a Attention) Visible(t, j int) bool {
	if uint64(j) >= min(a.Tkv, uint64(a.Capacity)) {
		return false
	}
	q, k := a.QPos+uint64(t), a.KVPos+uint64(j)
	if k > q {
		return false
	}
	return a.Window == 0 || q-k < a.Window
}

func (a Attention) rows(value func(float64) float64) []float64 {
	out := make([]float64, 0, a.B*a.Tq*a.H*a.D)
	for b := range a.B {
		for t := range a.Tq {
			for h := range a.H {
				p := a.partial(b, t, h, 0, a.Capacity, value)
				out = append(out, Merge([]Partial{p}, a.D, a.sink(h))...)
			}
		}
	}
	return out
}

// partial is the softmax of query row t over the cache rows from … to−1 that it sees.
func (a Attention) partial(b, t, h, from, to int, value func(float64) float64) Partial {
	var rows []int
	var scores []float64
	p := Partial{M: math.Inf(-1), Acc: make([]float64, a.D)}
	for j := from; j < to; j++ {
		if !a.Visible(t, j) {
			continue
		}
		s := Softcap(a.Scale*dot(a.query(b, t, h), a.cache(a.K, b, j, h)), a.Softcap)
		rows, scores = append(rows, j), append(scores, s)
		p.M = max(p.M, s)
	}
	for i, j := range rows {
		w := math.Exp(scores[i] - p.M)
		p.L += w
		for d, v := range a.cache(a.V, b, j, h) {
			p.Acc[d] += w * value(float64(v))
		}
	}
	if len(rows) == 0 {
		p.M = Unseen
	}
	return p
}

func (a Attention) query(b, t, h int) []float32 {
	at := ((b*a.Tq+t)*a.H + h) * a.D
	return a.Q[at : at+a.D]
}

// cache is row j of K or V for the query head h.
func (a Attention) cache(kv []float32, b, j, h int) []float32 {
	at := ((b*a.Capacity+j)*a.Hkv + h/(a.H/a.Hkv)) * a.D
	return kv[at : at+a.D]
}

func (a Attention) sink(h int) float64 {
	if a.Sinks == nil {
		return math.Inf(-1)
	}
	return float64(a.Sinks[h])
}

func dot[A, B Real](a []A, b []B) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}

func magnitudes[T Real](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = abs(float64(v))
	}
	return out
}
