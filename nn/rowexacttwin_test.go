package nn

import (
	"errors"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
)

// The Unsafe variants take the parameters from the caller's storage, which replays read anew.
func TestUnsafeRowExact(t *testing.T) {
	rt, r := open(t), source(681)
	const n, k, m = 7, 256, 3
	s, how := RowExactContiguous(m, n, k), RowExactSchedule{2, 1}
	for _, wt := range []WeightType{WeightQ4_K, WeightF32} {
		w := randomRowExact(t, rt, r, wt, n, k)
		x, y := newBuffer(t, rt, normals(r, m*k, 1)), output[float32](t, rt, m*n)
		auto, err := RowExactFor(rt, wt, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []struct {
			name string
			rows int
			call func(p *runtime.Pass) error
			twin func(p *runtime.Pass, bind binding) error
		}{
			{"plain", auto.Rows, func(p *runtime.Pass) error { return w.call(p, y.s, x.s, s) },
				func(p *runtime.Pass, bind binding) error { return w.twin(p, y.s, x.s, s, bind) }},
			{"scheduled", how.Rows, func(p *runtime.Pass) error { return w.scheduled(p, y.s, x.s, s, how) },
				func(p *runtime.Pass, bind binding) error { return w.twinHow(p, y.s, x.s, s, how, bind) }},
		} {
			pool, err := runtime.NewScalarPool(rt, 8)
			if err != nil {
				t.Fatal(err)
			}
			params := RowExactParams(wt, s, v.rows)
			block, err := runtime.NewScalarBlock(pool, params[:])
			if err != nil {
				t.Fatal(err)
			}
			one, err := runtime.NewScalar[uint32](pool, 1)
			if err != nil {
				t.Fatal(err)
			}
			bind := func(b *runtime.ScalarBinder) error { return b.Block(3, block) }
			y.reset()
			encode(t, rt, 1, v.call)
			want := y.bits()
			same := func(how string) {
				t.Helper()
				for i, b := range y.bits() {
					if b != want[i] {
						t.Fatalf("%v %s %s: element %d: %#x, plain %#x", wt, v.name, how, i, b, want[i])
					}
				}
				y.reset()
			}
			y.reset()
			encode(t, rt, 1, func(p *runtime.Pass) error { return v.twin(p, bind) })
			same("direct")
			encode(t, rt, 1, func(p *runtime.Pass) error { return v.twin(p, nil) })
			same("with nil")
			prog, err := rt.Record(func(p *runtime.Pass) error { return v.twin(p, bind) })
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := prog.Run(); err != nil {
					t.Fatal(err)
				}
				same("replayed")
			}
			// Replays read the block anew: fewer columns, as the documentation allows.
			half := RowExactParams(wt, s, v.rows)
			if wt == WeightF32 {
				half[0], half[1] = 128, 0
				if err := block.Set(half[:]); err != nil {
					t.Fatal(err)
				}
				if err := prog.Run(); err != nil {
					t.Fatal(err)
				}
				if y.bits()[0] == want[0] {
					t.Fatal("the replay did not read the block that was set")
				}
				if err := block.Set(params[:]); err != nil {
					t.Fatal(err)
				}
			}
			if err := prog.Release(); err != nil {
				t.Error(err)
			}
			half[5]++
			wrong, err := runtime.NewScalarBlock(pool, half[:])
			if err != nil {
				t.Fatal(err)
			}
			short, err := runtime.NewScalarBlock(pool, params[:32])
			if err != nil {
				t.Fatal(err)
			}
			with := func(f func(b *runtime.ScalarBinder) error) func(p *runtime.Pass) error {
				return func(p *runtime.Pass) error { return v.twin(p, f) }
			}
			refuses(t, rt, "", []target{y}, []refusal{
				{"nothing bound", with(func(*runtime.ScalarBinder) error { return nil }), runtime.ErrMisuse, []string{"index 3"}},
				{"other parameters", with(func(b *runtime.ScalarBinder) error { return b.Block(3, wrong) }), runtime.ErrScalar, nil},
				{"too short", with(func(b *runtime.ScalarBinder) error { return b.Block(3, short) }), runtime.ErrScalar, []string{"32", "48"}},
				{"a scalar", with(func(b *runtime.ScalarBinder) error { return b.Uint32(3, one) }), runtime.ErrScalar, nil},
				{"another slot", with(func(b *runtime.ScalarBinder) error { return b.Block(0, block) }), runtime.ErrKernel, nil},
				{"twice", with(func(b *runtime.ScalarBinder) error { return errors.Join(b.Block(3, block), b.Block(3, block)) }), runtime.ErrMisuse, nil},
			})
			if err := pool.Release(); err != nil {
				t.Error(err)
			}
		}
	}
}
