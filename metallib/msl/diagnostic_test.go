package msl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
)

// requireTools skips a test where the compiler is not installed.
func requireTools(t testing.TB) {
	t.Helper()
	testenv.Tool(t, clangName)
	testenv.Tool(t, optName)
}

// Mistakes are reported at the place in the MSL source where they are, whatever the preprocessor and the rewriter did to
// the line.
func TestErrorPositions(t *testing.T) {
	requireTools(t)
	const head = "#include <metal_stdlib>\nusing namespace metal;\n"
	for _, c := range []struct{ name, src, want string }{
		{"unknown name", head + "kernel void k(device float* x [[buffer(0)]]) {\n  /* a comment */ x[0]   = y;\n}",
			"program_source:4:28: error: use of undeclared identifier 'y'"},
		{"after a vector constructor", head + "kernel void k(device float4* x [[buffer(0)]]) {\n  x[0] = float4(1, 2, 3, 4) + nope;\n}",
			"program_source:4:31: error: use of undeclared identifier 'nope'"},
		{"in a macro", head + "#define TWICE(a) ((a) + (a))\nkernel void k(device float* x [[buffer(0)]]) {\n  x[0] = 1 + TWICE(z);\n}",
			"program_source:5:20: error: use of undeclared identifier 'z'"},
		{"in a macro's body", head + "#define BAD (1 + missing)\nkernel void k(device float* x [[buffer(0)]]) {\n  x[0] = BAD;\n}",
			"program_source:5:10: error: use of undeclared identifier 'missing'"},
		{"syntax", head + "kernel void k(device float* x [[buffer(0)]]) {\n  x[0] = 1\n}",
			"program_source:4:11: error: expected ';' after expression"},
		{"words of MSL in messages", head + "void f(device float* x);\nkernel void k(threadgroup float* x [[threadgroup(0)]]) { f(x); }",
			"program_source:4:58: error: no matching function for call to 'f'"},
		{"in the standard library", head + "kernel void k(device float4* x [[buffer(0)]]) { x[0] = float4(float2(1, 2)); }",
			"program_source:3:56: error: static assertion failed due to requirement '2 == 4': a vector is converted to one of another length"},
		{"preprocessor", "#include \"nowhere.h\"\n", "program_source:1:10: fatal error: 'nowhere.h' file not found"},
		{"#error", "\n  #error no\n", "program_source:2:4: error: no"},
		{"rewriter", head + "kernel void k() {\n  threadgroup float x = 3;\n}", "program_source:4:23: error: threadgroup variable x cannot have an initial value"},
		{"zero byte", head + "kernel void k() {\n  \x00\n}", "program_source:4:3: error: a zero byte in the source"},
		{"UTF-16", "\xff\xfek\x00", "program_source:1:1: error: the source is UTF-16 or UTF-32; UTF-8 is needed"},
		{"UTF-16, the other way round", "\xfe\xff\x00k", "program_source:1:1: error: the source is UTF-16 or UTF-32; UTF-8 is needed"},
		{"UTF-32", "\x00\x00\xfe\xff", "program_source:1:1: error: the source is UTF-16 or UTF-32; UTF-8 is needed"},
		{"mark in the middle", head + "\ufeffint a;", "program_source:3:1: error: unexpected character <U+FEFF>"},
		{"static kernel", head + "static kernel void k(device int* a [[buffer(0)]]) { }", "program_source:3:8: error: a kernel that is static: the library would not have it"},
		{"static after", head + "kernel static void k(device int* a [[buffer(0)]]) { }", "program_source:3:1: error: a kernel that is static: the library would not have it"},
		{"static attribute", head + "[[kernel]] static void k(device int* a [[buffer(0)]]) { }", "program_source:3:3: error: a kernel that is static: the library would not have it"},
		{"inline kernel", head + "inline kernel void k(device int* a [[buffer(0)]]) { }", "program_source:3:8: error: a kernel that is inline: the library would not have it"},
		{"unnamed namespace", head + "namespace a { namespace { kernel void k(device int* a [[buffer(0)]]) { } } }",
			"program_source:3:27: error: a kernel that is in a namespace without a name: the library would not have it"},
		{"tokens", head + "int a = @;", "program_source:3:9: error: stray '@'"},
		{"parameter without attribute", head + "\nkernel void k(uint i) { }", "program_source:4:1: error: kernel k: parameter i is neither a buffer nor a built-in: it needs an attribute"},
		{"same index", head + "kernel void k(device int* a [[buffer(1)]], device int* b [[buffer(1)]]) { }",
			"program_source:3:1: error: kernel k: parameters a and b have the same index 1"},
		{"index", head + "kernel void k(device int* a [[buffer(31)]]) { }", "program_source:3:1: error: kernel k: parameter a has index 31: indices are 0 to 30"},
		{"negative index", head + "kernel void k(device int* a [[buffer(-1)]]) { }", "program_source:3:1: error: kernel k: parameter a has index -1: indices are 0 to 30"},
		{"negative threadgroup index", head + "kernel void k(threadgroup int* a [[threadgroup(-3)]]) { }",
			"program_source:3:1: error: kernel k: parameter a has index -3: indices are 0 to 30"},
		{"index that wraps", head + "kernel void k(device int* a [[buffer(4294967296)]]) { }",
			"program_source:3:38: error: constant expression evaluates to 4294967296 which cannot be narrowed to type 'int' [-Wc++11-narrowing]"},
		{"index with a fraction", head + "kernel void k(device int* a [[buffer(1.5)]]) { }",
			"program_source:3:38: error: type 'float' cannot be narrowed to 'int' in initializer list [-Wc++11-narrowing]"},
		{"buffer as threadgroup memory", head + "kernel void k(device int* a [[threadgroup(0)]]) { }",
			"program_source:3:1: error: kernel k: parameter a points to device memory: it cannot be threadgroup"},
		{"threadgroup memory as buffer", head + "kernel void k(threadgroup int* a [[buffer(0)]]) { }",
			"program_source:3:1: error: kernel k: parameter a points to threadgroup memory: it cannot be buffer"},
		{"buffer as built-in", head + "kernel void k(constant int* a [[threads_per_grid]]) { }",
			"program_source:3:1: error: kernel k: parameter a points to constant memory: it cannot be threads_per_grid"},
		{"built-in of another type", head + "kernel void k(float3 a [[thread_position_in_grid]]) { }",
			"program_source:3:1: error: kernel k: parameter a is of type float3: thread_position_in_grid is a uint or ushort, or a vector of two or three"},
		{"result", head + "kernel int k() { return 1; }", "program_source:3:1: error: kernel k returns int: a kernel returns void"},
		{"no threads", head + "[[max_total_threads_per_threadgroup(0)]] kernel void k() { }",
			"program_source:3:3: error: kernel k: max_total_threads_per_threadgroup is 0: it is 1 to 1024"},
		{"host_name", head + "template <typename T> kernel void k(device T* a [[buffer(0)]]) { }\ntemplate kernel void k<int>(device int*);",
			`program_source:3:1: error: kernel k<int> is an instance of a template and needs a name: [[host_name("…")]]`},
		{"thread memory", head + "kernel void k(thread int* a [[buffer(0)]]) { }", "program_source:3:1: error: kernel k: parameter a points to memory of its own thread"},
		{"undefined function", head + "float f(float);\nkernel void k(device float* a [[buffer(0)]]) { a[0] = f(1); }", "program_source:4:1: error: kernel k: function _Z1ff is declared and defined nowhere"},
		{"recursion", head + "float f(float x) { return x > 1 ? f(x / 2) * f(x - 1) : x; }\nkernel void k(device float* a [[buffer(0)]]) { a[0] = f(a[1]); }",
			"program_source:4:1: error: kernel k: function _Z1ff calls itself: recursion is not supported"},
		{"two kernels of one name", head + "template <typename T> kernel void k(device T* a [[buffer(0)]]) { }\ntemplate [[host_name(\"a\")]] kernel void k<int>(device int*);\ntemplate [[host_name(\"a\")]] kernel void k<float>(device float*);",
			"program_source:3:1: error: two kernels are called a (_Z1kIiEvPU3AS1T_ and _Z1kIfEvPU3AS1T_)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(t.Context(), c.src, Options{})
			var failed *Error
			require.ErrorAs(t, err, &failed)
			require.Contains(t, strings.Split(strings.ReplaceAll(err.Error(), "fatal error:", "error:"), "\n"), strings.Replace(c.want, "fatal error:", "error:", 1))
			require.NotContains(t, err.Error(), "__msl")
			require.NotContains(t, err.Error(), "rewritten.cl")
		})
	}
}

