package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// encodeCaches makes a layer's queries, keys and values, and stores the latter two.
func (m *model) encodeCaches(p *runtime.Pass, l *layer, at place) error {
	if err := m.norm(p, m.residual, l.inputNorm, at.rows); err != nil {
		return err
	}
	if err := m.encodeQKV(p, l, at); err != nil {
		return err
	}
	for i := range at.spans {
		if err := m.encodeRotation(p, l, &at.spans[i]); err != nil {
			return err
		}
	}
	return nil
}

// encodeQKV is three products: in one kernel where there is one.
func (m *model) encodeQKV(p *runtime.Pass, l *layer, at place) error {
	if fused, err := m.fusedQKV(p, l, at); fused {
		return err
	}
	if err := product(p, m.q, l.query, m.normed, at); err != nil {
		return err
	}
	if err := product(p, m.k, l.key, m.normed, at); err != nil {
		return err
	}
	return product(p, m.v, l.value, m.normed, at)
}

// encodeRotation adds biases to a span's queries, keys and values, normalises and turns the former two, and stores the latter
// two: what of that the model has.
func (m *model) encodeRotation(p *runtime.Pass, l *layer, s *span) error {
	c := m.config
	keys, values := m.caches(l, s.sequence)
	return nn.RMSQKVRoPEKVStore(p, nn.QKVRoPE[float32]{
		Q: m.queries(s), K: m.keysOrValues(m.k, s), V: m.keysOrValues(m.v, s), QWeight: l.queryNorm, KWeight: l.keyNorm,
		QBias: l.queryBias, KBias: l.keyBias, VBias: l.valueBias,
		CacheK: keys, CacheV: values, Position: s.position, CacheOffset: s.cacheOffset, InvFreq: l.rotary.frequencies,
		T: s.rows, HeadsQ: c.Heads, HeadsKV: c.KVHeads, HeadDim: c.HeadDim, RotaryDim: l.rotary.dim,
		Pairing: l.rotary.pairing, AttentionFactor: l.rotary.factor, Capacity: keys.Len(), Eps: float32(c.Eps),
	})
}

// queries are those of a span.
func (m *model) queries(s *span) runtime.Slice[float32] {
	n := m.config.Heads * m.config.HeadDim
	return m.q.Slice(s.first*n, (s.first+s.rows)*n)
}

func (m *model) keysOrValues(all runtime.Slice[float32], s *span) runtime.Slice[float32] {
	n := m.kvStride()
	return all.Slice(s.first*n, (s.first+s.rows)*n)
}

// encodeAttention adds a layer's attention to the residual stream.
func (m *model) encodeAttention(p *runtime.Pass, l *layer, at place) error {
	for i := range at.spans {
		if err := m.attend(p, l, &at.spans[i]); err != nil {
			return err
		}
	}
	if err := product(p, m.branch, l.attentionOutput, m.attended, at); err != nil {
		return err
	}
	if present(l.outputBias) {
		if err := nn.AddBias(p, m.branch, m.branch, l.outputBias, at.rows, m.config.Hidden); err != nil {
			return err
		}
	}
	return m.add(p, l.postAttentionNorm, at.rows)
}

// attend is the attention of a span to its sequence's cache.
func (m *model) attend(p *runtime.Pass, l *layer, s *span) error {
	n := m.config.Heads * m.config.HeadDim
	out := m.attended.slice(s.first*n, (s.first+s.rows)*n)
	keys, values := m.caches(l, s.sequence)
	live := nn.AttnLive{Tkv: s.kvLength, QPos: s.position, KVPos: m.firstKV}
	scratch, dims := part(m.partials, s.sequence, m.scratch()), m.attention(s.rows, l.window)
	if out.narrow() {
		return nn.Attention(p, out.bf16, m.queries(s), keys, values, live, scratch, dims)
	}
	return nn.Attention(p, out.f32, m.queries(s), keys, values, live, scratch, dims)
}

// attention is the shape of a layer's attention.
func (m *model) attention(rows, window int) nn.AttnDims {
	c := m.config
	return nn.AttnDims{
		Batch: 1, Tq: rows, Heads: c.Heads, HeadsKV: c.KVHeads, HeadDim: c.HeadDim, Capacity: m.positions, Window: window,
		Scale: float32(c.QueryScale), Softcap: float32(c.AttnSoftcap),
	}
}

// scratch is how many numbers a sequence's attention needs in between.
func (m *model) scratch() int { return nn.AttnDecodeScratch(m.attention(1, 0)) }
