package air

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A constEntry is one constant to be written; equal constants share an entry.
type constEntry struct {
	v   Value // *Const or *InlineAsm
	seq int
	id  int
}

// A constKey tells constants apart: the simple ones by value, the others by text.
type constKey struct {
	ty   *Type
	kind ConstKind
	bits uint64
	rest string
}

// An enumerator numbers what a module refers to: types, values and metadata.
type enumerator struct {
	m *Module

	types   []*Type
	typeIDs map[*Type]int // -1 while a named struct is being entered

	// globals are the numbers of global symbols. Constants of the module follow, then, per function, its arguments,
	// constants and instructions.
	globals map[Value]int
	entries map[constKey]*constEntry
	// byConst finds the entry of a constant seen before without building its key.
	byConst map[Value]*constEntry
	// newKeys and newConsts are what the current function added to the two.
	newKeys   []constKey
	newConsts []Value
	module    []*constEntry // constants of the module
	nextSeq   int
	numFixed  int // globals and constants of the module

	strings   []*MDString
	stringIDs map[string]int
	mdValues  []*MDValue
	mdNodes   []*MDNode
	valueMDs  map[Value]int // by the canonical value, an index into mdValues
	nodeIDs   map[*MDNode]int

	local  map[Value]int // arguments and instructions of the current function
	blocks map[*Block]int
}

func newEnumerator(m *Module) *enumerator {
	e := &enumerator{m: m, typeIDs: map[*Type]int{}, globals: map[Value]int{}, entries: map[constKey]*constEntry{},
		byConst: map[Value]*constEntry{}, stringIDs: map[string]int{}, valueMDs: map[Value]int{}, nodeIDs: map[*MDNode]int{}}
	e.enumerate()
	return e
}

// refuse gives up on a module that cannot be written.
func refuse(format string, args ...any) { panic(bitError{fmt.Sprintf(format, args...)}) }

func (e *enumerator) enumerate() {
	m := e.m
	addGlobal := func(v Value, valueType *Type, attrs AttrList) {
		if _, ok := e.globals[v]; ok {
			refuse("a symbol is twice in the module")
		}
		e.globals[v] = len(e.globals)
		e.addType(valueType)
		e.addType(v.Type())
		e.attrTypes(attrs)
	}
	for _, g := range m.Globals {
		addGlobal(g, g.ValueType, g.Attrs)
	}
	for _, f := range m.Functions {
		addGlobal(f, f.FuncType, f.Attrs)
	}
	for _, a := range m.Aliases {
		addGlobal(a, a.ValueType, AttrList{})
	}
	// What the module itself refers to.
	root := func(v Value) {
		if v != nil {
			e.addConst(v, &e.module)
		}
	}
	for _, g := range m.Globals {
		root(g.Init)
		e.addAttachments(g.Meta)
	}
	for _, a := range m.Aliases {
		root(a.Aliasee)
	}
	for _, n := range m.NamedMD {
		for _, op := range n.Ops {
			e.addMetadata(op)
		}
	}
	for _, f := range m.Functions {
		root(f.Prefix)
		root(f.Prologue)
		root(f.Personality)
		e.addAttachments(f.Meta)
		e.enumerateBody(f)
	}
	e.sort(e.module)
	for i, c := range e.module {
		c.id = len(e.globals) + i
	}
	e.numFixed = len(e.globals) + len(e.module)
}

// enumerateBody finds the types and metadata of a body. Its constants are numbered when it is written.
func (e *enumerator) enumerateBody(f *Function) {
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			e.addType(in.Ty)
			if in.SourceType != nil {
				e.addType(in.SourceType)
			}
			if in.FuncType != nil {
				e.addType(in.FuncType)
			}
			e.attrTypes(in.Attrs)
			e.addAttachments(in.Meta)
			e.eachOperand(in, func(v Value) {
				e.valueTypes(v)
				if mv, ok := v.(*MetadataValue); ok {
					if md, ok := mv.MD.(*MDValue); !ok || isConstant(md.V) {
						e.addMetadata(mv.MD)
					}
				}
			})
		}
	}
}

// eachOperand visits the values that an instruction uses.
func (e *enumerator) eachOperand(in *Instr, visit func(Value)) {
	for _, a := range in.Args {
		visit(a)
	}
	if in.Callee != nil {
		visit(in.Callee)
	}
	for _, b := range in.Bundles {
		for _, a := range b.Args {
			visit(a)
		}
	}
}

