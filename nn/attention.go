package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// AttnDims are the shape and the constants of an attention.
type AttnDims struct {
	Batch, Tq      int
	Heads, HeadsKV int     // HeadsKV divides Heads; query head h uses key head h / (Heads/HeadsKV)
	HeadDim        int     // one of AttnHeadDims
	Capacity       int     // positions that each cache has room for: the stride of a batch
	Window         int     // positions that a query sees, its own included; 0 for all before it
	Scale          float32 // of the scores, usually 1/sqrt(HeadDim)

	// Softcap caps the scores, Softcap * tanh(score / Softcap); 0 for no cap.
	Softcap float32
	// Sinks are logits, [Heads], that take part in the softmax of every row of their head without a value; the zero Slice
	// for none. One of -Inf takes no part.
	Sinks runtime.Slice[float32]

	// Lanes, Groups and Chunk choose other kernels than RowsLanesFor, RowsGroupsFor, DecodeLanesFor and DecodeChunkFor do; 0
	// for those. Head dimensions 128, 256 and 512 have kernels for 8, 16 and 32 lanes, 8, 16 and 32 groups, and chunks of
	// 64, 128 and 256 keys, with caches of float32 and, in FlashAttnRows, without Softcap and Sinks.
	Lanes, Groups, Chunk int
}

// AttnLive are the values of an attention that change from step to step, one each, read on the device.
type AttnLive struct {
	Tkv   runtime.Slice[uint32] // keys in the cache; the kernel limits it to AttnDims.Capacity
	QPos  runtime.Slice[uint32] // position of the first query row
	KVPos runtime.Slice[uint32] // position of the first key in the cache
}

// Attention is causal attention over a key-value cache by the kernels that [AttnKernelFor] names: [FlashAttnDecode] for a
// single query row, which uses scratch, [FlashAttnRows] for more, which does not. Those have formula, shapes, slots, rules
// and errors. scratch has [AttnDecodeScratch] elements, which is none for more than one row.
//
// Deterministic on one device; a row's result does not depend on other rows, heads and batch items, but one that was computed
// alone and one that was computed among others may differ by some roundings.
func Attention[T FloatOrBFloat, E Float](p *runtime.Pass, out runtime.Slice[T], q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive,
	scratch runtime.Slice[float32], d AttnDims) error {
	if AttnKernelFor(d.Tq, d.Capacity) == AttnDecodeKernel {
		return flashAttnDecode("nn.Attention", p, out.View(), isBFloat[T](), q, k, v, live, scratch, &d, nil, nil)
	}
	return flashAttnRows("nn.Attention", p, out.View(), isBFloat[T](), q, k, v, live, &d, nil)
}

// ValidateAttention makes the checks of [Attention] without encoding anything.
func ValidateAttention[T FloatOrBFloat, E Float](rt *runtime.Runtime, out runtime.Slice[T], q runtime.Slice[float32], k, v runtime.Slice[E],
	live AttnLive, scratch runtime.Slice[float32], d AttnDims) error {
	c := startOn("nn.ValidateAttention", rt)
	if AttnKernelFor(d.Tq, d.Capacity) == AttnDecodeKernel {
		attnDecode(&c, out.View(), isBFloat[T](), q, k, v, live, scratch, &d)
	} else {
		attnRows(&c, out.View(), isBFloat[T](), q, k, v, live, &d)
	}
	return c.result()
}

// attnViews are the exact ranges that the kernels touch.
type attnViews struct {
	out, q, k, v, tkv, qPos, kvPos, sinks, scratch runtime.View

	hasSinks bool
	options  bool // a softcap or sinks
	work     bool
}

// attnSizes are the numbers of elements of an attention.
type attnSizes struct{ q, kv int }

// check refuses scalars and shapes.
func (d *AttnDims) check(c *check) (n attnSizes) {
	c.finite("Scale", d.Scale)
	if d.Softcap != 0 {
		c.positive("Softcap", d.Softcap)
	}
	c.dim("Batch", d.Batch, 0)
	c.dim("Tq", d.Tq, 0)
	c.dim("Heads", d.Heads, 1)
	c.dim("HeadsKV", d.HeadsKV, 1)
	if c.err == nil && d.Heads%d.HeadsKV != 0 {
		c.refuse("Heads", fmt.Sprint(d.Heads), fmt.Sprintf("a multiple of HeadsKV, %d", d.HeadsKV), runtime.ErrShape)
	}
	if c.err == nil && RowsLanesFor(d.HeadDim) == 0 {
		c.refuse("HeadDim", fmt.Sprint(d.HeadDim), fmt.Sprintf("one of %v", AttnHeadDims()), runtime.ErrShape)
	}
	c.dim("Capacity", d.Capacity, 1)
	c.dim("Window", d.Window, 0)
	c.product("Batch * Heads", math.MaxUint32, d.Batch, d.Heads)
	n.q = c.elements("Batch * Tq * Heads * HeadDim", d.Batch, d.Tq, d.Heads, d.HeadDim)
	n.kv = c.elements("Batch * Capacity * HeadsKV * HeadDim", d.Batch, d.Capacity, d.HeadsKV, d.HeadDim)
	return n
}

// attnMemory checks what is bound, and that out overlaps nothing that it must not.
func attnMemory[E Float](c *check, out runtime.View, bf16 bool, q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive, d *AttnDims, n attnSizes) (a attnViews) {
	size, sizeKV := 4, floatSize[E]()
	if bf16 {
		size = 2
	}
	need := func(arg string, v runtime.View, n, size, align int) {
		c.owned(arg, v)
		c.capacity(arg, v, n, size, align)
	}
	need("q", q.View(), n.q, 4, 16)
	need("k", k.View(), n.kv, sizeKV, 16)
	need("v", v.View(), n.kv, sizeKV, 16)
	need("Tkv", live.Tkv.View(), 1, 4, 4)
	need("QPos", live.QPos.View(), 1, 4, 4)
	need("KVPos", live.KVPos.View(), 1, 4, 4)
	a.hasSinks = !isZero(d.Sinks.View())
	if a.hasSinks {
		need("Sinks", d.Sinks.View(), d.Heads, 4, 4)
	}
	need("out", out, n.q, size, 4)
	if c.err != nil || n.q == 0 {
		return a
	}
	a.out, a.q, a.k, a.v = first(out, n.q, size), first(q.View(), n.q, 4), first(k.View(), n.kv, sizeKV), first(v.View(), n.kv, sizeKV)
	a.tkv, a.qPos, a.kvPos = first(live.Tkv.View(), 1, 4), first(live.QPos.View(), 1, 4), first(live.KVPos.View(), 1, 4)
	a.sinks = a.tkv // a slot must not be empty; the kernel does not read this one
	if a.hasSinks {
		a.sinks = first(d.Sinks.View(), d.Heads, 4)
	}
	a.options = a.hasSinks || d.Softcap != 0
	a.work = true
	c.disjoint(1, operand{"out", a.out}, operand{"k", a.k}, operand{"v", a.v}, operand{"Tkv", a.tkv}, operand{"QPos", a.qPos},
		operand{"KVPos", a.kvPos}, operand{"Sinks", a.sinks})
	if !a.out.Same(a.q) { // the same bytes hold as many elements only if both are float32
		c.disjoint(1, operand{"out", a.out}, operand{"q", a.q})
	}
	return a
}

func flagOf(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
