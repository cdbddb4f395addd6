package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func (c costCases) u8(n int) runtime.Slice[uint8] {
	codes := make([]uint8, n)
	for i := range codes {
		codes[i] = uint8(c.r.IntN(256))
	}
	return newBuffer(c.t, c.rt, codes).s
}

// precise is causal attention on simdgroup matrices.
func (c costCases) precise() costFamily {
	f := costFamily{title: "Attention on simdgroup matrices",
		operation: "a multiply-add: two products with the head dimension for each head, row and key that the row sees; for the mask's tiles an element of the mask",
		bytes:     "queries; keys, values and norms that some row sees, once for each head of the cache; results; for the tiles the mask and the result"}
	for _, dim := range []int{64, 128, 256, 512} {
		shape := attnCostShape{tq: 32, tkv: 64, heads: 2, headsKV: 1, dim: dim}
		n := shape.tkv * dim
		q, k, out := c.f16(shape.tq*shape.heads*dim), c.f16(n), c.f32(shape.tq*shape.heads*dim)
		d := PreciseDims{Batch: 1, Heads: 2, HeadsKV: 1, HeadDim: dim, Tq: shape.tq, Tk: shape.tkv, Capacity: shape.tkv, QOffset: shape.tkv - shape.tq,
			Causal: true, Scale: 0.1}
		codec := quant.TQHB{Dim: dim, Bits: 8}
		bytes := 2*q.Len() + 2*n + 4*out.Len()
		for _, v := range []struct {
			form  PreciseForm
			v     PreciseV
			bytes int
		}{
			{PreciseF32, PreciseV{F32: c.f32(n)}, 4 * n},
			{PreciseF16, PreciseV{F16: c.f16(n)}, 2 * n},
			{PreciseCodes, PreciseV{Codes: c.u8(n), Norms: c.f32(shape.tkv * codec.Norms()), Codec: codec}, n + 4*shape.tkv*codec.Norms()},
		} {
			f.costs = append(f.costs, kernelCost{PrecisePipeline{HeadDim: dim, V: v.form}.Kernel(), shape.String(), shape.operations(), bytes + v.bytes,
				func(p *runtime.Pass) error { return FlashAttnPrecise(p, out, q, k, v.v, d) }})
		}
	}
	const tq, tk = 64, 64
	mask, blocks := newBuffer(c.t, c.rt, make([]half.Float16, tq*tk)).s, c.u8(8)
	f.costs = append(f.costs, kernelCost{"flash_attn_prefill_blk", "mask of 64 x 64", tq * tk, 2*tq*tk + 8,
		func(p *runtime.Pass) error { return PreciseBlocks(p, blocks, mask, 128, tq, tk) }})
	return f
}

// codecs encode and decode vectors of a cache.
func (c costCases) codecs() costFamily {
	f := costFamily{title: "Vectors of a cache as codes",
		operation: "a number",
		bytes:     "numbers, codes and norms"}
	const vectors = 16
	for _, dim := range []int{64, 128, 256, 512} {
		codec := quant.TQHB{Dim: dim, Bits: 8}
		cache := TQHBCache{Codes: c.u8(vectors * dim), Norms: c.f32(vectors * codec.Norms()), Capacity: vectors, Codec: codec}
		x, at := c.f32(vectors*dim), c.u32(0)
		f.costs = append(f.costs, kernelCost{tqhbEncoders[dim], fmt.Sprintf("%d of %d", vectors, dim), vectors * dim, vectors * (5*dim + 4*codec.Norms()),
			func(p *runtime.Pass) error { return TQHBEncode(p, cache, x, at, vectors, 1, false) }})
		if dim == 256 {
			f.costs = append(f.costs, kernelCost{"tqhb_dequantize", fmt.Sprintf("%d of %d", vectors, dim), vectors * dim, vectors * (5*dim + 4),
				func(p *runtime.Pass) error { return TQHBDequantize(p, x, cache.Codes, cache.Norms, codec, vectors) }})
		}
	}
	return f
}
