package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// encode puts one decode step into a pass: one token goes in, the next one comes out. The same function serves direct
// encoding and recording. What changes from token to token, the kernels read from the decode state, and the step's last
// kernel advances it.
func (m *model) encode(p *runtime.Pass) error {
	return m.encodeTokens(p, m.step(), true)
}

// place is where tokens come from and where they belong: words in device memory, which the kernels read when they run.
type place struct {
	rows        int                   // tokens
	tokens      runtime.Slice[uint32] // [rows]
	position    runtime.Slice[uint32] // [1]: of the first one
	kvLength    runtime.Slice[uint32] // [1]: positions in the cache once all are stored
	cacheOffset runtime.Slice[uint32] // [1]: element of the cache where the first one is stored
}

// step is the place of a decode step: words of the decode state.
func (m *model) step() place {
	word := func(i int) runtime.Slice[uint32] { return m.state.Slice(i, i+1) }
	return place{1, word(nn.StateToken), word(nn.StatePosition), word(nn.StateKVLength), word(nn.StateCacheOffset)}
}

// encodeTokens takes tokens through the model. If choose is set, the last one gives the next token, and the decode state
// advances. If not, the tokens are there for what they leave in the caches.
func (m *model) encodeTokens(p *runtime.Pass, at place, choose bool) error {
	if err := m.encodeLayers(p, at, choose); err != nil || !choose {
		return err
	}
	return m.encodeChoice(p, at.rows-1)
}

// encodeLayers makes the residual stream of tokens, with what all layers add to it, or only what the caches need: of the
// last layer that is its keys and values.
func (m *model) encodeLayers(p *runtime.Pass, at place, all bool) error {
	c, w := m.config, &m.weights
	if err := nn.EmbedLookupQ4MLX(p, m.residual, w.embedding, at.tokens, at.rows, float32(c.EmbedScale)); err != nil {
		return err
	}
	for i := range w.layers {
		if err := m.encodeLayer(p, &w.layers[i], at, all || i < len(w.layers)-1); err != nil {
			return err
		}
	}
	return nil
}

// encodeLayer is one layer, or only its keys and values. Tools see its kernels as a group.
func (m *model) encodeLayer(p *runtime.Pass, l *layer, at place, all bool) error {
	if err := p.PushDebugGroup(l.name); err != nil {
		return err
	}
	if err := m.encodeCaches(p, l, at); err != nil {
		return err
	}
	if all {
		if err := m.encodeAttention(p, l, at); err != nil {
			return err
		}
		if err := m.encodeFeedForward(p, l, at.rows); err != nil {
			return err
		}
	}
	return p.PopDebugGroup()
}

// encodeCaches makes a layer's queries, keys and values, and stores the latter two.
func (m *model) encodeCaches(p *runtime.Pass, l *layer, at place) error {
	c, eps := m.config, float32(m.config.Eps)
	if err := nn.RMSNormBF16(p, m.normed, m.residual, l.inputNorm, at.rows, c.Hidden, eps); err != nil {
		return err
	}
	if err := m.encodeQKV(p, l, at.rows); err != nil {
		return err
	}
	return nn.RMSQKVRoPEKVStore(p, nn.QKVRoPE[float32]{
		Q: m.q, K: m.k, V: m.v, QWeight: l.queryNorm, KWeight: l.keyNorm, CacheK: l.keys, CacheV: l.values,
		Position: at.position, CacheOffset: at.cacheOffset, InvFreq: l.frequencies,
		T: at.rows, HeadsQ: c.Heads, HeadsKV: c.KVHeads, HeadDim: c.HeadDim, RotaryDim: c.HeadDim, Capacity: l.keys.Len(), Eps: eps,
	})
}

// encodeQKV is three products: in one kernel for one token.
func (m *model) encodeQKV(p *runtime.Pass, l *layer, rows int) error {
	if rows == 1 {
		return nn.GEMVQ4MLXQKV(p, nn.GEMVQKV{Q: m.q, K: m.k, V: m.v, WQ: l.query, WK: l.key, WV: l.value, X: m.normed})
	}
	if err := product(p, m.q, l.query, m.normed, rows); err != nil {
		return err
	}
	if err := product(p, m.k, l.key, m.normed, rows); err != nil {
		return err
	}
	return product(p, m.v, l.value, m.normed, rows)
}

