package nn

import "github.com/ingot-metal/ingot/runtime"

// EmbedLookupAffine gathers rows of an embedding table in MLX's affine format and scales them:
//
//	out[t, c] = scale * w[ids[t], c],  t < tokens, c < table.Cols()
//
// An id that the table has no row for gives a row of zeros. Gemma scales embeddings by the square root of their width.
//
// Shapes: out [tokens, table.Cols()], ids [tokens]; longer slices are allowed, and what lies beyond stays as it is.
// ids are read on the device when the pass runs. tokens == 0 is a no-op.
//
// Slots: 0 codes, 1 scales, 2 biases, 3 ids, 4 out; scalars 5 hidden, 6 group size, 7 vocabulary, 8 tokens (uint32),
// 9 scale (float32).
//
// out must not overlap the table or ids. Deterministic: each element is rounded twice, once as weight and once scaled.
// Errors: ErrScalar if scale is not finite; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap for the rest.
func EmbedLookupAffine(p *runtime.Pass, out runtime.Slice[float32], table AffineBank, ids runtime.Slice[uint32], tokens int, scale float32) error {
	return embedLookupAffine("nn.EmbedLookupAffine", p, out, table, ids, tokens, scale, nil)
}

// UnsafeEmbedLookupAffine is [EmbedLookupAffine] with scalars 5 to 9 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeEmbedLookupAffine(p *runtime.Pass, out runtime.Slice[float32], table AffineBank, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	return embedLookupAffine("nn.UnsafeEmbedLookupAffine", p, out, table, ids, tokens, scale, bind)
}

// embedAffineCols is how many columns a thread of the lookup takes.
const embedAffineCols = 16

var embedAffineKernels = [...]string{4: "embed_lookup_affine_b4", 6: "embed_lookup_affine_b6", 8: "embed_lookup_affine_b8"}

// EmbedAffineGroups is the number of threadgroups of [EmbedLookupAffine] for that many tokens.
func EmbedAffineGroups(tokens, hidden int) int {
	return ceilDiv(tokens*(hidden/embedAffineCols), EmbedThreads)
}

func embedLookupAffine(fn string, p *runtime.Pass, out runtime.Slice[float32], table AffineBank, ids runtime.Slice[uint32], tokens int, scale float32,
	bind func(*runtime.ScalarBinder) error) error {
	how := lookup{embedAffineKernels[table.format.Bits], embedAffineCols, EmbedAffineGroups, table.format.Scale}
	return embedPacked(fn, p, out, table.weights(), how, ids, tokens, scale, bind)
}
