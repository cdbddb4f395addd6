package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// TQHBCache is a cache of encoded vectors, of keys or of values.
type TQHBCache struct {
	Codes    runtime.Slice[uint8]   // [heads, Capacity, Codec.Dim]
	Norms    runtime.Slice[float32] // [heads, Capacity, Codec.Norms()]
	Capacity int                    // positions
	Codec    quant.TQHB
}

// TQHBEncode rotates and quantises the vectors of some tokens and puts them into a cache, as [quant.TQHB.Encode] does:
//
//	codes[h, pos, :], norms[h, pos, :] = encoded x[t, h, :],  pos = start[0] + t
//
// for t < tokens and h < heads. With ring pos is taken modulo the capacity, and tokens is at most that; without, nothing is written for
// a pos from the capacity on. Norms are summed in float32 here: a number that is as near to two levels may get the other one's code.
// A vector that is not finite has a norm that is not.
//
// Shapes: x [tokens, heads, Dim], start [1], read on the device when the pass runs. tokens == 0 and heads == 0 are no-ops.
//
// Slots: 0 x, 1 codes, 2 norms, 3 start; scalars 4 tokens, 5 heads, 6 capacity, 7 bits (uint32), 8 Codec.Divisor() (float32), 9
// whether it is a ring (uint32).
//
// Codes and norms must not overlap each other, x or start. Deterministic; a vector's codes do not depend on the others. Errors:
// ErrScalar for a codec whose bits or factor are none; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap.
func TQHBEncode(p *runtime.Pass, to TQHBCache, x runtime.Slice[float32], start runtime.Slice[uint32], tokens, heads int, ring bool) error {
	return tqhbEncode("nn.TQHBEncode", p, to, x, start, tokens, heads, ring, nil)
}

// UnsafeTQHBEncode is [TQHBEncode] with its scalars in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeTQHBEncode(p *runtime.Pass, to TQHBCache, x runtime.Slice[float32], start runtime.Slice[uint32], tokens, heads int, ring bool,
	bind func(*runtime.ScalarBinder) error) error {
	return tqhbEncode("nn.UnsafeTQHBEncode", p, to, x, start, tokens, heads, ring, bind)
}

var tqhbEncoders = map[int]string{64: "tqhb_encode_h64", 128: "tqhb_encode_h128", 256: "tqhb_encode_h256", 512: "tqhb_encode_h512"}

func tqhbEncode(fn string, p *runtime.Pass, to TQHBCache, x runtime.Slice[float32], live runtime.Slice[uint32], tokens, heads int, ring bool,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.codec("Codec", to.Codec)
	c.dim("tokens", tokens, 0)
	c.dim("heads", heads, 0)
	c.dim("Capacity", to.Capacity, 1)
	if c.err == nil && ring && tokens > to.Capacity {
		c.refuse("tokens", fmt.Sprint(tokens), fmt.Sprintf("at most the ring's capacity, %d", to.Capacity), runtime.ErrShape)
	}
	if c.err != nil {
		return c.result()
	}
	groups := c.product("tokens * heads", maxDim, tokens, heads)
	n := c.elements("tokens * heads * Dim", tokens, heads, to.Codec.Dim)
	codes := c.elements("heads * Capacity * Dim", heads, to.Capacity, to.Codec.Dim)
	norms := c.elements("heads * Capacity * norms", heads, to.Capacity, to.Codec.Norms())
	c.memory(memory{"Codes", to.Codes.View(), codes, 1}, memory{"Norms", to.Norms.View(), norms, 4}, memory{"x", x.View(), n, 4},
		memory{"start", live.View(), 1, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	toCodes, toNorms := first(to.Codes.View(), codes, 1), first(to.Norms.View(), norms, 4)
	from, at := first(x.View(), n, 4), first(live.View(), 1, 4)
	c.disjoint(2, operand{"Codes", toCodes}, operand{"Norms", toNorms}, operand{"x", from}, operand{"start", at})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(tqhbEncoders[to.Codec.Dim])
	l.Read(0, from)
	l.Write(1, toCodes)
	l.Write(2, toNorms)
	l.Read(3, at)
	l.Uint32(4, uint32(tokens))
	l.Uint32(5, uint32(heads))
	l.Uint32(6, uint32(to.Capacity))
	l.Uint32(7, uint32(to.Codec.Bits))
	l.Float32(8, to.Codec.Divisor())
	l.Uint32(9, flagOf(ring))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(groups), runtime.D1(SIMDWidth))
}

// TQHBDequantize writes the values of codes, still rotated:
//
//	out[i] = level[codes[i]] (norm / divisor)
//
// for n vectors, with the norm of the vector or, for Dim 512, of its half. The quotient and the product are rounded to float32, as
// [quant.TQHB.Decode] does and [FlashAttnPrecise] does: the same bits. Codes beyond the codebook count as its last one.
//
// Shapes: out and codes [n, Codec.Dim], norms [n, Codec.Norms()]. n == 0 is a no-op.
//
// Slots: 0 codes, 1 norms, 2 out; scalars 3 n Dim, 4 numbers to a norm, 5 bits (uint32), 6 Codec.Divisor() (float32).
//
// out must not overlap codes or norms. Deterministic. Errors: those of [TQHBEncode].
func TQHBDequantize(p *runtime.Pass, out runtime.Slice[float32], codes runtime.Slice[uint8], norms runtime.Slice[float32], codec quant.TQHB, n int) error {
	return tqhbDequantize("nn.TQHBDequantize", p, out, codes, norms, codec, n, nil)
}

// UnsafeTQHBDequantize is [TQHBDequantize] with its scalars in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeTQHBDequantize(p *runtime.Pass, out runtime.Slice[float32], codes runtime.Slice[uint8], norms runtime.Slice[float32], codec quant.TQHB,
	n int, bind func(*runtime.ScalarBinder) error) error {
	return tqhbDequantize("nn.UnsafeTQHBDequantize", p, out, codes, norms, codec, n, bind)
}

func tqhbDequantize(fn string, p *runtime.Pass, out runtime.Slice[float32], codes runtime.Slice[uint8], norms runtime.Slice[float32], codec quant.TQHB,
	n int, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.codec("codec", codec)
	c.dim("n", n, 0)
	if c.err != nil {
		return c.result()
	}
	all, some := c.product("n * Dim", maxDim, n, codec.Dim), n*codec.Norms()
	c.memory(memory{"out", out.View(), all, 4}, memory{"codes", codes.View(), all, 1}, memory{"norms", norms.View(), some, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	to, from, sizes := first(out.View(), all, 4), first(codes.View(), all, 1), first(norms.View(), some, 4)
	c.disjoint(1, operand{"out", to}, operand{"codes", from}, operand{"norms", sizes})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("tqhb_dequantize")
	l.Read(0, from)
	l.Read(1, sizes)
	l.Write(2, to)
	l.Uint32(3, uint32(all))
	l.Uint32(4, uint32(codec.Dim/codec.Norms()))
	l.Uint32(5, uint32(codec.Bits))
	l.Float32(6, codec.Divisor())
	l.Scalars(bind)
	return dispatchElements(l, all)
}

// codec refuses what is no codec.
func (c *check) codec(arg string, codec quant.TQHB) {
	if c.err != nil {
		return
	}
	if e, ok := shapeOf(c.fn, codec.Validate()).(*runtime.Error); ok {
		c.refuse(arg+"."+e.Arg, e.Have, e.Need, e.Err)
	}
}
