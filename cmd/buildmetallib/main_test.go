package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
)

func Example() {
	err := run(context.Background(), []string{"verify", "testdata/scale.metallib"}, os.Stdout, io.Discard)
	fmt.Println(err)
	// Output:
	// testdata/scale.metallib: 1 functions, all well formed
	// <nil>
}

func runTool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, &out, io.Discard)
	return out.String(), err
}

func requireTools(t *testing.T) {
	t.Helper()
	testenv.Tool(t, "clang-22")
	testenv.Tool(t, "opt-22")
}

func TestVerify(t *testing.T) {
	out, err := runTool(t, "verify", "testdata/other.metallib")
	require.NoError(t, err)
	require.Equal(t, "testdata/other.metallib: 2 functions, all well formed\n", out)

	data, err := os.ReadFile("testdata/scale.metallib")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "bad.metallib")
	for name, damage := range map[string]func([]byte) []byte{
		"cut":      func(b []byte) []byte { return b[:len(b)/2] },
		"no magic": func(b []byte) []byte { return append([]byte("XXXX"), b[4:]...) },
		"code":     func(b []byte) []byte { b[len(b)-40] ^= 0xff; return b },
		"empty":    func([]byte) []byte { return nil },
	} {
		require.NoError(t, os.WriteFile(file, damage(bytes.Clone(data)), 0o644))
		_, err := runTool(t, "verify", file)
		require.Error(t, err, name)
	}
	for _, command := range []string{"verify", "inspect", "diff"} {
		_, err := runTool(t, command)
		require.ErrorContains(t, err, "usage: buildmetallib "+command)
	}
	_, err = runTool(t, "verify", "testdata/none")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestInspect(t *testing.T) {
	out, err := runTool(t, "inspect", "testdata/other.metallib")
	require.NoError(t, err)
	for _, want := range []string{"for macOS 14.0, 2 functions", "kernel scale: AIR 2.6, Metal 3.1", "function constant 4: uint steps",
		"at most 64 threads per threadgroup", "kernel extra:", "target air64-apple-macosx14.0.0"} {
		require.Contains(t, out, want)
	}
}

func TestDiff(t *testing.T) {
	out, err := runTool(t, "diff", "testdata/scale.metallib", "testdata/scale.metallib")
	require.NoError(t, err)
	require.Equal(t, "1 functions, no difference\n", out)
	out, err = runTool(t, "diff", "testdata/scale.metallib", "testdata/other.metallib")
	require.ErrorIs(t, err, errDiffer)
	require.Equal(t, strings.Join([]string{
		"extra: only in testdata/other.metallib",
		"scale: argument 00: float x buffer(0) space 1 written size 4 align 4 whole 0 | half x buffer(0) space 1 size 2 align 2 whole 0",
		"scale: argument 01: float factor buffer(1) space 2 size 4 align 4 whole 4 | float out buffer(2) space 1 written size 4 align 4 whole 0",
		"scale: constant steps: none | uint at 4",
		"scale: most threads: 0 | 64",
		"",
	}, "\n"), out)
}

func TestBuild(t *testing.T) {
	requireTools(t)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"-route", "clang", "-o", path("a.metallib"), "-info", path("a.json"), "-source", path("a.metal"), "testdata/scale.metal"}
	out, err := runTool(t, args...)
	require.NoError(t, err)
	require.Contains(t, out, "a.metallib: 1 kernels, ")
	built, err := os.ReadFile(path("a.metallib"))
	require.NoError(t, err)

	var info metallib.Info
	text, err := os.ReadFile(path("a.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &info))
	require.Equal(t, sum(built), info.SHA256)
	require.Equal(t, []string{"scale"}, info.Kernels)
	require.Equal(t, "clang", info.Route)
	require.NotEmpty(t, info.Compiler["clang"])
	require.NotEmpty(t, info.Compiler["opt"])

	// The flattened source compiles to the same library.
	flat, err := os.ReadFile(path("a.metal"))
	require.NoError(t, err)
	require.NotContains(t, string(flat), `#include "`)
	require.Equal(t, sum(flat), info.SourceSHA256)
	_, err = runTool(t, "-route", "clang", "-o", path("b.metallib"), path("a.metal"))
	require.NoError(t, err)
	again, err := os.ReadFile(path("b.metallib"))
	require.NoError(t, err)
	require.Equal(t, built, again)

	// A rebuild changes nothing, not even the time of the files.
	before, err := os.Stat(path("a.metallib"))
	require.NoError(t, err)
	_, err = runTool(t, args...)
	require.NoError(t, err)
	after, err := os.Stat(path("a.metallib"))
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())

	// Another compiler is refused, unless it is asked for.
	info.Compiler["clang"] = "21.0.0"
	text, err = json.Marshal(info)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path("a.json"), text, 0o644))
	_, err = runTool(t, args...)
	require.ErrorContains(t, err, `was built by clang clang "21.0.0"`)
	require.ErrorContains(t, err, "-upgrade")
	_, err = runTool(t, append([]string{"-upgrade"}, args...)...)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(path("a.json"), []byte("{"), 0o644))
	_, err = runTool(t, args...)
	require.ErrorContains(t, err, "a.json")
}

