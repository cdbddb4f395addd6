package mtl

import (
	"sync"

	"github.com/ingot-metal/ingot/objc"
)

var selCopy = objc.RegisterName("copy")

// valueClass is a class whose objects hold values: descriptors and options. Where Metal's own class cannot be used (no
// Metal here, or a device that is a Go object), a Go class of the same name stands in.
type valueClass struct {
	name       string
	properties []property
}

type property struct {
	get, set string // no set when the object it holds is made with it
	words    int
	object   bool // holds a reference
	initial  uint64
	made     string // class of that object
}

// madeClasses make the objects that others always hold, by class; copies of them are made by the message copy.
var madeClasses = map[string]func() objc.ID{
	"MTLComputePassSampleBufferAttachmentDescriptorArray": newSampleAttachments,
}

// values are what one object holds.
type values struct {
	sync.Mutex
	class *valueClass
	words [][3]uintptr
}

// Dealloc releases the objects among the values.
func (v *values) Dealloc() { v.class.release(v.words) }

func (c *valueClass) release(words [][3]uintptr) {
	for i, p := range c.properties {
		if p.object {
			objc.ID(words[i][0]).Release()
		}
	}
}

func (c *valueClass) make() any { return &values{class: c, words: c.initial()} }

func (c *valueClass) initial() [][3]uintptr {
	words := make([][3]uintptr, len(c.properties))
	for i, p := range c.properties {
		words[i][0] = uintptr(p.initial)
		if p.made != "" {
			words[i][0] = uintptr(madeClasses[p.made]())
		}
	}
	return words
}

func (v *values) set(i int, c *objc.Call) {
	p := &v.class.properties[i]
	var w [3]uintptr
	for k := range p.words {
		w[k] = c.Word(k)
	}
	if p.object {
		objc.ID(w[0]).Retain()
	}
	v.Lock()
	old := v.words[i]
	v.words[i] = w
	v.Unlock()
	if p.object {
		objc.ID(old[0]).Release()
	}
}

// reset goes back to the initial values.
func (v *values) reset() {
	v.Lock()
	old := v.words
	v.words = v.class.initial()
	v.Unlock()
	v.class.release(old)
}

func (v *values) get(i int, c *objc.Call) {
	v.Lock()
	defer v.Unlock()
	w := v.words[i]
	if v.class.properties[i].object {
		// The sender gets a reference of its own: another goroutine may set the property meanwhile.
		objc.ID(w[0]).Retain().Autorelease()
	}
	c.Return(w[:v.class.properties[i].words]...)
}

// register makes and registers the Go class.
func (c *valueClass) register() {
	m := map[string]objc.Method{}
	for i, p := range c.properties {
		m[p.get] = func(call *objc.Call) { call.Self().(*values).get(i, call) }
		if p.made != "" {
			continue
		}
		m[p.set] = func(call *objc.Call) { call.Self().(*values).set(i, call) }
	}
	m["reset"] = func(call *objc.Call) { call.Self().(*values).reset() }
	var class *objc.GoClass
	m["copy"] = func(call *objc.Call) {
		from := call.Self().(*values)
		to := c.make().(*values)
		from.Lock()
		for i, p := range c.properties {
			switch w := from.words[i]; {
			case p.made != "":
				objc.ID(to.words[i][0]).Release()
				to.words[i][0] = objc.Send(objc.ID(w[0]), selCopy)
			case p.object:
				to.words[i][0] = uintptr(objc.ID(w[0]).Retain())
			default:
				to.words[i] = w
			}
		}
		from.Unlock()
		call.ReturnNew(class.New(to))
	}
	class = objc.NewGoClass(c.name, m)
	class.Register(c.make)
}

func init() {
	for i := range valueClasses {
		valueClasses[i].register()
	}
}
