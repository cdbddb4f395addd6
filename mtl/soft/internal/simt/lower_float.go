package simt

import "github.com/ingot-metal/ingot/metallib/air"

// Half and bfloat values are computed in single precision and rounded after every operation. For +, -, *, / and square
// root that equals one rounding: single precision has more than twice their bits.

// toArith widens half and bfloat to single precision.
func (lw *lowerer) toArith(t *air.Type, v *val) *val {
	switch t.Kind {
	case air.HalfKind:
		return lw.emit(opHalfToF32, 0, v)
	case air.BFloatKind:
		return lw.emit(opBFloatToF32, 0, v)
	case air.FloatKind, air.DoubleKind:
		return v
	}
	lw.fail("floating-point arithmetic on %s", t)
	return nil
}

// fromArith rounds back.
func (lw *lowerer) fromArith(t *air.Type, v *val) *val {
	switch t.Kind {
	case air.HalfKind:
		return lw.emit(opF32ToHalf, 0, v)
	case air.BFloatKind:
		return lw.emit(opF32ToBFloat, 0, v)
	}
	return v
}

var floatOps = map[air.Op][2]op{
	air.OpFAdd: {opFAdd32, opFAdd64}, air.OpFSub: {opFSub32, opFSub64}, air.OpFMul: {opFMul32, opFMul64},
	air.OpFDiv: {opFDiv32, opFDiv64}, air.OpFRem: {opFRem32, opFRem64},
}

func (lw *lowerer) floatOp(in *air.Instr, t *air.Type, a, b *val) *val {
	return lw.arith(in.Op, t, a, b)
}

func (lw *lowerer) arith(op air.Op, t *air.Type, a, b *val) *val {
	return lw.fromArith(t, lw.emit(pick(floatOps[op], t.Kind == air.DoubleKind), 0, lw.toArith(t, a), lw.toArith(t, b)))
}

func (lw *lowerer) fneg(t *air.Type, a *val) *val {
	switch t.Kind {
	case air.DoubleKind:
		return lw.emit(opFNeg64, 0, a)
	case air.FloatKind:
		return lw.emit(opFNeg32, 0, a)
	}
	return lw.emit(opXor32, 0, a, lw.c32(0x8000))
}

func (lw *lowerer) fabs(t *air.Type, a *val) *val {
	switch t.Kind {
	case air.DoubleKind:
		return lw.emit(opFAbs64, 0, a)
	case air.FloatKind:
		return lw.emit(opFAbs32, 0, a)
	}
	return lw.emit(opAnd32, 0, a, lw.c32(0x7fff))
}

// intCast changes an unsigned value's width.
func (lw *lowerer) intCast(v *val, bits int) *val {
	if bits > 32 {
		return lw.mask(lw.to64(v), bits)
	}
	return lw.mask(lw.to32(v), bits)
}

func (lw *lowerer) cast(op air.Op, from, to *air.Type, v *val) *val {
	switch op {
	case air.OpTrunc, air.OpZExt:
		return lw.intCast(v, to.Bits)
	case air.OpSExt:
		return lw.sextCast(v, from.Bits, to.Bits)
	case air.OpFPTrunc, air.OpFPExt:
		return lw.floatCast(from, to, v)
	case air.OpUIToFP:
		return lw.intToFloat(v, from.Bits, false, to)
	case air.OpSIToFP:
		return lw.intToFloat(v, from.Bits, true, to)
	case air.OpFPToUI:
		return lw.floatToInt(from, v, to.Bits, false)
	case air.OpFPToSI:
		return lw.floatToInt(from, v, to.Bits, true)
	}
	return nil
}

func (lw *lowerer) sextCast(v *val, from, to int) *val {
	if to <= 32 {
		return lw.mask(lw.signed(lw.to32(v), from), to)
	}
	if !v.wide {
		return lw.mask(lw.emit(opSExt64From32, 0, lw.signed(v, from)), to)
	}
	return lw.mask(lw.signed(v, from), to)
}

func (lw *lowerer) floatCast(from, to *air.Type, v *val) *val {
	if from == to {
		return v
	}
	if from.Kind == air.DoubleKind {
		switch to.Kind {
		case air.HalfKind:
			return lw.emit(opF64ToHalf, 0, v)
		case air.BFloatKind:
			return lw.emit(opF64ToBFloat, 0, v)
		}
		return lw.emit(opF64ToF32, 0, v)
	}
	f := lw.toArith(from, v)
	if to.Kind == air.DoubleKind {
		return lw.emit(opF32ToF64, 0, f)
	}
	return lw.fromArith(to, f)
}

