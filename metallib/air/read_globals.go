package air

// moduleRecord reads a record of the module block itself.
func (r *reader) moduleRecord() {
	switch r.code {
	case modVersion:
		if r.version = r.op(0); r.version > 2 {
			r.fail("module version %d", r.version)
		}
	case modTriple:
		r.m.Triple = r.text(0)
	case modDataLayout:
		r.m.DataLayout = r.text(0)
		r.allocaSpace = allocaSpace(r.m.DataLayout)
	case modAsm:
		r.m.Asm = r.text(0)
	case modSectionName:
		r.sections = append(r.sections, r.text(0))
	case modGCName:
		r.gcs = append(r.gcs, r.text(0))
	case modSourceName:
		r.m.SourceName = r.text(0)
	case modComdat:
		r.readComdat()
	case modGlobalVar:
		r.readGlobal()
	case modFunction:
		r.readFunction()
	case modAlias, modAliasOld, modIFunc:
		r.readAlias()
	case modVSTOffset, modHash, modMDUnused:
	case modDepLib:
		r.skipRecord()
	default:
		r.fail("module record %d is not known", r.code)
	}
}

// allocaSpace is the address space of allocas that a data layout gives ("A5").
func allocaSpace(layout string) int {
	for i := 0; i < len(layout); i++ {
		if layout[i] != 'A' || i > 0 && layout[i-1] != '-' {
			continue
		}
		n := 0
		for i++; i < len(layout) && layout[i] >= '0' && layout[i] <= '9' && n < 1<<20; i++ {
			n = n*10 + int(layout[i]-'0')
		}
		return n
	}
	return 0
}

// takeName takes the name off the front of a symbol's record, where version 2 has it as a place in the string table.
// Older modules name symbols in the symbol table.
func (r *reader) takeName() string {
	if r.version < 2 {
		return ""
	}
	off, size := r.op(0), r.op(1)
	if off > uint64(len(r.strtab)) || size > uint64(len(r.strtab))-off {
		r.fail("a name of %d bytes at %d, the string table has %d", size, off, len(r.strtab))
	}
	r.record = r.record[2:]
	return string(r.strtab[off : off+size])
}

func (r *reader) readComdat() {
	c := &Comdat{}
	if r.version >= 2 {
		c.Name = r.takeName()
		c.Kind = uint8(r.op(0))
	} else {
		c.Kind = uint8(r.op(0))
		n := r.op(1)
		if n > uint64(len(r.record))-2 {
			r.fail("a comdat's name has %d characters, the record %d operands", n, len(r.record))
		}
		c.Name = r.text(2)[:n]
	}
	r.m.Comdats = append(r.m.Comdats, c)
}

// linkages are LLVM's numbers of linkages, old ones included.
var linkages = [...]Linkage{0: ExternalLinkage, 1: WeakAnyLinkage, 2: AppendingLinkage, 3: InternalLinkage, 4: LinkOnceAnyLinkage,
	5: ExternalLinkage, 6: ExternalLinkage, 7: ExternalWeakLinkage, 8: CommonLinkage, 9: PrivateLinkage, 10: WeakODRLinkage,
	11: LinkOnceODRLinkage, 12: AvailableExternallyLinkage, 13: PrivateLinkage, 14: PrivateLinkage, 15: ExternalLinkage,
	16: WeakAnyLinkage, 17: WeakODRLinkage, 18: LinkOnceAnyLinkage, 19: LinkOnceODRLinkage}

func (r *reader) linkage(n uint64) Linkage {
	if n >= uint64(len(linkages)) {
		r.fail("linkage %d is not known", n)
	}
	return linkages[n]
}

// local tells whether a linkage keeps a symbol inside its module, which makes it dso_local without saying so.
func (l Linkage) local() bool { return l == InternalLinkage || l == PrivateLinkage }

