package checkpoint

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func (f *folder) mustParse(t *testing.T) *Config {
	t.Helper()
	c, _, err := f.parse()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// null is a value that is there, unlike one that is removed.
var null = json.RawMessage("null")

// with is a configuration with changes; nil removes a value.
func with(t *testing.T, model string, changes object) *Config {
	t.Helper()
	f := newFolder(t, model)
	for k, v := range changes {
		if f.config[k] = v; v == nil {
			delete(f.config, k)
		}
	}
	return f.mustParse(t)
}

// What each model type is by default.
func TestFamilies(t *testing.T) {
	rope := func(theta float64) []RoPE { return []RoPE{{Theta: theta, Dim: 32, Scaling: Scaling{Factor: 1}}} }
	plain := Config{Vocab: 1024, Hidden: 64, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 128, Positions: 512,
		Eps: 1e-6, QueryScale: 1 / math.Sqrt(32), EmbedScale: 1, Activation: SiLU, Sliding: []bool{false}, RoPE: rope(1e4)}
	for model, change := range map[string]func(c *Config){
		"gemma3_text": func(c *Config) {
			c.EmbedScale, c.Activation, c.PostNorms, c.QKNorm, c.RoPE, c.BOS, c.AddBOS, c.EOS, c.Tied = 8, GELUTanh, true, true, rope(1e6), 2, true, nil, true
			c.EOS = []uint32{1}
		},
		"llama":   func(c *Config) { c.Eps, c.RoPE, c.BOS, c.AddBOS, c.EOS = 1e-5, rope(5e5), 1, true, []uint32{2, 3} },
		"mistral": func(c *Config) { c.BOS, c.AddBOS, c.EOS, c.Window, c.Sliding = 1, true, []uint32{2}, 9, []bool{true} },
		"qwen2":   func(c *Config) { c.AttentionBias, c.BOS, c.EOS, c.Tied = true, 3, []uint32{2}, true },
		"qwen3":   func(c *Config) { c.QKNorm, c.EOS, c.Tied = true, []uint32{2}, true },
	} {
		want := plain
		want.Architecture = model
		change(&want)
		if got := newFolder(t, model).mustParse(t); !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: got %+v\nwant %+v", model, *got, want)
		}
	}
}

// Configurations that say the same in other words, or leave to defaults what has one.
func TestConfigForms(t *testing.T) {
	if c := with(t, "llama", object{"num_key_value_heads": nil, "max_position_embeddings": nil, "rope_theta": nil, "rms_norm_eps": nil, "eos_token_id": nil}); c.KVHeads != 2 ||
		c.Positions != 2048 || c.RoPE[0].Theta != 1e4 || c.Eps != 1e-6 || !reflect.DeepEqual(c.EOS, []uint32{2}) {
		t.Errorf("%+v", c)
	}
	if c := with(t, "llama", object{"attention_bias": true}); !c.AttentionBias || !c.outputBias {
		t.Errorf("%+v", c)
	}
	if c := with(t, "qwen3", object{"head_dim": nil, "eos_token_id": nil, "bos_token_id": nil}); c.HeadDim != 128 || c.EOS != nil || c.AddBOS {
		t.Errorf("%+v", c)
	}
	for window, want := range map[any]int{nil: 4096, &null: 0, 77: 77} { // there is a default, and a way to have no window
		c := with(t, "mistral", object{"sliding_window": window})
		d := with(t, "qwen3", object{"sliding_window": window, "use_sliding_window": true, "max_window_layers": 0})
		if c.Window != want || c.Sliding[0] != (want > 0) || d.Window != want || d.Sliding[0] != (want > 0) {
			t.Errorf("%v: %+v %+v", window, c, d)
		}
	}
	if c := with(t, "mistral", object{"num_key_value_heads": nil, "num_attention_heads": 16, "head_dim": 8}); c.KVHeads != 8 {
		t.Errorf("%+v", c)
	}
	if c := with(t, "mistral", object{"num_key_value_heads": null}); c.KVHeads != 2 {
		t.Errorf("%+v", c)
	}
	if c := with(t, "llama", object{"eos_token_id": null}); c.EOS != nil {
		t.Errorf("there is no end: %+v", c)
	}
	layers := func(c *Config) []bool { return c.Sliding }
	if c := with(t, "qwen2", object{"use_sliding_window": true, "num_hidden_layers": 3, "max_window_layers": 1}); !reflect.DeepEqual(layers(c), []bool{false, true, true}) || c.Window != 4096 {
		t.Errorf("%+v", c)
	}
	if c := with(t, "qwen2", object{"use_sliding_window": false, "sliding_window": 7, "num_hidden_layers": 1, "layer_types": []string{"full_attention"}}); c.Window != 0 {
		t.Errorf("%+v", c)
	}
	gemma := object{"layer_types": nil, "sliding_window_pattern": 3, "num_hidden_layers": 6, "sliding_window": 50, "rope_theta": 2e6, "rope_local_base_freq": 3e4,
		"rope_scaling": object{"rope_type": "linear", "factor": 8}}
	c := with(t, "gemma3_text", gemma)
	global, local := RoPE{2e6, 32, false, Scaling{Kind: ScalingLinear, Factor: 8}}, RoPE{3e4, 32, false, Scaling{Factor: 1}}
	if !reflect.DeepEqual(layers(c), []bool{true, true, false, true, true, false}) || !reflect.DeepEqual(c.RoPE, []RoPE{local, local, global, local, local, global}) || c.Window != 50 {
		t.Errorf("%+v", c)
	}
	gemma["rope_parameters"] = object{"full_attention": object{"rope_type": "linear", "factor": 8, "rope_theta": 2e6}, "sliding_attention": object{"rope_type": "default", "rope_theta": 3e4}}
	gemma["rope_theta"], gemma["rope_local_base_freq"], gemma["rope_scaling"] = nil, nil, nil
	if d := with(t, "gemma3_text", gemma); !reflect.DeepEqual(c, d) {
		t.Errorf("got %+v, want %+v", d, c)
	}
}

