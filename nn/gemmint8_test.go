package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

func init() {
	for i := range 4 {
		kernelSlots[int8Kernels[i]] = "0r 1r 2w 3u 4u 5u"
		kernelSlots[int8ScaledKernels[i]] = "0r 1r 2w 3u 4u 5u 8r 9r 10u"
	}
}

// int8Shapes are rows, columns and products: one, ragged, a tile, a step, one more than each, several tiles, long and short.
var int8Shapes = [][3]int{
	{1, 1, 1}, {1, 1, 2}, {3, 5, 7}, {4, 8, 4}, {8, 8, 63}, {9, 17, 64}, {31, 33, 65}, {32, 32, 64}, {33, 31, 61}, {32, 64, 128}, {64, 32, 3},
	{1, 130, 40}, {130, 1, 41}, {65, 66, 129}, {7, 5, 1000}, {5, 40, 191}, {40, 5, 193},
}

// bytesOf puts bytes at the very end of an allocation, where reading on is out of bounds, and at an odd start.
func bytesOf(t testing.TB, rt *runtime.Runtime, b []int8) runtime.Slice[int8] {
	t.Helper()
	s, err := runtime.SliceOf(rt, append([]int8{-1, -1, -1}, b...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Release() })
	return s.Slice(3, 3+len(b))
}

// randomBytes are of the whole range, with many extremes.
func randomBytes(r *rand.Rand, n int) []int8 {
	b := make([]int8, n)
	for i := range b {
		switch r.IntN(6) {
		case 0:
			b[i] = -128
		case 1:
			b[i] = 127
		default:
			b[i] = int8(r.IntN(256) - 128)
		}
	}
	return b
}

// int8Case is a product with its operands on the device.
type int8Case struct {
	d             GEMMInt8Dims
	a, b          runtime.Slice[int8]
	columns, rows *buffer[float32]
	host          oracle.IntProduct
}

func (c *int8Case) scales() GEMMInt8Scales {
	return GEMMInt8Scales{Columns: c.columns.s, Rows: c.rows.s}
}

func newInt8(t testing.TB, rt *runtime.Runtime, r *rand.Rand, d GEMMInt8Dims, scale float64) *int8Case {
	t.Helper()
	c := &int8Case{d: d, host: oracle.IntProduct{A: randomBytes(r, d.M*d.K), B: randomBytes(r, d.K*d.N), TransA: d.TransA, TransB: d.TransB, M: d.M, N: d.N, K: d.K,
		AScale: normals(r, d.M, scale), BScale: normals(r, d.N, scale)}}
	c.a, c.b = bytesOf(t, rt, c.host.A), bytesOf(t, rt, c.host.B)
	c.columns, c.rows = newBuffer(t, rt, c.host.BScale), newBuffer(t, rt, c.host.AScale)
	return c
}

func sameSums(t testing.TB, where string, got []int32, want []int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d sums, want %d", where, len(got), len(want))
	}
	for i := range want {
		if int64(got[i]) != want[i] {
			t.Fatalf("%s: element %d: %d, want %d", where, i, got[i], want[i])
		}
	}
}

// scaledBudget is what the float32 results may be off by: relative, the rounding of the sum, and of the product with each
// of that many scales, and below 2^-126 all that is there.
func scaledBudget(want []float64, scales float64) func(i int) float64 {
	return func(i int) float64 { return math.Abs(want[i])*(1+scales)*0x1.00001p-24 + 0x1p-126 }
}

