package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/nn"
)

func TestOpenEmbedded(t *testing.T) {
	c, err := Open(embedded)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Name != "tiny-gemma3-q4" || c.Tokenizer().Len() != 1024 || !reflect.DeepEqual(c.Files(), []string{filepath.Join(embedded, "model.safetensors")}) {
		t.Error(c.Name, c.Tokenizer().Len(), c.Files())
	}
	local := RoPE{Theta: 1e4, Dim: 128, Scaling: Scaling{Factor: 1}}
	global := RoPE{Theta: 1e6, Dim: 128, Scaling: Scaling{Factor: 1}}
	want := &Config{Architecture: "gemma3_text",
		Vocab: 1024, Hidden: 128, Layers: 6, Heads: 2, KVHeads: 1, HeadDim: 128, FFN: 256, Positions: 512,
		Eps: 1e-6, QueryScale: 1 / math.Sqrt(128), EmbedScale: math.Sqrt(128), Softcap: 30,
		Activation: GELUTanh, PostNorms: true, QKNorm: true,
		Window: 64, Sliding: []bool{true, true, true, true, true, false}, RoPE: []RoPE{local, local, local, local, local, global},
		BOS: 2, AddBOS: true, EOS: []uint32{1}, Tied: true,
	}
	if !reflect.DeepEqual(c.Config, want) {
		t.Errorf("got %+v\nwant %+v", c.Config, want)
	}
	for r := range roles {
		layer := -1
		if r.inLayer() {
			layer = 5
		}
		if has := c.Has(r, layer); has != (r != Output && r < QueryBias) {
			t.Errorf("%v: %v", r, has)
		}
		if c.Has(r, 6) || c.Has(r, -2) {
			t.Errorf("%v of a layer that is not there", r)
		}
	}
	info, err := os.Stat(filepath.Join(embedded, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Bytes(); n > info.Size() || n < info.Size()*95/100 {
		t.Errorf("%d bytes of matrices in a file of %d", n, info.Size())
	}
}

// The forms in which a folder stores numbers, and what reading them gives.
func TestFolderForms(t *testing.T) {
	f := newFolder(t, "gemma3_text")
	const layer = "model.layers.0."
	f.tensors["model.norm.weight"].fill([]byte{0x00, 0x3f})                                         // ½ in bfloat16
	f.tensors[layer+"input_layernorm.weight"] = tensorOf("F16", 64).fill([]byte{0, 0x34})           // ¼
	f.tensors[layer+"mlp.up_proj.weight"] = tensorOf("F32", 128, 64).fill([]byte{0, 0, 0x80, 0x3f}) // 1
	f.tensors["lm_head.weight"] = tensorOf("BF16", 5, 64)                                           // saved though tied
	f.tensors["model.layers.0.rotary_emb.inv_freq"] = tensorOf("F32", 4)                            // saved by old versions
	f.config["quantization"] = object{"group_size": 64, "bits": 4, "mode": "affine",
		layer + "self_attn.q_proj": object{"group_size": 32, "bits": 8}, layer + "self_attn.k_proj": object{"bits": 6},
		layer + "self_attn.v_proj": true, layer + "mlp.up_proj": false}
	f.quantise("model.embed_tokens", 4, 64, "BF16")
	f.quantise(layer+"self_attn.q_proj", 8, 32, "F16")
	f.quantise(layer+"self_attn.k_proj", 6, 64, "F32")
	f.quantise(layer+"self_attn.v_proj", 4, 64, "BF16")
	c := f.mustOpen(t)
	if w, err := c.Vector(FinalNorm, -1); err != nil || len(w) != 64 || w[63] != 1.5 {
		t.Error(w, err)
	}
	if w, err := c.Vector(InputNorm, 0); err != nil || w[0] != 1.25 {
		t.Error(w, err)
	}
	m, err := c.Matrix(Up, 0)
	if err != nil || m.Type != nn.WeightF32 || m.Affine != nil || m.File != -1 || m.Rows != 128 || m.Cols != 64 ||
		m.Name != layer+"mlp.up_proj.weight" || !bytes.Equal(m.Data, bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 128*64)) {
		t.Error(m.Name, m.Type, m.Rows, m.Cols, err)
	}
	for _, a := range []struct {
		role        Role
		bits, group int
		scale       nn.WeightType
	}{
		{Embedding, 4, 64, nn.WeightBF16}, {Query, 8, 32, nn.WeightF16}, {Key, 6, 64, nn.WeightF32}, {Value, 4, 64, nn.WeightBF16},
	} {
		layer := -1
		if a.role.inLayer() {
			layer = 0
		}
		m, err := c.Matrix(a.role, layer)
		if err != nil || m.Type != 0 || m.Data != nil || m.File != -1 {
			t.Fatal(a.role, m.Type, m.File, err)
		}
		if m.Affine.Bits != a.bits || m.Affine.GroupSize != a.group || m.Affine.ScaleType != a.scale ||
			len(m.Affine.Weight) != m.Rows*m.Cols*a.bits/8 || len(m.Affine.Scales) != a.scale.RowBytes(m.Rows*m.Cols/a.group) ||
			m.Affine.Weight[3] != 0x76 {
			t.Errorf("%v: %d bits, groups of %d, %v", a.role, m.Affine.Bits, m.Affine.GroupSize, m.Affine.ScaleType)
		}
	}
}

// What a mapped file has at the place of a matrix is the matrix.
func TestPlaces(t *testing.T) {
	f := newFolder(t, "llama")
	f.tensors["lm_head.weight"].bytes[1] = 0x3f
	dir := t.TempDir()
	for name, file := range f.fs(t) {
		if err := os.WriteFile(filepath.Join(dir, name), file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := c.Matrix(Output, -1)
	if err != nil || m.File != 0 {
		t.Fatal(m.File, err)
	}
	whole, err := os.ReadFile(c.Files()[m.File])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(whole[m.Offset:m.Offset+int64(len(m.Data))], m.Data) || m.Data[1] != 0x3f {
		t.Error("another place")
	}
}

func TestWrongQuestions(t *testing.T) {
	c := newFolder(t, "llama").mustOpen(t)
	_, err := c.Vector(Query, 0)
	wantError(t, "vector", err, "model test: the query of layer 0 is a matrix")
	_, err = c.Matrix(FinalNorm, -1)
	wantError(t, "matrix", err, "the final norm is a vector")
	_, err = c.Matrix(Query, 1)
	wantError(t, "layer", err, "there is no query of layer 1")
	_, err = c.Vector(QueryBias, 0)
	wantError(t, "bias", err, "there is no query bias of layer 0")
	_, err = c.Vector(Role(99), -1)
	wantError(t, "role", err, "there is no Role(99)")
	_, err = c.Matrix(-1, -1)
	wantError(t, "role", err, "there is no Role(-1)")
}

// Every model type has the tensors that its configuration asks for, and no others.
func TestFolderFamilies(t *testing.T) {
	for model := range families {
		f := newFolder(t, model)
		c := f.mustOpen(t)
		if c.Config.Architecture != model {
			t.Error(c.Config.Architecture)
		}
		for name := range f.tensors {
			d := f.tensors[name]
			delete(f.tensors, name)
			_, err := f.open(t)
			wantError(t, model, err, fmt.Sprintf("there is no tensor %q", name), "model test: ")
			f.tensors[name] = d
		}
		for name, want := range map[string]string{
			"model.layers.1.mlp.up_proj.weight":      "which is not part of a " + model + " model of 1 layers",
			"model.layers.0.mlp.up_proj.bias":        `a tensor "model.layers.0.mlp.up_proj.bias"`,
			"language_model.model.embed_tokens":      "model.safetensors: there is a tensor",
			"model.layers.0.self_attn.sinks":         "sinks",
			"model.layers.0.self_attn.qkv_proj":      "qkv_proj",
			"model.layers.0.block_sparse_moe.gate.w": "moe",
		} {
			f.tensors[name] = tensorOf("BF16", 1)
			_, err := f.open(t)
			wantError(t, model, err, want)
			delete(f.tensors, name)
		}
	}
}

// Numbers that are none are refused when they are read, wherever they are.
func TestNotFinite(t *testing.T) {
	bad := map[string][][]byte{
		"F32":  {{0, 0, 0xc0, 0x7f}, {0, 0, 0x80, 0xff}},
		"F16":  {{0, 0x7c}, {1, 0xfc}},
		"BF16": {{0x80, 0x7f}, {0xff, 0xff}},
	}
	fine := map[string][]byte{"F32": {0xff, 0xff, 0x7f, 0x7f}, "F16": {0xff, 0xfb}, "BF16": {0x7f, 0xff}}
	for kind, values := range bad {
		size := kindSizes[kind]
		for _, v := range values {
			for _, at := range []int{0, 1, 3, 4, 127, 64*64 - 1} {
				f := newFolder(t, "llama")
				q := tensorOf(kind, 64, 64).fill(fine[kind])
				f.tensors["model.layers.0.self_attn.q_proj.weight"] = q
				norm := tensorOf(kind, 64)
				f.tensors["model.norm.weight"] = norm
				c := f.mustOpen(t)
				if _, err := c.Matrix(Query, 0); err != nil {
					t.Fatal(err)
				}
				copy(q.bytes[at*size:], v)
				copy(norm.bytes[at%64*size:], v)
				c = f.mustOpen(t)
				_, err := c.Matrix(Query, 0)
				wantError(t, kind, err, fmt.Sprintf(`model test: model.safetensors: tensor "model.layers.0.self_attn.q_proj.weight" has a number that is not finite at index %d`, at))
				_, err = c.Vector(FinalNorm, -1)
				wantError(t, kind, err, fmt.Sprintf(`model.safetensors: tensor "model.norm.weight" has %v at index %d`, floatOf(kind, v), at%64))
			}
		}
	}
	f := newFolder(t, "llama")
	f.quantise("lm_head", 4, 64, "BF16")
	copy(f.tensors["lm_head.biases"].bytes[6:], []byte{0x80, 0x7f})
	_, err := f.mustOpen(t).Matrix(Output, -1)
	wantError(t, "biases", err, `model.safetensors: tensor "lm_head.weight": `, "+Inf at index 3")
}

func floatOf(kind string, v []byte) float64 {
	switch {
	case kind == "F32":
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))
	case kind == "F16" && v[0] == 0 || kind == "BF16" && v[0] == 0x80:
		return math.Inf(1)
	}
	return math.NaN()
}

func TestRoleNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range roles {
		if s := r.String(); s == "" || seen[s] || strings.HasPrefix(s, "Role(") {
			t.Errorf("role %d is called %q", int(r), s)
		}
		seen[r.String()] = true
	}
}

func ExampleOpen() {
	c, err := Open("../../testdata/tiny-gemma3-q4")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	m, err := c.Matrix(Down, 3)
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Config.Layers, "layers;", m.Name, m.Rows, "x", m.Cols, m.Affine.Bits, "bits")
	// Output: 6 layers; model.layers.3.mlp.down_proj.weight 128 x 256 4 bits
}
