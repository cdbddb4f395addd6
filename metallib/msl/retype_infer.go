package msl

import "github.com/ingot-metal/ingot/metallib/air"

// byteStep is a getelementptr over bytes by a constant, which is what LLVM makes of constant indices. It gives its
// operand's pointee a chance to be stepped over by type again.
func byteStep(in *air.Instr) (offset int64, ok bool) {
	if in.Op != air.OpGetElementPtr || in.SourceType.Kind != air.IntKind || in.SourceType.Bits != 8 || len(in.Args) != 2 {
		return 0, false
	}
	return constantIndex(in.Args[1])
}

func constantIndex(v air.Value) (int64, bool) {
	c, ok := v.(*air.Const)
	if !ok || c.Ty.Kind != air.IntKind {
		return 0, false
	}
	switch c.Kind {
	case air.NullConst:
		return 0, true
	case air.IntConst:
		shift := 64 - c.Ty.Bits
		return int64(c.Bits<<shift) >> shift, true
	}
	return 0, false
}

// flexible tells whether a value's pointee is a matter of choice.
func flexible(v air.Value) bool {
	in, ok := v.(*air.Instr)
	if !ok || !isPointer(in.Ty) {
		return false
	}
	switch in.Op {
	case air.OpPhi, air.OpSelect, air.OpFreeze, air.OpIntToPtr:
		return true
	}
	_, bytes := byteStep(in)
	return bytes
}

// find is the representative of a value's group.
func (r *retyper) find(v air.Value) air.Value {
	for {
		up, ok := r.groups[v]
		if !ok || up == v {
			return v
		}
		v = up
	}
}

func (r *retyper) join(a, b air.Value) {
	if a, b = r.find(a), r.find(b); a != b {
		r.groups[b] = a
	}
}

// wish notes that a use of v asks for pointee t.
func (r *retyper) wish(v air.Value, t *air.Type, n int) {
	if !flexible(v) {
		return
	}
	g := r.find(v)
	if r.wanted[g] == nil {
		r.wanted[g] = &wishes{}
	}
	r.wanted[g].add(r.typed(t), n)
}

// decide chooses the pointee of every pointer in f.
func (r *retyper) decide(f *air.Function) {
	r.groups, r.wanted = map[air.Value]air.Value{}, map[air.Value]*wishes{}
	eachInstr(f, func(in *air.Instr) {
		if isPointer(in.Ty) && (in.Op == air.OpPhi || in.Op == air.OpSelect || in.Op == air.OpFreeze) {
			for _, a := range in.Args {
				// The result of a step over bytes has a type of its own: it can be what its own uses want.
				if _, bytes := asByteStep(a); flexible(a) && !bytes {
					r.join(in, a)
				}
			}
		}
	})
	var steps []*air.Instr
	eachInstr(f, func(in *air.Instr) {
		if _, bytes := byteStep(in); bytes {
			steps = append(steps, in)
		}
		r.wishesOf(in)
	})
	// A base from which floats are read at several offsets is a pointer to floats. Uses come after definitions, so the last
	// step goes first.
	for i := len(steps) - 1; i >= 0; i-- {
		if w := r.wanted[r.find(steps[i])]; w != nil && w.best() != nil {
			r.wish(steps[i].Args[0], w.best(), 1)
		}
	}
	eachInstr(f, func(in *air.Instr) {
		if !isPointer(in.Ty) {
			return
		}
		switch {
		case flexible(in):
			t := r.m.Int(8)
			if w := r.wanted[r.find(in)]; w != nil {
				if best := w.best(); best != nil {
					t = best
				}
			}
			r.pointee[in] = t
		case in.Op == air.OpAlloca:
			r.pointee[in] = r.typed(in.SourceType)
		case in.Op == air.OpGetElementPtr:
			r.pointee[in] = r.stepped(r.typed(in.SourceType), in.Args[1:])
		default:
			r.pointee[in] = r.m.Int(8)
		}
	})
}

