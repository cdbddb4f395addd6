package objc

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unsafe"
)

var (
	msgAlloc       = NewMessage("alloc", "@@:")
	msgInit        = NewMessage("init", "@@:")
	msgUTF8String  = NewMessage("UTF8String", "*@:")
	msgInitBytes   = NewMessage("initWithBytes:length:encoding:", "@@:^vQQ")
	msgCode        = NewMessage("code", "q@:")
	msgDomain      = NewMessage("domain", "@@:")
	msgDescription = NewMessage("localizedDescription", "@@:")
	msgCount       = NewMessage("count", "Q@:")
	msgObjectAt    = NewMessage("objectAtIndex:", "@@:Q")
	msgArrayWith   = NewMessage("arrayWithObjects:count:", "@@:^@Q")
)

const utf8Encoding = 4 // NSUTF8StringEncoding

// New makes an object of a class with alloc and init; the caller owns it. Zero when the class is zero.
func (c Class) New() ID {
	return ID(msgInit.Send(ID(msgAlloc.Send(ID(c)))))
}

// NSString makes a string object; the caller owns it (+1). It is a real NSString where there is an Objective-C runtime, and a Go
// object elsewhere. Bytes that are not UTF-8 become the replacement character.
func NSString(s string) ID {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if Available() != nil {
		return newGoString(s)
	}
	m := NewScratch()
	defer m.Free()
	return ID(msgInitBytes.Send(ID(msgAlloc.Send(ID(GetClass("NSString")))), m.String(s), uintptr(len(s)), utf8Encoding))
}

// GoString copies the text of an NSString. Nil gives "". Text after a NUL character is lost.
func GoString(id ID) string {
	if s, ok := Value(id).(*goString); ok {
		return s.text()
	}
	return cString(toPointer(msgUTF8String.Send(id)))
}

func cString(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// goString is the text and a NUL.
type goString struct{ bytes []byte }

func (s *goString) text() string { return string(s.bytes[:len(s.bytes)-1]) }

var goStringClass *GoClass

func init() {
	goStringClass = NewGoClass("NSString", map[string]Method{
		"UTF8String":  func(c *Call) { c.ReturnPointer(unsafe.Pointer(&c.Self().(*goString).bytes[0])) },
		"length":      func(c *Call) { c.Return(uintptr(len(utf16.Encode([]rune(c.Self().(*goString).text()))))) },
		"description": func(c *Call) { c.ReturnBorrowed(c.ID()) },
		"copy":        func(c *Call) { c.ReturnNew(c.ID().Retain()) },
		"isEqualToString:": func(c *Call) {
			c.ReturnBool(c.Object(0) != 0 && c.Self().(*goString).text() == GoString(c.Object(0)))
		},
		"lengthOfBytesUsingEncoding:": func(c *Call) {
			if c.Word(0) == utf8Encoding {
				c.Return(uintptr(len(c.Self().(*goString).bytes) - 1))
			}
		},
	})
}

func newGoString(s string) ID {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return goStringClass.New(&goString{b})
}

// Error is an NSError as a Go error.
type Error struct {
	Domain      string
	Code        int
	Description string
}

func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	return fmt.Sprintf("%s (%s, code %d)", e.Description, e.Domain, e.Code)
}

// Is compares domain and code, so that errors.Is finds an error whatever its text.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && e != nil && t != nil && e.Domain == t.Domain && e.Code == t.Code
}

var goErrorClass *GoClass

func init() {
	goErrorClass = NewGoClass("NSError", map[string]Method{
		"domain":               func(c *Call) { c.ReturnString(c.Self().(*Error).Domain) },
		"code":                 func(c *Call) { c.Return(uintptr(c.Self().(*Error).Code)) },
		"localizedDescription": func(c *Call) { c.ReturnString(c.Self().(*Error).Description) },
		"userInfo":             func(c *Call) {},
	})
}

// NewError makes an NSError, a Go object, for Go methods to report; the caller owns it (+1).
func NewError(domain string, code int, text string) ID {
	return goErrorClass.New(&Error{domain, code, text})
}

// ErrorOf copies an NSError: an [*Error]. Nil gives nil.
func ErrorOf(id ID) error {
	if id == 0 {
		return nil
	}
	if e, ok := Value(id).(*Error); ok {
		return &Error{e.Domain, e.Code, e.Description}
	}
	return &Error{msgDomain.SendString(id), int(msgCode.Send(id)), msgDescription.SendString(id)}
}

// goArray owns its elements.
type goArray struct{ ids []ID }

// Dealloc releases the elements.
func (a *goArray) Dealloc() {
	for _, id := range a.ids {
		id.Release()
	}
}

var goArrayClass *GoClass

func init() {
	goArrayClass = NewGoClass("NSArray", map[string]Method{
		"count": func(c *Call) { c.Return(uintptr(len(c.Self().(*goArray).ids))) },
		"copy":  func(c *Call) { c.ReturnNew(c.ID().Retain()) },
		"objectAtIndex:": func(c *Call) {
			ids := c.Self().(*goArray).ids
			if i := c.Uint(0); i < uint(len(ids)) {
				c.ReturnBorrowed(ids[i])
				return
			}
			c.Refuse("index %d beyond %d objects", c.Uint(0), len(ids))
		},
	})
}

// NSArray makes an array of objects, which it retains; the caller owns it (+1). An array of real objects is a real
// NSArray, an array of Go objects a Go object; an empty one is what the system has. Nil elements are left out, as an array cannot hold any.
func NSArray(ids ...ID) ID {
	kept := make([]ID, 0, len(ids))
	isGo := Available() != nil
	for _, id := range ids {
		if id != 0 {
			kept = append(kept, id)
			isGo = isGo || id.IsGo()
		}
	}
	if isGo {
		for _, id := range kept {
			id.Retain()
		}
		return goArrayClass.New(&goArray{kept})
	}
	defer NewPool().Drain()
	m := NewScratch()
	defer m.Free()
	return ID(msgArrayWith.Send(GetClass("NSArray").ID(), m.IDs(kept), uintptr(len(kept)))).Retain()
}

// ArrayCount is the number of objects in an NSArray.
func ArrayCount(array ID) int { return int(msgCount.Send(array)) }

// ArrayAt is an object of an NSArray; the array owns it. Zero when i is out of range.
func ArrayAt(array ID, i int) ID {
	if i < 0 || i >= ArrayCount(array) {
		return 0
	}
	return ID(msgObjectAt.Send(array, uintptr(i)))
}

// ArrayIDs are the objects of an NSArray; the array owns them.
func ArrayIDs(array ID) []ID {
	n := ArrayCount(array)
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = ID(msgObjectAt.Send(array, uintptr(i)))
	}
	return ids
}
