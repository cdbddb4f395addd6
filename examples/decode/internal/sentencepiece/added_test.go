package sentencepiece

import (
	"reflect"
	"strings"
	"testing"
)

func TestAdd(t *testing.T) {
	v := small("▁", "a", "reserved", "b") // 2 …
	m := mustNew(t, v)
	err := m.Add([]Added{{9, "<turn>", true}, {8, "<tool>", false}, {4, "<start>", true}, {5, "b", false}, {1, "<s>", true}})
	if err != nil || m.Len() != 10 {
		t.Fatal(m.Len(), err)
	}
	for text, want := range map[string][]uint32{"a<turn>a": {3, 9, 3}, "<tool><start>": {8, 4}, "<s>ab": {1, 3, 5}} {
		if got := m.Encode(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	if got := m.Decode([]uint32{3, 9, 8, 7, 6, 4, 1, 5}); got != "a<tool>b" {
		t.Errorf("decoded %q", got)
	}
	for _, c := range []struct {
		added Added
		want  string
	}{
		{Added{20, "", true}, "the added token 20 is empty"},
		{Added{20, strings.Repeat("a", maxPieceBytes+1), true}, "the added token 20 has 4097 bytes"},
		{Added{maxPieces, "x", true}, "the added token 2097152: the limit is"},
		{Added{20, "<turn>", true}, `the added tokens 9 and 20 are both "<turn>"`},
	} {
		if err := m.Add([]Added{c.added}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}
