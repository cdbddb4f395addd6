package gemma3

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

// fake is a checkpoint in memory: a model of one layer whose tensors can be changed before it is opened.
type fake struct {
	config  map[string]any
	tensors map[string]*fakeTensor
}

type fakeTensor struct {
	dtype string
	shape []int64
	data  []byte
}

var sizes = map[string]int64{"BF16": 2, "F16": 2, "F32": 4, "U32": 4}

// fill gives the tensor its bytes: all of value.
func (ft *fakeTensor) fill(value []byte) *fakeTensor {
	n := int64(1)
	for _, d := range ft.shape {
		n *= d
	}
	ft.data = nil
	for range n {
		ft.data = append(ft.data, value...)
	}
	return ft
}

func newTensor(dtype string, shape ...int64) *fakeTensor {
	return (&fakeTensor{dtype: dtype, shape: shape}).fill(make([]byte, sizes[dtype]))
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{config: map[string]any{}, tensors: map[string]*fakeTensor{}}
	change := map[string]any{
		"vocab_size": 5, "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 128, "head_dim": 32,
		"layer_types": []string{"full_attention"}, "quantization": nil,
	}
	text := edited(t, change)
	if err := json.Unmarshal(text, &f.config); err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range c.plan() {
		if s.cols == 0 {
			f.tensors[name+".weight"] = newTensor("BF16", int64(s.rows))
		} else {
			f.tensors[name+".weight"] = newTensor("BF16", int64(s.rows), int64(s.cols))
		}
	}
	return f
}

// quantise turns one matrix into MLX's format.
func (f *fake) quantise(name string, group int64) {
	f.config["quantization"] = map[string]any{"group_size": group, "bits": 4}
	w := f.tensors[name+".weight"]
	rows, cols := w.shape[0], w.shape[1]
	f.tensors[name+".weight"] = newTensor("U32", rows, cols/8).fill([]byte{0x10, 0x32, 0x54, 0x76})
	f.tensors[name+".scales"] = newTensor("BF16", rows, cols/group).fill([]byte{0x00, 0x3f}) // ½
	f.tensors[name+".biases"] = newTensor("BF16", rows, cols/group).fill([]byte{0x80, 0xbf}) // −1
}

