package msl

import (
	"fmt"
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// keptIntrinsics are LLVM's intrinsics that Apple's compiler leaves in its modules.
var keptIntrinsics = words(`smin smax umin umax abs fshl fshr usub.sat uadd.sat ssub.sat sadd.sat bswap`)

// mappedIntrinsics are those that AIR has under another name.
var mappedIntrinsics = map[string]string{
	"fabs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "round": "round",
	"exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh",
	"pow": "pow", "fma": "fma", "minnum": "fmin", "maxnum": "fmax", "ctpop": "popcount", "bitreverse": "reverse_bits",
}

// droppedIntrinsics say something to LLVM's optimisers only.
var droppedIntrinsics = []string{"llvm.lifetime.", "llvm.assume", "llvm.dbg.", "llvm.experimental.noalias.scope.decl", "llvm.invariant.", "llvm.donothing"}

// intrinsic keeps, renames, expands or refuses a call of one of LLVM's intrinsics.
func (w *rewriting) intrinsic(in *air.Instr, full string) error {
	for _, d := range droppedIntrinsics {
		if strings.HasPrefix(full, d) {
			return nil
		}
	}
	name := strings.TrimPrefix(full, "llvm.")
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i] // without the suffix of the type
	}
	switch {
	case strings.HasPrefix(full, "llvm.memcpy."), strings.HasPrefix(full, "llvm.memmove."), strings.HasPrefix(full, "llvm.memset."):
		w.add(in) // renamed when pointers have types
		return nil
	case keptIntrinsics[name]:
		w.add(in)
		return nil
	case name == "ctlz" || name == "cttz":
		suffix, err := typeSuffix(in.Ty)
		if err != nil || !metalWidth(in.Ty.Scalar().Bits, "s") {
			return fmt.Errorf("%s on %s has no counterpart in AIR", full, in.Ty)
		}
		airName := map[string]string{"ctlz": "air.clz.", "cttz": "air.ctz."}[name]
		w.with[in] = w.call(airName+suffix, in.Ty, in.Args[0], air.ConstInt(w.m.Int(1), 0))
		return nil
	case name == "copysign":
		w.copysign(in)
		return nil
	case name == "scmp" || name == "ucmp", strings.HasPrefix(name, "scmp.") || strings.HasPrefix(name, "ucmp."):
		w.threeWay(in, strings.HasPrefix(name, "s"))
		return nil
	case strings.HasSuffix(name, ".with.overflow"):
		return w.overflow(in, name)
	case name == "is.fpclass":
		w.fpClass(in)
		return nil
	}
	if to := mappedIntrinsics[name]; to != "" {
		suffix, err := typeSuffix(in.Ty)
		if err != nil || in.Ty.Scalar().Kind == air.IntKind && !metalWidth(in.Ty.Scalar().Bits, "s") {
			return fmt.Errorf("%s on %s has no counterpart in AIR", full, in.Ty)
		}
		if in.Ty.Scalar().Kind == air.BFloatKind {
			// Apple's compiler leaves these three on bfloat as they are; there are no others.
			if name != "fabs" && name != "minnum" && name != "maxnum" {
				return fmt.Errorf("%s on bfloat has no counterpart in AIR", name)
			}
			w.add(in)
			return nil
		}
		w.with[in] = w.call("air."+to+"."+suffix, in.Ty, in.Args...)
		return nil
	}
	return fmt.Errorf("%s has no counterpart in AIR", full)
}

// bits are a floating-point value's bits as an integer.
func (w *rewriting) bits(v air.Value) *air.Instr {
	return w.op(air.OpBitCast, w.like(v.Type(), w.m.Int(v.Type().ScalarBits())), v)
}

// copysign combines the bits of two values.
func (w *rewriting) copysign(in *air.Instr) {
	a, b := w.bits(in.Args[0]), w.bits(in.Args[1])
	sign := uint64(1) << (in.Ty.ScalarBits() - 1)
	magnitude := w.op(air.OpAnd, a.Ty, a, w.splat(a.Ty, sign-1))
	signBit := w.op(air.OpAnd, a.Ty, b, w.splat(a.Ty, sign))
	w.with[in] = w.op(air.OpBitCast, in.Ty, w.op(air.OpOr, a.Ty, magnitude, signBit))
}

// threeWay computes -1, 0 or 1 from two comparisons.
func (w *rewriting) threeWay(in *air.Instr, signed bool) {
	gt, lt := air.ICmpUGT, air.ICmpULT
	if signed {
		gt, lt = air.ICmpSGT, air.ICmpSLT
	}
	above := w.op(air.OpZExt, in.Ty, w.compare(air.OpICmp, gt, in.Args[0], in.Args[1]))
	below := w.op(air.OpZExt, in.Ty, w.compare(air.OpICmp, lt, in.Args[0], in.Args[1]))
	w.with[in] = w.op(air.OpSub, in.Ty, above, below)
}

