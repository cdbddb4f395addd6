package objc

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// mortal counts how often it died.
type mortal struct{ deaths atomic.Int32 }

func (m *mortal) Dealloc() { m.deaths.Add(1) }

func TestLifetime(t *testing.T) {
	before := LiveObjects()
	v := &mortal{}
	class := NewGoClass("Mortal", map[string]Method{"ping": func(c *Call) { c.Return(1) }})
	id := class.New(v)
	if !id.IsGo() || Value(id) != any(v) || id.ClassName() != "Mortal" || LiveObjects() != before+1 {
		t.Error("not born")
	}
	if n := Send(id.Retain(), RegisterName("retainCount")); n != 2 {
		t.Error(n)
	}
	id.Release()
	if v.deaths.Load() != 0 {
		t.Error("died early")
	}
	id.Release()
	if v.deaths.Load() != 1 || Value(id) != nil {
		t.Error("did not die")
	}
	wantClean(t, before)

	// The slot is used again, the ID is not.
	other := class.New(&mortal{})
	if other == id || Send(id, RegisterName("ping")) != 0 {
		t.Error("a dead object answered")
	}
	wantError(t, "has been released")
	NewMessage("ping", "Q@:").Send(id)
	wantError(t, "has been released")
	id.Release()
	wantError(t, "release sent to Go object")
	id.Retain()
	wantError(t, "retain sent to Go object")
	id.Autorelease()
	wantError(t, "autorelease sent to Go object")
	if id.RespondsTo(RegisterName("ping")) || !strings.Contains(id.ClassName(), "released") {
		t.Error("a dead object answered")
	}
	other.Release()
	wantClean(t, before)
}

func TestIDsAreNoPointers(t *testing.T) {
	class := NewGoClass("X", nil)
	for range 3000 { // more than a chunk
		id := class.New(nil)
		if id>>63 != 0 || id>>62&1 != 1 || id&1 != 0 {
			t.Fatalf("%#x", uintptr(id))
		}
		defer id.Release()
	}
	x := 0
	for _, id := range []ID{0, 0x1000, 1<<63 | 1<<62 | 2, 1<<62 | 1, ID(Pointer((ptr(&x))))} {
		if id.IsGo() {
			t.Errorf("%#x", uintptr(id))
		}
	}
	if Value(0) != nil || Value(0x1000) != nil || Value(1<<62|1<<28) != nil {
		t.Error("a value from nowhere")
	}
}

func TestConcurrentReferences(t *testing.T) {
	before := LiveObjects()
	v := &mortal{}
	id := NewGoClass("Mortal", nil).New(v)
	var wg sync.WaitGroup
	for range 8 {
		id.Retain()
		wg.Go(func() {
			for range 1000 {
				id.Retain()
				id.Release()
			}
			id.Release()
		})
	}
	id.Release()
	wg.Wait()
	if v.deaths.Load() != 1 {
		t.Error(v.deaths.Load())
	}
	wantClean(t, before)
}

func TestRootMethods(t *testing.T) {
	defer NewPool().Drain()
	id := NewGoClass("Thing", map[string]Method{"own": func(c *Call) {}}).New(7)
	defer id.Release()
	if ID(Send(id, RegisterName("self"))) != id || ID(Send(id, RegisterName("init"))) != id {
		t.Error("self")
	}
	if Send(id, RegisterName("isEqual:"), uintptr(id)) != 1 || Send(id, RegisterName("isEqual:"), 0) != 0 {
		t.Error("isEqual:")
	}
	if Send(id, RegisterName("hash")) == 0 {
		t.Error("hash")
	}
	if s := GoString(ID(Send(id, RegisterName("description")))); !strings.HasPrefix(s, "<Thing: 0x4") {
		t.Error(s)
	}
	if ID(Send(id, RegisterName("retain"))) != id || ID(Send(id, RegisterName("autorelease"))) != id {
		t.Error("retain, autorelease")
	}
	Send(id, RegisterName("retain"))
	Send(id, RegisterName("release"))
	for sel, want := range map[string]bool{"own": true, "retain": true, "description": true, "other": false} {
		if id.RespondsTo(RegisterName(sel)) != want || (Send(id, RegisterName("respondsToSelector:"), uintptr(RegisterName(sel))) != 0) != want {
			t.Errorf("respondsToSelector: %s is not %t", sel, want)
		}
	}
}

func TestSelectors(t *testing.T) {
	a, b := RegisterName("one:two:"), RegisterName("one:two:")
	if a == 0 || a != b || a.String() != "one:two:" || RegisterName("one:") == a {
		t.Error("selectors")
	}
	if RegisterName("") != 0 || SEL(12345).String() != "?" {
		t.Error("no selector")
	}
	class := NewGoClass("X", map[string]Method{"b": func(*Call) {}, "a:": func(*Call) {}})
	if got := class.Selectors(); !slices.Equal(got, []string{"a:", "b"}) || class.Name() != "X" {
		t.Error(got, class.Name())
	}
}

