package objc

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
)

// wantError takes the latched errors and looks for text in them.
func wantError(t *testing.T, text string) {
	t.Helper()
	if err := TakeError(); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("latched %v, want something about %q", err, text)
	}
}

// wantClean fails on latched errors and objects that are still alive.
func wantClean(t *testing.T, before int) {
	t.Helper()
	if err := TakeError(); err != nil {
		t.Error(err)
	}
	if n := LiveObjects(); n != before {
		t.Errorf("%d live objects, %d before", n, before)
	}
}

func TestSendWordsArrive(t *testing.T) {
	before := LiveObjects()
	m := NewMessage("a:b:c:d:", "{S=QQQ}@:{S=QQQ}Q@{R=QQ}")
	var got []uintptr
	var sel SEL
	c := NewGoClass("Probe", map[string]Method{"a:b:c:d:": func(c *Call) {
		sel = c.SEL()
		for i := range c.NArg() {
			got = append(got, c.Word(i))
		}
		c.Return(31, 32, 33)
	}})
	id := c.New(nil)
	if r := m.Send3(id, 1, 2, 3, 4, 5, 6, 7); r != [3]uintptr{31, 32, 33} {
		t.Error(r)
	}
	if fmt.Sprint(got) != "[1 2 3 4 5 6 7]" || sel.String() != "a:b:c:d:" {
		t.Error(got, sel)
	}
	if m.SEL() != sel || m.Selector() != "a:b:c:d:" || m.Owned() {
		t.Error("the message does not know itself")
	}
	id.Release()
	wantClean(t, before)
}

func TestResults(t *testing.T) {
	id := NewGoClass("Results", map[string]Method{
		"word": func(c *Call) { c.Return(math.MaxUint) },
		"dbl":  func(c *Call) { c.ReturnFloat64(-2.5) },
		"flt":  func(c *Call) { c.ReturnFloat32(1.5) },
		"yes":  func(c *Call) { c.ReturnBool(true) },
		"no":   func(c *Call) { c.Return(1); c.ReturnBool(false) },
		"two":  func(c *Call) { c.Return(8, 9) },
		"zero": func(c *Call) {},
	}).New(nil)
	defer id.Release()
	for enc, want := range map[string]uintptr{
		"Q": math.MaxUint, "B": 1, "C": 0xff, "c": math.MaxUint, "S": 0xffff, "s": math.MaxUint, "I": 0xffffffff, "i": math.MaxUint, "v": 0,
	} {
		if got := NewMessage("word", enc+"@:").Send(id); got != want {
			t.Errorf("%s: %#x, want %#x", enc, got, want)
		}
	}
	if f := NewMessage("dbl", "d@:").SendFloat64(id); f != -2.5 {
		t.Error(f)
	}
	if f := math.Float32frombits(uint32(NewMessage("flt", "f@:").Send(id))); f != 1.5 {
		t.Error(f)
	}
	if !NewMessage("yes", "B@:").SendBool(id) || NewMessage("no", "B@:").SendBool(id) {
		t.Error("BOOL")
	}
	if a, b := NewMessage("two", "{S=QQ}@:").Send2(id); a != 8 || b != 9 {
		t.Error(a, b)
	}
	if r := NewMessage("zero", "{S=QQQ}@:").Send3(id); r != [3]uintptr{} {
		t.Error("a result of the message before", r)
	}
	if err := NewMessage("zero", "v@:").SendChecked(id); err != nil {
		t.Error(err)
	}
	if n := Send(id, RegisterName("two")); n != 8 {
		t.Error(n)
	}
}

func TestNil(t *testing.T) {
	m := NewMessage("a:", "Q@:Q")
	if m.Send(0, 1) != 0 || m.SendBool(0, 1) || m.SendFloat64(0, 1) != 0 || m.Send3(0, 1) != [3]uintptr{} || Send(0, m.SEL(), 1) != 0 {
		t.Error("nil did not answer zero")
	}
	if s := m.SendString(0, 1); s != "" {
		t.Error(s)
	}
	if err := m.SendNSError(0, 1); err != nil {
		t.Error(err)
	}
	if ID(0).Retain() != 0 || ID(0).Autorelease() != 0 || ID(0).RespondsTo(m.SEL()) || ID(0).ClassName() != "nil" || ID(0).IsGo() {
		t.Error("nil")
	}
	ID(0).Release()
	if err := TakeError(); err != nil {
		t.Error(err)
	}
	// What would look like a success without one.
	if _, err := m.SendError(0); err == nil {
		t.Error("no error")
	}
	if _, _, err := m.SendErrorOut(0); err == nil {
		t.Error("no error")
	}
	if err := m.SendChecked(0, 1); err == nil {
		t.Error("no error")
	}
}

