package msl

import (
	"fmt"
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// A retyper gives the pointers of a module the types they had before LLVM dropped them: Metal's loaders take typed
// pointers only. Every pointer value gets one pointee, the one that its uses ask for most, or that the source says for a
// kernel's parameters; where a use needs another, a bitcast goes between.
type retyper struct {
	*lowering
	// groups joins values that must have one type: phis, selects and what flows into them.
	groups map[air.Value]air.Value
	// wanted counts, for each group, the pointees that uses ask for.
	wanted map[air.Value]*wishes
	// pointee is the decision per value.
	pointee map[air.Value]*air.Type
	structs map[*air.Type]*air.Type
	// casts are the bitcasts made, by value and type, so that there is one of each.
	casts map[castKey]*air.Instr
	// added are instructions to be put after a value's definition, or at the beginning of the entry block.
	added map[air.Value][]*air.Instr
	// leading go right before an instruction.
	leading map[*air.Instr][]*air.Instr
	atEntry []*air.Instr
	err     error
}

type castKey struct {
	v air.Value
	t *air.Type
}

// A wishes counts types in the order they were first asked for.
type wishes struct {
	types  []*air.Type
	counts []int
}

func (w *wishes) add(t *air.Type, n int) {
	for i, u := range w.types {
		if u == t {
			w.counts[i] += n
			return
		}
	}
	w.types = append(w.types, t)
	w.counts = append(w.counts, n)
}

func (w *wishes) best() *air.Type {
	var best *air.Type
	most := 0
	for i, t := range w.types {
		if w.counts[i] > most {
			best, most = t, w.counts[i]
		}
	}
	return best
}

func isPointer(t *air.Type) bool { return t != nil && t.Kind == air.PointerKind }

// retype runs over the whole module.
func (l *lowering) retype() error {
	r := &retyper{lowering: l, structs: map[*air.Type]*air.Type{}}
	r.pointee = map[air.Value]*air.Type{}
	r.globals()
	for _, f := range l.m.Functions {
		r.signature(f)
	}
	for _, f := range l.m.Functions {
		if !f.Declaration() {
			r.function(f)
		}
	}
	r.initialisers()
	return r.err
}

func (r *retyper) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// typed is t with the opaque pointers in it made pointers to bytes.
func (r *retyper) typed(t *air.Type) *air.Type {
	switch t.Kind {
	case air.PointerKind:
		if t.Elem == nil {
			return r.m.Pointer(r.m.Int(8), t.Space)
		}
		return r.m.Pointer(r.typed(t.Elem), t.Space)
	case air.VectorKind:
		return r.m.Vector(r.typed(t.Elem), t.Len)
	case air.ArrayKind:
		return r.m.Array(r.typed(t.Elem), t.Len)
	case air.StructKind:
		return r.typedStruct(t)
	}
	return t
}

func (r *retyper) typedStruct(t *air.Type) *air.Type {
	if u, ok := r.structs[t]; ok {
		return u
	}
	r.structs[t] = t // against a struct that contains itself through a pointer, which is opaque anyway
	fields := make([]*air.Type, len(t.Fields))
	same := true
	for i, f := range t.Fields {
		fields[i] = r.typed(f)
		same = same && fields[i] == f
	}
	switch {
	case same:
	case t.Name == "":
		r.structs[t] = r.m.Struct(t.Packed, fields...)
	default:
		u := r.m.NamedStruct(t.Name)
		u.Fields, u.Packed = fields, t.Packed
		r.structs[t] = u
	}
	return r.structs[t]
}

// globals types the variables: their pointers say what they hold.
func (r *retyper) globals() {
	for _, g := range r.m.Globals {
		if g.Linkage == air.AppendingLinkage {
			continue
		}
		g.ValueType = r.typed(g.ValueType)
		g.Ty = r.m.Pointer(g.ValueType, g.Space)
	}
}

// signature types a function's parameters: those of the kernel by the source, those of intrinsics by their names.
func (r *retyper) signature(f *air.Function) {
	params := make([]*air.Type, len(f.FuncType.Params))
	for i, p := range f.FuncType.Params {
		params[i] = r.typed(p)
		if !isPointer(p) {
			continue
		}
		if t := r.parameterPointee(f, i); t != nil {
			params[i] = r.m.Pointer(t, p.Space)
		}
	}
	f.FuncType = r.m.FuncType(r.typed(f.FuncType.Ret), f.FuncType.Variadic, params...)
	f.Ty = r.m.Pointer(f.FuncType, 0)
	for i, a := range f.Args {
		a.Ty = params[i]
		if isPointer(a.Ty) {
			r.pointee[a] = a.Ty.Elem
		}
	}
	if f.Declaration() {
		f.Name = typedIntrinsicName(f.Name)
	}
}

// parameterPointee is what a parameter points to, nil for bytes.
func (r *retyper) parameterPointee(f *air.Function, i int) *air.Type {
	switch {
	case f == r.fn:
		return r.sourceType(r.k.params[i].typ)
	case strings.HasPrefix(f.Name, "air.atomic."), strings.HasPrefix(f.Name, "air.sincos."), strings.HasPrefix(f.Name, "air.fast_sincos."),
		strings.HasPrefix(f.Name, "air.simdgroup_matrix_8x8_load."), strings.HasPrefix(f.Name, "air.simdgroup_matrix_8x8_store."):
		suffix := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		if len(suffix) > 2 && suffix[0] == 'p' {
			suffix = suffix[2:] // p1f32
		}
		switch suffix {
		case "i32":
			return r.m.Int(32)
		case "i64":
			return r.m.Int(64)
		case "f32":
			return r.m.Float()
		case "f16":
			return r.m.Half()
		case "bf16":
			return r.m.BFloat()
		}
	}
	return nil
}

// typedIntrinsicName spells the pointers in an intrinsic's name as LLVM 14 did: llvm.memcpy.p0i8.p1i8.i64.
func typedIntrinsicName(name string) string {
	if !strings.HasPrefix(name, "llvm.mem") {
		return name
	}
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if len(p) == 2 && p[0] == 'p' && isDigit(p[1]) {
			parts[i] = p + "i8"
		}
	}
	return strings.Join(parts, ".")
}

