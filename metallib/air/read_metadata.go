package air

import "fmt"

// A nodeRef remembers a node whose operands are put in at the end of its block, since they may come after it.
type nodeRef struct {
	node *MDNode
	ops  []uint64 // numbers plus one, 0 for null
}

// readMetadata reads a metadata block, of the module if b is nil, else of a function body.
func (r *reader) readMetadata(b *body) {
	var nodes []nodeRef
	add := func(m Metadata) { r.mds = append(r.mds, m) }
	r.blocks(func() {
		switch r.code {
		case mdStrings:
			r.readMDStrings()
		case mdStringOld:
			add(&MDString{r.text(0)})
		case mdValue:
			add(r.metadataValue(r.op(0), r.op(1), b != nil))
		case mdNode, mdDistinctNode:
			n := &MDNode{Distinct: r.code == mdDistinctNode}
			nodes = append(nodes, nodeRef{n, append([]uint64(nil), r.record...)})
			add(n)
		case mdOldNode:
			n := &MDNode{}
			add(n)
			if len(r.record)%2 != 0 {
				r.fail("an old metadata node of %d operands", len(r.record))
			}
			ref := nodeRef{node: n}
			for i := 0; i < len(r.record); i += 2 {
				switch ty := r.typeAt(r.record[i]); ty.Kind {
				case MetadataKind:
					ref.ops = append(ref.ops, r.record[i+1]+1)
				case VoidKind:
					ref.ops = append(ref.ops, 0)
				default:
					v := r.metadataValue(r.record[i], r.record[i+1], b != nil)
					r.oldMDValues = append(r.oldMDValues, v)
					ref.ops = append(ref.ops, ^uint64(0)-uint64(len(r.oldMDValues)-1))
				}
			}
			nodes = append(nodes, ref)
		case mdOldFnNode:
			if len(r.record) == 2 && r.typeAt(r.record[0]).Kind != MetadataKind && r.typeAt(r.record[0]).Kind != VoidKind {
				add(r.metadataValue(r.record[0], r.record[1], true))
			} else {
				add(&MDNode{})
			}
		case mdKind:
			r.mdKinds[r.op(0)] = r.text(1)
		case mdName:
			r.pendingName = r.text(0)
		case mdNamedNode:
			n := &NamedMD{Name: r.pendingName}
			r.m.NamedMD = append(r.m.NamedMD, n)
			for _, id := range r.record {
				n.Ops = append(n.Ops, r.mdAt(id))
			}
		case mdGlobalDeclAttach:
			r.readGlobalAttachment()
		case mdIndexOffset, mdIndex:
		default:
			if r.code < mdLocation || r.code == mdAttachment || r.code > mdFixedPointType {
				r.fail("metadata record %d is not known", r.code)
			}
			r.skipped("debug information: METADATA record %d", r.code)
			add(&MDOther{Code: r.code, Record: append([]uint64(nil), r.record...)})
		}
	}, nil)
	for _, n := range nodes {
		if len(n.ops) > 0 {
			n.node.Ops = make([]Metadata, len(n.ops))
		}
		for i, id := range n.ops {
			switch {
			case id == 0:
			case id > ^uint64(0)-uint64(len(r.oldMDValues)):
				n.node.Ops[i] = r.oldMDValues[^uint64(0)-id]
			default:
				n.node.Ops[i] = r.mdAt(id - 1)
			}
		}
	}
	r.oldMDValues = r.oldMDValues[:0]
}

// mdAt is metadata number id. Named metadata may come before it in old modules, hence the reference.
func (r *reader) mdAt(id uint64) Metadata {
	if id >= uint64(len(r.mds)) {
		r.fail("metadata %d does not exist, there are %d", id, len(r.mds))
	}
	return r.mds[id]
}

// metadataValue makes a value into metadata; in a function the value may still have to come.
func (r *reader) metadataValue(ty, id uint64, local bool) *MDValue {
	t := r.typeAt(ty)
	if t.Kind == MetadataKind || t.Kind == VoidKind {
		r.fail("a value of type %s as metadata", t)
	}
	v := &MDValue{V: r.ref(id, t)}
	if _, ok := v.V.(*forwardRef); ok {
		r.mdForward = append(r.mdForward, v)
	}
	return v
}

// readMDStrings reads all strings of a block at once: their lengths as a bitstream, then their characters.
func (r *reader) readMDStrings() {
	count, offset := r.op(0), r.op(1)
	if offset > uint64(len(r.blob)) {
		r.fail("metadata strings begin at %d of %d bytes", offset, len(r.blob))
	}
	if count > offset*8/6 {
		r.fail("%d metadata strings, whose lengths take %d bytes", count, offset)
	}
	lengths := newBitReader(r.blob[:offset])
	lengths.at = r.at
	chars := r.blob[offset:]
	for range count {
		n := lengths.vbr(6)
		if n > uint64(len(chars)) {
			r.fail("a metadata string of %d bytes, %d are left", n, len(chars))
		}
		r.mds = append(r.mds, &MDString{string(chars[:n])})
		chars = chars[n:]
	}
}

func (r *reader) readMetadataKinds() {
	r.blocks(func() {
		if r.code != mdKind {
			r.fail("metadata kind record %d is not known", r.code)
		}
		r.mdKinds[r.op(0)] = r.text(1)
	}, nil)
}

// attachments are the pairs of kind and node from operand i on.
func (r *reader) attachments(i int) []Attachment {
	var as []Attachment
	for ; i < len(r.record); i += 2 {
		kind, ok := r.mdKinds[r.record[i]]
		if !ok {
			r.fail("metadata kind %d does not exist", r.record[i])
		}
		as = append(as, Attachment{kind, r.mdAt(r.op(i + 1))})
	}
	return as
}

func (r *reader) readGlobalAttachment() {
	as := r.attachments(1)
	switch v := r.globalValue(r.op(0)).(type) {
	case *Global:
		v.Meta = append(v.Meta, as...)
	case *Function:
		v.Meta = append(v.Meta, as...)
	default:
		r.fail("metadata attached to %T", v)
	}
}

// readAttachments reads the metadata attachments of a function and its instructions.
func (r *reader) readAttachments(b *body) {
	r.blocks(func() {
		if r.code != mdAttachment {
			r.skipRecord()
			return
		}
		if len(r.record)%2 == 0 {
			b.f.Meta = append(b.f.Meta, r.attachments(0)...)
			return
		}
		n := r.op(0)
		if n >= uint64(len(b.instrs)) {
			r.fail("metadata for instruction %d of %d", n, len(b.instrs))
		}
		in := b.instrs[n]
		in.Meta = append(in.Meta, r.attachments(1)...)
	}, nil)
}

// nameSyncScopes checks that atomic accesses use scopes that have names, when the module names any.
func (r *reader) nameSyncScopes() {
	for _, f := range r.m.Functions {
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				if in.Ordering != 0 && len(r.syncScopes) > 0 && int(in.SyncScope) >= len(r.syncScopes) {
					panic(bitError{fmt.Sprintf("synchronisation scope %d in %s does not exist", in.SyncScope, f.Name)})
				}
			}
		}
	}
	r.m.SyncScopes = r.syncScopes
}
