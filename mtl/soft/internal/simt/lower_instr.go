package simt

import (
	"fmt"

	"github.com/ingot-metal/ingot/metallib/air"
)

// instr lowers one instruction.
func (lw *lowerer) instr(f *frame, b *air.Block, in *air.Instr) {
	switch {
	case in.IsTerminator():
		lw.terminator(f, b, in)
		return
	}
	var r []*val
	switch in.Op {
	case air.OpAlloca:
		r = lw.alloca(f, in)
	case air.OpLoad:
		r = lw.load(lw.scalar(f, in.Args[0]), in.Ty, in.Align)
	case air.OpStore:
		lw.store(lw.scalar(f, in.Args[1]), lw.value(f, in.Args[0]), in.Args[0].Type(), in.Align)
	case air.OpAtomicRMW, air.OpCmpXchg:
		r = lw.atomicInstr(f, in)
	case air.OpFence:
		lw.fenced = true
	case air.OpCall:
		r = lw.call(f, in)
	default:
		r = lw.pure(f, in)
	}
	if n := len(lw.leaves(in.Ty)); len(r) != n && in.Ty.Kind != air.MetadataKind {
		lw.fail("%s: a value of %s has %d scalars, needs %d", opName(in.Op), in.Ty, len(r), n)
	}
	f.vals[in] = r
}

// pure lowers an instruction or constant expression without effects.
func (lw *lowerer) pure(f *frame, in *air.Instr) []*val {
	switch in.Op {
	case air.OpAdd, air.OpSub, air.OpMul, air.OpUDiv, air.OpSDiv, air.OpURem, air.OpSRem,
		air.OpShl, air.OpLShr, air.OpAShr, air.OpAnd, air.OpOr, air.OpXor:
		return lw.each2(f, in, lw.intOp)
	case air.OpFAdd, air.OpFSub, air.OpFMul, air.OpFDiv, air.OpFRem:
		return lw.each2(f, in, lw.floatOp)
	case air.OpFNeg:
		return lw.each1(f, in, func(t *air.Type, a *val) *val { return lw.fneg(t, a) })
	case air.OpICmp:
		return lw.each2(f, in, func(in *air.Instr, t *air.Type, a, b *val) *val { return lw.icmp(in.Pred, t, a, b) })
	case air.OpFCmp:
		return lw.each2(f, in, func(in *air.Instr, t *air.Type, a, b *val) *val { return lw.fcmp(in.Pred, t, a, b) })
	case air.OpTrunc, air.OpZExt, air.OpSExt, air.OpFPTrunc, air.OpFPExt, air.OpFPToUI, air.OpFPToSI, air.OpUIToFP, air.OpSIToFP:
		vs := lw.value(f, in.Args[0])
		from, to := in.Args[0].Type().Scalar(), in.Ty.Scalar()
		out := make([]*val, len(vs))
		for i, v := range vs {
			out[i] = lw.cast(in.Op, from, to, v)
		}
		return out
	case air.OpPtrToInt:
		return lw.each1(f, in, func(_ *air.Type, a *val) *val { return lw.intCast(a, in.Ty.Scalar().Bits) })
	case air.OpIntToPtr:
		return lw.each1(f, in, func(_ *air.Type, a *val) *val { return lw.to64(a) })
	case air.OpAddrSpaceCast, air.OpFreeze:
		return lw.value(f, in.Args[0])
	case air.OpBitCast:
		return lw.bitcast(lw.value(f, in.Args[0]), in.Args[0].Type(), in.Ty)
	case air.OpGetElementPtr:
		return lw.gep(f, in)
	case air.OpExtractElement:
		return lw.extractElement(f, in)
	case air.OpInsertElement:
		return lw.insertElement(f, in)
	case air.OpShuffleVector:
		return lw.shuffle(f, in)
	case air.OpExtractValue:
		off, n := lw.member(in.Args[0].Type(), in.Indices)
		return lw.value(f, in.Args[0])[off : off+n]
	case air.OpInsertValue:
		off, n := lw.member(in.Args[0].Type(), in.Indices)
		out := append([]*val(nil), lw.value(f, in.Args[0])...)
		copy(out[off:off+n], lw.value(f, in.Args[1]))
		return out
	case air.OpSelect:
		return lw.selectInstr(f, in)
	}
	name := opName(in.Op)
	if in.Op == air.OpUnknown {
		name = in.Name
	}
	lw.fail("instruction %s is not supported", name)
	return nil
}

