package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// weightsProducts are all kernels of GEMMWeights, with whole tiles.
func (c costCases) weightsProducts() costFamily {
	const n, k = 128, 512
	f := costFamily{title: "Products of many rows with weights of any type", operation: "a multiply-add: rows * rows of weights * columns",
		bytes: "weights, rows and results"}
	x, h, y := c.f32(GEMMLargeTile*k), c.f16(GEMMLargeTile*k), c.f32(GEMMLargeTile*n)
	for _, t := range WeightTypes() {
		w := randomRowExact(c.t, c.rt, c.r, t, n, k)
		for i, m := range []int{GEMMSmallTile, GEMMLargeTile} {
			cost := kernelCost{gemmWeightsKernels[t][i], fmt.Sprintf("%d x %d x %d", m, n, k), m * n * k, n*t.RowBytes(k) + 4*m*(k+n),
				func(p *runtime.Pass) error { return gemmWeightsCallsFor[float32, float32](w.bank).plain(p, y, x, m) }}
			if t == WeightF32 { // with rows of float32 that is a GEMM
				cost.bytes -= 2 * m * k
				cost.call = func(p *runtime.Pass) error {
					return gemmWeightsCallsFor[float32, half.Float16](w.bank).plain(p, y, h, m)
				}
			}
			f.costs = append(f.costs, cost)
		}
	}
	return f
}
