package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/examples/decode/internal/gemma3"
)

// copyModel copies the embedded model to a folder of the test's own.
func copyModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(embeddedModel)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func edit(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func replace(old, new string) func([]byte) []byte {
	return func(data []byte) []byte { return []byte(strings.Replace(string(data), old, new, 1)) }
}

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
		if err := s.close(); err != nil {
			t.Error(err)
		}
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
	s.close()
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
		{"no configuration", remove(gemma3.ConfigFile), "config.json"},
		{"no weights", remove("model.safetensors"), "model.safetensors"},
		{"no tokenizer", remove(tokenizerFile), "tokenizer.model"},
		{"another model", change(gemma3.ConfigFile, replace(`"gemma3_text"`, `"llama"`)), `config.json: model_type is "llama"`},
		{"other sizes", change(gemma3.ConfigFile, replace(`"hidden_size": 128`, `"hidden_size": 256`)), "needed is [1024 32]"},
		{"other layers", change(gemma3.ConfigFile, replace(`"num_hidden_layers": 6`, `"num_hidden_layers": 7`)), "layer_types has 6 entries for 7 layers"},
		{"broken configuration", change(gemma3.ConfigFile, func([]byte) []byte { return []byte("{") }), "config.json"},
		{"truncated weights", change("model.safetensors", func(b []byte) []byte { return b[:len(b)-100] }), "truncated"},
		{"other bytes", change("model.safetensors", func(b []byte) []byte { return b[8:] }), "not a safetensors file"},
		{"wrong name", change("model.safetensors", replace("model.norm.weight", "model.NORM.weight")), `no tensor "model.norm.weight"`},
		{"wrong type", change("model.safetensors", replace(`"U32"`, `"F32"`)), "needed is [1024 128]"},
		{"truncated tokenizer", change(tokenizerFile, func(b []byte) []byte { return b[:len(b)/2] }), "tokenizer.model: sentencepiece: "},
		{"tokenizer of another model", change(tokenizerFile, func(b []byte) []byte {
			return append([]byte("\x0a\x07\x0a\x05extra"), b...)
		}), "tokenizer.model has 1025 tokens, but config.json gives the model a vocabulary of 1024"},
		{"broken prompts", change(goldenFile, func([]byte) []byte { return []byte("nonsense") }), "golden.json"},
	} {
		dir := copyModel(t)
		c.spoil(t, dir)
		s, err := openSource(dir)
		if err == nil {
			s.close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v, want an error with %q and the folder", c.name, err, c.want)
		}
	}
	if _, err := openSource(filepath.Join(t.TempDir(), "nowhere")); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Error(err)
	}
	if _, err := openSource(filepath.Join(embeddedModel, "config.json")); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Error(err)
	}
}

func TestReadBounded(t *testing.T) {
	dir := os.DirFS(embeddedModel)
	if _, err := readBounded(dir, tokenizerFile, 100); err == nil || !strings.Contains(err.Error(), "longer than 100 bytes") {
		t.Error(err)
	}
	if _, err := readBounded(os.DirFS("testdata"), "tiny-gemma3-q4", 100); err == nil {
		t.Error("a folder was read")
	}
}
