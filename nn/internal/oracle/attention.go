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
}

// Rows computes attention, [B][Tq][H][D]:
//
//	out[b][t][h] = Σ_j softmax_j(Scale · q·k[b][j][h']) · v[b][j][h']      h' = h / (H/Hkv)
//
// over the cache rows j < min(Tkv, Capacity) that query row t may see. With q = QPos+t and k = KVPos+j these are the
// ones with k ≤ q and, if there is a window, k ≥ max(0, q−Window+1). A row that sees nothing is zero.
func (a Attention) Rows() []float64 {
	out := make([]float64, a.B*a.Tq*a.H*a.D)
	for b := range a.B {
		for t := range a.Tq {
			for h := range a.H {
				at := ((b*a.Tq+t)*a.H + h) * a.D
				a.row(out[at:at+a.D], a.Q[at:at+a.D], b, t, h)
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

func (a Attention) row(out []float64, q []float32, b, t, h int) {
	kv := func(cache []float32, j int) []float32 {
		at := ((b*a.Capacity+j)*a.Hkv + h/(a.H/a.Hkv)) * a.D
		return cache[at : at+a.D]
	}
	var rows []int
	var scores []float64
	highest := math.Inf(-1)
	for j := range a.Capacity {
		if !a.Visible(t, j) {
			continue
		}
		s := a.Scale * dot(q, kv(a.K, j))
		rows, scores = append(rows, j), append(scores, s)
		highest = math.Max(highest, s)
	}
	total := 0.0
	for i, j := range rows {
		p := math.Exp(scores[i] - highest)
		total += p
		for d, v := range kv(a.V, j) {
			out[d] += p * float64(v)
		}
	}
	if len(rows) == 0 {
		return
	}
	for d := range out {
		out[d] /= total
	}
}

func dot[A, B Real](a []A, b []B) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}
