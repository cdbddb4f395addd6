package quant

import (
	"fmt"
	"math"
	"strconv"

	"github.com/ingot-metal/ingot/runtime/half"
)

const (
	// CodesPerWord is how many 4-bit codes a word holds.
	CodesPerWord = 8
	// MaxQ4MLXRows and MaxQ4MLXCols keep every index within a bank in 32 bits before it is multiplied.
	MaxQ4MLXRows = math.MaxInt32
	MaxQ4MLXCols = math.MaxInt32
)

// Q4MLX is a matrix of weights in MLX's 4-bit affine format, with scales and biases interleaved; see the package
// documentation for the layout.
type Q4MLX struct {
	Rows, Cols, GroupSize int
	Packed                []uint32
	ScalesBiases          []half.BFloat16
}

// CheckQ4MLX says why a matrix of that shape has no 4-bit affine form with that group size, or nil.
func CheckQ4MLX(rows, cols, groupSize int) error {
	return checkQ4MLX("CheckQ4MLX", rows, cols, groupSize)
}

func checkQ4MLX(fn string, rows, cols, groupSize int) error {
	if groupSize < 32 || 512%groupSize != 0 {
		return shape(fn, "group size", strconv.Itoa(groupSize), "32, 64, 128, 256 or 512")
	}
	return checkAffineShape(fn, rows, cols, groupSize)
}

// checkAffineShape refuses what is no matrix in whole groups, or takes more bytes than an int can count.
func checkAffineShape(fn string, rows, cols, groupSize int) error {
	switch {
	case rows < 1 || rows > MaxQ4MLXRows:
		return shape(fn, "rows", strconv.Itoa(rows), fmt.Sprintf("1 to %d", MaxQ4MLXRows))
	case cols < 1 || cols > MaxQ4MLXCols:
		return shape(fn, "columns", strconv.Itoa(cols), fmt.Sprintf("1 to %d", MaxQ4MLXCols))
	case cols%groupSize != 0:
		return shape(fn, "columns", strconv.Itoa(cols), fmt.Sprintf("a multiple of the group size %d", groupSize))
	case rows > math.MaxInt/8/cols:
		return shape(fn, "rows * columns", fmt.Sprintf("%d * %d", rows, cols), "a matrix that fits the address space")
	}
	return nil
}

// Q4MLXSizes are the lengths of Packed and ScalesBiases for a matrix of that shape.
func Q4MLXSizes(rows, cols, groupSize int) (words, scalesBiases int, err error) {
	if err := checkQ4MLX("Q4MLXSizes", rows, cols, groupSize); err != nil {
		return 0, 0, err
	}
	return rows * (cols / CodesPerWord), 2 * rows * (cols / groupSize), nil
}

// Validate says why q is not a matrix in this format, or nil: shape, lengths, and scales and biases that are finite.
func (q Q4MLX) Validate() error {
	const fn = "Q4MLX.Validate"
	if err := q.lengths(fn); err != nil {
		return err
	}
	return checkFinite(fn, "scales and biases", q.ScalesBiases)
}

func (q Q4MLX) lengths(fn string) error {
	if err := checkQ4MLX(fn, q.Rows, q.Cols, q.GroupSize); err != nil {
		return err
	}
	if need := q.Rows * (q.Cols / CodesPerWord); len(q.Packed) != need {
		return shape(fn, "packed", fmt.Sprintf("%d words", len(q.Packed)), fmt.Sprintf("%d for %d * %d codes", need, q.Rows, q.Cols))
	}
	if need := 2 * q.Rows * (q.Cols / q.GroupSize); len(q.ScalesBiases) != need {
		return shape(fn, "scales and biases", fmt.Sprintf("%d numbers", len(q.ScalesBiases)), fmt.Sprintf("%d, two for each group of %d", need, q.GroupSize))
	}
	return nil
}

func checkFinite(fn, arg string, s []half.BFloat16) error {
	for i, b := range s {
		if b.IsNaN() || b.IsInf(0) {
			return &Error{Func: fn, Arg: arg, Have: fmt.Sprintf("%v at index %d", b, i), Need: "finite numbers", Err: ErrValue}
		}
	}
	return nil
}

// newQ4MLX has the shape and zeros.
func newQ4MLX(rows, cols, groupSize int) Q4MLX {
	return Q4MLX{rows, cols, groupSize, make([]uint32, rows*(cols/CodesPerWord)), make([]half.BFloat16, 2*rows*(cols/groupSize))}
}