func (f *fake) open(t *testing.T) (*Checkpoint, error) {
	t.Helper()
	config, err := json.Marshal(f.config)
	if err != nil {
		t.Fatal(err)
	}
	header, data := map[string]any{}, []byte(nil)
	for name, ft := range f.tensors {
		header[name] = map[string]any{"dtype": ft.dtype, "shape": ft.shape, "data_offsets": []int{len(data), len(data) + len(ft.data)}}
		data = append(data, ft.data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	file = append(append(file, text...), data...)
	return Open(fstest.MapFS{ConfigFile: {Data: config}, "model.safetensors": {Data: file}})
}

func TestCheckpointForms(t *testing.T) {
	f := newFake(t)
	f.tensors["model.norm.weight"].fill([]byte{0x00, 0x3f})                               // ½ in bfloat16
	f.tensors[Layer(0, InputNorm)+".weight"] = newTensor("F16", 64).fill([]byte{0, 0x34}) // ¼
	third := binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.0/3))
	f.tensors[Layer(0, Up)+".weight"] = newTensor("F32", 128, 64).fill(third)
	f.tensors["lm_head.weight"] = newTensor("BF16", 5, 64)                // saved though tied
	f.tensors["model.layers.0.rotary_emb.inv_freq"] = newTensor("F32", 4) // saved by old versions
	f.quantise(Embedding, 32)
	c, err := f.open(t)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if w, err := c.NormWeight(FinalNorm, 64); err != nil || len(w) != 64 || w[63] != 1.5 {
		t.Error(w, err)
	}
	if w, err := c.Vector(Layer(0, InputNorm), 64); err != nil || w[0] != 0.25 {
		t.Error(w, err)
	}
	if m, err := c.Matrix(Layer(0, Up), 128, 64); err != nil || m.Q4 != nil || len(m.Dense) != 128*64 || m.Dense[5] != float32(1.0/3) {
		t.Error(m, err)
	}
	m, err := c.Matrix(Embedding, 5, 64)
	if err != nil || m.Dense != nil || m.Q4.GroupSize != 32 || m.Q4.Packed[39] != 0x76543210 {
		t.Fatal(m, err)
	}
	if w := dequantise(m); w[0] != -1 || w[7] != 2.5 || w[319] != 2.5 {
		t.Error(w)
	}
	if q, err := m.Quantised(64); err != nil || q.GroupSize != 32 {
		t.Error("a quantised matrix was quantised anew", err)
	}
	up, err := c.Matrix(Layer(0, Up), 128, 64)
	if err != nil {
		t.Fatal(err)
	}
	if q, err := up.Quantised(64); err != nil || q.GroupSize != 64 || q.Rows != 128 {
		t.Error(q, err)
	}
	up.Dense[0] = 3.4e38
	if _, err := up.Quantised(64); err == nil || !strings.Contains(err.Error(), `tensor "model.layers.0.mlp.up_proj"`) {
		t.Error(err)
	}
	for name, read := range map[string]func() error{
		`no tensor "x.weight"`:   func() error { _, err := c.Vector("x", 1); return err },
		`needed is [3]`:          func() error { _, err := c.NormWeight(FinalNorm, 3); return err },
		`needed is [4 64]`:       func() error { _, err := c.Matrix(Layer(0, Up), 4, 64); return err },
		`needed is [5 16]`:       func() error { _, err := c.Matrix(Embedding, 5, 128); return err },
		`no tensor "abc.weight"`: func() error { _, err := c.Matrix("abc", 5, 128); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	q := Layer(0, QueryProjection)
	for _, c := range []struct {
		name   string
		change func(f *fake)
		want   string
	}{
		{"config", func(f *fake) { f.config["head_dim"] = 0 }, "config.json: head_dim"},
		{"missing tensor", func(f *fake) { delete(f.tensors, q+".weight") }, `no tensor "model.layers.0.self_attn.q_proj.weight"`},
		{"missing layer", func(f *fake) {
			f.config["num_hidden_layers"] = 2
			f.config["layer_types"] = []string{"full_attention", "full_attention"}
		}, `no tensor "model.layers.1.`},
		{"missing output", func(f *fake) { f.config["tie_word_embeddings"] = false }, `no tensor "lm_head.weight"`},
		{"another tensor", func(f *fake) { f.tensors[q+".bias"] = newTensor("BF16", 1) }, `has a tensor "model.layers.0.self_attn.q_proj.bias"`},
		{"another layer", func(f *fake) { f.tensors[Layer(1, Up)+".weight"] = newTensor("BF16", 1) }, "not part of a Gemma 3 text model of 1 layers"},
		{"another prefix", func(f *fake) {
			f.tensors["language_model."+q+".weight"] = f.tensors[q+".weight"]
			delete(f.tensors, q+".weight")
		}, "no tensor"},
		{"vector type", func(f *fake) { f.tensors["model.norm.weight"] = newTensor("U32", 64) }, "of type U32, needed is BF16 or F16 or F32"},
		{"vector shape", func(f *fake) { f.tensors["model.norm.weight"] = newTensor("F32", 65) }, "shape [65], needed is [64]"},
		{"matrix rank", func(f *fake) { f.tensors[q+".weight"] = newTensor("F32", 64*64) }, "shape [4096], needed is [64 64]"},
		{"transposed", func(f *fake) { f.tensors[Layer(0, Up)+".weight"] = newTensor("F32", 64, 128) }, "shape [64 128], needed is [128 64]"},
		{"packed without settings", func(f *fake) { f.tensors[q+".weight"] = newTensor("U32", 64, 8) }, "config.json has no quantization"},
		{"scales missing", func(f *fake) { f.quantise(q, 64); delete(f.tensors, q+".scales") }, `no tensor "model.layers.0.self_attn.q_proj.scales"`},
		{"biases missing", func(f *fake) { f.quantise(q, 64); delete(f.tensors, q+".biases") }, `no tensor "model.layers.0.self_attn.q_proj.biases"`},
		{"scales of another group", func(f *fake) {
			f.quantise(q, 64)
			f.tensors[q+".scales"] = newTensor("BF16", 64, 2)
		}, "shape [64 2], needed is [64 1]"},
		{"scales in float16", func(f *fake) {
			f.quantise(q, 64)
			f.tensors[q+".scales"] = newTensor("F16", 64, 1)
		}, "of type F16, needed is BF16"},
		{"eight bits", func(f *fake) {
			f.quantise(q, 64)
			f.tensors[q+".weight"] = newTensor("U32", 64, 16)
		}, "shape [64 16], needed is [64 8]"},
		{"scales of a dense matrix", func(f *fake) { f.tensors[q+".scales"] = newTensor("BF16", 64, 1) }, "is of type BF16, but there is"},
		{"ragged groups", func(f *fake) {
			f.quantise(q, 64)
			f.config["quantization"] = map[string]any{"group_size": 128, "bits": 4}
		}, "64 columns, which groups of 128 do not divide"},
		{"ragged dense", func(f *fake) {
			f.config["head_dim"] = 16
			for _, n := range []string{QueryProjection, KeyProjection, ValueProjection} {
				s := f.tensors[Layer(0, n)+".weight"].shape
				f.tensors[Layer(0, n)+".weight"] = newTensor("BF16", s[0]/2, s[1])
			}
			f.tensors[Layer(0, AttentionOutput)+".weight"] = newTensor("BF16", 64, 32)
			f.tensors[Layer(0, QueryNorm)+".weight"] = newTensor("BF16", 16)
			f.tensors[Layer(0, KeyNorm)+".weight"] = newTensor("BF16", 16)
		}, "cannot be quantised"},
		{"overlap", func(f *fake) { f.tensors[q+".weight"].data = nil }, "safetensors: model.safetensors: tensor"},
	} {
		f := newFake(t)
		c.change(f)
		cp, err := f.open(t)
		if err == nil {
			cp.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
	if _, err := Open(fstest.MapFS{ConfigFile: {Data: edited(t, nil)}}); err == nil || !strings.Contains(err.Error(), "model.safetensors") {
		t.Errorf("no weights: %v", err)
	}
}

// Numbers that are none are refused when they are read.
func TestNotFinite(t *testing.T) {
	f := newFake(t)
	q := Layer(0, QueryProjection)
	f.quantise(q, 64)
	f.tensors[q+".biases"].fill([]byte{0x80, 0x7f}) // +∞
	f.tensors["model.norm.weight"].fill([]byte{0xc0, 0x7f})
	c, err := f.open(t)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Matrix(q, 64, 64); err == nil || !strings.Contains(err.Error(), "biases: have +Inf at index 0") {
		t.Error(err)
	}
	if _, err := c.NormWeight(FinalNorm, 64); err == nil || !strings.Contains(err.Error(), "number 0 is NaN") {
		t.Error(err)
	}
}
