package msl

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// clangMessage is one line of clang's output.
var clangMessage = regexp.MustCompile(`^(.*?):(\d+):(\d+):(?:\{[^ ]*\}:|)\s*(fatal error|error|warning|note): (.*)$`)

// diagnose turns what clang said into an error about the MSL source. e is nil for the preprocessor, whose positions are
// those of the source already.
func (c *compiler) diagnose(failed *toolError, e *emitted) error {
	var out []Diagnostic
	inPrelude := -1 // the error in our own headers that waits for a note in the source
	for _, line := range strings.Split(failed.Output, "\n") {
		m := clangMessage.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		d := Diagnostic{File: c.displayName(m[1]), Message: plainMessage(m[5])}
		d.Line, _ = strconv.Atoi(m[2])
		d.Column, _ = strconv.Atoi(m[3])
		switch m[4] {
		case "warning":
			d.Severity = SeverityWarning
		case "note":
			d.Severity = SeverityNote
		}
		ours := false
		if e != nil {
			if filepath.Base(m[1]) != "rewritten.cl" {
				ours = true
				d.File, d.Line, d.Column = "", 0, 0
			} else if at, ok := e.position(d.Line, d.Column); ok {
				d.at = at
			} else {
				d.File, d.Line, d.Column = c.opts.Name, 0, 0
			}
		}
		switch {
		case d.Severity == SeverityNote && inPrelude >= 0 && d.at.outLine > 0:
			out[inPrelude].at = d.at
			inPrelude = -1
		case d.Severity == SeverityNote && ours:
			// A note about our own headers says nothing to the author of the source.
		default:
			out = append(out, d)
			if d.Severity != SeverityNote {
				inPrelude = -1
				if ours {
					inPrelude = len(out) - 1
				}
			}
		}
	}
	if !hasErrors(out) {
		// A file of ours means nothing to the author of the source.
		failed.Output = strings.ReplaceAll(failed.Output, c.mainFile, c.opts.Name)
		return failed
	}
	if e != nil {
		c.sources.resolve(out)
		for i := range out {
			out[i].File = c.displayName(out[i].File)
		}
	}
	return &Error{Diagnostics: out}
}

// displayName gives the name that the caller knows a file by.
func (c *compiler) displayName(file string) string {
	if file == c.mainFile {
		return c.opts.Name
	}
	if rest, ok := strings.CutPrefix(file, c.dir+string(filepath.Separator)); ok {
		return "<" + rest + ">"
	}
	return file
}

// plainWords gives words of C++ for OpenCL and of our own functions their names in MSL.
var plainWords = strings.NewReplacer("const __constant ", "constant ", "__constant", "constant", "__global", "device", "__local", "threadgroup",
	"__private", "thread", "__bf16", "bfloat", "__msl_make", "conversion", "__msl_atomic", "atomic", "__packed<", "packed<", "__fp16", "half")

func plainMessage(s string) string { return plainWords.Replace(s) }
