package nn

import (
	"math"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// EmbedLookupQ4MLX gathers rows of an embedding table and scales them:
//
//	out[t, c] = scale * w[ids[t], c],  t < tokens, c < table.Cols()
//
// An id that the table has no row for gives a row of zeros. Gemma scales embeddings by the square root of their width.
//
// Shapes: out [tokens, table.Cols()], ids [tokens]; longer slices are allowed, and what lies beyond stays as it is.
// ids are read on the device when the pass runs. tokens == 0 is a no-op.
//
// Slots: 0 packed, 1 scales and biases, 3 ids, 4 out; scalars 5 hidden, 6 group size, 7 vocabulary, 8 tokens (uint32),
// 9 scale (float32).
//
// out must not overlap the table or ids. Deterministic: each element is rounded twice, once as weight and once scaled.
// Errors: ErrScalar if scale is not finite; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap for the rest.
//
// Source: the format of mx.quantize, MLX.
func EmbedLookupQ4MLX(p *runtime.Pass, out runtime.Slice[float32], table Q4MLXBank, ids runtime.Slice[uint32], tokens int, scale float32) error {
	return embedLookupQ4MLX("nn.EmbedLookupQ4MLX", p, out, table, ids, tokens, scale, nil)
}

// UnsafeEmbedLookupQ4MLX is [EmbedLookupQ4MLX] with scalars 5 to 9 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeEmbedLookupQ4MLX(p *runtime.Pass, out runtime.Slice[float32], table Q4MLXBank, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	return embedLookupQ4MLX("nn.UnsafeEmbedLookupQ4MLX", p, out, table, ids, tokens, scale, bind)
}

func embedLookupQ4MLX(fn string, p *runtime.Pass, out runtime.Slice[float32], table Q4MLXBank, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	return embedPacked(fn, p, out, table.weights(), lookup{"embed_lookup_q4_mlx", quant.CodesPerWord, EmbedGroups, 0}, ids, tokens, scale, bind)
}

// lookup is how a table of packed codes is read.
type lookup struct {
	kernel string
	cols   int                          // of a thread
	groups func(tokens, hidden int) int // of the launch
	scales quant.ScaleType              // the function constant of tables in the affine format, else 0
}

func embedPacked(fn string, p *runtime.Pass, out runtime.Slice[float32], w weights, how lookup, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.finite("scale", scale)
	c.weights("table", &w)
	c.dim("tokens", tokens, 0)
	n := c.elements("tokens * columns", tokens, w.cols)
	// A thread's position in the grid is 32 bits wide, up to the end of the last threadgroup.
	c.product("tokens * threads of a row", math.MaxUint32-EmbedThreads, tokens, w.cols/how.cols)
	c.weightsOwned("table", &w)
	c.memory(memory{"ids", ids.View(), tokens, 4}, memory{"out", out.View(), n, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	o, in := first(out.View(), n, 4), first(ids.View(), tokens, 4)
	c.apart(operand{"out", o}, "the table", &w)
	c.disjoint(1, operand{"out", o}, operand{"ids", in})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(how.kernel)
	if how.scales != 0 {
		l.ConstantUint32(constAffineScale, scaleKind(how.scales))
	}
	w.bind(l, 0)
	l.Read(3, in)
	l.Write(4, o)
	l.Uint32(5, uint32(w.cols))
	l.Uint32(6, uint32(w.size))
	l.Uint32(7, uint32(w.rows))
	l.Uint32(8, uint32(tokens))
	l.Float32(9, scale)
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(how.groups(tokens, w.cols)), runtime.D1(EmbedThreads))
}
