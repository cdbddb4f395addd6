package air

func (w *writer) writeBody(f *Function) {
	w.bodies[f] = uint64(len(w.buf) / 4)
	consts := w.e.enterFunction(f)
	w.enter(functionBlock, 4)
	w.record(fnDeclareBlocks, uint64(len(f.Blocks)))
	w.writeConstants(consts, false)
	w.writeLocalMetadata(f)
	w.next = uint64(w.e.numFixed + len(f.Args) + len(consts))
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			w.writeInstr(in)
			if in.Ty.Kind != VoidKind {
				w.next++
			}
		}
	}
	w.writeLocalSymtab(f)
	w.writeAttachments(f)
	w.end()
	w.e.leaveFunction()
}

// writeLocalMetadata writes the function's values that are used as metadata.
func (w *writer) writeLocalMetadata(f *Function) {
	w.localMDs = map[Value]uint64{}
	var list []Value
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			w.e.eachOperand(in, func(v Value) {
				mv, ok := v.(*MetadataValue)
				if !ok {
					return
				}
				md, ok := mv.MD.(*MDValue)
				if !ok || isConstant(md.V) {
					return
				}
				if _, ok := w.localMDs[md.V]; !ok {
					w.localMDs[md.V] = uint64(w.e.numMetadata() + len(list))
					list = append(list, md.V)
				}
			})
		}
	}
	if len(list) == 0 {
		return
	}
	w.enter(metadataBlock, 3)
	for _, v := range list {
		w.record(mdValue, w.e.typeID(v.Type()), w.e.valueID(v))
	}
	w.end()
}

// writeLocalSymtab writes the names of arguments, blocks and instructions.
func (w *writer) writeLocalSymtab(f *Function) {
	open := false
	name := func(code, id uint64, s string) {
		if s == "" {
			return
		}
		if !open {
			w.enter(valueSymtabBlock, 4)
			open = true
		}
		a := w.abbrevs.vst8
		switch {
		case isChar6(s) && code == vstBBEntry:
			a = w.abbrevs.vstBlock6
		case isChar6(s):
			a = w.abbrevs.vst6
		case isASCII(s) && code == vstEntry:
			a = w.abbrevs.vst7
		}
		ops := append(w.ops[:0], code, id)
		for i := range len(s) {
			ops = append(ops, uint64(s[i]))
		}
		w.abbreviated(a, nil, ops...)
	}
	for _, a := range f.Args {
		name(vstEntry, w.e.valueID(a), a.Name)
	}
	for i, b := range f.Blocks {
		name(vstBBEntry, uint64(i), b.Name)
		for _, in := range b.Instrs {
			if in.Ty.Kind != VoidKind {
				name(vstEntry, w.e.valueID(in), in.Name)
			}
		}
	}
	if open {
		w.end()
	}
}

// rel is the number of a value relative to the next instruction's.
func (w *writer) rel(v Value) uint64 {
	if mv, ok := v.(*MetadataValue); ok {
		return uint64(uint32(w.next) - uint32(w.metadataValueID(mv)))
	}
	return uint64(uint32(w.next) - uint32(w.e.valueID(v)))
}

func (w *writer) metadataValueID(v *MetadataValue) uint64 {
	if md, ok := v.MD.(*MDValue); ok && !isConstant(md.V) {
		return w.localMDs[md.V]
	}
	if _, ok := v.MD.(*MDOther); ok {
		refuse("debug information cannot be written: remove it with Module.StripDebug")
	}
	return w.e.metadataID(v.MD)
}

// push appends values of which the reader knows the type.
func (w *writer) push(vs ...Value) {
	for _, v := range vs {
		w.ops = append(w.ops, w.rel(v))
	}
}

// pair appends a value, with its type if it comes later, and tells whether it did.
func (w *writer) pair(v Value) bool {
	if _, ok := v.(*MetadataValue); ok {
		refuse("metadata is used where LLVM 14 takes none")
	}
	id := w.e.valueID(v)
	w.ops = append(w.ops, uint64(uint32(w.next)-uint32(id)))
	if id >= w.next {
		w.ops = append(w.ops, w.e.typeID(v.Type()))
		return true
	}
	return false
}

func (w *writer) add(ops ...uint64) { w.ops = append(w.ops, ops...) }

// emit writes the operands as a record, by abbreviation a if it is not 0.
func (w *writer) emit(code, a uint64) {
	if a == 0 {
		w.record(code, w.ops[1:]...)
		return
	}
	w.ops[0] = code
	w.abbreviated(a, nil, w.ops...)
}

