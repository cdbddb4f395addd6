package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// plainMatrix is a matrix of plain numbers or in a block format of GGUF files, as it lies in the file.
type plainMatrix[B nn.WeightBank] struct {
	bank       B
	rows, cols int
	tiles      bool // the device has simdgroup matrices, which products of many vectors use
}

func (w plainMatrix[B]) lookup(p *runtime.Pass, out runtime.Slice[float32], ids runtime.Slice[uint32], tokens int, scale float32) error {
	return nn.EmbedLookup(p, out, w.bank, ids, tokens, scale)
}

func (w plainMatrix[B]) few(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error {
	return nn.RowExactMatvec(p, y, w.bank, x.f32, nn.RowExactContiguous(n, w.rows, w.cols))
}

func (w plainMatrix[B]) many(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error {
	if w.tiles && n > nn.MaxRowExactVectors {
		return nn.GEMMWeights(p, y, w.bank, x.f32, n)
	}
	for i := 0; i < n; i += nn.MaxRowExactRows {
		j := min(n, i+nn.MaxRowExactRows)
		if err := w.few(p, y.Slice(i*w.rows, j*w.rows), x.slice(i*w.cols, j*w.cols), j-i); err != nil {
			return err
		}
	}
	return nil
}
