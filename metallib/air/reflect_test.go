package air_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

func TestKernels(t *testing.T) {
	m := saxpy()
	ks, err := m.Kernels()
	require.NoError(t, err)
	require.Len(t, ks, 1)
	require.Equal(t, air.KernelArg{Kind: air.BufferArg, Param: 1, Name: "y", TypeName: "float", Index: 1, Space: 1, Writable: true, Size: 4, Align: 4},
		ks[0].Args[1])
	require.Equal(t, air.KernelArg{Kind: air.BuiltinArg, Param: 3, Name: "i", TypeName: "uint", Builtin: "thread_position_in_grid"}, ks[0].Args[3])
	k, err := m.Kernel("saxpy")
	require.NoError(t, err)
	require.Same(t, m.Functions[0], k.Function)
	_, err = m.Kernel("other")
	require.ErrorContains(t, err, `no kernel "other" in the module, it has ["saxpy"]`)
	ks, err = (&air.Module{}).Kernels()
	require.NoError(t, err)
	require.Empty(t, ks)
}

// TestKernelForms reflects every form of argument, as compilers before AIR 2.5 write them (no address spaces) and after.
func TestKernelForms(t *testing.T) {
	b := newBuilder("k", func(m *air.Module) *air.Type {
		f := m.Float()
		return m.FuncType(m.Void(), false, m.Pointer(f, 1), m.Pointer(f, 2), m.Pointer(f, 3), m.Pointer(f, 1), m.Pointer(f, 2), m.Int(16), m.Pointer(f, 1))
	})
	m := b.m
	shared := &air.Global{Symbol: air.Symbol{Name: "shared", Ty: m.Pointer(m.Array(m.Float(), 3), 3)}, ValueType: m.Array(m.Float(), 3), Space: 3}
	wide := &air.Global{Symbol: air.Symbol{Name: "wide", Ty: m.Pointer(m.Vector(m.Float(), 4), 3)}, ValueType: m.Vector(m.Float(), 4), Space: 3}
	unused := &air.Global{Symbol: air.Symbol{Name: "unused", Ty: m.Pointer(m.Float(), 3)}, ValueType: m.Float(), Space: 3}
	fc := &air.Global{Symbol: air.Symbol{Name: "fc", Ty: m.Pointer(m.Float(), 2)}, ValueType: m.Float(), Space: 2}
	m.Globals = []*air.Global{shared, wide, unused, fc}
	p := &air.Const{Kind: air.ExprConst, Op: air.OpBitCast, Ty: m.Pointer(m.Float(), 3), Elems: []air.Value{shared}}
	b.add(&air.Instr{Op: air.OpLoad, Ty: m.Float(), Args: []air.Value{p}})
	b.add(&air.Instr{Op: air.OpLoad, Ty: wide.ValueType, Args: []air.Value{wide}})
	b.add(&air.Instr{Op: air.OpRet})
	n := func(v uint64) air.Metadata { return num(m, v) }
	constant := list(&air.MDValue{V: fc}, str("float"), str("scale"), n(4), &air.MDValue{V: air.ConstInt(m.Int(1), 0)})
	m.NamedMD = []*air.NamedMD{
		{Name: "air.kernel", Ops: []air.Metadata{list(&air.MDValue{V: m.Functions[0]}, list(), list(
			list(n(0), str("air.buffer"), str("air.location_index"), n(5), n(1), str("air.write"), str("air.struct_type_info"),
				list(n(0), n(4), n(0), str("float"), str("air.arg_name")), str("air.arg_type_size"), n(4), str("air.arg_type_name"), str("air.read"),
				str("air.arg_name"), str("out"), str("air.arg_unused")),
			list(n(1), str("air.buffer"), str("air.buffer_size"), n(16), str("air.location_index"), n(1), n(1), str("air.read")),
			list(n(2), str("air.buffer"), str("air.location_index"), n(0), n(1), str("air.read_write")),
			list(n(3), str("air.texture"), str("air.location_index"), n(2), n(1), str("air.sample")),
			list(n(4), str("air.sampler"), str("air.location_index"), n(3), n(1)),
			list(n(5), str("air.thread_index_in_simdgroup"), str("air.arg_type_name"), str("ushort")),
			list(n(6), str("air.function_constant"), constant, str("air.buffer"), str("air.location_index"), n(6), n(1), str("air.read")),
		), list(str("air.max_work_group_size"), n(128)))}},
		{Name: "air.function_constants", Ops: []air.Metadata{constant}},
	}
	for _, k := range bothWays(t, m, "k") {
		require.Equal(t, 128, k.MaxThreads)
		require.Equal(t, uint64(32), k.ThreadgroupBytes, "12 bytes, then 16 aligned to 16")
		globals := air.ThreadgroupGlobals(k.Function)
		require.Len(t, globals, 2)
		require.Equal(t, "shared", globals[0].Name)
		require.Len(t, k.Constants, 1)
		c := k.Constants[0]
		require.Equal(t, "fc", c.Global.Name)
		c.Global = nil
		require.Equal(t, air.FunctionConstant{Name: "scale", TypeName: "float", Index: 4}, c)
		require.Equal(t, []air.KernelArg{
			{Kind: air.BufferArg, Param: 0, Name: "out", TypeName: "air.read", Index: 5, Space: 1, Writable: true, Size: 4, Unused: true},
			{Kind: air.BufferArg, Param: 1, Index: 1, Space: 2, BufferSize: 16},
			{Kind: air.ThreadgroupArg, Param: 2, Index: 0, Space: 3, Writable: true},
			{Kind: air.TextureArg, Param: 3, Index: 2, Space: 1},
			{Kind: air.SamplerArg, Param: 4, Index: 3, Space: 2},
			{Kind: air.BuiltinArg, Param: 5, TypeName: "ushort", Builtin: "thread_index_in_simdgroup"},
			{Kind: air.BufferArg, Param: 6, Index: 6, Space: 1, Constant: "scale"},
		}, k.Args)
	}
	cs, err := m.FunctionConstants()
	require.NoError(t, err)
	require.Len(t, cs, 1)
}

