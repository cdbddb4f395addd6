package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/ingot-metal/ingot/examples/decode/internal/bounded"
	"github.com/ingot-metal/ingot/examples/decode/internal/bytebpe"
	"github.com/ingot-metal/ingot/examples/decode/internal/plainjson"
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
	settings, err := readTokenizerSettings(dir)
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
		err = c.openSentencepiece(data, &settings)
	}
	if err != nil {
		return err
	}
	if have, most := c.tokenizer.Len(), c.Config.Vocab; have > most {
		return fmt.Errorf("%s has %d tokens, but %s gives the model a vocabulary of %d", file, have, configFile, most)
	}
	if settings.AddBOS != nil {
		c.Config.AddBOS = *settings.AddBOS
	}
	return nil
}

// openSentencepiece reads a tokenizer.model and the tokens that were added to it.
func (c *Checkpoint) openSentencepiece(data []byte, settings *tokenizerSettings) error {
	m, err := sentencepiece.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", sentencepieceFile, err)
	}
	if err := settings.add(m, c.Config.Vocab); err != nil {
		return fmt.Errorf("%s: %w", tokenizerConfigFile, err)
	}
	if settings.Legacy != nil && !*settings.Legacy {
		m.PrefixFirst()
	}
	c.tokenizer = m
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

// tokenizerSettings are what tokenizer_config.json says besides a tokenizer's own file.
type tokenizerSettings struct {
	AddBOS *bool                 `json:"add_bos_token"` // nil if nothing is said of it
	Legacy *bool                 `json:"legacy"`        // for SentencePiece; true if nothing is said of it
	Added  map[string]addedToken `json:"added_tokens_decoder"`
}

// addedToken is a token beyond those of tokenizer.model, or one of them; tokenizer.json has its own list of them.
type addedToken struct {
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
}

func readTokenizerSettings(dir fs.FS) (s tokenizerSettings, err error) {
	data, err := bounded.ReadFile(dir, tokenizerConfigFile, maxTokenizerConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if err := plainjson.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", tokenizerConfigFile, err)
	}
	return s, nil
}

// add gives a tokenizer the added tokens that the model knows: some lists have more, such as for images.
func (s *tokenizerSettings) add(m *sentencepiece.Model, vocab int) error {
	var list []sentencepiece.Added
	for key, a := range s.Added {
		id, err := strconv.ParseUint(key, 10, 32)
		switch {
		case err != nil:
			return fmt.Errorf("added_tokens_decoder has the id %.40q, which is not a number", key)
		case id >= uint64(vocab) || a.Content == m.Piece(uint32(id)) && a.Content != "":
			continue
		case a.SingleWord || a.LStrip || a.RStrip:
			return fmt.Errorf("the added token %.40q has single_word, lstrip or rstrip, which is not supported", a.Content)
		}
		list = append(list, sentencepiece.Added{ID: uint32(id), Text: a.Content, Control: a.Special})
	}
	slices.SortFunc(list, func(a, b sentencepiece.Added) int { return cmp.Compare(a.ID, b.ID) }) // maps have no order, errors should
	return m.Add(list)
}
