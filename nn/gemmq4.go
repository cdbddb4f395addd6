package nn

import (
	"fmt"
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// MaxGEMMVectors is the most vectors that GEMMQ4MLX multiplies in one launch.
const MaxGEMMVectors = 8

// GEMMQ4MLX multiplies a matrix with up to eight vectors, reading it once:
//
//	y[i, r] = sum over c of w[r, c] * x[i, c],  i < m, r < w.Rows(), c < w.Cols()
//
// each element bit for bit what [GEMVQ4MLX] gives for that vector alone. w is row-major or interleaved, by its type.
//
// Shapes: y [m, w.Rows()], x [m, w.Cols()]; longer slices are allowed. x starts at a multiple of 8 bytes. m == 0 is a no-op.
//
// Slots: 0 packed, 1 scales and biases, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size, 8 m (uint32).
//
// y must not overlap w or x. Deterministic on one device; an element does not depend on the other vectors or rows, nor on
// the layout. Errors: ErrLimit if m is more than MaxGEMMVectors; ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMMQ4MLX[W Q4MLXSimdBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], m int) error {
	return gemmQ4MLX(start("nn.GEMMQ4MLX", p), p, y, w.weights(), x, nil, m, nil)
}

// UnsafeGEMMQ4MLX is [GEMMQ4MLX] with scalars 5 to 8 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMMQ4MLX[W Q4MLXSimdBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], m int,
	bind func(*runtime.ScalarBinder) error) error {
	return gemmQ4MLX(start("nn.UnsafeGEMMQ4MLX", p), p, y, w.weights(), x, nil, m, bind)
}

// ValidateGEMMQ4MLX makes the checks of [GEMMQ4MLX] without encoding anything.
func ValidateGEMMQ4MLX[W Q4MLXSimdBank](rt *runtime.Runtime, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], m int) error {
	return gemmQ4MLX(startOn("nn.ValidateGEMMQ4MLX", rt), nil, y, w.weights(), x, nil, m, nil)
}

// GEMMQ4MLXAdd is [GEMMQ4MLX] with a residual, each vector its own:
//
//	y[i, r] = residual[i, r] + sum over c of w[r, c] * x[i, c]
//
// bit for bit what GEMMQ4MLX gives, added to residual [m, w.Rows()] with one rounding.
//
// Slots: as GEMMQ4MLX, and 9 residual.
//
// y must not overlap w or x. It may be residual itself, but not overlap it otherwise. The rest is as in GEMMQ4MLX.
func GEMMQ4MLXAdd[W Q4MLXSimdBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], residual runtime.Slice[float32], m int) error {
	return gemmQ4MLX(start("nn.GEMMQ4MLXAdd", p), p, y, w.weights(), x, &residual, m, nil)
}

// UnsafeGEMMQ4MLXAdd is [GEMMQ4MLXAdd] with scalars 5 to 8 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMMQ4MLXAdd[W Q4MLXSimdBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], residual runtime.Slice[float32], m int,
	bind func(*runtime.ScalarBinder) error) error {
	return gemmQ4MLX(start("nn.UnsafeGEMMQ4MLXAdd", p), p, y, w.weights(), x, &residual, m, bind)
}

// ValidateGEMMQ4MLXAdd makes the checks of [GEMMQ4MLXAdd] without encoding anything.
func ValidateGEMMQ4MLXAdd[W Q4MLXSimdBank](rt *runtime.Runtime, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], residual runtime.Slice[float32],
	m int) error {
	return gemmQ4MLX(startOn("nn.ValidateGEMMQ4MLXAdd", rt), nil, y, w.weights(), x, &residual, m, nil)
}

func gemmQ4MLX(c check, p *runtime.Pass, y runtime.Slice[float32], w weights, x runtime.Slice[half.BFloat16], residual *runtime.Slice[float32], m int,
	bind func(*runtime.ScalarBinder) error) error {
	c.dim("m", m, 0)
	if c.err == nil && m > MaxGEMMVectors {
		c.refuse("m", strconv.Itoa(m), fmt.Sprintf("at most %d vectors", MaxGEMMVectors), runtime.ErrLimit)
	}
	c.weights("w", &w)
	nx, ny := c.elements("m * columns", m, w.cols), c.elements("m * rows", m, w.rows)
	c.weightsOwned("w", &w)
	c.owned("x", x.View())
	if residual != nil {
		c.owned("residual", residual.View())
	}
	c.owned("y", y.View())
	c.capacity("x", x.View(), nx, 2, 8)
	if residual != nil {
		c.capacity("residual", residual.View(), ny, 4, 4)
	}
	c.capacity("y", y.View(), ny, 4, 4)
	if c.err != nil || m == 0 {
		return c.result()
	}
	in, out := first(x.View(), nx, 2), operand{"y", first(y.View(), ny, 4)}
	c.apart(out, "w", &w)
	c.disjoint(1, out, operand{"x", in})
	if residual != nil {
		c.sameOrDisjoint(out, operand{"residual", first(residual.View(), ny, 4)})
	}
	if c.err != nil || p == nil { // without a pass it is a validation
		return c.result()
	}
	kernel := w.kernel("gemm_q4_mlx_simd", "gemm_q4_mlx_simd_i4")
	if residual != nil {
		kernel = w.kernel("gemm_q4_mlx_simd_add", "gemm_q4_mlx_simd_add_i4")
	}
	l := p.Kernel(kernel)
	w.bind(l, 0)
	l.Read(3, in)
	l.Write(4, out.view)
	if residual != nil {
		l.Read(9, first(residual.View(), ny, 4))
	}
	l.Uint32(5, uint32(w.rows))
	l.Uint32(6, uint32(w.cols))
	l.Uint32(7, uint32(w.size))
	l.Uint32(8, uint32(m))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(GEMVTiles(w.rows)), runtime.D1(GEMVThreads))
}