func asByteStep(v air.Value) (*air.Instr, bool) {
	in, ok := v.(*air.Instr)
	if !ok {
		return nil, false
	}
	_, ok = byteStep(in)
	return in, ok
}

// wishesOf notes what an instruction asks of its operands.
func (r *retyper) wishesOf(in *air.Instr) {
	switch in.Op {
	case air.OpLoad:
		r.wish(in.Args[0], in.Ty, 2)
	case air.OpStore:
		r.wish(in.Args[1], in.Args[0].Type(), 2)
	case air.OpGetElementPtr:
		if _, bytes := byteStep(in); !bytes {
			r.wish(in.Args[0], in.SourceType, 2)
		}
	case air.OpPhi, air.OpSelect:
		for _, a := range in.Args {
			if t := r.fixedPointee(a); t != nil {
				r.wish(in, t, 1)
			}
		}
	case air.OpCall:
		if in.CalleeFunction() != nil {
			for i, a := range in.Args {
				if params := in.CalleeFunction().FuncType.Params; i < len(params) && isPointer(params[i]) && params[i].Elem != nil {
					r.wish(a, params[i].Elem, 1)
				}
			}
		}
	}
}

// fixedPointee is the pointee of a value whose type is not a matter of choice, nil for others.
func (r *retyper) fixedPointee(v air.Value) *air.Type {
	switch v := v.(type) {
	case *air.Arg:
		return r.pointee[v]
	case *air.Global:
		return v.ValueType
	case *air.Instr:
		switch {
		case !isPointer(v.Ty) || flexible(v):
		case v.Op == air.OpAlloca:
			return r.typed(v.SourceType)
		case v.Op == air.OpGetElementPtr:
			return r.stepped(r.typed(v.SourceType), v.Args[1:])
		}
	}
	return nil
}

// stepped is the type that the indices of a getelementptr over t arrive at.
func (r *retyper) stepped(t *air.Type, indices []air.Value) *air.Type {
	for _, i := range indices[min(1, len(indices)):] {
		switch t.Kind {
		case air.ArrayKind, air.VectorKind:
			t = t.Elem
		case air.StructKind:
			n, ok := constantIndex(i)
			if !ok || n < 0 || int(n) >= len(t.Fields) {
				r.fail("a struct of %d members is indexed by %d", len(t.Fields), n)
				return r.m.Int(8)
			}
			t = t.Fields[n]
		default:
			r.fail("%s is indexed", t)
			return r.m.Int(8)
		}
	}
	return t
}

// path finds the indices that lead offset bytes into an array of t to a value of type want.
func (r *retyper) path(t *air.Type, offset int64, want *air.Type) ([]air.Value, bool) {
	size := int64(sizeOf(t))
	if size == 0 {
		return nil, false
	}
	first := offset / size
	if offset%size < 0 {
		first--
	}
	rest := uint64(offset - first*size)
	indices := []air.Value{air.ConstInt(r.m.Int(64), uint64(first))}
	for rest != 0 || t != want {
		switch t.Kind {
		case air.ArrayKind:
			n := sizeOf(t.Elem)
			if n == 0 || t.Len == 0 {
				return nil, false
			}
			indices = append(indices, air.ConstInt(r.m.Int(64), rest/n))
			rest %= n
			t = t.Elem
		case air.StructKind:
			offsets, _ := air.StructLayout(t)
			field := -1
			for i, o := range offsets {
				if o <= rest && rest < o+max(sizeOf(t.Fields[i]), 1) {
					field = i
				}
			}
			if field < 0 {
				return nil, false
			}
			indices = append(indices, air.ConstInt(r.m.Int(32), uint64(field)))
			rest -= offsets[field]
			t = t.Fields[field]
		default:
			return nil, false
		}
	}
	return indices, true
}

// sizeOf is the size of a type that has one, 0 for others.
func sizeOf(t *air.Type) uint64 {
	switch t.Kind {
	case air.VoidKind, air.FunctionKind, air.LabelKind, air.MetadataKind, air.TokenKind, air.OtherKind:
		return 0
	}
	return air.Size(t)
}
