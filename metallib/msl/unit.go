package msl

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// A unit is what is known of one translation unit apart from its code.
type unit struct {
	kernels []*kernelInfo
	symbols map[string]bool // those of kernels
	// constants are the function constants by the symbol of their global.
	constants map[string]*constantInfo
	shared    []threadgroupVariable
	// initialisers are the symbols of the functions that compute derived constants, in order.
	initialisers []string
}

// A kernelInfo is one kernel.
type kernelInfo struct {
	symbol, name string
	maxThreads   int
	params       []paramInfo
	// line is that of the kernel in the rewritten source.
	line int
}

// A kernelError is a mistake in the declaration of a kernel.
type kernelError struct {
	line int
	err  error
}

func (e *kernelError) Error() string { return e.err.Error() }
func (e *kernelError) Unwrap() error { return e.err }

// A paramInfo is one parameter of a kernel.
type paramInfo struct {
	name string
	typ  *debugType
	// builtin is the attribute of a parameter that the hardware fills; otherwise binding is "buffer" or "threadgroup" and
	// slot the index, if the source gives one.
	builtin string
	binding string
	slot    int
}

// A constantInfo is one function constant, or one derived from others (index -1).
type constantInfo struct {
	functionConstant
	order int
	typ   *debugType
}

// newUnit puts together what the rewriter and clang's output say.
func newUnit(t *irText, r *rewriter) (*unit, error) {
	u := &unit{symbols: map[string]bool{}, constants: map[string]*constantInfo{}, shared: r.shared}
	for i, c := range r.constants {
		info := &constantInfo{functionConstant: c, order: i}
		if c.index < 0 {
			u.initialisers = append(u.initialisers, fmt.Sprintf("%s%d", constantInitPrefix, i))
		} else if f := t.functions[fmt.Sprintf("%s%d", constantTypePrefix, i)]; f != nil {
			types := t.list(t.node(t.node(f.debug)["type"])["types"])
			if len(types) == 1 {
				info.typ = t.debugType(types[0])
			}
		}
		if c.index >= 0 && (info.typ == nil || info.typ.kind != scalarType && info.typ.kind != vectorDebugType) {
			return nil, fmt.Errorf("function constant %s is neither a scalar nor a vector", c.name)
		}
		u.constants[c.symbol()] = info
	}
	names := map[string]string{}
	for _, symbol := range t.order {
		f := t.functions[symbol]
		k, err := newKernel(t, f)
		if err != nil {
			return nil, err
		}
		if k == nil {
			continue
		}
		if other, ok := names[k.name]; ok {
			return nil, &kernelError{k.line, fmt.Errorf("two kernels are called %s (%s and %s)", k.name, other, k.symbol)}
		}
		names[k.name] = k.symbol
		u.kernels = append(u.kernels, k)
		u.symbols[k.symbol] = true
	}
	return u, nil
}

// newKernel reads the annotations of a function; nil if it is not a kernel.
func newKernel(t *irText, f *irFunction) (*kernelInfo, error) {
	k := &kernelInfo{symbol: f.symbol}
	isKernel, limited := false, false
	for _, a := range f.annotations {
		switch {
		case a.text == "kernel":
			isKernel = true
		case strings.HasPrefix(a.text, "host_name:"):
			k.name = strings.TrimPrefix(a.text, "host_name:")
		case a.text == "max_total_threads_per_threadgroup":
			k.maxThreads, limited = int(a.number), true
		}
	}
	if !isKernel {
		return nil, nil
	}
	sub := t.node(f.debug)
	source := sub["name"]
	k.line, _ = strconv.Atoi(sub["line"])
	if k.name == "" {
		if strings.Contains(source, "<") {
			return nil, &kernelError{k.line, fmt.Errorf("kernel %s is an instance of a template and needs a name: [[host_name(\"…\")]]", source)}
		}
		k.name = source
	}
	if types := t.list(t.node(sub["type"])["types"]); len(types) > 0 && types[0] != "null" {
		return nil, &kernelError{k.line, fmt.Errorf("kernel %s returns %s: a kernel returns void", k.name, t.debugType(types[0]).name)}
	}
	if limited && (k.maxThreads < 1 || k.maxThreads > 1024) {
		return nil, &kernelError{k.line, fmt.Errorf("kernel %s: max_total_threads_per_threadgroup is %d: it is 1 to 1024", k.name, k.maxThreads)}
	}
	var positions []int
	for i := range f.params {
		positions = append(positions, i)
	}
	sort.Ints(positions)
	for i, at := range positions {
		if i != at {
			return nil, &kernelError{k.line, fmt.Errorf("kernel %s: parameter %d has no name", k.name, i)}
		}
		p := f.params[at]
		info := paramInfo{name: p.name, typ: t.debugType(p.typ)}
		for _, a := range p.annotations {
			switch {
			case a.hasNumber:
				info.binding, info.slot = a.text, int(a.number)
			case builtins[a.text]:
				info.builtin = a.text
			}
		}
		k.params = append(k.params, info)
	}
	return k, nil
}
