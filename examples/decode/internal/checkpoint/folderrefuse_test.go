package checkpoint

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"
)

// What a Hugging Face folder can have wrong, with the words of the error that name it.
func TestFolderConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		model   string
		changes object
		want    string
	}{
		{"llama", object{"model_type": nil}, "model_type is missing: it must be gemma3_text, llama, mistral, qwen2 or qwen3"},
		{"llama", object{"model_type": "mamba"}, `model_type is "mamba": known are gemma3_text, llama, mistral, qwen2 or qwen3`},
		{"llama", object{"model_type": "gemma3"}, `model_type is "gemma3"`},
		{"llama", object{"architectures": []string{"LlamaForSequenceClassification"}}, "architectures is LlamaForSequenceClassification: needed is LlamaForCausalLM"},
		{"llama", object{"hidden_act": "gelu"}, `hidden_act is "gelu": only silu`},
		{"gemma3_text", object{"hidden_activation": "silu"}, "only gelu_pytorch_tanh"},
		{"llama", object{"attn_logit_softcapping": 50}, "attn_logit_softcapping is 50"},
		{"gemma3_text", object{"attention_bias": true}, "attention_bias is true"},
		{"llama", object{"mlp_bias": true}, "mlp_bias is true"},
		{"gemma3_text", object{"use_bidirectional_attention": true}, "only causal"},
		{"llama", object{"hidden_size": "64"}, "hidden_size"},
		{"llama", object{"hidden_size": 64.5}, "hidden_size"},
		{"llama", object{"num_key_value_heads": 3}, "num_attention_heads 2 is not a multiple of num_key_value_heads 3"},
		{"gemma3_text", object{"head_dim": 31}, "head_dim 31 is odd"},
		{"llama", object{"num_attention_heads": 3, "num_key_value_heads": 3}, "head_dim is missing, and hidden_size 64 is not a multiple of num_attention_heads 3"},
		{"gemma3_text", object{"head_dim": nil}, "head_dim is missing"},
		{"gemma3_text", object{"num_key_value_heads": nil}, "num_key_value_heads is missing"},
		{"llama", object{"rms_norm_eps": 0}, "rms_norm_eps is 0"},
		{"llama", object{"rms_norm_eps": 1}, "smaller than 1"},
		{"gemma3_text", object{"query_pre_attn_scalar": nil}, "query_pre_attn_scalar is missing"},
		{"gemma3_text", object{"query_pre_attn_scalar": -32}, "query_pre_attn_scalar is -32"},
		{"gemma3_text", object{"query_pre_attn_scalar": 1e300}, "must be a positive number"},
		{"gemma3_text", object{"final_logit_softcapping": -30}, "final_logit_softcapping is -30"},
		{"gemma3_text", object{"attn_logit_softcapping": 0}, "attn_logit_softcapping is 0"},
		{"gemma3_text", object{"layer_types": []string{"full_attention", "full_attention"}}, "layer_types has 2 entries for 1 layers"},
		{"gemma3_text", object{"layer_types": []string{"chunked_attention"}}, `layer 0 is "chunked_attention"`},
		{"gemma3_text", object{"layer_types": nil}, "both layer_types and sliding_window_pattern are missing"},
		{"gemma3_text", object{"layer_types": nil, "sliding_window_pattern": 0}, "sliding_window_pattern is 0"},
		{"gemma3_text", object{"layer_types": []string{"sliding_attention"}}, "sliding_window is missing"},
		{"mistral", object{"sliding_window": 0}, "sliding_window is 0"},
		{"qwen2", object{"use_sliding_window": true, "max_window_layers": -1}, "max_window_layers is -1"},
		{"qwen2", object{"use_sliding_window": true, "max_window_layers": 0, "sliding_window": 1 << 30}, "sliding_window is 1073741824"},
		{"llama", object{"rope_theta": -1}, "rope_theta of full_attention is -1"},
		{"llama", object{"rope_parameters": []int{1}}, "rope_parameters: "},
		{"gemma3_text", object{"rope_parameters": []int{1}}, "rope_parameters: "},
		{"qwen3", object{"rope_parameters": object{"full_attention": object{"rope_theta": 1e6}}}, "rope_parameters: there are some for kinds of layers, but layers of qwen3 models do not differ"},
		{"gemma3_text", object{"rope_parameters": object{"rope_theta": 1e6}}, "rope_parameters: needed are those of full_attention and sliding_attention"},
		{"llama", object{"rope_scaling": object{"type": "dynamic", "factor": 2}}, `the RoPE type of full_attention is "dynamic": known are default, linear, llama3 and yarn`},
		{"llama", object{"rope_scaling": object{"rope_type": "longrope"}}, `"longrope"`},
		{"llama", object{"rope_scaling": object{"rope_type": "linear"}}, "factor of the linear RoPE scaling of full_attention is missing"},
		{"llama", object{"rope_scaling": object{"rope_type": "linear", "factor": 0}}, "factor of the linear RoPE scaling of full_attention is 0"},
		{"llama", object{"rope_scaling": object{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1}}, "high_freq_factor of the llama3"},
		{"llama", object{"rope_scaling": object{"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}}, "high_freq_factor 4 of the RoPE scaling of full_attention is not above"},
		{"llama", object{"rope_scaling": object{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}}, "original_max_position_embeddings of the RoPE scaling is missing"},
		{"llama", object{"rope_scaling": object{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 0}}, "original_max_position_embeddings is 0"},
		{"llama", object{"rope_scaling": object{"rope_type": "yarn", "factor": 4, "beta_fast": 1}}, "beta_fast 1 of the RoPE scaling of full_attention is not above"},
		{"llama", object{"rope_scaling": object{"rope_type": "yarn", "factor": 0.5}}, "it must be at least 1"},
		{"llama", object{"rope_scaling": object{"rope_type": "yarn", "factor": 4, "attention_factor": -1}}, "attention_factor of the yarn"},
		{"gemma3_text", object{"rope_parameters": object{"sliding_attention": object{"rope_type": "su"}}}, `the RoPE type of sliding_attention is "su"`},
		{"llama", object{"partial_rotary_factor": 1.5}, "partial_rotary_factor is 1.5"},
		{"llama", object{"partial_rotary_factor": 0.01}, "partial_rotary_factor is 0.01: 0 of the 32 numbers"},
		{"llama", object{"bos_token_id": 1024}, "bos_token_id is 1024, outside the vocabulary of 1024"},
		{"llama", object{"bos_token_id": []int{2, 3}}, "bos_token_id has 2 ids"},
		{"llama", object{"eos_token_id": -1}, "eos_token_id is -1"},
		{"llama", object{"eos_token_id": "</s>"}, "must be a token id"},
		{"llama", object{"eos_token_id": []int{1, 4000}}, "eos_token_id is 4000"},
		{"llama", object{"quantization": object{"group_size": 64, "bits": 3}}, "quantization.bits is 3"},
		{"llama", object{"quantization": object{"group_size": 64}}, "bits is 0"},
		{"llama", object{"quantization": object{"group_size": 48, "bits": 4}}, "group_size is 48"},
		{"llama", object{"quantization": object{"group_size": 64, "bits": 4, "mode": "mxfp4"}}, `mode is "mxfp4"`},
		{"llama", object{"quantization": object{"group_size": "64", "bits": 4}}, "quantization.group_size"},
		{"llama", object{"quantization": object{"group_size": 64, "bits": 4, "lm_head": object{"bits": 2}}}, `quantization."lm_head".bits is 2`},
		{"llama", object{"quantization": object{"group_size": 64, "bits": 4, "lm_head": 7}}, `quantization."lm_head"`},
		{"llama", object{"quantization_config": object{"quant_method": "gptq", "bits": 4}}, `quantization_config.quant_method is "gptq"`},
	} {
		f := newFolder(t, c.model)
		for k, v := range c.changes {
			f.config[k] = v
			if v == nil {
				delete(f.config, k)
			}
		}
		_, err := f.open(t)
		wantError(t, c.want, err, c.want, "model test: config.json: ")
	}
	for _, name := range []string{"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"} {
		for value, want := range map[any]string{nil: " is missing", 0: " is 0: it must be from 1 to", -5: " is -5", 1 << 40: " is 1099511627776"} {
			f := newFolder(t, "qwen3")
			if f.config[name] = value; value == nil {
				delete(f.config, name)
			}
			_, err := f.open(t)
			wantError(t, name, err, "config.json: "+name+want)
		}
	}
	for _, text := range []string{"", "nonsense", "[]", strings.Repeat(" ", maxConfigBytes+1)} {
		dir := newFolder(t, "llama").fs(t)
		dir[configFile] = &fstest.MapFile{Data: []byte(text)}
		_, err := OpenFS("test", dir)
		wantError(t, "config.json", err, "model test: config.json: ")
	}
}

func TestFolderRefuses(t *testing.T) {
	const q = "model.layers.0.self_attn.q_proj"
	for _, c := range []struct {
		name   string
		change func(f *folder)
		want   string
	}{
		{"vector type", func(f *folder) { f.tensors["model.norm.weight"] = tensorOf("U32", 64) }, `model.safetensors: tensor "model.norm.weight" is of type U32, needed is F32, F16 or BF16`},
		{"vector shape", func(f *folder) { f.tensors["model.norm.weight"] = tensorOf("F32", 65) }, "has shape [65], needed is [64]"},
		{"matrix rank", func(f *folder) { f.tensors[q+".weight"] = tensorOf("F32", 64*64) }, "has shape [4096], needed is [64 64]"},
		{"a leading one", func(f *folder) { f.tensors["model.norm.weight"] = tensorOf("F32", 1, 64) }, "has shape [1 64], needed is [64]"},
		{"transposed", func(f *folder) { f.tensors["model.layers.0.mlp.up_proj.weight"] = tensorOf("F32", 64, 128) }, "has shape [64 128], needed is [128 64]"},
		{"packed without settings", func(f *folder) { f.tensors[q+".weight"] = tensorOf("U32", 64, 8) }, `"` + q + `.weight" is of type U32, needed is F32, F16 or BF16`},
		{"a type without kernels", func(f *folder) { f.tensors[q+".weight"] = tensorOf("F8_E4M3", 64, 64) }, "is of type F8_E4M3, needed is F32, F16 or BF16"},
		{"scales missing", func(f *folder) { f.quantise(q, 4, 64, "BF16"); delete(f.tensors, q+".scales") }, `there is no tensor "` + q + `.scales"`},
		{"biases missing", func(f *folder) { f.quantise(q, 4, 64, "BF16"); delete(f.tensors, q+".biases") }, `or no "` + q + `.biases"`},
		{"scales of another group", func(f *folder) {
			f.quantise(q, 4, 64, "BF16")
			f.tensors[q+".scales"] = tensorOf("BF16", 64, 2)
		}, `"` + q + `.scales" has shape [64 2], needed is [64 1]`},
		{"scales and biases differ", func(f *folder) {
			f.quantise(q, 4, 64, "BF16")
			f.tensors[q+".biases"] = tensorOf("F16", 64, 1)
		}, "is of type F16, needed is BF16"},
		{"scales of another type", func(f *folder) {
			f.quantise(q, 4, 64, "BF16")
			f.tensors[q+".scales"] = tensorOf("U32", 64, 1)
		}, "is of type U32, needed is F32, F16 or BF16"},
		{"other bits", func(f *folder) {
			f.quantise(q, 4, 64, "BF16")
			f.tensors[q+".weight"] = tensorOf("U32", 64, 16)
		}, "has shape [64 16], needed is [64 8]"},
		{"scales of numbers", func(f *folder) {
			f.quantise(q, 4, 64, "BF16")
			f.tensors[q+".weight"] = tensorOf("BF16", 64, 64)
		}, "is of type BF16, but there are scales or biases"},
		{"off but packed", func(f *folder) {
			f.quantise(q, 4, 64, "BF16")
			f.config["quantization"].(object)[q] = false
		}, "config.json says that it is not quantised"},
		{"ragged groups", func(f *folder) {
			f.quantise(q, 4, 64, "BF16")
			f.config["quantization"] = object{"group_size": 128, "bits": 4}
		}, "has 64 columns, which groups of 128 do not divide"},
		{"a bias of the output", func(f *folder) { f.tensors["lm_head.bias"] = tensorOf("F32", 1024) }, `there is a tensor "lm_head.bias", which is not part of a llama model`},
		{"no tokenizer", func(f *folder) { delete(f.files, sentencepieceFile) }, "there is neither tokenizer.model nor tokenizer.json"},
		{"broken tokenizer", func(f *folder) { f.files[sentencepieceFile] = &fstest.MapFile{Data: []byte("x")} }, "tokenizer.model: sentencepiece: "},
		{"broken tokenizer.json", func(f *folder) {
			delete(f.files, sentencepieceFile)
			f.files[byteLevelFile] = &fstest.MapFile{Data: []byte("{}")}
		}, "tokenizer.json: there is no model"},
		{"broken tokenizer_config.json", func(f *folder) { f.files[tokenizerConfigFile] = &fstest.MapFile{Data: []byte("[]")} }, "tokenizer_config.json: "},
		{"added tokens without ids", func(f *folder) {
			f.files[tokenizerConfigFile] = &fstest.MapFile{Data: []byte(`{"added_tokens_decoder":{"x":{"content":"y"}}}`)}
		}, `tokenizer_config.json: added_tokens_decoder has the id "x"`},
		{"added tokens that take spaces", func(f *folder) {
			f.config["vocab_size"] = 1025
			f.addTensors(t)
			f.files[tokenizerConfigFile] = &fstest.MapFile{Data: []byte(`{"added_tokens_decoder":{"1024":{"content":"y","rstrip":true}}}`)}
		}, `tokenizer_config.json: the added token "y" has single_word, lstrip or rstrip, which is not supported`},
		{"an added token that is empty", func(f *folder) {
			f.config["vocab_size"] = 1025
			f.addTensors(t)
			f.files[tokenizerConfigFile] = &fstest.MapFile{Data: []byte(`{"added_tokens_decoder":{"1024":{}}}`)}
		}, `tokenizer_config.json: sentencepiece: the added token 1024 is empty`},
		{"broken generation_config.json", func(f *folder) { f.files[generationFile] = &fstest.MapFile{Data: []byte("[]")} }, "generation_config.json: "},
		{"head_dim a string", func(f *folder) { f.config["head_dim"] = "64" }, "config.json: head_dim is a string: it must be a whole number of 64 bits"},
		{"layer_types a string", func(f *folder) { f.config["layer_types"] = "all" }, "config.json: layer_types is a string: it must be a list"},
		{"wrong generation_config.json", func(f *folder) {
			f.files[generationFile] = &fstest.MapFile{Data: []byte(`{"eos_token_id":1024}`)}
		}, "eos_token_id of generation_config.json is 1024"},
		{"large vocabulary", func(f *folder) { f.config["vocab_size"] = 1000 }, "tokenizer.model has 1024 tokens, but config.json gives the model a vocabulary of 1000"},
	} {
		f := newFolder(t, "llama")
		c.change(f)
		_, err := f.open(t)
		wantError(t, c.name, err, "model test: ", c.want)
	}
	dir := newFolder(t, "llama").fs(t)
	delete(dir, "model.safetensors")
	_, err := OpenFS("test", dir)
	wantError(t, "no weights", err, "model.safetensors")
	if _, err := OpenFS("test", fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	_, err = Open(t.TempDir() + "/none")
	wantError(t, "no folder", err, "model: ", "none")
	_, err = Open(os.DevNull)
	wantError(t, "a device", err, "neither a folder nor a file")
	weights := t.TempDir() + "/model.safetensors"
	if err := os.WriteFile(weights, dir["config.json"].Data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(weights)
	wantError(t, "weights without their folder", err, "is given as its folder")
}

// Weights cut anywhere are refused when they are opened, and name the file.
func TestTruncatedFolder(t *testing.T) {
	f := newFolder(t, "gemma3_text")
	f.quantise("model.embed_tokens", 4, 64, "BF16")
	dir := f.fs(t)
	whole := dir["model.safetensors"].Data
	header := 8 + int(whole[0]) + int(whole[1])<<8
	cuts := []int{0, 1, 7, 8, 9, header - 1, header, header + 1, len(whole) - 1}
	rnd := rand.New(rand.NewPCG(11, 12))
	for range 60 {
		cuts = append(cuts, rnd.IntN(len(whole)))
	}
	for _, n := range cuts {
		dir["model.safetensors"] = &fstest.MapFile{Data: whole[:n]}
		_, err := OpenFS("test", dir)
		wantError(t, "cut", err, "model test: safetensors: model.safetensors: ")
	}
}

func FuzzFolderConfig(f *testing.F) {
	for model := range families {
		text, err := json.Marshal(newFolder(f, model).config)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"model_type":"llama","eos_token_id":[1,"a"],"rope_scaling":{"type":"yarn"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		raw := &folderConfig{}
		if json.Unmarshal(data, raw) != nil {
			return
		}
		c, err := raw.config()
		if err != nil {
			return
		}
		if len(c.Sliding) != c.Layers || len(c.RoPE) != c.Layers || c.Heads%c.KVHeads != 0 || int(c.BOS) >= c.Vocab || c.slides() != (c.Window > 0) {
			t.Fatalf("accepted: %+v", c)
		}
		for _, r := range c.RoPE {
			if r.Dim < 2 || r.Dim > c.HeadDim || !(r.Theta > 0) || !(r.Scaling.Factor > 0) {
				t.Fatalf("accepted: %+v", r)
			}
		}
		_, _ = raw.affine()
	})
}

// tinyTokenizer is a SentencePiece model of five pieces, with a space before texts if prefix is 1.
func tinyTokenizer(prefix uint64) []byte {
	message := func(out []byte, number protowire.Number, fields []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), fields)
	}
	integer := func(out []byte, number protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), v)
	}
	var out []byte
	for i, text := range []string{"<unk>", "▁", "a", "b", "ab"} {
		kind := uint64(1)
		if i == 0 {
			kind = 2
		}
		out = message(out, 1, integer(message(nil, 1, []byte(text)), 3, kind))
	}
	out = message(out, 2, integer(nil, 3, 2))
	return message(out, 3, integer(integer(nil, 3, prefix), 4, 0))
}

