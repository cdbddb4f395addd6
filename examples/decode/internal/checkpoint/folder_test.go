package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const embedded = "../../testdata/tiny-gemma3-q4"

type object = map[string]any

// folder is a Hugging Face folder in memory: a model of one layer whose parts can be changed before it is opened.
type folder struct {
	config  object
	tensors map[string]*data
	files   fstest.MapFS // others
}

// data is a tensor.
type data struct {
	kind  string
	shape []int64
	bytes []byte
}

var kindSizes = map[string]int{"F8_E4M3": 1, "BF16": 2, "F16": 2, "F32": 4, "U32": 4}

func tensorOf(kind string, shape ...int64) *data {
	return (&data{kind: kind, shape: shape}).fill(make([]byte, kindSizes[kind]))
}

// fill makes every number of the tensor the same.
func (d *data) fill(value []byte) *data {
	n := int64(1)
	for _, m := range d.shape {
		n *= m
	}
	d.bytes = slices.Repeat(value, int(n))
	return d
}

// tinyConfigs are configurations of models of one layer with two heads of 32 numbers.
var tinyConfigs = map[string]object{
	"gemma3_text": {"head_dim": 32, "query_pre_attn_scalar": 32, "layer_types": []string{"full_attention"}},
	"llama":       {"rms_norm_eps": 1e-5, "rope_theta": 5e5, "tie_word_embeddings": false, "eos_token_id": []int{2, 3}},
	"mistral":     {"sliding_window": 9},
	"qwen2":       {"tie_word_embeddings": true, "bos_token_id": 3, "eos_token_id": 2},
	"qwen3":       {"head_dim": 32, "tie_word_embeddings": true, "eos_token_id": 2},
}

func newFolder(t testing.TB, model string) *folder {
	t.Helper()
	f := &folder{files: fstest.MapFS{}, tensors: map[string]*data{}, config: object{
		"model_type": model, "vocab_size": 1024, "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
		"num_key_value_heads": 1, "intermediate_size": 128, "max_position_embeddings": 512,
	}}
	maps.Copy(f.config, tinyConfigs[model])
	text, err := os.ReadFile(embedded + "/" + sentencepieceFile)
	if err != nil {
		t.Fatal(err)
	}
	f.files[sentencepieceFile] = &fstest.MapFile{Data: text}
	f.addTensors(t)
	return f
}

// addTensors gives the folder the tensors that its configuration asks for, all zeros.
func (f *folder) addTensors(t testing.TB) {
	t.Helper()
	c, raw, err := f.parse()
	if err != nil {
		t.Fatal(err)
	}
	l := raw.layout()
	for r := range roles {
		if !c.has(r) {
			continue
		}
		layer := -1
		if r.inLayer() {
			layer = 0
		}
		shape := []int64{0}
		rows, cols := c.shape(r)
		if shape[0] = int64(rows); cols > 0 {
			shape = append(shape, int64(cols))
		}
		f.tensors[l.name(slotKey{r, layer})] = tensorOf("BF16", shape...)
	}
}

func (f *folder) parse() (*Config, *folderConfig, error) {
	text, err := json.Marshal(f.config)
	if err != nil {
		return nil, nil, err
	}
	raw := &folderConfig{}
	if err := json.Unmarshal(text, raw); err != nil {
		return nil, nil, err
	}
	c, err := raw.config()
	return c, raw, err
}

// quantise turns one matrix into MLX's format with scales of ½ and biases of −1.
func (f *folder) quantise(name string, bits, group int64, scaleKind string) {
	if f.config["quantization"] == nil {
		f.config["quantization"] = object{"group_size": group, "bits": bits}
	}
	w := f.tensors[name+".weight"]
	rows, cols := w.shape[0], w.shape[1]
	half, minus := []byte{0x00, 0x3f}, []byte{0x80, 0xbf}
	switch scaleKind {
	case "F16":
		half, minus = []byte{0x00, 0x38}, []byte{0x00, 0xbc}
	case "F32":
		half, minus = []byte{0, 0, 0x00, 0x3f}, []byte{0, 0, 0x80, 0xbf}
	}
	f.tensors[name+".weight"] = tensorOf("U32", rows, cols*bits/32).fill([]byte{0x10, 0x32, 0x54, 0x76})
	f.tensors[name+".scales"] = tensorOf(scaleKind, rows, cols/group).fill(half)
	f.tensors[name+".biases"] = tensorOf(scaleKind, rows, cols/group).fill(minus)
}

// safetensors writes the tensors.
func (f *folder) safetensors(t testing.TB) []byte {
	t.Helper()
	header, content := object{}, []byte(nil)
	for _, name := range slices.Sorted(maps.Keys(f.tensors)) {
		d := f.tensors[name]
		header[name] = object{"dtype": d.kind, "shape": d.shape, "data_offsets": []int{len(content), len(content) + len(d.bytes)}}
		content = append(content, d.bytes...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), content...)
}

func (f *folder) fs(t testing.TB) fstest.MapFS {
	t.Helper()
	config, err := json.Marshal(f.config)
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{configFile: {Data: config}, "model.safetensors": {Data: f.safetensors(t)}}
	maps.Copy(dir, f.files)
	return dir
}

func (f *folder) open(t testing.TB) (*Checkpoint, error) {
	t.Helper()
	c, err := OpenFS("test", f.fs(t))
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func (f *folder) mustOpen(t testing.TB) *Checkpoint {
	t.Helper()
	c, err := f.open(t)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantError fails the test unless err says all of it.
func wantError(t testing.TB, what string, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: got %v, want an error with %q", what, err, w)
		}
	}
}
