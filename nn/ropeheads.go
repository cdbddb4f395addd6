package nn

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime"
)

// QKVHeads are the operands of [RMSQKVRoPE] and [RMSQKVRoPEPosBuf].
type QKVHeads struct {
	Q, K, V          runtime.Slice[float32] // in and out: [T, HeadsQ, HeadDim], [T, HeadsKV, HeadDim] twice
	QWeight, KWeight runtime.Slice[float32] // [HeadDim]; the zero Slice for queries or keys that are not normalised, as Llama's
	VWeight          runtime.Slice[float32] // [HeadDim], if VNorm; the zero Slice otherwise
	VNorm            bool                   // whether values are normalised; Gemma 3 does not
	QBias            runtime.Slice[float32] // [HeadsQ, HeadDim]: added first, as in Qwen2; the zero Slice for none
	KBias, VBias     runtime.Slice[float32] // [HeadsKV, HeadDim], likewise
	InvFreq          runtime.Slice[float32] // [RotaryDim / 2], see RoPEParameters

	T, HeadsQ       int
	HeadsKV         int         // 0 for queries only: K, V, their weights and biases are zero Slices then, and VNorm is not set
	HeadDim         int         // even
	RotaryDim       int         // even, 0 to HeadDim: how many elements of a head turn
	Pairing         RoPEPairing // which of them turn together
	AttentionFactor float32     // of the rotation, YaRN's; 0 means 1, since a factor of 0 would leave nothing to attend to
	Eps             float32     // of the norms, if there are any
}

// RMSQKVRoPE is [RMSQKVRoPEKVStore] without caches: biases, norms and rotary position embedding of queries, keys and values, or
// of queries only, in place. position is that of the first of the T rows, and the last one must be below 2^32.
//
// With HeadsKV == 0 nothing but Q is written.
//
// Longer slices than needed are allowed. T == 0 is a no-op.
//
// Slots: 0 Q, 1 K, 2 V (both Q if HeadsKV is 0), 3 QWeight, 4 KWeight (QWeight if HeadsKV is 0), 5 VWeight (slot 4's if not
// VNorm), 18 InvFreq (slot 4's if RotaryDim is 0); scalars 6 T, 7 HeadsQ, 8 HeadsKV, 9 HeadDim, 10 RotaryDim, 11 position,
// 19 VNorm (uint32), 13 Eps (float32). With options also those that RMSQKVRoPEKVStore has with them.
//
// Q, K and V must not overlap each other or anything else; inputs may overlap. Deterministic on one device, and the same
// bits as RMSQKVRoPEKVStore's. What is said there of angles and errors holds here.
func RMSQKVRoPE(p *runtime.Pass, a QKVHeads, position uint32) error {
	return rmsQKVRoPE("nn.RMSQKVRoPE", p, &a, position, nil)
}

// UnsafeRMSQKVRoPE is [RMSQKVRoPE] with scalars 6 to 11, 13 and 19, and with options 20, 21 and 25, in the caller's own
// storage. Positions that do not fit 32 bits are safe: the launch is a no-op then.
//
// Unsafe: see the package documentation.
func UnsafeRMSQKVRoPE(p *runtime.Pass, a QKVHeads, position uint32, bind func(*runtime.ScalarBinder) error) error {
	return rmsQKVRoPE("nn.UnsafeRMSQKVRoPE", p, &a, position, bind)
}

// ValidateRMSQKVRoPE makes the checks of [RMSQKVRoPE] without encoding anything.
func ValidateRMSQKVRoPE(rt *runtime.Runtime, a QKVHeads, position uint32) error {
	c := startOn("nn.ValidateRMSQKVRoPE", rt)
	c.qkvHeads(&a, position)
	return c.result()
}

func (c *check) qkvHeads(a *QKVHeads, position uint32) (v qkvViews) {
	c.qkvShape(a, 0)
	if c.err == nil && a.T > 0 && uint64(position)+uint64(a.T)-1 > math.MaxUint32 {
		c.refuse("position", fmt.Sprintf("%d, and %d rows", position, a.T), "positions below 2^32", runtime.ErrLimit)
	}
	v = c.qkvMemory(a)
	if c.err == nil && v.rows != 0 {
		c.qkvDisjoint(&v, runtime.View{})
	}
	return v
}

func rmsQKVRoPE(fn string, p *runtime.Pass, a *QKVHeads, position uint32, bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	v := c.qkvHeads(a, position)
	if c.err != nil || v.rows == 0 {
		return c.result()
	}
	l := p.Kernel(v.kernel("rms_qkv_rope", "rms_qkv_rope_opt"))
	v.bind(l)
	l.Uint32(11, position)
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(RoPEGroups(v.rows)), runtime.D1(RoPERows*SIMDWidth))
}

