package nn

import (
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
)

const (
	// MaxGEMMInt8K is the most products that a sum of GEMMInt8 has: 131,071. All of them -128 * -128, that many make
	// 2^31 - 2^14; one more makes 2^31, which an int32 does not hold.
	MaxGEMMInt8K = 131071
	// GEMMInt8Tile is how many rows, and how many columns, a threadgroup of GEMMInt8 computes.
	GEMMInt8Tile = 32
	// GEMMInt8Threads is the size of such a threadgroup.
	GEMMInt8Threads = 64
)

// GEMMInt8Dims is the shape of a product of matrices of signed bytes: [M, K] times [K, N].
type GEMMInt8Dims struct {
	M, N, K int
	// TransA and TransB say that a matrix lies in memory as its transpose: a as [K, M], b as [N, K]. The weights of linear
	// layers, [out, in], are a transposed b.
	TransA, TransB bool
}

// GEMMInt8Geometry is the launch of a product with that many rows and columns: threadgroups for columns and rows.
func GEMMInt8Geometry(m, n int) (groups, threads runtime.Size) {
	return runtime.D2(ceilDiv(n, GEMMInt8Tile), ceilDiv(m, GEMMInt8Tile)), runtime.D1(GEMMInt8Threads)
}

// GEMMInt8 multiplies matrices of signed bytes:
//
//	c[m, n] = sum over k of a[m, k] * b[k, n],  m < M, n < N, k < K
//
// exactly: K is limited so that no sum leaves the range of int32, whatever the bytes.
//
// Shapes: a [M, K], or [K, M] with TransA, b [K, N], or [N, K] with TransB, c [M, N]; longer slices are allowed, and a and b
// may start at any byte. M == 0 or N == 0 is a no-op; K is 1 to MaxGEMMInt8K.
//
// Slots: 0 a, 1 b, 2 c; scalars 3 M, 4 N, 5 K (uint32).
//
// c must not overlap a or b; they may overlap each other. Exact, and so the same on every device and for every shape that
// an element is computed in. Errors: ErrLimit if K is more than MaxGEMMInt8K; ErrShape, ErrForeign, ErrClosed, ErrOverlap.
func GEMMInt8(p *runtime.Pass, c runtime.Slice[int32], a, b runtime.Slice[int8], d GEMMInt8Dims) error {
	return gemmInt8("nn.GEMMInt8", p, c.View(), a, b, nil, d, nil)
}

// UnsafeGEMMInt8 is [GEMMInt8] with scalars 3 to 5 in the caller's own storage.
//
// Unsafe: see the package documentation. A K that is changed later must stay within MaxGEMMInt8K.
func UnsafeGEMMInt8(p *runtime.Pass, c runtime.Slice[int32], a, b runtime.Slice[int8], d GEMMInt8Dims, bind func(*runtime.ScalarBinder) error) error {
	return gemmInt8("nn.UnsafeGEMMInt8", p, c.View(), a, b, nil, d, bind)
}

// ValidateGEMMInt8 makes the checks of [GEMMInt8] without encoding anything: for callers that set up scalars of their own
// first.
func ValidateGEMMInt8(rt *runtime.Runtime, c runtime.Slice[int32], a, b runtime.Slice[int8], d GEMMInt8Dims) error {
	ck := startOn("nn.ValidateGEMMInt8", rt)
	int8Product(&ck, c.View(), a, b, nil, &d)
	return ck.result()
}

// GEMMInt8Scales turn the exact sums of a product into float32.
type GEMMInt8Scales struct {
	// Columns has a scale for each column of the result, [N].
	Columns runtime.Slice[float32]
	// Rows has a scale for each row, [M], or is the zero Slice: none.
	Rows runtime.Slice[float32]
}

// GEMMInt8Scaled is [GEMMInt8] with a scale for each column, and if wanted one for each row:
//
//	c[m, n] = float32(sum over k of a[m, k] * b[k, n]) * Columns[n] * Rows[m]
//
// The sum is exact; it is rounded to float32, and so is the product with each scale, in this order. What overflows is an
// infinity, and numbers below 2^-126 may be flushed to zero.
//
// Shapes, beyond those of GEMMInt8: Columns [N], Rows [M] or the zero Slice. All start at a multiple of 4 bytes.
//
// Slots: 0 a, 1 b, 2 c, 8 Columns, 9 Rows (Columns if there are none); scalars 3 M, 4 N, 5 K, 10 whether there are Rows
// (uint32).
//
// c must not overlap anything; inputs may overlap. Deterministic; an element depends on nothing but its row, its column and
// their scales. Errors: as GEMMInt8.
func GEMMInt8Scaled(p *runtime.Pass, c runtime.Slice[float32], a, b runtime.Slice[int8], s GEMMInt8Scales, d GEMMInt8Dims) error {
	return gemmInt8("nn.GEMMInt8Scaled", p, c.View(), a, b, &s, d, nil)
}

