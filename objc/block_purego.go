//go:build (darwin || (linux && objcdouble)) && (amd64 || arm64)

package objc

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// blockLiteral is a block as compilers lay it out, with one captured word: the key of the Go function.
type blockLiteral struct {
	isa        uintptr
	flags      int32
	reserved   int32
	invoke     uintptr
	descriptor *blockDescriptor
	key        uintptr
}

type blockDescriptor struct {
	_, size, copy, dispose uintptr // the first is reserved
}

const blockHasCopyDispose = 1 << 25

// blocks are the Go functions behind blocks. All blocks share one callback: callbacks are few and last for ever.
var blocks struct {
	once       sync.Once
	descriptor blockDescriptor
	invoke     uintptr

	sync.Mutex
	next  uintptr
	funcs map[uintptr]*goBlock
}

func blockFunc(block uintptr) *goBlock {
	key := (*blockLiteral)(toPointer(block)).key
	blocks.Lock()
	defer blocks.Unlock()
	return blocks.funcs[key]
}

func backendNewBlock(nargs int, fn func([]uintptr)) (Block, error) {
	blocks.once.Do(func() {
		blocks.funcs = map[uintptr]*goBlock{}
		blocks.descriptor.size = unsafe.Sizeof(blockLiteral{})
		// The captured word is copied with the literal; there is nothing else to do.
		blocks.descriptor.copy = purego.NewCallback(func(to, from uintptr) {})
		blocks.descriptor.dispose = purego.NewCallback(func(block uintptr) {
			key := (*blockLiteral)(toPointer(block)).key
			blocks.Lock()
			defer blocks.Unlock()
			delete(blocks.funcs, key)
		})
		// Blocks of every number of arguments come in here: the registers of those that a block does not have are
		// read and dropped.
		blocks.invoke = purego.NewCallback(func(block, a, b, c, d uintptr) {
			if f := blockFunc(block); f != nil {
				args := [MaxBlockArgs]uintptr{a, b, c, d}
				runBlock(f.fn, args[:f.nargs])
			}
		})
	})
	blocks.Lock()
	blocks.next++
	key := blocks.next
	blocks.funcs[key] = &goBlock{nargs, fn}
	blocks.Unlock()
	l := &blockLiteral{
		isa:        lib.stackBlock,
		flags:      blockHasCopyDispose,
		invoke:     blocks.invoke,
		descriptor: &blocks.descriptor,
		key:        key,
	}
	r, _, _ := purego.SyscallN(lib.blockCopy, Pointer(unsafe.Pointer(l)))
	runtime.KeepAlive(l)
	if r == 0 {
		blocks.Lock()
		delete(blocks.funcs, key)
		blocks.Unlock()
		return 0, fmt.Errorf("objc: _Block_copy made no block")
	}
	return Block(r), nil
}

func backendBlockRetain(b Block) Block {
	if !foreign(ID(b), "copy") {
		return b
	}
	r, _, _ := purego.SyscallN(lib.blockCopy, uintptr(b))
	return Block(r)
}

func backendBlockRelease(b Block) {
	if foreign(ID(b), "release") {
		purego.SyscallN(lib.blockRelease, uintptr(b))
	}
}
