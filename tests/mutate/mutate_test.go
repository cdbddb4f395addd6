package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
)

// Every fault of the table is about a shader that is there, and finds its text in it once. Which shaders have no fault the
// program says when it runs.
func TestTableMatchesShaders(t *testing.T) {
	shaders, err := readShaders(filepath.Join(testenv.Root(t), "shaders"))
	require.NoError(t, err)
	require.NoError(t, checkFaults(shaders, allFaults()))
	require.Greater(t, len(allFaults()), 80)
}

func TestApply(t *testing.T) {
	f := fault{File: "a.metal", What: "x", Old: "i < n", New: "i <= n"}
	text, err := f.apply("for (; i < n; i++)")
	require.NoError(t, err)
	require.Equal(t, "for (; i <= n; i++)", text)
	_, err = f.apply("i < m")
	require.ErrorContains(t, err, "0 times")
	_, err = f.apply("i < n; i < n")
	require.ErrorContains(t, err, "2 times")
	_, err = (&fault{New: "x"}).apply("text")
	require.ErrorContains(t, err, "nothing is replaced")
	_, err = (&fault{Old: "x", New: "x"}).apply("x")
	require.ErrorContains(t, err, "the old one")
}

func TestCheck(t *testing.T) {
	shaders := map[string]string{"a.metal": "#include \"h.h\"\nint x;\n", "h.h": "int y;\n", "unused.h": "int z;\n"}
	good := []fault{{File: "a.metal", What: "one", Old: "x", New: "z", Tests: "X"}, {File: "h.h", What: "two", Old: "y", New: "z", Tests: "Y"}}
	require.NoError(t, check(shaders, good))
	require.ErrorContains(t, check(shaders, good[:1]), "h.h: the table has no fault")
	for want, change := range map[string]func(f *fault){
		"no such shader":         func(f *fault) { f.File = "b.metal" },
		"does not say":           func(f *fault) { f.What = "" },
		"another fault has this": func(f *fault) { f.File, f.What, f.Old = "h.h", "two", "y" },
		"0 times":                func(f *fault) { f.Old = "w" },
		"pattern \"\"":           func(f *fault) { f.Tests = "" },
		"pattern \"(\"":          func(f *fault) { f.Tests = "(" },
	} {
		bad := slices.Clone(good)
		change(&bad[0])
		slices.Reverse(bad)
		require.ErrorContains(t, check(shaders, bad), want)
	}
}

func TestDependents(t *testing.T) {
	shaders := map[string]string{
		"a.metal": "#include \"h.h\"\n", "b.metal": "#include <metal_stdlib>\n// #include \"h.h\"\n", "c.metal": "#include \"g.h\"\n",
		"h.h": "#include \"g.h\"\n", "g.h": "#include \"g.h\"\n", "unused.h": "",
	}
	require.Equal(t, []string{"a.metal", "c.metal"}, dependents(shaders, "g.h"))
	require.Equal(t, []string{"a.metal"}, dependents(shaders, "h.h"))
	require.Equal(t, []string{"b.metal"}, dependents(shaders, "b.metal"))
	require.Empty(t, dependents(shaders, "unused.h"))
}

func TestOnly(t *testing.T) {
	text := "kernel void f(\ntemplate [[host_name(\"a_1\")]] kernel k a<1>;\ntemplate [[host_name(\"a_12\")]] kernel k a<12>;\nint x;\n"
	require.Equal(t, text, only(text, regexp.MustCompile("a_")))
	require.Equal(t, "kernel void f(\ntemplate [[host_name(\"a_1\")]] kernel k a<1>;\nint x;\n", only(text, regexp.MustCompile("a_1$")))
}

