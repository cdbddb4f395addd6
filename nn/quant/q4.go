package quant

import (
	"fmt"
	"math"
	"strconv"
)

// MaxQ4Rows and MaxQ4Cols keep every index within a bank in 32 bits before it is multiplied.
const (
	MaxQ4Rows = math.MaxInt32
	MaxQ4Cols = math.MaxInt32
)

// Q4 is a matrix of weights in the signed 4-bit format with zero points; see the package documentation for the layout.
type Q4 struct {
	Rows, Cols, GroupSize int
	Packed                []uint32
	Scales, Zeros         []float32
}

// CheckQ4 says why a matrix of that shape has no signed 4-bit form with that group size, or nil.
func CheckQ4(rows, cols, groupSize int) error { return checkQ4("CheckQ4", rows, cols, groupSize) }

func checkQ4(fn string, rows, cols, groupSize int) error {
	switch {
	case groupSize < CodesPerWord || groupSize%CodesPerWord != 0:
		return shape(fn, "group size", strconv.Itoa(groupSize), fmt.Sprintf("a multiple of %d", CodesPerWord))
	case rows < 1 || rows > MaxQ4Rows:
		return shape(fn, "rows", strconv.Itoa(rows), fmt.Sprintf("1 to %d", MaxQ4Rows))
	case cols < 1 || cols > MaxQ4Cols:
		return shape(fn, "columns", strconv.Itoa(cols), fmt.Sprintf("1 to %d", MaxQ4Cols))
	case cols%groupSize != 0:
		return shape(fn, "columns", strconv.Itoa(cols), fmt.Sprintf("a multiple of the group size %d", groupSize))
	case rows > math.MaxInt/8/(cols/CodesPerWord):
		return shape(fn, "rows * columns", fmt.Sprintf("%d * %d", rows, cols), "a matrix that fits the address space")
	}
	return nil
}

// Q4Sizes are the length of Packed and that of Scales and of Zeros for a matrix of that shape.
func Q4Sizes(rows, cols, groupSize int) (words, groups int, err error) {
	if err := checkQ4("Q4Sizes", rows, cols, groupSize); err != nil {
		return 0, 0, err
	}
	return rows * (cols / CodesPerWord), rows * (cols / groupSize), nil
}

// Validate says why q is not a matrix in this format, or nil: shape, lengths, and scales and zeros that are finite.
func (q Q4) Validate() error {
	const fn = "Q4.Validate"
	if err := q.lengths(fn); err != nil {
		return err
	}
	if err := checkFinite32(fn, "scales", q.Scales); err != nil {
		return err
	}
	return checkFinite32(fn, "zeros", q.Zeros)
}

