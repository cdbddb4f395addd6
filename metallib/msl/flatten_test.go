package msl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree writes files into a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(data), 0o644))
	}
	return dir
}

func TestFlatten(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.metal":      "#include \"once.h\"\n#include <metal_stdlib>\nint a;\n",
		"b.metal":      "// b\n  #  include \"guard.h\" // why\n#include \"sub/plain.h\"\n#include <metal_stdlib>\r\n#include \"once.h\"\nint b;",
		"once.h":       "#pragma once\n#include <metal_stdlib>\nint once;\n",
		"guard.h":      "// text\n#ifndef G\n#define G\n#include \"once.h\"\nint guard;\n#endif\n",
		"sub/plain.h":  "#include \"near.h\"\n#include \"far.h\"\n",
		"sub/near.h":   "int near;\n",
		"other/far.h":  "int far;\n",
		"other/skip.h": "int skip;\n",
	})
	join := func(names ...string) (out []string) {
		for _, n := range names {
			out = append(out, filepath.Join(dir, n))
		}
		return out
	}
	got, err := Flatten(join("a.metal", "b.metal"), join("other"))
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{
		`#line 1 "a.metal"`, `#line 1 "once.h"`, ``, `#include <metal_stdlib>`, `int once;`, `#line 2 "a.metal"`, ``, `int a;`,
		`#line 1 "b.metal"`, `// b`, `#line 1 "guard.h"`, `// text`, `#ifndef G`, `#define G`, `#line 5 "guard.h"`, `int guard;`, `#endif`,
		`#line 3 "b.metal"`, `#line 1 "plain.h"`, `#line 1 "near.h"`, `int near;`, `#line 2 "plain.h"`, `#line 1 "far.h"`, `int far;`, `#line 3 "plain.h"`,
		`#line 4 "b.metal"`, ``, `#line 6 "b.metal"`, `int b;`, ``,
	}, "\n"), got)
}

func TestFlattenErrors(t *testing.T) {
	dir := tree(t, map[string]string{
		"missing.metal": "\n#include \"nowhere.h\"\n",
		"loop.metal":    "#include \"loop.h\"\n",
		"loop.h":        "#include \"back.h\"\n",
		"back.h":        "#include \"loop.h\"\n",
	})
	_, err := Flatten([]string{filepath.Join(dir, "missing.metal")}, nil)
	require.ErrorContains(t, err, `missing.metal:2: "nowhere.h" is not found`)
	_, err = Flatten([]string{filepath.Join(dir, "loop.metal")}, nil)
	require.ErrorContains(t, err, "includes itself")
	_, err = Flatten([]string{filepath.Join(dir, "none.metal")}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}
