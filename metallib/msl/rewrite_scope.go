package msl

// A scope says what a pair of braces holds.
type scope uint8

const (
	namespaceScope scope = iota
	classScope
	functionScope
	valueScope // a braced initialiser
)

// A scopes follows the nesting of braces while a pass walks over tokens.
type scopes struct {
	stack []scope
	// statement is set when the next token begins a statement or declaration.
	statement bool
}

func newScopes() *scopes { return &scopes{statement: true} }

// inner is the innermost scope that is not an initialiser.
func (s *scopes) inner() scope {
	for i := len(s.stack) - 1; i >= 0; i-- {
		if s.stack[i] != valueScope {
			return s.stack[i]
		}
	}
	return namespaceScope
}

// step takes note of token i.
func (s *scopes) step(ts []token, i int) {
	t := ts[i]
	switch {
	case t.is("{"):
		s.stack = append(s.stack, braceScope(ts, i, s.inner()))
		s.statement = s.stack[len(s.stack)-1] != valueScope
	case t.is("}"):
		if len(s.stack) > 0 {
			s.statement = s.stack[len(s.stack)-1] != valueScope
			s.stack = s.stack[:len(s.stack)-1]
		}
	case t.is(";") || t.kind == directive || t.is(":") && s.inner() != namespaceScope:
		s.statement = true
	default:
		s.statement = false
	}
}

// braceScope says what the brace at i opens, from what comes before it.
func braceScope(ts []token, i int, outer scope) scope {
	switch before := at(ts, i-1); {
	case before.is(")"), before.keyword("else"), before.keyword("do"), before.keyword("const"), before.keyword("noexcept"),
		before.keyword("mutable"), before.keyword("thread"), before.keyword("device"), before.keyword("threadgroup"), before.keyword("constant"):
		return functionScope
	case before.is("="), before.is("("), before.is(","), before.is("["), before.keyword("return"):
		return valueScope
	case before.is("]"):
		if outer == functionScope {
			return functionScope // a lambda without parameters
		}
		return valueScope
	case before.is("}"):
		return functionScope // after the last initialiser of a constructor
	case before.is(";"), before.is("{"), before.kind == directive:
		if outer == functionScope {
			return functionScope
		}
		return valueScope
	}
	for j := i - 1; j >= 0; j-- {
		switch t := ts[j]; {
		case t.keyword("namespace"), t.keyword("extern"):
			return namespaceScope
		case t.keyword("struct"), t.keyword("class"), t.keyword("union"), t.keyword("enum"):
			// `struct S f() {` returns a struct; ) before { has been dealt with.
			if prev := at(ts, j-1); prev.is("<") || prev.is(",") {
				continue // a template parameter
			}
			return classScope
		case t.is(")") && outer != functionScope:
			return functionScope // `f() -> T {` and constructors with initialisers
		case t.is(";"), t.is("{"), t.is("}"):
			j = 0
		}
	}
	if outer == functionScope {
		return valueScope
	}
	return functionScope
}
