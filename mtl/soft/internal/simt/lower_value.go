package simt

import (
	"math"

	"github.com/ingot-metal/ingot/metallib/air"
)

// maxLeaves bounds the scalars of one aggregate value.
const maxLeaves = 1 << 16

// A leaf is one scalar of a type, at its byte offset. In vectors of odd-width integers (masks of i1) the elements have no
// byte offsets of their own; packed tells.
type leaf struct {
	t      *air.Type
	off    uint64
	packed bool
}

func (l leaf) wide() bool { return l.t.ScalarBits() > 32 }

// leaves splits a type into scalars.
func (lw *lowerer) leaves(t *air.Type) []leaf {
	if ls, ok := lw.types[t]; ok {
		return ls
	}
	if lw.nested++; lw.nested > 100 {
		lw.fail("type %s is nested too deeply", t.Name)
	}
	defer func() { lw.nested-- }()
	var ls []leaf
	switch t.Kind {
	case air.VoidKind, air.LabelKind, air.MetadataKind:
	case air.IntKind:
		if t.Bits > 64 {
			lw.fail("integers of %d bits are not supported", t.Bits)
		}
		ls = []leaf{{t: t}}
	case air.HalfKind, air.BFloatKind, air.FloatKind, air.DoubleKind, air.PointerKind:
		ls = []leaf{{t: t}}
	case air.VectorKind:
		n := t.Len
		if lw.isMatrix(t) {
			n = 2
		}
		if n > maxLeaves {
			lw.fail("vector %s is too long", t)
		}
		sub := lw.leaves(t.Elem)
		bits := t.Elem.ScalarBits()
		for i := uint64(0); i < n; i++ {
			ls = append(ls, leaf{t: sub[0].t, off: i * uint64(bits) / 8, packed: bits%8 != 0})
		}
	case air.ArrayKind:
		sub := lw.leaves(t.Elem)
		if t.Len*uint64(max(len(sub), 1)) > maxLeaves {
			lw.fail("a value of type %s is too large", t)
		}
		size := air.Size(t.Elem)
		for i := uint64(0); i < t.Len; i++ {
			for _, l := range sub {
				l.off += i * size
				ls = append(ls, l)
			}
		}
	case air.StructKind:
		if t.Opaque {
			lw.fail("a value of the opaque type %s", t)
		}
		offs, _ := air.StructLayout(t)
		for i, ft := range t.Fields {
			for _, l := range lw.leaves(ft) {
				l.off += offs[i]
				ls = append(ls, l)
			}
		}
	default:
		lw.fail("values of type %s are not supported", t)
	}
	if len(ls) > maxLeaves {
		lw.fail("a value of type %s is too large", t)
	}
	lw.types[t] = ls
	return ls
}

// isMatrix tells whether t is an 8x8 simdgroup matrix: 64 elements in the type, two of them in each lane.
func (lw *lowerer) isMatrix(t *air.Type) bool {
	return lw.matrix && t.Kind == air.VectorKind && t.Len == 64 && t.Elem.IsFloat()
}

// value finds the scalars of an operand.
func (lw *lowerer) value(f *frame, v air.Value) []*val {
	switch v := v.(type) {
	case *air.Const:
		return lw.constValue(f, v)
	case *air.Global:
		return []*val{lw.c64(lw.globalAddress(v))}
	case *air.Alias:
		return lw.value(f, v.Aliasee)
	case *air.Function:
		lw.fail("the address of function %s is used: function pointers are not supported", v.Name)
	case *air.MetadataValue:
		return nil
	}
	if f != nil {
		if vs, ok := f.vals[v]; ok {
			return vs
		}
		if a, ok := v.(*air.Arg); ok {
			lw.fail("argument %d (%s) of %s is of a kind that is not supported", a.Index, a.Ty, f.fn.Name)
		}
	}
	lw.fail("an operand is used before it is defined")
	return nil
}

// scalar is an operand of exactly one scalar.
func (lw *lowerer) scalar(f *frame, v air.Value) *val {
	vs := lw.value(f, v)
	if len(vs) != 1 {
		lw.fail("an operand of type %s where a scalar is needed", v.Type())
	}
	return vs[0]
}

