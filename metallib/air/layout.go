package air

// Size is the number of bytes that a value of type t occupies in an array (its allocation size) under AIR's data layout,
// which is the same in every Apple file since 2018: natural alignment, 64-bit pointers, 3-element vectors as wide as
// 4-element ones. Nil, like void, has none.
func Size(t *Type) uint64 {
	a := Align(t)
	return (storeSize(t) + a - 1) / a * a
}

// StoreSize is the number of bytes that a load or store of t touches.
func StoreSize(t *Type) uint64 { return storeSize(t) }

func storeSize(t *Type) uint64 {
	if t == nil {
		return 0
	}
	switch t.Kind {
	case ArrayKind:
		return t.Len * Size(t.Elem)
	case StructKind:
		_, size := StructLayout(t)
		return size
	case VectorKind:
		return (uint64(t.Elem.ScalarBits())*t.Len + 7) / 8
	}
	return uint64(t.ScalarBits()+7) / 8
}

// Align is the ABI alignment of t in bytes.
func Align(t *Type) uint64 {
	if t == nil {
		return 1
	}
	switch t.Kind {
	case ArrayKind:
		return Align(t.Elem)
	case StructKind:
		if t.Packed {
			return 1
		}
		a := uint64(1)
		for _, f := range t.Fields {
			a = max(a, Align(f))
		}
		return a
	}
	return ceilPow2(max(storeSize(t), 1))
}

// StructLayout gives the byte offset of each field of a struct and its size with tail padding.
func StructLayout(t *Type) (offsets []uint64, size uint64) {
	if t == nil {
		return nil, 0
	}
	for _, f := range t.Fields {
		if !t.Packed {
			a := Align(f)
			size = (size + a - 1) / a * a
		}
		offsets = append(offsets, size)
		size += Size(f)
	}
	a := Align(t)
	return offsets, (size + a - 1) / a * a
}

func ceilPow2(n uint64) uint64 {
	p := uint64(1)
	for p < n {
		p *= 2
	}
	return p
}
