package air_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

// loop makes a function with a loop: entry → head ⇄ body, head → exit.
func loop() (b *builder, head, body, exit *air.Block) {
	b = newBuilder("loop", func(m *air.Module) *air.Type { return m.FuncType(m.Int(32), false, m.Int(32), m.Int(1)) })
	m, f := b.m, b.f
	i32 := m.Int(32)
	entry := b.b
	head, body, exit = m.NewBlock(f, "head"), m.NewBlock(f, "body"), m.NewBlock(f, "exit")
	b.add(&air.Instr{Op: air.OpBr, Blocks: []*air.Block{head}})
	b.b = head
	phi := b.add(&air.Instr{Op: air.OpPhi, Name: "phi", Ty: i32, Args: []air.Value{f.Args[0], nil}, Blocks: []*air.Block{entry, body}})
	b.add(&air.Instr{Op: air.OpBr, Args: []air.Value{f.Args[1]}, Blocks: []*air.Block{body, exit}})
	b.b = body
	phi.Args[1] = b.add(&air.Instr{Op: air.OpAdd, Name: "sum", Ty: i32, Args: []air.Value{phi, air.ConstInt(i32, 1)}})
	b.add(&air.Instr{Op: air.OpBr, Blocks: []*air.Block{head}})
	b.b = exit
	b.add(&air.Instr{Op: air.OpRet, Args: []air.Value{phi}})
	return b, head, body, exit
}

func TestVerify(t *testing.T) {
	b, _, _, _ := loop()
	require.NoError(t, air.Verify(b.m))
	require.NoError(t, air.Verify(saxpy()))
	for want, change := range map[string]func(b *builder, head, body, exit *air.Block){
		"%sum is not defined on every way to it": func(b *builder, head, body, exit *air.Block) {
			exit.Instrs[0].Args[0] = body.Instrs[0]
		},
		"%late is not defined on every way to it": func(b *builder, head, body, exit *air.Block) {
			b.b = body
			late := &air.Instr{Op: air.OpAdd, Name: "late", Ty: b.m.Int(32), Parent: body, Args: []air.Value{b.f.Args[0], b.f.Args[0]}}
			body.Instrs[0].Args[1] = late
			body.Instrs = []*air.Instr{body.Instrs[0], late, body.Instrs[1]}
		},
		"values, 2 edges lead": func(b *builder, head, body, exit *air.Block) {
			p := head.Instrs[0]
			p.Args, p.Blocks = p.Args[:1], p.Blocks[:1]
		},
		"a block that does not lead to it": func(b *builder, head, body, exit *air.Block) {
			head.Instrs[0].Blocks[0] = exit
		},
		"2 values and 1 blocks": func(b *builder, head, body, exit *air.Block) {
			head.Instrs[0].Blocks = head.Instrs[0].Blocks[:1]
		},
		"is not of its type": func(b *builder, head, body, exit *air.Block) {
			head.Instrs[0].Args[0] = air.ConstInt(b.m.Int(8), 1)
		},
		"a phi after other instructions": func(b *builder, head, body, exit *air.Block) {
			add := body.Instrs[0]
			add.Parent = head
			head.Instrs = []*air.Instr{add, head.Instrs[0], head.Instrs[1]}
			body.Instrs = body.Instrs[1:]
		},
		"must be a terminator":          func(b *builder, head, body, exit *air.Block) { exit.Instrs[0].Op = air.OpFreeze },
		"is empty":                      func(b *builder, head, body, exit *air.Block) { exit.Instrs = nil },
		"a branch leaves the function":  func(b *builder, head, body, exit *air.Block) { body.Instrs[1].Blocks[0] = &air.Block{} },
		"a branch leads to the entry":   func(b *builder, head, body, exit *air.Block) { body.Instrs[1].Blocks[0] = b.f.Blocks[0] },
		"of another function":           func(b *builder, head, body, exit *air.Block) { exit.Instrs[0].Args[0] = &air.Arg{Ty: b.m.Int(32)} },
		"an instruction of another":     func(b *builder, head, body, exit *air.Block) { exit.Instrs[0].Args[0] = &air.Instr{Ty: b.m.Int(32)} },
		"without a result":              func(b *builder, head, body, exit *air.Block) { exit.Instrs[0].Args[0] = body.Instrs[1] },
		"it is missing":                 func(b *builder, head, body, exit *air.Block) { exit.Instrs[0].Args[0] = nil },
		"the function returns i32":      func(b *builder, head, body, exit *air.Block) { exit.Instrs[0].Args = nil },
		"equal types of integers":       func(b *builder, head, body, exit *air.Block) { body.Instrs[0].Args[1] = air.ConstInt(b.m.Int(64), 1) },
		"equal types of floating-point": func(b *builder, head, body, exit *air.Block) { body.Instrs[0].Op = air.OpFAdd },
		"1 operands, 2 are needed":      func(b *builder, head, body, exit *air.Block) { body.Instrs[0].Args = body.Instrs[0].Args[:1] },
		"2 targets and 0 conditions":    func(b *builder, head, body, exit *air.Block) { head.Instrs[1].Args = nil },
		"is missing or of another block": func(b *builder, head, body, exit *air.Block) {
			body.Instrs[0].Parent = exit
		},
		"has no type":       func(b *builder, head, body, exit *air.Block) { body.Instrs[0].Ty = nil },
		"two symbols are":   func(b *builder, head, body, exit *air.Block) { addGlobal(b.m, "loop", b.m.Int(32), nil) },
		"is there twice":    func(b *builder, head, body, exit *air.Block) { b.m.Functions = append(b.m.Functions, b.f) },
		"does not fit type": func(b *builder, head, body, exit *air.Block) { b.f.Args[1].Index = 0 },
		"i8 where i32 is needed": func(b *builder, head, body, exit *air.Block) {
			addGlobal(b.m, "g", b.m.Int(32), air.ConstInt(b.m.Int(8), 1))
		},
		"has 1 elements": func(b *builder, head, body, exit *air.Block) {
			ty := b.m.Array(b.m.Int(8), 2)
			addGlobal(b.m, "g", ty, &air.Const{Kind: air.AggregateConst, Ty: ty, Elems: []air.Value{air.ConstInt(b.m.Int(8), 1)}})
		},
		"a constant contains itself": func(b *builder, head, body, exit *air.Block) {
			ty := b.m.Array(b.m.Int(8), 1)
			c := &air.Const{Kind: air.ExprConst, Op: air.OpFreeze, Ty: ty}
			c.Elems = []air.Value{c}
			addGlobal(b.m, "g", ty, c)
		},
		"does not fit i8": func(b *builder, head, body, exit *air.Block) {
			addGlobal(b.m, "g", b.m.Int(8), &air.Const{Kind: air.IntConst, Ty: b.m.Int(8), Bits: 256})
		},
		"@other is used and not in the module": func(b *builder, head, body, exit *air.Block) {
			p := b.m.Pointer(b.m.Int(8), 0)
			addGlobal(b.m, "g", p, &air.Global{Symbol: air.Symbol{Name: "other", Ty: p}, ValueType: b.m.Int(8)})
		},
		"constant bitcast: i64 to float": func(b *builder, head, body, exit *air.Block) {
			c := &air.Const{Kind: air.ExprConst, Op: air.OpBitCast, Ty: b.m.Float(), Elems: []air.Value{air.ConstInt(b.m.Int(64), 1)}}
			addGlobal(b.m, "g", b.m.Float(), c)
		},
		"a constant expression of load": func(b *builder, head, body, exit *air.Block) {
			addGlobal(b.m, "g", b.m.Float(), &air.Const{Kind: air.ExprConst, Op: air.OpLoad, Ty: b.m.Float()})
		},
		"!named has an operand that is no node": func(b *builder, head, body, exit *air.Block) {
			b.m.NamedMD = []*air.NamedMD{{Name: "named", Ops: []air.Metadata{str("text")}}}
		},
	} {
		b, head, body, exit := loop()
		change(b, head, body, exit)
		require.ErrorContains(t, air.Verify(b.m), want)
	}
	// Code that is never reached may use anything of its function.
	b, _, body, _ := loop()
	dead := b.block()
	b.add(&air.Instr{Op: air.OpRet, Args: []air.Value{body.Instrs[0]}})
	require.NoError(t, air.Verify(b.m))
	require.Len(t, dead.Instrs, 1)
}

