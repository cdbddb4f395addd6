package air

import (
	"fmt"
	"runtime"
	"strings"
)

// String prints the module in LLVM's assembly. A module with typed pointers and without debug information is printed so
// that LLVM 14 reads it.
func (m *Module) String() string {
	if m == nil {
		return nothing
	}
	return newPrinter(m).printed(func(p *printer) { p.module() })
}

// String prints an instruction as LLVM's assembly does, without its metadata.
func (i *Instr) String() string {
	if i == nil {
		return nothing
	}
	return newPrinter(nil).printed(func(p *printer) {
		if i.Parent != nil {
			p.inFunction(i.Parent.Parent)
		}
		p.instr(i)
	})
}

// String prints a function, or its declaration.
func (f *Function) String() string {
	if f == nil {
		return nothing
	}
	return newPrinter(nil).printed(func(p *printer) { p.function(f) })
}

// String prints the constant with its type.
func (c *Const) String() string {
	if c == nil {
		return nothing
	}
	return newPrinter(nil).printed(func(p *printer) { p.typed(c) })
}

// nothing is how nil is printed.
const nothing = "<nil>"

// printed is what print prints: of something made by hand in which what must be there is nil, as far as it goes.
func (p *printer) printed(print func(*printer)) (s string) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case runtime.Error:
			s = p.b.String() + "<invalid: something is nil>"
		default:
			panic(e)
		}
	}()
	print(p)
	return p.b.String()
}

// A printer prints assembly. Without a module, metadata and attribute groups, which are printed by number, are left out.
type printer struct {
	b strings.Builder
	m *Module
	// slots number what has no name in the current function.
	slots map[Value]int
	f     *Function
	// globals number symbols without a name.
	globals map[Value]int
	// nodes number metadata in the order in which they are met.
	nodes    map[Metadata]int
	nodeList []Metadata
	groups   map[string]int
	groupSet []AttrSet
}

func newPrinter(m *Module) *printer {
	p := &printer{m: m, nodes: map[Metadata]int{}, groups: map[string]int{}, globals: map[Value]int{}}
	if m == nil {
		return p
	}
	n := 0
	unnamed := func(v Value, s *Symbol) {
		if s.Name == "" {
			p.globals[v] = n
			n++
		}
	}
	for _, g := range m.Globals {
		unnamed(g, &g.Symbol)
	}
	for _, a := range m.Aliases {
		unnamed(a, &a.Symbol)
	}
	for _, f := range m.Functions {
		unnamed(f, &f.Symbol)
	}
	return p
}

// inFunction numbers the values of f that have no name.
func (p *printer) inFunction(f *Function) *printer {
	if f == nil || p.f == f {
		return p
	}
	p.f = f
	p.slots = functionSlots(f)
	return p
}

func functionSlots(f *Function) map[Value]int {
	slots := map[Value]int{}
	next := 0
	add := func(v Value, name string) {
		if name == "" {
			slots[v] = next
			next++
		}
	}
	for _, a := range f.Args {
		add(a, a.Name)
	}
	for _, b := range f.Blocks {
		add(b, b.Name)
		for _, in := range b.Instrs {
			if in.Ty != nil && in.Ty.Kind != VoidKind {
				add(in, in.Name)
			}
		}
	}
	return slots
}

func (p *printer) print(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }
func (p *printer) add(s string)                     { p.b.WriteString(s) }

// list prints n things with commas between them.
func (p *printer) list(n int, each func(i int)) {
	for i := range n {
		if i > 0 {
			p.add(", ")
		}
		each(i)
	}
}

// valueName is the name of a symbol or of a value of the current function.
func (p *printer) valueName(v Value) string {
	name, sign := "", "%"
	switch v := v.(type) {
	case *Global:
		name, sign = v.Name, "@"
	case *Function:
		name, sign = v.Name, "@"
	case *Alias:
		name, sign = v.Name, "@"
	case *Arg:
		name = v.Name
	case *Block:
		name = v.Name
	case *Instr:
		name = v.Name
	}
	if name != "" {
		return sign + quoteName(name)
	}
	slots := p.slots
	if sign == "@" {
		slots = p.globals
	}
	if n, ok := slots[v]; ok {
		return fmt.Sprintf("%s%d", sign, n)
	}
	return sign + "<badref>"
}

