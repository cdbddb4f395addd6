package air

// A Value is anything an instruction can name as an operand: [*Arg], [*Instr], [*Const], [*Global], [*Function],
// [*Alias], [*Block] (in blockaddress only), [*MetadataValue] or [*InlineAsm].
type Value interface {
	Type() *Type
}

// Linkage is how a global symbol is seen from outside its module.
type Linkage uint8

// The kinds of linkage, numbered as LLVM's bitcode numbers them today.
const (
	ExternalLinkage            Linkage = 0
	AppendingLinkage           Linkage = 2
	InternalLinkage            Linkage = 3
	ExternalWeakLinkage        Linkage = 7
	CommonLinkage              Linkage = 8
	PrivateLinkage             Linkage = 9
	AvailableExternallyLinkage Linkage = 12
	WeakAnyLinkage             Linkage = 16
	WeakODRLinkage             Linkage = 17
	LinkOnceAnyLinkage         Linkage = 18
	LinkOnceODRLinkage         Linkage = 19
)

// A Symbol is what globals, functions and aliases have in common.
type Symbol struct {
	Name string
	// Ty is the type of the symbol as an operand: a pointer.
	Ty          *Type
	Linkage     Linkage
	Visibility  uint8 // 0 default, 1 hidden, 2 protected
	UnnamedAddr uint8 // 0 none, 1 unnamed_addr, 2 local_unnamed_addr
	DLLStorage  uint8
	ThreadLocal uint8
	DSOLocal    bool
	Section     string
	Comdat      *Comdat
	// Meta are the metadata attachments (of a definition).
	Meta []Attachment
}

// Type is the type of the symbol as an operand: a pointer.
func (s *Symbol) Type() *Type { return s.Ty }

// A Comdat groups symbols that a linker keeps or drops together.
type Comdat struct {
	Name string
	Kind uint8
}

// A Global is a variable or constant of the module.
type Global struct {
	Symbol
	ValueType             *Type
	Space                 int
	IsConst               bool
	ExternallyInitialized bool
	Init                  Value // nil for a declaration
	Align                 uint64
	Attrs                 AttrList
}

// An Alias is another name for a global or function.
type Alias struct {
	Symbol
	ValueType *Type
	Space     int
	Aliasee   Value
	IFunc     bool
}

// A Function is a function definition, or a declaration when it has no blocks.
type Function struct {
	Symbol
	FuncType *Type
	Space    int
	CallConv uint32
	Attrs    AttrList
	Args     []*Arg
	Blocks   []*Block
	Align    uint64
	GC       string
	// Prefix, Prologue and Personality are constants attached to the function, nil if absent.
	Prefix, Prologue, Personality Value
}

// Declaration tells whether f has no body.
func (f *Function) Declaration() bool { return len(f.Blocks) == 0 }

// An Arg is a parameter of a function.
type Arg struct {
	Name   string
	Ty     *Type
	Index  int
	Parent *Function
}

// Type is the type of the parameter.
func (a *Arg) Type() *Type { return a.Ty }

// A Block is a basic block: instructions of which the last is a terminator.
type Block struct {
	Name   string
	Parent *Function
	Instrs []*Instr
	// label is the type of the block as an operand.
	label *Type
}

// Type is LLVM's label type.
func (b *Block) Type() *Type { return b.label }

// Terminator is the last instruction of the block, nil if the block is empty.
func (b *Block) Terminator() *Instr {
	if len(b.Instrs) == 0 {
		return nil
	}
	return b.Instrs[len(b.Instrs)-1]
}

// ConstKind says what a [Const] holds.
type ConstKind uint8

// The kinds of constants.
const (
	// NullConst is the zero of any type (0, null, zeroinitializer).
	NullConst ConstKind = iota
	UndefConst
	PoisonConst
	// IntConst is an integer; its bits are in Const.Bits (and Const.Words if wider than 64).
	IntConst
	// FloatConst is a floating-point number; Const.Bits holds its pattern in its own format.
	FloatConst
	// AggregateConst is a vector, array or struct of Const.Elems.
	AggregateConst
	// DataConst is a vector or array of simple elements, whose bit patterns are Const.Data.
	DataConst
	// StringConst is an array of i8 in Const.Str (a trailing NUL is part of it).
	StringConst
	// ExprConst is a constant expression: Const.Op applied to Const.Elems.
	ExprConst
	// BlockAddressConst is the address of Elems[0] (a function)'s block Elems[1].
	BlockAddressConst
	// TokenNoneConst is the token "none".
	TokenNoneConst
	// OtherConst wraps its operand in Elems[0] (dso_local_equivalent, no_cfi).
	OtherConst
)

// A Const is a constant value.
type Const struct {
	Kind  ConstKind
	Ty    *Type
	Bits  uint64
	Words []uint64 // for integers wider than 64 bits, least significant first
	Elems []Value
	Data  []uint64
	Str   []byte
	// Op and the fields after it describe a constant expression as they do an instruction; Elems are its operands.
	Op         Op
	Pred       Pred
	Flags      Flags
	SourceType *Type    // element type of a getelementptr
	InRange    []uint64 // inrange annotation of a getelementptr as recorded, nil if absent
	Mask       Value    // of a shufflevector expression
}

// Type is the type of the constant.
func (c *Const) Type() *Type { return c.Ty }

// A MetadataValue is metadata used as an operand of a call.
type MetadataValue struct {
	Ty *Type
	MD Metadata
}

// Type is LLVM's metadata type.
func (v *MetadataValue) Type() *Type { return v.Ty }

// InlineAsm is inline assembly used as a callee.
type InlineAsm struct {
	Ty                               *Type
	FuncType                         *Type
	Asm, Constraints                 string
	SideEffect, AlignStack, CanThrow bool
	Dialect                          uint8
}

// Type is the pointer type of the assembly as a callee.
func (a *InlineAsm) Type() *Type { return a.Ty }
