package air

// Limits of types. They are far above what any compiler writes and keep hostile input from making work without end.
const (
	maxTypeDepth  = 200
	maxTypeLeaves = 1 << 16
	maxLanes      = 1 << 16
	maxIntBits    = 1 << 23
)

func (r *reader) typeAt(id uint64) *Type {
	if id >= uint64(len(r.types)) {
		r.fail("type %d does not exist, there are %d", id, len(r.types))
	}
	if r.types[id] == nil {
		// Only named structs are referred to before their record.
		r.types[id] = r.m.NamedStruct("")
		r.forwardTypes[id] = true
	}
	return r.types[id]
}

// readTypes reads the type table.
func (r *reader) readTypes() {
	if r.types != nil {
		r.fail("a second type table")
	}
	r.forwardTypes = map[uint64]bool{}
	next := 0
	r.blocks(func() {
		switch r.code {
		case typNumEntry:
			const leastBits = 4 // of a record
			n := r.op(0)
			if r.types != nil || n > r.left()/leastBits {
				r.fail("a type table of %d types", n)
			}
			r.types = make([]*Type, n)
			return
		case typStructName:
			r.structName = r.text(0)
			return
		}
		if next >= len(r.types) {
			r.fail("more types than the %d announced", len(r.types))
		}
		t := r.readType(uint64(next))
		if old := r.types[next]; old != nil && old != t {
			r.fail("type %d is used before its record and is no named struct", next)
		}
		r.types[next] = t
		delete(r.forwardTypes, uint64(next))
		next++
	}, nil)
	if next != len(r.types) || len(r.forwardTypes) != 0 {
		r.fail("%d types, %d were announced", next, len(r.types))
	}
	r.checkTypes()
}

// readType makes the type of the current record, which is number id.
func (r *reader) readType(id uint64) *Type {
	ts := &r.m.Types
	switch r.code {
	case typVoid:
		return ts.Void()
	case typHalf:
		return ts.Half()
	case typBFloat:
		return ts.BFloat()
	case typFloat:
		return ts.Float()
	case typDouble:
		return ts.Double()
	case typLabel:
		return ts.Label()
	case typMetadata:
		return ts.Metadata()
	case typToken:
		return ts.Token()
	case typX86FP80:
		return ts.Other("x86_fp80")
	case typFP128:
		return ts.Other("fp128")
	case typPPCFP128:
		return ts.Other("ppc_fp128")
	case typX86MMX:
		return ts.Other("x86_mmx")
	case typX86AMX:
		return ts.Other("x86_amx")
	case typTarget:
		return ts.Other(`target("` + r.structName + `")`)
	case typInteger:
		n := r.op(0)
		if n == 0 || n > maxIntBits {
			r.fail("an integer of %d bits", n)
		}
		return ts.Int(int(n))
	case typPointer:
		return ts.Pointer(r.memoryType(r.op(0)), r.space(r.opt(1)))
	case typOpaquePointer:
		r.opaque = true
		return ts.Pointer(nil, r.space(r.op(0)))
	case typArray:
		return ts.Array(r.memoryType(r.op(1)), r.op(0))
	case typVector:
		return r.vectorType()
	case typStructAnon:
		return ts.Struct(r.op(0) != 0, r.fieldTypes(1)...)
	case typStructNamed, typOpaque:
		t := r.types[id]
		if t == nil || !r.forwardTypes[id] {
			t = ts.NamedStruct("")
		}
		t.Name, r.structName = r.structName, ""
		if r.code == typOpaque {
			t.Opaque = true
		} else {
			t.Packed, t.Fields = r.op(0) != 0, r.fieldTypes(1)
		}
		return t
	case typFunction, typFunctionOld:
		first := 1
		if r.code == typFunctionOld {
			first = 2
		}
		ret := r.typeAt(r.op(first))
		return ts.FuncType(ret, r.op(0) != 0, r.paramTypes(first+1)...)
	}
	r.fail("type record %d is not known", r.code)
	return nil
}

