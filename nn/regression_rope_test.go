package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
)

// Partial rotation in the arrangement of GPT-NeoX once paired elements half of RotaryDim apart where the model had them half
// of the head apart; the other way round it is as wrong. A single element that is not zero shows its partner.
func TestRegressionRoPEPartnersOfPartialRotation(t *testing.T) {
	rt, r := open(t), source(381)
	const d, rotary = 16, 8
	for pairing, partner := range map[RoPEPairing]func(i int) int{
		RoPEHalves:       func(i int) int { return (i + d/2) % d },
		RoPERotaryHalves: func(i int) int { return (i + rotary/2) % rotary },
		RoPENeighbours:   func(i int) int { return i ^ 1 },
	} {
		s := newRope(t, rt, r, ropeCase{t: 1, hq: d, hkv: 1, d: d, rotary: rotary, pos: 1, capacity: d, pairing: pairing, noQNorm: true, noKNorm: true})
		x := make([]float32, d*d) // head i has element i
		for i := range d {
			x[i*d+i] = 1
		}
		s.q.set(x)
		encode(t, rt, 1, func(p *runtime.Pass) error { return RMSQKVRoPE(p, s.queries(), 1) })
		turned := 0
		for head := range d {
			got := s.q.get()[head*d : (head+1)*d]
			var others []int
			for i, v := range got {
				if v != 0 && i != head {
					others = append(others, i)
				}
			}
			switch {
			case len(others) == 0 && got[head] == 1: // does not turn
			case len(others) == 1 && others[0] == partner(head) && got[head] != 1:
				turned++
			default:
				t.Errorf("%v: element %d gives %v", pairing, head, got)
			}
		}
		if turned != rotary {
			t.Errorf("%v: %d elements turn, want %d", pairing, turned, rotary)
		}
	}
}

// The exponents of partial rotation have the head's dimension as their denominator in some models and the part's in others.
func TestRegressionRoPEDenominatorOfPartialRotation(t *testing.T) {
	for _, c := range []struct {
		dim  int
		last float64 // of 16 pairs: pair 15
	}{{0, -30. / 32}, {32, -30. / 32}, {128, -30. / 128}} {
		freq, _, err := RoPEParameters{Theta: 1e4, RotaryDim: 32, Dim: c.dim}.InverseFrequencies()
		if err != nil {
			t.Fatal(err)
		}
		if want := math.Pow(1e4, c.last); math.Abs(float64(freq[15])-want) > 2e-7*want {
			t.Errorf("Dim %d: %v, want %v", c.dim, freq[15], want)
		}
	}
}

// A norm reads the whole head before the rotation writes it in place: with pairs that cross the lanes, and several to a lane,
// no lane may read what another one has written. The software device would find the race.
func TestRegressionRoPENormReadsBeforeItWrites(t *testing.T) {
	rt, r := open(t), source(382)
	var w worst
	for _, pairing := range []RoPEPairing{RoPEHalves, RoPERotaryHalves, RoPENeighbours} {
		newRope(t, rt, r, ropeCase{t: 2, hq: 9, hkv: 2, d: 256, rotary: 192, pos: 3, capacity: 1024, pairing: pairing, vNorm: true}).check(t, rt, &w)
	}
}

// YaRN's attention factor was lost where configurations gave none, and applied where a ratio of 1 was meant.
func TestRegressionRoPEAttentionFactorOfYaRN(t *testing.T) {
	for _, c := range []struct {
		s    RoPEYaRN
		want float64
	}{
		{RoPEYaRN{Factor: 4}, 1.1386294361119891},
		{RoPEYaRN{Factor: 4, MScale: 1, MScaleAllDim: 1}, 1},
		{RoPEYaRN{Factor: 4, MScaleAllDim: 1}, 1.1386294361119891},
		{RoPEYaRN{Factor: 4, MScale: 1, MScaleAllDim: 1, AttentionFactor: 2}, 2},
	} {
		c.s.OriginalPositions = 4096
		if _, got, err := (RoPEParameters{Theta: 1e4, RotaryDim: 64, Scaling: c.s}).InverseFrequencies(); err != nil || got != float32(c.want) {
			t.Errorf("%+v: %v, want %v (%v)", c.s, got, c.want, err)
		}
	}
}
