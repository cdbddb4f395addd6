package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestQMMAffineRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(1580)
	f := quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}
	const n, k = 8, 64
	w, theirs := randomAffine(t, rt, r, f, n, k), randomAffine(t, foreign, r, f, n, k)
	codes, theirCodes := randomAffineCodes(t, rt, r, n, k, 32), randomAffineCodes(t, foreign, r, n, k, 32)
	x, y := newBuffer(t, rt, normals(r, 40*k, 1)), output[float32](t, rt, 40*n)
	h := output[half.BFloat16](t, rt, 3*k)
	fy := output[float32](t, foreign, 40*k)
	dropped, err := UploadAffine(rt, w.host)
	if err != nil {
		t.Fatal(err)
	}
	if err := dropped.Release(); err != nil {
		t.Fatal(err)
	}
	// A bank whose scales are in memory that is written to.
	scales := newBuffer(t, rt, w.host.Scales)
	sharing, err := NewAffineBank(f, w.bank.weight, scales.s, w.bank.biases, n, k)
	if err != nil {
		t.Fatal(err)
	}
	inScales, err := runtime.As[float32](scales.s.View())
	if err != nil {
		t.Fatal(err)
	}
	outs := []target{x, y, fy, scales}
	// What all functions refuse; z stands for a bank that is w, theirs, the zero bank or one that was released.
	type call func(y vec32, z int, x vec32, m int) func(p *runtime.Pass) error
	list := func(call call) []refusal {
		return []refusal{
			{"m negative", call(y.s, 0, x.s, -1), runtime.ErrShape, []string{"m", "-1"}},
			{"m huge", call(y.s, 0, x.s, math.MaxInt), runtime.ErrShape, []string{"m"}},
			{"m beyond memory", call(y.s, 0, x.s, math.MaxInt32), runtime.ErrShape, []string{"x", "2560 elements"}},
			{"zero bank", call(y.s, 2, x.s, 1), runtime.ErrShape, []string{"w", "zero bank", "Bank"}},
			{"zero bank and no vectors", call(y.s, 2, x.s, 0), runtime.ErrShape, []string{"w", "zero bank"}},
			{"x short", call(y.s, 0, x.s.Slice(0, 3*k-1), 3), runtime.ErrShape, []string{"x", "191", "192"}},
			{"y short", call(y.s.Slice(0, 3*n-1), 0, x.s, 3), runtime.ErrShape, []string{"y", "23", "24"}},
			{"x zero", call(y.s, 0, vec32{}, 3), runtime.ErrShape, []string{"x"}},
			{"y zero", call(vec32{}, 0, x.s, 3), runtime.ErrShape, []string{"y"}},
			{"bank foreign", call(y.s, 1, x.s, 3), runtime.ErrForeign, []string{"w"}},
			{"x foreign", call(y.s, 0, fy.s, 3), runtime.ErrForeign, []string{"x"}},
			{"y foreign", call(fy.s, 0, x.s, 3), runtime.ErrForeign, []string{"y"}},
			{"y over x", call(x.s.Slice(2*k, 4*k), 0, x.s, 3), runtime.ErrOverlap, []string{"y", "x"}},
		}
	}
	banks := []AffineBank{w.bank, theirs.bank, {}, dropped}
	codeBanks := []AffineCodesBank{codes.bank, theirCodes.bank, {}}
	bankCall := func(y vec32, z int, x vec32, m int) func(p *runtime.Pass) error {
		return func(p *runtime.Pass) error {
			return alike(t, QMMAffine(p, y, banks[z], x, m), ValidateQMMAffine(rt, y, banks[z], x, m))
		}
	}
	refuses(t, rt, "nn.QMMAffine", outs, append(list(bankCall),
		refusal{"no pass", func(*runtime.Pass) error { return QMMAffine(nil, y.s, w.bank, x.s, 1) }, runtime.ErrMisuse, []string{"p", "nil"}},
		refusal{"bank released", bankCall(y.s, 3, x.s, 1), runtime.ErrClosed, []string{"w"}},
		refusal{"x not aligned", bankCall(y.s, 0, x.s.Slice(1, 2*k), 1), runtime.ErrShape, []string{"x", "multiple of 16"}},
		refusal{"x of bfloat16 not aligned", func(p *runtime.Pass) error { return QMMAffine(p, y.s, w.bank, h.s.Slice(2, 2*k), 1) }, runtime.ErrShape, []string{"x", "multiple of 8"}},
		refusal{"y in the scales", func(p *runtime.Pass) error {
			return QMMAffine(p, inScales, sharing, x.s, 1)
		}, runtime.ErrOverlap, []string{"y", "w"}},
	))
	refuses(t, rt, "nn.QMMAffinePacked", outs, list(func(y vec32, z int, x vec32, m int) func(p *runtime.Pass) error {
		return func(p *runtime.Pass) error {
			return alike(t, QMMAffinePacked(p, y, banks[z], x, m), ValidateQMMAffinePacked(rt, y, banks[z], x, m))
		}
	}))
	for _, kernel := range []QMMAffineKernel{QMMAffineScalar, QMMAffineTiled, QMMAffineSimd, QMMAffineSimd4} {
		refuses(t, rt, "nn.QMMAffineCodes", outs, list(func(y vec32, z int, x vec32, m int) func(p *runtime.Pass) error {
			return func(p *runtime.Pass) error {
				return alike(t, QMMAffineCodes(p, y, codeBanks[z], x, m, kernel), ValidateQMMAffineCodes(rt, y, codeBanks[z], x, m, kernel))
			}
		}))
	}
	refuses(t, rt, "nn.QMMAffineCodes", outs, []refusal{
		{"no kernel", func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, codes.bank, x.s, 1, 0) }, runtime.ErrShape, []string{"kernel", "QMMAffineKernel(0)"}},
		{"no such kernel", func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, codes.bank, x.s, 1, 6) }, runtime.ErrShape, []string{"kernel", "QMMAffineKernel(6)"}},
		{"groups of 32 for 64", func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, codes.bank, x.s, 1, QMMAffineSimd4GS64) }, runtime.ErrShape, []string{"w", "groups of 32", "groups of 64"}},
	})
	for _, none := range []QMMAffineKernel{0, 6} {
		groups, threads := none.Geometry(3, 3)
		if none.GroupSize() != 0 || groups != (runtime.Size{}) || threads != (runtime.Size{}) {
			t.Errorf("%v: %d, %v, %v", none, none.GroupSize(), groups, threads)
		}
	}
	// No vectors are no work.
	encode(t, rt, 0, bankCall(y.s, 0, x.s, 0))
	encode(t, rt, 0, func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, codes.bank, x.s, 0, QMMAffineTiled) })
	encode(t, rt, 0, func(p *runtime.Pass) error { return QMMAffinePacked(p, y.s, w.bank, x.s, 0) })
	y.untouched()
	checkRefused(t, "nn.ValidateQMMAffine", refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt", "nil"}}, ValidateQMMAffine(nil, y.s, w.bank, x.s, 1))
}

