package checkpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ingot-metal/ingot/examples/decode/internal/bytebpe"
	"github.com/ingot-metal/ingot/examples/decode/internal/sentencepiece"
	"github.com/ingot-metal/ingot/examples/decode/internal/tokenizer"
)

// Keys of the tokenizer, and the models that there are.
const (
	tokenizerKey  = "tokenizer.ggml.model"
	tokensKey     = "tokenizer.ggml.tokens"
	scoresKey     = "tokenizer.ggml.scores"
	tokenTypesKey = "tokenizer.ggml.token_type"

	sentencepieceModel = "llama"
	byteLevelModel     = "gpt2"
)

// endings are markers that end a text or a turn in it, whatever ids files name.
var endings = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<|end_of_text|>"}

// tokens reads the size of the vocabulary and the ids of markers.
func (m *metadata) tokens(c *Config) error {
	texts, ok, err := m.file.Strings(tokensKey)
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New(tokensKey + " is missing")
	}
	if c.Vocab, err = size("the number of "+tokensKey, int64(len(texts)), maxVocab); err != nil {
		return err
	}
	model, _, err := m.file.String(tokenizerKey)
	if err != nil {
		return err
	}
	bos, eos := int64(1), int64(2)
	if model == byteLevelModel {
		bos, eos = 11, 11
	}
	if v, ok, err := m.marker("bos_token_id", len(texts)); err != nil {
		return err
	} else if ok {
		bos = v
	}
	c.BOS = uint32(min(bos, int64(len(texts)-1)))
	add, ok, err := m.file.Bool("tokenizer.ggml.add_bos_token")
	if err != nil {
		return err
	}
	if !ok {
		add = model != byteLevelModel || m.preTokenizerAddsBOS()
	}
	c.AddBOS = add
	found := false
	for _, name := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
		v, ok, err := m.marker(name, len(texts))
		if err != nil {
			return err
		}
		if ok && !slices.Contains(c.EOS, uint32(v)) {
			c.EOS = append(c.EOS, uint32(v))
		}
		found = found || ok && name == "eos_token_id"
	}
	if !found && eos < int64(len(texts)) {
		c.EOS = append(c.EOS, uint32(eos))
	}
	for i, text := range texts {
		if slices.Contains(endings, text) && !slices.Contains(c.EOS, uint32(i)) {
			c.EOS = append(c.EOS, uint32(i))
		}
	}
	return nil
}

// noToken is what converters write for a marker that there is none of.
const noToken = 1<<32 - 1

func (m *metadata) marker(name string, vocab int) (int64, bool, error) {
	key := "tokenizer.ggml." + name
	v, ok, err := m.file.Int(key)
	if err != nil || !ok || v == noToken || v == -1 {
		return 0, false, err
	}
	if v < 0 || v >= int64(vocab) {
		return 0, false, fmt.Errorf("%s is %d, outside the vocabulary of %d", key, v, vocab)
	}
	return v, true, nil
}

// tokenizer makes the file's tokenizer.
func (m *metadata) tokenizer(c *Config) (tokenizer.Tokenizer, error) {
	model, ok, err := m.file.String(tokenizerKey)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errors.New(tokenizerKey + " is missing")
	}
	texts, _, err := m.file.Strings(tokensKey)
	if err != nil {
		return nil, err
	}
	types, err := m.types(texts)
	if err != nil {
		return nil, err
	}
	switch model {
	case sentencepieceModel:
		return m.sentencepiece(texts, types)
	case byteLevelModel:
		return m.byteLevel(texts, types)
	}
	return nil, fmt.Errorf("%s is %q: known are %s (SentencePiece BPE) and %s (byte-level BPE)", tokenizerKey, model, sentencepieceModel, byteLevelModel)
}

// types are those of the tokens, plain ones where the file does not say. Endings are control tokens whatever it says: some
// converters wrote them as user-defined or plain ones.
func (m *metadata) types(texts []string) ([]int64, error) {
	types, ok, err := m.file.Ints(tokenTypesKey)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		types = slices.Repeat([]int64{ggufPlain}, len(texts))
	case len(types) != len(texts):
		return nil, fmt.Errorf("%s has %d values for %d tokens", tokenTypesKey, len(types), len(texts))
	}
	types = slices.Clone(types)
	for i, text := range texts {
		if slices.Contains(endings, text) {
			types[i] = ggufControl
		}
	}
	return types, nil
}

