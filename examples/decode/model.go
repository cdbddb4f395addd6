package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/examples/decode/internal/gemma3"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// model is a model on a device: its weights, its caches, the memory of a decode step or of a tile of a prompt, and the
// recorded step and tiles.
type model struct {
	rt        *runtime.Runtime
	config    *gemma3.Config
	positions int // of the caches
	memory    memory
	weights   weights

	// What a step computes, in the order in which it does. Rows are the tokens of a tile; a step has one.
	residual    runtime.Slice[float32]       // [rows][Hidden]: the stream that layers add to
	normed      runtime.Slice[half.BFloat16] // [rows][Hidden]
	q, k, v     runtime.Slice[float32]       // [rows][Heads or KVHeads][HeadDim]
	partials    runtime.Slice[float32]       // of a step's attention, over chunks of the cache
	attended    runtime.Slice[half.BFloat16] // [rows][Heads][HeadDim]
	branch      runtime.Slice[float32]       // [rows][Hidden]: what a layer is about to add
	gate, up    runtime.Slice[float32]       // [rows][FFN], of tiles
	mid         runtime.Slice[half.BFloat16] // [rows][FFN]
	logits      runtime.Slice[float32]       // [Vocab]
	choice      runtime.Slice[uint32]        // [1]: the token with the highest logit
	choiceValue runtime.Slice[float32]       // [1]: that logit, capped
	state       runtime.Slice[uint32]        // see nn.DecodeAdvance
	output      runtime.Slice[uint32]        // ids of the tokens that the model produced
	tile        runtime.Slice[uint32]        // [tileWords]: the tile that is being read

	// What it only reads, besides weights.
	prompt    runtime.Slice[uint32]  // token ids
	tiles     runtime.Slice[uint32]  // [][tileWords]: the prompt's tiles
	endTokens runtime.Slice[uint32]  // token ids
	softcap   runtime.Slice[float32] // [1]
	firstKV   runtime.Slice[uint32]  // [1]: the position of the cache's first row, 0

	program      *runtime.Program // the recorded step
	kernels      int              // in a step
	tilePrograms map[tileShape]*runtime.Program
}

// newModel brings a model to the device, for prompts of up to longest tokens and texts of up to n more, or as many as the
// model allows, and records its step.
func newModel(rt *runtime.Runtime, checkpoint *gemma3.Checkpoint, longest, n int) (*model, error) {
	c := checkpoint.Config
	if err := fits(c, longest, n); err != nil {
		return nil, err
	}
	m := &model{rt: rt, config: c, positions: positions(c, longest, n), memory: memory{rt: rt}}
	err := m.load(checkpoint, longest, n)
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
func positions(c *gemma3.Config, longest, n int) int { return min(c.Positions, longest+n) }

// fits says why the kernels cannot run a model, or not with a prompt of that many tokens and n more.
func fits(c *gemma3.Config, longest, n int) error {
	if nn.RowsLanesFor(c.HeadDim) == 0 {
		return fmt.Errorf("%s: head_dim is %d: the attention kernels are for %v", gemma3.ConfigFile, c.HeadDim, nn.AttnHeadDims())
	}
	if longest > c.Positions {
		return fmt.Errorf("the prompt has %d tokens, but the model is for texts of up to %d (max_position_embeddings)", longest, c.Positions)
	}
	if all, each := positions(c, longest, n), c.KVHeads*c.HeadDim; all > math.MaxUint32/each {
		return fmt.Errorf("a cache of %d positions would have more than 2³² numbers: %d fit (give a smaller -n)", all, math.MaxUint32/each)
	}
	return nil
}

func (m *model) load(checkpoint *gemma3.Checkpoint, longest, n int) error {
	a, c := &m.memory, m.config
	m.weights = loadWeights(a, checkpoint, m.positions)
	rows := min(tileRows, longest)
	m.residual = zeros[float32](a, "residual stream", rows*c.Hidden)
	m.normed = zeros[half.BFloat16](a, "normed stream", rows*c.Hidden)
	m.q = zeros[float32](a, "queries", rows*c.Heads*c.HeadDim)
	m.k = zeros[float32](a, "keys", rows*c.KVHeads*c.HeadDim)
	m.v = zeros[float32](a, "values", rows*c.KVHeads*c.HeadDim)
	m.partials = zeros[float32](a, "partial attention", nn.AttnDecodeScratch(m.attention(1, 0)))
	m.attended = zeros[half.BFloat16](a, "attention", rows*c.Heads*c.HeadDim)
	m.branch = zeros[float32](a, "branch", rows*c.Hidden)
	if rows > 1 {
		m.gate = zeros[float32](a, "gate", rows*c.FFN)
		m.up = zeros[float32](a, "up", rows*c.FFN)
	}
	m.mid = zeros[half.BFloat16](a, "feed-forward", rows*c.FFN)
	m.logits = zeros[float32](a, "logits", c.Vocab)
	m.choice = zeros[uint32](a, "choice", 1)
	m.choiceValue = zeros[float32](a, "value of the choice", 1)
	m.state = zeros[uint32](a, "decode state", nn.DecodeStateWords)
	m.output = zeros[uint32](a, "output", n)
	m.prompt = zeros[uint32](a, "prompt", longest)
	m.tiles = zeros[uint32](a, "tiles of the prompt", tileCount(longest)*tileWords)
	m.tile = zeros[uint32](a, "tile", tileWords)
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
	for _, program := range m.tilePrograms {
		err = errors.Join(err, program.Release())
	}
	m.program, m.tilePrograms = nil, nil
	return errors.Join(err, m.memory.free())
}
