package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// QKVRoPE are the operands of [RMSQKVRoPEKVStore]. E is the element type of the caches.
type QKVRoPE[E Float] struct {
	Q, K, V          runtime.Slice[float32] // in and out: [T, HeadsQ, HeadDim], [T, HeadsKV, HeadDim] twice
	QWeight, KWeight runtime.Slice[float32] // [HeadDim]; the zero Slice for queries or keys that are not normalised, as Llama's
	VWeight          runtime.Slice[float32] // [HeadDim], if VNorm; the zero Slice otherwise
	VNorm            bool                   // whether values are normalised; Gemma 3 does not
	QBias            runtime.Slice[float32] // [HeadsQ, HeadDim]: added first, as in Qwen2; the zero Slice for none
	KBias, VBias     runtime.Slice[float32] // [HeadsKV, HeadDim], likewise
	CacheK, CacheV   runtime.Slice[E]       // out: [Capacity] elements
	Position         runtime.Slice[uint32]  // one, read on the device: the position of the first of the T rows
	CacheOffset      runtime.Slice[uint32]  // one, read on the device: the element of the caches where they go
	InvFreq          runtime.Slice[float32] // [RotaryDim / 2], see RoPEParameters

	T, HeadsQ, HeadsKV int
	HeadDim            int         // even
	RotaryDim          int         // even, 0 to HeadDim: how many elements of a head turn
	Pairing            RoPEPairing // which of them turn together
	AttentionFactor    float32     // of the rotation, YaRN's; 0 means 1, since a factor of 0 would leave nothing to attend to
	Capacity           int         // elements of each cache that may be written, at least T * HeadsKV * HeadDim
	Eps                float32     // of the norms, if there are any
}

// RMSQKVRoPEKVStore makes the operands of attention from projections: biases, norms, rotary position embedding and the store
// to the key-value cache, in one launch. For every row t < T and head, with x the head's elements,
//
//	x[i] = x[i] + bias[head, i]                                            (with a bias)
//	y[i] = x[i] / sqrt(mean of x^2 + Eps) * weight[i]                      (with a weight; otherwise y = x)
//
// and for queries and keys, with angle = (Position + t) * InvFreq[p] for every p < RotaryDim / 2, and the elements l and h
// that [RoPEPairing] pairs for p, which are p and p + HeadDim/2 unless Pairing asks for others,
//
//	y[l], y[h] = y[l] cos - y[h] sin,  y[h] cos + y[l] sin                 (cos and sin times AttentionFactor)
//
// Elements that no pair has stay y. Q, K and V are rewritten in place. Keys and values also go to the caches, row t to element
// CacheOffset + t * HeadsKV * HeadDim.
//
// Position and CacheOffset live on the device, so that a recorded step advances without the host (see [DecodeAdvance]).
// The kernel does not trust them: where the store would not fit Capacity, or Position + T exceeds 32 bits, the whole
// launch is a no-op, Q included. The weights multiply as they are, as at [RMSNormBF16]. What goes to caches of float16 and
// bfloat16 is rounded to nearest, ties to even, and infinite beyond the largest finite number; K and V are not rounded.
//
// Longer slices than needed are allowed. T == 0 is a no-op.
//
// Slots: 0 Q, 1 K, 2 V, 3 QWeight, 4 KWeight, 5 VWeight (KWeight if not VNorm), 11 Position, 14 CacheK, 15 CacheV,
// 16 CacheOffset, 18 InvFreq (KWeight if RotaryDim is 0); scalars 6 T, 7 HeadsQ, 8 HeadsKV, 9 HeadDim, 10 RotaryDim,
// 17 Capacity, 19 VNorm (uint32), 13 Eps (float32).
//
// Without QWeight or KWeight, with a bias, another Pairing than RoPEHalves or an AttentionFactor other than 0 and 1, a kernel
// with options is launched. It has these slots as well: 22 QBias, 23 KBias, 24 VBias (slots of what there is not hold another
// operand, which is not read there); scalars 20 Pairing, 25 the sum of 1 (QWeight), 2 (KWeight), 4 (QBias), 8 (KBias) and
// 16 (VBias), of those that there are (uint32), 21 AttentionFactor (float32, never 0).
//
// Q, K, V, CacheK and CacheV must not overlap each other or anything else; inputs may overlap. Deterministic on one
// device. The angle is a float32 product, so its error grows with the position: some 6e-8 of the angle.
// Without a norm of its own and a bias, a head row is rotated as it is, and values pass bit for bit.
// Errors: ErrScalar if Eps is not finite, or not positive while there are norms, if AttentionFactor is neither 0 nor finite
// and positive, and for a Pairing that is none; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap for the rest.
//
// Sources: Su et al., "RoFormer", arXiv:2104.09864, with halves paired as in GPT-NeoX; the norms of Gemma 3,
// arXiv:2503.19786; biases, Qwen2, arXiv:2407.10671; the factor, Peng et al., "YaRN", arXiv:2309.00071.
func RMSQKVRoPEKVStore[E Float](p *runtime.Pass, a QKVRoPE[E]) error {
	return rmsQKVRoPEKVStore("nn.RMSQKVRoPEKVStore", p, &a, nil)
}

