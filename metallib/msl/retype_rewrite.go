package msl

import "github.com/ingot-metal/ingot/metallib/air"

// function gives every instruction of f its types and puts casts where a use needs another pointee.
func (r *retyper) function(f *air.Function) {
	r.decide(f)
	r.casts, r.added, r.atEntry = map[castKey]*air.Instr{}, map[air.Value][]*air.Instr{}, nil
	r.leading = map[*air.Instr][]*air.Instr{}
	steps := map[*air.Instr]int64{}
	eachInstr(f, func(in *air.Instr) {
		if n, ok := byteStep(in); ok {
			steps[in] = n
		}
	})
	// Results first: an operand may be defined further down.
	eachInstr(f, func(in *air.Instr) {
		if in.SourceType != nil {
			in.SourceType = r.typed(in.SourceType)
		}
		switch {
		case isPointer(in.Ty):
			in.Ty = r.m.Pointer(r.pointee[in], in.Ty.Space)
		case in.Ty.Kind != air.VoidKind:
			if t := r.typed(in.Ty); t != in.Ty {
				r.fail("pointers inside values of type %s are not supported", in.Ty)
			}
		}
	})
	eachInstr(f, func(in *air.Instr) {
		if n, ok := steps[in]; ok {
			r.step(in, n)
			return
		}
		r.operands(in)
	})
	r.insert(f)
}

// operands casts the pointers among an instruction's operands to what it takes.
func (r *retyper) operands(in *air.Instr) {
	switch in.Op {
	case air.OpLoad:
		in.Args[0] = r.cast(in.Args[0], r.m.Pointer(in.Ty, spaceOf(in.Args[0])))
	case air.OpStore:
		v := in.Args[0]
		if isPointer(v.Type()) {
			v = r.cast(v, r.m.Pointer(r.m.Int(8), v.Type().Space))
		}
		in.Args[0] = v
		in.Args[1] = r.cast(in.Args[1], r.m.Pointer(v.Type(), spaceOf(in.Args[1])))
	case air.OpGetElementPtr:
		// A step from an array's first element is an index into the array.
		if from := r.pointeeOf(in.Args[0]); from != nil && from.Kind == air.ArrayKind && from.Elem == in.SourceType {
			zero := air.ConstInt(r.m.Int(64), 0)
			in.SourceType = from
			in.Args = append([]air.Value{in.Args[0], zero}, in.Args[1:]...)
			return
		}
		in.Args[0] = r.cast(in.Args[0], r.m.Pointer(in.SourceType, spaceOf(in.Args[0])))
	case air.OpPhi, air.OpFreeze:
		if isPointer(in.Ty) {
			for i, a := range in.Args {
				in.Args[i] = r.cast(a, in.Ty)
			}
		}
	case air.OpSelect:
		if isPointer(in.Ty) {
			in.Args[1], in.Args[2] = r.cast(in.Args[1], in.Ty), r.cast(in.Args[2], in.Ty)
		}
	case air.OpICmp:
		if isPointer(in.Args[0].Type()) {
			t := r.m.Pointer(r.m.Int(8), spaceOf(in.Args[0]))
			in.Args[0], in.Args[1] = r.cast(in.Args[0], t), r.cast(in.Args[1], t)
		}
	case air.OpPtrToInt:
		in.Args[0] = r.cast(in.Args[0], r.m.Pointer(r.m.Int(8), spaceOf(in.Args[0])))
	case air.OpCall:
		callee := in.CalleeFunction()
		if callee == nil {
			r.fail("calls through pointers to functions are not supported")
			return
		}
		in.FuncType = callee.FuncType
		for i, a := range in.Args {
			if i < len(callee.FuncType.Params) && isPointer(callee.FuncType.Params[i]) {
				in.Args[i] = r.cast(a, callee.FuncType.Params[i])
			}
		}
	case air.OpRet:
		if len(in.Args) > 0 && isPointer(in.Args[0].Type()) {
			in.Args[0] = r.cast(in.Args[0], in.Parent.Parent.FuncType.Ret)
		}
	case air.OpAddrSpaceCast:
		r.fail("a pointer's address space is not known at compile time; write it out (device, constant, threadgroup or thread)")
	case air.OpExtractValue, air.OpInsertValue, air.OpInsertElement, air.OpExtractElement, air.OpShuffleVector:
		if isPointer(in.Ty.Scalar()) {
			r.fail("vectors and structs of pointers as values are not supported")
		}
	}
}

