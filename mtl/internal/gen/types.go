package gen

import (
	"fmt"
	"regexp"
	"strings"
)

// kind says how a type of Metal appears in Go.
type kind int

const (
	void kind = iota
	boolean
	integer // NSUInteger, enums, ...: converted
	float64Kind
	object   // a struct around an ID
	str      // NSString
	errorIn  // NSError as a value
	errorOut // NSError**
	objectOut
	blockKind
	structure
	pointer
	array // C array of objects
	rawPointer
)

// typ is a type of Metal in Go.
type typ struct {
	kind kind
	name string  // of the Go type
	st   *Struct // of a structure
}

var integers = map[string]string{
	"NSUInteger": "uint", "NSInteger": "int", "uint64_t": "uint64", "uint32_t": "uint32", "uint8_t": "uint8",
	"MTLTimestamp": "uint64", "MTLGPUAddress": "uint64",
}

var (
	protocolType = regexp.MustCompile(`^id<(\w+)>$`)
	classType    = regexp.MustCompile(`^(\w+) \*$`)
	arrayType    = regexp.MustCompile(`^id<(\w+)> const \*$`)
)

// typeOf finds the Go type of a type.
func (s *Spec) typeOf(t string) (typ, error) {
	switch t {
	case "void":
		return typ{kind: void}, nil
	case "BOOL":
		return typ{kind: boolean, name: "bool"}, nil
	case "CFTimeInterval", "double":
		return typ{kind: float64Kind, name: "float64"}, nil
	case "NSString *":
		return typ{kind: str, name: "string"}, nil
	case "NSError *":
		return typ{kind: errorIn, name: "error"}, nil
	case "NSError * *":
		return typ{kind: errorOut, name: "error"}, nil
	case "const void *", "void *":
		return typ{kind: pointer, name: "unsafe.Pointer"}, nil
	case "dispatch_data_t", "id", "NSData *", "NSURL *":
		return typ{kind: object, name: "Object"}, nil
	case "const NSUInteger *", "MTLTimestamp *":
		return typ{kind: rawPointer, name: "uintptr"}, nil
	}
	if g, ok := integers[t]; ok {
		return typ{kind: integer, name: g}, nil
	}
	if s.enum(t) != nil {
		return typ{kind: integer, name: strip(t)}, nil
	}
	if st := s.structure(t); st != nil {
		if words, err := s.words(st); err != nil || len(words) == 1 {
			return typ{kind: integer, name: strip(t)}, err
		}
		return typ{kind: structure, name: strip(t), st: st}, nil
	}
	if strings.HasPrefix(t, "NSArray<") {
		return typ{kind: object, name: "Array"}, nil
	}
	if strings.HasPrefix(t, "NSDictionary<") {
		return typ{kind: object, name: "Object"}, nil
	}
	if rest, ok := strings.CutPrefix(t, "MTLAutoreleased"); ok {
		if m := classType.FindStringSubmatch(rest); m != nil && s.class("MTL"+m[1]) != nil {
			return typ{kind: objectOut, name: m[1]}, nil
		}
	}
	if m := protocolType.FindStringSubmatch(t); m != nil && s.class(m[1]) != nil {
		return typ{kind: object, name: strip(m[1])}, nil
	}
	if m := classType.FindStringSubmatch(t); m != nil && s.class(m[1]) != nil {
		return typ{kind: object, name: strip(m[1])}, nil
	}
	if m := arrayType.FindStringSubmatch(t); m != nil && s.class(m[1]) != nil {
		return typ{kind: array, name: strip(m[1])}, nil
	}
	return typ{}, fmt.Errorf("gen: type %q is not known", t)
}

// argType is typeOf for an argument: blocks have types of their own there.
func (s *Spec) argType(a Arg) (typ, error) {
	if a.Block == nil {
		return s.typeOf(a.Type)
	}
	var args []string
	for _, b := range a.Block {
		t, err := s.typeOf(b)
		if err != nil {
			return typ{}, err
		}
		args = append(args, t.name)
	}
	return typ{kind: blockKind, name: "func(" + strings.Join(args, ", ") + ")"}, nil
}

// word is one word of a structure: the selector of its field in Go, and the type of the field.
type word struct{ path, typ string }

// words are the words of a structure in order.
func (s *Spec) words(st *Struct) ([]word, error) {
	var list []word
	for _, f := range st.Fields {
		name := "." + fieldName(f.Name)
		if inner := s.structure(f.Type); inner != nil {
			sub, err := s.words(inner)
			if err != nil {
				return nil, err
			}
			for _, w := range sub {
				list = append(list, word{name + w.path, w.typ})
			}
			continue
		}
		g, ok := integers[f.Type]
		if !ok {
			return nil, fmt.Errorf("gen: field %s of %s has type %q", f.Name, st.Name, f.Type)
		}
		list = append(list, word{name, g})
	}
	return list, nil
}

func fieldName(name string) string {
	name = strings.TrimLeft(name, "_")
	return strings.ToUpper(name[:1]) + name[1:]
}