// intToFloat converts with one rounding to nearest.
func (lw *lowerer) intToFloat(v *val, bits int, signed bool, to *air.Type) *val {
	if signed {
		v = lw.signed(v, bits)
	}
	k := func(s, u op) op {
		if signed {
			return s
		}
		return u
	}
	switch to.Kind {
	case air.FloatKind:
		if v.wide {
			return lw.emit(k(opS64ToF32, opU64ToF32), 0, v)
		}
		return lw.emit(k(opS32ToF32, opU32ToF32), 0, v)
	case air.DoubleKind:
		return lw.intToDouble(v, signed)
	case air.HalfKind, air.BFloatKind:
		if bits <= 24 { // exact in single precision
			return lw.fromArith(to, lw.emit(k(opS32ToF32, opU32ToF32), 0, v))
		}
		d := lw.intToDouble(v, signed)
		if v.wide {
			d = lw.emit(k(opS64ToF64Odd, opU64ToF64Odd), 0, v)
		}
		if to.Kind == air.HalfKind {
			return lw.emit(opF64ToHalf, 0, d)
		}
		return lw.emit(opF64ToBFloat, 0, d)
	}
	lw.fail("a conversion of an integer to %s", to)
	return nil
}

func (lw *lowerer) intToDouble(v *val, signed bool) *val {
	switch {
	case v.wide && signed:
		return lw.emit(opS64ToF64, 0, v)
	case v.wide:
		return lw.emit(opU64ToF64, 0, v)
	case signed:
		return lw.emit(opS32ToF64, 0, v)
	}
	return lw.emit(opU32ToF64, 0, v)
}

// floatToInt rounds towards zero and saturates.
func (lw *lowerer) floatToInt(from *air.Type, v *val, bits int, signed bool) *val {
	v = lw.toArith(from, v)
	w := uint64(bits)
	d := from.Kind == air.DoubleKind
	var o op
	switch {
	case bits <= 32 && signed:
		o = pick([2]op{opF32ToS, opF64ToS}, d)
	case bits <= 32:
		o = pick([2]op{opF32ToU, opF64ToU}, d)
	case signed:
		o = pick([2]op{opF32ToS64, opF64ToS64}, d)
	default:
		o = pick([2]op{opF32ToU64, opF64ToU64}, d)
	}
	return lw.emit(o, w, v)
}

// bitcast reinterprets scalars of one type as those of another of the same size.
func (lw *lowerer) bitcast(vs []*val, from, to *air.Type) []*val {
	if lw.isMatrix(from) || lw.isMatrix(to) {
		if from.Scalar().ScalarBits() != to.Scalar().ScalarBits() || len(vs) != len(lw.leaves(to)) {
			lw.fail("a bitcast of a simdgroup matrix to %s", to)
		}
		return vs
	}
	fb, tb := from.ScalarBits(), to.ScalarBits()
	if fb == tb {
		return vs
	}
	n := to.Lanes()
	if fb*len(vs) != tb*n {
		lw.fail("bitcast between %s and %s", from, to)
	}
	out := make([]*val, n)
	for i := range out {
		out[i] = lw.gather(vs, fb, i*tb, tb)
	}
	return out
}

// gather makes the value of n bits from bit off up of scalars of w bits, of which the first holds the lowest.
func (lw *lowerer) gather(vs []*val, w, off, n int) *val {
	var r *val
	for got := 0; got < n; {
		src, bit := vs[(off+got)/w], (off+got)%w
		take := min(w-bit, n-got)
		part := src
		if bit > 0 || take < w {
			if src.wide && take <= 32 {
				part = lw.mask(lw.emit(opTruncShr64, uint64(bit), src), take)
			} else {
				part = lw.mask(lw.emit(pick([2]op{opLShr32, opLShr64}, src.wide), 0, src, lw.constant(uint64(bit), src.wide)), take)
			}
		}
		if n > 32 {
			part = lw.to64(part)
		} else {
			part = lw.to32(part)
		}
		if got > 0 {
			part = lw.emit(pick([2]op{opShl32, opShl64}, part.wide), 0, part, lw.constant(uint64(got), part.wide))
			part = lw.emit(pick([2]op{opOr32, opOr64}, part.wide), 0, r, part)
		}
		r = part
		got += take
	}
	return r
}