// alignment decodes the logarithm plus one that bitcode stores.
func (r *reader) alignment(n uint64) uint64 {
	if n > 33 {
		r.fail("an alignment of 2^%d", n-1)
	}
	if n == 0 {
		return 0
	}
	return 1 << (n - 1)
}

func (r *reader) section(id uint64) string {
	if id == 0 {
		return ""
	}
	if id > uint64(len(r.sections)) {
		r.fail("section %d does not exist", id)
	}
	return r.sections[id-1]
}

// comdat finds a comdat; old modules say only that there is one of the symbol's own name.
func (r *reader) comdat(id uint64) *Comdat {
	if id == 0 {
		return nil
	}
	if id > uint64(len(r.m.Comdats)) {
		r.fail("comdat %d does not exist", id)
	}
	return r.m.Comdats[id-1]
}

// defineGlobal gives v the next value number.
func (r *reader) defineGlobal(v Value) { r.values = append(r.values, v) }

func (r *reader) readGlobal() {
	g := &Global{}
	g.Name = r.takeName()
	ty, flags := r.typeAt(r.op(0)), r.op(1)
	g.IsConst = flags&1 != 0
	if flags&2 != 0 {
		g.Space = r.space(flags >> 2)
	} else {
		if ty.Kind != PointerKind || ty.Elem == nil {
			r.fail("a global of type %s, a pointer is needed", ty)
		}
		g.Space, ty = ty.Space, ty.Elem
	}
	if ty.Kind == VoidKind || ty.Kind == FunctionKind || ty.Kind == LabelKind || ty.Kind == MetadataKind || ty.Kind == TokenKind {
		r.fail("a global of type %s", ty)
	}
	g.ValueType = ty
	g.Ty = r.pointerTo(ty, g.Space)
	g.Linkage = r.linkage(r.op(3))
	g.Align = r.alignment(r.op(4))
	g.Section = r.section(r.op(5))
	if !g.Linkage.local() {
		g.Visibility = uint8(r.opt(6) & 3)
	}
	g.ThreadLocal = uint8(r.opt(7))
	g.UnnamedAddr = uint8(r.opt(8) & 3)
	g.ExternallyInitialized = r.opt(9) != 0
	g.DLLStorage = uint8(r.opt(10) & 3)
	g.Comdat = r.comdat(r.opt(11))
	g.Attrs = r.attrList(r.opt(12))
	g.DSOLocal = r.opt(13) != 0 || g.Linkage.local()
	if init := r.op(2); init != 0 {
		r.fixups = append(r.fixups, func() { g.Init = r.globalConstant(init - 1) })
	}
	r.m.Globals = append(r.m.Globals, g)
	r.defineGlobal(g)
}

// pointerTo is the type of a pointer to t in the module's style: typed unless the module has opaque pointers.
func (r *reader) pointerTo(t *Type, space int) *Type {
	if r.opaque {
		t = nil
	}
	return r.m.Pointer(t, space)
}

// globalConstant is module-level value id, which must be a constant.
func (r *reader) globalConstant(id uint64) Value {
	v := r.globalValue(id)
	if !isConstant(v) {
		r.fail("value %d is no constant", id)
	}
	return v
}

func isConstant(v Value) bool {
	switch v.(type) {
	case *Const, *Global, *Function, *Alias:
		return true
	}
	return false
}

