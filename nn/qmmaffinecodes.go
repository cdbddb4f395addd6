package nn

import (
	"fmt"
	"strconv"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// QMMAffineKernel is one of the kernels of [QMMAffineCodes].
type QMMAffineKernel uint8

// The kernels.
const (
	QMMAffineScalar    QMMAffineKernel = iota + 1 // a thread for each element; groups of any size
	QMMAffineTiled                                // tiles of 16 by 16 in threadgroup memory; groups of 32; the bits of QMMAffineScalar
	QMMAffineSimd                                 // tiles of 8 by 8 on a simdgroup matrix; groups of 32
	QMMAffineSimd4                                // tiles of 32 by 32, four simdgroups; groups of 32
	QMMAffineSimd4GS64                            // the same for groups of 64
)

// qmmAffineInfo is what there is to know of a kernel.
type qmmAffineInfo struct {
	kernel  string
	group   int // the group size, 0 for any
	tile    int // rows and columns of a tile, 0 for a thread for each element
	threads int // of a tile
	memory  int // threadgroup memory

	matrices bool // on simdgroup matrices
}

var qmmAffineInfos = [...]qmmAffineInfo{
	QMMAffineScalar:    {"qmm_affine_t_f32", 0, 0, 0, 0, false},
	QMMAffineTiled:     {"qmm_affine_t_f32_tiled", 32, 16, 256, 2688, false},
	QMMAffineSimd:      {"qmm_affine_t_f32_simd", 32, 8, 32, 2048, true},
	QMMAffineSimd4:     {"qmm_affine_t_f32_simd4", 32, 32, 128, 8192, true},
	QMMAffineSimd4GS64: {"qmm_affine_t_f32_simd4_gs64", 64, 32, 128, 16384, true},
}

// qmmAffinePacked is the kernel of QMMAffinePacked.
var qmmAffinePacked = qmmAffineInfo{"qmm_affine_t_packed_simd4_b4", 32, 32, 128, 8192, true}

// QMMAffineKernels are all kernels.
func QMMAffineKernels() []QMMAffineKernel {
	return []QMMAffineKernel{QMMAffineScalar, QMMAffineTiled, QMMAffineSimd, QMMAffineSimd4, QMMAffineSimd4GS64}
}

// info is nil for a number that is no kernel.
func (k QMMAffineKernel) info() *qmmAffineInfo {
	if k == 0 || int(k) >= len(qmmAffineInfos) {
		return nil
	}
	return &qmmAffineInfos[k]
}

// String is the kernel's name.
func (k QMMAffineKernel) String() string {
	if i := k.info(); i != nil {
		return i.kernel
	}
	return "QMMAffineKernel(" + strconv.Itoa(int(k)) + ")"
}

// GroupSize is the group size that the kernel takes, 0 for any.
func (k QMMAffineKernel) GroupSize() int {
	if i := k.info(); i != nil {
		return i.group
	}
	return 0
}

// Geometry is the kernel's launch for m vectors and that many rows of weights.
func (k QMMAffineKernel) Geometry(m, rows int) (groups, threads runtime.Size) {
	if i := k.info(); i != nil {
		return i.geometry(m, rows)
	}
	return runtime.Size{}, runtime.Size{}
}

func (i *qmmAffineInfo) geometry(m, rows int) (groups, threads runtime.Size) {
	switch i.tile {
	case 0:
		x, y := max(min(16, m), 1), max(min(16, rows), 1)
		return runtime.D2(ceilDiv(m, x), ceilDiv(rows, y)), runtime.D2(x, y)
	case 16:
		threads = runtime.D2(16, 16)
	default:
		threads = runtime.D1(i.threads)
	}
	return runtime.D2(ceilDiv(m, i.tile), ceilDiv(rows, i.tile)), threads
}

// QMMAffineCodes multiplies m vectors with a matrix whose codes are bytes, by a kernel of the caller's choice:
//
//	y[i, r] = sum over c of w[r, c] * x[i, c],  i < m, r < w.Rows(), c < w.Cols()
//
// Each weight is rounded to float32 once, sums are float32: in the order of the columns with QMMAffineScalar and QMMAffineTiled, whose
// bits are the same, and eight products at a time in that order with the others, whose bits are the same for the same group size.
// An element's bits depend neither on m, the rows and its place.
//
// Shapes: y [m, w.Rows()], x [m, w.Cols()]; longer slices are allowed. m == 0 is a no-op.
//
// Slots: 0 x, 1 codes, 2 scales, 3 biases, 4 y; 5 the parameters, 16 bytes: m, rows, columns, group size (uint32). Threadgroup
// memory 0, but for QMMAffineScalar.
//
// y must not overlap w or x. Deterministic on one device. Errors: ErrShape, also for a group size that the kernel is not built for;
// ErrLimit if the device has no simdgroup matrices and the kernel needs them; ErrForeign, ErrClosed, ErrOverlap.
func QMMAffineCodes(p *runtime.Pass, y runtime.Slice[float32], w AffineCodesBank, x runtime.Slice[float32], m int, kernel QMMAffineKernel) error {
	return qmmAffineF32(y, w.weights(), x, m).codes(start("nn.QMMAffineCodes", p), p, kernel, nil)
}

// UnsafeQMMAffineCodes is [QMMAffineCodes] with parameters, 5, in the caller's own storage: a block from runtime.NewScalarBlock that
// holds [QMMAffineParams].
//
// Unsafe: see the package documentation.
func UnsafeQMMAffineCodes(p *runtime.Pass, y runtime.Slice[float32], w AffineCodesBank, x runtime.Slice[float32], m int, kernel QMMAffineKernel,
	bind func(*runtime.ScalarBinder) error) error {
	return qmmAffineF32(y, w.weights(), x, m).codes(start("nn.UnsafeQMMAffineCodes", p), p, kernel, bind)
}

// ValidateQMMAffineCodes makes the checks of [QMMAffineCodes] without encoding anything.
func ValidateQMMAffineCodes(rt *runtime.Runtime, y runtime.Slice[float32], w AffineCodesBank, x runtime.Slice[float32], m int, kernel QMMAffineKernel) error {
	return qmmAffineF32(y, w.weights(), x, m).codes(startOn("nn.ValidateQMMAffineCodes", rt), nil, kernel, nil)
}

// QMMAffinePacked is [QMMAffineCodes] with QMMAffineSimd4, bit for bit, for a matrix of packed 4-bit codes in groups of 32 with scales
// and biases in float32. [QMMAffine] takes matrices of all formats.
//
// Slots: as there; 1 packed codes. Errors: as there; ErrShape for a bank of another format.
func QMMAffinePacked(p *runtime.Pass, y runtime.Slice[float32], w AffineBank, x runtime.Slice[float32], m int) error {
	return qmmAffineOf(y, w, x, m).packed(start("nn.QMMAffinePacked", p), p, nil)
}

// UnsafeQMMAffinePacked is [QMMAffinePacked] with parameters, 5, in the caller's own storage: a block from runtime.NewScalarBlock
// that holds [QMMAffineParams].
//
// Unsafe: see the package documentation.
func UnsafeQMMAffinePacked(p *runtime.Pass, y runtime.Slice[float32], w AffineBank, x runtime.Slice[float32], m int, bind func(*runtime.ScalarBinder) error) error {
	return qmmAffineOf(y, w, x, m).packed(start("nn.UnsafeQMMAffinePacked", p), p, bind)
}

// ValidateQMMAffinePacked makes the checks of [QMMAffinePacked] without encoding anything.
func ValidateQMMAffinePacked(rt *runtime.Runtime, y runtime.Slice[float32], w AffineBank, x runtime.Slice[float32], m int) error {
	return qmmAffineOf(y, w, x, m).packed(startOn("nn.ValidateQMMAffinePacked", rt), nil, nil)
}

func qmmAffineF32(y runtime.Slice[float32], w weights, x runtime.Slice[float32], m int) qmmAffine {
	return qmmAffine{names: &qmmAffineArgs, y: y.View(), x: x.View(), w: w, m: m}
}

func (q qmmAffine) codes(c check, p *runtime.Pass, kernel QMMAffineKernel, bind func(*runtime.ScalarBinder) error) error {
	info := kernel.info()
	if info == nil {
		c.refuse("kernel", kernel.String(), "one of QMMAffineKernels", runtime.ErrShape)
		return c.result()
	}
	if c.err == nil && q.w.rows != 0 && info.group != 0 && q.w.size != info.group {
		c.refuse("w", fmt.Sprintf("groups of %d", q.w.size), fmt.Sprintf("groups of %d for %v", info.group, kernel), runtime.ErrShape)
	}
	return q.launch(c, p, info, bind)
}

func (q qmmAffine) packed(c check, p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
	if want := (quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}); c.err == nil && q.w.rows != 0 && q.format != want {
		c.refuse("w", q.format.String(), want.String(), runtime.ErrShape)
	}
	return q.launch(c, p, &qmmAffinePacked, bind)
}

func (q qmmAffine) launch(c check, p *runtime.Pass, info *qmmAffineInfo, bind func(*runtime.ScalarBinder) error) error {
	if info.matrices {
		c.needsMatrices()
	}
	if !q.check(&c, 1) || p == nil { // without a pass it is a validation
		return c.result()
	}
	l := p.Kernel(info.kernel)
	q.bind(l)
	if info.memory != 0 {
		l.ThreadgroupMemory(0, info.memory)
	}
	l.Scalars(bind)
	return l.Dispatch(info.geometry(q.m, q.w.rows))
}
