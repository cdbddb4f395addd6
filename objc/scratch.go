package objc

import (
	"sync"
	"unsafe"
)

// Scratch is memory outside any stack for what messages take pointers to: bytes and arrays of the caller are copied
// into it, so that they may live anywhere and nothing is allocated per message. It is reused: take one, fill it, send,
// free it.
type Scratch struct {
	buf  []uintptr
	used int
	more [][]uintptr // what did not fit, until Free
}

const scratchWords = 4096/8 + 128 // the 4 KiB that setBytes:length:atIndex: takes, and some arrays

var scratches = sync.Pool{New: func() any { return &Scratch{buf: make([]uintptr, scratchWords)} }}

// NewScratch takes memory.
func NewScratch() *Scratch { return scratches.Get().(*Scratch) }

// Free gives the memory back. No pointer into it is used any more.
func (m *Scratch) Free() {
	m.used = 0
	m.more = nil
	scratches.Put(m)
}

// take returns n words; nil for none.
func (m *Scratch) take(n int) []uintptr {
	switch {
	case n == 0:
		return nil
	case m.used+n <= len(m.buf):
		s := m.buf[m.used : m.used+n : m.used+n]
		m.used += n
		return s
	default:
		s := make([]uintptr, n)
		m.more = append(m.more, s)
		return s
	}
}

// Bytes copies b and gives the address of the copy; zero for no bytes.
func (m *Scratch) Bytes(b []byte) uintptr {
	s := m.take((len(b) + 7) / 8)
	if s == nil {
		return 0
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(b)), b)
	return uintptr(unsafe.Pointer(&s[0]))
}

// String copies s without a NUL, and gives the address of the copy, which is not zero.
func (m *Scratch) String(s string) uintptr {
	w := m.take(len(s)/8 + 1)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), len(s)), s)
	return uintptr(unsafe.Pointer(&w[0]))
}

// IDs copies an array of objects and gives the address of the copy; zero for none.
func (m *Scratch) IDs(ids []ID) uintptr {
	s := m.take(len(ids))
	if s == nil {
		return 0
	}
	for i, id := range ids {
		s[i] = uintptr(id)
	}
	return uintptr(unsafe.Pointer(&s[0]))
}

// Uints copies an array of NSUInteger and gives the address of the copy; zero for none.
func (m *Scratch) Uints(v []uint) uintptr {
	s := m.take(len(v))
	if s == nil {
		return 0
	}
	for i, x := range v {
		s[i] = uintptr(x)
	}
	return uintptr(unsafe.Pointer(&s[0]))
}

// Words gives n words for the caller to fill, and their address.
func (m *Scratch) Words(n int) ([]uintptr, uintptr) {
	s := m.take(n)
	if s == nil {
		return nil, 0
	}
	return s, uintptr(unsafe.Pointer(&s[0]))
}

// escape tells the compiler that a pointer may outlive the call: it cannot know that nothing ever sets on.
var escape struct {
	on bool
	p  unsafe.Pointer
}

// Pointer makes a word of a pointer. What p points to is moved off the stack, where it could move during the message;
// the caller keeps it alive past the message (runtime.KeepAlive).
func Pointer(p unsafe.Pointer) uintptr {
	if escape.on {
		escape.p = p
	}
	return uintptr(p)
}

// WordPointer makes a pointer of a word that came as a result or argument: memory outside Go's heap, or memory that
// whoever sent it keeps alive.
func WordPointer(w uintptr) unsafe.Pointer { return toPointer(w) }
