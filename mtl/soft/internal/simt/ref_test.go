package simt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/runtime/half"
)

// A ref is a naive interpreter: one thread at a time, values as big integers and float32, no sharing of code with the
// executor. It knows integer and floating-point arithmetic, vectors, control flow, private variables and buffers.
type ref struct{ steps int }

type refMem struct {
	bytes []byte
}

// A refPtr is an address.
type refPtr struct {
	mem *refMem
	off int64
}

// The values are *big.Int (integers, unsigned), float32 (also for half and bfloat), refPtr, []any.

func (r *ref) run(f *air.Function, env map[air.Value]any) error {
	vals := map[air.Value]any{}
	for k, v := range env {
		vals[k] = v
	}
	var prev *air.Block
	b := f.Blocks[0]
	for {
		phis := map[air.Value]any{}
		for _, in := range b.Instrs {
			if in.Op != air.OpPhi {
				break
			}
			for i, p := range in.Blocks {
				if p == prev {
					phis[in] = r.val(vals, in.Args[i])
				}
			}
		}
		for k, v := range phis {
			vals[k] = v
		}
		var next *air.Block
		for _, in := range b.Instrs {
			r.steps++
			if r.steps > 1e6 {
				return fmt.Errorf("too many steps")
			}
			switch in.Op {
			case air.OpPhi:
			case air.OpRet:
				return nil
			case air.OpBr:
				next = in.Blocks[0]
				if len(in.Args) > 0 && r.int(vals, in.Args[0]).Sign() == 0 {
					next = in.Blocks[1]
				}
			case air.OpSwitch:
				next = in.Blocks[0]
				for i := 1; i < len(in.Args); i++ {
					if r.int(vals, in.Args[i]).Cmp(r.int(vals, in.Args[0])) == 0 {
						next = in.Blocks[i]
						break
					}
				}
			default:
				vals[in] = r.eval(vals, in)
			}
		}
		prev, b = b, next
	}
}

func (r *ref) int(vals map[air.Value]any, v air.Value) *big.Int { return r.val(vals, v).(*big.Int) }

func (r *ref) val(vals map[air.Value]any, v air.Value) any {
	c, ok := v.(*air.Const)
	if !ok {
		x, ok := vals[v]
		if !ok {
			panic(fmt.Sprintf("no value for %v", v))
		}
		return x
	}
	return r.konst(c)
}

func (r *ref) konst(c *air.Const) any {
	if c.Ty.Kind == air.VectorKind {
		var out []any
		for i := 0; i < c.Ty.Lanes(); i++ {
			if c.Kind == air.AggregateConst {
				out = append(out, r.konst(c.Elems[i].(*air.Const)))
			} else {
				out = append(out, r.konst(&air.Const{Kind: air.NullConst, Ty: c.Ty.Elem}))
			}
		}
		return out
	}
	switch {
	case c.Ty.Kind == air.FloatKind:
		return math.Float32frombits(uint32(c.Bits))
	case c.Ty.IsFloat():
		return fromBits16(c.Ty, uint16(c.Bits))
	}
	return new(big.Int).SetUint64(c.Bits)
}

func fromBits16(t *air.Type, b uint16) float32 {
	if t.Kind == air.HalfKind {
		return half.Float16(b).Float32()
	}
	return half.BFloat16(b).Float32()
}

func round16(t *air.Type, f float32) float32 {
	switch t.Kind {
	case air.HalfKind:
		return half.Float16FromFloat32(f).Float32()
	case air.BFloatKind:
		return half.BFloat16FromFloat32(f).Float32()
	}
	return f
}

// wrap keeps the low bits.
func wrap(x *big.Int, bits int) *big.Int {
	m := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	return new(big.Int).Mod(x, m)
}

