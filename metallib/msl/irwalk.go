package msl

import "github.com/ingot-metal/ingot/metallib/air"

// eachInstr visits the instructions of a function in order.
func eachInstr(f *air.Function, visit func(*air.Instr)) {
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			visit(in)
		}
	}
}

// reachable are a function and those it calls, directly or not.
func reachable(f *air.Function) []*air.Function {
	list := []*air.Function{f}
	seen := map[*air.Function]bool{f: true}
	for i := 0; i < len(list); i++ {
		eachInstr(list[i], func(in *air.Instr) {
			if callee := in.CalleeFunction(); callee != nil && !seen[callee] {
				seen[callee] = true
				list = append(list, callee)
			}
		})
	}
	return list
}

// globalsIn are the globals that an operand is made of.
func globalsIn(v air.Value) []*air.Global {
	switch v := v.(type) {
	case *air.Global:
		return []*air.Global{v}
	case *air.Const:
		var list []*air.Global
		for _, e := range v.Elems {
			list = append(list, globalsIn(e)...)
		}
		return list
	}
	return nil
}

// replaceAll puts other values in the place of some, in all operands of the module's instructions.
func replaceAll(m *air.Module, with map[air.Value]air.Value) {
	if len(with) == 0 {
		return
	}
	resolve := func(v air.Value) air.Value {
		for {
			w, ok := with[v]
			if !ok {
				return v
			}
			v = w
		}
	}
	for _, f := range m.Functions {
		eachInstr(f, func(in *air.Instr) {
			for i, a := range in.Args {
				in.Args[i] = resolve(a)
			}
		})
	}
}
