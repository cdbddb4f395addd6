package nn

import (
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// GEMVQ4MLX multiplies a matrix with a vector:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// in float32, group by group: scale * sum(code * x) + bias * sum(x). w is row-major or interleaved, by its type.
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed. x starts at a multiple of 8 bytes.
//
// Slots: 0 packed, 1 scales and biases, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows, nor on
// the layout. Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
//
// Source: qmv_fast of MLX (mlx/backend/metal/kernels/quantized.h).
func GEMVQ4MLX[W Q4MLXSimdBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16]) error {
	return gemvQ4MLX(start("nn.GEMVQ4MLX", p), p, y, w.weights(), x, nil)
}

// UnsafeGEMVQ4MLX is [GEMVQ4MLX] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLX[W Q4MLXSimdBank](p *runtime.Pass, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16],
	bind func(*runtime.ScalarBinder) error) error {
	return gemvQ4MLX(start("nn.UnsafeGEMVQ4MLX", p), p, y, w.weights(), x, bind)
}

// ValidateGEMVQ4MLX makes the checks of [GEMVQ4MLX] without encoding anything.
func ValidateGEMVQ4MLX[W Q4MLXSimdBank](rt *runtime.Runtime, y runtime.Slice[float32], w W, x runtime.Slice[half.BFloat16]) error {
	return gemvQ4MLX(startOn("nn.ValidateGEMVQ4MLX", rt), nil, y, w.weights(), x, nil)
}

func gemvQ4MLX(c check, p *runtime.Pass, y runtime.Slice[float32], w weights, x runtime.Slice[half.BFloat16], bind func(*runtime.ScalarBinder) error) error {
	c.weights("w", &w)
	c.weightsOwned("w", &w)
	c.owned("x", x.View())
	c.owned("y", y.View())
	c.capacity("x", x.View(), w.cols, 2, 8)
	c.capacity("y", y.View(), w.rows, 4, 4)
	if c.err != nil {
		return c.result()
	}
	in, out := first(x.View(), w.cols, 2), first(y.View(), w.rows, 4)
	c.apart(operand{"y", out}, "w", &w)
	c.disjoint(1, operand{"y", out}, operand{"x", in})
	if c.err != nil || p == nil { // without a pass it is a validation
		return c.result()
	}
	l := p.Kernel(w.kernel("gemv_q4_mlx_simd", "gemv_q4_mlx_simd_i4"))
	w.bind(l, 0)
	l.Read(3, in)
	l.Write(4, out)
	l.Uint32(5, uint32(w.rows))
	l.Uint32(6, uint32(w.cols))
	l.Uint32(7, uint32(w.size))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(GEMVTiles(w.rows)), runtime.D1(GEMVThreads))
}

// GEMVQKV are the operands of [GEMVQ4MLXQKV] with row-major banks.
type GEMVQKV = GEMVQKVOf[Q4MLXBank]

// GEMVQKVOf are the operands of [GEMVQ4MLXQKV] with banks of one layout.
type GEMVQKVOf[W Q4MLXSimdBank] struct {
	Q, K, V    runtime.Slice[float32]       // outputs: [WQ.Rows()], [WK.Rows()], [WV.Rows()]
	WQ, WK, WV W                            // of the same columns and group size; WK and WV of the same rows
	X          runtime.Slice[half.BFloat16] // [WQ.Cols()]
}

// GEMVQ4MLXQKV is three products with one vector in one launch, the projections of attention:
//
//	a.Q = a.WQ a.X,  a.K = a.WK a.X,  a.V = a.WV a.X
//
// each bit for bit what [GEMVQ4MLX] gives. Longer slices than needed are allowed. a.X starts at a multiple of 8 bytes.
//
// Slots: 0, 1 WQ, 2, 3 WK, 4, 5 WV (packed, scales and biases), 6 X, 7 Q, 8 K, 9 V; scalars 10 rows of WQ, 11 rows of WK
// and WV, 12 columns, 13 group size, 14 threadgroups of Q, 15 threadgroups of K and of V (uint32).
//
// Q, K and V must not overlap each other or an input. Deterministic on one device.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMVQ4MLXQKV[W Q4MLXSimdBank](p *runtime.Pass, a GEMVQKVOf[W]) error {
	return gemvQ4MLXQKV(start("nn.GEMVQ4MLXQKV", p), p, &a, nil)
}

