package nn

import (
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// Q4Bank is a matrix of weights on the device in the signed 4-bit format with zero points, w = scale * (code - zero),
// row-major: the layout of [quant.Q4]. It has at least one row, and a group size that is a multiple of 8 and divides its
// columns. [Q4MLXBank] is another format, and so another type. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type Q4Bank struct {
	packed           runtime.Slice[uint32]
	scales, zeros    runtime.Slice[float32]
	rows, cols, size int
}

// NewQ4Bank makes a bank of memory that holds one: packed has rows * cols / 8 words, eight codes each with the first in the
// lowest bits, in two's complement; scales and zeros have rows * cols / groupSize numbers. All have exactly these lengths
// and belong to the same runtime, and start at a multiple of 4 bytes. The group size is a multiple of 8 and divides cols.
//
// The memory stays the caller's.
func NewQ4Bank(packed runtime.Slice[uint32], scales, zeros runtime.Slice[float32], rows, cols, groupSize int) (Q4Bank, error) {
	const fn = "nn.NewQ4Bank"
	words, groups, err := quant.Q4Sizes(rows, cols, groupSize)
	if err != nil {
		return Q4Bank{}, shapeOf(fn, err)
	}
	c := check{fn: fn, rt: packed.Runtime(), of: "packed"}
	c.owned("packed", packed.View())
	c.owned("scales", scales.View())
	c.owned("zeros", zeros.View())
	c.exact("packed", packed.Len(), words)
	c.exact("scales", scales.Len(), groups)
	c.exact("zeros", zeros.Len(), groups)
	c.capacity("packed", packed.View(), words, 4, 4)
	c.capacity("scales", scales.View(), groups, 4, 4)
	c.capacity("zeros", zeros.View(), groups, 4, 4)
	if c.err != nil {
		return Q4Bank{}, c.err
	}
	return Q4Bank{packed, scales, zeros, rows, cols, groupSize}, nil
}

// UploadQ4 copies a matrix to new device memory. Release gives it back.
func UploadQ4(rt *runtime.Runtime, q quant.Q4) (Q4Bank, error) {
	const fn = "nn.UploadQ4"
	if err := q.Validate(); err != nil {
		return Q4Bank{}, shapeOf(fn, err)
	}
	u := uploads{fn: fn, rt: rt}
	packed, scales, zeros := uploaded(&u, q.Packed), uploaded(&u, q.Scales), uploaded(&u, q.Zeros)
	if u.err != nil {
		return Q4Bank{}, u.undo()
	}
	return NewQ4Bank(packed, scales, zeros, q.Rows, q.Cols, q.GroupSize)
}

// Rows is the number of rows: outputs of a product, or tokens of an embedding table.
func (b Q4Bank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product, or the width of an embedding.
func (b Q4Bank) Cols() int { return b.cols }

// GroupSize is the number of columns that share a scale and a zero point.
func (b Q4Bank) GroupSize() int { return b.size }

// Packed is the memory of the codes.
func (b Q4Bank) Packed() runtime.Slice[uint32] { return b.packed }

// Scales is the memory of the scales.
func (b Q4Bank) Scales() runtime.Slice[float32] { return b.scales }

// Zeros is the memory of the zero points.
func (b Q4Bank) Zeros() runtime.Slice[float32] { return b.zeros }

// RowRange is a bank of rows i up to j in the same memory. It cannot be released.
func (b Q4Bank) RowRange(i, j int) (Q4Bank, error) {
	if err := rowRange("nn.Q4Bank.RowRange", "NewQ4Bank", i, j, b.rows, 1); err != nil {
		return Q4Bank{}, err
	}
	words, groups := b.cols/quant.CodesPerWord, b.cols/b.size
	return Q4Bank{b.packed.Slice(i*words, j*words), b.scales.Slice(i*groups, j*groups), b.zeros.Slice(i*groups, j*groups), j - i, b.cols, b.size}, nil
}

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b Q4Bank) Release() error {
	return releaseBank("nn.Q4Bank.Release", "NewQ4Bank", b.rows, bankPart{"packed", b.packed.Release}, bankPart{"scales", b.scales.Release}, bankPart{"zeros", b.zeros.Release})
}
