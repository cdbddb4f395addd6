package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// RoPEParameters say which frequencies a model's rotary position embedding has: a base, and what was done to the frequencies
// to make texts longer than those that the model was first trained with.
type RoPEParameters struct {
	Theta     float64 // the base: 10,000 in the paper, 500,000 in Llama 3
	RotaryDim int     // even: how many elements of a head turn

	// Dim is what the exponents are divided by; 0 for RotaryDim. Models that turn a part of a head have RotaryDim here, as
	// Hugging Face's partial_rotary_factor has, or HeadDim, where the part that turns is that of a head that turns as a whole.
	Dim int

	Scaling RoPEScaling // nil for none
}

// RoPEScaling is how frequencies are changed: [RoPELinear], [RoPELlama3], [RoPEYaRN] or [RoPEFactors].
type RoPEScaling interface {
	// check refuses parameters.
	check(c *check, p *RoPEParameters)
	// scale changes powers, Theta^(2p/Dim), to frequencies, and gives the attention factor.
	scale(p *RoPEParameters, powers []float32) float64
}

// RoPELinear divides all frequencies by Factor, which is what dividing positions by it does.
type RoPELinear struct{ Factor float64 }

// RoPELlama3 is the scaling of Llama 3.1. A frequency f turns OriginalPositions * f / 2 pi times in a text of the original
// length. Below LowFreqFactor turns it is divided by Factor, above HighFreqFactor it is kept, and between them it goes from one
// to the other in proportion to the turns.
type RoPELlama3 struct {
	Factor                        float64
	LowFreqFactor, HighFreqFactor float64 // 1 and 4 in Llama 3.1
	OriginalPositions             int     // Hugging Face's original_max_position_embeddings
}

// RoPEYaRN is the scaling of Peng et al., "YaRN", arXiv:2309.00071. Pairs that turn more than BetaFast times in a text of the
// original length keep their frequency, those that turn less than BetaSlow times have it divided by Factor, and between the
// two pairs where that is so it goes from one to the other in proportion to the number of the pair.
//
// The attention factor is AttentionFactor; or the ratio of 0.1 MScale ln(Factor) + 1 and 0.1 MScaleAllDim ln(Factor) + 1, if
// both are given, as in DeepSeek; or 0.1 ln(Factor) + 1. The latter are 1 for Factors up to 1.
type RoPEYaRN struct {
	Factor               float64 // how many times longer texts become
	BetaFast, BetaSlow   float64 // 0 for 32 and 1
	OriginalPositions    int     // Hugging Face's original_max_position_embeddings
	AttentionFactor      float64 // 0 for the formula
	MScale, MScaleAllDim float64 // 0 for none
	Exact                bool    // the two pairs are not rounded to whole ones; Hugging Face's truncate is the contrary
}

// RoPEFactors divides each frequency by a number of its own: rope_freqs.weight of GGUF files, and the short_factor and
// long_factor of LongRoPE, arXiv:2402.13753 (Phi-3), of which the caller chooses one.
//
// The attention factor is AttentionFactor; or sqrt(1 + ln(Factor) / ln(OriginalPositions)), if Factor is greater than 1, as
// LongRoPE has it; or 1.
type RoPEFactors struct {
	Factors           []float32 // [RotaryDim / 2]
	Factor            float64   // how many times longer texts become; 0 for 1
	OriginalPositions int       // needed with Factor
	AttentionFactor   float64   // 0 for the formula
}

