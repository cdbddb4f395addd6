package main

import (
	"fmt"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/runtime"
)

// weights are the model's weights on the device.
type weights struct {
	embedding, output matrix
	finalNorm         runtime.Slice[float32]
	layers            []layer
	narrow            bool // all matrices that are multiplied with are q4Matrix: activations are bfloat16

	inPlace, copied int64 // bytes of matrices that the device reads in their files, and of those that were copied
}

// layer is a layer's weights and caches. Vectors that a model does not have are zero Slices.
type layer struct {
	inputNorm, postAttentionNorm, preFFNNorm, postFFNNorm runtime.Slice[float32]
	queryNorm, keyNorm                                    runtime.Slice[float32]
	queryBias, keyBias, valueBias, outputBias             runtime.Slice[float32]
	query, key, value, attentionOutput                    matrix
	gate, up, down                                        matrix

	name         string
	window       int // positions that it sees; 0 for all
	rotary       rotary
	keys, values runtime.Slice[float32] // the caches, [sequences][positions][KVHeads][HeadDim]
}

// matrices are those that a layer multiplies with.
func (l *layer) matrices() []matrix {
	return []matrix{l.query, l.key, l.value, l.attentionOutput, l.gate, l.up, l.down}
}

// present says whether a model has a vector.
func present(s runtime.Slice[float32]) bool { return s != runtime.Slice[float32]{} }

// loadWeights brings the whole model to the device, and makes caches for that many sequences of that many positions.
func (l *loader) loadWeights(c *checkpoint.Config, sequences, positions int) weights {
	w := weights{
		embedding: l.matrix(checkpoint.Embedding, -1),
		finalNorm: l.vector(checkpoint.FinalNorm, -1),
	}
	w.output = w.embedding
	if !c.Tied {
		w.output = l.matrix(checkpoint.Output, -1)
	}
	for i := range c.Layers {
		w.layers = append(w.layers, l.layer(c, i))
		layer := &w.layers[i]
		layer.keys = zeros[float32](l.memory, "key cache", sequences*positions*c.KVHeads*c.HeadDim)
		layer.values = zeros[float32](l.memory, "value cache", sequences*positions*c.KVHeads*c.HeadDim)
	}
	l.shareRotary(c, w.layers)
	if l.err == nil {
		w.narrow, w.inPlace, w.copied = w.allQ4(), l.inPlace, l.copied
	}
	return w
}

func (l *loader) layer(c *checkpoint.Config, i int) layer {
	out := layer{
		inputNorm:       l.vector(checkpoint.InputNorm, i),
		preFFNNorm:      l.vector(checkpoint.PreFFNNorm, i),
		queryBias:       l.optional(checkpoint.QueryBias, i),
		keyBias:         l.optional(checkpoint.KeyBias, i),
		valueBias:       l.optional(checkpoint.ValueBias, i),
		outputBias:      l.optional(checkpoint.AttentionOutputBias, i),
		query:           l.matrix(checkpoint.Query, i),
		key:             l.matrix(checkpoint.Key, i),
		value:           l.matrix(checkpoint.Value, i),
		attentionOutput: l.matrix(checkpoint.AttentionOutput, i),
		gate:            l.matrix(checkpoint.Gate, i),
		up:              l.matrix(checkpoint.Up, i),
		down:            l.matrix(checkpoint.Down, i),
		name:            fmt.Sprintf("layer %d", i),
	}
	if c.PostNorms {
		out.postAttentionNorm = l.vector(checkpoint.PostAttentionNorm, i)
		out.postFFNNorm = l.vector(checkpoint.PostFFNNorm, i)
	}
	if c.QKNorm {
		out.queryNorm = l.vector(checkpoint.QueryNorm, i)
		out.keyNorm = l.vector(checkpoint.KeyNorm, i)
	}
	if c.Sliding != nil && c.Sliding[i] {
		out.window = c.Window
	}
	return out
}

// allQ4 says whether the fused kernels do for all products.
func (w *weights) allQ4() bool {
	all := []matrix{w.output}
	for i := range w.layers {
		all = append(all, w.layers[i].matrices()...)
	}
	for _, m := range all {
		if _, ok := m.(q4Matrix); !ok {
			return false
		}
	}
	return true
}

// where says where the weights are.
func (w *weights) where() string {
	if w.inPlace == 0 {
		return megabytes(w.copied) + ", copied"
	}
	return fmt.Sprintf("%s, %s of it in mapped files", megabytes(w.inPlace+w.copied), megabytes(w.inPlace))
}
