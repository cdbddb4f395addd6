package sentencepiece

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const folder = "../../testdata/tiny-gemma3-q4/"

func tiny(t testing.TB) *Model {
	t.Helper()
	data, err := os.ReadFile(folder + "tokenizer.model")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The ids of the golden file are those of the original tokenizer.
func TestGolden(t *testing.T) {
	m := tiny(t)
	var golden struct {
		Cases []struct {
			Prompt    string
			PromptIDs []uint32 `json:"prompt_ids"`
			Generated []uint32
			Text      string
		}
	}
	data, err := os.ReadFile(folder + "golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range golden.Cases {
		if got := append([]uint32{2}, m.Encode(c.Prompt)...); !reflect.DeepEqual(got, c.PromptIDs) {
			t.Errorf("%q: got %v, want %v", c.Prompt, got, c.PromptIDs)
		}
		all := append(append([]uint32{}, c.PromptIDs...), c.Generated...)
		if got := m.Decode(all); got != c.Text+"\n" && got != c.Text {
			t.Errorf("decoded %q, want %q", got, c.Text)
		}
		// The stories are in the tokenizer's own spelling: encoding them gives the very ids back.
		text := m.Decode(all)
		if got := m.Encode(text); !reflect.DeepEqual(got, all[1:len(all)-1]) {
			t.Errorf("%q: got %v, want %v", text, got, all)
		}
	}
}

// spelled is what is left of a text that the tiny model's tokens spell: "▁" is a space, and its markers have no text.
var spelled = strings.NewReplacer("▁", " ", "<pad>", "", "<s>", "", "</s>", "").Replace

func TestRoundTrip(t *testing.T) {
	m := tiny(t)
	for _, text := range []string{
		"", " ", "   ", "a", "\n\n", "Once  upon\ta time", "Grüße, 世界! 🦊", "▁", "<bos>", "a<s>b", "naïve\x00",
		strings.Repeat("once upon a time ", 500), "日本語のテキスト",
	} {
		ids := m.Encode(text)
		if got := m.Decode(ids); got != spelled(text) {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := m.Decode(m.Encode("a\xff\xfeb")); got != "a\ufffd\ufffdb" {
		t.Errorf("bytes that are not UTF-8 became %q", got)
	}
	if m.Encode("") != nil {
		t.Error("the empty text has tokens")
	}
}

func TestPiece(t *testing.T) {
	m := tiny(t)
	if m.Len() != 1024 {
		t.Errorf("%d pieces", m.Len())
	}
	if got := m.Piece(451); got != "Once" {
		t.Errorf("piece 451 is %q", got)
	}
	if m.Piece(1<<31) != "" || m.Piece(1024) != "" || m.Decode([]uint32{1 << 31, 1024, 1, 2}) != "" {
		t.Error("an id outside the vocabulary or a control token has text")
	}
}

// A character spelled in bytes arrives whole; an unfinished one at the end becomes U+FFFD.
func TestDecoder(t *testing.T) {
	m := tiny(t)
	ids := m.Encode("a🦊b")
	if len(ids) != 6 {
		t.Fatalf("%v", ids)
	}
	d := m.NewDecoder()
	var got []string
	for _, id := range ids {
		got = append(got, d.Next(id))
	}
	if want := []string{"a", "", "", "", "🦊", "b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if d.Next(ids[1]) != "" || d.Flush() != "\ufffd" || d.Flush() != "" {
		t.Error("an unfinished character")
	}
	d.Next(ids[1])
	if got := d.Next(ids[0]); got != "\ufffda" {
		t.Errorf("a letter after an unfinished character: %q", got)
	}
	d.Next(ids[1])
	if got := d.Next(1); got != "\ufffd" {
		t.Errorf("a control token after an unfinished character: %q", got)
	}
	d.Next(ids[1])
	if got := d.Next(99999); got != "\ufffd" {
		t.Errorf("an unknown id after an unfinished character: %q", got)
	}
}

// build is a model file made by hand.
type build struct{ data []byte }

func (b *build) piece(text string, score float32, k kind) *build {
	var p []byte
	p = protowire.AppendTag(p, 1, protowire.BytesType)
	p = protowire.AppendString(p, text)
	p = protowire.AppendTag(p, 2, protowire.Fixed32Type)
	p = protowire.AppendFixed32(p, math.Float32bits(score))
	p = protowire.AppendTag(p, 3, protowire.VarintType)
	p = protowire.AppendVarint(p, uint64(k))
	return b.message(1, p)
}

func (b *build) message(number protowire.Number, data []byte) *build {
	b.data = protowire.AppendTag(b.data, number, protowire.BytesType)
	b.data = protowire.AppendBytes(b.data, data)
	return b
}

// flags writes a message of integers: number, value, number, value …
func (b *build) flags(number protowire.Number, pairs ...uint64) *build {
	var p []byte
	for i := 0; i < len(pairs); i += 2 {
		p = protowire.AppendTag(p, protowire.Number(pairs[i]), protowire.VarintType)
		p = protowire.AppendVarint(p, pairs[i+1])
	}
	return b.message(number, p)
}

func bpe() *build {
	b := &build{}
	return b.flags(2, 3, modelTypeBPE).flags(3, 3, 0, 4, 0).piece("<unk>", 0, kindUnknown)
}

// Merging goes by score, then from the left; unused pieces exist on the way only; user-defined symbols never merge.
func TestMerging(t *testing.T) {
	b := bpe()
	for _, p := range []string{"a", "b", "c", "d"} { // 1 … 4
		b.piece(p, -100, kindNormal)
	}
	b.piece("ab", -2, kindNormal)      // 5
	b.piece("bc", -1, kindNormal)      // 6
	b.piece("aa", -3, kindNormal)      // 7
	b.piece("cd", -4, kindUnused)      // 8
	b.piece("acd", -5, kindNormal)     // 9
	b.piece("<x>", 0, kindUserDefined) // 10
	b.piece("<x>a", 0, kindNormal)     // 11
	b.piece("<x><x>", 0, kindUserDefined)
	m, err := Parse(b.data)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]uint32{
		"abc":        {1, 6},    // bc scores higher than ab
		"abab":       {5, 5},    //
		"aaa":        {7, 1},    // the leftmost of equals
		"acd":        {9},       // by way of the unused cd
		"bcd":        {6, 4},    //
		"dcd":        {4, 3, 4}, // the unused piece is spelled by its parts
		"<x>a":       {10, 1},
		"<x><x><x>a": {12, 10, 1},
		"a?":         {1, 0}, // no byte fallback
	} {
		if got := m.Encode(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	if got := m.Decode([]uint32{1, 0, 10}); got != "a \u2047 <x>" {
		t.Errorf("decoded %q", got)
	}
}

func TestParseRefuses(t *testing.T) {
	good, err := os.ReadFile(folder + "tokenizer.model")
	if err != nil {
		t.Fatal(err)
	}
	spec := func() *build { return (&build{}).flags(2, 3, modelTypeBPE).flags(3, 3, 0, 4, 0) }
	wrongWire := func(outer, number protowire.Number) []byte {
		b := bpe()
		var p []byte
		p = protowire.AppendTag(p, number, protowire.Fixed64Type)
		p = protowire.AppendFixed64(p, 1)
		return b.message(outer, p).data
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "the model type is unigram"},
		{"no pieces", spec().data, "no pieces"},
		{"truncated", good[:len(good)/2], "truncated"},
		{"not a model", []byte("{\"model\": 1}"), "broken or truncated"},
		{"unigram", (&build{}).flags(2, 3, 1).data, "unigram"},
		{"a new type", (&build{}).flags(2, 3, 9).data, "type is 9"},
		{"suffix", (&build{}).flags(2, 3, 2, 24, 1).flags(3, 3, 0, 4, 0).data, "end of words"},
		{"spaces", (&build{}).flags(2, 3, 2).flags(3, 3, 0).data, "remove_extra_whitespaces"},
		{"no escape", (&build{}).flags(2, 3, 2).flags(3, 3, 0, 4, 0, 5, 0).data, "escape_whitespaces"},
		{"rules", spec().message(3, append([]byte{2<<3 | 2, 1}, 'x')).data, "compiled rules"},
		{"no unknown piece", spec().piece("a", 0, kindNormal).data, "no unknown piece"},
		{"two unknown pieces", bpe().piece("u", 0, kindUnknown).data, "pieces 0 and 1 are both the unknown"},
		{"same piece twice", bpe().piece("a", 0, kindNormal).piece("a", 0, kindUserDefined).data, `pieces 1 and 2 are both "a"`},
		{"empty piece", bpe().piece("", 0, kindNormal).data, "piece 1 is empty"},
		{"piece type", bpe().piece("a", 0, 77).data, "unknown type 77"},
		{"score", bpe().piece("a", float32(math.NaN()), kindNormal).data, "not a number"},
		{"long piece", bpe().piece(strings.Repeat("a", maxPieceBytes+1), 0, kindNormal).data, "the limit is"},
		{"byte name", bpe().piece("<0xZZ>", 0, kindByte).data, "not the text of a byte piece"},
		{"byte twice", bpe().piece("<0x0A>", 0, kindByte).piece("<0x0A>", 0, kindByte).data, "both byte 0x0a"},
		{"bytes missing", bpe().flags(2, 35, 1).piece("<0x00>", 0, kindByte).data, "no piece for byte 0x01"},
		{"piece is no message", protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1), "wire type"},
		{"trainer is no message", protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 1), "trainer"},
		{"normalizer is no message", protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 1), "normalizer"},
		{"text wire", wrongWire(1, 1), "wire type"},
		{"score wire", wrongWire(1, 2), "not a float"},
		{"type wire", wrongWire(1, 3), "wire type"},
		{"trainer wire", wrongWire(2, 3), "wire type"},
		{"trainer text wire", wrongWire(2, 44), "wire type"},
		{"normalizer wire", wrongWire(3, 2), "wire type"},
		{"too large", make([]byte, MaxModelBytes+1), "the limit is"},
	} {
		_, err := Parse(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "sentencepiece: ") {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(bpe().data, "a")
	f.Add(bpe().piece("ab", 1, kindNormal).piece("a", 0, kindUnused).data, "abab")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if m, err := Parse(data); err == nil {
			for _, id := range m.Encode(text) {
				if int(id) >= m.Len() {
					t.Fatalf("id %d of %d", id, m.Len())
				}
			}
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	m := tiny(f)
	for _, s := range []string{"Once upon a time", "a\xffb", "🦊 ▁", "<0x0A>", "<<s>s>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := m.Decode(m.Encode(text))
		if utf8.ValidString(text) && got != spelled(text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func ExampleModel_Encode() {
	data, err := os.ReadFile("../../testdata/tiny-gemma3-q4/tokenizer.model")
	if err != nil {
		panic(err)
	}
	m, err := Parse(data)
	if err != nil {
		panic(err)
	}
	ids := m.Encode("Once upon a time")
	fmt.Println(ids, m.Decode(ids))
	// Output: [451 457 262 375] Once upon a time
}
