package nn

import (
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// EmbedLookupQ4 gathers rows of an embedding table in the signed 4-bit format and scales them:
//
//	out[t, c] = scale * w[ids[t], c],  t < tokens, c < table.Cols()
//
// An id that the table has no row for gives a row of zeros. A scale of 1 gives the weights themselves.
//
// Shapes: out [tokens, table.Cols()], ids [tokens]; longer slices are allowed, and what lies beyond stays as it is.
// ids are read on the device when the pass runs. tokens == 0 is a no-op.
//
// Slots: 0 packed, 1 scales, 2 zeros, 3 ids, 4 out; scalars 5 hidden, 6 group size, 7 vocabulary, 8 tokens (uint32),
// 9 scale (float32).
//
// out must not overlap the table or ids. Deterministic: each element is rounded three times, as code - zero, as weight and
// once scaled.
// Errors: ErrScalar if scale is not finite; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap for the rest.
func EmbedLookupQ4(p *runtime.Pass, out runtime.Slice[float32], table Q4Bank, ids runtime.Slice[uint32], tokens int, scale float32) error {
	return embedLookupQ4("nn.EmbedLookupQ4", p, out, table, ids, tokens, scale, nil)
}

// UnsafeEmbedLookupQ4 is [EmbedLookupQ4] with scalars 5 to 9 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeEmbedLookupQ4(p *runtime.Pass, out runtime.Slice[float32], table Q4Bank, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	return embedLookupQ4("nn.UnsafeEmbedLookupQ4", p, out, table, ids, tokens, scale, bind)
}

func embedLookupQ4(fn string, p *runtime.Pass, out runtime.Slice[float32], table Q4Bank, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.finite("scale", scale)
	c.q4bank("table", table, 0)
	c.dim("tokens", tokens, 0)
	n := c.elements("tokens * columns", tokens, table.cols)
	// A thread's position in the grid is 32 bits wide, up to the end of the last threadgroup.
	c.product("tokens * words", math.MaxUint32-EmbedThreads, tokens, table.cols/8)
	c.q4bankOwned("table", table)
	c.memory(memory{"ids", ids.View(), tokens, 4}, memory{"out", out.View(), n, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	o, in := first(out.View(), n, 4), first(ids.View(), tokens, 4)
	c.disjoint(1, operand{"out", o}, operand{"the table", table.packed.View()}, operand{"the table", table.scales.View()},
		operand{"the table", table.zeros.View()}, operand{"ids", in})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("embed_lookup_q4")
	l.Read(0, table.packed.View())
	l.Read(1, table.scales.View())
	l.Read(2, table.zeros.View())
	l.Read(3, in)
	l.Write(4, o)
	l.Uint32(5, uint32(table.cols))
	l.Uint32(6, uint32(table.size))
	l.Uint32(7, uint32(table.rows))
	l.Uint32(8, uint32(tokens))
	l.Float32(9, scale)
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(EmbedGroups(tokens, table.cols)), runtime.D1(EmbedThreads))
}
