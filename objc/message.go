package objc

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Message is a selector together with the types of its arguments and result. It is made once, at package level, and
// sent many times, from any goroutine. Arguments are the logical words in order: structures flattened, float32 and
// float64 as bit patterns, BOOL as 0 or 1.
type Message struct {
	sel   SEL
	name  string
	since string // least macOS when newer than the floor
	owned bool   // the result is +1
	shape shape
	place placement
	err   error // why the Objective-C runtime cannot be sent it
}

// NewMessage describes a message by its selector and type encoding as the Objective-C runtime writes it without
// offsets, self and the selector included: "v@:@QQ". It panics on a malformed one: messages are package-level variables.
func NewMessage(selector, encoding string) *Message {
	return NewMessageSince(selector, encoding, "")
}

// NewMessageSince describes a message that objects answer only from some macOS on. Before it is sent the receiver is
// asked whether it responds; if not, the message fails instead of ending the process.
func NewMessageSince(selector, encoding, macOS string) *Message {
	if !validSelector(selector) {
		panic(fmt.Sprintf("objc: %q is no selector", selector))
	}
	s, err := parseShape(encoding)
	if err != nil {
		panic(err)
	}
	if n := strings.Count(selector, ":"); n != len(s.args) {
		panic(fmt.Sprintf("objc: selector %s takes %d arguments, the encoding %q has %d", selector, n, encoding, len(s.args)))
	}
	m := &Message{sel: RegisterName(selector), name: selector, since: macOS, owned: ownsResult(selector), shape: s}
	m.place, m.err = thisArch.place(s)
	return m
}

// ownsResult tells the families whose result is the caller's: alloc, new, copy, mutableCopy, init.
func ownsResult(selector string) bool {
	name := strings.TrimLeft(selector, "_")
	for _, family := range []string{"alloc", "new", "copy", "mutableCopy", "init"} {
		rest, ok := strings.CutPrefix(name, family)
		if ok && (rest == "" || !('a' <= rest[0] && rest[0] <= 'z')) {
			return true
		}
	}
	return false
}

// SEL is the selector of the message.
func (m *Message) SEL() SEL { return m.sel }

// Selector is the selector's name.
func (m *Message) Selector() string { return m.name }

// Owned tells whether an object that the message returns is the caller's to release.
func (m *Message) Owned() bool { return m.owned }

// trace is called for every message when set.
var trace atomic.Pointer[func(receiver ID, sel SEL)]

// SetTrace makes fn hear of every message before it is sent, from whatever goroutine sends it; nil ends that. It serves tests and
// counting.
func SetTrace(fn func(receiver ID, sel SEL)) {
	if fn == nil {
		trace.Store(nil)
		return
	}
	trace.Store(&fn)
}

// Send sends a message whose result is at most one word: an object, an integer, a BOOL (0 or 1), a pointer. Small
// integers come back sign- or zero-extended. Nil answers zero. A message that cannot be delivered gives zero and latches
// an error, see [TakeError].
func (m *Message) Send(id ID, words ...uintptr) uintptr {
	if id == 0 {
		return 0
	}
	c := getCall()
	if err := m.do(c, id, words); err != nil {
		report(id, err)
	}
	r := c.ret[0]
	putCall(c)
	return r
}

// SendBool sends a message whose result is a BOOL.
func (m *Message) SendBool(id ID, words ...uintptr) bool { return m.Send(id, words...) != 0 }

// SendFloat64 sends a message whose result is a double.
func (m *Message) SendFloat64(id ID, words ...uintptr) float64 {
	return math.Float64frombits(uint64(m.Send(id, words...)))
}

// Send2 sends a message whose result is a structure of two words.
func (m *Message) Send2(id ID, words ...uintptr) (uintptr, uintptr) {
	r := m.Send3(id, words...)
	return r[0], r[1]
}

// Send3 sends a message whose result is a structure of up to three words.
func (m *Message) Send3(id ID, words ...uintptr) [3]uintptr {
	if id == 0 {
		return [3]uintptr{}
	}
	c := getCall()
	if err := m.do(c, id, words); err != nil {
		report(id, err)
	}
	r := c.ret
	putCall(c)
	return r
}

