package air

import (
	"errors"
	"fmt"
)

// arity gives the number of operands of the operations that have a fixed one.
var arity = func() map[Op]int {
	n := map[Op]int{OpUnreachable: 0, OpFence: 0, OpIndirectBr: 1, OpFNeg: 1, OpICmp: 2, OpFCmp: 2, OpAlloca: 1, OpLoad: 1, OpStore: 2,
		OpCmpXchg: 3, OpAtomicRMW: 2, OpExtractElement: 2, OpInsertElement: 3, OpShuffleVector: 3, OpExtractValue: 1,
		OpInsertValue: 2, OpSelect: 3, OpFreeze: 1, OpVAArg: 1}
	for op := OpAdd; op <= OpXor; op++ {
		n[op] = 2
	}
	for op := OpFAdd; op <= OpFRem; op++ {
		n[op] = 2
	}
	for op := OpTrunc; op <= OpAddrSpaceCast; op++ {
		n[op] = 1
	}
	return n
}()

// types checks the types of an instruction, whose operands exist.
func (v *verifier) types(in *Instr) error {
	if n, ok := arity[in.Op]; ok && n != len(in.Args) {
		return fmt.Errorf("%d operands, %d are needed", len(in.Args), n)
	}
	if !powerOfTwo(in.Align) {
		return fmt.Errorf("an alignment of %d", in.Align)
	}
	arg := func(i int) *Type { return in.Args[i].Type() }
	switch op := in.Op; {
	case op >= OpAdd && op <= OpXor:
		return all(in, arg(0).Scalar().Kind == IntKind, "integers")
	case op >= OpFNeg && op <= OpFRem:
		return all(in, isFloatish(arg(0)), "floating-point numbers")
	case op >= OpTrunc && op <= OpAddrSpaceCast:
		return checkCast(op, arg(0), in.Ty)
	case op == OpICmp || op == OpFCmp:
		if arg(0) != arg(1) || (op == OpICmp) == isFloatish(arg(0)) || (op == OpICmp) != (in.Pred >= ICmpEQ) {
			return fmt.Errorf("%s of %s and %s", in.Pred, arg(0), arg(1))
		}
		if in.Ty.Scalar() != v.m.Int(1) || in.Ty.Lanes() != arg(0).Lanes() {
			return fmt.Errorf("a result of type %s", in.Ty)
		}
	case op == OpFreeze:
		if in.Ty != arg(0) {
			return fmt.Errorf("%s from %s", in.Ty, arg(0))
		}
	case op == OpSelect:
		c := arg(0)
		if arg(1) != in.Ty || arg(2) != in.Ty || c.Scalar() != v.m.Int(1) || c.Kind == VectorKind && c.Lanes() != in.Ty.Lanes() {
			return fmt.Errorf("a select by %s of %s and %s", c, arg(1), arg(2))
		}
	case op >= OpRet && op <= OpUnreachable:
		return v.terminator(in)
	case op >= OpAlloca && op <= OpAtomicRMW:
		return v.memory(in)
	case op >= OpExtractElement && op <= OpInsertValue:
		return v.parts(in)
	case op == OpCall:
		return v.call(in)
	case op == OpPhi, op == OpVAArg:
	default:
		return fmt.Errorf("operation %s is not known", op)
	}
	return nil
}

// isFloatish tells whether t is a floating-point number or a vector of them, exotic formats included.
func isFloatish(t *Type) bool { return t.Scalar().IsFloat() || t.Scalar().Kind == OtherKind }

// all checks that all operands and the result are of one type, of the kind that ok says.
func all(in *Instr, ok bool, kind string) error {
	for _, a := range in.Args {
		if !ok || a.Type() != in.Ty {
			return fmt.Errorf("%s from %s: equal types of %s are needed", in.Ty, a.Type(), kind)
		}
	}
	return nil
}

