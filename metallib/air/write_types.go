package air

func (w *writer) writeTypes() {
	w.enter(typeBlock, 4)
	w.record(typNumEntry, uint64(len(w.e.types)))
	for _, t := range w.e.types {
		w.writeType(t)
	}
	w.end()
}

// otherTypes are the types known only by name that LLVM 14 has records for.
var otherTypes = map[string]uint64{"x86_fp80": typX86FP80, "fp128": typFP128, "ppc_fp128": typPPCFP128, "x86_mmx": typX86MMX,
	"x86_amx": typX86AMX}

func (w *writer) writeType(t *Type) {
	ids := func(first uint64, ts []*Type) []uint64 {
		ops := append(w.ops[:0], first)
		for _, u := range ts {
			// A named struct that is still to come has its number already, since all types are numbered by now.
			ops = append(ops, w.e.typeID(u))
		}
		return ops
	}
	switch t.Kind {
	case VoidKind:
		w.record(typVoid)
	case HalfKind:
		w.record(typHalf)
	case BFloatKind:
		w.record(typBFloat)
	case FloatKind:
		w.record(typFloat)
	case DoubleKind:
		w.record(typDouble)
	case LabelKind:
		w.record(typLabel)
	case MetadataKind:
		w.record(typMetadata)
	case TokenKind:
		w.record(typToken)
	case IntKind:
		w.record(typInteger, uint64(t.Bits))
	case PointerKind:
		w.record(typPointer, w.e.typeID(t.Elem), uint64(t.Space))
	case VectorKind:
		w.record(typVector, t.Len, w.e.typeID(t.Elem))
	case ArrayKind:
		w.record(typArray, t.Len, w.e.typeID(t.Elem))
	case StructKind:
		switch {
		case !t.Identified:
			w.record(typStructAnon, ids(b2u(t.Packed), t.Fields)...)
		case t.Opaque:
			w.structName(t)
			w.record(typOpaque, 0)
		default:
			w.structName(t)
			w.record(typStructNamed, ids(b2u(t.Packed), t.Fields)...)
		}
	case FunctionKind:
		w.record(typFunction, ids(b2u(t.Variadic), append([]*Type{t.Ret}, t.Params...))...)
	default:
		code, ok := otherTypes[t.Name]
		if !ok {
			refuse("LLVM 14 has no type %s", t)
		}
		w.record(code)
	}
}

func (w *writer) structName(t *Type) {
	if t.Name != "" {
		w.text(typStructName, t.Name)
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
