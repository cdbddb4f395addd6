package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ingot-metal/ingot/examples/decode/internal/gguf"
)

// metadata reads a model's configuration from a GGUF file. Defaults are those of llama.cpp.
type metadata struct {
	file         *gguf.File
	architecture string
}

// ggufArchitecture is what is fixed for all models of an architecture.
type ggufArchitecture struct {
	gemma      bool
	qkNorm     bool
	neighbours bool // the rows of queries and keys were reordered for it
}

var ggufArchitectures = map[string]ggufArchitecture{
	"llama":  {neighbours: true},
	"qwen2":  {},
	"qwen3":  {qkNorm: true},
	"gemma3": {gemma: true, qkNorm: true},
}

const architectureKey = "general.architecture"

// gemmaPattern: every so many layers one sees the whole text.
const gemmaPattern = 6

// gemmaLargestLayers is the number of layers of Gemma 3 27B, whose queries are scaled otherwise; the file does not say it.
const gemmaLargestLayers = 62

func (m *metadata) key(name string) string { return m.architecture + "." + name }

func (m *metadata) config() (*Config, error) {
	name, ok, err := m.file.String(architectureKey)
	if err != nil {
		return nil, err
	}
	a, known := ggufArchitectures[name]
	switch {
	case !ok:
		return nil, errors.New(architectureKey + " is missing")
	case !known:
		return nil, fmt.Errorf("%s is %q: known are %s", architectureKey, name, oneOf(slices.Sorted(maps.Keys(ggufArchitectures))))
	}
	m.architecture = name
	c := &Config{Architecture: name, PostNorms: a.gemma, QKNorm: a.qkNorm}
	if !a.gemma {
		c.Activation = SiLU
	}
	c.AttentionBias, c.outputBias, c.Tied = m.has(QueryBias), m.has(AttentionOutputBias), !m.has(Output)
	for _, step := range []func(*Config) error{m.sizes, m.scalars, m.attention, m.rope, m.tokens} {
		if err := step(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// has says whether the file has a tensor that not all models have: the first layer's if each layer has one.
func (m *metadata) has(r Role) bool {
	layer := -1
	if r.inLayer() {
		layer = 0
	}
	_, ok := m.file.Tensor(ggufName(slotKey{r, layer}))
	return ok
}

// errMissing is returned by a default that there is none of.
var errMissing = errors.New("missing")

// size reads one of the sizes; otherwise gives the default, or errMissing.
func (m *metadata) size(name string, limit int, otherwise func() (int, error)) (int, error) {
	key := m.key(name)
	v, ok, err := m.file.Int(key)
	if list, isList, e := m.file.Ints(key); e == nil && isList { // one for each layer
		if len(list) == 0 {
			return 0, fmt.Errorf("%s has no values", key)
		}
		for i, w := range list {
			if w != list[0] {
				return 0, fmt.Errorf("%s is %d for layer 0 and %d for layer %d: layers of different sizes are not supported", key, list[0], w, i)
			}
		}
		v, ok, err = list[0], true, nil
	}
	if err != nil {
		return 0, err
	}
	if !ok {
		n, err := otherwise()
		if err == errMissing {
			return 0, fmt.Errorf("%s is missing", key)
		}
		if err != nil {
			return 0, fmt.Errorf("%s is missing, and %w", key, err)
		}
		return size(key+" by default", int64(n), limit)
	}
	return size(key, v, limit)
}

func required() (int, error) { return 0, errMissing }

func (m *metadata) sizes(c *Config) (err error) {
	perHead := func() (int, error) {
		if c.Hidden%c.Heads != 0 {
			return 0, fmt.Errorf("%s %d is not a multiple of %s %d", m.key("embedding_length"), c.Hidden, m.key("attention.head_count"), c.Heads)
		}
		return c.Hidden / c.Heads, nil
	}
	for _, s := range []struct {
		name      string
		into      *int
		limit     int
		otherwise func() (int, error)
	}{
		{"embedding_length", &c.Hidden, maxHidden, required},
		{"block_count", &c.Layers, maxLayers, required},
		{"feed_forward_length", &c.FFN, maxFFN, required},
		{"context_length", &c.Positions, maxPositions, required},
		{"attention.head_count", &c.Heads, maxHeads, required},
		{"attention.head_count_kv", &c.KVHeads, maxHeads, func() (int, error) { return c.Heads, nil }},
		{"attention.key_length", &c.HeadDim, maxHeadDim, perHead},
	} {
		if *s.into, err = m.size(s.name, s.limit, s.otherwise); err != nil {
			return err
		}
	}
	values, err := m.size("attention.value_length", maxHeadDim, perHead)
	if err != nil {
		return err
	}
	if values != c.HeadDim {
		return fmt.Errorf("%s is %d, but keys have %d numbers: that is not supported", m.key("attention.value_length"), values, c.HeadDim)
	}
	if experts, _, err := m.file.Int(m.key("expert_count")); err != nil {
		return err
	} else if experts > 0 {
		return fmt.Errorf("%s is %d: mixtures of experts are not supported", m.key("expert_count"), experts)
	}
	return c.heads(m.key("attention.head_count"), m.key("attention.head_count_kv"), m.key("attention.key_length"))
}

// float reads a positive number, and says whether there is one.
func (m *metadata) float(name string) (float64, bool, error) {
	v, ok, err := m.file.Float(m.key(name))
	if err != nil || !ok {
		return 0, false, err
	}
	v, err = positive(m.key(name), v)
	return v, true, err
}

func (m *metadata) scalars(c *Config) error {
	const name = "attention.layer_norm_rms_epsilon"
	eps, ok, err := m.float(name)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%s is missing", m.key(name))
	}
	if c.Eps, err = epsilon(m.key(name), eps); err != nil {
		return err
	}
	c.EmbedScale, c.QueryScale = 1, 1/math.Sqrt(float64(c.HeadDim))
	if !ggufArchitectures[m.architecture].gemma {
		return nil
	}
	c.EmbedScale = math.Sqrt(float64(c.Hidden))
	if c.Layers == gemmaLargestLayers {
		c.QueryScale = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
	}
	if c.Softcap, _, err = m.float("final_logit_softcapping"); err != nil {
		return err
	}
	c.AttnSoftcap, _, err = m.float("attn_logit_softcapping")
	return err
}

// attention: of these architectures only Gemma has sliding layers.
func (m *metadata) attention(c *Config) (err error) {
	c.Sliding = make([]bool, c.Layers)
	if !ggufArchitectures[m.architecture].gemma {
		return nil
	}
	if c.Window, err = m.size("attention.sliding_window", maxPositions, required); err != nil {
		return err
	}
	key := m.key("attention.sliding_window_pattern")
	if list, ok, e := m.file.Bools(key); e == nil && ok {
		if len(list) != c.Layers {
			return fmt.Errorf("%s has %d values for %d layers", key, len(list), c.Layers)
		}
		copy(c.Sliding, list)
	} else {
		n, err := m.size("attention.sliding_window_pattern", maxLayers, func() (int, error) { return gemmaPattern, nil })
		if err != nil {
			return err
		}
		c.pattern(n)
	}
	if !c.slides() {
		c.Window = 0
	}
	return nil
}
