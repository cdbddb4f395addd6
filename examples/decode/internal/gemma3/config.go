// Package gemma3 reads Gemma 3 text models from Hugging Face checkpoints: the configuration, and the tensors under
// their names, in bfloat16, float16, float32 or MLX's 4-bit affine format.
package gemma3

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
)

// Config is a Gemma 3 text model's configuration, checked and with defaults filled in.
type Config struct {
	Vocab     int // rows of the embedding
	Hidden    int // width of the residual stream
	Layers    int
	Heads     int // of queries
	KVHeads   int
	HeadDim   int
	FFN       int // width of the feed-forward block
	Positions int // longest text the model was made for

	Eps        float64 // of every norm, inside the root
	QueryScale float64 // attention's factor on q·k: query_pre_attn_scalar^(−1/2)
	EmbedScale float64 // factor on embeddings: sqrt(Hidden)
	Softcap    float64 // of the final logits; 0 means none

	Sliding []bool // per layer: sees the last Window positions only
	Window  int
	Local   RoPE // of sliding layers
	Global  RoPE // of the others

	BOS  uint32
	EOS  []uint32 // any of them ends a text
	Tied bool     // the output matrix is the embedding

	GroupSize int // of the 4-bit format; 0 if the checkpoint is not quantised
}

// RoPE are the parameters of rotary position embedding.
type RoPE struct {
	Theta  float64
	Factor float64 // positions are divided by it
}

// InverseFrequencies are the HeadDim/2 angular speeds Theta^(−2p/HeadDim)/Factor. They are computed on the host, since a
// device's power function may be off by more than a rounding, and in the original's order of roundings to float32: a
// different last bit would turn distant positions by another angle than the model was trained with.
func (r RoPE) InverseFrequencies(headDim int) []float32 {
	out := make([]float32, headDim/2)
	for p := range out {
		power := float32(math.Pow(r.Theta, 2*float64(p)/float64(headDim)))
		out[p] = 1 / power / float32(r.Factor)
	}
	return out
}

// Rotary is the RoPE of a layer.
func (c *Config) Rotary(layer int) RoPE {
	if c.Sliding[layer] {
		return c.Local
	}
	return c.Global
}

// Group is the group size of the model's 4-bit matrices: the checkpoint's, or 64, with which a dense matrix is quantised.
func (c *Config) Group() int {
	if c.GroupSize == 0 {
		return 64
	}
	return c.GroupSize
}

// ConfigFile is the name of the configuration within a checkpoint.
const ConfigFile = "config.json"

const maxConfigBytes = 4 << 20

