package quant

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime/half"
)

// Dequantize writes the weights, scale * code + bias, to dst, row-major. Each is rounded once, to float32.
func (q Q4MLX) Dequantize(dst []float32) error {
	const fn = "Q4MLX.Dequantize"
	if err := q.lengths(fn); err != nil {
		return err
	}
	if len(dst)%q.Cols != 0 || len(dst)/q.Cols != q.Rows {
		return shape(fn, "dst", fmt.Sprintf("%d numbers", len(dst)), fmt.Sprintf("%d * %d", q.Rows, q.Cols))
	}
	for i := range dst {
		scale, bias := q.group(i / q.GroupSize)
		// The product of 8 by 4 significant bits is exact, so this rounds once.
		dst[i] = float32(scale*float64(q.Packed[i/CodesPerWord]>>(4*(i%CodesPerWord))&15) + bias)
	}
	return nil
}

// group is the scale and the bias of the group at index g.
func (q Q4MLX) group(g int) (scale, bias float64) {
	return float64(q.ScalesBiases[2*g].Float32()), float64(q.ScalesBiases[2*g+1].Float32())
}

// MulVec is the product with a bfloat16 vector in float64, y[r] = sum over c of w[r, c] * x[c]: what kernels are measured
// against. len(x) is Cols and len(y) is Rows.
func (q Q4MLX) MulVec(y []float64, x []half.BFloat16) error {
	const fn = "Q4MLX.MulVec"
	if err := q.lengths(fn); err != nil {
		return err
	}
	switch {
	case len(x) != q.Cols:
		return shape(fn, "x", fmt.Sprintf("%d numbers", len(x)), fmt.Sprintf("%d, one for each column", q.Cols))
	case len(y) != q.Rows:
		return shape(fn, "y", fmt.Sprintf("%d numbers", len(y)), fmt.Sprintf("%d, one for each row", q.Rows))
	}
	wide := make([]float64, len(x))
	for i, b := range x {
		wide[i] = float64(b.Float32())
	}
	for r := range y {
		y[r] = 0
		for c := 0; c < q.Cols; c += q.GroupSize {
			scale, bias := q.group((r*q.Cols + c) / q.GroupSize)
			for i := c; i < c+q.GroupSize; i++ {
				code := q.Packed[r*(q.Cols/CodesPerWord)+i/CodesPerWord] >> (4 * (i % CodesPerWord)) & 15
				y[r] += (scale*float64(code) + bias) * wide[i]
			}
		}
	}
	return nil
}
