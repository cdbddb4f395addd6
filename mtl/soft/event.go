package soft

import (
	"sync"
	"time"

	"github.com/ingot-metal/ingot/objc"
)

// An event is MTLEvent and MTLSharedEvent: a number that only grows, and those who wait for it.
type event struct {
	object
	shared bool

	mu      sync.Mutex
	value   uint64
	waiters []*waiter

	order encoderSet // what came before the signals; guarded by the ledger
}

// A waiter waits until an event's value is at least want.
type waiter struct {
	want uint64
	done chan struct{} // closed when the value is there
	call objc.Block    // or called then
}

// signal sets the value and wakes who waited for it.
func (e *event) signal(v uint64) {
	e.mu.Lock()
	e.value = v
	var ready []*waiter
	kept := e.waiters[:0]
	for _, w := range e.waiters {
		if w.want <= v {
			ready = append(ready, w)
		} else {
			kept = append(kept, w)
		}
	}
	clear(e.waiters[len(kept):])
	e.waiters = kept
	e.mu.Unlock()
	for _, w := range ready {
		if w.call != 0 {
			e.call(w.call, v)
		} else {
			close(w.done)
		}
	}
}

func (e *event) current() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.value
}

// wait waits until the value is at least v, no longer than the timeout, and tells whether it got there. It also ends
// when stop is closed.
func (e *event) wait(v uint64, timeout time.Duration, stop <-chan struct{}) bool {
	e.mu.Lock()
	if e.value >= v {
		e.mu.Unlock()
		return true
	}
	if timeout <= 0 {
		e.mu.Unlock()
		return false
	}
	w := &waiter{want: v, done: make(chan struct{})}
	e.waiters = append(e.waiters, w)
	e.mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
	case <-stop:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, other := range e.waiters {
		if other == w {
			e.waiters = append(e.waiters[:i], e.waiters[i+1:]...)
			return false
		}
	}
	return true // signalled while the timer fired
}

// notify calls a block once the value is at least v, on another goroutine.
func (e *event) notify(v uint64, block objc.Block) {
	if block == 0 {
		e.dev.misuse("notifyListener:atValue:block: without a block")
		return
	}
	block.Retain()
	e.mu.Lock()
	value := e.value
	if value < v {
		e.waiters = append(e.waiters, &waiter{want: v, call: block})
	}
	e.mu.Unlock()
	if value >= v {
		e.call(block, value)
	}
}

// call calls a block with the event and its value, and releases it.
func (e *event) call(block objc.Block, v uint64) {
	e.id.Retain()
	e.dev.goroutines.Add(1)
	go func() {
		defer e.dev.goroutines.Add(-1)
		e.dev.ledger.observeEvent(e)
		e.dev.invoke(block, uintptr(e.id), uintptr(v))
		block.Release()
		e.id.Release()
	}()
}

// Dealloc lets go of the blocks that will not be called.
func (e *event) Dealloc() {
	for _, w := range e.waiters {
		w.call.Release()
	}
	e.dev.forget()
}

// A fence is MTLFence. Encoders of one queue run in order here, whatever fences they have.
type fence struct {
	object
	order encoderSet // the encoders that updated it and what came before them; guarded by the ledger
}

// Dealloc lets go of what the fence holds.
func (f *fence) Dealloc() { f.dev.forget() }

// milliseconds is a timeout as Metal gives it; absurdly long ones mean a century.
func milliseconds(ms uint64) time.Duration {
	const century = 100 * 365 * 24 * time.Hour
	if ms > uint64(century/time.Millisecond) {
		return century
	}
	return time.Duration(ms) * time.Millisecond
}

func eventMethods() methods[*event] {
	return methods[*event]{}.with(labelled[*event]()).with(deviced[*event]())
}

func sharedEventMethods() methods[*event] {
	m := methods[*event]{
		"signaledValue": func(e *event, c *objc.Call) {
			c.Return(uintptr(e.current()))
			e.dev.ledger.observeEvent(e)
		},
		"setSignaledValue:": func(e *event, c *objc.Call) {
			e.dev.ledger.orderEvent(e, nil)
			e.signal(uint64(c.Word(0)))
		},
		"waitUntilSignaledValue:timeoutMS:": func(e *event, c *objc.Call) {
			reached := e.wait(uint64(c.Word(0)), milliseconds(uint64(c.Word(1))), e.dev.removed)
			if reached {
				e.dev.ledger.observeEvent(e)
			}
			c.ReturnBool(reached)
		},
		// Which queue a listener names makes no difference here: blocks are called on goroutines.
		"notifyListener:atValue:block:": func(e *event, c *objc.Call) {
			e.notify(uint64(c.Word(1)), objc.Block(c.Word(2)))
		},
	}
	return m.with(eventMethods())
}

func fenceMethods() methods[*fence] {
	return methods[*fence]{}.with(labelled[*fence]()).with(deviced[*fence]())
}
