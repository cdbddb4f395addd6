package air

import "fmt"

// An Attr is one attribute. Enumerated attributes have a Kind known by name ("noundef"), some with an integer or a type;
// string attributes have Str set and Kind holds the key.
type Attr struct {
	// Kind is LLVM's name of an enumerated attribute, or the key of a string attribute.
	Kind string
	// Str is set for string attributes; Val is the string value.
	Str bool
	Val string
	// HasInt is set for attributes with an integer (align, dereferenceable, memory).
	HasInt bool
	Int    uint64
	// Ty is the type of a type attribute (byval, elementtype), nil otherwise or if absent.
	Ty *Type
	// HasType is set for type attributes.
	HasType bool
	// ID is the number of an enumerated attribute in the bitcode it was read from, for kinds unknown by name.
	ID uint64
	// Raw holds the words of a form that has no meaning here (constant ranges), as recorded.
	Raw []uint64
}

// An AttrSet is the attributes of one place: a function, its result or a parameter.
type AttrSet []Attr

// Get finds an attribute by kind.
func (s AttrSet) Get(kind string) (Attr, bool) {
	for _, a := range s {
		if a.Kind == kind {
			return a, true
		}
	}
	return Attr{}, false
}

// An AttrList holds the attributes of a function or call site.
type AttrList struct {
	Fn, Ret AttrSet
	Params  []AttrSet // may be shorter than the parameter list
}

// Param is the set of parameter i.
func (l AttrList) Param(i int) AttrSet {
	if i < len(l.Params) {
		return l.Params[i]
	}
	return nil
}

// Empty tells whether there is no attribute at all.
func (l AttrList) Empty() bool {
	if len(l.Fn)+len(l.Ret) > 0 {
		return false
	}
	for _, p := range l.Params {
		if len(p) > 0 {
			return false
		}
	}
	return true
}

// String prints the attribute as LLVM's assembly does in attribute groups.
func (a Attr) String() string {
	switch {
	case a.Str && a.Val == "":
		return quote(a.Kind)
	case a.Str:
		return quote(a.Kind) + "=" + quote(a.Val)
	case a.HasInt && (a.Kind == "align" || a.Kind == "alignstack"):
		return fmt.Sprintf("%s %d", a.Kind, a.Int)
	case a.HasInt && a.Kind == "vscale_range":
		return fmt.Sprintf("%s(%d,%d)", a.Kind, a.Int>>32, uint32(a.Int))
	case a.HasInt && a.Kind == "allocsize":
		// The low half is the parameter with the count, all ones if there is none.
		if count := uint32(a.Int); count != ^uint32(0) {
			return fmt.Sprintf("%s(%d,%d)", a.Kind, a.Int>>32, count)
		}
		return fmt.Sprintf("%s(%d)", a.Kind, a.Int>>32)
	case a.HasInt:
		return fmt.Sprintf("%s(%d)", a.Kind, a.Int)
	case a.HasType && a.Ty != nil:
		return fmt.Sprintf("%s(%s)", a.Kind, a.Ty)
	case a.Kind == "":
		return fmt.Sprintf("attribute(%d)", a.ID)
	}
	return a.Kind
}
