package nn

import (
	"errors"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// twinBlock holds an Unsafe call, which takes its parameters from a block in a slot, against the plain one: directly, replayed, with
// parameters that are set between replays, and with blocks that are not what the call needs.
func twinBlock(t *testing.T, rt *runtime.Runtime, y *buffer[float32], count, slot int, params [QMMAffineParamsSize]byte, plain func(p *runtime.Pass) error,
	unsafe func(p *runtime.Pass, bind binding) error) {
	t.Helper()
	pool, err := runtime.NewScalarPool(rt, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Release() })
	newBlock := func(data []byte) runtime.ScalarBlock {
		b, err := runtime.NewScalarBlock(pool, data)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	block := newBlock(params[:])
	bind := func(b *runtime.ScalarBinder) error { return b.Block(slot, block) }
	y.reset()
	encode(t, rt, count, plain)
	y.written()
	want := y.bits()
	same := func(how string) {
		t.Helper()
		for i, b := range y.bits() {
			if b != want[i] {
				t.Fatalf("%s: element %d: %#x, plain %#x", how, i, b, want[i])
			}
		}
		y.reset()
	}
	y.reset()
	encode(t, rt, count, func(p *runtime.Pass) error { return unsafe(p, bind) })
	same("direct")
	encode(t, rt, count, func(p *runtime.Pass) error { return unsafe(p, nil) })
	same("with nil")
	prog, err := rt.Record(func(p *runtime.Pass) error { return unsafe(p, bind) })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := prog.Run(); err != nil {
			t.Fatal(err)
		}
		same("replayed")
	}
	fewer := params
	fewer[0]-- // a vector less, which the documentation allows
	if err := block.Set(fewer[:]); err != nil {
		t.Fatal(err)
	}
	if err := prog.Run(); err != nil {
		t.Fatal(err)
	}
	changed := false
	for i, b := range y.bits() {
		changed = changed || b != want[i]
	}
	if !changed {
		t.Error("the replay did not read the block that was set")
	}
	if err := errors.Join(block.Set(params[:]), prog.Release()); err != nil {
		t.Fatal(err)
	}
	wrong, short := newBlock(fewer[:]), newBlock(params[:8])
	with := func(f func(b *runtime.ScalarBinder) error) func(p *runtime.Pass) error {
		return func(p *runtime.Pass) error { return unsafe(p, f) }
	}
	refuses(t, rt, "", []target{y}, []refusal{
		{"nothing bound", with(func(*runtime.ScalarBinder) error { return nil }), runtime.ErrMisuse, nil},
		{"other parameters", with(func(b *runtime.ScalarBinder) error { return b.Block(slot, wrong) }), runtime.ErrScalar, nil},
		{"too short", with(func(b *runtime.ScalarBinder) error { return b.Block(slot, short) }), runtime.ErrScalar, []string{"8", "16"}},
		{"another slot", with(func(b *runtime.ScalarBinder) error { return b.Block(0, block) }), runtime.ErrKernel, nil},
		{"twice", with(func(b *runtime.ScalarBinder) error { return errors.Join(b.Block(slot, block), b.Block(slot, block)) }), runtime.ErrMisuse, nil},
	})
}

func TestUnsafeQMMAffine(t *testing.T) {
	rt, r := open(t), source(1570)
	const n, k, m = 65, 64, 19
	a := randomAffine(t, rt, r, quant.AffineFormat{Bits: 6, GroupSize: 32, Scale: quant.ScaleF16}, n, k)
	packed := randomAffine(t, rt, r, quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}, n, k)
	codes := randomAffineCodes(t, rt, r, n, k, 32)
	x, y, few := newBuffer(t, rt, normals(r, m*k, 1)), output[float32](t, rt, m*n), output[float32](t, rt, 3*n)
	params := QMMAffineParams(m, n, k, 32)
	twinBlock(t, rt, y, 1, 5, params, func(p *runtime.Pass) error { return QMMAffine(p, y.s, a.bank, x.s, m) },
		func(p *runtime.Pass, bind binding) error { return UnsafeQMMAffine(p, y.s, a.bank, x.s, m, bind) })
	twinBlock(t, rt, few, 1, 5, QMMAffineParams(3, n, k, 32), func(p *runtime.Pass) error { return QMMAffine(p, few.s, a.bank, x.s, 3) },
		func(p *runtime.Pass, bind binding) error { return UnsafeQMMAffine(p, few.s, a.bank, x.s, 3, bind) })
	twinBlock(t, rt, y, 1, 5, params, func(p *runtime.Pass) error { return QMMAffinePacked(p, y.s, packed.bank, x.s, m) },
		func(p *runtime.Pass, bind binding) error {
			return UnsafeQMMAffinePacked(p, y.s, packed.bank, x.s, m, bind)
		})
	for _, kernel := range []QMMAffineKernel{QMMAffineScalar, QMMAffineTiled, QMMAffineSimd} {
		twinBlock(t, rt, y, 1, 5, params, func(p *runtime.Pass) error { return QMMAffineCodes(p, y.s, codes.bank, x.s, m, kernel) },
			func(p *runtime.Pass, bind binding) error {
				return UnsafeQMMAffineCodes(p, y.s, codes.bank, x.s, m, kernel, bind)
			})
	}
}

func TestUnsafeQMMAffinePlane(t *testing.T) {
	rt, r := open(t), source(1571)
	const n, k, m = 64, 128, 11
	w := uploadAffinePlane(t, rt, randomAffine(t, rt, r, planeFormat, n, k).host)
	x := normals(r, m*k, 1)
	q := newPlaneProduct(t, rt, w, x, m)
	params := QMMAffineParams(m, n, k, 64)
	plain := func(p *runtime.Pass) error { return QMMAffinePlane(p, q.a) }
	twinBlock(t, rt, q.y, 2, 3, params, plain, func(p *runtime.Pass, bind binding) error { return UnsafeQMMAffinePlane(p, q.a, bind, nil) })
	twinBlock(t, rt, q.y, 2, 5, params, plain, func(p *runtime.Pass, bind binding) error { return UnsafeQMMAffinePlane(p, q.a, nil, bind) })
	replaysMany(t, rt, 2, []target{q.y}, func(i int) { q.x.set(normals(r, m*k, float64(i+1))) }, plain)
}

// Replays read vectors anew, in every kernel of the router.
func TestQMMAffineRecorded(t *testing.T) {
	rt, r := open(t), source(1572)
	const n, k = 9, 64
	a := randomAffine(t, rt, r, quant.AffineFormat{Bits: 8, GroupSize: 64, Scale: quant.ScaleBF16}, n, k)
	for _, m := range []int{1, 5, 11, 17, 40} {
		x, y := newBuffer(t, rt, make([]float32, m*k)), output[float32](t, rt, m*n)
		replays(t, rt, []target{y}, func(i int) { x.set(normals(r, m*k, float64(i+1))) }, func(p *runtime.Pass) error { return QMMAffine(p, y.s, a.bank, x.s, m) })
	}
}
