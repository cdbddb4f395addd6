package air

// encodeSigned puts the sign into the lowest bit.
func encodeSigned(v uint64) uint64 {
	if int64(v) >= 0 {
		return v << 1
	}
	return -v<<1 | 1
}

// signExtend extends the sign of an integer of the given width to 64 bits.
func signExtend(v uint64, bits int) uint64 {
	if bits >= 64 {
		return v
	}
	return uint64(int64(v<<(64-bits)) >> (64 - bits))
}

// writeConstants writes a block of constants, which are sorted by type.
func (w *writer) writeConstants(list []*constEntry, module bool) {
	if len(list) == 0 {
		return
	}
	w.enter(constantsBlock, 4)
	var str, cstr uint64
	if module {
		str = w.define(abbrev{lit(cstString), arrayOp, fixedOp(8)})
		cstr = w.define(abbrev{lit(cstCString), arrayOp, fixedOp(8)})
	}
	var last *Type
	for _, e := range list {
		if t := e.v.Type(); t != last {
			w.abbreviated(w.abbrevs.setType, nil, cstSetType, w.e.typeID(t))
			last = t
		}
		if a, ok := e.v.(*InlineAsm); ok {
			w.writeInlineAsm(a)
			continue
		}
		c := e.v.(*Const)
		if c.Kind == StringConst && module {
			w.writeString(c, str, cstr)
			continue
		}
		w.writeConstant(c)
	}
	w.end()
}

func (w *writer) writeString(c *Const, str, cstr uint64) {
	id, code, s := str, uint64(cstString), c.Str
	if n := len(s); n > 0 && s[n-1] == 0 {
		id, code, s = cstr, cstCString, s[:n-1]
	}
	ops := append(w.ops[:0], code)
	for _, b := range s {
		ops = append(ops, uint64(b))
	}
	w.abbreviated(id, nil, ops...)
}

func (w *writer) writeConstant(c *Const) {
	if isZero(c) || c.Kind == TokenNoneConst {
		w.abbreviated(w.abbrevs.null, nil, cstNull)
		return
	}
	switch c.Kind {
	case UndefConst:
		w.record(cstUndef)
	case PoisonConst:
		w.record(cstPoison)
	case IntConst:
		if c.Ty.Bits <= 64 {
			w.abbreviated(w.abbrevs.integer, nil, cstInteger, encodeSigned(signExtend(c.Bits, c.Ty.Bits)))
			return
		}
		ops := w.ops[:0]
		for i, x := range c.Words {
			if i == len(c.Words)-1 && c.Ty.Bits%64 != 0 {
				x = signExtend(x, c.Ty.Bits%64)
			}
			ops = append(ops, encodeSigned(x))
		}
		w.record(cstWideInteger, ops...)
	case FloatConst:
		if len(c.Words) > 0 {
			w.record(cstFloat, c.Words...)
		} else {
			w.record(cstFloat, c.Bits)
		}
	case AggregateConst:
		ops := w.ops[:0]
		for _, x := range c.Elems {
			ops = append(ops, w.e.valueID(x))
		}
		w.record(cstAggregate, ops...)
	case DataConst:
		w.record(cstData, c.Data...)
	case StringConst:
		ops := w.ops[:0]
		for _, b := range c.Str {
			ops = append(ops, uint64(b))
		}
		w.record(cstString, ops...)
	case ExprConst:
		w.writeConstExpr(c)
	case BlockAddressConst:
		f, b := c.Elems[0].(*Function), c.Elems[1].(*Block)
		for i, x := range f.Blocks {
			if x == b {
				w.record(cstBlockAddress, w.e.typeID(f.Ty), w.e.valueID(f), uint64(i))
				return
			}
		}
		refuse("the address of a block that is not in %s", f.Name)
	case OtherConst:
		x := c.Elems[0]
		w.record(c.Bits, w.e.typeID(x.Type()), w.e.valueID(x))
	default:
		refuse("a constant of kind %d", c.Kind)
	}
}

