package air

// A forwardRef stands for a value that is used before it is read.
type forwardRef struct {
	ty *Type
	id uint64
}

func (f *forwardRef) Type() *Type { return f.ty }

// ref is value id, of type ty; if it is not known yet it is put in later by resolve.
func (r *reader) ref(id uint64, ty *Type) Value {
	if id < uint64(len(r.values)) {
		v := r.values[id]
		if v.Type() != ty {
			r.fail("value %d is of type %s, %s is needed", id, v.Type(), ty)
		}
		return v
	}
	r.forward = true
	return &forwardRef{ty, id}
}

// resolve replaces a forward reference by its value.
func (r *reader) resolve(v *Value) {
	f, ok := (*v).(*forwardRef)
	if !ok {
		return
	}
	if f.id >= uint64(len(r.values)) {
		r.fail("value %d is used and does not exist", f.id)
	}
	w := r.values[f.id]
	if w.Type() != f.ty {
		r.fail("value %d is of type %s, %s is needed", f.id, w.Type(), f.ty)
	}
	*v = w
}

// resolveConstants puts the forward references of constants right, and refuses those that contain themselves.
func (r *reader) resolveConstants(cs []*Const) {
	for _, c := range cs {
		for i := range c.Elems {
			r.resolve(&c.Elems[i])
			if c.Kind != BlockAddressConst && !isConstant(c.Elems[i]) {
				r.fail("a constant contains what is none")
			}
		}
		if c.Mask != nil {
			r.resolve(&c.Mask)
		}
	}
	const maxParts, maxDepth = 1 << 24, 1000
	parts := map[*Const]int{} // -1 while being visited
	var visit func(c *Const, depth int) int
	visit = func(c *Const, depth int) int {
		if n, ok := parts[c]; ok {
			if n < 0 {
				r.fail("a constant contains itself")
			}
			return n
		}
		if depth > maxDepth {
			r.fail("constants nest deeper than %d", maxDepth)
		}
		parts[c] = -1
		n := 1
		for _, e := range c.Elems {
			if e, ok := e.(*Const); ok {
				n += visit(e, depth+1)
			}
		}
		if n > maxParts {
			r.fail("a constant of more than %d parts", maxParts)
		}
		parts[c] = n
		return n
	}
	for _, c := range cs {
		if len(c.Elems) > 0 {
			visit(c, 0)
		}
	}
}

// decodeSigned undoes the zigzag form of signed numbers, in which the sign is the lowest bit.
func decodeSigned(v uint64) uint64 {
	switch {
	case v&1 == 0:
		return v >> 1
	case v == 1:
		return 1 << 63
	}
	return -(v >> 1)
}

// readConstants reads a constants block, of the module or of a function.
func (r *reader) readConstants() {
	cur := r.m.Int(32)
	var made []*Const
	r.blocks(func() {
		if r.code == cstSetType {
			cur = r.typeAt(r.op(0))
			switch cur.Kind {
			case VoidKind, FunctionKind, LabelKind, MetadataKind:
				r.fail("constants of type %s", cur)
			}
			return
		}
		v := r.readConstant(cur)
		if c, ok := v.(*Const); ok && len(c.Elems) > 0 {
			made = append(made, c)
		}
		r.values = append(r.values, v)
	}, nil)
	r.resolveConstants(made)
}

