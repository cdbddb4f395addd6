package nn

import (
	"errors"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestRowExactRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	r := source(670)
	const n, k = 6, 64
	q, f, other := randomRowExact(t, rt, r, WeightQ5_0, n, k), randomRowExact(t, rt, r, WeightF16, n, k), randomRowExact(t, foreign, r, WeightQ5_0, n, k)
	other = rowExactOf(rt, other.bank.(BlockBank), other.o) // whose preflights are those of rt
	k4 := randomRowExact(t, rt, r, WeightQ4_K, 2, 512)
	x, y := newBuffer(t, rt, normals(r, 20*k, 1)), output[float32](t, rt, 20*n)
	theirs := output[float32](t, foreign, 20*k)
	zero := rowExactOf(rt, BlockBank{}, q.o)
	zeroDense := rowExactOf(rt, DenseBank[float32]{}, q.o)
	dropped, err := UploadDense(rt, make([]float32, n*k), n, k)
	if err != nil {
		t.Fatal(err)
	}
	if err := dropped.Release(); err != nil {
		t.Fatal(err)
	}
	gone := rowExactOf(rt, dropped, q.o)
	short, err := runtime.NewSlice[float32](rt, k)
	if err != nil {
		t.Fatal(err)
	}
	// Weights of plain numbers that do not start at a multiple of four of them.
	odd, err := runtime.NewSlice[half.Float16](rt, n*k+2)
	if err != nil {
		t.Fatal(err)
	}
	oddBank, err := NewDenseBank(odd.Slice(2, n*k+2), n, k)
	if err != nil {
		t.Fatal(err)
	}
	oddWeights := rowExactOf(rt, oddBank, q.o)
	// Weights and vectors in the memory of the outputs.
	both, err := runtime.NewSlice[float32](rt, 4*k)
	if err != nil {
		t.Fatal(err)
	}
	inBoth, err := NewDenseBank(both.Slice(0, 2*k), 2, k)
	if err != nil {
		t.Fatal(err)
	}
	sharing := rowExactOf(rt, inBoth, q.o)

	good := RowExactContiguous(3, n, k)
	with := func(change func(s *RowExactShape)) RowExactShape {
		s := good
		change(&s)
		return s
	}
	two := func(change func(s *RowExactShape)) RowExactShape {
		s := RowExactBatched(3, 2, n/2, k)
		change(&s)
		return s
	}
	type shape = RowExactShape
	shapes := []struct {
		name     string
		w        rowExactWeights
		y, x     vec32
		s        RowExactShape
		sentinel error
		parts    []string
	}{
		{"no vectors", q, y.s, x.s, with(func(s *shape) { s.M = 0 }), runtime.ErrShape, []string{"M", "0", "1 to"}},
		{"M negative", q, y.s, x.s, with(func(s *shape) { s.M = -1 }), runtime.ErrShape, []string{"M", "-1"}},
		{"17 vectors", q, y.s, x.s, with(func(s *shape) { s.M = 17 }), runtime.ErrLimit, []string{"M", "17", "at most 16"}},
		{"no rows", q, y.s, x.s, with(func(s *shape) { s.N = 0 }), runtime.ErrShape, []string{"N"}},
		{"no columns", q, y.s, x.s, with(func(s *shape) { s.K = 0 }), runtime.ErrShape, []string{"K"}},
		{"no batch", q, y.s, x.s, with(func(s *shape) { s.Batch = 0 }), runtime.ErrShape, []string{"Batch", "1 to"}},
		{"Batch negative", q, y.s, x.s, with(func(s *shape) { s.Batch = -1 }), runtime.ErrShape, []string{"Batch", "-1, need 1 to"}},
		{"N huge", q, y.s, x.s, with(func(s *shape) { s.N = math.MaxInt }), runtime.ErrShape, []string{"N"}},
		{"K no blocks", q, y.s, x.s, with(func(s *shape) { s.K = 48 }), runtime.ErrShape, []string{"K", "48", "multiple of 32 for Q5_0"}},
		{"K no long blocks", k4, y.s, x.s, RowExactContiguous(1, 2, 480), runtime.ErrShape, []string{"K", "480", "multiple of 256 for Q4_K"}},
		{"K no multiple of 4", f, y.s, x.s, with(func(s *shape) { s.K = 62 }), runtime.ErrShape, []string{"K", "62", "multiple of 4 for F16"}},
		{"stride of x", q, y.s, x.s, with(func(s *shape) { s.XRowStride = 66 }), runtime.ErrShape, []string{"XRowStride", "66", "multiple of 4"}},
		{"stride of x's batches", q, y.s, x.s, two(func(s *shape) { s.XBatchStride = 3 }), runtime.ErrShape, []string{"XBatchStride", "3", "multiple of 4"}},
		{"stride negative", q, y.s, x.s, with(func(s *shape) { s.XRowStride = -4 }), runtime.ErrShape, []string{"XRowStride", "-4"}},
		{"stride of y negative", q, y.s, x.s, with(func(s *shape) { s.YRowStride = -4 }), runtime.ErrShape, []string{"YRowStride", "-4, need 0 to"}},
		{"stride of y huge", q, y.s, x.s, with(func(s *shape) { s.YRowStride = 1 << 32 }), runtime.ErrShape, []string{"YRowStride", "need 0 to"}},
		{"stride of x's batches negative", q, y.s, x.s, with(func(s *shape) { s.XBatchStride = -4 }), runtime.ErrShape, []string{"XBatchStride", "-4, need 0 to"}},
		{"batch stride negative", q, y.s, x.s, with(func(s *shape) { s.YBatchStride = -1 }), runtime.ErrShape, []string{"YBatchStride", "-1"}},
		{"stride huge", q, y.s, x.s, with(func(s *shape) { s.XBatchStride = 1 << 32 }), runtime.ErrShape, []string{"XBatchStride"}},
		{"x not aligned", q, y.s, x.s.Slice(1, 20*k), good, runtime.ErrShape, []string{"x", "multiple of 16"}},
		{"weights not aligned", oddWeights, y.s, x.s, good, runtime.ErrShape, []string{"w", "multiple of 8"}},
		{"outputs of vectors meet", q, y.s, x.s, with(func(s *shape) { s.YRowStride = n - 1 }), runtime.ErrShape, []string{"YRowStride", "5 and 0", "apart"}},
		{"outputs of batches meet", q, y.s, x.s, two(func(s *shape) { s.YBatchStride = 8 }), runtime.ErrShape, []string{"YRowStride, YBatchStride", "3 and 8"}},
		{"outputs of batches of one vector meet", q, y.s, x.s, two(func(s *shape) { s.M, s.YBatchStride = 1, 2 }), runtime.ErrShape, []string{"YBatchStride"}},
		{"outputs of groups meet", q, y.s, x.s, two(func(s *shape) { s.YRowStride, s.YBatchStride = 5, 3 }), runtime.ErrShape, []string{"YRowStride, YBatchStride", "5 and 3"}},
		{"outputs of all batches at one place", q, y.s, x.s, two(func(s *shape) { s.YBatchStride = 0 }), runtime.ErrShape, []string{"YRowStride, YBatchStride", "3 and 0"}},
		{"outputs beyond 32 bits", q, y.s, x.s, with(func(s *shape) { s.YRowStride = 1 << 31 }), runtime.ErrLimit, []string{"YRowStride", "2^32-1"}},
		{"other columns", q, y.s, x.s, RowExactContiguous(1, n, 32), runtime.ErrShape, []string{"w", "64 columns", "32"}},
		{"too few rows", q, y.s, x.s, RowExactContiguous(1, n+1, k), runtime.ErrShape, []string{"w", "6 rows", "7"}},
		{"too few rows for the batch", q, y.s, x.s, RowExactBatched(1, 2, 4, k), runtime.ErrShape, []string{"w", "6 rows", "8"}},
		{"N * Batch huge", q, y.s, x.s, RowExactShape{M: 1, N: 1 << 20, K: k, Batch: 1 << 20, YBatchStride: 1 << 20}, runtime.ErrLimit, []string{"N * Batch"}},
		{"x short", q, y.s, x.s.Slice(0, 3*k-1), good, runtime.ErrShape, []string{"x", "191", "192"}},
		{"x short for the strides", q, y.s, x.s, with(func(s *shape) { s.XRowStride = 20 * k }), runtime.ErrShape, []string{"x", "1280"}},
		{"x short for the batches", q, y.s, x.s, two(func(s *shape) { s.XBatchStride = math.MaxUint32 &^ 3 }), runtime.ErrShape, []string{"x"}},
		{"y short", q, y.s.Slice(0, 3*n-1), x.s, good, runtime.ErrShape, []string{"y", "17", "18"}},
		{"y short for the strides", q, y.s, x.s, with(func(s *shape) { s.YRowStride = 100 }), runtime.ErrShape, []string{"y", "120", "206"}},
		{"zero bank", zero, y.s, x.s, good, runtime.ErrShape, []string{"w", "zero bank", "NewBlockBank"}},
		{"zero bank of numbers", zeroDense, y.s, x.s, good, runtime.ErrShape, []string{"w", "zero bank", "NewDenseBank"}},
		{"zero x", q, y.s, vec32{}, good, runtime.ErrShape, []string{"x"}},
		{"zero y", q, vec32{}, x.s, good, runtime.ErrShape, []string{"y"}},
		{"released weights", gone, y.s, x.s, good, runtime.ErrClosed, []string{"w"}},
		{"foreign weights", other, y.s, x.s, good, runtime.ErrForeign, []string{"w"}},
		{"foreign x", q, y.s, theirs.s, good, runtime.ErrForeign, []string{"x"}},
		{"foreign y", q, theirs.s, x.s, good, runtime.ErrForeign, []string{"y"}},
		{"y over x", q, short, short, RowExactContiguous(1, n, k), runtime.ErrOverlap, []string{"y", "x"}},
		{"y over the weights", sharing, both.Slice(k, 4*k), x.s, RowExactContiguous(1, 2, k), runtime.ErrOverlap, []string{"y", "w"}},
	}
	var plain, scheduled, unsafe []refusal
	for _, c := range shapes {
		plain = append(plain, refusal{c.name, func(p *runtime.Pass) error { return c.w.call(p, c.y, c.x, c.s) }, c.sentinel, c.parts})
		scheduled = append(scheduled, refusal{c.name, func(p *runtime.Pass) error { return c.w.scheduled(p, c.y, c.x, c.s, RowExactSchedule{1, 1}) }, c.sentinel, c.parts})
		checkRefused(t, "nn.ValidateRowExactMatvec", refusal{c.name, nil, c.sentinel, c.parts}, c.w.validate(c.y, c.x, c.s))
		checkRefused(t, "nn.ValidateRowExactMatvecScheduled", refusal{c.name, nil, c.sentinel, c.parts}, c.w.validateHow(c.y, c.x, c.s, RowExactSchedule{1, 1}))
		if c.name != "17 vectors" {
			unsafe = append(unsafe, refusal{c.name, func(p *runtime.Pass) error { return c.w.twin(p, c.y, c.x, c.s, nil) }, c.sentinel, c.parts})
		}
	}
	plain = append(plain, refusal{"no pass", func(*runtime.Pass) error { return q.call(nil, y.s, x.s, good) }, runtime.ErrMisuse, []string{"p", "nil"}})
	for _, c := range []struct {
		name  string
		w     rowExactWeights
		how   RowExactSchedule
		parts []string
	}{
		{"no simdgroups", q, RowExactSchedule{0, 1}, []string{"Simdgroups", "0", "1 to 32"}},
		{"33 simdgroups", q, RowExactSchedule{33, 1}, []string{"Simdgroups", "33"}},
		{"no rows of a threadgroup", q, RowExactSchedule{1, 0}, []string{"Rows", "0"}},
		{"3 rows", q, RowExactSchedule{1, 3}, []string{"Rows", "3", "up to 4 for Q5_0"}},
		{"4 rows of F16", f, RowExactSchedule{1, 4}, []string{"Rows", "4", "up to 2 for F16"}},
		{"rows negative", f, RowExactSchedule{1, -2}, []string{"Rows", "-2"}},
	} {
		scheduled = append(scheduled, refusal{c.name, func(p *runtime.Pass) error { return c.w.scheduled(p, y.s, x.s, good, c.how) }, runtime.ErrShape, c.parts})
		checkRefused(t, "nn.ValidateRowExactMatvecScheduled", refusal{c.name, nil, runtime.ErrShape, c.parts}, c.w.validateHow(y.s, x.s, good, c.how))
	}
	unsafe = append(unsafe, refusal{"9 vectors", func(p *runtime.Pass) error { return q.twin(p, y.s, x.s, RowExactContiguous(9, n, k), nil) }, runtime.ErrLimit, []string{"M", "9", "at most 8"}})
	outs := []target{y, theirs}
	refuses(t, rt, "nn.RowExactMatvec", outs, plain)
	refuses(t, rt, "nn.RowExactMatvecScheduled", outs, scheduled)
	refuses(t, rt, "nn.UnsafeRowExactMatvec", outs, unsafe)
	if err := q.validate(y.s, x.s, good); err != nil {
		t.Error(err)
	}
	checkRefused(t, "nn.ValidateRowExactMatvec", refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt", "nil"}},
		ValidateRowExactMatvec(nil, y.s, oddBank, x.s, good))
}

