package air

import (
	"slices"
	"strings"
)

// StripDebug removes debug information, which [Write] cannot write: the nodes kept as [MDOther], what is attached of them,
// the calls of llvm.dbg functions, and the module's notes about the form of debug information.
func (m *Module) StripDebug() {
	m.NamedMD = slices.DeleteFunc(m.NamedMD, func(n *NamedMD) bool { return strings.HasPrefix(n.Name, "llvm.dbg.") })
	for _, n := range m.NamedMD {
		n.Ops = slices.DeleteFunc(n.Ops, func(md Metadata) bool { return isOther(md) || n.Name == "llvm.module.flags" && isDebugFlag(md) })
	}
	for _, g := range m.Globals {
		g.Meta = withoutDebug(g.Meta)
	}
	isDebugCall := func(in *Instr) bool {
		f := in.CalleeFunction()
		return in.Op == OpCall && f != nil && strings.HasPrefix(f.Name, "llvm.dbg.")
	}
	for _, f := range m.Functions {
		f.Meta = withoutDebug(f.Meta)
		for _, b := range f.Blocks {
			b.Instrs = slices.DeleteFunc(b.Instrs, isDebugCall)
			for _, in := range b.Instrs {
				in.Meta = withoutDebug(in.Meta)
			}
		}
	}
	m.Functions = slices.DeleteFunc(m.Functions, func(f *Function) bool {
		return f.Declaration() && strings.HasPrefix(f.Name, "llvm.dbg.")
	})
	m.eachNode(func(md Metadata) {
		n, ok := md.(*MDNode)
		if !ok {
			return
		}
		if len(n.Ops) > 0 && n.Ops[0] == md {
			// A node that begins with itself names a loop; LLVM takes no null among a loop's properties.
			n.Ops = slices.DeleteFunc(n.Ops, isOther)
			return
		}
		for i, op := range n.Ops {
			if isOther(op) {
				n.Ops[i] = nil
			}
		}
	})
}

func isOther(md Metadata) bool {
	_, ok := md.(*MDOther)
	return ok
}

// isDebugFlag tells whether a module flag is about debug information.
func isDebugFlag(md Metadata) bool {
	n, ok := md.(*MDNode)
	if !ok || len(n.Ops) != 3 {
		return false
	}
	name := mdText(n.Ops[1])
	return name == "Debug Info Version" || name == "Dwarf Version"
}

func withoutDebug(as []Attachment) []Attachment {
	return slices.DeleteFunc(as, func(a Attachment) bool { return a.Kind == "dbg" || isOther(a.Node) })
}
