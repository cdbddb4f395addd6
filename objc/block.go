package objc

import (
	"fmt"
	"sync"
)

// Block is a block object: code that a method is handed to call later. Whoever keeps one retains it.
type Block uintptr

// Retain adds a reference (a copy, as Objective-C calls it) and returns b.
func (b Block) Retain() Block {
	if ID(b).IsGo() || b == 0 {
		return Block(ID(b).Retain())
	}
	return backendBlockRetain(b)
}

// Release takes a reference away.
func (b Block) Release() {
	if ID(b).IsGo() || b == 0 {
		ID(b).Release()
		return
	}
	backendBlockRelease(b)
}

// goBlock is a block for Go objects: they call the function itself.
type goBlock struct {
	nargs int
	fn    func(args []uintptr)
}

var goBlockClass = sync.OnceValue(func() *GoClass {
	return NewGoClass("NSBlock", map[string]Method{"copy": func(c *Call) { c.ReturnNew(c.ID().Retain()) }})
})

// MaxBlockArgs is the greatest number of arguments of a block.
const MaxBlockArgs = 4

// NewBlock makes a block of a Go function, to be handed to receiver; the caller owns it (+1) and releases it after the
// message. The function gets the block's arguments as words; objects among them are borrowed until it returns: retain
// what is kept. It may run on any thread, inside a pool of its own; a panic in it is latched. Blocks have no result, and up to
// [MaxBlockArgs] integer arguments: that covers all of Metal's.
func NewBlock(receiver ID, nargs int, fn func(args []uintptr)) (Block, error) {
	switch {
	case nargs < 0 || nargs > MaxBlockArgs:
		return 0, fmt.Errorf("objc: NewBlock: a block of %d arguments; at most %d are supported", nargs, MaxBlockArgs)
	case fn == nil:
		return 0, fmt.Errorf("objc: NewBlock: no function")
	case receiver.IsGo():
		return Block(goBlockClass().New(&goBlock{nargs, fn})), nil
	case receiver == 0:
		return 0, nil // the message will go nowhere
	}
	if err := Available(); err != nil {
		return 0, err
	}
	return backendNewBlock(nargs, fn)
}

// InvokeBlock calls a block that a Go method was handed.
func InvokeBlock(block Block, args ...uintptr) error {
	b, ok := Value(ID(block)).(*goBlock)
	if !ok {
		return fmt.Errorf("objc: InvokeBlock: %#x is no block made for a Go object", uintptr(block))
	}
	if len(args) != b.nargs {
		return fmt.Errorf("objc: InvokeBlock: %d arguments for a block of %d", len(args), b.nargs)
	}
	runBlock(b.fn, args)
	return nil
}

// runBlock calls the function inside a pool, and lets no panic out.
func runBlock(fn func([]uintptr), args []uintptr) {
	defer NewPool().Drain()
	defer func() {
		if r := recover(); r != nil {
			latch(fmt.Errorf("objc: a block panicked: %v", r))
		}
	}()
	fn(args)
}
