package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// encode puts one decode step into a pass: one token goes in, the next one comes out. The same function serves direct
// encoding and recording. What changes from token to token, the kernels read from the decode state, and the step's last
// kernel advances it.
func (m *model) encode(p *runtime.Pass) error {
	c, w := m.config, &m.weights
	if err := nn.EmbedLookupQ4MLX(p, m.residual, w.embedding, m.word(nn.StateToken), 1, float32(c.EmbedScale)); err != nil {
		return err
	}
	for i := range w.layers {
		if err := m.encodeAttention(p, &w.layers[i]); err != nil {
			return err
		}
		if err := m.encodeFeedForward(p, &w.layers[i]); err != nil {
			return err
		}
	}
	return m.encodeChoice(p)
}

// encodeAttention adds a layer's attention to the residual stream.
func (m *model) encodeAttention(p *runtime.Pass, l *layer) error {
	c, eps := m.config, float32(m.config.Eps)
	if err := nn.RMSNormBF16(p, m.normed, m.residual, l.inputNorm, 1, c.Hidden, eps); err != nil {
		return err
	}
	err := nn.GEMVQ4MLXQKV(p, nn.GEMVQKV{Q: m.q, K: m.k, V: m.v, WQ: l.query, WK: l.key, WV: l.value, X: m.normed})
	if err != nil {
		return err
	}
	err = nn.RMSQKVRoPEKVStore(p, nn.QKVRoPE[float32]{
		Q: m.q, K: m.k, V: m.v, QWeight: l.queryNorm, KWeight: l.keyNorm, CacheK: l.keys, CacheV: l.values,
		Position: m.word(nn.StatePosition), CacheOffset: m.word(nn.StateCacheOffset), InvFreq: l.frequencies,
		T: 1, HeadsQ: c.Heads, HeadsKV: c.KVHeads, HeadDim: c.HeadDim, RotaryDim: c.HeadDim, Capacity: l.keys.Len(), Eps: eps,
	})
	if err != nil {
		return err
	}
	err = nn.Attention(p, m.attended, m.q, l.keys, l.values,
		nn.AttnLive{Tkv: m.word(nn.StateKVLength), QPos: m.word(nn.StatePosition), KVPos: m.firstKV}, m.partials, m.attention(l.window))
	if err != nil {
		return err
	}
	if err := nn.GEMVQ4MLX(p, m.branch, l.attentionOutput, m.attended); err != nil {
		return err
	}
	return nn.RMSNormResidualAddF32(p, m.residual, m.branch, l.postAttentionNorm, 1, c.Hidden, eps, 1)
}

// attention is the shape of a layer's attention for one token.
func (m *model) attention(window int) nn.AttnDims {
	c := m.config
	return nn.AttnDims{
		Batch: 1, Tq: 1, Heads: c.Heads, HeadsKV: c.KVHeads, HeadDim: c.HeadDim, Capacity: m.positions, Window: window, Scale: float32(c.QueryScale),
	}
}

// encodeFeedForward adds a layer's feed-forward block to the residual stream.
func (m *model) encodeFeedForward(p *runtime.Pass, l *layer) error {
	c, eps := m.config, float32(m.config.Eps)
	if err := nn.RMSNormBF16(p, m.normed, m.residual, l.preFFNNorm, 1, c.Hidden, eps); err != nil {
		return err
	}
	if err := nn.GEMVQ4MLXGateUpGELU(p, m.mid, l.gate, l.up, m.normed); err != nil {
		return err
	}
	if err := nn.GEMVQ4MLX(p, m.branch, l.down, m.mid); err != nil {
		return err
	}
	return nn.RMSNormResidualAddF32(p, m.residual, m.branch, l.postFFNNorm, 1, c.Hidden, eps, 1)
}

// encodeChoice turns the residual stream into the next token and advances the decode state.
func (m *model) encodeChoice(p *runtime.Pass) error {
	c, w := m.config, &m.weights
	if err := nn.RMSNormBF16(p, m.normed, m.residual, w.finalNorm, 1, c.Hidden, float32(c.Eps)); err != nil {
		return err
	}
	if err := nn.GEMVQ4MLX(p, m.logits, w.output, m.normed); err != nil {
		return err
	}
	if err := nn.SoftcapArgmax(p, m.choice, m.choiceValue, m.logits, m.softcap, c.Vocab); err != nil {
		return err
	}
	return nn.DecodeAdvance(p, nn.DecodeStep{
		State: m.state, Prompt: m.prompt, Argmax: m.choice, Output: m.output, EndTokens: m.endTokens,
		KVCapacity: m.positions, KVStride: c.KVHeads * c.HeadDim,
	})
}

// word is one word of the decode state.
func (m *model) word(i int) runtime.Slice[uint32] { return m.state.Slice(i, i+1) }