func TestErrorInHeader(t *testing.T) {
	requireTools(t)
	dir := t.TempDir()
	header := filepath.Join(dir, "bad.h")
	require.NoError(t, os.WriteFile(header, []byte("\n\nfloat f() { return   oops; }\n"), 0o644))
	_, err := Compile(t.Context(), "#include \"bad.h\"\n", Options{Name: "x.metal", Include: []string{dir}})
	require.ErrorContains(t, err, header+":3:22: error: use of undeclared identifier 'oops'")
}

func TestDiagnosticString(t *testing.T) {
	for _, c := range []struct {
		d    Diagnostic
		want string
	}{
		{Diagnostic{File: "a", Line: 1, Column: 2, Message: "m"}, "a:1:2: error: m"},
		{Diagnostic{File: "a", Line: 1, Severity: SeverityWarning, Message: "m"}, "a:1: warning: m"},
		{Diagnostic{File: "a", Severity: SeverityNote, Message: "m"}, "a: note: m"},
		{Diagnostic{Message: "m"}, "error: m"},
	} {
		require.Equal(t, c.want, c.d.String())
	}
	err := error(&Error{Diagnostics: []Diagnostic{{Message: "a"}, {Message: "b", Severity: SeverityNote}}})
	require.EqualError(t, err, "error: a\nnote: b")
}

func TestColumn(t *testing.T) {
	source := "x = A + f( b ); // A"
	m := newSourceMap("x = (1+2) + f(b);", func(string) string { return source })
	for _, c := range []struct{ out, want int }{{1, 1}, {3, 3}, {5, 5}, {8, 5}, {11, 7}, {13, 9}, {15, 12}, {17, 15}} {
		require.Equal(t, c.want, m.column(position{file: "f", line: 1, outLine: 1, outColumn: c.out}), "column %d", c.out)
	}
	require.Zero(t, m.column(position{file: "f", line: 2, outLine: 1}))
	require.Zero(t, newSourceMap("", func(string) string { return "" }).column(position{file: "f", line: 1, outLine: 1}))
}

func TestAvailable(t *testing.T) {
	requireTools(t)
	require.NoError(t, Available())
	v, err := ToolVersions(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^22\.`, v.Clang)
	require.Regexp(t, `^22\.`, v.Opt)
	t.Setenv(clangVariable, filepath.Join(t.TempDir(), "no-clang"))
	require.ErrorContains(t, Available(), "is not installed (set INGOT_CLANG to its path)")
	_, err = Compile(t.Context(), "", Options{})
	require.Error(t, err)
	var e *Error
	require.False(t, errors.As(err, &e), "that is no mistake in the source")
}
