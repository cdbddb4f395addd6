package simt

import (
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// mathUnary and mathBinary are functions of single precision; half and bfloat go through them.
var mathUnary = map[string]op{
	"sqrt": opSqrt32, "rsqrt": opRsqrt32, "recip": opRecip32, "floor": opFloor32, "ceil": opCeil32, "trunc": opTruncF32,
	"round": opRound32, "rint": opRint32, "nearbyint": opRint32, "roundeven": opRint32, "fract": opFract32, "sign": opFSign32,
	"exp": opExp32, "exp2": opExp232, "exp10": opExp1032, "expm1": opExpm132, "log": opLog32, "log2": opLog232, "log10": opLog1032, "log1p": opLog1p32,
	"sin": opSin32, "cos": opCos32, "tan": opTan32, "sinpi": opSinPi32, "cospi": opCosPi32, "tanpi": opTanPi32,
	"asin": opAsin32, "acos": opAcos32, "atan": opAtan32, "sinh": opSinh32, "cosh": opCosh32, "tanh": opTanh32,
	"asinh": opAsinh32, "acosh": opAcosh32, "atanh": opAtanh32,
}

var mathBinary = map[string]op{
	"fmin": opFMin32, "fmax": opFMax32, "minnum": opFMin32, "maxnum": opFMax32, "fmod": opFMod32, "remainder": opRemainder32, "fdim": opFDim32,
	"hypot": opHypot32, "atan2": opAtan232, "pow": opPow32, "powr": opPowr32, "copysign": opCopySign32, "nextafter": opNextAfter32,
}

// mathIntrinsic lowers air.<stem>.<types> and the llvm.* functions of the same meaning.
func (lw *lowerer) mathIntrinsic(c *callCtx, stem string, suffix []string) ([]*val, bool) {
	stem = strings.TrimPrefix(strings.TrimPrefix(stem, "fast_"), "precise_")
	if c.ret.Kind == air.VoidKind {
		return nil, false
	}
	t := c.ret.Scalar()
	if t.IsFloat() {
		if r, ok := lw.floatIntrinsic(c, stem, t); ok {
			return r, true
		}
	}
	if t.Kind == air.IntKind {
		if r, ok := lw.intIntrinsic(c, stem, suffix, t.Bits); ok {
			return r, true
		}
	}
	return lw.otherIntrinsic(c, stem, t)
}

func (lw *lowerer) floatIntrinsic(c *callCtx, stem string, t *air.Type) ([]*val, bool) {
	widen := func(v *val) *val { return lw.toArith(t, v) }
	round := func(v *val) *val { return lw.fromArith(t, v) }
	double := t.Kind == air.DoubleKind
	switch stem {
	case "fabs":
		return c.each(1, func(a []*val) *val { return lw.fabs(t, a[0]) }), true
	case "fma":
		return c.each(3, func(a []*val) *val { return lw.fma(t, a[0], a[1], a[2]) }), true
	case "fmuladd":
		// LLVM leaves the choice; here the two operations stay two.
		return c.each(3, func(a []*val) *val { return lw.arith(air.OpFAdd, t, lw.arith(air.OpFMul, t, a[0], a[1]), a[2]) }), true
	}
	if double {
		if stem == "sqrt" {
			return c.each(1, func(a []*val) *val { return lw.emit(opSqrt64, 0, a[0]) }), true
		}
		return nil, false
	}
	if o, ok := mathUnary[stem]; ok && len(c.in.Args) == 1 {
		return c.each(1, func(a []*val) *val { return round(lw.emit(o, 0, widen(a[0]))) }), true
	}
	if o, ok := mathBinary[stem]; ok && len(c.in.Args) == 2 {
		return c.each(2, func(a []*val) *val { return round(lw.emit(o, 0, widen(a[0]), widen(a[1]))) }), true
	}
	minmax := func(o op, n int) ([]*val, bool) {
		return c.each(n, func(a []*val) *val {
			r := widen(a[0])
			for _, v := range a[1:n] {
				r = lw.emit(o, 0, r, widen(v))
			}
			return round(r)
		}), true
	}
	switch stem {
	case "min", "max": // of floating-point type
		return minmax(map[string]op{"min": opFMin32, "max": opFMax32}[stem], 2)
	case "fmin3":
		return minmax(opFMin32, 3)
	case "fmax3":
		return minmax(opFMax32, 3)
	case "fmedian3", "median3":
		return c.each(3, func(a []*val) *val {
			x, y, z := widen(a[0]), widen(a[1]), widen(a[2])
			lo, hi := lw.emit(opFMin32, 0, x, y), lw.emit(opFMax32, 0, x, y)
			return round(lw.emit(opFMax32, 0, lo, lw.emit(opFMin32, 0, hi, z)))
		}), true
	case "clamp":
		return c.each(3, func(a []*val) *val {
			return round(lw.emit(opFMin32, 0, lw.emit(opFMax32, 0, widen(a[0]), widen(a[1])), widen(a[2])))
		}), true
	case "saturate":
		return c.each(1, func(a []*val) *val {
			return round(lw.emit(opFMin32, 0, lw.emit(opFMax32, 0, widen(a[0]), lw.c32(0)), lw.c32(0x3f800000)))
		}), true
	case "mix": // x + (y - x) * a
		return c.each(3, func(a []*val) *val {
			return lw.arith(air.OpFAdd, t, a[0], lw.arith(air.OpFMul, t, lw.arith(air.OpFSub, t, a[1], a[0]), a[2]))
		}), true
	case "step":
		return c.each(2, func(a []*val) *val {
			return lw.sel(lw.emit(opFOLt32, 0, widen(a[1]), widen(a[0])), lw.c32(0), lw.floatConst(t, 1))
		}), true
	case "smoothstep":
		return c.each(3, func(a []*val) *val {
			e0, e1, x := widen(a[0]), widen(a[1]), widen(a[2])
			q := lw.emit(opFDiv32, 0, lw.emit(opFSub32, 0, x, e0), lw.emit(opFSub32, 0, e1, e0))
			q = lw.emit(opFMin32, 0, lw.emit(opFMax32, 0, q, lw.c32(0)), lw.c32(0x3f800000))
			s := lw.emit(opFSub32, 0, lw.c32(0x40400000), lw.emit(opFMul32, 0, lw.c32(0x40000000), q))
			return round(lw.emit(opFMul32, 0, lw.emit(opFMul32, 0, q, q), s))
		}), true
	case "dot":
		// Products and sums in order, each rounded.
		x, y := c.arg(0), c.arg(1)
		r := lw.arith(air.OpFMul, t, x[0], y[0])
		for i := 1; i < len(x); i++ {
			r = lw.arith(air.OpFAdd, t, r, lw.arith(air.OpFMul, t, x[i], y[i]))
		}
		return []*val{r}, true
	case "sincos":
		r := c.each(1, func(a []*val) *val { return round(lw.emit(opSin32, 0, widen(a[0]))) })
		k := c.each(1, func(a []*val) *val { return round(lw.emit(opCos32, 0, widen(a[0]))) })
		lw.store(c.scalar(1), k, c.ret, 0)
		return r, true
	case "ldexp":
		return c.each(2, func(a []*val) *val { return round(lw.emit(opLdexp32, 0, widen(a[0]), lw.to32(a[1]))) }), true
	case "frexp":
		r := c.each(1, func(a []*val) *val { return round(lw.emit(opFrexpMant32, 0, widen(a[0]))) })
		e := c.each(1, func(a []*val) *val { return lw.emit(opFrexpExp32, 0, widen(a[0])) })
		et := lw.m.Int(32)
		if len(r) > 1 {
			et = lw.m.Vector(et, uint64(len(r)))
		}
		lw.store(c.scalar(1), e, et, 0)
		return r, true
	case "modf":
		whole := c.each(1, func(a []*val) *val { return round(lw.emit(opTruncF32, 0, widen(a[0]))) })
		x := c.arg(0)
		r := make([]*val, len(x))
		for i := range x {
			d := lw.emit(opFSub32, 0, widen(x[i]), widen(whole[i]))
			// An infinity has no fraction.
			inf := lw.emit(opFOEq32, 0, widen(x[i]), widen(whole[i]))
			r[i] = round(lw.emit(opCopySign32, 0, lw.sel(inf, lw.c32(0), d), widen(x[i])))
		}
		lw.store(c.scalar(1), whole, c.ret, 0)
		return r, true
	}
	return nil, false
}

func (lw *lowerer) floatConst(t *air.Type, f float64) *val {
	kind := lw.elementKind(t, nil) >> 8
	return lw.constant(fromFloat(kind, f), t.Kind == air.DoubleKind)
}

// fma rounds once. For half the exact sum fits double precision well enough: the product has 22 bits, and rounding to odd
// on the way keeps the last rounding right.
func (lw *lowerer) fma(t *air.Type, a, b, c *val) *val {
	switch t.Kind {
	case air.DoubleKind:
		return lw.emit(opFMA64, 0, a, b, c)
	case air.FloatKind:
		return lw.emit(opFMA32, 0, a, b, c)
	}
	d := func(v *val) *val { return lw.emit(opF32ToF64, 0, lw.toArith(t, v)) }
	r := lw.emit(opFMA64, 0, d(a), d(b), d(c))
	if t.Kind == air.HalfKind {
		return lw.emit(opF64ToHalf, 0, r)
	}
	return lw.emit(opF64ToBFloat, 0, r)
}

// signedName tells whether an intrinsic works on signed integers: by LLVM's prefix or Metal's suffix.
func signedName(stem string, suffix []string) bool {
	return len(suffix) > 0 && suffix[0] == "s" || strings.HasPrefix(stem, "s") && (strings.HasPrefix(stem, "smin") || strings.HasPrefix(stem, "smax"))
}

func (lw *lowerer) intIntrinsic(c *callCtx, stem string, suffix []string, w int) ([]*val, bool) {
	wide := w > 32
	sg := signedName(stem, suffix)
	width := uint64(w)
	ext := func(v *val) *val {
		if sg {
			return lw.signed(v, w)
		}
		return v
	}
	minmax := func(isMin bool, a, b *val) *val {
		o := pick([2]op{opUMax32, opUMax64}, wide)
		switch {
		case isMin && sg:
			o = pick([2]op{opSMin32, opSMin64}, wide)
		case isMin:
			o = pick([2]op{opUMin32, opUMin64}, wide)
		case sg:
			o = pick([2]op{opSMax32, opSMax64}, wide)
		}
		return lw.mask(lw.emit(o, 0, ext(a), ext(b)), w)
	}
	// through64 computes in 64 bits and comes back.
	through64 := func(o op, n int) ([]*val, bool) {
		return c.each(n, func(a []*val) *val {
			x := make([]*val, n)
			for i := range x {
				x[i] = lw.to64(a[i])
			}
			return lw.intCast(lw.emit(o, width, x...), w)
		}), true
	}
	count := func(o op) ([]*val, bool) { return c.each(1, func(a []*val) *val { return lw.emit(o, 0, a[0]) }), true }
	switch stem {
	case "min", "smin", "umin":
		return c.each(2, func(a []*val) *val { return minmax(true, a[0], a[1]) }), true
	case "max", "smax", "umax":
		return c.each(2, func(a []*val) *val { return minmax(false, a[0], a[1]) }), true
	case "min3":
		return c.each(3, func(a []*val) *val { return minmax(true, minmax(true, a[0], a[1]), a[2]) }), true
	case "max3":
		return c.each(3, func(a []*val) *val { return minmax(false, minmax(false, a[0], a[1]), a[2]) }), true
	case "median3":
		return c.each(3, func(a []*val) *val {
			return minmax(false, minmax(true, a[0], a[1]), minmax(true, minmax(false, a[0], a[1]), a[2]))
		}), true
	case "clamp":
		return c.each(3, func(a []*val) *val { return minmax(true, minmax(false, a[0], a[1]), a[2]) }), true
	case "abs":
		return c.each(1, func(a []*val) *val {
			if len(suffix) > 0 && suffix[0] == "u" {
				return a[0]
			}
			sg = true
			x := ext(a[0])
			return lw.mask(lw.emit(pick([2]op{opSMax32, opSMax64}, wide), 0, x, lw.emit(pick([2]op{opSub32, opSub64}, wide), 0, lw.constant(0, wide), x)), w)
		}), true
	case "absdiff", "abs_diff":
		return c.each(2, func(a []*val) *val {
			return lw.intArith(air.OpSub, w, minmax(false, a[0], a[1]), minmax(true, a[0], a[1]))
		}), true
	case "popcount", "ctpop":
		return count(pick([2]op{opPopCount32, opPopCount64}, wide))
	case "clz", "ctlz":
		container := 32
		if wide {
			container = 64
		}
		return c.each(1, func(a []*val) *val {
			v := lw.emit(pick([2]op{opClz32, opClz64}, wide), 0, a[0])
			return lw.emit(pick([2]op{opSub32, opSub64}, wide), 0, v, lw.constant(uint64(container-w), wide))
		}), true
	case "ctz", "cttz":
		return c.each(1, func(a []*val) *val {
			v := a[0]
			if w != 32 && w != 64 { // a bit above the value stops the count at its width
				v = lw.emit(pick([2]op{opOr32, opOr64}, wide), 0, v, lw.constant(1<<width, wide))
			}
			return lw.emit(pick([2]op{opCtz32, opCtz64}, wide), 0, v)
		}), true
	case "reverse_bits", "bitreverse", "bswap":
		o := pick([2]op{opRev32, opRev64}, wide)
		if stem == "bswap" {
			o = pick([2]op{opBswap32, opBswap64}, wide)
		}
		container := 32
		if wide {
			container = 64
		}
		return c.each(1, func(a []*val) *val {
			return lw.emit(pick([2]op{opLShr32, opLShr64}, wide), 0, lw.emit(o, 0, a[0]), lw.constant(uint64(container-w), wide))
		}), true
	case "mul_hi", "mulhi":
		return c.each(2, func(a []*val) *val { return lw.mulHi(a[0], a[1], w, sg) }), true
	case "mad_hi":
		return c.each(3, func(a []*val) *val { return lw.intArith(air.OpAdd, w, lw.mulHi(a[0], a[1], w, sg), a[2]) }), true
	case "mul24", "mad24":
		n := len(c.in.Args)
		return c.each(n, func(a []*val) *val {
			x, y := lw.emit(opAnd32, 0, a[0], lw.c32(1<<24-1)), lw.emit(opAnd32, 0, a[1], lw.c32(1<<24-1))
			if sg {
				x, y = lw.emit(opSExt32, 24, x), lw.emit(opSExt32, 24, y)
			}
			r := lw.emit(opMul32, 0, x, y)
			if n > 2 {
				r = lw.emit(opAdd32, 0, r, a[2])
			}
			return r
		}), w == 32
	case "mad_sat":
		if sg {
			return through64(opSMadSat, 3)
		}
		return through64(opUMadSat, 3)
	case "add_sat", "addsat":
		if sg {
			return through64(opSAddSat, 2)
		}
		return through64(opUAddSat, 2)
	case "sub_sat", "subsat":
		if sg {
			return through64(opSSubSat, 2)
		}
		return c.each(2, func(a []*val) *val { return lw.emit(pick([2]op{opUSubSat32, opUSubSat64}, wide), 0, a[0], a[1]) }), true
	case "uadd":
		return through64(opUAddSat, 2)
	case "sadd":
		return through64(opSAddSat, 2)
	case "ssub":
		return through64(opSSubSat, 2)
	case "usub":
		return c.each(2, func(a []*val) *val { return lw.emit(pick([2]op{opUSubSat32, opUSubSat64}, wide), 0, a[0], a[1]) }), true
	case "hadd", "rhadd":
		return c.each(2, func(a []*val) *val { return lw.halfAdd(ext(a[0]), ext(a[1]), w, sg, stem == "rhadd") }), true
	case "rotate":
		return c.each(2, func(a []*val) *val { return lw.funnel(opFShl, a[0], a[0], a[1], w) }), true
	case "fshl":
		return c.each(3, func(a []*val) *val { return lw.funnel(opFShl, a[0], a[1], a[2], w) }), true
	case "fshr":
		return c.each(3, func(a []*val) *val { return lw.funnel(opFShr, a[0], a[1], a[2], w) }), true
	case "extract_bits":
		o := opUExtractBits
		if sg {
			o = opSExtractBits
		}
		return c.each(3, func(a []*val) *val {
			return lw.intCast(lw.emit(op(o), width, lw.to64(a[0]), lw.to32(a[1]), lw.to32(a[2])), w)
		}), true
	case "insert_bits": // base, insert, offset, bits
		return c.each(4, func(a []*val) *val {
			m := lw.intCast(lw.emit(opBitsMask, width, lw.to32(a[2]), lw.to32(a[3])), w)
			and := pick([2]op{opAnd32, opAnd64}, wide)
			ins := lw.intArith(air.OpShl, w, a[1], lw.intCast(a[2], w))
			not := lw.mask(lw.emit(pick([2]op{opXor32, opXor64}, wide), 0, m, lw.mask(lw.constant(widthMask(map[bool]uint64{false: 32, true: 64}[wide]), wide), w)), w)
			return lw.emit(pick([2]op{opOr32, opOr64}, wide), 0, lw.emit(and, 0, a[0], not), lw.emit(and, 0, ins, m))
		}), true
	}
	return nil, false
}

func (lw *lowerer) mulHi(a, b *val, w int, sg bool) *val {
	switch {
	case w == 32 && sg:
		return lw.emit(opSMulHi32, 0, a, b)
	case w == 32:
		return lw.emit(opUMulHi32, 0, a, b)
	case w == 64 && sg:
		return lw.emit(opSMulHi64, 0, a, b)
	case w == 64:
		return lw.emit(opUMulHi64, 0, a, b)
	case w < 32:
		if sg {
			a, b = lw.signed(a, w), lw.signed(b, w)
		}
		return lw.mask(lw.emit(opAShr32, 0, lw.emit(opMul32, 0, a, b), lw.c32(uint32(w))), w)
	}
	lw.fail("mul_hi of %d bits is not supported", w)
	return nil
}

// halfAdd is (a + b) / 2 without overflow, rounded down or up.
func (lw *lowerer) halfAdd(a, b *val, w int, sg, up bool) *val {
	wide := a.wide
	k := func(o32, o64 op, x, y *val) *val { return lw.emit(pick([2]op{o32, o64}, wide), 0, x, y) }
	shr := func(x *val) *val {
		if sg {
			return k(opAShr32, opAShr64, x, lw.constant(1, wide))
		}
		return k(opLShr32, opLShr64, x, lw.constant(1, wide))
	}
	half := shr(k(opXor32, opXor64, a, b))
	if up {
		return lw.mask(k(opSub32, opSub64, k(opOr32, opOr64, a, b), half), w)
	}
	return lw.mask(k(opAdd32, opAdd64, k(opAnd32, opAnd64, a, b), half), w)
}

func (lw *lowerer) funnel(o op, a, b, s *val, w int) *val {
	if o == opFShl && w == 32 {
		return lw.emit(opFShl32, 0, a, b, s)
	}
	return lw.intCast(lw.emit(o, uint64(w), lw.to64(a), lw.to64(b), lw.to64(s)), w)
}

// otherIntrinsic lowers what yields neither the type of its arguments nor a fixed one.
func (lw *lowerer) otherIntrinsic(c *callCtx, stem string, t *air.Type) ([]*val, bool) {
	if len(c.in.Args) == 0 {
		return nil, false
	}
	from := c.argType(0).Scalar()
	if stem == "all" || stem == "any" {
		r := c.arg(0)[0]
		for _, v := range c.arg(0)[1:] {
			if stem == "all" {
				r = lw.emit(opAnd32, 0, r, v)
			} else {
				r = lw.emit(opOr32, 0, r, v)
			}
		}
		return []*val{r}, true
	}
	if !from.IsFloat() || from.Kind == air.DoubleKind {
		return nil, false
	}
	compare := func(o op, want uint32) ([]*val, bool) {
		return c.each(1, func(a []*val) *val {
			x := lw.emit(opFAbs32, 0, lw.toArith(from, a[0]))
			return lw.boolResult(lw.emit(o, 0, x, lw.c32(want)), t)
		}), true
	}
	const inf = 0x7f800000
	switch stem {
	case "isnan":
		return c.each(1, func(a []*val) *val { x := lw.toArith(from, a[0]); return lw.boolResult(lw.emit(opFUno32, 0, x, x), t) }), true
	case "isinf":
		return compare(opEq32, inf)
	case "isfinite":
		return compare(opULt32, inf)
	case "signbit":
		return c.each(1, func(a []*val) *val {
			return lw.boolResult(lw.emit(opLShr32, 0, lw.toArith(from, a[0]), lw.c32(31)), t)
		}), true
	case "ilogb":
		return c.each(1, func(a []*val) *val { return lw.emit(opIlogb32, 0, lw.toArith(from, a[0])) }), true
	}
	return nil, false
}

func (lw *lowerer) boolResult(v *val, t *air.Type) *val { return lw.intCast(v, t.ScalarBits()) }