// bothWays gives a kernel as it is and after writing and reading.
func bothWays(t *testing.T, m *air.Module, name string) []*air.Kernel {
	t.Helper()
	code, err := air.Write(m)
	require.NoError(t, err)
	back, err := air.Read(code)
	require.NoError(t, err)
	var ks []*air.Kernel
	for _, m := range []*air.Module{m, back} {
		k, err := m.Kernel(name)
		require.NoError(t, err)
		ks = append(ks, k)
	}
	return ks
}

func TestKernelsRefuses(t *testing.T) {
	for want, node := range map[string]func(m *air.Module) air.Metadata{
		"has not the three operands":           func(m *air.Module) air.Metadata { return list() },
		"the first operand of its node is no":  func(m *air.Module) air.Metadata { return list(str("x"), list(), list()) },
		"is no list of arguments":              func(m *air.Module) air.Metadata { return list(&air.MDValue{V: m.Functions[0]}, list(), str("x")) },
		"argument 0: its node is not a list":   func(m *air.Module) air.Metadata { return list(&air.MDValue{V: m.Functions[0]}, list(), list(list())) },
		"is not that of one of the function's": func(m *air.Module) air.Metadata { return arg(m, num(m, 9), str("air.buffer")) },
		"its node has no tag":                  func(m *air.Module) air.Metadata { return arg(m, num(m, 0), num(m, 0)) },
		"air.buffer without air.location":      func(m *air.Module) air.Metadata { return arg(m, num(m, 0), str("air.buffer")) },
		"air.location_index without a number": func(m *air.Module) air.Metadata {
			return arg(m, num(m, 0), str("air.buffer"), str("air.location_index"))
		},
		"air.max_work_group_size without a number": func(m *air.Module) air.Metadata {
			return list(&air.MDValue{V: m.Functions[0]}, list(), list(), list(str("air.max_work_group_size"), str("x")))
		},
	} {
		m := saxpy()
		m.NamedMD[0].Ops = []air.Metadata{node(m)}
		_, err := m.Kernels()
		require.ErrorContains(t, err, want)
	}
	m := saxpy()
	m.NamedMD = append(m.NamedMD, &air.NamedMD{Name: "air.function_constants", Ops: []air.Metadata{list(nil, str("float"), str("c"), str("x"))}})
	_, err := m.Kernels()
	require.ErrorContains(t, err, `function constant "c": its index is no number`)
	m.NamedMD[1].Ops[0] = list()
	_, err = m.Kernels()
	require.ErrorContains(t, err, "has not at least four operands")
}

// arg is a kernel's node with one argument.
func arg(m *air.Module, ops ...air.Metadata) air.Metadata {
	return list(&air.MDValue{V: m.Functions[0]}, list(), list(list(ops...)))
}
