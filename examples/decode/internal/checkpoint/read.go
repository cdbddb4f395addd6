package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Matrix is a weight matrix, [Rows, Cols], row after row, as it is stored.
type Matrix struct {
	Name       string // of the tensor in the file
	Rows, Cols int

	Type nn.WeightType // how Data holds it; 0 for a matrix in MLX's affine format
	Data []byte        // nil if Affine

	// Where Data lies in Files(), for those who map it; File is -1 if it cannot be mapped, as for affine matrices.
	File   int
	Offset int64

	Affine *Affine // nil unless the matrix is in MLX's affine format
}

// Affine is a matrix in MLX's affine format: three tensors as they are stored, see package quant.
type Affine struct {
	Bits, GroupSize        int
	ScaleType              nn.WeightType // of Scales and Biases: WeightF32, WeightF16 or WeightBF16
	Weight, Scales, Biases []byte
}

func (c *Checkpoint) slot(role Role, layer int, matrix bool) (slot, error) {
	s, ok := c.slots[slotKey{role, layer}]
	switch {
	case !ok:
		return s, fmt.Errorf("model %s: there is no %v", c.Name, slotKey{role, layer})
	case matrix && s.cols == 0:
		return s, fmt.Errorf("model %s: the %v is a vector, not a matrix", c.Name, slotKey{role, layer})
	case !matrix && s.cols > 0:
		return s, fmt.Errorf("model %s: the %v is a matrix, not a vector", c.Name, slotKey{role, layer})
	}
	return s, nil
}

// Vector reads a norm's weight, as it is multiplied with, or a bias. layer is -1 for what belongs to none.
func (c *Checkpoint) Vector(role Role, layer int) ([]float32, error) {
	s, err := c.slot(role, layer, false)
	if err != nil {
		return nil, err
	}
	out, err := readNumbers(c.source, s.tensor, s.kind)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Name, err)
	}
	for i := range out {
		out[i] += s.normBias
	}
	return out, nil
}

// readNumbers reads numbers as float32, and refuses those that are none: an infinite weight would silence the model without a word.
func readNumbers(src source, t tensor, kind nn.WeightType) ([]float32, error) {
	data, err := src.read(t)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(data)/kind.RowBytes(1))
	for i := range out {
		switch kind {
		case nn.WeightF32:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		case nn.WeightF16:
			out[i] = half.Float16(binary.LittleEndian.Uint16(data[2*i:])).Float32()
		default:
			out[i] = half.BFloat16(binary.LittleEndian.Uint16(data[2*i:])).Float32()
		}
		if v := out[i]; v-v != 0 {
			return nil, t.error("has %g at index %d, needed are finite numbers", v, i)
		}
	}
	return out, nil
}

// Matrix reads a matrix. layer is -1 for what belongs to none.
func (c *Checkpoint) Matrix(role Role, layer int) (Matrix, error) {
	s, err := c.slot(role, layer, true)
	if err != nil {
		return Matrix{}, err
	}
	m := Matrix{Name: s.tensor.name, Rows: s.rows, Cols: s.cols, Type: s.kind, File: -1}
	if s.affine != nil {
		m.Affine, err = readAffine(c.source, s)
	} else {
		m.File, m.Offset = s.tensor.file, s.tensor.offset
		if m.Data, err = c.source.read(s.tensor); err == nil {
			err = checkFinite(s.tensor, s.kind, m.Data)
		}
	}
	if err != nil {
		return Matrix{}, fmt.Errorf("model %s: %w", c.Name, err)
	}
	return m, nil
}

func readAffine(src source, s slot) (*Affine, error) {
	q := quant.Affine{Format: s.affine.format, Rows: s.rows, Cols: s.cols}
	for _, part := range []struct {
		into *[]byte
		t    tensor
	}{{&q.Weight, s.tensor}, {&q.Scales, s.affine.scales}, {&q.Biases, s.affine.biases}} {
		var err error
		if *part.into, err = src.read(part.t); err != nil {
			return nil, err
		}
	}
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", s.tensor.in, s.tensor.name, err)
	}
	return &Affine{Bits: q.Format.Bits, GroupSize: q.Format.GroupSize, ScaleType: weightType(q.Format.Scale.String()),
		Weight: q.Weight, Scales: q.Scales, Biases: q.Biases}, nil
}