func (r *reader) readFunction() {
	f := &Function{}
	f.Name = r.takeName()
	ty := r.typeAt(r.op(0))
	if ty.Kind == PointerKind && ty.Elem != nil {
		f.Space, ty = ty.Space, ty.Elem
	}
	if ty.Kind != FunctionKind {
		r.fail("a function of type %s", ty)
	}
	if len(r.record) > 16 {
		f.Space = r.space(r.record[16])
	}
	f.FuncType = ty
	f.Ty = r.pointerTo(ty, f.Space)
	f.CallConv = uint32(r.op(1))
	f.Linkage = r.linkage(r.op(3))
	f.Attrs = r.attrList(r.op(4))
	f.Align = r.alignment(r.op(5))
	f.Section = r.section(r.op(6))
	if !f.Linkage.local() {
		f.Visibility = uint8(r.opt(7) & 3)
	}
	if gc := r.opt(8); gc != 0 {
		if gc > uint64(len(r.gcs)) {
			r.fail("garbage collector %d does not exist", gc)
		}
		f.GC = r.gcs[gc-1]
	}
	f.UnnamedAddr = uint8(r.opt(9) & 3)
	f.DLLStorage = uint8(r.opt(11) & 3)
	f.Comdat = r.comdat(r.opt(12))
	f.DSOLocal = r.opt(15) != 0 || f.Linkage.local()
	for _, c := range []struct {
		at   int
		into *Value
	}{{10, &f.Prologue}, {13, &f.Prefix}, {14, &f.Personality}} {
		if id := r.opt(c.at); id != 0 {
			r.fixups = append(r.fixups, func() { *c.into = r.globalConstant(id - 1) })
		}
	}
	for i, p := range ty.Params {
		f.Args = append(f.Args, &Arg{Ty: p, Index: i, Parent: f})
	}
	if r.op(2) == 0 {
		r.defined = append(r.defined, f)
	}
	r.m.Functions = append(r.m.Functions, f)
	r.defineGlobal(f)
}

func (r *reader) readAlias() {
	a := &Alias{IFunc: r.code == modIFunc}
	old := r.code == modAliasOld
	a.Name = r.takeName()
	ty := r.typeAt(r.op(0))
	i := 1
	if old {
		if ty.Kind != PointerKind || ty.Elem == nil {
			r.fail("an alias of type %s, a pointer is needed", ty)
		}
		a.Space, ty = ty.Space, ty.Elem
	} else {
		a.Space = r.space(r.op(1))
		i = 2
	}
	a.ValueType = ty
	a.Ty = r.pointerTo(ty, a.Space)
	target := r.op(i)
	a.Linkage = r.linkage(r.op(i + 1))
	if !a.Linkage.local() {
		a.Visibility = uint8(r.opt(i+2) & 3)
	}
	if a.IFunc {
		a.DSOLocal = r.opt(i+3) != 0
	} else {
		a.DLLStorage = uint8(r.opt(i+3) & 3)
		a.ThreadLocal = uint8(r.opt(i + 4))
		a.UnnamedAddr = uint8(r.opt(i+5) & 3)
		a.DSOLocal = r.opt(i+6) != 0
	}
	a.DSOLocal = a.DSOLocal || a.Linkage.local()
	r.fixups = append(r.fixups, func() { a.Aliasee = r.globalConstant(target) })
	r.m.Aliases = append(r.m.Aliases, a)
	r.defineGlobal(a)
}

// readSymtab reads a symbol table: of the module if f is nil, else of a function's values and blocks.
func (r *reader) readSymtab(f *Function) {
	r.blocks(func() {
		switch r.code {
		case vstEntry:
			r.name(r.op(0), r.text(1))
		case vstFnEntry:
			if r.version < 2 {
				r.name(r.op(0), r.text(2))
			}
		case vstBBEntry:
			if f == nil || r.op(0) >= uint64(len(f.Blocks)) {
				r.fail("a name for block %d, which does not exist", r.op(0))
			}
			f.Blocks[r.record[0]].Name = r.text(1)
		default:
			r.skipRecord()
		}
	}, nil)
}

// name names value id.
func (r *reader) name(id uint64, name string) {
	switch v := r.globalValue(id).(type) {
	case *Global:
		v.Name = name
	case *Function:
		v.Name = name
	case *Alias:
		v.Name = name
	case *Arg:
		v.Name = name
	case *Instr:
		v.Name = name
	default:
		r.fail("a name for value %d, which is a constant", id)
	}
}
