package metallib_test

import (
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// scaleModule makes a module with one kernel, `x[i] *= factor`, as a compiler would.
func scaleModule(name string) *air.Module {
	m := &air.Module{SourceName: name, Triple: "air64-apple-macosx14.0.0"}
	i32, i64, f32 := m.Int(32), m.Int(64), m.Float()
	device, constant := m.Pointer(f32, 1), m.Pointer(f32, 2)
	ft := m.FuncType(m.Void(), false, device, constant, i32)
	f := &air.Function{Symbol: air.Symbol{Name: name, Ty: m.Pointer(ft, 0)}, FuncType: ft}
	for i, p := range ft.Params {
		f.Args = append(f.Args, &air.Arg{Ty: p, Index: i, Parent: f})
	}
	m.Functions = []*air.Function{f}
	b := m.NewBlock(f, "")
	add := func(in *air.Instr) *air.Instr {
		in.Parent = b
		b.Instrs = append(b.Instrs, in)
		return in
	}
	wide := add(&air.Instr{Op: air.OpZExt, Ty: i64, Args: []air.Value{f.Args[2]}})
	p := add(&air.Instr{Op: air.OpGetElementPtr, Ty: device, SourceType: f32, Flags: air.InBounds, Args: []air.Value{f.Args[0], wide}})
	x := add(&air.Instr{Op: air.OpLoad, Ty: f32, Args: []air.Value{p}, Align: 4})
	k := add(&air.Instr{Op: air.OpLoad, Ty: f32, Args: []air.Value{f.Args[1]}, Align: 4})
	y := add(&air.Instr{Op: air.OpFMul, Ty: f32, Args: []air.Value{x, k}})
	add(&air.Instr{Op: air.OpStore, Ty: m.Void(), Args: []air.Value{y, p}, Align: 4})
	add(&air.Instr{Op: air.OpRet, Ty: m.Void()})

	s := func(text string) air.Metadata { return &air.MDString{S: text} }
	n := func(v uint64) air.Metadata { return &air.MDValue{V: air.ConstInt(i32, v)} }
	list := func(ops ...air.Metadata) air.Metadata { return &air.MDNode{Ops: ops} }
	m.NamedMD = []*air.NamedMD{{Name: "air.kernel", Ops: []air.Metadata{list(&air.MDValue{V: f}, list(), list(
		list(n(0), s("air.buffer"), s("air.location_index"), n(0), n(1), s("air.read_write"), s("air.address_space"), n(1),
			s("air.arg_type_size"), n(4), s("air.arg_type_align_size"), n(4), s("air.arg_type_name"), s("float"), s("air.arg_name"), s("x")),
		list(n(1), s("air.buffer"), s("air.buffer_size"), n(4), s("air.location_index"), n(1), n(1), s("air.read"),
			s("air.address_space"), n(2), s("air.arg_type_size"), n(4), s("air.arg_type_align_size"), n(4), s("air.arg_type_name"),
			s("float"), s("air.arg_name"), s("factor")),
		list(n(2), s("air.thread_position_in_grid"), s("air.arg_type_name"), s("uint"), s("air.arg_name"), s("i")),
	), list(s("air.max_work_group_size"), n(256)))}}}
	return m
}

// scaleLibrary is a library of kernels made by scaleModule.
func scaleLibrary(names ...string) (*metallib.Library, error) {
	l := &metallib.Library{}
	for _, name := range names {
		code, err := air.Write(scaleModule(name))
		if err != nil {
			return nil, err
		}
		l.Functions = append(l.Functions, metallib.Function{Name: name, Type: metallib.Kernel, Bitcode: code})
	}
	return l, nil
}