// UnsafeGEMMInt8Scaled is [GEMMInt8Scaled] with scalars 3 to 5 and 10 in the caller's own storage.
//
// Unsafe: see the package documentation, and [UnsafeGEMMInt8]. Slot 10 may become 1 later only if there are Rows.
func UnsafeGEMMInt8Scaled(p *runtime.Pass, c runtime.Slice[float32], a, b runtime.Slice[int8], s GEMMInt8Scales, d GEMMInt8Dims,
	bind func(*runtime.ScalarBinder) error) error {
	return gemmInt8("nn.UnsafeGEMMInt8Scaled", p, c.View(), a, b, &s, d, bind)
}

// ValidateGEMMInt8Scaled makes the checks of [GEMMInt8Scaled] without encoding anything.
func ValidateGEMMInt8Scaled(rt *runtime.Runtime, c runtime.Slice[float32], a, b runtime.Slice[int8], s GEMMInt8Scales, d GEMMInt8Dims) error {
	ck := startOn("nn.ValidateGEMMInt8Scaled", rt)
	int8Product(&ck, c.View(), a, b, &s, &d)
	return ck.result()
}

// int8Views are the exact ranges that a product touches.
type int8Views struct {
	a, b, c, columns, rows runtime.View

	hasRows, work bool
}

func int8Product(ck *check, c runtime.View, a, b runtime.Slice[int8], s *GEMMInt8Scales, d *GEMMInt8Dims) (v int8Views) {
	ck.dim("M", d.M, 0)
	ck.dim("N", d.N, 0)
	ck.dim("K", d.K, 1)
	if ck.err == nil && d.K > MaxGEMMInt8K {
		ck.refuse("K", strconv.Itoa(d.K), "at most "+strconv.Itoa(MaxGEMMInt8K)+", so that no sum overflows", runtime.ErrLimit)
	}
	na, nb, nc := ck.elements("M * K", d.M, d.K), ck.elements("K * N", d.K, d.N), ck.elements("M * N", d.M, d.N)
	ck.memory(memory{"a", a.View(), na, 1}, memory{"b", b.View(), nb, 1})
	if s != nil {
		ck.memory(memory{"Columns", s.Columns.View(), d.N, 4})
		v.hasRows = !isZero(s.Rows.View())
		if v.hasRows {
			ck.memory(memory{"Rows", s.Rows.View(), d.M, 4})
		}
	}
	ck.memory(memory{"c", c, nc, 4})
	if ck.err != nil || nc == 0 {
		return v
	}
	v.a, v.b, v.c = first(a.View(), na, 1), first(b.View(), nb, 1), first(c, nc, 4)
	out := operand{"c", v.c}
	ck.disjoint(1, out, operand{"a", v.a}, operand{"b", v.b})
	if s != nil {
		v.columns = first(s.Columns.View(), d.N, 4)
		v.rows = v.columns // a slot must not be empty; the kernel does not read this one
		ck.disjoint(1, out, operand{"Columns", v.columns})
		if v.hasRows {
			v.rows = first(s.Rows.View(), d.M, 4)
			ck.disjoint(1, out, operand{"Rows", v.rows})
		}
	}
	v.work = ck.err == nil
	return v
}

// int8Kernels are the kernels by what is transposed: neither, b, a, both.
var int8Kernels, int8ScaledKernels = [4]string{"gemm_int8_nn_i32", "gemm_int8_nt_i32", "gemm_int8_tn_i32", "gemm_int8_tt_i32"},
	[4]string{"gemm_int8_nn_f32", "gemm_int8_nt_f32", "gemm_int8_tn_f32", "gemm_int8_tt_f32"}

func gemmInt8(fn string, p *runtime.Pass, c runtime.View, a, b runtime.Slice[int8], s *GEMMInt8Scales, d GEMMInt8Dims,
	bind func(*runtime.ScalarBinder) error) error {
	ck := start(fn, p)
	v := int8Product(&ck, c, a, b, s, &d)
	if !v.work {
		return ck.result()
	}
	kernels := &int8Kernels
	if s != nil {
		kernels = &int8ScaledKernels
	}
	l := p.Kernel(kernels[2*flagOf(d.TransA)+flagOf(d.TransB)])
	l.Read(0, v.a)
	l.Read(1, v.b)
	l.Write(2, v.c)
	l.Uint32(3, uint32(d.M))
	l.Uint32(4, uint32(d.N))
	l.Uint32(5, uint32(d.K))
	if s != nil {
		l.Read(8, v.columns)
		l.Read(9, v.rows)
		l.Uint32(10, flagOf(v.hasRows))
	}
	l.Scalars(bind)
	return l.Dispatch(GEMMInt8Geometry(d.M, d.N))
}
