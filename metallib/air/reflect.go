package air

import (
	"fmt"
	"strings"
)

// Kernels gives what `!air.kernel` says about the module's kernels, in order.
func (m *Module) Kernels() ([]*Kernel, error) {
	named := m.Named("air.kernel")
	if named == nil {
		return nil, nil
	}
	constants, err := m.FunctionConstants()
	if err != nil {
		return nil, err
	}
	var ks []*Kernel
	for i, op := range named.Ops {
		k, err := m.kernel(op, constants)
		if err != nil {
			return nil, fmt.Errorf("air: kernel %d of the module: %w", i, err)
		}
		ks = append(ks, k)
	}
	return ks, nil
}

// Kernel finds a kernel by name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	ks, err := m.Kernels()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, k := range ks {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("air: no kernel %q in the module, it has %q", name, names)
}

func (m *Module) kernel(md Metadata, constants []FunctionConstant) (*Kernel, error) {
	n, ok := md.(*MDNode)
	if !ok || len(n.Ops) < 3 {
		return nil, fmt.Errorf("its node has not the three operands function, outputs, arguments")
	}
	f := mdFunction(n.Ops[0])
	if f == nil {
		return nil, fmt.Errorf("the first operand of its node is no function")
	}
	k := &Kernel{Name: f.Name, Function: f, Constants: constants, ThreadgroupBytes: threadgroupBytes(f)}
	args, ok := n.Ops[2].(*MDNode)
	if !ok {
		return nil, fmt.Errorf("%s: the third operand of its node is no list of arguments", f.Name)
	}
	for i, op := range args.Ops {
		a, err := kernelArg(op, f, constants)
		if err != nil {
			return nil, fmt.Errorf("%s: argument %d: %w", f.Name, i, err)
		}
		k.Args = append(k.Args, a)
	}
	for _, op := range n.Ops[3:] {
		if p, ok := op.(*MDNode); ok && len(p.Ops) >= 2 && mdText(p.Ops[0]) == "air.max_work_group_size" {
			v, ok := mdInt(p.Ops[1])
			if !ok {
				return nil, fmt.Errorf("%s: air.max_work_group_size without a number", f.Name)
			}
			k.MaxThreads = int(v)
		}
	}
	return k, nil
}

// mdText is the text of a metadata string, empty if md is none.
func mdText(md Metadata) string {
	if s, ok := md.(*MDString); ok {
		return s.S
	}
	return ""
}

// mdInt is the value of an integer in metadata.
func mdInt(md Metadata) (int64, bool) {
	v, ok := md.(*MDValue)
	if !ok {
		return 0, false
	}
	c, ok := v.V.(*Const)
	if !ok || c.Ty.Kind != IntKind || c.Ty.Bits > 64 || c.Kind != IntConst && c.Kind != NullConst {
		return 0, false
	}
	return int64(signExtend(c.Bits, c.Ty.Bits)), true
}

// mdFunction is the function that metadata refers to, also through a cast.
func mdFunction(md Metadata) *Function {
	v, ok := md.(*MDValue)
	if !ok {
		return nil
	}
	f, _ := stripCasts(v.V).(*Function)
	return f
}

// stripCasts looks through constant casts.
func stripCasts(v Value) Value {
	for {
		c, ok := v.(*Const)
		if !ok || c.Kind != ExprConst || (c.Op != OpBitCast && c.Op != OpAddrSpaceCast) {
			return v
		}
		v = c.Elems[0]
	}
}

