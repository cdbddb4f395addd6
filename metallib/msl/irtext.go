package msl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An irText is what is read off the text of clang's module before it is optimised: the annotations that the rewriter
// left, and the debug information, which knows the types of parameters as they were written.
type irText struct {
	strings map[string]string // by symbol
	numbers map[string]int64  // the arguments of annotations, by symbol
	// functions are the definitions, by symbol; order is theirs in the module.
	functions map[string]*irFunction
	order     []string
	meta      map[string]string // the text of each metadata node, by "!12"
	types     map[string]*debugType
}

// An irFunction is one definition.
type irFunction struct {
	symbol      string
	debug       string // its DISubprogram
	annotations []annotation
	params      map[int]*irParam // by position
}

// An irParam is one parameter of a definition.
type irParam struct {
	name, typ   string // typ is a metadata node
	annotations []annotation
}

// An annotation is what the rewriter attached: "buffer" with a number, "host_name:x".
type annotation struct {
	text   string
	number int64
	// hasNumber is set for annotations with an argument.
	hasNumber bool
}

var (
	stringLine     = regexp.MustCompile(`^(@[\w.$]+) = private .*constant \[\d+ x i8\] c"(.*)", section "llvm.metadata"`)
	emptyLine      = regexp.MustCompile(`^(@[\w.$]+) = private .*constant \{ i32 \} (?:zeroinitializer|\{ i32 (-?\d+) \}), section "llvm.metadata"`)
	defineLine     = regexp.MustCompile(`^define .*?(@(?:"[^"]*"|[\w.$]+))\(.*?(?:!dbg (!\d+) )?\{$`)
	declareValue   = regexp.MustCompile(`#dbg_declare\(ptr(?: addrspace\(\d+\))? (%[\w.]+), (!\d+),`)
	annotateValue  = regexp.MustCompile(`call void @llvm\.var\.annotation\.[\w.]+\(ptr(?: addrspace\(\d+\))? (%[\w.]+), ptr(?: addrspace\(\d+\))? (@[\w.$]+), ptr(?: addrspace\(\d+\))? @[\w.$]+, i32 \d+, ptr(?: addrspace\(\d+\))? (@[\w.$]+|null)\)`)
	annotateGlobal = regexp.MustCompile(`(@(?:"[^"]*"|[\w.$]+))(?: to ptr addrspace\(\d+\)\))?, ptr(?: addrspace\(\d+\))? (@[\w.$]+), ptr(?: addrspace\(\d+\))? @[\w.$]+, i32 \d+, ptr(?: addrspace\(\d+\))? (?:addrspacecast \(ptr(?: addrspace\(\d+\))? )?(@[\w.$]+|null)`)
	metaLine       = regexp.MustCompile(`^(!\d+) = (?:distinct )?(.*)$`)
	hexEscape      = regexp.MustCompile(`\\([0-9A-Fa-f]{2})`)
)

