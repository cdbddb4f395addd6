package objc

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestStrings(t *testing.T) {
	before := LiveObjects()
	for _, s := range []string{"", "hello", "grüße 世界", strings.Repeat("x", 10000)} {
		id := NSString(s)
		if got := GoString(id); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
		id.Release()
	}
	id := NSString("bad\xff")
	if got := GoString(id); got != "bad\uFFFD" {
		t.Errorf("%q", got)
	}
	id.Release()
	if GoString(0) != "" {
		t.Error("nil")
	}
	wantClean(t, before)
}

func TestGoStringObject(t *testing.T) {
	before := LiveObjects()
	p := NewPool()
	a, b := newGoString("a😀b"), newGoString("a😀b")
	if n := Send(a, RegisterName("length")); n != 4 {
		t.Error("UTF-16 length", n)
	}
	if n := Send(a, RegisterName("lengthOfBytesUsingEncoding:"), utf8Encoding); n != 6 {
		t.Error("UTF-8 length", n)
	}
	if s := cString(toPointer(Send(a, RegisterName("UTF8String")))); s != "a😀b" {
		t.Error(s)
	}
	if Send(a, RegisterName("isEqualToString:"), uintptr(b)) != 1 || Send(a, RegisterName("isEqualToString:"), 0) != 0 {
		t.Error("isEqualToString:")
	}
	if ID(Send(a, RegisterName("description"))) != a {
		t.Error("description")
	}
	ID(Send(a, RegisterName("copy"))).Release()
	a.Release()
	b.Release()
	p.Drain()
	wantClean(t, before)
}

func TestErrors(t *testing.T) {
	before := LiveObjects()
	id := NewError("Domain", -7, "went wrong")
	err := ErrorOf(id)
	var e *Error
	if !errors.As(err, &e) || *e != (Error{"Domain", -7, "went wrong"}) {
		t.Error(err)
	}
	if err.Error() != "went wrong (Domain, code -7)" {
		t.Error(err)
	}
	if !errors.Is(err, &Error{Domain: "Domain", Code: -7}) || errors.Is(err, &Error{Domain: "Domain"}) {
		t.Error("Is")
	}
	// The messages that a stranger would send.
	if s := msgDomain.SendString(id); s != "Domain" {
		t.Error(s)
	}
	if s := msgDescription.SendString(id); s != "went wrong" || int(msgCode.Send(id)) != -7 {
		t.Error(s)
	}
	id.Release()
	if ErrorOf(0) != nil {
		t.Error("nil")
	}
	wantClean(t, before)
}

func TestSendError(t *testing.T) {
	before := LiveObjects()
	class := NewGoClass("Maker", map[string]Method{
		"newThing:error:": func(c *Call) {
			switch c.Word(0) {
			case 0:
				c.Fail(1, "D", 3, "asked to fail")
			case 1:
				c.ReturnNew(c.ID().Retain())
			}
		},
		"try:": func(c *Call) { c.ReturnBool(true) },
		"newThing:out:error:": func(c *Call) {
			if c.Word(0) == 0 {
				c.Fail(2, "D", 4, "no")
				return
			}
			*(*ID)(c.Pointer(1)) = c.ID().Retain().Autorelease()
			c.ReturnNew(c.ID().Retain())
		},
	})
	id := class.New(nil)
	m := NewMessage("newThing:error:", "@@:Q^@")
	if _, err := m.SendError(id, 0); !errors.Is(err, &Error{Domain: "D", Code: 3}) {
		t.Error(err)
	}
	r, err := m.SendError(id, 1)
	if err != nil || ID(r) != id {
		t.Error(r, err)
	}
	ID(r).Release()
	if _, err := m.SendError(id, 2); err == nil || !strings.Contains(err.Error(), "without saying why") {
		t.Error(err)
	}
	// A sender that wants no error gets none.
	if m.Send(id, 0, 0) != 0 {
		t.Error("not nil")
	}
	if r, err := NewMessage("try:", "B@:^@").SendError(id); r != 1 || err != nil {
		t.Error(r, err)
	}
	out := NewMessage("newThing:out:error:", "@@:Q^@^@")
	r, o, err := out.SendErrorOut(id, 1)
	if ID(r) != id || o != id || err != nil {
		t.Error(r, o, err)
	}
	ID(r).Release()
	o.Release()
	if r, o, err := out.SendErrorOut(id, 0); r != 0 || o != 0 || !errors.Is(err, &Error{Domain: "D", Code: 4}) {
		t.Error(r, o, err)
	}
	id.Release()
	if Parked() != 0 {
		t.Error("an error was left without a pool")
	}
	wantClean(t, before)
}

func TestSendStringAndNSError(t *testing.T) {
	before := LiveObjects()
	id := NewGoClass("Named", map[string]Method{
		"name":     func(c *Call) { c.ReturnString("a name") },
		"copyName": func(c *Call) { c.ReturnNew(newGoString("a copy")) },
		"nothing":  func(c *Call) {},
		"error":    func(c *Call) { c.ReturnBorrowed(NewError("D", 1, "text").Autorelease()) },
	}).New(nil)
	for sel, want := range map[string]string{"name": "a name", "copyName": "a copy", "nothing": ""} {
		if s := NewMessage(sel, "@@:").SendString(id); s != want {
			t.Errorf("%s: %q", sel, s)
		}
	}
	if err := NewMessage("error", "@@:").SendNSError(id); !errors.Is(err, &Error{Domain: "D", Code: 1}) {
		t.Error(err)
	}
	if err := NewMessage("nothing", "@@:").SendNSError(id); err != nil {
		t.Error(err)
	}
	id.Release()
	wantClean(t, before)
}

