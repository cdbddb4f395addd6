package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// GEMVQ4MLX multiplies a matrix with a vector:
//
//	y[r] = sum over c of w[r, c] * x[c],  r < w.Rows(), c < w.Cols()
//
// in float32, group by group: scale * sum(code * x) + bias * sum(x).
//
// Shapes: y [w.Rows()], x [w.Cols()]; longer slices are allowed. x starts at a multiple of 8 bytes.
//
// Slots: 0 packed, 1 scales and biases, 3 x, 4 y; scalars 5 rows, 6 columns, 7 group size (uint32).
//
// y must not overlap w or x. Deterministic on one device; a row's result does not depend on the other rows.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
//
// Source: qmv_fast of MLX (mlx/backend/metal/kernels/quantized.h).
func GEMVQ4MLX(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[half.BFloat16]) error {
	return gemvQ4MLX("nn.GEMVQ4MLX", p, y, w, x, nil)
}

// UnsafeGEMVQ4MLX is [GEMVQ4MLX] with scalars 5 to 7 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLX(p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[half.BFloat16], bind func(*runtime.ScalarBinder) error) error {
	return gemvQ4MLX("nn.UnsafeGEMVQ4MLX", p, y, w, x, bind)
}

func gemvQ4MLX(fn string, p *runtime.Pass, y runtime.Slice[float32], w Q4MLXBank, x runtime.Slice[half.BFloat16], bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.bank("w", w, 0)
	c.bankOwned("w", w)
	c.owned("x", x.View())
	c.owned("y", y.View())
	c.capacity("x", x.View(), w.cols, 2, 8)
	c.capacity("y", y.View(), w.rows, 4, 4)
	if c.err != nil {
		return c.result()
	}
	in, out := first(x.View(), w.cols, 2), first(y.View(), w.rows, 4)
	c.disjoint(1, operand{"y", out}, operand{"w", w.packed.View()}, operand{"w", w.sb.View()}, operand{"x", in})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("gemv_q4_mlx_simd")
	l.Read(0, w.packed.View())
	l.Read(1, w.sb.View())
	l.Read(3, in)
	l.Write(4, out)
	l.Uint32(5, uint32(w.rows))
	l.Uint32(6, uint32(w.cols))
	l.Uint32(7, uint32(w.size))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(GEMVTiles(w.rows)), runtime.D1(GEMVThreads))
}

// GEMVQKV are the operands of [GEMVQ4MLXQKV].
type GEMVQKV struct {
	Q, K, V    runtime.Slice[float32]       // outputs: [WQ.Rows()], [WK.Rows()], [WV.Rows()]
	WQ, WK, WV Q4MLXBank                    // of the same columns and group size; WK and WV of the same rows
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
func GEMVQ4MLXQKV(p *runtime.Pass, a GEMVQKV) error {
	return gemvQ4MLXQKV("nn.GEMVQ4MLXQKV", p, &a, nil)
}

// UnsafeGEMVQ4MLXQKV is [GEMVQ4MLXQKV] with scalars 10 to 15 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXQKV(p *runtime.Pass, a GEMVQKV, bind func(*runtime.ScalarBinder) error) error {
	return gemvQ4MLXQKV("nn.UnsafeGEMVQ4MLXQKV", p, &a, bind)
}

func gemvQ4MLXQKV(fn string, p *runtime.Pass, a *GEMVQKV, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.bank("WQ", a.WQ, 0)
	c.sameBank("WK", a.WK, a.WQ, 0)
	c.sameBank("WV", a.WV, a.WQ, a.WK.rows)
	c.bankOwned("WQ", a.WQ)
	c.bankOwned("WK", a.WK)
	c.bankOwned("WV", a.WV)
	c.owned("X", a.X.View())
	c.owned("Q", a.Q.View())
	c.owned("K", a.K.View())
	c.owned("V", a.V.View())
	c.capacity("X", a.X.View(), a.WQ.cols, 2, 8)
	c.capacity("Q", a.Q.View(), a.WQ.rows, 4, 4)
	c.capacity("K", a.K.View(), a.WK.rows, 4, 4)
	c.capacity("V", a.V.View(), a.WV.rows, 4, 4)
	if c.err != nil {
		return c.result()
	}
	in := first(a.X.View(), a.WQ.cols, 2)
	q, k, v := first(a.Q.View(), a.WQ.rows, 4), first(a.K.View(), a.WK.rows, 4), first(a.V.View(), a.WV.rows, 4)
	c.disjoint(3, operand{"Q", q}, operand{"K", k}, operand{"V", v}, operand{"X", in},
		operand{"WQ", a.WQ.packed.View()}, operand{"WQ", a.WQ.sb.View()}, operand{"WK", a.WK.packed.View()},
		operand{"WK", a.WK.sb.View()}, operand{"WV", a.WV.packed.View()}, operand{"WV", a.WV.sb.View()})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("gemv_q4_mlx_simd_qkv")
	l.Read(0, a.WQ.packed.View())
	l.Read(1, a.WQ.sb.View())
	l.Read(2, a.WK.packed.View())
	l.Read(3, a.WK.sb.View())
	l.Read(4, a.WV.packed.View())
	l.Read(5, a.WV.sb.View())
	l.Read(6, in)
	l.Write(7, q)
	l.Write(8, k)
	l.Write(9, v)
	tilesQ, tilesKV := GEMVTiles(a.WQ.rows), GEMVTiles(a.WK.rows)
	l.Uint32(10, uint32(a.WQ.rows))
	l.Uint32(11, uint32(a.WK.rows))
	l.Uint32(12, uint32(a.WQ.cols))
	l.Uint32(13, uint32(a.WQ.size))
	l.Uint32(14, uint32(tilesQ))
	l.Uint32(15, uint32(tilesKV))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(tilesQ+2*tilesKV), runtime.D1(GEMVThreads))
}

