package air

import "math/bits"

// writeSymbols writes what the module says about itself, and its comdats, globals, functions and aliases.
func (w *writer) writeSymbols() {
	m := w.m
	w.comdats = map[*Comdat]uint64{}
	for i, c := range m.Comdats {
		off, size := w.name(c.Name)
		w.record(modComdat, off, size, uint64(c.Kind))
		w.comdats[c] = uint64(i + 1)
	}
	w.optionalText(modTriple, m.Triple)
	w.optionalText(modDataLayout, m.DataLayout)
	w.optionalText(modAsm, m.Asm)
	w.sections, w.gcs = map[string]uint64{}, map[string]uint64{}
	for _, g := range m.Globals {
		w.numberName(w.sections, modSectionName, g.Section)
	}
	for _, f := range m.Functions {
		w.numberName(w.sections, modSectionName, f.Section)
		w.numberName(w.gcs, modGCName, f.GC)
	}
	w.optionalText(modSourceName, m.SourceName)
	for _, g := range m.Globals {
		w.writeGlobal(g)
	}
	for _, f := range m.Functions {
		w.writeFunction(f)
	}
	for _, a := range m.Aliases {
		w.writeAlias(a)
	}
	// The place for where the symbol table will be; written when that is known.
	id := w.define(abbrev{lit(modVSTOffset), fixedOp(32)})
	w.abbreviated(id, nil, modVSTOffset, 0)
	w.vstOffsetAt = w.bit() - 32
}

func (w *writer) optionalText(code uint64, s string) {
	if s != "" {
		w.text(code, s)
	}
}

// numberName writes a name that symbols refer to by number, once.
func (w *writer) numberName(ids map[string]uint64, code uint64, name string) {
	if _, ok := ids[name]; ok || name == "" {
		return
	}
	ids[name] = uint64(len(ids) + 1)
	w.text(code, name)
}

// name puts a symbol's name into the string table.
func (w *writer) name(s string) (off, size uint64) {
	off = uint64(len(w.strtab))
	w.strtab = append(w.strtab, s...)
	return off, uint64(len(s))
}

// alignLog is the logarithm plus one that bitcode stores.
func alignLog(a uint64) uint64 {
	if a&(a-1) != 0 {
		refuse("an alignment of %d is no power of two", a)
	}
	return uint64(bits.Len64(a))
}

func (w *writer) comdatID(c *Comdat) uint64 {
	if c == nil {
		return 0
	}
	id, ok := w.comdats[c]
	if !ok {
		refuse("comdat %s is not in the module", c.Name)
	}
	return id
}

// constID is the number of a constant plus one, 0 for none.
func (w *writer) constID(v Value) uint64 {
	if v == nil {
		return 0
	}
	return w.e.valueID(v) + 1
}

func (w *writer) writeGlobal(g *Global) {
	const explicitType = 2
	off, size := w.name(g.Name)
	w.record(modGlobalVar, off, size, w.e.typeID(g.ValueType), uint64(g.Space)<<2|explicitType|b2u(g.IsConst), w.constID(g.Init),
		uint64(g.Linkage), alignLog(g.Align), w.sections[g.Section], uint64(g.Visibility), uint64(g.ThreadLocal),
		uint64(g.UnnamedAddr), b2u(g.ExternallyInitialized), uint64(g.DLLStorage), w.comdatID(g.Comdat), w.attrListID(g.Attrs),
		b2u(g.DSOLocal), 0, 0)
}

func (w *writer) writeFunction(f *Function) {
	off, size := w.name(f.Name)
	w.record(modFunction, off, size, w.e.typeID(f.FuncType), uint64(f.CallConv), b2u(f.Declaration()), uint64(f.Linkage),
		w.attrListID(f.Attrs), alignLog(f.Align), w.sections[f.Section], uint64(f.Visibility), w.gcs[f.GC], uint64(f.UnnamedAddr),
		w.constID(f.Prologue), uint64(f.DLLStorage), w.comdatID(f.Comdat), w.constID(f.Prefix), w.constID(f.Personality),
		b2u(f.DSOLocal), uint64(f.Space), 0, 0)
}

func (w *writer) writeAlias(a *Alias) {
	off, size := w.name(a.Name)
	ops := []uint64{off, size, w.e.typeID(a.ValueType), uint64(a.Space), w.e.valueID(a.Aliasee), uint64(a.Linkage),
		uint64(a.Visibility)}
	if a.IFunc {
		w.record(modIFunc, append(ops, b2u(a.DSOLocal), 0, 0)...)
		return
	}
	w.record(modAlias, append(ops, uint64(a.DLLStorage), uint64(a.ThreadLocal), uint64(a.UnnamedAddr), b2u(a.DSOLocal), 0, 0)...)
}
