package quant

import (
	"fmt"
	"math"
	"strconv"
)

// MaxQ8Rows and MaxQ8Cols keep every index within a bank in 32 bits before it is multiplied.
const (
	MaxQ8Rows = math.MaxInt32
	MaxQ8Cols = math.MaxInt32
)

// Q8 is a matrix of weights in the 8-bit format with zero points; see the package documentation for the layout.
type Q8 struct {
	Rows, Cols, GroupSize int
	Codes                 []int8
	Scales, Zeros         []float32
}

// CheckQ8 says why a matrix of that shape has no 8-bit form with that group size, or nil.
func CheckQ8(rows, cols, groupSize int) error { return checkQ8("CheckQ8", rows, cols, groupSize) }

func checkQ8(fn string, rows, cols, groupSize int) error {
	switch {
	case groupSize < 1:
		return shape(fn, "group size", strconv.Itoa(groupSize), "at least 1")
	case rows < 1 || rows > MaxQ8Rows:
		return shape(fn, "rows", strconv.Itoa(rows), fmt.Sprintf("1 to %d", MaxQ8Rows))
	case cols < 1 || cols > MaxQ8Cols:
		return shape(fn, "columns", strconv.Itoa(cols), fmt.Sprintf("1 to %d", MaxQ8Cols))
	case cols%groupSize != 0:
		return shape(fn, "columns", strconv.Itoa(cols), fmt.Sprintf("a multiple of the group size %d", groupSize))
	case rows > math.MaxInt/8/cols:
		return shape(fn, "rows * columns", fmt.Sprintf("%d * %d", rows, cols), "a matrix that fits the address space")
	}
	return nil
}

// Q8Sizes are the length of Codes and that of Scales and of Zeros for a matrix of that shape.
func Q8Sizes(rows, cols, groupSize int) (codes, groups int, err error) {
	if err := checkQ8("Q8Sizes", rows, cols, groupSize); err != nil {
		return 0, 0, err
	}
	return rows * cols, rows * (cols / groupSize), nil
}

// Validate says why q is not a matrix in this format, or nil: shape, lengths, and scales and zeros that are finite.
func (q Q8) Validate() error {
	const fn = "Q8.Validate"
	if err := q.lengths(fn); err != nil {
		return err
	}
	if err := checkFinite32(fn, "scales", q.Scales); err != nil {
		return err
	}
	return checkFinite32(fn, "zeros", q.Zeros)
}

func (q Q8) lengths(fn string) error {
	if err := checkQ8(fn, q.Rows, q.Cols, q.GroupSize); err != nil {
		return err
	}
	if need := q.Rows * q.Cols; len(q.Codes) != need {
		return shape(fn, "codes", fmt.Sprintf("%d codes", len(q.Codes)), fmt.Sprintf("%d for %d * %d weights", need, q.Rows, q.Cols))
	}
	groups := q.Rows * (q.Cols / q.GroupSize)
	if len(q.Scales) != groups {
		return shape(fn, "scales", fmt.Sprintf("%d numbers", len(q.Scales)), fmt.Sprintf("%d, one for each group of %d", groups, q.GroupSize))
	}
	if len(q.Zeros) != groups {
		return shape(fn, "zeros", fmt.Sprintf("%d numbers", len(q.Zeros)), fmt.Sprintf("%d, one for each group of %d", groups, q.GroupSize))
	}
	return nil
}

// QuantizeQ8 quantises a row-major matrix. For each group, with the arithmetic in float64,
//
//	scale = float32(max((max - min) / 255, 2^-22 * max |w|))
//	zero  = float32(-128 - min / scale)
//	code  = round(w / scale + zero) to nearest, ties to even, limited to -128 .. 127
//
// so the ends of the range are codes -128 and 127. Groups of one value are as in [QuantizeQ4], and so is what is refused:
// weights that are not finite, and groups whose range, over 255, is not a normal float32.
//
// A weight comes back within half a step, scale / 2, and the rounding of the zero point, at most |zero| / 2^23 steps.
func QuantizeQ8(w []float32, rows, cols, groupSize int) (Q8, error) {
	const fn = "QuantizeQ8"
	codes, groups, err := Q8Sizes(rows, cols, groupSize)
	if err != nil {
		return Q8{}, checkQ8(fn, rows, cols, groupSize)
	}
	if len(w) != codes {
		return Q8{}, shape(fn, "w", fmt.Sprintf("%d numbers", len(w)), fmt.Sprintf("%d * %d", rows, cols))
	}
	if err := checkFinite32(fn, "w", w); err != nil {
		return Q8{}, err
	}
	q := Q8{rows, cols, groupSize, make([]int8, codes), make([]float32, groups), make([]float32, groups)}
	for g := range groups {
		group := w[g*groupSize : (g+1)*groupSize]
		low, high := group[0], group[0]
		for _, v := range group {
			low, high = min(low, v), max(high, v)
		}
		if low == high {
			q.Scales[g], q.Zeros[g] = constantQ4(low)
			continue // the codes are 0
		}
		scale := float32(max((float64(high)-float64(low))/255, q4LeastStep*float64(max(abs32(low), abs32(high)))))
		if scale < 0x1p-126 {
			return Q8{}, &Error{Func: fn, Arg: "w", Have: fmt.Sprintf("a group at index %d with the range %g to %g", g*groupSize, low, high),
				Need: "a range of at least 255 * 2^-126", Err: ErrValue}
		}
		zero := float32(-128 - float64(low)/float64(scale))
		q.Scales[g], q.Zeros[g] = scale, zero
		for i, v := range group {
			code := math.RoundToEven(float64(v)/float64(scale) + float64(zero))
			q.Codes[g*groupSize+i] = int8(min(max(code, -128), 127))
		}
	}
	return q, nil
}

// Dequantize writes the weights, scale * (code - zero), to dst, row-major: computed in float64 and rounded once.
func (q Q8) Dequantize(dst []float32) error {
	const fn = "Q8.Dequantize"
	if err := q.lengths(fn); err != nil {
		return err
	}
	if len(dst) != len(q.Codes) {
		return shape(fn, "dst", fmt.Sprintf("%d numbers", len(dst)), fmt.Sprintf("%d * %d", q.Rows, q.Cols))
	}
	for i, c := range q.Codes {
		g := i / q.GroupSize
		dst[i] = float32(float64(q.Scales[g]) * (float64(c) - float64(q.Zeros[g])))
	}
	return nil
}

// RowRange is rows i up to j, in the same memory.
func (q Q8) RowRange(i, j int) (Q8, error) {
	const fn = "Q8.RowRange"
	if err := q.lengths(fn); err != nil {
		return Q8{}, err
	}
	if i < 0 || j <= i || j > q.Rows {
		return Q8{}, shape(fn, fmt.Sprintf("rows [%d:%d]", i, j), fmt.Sprintf("%d rows", q.Rows), "0 <= i < j <= rows")
	}
	groups := q.Cols / q.GroupSize
	return Q8{j - i, q.Cols, q.GroupSize, q.Codes[i*q.Cols : j*q.Cols : j*q.Cols],
		q.Scales[i*groups : j*groups : j*groups], q.Zeros[i*groups : j*groups : j*groups]}, nil
}
