package nn

import (
	"errors"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// productCall is a call with its name.
type productCall struct {
	name string
	call func(p *runtime.Pass) error
}

// productCalls are the products with quantised weights over small operands, each with an output of its own.
func productCalls(t testing.TB, rt *runtime.Runtime) (calls []productCall, outs []target) {
	t.Helper()
	const rows, cols, group, m = 21, 320, 64, 3
	r := source(600)
	a, b := randomBoth(t, rt, 601, rows, cols, group), randomBoth(t, rt, 602, rows, cols, group)
	blocked, _ := blockedMatrix(t, rt, a.m.host)
	blockedUp, _ := blockedMatrix(t, rt, b.m.host)
	q8host, err := quant.QuantizeQ8(normals(r, rows*cols, 1), rows, cols, 20)
	if err != nil {
		t.Fatal(err)
	}
	q4host, err := quant.QuantizeQ4(normals(r, rows*cols, 1), rows, cols, 40)
	if err != nil {
		t.Fatal(err)
	}
	q8, _ := q8Matrix(t, rt, q8host)
	q4, _ := q4Matrix(t, rt, q4host)
	x, x16, resid := newBuffer(t, rt, normals(r, cols, 1)), newBuffer(t, rt, half.BFloat16s(normals(r, m*cols, 1))), newBuffer(t, rt, normals(r, m*rows, 1))
	out := func(n int) vec32 {
		o := output[float32](t, rt, n)
		outs = append(outs, o)
		return o.s
	}
	out16 := func() vec16 {
		o := output[half.BFloat16](t, rt, rows)
		outs = append(outs, o)
		return o.s
	}
	add := func(name string, call func(p *runtime.Pass) error) { calls = append(calls, productCall{name, call}) }
	y := make([]vec32, 16)
	for i := range y {
		y[i] = out(m * rows)
	}
	mid, midTile := out16(), out16()
	add("GEMVQ8", func(p *runtime.Pass) error { return GEMVQ8(p, y[0], q8, x.s) })
	add("GEMVQ4", func(p *runtime.Pass) error { return GEMVQ4(p, y[1], q4, x.s) })
	add("GEMVQ4Tiled", func(p *runtime.Pass) error { return GEMVQ4Tiled(p, y[2], q4, x.s) })
	add("GEMVQ4MLXF32", func(p *runtime.Pass) error { return GEMVQ4MLXF32(p, y[3], a.m.bank, x.s) })
	add("GEMVQ4MLXF32Wide", func(p *runtime.Pass) error { return GEMVQ4MLXF32Wide(p, y[4], a.m.bank, x.s) })
	add("GEMVQ4MLXF32Tiled", func(p *runtime.Pass) error { return GEMVQ4MLXF32Tiled(p, y[5], a.m.bank, x.s) })
	add("GEMVQ4MLXBlocked", func(p *runtime.Pass) error { return GEMVQ4MLXBlocked(p, y[6], blocked, x.s) })
	add("GEMVQ4MLXBlockedGateUpGELU", func(p *runtime.Pass) error {
		return GEMVQ4MLXBlockedGateUpGELU(p, mid, blocked, blockedUp, x.s)
	})
	add("GEMVQ4MLX interleaved", func(p *runtime.Pass) error { return GEMVQ4MLX(p, y[7], a.tile, x16.s) })
	add("GEMVQ4MLXAdd", func(p *runtime.Pass) error { return GEMVQ4MLXAdd(p, y[8], a.m.bank, x16.s, resid.s) })
	add("GEMVQ4MLXGateUpGELU interleaved", func(p *runtime.Pass) error { return GEMVQ4MLXGateUpGELU(p, midTile, a.tile, b.tile, x16.s) })
	add("GEMVQ4MLXKV", func(p *runtime.Pass) error {
		return GEMVQ4MLXKV(p, GEMVKV{K: y[9], V: y[10], WK: a.m.bank, WV: b.m.bank, X: x16.s})
	})
	add("GEMVQ4MLXQKV interleaved", func(p *runtime.Pass) error {
		return GEMVQ4MLXQKV(p, GEMVQKVOf[Q4MLXInterleavedBank]{Q: y[11], K: y[12], V: y[13], WQ: a.tile, WK: a.tile, WV: b.tile, X: x16.s})
	})
	add("GEMMQ4MLX", func(p *runtime.Pass) error { return GEMMQ4MLX(p, y[14], a.m.bank, x16.s, m) })
	add("GEMMQ4MLXAdd interleaved", func(p *runtime.Pass) error { return GEMMQ4MLXAdd(p, y[15], a.tile, x16.s, resid.s, m) })
	return calls, outs
}

func BenchmarkEncodeProducts(b *testing.B) {
	rt := open(b)
	calls, _ := productCalls(b, rt)
	for _, c := range calls {
		b.Run(c.name, func(b *testing.B) { encodeMany(b, rt, c.call) })
	}
}

// callsAllocateNothing makes calls over and over, and once on a pass that is over, which takes none.
func callsAllocateNothing(t *testing.T, rt *runtime.Runtime, calls []productCall) {
	t.Helper()
	for _, c := range calls {
		var kept *runtime.Pass
		err := rt.Run(func(p *runtime.Pass) error {
			kept = p
			for range 300 { // arenas and tables grow first
				if err := c.call(p); err != nil {
					return err
				}
			}
			if raceEnabled {
				return errThrownAway // the race detector allocates
			}
			if n := testing.AllocsPerRun(100, func() {
				if err := c.call(p); err != nil {
					t.Error(c.name, err)
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations a call", c.name, n)
			}
			return errThrownAway
		})
		if err != errThrownAway {
			t.Fatal(c.name, err)
		}
		if err := c.call(kept); !errors.Is(err, runtime.ErrMisuse) {
			t.Errorf("%s: %v, want one over %v", c.name, err, runtime.ErrMisuse)
		}
	}
}

func TestProductCalls(t *testing.T) {
	rt := open(t)
	calls, _ := productCalls(t, rt)
	callsAllocateNothing(t, rt, calls)
}

// sameBitsReplayed makes the calls in one pass, directly and replayed, and holds what they write against the end of want: that of another
// device, or nil for the first one. It returns want.
func sameBitsReplayed(t *testing.T, rt *runtime.Runtime, name string, calls []productCall, outs []target, want []uint32) []uint32 {
	t.Helper()
	step := func(p *runtime.Pass) error {
		for _, c := range calls {
			if err := c.call(p); err != nil {
				return err
			}
		}
		return nil
	}
	prog, err := rt.Record(step)
	if err != nil {
		t.Fatal(name, err)
	}
	for _, way := range []string{"direct", "replayed"} {
		for _, b := range outs {
			b.reset()
		}
		if way == "direct" {
			encode(t, rt, len(calls), step)
		} else if err := prog.Run(); err != nil {
			t.Fatal(name, err)
		}
		var got []uint32
		for _, b := range outs {
			got = append(got, b.bits()...)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want[len(want)-len(got):]) {
			t.Errorf("%s, %s: not the same bits as plain and direct", name, way)
		}
	}
	if err := prog.Release(); err != nil {
		t.Error(err)
	}
	return want
}

// Devices that run concurrent work in any order, or allow no indirect compute: the same bits, directly and replayed.
func TestProductsOnEveryDevice(t *testing.T) {
	var want []uint32
	for _, c := range []struct {
		name string
		o    soft.Options
	}{
		{"plain", soft.Options{}}, {"one worker", soft.Options{Workers: 1}}, {"reversed", soft.Options{Order: soft.Reversed}},
		{"shuffled", soft.Options{Order: soft.Shuffled, Seed: 5}}, {"no indirect compute", soft.Options{NoIndirectCompute: true}},
		{"first families", soft.Options{Families: soft.AppleFamilies(7)}}, {"macOS 14", soft.Options{OSVersion: soft.Version{Major: 14}}},
	} {
		rt := openOn(t, c.o)
		calls, outs := productCalls(t, rt)
		want = sameBitsReplayed(t, rt, c.name, calls, outs, want)
	}
}

// A device whose pipelines allow few threads: kernels that take any number of simdgroups get what there is, the others are
// refused and leave the pass alone.
func TestProductsFewThreads(t *testing.T) {
	for _, threads := range []int{32, 64, 96} {
		rt := openOn(t, soft.Options{MaxThreads: threads})
		for i, f := range gemvFamilies() {
			r := source(uint64(620 + i))
			s := gemvShape{45, 320, 32}
			m := f.random(t, rt, r, s, 0)
			x := normals(r, s.cols, 1)
			in, y := newBuffer(t, rt, x), output[float32](t, rt, s.rows)
			call := func(p *runtime.Pass) error { return m.call(p, y.s, in.s) }
			if f.name == "GEMVQ4MLXBlocked" || threads < GEMVThreads && (f.name == "GEMVQ8" || f.name == "GEMVQ4") {
				refuses(t, rt, "", []target{y}, []refusal{{f.name, call, runtime.ErrLimit, nil}})
				continue
			}
			encode(t, rt, 1, call)
			want, size := oracle.GEMV(m.o, x), oracle.GEMVMagnitude(m.o, x)
			var w worst
			w.compare(t, f.name, widen(y.written()), want, func(i int) float64 { return size[i] * gemvF32Budget })
		}
	}
}
