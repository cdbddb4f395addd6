package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

// AttnTile is how many query rows a threadgroup of [FlashAttnTiled] takes: 8 for head dimensions 128 and 256, 4 for 512, 0 for
// others, which it is not built for.
func AttnTile(headDim int) int {
	switch headDim {
	case 128, 256:
		return 8
	case 512:
		return 4
	}
	return 0
}

// FlashAttnTiled is [FlashAttnRows] by tiles of query rows and keys, the plain way of FlashAttention: slower, and kept to
// compare others with. Formula, visibility, shapes and rules are those of FlashAttnRows, with less to choose from: HeadDim is
// 128, 256 or 512; 128 has no bfloat16 out, 512 no Window; caches are float32; Softcap, Sinks, Lanes, Groups and Chunk are
// not set.
//
// Slots: 0 q, 1 k, 2 v, 3 out, 6 Tkv; scalars 4 Batch, 5 Tq, 7 Heads, 8 HeadsKV (uint32). With HeadDim 128 and 256 also 11 QPos,
// 12 KVPos; scalars 9 Window (uint32), 10 Scale (float32). With 128 scalar 13 Capacity, with 256 scalars 13 whether out is
// bfloat16 and 14 Capacity (uint32). With 512 also 10 QPos, 11 KVPos; scalars 9 Scale (float32), 12 whether out is bfloat16
// and 13 Capacity (uint32).
//
// A float32 out may be exactly q; otherwise out must not overlap anything. Inputs may overlap. Deterministic on one
// device; a row's result does not depend on the other rows, heads and batch items of the launch.
func FlashAttnTiled[T FloatOrBFloat](p *runtime.Pass, out runtime.Slice[T], q, k, v runtime.Slice[float32], live AttnLive, d AttnDims) error {
	return flashAttnTiled("nn.FlashAttnTiled", p, out.View(), isBFloat[T](), q, k, v, live, &d, nil)
}

// UnsafeFlashAttnTiled is [FlashAttnTiled] with its scalars in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeFlashAttnTiled[T FloatOrBFloat](p *runtime.Pass, out runtime.Slice[T], q, k, v runtime.Slice[float32], live AttnLive, d AttnDims,
	bind func(*runtime.ScalarBinder) error) error {
	return flashAttnTiled("nn.UnsafeFlashAttnTiled", p, out.View(), isBFloat[T](), q, k, v, live, &d, bind)
}

// ValidateFlashAttnTiled makes the checks of [FlashAttnTiled] without encoding anything.
func ValidateFlashAttnTiled[T FloatOrBFloat](rt *runtime.Runtime, out runtime.Slice[T], q, k, v runtime.Slice[float32], live AttnLive, d AttnDims) error {
	c := startOn("nn.ValidateFlashAttnTiled", rt)
	c.attnTiled(out.View(), isBFloat[T](), q, k, v, live, &d)
	return c.result()
}

func (c *check) attnTiled(out runtime.View, bf16 bool, q, k, v runtime.Slice[float32], live AttnLive, d *AttnDims) attnViews {
	n := d.check(c)
	if c.err == nil {
		switch {
		case AttnTile(d.HeadDim) == 0:
			c.refuse("HeadDim", fmt.Sprint(d.HeadDim), "128, 256 or 512", runtime.ErrShape)
		case d.HeadDim == 128 && bf16:
			c.refuse("out", "bfloat16", "float32 with HeadDim 128", runtime.ErrShape)
		case d.HeadDim == 512 && d.Window != 0:
			c.refuse("Window", fmt.Sprint(d.Window), "0 with HeadDim 512", runtime.ErrShape)
		case d.Softcap != 0:
			c.refuse("Softcap", fmt.Sprint(d.Softcap), "0: FlashAttnRows caps scores", runtime.ErrShape)
		case !isZero(d.Sinks.View()):
			c.refuse("Sinks", fmt.Sprintf("%d elements", d.Sinks.Len()), "the zero Slice: FlashAttnRows has sinks", runtime.ErrShape)
		case d.Lanes != 0 || d.Groups != 0 || d.Chunk != 0:
			c.refuse("Lanes, Groups, Chunk", fmt.Sprintf("%d, %d and %d", d.Lanes, d.Groups, d.Chunk), "0", runtime.ErrShape)
		}
	}
	return attnMemory(c, out, bf16, q, k, v, live, d, n)
}

func flashAttnTiled(fn string, p *runtime.Pass, out runtime.View, bf16 bool, q, k, v runtime.Slice[float32], live AttnLive, d *AttnDims,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	a := c.attnTiled(out, bf16, q, k, v, live, d)
	if c.err != nil || !a.work {
		return c.result()
	}
	var l *runtime.Launch
	switch d.HeadDim {
	case 128:
		l = p.Kernel("flash_attn_swa_h128")
	case 256:
		l = p.Kernel("flash_attn_swa_h256")
	default:
		l = p.Kernel("flash_attn_global_h512")
	}
	l.Read(0, a.q)
	l.Read(1, a.k)
	l.Read(2, a.v)
	l.Write(3, a.out)
	l.Uint32(4, uint32(d.Batch))
	l.Uint32(5, uint32(d.Tq))
	l.Read(6, a.tkv)
	l.Uint32(7, uint32(d.Heads))
	l.Uint32(8, uint32(d.HeadsKV))
	slot := 9
	if d.HeadDim != 512 {
		l.Uint32(slot, uint32(d.Window))
		slot++
	}
	l.Float32(slot, d.Scale)
	l.Read(slot+1, a.qPos)
	l.Read(slot+2, a.kvPos)
	slot += 3
	if d.HeadDim != 128 {
		l.Uint32(slot, flagOf(bf16))
		slot++
	}
	l.Uint32(slot, uint32(d.Capacity))
	l.Scalars(bind)
	return l.Dispatch(runtime.D2(ceilDiv(d.Tq, AttnTile(d.HeadDim)), d.Batch*d.Heads), runtime.D1(SIMDWidth))
}
