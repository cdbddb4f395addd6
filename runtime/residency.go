package runtime

import (
	"sync"

	"github.com/ingot-metal/ingot/mtl"
)

// residency keeps all buffers of a runtime in one residency set of its queue, where the system has them (macOS 15): the
// device then need not make them resident anew for each command buffer. A buffer is a member from its making to its
// dropping, not from allocation to release, so that a steady state that takes memory from the pool never changes the set.
// Changes are committed together: once before the next submission, or when memory must really be given up.
//
// A residency set tracks no hazards; programs declare what they use in any case.
type residency struct {
	mu    sync.Mutex
	set   mtl.ResidencySet // nil where there is none
	queue mtl.CommandQueue // retained
	dirty bool
	bytes int
	// commits is how often the set was committed.
	commits uint64
}

// start makes the set. A system that has sets and makes none works without.
func (r *residency) start(rt *Runtime) {
	if !rt.dev.RespondsTo("newResidencySetWithDescriptor:error:") || !rt.queue.mtl.RespondsTo("addResidencySet:") {
		return
	}
	desc, err := mtl.NewResidencySetDescriptor(rt.dev)
	if err == nil {
		desc.SetLabel("ingot")
		r.set, err = rt.dev.NewResidencySetWithDescriptor(desc)
		desc.Release()
	}
	if err != nil || r.set.IsNil() {
		r.set = mtl.ResidencySet{}
		rt.cfg.log.Warn("no residency set", "error", deviceError("newResidencySetWithDescriptor:error:", err).Error())
		return
	}
	rt.queue.mtl.Retain()
	r.queue = rt.queue.mtl
	r.queue.AddResidencySet(r.set)
}

func (r *residency) add(b mtl.Buffer, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.set.IsNil() {
		r.set.AddAllocation(b.Allocation)
		r.bytes += n
		r.dirty = true
	}
}

func (r *residency) remove(b mtl.Buffer, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.set.IsNil() {
		r.set.RemoveAllocation(b.Allocation)
		r.bytes -= n
		r.dirty = true
	}
}

// flush commits what has changed. The set holds removed buffers until then.
func (r *residency) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dirty {
		r.dirty = false
		r.set.Commit()
		r.commits++
	}
}

// close takes the set from the queue and empties it.
func (r *residency) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set.IsNil() {
		return
	}
	r.queue.RemoveResidencySet(r.set)
	r.set.RemoveAllAllocations()
	r.set.Commit()
	r.set.Release()
	r.queue.Release()
	r.set, r.dirty, r.bytes = mtl.ResidencySet{}, false, 0
}
