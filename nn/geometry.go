package nn

import "github.com/ingot-metal/ingot/nn/quant"

// Geometry of the kernels: which threadgroups a launch has, as functions of shapes alone.
const (
	// SIMDWidth is the number of lanes of a simdgroup that the kernels are written for. The runtime refuses pipelines
	// with another width.
	SIMDWidth = 32
	// MaxRowThreads is the most threads that a threadgroup gets in kernels with one threadgroup per row.
	MaxRowThreads = 1024
	// GEMVRows is how many rows of a matrix a threadgroup of a matrix-vector product computes: two simdgroups of four.
	GEMVRows = 8
	// GEMVThreads is the size of such a threadgroup.
	GEMVThreads = 64
	// EmbedThreads is the size of a threadgroup of the embedding lookups.
	EmbedThreads = 64
	// RoPERows is how many head rows a threadgroup of RMSQKVRoPE and RMSQKVRoPEKVStore takes, a simdgroup for each.
	RoPERows = 8
)

func ceilDiv(a, b int) int { return a/b + min(a%b, 1) }

// RowThreads is the size of the threadgroup that reduces a row of n elements: whole simdgroups, some four elements for a
// thread, at most MaxRowThreads.
func RowThreads(n int) int {
	return min(max(ceilDiv(ceilDiv(n, 4), SIMDWidth), 1)*SIMDWidth, MaxRowThreads)
}

// GEMVTiles is the number of threadgroups of a matrix-vector product with that many rows.
func GEMVTiles(rows int) int { return ceilDiv(rows, GEMVRows) }

// EmbedGroups is the number of threadgroups of [EmbedLookupQ4MLX] and [EmbedLookupQ4] for that many tokens: a thread takes a word
// of eight codes.
func EmbedGroups(tokens, hidden int) int {
	return ceilDiv(tokens*(hidden/quant.CodesPerWord), EmbedThreads)
}

// RoPEGroups is the number of threadgroups of RMSQKVRoPE and RMSQKVRoPEKVStore for that many head rows.
func RoPEGroups(rows int) int { return ceilDiv(rows, RoPERows) }
