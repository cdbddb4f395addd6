package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// sampling says how tokens are chosen. Logits l, capped as the model wants it, give token t the probability
//
//	exp(l[t] / temperature) / sum over all i of exp(l[i] / temperature)
//
// of which the topK most likely stay, and of these the fewest that together have at least topP of what is left. The token is
// drawn from what stays, in proportion. Temperature 0 always takes the most likely token, the lowest id among equals.
type sampling struct {
	temperature float64
	topK        int     // 0 for all
	topP        float64 // 1 for all
	seed        uint64  // of the first sequence; each has one more than that before
}

// greedy says that nothing is left to chance.
func (s sampling) greedy() bool { return s.temperature == 0 }

// sampler chooses the tokens of one text. All it does is float64 arithmetic on the host with a generator of its own, so that a
// seed gives the same text whenever the logits have the same bits.
type sampler struct {
	sampling
	softcap    float64 // of the logits; 0 for none
	random     *rand.Rand
	candidates []candidate // the memory for them
}

// candidate is a token that may be chosen.
type candidate struct {
	id     uint32
	logit  float32
	weight float64 // in proportion to its probability; the first one's is 1
}

// newSampler starts the sequence's own random numbers.
func newSampler(s sampling, sequence int, softcap float64) *sampler {
	return &sampler{sampling: s, softcap: softcap, random: rand.New(rand.NewPCG(s.seed+uint64(sequence), 0))}
}

// choose draws a token.
func (s *sampler) choose(logits []float32) (uint32, error) {
	all, err := s.distribution(logits)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, c := range all {
		sum += c.weight
	}
	at := s.random.Float64() * sum
	for _, c := range all {
		if at -= c.weight; at < 0 {
			return c.id, nil
		}
	}
	return all[0].id, nil // rounding led beyond the last one
}

// distribution are the tokens that may be chosen, the most likely one first, the lowest id first among equals.
func (s *sampler) distribution(logits []float32) ([]candidate, error) {
	if err := s.collect(logits); err != nil {
		return nil, err
	}
	all, total := s.candidates, 0.0
	for i := range all {
		all[i].weight = 1
		if i > 0 && !s.greedy() {
			all[i].weight = math.Exp((s.capped(all[i].logit) - s.capped(all[0].logit)) / s.temperature)
		}
		total += all[i].weight
	}
	if s.topP == 1 { // also what is too unlikely to change a sum
		return all, nil
	}
	kept := 0.0
	for i, c := range all {
		if kept += c.weight; kept >= s.topP*total {
			return all[:i+1], nil
		}
	}
	return all, nil
}

// sortedOnTheWay is how many candidates are kept in order while all tokens are looked at; more are sorted in the end.
const sortedOnTheWay = 256

// collect sorts the candidates: all, or as many as topK.
func (s *sampler) collect(logits []float32) error {
	s.candidates = s.candidates[:0]
	most := s.topK
	if s.greedy() {
		most = 1
	}
	few := most > 0 && most <= sortedOnTheWay
	for i, l := range logits {
		switch {
		case l != l || math.IsInf(float64(l), 1):
			return fmt.Errorf("the model computed the logit %g for token %d: its weights do not fit its configuration, or are damaged", l, i)
		case math.IsInf(float64(l), -1): // impossible
			continue
		}
		c := candidate{id: uint32(i), logit: l}
		if !few {
			s.candidates = append(s.candidates, c)
			continue
		}
		if last := len(s.candidates) - 1; last+1 == most {
			if byLogit(c, s.candidates[last]) > 0 {
				continue
			}
			s.candidates = s.candidates[:last]
		}
		at, _ := slices.BinarySearchFunc(s.candidates, c, byLogit)
		s.candidates = slices.Insert(s.candidates, at, c)
	}
	if len(s.candidates) == 0 {
		return errNoLogit
	}
	if !few {
		slices.SortFunc(s.candidates, byLogit)
		if most > 0 {
			s.candidates = s.candidates[:min(most, len(s.candidates))]
		}
	}
	return nil
}

// byLogit puts the most likely token first. Capping does not change the order, but may make logits equal.
func byLogit(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id))
}

func (s *sampler) capped(logit float32) float64 {
	if s.softcap == 0 {
		return float64(logit)
	}
	return s.softcap * math.Tanh(float64(logit)/s.softcap)
}