func (r *reader) vectorType() *Type {
	n, elem := r.op(0), r.typeAt(r.op(1))
	if len(r.record) > 2 && r.record[2] != 0 {
		return r.m.Other("<vscale x " + elem.String() + ">")
	}
	if n == 0 || n > maxLanes {
		r.fail("a vector of %d elements", n)
	}
	if elem.Kind != IntKind && elem.Kind != PointerKind && elem.Kind != OtherKind && !elem.IsFloat() {
		r.fail("a vector of %s", kindName(elem))
	}
	return r.m.Vector(elem, n)
}

// memoryType is type id, as something that lies in memory (or a function that is pointed to).
func (r *reader) memoryType(id uint64) *Type {
	t := r.typeAt(id)
	switch t.Kind {
	case VoidKind, LabelKind, MetadataKind, TokenKind:
		r.fail("%s has no place in memory", kindName(t))
	}
	return t
}

func (r *reader) fieldTypes(from int) []*Type {
	var ts []*Type
	for i := from; i < len(r.record); i++ {
		t := r.memoryType(r.record[i])
		if t.Kind == FunctionKind {
			r.fail("a struct has a function as a field")
		}
		ts = append(ts, t)
	}
	return ts
}

func (r *reader) paramTypes(from int) []*Type {
	var ts []*Type
	for i := from; i < len(r.record); i++ {
		t := r.typeAt(r.record[i])
		if t.Kind == VoidKind || t.Kind == FunctionKind {
			r.fail("a parameter is of type %s", kindName(t))
		}
		ts = append(ts, t)
	}
	return ts
}

// space checks an address space, which LLVM keeps below 2^24.
func (r *reader) space(n uint64) int {
	if n >= 1<<24 {
		r.fail("address space %d", n)
	}
	return int(n)
}

// kindName names a type without printing what it contains, for types that are not checked yet.
func kindName(t *Type) string {
	switch t.Kind {
	case StructKind:
		return "a struct"
	case FunctionKind:
		return "a function"
	case ArrayKind:
		return "an array"
	case PointerKind:
		return "a pointer"
	case VectorKind:
		return "a vector"
	}
	return t.String()
}

// checkTypes refuses types that contain themselves, and types whose nesting would take unreasonable work to print or lay
// out.
func (r *reader) checkTypes() {
	type info struct {
		depth, leaves int
		state         uint8 // 1 being visited, 2 done
	}
	infos := map[*Type]*info{}
	var visit func(t *Type, level int) *info
	visit = func(t *Type, level int) *info {
		if i := infos[t]; i != nil {
			if i.state == 1 {
				r.fail("type %s contains itself", t.Name)
			}
			return i
		}
		if level > maxTypeDepth {
			r.fail("types nest deeper than %d", maxTypeDepth)
		}
		i := &info{state: 1}
		infos[t] = i
		add := func(e *Type) {
			j := visit(e, level+1)
			i.leaves = min(i.leaves+j.leaves, maxTypeLeaves+1)
			i.depth = max(i.depth, j.depth+1)
		}
		switch t.Kind {
		case PointerKind:
			// A pointer to a named struct is where types may be recursive.
			if t.Elem != nil && !(t.Elem.Kind == StructKind && t.Elem.Identified) {
				add(t.Elem)
			}
		case ArrayKind, VectorKind:
			add(t.Elem)
		case StructKind:
			for _, f := range t.Fields {
				add(f)
			}
		case FunctionKind:
			add(t.Ret)
			for _, p := range t.Params {
				add(p)
			}
		}
		i.leaves = max(i.leaves, 1)
		i.state = 2
		if i.leaves > maxTypeLeaves {
			r.fail("a type of more than %d parts", maxTypeLeaves)
		}
		if i.depth > maxTypeDepth {
			r.fail("types nest deeper than %d", maxTypeDepth)
		}
		return i
	}
	unnamed := 0
	for _, t := range r.types {
		visit(t, 0)
		if t.Kind == StructKind && t.Identified && t.Name == "" {
			t.Bits = unnamed
			unnamed++
		}
	}
}
