// Package release follows docs/release.md to the letter and looks into the binaries that come out.
package release

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/stretchr/testify/require"
)

// TestRecipe runs the recipe for a program of a user's and for the example.
func TestRecipe(t *testing.T) {
	if os.Getenv("INGOT_RELEASE") == "" {
		t.Skip("builds ten binaries: set INGOT_RELEASE=1")
	}
	testenv.Tool(t, "llvm-lipo-22")
	root := testenv.Root(t)
	for name, dir := range map[string]string{"nn-only": userProgram(t, root), "decode": filepath.Join(root, "examples", "decode")} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			cmd := exec.Command("sh", "-c", recipe(t, root))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "name="+name, "out="+out, "GOFLAGS=", "GOWORK=off")
			text, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", text)
			file := func(system string) string { return filepath.Join(out, name+"-"+system) }

			arm, amd := file("darwin-arm64"), file("darwin-amd64")
			wantMac(t, arm, macho.CpuArm64)
			wantMac(t, amd, macho.CpuAmd64)
			wantLinux(t, file("linux-arm64"), elf.EM_AARCH64)
			wantLinux(t, file("linux-amd64"), elf.EM_X86_64)
			wantWindows(t, file("windows-amd64.exe"))
			wantUniversal(t, file("darwin-universal"), arm, amd)
			wantSums(t, out, name+".sha256", 6)
		})
	}
}

// recipe is the shell text of docs/release.md.
func recipe(t *testing.T, root string) string {
	text, err := os.ReadFile(filepath.Join(root, "docs", "release.md"))
	require.NoError(t, err)
	parts := strings.Split(string(text), "```")
	require.Len(t, parts, 3, "one block of code")
	script, ok := strings.CutPrefix(parts[1], "sh\n")
	require.True(t, ok, "it is for sh")
	return script
}

// userProgram is a module outside the repository whose program imports nothing of it but runtime and nn.
func userProgram(t *testing.T, root string) string {
	dir := t.TempDir()
	for from, to := range map[string]string{"tests/consumer/testdata/main.go.txt": "main.go", "go.sum": "go.sum"} {
		data, err := os.ReadFile(filepath.Join(root, from))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), data, 0o644))
	}
	mod := fmt.Sprintf("module example.org/program\n\ngo 1.25\n\nrequire github.com/ingot-metal/ingot v0.0.0\n\nreplace github.com/ingot-metal/ingot => %s\n", root)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	cmd := exec.Command("go", "mod", "tidy")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return dir
}

// size reports a binary's size in the test's output.
func size(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	t.Logf("%-28s %6.2f MB", filepath.Base(file), float64(info.Size())/1e6)
}

func wantMac(t *testing.T, file string, cpu macho.Cpu) {
	size(t, file)
	f, err := macho.Open(file)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, cpu, f.Cpu)
	require.Equal(t, macho.TypeExec, f.Type)
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	for _, l := range libraries {
		require.True(t, strings.HasPrefix(l, "/usr/lib/") || strings.HasPrefix(l, "/System/Library/Frameworks/"), l)
	}
	if cpu == macho.CpuArm64 {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, checkAdHoc(data))
		// The check is one: a changed byte is noticed.
		data[len(data)/2] ^= 1
		require.ErrorContains(t, checkAdHoc(data), "has another hash")
	}
}

func wantLinux(t *testing.T, file string, machine elf.Machine) {
	size(t, file)
	f, err := elf.Open(file)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, machine, f.Machine)
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "%s is dynamically linked", file)
	}
}

func wantWindows(t *testing.T, file string) {
	size(t, file)
	f, err := pe.Open(file)
	require.NoError(t, err)
	defer f.Close()
	require.EqualValues(t, pe.IMAGE_FILE_MACHINE_AMD64, f.Machine)
}

// wantUniversal wants the two binaries in one file, each byte for byte, so that signatures hold.
func wantUniversal(t *testing.T, file, arm, amd string) {
	size(t, file)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	f, err := macho.NewFatFile(bytes.NewReader(data))
	require.NoError(t, err)
	defer f.Close()
	single := map[macho.Cpu]string{macho.CpuArm64: arm, macho.CpuAmd64: amd}
	require.Len(t, f.Arches, len(single))
	for _, a := range f.Arches {
		want, err := os.ReadFile(single[a.Cpu])
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, data[a.Offset:a.Offset+a.Size]), a.Cpu.String())
	}
}

func wantSums(t *testing.T, dir, list string, n int) {
	text, err := os.ReadFile(filepath.Join(dir, list))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, n)
	for _, line := range lines {
		sum, name, ok := strings.Cut(line, "  ")
		require.True(t, ok, line)
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		have := sha256.Sum256(data)
		require.Equal(t, sum, hex.EncodeToString(have[:]), name)
	}
}
