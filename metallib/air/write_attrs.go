package air

import (
	"fmt"
	"strings"
)

// An attrTable holds the attribute groups and lists of a module, each once.
type attrTable struct {
	groups   []attrGroup
	groupIDs map[string]uint64 // from 1
	lists    [][]uint64
	listIDs  map[string]uint64 // from 1
}

// writeAttributes collects and writes all attributes.
func (w *writer) writeAttributes() {
	w.attrs = attrTable{groupIDs: map[string]uint64{}, listIDs: map[string]uint64{}}
	for _, g := range w.m.Globals {
		w.attrListID(g.Attrs)
	}
	for _, f := range w.m.Functions {
		w.attrListID(f.Attrs)
	}
	for _, f := range w.m.Functions {
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				w.attrListID(in.Attrs)
			}
		}
	}
	if len(w.attrs.lists) == 0 {
		return
	}
	w.enter(paramAttrGroupBlock, 3)
	for i, g := range w.attrs.groups {
		ops := []uint64{uint64(i + 1), g.place}
		for _, a := range g.set {
			ops = w.attr(ops, a)
		}
		w.record(3, ops...)
	}
	w.end()
	w.enter(paramAttrBlock, 3)
	for _, l := range w.attrs.lists {
		w.record(2, l...)
	}
	w.end()
}

// attrListID is the number of an attribute list, from 1; 0 if it is empty.
func (w *writer) attrListID(l AttrList) uint64 {
	if l.Empty() {
		return 0
	}
	var ids []uint64
	add := func(place uint64, s AttrSet) {
		if len(s) > 0 {
			ids = append(ids, w.attrGroupID(place, s))
		}
	}
	add(functionPlace, l.Fn)
	add(0, l.Ret)
	for i, p := range l.Params {
		add(uint64(i+1), p)
	}
	key := fmt.Sprint(ids)
	id, ok := w.attrs.listIDs[key]
	if !ok {
		w.attrs.lists = append(w.attrs.lists, ids)
		id = uint64(len(w.attrs.lists))
		w.attrs.listIDs[key] = id
	}
	return id
}

func (w *writer) attrGroupID(place uint64, s AttrSet) uint64 {
	var b strings.Builder
	fmt.Fprint(&b, place)
	for _, a := range s {
		fmt.Fprintf(&b, "|%q %t %q %t %d %t %p %d %v", a.Kind, a.Str, a.Val, a.HasInt, a.Int, a.HasType, a.Ty, a.ID, a.Raw)
	}
	key := b.String()
	id, ok := w.attrs.groupIDs[key]
	if !ok {
		w.attrs.groups = append(w.attrs.groups, attrGroup{place, s})
		id = uint64(len(w.attrs.groups))
		w.attrs.groupIDs[key] = id
	}
	return id
}

// intAttrs and typeAttrs are the attributes to which LLVM 14 gives a number or a type.
var (
	intAttrs = map[string]bool{"align": true, "allocsize": true, "dereferenceable": true, "dereferenceable_or_null": true,
		"alignstack": true, "vscale_range": true}
	typeAttrs = map[string]bool{"byval": true, "sret": true, "byref": true, "preallocated": true, "inalloca": true,
		"elementtype": true}
)

// attr appends an attribute to a group's record.
func (w *writer) attr(ops []uint64, a Attr) []uint64 {
	chars := func(s string) {
		for i := range len(s) {
			if s[i] == 0 {
				refuse("attribute %q contains a zero", a.Kind)
			}
			ops = append(ops, uint64(s[i]))
		}
		ops = append(ops, 0)
	}
	if a.Str {
		if a.Val == "" {
			ops = append(ops, attrKey)
			chars(a.Kind)
		} else {
			ops = append(ops, attrKeyValue)
			chars(a.Kind)
			chars(a.Val)
		}
		return ops
	}
	const asyncUnwind = 2
	if a.Kind == "uwtable" && a.HasInt && a.Int == asyncUnwind {
		a.HasInt = false // which is what the attribute meant before it had a number
	}
	id := attrIDs[a.Kind]
	switch {
	case id == 0:
		refuse("attribute %q (number %d) is not known", a.Kind, a.ID)
	case id > lastLLVM14Attr || len(a.Raw) > 0 || a.HasInt != intAttrs[a.Kind] || a.HasType != typeAttrs[a.Kind]:
		refuse("LLVM 14 has no attribute %s", a)
	case a.HasInt:
		return append(ops, attrInt, id, a.Int)
	case a.Ty != nil:
		return append(ops, attrTyped, id, w.e.typeID(a.Ty))
	case a.HasType:
		return append(ops, attrTypeless, id)
	}
	return append(ops, attrEnum, id)
}
