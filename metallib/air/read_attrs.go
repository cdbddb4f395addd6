package air

// An attrGroup is the attributes of one place: 0 the result, 1 the first parameter, ~0 the function.
type attrGroup struct {
	place uint64
	set   AttrSet
}

const functionPlace = 0xFFFFFFFF

// An attrTypeRef remembers a type attribute whose type is known only when the type table is.
type attrTypeRef struct {
	set   AttrSet
	index int
	id    uint64
}

// The forms of an attribute in a group record.
const (
	attrEnum       = 0
	attrInt        = 1
	attrKey        = 3
	attrKeyValue   = 4
	attrTypeless   = 5
	attrTyped      = 6
	attrRange      = 7
	attrRangeList  = 8
	maxKnownParams = 1 << 16
)

func (r *reader) readAttrGroups() {
	const groupEntry = 3
	r.blocks(func() {
		if r.code != groupEntry {
			r.skipRecord()
			return
		}
		g := attrGroup{place: r.op(1)}
		type typeRef struct {
			index int
			id    uint64
		}
		var refs []typeRef
		for i := 2; i < len(r.record); {
			var a Attr
			form := r.op(i)
			i++
			switch form {
			case attrEnum, attrInt, attrTypeless, attrTyped:
				a = enumAttr(r.op(i))
				i++
				a.HasInt = form == attrInt
				a.HasType = form == attrTypeless || form == attrTyped
				if a.HasInt {
					a.Int = r.op(i)
					i++
				}
				if form == attrTyped {
					refs = append(refs, typeRef{len(g.set), r.op(i)})
					i++
				}
			case attrKey, attrKeyValue:
				a.Str = true
				a.Kind, i = r.zeroEnded(i)
				if form == attrKeyValue {
					a.Val, i = r.zeroEnded(i)
				}
			case attrRange:
				a = enumAttr(r.op(i))
				end := r.rangeEnd(i+2, r.op(i+1))
				a.Raw = r.raw(i-1, end)
				i = end
			case attrRangeList:
				a = enumAttr(r.op(i))
				n, bits, end := r.op(i+1), r.op(i+2), i+3
				for ; n > 0 && end <= len(r.record); n-- {
					end = r.rangeEnd(end, bits)
				}
				a.Raw = r.raw(i-1, end)
				i = end
			default:
				r.fail("an attribute of form %d", form)
			}
			g.set = append(g.set, a)
		}
		for _, ref := range refs {
			r.attrTypes = append(r.attrTypes, attrTypeRef{g.set, ref.index, ref.id})
		}
		r.attrGroups[r.op(0)] = g
	}, nil)
}

func enumAttr(id uint64) Attr {
	a := Attr{ID: id}
	if id < uint64(len(attrNames)) {
		a.Kind = attrNames[id]
	}
	return a
}

// zeroEnded is the text at operand i and the operand after its end.
func (r *reader) zeroEnded(i int) (string, int) {
	var s []byte
	for ; r.op(i) != 0; i++ {
		s = append(s, byte(r.record[i]))
	}
	return string(s), i + 1
}

// rangeEnd is the operand after a constant range of the given width at operand i.
func (r *reader) rangeEnd(i int, bits uint64) int {
	if bits <= 64 {
		return i + 2
	}
	words := r.op(i)
	n := words&0xFFFFFFFF + words>>32
	if n > uint64(len(r.record)) {
		r.fail("a constant range of %d words", n)
	}
	return i + 1 + int(n)
}

func (r *reader) raw(from, end int) []uint64 {
	if end > len(r.record) {
		r.fail("record %d has %d operands, %d are needed", r.code, len(r.record), end)
	}
	return append([]uint64(nil), r.record[from:end]...)
}

// resolveAttrTypes fills in the types of type attributes.
func (r *reader) resolveAttrTypes() {
	for _, ref := range r.attrTypes {
		ref.set[ref.index].Ty = r.typeAt(ref.id)
	}
}

func (r *reader) readAttrLists() {
	const listEntry = 2
	r.blocks(func() {
		if r.code != listEntry {
			r.fail("attribute record %d is not known", r.code)
		}
		var l AttrList
		for _, id := range r.record {
			g, ok := r.attrGroups[id]
			if !ok {
				continue // LLVM 3.5 refers to groups without attributes, which it does not write
			}
			switch {
			case g.place == functionPlace:
				l.Fn = g.set
			case g.place == 0:
				l.Ret = g.set
			case g.place > maxKnownParams:
				r.fail("attributes for parameter %d", g.place)
			default:
				for len(l.Params) < int(g.place) {
					l.Params = append(l.Params, nil)
				}
				l.Params[g.place-1] = g.set
			}
		}
		r.attrLists = append(r.attrLists, l)
	}, nil)
}

// attrList is attribute list number id, which counts from 1; 0 is none.
func (r *reader) attrList(id uint64) AttrList {
	if id == 0 {
		return AttrList{}
	}
	if id > uint64(len(r.attrLists)) {
		r.fail("attribute list %d does not exist, there are %d", id, len(r.attrLists))
	}
	return r.attrLists[id-1]
}
