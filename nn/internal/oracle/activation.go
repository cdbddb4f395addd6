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

// SiLU is x/(1 + e^−x), and its limit 0 for −∞.
func SiLU(x float64) float64 {
	if math.IsInf(x, -1) {
		return 0
	}
	return x / (1 + math.Exp(-x))
}

// Activation is the function that a matrix product ends with.
type Activation int

// The activations: x itself, max(0, x), [GELUTanh] and [SiLU].
const (
	ActNone Activation = iota
	ActReLU
	ActGELU
	ActSiLU
)

// Apply is the value at x. NaN stays NaN.
func (a Activation) Apply(x float64) float64 {
	switch a {
	case ActReLU:
		if x < 0 {
			return 0
		}
	case ActGELU:
		return GELUTanh(x)
	case ActSiLU:
		return SiLU(x)
	}
	return x
}

// Slope is an upper bound of the derivative's absolute value: how much an error of the argument can grow.
func (a Activation) Slope() float64 {
	switch a {
	case ActGELU:
		return 1.13
	case ActSiLU:
		return 1.1
	}
	return 1
}

// Gated is out[i] = act(gate[i])·up[i], the middle of a gated feed-forward block: SwiGLU with [ActSiLU], GeGLU
// with [ActGELU].
func Gated[G, U Real](gate []G, up []U, act Activation) []float64 {
	out := make([]float64, len(gate))
	for i, g := range gate {
		out[i] = act.Apply(float64(g)) * float64(up[i])
	}
	return out
}

// Scale is out[i] = factor·x[i].
func Scale[T Real](x []T, factor float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = factor * float64(v)
	}
	return out
}

// Add is out[i] = a[i] + b[i].
func Add[A, B Real](a []A, b []B) []float64 {
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = float64(v) + float64(b[i])
	}
	return out
}

// Softcap is limit·tanh(v/limit), which keeps v within ±limit. A limit that is not a positive finite number means no
// cap: v.
func Softcap(v, limit float64) float64 {
	if !(limit > 0) || math.IsInf(limit, 1) {
		return v
	}
	return limit * math.Tanh(v/limit)
}
