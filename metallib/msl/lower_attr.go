package msl

import (
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

func enum(names ...string) air.AttrSet {
	var s air.AttrSet
	for _, n := range names {
		s = append(s, air.Attr{Kind: n})
	}
	return s
}

func str(key, value string) air.Attr { return air.Attr{Kind: key, Str: true, Val: value} }

// entryStrings are the string attributes of functions with a body, as Apple's compiler has them with fast math off.
var entryStrings = air.AttrSet{
	str("frame-pointer", "all"), str("min-legal-vector-width", "0"), str("no-builtins", ""), str("no-trapping-math", "true"),
	str("stack-protector-buffer-size", "8"),
}

// attributes replaces clang's attributes, many of which are newer than LLVM 14, with those that Apple's compiler gives.
func (l *lowering) attributes() error {
	for _, f := range l.m.Functions {
		if f.Declaration() {
			f.Attrs = declarationAttrs(f)
			continue
		}
		own := enum("mustprogress", "nounwind")
		if f != l.ctor {
			own = enum("convergent", "mustprogress", "nounwind")
		}
		params := make([]air.AttrSet, len(f.Args))
		for i, a := range f.Args {
			params[i] = l.parameterAttrs(f, i, a, f.Attrs.Param(i))
		}
		f.Attrs = air.AttrList{Fn: append(own, entryStrings...), Params: params}
		eachInstr(f, func(in *air.Instr) {
			if in.Op == air.OpCall {
				in.Attrs = callAttrs(in)
				in.Flags &^= air.MustTail | air.NoTail | air.TailCall
				if !passesThreadMemory(in) {
					in.Flags |= air.TailCall
				}
			}
		})
	}
	return nil
}

// parameterAttrs are noundef, how the function uses a pointer, what a reference guarantees, and air-buffer-no-alias.
//
// Apple's compiler puts air-buffer-no-alias on every buffer: it takes for granted that no two bindings of a launch
// overlap. Here bindings may: entry points that work in place bind one buffer twice. So only those parameters have it
// that surely share memory with no other: threadgroup memory if it is the only such parameter, and what the source
// declares __restrict. Constant memory does not have it either, since the same bytes may be bound as device memory too.
func (l *lowering) parameterAttrs(f *air.Function, i int, a *air.Arg, from air.AttrSet) air.AttrSet {
	var s air.AttrSet
	if isPointer(a.Ty) {
		if _, ok := from.Get("captures"); ok {
			s = append(s, air.Attr{Kind: "nocapture"})
		}
	}
	s = append(s, air.Attr{Kind: "noundef"})
	if !isPointer(a.Ty) {
		return s
	}
	for _, kind := range []string{"readnone", "readonly", "writeonly"} {
		if _, ok := from.Get(kind); ok {
			s = append(s, air.Attr{Kind: kind})
		}
	}
	for _, kind := range []string{"align", "dereferenceable"} {
		if v, ok := from.Get(kind); ok {
			s = append(s, air.Attr{Kind: kind, HasInt: true, Int: v.Int})
		}
	}
	_, restrict := from.Get("noalias")
	if f == l.fn && (restrict || l.onlyThreadgroupParameter(a)) {
		s = append(s, str("air-buffer-no-alias", ""))
	}
	return s
}

func (l *lowering) onlyThreadgroupParameter(a *air.Arg) bool {
	if a.Ty.Space != threadgroupSpace {
		return false
	}
	for _, o := range l.fn.Args {
		if o != a && isPointer(o.Ty) && o.Ty.Space == threadgroupSpace {
			return false
		}
	}
	return true
}

// isPure tells whether an intrinsic computes from its operands alone.
func isPure(name string) bool {
	for _, p := range []string{"air.simd", "air.quad", "air.wg.", "air.atomic.", "air.sincos", "air.fast_sincos", "llvm.mem"} {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	return true
}

// isConvergent tells whether an intrinsic needs the same threads to arrive as in the source.
func isConvergent(name string) bool {
	return strings.HasPrefix(name, "air.simd") || strings.HasPrefix(name, "air.quad") || strings.HasPrefix(name, "air.wg.")
}

func declarationAttrs(f *air.Function) air.AttrList {
	switch {
	case strings.HasPrefix(f.Name, "llvm.mem"):
		l := air.AttrList{Fn: enum("argmemonly", "nofree", "nounwind", "willreturn"), Params: make([]air.AttrSet, len(f.Args))}
		for i, a := range f.Args {
			if isPointer(a.Ty) {
				l.Params[i] = enum("nocapture")
			}
		}
		l.Params[len(f.Args)-1] = enum("immarg")
		return l
	case strings.HasPrefix(f.Name, "llvm."):
		l := air.AttrList{Fn: enum("nofree", "nosync", "nounwind", "readnone", "speculatable", "willreturn"), Params: make([]air.AttrSet, len(f.Args))}
		if strings.HasPrefix(f.Name, "llvm.abs.") {
			l.Params[1] = enum("immarg")
		}
		return l
	case isConvergent(f.Name):
		return air.AttrList{Fn: enum("convergent", "mustprogress", "nounwind", "willreturn")}
	case isPure(f.Name):
		return air.AttrList{Fn: enum("mustprogress", "nofree", "nosync", "nounwind", "readnone", "willreturn")}
	}
	return air.AttrList{Fn: enum("mustprogress", "nounwind", "willreturn")}
}

func callAttrs(in *air.Instr) air.AttrList {
	f := in.CalleeFunction()
	switch {
	case f == nil || !f.Declaration():
		return air.AttrList{Fn: enum("convergent", "nounwind")}
	case strings.HasPrefix(f.Name, "llvm.mem"):
		// How far the operands are aligned is worth keeping.
		l := air.AttrList{Fn: enum("nounwind"), Params: make([]air.AttrSet, len(in.Args))}
		for i := range in.Args {
			if a, ok := in.Attrs.Param(i).Get("align"); ok {
				l.Params[i] = air.AttrSet{{Kind: "align", HasInt: true, Int: a.Int}}
			}
		}
		return l
	case isConvergent(f.Name):
		return air.AttrList{Fn: enum("convergent", "nounwind", "willreturn")}
	case isPure(f.Name):
		return air.AttrList{Fn: enum("nounwind", "readnone", "willreturn")}
	}
	return air.AttrList{Fn: enum("nounwind", "willreturn")}
}

// passesThreadMemory tells whether a call may reach the caller's variables, which a tail call must not.
func passesThreadMemory(in *air.Instr) bool {
	for _, a := range in.Args {
		if t := a.Type(); isPointer(t) && t.Space == threadSpace {
			return true
		}
	}
	return false
}
