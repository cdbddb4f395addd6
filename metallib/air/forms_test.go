package air

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConstantExpressions writes and reads every form of constant expression; LLVM folds most of them when it reads text, so
// they are made here.
func TestConstantExpressions(t *testing.T) {
	m := &Module{}
	i32, i64, f32 := m.Int(32), m.Int(64), m.Float()
	v2, v4 := m.Vector(i32, 2), m.Vector(i32, 4)
	g := &Global{Symbol: Symbol{Name: "g", Ty: m.Pointer(i32, 0)}, ValueType: i32}
	m.Globals = []*Global{g}
	expr := func(op Op, ty *Type, elems ...Value) *Const {
		return &Const{Kind: ExprConst, Op: op, Ty: ty, Elems: elems}
	}
	address := expr(OpPtrToInt, i64, g)
	vec := expr(OpBitCast, v2, address)
	num := expr(OpBitCast, f32, expr(OpTrunc, i32, address))
	less := expr(OpICmp, m.Int(1), g, &Const{Ty: g.Ty})
	less.Pred = ICmpULT
	lanes := expr(OpICmp, m.Vector(m.Int(1), 2), vec, vec)
	lanes.Pred = ICmpEQ
	lanes2 := expr(OpSelect, v2, &Const{Kind: DataConst, Ty: m.Vector(m.Int(1), 2), Data: []uint64{1, 0}}, vec, vec)
	shuffle := expr(OpShuffleVector, v2, vec, vec)
	shuffle.Mask = &Const{Kind: DataConst, Ty: v2, Data: []uint64{1, 2}}
	shuffle4 := expr(OpShuffleVector, v4, vec, vec)
	shuffle4.Mask = &Const{Ty: v4}
	add := expr(OpAdd, i64, address, ConstInt(i64, 1))
	add.Flags = NSW
	fcmp := expr(OpFCmp, m.Int(1), num, num)
	fcmp.Pred = FCmpUNO
	gep := expr(OpGetElementPtr, g.Ty, g, ConstInt(i64, 3))
	gep.SourceType, gep.Flags = i32, InBounds
	for i, c := range []*Const{address, vec, num, less, lanes, shuffle, shuffle4, add, fcmp, gep, expr(OpFNeg, f32, num), expr(OpFAdd, f32, num, num),
		expr(OpExtractElement, i32, vec, ConstInt(i32, 1)), expr(OpInsertElement, v2, vec, ConstInt(i32, 7), ConstInt(i64, 1)),
		expr(OpSelect, i32, less, ConstInt(i32, 1), ConstInt(i32, 2)), lanes2} {
		name := "e" + string(rune('a'+i))
		if i == 0 {
			name = "é" // not to be written in seven bits
		}
		m.Globals = append(m.Globals, &Global{Symbol: Symbol{Name: name, Ty: m.Pointer(c.Ty, 0)}, ValueType: c.Ty, Init: c, IsConst: true})
	}
	code, err := Write(m)
	require.NoError(t, err)
	back, err := Read(code)
	require.NoError(t, err)
	require.Equal(t, m.String(), back.String())
	require.NoError(t, Verify(back))
	globals := m.Globals
	for _, g := range globals[1:] {
		m.Globals = []*Global{globals[0], g}
		code, err := Write(m)
		require.NoError(t, err)
		t.Run(g.Name, func(t *testing.T) { disassembled(t, code) })
	}
	m.Globals = globals
	require.Contains(t, back.String(), `@"\C3\A9" = constant i64 ptrtoint (i32* @g to i64)`)
}

// newBits starts a module by hand, up to and with a table of the types void, void () and a pointer to it, and i32.
func newBits() *bitWriter {
	w := newBitWriter()
	w.buf = append(w.buf, "BC\xC0\xDE"...)
	w.enter(moduleBlock, 3)
	w.record(modVersion, 1)
	w.enter(typeBlock, 4)
	w.record(typNumEntry, 4)
	w.record(typVoid)
	w.record(typFunction, 0, 0)
	w.record(typPointer, 1, 0)
	w.record(typInteger, 32)
	w.end()
	return w
}

