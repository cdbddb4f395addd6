package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

// ropeCase is one call of RMSQKVRoPEKVStore with its data.
type ropeCase struct {
	t, hq, hkv, d, rotary int
	vNorm                 bool
	pos, offset           uint32
	capacity              int
	scale                 float64 // of the data

	pairing             RoPEPairing
	factor              float32 // AttentionFactor
	noQNorm, noKNorm    bool
	qBias, kBias, vBias bool
}

// ropeSetup has the operands on both sides.
type ropeSetup struct {
	ropeCase
	a              QKVRoPE[float32]
	q, k, v        *buffer[float32]
	cacheK, cacheV *buffer[float32]
	pos, offset    *buffer[uint32]
	host           oracle.QKV
	oldK, oldV     []float32
}

const ropeEps = 1e-6

func newRope(t testing.TB, rt *runtime.Runtime, r *rand.Rand, c ropeCase) *ropeSetup {
	t.Helper()
	s := &ropeSetup{ropeCase: c}
	if c.scale == 0 {
		s.scale = 1
	}
	qn, kn := c.t*c.hq*c.d, c.t*c.hkv*c.d
	freq, _, err := RoPEParameters{Theta: 10000, RotaryDim: c.rotary, Dim: c.d}.InverseFrequencies()
	if err != nil {
		t.Fatal(err)
	}
	s.host = oracle.QKV{Q: normals(r, qn, s.scale), K: normals(r, kn, s.scale), V: normals(r, kn, s.scale),
		QWeight: normals(r, c.d, 1), KWeight: normals(r, c.d, 1), T: c.t, Hq: c.hq, Hkv: c.hkv, D: c.d, RotaryDim: c.rotary,
		Position: uint64(c.pos), InvFreq: freq, Eps: float64(float32(ropeEps))}
	s.host.Pairing, s.host.Factor = oracle.Pairing(c.pairing), float64(c.factor)
	if c.noQNorm {
		s.host.QWeight = nil
	}
	if c.noKNorm {
		s.host.KWeight = nil
	}
	for _, b := range []struct {
		want  bool
		host  *[]float32
		heads int
	}{{c.qBias, &s.host.QBias, c.hq}, {c.kBias, &s.host.KBias, c.hkv}, {c.vBias, &s.host.VBias, c.hkv}} {
		if b.want {
			*b.host = normals(r, b.heads*c.d, s.scale)
		}
	}
	slice := func(x []float32) runtime.Slice[float32] { // the zero Slice of nothing
		if x == nil {
			return runtime.Slice[float32]{}
		}
		return newBuffer(t, rt, x).s
	}
	s.oldK, s.oldV = normals(r, c.capacity, 1), normals(r, c.capacity, 1)
	s.q, s.k, s.v = newBuffer(t, rt, s.host.Q), newBuffer(t, rt, s.host.K), newBuffer(t, rt, s.host.V)
	s.cacheK, s.cacheV = newBuffer(t, rt, s.oldK), newBuffer(t, rt, s.oldV)
	s.pos, s.offset = newBuffer(t, rt, []uint32{c.pos}), newBuffer(t, rt, []uint32{c.offset})
	s.a = QKVRoPE[float32]{Q: s.q.s, K: s.k.s, V: s.v.s, QWeight: slice(s.host.QWeight), KWeight: slice(s.host.KWeight),
		QBias: slice(s.host.QBias), KBias: slice(s.host.KBias), VBias: slice(s.host.VBias), Pairing: c.pairing, AttentionFactor: c.factor,
		VNorm: c.vNorm, CacheK: s.cacheK.s, CacheV: s.cacheV.s, Position: s.pos.s, CacheOffset: s.offset.s, InvFreq: newBuffer(t, rt, freq).s,
		T: c.t, HeadsQ: c.hq, HeadsKV: c.hkv, HeadDim: c.d, RotaryDim: c.rotary, Capacity: c.capacity, Eps: ropeEps}
	if c.vNorm {
		s.host.VWeight = normals(r, c.d, 1)
		s.a.VWeight = newBuffer(t, rt, s.host.VWeight).s
	}
	return s
}

func (s *ropeSetup) targets() []target { return []target{s.q, s.k, s.v, s.cacheK, s.cacheV} }

