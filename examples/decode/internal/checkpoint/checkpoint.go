// Package checkpoint reads language models from disk: the configuration, the tensors by what they are in the model, and the
// tokenizer.
//
// A checkpoint is a Hugging Face folder: config.json, safetensors files with numbers in bfloat16, float16 or float32 or in MLX's
// affine format, and tokenizer.model or tokenizer.json. Or it is a GGUF file, in which all of that lies together. Architectures are
// Gemma 3 with text only and the Llama family: llama, mistral, qwen2, qwen3.
//
// Nothing in a file is trusted. Opening a checkpoint compares every tensor that the configuration asks for with the files:
// names, types, shapes and ranges; a tensor that it does not know is an error. Reading one refuses numbers that are none.
// Errors name the file and the field or tensor, and say what is needed.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/gguf"
	"github.com/ingot-metal/ingot/examples/decode/internal/tokenizer"
	"github.com/ingot-metal/ingot/nn"
)

// Checkpoint is a model on disk. Tensors are read when they are asked for, so that a large model never is in host memory
// as a whole. It is safe for concurrent use, except for Close.
type Checkpoint struct {
	Name   string  // for people: the folder's or file's name
	Config *Config // checked, whole

	source    source
	slots     map[slotKey]slot
	tokenizer tokenizer.Tokenizer
}

// Open opens a Hugging Face folder or a GGUF file.
func Open(path string) (*Checkpoint, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	name := filepath.Base(filepath.Clean(path))
	var c *Checkpoint
	switch {
	case info.IsDir():
		c, err = openFolder(name, os.DirFS(path), path)
	case !info.Mode().IsRegular():
		err = errors.New("it is neither a folder nor a file")
	case strings.EqualFold(filepath.Ext(path), ".safetensors"):
		err = errors.New("a model in safetensors is given as its folder, since config.json and the tokenizer belong to it")
	default:
		var f *gguf.File
		if f, err = gguf.Open(path); err == nil {
			c, err = openGGUF(name, f, []string{path})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", path, err)
	}
	return c, nil
}

// OpenFS opens a Hugging Face folder in a file system, which gives files that can be read at an offset, as os.DirFS and
// embed.FS do. Its tensors cannot be mapped into memory.
func OpenFS(name string, dir fs.FS) (*Checkpoint, error) {
	c, err := openFolder(name, dir, "")
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	return c, nil
}

// Close closes the files.
func (c *Checkpoint) Close() error { return c.source.Close() }

// Tokenizer is the model's tokenizer.
func (c *Checkpoint) Tokenizer() tokenizer.Tokenizer { return c.tokenizer }

// Files are the paths of the files in which tensors lie, none if they cannot be mapped into memory.
func (c *Checkpoint) Files() []string { return slices.Clone(c.source.files()) }

// Has says whether there is a tensor of the role in a layer, which is -1 for what belongs to none.
func (c *Checkpoint) Has(role Role, layer int) bool {
	_, ok := c.slots[slotKey{role, layer}]
	return ok
}

// Bytes is how much room all matrices take in the files.
func (c *Checkpoint) Bytes() int64 {
	var n int64
	for _, s := range c.slots {
		if s.cols > 0 {
			n += s.bytes()
		}
	}
	return n
}

type slotKey struct {
	role  Role
	layer int // -1 for what belongs to no layer
}

func (k slotKey) String() string {
	if k.layer < 0 {
		return k.role.String()
	}
	return fmt.Sprintf("%v of layer %d", k.role, k.layer)
}

// layout is how a format names tensors, and what it does to them.
type layout struct {
	name     func(slotKey) string // of the tensor with a role; "" for roles that the architecture does not have
	harmless func(name string) bool
	types    []nn.WeightType // of matrices that are not affine
	normBias float32         // is added to every norm's weight
	affine   *affineSettings
	model    string // "a llama model", for messages
}

// open finds the tensor for each role. Nothing may be missing, of a wrong type or shape, or left over.
func (c *Checkpoint) open(l layout) error {
	c.slots = map[slotKey]slot{}
	used := map[string]bool{}
	add := func(k slotKey) error {
		s, err := l.slot(c, k)
		if err != nil {
			return err
		}
		c.slots[k] = s
		used[s.tensor.name] = true
		if s.affine != nil {
			used[s.affine.scales.name], used[s.affine.biases.name] = true, true
		}
		return nil
	}
	for r := range roles {
		if !c.Config.has(r) {
			continue
		}
		layers := 1
		if r.inLayer() {
			layers = c.Config.Layers
		}
		for i := range layers {
			if !r.inLayer() {
				i = -1
			}
			if err := add(slotKey{r, i}); err != nil {
				return err
			}
		}
	}
	for _, name := range c.source.names() {
		if !used[name] && !l.harmless(name) {
			t, _ := c.source.tensor(name)
			return fmt.Errorf("%s: there is a tensor %q, which is not part of %s of %d layers", t.in, name, l.model, c.Config.Layers)
		}
	}
	return nil
}

// oneOf says "BF16, F16 or F32".
func oneOf(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