func TestUnknownParts(t *testing.T) {
	w := newBits()
	w.enter(99, 3)
	w.record(1, 2, 3)
	w.end()
	w.enter(summaryBlock, 3)
	w.record(1)
	w.end()
	w.record(modDepLib, 'x')
	w.record(modComdat, 1, 3, 'a', 'b', 'c')
	w.record(modGlobalVar, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	w.enter(valueSymtabBlock, 4)
	w.text(vstEntry, "global", 0)
	w.record(77)
	w.end()
	w.end()
	m, err := Read(w.buf)
	require.NoError(t, err)
	require.Equal(t, []string{"block 99 block", "GLOBALVAL_SUMMARY block", "MODULE record 6", "VALUE_SYMTAB record 77"}, m.Skipped)
	require.Equal(t, "abc", m.Global("global").Comdat.Name)
}

// TestReadErrors damages modules in ways that need a meaning, and checks that the message says what is wrong and where.
func TestReadErrors(t *testing.T) {
	function := func(w *bitWriter, body func()) {
		w.record(modFunction, 2, 0, 0, 0, 0, 0, 0, 0)
		w.enter(functionBlock, 4)
		body()
		w.end()
	}
	for want, damage := range map[string]func(w *bitWriter){
		"module version 9":                           func(w *bitWriter) { w.record(modVersion, 9) },
		"module record 200 is not known (MODULE":     func(w *bitWriter) { w.record(200) },
		"type 44 does not exist, there are 4":        func(w *bitWriter) { w.record(modGlobalVar, 44, 3, 0, 0, 0, 0) },
		"a global of type void":                      func(w *bitWriter) { w.record(modGlobalVar, 0, 3, 0, 0, 0, 0) },
		"linkage 33 is not known":                    func(w *bitWriter) { w.record(modGlobalVar, 3, 2, 0, 33, 0, 0) },
		"section 5 does not exist":                   func(w *bitWriter) { w.record(modGlobalVar, 3, 2, 0, 0, 0, 5) },
		"an alignment of 2^99":                       func(w *bitWriter) { w.record(modGlobalVar, 3, 2, 0, 0, 100, 0) },
		"record 7 has 3 operands":                    func(w *bitWriter) { w.record(modGlobalVar, 3, 2, 0) },
		"a function of type i32":                     func(w *bitWriter) { w.record(modFunction, 3, 0, 0, 0, 0, 0, 0, 0) },
		"attribute list 5 does not exist":            func(w *bitWriter) { w.record(modFunction, 2, 0, 1, 0, 5, 0, 0, 0) },
		"0 function bodies for 1 functions":          func(w *bitWriter) { w.record(modFunction, 2, 0, 0, 0, 0, 0, 0, 0) },
		"more function bodies than functions":        func(w *bitWriter) { w.enter(functionBlock, 4); w.end() },
		"value 7 does not exist":                     func(w *bitWriter) { w.record(modGlobalVar, 3, 2, 8, 0, 0, 0) },
		"a second type table":                        func(w *bitWriter) { w.enter(typeBlock, 4); w.end() },
		"attribute record 1 is not known (PARAMATTR": func(w *bitWriter) { w.enter(paramAttrBlock, 3); w.record(1); w.end() },
		"an attribute of form 50": func(w *bitWriter) {
			w.enter(paramAttrGroupBlock, 3)
			w.record(3, 1, 0, 50)
			w.end()
		},
		"constants of type void":             func(w *bitWriter) { w.enter(constantsBlock, 4); w.record(cstSetType, 0); w.end() },
		"constant record 99 is not known":    func(w *bitWriter) { w.enter(constantsBlock, 4); w.record(99); w.end() },
		"an aggregate constant of type i32":  func(w *bitWriter) { w.enter(constantsBlock, 4); w.record(cstAggregate, 1); w.end() },
		"value 9 is used and does not exist": func(w *bitWriter) { w.enter(constantsBlock, 4); w.record(cstBinOp, 0, 9, 9); w.end() },
		"a constant contains itself":         func(w *bitWriter) { w.enter(constantsBlock, 4); w.record(cstBinOp, 0, 0, 0); w.end() },
		"metadata 3 does not exist":          func(w *bitWriter) { w.enter(metadataBlock, 4); w.record(mdNode, 4); w.end() },
		"metadata record 99 is not known":    func(w *bitWriter) { w.enter(metadataBlock, 4); w.record(99); w.end() },
		"metadata strings begin at 9":        func(w *bitWriter) { w.enter(metadataBlock, 4); w.record(mdStrings, 1, 9); w.end() },
		"a function of 0 blocks":             func(w *bitWriter) { function(w, func() { w.record(fnDeclareBlocks, 0) }) },
		"has 0 of 1 blocks":                  func(w *bitWriter) { function(w, func() { w.record(fnDeclareBlocks, 1) }) },
		"an instruction after the last block": func(w *bitWriter) {
			function(w, func() { w.record(fnDeclareBlocks, 1); w.record(fnRet); w.record(fnRet) })
		},
		"block 3 does not exist, there are 1": func(w *bitWriter) { function(w, func() { w.record(fnDeclareBlocks, 1); w.record(fnBr, 3) }) },
		"instruction landingpad (record 47)":  func(w *bitWriter) { function(w, func() { w.record(fnDeclareBlocks, 1); w.record(fnLandingPad) }) },
		"function record 120 is not known":    func(w *bitWriter) { function(w, func() { w.record(fnDeclareBlocks, 1); w.record(120) }) },
		"record 10 has 2 operands, 1 are":     func(w *bitWriter) { function(w, func() { w.record(fnDeclareBlocks, 1); w.record(fnRet, 1, 0) }) },
		"abbreviation 5 is not defined":       func(w *bitWriter) { w.fixed(5, w.wide) },
		"a block has abbreviation ids of 0":   func(w *bitWriter) { w.enter(99, 0) },
		"operand bundle tag 3 does not exist": func(w *bitWriter) { function(w, func() { w.record(fnDeclareBlocks, 1); w.record(fnOperandBundle, 3) }) },
		"a record of 1000000 operands":        func(w *bitWriter) { w.fixed(3, w.wide); w.vbr(1, 6); w.vbr(1000000, 6) },
		"an abbreviation uses encoding 7":     func(w *bitWriter) { w.fixed(2, w.wide); w.vbr(1, 5); w.fixed(0, 1); w.fixed(7, 3) },
		"a variable-width number does not fit": func(w *bitWriter) {
			w.fixed(3, w.wide)
			w.vbr(1, 6)
			w.vbr(1, 6)
			w.fixed(^uint64(0), 64)
			w.fixed(^uint64(0), 64)
		},
	} {
		w := newBits()
		damage(w)
		for len(w.outer) > 0 {
			w.end()
		}
		w.align32()
		w.buf = append(w.buf, make([]byte, 64)...)
		_, err := Read(w.buf)
		require.ErrorContains(t, err, want)
	}
}

func TestTypeErrors(t *testing.T) {
	for want, records := range map[string][][]uint64{
		"contains itself":                 {{typStructNamed, 0, 1}, {typStructNamed, 0, 0}},
		"an integer of 0 bits":            {{typInteger, 0}},
		"a vector of 0 elements":          {{typFloat}, {typVector, 0, 0}},
		"a vector of void":                {{typVoid}, {typVector, 4, 0}},
		"void has no place in memory":     {{typVoid}, {typArray, 4, 0}},
		"a function as a field":           {{typVoid}, {typFunction, 0, 0}, {typStructAnon, 0, 1}},
		"a parameter is of type void":     {{typVoid}, {typFunction, 0, 0, 0}},
		"address space 99999999":          {{typOpaquePointer, 99999999}},
		"type record 99 is not known":     {{99}},
		"is used before its record":       {{typPointer, 1, 0}, {typFloat}},
		"a vector of 100000 elements":     {{typFloat}, {typVector, 100000, 0}},
		"type 8 does not exist, there ar": {{typPointer, 8, 0}},
	} {
		w := newBitWriter()
		w.buf = append(w.buf, "BC\xC0\xDE"...)
		w.enter(moduleBlock, 3)
		w.enter(typeBlock, 4)
		w.record(typNumEntry, uint64(len(records)))
		for _, r := range records {
			w.record(r[0], r[1:]...)
		}
		w.end()
		w.end()
		_, err := Read(w.buf)
		require.ErrorContains(t, err, want)
	}
	// Types that would take for ever to print.
	w := newBitWriter()
	w.buf = append(w.buf, "BC\xC0\xDE"...)
	w.enter(moduleBlock, 3)
	w.enter(typeBlock, 4)
	w.record(typNumEntry, 100)
	w.record(typFloat)
	for i := range uint64(99) {
		w.record(typStructAnon, 0, i, i)
	}
	w.end()
	w.end()
	_, err := Read(w.buf)
	require.ErrorContains(t, err, "a type of more than 65536 parts")
}

// TestDamage changes every byte of a small module, and cuts it: whatever comes of it, no fault of the reader itself.
func TestDamage(t *testing.T) {
	w := oldModule(true)
	check := func(data []byte) {
		m, err := Read(data)
		require.NotErrorIs(t, err, errInternal)
		if err != nil || Verify(m) != nil {
			return
		}
		_, err = Write(m)
		require.NotErrorIs(t, err, errInternal)
	}
	for i := range w {
		for _, flip := range []byte{1, 0x10, 0x80, 0xFF} {
			data := []byte(string(w))
			data[i] ^= flip
			check(data)
		}
		check(w[:i])
	}
	require.True(t, strings.HasPrefix(string(w), "BC"))
}
