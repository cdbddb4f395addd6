package air_test

import "github.com/ingot-metal/ingot/metallib/air"

// A builder makes functions for tests.
type builder struct {
	m *air.Module
	f *air.Function
	b *air.Block
}

// newBuilder starts a module with one function of the given type.
func newBuilder(name string, ft func(m *air.Module) *air.Type) *builder {
	m := &air.Module{SourceName: name, Triple: "air64-apple-macosx14.0.0"}
	t := ft(m)
	f := &air.Function{Symbol: air.Symbol{Name: name, Ty: m.Pointer(t, 0)}, FuncType: t}
	for i, p := range t.Params {
		f.Args = append(f.Args, &air.Arg{Ty: p, Index: i, Parent: f})
	}
	m.Functions = []*air.Function{f}
	return &builder{m: m, f: f, b: m.NewBlock(f, "")}
}

func (b *builder) block() *air.Block {
	b.b = b.m.NewBlock(b.f, "")
	return b.b
}

func (b *builder) add(in *air.Instr) *air.Instr {
	if in.Ty == nil {
		in.Ty = b.m.Void()
	}
	in.Parent = b.b
	b.b.Instrs = append(b.b.Instrs, in)
	return in
}

// saxpy is a kernel that computes y[i] += a * x[i].
func saxpy() *air.Module {
	b := newBuilder("saxpy", func(m *air.Module) *air.Type {
		device, constant := m.Pointer(m.Float(), 1), m.Pointer(m.Float(), 2)
		return m.FuncType(m.Void(), false, device, device, constant, m.Int(32))
	})
	m, f := b.m, b.f
	i := b.add(&air.Instr{Op: air.OpZExt, Ty: m.Int(64), Args: []air.Value{f.Args[3]}})
	element := func(p air.Value) *air.Instr {
		return b.add(&air.Instr{Op: air.OpGetElementPtr, Ty: p.Type(), SourceType: m.Float(), Flags: air.InBounds, Args: []air.Value{p, i}})
	}
	load := func(p air.Value) *air.Instr {
		return b.add(&air.Instr{Op: air.OpLoad, Ty: m.Float(), Args: []air.Value{p}, Align: 4})
	}
	y := element(f.Args[1])
	product := b.add(&air.Instr{Op: air.OpFMul, Ty: m.Float(), Args: []air.Value{load(f.Args[2]), load(element(f.Args[0]))}})
	sum := b.add(&air.Instr{Op: air.OpFAdd, Ty: m.Float(), Args: []air.Value{load(y), product}})
	b.add(&air.Instr{Op: air.OpStore, Args: []air.Value{sum, y}, Align: 4})
	b.add(&air.Instr{Op: air.OpRet})

	buffer := func(i, space uint64, access, name string) air.Metadata {
		return list(num(m, i), str("air.buffer"), str("air.location_index"), num(m, i), num(m, 1), str(access),
			str("air.address_space"), num(m, space), str("air.arg_type_size"), num(m, 4), str("air.arg_type_align_size"), num(m, 4),
			str("air.arg_type_name"), str("float"), str("air.arg_name"), str(name))
	}
	m.NamedMD = []*air.NamedMD{{Name: "air.kernel", Ops: []air.Metadata{list(&air.MDValue{V: f}, list(), list(
		buffer(0, 1, "air.read", "x"), buffer(1, 1, "air.read_write", "y"), buffer(2, 2, "air.read", "a"),
		list(num(m, 3), str("air.thread_position_in_grid"), str("air.arg_type_name"), str("uint"), str("air.arg_name"), str("i")),
	))}}}
	return m
}

func str(s string) air.Metadata { return &air.MDString{S: s} }

func num(m *air.Module, v uint64) air.Metadata { return &air.MDValue{V: air.ConstInt(m.Int(32), v)} }

func list(ops ...air.Metadata) air.Metadata { return &air.MDNode{Ops: ops} }
