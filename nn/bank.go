package nn

import (
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Q4MLXBank is a matrix of weights on the device in MLX's 4-bit affine format, row-major, with scales and biases
// interleaved: the layout of [quant.Q4MLX]. It has at least one row, and a group size that divides its columns. A bank in
// another order is another type, so it cannot reach a kernel that would read it wrongly. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type Q4MLXBank struct {
	packed           runtime.Slice[uint32]
	sb               runtime.Slice[half.BFloat16]
	rows, cols, size int
}

// NewQ4MLXBank makes a bank of memory that holds one: packed has rows * cols / 8 words, eight codes each with the first
// in the lowest bits, scalesBiases the pairs of scale and bias, 2 * rows * cols / groupSize numbers. Both have exactly these
// lengths and belong to the same runtime; packed starts at a multiple of 8 bytes, scalesBiases at one of 4. The group size
// is 32, 64, 128, 256 or 512 and divides cols.
//
// The memory stays the caller's.
func NewQ4MLXBank(packed runtime.Slice[uint32], scalesBiases runtime.Slice[half.BFloat16], rows, cols, groupSize int) (Q4MLXBank, error) {
	const fn = "nn.NewQ4MLXBank"
	words, pairs, err := quant.Q4MLXSizes(rows, cols, groupSize)
	if err != nil {
		return Q4MLXBank{}, shapeOf(fn, err)
	}
	c := check{fn: fn, rt: packed.Runtime(), of: "packed"}
	c.owned("packed", packed.View())
	c.owned("scalesBiases", scalesBiases.View())
	c.exact("packed", packed.Len(), words)
	c.exact("scalesBiases", scalesBiases.Len(), pairs)
	c.capacity("packed", packed.View(), words, 4, 8)
	c.capacity("scalesBiases", scalesBiases.View(), pairs, 2, 4)
	if c.err != nil {
		return Q4MLXBank{}, c.err
	}
	return Q4MLXBank{packed, scalesBiases, rows, cols, groupSize}, nil
}

// shapeOf turns an error of package quant into one of this package.
func shapeOf(fn string, err error) error {
	if e, ok := err.(*quant.Error); ok {
		sentinel := runtime.ErrShape
		if e.Err == quant.ErrValue {
			sentinel = runtime.ErrScalar
		}
		return &runtime.Error{Func: fn, Arg: e.Arg, Have: e.Have, Need: e.Need, Err: sentinel}
	}
	return err
}

// UploadQ4MLX copies a matrix to new device memory. Release gives it back.
func UploadQ4MLX(rt *runtime.Runtime, q quant.Q4MLX) (Q4MLXBank, error) {
	const fn = "nn.UploadQ4MLX"
	if err := q.Validate(); err != nil {
		return Q4MLXBank{}, shapeOf(fn, err)
	}
	u := uploads{fn: fn, rt: rt}
	packed, sb := uploaded(&u, q.Packed), uploaded(&u, q.ScalesBiases)
	if u.err != nil {
		return Q4MLXBank{}, u.undo()
	}
	return NewQ4MLXBank(packed, sb, q.Rows, q.Cols, q.GroupSize)
}

// Rows is the number of rows: outputs of a product, or tokens of an embedding table.
func (b Q4MLXBank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product, or the width of an embedding.
func (b Q4MLXBank) Cols() int { return b.cols }

// GroupSize is the number of columns that share a scale and a bias.
func (b Q4MLXBank) GroupSize() int { return b.size }

// Packed is the memory of the codes.
func (b Q4MLXBank) Packed() runtime.Slice[uint32] { return b.packed }

// ScalesBiases is the memory of the scales and biases.
func (b Q4MLXBank) ScalesBiases() runtime.Slice[half.BFloat16] { return b.sb }

// RowRange is a bank of rows i up to j in the same memory. It cannot be released.
func (b Q4MLXBank) RowRange(i, j int) (Q4MLXBank, error) {
	if err := rowRange("nn.Q4MLXBank.RowRange", "NewQ4MLXBank", i, j, b.rows, 1); err != nil {
		return Q4MLXBank{}, err
	}
	words, pairs := b.cols/quant.CodesPerWord, 2*(b.cols/b.size)
	return Q4MLXBank{b.packed.Slice(i*words, j*words), b.sb.Slice(i*pairs, j*pairs), j - i, b.cols, b.size}, nil
}

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b Q4MLXBank) Release() error {
	return releaseBank("nn.Q4MLXBank.Release", "NewQ4MLXBank", b.rows, bankPart{"packed", b.packed.Release}, bankPart{"scalesBiases", b.sb.Release})
}
