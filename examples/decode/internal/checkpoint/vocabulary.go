package checkpoint

import (
	"fmt"
	"io/fs"

	"github.com/ingot-metal/ingot/examples/decode/internal/sentencepiece"
)

const sentencepieceFile = "tokenizer.model"

// openTokenizer reads the tokenizer of a Hugging Face folder.
func (c *Checkpoint) openTokenizer(dir fs.FS, _ *folderConfig) error {
	data, err := readBounded(dir, sentencepieceFile, sentencepiece.MaxModelBytes)
	if err != nil {
		return err
	}
	m, err := sentencepiece.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", sentencepieceFile, err)
	}
	if m.Len() > c.Config.Vocab {
		return fmt.Errorf("%s has %d tokens, but %s gives the model a vocabulary of %d", sentencepieceFile, m.Len(), configFile, c.Config.Vocab)
	}
	c.tokenizer = m
	return nil
}
