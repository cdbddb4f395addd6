package air

// readInstr makes the instruction of the current record.
func (b *body) readInstr() *Instr {
	in := &Instr{Ty: b.m.Void()}
	switch b.code {
	case fnBinOp:
		x := b.pair()
		in.Ty = x.Type()
		in.Args = []Value{x, b.val(in.Ty)}
		in.Op = b.binOp(b.take(), in.Ty)
		in.Flags = decodeBinFlags(in.Op, b.optional())
	case fnUnOp:
		x := b.pair()
		in.Op, in.Ty, in.Args = OpFNeg, x.Type(), []Value{x}
		if op := b.take(); op != 0 || !in.Ty.Scalar().IsFloat() {
			b.fail("unary operation %d on %s", op, in.Ty)
		}
		in.Flags = decodeFast(b.optional())
	case fnFreeze:
		x := b.pair()
		in.Op, in.Ty, in.Args = OpFreeze, x.Type(), []Value{x}
	case fnCast:
		in.Args = []Value{b.pair()}
		in.Ty = b.valueType(b.ty())
		in.Op = b.castOp(b.take())
		in.Flags = decodeCastFlags(in.Op, b.optional())
	case fnCmp, fnCmp2:
		x := b.pair()
		in.Args = []Value{x, b.val(x.Type())}
		in.Op, in.Pred = b.compare(x.Type(), b.take())
		in.Ty = b.boolLike(x.Type())
		if bits := b.optional(); in.Op == OpFCmp {
			in.Flags = decodeFast(bits)
		} else if bits&1 != 0 {
			in.Flags = SameSign
		}
	case fnSelectOld:
		x := b.pair()
		y := b.val(x.Type())
		in.Op, in.Ty, in.Args = OpSelect, x.Type(), []Value{b.val(b.m.Int(1)), x, y}
	case fnVSelect:
		x := b.pair()
		y := b.val(x.Type())
		c := b.pair()
		if t := c.Type(); t.Scalar() != b.m.Int(1) || t.Kind == VectorKind && t.Lanes() != x.Type().Lanes() {
			b.fail("a select by %s of %s", t, x.Type())
		}
		in.Op, in.Ty, in.Args = OpSelect, x.Type(), []Value{c, x, y}
		in.Flags = decodeFast(b.optional())
	case fnExtractElt, fnInsertElt, fnShuffleVec:
		b.readVectorOp(in)
	case fnExtractVal, fnInsertVal:
		b.readAggregateOp(in)
	case fnGEP, fnGEPOld, fnInBoundsGEPOld:
		b.readGEP(in)
	case fnPhi:
		b.readPhi(in)
	case fnCall:
		b.readCall(in)
	case fnVAArg:
		in.Op = OpVAArg
		in.Args = []Value{b.val(b.ty())}
		in.Ty = b.valueType(b.ty())
	case fnRet, fnBr, fnSwitch, fnIndirectBr, fnUnreachable:
		b.readTerminator(in)
	case fnAlloca, fnLoad, fnLoadAtomic, fnStore, fnStoreOld, fnStoreAtomic, fnStoreAtomicOld, fnFence, fnCmpXchg, fnCmpXchgOld,
		fnAtomicRMW, fnAtomicRMWOld:
		b.readMemoryOp(in)
	default:
		if name := fnNames[b.code]; name != "" {
			b.fail("instruction %s (record %d) is not supported", name, b.code)
		}
		b.fail("function record %d is not known", b.code)
	}
	if len(b.bundles) != 0 {
		b.fail("operand bundles before what is no call")
	}
	b.done()
	return in
}

// optional takes the next operand if there is one, else it is 0.
func (b *body) optional() uint64 {
	if !b.more() {
		return 0
	}
	return b.take()
}

// boolLike is i1, or a vector of as many as t has elements.
func (r *reader) boolLike(t *Type) *Type {
	if t.Kind == VectorKind {
		return r.m.Vector(r.m.Int(1), t.Len)
	}
	return r.m.Int(1)
}

func (r *reader) binOp(n uint64, t *Type) Op {
	ops := intBinOps[:]
	if t.Scalar().IsFloat() || t.Scalar().Kind == OtherKind {
		ops = floatBinOps[:]
	} else if t.Scalar().Kind != IntKind {
		r.fail("arithmetic on %s", t)
	}
	if n >= uint64(len(ops)) || ops[n] == OpInvalid {
		r.fail("binary operation %d on %s", n, t)
	}
	return ops[n]
}