// encodeAttention adds a layer's attention to the residual stream.
func (m *model) encodeAttention(p *runtime.Pass, l *layer, at place) error {
	c := m.config
	err := nn.Attention(p, m.attended, m.q, l.keys, l.values,
		nn.AttnLive{Tkv: at.kvLength, QPos: at.position, KVPos: m.firstKV}, m.partials, m.attention(at.rows, l.window))
	if err != nil {
		return err
	}
	if err := product(p, m.branch, l.attentionOutput, m.attended, at.rows); err != nil {
		return err
	}
	return nn.RMSNormResidualAddF32(p, m.residual, m.branch, l.postAttentionNorm, at.rows, c.Hidden, float32(c.Eps), 1)
}

// attention is the shape of a layer's attention.
func (m *model) attention(rows, window int) nn.AttnDims {
	c := m.config
	return nn.AttnDims{
		Batch: 1, Tq: rows, Heads: c.Heads, HeadsKV: c.KVHeads, HeadDim: c.HeadDim, Capacity: m.positions, Window: window, Scale: float32(c.QueryScale),
	}
}

// encodeFeedForward adds a layer's feed-forward block to the residual stream.
func (m *model) encodeFeedForward(p *runtime.Pass, l *layer, rows int) error {
	c, eps := m.config, float32(m.config.Eps)
	if err := nn.RMSNormBF16(p, m.normed, m.residual, l.preFFNNorm, rows, c.Hidden, eps); err != nil {
		return err
	}
	if err := m.encodeGateUp(p, l, rows); err != nil {
		return err
	}
	if err := product(p, m.branch, l.down, m.mid, rows); err != nil {
		return err
	}
	return nn.RMSNormResidualAddF32(p, m.residual, m.branch, l.postFFNNorm, rows, c.Hidden, eps, 1)
}

// encodeGateUp is the first half of the feed-forward block: in one kernel for one token.
func (m *model) encodeGateUp(p *runtime.Pass, l *layer, rows int) error {
	if rows == 1 {
		return nn.GEMVQ4MLXGateUpGELU(p, m.mid, l.gate, l.up, m.normed)
	}
	if err := product(p, m.gate, l.gate, m.normed, rows); err != nil {
		return err
	}
	if err := product(p, m.up, l.up, m.normed, rows); err != nil {
		return err
	}
	return nn.MLPGELUTanh(p, m.mid, m.gate, m.up, rows*m.config.FFN)
}

// product multiplies a matrix with the rows of x, as many at once as the kernel takes.
func product(p *runtime.Pass, y runtime.Slice[float32], w nn.Q4MLXBank, x runtime.Slice[half.BFloat16], rows int) error {
	if rows == 1 {
		return nn.GEMVQ4MLX(p, y, w, x)
	}
	for i := 0; i < rows; i += nn.MaxGEMMVectors {
		n := min(rows-i, nn.MaxGEMMVectors)
		if err := nn.GEMMQ4MLX(p, y.Slice(i*w.Rows(), (i+n)*w.Rows()), w, x.Slice(i*w.Cols(), (i+n)*w.Cols()), n); err != nil {
			return err
		}
	}
	return nil
}

// encodeChoice turns a row of the residual stream into the next token and advances the decode state.
func (m *model) encodeChoice(p *runtime.Pass, row int) error {
	c := m.config
	if err := m.encodeLogits(p, row); err != nil {
		return err
	}
	if err := nn.SoftcapArgmax(p, m.choice, m.choiceValue, m.logits, m.softcap, c.Vocab); err != nil {
		return err
	}
	return nn.DecodeAdvance(p, nn.DecodeStep{
		State: m.state, Prompt: m.prompt, Argmax: m.choice, Output: m.output, EndTokens: m.endTokens,
		KVCapacity: m.positions, KVStride: m.kvStride(),
	})
}

// encodeLogits makes the logits of a row of the residual stream.
func (m *model) encodeLogits(p *runtime.Pass, row int) error {
	c, w := m.config, &m.weights
	residual := m.residual.Slice(row*c.Hidden, (row+1)*c.Hidden)
	if err := nn.RMSNormBF16(p, m.normed, residual, w.finalNorm, 1, c.Hidden, float32(c.Eps)); err != nil {
		return err
	}
	return nn.GEMVQ4MLX(p, m.logits, w.output, m.normed)
}

// kvStride is how many elements of a cache a position takes.
func (m *model) kvStride() int { return m.config.KVHeads * m.config.HeadDim }
