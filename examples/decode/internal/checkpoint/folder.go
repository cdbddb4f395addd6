package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/bounded"
	"github.com/ingot-metal/ingot/examples/decode/internal/plainjson"
	"github.com/ingot-metal/ingot/examples/decode/internal/safetensors"
)

// Names of files in a Hugging Face folder.
const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
)

const maxConfigBytes = 4 << 20

// openFolder opens a Hugging Face folder; path is where it is on disk, empty if it is not.
func openFolder(name string, dir fs.FS, path string) (c *Checkpoint, err error) {
	c = &Checkpoint{Name: name}
	raw, err := readFolderConfig(dir)
	if err != nil {
		return nil, err
	}
	if c.Config, err = raw.config(); err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	if err := c.openTokenizer(dir); err != nil {
		return nil, err
	}
	tensors, err := safetensors.Open(dir)
	if err != nil {
		return nil, err
	}
	c.source = newFolderSource(tensors, path)
	l := raw.layout()
	if l.affine, err = raw.affine(); err == nil {
		err = c.open(l)
	}
	if err != nil {
		return nil, errors.Join(err, tensors.Close())
	}
	return c, nil
}

func readFolderConfig(dir fs.FS) (*folderConfig, error) {
	data, err := bounded.ReadFile(dir, configFile, maxConfigBytes)
	if err != nil {
		return nil, err
	}
	raw := &folderConfig{}
	if err := plainjson.Unmarshal(data, raw); err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	data, err = bounded.ReadFile(dir, generationFile, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return raw, nil
	}
	if err != nil {
		return nil, err
	}
	var generation struct {
		EOS json.RawMessage `json:"eos_token_id"`
	}
	if err := plainjson.Unmarshal(data, &generation); err != nil {
		return nil, fmt.Errorf("%s: %w", generationFile, err)
	}
	raw.generationEOS = generation.EOS
	return raw, nil
}

// folderSource is the tensors of safetensors files.
type folderSource struct {
	*safetensors.Tensors
	shards []string // names of files
	paths  []string // of the same, none if they are not on disk
}

func newFolderSource(t *safetensors.Tensors, path string) folderSource {
	s := folderSource{Tensors: t, shards: t.Files()}
	if path != "" {
		for _, f := range s.shards {
			s.paths = append(s.paths, filepath.Join(path, f))
		}
	}
	return s
}

func (s folderSource) names() []string { return s.Names() }
func (s folderSource) files() []string { return s.paths }

func (s folderSource) tensor(name string) (tensor, bool) {
	info, ok := s.Info(name)
	if !ok {
		return tensor{}, false
	}
	file := slices.Index(s.shards, info.File)
	if s.paths == nil {
		file = -1
	}
	return tensor{name: name, kind: info.DType, shape: info.Shape, in: info.File, file: file, offset: info.Offset, size: info.End - info.Begin}, true
}

func (s folderSource) read(t tensor) ([]byte, error) {
	data, _, err := s.Read(t.name, t.shape, t.kind)
	return data, err
}

// folderNames are the names of tensors, without their ".weight" and the layer.
var folderNames = map[Role]string{
	Embedding: "model.embed_tokens", Output: "lm_head", FinalNorm: "model.norm",
	InputNorm: "input_layernorm", PreFFNNorm: "post_attention_layernorm",
	QueryNorm: "self_attn.q_norm", KeyNorm: "self_attn.k_norm",
	Query: "self_attn.q_proj", Key: "self_attn.k_proj", Value: "self_attn.v_proj", AttentionOutput: "self_attn.o_proj",
	Gate: "mlp.gate_proj", Up: "mlp.up_proj", Down: "mlp.down_proj",
}

// gemmaNames are those that Gemma calls otherwise.
var gemmaNames = map[Role]string{
	PostAttentionNorm: "post_attention_layernorm", PreFFNNorm: "pre_feedforward_layernorm", PostFFNNorm: "post_feedforward_layernorm",
}

// folderBiases are the matrices to whose names biases belong.
var folderBiases = map[Role]Role{QueryBias: Query, KeyBias: Key, ValueBias: Value, AttentionOutputBias: AttentionOutput}

func (raw *folderConfig) layout() layout {
	l := layout{model: "a " + raw.ModelType + " model", types: numberTypes}
	gemma := raw.family().gemma
	if gemma {
		l.normBias = 1 // Gemma stores w and multiplies by 1 + w
	}
	l.name = func(k slotKey) string {
		suffix := ".weight"
		role := k.role
		if m, bias := folderBiases[role]; bias {
			role, suffix = m, ".bias"
		}
		name := folderNames[role]
		if other, ok := gemmaNames[role]; ok && gemma {
			name = other
		}
		if k.layer >= 0 {
			name = fmt.Sprintf("model.layers.%d.%s", k.layer, name)
		}
		return name + suffix
	}
	// An output matrix that a tied model does not use, or a cache that old versions saved, does no harm.
	l.harmless = func(name string) bool {
		return raw.tied() && strings.HasPrefix(name, folderNames[Output]+".") || strings.HasSuffix(name, ".rotary_emb.inv_freq")
	}
	return l
}
