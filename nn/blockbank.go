package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// BlockBank is a matrix of weights on the device in a block format of GGUF files, row-major: each row is a run of whole
// blocks, as [quant.BlockFormat] has them. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type BlockBank struct {
	data       runtime.Slice[uint8]
	format     quant.BlockFormat
	rows, cols int
}

// NewBlockBank makes a bank of memory that holds one: exactly rows * cols weights in format, cols of whole blocks. The memory
// starts at a multiple of 2 bytes, of 16 for Q4_K and Q5_K, whose blocks are multiples of 16 bytes long.
//
// The memory stays the caller's.
func NewBlockBank(format quant.BlockFormat, data runtime.Slice[uint8], rows, cols int) (BlockBank, error) {
	return newBlockBank("nn.NewBlockBank", format, data, rows, cols)
}

func newBlockBank(fn string, format quant.BlockFormat, data runtime.Slice[uint8], rows, cols int) (BlockBank, error) {
	c := check{fn: fn, rt: data.Runtime()}
	size := c.blocks(format, rows, cols)
	c.owned("data", data.View())
	c.exact("data", data.Len(), size)
	if c.err == nil {
		c.capacity("data", data.View(), size, 1, WeightTypeOf(format).info().align)
	}
	if c.err != nil {
		return BlockBank{}, c.err
	}
	return BlockBank{data, format, rows, cols}, nil
}

// blocks is the length in bytes of a matrix in a block format.
func (c *check) blocks(format quant.BlockFormat, rows, cols int) int {
	t := WeightTypeOf(format)
	if c.err == nil && t == 0 {
		c.refuse("format", format.String(), "one of quant.BlockFormats", runtime.ErrShape)
	}
	c.dim("rows", rows, 1)
	c.dim("cols", cols, 1)
	if c.err == nil && cols%format.Values() != 0 {
		c.refuse("cols", fmt.Sprint(cols), fmt.Sprintf("a multiple of %d in %v", format.Values(), format), runtime.ErrShape)
	}
	return c.elements("rows * bytes of a row", rows, t.RowBytes(cols))
}

// UploadBlocks copies a matrix in a block format, such as quant.BlockFormat.Encode makes, to new device memory. Release gives it
// back.
func UploadBlocks(rt *runtime.Runtime, format quant.BlockFormat, data []byte, rows, cols int) (BlockBank, error) {
	const fn = "nn.UploadBlocks"
	c := startOn(fn, rt)
	size := c.blocks(format, rows, cols)
	c.exact("data", len(data), size)
	if c.err != nil {
		return BlockBank{}, c.err
	}
	u := uploads{fn: fn, rt: rt}
	s := uploaded(&u, data)
	if u.err != nil {
		return BlockBank{}, u.err
	}
	return newBlockBank(fn, format, s, rows, cols)
}

// Format is the block format.
func (b BlockBank) Format() quant.BlockFormat { return b.format }

// Type is the format as a type of weights.
func (b BlockBank) Type() WeightType { return WeightTypeOf(b.format) }

// Rows is the number of rows: outputs of a product.
func (b BlockBank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product.
func (b BlockBank) Cols() int { return b.cols }

// Data is the memory of the blocks.
func (b BlockBank) Data() runtime.Slice[uint8] { return b.data }

// RowRange is a bank of rows i up to j in the same memory. It cannot be released.
func (b BlockBank) RowRange(i, j int) (BlockBank, error) {
	if err := rowRange("nn.BlockBank.RowRange", "NewBlockBank", i, j, b.rows, 1); err != nil {
		return BlockBank{}, err
	}
	n := b.Type().RowBytes(b.cols)
	return BlockBank{b.data.Slice(i*n, j*n), b.format, j - i, b.cols}, nil
}

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b BlockBank) Release() error {
	return releaseBank("nn.BlockBank.Release", "NewBlockBank", b.rows, bankPart{"data", b.data.Release})
}

func (b BlockBank) weights() weights {
	return weights{"NewBlockBank", [3]runtime.View{b.data.View()}, 1, b.rows, b.cols, 0, false}
}