// Every shape in every layout: the sums are exact, and so are those that the scaled kernels round.
func TestGEMMInt8(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(700)
	var one, two worst
	cases, done := 0, logExact(t, "GEMMInt8")
	for i, s := range int8Shapes {
		for layout := range 4 {
			d := GEMMInt8Dims{M: s[0], N: s[1], K: s[2], TransA: layout&2 != 0, TransB: layout&1 != 0}
			where := fmt.Sprintf("%+v", d)
			c := newInt8(t, rt, r, d, []float64{1, 1e-4, 1e6, 1e-12}[(i+layout)%4])
			sums, columns, both := output[int32](t, rt, d.M*d.N), output[float32](t, rt, d.M*d.N), output[float32](t, rt, d.M*d.N)
			encode(t, rt, 3, func(p *runtime.Pass) error {
				if err := GEMMInt8(p, sums.s, c.a, c.b, d); err != nil {
					return err
				}
				if err := GEMMInt8Scaled(p, columns.s, c.a, c.b, GEMMInt8Scales{Columns: c.columns.s}, d); err != nil {
					return err
				}
				return GEMMInt8Scaled(p, both.s, c.a, c.b, c.scales(), d)
			})
			sameSums(t, where, sums.written(), c.host.Sums())
			exactCases++
			want := c.host.Result()
			two.compare(t, where, widen(both.written()), want, scaledBudget(want, 2))
			c.host.AScale = nil
			want = c.host.Result()
			one.compare(t, where+" columns", widen(columns.written()), want, scaledBudget(want, 1))
			cases++
		}
	}
	if cases != 4*len(int8Shapes) || cases < 12 {
		t.Fatal(cases, "cases")
	}
	done()
	one.log(t, "two roundings", "GEMMInt8Scaled")
	two.log(t, "three roundings", "GEMMInt8Scaled")
}

// The longest sums of the largest products that an int32 holds, of either sign, in every layout; one product more is
// refused. On a device without checks, which is several times as fast.
func TestGEMMInt8LongestSums(t *testing.T) {
	numbersOnly(t)
	rt := openOn(t, soft.Options{})
	const k = MaxGEMMInt8K
	fill := func(v int8) []int8 {
		b := make([]int8, k)
		for i := range b {
			b[i] = v
		}
		return b
	}
	low, high := fill(-128), fill(127)
	a, b := bytesOf(t, rt, append(append([]int8{}, low...), 0)), bytesOf(t, rt, append(append([]int8{}, low...), high...))
	scale := newBuffer(t, rt, []float32{0.1, 3})
	for layout := range 4 {
		d := GEMMInt8Dims{M: 1, N: 1, K: k, TransA: layout&2 != 0, TransB: layout&1 != 0}
		if layout == 1 {
			d.N = 2 // one column of each sign
		} else if testing.Short() {
			continue
		}
		host := oracle.IntProduct{A: low, B: append(append([]int8{}, low...), high...), M: 1, N: d.N, K: k, TransB: true, BScale: []float32{0.1, 3}}
		sums := output[int32](t, rt, d.N)
		encode(t, rt, 1, func(p *runtime.Pass) error { return GEMMInt8(p, sums.s, a, b, d) })
		got, where := sums.written(), fmt.Sprintf("%+v", d)
		if got[0] != math.MaxInt32-16383 || d.N == 2 && got[1] != -128*127*k {
			t.Errorf("%s: %d, want %d and %d", where, got, math.MaxInt32-16383, -128*127*k)
		}
		sameSums(t, where, got, host.Sums())
		if layout == 1 { // sums that float32 does not hold, and so rounds
			scaled, want := output[float32](t, rt, d.N), host.Result()
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return GEMMInt8Scaled(p, scaled.s, a, b, GEMMInt8Scales{Columns: scale.s}, d)
			})
			var w worst
			w.compare(t, where, widen(scaled.written()), want, scaledBudget(want, 1))
		}
	}
	sum := output[int32](t, rt, 1)
	refuses(t, rt, "nn.GEMMInt8", []target{sum}, []refusal{
		{"131072", func(p *runtime.Pass) error {
			return GEMMInt8(p, sum.s, a, b, GEMMInt8Dims{M: 1, N: 1, K: k + 1})
		}, runtime.ErrLimit, []string{"K", "131072", "131071"}},
	})
}