// typed prints a value with its type before it.
func (p *printer) typed(v Value) {
	if v == nil {
		p.add("<missing>")
		return
	}
	p.add(v.Type().String())
	p.add(" ")
	p.value(v)
}

// value prints a value as an operand.
func (p *printer) value(v Value) {
	switch v := v.(type) {
	case nil:
		p.add("<missing>")
	case *Const:
		p.constant(v)
	case *MetadataValue:
		p.metadata(v.MD)
	case *InlineAsm:
		p.add("asm ")
		for _, f := range []struct {
			set  bool
			name string
		}{{v.SideEffect, "sideeffect "}, {v.AlignStack, "alignstack "}, {v.Dialect == 1, "inteldialect "}, {v.CanThrow, "unwind "}} {
			if f.set {
				p.add(f.name)
			}
		}
		p.print("%s, %s", quote(v.Asm), quote(v.Constraints))
	default:
		p.add(p.valueName(v))
	}
}

func (p *printer) module() {
	m := p.m
	if m.SourceName != "" {
		p.print("source_filename = %s\n", quote(m.SourceName))
	}
	if m.DataLayout != "" {
		p.print("target datalayout = %s\n", quote(m.DataLayout))
	}
	if m.Triple != "" {
		p.print("target triple = %s\n", quote(m.Triple))
	}
	if m.Asm != "" {
		for line := range strings.SplitSeq(strings.TrimSuffix(m.Asm, "\n"), "\n") {
			p.print("module asm %s\n", quote(line))
		}
	}
	for i, t := range m.namedStructs() {
		if i == 0 {
			p.add("\n")
		}
		body := "opaque"
		if !t.Opaque {
			body = t.Body()
		}
		p.print("%s = type %s\n", t, body)
	}
	for i, c := range m.Comdats {
		if i == 0 {
			p.add("\n")
		}
		p.print("$%s = comdat %s\n", quoteName(c.Name), at(comdatKinds[:], int(c.Kind)))
	}
	if len(m.Globals)+len(m.Aliases) > 0 {
		p.add("\n")
	}
	for _, g := range m.Globals {
		p.global(g)
	}
	for _, a := range m.Aliases {
		p.alias(a)
	}
	for _, f := range m.Functions {
		p.add("\n")
		p.function(f)
	}
	p.attributeGroups()
	p.moduleMetadata()
}

// at is element i of names, or the number if there is none.
func at(names []string, i int) string {
	if i >= 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("<%d>", i)
}

var (
	comdatKinds  = [...]string{"<0>", "any", "exactmatch", "largest", "nodeduplicate", "samesize"}
	visibilities = [...]string{"", "hidden ", "protected "}
	dllStorages  = [...]string{"", "dllimport ", "dllexport "}
	threadLocals = [...]string{"", "thread_local ", "thread_local(localdynamic) ", "thread_local(initialexec) ", "thread_local(localexec) "}
	unnamedAddrs = [...]string{"", "unnamed_addr ", "local_unnamed_addr "}
	linkageNames = map[Linkage]string{ExternalLinkage: "", AppendingLinkage: "appending ", InternalLinkage: "internal ",
		ExternalWeakLinkage: "extern_weak ", CommonLinkage: "common ", PrivateLinkage: "private ",
		AvailableExternallyLinkage: "available_externally ", WeakAnyLinkage: "weak ", WeakODRLinkage: "weak_odr ",
		LinkOnceAnyLinkage: "linkonce ", LinkOnceODRLinkage: "linkonce_odr "}
)

// symbol prints what stands between a symbol's name and its kind.
func (p *printer) symbol(s *Symbol) {
	p.add(linkageNames[s.Linkage])
	if s.DSOLocal && !s.Linkage.local() && s.Visibility == 0 {
		p.add("dso_local ")
	}
	p.add(at(visibilities[:], int(s.Visibility)))
	p.add(at(dllStorages[:], int(s.DLLStorage)))
	p.add(at(threadLocals[:], int(s.ThreadLocal)))
}

func (p *printer) comdat(s *Symbol) {
	if s.Comdat == nil {
		return
	}
	p.add(" comdat")
	if s.Comdat.Name != s.Name {
		p.print("($%s)", quoteName(s.Comdat.Name))
	}
}

