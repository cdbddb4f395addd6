package air_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/metallib/internal/appletest"
)

func TestTypes(t *testing.T) {
	var ts air.Types
	f, i32 := ts.Float(), ts.Int(32)
	s := ts.NamedStruct("s")
	s.Fields = []*air.Type{i32, ts.Pointer(s, 1)}
	for _, c := range []struct {
		ty                 *air.Type
		text               string
		size, store, align uint64
	}{
		{ts.Int(1), "i1", 1, 1, 1}, {ts.Int(8), "i8", 1, 1, 1}, {ts.Int(13), "i13", 2, 2, 2}, {ts.Int(64), "i64", 8, 8, 8},
		{ts.Half(), "half", 2, 2, 2}, {ts.BFloat(), "bfloat", 2, 2, 2}, {f, "float", 4, 4, 4}, {ts.Double(), "double", 8, 8, 8},
		{ts.Pointer(f, 0), "float*", 8, 8, 8}, {ts.Pointer(f, 3), "float addrspace(3)*", 8, 8, 8}, {ts.Pointer(nil, 1), "ptr addrspace(1)", 8, 8, 8},
		{ts.Vector(f, 4), "<4 x float>", 16, 16, 16}, {ts.Vector(f, 3), "<3 x float>", 16, 12, 16}, {ts.Vector(ts.Int(8), 3), "<3 x i8>", 4, 3, 4},
		{ts.Vector(f, 64), "<64 x float>", 256, 256, 256}, {ts.Array(i32, 5), "[5 x i32]", 20, 20, 4},
		{ts.Struct(false, ts.Int(8), i32, ts.Int(8)), "{ i8, i32, i8 }", 12, 12, 4}, {ts.Struct(true, ts.Int(8), i32), "<{ i8, i32 }>", 5, 5, 1},
		{s, "%s", 16, 16, 8}, {ts.Struct(false), "{}", 0, 0, 1}, {ts.Array(ts.Vector(f, 3), 2), "[2 x <3 x float>]", 32, 32, 16},
	} {
		require.Equal(t, c.text, c.ty.String())
		require.Equal(t, c.size, air.Size(c.ty), c.text)
		require.Equal(t, c.store, air.StoreSize(c.ty), c.text)
		require.Equal(t, c.align, air.Align(c.ty), c.text)
	}
	offsets, size := air.StructLayout(ts.Struct(false, ts.Int(8), ts.Vector(f, 4), ts.Int(16)))
	require.Equal(t, []uint64{0, 16, 32}, offsets)
	require.Equal(t, uint64(48), size)

	require.Same(t, ts.Vector(f, 4), ts.Vector(f, 4))
	require.Same(t, ts.FuncType(ts.Void(), true, i32), ts.FuncType(ts.Void(), true, i32))
	require.NotSame(t, ts.NamedStruct("s"), s)
	require.Equal(t, "void (i32, ...)", ts.FuncType(ts.Void(), true, i32).String())
	require.Equal(t, "%0", ts.NamedStruct("").String())
	require.Equal(t, "%1", ts.NamedStruct("").String())
	require.Equal(t, `%"a b\22"`, ts.NamedStruct(`a b"`).String())
	require.Equal(t, `%"0"`, ts.NamedStruct("0").String())
	require.Equal(t, "{ i32, %s addrspace(1)* }", s.Body())
	for _, c := range []struct {
		ty   *air.Type
		text string
	}{{ts.Label(), "label"}, {ts.Metadata(), "metadata"}, {ts.Token(), "token"}, {ts.Void(), "void"}, {ts.Other("x86_fp80"), "x86_fp80"}, {nil, "<nil>"}} {
		require.Equal(t, c.text, c.ty.String())
	}
	v := ts.Vector(ts.Half(), 8)
	require.Equal(t, ts.Half(), v.Scalar())
	require.Equal(t, 8, v.Lanes())
	require.Equal(t, 16, v.ScalarBits())
	require.Equal(t, 1, f.Lanes())
	require.True(t, f.IsFloat())
	require.False(t, v.IsFloat())
}

