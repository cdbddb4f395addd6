package nn

import (
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// PreciseTile is the tile of [FlashAttnPrecise]: query rows of a threadgroup, and keys that it takes at once. 32 and 16 for head
// dimensions 64, 128 and 256, 8 and 64 for 512, 0 and 0 for others, which it is not built for.
func PreciseTile(headDim int) (rows, keys int) {
	switch headDim {
	case 64, 128, 256:
		return 32, 16
	case 512:
		return 8, 64
	}
	return 0, 0
}

// PreciseDims are the shape and the rules of [FlashAttnPrecise].
type PreciseDims struct {
	Batch, Heads, HeadsKV int
	HeadDim               int // 64, 128, 256 or 512
	Tq                    int // query rows
	Tk                    int // keys
	Capacity              int // rows of a head of k and of a cached v, at least Tk
	QOffset               int // position of query row 0 among the keys; not used with Mask
	Window                int // keys that a row sees, its own included; 0 means all
	Causal                bool
	Scale                 float32 // finite and above 0
	Softcap               float32 // limits scores to ±Softcap, after the scale; 0 means no limit

	// Mask is added to the scores: 0 or minus infinity, [Tq, Tk] for all heads or [Batch, Heads, Tq, Tk]. The zero Slice means none.
	// It takes the place of Window and Causal. Not with HeadDim 512.
	Mask runtime.Slice[half.Float16]
	// Blocks says what is in the tiles of a mask for all heads, as [PreciseBlocks] writes it. The zero Slice means it is not known.
	Blocks runtime.Slice[uint8]
	// Sinks are logits, [Heads], that take part in a head's softmax without a value. The zero Slice means none.
	Sinks runtime.Slice[float32]
}

// PreciseV is V of [FlashAttnPrecise] in one of three forms: one of F32, F16 and Codes is set.
type PreciseV struct {
	F32   runtime.Slice[float32]      // [Batch, HeadsKV, Tk, HeadDim]: not a cache
	F16   runtime.Slice[half.Float16] // [Batch, HeadsKV, Capacity, HeadDim]
	Codes runtime.Slice[uint8]        // [Batch, HeadsKV, Capacity, HeadDim], with Norms
	Norms runtime.Slice[float32]      // [Batch, HeadsKV, Capacity, Codec.Norms()]
	Codec quant.TQHB                  // of Codes; Codec.Dim is HeadDim
}

// FlashAttnPrecise is attention of many query rows, with queries and keys as float16 and everything after in float32:
//
//	s[j] = Scale q·k[j], then Softcap tanh(s[j] / Softcap) if there is a Softcap, then + mask[t, j] if there is a Mask
//	out  = sum of e^s[j] v[j] / (sum of e^s[j] + e^sink)
//
// for batch item, head h and query row t, over the keys j < Tk of head h / (Heads/HeadsKV) that row t sees: with Causal those up to
// its position QOffset + t, with Window the last Window positions up to it (Window alone hides nothing that comes after). A row that
// sees nothing is exactly zero. Dot products of exact products are summed in float32; V is widened exactly, or dequantised as
// [TQHBDequantize] does. Weights are powers of 2 of scores times log2(e), with HeadDim 512 powers of e.
//
// Shapes: q and out [Batch, Heads, Tq, HeadDim], k [Batch, HeadsKV, Capacity, HeadDim], v as [PreciseV] says: a head's rows lie
// together, unlike those of [FlashAttnRows]. Rows from Tk on are not read. Keys that no row of a tile sees are skipped; others must
// be finite even where a row does not see them. HeadsKV divides Heads. q, k, v and out start at multiples of 8 bytes. Mask and Blocks have exactly the lengths of their shapes.
// Tq == 0, Heads == 0 and Batch == 0 are no-ops; Tk is at least 1. With Causal or Window QOffset + Tq is at most Tk. With codes
// out is rotated as V is: undo it with [quant.TQHB.Unrotate], and rotate queries only if keys are.
//
// Slots: 0 q, 1 k, 2 v, 3 out, 8 Sinks, 10 Norms; with HeadDim up to 256 also 6 Mask, 7 Blocks; 4, 9 and (up to 256) 5 are blocks of
// parameters. What is not there is bound to something that is. Function constants 200, 201, 300, 301, 303, 310, 311, 312; see
// [PrecisePipeline]. The parameters of a recorded call are the program's; there is no Unsafe variant.
//
// out must not overlap anything; inputs may overlap. Deterministic on one device; a row's result does not depend on other rows, heads
// and batch items, nor on how rows are cut into calls. Devices without simdgroup matrices are refused. Errors: ErrShape, ErrLimit, ErrScalar, ErrForeign, ErrClosed, ErrOverlap.
//
// Source: Dao, "FlashAttention-2" (2023), with the tiles of mlx-native's precise prefill kernels.
func FlashAttnPrecise(p *runtime.Pass, out runtime.Slice[float32], q, k runtime.Slice[half.Float16], v PreciseV, d PreciseDims) error {
	c := start("nn.FlashAttnPrecise", p)
	var plan precisePlan
	plan.check(&c, out, q, k, &v, &d)
	if c.err != nil || !plan.work {
		return c.result()
	}
	rows, _ := PreciseTile(d.HeadDim)
	l := p.Kernel(plan.Kernel())
	plan.constants(l)
	l.Read(0, plan.q)
	l.Read(1, plan.k)
	l.Read(2, plan.v)
	l.Write(3, plan.out)
	var block [160]byte
	l.Bytes(4, plan.attnParams(block[:0], &d))
	simdgroups := 8
	if d.HeadDim < 512 {
		simdgroups = 4
		l.Bytes(5, plan.maskParams(block[:0], &d))
		l.Read(6, plan.mask)
		l.Read(7, plan.blocks)
	}
	l.Read(8, plan.sinks)
	l.Bytes(9, plan.preciseParams(block[:0], &v, &d))
	if plan.V == PreciseCodes {
		l.Read(10, plan.norms)
	}
	return l.Dispatch(runtime.D3(ceilDiv(d.Tq, rows), d.Heads, d.Batch), runtime.D2(SIMDWidth, simdgroups))
}

// ValidateFlashAttnPrecise makes the checks of [FlashAttnPrecise] without encoding anything.
func ValidateFlashAttnPrecise(rt *runtime.Runtime, out runtime.Slice[float32], q, k runtime.Slice[half.Float16], v PreciseV, d PreciseDims) error {
	c := startOn("nn.ValidateFlashAttnPrecise", rt)
	var plan precisePlan
	plan.check(&c, out, q, k, &v, &d)
	return c.result()
}
