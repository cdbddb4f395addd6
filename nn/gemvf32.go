package nn

import (
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// Geometry of the products with vectors of float32.
const (
	// GEMVGroupThreads is the size of a threadgroup of the products that give a row to a thread, a simdgroup or a threadgroup,
	// unless the device allows fewer threads.
	GEMVGroupThreads = 128
	// GEMVWideRows is how many rows a threadgroup of GEMVQ4MLXF32Wide computes, a simdgroup for each.
	GEMVWideRows = GEMVGroupThreads / SIMDWidth
	// GEMVBlockThreads is the size of a threadgroup of the blocked products: 16 threads for each row of a block.
	GEMVBlockThreads = 16 * quant.BlockRows
)

// GEMVRowThreads is the size of a threadgroup of GEMVQ4MLXF32, whose threads have a row each: whole simdgroups, at most
// GEMVGroupThreads.
func GEMVRowThreads(rows int) int { return min(ceilDiv(rows, SIMDWidth)*SIMDWidth, GEMVGroupThreads) }

// gemvKernel is a kernel that multiplies with a vector of float32.
type gemvKernel int

const (
	gemvQ8 gemvKernel = iota
	gemvQ4
	gemvQ4Tiled
	gemvQ4MLXF32
	gemvQ4MLXF32Wide
	gemvQ4MLXF32Tiled
	gemvQ4MLXBlocked
)

// launch is the kernel's name, and the size of its threadgroups for a number of rows.
func (k gemvKernel) launch(rows int) (name string, threads int) {
	switch k {
	case gemvQ8:
		return "gemv_q8", GEMVThreads
	case gemvQ4:
		return "gemv_q4", GEMVThreads
	case gemvQ4Tiled:
		return "gemv_q4_tiled", GEMVGroupThreads
	case gemvQ4MLXF32:
		return "gemv_q4_mlx", GEMVRowThreads(rows)
	case gemvQ4MLXF32Wide:
		return "gemv_q4_mlx_wide", GEMVGroupThreads
	case gemvQ4MLXF32Tiled:
		return "gemv_q4_mlx_tiled", GEMVGroupThreads
	}
	return "gemv_q4_mlx_blocked", GEMVBlockThreads
}

// groups is the number of threadgroups for a number of rows, and whether the kernel takes other sizes of them.
func (k gemvKernel) groups(rows, threads int) (groups int, anySize bool) {
	switch k {
	case gemvQ8, gemvQ4:
		return GEMVTiles(rows), false
	case gemvQ4Tiled, gemvQ4MLXF32Tiled:
		return rows, true
	case gemvQ4MLXF32:
		return ceilDiv(rows, threads), true
	case gemvQ4MLXF32Wide:
		return ceilDiv(rows, threads/SIMDWidth), true
	}
	return ceilDiv(rows, quant.BlockRows), false
}

// GEMVQ8 multiplies a matrix with a vector of float32:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// in float32: scale * (sum(code * x) - zero * sum(x)) for each four columns, or each one where the group size is no multiple
// of 4.
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed.
//
// Slots: 0 codes, 1 scales, 2 zeros, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ8(p *runtime.Pass, y runtime.Slice[float32], w Q8Bank, x runtime.Slice[float32]) error {
	return gemvF32(start("nn.GEMVQ8", p), p, y, w.weights(), x, gemvQ8, nil)
}

// UnsafeGEMVQ8 is [GEMVQ8] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ8(p *runtime.Pass, y runtime.Slice[float32], w Q8Bank, x runtime.Slice[float32], bind func(*runtime.ScalarBinder) error) error {
	return gemvF32(start("nn.UnsafeGEMVQ8", p), p, y, w.weights(), x, gemvQ8, bind)
}

// ValidateGEMVQ8 makes the checks of [GEMVQ8] without encoding anything.
func ValidateGEMVQ8(rt *runtime.Runtime, y runtime.Slice[float32], w Q8Bank, x runtime.Slice[float32]) error {
	return gemvF32(startOn("nn.ValidateGEMVQ8", rt), nil, y, w.weights(), x, gemvQ8, nil)
}