func TestAttributes(t *testing.T) {
	l := air.AttrList{Fn: air.AttrSet{{Kind: "nounwind"}, {Kind: "frame-pointer", Str: true, Val: "all"}, {Kind: "no-builtins", Str: true}},
		Params: []air.AttrSet{nil, {{Kind: "align", HasInt: true, Int: 16}}}}
	require.False(t, l.Empty())
	require.True(t, air.AttrList{Params: []air.AttrSet{nil}}.Empty())
	require.Nil(t, l.Param(7))
	a, ok := l.Param(1).Get("align")
	require.True(t, ok)
	require.Equal(t, uint64(16), a.Int)
	_, ok = l.Fn.Get("missing")
	require.False(t, ok)
	for want, a := range map[string]air.Attr{
		"nounwind": l.Fn[0], `"frame-pointer"="all"`: l.Fn[1], `"no-builtins"`: l.Fn[2], "align 16": a,
		"dereferenceable(8)": {Kind: "dereferenceable", HasInt: true, Int: 8}, "vscale_range(1,2)": {Kind: "vscale_range", HasInt: true, Int: 1<<32 | 2},
		"allocsize(0,1)": {Kind: "allocsize", HasInt: true, Int: 1}, "allocsize(1)": {Kind: "allocsize", HasInt: true, Int: 1<<32 | 0xFFFFFFFF},
		"byval(i8)": {Kind: "byval", HasType: true, Ty: new(air.Types).Int(8)}, "attribute(999)": {ID: 999},
	} {
		require.Equal(t, want, a.String())
	}
}

func TestModuleLookups(t *testing.T) {
	m := saxpy()
	g := &air.Global{Symbol: air.Symbol{Name: "g", Ty: m.Pointer(m.Int(32), 2)}, ValueType: m.Int(32), Space: 2}
	m.Globals = append(m.Globals, g)
	require.Same(t, g, m.Global("g"))
	require.Nil(t, m.Global("saxpy"))
	f := m.Function("saxpy")
	require.False(t, f.Declaration())
	require.Nil(t, m.Function("g"))
	require.NotNil(t, m.Named("air.kernel"))
	require.Nil(t, m.Named("air.vertex"))
	require.Equal(t, air.OpRet, f.Blocks[0].Terminator().Op)
	require.Nil(t, (&air.Block{}).Terminator())
	require.Equal(t, uint64(0xFF), air.ConstInt(m.Int(8), 0x1FF).Bits)
	require.Equal(t, "i8 -1", air.ConstInt(m.Int(8), 0xFF).String())
	require.Equal(t, m.Label(), f.Blocks[0].Type())
	require.Equal(t, m.Float(), f.Blocks[0].Instrs[5].Type())
	require.Equal(t, m.Int(32), f.Args[3].Type())
	require.Equal(t, "add", air.OpAdd.String())
	require.Equal(t, "invalid", air.Op(200).String())
	require.Equal(t, "sle", air.ICmpSLE.String())
	require.Contains(t, f.String(), "define void @saxpy(float addrspace(1)* %0")
	require.Equal(t, "ret void", f.Blocks[0].Terminator().String())
	require.Contains(t, m.String(), "!air.kernel = !{!0}")
	call := &air.Instr{Op: air.OpCall, Callee: f}
	require.Same(t, f, call.CalleeFunction())
	require.Nil(t, (&air.Instr{Op: air.OpCall, Callee: f.Args[0]}).CalleeFunction())
}

