package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// QKVRoPE are the operands of [RMSQKVRoPEKVStore].
type QKVRoPE struct {
	Q, K, V          runtime.Slice[float32] // in and out: [T, HeadsQ, HeadDim], [T, HeadsKV, HeadDim] twice
	QWeight, KWeight runtime.Slice[float32] // [HeadDim]
	VWeight          runtime.Slice[float32] // [HeadDim], if VNorm; the zero Slice otherwise
	VNorm            bool                   // whether values are normalised; Gemma 3 does not
	CacheK, CacheV   runtime.Slice[float32] // out: [Capacity] elements
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
// launch is a no-op, Q included. The weights multiply as they are, as at [RMSNormBF16].
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
func RMSQKVRoPEKVStore(p *runtime.Pass, a QKVRoPE) error {
	return rmsQKVRoPEKVStore("nn.RMSQKVRoPEKVStore", p, &a, nil)
}

// UnsafeRMSQKVRoPEKVStore is [RMSQKVRoPEKVStore] with scalars 6 to 10, 13, 17 and 19 in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafeRMSQKVRoPEKVStore(p *runtime.Pass, a QKVRoPE, bind func(*runtime.ScalarBinder) error) error {
	return rmsQKVRoPEKVStore("nn.UnsafeRMSQKVRoPEKVStore", p, &a, bind)
}

// ValidateRMSQKVRoPEKVStore makes the checks of [RMSQKVRoPEKVStore] without encoding anything: for callers that set up
// scalars of their own first.
func ValidateRMSQKVRoPEKVStore(rt *runtime.Runtime, a QKVRoPE) error {
	c := startOn("nn.ValidateRMSQKVRoPEKVStore", rt)
	c.qkvRoPE(&a)
	return c.result()
}

// qkvRoPEViews are the exact ranges that the kernel touches.
type qkvRoPEViews struct {
	q, k, v, qWeight, kWeight, vWeight, cacheK, cacheV, position, offset, invFreq runtime.View
	rows                                                                          int
}

