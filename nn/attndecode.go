package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

// FlashAttnDecode is [FlashAttnRows] for a single query row, Tq == 1: formula, shapes and rules are the same. The cache is
// split into chunks, for which the first kernel makes partial results side by side, and the second one merges them:
//
//	(m, l, acc)[b, h, chunk] = max s, sum e^(s-m), sum e^(s-m) v   over the visible keys of the chunk, s their scores
//	out[b, h] = sum e^(m-M) acc / (sum e^(m-M) l + e^(Sinks[h]-M)),   M = max of all m and Sinks[h]
//
// The grid is made for Capacity, since Tkv is known on the device only: chunks behind Tkv do nothing and are not merged.
//
// scratch is for partial results, [AttnDecodeScratch] elements, longer is allowed; what it holds before does not matter.
//
// Slots of the first kernel: 0 q, 1 k, 2 v, 3 scratch, 6 Tkv, 11 QPos, 12 KVPos; scalars 4 Batch, 7 Heads, 8 HeadsKV, 9 Window,
// 13 Capacity (uint32), 10 Scale, 15 Softcap (float32). Of the second: 0 scratch, 1 out, 3 Tkv, 7 Sinks (Tkv if there are
// none); scalars 2 Batch, 4 Heads, 5 whether out is bfloat16, 6 Capacity, 8 whether there are Sinks (uint32).
//
// The kernels are those of DecodeLanesFor and DecodeChunkFor, or of AttnDims.Lanes and Chunk. Groups is not used.
//
// A float32 out may be exactly q; otherwise out and scratch must not overlap each other or anything else. Inputs may overlap.
// Deterministic on one device; a head's result does not depend on other heads and batch items, nor on Capacity, but it does
// on Lanes and Chunk. Errors: as at FlashAttnRows, and ErrShape if Tq is not 1.
//
// Source: Dao et al., "Flash-Decoding for long-context inference", 2023.
func FlashAttnDecode[T FloatOrBFloat, E Float](p *runtime.Pass, out runtime.Slice[T], q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive,
	scratch runtime.Slice[float32], d AttnDims) error {
	return flashAttnDecode("nn.FlashAttnDecode", p, out.View(), isBFloat[T](), q, k, v, live, scratch, &d, nil, nil)
}

// UnsafeFlashAttnDecode is [FlashAttnDecode] with the scalars of both kernels in the caller's own storage: partial binds 4, 7
// to 10, 13 and 15 of the first one, and reduce 2, 4, 5, 6 and 8 of the second. Both are called before either kernel is encoded.
//
// Unsafe: see the package documentation.
func UnsafeFlashAttnDecode[T FloatOrBFloat, E Float](p *runtime.Pass, out runtime.Slice[T], q runtime.Slice[float32], k, v runtime.Slice[E],
	live AttnLive, scratch runtime.Slice[float32], d AttnDims, partial, reduce func(*runtime.ScalarBinder) error) error {
	return flashAttnDecode("nn.UnsafeFlashAttnDecode", p, out.View(), isBFloat[T](), q, k, v, live, scratch, &d, partial, reduce)
}

// ValidateFlashAttnDecode makes the checks of [FlashAttnDecode] without encoding anything.
func ValidateFlashAttnDecode[T FloatOrBFloat, E Float](rt *runtime.Runtime, out runtime.Slice[T], q runtime.Slice[float32], k, v runtime.Slice[E],
	live AttnLive, scratch runtime.Slice[float32], d AttnDims) error {
	c := startOn("nn.ValidateFlashAttnDecode", rt)
	attnDecode(&c, out.View(), isBFloat[T](), q, k, v, live, scratch, &d)
	return c.result()
}

// AttnDecodeScratch is the number of elements of scratch that [FlashAttnDecode] and [Attention] need: for each head and chunk
// of the cache HeadDim + 2. It is 0 for other than one query row and for what those refuse.
func AttnDecodeScratch(d AttnDims) int {
	var c check
	chunk := decodeChunk(&d)
	if d.check(&c); c.err != nil || d.Tq != 1 || findAttn(reduceSettings, d.HeadDim, 0, chunk) == nil {
		return 0
	}
	return decodeScratch(&c, &d, chunk)
}

// decodeChunk is the number of keys of a chunk.
func decodeChunk(d *AttnDims) int {
	if d.Chunk != 0 {
		return d.Chunk
	}
	return DecodeChunkFor(d.HeadDim)
}

func decodeScratch(c *check, d *AttnDims, chunk int) int {
	return c.elements("Batch * Heads * chunks * (HeadDim + 2)", d.Batch, d.Heads, AttnDecodeChunks(d.Capacity, chunk), d.HeadDim+2)
}

// decodePlan are launches of FlashAttnDecode that were checked.
type decodePlan struct {
	attnViews
	partial, reduce string
	chunk           int
}

