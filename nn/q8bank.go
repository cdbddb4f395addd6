package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// Q8Bank is a matrix of weights on the device in the 8-bit format with zero points, w = scale * (code - zero), row-major:
// the layout of [quant.Q8]. It has at least one row, and a group size that divides its columns. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type Q8Bank struct {
	codes            runtime.Slice[int8]
	scales, zeros    runtime.Slice[float32]
	rows, cols, size int
}

// NewQ8Bank makes a bank of memory that holds one: codes has rows * cols bytes, scales and zeros rows * cols / groupSize
// numbers. All have exactly these lengths and belong to the same runtime; scales and zeros start at a multiple of 4 bytes,
// and so does codes if groupSize is a multiple of 4. The group size divides cols.
//
// The memory stays the caller's.
func NewQ8Bank(codes runtime.Slice[int8], scales, zeros runtime.Slice[float32], rows, cols, groupSize int) (Q8Bank, error) {
	const fn = "nn.NewQ8Bank"
	bytes, groups, err := quant.Q8Sizes(rows, cols, groupSize)
	if err != nil {
		return Q8Bank{}, shapeOf(fn, err)
	}
	c := check{fn: fn, rt: codes.Runtime(), of: "codes"}
	c.owned("codes", codes.View())
	c.owned("scales", scales.View())
	c.owned("zeros", zeros.View())
	c.exact("codes", codes.Len(), bytes)
	c.exact("scales", scales.Len(), groups)
	c.exact("zeros", zeros.Len(), groups)
	align := 1
	if groupSize%4 == 0 {
		align = 4
	}
	c.capacity("codes", codes.View(), bytes, 1, align)
	c.capacity("scales", scales.View(), groups, 4, 4)
	c.capacity("zeros", zeros.View(), groups, 4, 4)
	if c.err != nil {
		return Q8Bank{}, c.err
	}
	return Q8Bank{codes, scales, zeros, rows, cols, groupSize}, nil
}

// exact refuses another length than needed.
func (c *check) exact(arg string, have, need int) {
	if c.err == nil && have != need {
		c.refuse(arg, fmt.Sprintf("%d elements", have), fmt.Sprintf("exactly %d for the bank's shape", need), runtime.ErrShape)
	}
}

// UploadQ8 copies a matrix to new device memory. Release gives it back.
func UploadQ8(rt *runtime.Runtime, q quant.Q8) (Q8Bank, error) {
	const fn = "nn.UploadQ8"
	if err := q.Validate(); err != nil {
		return Q8Bank{}, shapeOf(fn, err)
	}
	u := uploads{fn: fn, rt: rt}
	codes, scales, zeros := uploaded(&u, q.Codes), uploaded(&u, q.Scales), uploaded(&u, q.Zeros)
	if u.err != nil {
		return Q8Bank{}, u.undo()
	}
	return NewQ8Bank(codes, scales, zeros, q.Rows, q.Cols, q.GroupSize)
}

// Rows is the number of rows: outputs of a product.
func (b Q8Bank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product.
func (b Q8Bank) Cols() int { return b.cols }

// GroupSize is the number of columns that share a scale and a zero point.
func (b Q8Bank) GroupSize() int { return b.size }

// Codes is the memory of the codes.
func (b Q8Bank) Codes() runtime.Slice[int8] { return b.codes }

// Scales is the memory of the scales.
func (b Q8Bank) Scales() runtime.Slice[float32] { return b.scales }

// Zeros is the memory of the zero points.
func (b Q8Bank) Zeros() runtime.Slice[float32] { return b.zeros }

// RowRange is a bank of rows i up to j in the same memory. It cannot be released.
func (b Q8Bank) RowRange(i, j int) (Q8Bank, error) {
	if err := rowRange("nn.Q8Bank.RowRange", "NewQ8Bank", i, j, b.rows, 1); err != nil {
		return Q8Bank{}, err
	}
	groups := b.cols / b.size
	return Q8Bank{b.codes.Slice(i*b.cols, j*b.cols), b.scales.Slice(i*groups, j*groups), b.zeros.Slice(i*groups, j*groups), j - i, b.cols, b.size}, nil
}

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b Q8Bank) Release() error {
	return releaseBank("nn.Q8Bank.Release", "NewQ8Bank", b.rows, bankPart{"codes", b.codes.Release}, bankPart{"scales", b.scales.Release}, bankPart{"zeros", b.zeros.Release})
}

func (b Q8Bank) weights() weights {
	return weights{"NewQ8Bank", [3]runtime.View{b.codes.View(), b.scales.View(), b.zeros.View()}, 3, b.rows, b.cols, b.size, false}
}
