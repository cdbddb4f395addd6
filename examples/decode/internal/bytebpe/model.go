// Package bytebpe turns text into the token ids of a byte-level byte-pair encoding and back: the tokenizers of GPT-2, Llama 3,
// Qwen and SmolLM.
//
// Text is cut at added tokens, such as <|im_end|>, and between them into words by rules like those of English spelling (Split).
// A word begins as its bytes. Of all neighbours that a merge rule joins, the pair whose rule comes first is joined, the
// leftmost of equals, until there is none: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units",
// 2016; on bytes: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
//
// Files spell bytes as characters: printable ones of Latin-1 stand for themselves, the others for U+0100 and on.
package bytebpe

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/tokenizer"
)

// Limits of what is read. The largest published vocabularies have some 260,000 tokens.
const (
	MaxTokens     = 1 << 21
	maxTokenBytes = 1 << 12
)

// Added is a token with a text of its own, which is found in text before anything is cut or merged.
type Added struct {
	ID   uint32
	Text string
	// Control tokens, such as <|im_end|>, are not shown in texts.
	Control bool
}

// Vocabulary is a tokenizer as files describe it.
type Vocabulary struct {
	Tokens []string    // by id, bytes spelled as characters; those of added tokens, and "" where there is none, are not looked at
	Merges [][2]string // in order of precedence
	Added  []Added
	Split  Split
	// WholeWords says that a word which is a token needs no merge rules to become it (ignore_merges, as Llama 3 has it).
	WholeWords bool
	// NFC says that text is brought to Unicode's composed form first, as Qwen does.
	NFC bool
}

// Model is a tokenizer. It is safe for concurrent use.
type Model struct {
	texts      []string // by id: bytes
	control    []bool   // by id
	ids        map[string]uint32
	bytes      [256]uint32
	merges     map[[2]uint32]merge
	added      tokenizer.Markers
	split      Split
	wholeWords bool
	nfc        bool
	begin      []uint32
}

// merge is what a pair of tokens becomes.
type merge struct {
	rank  int
	token uint32
}

// New checks a vocabulary and prepares the lookups.
func New(v Vocabulary) (*Model, error) {
	switch {
	case len(v.Tokens) == 0:
		return nil, errors.New("the vocabulary has no tokens")
	case len(v.Tokens) > MaxTokens:
		return nil, fmt.Errorf("the vocabulary has %d tokens: the limit is %d", len(v.Tokens), MaxTokens)
	case len(v.Merges) > MaxTokens:
		return nil, fmt.Errorf("the vocabulary has %d merge rules: the limit is %d", len(v.Merges), MaxTokens)
	case !v.Split.valid():
		return nil, fmt.Errorf("there is no rule %d for words", v.Split)
	}
	m := &Model{
		texts: make([]string, len(v.Tokens)), control: make([]bool, len(v.Tokens)), ids: make(map[string]uint32, len(v.Tokens)),
		split: v.Split, wholeWords: v.WholeWords, nfc: v.NFC,
	}
	for _, step := range []func(Vocabulary) error{m.addTokens, m.addPlain, m.addBytes, m.addMerges} {
		if err := step(v); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Len is the number of token ids.
func (m *Model) Len() int { return len(m.texts) }

// Token is the id of the added token with that text.
func (m *Model) Token(text string) (uint32, bool) {
	return m.added.ID(text)
}

// Begin is the tokens that tokenizer.json puts before a text, as <|begin_of_text|>. Encode does not.
func (m *Model) Begin() []uint32 { return slices.Clone(m.begin) }

// addTokens takes the added tokens, whose texts are not spelled in characters for bytes.
func (m *Model) addTokens(v Vocabulary) error {
	taken := map[uint32]bool{}
	for _, a := range v.Added {
		switch {
		case uint64(a.ID) >= uint64(len(v.Tokens)):
			return fmt.Errorf("the added token %.40q has id %d, outside the vocabulary of %d", a.Text, a.ID, len(v.Tokens))
		case a.Text == "":
			return fmt.Errorf("the added token %d is empty", a.ID)
		case len(a.Text) > maxTokenBytes:
			return fmt.Errorf("the added token %d has %d bytes: the limit is %d", a.ID, len(a.Text), maxTokenBytes)
		case taken[a.ID]:
			return fmt.Errorf("there are two added tokens %d", a.ID)
		}
		if first, added := m.added.Add(a.Text, a.ID); !added {
			return fmt.Errorf("the added tokens %d and %d are both %.40q", first, a.ID, a.Text)
		}
		taken[a.ID], m.texts[a.ID], m.control[a.ID] = true, a.Text, a.Control
	}
	return nil
}

// addPlain takes the tokens that words are made of.
func (m *Model) addPlain(v Vocabulary) error {
	for i, spelled := range v.Tokens {
		if spelled == "" || m.texts[i] != "" {
			continue
		}
		if len(spelled) > maxTokenBytes {
			return fmt.Errorf("token %d has %d bytes: the limit is %d", i, len(spelled), maxTokenBytes)
		}
		text, err := unspell(spelled)
		if err != nil {
			return fmt.Errorf("token %d: %w", i, err)
		}
		if first, dup := m.ids[text]; dup {
			return fmt.Errorf("tokens %d and %d are both %.40q", first, i, spelled)
		}
		m.ids[text], m.texts[i] = uint32(i), text
	}
	return nil
}

func (m *Model) addBytes(Vocabulary) error {
	for b := range m.bytes {
		id, ok := m.ids[string([]byte{byte(b)})]
		if !ok {
			return fmt.Errorf("the vocabulary has no token for byte %#02x, %q", b, spelling[b])
		}
		m.bytes[b] = id
	}
	return nil
}

func (m *Model) addMerges(v Vocabulary) error {
	m.merges = make(map[[2]uint32]merge, len(v.Merges))
	for rank, rule := range v.Merges {
		var pair [2]uint32
		for side, spelled := range rule {
			text, err := unspell(spelled)
			if err != nil {
				return fmt.Errorf("merge rule %d: %w", rank, err)
			}
			id, ok := m.ids[text]
			if !ok {
				return fmt.Errorf("merge rule %d joins %.40q, which is not a token", rank, spelled)
			}
			pair[side] = id
		}
		joined, ok := m.ids[m.texts[pair[0]]+m.texts[pair[1]]]
		if !ok {
			return fmt.Errorf("merge rule %d makes %.40q, which is not a token", rank, rule[0]+rule[1])
		}
		if _, dup := m.merges[pair]; !dup { // a second rule for a pair would never be used
			m.merges[pair] = merge{rank, joined}
		}
	}
	return nil
}

// spelling is the character by which files spell a byte, and unspelling the byte of a character.
var (
	spelling   [256]rune
	unspelling = map[rune]byte{}
)

func init() {
	next := rune(0x100)
	for b := range spelling {
		r := rune(b)
		if !(r >= '!' && r <= '~' || r >= 0xa1 && r <= 0xac || r >= 0xae) {
			r, next = next, next+1
		}
		spelling[b], unspelling[r] = r, byte(b)
	}
}

// unspell is the bytes that characters stand for.
func unspell(spelled string) (string, error) {
	var out strings.Builder
	for _, r := range spelled {
		b, ok := unspelling[r]
		if !ok {
			return "", fmt.Errorf("%.40q has the character %q, which stands for no byte", spelled, r)
		}
		out.WriteByte(b)
	}
	return out.String(), nil
}