func attnDecode[E Float](c *check, out runtime.View, bf16 bool, q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive,
	scratch runtime.Slice[float32], d *AttnDims) (r decodePlan) {
	n := d.check(c)
	if c.err == nil && d.Tq != 1 {
		c.refuse("Tq", fmt.Sprint(d.Tq), "1; FlashAttnRows takes more", runtime.ErrShape)
	}
	if c.err == nil {
		lanes := d.Lanes
		if lanes == 0 {
			lanes = DecodeLanesFor(d.HeadDim)
		}
		r.chunk = decodeChunk(d)
		if s, m := findAttn(decodeSettings, d.HeadDim, lanes, r.chunk), findAttn(reduceSettings, d.HeadDim, 0, r.chunk); s != nil && m != nil {
			r.partial, r.reduce = s.plain[elementKind[E]()], m.plain[0]
		}
		if r.partial == "" {
			c.refuse("Lanes, Chunk", fmt.Sprintf("%d and %d", lanes, r.chunk),
				fmt.Sprintf("a kernel for HeadDim %d and this cache, such as 0 and 0", d.HeadDim), runtime.ErrShape)
		}
	}
	elements := 0
	if c.err == nil {
		elements = decodeScratch(c, d, r.chunk)
	}
	r.attnViews = attnMemory(c, out, bf16, q, k, v, live, d, n)
	c.owned("scratch", scratch.View())
	c.capacity("scratch", scratch.View(), elements, 4, 4)
	if c.err != nil || !r.work {
		return r
	}
	r.scratch = first(scratch.View(), elements, 4)
	c.disjoint(1, operand{"scratch", r.scratch}, operand{"out", r.out}, operand{"q", r.q}, operand{"k", r.k}, operand{"v", r.v},
		operand{"Tkv", r.tkv}, operand{"QPos", r.qPos}, operand{"KVPos", r.kvPos}, operand{"Sinks", r.sinks})
	return r
}

func flashAttnDecode[E Float](fn string, p *runtime.Pass, out runtime.View, bf16 bool, q runtime.Slice[float32], k, v runtime.Slice[E], live AttnLive,
	scratch runtime.Slice[float32], d *AttnDims, partial, reduce func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	r := attnDecode(&c, out, bf16, q, k, v, live, scratch, d)
	if c.err != nil || !r.work {
		return c.result()
	}
	// What is wrong with the second kernel must show before the first one is in the pass.
	if partial != nil || reduce != nil {
		a, b := p.NewLaunch(r.partial), p.NewLaunch(r.reduce)
		return dispatchAll(prepared{a, r.bindPartial(a, d, partial)}, prepared{b, r.bindReduce(b, bf16, d, reduce)})
	}
	l := p.Kernel(r.reduce)
	if err := (prepared{l, r.bindReduce(l, bf16, d, nil)}).check(); err != nil {
		return err
	}
	l = p.Kernel(r.partial)
	if err := (prepared{l, r.bindPartial(l, d, nil)}).dispatch(); err != nil {
		return err
	}
	l = p.Kernel(r.reduce)
	return prepared{l, r.bindReduce(l, bf16, d, nil)}.dispatch()
}

// bindPartial takes fewer heads to a threadgroup where the device does not take as many threads.
func (r *decodePlan) bindPartial(l *runtime.Launch, d *AttnDims, bind func(*runtime.ScalarBinder) error) grid {
	l.Read(0, r.q)
	l.Read(1, r.k)
	l.Read(2, r.v)
	l.Write(3, r.scratch)
	l.Uint32(4, uint32(d.Batch))
	l.Read(6, r.tkv)
	l.Uint32(7, uint32(d.Heads))
	l.Uint32(8, uint32(d.HeadsKV))
	l.Uint32(9, uint32(d.Window))
	l.Float32(10, d.Scale)
	l.Read(11, r.qPos)
	l.Read(12, r.kvPos)
	l.Uint32(13, uint32(d.Capacity))
	l.Float32(15, d.Softcap)
	l.Scalars(bind)
	heads := DecodeHeadsFor(d.HeadDim, d.Heads, d.HeadsKV)
	for heads > 1 && fitThreads(l, heads*SIMDWidth) < heads*SIMDWidth {
		heads /= 2
	}
	groups, threads := AttnDecodeGeometry(r.chunk, heads, d.Batch, d.Heads, d.Capacity)
	return grid{groups, threads}
}

func (r *decodePlan) bindReduce(l *runtime.Launch, bf16 bool, d *AttnDims, bind func(*runtime.ScalarBinder) error) grid {
	l.Read(0, r.scratch)
	l.Write(1, r.out)
	l.Uint32(2, uint32(d.Batch))
	l.Read(3, r.tkv)
	l.Uint32(4, uint32(d.Heads))
	l.Uint32(5, flagOf(bf16))
	l.Uint32(6, uint32(d.Capacity))
	l.Read(7, r.sinks)
	l.Uint32(8, flagOf(r.hasSinks))
	l.Scalars(bind)
	return grid{runtime.D2(1, d.Batch*d.Heads), runtime.D1(fitThreads(l, DecodeReduceThreads(d.HeadDim)))}
}

// DecodeReduceThreads is the size of a threadgroup of [FlashAttnDecode]'s second kernel: a thread for each element of a head,
// at most 256.
func DecodeReduceThreads(headDim int) int {
	return min(ceilDiv(headDim, SIMDWidth), 8) * SIMDWidth
}
