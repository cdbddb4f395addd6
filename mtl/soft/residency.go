package soft

import (
	"sync"

	"github.com/ingot-metal/ingot/objc"
)

// A residencySet is MTLResidencySet. What is added or removed counts from the next commit on.
type residencySet struct {
	object
	mu        sync.Mutex
	members   map[objc.ID]*resource // what the set holds now; each retained
	pending   map[objc.ID]*resource // what it holds after the next commit; each retained once more
	committed bitset                // indices of members
}

func (d *device) newResidencySet(label string) *residencySet {
	s := &residencySet{members: map[objc.ID]*resource{}, pending: map[objc.ID]*resource{}}
	s.dev = d
	if label != "" {
		s.setLabel(label)
	}
	s.id = d.adopt(d.classes.residencySet, s)
	return s
}

// setOf is the residency set behind an ID, or a misuse of the device.
func setOf(d *device, id objc.ID) *residencySet {
	s := valueOf[*residencySet](uintptr(id))
	if s == nil || s.dev != d {
		d.misuse("%s is no residency set of this device", describe(id))
		return nil
	}
	return s
}

// Dealloc lets go of the members.
func (s *residencySet) Dealloc() {
	for id := range s.members {
		id.Release()
	}
	for id := range s.pending {
		id.Release()
	}
	s.dev.forget()
}

func (s *residencySet) add(id objc.ID) {
	r, ok := objc.Value(id).(anyResource)
	if !ok || r.device() != s.dev {
		s.dev.misuse("addAllocation: %s is no allocation of this device", describe(id))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[id] == nil {
		s.pending[id] = r.res()
		id.Retain()
	}
}

func (s *residencySet) remove(id objc.ID) {
	s.mu.Lock()
	held := s.pending[id] != nil
	delete(s.pending, id)
	s.mu.Unlock()
	if held {
		id.Release()
	}
}

func (s *residencySet) removeAll() {
	s.mu.Lock()
	old := s.pending
	s.pending = map[objc.ID]*resource{}
	s.mu.Unlock()
	for id := range old {
		id.Release()
	}
}

func (s *residencySet) commit() {
	s.mu.Lock()
	old := s.members
	s.members = make(map[objc.ID]*resource, len(s.pending))
	s.committed = nil
	for id, r := range s.pending {
		s.members[id.Retain()] = r
		s.committed.add(r.index)
	}
	s.mu.Unlock()
	for id := range old {
		id.Release()
	}
}

// has tells whether a resource is a committed member.
func (s *residencySet) has(index int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed.has(index)
}

func residencySetMethods() methods[*residencySet] {
	type set = *residencySet
	m := methods[set]{
		// Everything is resident on this device; whether it was asked for is what is checked.
		"requestResidency": func(s set, c *objc.Call) {},
		"endResidency":     func(s set, c *objc.Call) {},
		"addAllocation:":   func(s set, c *objc.Call) { s.add(c.Object(0)) },
		"addAllocations:count:": func(s set, c *objc.Call) {
			for _, id := range c.IDs(0, c.Uint(1)) {
				s.add(id)
			}
		},
		"removeAllocation:": func(s set, c *objc.Call) { s.remove(c.Object(0)) },
		"removeAllocations:count:": func(s set, c *objc.Call) {
			for _, id := range c.IDs(0, c.Uint(1)) {
				s.remove(id)
			}
		},
		"removeAllAllocations": func(s set, c *objc.Call) { s.removeAll() },
		"containsAllocation:": func(s set, c *objc.Call) {
			s.mu.Lock()
			defer s.mu.Unlock()
			c.ReturnBool(s.pending[c.Object(0)] != nil)
		},
		"commit": func(s set, c *objc.Call) { s.commit() },
		"allocatedSize": func(s set, c *objc.Call) {
			s.mu.Lock()
			defer s.mu.Unlock()
			n := uint64(0)
			for _, r := range s.members {
				n += r.size
			}
			c.Return(uintptr(n))
		},
		"allocationCount": func(s set, c *objc.Call) {
			s.mu.Lock()
			defer s.mu.Unlock()
			c.Return(uintptr(len(s.pending)))
		},
		"allAllocations": func(s set, c *objc.Call) {
			s.mu.Lock()
			defer s.mu.Unlock()
			var ids []objc.ID
			for id := range s.pending {
				ids = append(ids, id)
			}
			c.ReturnBorrowed(objc.NSArray(ids...).Autorelease())
		},
	}
	return m.with(labelled[set]()).without("setLabel:").with(deviced[set]())
}