// ReadConfig reads and checks the configuration of the checkpoint in dir.
func ReadConfig(dir fs.FS) (*Config, error) {
	f, err := dir.Open(ConfigFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	if len(data) > maxConfigBytes {
		return nil, fmt.Errorf("%s: it is longer than %d bytes", ConfigFile, maxConfigBytes)
	}
	c, err := ParseConfig(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	return c, nil
}

// rawConfig is what config.json says. Pointers tell a missing or null value from zero.
type rawConfig struct {
	ModelType     string   `json:"model_type"`
	Architectures []string `json:"architectures"`

	Vocab     *int `json:"vocab_size"`
	Hidden    *int `json:"hidden_size"`
	Layers    *int `json:"num_hidden_layers"`
	Heads     *int `json:"num_attention_heads"`
	KVHeads   *int `json:"num_key_value_heads"`
	HeadDim   *int `json:"head_dim"`
	FFN       *int `json:"intermediate_size"`
	Positions *int `json:"max_position_embeddings"`

	Eps           *float64 `json:"rms_norm_eps"`
	QueryScalar   *float64 `json:"query_pre_attn_scalar"`
	Softcap       *float64 `json:"final_logit_softcapping"`
	AttnSoftcap   *float64 `json:"attn_logit_softcapping"`
	Activation    *string  `json:"hidden_activation"`
	AttentionBias bool     `json:"attention_bias"`
	Bidirectional bool     `json:"use_bidirectional_attention"`
	Tied          *bool    `json:"tie_word_embeddings"`

	Window     *int     `json:"sliding_window"`
	LayerTypes []string `json:"layer_types"`
	Pattern    *int     `json:"sliding_window_pattern"`
	Pattern2   *int     `json:"_sliding_window_pattern"`

	RoPE struct {
		Full    *rawRoPE `json:"full_attention"`
		Sliding *rawRoPE `json:"sliding_attention"`
	} `json:"rope_parameters"`
	// Before transformers 5:
	Theta      *float64 `json:"rope_theta"`
	LocalTheta *float64 `json:"rope_local_base_freq"`
	Scaling    *rawRoPE `json:"rope_scaling"`

	BOS json.RawMessage `json:"bos_token_id"`
	EOS json.RawMessage `json:"eos_token_id"`

	Quantization map[string]json.RawMessage `json:"quantization"`
}

type rawRoPE struct {
	Theta  *float64 `json:"rope_theta"`
	Type   string   `json:"rope_type"`
	Type2  string   `json:"type"`
	Factor *float64 `json:"factor"`
}

// ParseConfig reads and checks the text of a config.json.
func ParseConfig(data []byte) (*Config, error) {
	var raw rawConfig
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	if err := raw.supported(); err != nil {
		return nil, err
	}
	c := &Config{Tied: true}
	for _, step := range []func(*Config) error{raw.sizes, raw.scalars, raw.attention, raw.rope, raw.tokens, raw.quantization} {
		if err := step(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// supported refuses models of another kind.
func (raw *rawConfig) supported() error {
	const need = "needed is a Gemma 3 text model (model_type gemma3_text, architecture Gemma3ForCausalLM)"
	switch {
	case raw.ModelType == "":
		return errors.New("model_type is missing: " + need)
	case raw.ModelType != "gemma3_text":
		return fmt.Errorf("model_type is %q: %s", raw.ModelType, need)
	case len(raw.Architectures) > 0 && !slices.Contains(raw.Architectures, "Gemma3ForCausalLM"):
		return fmt.Errorf("the architecture is %s: %s", strings.Join(raw.Architectures, ", "), need)
	case raw.Activation != nil && *raw.Activation != "gelu_pytorch_tanh":
		return fmt.Errorf("hidden_activation is %q: only gelu_pytorch_tanh is supported", *raw.Activation)
	case raw.AttnSoftcap != nil:
		return fmt.Errorf("attn_logit_softcapping is %g: attention with a softcap is not supported", *raw.AttnSoftcap)
	case raw.AttentionBias:
		return errors.New("attention_bias is true: biases are not supported")
	case raw.Bidirectional:
		return errors.New("use_bidirectional_attention is true: only causal attention is supported")
	}
	return nil
}

func (raw *rawConfig) sizes(c *Config) error {
	for _, f := range []struct {
		name  string
		value *int
		into  *int
		max   int
	}{
		{"vocab_size", raw.Vocab, &c.Vocab, 1 << 22},
		{"hidden_size", raw.Hidden, &c.Hidden, 1 << 16},
		{"num_hidden_layers", raw.Layers, &c.Layers, 1 << 10},
		{"num_attention_heads", raw.Heads, &c.Heads, 1 << 10},
		{"num_key_value_heads", raw.KVHeads, &c.KVHeads, 1 << 10},
		{"head_dim", raw.HeadDim, &c.HeadDim, 1 << 10},
		{"intermediate_size", raw.FFN, &c.FFN, 1 << 18},
		{"max_position_embeddings", raw.Positions, &c.Positions, 1 << 24},
	} {
		if f.value == nil {
			return fmt.Errorf("%s is missing", f.name)
		}
		if *f.value < 1 || *f.value > f.max {
			return fmt.Errorf("%s is %d: it must be from 1 to %d", f.name, *f.value, f.max)
		}
		*f.into = *f.value
	}
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("num_attention_heads %d is not a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	}
	if c.HeadDim%2 != 0 {
		return fmt.Errorf("head_dim %d is odd", c.HeadDim)
	}
	return nil
}

func (raw *rawConfig) scalars(c *Config) error {
	c.EmbedScale = math.Sqrt(float64(c.Hidden))
	eps, err := positive("rms_norm_eps", raw.Eps, 1e-6)
	if err != nil {
		return err
	}
	if eps >= 1 {
		return fmt.Errorf("rms_norm_eps is %g: it must be smaller than 1", eps)
	}
	c.Eps = eps
	if raw.QueryScalar == nil {
		return errors.New("query_pre_attn_scalar is missing")
	}
	scalar, err := positive("query_pre_attn_scalar", raw.QueryScalar, 0)
	if err != nil {
		return err
	}
	c.QueryScale = 1 / math.Sqrt(scalar)
	if raw.Softcap != nil {
		if c.Softcap, err = positive("final_logit_softcapping", raw.Softcap, 0); err != nil {
			return err
		}
	}
	if raw.Tied != nil {
		c.Tied = *raw.Tied
	}
	return nil
}

// positive is a number that must be positive and fit a float32; missing stands for a missing one.
func positive(name string, value *float64, missing float64) (float64, error) {
	if value == nil {
		return missing, nil
	}
	if v := float32(*value); !(v > 0) || math.IsInf(float64(v), 0) {
		return 0, fmt.Errorf("%s is %g: it must be a positive number", name, *value)
	}
	return *value, nil
}

// attention finds out which layers slide: layer_types says it, or every pattern-th layer is global.
func (raw *rawConfig) attention(c *Config) error {
	c.Sliding = make([]bool, c.Layers)
	if raw.LayerTypes != nil {
		if len(raw.LayerTypes) != c.Layers {
			return fmt.Errorf("layer_types has %d entries for %d layers", len(raw.LayerTypes), c.Layers)
		}
		for i, kind := range raw.LayerTypes {
			switch kind {
			case "sliding_attention":
				c.Sliding[i] = true
			case "full_attention":
			default:
				return fmt.Errorf("layer_types: layer %d is %q: known are sliding_attention and full_attention", i, kind)
			}
		}
	} else {
		pattern := raw.Pattern
		if pattern == nil {
			pattern = raw.Pattern2
		}
		if pattern == nil {
			return errors.New("both layer_types and sliding_window_pattern are missing")
		}
		if *pattern < 1 {
			return fmt.Errorf("sliding_window_pattern is %d: it must be positive", *pattern)
		}
		for i := range c.Sliding {
			c.Sliding[i] = (i+1)%*pattern != 0
		}
	}
	if !slices.Contains(c.Sliding, true) {
		return nil
	}
	if raw.Window == nil {
		return errors.New("sliding_window is missing, but there are sliding layers")
	}
	if *raw.Window < 1 || *raw.Window > 1<<24 {
		return fmt.Errorf("sliding_window is %d: it must be from 1 to %d", *raw.Window, 1<<24)
	}
	c.Window = *raw.Window
	return nil
}

func (raw *rawConfig) rope(c *Config) (err error) {
	full, sliding := raw.RoPE.Full, raw.RoPE.Sliding
	if full == nil {
		full = &rawRoPE{Theta: raw.Theta}
		if raw.Scaling != nil {
			full.Type, full.Type2, full.Factor = raw.Scaling.Type, raw.Scaling.Type2, raw.Scaling.Factor
		}
	}
	if sliding == nil {
		sliding = &rawRoPE{Theta: raw.LocalTheta}
	}
	if c.Global, err = full.rope("full_attention", 1e6); err != nil {
		return err
	}
	c.Local, err = sliding.rope("sliding_attention", 1e4)
	return err
}

func (r *rawRoPE) rope(layers string, theta float64) (out RoPE, err error) {
	if out.Theta, err = positive("rope_theta of "+layers, r.Theta, theta); err != nil {
		return out, err
	}
	kind := r.Type
	if kind == "" {
		kind = r.Type2
	}
	switch kind {
	case "", "default":
		out.Factor = 1
	case "linear":
		if r.Factor == nil {
			return out, fmt.Errorf("the linear RoPE scaling of %s has no factor", layers)
		}
		out.Factor, err = positive("the RoPE factor of "+layers, r.Factor, 1)
	default:
		err = fmt.Errorf("the RoPE type of %s is %q: only default and linear are supported", layers, kind)
	}
	return out, err
}

func (raw *rawConfig) tokens(c *Config) error {
	bos, err := tokenIDs("bos_token_id", raw.BOS, 2, c.Vocab)
	if err != nil {
		return err
	}
	if len(bos) != 1 {
		return fmt.Errorf("bos_token_id has %d ids, not one", len(bos))
	}
	c.BOS = bos[0]
	c.EOS, err = tokenIDs("eos_token_id", raw.EOS, 1, c.Vocab)
	return err
}

// tokenIDs reads an id or a list of ids.
func tokenIDs(name string, text json.RawMessage, missing uint32, vocab int) ([]uint32, error) {
	if len(text) == 0 || string(text) == "null" {
		text = json.RawMessage(fmt.Sprint(missing))
	}
	var ids []uint32
	var id uint32
	if err := json.Unmarshal(text, &id); err == nil {
		ids = []uint32{id}
	} else if err := json.Unmarshal(text, &ids); err != nil {
		return nil, fmt.Errorf("%s is %.40s: it must be a token id or a list of them", name, text)
	}
	for _, id := range ids {
		if uint64(id) >= uint64(vocab) {
			return nil, fmt.Errorf("%s is %d, outside the vocabulary of %d", name, id, vocab)
		}
	}
	return ids, nil
}

// quantization reads MLX's description of a quantised checkpoint.
func (raw *rawConfig) quantization(c *Config) error {
	if raw.Quantization == nil {
		return nil
	}
	var group, bits int
	mode := "affine"
	for key, value := range raw.Quantization {
		var into any
		switch key {
		case "group_size":
			into = &group
		case "bits":
			into = &bits
		case "mode":
			into = &mode
		default:
			// A tensor's own settings: an object, or false for a tensor left alone. What a tensor is, its type tells.
			if string(value) == "false" {
				continue
			}
			return fmt.Errorf("quantization has its own settings for %q, which is not supported", key)
		}
		if err := json.Unmarshal(value, into); err != nil {
			return fmt.Errorf("quantization.%s: %w", key, err)
		}
	}
	if bits != 4 {
		return fmt.Errorf("quantization.bits is %d: only 4 is supported", bits)
	}
	if mode != "affine" {
		return fmt.Errorf("quantization.mode is %q: only affine is supported", mode)
	}
	if group != 32 && group != 64 && group != 128 {
		return fmt.Errorf("quantization.group_size is %d: it must be 32, 64 or 128", group)
	}
	c.GroupSize = group
	return nil
}
