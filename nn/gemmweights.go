package nn

import (
	"context"

	"github.com/ingot-metal/ingot/runtime"
)

// GEMMWeights multiplies many rows with a matrix of weights of any type, as prompts need it:
//
//	y[i, r] = sum over c of x[i, c] * w[r, c],  i < m, r < w.Rows(), c < w.Cols()
//
// on simdgroup matrices. Each weight is the float32 number that its format defines ([quant.BlockFormat.Decode]), made
// once for 32 or 64 rows of x; sums are float32, and the result is rounded to O once, ties to even. Weights and rows that are numbers
// of one type stay in that type: the product is [GEMM] with w as its transposed b.
//
// Shapes: y [m, w.Rows()], x [m, w.Cols()], row-major; longer slices are allowed, and what lies beyond stays. No start need be a
// multiple of anything, but rows of x that start at multiples of four elements are read faster. m == 0 is a no-op.
//
// Slots: 0 x, 1 w, 2 y, 8 bias, 11 C; scalars 3 m, 4 rows, 5 columns (uint32), 9 Alpha, 10 Beta (float32), and, where the product is
// GEMM, 6, 7, 12 and 13, which are 0 (uint32; 12 is the epilogue's StrideC).
//
// y must not overlap x or w. Deterministic on one device. An element depends on its row of x and its row of w alone: m, the
// number of rows of w, their places, the tile and alignment do not change its bits, and they are those of a GEMM with the decoded
// weights and rows as float32 numbers. They are not those of [RowExactMatvec], which adds up in another order.
// Errors: ErrLimit if the device has no simdgroup matrices, which is so before Apple family 7 (there RowExactMatvec multiplies
// up to 16 rows a call), or allows fewer threads than the tile takes; ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMMWeights[O, T Float, W WeightBank](p *runtime.Pass, y runtime.Slice[O], w W, x runtime.Slice[T], m int) error {
	b := w.weights()
	g := gemmWeightsOf(y, &b, w.Type(), x, m)
	return g.gemmWeights("nn.GEMMWeights", p, &b, nil)
}

// UnsafeGEMMWeights is [GEMMWeights] with its scalars in the caller's own storage: all of them, those of the epilogue included, with
// Alpha 1 and Beta 0.
//
// Unsafe: see the package documentation. A smaller m leaves the rows from there on as they are.
func UnsafeGEMMWeights[O, T Float, W WeightBank](p *runtime.Pass, y runtime.Slice[O], w W, x runtime.Slice[T], m int,
	bind func(*runtime.ScalarBinder) error) error {
	b := w.weights()
	g := gemmWeightsOf(y, &b, w.Type(), x, m)
	return g.gemmWeights("nn.UnsafeGEMMWeights", p, &b, bind)
}

// ValidateGEMMWeights makes the checks of [GEMMWeights] without encoding anything.
func ValidateGEMMWeights[O, T Float, W WeightBank](rt *runtime.Runtime, y runtime.Slice[O], w W, x runtime.Slice[T], m int) error {
	b := w.weights()
	g := gemmWeightsOf(y, &b, w.Type(), x, m)
	c := startOn("nn.ValidateGEMMWeights", rt)
	g.checkGEMMWeights(&c, &b)
	return c.result()
}

// GEMMWeightsEpilogue is [GEMMWeights] with what follows the product in the same launch:
//
//	y[i, r] = Act(Alpha * sum over c of x[i, c] * w[r, c] + Beta * C[i, r] + Bias[r])
//
// with the fields of e, in float32, rounded to O at the end. C [m, w.Rows()] has the shape of y: Alpha and Beta of 1 add the product
// to a residual, in place if C is y.
//
// y must not overlap x, w or the bias. It may be exactly e.C; otherwise it must not overlap it. Slots, shapes and
// determinism are those of GEMMWeights. Errors: those of GEMMWeights, and ErrScalar if Alpha or Beta is not finite or Act is none of
// the activations.
func GEMMWeightsEpilogue[O, T Float, W WeightBank](p *runtime.Pass, y runtime.Slice[O], w W, x runtime.Slice[T], m int, e Epilogue[O]) error {
	b := w.weights()
	g := gemmWeightsOf(y, &b, w.Type(), x, m)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	return g.gemmWeights("nn.GEMMWeightsEpilogue", p, &b, nil)
}

