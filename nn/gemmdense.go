package nn

import (
	"fmt"
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
)

// GEMMDims are the shape of a product of dense matrices: out [M, N] = a [M, K] b [K, N].
type GEMMDims struct {
	M, N, K int

	// TransA says that a is stored transposed, [K, M], and TransB that b is, [N, K], as weights mostly are.
	TransA, TransB bool

	// Batch is the number of products; 0 counts as 1. The strides are elements from one matrix to the next: 0 uses the same a or
	// b for all, and StrideOut is at least M * N. They mean nothing for a single product.
	Batch                       int
	StrideA, StrideB, StrideOut int

	// Tile chooses another tile than GEMMTileFor does: GEMMSmallTile or GEMMLargeTile, 0 for that one.
	Tile int
}

// GEMM multiplies dense matrices:
//
//	out[i, m, n] = sum over k of a[i, m, k] * b[i, k, n],  i < d.Batch, m < d.M, n < d.N, k < d.K
//
// on simdgroup matrices. Sums are float32 whatever the elements are, whose products they hold exactly if those are float16
// or bfloat16. The result is rounded to O once, ties to even; beyond its largest finite number it is infinite. Without K the
// sums are zeros.
//
// Shapes: out [d.M, d.N], a [d.M, d.K] or transposed, b [d.K, d.N] or transposed, each row-major, and d.Batch of them in
// their strides; longer slices are allowed, and what lies between the results stays. No start or size need be a multiple of
// anything, but rows of four elements that start at multiples of four are read faster. M == 0 or N == 0 is a no-op.
//
// Slots: 0 a, 1 b, 2 out, 8 bias, 11 C; scalars 3 M, 4 N, 5 K, 6 StrideA, 7 StrideB (uint32), 9 Alpha, 10 Beta (float32),
// 12 StrideC, 13 StrideOut (uint32).
//
// out must not overlap a or b. Deterministic on one device. An element depends on its row of a and its column of b alone:
// M, N, the batch, the tile, alignment and whether an operand is stored transposed do not change its bits.
// Errors: ErrLimit if the device has no simdgroup matrices, which is so before Apple family 7 (there [GEMV] multiplies with a
// batch of rows of a), or allows fewer threads than the tile takes; ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMM[O, T Float](p *runtime.Pass, out runtime.Slice[O], a, b runtime.Slice[T], d GEMMDims) error {
	g := gemmOf(out, a, b, d)
	return g.gemm("nn.GEMM", p, nil)
}

// UnsafeGEMM is [GEMM] with its scalars in the caller's own storage: all of them, those of the epilogue included, with Alpha
// 1, Beta 0 and StrideC 0.
//
// Unsafe: see the package documentation.
func UnsafeGEMM[O, T Float](p *runtime.Pass, out runtime.Slice[O], a, b runtime.Slice[T], d GEMMDims, bind func(*runtime.ScalarBinder) error) error {
	g := gemmOf(out, a, b, d)
	return g.gemm("nn.UnsafeGEMM", p, bind)
}

// ValidateGEMM makes the checks of [GEMM] without encoding anything.
func ValidateGEMM[O, T Float](rt *runtime.Runtime, out runtime.Slice[O], a, b runtime.Slice[T], d GEMMDims) error {
	g := gemmOf(out, a, b, d)
	c := startOn("nn.ValidateGEMM", rt)
	g.checkGEMM(&c)
	return c.result()
}

// GEMMEpilogue is [GEMM] with what follows the product in the same launch:
//
//	out[i, m, n] = Act(Alpha * sum over k of a[i, m, k] * b[i, k, n] + Beta * C[i, m, n] + Bias[n])
//
// with the fields of e, in float32, rounded to O at the end.
//
// out must not overlap a, b or the bias. It may be exactly e.C; otherwise it must not overlap it. Slots, shapes and
// determinism are those of GEMM. Errors: those of GEMM, and ErrScalar if Alpha or Beta is not finite or Act is none of the
// activations.
func GEMMEpilogue[O, T Float](p *runtime.Pass, out runtime.Slice[O], a, b runtime.Slice[T], d GEMMDims, e Epilogue[O]) error {
	g := gemmOf(out, a, b, d)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	return g.gemm("nn.GEMMEpilogue", p, nil)
}

// UnsafeGEMMEpilogue is [GEMMEpilogue] with its scalars in the caller's own storage. Whether C is read stays as it is when
// the call is made: a Beta that is 0 then leaves C out whatever is set later.
//
// Unsafe: see the package documentation.
func UnsafeGEMMEpilogue[O, T Float](p *runtime.Pass, out runtime.Slice[O], a, b runtime.Slice[T], d GEMMDims, e Epilogue[O],
	bind func(*runtime.ScalarBinder) error) error {
	g := gemmOf(out, a, b, d)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	return g.gemm("nn.UnsafeGEMMEpilogue", p, bind)
}

// ValidateGEMMEpilogue makes the checks of [GEMMEpilogue] without encoding anything.
func ValidateGEMMEpilogue[O, T Float](rt *runtime.Runtime, out runtime.Slice[O], a, b runtime.Slice[T], d GEMMDims, e Epilogue[O]) error {
	g := gemmOf(out, a, b, d)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	c := startOn("nn.ValidateGEMMEpilogue", rt)
	g.checkGEMM(&c)
	return c.result()
}

func gemmOf[O, T Float](out runtime.Slice[O], a, b runtime.Slice[T], d GEMMDims) dense {
	return dense{names: &gemmNames, out: out.View(), a: a.View(), b: b.View(), kind: elementKind[T](), weight: denseType[T](), outKind: elementKind[O](),
		transA: d.TransA, transB: d.TransB, m: d.M, n: d.N, k: d.K, batch: d.Batch,
		strideA: d.StrideA, strideB: d.StrideB, strideOut: d.StrideOut, alpha: 1, tile: d.Tile}
}

// checkGEMM validates the product for the kernels on simdgroup matrices.
func (d *dense) checkGEMM(c *check) (work bool) {
	switch d.tile {
	case 0:
		d.tile = GEMMTileFor(d.m, d.n)
	case GEMMSmallTile, GEMMLargeTile:
	default:
		c.refuse("Tile", strconv.Itoa(d.tile), fmt.Sprintf("0, %d or %d", GEMMSmallTile, GEMMLargeTile), runtime.ErrShape)
	}
	c.needsMatrices()
	return d.check(c)
}

func (d *dense) gemm(fn string, p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	if !d.checkGEMM(&c) {
		return c.result()
	}
	return d.multiply(p, bind)
}

// multiply launches a product that was checked.
func (d *dense) multiply(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
	l := d.launch(p, gemmDenseKernels[d.kind][d.tile/GEMMLargeTile], constantsOfGEMM)
	l.Uint32(3, uint32(d.m))
	d.strides(l)
	l.Scalars(bind)
	return l.Dispatch(GEMMGeometry(d.tile, d.batch, d.m, d.n))
}

// gemmDenseKernels are the kernels by the kind of elements and the tile, the small one first.
var gemmDenseKernels = [...][2]string{
	{"gemm_dense_f32_t32", "gemm_dense_f32_t64"},
	{"gemm_dense_f16_t32", "gemm_dense_f16_t64"},
	{"gemm_dense_bf16_t32", "gemm_dense_bf16_t64"},
}
