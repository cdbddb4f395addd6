package checkpoint

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/examples/decode/internal/gguf"
	"github.com/ingot-metal/ingot/examples/decode/internal/gguf/gguftest"
	"github.com/ingot-metal/ingot/nn"
)

// spellByte is how byte-level vocabularies spell a byte.
func spellByte(b byte) string {
	switch {
	case b <= 32:
		return string(256 + rune(b))
	case b >= 127 && b <= 160:
		return string(289 + rune(b-127))
	case b == 173:
		return string(rune(323))
	}
	return string(rune(b))
}

// setByteLevel gives a file a byte-level vocabulary: 256 bytes, "th", "the", two markers, two that are not used, and others.
func setByteLevel(f *gguftest.File, pre string, others ...string) {
	var texts []string
	for b := range 256 {
		texts = append(texts, spellByte(byte(b)))
	}
	types := make([]int32, 256, 262)
	for i := range types {
		types[i] = 1
	}
	texts = append(texts, "th", "the", "<|im_end|>", "<tool>", "[PAD260]", "[PAD260]")
	types = append(types, 1, 1, 3, 4, 5, 5)
	for _, text := range others {
		texts, types = append(texts, text), append(types, 1)
	}
	f.Set(tokenizerKey, byteLevelModel)
	f.Set("tokenizer.ggml.pre", pre)
	f.Set(tokensKey, texts)
	f.Set(tokenTypesKey, types)
	f.Remove(scoresKey)
	f.Set("tokenizer.ggml.merges", []string{"t h", "th e"})
	f.Set("tokenizer.ggml.bos_token_id", uint32(10))
	f.Set("tokenizer.ggml.eos_token_id", uint32(11))
	e := f.Tensor("token_embd.weight")
	e.Dims[1], e.Data = uint64(len(texts)), make([]byte, len(texts)*len(e.Data)/int(e.Dims[1]))
}

