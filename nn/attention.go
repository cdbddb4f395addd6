package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// AttnHeadDim is the head dimension that FlashAttnRows is built for.
const AttnHeadDim = 128

// AttnDims are the shape and the constants of an attention.
type AttnDims struct {
	Batch, Tq      int
	Heads, HeadsKV int     // HeadsKV divides Heads; query head h uses key head h / (Heads/HeadsKV)
	HeadDim        int     // AttnHeadDim
	Capacity       int     // positions that each cache has room for: the stride of a batch
	Window         int     // positions that a query sees, its own included; 0 for all before it
	Scale          float32 // of the scores, usually 1/sqrt(HeadDim)
}

// AttnLive are the values of an attention that change from step to step, one each, read on the device.
type AttnLive struct {
	Tkv   runtime.Slice[uint32] // keys in the cache; the kernel limits it to AttnDims.Capacity
	QPos  runtime.Slice[uint32] // position of the first query row
	KVPos runtime.Slice[uint32] // position of the first key in the cache
}

// FlashAttnRows is causal attention of query rows over a key-value cache, in one pass with an online softmax. With
// h' = h / (Heads/HeadsKV),
//
//	out[b, t, h] = sum over visible s of softmax_s(Scale * q[b, t, h] . k[b, s, h']) * v[b, s, h']
//
// Key s, at position KVPos + s, is visible to row t, at QPos + t, if s < min(Tkv, Capacity), if it is not after the row,
// and, with Window > 0, if it is one of the last Window positions up to and including the row's own. What is not visible
// is not used, NaN included. A row that sees nothing is zero. out is float32 or bfloat16, by its type.
//
// Shapes: out and q [Batch, Tq, Heads, HeadDim], k and v [Batch, Capacity, HeadsKV, HeadDim]; longer slices are allowed. q, k
// and v start at a multiple of 16 bytes, out at one of 4. Batch == 0 or Tq == 0 is a no-op.
//
// Slots: 0 q, 1 k, 2 v, 3 out, 6 Tkv, 11 QPos, 12 KVPos; scalars 4 Batch, 5 Tq, 7 Heads, 8 HeadsKV, 9 Window, 13 whether
// out is bfloat16, 14 Capacity (uint32), 10 Scale (float32).
//
// A float32 out may be exactly q; otherwise out must not overlap anything. Inputs may overlap. Deterministic on one
// device; a row's result does not depend on the other rows of the launch.
// Errors: ErrScalar if Scale is not finite; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap for the rest.
//
// Sources: Dao et al., "FlashAttention", arXiv:2205.14135; Milakov and Gimelshein, arXiv:1805.02867.
func FlashAttnRows[T FloatOrBFloat](p *runtime.Pass, out runtime.Slice[T], q, k, v runtime.Slice[float32], live AttnLive, d AttnDims) error {
	return flashAttnRows("nn.FlashAttnRows", p, out.View(), isBFloat[T](), q, k, v, live, d, nil)
}

// UnsafeFlashAttnRows is [FlashAttnRows] with scalars 4, 5, 7 to 10, 13 and 14 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeFlashAttnRows[T FloatOrBFloat](p *runtime.Pass, out runtime.Slice[T], q, k, v runtime.Slice[float32], live AttnLive, d AttnDims,
	bind func(*runtime.ScalarBinder) error) error {
	return flashAttnRows("nn.UnsafeFlashAttnRows", p, out.View(), isBFloat[T](), q, k, v, live, d, bind)
}

// ValidateFlashAttnRows makes the checks of [FlashAttnRows] without encoding anything: for callers that set up scalars of
// their own first.
func ValidateFlashAttnRows[T FloatOrBFloat](rt *runtime.Runtime, out runtime.Slice[T], q, k, v runtime.Slice[float32], live AttnLive, d AttnDims) error {
	c := startOn("nn.ValidateFlashAttnRows", rt)
	c.attn(out.View(), isBFloat[T](), q, k, v, live, &d)
	return c.result()
}

// attnViews are the exact ranges that the kernel touches.
type attnViews struct {
	out, q, k, v, tkv, qPos, kvPos runtime.View
	work                           bool
}

