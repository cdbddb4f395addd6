package msl

import "strings"

// spaces are MSL's names of address spaces in C++ for OpenCL, which numbers them as AIR does.
var spaces = map[string]string{
	"device": "__global", "constant": "const __constant", "threadgroup": "__local", "thread": "__private",
}

// renamed are identifiers that mean nothing in MSL and something in OpenCL.
var renamed = words(`global local generic private_ pipe read_only write_only read_write image1d_t image2d_t image3d_t
	sampler_t event_t queue_t clk_event_t reserve_id_t atomic_int atomic_uint atomic_float atomic_long atomic_ulong
	atomic_double atomic_flag atomic_size_t atomic_ptrdiff_t atomic_intptr_t atomic_uintptr_t __global __local __constant __private __generic`)

// rewriteWords replaces keywords, last of all: the other passes look at MSL's own.
func (r *rewriter) rewriteWords(ts []token) []token {
	out := make([]token, 0, len(ts))
	for i, t := range ts {
		if t.kind == directive && droppedPragma(t.text) {
			continue
		}
		if t.kind != identifier || at(ts, i-1).is(".") || at(ts, i-1).is("->") {
			out = append(out, t)
			continue
		}
		switch {
		case t.text == "kernel":
			out = append(out, r.make(t.at, `__attribute__((annotate("msl:kernel")))`)...)
		case spaces[t.text] != "":
			out = append(out, r.make(t.at, "%s", spaces[t.text])...)
		case renamed[t.text] && !strings.HasPrefix(t.text, "__"):
			t.text = "__msl_" + t.text
			out = append(out, t)
		default:
			out = append(out, t)
		}
	}
	return out
}

// droppedPragma tells whether a directive allows the compiler to be less exact with floating-point numbers, which this one
// never is, or is one of Metal's own.
func droppedPragma(line string) bool {
	w := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))
	if len(w) < 2 || w[0] != "pragma" {
		return false
	}
	return w[1] == "METAL" || w[1] == "STDC" || len(w) > 2 && w[1] == "clang" && w[2] == "fp"
}

// unsupported are words of MSL that this compiler has no translation for.
var unsupported = map[string]string{
	"vertex": "vertex functions", "fragment": "fragment functions", "visible": "visible functions", "intersection": "intersection functions",
	"texture1d": "textures", "texture1d_array": "textures", "texture2d": "textures", "texture2d_array": "textures", "texture3d": "textures",
	"texturecube": "textures", "texturecube_array": "textures", "texture2d_ms": "textures", "texture_buffer": "textures", "depth2d": "textures",
	"sampler": "samplers", "imageblock": "imageblocks", "threadgroup_imageblock": "imageblocks", "ray_data": "ray tracing", "object_data": "mesh shaders",
	"visible_function_table": "visible function tables", "intersection_function_table": "ray tracing", "double": "double-precision numbers",
	"goto": "goto statements", "asm": "inline assembly", "__asm": "inline assembly", "__asm__": "inline assembly",
	"try": "exceptions", "catch": "exceptions", "throw": "exceptions", "dynamic_cast": "run-time type information", "typeid": "run-time type information",
	"virtual": "virtual functions", "new": "dynamic memory", "delete": "dynamic memory", "thread_local": "thread-local variables",
}

// refuse reports what is not supported, before anything is rewritten.
func (r *rewriter) refuse(ts []token) []token {
	told := map[string]bool{}
	for i, t := range ts {
		if t.kind != identifier {
			continue
		}
		before := at(ts, i-1)
		what := unsupported[t.text]
		if t.text == "delete" && before.is("=") {
			what = ""
		}
		// A member or a name of one's own may be called "visible".
		if what == "" || told[what] || before.is(".") || before.is("->") || before.is("::") && !at(ts, i-2).keyword("metal") || !isTypeOrKeyword(ts, i) {
			continue
		}
		told[what] = true
		r.fail(t.at, "%s are not supported (%q)", what, t.text)
	}
	return ts
}

// isTypeOrKeyword tells whether the word at i is used as a type or keyword: followed by a name, < or {, not declared or
// used as a value.
func isTypeOrKeyword(ts []token, i int) bool {
	switch next := at(ts, i+1); {
	case strings.HasPrefix(ts[i].text, "__asm"), ts[i].text == "asm":
		return true
	case next.kind == identifier, next.is("<"), next.is("{"), next.is("*"), next.is("&"), next.kind == text:
		return true
	case next.is("("), next.is("["), next.is(")"):
		return ts[i].text == "dynamic_cast" || ts[i].text == "typeid" || ts[i].text == "catch" || ts[i].text == "double" || ts[i].text == "delete" ||
			isAttribute(ts, min(i+1, len(ts)-1))
	}
	return false
}

// rewriteTemplateParameters turns parameters of templates that are pointers to functions, which OpenCL does not have,
// into references to functions.
func (r *rewriter) rewriteTemplateParameters(ts []token) []token {
	out := append([]token(nil), ts...)
	for i, t := range out {
		if !t.keyword("template") || !at(out, i+1).is("<") {
			continue
		}
		end := closingAngle(out, i+1)
		for j := i + 2; j < end; j++ {
			if out[j].is("(") && at(out, j+1).is("*") && at(out, j+2).kind == identifier && at(out, j+3).is(")") && at(out, j+4).is("(") {
				out[j+1].text = "&"
			}
		}
	}
	return out
}
