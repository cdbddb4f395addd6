package main

import (
	"errors"
	"fmt"

	"github.com/ingot-metal/ingot/examples/decode/internal/gemma3"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// weights are the model's weights on the device.
type weights struct {
	embedding, output nn.Q4MLXBank
	finalNorm         runtime.Slice[float32]
	layers            []layer
}

type layer struct {
	inputNorm, postAttentionNorm, preFFNNorm, postFFNNorm runtime.Slice[float32]
	queryNorm, keyNorm                                    runtime.Slice[float32]
	query, key, value, attentionOutput                    nn.Q4MLXBank
	gate, up, down                                        nn.Q4MLXBank

	name         string
	window       int                    // positions that it sees; 0 for all
	frequencies  runtime.Slice[float32] // of rotary embedding; layers of a kind share them
	keys, values runtime.Slice[float32] // the cache, [positions][KVHeads][HeadDim]
}

// memory allocates device memory and remembers how to give it back. After the first error it does nothing more.
type memory struct {
	rt      *runtime.Runtime
	err     error
	release []func() error
}

func (a *memory) free() error {
	var errs []error
	for i := len(a.release) - 1; i >= 0; i-- {
		errs = append(errs, a.release[i]())
	}
	a.release = nil
	return errors.Join(errs...)
}

// keep takes a new slice, or the error of making it.
func keep[T runtime.Element](a *memory, what string, s runtime.Slice[T], err error) runtime.Slice[T] {
	if err != nil {
		a.err = fmt.Errorf("%s: %w", what, err)
		return runtime.Slice[T]{}
	}
	a.release = append(a.release, s.Release)
	return s
}

// zeros is device memory for n elements.
func zeros[T runtime.Element](a *memory, what string, n int) runtime.Slice[T] {
	if a.err != nil {
		return runtime.Slice[T]{}
	}
	s, err := runtime.NewSlice[T](a.rt, n)
	return keep(a, what, s, err)
}

// upload is device memory with a copy of data.
func upload[T runtime.Element](a *memory, what string, data []T) runtime.Slice[T] {
	if a.err != nil {
		return runtime.Slice[T]{}
	}
	s, err := runtime.SliceOf(a.rt, data)
	return keep(a, what, s, err)
}

// loader brings a checkpoint's tensors to the device, one at a time.
type loader struct {
	*memory
	checkpoint *gemma3.Checkpoint
}

func (l loader) norm(name string, n int) runtime.Slice[float32] {
	if l.err != nil {
		return runtime.Slice[float32]{}
	}
	w, err := l.checkpoint.NormWeight(name, n)
	if err != nil {
		l.err = err
		return runtime.Slice[float32]{}
	}
	return upload(l.memory, name, w)
}

func (l loader) matrix(name string, rows, cols int) nn.Q4MLXBank {
	if l.err != nil {
		return nn.Q4MLXBank{}
	}
	bank, err := l.uploadMatrix(name, rows, cols)
	if err != nil {
		l.err = err
		return nn.Q4MLXBank{}
	}
	l.release = append(l.release, bank.Release)
	return bank
}

func (l loader) uploadMatrix(name string, rows, cols int) (nn.Q4MLXBank, error) {
	m, err := l.checkpoint.Matrix(name, rows, cols)
	if err != nil {
		return nn.Q4MLXBank{}, err
	}
	q, err := m.Quantised(l.checkpoint.Config.Group())
	if err != nil {
		return nn.Q4MLXBank{}, err
	}
	bank, err := nn.UploadQ4MLX(l.rt, q)
	if err != nil {
		return bank, fmt.Errorf("%s: %w", name, err)
	}
	return bank, nil
}

// loadWeights brings the whole model to the device, and makes caches for that many positions.
func loadWeights(a *memory, checkpoint *gemma3.Checkpoint, positions int) weights {
	l, c := loader{a, checkpoint}, checkpoint.Config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	w := weights{
		embedding: l.matrix(gemma3.Embedding, c.Vocab, c.Hidden),
		finalNorm: l.norm(gemma3.FinalNorm, c.Hidden),
	}
	global := upload(a, "RoPE frequencies", c.Global.InverseFrequencies(c.HeadDim))
	local := upload(a, "RoPE frequencies", c.Local.InverseFrequencies(c.HeadDim))
	w.output = w.embedding
	if !c.Tied {
		w.output = l.matrix(gemma3.Output, c.Vocab, c.Hidden)
	}
	for i := range c.Layers {
		name := func(part string) string { return gemma3.Layer(i, part) }
		window, frequencies := 0, global
		if c.Sliding[i] {
			window, frequencies = c.Window, local
		}
		w.layers = append(w.layers, layer{
			inputNorm:         l.norm(name(gemma3.InputNorm), c.Hidden),
			postAttentionNorm: l.norm(name(gemma3.PostAttentionNorm), c.Hidden),
			preFFNNorm:        l.norm(name(gemma3.PreFFNNorm), c.Hidden),
			postFFNNorm:       l.norm(name(gemma3.PostFFNNorm), c.Hidden),
			queryNorm:         l.norm(name(gemma3.QueryNorm), c.HeadDim),
			keyNorm:           l.norm(name(gemma3.KeyNorm), c.HeadDim),
			query:             l.matrix(name(gemma3.QueryProjection), q, c.Hidden),
			key:               l.matrix(name(gemma3.KeyProjection), kv, c.Hidden),
			value:             l.matrix(name(gemma3.ValueProjection), kv, c.Hidden),
			attentionOutput:   l.matrix(name(gemma3.AttentionOutput), c.Hidden, q),
			gate:              l.matrix(name(gemma3.Gate), c.FFN, c.Hidden),
			up:                l.matrix(name(gemma3.Up), c.FFN, c.Hidden),
			down:              l.matrix(name(gemma3.Down), c.Hidden, c.FFN),
			name:              fmt.Sprintf("layer %d", i),
			window:            window,
			frequencies:       frequencies,
			keys:              zeros[float32](a, "key cache", positions*kv),
			values:            zeros[float32](a, "value cache", positions*kv),
		})
	}
	return w
}
