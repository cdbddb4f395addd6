package nn

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ingot-metal/ingot/runtime"
)

const (
	// MaxRowExactVectors is the most vectors that a kernel of the row-exact products takes at once.
	MaxRowExactVectors = 8
	// MaxRowExactRows is the most vectors of a call of [RowExactMatvec], which takes more than MaxRowExactVectors in two launches.
	MaxRowExactRows = 2 * MaxRowExactVectors
)

// RowExactShape is a batch of products of a matrix with some vectors:
//
//	y[b, j, r] = W[b, r] . x[b, j],  b < Batch, j < M, r < N, over K columns
//
// W[b, r] is row b N + r of the weights. Element c of x[b, j] is at b XBatchStride + j XRowStride + c, and y[b, j, r] at
// b YBatchStride + j YRowStride + r, in elements.
type RowExactShape struct {
	M, N, K, Batch           int
	XRowStride, XBatchStride int // multiples of 4; rows may overlap, and 0 uses one for all
	YRowStride, YBatchStride int // no two outputs overlap
}

// RowExactContiguous is one product: x [m, k], W [n, k], y [m, n].
func RowExactContiguous(m, n, k int) RowExactShape {
	return RowExactShape{M: m, N: n, K: k, Batch: 1, XRowStride: k, YRowStride: n}
}

// RowExactBatched is batch products, one after the other: x [batch, m, k], W [batch, n, k], y [batch, m, n]. If the strides overflow,
// the shape is one that is refused.
func RowExactBatched(m, batch, n, k int) RowExactShape {
	return RowExactShape{M: m, N: n, K: k, Batch: batch, XRowStride: k, XBatchStride: strideOf(m, k), YRowStride: n, YBatchStride: strideOf(m, n)}
}

// RowExactGrouped is a product by groups of columns whose inputs and outputs keep the groups of a vector together:
// x [m, groups, k], W [groups, n, k], y [m, groups, n]. If the strides overflow, the shape is one that is refused.
func RowExactGrouped(m, groups, n, k int) RowExactShape {
	return RowExactShape{M: m, N: n, K: k, Batch: groups, XRowStride: strideOf(groups, k), XBatchStride: k, YRowStride: strideOf(groups, n), YBatchStride: n}
}

// strideOf is a product, or -1 if that is no stride.
func strideOf(a, b int) int {
	if a < 0 || b < 0 || a > maxDim || b > maxDim || uint64(a)*uint64(b) > maxStride {
		return -1
	}
	return a * b
}

// RowExactSchedule is how a row-exact product is laid out on threadgroups.
type RowExactSchedule struct {
	// Simdgroups of a threadgroup, 1 to 32. It fixes the order of the sums: rows are the same bits between launches with the same
	// number only.
	Simdgroups int
	// Rows of weights that a threadgroup takes: 1 or 2, and 4 for Q4_K, Q6_K and Q5_0. It does not change any bit.
	Rows int
}

// rowExactType is what the products make of a type of weights.
type rowExactType struct {
	kernel    string // the type's part of the kernels' names
	multiple  int    // of columns
	align     int    // of the weights, in bytes
	step      int    // columns that a thread takes at once, as far as the schedule is concerned
	target    int    // simdgroups of a launch from which on a row is not split further
	preferred int    // rows of a threadgroup
	most      int
}

// Steps, targets and preferred rows of F16, Q8_0, Q4_K, Q6_K and Q5_0 are those that others measured to be the best on an
// M5 Max; the rest follows the nearest of these.
var rowExactTypes = [...]rowExactType{
	WeightF32:    {"f32", 4, 16, 16, 1024, 1, 2},
	WeightF16:    {"f16", 4, 8, 16, 1024, 1, 2},
	WeightBF16:   {"bf16", 4, 8, 16, 1024, 1, 2},
	WeightQ4_0:   {"q4_0", 32, 2, 16, 1024, 2, 2},
	WeightQ5_0:   {"q5_0", 32, 2, 16, 1024, 4, 4},
	WeightQ8_0:   {"q8_0", 32, 2, 16, 4096, 2, 2},
	WeightIQ4_NL: {"iq4_nl", 32, 2, 16, 1024, 2, 2},
	WeightQ4_K:   {"q4_K", 256, 16, 32, 1024, 2, 4},
	WeightQ5_K:   {"q5_K", 256, 16, 32, 1024, 2, 2},
	WeightQ6_K:   {"q6_K", 256, 2, 32, 1024, 2, 4},
}

// rowExact is nil for what is no type.
func (t WeightType) rowExact() *rowExactType {
	if t.info() == nil {
		return nil
	}
	return &rowExactTypes[t]
}

