package mtl

import (
	"fmt"

	"github.com/ingot-metal/ingot/objc"
)

// Object is what all types of this package are made of: an object of Metal, or nil. It is a word to copy freely: it
// keeps no reference by itself.
type Object struct{ id objc.ID }

// ObjectOf makes an Object of any object. It keeps no reference.
func ObjectOf(id objc.ID) Object { return Object{id} }

// ID is the object itself.
func (x Object) ID() objc.ID { return x.id }

// IsNil tells whether there is no object.
func (x Object) IsNil() bool { return x.id == 0 }

// Retain adds a reference, to be released.
func (x Object) Retain() { x.id.Retain() }

// Release takes a reference away: the object must not be used any more unless somebody else holds one.
func (x Object) Release() { x.id.Release() }

// RespondsTo tells whether the object answers a selector: how features that came after macOS 14 are asked for.
func (x Object) RespondsTo(selector string) bool { return x.id.RespondsTo(objc.RegisterName(selector)) }

// Array is an NSArray.
type Array struct{ Object }

// ArrayOf makes an Array of an object known to be one. It keeps no reference.
func ArrayOf(id objc.ID) Array { return Array{ObjectOf(id)} }

// NewArray makes an array of objects, which it retains; the caller releases it.
func NewArray(objects ...Object) Array {
	ids := make([]objc.ID, len(objects))
	for i, o := range objects {
		ids[i] = o.id
	}
	return ArrayOf(objc.NSArray(ids...))
}

// Len is the number of objects.
func (x Array) Len() int { return objc.ArrayCount(x.id) }

// At is an object of the array, which owns it; nil when i is out of range.
func (x Array) At(i int) Object { return ObjectOf(objc.ArrayAt(x.id, i)) }

// Strings copies an array of NSString.
func (x Array) Strings() []string {
	defer objc.NewPool().Drain()
	s := make([]string, x.Len())
	for i := range s {
		s[i] = objc.GoString(x.At(i).id)
	}
	return s
}

// newObject makes an object of a class that the device can be handed.
func newObject(d Device, class string) (objc.ID, error) {
	c := objc.ClassFor(d.id, class)
	if c == 0 {
		return 0, fmt.Errorf("mtl: there is no class %s for this device", class)
	}
	id := c.New()
	if id == 0 {
		return 0, fmt.Errorf("mtl: class %s made no object", class)
	}
	return id, nil
}

// word is a BOOL as an argument.
func word(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}
