package nn

import (
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// RMSNormF32 normalises rows by their root mean square:
//
//	out[r, i] = x[r, i] / sqrt(mean over i of x[r, i]^2 + eps) * weight[i],  r < rows, i < dim
//
// The weight multiplies as it is: where a model multiplies by 1 + w, as Gemma does, the caller adds the 1 on the host.
// Squares are summed in float32, so magnitudes stay below some 1e18.
//
// Shapes: out and x [rows, dim], weight [dim]; longer slices are allowed. rows == 0 is a no-op.
//
// Slots: 0 x, 1 weight, 2 out; scalars 3 rows, 4 dim (uint32), 5 eps (float32).
//
// out may be exactly x; otherwise it must not overlap x, nor ever the weight. Deterministic on one device; the order in
// which a simdgroup sums is the device's.
// Errors: ErrScalar if eps is not finite and positive; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap for the rest.
//
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467.
func RMSNormF32(p *runtime.Pass, out, x, weight runtime.Slice[float32], rows, dim int, eps float32) error {
	return rmsNorm("nn.RMSNormF32", "rms_norm_f32", p, out, x, weight, rows, dim, eps, nil)
}

// UnsafeRMSNormF32 is [RMSNormF32] with scalars 3 to 5 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeRMSNormF32(p *runtime.Pass, out, x, weight runtime.Slice[float32], rows, dim int, eps float32, bind func(*runtime.ScalarBinder) error) error {
	return rmsNorm("nn.UnsafeRMSNormF32", "rms_norm_f32", p, out, x, weight, rows, dim, eps, bind)
}

// RMSNormBF16 is [RMSNormF32] with the results rounded to bfloat16.
//
// Slots: 0 x, 1 weight, 2 out; scalars 3 rows, 4 dim (uint32), 5 eps (float32).
//
// out must not overlap x or weight. Shapes, determinism and errors are those of RMSNormF32.
func RMSNormBF16(p *runtime.Pass, out runtime.Slice[half.BFloat16], x, weight runtime.Slice[float32], rows, dim int, eps float32) error {
	return rmsNorm("nn.RMSNormBF16", "rms_norm_bf16", p, out, x, weight, rows, dim, eps, nil)
}

// UnsafeRMSNormBF16 is [RMSNormBF16] with scalars 3 to 5 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeRMSNormBF16(p *runtime.Pass, out runtime.Slice[half.BFloat16], x, weight runtime.Slice[float32], rows, dim int, eps float32,
	bind func(*runtime.ScalarBinder) error) error {
	return rmsNorm("nn.UnsafeRMSNormBF16", "rms_norm_bf16", p, out, x, weight, rows, dim, eps, bind)
}

func rmsNorm[T FloatOrBFloat](fn, kernel string, p *runtime.Pass, out runtime.Slice[T], x, weight runtime.Slice[float32], rows, dim int, eps float32,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	n, size := c.rmsRows(rows, dim, eps), floatSize[T]()
	c.memory(memory{"x", x.View(), n, 4}, memory{"weight", weight.View(), dim, 4}, memory{"out", out.View(), n, size})
	if c.err != nil || n == 0 {
		return c.result()
	}
	o, in, w := first(out.View(), n, size), first(x.View(), n, 4), first(weight.View(), dim, 4)
	c.sameOrDisjoint(operand{"out", o}, operand{"x", in})
	c.disjoint(1, operand{"out", o}, operand{"weight", w})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(kernel)
	l.Read(0, in)
	l.Read(1, w)
	l.Write(2, o)
	l.Uint32(3, uint32(rows))
	l.Uint32(4, uint32(dim))
	l.Float32(5, eps)
	l.Scalars(bind)
	return dispatchRows(l, rows, dim)
}

// RMSNormResidualAddF32 adds a normalised branch to a residual stream, in place, and scales the sum:
//
//	resid[r, i] = layerScale * (resid[r, i] + x[r, i] / sqrt(mean over i of x[r, i]^2 + eps) * weight[i])
//
// with r < rows, i < dim. layerScale is 1 for models that have none. What is said of the weight and of magnitudes at
// [RMSNormF32] holds here.
//
// Shapes: resid and x [rows, dim], weight [dim]; longer slices are allowed. rows == 0 is a no-op.
//
// Slots: 0 x, 1 weight, 2 resid; scalars 3 rows, 4 dim (uint32), 5 eps, 6 layer scale (float32).
//
// resid may be exactly x; otherwise it must not overlap x, nor ever the weight. Deterministic on one device.
// Errors: ErrScalar if eps is not finite and positive or layerScale is not finite; ErrShape, ErrLimit, ErrForeign,
// ErrClosed, ErrOverlap for the rest.
//
// Source: as RMSNormF32; the norm before the residual sum is Gemma 2's, arXiv:2408.00118.
func RMSNormResidualAddF32(p *runtime.Pass, resid, x, weight runtime.Slice[float32], rows, dim int, eps, layerScale float32) error {
	return rmsNormResidualAddF32("nn.RMSNormResidualAddF32", p, resid, x, weight, rows, dim, eps, layerScale, nil)
}

// UnsafeRMSNormResidualAddF32 is [RMSNormResidualAddF32] with scalars 3 to 6 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeRMSNormResidualAddF32(p *runtime.Pass, resid, x, weight runtime.Slice[float32], rows, dim int, eps, layerScale float32,
	bind func(*runtime.ScalarBinder) error) error {
	return rmsNormResidualAddF32("nn.UnsafeRMSNormResidualAddF32", p, resid, x, weight, rows, dim, eps, layerScale, bind)
}

func rmsNormResidualAddF32(fn string, p *runtime.Pass, resid, x, weight runtime.Slice[float32], rows, dim int, eps, layerScale float32,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.finite("layerScale", layerScale)
	n := c.rmsRows(rows, dim, eps)
	c.owned("x", x.View())
	c.owned("weight", weight.View())
	c.owned("resid", resid.View())
	c.capacity("x", x.View(), n, 4, 4)
	c.capacity("weight", weight.View(), dim, 4, 4)
	c.capacity("resid", resid.View(), n, 4, 4)
	if c.err != nil || n == 0 {
		return c.result()
	}
	io, in, w := first(resid.View(), n, 4), first(x.View(), n, 4), first(weight.View(), dim, 4)
	if !io.Same(in) {
		c.disjoint(1, operand{"resid", io}, operand{"x", in})
	}
	c.disjoint(1, operand{"resid", io}, operand{"weight", w})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("rms_norm_residual_add_f32")
	l.Read(0, in)
	l.Read(1, w)
	l.ReadWrite(2, io)
	l.Uint32(3, uint32(rows))
	l.Uint32(4, uint32(dim))
	l.Float32(5, eps)
	l.Float32(6, layerScale)
	l.Scalars(bind)
	return dispatchRows(l, rows, dim)
}

// rmsRows validates the shape and eps of a normalisation and counts its elements.
func (c *check) rmsRows(rows, dim int, eps float32) int {
	c.positive("eps", eps)
	c.dim("rows", rows, 0)
	c.dim("dim", dim, 1)
	return c.elements("rows * dim", rows, dim)
}
