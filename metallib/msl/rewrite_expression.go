package msl

import "strings"

// rewriteExpressions turns what C++ for OpenCL reads differently, or not at all, into calls of functions of the prelude:
// T(a, b) and (T)a for a T that is or may be a vector become __msl_make<T>(…), and so does static_cast. Floating-point
// literals get the suffix that makes them float, as they are in MSL.
func (r *rewriter) rewriteExpressions(ts []token) []token { return r.expressions(ts, 0) }

// maxNesting bounds the recursion over nested casts.
const maxNesting = 200

func (r *rewriter) expressions(ts []token, depth int) []token {
	out := make([]token, 0, len(ts)+len(ts)/8)
	if depth > maxNesting {
		r.fail(at(ts, 0).at, "expression is nested too deeply")
		return ts
	}
	wrap := func(where position, typ, operand []token) {
		out = append(out, r.make(where, "__msl_make<")...)
		out = append(out, typ...)
		out = append(out, r.make(where, ">(")...)
		out = append(out, r.expressions(operand, depth+1)...)
		out = append(out, r.make(where, ")")...)
	}
	for i := 0; i < len(ts); i++ {
		t, before := ts[i], at(ts, i-1)
		if t.kind == number {
			out = append(out, r.literal(t)...)
			continue
		}
		if t.keyword("static_cast") && at(ts, i+1).is("<") {
			if end := closingAngle(ts, i+1); end > 0 && at(ts, end+1).is("(") && r.isValueType(ts[i+2:end]) {
				e := min(closing(ts, end+1), len(ts))
				wrap(t.at, ts[i+2:end], ts[end+2:e])
				i = e
				continue
			}
		}
		// A type cannot follow . or ->, and an operator's name is not a constructor.
		if end := r.vectorType(ts, i); end > 0 && !before.is(".") && !before.is("->") && !before.is("::") && !before.keyword("operator") && !before.keyword("typename") {
			switch next := at(ts, end); {
			case next.is("(") && !isDeclarator(ts, end):
				e := min(closing(ts, end), len(ts))
				wrap(t.at, ts[i:end], ts[end+1:e])
				i = e
				continue
			case isBracedInit(ts, end) && !before.is("<") && r.isVector(ts[i:end]):
				typ := ts[i:end]
				out = append(out, typ...)
				i = end - 1
				// float4 a = {0}, b = {0};
				for {
					e := min(closing(ts, i+3), len(ts)-1)
					out = append(out, ts[i+1], ts[i+2])
					out = append(out, r.make(ts[i+1].at, "__msl_fill<%s>(", joined(typ))...)
					inner := ts[i+4 : max(e, i+4)]
					if n := len(inner); n > 0 && inner[n-1].is(",") {
						inner = inner[:n-1]
					}
					out = append(out, r.expressions(inner, depth+1)...)
					out = append(out, r.make(ts[i+1].at, ")")...)
					i = e
					if !at(ts, i+1).is(",") || !isBracedInit(ts, i+2) {
						break
					}
					i++
					out = append(out, ts[i])
				}
				continue
			}
			out = append(out, ts[i:end]...)
			i = end - 1
			continue
		}
		if t.is("(") && r.mayCastAfter(before) {
			j := i + 1
			if at(ts, j).keyword("const") {
				j++
			}
			if end := r.vectorType(ts, j); end > 0 && at(ts, end).is(")") && startsOperand(at(ts, end+1)) {
				e := r.operandEnd(ts, end+1, 0)
				wrap(t.at, ts[j:end], ts[end+1:e])
				i = e - 1
				continue
			}
		}
		out = append(out, t)
	}
	return out
}

// isBracedInit tells whether NAME = { begins at i.
func isBracedInit(ts []token, i int) bool {
	return at(ts, i).kind == identifier && at(ts, i+1).is("=") && at(ts, i+2).is("{")
}

// vectorType is the index after the type at i if it is a vector type, or a name that may stand for one; 0 otherwise.
func (r *rewriter) vectorType(ts []token, i int) int {
	j := i
	if (at(ts, j).keyword("metal") || at(ts, j).keyword("simd")) && at(ts, j+1).is("::") {
		j += 2
	}
	t := at(ts, j)
	switch {
	case t.kind != identifier:
		return 0
	case t.text == "vec" && at(ts, j+1).is("<"):
		if end := closingAngle(ts, j+1); end > 0 {
			return end + 1
		}
	case r.types[t.text] && !at(ts, j+1).is("::") && !at(ts, j+1).is("<"):
		return j + 1
	}
	return 0
}

// isVector tells whether a type found by vectorType is surely a vector.
func (r *rewriter) isVector(typ []token) bool {
	name := typ[0]
	if len(typ) > 2 && typ[1].is("::") {
		name = typ[2]
	}
	return name.text == "vec" || vectorTypes[name.text] && !strings.HasPrefix(name.text, "packed_")
}

