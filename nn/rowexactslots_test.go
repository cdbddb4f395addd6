package nn

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/runtime"
)

func init() {
	for _, t := range WeightTypes() {
		for _, name := range RowExactKernels(t) {
			kernelSlots[name] = "0r 1r 2w 3p 0t"
		}
	}
}

// The kernels' names are those that others have given them, and the library has all of them and no more.
func TestRowExactKernels(t *testing.T) {
	packings := map[WeightType][]int{
		WeightF16: {1, 2}, WeightQ8_0: {1, 2}, WeightQ4_K: {1, 2, 4}, WeightQ6_K: {1, 2, 4}, WeightQ5_0: {1, 2, 4},
		WeightF32: {1, 2}, WeightBF16: {1, 2}, WeightQ4_0: {1, 2}, WeightIQ4_NL: {1, 2}, WeightQ5_K: {1, 2},
	}
	names := map[WeightType]string{
		WeightF16: "f16", WeightQ8_0: "q8_0", WeightQ4_K: "q4_K", WeightQ6_K: "q6_K", WeightQ5_0: "q5_0",
		WeightF32: "f32", WeightBF16: "bf16", WeightQ4_0: "q4_0", WeightIQ4_NL: "iq4_nl", WeightQ5_K: "q5_K",
	}
	all := 0
	for _, wt := range WeightTypes() {
		var want []string
		for _, r := range packings[wt] {
			for m := 1; m <= 8; m++ {
				name := fmt.Sprintf("row_exact_mv_%s_f32_r%d_m%d", names[wt], r, m)
				want = append(want, name)
				if got := rowExactKernel(wt, r, m); got != name {
					t.Errorf("%v, %d rows, %d vectors: %s", wt, r, m, got)
				}
				if !slices.Contains(metallib.DefaultInfo().Kernels, name) {
					t.Errorf("the library has no %s", name)
				}
			}
		}
		if got := RowExactKernels(wt); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", wt, got, want)
		}
		all += len(want)
		for _, r := range []int{-1, 0, 1, 2, 3, 4, 5, 6, 8, 1 << 40} {
			if got := wt.SupportsRows(r); got != slices.Contains(packings[wt], r) {
				t.Errorf("%v: %d rows: %v", wt, r, got)
			}
		}
	}
	if all != 184 {
		t.Errorf("%d kernels", all)
	}
	for _, none := range []WeightType{0, WeightQ6_K + 1, 255} {
		if RowExactKernels(none) != nil || none.SupportsRows(1) {
			t.Errorf("%v has kernels", none)
		}
	}
}