// flag appends flags if there are any.
func (w *writer) flag(bits uint64) {
	if bits != 0 {
		w.ops = append(w.ops, bits)
	}
}

func (w *writer) writeInstr(in *Instr) {
	w.ops = append(w.ops[:0], 0) // the place of the code
	if n, ok := recordedBinOps[in.Op]; ok {
		forward := w.pair(in.Args[0])
		w.push(in.Args[1])
		w.add(n)
		flags := encodeBinFlags(in.Op, in.Flags)
		w.flag(flags)
		switch {
		case forward:
			w.emit(fnBinOp, 0)
		case flags != 0:
			w.emit(fnBinOp, w.abbrevs.binOpFast)
		default:
			w.emit(fnBinOp, w.abbrevs.binOp)
		}
		return
	}
	if n, ok := recordedCasts[in.Op]; ok {
		forward := w.pair(in.Args[0])
		w.add(w.e.typeID(in.Ty), n)
		if forward {
			w.emit(fnCast, 0)
		} else {
			w.emit(fnCast, w.abbrevs.castInstr)
		}
		return
	}
	switch in.Op {
	case OpFNeg:
		forward := w.pair(in.Args[0])
		w.add(0)
		flags := encodeFast(in.Flags)
		w.flag(flags)
		switch {
		case forward:
			w.emit(fnUnOp, 0)
		case flags != 0:
			w.emit(fnUnOp, w.abbrevs.unOpFast)
		default:
			w.emit(fnUnOp, w.abbrevs.unOp)
		}
	case OpFreeze:
		w.pair(in.Args[0])
		w.emit(fnFreeze, 0)
	case OpICmp, OpFCmp:
		w.pair(in.Args[0])
		w.push(in.Args[1])
		w.add(uint64(in.Pred))
		w.flag(encodeFast(in.Flags))
		w.emit(fnCmp2, 0)
	case OpSelect:
		w.pair(in.Args[1])
		w.push(in.Args[2])
		w.pair(in.Args[0])
		w.flag(encodeFast(in.Flags))
		w.emit(fnVSelect, 0)
	case OpExtractElement:
		w.pair(in.Args[0])
		w.pair(in.Args[1])
		w.emit(fnExtractElt, 0)
	case OpInsertElement:
		w.pair(in.Args[0])
		w.push(in.Args[1])
		w.pair(in.Args[2])
		w.emit(fnInsertElt, 0)
	case OpShuffleVector:
		w.pair(in.Args[0])
		w.push(in.Args[1])
		w.pair(in.Args[2])
		w.emit(fnShuffleVec, 0)
	case OpExtractValue:
		w.pair(in.Args[0])
		w.add(in.Indices...)
		w.emit(fnExtractVal, 0)
	case OpInsertValue:
		w.pair(in.Args[0])
		w.pair(in.Args[1])
		w.add(in.Indices...)
		w.emit(fnInsertVal, 0)
	case OpGetElementPtr:
		w.add(b2u(in.Flags&InBounds != 0), w.e.typeID(in.SourceType))
		forward := false
		for _, a := range in.Args {
			forward = w.pair(a) || forward
		}
		if forward {
			w.emit(fnGEP, 0)
		} else {
			w.emit(fnGEP, w.abbrevs.gep)
		}
	case OpPhi:
		w.add(w.e.typeID(in.Ty))
		for i, a := range in.Args {
			w.add(encodeSigned(uint64(int64(w.next)-int64(w.e.valueID(a)))), w.e.blockID(in.Blocks[i]))
		}
		w.flag(encodeFast(in.Flags))
		w.emit(fnPhi, 0)
	case OpCall:
		w.writeCall(in)
	case OpVAArg:
		w.add(w.e.typeID(in.Args[0].Type()))
		w.push(in.Args[0])
		w.add(w.e.typeID(in.Ty))
		w.emit(fnVAArg, 0)
	case OpRet, OpBr, OpSwitch, OpIndirectBr, OpUnreachable:
		w.writeTerminator(in)
	case OpAlloca, OpLoad, OpStore, OpFence, OpCmpXchg, OpAtomicRMW:
		w.writeMemoryOp(in)
	default:
		refuse("instruction %s cannot be written", in.Op)
	}
}