// RMSQKVRoPEPosBuf is [RMSQKVRoPE] with a position, one element, that is read on the device: slot 11 is no scalar. Where
// positions do not fit 32 bits the launch is a no-op. position must not overlap Q, K and V.
func RMSQKVRoPEPosBuf(p *runtime.Pass, a QKVHeads, position runtime.Slice[uint32]) error {
	return rmsQKVRoPEPosBuf("nn.RMSQKVRoPEPosBuf", p, &a, position, nil)
}

// UnsafeRMSQKVRoPEPosBuf is [RMSQKVRoPEPosBuf] with scalars 6 to 10, 13 and 19, and with options 20, 21 and 25, in the caller's
// own storage.
//
// Unsafe: see the package documentation.
func UnsafeRMSQKVRoPEPosBuf(p *runtime.Pass, a QKVHeads, position runtime.Slice[uint32], bind func(*runtime.ScalarBinder) error) error {
	return rmsQKVRoPEPosBuf("nn.UnsafeRMSQKVRoPEPosBuf", p, &a, position, bind)
}

// ValidateRMSQKVRoPEPosBuf makes the checks of [RMSQKVRoPEPosBuf] without encoding anything.
func ValidateRMSQKVRoPEPosBuf(rt *runtime.Runtime, a QKVHeads, position runtime.Slice[uint32]) error {
	c := startOn("nn.ValidateRMSQKVRoPEPosBuf", rt)
	c.qkvHeadsPosBuf(&a, position)
	return c.result()
}

func (c *check) qkvHeadsPosBuf(a *QKVHeads, position runtime.Slice[uint32]) (v qkvViews, at runtime.View) {
	c.qkvShape(a, 0)
	v = c.qkvMemory(a)
	c.memory(memory{"position", position.View(), 1, 4})
	if c.err == nil && v.rows != 0 {
		at = first(position.View(), 1, 4)
		c.qkvDisjoint(&v, at)
	}
	return v, at
}

func rmsQKVRoPEPosBuf(fn string, p *runtime.Pass, a *QKVHeads, position runtime.Slice[uint32], bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	v, at := c.qkvHeadsPosBuf(a, position)
	if c.err != nil || v.rows == 0 {
		return c.result()
	}
	l := p.Kernel(v.kernel("rms_qkv_rope_posbuf", "rms_qkv_rope_posbuf_opt"))
	v.bind(l)
	l.Read(11, at)
	l.Scalars(bind)
	return l.Dispatch(runtime.D1(RoPEGroups(v.rows)), runtime.D1(RoPERows*SIMDWidth))
}

// qkvViews are the exact ranges that the kernels touch, of what they all have; the zero View where there is nothing.
type qkvViews struct {
	q, k, v, qWeight, kWeight, vWeight, qBias, kBias, vBias, invFreq runtime.View

	t, headsQ, headsKV, headDim, rotaryDim uint32
	eps, factor                            float32
	vNorm, pairing, operands               uint32

	options bool
	rows    int
}

func (v *qkvViews) kernel(plain, options string) string {
	if v.options {
		return options
	}
	return plain
}

// qkvShape refuses scalars and shapes, and gives the number of elements of K.
func (c *check) qkvShape(a *QKVHeads, leastKV int) int {
	c.ropeScalars(a)
	c.dim("T", a.T, 0)
	c.dim("HeadsQ", a.HeadsQ, 1)
	c.dim("HeadsKV", a.HeadsKV, leastKV)
	c.dim("HeadDim", a.HeadDim, 2)
	if c.err == nil && a.HeadDim%2 != 0 {
		c.refuse("HeadDim", fmt.Sprint(a.HeadDim), "an even number", runtime.ErrShape)
	}
	if c.err == nil && (a.RotaryDim < 0 || a.RotaryDim > a.HeadDim || a.RotaryDim%2 != 0) {
		c.refuse("RotaryDim", fmt.Sprint(a.RotaryDim), fmt.Sprintf("an even number up to HeadDim, %d", a.HeadDim), runtime.ErrShape)
	}
	c.elements("T * HeadsQ * HeadDim", a.T, a.HeadsQ, a.HeadDim)
	kvElements := c.elements("T * HeadsKV * HeadDim", a.T, a.HeadsKV, a.HeadDim)
	qRows := c.product("T * HeadsQ", maxDim, a.T, a.HeadsQ)
	kvRows := c.product("T * HeadsKV", maxDim/4, a.T, a.HeadsKV)
	if c.err == nil && qRows > maxDim-2*kvRows {
		c.refuse("T * (HeadsQ + 2 HeadsKV)", fmt.Sprint(qRows+2*kvRows), fmt.Sprintf("at most %d", maxDim), runtime.ErrLimit)
	}
	if c.err == nil && !a.VNorm && !isZero(a.VWeight.View()) {
		c.refuse("VWeight", fmt.Sprintf("%d elements", a.VWeight.Len()), "the zero Slice without VNorm", runtime.ErrShape)
	}
	if c.err == nil && a.HeadsKV == 0 {
		if a.VNorm {
			c.refuse("VNorm", "true", "false without keys and values", runtime.ErrShape)
		}
		for _, o := range [...]struct {
			name string
			s    runtime.Slice[float32]
		}{{"K", a.K}, {"V", a.V}, {"KWeight", a.KWeight}, {"KBias", a.KBias}, {"VBias", a.VBias}} {
			if !isZero(o.s.View()) {
				c.refuse(o.name, fmt.Sprintf("%d elements", o.s.Len()), "the zero Slice if HeadsKV is 0", runtime.ErrShape)
			}
		}
	}
	return kvElements
}

