package nn

import (
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

func init() {
	const slots, constants = "0r 1r 2r 3r 4w 5p", "400 uint, 401 uint, 402 uint"
	kernelSlots[QMMAffineScalar.String()] = slots
	for _, k := range QMMAffineKernels()[1:] {
		kernelSlots[k.String()] = slots + " 0t"
	}
	kernelSlots[qmmAffinePacked.kernel] = slots + " 0t"
	kernelSlots["qmm_affine_t_packed_simd4_b4_gs64_bf16_prepare"] = "0r 1w 2w 3p"
	kernelSlots["qmm_affine_t_packed_simd4_b4_gs64_bf16"] = slots
	for _, names := range qmmAffineKernels {
		for _, name := range names {
			kernelSlots[name], kernelConstants[name] = slots, constants
		}
	}
	for _, bits := range []int{4, 6, 8} {
		name := embedAffineKernels[bits]
		kernelSlots[name], kernelConstants[name] = "0r 1r 2r 3r 4w 5u 6u 7u 8u 9f", "402 uint"
	}
}

// affineCalls are calls for which nothing may be allocated and nothing be taken after the pass.
func affineCalls(t testing.TB, rt *runtime.Runtime) map[string]func(p *runtime.Pass) error {
	t.Helper()
	r := source(1550)
	const n, k, m = 64, 64, 20
	a := randomAffine(t, rt, r, quant.AffineFormat{Bits: 6, GroupSize: 32, Scale: quant.ScaleF16}, n, k)
	packed := randomAffine(t, rt, r, quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}, n, k)
	codes, tiles := randomAffineCodes(t, rt, r, n, k, 64), uploadAffinePlane(t, rt, randomAffine(t, rt, r, planeFormat, n, k).host)
	x, y, ids := newBuffer(t, rt, normals(r, m*k, 1)), output[float32](t, rt, m*n), newBuffer(t, rt, []uint32{3})
	plane := newPlaneProduct(t, rt, tiles, normals(r, m*k, 1), m)
	return map[string]func(p *runtime.Pass) error{
		"QMMAffine":         func(p *runtime.Pass) error { return QMMAffine(p, y.s, a.bank, x.s, m) },
		"QMMAffine, 9 of x": func(p *runtime.Pass) error { return QMMAffine(p, y.s, a.bank, x.s, 9) },
		"QMMAffineCodes":    func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, codes.bank, x.s, m, QMMAffineSimd4GS64) },
		"QMMAffinePacked":   func(p *runtime.Pass) error { return QMMAffinePacked(p, y.s, packed.bank, x.s, m) },
		"QMMAffinePlane":    func(p *runtime.Pass) error { return QMMAffinePlane(p, plane.a) },
		"EmbedLookupAffine": func(p *runtime.Pass) error { return EmbedLookupAffine(p, y.s, a.bank, ids.s, 1, 8) },
	}
}
