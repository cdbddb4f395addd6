package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// QKVRoPE are the operands of [RMSQKVRoPEKVStore]. E is the element type of the caches.
type QKVRoPE[E Float] struct {
	Q, K, V          runtime.Slice[float32] // in and out: [T, HeadsQ, HeadDim], [T, HeadsKV, HeadDim] twice
	QWeight, KWeight runtime.Slice[float32] // [HeadDim]
	VWeight          runtime.Slice[float32] // [HeadDim], if VNorm; the zero Slice otherwise
	VNorm            bool                   // whether values are normalised; Gemma 3 does not
	CacheK, CacheV   runtime.Slice[E]       // out: [Capacity] elements
	Position         runtime.Slice[uint32]  // one, read on the device: the position of the first of the T rows
	CacheOffset      runtime.Slice[uint32]  // one, read on the device: the element of the caches where they go
	InvFreq          runtime.Slice[float32] // [RotaryDim / 2], see RoPEInverseFrequencies

	T, HeadsQ, HeadsKV int
	HeadDim            int     // even
	RotaryDim          int     // even, 0 to HeadDim: how many elements of a head turn
	Capacity           int     // elements of each cache that may be written, at least T * HeadsKV * HeadDim
	Eps                float32 // of the norms
}

// RMSQKVRoPEKVStore makes the operands of attention from projections: norms, rotary position embedding and the store to
// the key-value cache, in one launch. For every row t < T and head, with x the head's elements,
//
//	y[i] = x[i] / sqrt(mean of x^2 + Eps) * weight[i]                     (values: only if VNorm)
//
// and for queries and keys, with angle = (Position + t) * InvFreq[p] for every p < RotaryDim / 2,
//
//	y[p], y[p + HeadDim/2] = y[p] cos - y[p + HeadDim/2] sin,  y[p + HeadDim/2] cos + y[p] sin
//
// Q, K and V are rewritten in place. Keys and values also go to the caches, row t to element
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
// Q, K, V, CacheK and CacheV must not overlap each other or anything else; inputs may overlap. Deterministic on one
// device. The angle is a float32 product, so its error grows with the position: some 6e-8 of the angle.
// Errors: ErrScalar if Eps is not finite and positive; ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap for the rest.
//
// Sources: Su et al., "RoFormer", arXiv:2104.09864, with halves paired as in GPT-NeoX; the norms of Gemma 3,
// arXiv:2503.19786.
func RMSQKVRoPEKVStore[E Float](p *runtime.Pass, a QKVRoPE[E]) error {
	return rmsQKVRoPEKVStore("nn.RMSQKVRoPEKVStore", p, &a, nil)
}

// UnsafeRMSQKVRoPEKVStore is [RMSQKVRoPEKVStore] with scalars 6 to 10, 13, 17 and 19 in the caller's own storage.
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
	h := QKVHeads{Q: a.Q, K: a.K, V: a.V, QWeight: a.QWeight, KWeight: a.KWeight, VWeight: a.VWeight, VNorm: a.VNorm, InvFreq: a.InvFreq,
		T: a.T, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV, HeadDim: a.HeadDim, RotaryDim: a.RotaryDim, Eps: a.Eps}
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
		operand{"Position", v.position}, operand{"CacheOffset", v.offset}, operand{"InvFreq", v.invFreq})
	return v
}

func rmsQKVRoPEKVStore[E Float](fn string, p *runtime.Pass, a *QKVRoPE[E], bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	v := qkvRoPE(&c, a)
	if c.err != nil || v.rows == 0 {
		return c.result()
	}
	l := p.Kernel(kernelOf[E]("rms_qkv_rope_kv_store", "rms_qkv_rope_kv_store_f16", "rms_qkv_rope_kv_store_bf16"))
	v.bind(l)
	l.Read(11, v.position)
	l.Write(14, v.cacheK)
	l.Write(15, v.cacheV)
	l.Read(16, v.offset)
	l.Uint32(17, uint32(a.Capacity))
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(RoPEGroups(v.rows)), runtime.D1(RoPERows*SIMDWidth))
}

// RoPEInverseFrequencies are the angles per position of rotary position embedding, computed in float64 and rounded once:
//
//	freq[p] = theta^(-2p / headDim) / factor,  p < rotaryDim / 2
//
// theta is the base (10,000 in most models), factor the linear scaling of positions (1 for none; Gemma 3's larger models
// have 8 in their global layers). headDim and rotaryDim are even, rotaryDim at most headDim.
func RoPEInverseFrequencies(theta float64, headDim, rotaryDim int, factor float64) ([]float32, error) {
	c := check{fn: "nn.RoPEInverseFrequencies"}
	if !(theta > 0) || math.IsInf(theta, 1) {
		c.refuse("theta", fmt.Sprint(theta), "a finite number greater than 0", runtime.ErrScalar)
	}
	if !(factor > 0) || math.IsInf(factor, 1) {
		c.refuse("factor", fmt.Sprint(factor), "a finite number greater than 0", runtime.ErrScalar)
	}
	c.dim("headDim", headDim, 2)
	if c.err == nil && headDim%2 != 0 {
		c.refuse("headDim", fmt.Sprint(headDim), "an even number", runtime.ErrShape)
	}
	if c.err == nil && (rotaryDim < 0 || rotaryDim > headDim || rotaryDim%2 != 0) {
		c.refuse("rotaryDim", fmt.Sprint(rotaryDim), fmt.Sprintf("an even number up to headDim, %d", headDim), runtime.ErrShape)
	}
	if c.err != nil {
		return nil, c.err
	}
	freq := make([]float32, rotaryDim/2)
	for p := range freq {
		freq[p] = float32(math.Pow(theta, -2*float64(p)/float64(headDim)) / factor)
		if math.IsInf(float64(freq[p]), 0) {
			c.refuse("theta", fmt.Sprint(theta), "frequencies that are finite in float32", runtime.ErrScalar)
			return nil, c.err
		}
	}
	return freq, nil
}
