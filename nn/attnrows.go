package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

// FlashAttnRows is causal attention of query rows over a key-value cache, in one pass with an online softmax. With
// h' = h / (Heads/HeadsKV),
//
//	out[b, t, h] = sum over visible s of softmax_s(Scale * q[b, t, h] . k[b, s, h']) * v[b, s, h']
//
// Key s, at position KVPos + s, is visible to row t, at QPos + t, if s < min(Tkv, Capacity), if it is not after the row,
// and, with Window > 0, if it is one of the last Window positions up to and including the row's own. What is not visible
// is not used, NaN included. A row that sees nothing is zero. out is float32 or bfloat16, by its type; caches of float16 and
// bfloat16 are widened, exactly, and everything is computed in float32.
//
// With Softcap, each score s is Softcap * tanh(s / Softcap) instead. With Sinks, e^Sinks[h] is added to the sum that the
// softmax divides by.
//
// Shapes: out and q [Batch, Tq, Heads, HeadDim], k and v [Batch, Capacity, HeadsKV, HeadDim]; longer slices are allowed. q, k
// and v start at a multiple of 16 bytes, out at one of 4. Batch == 0 or Tq == 0 is a no-op.
//
// Slots: 0 q, 1 k, 2 v, 3 out, 6 Tkv, 11 QPos, 12 KVPos; scalars 4 Batch, 5 Tq, 7 Heads, 8 HeadsKV, 9 Window, 13 whether
// out is bfloat16, 14 Capacity (uint32), 10 Scale (float32). With Softcap or Sinks also 16 Sinks (Tkv if there are none);
// scalars 15 Softcap (float32), 17 whether there are Sinks (uint32).
//
// The kernel is that of RowsLanesFor and RowsGroupsFor, or of AttnDims.Lanes and Groups. On a device that does not take as
// many threads for it, the one with eight groups is launched.
//
// A float32 out may be exactly q; otherwise out must not overlap anything. Inputs may overlap. Deterministic on one
// device; a row's result does not depend on the other rows, heads and batch items of the launch, nor on Groups, but it does on
// Lanes.
// Errors: ErrScalar if Scale is not finite, or Softcap neither 0 nor finite and positive; ErrShape, ErrLimit, ErrForeign,
// ErrClosed, ErrOverlap for the rest.
//
// Sources: Dao et al., "FlashAttention", arXiv:2205.14135; Milakov and Gimelshein, arXiv:1805.02867; sinks, Xiao et al.,
// arXiv:2309.17453; softcap, Gemma 2 report, arXiv:2408.00118.
func FlashAttnRows[T FloatOrBFloat, E Float](p *runtime.Pass, out runtime.Slice[T], q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive,
	d AttnDims) error {
	return flashAttnRows("nn.FlashAttnRows", p, out.View(), isBFloat[T](), q, k, v, live, &d, nil)
}

// UnsafeFlashAttnRows is [FlashAttnRows] with scalars 4, 5, 7 to 10, 13 and 14, and 15 and 17 with Softcap or Sinks, in the
// caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeFlashAttnRows[T FloatOrBFloat, E Float](p *runtime.Pass, out runtime.Slice[T], q runtime.Slice[float32], k, v runtime.Slice[E],
	live AttnLive, d AttnDims, bind func(*runtime.ScalarBinder) error) error {
	return flashAttnRows("nn.UnsafeFlashAttnRows", p, out.View(), isBFloat[T](), q, k, v, live, &d, bind)
}

// ValidateFlashAttnRows makes the checks of [FlashAttnRows] without encoding anything: for callers that set up scalars of
// their own first.
func ValidateFlashAttnRows[T FloatOrBFloat, E Float](rt *runtime.Runtime, out runtime.Slice[T], q runtime.Slice[float32], k, v runtime.Slice[E],
	live AttnLive, d AttnDims) error {
	c := startOn("nn.ValidateFlashAttnRows", rt)
	attnRows(&c, out.View(), isBFloat[T](), q, k, v, live, &d)
	return c.result()
}

// rowsPlan is a launch of FlashAttnRows that was checked.
type rowsPlan struct {
	attnViews
	kernel, fallback string // fallback may be empty
	lanes, groups    int
}

// smallGroups is the number of simdgroups of the kernels that every device takes.
const smallGroups = 8

func attnRows[E Float](c *check, out runtime.View, bf16 bool, q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive, d *AttnDims) (r rowsPlan) {
	n := d.check(c)
	if c.err == nil {
		r.lanes, r.groups = d.Lanes, d.Groups
		if r.lanes == 0 {
			r.lanes = RowsLanesFor(d.HeadDim)
		}
		if r.groups == 0 {
			r.groups = RowsGroupsFor(d.HeadDim)
		}
		options := d.Softcap != 0 || !isZero(d.Sinks.View())
		name := func(groups int) string {
			s := findAttn(rowsSettings, d.HeadDim, r.lanes, groups)
			switch {
			case s == nil:
				return ""
			case options:
				return s.opt[elementKind[E]()]
			}
			return s.plain[elementKind[E]()]
		}
		r.kernel = name(r.groups)
		if r.kernel == "" {
			c.refuse("Lanes, Groups", fmt.Sprintf("%d and %d", r.lanes, r.groups),
				fmt.Sprintf("a kernel for HeadDim %d, this cache and these options, such as 0 and 0", d.HeadDim), runtime.ErrShape)
		}
		if r.groups > smallGroups {
			r.fallback = name(smallGroups)
		}
	}
	r.attnViews = attnMemory(c, out, bf16, q, k, v, live, d, n)
	return r
}

func flashAttnRows[E Float](fn string, p *runtime.Pass, out runtime.View, bf16 bool, q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive,
	d *AttnDims, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	r := attnRows(&c, out, bf16, q, k, v, live, d)
	if c.err != nil || !r.work {
		return c.result()
	}
	l, groups := p.Kernel(r.kernel), r.groups
	if r.fallback != "" {
		_, threads := AttnRowsGeometry(r.lanes, groups, d.Batch, d.Tq, d.Heads)
		if fitThreads(l, threads.X) < threads.X {
			l, groups = p.Kernel(r.fallback), smallGroups
		}
	}
	return r.launch(l, groups, bf16, d, bind)
}

func (r *rowsPlan) launch(l *runtime.Launch, groups int, bf16 bool, d *AttnDims, bind func(*runtime.ScalarBinder) error) error {
	l.Read(0, r.q)
	l.Read(1, r.k)
	l.Read(2, r.v)
	l.Write(3, r.out)
	l.Uint32(4, uint32(d.Batch))
	l.Uint32(5, uint32(d.Tq))
	l.Read(6, r.tkv)
	l.Uint32(7, uint32(d.Heads))
	l.Uint32(8, uint32(d.HeadsKV))
	l.Uint32(9, uint32(d.Window))
	l.Float32(10, d.Scale)
	l.Read(11, r.qPos)
	l.Read(12, r.kvPos)
	l.Uint32(13, flagOf(bf16))
	l.Uint32(14, uint32(d.Capacity))
	if r.options {
		l.Float32(15, d.Softcap)
		l.Read(16, r.sinks)
		l.Uint32(17, flagOf(r.hasSinks))
	}
	l.Scalars(bind)
	return l.Dispatch(AttnRowsGeometry(r.lanes, groups, d.Batch, d.Tq, d.Heads))
}