// GEMVQ4 multiplies a matrix with a vector of float32:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// in float32: scale * (sum(code * x) - zero * sum(x)) for each eight columns. A simdgroup computes four rows; see
// [GEMVQ4Tiled] for few long rows.
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed.
//
// Slots: 0 packed, 1 scales, 2 zeros, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4(p *runtime.Pass, y runtime.Slice[float32], w Q4Bank, x runtime.Slice[float32]) error {
	return gemvF32(start("nn.GEMVQ4", p), p, y, w.weights(), x, gemvQ4, nil)
}

// UnsafeGEMVQ4 is [GEMVQ4] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4(p *runtime.Pass, y runtime.Slice[float32], w Q4Bank, x runtime.Slice[float32], bind func(*runtime.ScalarBinder) error) error {
	return gemvF32(start("nn.UnsafeGEMVQ4", p), p, y, w.weights(), x, gemvQ4, bind)
}

// ValidateGEMVQ4 makes the checks of [GEMVQ4] without encoding anything.
func ValidateGEMVQ4(rt *runtime.Runtime, y runtime.Slice[float32], w Q4Bank, x runtime.Slice[float32]) error {
	return gemvF32(startOn("nn.ValidateGEMVQ4", rt), nil, y, w.weights(), x, gemvQ4, nil)
}

// GEMVQ4Tiled multiplies a matrix with a vector of float32:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// as [GEMVQ4], but with a threadgroup for each row: the sums are in another order, so that bits may differ.
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed.
//
// Slots: 0 packed, 1 scales, 2 zeros, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4Tiled(p *runtime.Pass, y runtime.Slice[float32], w Q4Bank, x runtime.Slice[float32]) error {
	return gemvF32(start("nn.GEMVQ4Tiled", p), p, y, w.weights(), x, gemvQ4Tiled, nil)
}

// UnsafeGEMVQ4Tiled is [GEMVQ4Tiled] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4Tiled(p *runtime.Pass, y runtime.Slice[float32], w Q4Bank, x runtime.Slice[float32], bind func(*runtime.ScalarBinder) error) error {
	return gemvF32(start("nn.UnsafeGEMVQ4Tiled", p), p, y, w.weights(), x, gemvQ4Tiled, bind)
}

// ValidateGEMVQ4Tiled makes the checks of [GEMVQ4Tiled] without encoding anything.
func ValidateGEMVQ4Tiled(rt *runtime.Runtime, y runtime.Slice[float32], w Q4Bank, x runtime.Slice[float32]) error {
	return gemvF32(startOn("nn.ValidateGEMVQ4Tiled", rt), nil, y, w.weights(), x, gemvQ4Tiled, nil)
}

// GEMVQ4MLXF32 multiplies a matrix with a vector of float32:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// in float32: scale * sum(code * x) + bias * sum(x) for each group. A thread computes a row, and a threadgroup holds x in
// threadgroup memory piece by piece: for tall matrices. [GEMVQ4MLX] has an x in bfloat16, which is half as much to read.
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed.
//
// Slots: 0 packed, 1 scales and biases, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4MLXF32(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32]) error {
	return gemvF32(start("nn.GEMVQ4MLXF32", p), p, y, w.weights(), x, gemvQ4MLXF32, nil)
}

// UnsafeGEMVQ4MLXF32 is [GEMVQ4MLXF32] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXF32(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32], bind func(*runtime.ScalarBinder) error) error {
	return gemvF32(start("nn.UnsafeGEMVQ4MLXF32", p), p, y, w.weights(), x, gemvQ4MLXF32, bind)
}

// ValidateGEMVQ4MLXF32 makes the checks of [GEMVQ4MLXF32] without encoding anything.
func ValidateGEMVQ4MLXF32(rt *runtime.Runtime, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32]) error {
	return gemvF32(startOn("nn.ValidateGEMVQ4MLXF32", rt), nil, y, w.weights(), x, gemvQ4MLXF32, nil)
}