// UnsafeGEMMWeightsEpilogue is [GEMMWeightsEpilogue] with its scalars in the caller's own storage. Whether C is read stays as it is
// when the call is made: a Beta that is 0 then leaves C out whatever is set later.
//
// Unsafe: see the package documentation.
func UnsafeGEMMWeightsEpilogue[O, T Float, W WeightBank](p *runtime.Pass, y runtime.Slice[O], w W, x runtime.Slice[T], m int, e Epilogue[O],
	bind func(*runtime.ScalarBinder) error) error {
	b := w.weights()
	g := gemmWeightsOf(y, &b, w.Type(), x, m)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	return g.gemmWeights("nn.UnsafeGEMMWeightsEpilogue", p, &b, bind)
}

// ValidateGEMMWeightsEpilogue makes the checks of [GEMMWeightsEpilogue] without encoding anything.
func ValidateGEMMWeightsEpilogue[O, T Float, W WeightBank](rt *runtime.Runtime, y runtime.Slice[O], w W, x runtime.Slice[T], m int, e Epilogue[O]) error {
	b := w.weights()
	g := gemmWeightsOf(y, &b, w.Type(), x, m)
	g.epilogue(e.Alpha, e.Beta, e.C.View(), e.StrideC, e.Bias.View(), e.Act)
	c := startOn("nn.ValidateGEMMWeightsEpilogue", rt)
	g.checkGEMMWeights(&c, &b)
	return c.result()
}

// gemmWeightsOf is the product as one of matrices, x times the transposed weights.
func gemmWeightsOf[O, T Float](y runtime.Slice[O], w *weights, t WeightType, x runtime.Slice[T], m int) dense {
	return dense{names: &gemmWeightsNames, out: y.View(), a: x.View(), b: w.parts[0], kind: elementKind[T](), weight: t, outKind: elementKind[O](),
		transB: true, m: m, n: w.rows, k: w.cols, alpha: 1}
}

// checkGEMMWeights validates the product for the kernels on simdgroup matrices.
func (d *dense) checkGEMMWeights(c *check, w *weights) (work bool) {
	c.weights("w", w)
	if c.err != nil {
		return false
	}
	if d.isGEMM() {
		return d.checkGEMM(c)
	}
	d.tile = GEMMWeightsTileFor(d.m)
	c.needsMatrices()
	return d.check(c)
}

// isGEMM says whether the operands are numbers of one type.
func (d *dense) isGEMM() bool { return d.weight == denseTypes[d.kind] }

func (d *dense) gemmWeights(fn string, p *runtime.Pass, w *weights, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	if !d.checkGEMMWeights(&c, w) {
		return c.result()
	}
	if d.isGEMM() {
		return d.multiply(p, bind)
	}
	l := d.launch(p, gemmWeightsKernels[d.weight][d.tile/GEMMLargeTile], d.weightsConstants())
	l.Uint32(3, uint32(d.m))
	l.Scalars(bind)
	return l.Dispatch(GEMMWeightsGeometry(d.tile, d.m, d.n))
}

// weightsConstants are the function constants of the product's kernel, unless it is a GEMM.
func (d *dense) weightsConstants() uint32 {
	if d.weight.Block() == 0 {
		return constantsOfGEMMMixed
	}
	return constantsOfGEMMBlocks
}

