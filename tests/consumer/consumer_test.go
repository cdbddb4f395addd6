// Package consumer builds a program outside the repository that imports it, as a user's would, for every system, and
// looks into the binaries: nothing but the system's base libraries on macOS, no library at all on Linux.
package consumer

import (
	"debug/elf"
	"debug/macho"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/stretchr/testify/require"
)

// module writes the consumer's module into a fresh folder.
func module(t *testing.T) string {
	t.Helper()
	root, dir := testenv.Root(t), t.TempDir()
	main, err := os.ReadFile(filepath.Join("testdata", "main.go.txt"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), main, 0o644))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
	mod := "module example.org/consumer\n\ngo 1.25\n\n" +
		"require github.com/ingot-metal/ingot v0.0.0\n\nreplace github.com/ingot-metal/ingot => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	return dir
}

func build(t *testing.T, dir, system string) string {
	t.Helper()
	goos, goarch, _ := strings.Cut(system, "/")
	out := filepath.Join(dir, goos+"-"+goarch)
	cmd := exec.Command("go", "build", "-mod=mod", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch, "GOFLAGS=", "GOWORK=off")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", system, text)
	return out
}

func TestConsumerBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds five binaries")
	}
	dir := module(t)
	for _, system := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "darwin/amd64", "windows/amd64"} {
		t.Run(system, func(t *testing.T) {
			bin := build(t, dir, system)
			switch {
			case strings.HasPrefix(system, "linux/"):
				wantStatic(t, bin)
			case strings.HasPrefix(system, "darwin/"):
				wantBaseLibraries(t, bin)
			}
		})
	}
}

// wantStatic fails unless the ELF binary needs neither a dynamic loader nor a library.
func wantStatic(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "%s asks for a dynamic loader", path)
	}
	libs, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libs)
}

// wantBaseLibraries fails if the Mach-O binary is linked with anything but what every Go program is: Metal and the
// Objective-C runtime are opened at run time.
func wantBaseLibraries(t *testing.T, path string) {
	t.Helper()
	f, err := macho.Open(path)
	require.NoError(t, err)
	defer f.Close()
	libs, err := f.ImportedLibraries()
	require.NoError(t, err)
	for _, lib := range libs {
		require.Contains(t, []string{"/usr/lib/libSystem.B.dylib", "/usr/lib/libresolv.9.dylib"}, lib)
	}
}

// The program itself runs on the system at hand.
func TestConsumerRuns(t *testing.T) {
	dir := module(t)
	cmd := exec.Command("go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "argmax 2")
}