func TestReadRefuses(t *testing.T) {
	code, err := air.Write(saxpy())
	require.NoError(t, err)
	for want, data := range map[string][]byte{
		"not LLVM bitcode":   []byte("hello"),
		"there is no module": []byte("BC\xC0\xDE\x00\x00\x00\x00"),
		"the wrapper says":   code[:len(code)/2],
		"bits, where":        code[20 : len(code)/2],
		"air: ":              nil,
	} {
		_, err := air.Read(data)
		require.ErrorContains(t, err, want)
	}
	// A message names block, record and place.
	bad := []byte(string(code[20:]))
	for i := range bad {
		if i > 8 && bad[i] != 0 {
			bad[i] ^= 0x55
		}
	}
	_, err = air.Read(bad)
	require.Error(t, err)
	require.Regexp(t, `\(.*, bit \d+\)$`, err.Error())
	// Every cut of the bitcode is refused.
	for n := 0; n < len(code)-40; n += 4 {
		_, err := air.Read(code[20 : 20+n])
		require.Error(t, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for want, change := range map[string]func(m *air.Module){
		"opaque pointers cannot be written": func(m *air.Module) {
			m.Globals = append(m.Globals, &air.Global{Symbol: air.Symbol{Name: "p", Ty: m.Pointer(m.Pointer(nil, 0), 0)}, ValueType: m.Pointer(nil, 0)})
		},
		"LLVM 14 has no attribute memory(0)": func(m *air.Module) {
			m.Functions[0].Attrs.Fn = air.AttrSet{{Kind: "memory", HasInt: true}}
		},
		"LLVM 14 has no attribute uwtable(1)": func(m *air.Module) {
			m.Functions[0].Attrs.Fn = air.AttrSet{{Kind: "uwtable", HasInt: true, Int: 1}}
		},
		`attribute "" (number 999) is not known`: func(m *air.Module) {
			m.Functions[0].Attrs.Fn = air.AttrSet{{ID: 999}}
		},
		"an alignment of 3": func(m *air.Module) { m.Functions[0].Blocks[0].Instrs[3].Align = 3 },
		"debug information cannot be written": func(m *air.Module) {
			m.NamedMD = append(m.NamedMD, &air.NamedMD{Name: "llvm.dbg.cu", Ops: []air.Metadata{&air.MDOther{Code: 20}}})
		},
		"LLVM 14 has no type <vscale x i32>": func(m *air.Module) {
			ty := m.Other("<vscale x i32>")
			m.Globals = append(m.Globals, &air.Global{Symbol: air.Symbol{Name: "p", Ty: m.Pointer(ty, 0)}, ValueType: ty})
		},
		"comdat c is not in the module": func(m *air.Module) { m.Functions[0].Comdat = &air.Comdat{Name: "c"} },
		"metadata of the module refers to a value of a function": func(m *air.Module) {
			m.NamedMD[0].Ops = append(m.NamedMD[0].Ops, list(&air.MDValue{V: m.Functions[0].Args[0]}))
		},
	} {
		m := saxpy()
		change(m)
		_, err := air.Write(m)
		require.ErrorContains(t, err, want)
	}
	// What only promises something to optimisers is left out instead.
	m := saxpy()
	b := m.Functions[0].Blocks[0]
	b.Instrs[0].Flags |= air.NNeg
	b.Instrs[1].Flags |= air.GEPNUW | air.GEPNUSW
	m.Functions[0].Attrs.Fn = air.AttrSet{{Kind: "uwtable", HasInt: true, Int: 2}}
	code, err := air.Write(m)
	require.NoError(t, err)
	back, err := air.Read(code)
	require.NoError(t, err)
	require.Zero(t, back.Functions[0].Blocks[0].Instrs[0].Flags)
	require.Equal(t, air.InBounds, back.Functions[0].Blocks[0].Instrs[1].Flags)
	require.Equal(t, "uwtable", back.Functions[0].Attrs.Fn[0].String())
}

func TestIdent(t *testing.T) {
	m := saxpy()
	for _, c := range [][2]string{{"", "LLVM14.0.6"}, {"LLVM99", "LLVM99"}} {
		m.Ident = c[0]
		code, err := air.Write(m)
		require.NoError(t, err)
		back, err := air.Read(code)
		require.NoError(t, err)
		require.Equal(t, c[1], back.Ident)
		require.True(t, strings.HasPrefix(string(code[20:]), "BC\xC0\xDE"))
		bare, err := air.Read(code[20:])
		require.NoError(t, err)
		require.Equal(t, back.String(), bare.String())
	}
}

func BenchmarkRead(b *testing.B) {
	code := biggest(b)
	b.SetBytes(int64(len(code)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := air.Read(code); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	m, err := air.Read(biggest(b))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if err := air.Verify(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	m, err := air.Read(biggest(b))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := air.Write(m); err != nil {
			b.Fatal(err)
		}
	}
}

// biggest is the largest module of a published library.
func biggest(b *testing.B) []byte {
	var code []byte
	for _, f := range functions(b, appletest.Llama(b)) {
		if len(f.Bitcode) > len(code) {
			code = f.Bitcode
		}
	}
	return code
}