// ggufModel is a model of one layer with two heads of 32 numbers and seven tokens, all of whose tensors are zeros in float32.
func ggufModel(architecture string) *gguftest.File {
	a := architecture + "."
	f := &gguftest.File{Keys: []gguftest.Key{
		{Name: architectureKey, Value: architecture}, {Name: a + "context_length", Value: uint32(512)}, {Name: a + "embedding_length", Value: uint32(64)},
		{Name: a + "block_count", Value: uint32(1)}, {Name: a + "feed_forward_length", Value: uint32(256)}, {Name: a + "attention.head_count", Value: uint32(2)},
		{Name: a + "attention.head_count_kv", Value: uint32(1)}, {Name: a + "attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
		{Name: tokenizerKey, Value: sentencepieceModel}, {Name: tokensKey, Value: []string{"<unk>", "<s>", "</s>", "▁", "a", "b", "ab"}},
		{Name: scoresKey, Value: []float32{0, 0, 0, -1, -2, -3, -4}}, {Name: tokenTypesKey, Value: []int32{2, 3, 3, 1, 1, 1, 1}},
	}}
	add := func(name string, dims ...uint64) {
		n := uint64(4)
		for _, d := range dims {
			n *= d
		}
		f.Tensors = append(f.Tensors, gguftest.Tensor{Name: name, Dims: dims, Data: make([]byte, n)})
	}
	add("token_embd.weight", 64, 7)
	add("output_norm.weight", 64)
	for _, name := range []string{"attn_norm", "ffn_norm"} {
		add("blk.0."+name+".weight", 64)
	}
	for _, m := range []struct {
		name       string
		cols, rows uint64
	}{{"attn_q", 64, 64}, {"attn_k", 64, 32}, {"attn_v", 64, 32}, {"attn_output", 64, 64}, {"ffn_gate", 64, 256}, {"ffn_up", 64, 256}, {"ffn_down", 256, 64}} {
		add("blk.0."+m.name+".weight", m.cols, m.rows)
	}
	switch architecture {
	case "llama":
		add("output.weight", 64, 7)
	case "qwen2":
		add("blk.0.attn_q.bias", 64)
		add("blk.0.attn_k.bias", 32)
		add("blk.0.attn_v.bias", 32)
	case "gemma3":
		add("blk.0.post_attention_norm.weight", 64)
		add("blk.0.post_ffw_norm.weight", 64)
		f.Set("gemma3.attention.sliding_window", uint32(100))
		f.Set("gemma3.rope.freq_base", float32(1e6))
	}
	if architecture == "gemma3" || architecture == "qwen3" {
		add("blk.0.attn_q_norm.weight", 32)
		add("blk.0.attn_k_norm.weight", 32)
	}
	return f
}

func openBytes(data []byte) (*Checkpoint, error) {
	f, err := gguf.Read("test.gguf", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return openGGUF("test", f, nil)
}

func mustOpenGGUF(t testing.TB, f *gguftest.File) *Checkpoint {
	t.Helper()
	c, err := openBytes(f.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGGUFArchitectures(t *testing.T) {
	plain := Config{Vocab: 7, Hidden: 64, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 256, Positions: 512,
		Eps: float64(float32(1e-5)), QueryScale: 1 / math.Sqrt(32), EmbedScale: 1, Activation: SiLU, Sliding: []bool{false},
		RoPE: []RoPE{{Theta: 1e4, Dim: 32, Scaling: Scaling{Factor: 1}}}, BOS: 1, AddBOS: true, EOS: []uint32{2}, Tied: true}
	for name, change := range map[string]func(c *Config){
		"llama": func(c *Config) { c.Tied = false; c.RoPE[0].Neighbours = true },
		"qwen2": func(c *Config) { c.AttentionBias = true },
		"qwen3": func(c *Config) { c.QKNorm = true },
		"gemma3": func(c *Config) {
			c.QKNorm, c.PostNorms, c.Activation, c.EmbedScale, c.Window, c.Sliding = true, true, GELUTanh, 8, 100, []bool{true}
		},
	} {
		want := plain
		want.Architecture, want.RoPE = name, []RoPE{plain.RoPE[0]}
		change(&want)
		f := ggufModel(name)
		c := mustOpenGGUF(t, f)
		if !reflect.DeepEqual(c.Config, &want) {
			t.Errorf("%s: got %+v\nwant %+v", name, *c.Config, want)
		}
		for _, tensor := range f.Tensors {
			if name := tensor.Name; name == "output.weight" || strings.HasSuffix(name, "q.bias") {
				continue // without it the model is another one
			}
			g := ggufModel(name)
			g.RemoveTensor(tensor.Name)
			_, err := openBytes(g.Bytes())
			wantError(t, name, err, fmt.Sprintf("there is no tensor %q", tensor.Name))
		}
		f.Tensors = append(f.Tensors, gguftest.Tensor{Name: "blk.0.ffn_gate_inp.weight", Dims: []uint64{1}, Data: make([]byte, 4)})
		_, err := openBytes(f.Bytes())
		wantError(t, name, err, `test.gguf: there is a tensor "blk.0.ffn_gate_inp.weight", which is not part of a `+name+" model of 1 layers")
	}
}

// Dimensions of 1 behind the others, which some writers add, say nothing.
func TestGGUFDimensions(t *testing.T) {
	f := ggufModel("llama")
	for name, dims := range map[string][]uint64{"output_norm.weight": {64, 1}, "blk.0.attn_q.weight": {64, 64, 1, 1}} {
		f.Tensor(name).Dims = dims
	}
	if w, err := mustOpenGGUF(t, f).Vector(FinalNorm, -1); err != nil || len(w) != 64 {
		t.Error(w, err)
	}
	f.Tensor("output_norm.weight").Dims = []uint64{32, 2}
	_, err := openBytes(f.Bytes())
	wantError(t, "another shape", err, "has shape [2 32], needed is [64]")
}

// Gemma's norms have their 1 in GGUF files, and norms of others never had one to add.
func TestGGUFNorms(t *testing.T) {
	for name := range ggufArchitectures {
		f := ggufModel(name)
		copy(f.Tensor("output_norm.weight").Data, []byte{0, 0, 0x00, 0x3f})
		if w, err := mustOpenGGUF(t, f).Vector(FinalNorm, -1); err != nil || w[0] != 0.5 || w[1] != 0 {
			t.Error(name, w, err)
		}
	}
}

// Matrices in all formats that there are, and their scales that are none.
func TestGGUFTypes(t *testing.T) {
	for _, c := range []struct {
		id     uint32
		kind   nn.WeightType
		scales []int // where a block has float16 numbers
	}{
		{0, nn.WeightF32, nil}, {1, nn.WeightF16, []int{0}}, {30, nn.WeightBF16, nil}, {2, nn.WeightQ4_0, []int{0}}, {6, nn.WeightQ5_0, []int{0}},
		{8, nn.WeightQ8_0, []int{0}}, {12, nn.WeightQ4_K, []int{0, 2}}, {13, nn.WeightQ5_K, []int{0, 2}}, {14, nn.WeightQ6_K, []int{208}}, {20, nn.WeightIQ4_NL, []int{0}},
	} {
		f := ggufModel("llama")
		down := f.Tensor("blk.0.ffn_down.weight")
		row := c.kind.RowBytes(256)
		down.Type, down.Data = c.id, bytes.Repeat([]byte{1}, 64*row)
		m, err := mustOpenGGUF(t, f).Matrix(Down, 0)
		if err != nil || m.Type != c.kind || m.Rows != 64 || m.Cols != 256 || !bytes.Equal(m.Data, down.Data) || m.File != -1 {
			t.Error(c.kind, m.Type, m.Rows, m.Cols, err)
		}
		for _, at := range c.scales {
			copy(down.Data[5*row+at:], []byte{0x01, 0x7c})
			_, err := mustOpenGGUF(t, f).Matrix(Down, 0)
			wantError(t, c.kind.String(), err, `test.gguf: tensor "blk.0.ffn_down.weight" has a`, "not finite")
			copy(down.Data[5*row+at:], []byte{1, 1})
		}
	}
}

func TestGGUFPlaces(t *testing.T) {
	f := ggufModel("llama")
	up := f.Tensor("blk.0.ffn_up.weight")
	for i := range up.Data {
		up.Data[i] = byte(i % 100)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	whole := f.Bytes()
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := c.Matrix(Up, 0)
	if err != nil || m.File != 0 || !reflect.DeepEqual(c.Files(), []string{path}) || c.Name != "m.gguf" {
		t.Fatal(m.File, c.Files(), c.Name, err)
	}
	if !bytes.Equal(whole[m.Offset:m.Offset+int64(len(m.Data))], up.Data) {
		t.Error("another place")
	}
	if _, err := Open(path + "x"); err == nil {
		t.Error("no file is a model")
	}
	for file, text := range map[string]string{"a.gguf": "", "b.gguf": "GGUF", "c.txt": "this is text"} {
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		wantError(t, file, err, "model "+path, "gguf: "+file)
	}
}

func TestGGUFRoPE(t *testing.T) {
	one := func(f *gguftest.File) RoPE { t.Helper(); return mustOpenGGUF(t, f).Config.RoPE[0] }
	f := ggufModel("llama")
	f.Set("llama.rope.freq_base", float32(5e5))
	f.Set("llama.rope.dimension_count", uint32(16))
	f.Set("llama.rope.scaling.type", "linear")
	f.Set("llama.rope.scaling.factor", float32(4))
	if got, want := one(f), (RoPE{5e5, 16, true, Scaling{Kind: ScalingLinear, Factor: 4}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f = ggufModel("llama")
	f.Set("llama.rope.scale_linear", float32(2))
	if got := one(f).Scaling; got.Kind != ScalingLinear || got.Factor != 2 {
		t.Errorf("%+v", got)
	}
	f = ggufModel("qwen2")
	f.Set("qwen2.rope.scaling.type", "yarn")
	f.Set("qwen2.rope.scaling.factor", float32(4))
	f.Set("qwen2.rope.scaling.original_context_length", uint32(128))
	f.Set("qwen2.rope.scaling.attn_factor", float32(0.5))
	want := Scaling{Kind: ScalingYaRN, Factor: 4, OriginalPositions: 128, BetaFast: 32, BetaSlow: 1, Truncate: true, AttentionFactor: 0.5 * (1 + 0.1*math.Log(4))}
	if got := one(f).Scaling; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f = ggufModel("gemma3")
	f.Set("gemma3.block_count", uint32(1))
	f.Set("gemma3.rope.scaling.factor", float32(8))
	f.Set("gemma3.attention.sliding_window_pattern", uint32(1)) // the layer is global
	if got, want := one(f), (RoPE{1e6, 32, false, Scaling{Kind: ScalingLinear, Factor: 8}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f = ggufModel("llama")
	factors := gguftest.Tensor{Name: ropeFactors, Dims: []uint64{16}, Data: bytes.Repeat([]byte{0, 0, 0x00, 0x41}, 16)} // 8
	copy(factors.Data, []byte{0, 0, 0x80, 0x3f})                                                                        // 1: the fastest ones are left alone
	f.Tensors = append(f.Tensors, factors)
	if got := one(f).Scaling.Factors; len(got) != 16 || got[0] != 1 || got[15] != 8 {
		t.Error(got)
	}
	for _, tensor := range f.Tensors { // they are for all layers
		if name, ok := strings.CutPrefix(tensor.Name, "blk.0."); ok {
			tensor.Name = "blk.1." + name
			f.Tensors = append(f.Tensors, tensor)
		}
	}
	f.Set("llama.block_count", uint32(2))
	if got := mustOpenGGUF(t, f).Config.RoPE; len(got) != 2 || !reflect.DeepEqual(got[0], got[1]) {
		t.Error(got)
	}
	copy(f.Tensor(ropeFactors).Data[4:], []byte{0, 0, 0, 0})
	_, err := openBytes(f.Bytes())
	wantError(t, "factors", err, `tensor "rope_freqs.weight" has 0 at index 1`)
	f.Tensor(ropeFactors).Dims[0] = 15
	_, err = openBytes(f.Bytes())
	wantError(t, "factors", err, `tensor "rope_freqs.weight" has shape [15], needed is [16]`)
}

func TestGGUFTokenizers(t *testing.T) {
	f := ggufModel("llama")
	c := mustOpenGGUF(t, f)
	if got := c.Tokenizer().Encode("ab"); !reflect.DeepEqual(got, []uint32{3, 6}) {
		t.Errorf("with a space before it: %v", got)
	}
	f.Set("tokenizer.ggml.add_space_prefix", false)
	f.Set("tokenizer.ggml.add_bos_token", false)
	f.Set("tokenizer.ggml.eot_token_id", uint32(5))
	f.Set("tokenizer.ggml.eom_token_id", uint32(math.MaxUint32)) // none
	c = mustOpenGGUF(t, f)
	if got := c.Tokenizer().Encode("ab"); !reflect.DeepEqual(got, []uint32{6}) || c.Config.AddBOS || !reflect.DeepEqual(c.Config.EOS, []uint32{5, 2}) {
		t.Errorf("%v %v %v", got, c.Config.AddBOS, c.Config.EOS)
	}
	for pre, want := range map[string]struct {
		addBOS bool
		ids    []uint32
	}{
		"gpt-2": {false, []uint32{257, ' ', '1', '2', '3', '4'}}, "llama-bpe": {true, []uint32{257, ' ', '1', '2', '3', '4'}},
		"llama3": {true, []uint32{257, ' ', '1', '2', '3', '4'}}, "qwen2": {false, []uint32{257, ' ', '1', '2', '3', '4'}},
	} {
		f := ggufModel("qwen3")
		setByteLevel(f, pre)
		c := mustOpenGGUF(t, f)
		got := c.Tokenizer().Encode("the 1234<tool>")
		if !reflect.DeepEqual(got, append(want.ids, 259)) || c.Config.AddBOS != want.addBOS || c.Config.BOS != 10 || !reflect.DeepEqual(c.Config.EOS, []uint32{11, 258}) {
			t.Errorf("%s: %v %v %v %v", pre, got, c.Config.AddBOS, c.Config.BOS, c.Config.EOS)
		}
		d, text := c.Tokenizer().NewDecoder(), ""
		for _, id := range append(got, 258, 260) {
			text += d.Next(id)
		}
		if text += d.Flush(); text != "the 1234<tool>" {
			t.Errorf("%s: %q", pre, text)
		}
	}
}

// A marker that is known to end a text does so whatever type the file gives it: converters of old wrote those of turns as
// user-defined or plain tokens.
func TestGGUFEndings(t *testing.T) {
	for kind := int32(1); kind <= ggufUserDefined; kind++ {
		f := ggufModel("gemma3")
		f.Set(tokensKey, []string{"<unk>", "<s>", "</s>", "▁", "a", "b", "<end_of_turn>"})
		if kind != ggufUnknown {
			f.Set(tokenTypesKey, []int32{2, 3, 3, 1, 1, 1, kind})
		} else {
			f.Remove(tokenTypesKey) // all are plain
		}
		if c := mustOpenGGUF(t, f); !reflect.DeepEqual(c.Config.EOS, []uint32{2, 6}) {
			t.Errorf("type %d: %v", kind, c.Config.EOS)
		}
	}
}

// What files of Gemma 3 do not say: which layers slide, and that the largest model scales its queries by what a head would have if heads
// shared the width of the stream.
func TestGGUFGemma(t *testing.T) {
	config := func(layers uint32, changes ...gguftest.Key) *Config {
		t.Helper()
		f := ggufModel("gemma3")
		f.Set("gemma3.block_count", layers)
		f.Set("gemma3.attention.key_length", uint32(16))
		f.Set("gemma3.attention.value_length", uint32(16))
		for _, k := range changes {
			f.Set(k.Name, k.Value)
		}
		data := f.Bytes()
		file, err := gguf.Read("test.gguf", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := (&metadata{file: file}).config()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := config(13); !reflect.DeepEqual(c.Sliding, []bool{true, true, true, true, true, false, true, true, true, true, true, false, true}) ||
		c.QueryScale != 0.25 || c.RoPE[4].Theta != 1e4 || c.RoPE[5].Theta != 1e6 {
		t.Errorf("%+v", c)
	}
	if c := config(62); c.QueryScale != 1/math.Sqrt(32) {
		t.Errorf("%+v", c)
	}
	const pattern = "gemma3.attention.sliding_window_pattern"
	if c := config(3, gguftest.Key{Name: pattern, Value: []bool{true, false, true}}); !reflect.DeepEqual(c.Sliding, []bool{true, false, true}) {
		t.Errorf("%+v", c)
	}
	if c := config(3, gguftest.Key{Name: pattern, Value: uint32(2)}, gguftest.Key{Name: "gemma3.rope.freq_base_swa", Value: float32(77)}); !reflect.DeepEqual(c.Sliding, []bool{true, false, true}) ||
		c.RoPE[0].Theta != 77 || c.RoPE[1].Theta != 1e6 {
		t.Errorf("%+v", c)
	}
}

// Names of rules for words mean what they mean to llama.cpp: how many digits a word has, and whether a word that is a token stays whole
// though no merge rules lead to it.
func TestGGUFRules(t *testing.T) {
	digits := []uint32{'1', '2', '3', '4'}
	for pre, want := range map[string]struct {
		number []uint32 // 1234
		word   []uint32 // the
	}{
		"gpt-2": {[]uint32{264}, []uint32{256, 'e'}}, "gpt2": {[]uint32{264}, []uint32{256, 'e'}},
		"llama-bpe": {[]uint32{263, '4'}, []uint32{257}}, "llama3": {[]uint32{263, '4'}, []uint32{257}}, "llama-v3": {[]uint32{263, '4'}, []uint32{257}},
		"qwen2": {digits, []uint32{256, 'e'}}, "deepseek-r1-qwen": {digits, []uint32{256, 'e'}}, "smollm": {digits, []uint32{256, 'e'}},
	} {
		f := ggufModel("qwen3")
		setByteLevel(f, pre, "12", "123", "1234") // 262 …
		f.Set("tokenizer.ggml.merges", []string{"t h", "1 2", "12 3", "123 4"})
		tok := mustOpenGGUF(t, f).Tokenizer()
		if got := tok.Encode("1234"); !reflect.DeepEqual(got, want.number) {
			t.Errorf("%s: a number became %v, want %v", pre, got, want.number)
		}
		if got := tok.Encode("the"); !reflect.DeepEqual(got, want.word) {
			t.Errorf("%s: a word became %v, want %v", pre, got, want.word)
		}
	}
}
