package msl

// rewriteConstructors deals with address-space qualifiers after the parameters of a constructor, which MSL uses to allow
// objects in several address spaces and C++ for OpenCL does not know: `S(float x) thread : … {` loses the qualifier, and
// the constructors for the other address spaces, which would then be the same function, are left out. Objects in device
// and threadgroup memory are assigned to, not constructed, in both languages.
func (r *rewriter) rewriteConstructors(ts []token) []token {
	classes := map[string]bool{}
	for i, t := range ts {
		if (t.keyword("struct") || t.keyword("class") || t.keyword("union")) && at(ts, i+1).kind == identifier {
			classes[ts[i+1].text] = true
		}
	}
	out := make([]token, 0, len(ts))
	s := newScopes()
	start := 0 // of the current declaration in out
	for i := 0; i < len(ts); i++ {
		if s.statement {
			start = len(out)
		}
		if s.inner() == classScope && classes[ts[i].text] && at(ts, i+1).is("(") && !at(ts, i-1).is("~") && !at(ts, i-1).is("::") {
			e := closing(ts, i+1)
			q := at(ts, e+1)
			next := at(ts, e+2)
			if q.kind == identifier && spaces[q.text] != "" && (next.is(":") || next.is("{") || next.is(";") || next.is("=")) {
				if q.text == "thread" {
					for ; i <= e; i++ {
						s.step(ts, i)
						out = append(out, ts[i])
					}
					s.step(ts, i) // the qualifier
					continue
				}
				out = out[:start]
				i = constructorEnd(ts, e+2)
				s.statement = true
				continue
			}
		}
		s.step(ts, i)
		out = append(out, ts[i])
	}
	return out
}

// constructorEnd is the index of the last token of a constructor whose initialisers or body begin at i.
func constructorEnd(ts []token, i int) int {
	for ; i < len(ts); i++ {
		switch t := ts[i]; {
		case t.is(";"):
			return i
		case t.is("("):
			i = closing(ts, i)
		case t.is("{"):
			i = closing(ts, i)
			// An initialiser in braces is followed by another or by the body.
			if next := at(ts, i+1); !next.is(",") && !next.is("{") {
				return min(i, len(ts)-1)
			}
		}
	}
	return len(ts) - 1
}