// InverseFrequencies are the angles per position of the pairs of a head,
//
//	freq[p] = Theta^(-2p / Dim),  p < RotaryDim / 2
//
// changed by Scaling, and the factor by which cos and sin are multiplied: what QKVHeads.InvFreq and QKVHeads.AttentionFactor
// take. It is a host's work, since a position multiplies the error of a frequency, and a device's power function may be off by
// more than a rounding.
//
// Each step is rounded to float32 where Hugging Face's modeling_rope_utils rounds it: these are the numbers that models were
// trained with, up to the last bit of a power function. Against the formula, without Scaling, they are off by up to 2 + ln(Theta)/2
// of 2^-24 of themselves, most of which is the rounding of the exponent, which is exact where Dim is a power of two.
//
// Errors: ErrScalar for numbers that are not finite, not positive or in the wrong order, and frequencies that are not finite
// in float32; ErrShape for dimensions and lengths.
func (p RoPEParameters) InverseFrequencies() (freq []float32, attentionFactor float32, err error) {
	c := check{fn: "nn.RoPEParameters.InverseFrequencies"}
	theta := float32(p.Theta)
	c.positiveNumber("Theta", p.Theta)
	if c.err == nil && (p.RotaryDim < 0 || p.RotaryDim > maxDim || p.RotaryDim%2 != 0) {
		c.refuse("RotaryDim", fmt.Sprint(p.RotaryDim), "an even number of elements", runtime.ErrShape)
	}
	if p.Dim == 0 {
		p.Dim = p.RotaryDim
	}
	if c.err == nil && (p.Dim < p.RotaryDim || p.Dim > maxDim || p.Dim%2 != 0) {
		c.refuse("Dim", fmt.Sprint(p.Dim), fmt.Sprintf("0, or an even number from RotaryDim, %d, on", p.RotaryDim), runtime.ErrShape)
	}
	switch p.Scaling.(type) {
	case nil:
	case RoPELinear, RoPELlama3, RoPEYaRN, RoPEFactors:
		p.Scaling.check(&c, &p)
	default: // a pointer to one of them may be nil
		c.refuse("Scaling", fmt.Sprintf("%T", p.Scaling), "nil, or a RoPELinear, RoPELlama3, RoPEYaRN or RoPEFactors", runtime.ErrScalar)
	}
	if c.err != nil {
		return nil, 0, c.err
	}
	freq = make([]float32, p.RotaryDim/2)
	for i := range freq {
		freq[i] = float32(math.Pow(float64(theta), float64(float32(2*i)/float32(p.Dim))))
	}
	factor := 1.0
	if p.Scaling != nil {
		factor = p.Scaling.scale(&p, freq)
	} else {
		invert(freq)
	}
	for i, f := range freq {
		if !(f <= math.MaxFloat32) {
			c.refuse("Theta", fmt.Sprint(p.Theta), fmt.Sprintf("frequencies that are finite in float32; that of pair %d is %v", i, f), runtime.ErrScalar)
			return nil, 0, c.err
		}
	}
	attentionFactor = float32(factor)
	if c.positive("AttentionFactor", attentionFactor); c.err != nil {
		return nil, 0, c.err
	}
	return freq, attentionFactor, nil
}

func invert(powers []float32) {
	for i, v := range powers {
		powers[i] = 1 / v
	}
}

// positiveNumber refuses what is not finite and greater than zero as a float32, in which it is used.
func (c *check) positiveNumber(arg string, v float64) {
	if f := float32(v); c.err == nil && !(f > 0 && f <= math.MaxFloat32) {
		c.refuse(arg, fmt.Sprint(v), "a finite number greater than 0", runtime.ErrScalar)
	}
}

// zeroOrPositive lets 0 pass, which asks for something else.
func (c *check) zeroOrPositive(arg string, v float64) {
	if v != 0 {
		c.positiveNumber(arg, v)
	}
}

func (s RoPELinear) check(c *check, _ *RoPEParameters) { c.positiveNumber("Factor", s.Factor) }

func (s RoPELinear) scale(_ *RoPEParameters, powers []float32) float64 {
	invert(powers)
	for i := range powers {
		powers[i] /= float32(s.Factor)
	}
	return 1
}

func (s RoPELlama3) check(c *check, _ *RoPEParameters) {
	c.positiveNumber("Factor", s.Factor)
	c.positiveNumber("LowFreqFactor", s.LowFreqFactor)
	c.positiveNumber("HighFreqFactor", s.HighFreqFactor)
	if c.err == nil && s.HighFreqFactor <= s.LowFreqFactor {
		c.refuse("HighFreqFactor", fmt.Sprint(s.HighFreqFactor), fmt.Sprintf("more than LowFreqFactor, %v", s.LowFreqFactor), runtime.ErrScalar)
	}
	c.dim("OriginalPositions", s.OriginalPositions, 1)
}

func (s RoPELlama3) scale(_ *RoPEParameters, powers []float32) float64 {
	invert(powers)
	positions := float64(s.OriginalPositions)
	// Lengths of waves in positions: slow pairs have long ones.
	long, short := float32(positions/s.LowFreqFactor), float32(positions/s.HighFreqFactor)
	factor, low, span := float32(s.Factor), float32(s.LowFreqFactor), float32(s.HighFreqFactor-s.LowFreqFactor)
	for i, f := range powers {
		switch wave := float32(2*math.Pi) / f; {
		case wave > long:
			powers[i] = f / factor
		case wave >= short:
			smooth := (float32(positions)/wave - low) / span
			powers[i] = float32(float32((1-smooth)*f)/factor) + float32(smooth*f)
		}
	}
	return 1
}

