package nn

import "github.com/ingot-metal/ingot/runtime"

// MLPSiLU is the middle of a gated feed-forward block with SiLU, SwiGLU:
//
//	out[i] = silu(gate[i]) * up[i],  silu(x) = x / (1 + exp(-x)),  i < n
//
// It is computed in float32; a bfloat16 result is rounded once. silu of -inf is 0, NaN stays NaN.
//
// Shapes: gate, up and out [n]; longer slices are allowed. n == 0 is a no-op.
//
// Slots: 0 gate, 1 up, 2 out; scalar 3 n (uint32).
//
// out may be exactly gate or up; otherwise it must not overlap them. Deterministic: no sum, one element at a time.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
//
// Source: Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202.
func MLPSiLU[T FloatOrBFloat](p *runtime.Pass, out runtime.Slice[T], gate, up runtime.Slice[float32], n int) error {
	return mlp("nn.MLPSiLU", "mlp_silu", "mlp_silu_bf16", p, out, gate, up, n, nil)
}

// UnsafeMLPSiLU is [MLPSiLU] with scalar 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeMLPSiLU[T FloatOrBFloat](p *runtime.Pass, out runtime.Slice[T], gate, up runtime.Slice[float32], n int, bind func(*runtime.ScalarBinder) error) error {
	return mlp("nn.UnsafeMLPSiLU", "mlp_silu", "mlp_silu_bf16", p, out, gate, up, n, bind)
}

// MLPGELUTanh is the middle of a gated feed-forward block with the tanh form of GELU, GeGLU:
//
//	out[i] = gelu(gate[i]) * up[i],  gelu(x) = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))),  i < n
//
// It is computed in float32; a bfloat16 result is rounded once. gelu of -inf is 0, NaN stays NaN; large gates are
// themselves, to the largest.
//
// Shapes: gate, up and out [n]; longer slices are allowed. n == 0 is a no-op.
//
// Slots: 0 gate, 1 up, 2 out; scalar 3 n (uint32).
//
// out may be exactly gate or up; otherwise it must not overlap them. Deterministic: no sum, one element at a time.
// Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
//
// Sources: Hendrycks and Gimpel, arXiv:1606.08415; Shazeer, arXiv:2002.05202.
func MLPGELUTanh[T FloatOrBFloat](p *runtime.Pass, out runtime.Slice[T], gate, up runtime.Slice[float32], n int) error {
	return mlp("nn.MLPGELUTanh", "mlp_gelu_tanh", "mlp_gelu_tanh_bf16", p, out, gate, up, n, nil)
}

// UnsafeMLPGELUTanh is [MLPGELUTanh] with scalar 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeMLPGELUTanh[T FloatOrBFloat](p *runtime.Pass, out runtime.Slice[T], gate, up runtime.Slice[float32], n int, bind func(*runtime.ScalarBinder) error) error {
	return mlp("nn.UnsafeMLPGELUTanh", "mlp_gelu_tanh", "mlp_gelu_tanh_bf16", p, out, gate, up, n, bind)
}

func mlp[T FloatOrBFloat](fn, f32, bf16 string, p *runtime.Pass, out runtime.Slice[T], gate, up runtime.Slice[float32], n int,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("n", n, 0)
	size := floatSize[T]()
	c.memory(memory{"gate", gate.View(), n, 4}, memory{"up", up.View(), n, 4}, memory{"out", out.View(), n, size})
	if c.err != nil || n == 0 {
		return c.result()
	}
	o, g, u := first(out.View(), n, size), first(gate.View(), n, 4), first(up.View(), n, 4)
	c.sameOrDisjoint(operand{"out", o}, operand{"gate", g})
	c.sameOrDisjoint(operand{"out", o}, operand{"up", u})
	if c.err != nil {
		return c.result()
	}
	kernel := f32
	if isBFloat[T]() {
		kernel = bf16
	}
	l := p.Kernel(kernel)
	l.Read(0, g)
	l.Read(1, u)
	l.Write(2, o)
	l.Uint32(3, uint32(n))
	l.Scalars(bind)
	return dispatchElements(l, n)
}
