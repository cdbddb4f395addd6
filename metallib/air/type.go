package air

import (
	"fmt"
	"strings"
	"sync"
)

// TypeKind says which of LLVM's types a [Type] is.
type TypeKind uint8

// The kinds of types.
const (
	VoidKind TypeKind = iota
	HalfKind
	BFloatKind
	FloatKind
	DoubleKind
	IntKind
	PointerKind
	VectorKind
	ArrayKind
	StructKind
	FunctionKind
	LabelKind
	MetadataKind
	TokenKind
	// OtherKind is a type that this package names but gives no meaning to (x86_fp80, target extension types and so on).
	OtherKind
)

// A Type is an LLVM type. Types of one module are unique: two structurally equal types other than named structs are the
// same pointer, so types are compared with ==. They are made with the methods of [Types].
type Type struct {
	Kind TypeKind
	// Bits is the width of an integer.
	Bits int
	// Elem is the element of a vector or array, or the pointee of a typed pointer (nil for an opaque pointer).
	Elem *Type
	// Len is the number of elements of a vector or array.
	Len uint64
	// Space is the address space of a pointer.
	Space int
	// Fields are the members of a struct; Packed and Opaque describe its form; Name is empty for a literal struct.
	Fields []*Type
	Packed bool
	Opaque bool
	// Name is the name of a named struct, or of a type of OtherKind.
	Name string
	// Identified is set for structs made with NamedStruct, which are types of their own even without a name; an unnamed
	// one is printed by its number, which is in Bits.
	Identified bool
	// Ret, Params and Variadic describe a function type.
	Ret      *Type
	Params   []*Type
	Variadic bool
}

// Types makes and holds the unique types of a module. The zero value is ready to use, by several goroutines at once.
type Types struct {
	mu    sync.Mutex
	byKey map[string]*Type
	// named and unnamed count the named structs, for their keys and numbers.
	named, unnamed int
}

func (ts *Types) intern(key string, t Type) *Type {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.byKey == nil {
		ts.byKey = map[string]*Type{}
	}
	if u, ok := ts.byKey[key]; ok {
		return u
	}
	u := &t
	ts.byKey[key] = u
	return u
}

func (ts *Types) key(kind string, n uint64, of ...*Type) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d", kind, n)
	for _, t := range of {
		fmt.Fprintf(&b, ",%p", t)
	}
	return b.String()
}

// Void is the type of no value.
func (ts *Types) Void() *Type { return ts.intern("void", Type{Kind: VoidKind}) }

// Half is IEEE binary16.
func (ts *Types) Half() *Type { return ts.intern("half", Type{Kind: HalfKind}) }

// BFloat is bfloat16.
func (ts *Types) BFloat() *Type { return ts.intern("bfloat", Type{Kind: BFloatKind}) }

// Float is IEEE binary32.
func (ts *Types) Float() *Type { return ts.intern("float", Type{Kind: FloatKind}) }

// Double is IEEE binary64.
func (ts *Types) Double() *Type { return ts.intern("double", Type{Kind: DoubleKind}) }

// Label is the type of a basic block.
func (ts *Types) Label() *Type { return ts.intern("label", Type{Kind: LabelKind}) }

// Metadata is the type of metadata used as an operand.
func (ts *Types) Metadata() *Type { return ts.intern("metadata", Type{Kind: MetadataKind}) }

// Token is LLVM's token type.
func (ts *Types) Token() *Type { return ts.intern("token", Type{Kind: TokenKind}) }

// Other is a type known only by name.
func (ts *Types) Other(name string) *Type {
	return ts.intern("other "+name, Type{Kind: OtherKind, Name: name})
}

// Int is the integer of the given width.
func (ts *Types) Int(bits int) *Type {
	return ts.intern(ts.key("i", uint64(bits)), Type{Kind: IntKind, Bits: bits})
}

// Pointer is a pointer to elem in an address space; elem nil makes an opaque pointer.
func (ts *Types) Pointer(elem *Type, space int) *Type {
	return ts.intern(ts.key("p", uint64(space), elem), Type{Kind: PointerKind, Elem: elem, Space: space})
}

// Vector is n elements that are computed on together.
func (ts *Types) Vector(elem *Type, n uint64) *Type {
	return ts.intern(ts.key("v", n, elem), Type{Kind: VectorKind, Elem: elem, Len: n})
}

// Array is n elements in memory.
func (ts *Types) Array(elem *Type, n uint64) *Type {
	return ts.intern(ts.key("a", n, elem), Type{Kind: ArrayKind, Elem: elem, Len: n})
}

