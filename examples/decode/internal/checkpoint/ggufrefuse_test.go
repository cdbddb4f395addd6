package checkpoint

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/examples/decode/internal/gguf"
	"github.com/ingot-metal/ingot/examples/decode/internal/gguf/gguftest"
)

// What a GGUF file can have wrong, with the words of the error that name it.
func TestGGUFRefuses(t *testing.T) {
	set := func(key string, value any) func(*gguftest.File) {
		return func(f *gguftest.File) { f.Set(key, value) }
	}
	remove := func(key string) func(*gguftest.File) {
		return func(f *gguftest.File) { f.Remove(key) }
	}
	tensor := func(name string, change func(*gguftest.Tensor)) func(*gguftest.File) {
		return func(f *gguftest.File) { change(f.Tensor(name)) }
	}
	all := func(changes ...func(*gguftest.File)) func(*gguftest.File) {
		return func(f *gguftest.File) {
			for _, c := range changes {
				c(f)
			}
		}
	}
	byteLevel := func(f *gguftest.File) { setByteLevel(f, "gpt-2") }
	for _, c := range []struct {
		architecture string
		change       func(f *gguftest.File)
		want         string
	}{
		{"llama", remove(architectureKey), "general.architecture is missing"},
		{"llama", set(architectureKey, "mamba"), `general.architecture is "mamba": known are gemma3, llama, qwen2 or qwen3`},
		{"llama", set(architectureKey, uint32(3)), "general.architecture is 3, needed is a string"},
		{"llama", remove("llama.embedding_length"), "llama.embedding_length is missing"},
		{"llama", remove("llama.block_count"), "llama.block_count is missing"},
		{"llama", remove("llama.feed_forward_length"), "llama.feed_forward_length is missing"},
		{"llama", remove("llama.context_length"), "llama.context_length is missing"},
		{"llama", remove("llama.attention.head_count"), "llama.attention.head_count is missing"},
		{"llama", remove("llama.attention.layer_norm_rms_epsilon"), "llama.attention.layer_norm_rms_epsilon is missing"},
		{"llama", set("llama.embedding_length", uint32(0)), "llama.embedding_length is 0: it must be from 1"},
		{"llama", set("llama.embedding_length", uint32(math.MaxUint32)), "llama.embedding_length is 4294967295"},
		{"llama", set("llama.embedding_length", int64(-64)), "llama.embedding_length is -64"},
		{"llama", set("llama.embedding_length", "64"), `llama.embedding_length is "64", needed is an integer`},
		{"llama", set("llama.block_count", uint32(1<<30)), "llama.block_count is 1073741824"},
		{"llama", set("llama.block_count", uint32(2)), `there is no tensor "blk.1.attn_norm.weight", the input norm of layer 1`},
		{"llama", set("llama.feed_forward_length", []int32{256, 128}), "llama.feed_forward_length is 256 for layer 0 and 128 for layer 1"},
		{"llama", set("llama.feed_forward_length", []int32{}), "llama.feed_forward_length has no values"},
		{"llama", set("llama.attention.head_count_kv", uint32(3)), "llama.attention.head_count 2 is not a multiple of llama.attention.head_count_kv 3"},
		{"llama", set("llama.attention.head_count", uint32(3)), "llama.attention.key_length is missing, and llama.embedding_length 64 is not a multiple"},
		{"llama", set("llama.attention.key_length", uint32(33)), "llama.attention.value_length is 32, but keys have 33 numbers"},
		{"llama", all(set("llama.attention.key_length", uint32(33)), set("llama.attention.value_length", uint32(33))), "llama.attention.key_length 33 is odd"},
		{"llama", set("llama.attention.value_length", uint32(16)), "llama.attention.value_length is 16, but keys have 32"},
		{"llama", set("llama.attention.layer_norm_rms_epsilon", float32(0)), "llama.attention.layer_norm_rms_epsilon is 0"},
		{"llama", set("llama.attention.layer_norm_rms_epsilon", float32(math.NaN())), "llama.attention.layer_norm_rms_epsilon is NaN"},
		{"llama", set("llama.attention.layer_norm_rms_epsilon", float32(1)), "it must be smaller than 1"},
		{"llama", set("llama.expert_count", uint32(8)), "llama.expert_count is 8: mixtures of experts"},
		{"llama", set("llama.rope.dimension_count", uint32(34)), "llama.rope.dimension_count is 34"},
		{"llama", set("llama.rope.dimension_count", uint32(7)), "llama.rope.dimension_count is 7"},
		{"llama", set("llama.rope.freq_base", float32(-1)), "llama.rope.freq_base is -1"},
		{"llama", set("llama.rope.freq_base", float32(math.Inf(1))), "llama.rope.freq_base is +Inf"},
		{"llama", set("llama.rope.scaling.type", "longrope"), `llama.rope.scaling.type is "longrope": known are`},
		{"llama", set("llama.rope.scaling.factor", float32(0)), "llama.rope.scaling.factor is 0"},
		{"llama", all(set("llama.rope.scaling.type", "yarn"), set("llama.rope.scaling.factor", float32(0.5))), "llama.rope.scaling.factor is 0.5: it must be at least 1"},
		{"llama", all(set("llama.rope.scaling.type", "yarn"), set("llama.rope.scaling.yarn_beta_fast", float32(0.5))), "yarn_beta_fast 0.5 is not above"},
		{"llama", all(set("llama.rope.scaling.type", "yarn"), set("llama.rope.scaling.original_context_length", uint32(0))), "original_context_length is 0"},
		{"gemma3", remove("gemma3.attention.sliding_window"), "gemma3.attention.sliding_window is missing"},
		{"gemma3", set("gemma3.attention.sliding_window", uint32(0)), "gemma3.attention.sliding_window is 0"},
		{"gemma3", set("gemma3.attention.sliding_window_pattern", []bool{true, true}), "gemma3.attention.sliding_window_pattern has 2 values for 1 layers"},
		{"gemma3", set("gemma3.attention.sliding_window_pattern", "x"), `gemma3.attention.sliding_window_pattern is "x"`},
		{"gemma3", set("gemma3.final_logit_softcapping", float32(-1)), "gemma3.final_logit_softcapping is -1"},

		{"llama", remove(tokensKey), "tokenizer.ggml.tokens is missing"},
		{"llama", set(tokensKey, []string{}), "the number of tokenizer.ggml.tokens is 0"},
		{"llama", set(tokensKey, []int32{1}), "tokenizer.ggml.tokens is an array of integers"},
		{"llama", all(set(tokensKey, []string{"a"}), remove(tokenTypesKey)), "the tokenizer: sentencepiece: there are 7 scores for 1 pieces"},
		{"llama", remove(tokenizerKey), "tokenizer.ggml.model is missing"},
		{"llama", set(tokenizerKey, "bert"), `tokenizer.ggml.model is "bert": known are llama`},
		{"llama", set(tokenizerKey, "t5"), `tokenizer.ggml.model is "t5"`},
		{"llama", remove(scoresKey), "tokenizer.ggml.scores is missing"},
		{"llama", set(scoresKey, []float32{0, 0, 0, float32(math.NaN()), 0, 0, 0}), "the score of piece 3 is not a number"},
		{"llama", set(tokenTypesKey, []int32{2, 3}), "tokenizer.ggml.token_type has 2 values for 7 tokens"},
		{"llama", set(tokenTypesKey, []int32{2, 3, 3, 1, 1, 1, -1}), "piece 6 has the unknown type"},
		{"llama", set(tokensKey, []string{"<unk>", "<s>", "</s>", "a", "a", "b", "ab"}), `pieces 3 and 4 are both "a"`},
		{"llama", set("tokenizer.ggml.bos_token_id", uint32(7)), "tokenizer.ggml.bos_token_id is 7, outside the vocabulary of 7"},
		{"llama", set("tokenizer.ggml.eos_token_id", uint32(100)), "tokenizer.ggml.eos_token_id is 100"},
		{"llama", set("tokenizer.ggml.unknown_token_id", int32(-2)), "tokenizer.ggml.unknown_token_id is -2"},
		{"llama", set("tokenizer.ggml.add_bos_token", uint32(1)), "tokenizer.ggml.add_bos_token is 1, needed is a truth value"},
		{"llama", set("tokenizer.ggml.remove_extra_whitespaces", true), "tokenizer.ggml.remove_extra_whitespaces is true"},
		{"qwen3", all(byteLevel, remove("tokenizer.ggml.pre")), "tokenizer.ggml.pre is missing"},
		{"qwen3", all(byteLevel, set("tokenizer.ggml.pre", "tekken")), `tokenizer.ggml.pre: text is to be cut into words by "tekken"`},
		{"qwen3", all(byteLevel, remove("tokenizer.ggml.merges")), "tokenizer.ggml.merges is missing"},
		{"qwen3", all(byteLevel, set("tokenizer.ggml.merges", []string{"t h", "the"})), `tokenizer.ggml.merges: number 1: a merge rule is "the"`},
		{"qwen3", all(byteLevel, set("tokenizer.ggml.merges", []string{"t x"})), `the tokenizer: merge rule 0 makes "tx"`},
		{"qwen3", all(byteLevel, set("tokenizer.ggml.add_space_prefix", true)), "tokenizer.ggml.add_space_prefix is true"},
		{"qwen3", all(byteLevel, set(tokenTypesKey, slices.Repeat([]int32{0}, 262))), "tokenizer.ggml.token_type: token 0 has the unknown type 0"},
		{"qwen3", all(byteLevel, set(tokenTypesKey, slices.Repeat([]int32{7}, 262))), "tokenizer.ggml.token_type: token 0 has the unknown type 7"},
		{"qwen3", all(byteLevel, set(tokenTypesKey, []int32{1})), "tokenizer.ggml.token_type has 1 values for 262 tokens"},

		{"llama", tensor("token_embd.weight", func(t *gguftest.Tensor) { t.Dims[1] = 6 }), `test.gguf: tensor "token_embd.weight" has shape [6 64], needed is [7 64]`},
		{"llama", tensor("blk.0.ffn_up.weight", func(t *gguftest.Tensor) { t.Dims[0], t.Dims[1] = t.Dims[1], t.Dims[0] }), "has shape [64 256], needed is [256 64]"},
		{"llama", tensor("blk.0.attn_k.weight", func(t *gguftest.Tensor) { t.Dims = []uint64{64 * 32} }), "has shape [2048], needed is [32 64]"},
		{"llama", tensor("output_norm.weight", func(t *gguftest.Tensor) { t.Type, t.Dims = 8, []uint64{32} }), "is of type Q8_0, needed is F32, F16 or BF16"},
		{"llama", tensor("output_norm.weight", func(t *gguftest.Tensor) { t.Dims[0] = 60 }), "has shape [60], needed is [64]"},
		{"llama", tensor("blk.0.attn_q.weight", func(t *gguftest.Tensor) { t.Type = 11 }), `"blk.0.attn_q.weight" is of type Q3_K: known are`},
		{"qwen2", func(f *gguftest.File) { f.RemoveTensor("blk.0.attn_k.bias") }, `there is no tensor "blk.0.attn_k.bias"`},
		{"qwen2", func(f *gguftest.File) { f.RemoveTensor("blk.0.attn_q.bias") }, `there is a tensor "blk.0.attn_k.bias", which is not part`},
	} {
		f := ggufModel(c.architecture)
		c.change(f)
		_, err := openBytes(f.Bytes())
		wantError(t, c.want, err, c.want)
		if err != nil && !strings.Contains(err.Error(), "test.gguf") && !strings.Contains(err.Error(), "there is no tensor") {
			t.Errorf("%v names no file", err)
		}
	}
}