func addGlobal(m *air.Module, name string, ty *air.Type, init air.Value) {
	m.Globals = append(m.Globals, &air.Global{Symbol: air.Symbol{Name: name, Ty: m.Pointer(ty, 0)}, ValueType: ty, Init: init})
}

// TestVerifyTypes holds single instructions with wrong types against the verifier.
// TestVerifyNil verifies modules made by hand of which something is missing.
func TestVerifyNil(t *testing.T) {
	require.EqualError(t, air.Verify(nil), "air: invalid module: it is nil")
	for want, m := range map[string]*air.Module{
		"a global is nil":   {Globals: []*air.Global{nil}},
		"a function is nil": {Functions: []*air.Function{nil}},
		"an alias is nil":   {Aliases: []*air.Alias{nil}},
		"@ has no type":     {Functions: []*air.Function{{}}},
		"internal error":    {NamedMD: []*air.NamedMD{nil}},
	} {
		require.ErrorContains(t, air.Verify(m), "air: invalid module: "+want)
		_, err := air.Write(m)
		require.Error(t, err)
	}
	for _, change := range []func(b *air.Block){
		func(b *air.Block) { b.Instrs[0] = nil },
		func(b *air.Block) { b.Instrs[0].Args[0] = nil },
		func(b *air.Block) { b.Instrs[0].Ty = nil },
		func(b *air.Block) { b.Instrs[1].Blocks[0] = nil },
	} {
		b, _, body, _ := loop()
		change(body)
		require.Error(t, air.Verify(b.m))
	}
}

