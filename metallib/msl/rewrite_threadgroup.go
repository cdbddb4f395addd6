package msl

import "strconv"

// rewriteThreadgroup turns threadgroup variables inside functions into references: C++ for OpenCL allows such variables
// in kernels only, and what it calls a kernel may not be a template or take references. Each becomes a reference to an
// instance of a template variable, which the lowering moves to threadgroup memory.
func (r *rewriter) rewriteThreadgroup(ts []token) []token {
	out := make([]token, 0, len(ts))
	s := newScopes()
	for i := 0; i < len(ts); i++ {
		if s.statement && s.inner() == functionScope && ts[i].keyword("threadgroup") {
			if end, ok := r.threadgroupDeclaration(ts, i, &out); ok {
				i = end
				s.statement = true
				continue
			}
		}
		s.step(ts, i)
		out = append(out, ts[i])
	}
	return out
}

// threadgroupDeclaration rewrites the declaration at i unless it is one of pointers or references; end is the index of
// its semicolon.
func (r *rewriter) threadgroupDeclaration(ts []token, i int, out *[]token) (end int, ok bool) {
	var typ []token
	j := i + 1
	for ; j < len(ts); j++ {
		switch t := ts[j]; {
		case t.keyword("const"), t.keyword("volatile"):
		case t.keyword("alignas"):
			r.fail(t.at, "alignas on a threadgroup variable is not supported")
			return declarationEnd(ts, j), true
		case t.is("<"):
			e := closingAngle(ts, j)
			if e < 0 {
				return 0, false
			}
			typ = append(typ, ts[j:e+1]...)
			j = e
			continue
		case t.kind == identifier || t.is("::"):
			typ = append(typ, t)
			continue
		case t.is("*"), t.is("&"):
			return 0, false
		}
		if !ts[j].keyword("const") && !ts[j].keyword("volatile") {
			break
		}
	}
	if len(typ) < 2 || typ[len(typ)-1].kind != identifier {
		return 0, false
	}
	typ, j = typ[:len(typ)-1], j-1 // back to the name
	for {
		name := at(ts, j)
		if name.kind != identifier {
			r.fail(name.at, "a threadgroup declaration needs a name here")
			return declarationEnd(ts, j), true
		}
		var dims []token
		for j++; at(ts, j).is("["); j++ {
			e := min(closing(ts, j), len(ts)-1)
			dims = append(dims, ts[j:e+1]...)
			j = e
		}
		*out = append(*out, r.make(name.at, "__local auto& %s = *__msl_as3(&__msl_tgvar<", name.text)...)
		*out = append(*out, typ...)
		*out = append(*out, dims...)
		*out = append(*out, r.make(name.at, ", %s>);", strconv.Itoa(len(r.shared)))...)
		r.shared = append(r.shared, threadgroupVariable{name: name.text})
		switch t := at(ts, j); {
		case t.is(","):
			j++
		case t.is(";"):
			return j, true
		case t.is("="), t.is("{"):
			r.fail(t.at, "threadgroup variable %s cannot have an initial value", name.text)
			return declarationEnd(ts, j), true
		default:
			r.fail(t.at, "cannot read the declaration of threadgroup variable %s", name.text)
			return declarationEnd(ts, j), true
		}
	}
}

// declarationEnd is the index of the semicolon that ends the declaration around i, or of the last token.
func declarationEnd(ts []token, i int) int {
	for ; i < len(ts); i++ {
		switch {
		case ts[i].is(";"):
			return i
		case ts[i].is("{"), ts[i].is("("), ts[i].is("["):
			i = closing(ts, i)
		}
	}
	return len(ts) - 1
}
