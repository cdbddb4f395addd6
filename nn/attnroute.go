package nn

import "github.com/ingot-metal/ingot/runtime"

// attnSetting is one way to run attention of a head dimension, with its kernels by the element type of the cache: f32, f16,
// bf16. A name that is empty does not exist.
type attnSetting struct {
	dim, lanes, n int // n: simdgroups of FlashAttnRows, keys of a chunk of FlashAttnDecode
	plain, opt    [3]string
}

// attnDims are the head dimensions that there are kernels for, with what is launched unless another setting is asked for.
//
// Lanes and groups for 128, 256 and 512, the chunks and the lanes of a key are those that others measured to be the best on
// an M5 Pro; the rest follows their rule of some 16 elements for a lane, or 8 up to 64, and 32 query rows to a threadgroup or
// more.
var attnDims = [...]struct{ dim, lanes, groups, chunk int }{
	{8, 1, 8, 256}, {16, 2, 8, 256}, {32, 4, 8, 256}, {64, 8, 8, 256}, {80, 4, 8, 256}, {96, 8, 8, 256}, {128, 8, 8, 256}, {192, 16, 16, 128}, {256, 16, 32, 128}, {512, 32, 32, 128},
}

// AttnHeadDims are the head dimensions that [FlashAttnRows] and [FlashAttnDecode] are built for.
func AttnHeadDims() []int {
	dims := make([]int, 0, len(attnDims))
	for _, d := range attnDims {
		dims = append(dims, d.dim)
	}
	return dims
}

// RowsLanesFor is how many lanes of a simdgroup share a query row in [FlashAttnRows], unless AttnDims.Lanes asks for
// another number; 0 if there is no kernel for the head dimension.
func RowsLanesFor(headDim int) int {
	for _, d := range attnDims {
		if d.dim == headDim {
			return d.lanes
		}
	}
	return 0
}

// RowsGroupsFor is how many simdgroups a full threadgroup of [FlashAttnRows] has, unless AttnDims.Groups asks for another
// number; 0 if there is no kernel for the head dimension.
func RowsGroupsFor(headDim int) int {
	for _, d := range attnDims {
		if d.dim == headDim {
			return d.groups
		}
	}
	return 0
}

// DecodeChunkFor is how many keys a partial result of [FlashAttnDecode] covers, unless AttnDims.Chunk asks for another
// number; 0 if there is no kernel for the head dimension.
func DecodeChunkFor(headDim int) int {
	for _, d := range attnDims {
		if d.dim == headDim {
			return d.chunk
		}
	}
	return 0
}

// DecodeLanesFor is how many lanes share a key in [FlashAttnDecode], unless AttnDims.Lanes asks for another number; 0 if there
// is no kernel for the head dimension.
func DecodeLanesFor(headDim int) int { return RowsLanesFor(headDim) }

// DecodeHeadsFor is how many heads, one for each simdgroup, share a threadgroup of [FlashAttnDecode]'s first kernel: those
// that share keys, and for head dimension 512 all of a batch item, whose keys lie side by side. Where that is more than 32
// it steps down. The result divides heads if headsKV does, and is 1 where there are none.
func DecodeHeadsFor(headDim, heads, headsKV int) int {
	const most = MaxRowThreads / SIMDWidth
	if heads < 1 || headsKV < 1 || headsKV > heads {
		return 1
	}
	if headDim == 512 && heads <= most {
		return heads
	}
	if group := heads / headsKV; group <= most {
		return group
	}
	return 1
}

// AttnKernel is a way to compute attention.
type AttnKernel int

const (
	AttnRowsKernel   AttnKernel = iota // FlashAttnRows
	AttnDecodeKernel                   // FlashAttnDecode
)

// String is the name of the function.
func (k AttnKernel) String() string {
	if k == AttnDecodeKernel {
		return "FlashAttnDecode"
	}
	return "FlashAttnRows"
}

// AttnKernelFor is what [Attention] launches for tq query rows over a cache of capacity positions: FlashAttnDecode for a
// single row, whose simdgroups would otherwise be few and busy for long.
func AttnKernelFor(tq, capacity int) AttnKernel {
	if tq == 1 && capacity > 0 {
		return AttnDecodeKernel
	}
	return AttnRowsKernel
}

// AttnDecodeChunks is the number of partial results of each head of [FlashAttnDecode] for a cache of capacity positions.
func AttnDecodeChunks(capacity, chunk int) int { return ceilDiv(capacity, max(chunk, 1)) }

// AttnRowsGeometry is the launch of [FlashAttnRows] with that many lanes for a query row and simdgroups for a full
// threadgroup. Fewer query rows than a threadgroup takes leave out the simdgroups that would have none.
func AttnRowsGeometry(lanes, simdgroups, batch, tq, heads int) (groups, threads runtime.Size) {
	simdgroups = max(simdgroups, 1)
	rows := max(SIMDWidth/max(lanes, 1), 1)
	n := min(ceilDiv(tq, rows), simdgroups)
	return runtime.D2(ceilDiv(tq, rows*simdgroups), batch*heads), runtime.D1(n * SIMDWidth)
}

// AttnDecodeGeometry is the launch of [FlashAttnDecode]'s first kernel with that many keys for a chunk and heads for a
// threadgroup.
func AttnDecodeGeometry(chunk, headBlock, batch, heads, capacity int) (groups, threads runtime.Size) {
	headBlock = max(headBlock, 1)
	return runtime.D2(AttnDecodeChunks(capacity, chunk), ceilDiv(batch*heads, headBlock)), runtime.D1(headBlock * SIMDWidth)
}

// findAttn is the setting of a table, or nil.
func findAttn(table []attnSetting, dim, lanes, n int) *attnSetting {
	for i := range table {
		if s := &table[i]; s.dim == dim && s.lanes == lanes && s.n == n {
			return s
		}
	}
	return nil
}
