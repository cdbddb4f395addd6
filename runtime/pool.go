package runtime

import "math/bits"

// The pool keeps released buffers for reuse, by size class. It knows nothing of Metal: what it holds is B.

const (
	minClass = 256
	// fineClass is where classes become multiples of it: large buffers would waste too much in steps of an eighth.
	fineClass = 1 << 20
	// A buffer is a whole number of pages in the end; 16 KiB is the page of Apple silicon.
	fineStep = 16 << 10
)

// sizeClass is the length of the buffers that serve requests of n bytes: 256, then four steps to each doubling, then from
// 1 MiB on the next multiple of an eighth of the power of two below it, at least 16 KiB.
func sizeClass(n int) int {
	if n <= minClass {
		return minClass
	}
	step := 1 << max(bits.Len(uint(n-1))-3, 0)
	if n > fineClass {
		step = max(1<<(bits.Len(uint(n-1))-4), fineStep)
	}
	c := (n + step - 1) / step * step
	if c < n { // overflow
		return n
	}
	return c
}

// poolKey is what the buffers of one list have in common.
type poolKey struct {
	class   int
	storage Storage
}

type bufferPool[B any] struct {
	limit   int
	bytes   int
	classes map[poolKey][]B
}

// take gives a buffer of the class, if there is one.
func (p *bufferPool[B]) take(key poolKey) (b B, ok bool) {
	list := p.classes[key]
	if len(list) == 0 {
		return b, false
	}
	b = list[len(list)-1]
	var none B
	list[len(list)-1] = none
	p.classes[key] = list[:len(list)-1]
	p.bytes -= key.class
	return b, true
}

// put keeps a buffer, and gives back through drop what no longer fits under the limit, largest first.
func (p *bufferPool[B]) put(key poolKey, b B, drop func(B)) {
	if key.class > p.limit {
		drop(b)
		return
	}
	if p.classes == nil {
		p.classes = map[poolKey][]B{}
	}
	p.classes[key] = append(p.classes[key], b)
	p.bytes += key.class
	p.trim(p.limit, drop)
}

// trim drops buffers, largest first, until at most limit bytes are kept.
func (p *bufferPool[B]) trim(limit int, drop func(B)) {
	for p.bytes > limit {
		var largest poolKey
		for key, list := range p.classes {
			if len(list) == 0 {
				delete(p.classes, key)
			} else if key.class > largest.class || key.class == largest.class && key.storage > largest.storage {
				largest = key
			}
		}
		b, _ := p.take(largest)
		drop(b)
	}
}
