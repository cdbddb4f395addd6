// Package gen makes package mtl from a description of Metal's classes: metal.json. It is made for the program in
// mtlgen, which "go generate" in package mtl runs, and for the tests that compare what it makes with what is there.
//
// metal.json holds facts of Apple's SDK for the classes that compute needs: selectors, type encodings, types, the macOS
// version that introduced each, ownership of results, enums, structures.
package gen

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed metal.json
var specText []byte

// Spec is metal.json.
type Spec struct {
	SDK     string   `json:"sdk"`
	Floor   string   `json:"floor"` // the oldest macOS supported
	Classes []Class  `json:"classes"`
	Enums   []Enum   `json:"enums"`
	Structs []Struct `json:"structs"`
}

// Class is a class or protocol.
type Class struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"` // "class" or "protocol"
	Parent  string   `json:"parent"`
	New     bool     `json:"new"`   // programs make objects of it, with alloc and init
	Props   []Prop   `json:"props"` // what can be set on objects of a class that only hold values
	Methods []Method `json:"methods"`
}

// Prop is a property that can be read and written, or one that always holds an object of its own: of class Made.
type Prop struct {
	Get     string `json:"get"`
	Set     string `json:"set"`
	Default uint64 `json:"default"`
	Made    string `json:"made"`
}

// Method is one selector of a class.
type Method struct {
	Sel        string `json:"sel"`
	Enc        string `json:"enc"` // type encoding, with self and the selector
	Ret        string `json:"ret"`
	Args       []Arg  `json:"args"`
	Since      string `json:"since"`
	Deprecated string `json:"deprecated"`
	Own        bool   `json:"own"`      // the result is the caller's (+1)
	Optional   bool   `json:"optional"` // objects need not answer it
	Class      bool   `json:"class"`    // a method of the class, not of its objects
	Hand       bool   `json:"hand"`     // the exported Go method is written by hand
	Go         string `json:"go"`       // Go name, where the first keyword alone is taken
}

// Arg is an argument.
type Arg struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Block []string `json:"block"` // types of a block's arguments
	Count int      `json:"count"` // which argument counts the elements of this C array; 0: it is none
}

// Enum is an enumeration or a set of options.
type Enum struct {
	Name   string  `json:"name"`
	Enc    string  `json:"enc"`
	Since  string  `json:"since"`
	Consts []Const `json:"consts"`
}

// Const is a value of an enumeration.
type Const struct {
	Name       string      `json:"name"`
	Value      json.Number `json:"value"`
	Since      string      `json:"since"`
	Deprecated string      `json:"deprecated"`
}

// Struct is a structure passed by value.
type Struct struct {
	Name   string  `json:"name"`
	Enc    string  `json:"enc"`
	Fields []Field `json:"fields"`
}

// Field is a field of a structure.
type Field struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Load reads the description that this package carries.
func Load() (*Spec, error) { return Parse(specText) }

// Parse reads a description and checks that it makes sense.
func Parse(text []byte) (*Spec, error) {
	var s Spec
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("gen: %w", err)
	}
	known := map[string]bool{}
	for _, c := range s.Classes {
		if known[c.Name] || !goName(strip(c.Name)) {
			return nil, fmt.Errorf("gen: class %q: a name twice, or none for Go", c.Name)
		}
		known[c.Name] = true
	}
	for _, c := range s.Classes {
		if c.Parent != "" && !known[c.Parent] {
			return nil, fmt.Errorf("gen: class %s: no parent %s", c.Name, c.Parent)
		}
		if s.circular(c) {
			return nil, fmt.Errorf("gen: class %s: its parents form a circle", c.Name)
		}
		names := map[string]string{}
		for _, m := range c.Methods {
			if n := strings.Count(m.Sel, ":"); n != len(m.Args) {
				return nil, fmt.Errorf("gen: %s %s: %d arguments for a selector of %d", c.Name, m.Sel, len(m.Args), n)
			}
			if m.Sel == "" || !goName(m.GoName()) {
				return nil, fmt.Errorf("gen: %s: %q has no Go name", c.Name, m.Sel)
			}
			if other := names[m.GoName()]; other != "" {
				return nil, fmt.Errorf("gen: %s: %s and %s are both %s", c.Name, other, m.Sel, m.GoName())
			}
			names[m.GoName()] = m.Sel
			for i, a := range m.Args {
				if a.Count != 0 && (a.Count <= i || a.Count >= len(m.Args)) {
					return nil, fmt.Errorf("gen: %s %s: argument %d is counted by argument %d", c.Name, m.Sel, i, a.Count)
				}
				if !goName(a.Name) {
					return nil, fmt.Errorf("gen: %s %s: argument name %q", c.Name, m.Sel, a.Name)
				}
			}
		}
	}
	return &s, s.checkTypes()
}

