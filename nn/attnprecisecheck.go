package nn

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// precisePlan is a launch of FlashAttnPrecise that was checked.
type precisePlan struct {
	PrecisePipeline
	q, k, v, out, mask, blocks, sinks, norms runtime.View
	vRows                                    int // rows of a head of v
	maskPerHead                              bool
	work                                     bool
}

// check validates a call and fills the plan.
func (a *precisePlan) check(c *check, out runtime.Slice[float32], q, k runtime.Slice[half.Float16], v *PreciseV, d *PreciseDims) {
	a.shape(c, v, d)
	if c.err != nil {
		return
	}
	nq := c.elements("Batch * Heads * Tq * HeadDim", d.Batch, d.Heads, d.Tq, d.HeadDim)
	nk := c.elements("Batch * HeadsKV * Capacity * HeadDim", d.Batch, d.HeadsKV, d.Capacity, d.HeadDim)
	need := func(arg string, v runtime.View, n, size, align int) {
		c.owned(arg, v)
		c.capacity(arg, v, n, size, align)
	}
	need("q", q.View(), nq, 2, 8)
	need("k", k.View(), nk, 2, 8)
	need("out", out.View(), nq, 4, 8)
	a.vRows = d.Capacity
	size := 4
	switch a.V {
	case PreciseF32:
		a.v, a.vRows = v.F32.View(), d.Tk
	case PreciseF16:
		a.v, size = v.F16.View(), 2
	default:
		a.v, size = v.Codes.View(), 1
		norms := c.elements("Batch * HeadsKV * Capacity * norms", d.Batch, d.HeadsKV, d.Capacity, v.Codec.Norms())
		need("V.Norms", v.Norms.View(), norms, 4, 4)
		if c.err == nil {
			a.norms = first(v.Norms.View(), norms, 4)
		}
	}
	nv := c.elements("Batch * HeadsKV * rows of v * HeadDim", d.Batch, d.HeadsKV, a.vRows, d.HeadDim)
	need("V", a.v, nv, size, 8)
	a.masks(c, d)
	if a.Sinks {
		need("Sinks", d.Sinks.View(), d.Heads, 4, 4)
	}
	if c.err != nil || nq == 0 {
		return
	}
	a.q, a.k, a.v, a.out = first(q.View(), nq, 2), first(k.View(), nk, 2), first(a.v, nv, size), first(out.View(), nq, 4)
	a.sinks = a.q // a slot must not be empty; the kernel does not read this one
	if a.Sinks {
		a.sinks = first(d.Sinks.View(), d.Heads, 4)
	}
	if !a.Mask {
		a.mask = a.q
	}
	if !a.Blocks {
		a.blocks = a.q
	}
	c.disjoint(1, operand{"out", a.out}, operand{"q", a.q}, operand{"k", a.k}, operand{"V", a.v}, operand{"V.Norms", a.norms},
		operand{"Mask", a.mask}, operand{"Blocks", a.blocks}, operand{"Sinks", a.sinks})
	a.work = c.err == nil
}

// shape checks what is not memory and fills the pipeline.
func (a *precisePlan) shape(c *check, v *PreciseV, d *PreciseDims) {
	rows, keys := c.preciseTile(d.HeadDim)
	c.dim("Batch", d.Batch, 0)
	c.dim("Heads", d.Heads, 0)
	c.dim("HeadsKV", d.HeadsKV, 1)
	c.dim("Tq", d.Tq, 0)
	c.dim("Tk", d.Tk, 1)
	c.dim("Capacity", d.Capacity, 1)
	c.dim("Window", d.Window, 0)
	c.dim("QOffset", d.QOffset, 0)
	c.positive("Scale", d.Scale)
	if d.Softcap != 0 {
		c.positive("Softcap", d.Softcap)
	}
	if c.err != nil {
		return
	}
	set := 0
	if !isZero(v.F32.View()) {
		set, a.V = set+1, PreciseF32
	}
	if !isZero(v.F16.View()) {
		set, a.V = set+1, PreciseF16
	}
	if !isZero(v.Codes.View()) {
		set, a.V = set+1, PreciseCodes
	}
	masked := !isZero(d.Mask.View())
	switch {
	case d.Heads%d.HeadsKV != 0:
		c.refuse("HeadsKV", strconv.Itoa(d.HeadsKV), fmt.Sprintf("a divisor of Heads, %d", d.Heads), runtime.ErrShape)
	case d.Capacity < d.Tk:
		c.refuse("Capacity", strconv.Itoa(d.Capacity), fmt.Sprintf("at least Tk, %d", d.Tk), runtime.ErrShape)
	case set != 1:
		c.refuse("V", fmt.Sprintf("%d of F32, F16 and Codes", set), "one", runtime.ErrShape)
	case masked && (d.Window != 0 || d.Causal):
		c.refuse("Mask", "a mask with Window or Causal", "one of these", runtime.ErrShape)
	case masked && d.HeadDim == 512:
		c.refuse("Mask", "a mask", "none with HeadDim 512", runtime.ErrShape)
	case !isZero(d.Blocks.View()) && !masked:
		c.refuse("Blocks", "tiles of no mask", "a Mask", runtime.ErrShape)
	case !masked && (d.Causal || d.Window != 0) && d.QOffset > d.Tk-d.Tq:
		c.refuse("QOffset + Tq", fmt.Sprintf("%d + %d", d.QOffset, d.Tq), fmt.Sprintf("at most Tk, %d", d.Tk), runtime.ErrShape)
	case a.V == PreciseCodes && v.Codec.Dim != d.HeadDim:
		c.refuse("V.Codec", fmt.Sprintf("vectors of %d", v.Codec.Dim), fmt.Sprintf("of HeadDim, %d", d.HeadDim), runtime.ErrShape)
	case a.V == PreciseCodes:
		c.codec("V.Codec", v.Codec)
	}
	c.needsMatrices()
	a.HeadDim, a.AlignQ, a.AlignK = d.HeadDim, d.Tq%rows == 0, d.Tk%keys == 0
	a.Mask, a.Blocks, a.Sinks = masked, !isZero(d.Blocks.View()), !isZero(d.Sinks.View())
	a.Causal, a.Window, a.Softcap = d.Causal, d.Window != 0, d.Softcap != 0
}