// Sums that float32 does not hold: odd ones beyond 2^24, of either sign.
func TestGEMMInt8BeyondFloat32(t *testing.T) {
	rt := open(t)
	d := GEMMInt8Dims{M: 2, N: 3, K: 2999}
	host := oracle.IntProduct{A: make([]int8, d.M*d.K), B: make([]int8, d.K*d.N), M: d.M, N: d.N, K: d.K}
	for i := range host.A {
		host.A[i] = []int8{127, -127}[i/d.K]
	}
	for i := range host.B {
		host.B[i] = int8(127 - i%7)
	}
	odd := 0
	for _, s := range host.Sums() {
		if int64(float32(s)) != s {
			odd++
		}
	}
	if odd < 2 {
		t.Fatalf("only %d sums are none of float32: %v", odd, host.Sums())
	}
	a, b, sums := bytesOf(t, rt, host.A), bytesOf(t, rt, host.B), output[int32](t, rt, d.M*d.N)
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMMInt8(p, sums.s, a, b, d) })
	sameSums(t, "beyond 2^24", sums.written(), host.Sums())
}

// Scales that are not finite, zero, or overflow: what the formula gives, in its order.
func TestGEMMInt8ScaledExtremes(t *testing.T) {
	rt := open(t)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	columns := []float32{1, 0, -1, inf, -inf, nan, math.MaxFloat32, 0x1p-100, 0x1p-149, 3e30}
	rows := []float32{1, 0, -2, inf, nan, 3e30, 0x1p-100}
	d := GEMMInt8Dims{M: len(rows), N: len(columns), K: 3}
	host := oracle.IntProduct{A: make([]int8, d.M*d.K), B: make([]int8, d.K*d.N), M: d.M, N: d.N, K: d.K}
	for i := range host.A {
		host.A[i] = int8(i*37 + 1)
	}
	for i := range host.B {
		host.B[i] = int8(i*53 + 2)
	}
	a, b, sc, sr, c := bytesOf(t, rt, host.A), bytesOf(t, rt, host.B), newBuffer(t, rt, columns), newBuffer(t, rt, rows), output[float32](t, rt, d.M*d.N)
	encode(t, rt, 1, func(p *runtime.Pass) error {
		return GEMMInt8Scaled(p, c.s, a, b, GEMMInt8Scales{Columns: sc.s, Rows: sr.s}, d)
	})
	for i, got := range c.written() {
		sum := float32(host.Sums()[i])
		want := float64(float32(sum*columns[i%d.N]) * rows[i/d.N])
		if math.IsNaN(want) && math.IsNaN(float64(got)) || float64(got) == want || math.Abs(want) < 0x1p-126 && math.Abs(float64(got)) < 0x1p-126 {
			continue
		}
		if column := float64(sum * columns[i%d.N]); math.Abs(column) < 0x1p-126 && column != 0 {
			continue // the first product may have been flushed, so that an infinite row makes NaN
		}
		t.Errorf("%v * %v * %v = %v, want %v", sum, columns[i%d.N], rows[i/d.N], got, want)
	}
}

// An element depends on its row and column alone: the sums of a large product are those of its rows, columns and blocks.
func TestGEMMInt8OfParts(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(701)
	d := GEMMInt8Dims{M: 70, N: 45, K: 100, TransB: true}
	c := newInt8(t, rt, r, d, 0.01)
	whole, part := output[float32](t, rt, d.M*d.N), output[float32](t, rt, d.M*d.N)
	encode(t, rt, 1+d.M, func(p *runtime.Pass) error {
		if err := GEMMInt8Scaled(p, whole.s, c.a, c.b, c.scales(), d); err != nil {
			return err
		}
		for m := range d.M {
			row := GEMMInt8Scales{Columns: c.columns.s, Rows: c.rows.s.Slice(m, m+1)}
			one := GEMMInt8Dims{M: 1, N: d.N, K: d.K, TransB: true}
			if err := GEMMInt8Scaled(p, part.s.Slice(m*d.N, (m+1)*d.N), c.a.Slice(m*d.K, (m+1)*d.K), c.b, row, one); err != nil {
				return err
			}
		}
		return nil
	})
	sameBits(t, "row by row", part, whole)
}

