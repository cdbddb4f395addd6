package air_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/internal/appletest"
)

// functions are the functions of published libraries.
func functions(t testing.TB, files ...appletest.File) []metallib.Function {
	t.Helper()
	var fs []metallib.Function
	for _, f := range files {
		lib, err := metallib.Read(f.Data)
		require.NoError(t, err, f.Name)
		fs = append(fs, lib.Functions...)
	}
	return fs
}

// run runs one of LLVM's programs with input and returns its output.
func run(t testing.TB, input []byte, tool string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, tool), args...)
	cmd.Stdin = bytes.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	require.NoError(t, err, "%s: %s", tool, errs.String())
	return out.Bytes()
}

// disassemble is bitcode as text by llvm-dis, without the comments that name files.
func disassemble(t testing.TB, code []byte, tool string) string {
	t.Helper()
	text := string(run(t, code, tool, "-o", "-", "-"))
	return strings.TrimPrefix(text, "; ModuleID = '<stdin>'\n")
}

// disassembleAll is disassemble for many modules with one start of llvm-dis.
func disassembleAll(t testing.TB, codes [][]byte, tool string) []string {
	t.Helper()
	dir := t.TempDir()
	var args []string
	for i, code := range codes {
		args = append(args, filepath.Join(dir, fmt.Sprintf("%d.bc", i)))
		require.NoError(t, os.WriteFile(args[i], code, 0o644))
	}
	run(t, nil, tool, args...)
	texts := make([]string, len(codes))
	for i := range codes {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.ll", i)))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(text), "\n")
		texts[i] = normalise(rest)
	}
	return texts
}

var (
	structLine = regexp.MustCompile(`(?m)^(%"[^"]*"|%[-\w.$]+) = type `)
	localName  = regexp.MustCompile(`%"[^"]*"|%[-\w.$]+`)
)

// normalise renames structs by their order, since llvm-dis gives those of several files names that differ, and leaves out
// the source's name, for which it puts the file's if there is none.
func normalise(text string) string {
	if rest, ok := strings.CutPrefix(text, "source_filename = "); ok {
		_, text, _ = strings.Cut(rest, "\n")
	}
	names := map[string]string{}
	for i, m := range structLine.FindAllStringSubmatch(text, -1) {
		names[m[1]] = fmt.Sprintf("%%struct.%d", i)
	}
	if len(names) == 0 {
		return text
	}
	return localName.ReplaceAllStringFunc(text, func(s string) string {
		if n, ok := names[s]; ok {
			return n
		}
		return s
	})
}

// assemble is the bitcode of text.
func assemble(t testing.TB, text, tool string) []byte {
	t.Helper()
	return run(t, []byte(text), tool, "-o", "-", "-")
}

var blockLine = regexp.MustCompile(`^[^ ;@!%$"]+:`)

var instrLine = regexp.MustCompile(`^  (?:%\S+ = |%"[^"]*" = )?(?:(?:tail|musttail|notail) )?([a-z_]+)`)

// countOps counts functions, blocks and instructions by opcode in text by llvm-dis.
func countOps(text string) map[string]int {
	counts := map[string]int{}
	inSwitch, entry := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "define "):
			counts["(functions)"]++
			counts["(blocks)"]++
			entry = true
			continue
		case entry && blockLine.MatchString(line): // the entry block has a name
		case strings.HasPrefix(line, "declare "):
			counts["(declarations)"]++
		case inSwitch:
			inSwitch = line != "  ]" && !strings.HasPrefix(line, "  ], ")
		case strings.HasPrefix(line, "  "):
			if m := instrLine.FindStringSubmatch(line); m != nil {
				counts[m[1]]++
				inSwitch = m[1] == "switch" && strings.HasSuffix(line, "[")
			}
		case blockLine.MatchString(line) && counts["(functions)"] > 0:
			counts["(blocks)"]++
		}
		entry = false
	}
	return counts
}
