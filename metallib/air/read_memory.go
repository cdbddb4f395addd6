package air

// readMemoryOp reads the instructions that make, read or write memory.
func (b *body) readMemoryOp(in *Instr) {
	switch b.code {
	case fnAlloca:
		b.readAlloca(in)
	case fnLoad, fnLoadAtomic:
		in.Op = OpLoad
		p := b.pair()
		in.Args = []Value{p}
		rest := 2
		if b.code == fnLoadAtomic {
			rest = 4
		}
		if len(b.record)-b.i > rest {
			in.Ty = b.valueType(b.ty())
		} else {
			in.Ty = b.valueType(b.pointee(p.Type()))
		}
		b.address(p, in.Ty)
		in.Align = b.align()
		b.volatile(in)
		if b.code == fnLoadAtomic {
			b.atomic(in)
		}
	case fnStore, fnStoreAtomic, fnStoreOld, fnStoreAtomicOld:
		in.Op = OpStore
		p := b.pair()
		var v Value
		if b.code == fnStore || b.code == fnStoreAtomic {
			v = b.pair()
		} else {
			v = b.val(b.pointee(p.Type()))
		}
		b.address(p, b.valueType(v.Type()))
		in.Args = []Value{v, p}
		in.Align = b.align()
		b.volatile(in)
		if b.code == fnStoreAtomic || b.code == fnStoreAtomicOld {
			b.atomic(in)
		}
	case fnFence:
		in.Op = OpFence
		b.atomic(in)
	case fnCmpXchg, fnCmpXchgOld:
		b.readCmpXchg(in)
	case fnAtomicRMW, fnAtomicRMWOld:
		in.Op = OpAtomicRMW
		p := b.pair()
		var v Value
		if b.code == fnAtomicRMW {
			v = b.pair()
		} else {
			v = b.val(b.pointee(p.Type()))
		}
		b.address(p, v.Type())
		in.Args, in.Ty = []Value{p, v}, v.Type()
		op := b.take()
		if op > 255 {
			b.fail("atomicrmw operation %d", op)
		}
		in.RMW = uint8(op)
		b.volatile(in)
		b.atomic(in)
		if b.more() {
			in.Align = b.align()
		}
	}
}

func (b *body) volatile(in *Instr) {
	if b.take() != 0 {
		in.Flags |= Volatile
	}
}

// ordering takes a memory ordering.
func (b *body) ordering() uint8 {
	const seqCst = 6
	o := b.take()
	if o > seqCst {
		b.fail("memory ordering %d", o)
	}
	return uint8(o)
}

func (b *body) atomic(in *Instr) {
	in.Ordering = b.ordering()
	in.SyncScope = uint32(b.take())
	if in.Ordering == 0 {
		b.fail("an atomic access without an ordering")
	}
}

// The bits of an alloca's alignment field.
const (
	allocaAlignBits    = 0x1f
	allocaInAlloca     = 1 << 5
	allocaExplicitType = 1 << 6
	allocaSwiftError   = 1 << 7
	allocaAlignHigh    = 8
)

func (b *body) readAlloca(in *Instr) {
	in.Op = OpAlloca
	t := b.ty()
	countType := b.ty()
	in.Args = []Value{b.ref(b.take(), countType)}
	bits := b.take()
	space := b.allocaSpace
	if b.more() {
		space = b.space(b.take())
	}
	if countType.Kind != IntKind {
		b.fail("an alloca counted in %s", countType)
	}
	if bits&allocaExplicitType == 0 {
		if t.Kind == PointerKind {
			space = t.Space
		}
		t = b.pointee(t)
	}
	in.SourceType = b.valueType(t)
	in.Ty = b.pointerTo(t, space)
	in.Align = b.alignment(bits&allocaAlignBits | bits>>allocaAlignHigh<<5)
	if bits&allocaInAlloca != 0 {
		in.Flags |= InAlloca
	}
	if bits&allocaSwiftError != 0 {
		in.Flags |= SwiftError
	}
}

func (b *body) readCmpXchg(in *Instr) {
	in.Op = OpCmpXchg
	p := b.pair()
	var want Value
	if b.code == fnCmpXchg {
		want = b.pair()
	} else {
		want = b.val(b.pointee(p.Type()))
	}
	t := want.Type()
	b.address(p, t)
	in.Args = []Value{p, want, b.val(t)}
	in.Ty = b.m.Struct(false, t, b.m.Int(1))
	b.volatile(in)
	b.atomic(in)
	in.FailureOrdering = in.Ordering
	if b.code == fnCmpXchg || b.more() {
		in.FailureOrdering = b.ordering()
	} else {
		const release, acqRel, monotonic, acquire = 4, 5, 2, 3
		switch in.Ordering {
		case release:
			in.FailureOrdering = monotonic
		case acqRel:
			in.FailureOrdering = acquire
		}
	}
	// Weak exchanges came together with the result's success bit.
	if b.bare = b.code == fnCmpXchgOld && !b.more(); !b.bare && b.take() != 0 {
		in.Flags |= Weak
	}
	if b.more() {
		in.Align = b.align()
	}
}
