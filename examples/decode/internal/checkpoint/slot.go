package checkpoint

import (
	"fmt"
	"slices"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/nn/quant"
)

// slot is a tensor that has a role.
type slot struct {
	tensor     tensor
	rows, cols int           // cols is 0 for a vector
	kind       nn.WeightType // 0 if affine
	affine     *affineSlot
	normBias   float32
}

// affineSlot is what an affine matrix has besides its codes.
type affineSlot struct {
	format         quant.AffineFormat
	scales, biases tensor
}

func (s slot) bytes() int64 {
	n := s.tensor.size
	if s.affine != nil {
		n += s.affine.scales.size + s.affine.biases.size
	}
	return n
}

var (
	numberTypes = []nn.WeightType{nn.WeightF32, nn.WeightF16, nn.WeightBF16}
	scaleTypes  = map[string]quant.ScaleType{"F32": quant.ScaleF32, "F16": quant.ScaleF16, "BF16": quant.ScaleBF16}
)

// weightType is the type of weights with a name, 0 for another type.
func weightType(name string) nn.WeightType {
	for _, t := range nn.WeightTypes() {
		if t.String() == name {
			return t
		}
	}
	return 0
}

// typeNames are the names of types.
func typeNames(types []nn.WeightType) (list []string) {
	for _, t := range types {
		list = append(list, t.String())
	}
	return list
}

// slot checks the tensor for a role.
func (l *layout) slot(c *Checkpoint, k slotKey) (slot, error) {
	s := slot{}
	s.rows, s.cols = c.Config.shape(k.role)
	name := l.name(k)
	t, ok := c.source.tensor(name)
	if !ok {
		return s, fmt.Errorf("there is no tensor %q, the %v", name, k)
	}
	s.tensor = t
	if s.cols == 0 {
		s.kind, s.normBias = weightType(t.kind), l.normBias
		if k.role >= QueryBias {
			s.normBias = 0
		}
		if !slices.Contains(numberTypes, s.kind) {
			return s, t.error("is of type %s, needed is %s", t.kind, oneOf(typeNames(numberTypes)))
		}
		return s, t.expect(int64(s.rows))
	}
	if l.affine != nil {
		if done, err := l.affine.slot(c.source, &s); done || err != nil {
			return s, err
		}
	}
	if s.kind = weightType(t.kind); !slices.Contains(l.types, s.kind) {
		return s, t.error("is of type %s, needed is %s", t.kind, oneOf(typeNames(l.types)))
	}
	if s.kind.RowBytes(s.cols) == 0 {
		return s, t.error("has rows of %d numbers, which are no whole blocks of %v", s.cols, s.kind)
	}
	return s, t.expect(int64(s.rows), int64(s.cols))
}

// error is an error about a tensor.
func (t tensor) error(format string, args ...any) error {
	return fmt.Errorf("%s: tensor %q %s", t.in, t.name, fmt.Sprintf(format, args...))
}

func (t tensor) expect(shape ...int64) error {
	have, need := t.shape, shape
	if t.padded {
		have, need = trim(have), trim(need)
	}
	if !slices.Equal(have, need) {
		return t.error("has shape %v, needed is %v", t.shape, shape)
	}
	return nil
}

// trim leaves leading ones away.
func trim(shape []int64) []int64 {
	for len(shape) > 1 && shape[0] == 1 {
		shape = shape[1:]
	}
	return shape
}
