package msl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rewriteText rewrites a snippet; the result has one token per line.
func rewriteText(t *testing.T, src string) (string, *rewriter) {
	t.Helper()
	ts, errs := tokenize(src, "f")
	require.Empty(t, errs)
	r := &rewriter{}
	return tokenLines(t, emit(r.rewrite(ts)).text), r
}

func tokenLines(t *testing.T, src string) string {
	t.Helper()
	ts, errs := tokenize(src, "f")
	require.Empty(t, errs)
	var b strings.Builder
	for _, tok := range ts {
		b.WriteString(tok.text + "\n")
	}
	return b.String()
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"address spaces", "void f(device float* a, constant int& b, threadgroup half* c, thread uint& d);",
			"void f( __global float* a, const __constant int& b, __local half* c, __private uint& d);"},
		{"members keep their names", "x.device = y->kernel;", "x.device = y->kernel;"},
		{"kernel", "kernel void k();", `__attribute__((annotate("msl:kernel"))) void k();`},
		{"attributes", "void k(uint i [[thread_position_in_grid]], device float* x [[buffer(N + 1)]]);",
			`void k(uint i __attribute__((annotate("msl:thread_position_in_grid"))), __global float* x __attribute__((annotate("msl:buffer", int{ N + 1}))));`},
		{"several attributes", "[[kernel, max_total_threads_per_threadgroup(256)]] void k();",
			`__attribute__((annotate("msl:kernel"))) __attribute__((annotate("msl:max_total_threads_per_threadgroup", int{ 256}))) void k();`},
		{"explicit instantiation", `template [[host_name("a" "b")]] kernel void k<float>();`,
			`template __attribute__((annotate("msl:host_name:" "a" "b"))) __attribute__((annotate("msl:kernel"))) void k<float>();`},
		{"standard attributes are dropped", "[[maybe_unused]] int a; [[clang::unroll]] x;", "int a; x;"},
		{"an index is no attribute", "a[ [&]{ return 1; }() ] = b[c[1]];", "a[ [&]{ return 1; }() ] = b[c[1]];"},
		{"constructor", "x = float4(a, 0, vec<half, 2>(b));", "x = __msl_make< float4 >( a, 0, __msl_make< vec<half, 2> >( b ) );"},
		{"namespace", "metal::float2(1, 2) + simd::uint3(4)", "__msl_make< metal::float2 >(1, 2 ) + __msl_make< simd::uint3 >(4 )"},
		{"declarations are no constructors", "float4 f(float4); struct S { operator float4() const; }; float4 (*p)(int); float4 (&r)[4];",
			"float4 f(float4); struct S { operator float4() const; }; float4 (*p)(int); float4 (&r)[4];"},
		{"cast", "y = (float4)x.xyzw * 2;", "y = __msl_make< float4 >( x.xyzw ) * 2;"},
		{"cast of a call", "return (half4)f(a)[1] + b;", "return __msl_make< half4 >( f(a)[1] ) + b;"},
		{"cast of a cast", "(float2)(uint2)-x", "__msl_make< float2 >( __msl_make< uint2 >( -x ) )"},
		{"cast of a load", "*(device float4*)p = (float4)*(device half4*)q;", "*( __global float4*)p = __msl_make< float4 >( *( __global half4*)q );"},
		{"cast of a template call", "(float4)as_type<uint4>(x) + 1", "__msl_make< float4 >( as_type<uint4>(x) ) + 1"},
		{"a parenthesised name is no cast", "(x) * y; f(float4); sizeof(float4) - 1;", "(x) * y; f(float4); sizeof(float4) - 1;"},
		{"scalar casts are left alone", "(float)x; static_cast<float>(y); static_cast<device T*>(z);", "(float)x; static_cast<float>(y); static_cast< __global T*>(z);"},
		{"type parameters", "template <typename T> T f(int x) { return T(x) + (T)x + static_cast<T>(x); }",
			"template <typename T> T f(int x) { return __msl_make< T >( x ) + __msl_make< T >( x ) + __msl_make< T >( x ); }"},
		{"aliases", "using V = float4; typedef half4 H; V a = V(1); H b = (H)a;",
			"using V = float4; typedef half4 H; V a = __msl_make< V >(1 ); H b = __msl_make< H >( a );"},
		{"braced vectors", "float4 a = {1, 2,}, b = {0}; int c[2] = {1, 2};", "float4 a = __msl_fill<float4>( 1, 2 ), b = __msl_fill<float4>( 0 ); int c[2] = {1, 2};"},
		{"literals", "1.0 + 2e3 + .5f + 1.h + 3 + 0x1.8p1 + 0x10 + 2.0bf + 1u",
			"1.0f + 2e3f + .5f + 1.h + 3 + 0x1.8p1f + 0x10 + ((bfloat)2.0f) + 1u"},
		{"hexadecimal half", "0x1.0p-3h", "((half)0x1.0p-3f)"},
		{"threadgroup variables", "kernel void k() { threadgroup float a[32][N + 1], b; threadgroup float* p = a[0]; }",
			`__attribute__((annotate("msl:kernel"))) void k() { __local auto& a = *__msl_as3(&__msl_tgvar< float[32][N + 1], 0>); __local auto& b = *__msl_as3(&__msl_tgvar< float, 1>); __local float* p = a[0]; }`},
		{"threadgroup struct", "void f() { if (x) { threadgroup Tile<4> t; } }", "void f() { if (x) { __local auto& t = *__msl_as3(&__msl_tgvar< Tile<4>, 0>); } }"},
		{"threadgroup parameters", "void f(threadgroup float* a, threadgroup Tile& b) {}", "void f( __local float* a, __local Tile& b) {}"},
		{"function constant", "constant uint n [[function_constant(2 + 3)]];",
			`extern const __constant uint n __asm("_ZL1n"); uint __msl_fc_0() __asm("msl.fc.0"); uint __msl_fc_0() { return uint(0); }`},
		{"derived constant", "constant bool a [[function_constant(0)]]; constant int b = a ? f(1) : 2; constant int c = 4;",
			`extern const __constant bool a __asm("_ZL1a"); bool __msl_fc_0() __asm("msl.fc.0"); bool __msl_fc_0() { return bool(0); } extern const __constant int b __asm("_ZL1b"); void __msl_init_1() __asm("msl.init.1"); void __msl_init_1() { __msl_fc_store<int>(&b, (int)( a ? f(1) : 2 )); } const __constant int c = 4;`},
		{"is defined", "constant int a [[function_constant(0)]]; int f() { return is_function_constant_defined(a) ? a : 1; }",
			`extern const __constant int a __asm("_ZL1a"); int __msl_fc_0() __asm("msl.fc.0"); int __msl_fc_0() { return int(0); } int f() { return __msl_fc_defined(&a) ? a : 1; }`},
		{"constant tables", "constant float t[2] = {1.0, 2.0}; constexpr constant int n = 3;", "const __constant float t[2] = {1.0f, 2.0f}; constexpr const __constant int n = 3;"},
		{"function parameters of templates", "template <void (*f)(int, float), int N> void g();", "template <void (&f)(int, float), int N> void g();"},
		{"constructors", "struct S { float v; S(float x) thread : v{x} {} S(float x) device : v{x} { y(); } float g() device; };",
			"struct S { float v; S(float x) : v{x} {} float g() __global; };"},
		{"words of OpenCL", "int global = local + atomic_uint(1);", "int __msl_global = __msl_local + __msl_atomic_uint(1);"},
		{"pragmas", "#pragma METAL fp math_mode(fast)\n#pragma unroll(4)\nfor(;;);\n#pragma clang fp contract(fast)\n", "#pragma unroll(4)\nfor(;;);"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, r := rewriteText(t, c.src)
			require.Empty(t, r.errors)
			require.Equal(t, tokenLines(t, c.want), got)
		})
	}
}

func TestRewriteErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"void f() { threadgroup float x = 1; }", "1:32: threadgroup variable x cannot have an initial value"},
		{"void f() { threadgroup float x[4] = {0}; }", "1:35: threadgroup variable x cannot have an initial value"},
		{"void f() { threadgroup alignas(16) float x; }", "1:24: alignas on a threadgroup variable is not supported"},
		{"void f() { threadgroup float x, *y; }", "1:33: a threadgroup declaration needs a name here"},
		{"constant int a [[function_constant(x)]];", `1:18: function_constant needs an integer constant: "x" is not an integer`},
		{"constant int a [[function_constant(-1)]];", "1:18: function_constant(-1) is out of range: indices are 0 to 65535"},
		{"constant int a [[function_constant(1)]]; constant int b [[function_constant(1)]];", "1:55: function constant b has the index of a"},
		{"constant int a [[function_constant(1)]] = 3;", "1:14: function constant a cannot have an initial value"},
		{"int f() { return is_function_constant_defined(q); }", "1:47: q is not a function constant"},
		{"void k(device int* x [[buffer]]);", "1:24: buffer needs a number"},
		{"void k(texture2d<float> t [[texture(0)]]);", `1:8: textures are not supported ("texture2d")`},
		{"void k(int x [[stage_in]]);", `1:16: attribute "stage_in" is not supported`},
		{"template [[host_name(x)]] void k();", "1:12: host_name needs a string"},
		{"vertex float4 v() { }", `1:1: vertex functions are not supported ("vertex")`},
		{"double x = 1;", `1:1: double-precision numbers are not supported ("double")`},
		{"float x = 1.0l;", "1:11: double literals are not supported"},
		{"void k(int* x [[function_constant(a)]]);", "1:17: function_constant is supported on constants at program scope only"},
	} {
		_, r := rewriteText(t, c.src)
		require.NotEmpty(t, r.errors, c.src)
		d := r.errors[0]
		require.Equal(t, c.want, Diagnostic{Line: d.at.line, Column: d.at.outColumn, Message: d.Message}.short(), c.src)
	}
	// Words that are only sometimes keywords.
	for _, src := range []string{"x.visible = 1;", "int sampler = 3;", "struct S { S(int) = delete; };", "int f(int vertex);"} {
		_, r := rewriteText(t, src)
		require.Empty(t, r.errors, src)
	}
}

// short is "line:column: message".
func (d Diagnostic) short() string {
	d.File = ""
	s := d.String()
	return strings.Replace(s, "error: ", "", 1)
}

func TestEvaluate(t *testing.T) {
	for src, want := range map[string]int64{"1": 1, "0x10": 16, "2 + 3 * 4": 14, "(2 + 3) * 4": 20, "-(1 - 5)": 4, "7u": 7, "010": 8} {
		ts, _ := tokenize(src, "")
		got, err := evaluate(ts)
		require.NoError(t, err, src)
		require.Equal(t, want, got, src)
	}
	for _, src := range []string{"", "a", "1 +", "(1", "1 2", "1.5", strings.Repeat("(", 200)} {
		ts, _ := tokenize(src, "")
		_, err := evaluate(ts)
		require.Error(t, err, src)
	}
}
