package sentencepiece

import (
	"container/heap"
	"strings"
	"unicode/utf8"
)

// space is how pieces spell a space: "▁", U+2581.
const space = "\u2581"

func unescape(text string) string { return strings.ReplaceAll(text, space, " ") }

// Encode is the sequence of tokens that spells text. It adds no marker at the beginning or the end; control tokens in the text
// become themselves. A model that wants a space before a text gets one at the beginning, and after each of them unless PrefixFirst
// was called, where there is something to spell. Bytes that are not UTF-8 count as U+FFFD each.
func (m *Model) Encode(text string) []uint32 {
	var out []uint32
	for first := true; len(text) > 0; first = false {
		at, id, size := m.markers.Find(text)
		if at > 0 {
			out = m.appendPlain(out, text[:at], m.dummyPrefix && (first || !m.prefixFirst))
		}
		if size > 0 {
			out = append(out, id)
		}
		text = text[at+size:]
	}
	return out
}

// appendPlain spells a text without control tokens, with a space before it or not.
func (m *Model) appendPlain(out []uint32, text string, prefix bool) []uint32 {
	if prefix {
		text = " " + text
	}
	e := encoder{m: m, symbols: m.split(escape(text)), parts: map[string][2]string{}}
	e.merge()
	for i := 0; i >= 0 && i < len(e.symbols); i = e.symbols[i].next {
		out = e.appendTokens(out, e.symbols[i].text)
	}
	return out
}

// escape spells text as pieces do.
func escape(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/2)
	for _, r := range text {
		if r == ' ' {
			b.WriteString(space)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// symbol is a stretch of the text, one character at first, in a list linked by indices. The text of a symbol that was
// merged into its left neighbour is empty.
type symbol struct {
	text       string
	prev, next int
	fixed      bool // a user-defined symbol never merges
}

// split cuts text into user-defined symbols, the longest where several begin, and single characters between them.
func (m *Model) split(text string) []symbol {
	var out []symbol
	for len(text) > 0 {
		_, n := m.userDefined.Prefix(text)
		fixed := n > 0
		if !fixed {
			_, n = utf8.DecodeRuneInString(text)
		}
		out = append(out, symbol{text: text[:n], prev: len(out) - 1, next: len(out) + 1, fixed: fixed})
		text = text[n:]
	}
	if len(out) > 0 {
		out[len(out)-1].next = -1
	}
	return out
}

// candidate is a pair of neighbours that may merge.
type candidate struct {
	left, right int
	size        int // of the merged text: tells a pair that has changed since
	score       float32
}

type queue []candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].score != q[j].score {
		return q[i].score > q[j].score
	}
	return q[i].left < q[j].left
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(candidate)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

type encoder struct {
	m       *Model
	symbols []symbol
	queue   queue
	parts   map[string][2]string // what an unused piece was merged from
}

func (e *encoder) merge() {
	for i := range e.symbols {
		e.suggest(i, e.symbols[i].next)
	}
	for e.queue.Len() > 0 {
		c := heap.Pop(&e.queue).(candidate)
		left, right := &e.symbols[c.left], &e.symbols[c.right]
		if left.text == "" || right.text == "" || left.next != c.right || len(left.text)+len(right.text) != c.size {
			continue
		}
		left.text += right.text
		right.text = ""
		left.next = right.next
		if right.next >= 0 {
			e.symbols[right.next].prev = c.left
		}
		e.suggest(left.prev, c.left)
		e.suggest(c.left, left.next)
	}
}

// suggest queues two neighbours if they make a piece.
func (e *encoder) suggest(i, j int) {
	if i < 0 || j < 0 || e.symbols[i].fixed || e.symbols[j].fixed {
		return
	}
	left, right := e.symbols[i].text, e.symbols[j].text
	text := left + right
	id, ok := e.m.ids[text]
	if !ok {
		return
	}
	p := &e.m.pieces[id]
	if p.kind == kindUnused {
		e.parts[text] = [2]string{left, right}
	}
	heap.Push(&e.queue, candidate{i, j, len(text), p.score})
}

// appendTokens spells one final symbol: by its piece; by its parts if that is one of the unused, which exist for merging
// only; by its bytes if there is no piece.
func (e *encoder) appendTokens(out []uint32, text string) []uint32 {
	id, ok := e.m.userDefined.ID(text)
	if !ok {
		id, ok = e.m.ids[text]
	}
	if ok && e.m.pieces[id].kind == kindUnused {
		if p, split := e.parts[text]; split {
			return e.appendTokens(e.appendTokens(out, p[0]), p[1])
		}
	}
	switch {
	case ok:
		return append(out, id)
	case e.m.byteFallback:
		for _, b := range []byte(text) {
			out = append(out, e.m.bytes[b])
		}
		return out
	case len(out) > 0 && out[len(out)-1] == e.m.unknown && e.m.pieces[e.m.unknown].kind == kindUnknown:
		return out // a run of unknown characters is one token
	}
	return append(out, e.m.unknown)
}