// SupportsRows says whether there are row-exact kernels for this type with that many rows of weights for a threadgroup.
func (t WeightType) SupportsRows(rows int) bool {
	r := t.rowExact()
	return r != nil && rows >= 1 && rows <= r.most && rows&(rows-1) == 0
}

// RowExactSimdgroups is into how many simdgroups a row of k weights is split, of rows = Batch * N in all: a power of two or
// all that k gives work to. It depends on the weights alone, never on the vectors, which is what makes rows exact.
//
// A row is split until there are simdgroups enough to fill a GPU, into at most 4 from 256 rows on, since there the sum over simdgroups
// costs more than it brings, and at most into as many as have a full step for each thread. It is 0 for what is no type.
func RowExactSimdgroups(t WeightType, rows, k int) int {
	r := t.rowExact()
	if r == nil {
		return 0
	}
	most := 32
	if rows >= 256 {
		most = 4
	}
	most = min(most, max(k/(SIMDWidth*r.step), 1))
	n := max(r.target/max(rows, 1), 1)
	return min(1<<(bits.Len(uint(n))-1), most)
}

// RowExactAuto is the schedule for a shape as far as it does not depend on the device; see [RowExactFor].
func RowExactAuto(t WeightType, s RowExactShape) RowExactSchedule {
	r := t.rowExact()
	if r == nil {
		return RowExactSchedule{}
	}
	rows := maxDim // as good as more
	if s.N >= 0 && s.Batch >= 0 && (s.Batch == 0 || s.N <= maxDim/s.Batch) {
		rows = s.N * s.Batch
	}
	n := 1 << (bits.Len(uint(max(s.N, 1))) - 1)
	return RowExactSchedule{RowExactSimdgroups(t, rows, s.K), min(r.preferred, n)}
}

// RowExactFor is the schedule of [RowExactMatvec] on a device: that of RowExactAuto, with no more simdgroups than
// [RowExactLimit]. That limit depends on the device and the type alone, so that rows stay exact on one device.
func RowExactFor(rt *runtime.Runtime, t WeightType, s RowExactShape) (RowExactSchedule, error) {
	return rowExactFor("nn.RowExactFor", rt, t, &s)
}

func rowExactFor(fn string, rt *runtime.Runtime, t WeightType, s *RowExactShape) (RowExactSchedule, error) {
	limit, err := rowExactLimit(fn, rt, t)
	if err != nil {
		return RowExactSchedule{}, err
	}
	a := RowExactAuto(t, *s)
	a.Simdgroups = min(a.Simdgroups, limit)
	return a, nil
}

// RowExactLimit is how many simdgroups, as a power of two, every kernel for a type of weights takes on a device, whatever the
// number of vectors and of rows for a threadgroup. The kernels for many vectors use more registers, which on some devices limits
// the threads of a threadgroup. The first call makes the pipelines.
func RowExactLimit(rt *runtime.Runtime, t WeightType) (int, error) {
	return rowExactLimit("nn.RowExactLimit", rt, t)
}

func rowExactLimit(fn string, rt *runtime.Runtime, t WeightType) (int, error) {
	c := startOn(fn, rt)
	if c.err == nil && t.info() == nil {
		c.refuse("t", t.String(), "one of WeightTypes", runtime.ErrShape)
	}
	if c.err != nil {
		return 0, c.err
	}
	threads, err := rt.SetThreads(rowExactSets[t])
	if err != nil {
		return 0, err
	}
	return 1 << (bits.Len(uint(min(threads/SIMDWidth, 32))) - 1), nil
}

// rowExactNames are the kernels of each type: with 1, 2 and 4 rows for a threadgroup, and for 1 to 8 vectors.
var rowExactNames, rowExactSets = func() (names [len(rowExactTypes)][3][MaxRowExactVectors]string, sets [len(rowExactTypes)]*runtime.KernelSet) {
	for t := range rowExactTypes {
		var all []string
		for i := range 3 {
			if !WeightType(t).SupportsRows(1 << i) {
				continue
			}
			for m := range MaxRowExactVectors {
				names[t][i][m] = fmt.Sprintf("row_exact_mv_%s_f32_r%d_m%d", rowExactTypes[t].kernel, 1<<i, m+1)
			}
			all = append(all, names[t][i][:]...)
		}
		sets[t] = runtime.NewKernelSet(all...)
	}
	return names, sets
}()

// rowExactKernel is the kernel for a type, supported rows and 1 to 8 vectors.
func rowExactKernel(t WeightType, rows, m int) string {
	return rowExactNames[t][bits.TrailingZeros(uint(rows))][m-1]
}

// RowExactKernels are the names of the kernels of the row-exact products for a type of weights, none for what is no type.
func RowExactKernels(t WeightType) []string {
	if t.info() == nil {
		return nil
	}
	return slices.Clip(rowExactSets[t].Names())
}