func TestVerifyTypes(t *testing.T) {
	type values struct{ i32, i64, f32, vec, ptr, agg, cond air.Value }
	for want, make := range map[string]func(m *air.Module, v values) *air.Instr{
		"i32 to i64": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpTrunc, Ty: m.Int(64), Args: []air.Value{v.i32}}
		},
		"i64 to i32": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpZExt, Ty: m.Int(32), Args: []air.Value{v.i64}}
		},
		"float to i64": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpBitCast, Ty: m.Int(64), Args: []air.Value{v.f32}}
		},
		"float* to i64": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpBitCast, Ty: m.Int(64), Args: []air.Value{v.ptr}}
		},
		"float* to float*": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpAddrSpaceCast, Ty: v.ptr.Type(), Args: []air.Value{v.ptr}}
		},
		"an access of type i32 through float*": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpLoad, Ty: m.Int(32), Args: []air.Value{v.ptr}}
		},
		"an access of type i64 through float*": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpStore, Args: []air.Value{v.i64, v.ptr}}
		},
		"eq of i32 and i64": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpICmp, Pred: air.ICmpEQ, Ty: m.Int(1), Args: []air.Value{v.i32, v.i64}}
		},
		"oeq of i32 and i32": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpICmp, Pred: air.FCmpOEQ, Ty: m.Int(1), Args: []air.Value{v.i32, v.i32}}
		},
		"a select by i32": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpSelect, Ty: m.Int(64), Args: []air.Value{v.i32, v.i64, v.i64}}
		},
		"i64 from float": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpFreeze, Ty: m.Int(64), Args: []air.Value{v.f32}}
		},
		"i32 from <4 x float> at i32": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpExtractElement, Ty: m.Int(32), Args: []air.Value{v.vec, v.i32}}
		},
		"i32 into <4 x float> at i32": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpInsertElement, Ty: v.vec.Type(), Args: []air.Value{v.vec, v.i32, v.i32}}
		},
		"by i32 giving": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpShuffleVector, Ty: v.vec.Type(), Args: []air.Value{v.vec, v.vec, v.i32}}
		},
		"element [2] of { i32, float } does not exist": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpExtractValue, Ty: m.Int(32), Args: []air.Value{v.agg}, Indices: []uint64{2}}
		},
		"element [1] of { i32, float } is of type float": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpInsertValue, Ty: v.agg.Type(), Args: []air.Value{v.agg, v.i32}, Indices: []uint64{1}}
		},
		"a getelementptr over i32 from float*": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpGetElementPtr, Ty: v.ptr.Type(), SourceType: m.Int(32), Args: []air.Value{v.ptr, v.i32}}
		},
		"a result of type float*, recorded as i32": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpGetElementPtr, Ty: m.Int(32), SourceType: m.Float(), Args: []air.Value{v.ptr, v.i32}}
		},
		"no memory ordering": func(m *air.Module, v values) *air.Instr { return &air.Instr{Op: air.OpFence} },
		"an operation with float giving i32": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpAtomicRMW, Ty: m.Int(32), Args: []air.Value{v.ptr, v.f32}, Ordering: 2}
		},
		"an exchange of float for i32": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpCmpXchg, Ty: m.Int(32), Args: []air.Value{v.ptr, v.f32, v.i32}, Ordering: 2, FailureOrdering: 2}
		},
		"counted in float": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpAlloca, Ty: v.ptr.Type(), SourceType: m.Float(), Args: []air.Value{v.f32}}
		},
		"no callee or no function type": func(m *air.Module, v values) *air.Instr { return &air.Instr{Op: air.OpCall} },
		"not a pointer to void (i32)": func(m *air.Module, v values) *air.Instr {
			return &air.Instr{Op: air.OpCall, Callee: v.ptr, FuncType: m.FuncType(m.Void(), false, m.Int(32))}
		},
		"operation unknown is not known": func(m *air.Module, v values) *air.Instr { return &air.Instr{Op: air.OpUnknown} },
	} {
		b := newBuilder("f", func(m *air.Module) *air.Type {
			return m.FuncType(m.Void(), false, m.Int(32), m.Int(64), m.Float(), m.Vector(m.Float(), 4), m.Pointer(m.Float(), 0),
				m.Struct(false, m.Int(32), m.Float()), m.Int(1))
		})
		a := b.f.Args
		b.add(make(b.m, values{a[0], a[1], a[2], a[3], a[4], a[5], a[6]}))
		b.add(&air.Instr{Op: air.OpRet})
		require.ErrorContains(t, air.Verify(b.m), want)
	}
	// Arguments of calls.
	b := newBuilder("f", func(m *air.Module) *air.Type { return m.FuncType(m.Void(), false, m.Int(32)) })
	call := b.add(&air.Instr{Op: air.OpCall, Callee: b.f, FuncType: b.f.FuncType, Args: []air.Value{b.f.Args[0]}})
	b.add(&air.Instr{Op: air.OpRet})
	require.NoError(t, air.Verify(b.m))
	call.Args = nil
	require.ErrorContains(t, air.Verify(b.m), "0 arguments for void (i32)")
	call.Args = []air.Value{air.ConstInt(b.m.Int(8), 1)}
	require.ErrorContains(t, air.Verify(b.m), "argument 0 is of type i8, i32 is needed")
}
