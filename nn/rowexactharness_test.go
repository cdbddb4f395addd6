package nn

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// rowExactWeights are weights of some type on the device, with the calls that are under test.
type rowExactWeights struct {
	t           WeightType
	bank        any                   // a WeightBank
	o           oracle.Dense[float32] // what the format says they are
	call        func(p *runtime.Pass, y, x vec32, s RowExactShape) error
	scheduled   func(p *runtime.Pass, y, x vec32, s RowExactShape, how RowExactSchedule) error
	twin        func(p *runtime.Pass, y, x vec32, s RowExactShape, bind binding) error
	twinHow     func(p *runtime.Pass, y, x vec32, s RowExactShape, how RowExactSchedule, bind binding) error
	validate    func(y, x vec32, s RowExactShape) error
	validateHow func(y, x vec32, s RowExactShape, how RowExactSchedule) error
	embed       func(p *runtime.Pass, out vec32, ids runtime.Slice[uint32], tokens int, scale float32) error
	embedTwin   func(p *runtime.Pass, out vec32, ids runtime.Slice[uint32], tokens int, scale float32, bind binding) error
	rows        func(i, j int) (rowExactWeights, error) // some of the rows, in the same memory
}

func rowExactOf[W WeightBank](rt *runtime.Runtime, w W, o oracle.Dense[float32]) rowExactWeights {
	return rowExactWeights{w.Type(), w, o,
		func(p *runtime.Pass, y, x vec32, s RowExactShape) error { return RowExactMatvec(p, y, w, x, s) },
		func(p *runtime.Pass, y, x vec32, s RowExactShape, how RowExactSchedule) error {
			return RowExactMatvecScheduled(p, y, w, x, s, how)
		},
		func(p *runtime.Pass, y, x vec32, s RowExactShape, bind binding) error {
			return UnsafeRowExactMatvec(p, y, w, x, s, bind)
		},
		func(p *runtime.Pass, y, x vec32, s RowExactShape, how RowExactSchedule, bind binding) error {
			return UnsafeRowExactMatvecScheduled(p, y, w, x, s, how, bind)
		},
		func(y, x vec32, s RowExactShape) error { return ValidateRowExactMatvec(rt, y, w, x, s) },
		func(y, x vec32, s RowExactShape, how RowExactSchedule) error {
			return ValidateRowExactMatvecScheduled(rt, y, w, x, s, how)
		},
		func(p *runtime.Pass, out vec32, ids runtime.Slice[uint32], tokens int, scale float32) error {
			return EmbedLookup(p, out, w, ids, tokens, scale)
		},
		func(p *runtime.Pass, out vec32, ids runtime.Slice[uint32], tokens int, scale float32, bind binding) error {
			return UnsafeEmbedLookup(p, out, w, ids, tokens, scale, bind)
		},
		func(i, j int) (rowExactWeights, error) {
			part := oracle.Dense[float32]{Data: o.Data[i*o.Cols : j*o.Cols], Rows: j - i, Cols: o.Cols}
			switch w := any(w).(type) {
			case BlockBank:
				return partOf(rt, w.RowRange, i, j, part)
			case DenseBank[float32]:
				return partOf(rt, w.RowRange, i, j, part)
			case DenseBank[half.Float16]:
				return partOf(rt, w.RowRange, i, j, part)
			case DenseBank[half.BFloat16]:
				return partOf(rt, w.RowRange, i, j, part)
			}
			panic("unreachable")
		},
	}
}

func partOf[W WeightBank](rt *runtime.Runtime, rows func(i, j int) (W, error), i, j int, o oracle.Dense[float32]) (rowExactWeights, error) {
	w, err := rows(i, j)
	return rowExactOf(rt, w, o), err
}

// randomBlocks are blocks with any codes and scales: random bytes, but for the float16 numbers, which are finite.
func randomBlocks(r *rand.Rand, f quant.BlockFormat, n int) []byte {
	data := make([]byte, n/f.Values()*f.Bytes())
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	halves := map[quant.BlockFormat][]int{quant.BlockQ4_K: {0, 2}, quant.BlockQ5_K: {0, 2}, quant.BlockQ6_K: {208}}[f]
	if halves == nil {
		halves = []int{0}
	}
	for at := 0; at < len(data); at += f.Bytes() {
		for _, h := range halves {
			// Signs and sizes as they come, within a range in which products neither overflow nor underflow.
			d := uint16(half.Float16FromFloat32(float32(r.NormFloat64() * 0.1)))
			binary.LittleEndian.PutUint16(data[at+h:], d)
		}
	}
	return data
}

// randomRowExact are random weights of a type, at the end of an allocation, where reading on is out of bounds.
func randomRowExact(t testing.TB, rt *runtime.Runtime, r *rand.Rand, wt WeightType, rows, cols int) rowExactWeights {
	t.Helper()
	o := oracle.Dense[float32]{Data: make([]float32, rows*cols), Rows: rows, Cols: cols}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if f := wt.Block(); f != 0 {
		data := randomBlocks(r, f, rows*cols)
		fail(f.Decode(o.Data, data))
		bank, err := UploadBlocks(rt, f, data, rows, cols)
		fail(err)
		t.Cleanup(func() { bank.Release() })
		return rowExactOf(rt, bank, o)
	}
	copy(o.Data, normals(r, rows*cols, 1))
	switch wt {
	case WeightF16:
		data := half.Float16s(o.Data)
		copy(o.Data, half.Float32s(data))
		return uploadedDense(t, rt, data, o)
	case WeightBF16:
		data := half.BFloat16s(o.Data)
		copy(o.Data, half.Float32s(data))
		return uploadedDense(t, rt, data, o)
	}
	return uploadedDense(t, rt, o.Data, o)
}

