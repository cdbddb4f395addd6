package sentencepiece

import (
	"reflect"
	"testing"
)

// Converters write the user-defined spaces of Gemma as spaces, not as "▁".
func TestUserDefinedSpaces(t *testing.T) {
	v := small("▁", "a", "  ", "▁▁▁") // 2 …
	v.Types[4], v.Types[5] = int64(kindUserDefined), int64(kindUserDefined)
	m := mustNew(t, v)
	for text, want := range map[string][]uint32{
		"a a":       {3, 2, 3},
		"a  a":      {3, 4, 3},
		"a   a":     {3, 5, 3},
		"a     a":   {3, 5, 4, 3},
		"a    a":    {3, 5, 2, 3},
		"  a\u2581": {4, 3, 2},
	} {
		if got := m.Encode(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	if got := m.Decode([]uint32{3, 4, 5, 2}); got != "a      " {
		t.Errorf("decoded %q", got)
	}
}

// Control tokens in a text are themselves, and what follows is the beginning of a text again.
func TestMarkersInText(t *testing.T) {
	v := small("▁", "a", "<turn>", "<turn>>") // 2 …
	v.Types[4], v.Types[5] = int64(kindControl), int64(kindControl)
	for prefix, wants := range map[bool]map[string][]uint32{
		false: {"<turn>a<s>a": {4, 3, 1, 3}, "<turn>>a": {5, 3}, "a<turn>": {3, 4}, "<turn><turn>": {4, 4}, "<turn": {0}},
		true:  {"<turn>a<s>a": {4, 2, 3, 1, 2, 3}, "<turn>>a": {5, 2, 3}, "a<turn>": {2, 3, 4}, "<turn><turn>": {4, 4}, "<turn": {2, 0}},
	} {
		v.DummyPrefix = prefix
		m := mustNew(t, v)
		for text, want := range wants {
			if got := m.Encode(text); !reflect.DeepEqual(got, want) {
				t.Errorf("%q, prefix %t: got %v, want %v", text, prefix, got, want)
			}
		}
	}
}

// Some models want the space at the beginning of a text only.
func TestPrefixFirst(t *testing.T) {
	v := small("▁", "a") // 2 …
	v.DummyPrefix = true
	m := mustNew(t, v)
	m.PrefixFirst()
	for text, want := range map[string][]uint32{"a<s>a": {2, 3, 1, 3}, "<s>a<s>a": {1, 3, 1, 3}, "a": {2, 3}, "": nil} {
		if got := m.Encode(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// Without bytes, a run of characters that there is no way to spell is one unknown token, as the original library has it.
func TestUnknownRuns(t *testing.T) {
	v := small("a", "<x>")
	v.Types[3] = int64(kindUserDefined)
	m := mustNew(t, v)
	for text, want := range map[string][]uint32{"??": {0}, "a??a?": {2, 0, 2, 0}, "?<x>?": {0, 3, 0}, "?<s>?": {0, 1, 0}} {
		if got := m.Encode(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
