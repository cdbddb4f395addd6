package msl

import (
	"fmt"
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// A rewriting goes over the instructions of a function and builds new lists of them.
type rewriting struct {
	*lowering
	block *air.Block
	out   []*air.Instr
	// with are the values that took the place of instructions.
	with map[air.Value]air.Value
	// parts are the members of results that exist only taken apart.
	parts map[air.Value][2]air.Value
}

func (w *rewriting) add(in *air.Instr) *air.Instr {
	in.Parent = w.block
	w.out = append(w.out, in)
	return in
}

// op adds an operation on a value of type t.
func (w *rewriting) op(op air.Op, t *air.Type, args ...air.Value) *air.Instr {
	return w.add(&air.Instr{Op: op, Ty: t, Args: args})
}

// call adds a call of a declared function.
func (w *rewriting) call(name string, result *air.Type, args ...air.Value) *air.Instr {
	params := make([]*air.Type, len(args))
	for i, a := range args {
		params[i] = a.Type()
	}
	f := w.declare(name, w.m.FuncType(result, false, params...))
	return w.add(&air.Instr{Op: air.OpCall, Ty: result, Args: args, Callee: f, FuncType: f.FuncType})
}

// declare finds or makes the declaration of a function.
func (l *lowering) declare(name string, t *air.Type) *air.Function {
	if f := l.m.Function(name); f != nil {
		return f
	}
	f := &air.Function{FuncType: t}
	f.Name = name
	f.Ty = l.m.Pointer(nil, 0)
	for i, p := range t.Params {
		f.Args = append(f.Args, &air.Arg{Ty: p, Index: i, Parent: f})
	}
	l.m.Functions = append(l.m.Functions, f)
	return f
}

// instructions puts Metal's instructions and intrinsics in the place of those that its back end does not take.
func (l *lowering) instructions() error {
	with := map[air.Value]air.Value{}
	parts := map[air.Value][2]air.Value{}
	functions := append([]*air.Function(nil), l.m.Functions...) // declarations are added on the way
	for _, f := range functions {
		for _, b := range f.Blocks {
			w := &rewriting{lowering: l, block: b, with: with, parts: parts}
			for _, in := range b.Instrs {
				in.Flags &^= air.Fast
				if err := w.instr(in); err != nil {
					return err
				}
			}
			b.Instrs = w.out
		}
	}
	replaceAll(l.m, with)
	return nil
}

func (w *rewriting) instr(in *air.Instr) error {
	if t := in.Ty.Scalar(); t.Kind == air.IntKind && t.Bits > 64 || t.Kind == air.DoubleKind {
		return fmt.Errorf("values of type %s have no counterpart in AIR", in.Ty)
	}
	for _, a := range in.Args {
		if _, apart := w.parts[a]; apart && in.Op != air.OpExtractValue {
			return fmt.Errorf("the result of an operation with overflow is used as a whole")
		}
	}
	switch in.Op {
	case air.OpExtractValue:
		if parts, ok := w.parts[in.Args[0]]; ok && len(in.Indices) == 1 && in.Indices[0] < 2 {
			w.with[in] = parts[in.Indices[0]]
			return nil
		}
	case air.OpSIToFP, air.OpUIToFP, air.OpFPToSI, air.OpFPToUI:
		return w.convert(in)
	case air.OpFPTrunc, air.OpFPExt:
		if in.Ty.Kind == air.VectorKind {
			return w.convert(in)
		}
	case air.OpFRem:
		name, err := typeSuffix(in.Ty)
		if err != nil {
			return err
		}
		w.with[in] = w.call("air.fmod."+name, in.Ty, in.Args...)
		return nil
	case air.OpFence, air.OpCmpXchg, air.OpAtomicRMW, air.OpVAArg, air.OpIndirectBr:
		return fmt.Errorf("instruction %s has no counterpart in AIR", in.Op)
	case air.OpUnknown, air.OpInvalid:
		return fmt.Errorf("instruction %s is not known", in.Name)
	case air.OpShuffleVector:
		return w.shuffle(in)
	case air.OpCall:
		return w.callInstr(in)
	}
	w.add(in)
	return nil
}

// typeSuffix is how the names of intrinsics spell a type: f32, v4f16, i64.
func typeSuffix(t *air.Type) (string, error) {
	prefix := ""
	if t.Kind == air.VectorKind {
		prefix = fmt.Sprintf("v%d", t.Len)
		t = t.Elem
	}
	switch t.Kind {
	case air.HalfKind:
		return prefix + "f16", nil
	case air.BFloatKind:
		return prefix + "bf16", nil
	case air.FloatKind:
		return prefix + "f32", nil
	case air.IntKind:
		return fmt.Sprintf("%si%d", prefix, t.Bits), nil
	}
	return "", fmt.Errorf("AIR has no operations on %s", t)
}

// convert makes a conversion between integers and floating-point numbers, or vectors of the latter, a call.
func (w *rewriting) convert(in *air.Instr) error {
	from, to := in.Args[0], in.Ty
	signedness := "s"
	if in.Op == air.OpUIToFP || in.Op == air.OpFPToUI {
		signedness = "u"
	}
	// The optimiser makes integers of odd widths; Metal has conversions of its own widths only.
	if t := from.Type(); t.Scalar().Kind == air.IntKind && !metalWidth(t.Scalar().Bits, signedness) {
		wide := w.like(t, w.m.Int(nextWidth(t.Scalar().Bits)))
		op := air.OpSExt
		if signedness == "u" {
			op = air.OpZExt
		}
		from = w.op(op, wide, from)
	}
	result := to
	if to.Scalar().Kind == air.IntKind && !metalWidth(to.Scalar().Bits, signedness) {
		result = w.like(to, w.m.Int(nextWidth(to.Scalar().Bits)))
	}
	source, err := typeSuffix(from.Type())
	if err != nil {
		return err
	}
	target, err := typeSuffix(result)
	if err != nil {
		return err
	}
	kindOf := func(t *air.Type) string {
		if t.Scalar().Kind == air.IntKind {
			return signedness
		}
		return "f"
	}
	v := w.call(fmt.Sprintf("air.convert.%s.%s.%s.%s", kindOf(result), target, kindOf(from.Type()), source), result, from)
	if result != to {
		v = w.op(air.OpTrunc, to, v)
	}
	w.with[in] = v
	return nil
}

func metalWidth(bits int, signedness string) bool {
	return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 1 && signedness == "u"
}

func nextWidth(bits int) int {
	n := 8
	for n < bits {
		n *= 2
	}
	return n
}

// like is elem, or a vector of elem as long as t.
func (l *lowering) like(t, elem *air.Type) *air.Type {
	if t.Kind == air.VectorKind {
		return l.m.Vector(elem, t.Len)
	}
	return elem
}

// splat is the constant v in every lane of t.
func (l *lowering) splat(t *air.Type, v uint64) *air.Const {
	if t.Kind != air.VectorKind {
		return air.ConstInt(t, v)
	}
	elems := make([]air.Value, t.Len)
	for i := range elems {
		elems[i] = air.ConstInt(t.Elem, v)
	}
	return &air.Const{Kind: air.AggregateConst, Ty: t, Elems: elems}
}

// compare adds a comparison.
func (w *rewriting) compare(op air.Op, p air.Pred, a, b air.Value) *air.Instr {
	in := w.op(op, w.like(a.Type(), w.m.Int(1)), a, b)
	in.Pred = p
	return in
}

// callInstr deals with the calls that need something done.
func (w *rewriting) callInstr(in *air.Instr) error {
	f := in.CalleeFunction()
	if f == nil {
		return fmt.Errorf("calls through pointers to functions are not supported")
	}
	switch {
	case strings.HasPrefix(f.Name, "llvm."):
		return w.intrinsic(in, f.Name)
	case strings.HasPrefix(f.Name, "_Z16__msl_fc_defined"):
		g, ok := in.Args[0].(*air.Global)
		if !ok || w.filled[g] == nil {
			return fmt.Errorf("is_function_constant_defined needs a function constant")
		}
		w.with[in] = w.call("air.is_function_constant_defined", in.Ty, w.filled[g])
		return nil
	case f.Declaration() && !strings.HasPrefix(f.Name, "air."):
		return fmt.Errorf("function %s is declared and defined nowhere", f.Name)
	}
	w.add(in)
	return nil
}
