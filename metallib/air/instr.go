package air

// Op is the operation of an instruction or constant expression.
type Op uint8

// The operations. In the comments, A0, A1 … are Instr.Args and B0, B1 … are Instr.Blocks.
const (
	OpInvalid Op = iota

	// Terminators.
	OpRet         // [A0]
	OpBr          // unconditional: B0; conditional: A0, B0 if true, B1 if false
	OpSwitch      // A0 the value; A1… the cases; B0 the default, B1… the targets of the cases
	OpIndirectBr  // A0, B0…
	OpUnreachable //

	// Arithmetic on A0 and A1, integers or vectors of them.
	OpAdd
	OpSub
	OpMul
	OpUDiv
	OpSDiv
	OpURem
	OpSRem
	OpShl
	OpLShr
	OpAShr
	OpAnd
	OpOr
	OpXor

	// Arithmetic on floating-point numbers; OpFNeg has A0 only.
	OpFNeg
	OpFAdd
	OpFSub
	OpFMul
	OpFDiv
	OpFRem

	// Conversions of A0 to Instr.Ty.
	OpTrunc
	OpZExt
	OpSExt
	OpFPTrunc
	OpFPExt
	OpFPToUI
	OpFPToSI
	OpUIToFP
	OpSIToFP
	OpPtrToInt
	OpIntToPtr
	OpBitCast
	OpAddrSpaceCast

	// Comparisons of A0 and A1 by Instr.Pred.
	OpICmp
	OpFCmp

	// Memory.
	OpAlloca        // SourceType is the allocated type, A0 the count
	OpLoad          // A0 the address; Ty the loaded type
	OpStore         // A0 the value, A1 the address
	OpGetElementPtr // SourceType is the type stepped over; A0 the base, A1… the indices
	OpFence
	OpCmpXchg   // A0 address, A1 expected, A2 new; Ty is {T, i1}
	OpAtomicRMW // A0 address, A1 operand; RMW says which

	// Vectors and aggregates.
	OpExtractElement // A0 vector, A1 index
	OpInsertElement  // A0 vector, A1 element, A2 index
	OpShuffleVector  // A0, A1, A2 the constant mask
	OpExtractValue   // A0, Indices
	OpInsertValue    // A0 aggregate, A1 element, Indices

	// Others.
	OpPhi    // Args[i] comes from Blocks[i]
	OpSelect // A0 ? A1 : A2
	OpCall   // Callee; Args are the arguments
	OpFreeze // A0
	OpVAArg  // A0

	// OpUnknown is an instruction that this package can name (Instr.Name) but gives no meaning to.
	OpUnknown
	opCount
)

// Pred is the predicate of a comparison, numbered as in LLVM.
type Pred uint8

// The predicates. U in a floating-point predicate means "or unordered", O "and ordered".
const (
	FCmpFalse Pred = 0
	FCmpOEQ   Pred = 1
	FCmpOGT   Pred = 2
	FCmpOGE   Pred = 3
	FCmpOLT   Pred = 4
	FCmpOLE   Pred = 5
	FCmpONE   Pred = 6
	FCmpORD   Pred = 7
	FCmpUNO   Pred = 8
	FCmpUEQ   Pred = 9
	FCmpUGT   Pred = 10
	FCmpUGE   Pred = 11
	FCmpULT   Pred = 12
	FCmpULE   Pred = 13
	FCmpUNE   Pred = 14
	FCmpTrue  Pred = 15
	ICmpEQ    Pred = 32
	ICmpNE    Pred = 33
	ICmpUGT   Pred = 34
	ICmpUGE   Pred = 35
	ICmpULT   Pred = 36
	ICmpULE   Pred = 37
	ICmpSGT   Pred = 38
	ICmpSGE   Pred = 39
	ICmpSLT   Pred = 40
	ICmpSLE   Pred = 41
)

// Flags are the optional properties of an instruction.
type Flags uint32

// The flags. The fast-math ones apply to floating-point instructions, phis, selects and calls.
const (
	NUW Flags = 1 << iota
	NSW
	Exact
	Disjoint // or
	NNeg     // zext, uitofp
	SameSign // icmp
	InBounds // getelementptr
	GEPNUSW
	GEPNUW
	Volatile
	InAlloca
	SwiftError
	Cleanup
	Weak // cmpxchg
	TailCall
	MustTail
	NoTail
	Reassoc
	NNaN
	NInf
	NSZ
	ARCP
	Contract
	AFN
	// Fast is every fast-math flag.
	Fast = Reassoc | NNaN | NInf | NSZ | ARCP | Contract | AFN
)

// An Instr is one instruction. Which fields have a meaning depends on Op; see the comments there.
type Instr struct {
	Op     Op
	Name   string
	Ty     *Type // void for instructions without a result
	Args   []Value
	Blocks []*Block
	Parent *Block

	Pred       Pred
	Flags      Flags
	Align      uint64 // of loads, stores and allocas, in bytes; 0 means the type's
	SourceType *Type
	Indices    []uint64

	// Callee, FuncType, CallConv, Attrs and Bundles describe a call.
	Callee   Value
	FuncType *Type
	CallConv uint32
	Attrs    AttrList
	Bundles  []Bundle

	// Ordering, FailureOrdering, SyncScope and RMW describe an atomic access, numbered as in bitcode (0: not atomic).
	Ordering, FailureOrdering uint8
	SyncScope                 uint32
	RMW                       uint8

	Meta []Attachment
}

// Type is the type of the instruction's result.
func (i *Instr) Type() *Type { return i.Ty }

// IsTerminator tells whether i ends a block.
func (i *Instr) IsTerminator() bool { return i.Op >= OpRet && i.Op <= OpUnreachable }

// A Bundle is an operand bundle of a call.
type Bundle struct {
	Tag  string
	Args []Value
}

// CalleeFunction is the function that a call names directly, nil if it calls through a pointer.
func (i *Instr) CalleeFunction() *Function {
	f, _ := i.Callee.(*Function)
	return f
}
