package air

// A body is the state of reading one function's body.
type body struct {
	*reader
	f      *Function
	cur    int // the block being filled
	instrs []*Instr
	// bundles are the operand bundles for the next call.
	bundles []Bundle
	i       int // the operand to take next
}

func (r *reader) readBody(f *Function) {
	b := &body{reader: r, f: f}
	values, mds := len(r.values), len(r.mds)
	r.forward = false
	for _, a := range f.Args {
		r.values = append(r.values, a)
	}
	r.blocks(b.readRecord, func(id uint64) {
		switch id {
		case constantsBlock:
			r.enter(id)
			r.readConstants()
		case metadataBlock:
			r.enter(id)
			r.readMetadata(b)
		case metadataAttachmentBlock:
			r.enter(id)
			r.readAttachments(b)
		case valueSymtabBlock:
			r.enter(id)
			r.readSymtab(f)
		case useListBlock:
			r.skip()
		default:
			r.skipBlock(id)
		}
	})
	b.finish()
	// The slots are cleared so that a later forward reference cannot find a value of this function.
	clear(r.values[values:])
	clear(r.mds[mds:])
	r.values, r.mds = r.values[:values], r.mds[:mds]
}

func (b *body) finish() {
	f := b.f
	if len(f.Blocks) == 0 || b.cur != len(f.Blocks) {
		b.fail("function %s has %d of %d blocks", f.Name, b.cur, len(f.Blocks))
	}
	if len(b.bundles) != 0 {
		b.fail("operand bundles without a call")
	}
	for _, v := range b.mdForward {
		b.resolve(&v.V)
	}
	b.mdForward = b.mdForward[:0]
	if !b.forward {
		return
	}
	for _, in := range b.instrs {
		for i := range in.Args {
			b.resolve(&in.Args[i])
		}
		if in.Callee != nil {
			b.resolve(&in.Callee)
		}
		for _, bundle := range in.Bundles {
			for i := range bundle.Args {
				b.resolve(&bundle.Args[i])
			}
		}
	}
}

func (b *body) declareBlocks() {
	const leastBits = 4 // of a terminator
	n := b.op(0)
	if len(b.f.Blocks) != 0 || n == 0 || n > b.left()/leastBits {
		b.fail("a function of %d blocks", n)
	}
	slab := make([]Block, n)
	label := b.m.Label()
	b.f.Blocks = make([]*Block, n)
	for i := range slab {
		slab[i] = Block{Parent: b.f, label: label}
		b.f.Blocks[i] = &slab[i]
	}
}

// take is the next operand.
func (b *body) take() uint64 {
	v := b.op(b.i)
	b.i++
	return v
}

// more tells whether operands are left.
func (b *body) more() bool { return b.i < len(b.record) }

// left over operands mean a form of the record that is not understood.
func (b *body) done() {
	if b.more() {
		b.fail("record %d has %d operands, %d are understood", b.code, len(b.record), b.i)
	}
}

// id takes a value number, which is relative to the next one in modules of version 1 and later.
func (b *body) id() uint64 {
	v := b.take()
	if b.version >= 1 {
		return uint64(uint32(len(b.values)) - uint32(v))
	}
	return v
}

// pair takes a value whose type is written down only if it comes later.
func (b *body) pair() Value {
	id := b.id()
	if id < uint64(len(b.values)) {
		return b.values[id]
	}
	t := b.typeAt(b.take())
	if t.Kind == MetadataKind {
		return &MetadataValue{t, b.mdAt(id)}
	}
	b.forward = true
	return &forwardRef{t, id}
}

// val takes a value of a known type.
func (b *body) val(t *Type) Value {
	id := b.id()
	if t.Kind == MetadataKind {
		return &MetadataValue{t, b.mdAt(id)}
	}
	return b.ref(id, t)
}

func (b *body) block() *Block {
	n := b.take()
	if n >= uint64(len(b.f.Blocks)) {
		b.fail("block %d does not exist, there are %d", n, len(b.f.Blocks))
	}
	return b.f.Blocks[n]
}

// ty takes a type.
func (b *body) ty() *Type { return b.typeAt(b.take()) }

// align takes an alignment.
func (b *body) align() uint64 { return b.alignment(b.take()) }

// valueType is ty, which must be one that an instruction can produce or take.
func (r *reader) valueType(t *Type) *Type {
	switch t.Kind {
	case VoidKind, FunctionKind, LabelKind, MetadataKind:
		r.fail("a value of type %s", t)
	}
	if t.Kind == StructKind && t.Opaque {
		r.fail("a value of the opaque type %s", t)
	}
	return t
}

// pointee is what a typed pointer points to, for records that do not say it.
func (r *reader) pointee(p *Type) *Type {
	if p.Scalar().Kind != PointerKind || p.Scalar().Elem == nil {
		r.fail("a typed pointer is needed, not %s", p)
	}
	return p.Scalar().Elem
}

// address checks that v is a pointer, to t if it is typed.
func (r *reader) address(v Value, t *Type) {
	p := v.Type()
	if p.Kind != PointerKind {
		r.fail("an address of type %s", p)
	}
	if p.Elem != nil && t != nil && p.Elem != t {
		r.fail("an access of type %s through %s", t, p)
	}
}

// append puts an instruction at the end of the current block and gives it the next number if it has a result.
func (b *body) append(in *Instr) {
	if b.cur >= len(b.f.Blocks) {
		b.fail("an instruction after the last block")
	}
	in.Parent = b.f.Blocks[b.cur]
	in.Parent.Instrs = append(in.Parent.Instrs, in)
	if in.Ty.Kind != VoidKind {
		b.values = append(b.values, in)
	}
	if in.IsTerminator() {
		b.cur++
	}
}

func (b *body) readRecord() {
	b.i = 0
	switch b.code {
	case fnDeclareBlocks:
		b.declareBlocks()
		return
	case fnDebugLoc, fnDebugLocAgain:
		b.skipped("debug information: %s", fnNames[b.code])
		return
	case fnBlockAddrUsers:
		return
	case fnOperandBundle:
		b.readBundle()
		return
	}
	if b.code >= fnDebugRecordFirst && b.code <= fnDebugRecordLast {
		b.skipped("debug information: %s", fnNames[b.code])
		return
	}
	in := b.readInstr()
	b.instrs = append(b.instrs, in)
	b.append(in)
	if b.code == fnCmpXchgOld && b.bare {
		// Before weak exchanges existed, the result was the old value alone.
		b.bare = false
		b.values = b.values[:len(b.values)-1]
		b.append(&Instr{Op: OpExtractValue, Ty: in.Ty.Fields[0], Args: []Value{in}, Indices: []uint64{0}})
	}
}

func (b *body) readBundle() {
	tag := b.take()
	if tag >= uint64(len(b.bundleTags)) {
		b.fail("operand bundle tag %d does not exist", tag)
	}
	bundle := Bundle{Tag: b.bundleTags[tag]}
	for b.more() {
		bundle.Args = append(bundle.Args, b.pair())
	}
	b.bundles = append(b.bundles, bundle)
}
