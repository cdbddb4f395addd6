package nn

import (
	"github.com/ingot-metal/ingot/runtime"
)

// DenseBank is a matrix of weights on the device that are plain numbers, row-major. The zero bank is not valid.
//
// A bank is a value; copies refer to the same memory. It may be used by several passes at once: kernels only read it.
type DenseBank[T Float] struct {
	data       runtime.Slice[T]
	rows, cols int
}

// NewDenseBank makes a bank of memory that holds one: exactly rows * cols numbers.
//
// The memory stays the caller's.
func NewDenseBank[T Float](data runtime.Slice[T], rows, cols int) (DenseBank[T], error) {
	return newDenseBank("nn.NewDenseBank", data, rows, cols)
}

func newDenseBank[T Float](fn string, data runtime.Slice[T], rows, cols int) (DenseBank[T], error) {
	c := check{fn: fn, rt: data.Runtime()}
	c.dim("rows", rows, 1)
	c.dim("cols", cols, 1)
	n := c.elements("rows * cols", rows, cols)
	c.owned("data", data.View())
	c.exact("data", data.Len(), n)
	if c.err != nil {
		return DenseBank[T]{}, c.err
	}
	return DenseBank[T]{data, rows, cols}, nil
}

// UploadDense copies a matrix to new device memory. Release gives it back.
func UploadDense[T Float](rt *runtime.Runtime, data []T, rows, cols int) (DenseBank[T], error) {
	const fn = "nn.UploadDense"
	c := startOn(fn, rt)
	c.dim("rows", rows, 1)
	c.dim("cols", cols, 1)
	c.exact("data", len(data), c.elements("rows * cols", rows, cols))
	if c.err != nil {
		return DenseBank[T]{}, c.err
	}
	u := uploads{fn: fn, rt: rt}
	s := uploaded(&u, data)
	if u.err != nil {
		return DenseBank[T]{}, u.err
	}
	return newDenseBank(fn, s, rows, cols)
}

// Type is the numbers' type.
func (b DenseBank[T]) Type() WeightType { return denseType[T]() }

// Rows is the number of rows: outputs of a product.
func (b DenseBank[T]) Rows() int { return b.rows }

// Cols is the number of columns: inputs of a product.
func (b DenseBank[T]) Cols() int { return b.cols }

// Data is the memory of the numbers.
func (b DenseBank[T]) Data() runtime.Slice[T] { return b.data }

// RowRange is a bank of rows i up to j in the same memory. It cannot be released.
func (b DenseBank[T]) RowRange(i, j int) (DenseBank[T], error) {
	if err := rowRange("nn.DenseBank.RowRange", "NewDenseBank", i, j, b.rows, 1); err != nil {
		return DenseBank[T]{}, err
	}
	return DenseBank[T]{b.data.Slice(i*b.cols, j*b.cols), j - i, b.cols}, nil
}

// Release gives the memory back, under the rules of [runtime.Slice.Release].
func (b DenseBank[T]) Release() error {
	return releaseBank("nn.DenseBank.Release", "NewDenseBank", b.rows, bankPart{"data", b.data.Release})
}

func (b DenseBank[T]) weights() weights {
	return weights{"NewDenseBank", [3]runtime.View{b.data.View()}, 1, b.rows, b.cols, 0, false}
}
