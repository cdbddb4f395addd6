package gemma3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/safetensors"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Checkpoint is a model on disk. Tensors are read when they are asked for, so that a large model never is in host memory
// as a whole.
type Checkpoint struct {
	Config  *Config
	tensors *safetensors.Tensors
}

// Matrix is a weight matrix, [Rows][Cols], as it is stored: in full, or quantised.
type Matrix struct {
	Name       string
	Rows, Cols int

	Dense []float32    // nil if the matrix is quantised
	Q4    *quant.Q4MLX // nil if it is not
}

// Quantised is the matrix in MLX's 4-bit format: as stored, or quantised now in groups of group columns.
func (m Matrix) Quantised(group int) (quant.Q4MLX, error) {
	if m.Q4 != nil {
		return *m.Q4, nil
	}
	q, err := quant.QuantizeQ4MLX(m.Dense, m.Rows, m.Cols, group)
	if err != nil {
		return q, fmt.Errorf("tensor %q: %w", m.Name, err)
	}
	return q, nil
}

// Open opens the checkpoint in dir, and checks its configuration and the names, types and shapes of all its tensors.
func Open(dir fs.FS) (*Checkpoint, error) {
	config, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	tensors, err := safetensors.Open(dir)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{config, tensors}
	if err := c.check(); err != nil {
		tensors.Close()
		return nil, err
	}
	return c, nil
}

// Close closes the files.
func (c *Checkpoint) Close() error { return c.tensors.Close() }

type shape struct{ rows, cols int } // cols is 0 for a vector

// plan lists the tensors of the model, without their ".weight".
func (c *Config) plan() map[string]shape {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	plan := map[string]shape{Embedding: {c.Vocab, c.Hidden}, FinalNorm: {c.Hidden, 0}}
	if !c.Tied {
		plan[Output] = shape{c.Vocab, c.Hidden}
	}
	for i := range c.Layers {
		for name, s := range map[string]shape{
			InputNorm:         {c.Hidden, 0},
			PostAttentionNorm: {c.Hidden, 0},
			PreFFNNorm:        {c.Hidden, 0},
			PostFFNNorm:       {c.Hidden, 0},
			QueryNorm:         {c.HeadDim, 0},
			KeyNorm:           {c.HeadDim, 0},
			QueryProjection:   {q, c.Hidden},
			KeyProjection:     {kv, c.Hidden},
			ValueProjection:   {kv, c.Hidden},
			AttentionOutput:   {c.Hidden, q},
			Gate:              {c.FFN, c.Hidden},
			Up:                {c.FFN, c.Hidden},
			Down:              {c.Hidden, c.FFN},
		} {
			plan[Layer(i, name)] = s
		}
	}
	return plan
}

// Names of tensors, without their ".weight". Those from InputNorm on belong to a layer: see Layer.
const (
	Embedding = "model.embed_tokens"
	FinalNorm = "model.norm"
	Output    = "lm_head"

	InputNorm         = "input_layernorm"
	PostAttentionNorm = "post_attention_layernorm"
	PreFFNNorm        = "pre_feedforward_layernorm"
	PostFFNNorm       = "post_feedforward_layernorm"
	QueryNorm         = "self_attn.q_norm"
	KeyNorm           = "self_attn.k_norm"
	QueryProjection   = "self_attn.q_proj"
	KeyProjection     = "self_attn.k_proj"
	ValueProjection   = "self_attn.v_proj"
	AttentionOutput   = "self_attn.o_proj"
	Gate              = "mlp.gate_proj"
	Up                = "mlp.up_proj"
	Down              = "mlp.down_proj"
)

// Layer is the full name of a layer's tensor.
func Layer(layer int, name string) string { return fmt.Sprintf("model.layers.%d.%s", layer, name) }

var plainTypes = []string{"BF16", "F16", "F32"}

// check compares the checkpoint with the plan: nothing may be missing, of the wrong type or shape, or left over.
func (c *Checkpoint) check() error {
	plan := c.Config.plan()
	for _, name := range slices.Sorted(maps.Keys(plan)) {
		s := plan[name]
		info, ok := c.tensors.Info(name + ".weight")
		if !ok {
			return fmt.Errorf("the checkpoint has no tensor %q", name+".weight")
		}
		quantised := s.cols > 0 && info.DType == "U32"
		if err := c.checkTensor(name, s, quantised); err != nil {
			return err
		}
		for _, suffix := range []string{".scales", ".biases"} {
			if _, have := c.tensors.Info(name + suffix); have && !quantised {
				return fmt.Errorf("tensor %q is of type %s, but there is %q", name+".weight", info.DType, name+suffix)
			}
		}
	}
	for _, name := range c.tensors.Names() {
		base := strings.TrimSuffix(name, ".weight")
		if quantised := strings.TrimSuffix(strings.TrimSuffix(name, ".scales"), ".biases"); quantised != name {
			base = quantised
		}
		if _, known := plan[base]; known || base == Output || strings.HasSuffix(name, ".rotary_emb.inv_freq") {
			continue // an output matrix that a tied model does not use, or a cache that old versions saved, does no harm
		}
		return fmt.Errorf("the checkpoint has a tensor %q, which is not part of a Gemma 3 text model of %d layers", name, c.Config.Layers)
	}
	return nil
}