func (lw *lowerer) constValue(f *frame, c *air.Const) []*val {
	ls := lw.leaves(c.Ty)
	out := make([]*val, 0, len(ls))
	switch c.Kind {
	case air.NullConst, air.UndefConst, air.PoisonConst, air.TokenNoneConst:
		for _, l := range ls {
			out = append(out, lw.constant(0, l.wide()))
		}
	case air.IntConst, air.FloatConst:
		out = append(out, lw.constant(c.Bits, ls[0].wide()))
	case air.AggregateConst:
		if lw.isMatrix(c.Ty) {
			out = append(out, lw.value(f, c.Elems[0])[0], lw.value(f, c.Elems[0])[0])
			for _, e := range c.Elems {
				if lw.value(f, e)[0] != out[0] {
					lw.fail("a constant simdgroup matrix whose elements differ is not supported")
				}
			}
			break
		}
		for _, e := range c.Elems {
			out = append(out, lw.value(f, e)...)
		}
	case air.DataConst:
		if lw.isMatrix(c.Ty) {
			for _, d := range c.Data {
				if d != c.Data[0] {
					lw.fail("a constant simdgroup matrix whose elements differ is not supported")
				}
			}
			v := lw.constant(c.Data[0], ls[0].wide())
			return []*val{v, v}
		}
		for i, d := range c.Data {
			out = append(out, lw.constant(d, ls[i].wide()))
		}
	case air.StringConst:
		for _, b := range c.Str {
			out = append(out, lw.c32(uint32(b)))
		}
	case air.ExprConst:
		in := &air.Instr{Op: c.Op, Ty: c.Ty, Args: c.Elems, Pred: c.Pred, Flags: c.Flags, SourceType: c.SourceType}
		if c.Mask != nil {
			in.Args = append(append([]air.Value(nil), c.Elems...), c.Mask)
		}
		return lw.pure(f, in)
	default:
		lw.fail("a constant of kind %d is not supported", c.Kind)
	}
	if len(out) != len(ls) {
		lw.fail("a constant of type %s has %d elements, needs %d", c.Ty, len(out), len(ls))
	}
	return out
}

// constBytes writes the memory image of a constant to dst.
func (lw *lowerer) constBytes(dst []byte, c air.Value) {
	vs := lw.value(nil, c)
	for i, l := range lw.leaves(c.Type()) {
		if !vs[i].isConst() {
			lw.fail("an initialiser that is not constant")
		}
		n := uint64(l.t.ScalarBits()+7) / 8
		if l.packed {
			lw.fail("an initialiser of type %s is not supported", c.Type())
		}
		for k := uint64(0); k < n && l.off+k < uint64(len(dst)); k++ {
			dst[l.off+k] = byte(vs[i].imm >> (8 * k))
		}
	}
}

// emit appends a lane operation, folded and simplified where possible.
func (lw *lowerer) emit(o op, imm uint64, args ...*val) *val {
	info := &laneOps[o]
	if info.comm && args[0].isConst() && !args[1].isConst() {
		args[0], args[1] = args[1], args[0]
	}
	if v := lw.fold(o, imm, args); v != nil {
		return v
	}
	k := cseKey{op: o, imm: imm, a: args[0]}
	if len(args) > 1 {
		k.b = args[1]
	}
	if len(args) > 2 {
		k.c = args[2]
	}
	if v := lw.cse[k]; v != nil {
		return v
	}
	v := lw.newVal(o, info.wide, imm, args...)
	lw.cur.ins = append(lw.cur.ins, v)
	lw.cse[k] = v
	return v
}

