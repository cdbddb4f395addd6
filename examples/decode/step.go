package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// encode puts one decode step into a pass: one token of each sequence goes in, its logits come out. The same function
// serves direct encoding and recording. What changes from token to token, the kernels read from the decode states.
//
// If the device chooses the next tokens, the step's last kernels do that and advance the states. If the host does, the states
// advance to the tokens that it chose at the beginning of the next step.
func (m *model) encode(p *runtime.Pass) error {
	at := m.step()
	if m.sampled {
		if err := m.encodeAdvance(p, m.sequences); err != nil {
			return err
		}
	}
	if err := m.encodeLayers(p, at, true); err != nil {
		return err
	}
	return m.encodeNext(p, 0, m.sequences)
}

// encodeLayers makes the residual stream of some tokens, with what all layers add to it, or only what the caches need: of the
// last layer that is its keys and values.
func (m *model) encodeLayers(p *runtime.Pass, at place, all bool) error {
	c, w := m.config, &m.weights
	for _, s := range at.spans {
		rows := m.residual.Slice(s.first*c.Hidden, (s.first+s.rows)*c.Hidden)
		if err := w.embedding.lookup(p, rows, s.tokens, s.rows, float32(c.EmbedScale)); err != nil {
			return err
		}
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
		if err := m.encodeFeedForward(p, l, at); err != nil {
			return err
		}
	}
	return p.PopDebugGroup()
}

// norm normalises rows of the residual stream for the products that follow.
func (m *model) norm(p *runtime.Pass, x, weight runtime.Slice[float32], rows int) error {
	if m.normed.narrow() {
		return nn.RMSNormBF16(p, m.normed.bf16, x, weight, rows, m.config.Hidden, float32(m.config.Eps))
	}
	return nn.RMSNormF32(p, m.normed.f32, x, weight, rows, m.config.Hidden, float32(m.config.Eps))
}

// product multiplies a matrix with the rows of a step or a tile.
func product(p *runtime.Pass, y runtime.Slice[float32], w matrix, x activation, at place) error {
	if at.tile {
		return w.many(p, y, x, at.rows)
	}
	return w.few(p, y, x, at.rows)
}

// add adds a layer's branch to the residual stream, normalised if the model has a norm there.
func (m *model) add(p *runtime.Pass, norm runtime.Slice[float32], rows int) error {
	if present(norm) {
		return nn.RMSNormResidualAddF32(p, m.residual, m.branch, norm, rows, m.config.Hidden, float32(m.config.Eps), 1)
	}
	return nn.AddInPlace(p, m.residual, m.branch, rows*m.config.Hidden)
}

// encodeFeedForward adds a layer's feed-forward block to the residual stream.
func (m *model) encodeFeedForward(p *runtime.Pass, l *layer, at place) error {
	if err := m.norm(p, m.residual, l.preFFNNorm, at.rows); err != nil {
		return err
	}
	if err := m.encodeGateUp(p, l, at); err != nil {
		return err
	}
	if err := product(p, m.branch, l.down, m.mid, at); err != nil {
		return err
	}
	return m.add(p, l.postFFNNorm, at.rows)
}

// encodeGateUp is the first half of the feed-forward block: in one kernel where there is one.
func (m *model) encodeGateUp(p *runtime.Pass, l *layer, at place) error {
	if fused, err := m.fusedGateUp(p, l, at); fused {
		return err
	}
	if err := product(p, m.gate, l.gate, m.normed, at); err != nil {
		return err
	}
	if err := product(p, m.up, l.up, m.normed, at); err != nil {
		return err
	}
	n := at.rows * m.config.FFN
	if m.mid.narrow() {
		return gated(p, m.config.Activation, m.mid.bf16, m.gate, m.up, n)
	}
	return gated(p, m.config.Activation, m.mid.f32, m.gate, m.up, n)
}

// encodeLogits makes the logits of sequences from rows of the residual stream.
func (m *model) encodeLogits(p *runtime.Pass, first, rows int) error {
	c, w := m.config, &m.weights
	if err := m.norm(p, m.residual.Slice(first*c.Hidden, (first+rows)*c.Hidden), w.finalNorm, rows); err != nil {
		return err
	}
	return w.output.few(p, m.logits, m.normed, rows)
}

// encodeNext turns rows of the residual stream, those of the first sequences, into their logits. If the device chooses, it
// also makes the choices and advances the states.
func (m *model) encodeNext(p *runtime.Pass, first, rows int) error {
	if err := m.encodeLogits(p, first, rows); err != nil || m.sampled {
		return err
	}
	for i := range rows {
		err := nn.SoftcapArgmax(p, part(m.choice, i, 1), part(m.choiceValue, i, 1), part(m.logits, i, m.config.Vocab), m.softcap, m.config.Vocab)
		if err != nil {
			return err
		}
	}
	return m.encodeAdvance(p, rows)
}

// encodeAdvance takes the first sequences' choices as their next tokens.
func (m *model) encodeAdvance(p *runtime.Pass, sequences int) error {
	for i := range sequences {
		err := nn.DecodeAdvance(p, nn.DecodeStep{
			State: m.stateOf(i), Prompt: part(m.prompt, i, m.longest), Argmax: part(m.choice, i, 1), Output: part(m.output, i, m.n),
			EndTokens: m.endTokens, KVCapacity: m.positions, KVStride: m.kvStride(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