func (c *Checkpoint) checkTensor(name string, s shape, quantised bool) error {
	switch {
	case s.cols == 0:
		return c.expect(name+".weight", []int64{int64(s.rows)}, plainTypes...)
	case !quantised:
		if group := c.Config.Group(); s.cols%group != 0 {
			return fmt.Errorf("tensor %q has %d columns, which groups of %d do not divide: it cannot be quantised", name+".weight", s.cols, group)
		}
		return c.expect(name+".weight", []int64{int64(s.rows), int64(s.cols)}, plainTypes...)
	}
	group := c.Config.GroupSize
	if group == 0 {
		return fmt.Errorf("tensor %q is of type U32, but %s has no quantization: needed is %s", name+".weight", ConfigFile, strings.Join(plainTypes, " or "))
	}
	if s.cols%group != 0 {
		return fmt.Errorf("tensor %q has %d columns, which groups of %d do not divide", name+".weight", s.cols, group)
	}
	groups := []int64{int64(s.rows), int64(s.cols / group)}
	return errors.Join(
		c.expect(name+".weight", []int64{int64(s.rows), int64(s.cols / 8)}, "U32"),
		c.expect(name+".scales", groups, "BF16"),
		c.expect(name+".biases", groups, "BF16"),
	)
}

func (c *Checkpoint) expect(name string, shape []int64, dtypes ...string) error {
	return c.tensors.Expect(name, shape, dtypes...)
}

// Vector reads a vector of n numbers.
func (c *Checkpoint) Vector(name string, n int) ([]float32, error) {
	return c.floats(name+".weight", []int64{int64(n)}, plainTypes...)
}

// NormWeight reads a norm's weight. Gemma stores w and multiplies by 1 + w; the result is 1 + w.
func (c *Checkpoint) NormWeight(name string, n int) ([]float32, error) {
	w, err := c.Vector(name, n)
	for i := range w {
		w[i]++
	}
	return w, err
}

// Matrix reads a matrix in the form in which it is stored.
func (c *Checkpoint) Matrix(name string, rows, cols int) (m Matrix, err error) {
	m = Matrix{Name: name, Rows: rows, Cols: cols}
	info, _ := c.tensors.Info(name + ".weight")
	if info.DType != "U32" {
		m.Dense, err = c.floats(name+".weight", []int64{int64(rows), int64(cols)}, plainTypes...)
		return m, err
	}
	t := quant.Affine{Format: quant.AffineFormat{Bits: 4, GroupSize: c.Config.GroupSize, Scale: quant.ScaleBF16}, Rows: rows, Cols: cols}
	groups := []int64{int64(rows), int64(cols / t.Format.GroupSize)}
	for _, part := range []struct {
		name  string
		shape []int64
		dtype string
		into  *[]byte
	}{
		{".weight", []int64{int64(rows), int64(cols / quant.CodesPerWord)}, "U32", &t.Weight},
		{".scales", groups, "BF16", &t.Scales},
		{".biases", groups, "BF16", &t.Biases},
	} {
		if *part.into, _, err = c.tensors.Read(name+part.name, part.shape, part.dtype); err != nil {
			return m, err
		}
	}
	q, err := t.Q4MLX()
	if err != nil {
		return m, fmt.Errorf("tensor %q: %w", name, err)
	}
	m.Q4 = &q
	return m, nil
}

// floats reads numbers, and refuses those that are none: an infinite weight would silence the model without a word.
func (c *Checkpoint) floats(name string, shape []int64, dtypes ...string) ([]float32, error) {
	data, info, err := c.tensors.Read(name, shape, dtypes...)
	if err != nil {
		return nil, err
	}
	var out []float32
	switch info.DType {
	case "F32":
		out = make([]float32, len(data)/4)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	case "F16":
		out = make([]float32, len(data)/2)
		for i := range out {
			out[i] = half.Float16(binary.LittleEndian.Uint16(data[2*i:])).Float32()
		}
	default:
		out = make([]float32, len(data)/2)
		for i := range out {
			out[i] = half.BFloat16(binary.LittleEndian.Uint16(data[2*i:])).Float32()
		}
	}
	for i, v := range out {
		if v-v != 0 {
			return nil, fmt.Errorf("tensor %q: number %d is %g", name, i, v)
		}
	}
	return out, nil
}
