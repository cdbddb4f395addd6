package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
)

// formula is the definition of sampling, written out: the probability of each token.
func formula(logits []float32, softcap float64, s sampling) []float64 {
	value := make([]float64, len(logits))
	for i, l := range logits {
		value[i] = float64(l)
		if softcap > 0 {
			value[i] = softcap * math.Tanh(value[i]/softcap)
		}
	}
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return -compareFloats(logits[a], logits[b]) })
	if s.topK > 0 {
		order = order[:min(s.topK, len(order))]
	}
	probability := func(among []int) []float64 {
		sum, p := 0.0, make([]float64, len(logits))
		for _, i := range among {
			sum += math.Exp(value[i] / s.temperature)
		}
		for _, i := range among {
			p[i] = math.Exp(value[i]/s.temperature) / sum
		}
		return p
	}
	p, kept := probability(order), 0.0
	for n, i := range order {
		if kept += p[i]; s.topP < 1 && kept >= s.topP {
			return probability(order[:n+1])
		}
	}
	return p
}

func compareFloats(a, b float32) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	logits := make([]float32, 600)
	for i := range logits {
		logits[i] = float32(3 * r.NormFloat64())
	}
	logits[17] = logits[3] // equals
	for _, c := range []struct {
		s       sampling
		softcap float64
	}{
		{sampling{temperature: 1, topP: 1}, 0},
		{sampling{temperature: 1, topP: 1}, 5},
		{sampling{temperature: 0.3, topP: 1}, 30},
		{sampling{temperature: 4, topP: 1}, 0},
		{sampling{temperature: 1, topK: 1, topP: 1}, 0},
		{sampling{temperature: 1, topK: 40, topP: 1}, 0},
		{sampling{temperature: 2, topK: sortedOnTheWay + 1, topP: 1}, 0},
		{sampling{temperature: 1, topK: 1000, topP: 1}, 0},
		{sampling{temperature: 1, topP: 0.9}, 0},
		{sampling{temperature: 1, topP: 1e-9}, 0},
		{sampling{temperature: 0.8, topK: 50, topP: 0.7}, 8},
	} {
		got, err := newSampler(c.s, 0, c.softcap).distribution(logits)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, g := range got {
			sum += g.weight
		}
		want, possible := formula(logits, c.softcap, c.s), 0
		for _, p := range want {
			if p > 0 {
				possible++
			}
		}
		if possible != len(got) {
			t.Errorf("%+v: %d tokens may be chosen, want %d", c, len(got), possible)
		}
		for i, g := range got {
			if d := math.Abs(g.weight/sum - want[g.id]); d > 1e-14 {
				t.Errorf("%+v: token %d has probability %g, want %g", c, g.id, g.weight/sum, want[g.id])
			}
			if i > 0 && (logits[got[i-1].id] < logits[g.id] || logits[got[i-1].id] == logits[g.id] && got[i-1].id > g.id) {
				t.Errorf("%+v: tokens %d and %d are out of order", c, got[i-1].id, g.id)
			}
		}
	}
}

// Draws are as frequent as their probabilities: chi-squared over ten tokens stays below what chance exceeds once in 10,000 times.
func TestDraws(t *testing.T) {
	logits := []float32{0, 1, 2, 0.5, -1, 1.5, 0, 2.5, -0.5, 1}
	for _, c := range []struct {
		s    sampling
		most float64 // for one degree of freedom less than tokens that are possible
	}{
		{sampling{temperature: 1, topP: 1, seed: 1}, 33.7},
		{sampling{temperature: 0.7, topK: 5, topP: 1, seed: 2}, 23.5},
		{sampling{temperature: 1.5, topP: 0.6, seed: 3}, 21.1},
	} {
		const draws = 20000
		s, count := newSampler(c.s, 0, 0), make([]float64, len(logits))
		for range draws {
			id, err := s.choose(logits)
			if err != nil {
				t.Fatal(err)
			}
			count[id]++
		}
		chi, possible := 0.0, 0
		for i, p := range formula(logits, 0, c.s) {
			if p == 0 {
				if count[i] > 0 {
					t.Errorf("%+v: token %d was drawn", c.s, i)
				}
				continue
			}
			possible++
			chi += (count[i] - draws*p) * (count[i] - draws*p) / (draws * p)
		}
		t.Logf("%+v: chi-squared %.1f of %d tokens", c.s, chi, possible)
		if chi > c.most {
			t.Errorf("%+v: chi-squared is %g, at most %g is plausible", c.s, chi, c.most)
		}
	}
}

func TestSamplerEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	choose := func(s sampling, logits ...float32) (uint32, error) { return newSampler(s, 0, 0).choose(logits) }
	greedy := sampling{topP: 1}
	warm := sampling{temperature: 1, topP: 1}
	for _, c := range []struct {
		name   string
		s      sampling
		logits []float32
		want   uint32
	}{
		{"temperature 0", greedy, []float32{1, 3, 2, 3}, 1},
		{"temperature 0 with top-p", sampling{topK: 3, topP: 0.5}, []float32{1, 3, 2, 3}, 1},
		{"top-k 1", sampling{temperature: 9, topK: 1, topP: 1}, []float32{1, 3, 2, 3}, 1},
		{"small top-p", sampling{temperature: 1, topP: 1e-300}, []float32{1, 3, 2, 3}, 1},
		{"smallest temperature", sampling{temperature: math.SmallestNonzeroFloat64, topP: 1}, []float32{1, 2.99, 3, -inf}, 2},
		{"large logits", warm, []float32{-math.MaxFloat32, math.MaxFloat32}, 1},
		{"only one is possible", warm, []float32{-inf, -inf, -5}, 2},
	} {
		if got, err := choose(c.s, c.logits...); err != nil || got != c.want {
			t.Errorf("%s: %d %v", c.name, got, err)
		}
	}
	for _, s := range []sampling{greedy, warm} {
		for _, bad := range []float32{nan, inf} {
			if _, err := choose(s, 1, bad, 2); err == nil || !strings.Contains(err.Error(), "for token 1") {
				t.Error(err)
			}
		}
		if _, err := choose(s, -inf, -inf); !errors.Is(err, errNoLogit) {
			t.Error(err)
		}
	}
	hot := sampling{temperature: math.MaxFloat64, topP: 1}
	if got, err := newSampler(hot, 0, 0).distribution([]float32{1, -1000}); err != nil || len(got) != 2 || got[1].weight != 1 {
		t.Error(got, err)
	}
}

// The fewest tokens that have the probability are those that have just it.
func TestTopPExactly(t *testing.T) {
	for topP, want := range map[float64]int{0.25: 1, 0.26: 2, 0.5: 2, 0.75: 3, 1: 4} {
		got, err := newSampler(sampling{temperature: 1, topP: topP}, 0, 0).distribution(make([]float32, 4))
		if err != nil || len(got) != want {
			t.Errorf("%g: %d tokens, want %d; %v", topP, len(got), want, err)
		}
	}
}

// A model's samplers know its cap, and which of its texts is theirs.
func TestSamplers(t *testing.T) {
	m := &model{settings: settings{sequences: 2, sampled: true}, config: &checkpoint.Config{Softcap: 7}}
	s := sampling{temperature: 1, topP: 1, seed: 3}
	all := s.samplers(m)
	if len(all) != 2 || all[0].softcap != 7 || all[1].softcap != 7 || all[1].sampling != s {
		t.Errorf("%+v", all)
	}
	if want := newSampler(s, 1, 7); all[1].random.Uint64() != want.random.Uint64() {
		t.Error("the second text has other draws")
	}
	if m.sampled = false; s.samplers(m) != nil {
		t.Error("samplers, though the device chooses")
	}
}

// Seeds make the difference, and nothing else; sequence i draws as a single one with a seed that is i larger.
func TestSeeds(t *testing.T) {
	logits := make([]float32, 1000)
	draw := func(seed uint64, sequence int) (ids []uint32) {
		s := newSampler(sampling{temperature: 1, topP: 1, seed: seed}, sequence, 0)
		for range 8 {
			id, err := s.choose(logits)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	if !slices.Equal(draw(5, 0), draw(5, 0)) || !slices.Equal(draw(5, 3), draw(8, 0)) {
		t.Error("the same seed gives other draws")
	}
	if slices.Equal(draw(5, 0), draw(6, 0)) {
		t.Error("another seed gives the same draws")
	}
	// What a seed gives is written down here, so that it stays.
	if want := []uint32{238, 500, 49, 489, 750, 572, 115, 5}; !slices.Equal(draw(1, 0), want) {
		t.Errorf("seed 1 draws %v", draw(1, 0))
	}
}

// Choosing allocates nothing once the candidates have their memory.
func TestChooseAllocates(t *testing.T) {
	logits := make([]float32, 500)
	for i := range logits {
		logits[i] = float32(i % 37)
	}
	for _, k := range []int{0, 40} {
		s := newSampler(sampling{temperature: 1, topK: k, topP: 0.9, seed: 1}, 0, 30)
		n := testing.AllocsPerRun(20, func() {
			if _, err := s.choose(logits); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("top-k %d: %g allocations", k, n)
		}
	}
}