// isValueType tells whether a type between the angles of a static_cast may be a vector: pointers, references and
// built-in scalars are left to clang.
func (r *rewriter) isValueType(typ []token) bool {
	vector := false
	for i, t := range typ {
		if t.is("*") || t.is("&") {
			return false
		}
		if r.vectorType(typ, i) > 0 || t.is("::") || t.is("<") {
			vector = true
		}
	}
	return vector
}

// isDeclarator tells whether the parenthesis at i begins a declarator such as (*f)(int) or (&a)[4].
func isDeclarator(ts []token, i int) bool {
	if !at(ts, i+1).is("*") && !at(ts, i+1).is("&") {
		return false
	}
	j := i + 2
	if at(ts, j).kind == identifier {
		j++
	}
	return at(ts, j).is(")") && (at(ts, j+1).is("(") || at(ts, j+1).is("["))
}

// mayCastAfter tells whether a parenthesised type after t is a cast, and not the arguments of something.
func (r *rewriter) mayCastAfter(t token) bool {
	switch t.kind {
	case identifier:
		return t.text == "return" || t.text == "case" || t.text == "else" || t.text == "do"
	case punct:
		return t.text != ")" && t.text != "]"
	}
	return true
}

// startsOperand tells whether t can begin the operand of a cast.
func startsOperand(t token) bool {
	switch t.kind {
	case number, text:
		return true
	case identifier:
		return t.text != "const" && t.text != "noexcept" && t.text != "override" && t.text != "constant" &&
			t.text != "device" && t.text != "thread" && t.text != "threadgroup"
	case punct:
		switch t.text {
		case "(", "-", "+", "*", "&", "!", "~", "++", "--", "::":
			return true
		}
	}
	return false
}

// operandEnd is the index after the unary expression that begins at i.
func (r *rewriter) operandEnd(ts []token, i, depth int) int {
	for i < len(ts) && ts[i].kind == punct {
		switch ts[i].text {
		case "-", "+", "*", "&", "!", "~", "++", "--":
			i++
			continue
		}
		break
	}
	if i >= len(ts) || depth > maxNesting {
		return min(i, len(ts))
	}
	if ts[i].is("(") {
		e := closing(ts, i)
		// A cast of any type: (T)x, (device T*)x.
		if r.looksLikeType(ts[i+1:min(e, len(ts))]) && startsOperand(at(ts, e+1)) {
			return r.operandEnd(ts, e+1, depth+1)
		}
		i = min(e+1, len(ts))
	} else {
		i++
		for i < len(ts) && ts[i].is("::") && ts[i-1].kind == identifier && at(ts, i+1).kind == identifier {
			i += 2
		}
	}
	for i < len(ts) {
		switch t := ts[i]; {
		case t.is("("), t.is("["):
			i = min(closing(ts, i)+1, len(ts))
		case t.is(".") || t.is("->"):
			i = min(i+2, len(ts))
		case t.is("++") || t.is("--"):
			i++
		case t.is("::") && at(ts, i+1).kind == identifier:
			i += 2
		case t.is("<") && ts[i-1].kind == identifier && r.templates[ts[i-1].text]:
			end := closingAngle(ts, i)
			if end < 0 {
				return i
			}
			i = end + 1
		default:
			return i
		}
	}
	return i
}

var scalarTypes = words(`bool char uchar short ushort int uint long ulong half float bfloat void size_t unsigned signed
	int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t`)

// looksLikeType tells whether the tokens between parentheses are a type: a known name, perhaps qualified, with *.
func (r *rewriter) looksLikeType(ts []token) bool {
	named := false
	for i := 0; i < len(ts); i++ {
		switch t := ts[i]; {
		case t.kind == identifier && (t.text == "const" || t.text == "device" || t.text == "constant" || t.text == "thread" ||
			t.text == "threadgroup" || t.text == "volatile"):
			named = true
		case t.kind == identifier && scalarTypes[t.text]:
			named = true
		case r.vectorType(ts, i) > 0:
			i = r.vectorType(ts, i) - 1
			named = true
		case t.kind == identifier && named, t.is("::"), t.is("*") && named:
		default:
			return false
		}
	}
	return named
}

// literal makes an unsuffixed floating-point literal a float, and a bfloat one a conversion.
func (r *rewriter) literal(t token) []token {
	s := t.text
	hex := strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X")
	floating := strings.ContainsAny(s, ".pP") || !hex && strings.ContainsAny(s, "eE")
	if !floating {
		return []token{t}
	}
	switch lower := strings.ToLower(s); {
	case strings.HasSuffix(lower, "bf") && !hex:
		return r.make(t.at, "((bfloat)%sf)", s[:len(s)-2])
	case strings.HasSuffix(lower, "h"):
		// clang has no hexadecimal half literals.
		if hex {
			return r.make(t.at, "((half)%sf)", s[:len(s)-1])
		}
		return []token{t}
	case strings.HasSuffix(lower, "f") && (!hex || strings.ContainsAny(s, "pP")):
		return []token{t}
	case strings.HasSuffix(lower, "l"):
		r.fail(t.at, "double literals are not supported")
		return []token{t}
	}
	t.text += "f"
	return []token{t}
}