func spaceOf(v air.Value) int { return v.Type().Space }

// step rewrites a step over n bytes: by members and elements of the base's pointee if that leads to what the result
// should point to, by elements of the result's type if n is a multiple of its size, by bytes otherwise.
func (r *retyper) step(in *air.Instr, n int64) {
	base := in.Args[0]
	want := in.Ty.Elem
	from := r.pointeeOf(base)
	if from != nil {
		if indices, ok := r.path(from, n, want); ok {
			in.SourceType = from
			in.Args = append([]air.Value{r.cast(base, r.m.Pointer(from, spaceOf(base)))}, indices...)
			return
		}
	}
	if size := int64(sizeOf(want)); size > 0 && n%size == 0 {
		in.SourceType = want
		in.Args = []air.Value{r.cast(base, r.m.Pointer(want, spaceOf(base))), air.ConstInt(r.m.Int(64), uint64(n/size))}
		return
	}
	bytes := r.m.Pointer(r.m.Int(8), spaceOf(base))
	inner := &air.Instr{Op: air.OpGetElementPtr, Ty: bytes, SourceType: r.m.Int(8), Flags: in.Flags, Parent: in.Parent,
		Args: []air.Value{r.cast(base, bytes), air.ConstInt(r.m.Int(64), uint64(n))}}
	r.leading[in] = append(r.leading[in], inner)
	in.Op, in.SourceType, in.Flags, in.Args = air.OpBitCast, nil, 0, []air.Value{inner}
}

// pointeeOf is what a value points to now.
func (r *retyper) pointeeOf(v air.Value) *air.Type {
	if g, ok := v.(*air.Global); ok {
		return g.ValueType
	}
	return v.Type().Elem
}

// cast gives v as a pointer of type t: v itself, an address of a member at its beginning, or a bitcast right after v's
// definition, one for all uses.
func (r *retyper) cast(v air.Value, t *air.Type) air.Value {
	switch v := v.(type) {
	case *air.Global, *air.Const:
		return r.constant(v, t)
	case *air.Function:
		r.fail("pointers to functions are not supported")
		return v
	}
	if v.Type() == t {
		return v
	}
	if v.Type().Space != t.Space {
		r.fail("address space %d where %d is needed", v.Type().Space, t.Space)
		return v
	}
	key := castKey{v, t}
	if c := r.casts[key]; c != nil {
		return c
	}
	c := &air.Instr{Op: air.OpBitCast, Ty: t, Args: []air.Value{v}}
	if from := v.Type().Elem; from.Kind == air.StructKind || from.Kind == air.ArrayKind {
		if indices, ok := r.path(from, 0, t.Elem); ok {
			c = &air.Instr{Op: air.OpGetElementPtr, Ty: t, SourceType: from, Flags: air.InBounds, Args: append([]air.Value{v}, indices...)}
		}
	}
	r.casts[key] = c
	if _, ok := v.(*air.Instr); ok {
		r.added[v] = append(r.added[v], c)
	} else {
		r.atEntry = append(r.atEntry, c)
	}
	return c
}

// insert puts the added instructions into the blocks of f: after the definitions of their operands, and after all phis.
func (r *retyper) insert(f *air.Function) {
	for i, b := range f.Blocks {
		var out, waiting []*air.Instr
		if i == 0 {
			waiting = r.atEntry
		}
		var emit func(in *air.Instr)
		emit = func(in *air.Instr) {
			in.Parent = b
			out = append(out, in)
			for _, a := range r.added[in] {
				emit(a)
			}
		}
		for _, in := range b.Instrs {
			if in.Op == air.OpPhi {
				out = append(out, in)
				waiting = append(waiting, r.added[in]...)
				continue
			}
			for _, w := range waiting {
				emit(w)
			}
			waiting = nil
			for _, l := range r.leading[in] {
				emit(l)
			}
			emit(in)
		}
		b.Instrs = out
	}
}

