package tokenizer

import "testing"

func TestMarkers(t *testing.T) {
	var m Markers
	if at, _, size := m.Find("<a>"); at != 3 || size != 0 {
		t.Error("no marker was found:", at, size)
	}
	if _, size := m.Prefix("<a>"); size != 0 {
		t.Error("a text begins with no marker of length", size)
	}
	for i, text := range []string{"<a>", "<a>>", "<", "<bb>", "é"} {
		if id, added := m.Add(text, uint32(i)); !added || id != uint32(i) {
			t.Error(text, id, added)
		}
	}
	if first, added := m.Add("<a>", 9); added || first != 0 {
		t.Error("a second marker of the same text:", first, added)
	}
	if id, ok := m.ID("<bb>"); !ok || id != 3 {
		t.Error(id, ok)
	}
	if _, ok := m.ID("<b"); ok {
		t.Error("a part of a marker is one")
	}
	for text, want := range map[string][3]int{ // place, token, length
		"":       {0, 0, 0},
		"a":      {1, 0, 0},
		"<a>":    {0, 0, 3},
		"x<a>>>": {1, 1, 4}, // the longest
		"xx<b>":  {2, 2, 1},
		"<bb>":   {0, 3, 4},
		"a>é<":   {2, 4, 2},
		"\xa9":   {1, 0, 0}, // the end of é
	} {
		if at, id, size := m.Find(text); [3]int{at, int(id), size} != want {
			t.Errorf("%q: got %d %d %d, want %d", text, at, id, size, want)
		}
	}
}