// Devices whose kernels take few threads: the products use fewer simdgroups, rows stay exact, and a schedule of the caller's that does
// not fit is refused before anything is encoded.
func TestRowExactFewThreads(t *testing.T) {
	for _, c := range []struct{ threads, limit int }{{32, 1}, {63, 1}, {64, 2}, {96, 2}, {128, 4}, {1000, 16}, {1024, 32}} {
		rt, r := openOn(t, soft.Options{MaxThreads: c.threads}), source(680)
		const n, k, m = 3, 4096, 11
		limit, err := RowExactLimit(rt, WeightQ4_0)
		if err != nil || limit != c.limit {
			t.Fatalf("%d threads: %d simdgroups, %v, want %d", c.threads, limit, err, c.limit)
		}
		s := RowExactContiguous(m, n, k)
		how, err := RowExactFor(rt, WeightQ4_0, s)
		if want := (RowExactSchedule{min(c.limit, 8), 2}); err != nil || how != want {
			t.Fatalf("%d threads: %+v, %v, want %+v", c.threads, how, err, want)
		}
		w := randomRowExact(t, rt, r, WeightQ4_0, n, k)
		x := normals(r, m*k, 1)
		in, y, alone := newBuffer(t, rt, x), output[float32](t, rt, m*n), output[float32](t, rt, m*n)
		encode(t, rt, 2+m, func(p *runtime.Pass) error {
			for j := range m {
				if err := w.call(p, alone.s.Slice(j*n, m*n), in.s.Slice(j*k, m*k), RowExactContiguous(1, n, k)); err != nil {
					return err
				}
			}
			return w.call(p, y.s, in.s, s)
		})
		sameBits(t, "alone", alone, y)
		var worst worst
		w.compare(t, &worst, "", s, x, y.written(), how.Simdgroups)

		for _, vectors := range []int{1, 8, 9} {
			if c.limit == 32 {
				continue
			}
			y.reset()
			err := rt.Run(func(p *runtime.Pass) error {
				err := w.scheduled(p, y.s, in.s, RowExactContiguous(vectors, n, k), RowExactSchedule{c.threads/32 + 1, 1})
				if p.Count() != 0 {
					t.Errorf("%d threads, %d vectors: %d dispatches of a schedule that does not fit", c.threads, vectors, p.Count())
				}
				if !errors.Is(err, runtime.ErrLimit) {
					t.Errorf("%d threads, %d vectors: %v", c.threads, vectors, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			y.untouched()
		}
	}
	// One kernel that takes fewer threads than the others limits all of its type, so that no vector is summed up in another order than the
	// others, and none of another type.
	slow := rowExactKernel(WeightQ4_0, 2, 7)
	few := openOn(t, soft.Options{KernelThreads: map[string]int{slow: 200}})
	for wt, want := range map[WeightType]int{WeightQ4_0: 4, WeightF16: 32} {
		if limit, err := RowExactLimit(few, wt); err != nil || limit != want {
			t.Errorf("%v: %d simdgroups, %v, want %d", wt, limit, err, want)
		}
	}
	r := source(682)
	w := randomRowExact(t, few, r, WeightQ4_0, 2, 4096)
	x, y := newBuffer(t, few, normals(r, 7*4096, 1)), output[float32](t, few, 7*2)
	alone := output[float32](t, few, 7*2)
	encode(t, few, 8, func(p *runtime.Pass) error {
		for j := range 7 {
			if err := w.call(p, alone.s.Slice(2*j, 14), x.s.Slice(j*4096, 7*4096), RowExactContiguous(1, 2, 4096)); err != nil {
				return err
			}
		}
		return w.call(p, y.s, x.s, RowExactContiguous(7, 2, 4096))
	})
	sameBits(t, "alone", alone, y)

	// Nine vectors are five and then four: what the second launch cannot take keeps the first out of the pass, too.
	second4 := openOn(t, soft.Options{KernelThreads: map[string]int{rowExactKernel(WeightQ4_0, 1, 4): 64}})
	w = randomRowExact(t, second4, r, WeightQ4_0, 2, 4096)
	x, y = newBuffer(t, second4, normals(r, 9*4096, 1)), output[float32](t, second4, 9*2)
	refuses(t, second4, "", []target{y}, []refusal{{"second launch", func(p *runtime.Pass) error {
		return w.scheduled(p, y.s, x.s, RowExactContiguous(9, 2, 4096), RowExactSchedule{4, 1})
	}, runtime.ErrLimit, []string{"threads", "_m4"}}})

	rt := open(t)
	for _, bad := range []WeightType{0, 99} {
		checkRefused(t, "nn.RowExactLimit", refusal{"no type", nil, runtime.ErrShape, []string{"t", "WeightType"}}, second(RowExactLimit(rt, bad)))
		checkRefused(t, "nn.RowExactFor", refusal{"no type", nil, runtime.ErrShape, []string{"t", "WeightType"}}, second(RowExactFor(rt, bad, RowExactShape{})))
	}
	checkRefused(t, "nn.RowExactLimit", refusal{"no runtime", nil, runtime.ErrMisuse, nil}, second(RowExactLimit(nil, WeightF16)))
}

func second[T any](_ T, err error) error { return err }