// A checkpoint cut anywhere is refused.
func TestTruncatedGGUF(t *testing.T) {
	f := ggufModel("gemma3")
	data, marks := f.Marked()
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		marks = append(marks, rnd.IntN(len(data)))
	}
	for _, m := range marks {
		for _, n := range []int{m - 1, m, m + 1} {
			if n < 0 || n >= len(data) {
				continue
			}
			_, err := openBytes(data[:n])
			wantError(t, "cut", err, "test.gguf", "truncated")
		}
	}
}

// Bytes that were hit are an error or another model, never a panic.
func TestDamagedGGUF(t *testing.T) {
	f := ggufModel("qwen2")
	whole, marks := f.Marked()
	header := marks[len(marks)-1-2*(len(f.Tensors)-1)]
	rnd := rand.New(rand.NewPCG(9, 10))
	n := 800
	if testing.Short() {
		n = 200
	}
	for range n {
		data := append([]byte{}, whole...)
		for range 1 + rnd.IntN(3) {
			data[rnd.IntN(header)] = byte(rnd.Uint32())
		}
		if c, err := openBytes(data); err == nil {
			use(t, c)
		}
	}
}

// use reads all of a checkpoint; errors are fine.
func use(t testing.TB, c *Checkpoint) {
	t.Helper()
	for k, s := range c.slots {
		if s.cols > 0 {
			if m, err := c.Matrix(k.role, k.layer); err == nil && m.Affine == nil && len(m.Data) != m.Rows*m.Type.RowBytes(m.Cols) {
				t.Fatalf("%v: %d bytes", k, len(m.Data))
			}
		} else if v, err := c.Vector(k.role, k.layer); err == nil {
			if rows, _ := c.Config.shape(k.role); len(v) != rows {
				t.Fatalf("%v: %d numbers", k, len(v))
			}
		}
	}
	d := c.Tokenizer().NewDecoder()
	for _, id := range c.Tokenizer().Encode("ab Grüße\xff") {
		if int(id) >= c.Config.Vocab {
			t.Fatalf("token %d of %d", id, c.Config.Vocab)
		}
		d.Next(id)
	}
	d.Flush()
	if len(c.Config.Sliding) != c.Config.Layers || len(c.Config.RoPE) != c.Config.Layers || int(c.Config.BOS) >= c.Config.Vocab {
		t.Fatalf("%+v", c.Config)
	}
}

// zeros is a file that goes on with zeros, so that a fuzzer need not carry the bytes of tensors about.
type zeros struct {
	data []byte
	size int64
}

func (z zeros) ReadAt(p []byte, at int64) (int, error) {
	n := int(max(0, min(int64(len(p)), z.size-at)))
	clear(p[:n])
	if at < int64(len(z.data)) {
		copy(p[:n], z.data[at:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func FuzzOpenGGUF(f *testing.F) {
	add := func(file *gguftest.File) {
		data, marks := file.Marked()
		f.Add(data[:marks[len(marks)-2*len(file.Tensors)]])
	}
	for name := range ggufArchitectures {
		add(ggufModel(name))
	}
	bpe := ggufModel("qwen3")
	setByteLevel(bpe, "qwen2")
	add(bpe)
	f.Fuzz(func(t *testing.T, header []byte) {
		file, err := gguf.Read("test.gguf", zeros{header, int64(len(header)) + 1<<19}, int64(len(header))+1<<19)
		if err != nil {
			return
		}
		if c, err := openGGUF("test", file, nil); err == nil {
			use(t, c)
		}
	})
}