func (q Q4) lengths(fn string) error {
	if err := checkQ4(fn, q.Rows, q.Cols, q.GroupSize); err != nil {
		return err
	}
	if need := q.Rows * (q.Cols / CodesPerWord); len(q.Packed) != need {
		return shape(fn, "packed", fmt.Sprintf("%d words", len(q.Packed)), fmt.Sprintf("%d for %d * %d codes", need, q.Rows, q.Cols))
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

func checkFinite32(fn, arg string, s []float32) error {
	for i, v := range s {
		if v-v != 0 {
			return &Error{Func: fn, Arg: arg, Have: fmt.Sprintf("%v at index %d", v, i), Need: "finite numbers", Err: ErrValue}
		}
	}
	return nil
}

// PackSignedCodes packs one code, -8 to 7, per element into words of eight, as PackCodes does, in two's complement.
func PackSignedCodes(dst []uint32, codes []int8) error {
	const fn = "PackSignedCodes"
	if len(codes)%CodesPerWord != 0 || len(dst) != len(codes)/CodesPerWord {
		return shape(fn, "dst", fmt.Sprintf("%d words for %d codes", len(dst), len(codes)), "eight codes for each word")
	}
	for i, c := range codes {
		if c < -8 || c > 7 {
			return &Error{Func: fn, Arg: "codes", Have: fmt.Sprintf("%d at index %d", c, i), Need: "-8 to 7", Err: ErrValue}
		}
	}
	clear(dst)
	for i, c := range codes {
		dst[i/CodesPerWord] |= uint32(c&15) << (4 * (i % CodesPerWord))
	}
	return nil
}

// UnpackSignedCodes is the inverse of PackSignedCodes.
func UnpackSignedCodes(dst []int8, words []uint32) error {
	if len(dst)%CodesPerWord != 0 || len(dst)/CodesPerWord != len(words) {
		return shape("UnpackSignedCodes", "dst", fmt.Sprintf("%d codes for %d words", len(dst), len(words)), "eight codes for each word")
	}
	for i := range dst {
		dst[i] = signedCode(words[i/CodesPerWord], i%CodesPerWord)
	}
	return nil
}

// signedCode is the code at place i of a word.
func signedCode(word uint32, i int) int8 { return int8(word>>(4*i)<<4) >> 4 }

// q4LeastStep is the least scale of a group in relation to its greatest magnitude: then a zero point is at most some 2^22
// and its rounding to float32 a quarter of a step.
const q4LeastStep = 0x1p-22

// QuantizeQ4 quantises a row-major matrix. For each group, with the arithmetic in float64,
//
//	scale = float32(max((max - min) / 15, 2^-22 * max |w|))
//	zero  = float32(-8 - min / scale)
//	code  = round(w / scale + zero) to nearest, ties to even, limited to -8 .. 7
//
// so the ends of the range are codes -8 and 7. A group of one value v repeated has scale |v|, zero -1 or 1 and code 0,
// which gives back v exactly; a group of zeros has scale 1 and zero 0. Zero points need not be whole numbers.
//
// A weight comes back within half a step, scale / 2, and the rounding of the zero point, at most |zero| / 2^23 steps.
// Weights that are not finite are refused, and so are groups whose range, over 15, is not a normal float32, other than
// those of a single value: a device may flush smaller scales to zero.
func QuantizeQ4(w []float32, rows, cols, groupSize int) (Q4, error) {
	const fn = "QuantizeQ4"
	if err := checkQ4(fn, rows, cols, groupSize); err != nil {
		return Q4{}, err
	}
	if rows > math.MaxInt/cols || len(w) != rows*cols {
		return Q4{}, shape(fn, "w", fmt.Sprintf("%d numbers", len(w)), fmt.Sprintf("%d * %d", rows, cols))
	}
	if err := checkFinite32(fn, "w", w); err != nil {
		return Q4{}, err
	}
	groups := rows * (cols / groupSize)
	q := Q4{rows, cols, groupSize, make([]uint32, rows*(cols/CodesPerWord)), make([]float32, groups), make([]float32, groups)}
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
		scale := float32(max((float64(high)-float64(low))/15, q4LeastStep*float64(max(abs32(low), abs32(high)))))
		if scale < 0x1p-126 {
			return Q4{}, &Error{Func: fn, Arg: "w", Have: fmt.Sprintf("a group at index %d with the range %g to %g", g*groupSize, low, high),
				Need: "a range of at least 15 * 2^-126", Err: ErrValue}
		}
		zero := float32(-8 - float64(low)/float64(scale))
		q.Scales[g], q.Zeros[g] = scale, zero
		words := q.Packed[g*groupSize/CodesPerWord:]
		for i, v := range group {
			code := math.RoundToEven(float64(v)/float64(scale) + float64(zero))
			words[i/CodesPerWord] |= uint32(int32(min(max(code, -8), 7))&15) << (4 * (i % CodesPerWord))
		}
	}
	return q, nil
}

// constantQ4 is the scale and the zero point with which code 0 is v.
func constantQ4(v float32) (scale, zero float32) {
	switch {
	case v > 0:
		return v, -1
	case v < 0:
		return -v, 1
	}
	return 1, 0
}

// Dequantize writes the weights, scale * (code - zero), to dst, row-major: computed in float64 and rounded once.
func (q Q4) Dequantize(dst []float32) error {
	const fn = "Q4.Dequantize"
	if err := q.lengths(fn); err != nil {
		return err
	}
	if len(dst)%q.Cols != 0 || len(dst)/q.Cols != q.Rows {
		return shape(fn, "dst", fmt.Sprintf("%d numbers", len(dst)), fmt.Sprintf("%d * %d", q.Rows, q.Cols))
	}
	for i := range dst {
		g := i / q.GroupSize
		dst[i] = float32(float64(q.Scales[g]) * (float64(signedCode(q.Packed[i/CodesPerWord], i%CodesPerWord)) - float64(q.Zeros[g])))
	}
	return nil
}

// RowRange is rows i up to j, in the same memory.
func (q Q4) RowRange(i, j int) (Q4, error) {
	const fn = "Q4.RowRange"
	if err := q.lengths(fn); err != nil {
		return Q4{}, err
	}
	if i < 0 || j <= i || j > q.Rows {
		return Q4{}, shape(fn, fmt.Sprintf("rows [%d:%d]", i, j), fmt.Sprintf("%d rows", q.Rows), "0 <= i < j <= rows")
	}
	words, groups := q.Cols/CodesPerWord, q.Cols/q.GroupSize
	return Q4{j - i, q.Cols, q.GroupSize, q.Packed[i*words : j*words : j*words],
		q.Scales[i*groups : j*groups : j*groups], q.Zeros[i*groups : j*groups : j*groups]}, nil
}
