package msl

// refuseHidden reports kernels that C++ keeps out of the compiled module, so that a library would silently lack them:
// static ones, those in a namespace without a name, and inline ones, which nobody calls.
func (r *rewriter) refuseHidden(ts []token) []token {
	var unnamed []bool // for each open brace
	for i, t := range ts {
		switch {
		case t.is("{"):
			unnamed = append(unnamed, at(ts, i-1).keyword("namespace"))
		case t.is("}") && len(unnamed) > 0:
			unnamed = unnamed[:len(unnamed)-1]
		case t.keyword("kernel") && !at(ts, i-1).is(".") && !at(ts, i-1).is("->"):
			if why := hiddenBy(ts, i, unnamed); why != "" {
				r.fail(t.at, "a kernel that is %s: the library would not have it", why)
			}
		}
	}
	return ts
}

// hiddenBy says what hides the kernel whose declaration has the word at i, "" if nothing does.
func hiddenBy(ts []token, i int, unnamed []bool) string {
	for _, u := range unnamed {
		if u {
			return "in a namespace without a name"
		}
	}
	begin := i
	for begin > 0 && ts[begin-1].kind != directive && !ts[begin-1].is(";") && !ts[begin-1].is("{") && !ts[begin-1].is("}") {
		begin--
	}
	inline, template := false, false
	for j := begin; j < len(ts) && !(ts[j].is("(") && j > i) && !ts[j].is(";") && !ts[j].is("{"); j++ {
		switch t := ts[j]; {
		case t.keyword("static"):
			return "static"
		case t.keyword("inline"):
			inline = true
		case t.keyword("template"):
			template = true // which is in the module where it is instantiated
		}
	}
	if inline && !template {
		return "inline"
	}
	return ""
}