// constant gives a constant pointer as one of type t.
func (r *retyper) constant(v air.Value, t *air.Type) air.Value {
	switch v := v.(type) {
	case *air.Global:
		if v.Ty == t {
			return v
		}
		if indices, ok := r.path(v.ValueType, 0, t.Elem); ok && t.Space == v.Space {
			return r.constantStep(v, v.ValueType, indices, t, air.InBounds)
		}
		return &air.Const{Kind: air.ExprConst, Op: air.OpBitCast, Ty: t, Elems: []air.Value{v}}
	case *air.Const:
		switch {
		case v.Kind != air.ExprConst:
			return &air.Const{Kind: v.Kind, Ty: t}
		case v.Op == air.OpGetElementPtr:
			return r.constantGEP(v, t)
		case v.Op == air.OpIntToPtr:
			return &air.Const{Kind: air.ExprConst, Op: v.Op, Ty: t, Elems: v.Elems}
		case v.Op == air.OpBitCast && isPointer(v.Elems[0].Type()):
			return r.constant(v.Elems[0], t)
		}
		r.fail("a constant address uses %s", v.Op)
	}
	return v
}

func (r *retyper) constantStep(base air.Value, source *air.Type, indices []air.Value, t *air.Type, flags air.Flags) *air.Const {
	return &air.Const{Kind: air.ExprConst, Op: air.OpGetElementPtr, Ty: t, SourceType: source, Flags: flags & air.InBounds,
		Elems: append([]air.Value{base}, indices...)}
}

// constantGEP gives a getelementptr of constants as a pointer of type t.
func (r *retyper) constantGEP(v *air.Const, t *air.Type) air.Value {
	source := r.typed(v.SourceType)
	base := v.Elems[0]
	if g, ok := base.(*air.Global); ok && source.Kind == air.IntKind && source.Bits == 8 && len(v.Elems) == 2 {
		if n, ok := constantIndex(v.Elems[1]); ok {
			if indices, ok := r.path(g.ValueType, n, t.Elem); ok {
				return r.constantStep(g, g.ValueType, indices, t, v.Flags)
			}
		}
	}
	result := r.stepped(source, v.Elems[1:])
	typed := r.m.Pointer(result, t.Space)
	step := r.constantStep(r.constant(base, r.m.Pointer(source, t.Space)), source, v.Elems[1:], typed, v.Flags)
	if typed == t {
		return step
	}
	return &air.Const{Kind: air.ExprConst, Op: air.OpBitCast, Ty: t, Elems: []air.Value{step}}
}

// initialisers types the values of variables. The list of constructors holds pointers; data does not.
func (r *retyper) initialisers() {
	for _, g := range r.m.Globals {
		if g == r.ctorList {
			bytes := r.m.Pointer(r.m.Int(8), 0)
			entry := r.m.Struct(false, r.m.Int(32), r.ctor.Ty, bytes)
			g.ValueType = r.m.Array(entry, 1)
			g.Ty = r.m.Pointer(g.ValueType, 0)
			g.Init = &air.Const{Kind: air.AggregateConst, Ty: g.ValueType, Elems: []air.Value{
				&air.Const{Kind: air.AggregateConst, Ty: entry, Elems: []air.Value{
					air.ConstInt(r.m.Int(32), 65535), r.ctor, &air.Const{Kind: air.NullConst, Ty: bytes},
				}},
			}}
			continue
		}
		if c, ok := g.Init.(*air.Const); !ok || hasPointer(c.Ty) {
			r.fail("variable %s holds an address", g.Name)
		}
	}
}

// hasPointer tells whether a value of type t contains a pointer.
func hasPointer(t *air.Type) bool {
	switch t.Kind {
	case air.PointerKind:
		return true
	case air.VectorKind, air.ArrayKind:
		return hasPointer(t.Elem)
	case air.StructKind:
		for _, f := range t.Fields {
			if hasPointer(f) {
				return true
			}
		}
	}
	return false
}
