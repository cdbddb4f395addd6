package soft

import (
	"sync"

	"github.com/ingot-metal/ingot/objc"
)

// maxCommandBuffers is how many command buffers a queue has outstanding when nobody says otherwise, as in Metal.
const maxCommandBuffers = 64

// A queue is MTLCommandQueue. Its command buffers run in order, on a goroutine that exists while there is work.
type queue struct {
	object
	max int

	mu       sync.Mutex
	room     sync.Cond // signalled when a command buffer completes
	count    int       // outstanding: made, and neither completed nor given up
	order    []*commandBuffer
	running  bool
	finished []*commandBuffer // whose handlers are to be called
	calling  bool
	sets     []*residencySet
	executor *executor
}

func (d *device) newQueue(n int) *queue {
	q := &queue{max: n}
	q.dev = d
	q.room.L = &q.mu
	q.id = d.adopt(d.classes.queue, q)
	d.mu.Lock()
	d.queues[q] = true
	d.mu.Unlock()
	return q
}

// Dealloc lets go of what the queue holds. Its command buffers hold it, so that none is left.
func (q *queue) Dealloc() {
	q.dev.mu.Lock()
	delete(q.dev.queues, q)
	q.dev.mu.Unlock()
	for _, s := range q.sets {
		s.id.Release()
	}
	q.dev.forget()
}

// acquire waits until the queue has room for one more command buffer.
func (q *queue) acquire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.count >= q.max && !q.dev.isRemoved() {
		q.room.Wait()
	}
	q.count++
}

// giveUp makes room: a command buffer completed, or went without having been committed.
func (q *queue) giveUp() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count--
	q.room.Signal()
}

// enqueue gives a command buffer its place. The lock is held.
func (q *queue) enqueue(cb *commandBuffer) { q.order = append(q.order, cb) }

// forget takes a command buffer out that was enqueued and will never be committed.
func (q *queue) drop(cb *commandBuffer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.order {
		if other == cb {
			q.order = append(q.order[:i], q.order[i+1:]...)
			break
		}
	}
	q.kick()
}

// kick starts the goroutine if the next command buffer is committed. The lock is held.
func (q *queue) kick() {
	if !q.running && len(q.order) > 0 && q.order[0].committed {
		q.running = true
		q.dev.goroutines.Add(1)
		go q.run()
	}
}

// run executes command buffers until the next one is not there or not committed.
func (q *queue) run() {
	defer q.dev.goroutines.Add(-1)
	for {
		q.mu.Lock()
		if len(q.order) == 0 || !q.order[0].committed {
			q.running = false
			q.mu.Unlock()
			return
		}
		cb := q.order[0]
		n := copy(q.order, q.order[1:])
		q.order[n] = nil
		q.order = q.order[:n]
		if q.executor == nil {
			q.executor = newExecutor(q)
		}
		q.mu.Unlock()
		cb.execute(q.executor)
		if !cb.hasHandlers() {
			cb.finish()
			continue
		}
		q.mu.Lock()
		q.finished = append(q.finished, cb)
		if !q.calling {
			q.calling = true
			q.dev.goroutines.Add(1)
			go q.call()
		}
		q.mu.Unlock()
	}
}

// call calls the handlers of completed command buffers, in order, so that a handler that waits does not hold up the
// queue.
func (q *queue) call() {
	defer q.dev.goroutines.Add(-1)
	for {
		q.mu.Lock()
		if len(q.finished) == 0 {
			q.calling = false
			q.mu.Unlock()
			return
		}
		cb := q.finished[0]
		n := copy(q.finished, q.finished[1:])
		q.finished[n] = nil
		q.finished = q.finished[:n]
		q.mu.Unlock()
		cb.finish()
	}
}

// wake lets those go on who wait for room, since the device was removed.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.room.Broadcast()
}

// addSet makes a residency set part of every command buffer of the queue.
func (q *queue) addSet(s *residencySet) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, other := range q.sets {
		if other == s {
			return
		}
	}
	s.id.Retain()
	q.sets = append(q.sets, s)
}

func (q *queue) removeSet(s *residencySet) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.sets {
		if other == s {
			q.sets = append(q.sets[:i:i], q.sets[i+1:]...)
			s.id.Release()
			return
		}
	}
}

// residencySets are the sets of the queue. The list is not changed afterwards.
func (q *queue) residencySets() []*residencySet {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sets[:len(q.sets):len(q.sets)]
}

func queueMethods() methods[*queue] {
	m := methods[*queue]{
		"commandBuffer": func(q *queue, c *objc.Call) {
			c.ReturnBorrowed(q.newCommandBuffer(true, 0).Autorelease())
		},
		"commandBufferWithUnretainedReferences": func(q *queue, c *objc.Call) {
			c.ReturnBorrowed(q.newCommandBuffer(false, 0).Autorelease())
		},
		"commandBufferWithDescriptor:": func(q *queue, c *objc.Call) {
			retained, options := true, uint64(0)
			if id := c.Object(0); id != 0 {
				retained = readBool(id, "retainedReferences")
				options = readUint(id, "errorOptions")
			}
			c.ReturnBorrowed(q.newCommandBuffer(retained, options).Autorelease())
		},
		"insertDebugCaptureBoundary": func(q *queue, c *objc.Call) {},
		"addResidencySet:": func(q *queue, c *objc.Call) {
			if s := setOf(q.dev, c.Object(0)); s != nil {
				q.addSet(s)
			}
		},
		"addResidencySets:count:": func(q *queue, c *objc.Call) {
			for _, id := range c.IDs(0, c.Uint(1)) {
				if s := setOf(q.dev, id); s != nil {
					q.addSet(s)
				}
			}
		},
		"removeResidencySet:": func(q *queue, c *objc.Call) {
			if s := setOf(q.dev, c.Object(0)); s != nil {
				q.removeSet(s)
			}
		},
		"removeResidencySets:count:": func(q *queue, c *objc.Call) {
			for _, id := range c.IDs(0, c.Uint(1)) {
				if s := setOf(q.dev, id); s != nil {
					q.removeSet(s)
				}
			}
		},
	}
	return m.with(labelled[*queue]()).with(deviced[*queue]())
}