func TestFolderRoPE(t *testing.T) {
	yarnScale4 := 1 + 0.1*math.Log(4)
	for _, c := range []struct {
		name    string
		changes object
		want    RoPE
	}{
		{"nothing", object{"rope_theta": nil}, RoPE{1e4, 32, false, Scaling{Factor: 1}}},
		{"default", object{"rope_scaling": object{"rope_type": "default"}}, RoPE{5e5, 32, false, Scaling{Factor: 1}}},
		{"partial", object{"partial_rotary_factor": 0.25}, RoPE{5e5, 8, false, Scaling{Factor: 1}}},
		{"linear, its old name", object{"rope_scaling": object{"type": "linear", "factor": 2}}, RoPE{5e5, 32, false, Scaling{Kind: ScalingLinear, Factor: 2}}},
		{"llama3", object{"rope_scaling": object{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 128}},
			RoPE{5e5, 32, false, Scaling{Kind: ScalingLlama3, Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalPositions: 128}}},
		{"llama3 of transformers 5", object{"rope_theta": nil, "rope_parameters": object{"rope_theta": 5e5, "rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
			"high_freq_factor": 4, "original_max_position_embeddings": 128, "partial_rotary_factor": 0.5}},
			RoPE{5e5, 16, false, Scaling{Kind: ScalingLlama3, Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalPositions: 128}}},
		{"yarn", object{"rope_scaling": object{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 128}},
			RoPE{5e5, 32, false, Scaling{Kind: ScalingYaRN, Factor: 4, OriginalPositions: 128, BetaFast: 32, BetaSlow: 1, Truncate: true, AttentionFactor: yarnScale4}}},
		{"yarn of a small factor", object{"rope_scaling": object{"rope_type": "yarn", "factor": 1.5}},
			RoPE{5e5, 32, false, Scaling{Kind: ScalingYaRN, Factor: 1.5, OriginalPositions: 512, BetaFast: 32, BetaSlow: 1, Truncate: true, AttentionFactor: 1 + 0.1*math.Log(1.5)}}},
		{"yarn by lengths", object{"rope_scaling": object{"rope_type": "yarn", "original_max_position_embeddings": 256, "beta_fast": 16, "beta_slow": 2, "truncate": false, "attention_factor": 1.5}},
			RoPE{5e5, 32, false, Scaling{Kind: ScalingYaRN, Factor: 2, OriginalPositions: 256, BetaFast: 16, BetaSlow: 2, AttentionFactor: 1.5}}},
		{"yarn with mscale", object{"rope_scaling": object{"rope_type": "yarn", "factor": 4, "mscale": 2, "mscale_all_dim": 1}},
			RoPE{5e5, 32, false, Scaling{Kind: ScalingYaRN, Factor: 4, OriginalPositions: 512, BetaFast: 32, BetaSlow: 1, Truncate: true, AttentionFactor: (1 + 0.2*math.Log(4)) / yarnScale4}}},
	} {
		got := with(t, "llama", c.changes).RoPE[0]
		if math.Abs(got.Scaling.AttentionFactor-c.want.Scaling.AttentionFactor) > 1e-12 {
			t.Errorf("%s: attention factor %g, want %g", c.name, got.Scaling.AttentionFactor, c.want.Scaling.AttentionFactor)
		}
		got.Scaling.AttentionFactor = c.want.Scaling.AttentionFactor
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Which tokens begin and end a text: config.json, generation_config.json, tokenizer_config.json and tokenizer.json say it.
func TestFolderMarkers(t *testing.T) {
	f := newFolder(t, "llama")
	f.files[generationFile] = &fstest.MapFile{Data: []byte(`{"eos_token_id":[3,7]}`)}
	f.files[tokenizerConfigFile] = &fstest.MapFile{Data: []byte(`{"add_bos_token":false}`)}
	if c := f.mustOpen(t).Config; c.AddBOS || c.BOS != 1 || !reflect.DeepEqual(c.EOS, []uint32{2, 3, 7}) {
		t.Errorf("%v %v %v", c.AddBOS, c.BOS, c.EOS)
	}

	// Tokens beyond those of tokenizer.model are in tokenizer_config.json; some have no row in the embedding.
	f = newFolder(t, "llama")
	f.config["vocab_size"] = 1030
	f.addTensors(t)
	f.files[tokenizerConfigFile] = &fstest.MapFile{Data: []byte(`{"added_tokens_decoder":{"1":{"content":"</s>","special":true},
		"1024":{"content":"<|im_end|>","special":true},"1026":{"content":"<tool>"},"1030":{"content":"<image>","special":true}}}`)}
	m := f.mustOpen(t)
	if got := m.Tokenizer().Encode("<|im_end|><tool></s>"); !reflect.DeepEqual(got, []uint32{1024, 1026, 1}) || m.Tokenizer().Len() != 1027 {
		t.Errorf("%v of %d", got, m.Tokenizer().Len())
	}

	// Models with a space before a text differ in what follows a marker. tinyTokenizer has tokens "▁" 1, "a" 2 and "b" 3.
	for settings, want := range map[string][]uint32{`,"legacy":false`: {1, 2, 5, 2}, `,"legacy":true`: {1, 2, 5, 1, 2}, `,"legacy":null`: {1, 2, 5, 1, 2}, "": {1, 2, 5, 1, 2}} {
		f = newFolder(t, "llama")
		f.files[sentencepieceFile] = &fstest.MapFile{Data: tinyTokenizer(1)}
		f.files[tokenizerConfigFile] = &fstest.MapFile{Data: []byte(`{"added_tokens_decoder":{"5":{"content":"</t>","special":true}}` + settings + `}`)}
		if got := f.mustOpen(t).Tokenizer().Encode("a</t>a"); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", settings, got, want)
		}
	}

	f = newFolder(t, "llama")
	delete(f.files, sentencepieceFile)
	var vocab []string
	for b := range 256 {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(spellByte(byte(b)))
		vocab = append(vocab, `"`+quoted+`":`+strconv.Itoa(b))
	}
	text := `{"added_tokens":[{"id":300,"content":"<|begin|>","special":true}],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
		"model":{"type":"BPE","vocab":{` + strings.Join(vocab, ",") + `,"th":256},"merges":["t h"]}`
	f.files[byteLevelFile] = &fstest.MapFile{Data: []byte(text + "}")}
	c := f.mustOpen(t)
	if got := c.Tokenizer().Encode("the"); c.Config.AddBOS || !reflect.DeepEqual(got, []uint32{256, 'e'}) {
		t.Errorf("%v %v", c.Config.AddBOS, got)
	}
	template := func(pieces string) {
		f.files[byteLevelFile] = &fstest.MapFile{Data: []byte(text + `,"post_processor":{"type":"TemplateProcessing","single":[` + pieces + `{"Sequence":{"id":"A"}}]}}`)}
	}
	template(`{"SpecialToken":{"id":"<|begin|>"}},`)
	if c := f.mustOpen(t).Config; !c.AddBOS || c.BOS != 300 {
		t.Errorf("%v %v", c.AddBOS, c.BOS)
	}
	template(`{"SpecialToken":{"id":"<|begin|>"}},{"SpecialToken":{"id":"<|begin|>"}},`)
	_, err := f.open(t)
	wantError(t, "two", err, "tokenizer.json: post_processor puts 2 tokens before a text")
}