func (s RoPEYaRN) check(c *check, p *RoPEParameters) {
	c.positiveNumber("Factor", s.Factor)
	c.zeroOrPositive("BetaFast", s.BetaFast)
	c.zeroOrPositive("BetaSlow", s.BetaSlow)
	fast, slow := s.betas()
	if c.err == nil && fast <= slow {
		c.refuse("BetaFast", fmt.Sprint(fast), fmt.Sprintf("more than BetaSlow, %v", slow), runtime.ErrScalar)
	}
	c.dim("OriginalPositions", s.OriginalPositions, 1)
	c.zeroOrPositive("AttentionFactor", s.AttentionFactor)
	c.zeroOrPositive("MScale", s.MScale)
	c.zeroOrPositive("MScaleAllDim", s.MScaleAllDim)
	if c.err == nil && p.Theta <= 1 {
		c.refuse("Theta", fmt.Sprint(p.Theta), "more than 1, so that pairs differ", runtime.ErrScalar)
	}
	if low, high := s.ramp(p); c.err == nil && p.RotaryDim > 0 && low > high {
		c.refuse("OriginalPositions", fmt.Sprint(s.OriginalPositions), fmt.Sprintf("a length in which some pair of %d elements turns %v to %v times", p.Dim, slow, fast),
			runtime.ErrScalar)
	}
}

// betas are the two numbers of turns, with their defaults.
func (s RoPEYaRN) betas() (fast, slow float64) {
	fast, slow = s.BetaFast, s.BetaSlow
	if fast == 0 {
		fast = 32
	}
	if slow == 0 {
		slow = 1
	}
	return fast, slow
}

// ramp are the pairs between which frequencies change over.
func (s RoPEYaRN) ramp(p *RoPEParameters) (low, high float64) {
	pair := func(turns float64) float64 { // the pair, and a fraction, that turns so many times in a text of the original length
		return float64(p.Dim) * math.Log(float64(s.OriginalPositions)/(turns*2*math.Pi)) / (2 * math.Log(p.Theta))
	}
	fast, slow := s.betas()
	low, high = pair(fast), pair(slow)
	if !s.Exact {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(p.Dim-1))
	if low == high {
		high += 0.001
	}
	return low, high
}

func (s RoPEYaRN) scale(p *RoPEParameters, powers []float32) float64 {
	low, high := s.ramp(p)
	for i, power := range powers {
		kept, divided := 1/power, 1/float32(float32(s.Factor)*power)
		keep := 1 - min(max((float32(i)-float32(low))/float32(high-low), 0), 1)
		powers[i] = float32(divided*(1-keep)) + float32(kept*keep)
	}
	scale := func(m float64) float64 {
		if s.Factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(s.Factor) + 1
	}
	switch {
	case s.AttentionFactor != 0:
		return s.AttentionFactor
	case s.MScale != 0 && s.MScaleAllDim != 0:
		return scale(s.MScale) / scale(s.MScaleAllDim)
	}
	return scale(1)
}

func (s RoPEFactors) check(c *check, p *RoPEParameters) {
	if c.err == nil && len(s.Factors) != p.RotaryDim/2 {
		c.refuse("Factors", fmt.Sprintf("%d numbers", len(s.Factors)), fmt.Sprintf("%d, one for each pair", p.RotaryDim/2), runtime.ErrShape)
	}
	for i, f := range s.Factors {
		if c.err != nil {
			return
		}
		c.positive(fmt.Sprintf("Factors[%d]", i), f)
	}
	c.zeroOrPositive("Factor", s.Factor)
	c.zeroOrPositive("AttentionFactor", s.AttentionFactor)
	if s.Factor > 1 && s.AttentionFactor == 0 {
		c.dim("OriginalPositions", s.OriginalPositions, 2)
	}
}

func (s RoPEFactors) scale(_ *RoPEParameters, powers []float32) float64 {
	for i := range powers {
		powers[i] *= s.Factors[i]
	}
	invert(powers)
	switch {
	case s.AttentionFactor != 0:
		return s.AttentionFactor
	case s.Factor > 1:
		return math.Sqrt(1 + math.Log(s.Factor)/math.Log(float64(s.OriginalPositions)))
	}
	return 1
}
