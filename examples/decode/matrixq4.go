package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// q4Matrix is a matrix in MLX's 4-bit format with bfloat16 scales, which has kernels of its own: fused ones for a single vector
// (see encodeQKV and encodeGateUp), all with the same bits.
type q4Matrix struct {
	bank nn.Q4MLXBank
}

func (w q4Matrix) size() (rows, cols int) { return w.bank.Rows(), w.bank.Cols() }

func (w q4Matrix) lookup(p *runtime.Pass, out runtime.Slice[float32], ids runtime.Slice[uint32], tokens int, scale float32) error {
	return nn.EmbedLookupQ4MLX(p, out, w.bank, ids, tokens, scale)
}

func (w q4Matrix) few(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error {
	if n == 1 {
		return nn.GEMVQ4MLX(p, y, w.bank, x.bf16)
	}
	rows, cols := w.size()
	for i := 0; i < n; i += nn.MaxGEMMVectors {
		j := min(n, i+nn.MaxGEMMVectors)
		if err := nn.GEMMQ4MLX(p, y.Slice(i*rows, j*rows), w.bank, x.bf16.Slice(i*cols, j*cols), j-i); err != nil {
			return err
		}
	}
	return nil
}

func (w q4Matrix) many(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error {
	return w.few(p, y, x, n)
}
