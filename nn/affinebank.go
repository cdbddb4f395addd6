package nn

import (
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// AffineBank is a matrix of weights on the device in MLX's affine format, row-major, in the three tensors that checkpoints hold:
// the layout of [quant.Affine], with codes of 4, 6 or 8 bits and scales and biases of float32, float16 or bfloat16. The zero bank
// is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type AffineBank struct {
	weight, scales, biases runtime.Slice[uint8]
	format                 quant.AffineFormat
	rows, cols             int
}

// NewAffineBank makes a bank of memory that holds one: exactly rows * cols codes, and a scale and a bias for each group. All belong
// to the same runtime. The codes start at a multiple of 8 bytes, scales and biases at one of the size of their numbers.
//
// The memory stays the caller's.
func NewAffineBank(format quant.AffineFormat, weight, scales, biases runtime.Slice[uint8], rows, cols int) (AffineBank, error) {
	return newAffineBank("nn.NewAffineBank", format, weight, scales, biases, rows, cols)
}

func newAffineBank(fn string, format quant.AffineFormat, weight, scales, biases runtime.Slice[uint8], rows, cols int) (AffineBank, error) {
	codes, numbers, err := format.Sizes(rows, cols)
	if err != nil {
		return AffineBank{}, shapeOf(fn, err)
	}
	c := check{fn: fn, rt: weight.Runtime(), of: "weight"}
	for _, part := range [3]memory{{"weight", weight.View(), codes, 8}, {"scales", scales.View(), numbers, format.Scale.Bytes()}, {"biases", biases.View(), numbers, format.Scale.Bytes()}} {
		c.owned(part.name, part.view)
		c.exact(part.name, part.view.Len(), part.n)
		c.capacity(part.name, part.view, part.n, 1, part.size)
	}
	if c.err != nil {
		return AffineBank{}, c.err
	}
	return AffineBank{weight, scales, biases, format, rows, cols}, nil
}

// UploadAffine copies a matrix to new device memory. Release gives it back.
func UploadAffine(rt *runtime.Runtime, a quant.Affine) (AffineBank, error) {
	const fn = "nn.UploadAffine"
	if err := a.Validate(); err != nil {
		return AffineBank{}, shapeOf(fn, err)
	}
	u := uploads{fn: fn, rt: rt}
	weight, scales, biases := uploaded(&u, a.Weight), uploaded(&u, a.Scales), uploaded(&u, a.Biases)
	if u.err != nil {
		return AffineBank{}, u.undo()
	}
	return newAffineBank(fn, a.Format, weight, scales, biases, a.Rows, a.Cols)
}

// Format is the form of codes, groups, scales and biases.
func (b AffineBank) Format() quant.AffineFormat { return b.format }

// Rows is the number of rows: outputs of a product, or tokens of an embedding table.
func (b AffineBank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product, or the width of an embedding.
func (b AffineBank) Cols() int { return b.cols }

// Weight is the memory of the codes.
func (b AffineBank) Weight() runtime.Slice[uint8] { return b.weight }

// Scales is the memory of the scales.
func (b AffineBank) Scales() runtime.Slice[uint8] { return b.scales }

// Biases is the memory of the biases.
func (b AffineBank) Biases() runtime.Slice[uint8] { return b.biases }

// RowRange is a bank of rows i up to j in the same memory. It cannot be released.
func (b AffineBank) RowRange(i, j int) (AffineBank, error) {
	if err := rowRange("nn.AffineBank.RowRange", "NewAffineBank", i, j, b.rows, 1); err != nil {
		return AffineBank{}, err
	}
	w, s := b.weight.Len()/b.rows, b.scales.Len()/b.rows
	return AffineBank{b.weight.Slice(i*w, j*w), b.scales.Slice(i*s, j*s), b.biases.Slice(i*s, j*s), b.format, j - i, b.cols}, nil
}

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b AffineBank) Release() error {
	return releaseBank("nn.AffineBank.Release", "NewAffineBank", b.rows, bankPart{"weight", b.weight.Release}, bankPart{"scales", b.scales.Release}, bankPart{"biases", b.biases.Release})
}

func (b AffineBank) weights() weights {
	return weights{"NewAffineBank", [3]runtime.View{b.weight.View(), b.scales.View(), b.biases.View()}, 3, b.rows, b.cols, b.format.GroupSize, false}
}