// UnsafeRMSQKVRoPEKVStore is [RMSQKVRoPEKVStore] with scalars 6 to 10, 13, 17 and 19, and with options 20, 21 and 25, in the
// caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeRMSQKVRoPEKVStore[E Float](p *runtime.Pass, a QKVRoPE[E], bind func(*runtime.ScalarBinder) error) error {
	return rmsQKVRoPEKVStore("nn.UnsafeRMSQKVRoPEKVStore", p, &a, bind)
}

// ValidateRMSQKVRoPEKVStore makes the checks of [RMSQKVRoPEKVStore] without encoding anything: for callers that set up
// scalars of their own first.
func ValidateRMSQKVRoPEKVStore[E Float](rt *runtime.Runtime, a QKVRoPE[E]) error {
	c := startOn("nn.ValidateRMSQKVRoPEKVStore", rt)
	qkvRoPE(&c, &a)
	return c.result()
}

// qkvRoPEViews are the exact ranges that the kernel touches.
type qkvRoPEViews struct {
	qkvViews
	cacheK, cacheV, position, offset runtime.View
}

func qkvRoPE[E Float](c *check, a *QKVRoPE[E]) (v qkvRoPEViews) {
	h := QKVHeads{Q: a.Q, K: a.K, V: a.V, QWeight: a.QWeight, KWeight: a.KWeight, VWeight: a.VWeight, VNorm: a.VNorm,
		QBias: a.QBias, KBias: a.KBias, VBias: a.VBias, InvFreq: a.InvFreq,
		T: a.T, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV, HeadDim: a.HeadDim, RotaryDim: a.RotaryDim,
		Pairing: a.Pairing, AttentionFactor: a.AttentionFactor, Eps: a.Eps}
	kvElements := c.qkvShape(&h, 1)
	if c.err == nil && (a.Capacity < 0 || uint64(a.Capacity) > math.MaxUint32) {
		c.refuse("Capacity", fmt.Sprint(a.Capacity), "0 to 2^32-1 elements", runtime.ErrLimit)
	}
	if c.err == nil && a.Capacity < kvElements {
		c.refuse("Capacity", fmt.Sprintf("%d elements", a.Capacity), fmt.Sprintf("at least %d, the keys of one call", kvElements), runtime.ErrShape)
	}
	v.qkvViews = c.qkvMemory(&h)
	size := floatSize[E]()
	c.memory(memory{"CacheK", a.CacheK.View(), a.Capacity, size}, memory{"CacheV", a.CacheV.View(), a.Capacity, size},
		memory{"Position", a.Position.View(), 1, 4}, memory{"CacheOffset", a.CacheOffset.View(), 1, 4})
	if c.err != nil || v.rows == 0 {
		return v
	}
	v.cacheK, v.cacheV = first(a.CacheK.View(), a.Capacity, size), first(a.CacheV.View(), a.Capacity, size)
	v.position, v.offset = first(a.Position.View(), 1, 4), first(a.CacheOffset.View(), 1, 4)
	c.disjoint(5, operand{"Q", v.q}, operand{"K", v.k}, operand{"V", v.v}, operand{"CacheK", v.cacheK}, operand{"CacheV", v.cacheV},
		operand{"QWeight", v.qWeight}, operand{"KWeight", v.kWeight}, operand{"VWeight", v.vWeight},
		operand{"QBias", v.qBias}, operand{"KBias", v.kBias}, operand{"VBias", v.vBias},
		operand{"Position", v.position}, operand{"CacheOffset", v.offset}, operand{"InvFreq", v.invFreq})
	return v
}

func rmsQKVRoPEKVStore[E Float](fn string, p *runtime.Pass, a *QKVRoPE[E], bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	v := qkvRoPE(&c, a)
	if c.err != nil || v.rows == 0 {
		return c.result()
	}
	kernel := kernelOf[E]("rms_qkv_rope_kv_store", "rms_qkv_rope_kv_store_f16", "rms_qkv_rope_kv_store_bf16")
	if v.options {
		kernel = kernelOf[E]("rms_qkv_rope_kv_store_opt", "rms_qkv_rope_kv_store_f16_opt", "rms_qkv_rope_kv_store_bf16_opt")
	}
	l := p.Kernel(kernel)
	v.bind(l)
	l.Read(11, v.position)
	l.Write(14, v.cacheK)
	l.Write(15, v.cacheV)
	l.Read(16, v.offset)
	l.Uint32(17, uint32(a.Capacity))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(RoPEGroups(v.rows)), runtime.D1(RoPERows*SIMDWidth))
}