// SendError sends a message whose last argument is an NSError**, which is not among words, and whose result is nil or
// NO when it failed. The result is then zero and the error says why: an [*Error] when the receiver gave one. An object
// that is borrowed is valid as long as the caller's pool.
func (m *Message) SendError(id ID, words ...uintptr) (uintptr, error) {
	if m.owned || m.shape.ret.kind != kindObject {
		// The error is borrowed: this pool ends it, once it is read.
		defer NewPool().Drain()
	}
	result, _, err := m.sendError(id, words, false)
	return result, err
}

// SendErrorOut is [Message.SendError] for a message that has one more argument before the NSError**: a place for an
// object. Neither is among words. The object comes back retained: it is the caller's to release.
func (m *Message) SendErrorOut(id ID, words ...uintptr) (result uintptr, out ID, err error) {
	if m.owned || m.shape.ret.kind != kindObject {
		defer NewPool().Drain()
	}
	return m.sendError(id, words, true)
}

// sendError reads what comes back through pointers before a pool can end it.
func (m *Message) sendError(id ID, words []uintptr, hasOut bool) (result uintptr, out ID, err error) {
	if id == 0 {
		return 0, 0, fmt.Errorf("objc: %s sent to nil", m.name)
	}
	c := getCall()
	defer putCall(c)
	c.err, c.out = 0, 0
	var all [maxWords]uintptr
	n := copy(all[:maxWords-2], words)
	if hasOut {
		all[n] = uintptr(unsafe.Pointer(&c.out))
		n++
	}
	all[n] = uintptr(unsafe.Pointer(&c.err))
	if err := m.do(c, id, all[:n+1]); err != nil {
		return 0, 0, err
	}
	switch {
	case c.ret[0] != 0:
		return c.ret[0], c.out.Retain(), nil
	case c.err != 0:
		return 0, 0, ErrorOf(c.err)
	}
	return 0, 0, fmt.Errorf("objc: -[%s %s] failed without saying why", id.ClassName(), m.name)
}

// SendChecked sends a message without a result, and returns what would be latched.
func (m *Message) SendChecked(id ID, words ...uintptr) error {
	if id == 0 {
		return fmt.Errorf("objc: %s sent to nil", m.name)
	}
	c := getCall()
	defer putCall(c)
	return m.do(c, id, words)
}

// SendNSError sends a message whose result is an NSError, and copies it: an [*Error]. Nil gives nil.
func (m *Message) SendNSError(id ID, words ...uintptr) error {
	if id == 0 {
		return nil
	}
	defer NewPool().Drain()
	return ErrorOf(ID(m.Send(id, words...)))
}

// SendString sends a message whose result is an NSString, and copies it. Nil gives "".
func (m *Message) SendString(id ID, words ...uintptr) string {
	if id == 0 {
		return ""
	}
	defer NewPool().Drain()
	s := ID(m.Send(id, words...))
	text := GoString(s)
	if m.owned {
		s.Release()
	}
	return text
}

// do delivers the message; the result is in c.ret.
func (m *Message) do(c *Call, id ID, words []uintptr) error {
	c.ret = [maxResult]uintptr{}
	if len(words) != m.shape.words {
		return fmt.Errorf("objc: %s takes %d words, got %d", m.name, m.shape.words, len(words))
	}
	if t := trace.Load(); t != nil {
		(*t)(id, m.sel)
	}
	c.sel = m.sel
	c.n = copy(c.words[:], words)
	if id.IsGo() {
		o := lookup(id)
		if o == nil {
			return staleError(id, m.name)
		}
		if !invoke(o, c) {
			return unknownSelector(o, m.name, m.since)
		}
	} else if err := m.sendReal(c, id); err != nil {
		c.ret = [maxResult]uintptr{}
		return err
	}
	c.ret[0] = extend(m.shape.ret.kind, c.ret[0])
	return nil
}