// sgn reads an unsigned value as two's complement.
func sgn(x *big.Int, bits int) *big.Int {
	if x.Bit(bits-1) == 1 {
		return new(big.Int).Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	return x
}

func (r *ref) eval(vals map[air.Value]any, in *air.Instr) any {
	arg := func(i int) any { return r.val(vals, in.Args[i]) }
	switch in.Op {
	case air.OpAlloca:
		return refPtr{&refMem{make([]byte, air.Size(in.SourceType))}, 0}
	case air.OpGetElementPtr:
		p := arg(0).(refPtr)
		i := sgn(arg(1).(*big.Int), in.Args[1].Type().Bits).Int64()
		return refPtr{p.mem, p.off + i*int64(air.Size(in.SourceType))}
	case air.OpLoad:
		p := arg(0).(refPtr)
		return readRef(p.mem.bytes[p.off:], in.Ty)
	case air.OpStore:
		p := arg(1).(refPtr)
		writeRef(p.mem.bytes[p.off:], in.Args[0].Type(), arg(0))
		return nil
	case air.OpSelect:
		if arg(0).(*big.Int).Sign() != 0 {
			return arg(1)
		}
		return arg(2)
	case air.OpExtractElement:
		return arg(0).([]any)[arg(1).(*big.Int).Int64()]
	case air.OpInsertElement:
		out := append([]any(nil), arg(0).([]any)...)
		out[arg(2).(*big.Int).Int64()] = arg(1)
		return out
	case air.OpShuffleVector:
		all := append(append([]any(nil), arg(0).([]any)...), arg(1).([]any)...)
		var out []any
		for _, i := range arg(2).([]any) {
			out = append(out, all[i.(*big.Int).Int64()])
		}
		return out
	case air.OpFreeze:
		return arg(0)
	}
	t := in.Args[0].Type()
	if t.Kind == air.VectorKind {
		var out []any
		for i := range arg(0).([]any) {
			var xs []any
			for k := range in.Args {
				xs = append(xs, arg(k).([]any)[i])
			}
			out = append(out, scalarRef(in, t.Elem, in.Ty.Scalar(), xs))
		}
		return out
	}
	var xs []any
	for k := range in.Args {
		xs = append(xs, arg(k))
	}
	return scalarRef(in, t, in.Ty, xs)
}

func scalarRef(in *air.Instr, t, to *air.Type, xs []any) any {
	if f, ok := xs[0].(float32); ok {
		return floatRef(in, t, to, f, xs)
	}
	a := xs[0].(*big.Int)
	w := t.Bits
	var b *big.Int
	if len(xs) > 1 {
		b = xs[1].(*big.Int)
	}
	n := new(big.Int)
	boolean := func(ok bool) *big.Int {
		if ok {
			return big.NewInt(1)
		}
		return big.NewInt(0)
	}
	switch in.Op {
	case air.OpAdd:
		return wrap(n.Add(a, b), w)
	case air.OpSub:
		return wrap(n.Sub(a, b), w)
	case air.OpMul:
		return wrap(n.Mul(a, b), w)
	case air.OpUDiv:
		if b.Sign() == 0 {
			return n
		}
		return n.Quo(a, b)
	case air.OpURem:
		if b.Sign() == 0 {
			return a
		}
		return n.Rem(a, b)
	case air.OpSDiv:
		if b.Sign() == 0 {
			return n
		}
		return wrap(n.Quo(sgn(a, w), sgn(b, w)), w)
	case air.OpSRem:
		if b.Sign() == 0 {
			return a
		}
		return wrap(n.Rem(sgn(a, w), sgn(b, w)), w)
	case air.OpShl:
		return wrap(n.Lsh(a, uint(b.Uint64()%uint64(w))), w)
	case air.OpLShr:
		return n.Rsh(a, uint(b.Uint64()%uint64(w)))
	case air.OpAShr:
		return wrap(n.Rsh(sgn(a, w), uint(b.Uint64()%uint64(w))), w)
	case air.OpAnd:
		return n.And(a, b)
	case air.OpOr:
		return n.Or(a, b)
	case air.OpXor:
		return n.Xor(a, b)
	case air.OpTrunc:
		return wrap(a, to.Bits)
	case air.OpZExt:
		return a
	case air.OpSExt:
		return wrap(sgn(a, w), to.Bits)
	case air.OpUIToFP, air.OpSIToFP:
		x := a
		if in.Op == air.OpSIToFP {
			x = sgn(a, w)
		}
		prec := map[air.TypeKind]uint{air.FloatKind: 24, air.HalfKind: 11, air.BFloatKind: 8}[to.Kind]
		f, _ := new(big.Float).SetPrec(prec).SetMode(big.ToNearestEven).SetInt(x).Float32()
		return round16(to, f)
	case air.OpBitCast:
		if to.Kind == air.FloatKind {
			return math.Float32frombits(uint32(a.Uint64()))
		}
		return a
	case air.OpICmp:
		x, y := a, b
		if in.Pred >= air.ICmpSGT {
			x, y = sgn(a, w), sgn(b, w)
		}
		switch c := x.Cmp(y); in.Pred {
		case air.ICmpEQ:
			return boolean(c == 0)
		case air.ICmpNE:
			return boolean(c != 0)
		case air.ICmpUGT, air.ICmpSGT:
			return boolean(c > 0)
		case air.ICmpUGE, air.ICmpSGE:
			return boolean(c >= 0)
		case air.ICmpULT, air.ICmpSLT:
			return boolean(c < 0)
		default:
			return boolean(c <= 0)
		}
	}
	panic(fmt.Sprintf("the reference interpreter has no integer op %d", in.Op))
}

func floatRef(in *air.Instr, t, to *air.Type, a float32, xs []any) any {
	var b float32
	if len(xs) > 1 {
		b = xs[1].(float32)
	}
	switch in.Op {
	case air.OpFAdd:
		return round16(t, a+b)
	case air.OpFSub:
		return round16(t, a-b)
	case air.OpFMul:
		return round16(t, a*b)
	case air.OpFDiv:
		return round16(t, a/b)
	case air.OpFNeg:
		return -a
	case air.OpFPTrunc:
		return round16(to, a)
	case air.OpFPExt:
		return a
	case air.OpBitCast:
		return new(big.Int).SetUint64(uint64(math.Float32bits(a)))
	case air.OpFPToSI, air.OpFPToUI:
		lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(to.Bits))
		if in.Op == air.OpFPToSI {
			hi.Rsh(hi, 1)
			lo.Neg(hi)
		}
		hi.Sub(hi, big.NewInt(1))
		if a != a {
			return new(big.Int)
		}
		if math.IsInf(float64(a), 0) {
			if a > 0 {
				return hi
			}
			return wrap(lo, to.Bits)
		}
		x, _ := big.NewFloat(float64(a)).Int(nil)
		if x.Cmp(lo) < 0 {
			x = lo
		}
		if x.Cmp(hi) > 0 {
			x = hi
		}
		return wrap(x, to.Bits)
	case air.OpFCmp:
		var ok bool
		p := in.Pred
		un := a != a || b != b
		switch {
		case un:
			ok = p >= air.FCmpUNO
		case a == b:
			ok = p&1 != 0
		case a > b:
			ok = p&2 != 0
		default:
			ok = p&4 != 0
		}
		if ok {
			return big.NewInt(1)
		}
		return big.NewInt(0)
	}
	panic(fmt.Sprintf("the reference interpreter has no float op %d", in.Op))
}

