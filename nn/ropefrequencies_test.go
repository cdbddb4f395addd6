package nn

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
)

// frequency is theta^(-2p/dim) in float64.
func frequency(theta float64, p, dim int) float64 {
	return math.Exp(-2 * float64(p) / float64(dim) * math.Log(theta))
}

// nearFrequencies holds frequencies against float64: the power and its inverse are rounded, then what each pair has of further
// roundings; and, unless Dim is a power of two, the exponent, which the logarithm of the base multiplies.
func nearFrequencies(t *testing.T, where string, p RoPEParameters, want func(pair int) float64, further func(pair int) float64) (freq []float32, factor float32) {
	t.Helper()
	freq, factor, err := p.InverseFrequencies()
	if err != nil {
		t.Fatal(where, err)
	}
	if len(freq) != p.RotaryDim/2 {
		t.Fatalf("%s: %d frequencies", where, len(freq))
	}
	worst, exponent := 0.0, 0.0
	if dim := max(p.Dim, p.RotaryDim); dim&(dim-1) != 0 {
		exponent = math.Abs(math.Log(p.Theta)) / 2
	}
	for i, f := range freq {
		off, bound := math.Abs(float64(f)-want(i))/want(i), (exponent+2+further(i))/(1<<24)
		if worst = max(worst, off/bound); off > bound {
			t.Errorf("%s: frequency %d is %v, want %v, %.2g of the bound", where, i, f, want(i), off/bound)
		}
	}
	t.Logf("%s: worst error %.2f of the bound", where, worst)
	return freq, factor
}

// more are as many further roundings for each pair.
func more(n float64) func(int) float64 { return func(int) float64 { return n } }

func TestRoPEFrequencies(t *testing.T) {
	for _, p := range []RoPEParameters{
		{Theta: 1e4, RotaryDim: 128}, {Theta: 5e5, RotaryDim: 128}, {Theta: 1e6, RotaryDim: 256}, {Theta: 1e7, RotaryDim: 64}, {Theta: 1e4, RotaryDim: 8}, {Theta: 2, RotaryDim: 2},
		{Theta: 1, RotaryDim: 16}, {Theta: 0.5, RotaryDim: 16}, {Theta: 1e4, RotaryDim: 0}, {Theta: 1e4, RotaryDim: 32, Dim: 128}, {Theta: 1e6, RotaryDim: 64, Dim: 512},
	} {
		dim := p.Dim
		if dim == 0 {
			dim = p.RotaryDim
		}
		freq, factor := nearFrequencies(t, fmt.Sprintf("%+v", p), p, func(i int) float64 { return frequency(p.Theta, i, dim) }, more(0))
		if factor != 1 {
			t.Errorf("%+v: attention factor %v", p, factor)
		}
		if len(freq) > 0 && freq[0] != 1 {
			t.Errorf("%+v: the first frequency is %v", p, freq[0])
		}
		p.Scaling = RoPELinear{8}
		scaled, factor := nearFrequencies(t, fmt.Sprintf("%+v", p), p, func(i int) float64 { return frequency(p.Theta, i, dim) / 8 }, more(0))
		for i := range scaled {
			if scaled[i] != freq[i]/8 || factor != 1 { // a power of two: exactly
				t.Errorf("%+v: frequency %d is %v of %v", p, i, scaled[i], freq[i])
			}
		}
	}
	// Exponents whose powers are known: 10000^(-p/4) of a head of 8, each rounded once.
	freq, _, _ := RoPEParameters{Theta: 1e4, RotaryDim: 8}.InverseFrequencies()
	for i, want := range []float32{1, 0.1, 0.01, 0.001} {
		if freq[i] != want {
			t.Errorf("frequency %d of a head of 8 is %v, want %v", i, freq[i], want)
		}
	}
}

