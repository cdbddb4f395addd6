package objc

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

const (
	maxWords  = 30 // logical words of arguments; SyscallN takes 32 with self and the selector
	maxResult = 3
)

// Call is one message on its way to a Go method. Its words are the logical arguments in order, structures flattened
// (an MTLSize is three words, an NSRange two), floating-point numbers as bit patterns, an NSError** one word. It is
// valid until the method returns, and used by that method's goroutine only.
type Call struct {
	obj   *goObject
	sel   SEL
	n     int
	words [maxWords]uintptr
	ret   [maxResult]uintptr
	err   ID                   // where an NSError** points
	out   ID                   // where the place for an object points
	phys  [maxPhysical]uintptr // what SyscallN gets
}

var calls = sync.Pool{New: func() any { return new(Call) }}

func getCall() *Call { return calls.Get().(*Call) }

func putCall(c *Call) {
	c.obj = nil
	c.err, c.out = 0, 0
	calls.Put(c)
}

// Self is the Go value behind the receiver.
func (c *Call) Self() any { return c.obj.value }

// ID is the receiver.
func (c *Call) ID() ID { return c.obj.id }

// SEL is the selector.
func (c *Call) SEL() SEL { return c.sel }

// NArg is the number of words.
func (c *Call) NArg() int { return c.n }

// Word is the i-th word. Asking for one that the message does not have is a bug of the method, caught like every panic
// in one: the message returns zero and the error is latched.
func (c *Call) Word(i int) uintptr {
	if i < 0 || i >= c.n {
		panic(fmt.Sprintf("word %d asked for, the message has %d", i, c.n))
	}
	return c.words[i]
}

// Object is the i-th word as an object.
func (c *Call) Object(i int) ID { return ID(c.Word(i)) }

// Uint is the i-th word as an NSUInteger.
func (c *Call) Uint(i int) uint { return uint(c.Word(i)) }

// Int is the i-th word as an NSInteger.
func (c *Call) Int(i int) int { return int(c.Word(i)) }

// Bool is the i-th word as a BOOL.
func (c *Call) Bool(i int) bool { return byte(c.Word(i)) != 0 }

// Block is the i-th word as a block. Retain it to call it later.
func (c *Call) Block(i int) Block { return Block(c.Word(i)) }

// Float32 is the i-th word as a float.
func (c *Call) Float32(i int) float32 { return math.Float32frombits(uint32(c.Word(i))) }

// Float64 is the i-th word as a double.
func (c *Call) Float64(i int) float64 { return math.Float64frombits(uint64(c.Word(i))) }

// Pointer is the i-th word as a pointer. What it points to belongs to the sender and is valid until the method returns.
func (c *Call) Pointer(i int) unsafe.Pointer { return toPointer(c.Word(i)) }

