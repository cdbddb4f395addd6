package nn

import (
	"fmt"
	"strconv"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// MaxQMMAffinePlaneVectors is the most vectors of a call of [QMMAffinePlane].
const MaxQMMAffinePlaneVectors = 32

// planeVectors is how many vectors a tile of QMMAffinePlane has.
const planeVectors = 8

// QMMAffinePlaneArgs are the operands of [QMMAffinePlane].
type QMMAffinePlaneArgs struct {
	Y runtime.Slice[float32] // [M, W.Rows()]
	W AffinePlaneBank
	X runtime.Slice[float32] // [M, W.Cols()]
	M int                    // up to MaxQMMAffinePlaneVectors

	// Scratch of the lengths of [QMMAffinePlaneScratch]. What it holds before does not matter, nor what it holds after.
	Table runtime.Slice[half.BFloat16]
	Sums  runtime.Slice[float32]
}

// QMMAffinePlaneScratch are the elements of Table and Sums for m vectors and a matrix of that many columns, 0 and 0 for what is no shape.
func QMMAffinePlaneScratch(m, cols int) (table, sums int) {
	if m < 1 || m > MaxQMMAffinePlaneVectors || cols < 1 || cols > maxDim || cols%quant.PlaneGroup != 0 {
		return 0, 0
	}
	rows := ceilDiv(m, planeVectors) * planeVectors
	return rows * cols, rows * (cols / quant.PlaneGroup)
}

// QMMAffinePlane multiplies up to 32 vectors, rounded to bfloat16, with a matrix of 4-bit codes in tiles of 64 rows:
//
//	y[i, r] = sum over c of w[r, c] * bf16(x[i, c]),  i < M, r < W.Rows(), c < W.Cols()
//
// in two launches: the first rounds the vectors, ties to even, and sums each group of 64; the second multiplies codes with them on
// simdgroup matrices, exactly, and adds up scale * sum(code * x) + bias * sum(x), group by group, in float32. Rounding the vectors is most of the
// error: up to 2^-9 of each product. Magnitudes beyond the largest bfloat16 become infinite.
//
// Shapes: as in [QMMAffinePlaneArgs]; longer slices are allowed. M == 0 is a no-op. An element's bits do not depend on M, the other
// vectors and its place.
//
// Slots: 0 X, 1 Table, 2 Sums, 3 the parameters; then 0 Table, 1 Sums, 2 plane, 3 metadata, 4 Y, 5 the parameters: M, rows, columns, 64
// (uint32, 16 bytes).
//
// Y, Table and Sums must not overlap each other, W or X. Deterministic on one device. Errors: ErrLimit for more than 32 vectors or a device
// without simdgroup matrices; ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func QMMAffinePlane(p *runtime.Pass, a QMMAffinePlaneArgs) error {
	return qmmAffinePlane(start("nn.QMMAffinePlane", p), p, &a, nil, nil)
}

// UnsafeQMMAffinePlane is [QMMAffinePlane] with the parameters of its kernels in the caller's own storage: blocks from
// runtime.NewScalarBlock that hold [QMMAffineParams]. prepare binds 3 and product 5; either may be nil.
//
// Unsafe: see the package documentation.
func UnsafeQMMAffinePlane(p *runtime.Pass, a QMMAffinePlaneArgs, prepare, product func(*runtime.ScalarBinder) error) error {
	return qmmAffinePlane(start("nn.UnsafeQMMAffinePlane", p), p, &a, prepare, product)
}

// ValidateQMMAffinePlane makes the checks of [QMMAffinePlane] without encoding anything.
func ValidateQMMAffinePlane(rt *runtime.Runtime, a QMMAffinePlaneArgs) error {
	return qmmAffinePlane(startOn("nn.ValidateQMMAffinePlane", rt), nil, &a, nil, nil)
}

func qmmAffinePlane(c check, p *runtime.Pass, a *QMMAffinePlaneArgs, prepare, product func(*runtime.ScalarBinder) error) error {
	q := qmmAffineF32(a.Y, a.W.weights(), a.X, a.M)
	q.names = &qmmAffineFields
	if c.err == nil && a.M > MaxQMMAffinePlaneVectors {
		c.refuse("M", strconv.Itoa(a.M), fmt.Sprintf("at most %d vectors", MaxQMMAffinePlaneVectors), runtime.ErrLimit)
	}
	c.needsMatrices()
	work := q.check(&c, 1)
	table, sums := QMMAffinePlaneScratch(a.M, a.W.cols)
	if c.err == nil && work {
		c.owned("Table", a.Table.View())
		c.owned("Sums", a.Sums.View())
		c.capacity("Table", a.Table.View(), table, 2, 2)
		c.capacity("Sums", a.Sums.View(), sums, 4, 4)
	}
	if c.err != nil || !work {
		return c.result()
	}
	s := planeLaunches{qmmAffine: q, table: first(a.Table.View(), table, 2), sums: first(a.Sums.View(), sums, 4)}
	c.disjoint(2, operand{"Table", s.table}, operand{"Sums", s.sums}, operand{"X", q.x}, operand{"Y", q.y})
	c.apart(operand{"Table", s.table}, "W", &q.w)
	c.apart(operand{"Sums", s.sums}, "W", &q.w)
	if c.err != nil || p == nil { // without a pass it is a validation
		return c.result()
	}
	tiles := ceilDiv(a.M, planeVectors)
	first := grid{runtime.D2(q.w.cols/quant.PlaneGroup, tiles), runtime.D1(256)}
	second := grid{runtime.D2(q.w.rows/quant.PlaneRows, tiles), runtime.D1(128)}
	const prepareKernel, kernel = "qmm_affine_t_packed_simd4_b4_gs64_bf16_prepare", "qmm_affine_t_packed_simd4_b4_gs64_bf16"
	if prepare != nil || product != nil {
		return dispatchAll(prepared{s.prepare(p.NewLaunch(prepareKernel), prepare), first}, prepared{s.product(p.NewLaunch(kernel), product), second})
	}
	// What is wrong with the second launch must show before the first one is in the pass.
	if err := s.product(p.Kernel(kernel), nil).Check(second.groups, second.threads); err != nil {
		return err
	}
	if err := (prepared{s.prepare(p.Kernel(prepareKernel), nil), first}).dispatch(); err != nil {
		return err
	}
	return prepared{s.product(p.Kernel(kernel), nil), second}.dispatch()
}

// planeLaunches is a product that was checked.
type planeLaunches struct {
	qmmAffine
	table, sums runtime.View
}

func (s *planeLaunches) prepare(l *runtime.Launch, bind func(*runtime.ScalarBinder) error) *runtime.Launch {
	params := QMMAffineParams(s.m, s.w.rows, s.w.cols, s.w.size)
	l.Read(0, s.x)
	l.Write(1, s.table)
	l.Write(2, s.sums)
	l.Params(3, params[:])
	l.Scalars(bind)
	return l
}

func (s *planeLaunches) product(l *runtime.Launch, bind func(*runtime.ScalarBinder) error) *runtime.Launch {
	params := QMMAffineParams(s.m, s.w.rows, s.w.cols, s.w.size)
	l.Read(0, s.table)
	l.Read(1, s.sums)
	s.w.bind(l, 2)
	l.Write(4, s.y)
	l.Params(5, params[:])
	l.Scalars(bind)
	return l
}
