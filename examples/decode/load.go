package main

import (
	"fmt"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// tensors are what a model is made of; a checkpoint has them.
type tensors interface {
	Has(role checkpoint.Role, layer int) bool
	Vector(role checkpoint.Role, layer int) ([]float32, error)
	Matrix(role checkpoint.Role, layer int) (checkpoint.Matrix, error)
	Files() []string
}

// loader brings tensors to the device, one at a time. Matrices that lie in a file in the device's own layout stay there: the
// file is mapped into memory that the device reads, once, without a copy. Where that cannot be, they are copied.
type loader struct {
	*memory
	tensors  tensors
	files    map[int]runtime.Slice[uint8] // mapped; the zero Slice for one that cannot be
	unmapped bool                         // copy everything
	loaded   func(bytes int64) error      // is told of each matrix, and may stop
	inPlace  int64                        // bytes of matrices that stay in their files
	copied   int64                        // and of those that do not
}

// vector is a vector on the device.
func (l *loader) vector(role checkpoint.Role, layer int) runtime.Slice[float32] {
	if l.err != nil {
		return runtime.Slice[float32]{}
	}
	v, err := l.tensors.Vector(role, layer)
	if err != nil {
		l.fail(err)
		return runtime.Slice[float32]{}
	}
	return upload(l.memory, "a vector", v)
}

// optional is a vector that not all models have: the zero Slice without it.
func (l *loader) optional(role checkpoint.Role, layer int) runtime.Slice[float32] {
	if l.err != nil || !l.tensors.Has(role, layer) {
		return runtime.Slice[float32]{}
	}
	return l.vector(role, layer)
}

// matrix is a matrix on the device.
func (l *loader) matrix(role checkpoint.Role, layer int) matrix {
	if l.err != nil {
		return nil
	}
	m, err := l.tensors.Matrix(role, layer)
	if err != nil {
		l.fail(err)
		return nil
	}
	w, size, err := l.bank(m)
	if err != nil {
		l.fail(fmt.Errorf("tensor %q: %w", m.Name, err))
		return nil
	}
	if err := l.loaded(int64(size)); err != nil {
		l.fail(err)
	}
	return w
}

func (l *loader) bank(m checkpoint.Matrix) (w matrix, size int, err error) {
	if m.Affine != nil {
		return l.affine(m)
	}
	if m.Cols%4 != 0 {
		return nil, 0, fmt.Errorf("it has %d columns: the products need a multiple of 4", m.Cols)
	}
	data, err := l.bytes(m)
	if err != nil {
		return nil, 0, err
	}
	tiles := l.rt.Device().SIMDMatrix
	switch m.Type {
	case nn.WeightF32:
		var b nn.DenseBank[float32]
		b, err = denseBank[float32](data, m)
		w = plainMatrix[nn.DenseBank[float32]]{b, m.Rows, m.Cols, tiles}
	case nn.WeightF16:
		var b nn.DenseBank[half.Float16]
		b, err = denseBank[half.Float16](data, m)
		w = plainMatrix[nn.DenseBank[half.Float16]]{b, m.Rows, m.Cols, tiles}
	case nn.WeightBF16:
		var b nn.DenseBank[half.BFloat16]
		b, err = denseBank[half.BFloat16](data, m)
		w = plainMatrix[nn.DenseBank[half.BFloat16]]{b, m.Rows, m.Cols, tiles}
	default:
		var b nn.BlockBank
		b, err = nn.NewBlockBank(m.Type.Block(), data, m.Rows, m.Cols)
		w = plainMatrix[nn.BlockBank]{b, m.Rows, m.Cols, tiles}
	}
	return w, data.Len(), err
}

func denseBank[T nn.Float](data runtime.Slice[uint8], m checkpoint.Matrix) (nn.DenseBank[T], error) {
	numbers, err := runtime.As[T](data.View())
	if err != nil {
		return nn.DenseBank[T]{}, err
	}
	return nn.NewDenseBank(numbers, m.Rows, m.Cols)
}

// affine is a matrix in MLX's format. Its three tensors are copied: kernels read the codes by 8 bytes, and scales in pairs.
func (l *loader) affine(m checkpoint.Matrix) (matrix, int, error) {
	format := quant.AffineFormat{Bits: m.Affine.Bits, GroupSize: m.Affine.GroupSize, Scale: scaleType(m.Affine.ScaleType)}
	a := quant.Affine{Format: format, Rows: m.Rows, Cols: m.Cols, Weight: m.Affine.Weight, Scales: m.Affine.Scales, Biases: m.Affine.Biases}
	bank, err := nn.UploadAffine(l.rt, a)
	if err != nil {
		return nil, 0, err
	}
	l.release = append(l.release, bank.Release)
	size := len(a.Weight) + len(a.Scales) + len(a.Biases)
	l.copied += int64(size)
	if format.Bits != 4 || format.Scale != quant.ScaleBF16 {
		return affineMatrix{bank}, size, nil
	}
	q, err := a.Q4MLX()
	if err != nil {
		return nil, 0, err
	}
	pairs, err := runtime.SliceOf(l.rt, q.ScalesBiases)
	if err != nil {
		return nil, 0, err
	}
	l.release = append(l.release, pairs.Release)
	codes, err := runtime.As[uint32](bank.Weight().View())
	if err != nil {
		return nil, 0, err
	}
	q4, err := nn.NewQ4MLXBank(codes, pairs, m.Rows, m.Cols, format.GroupSize)
	return q4Matrix{q4, affineMatrix{bank}}, size, err
}

func scaleType(t nn.WeightType) quant.ScaleType {
	switch t {
	case nn.WeightF32:
		return quant.ScaleF32
	case nn.WeightF16:
		return quant.ScaleF16
	case nn.WeightBF16:
		return quant.ScaleBF16
	}
	return 0
}

// bytes is the memory of a matrix: that of its file, or a copy.
func (l *loader) bytes(m checkpoint.Matrix) (runtime.Slice[uint8], error) {
	if s, ok := l.inFile(m); ok {
		l.inPlace += int64(s.Len())
		return s, nil
	}
	l.copied += int64(len(m.Data))
	s, err := runtime.SliceOf(l.rt, m.Data)
	if err == nil {
		l.release = append(l.release, s.Release)
	}
	return s, err
}

// inFile is where a matrix lies in its file, if that is mapped and the matrix begins where kernels can read it.
func (l *loader) inFile(m checkpoint.Matrix) (s runtime.Slice[uint8], ok bool) {
	if l.unmapped || m.File < 0 || m.Offset%int64(alignment(m.Type)) != 0 {
		return s, false
	}
	file, known := l.files[m.File]
	if !known {
		var err error
		file, err = runtime.MapFile(l.rt, l.tensors.Files()[m.File])
		if err == nil {
			l.release = append(l.release, file.Release)
		} // else it is longer than the device's buffers, or the system does not map files
		if l.files == nil {
			l.files = map[int]runtime.Slice[uint8]{}
		}
		l.files[m.File] = file
	}
	from, to := m.Offset, m.Offset+int64(m.Rows)*int64(m.Type.RowBytes(m.Cols))
	if to > int64(file.Len()) {
		return s, false
	}
	return file.Slice(int(from), int(to)), true
}

// alignment is what the offset of a matrix must be a multiple of, for the products of its type.
func alignment(t nn.WeightType) int {
	switch t {
	case nn.WeightF32, nn.WeightQ4_K, nn.WeightQ5_K:
		return 16
	case nn.WeightF16, nn.WeightBF16:
		return 8
	}
	return 2
}
