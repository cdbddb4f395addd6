package bytebpe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ingot-metal/ingot/examples/decode/internal/plainjson"
)

// MaxFileBytes is the length of the longest tokenizer.json that is read.
const MaxFileBytes = 256 << 20

// file is what a tokenizer.json says.
type file struct {
	Added []struct {
		ID         *uint32 `json:"id"`
		Content    string  `json:"content"`
		Special    bool    `json:"special"`
		SingleWord bool    `json:"single_word"`
		LStrip     bool    `json:"lstrip"`
		RStrip     bool    `json:"rstrip"`
	} `json:"added_tokens"`
	Normalizer    *part `json:"normalizer"`
	PreTokenizer  *part `json:"pre_tokenizer"`
	PostProcessor *part `json:"post_processor"`
	Model         *struct {
		Type         string            `json:"type"`
		Vocab        map[string]uint32 `json:"vocab"`
		Merges       []rule            `json:"merges"`
		IgnoreMerges bool              `json:"ignore_merges"`
		ByteFallback bool              `json:"byte_fallback"`
		Prefix       string            `json:"continuing_subword_prefix"`
		Suffix       string            `json:"end_of_word_suffix"`
	} `json:"model"`
}

// part is a step before or after merging, or a sequence of them.
type part struct {
	Type string `json:"type"`

	Normalizers   []part `json:"normalizers"`
	PreTokenizers []part `json:"pretokenizers"`
	Processors    []part `json:"processors"`

	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	Behavior    string `json:"behavior"`
	Invert      bool   `json:"invert"`
	PrefixSpace bool   `json:"add_prefix_space"`
	UseRegex    *bool  `json:"use_regex"`
	Individual  bool   `json:"individual_digits"`

	Single []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
}

// rule is a merge rule, "a b" or, in newer files, ["a", "b"].
type rule [2]string

func (r *rule) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		var sides []string
		if err := json.Unmarshal(data, &sides); err != nil {
			return err
		}
		if len(sides) != 2 {
			return fmt.Errorf("a merge rule joins %d tokens, not two", len(sides))
		}
		*r = rule(sides)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	var err error
	*r, err = SplitMerge(text)
	return err
}

// SplitMerge reads a merge rule as it stands in files: two tokens and a space between them.
func SplitMerge(text string) ([2]string, error) {
	left, right, ok := strings.Cut(text, " ")
	if !ok || left == "" || right == "" {
		return [2]string{}, fmt.Errorf("a merge rule is %.80q: it must be two tokens with a space between them", text)
	}
	return [2]string{left, right}, nil
}

// Parse reads a Hugging Face tokenizer.json. What it asks for beyond what this package does is refused by name.
func Parse(data []byte) (*Model, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("it has %d bytes: the limit is %d", len(data), MaxFileBytes)
	}
	var f file
	if err := plainjson.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &f); err != nil {
		return nil, err
	}
	v, err := f.vocabulary()
	if err != nil {
		return nil, err
	}
	if v.NFC, err = f.Normalizer.nfc(); err != nil {
		return nil, err
	}
	if v.Split, err = f.PreTokenizer.split(); err != nil {
		return nil, err
	}
	m, err := New(v)
	if err != nil {
		return nil, err
	}
	if err := f.PostProcessor.begin(m); err != nil {
		return nil, err
	}
	return m, nil
}

