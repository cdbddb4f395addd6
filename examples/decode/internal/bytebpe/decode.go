package bytebpe

import (
	"github.com/ingot-metal/ingot/examples/decode/internal/tokenizer"
)

// decoder holds back the bytes of a character that is not whole yet.
type decoder struct {
	m       *Model
	pending tokenizer.Pending
}

// NewDecoder starts a text.
func (m *Model) NewDecoder() tokenizer.Decoder { return &decoder{m: m} }

// Next is the text that is certain after one more token.
func (d *decoder) Next(id uint32) string {
	if uint64(id) >= uint64(len(d.m.texts)) || d.m.control[id] {
		return d.Flush()
	}
	d.pending = append(d.pending, d.m.texts[id]...)
	return d.pending.Take(false)
}

// Flush ends the text: bytes of an unfinished character come out as U+FFFD.
func (d *decoder) Flush() string { return d.pending.Take(true) }