// parseIR reads the text of a module.
func parseIR(module string) (*irText, error) {
	t := &irText{strings: map[string]string{}, numbers: map[string]int64{}, functions: map[string]*irFunction{}, meta: map[string]string{}, types: map[string]*debugType{}}
	type valueAnnotation struct {
		fn        *irFunction
		value     string
		str, args string
	}
	var pending []valueAnnotation
	variables := map[*irFunction]map[string]string{} // DILocalVariable by value
	globals := ""
	var fn *irFunction
	for _, line := range strings.Split(module, "\n") {
		switch {
		case strings.HasPrefix(line, "@llvm.global.annotations"):
			globals = line
		case strings.HasPrefix(line, "@"):
			if m := stringLine.FindStringSubmatch(line); m != nil {
				t.strings[m[1]] = strings.TrimSuffix(hexEscape.ReplaceAllStringFunc(m[2], func(s string) string {
					n, _ := strconv.ParseUint(s[1:], 16, 8)
					return string(rune(n))
				}), "\x00")
			} else if m := emptyLine.FindStringSubmatch(line); m != nil {
				n := int64(0)
				if m[2] != "" {
					n, _ = strconv.ParseInt(m[2], 10, 64)
				}
				t.numbers[m[1]] = n
			}
		case strings.HasPrefix(line, "define "):
			m := defineLine.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("msl: cannot read clang's output: %s", line)
			}
			fn = &irFunction{symbol: unquote(m[1]), debug: m[2], params: map[int]*irParam{}}
			t.functions[fn.symbol] = fn
			t.order = append(t.order, fn.symbol)
			variables[fn] = map[string]string{}
		case line == "}":
			fn = nil
		case fn != nil && strings.Contains(line, "#dbg_declare("):
			if m := declareValue.FindStringSubmatch(line); m != nil {
				variables[fn][m[1]] = m[2]
			}
		case fn != nil && strings.Contains(line, "@llvm.var.annotation"):
			if m := annotateValue.FindStringSubmatch(line); m != nil {
				pending = append(pending, valueAnnotation{fn, m[1], m[2], m[3]})
			}
		case strings.HasPrefix(line, "!"):
			if m := metaLine.FindStringSubmatch(line); m != nil {
				t.meta[m[1]] = m[2]
			}
		}
	}
	for _, f := range t.functions {
		t.parameters(f, variables[f])
	}
	for _, p := range pending {
		node := t.node(variables[p.fn][p.value])
		if arg, err := strconv.Atoi(node["arg"]); err == nil && p.fn.params[arg-1] != nil {
			param := p.fn.params[arg-1]
			param.annotations = append(param.annotations, t.annotation(p.str, p.args))
		}
	}
	for _, m := range annotateGlobal.FindAllStringSubmatch(globals, -1) {
		if f := t.functions[unquote(m[1])]; f != nil {
			f.annotations = append(f.annotations, t.annotation(m[2], m[3]))
		}
	}
	return t, nil
}

// parameters finds the parameters of a function among its variables.
func (t *irText) parameters(f *irFunction, variables map[string]string) {
	for _, v := range variables {
		node := t.node(v)
		if arg, err := strconv.Atoi(node["arg"]); err == nil && node["scope"] == f.debug {
			f.params[arg-1] = &irParam{name: node["name"], typ: node["type"]}
		}
	}
}

func (t *irText) annotation(str, args string) annotation {
	a := annotation{text: strings.TrimPrefix(t.strings[str], "msl:")}
	a.number, a.hasNumber = t.numbers[args]
	return a
}

// unquote is the name of a symbol: @x, @"x".
func unquote(symbol string) string {
	symbol = strings.TrimPrefix(symbol, "@")
	if !strings.HasPrefix(symbol, `"`) {
		return symbol
	}
	return hexEscape.ReplaceAllStringFunc(strings.Trim(symbol, `"`), func(s string) string {
		n, _ := strconv.ParseUint(s[1:], 16, 8)
		return string([]byte{byte(n)})
	})
}

// node splits a specialised metadata node, !DIName(key: value, …), into its fields; the name is under "". Strings lose
// their quotes.
func (t *irText) node(ref string) map[string]string {
	s := t.meta[ref]
	fields := map[string]string{}
	open := strings.IndexByte(s, '(')
	if open < 0 || !strings.HasSuffix(s, ")") {
		return fields
	}
	fields[""] = strings.TrimPrefix(s[:open], "!")
	s = s[open+1 : len(s)-1]
	for s != "" {
		key, rest, ok := strings.Cut(s, ":")
		if !ok {
			break
		}
		rest = strings.TrimLeft(rest, " ")
		end := 0
		if strings.HasPrefix(rest, `"`) {
			for end = 1; end < len(rest) && rest[end] != '"'; end++ {
			}
			fields[strings.TrimSpace(key)] = rest[1:min(end, len(rest))]
			end = min(end+1, len(rest))
		} else {
			depth := 0
			for ; end < len(rest) && (depth > 0 || rest[end] != ','); end++ {
				switch rest[end] {
				case '(':
					depth++
				case ')':
					depth--
				}
			}
			fields[strings.TrimSpace(key)] = strings.TrimSpace(rest[:end])
		}
		s = strings.TrimLeft(strings.TrimPrefix(rest[end:], ","), " ")
	}
	return fields
}

// list is the elements of a tuple, !{!1, null, !2}.
func (t *irText) list(ref string) []string {
	s := t.meta[ref]
	if !strings.HasPrefix(s, "!{") || !strings.HasSuffix(s, "}") {
		return nil
	}
	s = strings.TrimSpace(s[2 : len(s)-1])
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
