package msl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func texts(ts []token) string {
	var list []string
	for _, t := range ts {
		list = append(list, t.text)
	}
	return strings.Join(list, "·")
}

func TestTokenize(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", ""},
		{"a b", "a·b"},
		{"a+++b", "a·++·+·b"},
		{"x>>=1", "x·>·>=·1"},
		{"vec<vec<float,4>>", "vec·<·vec·<·float·,·4·>·>"},
		{"a->*b <=> c", "a·->*·b·<=>·c"},
		{"1.5e-3f+.5 0x1.8p-3f 1'000", "1.5e-3f·+·.5·0x1.8p-3f·1'000"},
		{"0x1e+1", "0x1e·+·1"},
		{"1..2", "1..2"},
		{`"a\"b" 'c'`, `"a\"b"·'c'`},
		{"[[buffer(0)]]", "[·[·buffer·(·0·)·]·]"},
		{"a//x\nb/*y\nz*/c", "a·b·c"},
		{"#pragma unroll\nfor", "#pragma unroll·for"},
		{"#pragma a \\\nb\nc", "#pragma a  b·c"},
		{"a::b ... &&", "a·::·b·...·&&"},
		{"a\\\nb", "a·b"},
		{"ünï", "ünï"},
	} {
		got, errs := tokenize(c.src, "f")
		require.Empty(t, errs, c.src)
		require.Equal(t, c.want, texts(got), c.src)
	}
}

func TestTokenKinds(t *testing.T) {
	got, _ := tokenize(`a 1 "s" + `+"\n#pragma x", "f")
	var kinds []kind
	for _, g := range got {
		kinds = append(kinds, g.kind)
	}
	require.Equal(t, []kind{identifier, number, text, punct, directive}, kinds)
	require.False(t, got[2].is(`"s"`), "a literal is no punctuator")
}

func TestTokenPositions(t *testing.T) {
	got, errs := tokenize("# 1 \"a.metal\" 1\nint x;\n# 7 \"sub\\\\b.h\" 2\n\n  y\n#line 3\nz\n#line 9 \"c.h\"\nw", "start")
	require.Empty(t, errs)
	at := map[string]position{}
	for _, g := range got {
		at[g.text] = g.at
	}
	require.Equal(t, position{"a.metal", 1, 2, 1}, at["int"])
	require.Equal(t, position{"a.metal", 1, 2, 5}, at["x"])
	require.Equal(t, position{`sub\b.h`, 8, 5, 3}, at["y"])
	require.Equal(t, position{"c.h", 9, 9, 1}, at["w"])
	require.Contains(t, texts(got), "#line 3", "a marker without a file is left alone")
}

func TestTokenErrors(t *testing.T) {
	for src, want := range map[string]string{
		"a /* b":    "comment without an end",
		`x = "abc`:  "literal without an end",
		"'a\nb":     "literal without an end",
		"\"a\\":     "literal without an end",
		"\"a\\\n\"": "",
		"a # b":     "stray '#'",
		"a @ b":     "stray '@'",
		"a \\ b":    "stray '\\\\'",
		"\x00":      "stray '\\x00'",
	} {
		_, errs := tokenize(src, "f")
		if want == "" {
			require.Empty(t, errs, src)
			continue
		}
		require.Len(t, errs, 1, src)
		require.Equal(t, want, errs[0].Message)
		require.NotZero(t, errs[0].at.outLine)
	}
}

// What is emitted must read as the same tokens again, at the same places.
func requireEmits(t *testing.T, ts []token) {
	t.Helper()
	e := emit(ts)
	again, errs := tokenize(e.text, "f")
	if len(errs) > 0 {
		return
	}
	require.Equal(t, texts(ts), texts(again))
	for i, a := range again {
		at, ok := e.position(a.at.outLine, a.at.outColumn)
		require.True(t, ok)
		require.Equal(t, ts[i].at, at)
	}
}

func TestEmit(t *testing.T) {
	for _, src := range []string{"a b\nc  d;\n\n#pragma x\ne", "a+ +b", "x < :: y", "a> >b", "- -1", "a>>b", "1 .x"} {
		ts, errs := tokenize(src, "f")
		require.Empty(t, errs)
		requireEmits(t, ts)
	}
	_, ok := emit(nil).position(5, 1)
	require.False(t, ok)
}

func FuzzRewrite(f *testing.F) {
	for _, s := range []string{
		"kernel void k(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { threadgroup float s[4], t; x[i] = float4(1, 2, x[0], (half)3).x; }",
		"constant bool a [[function_constant(1)]]; constant int b = a ? 1 : 2;",
		"template <typename T, void (*f)(T)> T g(T x) { return (T)x * static_cast<T>(-x[1].y); } template [[host_name(\"n\")]] void h<float>();",
		"struct S { S(float x) thread : v(x) {} S(float x) device {} float v; };", "float4 v = {1.0, 2}, w = {};", "#pragma METAL x\n[[", "((((", "threadgroup",
		"constant [[function_constant(", "template <", "(float4)(float4)(", "a\\",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		ts, errs := tokenize(src, "f")
		if len(errs) > 0 || len(ts) > 2000 {
			return
		}
		r := &rewriter{}
		out := r.rewrite(ts)
		requireEmits(t, out)
	})
}
