package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// headsOf are the operands of a setup without its caches.
func (s *ropeSetup) heads() QKVHeads {
	a := s.a
	return QKVHeads{Q: a.Q, K: a.K, V: a.V, QWeight: a.QWeight, KWeight: a.KWeight, VWeight: a.VWeight, VNorm: a.VNorm, InvFreq: a.InvFreq,
		QBias: a.QBias, KBias: a.KBias, VBias: a.VBias, Pairing: a.Pairing, AttentionFactor: a.AttentionFactor,
		T: a.T, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV, HeadDim: a.HeadDim, RotaryDim: a.RotaryDim, Eps: a.Eps}
}

// queries are those of the queries alone.
func (s *ropeSetup) queries() QKVHeads {
	a := s.heads()
	none := runtime.Slice[float32]{}
	a.K, a.V, a.KWeight, a.VWeight, a.KBias, a.VBias, a.VNorm, a.HeadsKV = none, none, none, none, none, none, false, 0
	return a
}

// allowed is the budget of queries, keys and values: a pair is off by some 1e-6 of its length for the norm and the rotation,
// and by the rounding of the angle.
func (s *ropeSetup) allowed(want []float64) func(i int) float64 {
	angle := 1.0
	if len(s.host.InvFreq) > 0 {
		angle += (float64(s.pos32()) + float64(s.ropeCase.t)) * float64(s.host.InvFreq[0])
	}
	d := s.ropeCase.d
	partner := make([]int, d)
	for i := range partner {
		partner[i] = i
	}
	pairs := s.ropeCase.rotary / 2
	if s.ropeCase.pairing == RoPEHalves {
		pairs = d / 2 // those that do not turn are as far off as the ones that do
	}
	for p := range pairs {
		i, j := s.host.Pairing.Pair(p, d, s.ropeCase.rotary)
		partner[i], partner[j] = j, i
	}
	return func(i int) float64 {
		head := i / d * d
		return math.Hypot(want[i], want[head+partner[i-head]])*(1e-6+angle/(1<<23)) + 1e-40
	}
}

// checkHeads runs all variants without caches: constant and live position, of everything and of queries only.
func (s *ropeSetup) checkHeads(t *testing.T, rt *runtime.Runtime, w *worst) {
	t.Helper()
	where := fmt.Sprintf("%+v", s.ropeCase)
	reset := func() {
		for _, b := range s.targets() {
			b.reset()
		}
	}
	fits := s.ropeCase.t == 0 || uint64(s.pos32())+uint64(s.ropeCase.t)-1 <= math.MaxUint32
	want := s.host.Live()
	var bits [][]uint32
	for _, posbuf := range []bool{false, true} {
		for _, only := range []bool{false, true} {
			a, where := s.heads(), fmt.Sprintf("%s, position on the device %t, queries only %t", where, posbuf, only)
			if only {
				a = s.queries()
			}
			reset()
			switch {
			case posbuf:
				encode(t, rt, min(s.t, 1), func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, a, s.a.Position) })
			case fits:
				encode(t, rt, min(s.t, 1), func(p *runtime.Pass) error { return RMSQKVRoPE(p, a, s.pos32()) })
			default:
				refuses(t, rt, "nn.RMSQKVRoPE", s.targets(), []refusal{{where, func(p *runtime.Pass) error { return RMSQKVRoPE(p, a, s.pos32()) }, runtime.ErrLimit, []string{"position"}}})
			}
			s.cacheK.untouched()
			s.cacheV.untouched()
			if want.Skipped || s.t == 0 {
				for _, b := range s.targets() {
					b.untouched()
				}
				continue
			}
			w.compare(t, where+" q", widen(s.q.get()), want.Q, s.allowed(want.Q))
			if only {
				s.k.untouched()
				s.v.untouched()
			} else {
				w.compare(t, where+" k", widen(s.k.get()), want.K, s.allowed(want.K))
				w.compare(t, where+" v", widen(s.v.get()), want.V, s.allowed(want.V))
			}
			// Wherever the position comes from, the bits are the same.
			now := [][]uint32{s.q.bits(), s.k.bits(), s.v.bits()}
			if bits == nil {
				bits = now
			}
			for i := range bits {
				for j := range bits[i] {
					if (i == 0 || !only) && bits[i][j] != now[i][j] {
						t.Fatalf("%s: output %d, element %d: %#x, at first %#x", where, i, j, now[i][j], bits[i][j])
					}
				}
			}
		}
	}
}

