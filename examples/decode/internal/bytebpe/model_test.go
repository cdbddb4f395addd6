package bytebpe

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// spell is how files spell a text.
func spell(text string) string {
	var out strings.Builder
	for i := range len(text) {
		out.WriteRune(spelling[text[i]])
	}
	return out.String()
}

// small is a vocabulary of the bytes (ids 0 to 255), what rules make of them, and two added tokens.
func small(rules ...[2]string) Vocabulary {
	var v Vocabulary
	for b := range 256 {
		v.Tokens = append(v.Tokens, spell(string([]byte{byte(b)})))
	}
	for _, r := range rules {
		r = [2]string{spell(r[0]), spell(r[1])}
		v.Merges = append(v.Merges, r)
		if !slices.Contains(v.Tokens, r[0]+r[1]) {
			v.Tokens = append(v.Tokens, r[0]+r[1])
		}
	}
	n := uint32(len(v.Tokens))
	v.Tokens = append(v.Tokens, "<|end|>", "<|end|>!")
	v.Added = []Added{{n, "<|end|>", true}, {n + 1, "<|end|>!", false}}
	return v
}

// spelled is what tokens spell, divided by bars.
func spelled(m *Model, ids []uint32) string {
	var out []string
	for _, id := range ids {
		out = append(out, m.texts[id])
	}
	return strings.Join(out, "|")
}

// The spelling of bytes, by the list of GPT-2's encoder: "!" to "~", "¡" to "¬" and "®" to "ÿ" are themselves.
func TestSpelling(t *testing.T) {
	require.Equal(t, "\u0120a\u010a", spell(" a\n"))
	require.Equal(t, "\u0100\u0121\u0143\u0122\u0142", spell("\x00\x7f\xad\x80\xa0"))
	require.Equal(t, "!~\u00a1\u00ac\u00ae\u00ff", spell("!~\xa1\xac\xae\xff"))
	for b := range 256 {
		text, err := unspell(spell(string([]byte{byte(b)})))
		require.NoError(t, err)
		require.Equal(t, string([]byte{byte(b)}), text)
	}
}

// Merges worked out by hand: the earliest rule first, the leftmost of equals.
func TestMerge(t *testing.T) {
	m, err := New(small([2]string{"b", "c"}, [2]string{"a", "b"}, [2]string{"a", "a"}, [2]string{"aa", "aa"}, [2]string{" ", "a"}, [2]string{"a", "bc"}))
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":          "",
		"abc":       "abc",  // bc first, then a and bc
		"ab":        "ab",   //
		"aaa":       "aa|a", // leftmost
		"aaaa":      "aaaa", // aa aa, then these
		"aaaaa":     "aaaa|a",
		"aab":       "a|ab", // ab comes before aa
		" a":        " a",
		" ab":       " |ab",
		"cab":       "c|ab",
		"z":         "z",
		"a<|end|>a": "a|<|end|>|a",
		"<|end|>!":  "<|end|>!", // the longer one
	} {
		require.Equal(t, want, spelled(m, m.Encode(text)), "%q", text)
	}
	require.Len(t, m.Encode("<|end|"), 6, "not an added token")
}

func TestWholeWords(t *testing.T) {
	v := small([2]string{"a", "b"})
	v.Tokens = append(v.Tokens, "abc")
	m, err := New(v)
	require.NoError(t, err)
	require.Equal(t, "ab|c", spelled(m, m.Encode("abc")), "no rule makes abc")
	v.WholeWords = true
	m, err = New(v)
	require.NoError(t, err)
	require.Equal(t, "abc", spelled(m, m.Encode("abc")))
	require.Equal(t, "ab|c|d", spelled(m, m.Encode("abcd")))
}

func TestNFC(t *testing.T) {
	v := small([2]string{"\xc3", "\xa9"})
	v.NFC = true
	m, err := New(v)
	require.NoError(t, err)
	require.Equal(t, "\u00e9", spelled(m, m.Encode("e\u0301")))
}

// A character in several tokens comes out whole, control tokens do not come out, and what is no UTF-8 is replaced.
func TestDecode(t *testing.T) {
	m, err := New(small([2]string{"\xe2", "\x82"}))
	require.NoError(t, err)
	end := uint32(m.Len() - 2)
	d := m.NewDecoder()
	require.Empty(t, d.Next(256)) // E2 82
	require.Equal(t, "\u20ac", d.Next(0xac))
	require.Equal(t, "<|end|>!", d.Next(end+1))
	require.Empty(t, d.Next(0xe2))
	require.Equal(t, "\ufffd", d.Next(end))
	require.Equal(t, "\ufffda", m.Decode([]uint32{0xe2, 'a'}))
	require.Equal(t, "\ufffd\ufffd", m.Decode([]uint32{256, 1 << 30}), "one for each byte")
	require.Equal(t, "a", m.Decode([]uint32{'a', end, 1 << 31}))
}