func TestMalformedClasses(t *testing.T) {
	for name, f := range map[string]func(){
		"no name":   func() { NewGoClass("", nil) },
		"selector":  func() { NewGoClass("X", map[string]Method{"a:b": func(*Call) {}}) },
		"no method": func() { NewGoClass("X", map[string]Method{"a": nil}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			f()
		}()
	}
}

func TestRegisteredClass(t *testing.T) {
	before := LiveObjects()
	made := 0
	NewGoClass("TestRegistered", map[string]Method{"n": func(c *Call) { c.Return(uintptr(c.Self().(int))) }}).Register(func() any { made++; return made })
	receiver := NewGoClass("X", nil).New(nil)
	for _, class := range []Class{GetClass("TestRegistered"), ClassFor(receiver, "TestRegistered"), ClassFor(0, "TestRegistered")} {
		if class == 0 || class.String() != "TestRegistered" {
			t.Fatal(class)
		}
		id := class.New()
		if n := Send(id, RegisterName("n")); n != uintptr(made) || id.ClassName() != "TestRegistered" {
			t.Error(n, made)
		}
		id.Release()
	}
	one := ID(Send(GetClass("TestRegistered").ID(), RegisterName("new")))
	if one == 0 {
		t.Error("new")
	}
	one.Release()
	NewGoClass("TestRegistered", nil).Register(func() any { return "later" })
	id := GetClass("TestRegistered").New()
	if Value(id) != any("later") {
		t.Error("the class registered later did not win")
	}
	id.Release()
	receiver.Release()
	if GetClass("NoSuchClass") != 0 || Class(0).New() != 0 || Class(0).String() != "nil" {
		t.Error("a class from nowhere")
	}
	wantClean(t, before)
}

func TestCallArguments(t *testing.T) {
	before := LiveObjects()
	m := NewMessage("o:n:i:b:f:d:p:q:", "v@:@QqBfd^vQ")
	done := false
	id := NewGoClass("Args", map[string]Method{"o:n:i:b:f:d:p:q:": func(c *Call) {
		done = c.Object(0) == c.ID() && c.Uint(1) == 7 && c.Int(2) == -3 && c.Bool(3) && c.Float32(4) == 1.5 && c.Float64(5) == -2.5 &&
			string(c.Bytes(6, 7)) == "bytes" && c.Block(0) == Block(c.ID()) && c.Self() == nil && *(*byte)(c.Pointer(6)) == 'b'
	}}).New(nil)
	s := NewScratch()
	minus := -3
	m.Send(id, uintptr(id), 7, uintptr(minus), 1, float32Bits(1.5), float64Bits(-2.5), s.Bytes([]byte("bytes")), 5)
	s.Free()
	if !done {
		t.Error("an argument did not arrive")
	}
	id.Release()
	wantClean(t, before)
}

func TestCallArrays(t *testing.T) {
	m := NewMessage("a:b:c:", "v@:^@^QQ")
	text := ""
	id := NewGoClass("Arrays", map[string]Method{"a:b:c:": func(c *Call) {
		n := c.Uint(2)
		text = fmt.Sprint(c.IDs(0, n), c.Uints(1, n), c.Bytes(0, 2) == nil)
	}}).New(nil)
	defer id.Release()
	s := NewScratch()
	defer s.Free()
	m.Send(id, s.IDs([]ID{5, 0, 6}), s.Uints([]uint{1, 2, 3}), 3)
	if text != "[5 0 6] [1 2 3] false" {
		t.Error(text)
	}
	m.Send(id, 0, 0, 3)
	if text != "[] [] true" {
		t.Error(text)
	}
}

func FuzzSelector(f *testing.F) {
	for _, s := range []string{"a", "a:", "a:b:", ":", "a::", "1a", "a b", "", "ä:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if sel := RegisterName(name); name != "" && sel.String() != name {
			t.Fatalf("%q came back as %q", name, sel)
		}
		defer func() {
			if r := recover(); (r == nil) != validSelector(name) {
				t.Errorf("%q: valid %t, panic %v", name, validSelector(name), r)
			}
		}()
		id := NewGoClass("Fuzz", map[string]Method{name: func(c *Call) { c.Return(uintptr(c.NArg())) }}).New(nil)
		defer id.Release()
		words := make([]uintptr, strings.Count(name, ":")%maxWords)
		if n := Send(id, RegisterName(name), words...); int(n) != len(words) {
			t.Errorf("%q: %d words, want %d", name, n, len(words))
		}
	})
}