func TestRMSQKVRoPE(t *testing.T) {
	rt, r := open(t), source(341)
	var w worst
	for _, c := range []ropeCase{
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128},
		{t: 1, hq: 8, hkv: 4, d: 256, rotary: 256, pos: 7, vNorm: true},
		{t: 1, hq: 1, hkv: 1, d: 2, rotary: 2, pos: 3},
		{t: 1, hq: 3, hkv: 3, d: 6, rotary: 4, pos: 2, vNorm: true},
		{t: 5, hq: 2, hkv: 1, d: 64, rotary: 64, pos: 11, vNorm: true},
		{t: 2, hq: 5, hkv: 5, d: 66, rotary: 66, pos: 1},
		{t: 3, hq: 1, hkv: 1, d: 128, rotary: 32, pos: 100, vNorm: true}, // a quarter turns
		{t: 4, hq: 2, hkv: 2, d: 62, rotary: 0},                          // nothing turns
		{t: 1, hq: 9, hkv: 2, d: 512, rotary: 512, pos: 32000},           // more rows than a threadgroup has simdgroups
		{t: 17, hq: 3, hkv: 1, d: 80, rotary: 40, pos: 5},
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, scale: 1e15},
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, pos: 1, scale: 1e-20, vNorm: true},
		{t: 33, hq: 1, hkv: 1, d: 10, rotary: 10, pos: 1 << 20},
		{t: 1, hq: 2, hkv: 1, d: 64, rotary: 0, pos: math.MaxUint32},     // the last position
		{t: 2, hq: 2, hkv: 1, d: 64, rotary: 0, pos: math.MaxUint32 - 1}, // two that fit
		{t: 2, hq: 2, hkv: 1, d: 64, rotary: 0, pos: math.MaxUint32},     // two that do not
		{t: 0, hq: 1, hkv: 1, d: 128, rotary: 128},                       // nothing to do
	} {
		c.capacity = max(c.t*c.hkv*c.d, 1)
		newRope(t, rt, r, c).checkHeads(t, rt, &w)
	}
	w.log(t, "1e-6 of a pair and 2^-23 of the angle", "RMSQKVRoPE", "RMSQKVRoPEPosBuf")
}

func TestRMSQKVRoPERecorded(t *testing.T) {
	rt, r := open(t), source(342)
	s := newRope(t, rt, r, ropeCase{t: 2, hq: 3, hkv: 1, d: 64, rotary: 32, capacity: 128, pos: 5, vNorm: true})
	a := s.heads()
	scalars := []scalar{{slot: 6, u: 2}, {slot: 7, u: 3}, {slot: 8, u: 1}, {slot: 9, u: 64}, {slot: 10, u: 32}, {slot: 13, f: ropeEps, float: true}, {slot: 19, u: 1}}
	vary := func(i int) {
		s.pos.set([]uint32{uint32(i * 2)})
		s.q.set(normals(r, s.q.n, 1))
	}
	call := func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, a, s.a.Position) }
	replays(t, rt, s.targets(), vary, call)
	twin(t, rt, s.targets(), scalars, call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeRMSQKVRoPEPosBuf(p, a, s.a.Position, bind)
	})
	constant := func(p *runtime.Pass) error { return RMSQKVRoPE(p, a, 5) }
	replays(t, rt, s.targets(), vary, constant)
	twin(t, rt, s.targets(), append(scalars, scalar{slot: 11, u: 5}), constant, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeRMSQKVRoPE(p, a, 5, bind)
	})
	// Queries alone, and a factor of 1, are no options: the scalars are those of the kernel without.
	only := s.queries()
	only.AttentionFactor = 1
	alone := []scalar{{slot: 6, u: 2}, {slot: 7, u: 3}, {slot: 8}, {slot: 9, u: 64}, {slot: 10, u: 32}, {slot: 13, f: ropeEps, float: true}, {slot: 19}}
	twin(t, rt, s.targets(), alone, func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, only, s.a.Position) }, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeRMSQKVRoPEPosBuf(p, only, s.a.Position, bind)
	})
	replays(t, rt, s.targets(), vary, func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, only, s.a.Position) })
}

func TestRMSQKVRoPERefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(343)
	s := newRope(t, rt, r, ropeCase{t: 2, hq: 2, hkv: 1, d: 64, rotary: 64, capacity: 256, vNorm: true})
	fx := output[float32](t, foreign, 256)
	fu := output[uint32](t, foreign, 1)
	type change = func(a *QKVHeads)
	list := []struct {
		name     string
		base     QKVHeads
		change   change
		sentinel error
		parts    []string
	}{
		{"eps 0", s.heads(), func(a *QKVHeads) { a.Eps = 0 }, runtime.ErrScalar, []string{"Eps"}},
		{"T negative", s.heads(), func(a *QKVHeads) { a.T = -1 }, runtime.ErrShape, []string{"T"}},
		{"no query heads", s.heads(), func(a *QKVHeads) { a.HeadsQ = 0 }, runtime.ErrShape, []string{"HeadsQ"}},
		{"key heads negative", s.heads(), func(a *QKVHeads) { a.HeadsKV = -1 }, runtime.ErrShape, []string{"HeadsKV"}},
		{"head dimension odd", s.heads(), func(a *QKVHeads) { a.HeadDim = 63 }, runtime.ErrShape, []string{"HeadDim", "even"}},
		{"rotary beyond the head", s.heads(), func(a *QKVHeads) { a.RotaryDim = 66 }, runtime.ErrShape, []string{"RotaryDim", "64"}},
		{"product huge", s.heads(), func(a *QKVHeads) { a.T, a.HeadsQ, a.HeadDim = math.MaxInt32, math.MaxInt32, math.MaxInt32-1 }, runtime.ErrLimit, []string{"T * HeadsQ"}},
		{"rows beyond 31 bits", s.heads(), func(a *QKVHeads) { a.T, a.HeadsQ, a.HeadsKV = 1, math.MaxInt32-1, 1 }, runtime.ErrLimit, []string{"T * (HeadsQ + 2 HeadsKV)", "2147483648"}},
		{"rows of keys beyond 29 bits", s.heads(), func(a *QKVHeads) { a.T, a.HeadsQ, a.HeadsKV = 1, 1, 1<<29 }, runtime.ErrLimit, []string{"T * HeadsKV"}},
		{"Q short", s.heads(), func(a *QKVHeads) { a.Q = a.Q.Slice(0, 255) }, runtime.ErrShape, []string{"Q", "255"}},
		{"K short", s.heads(), func(a *QKVHeads) { a.K = a.K.Slice(0, 127) }, runtime.ErrShape, []string{"K"}},
		{"V zero", s.heads(), func(a *QKVHeads) { a.V = runtime.Slice[float32]{} }, runtime.ErrShape, []string{"V"}},
		{"QWeight short", s.heads(), func(a *QKVHeads) { a.QWeight = a.QWeight.Slice(0, 63) }, runtime.ErrShape, []string{"QWeight"}},
		{"VWeight without norm", s.heads(), func(a *QKVHeads) { a.VNorm = false }, runtime.ErrShape, []string{"VWeight", "VNorm"}},
		{"InvFreq short", s.heads(), func(a *QKVHeads) { a.InvFreq = a.InvFreq.Slice(0, 31) }, runtime.ErrShape, []string{"InvFreq"}},
		{"Q foreign", s.heads(), func(a *QKVHeads) { a.Q = fx.s }, runtime.ErrForeign, []string{"Q"}},
		{"K is V", s.heads(), func(a *QKVHeads) { a.K = a.V }, runtime.ErrOverlap, []string{"K", "V"}},
		{"weight in Q", s.heads(), func(a *QKVHeads) { a.KWeight = a.Q.Slice(192, 256) }, runtime.ErrOverlap, []string{"Q", "KWeight"}},
		{"frequencies in V", s.heads(), func(a *QKVHeads) { a.InvFreq = a.V.Slice(96, 128) }, runtime.ErrOverlap, []string{"V", "InvFreq"}},
		{"queries with keys", s.queries(), func(a *QKVHeads) { a.K = s.a.K }, runtime.ErrShape, []string{"K", "HeadsKV"}},
		{"queries with values", s.queries(), func(a *QKVHeads) { a.V = s.a.V }, runtime.ErrShape, []string{"V", "HeadsKV"}},
		{"queries with a weight of keys", s.queries(), func(a *QKVHeads) { a.KWeight = s.a.KWeight }, runtime.ErrShape, []string{"KWeight"}},
		{"queries with a norm of values", s.queries(), func(a *QKVHeads) { a.VNorm, a.VWeight = true, s.a.VWeight }, runtime.ErrShape, []string{"VNorm"}},
		{"queries with frequencies in them", s.queries(), func(a *QKVHeads) { a.InvFreq = a.Q.Slice(0, 32) }, runtime.ErrOverlap, []string{"Q", "InvFreq"}},
	}
	constant := []refusal{{"no pass", func(*runtime.Pass) error { return RMSQKVRoPE(nil, s.heads(), 0) }, runtime.ErrMisuse, nil}}
	live := []refusal{{"no pass", func(*runtime.Pass) error { return RMSQKVRoPEPosBuf(nil, s.heads(), s.a.Position) }, runtime.ErrMisuse, nil},
		{"position empty", func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, s.heads(), s.a.Position.Slice(0, 0)) }, runtime.ErrShape, []string{"position"}},
		{"position foreign", func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, s.queries(), fu.s) }, runtime.ErrForeign, []string{"position"}}}
	for _, c := range list {
		a := c.base
		c.change(&a)
		constant = append(constant, refusal{c.name, func(p *runtime.Pass) error { return RMSQKVRoPE(p, a, 0) }, c.sentinel, c.parts})
		live = append(live, refusal{c.name, func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, a, s.a.Position) }, c.sentinel, c.parts})
		checkRefused(t, "nn.ValidateRMSQKVRoPE", refusal{c.name, nil, c.sentinel, c.parts}, ValidateRMSQKVRoPE(rt, a, 0))
		checkRefused(t, "nn.ValidateRMSQKVRoPEPosBuf", refusal{c.name, nil, c.sentinel, c.parts}, ValidateRMSQKVRoPEPosBuf(rt, a, s.a.Position))
	}
	refuses(t, rt, "nn.RMSQKVRoPE", s.targets(), constant)
	refuses(t, rt, "nn.RMSQKVRoPEPosBuf", s.targets(), live)
	for _, err := range []error{ValidateRMSQKVRoPE(rt, s.heads(), 0), ValidateRMSQKVRoPEPosBuf(rt, s.queries(), s.a.Position)} {
		if err != nil {
			t.Error(err)
		}
	}
}