func TestBuildErrors(t *testing.T) {
	_, err := runTool(t, "-route", "magic", "testdata/scale.metal")
	require.ErrorContains(t, err, `route "magic" is neither clang nor xcrun`)
	_, err = runTool(t)
	require.ErrorContains(t, err, "no source files given")
	_, err = runTool(t, t.TempDir())
	require.ErrorContains(t, err, "has no .metal files")
	_, err = runTool(t, "testdata/none.metal")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = runTool(t, "-nope")
	require.Error(t, err)

	requireTools(t)
	bad := filepath.Join(t.TempDir(), "bad.metal")
	require.NoError(t, os.WriteFile(bad, []byte("kernel void k() { oops; }\n"), 0o644))
	out := filepath.Join(t.TempDir(), "out.metallib")
	_, err = runTool(t, "-route", "clang", "-o", out, bad)
	require.ErrorContains(t, err, bad+":1:19: error: use of undeclared identifier 'oops'")
	require.NoFileExists(t, out)
}

// Apple's compiler is asked for arithmetic as written.
func TestMetalArguments(t *testing.T) {
	require.Equal(t, "-isysroot SDK -std=metal3.1 -mmacosx-version-min=14.0 -fno-fast-math -ffp-contract=off -O2 -I a -DX=1",
		strings.Join(metalArguments("SDK", []string{"a"}, []string{"X=1"}), " "))
}

// The commands of the route through Xcode, with scripts in place of its tools.
func TestXcrunCommands(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	script := func(name, body string) {
		text := "#!/bin/sh\necho " + name + " \"$@\" >> " + filepath.Join(dir, "log") + "\n" + body + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	script("xcrun", `case "$*" in
"-f metal"|"-f metallib") echo `+dir+`/$2 ;;
"--sdk macosx --show-sdk-path") echo /the/sdk ;;
*) exit 1 ;;
esac`)
	script("metal", `[ "$1" = --version ] && echo "Apple metal version 1" && echo more && exit
for last; do :; done
echo air > "$last"`)
	script("metallib", `for last; do :; done
echo MTLB > "$last"`)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	b := &build{include: []string{"inc"}}
	versions, compile, err := b.xcrun(t.Context(), []string{"one.metal", "two.metal"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"metal": "Apple metal version 1"}, versions)
	library, err := compile()
	require.NoError(t, err)
	require.Equal(t, "MTLB\n", string(library))
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "metal -isysroot /the/sdk -std=metal3.1")
	require.Contains(t, string(log), "-I inc -c two.metal -o ")
	require.Equal(t, 3, strings.Count(string(log), "xcrun "))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "metal"), []byte("#!/bin/sh\necho refused >&2; exit 1\n"), 0o755))
	_, _, err = b.xcrun(t.Context(), nil)
	require.ErrorContains(t, err, "refused")
}

// The committed library is what the shaders compile to, bit for bit.
func TestDefaultLibraryIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles all shaders")
	}
	requireTools(t)
	root := testenv.Root(t)
	dir := t.TempDir()
	committed := func(name string) string { return filepath.Join(root, "metallib", name) }
	text, err := os.ReadFile(committed("default.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "default.json"), text, 0o644))
	shaders := filepath.Join(root, "shaders")
	_, err = runTool(t, "-route", "clang", "-o", filepath.Join(dir, "default.metallib"), "-info", filepath.Join(dir, "default.json"),
		"-source", filepath.Join(dir, "default.metal"), "-I", shaders, shaders)
	require.NoError(t, err)
	for _, name := range []string{"default.metal", "default.json", "default.metallib"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		have, err := os.ReadFile(committed(name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, have), "metallib/%s is not what the shaders give: run go generate ./metallib", name)
	}
	// As one string, which is what a device compiles, they give the same kernels. Their code may differ: the optimiser
	// takes functions in another order.
	_, err = runTool(t, "-route", "clang", "-o", filepath.Join(dir, "flat.metallib"), filepath.Join(dir, "default.metal"))
	require.NoError(t, err)
	out, _ := runTool(t, "diff", committed("default.metallib"), filepath.Join(dir, "flat.metallib"))
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.HasSuffix(line, "no difference") {
			require.True(t, strings.HasSuffix(line, ": the code differs, arguments and metadata are equal"), line)
		}
	}
}