func (r *reader) castOp(n uint64) Op {
	if n >= uint64(len(castOps)) {
		r.fail("cast %d is not known", n)
	}
	return castOps[n]
}

// compare decodes a predicate; whether it is of integers is known from the type.
func (r *reader) compare(t *Type, n uint64) (Op, Pred) {
	op := OpICmp
	if t.Scalar().IsFloat() || t.Scalar().Kind == OtherKind {
		op = OpFCmp
	}
	if op == OpFCmp && n > uint64(FCmpTrue) || op == OpICmp && (n < uint64(ICmpEQ) || n > uint64(ICmpSLE)) {
		r.fail("predicate %d for %s", n, t)
	}
	return op, Pred(n)
}

func decodeBinFlags(op Op, bits uint64) Flags {
	var f Flags
	switch op {
	case OpAdd, OpSub, OpMul, OpShl:
		if bits&1 != 0 {
			f |= NUW
		}
		if bits&2 != 0 {
			f |= NSW
		}
	case OpUDiv, OpSDiv, OpLShr, OpAShr:
		if bits&1 != 0 {
			f |= Exact
		}
	case OpOr:
		if bits&1 != 0 {
			f |= Disjoint
		}
	case OpFAdd, OpFSub, OpFMul, OpFDiv, OpFRem:
		f = decodeFast(bits)
	}
	return f
}

func decodeCastFlags(op Op, bits uint64) Flags {
	switch op {
	case OpZExt, OpUIToFP:
		if bits&1 != 0 {
			return NNeg
		}
	case OpTrunc:
		var f Flags
		if bits&1 != 0 {
			f |= NUW
		}
		if bits&2 != 0 {
			f |= NSW
		}
		return f
	case OpFPTrunc, OpFPExt:
		return decodeFast(bits)
	}
	return 0
}

func decodeGEPFlags(bits uint64) Flags {
	var f Flags
	if bits&1 != 0 {
		f |= InBounds
	}
	if bits&2 != 0 {
		f |= GEPNUSW
	}
	if bits&4 != 0 {
		f |= GEPNUW
	}
	return f
}

func (b *body) readVectorOp(in *Instr) {
	v := b.pair()
	t := v.Type()
	if t.Kind != VectorKind {
		b.fail("a vector is needed, not %s", t)
	}
	switch b.code {
	case fnExtractElt:
		in.Op, in.Ty, in.Args = OpExtractElement, t.Elem, []Value{v, b.pair()}
	case fnInsertElt:
		in.Op, in.Ty, in.Args = OpInsertElement, t, []Value{v, b.val(t.Elem), b.pair()}
	case fnShuffleVec:
		w := b.val(t)
		mask := b.pair()
		if mt := mask.Type(); mt.Kind != VectorKind || mt.Elem != b.m.Int(32) || !isConstant(mask) {
			b.fail("a shuffle with a mask of type %s that is not constant", mt)
		}
		in.Op, in.Ty, in.Args = OpShuffleVector, b.m.Vector(t.Elem, mask.Type().Len), []Value{v, w, mask}
		return
	}
	if it := in.Args[len(in.Args)-1].Type(); it.Kind != IntKind {
		b.fail("a vector index of type %s", it)
	}
}

func (b *body) readAggregateOp(in *Instr) {
	v := b.pair()
	t := v.Type()
	var elem Value
	if b.code == fnInsertVal {
		elem = b.pair()
	}
	if !b.more() {
		b.fail("an element of an aggregate without an index")
	}
	for b.more() {
		i := b.take()
		if t.Kind != StructKind && t.Kind != ArrayKind || i > 1<<32 {
			b.fail("element %d of %s", i, t)
		}
		if t = elementType(t, int(i)); t == nil {
			b.fail("element %d of %s", i, v.Type())
		}
		in.Indices = append(in.Indices, i)
	}
	if b.code == fnExtractVal {
		in.Op, in.Ty, in.Args = OpExtractValue, t, []Value{v}
		return
	}
	if elem.Type() != t {
		b.fail("%s put into an element of type %s", elem.Type(), t)
	}
	in.Op, in.Ty, in.Args = OpInsertValue, v.Type(), []Value{v, elem}
}