// testNarrowStore holds the variant for a cache of E against the one for float32: the same numbers, rounded.
func testNarrowStore[E interface {
	Float
	word
}](t *testing.T, seed uint64, round func([]float64) []float64) {
	rt, r := open(t), source(seed)
	for _, c := range []ropeCase{
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, capacity: 128},
		{t: 1, hq: 8, hkv: 4, d: 64, rotary: 64, pos: 149, offset: 149 * 256, capacity: 150 * 256},
		{t: 1, hq: 1, hkv: 1, d: 2, rotary: 2, pos: 3, offset: 1, capacity: 3},
		{t: 3, hq: 3, hkv: 3, d: 6, rotary: 4, pos: 2, offset: 5, capacity: 60, vNorm: true},
		{t: 5, hq: 2, hkv: 1, d: 64, rotary: 64, pos: 11, offset: 64, capacity: 512, vNorm: true},
		{t: 2, hq: 5, hkv: 5, d: 66, rotary: 66, pos: 1, offset: 3, capacity: 700},
		{t: 4, hq: 2, hkv: 2, d: 62, rotary: 0, capacity: 4 * 124},
		{t: 17, hq: 3, hkv: 1, d: 80, rotary: 40, pos: 5, offset: 80, capacity: 2000},
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, capacity: 128, scale: 1e15},              // values beyond float16
		{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, capacity: 128, scale: 1e-6},              // below its normal numbers
		{t: 1, hq: 2, hkv: 1, d: 64, rotary: 64, capacity: 128, offset: 65},                 // does not fit
		{t: 1, hq: 2, hkv: 1, d: 64, rotary: 64, capacity: 128, offset: math.MaxUint32 - 3}, // must not wrap
		{t: 2, hq: 2, hkv: 1, d: 64, rotary: 64, capacity: 128, pos: math.MaxUint32},        // positions beyond 32 bits
	} {
		s := newRope(t, rt, r, c)
		oldK, oldV := narrow[E](s.oldK), narrow[E](s.oldV)
		k, v := newBuffer(t, rt, oldK), newBuffer(t, rt, oldV)
		a := QKVRoPE[E]{Q: s.a.Q, K: s.a.K, V: s.a.V, QWeight: s.a.QWeight, KWeight: s.a.KWeight, VWeight: s.a.VWeight, VNorm: s.a.VNorm,
			CacheK: k.s, CacheV: v.s, Position: s.a.Position, CacheOffset: s.a.CacheOffset, InvFreq: s.a.InvFreq,
			T: s.a.T, HeadsQ: s.a.HeadsQ, HeadsKV: s.a.HeadsKV, HeadDim: s.a.HeadDim, RotaryDim: s.a.RotaryDim, Capacity: s.a.Capacity, Eps: s.a.Eps}
		if err := ValidateRMSQKVRoPEKVStore(rt, a); err != nil {
			t.Fatal(err)
		}
		encode(t, rt, 1, func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, a) })
		got := [][]uint32{s.q.bits(), s.k.bits(), s.v.bits()}
		for _, b := range s.targets() {
			b.reset()
		}
		var w worst
		s.check(t, rt, &w) // with caches of float32
		for i, b := range []target{s.q, s.k, s.v} {
			for j, bits := range b.bits() {
				if got[i][j] != bits {
					t.Fatalf("%+v: output %d, element %d depends on the cache's type", c, i, j)
				}
			}
		}
		n := c.t * c.hkv * c.d
		skipped := s.host.Store(s.oldK, s.oldV, uint64(c.offset), uint64(c.capacity)).Skipped
		for _, side := range []struct {
			name      string
			old, now  []E
			projected []float32
		}{{"K", oldK, k.get(), s.k.get()}, {"V", oldV, v.get(), s.v.get()}} {
			want := widen(side.old)
			if !skipped {
				copy(want[c.offset:], round(widen(side.projected[:n])))
			}
			for i, x := range widen(side.now) {
				if x != want[i] {
					t.Fatalf("%+v: cache %s, element %d: %v, want %v", c, side.name, i, x, want[i])
				}
			}
		}
	}
}