// newTinyFolder is a model so small that a fuzzer gets through it.
func newTinyFolder(t testing.TB, model string) *folder {
	t.Helper()
	f := newFolder(t, model)
	for _, name := range []string{"hidden_size", "head_dim", "intermediate_size", "num_attention_heads", "num_key_value_heads"} {
		f.config[name] = 2
	}
	f.config["vocab_size"] = 5
	f.tensors = map[string]*data{}
	f.addTensors(t)
	f.files[sentencepieceFile] = &fstest.MapFile{Data: tinyTokenizer(0)}
	return f
}

// A whole folder: its configuration, its weights and its tokenizer.
func FuzzOpenFolder(f *testing.F) {
	for _, model := range []string{"gemma3_text", "qwen3"} {
		folder := newTinyFolder(f, model)
		folder.mustOpen(f)
		dir := folder.fs(f)
		f.Add(dir[configFile].Data, dir["model.safetensors"].Data, dir[sentencepieceFile].Data)
	}
	f.Fuzz(func(t *testing.T, config, weights, tok []byte) {
		c, err := OpenFS("test", fstest.MapFS{configFile: {Data: config}, "model.safetensors": {Data: weights}, sentencepieceFile: {Data: tok}})
		if err != nil {
			return
		}
		defer c.Close()
		use(t, c)
	})
}
