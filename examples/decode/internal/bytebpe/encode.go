package bytebpe

import (
	"container/heap"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Encode is the sequence of tokens that spells text. It adds no marker at the beginning or the end; added tokens in the text
// become themselves.
func (m *Model) Encode(text string) []uint32 {
	var out []uint32
	for len(text) > 0 {
		at, id, size := m.added.Find(text)
		out = m.appendPlain(out, text[:at])
		if size > 0 {
			out = append(out, id)
		}
		text = text[at+size:]
	}
	return out
}

// appendPlain spells a text without added tokens.
func (m *Model) appendPlain(out []uint32, text string) []uint32 {
	if m.nfc {
		text = norm.NFC.String(text)
	}
	var w word
	m.split.words(text, func(text string) {
		if m.wholeWords {
			if id, ok := m.ids[text]; ok {
				out = append(out, id)
				return
			}
		}
		out = w.appendTokens(out, m, text)
	})
	return out
}

// word merges the bytes of a word. Its memory serves one word after the other.
type word struct {
	symbols []symbol
	queue   queue
}

// symbol is a token in a list linked by indices. One that was joined to its left neighbour is gone.
type symbol struct {
	token      uint32
	prev, next int32
	gone       bool
}

// candidate is a pair of neighbours that a rule joins.
type candidate struct {
	rank        int
	left, right int32
	pair        [2]uint32 // tells a pair that has changed since
	token       uint32
}

type queue []candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].rank != q[j].rank {
		return q[i].rank < q[j].rank
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

func (w *word) appendTokens(out []uint32, m *Model, text string) []uint32 {
	w.symbols, w.queue = w.symbols[:0], w.queue[:0]
	for i := range len(text) {
		w.symbols = append(w.symbols, symbol{token: m.bytes[text[i]], prev: int32(i) - 1, next: int32(i) + 1})
	}
	w.symbols[len(text)-1].next = -1
	for i := range int32(len(text) - 1) {
		w.suggest(m, i, i+1)
	}
	for w.queue.Len() > 0 {
		c := heap.Pop(&w.queue).(candidate)
		left, right := &w.symbols[c.left], &w.symbols[c.right]
		if left.gone || right.gone || left.next != c.right || c.pair != [2]uint32{left.token, right.token} {
			continue
		}
		left.token, left.next, right.gone = c.token, right.next, true
		if left.next >= 0 {
			w.symbols[left.next].prev = c.left
		}
		w.suggest(m, left.prev, c.left)
		w.suggest(m, c.left, left.next)
	}
	for i := int32(0); i >= 0; i = w.symbols[i].next {
		out = append(out, w.symbols[i].token)
	}
	return out
}

// suggest queues two neighbours if a rule joins them.
func (w *word) suggest(m *Model, i, j int32) {
	if i < 0 || j < 0 {
		return
	}
	pair := [2]uint32{w.symbols[i].token, w.symbols[j].token}
	if rule, ok := m.merges[pair]; ok {
		heap.Push(&w.queue, candidate{rule.rank, i, j, pair, rule.token})
	}
}

// Decode is the text of a sequence of tokens. Control tokens and ids outside the vocabulary give nothing; bytes that are not
// UTF-8 become U+FFFD.
func (m *Model) Decode(ids []uint32) string {
	d := m.NewDecoder()
	var out strings.Builder
	for _, id := range ids {
		out.WriteString(d.Next(id))
	}
	return out.String() + d.Flush()
}
