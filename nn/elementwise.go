package nn

import "github.com/ingot-metal/ingot/runtime"

// ScaleInPlaceF32 multiplies by a number:
//
//	x[i] = scale * x[i],  i < n
//
// Shapes: x [n]; a longer slice is allowed. n == 0 is a no-op.
//
// Slots: 0 x; scalars 1 scale (float32), 2 n (uint32).
//
// Deterministic: each result is rounded once. Errors: ErrScalar if scale is not finite; ErrShape, ErrForeign, ErrClosed.
func ScaleInPlaceF32(p *runtime.Pass, x runtime.Slice[float32], n int, scale float32) error {
	return scaleInPlaceF32("nn.ScaleInPlaceF32", p, x, n, scale, nil)
}

// UnsafeScaleInPlaceF32 is [ScaleInPlaceF32] with scalars 1 and 2 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeScaleInPlaceF32(p *runtime.Pass, x runtime.Slice[float32], n int, scale float32, bind func(*runtime.ScalarBinder) error) error {
	return scaleInPlaceF32("nn.UnsafeScaleInPlaceF32", p, x, n, scale, bind)
}

func scaleInPlaceF32(fn string, p *runtime.Pass, x runtime.Slice[float32], n int, scale float32, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.finite("scale", scale)
	c.dim("n", n, 0)
	c.memory(memory{"x", x.View(), n, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	io := first(x.View(), n, 4)
	if c.writable(operand{"x", io}); c.err != nil {
		return c.result()
	}
	l := p.Kernel("scale_f32_inplace")
	l.ReadWrite(0, io)
	l.Float32(1, scale)
	l.Uint32(2, uint32(n))
	l.Scalars(bind)
	return dispatchElements(l, n)
}

// Add adds two vectors:
//
//	out[i] = a[i] + b[i],  i < n
//
// Sums are float32; with float16 and bfloat16 elements they are rounded to that type, ties to even, and beyond its largest
// finite number they are infinite.
//
// Shapes: a, b and out [n]; longer slices are allowed. n == 0 is a no-op.
//
// Slots: 0 a, 1 b, 2 out; scalar 3 n (uint32).
//
// out may be exactly a or b; otherwise it must not overlap them. Deterministic. Errors: ErrShape, ErrForeign, ErrClosed,
// ErrOverlap.
func Add[T Float](p *runtime.Pass, out, a, b runtime.Slice[T], n int) error {
	return add("nn.Add", "out", "a", p, out, a, b, n, nil)
}

// UnsafeAdd is [Add] with scalar 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeAdd[T Float](p *runtime.Pass, out, a, b runtime.Slice[T], n int, bind func(*runtime.ScalarBinder) error) error {
	return add("nn.UnsafeAdd", "out", "a", p, out, a, b, n, bind)
}

// AddInPlace adds y to x: [Add] with out and a exactly x.
//
//	x[i] = x[i] + y[i],  i < n
//
// Slots: 0 x, 1 y, 2 x; scalar 3 n (uint32).
//
// y may be exactly x; otherwise it must not overlap x. Everything else is as with Add.
func AddInPlace[T Float](p *runtime.Pass, x, y runtime.Slice[T], n int) error {
	return add("nn.AddInPlace", "x", "x", p, x, x, y, n, nil)
}

// UnsafeAddInPlace is [AddInPlace] with scalar 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeAddInPlace[T Float](p *runtime.Pass, x, y runtime.Slice[T], n int, bind func(*runtime.ScalarBinder) error) error {
	return add("nn.UnsafeAddInPlace", "x", "x", p, x, x, y, n, bind)
}

func add[T Float](fn, outName, aName string, p *runtime.Pass, out, a, b runtime.Slice[T], n int, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("n", n, 0)
	bName := "b"
	if outName == aName {
		bName = "y"
	}
	size := floatSize[T]()
	c.memory(memory{aName, a.View(), n, size}, memory{bName, b.View(), n, size}, memory{outName, out.View(), n, size})
	if c.err != nil || n == 0 {
		return c.result()
	}
	o, va, vb := first(out.View(), n, size), first(a.View(), n, size), first(b.View(), n, size)
	c.sameOrDisjoint(operand{outName, o}, operand{aName, va})
	c.sameOrDisjoint(operand{outName, o}, operand{bName, vb})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(kernelOf[T]("add_f32", "add_f16", "add_bf16"))
	l.Read(0, va)
	l.Read(1, vb)
	l.Write(2, o)
	l.Uint32(3, uint32(n))
	l.Scalars(bind)
	return dispatchElements(l, n)
}

