package simt

import (
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// airConvert lowers air.convert.<k>.<dst>.<k>.<src>[.<rounding>][.sat], k one of f, s, u.
func (lw *lowerer) airConvert(c *callCtx, parts []string) ([]*val, bool) {
	if len(parts) < 4 || len(c.in.Args) < 1 {
		return nil, false
	}
	dir := uint64(0)
	for _, p := range parts[4:] {
		switch p {
		case "rtz":
			dir = roundZero
		case "rtp":
			dir = roundUp
		case "rtn":
			dir = roundDown
		case "rte", "sat":
		default:
			return nil, false
		}
	}
	sat := strings.Contains(c.name, ".sat")
	dk, sk := parts[0], parts[2]
	to, from := c.ret.Scalar(), c.argType(0).Scalar()
	return c.each(1, func(a []*val) *val {
		v := a[0]
		switch {
		case dk == "f" && sk == "f":
			if dir != 0 {
				return lw.roundTo(to, lw.toDouble(from, v), dir)
			}
			return lw.floatCast(from, to, v)
		case dk == "f":
			if dir != 0 {
				x := lw.signedIf(v, from.Bits, sk == "s")
				if from.Bits > 32 { // rounded to odd on the way, so that the direction decides alone
					return lw.roundTo(to, lw.emit(pick([2]op{opU64ToF64Odd, opS64ToF64Odd}, sk == "s"), 0, x), dir)
				}
				return lw.roundTo(to, lw.intToDouble(x, sk == "s"), dir)
			}
			return lw.intToFloat(v, from.Bits, sk == "s", to)
		case sk == "f":
			if to.Bits == 1 { // a truth value
				x := lw.toArith(from, v)
				return lw.emit(pick([2]op{opFUNe32, opFUNe64}, x.wide), 0, x, lw.constant(0, x.wide))
			}
			v = lw.toArith(from, v)
			k := from
			if from.ScalarBits() == 16 {
				k = lw.m.Float()
			}
			if dir > roundZero {
				v = lw.wholeTo(k, v, dir)
			} else if len(parts) > 4 && parts[4] == "rte" && k.Kind == air.FloatKind {
				v = lw.emit(opRint32, 0, v)
			}
			return lw.floatToInt(k, v, to.Bits, dk == "s")
		}
		if to.Bits == 1 {
			return lw.emit(pick([2]op{opNe32, opNe64}, v.wide), 0, v, lw.constant(0, v.wide))
		}
		if sat {
			return lw.saturate(v, from.Bits, sk == "s", to.Bits, dk == "s")
		}
		if sk == "s" {
			return lw.sextCast(v, from.Bits, to.Bits)
		}
		return lw.intCast(v, to.Bits)
	}), true
}

func (lw *lowerer) signedIf(v *val, bits int, signed bool) *val {
	if signed {
		return lw.signed(v, bits)
	}
	return v
}

func (lw *lowerer) toDouble(t *air.Type, v *val) *val {
	if t.Kind == air.DoubleKind {
		return v
	}
	return lw.emit(opF32ToF64, 0, lw.toArith(t, v))
}

func (lw *lowerer) roundTo(t *air.Type, d *val, dir uint64) *val {
	switch t.Kind {
	case air.HalfKind:
		return lw.emit(opF64ToHalfDir, dir, d)
	case air.BFloatKind:
		return lw.emit(opF64ToBFloatDir, dir, d)
	case air.FloatKind:
		return lw.emit(opF64ToF32Dir, dir, d)
	}
	return d
}

func (lw *lowerer) wholeTo(t *air.Type, v *val, dir uint64) *val {
	if t.Kind != air.FloatKind {
		lw.fail("a directed conversion of %s to an integer is not supported", t)
	}
	if dir == roundUp {
		return lw.emit(opCeil32, 0, v)
	}
	return lw.emit(opFloor32, 0, v)
}

// saturate converts between integers, keeping values out of range at the nearest end.
func (lw *lowerer) saturate(v *val, fb int, fs bool, tb int, ts bool) *val {
	lo, hi := int64(0), widthMask(uint64(tb))
	if ts {
		hi >>= 1
		lo = -int64(hi) - 1
	}
	v64 := lw.to64(v)
	if fs {
		v64 = lw.sextCast(v, fb, 64)
		v64 = lw.emit(opSMax64, 0, v64, lw.c64(uint64(lo)))
		if hi>>63 == 0 {
			v64 = lw.emit(opSMin64, 0, v64, lw.c64(hi))
		}
	} else {
		v64 = lw.emit(opUMin64, 0, v64, lw.c64(hi))
	}
	return lw.intCast(v64, tb)
}