// sourceType is what the pointer or reference d points to; nil if that has no type of its own (void).
func (r *retyper) sourceType(d *debugType) *air.Type {
	if d.kind != pointerType && d.kind != referenceType {
		return nil
	}
	return r.airType(d.elem, 0)
}

// maxTypeDepth bounds the descent into nested types.
const maxTypeDepth = 32

// airType makes the type of memory that d describes, nil if it cannot.
func (r *retyper) airType(d *debugType, depth int) *air.Type {
	if depth > maxTypeDepth {
		return nil
	}
	switch d.kind {
	case scalarType:
		switch d.name {
		case "float":
			return r.m.Float()
		case "half":
			return r.m.Half()
		case "bfloat":
			return r.m.BFloat()
		}
		return r.m.Int(d.size * 8)
	case vectorDebugType, arrayType:
		elem := r.airType(d.elem, depth+1)
		if elem == nil || d.count == 0 {
			return nil
		}
		if d.kind == vectorDebugType {
			return r.m.Vector(elem, uint64(d.count))
		}
		return r.m.Array(elem, uint64(d.count))
	case structType:
		return r.airStruct(d, depth)
	}
	return nil
}

// airStruct makes a named struct whose layout is the source's, nil if members are laid out in a way that AIR would not.
func (r *retyper) airStruct(d *debugType, depth int) *air.Type {
	if d.name == "" || len(d.members) == 0 {
		return nil
	}
	name := "struct." + d.name
	var fields []*air.Type
	for _, m := range d.members {
		f := r.airType(m.typ, depth+1)
		if f == nil {
			return nil
		}
		fields = append(fields, f)
	}
	if t := r.known[name]; t != nil {
		return t
	}
	layout := &air.Type{Kind: air.StructKind, Fields: fields}
	offsets, size := air.StructLayout(layout)
	if int(size) != d.size {
		return nil
	}
	for i, m := range d.members {
		if int(offsets[i]) != m.offset {
			return nil
		}
	}
	t := r.m.NamedStruct(name)
	t.Fields = fields
	r.known[name] = t
	return t
}
