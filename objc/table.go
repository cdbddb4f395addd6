package objc

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// goObject is what the ID of a Go object stands for.
type goObject struct {
	id    ID
	class *GoClass
	value any
	refs  atomic.Int64 // <= 0: gone
}

const chunkSize = 1024

type chunk [chunkSize]atomic.Pointer[goObject]

// table finds Go objects by ID. Reading takes no lock: the list of chunks only grows, and is replaced when it does.
var table struct {
	chunks atomic.Pointer[[]*chunk]

	sync.Mutex // guards what follows, and changes of chunks
	free       []uint32
	gens       []uint64 // per slot: how often it has been given out
	live       int
}

// lookup finds a live Go object; nil when the ID is none or its object is gone.
func lookup(id ID) *goObject {
	chunks := table.chunks.Load()
	slot := int(id>>1) & (1<<slotBits - 1)
	if chunks == nil || slot >= len(*chunks)*chunkSize {
		return nil
	}
	o := (*chunks)[slot/chunkSize][slot%chunkSize].Load()
	if o == nil || o.id != id {
		return nil
	}
	return o
}

// insert gives o a slot and an ID that no object has had for as long as the generation counter lasts.
func insert(o *goObject) ID {
	table.Lock()
	defer table.Unlock()
	var slot int
	if n := len(table.free); n > 0 {
		slot = int(table.free[n-1])
		table.free = table.free[:n-1]
	} else {
		slot = len(table.gens)
		if slot >= 1<<slotBits {
			panic(fmt.Sprintf("objc: more than %d live Go objects", 1<<slotBits))
		}
		table.gens = append(table.gens, 0)
		if slot%chunkSize == 0 {
			var list []*chunk
			if old := table.chunks.Load(); old != nil {
				list = append(list, *old...)
			}
			list = append(list, new(chunk))
			table.chunks.Store(&list)
		}
	}
	table.gens[slot]++
	o.id = ID(goBit | uintptr(table.gens[slot]&genMask)<<genShift | uintptr(slot)<<1)
	(*table.chunks.Load())[slot/chunkSize][slot%chunkSize].Store(o)
	table.live++
	return o.id
}

func remove(o *goObject) {
	slot := int(o.id>>1) & (1<<slotBits - 1)
	table.Lock()
	defer table.Unlock()
	(*table.chunks.Load())[slot/chunkSize][slot%chunkSize].Store(nil)
	table.free = append(table.free, uint32(slot))
	table.live--
}

// retain fails when the object is already going.
func (o *goObject) retain() bool {
	for {
		n := o.refs.Load()
		if n <= 0 {
			return false
		}
		if o.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (o *goObject) release() {
	switch n := o.refs.Add(-1); {
	case n > 0:
		return
	case n < 0:
		latch(staleError(o.id, "release"))
		return
	}
	remove(o)
	if d, ok := o.value.(interface{ Dealloc() }); ok {
		defer recoverInto(o, "dealloc")
		d.Dealloc()
	}
}

// LiveObjects is the number of Go objects that somebody still holds, classes not counted: tests of ownership compare
// it before and after.
func LiveObjects() int {
	table.Lock()
	defer table.Unlock()
	return table.live - classCount()
}

func staleError(id ID, what string) error {
	return fmt.Errorf("objc: %s sent to Go object %#x, which has been released", what, uintptr(id))
}
