// Package sentencepiece turns text into the token ids of a SentencePiece BPE model and back.
//
// It covers the models of the Gemma and Llama 2 families, from tokenizer.model files or as GGUF files embed them: byte-pair
// encoding with byte fallback and user-defined symbols, with or without a space before the text, without other normalisation.
// A model that needs more, a unigram model among them, is refused when it is read.
//
// The algorithm is that of github.com/google/sentencepiece: the text is split into characters, and of all neighbours
// whose concatenation is a piece, the pair with the highest score is merged, the leftmost of equals, until there is none.
// Control tokens in a text become themselves, as programs have it that run models, though not that library.
package sentencepiece

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/tokenizer"
)

// Limits of what is read. The largest published vocabularies have some 260,000 pieces in 5 MB.
const (
	MaxModelBytes = 64 << 20
	maxPieces     = 1 << 21
	maxPieceBytes = 1 << 12
)

type kind uint8

// The types of a piece, as numbered in sentencepiece_model.proto.
const (
	kindNormal      kind = 1
	kindUnknown     kind = 2
	kindControl     kind = 3
	kindUserDefined kind = 4
	kindUnused      kind = 5
	kindByte        kind = 6
)

type piece struct {
	text  string
	score float32
	kind  kind
	value byte // of a byte piece
}

// Model is a vocabulary with its merge scores. It is safe for concurrent use.
type Model struct {
	pieces       []piece
	ids          map[string]uint32 // normal, user-defined and unused pieces
	bytes        [256]uint32       // byte pieces; meaningful with byteFallback
	byteFallback bool
	unknown      uint32
	unknownText  string
	dummyPrefix  bool              // a text is encoded with a space before it
	prefixFirst  bool              // but not what follows a marker
	userDefined  tokenizer.Markers // in text with its spaces as "▁"
	markers      tokenizer.Markers // control tokens, and those that were added
}

// PrefixFirst says that a model that is not used yet wants its space before a text at the beginning only, and not after markers
// (legacy: false in tokenizer_config.json).
func (m *Model) PrefixFirst() { m.prefixFirst = true }

// Len is the number of token ids.
func (m *Model) Len() int { return len(m.pieces) }

// Piece is the text of a token as the model has it: spaces are "▁", bytes "<0x0A>". It is empty for an id outside the
// vocabulary.
func (m *Model) Piece(id uint32) string {
	if uint64(id) >= uint64(len(m.pieces)) {
		return ""
	}
	return m.pieces[id].text
}

// index checks the pieces and prepares the lookups.
func (m *Model) index(byteFallback bool) error {
	if len(m.pieces) == 0 {
		return errors.New("the model has no pieces")
	}
	m.ids = make(map[string]uint32, len(m.pieces))
	m.byteFallback = byteFallback
	var haveByte [256]bool
	haveUnknown := false
	for i, p := range m.pieces {
		id := uint32(i)
		switch p.kind {
		case kindNormal, kindUserDefined, kindUnused:
			if p.text == "" {
				return fmt.Errorf("piece %d is empty", i)
			}
			if first, dup := m.ids[p.text]; dup {
				return fmt.Errorf("pieces %d and %d are both %q", first, i, p.text)
			}
			m.ids[p.text] = id
			if p.kind == kindUserDefined {
				m.userDefined.Add(escape(p.text), id) // converters to GGUF write its spaces as spaces
			}
		case kindUnknown:
			if haveUnknown {
				return fmt.Errorf("pieces %d and %d are both the unknown piece", m.unknown, i)
			}
			haveUnknown, m.unknown = true, id
		case kindByte:
			b, err := byteOf(p.text)
			if err != nil {
				return fmt.Errorf("piece %d: %w", i, err)
			}
			if haveByte[b] {
				return fmt.Errorf("pieces %d and %d are both byte %#02x", m.bytes[b], i, b)
			}
			haveByte[b], m.bytes[b], m.pieces[i].value = true, id, b
		case kindControl:
			if p.text != "" {
				m.markers.Add(p.text, id)
			}
		default:
			return fmt.Errorf("piece %d has the unknown type %d", i, p.kind)
		}
	}
	if byteFallback {
		for b, have := range haveByte {
			if !have {
				return fmt.Errorf("byte fallback is on, but there is no piece for byte %#02x", b)
			}
		}
	}
	return nil
}

// byteOf reads the text of a byte piece, "<0x0A>".
func byteOf(text string) (byte, error) {
	if len(text) == 6 && text[:3] == "<0x" && text[5] == '>' {
		if b, err := strconv.ParseUint(text[3:5], 16, 8); err == nil {
			return byte(b), nil
		}
	}
	return 0, fmt.Errorf("%q is not the text of a byte piece", text)
}

// Decode is the text of a sequence of tokens, without the space that Encode may have put before it. Control tokens and ids
// outside the vocabulary give nothing; bytes that are not UTF-8 become U+FFFD.
func (m *Model) Decode(ids []uint32) string {
	d := m.NewDecoder()
	var out []byte
	for _, id := range ids {
		out = append(out, d.Next(id)...)
	}
	text := string(append(out, d.Flush()...))
	if m.dummyPrefix {
		text = strings.TrimPrefix(text, " ")
	}
	return text
}

// Decoder turns tokens into text one by one. A character that the model spells in several byte tokens comes out whole,
// with the last of them.
type Decoder struct {
	m       *Model
	pending tokenizer.Pending
}

// NewDecoder starts a text, or continues one.
func (m *Model) NewDecoder() tokenizer.Decoder { return &Decoder{m: m} }

// Next is the text that is certain after one more token.
func (d *Decoder) Next(id uint32) string {
	if uint64(id) >= uint64(len(d.m.pieces)) {
		return d.Flush()
	}
	p := &d.m.pieces[id]
	switch p.kind {
	case kindByte:
		d.pending = append(d.pending, p.value)
		return d.pending.Take(false)
	case kindControl:
		return d.Flush()
	case kindUnknown:
		return d.Flush() + d.m.unknownText
	}
	return d.Flush() + unescape(p.text)
}

// Flush ends the text: bytes of an unfinished character come out as U+FFFD.
func (d *Decoder) Flush() string { return d.pending.Take(true) }
