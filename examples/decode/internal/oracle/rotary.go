package oracle

import (
	"math"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
)

// rotary is rotary position embedding: frequencies of pairs of elements. Frequencies and angles are float32 numbers, rounded
// where the original implementations round them: they are part of what a model was trained with.
type rotary struct {
	frequencies []float32
	factor      float64 // of queries and keys
	neighbours  bool
}

func newRotary(r checkpoint.RoPE) rotary {
	out := rotary{factor: 1, neighbours: r.Neighbours}
	s := r.Scaling
	if s.Kind == checkpoint.ScalingYaRN {
		out.factor = s.AttentionFactor
	}
	for p := range r.Dim / 2 {
		f := 1 / float32(math.Pow(r.Theta, 2*float64(p)/float64(r.Dim)))
		switch s.Kind {
		case checkpoint.ScalingLinear:
			f /= float32(s.Factor)
		case checkpoint.ScalingLlama3:
			f = float32(llama3(float64(f), s))
		case checkpoint.ScalingYaRN:
			f = float32(yarn(float64(f), p, r))
		}
		if s.Factors != nil {
			f /= s.Factors[p]
		}
		out.frequencies = append(out.frequencies, f)
	}
	return out
}

// llama3 is Llama 3.1's scaling: waves longer than the original text allows for are stretched by the factor.
func llama3(f float64, s checkpoint.Scaling) float64 {
	turns := float64(s.OriginalPositions) * f / (2 * math.Pi)
	switch {
	case turns < s.LowFreqFactor:
		return f / s.Factor
	case turns > s.HighFreqFactor:
		return f
	}
	smooth := (turns - s.LowFreqFactor) / (s.HighFreqFactor - s.LowFreqFactor)
	return (1-smooth)*f/s.Factor + smooth*f
}

// yarn is the scaling of "YaRN", arXiv:2309.00071, as Hugging Face has it: a ramp over the pairs between those that turn
// BetaFast and BetaSlow times in the original text.
func yarn(f float64, p int, r checkpoint.RoPE) float64 {
	s := r.Scaling
	pair := func(turns float64) float64 {
		return float64(r.Dim) * math.Log(float64(s.OriginalPositions)/(turns*2*math.Pi)) / (2 * math.Log(r.Theta))
	}
	low, high := pair(s.BetaFast), pair(s.BetaSlow)
	if s.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = math.Max(low, 0), math.Min(high, float64(r.Dim-1))
	if low == high {
		high += 0.001
	}
	scaled := math.Min(math.Max((float64(p)-low)/(high-low), 0), 1)
	return f/s.Factor*scaled + f*(1-scaled)
}

// turn turns a head: element 2p together with 2p + 1, or p together with that which is half of what turns further on.
func (r rotary) turn(x []float64, position int) {
	half := len(r.frequencies)
	for p, f := range r.frequencies {
		i, j := p, p+half
		if r.neighbours {
			i, j = 2*p, 2*p+1
		}
		sin, cos := math.Sincos(float64(float32(position) * f))
		a, b := x[i]*r.factor, x[j]*r.factor
		x[i], x[j] = a*cos-b*sin, b*cos+a*sin
	}
}