func TestRMSQKVRoPEKVStoreNarrowCaches(t *testing.T) {
	t.Run("f16", func(t *testing.T) { testNarrowStore[half.Float16](t, 344, oracle.RoundF16s[float64]) })
	t.Run("bf16", func(t *testing.T) { testNarrowStore[half.BFloat16](t, 345, oracle.RoundBF16s[float64]) })
}

func TestRMSQKVRoPEKVStoreNarrowRecorded(t *testing.T) {
	rt, r := open(t), source(346)
	s := newRope(t, rt, r, ropeCase{t: 2, hq: 3, hkv: 1, d: 64, rotary: 32, capacity: 1024})
	k, v := newBuffer(t, rt, narrow[half.Float16](s.oldK)), newBuffer(t, rt, narrow[half.Float16](s.oldV))
	a := QKVRoPE[half.Float16]{Q: s.a.Q, K: s.a.K, V: s.a.V, QWeight: s.a.QWeight, KWeight: s.a.KWeight, CacheK: k.s, CacheV: v.s,
		Position: s.a.Position, CacheOffset: s.a.CacheOffset, InvFreq: s.a.InvFreq, T: 2, HeadsQ: 3, HeadsKV: 1, HeadDim: 64, RotaryDim: 32, Capacity: 1024, Eps: ropeEps}
	outs := []target{s.q, s.k, s.v, k, v}
	call := func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, a) }
	replays(t, rt, outs, func(i int) {
		s.pos.set([]uint32{uint32(i * 2)})
		s.offset.set([]uint32{uint32(i * 128)})
	}, call)
	twin(t, rt, outs, []scalar{{slot: 6, u: 2}, {slot: 7, u: 3}, {slot: 8, u: 1}, {slot: 9, u: 64}, {slot: 10, u: 32}, {slot: 13, f: ropeEps, float: true},
		{slot: 17, u: 1024}, {slot: 19}}, call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeRMSQKVRoPEKVStore(p, a, bind)
	})
	bad := a
	bad.CacheK = k.s.Slice(0, 1023)
	odd := a
	odd.CacheV = k.s
	refuses(t, rt, "nn.RMSQKVRoPEKVStore", outs, []refusal{
		{"cache short", func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, bad) }, runtime.ErrShape, []string{"CacheK", "1023"}},
		{"caches are one", func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, odd) }, runtime.ErrOverlap, []string{"CacheK", "CacheV"}},
	})
}
