package msl

import "strings"

// A sourceMap finds columns of the source again: a preprocessor keeps lines but not columns, since it drops comments,
// spaces and macros.
type sourceMap struct {
	// read gives the text of a source file, "" if it is not known.
	read func(file string) string
	// preprocessed are the lines of the preprocessor's output.
	preprocessed []string
	files        map[string][]string
}

func newSourceMap(preprocessed string, read func(string) string) *sourceMap {
	return &sourceMap{read: read, preprocessed: strings.Split(preprocessed, "\n"), files: map[string][]string{}}
}

// column is the column in the source of a position in the preprocessed text, 0 if the line is not known. A token that
// came out of a macro is where the macro's name is.
func (m *sourceMap) column(p position) int {
	lines, ok := m.files[p.file]
	if !ok {
		lines = strings.Split(m.read(p.file), "\n")
		m.files[p.file] = lines
	}
	if p.line < 1 || p.line > len(lines) || p.outLine < 1 || p.outLine > len(m.preprocessed) {
		return 0
	}
	source, _ := tokenize(lines[p.line-1], "")
	output, _ := tokenize(m.preprocessed[p.outLine-1], "")
	if len(source) == 0 {
		return 0
	}
	want := -1
	for i, t := range output {
		if t.at.outColumn <= p.outColumn {
			want = i
		}
	}
	if want < 0 {
		return source[0].at.outColumn
	}
	from := source[align(source, output)[want]]
	if from.text != output[want].text {
		return from.at.outColumn
	}
	return from.at.outColumn + p.outColumn - output[want].at.outColumn
}

// align finds, for each token of the output, the token of the source that it is or came from: the longest common
// subsequence, and between its members the source token after the last member.
func align(source, output []token) []int {
	n, m := len(source), len(output)
	if n*m > 1<<22 {
		return make([]int, m)
	}
	// best[i][j] is the length of the longest common subsequence of source[i:] and output[j:].
	best := make([][]int32, n+1)
	for i := range best {
		best[i] = make([]int32, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if source[i].text == output[j].text {
				best[i][j] = best[i+1][j+1] + 1
			} else {
				best[i][j] = max(best[i+1][j], best[i][j+1])
			}
		}
	}
	at := make([]int, m)
	i := 0
	for j := range output {
		for i < n && source[i].text != output[j].text && best[i+1][j] > best[i][j+1] {
			i++
		}
		if i < n && source[i].text == output[j].text {
			at[j] = i
			i++
			continue
		}
		at[j] = min(i, n-1)
	}
	return at
}

// resolve fills in the file, line and column of diagnostics from their positions.
func (m *sourceMap) resolve(ds []Diagnostic) {
	for i, d := range ds {
		if d.at.outLine == 0 {
			continue
		}
		ds[i].File, ds[i].Line, ds[i].Column = d.at.file, d.at.line, m.column(d.at)
	}
}