func (r *reader) readConstant(ty *Type) Value {
	c := &Const{Ty: ty}
	switch r.code {
	case cstNull:
		if ty.Kind == TokenKind {
			c.Kind = TokenNoneConst
		}
	case cstUndef:
		c.Kind = UndefConst
	case cstPoison:
		c.Kind = PoisonConst
	case cstInteger:
		if ty.Kind != IntKind || ty.Bits > 64 {
			r.fail("an integer constant of type %s", ty)
		}
		return ConstInt(ty, decodeSigned(r.op(0)))
	case cstWideInteger:
		if ty.Kind != IntKind || len(r.record) == 0 || len(r.record) > (ty.Bits+63)/64 {
			r.fail("an integer constant of type %s and %d words", ty, len(r.record))
		}
		c.Kind = IntConst
		c.Words = make([]uint64, (ty.Bits+63)/64)
		for i, w := range r.record {
			c.Words[i] = decodeSigned(w)
		}
		if top := ty.Bits % 64; top != 0 {
			c.Words[len(c.Words)-1] &= 1<<top - 1
		}
		c.Bits = c.Words[0]
	case cstFloat:
		c.Kind, c.Bits = FloatConst, r.op(0)
		switch {
		case ty.Kind == OtherKind:
			c.Words = append([]uint64(nil), r.record...)
		case !ty.IsFloat():
			r.fail("a floating-point constant of type %s", ty)
		case ty.ScalarBits() < 64:
			c.Bits &= 1<<ty.ScalarBits() - 1
		}
	case cstAggregate:
		c.Kind = AggregateConst
		r.needElements(ty, len(r.record))
		for i, id := range r.record {
			c.Elems = append(c.Elems, r.ref(id, elementType(ty, i)))
		}
	case cstString, cstCString:
		c.Kind, c.Str = StringConst, []byte(r.text(0))
		if r.code == cstCString {
			c.Str = append(c.Str, 0)
		}
		if ty.Kind != ArrayKind || ty.Elem.Kind != IntKind || ty.Elem.Bits != 8 {
			r.fail("a string of type %s", ty)
		}
		r.needElements(ty, len(c.Str))
	case cstData:
		c.Kind, c.Data = DataConst, append([]uint64(nil), r.record...)
		r.needElements(ty, len(c.Data))
		if ty.Kind == StructKind || !(ty.Elem.IsFloat() || ty.Elem.Kind == IntKind && ty.Elem.Bits <= 64) {
			r.fail("data of type %s", ty)
		}
		if w := ty.Elem.ScalarBits(); w < 64 {
			for i := range c.Data {
				c.Data[i] &= 1<<w - 1
			}
		}
	case cstInlineAsm, cstInlineAsmOld, cstInlineAsmOld2, cstInlineAsmOld3:
		return r.readInlineAsm(ty)
	case cstBlockAddress:
		r.readBlockAddress(c)
	case cstDSOLocalEquiv, cstNoCFI:
		c.Kind = OtherConst
		c.Bits = r.code
		c.Elems = []Value{r.ref(r.op(1), r.typeAt(r.op(0)))}
	default:
		c.Kind = ExprConst
		r.readConstExpr(c)
	}
	return c
}

// needElements checks that an aggregate type has n elements.
func (r *reader) needElements(ty *Type, n int) {
	has := uint64(0)
	switch ty.Kind {
	case StructKind:
		has = uint64(len(ty.Fields))
	case ArrayKind, VectorKind:
		has = ty.Len
	default:
		r.fail("an aggregate constant of type %s", ty)
	}
	if has != uint64(n) {
		r.fail("%d elements for type %s", n, ty)
	}
}

// elementType is the type of element i of an aggregate, nil if there is none.
func elementType(ty *Type, i int) *Type {
	switch ty.Kind {
	case StructKind:
		if i < len(ty.Fields) {
			return ty.Fields[i]
		}
	case ArrayKind, VectorKind:
		if uint64(i) < ty.Len {
			return ty.Elem
		}
	}
	return nil
}

func (r *reader) readInlineAsm(ty *Type) Value {
	a := &InlineAsm{Ty: ty}
	i := 0
	if r.code == cstInlineAsm {
		a.FuncType, i = r.typeAt(r.op(0)), 1
	} else if ty.Kind == PointerKind && ty.Elem != nil {
		a.FuncType = ty.Elem
	}
	if a.FuncType == nil || a.FuncType.Kind != FunctionKind || ty.Kind != PointerKind {
		r.fail("inline assembly of type %s", ty)
	}
	flags := r.op(i)
	a.SideEffect, a.AlignStack = flags&1 != 0, flags&2 != 0
	if r.code != cstInlineAsmOld {
		a.Dialect = uint8(flags >> 2 & 1)
		a.CanThrow = flags&8 != 0
	}
	a.Asm, i = r.counted(i + 1)
	a.Constraints, _ = r.counted(i)
	return a
}

// counted is a text at operand i with its length before it, and the operand after it.
func (r *reader) counted(i int) (string, int) {
	n := r.op(i)
	if n > uint64(len(r.record)-i-1) {
		r.fail("a text of %d characters, %d operands are left", n, len(r.record)-i-1)
	}
	end := i + 1 + int(n)
	return r.text(i + 1)[:n], end
}

func (r *reader) readBlockAddress(c *Const) {
	c.Kind = BlockAddressConst
	r.typeAt(r.op(0))
	f, ok := r.globalValue(r.op(1)).(*Function)
	if !ok {
		r.fail("the address of a block of what is no function")
	}
	n := r.op(2)
	c.Elems = []Value{f, &Block{label: r.m.Label()}}
	r.fixups = append(r.fixups, func() {
		if n >= uint64(len(f.Blocks)) {
			r.fail("the address of block %d of %s, which does not exist", n, f.Name)
		}
		c.Elems[1] = f.Blocks[n]
	})
}

