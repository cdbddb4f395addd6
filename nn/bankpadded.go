package nn

import (
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Q4MLXBlockedBank is a matrix of weights on the device in MLX's 4-bit affine format, in blocks of 16 rows, with scales and biases interleaved: the
// layout of [quant.Q4MLXBlocked], padded to whole blocks. It is not a [Q4MLXBank], so that each kernel gets the
// layout that it reads. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type Q4MLXBlockedBank struct {
	packed           runtime.Slice[uint32]
	sb               runtime.Slice[half.BFloat16]
	rows, cols, size int
}

// NewQ4MLXBlockedBank makes a bank of memory that holds one, of exactly the lengths of [quant.Q4MLXBlockedSizes]: the
// padding to a multiple of 16 rows is part of it. packed starts at a multiple of 8 bytes, scalesBiases at one of 4.
//
// The memory stays the caller's.
func NewQ4MLXBlockedBank(packed runtime.Slice[uint32], scalesBiases runtime.Slice[half.BFloat16], rows, cols, groupSize int) (Q4MLXBlockedBank, error) {
	const fn = "nn.NewQ4MLXBlockedBank"
	words, pairs, err := quant.Q4MLXBlockedSizes(rows, cols, groupSize)
	if err != nil {
		return Q4MLXBlockedBank{}, shapeOf(fn, err)
	}
	if err := checkPadded(fn, packed, scalesBiases, words, pairs); err != nil {
		return Q4MLXBlockedBank{}, err
	}
	return Q4MLXBlockedBank{packed, scalesBiases, rows, cols, groupSize}, nil
}

// UploadQ4MLXBlocked copies a matrix to new device memory. Release gives it back.
func UploadQ4MLXBlocked(rt *runtime.Runtime, q quant.Q4MLXBlocked) (Q4MLXBlockedBank, error) {
	const fn = "nn.UploadQ4MLXBlocked"
	if err := q.Validate(); err != nil {
		return Q4MLXBlockedBank{}, shapeOf(fn, err)
	}
	packed, sb, err := uploadPadded(fn, rt, q.Packed, q.ScalesBiases)
	if err != nil {
		return Q4MLXBlockedBank{}, err
	}
	return NewQ4MLXBlockedBank(packed, sb, q.Rows, q.Cols, q.GroupSize)
}

// Rows is the number of rows without the padding: outputs of a product.
func (b Q4MLXBlockedBank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product.
func (b Q4MLXBlockedBank) Cols() int { return b.cols }

// GroupSize is the number of columns that share a scale and a bias.
func (b Q4MLXBlockedBank) GroupSize() int { return b.size }

// Packed is the memory of the codes.
func (b Q4MLXBlockedBank) Packed() runtime.Slice[uint32] { return b.packed }

// ScalesBiases is the memory of the scales and biases.
func (b Q4MLXBlockedBank) ScalesBiases() runtime.Slice[half.BFloat16] { return b.sb }

// RowRange is a bank of rows i up to j in the same memory. It consists of whole blocks of 16 rows: i is a multiple of that, and so is j unless
// it is the number of rows. It cannot be released.
func (b Q4MLXBlockedBank) RowRange(i, j int) (Q4MLXBlockedBank, error) {
	if err := rowRange("nn.Q4MLXBlockedBank.RowRange", "NewQ4MLXBlockedBank", i, j, b.rows, quant.BlockRows); err != nil {
		return Q4MLXBlockedBank{}, err
	}
	packed, sb := paddedRange(b.packed, b.sb, i, j, b.cols, b.size, quant.BlockRows)
	return Q4MLXBlockedBank{packed, sb, j - i, b.cols, b.size}, nil
}

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b Q4MLXBlockedBank) Release() error {
	return releaseBank("nn.Q4MLXBlockedBank.Release", "NewQ4MLXBlockedBank", b.rows, bankPart{"packed", b.packed.Release}, bankPart{"scalesBiases", b.sb.Release})
}

func (b Q4MLXBlockedBank) weights() weights {
	return weights{"NewQ4MLXBlockedBank", [3]runtime.View{b.packed.View(), b.sb.View()}, 2, b.rows, b.cols, b.size, false}
}

// Q4MLXInterleavedBank is a matrix of weights on the device in MLX's 4-bit affine format, in tiles of 4 interleaved rows, with scales and biases interleaved: the
// layout of [quant.Q4MLXInterleaved], padded to whole tiles. It is not a [Q4MLXBank], so that each kernel gets the
// layout that it reads. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type Q4MLXInterleavedBank struct {
	packed           runtime.Slice[uint32]
	sb               runtime.Slice[half.BFloat16]
	rows, cols, size int
}

