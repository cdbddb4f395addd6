package main

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// rotary is a layer's rotary position embedding: a table of frequencies, and what to do with them.
type rotary struct {
	frequencies runtime.Slice[float32] // [dim/2]
	dim         int                    // how many elements of a head turn
	pairing     nn.RoPEPairing         // which of them together
	factor      float32                // of queries and keys that turn
}

// shareRotary makes the tables of frequencies; layers of a kind share one.
func (l *loader) shareRotary(c *checkpoint.Config, layers []layer) {
	for i := range layers {
		r := c.RoPE[i]
		if l.err != nil {
			return
		}
		if j := slices.IndexFunc(c.RoPE[:i], func(s checkpoint.RoPE) bool { return reflect.DeepEqual(r, s) }); j >= 0 {
			layers[i].rotary = layers[j].rotary
			continue
		}
		layers[i].rotary = l.rotary(c, r)
	}
}

func (l *loader) rotary(c *checkpoint.Config, r checkpoint.RoPE) rotary {
	frequencies, factor, err := frequencies(r)
	if err != nil {
		l.fail(fmt.Errorf("the rotary position embedding: %w", err))
		return rotary{}
	}
	pairing := nn.RoPERotaryHalves
	switch {
	case r.Neighbours:
		pairing = nn.RoPENeighbours
	case r.Dim == c.HeadDim:
		pairing = nn.RoPEHalves // the same pairs; models with norms have a kernel of their own for it
	}
	return rotary{upload(l.memory, "RoPE frequencies", frequencies), r.Dim, pairing, factor}
}

// frequencies are the angles per position, and the factor of what turns.
func frequencies(r checkpoint.RoPE) ([]float32, float32, error) {
	p := nn.RoPEParameters{Theta: r.Theta, RotaryDim: r.Dim}
	switch s := r.Scaling; s.Kind {
	case checkpoint.ScalingLinear:
		p.Scaling = nn.RoPELinear{Factor: s.Factor}
	case checkpoint.ScalingLlama3:
		p.Scaling = nn.RoPELlama3{Factor: s.Factor, LowFreqFactor: s.LowFreqFactor, HighFreqFactor: s.HighFreqFactor, OriginalPositions: s.OriginalPositions}
	case checkpoint.ScalingYaRN:
		p.Scaling = nn.RoPEYaRN{Factor: s.Factor, BetaFast: s.BetaFast, BetaSlow: s.BetaSlow, OriginalPositions: s.OriginalPositions,
			AttentionFactor: s.AttentionFactor, Exact: !s.Truncate}
	}
	f, factor, err := p.InverseFrequencies()
	if err != nil {
		return nil, 0, err
	}
	if n := len(r.Scaling.Factors); n != 0 && n != len(f) {
		return nil, 0, fmt.Errorf("there are %d divisors for %d frequencies", n, len(f))
	}
	for i, d := range r.Scaling.Factors {
		f[i] /= d
	}
	return f, factor, nil
}
