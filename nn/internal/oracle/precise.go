package oracle

import "math"

// Precise is attention over caches that are laid out head by head.
type Precise struct {
	Q    []float64 // [B][H][Tq][D]
	K    []float64 // [B][Hkv][Capacity][D]
	V    []float64 // [B][Hkv][VRows][D]
	Mask []float64 // added to the scores: [Tq][Tk], or [B][H][Tq][Tk] with PerHead; nil for none

	B, H, Hkv, D, Tq, Tk, Capacity, VRows int

	Offset  int // position of query row 0 among the keys
	Window  int // positions that a row sees at most, counted back from its own; 0 for no limit
	Causal  bool
	PerHead bool

	Scale, Softcap float64
	Sinks          []float64 // [H], or nil
}

// Sees says whether query row t may see key j. Masks add to scores instead.
func (a Precise) Sees(t, j int) bool {
	at := a.Offset + t
	if a.Causal && j > at {
		return false
	}
	return a.Window == 0 || at-j < a.Window
}

// score is that of query row t of head h and key j, before the sum of exponentials.
func (a Precise) score(b, h, t, j int) float64 {
	q := a.Q[((b*a.H+h)*a.Tq+t)*a.D:][:a.D]
	k := a.K[((b*a.Hkv+h/(a.H/a.Hkv))*a.Capacity+j)*a.D:][:a.D]
	dot := 0.0
	for i := range q {
		dot += q[i] * k[i]
	}
	s := a.Scale * dot
	if a.Softcap != 0 {
		s = a.Softcap * math.Tanh(s/a.Softcap)
	}
	if a.Mask != nil {
		m := a.Mask
		if a.PerHead {
			m = m[(b*a.H+h)*a.Tq*a.Tk:]
		}
		s += m[t*a.Tk+j]
	}
	return s
}

// Rows computes the sum of e^s v over the sum of e^s and the sink's, [B][H][Tq][D], and what it is with the absolute values of V.
func (a Precise) Rows() (out, magnitude []float64) {
	out = make([]float64, a.B*a.H*a.Tq*a.D)
	magnitude = make([]float64, len(out))
	for b := range a.B {
		for h := range a.H {
			for t := range a.Tq {
				at := ((b*a.H+h)*a.Tq + t) * a.D
				a.row(b, h, t, out[at:at+a.D], magnitude[at:at+a.D])
			}
		}
	}
	return out, magnitude
}

func (a Precise) row(b, h, t int, out, magnitude []float64) {
	scores := make([]float64, a.Tk)
	most := math.Inf(-1)
	for j := range scores {
		scores[j] = math.Inf(-1)
		if a.Sees(t, j) {
			scores[j] = a.score(b, h, t, j)
		}
		most = max(most, scores[j])
	}
	if math.IsInf(most, -1) {
		return // sees nothing: zeros
	}
	total := 0.0
	if a.Sinks != nil {
		most = max(most, a.Sinks[h])
		total = math.Exp(a.Sinks[h] - most)
	}
	for j, s := range scores {
		if math.IsInf(s, -1) {
			continue
		}
		e := math.Exp(s - most)
		total += e
		v := a.V[((b*a.Hkv+h/(a.H/a.Hkv))*a.VRows+j)*a.D:][:a.D]
		for i := range out {
			out[i] += e * v[i]
			magnitude[i] += e * math.Abs(v[i])
		}
	}
	for i := range out {
		out[i] /= total
		magnitude[i] /= total
	}
}