func checkCast(op Op, from, to *Type) error {
	f, t := from.Scalar(), to.Scalar()
	isInt := func(t *Type) bool { return t.Kind == IntKind }
	isFP := func(t *Type) bool { return t.IsFloat() || t.Kind == OtherKind }
	isPtr := func(t *Type) bool { return t.Kind == PointerKind }
	wider := func(a, b *Type) bool {
		return a.ScalarBits() > b.ScalarBits() || a.Kind == OtherKind || b.Kind == OtherKind
	}
	ok := from.Lanes() == to.Lanes() && (from.Kind == VectorKind) == (to.Kind == VectorKind)
	switch op {
	case OpTrunc:
		ok = ok && isInt(f) && isInt(t) && wider(f, t)
	case OpZExt, OpSExt:
		ok = ok && isInt(f) && isInt(t) && wider(t, f)
	case OpFPTrunc:
		ok = ok && isFP(f) && isFP(t) && wider(f, t)
	case OpFPExt:
		ok = ok && isFP(f) && isFP(t) && wider(t, f)
	case OpFPToUI, OpFPToSI:
		ok = ok && isFP(f) && isInt(t)
	case OpUIToFP, OpSIToFP:
		ok = ok && isInt(f) && isFP(t)
	case OpPtrToInt:
		ok = ok && isPtr(f) && isInt(t)
	case OpIntToPtr:
		ok = ok && isInt(f) && isPtr(t)
	case OpAddrSpaceCast:
		ok = ok && isPtr(f) && isPtr(t) && f.Space != t.Space
	case OpBitCast:
		// Lanes may differ; the number of bits may not, nor may pointers become anything else or change their space.
		switch {
		case isPtr(f) || isPtr(t):
			ok = ok && isPtr(f) && isPtr(t) && f.Space == t.Space
		case f.Kind == OtherKind || t.Kind == OtherKind:
			ok = true
		default:
			n := f.ScalarBits() * from.Lanes()
			ok = n != 0 && n == t.ScalarBits()*to.Lanes()
		}
	}
	if !ok {
		return fmt.Errorf("%s to %s", from, to)
	}
	return nil
}

func (v *verifier) terminator(in *Instr) error {
	arg := func(i int) *Type { return in.Args[i].Type() }
	if in.Ty.Kind != VoidKind {
		return fmt.Errorf("a result of type %s", in.Ty)
	}
	switch in.Op {
	case OpRet:
		ret := v.f.FuncType.Ret
		if len(in.Args) > 1 || (len(in.Args) == 0) != (ret.Kind == VoidKind) || len(in.Args) == 1 && arg(0) != ret {
			return fmt.Errorf("the function returns %s", ret)
		}
	case OpBr:
		if len(in.Blocks) != len(in.Args)+1 || len(in.Args) > 1 || len(in.Args) == 1 && arg(0) != v.m.Int(1) {
			return fmt.Errorf("%d targets and %d conditions", len(in.Blocks), len(in.Args))
		}
	case OpSwitch:
		if len(in.Args) == 0 || len(in.Blocks) != len(in.Args) || arg(0).Kind != IntKind {
			return fmt.Errorf("%d targets and %d cases", len(in.Blocks), len(in.Args)-1)
		}
		for _, c := range in.Args[1:] {
			k, ok := c.(*Const)
			if !ok || k.Ty != arg(0) || k.Kind != IntConst && k.Kind != NullConst {
				return errors.New("a case is no integer of the type switched over")
			}
		}
	case OpIndirectBr:
		if arg(0).Kind != PointerKind {
			return fmt.Errorf("an address of type %s", arg(0))
		}
	}
	if in.Op == OpUnreachable && len(in.Blocks) > 0 || in.Op == OpRet && len(in.Blocks) > 0 {
		return errors.New("it has targets")
	}
	return nil
}

// through checks an access of type t through pointer p.
func through(p, t *Type) error {
	if p.Kind != PointerKind || p.Elem != nil && p.Elem != t {
		return fmt.Errorf("an access of type %s through %s", t, p)
	}
	switch t.Kind {
	case VoidKind, FunctionKind, LabelKind, MetadataKind:
		return fmt.Errorf("an access of type %s", t)
	}
	return nil
}

