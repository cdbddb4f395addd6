package msl

import (
	"fmt"
	"sort"
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// constants gives the kernel's function constants Metal's form: a variable that the code reads, another that Metal fills
// with the constant's value, and a constructor that copies the one into the other and computes the derived constants.
func (l *lowering) constants() error {
	globals := map[*air.Global]*constantInfo{}
	for _, g := range l.m.Globals {
		if c := l.u.constants[g.Name]; c != nil {
			globals[g] = c
		}
	}
	used := map[*constantInfo]*air.Global{}
	note := func(v air.Value) {
		for _, g := range globalsIn(v) {
			if c := globals[g]; c != nil {
				used[c] = g
			}
		}
	}
	for _, f := range reachable(l.fn) {
		eachInstr(f, func(in *air.Instr) {
			for _, a := range in.Args {
				note(a)
			}
		})
	}
	if len(used) == 0 {
		return nil
	}
	// Constants that others are computed from are used too.
	for before := -1; before != len(used); {
		before = len(used)
		for c := range used {
			if init := l.initialiser(c); init != nil {
				eachInstr(init, func(in *air.Instr) {
					if _, isStore := storedConstant(in); !isStore {
						for _, a := range in.Args {
							note(a)
						}
					}
				})
			}
		}
	}
	for c := range used {
		l.used = append(l.used, c)
	}
	sort.Slice(l.used, func(i, j int) bool { return l.used[i].order < l.used[j].order })
	for _, c := range l.used {
		g := used[c]
		g.IsConst = false
		g.Init = &air.Const{Kind: air.UndefConst, Ty: g.ValueType}
	}
	if err := l.constructor(used); err != nil {
		return err
	}
	l.listConstructor()
	return nil
}

// initialiser is the function that computes a derived constant, nil for others.
func (l *lowering) initialiser(c *constantInfo) *air.Function {
	if c.index >= 0 {
		return nil
	}
	return l.m.Function(fmt.Sprintf("%s%d", constantInitPrefix, c.order))
}

// constructor makes the function that sets the used constants: copies of what Metal fills in, then the initialisers of
// the derived ones, one after the other in the order of the source. (Joining them is left to here, since opt takes
// constants for constant and would move what reads one above what sets it.)
func (l *lowering) constructor(used map[*constantInfo]*air.Global) error {
	ctor := &air.Function{FuncType: l.m.FuncType(l.m.Void(), false)}
	ctor.Ty = l.m.Pointer(nil, 0)
	ctor.Name = "_GLOBAL__sub_I_program.metal"
	ctor.Section = "air.static_init"
	l.ctor = ctor
	last := l.m.NewBlock(ctor, "")
	l.fill(last, used)
	for _, c := range l.used {
		if c.index >= 0 {
			continue
		}
		init := l.initialiser(c)
		if init == nil || init.Declaration() {
			return fmt.Errorf("derived constant %s has no initialiser", c.name)
		}
		last.Instrs = append(last.Instrs, &air.Instr{Op: air.OpBr, Ty: l.m.Void(), Blocks: []*air.Block{init.Blocks[0]}, Parent: last})
		end := l.m.NewBlock(ctor, "")
		ctor.Blocks = append(ctor.Blocks[:len(ctor.Blocks)-1], init.Blocks...)
		ctor.Blocks = append(ctor.Blocks, end)
		for _, b := range init.Blocks {
			b.Parent = ctor
			var out []*air.Instr
			for _, in := range b.Instrs {
				g, isStore := storedConstant(in)
				switch {
				case isStore:
					out = append(out, l.store(in, g)...)
				case in.Op == air.OpRet:
					out = append(out, &air.Instr{Op: air.OpBr, Ty: l.m.Void(), Blocks: []*air.Block{end}, Parent: b})
				default:
					out = append(out, in)
				}
			}
			b.Instrs = out
		}
		last = end
	}
	last.Instrs = append(last.Instrs, &air.Instr{Op: air.OpRet, Ty: l.m.Void(), Parent: last})
	joinBlocks(ctor)
	l.m.Functions = append(l.m.Functions, ctor)
	return nil
}

// joinBlocks makes one block of two where the first leads to the second only and the second comes from the first only.
func joinBlocks(f *air.Function) {
	from := map[*air.Block]int{}
	for _, b := range f.Blocks {
		for _, t := range b.Terminator().Blocks {
			from[t]++
		}
	}
	for i := 0; i+1 < len(f.Blocks); {
		b, next := f.Blocks[i], f.Blocks[i+1]
		t := b.Terminator()
		if t.Op != air.OpBr || len(t.Blocks) != 1 || t.Blocks[0] != next || from[next] != 1 || next.Instrs[0].Op == air.OpPhi {
			i++
			continue
		}
		b.Instrs = append(b.Instrs[:len(b.Instrs)-1], next.Instrs...)
		for _, in := range next.Instrs {
			in.Parent = b
		}
		f.Blocks = append(f.Blocks[:i+1], f.Blocks[i+2:]...)
		eachInstr(f, func(in *air.Instr) {
			if in.Op == air.OpPhi {
				for k := range in.Blocks {
					if in.Blocks[k] == next {
						in.Blocks[k] = b
					}
				}
			}
		})
	}
}

// storedConstant is the constant that a call of the prelude's store sets.
func storedConstant(in *air.Instr) (*air.Global, bool) {
	callee := in.CalleeFunction()
	if in.Op != air.OpCall || callee == nil || !strings.HasPrefix(callee.Name, "_Z14__msl_fc_store") {
		return nil, false
	}
	g, ok := in.Args[0].(*air.Global)
	return g, ok
}

// store makes the store that such a call stands for; a bool is a byte in memory.
func (l *lowering) store(call *air.Instr, g *air.Global) []*air.Instr {
	var out []*air.Instr
	v := call.Args[1]
	if t := v.Type(); t.Kind == air.IntKind && t.Bits == 1 {
		wide := &air.Instr{Op: air.OpZExt, Ty: g.ValueType, Args: []air.Value{v}, Parent: call.Parent}
		out, v = append(out, wide), wide
	}
	return append(out, &air.Instr{Op: air.OpStore, Ty: l.m.Void(), Args: []air.Value{v, g}, Align: g.Align, Parent: call.Parent})
}

// fill copies Metal's variables at the constructor's beginning.
func (l *lowering) fill(entry *air.Block, used map[*constantInfo]*air.Global) {
	l.filled = map[*air.Global]*air.Global{}
	l.fillOf = map[*constantInfo]*air.Global{}
	for _, c := range l.used {
		if c.index < 0 {
			continue
		}
		g := used[c]
		from := &air.Global{ValueType: g.ValueType, Space: constantSpace, IsConst: true, ExternallyInitialized: true, Align: g.Align}
		from.Name = fmt.Sprintf("_Z%d%s.MTL_FC_INIT_%d_%s", len(c.name), c.name, c.index, mangledType(c.typ))
		from.Ty = g.Ty
		from.Linkage = air.InternalLinkage
		from.Section = "air.fc_initializer"
		from.Init = &air.Const{Kind: air.UndefConst, Ty: g.ValueType}
		l.filled[g] = from
		l.fillOf[c] = from
		l.m.Globals = append(l.m.Globals, from)
		load := &air.Instr{Op: air.OpLoad, Ty: g.ValueType, Args: []air.Value{from}, Align: g.Align, Parent: entry}
		entry.Instrs = append(entry.Instrs, load,
			&air.Instr{Op: air.OpStore, Ty: l.m.Void(), Args: []air.Value{load, g}, Align: g.Align, Parent: entry})
	}
}

// listConstructor puts the constructor into llvm.global_ctors.
func (l *lowering) listConstructor() {
	pointer := l.m.Pointer(nil, 0)
	entry := l.m.Struct(false, l.m.Int(32), pointer, pointer)
	list := &air.Global{ValueType: l.m.Array(entry, 1)}
	list.Name = "llvm.global_ctors"
	list.Ty = pointer
	list.Linkage = air.AppendingLinkage
	list.Init = &air.Const{Kind: air.AggregateConst, Ty: list.ValueType, Elems: []air.Value{
		&air.Const{Kind: air.AggregateConst, Ty: entry, Elems: []air.Value{
			air.ConstInt(l.m.Int(32), 65535), l.ctor, &air.Const{Kind: air.NullConst, Ty: pointer},
		}},
	}}
	l.m.Globals = append([]*air.Global{list}, l.m.Globals...)
	l.ctorList = list
}

// mangledType is the Itanium mangling of a scalar or vector.
func mangledType(t *debugType) string {
	if t.kind == vectorDebugType {
		return fmt.Sprintf("Dv%d_%s", t.count, mangledType(t.elem))
	}
	return map[string]string{"bool": "b", "char": "c", "uchar": "h", "short": "s", "ushort": "t", "int": "i", "uint": "j",
		"long": "l", "ulong": "m", "half": "Dh", "float": "f", "bfloat": "DF16b"}[t.name]
}
