package objc

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Method answers one selector of a Go class. The call is valid until the method returns.
type Method func(c *Call)

// GoClass is a class whose objects live in Go and answer the same messages as objects of the Objective-C runtime.
type GoClass struct {
	name    string
	methods map[SEL]Method
	names   []string
	object  ID
}

// classes are the Go classes that GetClass and ClassFor find, by name.
var classes struct {
	sync.RWMutex
	byName map[string]*GoClass
	count  atomic.Int64
}

func classCount() int { return int(classes.count.Load()) }

// NewGoClass makes a class of a name and its methods, selector to method. It panics when a selector is malformed or a method is
// nil: classes are package-level variables, and a broken one must not get far. Besides its own methods every class
// answers those of NSObject: retain, release, autorelease, self, respondsToSelector:, isEqual:, hash, description.
func NewGoClass(name string, methods map[string]Method) *GoClass {
	if name == "" {
		panic("objc: NewGoClass needs a name")
	}
	c := &GoClass{name: name, methods: make(map[SEL]Method, len(methods))}
	for sel, m := range methods {
		if !validSelector(sel) {
			panic(fmt.Sprintf("objc: NewGoClass %s: %q is no selector", name, sel))
		}
		if m == nil {
			panic(fmt.Sprintf("objc: NewGoClass %s: no method for %q", name, sel))
		}
		c.methods[RegisterName(sel)] = m
		c.names = append(c.names, sel)
	}
	slices.Sort(c.names)
	return c
}

// validSelector: an identifier, or keywords that each end in a colon.
func validSelector(s string) bool {
	if s == "" || strings.Contains(s, ":") && !strings.HasSuffix(s, ":") || s[0] == ':' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '_' || c == ':' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9' && i > 0 && s[i-1] != ':':
		default:
			return false
		}
	}
	return true
}

// Name is the name of the class.
func (c *GoClass) Name() string { return c.name }

// Selectors are the selectors that the class was made with, sorted.
func (c *GoClass) Selectors() []string { return slices.Clone(c.names) }

// New makes an object of the class around a Go value; the caller owns it (+1). When the last reference goes, v's
// Dealloc() is called if it has one. If v has ObjcError(error), it is told of every error that a message to the object meets.
func (c *GoClass) New(v any) ID {
	o := &goObject{class: c, value: v}
	o.refs.Store(1)
	return insert(o)
}

func (c *GoClass) method(sel SEL) Method { return c.methods[sel] }

// Value is the Go value behind a Go object; nil for everything else.
func Value(id ID) any {
	if !id.IsGo() {
		return nil
	}
	if o := lookup(id); o != nil {
		return o.value
	}
	return nil
}

// metaclass is the class of the class objects that Register makes.
var metaclass = sync.OnceValue(func() *GoClass {
	make1 := func(c *Call) {
		cls := c.Self().(*instantiable)
		c.ReturnNew(cls.GoClass.New(cls.make()))
	}
	return NewGoClass("Class", map[string]Method{"alloc": make1, "new": make1})
})

type instantiable struct {
	*GoClass
	make func() any
}

// Register lets [ClassFor] and [GetClass] find the class by its name, and lets its objects be made by the messages new,
// and alloc followed by init: the object's value is what make returns. A class registered later under the same
// name takes its place.
func (c *GoClass) Register(make func() any) {
	meta := metaclass()
	id := meta.New(&instantiable{c, make})
	classes.count.Add(1)
	classes.Lock()
	defer classes.Unlock()
	if classes.byName == nil {
		classes.byName = map[string]*GoClass{}
	}
	c.object = id // a class that had the name keeps its class object: somebody may hold it
	classes.byName[c.name] = c
}

// GetClass finds a class by name: of the Objective-C runtime when there is one, else a registered Go class. Zero when there is none.
func GetClass(name string) Class {
	if Available() == nil {
		if c := backendGetClass(name); c != 0 {
			return c
		}
	}
	return goClass(name)
}

// ClassFor finds the class whose objects can be handed to receiver: Go objects take Go objects, real ones real ones. A
// receiver that is nil gets what [GetClass] finds.
func ClassFor(receiver ID, name string) Class {
	switch {
	case receiver == 0:
		return GetClass(name)
	case receiver.IsGo():
		return goClass(name)
	default:
		return backendGetClass(name)
	}
}

func goClass(name string) Class {
	classes.RLock()
	defer classes.RUnlock()
	if c := classes.byName[name]; c != nil {
		return Class(c.object)
	}
	return 0
}