// GEMVQ4MLXF32Wide multiplies a matrix with a vector of float32:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// as [GEMVQ4MLXF32], but with a simdgroup for each row, for matrices that are wide and short: the sums are in another
// order, so that bits may differ.
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed.
//
// Slots: 0 packed, 1 scales and biases, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4MLXF32Wide(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32]) error {
	return gemvF32(start("nn.GEMVQ4MLXF32Wide", p), p, y, w.weights(), x, gemvQ4MLXF32Wide, nil)
}

// UnsafeGEMVQ4MLXF32Wide is [GEMVQ4MLXF32Wide] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXF32Wide(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32], bind func(*runtime.ScalarBinder) error) error {
	return gemvF32(start("nn.UnsafeGEMVQ4MLXF32Wide", p), p, y, w.weights(), x, gemvQ4MLXF32Wide, bind)
}

// ValidateGEMVQ4MLXF32Wide makes the checks of [GEMVQ4MLXF32Wide] without encoding anything.
func ValidateGEMVQ4MLXF32Wide(rt *runtime.Runtime, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32]) error {
	return gemvF32(startOn("nn.ValidateGEMVQ4MLXF32Wide", rt), nil, y, w.weights(), x, gemvQ4MLXF32Wide, nil)
}

// GEMVQ4MLXF32Tiled multiplies a matrix with a vector of float32:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// as [GEMVQ4MLXF32], but with a threadgroup for each row and none of x in threadgroup memory, for few long rows: the sums
// are in another order, so that bits may differ.
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed.
//
// Slots: 0 packed, 1 scales and biases, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4MLXF32Tiled(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32]) error {
	return gemvF32(start("nn.GEMVQ4MLXF32Tiled", p), p, y, w.weights(), x, gemvQ4MLXF32Tiled, nil)
}

// UnsafeGEMVQ4MLXF32Tiled is [GEMVQ4MLXF32Tiled] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXF32Tiled(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32], bind func(*runtime.ScalarBinder) error) error {
	return gemvF32(start("nn.UnsafeGEMVQ4MLXF32Tiled", p), p, y, w.weights(), x, gemvQ4MLXF32Tiled, bind)
}

// ValidateGEMVQ4MLXF32Tiled makes the checks of [GEMVQ4MLXF32Tiled] without encoding anything.
func ValidateGEMVQ4MLXF32Tiled(rt *runtime.Runtime, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[float32]) error {
	return gemvF32(startOn("nn.ValidateGEMVQ4MLXF32Tiled", rt), nil, y, w.weights(), x, gemvQ4MLXF32Tiled, nil)
}

// GEMVQ4MLXBlocked multiplies a matrix with a vector of float32:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// in float32: scale * sum(code * x) + bias * sum(x) for each 16 columns. A threadgroup computes a block of 16 rows, which
// stand together in this layout, and holds x in threadgroup memory piece by piece.
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed.
//
// Slots: 0 packed, 1 scales and biases, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4MLXBlocked(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBlockedBank, x runtime.Slice[float32]) error {
	return gemvF32(start("nn.GEMVQ4MLXBlocked", p), p, y, w.weights(), x, gemvQ4MLXBlocked, nil)
}

// UnsafeGEMVQ4MLXBlocked is [GEMVQ4MLXBlocked] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXBlocked(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBlockedBank, x runtime.Slice[float32], bind func(*runtime.ScalarBinder) error) error {
	return gemvF32(start("nn.UnsafeGEMVQ4MLXBlocked", p), p, y, w.weights(), x, gemvQ4MLXBlocked, bind)
}

// ValidateGEMVQ4MLXBlocked makes the checks of [GEMVQ4MLXBlocked] without encoding anything.
func ValidateGEMVQ4MLXBlocked(rt *runtime.Runtime, y runtime.Slice[float32], w Q4MLXBlockedBank, x runtime.Slice[float32]) error {
	return gemvF32(startOn("nn.ValidateGEMVQ4MLXBlocked", rt), nil, y, w.weights(), x, gemvQ4MLXBlocked, nil)
}

