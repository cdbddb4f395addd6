package msl

import (
	"fmt"

	"github.com/ingot-metal/ingot/metallib/air"
)

// Versions that the modules declare: AIR 2.6 and Metal 3.1, which macOS 14 takes.
const (
	airMajor, airMinor     = 2, 6
	metalMajor, metalMinor = 3, 1
	sdkMajor, sdkMinor     = 14, 0
	producer               = "Ingot MSL compiler"
)

// A metadataBuilder makes nodes as Apple's compiler does.
type metadataBuilder struct{ m *air.Module }

func (b metadataBuilder) i32(n int) air.Metadata {
	return &air.MDValue{V: air.ConstInt(b.m.Int(32), uint64(n))}
}

func (b metadataBuilder) i1(v bool) air.Metadata {
	n := uint64(0)
	if v {
		n = 1
	}
	return &air.MDValue{V: air.ConstInt(b.m.Int(1), n)}
}

func (b metadataBuilder) node(ops ...any) *air.MDNode {
	n := &air.MDNode{}
	for _, o := range ops {
		switch o := o.(type) {
		case string:
			n.Ops = append(n.Ops, &air.MDString{S: o})
		case int:
			n.Ops = append(n.Ops, b.i32(o))
		case bool:
			n.Ops = append(n.Ops, b.i1(o))
		case air.Value:
			n.Ops = append(n.Ops, &air.MDValue{V: o})
		case air.Metadata:
			n.Ops = append(n.Ops, o)
		}
	}
	return n
}

// metadata replaces the module's named metadata with Metal's.
func (l *lowering) metadata() error {
	b := metadataBuilder{l.m}
	named := func(name string, ops ...air.Metadata) {
		l.m.NamedMD = append(l.m.NamedMD, &air.NamedMD{Name: name, Ops: ops})
	}
	l.m.NamedMD = nil
	sdk := &air.Const{Kind: air.DataConst, Ty: l.m.Array(l.m.Int(32), 2), Data: []uint64{sdkMajor, sdkMinor}}
	named("llvm.module.flags",
		b.node(2, "SDK Version", sdk),
		b.node(1, "wchar_size", 4),
		b.node(7, "frame-pointer", 2),
		b.node(7, "air.max_device_buffers", 31),
		b.node(7, "air.max_constant_buffers", 31),
		b.node(7, "air.max_threadgroup_buffers", 31),
		b.node(7, "air.max_textures", 128),
		b.node(7, "air.max_read_write_textures", 8),
		b.node(7, "air.max_samplers", 16))
	named("llvm.ident", b.node(producer))
	named("air.version", b.node(airMajor, airMinor, 0))
	named("air.language_version", b.node("Metal", metalMajor, metalMinor, 0))
	named("air.compile_options", b.node("air.compile.denorms_disable"), b.node("air.compile.fast_math_disable"),
		b.node("air.compile.framebuffer_fetch_enable"))
	args, err := l.arguments(b)
	if err != nil {
		return err
	}
	kernel := b.node(l.fn, b.node(), b.node(args...))
	if l.k.maxThreads > 0 {
		kernel.Ops = append(kernel.Ops, b.node("air.max_work_group_size", l.k.maxThreads))
	}
	named("air.kernel", kernel)
	var constants []air.Metadata
	for _, c := range l.used {
		if g := l.fillOf[c]; g != nil {
			constants = append(constants, b.node(g, c.typ.name, c.name, c.index, true))
		}
	}
	if constants != nil {
		named("air.function_constants", constants...)
	}
	return nil
}