// The parameters are laid out as the kernels read them.
func TestRowExactParams(t *testing.T) {
	lib, err := metallib.Read(metallib.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range lib.Functions {
		if f.Name != rowExactKernel(WeightQ4_K, 2, 3) {
			continue
		}
		m, err := air.Read(f.Bitcode)
		if err != nil {
			t.Fatal(err)
		}
		kernels, err := m.Kernels()
		if err != nil {
			t.Fatal(err)
		}
		if a := kernels[0].Args[3]; a.Size != RowExactParamsSize || a.Align != 8 {
			t.Errorf("%d bytes aligned to %d", a.Size, a.Align)
		}
	}
	b := RowExactParams(WeightQ4_K, RowExactShape{M: 3, N: 7, K: 512, Batch: 2, XRowStride: 520, XBatchStride: 2000, YRowStride: 9, YBatchStride: 70}, 4)
	for i, want := range []uint32{512, 7, 520, 2000, 9, 70, 2, 0} {
		if got := binary.NativeEndian.Uint32(b[4*i:]); got != want {
			t.Errorf("word %d: %d, want %d", i, got, want)
		}
	}
	if row, batch := binary.NativeEndian.Uint64(b[32:]), binary.NativeEndian.Uint64(b[40:]); row != 288 || batch != 7*288 {
		t.Errorf("%d bytes a row, %d a batch", row, batch)
	}
	for _, bad := range []int{0, -1} { // what no product has gives no parameters, and no panic
		if RowExactParams(WeightF16, RowExactContiguous(1, 4, 4), bad) != [RowExactParamsSize]byte{} {
			t.Error(bad)
		}
	}
	RowExactParams(77, RowExactContiguous(-1, -1, -1), 1)
}

// The schedule by the rules, with numbers worked out by hand: simdgroups until all rows have 1,024 (Q8_0: 4,096), at most 4 from 256
// rows on, at most one full step of 16 or 32 columns for each thread.
func TestRowExactSchedule(t *testing.T) {
	for _, c := range []struct {
		t          WeightType
		rows, k    int
		simdgroups int
	}{
		{WeightF16, 1, 1 << 20, 32}, {WeightF16, 1, 16384, 32}, {WeightF16, 1, 16383, 31}, {WeightF16, 1, 512, 1}, {WeightF16, 1, 511, 1}, {WeightF16, 1, 1024, 2},
		{WeightF16, 32, 1 << 20, 32}, {WeightF16, 33, 1 << 20, 16}, {WeightF16, 64, 1 << 20, 16}, {WeightF16, 255, 1 << 20, 4}, {WeightF16, 256, 1 << 20, 4}, {WeightF16, 257, 1 << 20, 2},
		{WeightF16, 1024, 1 << 20, 1}, {WeightF16, 1 << 30, 1 << 20, 1}, {WeightF16, 0, 4096, 8}, {WeightF16, -5, 4096, 8},
		{WeightQ8_0, 128, 1 << 20, 32}, {WeightQ8_0, 255, 1 << 20, 16}, {WeightQ8_0, 256, 1 << 20, 4}, {WeightQ8_0, 2112, 2816, 1}, {WeightQ8_0, 2048, 2816, 2}, {WeightQ8_0, 4097, 2816, 1},
		{WeightQ4_K, 1024, 2816, 1}, {WeightQ4_K, 512, 2816, 2}, {WeightQ4_K, 1, 2816, 2}, {WeightQ4_K, 1, 1023, 1}, {WeightQ4_K, 1, 4096, 4}, {WeightQ5_K, 1, 4096, 4}, {WeightQ6_K, 64, 4096, 4},
		{WeightQ5_0, 1, 4096, 8}, {WeightQ4_0, 1, 4096, 8}, {WeightIQ4_NL, 1, 4096, 8}, {WeightF32, 1, 4096, 8}, {WeightBF16, 1, 4096, 8}, {0, 1, 1, 0}, {99, 1, 1, 0}, {WeightF16, 1, -1, 1},
	} {
		if got := RowExactSimdgroups(c.t, c.rows, c.k); got != c.simdgroups {
			t.Errorf("%v, %d rows of %d: %d simdgroups, want %d", c.t, c.rows, c.k, got, c.simdgroups)
		}
	}
	for _, c := range []struct {
		t    WeightType
		n    int
		rows int
	}{
		{WeightF16, 100, 1}, {WeightF32, 100, 1}, {WeightBF16, 100, 1}, {WeightQ8_0, 100, 2}, {WeightQ8_0, 1, 1}, {WeightQ4_K, 2, 2}, {WeightQ6_K, 3, 2}, {WeightQ5_0, 1, 1}, {WeightQ5_0, 2, 2},
		{WeightQ5_0, 3, 2}, {WeightQ5_0, 4, 4}, {WeightQ5_0, 1000, 4}, {WeightQ4_0, 8, 2}, {WeightIQ4_NL, 8, 2}, {WeightQ5_K, 8, 2},
	} {
		s := RowExactContiguous(1, c.n, 4096)
		how := RowExactAuto(c.t, s)
		if how.Rows != c.rows || how.Simdgroups != RowExactSimdgroups(c.t, c.n, 4096) {
			t.Errorf("%v, %d rows: %+v, want %d", c.t, c.n, how, c.rows)
		}
		// Not on the vectors, nor on how they lie; but on the rows of all batches.
		for m := range 20 {
			if RowExactAuto(c.t, RowExactGrouped(m, 1, c.n, 4096)) != how {
				t.Errorf("%v, %d rows: %d vectors change the schedule", c.t, c.n, m)
			}
		}
		if got := RowExactAuto(c.t, RowExactBatched(3, 50, c.n, 4096)); got.Simdgroups != RowExactSimdgroups(c.t, 50*c.n, 4096) {
			t.Errorf("%v, 50 * %d rows: %+v", c.t, c.n, got)
		}
	}
	for _, bad := range []RowExactShape{{}, {N: -1, Batch: -1}, {N: 1 << 40, Batch: 1 << 40, K: 1 << 40}, {N: 1 << 62, Batch: 4}} {
		if how := RowExactAuto(WeightQ5_0, bad); how.Simdgroups < 1 || how.Rows < 1 {
			t.Errorf("%+v: %+v", bad, how)
		}
	}
	if how := RowExactAuto(0, RowExactContiguous(1, 1, 1)); how != (RowExactSchedule{}) {
		t.Error(how)
	}
}

func TestRowExactShapes(t *testing.T) {
	for _, c := range []struct{ got, want RowExactShape }{
		{RowExactContiguous(3, 5, 64), RowExactShape{3, 5, 64, 1, 64, 0, 5, 0}},
		{RowExactBatched(3, 2, 5, 64), RowExactShape{3, 5, 64, 2, 64, 192, 5, 15}},
		{RowExactGrouped(3, 2, 5, 64), RowExactShape{3, 5, 64, 2, 128, 64, 10, 5}},
		{RowExactGrouped(3, 1<<20, 1<<20, 1<<20), RowExactShape{3, 1 << 20, 1 << 20, 1 << 20, -1, 1 << 20, -1, 1 << 20}},
		{RowExactBatched(-3, 2, 5, 1<<40), RowExactShape{-3, 5, 1 << 40, 2, 1 << 40, -1, 5, -1}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}
}

// Outputs are apart exactly if no two of them are at the same place.
func TestRowExactOutputsApart(t *testing.T) {
	r := source(651)
	apart := 0
	for range 4000 {
		s := RowExactShape{M: 1 + r.IntN(4), N: 1 + r.IntN(3), Batch: 1 + r.IntN(3), YRowStride: r.IntN(16), YBatchStride: r.IntN(16)}
		places := map[int]bool{}
		for b := range s.Batch {
			for j := range s.M {
				for i := range s.N {
					places[s.at(b, j, i)] = true
				}
			}
		}
		free := len(places) == s.Batch*s.M*s.N
		got := s.outputsApart()
		if got {
			apart++
		}
		// Rows that are interleaved without meeting are refused too: neither order of strides is nested.
		if got && !free {
			t.Fatalf("%+v: taken, but outputs meet", s)
		}
		if !got && free && !interleaved(s) {
			t.Fatalf("%+v: refused, but outputs are apart", s)
		}
	}
	if apart < 500 {
		t.Errorf("only %d of the shapes are apart", apart)
	}
}

// interleaved says whether neither all vectors of a batch nor all batches of a vector lie within one step of the other stride.
func interleaved(s RowExactShape) bool {
	return s.M > 1 && s.Batch > 1 && s.YBatchStride < (s.M-1)*s.YRowStride+s.N && s.YRowStride < (s.Batch-1)*s.YBatchStride+s.N
}

// rowExactCalls are products for which nothing may be allocated and nothing be taken after the pass.
func rowExactCalls(t testing.TB, rt *runtime.Runtime) map[string]func(p *runtime.Pass) error {
	t.Helper()
	r := source(652)
	q, f := randomRowExact(t, rt, r, WeightQ5_0, 6, 64), randomRowExact(t, rt, r, WeightF16, 6, 64)
	x, y := newBuffer(t, rt, normals(r, 10*64, 1)), output[float32](t, rt, 10*6)
	return map[string]func(p *runtime.Pass) error{
		"RowExactMatvec":             func(p *runtime.Pass) error { return q.call(p, y.s, x.s, RowExactContiguous(3, 6, 64)) },
		"RowExactMatvec, 10 vectors": func(p *runtime.Pass) error { return f.call(p, y.s, x.s, RowExactContiguous(10, 6, 64)) },
		"RowExactMatvecScheduled": func(p *runtime.Pass) error {
			return f.scheduled(p, y.s, x.s, RowExactGrouped(2, 3, 2, 64), RowExactSchedule{2, 1})
		},
	}
}
