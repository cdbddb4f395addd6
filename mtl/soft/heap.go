package soft

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A heap is MTLHeap: one storage that buffers take parts of.
type heap struct {
	resource
	storage *storage
	kind    mtl.HeapType
	gpu     uint64

	mu   sync.Mutex
	used []extent // sorted, disjoint (in an automatic heap)
}

// An extent is a part of a heap in use.
type extent struct {
	from, to uint64
	by       *buffer
}

func (d *device) newHeap(n uint64, options mtl.ResourceOptions, kind mtl.HeapType) (*heap, error) {
	if kind != mtl.HeapTypeAutomatic && kind != mtl.HeapTypePlacement {
		return nil, fmt.Errorf("sparse heaps are not supported by the software device")
	}
	if err := d.admit(n, options); err != nil {
		return nil, err
	}
	h := &heap{storage: &storage{mem: allocate(n)}, kind: kind}
	h.storage.index = d.enter(&h.resource, n, options)
	h.dev, h.gpu = d, d.addresses.take(n)
	h.id = d.adopt(d.classes.heap, h)
	return h, nil
}

// Dealloc frees the memory. Buffers of the heap hold it, so that none is left.
func (h *heap) Dealloc() {
	h.freed.Store(true)
	h.storage.freed.Store(true)
	h.dev.ledger.forget(h.storage)
	h.dev.leave(&h.resource)
	h.dev.forget()
}

// newBuffer takes a part of the heap: where there is room, or, in a placement heap, at an offset.
func (h *heap) newBuffer(n uint64, options mtl.ResourceOptions, at uint64, placed bool) (*buffer, error) {
	switch {
	case placed != (h.kind == mtl.HeapTypePlacement):
		return nil, fmt.Errorf("only a placement heap takes offsets, and it takes nothing else")
	case n == 0:
		return nil, fmt.Errorf("a buffer needs at least one byte")
	case options&storageModeMask != h.options&storageModeMask:
		return nil, fmt.Errorf("the buffer's storage mode %d is not the heap's, %d",
			options&storageModeMask>>storageModeShift, h.options&storageModeMask>>storageModeShift)
	case at%alignment != 0:
		return nil, fmt.Errorf("heap offset %d is not a multiple of %d", at, alignment)
	case h.dev.fails(&h.dev.faults.allocation):
		return nil, fmt.Errorf("this allocation was told to fail")
	}
	size := uint64(len(h.storage.mem))
	h.mu.Lock()
	defer h.mu.Unlock()
	if !placed {
		var ok bool
		if at, ok = h.room(n, alignment); !ok {
			return nil, fmt.Errorf("the heap has no room for %d bytes", n)
		}
	}
	if at > size || n > size-at {
		return nil, fmt.Errorf("bytes %d to %d are outside the heap, which has %d", at, at+n, size)
	}
	b := &buffer{storage: h.storage, base: at, mem: h.storage.mem[at : at+n : at+n], heap: h, gpu: h.gpu + at}
	h.dev.enter(&b.resource, 0, options)
	b.size = n
	b.present(h.dev)
	b.dev = h.dev
	i, _ := slices.BinarySearchFunc(h.used, at, func(e extent, at uint64) int {
		if e.from < at {
			return -1
		}
		return 1
	})
	h.used = slices.Insert(h.used, i, extent{at, at + n, b})
	h.id.Retain()
	b.id = h.dev.adopt(h.dev.classes.buffer, b)
	return b, nil
}

// room finds the first gap for n bytes.
func (h *heap) room(n, align uint64) (uint64, bool) {
	at := uint64(0)
	for _, e := range h.used {
		if e.from >= at && e.from-at >= n {
			return at, true
		}
		at = max(at, (e.to+align-1)/align*align)
	}
	size := uint64(len(h.storage.mem))
	return at, at <= size && n <= size-at
}

// largest is the longest gap.
func (h *heap) largest(align uint64) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	align = max(align, alignment)
	at, best := uint64(0), uint64(0)
	for _, e := range h.used {
		if e.from > at {
			best = max(best, e.from-at)
		}
		at = max(at, (e.to+align-1)/align*align)
	}
	if size := uint64(len(h.storage.mem)); size > at {
		best = max(best, size-at)
	}
	return best
}

// release makes the buffer's place free for others while the buffer lives on.
func (h *heap) release(b *buffer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = slices.DeleteFunc(h.used, func(e extent) bool { return e.by == b })
}

func (h *heap) inUse() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := uint64(0)
	for _, e := range h.used {
		n += e.to - e.from
	}
	return n
}

func heapMethods() methods[*heap] {
	m := methods[*heap]{
		"size":                 func(h *heap, c *objc.Call) { c.Return(uintptr(h.size)) },
		"currentAllocatedSize": func(h *heap, c *objc.Call) { c.Return(uintptr(h.size)) },
		"usedSize":             func(h *heap, c *objc.Call) { c.Return(uintptr(h.inUse())) },
		"type":                 func(h *heap, c *objc.Call) { c.Return(uintptr(h.kind)) },
		"maxAvailableSizeWithAlignment:": func(h *heap, c *objc.Call) {
			c.Return(uintptr(h.largest(uint64(c.Word(0)))))
		},
		"newBufferWithLength:options:": func(h *heap, c *objc.Call) {
			b, err := h.newBuffer(uint64(c.Word(0)), mtl.ResourceOptions(c.Word(1)), 0, false)
			h.dev.giveNew(c, b, err, "newBufferWithLength:options:")
		},
		"newBufferWithLength:options:offset:": func(h *heap, c *objc.Call) {
			b, err := h.newBuffer(uint64(c.Word(0)), mtl.ResourceOptions(c.Word(1)), uint64(c.Word(2)), true)
			h.dev.giveNew(c, b, err, "newBufferWithLength:options:offset:")
		},
	}
	return m.with(resourceMethods[*heap]())
}
