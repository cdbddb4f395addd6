package msl

import (
	"fmt"
	"strconv"
)

// A functionConstant is a constant at program scope whose value is known when a pipeline is made.
type functionConstant struct {
	name string
	// index is that of [[function_constant(index)]]; -1 marks a constant derived from others.
	index int
}

// symbol is the name of the constant's global, mangled as a static variable.
func (c functionConstant) symbol() string { return fmt.Sprintf("_ZL%d%s", len(c.name), c.name) }

// Names of functions in clang's output that say something about constants: the type of one (its result) and the code
// that computes a derived one.
const (
	constantTypePrefix = "msl.fc."
	constantInitPrefix = "msl.init."
)

// rewriteConstants finds function constants, and constants whose initialisers use them. Both become external constants,
// so that clang assumes nothing of their values.
func (r *rewriter) rewriteConstants(ts []token) []token {
	out := make([]token, 0, len(ts))
	known := map[string]bool{}
	s := newScopes()
	for i := 0; i < len(ts); i++ {
		if s.statement && s.inner() == namespaceScope {
			if end, ok := r.constant(ts, i, known, &out); ok {
				i = end
				s.statement = true
				continue
			}
		}
		if ts[i].keyword("is_function_constant_defined") && at(ts, i+1).is("(") && at(ts, i+3).is(")") {
			name := ts[i+2]
			if !known[name.text] {
				r.fail(name.at, "%s is not a function constant", name.text)
			}
			s.step(ts, i)
			out = append(out, r.make(ts[i].at, "__msl_fc_defined(&%s)", name.text)...)
			i += 3
			continue
		}
		s.step(ts, i)
		out = append(out, ts[i])
	}
	return out
}

// constant rewrites the declaration at i if it is one of a function constant; end is the index of its semicolon.
func (r *rewriter) constant(ts []token, i int, known map[string]bool, out *[]token) (end int, ok bool) {
	var typ, init []token
	var name token
	index, isConstant, attributed := -1, false, false
	j := i
specifiers:
	for ; j < len(ts); j++ {
		switch t := ts[j]; {
		case t.keyword("constant"):
			isConstant = true
		case t.keyword("static"), t.keyword("const"), t.keyword("inline"), t.keyword("constexpr"), t.keyword("extern"):
		case isAttribute(ts, j):
			list, e := attributes(ts, j)
			for _, a := range list {
				if a.name != "function_constant" {
					continue
				}
				attributed = true
				v, err := evaluate(a.args)
				if err != nil {
					r.fail(a.at, "function_constant needs an integer constant: %v", err)
				} else if v < 0 || v > 65535 {
					r.fail(a.at, "function_constant(%d) is out of range: indices are 0 to 65535", v)
				}
				index = int(v)
			}
			j = e - 1
		case t.is("="), t.is(";"):
			break specifiers
		case t.is("<"):
			e := closingAngle(ts, j)
			if e < 0 {
				return 0, false
			}
			typ = append(typ, ts[j:e+1]...)
			j = e
		case t.kind == identifier || t.is("::"):
			typ = append(typ, t)
		default:
			return 0, false
		}
	}
	if !isConstant || len(typ) < 2 || typ[len(typ)-1].kind != identifier {
		return 0, false
	}
	typ, name = typ[:len(typ)-1], typ[len(typ)-1]
	if at(ts, j).is("=") {
		for j++; j < len(ts) && !ts[j].is(";"); j++ {
			if ts[j].is("{") || ts[j].is("(") || ts[j].is("[") {
				e := min(closing(ts, j), len(ts)-1)
				init = append(init, ts[j:e]...)
				j = e
			}
			init = append(init, ts[j])
		}
	}
	c := functionConstant{name: name.text, index: index}
	switch {
	case attributed && init != nil:
		r.fail(name.at, "function constant %s cannot have an initial value", name.text)
		return j, true
	case attributed:
		for _, o := range r.constants {
			if o.index == index {
				r.fail(name.at, "function constant %s has the index of %s", name.text, o.name)
			}
		}
		*out = append(*out, r.make(name.at, "extern const __constant %s %s __asm(%q); %s __msl_fc_%d() __asm(%q); %s __msl_fc_%d() { return %s(0); }",
			joined(typ), name.text, c.symbol(), joined(typ), len(r.constants), constantTypePrefix+strconv.Itoa(len(r.constants)), joined(typ), len(r.constants), joined(typ))...)
	case mentions(init, known):
		*out = append(*out, r.make(name.at, "extern const __constant %s %s __asm(%q); void __msl_init_%d() __asm(%q); void __msl_init_%d() { __msl_fc_store<%s>(&%s, (%s)(",
			joined(typ), name.text, c.symbol(), len(r.constants), constantInitPrefix+strconv.Itoa(len(r.constants)), len(r.constants), joined(typ), name.text, joined(typ))...)
		*out = append(*out, init...)
		*out = append(*out, r.make(name.at, ")); }")...)
	default:
		return 0, false
	}
	known[name.text] = true
	r.constants = append(r.constants, c)
	return j, true
}

// mentions tells whether an expression uses one of the names.
func mentions(expr []token, names map[string]bool) bool {
	for i, t := range expr {
		if t.kind == identifier && names[t.text] && !at(expr, i-1).is(".") && !at(expr, i-1).is("->") {
			return true
		}
	}
	return false
}

// evaluate computes an integer constant expression of literals, + - * and parentheses.
func evaluate(ts []token) (int64, error) {
	e := &evaluator{ts: ts}
	v := e.sum(0)
	if e.err == nil && e.i < len(ts) {
		e.err = fmt.Errorf("unexpected %q", ts[e.i].text)
	}
	return v, e.err
}

type evaluator struct {
	ts  []token
	i   int
	err error
}

func (e *evaluator) take(s string) bool {
	if at(e.ts, e.i).is(s) {
		e.i++
		return true
	}
	return false
}

func (e *evaluator) sum(depth int) int64 {
	v := e.product(depth)
	for e.err == nil {
		switch {
		case e.take("+"):
			v += e.product(depth)
		case e.take("-"):
			v -= e.product(depth)
		default:
			return v
		}
	}
	return v
}

func (e *evaluator) product(depth int) int64 {
	v := e.unary(depth)
	for e.err == nil && e.take("*") {
		v *= e.unary(depth)
	}
	return v
}

func (e *evaluator) unary(depth int) int64 {
	switch t := at(e.ts, e.i); {
	case depth > 100:
		e.err = fmt.Errorf("nested too deeply")
	case e.take("-"):
		return -e.unary(depth + 1)
	case e.take("("):
		v := e.sum(depth + 1)
		if !e.take(")") && e.err == nil {
			e.err = fmt.Errorf("missing )")
		}
		return v
	case t.kind == number:
		e.i++
		s := t.text
		for len(s) > 1 && (s[len(s)-1]|32 == 'u' || s[len(s)-1]|32 == 'l') {
			s = s[:len(s)-1]
		}
		v, err := strconv.ParseInt(s, 0, 64)
		if err != nil {
			e.err = fmt.Errorf("%q is not an integer", t.text)
		}
		return v
	default:
		e.err = fmt.Errorf("%q is not an integer", t.text)
	}
	return 0
}
