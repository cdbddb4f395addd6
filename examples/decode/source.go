package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ingot-metal/ingot/examples/decode/internal/gemma3"
	"github.com/ingot-metal/ingot/examples/decode/internal/sentencepiece"
)

//go:embed testdata/tiny-gemma3-q4
var testdata embed.FS

const embeddedModel = "testdata/tiny-gemma3-q4"

// Names of files in a model's folder, besides those that package gemma3 knows.
const (
	tokenizerFile = "tokenizer.model"
	goldenFile    = "golden.json"
)

// source is a model on disk, or the embedded one: its checkpoint, its tokenizer, and perhaps prompts to check it with.
type source struct {
	name       string
	checkpoint *gemma3.Checkpoint
	tokenizer  *sentencepiece.Model
	prompts    []string // of golden.json, if there is one
}

// openSource opens the model in dir, the embedded one if dir is empty.
func openSource(dir string) (*source, error) {
	if dir == "" {
		sub, err := fs.Sub(testdata, embeddedModel)
		if err != nil {
			return nil, err
		}
		return readSource("tiny-gemma3-q4 (embedded)", sub)
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, fmt.Errorf("model: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("model: %s is not a folder: needed is one with %s, model.safetensors and %s", dir, gemma3.ConfigFile, tokenizerFile)
	}
	s, err := readSource(dir, os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("model in %s: %w", dir, err)
	}
	return s, nil
}

func readSource(name string, dir fs.FS) (*source, error) {
	s := &source{name: name}
	text, err := readBounded(dir, tokenizerFile, sentencepiece.MaxModelBytes)
	if err != nil {
		return nil, err
	}
	if s.tokenizer, err = sentencepiece.Parse(text); err != nil {
		return nil, fmt.Errorf("%s: %w", tokenizerFile, err)
	}
	if s.prompts, err = readPrompts(dir); err != nil {
		return nil, err
	}
	if s.checkpoint, err = gemma3.Open(dir); err != nil {
		return nil, err
	}
	if have, most := s.tokenizer.Len(), s.checkpoint.Config.Vocab; have > most {
		s.close()
		return nil, fmt.Errorf("%s has %d tokens, but %s gives the model a vocabulary of %d", tokenizerFile, have, gemma3.ConfigFile, most)
	}
	return s, nil
}

func (s *source) close() error { return s.checkpoint.Close() }

// encode is a prompt as the model expects it, with the marker of a beginning.
func (s *source) encode(prompt string) []uint32 {
	return append([]uint32{s.checkpoint.Config.BOS}, s.tokenizer.Encode(prompt)...)
}

// readPrompts reads the prompts of golden.json; a model need not have one.
func readPrompts(dir fs.FS) ([]string, error) {
	data, err := readBounded(dir, goldenFile, 64<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var golden struct {
		Cases []struct {
			Prompt string `json:"prompt"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		return nil, fmt.Errorf("%s: %w", goldenFile, err)
	}
	var prompts []string
	for _, c := range golden.Cases {
		prompts = append(prompts, c.Prompt)
	}
	return prompts, nil
}

func readBounded(dir fs.FS, name string, limit int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is longer than %d bytes", name, limit)
	}
	return data, nil
}
