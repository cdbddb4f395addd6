package soft

import (
	"sync"
	"sync/atomic"

	"github.com/ingot-metal/ingot/objc"
)

// An object is what all objects of a device have in common.
type object struct {
	id   objc.ID
	dev  *device
	text atomic.Pointer[string]
}

func (o *object) device() *device { return o.dev }
func (o *object) ident() objc.ID  { return o.id }

// label is the label somebody gave the object, empty if nobody did.
func (o *object) label() string {
	if p := o.text.Load(); p != nil {
		return *p
	}
	return ""
}

func (o *object) setLabel(s string) { o.text.Store(&s) }

// owned is an object that belongs to a device.
type owned interface {
	device() *device
	label() string
	setLabel(string)
}

// methods is a class in the making: selector to method, with the receiver as the first argument.
type methods[T owned] map[string]func(T, *objc.Call)

// with adds the methods of a protocol that several classes conform to.
func (m methods[T]) with(more methods[T]) methods[T] {
	for sel, f := range more {
		if _, ok := m[sel]; !ok {
			m[sel] = f
		}
	}
	return m
}

// without drops methods that a device pretends not to have.
func (m methods[T]) without(selectors ...string) methods[T] {
	for _, sel := range selectors {
		delete(m, sel)
	}
	return m
}

// class makes the class. Each message is counted by its selector before it is answered.
func (m methods[T]) class(name string) *objc.GoClass {
	table := make(map[string]objc.Method, len(m))
	for sel, f := range m {
		i := counterOf(sel)
		table[sel] = func(c *objc.Call) {
			t := c.Self().(T)
			t.device().messages[i].Add(1)
			f(t, c)
		}
	}
	return objc.NewGoClass(name, table)
}

// labelled are the methods label and setLabel:.
func labelled[T owned]() methods[T] {
	return methods[T]{
		"label":     func(t T, c *objc.Call) { c.ReturnBorrowed(nsString(t.label())) },
		"setLabel:": func(t T, c *objc.Call) { t.setLabel(objc.GoString(objc.ID(c.Word(0)))) },
	}
}

// deviced is the method device.
func deviced[T owned]() methods[T] {
	return methods[T]{"device": func(t T, c *objc.Call) { c.ReturnBorrowed(t.device().id) }}
}

// valueOf is the Go object of type T behind an ID, the zero T for nil and for anything else.
func valueOf[T any](w uintptr) T {
	t, _ := objc.Value(objc.ID(w)).(T)
	return t
}

// nsString is a borrowed string.
func nsString(s string) objc.ID { return objc.NSString(s).Autorelease() }

// counters give each selector of each class a place in the devices' arrays of counters.
var counters struct {
	sync.Mutex
	index map[string]int
	names []string
}

// maxSelectors bounds how many selectors the classes have together.
const maxSelectors = 1024

func counterOf(sel string) int {
	counters.Lock()
	defer counters.Unlock()
	if i, ok := counters.index[sel]; ok {
		return i
	}
	if counters.index == nil {
		counters.index = map[string]int{}
	}
	i := len(counters.names)
	if i == maxSelectors {
		panic("soft: more selectors than counters")
	}
	counters.index[sel] = i
	counters.names = append(counters.names, sel)
	return i
}

// messageCounters are one device's counters by selector.
type messageCounters [maxSelectors]atomic.Uint64