// UnsafeGEMVQ4MLXQKV is [GEMVQ4MLXQKV] with scalars 10 to 15 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXQKV[W Q4MLXSimdBank](p *runtime.Pass, a GEMVQKVOf[W], bind func(*runtime.ScalarBinder) error) error {
	return gemvQ4MLXQKV(start("nn.UnsafeGEMVQ4MLXQKV", p), p, &a, bind)
}

// ValidateGEMVQ4MLXQKV makes the checks of [GEMVQ4MLXQKV] without encoding anything.
func ValidateGEMVQ4MLXQKV[W Q4MLXSimdBank](rt *runtime.Runtime, a GEMVQKVOf[W]) error {
	return gemvQ4MLXQKV(startOn("nn.ValidateGEMVQ4MLXQKV", rt), nil, &a, nil)
}

func gemvQ4MLXQKV[W Q4MLXSimdBank](c check, p *runtime.Pass, a *GEMVQKVOf[W], bind func(*runtime.ScalarBinder) error) error {
	wq, wk, wv := a.WQ.weights(), a.WK.weights(), a.WV.weights()
	c.weights("WQ", &wq)
	c.sameShape("WK", &wk, &wq, 0)
	c.sameShape("WV", &wv, &wq, wk.rows)
	c.weightsOwned("WQ", &wq)
	c.weightsOwned("WK", &wk)
	c.weightsOwned("WV", &wv)
	c.owned("X", a.X.View())
	c.owned("Q", a.Q.View())
	c.owned("K", a.K.View())
	c.owned("V", a.V.View())
	c.capacity("X", a.X.View(), wq.cols, 2, 8)
	c.capacity("Q", a.Q.View(), wq.rows, 4, 4)
	c.capacity("K", a.K.View(), wk.rows, 4, 4)
	c.capacity("V", a.V.View(), wv.rows, 4, 4)
	if c.err != nil {
		return c.result()
	}
	in := first(a.X.View(), wq.cols, 2)
	q, k, v := operand{"Q", first(a.Q.View(), wq.rows, 4)}, operand{"K", first(a.K.View(), wk.rows, 4)}, operand{"V", first(a.V.View(), wv.rows, 4)}
	c.disjoint(3, q, k, v, operand{"X", in})
	for _, out := range [3]operand{q, k, v} {
		c.apart(out, "WQ", &wq)
		c.apart(out, "WK", &wk)
		c.apart(out, "WV", &wv)
	}
	if c.err != nil || p == nil { // without a pass it is a validation
		return c.result()
	}
	l := p.Kernel(wq.kernel("gemv_q4_mlx_simd_qkv", "gemv_q4_mlx_simd_qkv_i4"))
	wq.bind(l, 0)
	wk.bind(l, 2)
	wv.bind(l, 4)
	l.Read(6, in)
	l.Write(7, q.view)
	l.Write(8, k.view)
	l.Write(9, v.view)
	tilesQ, tilesKV := GEMVTiles(wq.rows), GEMVTiles(wk.rows)
	l.Uint32(10, uint32(wq.rows))
	l.Uint32(11, uint32(wk.rows))
	l.Uint32(12, uint32(wq.cols))
	l.Uint32(13, uint32(wq.size))
	l.Uint32(14, uint32(tilesQ))
	l.Uint32(15, uint32(tilesKV))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(tilesQ+2*tilesKV), runtime.D1(GEMVThreads))
}

