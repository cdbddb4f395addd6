package soft

import (
	"fmt"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
)

// openTraces begins to watch a dispatch.
func (x *executor) openTraces(s *step) {
	n := len(x.done)
	x.done = append(x.done, s.origin)
	x.fresh = x.fresh[:0]
	x.dev.traced.Add(1)
	for i := range s.binds {
		b := &s.binds[i]
		if b.buf != nil && x.watched(b.buf.storage) {
			t := x.window.open(b.buf.storage, n, b.slot)
			x.current[b.slot], x.bases[b.slot] = t, b.buf.base+b.off
			x.fresh = append(x.fresh, t)
		}
	}
	if s.indirect != nil && x.watched(s.indirect.storage) {
		t := x.window.open(s.indirect.storage, n, indirectSlot)
		t.note(s.indirect.base+s.at, 12, reads, x.window.pool)
		x.fresh = append(x.fresh, t)
	}
	x.dispatch.Access = x.access
}

// noteAccess hears of every access of the dispatch that runs, from many goroutines.
func (x *executor) noteAccess(slot int, offset, size uint64, kind simt.Access) {
	if t := x.current[slot]; t != nil {
		t.note(x.bases[slot]+offset, size, access(kind), x.window.pool)
	}
}

func (x *executor) closeWatch() {
	x.dispatch.Access = nil
	x.current = [bufferSlots]*trace{}
}

// dropTraces forgets a dispatch that failed.
func (x *executor) dropTraces() {
	x.closeWatch()
	for _, t := range x.fresh {
		x.window.drop(t)
	}
	x.fresh = x.fresh[:0]
}

// closeTraces compares what a dispatch did with what the others of the window did.
func (x *executor) closeTraces(encoder int) *failure {
	x.closeWatch()
	if f := x.noteOrder(&x.done[len(x.done)-1], x.fresh); f != nil {
		x.dropTraces()
		return f
	}
	c, hit := x.window.close(x.fresh)
	if !hit {
		x.fresh = x.fresh[:0]
		return nil
	}
	f := &failure{code: mtl.CommandBufferErrorInvalidResource, encoder: encoder, text: x.hazardText(&c)}
	x.dropTraces()
	return f
}

var accessNames = [accessKinds][2]string{reads: {"reads", "read"}, writes: {"writes", "wrote"}, atomics: {"changes atomically", "changed atomically"}}

// hazardText says which dispatches met where.
func (x *executor) hazardText(c *clash) string {
	earlier, later := &x.done[c.earlier.dispatch], &x.done[c.later.dispatch]
	b := later.buffer(c.later.slot)
	if b == nil {
		b = earlier.buffer(c.earlier.slot)
	}
	base, what := uint64(0), "a buffer"
	if b != nil {
		base, what = b.base, b.name()
	}
	return fmt.Sprintf("hazard without a barrier: %s %s bytes %d to %d of %s through %s, which %s %s through %s",
		later.where(), accessNames[c.does][0], c.from-base, c.to-base, what, later.slotName(c.later.slot),
		earlier.where(), accessNames[c.did][1], earlier.slotName(c.earlier.slot))
}

// buffer is what was bound at a slot, nil for indirect arguments.
func (o *origin) buffer(slot int) *buffer {
	for i := range o.binds {
		if b := &o.binds[i]; b.slot == slot {
			return b.buf
		}
	}
	return nil
}

func (o *origin) slotName(slot int) string {
	if slot == indirectSlot {
		return "its indirect arguments"
	}
	return o.pipeline.argName(slot)
}