func (lw *lowerer) each1(f *frame, in *air.Instr, g func(t *air.Type, a *val) *val) []*val {
	vs := lw.value(f, in.Args[0])
	t := in.Args[0].Type().Scalar()
	out := make([]*val, len(vs))
	for i := range vs {
		out[i] = g(t, vs[i])
	}
	return out
}

func (lw *lowerer) each2(f *frame, in *air.Instr, g func(in *air.Instr, t *air.Type, a, b *val) *val) []*val {
	as, bs := lw.value(f, in.Args[0]), lw.value(f, in.Args[1])
	if len(as) != len(bs) {
		lw.fail("%s: operands of different length", opName(in.Op))
	}
	t := in.Args[0].Type().Scalar()
	out := make([]*val, len(as))
	for i := range as {
		out[i] = g(in, t, as[i], bs[i])
	}
	return out
}

var intOps = map[air.Op][2]op{
	air.OpAdd: {opAdd32, opAdd64}, air.OpSub: {opSub32, opSub64}, air.OpMul: {opMul32, opMul64},
	air.OpUDiv: {opUDiv32, opUDiv64}, air.OpSDiv: {opSDiv32, opSDiv64}, air.OpURem: {opURem32, opURem64}, air.OpSRem: {opSRem32, opSRem64},
	air.OpShl: {opShl32, opShl64}, air.OpLShr: {opLShr32, opLShr64}, air.OpAShr: {opAShr32, opAShr64},
	air.OpAnd: {opAnd32, opAnd64}, air.OpOr: {opOr32, opOr64}, air.OpXor: {opXor32, opXor64},
}

// pick chooses the 32- or 64-bit form.
func pick(o [2]op, wide bool) op {
	if wide {
		return o[1]
	}
	return o[0]
}

func (lw *lowerer) intOp(in *air.Instr, t *air.Type, a, b *val) *val {
	return lw.intArith(in.Op, t.ScalarBits(), a, b)
}

// intArith computes on integers of w bits, which are kept zero-extended.
func (lw *lowerer) intArith(op air.Op, w int, a, b *val) *val {
	o := pick(intOps[op], a.wide)
	odd := w != 32 && w != 64
	switch op {
	case air.OpSDiv, air.OpSRem:
		a, b = lw.signed(a, w), lw.signed(b, w)
	case air.OpAShr:
		a = lw.signed(a, w)
		fallthrough
	case air.OpShl, air.OpLShr:
		if odd { // the shift amount is taken modulo the width
			b = lw.modWidth(b, w)
		}
	}
	r := lw.emit(o, 0, a, b)
	switch op {
	case air.OpAdd, air.OpSub, air.OpMul, air.OpShl, air.OpAShr, air.OpSDiv, air.OpSRem:
		if odd {
			r = lw.mask(r, w)
		}
	}
	return r
}

func (lw *lowerer) modWidth(b *val, w int) *val {
	if b.isConst() && b.imm < uint64(w) {
		return b
	}
	return lw.emit(pick([2]op{opURem32, opURem64}, b.wide), 0, b, lw.constant(uint64(w), b.wide))
}

