package main

import (
	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// Kernels that do the work of several, for a single vector and matrices in MLX's 4-bit format. They have the bits of those that
// they replace, so that a text is the same whether it is decoded alone or with others.

// q4Banks are matrices of that format with one group size, if all are.
func q4Banks(ms ...matrix) (banks [3]nn.Q4MLXBank, ok bool) {
	for i, m := range ms {
		w, is := m.(q4Matrix)
		if !is || w.bank.GroupSize() != ms[0].(q4Matrix).bank.GroupSize() {
			return banks, false
		}
		banks[i] = w.bank
	}
	return banks, true
}

// fusedQKV makes queries, keys and values in one kernel, if there is one.
func (m *model) fusedQKV(p *runtime.Pass, l *layer, at place) (bool, error) {
	b, ok := q4Banks(l.query, l.key, l.value)
	if !ok || !m.normed.narrow() || at.rows != 1 {
		return false, nil
	}
	return true, nn.GEMVQ4MLXQKV(p, nn.GEMVQKV{Q: m.q, K: m.k, V: m.v, WQ: b[0], WK: b[1], WV: b[2], X: m.normed.bf16})
}

// fusedGateUp makes the middle of the feed-forward block in one kernel, if there is one.
func (m *model) fusedGateUp(p *runtime.Pass, l *layer, at place) (bool, error) {
	b, ok := q4Banks(l.gate, l.up)
	if !ok || !m.normed.narrow() || at.rows != 1 || m.config.Activation != checkpoint.GELUTanh {
		return false, nil
	}
	return true, nn.GEMVQ4MLXGateUpGELU(p, m.mid.bf16, b[0], b[1], m.normed.bf16)
}

// gated is the middle of a feed-forward block: activation(gate) * up.
func gated[T nn.FloatOrBFloat](p *runtime.Pass, a checkpoint.Activation, out runtime.Slice[T], gate, up runtime.Slice[float32], n int) error {
	if a == checkpoint.SiLU {
		return nn.MLPSiLU(p, out, gate, up, n)
	}
	return nn.MLPGELUTanh(p, out, gate, up, n)
}