// Bytes is memory of the sender, from the pointer in word i and the length in word j, valid until the method returns.
func (c *Call) Bytes(i, j int) []byte {
	p, n := c.Pointer(i), c.Word(j)
	if p == nil || n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

// IDs is a C array of objects of the sender, from the pointer in word i and the count n, valid until the method returns.
func (c *Call) IDs(i int, n uint) []ID {
	p := c.Pointer(i)
	if p == nil || n == 0 {
		return nil
	}
	return unsafe.Slice((*ID)(p), n)
}

// Uints is a C array of NSUInteger of the sender, from the pointer in word i and the count n, valid until the method returns.
func (c *Call) Uints(i int, n uint) []uint {
	p := c.Pointer(i)
	if p == nil || n == 0 {
		return nil
	}
	return unsafe.Slice((*uint)(p), n)
}

// Return sets the result: up to three words.
func (c *Call) Return(w ...uintptr) {
	if len(w) > maxResult {
		panic(fmt.Sprintf("a result of %d words; at most %d are supported", len(w), maxResult))
	}
	copy(c.ret[:], w)
}

// ReturnBool sets a BOOL result.
func (c *Call) ReturnBool(b bool) {
	c.ret[0] = 0
	if b {
		c.ret[0] = 1
	}
}

// ReturnFloat64 sets a double result.
func (c *Call) ReturnFloat64(f float64) { c.ret[0] = uintptr(math.Float64bits(f)) }

// ReturnFloat32 sets a float result.
func (c *Call) ReturnFloat32(f float32) { c.ret[0] = uintptr(math.Float32bits(f)) }

// ReturnNew hands an object over with the reference that the method holds (+1): for selectors of the new, alloc, copy
// and init families.
func (c *Call) ReturnNew(id ID) { c.ret[0] = uintptr(id) }

// ReturnBorrowed returns an object that the sender does not own: one that something else keeps alive, or that the
// method has given to the pool with Autorelease.
func (c *Call) ReturnBorrowed(id ID) { c.ret[0] = uintptr(id) }

// ReturnString returns an NSString that the sender does not own.
func (c *Call) ReturnString(s string) { c.ret[0] = uintptr(newGoString(s).Autorelease()) }

// Refuse reports that the message asks for what the object does not do, as an unknown selector is reported; the result
// is zero.
func (c *Call) Refuse(format string, args ...any) {
	c.ret = [maxResult]uintptr{}
	fault(c.obj, fmt.Errorf("objc: -[%s %s]: %w", c.obj.class.name, c.sel, fmt.Errorf(format, args...)))
}

// ReturnPointer returns a pointer. What it points to must stay where it is for as long as the selector promises.
func (c *Call) ReturnPointer(p unsafe.Pointer) { c.ret[0] = uintptr(p) }

// Fail reports an NSError through the NSError** in word i, if the sender wants one, and returns nil or NO.
func (c *Call) Fail(i int, domain string, code int, text string) {
	c.ret = [maxResult]uintptr{}
	if p := (*ID)(c.Pointer(i)); p != nil {
		*p = NewError(domain, code, text).Autorelease()
	}
}

// toPointer makes a pointer of a word that came as an argument or result: memory outside Go's heap, or memory that the
// sender keeps alive.
func toPointer(w uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&w)) }

// invoke lets a Go object answer. It reports false when the object knows no such selector.
func invoke(o *goObject, c *Call) (known bool) {
	m := o.class.method(c.sel)
	if m == nil {
		if m = rootMethods[c.sel]; m == nil {
			return false
		}
	}
	c.obj = o
	known = true
	defer func() {
		if r := recover(); r != nil {
			c.ret = [maxResult]uintptr{}
			fault(o, fmt.Errorf("objc: -[%s %s] panicked: %v", o.class.name, c.sel, r))
		}
	}()
	m(c)
	return true
}

// rootMethods is what every Go object answers, as NSObject does.
var rootMethods map[SEL]Method

func init() {
	rootMethods = map[SEL]Method{
		RegisterName("retain"):      func(c *Call) { c.ReturnBorrowed(c.ID().Retain()) },
		RegisterName("release"):     func(c *Call) { c.ID().Release() },
		RegisterName("autorelease"): func(c *Call) { c.ReturnBorrowed(c.ID().Autorelease()) },
		RegisterName("self"):        func(c *Call) { c.ReturnBorrowed(c.ID()) },
		// alloc already makes the value; init hands the same object on.
		RegisterName("init"):                func(c *Call) { c.ReturnNew(c.ID()) },
		RegisterName("respondsToSelector:"): func(c *Call) { c.ReturnBool(c.ID().RespondsTo(SEL(c.Word(0)))) },
		RegisterName("isEqual:"):            func(c *Call) { c.ReturnBool(c.ID() == c.Object(0)) },
		RegisterName("hash"):                func(c *Call) { c.Return(uintptr(c.ID())) },
		RegisterName("retainCount"):         func(c *Call) { c.Return(uintptr(c.obj.refs.Load())) },
		RegisterName("description"): func(c *Call) {
			c.ReturnString(fmt.Sprintf("<%s: %#x>", c.obj.class.name, uintptr(c.ID())))
		},
	}
}
