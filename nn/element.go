package nn

import (
	"unsafe"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Float is the element type of what operations convert, add and cache.
type Float interface {
	float32 | half.Float16 | half.BFloat16
}

// Plain is the element type of copies, which do not look at the bits.
type Plain interface {
	Float | int16 | uint16 | int32 | uint32
}

// floatSize is the size of an element in bytes.
func floatSize[T Plain]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// Kinds of elements: positions in tables of kernels, and what some kernels are told.
const (
	kindFloat32 = iota
	kindFloat16
	kindBFloat16
)

// elementKind is the kind of T.
func elementKind[T Float]() int {
	var zero T
	switch any(zero).(type) {
	case half.Float16:
		return kindFloat16
	case half.BFloat16:
		return kindBFloat16
	}
	return kindFloat32
}

// kernelOf is the kernel for elements of type T.
func kernelOf[T Float](f32, f16, bf16 string) string {
	return [...]string{kindFloat32: f32, kindFloat16: f16, kindBFloat16: bf16}[elementKind[T]()]
}

// memory is an argument of which n elements of size bytes are used.
type memory struct {
	name    string
	view    runtime.View
	n, size int
}

// memory refuses arguments that cannot be used, belong to another runtime, or are too short.
func (c *check) memory(list ...memory) {
	for i := range list {
		c.owned(list[i].name, list[i].view)
	}
	for i := range list {
		c.capacity(list[i].name, list[i].view, list[i].n, list[i].size, list[i].size)
	}
}

// sameOrDisjoint refuses a written range that is read-only, or overlaps an input without being exactly that input: what kernels allow
// whose threads read and write the same elements and no others.
func (c *check) sameOrDisjoint(written, in operand) {
	c.writable(written)
	if !written.view.Same(in.view) {
		c.disjoint(1, written, in)
	}
}