// sink is a Go value that wants to know of errors.
type sink struct{ errs []error }

func (s *sink) ObjcError(err error) { s.errs = append(s.errs, err) }

func TestUnknownSelector(t *testing.T) {
	s := &sink{}
	id := NewGoClass("Deaf", nil).New(s)
	defer id.Release()
	if r := NewMessage("nobodyAnswers:", "Q@:Q").Send(id, 1); r != 0 {
		t.Error(r)
	}
	wantError(t, "unknown selector: -[Deaf nobodyAnswers:]")
	if len(s.errs) != 1 || !errors.Is(s.errs[0], ErrUnknownSelector) {
		t.Error(s.errs)
	}
	Send(id, RegisterName("norThis"))
	wantError(t, "-[Deaf norThis]")
	if _, err := NewMessageSince("newThing:", "@@:^@", "15.0").SendError(id); !errors.Is(err, ErrUnknownSelector) || !strings.Contains(err.Error(), "15.0") {
		t.Error(err)
	}
	if err := TakeError(); err != nil {
		t.Error("a returned error is latched as well:", err)
	}
}

func TestWrongWords(t *testing.T) {
	id := NewGoClass("X", map[string]Method{"a:": func(c *Call) { c.Word(1) }, "b": func(c *Call) { c.Return(1, 2, 3, 4) }, "d": func(c *Call) { c.Word(-1) }}).New(nil)
	defer id.Release()
	m := NewMessage("a:", "Q@:Q")
	m.Send(id)
	wantError(t, "takes 1 words, got 0")
	m.Send(id, 1, 2)
	wantError(t, "takes 1 words, got 2")
	m.Send(id, 1)
	wantError(t, "word 1 asked for, the message has 1")
	NewMessage("b", "Q@:").Send(id)
	wantError(t, "a result of 4 words")
	NewMessage("d", "Q@:").Send(id)
	wantError(t, "word -1")
	Send(id, RegisterName("a:"), make([]uintptr, maxWords+1)...)
	wantError(t, "at most")
	if _, err := m.SendError(id, make([]uintptr, maxWords)...); err == nil {
		t.Error("too many words")
	}
}

func TestRefuse(t *testing.T) {
	s := &sink{}
	id := NewGoClass("Choosy", map[string]Method{"take:": func(c *Call) { c.Return(5); c.Refuse("%d is too much", c.Uint(0)) }}).New(s)
	defer id.Release()
	if r := NewMessage("take:", "Q@:Q").Send(id, 7); r != 0 {
		t.Error(r)
	}
	wantError(t, "-[Choosy take:]: 7 is too much")
	var none *Error
	if none.Error() != "<nil>" {
		t.Error(none.Error())
	}
}

func TestPanicIsLatched(t *testing.T) {
	s := &sink{}
	id := NewGoClass("Bad", map[string]Method{"explode": func(c *Call) { c.Return(5); panic("boom") }}).New(s)
	defer id.Release()
	if r := NewMessage("explode", "Q@:").Send(id); r != 0 {
		t.Error(r)
	}
	wantError(t, "-[Bad explode] panicked: boom")
	if len(s.errs) != 1 {
		t.Error(s.errs)
	}
}

// angry panics wherever it can.
type angry struct{}

func (angry) ObjcError(error) { panic("no") }
func (angry) Dealloc()        { panic("never") }

func TestPanicsOfTheValue(t *testing.T) {
	id := NewGoClass("Angry", nil).New(angry{})
	NewMessage("nothing", "v@:").Send(id)
	wantError(t, "ObjcError of Angry panicked: no")
	id.Release()
	wantError(t, "-[Angry dealloc] panicked: never")
}

func TestLatchIsBounded(t *testing.T) {
	for range 3 * maxLatched {
		latch(errors.New("again"))
	}
	err := TakeError()
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("and %d more", 2*maxLatched)) {
		t.Error(err)
	}
	if TakeError() != nil {
		t.Error("not forgotten")
	}
}