// valueTypes adds the types of a value and of what a constant consists of.
func (e *enumerator) valueTypes(v Value) {
	if v == nil {
		refuse("an operand is missing")
	}
	switch v := v.(type) {
	case *Block:
		return
	case *Const:
		for _, c := range v.Elems {
			e.valueTypes(c)
		}
		if v.Mask != nil {
			e.valueTypes(v.Mask)
		}
		if v.SourceType != nil {
			e.addType(v.SourceType)
		}
	case *InlineAsm:
		e.addType(v.FuncType)
	}
	e.addType(v.Type())
}

func (e *enumerator) attrTypes(l AttrList) {
	add := func(s AttrSet) {
		for _, a := range s {
			if a.Ty != nil {
				e.addType(a.Ty)
			}
		}
	}
	add(l.Fn)
	add(l.Ret)
	for _, p := range l.Params {
		add(p)
	}
}

// addType numbers a type after the types it consists of; only a named struct may be referred to before its own number.
func (e *enumerator) addType(t *Type) {
	if t == nil {
		refuse("a type is missing")
	}
	if _, ok := e.typeIDs[t]; ok {
		return
	}
	if t.Kind == StructKind && t.Identified {
		e.typeIDs[t] = -1
	}
	if t.Kind == PointerKind && t.Elem == nil {
		refuse("opaque pointers cannot be written for LLVM 14: give %s a pointee type", t)
	}
	if t.Elem != nil {
		e.addType(t.Elem)
	}
	for _, f := range t.Fields {
		e.addType(f)
	}
	if t.Kind == FunctionKind {
		e.addType(t.Ret)
		for _, p := range t.Params {
			e.addType(p)
		}
	}
	if id, ok := e.typeIDs[t]; ok && id >= 0 {
		return
	}
	e.typeIDs[t] = len(e.types)
	e.types = append(e.types, t)
}

func (e *enumerator) typeID(t *Type) uint64 {
	id, ok := e.typeIDs[t]
	if !ok || id < 0 {
		refuse("type %s was not numbered", t)
	}
	return uint64(id)
}

// addConst enters a constant and what it consists of into list, unless they are entered already.
func (e *enumerator) addConst(v Value, list *[]*constEntry) *constEntry {
	switch v := v.(type) {
	case *Global, *Function, *Alias:
		if _, ok := e.globals[v]; !ok {
			refuse("%s is used and not in the module", symbolName(v))
		}
		return nil
	case *Const, *InlineAsm:
	default:
		refuse("a constant is needed, not %T", v)
	}
	if c := e.byConst[v]; c != nil {
		return c
	}
	if c, ok := v.(*Const); ok && c.Kind == DataConst && !recordedAsData(c.Ty.Elem) {
		entry := e.addConst(expandData(c), list)
		e.byConst[v] = entry
		e.newConsts = append(e.newConsts, v)
		return entry
	}
	if c, ok := v.(*Const); ok && c.Kind != BlockAddressConst {
		for _, x := range c.Elems {
			e.addConst(x, list)
		}
		if c.Mask != nil {
			e.addConst(c.Mask, list)
		}
	}
	key := e.constKey(v)
	c := e.entries[key]
	if c == nil {
		e.valueTypes(v)
		c = &constEntry{v: v, seq: e.nextSeq}
		e.nextSeq++
		e.entries[key] = c
		*list = append(*list, c)
		e.newKeys = append(e.newKeys, key)
	}
	e.byConst[v] = c
	e.newConsts = append(e.newConsts, v)
	return c
}

// recordedAsData tells whether bitcode has a record for many elements of type t at once.
func recordedAsData(t *Type) bool {
	return t.IsFloat() || t.Bits == 8 || t.Bits == 16 || t.Bits == 32 || t.Bits == 64
}

// expandData makes an aggregate of single constants from data.
func expandData(c *Const) *Const {
	a := &Const{Kind: AggregateConst, Ty: c.Ty}
	for _, d := range c.Data {
		a.Elems = append(a.Elems, ConstInt(c.Ty.Elem, d))
	}
	return a
}

func symbolName(v Value) string {
	switch v := v.(type) {
	case *Global:
		return "@" + v.Name
	case *Function:
		return "@" + v.Name
	case *Alias:
		return "@" + v.Name
	}
	return fmt.Sprintf("%T", v)
}

// isZero tells whether c is the zero of its type.
func isZero(c *Const) bool {
	switch c.Kind {
	case NullConst:
		return true
	case IntConst:
		return c.Bits == 0 && !slices.ContainsFunc(c.Words, func(w uint64) bool { return w != 0 })
	case FloatConst:
		return c.Bits == 0 && len(c.Words) == 0
	}
	return false
}

