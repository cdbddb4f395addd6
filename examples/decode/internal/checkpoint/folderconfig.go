package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// folderConfig is what config.json says. Pointers tell a missing or null value from zero, a nullable these two from each other.
type folderConfig struct {
	ModelType     string   `json:"model_type"`
	Architectures []string `json:"architectures"`

	Vocab     *int64   `json:"vocab_size"`
	Hidden    *int64   `json:"hidden_size"`
	Layers    *int64   `json:"num_hidden_layers"`
	Heads     *int64   `json:"num_attention_heads"`
	KVHeads   nullable `json:"num_key_value_heads"`
	HeadDim   *int64   `json:"head_dim"`
	FFN       *int64   `json:"intermediate_size"`
	Positions *int64   `json:"max_position_embeddings"`

	Eps           *float64 `json:"rms_norm_eps"`
	QueryScalar   *float64 `json:"query_pre_attn_scalar"`
	Softcap       *float64 `json:"final_logit_softcapping"`
	AttnSoftcap   *float64 `json:"attn_logit_softcapping"`
	Activation    *string  `json:"hidden_act"`
	Activation2   *string  `json:"hidden_activation"`
	AttentionBias bool     `json:"attention_bias"`
	MLPBias       bool     `json:"mlp_bias"`
	Bidirectional bool     `json:"use_bidirectional_attention"`
	Tied          *bool    `json:"tie_word_embeddings"`

	Window      nullable `json:"sliding_window"`
	UseWindow   bool     `json:"use_sliding_window"`
	FullLayers  *int64   `json:"max_window_layers"`
	LayerTypes  []string `json:"layer_types"`
	Pattern     *int64   `json:"sliding_window_pattern"`
	Pattern2    *int64   `json:"_sliding_window_pattern"`
	PartialRoPE *float64 `json:"partial_rotary_factor"`

	RoPE       json.RawMessage `json:"rope_parameters"` // since transformers 5
	Theta      *float64        `json:"rope_theta"`
	LocalTheta *float64        `json:"rope_local_base_freq"`
	Scaling    *folderRoPE     `json:"rope_scaling"`

	BOS           json.RawMessage `json:"bos_token_id"`
	EOS           json.RawMessage `json:"eos_token_id"`
	generationEOS json.RawMessage // of generation_config.json

	Quantization       map[string]json.RawMessage `json:"quantization"`
	QuantizationConfig map[string]json.RawMessage `json:"quantization_config"`
}

// family is what is fixed for all models of a type, and the defaults of its configuration.
type family struct {
	architecture string
	gemma        bool
	qkNorm       bool
	qkvBias      bool // always; others by attention_bias
	optionalBias bool // attention_bias is heeded
	window       int  // how sliding layers are told, one of the below
	headDim      int64
	kvHeads      int64
	positions    int64
	window0      int64 // default of sliding_window
	bos, eos     uint32
	addBOS       bool // unless the tokenizer says otherwise
	tied         bool
}

const (
	windowNever   = iota
	windowAlways  // in all layers, if there is a sliding_window
	windowLayered // if use_sliding_window, after the first max_window_layers
	windowPattern // by layer_types or every n-th layer not
)

// families are the model types, with the defaults of Hugging Face's configuration classes.
var families = map[string]family{
	"gemma3_text": {architecture: "Gemma3ForCausalLM", gemma: true, qkNorm: true, window: windowPattern, bos: 2, eos: 1, addBOS: true, tied: true},
	"llama":       {architecture: "LlamaForCausalLM", optionalBias: true, positions: 2048, bos: 1, eos: 2, addBOS: true},
	"mistral":     {architecture: "MistralForCausalLM", window: windowAlways, window0: 4096, kvHeads: 8, positions: 4096 * 32, bos: 1, eos: 2, addBOS: true},
	"qwen2":       {architecture: "Qwen2ForCausalLM", qkvBias: true, window: windowLayered, window0: 4096, positions: 32768, kvHeads: 32},
	"qwen3":       {architecture: "Qwen3ForCausalLM", qkNorm: true, optionalBias: true, window: windowLayered, window0: 4096, headDim: 128, positions: 32768, kvHeads: 32},
}

func (raw *folderConfig) family() family { return families[raw.ModelType] }

// tied says whether the output matrix is the embedding.
func (raw *folderConfig) tied() bool {
	if raw.Tied != nil {
		return *raw.Tied
	}
	return raw.family().tied
}

