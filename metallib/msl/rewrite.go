package msl

import (
	"fmt"
	"strings"
)

// A rewriter turns the tokens of one translation unit of MSL into C++ for OpenCL, in passes over the whole list.
type rewriter struct {
	errors []Diagnostic
	// types are the names that a functional or C-style cast may turn into a vector: vector types, aliases and type
	// parameters of templates. templates are names that are followed by template arguments.
	types, templates map[string]bool
	// constants are the function constants in order of declaration, the derived ones among them.
	constants []functionConstant
	// shared are the threadgroup variables; their position in the list is their number in the output.
	shared []threadgroupVariable
}

// A threadgroupVariable is a variable in threadgroup memory declared inside a function.
type threadgroupVariable struct{ name string }

// rewrite runs all passes.
func (r *rewriter) rewrite(ts []token) []token {
	r.collectNames(ts)
	for _, pass := range []func([]token) []token{
		r.refuse, r.refuseHidden, r.rewriteConstants, r.rewriteThreadgroup, r.rewriteAttributes, r.rewriteTemplateParameters,
		r.rewriteExpressions, r.rewriteConstructors, r.rewriteWords,
	} {
		ts = pass(ts)
	}
	return ts
}

func (r *rewriter) fail(at position, format string, args ...any) {
	r.errors = append(r.errors, Diagnostic{Severity: SeverityError, Message: fmt.Sprintf(format, args...), at: at})
}

// make tokenizes text that the rewriter puts in place of the token at the given position.
func (r *rewriter) make(at position, format string, args ...any) []token {
	out, errs := tokenize(fmt.Sprintf(format, args...), "")
	r.errors = append(r.errors, errs...)
	for i := range out {
		out[i].at = at
	}
	if len(out) > 0 {
		out[0].space = true
	}
	return out
}

// closing is the index of the bracket that closes the one at i, or len(ts).
func closing(ts []token, i int) int {
	depth := 0
	for j := i; j < len(ts); j++ {
		if ts[j].kind != punct {
			continue
		}
		switch ts[j].text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(ts)
}

// closingAngle is the index of the > that closes the template argument list opened at i, or -1 if it is not one.
func closingAngle(ts []token, i int) int {
	depth := 0
	for j := i; j < len(ts); j++ {
		if ts[j].kind != punct {
			continue
		}
		switch ts[j].text {
		case "(", "[", "{":
			if j = closing(ts, j); j == len(ts) {
				return -1
			}
		case "<":
			depth++
		case ">":
			if depth--; depth == 0 {
				return j
			}
		case ";", "}", ")", "]", ">=", "&&", "||":
			return -1
		}
	}
	return -1
}

// at is ts[i], or a token that matches nothing.
func at(ts []token, i int) token {
	if i < 0 || i >= len(ts) {
		return token{kind: punct}
	}
	return ts[i]
}

// string joins tokens as they would be written.
func joined(ts []token) string {
	var b strings.Builder
	for i, t := range ts {
		if i > 0 && (t.space || glues(ts[i-1], t)) {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// glues tells whether two tokens would not read as those two without white space between them.
func glues(a, b token) bool {
	if a.text == "" || b.text == "" {
		return false
	}
	const apart = "()[]{};,"
	if a.kind == punct && strings.Contains(apart, a.text) || b.kind == punct && strings.Contains(apart, b.text) {
		return false
	}
	again, errs := tokenize(a.text+b.text, "")
	return len(errs) > 0 || len(again) != 2 || again[0].text != a.text
}

// vectorTypes are the names of the vector types.
var vectorTypes = func() map[string]bool {
	m := map[string]bool{}
	for _, t := range []string{"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat"} {
		for _, n := range []string{"2", "3", "4"} {
			m[t+n] = true
			m["packed_"+t+n] = true
		}
	}
	return m
}()

// collectNames finds the names of aliases, type parameters and templates.
func (r *rewriter) collectNames(ts []token) {
	r.types = map[string]bool{"half": true, "bfloat": true} // clang converts neither to the other
	for t := range vectorTypes {
		r.types[t] = true
	}
	r.templates = map[string]bool{"vec": true, "as_type": true, "static_cast": true, "reinterpret_cast": true, "const_cast": true,
		"make_uniform": true, "array": true, "numeric_limits": true}
	for i, t := range ts {
		switch {
		case t.keyword("using") && at(ts, i+1).kind == identifier && at(ts, i+2).is("="):
			r.types[ts[i+1].text] = true
		case t.keyword("typedef"):
			end := i
			for end < len(ts) && !ts[end].is(";") {
				if ts[end].is("{") {
					end = closing(ts, end)
				}
				end++
			}
			if name := at(ts, end-1); name.kind == identifier {
				r.types[name.text] = true
			}
		case t.keyword("template") && at(ts, i+1).is("<"):
			end := closingAngle(ts, i+1)
			if end < 0 {
				continue
			}
			for j := i + 2; j < end; j++ {
				if (ts[j].keyword("typename") || ts[j].keyword("class")) && at(ts, j+1).kind == identifier &&
					(at(ts, j+2).is(",") || at(ts, j+2).is(">") || at(ts, j+2).is("=")) {
					r.types[ts[j+1].text] = true
				}
			}
			r.collectTemplate(ts, end+1)
		}
	}
}

// collectTemplate records the name of the function, class or variable whose template head ends before i: the last
// identifier before ( { = : or ; outside brackets.
func (r *rewriter) collectTemplate(ts []token, i int) {
	name := ""
	for ; i < len(ts); i++ {
		switch t := ts[i]; {
		case t.kind == identifier:
			name = t.text
		case t.is("["):
			i = closing(ts, i)
		case t.is("<"):
			if end := closingAngle(ts, i); end > 0 {
				i = end
			}
		case t.is("("), t.is("{"), t.is("="), t.is(":"), t.is(";"):
			if name != "" {
				r.templates[name] = true
			}
			return
		}
	}
}