func (c *check) qkvRoPE(a *QKVRoPE) (v qkvRoPEViews) {
	c.positive("Eps", a.Eps)
	c.dim("T", a.T, 0)
	c.dim("HeadsQ", a.HeadsQ, 1)
	c.dim("HeadsKV", a.HeadsKV, 1)
	c.dim("HeadDim", a.HeadDim, 2)
	if c.err == nil && a.HeadDim%2 != 0 {
		c.refuse("HeadDim", fmt.Sprint(a.HeadDim), "an even number", runtime.ErrShape)
	}
	if c.err == nil && (a.RotaryDim < 0 || a.RotaryDim > a.HeadDim || a.RotaryDim%2 != 0) {
		c.refuse("RotaryDim", fmt.Sprint(a.RotaryDim), fmt.Sprintf("an even number up to HeadDim, %d", a.HeadDim), runtime.ErrShape)
	}
	if c.err == nil && (a.Capacity < 0 || uint64(a.Capacity) > math.MaxUint32) {
		c.refuse("Capacity", fmt.Sprint(a.Capacity), "0 to 2^32-1 elements", runtime.ErrLimit)
	}
	qElements := c.elements("T * HeadsQ * HeadDim", a.T, a.HeadsQ, a.HeadDim)
	kvElements := c.elements("T * HeadsKV * HeadDim", a.T, a.HeadsKV, a.HeadDim)
	qRows := c.product("T * HeadsQ", maxDim, a.T, a.HeadsQ)
	kvRows := c.product("T * HeadsKV", maxDim/4, a.T, a.HeadsKV)
	if c.err == nil && qRows > maxDim-2*kvRows {
		c.refuse("T * (HeadsQ + 2 HeadsKV)", fmt.Sprint(qRows+2*kvRows), fmt.Sprintf("at most %d", maxDim), runtime.ErrLimit)
	}
	if c.err == nil && a.Capacity < kvElements {
		c.refuse("Capacity", fmt.Sprintf("%d elements", a.Capacity), fmt.Sprintf("at least %d, the keys of one call", kvElements), runtime.ErrShape)
	}
	if c.err == nil && !a.VNorm && a.VWeight.Len() != 0 {
		c.refuse("VWeight", fmt.Sprintf("%d elements", a.VWeight.Len()), "the zero Slice without VNorm", runtime.ErrShape)
	}
	need := func(arg string, v runtime.View, n int) {
		c.owned(arg, v)
		c.capacity(arg, v, n, 4, 4)
	}
	need("Q", a.Q.View(), qElements)
	need("K", a.K.View(), kvElements)
	need("V", a.V.View(), kvElements)
	need("QWeight", a.QWeight.View(), a.HeadDim)
	need("KWeight", a.KWeight.View(), a.HeadDim)
	if a.VNorm {
		need("VWeight", a.VWeight.View(), a.HeadDim)
	}
	need("CacheK", a.CacheK.View(), a.Capacity)
	need("CacheV", a.CacheV.View(), a.Capacity)
	need("Position", a.Position.View(), 1)
	need("CacheOffset", a.CacheOffset.View(), 1)
	if a.RotaryDim > 0 {
		need("InvFreq", a.InvFreq.View(), a.RotaryDim/2)
	}
	if c.err != nil || qRows == 0 {
		return v
	}
	v = qkvRoPEViews{
		q: first(a.Q.View(), qElements, 4), k: first(a.K.View(), kvElements, 4), v: first(a.V.View(), kvElements, 4),
		qWeight: first(a.QWeight.View(), a.HeadDim, 4), kWeight: first(a.KWeight.View(), a.HeadDim, 4),
		cacheK: first(a.CacheK.View(), a.Capacity, 4), cacheV: first(a.CacheV.View(), a.Capacity, 4),
		position: first(a.Position.View(), 1, 4), offset: first(a.CacheOffset.View(), 1, 4),
		rows: qRows + 2*kvRows,
	}
	v.vWeight, v.invFreq = v.kWeight, v.kWeight
	if a.VNorm {
		v.vWeight = first(a.VWeight.View(), a.HeadDim, 4)
	}
	if a.RotaryDim > 0 {
		v.invFreq = first(a.InvFreq.View(), a.RotaryDim/2, 4)
	}
	c.disjoint(5, operand{"Q", v.q}, operand{"K", v.k}, operand{"V", v.v}, operand{"CacheK", v.cacheK}, operand{"CacheV", v.cacheV},
		operand{"QWeight", v.qWeight}, operand{"KWeight", v.kWeight}, operand{"VWeight", v.vWeight},
		operand{"Position", v.position}, operand{"CacheOffset", v.offset}, operand{"InvFreq", v.invFreq})
	return v
}

func rmsQKVRoPEKVStore(fn string, p *runtime.Pass, a *QKVRoPE, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	v := c.qkvRoPE(a)
	if c.err != nil || v.rows == 0 {
		return c.result()
	}
	vNorm := uint32(0)
	if a.VNorm {
		vNorm = 1
	}
	l := p.Kernel("rms_qkv_rope_kv_store")
	l.ReadWrite(0, v.q)
	l.ReadWrite(1, v.k)
	l.ReadWrite(2, v.v)
	l.Read(3, v.qWeight)
	l.Read(4, v.kWeight)
	l.Read(5, v.vWeight)
	l.Uint32(6, uint32(a.T))
	l.Uint32(7, uint32(a.HeadsQ))
	l.Uint32(8, uint32(a.HeadsKV))
	l.Uint32(9, uint32(a.HeadDim))
	l.Uint32(10, uint32(a.RotaryDim))
	l.Read(11, v.position)
	l.Float32(13, a.Eps)
	l.Write(14, v.cacheK)
	l.Write(15, v.cacheV)
	l.Read(16, v.offset)
	l.Uint32(17, uint32(a.Capacity))
	l.Read(18, v.invFreq)
	l.Uint32(19, vNorm)
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
