package objc

import (
	"math/bits"
)

// ID is an object: one of the Objective-C runtime, one of this process (see [GoClass]), or nil (zero). It is a word, not
// a reference that the garbage collector knows: whoever holds an ID across the end of a pool retains it.
type ID uintptr

// SEL is a selector. Selectors of equal name are equal. Where there is an Objective-C runtime it is that runtime's own
// selector, elsewhere a number of this package.
type SEL uintptr

// Class is a class object. As in Objective-C, a class can be sent messages: convert it to an [ID].
type Class uintptr

// Go objects have IDs that are no pointer of any system that Metal runs on, and no tagged pointer: bit 62 set (not
// canonical), bit 63 (tagged pointers of arm64) and bit 0 (tagged pointers of amd64) clear.
const (
	goBit    = 1 << (bits.UintSize - 2)
	topBit   = 1 << (bits.UintSize - 1)
	slotBits = 28 * bits.UintSize / 64
	genShift = 1 + slotBits
	genMask  = 1<<(bits.UintSize-3-genShift+1) - 1
)

// IsGo tells whether id is the ID of a Go object, alive or not.
func (id ID) IsGo() bool { return id&(topBit|goBit|1) == goBit }

// Retain adds a reference and returns id.
func (id ID) Retain() ID {
	switch {
	case id == 0:
	case id.IsGo():
		if o := lookup(id); o == nil || !o.retain() {
			latch(staleError(id, "retain"))
		}
	default:
		backendRetain(id)
	}
	return id
}

// Release takes a reference away. The last one ends the object: its ID must not be used any more.
func (id ID) Release() {
	switch {
	case id == 0:
	case id.IsGo():
		o := lookup(id)
		if o == nil {
			latch(staleError(id, "release"))
			return
		}
		o.release()
	default:
		backendRelease(id)
	}
}

// Autorelease gives one reference of the caller to the innermost pool of this OS thread, which releases it when it
// drains, and returns id. Without a pool the object is parked: see [Parked].
func (id ID) Autorelease() ID {
	switch {
	case id == 0:
	case id.IsGo():
		autoreleaseGo(id)
	default:
		backendAutorelease(id)
	}
	return id
}

// RespondsTo tells whether the object answers the selector. Nil answers none.
func (id ID) RespondsTo(sel SEL) bool {
	switch {
	case id == 0:
		return false
	case id.IsGo():
		o := lookup(id)
		return o != nil && (o.class.method(sel) != nil || rootMethods[sel] != nil)
	default:
		return backendRespondsTo(id, sel)
	}
}

// ClassName is the name of the object's class, "nil" for nil.
func (id ID) ClassName() string {
	switch {
	case id == 0:
		return "nil"
	case id.IsGo():
		o := lookup(id)
		if o == nil {
			return "released Go object"
		}
		return o.class.name
	default:
		return backendClassName(id)
	}
}

// ID is the class as an object, to be sent messages.
func (c Class) ID() ID { return ID(c) }

// String is the name of the class.
func (c Class) String() string {
	if c == 0 {
		return "nil"
	}
	if ID(c).IsGo() {
		if o := lookup(ID(c)); o != nil {
			if g, ok := o.value.(*instantiable); ok {
				return g.name
			}
		}
		return "released Go class"
	}
	return backendNameOfClass(c)
}
