package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// fake is a model in memory with random weights.
type fake struct {
	t      testing.TB
	config *checkpoint.Config
	kind   func(role checkpoint.Role, layer int) weightKind
	made   map[string]checkpoint.Matrix // each is made once

	outputBias bool
}

// weightKind is how a matrix is stored: as a type of weights, or in MLX's format if bits is not 0.
type weightKind struct {
	nn.WeightType // of scales, in MLX's format
	bits, group   int
}

func plain(t nn.WeightType) weightKind { return weightKind{WeightType: t} }

// all stores all matrices in one way.
func all(k weightKind) func(checkpoint.Role, int) weightKind {
	return func(checkpoint.Role, int) weightKind { return k }
}

// llama is a configuration of the kind that most models have, for tests to change.
func llama() *checkpoint.Config {
	c := &checkpoint.Config{
		Architecture: "llama", Vocab: 48, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Positions: 64,
		Eps: 1e-5, QueryScale: 0.25, EmbedScale: 1, Activation: checkpoint.SiLU, Sliding: make([]bool, 2),
	}
	rope(c, checkpoint.RoPE{Theta: 1e4, Dim: 16})
	return c
}

// rope gives all layers the same parameters.
func rope(c *checkpoint.Config, r checkpoint.RoPE) {
	if r.Scaling.Factor == 0 {
		r.Scaling.Factor = 1
	}
	c.RoPE = nil
	for range c.Layers {
		c.RoPE = append(c.RoPE, r)
	}
}

// wide has rows of 256 numbers, as the formats with blocks of 256 need.
func wide(c *checkpoint.Config) *checkpoint.Config {
	c.Hidden, c.FFN, c.Heads, c.KVHeads, c.HeadDim, c.QueryScale = 256, 256, 8, 4, 32, 1/math.Sqrt(32)
	rope(c, checkpoint.RoPE{Theta: 1e4, Dim: 32})
	return c
}

func newFake(t testing.TB, c *checkpoint.Config, kind func(checkpoint.Role, int) weightKind) *fake {
	return &fake{t: t, config: c, kind: kind, made: map[string]checkpoint.Matrix{}}
}

func (f *fake) Files() []string { return nil }

func (f *fake) Has(role checkpoint.Role, layer int) bool {
	switch role {
	case checkpoint.QueryBias, checkpoint.KeyBias, checkpoint.ValueBias:
		return f.config.AttentionBias
	case checkpoint.AttentionOutputBias:
		return f.outputBias
	case checkpoint.QueryNorm, checkpoint.KeyNorm:
		return f.config.QKNorm
	case checkpoint.PostAttentionNorm, checkpoint.PostFFNNorm:
		return f.config.PostNorms
	case checkpoint.Output:
		return !f.config.Tied
	}
	return true
}

// random are numbers that belong to a tensor.
func random(role checkpoint.Role, layer int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(role), uint64(layer+1)))
}

// Vector is around 1 for norms and around 0 for biases.
func (f *fake) Vector(role checkpoint.Role, layer int) ([]float32, error) {
	c := f.config
	n, mean := c.Hidden, 1.0
	switch role {
	case checkpoint.QueryNorm, checkpoint.KeyNorm:
		n = c.HeadDim
	case checkpoint.QueryBias:
		n, mean = c.Heads*c.HeadDim, 0
	case checkpoint.KeyBias, checkpoint.ValueBias:
		n, mean = c.KVHeads*c.HeadDim, 0
	case checkpoint.AttentionOutputBias:
		mean = 0
	}
	r, out := random(role, layer), make([]float32, n)
	for i := range out {
		out[i] = float32(mean + 0.3*r.NormFloat64())
	}
	return out, nil
}

func (f *fake) Matrix(role checkpoint.Role, layer int) (checkpoint.Matrix, error) {
	name := fmt.Sprint(role, layer)
	m, ok := f.made[name]
	if !ok {
		m = f.matrix(name, role, layer)
		f.made[name] = m
	}
	return m, nil
}

func (f *fake) matrix(name string, role checkpoint.Role, layer int) checkpoint.Matrix {
	c := f.config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	rows, cols := c.Vocab, c.Hidden
	switch role {
	case checkpoint.Query:
		rows = q
	case checkpoint.Key, checkpoint.Value:
		rows = kv
	case checkpoint.AttentionOutput:
		rows, cols = c.Hidden, q
	case checkpoint.Gate, checkpoint.Up:
		rows = c.FFN
	case checkpoint.Down:
		rows, cols = c.Hidden, c.FFN
	}
	r, w := random(role, layer), make([]float32, rows*cols)
	for i := range w {
		w[i] = float32(r.NormFloat64() / math.Sqrt(float64(cols)))
	}
	k := f.kind(role, layer)
	m := checkpoint.Matrix{Name: name, Rows: rows, Cols: cols, File: -1}
	if k.bits != 0 {
		m.Affine = affine(k, w)
		return m
	}
	m.Type = k.WeightType
	if block := m.Type.Block(); block != 0 {
		m.Data = make([]byte, rows*m.Type.RowBytes(cols))
		if err := block.Encode(m.Data, w); err != nil {
			f.t.Fatal(err)
		}
		return m
	}
	for _, v := range w {
		m.Data = store(m.Data, m.Type, v)
	}
	return m
}

// store appends a number.
func store(data []byte, t nn.WeightType, v float32) []byte {
	switch t {
	case nn.WeightF16:
		return binary.LittleEndian.AppendUint16(data, uint16(half.Float16FromFloat32(v)))
	case nn.WeightBF16:
		return binary.LittleEndian.AppendUint16(data, uint16(half.BFloat16FromFloat32(v)))
	}
	return binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
}

// affine quantises numbers in MLX's format, as simply as can be: the lowest number of a group has code 0, the highest the
// highest.
func affine(k weightKind, w []float32) *checkpoint.Affine {
	a := &checkpoint.Affine{Bits: k.bits, GroupSize: k.group, ScaleType: k.WeightType, Weight: make([]byte, len(w)*k.bits/8)}
	top := float32(int(1)<<k.bits - 1)
	for g := 0; g < len(w); g += k.group {
		low, high := w[g], w[g]
		for _, v := range w[g : g+k.group] {
			low, high = min(low, v), max(high, v)
		}
		scale := (high - low) / top
		a.Scales, a.Biases = store(a.Scales, k.WeightType, scale), store(a.Biases, k.WeightType, low)
		for i, v := range w[g : g+k.group] {
			code := int(min(max((v-low)/scale+0.5, 0), top))
			for b := range k.bits {
				at := (g+i)*k.bits + b
				a.Weight[at/8] |= byte(code>>b&1) << (at % 8)
			}
		}
	}
	return a
}

// openFake brings a model to a device until the test ends.
func openFake(t testing.TB, rt *runtime.Runtime, f *fake, s settings) *model {
	t.Helper()
	m, err := newModel(rt, f.config, f, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.release(); err != nil {
			t.Error(err)
		}
	})
	return m
}