// sendReal delivers to the Objective-C runtime.
func (m *Message) sendReal(c *Call, id ID) error {
	if err := Available(); err != nil {
		return fmt.Errorf("objc: %s sent to %#x, which is no Go object: %w", m.name, uintptr(id), err)
	}
	if m.err != nil {
		return fmt.Errorf("objc: %s: %w", m.name, m.err)
	}
	if m.since != "" && !backendRespondsTo(id, m.sel) {
		return fmt.Errorf("objc: %s does not answer %s, which needs macOS %s", backendClassName(id), m.name, m.since)
	}
	w := 0
	for _, v := range m.shape.args {
		// The real runtime would follow such an ID as a pointer.
		if v.kind == kindObject && ID(c.words[w]).IsGo() {
			return fmt.Errorf("objc: Go object of class %s passed in %s to a %s, which is not one", ID(c.words[w]).ClassName(), m.name, backendClassName(id))
		}
		w += v.words
	}
	return backendSend(m, c, m.layOut(c, id))
}

// layOut writes the words for the integer registers and the stack, as the placement says.
func (m *Message) layOut(c *Call, id ID) []uintptr {
	args := c.phys[:0]
	if m.place.stret {
		args = append(args, uintptr(unsafe.Pointer(&c.ret)))
	}
	args = append(args, uintptr(id), uintptr(m.sel))
	for _, s := range m.place.slots {
		var w uintptr
		switch s.how {
		case slotWord:
			w = c.words[s.word]
		case slotPointer:
			w = uintptr(unsafe.Pointer(&c.words[s.word])) // c is on the heap, and is the copy that the convention asks for
		}
		args = append(args, w)
	}
	return args
}

// extend makes a whole word of a result whose upper bits are not defined.
func extend(k kind, w uintptr) uintptr {
	switch k {
	case kindVoid:
		return 0
	case kindBool:
		if byte(w) != 0 {
			return 1
		}
		return 0
	case kindInt8:
		return uintptr(int8(w))
	case kindUint8:
		return uintptr(uint8(w))
	case kindInt16:
		return uintptr(int16(w))
	case kindUint16:
		return uintptr(uint16(w))
	case kindInt32:
		return uintptr(int32(w))
	case kindUint32, kindFloat32:
		return uintptr(uint32(w))
	}
	return w
}

// ErrUnknownSelector is wrapped by the error of a message that its receiver does not answer.
var ErrUnknownSelector = errors.New("unknown selector")

func unknownSelector(o *goObject, selector, since string) error {
	if since != "" {
		return fmt.Errorf("objc: %w: -[%s %s] (Metal has it from macOS %s)", ErrUnknownSelector, o.class.name, selector, since)
	}
	return fmt.Errorf("objc: %w: -[%s %s]", ErrUnknownSelector, o.class.name, selector)
}

// report latches what a message could not return.
func report(id ID, err error) {
	if id.IsGo() {
		if o := lookup(id); o != nil {
			fault(o, err)
			return
		}
	}
	latch(err)
}

// Send sends a message of integer words only, by selector: for messages that no [Message] describes. See [Message.Send].
func Send(id ID, sel SEL, words ...uintptr) uintptr {
	if id == 0 {
		return 0
	}
	c := getCall()
	if err := sendWords(c, id, sel, words); err != nil {
		report(id, err)
	}
	r := c.ret[0]
	putCall(c)
	return r
}

func sendWords(c *Call, id ID, sel SEL, words []uintptr) error {
	c.ret = [maxResult]uintptr{}
	if len(words) > maxWords {
		return fmt.Errorf("objc: %s with %d words; at most %d are supported", sel, len(words), maxWords)
	}
	if t := trace.Load(); t != nil {
		(*t)(id, sel)
	}
	c.sel = sel
	c.n = copy(c.words[:], words)
	if !id.IsGo() {
		if err := Available(); err != nil {
			return fmt.Errorf("objc: %s sent to %#x, which is no Go object: %w", sel, uintptr(id), err)
		}
		args := append(c.phys[:0], uintptr(id), uintptr(sel))
		return backendSendWords(c, append(args, c.words[:c.n]...))
	}
	o := lookup(id)
	if o == nil {
		return staleError(id, sel.String())
	}
	if !invoke(o, c) {
		return unknownSelector(o, sel.String(), "")
	}
	return nil
}
