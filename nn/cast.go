package nn

import (
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Cast converts numbers from one type to another:
//
//	dst[i] = D(src[i]),  i < n
//
// Conversions round to nearest, ties to even. They do not saturate: what rounds beyond the largest finite number of D is
// infinite, that is from 65,520 on for float16 and from 2^128 - 2^119 on for bfloat16. float16 and bfloat16 convert to
// float32 exactly, and through it into each other. NaN stays NaN; what becomes of its payload is the device's, except
// between float32 and bfloat16, where it is made quiet and keeps its sign and upper bits. Subnormal float16 numbers are
// kept; subnormal float32 and bfloat16 numbers are kept between these two types, and their float16 is zero. A conversion
// to the same type is [Copy].
//
// Shapes: src and dst [n]; longer slices are allowed. n == 0 is a no-op.
//
// Slots: 0 src, 1 dst; scalar 2 n (uint32).
//
// dst must not overlap src. Deterministic. Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func Cast[D, S Float](p *runtime.Pass, dst runtime.Slice[D], src runtime.Slice[S], n int) error {
	return convert("nn.Cast", castKernel[D, S](), p, dst.View(), floatSize[D](), src.View(), floatSize[S](), n, nil)
}

// UnsafeCast is [Cast] with scalar 2 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeCast[D, S Float](p *runtime.Pass, dst runtime.Slice[D], src runtime.Slice[S], n int, bind func(*runtime.ScalarBinder) error) error {
	return convert("nn.UnsafeCast", castKernel[D, S](), p, dst.View(), floatSize[D](), src.View(), floatSize[S](), n, bind)
}

// Copy copies elements, bit for bit:
//
//	dst[i] = src[i],  i < n
//
// Shapes: src and dst [n]; longer slices are allowed. n == 0 is a no-op.
//
// Slots: 0 src, 1 dst; scalar 2 n (uint32).
//
// dst must not overlap src. Deterministic. Errors: ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func Copy[T Plain](p *runtime.Pass, dst, src runtime.Slice[T], n int) error {
	return convert("nn.Copy", copyKernel[T](), p, dst.View(), floatSize[T](), src.View(), floatSize[T](), n, nil)
}

// UnsafeCopy is [Copy] with scalar 2 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeCopy[T Plain](p *runtime.Pass, dst, src runtime.Slice[T], n int, bind func(*runtime.ScalarBinder) error) error {
	return convert("nn.UnsafeCopy", copyKernel[T](), p, dst.View(), floatSize[T](), src.View(), floatSize[T](), n, bind)
}

func copyKernel[T Plain]() string {
	if floatSize[T]() == 2 {
		return "copy_b16"
	}
	return "copy_b32"
}

func castKernel[D, S Float]() string {
	var zero S
	switch any(zero).(type) {
	case half.Float16:
		return kernelOf[D]("cast_f16_f32", "copy_b16", "cast_f16_bf16")
	case half.BFloat16:
		return kernelOf[D]("cast_bf16_f32", "cast_bf16_f16", "copy_b16")
	}
	return kernelOf[D]("copy_b32", "cast_f32_f16", "cast_f32_bf16")
}

func convert(fn, kernel string, p *runtime.Pass, dst runtime.View, dstSize int, src runtime.View, srcSize, n int,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("n", n, 0)
	c.memory(memory{"src", src, n, srcSize}, memory{"dst", dst, n, dstSize})
	if c.err != nil || n == 0 {
		return c.result()
	}
	to, from := first(dst, n, dstSize), first(src, n, srcSize)
	c.disjoint(1, operand{"dst", to}, operand{"src", from})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(kernel)
	l.Read(0, from)
	l.Write(1, to)
	l.Uint32(2, uint32(n))
	l.Scalars(bind)
	return dispatchElements(l, n)
}
