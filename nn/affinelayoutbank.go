package nn

import (
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// AffineCodesBank is a matrix of weights on the device in the affine format with a byte for each code, row-major: the layout of
// [quant.AffineCodes]. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type AffineCodesBank struct {
	codes            runtime.Slice[uint8]
	scales, biases   runtime.Slice[float32]
	rows, cols, size int
}

// NewAffineCodesBank makes a bank of memory that holds one: codes has rows * cols bytes, scales and biases have
// rows * cols / groupSize numbers each. All have exactly these lengths and belong to the same runtime. The group size is a power of
// two, 2 to 1,024, and divides cols.
//
// The memory stays the caller's.
func NewAffineCodesBank(codes runtime.Slice[uint8], scales, biases runtime.Slice[float32], rows, cols, groupSize int) (AffineCodesBank, error) {
	return newAffineCodesBank("nn.NewAffineCodesBank", codes, scales, biases, rows, cols, groupSize)
}

func newAffineCodesBank(fn string, codes runtime.Slice[uint8], scales, biases runtime.Slice[float32], rows, cols, groupSize int) (AffineCodesBank, error) {
	if err := quant.CheckAffineCodes(rows, cols, groupSize); err != nil {
		return AffineCodesBank{}, shapeOf(fn, err)
	}
	c := check{fn: fn, rt: codes.Runtime(), of: "codes"}
	groups := rows * (cols / groupSize)
	c.owned("codes", codes.View())
	c.owned("scales", scales.View())
	c.owned("biases", biases.View())
	c.exact("codes", codes.Len(), rows*cols)
	c.exact("scales", scales.Len(), groups)
	c.exact("biases", biases.Len(), groups)
	if c.err != nil {
		return AffineCodesBank{}, c.err
	}
	return AffineCodesBank{codes, scales, biases, rows, cols, groupSize}, nil
}

// UploadAffineCodes copies a matrix to new device memory. Release gives it back.
func UploadAffineCodes(rt *runtime.Runtime, a quant.AffineCodes) (AffineCodesBank, error) {
	const fn = "nn.UploadAffineCodes"
	if err := a.Validate(); err != nil {
		return AffineCodesBank{}, shapeOf(fn, err)
	}
	u := uploads{fn: fn, rt: rt}
	codes, scales, biases := uploaded(&u, a.Codes), uploaded(&u, a.Scales), uploaded(&u, a.Biases)
	if u.err != nil {
		return AffineCodesBank{}, u.undo()
	}
	return newAffineCodesBank(fn, codes, scales, biases, a.Rows, a.Cols, a.GroupSize)
}

// Rows is the number of rows: outputs of a product.
func (b AffineCodesBank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product.
func (b AffineCodesBank) Cols() int { return b.cols }

// GroupSize is the number of columns that share a scale and a bias.
func (b AffineCodesBank) GroupSize() int { return b.size }

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b AffineCodesBank) Release() error {
	return releaseBank("nn.AffineCodesBank.Release", "NewAffineCodesBank", b.rows, bankPart{"codes", b.codes.Release}, bankPart{"scales", b.scales.Release}, bankPart{"biases", b.biases.Release})
}

func (b AffineCodesBank) weights() weights {
	return weights{"NewAffineCodesBank", [3]runtime.View{b.codes.View(), b.scales.View(), b.biases.View()}, 3, b.rows, b.cols, b.size, false}
}

// AffinePlaneBank is a matrix of weights on the device in the affine format with 4-bit codes and groups of 64, in tiles of 64 rows:
// the layout of [quant.AffinePlane]. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type AffinePlaneBank struct {
	plane, metadata runtime.Slice[uint32]
	rows, cols      int
}

// NewAffinePlaneBank makes a bank of memory that holds one: plane has rows * cols / 8 words, metadata rows * cols / 64. Both have
// exactly these lengths and belong to the same runtime; plane starts at a multiple of 16 bytes. Rows and cols are multiples of 64.
//
// The memory stays the caller's.
func NewAffinePlaneBank(plane, metadata runtime.Slice[uint32], rows, cols int) (AffinePlaneBank, error) {
	return newAffinePlaneBank("nn.NewAffinePlaneBank", plane, metadata, rows, cols)
}

func newAffinePlaneBank(fn string, plane, metadata runtime.Slice[uint32], rows, cols int) (AffinePlaneBank, error) {
	words, groups, err := quant.AffinePlaneSizes(rows, cols)
	if err != nil {
		return AffinePlaneBank{}, shapeOf(fn, err)
	}
	c := check{fn: fn, rt: plane.Runtime(), of: "plane"}
	c.owned("plane", plane.View())
	c.owned("metadata", metadata.View())
	c.exact("plane", plane.Len(), words)
	c.exact("metadata", metadata.Len(), groups)
	c.capacity("plane", plane.View(), words, 4, 16)
	if c.err != nil {
		return AffinePlaneBank{}, c.err
	}
	return AffinePlaneBank{plane, metadata, rows, cols}, nil
}

// UploadAffinePlane copies a matrix to new device memory. Release gives it back.
func UploadAffinePlane(rt *runtime.Runtime, a quant.AffinePlane) (AffinePlaneBank, error) {
	const fn = "nn.UploadAffinePlane"
	if err := a.Validate(); err != nil {
		return AffinePlaneBank{}, shapeOf(fn, err)
	}
	u := uploads{fn: fn, rt: rt}
	plane, metadata := uploaded(&u, a.Plane), uploaded(&u, a.Metadata)
	if u.err != nil {
		return AffinePlaneBank{}, u.undo()
	}
	return newAffinePlaneBank(fn, plane, metadata, a.Rows, a.Cols)
}

// Rows is the number of rows: outputs of a product.
func (b AffinePlaneBank) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product.
func (b AffinePlaneBank) Cols() int { return b.cols }

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b AffinePlaneBank) Release() error {
	return releaseBank("nn.AffinePlaneBank.Release", "NewAffinePlaneBank", b.rows, bankPart{"plane", b.plane.Release}, bankPart{"metadata", b.metadata.Release})
}

func (b AffinePlaneBank) weights() weights {
	return weights{"NewAffinePlaneBank", [3]runtime.View{b.plane.View(), b.metadata.View()}, 2, b.rows, b.cols, quant.PlaneGroup, false}
}