// checkTypes checks the structures and enumerations.
func (s *Spec) checkTypes() error {
	for i, st := range s.Structs {
		if !goName(strip(st.Name)) {
			return fmt.Errorf("gen: structure %q has no Go name", st.Name)
		}
		for _, f := range st.Fields {
			if !goName(strings.TrimLeft(f.Name, "_")) {
				return fmt.Errorf("gen: structure %s: field name %q", st.Name, f.Name)
			}
			// Those before are checked already, so that no structure contains itself.
			if !slices.ContainsFunc(s.Structs[:i], func(b Struct) bool { return b.Name == f.Type }) && s.structure(f.Type) != nil {
				return fmt.Errorf("gen: structure %s: field %s is of structure %s, which must stand before", st.Name, f.Name, f.Type)
			}
		}
	}
	for _, e := range s.Enums {
		if !goName(strip(e.Name)) || underlying[e.Enc] == "" {
			return fmt.Errorf("gen: enumeration %q of type %q", e.Name, e.Enc)
		}
		for _, c := range e.Consts {
			if !goName(strip(c.Name)) {
				return fmt.Errorf("gen: enumeration %s: constant %q has no Go name", e.Name, c.Name)
			}
		}
	}
	return nil
}

// underlying are the Go types of enumerations by type encoding.
var underlying = map[string]string{"Q": "uint", "q": "int", "I": "uint32", "i": "int32", "C": "uint8"}

// circular tells whether following the parents of c never ends.
func (s *Spec) circular(c Class) bool {
	for range len(s.Classes) + 1 {
		if c.Parent == "" {
			return false
		}
		p := s.class(c.Parent)
		if p == nil {
			return false
		}
		c = *p
	}
	return true
}

func (s *Spec) class(name string) *Class {
	for i := range s.Classes {
		if s.Classes[i].Name == name {
			return &s.Classes[i]
		}
	}
	return nil
}

func (s *Spec) enum(name string) *Enum {
	for i := range s.Enums {
		if s.Enums[i].Name == name {
			return &s.Enums[i]
		}
	}
	return nil
}

func (s *Spec) structure(name string) *Struct {
	for i := range s.Structs {
		if s.Structs[i].Name == name {
			return &s.Structs[i]
		}
	}
	return nil
}

// GoName is the name of the method in Go: the first keyword in Go's casing, unless the description names another.
func (m *Method) GoName() string {
	if m.Go != "" {
		return m.Go
	}
	first, _, _ := strings.Cut(m.Sel, ":")
	if first == "" {
		return ""
	}
	return strings.ToUpper(first[:1]) + first[1:]
}

// Checked tells whether objects on a supported macOS may not answer the method, so that they are asked first. A class
// that is newer than the floor as a whole has no objects without its first methods.
func (s *Spec) Checked(c *Class, m *Method) bool {
	if m.Optional {
		return true
	}
	return newer(m.Since, s.Floor) && newer(m.Since, c.since())
}

// since is the version that the class came with: its oldest method's.
func (c *Class) since() string {
	oldest := ""
	for _, m := range c.Methods {
		if oldest == "" || m.Since != "" && newer(oldest, m.Since) {
			oldest = m.Since
		}
	}
	return oldest
}

// newer compares versions such as "10.15" and "14.0".
func newer(a, b string) bool {
	var a1, a2, b1, b2 int
	fmt.Sscanf(a, "%d.%d", &a1, &a2)
	fmt.Sscanf(b, "%d.%d", &b1, &b2)
	return a1 > b1 || a1 == b1 && a2 > b2
}

// strip takes Apple's prefix away.
func strip(name string) string {
	for _, prefix := range []string{"MTL", "NS"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return rest
		}
	}
	return name
}

// goName tells whether name can be an identifier.
func goName(name string) bool {
	for i, r := range name {
		if !(r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || i > 0 && '0' <= r && r <= '9') {
			return false
		}
	}
	return name != ""
}
