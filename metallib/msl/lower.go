package msl

import (
	"fmt"
	"sort"
	"strings"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// Metal's form of a module: what the container's version 1.2.7 for macOS 14 goes with.
const (
	targetTriple = "air64-apple-macosx14.0.0"
	dataLayout   = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-f32:32:32-f64:64:64-v16:16:16-v24:32:32-v32:32:32-v48:64:64-v64:64:64-v96:128:128-v128:128:128-v192:256:256-v256:256:256-v512:512:512-v1024:1024:1024-n8:16:32"
)

// Address spaces of AIR.
const (
	threadSpace      = 0
	deviceSpace      = 1
	constantSpace    = 2
	threadgroupSpace = 3
)

// A lowering turns one optimised module into the module of one of its kernels.
type lowering struct {
	m    *air.Module
	u    *unit
	k    *kernelInfo
	fn   *air.Function
	ctor *air.Function // computes the constants; nil if the kernel uses none
	used []*constantInfo
	// filled are Metal's variables of function constants, by the variable that the code reads; fillOf by constant.
	filled   map[*air.Global]*air.Global
	fillOf   map[*constantInfo]*air.Global
	ctorList *air.Global
	// known are the named structs that stand for structs of the source.
	known map[string]*air.Type
}

// lower makes the AIR module of kernel k from bitcode that opt wrote, and lists the function constants it uses.
func lower(bitcode []byte, u *unit, k *kernelInfo) (*air.Module, []metallib.Constant, error) {
	// The unit's other kernels are no part of this one, and may be hundreds.
	m, err := air.ReadPart(bitcode, func(name string) bool { return name == k.symbol || !u.symbols[name] })
	if err != nil {
		return nil, nil, fmt.Errorf("kernel %s: %w", k.name, err)
	}
	l := &lowering{m: m, u: u, k: k, fn: m.Function(k.symbol), known: map[string]*air.Type{}}
	if l.fn == nil || l.fn.Declaration() {
		return nil, nil, fmt.Errorf("kernel %s is not in the compiled module", k.name)
	}
	if len(l.fn.Args) != len(k.params) {
		return nil, nil, fmt.Errorf("kernel %s has %d parameters in the source and %d in the compiled module", k.name, len(k.params), len(l.fn.Args))
	}
	for _, pass := range []func() error{
		l.constants, l.prune, l.inlined, l.threadgroup, l.instructions, l.prune, l.retype, l.attributes, l.header, l.metadata,
	} {
		if err := pass(); err != nil {
			return nil, nil, &kernelError{k.line, fmt.Errorf("kernel %s: %w", k.name, err)}
		}
	}
	if err := air.Verify(m); err != nil {
		return nil, nil, fmt.Errorf("kernel %s: %w", k.name, err)
	}
	constants, err := l.publicConstants()
	return m, constants, err
}

// publicConstants are the kernel's function constants as the container lists them.
func (l *lowering) publicConstants() ([]metallib.Constant, error) {
	var list []metallib.Constant
	for _, c := range l.used {
		if l.fillOf[c] == nil {
			continue
		}
		t, err := metallib.ParseDataType(c.typ.name)
		if err != nil {
			return nil, err
		}
		list = append(list, metallib.Constant{Name: c.name, Type: t, Index: uint16(c.index), Active: true})
	}
	return list, nil
}

// roots are the functions that a module is made for.
func (l *lowering) roots() []*air.Function {
	if l.ctor != nil {
		return []*air.Function{l.fn, l.ctor}
	}
	return []*air.Function{l.fn}
}

// prune drops what the roots do not reach.
func (l *lowering) prune() error {
	reached := map[air.Value]bool{}
	var work []*air.Function
	var visit func(v air.Value)
	visit = func(v air.Value) {
		switch v := v.(type) {
		case *air.Function:
			if !reached[v] {
				reached[v] = true
				work = append(work, v)
			}
		case *air.Global:
			if !reached[v] {
				reached[v] = true
				if v.Init != nil {
					visit(v.Init)
				}
			}
		case *air.Alias:
			reached[v] = true
			visit(v.Aliasee)
		case *air.Const:
			for _, e := range v.Elems {
				visit(e)
			}
		}
	}
	for _, f := range l.roots() {
		visit(f)
	}
	if l.ctorList != nil {
		visit(l.ctorList)
	}
	for len(work) > 0 {
		f := work[len(work)-1]
		work = work[:len(work)-1]
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				for _, a := range in.Args {
					visit(a)
				}
				if in.Callee != nil {
					visit(in.Callee)
				}
			}
		}
	}
	l.m.Functions = keepReached(l.m.Functions, reached)
	l.m.Globals = keepReached(l.m.Globals, reached)
	l.m.Aliases = nil
	for v := range reached {
		if a, ok := v.(*air.Alias); ok {
			return fmt.Errorf("alias %s is not supported", a.Name)
		}
	}
	return nil
}

func keepReached[T air.Value](list []T, reached map[air.Value]bool) []T {
	var kept []T
	for _, v := range list {
		if reached[v] {
			kept = append(kept, v)
		}
	}
	return kept
}

