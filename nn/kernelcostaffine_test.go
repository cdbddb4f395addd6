package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// affineProducts are all kernels with matrices in MLX's affine format.
func (c costCases) affineProducts() costFamily {
	const n, k = 64, 1024
	f := costFamily{title: "Products with affine matrices of 4, 6 and 8 bits, vectors of any type",
		operation: "a multiply-add: vectors * rows * columns; for the kernel that rounds vectors, an element of theirs",
		bytes:     "codes, scales and biases; vectors and results; for the two kernels of a plane their scratch"}
	shape := func(m int) string {
		if m == 1 {
			return fmt.Sprintf("%d x %d", n, k)
		}
		return fmt.Sprintf("%d x %d, %d vectors", n, k, m)
	}
	x, y, half, out := c.f32(64*k), c.f32(64*n), c.bf16(64*k), c.bf16(64*n)
	for _, bits := range []int{4, 6, 8} {
		a := randomAffine(c.t, c.rt, c.r, quant.AffineFormat{Bits: bits, GroupSize: 64, Scale: quant.ScaleBF16}, n, k)
		bytes := n*k*bits/8 + 4*n*k/64
		for _, m := range []int{1, 2, 3, 4, 5, 6, 7, 8, 32, 64} {
			f.costs = append(f.costs, kernelCost{QMMAffineRouteFor(m, true).Kernel(bits), shape(m), m * n * k, bytes + 2*m*(n+k),
				func(p *runtime.Pass) error { return QMMAffine(p, out, a.bank, half, m) }})
		}
	}
	const m = 32
	for _, kernel := range QMMAffineKernels() {
		group := max(kernel.GroupSize(), 32)
		w := randomAffineCodes(c.t, c.rt, c.r, n, k, group)
		f.costs = append(f.costs, kernelCost{kernel.String(), shape(m), m * n * k, n*k + 8*n*k/group + 4*m*(n+k),
			func(p *runtime.Pass) error { return QMMAffineCodes(p, y, w.bank, x, m, kernel) }})
	}
	packed := randomAffine(c.t, c.rt, c.r, quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}, n, k)
	f.costs = append(f.costs, kernelCost{qmmAffinePacked.kernel, shape(m), m * n * k, n*k/2 + 8*n*k/32 + 4*m*(n+k),
		func(p *runtime.Pass) error { return QMMAffinePacked(p, y, packed.bank, x, m) }})
	w := uploadAffinePlane(c.t, c.rt, randomAffine(c.t, c.rt, c.r, planeFormat, n, k).host)
	plane := newPlaneProduct(c.t, c.rt, w, normals(c.r, m*k, 1), m)
	scratch := 2*m*k + 4*m*k/64
	call := func(p *runtime.Pass) error { return QMMAffinePlane(p, plane.a) }
	f.costs = append(f.costs, kernelCost{"qmm_affine_t_packed_simd4_b4_gs64_bf16_prepare", fmt.Sprintf("%d vectors of %d", m, k), m * k, 4*m*k + scratch, call},
		kernelCost{"qmm_affine_t_packed_simd4_b4_gs64_bf16", shape(m), m * n * k, n*k/2 + 4*n*k/64 + scratch + 4*m*n, call})
	return f
}

// affineEmbeddings are the lookups in tables of that format.
func (c costCases) affineEmbeddings() (costs []kernelCost) {
	const vocab, hidden, tokens, group = 64, 512, 8, 64
	n := tokens * hidden
	out, ids := c.f32(n), c.u32(1, 7, 8, 9, 40, 41, 62, 63)
	for _, bits := range []int{4, 6, 8} {
		table := randomAffine(c.t, c.rt, c.r, quant.AffineFormat{Bits: bits, GroupSize: group, Scale: quant.ScaleBF16}, vocab, hidden)
		costs = append(costs, kernelCost{embedAffineKernels[bits], fmt.Sprintf("%d of %d", tokens, hidden), n, n*bits/8 + n/group*4 + 4*tokens + 4*n,
			func(p *runtime.Pass) error { return EmbedLookupAffine(p, out, table.bank, ids, tokens, 2) }})
	}
	return costs
}