// PrewarmGEMMWeights makes the pipelines that [GEMMWeights] and [GEMMWeightsEpilogue] launch with weights of some types, rows of T and
// results of O, whatever their numbers of rows are: two for each type. Rows, and weights that are numbers, start at multiples of four
// elements. Of e counts what it does, not to what: whether there is a C, that is Beta, and a bias, and the activation. For GEMMWeights
// that is none.
//
// Errors: ErrScalar for an activation that is none, ErrShape for a type that is none, ErrLimit for a device without simdgroup matrices;
// those of [runtime.Runtime.PrewarmSpecialized].
func PrewarmGEMMWeights[O, T Float](ctx context.Context, rt *runtime.Runtime, e Epilogue[O], types ...WeightType) error {
	c := startOn("nn.PrewarmGEMMWeights", rt)
	c.needsMatrices()
	if c.err == nil && e.Act > ActSiLU {
		c.refuse("Act", e.Act.String(), "one of the activations", runtime.ErrScalar)
	}
	var all []runtime.Specialization
	for _, t := range types {
		if c.err == nil && t.info() == nil {
			c.refuse("types", t.String(), "one of WeightTypes", runtime.ErrShape)
		}
		if c.err != nil {
			return c.result()
		}
		d := dense{kind: elementKind[T](), weight: t, outKind: elementKind[O](), transB: true, wideA: true, wideB: true,
			beta: e.Beta, hasBias: !isZero(e.Bias.View()), act: e.Act}
		for i := range gemmWeightsKernels[t] {
			if d.isGEMM() {
				all = append(all, d.specialization(gemmDenseKernels[d.kind][i], constantsOfGEMM))
			} else {
				all = append(all, d.specialization(gemmWeightsKernels[t][i], d.weightsConstants()))
			}
		}
	}
	if c.err != nil {
		return c.result()
	}
	return rt.PrewarmSpecialized(ctx, all...)
}

// GEMMWeightsCols is how many rows of weights, which are columns of the result, a threadgroup of [GEMMWeights] takes.
const GEMMWeightsCols = 64

// GEMMWeightsTileFor is how many of m rows a threadgroup of [GEMMWeights] takes, for which it reads and decodes its weights once:
// GEMMSmallTile or GEMMLargeTile. Elements have the same bits with both. Where the product is [GEMM], GEMMTileFor is.
func GEMMWeightsTileFor(m int) int {
	if m <= GEMMSmallTile {
		return GEMMSmallTile
	}
	return GEMMLargeTile
}

// GEMMWeightsGeometry is the launch of [GEMMWeights] with a tile of GEMMWeightsTileFor for m rows and as many rows of weights, unless
// the product is [GEMM]: a simdgroup for each 32 rows and columns of a tile.
func GEMMWeightsGeometry(tile, m, rows int) (groups, threads runtime.Size) {
	tile = max(tile, GEMMSmallTile)
	return runtime.D2(ceilDiv(rows, GEMMWeightsCols), ceilDiv(m, tile)), runtime.D1(tile / GEMMSmallTile * (GEMMWeightsCols / GEMMSmallTile) * SIMDWidth)
}

// gemmWeightsKernels are the kernels by the type of weights and the tile, the small one first.
var gemmWeightsKernels = [len(weightInfos)][2]string{
	WeightF32:    {"gemm_weights_f32_t32", "gemm_weights_f32_t64"},
	WeightF16:    {"gemm_weights_f16_t32", "gemm_weights_f16_t64"},
	WeightBF16:   {"gemm_weights_bf16_t32", "gemm_weights_bf16_t64"},
	WeightQ4_0:   {"gemm_weights_q4_0_t32", "gemm_weights_q4_0_t64"},
	WeightQ5_0:   {"gemm_weights_q5_0_t32", "gemm_weights_q5_0_t64"},
	WeightQ8_0:   {"gemm_weights_q8_0_t32", "gemm_weights_q8_0_t64"},
	WeightIQ4_NL: {"gemm_weights_iq4_nl_t32", "gemm_weights_iq4_nl_t64"},
	WeightQ4_K:   {"gemm_weights_q4_K_t32", "gemm_weights_q4_K_t64"},
	WeightQ5_K:   {"gemm_weights_q5_K_t32", "gemm_weights_q5_K_t64"},
	WeightQ6_K:   {"gemm_weights_q6_K_t32", "gemm_weights_q6_K_t64"},
}
