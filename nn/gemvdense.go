package nn

import "github.com/ingot-metal/ingot/runtime"

// GEMVDims are the shape of a product of a dense matrix with a vector: y [Rows] = w [Rows, Cols] x [Cols].
type GEMVDims struct {
	Rows, Cols int

	// Trans says that w is stored transposed, [Cols, Rows].
	Trans bool

	// Batch is the number of products; 0 counts as 1. The strides are elements from one matrix or vector to the next: 0 uses
	// the same w or x for all, and StrideY is at least Rows. They mean nothing for a single product.
	Batch                     int
	StrideW, StrideX, StrideY int
}

// GEMV multiplies a dense matrix with a vector:
//
//	y[i, r] = sum over c of w[i, r, c] * x[i, c],  i < d.Batch, r < d.Rows, c < d.Cols
//
// Sums are float32 whatever the elements are; the result is rounded to O once, ties to even, and beyond its largest finite
// number it is infinite. Without Cols the sums are zeros. [GEMM] is for several vectors: it adds in another order, so that
// bits may differ.
//
// Shapes: y [d.Rows], w [d.Rows, d.Cols] or transposed, x [d.Cols], and d.Batch of them in their strides; longer slices are
// allowed, and what lies between the results stays. No start or size need be a multiple of anything, but rows of w and vectors
// of four elements that start at multiples of four are read faster. Rows == 0 is a no-op.
//
// Slots: 0 x, 1 w, 2 y, 8 bias, 11 C; scalars 4 Rows, 5 Cols, 6 StrideX, 7 StrideW (uint32), 9 Alpha, 10 Beta (float32),
// 12 StrideC, 13 StrideY (uint32).
//
// y must not overlap w or x. Deterministic on one device. A row's result does not depend on the other rows, the batch and
// alignment; one from a transposed matrix may have other bits.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap; ErrLimit if the device allows fewer than GEMVThreads threads.
func GEMV[O, T Float](p *runtime.Pass, y runtime.Slice[O], w, x runtime.Slice[T], d GEMVDims) error {
	g := gemvOf(y, w, x, d)
	return g.gemv("nn.GEMV", p, nil)
}

// UnsafeGEMV is [GEMV] with its scalars in the caller's own storage: all of them, those of the epilogue included, with Alpha
// 1, Beta 0 and StrideC 0.
//
// Unsafe: see the package documentation.
func UnsafeGEMV[O, T Float](p *runtime.Pass, y runtime.Slice[O], w, x runtime.Slice[T], d GEMVDims, bind func(*runtime.ScalarBinder) error) error {
	g := gemvOf(y, w, x, d)
	return g.gemv("nn.UnsafeGEMV", p, bind)
}

// ValidateGEMV makes the checks of [GEMV] without encoding anything.
func ValidateGEMV[O, T Float](rt *runtime.Runtime, y runtime.Slice[O], w, x runtime.Slice[T], d GEMVDims) error {
	g := gemvOf(y, w, x, d)
	c := startOn("nn.ValidateGEMV", rt)
	g.check(&c)
	return c.result()
}

// GEMVEpilogue is [GEMV] with what follows the product in the same launch:
//
//	y[i, r] = Act(Alpha * sum over c of w[i, r, c] * x[i, c] + Beta * C[i, r] + Bias[r])
//
// with the fields of e, in float32, rounded to O at the end. C [d.Rows] has the shape of y, and the bias an element for each
// row.
//
// y must not overlap w, x or the bias. It may be exactly e.C; otherwise it must not overlap it. Slots, shapes and
// determinism are those of GEMV. Errors: those of GEMV, and ErrScalar if Alpha or Beta is not finite or Act is none of the
// activations.
func GEMVEpilogue[O, T Float](p *runtime.Pass, y runtime.Slice[O], w, x runtime.Slice[T], d GEMVDims, e Epilogue[O]) error {
	g := gemvOf(y, w, x, d)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	return g.gemv("nn.GEMVEpilogue", p, nil)
}

// UnsafeGEMVEpilogue is [GEMVEpilogue] with its scalars in the caller's own storage. Whether C is read stays as it is when
// the call is made: a Beta that is 0 then leaves C out whatever is set later.
//
// Unsafe: see the package documentation.
func UnsafeGEMVEpilogue[O, T Float](p *runtime.Pass, y runtime.Slice[O], w, x runtime.Slice[T], d GEMVDims, e Epilogue[O],
	bind func(*runtime.ScalarBinder) error) error {
	g := gemvOf(y, w, x, d)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	return g.gemv("nn.UnsafeGEMVEpilogue", p, bind)
}

// ValidateGEMVEpilogue makes the checks of [GEMVEpilogue] without encoding anything.
func ValidateGEMVEpilogue[O, T Float](rt *runtime.Runtime, y runtime.Slice[O], w, x runtime.Slice[T], d GEMVDims, e Epilogue[O]) error {
	g := gemvOf(y, w, x, d)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	c := startOn("nn.ValidateGEMVEpilogue", rt)
	g.check(&c)
	return c.result()
}

// gemvOf is the product as one of matrices: x [1, Cols] times w, which is stored transposed unless it is a transposed matrix.
func gemvOf[O, T Float](y runtime.Slice[O], w, x runtime.Slice[T], d GEMVDims) dense {
	return dense{names: &gemvNames, out: y.View(), a: x.View(), b: w.View(), kind: elementKind[T](), weight: denseType[T](), outKind: elementKind[O](),
		transB: !d.Trans, m: 1, n: d.Rows, k: d.Cols, batch: d.Batch, strideA: d.StrideX, strideB: d.StrideW, strideOut: d.StrideY, alpha: 1}
}

func (d *dense) gemv(fn string, p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	if !d.check(&c) {
		return c.result()
	}
	trans := !d.transB
	groups, threads := GEMVGeometry(trans, d.batch, d.n)
	if trans {
		l := d.launch(p, gemvDenseKernels[d.kind][1], constantsOfGEMVTrans)
		d.strides(l)
		l.Scalars(bind)
		return dispatchSimdgroups(l, groups, threads.X)
	}
	l := d.launch(p, gemvDenseKernels[d.kind][0], constantsOfGEMV)
	d.strides(l)
	l.Scalars(bind)
	return l.Dispatch(groups, threads)
}

// gemvDenseKernels are the kernels by the kind of elements, that for transposed matrices last.
var gemvDenseKernels = [...][2]string{
	{"gemv_dense_f32", "gemv_dense_t_f32"},
	{"gemv_dense_f16", "gemv_dense_t_f16"},
	{"gemv_dense_bf16", "gemv_dense_t_bf16"},
}