func TestGEMMInt8Recorded(t *testing.T) {
	rt, r := open(t), source(702)
	d := GEMMInt8Dims{M: 35, N: 40, K: 70}
	c := newInt8(t, rt, r, d, 1)
	sums, scaled := output[int32](t, rt, d.M*d.N), output[float32](t, rt, d.M*d.N)
	vary := func(int) {
		if err := c.a.Write(randomBytes(r, c.a.Len())); err != nil {
			t.Fatal(err)
		}
		c.columns.set(normals(r, d.N, 1))
	}
	scalars := []scalar{{slot: 3, u: uint32(d.M)}, {slot: 4, u: uint32(d.N)}, {slot: 5, u: uint32(d.K)}}
	type pass = *runtime.Pass
	for layout := range 4 {
		d := d
		d.TransA, d.TransB = layout&2 != 0, layout&1 != 0
		plain := func(p pass) error { return GEMMInt8(p, sums.s, c.a, c.b, d) }
		replays(t, rt, []target{sums}, vary, plain)
		withScales := func(p pass) error { return GEMMInt8Scaled(p, scaled.s, c.a, c.b, c.scales(), d) }
		replays(t, rt, []target{scaled}, vary, withScales)
		if layout == 0 {
			twin(t, rt, []target{sums}, scalars, plain, func(p pass, bind binding) error { return UnsafeGEMMInt8(p, sums.s, c.a, c.b, d, bind) })
			twin(t, rt, []target{scaled}, append(scalars, scalar{slot: 10, u: 1}), withScales,
				func(p pass, bind binding) error {
					return UnsafeGEMMInt8Scaled(p, scaled.s, c.a, c.b, c.scales(), d, bind)
				})
		}
	}
}