func uploadedDense[T Float](t testing.TB, rt *runtime.Runtime, data []T, o oracle.Dense[float32]) rowExactWeights {
	t.Helper()
	bank, err := UploadDense(rt, data, o.Rows, o.Cols)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bank.Release() })
	switch bank := any(bank).(type) {
	case DenseBank[float32]:
		return rowExactOf(rt, bank, o)
	case DenseBank[half.Float16]:
		return rowExactOf(rt, bank, o)
	case DenseBank[half.BFloat16]:
		return rowExactOf(rt, bank, o)
	}
	panic("unreachable")
}

// rowExactColumns is how many consecutive columns a thread takes at once, as the kernels have it; the schedule's step is about the
// least work for a thread.
func rowExactColumns(t WeightType) int {
	switch {
	case t.Block() == 0:
		return 4
	case t.Block().Values() == 256:
		return 32
	}
	return 16
}

// rowExactAdditions bounds how many roundings lie between a product and the sum that it ends up in: the fma of each column of a
// thread, and the levels of the trees over 32 lanes and over the simdgroups.
//
// A weight itself is a float32 number, which the kernel makes without another rounding than its format's definition has.
// So the error is at most so many times 2^-24 of the sum of |w x|, up to terms of the second order.
func rowExactAdditions(t WeightType, k, simdgroups int) float64 {
	run := rowExactColumns(t)
	perThread := (k/run + 32*simdgroups - 1) / (32 * simdgroups) * run
	return float64(perThread + 5 + bits.Len(uint(simdgroups-1)))
}

// at is where an output of a shape is.
func (s RowExactShape) at(b, j, r int) int { return b*s.YBatchStride + j*s.YRowStride + r }

// lengths are the elements of x and y that a shape reaches.
func (s RowExactShape) lengths() (x, y int) {
	return (s.Batch-1)*s.XBatchStride + (s.M-1)*s.XRowStride + s.K, (s.Batch-1)*s.YBatchStride + (s.M-1)*s.YRowStride + s.N
}

// layout is a way to place the vectors of a batch of products.
type layout struct {
	name  string
	shape func(m, batch, n, k int) RowExactShape
}

var rowExactLayouts = []layout{
	{"batched", RowExactBatched},
	{"grouped", RowExactGrouped},
	{"with gaps", func(m, batch, n, k int) RowExactShape {
		return RowExactShape{M: m, N: n, K: k, Batch: batch, XRowStride: k + 4, XBatchStride: m*(k+4) + 8, YRowStride: n + 3, YBatchStride: m*(n+3) + 1}
	}},
	{"grouped with gaps", func(m, batch, n, k int) RowExactShape {
		return RowExactShape{M: m, N: n, K: k, Batch: batch, XRowStride: batch*k + 12, XBatchStride: k, YRowStride: batch*(n+1) + 2, YBatchStride: n + 1}
	}},
	{"shared vectors", func(m, batch, n, k int) RowExactShape {
		return RowExactShape{M: m, N: n, K: k, Batch: batch, XRowStride: k, XBatchStride: 0, YRowStride: n, YBatchStride: m * n}
	}},
}

// outputs are y's elements, which must be written, [Batch][M][N]; what lies between them must be as it was.
func (s RowExactShape) outputs(t testing.TB, where string, y *buffer[float32]) []float32 {
	t.Helper()
	got := y.get()
	seen := make([]bool, len(got))
	var out []float32
	for b := range s.Batch {
		for j := range s.M {
			for r := range s.N {
				at := s.at(b, j, r)
				if bitsOf(got[at]) == bitsOf(sentinel[float32]()) {
					t.Fatalf("%s: batch %d, vector %d, row %d was not written", where, b, j, r)
				}
				seen[at] = true
				out = append(out, got[at])
			}
		}
	}
	for i, v := range got {
		if !seen[i] && bitsOf(v) != bitsOf(sentinel[float32]()) {
			t.Fatalf("%s: element %d, between the outputs, was written: %v", where, i, v)
		}
	}
	return out
}

// compareRowExact holds the outputs of a shape against float64.
func (w *rowExactWeights) compare(t testing.TB, worst *worst, where string, s RowExactShape, x []float32, got []float32, simdgroups int) {
	t.Helper()
	allowed := rowExactAdditions(w.t, s.K, simdgroups) / (1 << 24)
	for b := range s.Batch {
		o := oracle.Dense[float32]{Data: w.o.Data[b*s.N*s.K : (b+1)*s.N*s.K], Rows: s.N, Cols: s.K}
		for j := range s.M {
			v := x[b*s.XBatchStride+j*s.XRowStride:][:s.K]
			want, size := oracle.GEMV(o, v), oracle.GEMVMagnitude(o, v)
			at := (b*s.M + j) * s.N
			worst.compare(t, fmt.Sprintf("%s: batch %d, vector %d", where, b, j), widen(got[at:at+s.N]), want,
				func(i int) float64 { return size[i]*allowed + 1e-36 })
		}
	}
}
