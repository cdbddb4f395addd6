package runtime

import (
	"sync"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl"
)

// The const arena holds the scalars of launches. A pass takes whole chunks from it and gives them back when its submission
// has completed, so that nothing is overwritten that the device may still read; a program keeps its chunks until it is
// released, which makes its scalars stable.

const chunkBytes = 64 << 10

type chunk struct {
	buf  mtl.Buffer
	base unsafe.Pointer
	used int
}

func (c *chunk) buffer() deviceBuffer { return deviceBuffer{c.buf, c.base, chunkBytes, Shared} }

type arena struct {
	rt *Runtime

	mu   sync.Mutex
	free []*chunk
	made int
}

// take gives an empty chunk.
func (a *arena) take() (*chunk, error) {
	a.mu.Lock()
	if n := len(a.free); n > 0 {
		c := a.free[n-1]
		a.free = a.free[:n-1]
		a.mu.Unlock()
		c.used = 0
		return c, nil
	}
	a.made++
	a.mu.Unlock()
	b, err := a.rt.newBuffer("const arena", chunkBytes, Shared)
	if err != nil {
		a.mu.Lock()
		a.made--
		a.mu.Unlock()
		return nil, err
	}
	return &chunk{buf: b.mtl, base: b.base}, nil
}

// give takes chunks back.
func (a *arena) give(chunks []*chunk) {
	if len(chunks) == 0 {
		return
	}
	a.mu.Lock()
	a.free = append(a.free, chunks...)
	a.mu.Unlock()
}

// trim releases all free chunks and says how many bytes that were.
func (a *arena) trim() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rt.mem.mu.Lock()
	defer a.rt.mem.mu.Unlock()
	for _, c := range a.free {
		a.rt.dropBuffer(c.buffer())
	}
	n := len(a.free)
	a.made -= n
	a.free = nil
	return n * chunkBytes
}

// room says where n bytes fit into the chunk, and whether they do.
func (c *chunk) room(n, align int) (off int, ok bool) {
	off = (c.used + align - 1) &^ (align - 1)
	return off, off+n <= chunkBytes
}

// at is memory of the chunk.
func (c *chunk) at(off, n int) []byte { return unsafe.Slice((*byte)(unsafe.Add(c.base, off)), n) }
