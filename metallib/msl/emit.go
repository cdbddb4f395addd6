package msl

import (
	"sort"
	"strings"
)

// An emitted text is the rewritten source, with the way back from its lines and columns to where each token came from.
type emitted struct {
	text  string
	lines [][]mark // by line, in order of column
}

// A mark says which token begins at a column.
type mark struct {
	column int
	at     position
}

// emit prints tokens. A token of a new line begins a line, so that lines stay short enough to find one's way.
func emit(ts []token) *emitted {
	e := &emitted{lines: [][]mark{nil, nil}}
	var b strings.Builder
	column, line := 1, 0
	newline := func() {
		b.WriteByte('\n')
		e.lines = append(e.lines, nil)
		column = 1
	}
	for i, t := range ts {
		switch {
		case i == 0:
		case t.kind == directive || ts[i-1].kind == directive || t.at.outLine > line:
			newline()
		case t.space || glues(ts[i-1], t):
			b.WriteByte(' ')
			column++
		}
		line = max(line, t.at.outLine)
		b.WriteString(t.text)
		last := len(e.lines) - 1
		e.lines[last] = append(e.lines[last], mark{column: column, at: t.at})
		column += len(t.text)
	}
	b.WriteByte('\n')
	e.text = b.String()
	return e
}

// position is where a line and column of the emitted text came from: the token there, and how far into or behind it.
func (e *emitted) position(line, column int) (position, bool) {
	if line < 1 || line >= len(e.lines) {
		return position{}, false
	}
	marks := e.lines[line]
	i := sort.Search(len(marks), func(i int) bool { return marks[i].column > column }) - 1
	if i < 0 {
		return position{}, false
	}
	at := marks[i].at
	at.outColumn += column - marks[i].column
	return at, true
}