func (c *check) attn(out runtime.View, bf16 bool, q, k, v runtime.Slice[float32], live AttnLive, d *AttnDims) (a attnViews) {
	size := 4
	if bf16 {
		size = 2
	}
	c.finite("Scale", d.Scale)
	c.dim("Batch", d.Batch, 0)
	c.dim("Tq", d.Tq, 0)
	c.dim("Heads", d.Heads, 1)
	c.dim("HeadsKV", d.HeadsKV, 1)
	if c.err == nil && d.Heads%d.HeadsKV != 0 {
		c.refuse("Heads", fmt.Sprint(d.Heads), fmt.Sprintf("a multiple of HeadsKV, %d", d.HeadsKV), runtime.ErrShape)
	}
	if c.err == nil && d.HeadDim != AttnHeadDim {
		c.refuse("HeadDim", fmt.Sprint(d.HeadDim), fmt.Sprint(AttnHeadDim), runtime.ErrShape)
	}
	c.dim("Capacity", d.Capacity, 1)
	c.dim("Window", d.Window, 0)
	c.product("Batch * Heads", math.MaxUint32, d.Batch, d.Heads)
	n := c.elements("Batch * Tq * Heads * HeadDim", d.Batch, d.Tq, d.Heads, d.HeadDim)
	kv := c.elements("Batch * Capacity * HeadsKV * HeadDim", d.Batch, d.Capacity, d.HeadsKV, d.HeadDim)
	need := func(arg string, v runtime.View, n, size, align int) {
		c.owned(arg, v)
		c.capacity(arg, v, n, size, align)
	}
	need("q", q.View(), n, 4, 16)
	need("k", k.View(), kv, 4, 16)
	need("v", v.View(), kv, 4, 16)
	need("Tkv", live.Tkv.View(), 1, 4, 4)
	need("QPos", live.QPos.View(), 1, 4, 4)
	need("KVPos", live.KVPos.View(), 1, 4, 4)
	need("out", out, n, size, 4)
	if c.err != nil || n == 0 {
		return a
	}
	a = attnViews{
		out: first(out, n, size), q: first(q.View(), n, 4), k: first(k.View(), kv, 4), v: first(v.View(), kv, 4),
		tkv: first(live.Tkv.View(), 1, 4), qPos: first(live.QPos.View(), 1, 4), kvPos: first(live.KVPos.View(), 1, 4), work: true,
	}
	c.disjoint(1, operand{"out", a.out}, operand{"k", a.k}, operand{"v", a.v}, operand{"Tkv", a.tkv}, operand{"QPos", a.qPos}, operand{"KVPos", a.kvPos})
	if !a.out.Same(a.q) { // the same bytes hold as many elements only if both are float32
		c.disjoint(1, operand{"out", a.out}, operand{"q", a.q})
	}
	return a
}

func flashAttnRows(fn string, p *runtime.Pass, out runtime.View, bf16 bool, q, k, v runtime.Slice[float32], live AttnLive, d AttnDims,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	a := c.attn(out, bf16, q, k, v, live, &d)
	if c.err != nil || !a.work {
		return c.result()
	}
	flag := uint32(0)
	if bf16 {
		flag = 1
	}
	l := p.Kernel("flash_attn_rows_h128_r8_g8")
	l.Read(0, a.q)
	l.Read(1, a.k)
	l.Read(2, a.v)
	l.Write(3, a.out)
	l.Uint32(4, uint32(d.Batch))
	l.Uint32(5, uint32(d.Tq))
	l.Read(6, a.tkv)
	l.Uint32(7, uint32(d.Heads))
	l.Uint32(8, uint32(d.HeadsKV))
	l.Uint32(9, uint32(d.Window))
	l.Float32(10, d.Scale)
	l.Read(11, a.qPos)
	l.Read(12, a.kvPos)
	l.Uint32(13, flag)
	l.Uint32(14, uint32(d.Capacity))
	l.Scalars(bind)
	return l.Dispatch(AttnGeometry(d.Batch, d.Tq, d.Heads))
}