// NewQ4MLXInterleavedBank makes a bank of memory that holds one, of exactly the lengths of [quant.Q4MLXInterleavedSizes]: the
// padding to a multiple of 4 rows is part of it. packed starts at a multiple of 8 bytes, scalesBiases at one of 4.
//
// The memory stays the caller's.
func NewQ4MLXInterleavedBank(packed runtime.Slice[uint32], scalesBiases runtime.Slice[half.BFloat16], rows, cols, groupSize int) (Q4MLXInterleavedBank, error) {
	const fn = "nn.NewQ4MLXInterleavedBank"
	words, pairs, err := quant.Q4MLXInterleavedSizes(rows, cols, groupSize)
	if err != nil {
		return Q4MLXInterleavedBank{}, shapeOf(fn, err)
	}
	if err := checkPadded(fn, packed, scalesBiases, words, pairs); err != nil {
		return Q4MLXInterleavedBank{}, err
	}
	return Q4MLXInterleavedBank{packed, scalesBiases, rows, cols, groupSize}, nil
}

// UploadQ4MLXInterleaved copies a matrix to new device memory. Release gives it back.
func UploadQ4MLXInterleaved(rt *runtime.Runtime, q quant.Q4MLXInterleaved) (Q4MLXInterleavedBank, error) {
	const fn = "nn.UploadQ4MLXInterleaved"
	if err := q.Validate(); err != nil {
		return Q4MLXInterleavedBank{}, shapeOf(fn, err)
	}
	packed, sb, err := uploadPadded(fn, rt, q.Packed, q.ScalesBiases)
	if err != nil {
		return Q4MLXInterleavedBank{}, err
	}
	return NewQ4MLXInterleavedBank(packed, sb, q.Rows, q.Cols, q.GroupSize)
}

// Rows is the number of rows without the padding: outputs of a product.
func (b Q4MLXInterleavedBank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product.
func (b Q4MLXInterleavedBank) Cols() int { return b.cols }

// GroupSize is the number of columns that share a scale and a bias.
func (b Q4MLXInterleavedBank) GroupSize() int { return b.size }

// Packed is the memory of the codes.
func (b Q4MLXInterleavedBank) Packed() runtime.Slice[uint32] { return b.packed }

// ScalesBiases is the memory of the scales and biases.
func (b Q4MLXInterleavedBank) ScalesBiases() runtime.Slice[half.BFloat16] { return b.sb }

// RowRange is a bank of rows i up to j in the same memory. It consists of whole tiles of 4 rows: i is a multiple of that, and so is j unless
// it is the number of rows. It cannot be released.
func (b Q4MLXInterleavedBank) RowRange(i, j int) (Q4MLXInterleavedBank, error) {
	if err := rowRange("nn.Q4MLXInterleavedBank.RowRange", "NewQ4MLXInterleavedBank", i, j, b.rows, quant.TileRows); err != nil {
		return Q4MLXInterleavedBank{}, err
	}
	packed, sb := paddedRange(b.packed, b.sb, i, j, b.cols, b.size, quant.TileRows)
	return Q4MLXInterleavedBank{packed, sb, j - i, b.cols, b.size}, nil
}

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b Q4MLXInterleavedBank) Release() error {
	return releaseBank("nn.Q4MLXInterleavedBank.Release", "NewQ4MLXInterleavedBank", b.rows, bankPart{"packed", b.packed.Release}, bankPart{"scalesBiases", b.sb.Release})
}

func (b Q4MLXInterleavedBank) weights() weights {
	return weights{"NewQ4MLXInterleavedBank", [3]runtime.View{b.packed.View(), b.sb.View()}, 2, b.rows, b.cols, b.size, true}
}

// checkPadded refuses memory that is not exactly that of a bank with padding.
func checkPadded(fn string, packed runtime.Slice[uint32], sb runtime.Slice[half.BFloat16], words, pairs int) error {
	c := check{fn: fn, rt: packed.Runtime(), of: "packed"}
	c.owned("packed", packed.View())
	c.owned("scalesBiases", sb.View())
	c.exact("packed", packed.Len(), words)
	c.exact("scalesBiases", sb.Len(), pairs)
	c.capacity("packed", packed.View(), words, 4, 8)
	c.capacity("scalesBiases", sb.View(), pairs, 2, 4)
	return c.result()
}

func uploadPadded(fn string, rt *runtime.Runtime, words []uint32, pairs []half.BFloat16) (packed runtime.Slice[uint32], sb runtime.Slice[half.BFloat16], err error) {
	u := uploads{fn: fn, rt: rt}
	if packed, sb = uploaded(&u, words), uploaded(&u, pairs); u.err != nil {
		return packed, sb, u.undo()
	}
	return packed, sb, nil
}

// paddedRange is the memory of the tiles that hold rows i up to j: tiles stand one after the other.
func paddedRange(packed runtime.Slice[uint32], sb runtime.Slice[half.BFloat16], i, j, cols, size, tile int) (runtime.Slice[uint32], runtime.Slice[half.BFloat16]) {
	j = ceilDiv(j, tile) * tile
	words, pairs := cols/quant.CodesPerWord, 2*(cols/size)
	return packed.Slice(i*words, j*words), sb.Slice(i*pairs, j*pairs)
}
