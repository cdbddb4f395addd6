package oracle

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Tensors are what a model is made of; a checkpoint has them.
type Tensors interface {
	Has(role checkpoint.Role, layer int) bool
	Vector(role checkpoint.Role, layer int) ([]float32, error)
	Matrix(role checkpoint.Role, layer int) (checkpoint.Matrix, error)
}

// dense is a matrix, [rows][cols].
type dense struct {
	rows, cols int
	w          []float64
}

func (m dense) row(r int) []float64 { return m.w[r*m.cols : (r+1)*m.cols] }

func (m dense) times(x []float64) []float64 {
	y := make([]float64, m.rows)
	for r := range y {
		for c, w := range m.row(r) {
			y[r] += w * x[c]
		}
	}
	return y
}

// reader reads tensors until the first error.
type reader struct {
	Tensors
	err error
}

// vector is nil for one that a model does not have.
func (r *reader) vector(role checkpoint.Role, layer int) []float64 {
	if r.err != nil || !r.Has(role, layer) {
		return nil
	}
	v, err := r.Vector(role, layer)
	r.err = err
	return widen(v)
}

func (r *reader) matrix(role checkpoint.Role, layer int) dense {
	if r.err != nil {
		return dense{}
	}
	m, err := r.Matrix(role, layer)
	if err != nil {
		r.err = err
		return dense{}
	}
	w, err := Weights(m)
	r.err = err
	return dense{m.Rows, m.Cols, w}
}

// Load reads a model.
func Load(c *checkpoint.Config, t Tensors) (*Model, error) {
	r := &reader{Tensors: t}
	m := &Model{config: c, embed: r.matrix(checkpoint.Embedding, -1), norm: r.vector(checkpoint.FinalNorm, -1)}
	m.output = m.embed
	if !c.Tied {
		m.output = r.matrix(checkpoint.Output, -1)
	}
	for i := range c.Layers {
		l := layer{
			inputNorm:  r.vector(checkpoint.InputNorm, i),
			preFFNNorm: r.vector(checkpoint.PreFFNNorm, i),
			queryBias:  r.vector(checkpoint.QueryBias, i),
			keyBias:    r.vector(checkpoint.KeyBias, i),
			valueBias:  r.vector(checkpoint.ValueBias, i),
			outputBias: r.vector(checkpoint.AttentionOutputBias, i),
			q:          r.matrix(checkpoint.Query, i),
			k:          r.matrix(checkpoint.Key, i),
			v:          r.matrix(checkpoint.Value, i),
			o:          r.matrix(checkpoint.AttentionOutput, i),
			gate:       r.matrix(checkpoint.Gate, i),
			up:         r.matrix(checkpoint.Up, i),
			down:       r.matrix(checkpoint.Down, i),
			rotary:     newRotary(c.RoPE[i]),
		}
		if c.PostNorms {
			l.postAttentionNorm = r.vector(checkpoint.PostAttentionNorm, i)
			l.postFFNNorm = r.vector(checkpoint.PostFFNNorm, i)
		}
		if c.QKNorm {
			l.queryNorm = r.vector(checkpoint.QueryNorm, i)
			l.keyNorm = r.vector(checkpoint.KeyNorm, i)
		}
		m.layers = append(m.layers, l)
	}
	return m, r.err
}

// Weights are a matrix's numbers. Block formats are read by their definition in package quant, which is checked against
// other programs' there.
func Weights(m checkpoint.Matrix) ([]float64, error) {
	n := m.Rows * m.Cols
	if m.Affine != nil {
		return affine(m.Affine, n), nil
	}
	if block := m.Type.Block(); block != 0 {
		out := make([]float32, n)
		err := block.Decode(out, m.Data)
		return widen(out), err
	}
	if need := m.Rows * m.Type.RowBytes(m.Cols); need == 0 || len(m.Data) != need {
		return nil, fmt.Errorf("tensor %q: %d bytes of type %v, needed are %d", m.Name, len(m.Data), m.Type, need)
	}
	return numbers(m.Type, m.Data), nil
}

func numbers(t nn.WeightType, data []byte) []float64 {
	var out []float64
	for len(data) > 0 {
		switch t {
		case nn.WeightF16:
			out, data = append(out, float64(half.Float16(binary.LittleEndian.Uint16(data)).Float32())), data[2:]
		case nn.WeightBF16:
			out, data = append(out, float64(half.BFloat16(binary.LittleEndian.Uint16(data)).Float32())), data[2:]
		default:
			out, data = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))), data[4:]
		}
	}
	return out
}

// affine is w = scale·code + bias, for groups of columns. Codes are runs of bits, the first in the lowest ones of a little-endian
// stream.
func affine(a *checkpoint.Affine, n int) []float64 {
	scales, biases := numbers(a.ScaleType, a.Scales), numbers(a.ScaleType, a.Biases)
	out := make([]float64, n)
	for i := range out {
		code := 0
		for b := range a.Bits {
			at := i*a.Bits + b
			code |= int(a.Weight[at/8]>>(at%8)&1) << b
		}
		out[i] = scales[i/a.GroupSize]*float64(code) + biases[i/a.GroupSize]
	}
	return out
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
