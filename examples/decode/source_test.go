package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestOpenSource(t *testing.T) {
	for _, dir := range []string{"", copyModel(t)} {
		s, err := openSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.prompts) != 5 || s.prompts[3] != "Lena had five" {
			t.Errorf("prompts %q", s.prompts)
		}
		if got := s.encode("Once upon a time"); !reflect.DeepEqual(got, []uint32{2, 451, 457, 262, 375}) {
			t.Errorf("ids %v", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A prompt that begins with the marker of a beginning gets no second one.
func TestEncodeBegins(t *testing.T) {
	s, err := openSource("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for prompt, want := range map[string][]uint32{"": {2}, "Once": {2, 451}, "<s>Once": {2, 451}, "<s><s>": {2, 2}, "Once<s>": {2, 451, 2}} {
		if got := s.encode(prompt); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", prompt, got, want)
		}
	}
	s.Config.AddBOS = false
	if got := s.encode("<s>"); !reflect.DeepEqual(got, []uint32{2}) || len(s.encode("")) != 0 {
		t.Errorf("a text that begins with no marker: %v %v", got, s.encode(""))
	}
}

// A token that ends texts is not shown, though the tokenizer knows no better than that it is a word: some spell the end of a turn
// as a user-defined token.
func TestEndIsNotShown(t *testing.T) {
	dir := copyModel(t)
	edit(t, dir, configFile, replace(`"eos_token_id": 1`, `"eos_token_id": [1, 451]`))
	s, err := openSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.decode([]uint32{457, 262, 451}); got != " upon a" {
		t.Errorf("decoded %q", got)
	}
	if got := s.encode("Once"); !reflect.DeepEqual(got, []uint32{2, 451}) {
		t.Errorf("in a prompt it is a word: %v", got)
	}
}

func TestOpenSourceWithoutGolden(t *testing.T) {
	dir := copyModel(t)
	if err := os.Remove(filepath.Join(dir, goldenFile)); err != nil {
		t.Fatal(err)
	}
	s, err := openSource(dir)
	if err != nil || s.prompts != nil {
		t.Fatal(err, s.prompts)
	}
	s.Close()
}

// Every way in which a folder can be wrong has its own message. What is inside config.json, the tensors and the tokenizer
// is the business of their packages' tests; here it is that what they say arrives.
func TestOpenSourceRefuses(t *testing.T) {
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	change := func(name string, f func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) { edit(t, dir, name, f) }
	}
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, string)
		want  string
	}{
		{"no configuration", remove(configFile), "config.json"},
		{"no weights", remove("model.safetensors"), "model.safetensors"},
		{"no tokenizer", remove(tokenizerModel), "tokenizer.model"},
		{"another model", change(configFile, replace(`"gemma3_text"`, `"mamba"`)), `config.json: model_type is "mamba"`},
		{"other sizes", change(configFile, replace(`"hidden_size": 128`, `"hidden_size": 256`)), "needed is [1024 32]"},
		{"other layers", change(configFile, replace(`"num_hidden_layers": 6`, `"num_hidden_layers": 7`)), "layer_types has 6 entries for 7 layers"},
		{"broken configuration", change(configFile, func([]byte) []byte { return []byte("{") }), "config.json"},
		{"truncated weights", change("model.safetensors", func(b []byte) []byte { return b[:len(b)-100] }), "truncated"},
		{"other bytes", change("model.safetensors", func(b []byte) []byte { return b[8:] }), "not a safetensors file"},
		{"wrong name", change("model.safetensors", replace("model.norm.weight", "model.NORM.weight")), `no tensor "model.norm.weight"`},
		{"wrong type", change("model.safetensors", replace(`"U32"`, `"F32"`)), "needed is U32"},
		{"truncated tokenizer", change(tokenizerModel, func(b []byte) []byte { return b[:len(b)/2] }), "tokenizer.model: sentencepiece: "},
		{"tokenizer of another model", change(tokenizerModel, func(b []byte) []byte {
			return append([]byte("\x0a\x07\x0a\x05extra"), b...)
		}), "tokenizer.model has 1025 tokens, but config.json gives the model a vocabulary of 1024"},
		{"broken prompts", change(goldenFile, func([]byte) []byte { return []byte("nonsense") }), "golden.json"},
	} {
		dir := copyModel(t)
		c.spoil(t, dir)
		s, err := openSource(dir)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v, want an error with %q and the folder", c.name, err, c.want)
		}
		// The program says so in a line, and nothing else.
		var out, errs bytes.Buffer
		if code := run(context.Background(), []string{"-model", dir}, &out, &errs); code != 1 || out.Len() > 0 ||
			!strings.HasPrefix(errs.String(), "decode: ") || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: code %d, %q %q", c.name, code, errs.String(), out.String())
		}
	}
	if _, err := openSource(filepath.Join(t.TempDir(), "nowhere")); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Error(err)
	}
	if _, err := openSource(filepath.Join(embeddedModel, "config.json")); err == nil || !strings.Contains(err.Error(), "not a GGUF file") {
		t.Error(err)
	}
}
