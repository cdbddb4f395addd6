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
)

// Libraries that Apple's compiler made, as published.
const (
	llama, llamaSum     = "llama.rn@0.3.11", "e0cec81b87fa4889d9fc81049bae66761787d0ee939ef3e42b6985288ced0e88"
	llamaMember         = "package/cpp/ggml-llama.metallib"
	whisper, whisperSum = "whisper.rn@0.4.3", "e5020de11ec994842c290d4693091dffc510f349fe5c5062eba26fdfec58773e"
	whisperMember       = "package/cpp/ggml-whisper.metallib"
)

// appleFunctions are the functions of a published library.
func appleFunctions(t testing.TB, pkg, sum, member string) []metallib.Function {
	t.Helper()
	lib, err := metallib.Read(testenv.NPM(t, pkg, sum, member))
	require.NoError(t, err)
	return lib.Functions
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
		texts[i] = numberStructs(rest)
	}
	return texts
}

var (
	structLine = regexp.MustCompile(`(?m)^(%"[^"]*"|%[-\w.$]+) = type `)
	localName  = regexp.MustCompile(`%"[^"]*"|%[-\w.$]+`)
)

// numberStructs renames structs by their order, since llvm-dis gives those of several files names that differ.
func numberStructs(text string) string {
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