// The launches of the seed's geometry.
func TestQMMAffineGeometry(t *testing.T) {
	for _, c := range []struct {
		kernel          QMMAffineKernel
		m, n            int
		groups, threads runtime.Size
	}{
		{QMMAffineScalar, 0, 0, runtime.D2(0, 0), runtime.D2(1, 1)}, {QMMAffineScalar, 1, 1, runtime.D2(1, 1), runtime.D2(1, 1)}, {QMMAffineScalar, 7, 40, runtime.D2(1, 3), runtime.D2(7, 16)}, {QMMAffineScalar, 17, 16, runtime.D2(2, 1), runtime.D2(16, 16)},
		{QMMAffineTiled, 17, 16, runtime.D2(2, 1), runtime.D2(16, 16)}, {QMMAffineSimd, 17, 9, runtime.D2(3, 2), runtime.D1(32)},
		{QMMAffineSimd4, 33, 32, runtime.D2(2, 1), runtime.D1(128)}, {QMMAffineSimd4GS64, 1, 65, runtime.D2(1, 3), runtime.D1(128)},
	} {
		if groups, threads := c.kernel.Geometry(c.m, c.n); groups != c.groups || threads != c.threads {
			t.Errorf("%v, %d by %d: %v of %v", c.kernel, c.m, c.n, groups, threads)
		}
	}
}

func TestQMMAffinePlaneRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(1581)
	const n, k, m = 64, 128, 9
	host := randomAffine(t, rt, r, planeFormat, n, k).host
	w, theirs := uploadAffinePlane(t, rt, host), uploadAffinePlane(t, foreign, host)
	q, f := newPlaneProduct(t, rt, w, normals(r, m*k, 1), m), newPlaneProduct(t, foreign, theirs, normals(r, m*k, 1), m)
	both := output[float32](t, rt, 4*m*k)
	outs := []target{q.x, q.y, q.table, q.sums, both}
	with := func(change func(a *QMMAffinePlaneArgs)) func(p *runtime.Pass) error {
		a := q.a
		change(&a)
		return func(p *runtime.Pass) error { return alike(t, QMMAffinePlane(p, a), ValidateQMMAffinePlane(rt, a)) }
	}
	type args = QMMAffinePlaneArgs
	refuses(t, rt, "nn.QMMAffinePlane", outs, []refusal{
		{"no pass", func(*runtime.Pass) error { return QMMAffinePlane(nil, q.a) }, runtime.ErrMisuse, []string{"p"}},
		{"33 vectors", with(func(a *args) { a.M = 33 }), runtime.ErrLimit, []string{"M", "33", "at most 32"}},
		{"m negative", with(func(a *args) { a.M = -1 }), runtime.ErrShape, []string{"M", "-1"}},
		{"zero bank", with(func(a *args) { a.W = AffinePlaneBank{} }), runtime.ErrShape, []string{"W", "zero bank", "NewAffinePlaneBank"}},
		{"x short", with(func(a *args) { a.X = a.X.Slice(0, m*k-1) }), runtime.ErrShape, []string{"X", "1151", "1152"}},
		{"y short", with(func(a *args) { a.Y = a.Y.Slice(0, m*n-1) }), runtime.ErrShape, []string{"Y", "575", "576"}},
		{"table short", with(func(a *args) { a.Table = a.Table.Slice(0, 16*k-1) }), runtime.ErrShape, []string{"Table", "2047", "2048"}},
		{"sums short", with(func(a *args) { a.Sums = a.Sums.Slice(0, 31) }), runtime.ErrShape, []string{"Sums", "31", "32"}},
		{"table zero", with(func(a *args) { a.Table = vec16{} }), runtime.ErrShape, []string{"Table"}},
		{"sums zero", with(func(a *args) { a.Sums = vec32{} }), runtime.ErrShape, []string{"Sums"}},
		{"bank foreign", with(func(a *args) { a.W = theirs.bank }), runtime.ErrForeign, []string{"W"}},
		{"x foreign", with(func(a *args) { a.X = f.a.X }), runtime.ErrForeign, []string{"X"}},
		{"y foreign", with(func(a *args) { a.Y = f.a.Y }), runtime.ErrForeign, []string{"Y"}},
		{"table foreign", with(func(a *args) { a.Table = f.a.Table }), runtime.ErrForeign, []string{"Table"}},
		{"sums foreign", with(func(a *args) { a.Sums = f.a.Sums }), runtime.ErrForeign, []string{"Sums"}},
		{"y over x", with(func(a *args) { a.X, a.Y = both.s, both.s.Slice(k, 4*m*k) }), runtime.ErrOverlap, []string{"Y", "X"}},
		{"sums over x", with(func(a *args) { a.Sums = a.X }), runtime.ErrOverlap, []string{"Sums", "X"}},
		{"sums over y", with(func(a *args) { a.Sums = a.Y }), runtime.ErrOverlap, []string{"Sums", "Y"}},
	})
	// Scratch in the memory of the weights.
	table, err := runtime.As[half.BFloat16](w.bank.plane.View())
	if err != nil {
		t.Fatal(err)
	}
	sums, err := runtime.As[float32](w.bank.metadata.View())
	if err != nil {
		t.Fatal(err)
	}
	inTable, err := runtime.As[float32](q.a.Table.View())
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, rt, "nn.QMMAffinePlane", outs, []refusal{
		{"table over codes", with(func(a *args) { a.Table = table }), runtime.ErrOverlap, []string{"Table", "W"}},
		{"sums over metadata", with(func(a *args) { a.Sums = sums }), runtime.ErrOverlap, []string{"Sums", "W"}},
		{"sums over table", with(func(a *args) { a.Sums = inTable }), runtime.ErrOverlap, []string{"Table", "Sums"}},
	})
	encode(t, rt, 0, with(func(a *args) { a.M, a.Table, a.Sums = 0, vec16{}, vec32{} }))
	q.y.untouched()
}

