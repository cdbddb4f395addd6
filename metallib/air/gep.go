package air

// gepType is the type of a getelementptr, nil if it depends on a constant that is still to come. What is wrong goes to
// fail, which does not return.
func (ts *Types) gepType(src *Type, args []Value, fail func(format string, args ...any)) *Type {
	base := args[0].Type()
	p := base.Scalar()
	if p.Kind != PointerKind {
		fail("a getelementptr from %s", base)
	}
	if p.Elem != nil && p.Elem != src {
		fail("a getelementptr over %s from %s", src, base)
	}
	t := src
	var lanes uint64
	if base.Kind == VectorKind {
		lanes = base.Len
	}
	for i, a := range args[1:] {
		it := a.Type()
		if it.Scalar().Kind != IntKind {
			fail("a getelementptr index of type %s", it)
		}
		if it.Kind == VectorKind {
			lanes = it.Len
		}
		if i == 0 {
			continue
		}
		switch t.Kind {
		case ArrayKind, VectorKind:
			t = t.Elem
		case StructKind:
			if _, ok := a.(*forwardRef); ok {
				return nil
			}
			n, ok := constIndex(a)
			if !ok || n >= uint64(len(t.Fields)) {
				fail("a getelementptr steps into a field of %s that does not exist", t)
			}
			t = t.Fields[n]
		default:
			fail("a getelementptr steps into %s", t)
		}
	}
	if p.Elem == nil {
		t = p
	} else {
		t = ts.Pointer(t, p.Space)
	}
	if lanes > 0 {
		t = ts.Vector(t, lanes)
	}
	return t
}
