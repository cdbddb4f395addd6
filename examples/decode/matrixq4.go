package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// q4Matrix is a matrix in MLX's 4-bit format with bfloat16 scales. For a few vectors of bfloat16 it has kernels of its own, fused
// ones for a single one (see encodeQKV and encodeGateUp), all with the same bits. Whatever else is asked of it, it is an
// affineMatrix: of the same codes, with scales and biases of its own.
type q4Matrix struct {
	bank nn.Q4MLXBank
	affineMatrix
}

func (w q4Matrix) lookup(p *runtime.Pass, out runtime.Slice[float32], ids runtime.Slice[uint32], tokens int, scale float32) error {
	return nn.EmbedLookupQ4MLX(p, out, w.bank, ids, tokens, scale)
}

func (w q4Matrix) few(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error {
	if !x.narrow() {
		return w.affineMatrix.few(p, y, x, n)
	}
	if n == 1 {
		return nn.GEMVQ4MLX(p, y, w.bank, x.bf16)
	}
	rows, cols := w.bank.Rows(), w.bank.Cols()
	for i := 0; i < n; i += nn.MaxGEMMVectors {
		j := min(n, i+nn.MaxGEMMVectors)
		if err := nn.GEMMQ4MLX(p, y.Slice(i*rows, j*rows), w.bank, x.bf16.Slice(i*cols, j*cols), j-i); err != nil {
			return err
		}
	}
	return nil
}

func (w q4Matrix) many(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error {
	if x.narrow() && n <= nn.MaxGEMMVectors {
		return w.few(p, y, x, n)
	}
	return w.affineMatrix.many(p, y, x, n)
}
