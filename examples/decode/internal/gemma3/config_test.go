package gemma3

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// edited is the embedded model's config.json with some values replaced; nil removes one.
func edited(t testing.TB, changes map[string]any) []byte {
	t.Helper()
	data, err := os.ReadFile(embedded + "/" + ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := json.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	for name, v := range changes {
		if v == nil {
			delete(values, name)
		} else {
			values[name] = v
		}
	}
	data, err = json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReadConfig(t *testing.T) {
	c, err := ReadConfig(os.DirFS(embedded))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Vocab: 1024, Hidden: 128, Layers: 6, Heads: 2, KVHeads: 1, HeadDim: 128, FFN: 256, Positions: 512,
		Eps: 1e-6, QueryScale: 1 / math.Sqrt(128), EmbedScale: math.Sqrt(128), Softcap: 30,
		Sliding: []bool{true, true, true, true, true, false}, Window: 64,
		Local: RoPE{1e4, 1}, Global: RoPE{1e6, 1},
		BOS: 2, EOS: []uint32{1}, Tied: true, GroupSize: 64,
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
	if c.Rotary(0) != c.Local || c.Rotary(5) != c.Global || c.Group() != 64 {
		t.Error("the layers' parameters are mixed up")
	}

	if _, err := ReadConfig(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), ConfigFile) {
		t.Error(err)
	}
	for _, text := range []string{"", "nonsense", "[]", strings.Repeat(" ", maxConfigBytes+1)} {
		_, err := ReadConfig(fstest.MapFS{ConfigFile: {Data: []byte(text)}})
		if err == nil || !strings.HasPrefix(err.Error(), ConfigFile+": ") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// Configurations that say the same in other words, or leave to defaults what has one.
func TestConfigForms(t *testing.T) {
	parse := func(changes map[string]any) *Config {
		t.Helper()
		c, err := ParseConfig(edited(t, changes))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := parse(map[string]any{
		"layer_types": nil, "sliding_window_pattern": 3, "rope_parameters": nil,
		"rope_theta": 2e6, "rope_local_base_freq": 3e4, "rope_scaling": map[string]any{"type": "linear", "factor": 8.0},
		"rms_norm_eps": nil, "eos_token_id": []int{1, 106}, "bos_token_id": nil, "quantization": nil,
		"final_logit_softcapping": nil, "tie_word_embeddings": false, "hidden_activation": nil, "architectures": nil,
	})
	if !reflect.DeepEqual(old.Sliding, []bool{true, true, false, true, true, false}) ||
		old.Global != (RoPE{2e6, 8}) || old.Local != (RoPE{3e4, 1}) || old.Eps != 1e-6 || old.Softcap != 0 ||
		!reflect.DeepEqual(old.EOS, []uint32{1, 106}) || old.BOS != 2 || old.Tied || old.GroupSize != 0 || old.Group() != 64 {
		t.Errorf("%+v", old)
	}
	plain := parse(map[string]any{"rope_parameters": nil, "eos_token_id": nil})
	if plain.Global != (RoPE{1e6, 1}) || plain.Local != (RoPE{1e4, 1}) || !reflect.DeepEqual(plain.EOS, []uint32{1}) {
		t.Errorf("%+v", plain)
	}
	global := parse(map[string]any{"layer_types": nil, "_sliding_window_pattern": 1, "sliding_window": nil})
	if global.Window != 0 || global.Sliding[0] {
		t.Errorf("%+v", global)
	}
	alone := parse(map[string]any{"quantization": map[string]any{"group_size": 32, "bits": 4, "mode": "affine", "lm_head": false}})
	if alone.GroupSize != 32 {
		t.Errorf("%+v", alone)
	}
}

func TestInverseFrequencies(t *testing.T) {
	f := RoPE{1e4, 1}.InverseFrequencies(8)
	for p, want := range []float64{1, 0.1, 0.01, 0.001} {
		if math.Abs(float64(f[p])/want-1) > 1e-7 {
			t.Errorf("%d: %g", p, f[p])
		}
	}
	if f := (RoPE{1e4, 8}).InverseFrequencies(8); f[0] != 0.125 {
		t.Errorf("scaled: %g", f[0])
	}
}

func TestParseConfigRefuses(t *testing.T) {
	type m = map[string]any
	cases := []struct {
		changes m
		want    string
	}{
		{m{"model_type": nil}, "model_type is missing"},
		{m{"model_type": "llama"}, `model_type is "llama"`},
		{m{"model_type": "gemma3"}, "needed is a Gemma 3 text model"},
		{m{"architectures": []string{"Gemma3ForSequenceClassification"}}, "Gemma3ForSequenceClassification"},
		{m{"hidden_activation": "silu"}, "only gelu_pytorch_tanh"},
		{m{"attn_logit_softcapping": 50.0}, "attn_logit_softcapping is 50"},
		{m{"attention_bias": true}, "biases are not supported"},
		{m{"use_bidirectional_attention": true}, "only causal"},
		{m{"hidden_size": "128"}, "hidden_size"},
		{m{"hidden_size": 12.5}, "hidden_size"},
		{m{"num_key_value_heads": 3}, "2 is not a multiple of num_key_value_heads 3"},
		{m{"head_dim": 127}, "head_dim 127 is odd"},
		{m{"rms_norm_eps": 0}, "rms_norm_eps is 0"},
		{m{"rms_norm_eps": 1}, "smaller than 1"},
		{m{"query_pre_attn_scalar": nil}, "query_pre_attn_scalar is missing"},
		{m{"query_pre_attn_scalar": -128}, "must be a positive number"},
		{m{"query_pre_attn_scalar": 1e300}, "must be a positive number"},
		{m{"final_logit_softcapping": -30}, "final_logit_softcapping is -30"},
		{m{"layer_types": []string{"full_attention"}}, "1 entries for 6 layers"},
		{m{"layer_types": []string{"a", "a", "a", "a", "a", "a"}}, `layer 0 is "a"`},
		{m{"layer_types": nil, "_sliding_window_pattern": nil}, "both layer_types and sliding_window_pattern are missing"},
		{m{"layer_types": nil, "_sliding_window_pattern": 0}, "sliding_window_pattern is 0"},
		{m{"sliding_window": nil}, "sliding_window is missing"},
		{m{"sliding_window": 0}, "sliding_window is 0"},
		{m{"rope_parameters": m{"full_attention": m{"rope_type": "yarn"}}}, `full_attention is "yarn"`},
		{m{"rope_parameters": m{"sliding_attention": m{"rope_type": "linear"}}}, "sliding_attention has no factor"},
		{m{"rope_parameters": m{"full_attention": m{"rope_type": "linear", "factor": 0}}}, "factor of full_attention is 0"},
		{m{"rope_parameters": m{"full_attention": m{"rope_theta": -1}}}, "rope_theta of full_attention"},
		{m{"bos_token_id": 1024}, "bos_token_id is 1024, outside the vocabulary"},
		{m{"bos_token_id": []int{2, 3}}, "bos_token_id has 2 ids"},
		{m{"eos_token_id": -1}, "eos_token_id is -1"},
		{m{"eos_token_id": "</s>"}, "must be a token id"},
		{m{"eos_token_id": []int{1, 4000}}, "eos_token_id is 4000"},
		{m{"quantization": m{"group_size": 64, "bits": 8}}, "bits is 8"},
		{m{"quantization": m{"group_size": 64}}, "bits is 0"},
		{m{"quantization": m{"group_size": 48, "bits": 4}}, "group_size is 48"},
		{m{"quantization": m{"group_size": 64, "bits": 4, "mode": "mxfp4"}}, `mode is "mxfp4"`},
		{m{"quantization": m{"group_size": "64", "bits": 4}}, "quantization.group_size"},
		{m{"quantization": m{"group_size": 64, "bits": 4, "model.embed_tokens": m{"bits": 8}}}, `own settings for "model.embed_tokens"`},
	}
	for _, name := range []string{
		"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
		"intermediate_size", "max_position_embeddings",
	} {
		cases = append(cases, []struct {
			changes m
			want    string
		}{
			{m{name: nil}, name + " is missing"},
			{m{name: 0}, name + " is 0: it must be from 1"},
			{m{name: -5}, name + " is -5"},
			{m{name: 1 << 40}, name + " is 1099511627776"},
		}...)
	}
	for _, c := range cases {
		if _, err := ParseConfig(edited(t, c.changes)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want an error with %q", c.changes, err, c.want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(edited(f, nil))
	f.Add([]byte(`{"model_type":"gemma3_text"}`))
	f.Add([]byte(`{"eos_token_id":[1,"a"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			return
		}
		if len(c.Sliding) != c.Layers || c.Heads%c.KVHeads != 0 || len(c.plan()) < 2 {
			t.Fatalf("accepted: %+v", c)
		}
	})
}

func ExampleReadConfig() {
	c, err := ReadConfig(os.DirFS("../../testdata/tiny-gemma3-q4"))
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Layers, "layers, hidden size", c.Hidden)
	// Output: 6 layers, hidden size 128
}
