package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// settings are what a model is prepared for.
type settings struct {
	sequences int  // texts that are decoded at once
	longest   int  // most tokens of a prompt
	n         int  // most tokens of a text besides its prompt
	sampled   bool // the host chooses the tokens, not the device

	tileRows int                     // most tokens of a tile of a prompt; 0 for as many as suit the model
	unmapped bool                    // copy the weights even if they could stay in their files
	loaded   func(bytes int64) error // is told of each matrix that was loaded, and ends loading with an error; nil for nobody
}

// model is a model on a device: its weights, its caches, the memory of a decode step or of a tile of a prompt, and the
// recorded step and tiles.
type model struct {
	settings
	rt        *runtime.Runtime
	config    *checkpoint.Config
	positions int // of each sequence's caches
	memory    memory
	weights   weights

	// What a step computes, in the order in which it does. Rows are the tokens of a tile; a step has one for each sequence.
	residual    runtime.Slice[float32] // [rows][Hidden]: the stream that layers add to
	normed      activation             // [rows][Hidden]
	q, k, v     runtime.Slice[float32] // [rows][Heads or KVHeads][HeadDim]
	partials    runtime.Slice[float32] // [sequences][...]: of a step's attention, over chunks of the cache
	attended    activation             // [rows][Heads][HeadDim]
	branch      runtime.Slice[float32] // [rows][Hidden]: what a layer is about to add
	gate, up    runtime.Slice[float32] // [rows][FFN]
	mid         activation             // [rows][FFN]
	logits      runtime.Slice[float32] // [sequences][Vocab]
	choice      runtime.Slice[uint32]  // [sequences]: the token that was chosen
	choiceValue runtime.Slice[float32] // [sequences]: the highest logit, capped, if the device chose
	state       runtime.Slice[uint32]  // [sequences][nn.DecodeStateWords]: see nn.DecodeAdvance
	output      runtime.Slice[uint32]  // [sequences][n]: ids of the tokens that the model produced
	tile        runtime.Slice[uint32]  // [tileWords]: the tile that is being read

	// What it only reads, besides weights.
	prompt    runtime.Slice[uint32]  // [sequences][longest]: token ids
	tiles     runtime.Slice[uint32]  // [][tileWords]: the tiles of a prompt
	endTokens runtime.Slice[uint32]  // token ids
	softcap   runtime.Slice[float32] // [1]
	firstKV   runtime.Slice[uint32]  // [1]: the position of the cache's first row, 0

	program      *runtime.Program // the recorded step
	kernels      int              // in a step
	tilePrograms []tileProgram    // the recorded tiles, the latest used last
}

// newModel brings a model to the device, for prompts of up to s.longest tokens and texts of up to s.n more, or as many as the
// model allows, and records its step.
func newModel(rt *runtime.Runtime, c *checkpoint.Config, t tensors, s settings) (*model, error) {
	if err := fits(c, s.longest, s.n); err != nil {
		return nil, err
	}
	if s.tileRows == 0 {
		s.tileRows = tileRowsFor(c)
	}
	m := &model{settings: s, rt: rt, config: c, positions: positions(c, s.longest, s.n), memory: memory{rt: rt}}
	err := m.load(t)
	if err == nil {
		m.program, err = rt.Record(func(p *runtime.Pass) error {
			err := errors.Join(p.Label("decode step"), m.encode(p))
			m.kernels = p.Count()
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(err, m.release())
	}
	return m, nil
}

// positions is how many tokens a text can have in all.
func positions(c *checkpoint.Config, longest, n int) int { return min(c.Positions, longest+n) }

// fits says why the kernels cannot run a model, or not with a prompt of that many tokens and n more.
func fits(c *checkpoint.Config, longest, n int) error {
	if nn.RowsLanesFor(c.HeadDim) == 0 {
		return fmt.Errorf("the model's heads have %d numbers: the attention kernels are for %v", c.HeadDim, nn.AttnHeadDims())
	}
	if longest > c.Positions {
		return fmt.Errorf("the prompt has %d tokens, but the model is for texts of up to %d", longest, c.Positions)
	}
	if all, each := positions(c, longest, n), c.KVHeads*c.HeadDim; all > math.MaxUint32/each {
		return fmt.Errorf("a cache of %d positions would have more than 2³² numbers: %d fit (give a smaller -n)", all, math.MaxUint32/each)
	}
	return nil
}

func (m *model) load(t tensors) error {
	a, c, s := &m.memory, m.config, &m.settings
	l := loader{memory: a, tensors: t, unmapped: s.unmapped, loaded: s.loaded}
	if l.loaded == nil {
		l.loaded = func(int64) error { return nil }
	}
	m.weights = l.loadWeights(c, s.sequences, m.positions)
	narrow, rows := m.weights.narrow, max(min(s.tileRows, s.longest), s.sequences)
	m.residual = zeros[float32](a, "residual stream", rows*c.Hidden)
	m.normed = newActivation(a, "normed stream", narrow, rows*c.Hidden)
	m.q = zeros[float32](a, "queries", rows*c.Heads*c.HeadDim)
	m.k = zeros[float32](a, "keys", rows*c.KVHeads*c.HeadDim)
	m.v = zeros[float32](a, "values", rows*c.KVHeads*c.HeadDim)
	m.partials = zeros[float32](a, "partial attention", s.sequences*m.scratch())
	m.attended = newActivation(a, "attention", narrow, rows*c.Heads*c.HeadDim)
	m.branch = zeros[float32](a, "branch", rows*c.Hidden)
	m.gate = zeros[float32](a, "gate", rows*c.FFN)
	m.up = zeros[float32](a, "up", rows*c.FFN)
	m.mid = newActivation(a, "feed-forward", narrow, rows*c.FFN)
	m.logits = zeros[float32](a, "logits", s.sequences*c.Vocab)
	m.choice = zeros[uint32](a, "choice", s.sequences)
	m.choiceValue = zeros[float32](a, "value of the choice", s.sequences)
	m.state = zeros[uint32](a, "decode state", s.sequences*nn.DecodeStateWords)
	m.output = zeros[uint32](a, "output", s.sequences*s.n)
	m.prompt = zeros[uint32](a, "prompt", s.sequences*s.longest)
	m.tiles = zeros[uint32](a, "tiles of the prompt", tileCount(s.longest, s.tileRows)*m.tileWords())
	m.tile = zeros[uint32](a, "tile", m.tileWords())
	if len(c.EOS) > 0 {
		m.endTokens = upload(a, "end tokens", c.EOS)
	}
	m.softcap = upload(a, "softcap", []float32{float32(c.Softcap)})
	m.firstKV = zeros[uint32](a, "cache position", 1)
	return a.err
}

// release gives everything back.
func (m *model) release() error {
	var err error
	if m.program != nil {
		err = m.program.Release()
	}
	for _, t := range m.tilePrograms {
		err = errors.Join(err, t.program.Release())
	}
	m.program, m.tilePrograms = nil, nil
	return errors.Join(err, m.memory.free())
}