// RowRange is rows i up to j, in the same memory.
func (q Q4MLX) RowRange(i, j int) (Q4MLX, error) {
	const fn = "Q4MLX.RowRange"
	if err := q.lengths(fn); err != nil {
		return Q4MLX{}, err
	}
	if i < 0 || j <= i || j > q.Rows {
		return Q4MLX{}, shape(fn, fmt.Sprintf("rows [%d:%d]", i, j), fmt.Sprintf("%d rows", q.Rows), "0 <= i < j <= rows")
	}
	words, pairs := q.Cols/CodesPerWord, 2*(q.Cols/q.GroupSize)
	return Q4MLX{j - i, q.Cols, q.GroupSize, q.Packed[i*words : j*words : j*words], q.ScalesBiases[i*pairs : j*pairs : j*pairs]}, nil
}

// ConcatRows is one matrix with the rows of all, in new memory: queries, keys and values that are multiplied at once, for
// example. Columns and group size must agree.
func ConcatRows(parts ...Q4MLX) (Q4MLX, error) {
	const fn = "ConcatRows"
	if len(parts) == 0 {
		return Q4MLX{}, shape(fn, "parts", "none", "at least one matrix")
	}
	rows, first := 0, parts[0]
	for i, p := range parts {
		if err := p.lengths(fn); err != nil {
			return Q4MLX{}, ofPart(err, i)
		}
		if p.Cols != first.Cols || p.GroupSize != first.GroupSize {
			return Q4MLX{}, shape(fn, fmt.Sprintf("part %d", i), fmt.Sprintf("%d columns in groups of %d", p.Cols, p.GroupSize),
				fmt.Sprintf("%d in groups of %d, as in part 0", first.Cols, first.GroupSize))
		}
		if p.Rows > MaxQ4MLXRows-rows {
			return Q4MLX{}, shape(fn, fmt.Sprintf("rows of part %d", i), fmt.Sprintf("%d after %d", p.Rows, rows), fmt.Sprintf("at most %d together", MaxQ4MLXRows))
		}
		rows += p.Rows
	}
	out := Q4MLX{Rows: rows, Cols: first.Cols, GroupSize: first.GroupSize,
		Packed:       make([]uint32, 0, rows*(first.Cols/CodesPerWord)),
		ScalesBiases: make([]half.BFloat16, 0, 2*rows*(first.Cols/first.GroupSize))}
	for _, p := range parts {
		out.Packed = append(out.Packed, p.Packed...)
		out.ScalesBiases = append(out.ScalesBiases, p.ScalesBiases...)
	}
	return out, nil
}

// ofPart says which of several matrices an error is about.
func ofPart(err error, i int) error {
	if e, ok := err.(*Error); ok {
		of := *e
		of.Arg = fmt.Sprintf("%s of part %d", e.Arg, i)
		return &of
	}
	return err
}

// PackCodes packs one code, 0 to 15, per byte into words of eight. There must be eight codes for each word.
func PackCodes(dst []uint32, codes []byte) error {
	const fn = "PackCodes"
	if len(codes)%CodesPerWord != 0 || len(dst) != len(codes)/CodesPerWord {
		return shape(fn, "dst", fmt.Sprintf("%d words for %d codes", len(dst), len(codes)), "eight codes for each word")
	}
	for i, c := range codes {
		if c > 15 {
			return &Error{Func: fn, Arg: "codes", Have: fmt.Sprintf("%d at index %d", c, i), Need: "0 to 15", Err: ErrValue}
		}
	}
	for i := range dst {
		c := codes[CodesPerWord*i : CodesPerWord*i+CodesPerWord]
		dst[i] = uint32(c[0]) | uint32(c[1])<<4 | uint32(c[2])<<8 | uint32(c[3])<<12 |
			uint32(c[4])<<16 | uint32(c[5])<<20 | uint32(c[6])<<24 | uint32(c[7])<<28
	}
	return nil
}

// UnpackCodes is the inverse of PackCodes.
func UnpackCodes(dst []byte, words []uint32) error {
	if len(dst)%CodesPerWord != 0 || len(dst)/CodesPerWord != len(words) {
		return shape("UnpackCodes", "dst", fmt.Sprintf("%d codes for %d words", len(dst), len(words)), "eight codes for each word")
	}
	for i, w := range words {
		for j := range CodesPerWord {
			dst[CodesPerWord*i+j] = byte(w >> (4 * j) & 15)
		}
	}
	return nil
}
