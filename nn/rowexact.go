package nn

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
)

// RowExactMatvec multiplies matrices with up to 16 vectors each, of which every one gives bit for bit the same result as it
// does alone:
//
//	y[b, j, r] = sum over c of W[b, r, c] * x[b, j, c],  b < s.Batch, j < s.M, r < s.N, c < s.K
//
// W[b, r] is row b * s.N + r of w, each weight the float32 number that its format defines ([quant.BlockFormat.Decode]); strides
// are in [RowExactShape]. The weights are read once for up to eight vectors, and twice for more.
//
// Exactness: the bits of y[b, j, r] depend on row b * s.N + r of w, on x[b, j], on K and on the number of simdgroups only, and that
// number, [RowExactFor], depends on the type of w, on N * Batch, on K and on the device. So a vector gives the same alone, among any
// others, at any place, in any shape of strides, in every run, encoded directly or replayed. Each thread adds its products up by
// fma, in a fixed order, and simd_sum adds up the threads.
//
// Shapes: w has s.K columns and at least s.Batch * s.N rows. K is a multiple of 4 for plain numbers, else of the format's block. x and
// y hold what the strides reach. x starts at a multiple of 16 bytes, and a bank of plain numbers at a multiple of four of them. M, N, K
// and Batch are at least 1: a product of no vectors is refused.
//
// Slots: 0 w, 1 x, 2 y; 3 the parameters, 48 bytes: k, n, the four strides in the order of RowExactShape, ceil(n / rows of a threadgroup), 0
// (uint32), bytes from one row of w to the next and from one batch to the next (uint64). Threadgroup memory 0.
//
// No two outputs may overlap: either the vectors of a batch or the batches of a vector lie apart. y must not overlap w or x, from the first
// element that is used to the last. What lies between rows of y is not written. Errors: ErrShape, ErrLimit (M beyond 16; y
// reaches 2^32 elements within a batch; more threadgroups than a launch has), ErrForeign, ErrClosed, ErrOverlap.
func RowExactMatvec[W WeightBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[float32], s RowExactShape) error {
	return rowExactMatvec("nn.RowExactMatvec", p, y, w.weights(), w.Type(), x, &s, nil, nil, MaxRowExactRows)
}

// UnsafeRowExactMatvec is [RowExactMatvec] for up to eight vectors with parameters, 3, in the caller's own storage: a block from
// runtime.NewScalarBlock that holds [RowExactParams] of [RowExactFor].
//
// Unsafe: see the package documentation. Strides reach only as far as memory does.
func UnsafeRowExactMatvec[W WeightBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[float32], s RowExactShape,
	bind func(*runtime.ScalarBinder) error) error {
	return rowExactMatvec("nn.UnsafeRowExactMatvec", p, y, w.weights(), w.Type(), x, &s, nil, bind, MaxRowExactVectors)
}

// ValidateRowExactMatvec makes the checks of [RowExactMatvec] without encoding anything, but for those of the number of
// threadgroups that the device takes.
func ValidateRowExactMatvec[W WeightBank](rt *runtime.Runtime, y runtime.Slice[float32], w W, x runtime.Slice[float32], s RowExactShape) error {
	c := startOn("nn.ValidateRowExactMatvec", rt)
	views := w.weights()
	rowExact(&c, y, &views, w.Type(), x, &s, nil, MaxRowExactRows)
	return c.result()
}

// RowExactMatvecScheduled is [RowExactMatvec] with a schedule of the caller's. Rows are the same bits between calls with the same number
// of simdgroups only.
//
// Errors: as there; ErrShape for a schedule that is none; ErrLimit if a kernel takes fewer threads on this device.
func RowExactMatvecScheduled[W WeightBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[float32], s RowExactShape, how RowExactSchedule) error {
	return rowExactMatvec("nn.RowExactMatvecScheduled", p, y, w.weights(), w.Type(), x, &s, &how, nil, MaxRowExactRows)
}

// UnsafeRowExactMatvecScheduled is [RowExactMatvecScheduled] for up to eight vectors with parameters, 3, in the caller's own
// storage: a block from runtime.NewScalarBlock that holds [RowExactParams].
//
// Unsafe: see the package documentation. Strides reach only as far as memory does.
func UnsafeRowExactMatvecScheduled[W WeightBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[float32], s RowExactShape,
	how RowExactSchedule, bind func(*runtime.ScalarBinder) error) error {
	return rowExactMatvec("nn.UnsafeRowExactMatvecScheduled", p, y, w.weights(), w.Type(), x, &s, &how, bind, MaxRowExactVectors)
}

// ValidateRowExactMatvecScheduled makes the checks of [RowExactMatvecScheduled] without encoding anything, but for those of the
// number of threadgroups and threads that the device takes.
func ValidateRowExactMatvecScheduled[W WeightBank](rt *runtime.Runtime, y runtime.Slice[float32], w W, x runtime.Slice[float32], s RowExactShape, how RowExactSchedule) error {
	c := startOn("nn.ValidateRowExactMatvecScheduled", rt)
	views := w.weights()
	rowExact(&c, y, &views, w.Type(), x, &s, &how, MaxRowExactRows)
	return c.result()
}

