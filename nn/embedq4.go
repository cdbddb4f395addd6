package nn

import (
	"github.com/ingot-metal/ingot/nn/quant"
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
	return embedPacked(fn, p, out, table.weights(), lookup{"embed_lookup_q4", quant.CodesPerWord, EmbedGroups, 0}, ids, tokens, scale, bind)
}
