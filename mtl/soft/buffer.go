package soft

import (
	"fmt"
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A buffer is MTLBuffer.
type buffer struct {
	resource
	storage *storage
	base    uint64 // where the buffer starts in the storage
	mem     []byte // what the GPU sees
	host    []byte // what contents shows: mem, a copy (managed, discrete memory), or nothing (private)
	gpu     uint64 // the address the GPU has for it
	heap    *heap
	alias   atomic.Bool // made aliasable: its place in the heap may be given away
	free    func()      // called when the buffer goes
}

// name is how error texts call the buffer.
func (b *buffer) name() string {
	if l := b.label(); l != "" {
		return fmt.Sprintf("buffer %q", l)
	}
	return fmt.Sprintf("buffer at %#x", b.gpu)
}

// newBuffer makes a buffer of n bytes, or says why not. With bytes, they are its memory.
func (d *device) newBuffer(n uint64, options mtl.ResourceOptions, bytes []byte) (*buffer, error) {
	if err := d.admit(n, options); err != nil {
		return nil, err
	}
	mem := bytes
	if mem == nil {
		mem = allocate(n)
	}
	b := &buffer{storage: &storage{mem: mem}, mem: mem}
	b.storage.index = d.enter(&b.resource, n, options)
	b.present(d)
	b.dev, b.gpu = d, d.addresses.take(n)
	b.id = d.adopt(d.classes.buffer, b)
	return b, nil
}

// admit checks what a resource may be.
func (d *device) admit(n uint64, options mtl.ResourceOptions) error {
	switch {
	case n == 0:
		return fmt.Errorf("a buffer needs at least one byte")
	case n > d.opts.MaxBufferLength:
		return fmt.Errorf("a buffer of %d bytes is longer than maxBufferLength, %d", n, d.opts.MaxBufferLength)
	case mtl.StorageMode(options&storageModeMask>>storageModeShift) == mtl.StorageModeMemoryless:
		return fmt.Errorf("a buffer cannot be memoryless")
	case options&^(storageModeMask|hazardMask|cacheModeMask) != 0 || options&storageModeMask > 0x30:
		return fmt.Errorf("resource options %#x are not defined", uint64(options))
	case d.fails(&d.faults.allocation):
		return fmt.Errorf("this allocation was told to fail")
	}
	if now := uint64(d.allocated.Load()); n > d.opts.WorkingSet || now > d.opts.WorkingSet-n {
		return fmt.Errorf("%d bytes beside the %d already allocated are more than the working set of %d", n, now, d.opts.WorkingSet)
	}
	return nil
}

// present decides what the CPU sees of the buffer.
func (b *buffer) present(d *device) {
	switch mode := b.storageMode(); {
	case mode == mtl.StorageModePrivate:
	case mode == mtl.StorageModeManaged && d.opts.DiscreteMemory:
		b.host = allocate(uint64(len(b.mem)))
	default:
		b.host = b.mem
	}
}

// Dealloc frees the memory.
func (b *buffer) Dealloc() {
	b.freed.Store(true)
	b.dev.leave(&b.resource)
	if b.heap != nil {
		b.heap.release(b)
		b.heap.id.Release()
	} else {
		b.storage.freed.Store(true)
		b.dev.ledger.forget(b.storage)
	}
	if b.free != nil {
		b.free()
	}
	b.dev.forget()
}

func bufferMethods() methods[*buffer] {
	m := methods[*buffer]{
		"length": func(b *buffer, c *objc.Call) { c.Return(uintptr(len(b.mem))) },
		"contents": func(b *buffer, c *objc.Call) {
			if b.dev.fails(&b.dev.faults.contents) {
				b.dev.refuse("contents", fmt.Errorf("they were told to fail"))
				c.Return(0)
				return
			}
			c.Return(address(b.host))
		},
		"gpuAddress": func(b *buffer, c *objc.Call) {
			c.Return(uintptr(b.gpu))
		},
		"didModifyRange:": func(b *buffer, c *objc.Call) {
			at, n := uint64(c.Word(0)), uint64(c.Word(1))
			if at > uint64(len(b.mem)) || n > uint64(len(b.mem))-at {
				b.dev.misuse("didModifyRange: bytes %d to %d of %s, which has %d", at, at+n, b.name(), len(b.mem))
				return
			}
			if b.separate() {
				copy(b.mem[at:at+n], b.host[at:at+n])
			}
		},
		"addDebugMarker:range:": func(b *buffer, c *objc.Call) {},
		"removeAllDebugMarkers": func(b *buffer, c *objc.Call) {},
		"sparseBufferTier":      func(b *buffer, c *objc.Call) { c.Return(0) },
		"remoteStorageBuffer":   func(b *buffer, c *objc.Call) { c.Return(0) },
		"heap": func(b *buffer, c *objc.Call) {
			if b.heap == nil {
				c.Return(0)
				return
			}
			c.ReturnBorrowed(b.heap.id)
		},
		"heapOffset": func(b *buffer, c *objc.Call) {
			if b.heap == nil {
				c.Return(0)
				return
			}
			c.Return(uintptr(b.base))
		},
		"makeAliasable": func(b *buffer, c *objc.Call) {
			if b.heap != nil && b.alias.CompareAndSwap(false, true) {
				b.heap.release(b)
			}
		},
		"isAliasable": func(b *buffer, c *objc.Call) { c.ReturnBool(b.alias.Load()) },
	}
	return m.with(resourceMethods[*buffer]())
}

// separate tells whether CPU and GPU have a copy each.
func (b *buffer) separate() bool { return b.host != nil && address(b.host) != address(b.mem) }

// synchronize shows the CPU what the GPU wrote.
func (b *buffer) synchronize() {
	if b.separate() {
		copy(b.host, b.mem)
	}
}
