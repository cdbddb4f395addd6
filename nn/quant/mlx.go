package quant

import (
	"encoding/binary"
	"fmt"

	"github.com/ingot-metal/ingot/runtime/half"
)

// MLXTensors are the three tensors in which MLX stores a quantised matrix, as the little-endian bytes of a safetensors
// file: NAME.weight (U32, [Rows, Cols/8]), NAME.scales and NAME.biases (BF16, [Rows, Cols/GroupSize]).
type MLXTensors struct {
	Rows, Cols, GroupSize  int
	Weight, Scales, Biases []byte
}

// FromMLX converts the tensors, in new memory. Lengths that do not fit the shape and scales or biases that are not finite
// are refused.
func FromMLX(t MLXTensors) (Q4MLX, error) {
	const fn = "FromMLX"
	if err := checkQ4MLX(fn, t.Rows, t.Cols, t.GroupSize); err != nil {
		return Q4MLX{}, err
	}
	words, groups := t.Rows*(t.Cols/CodesPerWord), t.Rows*(t.Cols/t.GroupSize)
	for _, part := range []struct {
		name string
		have int
		need int
		kind string
	}{
		{"weight", len(t.Weight), 4 * words, "U32"},
		{"scales", len(t.Scales), 2 * groups, "BF16"},
		{"biases", len(t.Biases), 2 * groups, "BF16"},
	} {
		if part.have != part.need {
			return Q4MLX{}, shape(fn, part.name, fmt.Sprintf("%d bytes", part.have),
				fmt.Sprintf("%d: %s for %d * %d weights in groups of %d", part.need, part.kind, t.Rows, t.Cols, t.GroupSize))
		}
	}
	q := newQ4MLX(t.Rows, t.Cols, t.GroupSize)
	for i := range q.Packed {
		q.Packed[i] = binary.LittleEndian.Uint32(t.Weight[4*i:])
	}
	for i := range groups {
		q.ScalesBiases[2*i] = half.BFloat16(binary.LittleEndian.Uint16(t.Scales[2*i:]))
		q.ScalesBiases[2*i+1] = half.BFloat16(binary.LittleEndian.Uint16(t.Biases[2*i:]))
	}
	if err := checkFinite(fn, "scales and biases", q.ScalesBiases); err != nil {
		return Q4MLX{}, err
	}
	return q, nil
}

// MLX converts back to MLX's three tensors, in new memory.
func (q Q4MLX) MLX() (MLXTensors, error) {
	if err := q.lengths("Q4MLX.MLX"); err != nil {
		return MLXTensors{}, err
	}
	groups := len(q.ScalesBiases) / 2
	t := MLXTensors{Rows: q.Rows, Cols: q.Cols, GroupSize: q.GroupSize,
		Weight: make([]byte, 0, 4*len(q.Packed)), Scales: make([]byte, 0, 2*groups), Biases: make([]byte, 0, 2*groups)}
	for _, w := range q.Packed {
		t.Weight = binary.LittleEndian.AppendUint32(t.Weight, w)
	}
	for i := range groups {
		t.Scales = binary.LittleEndian.AppendUint16(t.Scales, uint16(q.ScalesBiases[2*i]))
		t.Biases = binary.LittleEndian.AppendUint16(t.Biases, uint16(q.ScalesBiases[2*i+1]))
	}
	return t, nil
}