// A result counts until one of the shaders that are compiled for it changes.
func TestKey(t *testing.T) {
	b := &bench{shaders: map[string]string{"a.metal": "#include \"h.h\"\n", "h.h": "x", "b.metal": "y"}}
	f := fault{File: "h.h", Old: "x", New: "z", Tests: "T"}
	key := b.key(f)
	b.shaders["b.metal"] = "changed"
	require.Equal(t, key, b.key(f))
	b.shaders["a.metal"] += "changed"
	require.NotEqual(t, key, b.key(f))
	key = b.key(f)
	f.New = "w"
	require.NotEqual(t, key, b.key(f))
	require.NotEqual(t, hash("ab", "c"), hash("a", "bc"))
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		out, line string
		exit      bool // the tests' exit status is not 0
		failed    bool
		err       string
	}{
		{out: "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n"},
		{out: "testing: warning: no tests to run\nPASS\n", err: "no test that runs"},
		{out: "=== RUN   TestA\n--- SKIP: TestA (0.00s)\nPASS\n", err: "no test that runs"},
		{out: "=== RUN   TestA\n    a_test.go:1: fine\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    b_test.go:7: element 3\n    b_test.go:9: more\n--- FAIL: TestB (0.1s)\nFAIL\n",
			exit: true, failed: true, line: "TestB: b_test.go:7: element 3"},
		{out: "=== RUN   TestB\n=== RUN   TestB/sub\n    b_test.go:7: element 3\n--- FAIL: TestB (0.1s)\n    --- FAIL: TestB/sub (0.1s)\nFAIL\n",
			exit: true, failed: true, line: "TestB: b_test.go:7: element 3"},
		{out: "=== RUN   TestB\npanic: test timed out after 1s\n", exit: true, failed: true, line: "TestB: panic: test timed out after 1s"},
		{out: "=== RUN   TestB\n--- FAIL: TestB (0.1s)\nFAIL\n", exit: true, failed: true, line: "TestB"},
		{out: "bash: no such file\n", exit: true, err: "without a verdict"},
	} {
		failed, line, err := verdict(c.out, c.exit)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.failed, failed, c.out)
		require.Equal(t, c.line, line)
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-p", "3", "-run", "rms", "-list", "-fresh", "-state", "f"})
	require.NoError(t, err)
	require.Equal(t, options{run: "rms", state: "f", parallel: 3, list: true, fresh: true}, o)
	_, err = parse([]string{"-p", "0"})
	require.ErrorContains(t, err, "at least 1")
	_, err = parse([]string{"rms"})
	require.ErrorContains(t, err, "only flags")
	require.Error(t, run(context.Background(), []string{"-run", "("}, &bytes.Buffer{}))
}

func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "results.json")
	s, err := openState(path, false)
	require.NoError(t, err)
	r := result{Killed: true, Line: "TestX: \"quoted\"", Seconds: 4}
	require.NoError(t, s.put("a", r))
	require.NoError(t, s.put("b", result{Tests: "one"}))
	again, err := openState(path, false)
	require.NoError(t, err)
	got, ok := again.get("a")
	require.True(t, ok)
	require.Equal(t, r, got)
	fresh, err := openState(path, true)
	require.NoError(t, err)
	_, ok = fresh.get("a")
	require.False(t, ok)
}

// What survived is tried again when the tests have changed, what was killed is not.
func TestKnown(t *testing.T) {
	s, err := openState(filepath.Join(t.TempDir(), "results.json"), true)
	require.NoError(t, err)
	b := &bench{shaders: map[string]string{"a.metal": "x"}, tests: "now"}
	f := fault{File: "a.metal", Old: "x", New: "y", Tests: "T"}
	known := func(r result) bool {
		require.NoError(t, s.put(b.key(f), r))
		_, ok := b.known(s, f)
		return ok
	}
	_, ok := b.known(s, f)
	require.False(t, ok)
	require.True(t, known(result{Killed: true, Tests: "before"}))
	require.True(t, known(result{Same: true}))
	require.True(t, known(result{Tests: "now"}))
	require.False(t, known(result{Tests: "before"}))
}

func TestReport(t *testing.T) {
	s, err := openState(filepath.Join(t.TempDir(), "results.json"), true)
	require.NoError(t, err)
	b := &bench{shaders: map[string]string{"a.metal": "abcdefgh"}, tests: "now"}
	f := func(old, equal string) fault {
		return fault{File: "a.metal", What: old, Old: old, New: "z", Tests: "T", Equal: equal}
	}
	put := func(f fault, r result) fault {
		r.Tests = "now"
		require.NoError(t, s.put(b.key(f), r))
		return f
	}
	good := []fault{put(f("a", ""), result{Killed: true}), put(f("b", "a proof"), result{}), put(f("c", "another"), result{Same: true})}
	var out bytes.Buffer
	require.NoError(t, report(good, s, b, &out))
	require.Contains(t, out.String(), "3 faults: 1 killed, 2 equal, 0 wrong")
	require.Contains(t, out.String(), "a proof")
	for want, wrong := range map[string]fault{
		"a.metal: d: survived":                     put(f("d", ""), result{}),
		"a.metal: e: said to be equal, but killed": put(f("e", "a proof"), result{Killed: true}),
		"a.metal: f: compiles to the same code":    put(f("f", ""), result{Same: true}),
		"a.metal: g: no result":                    f("g", ""),
	} {
		out.Reset()
		require.Error(t, report(append(slices.Clone(good), wrong), s, b, &out))
		require.Contains(t, out.String(), want)
	}
}

func TestReplace(t *testing.T) {
	lib := &metallib.Library{Functions: []metallib.Function{{Name: "a", Bitcode: []byte("1")}, {Name: "b", Bitcode: []byte("2")}}}
	require.Zero(t, replace(lib, []metallib.Function{{Name: "b", Bitcode: []byte("2")}}))
	require.Equal(t, 2, replace(lib, []metallib.Function{{Name: "b", Bitcode: []byte("3")}, {Name: "c", Bitcode: []byte("4")}}))
	require.Equal(t, "3", string(lib.Function("b").Bitcode))
	require.Equal(t, "1", string(lib.Function("a").Bitcode))
	require.Len(t, lib.Functions, 3)
}