// check runs the call and holds it against the oracle.
func (s *ropeSetup) check(t *testing.T, rt *runtime.Runtime, w *worst) {
	t.Helper()
	where := fmt.Sprintf("%+v", s.ropeCase)
	encode(t, rt, min(s.t, 1), func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, s.a) })
	want := s.host.Store(s.oldK, s.oldV, uint64(s.offset32()), uint64(s.capacity))
	if want.Skipped {
		for _, b := range s.targets() {
			b.untouched()
		}
		return
	}
	allowed := func(want []float64, base int) func(i int) float64 {
		inside := s.allowed(want)
		return func(i int) float64 {
			i -= base
			if i < 0 || i >= len(want) {
				return 0 // outside the store nothing may change
			}
			return inside(i)
		}
	}
	w.compare(t, where+" q", widen(s.q.get()), want.Q, allowed(want.Q, 0))
	w.compare(t, where+" k", widen(s.k.get()), want.K, allowed(want.K, 0))
	w.compare(t, where+" v", widen(s.v.get()), want.V, allowed(want.V, 0))
	w.compare(t, where+" cache k", widen(s.cacheK.get()), want.CacheK, allowed(want.K, int(s.offset32())))
	w.compare(t, where+" cache v", widen(s.cacheV.get()), want.CacheV, allowed(want.V, int(s.offset32())))
}

func (s *ropeSetup) pos32() uint32    { return s.ropeCase.pos }
func (s *ropeSetup) offset32() uint32 { return s.ropeCase.offset }

func TestRMSQKVRoPEKVStore(t *testing.T) {
	rt, r := open(t), source(41)
	var w worst
	for _, c := range []ropeCase{
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, capacity: 128},                                    // Gemma 3's step, small
		{t: 1, hq: 4, hkv: 1, d: 256, rotary: 256, pos: 7, offset: 7 * 256, capacity: 9 * 256},       // in the middle of a cache
		{t: 1, hq: 8, hkv: 4, d: 128, rotary: 128, pos: 149, offset: 149 * 512, capacity: 150 * 512}, // the last place
		{t: 1, hq: 1, hkv: 1, d: 2, rotary: 2, pos: 3, capacity: 2},
		{t: 1, hq: 3, hkv: 3, d: 6, rotary: 4, pos: 2, capacity: 18, vNorm: true},
		{t: 5, hq: 2, hkv: 1, d: 64, rotary: 64, pos: 11, offset: 64, capacity: 512, vNorm: true},
		{t: 2, hq: 5, hkv: 5, d: 66, rotary: 66, pos: 1, offset: 3, capacity: 700},
		{t: 3, hq: 1, hkv: 1, d: 128, rotary: 32, pos: 100, capacity: 400, vNorm: true}, // a quarter turns
		{t: 4, hq: 2, hkv: 2, d: 62, rotary: 0, capacity: 4 * 124},                      // nothing turns
		{t: 1, hq: 9, hkv: 2, d: 512, rotary: 512, pos: 32000, capacity: 1024},          // more rows than a threadgroup has simdgroups
		{t: 17, hq: 3, hkv: 1, d: 80, rotary: 40, pos: 5, offset: 80, capacity: 2000},
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, capacity: 128, scale: 1e15},
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, pos: 1, capacity: 256, offset: 128, scale: 1e-20, vNorm: true},
		{t: 33, hq: 1, hkv: 1, d: 10, rotary: 10, pos: 1 << 20, capacity: 330},
		{t: 0, hq: 1, hkv: 1, d: 128, rotary: 128, capacity: 128}, // nothing to do
	} {
		newRope(t, rt, r, c).check(t, rt, &w)
	}
	w.log(t, "1e-6 of a pair and 2^-23 of the angle", "RMSQKVRoPEKVStore")
}

// Live values that the host never saw: a store that would not fit skips everything, Q included, and wraps nowhere.
func TestRMSQKVRoPEKVStoreLiveValues(t *testing.T) {
	rt, r := open(t), source(42)
	var w worst
	for _, c := range []struct{ pos, offset uint32 }{
		{0, 129}, {0, 255}, {0, 256}, {0, 257}, {0, math.MaxUint32}, {0, math.MaxUint32 - 127}, {0, math.MaxUint32 - 255}, {0, 1 << 31},
		{math.MaxUint32, 0}, {math.MaxUint32 - 1, 128}, // T = 1 fits
		{5, 128}, {5, 0},
	} {
		newRope(t, rt, r, ropeCase{t: 1, hq: 3, hkv: 1, d: 128, rotary: 0, pos: c.pos, offset: c.offset, capacity: 256}).check(t, rt, &w)
	}
	// Two positions from the last one on do not fit 32 bits.
	newRope(t, rt, r, ropeCase{t: 2, hq: 1, hkv: 1, d: 64, rotary: 0, pos: math.MaxUint32, capacity: 128}).check(t, rt, &w)
	newRope(t, rt, r, ropeCase{t: 2, hq: 1, hkv: 1, d: 64, rotary: 0, pos: math.MaxUint32 - 1, capacity: 128}).check(t, rt, &w)
}

