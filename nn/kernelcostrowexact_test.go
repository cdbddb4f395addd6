package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

// rowExactProducts are all kernels of RowExactMatvec, with the simdgroups that it would give them.
func (c costCases) rowExactProducts() costFamily {
	const n, k = 64, 2048
	f := costFamily{title: "Row-exact products with weights of any type, vectors of float32",
		operation: "a multiply-add: vectors * rows * columns", bytes: "weights, vectors and results"}
	x, y := c.f32(MaxRowExactVectors*k), c.f32(MaxRowExactVectors*n)
	for _, t := range WeightTypes() {
		w := randomRowExact(c.t, c.rt, c.r, t, n, k)
		for rows := 1; t.SupportsRows(rows); rows *= 2 {
			for m := 1; m <= MaxRowExactVectors; m++ {
				s := RowExactContiguous(m, n, k)
				how := RowExactSchedule{RowExactAuto(t, s).Simdgroups, rows}
				shape := fmt.Sprintf("%d x %d", n, k)
				if m > 1 {
					shape += fmt.Sprintf(", %d vectors", m)
				}
				f.costs = append(f.costs, kernelCost{rowExactKernel(t, rows, m), shape, m * n * k, n*t.RowBytes(k) + 4*m*(k+n),
					func(p *runtime.Pass) error { return w.scheduled(p, y, x, s, how) }})
			}
		}
	}
	return f
}