// GEMVQ4MLXGateUpGELU is the first half of a gated feed-forward block:
//
//	mid[r] = gelu(gate[r]) * up[r],  gate = wGate x,  up = wUp x,  r < wGate.Rows()
//
// where gelu is the tanh form, gelu(g) = g/2 * (1 + tanh(sqrt(2/pi) * (g + 0.044715 g^3))). mid is float32 or bfloat16, by
// its type. Neither product is written to memory.
//
// Shapes: mid [wGate.Rows()], x [wGate.Cols()]; longer slices are allowed. x starts at a multiple of 8 bytes, mid of 4.
//
// Slots: 0 gate packed, 1 gate scales and biases, 3 up packed, 4 up scales and biases, 6 x, 7 mid; scalars 8 rows,
// 9 columns, 10 group size, 11 whether mid is bfloat16 (uint32).
//
// mid must not overlap an input. Deterministic on one device. Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
//
// Source: Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202 (GEGLU); the product as in GEMVQ4MLX.
func GEMVQ4MLXGateUpGELU[T FloatOrBFloat, W Q4MLXSimdBank](p *runtime.Pass, mid runtime.Slice[T], wGate, wUp W, x runtime.Slice[half.BFloat16]) error {
	return gateUp{start("nn.GEMVQ4MLXGateUpGELU", p), p, mid.View(), isBFloat[T](), wGate.weights(), wUp.weights(), x.View(), nil}.simd()
}

// UnsafeGEMVQ4MLXGateUpGELU is [GEMVQ4MLXGateUpGELU] with scalars 8 to 11 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXGateUpGELU[T FloatOrBFloat, W Q4MLXSimdBank](p *runtime.Pass, mid runtime.Slice[T], wGate, wUp W, x runtime.Slice[half.BFloat16],
	bind func(*runtime.ScalarBinder) error) error {
	return gateUp{start("nn.UnsafeGEMVQ4MLXGateUpGELU", p), p, mid.View(), isBFloat[T](), wGate.weights(), wUp.weights(), x.View(), bind}.simd()
}

// ValidateGEMVQ4MLXGateUpGELU makes the checks of [GEMVQ4MLXGateUpGELU] without encoding anything.
func ValidateGEMVQ4MLXGateUpGELU[T FloatOrBFloat, W Q4MLXSimdBank](rt *runtime.Runtime, mid runtime.Slice[T], wGate, wUp W, x runtime.Slice[half.BFloat16]) error {
	return gateUp{startOn("nn.ValidateGEMVQ4MLXGateUpGELU", rt), nil, mid.View(), isBFloat[T](), wGate.weights(), wUp.weights(), x.View(), nil}.simd()
}

// gateUp is a call of a kernel that multiplies with two matrices and gates one result with the other.
type gateUp struct {
	c        check
	p        *runtime.Pass
	mid      runtime.View
	bf16     bool
	gate, up weights
	x        runtime.View
	bind     func(*runtime.ScalarBinder) error
}

func (a gateUp) simd() error {
	return a.launch(a.gate.kernel("gemv_q4_mlx_simd_gate_up_gelu", "gemv_q4_mlx_simd_gate_up_gelu_i4"), 2, 8, GEMVTiles(a.gate.rows), GEMVThreads)
}

// launch launches a kernel that reads an x of elements of size bytes, aligned to align.
func (a *gateUp) launch(kernel string, size, align, groups, threads int) error {
	midSize, flag := 4, uint32(0)
	if a.bf16 {
		midSize, flag = 2, 1
	}
	c := a.c
	c.weights("wGate", &a.gate)
	c.sameShape("wUp", &a.up, &a.gate, a.gate.rows)
	c.weightsOwned("wGate", &a.gate)
	c.weightsOwned("wUp", &a.up)
	c.owned("x", a.x)
	c.owned("mid", a.mid)
	c.capacity("x", a.x, a.gate.cols, size, align)
	c.capacity("mid", a.mid, a.gate.rows, midSize, 4)
	if c.err != nil {
		return c.result()
	}
	in, out := first(a.x, a.gate.cols, size), operand{"mid", first(a.mid, a.gate.rows, midSize)}
	c.apart(out, "wGate", &a.gate)
	c.apart(out, "wUp", &a.up)
	c.disjoint(1, out, operand{"x", in})
	if c.err != nil || a.p == nil { // without a pass it is a validation
		return c.result()
	}
	l := a.p.Kernel(kernel)
	a.gate.bind(l, 0)
	a.up.bind(l, 3)
	l.Read(6, in)
	l.Write(7, out.view)
	l.Uint32(8, uint32(a.gate.rows))
	l.Uint32(9, uint32(a.gate.cols))
	l.Uint32(10, uint32(a.gate.size))
	l.Uint32(11, flag)
	l.Scalars(a.bind)
	return l.Dispatch(runtime.D1(groups), runtime.D1(threads))
}