func TestRMSQKVRoPEKVStoreRecorded(t *testing.T) {
	rt, r := open(t), source(43)
	s := newRope(t, rt, r, ropeCase{t: 2, hq: 3, hkv: 1, d: 64, rotary: 32, capacity: 1024, vNorm: true})
	call := func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, s.a) }
	replays(t, rt, s.targets(), func(i int) {
		s.pos.set([]uint32{uint32(i * 2)})
		s.offset.set([]uint32{uint32(i * 128)})
		s.q.set(normals(r, s.q.n, 1))
	}, call)
	twin(t, rt, s.targets(), []scalar{{slot: 6, u: 2}, {slot: 7, u: 3}, {slot: 8, u: 1}, {slot: 9, u: 64}, {slot: 10, u: 32},
		{slot: 13, f: ropeEps, float: true}, {slot: 17, u: 1024}, {slot: 19, u: 1}}, call,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeRMSQKVRoPEKVStore(p, s.a, bind)
		})
}

func TestRMSQKVRoPEKVStoreRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(44)
	s := newRope(t, rt, r, ropeCase{t: 2, hq: 2, hkv: 1, d: 64, rotary: 64, capacity: 256, vNorm: true})
	fx, fu := output[float32](t, foreign, 256), output[uint32](t, foreign, 1)
	nan := float32(math.NaN())
	type change = func(a *QKVRoPE[float32])
	list := []struct {
		name     string
		change   change
		sentinel error
		parts    []string
	}{
		{"eps 0", func(a *QKVRoPE[float32]) { a.Eps = 0 }, runtime.ErrScalar, []string{"Eps"}},
		{"eps NaN", func(a *QKVRoPE[float32]) { a.Eps = nan }, runtime.ErrScalar, []string{"Eps"}},
		{"T negative", func(a *QKVRoPE[float32]) { a.T = -1 }, runtime.ErrShape, []string{"T"}},
		{"no query heads", func(a *QKVRoPE[float32]) { a.HeadsQ = 0 }, runtime.ErrShape, []string{"HeadsQ"}},
		{"no key heads", func(a *QKVRoPE[float32]) { a.HeadsKV = 0 }, runtime.ErrShape, []string{"HeadsKV"}},
		{"head dimension 0", func(a *QKVRoPE[float32]) { a.HeadDim = 0 }, runtime.ErrShape, []string{"HeadDim"}},
		{"head dimension odd", func(a *QKVRoPE[float32]) { a.HeadDim = 63 }, runtime.ErrShape, []string{"HeadDim", "even"}},
		{"rotary odd", func(a *QKVRoPE[float32]) { a.RotaryDim = 31 }, runtime.ErrShape, []string{"RotaryDim"}},
		{"rotary beyond the head", func(a *QKVRoPE[float32]) { a.RotaryDim = 66 }, runtime.ErrShape, []string{"RotaryDim", "64"}},
		{"rotary negative", func(a *QKVRoPE[float32]) { a.RotaryDim = -2 }, runtime.ErrShape, []string{"RotaryDim"}},
		{"product huge", func(a *QKVRoPE[float32]) { a.T, a.HeadsQ, a.HeadDim = math.MaxInt32, math.MaxInt32, math.MaxInt32-1 }, runtime.ErrLimit, []string{"T * HeadsQ"}},
		{"rows huge", func(a *QKVRoPE[float32]) { a.T, a.HeadDim, a.RotaryDim = math.MaxInt32/2+1, 2, 2 }, runtime.ErrLimit, []string{"T"}},
		{"capacity negative", func(a *QKVRoPE[float32]) { a.Capacity = -1 }, runtime.ErrLimit, []string{"Capacity"}},
		{"capacity beyond 32 bits", func(a *QKVRoPE[float32]) { a.Capacity = math.MaxUint32 + 1 }, runtime.ErrLimit, []string{"Capacity"}},
		{"capacity below one call", func(a *QKVRoPE[float32]) { a.Capacity = 127 }, runtime.ErrShape, []string{"Capacity", "128"}},
		{"capacity beyond the cache", func(a *QKVRoPE[float32]) { a.Capacity = 257 }, runtime.ErrShape, []string{"CacheK", "256", "257"}},
		{"Q short", func(a *QKVRoPE[float32]) { a.Q = a.Q.Slice(0, 255) }, runtime.ErrShape, []string{"Q", "255"}},
		{"K short", func(a *QKVRoPE[float32]) { a.K = a.K.Slice(0, 127) }, runtime.ErrShape, []string{"K"}},
		{"V short", func(a *QKVRoPE[float32]) { a.V = a.V.Slice(0, 127) }, runtime.ErrShape, []string{"V"}},
		{"QWeight short", func(a *QKVRoPE[float32]) { a.QWeight = a.QWeight.Slice(0, 63) }, runtime.ErrShape, []string{"QWeight"}},
		{"VWeight missing", func(a *QKVRoPE[float32]) { a.VWeight = runtime.Slice[float32]{} }, runtime.ErrShape, []string{"VWeight"}},
		{"VWeight without norm", func(a *QKVRoPE[float32]) { a.VNorm = false }, runtime.ErrShape, []string{"VWeight", "VNorm"}},
		{"InvFreq short", func(a *QKVRoPE[float32]) { a.InvFreq = a.InvFreq.Slice(0, 31) }, runtime.ErrShape, []string{"InvFreq"}},
		{"Position empty", func(a *QKVRoPE[float32]) { a.Position = a.Position.Slice(0, 0) }, runtime.ErrShape, []string{"Position"}},
		{"CacheOffset zero", func(a *QKVRoPE[float32]) { a.CacheOffset = runtime.Slice[uint32]{} }, runtime.ErrShape, []string{"CacheOffset"}},
		{"Q foreign", func(a *QKVRoPE[float32]) { a.Q = fx.s }, runtime.ErrForeign, []string{"Q"}},
		{"CacheV foreign", func(a *QKVRoPE[float32]) { a.CacheV = fx.s }, runtime.ErrForeign, []string{"CacheV"}},
		{"CacheOffset foreign", func(a *QKVRoPE[float32]) { a.CacheOffset = fu.s }, runtime.ErrForeign, []string{"CacheOffset"}},
		{"K is V", func(a *QKVRoPE[float32]) { a.K = a.V }, runtime.ErrOverlap, []string{"K", "V"}},
		{"caches are one", func(a *QKVRoPE[float32]) { a.CacheV = a.CacheK }, runtime.ErrOverlap, []string{"CacheK", "CacheV"}},
		{"K in the cache", func(a *QKVRoPE[float32]) { a.K = a.CacheK.Slice(0, 128) }, runtime.ErrOverlap, []string{"K", "CacheK"}},
		{"weight in Q", func(a *QKVRoPE[float32]) { a.KWeight = a.Q.Slice(192, 256) }, runtime.ErrOverlap, []string{"Q", "KWeight"}},
		{"frequencies in V", func(a *QKVRoPE[float32]) { a.InvFreq = a.V.Slice(96, 128) }, runtime.ErrOverlap, []string{"V", "InvFreq"}},
	}
	refusals := []refusal{{"no pass", func(*runtime.Pass) error { return RMSQKVRoPEKVStore(nil, s.a) }, runtime.ErrMisuse, nil}}
	for _, c := range list {
		a := s.a
		c.change(&a)
		refusals = append(refusals, refusal{c.name, func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, a) }, c.sentinel, c.parts})
		checkRefused(t, "nn.ValidateRMSQKVRoPEKVStore", refusal{c.name + ", validated", nil, c.sentinel, c.parts}, ValidateRMSQKVRoPEKVStore(rt, a))
	}
	refuses(t, rt, "nn.RMSQKVRoPEKVStore", s.targets(), refusals)
	if err := ValidateRMSQKVRoPEKVStore(rt, s.a); err != nil {
		t.Error(err)
	}
	if err := ValidateRMSQKVRoPEKVStore(nil, s.a); err == nil {
		t.Error("no runtime: not refused")
	}
}