func (e *enumerator) constKey(v Value) constKey {
	if a, ok := v.(*InlineAsm); ok {
		return constKey{ty: a.Ty, kind: ^ConstKind(0),
			rest: fmt.Sprintf("%p %t %t %t %d %q %q", a.FuncType, a.SideEffect, a.AlignStack, a.CanThrow, a.Dialect, a.Asm, a.Constraints)}
	}
	c := v.(*Const)
	if isZero(c) {
		return constKey{ty: c.Ty}
	}
	k := constKey{ty: c.Ty, kind: c.Kind, bits: c.Bits}
	var b strings.Builder
	words := func(ws []uint64) {
		var buf [8]byte
		for _, w := range ws {
			binary.LittleEndian.PutUint64(buf[:], w)
			b.Write(buf[:])
		}
	}
	switch c.Kind {
	case IntConst, FloatConst:
		words(c.Words)
	case StringConst:
		b.Write(c.Str)
	case DataConst:
		words(c.Data)
	case AggregateConst, ExprConst, OtherConst:
		fmt.Fprintf(&b, "%d %d %d %p %v", c.Op, c.Pred, c.Flags, c.SourceType, c.InRange)
		for _, x := range c.Elems {
			b.WriteString(e.operandKey(x))
		}
		if c.Mask != nil {
			b.WriteString("/" + e.operandKey(c.Mask))
		}
	case BlockAddressConst:
		fmt.Fprintf(&b, "%p %p", c.Elems[0], c.Elems[1])
	}
	k.rest = b.String()
	return k
}

// operandKey names an operand that has been entered.
func (e *enumerator) operandKey(v Value) string {
	if id, ok := e.globals[v]; ok {
		return fmt.Sprintf(" g%d", id)
	}
	return fmt.Sprintf(" c%d", e.byConst[v].seq)
}

// sort groups constants by type, so that few records say the type. Vectors of truth values come first: a select of vectors
// is read by the type of its condition, which must be there.
func (e *enumerator) sort(list []*constEntry) {
	slices.SortStableFunc(list, func(a, b *constEntry) int {
		t, u := a.v.Type(), b.v.Type()
		if c := cmp.Compare(conditionRank(t), conditionRank(u)); c != 0 {
			return c
		}
		return cmp.Compare(e.typeIDs[t], e.typeIDs[u])
	})
}

func conditionRank(t *Type) int {
	if t.Kind == VectorKind && t.Elem.Kind == IntKind && t.Elem.Bits == 1 {
		return 0
	}
	return 1
}

// enterFunction numbers the arguments, constants, instructions and blocks of f, and returns its constants.
func (e *enumerator) enterFunction(f *Function) []*constEntry {
	e.local, e.blocks = map[Value]int{}, map[*Block]int{}
	e.newKeys, e.newConsts = e.newKeys[:0], e.newConsts[:0]
	next := e.numFixed
	for _, a := range f.Args {
		e.local[a] = next
		next++
	}
	var consts []*constEntry
	for i, b := range f.Blocks {
		e.blocks[b] = i
		for _, in := range b.Instrs {
			e.eachOperand(in, func(v Value) {
				switch v.(type) {
				case *Const, *InlineAsm, *Global, *Function, *Alias:
					e.addConst(v, &consts)
				}
			})
		}
	}
	e.sort(consts)
	for _, c := range consts {
		c.id = next
		next++
	}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Ty.Kind != VoidKind {
				e.local[in] = next
				next++
			}
		}
	}
	return consts
}

// leaveFunction forgets the constants of a function, which are numbered anew in the next one.
func (e *enumerator) leaveFunction() {
	for _, k := range e.newKeys {
		delete(e.entries, k)
	}
	for _, v := range e.newConsts {
		delete(e.byConst, v)
	}
}

// valueID is the number of a value.
func (e *enumerator) valueID(v Value) uint64 {
	if id, ok := e.local[v]; ok {
		return uint64(id)
	}
	if id, ok := e.globals[v]; ok {
		return uint64(id)
	}
	if c := e.byConst[v]; c != nil {
		return uint64(c.id)
	}
	refuse("a value of type %s is used where it does not exist", v.Type())
	return 0
}

func (e *enumerator) blockID(b *Block) uint64 {
	id, ok := e.blocks[b]
	if !ok {
		refuse("a branch leaves its function")
	}
	return uint64(id)
}