// Scalars that a recorded program reads anew: a smaller shape computes that part, and nothing else is written.
func TestGEMMInt8SmallerLater(t *testing.T) {
	rt, r := open(t), source(703)
	d := GEMMInt8Dims{M: 40, N: 36, K: 70, TransB: true}
	c := newInt8(t, rt, r, d, 1)
	sums := output[int32](t, rt, d.M*d.N)
	pool, err := runtime.NewScalarPool(rt, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Release()
	var live [3]runtime.Scalar[uint32]
	for i, v := range []int{d.M, d.N, d.K} {
		if live[i], err = runtime.NewScalar(pool, uint32(v)); err != nil {
			t.Fatal(err)
		}
	}
	prog, err := rt.Record(func(p *runtime.Pass) error {
		return UnsafeGEMMInt8(p, sums.s, c.a, c.b, d, func(b *runtime.ScalarBinder) error {
			for i, s := range live {
				if err := b.Uint32(3+i, s); err != nil {
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
	for _, m := range []int{40, 33, 32, 1, 0} { // rows lie at the same places whatever M is, as b is transposed and a is not
		sums.reset()
		if err := live[0].Set(uint32(m)); err != nil {
			t.Fatal(err)
		}
		if err := prog.Run(); err != nil {
			t.Fatal(err)
		}
		got, want := sums.get(), c.host.Sums()
		for i, v := range got {
			if i < m*d.N && int64(v) != want[i] || i >= m*d.N && v != sentinel[int32]() {
				t.Fatalf("%d rows: element %d is %d", m, i, v)
			}
		}
	}
}

func TestGEMMInt8Refuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	a, b, c, f := bytesOf(t, rt, make([]int8, 64)), bytesOf(t, rt, make([]int8, 64)), output[int32](t, rt, 64), output[float32](t, rt, 64)
	s, rows := output[float32](t, rt, 8), output[float32](t, rt, 8)
	theirs, theirC, theirF := bytesOf(t, foreign, make([]int8, 64)), output[int32](t, foreign, 64), output[float32](t, foreign, 64)
	gone, err := runtime.NewSlice[int8](rt, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Release(); err != nil {
		t.Fatal(err)
	}
	good := GEMMInt8Dims{M: 8, N: 8, K: 8}
	dims := func(m, n, k int) GEMMInt8Dims { return GEMMInt8Dims{M: m, N: n, K: k} }
	type bytes = runtime.Slice[int8]
	with := func(c runtime.Slice[int32], a, b bytes, d GEMMInt8Dims) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			if err := GEMMInt8(p, c, a, b, d); err == nil || ValidateGEMMInt8(rt, c, a, b, d) == nil {
				t.Errorf("%+v: %v, but Validate: %v", d, err, ValidateGEMMInt8(rt, c, a, b, d))
			}
			return GEMMInt8(p, c, a, b, d)
		}
	}
	over := *(*bytes)(unsafe.Pointer(&c.s)) // the same memory as bytes: no function gives that, and the check does not rely on it
	refuses(t, rt, "nn.GEMMInt8", []target{c}, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMMInt8(nil, c.s, a, b, good) }, runtime.ErrMisuse, nil},
		{"M negative", with(c.s, a, b, dims(-1, 8, 8)), runtime.ErrShape, []string{"M", "-1"}},
		{"N negative", with(c.s, a, b, dims(8, -1, 8)), runtime.ErrShape, []string{"N", "-1"}},
		{"no products", with(c.s, a, b, dims(8, 8, 0)), runtime.ErrShape, []string{"K", "0"}},
		{"no products of nothing", with(c.s, a, b, dims(0, 0, 0)), runtime.ErrShape, []string{"K"}},
		{"K too large", with(c.s, a, b, dims(0, 0, MaxGEMMInt8K+1)), runtime.ErrLimit, []string{"K", "131072"}},
		{"M huge", with(c.s, a, b, dims(math.MaxInt, 8, 8)), runtime.ErrShape, []string{"M"}},
		{"product huge", with(c.s, a, b, dims(math.MaxInt32, math.MaxInt32, 1)), runtime.ErrLimit, []string{"M * N"}},
		{"a short", with(c.s, a.Slice(1, 64), b, good), runtime.ErrShape, []string{"a", "63", "64"}},
		{"b short", with(c.s, a, b.Slice(1, 64), good), runtime.ErrShape, []string{"b", "63", "64"}},
		{"c short", with(c.s.Slice(1, 64), a, b, good), runtime.ErrShape, []string{"c", "63", "64"}},
		{"a zero", with(c.s, bytes{}, b, good), runtime.ErrShape, []string{"a"}},
		{"a released", with(c.s, gone, b, good), runtime.ErrClosed, []string{"a"}},
		{"a foreign", with(c.s, theirs, b, good), runtime.ErrForeign, []string{"a"}},
		{"b foreign", with(c.s, a, theirs, good), runtime.ErrForeign, []string{"b"}},
		{"c foreign", with(theirC.s, a, b, good), runtime.ErrForeign, []string{"c"}},
		{"c over a", with(c.s, over, b, good), runtime.ErrOverlap, []string{"c", "a"}},
		{"c over b", with(c.s, a, over.Slice(100, 164), good), runtime.ErrOverlap, []string{"c", "b"}},
	})
	scaled := func(c runtime.Slice[float32], s GEMMInt8Scales, d GEMMInt8Dims) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error {
			if err := ValidateGEMMInt8Scaled(rt, c, a, b, s, d); err == nil {
				t.Errorf("%+v: Validate refuses nothing", d)
			}
			return GEMMInt8Scaled(p, c, a, b, s, d)
		}
	}
	refuses(t, rt, "nn.GEMMInt8Scaled", []target{f, s, rows}, []refusal{
		{"no pass", func(*runtime.Pass) error { return GEMMInt8Scaled(nil, f.s, a, b, GEMMInt8Scales{Columns: s.s}, good) }, runtime.ErrMisuse, nil},
		{"no scales", scaled(f.s, GEMMInt8Scales{}, good), runtime.ErrShape, []string{"Columns"}},
		{"columns short", scaled(f.s, GEMMInt8Scales{Columns: s.s.Slice(1, 8)}, good), runtime.ErrShape, []string{"Columns", "7", "8"}},
		{"rows short", scaled(f.s, GEMMInt8Scales{Columns: s.s, Rows: rows.s.Slice(1, 8)}, good), runtime.ErrShape, []string{"Rows", "7", "8"}},
		{"columns foreign", scaled(f.s, GEMMInt8Scales{Columns: theirF.s}, good), runtime.ErrForeign, []string{"Columns"}},
		{"rows foreign", scaled(f.s, GEMMInt8Scales{Columns: s.s, Rows: theirF.s}, good), runtime.ErrForeign, []string{"Rows"}},
		{"c over columns", scaled(f.s, GEMMInt8Scales{Columns: f.s.Slice(56, 64)}, good), runtime.ErrOverlap, []string{"c", "Columns"}},
		{"c over rows", scaled(f.s, GEMMInt8Scales{Columns: s.s, Rows: f.s.Slice(0, 8)}, good), runtime.ErrOverlap, []string{"c", "Rows"}},
		{"K too large", scaled(f.s, GEMMInt8Scales{Columns: s.s}, dims(1, 1, MaxGEMMInt8K+1)), runtime.ErrLimit, []string{"K"}},
	})
	// No rows or no columns are no work; what is good is good for Validate; inputs may be the same.
	encode(t, rt, 0, func(p *runtime.Pass) error { return GEMMInt8(p, c.s, a, b, dims(0, 8, 8)) })
	encode(t, rt, 0, func(p *runtime.Pass) error { return GEMMInt8(p, c.s, a, b, dims(8, 0, 8)) })
	encode(t, rt, 0, func(p *runtime.Pass) error {
		return GEMMInt8Scaled(p, f.s, a, b, GEMMInt8Scales{Columns: s.s}, dims(0, 8, 8))
	})
	for _, err := range []error{ValidateGEMMInt8(rt, c.s, a, a, good), ValidateGEMMInt8Scaled(rt, f.s, a, b, GEMMInt8Scales{Columns: s.s, Rows: s.s}, good)} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := ValidateGEMMInt8(nil, c.s, a, b, good); err == nil {
		t.Error("no runtime is not refused")
	}
	c.untouched()
	f.untouched()
}

// Devices that run threadgroups in any order, or have few threads.
func TestGEMMInt8OnEveryDevice(t *testing.T) {
	for name, o := range map[string]soft.Options{"plain": {}, "reversed": {Order: soft.Reversed}, "no indirect compute": {NoIndirectCompute: true},
		"64 threads": {MaxThreads: GEMMInt8Threads}, "32 threads": {MaxThreads: 32}} {
		rt, r := openOn(t, o), source(704)
		c := newInt8(t, rt, r, GEMMInt8Dims{M: 40, N: 70, K: 90, TransA: true}, 1)
		sums := output[int32](t, rt, 40*70)
		call := func(p *runtime.Pass) error { return GEMMInt8(p, sums.s, c.a, c.b, c.d) }
		if o.MaxThreads == 32 {
			refuses(t, rt, "", []target{sums}, []refusal{{name, call, runtime.ErrLimit, nil}})
			continue
		}
		encode(t, rt, 1, call)
		sameSums(t, name, sums.written(), c.host.Sums())
	}
}

func TestGEMMInt8Geometry(t *testing.T) {
	for _, c := range []struct{ m, n, x, y int }{{1, 1, 1, 1}, {32, 32, 1, 1}, {33, 32, 1, 2}, {32, 33, 2, 1}, {1, 1000, 32, 1}, {0, 0, 0, 0}, {math.MaxInt32, 1, 1, 1 << 26}} {
		if groups, threads := GEMMInt8Geometry(c.m, c.n); groups != runtime.D2(c.x, c.y) || threads != runtime.D1(64) {
			t.Errorf("%d, %d: %v of %v", c.m, c.n, groups, threads)
		}
	}
	text := shaders(t)["gemm_int8.metal"]
	for name, want := range map[string]int{"INGOT_INT8_TILE": GEMMInt8Tile, "INGOT_INT8_THREADS": GEMMInt8Threads} {
		if got := defined(text, name); got != want {
			t.Errorf("%s is %d, the host has %d", name, got, want)
		}
	}
}

// int8Calls are small products for the tests that make all calls.
func int8Calls(t testing.TB, rt *runtime.Runtime) map[string]func(p *runtime.Pass) error {
	t.Helper()
	c := newInt8(t, rt, source(705), GEMMInt8Dims{M: 3, N: 5, K: 9}, 1)
	sums, scaled := output[int32](t, rt, 15), output[float32](t, rt, 15)
	return map[string]func(p *runtime.Pass) error{
		"GEMMInt8":       func(p *runtime.Pass) error { return GEMMInt8(p, sums.s, c.a, c.b, c.d) },
		"GEMMInt8Scaled": func(p *runtime.Pass) error { return GEMMInt8Scaled(p, scaled.s, c.a, c.b, c.scales(), c.d) },
	}
}