// overflow computes the result of an operation and whether it overflowed; the two are taken apart where they are used.
func (w *rewriting) overflow(in *air.Instr, name string) error {
	a, b := in.Args[0], in.Args[1]
	t := a.Type()
	zero := w.splat(t, 0)
	var result *air.Instr
	var flag air.Value
	switch op := strings.TrimSuffix(name, ".with.overflow"); op {
	case "uadd":
		result = w.op(air.OpAdd, t, a, b)
		flag = w.compare(air.OpICmp, air.ICmpULT, result, a)
	case "usub":
		result = w.op(air.OpSub, t, a, b)
		flag = w.compare(air.OpICmp, air.ICmpULT, a, b)
	case "sadd", "ssub":
		// A sum overflows if its sign is that of neither operand; a difference, if the operands' signs differ and its own
		// is not the first one's.
		var signs *air.Instr
		if op == "sadd" {
			result = w.op(air.OpAdd, t, a, b)
			signs = w.op(air.OpXor, t, result, b)
		} else {
			result = w.op(air.OpSub, t, a, b)
			signs = w.op(air.OpXor, t, a, b)
		}
		both := w.op(air.OpAnd, t, w.op(air.OpXor, t, result, a), signs)
		flag = w.compare(air.OpICmp, air.ICmpSLT, both, zero)
	case "umul", "smul":
		suffix, err := typeSuffix(t)
		if err != nil || t.ScalarBits() != 32 && t.ScalarBits() != 64 {
			return fmt.Errorf("llvm.%s on %s has no counterpart in AIR", name, t)
		}
		result = w.op(air.OpMul, t, a, b)
		high := w.call("air.mul_hi."+op[:1]+"."+suffix, t, a, b)
		var expected air.Value = zero
		if op == "smul" {
			expected = w.op(air.OpAShr, t, result, w.splat(t, uint64(t.ScalarBits()-1)))
		}
		flag = w.compare(air.OpICmp, air.ICmpNE, high, expected)
	default:
		return fmt.Errorf("llvm.%s has no counterpart in AIR", name)
	}
	w.parts[in] = [2]air.Value{result, flag}
	return nil
}

// Classes of floating-point numbers as llvm.is.fpclass numbers them.
const (
	classSignalingNaN = 1 << iota
	classQuietNaN
	classNegativeInfinity
	classNegativeNormal
	classNegativeSubnormal
	classNegativeZero
	classPositiveZero
	classPositiveSubnormal
	classPositiveNormal
	classPositiveInfinity
)

// fpClass tests a value's class on its bits, one range of magnitudes for each class asked for.
func (w *rewriting) fpClass(in *air.Instr) {
	v := in.Args[0]
	mask := in.Args[1].(*air.Const).Bits
	mantissa := map[air.TypeKind]int{air.HalfKind: 10, air.BFloatKind: 7, air.FloatKind: 23, air.DoubleKind: 52}[v.Type().Scalar().Kind]
	bits := w.bits(v)
	t := bits.Ty
	width := t.ScalarBits()
	sign := uint64(1) << (width - 1)
	infinity := sign - uint64(1)<<mantissa
	quiet := uint64(1) << (mantissa - 1)
	magnitude := w.op(air.OpAnd, t, bits, w.splat(t, sign-1))
	var result air.Value = w.splat(in.Ty, 0)
	or := func(test air.Value) { result = w.op(air.OpOr, in.Ty, result, test) }
	// within tests low <= x <= high.
	within := func(x air.Value, low, high uint64) air.Value {
		return w.compare(air.OpICmp, air.ICmpULE, w.op(air.OpSub, t, x, w.splat(t, low)), w.splat(t, high-low))
	}
	for _, c := range []struct {
		positive, negative uint64
		low, high          uint64
	}{
		{classPositiveInfinity, classNegativeInfinity, infinity, infinity},
		{classPositiveNormal, classNegativeNormal, uint64(1) << mantissa, infinity - 1},
		{classPositiveSubnormal, classNegativeSubnormal, 1, uint64(1)<<mantissa - 1},
		{classPositiveZero, classNegativeZero, 0, 0},
		{classSignalingNaN, classSignalingNaN, infinity + 1, infinity | quiet - 1},
		{classQuietNaN, classQuietNaN, infinity | quiet, sign - 1},
	} {
		switch {
		case mask&c.positive != 0 && mask&c.negative != 0:
			or(within(magnitude, c.low, c.high))
		case mask&c.positive != 0:
			or(within(bits, c.low, c.high))
		case mask&c.negative != 0:
			or(within(bits, sign|c.low, sign|c.high))
		}
	}
	w.with[in] = result
}