// masks checks the mask and what is said of its tiles.
func (a *precisePlan) masks(c *check, d *PreciseDims) {
	if !a.Mask || c.err != nil {
		return
	}
	one := c.elements("Tq * Tk", d.Tq, d.Tk)
	all := c.elements("Batch * Heads * Tq * Tk", d.Batch, d.Heads, d.Tq, d.Tk)
	c.owned("Mask", d.Mask.View())
	if c.err != nil {
		return
	}
	// With one head the two are the same.
	n := one
	if a.maskPerHead = d.Mask.Len() == all && all != one; a.maskPerHead {
		n = all
	} else if d.Mask.Len() != one {
		c.refuse("Mask", fmt.Sprintf("%d elements", d.Mask.Len()), fmt.Sprintf("%d, Tq * Tk, or %d for all heads", one, all), runtime.ErrShape)
		return
	}
	if n == 0 {
		return
	}
	a.mask = first(d.Mask.View(), n, 2)
	if !a.Blocks {
		return
	}
	if a.maskPerHead {
		c.refuse("Blocks", "tiles of one mask", "a Mask for all heads", runtime.ErrShape)
		return
	}
	rows, keys := PreciseBlocksShape(d.HeadDim, d.Tq, d.Tk)
	c.owned("Blocks", d.Blocks.View())
	if c.err == nil && d.Blocks.Len() != rows*keys {
		c.refuse("Blocks", fmt.Sprintf("%d elements", d.Blocks.Len()), fmt.Sprintf("%d, %d * %d tiles", rows*keys, rows, keys), runtime.ErrShape)
	}
	if c.err == nil {
		a.blocks = first(d.Blocks.View(), rows*keys, 1)
	}
}

// attnParams appends ingot_attn_params.
func (a *precisePlan) attnParams(b []byte, d *PreciseDims) []byte {
	rows, keys := PreciseTile(d.HeadDim)
	le := binary.LittleEndian
	put := func(v int) { b = le.AppendUint32(b, uint32(v)) }
	strides := func(heads, rows int) {
		for _, s := range [3]int{heads * rows * d.HeadDim, rows * d.HeadDim, d.HeadDim} {
			b = le.AppendUint64(b, uint64(s))
		}
	}
	put(d.Batch)
	put(d.Heads)
	put(d.HeadDim)
	put(d.Tq)
	put(d.Tk)
	put(d.Heads / d.HeadsKV)
	b = le.AppendUint32(b, math.Float32bits(d.Scale))
	b = le.AppendUint32(b, math.Float32bits(d.Softcap))
	put(ceilDiv(d.Tq, rows))
	put(ceilDiv(d.Tk, keys))
	put(d.Tq / rows)
	put(d.Tk / keys)
	put(d.Tq % rows)
	put(d.Tk % keys)
	put(d.QOffset)
	put(0)
	strides(d.Heads, d.Tq)
	strides(d.HeadsKV, d.Capacity)
	strides(d.HeadsKV, a.vRows)
	strides(d.Heads, d.Tq)
	return b
}

// maskParams appends ingot_attn_mask_params.
func (a *precisePlan) maskParams(b []byte, d *PreciseDims) []byte {
	le := binary.LittleEndian
	batch, head := 0, 0
	if a.maskPerHead {
		batch, head = d.Heads*d.Tq*d.Tk, d.Tq*d.Tk
	}
	b = le.AppendUint64(b, uint64(batch))
	b = le.AppendUint64(b, uint64(head))
	return le.AppendUint64(b, uint64(d.Tk))
}

// preciseParams appends ingot_attn_precise_params.
func (a *precisePlan) preciseParams(b []byte, v *PreciseV, d *PreciseDims) []byte {
	le := binary.LittleEndian
	bits, divisor, norms := 8, float32(1), 1
	if a.V == PreciseCodes {
		bits, divisor, norms = v.Codec.Bits, v.Codec.Divisor(), v.Codec.Norms()
	}
	b = le.AppendUint32(b, uint32(d.Window))
	b = le.AppendUint32(b, uint32(bits))
	b = le.AppendUint32(b, math.Float32bits(divisor))
	b = le.AppendUint32(b, uint32(norms))
	b = le.AppendUint64(b, uint64(d.HeadsKV*a.vRows*norms))
	b = le.AppendUint64(b, uint64(a.vRows*norms))
	return le.AppendUint64(b, uint64(norms))
}