// Llama 3.1: theta 500,000, 128 elements, 8 times longer than 8192. A pair whose wave is shorter than 8192/4 positions keeps its
// frequency: 2 pi 500000^(p/64) < 2048 for p < 28.22. One whose wave is longer than 8192 has an eighth of it: p > 34.98.
func TestRoPELlama3(t *testing.T) {
	plain := RoPEParameters{Theta: 5e5, RotaryDim: 128}
	p := plain
	p.Scaling = RoPELlama3{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalPositions: 8192}
	want := func(i int) float64 {
		f := frequency(5e5, i, 128)
		turns := 8192 * f / (2 * math.Pi)
		switch {
		case turns < 1:
			return f / 8
		case turns > 4:
			return f
		}
		s := (turns - 1) / 3
		return f * ((1-s)/8 + s)
	}
	// The turns have four roundings, and on the ramp an error of turns is up to 7/3 of one of the frequency, where that is an
	// eighth; four more for the sum.
	freq, factor := nearFrequencies(t, "Llama 3.1", p, want, more(4*7/3.+4))
	old, _, err := plain.InverseFrequencies()
	if err != nil || factor != 1 {
		t.Fatal(err, factor)
	}
	for i, f := range freq {
		switch {
		case i <= 28 && f != old[i]:
			t.Errorf("pair %d turns quickly: %v of %v", i, f, old[i])
		case i >= 35 && f != old[i]/8:
			t.Errorf("pair %d turns slowly: %v of %v", i, f, old[i])
		case i > 28 && i < 35 && !(f < old[i] && f > old[i]/8 && f < freq[i-1]):
			t.Errorf("pair %d lies between: %v of %v", i, f, old[i])
		}
	}

	// The same from GGUF, whose tensor has a factor for each pair.
	factors := make([]float32, 64)
	for i := range factors {
		factors[i] = float32(frequency(5e5, i, 128) / want(i))
	}
	p.Scaling = RoPEFactors{Factors: factors}
	if _, factor = nearFrequencies(t, "Llama 3.1 from GGUF", p, want, more(2)); factor != 1 {
		t.Error(factor)
	}

	// Waves of exactly the two lengths belong to the ramp, whose ends meet what lies beside it. With base 1 all waves have
	// 2 pi positions.
	for turns, want := range map[float64]float64{1: 0.125, 4: 1, 2.5: 0.5625} {
		s := RoPELlama3{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalPositions: 1 << 20}
		s.LowFreqFactor, s.HighFreqFactor = 1<<20/(2*math.Pi)/turns, 4*(1<<20)/(2*math.Pi)/turns
		f, _, err := RoPEParameters{Theta: 1, RotaryDim: 2, Scaling: s}.InverseFrequencies()
		if err != nil || math.Abs(float64(f[0])-want) > 1e-6 {
			t.Errorf("%v turns: %v, want %v (%v)", turns, f, want, err)
		}
	}
}

// YaRN as three models have it, whose ramps were computed by hand.
func TestRoPEYaRN(t *testing.T) {
	for _, c := range []struct {
		name      string
		theta     float64
		dim       int
		s         RoPEYaRN
		low, high float64
		factor    float64
	}{
		// 128 ln(32768/(64 pi)) / (2 ln 1e6) = 23.597, 128 ln(32768/(2 pi)) / (2 ln 1e6) = 39.65
		{"Qwen2.5", 1e6, 128, RoPEYaRN{Factor: 4, OriginalPositions: 32768}, 23, 40, 0.1*math.Log(4) + 1},
		// 64 ln(4096/(64 pi)) / (2 ln 150000) = 8.09, 64 ln(4096/(2 pi)) / (2 ln 150000) = 17.40, which no whole number replaces
		{"gpt-oss", 150000, 64, RoPEYaRN{Factor: 32, OriginalPositions: 4096, Exact: true}, 8.092779115512402, 17.39802450158856, 0.1*math.Log(32) + 1},
		// 64 ln(4096/(64 pi)) / (2 ln 1e4) = 10.47, 64 ln(4096/(2 pi)) / (2 ln 1e4) = 22.51
		{"DeepSeek-V2", 1e4, 64, RoPEYaRN{Factor: 40, BetaFast: 32, BetaSlow: 1, OriginalPositions: 4096, MScale: 0.707, MScaleAllDim: 0.707}, 10, 23, 1},
		{"mscales", 1e4, 64, RoPEYaRN{Factor: 40, OriginalPositions: 4096, MScale: 1, MScaleAllDim: 0.5}, 10, 23, (0.1*math.Log(40) + 1) / (0.05*math.Log(40) + 1)},
		{"one mscale is none", 1e4, 64, RoPEYaRN{Factor: 40, OriginalPositions: 4096, MScale: 0.5}, 10, 23, 0.1*math.Log(40) + 1},
		{"a factor given", 1e4, 64, RoPEYaRN{Factor: 40, OriginalPositions: 4096, MScale: 1, MScaleAllDim: 0.5, AttentionFactor: 1.25}, 10, 23, 1.25},
		{"no longer", 1e4, 64, RoPEYaRN{Factor: 1, OriginalPositions: 4096}, 10, 23, 1},
		{"shorter", 1e4, 64, RoPEYaRN{Factor: 0.5, OriginalPositions: 4096}, 10, 23, 1},
		// Every pair of a small head turns less than 32 times in 64 positions: the ramp starts at the first.
		{"short texts", 1e4, 16, RoPEYaRN{Factor: 2, OriginalPositions: 64}, 0, 3, 0.1*math.Log(2) + 1},
		// 8 ln(2e9/(2 pi 2e7)) / (2 ln 100) = 2.40, and 17.0 for one turn, beyond the seven elements behind the first.
		{"long texts", 100, 8, RoPEYaRN{Factor: 2, BetaFast: 2e7, OriginalPositions: 2e9}, 2, 7, 0.1*math.Log(2) + 1},
		// 8 ln(100/(64 pi)) / (2 ln 10) = -1.2, 8 ln(100/(32 pi)) / (2 ln 10) = -0.009: the ends meet at 0, and a thousandth of a
		// pair keeps them apart.
		{"one pair", 10, 8, RoPEYaRN{Factor: 2, BetaSlow: 16, OriginalPositions: 100}, 0, 0.001, 0.1*math.Log(2) + 1},
	} {
		plain := RoPEParameters{Theta: c.theta, RotaryDim: c.dim}
		p := plain
		p.Scaling = c.s
		blend := func(i int) (ramp, sum float64) {
			ramp = min(max((float64(i)-c.low)/(c.high-c.low), 0), 1)
			return ramp, ramp/c.s.Factor + 1 - ramp
		}
		want := func(i int) float64 { _, sum := blend(i); return frequency(c.theta, i, c.dim) * sum }
		// Three for the product with the factor and the sum; on the ramp also its ends and its four steps, whose error grows as
		// the sum gets small.
		freq, factor := nearFrequencies(t, c.name, p, want, func(i int) float64 {
			ramp, sum := blend(i)
			if ramp == 0 || ramp == 1 {
				return 3
			}
			return 3 + (4+c.high/(c.high-c.low))*math.Abs(1-1/c.s.Factor)/sum
		})
		if factor != float32(c.factor) {
			t.Errorf("%s: attention factor %v, want %v", c.name, factor, c.factor)
		}
		old, _, err := plain.InverseFrequencies()
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range freq {
			if float64(i) <= c.low && f != old[i] {
				t.Errorf("%s: pair %d, before the ramp, is %v of %v", c.name, i, f, old[i])
			}
			if want := 1 / (float32(c.s.Factor) * (1 / old[i])); float64(i) >= c.high && math.Abs(float64(f-want)) > 2e-7*float64(want) {
				t.Errorf("%s: pair %d, behind the ramp, is %v of %v", c.name, i, f, old[i])
			}
		}
	}
}