func (b *body) readGEP(in *Instr) {
	in.Op = OpGetElementPtr
	switch b.code {
	case fnGEP:
		in.Flags = decodeGEPFlags(b.take())
		in.SourceType = b.ty()
	case fnInBoundsGEPOld:
		in.Flags = InBounds
	}
	for b.more() {
		in.Args = append(in.Args, b.pair())
	}
	if len(in.Args) == 0 {
		b.fail("a getelementptr without a base")
	}
	if in.SourceType == nil {
		in.SourceType = b.pointee(in.Args[0].Type())
	}
	if in.Ty = b.m.gepType(in.SourceType, in.Args, b.fail); in.Ty == nil {
		b.fail("a getelementptr whose field index is not known yet")
	}
}

// constIndex is the value of a constant index (or of all elements of a constant vector of indices).
func constIndex(v Value) (uint64, bool) {
	c, ok := v.(*Const)
	if !ok {
		return 0, false
	}
	switch c.Kind {
	case NullConst:
		return 0, true
	case IntConst:
		return c.Bits, true
	case DataConst:
		for _, d := range c.Data {
			if d != c.Data[0] {
				return 0, false
			}
		}
		return c.Data[0], len(c.Data) > 0
	}
	return 0, false
}

func (b *body) readPhi(in *Instr) {
	in.Op = OpPhi
	in.Ty = b.valueType(b.ty())
	if len(b.record)%2 == 0 {
		last := len(b.record) - 1
		in.Flags = decodeFast(b.record[last])
		b.record = b.record[:last]
	}
	n := len(b.record) / 2
	in.Args, in.Blocks = make([]Value, 0, n), make([]*Block, 0, n)
	for b.more() {
		id := b.take()
		if b.version >= 1 {
			id = uint64(uint32(len(b.values)) - uint32(decodeSigned(id)))
		}
		in.Args = append(in.Args, b.ref(id, in.Ty))
		in.Blocks = append(in.Blocks, b.block())
	}
}

func (b *body) readCall(in *Instr) {
	in.Op = OpCall
	in.Attrs = b.attrList(b.take())
	cc := b.take()
	in.CallConv = uint32(cc & 0x7ff >> 1)
	for _, f := range [...]struct {
		bit  uint64
		flag Flags
	}{{callTail, TailCall}, {callMustTail, MustTail}, {callNoTail, NoTail}} {
		if cc&f.bit != 0 {
			in.Flags |= f.flag
		}
	}
	if cc&callFMF != 0 {
		in.Flags |= decodeFast(b.take())
	}
	if cc&callExplicitType != 0 {
		in.FuncType = b.ty()
	}
	in.Callee = b.pair()
	if in.FuncType == nil {
		in.FuncType = b.pointee(in.Callee.Type())
	}
	ft := in.FuncType
	if ft.Kind != FunctionKind {
		b.fail("a call of type %s", ft)
	}
	b.address(in.Callee, ft)
	in.Ty = ft.Ret
	if len(ft.Params) > 0 {
		in.Args = make([]Value, 0, len(ft.Params))
	}
	for _, p := range ft.Params {
		if p.Kind == LabelKind {
			in.Args = append(in.Args, b.block())
		} else {
			in.Args = append(in.Args, b.val(p))
		}
	}
	for ft.Variadic && b.more() {
		in.Args = append(in.Args, b.pair())
	}
	in.Bundles, b.bundles = b.bundles, nil
}

func (b *body) readTerminator(in *Instr) {
	switch b.code {
	case fnRet:
		in.Op = OpRet
		if b.more() {
			in.Args = []Value{b.pair()}
		}
	case fnBr:
		in.Op = OpBr
		in.Blocks = []*Block{b.block()}
		if b.more() {
			in.Blocks = append(in.Blocks, b.block())
			in.Args = []Value{b.val(b.m.Int(1))}
		}
	case fnSwitch:
		const oldRangesMagic = 0x4B5
		if b.op(0)>>16 == oldRangesMagic {
			b.fail("a switch in the form of LLVM 3.2")
		}
		in.Op = OpSwitch
		t := b.ty()
		if t.Kind != IntKind {
			b.fail("a switch over %s", t)
		}
		in.Args = []Value{b.val(t)}
		in.Blocks = []*Block{b.block()}
		for b.more() {
			// The numbers of cases are never relative.
			v := b.ref(b.take(), t)
			if _, ok := v.(*Const); !ok {
				b.fail("a case that is not constant")
			}
			in.Args = append(in.Args, v)
			in.Blocks = append(in.Blocks, b.block())
		}
	case fnIndirectBr:
		in.Op = OpIndirectBr
		in.Args = []Value{b.val(b.ty())}
		for b.more() {
			in.Blocks = append(in.Blocks, b.block())
		}
	case fnUnreachable:
		in.Op = OpUnreachable
	}
}