func (f *file) vocabulary() (v Vocabulary, err error) {
	switch {
	case f.Model == nil:
		return v, errors.New("there is no model")
	case f.Model.Type != "" && f.Model.Type != "BPE": // old files leave it out
		return v, fmt.Errorf("model.type is %.40q: only BPE is supported", f.Model.Type)
	case f.Model.ByteFallback:
		return v, errors.New("model.byte_fallback is true: that is SentencePiece, which is read from tokenizer.model")
	case f.Model.Prefix != "" || f.Model.Suffix != "":
		return v, errors.New("model has a continuing_subword_prefix or an end_of_word_suffix, which is not supported")
	}
	count := uint32(0)
	for text, id := range f.Model.Vocab {
		if id >= MaxTokens {
			return v, fmt.Errorf("model.vocab: %.40q has id %d: the limit is %d", text, id, MaxTokens)
		}
		count = max(count, id+1)
	}
	for _, a := range f.Added {
		switch {
		case a.ID == nil:
			return v, fmt.Errorf("the added token %.40q has no id", a.Content)
		case *a.ID >= MaxTokens:
			return v, fmt.Errorf("the added token %.40q has id %d: the limit is %d", a.Content, *a.ID, MaxTokens)
		case a.SingleWord || a.LStrip || a.RStrip:
			return v, fmt.Errorf("the added token %.40q has single_word, lstrip or rstrip, which is not supported", a.Content)
		}
		count = max(count, *a.ID+1)
		v.Added = append(v.Added, Added{*a.ID, a.Content, a.Special})
	}
	v.Tokens = make([]string, count)
	for text, id := range f.Model.Vocab {
		if v.Tokens[id] != "" {
			return v, fmt.Errorf("model.vocab: %.40q and %.40q both have id %d", min(text, v.Tokens[id]), max(text, v.Tokens[id]), id)
		}
		v.Tokens[id] = text
	}
	for _, r := range f.Model.Merges {
		v.Merges = append(v.Merges, r)
	}
	v.WholeWords = f.Model.IgnoreMerges
	return v, nil
}

// nfc says whether text is to be composed.
func (p *part) nfc() (nfc bool, err error) {
	if p == nil {
		return false, nil
	}
	switch p.Type {
	case "NFC":
		return true, nil
	case "Sequence":
		for i := range p.Normalizers {
			one, err := p.Normalizers[i].nfc()
			if err != nil {
				return false, err
			}
			nfc = nfc || one
		}
		return nfc, nil
	}
	return false, fmt.Errorf("normalizer.type is %.40q: only NFC is supported", p.Type)
}

// split is the rule for words. It is part of ByteLevel, or comes before it.
func (p *part) split() (Split, error) {
	if p == nil {
		return 0, errors.New("there is no pre_tokenizer: only ByteLevel is supported")
	}
	steps := []part{*p}
	if p.Type == "Sequence" {
		steps = p.PreTokenizers
	}
	last := len(steps) - 1
	if last < 0 || steps[last].Type != "ByteLevel" {
		return 0, errors.New("pre_tokenizer does not end with ByteLevel: nothing else is supported")
	}
	level, steps := steps[last], steps[:last]
	regex := level.UseRegex == nil || *level.UseRegex
	switch {
	case level.PrefixSpace:
		return 0, errors.New("pre_tokenizer: add_prefix_space is true, which is not supported")
	case len(steps) == 0 && regex:
		return SplitGPT2, nil
	case len(steps) == 1 && regex && steps[0].Type == "Digits" && steps[0].Individual:
		return SplitSmolLM, nil
	case len(steps) != 1 || regex || steps[0].Type != "Split":
		return 0, errors.New("pre_tokenizer is neither ByteLevel, nor single Digits or a Split and ByteLevel: nothing else is supported")
	case steps[0].Invert || steps[0].Behavior != "Isolated":
		return 0, fmt.Errorf("pre_tokenizer: Split has behavior %.40q and invert %t: only Isolated without invert is supported", steps[0].Behavior, steps[0].Invert)
	}
	s, err := splitOf(steps[0].Pattern.Regex)
	if err != nil {
		return 0, fmt.Errorf("pre_tokenizer: %w", err)
	}
	return s, nil
}

// begin finds the tokens that a template puts before a text.
func (p *part) begin(m *Model) error {
	if p == nil {
		return nil
	}
	for i := range p.Processors {
		if err := p.Processors[i].begin(m); err != nil {
			return err
		}
	}
	for _, piece := range p.Single {
		if piece.SpecialToken == nil {
			break
		}
		id, ok := m.Token(piece.SpecialToken.ID)
		if !ok {
			return fmt.Errorf("post_processor: %.40q is not an added token", piece.SpecialToken.ID)
		}
		m.begin = append(m.begin, id)
	}
	return nil
}