// RowExactParamsSize is the length of the parameters of the row-exact kernels.
const RowExactParamsSize = 48

// RowExactParams are the parameters, slot 3, of a row-exact product: what [RowExactMatvec] binds for a shape that it takes, with
// rows of weights for each threadgroup.
func RowExactParams(t WeightType, s RowExactShape, rows int) (b [RowExactParamsSize]byte) {
	if rows < 1 || s.N < 0 {
		return b
	}
	row := t.RowBytes(s.K)
	for i, v := range [...]int{s.K, s.N, s.XRowStride, s.XBatchStride, s.YRowStride, s.YBatchStride, ceilDiv(s.N, rows), 0} {
		binary.NativeEndian.PutUint32(b[4*i:], uint32(v))
	}
	binary.NativeEndian.PutUint64(b[32:], uint64(row))
	binary.NativeEndian.PutUint64(b[40:], uint64(row)*uint64(s.N))
	return b
}

// maxStride bounds strides, which the kernels read as 32-bit numbers and widen.
const maxStride = math.MaxUint32

// rowExactViews are the operands of a product that was checked, cut to what it uses.
type rowExactViews struct{ w, x, y runtime.View }

// rowExact makes all checks but those of the device. how is nil for the product's own schedule.
func rowExact(c *check, y runtime.Slice[float32], w *weights, t WeightType, x runtime.Slice[float32], s *RowExactShape, how *RowExactSchedule, most int) (v rowExactViews) {
	c.dim("M", s.M, 1)
	if c.err == nil && s.M > most {
		c.refuse("M", strconv.Itoa(s.M), fmt.Sprintf("at most %d vectors", most), runtime.ErrLimit)
	}
	c.dim("N", s.N, 1)
	c.dim("K", s.K, 1)
	c.dim("Batch", s.Batch, 1)
	c.stride("XRowStride", s.XRowStride)
	c.stride("XBatchStride", s.XBatchStride)
	c.stride("YRowStride", s.YRowStride)
	c.stride("YBatchStride", s.YBatchStride)
	c.weights("w", w)
	if c.err != nil {
		return v
	}
	r := t.rowExact()
	if how != nil {
		c.schedule(t, how)
	}
	if c.err == nil && s.K%r.multiple != 0 {
		c.refuse("K", strconv.Itoa(s.K), fmt.Sprintf("a multiple of %d for %v", r.multiple, t), runtime.ErrShape)
	}
	if c.err == nil && s.XRowStride%4 != 0 {
		c.refuse("XRowStride", strconv.Itoa(s.XRowStride), "a multiple of 4", runtime.ErrShape)
	}
	if c.err == nil && s.XBatchStride%4 != 0 {
		c.refuse("XBatchStride", strconv.Itoa(s.XBatchStride), "a multiple of 4", runtime.ErrShape)
	}
	if c.err == nil && !s.outputsApart() {
		c.refuse("YRowStride, YBatchStride", fmt.Sprintf("%d and %d", s.YRowStride, s.YBatchStride),
			fmt.Sprintf("strides that keep %d * %d rows of %d outputs apart", s.Batch, s.M, s.N), runtime.ErrShape)
	}
	if c.err == nil && uint64(s.M-1)*uint64(s.YRowStride)+uint64(s.N) > maxStride {
		c.refuse("YRowStride", strconv.Itoa(s.YRowStride), "outputs of a batch within 2^32-1 elements", runtime.ErrLimit)
	}
	if c.err == nil && w.cols != s.K {
		c.refuse("w", fmt.Sprintf("%d columns", w.cols), fmt.Sprintf("K, %d", s.K), runtime.ErrShape)
	}
	rows := c.product("N * Batch", maxDim, s.N, s.Batch)
	if c.err == nil && w.rows < rows {
		c.refuse("w", fmt.Sprintf("%d rows", w.rows), fmt.Sprintf("at least N * Batch, %d", rows), runtime.ErrShape)
	}
	c.weightsOwned("w", w)
	c.owned("x", x.View())
	c.owned("y", y.View())
	if c.err != nil {
		return v
	}
	size := rows * t.RowBytes(s.K)
	c.capacity("w", w.parts[0], size, 1, r.align)
	nx := c.reach("x", x.View(), s.Batch, s.XBatchStride, s.M, s.XRowStride, s.K, 16)
	ny := c.reach("y", y.View(), s.Batch, s.YBatchStride, s.M, s.YRowStride, s.N, 4)
	if c.err != nil {
		return v
	}
	v = rowExactViews{first(w.parts[0], size, 1), first(x.View(), nx, 4), first(y.View(), ny, 4)}
	c.disjoint(1, operand{"y", v.y}, operand{"w", v.w}, operand{"x", v.x})
	return v
}