// Struct is the literal (unnamed) struct of the given fields.
func (ts *Types) Struct(packed bool, fields ...*Type) *Type {
	k := "s"
	if packed {
		k = "sp"
	}
	return ts.intern(ts.key(k, uint64(len(fields)), fields...), Type{Kind: StructKind, Fields: fields, Packed: packed})
}

// NamedStruct makes a new named struct; fields may be set afterwards (a struct may contain pointers to itself).
// Each call makes a distinct type, as in LLVM.
func (ts *Types) NamedStruct(name string) *Type {
	ts.mu.Lock()
	ts.named++
	key := fmt.Sprintf("named %d", ts.named)
	t := Type{Kind: StructKind, Name: name, Identified: true}
	if name == "" {
		t.Bits = ts.unnamed
		ts.unnamed++
	}
	ts.mu.Unlock()
	return ts.intern(key, t)
}

// FuncType is the type of a function.
func (ts *Types) FuncType(ret *Type, variadic bool, params ...*Type) *Type {
	k := "f"
	if variadic {
		k = "fv"
	}
	return ts.intern(ts.key(k, uint64(len(params)), append([]*Type{ret}, params...)...),
		Type{Kind: FunctionKind, Ret: ret, Params: params, Variadic: variadic})
}

// IsFloat tells whether t is a floating-point scalar.
func (t *Type) IsFloat() bool {
	return t != nil && (t.Kind == HalfKind || t.Kind == BFloatKind || t.Kind == FloatKind || t.Kind == DoubleKind)
}

// Scalar is the element of a vector, and t itself otherwise.
func (t *Type) Scalar() *Type {
	if t != nil && t.Kind == VectorKind {
		return t.Elem
	}
	return t
}

// Lanes is the number of elements of a vector, and 1 otherwise.
func (t *Type) Lanes() int {
	if t != nil && t.Kind == VectorKind {
		return int(t.Len)
	}
	return 1
}

// ScalarBits is the width of t's scalar in bits: 64 for pointers, 0 for types without a width.
func (t *Type) ScalarBits() int {
	s := t.Scalar()
	if s == nil {
		return 0
	}
	switch s.Kind {
	case IntKind:
		return s.Bits
	case HalfKind, BFloatKind:
		return 16
	case FloatKind:
		return 32
	case DoubleKind, PointerKind:
		return 64
	}
	return 0
}

// String prints t as LLVM's assembly does.
func (t *Type) String() string {
	if t == nil {
		return nothing
	}
	switch t.Kind {
	case VoidKind:
		return "void"
	case HalfKind:
		return "half"
	case BFloatKind:
		return "bfloat"
	case FloatKind:
		return "float"
	case DoubleKind:
		return "double"
	case LabelKind:
		return "label"
	case MetadataKind:
		return "metadata"
	case TokenKind:
		return "token"
	case OtherKind:
		return t.Name
	case IntKind:
		return fmt.Sprintf("i%d", t.Bits)
	case PointerKind:
		space := ""
		if t.Space != 0 {
			space = fmt.Sprintf(" addrspace(%d)", t.Space)
		}
		if t.Elem == nil {
			return "ptr" + space
		}
		return t.Elem.String() + space + "*"
	case VectorKind:
		return fmt.Sprintf("<%d x %s>", t.Len, t.Elem)
	case ArrayKind:
		return fmt.Sprintf("[%d x %s]", t.Len, t.Elem)
	case StructKind:
		if t.Name != "" {
			return "%" + quoteName(t.Name)
		}
		if t.Identified {
			return fmt.Sprintf("%%%d", t.Bits)
		}
		return t.Body()
	case FunctionKind:
		return fmt.Sprintf("%s (%s)", t.Ret, typeList(t.Params, t.Variadic))
	}
	return fmt.Sprintf("type(%d)", t.Kind)
}

// Body prints the fields of a struct.
func (t *Type) Body() string {
	if t == nil {
		return nothing
	}
	s := "{ " + typeList(t.Fields, false) + " }"
	if len(t.Fields) == 0 {
		s = "{}"
	}
	if t.Packed {
		return "<" + s + ">"
	}
	return s
}

func typeList(ts []*Type, variadic bool) string {
	var parts []string
	for _, t := range ts {
		parts = append(parts, t.String())
	}
	if variadic {
		parts = append(parts, "...")
	}
	return strings.Join(parts, ", ")
}

// quoteName puts a name into quotes if LLVM's assembly needs them.
func quoteName(s string) string {
	plain := s != "" && (s[0] < '0' || s[0] > '9')
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c == '.' || c == '_' || c == '$' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	if plain {
		return s
	}
	return quote(s)
}

// quote puts text into quotes as LLVM's assembly does, with what cannot be printed in hexadecimal.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "\\%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