func TestArrays(t *testing.T) {
	before := LiveObjects()
	class := NewGoClass("X", nil)
	a, b := class.New(1), class.New(2)
	array := NSArray(a, 0, b)
	a.Release()
	b.Release()
	if n := ArrayCount(array); n != 2 {
		t.Fatal(n)
	}
	if Value(ArrayAt(array, 0)) != any(1) || ArrayAt(array, 1) != b || ArrayAt(array, 2) != 0 || ArrayAt(array, -1) != 0 {
		t.Error("objects")
	}
	if got := ArrayIDs(array); fmt.Sprint(got) != fmt.Sprint([]ID{a, b}) {
		t.Error(got)
	}
	ID(Send(array, RegisterName("copy"))).Release()
	if Send(array, RegisterName("objectAtIndex:"), 5) != 0 {
		t.Error("an object from nowhere")
	}
	wantError(t, "index 5 beyond 2")
	array.Release()
	empty := NSArray()
	if ArrayCount(empty) != 0 || ArrayCount(0) != 0 || len(ArrayIDs(0)) != 0 {
		t.Error("empty")
	}
	empty.Release()
	wantClean(t, before)
}

func TestData(t *testing.T) {
	before := LiveObjects()
	receiver := NewGoClass("X", nil).New(nil)
	for _, s := range []string{"", "some bytes"} {
		id, err := Data(receiver, []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		b, ok := DataBytes(id)
		if !ok || string(b) != s || Send(id, RegisterName("length")) != uintptr(len(s)) {
			t.Errorf("%q: %q", s, b)
		}
		if (Send(id, RegisterName("bytes")) == 0) != (s == "") {
			t.Error("bytes")
		}
		if got := GoBytes(id); string(got) != s || len(got) > 0 && &got[0] == &b[0] {
			t.Errorf("%q, want a copy of %q", got, s)
		}
		id.Release()
	}
	if _, ok := DataBytes(receiver); ok || GoBytes(0) != nil {
		t.Error("bytes from nowhere")
	}
	receiver.Release()
	wantClean(t, before)
}

func TestFileURL(t *testing.T) {
	before := LiveObjects()
	receiver := NewGoClass("X", nil).New(nil)
	url, err := FileURL(receiver, "/a/b c.gputrace")
	if err != nil {
		t.Fatal(err)
	}
	pool := NewPool()
	if path := GoString(ID(Send(url, RegisterName("path")))); path != "/a/b c.gputrace" {
		t.Error(path)
	}
	pool.Drain()
	url.Release()
	if url, err := FileURL(receiver, ""); err == nil || url != 0 {
		t.Error("the URL of a file without a name")
	}
	receiver.Release()
	wantClean(t, before)
}

func TestBlocks(t *testing.T) {
	before := LiveObjects()
	receiver := NewGoClass("X", nil).New(nil)
	sum := uintptr(0)
	b, err := NewBlock(receiver, 2, func(w []uintptr) { sum += w[0] + w[1] })
	if err != nil {
		t.Fatal(err)
	}
	kept := b.Retain()
	b.Release()
	if err := InvokeBlock(kept, 3, 4); err != nil || sum != 7 {
		t.Error(err, sum)
	}
	if err := InvokeBlock(kept, 3); err == nil {
		t.Error("one argument for two")
	}
	kept.Release()
	if err := InvokeBlock(kept, 3, 4); err == nil {
		t.Error("a released block ran")
	}
	if err := InvokeBlock(0); err == nil {
		t.Error("nil ran")
	}
	bad, err := NewBlock(receiver, 0, func([]uintptr) { panic("inside") })
	if err != nil {
		t.Fatal(err)
	}
	if err := InvokeBlock(bad); err != nil {
		t.Error(err)
	}
	wantError(t, "a block panicked: inside")
	bad.Release()
	for _, n := range []int{-1, MaxBlockArgs + 1} {
		if _, err := NewBlock(receiver, n, func([]uintptr) {}); err == nil {
			t.Errorf("a block of %d arguments", n)
		}
	}
	if _, err := NewBlock(receiver, 0, nil); err == nil {
		t.Error("a block of nothing")
	}
	if b, err := NewBlock(0, 0, func([]uintptr) {}); b != 0 || err != nil {
		t.Error(b, err)
	}
	Block(0).Retain().Release()
	receiver.Release()
	wantClean(t, before)
}

func TestScratch(t *testing.T) {
	s := NewScratch()
	defer s.Free()
	if s.Bytes(nil) != 0 || s.IDs(nil) != 0 || s.Uints(nil) != 0 {
		t.Error("an address of nothing")
	}
	if w, p := s.Words(0); w != nil || p != 0 {
		t.Error("an address of nothing")
	}
	if s.String("") == 0 {
		t.Error("no address of an empty string")
	}
	big := make([]byte, 1<<20)
	big[len(big)-1] = 9
	small, large := s.Bytes([]byte{1, 2, 3}), s.Bytes(big)
	words, p := s.Words(2)
	words[1] = 77
	if *(*byte)(WordPointer(small + 2)) != 3 || *(*byte)(WordPointer(large + 1<<20 - 1)) != 9 || *(*uintptr)(WordPointer(p + 8)) != 77 {
		t.Error("bytes")
	}
}
