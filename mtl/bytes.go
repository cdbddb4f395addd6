package mtl

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ingot-metal/ingot/objc"
)

// bytesWord is the address of b, which is not empty and is kept alive by the caller.
func bytesWord(b []byte) uintptr { return objc.Pointer(unsafe.Pointer(&b[0])) }

func keepAlive(b []byte) { runtime.KeepAlive(b) }

// Contents is -[MTLBuffer contents] (macOS 10.11): the buffer's memory, nil when the host cannot see it. It is valid as
// long as the buffer.
func (x Buffer) Contents() []byte {
	p := x.rawContents()
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), x.Length())
}

// ContentsPointer is -[MTLBuffer contents] as the pointer it is.
func (x Buffer) ContentsPointer() unsafe.Pointer { return x.rawContents() }

// SetBytes is -[MTLComputeCommandEncoder setBytes:length:atIndex:] (macOS 10.11). The bytes are copied; Metal takes from 1
// to 4096.
func (x ComputeCommandEncoder) SetBytes(b []byte, index uint) {
	m := objc.NewScratch()
	defer m.Free()
	x.rawSetBytes(m.Bytes(b), uint(len(b)), index)
}

// SetBytesAttributeStride is -[MTLComputeCommandEncoder setBytes:length:attributeStride:atIndex:] (macOS 14.0). The bytes
// are copied.
func (x ComputeCommandEncoder) SetBytesAttributeStride(b []byte, stride, index uint) {
	m := objc.NewScratch()
	defer m.Free()
	x.rawSetBytesAttributeStride(m.Bytes(b), uint(len(b)), stride, index)
}

// SetBuffers is -[MTLComputeCommandEncoder setBuffers:offsets:withRange:] (macOS 10.11): buffers, with their offsets, at the
// indices from first on. Both slices must have the same length.
func (x ComputeCommandEncoder) SetBuffers(buffers []Buffer, offsets []uint, first uint) error {
	if len(buffers) != len(offsets) {
		return fmt.Errorf("mtl: SetBuffers: %d buffers with %d offsets", len(buffers), len(offsets))
	}
	m := objc.NewScratch()
	defer m.Free()
	x.rawSetBuffers(bufferWords(m, buffers), m.Uints(offsets), Range{first, uint(len(buffers))})
	return nil
}

// SetBuffersAttributeStrides is -[MTLComputeCommandEncoder setBuffers:offsets:attributeStrides:withRange:] (macOS 14.0).
// The slices must have the same length.
func (x ComputeCommandEncoder) SetBuffersAttributeStrides(buffers []Buffer, offsets, strides []uint, first uint) error {
	if len(buffers) != len(offsets) || len(buffers) != len(strides) {
		return fmt.Errorf("mtl: SetBuffersAttributeStrides: %d buffers with %d offsets and %d strides", len(buffers), len(offsets), len(strides))
	}
	m := objc.NewScratch()
	defer m.Free()
	x.rawSetBuffersAttributeStrides(bufferWords(m, buffers), m.Uints(offsets), m.Uints(strides), Range{first, uint(len(buffers))})
	return nil
}

func bufferWords(m *objc.Scratch, buffers []Buffer) uintptr {
	w, p := m.Words(len(buffers))
	for i, b := range buffers {
		w[i] = uintptr(b.id)
	}
	return p
}