// arguments makes one node per parameter.
func (l *lowering) arguments(b metadataBuilder) ([]any, error) {
	slots := map[[2]int]string{}
	next := map[bool]int{} // for parameters without an index, by whether they are threadgroup memory
	var out []any
	for i, p := range l.k.params {
		t := l.fn.Args[i].Ty
		if !isPointer(t) {
			if p.builtin == "" {
				return nil, fmt.Errorf("parameter %s is neither a buffer nor a built-in: it needs an attribute", p.name)
			}
			if !isPosition(p.typ) {
				return nil, fmt.Errorf("parameter %s is of type %s: %s is a uint or ushort, or a vector of two or three", p.name, p.typ.name, p.builtin)
			}
			n := b.node(i, "air."+p.builtin, "air.arg_type_name", p.typ.name, "air.arg_name", p.name)
			l.markUnused(n, i)
			out = append(out, n)
			continue
		}
		shared := t.Space == threadgroupSpace
		if t.Space != deviceSpace && t.Space != constantSpace && !shared {
			return nil, fmt.Errorf("parameter %s points to memory of its own thread", p.name)
		}
		if p.builtin != "" || p.binding != "" && (p.binding == "threadgroup") != shared {
			return nil, fmt.Errorf("parameter %s points to %s memory: it cannot be %s", p.name, spaceName(t.Space), p.builtin+p.binding)
		}
		slot := p.slot
		if p.binding == "" {
			slot = next[shared]
		}
		next[shared] = slot + 1
		if slot < 0 || slot > 30 {
			return nil, fmt.Errorf("parameter %s has index %d: indices are 0 to 30", p.name, slot)
		}
		space := 0
		if shared {
			space = 1
		}
		if other, ok := slots[[2]int{space, slot}]; ok {
			return nil, fmt.Errorf("parameters %s and %s have the same index %d", other, p.name, slot)
		}
		slots[[2]int{space, slot}] = p.name
		n := l.buffer(b, i, p, t.Space, slot)
		l.markUnused(n, i)
		out = append(out, n)
	}
	return out, nil
}

func spaceName(space int) string {
	return map[int]string{deviceSpace: "device", constantSpace: "constant", threadgroupSpace: "threadgroup"}[space]
}

// isPosition tells whether a built-in can be of that type.
func isPosition(t *debugType) bool {
	if t.kind == vectorDebugType && (t.count == 2 || t.count == 3) {
		t = t.elem
	}
	return t.kind == scalarType && (t.name == "uint" || t.name == "ushort")
}

// markUnused says of a parameter that the code does not use it, so that nothing need be bound there. (Apple's compiler
// decides earlier, and calls some parameters used that no instruction uses any more.)
func (l *lowering) markUnused(n *air.MDNode, i int) {
	used := false
	eachInstr(l.fn, func(in *air.Instr) {
		for _, a := range in.Args {
			used = used || a == air.Value(l.fn.Args[i])
		}
	})
	if !used {
		n.Ops = append(n.Ops, &air.MDString{S: "air.arg_unused"})
	}
}

// buffer makes the node of a parameter that points to memory. What is const can be read only; a void pointer has neither
// a size nor, since Apple's compiler leaves that out too, a constness.
func (l *lowering) buffer(b metadataBuilder, i int, p paramInfo, space, slot int) *air.MDNode {
	target := p.typ.elem
	ops := []any{i, "air.buffer"}
	if p.typ.kind == referenceType && space == constantSpace {
		ops = append(ops, "air.buffer_size", target.size)
	}
	access := "air.read_write"
	if space == constantSpace || p.typ.constant && target.kind != voidType {
		access = "air.read"
	}
	ops = append(ops, "air.location_index", slot, 1, access, "air.address_space", space)
	if target.kind == structType {
		var members []any
		for _, m := range target.members {
			t, count := m.typ, 0
			if t.kind == arrayType {
				t, count = t.elem, t.count
			}
			members = append(members, m.offset, t.size, count, t.name, m.name)
		}
		ops = append(ops, "air.struct_type_info", b.node(members...))
	}
	if target.kind != voidType {
		ops = append(ops, "air.arg_type_size", target.size, "air.arg_type_align_size", max(target.align, 1))
	}
	return b.node(append(ops, "air.arg_type_name", target.name, "air.arg_name", p.name)...)
}
