//go:build (darwin || (linux && objcdouble)) && (amd64 || arm64)

package objc

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"sync"

	"github.com/ebitengine/purego"
)

// lib is the Objective-C runtime, once opened: addresses of its functions.
var lib struct {
	once sync.Once
	err  error
	libs [Libraries]library

	msgSend, msgSendStret                       uintptr
	registerName, getClass, objectClass, nameOf uintptr
	poolPush, poolPop                           uintptr
	blockCopy, blockRelease, stackBlock         uintptr

	symbols sync.Map // CallC: name to address
}

// The messages every object answers are sent by selector, before any Message exists.
var selRetain, selRelease, selAutorelease, selResponds SEL

func backendAvailable() error {
	lib.once.Do(func() { lib.err = openReal() })
	return lib.err
}

func openReal() error {
	if err := openLibrary(System); err != nil {
		return fmt.Errorf("no Objective-C runtime: %w", err)
	}
	type symbol struct {
		name string
		to   *uintptr
	}
	symbols := []symbol{
		{"objc_msgSend", &lib.msgSend},
		{"sel_registerName", &lib.registerName},
		{"objc_getClass", &lib.getClass},
		{"object_getClass", &lib.objectClass},
		{"class_getName", &lib.nameOf},
		{"objc_autoreleasePoolPush", &lib.poolPush},
		{"objc_autoreleasePoolPop", &lib.poolPop},
		{"_Block_copy", &lib.blockCopy},
		{"_Block_release", &lib.blockRelease},
		{"_NSConcreteStackBlock", &lib.stackBlock},
	}
	if thisArch.stret {
		symbols = append(symbols, symbol{"objc_msgSend_stret", &lib.msgSendStret})
	}
	for _, s := range symbols {
		address, err := findSymbol(System, s.name)
		if err != nil {
			return err
		}
		*s.to = address
	}
	selRetain, selRelease = realSelector("retain"), realSelector("release")
	selAutorelease, selResponds = realSelector("autorelease"), realSelector("respondsToSelector:")
	return nil
}

// library is opened when something of it is asked for.
type library struct {
	once    sync.Once
	handles []uintptr
	err     error
}

func openLibrary(l Library) error {
	if l < 0 || l >= Libraries {
		return fmt.Errorf("objc: there is no library %d", l)
	}
	b := &lib.libs[l]
	b.once.Do(func() {
		for _, path := range libraryPaths()[l] {
			h, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
			if err != nil {
				b.err = err
				return
			}
			b.handles = append(b.handles, h)
		}
	})
	return b.err
}

func findSymbol(l Library, name string) (uintptr, error) {
	if err := openLibrary(l); err != nil {
		return 0, fmt.Errorf("objc: looking for %s: %w", name, err)
	}
	var err error
	for _, h := range lib.libs[l].handles {
		var address uintptr
		if address, err = purego.Dlsym(h, name); err == nil && address != 0 {
			return address, nil
		}
	}
	return 0, fmt.Errorf("objc: there is no %s: %w", name, err)
}

// withCString calls fn with the address of name and a NUL, outside any stack.
func withCString(fn uintptr, name string) uintptr {
	m := NewScratch()
	defer m.Free()
	p := m.Bytes(append([]byte(name), 0))
	r, _, _ := purego.SyscallN(fn, p)
	return r
}

func realSelector(name string) SEL { return SEL(withCString(lib.registerName, name)) }

func backendRegisterName(name string) SEL {
	if backendAvailable() != nil {
		return 0
	}
	return realSelector(name)
}

func backendGetClass(name string) Class {
	if backendAvailable() != nil {
		return 0
	}
	if c := withCString(lib.getClass, name); c != 0 {
		return Class(c)
	}
	// A class of Metal may be asked for before anything else of Metal is.
	if openLibrary(Metal) != nil {
		return 0
	}
	return Class(withCString(lib.getClass, name))
}

func backendNameOfClass(c Class) string {
	if backendAvailable() != nil {
		return "?"
	}
	r, _, _ := purego.SyscallN(lib.nameOf, uintptr(c))
	return cString(toPointer(r))
}

func backendClassName(id ID) string {
	if backendAvailable() != nil {
		return "?"
	}
	r, _, _ := purego.SyscallN(lib.objectClass, uintptr(id))
	return backendNameOfClass(Class(r))
}

// plain sends a message of at most one word.
func plain(id ID, sel SEL, word uintptr) uintptr {
	c := getCall()
	c.phys[0], c.phys[1], c.phys[2] = uintptr(id), uintptr(sel), word
	r, _, _ := purego.SyscallN(lib.msgSend, c.phys[:3]...)
	putCall(c)
	return r
}

func backendRetain(id ID) {
	if foreign(id, "retain") {
		plain(id, selRetain, 0)
	}
}

func backendRelease(id ID) {
	if foreign(id, "release") {
		plain(id, selRelease, 0)
	}
}

func backendAutorelease(id ID) {
	if foreign(id, "autorelease") {
		plain(id, selAutorelease, 0)
	}
}

// foreign tells whether there is a runtime whose object id can be.
func foreign(id ID, what string) bool {
	if err := backendAvailable(); err != nil {
		latch(fmt.Errorf("objc: %s sent to %#x, which is no Go object: %w", what, uintptr(id), err))
		return false
	}
	return true
}