// qkvMemory refuses what cannot be bound.
func (c *check) qkvMemory(a *QKVHeads) (v qkvViews) {
	if c.err != nil {
		return v
	}
	q, kv := a.HeadsQ*a.HeadDim, a.HeadsKV*a.HeadDim // elements of a row
	qElements, kvElements := a.T*q, a.T*kv
	c.memory(memory{"Q", a.Q.View(), qElements, 4})
	if a.HeadsKV > 0 {
		c.memory(memory{"K", a.K.View(), kvElements, 4}, memory{"V", a.V.View(), kvElements, 4})
	}
	if a.VNorm {
		c.memory(memory{"VWeight", a.VWeight.View(), a.HeadDim, 4})
	}
	if a.RotaryDim > 0 {
		c.memory(memory{"InvFreq", a.InvFreq.View(), a.RotaryDim / 2, 4})
	}
	v.qWeight, v.kWeight = c.optional("QWeight", a.QWeight.View(), a.HeadDim), c.optional("KWeight", a.KWeight.View(), a.HeadDim)
	v.qBias, v.kBias, v.vBias = c.optional("QBias", a.QBias.View(), q), c.optional("KBias", a.KBias.View(), kv), c.optional("VBias", a.VBias.View(), kv)
	if c.err != nil {
		return v
	}
	v.t, v.headsQ, v.headsKV, v.headDim, v.rotaryDim = uint32(a.T), uint32(a.HeadsQ), uint32(a.HeadsKV), uint32(a.HeadDim), uint32(a.RotaryDim)
	v.eps, v.vNorm = a.Eps, flagOf(a.VNorm)
	v.options, v.pairing, v.operands, v.factor = a.options(), uint32(a.Pairing), a.operands(), a.AttentionFactor
	if v.factor == 0 {
		v.factor = 1
	}
	v.rows = a.T * (a.HeadsQ + 2*a.HeadsKV)
	if v.rows == 0 {
		return v
	}
	v.q = first(a.Q.View(), qElements, 4)
	if a.HeadsKV > 0 {
		v.k, v.v = first(a.K.View(), kvElements, 4), first(a.V.View(), kvElements, 4)
	}
	if a.VNorm {
		v.vWeight = first(a.VWeight.View(), a.HeadDim, 4)
	}
	if a.RotaryDim > 0 {
		v.invFreq = first(a.InvFreq.View(), a.RotaryDim/2, 4)
	}
	return v
}

// qkvDisjoint refuses overlaps of what has no caches. position may be the zero View.
func (c *check) qkvDisjoint(v *qkvViews, position runtime.View) {
	c.disjoint(3, operand{"Q", v.q}, operand{"K", v.k}, operand{"V", v.v}, operand{"QWeight", v.qWeight}, operand{"KWeight", v.kWeight},
		operand{"VWeight", v.vWeight}, operand{"QBias", v.qBias}, operand{"KBias", v.kBias}, operand{"VBias", v.vBias},
		operand{"InvFreq", v.invFreq}, operand{"position", position})
}

// bind puts what all kernels have into their slots. Slots must not be empty: where there is nothing, there is something else
// that the kernel does not use.
func (v *qkvViews) bind(l *runtime.Launch) {
	qWeight := orView(v.qWeight, v.q)
	kWeight := orView(v.kWeight, qWeight)
	l.ReadWrite(0, v.q)
	l.ReadWrite(1, orView(v.k, v.q))
	l.ReadWrite(2, orView(v.v, v.q))
	l.Read(3, qWeight)
	l.Read(4, kWeight)
	l.Read(5, orView(v.vWeight, kWeight))
	l.Uint32(6, v.t)
	l.Uint32(7, v.headsQ)
	l.Uint32(8, v.headsKV)
	l.Uint32(9, v.headDim)
	l.Uint32(10, v.rotaryDim)
	l.Float32(13, v.eps)
	l.Read(18, orView(v.invFreq, kWeight))
	l.Uint32(19, v.vNorm)
	if v.options {
		l.Uint32(20, v.pairing)
		l.Float32(21, v.factor)
		l.Read(22, orView(v.qBias, kWeight))
		l.Read(23, orView(v.kBias, kWeight))
		l.Read(24, orView(v.vBias, kWeight))
		l.Uint32(25, v.operands)
	}
}