func (w *writer) writeInlineAsm(a *InlineAsm) {
	flags := b2u(a.SideEffect) | b2u(a.AlignStack)<<1 | uint64(a.Dialect&1)<<2 | b2u(a.CanThrow)<<3
	ops := append(w.ops[:0], w.e.typeID(a.FuncType), flags)
	for _, s := range []string{a.Asm, a.Constraints} {
		ops = append(ops, uint64(len(s)))
		for i := range len(s) {
			ops = append(ops, uint64(s[i]))
		}
	}
	w.record(cstInlineAsm, ops...)
}

// recordedOps are the numbers of arithmetic operations and casts in bitcode.
var recordedBinOps, recordedCasts = func() (bin, cast map[Op]uint64) {
	bin, cast = map[Op]uint64{}, map[Op]uint64{}
	for i, op := range floatBinOps {
		bin[op] = uint64(i)
	}
	for i, op := range intBinOps {
		bin[op] = uint64(i)
	}
	for i, op := range castOps {
		cast[op] = uint64(i)
	}
	delete(bin, OpInvalid)
	return bin, cast
}()

func (w *writer) writeConstExpr(c *Const) {
	ops := w.ops[:0]
	id := func(i int) uint64 { return w.e.valueID(c.Elems[i]) }
	pair := func(i int) { ops = append(ops, w.e.typeID(c.Elems[i].Type()), id(i)) }
	if n, ok := recordedBinOps[c.Op]; ok {
		ops = append(ops, n, id(0), id(1))
		if f := encodeBinFlags(c.Op, c.Flags); f != 0 {
			ops = append(ops, f)
		}
		w.record(cstBinOp, ops...)
		return
	}
	if n, ok := recordedCasts[c.Op]; ok {
		ops = append(ops, n)
		pair(0)
		w.record(cstCast, ops...)
		return
	}
	switch c.Op {
	case OpFNeg:
		w.record(cstUnOp, 0, id(0))
	case OpSelect:
		if c.Ty.Kind == VectorKind && id(0) >= w.e.valueID(c) {
			refuse("a constant select of %s comes before its condition, whose type readers could not tell", c.Ty)
		}
		w.record(cstSelect, id(0), id(1), id(2))
	case OpExtractElement:
		pair(0)
		pair(1)
		w.record(cstExtractElt, ops...)
	case OpInsertElement:
		ops = append(ops, id(0), id(1))
		pair(2)
		w.record(cstInsertElt, ops...)
	case OpShuffleVector:
		if t := c.Elems[0].Type(); t != c.Ty {
			w.record(cstShuffleVecEx, w.e.typeID(t), id(0), id(1), w.e.valueID(c.Mask))
			return
		}
		w.record(cstShuffleVec, id(0), id(1), w.e.valueID(c.Mask))
	case OpICmp, OpFCmp:
		w.record(cstCmp, w.e.typeID(c.Elems[0].Type()), id(0), id(1), uint64(c.Pred))
	case OpGetElementPtr:
		code := uint64(cstGEPOld)
		ops = append(ops, w.e.typeID(c.SourceType))
		if len(c.InRange) == 1 {
			code = cstGEPInRangeOld
			ops = append(ops, b2u(c.Flags&InBounds != 0)|c.InRange[0]<<1)
		} else if c.Flags&InBounds != 0 {
			code = cstInBoundsGEP
		}
		for i := range c.Elems {
			pair(i)
		}
		w.record(code, ops...)
	default:
		refuse("LLVM 14 has no constant expression of %s", c.Op)
	}
}

// encodeBinFlags gives the flags of an arithmetic operation that LLVM 14 has.
func encodeBinFlags(op Op, f Flags) uint64 {
	switch op {
	case OpAdd, OpSub, OpMul, OpShl:
		return b2u(f&NUW != 0) | b2u(f&NSW != 0)<<1
	case OpUDiv, OpSDiv, OpLShr, OpAShr:
		return b2u(f&Exact != 0)
	case OpFAdd, OpFSub, OpFMul, OpFDiv, OpFRem:
		return encodeFast(f)
	}
	return 0
}

func encodeFast(f Flags) uint64 {
	var bits uint64
	for i, flag := range fastFlags {
		if i > 0 && f&flag != 0 { // bit 0 is the old "everything", no longer written
			bits |= 1 << i
		}
	}
	return bits
}
