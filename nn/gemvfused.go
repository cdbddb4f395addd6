package nn

import (
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// GEMVQ4MLXAdd is a product and a residual in one launch:
//
//	y[r] = residual[r] + sum over c of w[r, c] * x[c],  r < w.Rows()
//
// bit for bit what [GEMVQ4MLX] gives, added to residual with one rounding.
//
// Shapes: y and residual [w.Rows()], x [w.Cols()]; longer slices are allowed. x starts at a multiple of 8 bytes.
//
// Slots: 0 packed, 1 scales and biases, 3 x, 4 y, 8 residual; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. It may be residual itself, but not overlap it otherwise. Deterministic on one device.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4MLXAdd[W Q4MLXSimdBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], residual runtime.Slice[float32]) error {
	return gemvQ4MLXAdd(start("nn.GEMVQ4MLXAdd", p), p, y, w.weights(), x, residual, nil)
}

// UnsafeGEMVQ4MLXAdd is [GEMVQ4MLXAdd] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXAdd[W Q4MLXSimdBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], residual runtime.Slice[float32],
	bind func(*runtime.ScalarBinder) error) error {
	return gemvQ4MLXAdd(start("nn.UnsafeGEMVQ4MLXAdd", p), p, y, w.weights(), x, residual, bind)
}

// ValidateGEMVQ4MLXAdd makes the checks of [GEMVQ4MLXAdd] without encoding anything.
func ValidateGEMVQ4MLXAdd[W Q4MLXSimdBank](rt *runtime.Runtime, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16], residual runtime.Slice[float32]) error {
	return gemvQ4MLXAdd(startOn("nn.ValidateGEMVQ4MLXAdd", rt), nil, y, w.weights(), x, residual, nil)
}

func gemvQ4MLXAdd(c check, p *runtime.Pass, y runtime.Slice[float32], w weights, x runtime.Slice[half.BFloat16], residual runtime.Slice[float32],
	bind func(*runtime.ScalarBinder) error) error {
	c.weights("w", &w)
	c.weightsOwned("w", &w)
	c.owned("x", x.View())
	c.owned("residual", residual.View())
	c.owned("y", y.View())
	c.capacity("x", x.View(), w.cols, 2, 8)
	c.capacity("residual", residual.View(), w.rows, 4, 4)
	c.capacity("y", y.View(), w.rows, 4, 4)
	if c.err != nil {
		return c.result()
	}
	in, resid, out := first(x.View(), w.cols, 2), first(residual.View(), w.rows, 4), operand{"y", first(y.View(), w.rows, 4)}
	c.apart(out, "w", &w)
	c.disjoint(1, out, operand{"x", in})
	c.sameOrDisjoint(out, operand{"residual", resid})
	if c.err != nil || p == nil { // without a pass it is a validation
		return c.result()
	}
	l := p.Kernel(w.kernel("gemv_q4_mlx_simd_add", "gemv_q4_mlx_simd_add_i4"))
	w.bind(l, 0)
	l.Read(3, in)
	l.Write(4, out.view)
	l.Read(8, resid)
	l.Uint32(5, uint32(w.rows))
	l.Uint32(6, uint32(w.cols))
	l.Uint32(7, uint32(w.size))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(GEMVTiles(w.rows)), runtime.D1(GEMVThreads))
}

// GEMVKV are the operands of [GEMVQ4MLXKV] with row-major banks.
type GEMVKV = GEMVKVOf[Q4MLXBank]

// GEMVKVOf are the operands of [GEMVQ4MLXKV] with banks of one layout.
type GEMVKVOf[W Q4MLXSimdBank] struct {
	K, V   runtime.Slice[float32]       // outputs: [WK.Rows()] each
	WK, WV W                            // of the same rows, columns and group size
	X      runtime.Slice[half.BFloat16] // [WK.Cols()]
}

// GEMVQ4MLXKV is two products with one vector in one launch, keys and values of attention:
//
//	a.K = a.WK a.X,  a.V = a.WV a.X
//
// each bit for bit what [GEMVQ4MLX] gives. Longer slices than needed are allowed. a.X starts at a multiple of 8 bytes.
//
// Slots: 0 WK packed, 1 WK scales and biases, 3 WV packed, 4 WV scales and biases, 6 X, 7 K, 8 V; scalars 9 rows,
// 10 columns, 11 group size, 12 threadgroups of K (uint32).
//
// K and V must not overlap each other or an input. Deterministic on one device.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4MLXKV[W Q4MLXSimdBank](p *runtime.Pass, a GEMVKVOf[W]) error {
	return gemvQ4MLXKV(start("nn.GEMVQ4MLXKV", p), p, &a, nil)
}

// UnsafeGEMVQ4MLXKV is [GEMVQ4MLXKV] with scalars 9 to 12 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXKV[W Q4MLXSimdBank](p *runtime.Pass, a GEMVKVOf[W], bind func(*runtime.ScalarBinder) error) error {
	return gemvQ4MLXKV(start("nn.UnsafeGEMVQ4MLXKV", p), p, &a, bind)
}

// ValidateGEMVQ4MLXKV makes the checks of [GEMVQ4MLXKV] without encoding anything.
func ValidateGEMVQ4MLXKV[W Q4MLXSimdBank](rt *runtime.Runtime, a GEMVKVOf[W]) error {
	return gemvQ4MLXKV(startOn("nn.ValidateGEMVQ4MLXKV", rt), nil, &a, nil)
}

func gemvQ4MLXKV[W Q4MLXSimdBank](c check, p *runtime.Pass, a *GEMVKVOf[W], bind func(*runtime.ScalarBinder) error) error {
	wk, wv := a.WK.weights(), a.WV.weights()
	c.weights("WK", &wk)
	c.sameShape("WV", &wv, &wk, wk.rows)
	c.weightsOwned("WK", &wk)
	c.weightsOwned("WV", &wv)
	c.owned("X", a.X.View())
	c.owned("K", a.K.View())
	c.owned("V", a.V.View())
	c.capacity("X", a.X.View(), wk.cols, 2, 8)
	c.capacity("K", a.K.View(), wk.rows, 4, 4)
	c.capacity("V", a.V.View(), wk.rows, 4, 4)
	if c.err != nil {
		return c.result()
	}
	in := first(a.X.View(), wk.cols, 2)
	k, v := operand{"K", first(a.K.View(), wk.rows, 4)}, operand{"V", first(a.V.View(), wk.rows, 4)}
	c.disjoint(2, k, v, operand{"X", in})
	for _, out := range [2]operand{k, v} {
		c.apart(out, "WK", &wk)
		c.apart(out, "WV", &wv)
	}
	if c.err != nil || p == nil { // without a pass it is a validation
		return c.result()
	}
	l := p.Kernel(wk.kernel("gemv_q4_mlx_simd_kv", "gemv_q4_mlx_simd_kv_i4"))
	wk.bind(l, 0)
	wv.bind(l, 3)
	l.Read(6, in)
	l.Write(7, k.view)
	l.Write(8, v.view)
	tiles := GEMVTiles(wk.rows)
	l.Uint32(9, uint32(wk.rows))
	l.Uint32(10, uint32(wk.cols))
	l.Uint32(11, uint32(wk.size))
	l.Uint32(12, uint32(tiles))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(2*tiles), runtime.D1(GEMVThreads))
}
