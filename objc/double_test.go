//go:build linux && objcdouble

package objc

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// These tests run against the C double of the Objective-C runtime, whose library OBJCDOUBLE names.

func double(t testing.TB) {
	t.Helper()
	if os.Getenv("OBJCDOUBLE") == "" {
		t.Skip("OBJCDOUBLE does not name the library of the C double")
	}
	if err := Available(); err != nil {
		t.Fatal(err)
	}
}

func call(t testing.TB, name string, words ...uintptr) uintptr {
	t.Helper()
	r, err := CallC(System, name, words...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func realDevice(t testing.TB) ID {
	t.Helper()
	double(t)
	d, err := CallC(Metal, "MTLCreateSystemDefaultDevice")
	if err != nil || d == 0 {
		t.Fatal(d, err)
	}
	return ID(d)
}

func TestRealSelectors(t *testing.T) {
	double(t)
	name := append([]byte("some:selector:"), 0)
	if SEL(call(t, "sel_registerName", Pointer(unsafe.Pointer(&name[0])))) != RegisterName("some:selector:") {
		t.Error("not the runtime's own selector")
	}
	runtime.KeepAlive(name)
}

func TestRealObjects(t *testing.T) {
	d := realDevice(t)
	live := call(t, "objcdouble_live_objects")
	s := NSString("real")
	if s.IsGo() || s.ClassName() != "NSString" || GoString(s) != "real" || !s.RespondsTo(RegisterName("length")) || s.RespondsTo(RegisterName("nothing")) {
		t.Error(s.ClassName(), GoString(s))
	}
	if n := s.Retain(); n != s || call(t, "objcdouble_retain_count", uintptr(s)) != 2 {
		t.Error("retain")
	}
	s.Release()
	p := NewPool()
	a := NSArray(s, d)
	if ArrayCount(a) != 2 || ArrayAt(a, 1) != d {
		t.Error("array")
	}
	a.Release()
	s.Retain().Autorelease()
	p.Drain()
	if call(t, "objcdouble_retain_count", uintptr(s)) != 1 {
		t.Error("the pool kept a reference")
	}
	s.Release()
	if n := call(t, "objcdouble_live_objects"); n != live {
		t.Errorf("%d objects more", int(n-live))
	}
	if c := ClassFor(d, "NSString"); c == 0 || ID(c).IsGo() || c.String() != "NSString" {
		t.Error(c)
	}
	if GetClass("NoSuchClass") != 0 {
		t.Error("a class from nowhere")
	}
}

func TestRealResults(t *testing.T) {
	d := realDevice(t)
	defer NewPool().Drain()
	if r := NewMessage("maxThreadsPerThreadgroup", "{MTLSize=QQQ}@:").Send3(d); r != [3]uintptr{1024, 1024, 1024} {
		t.Error(r)
	}
	if !NewMessage("supportsFamily:", "B@:q").SendBool(d, 5001) || NewMessage("supportsFamily:", "B@:q").SendBool(d, 7) {
		t.Error("BOOL")
	}
	q := NewMessage("newCommandQueue", "@@:").Send(d)
	cb := NewMessage("commandBuffer", "@@:").Send(ID(q))
	if f := NewMessage("GPUStartTime", "d@:").SendFloat64(ID(cb)); f != 1.25 {
		t.Error(f)
	}
	ID(q).Release()
	if s := NewMessage("name", "@@:").SendString(d); s == "" {
		t.Error("no name")
	}
}

func TestRealErrors(t *testing.T) {
	d := realDevice(t)
	live := call(t, "objcdouble_live_objects")
	data, err := Data(d, []byte("rubbish"))
	if err != nil {
		t.Fatal(err)
	}
	m := NewMessage("newLibraryWithData:error:", "@@:@^@")
	if _, err := m.SendError(d, uintptr(data)); !errors.Is(err, &Error{Domain: "MTLLibraryErrorDomain", Code: 1}) {
		t.Error(err)
	}
	data.Release()
	if data, err = Data(d, []byte("MTLB…")); err != nil {
		t.Fatal(err)
	}
	l, err := m.SendError(d, uintptr(data))
	if err != nil {
		t.Error(err)
	}
	ID(l).Release()
	data.Release()
	if n := call(t, "objcdouble_live_objects"); n != live {
		t.Errorf("%d objects more", int(n-live))
	}
	// What would end the process is refused.
	goID := NewGoClass("X", nil).New(nil)
	defer goID.Release()
	if _, err := m.SendError(d, uintptr(goID)); err == nil || !strings.Contains(err.Error(), "Go object of class X passed") {
		t.Error(err)
	}
	if NewMessageSince("newerThanThis", "Q@:", "99.0").Send(d) != 0 {
		t.Error("an answer from nowhere")
	}
	wantError(t, "needs macOS 99.0")
	if _, err := CallC(System, "no_such_function"); err == nil {
		t.Error("a function from nowhere")
	}
	if _, err := CallC(Libraries, "x"); err == nil {
		t.Error("a library from nowhere")
	}
}

func TestRealBlocks(t *testing.T) {
	d := realDevice(t)
	live := call(t, "objcdouble_live_objects")
	pool := NewPool()
	blocksBefore := len(blocks.funcs)
	q := ID(NewMessage("newCommandQueue", "@@:").Send(d))
	for i := range 300 {
		cb := ID(NewMessage("commandBuffer", "@@:").Send(q))
		got := make(chan uintptr, 1)
		b, err := NewBlock(cb, 1, func(w []uintptr) {
			got <- w[0]
			if i%100 == 0 {
				panic("on a foreign thread")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		NewMessage("addCompletedHandler:", "v@:@?").Send(cb, uintptr(b))
		b.Retain().Release()
		b.Release()
		NewMessage("commit", "v@:").Send(cb)
		select {
		case w := <-got:
			if ID(w) != cb {
				t.Fatal("another command buffer")
			}
		case <-time.After(time.Minute):
			t.Fatal("the block did not run")
		}
	}
	q.Release()
	pool.Drain()
	// The thread that called a block lets go of it, and of the command buffer, a moment later.
	for late := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		blocks.Lock()
		n := len(blocks.funcs)
		blocks.Unlock()
		if objects := call(t, "objcdouble_live_objects"); n == blocksBefore && objects == live {
			break
		} else if time.Now().After(late) {
			t.Fatalf("%d blocks and %d objects leak", n-blocksBefore, int(objects-live))
		}
	}
	wantError(t, "a block panicked: on a foreign thread")
}

// newCanary: a canary answers init like every message, with zero.
func newCanary() ID { return ID(msgAlloc.Send(GetClass("Canary").ID())) }

// canaryMessage is what the double's canary wrote down, see canary.c.
func canaryMessage(t *testing.T) (x, d, stack []uint64) {
	integers := map[string]int{"amd64": 6, "arm64": 9}[runtime.GOARCH]
	all := unsafe.Slice((*uint64)(WordPointer(call(t, "objcdouble_canary_message"))), integers+8+16)
	return all[:integers], all[integers : integers+8], all[integers+8:]
}

func TestRealFloatArguments(t *testing.T) {
	double(t)
	id := newCanary()
	defer id.Release()
	m := NewMessage("setSamplerState:lodMinClamp:lodMaxClamp:atIndex:", "v@:@ffQ")
	m.Send(id, 0, float32Bits(1.5), float32Bits(-2.5), 7)
	x, d, _ := canaryMessage(t)
	at := 0 // of self
	if x[at] != uint64(id) || x[at+2] != 0 || x[at+3] != 7 || uint32(d[0]) != uint32(float32Bits(1.5)) || uint32(d[1]) != uint32(float32Bits(-2.5)) {
		t.Errorf("%x %x", x, d)
	}
	if c, err := Constant(System, "canary_message"); err != nil || c != id {
		t.Error("the first word of a variable of the double:", c, err)
	}
	if _, err := Constant(Metal, "no_such_variable"); err == nil {
		t.Error("a variable from nowhere")
	}
	NewMessage("presentDrawable:atTime:", "v@:@d").Send(id, 0, float64Bits(2.5))
	if _, d, _ = canaryMessage(t); d[0] != uint64(float64Bits(2.5)) {
		t.Errorf("%x", d)
	}
	// More words than registers, and a structure.
	NewMessage("a:b:c:d:e:f:g:", "v@:QQQQQQ{MTLSize=QQQ}").Send(id, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	x, _, stack := canaryMessage(t)
	if runtime.GOARCH == "amd64" {
		if x[5] != 4 || stack[0] != 5 || stack[1] != 6 || stack[2] != 7 || stack[4] != 9 {
			t.Errorf("%x %x", x, stack)
		}
	} else if x[7] != 6 || stack[0] == 0 {
		t.Errorf("%x %x", x, stack)
	}
}

func TestRealSendAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they hold")
	}
	d := realDevice(t)
	size, family := NewMessage("maxThreadsPerThreadgroup", "{MTLSize=QQQ}@:"), NewMessage("supportsFamily:", "B@:q")
	id := newCanary()
	defer id.Release()
	dispatch := NewMessage("dispatchThreads:threadsPerThreadgroup:", "v@:{MTLSize=QQQ}{MTLSize=QQQ}")
	if n := testing.AllocsPerRun(100, func() { family.Send(d, 1); dispatch.Send(id, 1, 2, 3, 4, 5, 6); NewPool().Drain() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if runtime.GOARCH == "amd64" {
		if n := testing.AllocsPerRun(100, func() { size.Send3(d) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestRealBytes(t *testing.T) {
	d := realDevice(t)
	text := []byte("copied")
	s := NewScratch()
	b := ID(NewMessage("newBufferWithBytes:length:options:", "@@:^vQQ").Send(d, s.Bytes(text), uintptr(len(text)), 0))
	s.Free()
	defer b.Release()
	p := WordPointer(NewMessage("contents", "^v@:").Send(b))
	if !bytes.Equal(unsafe.Slice((*byte)(p), len(text)), text) {
		t.Error("bytes")
	}
}

func BenchmarkRealSend(b *testing.B) {
	double(b)
	id := newCanary()
	defer id.Release()
	m := NewMessage("setBuffer:offset:atIndex:", "v@:@QQ")
	b.ReportAllocs()
	for b.Loop() {
		m.Send(id, 0, 16, 3)
	}
}