// sameBank is bank for one that must have the columns and the group size of another, and rows rows if that is not 0.
func (c *check) sameBank(arg string, b, other Q4MLXBank, rows int) {
	c.bank(arg, b, other.cols)
	if c.err != nil {
		return
	}
	if b.size != other.size {
		c.refuse(arg, fmt.Sprintf("groups of %d", b.size), fmt.Sprint(other.size), runtime.ErrShape)
	}
	if rows != 0 && b.rows != rows {
		c.refuse(arg, fmt.Sprintf("%d rows", b.rows), fmt.Sprint(rows), runtime.ErrShape)
	}
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
func GEMVQ4MLXGateUpGELU[T FloatOrBFloat](p *runtime.Pass, mid runtime.Slice[T], wGate, wUp Q4MLXBank, x runtime.Slice[half.BFloat16]) error {
	return gemvQ4MLXGateUpGELU("nn.GEMVQ4MLXGateUpGELU", p, mid.View(), isBFloat[T](), wGate, wUp, x, nil)
}

// UnsafeGEMVQ4MLXGateUpGELU is [GEMVQ4MLXGateUpGELU] with scalars 8 to 11 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeGEMVQ4MLXGateUpGELU[T FloatOrBFloat](p *runtime.Pass, mid runtime.Slice[T], wGate, wUp Q4MLXBank, x runtime.Slice[half.BFloat16],
	bind func(*runtime.ScalarBinder) error) error {
	return gemvQ4MLXGateUpGELU("nn.UnsafeGEMVQ4MLXGateUpGELU", p, mid.View(), isBFloat[T](), wGate, wUp, x, bind)
}

func gemvQ4MLXGateUpGELU(fn string, p *runtime.Pass, mid runtime.View, bf16 bool, wGate, wUp Q4MLXBank, x runtime.Slice[half.BFloat16],
	bind func(*runtime.ScalarBinder) error) error {
	size, flag := 4, uint32(0)
	if bf16 {
		size, flag = 2, 1
	}
	c := start(fn, p)
	c.bank("wGate", wGate, 0)
	c.sameBank("wUp", wUp, wGate, wGate.rows)
	c.bankOwned("wGate", wGate)
	c.bankOwned("wUp", wUp)
	c.owned("x", x.View())
	c.owned("mid", mid)
	c.capacity("x", x.View(), wGate.cols, 2, 8)
	c.capacity("mid", mid, wGate.rows, size, 4)
	if c.err != nil {
		return c.result()
	}
	in, out := first(x.View(), wGate.cols, 2), first(mid, wGate.rows, size)
	c.disjoint(1, operand{"mid", out}, operand{"wGate", wGate.packed.View()}, operand{"wGate", wGate.sb.View()},
		operand{"wUp", wUp.packed.View()}, operand{"wUp", wUp.sb.View()}, operand{"x", in})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("gemv_q4_mlx_simd_gate_up_gelu")
	l.Read(0, wGate.packed.View())
	l.Read(1, wGate.sb.View())
	l.Read(3, wUp.packed.View())
	l.Read(4, wUp.sb.View())
	l.Read(6, in)
	l.Write(7, out)
	l.Uint32(8, uint32(wGate.rows))
	l.Uint32(9, uint32(wGate.cols))
	l.Uint32(10, uint32(wGate.size))
	l.Uint32(11, flag)
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(GEMVTiles(wGate.rows)), runtime.D1(GEMVThreads))
}