func (v *verifier) memory(in *Instr) error {
	arg := func(i int) *Type { return in.Args[i].Type() }
	switch in.Op {
	case OpAlloca:
		if in.SourceType == nil || in.Ty.Kind != PointerKind || in.Ty.Elem != nil && in.Ty.Elem != in.SourceType || arg(0).Kind != IntKind {
			return fmt.Errorf("memory for %s counted in %s as %s", in.SourceType, arg(0), in.Ty)
		}
	case OpLoad:
		return through(arg(0), in.Ty)
	case OpStore:
		if in.Ty.Kind != VoidKind {
			return fmt.Errorf("a result of type %s", in.Ty)
		}
		return through(arg(1), arg(0))
	case OpGetElementPtr:
		return v.gep(in)
	case OpFence:
		if in.Ordering == 0 {
			return errors.New("no memory ordering")
		}
	case OpCmpXchg:
		if t := arg(1); arg(2) != t || in.Ty != v.m.Struct(false, t, v.m.Int(1)) || in.Ordering == 0 || in.FailureOrdering == 0 {
			return fmt.Errorf("an exchange of %s for %s giving %s", t, arg(2), in.Ty)
		}
		return through(arg(0), arg(1))
	case OpAtomicRMW:
		if in.Ty != arg(1) || in.Ordering == 0 {
			return fmt.Errorf("an operation with %s giving %s", arg(1), in.Ty)
		}
		return through(arg(0), arg(1))
	}
	return nil
}

// gep checks a getelementptr by working out its type as the reader does.
func (v *verifier) gep(in *Instr) (err error) {
	if in.SourceType == nil || len(in.Args) == 0 {
		return errors.New("no type or no base")
	}
	defer func() {
		if e, ok := recover().(bitError); ok {
			err = errors.New(e.msg)
		}
	}()
	t := v.m.gepType(in.SourceType, in.Args, func(format string, args ...any) { panic(bitError{fmt.Sprintf(format, args...)}) })
	if t != in.Ty {
		return fmt.Errorf("a result of type %s, recorded as %s", t, in.Ty)
	}
	return nil
}

func (v *verifier) parts(in *Instr) error {
	arg := func(i int) *Type { return in.Args[i].Type() }
	t := arg(0)
	switch in.Op {
	case OpExtractElement:
		if t.Kind != VectorKind || in.Ty != t.Elem || arg(1).Kind != IntKind {
			return fmt.Errorf("%s from %s at %s", in.Ty, t, arg(1))
		}
	case OpInsertElement:
		if t.Kind != VectorKind || in.Ty != t || arg(1) != t.Elem || arg(2).Kind != IntKind {
			return fmt.Errorf("%s into %s at %s", arg(1), t, arg(2))
		}
	case OpShuffleVector:
		mask := arg(2)
		if t.Kind != VectorKind || arg(1) != t || mask.Kind != VectorKind || mask.Elem != v.m.Int(32) || in.Ty != v.m.Vector(t.Elem, mask.Len) {
			return fmt.Errorf("%s and %s by %s giving %s", t, arg(1), mask, in.Ty)
		}
		if _, ok := in.Args[2].(*Const); !ok {
			return errors.New("its mask is no constant")
		}
	case OpExtractValue, OpInsertValue:
		if len(in.Indices) == 0 {
			return errors.New("no indices")
		}
		for _, i := range in.Indices {
			if t.Kind == VectorKind || i > 1<<31 {
				t = nil
			} else {
				t = elementType(t, int(i))
			}
			if t == nil {
				return fmt.Errorf("element %d of %s does not exist", in.Indices, arg(0))
			}
		}
		if in.Op == OpExtractValue && in.Ty != t || in.Op == OpInsertValue && (arg(1) != t || in.Ty != arg(0)) {
			return fmt.Errorf("element %d of %s is of type %s", in.Indices, arg(0), t)
		}
	}
	return nil
}

func (v *verifier) call(in *Instr) error {
	ft := in.FuncType
	if in.Callee == nil || ft == nil || ft.Kind != FunctionKind {
		return errors.New("it has no callee or no function type")
	}
	if p := in.Callee.Type(); p.Kind != PointerKind || p.Elem != nil && p.Elem != ft {
		return fmt.Errorf("its callee is of type %s, not a pointer to %s", p, ft)
	}
	if in.Ty != ft.Ret {
		return fmt.Errorf("a result of type %s from %s", in.Ty, ft)
	}
	if len(in.Args) < len(ft.Params) || len(in.Args) > len(ft.Params) && !ft.Variadic {
		return fmt.Errorf("%d arguments for %s", len(in.Args), ft)
	}
	for i, p := range ft.Params {
		if t := in.Args[i].Type(); t != p {
			return fmt.Errorf("argument %d is of type %s, %s is needed", i, t, p)
		}
	}
	return nil
}