// The ways to compare; greater is less with the operands exchanged.
func (lw *lowerer) icmp(p air.Pred, t *air.Type, a, b *val) *val {
	w := t.ScalarBits()
	switch p {
	case air.ICmpUGT, air.ICmpUGE, air.ICmpSGT, air.ICmpSGE:
		a, b = b, a
	}
	if p >= air.ICmpSGT {
		a, b = lw.signed(a, w), lw.signed(b, w)
	}
	var o [2]op
	switch p {
	case air.ICmpEQ:
		o = [2]op{opEq32, opEq64}
	case air.ICmpNE:
		o = [2]op{opNe32, opNe64}
	case air.ICmpULT, air.ICmpUGT:
		o = [2]op{opULt32, opULt64}
	case air.ICmpULE, air.ICmpUGE:
		o = [2]op{opULe32, opULe64}
	case air.ICmpSLT, air.ICmpSGT:
		o = [2]op{opSLt32, opSLt64}
	case air.ICmpSLE, air.ICmpSGE:
		o = [2]op{opSLe32, opSLe64}
	default:
		lw.fail("icmp with predicate %d", p)
	}
	return lw.emit(pick(o, a.wide), 0, a, b)
}

func (lw *lowerer) fcmp(p air.Pred, t *air.Type, a, b *val) *val {
	a, b = lw.toArith(t, a), lw.toArith(t, b)
	var o [2]op
	switch p {
	case air.FCmpFalse:
		return lw.c32(0)
	case air.FCmpTrue:
		return lw.c32(1)
	case air.FCmpOEQ:
		o = [2]op{opFOEq32, opFOEq64}
	case air.FCmpOGT, air.FCmpOLT:
		o = [2]op{opFOLt32, opFOLt64}
	case air.FCmpOGE, air.FCmpOLE:
		o = [2]op{opFOLe32, opFOLe64}
	case air.FCmpONE:
		o = [2]op{opFONe32, opFONe64}
	case air.FCmpORD:
		o = [2]op{opFOrd32, opFOrd64}
	case air.FCmpUNO:
		o = [2]op{opFUno32, opFUno64}
	case air.FCmpUEQ:
		o = [2]op{opFUEq32, opFUEq64}
	case air.FCmpUGT, air.FCmpULT:
		o = [2]op{opFULt32, opFULt64}
	case air.FCmpUGE, air.FCmpULE:
		o = [2]op{opFULe32, opFULe64}
	case air.FCmpUNE:
		o = [2]op{opFUNe32, opFUNe64}
	default:
		lw.fail("fcmp with predicate %d", p)
	}
	switch p {
	case air.FCmpOGT, air.FCmpOGE, air.FCmpUGT, air.FCmpUGE:
		a, b = b, a
	}
	return lw.emit(pick(o, a.wide), 0, a, b)
}

func (lw *lowerer) selectInstr(f *frame, in *air.Instr) []*val {
	c := lw.value(f, in.Args[0])
	a, b := lw.value(f, in.Args[1]), lw.value(f, in.Args[2])
	out := make([]*val, len(a))
	vector := in.Args[0].Type().Kind == air.VectorKind
	for i := range a {
		k := c[0]
		if vector {
			k = c[i]
		}
		out[i] = lw.sel(k, a[i], b[i])
	}
	return out
}

func (lw *lowerer) sel(c, a, b *val) *val {
	return lw.emit(pick([2]op{opSelect32, opSelect64}, a.wide), 0, c, a, b)
}

func (lw *lowerer) extractElement(f *frame, in *air.Instr) []*val {
	vs := lw.value(f, in.Args[0])
	i := lw.scalar(f, in.Args[1])
	if i.isConst() {
		if i.imm >= uint64(len(vs)) {
			return []*val{lw.constant(0, vs[0].wide)} // poison
		}
		return []*val{vs[i.imm]}
	}
	i = lw.to64(i)
	r := vs[0]
	for k := 1; k < len(vs); k++ {
		r = lw.sel(lw.eq(i, lw.c64(uint64(k))), vs[k], r)
	}
	return []*val{r}
}

func (lw *lowerer) insertElement(f *frame, in *air.Instr) []*val {
	out := append([]*val(nil), lw.value(f, in.Args[0])...)
	v := lw.scalar(f, in.Args[1])
	i := lw.scalar(f, in.Args[2])
	if i.isConst() {
		if i.imm < uint64(len(out)) {
			out[i.imm] = v
		}
		return out
	}
	i = lw.to64(i)
	for k := range out {
		out[k] = lw.sel(lw.eq(i, lw.c64(uint64(k))), v, out[k])
	}
	return out
}

