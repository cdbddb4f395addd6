package msl

import (
	"strconv"
	"strings"
)

// A kind says what a token is.
type kind uint8

const (
	identifier kind = iota
	number
	text // string or character literal
	punct
	directive // a whole line that begins with #
)

// A token is one token of preprocessed source.
type token struct {
	kind kind
	text string
	// at is where the token came from.
	at position
	// space is set when white space comes before the token.
	space bool
}

// A position is a place in preprocessed text, and the line of the source that the line markers say it came from.
type position struct {
	file string
	line int
	// outLine and outColumn are the place in the preprocessed text, counted from 1.
	outLine, outColumn int
}

func (t token) is(s string) bool { return t.text == s && t.kind != text }

// keyword tells whether t is the identifier s.
func (t token) keyword(s string) bool { return t.kind == identifier && t.text == s }

// tokenize splits preprocessed text. Line markers (# 12 "file") set the position of what follows and are dropped; other
// directives (#pragma) become tokens. Comments are white space, though a preprocessor leaves none.
func tokenize(src, file string) ([]token, []Diagnostic) {
	z := &tokenizer{src: src, pos: position{file: file, line: 1, outLine: 1, outColumn: 1}, lineStart: true}
	for z.i < len(z.src) {
		z.next()
	}
	return z.tokens, z.errors
}

type tokenizer struct {
	src       string
	i         int
	pos       position
	lineStart bool
	space     bool
	tokens    []token
	errors    []Diagnostic
}

func (z *tokenizer) fail(at position, message string) {
	z.errors = append(z.errors, Diagnostic{Severity: SeverityError, Message: message, at: at})
}

// skip moves over n bytes and keeps the position up to date.
func (z *tokenizer) skip(n int) {
	for ; n > 0; n-- {
		if z.src[z.i] == '\n' {
			z.pos.line++
			z.pos.outLine++
			z.pos.outColumn = 1
			z.lineStart = true
		} else {
			z.pos.outColumn++
		}
		z.i++
	}
}

func (z *tokenizer) emit(k kind, n int) {
	z.tokens = append(z.tokens, token{kind: k, text: z.src[z.i : z.i+n], at: z.pos, space: z.space})
	z.lineStart = false
	z.space = false
	z.skip(n)
}

func (z *tokenizer) next() {
	rest := z.src[z.i:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
		z.space = true
		z.skip(1)
	case strings.HasPrefix(rest, "\\\n"):
		z.space = true
		start := z.lineStart
		z.skip(2)
		z.lineStart = start
	case strings.HasPrefix(rest, "//"):
		n := strings.IndexByte(rest, '\n')
		if n < 0 {
			n = len(rest)
		}
		z.space = true
		z.skip(n)
	case strings.HasPrefix(rest, "/*"):
		n := strings.Index(rest[2:], "*/")
		if n < 0 {
			z.fail(z.pos, "comment without an end")
			z.skip(len(rest))
			return
		}
		start := z.lineStart
		z.space = true
		z.skip(n + 4)
		z.lineStart = start
	case c == '#' && z.lineStart:
		z.directive()
	case c == '"' || c == '\'':
		z.literal(c)
	case isLetter(c):
		n := 1
		for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n])) {
			n++
		}
		z.emit(identifier, n)
	case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
		z.emit(number, numberLength(rest))
	case !strings.ContainsRune("{}[]()<>;:,.?!~+-*/%&|^=", rune(c)):
		z.fail(z.pos, "stray "+strconv.QuoteRune(rune(c)))
		z.skip(1)
	default:
		z.emit(punct, punctLength(rest))
	}
}

// directive reads a line that begins with #; a backslash at its end continues it.
func (z *tokenizer) directive() {
	rest := z.src[z.i:]
	n := 0
	for n < len(rest) && (rest[n] != '\n' || n > 0 && rest[n-1] == '\\') {
		n++
	}
	line := rest[:n]
	if file, number, ok := lineMarker(line); ok {
		z.skip(n)
		if z.i < len(z.src) {
			z.skip(1)
		}
		z.pos.file, z.pos.line = file, number
		return
	}
	if strings.HasSuffix(line, "\\") {
		z.fail(z.pos, "directive without an end")
	}
	z.emit(directive, n)
	last := &z.tokens[len(z.tokens)-1]
	last.text = strings.ReplaceAll(last.text, "\\\n", " ")
}

// lineMarker reads the preprocessor's `# 12 "file" flags` and `#line 12 "file"`.
func lineMarker(line string) (file string, number int, ok bool) {
	line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	line = strings.TrimSpace(strings.TrimPrefix(line, "line"))
	digits := 0
	for digits < len(line) && isDigit(line[digits]) {
		digits++
	}
	number, err := strconv.Atoi(line[:digits])
	if err != nil {
		return "", 0, false
	}
	line = strings.TrimSpace(line[digits:])
	if !strings.HasPrefix(line, `"`) {
		return "", 0, false
	}
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
		case line[i] == '"':
			return b.String(), number, true
		default:
			b.WriteByte(line[i])
		}
	}
	return "", 0, false
}

func (z *tokenizer) literal(quote byte) {
	rest := z.src[z.i:]
	for n := 1; n < len(rest); n++ {
		switch rest[n] {
		case '\\':
			n++
		case '\n':
			z.fail(z.pos, "literal without an end")
			z.emit(text, n)
			return
		case quote:
			z.emit(text, n+1)
			return
		}
	}
	z.fail(z.pos, "literal without an end")
	z.emit(text, len(rest))
}

// numberLength is the length of a preprocessing number: digits, letters, dots, ' between digits, and signs after an
// exponent's letter.
func numberLength(s string) int {
	hex := len(s) > 1 && (s[1] == 'x' || s[1] == 'X')
	n := 1
	for n < len(s) {
		c, last := s[n], s[n-1]
		switch {
		case isLetter(c) || isDigit(c) || c == '.':
		case c == '\'' && n+1 < len(s) && (isLetter(s[n+1]) || isDigit(s[n+1])):
		case (c == '+' || c == '-') && (last == 'p' || last == 'P' || !hex && (last == 'e' || last == 'E')):
		default:
			return n
		}
		n++
	}
	return n
}

var punctuators = []string{"<<=", "...", "->*", "<=>", "::", "->", "<<", "<=", ">=", "==", "!=", "&&", "||", "++", "--",
	"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", ".*"}

// punctLength does not join >> : it would hide the ends of two template argument lists. The output joins them again,
// since they stay without white space between them.
func punctLength(s string) int {
	for _, p := range punctuators {
		if strings.HasPrefix(s, p) {
			return len(p)
		}
	}
	return 1
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
