package air

import "fmt"

// metadata prints metadata as an operand, and numbers nodes.
func (p *printer) metadata(md Metadata) {
	switch md := md.(type) {
	case nil:
		p.add("null")
	case *MDString:
		p.add("!" + quote(md.S))
	case *MDValue:
		p.typed(md.V)
	default:
		if p.m == nil {
			p.add("!{...}")
			return
		}
		p.print("!%d", p.node(md))
	}
}

// node is the number of a node, which it gets here if it has none.
func (p *printer) node(md Metadata) int {
	n, ok := p.nodes[md]
	if !ok {
		n = len(p.nodeList)
		p.nodes[md] = n
		p.nodeList = append(p.nodeList, md)
	}
	return n
}

// attachments prints what is attached to a symbol or instruction, with something before each.
func (p *printer) attachments(as []Attachment, before string) {
	if p.m == nil {
		return
	}
	for i, a := range as {
		if before == "" && i > 0 {
			p.add(" ")
		}
		p.print("%s!%s ", before, quoteName(a.Kind))
		p.metadata(a.Node)
	}
}

// attrGroup prints the number of a group of function attributes.
func (p *printer) attrGroup(s AttrSet) {
	if p.m == nil || len(s) == 0 {
		return
	}
	key := fmt.Sprint(s)
	n, ok := p.groups[key]
	if !ok {
		n = len(p.groupSet)
		p.groups[key] = n
		p.groupSet = append(p.groupSet, s)
	}
	p.print(" #%d", n)
}

func (p *printer) attributeGroups() {
	for i, s := range p.groupSet {
		if i == 0 {
			p.add("\n")
		}
		p.print("attributes #%d = {", i)
		for _, a := range s {
			text := a.String()
			if a.HasInt && !a.Str && (a.Kind == "align" || a.Kind == "alignstack") {
				text = fmt.Sprintf("%s=%d", a.Kind, a.Int)
			}
			p.add(" " + text)
		}
		p.add(" }\n")
	}
}

// moduleMetadata prints the named metadata, and then all nodes that have been met.
func (p *printer) moduleMetadata() {
	if len(p.m.NamedMD) > 0 {
		p.add("\n")
	}
	for _, n := range p.m.NamedMD {
		p.print("!%s = !{", quoteName(n.Name))
		p.list(len(n.Ops), func(i int) { p.metadata(n.Ops[i]) })
		p.add("}\n")
	}
	// Printing a node may number others, which are printed in turn.
	for i := 0; i < len(p.nodeList); i++ {
		if i == 0 {
			p.add("\n")
		}
		p.print("!%d = ", i)
		switch n := p.nodeList[i].(type) {
		case *MDNode:
			if n.Distinct {
				p.add("distinct ")
			}
			p.add("!{")
			p.list(len(n.Ops), func(j int) { p.metadata(n.Ops[j]) })
			p.add("}\n")
		case *MDOther:
			p.print("!{} ; record %d\n", n.Code)
		default:
			p.add("!{}\n")
		}
	}
}
