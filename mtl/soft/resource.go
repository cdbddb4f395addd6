package soft

import (
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A resource is what command buffers hold while they run: a buffer, a heap or an indirect command buffer.
type resource struct {
	object
	options mtl.ResourceOptions
	// index is unique among the living resources of the device, for bit sets.
	index int
	// freed is set when the last reference went. Command buffers with unretained references and indirect command buffers
	// find out by it that they use what is gone.
	freed atomic.Bool
	// holder is the serial number of the command buffer that retained the resource last, so that encoding the same
	// resource again costs no second reference.
	holder atomic.Uint64
	size   uint64
	// counted is how much of it counts as allocated: nothing of a buffer inside a heap.
	counted uint64
}

func (r *resource) res() *resource { return r }

// anyResource is a buffer, a heap or an indirect command buffer.
type anyResource interface {
	owned
	res() *resource
}

const (
	storageModeMask  = 0xf0
	storageModeShift = 4
	hazardMask       = 0x300
	hazardShift      = 8
	cacheModeMask    = 0xf
)

func (r *resource) storageMode() mtl.StorageMode {
	return mtl.StorageMode(r.options & storageModeMask >> storageModeShift)
}

// resourceMethods are those of MTLResource and MTLAllocation.
func resourceMethods[T anyResource]() methods[T] {
	m := methods[T]{
		"allocatedSize":   func(t T, c *objc.Call) { c.Return(uintptr(t.res().size)) },
		"cpuCacheMode":    func(t T, c *objc.Call) { c.Return(uintptr(t.res().options & cacheModeMask)) },
		"storageMode":     func(t T, c *objc.Call) { c.Return(uintptr(t.res().storageMode())) },
		"resourceOptions": func(t T, c *objc.Call) { c.Return(uintptr(t.res().options)) },
		"hazardTrackingMode": func(t T, c *objc.Call) {
			mode := t.res().options & hazardMask >> hazardShift
			if mode == 0 {
				mode = mtl.ResourceOptions(mtl.HazardTrackingModeTracked)
			}
			c.Return(uintptr(mode))
		},
		// Nothing is ever purged here: the state that is asked for is the state that was.
		"setPurgeableState:": func(t T, c *objc.Call) { c.Return(uintptr(mtl.PurgeableStateNonVolatile)) },
	}
	return m.with(labelled[T]()).with(deviced[T]())
}

// placed are the methods of MTLResource about heaps, for resources that are never in one.
func placed[T anyResource]() methods[T] {
	return methods[T]{
		"heap":          func(t T, c *objc.Call) { c.Return(0) },
		"heapOffset":    func(t T, c *objc.Call) { c.Return(0) },
		"makeAliasable": func(t T, c *objc.Call) {},
		"isAliasable":   func(t T, c *objc.Call) { c.ReturnBool(false) },
	}
}
