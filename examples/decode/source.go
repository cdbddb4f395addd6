package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/bounded"
	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/examples/decode/internal/plainjson"
	"github.com/ingot-metal/ingot/examples/decode/internal/tokenizer"
)

//go:embed testdata/tiny-gemma3-q4
var testdata embed.FS

const embeddedModel = "testdata/tiny-gemma3-q4"

const (
	goldenFile     = "golden.json"
	maxGoldenBytes = 64 << 20
)

// source is a model on disk, or the embedded one: its checkpoint, its tokenizer, and perhaps prompts to check it with.
type source struct {
	*checkpoint.Checkpoint
	tokenizer tokenizer.Tokenizer
	prompts   []string // of golden.json, if there is one
}

// openSource opens the model in a folder or file, the embedded one if path is empty.
func openSource(path string) (*source, error) {
	if path == "" {
		sub, err := fs.Sub(testdata, embeddedModel)
		if err != nil {
			return nil, err
		}
		c, err := checkpoint.OpenFS("tiny-gemma3-q4 (embedded)", sub)
		if err != nil {
			return nil, err
		}
		return newSource(c, c.Name, sub)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	return newSource(c, path, os.DirFS(path)) // a file has no prompts beside it
}

// newSource takes the checkpoint of a folder, or closes it.
func newSource(c *checkpoint.Checkpoint, path string, dir fs.FS) (*source, error) {
	prompts, err := readPrompts(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("model %s: %w", path, err), c.Close())
	}
	return &source{c, c.Tokenizer(), prompts}, nil
}

// encode is a prompt as the model expects it: with the marker of a beginning if it has one, and the prompt does not.
func (s *source) encode(prompt string) []uint32 {
	ids := s.tokenizer.Encode(prompt)
	if s.Config.AddBOS && (len(ids) == 0 || ids[0] != s.Config.BOS) {
		ids = append([]uint32{s.Config.BOS}, ids...)
	}
	return ids
}

// decode is the text of some tokens that the model produced.
func (s *source) decode(ids []uint32) string {
	d := s.tokenizer.NewDecoder()
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(s.next(d, id))
	}
	return text.String() + d.Flush()
}

// next is the text that is certain after one more token that the model produced. One that ends a text has none: to some tokenizers it is
// a word.
func (s *source) next(d tokenizer.Decoder, id uint32) string {
	if slices.Contains(s.Config.EOS, id) {
		return ""
	}
	return d.Next(id)
}

// readPrompts reads the prompts of golden.json; a model need not have one.
func readPrompts(dir fs.FS) ([]string, error) {
	data, err := bounded.ReadFile(dir, goldenFile, maxGoldenBytes)
	if err != nil {
		if _, e := fs.Stat(dir, goldenFile); e != nil { // also where dir is no folder
			return nil, nil
		}
		return nil, err
	}
	var golden struct {
		Cases []struct {
			Prompt string `json:"prompt"`
		} `json:"cases"`
	}
	if err := plainjson.Unmarshal(data, &golden); err != nil {
		return nil, fmt.Errorf("%s: %w", goldenFile, err)
	}
	var prompts []string
	for _, c := range golden.Cases {
		prompts = append(prompts, c.Prompt)
	}
	return prompts, nil
}
