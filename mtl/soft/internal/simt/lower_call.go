package simt

import (
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// call lowers a call: functions with a body are inlined, intrinsics are looked up by name.
func (lw *lowerer) call(f *frame, in *air.Instr) []*val {
	fn := in.CalleeFunction()
	if fn == nil {
		if a, ok := in.Callee.(*air.Alias); ok {
			fn, _ = a.Aliasee.(*air.Function)
		}
		if c, ok := in.Callee.(*air.Const); ok && c.Kind == air.ExprConst && len(c.Elems) == 1 {
			fn, _ = c.Elems[0].(*air.Function)
		}
	}
	if fn == nil {
		if _, ok := in.Callee.(*air.InlineAsm); ok {
			lw.fail("inline assembly is not supported")
		}
		lw.fail("a call through a pointer is not supported")
	}
	if !fn.Declaration() {
		args := make([][]*val, len(in.Args))
		for i, a := range in.Args {
			args[i] = lw.value(f, a)
		}
		saved := lw.at
		r := lw.inline(fn, args)
		lw.at = saved
		return r
	}
	c := &callCtx{lw: lw, f: f, in: in, name: fn.Name, ret: in.Ty}
	if r, ok := lw.intrinsic(c); ok {
		return r
	}
	lw.fail("intrinsic %s is not supported", fn.Name)
	return nil
}

// A callCtx is an intrinsic call being lowered.
type callCtx struct {
	lw   *lowerer
	f    *frame
	in   *air.Instr
	name string
	ret  *air.Type
}

func (c *callCtx) arg(i int) []*val {
	if i >= len(c.in.Args) {
		c.lw.fail("%s: argument %d is missing", c.name, i)
	}
	return c.lw.value(c.f, c.in.Args[i])
}

func (c *callCtx) scalar(i int) *val {
	vs := c.arg(i)
	if len(vs) != 1 {
		c.lw.fail("%s: argument %d is not a scalar", c.name, i)
	}
	return vs[0]
}

func (c *callCtx) argType(i int) *air.Type {
	if i >= len(c.in.Args) {
		c.lw.fail("%s: argument %d is missing", c.name, i)
	}
	return c.in.Args[i].Type()
}

// each computes every element of a vector result from those of the arguments; scalar arguments serve all elements.
func (c *callCtx) each(n int, g func(a []*val) *val) []*val {
	out := make([]*val, len(c.lw.leaves(c.ret)))
	args := make([][]*val, n)
	for k := range args {
		args[k] = c.arg(k)
	}
	row := make([]*val, n)
	for i := range out {
		for k := range args {
			if len(args[k]) == 0 {
				c.lw.fail("%s: argument %d has no value", c.name, k)
			}
			row[k] = args[k][min(i, len(args[k])-1)]
		}
		out[i] = g(row)
	}
	return out
}

// intrinsic lowers what Metal and LLVM define without a body.
func (lw *lowerer) intrinsic(c *callCtx) ([]*val, bool) {
	if s, ok := strings.CutPrefix(c.name, "llvm."); ok {
		return lw.llvmIntrinsic(c, s)
	}
	s, ok := strings.CutPrefix(c.name, "air.")
	if !ok {
		return nil, false
	}
	parts := strings.Split(s, ".")
	stem := parts[0]
	switch {
	case stem == "wg" && len(parts) > 1 && parts[1] == "barrier":
		lw.add(opBarrier, false, c.barrierFlags(), &ext{effect: true})
		clear(lw.cse)
		return nil, true
	case stem == "simdgroup" && len(parts) > 1 && parts[1] == "barrier":
		lw.add(opSync, false, c.barrierFlags(), &ext{effect: true})
		return nil, true
	case stem == "atomic":
		return lw.airAtomic(c, parts[1:])
	case stem == "convert":
		return lw.airConvert(c, parts[1:])
	case strings.HasPrefix(stem, "simdgroup_matrix_8x8_"):
		return lw.matrixIntrinsic(c, strings.TrimPrefix(stem, "simdgroup_matrix_8x8_"), parts)
	case strings.HasPrefix(stem, "simdgroup_async_copy_"):
		return lw.asyncCopy(c, stem)
	case stem == "wait_simdgroup_events":
		return nil, true
	case strings.HasPrefix(stem, "simd_"):
		return lw.simdIntrinsic(c, strings.TrimPrefix(stem, "simd_"), parts[1:], false)
	case strings.HasPrefix(stem, "quad_"):
		return lw.simdIntrinsic(c, strings.TrimPrefix(stem, "quad_"), parts[1:], true)
	case stem == "get_simdgroup_size":
		return []*val{lw.c32(simdWidth)}, true
	case stem == "is_uniform":
		return []*val{lw.cross(c, execAsk, askUniform, 0, true, c.arg(0), false, 1)[0]}, true
	case stem == "is_function_constant_defined":
		return lw.constantDefined(c), true
	case stem == "normalize_function_constant_predicate":
		return c.each(1, func(a []*val) *val { return lw.emit(opNe32, 0, a[0], lw.c32(0)) }), true
	}
	return lw.mathIntrinsic(c, stem, parts[1:])
}

// barrierFlags are the memory that a barrier orders: all of it if the flags are not constant.
func (c *callCtx) barrierFlags() uint64 {
	if len(c.in.Args) > 0 {
		if f := c.scalar(0); f.isConst() {
			return f.imm & (flagDevice | flagShared)
		}
	}
	return flagDevice | flagShared
}

// constantDefined tells whether the function constant behind an address was given a value.
func (lw *lowerer) constantDefined(c *callCtx) []*val {
	p := c.scalar(0)
	if !p.isConst() {
		lw.fail("%s of an address that is not constant", c.name)
	}
	for _, fc := range lw.kernel.Constants {
		if fc.Global == nil {
			continue
		}
		if r, ok := lw.mem.globals[fc.Global]; ok && regionOf(p.imm) == r {
			_, given := lw.opt.value(fc.Index, fc.Name)
			return []*val{lw.c32(b2u(given))}
		}
	}
	return []*val{lw.c32(0)}
}

// cross adds an operation across lanes whose results have the given width.
func (lw *lowerer) cross(c *callCtx, fn func(*warp, *inst), sub, bits uint32, uniform bool, args []*val, wide bool, n int) []*val {
	x := &ext{fn: fn, sub: sub, bits: bits, uniResult: uniform, anyLane: true, n: n}
	return lw.outs(lw.add(opCross, wide, 0, x, args...), n, wide)
}

func (lw *lowerer) llvmIntrinsic(c *callCtx, s string) ([]*val, bool) {
	parts := strings.Split(s, ".")
	switch parts[0] {
	case "lifetime", "dbg", "assume", "invariant", "donothing", "experimental", "var", "annotation":
		if s == "invariant.start" || c.ret.Kind != air.VoidKind {
			vs := make([]*val, len(lw.leaves(c.ret)))
			for i := range vs {
				vs[i] = lw.constant(0, lw.leaves(c.ret)[i].wide())
			}
			return vs, true
		}
		return nil, true
	case "memcpy", "memmove":
		lw.memOp(execCopy, 0, c.scalar(0), c.scalar(1), lw.to64(c.scalar(2)))
		return nil, true
	case "memset":
		lw.memOp(execSet, memSet, c.scalar(0), c.scalar(1), lw.to64(c.scalar(2)))
		return nil, true
	case "expect":
		return c.arg(0), true
	case "trap":
		lw.cur.term, lw.cur.src = termTrap, lw.at
		lw.setBlock(lw.newBlock())
		return nil, true
	}
	return lw.mathIntrinsic(c, parts[0], parts[1:])
}

// memSet is the variant of an opMem that sets memory.
const memSet = 1

func (lw *lowerer) memOp(fn func(*warp, *inst), sub uint32, args ...*val) {
	lw.add(opMem, false, 0, &ext{fn: fn, sub: sub, effect: true}, args...)
}

// airAtomic lowers air.atomic.{global,local}.<op>[.s|.u].<type>.
func (lw *lowerer) airAtomic(c *callCtx, parts []string) ([]*val, bool) {
	if len(parts) > 0 && parts[0] == "fence" {
		lw.fenced = true
		return nil, true
	}
	if len(parts) < 2 {
		return nil, false
	}
	parts = parts[1:]
	signed := len(parts) > 1 && parts[1] == "s"
	typ := parts[len(parts)-1]
	bits := map[string]int{"i32": 32, "i64": 64, "f32": 32, "i8": 8, "i16": 16}[typ]
	if bits == 0 {
		return nil, false
	}
	float := typ == "f32"
	pick := func(u, s, f uint32) uint32 {
		switch {
		case float:
			return f
		case signed:
			return s
		}
		return u
	}
	var sub uint32
	args := []*val{c.scalar(0)}
	switch parts[0] {
	case "load":
		sub = atomLoad
	case "store":
		sub = atomStore
	case "xchg", "exchange":
		sub = atomXchg
	case "add":
		sub = pick(atomAdd, atomAdd, atomFAdd)
	case "sub":
		sub = pick(atomSub, atomSub, atomFSub)
	case "min":
		sub = pick(atomUMin, atomSMin, atomFMin)
	case "max":
		sub = pick(atomUMax, atomSMax, atomFMax)
	case "and":
		sub = atomAnd
	case "or":
		sub = atomOr
	case "xor":
		sub = atomXor
	case "cmpxchg":
		return lw.airCmpXchg(c, bits), true
	default:
		return nil, false
	}
	if sub != atomLoad {
		args = append(args, c.scalar(1))
	}
	r := lw.atomic(sub, bits, args)
	if c.ret.Kind == air.VoidKind {
		return nil, true
	}
	return []*val{r}, true
}

// airCmpXchg: the expected value is read through a pointer; on failure the pointer receives the old value, which is also
// the result.
func (lw *lowerer) airCmpXchg(c *callCtx, bits int) []*val {
	t := lw.m.Int(bits)
	want := lw.load(c.scalar(1), t, 0)[0]
	old := lw.atomic(atomCmpXchg, bits, []*val{c.scalar(0), c.scalar(2), want})
	lw.store(c.scalar(1), []*val{old}, t, 0)
	return []*val{old}
}

func (lw *lowerer) atomic(sub uint32, bits int, args []*val) *val {
	x := &ext{fn: execAtomic, sub: sub, bits: uint32(bits), esize: uint32(bits / 8), n: 1, align: uint64(bits / 8), effect: true}
	p, disp := splitAddress(args[0], 0)
	args[0] = p
	return lw.outs(lw.add(opAtomic, bits > 32, disp, x, args...), 1, bits > 32)[0]
}

// atomicInstr lowers LLVM's own atomic instructions.
func (lw *lowerer) atomicInstr(f *frame, in *air.Instr) []*val {
	t := in.Args[1].Type()
	bits := t.ScalarBits()
	if bits%8 != 0 || bits == 0 || t.Kind == air.VectorKind || bits&(bits-1) != 0 {
		lw.fail("%s of %s is not supported", opName(in.Op), t)
	}
	if in.Op == air.OpCmpXchg {
		want := lw.scalar(f, in.Args[1])
		old := lw.atomic(atomCmpXchg, bits, []*val{lw.scalar(f, in.Args[0]), lw.scalar(f, in.Args[2]), want})
		return []*val{old, lw.eq(old, want)}
	}
	subs := []uint32{atomXchg, atomAdd, atomSub, atomAnd, atomNand, atomOr, atomXor, atomSMax, atomSMin, atomUMax, atomUMin, atomFAdd, atomFSub, atomFMax, atomFMin}
	if int(in.RMW) >= len(subs) || t.IsFloat() && (in.RMW >= 11 || in.RMW == 0) && t.Kind != air.FloatKind {
		lw.fail("atomicrmw operation %d on %s is not supported", in.RMW, t)
	}
	return []*val{lw.atomic(subs[in.RMW], bits, []*val{lw.scalar(f, in.Args[0]), lw.scalar(f, in.Args[1])})}
}
