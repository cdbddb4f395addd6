package soft

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// Checking tells whether a device is one of this package with [Options.Checks].
func Checking(dev mtl.Device) bool {
	d := deviceOf(dev)
	return d != nil && d.opts.Checks
}

// DeclareBytes says that the kernel of the next dispatches is meant to use only n bytes of the buffer that is bound at a slot,
// from the offset of the binding on: an access beyond them is then out of bounds, though the buffer goes on. It is for
// runtimes that hand out parts of buffers. The object is a compute command encoder or an indirect compute command of a
// device with [Options.Checks]; binding the slot anew ends the declaration. Where one dispatch binds the same memory at several
// slots, there is no such check. It tells whether the object took it.
func DeclareBytes(id objc.ID, slot int, n uint64) bool {
	switch o := objc.Value(id).(type) {
	case *computeEncoder:
		if o.dev.opts.Checks && slot >= 0 && slot < bufferSlots && o.slots[slot].buf != nil {
			o.slots[slot].declared = n
			return true
		}
	case *commandObject:
		taken := false
		if o.dev.opts.Checks {
			o.write(func(c *indirectCommand) {
				for i := range c.binds {
					if b := &c.binds[i]; b.slot == slot && b.buf != nil {
						b.declared, taken = n, true
					}
				}
			})
		}
		return taken
	}
	return false
}

// memoryOf is the memory that a dispatch may use through one of its bindings.
func (s *step) memoryOf(i int) []byte {
	b := &s.binds[i]
	mem := b.buf.mem
	if b.declared == 0 || b.off > uint64(len(mem)) || b.declared >= uint64(len(mem))-b.off {
		return mem
	}
	for k := range s.binds {
		if k != i && s.binds[k].buf != nil && s.binds[k].buf.storage == b.buf.storage {
			return mem
		}
	}
	return mem[:b.off+b.declared]
}