func (r *reader) readConstExpr(c *Const) {
	ty := c.Ty
	i32 := r.m.Int(32)
	pair := func(i int) Value { return r.ref(r.op(i+1), r.typeAt(r.op(i))) }
	switch r.code {
	case cstUnOp:
		if r.op(0) != 0 || !ty.Scalar().IsFloat() {
			r.fail("unary operation %d on %s", r.op(0), ty)
		}
		c.Op, c.Elems = OpFNeg, []Value{r.ref(r.op(1), ty)}
		c.Flags = decodeFast(r.opt(2))
	case cstBinOp:
		c.Op = r.binOp(r.op(0), ty)
		c.Elems = []Value{r.ref(r.op(1), ty), r.ref(r.op(2), ty)}
		c.Flags = decodeBinFlags(c.Op, r.opt(3))
	case cstCast:
		c.Op = r.castOp(r.op(0))
		c.Elems = []Value{pair(1)}
		c.Flags = decodeCastFlags(c.Op, r.opt(3))
	case cstSelect:
		cond := r.m.Int(1)
		if ty.Kind == VectorKind {
			// One condition for all elements, or one for each: only the condition itself tells.
			if id := r.op(0); id >= uint64(len(r.values)) {
				r.fail("a constant select before its condition")
			} else if r.values[id].Type() != cond {
				cond = r.m.Vector(cond, ty.Len)
			}
		}
		c.Op = OpSelect
		c.Elems = []Value{r.ref(r.op(0), cond), r.ref(r.op(1), ty), r.ref(r.op(2), ty)}
	case cstExtractElt:
		c.Op, c.Elems = OpExtractElement, []Value{pair(0)}
		if len(r.record) == 4 {
			c.Elems = append(c.Elems, pair(2))
		} else {
			c.Elems = append(c.Elems, r.ref(r.op(2), i32))
		}
		if v := c.Elems[0].Type(); v.Kind != VectorKind || v.Elem != ty {
			r.fail("an element of %s as %s", v, ty)
		}
	case cstInsertElt:
		if ty.Kind != VectorKind {
			r.fail("an element put into %s", ty)
		}
		c.Op, c.Elems = OpInsertElement, []Value{r.ref(r.op(0), ty), r.ref(r.op(1), ty.Elem)}
		if len(r.record) == 4 {
			c.Elems = append(c.Elems, pair(2))
		} else {
			c.Elems = append(c.Elems, r.ref(r.op(2), i32))
		}
	case cstShuffleVec, cstShuffleVecEx:
		if ty.Kind != VectorKind {
			r.fail("a shuffle of %s", ty)
		}
		from, i := ty, 0
		if r.code == cstShuffleVecEx {
			from, i = r.typeAt(r.op(0)), 1
		}
		c.Op = OpShuffleVector
		c.Elems = []Value{r.ref(r.op(i), from), r.ref(r.op(i+1), from)}
		c.Mask = r.ref(r.op(i+2), r.m.Vector(i32, ty.Len))
	case cstCmp:
		of := r.typeAt(r.op(0))
		c.Elems = []Value{r.ref(r.op(1), of), r.ref(r.op(2), of)}
		c.Op, c.Pred = r.compare(of, r.op(3))
	case cstGEPOld, cstInBoundsGEP, cstGEPInRangeOld, cstGEP, cstGEPInRange:
		r.readConstGEP(c)
	default:
		r.fail("constant record %d is not known", r.code)
	}
}

func (r *reader) readConstGEP(c *Const) {
	c.Op = OpGetElementPtr
	i := 0
	explicit := r.code != cstGEPOld && r.code != cstInBoundsGEP
	if explicit || len(r.record)%2 == 1 {
		c.SourceType, i = r.typeAt(r.op(0)), 1
	}
	switch r.code {
	case cstInBoundsGEP:
		c.Flags = InBounds
	case cstGEP:
		c.Flags = decodeGEPFlags(r.op(i))
		i++
	case cstGEPInRangeOld:
		if r.op(i)&1 != 0 {
			c.Flags = InBounds
		}
		c.InRange = []uint64{r.op(i) >> 1}
		i++
	case cstGEPInRange:
		c.Flags = decodeGEPFlags(r.op(i))
		end := r.rangeEnd(i+2, r.op(i+1))
		c.InRange = r.raw(i+1, end)
		i = end
	}
	for ; i < len(r.record); i += 2 {
		c.Elems = append(c.Elems, r.ref(r.op(i+1), r.typeAt(r.op(i))))
	}
	if len(c.Elems) == 0 {
		r.fail("a getelementptr without a base")
	}
	base := c.Elems[0].Type()
	if c.SourceType == nil {
		c.SourceType = r.pointee(base)
	}
	if t := r.m.gepType(c.SourceType, c.Elems, r.fail); t != nil && t != c.Ty {
		r.fail("a getelementptr of type %s, recorded as %s", t, c.Ty)
	}
}
