package bytebpe

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// document is a small tokenizer.json, of which tests change parts.
func document() map[string]any {
	v := small([2]string{"a", "b"}, [2]string{"ab", "c"})
	vocab := map[string]uint32{}
	for i, text := range v.Tokens[:258] {
		vocab[text] = uint32(i)
	}
	return map[string]any{
		"version": "1.0", "normalizer": map[string]any{"type": "NFC"},
		"added_tokens": []any{map[string]any{"id": 258, "content": "<|end|>", "special": true}},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": SplitLlama3.Expression()}, "behavior": "Isolated", "invert": false},
			map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		}},
		"post_processor": map[string]any{"type": "Sequence", "processors": []any{
			map[string]any{"type": "ByteLevel"},
			map[string]any{"type": "TemplateProcessing", "single": []any{
				map[string]any{"SpecialToken": map[string]any{"id": "<|end|>", "type_id": 0}}, map[string]any{"Sequence": map[string]any{"id": "A"}},
				map[string]any{"SpecialToken": map[string]any{"id": "<|end|>", "type_id": 0}},
			}},
		}},
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{"a b", []string{"ab", "c"}}, "ignore_merges": true},
	}
}

func marshal(t testing.TB, d any) []byte {
	data, err := json.Marshal(d)
	require.NoError(t, err)
	return data
}

func TestParse(t *testing.T) {
	m, err := Parse(marshal(t, document()))
	require.NoError(t, err)
	require.Equal(t, 259, m.Len())
	require.Equal(t, SplitLlama3, m.split)
	require.True(t, m.nfc)
	require.True(t, m.wholeWords)
	require.Equal(t, []uint32{258}, m.Begin())
	require.Equal(t, " |abc|<|end|>", spelled(m, m.Encode(" abc<|end|>")))
}

// GPT-2's own form: ByteLevel cuts, nothing else.
func TestParseGPT2(t *testing.T) {
	d := document()
	d["normalizer"], d["post_processor"] = nil, nil
	d["pre_tokenizer"] = map[string]any{"type": "ByteLevel", "add_prefix_space": false}
	delete(d["model"].(map[string]any), "type")
	m, err := Parse(marshal(t, d))
	require.NoError(t, err)
	require.Equal(t, SplitGPT2, m.split)
	require.Empty(t, m.Begin())
}

// SmolLM's: single digits, then as GPT-2.
func TestParseSmolLM(t *testing.T) {
	d := document()
	d["pre_tokenizer"] = map[string]any{"type": "Sequence", "pretokenizers": []any{
		map[string]any{"type": "Digits", "individual_digits": true}, map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
	}}
	m, err := Parse(marshal(t, d))
	require.NoError(t, err)
	require.Equal(t, SplitSmolLM, m.split)
}

func TestParseRefuses(t *testing.T) {
	type object = map[string]any
	model := func(key string, value any) func(object) {
		return func(d object) { d["model"].(object)[key] = value }
	}
	added := func(key string, value any) func(object) {
		return func(d object) { d["added_tokens"].([]any)[0].(object)[key] = value }
	}
	step := func(i int, key string, value any) func(object) {
		return func(d object) { d["pre_tokenizer"].(object)["pretokenizers"].([]any)[i].(object)[key] = value }
	}
	for want, change := range map[string]func(object){
		"there is no model":                    func(d object) { delete(d, "model") },
		`model.type is "Unigram"`:              model("type", "Unigram"),
		"model.byte_fallback is true":          model("byte_fallback", true),
		"continuing_subword_prefix":            model("continuing_subword_prefix", "##"),
		`a merge rule is "ab"`:                 model("merges", []any{"ab"}),
		"a merge rule joins 3 tokens":          model("merges", []any{[]string{"a", "b", "c"}}),
		"both have id 5":                       model("vocab", object{"a": 5, "b": 5}),
		"has id 2097152: the limit is 2097152": model("vocab", object{"a": 1 << 21}),
		"no token for byte 0x00":               model("vocab", object{"a": 1}),
		`the added token "<|end|>" has no id`:  added("id", nil),
		"has id 4000000000":                    added("id", uint32(4000000000)),
		"lstrip or rstrip":                     added("lstrip", true),
		`normalizer.type is "NFKC"`:            func(d object) { d["normalizer"] = object{"type": "NFKC"} },
		"there is no pre_tokenizer":            func(d object) { delete(d, "pre_tokenizer") },
		"pre_tokenizer does not end with":      func(d object) { d["pre_tokenizer"] = object{"type": "Metaspace"} },
		"add_prefix_space is true":             step(1, "add_prefix_space", true),
		"pre_tokenizer is neither":             step(0, "type", "Digits"),
		`Split has behavior "Removed"`:         step(0, "behavior", "Removed"),
		`cut into words by "\\w+"`:             step(0, "pattern", object{"Regex": `\w+`}),
		`post_processor: "<s>" is not an added`: func(d object) {
			d["post_processor"] = object{"single": []any{object{"SpecialToken": object{"id": "<s>"}}}}
		},
		"model is a number: it must be an object": func(d object) { d["model"] = 3 },
	} {
		d := document()
		change(d)
		_, err := Parse(marshal(t, d))
		require.ErrorContains(t, err, want)
	}
	whole := marshal(t, document())
	for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
		_, err := Parse(whole[:n])
		require.Error(t, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(marshal(f, document()))
	f.Add([]byte(`{"model":{"vocab":{"a":2097151},"merges":["a a",["a","a"],[],"",null]},"pre_tokenizer":{"type":"ByteLevel"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			return
		}
		text := "It's 12 o'clock.\n\n \u20ac"
		_, _, marker := m.added.Find(text)
		if have := m.Decode(m.Encode(text)); !m.nfc && marker == 0 && have != text {
			t.Fatalf("%q came back as %q", text, have)
		}
	})
}