// Devices without simdgroup matrices multiply any number of vectors with the kernels for few, and refuse the others.
func TestQMMAffineWithoutMatrices(t *testing.T) {
	rt, r := openOn(t, soft.Options{Families: []mtl.GPUFamily{mtl.GPUFamilyMac2, mtl.GPUFamilyCommon1, mtl.GPUFamilyCommon2, mtl.GPUFamilyCommon3}}), source(1582)
	const n, k, m = 9, 64, 37
	w := randomAffine(t, rt, r, quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}, n, k)
	codes, plane := randomAffineCodes(t, rt, r, n, k, 32), uploadAffinePlane(t, rt, randomAffine(t, rt, r, planeFormat, 64, k).host)
	x, y, alone := newBuffer(t, rt, normals(r, m*k, 1)), output[float32](t, rt, m*n), output[float32](t, rt, m*n)
	q := newPlaneProduct(t, rt, plane, normals(r, k, 1), 1)
	encode(t, rt, 1+m, func(p *runtime.Pass) error {
		for i := range m {
			if err := QMMAffine(p, alone.s.Slice(i*n, (i+1)*n), w.bank, x.s.Slice(i*k, (i+1)*k), 1); err != nil {
				return err
			}
		}
		return QMMAffine(p, y.s, w.bank, x.s, m)
	})
	y.written()
	sameBits(t, "37 vectors", y, alone)
	none := []string{"device", "simdgroup matrices"}
	refuses(t, rt, "", []target{q.y}, []refusal{
		{"simd", func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, codes.bank, x.s, m, QMMAffineSimd) }, runtime.ErrLimit, none},
		{"packed", func(p *runtime.Pass) error { return QMMAffinePacked(p, y.s, w.bank, x.s, m) }, runtime.ErrLimit, none},
		{"plane", func(p *runtime.Pass) error { return QMMAffinePlane(p, q.a) }, runtime.ErrLimit, none},
	})
	encode(t, rt, 2, func(p *runtime.Pass) error {
		if err := QMMAffineCodes(p, y.s, codes.bank, x.s, m, QMMAffineTiled); err != nil {
			return err
		}
		return QMMAffineCodes(p, alone.s, codes.bank, x.s, m, QMMAffineScalar)
	})
	sameBits(t, "tiled", y, alone)
}

// A second launch that does not fit the device is refused before the first is in the pass.
func TestQMMAffinePlaneFewThreads(t *testing.T) {
	rt, r := openOn(t, soft.Options{KernelThreads: map[string]int{"qmm_affine_t_packed_simd4_b4_gs64_bf16": 64}}), source(1583)
	w := uploadAffinePlane(t, rt, randomAffine(t, rt, r, planeFormat, 64, 64).host)
	q := newPlaneProduct(t, rt, w, normals(r, 64, 1), 1)
	refuses(t, rt, "", []target{q.y, q.table, q.sums}, []refusal{
		{"threads", func(p *runtime.Pass) error { return QMMAffinePlane(p, q.a) }, runtime.ErrLimit, []string{"64"}},
		{"threads, unsafe", func(p *runtime.Pass) error {
			pool, err := runtime.NewScalarPool(rt, 4)
			if err != nil {
				t.Fatal(err)
			}
			params := QMMAffineParams(1, 64, 64, 64)
			block, err := runtime.NewScalarBlock(pool, params[:])
			if err != nil {
				t.Fatal(err)
			}
			return UnsafeQMMAffinePlane(p, q.a, func(b *runtime.ScalarBinder) error { return b.Block(3, block) }, nil)
		}, runtime.ErrLimit, []string{"64"}},
	})
}
