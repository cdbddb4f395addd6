package tokenizer

import "slices"

// Markers are texts that are tokens of their own wherever they stand in a text, whatever rules spell the rest of it. The zero value
// has none. They are safe for concurrent use once all are added.
type Markers struct {
	ids   map[string]uint32
	sizes map[byte][]int // lengths of those that begin with a byte, longest first
}

// Add adds a marker, which is not empty. If there is one of the same text, that stays, and its id is returned.
func (m *Markers) Add(text string, id uint32) (first uint32, added bool) {
	if first, dup := m.ids[text]; dup {
		return first, false
	}
	if m.ids == nil {
		m.ids, m.sizes = map[string]uint32{}, map[byte][]int{}
	}
	m.ids[text] = id
	sizes := m.sizes[text[0]]
	at, known := slices.BinarySearchFunc(sizes, len(text), func(have, size int) int { return size - have })
	if !known {
		m.sizes[text[0]] = slices.Insert(sizes, at, len(text))
	}
	return id, true
}

// ID is the token of the marker with that text.
func (m *Markers) ID(text string) (uint32, bool) {
	id, ok := m.ids[text]
	return id, ok
}

// Prefix is the longest marker that text begins with, and its length: 0 if there is none.
func (m *Markers) Prefix(text string) (id uint32, size int) {
	if text == "" {
		return 0, 0
	}
	for _, n := range m.sizes[text[0]] {
		if n <= len(text) {
			if id, ok := m.ids[text[:n]]; ok {
				return id, n
			}
		}
	}
	return 0, 0
}

// Find is the first marker in text, the longest where several begin: where it is, its token, and its length. Without one it is
// at the end, of length 0.
func (m *Markers) Find(text string) (at int, id uint32, size int) {
	if len(m.ids) == 0 {
		return len(text), 0, 0
	}
	for i := range len(text) {
		if id, n := m.Prefix(text[i:]); n > 0 {
			return i, id, n
		}
	}
	return len(text), 0, 0
}