func (m *metadata) sentencepiece(texts []string, types []int64) (tokenizer.Tokenizer, error) {
	v := sentencepiece.Vocabulary{Texts: texts, Types: types, DummyPrefix: true}
	var ok bool
	var err error
	if v.Scores, ok, err = m.file.Floats(scoresKey); err != nil {
		return nil, err
	} else if !ok {
		return nil, errors.New(scoresKey + " is missing")
	}
	if prefix, ok, err := m.file.Bool("tokenizer.ggml.add_space_prefix"); err != nil {
		return nil, err
	} else if ok {
		v.DummyPrefix = prefix
	}
	if err := m.refuseTrue("tokenizer.ggml.remove_extra_whitespaces"); err != nil {
		return nil, err
	}
	if unknown, ok, err := m.marker("unknown_token_id", len(texts)); err != nil {
		return nil, err
	} else if ok {
		v.Unknown = uint32(unknown)
	}
	t, err := sentencepiece.New(v)
	if err != nil {
		return nil, fmt.Errorf("the tokenizer: %w", err)
	}
	return t, nil
}

// refuseTrue refuses a file that asks for something by a truth value.
func (m *metadata) refuseTrue(key string) error {
	if v, _, err := m.file.Bool(key); err != nil || !v {
		return err
	}
	return fmt.Errorf("%s is true: that is not supported", key)
}

// preTokenizerNames are names of tokenizer.ggml.pre that mean another one's rule for words.
var preTokenizerNames = map[string]string{"gpt2": "gpt-2", llama3Names[1]: llama3Names[0], llama3Names[2]: llama3Names[0], "deepseek-r1-qwen": "qwen2"}

// llama3Names are those with which words that are tokens stay whole, and texts begin with a marker unless the file says otherwise.
var llama3Names = []string{"llama-bpe", "llama3", "llama-v3"}

func (m *metadata) preTokenizer() (string, error) {
	const key = "tokenizer.ggml.pre"
	name, ok, err := m.file.String(key)
	if err == nil && !ok {
		err = errors.New(key + " is missing")
	}
	return name, err
}

func (m *metadata) preTokenizerAddsBOS() bool {
	name, _ := m.preTokenizer()
	return slices.Contains(llama3Names, name)
}

// Types of tokens.
const (
	ggufPlain       = 1
	ggufUnknown     = 2
	ggufControl     = 3
	ggufUserDefined = 4
	ggufUnused      = 5
	ggufLastType    = 6
)

func (m *metadata) byteLevel(texts []string, types []int64) (tokenizer.Tokenizer, error) {
	name, err := m.preTokenizer()
	if err != nil {
		return nil, err
	}
	v := bytebpe.Vocabulary{Tokens: slices.Clone(texts), WholeWords: slices.Contains(llama3Names, name)}
	if other, ok := preTokenizerNames[name]; ok {
		name = other
	}
	if v.Split, err = bytebpe.SplitNamed(name); err != nil {
		return nil, fmt.Errorf("tokenizer.ggml.pre: %w", err)
	}
	for i, t := range types {
		switch {
		case t < ggufPlain || t > ggufLastType:
			return nil, fmt.Errorf("%s: token %d has the unknown type %d", tokenTypesKey, i, t)
		case t == ggufUnused || texts[i] == "":
			v.Tokens[i] = ""
		case t == ggufUnknown || t == ggufControl || t == ggufUserDefined:
			v.Added = append(v.Added, bytebpe.Added{ID: uint32(i), Text: texts[i], Control: t != ggufUserDefined})
		}
	}
	if err := m.refuseTrue("tokenizer.ggml.add_space_prefix"); err != nil {
		return nil, err
	}
	const key = "tokenizer.ggml.merges"
	merges, ok, err := m.file.Strings(key)
	if err == nil && !ok {
		err = errors.New(key + " is missing")
	}
	if err != nil {
		return nil, err
	}
	for i, text := range merges {
		rule, err := bytebpe.SplitMerge(text)
		if err != nil {
			return nil, fmt.Errorf("%s: number %d: %w", key, i, err)
		}
		v.Merges = append(v.Merges, rule)
	}
	t, err := bytebpe.New(v)
	if err != nil {
		return nil, fmt.Errorf("the tokenizer: %w", err)
	}
	return t, nil
}
