package bytebpe

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Split is a rule by which text is cut into words, each merged on its own. Published tokenizers give it as a regular
// expression, with a condition on what follows that Go's package regexp does not have.
type Split uint8

// The rules, which differ in numbers, and in what may stand before letters and after signs: see Expression.
const (
	SplitGPT2 Split = iota
	SplitLlama3
	SplitQwen2
	SplitSmolLM // GPT-2's between single digits
)

// rules are the names of the rules in GGUF files, and their regular expressions in tokenizer.json.
var rules = [...]struct{ name, expression string }{
	SplitGPT2: {"gpt-2", `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`},
	SplitLlama3: {"llama-bpe", `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
	SplitQwen2: {"qwen2", `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
	SplitSmolLM: {"smollm", `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+`},
}

func (s Split) valid() bool { return int(s) < len(rules) }

// String is the name that GGUF files have for the rule.
func (s Split) String() string {
	if s.valid() {
		return rules[s].name
	}
	return fmt.Sprintf("Split(%d)", uint8(s))
}

// Expression is the rule as a regular expression, as tokenizer.json has it.
func (s Split) Expression() string {
	if s.valid() {
		return rules[s].expression
	}
	return ""
}

// SplitNamed is the rule that GGUF files call name.
func SplitNamed(name string) (Split, error) {
	return findSplit(name, Split.String)
}

// splitOf is the rule with that regular expression.
func splitOf(expression string) (Split, error) { return findSplit(expression, Split.Expression) }

func findSplit(text string, of func(Split) string) (Split, error) {
	var known []string
	for i := range rules {
		if of(Split(i)) == text {
			return Split(i), nil
		}
		known = append(known, Split(i).String())
	}
	return 0, fmt.Errorf("text is to be cut into words by %.200q: known are the rules %s", text, strings.Join(known, ", "))
}

// words calls yield for each word of text, in order. Together they are text.
func (s Split) words(text string, yield func(word string)) {
	for len(text) > 0 {
		n := s.word(text)
		yield(text[:n])
		text = text[n:]
	}
}

// word is the length of the first word of a text that is not empty.
func (s Split) word(text string) int {
	if s == SplitGPT2 || s == SplitSmolLM {
		return s.wordGPT2(text)
	}
	if n := contraction(text, true); n > 0 {
		return n
	}
	first, size := utf8.DecodeRuneInString(text)
	before := 0 // of one character that may stand before letters
	if !unicode.IsLetter(first) && !unicode.IsNumber(first) && first != '\r' && first != '\n' {
		before = size
	}
	if n := run(text[before:], unicode.IsLetter); n > 0 {
		return before + n
	}
	if unicode.IsNumber(first) {
		most := 1
		if s == SplitLlama3 {
			most = 3
		}
		return atMost(text, most, unicode.IsNumber)
	}
	rest := 0
	if first == ' ' {
		rest = 1
	}
	if n := run(text[rest:], isSign); n > 0 {
		n += rest
		return n + run(text[n:], isNewline)
	}
	// Space up to its last line break.
	if last := strings.LastIndexAny(text[:run(text, unicode.IsSpace)], "\r\n"); last >= 0 {
		return last + 1
	}
	return spaces(text)
}

func (s Split) wordGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	first, size := utf8.DecodeRuneInString(text)
	if s == SplitSmolLM && unicode.IsNumber(first) {
		return size
	}
	rest := 0 // where what follows a space begins
	if first == ' ' {
		rest = 1
	}
	kinds := []func(rune) bool{unicode.IsLetter, isSign, unicode.IsNumber}
	if s == SplitSmolLM { // space before a number is a word of its own
		kinds = kinds[:2]
		n := run(text, unicode.IsSpace)
		if next, _ := utf8.DecodeRuneInString(text[n:]); n > 0 && unicode.IsNumber(next) {
			return n
		}
	}
	for _, kind := range kinds {
		if n := run(text[rest:], kind); n > 0 {
			return rest + n
		}
	}
	return spaces(text)
}

// spaces is the length of the space that text begins with, without its last character if something else follows: that
// belongs to the next word. A single one is a word in any case.
func spaces(text string) int {
	n := run(text, unicode.IsSpace)
	if n == len(text) {
		return n
	}
	_, last := utf8.DecodeLastRuneInString(text[:n])
	if n > last {
		return n - last
	}
	return n
}

// isSign says whether a character is neither space nor letter nor number. Bytes that are not UTF-8 are signs.
func isSign(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }

func isNewline(r rune) bool { return r == '\r' || r == '\n' }

// run is the length of the characters of a kind that text begins with.
func run(text string, kind func(rune) bool) int { return atMost(text, len(text), kind) }

func atMost(text string, most int, kind func(rune) bool) int {
	n := 0
	for ; most > 0 && n < len(text); most-- {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !kind(r) {
			break
		}
		n += size
	}
	return n
}

// contraction is the length of an English 's, 't, 're, 've, 'm, 'll or 'd that text begins with. With fold, letters match
// as in Unicode's simple case folding, where the long ſ is an s.
func contraction(text string, fold bool) int {
	if text[0] != '\'' {
		return 0
	}
	for _, letters := range []string{"s", "t", "re", "ve", "m", "ll", "d"} {
		n := atMost(text[1:], len(letters), func(rune) bool { return true })
		if have := text[1 : 1+n]; have == letters || fold && strings.EqualFold(have, letters) {
			return 1 + n
		}
	}
	return 0
}
