package nn

import "github.com/ingot-metal/ingot/runtime"

// SoftmaxRowsF32 is the softmax of each row:
//
//	out[r, i] = exp(x[r, i] - m) / sum over j of exp(x[r, j] - m),  m = max over j of x[r, j],  r < rows, i < cols
//
// Without the maximum the exponentials would overflow from 88 on. A row that is -inf throughout, such as one that is all
// masked, is uniform: 1 / cols. A row that has NaN or +inf is NaN.
//
// Shapes: x and out [rows, cols]; longer slices are allowed. rows == 0 is a no-op; cols is at least 1.
//
// Slots: 0 x, 1 out; scalars 2 cols, 3 rows (uint32).
//
// out may be exactly x; otherwise it must not overlap it. Deterministic on one device; the order in which a simdgroup sums
// is the device's. Errors: ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap.
func SoftmaxRowsF32(p *runtime.Pass, out, x runtime.Slice[float32], rows, cols int) error {
	return rowReduce("nn.SoftmaxRowsF32", "softmax_rows_f32", p, out, x, rows, cols, true, nil)
}

// UnsafeSoftmaxRowsF32 is [SoftmaxRowsF32] with scalars 2 and 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeSoftmaxRowsF32(p *runtime.Pass, out, x runtime.Slice[float32], rows, cols int, bind func(*runtime.ScalarBinder) error) error {
	return rowReduce("nn.UnsafeSoftmaxRowsF32", "softmax_rows_f32", p, out, x, rows, cols, true, bind)
}

// RowSumF32 adds up each row:
//
//	out[r] = sum over i of x[r, i],  r < rows, i < cols
//
// Shapes: x [rows, cols], out [rows]; longer slices are allowed. rows == 0 is a no-op; cols is at least 1.
//
// Slots: 0 x, 1 out; scalars 2 cols, 3 rows (uint32).
//
// out must not overlap x. Deterministic on one device; the order in which a simdgroup sums is the device's.
// Errors: ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap.
func RowSumF32(p *runtime.Pass, out, x runtime.Slice[float32], rows, cols int) error {
	return rowReduce("nn.RowSumF32", "row_sum_f32", p, out, x, rows, cols, false, nil)
}

// UnsafeRowSumF32 is [RowSumF32] with scalars 2 and 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeRowSumF32(p *runtime.Pass, out, x runtime.Slice[float32], rows, cols int, bind func(*runtime.ScalarBinder) error) error {
	return rowReduce("nn.UnsafeRowSumF32", "row_sum_f32", p, out, x, rows, cols, false, bind)
}

// RowMaxF32 is the greatest number of each row:
//
//	out[r] = max over i of x[r, i],  r < rows, i < cols
//
// A row that has NaN gives NaN. Of a zero and a negative zero it is either.
//
// Shapes: x [rows, cols], out [rows]; longer slices are allowed. rows == 0 is a no-op; cols is at least 1.
//
// Slots: 0 x, 1 out; scalars 2 cols, 3 rows (uint32).
//
// out must not overlap x. Deterministic. Errors: ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap.
func RowMaxF32(p *runtime.Pass, out, x runtime.Slice[float32], rows, cols int) error {
	return rowReduce("nn.RowMaxF32", "row_max_f32", p, out, x, rows, cols, false, nil)
}

// UnsafeRowMaxF32 is [RowMaxF32] with scalars 2 and 3 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeRowMaxF32(p *runtime.Pass, out, x runtime.Slice[float32], rows, cols int, bind func(*runtime.ScalarBinder) error) error {
	return rowReduce("nn.UnsafeRowMaxF32", "row_max_f32", p, out, x, rows, cols, false, bind)
}

// rowReduce launches a kernel that has a threadgroup for each row and gives a number for each element, or one for the row.
func rowReduce(fn, kernel string, p *runtime.Pass, out, x runtime.Slice[float32], rows, cols int, elements bool,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.dim("rows", rows, 0)
	c.dim("cols", cols, 1)
	n := c.elements("rows * cols", rows, cols)
	results := rows
	if elements {
		results = n
	}
	c.memory(memory{"x", x.View(), n, 4}, memory{"out", out.View(), results, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	o, in := first(out.View(), results, 4), first(x.View(), n, 4)
	if elements {
		c.sameOrDisjoint(operand{"out", o}, operand{"x", in})
	} else {
		c.disjoint(1, operand{"out", o}, operand{"x", in})
	}
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(kernel)
	l.Read(0, in)
	l.Write(1, o)
	l.Uint32(2, uint32(cols))
	l.Uint32(3, uint32(rows))
	l.Scalars(bind)
	return dispatchRows(l, rows, cols)
}
