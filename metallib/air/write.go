package air

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
)

// Write gives a module's bitcode as LLVM 14 would write it, with typed pointers, in the Darwin wrapper and padded to a
// multiple of 16 bytes: the one form that every Metal loader is known to take. Equal modules give equal bytes.
//
// The module is verified first. A module that LLVM 14 cannot express is refused: opaque pointers, attributes that LLVM 14
// does not know, newer atomic operations and types, debug information (see [Module.StripDebug]). Flags that are newer than
// LLVM 14 and only promise something to optimisers are left out: nneg, disjoint, samesign, nuw and nsw on trunc, nusw and
// nuw on getelementptr, fast-math flags on conversions, and inrange on constant getelementptrs in its newer form.
func Write(m *Module) (data []byte, err error) {
	if err := Verify(m); err != nil {
		return nil, err
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case bitError:
			data, err = nil, errors.New("air: cannot write module: "+e.msg)
		case runtime.Error:
			data, err = nil, fmt.Errorf("air: cannot write module: %w: %w", errInternal, e)
		default:
			panic(e)
		}
	}()
	w := &writer{bitWriter: newBitWriter(), m: m, e: newEnumerator(m)}
	w.writeAll()
	return wrap(w.buf), nil
}

// wrap puts bitcode into the Darwin wrapper and pads it.
func wrap(code []byte) []byte {
	const magic, size, anyCPU, unit = 0x0B17C0DE, 20, 0xFFFFFFFF, 16
	out := make([]byte, 0, size+len(code)+unit)
	for _, v := range []uint32{magic, 0, size, uint32(len(code)), anyCPU} {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	out = append(out, code...)
	for len(out)%unit != 0 {
		out = append(out, 0)
	}
	return out
}

// A writer writes one module.
type writer struct {
	*bitWriter
	m *Module
	e *enumerator

	strtab    []byte
	kinds     map[string]uint64
	kindNames []string
	tags      []string
	sections  map[string]uint64
	gcs       map[string]uint64
	comdats   map[*Comdat]uint64
	attrs     attrTable
	abbrevs   stdAbbrevs
	// bodies are the places of the function bodies, in 32-bit words.
	bodies map[*Function]uint64

	// next is the number of the next instruction with a result; ops the operands of the record being made.
	next uint64
	ops  []uint64
	// localMDs are the numbers of the current function's values as metadata.
	localMDs map[Value]uint64
	// vstOffsetAt is the bit of the word that says where the module's symbol table is.
	vstOffsetAt uint64
}

func (w *writer) writeAll() {
	w.buf = append(w.buf, "BC\xC0\xDE"...)
	w.writeIdentification()
	w.enter(moduleBlock, 3)
	w.record(modVersion, 2)
	w.writeBlockInfo()
	w.writeTypes()
	w.writeAttributes()
	w.writeSymbols()
	w.writeConstants(w.e.module, true)
	w.collectKinds()
	w.writeMetadataKinds()
	w.writeMetadata()
	w.writeBundleTags()
	w.writeSyncScopes()
	w.bodies = map[*Function]uint64{}
	for _, f := range w.m.Functions {
		if !f.Declaration() {
			w.writeBody(f)
		}
	}
	w.writeModuleSymtab()
	w.end()
	w.enter(strtabBlock, 3)
	id := w.define(abbrev{lit(1), blobOp})
	w.abbreviated(id, w.strtab, 1)
	w.end()
}

// defaultIdent is the producer named when the module names none.
const defaultIdent = "LLVM14.0.6"

func (w *writer) writeIdentification() {
	ident := w.m.Ident
	if ident == "" {
		ident = defaultIdent
	}
	w.enter(identificationBlock, 5)
	w.text(1, ident)
	w.record(2, 0)
	w.end()
}

// stdAbbrevs are the ids of the abbreviations that BLOCKINFO gives to all blocks of a kind, the ones of LLVM.
type stdAbbrevs struct {
	vst8, vst7, vst6, vstBlock6               uint64
	setType, integer, cast, null              uint64
	load, unOp, unOpFast, binOp, binOpFast    uint64
	castInstr, retVoid, ret, unreachable, gep uint64
}

func (w *writer) writeBlockInfo() {
	typeBits := uint64(1)
	for 1<<typeBits < len(w.e.types)+1 {
		typeBits++
	}
	w.enter(blockInfoBlock, 2)
	const setBlock = 1
	current := uint64(0)
	in := func(block uint64) {
		current = block
		w.record(setBlock, block)
	}
	add := func(a ...abbrevOp) uint64 {
		w.fixed(abbrevDefine, w.wide)
		w.definition(a)
		w.info[current] = append(w.info[current], a)
		return uint64(len(w.info[current])-1) + abbrevFirstOwn
	}
	s := &w.abbrevs
	ty := fixedOp(typeBits)
	in(valueSymtabBlock)
	s.vst8 = add(fixedOp(3), vbrOp(8), arrayOp, fixedOp(8))
	s.vst7 = add(lit(vstEntry), vbrOp(8), arrayOp, fixedOp(7))
	s.vst6 = add(lit(vstEntry), vbrOp(8), arrayOp, char6Op)
	s.vstBlock6 = add(lit(vstBBEntry), vbrOp(8), arrayOp, char6Op)
	in(constantsBlock)
	s.setType = add(lit(cstSetType), ty)
	s.integer = add(lit(cstInteger), vbrOp(8))
	s.cast = add(lit(cstCast), fixedOp(4), ty, vbrOp(8))
	s.null = add(lit(cstNull))
	in(functionBlock)
	s.load = add(lit(fnLoad), vbrOp(6), ty, vbrOp(4), fixedOp(1))
	s.unOp = add(lit(fnUnOp), vbrOp(6), fixedOp(4))
	s.unOpFast = add(lit(fnUnOp), vbrOp(6), fixedOp(4), fixedOp(8))
	s.binOp = add(lit(fnBinOp), vbrOp(6), vbrOp(6), fixedOp(4))
	s.binOpFast = add(lit(fnBinOp), vbrOp(6), vbrOp(6), fixedOp(4), fixedOp(8))
	s.castInstr = add(lit(fnCast), vbrOp(6), ty, fixedOp(4))
	s.retVoid = add(lit(fnRet))
	s.ret = add(lit(fnRet), vbrOp(6))
	s.unreachable = add(lit(fnUnreachable))
	s.gep = add(lit(fnGEP), fixedOp(1), ty, arrayOp, vbrOp(6))
	w.end()
}

// bundleTags are the operand bundle tags that LLVM 14 numbers itself.
var bundleTags = [...]string{"deopt", "funclet", "gc-transition", "cfguardtarget", "preallocated", "gc-live",
	"clang.arc.attachedcall"}

func (w *writer) writeBundleTags() {
	w.tags = append(w.tags, bundleTags[:]...)
	for _, f := range w.m.Functions {
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				for _, bundle := range in.Bundles {
					w.addTag(bundle.Tag)
				}
			}
		}
	}
	w.enter(operandBundleTagsBlock, 3)
	for _, t := range w.tags {
		w.text(1, t)
	}
	w.end()
}

func (w *writer) addTag(tag string) {
	if w.tagID(tag) < 0 {
		w.tags = append(w.tags, tag)
	}
}

func (w *writer) tagID(tag string) int {
	for i, t := range w.tags {
		if t == tag {
			return i
		}
	}
	return -1
}

func (w *writer) writeSyncScopes() {
	scopes := w.m.SyncScopes
	if len(scopes) == 0 {
		scopes = []string{"singlethread", ""}
	}
	w.enter(syncScopeNamesBlock, 2)
	for _, s := range scopes {
		w.text(1, s)
	}
	w.end()
}

// writeModuleSymtab writes where the function bodies are, so that a reader can skip to them.
func (w *writer) writeModuleSymtab() {
	// Places count from the magic number, in words; after a block the writer is at a word.
	w.patch32(w.vstOffsetAt, uint32(len(w.buf)/4))
	w.enter(valueSymtabBlock, 4)
	id := w.define(abbrev{lit(vstFnEntry), vbrOp(8), vbrOp(8)})
	for _, f := range w.m.Functions {
		if !f.Declaration() {
			w.abbreviated(id, nil, vstFnEntry, w.e.valueID(f), w.bodies[f])
		}
	}
	w.end()
}