func backendRespondsTo(id ID, sel SEL) bool {
	return backendAvailable() == nil && byte(plain(id, selResponds, uintptr(sel))) != 0
}

func backendPoolPush() uintptr {
	r, _, _ := purego.SyscallN(lib.poolPush)
	return r
}

func backendPoolPop(token uintptr) {
	// The words of a message are reused: arguments listed in the call would be allocated.
	c := getCall()
	c.phys[0] = token
	purego.SyscallN(lib.poolPop, c.phys[:1]...)
	putCall(c)
}

// coldFuncs are the functions for messages that SyscallN cannot send, made at the first sending: *Message to reflect.Value.
var coldFuncs sync.Map

// isCold tells the messages with floating-point numbers, and on arm64 those with a large result (its address goes
// to a register that SyscallN does not set): few, and none of them on a hot path.
func (m *Message) isCold() bool {
	k := m.shape.ret.kind
	return k == kindFloat32 || k == kindFloat64 || len(m.place.floats) > 0 || m.shape.ret.words > 2 && !m.place.stret
}

func backendSend(m *Message, c *Call, args []uintptr) error {
	switch {
	case m.isCold():
		m.sendCold(c, args)
	case m.place.stret:
		purego.SyscallN(lib.msgSendStret, args...)
	default:
		c.ret[0], c.ret[1], _ = purego.SyscallN(lib.msgSend, args...)
	}
	runtime.KeepAlive(c)
	return nil
}

func backendSendWords(c *Call, args []uintptr) error {
	c.ret[0], c.ret[1], _ = purego.SyscallN(lib.msgSend, args...)
	runtime.KeepAlive(c)
	return nil
}

// largeResult is any structure of three words.
type largeResult struct{ A, B, C uintptr }

// sendCold sends through a function made by RegisterFunc. Its parameters are the words as placed, then the
// floating-point numbers: no structures, so that only the registers' order counts.
func (m *Message) sendCold(c *Call, args []uintptr) {
	fn, ok := coldFuncs.Load(m)
	if !ok {
		fn, _ = coldFuncs.LoadOrStore(m, m.coldFunc(len(args)))
	}
	in := make([]reflect.Value, 0, len(args)+len(m.place.floats))
	for _, w := range args {
		in = append(in, reflect.ValueOf(w))
	}
	for _, s := range m.place.floats {
		w := uint64(c.words[s.word])
		if m.floatKind(s) == kindFloat32 {
			in = append(in, reflect.ValueOf(math.Float32frombits(uint32(w))))
		} else {
			in = append(in, reflect.ValueOf(math.Float64frombits(w)))
		}
	}
	out := fn.(reflect.Value).Call(in)
	if len(out) == 0 {
		return
	}
	switch v := out[0].Interface().(type) {
	case float32:
		c.ret[0] = uintptr(math.Float32bits(v))
	case float64:
		c.ret[0] = uintptr(math.Float64bits(v))
	case uintptr:
		c.ret[0] = v
	case largeResult:
		c.ret = [maxResult]uintptr{v.A, v.B, v.C}
	}
}

func (m *Message) coldFunc(words int) reflect.Value {
	var in, out []reflect.Type
	for range words {
		in = append(in, reflect.TypeFor[uintptr]())
	}
	for _, s := range m.place.floats {
		if m.floatKind(s) == kindFloat32 {
			in = append(in, reflect.TypeFor[float32]())
		} else {
			in = append(in, reflect.TypeFor[float64]())
		}
	}
	switch r := m.shape.ret; {
	case r.kind == kindVoid:
	case r.kind == kindFloat32:
		out = append(out, reflect.TypeFor[float32]())
	case r.kind == kindFloat64:
		out = append(out, reflect.TypeFor[float64]())
	case r.words > 2:
		out = append(out, reflect.TypeFor[largeResult]())
	default:
		out = append(out, reflect.TypeFor[uintptr]())
	}
	fn := reflect.New(reflect.FuncOf(in, out, false))
	purego.RegisterFunc(fn.Interface(), lib.msgSend)
	return fn.Elem()
}

// floatKind is the kind of the argument that a floating-point slot belongs to.
func (m *Message) floatKind(s slot) kind {
	w := 0
	for _, v := range m.shape.args {
		if w == int(s.word) {
			return v.kind
		}
		w += v.words
	}
	return kindVoid
}

func backendCallC(l Library, name string, words []uintptr) (uintptr, error) {
	type key struct {
		lib  Library
		name string
	}
	address, ok := lib.symbols.Load(key{l, name})
	if !ok {
		a, err := findSymbol(l, name)
		if err != nil {
			return 0, err
		}
		lib.symbols.Store(key{l, name}, a)
		address = a
	}
	if len(words) > maxPhysical {
		return 0, fmt.Errorf("objc: %s with %d words; at most %d are supported", name, len(words), maxPhysical)
	}
	r, _, _ := purego.SyscallN(address.(uintptr), words...)
	return r, nil
}

func backendConstant(l Library, name string) (ID, error) {
	address, err := findSymbol(l, name)
	if err != nil {
		return 0, err
	}
	return *(*ID)(toPointer(address)), nil
}
