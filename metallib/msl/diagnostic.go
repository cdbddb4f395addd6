package msl

import (
	"fmt"
	"strings"
)

// Severity says how bad a [Diagnostic] is.
type Severity uint8

// The severities.
const (
	SeverityError Severity = iota
	SeverityWarning
	SeverityNote
)

// String is the word that compilers print.
func (s Severity) String() string {
	switch s {
	case SeverityError:
		return "error"
	case SeverityWarning:
		return "warning"
	}
	return "note"
}

// A Diagnostic is one message about a place in MSL source. Line and Column count from 1; 0 means unknown.
type Diagnostic struct {
	File         string
	Line, Column int
	Severity     Severity
	Message      string
	at           position
}

// String prints d as compilers do: file:line:column: error: message.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(d.File)
		b.WriteByte(':')
	}
	if d.Line > 0 {
		fmt.Fprintf(&b, "%d:", d.Line)
		if d.Column > 0 {
			fmt.Fprintf(&b, "%d:", d.Column)
		}
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	fmt.Fprintf(&b, "%s: %s", d.Severity, d.Message)
	return b.String()
}

// An Error is why a source did not compile: at least one diagnostic is an error.
type Error struct{ Diagnostics []Diagnostic }

// Error prints the diagnostics, one per line.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	lines := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// hasErrors tells whether one of ds is an error.
func hasErrors(ds []Diagnostic) bool {
	for _, d := range ds {
		if d.Severity == SeverityError {
			return true
		}
	}
	return false
}