// AddBias adds a vector to each row:
//
//	out[r, c] = x[r, c] + bias[c],  r < rows, c < cols
//
// Shapes: x and out [rows, cols], bias [cols]; longer slices are allowed. rows == 0 is a no-op.
//
// Slots: 0 x, 1 bias, 2 out; scalars 3 rows, 4 cols (uint32).
//
// out may be exactly x; otherwise it must not overlap x, and never bias. Deterministic: each sum is rounded once. Errors:
// ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap.
func AddBias(p *runtime.Pass, out, x, bias runtime.Slice[float32], rows, cols int) error {
	return addBias("nn.AddBias", p, out, x, bias, rows, cols, nil)
}

// UnsafeAddBias is [AddBias] with scalars 3 and 4 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeAddBias(p *runtime.Pass, out, x, bias runtime.Slice[float32], rows, cols int, bind func(*runtime.ScalarBinder) error) error {
	return addBias("nn.UnsafeAddBias", p, out, x, bias, rows, cols, bind)
}

func addBias(fn string, p *runtime.Pass, out, x, bias runtime.Slice[float32], rows, cols int, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("rows", rows, 0)
	c.dim("cols", cols, 1)
	n := c.product("rows * cols", maxDim, rows, cols)
	c.memory(memory{"x", x.View(), n, 4}, memory{"bias", bias.View(), cols, 4}, memory{"out", out.View(), n, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	o, in, b := first(out.View(), n, 4), first(x.View(), n, 4), first(bias.View(), cols, 4)
	c.sameOrDisjoint(operand{"out", o}, operand{"x", in})
	c.disjoint(1, operand{"out", o}, operand{"bias", b})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("add_bias_f32")
	l.Read(0, in)
	l.Read(1, b)
	l.Write(2, o)
	l.Uint32(3, uint32(rows))
	l.Uint32(4, uint32(cols))
	l.Scalars(bind)
	return dispatchElements(l, n)
}

// SoftcapLogits caps logits in place:
//
//	logits[i] = cap * tanh(logits[i] / cap),  cap = softcap[0],  i < n
//
// A cap that is not positive and finite means none: the logits stay as they are. An infinite logit becomes the cap with its
// sign, NaN stays NaN.
//
// Shapes: logits [n], softcap [1]; longer slices are allowed. n == 0 is a no-op. softcap is read on the device when the
// pass runs.
//
// Slots: 0 logits, 1 softcap; scalar 2 n (uint32).
//
// logits must not overlap softcap. Deterministic. Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
//
// Source: Gemma 2 report, arXiv:2408.00118.
func SoftcapLogits(p *runtime.Pass, logits, softcap runtime.Slice[float32], n int) error {
	return softcapLogits("nn.SoftcapLogits", p, logits, softcap, n, nil)
}

// UnsafeSoftcapLogits is [SoftcapLogits] with scalar 2 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeSoftcapLogits(p *runtime.Pass, logits, softcap runtime.Slice[float32], n int, bind func(*runtime.ScalarBinder) error) error {
	return softcapLogits("nn.UnsafeSoftcapLogits", p, logits, softcap, n, bind)
}

func softcapLogits(fn string, p *runtime.Pass, logits, softcap runtime.Slice[float32], n int, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("n", n, 0)
	c.memory(memory{"logits", logits.View(), n, 4}, memory{"softcap", softcap.View(), 1, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	io, limit := first(logits.View(), n, 4), first(softcap.View(), 1, 4)
	c.disjoint(1, operand{"logits", io}, operand{"softcap", limit})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("softcap_logits")
	l.ReadWrite(0, io)
	l.Read(1, limit)
	l.Uint32(2, uint32(n))
	l.Scalars(bind)
	return dispatchElements(l, n)
}