// inlined refuses functions that are left: they call themselves, which a GPU has no stack for.
func (l *lowering) inlined() error {
	for _, f := range l.m.Functions {
		if f != l.fn && f != l.ctor && !f.Declaration() {
			return fmt.Errorf("function %s calls itself: recursion is not supported", f.Name)
		}
	}
	return nil
}

// threadgroup moves the threadgroup variables to their address space: the front end has them in device memory, behind a
// call that gives a threadgroup pointer.
func (l *lowering) threadgroup() error {
	moved := map[air.Value]air.Value{}
	done := map[*air.Global]*air.Global{}
	for _, f := range l.m.Functions {
		for _, b := range f.Blocks {
			var kept []*air.Instr
			for _, in := range b.Instrs {
				callee := in.CalleeFunction()
				if in.Op != air.OpCall || callee == nil || !strings.HasPrefix(callee.Name, "_Z9__msl_as3") {
					kept = append(kept, in)
					continue
				}
				from, ok := in.Args[0].(*air.Global)
				if !ok {
					return fmt.Errorf("a threadgroup variable is reached in a way that this compiler does not follow")
				}
				to := done[from]
				if to == nil {
					to = l.threadgroupGlobal(from)
					done[from] = to
				}
				moved[in] = to
			}
			b.Instrs = kept
		}
	}
	replaceAll(l.m, moved)
	l.m.Globals = append(sortedGlobals(done), l.m.Globals...)
	return l.prune()
}

func sortedGlobals(m map[*air.Global]*air.Global) []*air.Global {
	var list []*air.Global
	for _, g := range m {
		list = append(list, g)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// threadgroupGlobal is the variable that stands for an instance of the prelude's template, named as Metal's compiler
// names statics of a function.
func (l *lowering) threadgroupGlobal(from *air.Global) *air.Global {
	name := from.Name
	if id, ok := strings.CutSuffix(name, "EE"); ok {
		number := 0
		if _, err := fmt.Sscanf(id[strings.LastIndexByte(id, 'i')+1:], "%d", &number); err == nil && number < len(l.u.shared) {
			name = l.u.shared[number].name
			if twin := l.twins(number); twin > 0 {
				// Variables of one name in several scopes.
				name = fmt.Sprintf("%s_%d", name, twin)
			}
		}
	}
	g := &air.Global{ValueType: from.ValueType, Space: threadgroupSpace, Align: from.Align}
	g.Name = fmt.Sprintf("_ZZ%d%sE%d%s", len(l.k.name), l.k.name, len(name), name)
	g.Ty = l.m.Pointer(nil, threadgroupSpace)
	g.Linkage = air.InternalLinkage
	g.UnnamedAddr = 1
	g.Init = &air.Const{Kind: air.UndefConst, Ty: from.ValueType}
	return g
}

// twins counts the threadgroup variables before one that have its name.
func (l *lowering) twins(number int) int {
	n := 0
	for _, o := range l.u.shared[:number] {
		if o.name == l.u.shared[number].name {
			n++
		}
	}
	return n
}

// header sets what the whole module says about itself and its kernel.
func (l *lowering) header() error {
	l.m.SourceName = l.k.name
	l.m.Triple = targetTriple
	l.m.DataLayout = dataLayout
	l.m.Asm = ""
	l.m.Ident = ""
	l.m.Comdats = nil
	l.m.Skipped = nil
	l.fn.Name = l.k.name
	for _, f := range l.m.Functions {
		f.CallConv = 0
		f.Comdat = nil
		f.DSOLocal = false
		f.Visibility = 0
		f.UnnamedAddr = 2
		f.Meta = nil
		switch {
		case f == l.fn, f.Declaration():
			f.Linkage = air.ExternalLinkage
		default:
			f.Linkage = air.InternalLinkage
			f.UnnamedAddr = 0
		}
		for _, a := range f.Args {
			a.Name = ""
		}
		for _, b := range f.Blocks {
			b.Name = ""
			for _, in := range b.Instrs {
				in.Name = ""
				in.CallConv = 0
				in.Meta = keptMetadata(in.Meta)
			}
		}
	}
	for _, g := range l.m.Globals {
		g.Comdat = nil
		g.DSOLocal = false
		g.Visibility = 0
		g.Meta = nil
		if g.Linkage != air.AppendingLinkage {
			g.Linkage = air.InternalLinkage
			g.UnnamedAddr = 1
		}
		if g.Space != constantSpace && g.Space != threadgroupSpace && g.Linkage != air.AppendingLinkage {
			return fmt.Errorf("variable %s is in address space %d: Metal has variables in constant and threadgroup memory only", g.Name, g.Space)
		}
		if g.Init == nil {
			return fmt.Errorf("variable %s is declared and defined nowhere", g.Name)
		}
	}
	return nil
}

// keptMetadata drops attachments but those about loops: types for alias analysis are left out (the source may read
// memory as another type than it wrote), and the rest is newer than LLVM 14 or says nothing to Metal.
func keptMetadata(list []air.Attachment) []air.Attachment {
	var kept []air.Attachment
	for _, a := range list {
		if a.Kind == "llvm.loop" {
			kept = append(kept, a)
		}
	}
	return kept
}