// fold finds a simpler value, or nil.
func (lw *lowerer) fold(o op, imm uint64, args []*val) *val {
	info := &laneOps[o]
	var x [3]uint64
	all := true
	for i, a := range args {
		if !a.isConst() {
			all = false
			break
		}
		x[i] = a.imm
	}
	if all {
		return lw.constant(info.eval(x[0], x[1], x[2], imm), info.wide)
	}
	a := args[0]
	var b *val
	if len(args) > 1 {
		b = args[1]
	}
	switch o {
	case opAdd32, opAdd64, opOr32, opOr64, opXor32, opXor64:
		if b.isConst() && b.imm == 0 {
			return a
		}
		if o == opAdd64 && b.isConst() && a.op == opAdd64 && a.args[1].isConst() {
			return lw.emit(opAdd64, 0, a.args[0], lw.c64(a.args[1].imm+b.imm))
		}
		if o == opAdd32 && b.isConst() && a.op == opAdd32 && a.args[1].isConst() {
			return lw.emit(opAdd32, 0, a.args[0], lw.c32(uint32(a.args[1].imm+b.imm)))
		}
		if (o == opXor32 || o == opXor64) && a == b {
			return lw.constant(0, info.wide)
		}
		if (o == opOr32 || o == opOr64) && a == b {
			return a
		}
	case opSub32, opSub64, opShl32, opShl64, opLShr32, opLShr64, opAShr32, opAShr64:
		if b.isConst() && b.imm == 0 {
			return a
		}
		if o == opSub64 && b.isConst() {
			return lw.emit(opAdd64, 0, a, lw.c64(-b.imm))
		}
	case opMul32, opMul64:
		if b.isConst() {
			switch {
			case b.imm == 0:
				return b
			case b.imm == 1:
				return a
			case b.imm&(b.imm-1) == 0:
				n := uint64(0)
				for b.imm>>n != 1 {
					n++
				}
				if o == opMul32 {
					return lw.emit(opShl32, 0, a, lw.c32(uint32(n)))
				}
				return lw.emit(opShl64, 0, a, lw.c64(n))
			}
		}
	case opAnd32, opAnd64:
		if b.isConst() {
			if b.imm == 0 {
				return b
			}
			if a.op == o && a.args[1].isConst() {
				return lw.emit(o, 0, a.args[0], lw.constant(a.args[1].imm&b.imm, info.wide))
			}
			if b.imm&(b.imm+1) == 0 && uint64(1)<<a.width()-1 <= b.imm || a.width() == 64 && b.imm == math.MaxUint64 {
				return a
			}
		}
		if a == b {
			return a
		}
	case opUDiv32, opUDiv64, opSDiv32, opSDiv64:
		if b.isConst() && b.imm == 1 {
			return a
		}
		if (o == opUDiv32 || o == opUDiv64) && b.isConst() && b.imm != 0 && b.imm&(b.imm-1) == 0 {
			n := uint64(0)
			for b.imm>>n != 1 {
				n++
			}
			if o == opUDiv32 {
				return lw.emit(opLShr32, 0, a, lw.c32(uint32(n)))
			}
			return lw.emit(opLShr64, 0, a, lw.c64(n))
		}
	case opURem32, opURem64:
		if b.isConst() && b.imm != 0 && b.imm&(b.imm-1) == 0 {
			if o == opURem32 {
				return lw.emit(opAnd32, 0, a, lw.c32(uint32(b.imm-1)))
			}
			return lw.emit(opAnd64, 0, a, lw.c64(b.imm-1))
		}
	case opSExt32, opSExt64:
		if uint64(a.width()) < imm {
			return a
		}
		full := uint64(32)
		if o == opSExt64 {
			full = 64
		}
		if imm == full {
			return a
		}
	case opTrunc64:
		if a.op == opZExt64 || a.op == opSExt64From32 {
			return a.args[0]
		}
	case opIndex64:
		if b.isConst() {
			return lw.emit(opAdd64, 0, a, lw.c64(b.imm*imm))
		}
		// The index's own constant part goes into the displacement.
		switch {
		case b.op == opZExt64:
			return lw.emit(opIndexU32, imm, a, b.args[0])
		case b.op == opSExt64From32:
			return lw.emit(opIndexS32, imm, a, b.args[0])
		case b.op == opAdd64 && b.args[1].isConst():
			return lw.emit(opAdd64, 0, lw.emit(opIndex64, imm, a, b.args[0]), lw.c64(b.args[1].imm*imm))
		case b.op == opShl64 && b.args[1].isConst():
			return lw.emit(opIndex64, imm<<(b.args[1].imm&63), a, b.args[0])
		case imm == 1:
			return lw.emit(opAdd64, 0, a, b)
		}
		if a.op == opAdd64 && a.args[1].isConst() && !a.args[0].isConst() {
			return lw.emit(opAdd64, 0, lw.emit(opIndex64, imm, a.args[0], b), a.args[1])
		}
	case opIndexU32, opIndexS32:
		if b.isConst() {
			return lw.constIndex(o, imm, a, b)
		}
		if a.op == opAdd64 && a.args[1].isConst() && !a.args[0].isConst() {
			return lw.emit(opAdd64, 0, lw.emit(o, imm, a.args[0], b), a.args[1])
		}
	case opSelect32, opSelect64:
		if a.isConst() {
			if a.imm != 0 {
				return args[1]
			}
			return args[2]
		}
		if args[1] == args[2] {
			return args[1]
		}
	case opEq32, opEq64, opULe32, opULe64, opSLe32, opSLe64:
		if a == b {
			return lw.c32(1)
		}
	case opNe32:
		// A comparison compared with zero is itself.
		if b.isConst() && b.imm == 0 && a.width() == 1 {
			return a
		}
		if a == b {
			return lw.c32(0)
		}
	case opNe64, opULt32, opULt64, opSLt32, opSLt64:
		if a == b {
			return lw.c32(0)
		}
	}
	return nil
}

func (lw *lowerer) constIndex(o op, imm uint64, a, b *val) *val {
	i := b.imm
	if o == opIndexS32 {
		i = uint64(int64(int32(uint32(b.imm))))
	}
	return lw.emit(opAdd64, 0, a, lw.c64(i*imm))
}

// mask clears what lies above the low w bits.
func (lw *lowerer) mask(v *val, w int) *val {
	if v.wide {
		if w >= 64 {
			return v
		}
		return lw.emit(opAnd64, 0, v, lw.c64(widthMask(uint64(w))))
	}
	if w >= 32 {
		return v
	}
	return lw.emit(opAnd32, 0, v, lw.c32(uint32(widthMask(uint64(w)))))
}

// signed extends a value of w bits within its container.
func (lw *lowerer) signed(v *val, w int) *val {
	if v.wide {
		if w >= 64 {
			return v
		}
		return lw.emit(opSExt64, uint64(w), v)
	}
	if w >= 32 {
		return v
	}
	return lw.emit(opSExt32, uint64(w), v)
}

// to64 and to32 change the container of an unsigned value.
func (lw *lowerer) to64(v *val) *val {
	if v.wide {
		return v
	}
	return lw.emit(opZExt64, 0, v)
}

func (lw *lowerer) to32(v *val) *val {
	if !v.wide {
		return v
	}
	return lw.emit(opTrunc64, 0, v)
}

func (lw *lowerer) eq(a, b *val) *val {
	if a.wide {
		return lw.emit(opEq64, 0, a, b)
	}
	return lw.emit(opEq32, 0, a, b)
}
