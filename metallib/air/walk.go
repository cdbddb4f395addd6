package air

// namedStructs are the named structs of a module in the order in which they are met.
func (m *Module) namedStructs() []*Type {
	var found []*Type
	seen := map[*Type]bool{}
	var visit func(t *Type)
	visit = func(t *Type) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		if t.Kind == StructKind && t.Identified {
			found = append(found, t)
		}
		visit(t.Elem)
		visit(t.Ret)
		for _, f := range t.Fields {
			visit(f)
		}
		for _, f := range t.Params {
			visit(f)
		}
	}
	m.eachType(visit)
	return found
}

// eachType visits the types of all values of a module, some more than once, and without those that they consist of.
func (m *Module) eachType(visit func(*Type)) {
	seen := map[Value]bool{}
	var value func(v Value)
	value = func(v Value) {
		if v == nil || seen[v] {
			return
		}
		seen[v] = true
		visit(v.Type())
		switch v := v.(type) {
		case *Const:
			visit(v.SourceType)
			for _, e := range v.Elems {
				value(e)
			}
		case *InlineAsm:
			visit(v.FuncType)
		case *MetadataValue:
			if md, ok := v.MD.(*MDValue); ok {
				value(md.V)
			}
		}
	}
	attrs := func(l AttrList) {
		for _, s := range append([]AttrSet{l.Fn, l.Ret}, l.Params...) {
			for _, a := range s {
				visit(a.Ty)
			}
		}
	}
	for _, g := range m.Globals {
		visit(g.ValueType)
		value(g)
		value(g.Init)
	}
	for _, a := range m.Aliases {
		visit(a.ValueType)
		value(a)
		value(a.Aliasee)
	}
	for _, f := range m.Functions {
		visit(f.FuncType)
		value(f)
		attrs(f.Attrs)
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				visit(in.Ty)
				visit(in.SourceType)
				visit(in.FuncType)
				attrs(in.Attrs)
				for _, a := range in.Args {
					value(a)
				}
				value(in.Callee)
			}
		}
	}
	m.eachNode(func(md Metadata) {
		if v, ok := md.(*MDValue); ok {
			value(v.V)
		}
	})
}

// eachNode visits all metadata of a module that are not local to functions, each once.
func (m *Module) eachNode(visit func(Metadata)) {
	seen := map[Metadata]bool{}
	var queue []Metadata
	add := func(md Metadata) {
		if md != nil && !seen[md] {
			seen[md] = true
			queue = append(queue, md)
		}
	}
	addAll := func(as []Attachment) {
		for _, a := range as {
			add(a.Node)
		}
	}
	for _, n := range m.NamedMD {
		for _, op := range n.Ops {
			add(op)
		}
	}
	for _, g := range m.Globals {
		addAll(g.Meta)
	}
	for _, f := range m.Functions {
		addAll(f.Meta)
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				addAll(in.Meta)
				for _, a := range in.Args {
					if mv, ok := a.(*MetadataValue); ok {
						add(mv.MD)
					}
				}
			}
		}
	}
	for len(queue) > 0 {
		md := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		visit(md)
		if n, ok := md.(*MDNode); ok {
			for _, op := range n.Ops {
				add(op)
			}
		}
	}
}
