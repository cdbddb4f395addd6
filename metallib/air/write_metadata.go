package air

// addAttachments numbers the nodes of attachments.
func (e *enumerator) addAttachments(as []Attachment) {
	for _, a := range as {
		e.addMetadata(a.Node)
	}
}

// addMetadata numbers metadata, operands before nodes as far as cycles allow. Numbers are places in their class here:
// strings come first in the file, then values, then nodes.
func (e *enumerator) addMetadata(md Metadata) {
	switch md := md.(type) {
	case nil:
	case *MDString:
		if _, ok := e.stringIDs[md.S]; !ok {
			e.stringIDs[md.S] = len(e.strings)
			e.strings = append(e.strings, md)
		}
	case *MDValue:
		if !isConstant(md.V) {
			refuse("metadata of the module refers to a value of a function")
		}
		var key Value = md.V
		if c := e.addConst(md.V, &e.module); c != nil {
			key = c.v
		}
		if _, ok := e.valueMDs[key]; !ok {
			e.valueMDs[key] = len(e.mdValues)
			e.mdValues = append(e.mdValues, md)
		}
	case *MDNode:
		if _, ok := e.nodeIDs[md]; ok {
			return
		}
		e.nodeIDs[md] = -1 // operands may refer back to the node
		for _, op := range md.Ops {
			e.addMetadata(op)
		}
		e.nodeIDs[md] = len(e.mdNodes)
		e.mdNodes = append(e.mdNodes, md)
	case *MDOther:
		refuse("debug information cannot be written: remove it with Module.StripDebug")
	default:
		refuse("metadata of type %T", md)
	}
}

// metadataID is the number of module-level metadata.
func (e *enumerator) metadataID(md Metadata) uint64 {
	switch md := md.(type) {
	case *MDString:
		return uint64(e.stringIDs[md.S])
	case *MDValue:
		key := md.V
		if c := e.byConst[md.V]; c != nil {
			key = c.v
		}
		if id, ok := e.valueMDs[key]; ok {
			return uint64(len(e.strings) + id)
		}
	case *MDNode:
		if id, ok := e.nodeIDs[md]; ok {
			return uint64(len(e.strings) + len(e.mdValues) + id)
		}
	}
	refuse("metadata of type %T was not numbered", md)
	return 0
}

func (e *enumerator) numMetadata() int { return len(e.strings) + len(e.mdValues) + len(e.mdNodes) }

// fixedKinds are the metadata kinds that LLVM 14 numbers itself.
var fixedKinds = [...]string{"dbg", "tbaa", "prof", "fpmath", "range", "tbaa.struct", "invariant.load", "alias.scope", "noalias",
	"nontemporal", "llvm.mem.parallel_loop_access", "nonnull", "dereferenceable", "dereferenceable_or_null", "make.implicit",
	"unpredictable", "invariant.group", "align", "llvm.loop", "type", "section_prefix", "absolute_symbol", "associated", "callees",
	"irr_loop", "llvm.access.group", "callback", "llvm.preserve.access.index", "vcall_visibility", "noundef", "annotation"}

// collectKinds numbers the metadata kinds: LLVM's own, then those of the module as they are met.
func (w *writer) collectKinds() {
	w.kinds = map[string]uint64{}
	add := func(kind string) {
		if _, ok := w.kinds[kind]; !ok {
			w.kinds[kind] = uint64(len(w.kindNames))
			w.kindNames = append(w.kindNames, kind)
		}
	}
	for _, k := range fixedKinds {
		add(k)
	}
	addAll := func(as []Attachment) {
		for _, a := range as {
			add(a.Kind)
		}
	}
	for _, g := range w.m.Globals {
		addAll(g.Meta)
	}
	for _, f := range w.m.Functions {
		addAll(f.Meta)
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				addAll(in.Meta)
			}
		}
	}
}

func (w *writer) writeMetadataKinds() {
	w.enter(metadataKindBlock, 3)
	for i, k := range w.kindNames {
		w.text(mdKind, k, uint64(i))
	}
	w.end()
}

// writeMetadata writes the metadata of the module.
func (w *writer) writeMetadata() {
	if w.e.numMetadata() == 0 && len(w.m.NamedMD) == 0 && !w.hasDeclAttachments() {
		return
	}
	w.enter(metadataBlock, 4)
	w.writeMDStrings()
	for _, v := range w.e.mdValues {
		w.record(mdValue, w.e.typeID(v.V.Type()), w.e.valueID(v.V))
	}
	var ops []uint64
	for _, n := range w.e.mdNodes {
		ops = ops[:0]
		for _, op := range n.Ops {
			if op == nil {
				ops = append(ops, 0)
			} else {
				ops = append(ops, w.e.metadataID(op)+1)
			}
		}
		code := uint64(mdNode)
		if n.Distinct {
			code = mdDistinctNode
		}
		w.record(code, ops...)
	}
	for _, n := range w.m.NamedMD {
		w.text(mdName, n.Name)
		ops = ops[:0]
		for _, op := range n.Ops {
			ops = append(ops, w.e.metadataID(op))
		}
		w.record(mdNamedNode, ops...)
	}
	for _, g := range w.m.Globals {
		w.declAttachments(g, g.Meta)
	}
	for _, f := range w.m.Functions {
		if f.Declaration() {
			w.declAttachments(f, f.Meta)
		}
	}
	w.end()
}

func (w *writer) hasDeclAttachments() bool {
	for _, g := range w.m.Globals {
		if len(g.Meta) > 0 {
			return true
		}
	}
	for _, f := range w.m.Functions {
		if f.Declaration() && len(f.Meta) > 0 {
			return true
		}
	}
	return false
}

func (w *writer) declAttachments(v Value, as []Attachment) {
	if len(as) > 0 {
		w.record(mdGlobalDeclAttach, w.attachments([]uint64{w.e.valueID(v)}, as)...)
	}
}

func (w *writer) attachments(ops []uint64, as []Attachment) []uint64 {
	for _, a := range as {
		ops = append(ops, w.kinds[a.Kind], w.e.metadataID(a.Node))
	}
	return ops
}

// writeMDStrings writes all strings in one record: their lengths as a bitstream, then their characters.
func (w *writer) writeMDStrings() {
	if len(w.e.strings) == 0 {
		return
	}
	lengths := newBitWriter()
	var chars []byte
	for _, s := range w.e.strings {
		lengths.vbr(uint64(len(s.S)), 6)
		chars = append(chars, s.S...)
	}
	lengths.align32()
	id := w.define(abbrev{lit(mdStrings), vbrOp(6), vbrOp(6), blobOp})
	w.abbreviated(id, append(lengths.buf, chars...), mdStrings, uint64(len(w.e.strings)), uint64(len(lengths.buf)))
}

// writeAttachments writes what is attached to a function and its instructions.
func (w *writer) writeAttachments(f *Function) {
	any := len(f.Meta) > 0
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			any = any || len(in.Meta) > 0
		}
	}
	if !any {
		return
	}
	w.enter(metadataAttachmentBlock, 3)
	if len(f.Meta) > 0 {
		w.record(mdAttachment, w.attachments(nil, f.Meta)...)
	}
	n := uint64(0)
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if len(in.Meta) > 0 {
				w.record(mdAttachment, w.attachments([]uint64{n}, in.Meta)...)
			}
			n++
		}
	}
	w.end()
}
