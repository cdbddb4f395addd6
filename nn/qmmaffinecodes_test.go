package nn

import (
	"fmt"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// Each kernel in every shape against float64.
func TestQMMAffineCodes(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(1500)
	for _, kernel := range QMMAffineKernels() {
		t.Run(kernel.String(), func(t *testing.T) {
			var w worst
			for i, s := range qmmShapes {
				group := kernel.GroupSize()
				if group == 0 {
					group = []int{2, 4, 16, 32, 64, 128}[i%6]
				}
				k := s.groups * group
				m := randomAffineCodes(t, rt, r, s.n, k, group)
				x := normals(r, s.m*k, []float64{1, 1e4, 1e-4, 1e15, 1e-15}[i%5])
				in, y := newBuffer(t, rt, x), output[float32](t, rt, s.m*s.n)
				encode(t, rt, 1, func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, m.bank, in.s, s.m, kernel) })
				want, size := oracle.GEMM(m.o, x, s.m), weightMagnitude(m.o, x, s.m)
				w.compare(t, fmt.Sprintf("%+v groups of %d", s, group), widen(y.written()), want, func(i int) float64 { return size[i]*codesBudget(k) + 1e-36 })
			}
			w.log(t, "2^-24 of the sum of |w x| for each column", "QMMAffineCodes")
		})
	}
}

// The order of the sums is that of the columns: the tiled kernel has the bits of the scalar one, and the tiles of 8 by 8, of 32 by 32 and
// from packed codes have the same, also where every addition rounds.
func TestQMMAffineCodesSameBits(t *testing.T) {
	rt, r := open(t), source(1501)
	for i, s := range []qmmShape{{1, 1, 2}, {17, 50, 3}, {33, 31, 5}, {32, 64, 4}, {70, 5, 1}} {
		k := 32 * s.groups
		a, err := quant.QuantizeAffine(normals(r, s.n*k, 1), s.n, k, quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32})
		if err != nil {
			t.Fatal(err)
		}
		codes, err := a.Unpack()
		if err != nil {
			t.Fatal(err)
		}
		plain, packed := uploadAffineCodes(t, rt, codes), uploadAffine(t, rt, a)
		x := spread(r, normals(r, s.m*k, 1))
		in := newBuffer(t, rt, x)
		out := func() *buffer[float32] { return output[float32](t, rt, s.m*s.n) }
		scalar, tiled, simd, simd4, words := out(), out(), out(), out(), out()
		encode(t, rt, 5, func(p *runtime.Pass) error {
			for kernel, y := range map[QMMAffineKernel]*buffer[float32]{QMMAffineScalar: scalar, QMMAffineTiled: tiled, QMMAffineSimd: simd, QMMAffineSimd4: simd4} {
				if err := QMMAffineCodes(p, y.s, plain.bank, in.s, s.m, kernel); err != nil {
					return err
				}
			}
			return QMMAffinePacked(p, words.s, packed.bank, in.s, s.m)
		})
		where := fmt.Sprintf("%d: %+v", i, s)
		scalar.written()
		simd.written()
		sameBits(t, where+": tiled", tiled, scalar)
		sameBits(t, where+": tiles of 32", simd4, simd)
		sameBits(t, where+": packed", words, simd4)
	}
}

// Packed codes in every shape: right, and byte for byte what bytes give.
func TestQMMAffinePacked(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(1502)
	var w worst
	for i, s := range qmmShapes {
		k := 32 * s.groups
		m := randomAffine(t, rt, r, quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}, s.n, k)
		codes, err := m.host.Unpack()
		if err != nil {
			t.Fatal(err)
		}
		plain := uploadAffineCodes(t, rt, codes)
		x := normals(r, s.m*k, []float64{1, 1e4, 1e-4, 1e15, 1e-15}[i%5])
		in, y, want := newBuffer(t, rt, x), output[float32](t, rt, s.m*s.n), output[float32](t, rt, s.m*s.n)
		encode(t, rt, 2, func(p *runtime.Pass) error {
			if err := QMMAffineCodes(p, want.s, plain.bank, in.s, s.m, QMMAffineSimd4); err != nil {
				return err
			}
			return QMMAffinePacked(p, y.s, m.bank, in.s, s.m)
		})
		where := fmt.Sprintf("%+v", s)
		sums, size := oracle.GEMM(m.o, x, s.m), weightMagnitude(m.o, x, s.m)
		w.compare(t, where, widen(y.written()), sums, func(i int) float64 { return size[i]*codesBudget(k) + 1e-36 })
		sameBits(t, where, y, want)
	}
	w.log(t, "2^-24 of the sum of |w x| for each column", "QMMAffinePacked")
}

// An element is the same bits whatever m and its row are, in every kernel.
func TestQMMAffineCodesPlaces(t *testing.T) {
	rt, r := open(t), source(1503)
	for _, kernel := range QMMAffineKernels() {
		group := max(kernel.GroupSize(), 32)
		k := 2 * group
		w := randomAffineCodes(t, rt, r, 37, k, group)
		const most = 41
		x := spread(r, normals(r, most*k, 1))
		in, all := newBuffer(t, rt, x), output[float32](t, rt, most*37)
		encode(t, rt, 1, func(p *runtime.Pass) error { return QMMAffineCodes(p, all.s, w.bank, in.s, most, kernel) })
		got := all.written()
		for _, part := range [][2]int{{0, 1}, {40, 1}, {3, 17}, {8, 33}} {
			y := output[float32](t, rt, part[1]*37)
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return QMMAffineCodes(p, y.s, w.bank, in.s.Slice(part[0]*k, most*k), part[1], kernel)
			})
			sameElements(t, fmt.Sprintf("%v, rows %v", kernel, part), got[part[0]*37:][:part[1]*37], y.written())
		}
	}
}