func (c *check) stride(arg string, v int) {
	if c.err == nil && (v < 0 || uint64(v) > maxStride) {
		c.refuse(arg, strconv.Itoa(v), fmt.Sprintf("0 to %d", uint32(maxStride)), runtime.ErrShape)
	}
}

func (c *check) schedule(t WeightType, how *RowExactSchedule) {
	if c.err == nil && (how.Simdgroups < 1 || how.Simdgroups > 32) {
		c.refuse("Simdgroups", strconv.Itoa(how.Simdgroups), "1 to 32", runtime.ErrShape)
	}
	if c.err == nil && !t.SupportsRows(how.Rows) {
		c.refuse("Rows", strconv.Itoa(how.Rows), fmt.Sprintf("1 or another power of two up to %d for %v", t.rowExact().most, t), runtime.ErrShape)
	}
}

// outputsApart says whether rows of N outputs lie apart: the batches within a vector, or the vectors within a batch. N, M and Batch
// are at least 1.
func (s *RowExactShape) outputsApart() bool {
	inner, outer := uint64(s.YRowStride), uint64(s.YBatchStride)
	inners, outers := uint64(s.M), uint64(s.Batch)
	if outers > 1 && (inners == 1 || inner >= outer) {
		inner, outer, inners, outers = outer, inner, outers, inners
	}
	n := uint64(s.N)
	return (inners == 1 || inner >= n) && (outers == 1 || outer >= (inners-1)*inner+n)
}

// reach is the number of elements from the first to the last of batches of rows. It cannot overflow with strides and dimensions
// that were checked.
func reach(batch, batchStride, rows, rowStride, n int) uint64 {
	return uint64(batch-1)*uint64(batchStride) + uint64(rows-1)*uint64(rowStride) + uint64(n)
}

// part is the memory from element `from` on that batches of rows reach.
func part(v runtime.View, from, batch, batchStride, rows, rowStride, n int) runtime.View {
	return v.Bytes(4*from, 4*(from+int(reach(batch, batchStride, rows, rowStride, n))))
}

// reach refuses memory that batches of rows lead out of, or that does not start at a multiple of align bytes.
func (c *check) reach(arg string, v runtime.View, batch, batchStride, rows, rowStride, n, align int) int {
	need := reach(batch, batchStride, rows, rowStride, n)
	if c.err == nil && uint64(v.Len()/4) < need {
		c.refuse(arg, fmt.Sprintf("%d elements", v.Len()/4), fmt.Sprintf("at least %d", need), runtime.ErrShape)
	}
	if c.err != nil {
		return 0
	}
	c.capacity(arg, v, int(need), 4, align)
	return int(need)
}

func rowExactMatvec(fn string, p *runtime.Pass, y runtime.Slice[float32], w weights, t WeightType, x runtime.Slice[float32], s *RowExactShape,
	how *RowExactSchedule, bind func(*runtime.ScalarBinder) error, most int) error {
	c := start(fn, p)
	v := rowExact(&c, y, &w, t, x, s, how, most)
	if c.err != nil {
		return c.result()
	}
	if how == nil {
		auto, err := rowExactFor(fn, p.Runtime(), t, s)
		if err != nil {
			return err
		}
		how = &auto
	}
	r := rowExactLaunches{views: v, t: t, s: *s, rows: how.Rows, params: RowExactParams(t, *s, how.Rows)}
	groups, threads := runtime.D1(ceilDiv(s.N, how.Rows)*s.Batch), runtime.D1(how.Simdgroups*SIMDWidth)
	m := s.M
	if m > MaxRowExactVectors {
		// Two launches share the vectors. The second must not be refused when the first is in the pass.
		m = ceilDiv(m, 2)
		if err := r.launch(p, m, s.M-m, nil).Check(groups, threads); err != nil {
			return err
		}
	}
	if err := r.launch(p, 0, m, bind).Dispatch(groups, threads); err != nil || m == s.M {
		return err
	}
	return r.launch(p, m, s.M-m, nil).Dispatch(groups, threads)
}

// rowExactLaunches is a product that was checked.
type rowExactLaunches struct {
	views  rowExactViews
	t      WeightType
	s      RowExactShape
	rows   int
	params [RowExactParamsSize]byte
}

// launch prepares the launch for m vectors from one on.
func (r *rowExactLaunches) launch(p *runtime.Pass, from, m int, bind func(*runtime.ScalarBinder) error) *runtime.Launch {
	s := &r.s
	l := p.Kernel(rowExactKernel(r.t, r.rows, m))
	l.Read(0, r.views.w)
	l.Read(1, part(r.views.x, from*s.XRowStride, s.Batch, s.XBatchStride, m, s.XRowStride, s.K))
	l.Write(2, part(r.views.y, from*s.YRowStride, s.Batch, s.YBatchStride, m, s.YRowStride, s.N))
	l.Params(3, r.params[:])
	l.ThreadgroupMemory(0, r.rows*m*32*4)
	l.Scalars(bind)
	return l
}
