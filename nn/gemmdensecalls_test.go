package nn

import (
	"fmt"
	"testing"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// scalarsOf are the scalars of a product of dense matrices; m is 0 for one with a vector.
func (d GEMMDims) scalars(e Epilogue[float32]) []scalar {
	list := []scalar{{slot: 4, u: uint32(d.N)}, {slot: 5, u: uint32(d.K)}, {slot: 6, u: uint32(d.StrideA)}, {slot: 7, u: uint32(d.StrideB)},
		{slot: 9, f: e.Alpha, float: true}, {slot: 10, f: e.Beta, float: true}, {slot: 12, u: uint32(e.StrideC)}, {slot: 13, u: uint32(d.StrideOut)}}
	if d.M > 0 {
		list = append([]scalar{{slot: 3, u: uint32(d.M)}}, list...)
	}
	return list
}

func TestGEMMRecorded(t *testing.T) {
	rt, r := open(t), source(880)
	d := GEMMDims{M: 35, N: 33, K: 21, TransB: true, Batch: 2, StrideA: 800, StrideB: 700, StrideOut: 1200}
	draw := func(n int) []float32 { return normals(r, n, 1) }
	x := newDense[float32, half.BFloat16](t, rt, draw, d, plain)
	y := newDense[float32, half.BFloat16](t, rt, draw, d, terms{alpha: 2, beta: 0.5, c: true, bias: true, act: ActSiLU})
	vary := func(x *denseProduct[float32, half.BFloat16]) func(i int) {
		return func(i int) {
			x.a.set(elementsOf[half.BFloat16](normals(r, x.a.n, float64(i+1))))
			x.b.set(elementsOf[half.BFloat16](normals(r, x.b.n, 1)))
		}
	}
	type pass = *runtime.Pass
	replays(t, rt, []target{x.out}, vary(x), x.call)
	twin(t, rt, []target{x.out}, d.scalars(Epilogue[float32]{Alpha: 1}), x.call, func(p pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeGEMM(p, x.out.s, x.a.s, x.b.s, d, bind)
	})
	replays(t, rt, []target{y.out}, vary(y), y.call)
	twin(t, rt, []target{y.out}, d.scalars(y.e), y.call, func(p pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeGEMMEpilogue(p, y.out.s, y.a.s, y.b.s, d, y.e, bind)
	})
}

func TestGEMVDenseRecorded(t *testing.T) {
	rt, r := open(t), source(881)
	draw := func(n int) []float32 { return normals(r, n, 1) }
	for _, trans := range []bool{false, true} {
		v := GEMVDims{Rows: 33, Cols: 21, Trans: trans, Batch: 2, StrideX: 24, StrideW: 700, StrideY: 40}
		x := newGEMV[float32, half.Float16](t, rt, draw, v, plain)
		y := newGEMV[float32, half.Float16](t, rt, draw, v, terms{alpha: 2, beta: 0.5, c: true, bias: true, act: ActGELU})
		d := x.d
		d.M = 0
		type pass = *runtime.Pass
		replays(t, rt, []target{x.out}, func(i int) { x.a.set(elementsOf[half.Float16](normals(r, x.a.n, float64(i+1)))) }, x.call)
		twin(t, rt, []target{x.out}, d.scalars(Epilogue[float32]{Alpha: 1}), x.call, func(p pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeGEMV(p, x.out.s, x.b.s, x.a.s, v, bind)
		})
		replays(t, rt, []target{y.out}, func(i int) { y.a.set(elementsOf[half.Float16](normals(r, y.a.n, float64(i+1)))) }, y.call)
		twin(t, rt, []target{y.out}, d.scalars(y.e), y.call, func(p pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeGEMVEpilogue(p, y.out.s, y.b.s, y.a.s, v, y.e, bind)
		})
	}
}

// Scalars of the caller's own may change between replays, within the same threadgroups.
func TestGEMMLiveScalars(t *testing.T) {
	rt, r := open(t), source(882)
	d := GEMMDims{M: 20, N: 30, K: 40}
	x := newDense[float32, float32](t, rt, func(n int) []float32 { return normals(r, n, 1) }, d, plain)
	pool, err := runtime.NewScalarPool(rt, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Release()
	live := map[int]runtime.Scalar[uint32]{}
	prog, err := rt.Record(func(p *runtime.Pass) error {
		return UnsafeGEMM(p, x.out.s, x.a.s, x.b.s, d, func(b *runtime.ScalarBinder) error {
			for _, s := range d.scalars(Epilogue[float32]{Alpha: 1}) {
				if s.float {
					if err := s.bind(b, pool); err != nil {
						return err
					}
					continue
				}
				v, err := runtime.NewScalar(pool, s.u)
				if err != nil {
					return err
				}
				live[s.slot] = v
				if err := b.Uint32(s.slot, v); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Release()
	for _, s := range []GEMMDims{d, {M: 1, N: 30, K: 40}, {M: 20, N: 7, K: 40}, {M: 20, N: 30, K: 9}, {M: 20, N: 30, K: 0}, d} {
		for slot, v := range map[int]int{3: s.M, 4: s.N, 5: s.K} {
			if err := live[slot].Set(uint32(v)); err != nil {
				t.Fatal(err)
			}
		}
		x.out.reset()
		if err := prog.Run(); err != nil {
			t.Fatal(err)
		}
		got, direct := x.out.get()[:s.M*s.N], output[float32](t, rt, s.M*s.N)
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMM(p, direct.s, x.a.s, x.b.s, s) })
		sameElements(t, fmt.Sprintf("%+v", s), direct.written(), got)
		for i, v := range x.out.get()[s.M*s.N:] {
			if bitsOf(v) != bitsOf(sentinel[float32]()) {
				t.Fatalf("%+v: %d behind the result was written", s, i)
			}
		}
	}
}

// denseCalls are the products of dense matrices with small operands, each with an output of its own.
func denseCalls(t testing.TB, rt *runtime.Runtime) (calls []productCall, outs []target) {
	t.Helper()
	r := source(883)
	draw := func(n int) []float32 { return normals(r, n, 1) }
	all := terms{alpha: 0.5, c: true, beta: 2, bias: true, act: ActGELU}
	d := GEMMDims{M: 37, N: 70, K: 24, TransB: true}
	a, b, c := newDense[float32, float32](t, rt, draw, d, plain), newDense[half.Float16, half.Float16](t, rt, draw, d, all), newDense[half.BFloat16, half.BFloat16](t, rt, draw, d, all)
	v := GEMVDims{Rows: 37, Cols: 70}
	x, y := newGEMV[float32, float32](t, rt, draw, v, plain), newGEMV[half.BFloat16, half.BFloat16](t, rt, draw, v, all)
	v.Trans = true
	z := newGEMV[float32, half.Float16](t, rt, draw, v, all)
	calls, outs = gemmWeightsDenseCalls(t, rt)
	return append(calls, productCall{"GEMM", a.call}, productCall{"GEMMEpilogue f16", b.call}, productCall{"GEMMEpilogue bf16", c.call},
			productCall{"GEMV", x.call}, productCall{"GEMVEpilogue bf16", y.call}, productCall{"GEMVEpilogue transposed", z.call}),
		append(outs, a.out, b.out, c.out, x.out, y.out, z.out)
}

// BenchmarkEncodeDense is the host's cost of one call, without the device's work.
func BenchmarkEncodeDense(b *testing.B) {
	rt := open(b)
	calls, _ := denseCalls(b, rt)
	for _, c := range calls {
		b.Run(c.name, func(b *testing.B) { encodeMany(b, rt, c.call) })
	}
}

// BenchmarkGEMM multiplies 256 by 256 matrices on the device and, in the same run, in a plain Go loop; "x-go-loop" is the ratio
// of their times.
func BenchmarkGEMM(b *testing.B) {
	rt, r := open(b), source(884)
	const n = 256
	x := newDense[float32, float32](b, rt, func(n int) []float32 { return normals(r, n, 1) }, GEMMDims{M: n, N: n, K: n}, plain)
	encode(b, rt, 1, x.call)
	out := make([]float32, n*n)
	var device, loop time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := rt.Run(x.call); err != nil {
			b.Fatal(err)
		}
		mid := time.Now()
		clear(out)
		for i := range n {
			for k := range n {
				s, row := x.host.A[i*n+k], x.host.B[k*n:][:n]
				for j, v := range row {
					out[i*n+j] += s * v
				}
			}
		}
		device += mid.Sub(begin)
		loop += time.Since(mid)
	}
	b.ReportMetric(float64(device.Nanoseconds())/float64(b.N), "device-ns/op")
	b.ReportMetric(float64(loop.Nanoseconds())/float64(b.N), "loop-ns/op")
	b.ReportMetric(float64(device)/float64(loop), "x-go-loop")
}

func TestDenseCalls(t *testing.T) {
	rt := open(t)
	calls, _ := denseCalls(t, rt)
	callsAllocateNothing(t, rt, calls)
}

// Devices that run concurrent work in any order, or allow no indirect compute: the same bits, directly and replayed. One
// without simdgroup matrices multiplies with vectors only.
func TestDenseOnEveryDevice(t *testing.T) {
	var want []uint32
	for _, c := range []struct {
		name string
		o    soft.Options
	}{
		{"plain", soft.Options{}}, {"one worker", soft.Options{Workers: 1}}, {"reversed", soft.Options{Order: soft.Reversed}},
		{"shuffled", soft.Options{Order: soft.Shuffled, Seed: 5}}, {"no indirect compute", soft.Options{NoIndirectCompute: true}},
		{"first families", soft.Options{Families: soft.AppleFamilies(7)}}, {"macOS 14", soft.Options{OSVersion: soft.Version{Major: 14}}},
		{"no Apple GPU", soft.Options{Families: []mtl.GPUFamily{mtl.GPUFamilyMac2, mtl.GPUFamilyCommon1, mtl.GPUFamilyCommon2, mtl.GPUFamilyCommon3, mtl.GPUFamilyMetal3}}},
	} {
		rt := openOn(t, c.o)
		calls, outs := denseCalls(t, rt)
		if c.name == "no Apple GPU" {
			for i := range 5 {
				refuses(t, rt, "", outs[i:i+1], []refusal{{calls[i].name, calls[i].call, runtime.ErrLimit, []string{"simdgroup matrices", "Apple family 7"}}})
			}
			calls = calls[5:]
		}
		want = sameBitsReplayed(t, rt, c.name, calls, outs[len(outs)-len(calls):], want)
	}
}

// A device whose pipelines allow few threads: products from transposed matrices take what there is, the small tile needs a
// simdgroup, and what needs more is refused and leaves the pass alone.
func TestDenseFewThreads(t *testing.T) {
	for _, threads := range []int{32, 64, 96} {
		rt, r := openOn(t, soft.Options{MaxThreads: threads}), source(885)
		draw := func(n int) []float32 { return normals(r, n, 1) }
		var w worst
		large := newDense[float32, float32](t, rt, draw, GEMMDims{M: 40, N: 70, K: 9}, plain)
		refuses(t, rt, "", []target{large.out}, []refusal{{"large tile", large.call, runtime.ErrLimit, nil}})
		large.d.Tile = GEMMSmallTile
		large.verify(rt, "small tile", &w)
		rows := newGEMV[float32, float32](t, rt, draw, GEMVDims{Rows: 21, Cols: 70}, plain)
		if threads < GEMVThreads {
			refuses(t, rt, "", []target{rows.out}, []refusal{{"rows", rows.call, runtime.ErrLimit, nil}})
		} else {
			rows.check("rows", rows.run(rt), &w)
		}
		cols := newGEMV[float32, float32](t, rt, draw, GEMVDims{Rows: 170, Cols: 21, Trans: true}, plain)
		cols.check("transposed", cols.run(rt), &w)
	}
}