// kernelArg reads the node of one argument: its index, perhaps the function constant that it depends on, a tag, and then
// keys with their values, in an order that varies with the compiler's age.
func kernelArg(md Metadata, f *Function, constants []FunctionConstant) (KernelArg, error) {
	var a KernelArg
	n, ok := md.(*MDNode)
	if !ok || len(n.Ops) < 2 {
		return a, fmt.Errorf("its node is not a list of at least index and tag")
	}
	param, ok := mdInt(n.Ops[0])
	if !ok || param < 0 || param >= int64(len(f.Args)) {
		return a, fmt.Errorf("its index is not that of one of the function's %d parameters", len(f.Args))
	}
	a.Param = int(param)
	ops := n.Ops[1:]
	if mdText(ops[0]) == "air.function_constant" && len(ops) >= 3 {
		a.Constant = constantName(ops[1], constants)
		ops = ops[2:]
	}
	tag := mdText(ops[0])
	if tag == "" {
		return a, fmt.Errorf("its node has no tag after the index")
	}
	located := false
	number := func(i int) (int, error) {
		if i+1 < len(ops) {
			if v, ok := mdInt(ops[i+1]); ok {
				return int(v), nil
			}
		}
		return 0, fmt.Errorf("%s without a number", mdText(ops[i]))
	}
	for i := 1; i < len(ops); i++ {
		var err error
		switch mdText(ops[i]) {
		case "air.location_index":
			a.Index, err = number(i)
			located = true
			i += 2 // the index, and the number of slots
		case "air.buffer_size":
			a.BufferSize, err = number(i)
			i++
		case "air.address_space":
			a.Space, err = number(i)
			i++
		case "air.arg_type_size":
			a.Size, err = number(i)
			i++
		case "air.arg_type_align_size":
			a.Align, err = number(i)
			i++
		case "air.struct_type_info":
			i++
		case "air.arg_type_name", "air.arg_name":
			if i+1 < len(ops) {
				if mdText(ops[i]) == "air.arg_name" {
					a.Name = mdText(ops[i+1])
				} else {
					a.TypeName = mdText(ops[i+1])
				}
			}
			i++
		case "air.read_write", "air.write":
			a.Writable = true
		case "air.arg_unused":
			a.Unused = true
		}
		if err != nil {
			return a, err
		}
	}
	if t := f.Args[a.Param].Ty; a.Space == 0 && t.Kind == PointerKind {
		a.Space = t.Space // compilers before AIR 2.5 do not write it down
	}
	name := strings.TrimPrefix(tag, "air.")
	switch {
	case (tag == "air.buffer" || tag == "air.indirect_buffer") && !located:
		return a, fmt.Errorf("%s without air.location_index", tag)
	case (tag == "air.buffer" || tag == "air.indirect_buffer") && a.Space == 3:
		a.Kind = ThreadgroupArg
	case tag == "air.buffer" || tag == "air.indirect_buffer":
		a.Kind = BufferArg
	case tag == "air.texture":
		a.Kind = TextureArg
	case tag == "air.sampler":
		a.Kind = SamplerArg
	case located:
		a.Kind, a.Builtin = OtherArg, name
	default:
		a.Kind, a.Builtin = BuiltinArg, name
	}
	return a, nil
}

// constantName is the name of the function constant that an argument's node refers to.
func constantName(md Metadata, constants []FunctionConstant) string {
	n, ok := md.(*MDNode)
	if !ok {
		return ""
	}
	for _, op := range n.Ops {
		for _, c := range constants {
			if s := mdText(op); s != "" && s == c.Name {
				return s
			}
		}
	}
	// A predicate of its own: the last text is what it is called.
	name := ""
	for _, op := range n.Ops {
		if s := mdText(op); s != "" {
			name = s
		}
	}
	return name
}

// FunctionConstants gives what `!air.function_constants` says.
func (m *Module) FunctionConstants() ([]FunctionConstant, error) {
	named := m.Named("air.function_constants")
	if named == nil {
		return nil, nil
	}
	var cs []FunctionConstant
	for i, op := range named.Ops {
		n, ok := op.(*MDNode)
		if !ok || len(n.Ops) < 4 {
			return nil, fmt.Errorf("air: function constant %d of the module: its node has not at least four operands", i)
		}
		c := FunctionConstant{TypeName: mdText(n.Ops[1]), Name: mdText(n.Ops[2]), Active: true}
		if v, ok := n.Ops[0].(*MDValue); ok {
			c.Global, _ = stripCasts(v.V).(*Global)
		}
		index, ok := mdInt(n.Ops[3])
		if !ok {
			return nil, fmt.Errorf("air: function constant %q: its index is no number", c.Name)
		}
		c.Index = int(index)
		if len(n.Ops) > 4 {
			v, _ := mdInt(n.Ops[4])
			c.Active = v != 0
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// threadgroupBytes is the threadgroup memory that f and what it calls declare, laid out one after the other.
func threadgroupBytes(f *Function) uint64 {
	var size uint64
	for _, g := range ThreadgroupGlobals(f) {
		a := max(g.Align, Align(g.ValueType))
		size = (size+a-1)/a*a + Size(g.ValueType)
	}
	return size
}

// ThreadgroupGlobals are the threadgroup variables (address space 3) that f and the functions it calls refer to, in the
// order in which they are met.
func ThreadgroupGlobals(f *Function) []*Global {
	const threadgroupSpace = 3
	var found []*Global
	seen := map[Value]bool{}
	var visit func(v Value)
	visit = func(v Value) {
		switch v := v.(type) {
		case *Global:
			if !seen[v] && v.Space == threadgroupSpace {
				found = append(found, v)
			}
			seen[v] = true
		case *Const:
			if len(v.Elems) == 0 || seen[v] {
				return
			}
			seen[v] = true
			for _, e := range v.Elems {
				visit(e)
			}
		case *Function:
			if seen[v] {
				return
			}
			seen[v] = true
			for _, b := range v.Blocks {
				for _, in := range b.Instrs {
					for _, a := range in.Args {
						visit(a)
					}
					if in.Callee != nil {
						visit(in.Callee)
					}
				}
			}
		}
	}
	visit(f)
	return found
}
