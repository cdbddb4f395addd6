package nn

import (
	"encoding/binary"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// QMMAffine multiplies m vectors with a matrix in MLX's affine format:
//
//	y[i, r] = sum over c of w[r, c] * x[i, c],  i < m, r < w.Rows(), c < w.Cols()
//
// x and y are float32, float16 or bfloat16, by their types. Sums are float32; the result is rounded to O once, ties to even, and beyond
// its largest finite number it is infinite.
//
// Exactness: up to [MaxQMMAffineVectors] vectors are multiplied by kernels that take one to eight at once and give each, bit for bit, what
// it gives alone: a group contributes scale * sum(code * x) + bias * sum(x). More of them go through tiles on simdgroup matrices, for which each weight
// is dequantised once and rounded to float32; there the bits of a vector's results do not depend on m, the other vectors or their places
// either, but they are other bits than those of few vectors. A device without simdgroup matrices has the former kernels for any m.
// [QMMAffineRouteFor] says which kernels a call launches.
//
// Shapes: y [m, w.Rows()], x [m, w.Cols()]; longer slices are allowed. x starts at a multiple of four of its elements. m == 0 is a
// no-op.
//
// Slots: 0 x, 1 codes, 2 scales, 3 biases, 4 y; 5 the parameters, 16 bytes: m, rows, columns, group size (uint32).
//
// y must not overlap w or x. Deterministic on one device. Errors: ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap.
//
// Source: qmv_fast and qmm_t of MLX (mlx/backend/metal/kernels/quantized.h).
func QMMAffine[O, T Float](p *runtime.Pass, y runtime.Slice[O], w AffineBank, x runtime.Slice[T], m int) error {
	return qmmAffineOf(y, w, x, m).bank(start("nn.QMMAffine", p), p, nil)
}

// UnsafeQMMAffine is [QMMAffine] with parameters, 5, in the caller's own storage: a block from runtime.NewScalarBlock that holds
// [QMMAffineParams].
//
// Unsafe: see the package documentation.
func UnsafeQMMAffine[O, T Float](p *runtime.Pass, y runtime.Slice[O], w AffineBank, x runtime.Slice[T], m int, bind func(*runtime.ScalarBinder) error) error {
	return qmmAffineOf(y, w, x, m).bank(start("nn.UnsafeQMMAffine", p), p, bind)
}

// ValidateQMMAffine makes the checks of [QMMAffine] without encoding anything.
func ValidateQMMAffine[O, T Float](rt *runtime.Runtime, y runtime.Slice[O], w AffineBank, x runtime.Slice[T], m int) error {
	return qmmAffineOf(y, w, x, m).bank(startOn("nn.ValidateQMMAffine", rt), nil, nil)
}

// QMMAffineParamsSize is the length of the parameters of the affine products.
const QMMAffineParamsSize = 16

// QMMAffineParams are the parameters of the affine products, slot 5, and slot 3 of the first kernel of [QMMAffinePlane].
func QMMAffineParams(m, rows, cols, groupSize int) (b [QMMAffineParamsSize]byte) {
	for i, v := range [...]int{m, rows, cols, groupSize} {
		binary.NativeEndian.PutUint32(b[4*i:], uint32(v))
	}
	return b
}

// qmmAffine is a product with an affine matrix of any layout.
type qmmAffine struct {
	names        *qmmAffineNames
	y, x         runtime.View
	yKind, xKind int // see elementKind
	w            weights
	format       quant.AffineFormat // of an AffineBank
	m            int
}

func qmmAffineOf[O, T Float](y runtime.Slice[O], w AffineBank, x runtime.Slice[T], m int) qmmAffine {
	return qmmAffine{&qmmAffineArgs, y.View(), x.View(), elementKind[O](), elementKind[T](), w.weights(), w.format, m}
}

// qmmAffineNames are what errors call the arguments.
type qmmAffineNames struct{ y, w, x, m, sizeX, sizeY string }

var (
	qmmAffineArgs   = qmmAffineNames{"y", "w", "x", "m", "m * columns", "m * rows"}
	qmmAffineFields = qmmAffineNames{"Y", "W", "X", "M", "M * columns", "M * rows"} // of QMMAffinePlaneArgs
)

// check validates the product, cuts its views to what a kernel touches, and says whether there is anything to do. x starts at a
// multiple of align of its elements.
func (q *qmmAffine) check(c *check, align int) (work bool) {
	n := q.names
	c.dim(n.m, q.m, 0)
	c.weights(n.w, &q.w)
	nx, ny := c.elements(n.sizeX, q.m, q.w.cols), c.elements(n.sizeY, q.m, q.w.rows)
	c.weightsOwned(n.w, &q.w)
	c.owned(n.x, q.x)
	c.owned(n.y, q.y)
	xSize, ySize := kindSize(q.xKind), kindSize(q.yKind)
	c.capacity(n.x, q.x, nx, xSize, align*xSize)
	c.capacity(n.y, q.y, ny, ySize, ySize)
	if c.err != nil || q.m == 0 {
		return false
	}
	q.x, q.y = first(q.x, nx, xSize), first(q.y, ny, ySize)
	c.apart(operand{n.y, q.y}, n.w, &q.w)
	c.disjoint(1, operand{n.y, q.y}, operand{n.x, q.x})
	return c.err == nil
}

// The function constants of affine.h.
const (
	constAffineX = 400 + iota
	constAffineY
	constAffineScale
)

// scaleKind is the kind of a type of scales.
func scaleKind(t quant.ScaleType) uint32 {
	return [...]uint32{quant.ScaleF32: kindFloat32, quant.ScaleF16: kindFloat16, quant.ScaleBF16: kindBFloat16}[t]
}

func (q qmmAffine) bank(c check, p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
	if !q.check(&c, 4) || p == nil { // without a pass it is a validation
		return c.result()
	}
	route := QMMAffineRouteFor(q.m, p.Runtime().Device().SIMDMatrix)
	l := p.Kernel(route.Kernel(q.format.Bits))
	l.ConstantUint32(constAffineX, uint32(q.xKind))
	l.ConstantUint32(constAffineY, uint32(q.yKind))
	l.ConstantUint32(constAffineScale, scaleKind(q.format.Scale))
	q.bind(l)
	l.Scalars(bind)
	return l.Dispatch(route.Geometry(q.m, q.w.rows))
}

// bind gives the operands to a launch.
func (q *qmmAffine) bind(l *runtime.Launch) {
	params := QMMAffineParams(q.m, q.w.rows, q.w.cols, q.w.size)
	l.Read(0, q.x)
	q.w.bind(l, 1)
	l.Write(4, q.y)
	l.Params(5, params[:])
}
