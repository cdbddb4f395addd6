package msl

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// compileFile compiles a file of testdata.
func compileFile(t testing.TB, name string) *metallib.Library {
	t.Helper()
	requireTools(t)
	source, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	lib, err := Compile(t.Context(), string(source), Options{Name: name})
	require.NoError(t, err)
	return lib
}

// kernelOf reflects a function.
func kernelOf(t testing.TB, lib *metallib.Library, name string) *air.Kernel {
	t.Helper()
	f := lib.Function(name)
	require.NotNil(t, f, name)
	m, err := f.Module()
	require.NoError(t, err)
	require.NoError(t, air.Verify(m))
	ks, err := m.Kernels()
	require.NoError(t, err)
	require.Len(t, ks, 1)
	require.Equal(t, name, ks[0].Name)
	return ks[0]
}

// disassemble gives a module as LLVM 14 reads it.
func disassemble(t testing.TB, bitcode []byte) string {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "llvm-dis-14"), "-o", "-", "-")
	cmd.Stdin = bytes.NewReader(bitcode)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

// Pointees that Metal's back end crashes on.
var badPointee = regexp.MustCompile(`\bi1( addrspace\(\d+\))?\*|\{\}( addrspace\(\d+\))?\*`)

// allowedIntrinsics are what may be called besides air.*: what Apple's modules contain.
var allowedIntrinsics = regexp.MustCompile(`^@llvm\.((s|u)(min|max)|abs|fsh[lr]|[us](add|sub)\.sat|bswap|mem(cpy|set|move)|(fabs|minnum|maxnum)\.(v\dbf16|bf16)$)`)

// requireMetal checks what every module must be.
func requireMetal(t *testing.T, f *metallib.Function) string {
	t.Helper()
	text := disassemble(t, f.Bitcode)
	require.Contains(t, text, `target triple = "air64-apple-macosx14.0.0"`)
	require.Contains(t, text, `target datalayout = "`+dataLayout+`"`)
	require.Contains(t, text, `source_filename = "`+f.Name+`"`)
	require.NotRegexp(t, badPointee, text)
	for _, word := range []string{"addrspace(4)", "addrspacecast", "spir_", "comdat", "opencl", "__msl", "msl.", "dso_local", "zeroext", "signext", "fast float",
		"contract", "reassoc", "poison float", "!dbg", "DICompileUnit", "sitofp", "uitofp", "fptosi", "fptoui", "/tmp", "rewritten"} {
		require.NotContains(t, text, word)
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "declare ") {
			name := regexp.MustCompile(`@[\w.]+`).FindString(line)
			require.True(t, strings.HasPrefix(name, "@air.") || allowedIntrinsics.MatchString(name), "declares %s", name)
		}
	}
	return text
}

func TestCompile(t *testing.T) {
	for _, name := range []string{"saxpy.metal", "rms_norm.metal", "arguments.metal", "library.metal", "templates.metal"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lib := compileFile(t, name)
			require.NotEmpty(t, lib.Functions)
			for i := range lib.Functions {
				requireMetal(t, &lib.Functions[i])
				kernelOf(t, lib, lib.Functions[i].Name)
			}
			data, err := metallib.Write(lib)
			require.NoError(t, err)
			_, err = metallib.Read(data)
			require.NoError(t, err)
		})
	}
}

// section is the part of a disassembly from a line that begins with prefix to the end of the file.
func section(t *testing.T, text, prefix string) string {
	t.Helper()
	i := strings.Index(text, "\n"+prefix)
	require.GreaterOrEqual(t, i, 0)
	return text[i+1:]
}

// The module of the plainest kernel, whole: metadata in Apple's form (compare the modules in Apple-built libraries).
func TestSaxpyModule(t *testing.T) {
	lib := compileFile(t, "saxpy.metal")
	require.Len(t, lib.Functions, 1)
	text := requireMetal(t, &lib.Functions[0])
	want, err := os.ReadFile(filepath.Join("testdata", "saxpy.ll"))
	require.NoError(t, err)
	require.Equal(t, string(want), section(t, text, "source_filename"))
}

