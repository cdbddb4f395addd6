package objc

import (
	"errors"
	"fmt"
	"sync"
)

// latched errors: what went wrong where a message has no way to report it.
var latched struct {
	sync.Mutex
	errs    []error
	dropped int
}

const maxLatched = 16

// latch keeps an error until [TakeError] asks.
func latch(err error) {
	latched.Lock()
	defer latched.Unlock()
	if len(latched.errs) == maxLatched {
		latched.dropped++
		return
	}
	latched.errs = append(latched.errs, err)
}

// TakeError gives the errors that messages could not report since the last call, joined, and forgets them: an unknown
// selector, a message to a released Go object, a panic inside a Go method or a block, misuse of a pool. It is nil when
// all went well. A Go object that wants to know its own implements ObjcError(error).
func TakeError() error {
	latched.Lock()
	defer latched.Unlock()
	if len(latched.errs) == 0 {
		return nil
	}
	errs := latched.errs
	if latched.dropped > 0 {
		errs = append(errs, fmt.Errorf("objc: and %d more", latched.dropped))
	}
	latched.errs, latched.dropped = nil, 0
	return errors.Join(errs...)
}

// fault latches an error that a message to o met, and tells o.
func fault(o *goObject, err error) {
	latch(err)
	if sink, ok := o.value.(interface{ ObjcError(error) }); ok {
		defer func() {
			if r := recover(); r != nil {
				latch(fmt.Errorf("objc: ObjcError of %s panicked: %v", o.class.name, r))
			}
		}()
		sink.ObjcError(err)
	}
}

// recoverInto is deferred around Go methods: nothing that a method does ends the process.
func recoverInto(o *goObject, what string) {
	if r := recover(); r != nil {
		fault(o, fmt.Errorf("objc: -[%s %s] panicked: %v", o.class.name, what, r))
	}
}