func (p *printer) global(g *Global) {
	p.print("%s = ", p.valueName(g))
	if g.Init == nil && g.Linkage == ExternalLinkage {
		p.add("external ")
	}
	p.symbol(&g.Symbol)
	p.add(at(unnamedAddrs[:], int(g.UnnamedAddr)))
	if g.Space != 0 {
		p.print("addrspace(%d) ", g.Space)
	}
	if g.ExternallyInitialized {
		p.add("externally_initialized ")
	}
	kind := "global"
	if g.IsConst {
		kind = "constant"
	}
	p.print("%s %s", kind, g.ValueType)
	if g.Init != nil {
		p.add(" ")
		p.value(g.Init)
	}
	if g.Section != "" {
		p.print(", section %s", quote(g.Section))
	}
	if g.Comdat != nil {
		p.add(",")
		p.comdat(&g.Symbol)
	}
	if g.Align != 0 {
		p.print(", align %d", g.Align)
	}
	p.attachments(g.Meta, ", ")
	p.attrGroup(g.Attrs.Fn)
	p.add("\n")
}

func (p *printer) alias(a *Alias) {
	p.print("%s = ", p.valueName(a))
	p.symbol(&a.Symbol)
	p.add(at(unnamedAddrs[:], int(a.UnnamedAddr)))
	kind := "alias"
	if a.IFunc {
		kind = "ifunc"
	}
	p.print("%s %s, ", kind, a.ValueType)
	if c, ok := a.Aliasee.(*Const); ok && c.Kind == ExprConst {
		p.value(c) // LLVM leaves the type out before an expression
	} else {
		p.typed(a.Aliasee)
	}
	p.add("\n")
}

// callConvs are the calling conventions that have a name and matter here.
var callConvs = map[uint32]string{0: "", 8: "fastcc ", 9: "coldcc "}

func callConv(cc uint32) string {
	if s, ok := callConvs[cc]; ok {
		return s
	}
	return fmt.Sprintf("cc %d ", cc)
}

// attrs prints the attributes of a parameter or result, with a space before each or after each.
func (p *printer) attrs(s AttrSet, before, after string) {
	for _, a := range s {
		p.add(before + a.String() + after)
	}
}

func (p *printer) function(f *Function) {
	p.inFunction(f)
	if f.Declaration() {
		p.add("declare ")
		p.attachments(f.Meta, "")
		if len(f.Meta) > 0 {
			p.add(" ")
		}
	} else {
		p.add("define ")
	}
	p.symbol(&f.Symbol)
	p.add(callConv(f.CallConv))
	p.attrs(f.Attrs.Ret, "", " ")
	p.print("%s %s(", f.FuncType.Ret, p.valueName(f))
	p.list(len(f.Args), func(i int) {
		p.add(f.Args[i].Ty.String())
		p.attrs(f.Attrs.Param(i), " ", "")
		if !f.Declaration() {
			p.add(" " + p.valueName(f.Args[i]))
		}
	})
	if f.FuncType.Variadic {
		if len(f.Args) > 0 {
			p.add(", ")
		}
		p.add("...")
	}
	p.add(")")
	if s := at(unnamedAddrs[:], int(f.UnnamedAddr)); s != "" {
		p.add(" " + strings.TrimSpace(s))
	}
	if f.Space != 0 {
		p.print(" addrspace(%d)", f.Space)
	}
	p.attrGroup(f.Attrs.Fn)
	if f.Section != "" {
		p.print(" section %s", quote(f.Section))
	}
	p.comdat(&f.Symbol)
	if f.Align != 0 {
		p.print(" align %d", f.Align)
	}
	if f.GC != "" {
		p.print(" gc %s", quote(f.GC))
	}
	for _, c := range []struct {
		name string
		v    Value
	}{{"prefix", f.Prefix}, {"prologue", f.Prologue}, {"personality", f.Personality}} {
		if c.v != nil {
			p.print(" %s ", c.name)
			p.typed(c.v)
		}
	}
	if f.Declaration() {
		p.add("\n")
		return
	}
	p.attachments(f.Meta, " ")
	p.add(" {\n")
	for i, b := range f.Blocks {
		if i > 0 {
			p.add("\n")
		}
		if i > 0 || b.Name != "" {
			p.add(strings.TrimPrefix(p.valueName(b), "%") + ":\n")
		}
		for _, in := range b.Instrs {
			p.add("  ")
			p.instr(in)
			p.attachments(in.Meta, ", ")
			p.add("\n")
		}
	}
	p.add("}\n")
}