// LongRoPE as Phi-3 has it: texts of 131,072 positions instead of 4096.
func TestRoPEFactors(t *testing.T) {
	factors := make([]float32, 48)
	for i := range factors {
		factors[i] = 1 + float32(i*i)/37
	}
	p := RoPEParameters{Theta: 1e4, RotaryDim: 96, Scaling: RoPEFactors{Factors: factors, Factor: 32, OriginalPositions: 4096}}
	want := func(i int) float64 { return frequency(1e4, i, 96) / float64(factors[i]) }
	if _, factor := nearFrequencies(t, "LongRoPE", p, want, more(1)); factor != float32(math.Sqrt(1+5.0/12)) { // ln 32 / ln 4096
		t.Error(factor)
	}
	for name, s := range map[string]RoPEFactors{"short": {Factor: 1, OriginalPositions: 4096}, "shorter": {Factor: 0.5, OriginalPositions: 4096}, "plain": {}, "given": {Factor: 32, OriginalPositions: 4096, AttentionFactor: 1.25}} {
		s.Factors = factors
		p.Scaling = s
		if _, factor := nearFrequencies(t, name, p, want, more(1)); factor != max(1, float32(s.AttentionFactor)) {
			t.Errorf("%s: %v", name, factor)
		}
	}
	if factors[3] != 1+float32(9)/37 {
		t.Error("the caller's factors changed")
	}
}

func TestRoPEFrequenciesRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	llama := func(change func(s *RoPELlama3)) RoPEScaling {
		s := RoPELlama3{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalPositions: 8192}
		change(&s)
		return s
	}
	yarn := func(change func(s *RoPEYaRN)) RoPEScaling {
		s := RoPEYaRN{Factor: 4, OriginalPositions: 4096}
		change(&s)
		return s
	}
	ones := []float32{1, 1, 1, 1}
	for _, c := range []struct {
		arg      string
		p        RoPEParameters
		sentinel error
	}{
		{"Theta", RoPEParameters{RotaryDim: 8}, runtime.ErrScalar},
		{"Theta", RoPEParameters{Theta: -1, RotaryDim: 8}, runtime.ErrScalar},
		{"Theta", RoPEParameters{Theta: nan, RotaryDim: 8}, runtime.ErrScalar},
		{"Theta", RoPEParameters{Theta: inf, RotaryDim: 8}, runtime.ErrScalar},
		{"Theta", RoPEParameters{Theta: 1e39, RotaryDim: 8}, runtime.ErrScalar},   // not a float32
		{"Theta", RoPEParameters{Theta: 1e-44, RotaryDim: 64}, runtime.ErrScalar}, // frequencies are not
		{"RotaryDim", RoPEParameters{Theta: 1e4, RotaryDim: 7}, runtime.ErrShape},
		{"RotaryDim", RoPEParameters{Theta: 1e4, RotaryDim: -2}, runtime.ErrShape},
		{"RotaryDim", RoPEParameters{Theta: 1e4, RotaryDim: math.MaxInt - 1}, runtime.ErrShape},
		{"Dim", RoPEParameters{Theta: 1e4, RotaryDim: 8, Dim: 6}, runtime.ErrShape},
		{"Dim", RoPEParameters{Theta: 1e4, RotaryDim: 8, Dim: 9}, runtime.ErrShape},
		{"Dim", RoPEParameters{Theta: 1e4, RotaryDim: 8, Dim: -8}, runtime.ErrShape},
		{"Scaling", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: (*RoPELlama3)(nil)}, runtime.ErrScalar},
		{"Scaling", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: &RoPELinear{2}}, runtime.ErrScalar},
		{"Factor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPELinear{}}, runtime.ErrScalar},
		{"Factor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPELinear{inf}}, runtime.ErrScalar},
		{"Factor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPELinear{1e39}}, runtime.ErrScalar},
		{"Theta", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPELinear{1e-40}}, runtime.ErrScalar}, // frequencies overflow
		{"Factor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: llama(func(s *RoPELlama3) { s.Factor = nan })}, runtime.ErrScalar},
		{"LowFreqFactor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: llama(func(s *RoPELlama3) { s.LowFreqFactor = 0 })}, runtime.ErrScalar},
		{"HighFreqFactor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: llama(func(s *RoPELlama3) { s.HighFreqFactor = 1 })}, runtime.ErrScalar},
		{"HighFreqFactor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: llama(func(s *RoPELlama3) { s.HighFreqFactor = inf })}, runtime.ErrScalar},
		{"OriginalPositions", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: llama(func(s *RoPELlama3) { s.OriginalPositions = 0 })}, runtime.ErrShape},
		{"Factor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.Factor = 0 })}, runtime.ErrScalar},
		{"BetaFast", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.BetaFast = -1 })}, runtime.ErrScalar},
		{"BetaFast", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.BetaFast = nan })}, runtime.ErrScalar},
		{"BetaFast", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.BetaFast = inf })}, runtime.ErrScalar},
		{"BetaFast", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.BetaSlow = 32 })}, runtime.ErrScalar},
		{"BetaSlow", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.BetaSlow = nan })}, runtime.ErrScalar},
		{"OriginalPositions", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.OriginalPositions = -1 })}, runtime.ErrShape},
		{"OriginalPositions", RoPEParameters{Theta: 100, RotaryDim: 128, Scaling: yarn(func(s *RoPEYaRN) { s.OriginalPositions = 1 })}, runtime.ErrScalar},  // a ramp before all pairs
		{"OriginalPositions", RoPEParameters{Theta: 10, RotaryDim: 128, Scaling: yarn(func(s *RoPEYaRN) { s.OriginalPositions = 1e6 })}, runtime.ErrScalar}, // behind all pairs
		{"AttentionFactor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.AttentionFactor = -1 })}, runtime.ErrScalar},
		{"MScale", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.MScale = -1 })}, runtime.ErrScalar},
		{"MScaleAllDim", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) { s.MScaleAllDim = inf })}, runtime.ErrScalar},
		{"Theta", RoPEParameters{Theta: 1, RotaryDim: 8, Scaling: yarn(func(s *RoPEYaRN) {})}, runtime.ErrScalar},
		{"Factors", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPEFactors{Factors: ones[:3]}}, runtime.ErrShape},
		{"Factors", RoPEParameters{Theta: 1e4, RotaryDim: 6, Scaling: RoPEFactors{Factors: ones}}, runtime.ErrShape},
		{"Factors[1]", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPEFactors{Factors: []float32{1, 0, 1, 1}}}, runtime.ErrScalar},
		{"Factors[3]", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPEFactors{Factors: []float32{1, 1, 1, float32(nan)}}}, runtime.ErrScalar},
		{"Factor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPEFactors{Factors: ones, Factor: -2}}, runtime.ErrScalar},
		{"AttentionFactor", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPEFactors{Factors: ones, AttentionFactor: inf}}, runtime.ErrScalar},
		{"OriginalPositions", RoPEParameters{Theta: 1e4, RotaryDim: 8, Scaling: RoPEFactors{Factors: ones, Factor: 2}}, runtime.ErrShape},
	} {
		freq, factor, err := c.p.InverseFrequencies()
		var e *runtime.Error
		if !errors.As(err, &e) || e.Func != "nn.RoPEParameters.InverseFrequencies" || e.Arg != c.arg || !errors.Is(err, c.sentinel) || freq != nil || factor != 0 {
			t.Errorf("%+v: %v, %v, %v, want %s", c.p, freq, factor, err, c.arg)
		}
	}
}
