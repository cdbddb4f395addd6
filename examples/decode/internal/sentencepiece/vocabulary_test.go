package sentencepiece

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// small is a vocabulary of "<unk>", "<s>", and the given texts, each scoring less than the one before.
func small(texts ...string) Vocabulary {
	v := Vocabulary{Texts: append([]string{"<unk>", "<s>"}, texts...)}
	for i := range v.Texts {
		v.Scores = append(v.Scores, -float64(i))
		v.Types = append(v.Types, int64(kindNormal))
	}
	v.Types[0], v.Types[1] = int64(kindUnknown), int64(kindControl)
	return v
}

// withBytes adds a token for every byte.
func (v Vocabulary) withBytes() Vocabulary {
	for b := range 256 {
		v.Texts, v.Scores, v.Types = append(v.Texts, fmt.Sprintf("<0x%02X>", b)), append(v.Scores, 0), append(v.Types, int64(kindByte))
	}
	return v
}

func mustNew(t testing.TB, v Vocabulary) *Model {
	t.Helper()
	m, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Merges derived by hand, with and without a space before the text.
func TestNew(t *testing.T) {
	v := small("bc", "ab", "▁a", "a", "b", "c", "▁", "▁ab") // 2 …
	for _, prefix := range []bool{false, true} {
		v.DummyPrefix = prefix
		m := mustNew(t, v)
		for text, wants := range map[string][2][]uint32{ // without, with
			"":    {nil, nil},
			"abc": {{5, 2}, {4, 2}},       // bc scores best; then ▁a
			"ab":  {{3}, {9}},             // ab, then ▁ab
			" ab": {{9}, {8, 9}},          // the text's own space comes on top
			"a b": {{5, 8, 6}, {4, 8, 6}}, //
			"x":   {{0}, {8, 0}},          // no token, no bytes
		} {
			want := wants[0]
			if prefix {
				want = wants[1]
			}
			if got := m.Encode(text); !reflect.DeepEqual(got, want) {
				t.Errorf("%q, prefix %t: got %v, want %v", text, prefix, got, want)
			}
			if got := m.Decode(m.Encode(text)); got != strings.ReplaceAll(text, "x", " \u2047 ") && text != "x" {
				t.Errorf("%q, prefix %t: decoded %q", text, prefix, got)
			}
		}
		if got := m.NewDecoder().Next(9); got != " ab" {
			t.Errorf("a text that is continued lost its space: %q", got)
		}
	}
	m := mustNew(t, small("a").withBytes())
	if got := m.Encode("aé"); !reflect.DeepEqual(got, []uint32{2, 3 + 0xc3, 3 + 0xa9}) || m.Decode(got) != "aé" {
		t.Errorf("bytes: %v", got)
	}
	v = small("a", "b")
	v.Types[0], v.Unknown = int64(kindNormal), 1 // the unknown piece by its id
	if m := mustNew(t, v); !reflect.DeepEqual(m.Encode("ax"), []uint32{2, 1}) || m.Decode([]uint32{1}) != unknownText {
		t.Error(m.Encode("ax"), m.Decode([]uint32{1}))
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(v *Vocabulary)
		want   string
	}{
		{func(v *Vocabulary) { *v = Vocabulary{} }, "the unknown piece is 0, outside the vocabulary of 0"},
		{func(v *Vocabulary) { v.Scores = v.Scores[1:] }, "there are 3 scores for 4 pieces"},
		{func(v *Vocabulary) { v.Types = v.Types[1:] }, "there are 3 types for 4 pieces"},
		{func(v *Vocabulary) { v.Types[2] = 7 }, "piece 2 has the unknown type 7"},
		{func(v *Vocabulary) { v.Types[2] = -1 }, "piece 2 has the unknown type 255"},
		{func(v *Vocabulary) { v.Types[2] = int64(kindUnknown) }, "pieces 0 and 2 are both the unknown piece"},
		{func(v *Vocabulary) { v.Types[2] = int64(kindByte) }, `piece 2: "a" is not the text of a byte piece`},
		{func(v *Vocabulary) { v.Texts[2] = "b" }, `pieces 2 and 3 are both "b"`},
		{func(v *Vocabulary) { v.Texts[2] = "" }, "piece 2 is empty"},
		{func(v *Vocabulary) { v.Texts[2] = strings.Repeat("a", maxPieceBytes+1) }, "piece 2 has 4097 bytes"},
		{func(v *Vocabulary) { v.Scores[2] = math.NaN() }, "the score of piece 2 is not a number"},
		{func(v *Vocabulary) { v.Types[0], v.Unknown = 1, 4 }, "the unknown piece is 4"},
	} {
		v := small("a", "b")
		c.change(&v)
		if _, err := New(v); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "sentencepiece: ") {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

// naive merges as the definition says: again and again the first of the pairs with the highest score.
func naive(text string, score map[string]float64) []string {
	parts := strings.Split(text, "")
	for {
		best, at := math.Inf(-1), -1
		for i := range len(parts) - 1 {
			if s, ok := score[parts[i]+parts[i+1]]; ok && s > best {
				best, at = s, i
			}
		}
		if at < 0 {
			return parts
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

// Random vocabularies over few letters, with scores that repeat, against the definition.
func TestAgainstNaive(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 14))
	for range 300 {
		v := small("a", "b", "é")
		score := map[string]float64{}
		for range 1 + rnd.IntN(20) {
			text := v.Texts[2+rnd.IntN(len(v.Texts)-2)] + v.Texts[2+rnd.IntN(len(v.Texts)-2)]
			if slices.Contains(v.Texts, text) {
				continue
			}
			s := -float64(rnd.IntN(6))
			score[text] = s
			v.Texts, v.Scores, v.Types = append(v.Texts, text), append(v.Scores, s), append(v.Types, 1)
		}
		m := mustNew(t, v)
		for range 10 {
			text := ""
			for range rnd.IntN(40) + 1 {
				text += v.Texts[2+rnd.IntN(3)]
			}
			var got []string
			for _, id := range m.Encode(text) {
				got = append(got, m.Piece(id))
			}
			if want := naive(text, score); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s with %v: got %v, want %v", text, score, got, want)
			}
		}
	}
}

func FuzzNew(f *testing.F) {
	f.Add("a\nb\nab\n▁", []byte{1, 1, 1, 1}, "ab a", true)
	f.Add("<0x41>\n<x>\n<x>a", []byte{6, 4, 5}, "A<x>a", false)
	f.Fuzz(func(t *testing.T, texts string, types []byte, text string, prefix bool) {
		v := small(strings.Split(texts, "\n")...)
		v.DummyPrefix = prefix
		for i := range v.Types[2:] {
			if i < len(types) {
				v.Types[2+i] = int64(int8(types[i]))
			}
		}
		m, err := New(v)
		if err != nil {
			return
		}
		ids, d, parts := m.Encode(text), m.NewDecoder(), ""
		for _, id := range ids {
			if int(id) >= m.Len() {
				t.Fatalf("id %d of %d", id, m.Len())
			}
			part := d.Next(id)
			if utf8.ValidString(texts) && !utf8.ValidString(part) {
				t.Fatalf("%q is not text", part)
			}
			parts += part
		}
		if parts += d.Flush(); !strings.HasSuffix(parts, m.Decode(ids)) || len(parts) > len(m.Decode(ids))+1 {
			t.Fatalf("%q in parts is %q", m.Decode(ids), parts)
		}
	})
}

func ExampleNew() {
	m, err := New(Vocabulary{
		Texts: []string{"<unk>", "▁", "h", "i", "hi", "▁hi"}, Scores: []float64{0, 0, 0, 0, -1, -2}, Types: []int64{2, 1, 1, 1, 1, 1},
		DummyPrefix: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Encode("hi hi"), m.Decode([]uint32{5, 5}))
	// Output: [5 5] hi hi
}
