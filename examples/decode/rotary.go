package main

import (
	"errors"
	"reflect"

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
		if l.err != nil {
			return
		}
		for j := range i {
			if reflect.DeepEqual(c.RoPE[i], c.RoPE[j]) {
				layers[i].rotary = layers[j].rotary
				break
			}
		}
		if layers[i].rotary.dim == 0 {
			layers[i].rotary = l.rotary(c, c.RoPE[i])
		}
	}
}

func (l *loader) rotary(c *checkpoint.Config, r checkpoint.RoPE) rotary {
	if r.Scaling.Kind > checkpoint.ScalingLinear || r.Scaling.Factors != nil {
		l.fail(errors.New("this scaling of RoPE is not supported"))
		return rotary{}
	}
	f, err := nn.RoPEInverseFrequencies(r.Theta, r.Dim, r.Dim, r.Scaling.Factor)
	if err != nil {
		l.fail(err)
		return rotary{}
	}
	pairing := nn.RoPERotaryHalves
	switch {
	case r.Neighbours:
		pairing = nn.RoPENeighbours
	case r.Dim == c.HeadDim:
		pairing = nn.RoPEHalves // the same pairs; models with norms have a kernel of their own for it
	}
	return rotary{upload(l.memory, "RoPE frequencies", f), r.Dim, pairing, 1}
}