func (lw *lowerer) shuffle(f *frame, in *air.Instr) []*val {
	a, b := lw.value(f, in.Args[0]), lw.value(f, in.Args[1])
	mask, ok := in.Args[2].(*air.Const)
	if !ok {
		lw.fail("shufflevector with a mask that is not constant")
	}
	idx := lw.value(f, mask)
	if lw.isMatrix(mask.Ty) {
		lw.fail("shufflevector makes a simdgroup matrix")
	}
	undef := func(i int) bool {
		if mask.Kind != air.AggregateConst {
			return mask.Kind == air.UndefConst || mask.Kind == air.PoisonConst
		}
		e, ok := mask.Elems[i].(*air.Const)
		return ok && (e.Kind == air.UndefConst || e.Kind == air.PoisonConst)
	}
	out := make([]*val, len(idx))
	for i, k := range idx {
		switch j := int(uint32(k.imm)); {
		case undef(i) || j >= len(a)+len(b):
			out[i] = lw.constant(0, a[0].wide)
		case j < len(a):
			out[i] = a[j]
		default:
			out[i] = b[j-len(a)]
		}
	}
	return out
}

// member finds the scalars of a member of an aggregate.
func (lw *lowerer) member(t *air.Type, path []uint64) (off, n int) {
	for _, i := range path {
		switch t.Kind {
		case air.StructKind:
			if i >= uint64(len(t.Fields)) {
				lw.fail("field %d of %s", i, t)
			}
			for _, ft := range t.Fields[:i] {
				off += len(lw.leaves(ft))
			}
			t = t.Fields[i]
		case air.ArrayKind, air.VectorKind:
			off += int(i) * len(lw.leaves(t.Elem))
			t = t.Elem
		default:
			lw.fail("member %d of %s", i, t)
		}
	}
	return off, len(lw.leaves(t))
}

var opNames = [...]string{air.OpRet: "ret", air.OpBr: "br", air.OpSwitch: "switch", air.OpIndirectBr: "indirectbr", air.OpUnreachable: "unreachable",
	air.OpAdd: "add", air.OpSub: "sub", air.OpMul: "mul", air.OpUDiv: "udiv", air.OpSDiv: "sdiv", air.OpURem: "urem", air.OpSRem: "srem",
	air.OpShl: "shl", air.OpLShr: "lshr", air.OpAShr: "ashr", air.OpAnd: "and", air.OpOr: "or", air.OpXor: "xor",
	air.OpFNeg: "fneg", air.OpFAdd: "fadd", air.OpFSub: "fsub", air.OpFMul: "fmul", air.OpFDiv: "fdiv", air.OpFRem: "frem",
	air.OpTrunc: "trunc", air.OpZExt: "zext", air.OpSExt: "sext", air.OpFPTrunc: "fptrunc", air.OpFPExt: "fpext", air.OpFPToUI: "fptoui",
	air.OpFPToSI: "fptosi", air.OpUIToFP: "uitofp", air.OpSIToFP: "sitofp", air.OpPtrToInt: "ptrtoint", air.OpIntToPtr: "inttoptr",
	air.OpBitCast: "bitcast", air.OpAddrSpaceCast: "addrspacecast", air.OpICmp: "icmp", air.OpFCmp: "fcmp", air.OpAlloca: "alloca",
	air.OpLoad: "load", air.OpStore: "store", air.OpGetElementPtr: "getelementptr", air.OpFence: "fence", air.OpCmpXchg: "cmpxchg",
	air.OpAtomicRMW: "atomicrmw", air.OpExtractElement: "extractelement", air.OpInsertElement: "insertelement", air.OpShuffleVector: "shufflevector",
	air.OpExtractValue: "extractvalue", air.OpInsertValue: "insertvalue", air.OpPhi: "phi", air.OpSelect: "select", air.OpCall: "call",
	air.OpFreeze: "freeze", air.OpVAArg: "va_arg", air.OpUnknown: "unknown"}

func opName(o air.Op) string {
	if int(o) < len(opNames) && opNames[o] != "" {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", o)
}
