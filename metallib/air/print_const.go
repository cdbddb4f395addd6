package air

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// constant prints a constant without its type.
func (p *printer) constant(c *Const) {
	switch c.Kind {
	case NullConst:
		p.add(zeroName(c.Ty))
	case UndefConst:
		p.add("undef")
	case PoisonConst:
		p.add("poison")
	case TokenNoneConst:
		p.add("none")
	case IntConst:
		p.add(intText(c))
	case FloatConst:
		p.add(floatText(c.Ty, c.Bits, c.Words))
	case StringConst:
		p.add("c" + quote(string(c.Str)))
	case AggregateConst, DataConst:
		p.aggregate(c)
	case ExprConst:
		p.expression(c)
	case BlockAddressConst:
		f, _ := c.Elems[0].(*Function)
		b, _ := c.Elems[1].(*Block)
		if f == nil || b == nil {
			p.add("blockaddress(<badref>)")
			return
		}
		name := "%" + quoteName(b.Name)
		if b.Name == "" {
			name = fmt.Sprintf("%%%d", functionSlots(f)[b])
		}
		p.print("blockaddress(%s, %s)", p.valueName(f), name)
	case OtherConst:
		name := "dso_local_equivalent "
		if c.Bits == cstNoCFI {
			name = "no_cfi "
		}
		p.add(name)
		p.value(c.Elems[0])
	}
}

// zeroName is how the zero of a type is written.
func zeroName(t *Type) string {
	switch t.Kind {
	case IntKind:
		if t.Bits == 1 {
			return "false"
		}
		return "0"
	case HalfKind, BFloatKind, FloatKind, DoubleKind:
		return floatText(t, 0, nil)
	case PointerKind:
		return "null"
	case OtherKind:
		switch t.Name {
		case "x86_fp80":
			return "0xK00000000000000000000"
		case "fp128":
			return "0xL00000000000000000000000000000000"
		case "ppc_fp128":
			return "0xM00000000000000000000000000000000"
		}
	}
	return "zeroinitializer"
}

func intText(c *Const) string {
	switch n := c.Ty.Bits; {
	case n == 1:
		return strconv.FormatBool(c.Bits&1 != 0)
	case n <= 64:
		return strconv.FormatInt(int64(signExtend(c.Bits, n)), 10)
	default:
		v := new(big.Int)
		for i := len(c.Words) - 1; i >= 0; i-- {
			v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(c.Words[i]))
		}
		if v.Bit(n-1) == 1 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(n)))
		}
		return v.String()
	}
}

// floatText writes a number as LLVM does: in decimal if that is exact, else its bits (those of a float as a double's).
func floatText(t *Type, bits uint64, words []uint64) string {
	switch t.Kind {
	case HalfKind:
		return fmt.Sprintf("0xH%04X", bits)
	case BFloatKind:
		return fmt.Sprintf("0xR%04X", bits)
	case FloatKind:
		bits = floatAsDouble(uint32(bits))
	case DoubleKind:
	default:
		switch t.Name {
		case "x86_fp80":
			if len(words) == 2 {
				// Bitcode has the exponent and the high part of the mantissa first.
				return fmt.Sprintf("0xK%04X%016X", words[0]>>48, words[0]<<16|words[1]&0xFFFF)
			}
		case "fp128":
			if len(words) == 2 {
				return fmt.Sprintf("0xL%016X%016X", words[0], words[1])
			}
		}
		return fmt.Sprintf("0x%016X", bits)
	}
	v := math.Float64frombits(bits)
	if text := strconv.FormatFloat(v, 'e', 6, 64); !math.IsInf(v, 0) && !math.IsNaN(v) {
		if w, err := strconv.ParseFloat(text, 64); err == nil && math.Float64bits(w) == bits {
			return text
		}
	}
	return fmt.Sprintf("0x%016X", bits)
}

// floatAsDouble widens a float's bits to a double's. NaNs keep their bits, which a conversion by the processor would not
// promise.
func floatAsDouble(bits uint32) uint64 {
	const exponent, mantissa = 0xFF, 1<<23 - 1
	if bits>>23&exponent == exponent {
		return uint64(bits>>31)<<63 | 0x7FF<<52 | uint64(bits&mantissa)<<29
	}
	return math.Float64bits(float64(math.Float32frombits(bits)))
}

func (p *printer) aggregate(c *Const) {
	open, end := "[", "]"
	switch {
	case c.Ty.Kind == VectorKind:
		open, end = "<", ">"
	case c.Ty.Kind == StructKind && c.Ty.Packed:
		open, end = "<{ ", " }>"
	case c.Ty.Kind == StructKind:
		open, end = "{ ", " }"
	}
	p.add(open)
	if c.Kind == DataConst {
		p.list(len(c.Data), func(i int) {
			e := &Const{Kind: IntConst, Ty: c.Ty.Elem, Bits: c.Data[i]}
			if c.Ty.Elem.IsFloat() {
				e.Kind = FloatConst
			}
			p.typed(e)
		})
	} else {
		p.operands(c.Elems)
	}
	p.add(end)
}

func (p *printer) expression(c *Const) {
	p.add(c.Op.String() + " ")
	p.flags(c.Flags)
	if c.Op == OpICmp || c.Op == OpFCmp {
		p.add(c.Pred.String() + " ")
	}
	p.add("(")
	if c.Op == OpGetElementPtr {
		p.print("%s, ", c.SourceType)
	}
	p.list(len(c.Elems), func(i int) {
		if len(c.InRange) == 1 && uint64(i) == c.InRange[0]+1 {
			p.add("inrange ")
		}
		p.typed(c.Elems[i])
	})
	if c.Mask != nil {
		p.add(", ")
		p.typed(c.Mask)
	}
	if c.Op >= OpTrunc && c.Op <= OpAddrSpaceCast {
		p.print(" to %s", c.Ty)
	}
	p.add(")")
}
