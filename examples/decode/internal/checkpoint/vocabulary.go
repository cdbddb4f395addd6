package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ingot-metal/ingot/examples/decode/internal/bounded"
	"github.com/ingot-metal/ingot/examples/decode/internal/bytebpe"
	"github.com/ingot-metal/ingot/examples/decode/internal/sentencepiece"
)

// Names of a tokenizer's files in a Hugging Face folder.
const (
	sentencepieceFile   = "tokenizer.model"
	byteLevelFile       = "tokenizer.json"
	tokenizerConfigFile = "tokenizer_config.json"
)

// maxTokenizerConfigBytes: some list their added tokens in it.
const maxTokenizerConfigBytes = 64 << 20

// openTokenizer reads the tokenizer of a Hugging Face folder: a SentencePiece model if there is one, since what else lies there
// is made from it.
func (c *Checkpoint) openTokenizer(dir fs.FS) error {
	addBOS, err := readAddBOS(dir)
	if err != nil {
		return err
	}
	file := sentencepieceFile
	data, err := bounded.ReadFile(dir, file, sentencepiece.MaxModelBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file = byteLevelFile
		if err = c.openByteLevel(dir); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is neither %s nor %s", sentencepieceFile, byteLevelFile)
		}
	case err == nil:
		if c.tokenizer, err = sentencepiece.Parse(data); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}
	if err != nil {
		return err
	}
	if have, most := c.tokenizer.Len(), c.Config.Vocab; have > most {
		return fmt.Errorf("%s has %d tokens, but %s gives the model a vocabulary of %d", file, have, configFile, most)
	}
	if addBOS != nil {
		c.Config.AddBOS = *addBOS
	}
	return nil
}

// openByteLevel reads a tokenizer.json, whose template says whether a text begins with a marker.
func (c *Checkpoint) openByteLevel(dir fs.FS) error {
	data, err := bounded.ReadFile(dir, byteLevelFile, bytebpe.MaxFileBytes)
	if err != nil {
		return err
	}
	m, err := bytebpe.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", byteLevelFile, err)
	}
	c.tokenizer = m
	begin := m.Begin()
	if len(begin) > 1 {
		return fmt.Errorf("%s: post_processor puts %d tokens before a text: one is supported", byteLevelFile, len(begin))
	}
	if c.Config.AddBOS = len(begin) == 1; c.Config.AddBOS {
		c.Config.BOS = begin[0]
	}
	return nil
}

// readAddBOS reads whether a text begins with a marker, nil if nothing is said of it.
func readAddBOS(dir fs.FS) (*bool, error) {
	data, err := bounded.ReadFile(dir, tokenizerConfigFile, maxTokenizerConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var config struct {
		AddBOS *bool `json:"add_bos_token"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", tokenizerConfigFile, err)
	}
	return config.AddBOS, nil
}
