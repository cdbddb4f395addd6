// Package objcdouble builds a C double of the Objective-C runtime, of Foundation and of a Metal device, and runs the
// purego end of package objc against it: on this machine, and for arm64 under qemu.
//
// The tests that talk to the double are in the folder double, and in files of objc and mtl, behind the build tag objcdouble: they are
// programs of their own, since the double must be there before package objc is initialised.
package objcdouble

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/stretchr/testify/require"
)

// buildDouble compiles the double with a C compiler.
func buildDouble(t *testing.T, cc, asm string) string {
	t.Helper()
	src := filepath.Join(testenv.Root(t), "tests", "objcdouble", "src")
	files, err := filepath.Glob(filepath.Join(src, "*.c"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := filepath.Join(t.TempDir(), "libobjcdouble.so")
	args := append([]string{"-std=gnu11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-shared",
		"-pthread", "-o", out, filepath.Join(src, asm)}, files...)
	text, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", cc, text)
	return out
}

// runAgainst runs the tagged tests with the double.
func runAgainst(t *testing.T, lib, goarch string, args ...string) {
	t.Helper()
	args = append([]string{"test", "-count=1", "-tags", "objcdouble"}, args...)
	args = append(args, "./tests/objcdouble/double", "./objc", "./mtl")
	cmd := exec.Command("go", args...)
	cmd.Dir = testenv.Root(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+goarch, "OBJCDOUBLE="+lib)
	text, err := cmd.CombinedOutput()
	var told strings.Builder
	for line := range strings.Lines(string(text)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), ":"); word != "--- PASS" && !strings.HasPrefix(word, "===") {
			told.WriteString(line)
		}
	}
	require.NoError(t, err, "%s", &told)
	t.Logf("%s", &told)
}

func linuxOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the double is a Linux library")
	}
}

func TestDoubleAMD64(t *testing.T) {
	linuxOnly(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("needs an amd64 machine")
	}
	runAgainst(t, buildDouble(t, testenv.Tool(t, "gcc"), "msgsend_x86_64.S"), "amd64", "-v")
}

func TestDoubleARM64(t *testing.T) {
	linuxOnly(t)
	if runtime.GOARCH == "arm64" {
		runAgainst(t, buildDouble(t, testenv.Tool(t, "gcc"), "msgsend_aarch64.S"), "arm64", "-v")
		return
	}
	qemu := testenv.Tool(t, "qemu-aarch64")
	lib := buildDouble(t, testenv.Tool(t, "aarch64-linux-gnu-gcc"), "msgsend_aarch64.S")
	runAgainst(t, lib, "arm64", "-v", "-short", "-exec", qemu+" -L /usr/aarch64-linux-gnu")
}

// placement is where Apple's compiler puts the words of a message.
type placement struct {
	Selector string              `json:"sel"`
	Args     map[string][]string `json:"args"`
	Result   map[string]string   `json:"ret"`
}

// The committed table of placements holds what Apple's table says about every selector of the bindings.
func TestPlacementsAreApples(t *testing.T) {
	text, err := os.ReadFile(testenv.Shared(t, "reference/metal_abi_shapes.json"))
	require.NoError(t, err)
	var shapes []struct {
		ABI map[string]struct {
			Args []string `json:"args"`
			Ret  string   `json:"ret"`
		} `json:"abi"`
		Methods []string `json:"methods"`
	}
	require.NoError(t, json.Unmarshal(text, &shapes))
	apple := map[string][]placement{}
	for _, s := range shapes {
		for _, m := range s.Methods {
			p := placement{Args: map[string][]string{}, Result: map[string]string{}}
			_, p.Selector, _ = strings.Cut(m, " ")
			for arch, a := range s.ABI {
				p.Args[arch], p.Result[arch] = a.Args, a.Ret
			}
			apple[m] = append(apple[m], p)
		}
	}
	var spec struct {
		Classes []struct {
			Name    string `json:"name"`
			Methods []struct {
				Sel string `json:"sel"`
			} `json:"methods"`
		} `json:"classes"`
	}
	text, err = os.ReadFile(filepath.Join(testenv.Root(t), "mtl", "internal", "gen", "metal.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &spec))
	want := []placement{}
	seen := map[string]int{}
	for _, c := range spec.Classes {
		for _, m := range c.Methods {
			found := apple[c.Name+" "+m.Sel]
			require.Len(t, found, 1, "%s %s in Apple's table", c.Name, m.Sel)
			if at, ok := seen[m.Sel]; ok {
				require.Equal(t, want[at], found[0], "%s is placed in two ways", m.Sel)
				continue
			}
			seen[m.Sel] = len(want)
			want = append(want, found[0])
		}
	}
	path := filepath.Join("testdata", "placements.json")
	if os.Getenv("INGOT_UPDATE") != "" {
		out, err := json.MarshalIndent(want, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, append(out, '\n'), 0o644))
	}
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	var have []placement
	require.NoError(t, json.Unmarshal(text, &have))
	require.Equal(t, want, have, "run with INGOT_UPDATE=1 to write the table anew")
}