func (w *writer) writeCall(in *Instr) {
	for _, b := range in.Bundles {
		w.ops = append(w.ops[:0], 0, uint64(w.tagID(b.Tag)))
		for _, a := range b.Args {
			w.pair(a)
		}
		w.emit(fnOperandBundle, 0)
		w.ops = append(w.ops[:0], 0)
	}
	fast := encodeFast(in.Flags)
	tail := in.Flags&(TailCall|MustTail) != 0
	w.add(w.attrListID(in.Attrs), uint64(in.CallConv)<<1|b2u(tail)*callTail|b2u(in.Flags&MustTail != 0)*callMustTail|
		callExplicitType|b2u(in.Flags&NoTail != 0)*callNoTail|b2u(fast != 0)*callFMF)
	w.flag(fast)
	w.add(w.e.typeID(in.FuncType))
	w.pair(in.Callee)
	for i, a := range in.Args {
		switch {
		case i >= len(in.FuncType.Params):
			w.pair(a)
		case in.FuncType.Params[i].Kind == LabelKind:
			w.add(w.e.blockID(a.(*Block)))
		default:
			w.push(a)
		}
	}
	w.emit(fnCall, 0)
}

func (w *writer) writeTerminator(in *Instr) {
	switch in.Op {
	case OpRet:
		switch {
		case len(in.Args) == 0:
			w.emit(fnRet, w.abbrevs.retVoid)
		case w.pair(in.Args[0]):
			w.emit(fnRet, 0)
		default:
			w.emit(fnRet, w.abbrevs.ret)
		}
	case OpBr:
		for _, b := range in.Blocks {
			w.add(w.e.blockID(b))
		}
		w.push(in.Args...)
		w.emit(fnBr, 0)
	case OpSwitch:
		w.add(w.e.typeID(in.Args[0].Type()))
		w.push(in.Args[0])
		w.add(w.e.blockID(in.Blocks[0]))
		for i, c := range in.Args[1:] {
			w.add(w.e.valueID(c), w.e.blockID(in.Blocks[i+1]))
		}
		w.emit(fnSwitch, 0)
	case OpIndirectBr:
		w.add(w.e.typeID(in.Args[0].Type()))
		w.push(in.Args[0])
		for _, b := range in.Blocks {
			w.add(w.e.blockID(b))
		}
		w.emit(fnIndirectBr, 0)
	case OpUnreachable:
		w.emit(fnUnreachable, w.abbrevs.unreachable)
	}
}

// lastLLVM14RMW is the highest atomicrmw operation that LLVM 14 knows (fsub).
const lastLLVM14RMW = 12

func (w *writer) writeMemoryOp(in *Instr) {
	volatile := b2u(in.Flags&Volatile != 0)
	atomic := func(o uint8) { w.add(uint64(o), uint64(in.SyncScope)) }
	switch in.Op {
	case OpAlloca:
		a := alignLog(in.Align)
		bits := a&allocaAlignBits | a>>5<<allocaAlignHigh | allocaExplicitType | b2u(in.Flags&InAlloca != 0)*allocaInAlloca |
			b2u(in.Flags&SwiftError != 0)*allocaSwiftError
		w.add(w.e.typeID(in.SourceType), w.e.typeID(in.Args[0].Type()), w.e.valueID(in.Args[0]), bits)
		w.emit(fnAlloca, 0)
	case OpLoad:
		forward := w.pair(in.Args[0])
		w.add(w.e.typeID(in.Ty), alignLog(in.Align), volatile)
		switch {
		case in.Ordering != 0:
			atomic(in.Ordering)
			w.emit(fnLoadAtomic, 0)
		case forward:
			w.emit(fnLoad, 0)
		default:
			w.emit(fnLoad, w.abbrevs.load)
		}
	case OpStore:
		w.pair(in.Args[1])
		w.pair(in.Args[0])
		w.add(alignLog(in.Align), volatile)
		if in.Ordering != 0 {
			atomic(in.Ordering)
			w.emit(fnStoreAtomic, 0)
			return
		}
		w.emit(fnStore, 0)
	case OpFence:
		atomic(in.Ordering)
		w.emit(fnFence, 0)
	case OpCmpXchg:
		w.pair(in.Args[0])
		w.pair(in.Args[1])
		w.push(in.Args[2])
		w.add(volatile)
		atomic(in.Ordering)
		w.add(uint64(in.FailureOrdering), b2u(in.Flags&Weak != 0), alignLog(in.Align))
		w.emit(fnCmpXchg, 0)
	case OpAtomicRMW:
		if in.RMW > lastLLVM14RMW {
			refuse("LLVM 14 has no atomicrmw operation %d", in.RMW)
		}
		w.pair(in.Args[0])
		w.pair(in.Args[1])
		w.add(uint64(in.RMW), volatile)
		atomic(in.Ordering)
		w.add(alignLog(in.Align))
		w.emit(fnAtomicRMW, 0)
	}
}