// naive merges as the definition says, looking at all pairs each time.
func naive(m *Model, word string) []uint32 {
	var tokens []uint32
	for i := range len(word) {
		tokens = append(tokens, m.bytes[word[i]])
	}
	for {
		best, at := merge{rank: -1}, 0
		for i := range len(tokens) - 1 {
			if r, ok := m.merges[[2]uint32{tokens[i], tokens[i+1]}]; ok && (best.rank < 0 || r.rank < best.rank) {
				best, at = r, i
			}
		}
		if best.rank < 0 {
			return tokens
		}
		tokens = slices.Replace(tokens, at, at+2, best.token)
	}
}

// Random rules and words of few letters: as the definition says, and back.
func TestMergeAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		v := small()
		v.Added, v.Tokens = nil, v.Tokens[:256]
		tokens := []string{"a", "b", "c"}
		for range 1 + r.IntN(30) {
			left, right := tokens[r.IntN(len(tokens))], tokens[r.IntN(len(tokens))]
			v.Merges = append(v.Merges, [2]string{left, right})
			if !slices.Contains(v.Tokens, left+right) {
				v.Tokens, tokens = append(v.Tokens, left+right), append(tokens, left+right)
			}
		}
		m, err := New(v)
		require.NoError(t, err)
		for range 20 {
			text := strings.Map(func(rune) rune { return rune('a' + r.IntN(3)) }, strings.Repeat(" ", r.IntN(40)))
			have := m.Encode(text)
			require.Equal(t, naive(m, text), have, "round %d: %q by %v", round, text, v.Merges)
			require.Equal(t, text, m.Decode(have))
		}
	}
}

// A long word takes time in proportion to its length, or nearly.
func TestLongWord(t *testing.T) {
	m, err := New(small([2]string{"a", "a"}, [2]string{"aa", "aa"}, [2]string{"aaaa", "aaaa"}))
	require.NoError(t, err)
	require.Len(t, m.Encode(strings.Repeat("a", 1<<18)), 1<<15)
}

func TestNewRefuses(t *testing.T) {
	for want, change := range map[string]func(*Vocabulary){
		"the vocabulary has no tokens":                       func(v *Vocabulary) { v.Tokens = nil },
		"there is no rule 7 for words":                       func(v *Vocabulary) { v.Split = 7 },
		"the vocabulary has no token for byte 0x20":          func(v *Vocabulary) { v.Tokens[' '] = "" },
		"tokens 97 and 98 are both":                          func(v *Vocabulary) { v.Tokens['b'] = "a" },
		`stands for no byte`:                                 func(v *Vocabulary) { v.Tokens[256] = "a b" },
		`merge rule 1 joins "x1"`:                            func(v *Vocabulary) { v.Merges = append(v.Merges, [2]string{"x1", "b"}) },
		`merge rule 1 makes "ba"`:                            func(v *Vocabulary) { v.Merges = append(v.Merges, [2]string{"b", "a"}) },
		"merge rule 1: ":                                     func(v *Vocabulary) { v.Merges = append(v.Merges, [2]string{" ", "a"}) },
		"outside the vocabulary of 259":                      func(v *Vocabulary) { v.Added[0].ID = 259 },
		"the added token 257 is empty":                       func(v *Vocabulary) { v.Added[0].Text = "" },
		"there are two added tokens 257":                     func(v *Vocabulary) { v.Added[1].ID = 257 },
		`the added tokens 257 and 258 are both "<|end|>"`:    func(v *Vocabulary) { v.Added[1].Text = "<|end|>" },
		"token 256 has 5000 bytes":                           func(v *Vocabulary) { v.Tokens[256] = strings.Repeat("a", 5000) },
		"the added token 257 has 5000 bytes":                 func(v *Vocabulary) { v.Added[0].Text = strings.Repeat("a", 5000) },
		fmt.Sprintf("the vocabulary has %d tokens", 1<<21+1): func(v *Vocabulary) { v.Tokens = make([]string, 1<<21+1) },
		fmt.Sprintf("the vocabulary has %d merge", 1<<21+1):  func(v *Vocabulary) { v.Merges = make([][2]string, 1<<21+1) },
	} {
		v := small([2]string{"a", "b"})
		change(&v)
		_, err := New(v)
		require.ErrorContains(t, err, want)
	}
}

// Any text that is UTF-8 comes back, and any other as its bytes.
func FuzzEncode(f *testing.F) {
	var models []*Model
	for s := range Split(len(rules)) {
		v := small([2]string{"a", "b"}, [2]string{" ", "a"}, [2]string{" ", " "}, [2]string{"\xe2", "\x82"})
		v.Split = s
		m, err := New(v)
		require.NoError(f, err)
		models = append(models, m)
	}
	for _, seed := range []string{"", "ab ab", "it's 1234\r\n\n x", "\xff\xe2\x82\xac", "a<|end|>!b", "\u00a0\u3000 \t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range models {
			var bytes strings.Builder
			for _, id := range m.Encode(text) {
				bytes.WriteString(m.texts[id])
			}
			require.Equal(t, text, bytes.String())
			if utf8.ValidString(text) && !strings.Contains(text, "<|end|>") {
				require.Equal(t, text, m.Decode(m.Encode(text)))
			}
		}
	})
}