func TestFunctionConstants(t *testing.T) {
	lib := compileFile(t, "rms_norm.metal")
	f := lib.Function("rms_norm_bf16")
	require.Equal(t, []metallib.Constant{
		{Name: "has_weight", Type: metallib.Bool, Index: 0, Active: true},
		{Name: "scale_mode", Type: metallib.UInt, Index: 1, Active: true},
	}, f.Constants)
	text := requireMetal(t, f)
	for _, line := range []string{
		`@_Z10has_weight.MTL_FC_INIT_0_b = internal unnamed_addr addrspace(2) externally_initialized constant i8 undef, section "air.fc_initializer", align 1`,
		`@_Z10scale_mode.MTL_FC_INIT_1_j = internal unnamed_addr addrspace(2) externally_initialized constant i32 undef, section "air.fc_initializer", align 4`,
		`@_ZL10has_weight = internal unnamed_addr addrspace(2) global i8 undef, align 1`,
		`@llvm.global_ctors = appending global [1 x { i32, void ()*, i8* }] [{ i32, void ()*, i8* } { i32 65535, void ()* @_GLOBAL__sub_I_program.metal, i8* null }]`,
		`@_ZZ13rms_norm_bf16E7partial = internal unnamed_addr addrspace(3) global [32 x float] undef, align 4`,
		`@_ZZ13rms_norm_bf16E7inverse = internal unnamed_addr addrspace(3) global float undef, align 4`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.Regexp(t, `define internal void @_GLOBAL__sub_I_program\.metal\(\) #\d+ section "air\.static_init" \{`, text)
	require.Regexp(t, `!\{i8 addrspace\(2\)\* @_Z10has_weight\.MTL_FC_INIT_0_b, !"bool", !"has_weight", i32 0, i1 true\}`, text)
	k := kernelOf(t, lib, "rms_norm_bf16")
	require.EqualValues(t, 132, k.ThreadgroupBytes)
	require.Len(t, k.Constants, 2)
	// Arithmetic is as written: no contraction of what is not fma, and the precise square root.
	require.Contains(t, text, "@air.rsqrt.f32(")
	require.NotContains(t, text, "air.fast_")
}

// A constant that a kernel does not use is not among its constants; derived ones pull in what they are computed from.
func TestUnusedFunctionConstants(t *testing.T) {
	requireTools(t)
	lib, err := Compile(t.Context(), `
constant int a [[function_constant(0)]];
constant int b [[function_constant(1)]];
constant int c [[function_constant(2)]];
constant int ab = a > 0 ? b * 2 : 5;
constant bool deep = ab > 3;
kernel void none(device int* x [[buffer(0)]]) { x[0] = 1; }
kernel void only_c(device int* x [[buffer(0)]]) { x[0] = c; }
kernel void derived(device int* x [[buffer(0)]]) { x[0] = deep ? 1 : 2; }
kernel void defined(device int* x [[buffer(0)]]) { if (is_function_constant_defined(b)) x[0] = 3; }
`, Options{})
	require.NoError(t, err)
	for name, want := range map[string][]string{"none": nil, "only_c": {"c"}, "derived": {"a", "b"}, "defined": {"b"}} {
		f := lib.Function(name)
		var got []string
		for _, c := range f.Constants {
			got = append(got, c.Name)
		}
		require.Equal(t, want, got, name)
		text := requireMetal(t, f)
		require.Equal(t, want != nil, strings.Contains(text, "llvm.global_ctors"), name)
	}
	require.Contains(t, requireMetal(t, lib.Function("defined")), "call i1 @air.is_function_constant_defined(i8 addrspace(2)* bitcast (i32 addrspace(2)* @_Z1b.MTL_FC_INIT_1_i to i8 addrspace(2)*))")
}

func TestArguments(t *testing.T) {
	lib := compileFile(t, "arguments.metal")
	k := kernelOf(t, lib, "arguments")
	require.Equal(t, 128, k.MaxThreads)
	type arg struct {
		kind               air.ArgKind
		name, typ          string
		index, space       int
		writable           bool
		size, align, whole int
		builtin            string
	}
	var got []arg
	for _, a := range k.Args {
		got = append(got, arg{a.Kind, a.Name, a.TypeName, a.Index, a.Space, a.Writable, a.Size, a.Align, a.BufferSize, a.Builtin})
	}
	require.Equal(t, []arg{
		{air.BufferArg, "a", "float", 0, 1, true, 4, 4, 0, ""},
		{air.BufferArg, "b", "half2", 4, 1, false, 4, 4, 0, ""},
		{air.BufferArg, "c", "void", 2, 1, true, 0, 0, 0, ""},
		{air.BufferArg, "p", "Params", 3, 2, false, 96, 16, 96, ""},
		{air.BufferArg, "table", "long", 7, 2, false, 8, 8, 0, ""},
		{air.BufferArg, "ps", "Params", 8, 1, true, 96, 16, 0, ""},
		{air.BufferArg, "counter", "atomic_uint", 9, 1, true, 4, 4, 0, ""},
		{air.BufferArg, "packed", "packed_float3", 10, 1, true, 12, 4, 0, ""},
		{air.ThreadgroupArg, "shared", "float", 0, 3, true, 4, 4, 0, ""},
		{air.ThreadgroupArg, "more", "bfloat4", 3, 3, true, 8, 8, 0, ""},
		{air.BufferArg, "bytes", "uchar", 30, 1, true, 1, 1, 0, ""},
		{air.BuiltinArg, "position", "uint3", 0, 0, false, 0, 0, 0, "thread_position_in_grid"},
		{air.BuiltinArg, "lane", "ushort", 0, 0, false, 0, 0, 0, "thread_index_in_simdgroup"},
		{air.BuiltinArg, "group", "uint2", 0, 0, false, 0, 0, 0, "threadgroup_position_in_grid"},
		{air.BuiltinArg, "size", "ushort3", 0, 0, false, 0, 0, 0, "threads_per_threadgroup"},
	}, got)
	text := requireMetal(t, lib.Function("arguments"))
	require.Contains(t, text, `!{i32 0, i32 4, i32 0, !"uint", !"n", i32 16, i32 16, i32 0, !"float3", !"scale", i32 32, i32 16, i32 2, !"int3", !"shape", `+
		`i32 64, i32 16, i32 0, !"Inner", !"inner", i32 80, i32 1, i32 0, !"bool", !"flag"}`)
	require.Contains(t, text, `%struct.Params = type { i32, <3 x float>, [2 x <3 x i32>], %struct.Inner, i8 }`)
	require.Regexp(t, `!\{void .*, !\d+, !\d+, !\d+\}`, text)
	require.Contains(t, text, `!{!"air.max_work_group_size", i32 128}`)
	// Only what the source promises: __restrict, and nothing for the two threadgroup parameters.
	define := regexp.MustCompile(`(?m)^define void @arguments.*$`).FindString(text)
	require.Equal(t, 1, strings.Count(define, `"air-buffer-no-alias"`))
	require.Regexp(t, `i8 addrspace\(1\)\* [^,]*"air-buffer-no-alias" %10`, define)
}

// Parameters without an index take the next one, after the last that has one.
func TestImplicitIndices(t *testing.T) {
	k := kernelOf(t, compileFile(t, "templates.metal"), "reduce_rows_bf16")
	var got []int
	for _, a := range k.Args[:6] {
		got = append(got, a.Index)
	}
	require.Equal(t, []int{0, 1, 2, 3, 4, 9}, got)
	require.Equal(t, "bfloat", k.Args[0].TypeName)
	require.Len(t, k.Constants, 1)
	require.EqualValues(t, 132, k.ThreadgroupBytes)
}

// Two compilations of one source are the same bytes, whatever the folder.
func TestReproducible(t *testing.T) {
	requireTools(t)
	source, err := os.ReadFile(filepath.Join("testdata", "rms_norm.metal"))
	require.NoError(t, err)
	var first []byte
	for _, opts := range []Options{{}, {Name: "other/name.metal", Keep: filepath.Join(t.TempDir(), "a longer path")}} {
		lib, err := Compile(t.Context(), string(source), opts)
		require.NoError(t, err)
		data, err := metallib.Write(lib)
		require.NoError(t, err)
		if first == nil {
			first = data
		}
		require.Equal(t, first, data)
	}
}

func TestCompileOptions(t *testing.T) {
	requireTools(t)
	lib, err := Compile(t.Context(), "kernel void NAME(device int* x [[buffer(0)]]) { x[0] = VALUE; }", Options{Defines: []string{"NAME=k", "VALUE=3"}})
	require.NoError(t, err)
	require.Contains(t, disassemble(t, lib.Function("k").Bitcode), "store i32 3, ")
	lib, err = Compile(t.Context(), "int f() { return 1; }", Options{})
	require.NoError(t, err)
	require.Empty(t, lib.Functions, "a source without kernels is an empty library")
	dir := t.TempDir()
	t.Chdir(dir)
	_, err = Compile(t.Context(), "kernel void k() {}", Options{Keep: "stages"})
	require.NoError(t, err)
	dir = filepath.Join(dir, "stages")
	for _, stage := range []string{"rewritten.cl", "raw.ll", "optimised.bc", "k.air"} {
		require.FileExists(t, filepath.Join(dir, stage))
	}
}

// Functions that are not to be inlined are, with structs passed by value both ways.
func TestInlining(t *testing.T) {
	requireTools(t)
	lib, err := Compile(t.Context(), `
struct Big { float v[12]; };
__attribute__((noinline)) Big twice(Big b) { for (int i = 0; i < 12; i++) b.v[i] *= 2; return b; }
kernel void k(device Big* x [[buffer(0)]]) { x[1] = twice(x[0]); }`, Options{})
	require.NoError(t, err)
	text := requireMetal(t, lib.Function("k"))
	require.NotContains(t, text, "sret")
	require.NotContains(t, text, "byval")
	require.Equal(t, 1, strings.Count(text, "define "))
}

// Scalars beside vectors take the vector's element type, which C++ for OpenCL refuses and clang's messages lead to.
func TestMixedOperations(t *testing.T) {
	requireTools(t)
	lib, err := Compile(t.Context(), `
#include <metal_stdlib>
template <typename T> T twice(T x, float s) { return x * s; }
kernel void k(device half4* h [[buffer(0)]], device int4* n [[buffer(1)]], device float* f [[buffer(2)]]) {
  h[0] = h[1] * f[0] + f[1] * h[2] * f[2];
  n[0] = n[1] * f[0];
  h[3] = twice(h[4], f[3]);
  f[4] = twice(f[5], 2.5);
}`, Options{})
	require.NoError(t, err)
	text := requireMetal(t, lib.Function("k"))
	require.Contains(t, text, "fptrunc float")
	require.Contains(t, text, "fmul <4 x half>")
	require.NotContains(t, text, "fmul <4 x float>")
	require.Contains(t, text, "mul <4 x i32>")
	require.Contains(t, text, "fmul float", "a scalar instance of the template stays in float")
}

func TestCancelled(t *testing.T) {
	requireTools(t)
	require.NoError(t, Available())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Compile(ctx, "kernel void k() {}", Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// The way into a type by bytes is found by its members and elements.
func TestPath(t *testing.T) {
	m := &air.Module{}
	r := &retyper{lowering: &lowering{m: m}}
	float, v4 := m.Float(), m.Vector(m.Float(), 4)
	inner := m.Struct(false, m.Int(16), m.Array(float, 3))
	outer := m.Struct(false, m.Int(8), inner, v4)
	for _, c := range []struct {
		from   *air.Type
		offset int64
		want   *air.Type
		path   []int64
	}{
		{float, 12, float, []int64{3}},
		{float, -4, float, []int64{-1}},
		{float, 2, float, nil},
		{outer, 0, outer, []int64{0}},
		{outer, 0, m.Int(8), []int64{0, 0}},
		{outer, 4, inner, []int64{0, 1}},
		{outer, 12, float, []int64{0, 1, 1, 1}},
		{outer, 48 + 32, v4, []int64{1, 2}},
		{outer, 2, m.Int(8), nil},
		{outer, 32, float, nil}, // not into vectors
		{m.Array(outer, 2), 48, outer, []int64{0, 1}},
	} {
		got, ok := r.path(c.from, c.offset, c.want)
		require.Equal(t, c.path != nil, ok, "%s + %d to %s", c.from, c.offset, c.want)
		for i := range c.path {
			n, _ := constantIndex(got[i])
			require.Equal(t, c.path[i], n)
		}
	}
}

// Matrices never are operands of shufflevector, which Apple's compiler makes none of.
func TestMatrixElementsAreTakenApart(t *testing.T) {
	text := requireMetal(t, compileFile(t, "execute.metal").Function("matrix_elements"))
	require.NotRegexp(t, `shufflevector <64|<64 x i32>`, text)
	require.Contains(t, text, "extractelement <64 x float>")
	require.Contains(t, text, "insertelement <64 x float>")
}
