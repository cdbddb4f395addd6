package nn

import (
	"github.com/ingot-metal/ingot/runtime"
)

// EmbedLookup gathers rows of an embedding table of any type of weights and scales them:
//
//	out[t, c] = scale * w[ids[t], c],  t < tokens, c < table.Cols()
//
// w is the float32 number that the type defines ([quant.BlockFormat.Decode]). An id that the table has no row for gives a row
// of zeros. Gemma scales embeddings by the square root of their width; a scale of 1 gives the weights themselves.
//
// Shapes: out [tokens, table.Cols()], ids [tokens]; longer slices are allowed, and what lies beyond stays as it is.
// ids are read on the device when the pass runs. tokens == 0 is a no-op.
//
// Slots: 0 table, 1 ids, 2 out; scalars 3 columns, 4 vocabulary, 5 tokens (uint32), 6 scale (float32).
//
// out must not overlap the table or ids. Deterministic: each element is the product of weight and scale, rounded once.
// Errors: ErrScalar if scale is not finite; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap for the rest.
func EmbedLookup[W WeightBank](p *runtime.Pass, out runtime.Slice[float32], table W, ids runtime.Slice[uint32], tokens int, scale float32) error {
	return embedLookup("nn.EmbedLookup", p, out, table.weights(), table.Type(), ids, tokens, scale, nil)
}

// UnsafeEmbedLookup is [EmbedLookup] with scalars 3 to 6 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeEmbedLookup[W WeightBank](p *runtime.Pass, out runtime.Slice[float32], table W, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	return embedLookup("nn.UnsafeEmbedLookup", p, out, table.weights(), table.Type(), ids, tokens, scale, bind)
}

// EmbedLookupGeometry is the launch of [EmbedLookup]: a thread for each column of plain numbers, and for each four
// of a block format.
func EmbedLookupGeometry(t WeightType, tokens, cols int) (groups, threads runtime.Size) {
	if t.Block() != 0 {
		cols /= 4
	}
	return runtime.D2(ceilDiv(cols, EmbedThreads), tokens), runtime.D1(EmbedThreads)
}

func embedLookup(fn string, p *runtime.Pass, out runtime.Slice[float32], table weights, t WeightType, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	c.finite("scale", scale)
	c.weights("table", &table)
	c.dim("tokens", tokens, 0)
	n := c.elements("tokens * columns", tokens, table.cols)
	c.weightsOwned("table", &table)
	c.memory(memory{"ids", ids.View(), tokens, 4}, memory{"out", out.View(), n, 4})
	if c.err != nil || n == 0 {
		return c.result()
	}
	o, in := first(out.View(), n, 4), first(ids.View(), tokens, 4)
	c.disjoint(1, operand{"out", o}, operand{"the table", table.parts[0]}, operand{"ids", in})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel(embedLookupKernels[t])
	l.Read(0, table.parts[0])
	l.Read(1, in)
	l.Write(2, o)
	l.Uint32(3, uint32(table.cols))
	l.Uint32(4, uint32(table.rows))
	l.Uint32(5, uint32(tokens))
	l.Float32(6, scale)
	l.Scalars(bind)
	return l.Dispatch(EmbedLookupGeometry(t, tokens, table.cols))
}

// embedLookupKernels are the kernels by the type of the table.
var embedLookupKernels = [len(weightInfos)]string{
	WeightF32:    "embed_lookup_f32",
	WeightF16:    "embed_lookup_f16",
	WeightBF16:   "embed_lookup_bf16",
	WeightQ4_0:   "embed_lookup_q4_0",
	WeightQ5_0:   "embed_lookup_q5_0",
	WeightQ8_0:   "embed_lookup_q8_0",
	WeightIQ4_NL: "embed_lookup_iq4_nl",
	WeightQ4_K:   "embed_lookup_q4_K",
	WeightQ5_K:   "embed_lookup_q5_K",
	WeightQ6_K:   "embed_lookup_q6_K",
}