// config checks everything and fills in defaults.
func (raw *folderConfig) config() (*Config, error) {
	if err := raw.supported(); err != nil {
		return nil, err
	}
	f := raw.family()
	c := &Config{Architecture: raw.ModelType, Tied: raw.tied(), PostNorms: f.gemma, QKNorm: f.qkNorm,
		AttentionBias: f.qkvBias || f.optionalBias && raw.AttentionBias, outputBias: f.optionalBias && raw.AttentionBias}
	if !f.gemma {
		c.Activation = SiLU
	}
	for _, step := range []func(*Config) error{raw.sizes, raw.scalars, raw.attention, raw.rope, raw.tokens} {
		if err := step(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// supported refuses models of another kind.
func (raw *folderConfig) supported() error {
	f, ok := families[raw.ModelType]
	known := oneOf(slices.Sorted(maps.Keys(families)))
	activation, activationName := raw.Activation, "hidden_act"
	need := "silu"
	if f.gemma {
		activation, activationName = raw.Activation2, "hidden_activation"
		need = "gelu_pytorch_tanh"
	}
	switch {
	case raw.ModelType == "":
		return errors.New("model_type is missing: it must be " + known)
	case !ok:
		return fmt.Errorf("model_type is %q: known are %s", raw.ModelType, known)
	case len(raw.Architectures) > 0 && !slices.Contains(raw.Architectures, f.architecture):
		return fmt.Errorf("architectures is %s: needed is %s", strings.Join(raw.Architectures, ", "), f.architecture)
	case activation != nil && *activation != need:
		return fmt.Errorf("%s is %q: only %s is supported", activationName, *activation, need)
	case raw.AttnSoftcap != nil && !f.gemma:
		return fmt.Errorf("attn_logit_softcapping is %g: %s models have none", *raw.AttnSoftcap, raw.ModelType)
	case raw.AttentionBias && !f.optionalBias && !f.qkvBias:
		return fmt.Errorf("attention_bias is true: it is not supported for %s", raw.ModelType)
	case raw.MLPBias:
		return errors.New("mlp_bias is true: biases of the feed-forward block are not supported")
	case raw.Bidirectional:
		return errors.New("use_bidirectional_attention is true: only causal attention is supported")
	}
	return nil
}

func (raw *folderConfig) sizes(c *Config) (err error) {
	f := raw.family()
	for _, s := range []struct {
		name    string
		value   *int64
		missing int64 // the default, 0 if there is none
		into    *int
		limit   int
	}{
		{"vocab_size", raw.Vocab, 0, &c.Vocab, maxVocab},
		{"hidden_size", raw.Hidden, 0, &c.Hidden, maxHidden},
		{"num_hidden_layers", raw.Layers, 0, &c.Layers, maxLayers},
		{"num_attention_heads", raw.Heads, 0, &c.Heads, maxHeads},
		{"num_key_value_heads", raw.KVHeads.or(f.kvHeads), 0, &c.KVHeads, maxHeads},
		{"head_dim", raw.HeadDim, f.headDim, &c.HeadDim, maxHeadDim},
		{"intermediate_size", raw.FFN, 0, &c.FFN, maxFFN},
		{"max_position_embeddings", raw.Positions, f.positions, &c.Positions, maxPositions},
	} {
		switch {
		case s.value != nil:
		case s.missing > 0:
			s.value = &s.missing
		case s.into == &c.KVHeads && !f.gemma:
			c.KVHeads = c.Heads
			continue
		case s.into == &c.HeadDim && !f.gemma:
			if c.Hidden%c.Heads != 0 {
				return fmt.Errorf("head_dim is missing, and hidden_size %d is not a multiple of num_attention_heads %d", c.Hidden, c.Heads)
			}
			v := int64(c.Hidden / c.Heads)
			s.value = &v
		default:
			return fmt.Errorf("%s is missing", s.name)
		}
		if *s.into, err = size(s.name, *s.value, s.limit); err != nil {
			return err
		}
	}
	return c.heads("num_attention_heads", "num_key_value_heads", "head_dim")
}

func (raw *folderConfig) scalars(c *Config) (err error) {
	c.Eps, c.EmbedScale, c.QueryScale = 1e-6, 1, 1/math.Sqrt(float64(c.HeadDim))
	if raw.Eps != nil {
		if c.Eps, err = epsilon("rms_norm_eps", *raw.Eps); err != nil {
			return err
		}
	}
	if !raw.family().gemma {
		return nil
	}
	c.EmbedScale = math.Sqrt(float64(c.Hidden))
	if raw.QueryScalar == nil {
		return errors.New("query_pre_attn_scalar is missing")
	}
	scalar, err := positive("query_pre_attn_scalar", *raw.QueryScalar)
	if err != nil {
		return err
	}
	c.QueryScale = 1 / math.Sqrt(scalar)
	if raw.Softcap != nil {
		if c.Softcap, err = positive("final_logit_softcapping", *raw.Softcap); err != nil {
			return err
		}
	}
	if raw.AttnSoftcap != nil {
		c.AttnSoftcap, err = positive("attn_logit_softcapping", *raw.AttnSoftcap)
	}
	return err
}

// attention finds out which layers slide.
func (raw *folderConfig) attention(c *Config) error {
	c.Sliding = make([]bool, c.Layers)
	f := raw.family()
	window := raw.Window.or(f.window0)
	switch {
	case f.window == windowNever, f.window == windowLayered && !raw.UseWindow:
		return nil
	case window == nil && (f.window == windowAlways || f.window == windowLayered && raw.LayerTypes == nil):
		return nil
	case f.window != windowAlways && raw.LayerTypes != nil:
		if err := raw.layerTypes(c); err != nil {
			return err
		}
	case f.window == windowAlways:
		c.pattern(0)
	case f.window == windowLayered:
		if err := raw.windowLayers(c); err != nil {
			return err
		}
	default:
		if err := raw.windowPattern(c); err != nil {
			return err
		}
	}
	if !c.slides() {
		return nil
	}
	if window == nil {
		return errors.New("sliding_window is missing, but there are sliding layers")
	}
	var err error
	c.Window, err = size("sliding_window", *window, maxPositions)
	return err
}

func (raw *folderConfig) layerTypes(c *Config) error {
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
	return nil
}

// windowLayers: all layers slide but the first max_window_layers.
func (raw *folderConfig) windowLayers(c *Config) error {
	full := int64(28)
	if raw.FullLayers != nil {
		full = *raw.FullLayers
	}
	if full < 0 {
		return fmt.Errorf("max_window_layers is %d: it must not be negative", full)
	}
	for i := range c.Sliding {
		c.Sliding[i] = int64(i) >= full
	}
	return nil
}

// windowPattern: every n-th layer does not slide.
func (raw *folderConfig) windowPattern(c *Config) error {
	pattern := raw.Pattern
	if pattern == nil {
		pattern = raw.Pattern2
	}
	if pattern == nil {
		return errors.New("both layer_types and sliding_window_pattern are missing")
	}
	n, err := size("sliding_window_pattern", *pattern, maxLayers)
	if err != nil {
		return err
	}
	c.pattern(n)
	return nil
}

// tokens reads the ids of markers.
func (raw *folderConfig) tokens(c *Config) error {
	f := raw.family()
	c.AddBOS = f.addBOS
	bos, err := tokenIDs("bos_token_id", raw.BOS, c.Vocab)
	switch {
	case err != nil:
		return err
	case bos == nil:
		c.BOS = f.bos
	case len(bos) != 1:
		return fmt.Errorf("bos_token_id has %d ids, not one", len(bos))
	default:
		c.BOS = bos[0]
	}
	if c.BOS >= uint32(c.Vocab) {
		return fmt.Errorf("bos_token_id is %d by default, outside the vocabulary of %d", c.BOS, c.Vocab)
	}
	if c.EOS, err = tokenIDs("eos_token_id", raw.EOS, c.Vocab); err != nil {
		return err
	}
	more, err := tokenIDs("eos_token_id of "+generationFile, raw.generationEOS, c.Vocab)
	if err != nil {
		return err
	}
	for _, id := range more {
		if !slices.Contains(c.EOS, id) {
			c.EOS = append(c.EOS, id)
		}
	}
	if c.EOS == nil && raw.EOS == nil && f.eos > 0 && int64(f.eos) < int64(c.Vocab) { // null is none
		c.EOS = []uint32{f.eos}
	}
	return nil
}

// tokenIDs reads an id or a list of ids, none where there is nothing.
func tokenIDs(name string, text json.RawMessage, vocab int) ([]uint32, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
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
