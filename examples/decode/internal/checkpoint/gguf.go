package checkpoint

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/gguf"
	"github.com/ingot-metal/ingot/nn"
)

// openGGUF opens a GGUF file; paths is where it is on disk, none if it is not.
func openGGUF(name string, f *gguf.File, paths []string) (*Checkpoint, error) {
	c := &Checkpoint{Name: name, source: ggufSource{f, paths}}
	if err := c.readGGUF(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return c, nil
}

func (c *Checkpoint) readGGUF(f *gguf.File) (err error) {
	m := &metadata{file: f}
	if c.Config, err = m.config(); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if c.tokenizer, err = m.tokenizer(c.Config); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if err := c.open(ggufLayout(m.architecture)); err != nil {
		return err
	}
	return c.readFactors()
}

// ggufSource is the tensors of a GGUF file.
type ggufSource struct {
	*gguf.File
	paths []string
}

func (s ggufSource) names() []string { return s.Names() }
func (s ggufSource) files() []string { return s.paths }

func (s ggufSource) tensor(name string) (tensor, bool) {
	t, ok := s.Tensor(name)
	if !ok {
		return tensor{}, false
	}
	file := 0
	if s.paths == nil {
		file = -1
	}
	return tensor{name: name, kind: t.Type.String(), shape: t.Shape, padded: true, in: s.Name(), file: file, offset: t.Offset, size: t.Size}, true
}

func (s ggufSource) read(t tensor) ([]byte, error) {
	info, _ := s.Tensor(t.name)
	return s.Read(info)
}

// ggufNames are the names of tensors, without the layer.
var ggufNames = map[Role]string{
	Embedding: "token_embd.weight", Output: "output.weight", FinalNorm: "output_norm.weight",
	InputNorm: "attn_norm.weight", PostAttentionNorm: "post_attention_norm.weight",
	PreFFNNorm: "ffn_norm.weight", PostFFNNorm: "post_ffw_norm.weight",
	QueryNorm: "attn_q_norm.weight", KeyNorm: "attn_k_norm.weight",
	Query: "attn_q.weight", Key: "attn_k.weight", Value: "attn_v.weight", AttentionOutput: "attn_output.weight",
	Gate: "ffn_gate.weight", Up: "ffn_up.weight", Down: "ffn_down.weight",
	QueryBias: "attn_q.bias", KeyBias: "attn_k.bias", ValueBias: "attn_v.bias", AttentionOutputBias: "attn_output.bias",
}

// ropeFactors is the name of the tensor of further divisors of RoPE's frequencies.
const ropeFactors = "rope_freqs.weight"

func ggufName(k slotKey) string {
	if k.layer < 0 {
		return ggufNames[k.role]
	}
	return fmt.Sprintf("blk.%d.%s", k.layer, ggufNames[k.role])
}

// ggufLayout: the weights of Gemma's norms have their 1 added already.
func ggufLayout(architecture string) layout {
	return layout{
		name:  ggufName,
		types: nn.WeightTypes(),
		model: "a " + architecture + " model",
		// Converters of old wrote the layers' frequencies, which follow from the configuration.
		harmless: func(name string) bool {
			return name == ropeFactors || strings.HasPrefix(name, "blk.") && strings.HasSuffix(name, ".attn_rot_embd.weight")
		},
	}
}

// readFactors reads the divisors, which are the same for all layers.
func (c *Checkpoint) readFactors() error {
	t, ok := c.source.tensor(ropeFactors)
	if !ok {
		return nil
	}
	if t.kind != nn.WeightF32.String() {
		return t.error("is of type %s, needed is F32", t.kind)
	}
	if err := t.expect(int64(c.Config.RoPE[0].Dim / 2)); err != nil {
		return err
	}
	factors, err := readNumbers(c.source, t, nn.WeightF32)
	if err != nil {
		return err
	}
	for i, v := range factors {
		if v <= 0 {
			return t.error("has %g at index %d, needed are positive numbers", v, i)
		}
	}
	for i := range c.Config.RoPE {
		c.Config.RoPE[i].Scaling.Factors = factors
	}
	return nil
}
