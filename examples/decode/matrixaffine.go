package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// affineMatrix is a matrix in MLX's affine format, of codes of 4, 6 or 8 bits and scales of any type.
type affineMatrix struct {
	affine nn.AffineBank
}

func (w affineMatrix) lookup(p *runtime.Pass, out runtime.Slice[float32], ids runtime.Slice[uint32], tokens int, scale float32) error {
	return nn.EmbedLookupAffine(p, out, w.affine, ids, tokens, scale)
}

// few and many are one function, which takes other kernels for up to nn.MaxQMMAffineVectors vectors than for more.
func (w affineMatrix) few(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error {
	if x.narrow() {
		return nn.QMMAffine(p, y, w.affine, x.bf16, n)
	}
	return nn.QMMAffine(p, y, w.affine, x.f32, n)
}

func (w affineMatrix) many(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error {
	return w.few(p, y, x, n)
}