func TestNoRuntime(t *testing.T) {
	if Available() == nil {
		t.Skip("there is an Objective-C runtime")
	}
	m := NewMessage("length", "Q@:")
	if m.Send(0x1000) != 0 {
		t.Error("an answer from nowhere")
	}
	wantError(t, "no Go object")
	Send(0x1000, m.SEL())
	wantError(t, "no Go object")
	ID(0x1000).Retain().Autorelease().Release()
	wantError(t, "no Go object")
	if ID(0x1000).RespondsTo(m.SEL()) || ID(0x1000).ClassName() != "?" || Class(0x1000).String() != "?" {
		t.Error("an answer from nowhere")
	}
	if _, err := CallC(Metal, "MTLCreateSystemDefaultDevice"); err == nil {
		t.Error("a device from nowhere")
	}
	if _, err := Constant(Metal, "MTLCommandBufferErrorDomain"); err == nil {
		t.Error("a constant from nowhere")
	}
	if _, err := NewBlock(0x1000, 0, func([]uintptr) {}); err == nil {
		t.Error("a block from nowhere")
	}
	Block(0x1000).Retain().Release()
	wantError(t, "no Go object")
}

func TestMalformedMessages(t *testing.T) {
	for _, c := range [][2]string{{"", "v@:"}, {"a", "v@:Q"}, {"a:", "v@:"}, {"1a", "v@:"}, {":", "v@:Q"}, {"a:b", "v@:Q"}, {"a b", "v@:"}, {"a", "nonsense"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q %q: accepted", c[0], c[1])
				}
			}()
			NewMessage(c[0], c[1])
		}()
	}
}

func TestOwnedFamilies(t *testing.T) {
	for sel, want := range map[string]bool{
		"new": true, "newBufferWithLength:options:": true, "alloc": true, "copy": true, "copyWithZone:": true, "mutableCopy": true, "init": true,
		"initWithBytes:length:encoding:": true, "newsletter": false, "copying": false, "copyFromBuffer:": true, "commandBuffer": false, "initialize": false, "_newThing": true,
	} {
		if ownsResult(sel) != want {
			t.Errorf("%s: %t", sel, !want)
		}
	}
}

func TestTrace(t *testing.T) {
	id := NewGoClass("X", map[string]Method{"a": func(c *Call) {}}).New(nil)
	defer id.Release()
	var heard []string
	SetTrace(func(r ID, s SEL) {
		if r == id {
			heard = append(heard, s.String())
		}
	})
	NewMessage("a", "v@:").Send(id)
	Send(id, RegisterName("hash"))
	SetTrace(nil)
	NewMessage("a", "v@:").Send(id)
	if fmt.Sprint(heard) != "[a hash]" {
		t.Error(heard)
	}
}

func TestConcurrentSends(t *testing.T) {
	before := LiveObjects()
	add := NewMessage("add:", "Q@:Q")
	class := NewGoClass("Counter", map[string]Method{"add:": func(c *Call) { c.Return(c.Self().(uintptr) + c.Word(0)) }})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				pool := NewPool()
				id := class.New(uintptr(g))
				id.Retain().Autorelease()
				if r := add.Send(id, uintptr(i)); r != uintptr(g+i) {
					t.Errorf("%d + %d = %d", g, i, r)
				}
				if s := RegisterName(fmt.Sprintf("sel%d", i)).String(); s != fmt.Sprintf("sel%d", i) {
					t.Error(s)
				}
				id.Release()
				pool.Drain()
			}
		})
	}
	wg.Wait()
	wantClean(t, before)
}

func TestSendAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they hold")
	}
	id := NewGoClass("X", map[string]Method{
		"a:b:c:": func(c *Call) { c.Return(c.Word(1)) }, "size": func(c *Call) { c.Return(1, 2, 3) },
	}).New(nil)
	defer id.Release()
	m, size := NewMessage("a:b:c:", "v@:@QQ"), NewMessage("size", "{S=QQQ}@:")
	data := make([]byte, 64)
	for name, f := range map[string]func(){
		"Send":    func() { m.Send(id, 0, 16, 3) },
		"Send3":   func() { size.Send3(id) },
		"dynamic": func() { Send(id, m.SEL(), 0, 16, 3) },
		"refs":    func() { id.Retain().Release() },
		"pool":    func() { p := NewPool(); id.Retain().Autorelease(); p.Drain() },
		"scratch": func() { s := NewScratch(); m.Send(id, s.Bytes(data), 64, 1); s.Free() },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	id := NewGoClass("X", map[string]Method{"setBuffer:offset:atIndex:": func(c *Call) {}}).New(nil)
	defer id.Release()
	m := NewMessage("setBuffer:offset:atIndex:", "v@:@QQ")
	b.ReportAllocs()
	for b.Loop() {
		m.Send(id, 0, 16, 3)
	}
}

func BenchmarkPool(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewPool().Drain()
	}
}