func readRef(b []byte, t *air.Type) any {
	if t.Kind == air.VectorKind {
		var out []any
		for i := 0; i < t.Lanes(); i++ {
			out = append(out, readRef(b[i*t.ScalarBits()/8:], t.Elem))
		}
		return out
	}
	var w [8]byte
	copy(w[:], b[:air.StoreSize(t)])
	v := binary.LittleEndian.Uint64(w[:])
	switch {
	case t.Kind == air.FloatKind:
		return math.Float32frombits(uint32(v))
	case t.IsFloat():
		return fromBits16(t, uint16(v))
	}
	return wrap(new(big.Int).SetUint64(v), t.Bits)
}

func writeRef(b []byte, t *air.Type, v any) {
	if t.Kind == air.VectorKind {
		for i, x := range v.([]any) {
			writeRef(b[i*t.ScalarBits()/8:], t.Elem, x)
		}
		return
	}
	var bits uint64
	switch x := v.(type) {
	case *big.Int:
		bits = x.Uint64()
	case float32:
		bits = uint64(math.Float32bits(x))
		switch t.Kind {
		case air.HalfKind:
			bits = uint64(half.Float16FromFloat32(x))
		case air.BFloatKind:
			bits = uint64(half.BFloat16FromFloat32(x))
		}
	}
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], bits)
	copy(b[:air.StoreSize(t)], w[:])
}