func gemvF32(c check, p *runtime.Pass, y runtime.Slice[float32], w weights, x runtime.Slice[float32], k gemvKernel, bind func(*runtime.ScalarBinder) error) error {
	c.weights("w", &w)
	c.weightsOwned("w", &w)
	c.owned("x", x.View())
	c.owned("y", y.View())
	c.capacity("x", x.View(), w.cols, 4, 4)
	c.capacity("y", y.View(), w.rows, 4, 4)
	if c.err != nil {
		return c.result()
	}
	in, out := first(x.View(), w.cols, 4), operand{"y", first(y.View(), w.rows, 4)}
	c.apart(out, "w", &w)
	c.disjoint(1, out, operand{"x", in})
	if c.err != nil || p == nil { // without a pass it is a validation
		return c.result()
	}
	name, threads := k.launch(w.rows)
	l := p.Kernel(name)
	w.bind(l, 0)
	l.Read(3, in)
	l.Write(4, out.view)
	l.Uint32(5, uint32(w.rows))
	l.Uint32(6, uint32(w.cols))
	l.Uint32(7, uint32(w.size))
	l.Scalars(bind)
	groups, anySize := k.groups(w.rows, threads)
	if anySize {
		threads = fitThreads(l, threads)
		groups, _ = k.groups(w.rows, threads)
	}
	return l.Dispatch(runtime.D1(groups), runtime.D1(threads))
}

// GEMVQ4MLXBlockedGateUpGELU is [GEMVQ4MLXGateUpGELU] for banks in blocks of 16 rows and a vector of float32:
//
//	mid[r] = gelu(gate[r]) * up[r],  gate = wGate x,  up = wUp x,  r < wGate.Rows()
//
// each product bit for bit that of [GEMVQ4MLXBlocked]. mid is float32 or bfloat16, by its type.
//
// Shapes: mid [wGate.Rows()], x [wGate.Cols()]; longer slices are allowed. mid starts at a multiple of 4 bytes.
//
// Slots: 0 gate packed, 1 gate scales and biases, 3 up packed, 4 up scales and biases, 6 x, 7 mid; scalars 8 rows,
// 9 columns, 10 group size, 11 whether mid is bfloat16 (uint32).
//
// mid must not overlap an input. Deterministic on one device. Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4MLXBlockedGateUpGELU[T FloatOrBFloat](p *runtime.Pass, mid runtime.Slice[T], wGate, wUp Q4MLXBlockedBank, x runtime.Slice[float32]) error {
	return gateUp{start("nn.GEMVQ4MLXBlockedGateUpGELU", p), p, mid.View(), isBFloat[T](), wGate.weights(), wUp.weights(), x.View(), nil}.blocked()
}

// UnsafeGEMVQ4MLXBlockedGateUpGELU is [GEMVQ4MLXBlockedGateUpGELU] with scalars 8 to 11 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXBlockedGateUpGELU[T FloatOrBFloat](p *runtime.Pass, mid runtime.Slice[T], wGate, wUp Q4MLXBlockedBank, x runtime.Slice[float32],
	bind func(*runtime.ScalarBinder) error) error {
	return gateUp{start("nn.UnsafeGEMVQ4MLXBlockedGateUpGELU", p), p, mid.View(), isBFloat[T](), wGate.weights(), wUp.weights(), x.View(), bind}.blocked()
}

// ValidateGEMVQ4MLXBlockedGateUpGELU makes the checks of [GEMVQ4MLXBlockedGateUpGELU] without encoding anything.
func ValidateGEMVQ4MLXBlockedGateUpGELU[T FloatOrBFloat](rt *runtime.Runtime, mid runtime.Slice[T], wGate, wUp Q4MLXBlockedBank, x runtime.Slice[float32]) error {
	return gateUp{startOn("nn.ValidateGEMVQ4MLXBlockedGateUpGELU", rt), nil, mid.View(), isBFloat[T](), wGate.weights(), wUp.weights(), x.View(), nil}.blocked()
}

func (a gateUp) blocked() error {
	return a.launch("gemv_q4_mlx_blocked_gate_up_gelu", 4, 4, ceilDiv(a.gate.rows, quant.BlockRows), GEMVBlockThreads)
}
