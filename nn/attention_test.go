package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// AttnHeadDim is the head dimension of cases that do not name one.
const AttnHeadDim = 128

type attnCase struct {
	b, tq, h, hkv, capacity, window int
	tkv, qPos, kvPos                uint32
	scale                           float64 // of the data; 0 for 1
	d                               int     // 0 for AttnHeadDim
	softcap                         float32
	sinks                           bool
}

type attnSetup struct {
	attnCase
	host             oracle.Attention
	q, k, v          *buffer[float32]
	tkv, qPos, kvPos *buffer[uint32]
	d                AttnDims
	live             AttnLive
}

func newAttn(t testing.TB, rt *runtime.Runtime, r *rand.Rand, c attnCase) *attnSetup {
	t.Helper()
	if c.scale == 0 {
		c.scale = 1
	}
	if c.d == 0 {
		c.d = AttnHeadDim
	}
	s := &attnSetup{attnCase: c}
	scale := float32(1 / math.Sqrt(float64(c.d)))
	s.host = oracle.Attention{
		Q: normals(r, c.b*c.tq*c.h*c.d, c.scale), K: normals(r, c.b*c.capacity*c.hkv*c.d, c.scale), V: normals(r, c.b*c.capacity*c.hkv*c.d, 1),
		B: c.b, Tq: c.tq, H: c.h, Hkv: c.hkv, D: c.d, Capacity: c.capacity, Tkv: uint64(c.tkv), QPos: uint64(c.qPos), KVPos: uint64(c.kvPos),
		Window: uint64(c.window), Scale: float64(scale), Softcap: float64(c.softcap)}
	s.q, s.k, s.v = newBuffer(t, rt, s.host.Q), newBuffer(t, rt, s.host.K), newBuffer(t, rt, s.host.V)
	s.tkv, s.qPos, s.kvPos = newBuffer(t, rt, []uint32{c.tkv}), newBuffer(t, rt, []uint32{c.qPos}), newBuffer(t, rt, []uint32{c.kvPos})
	s.live = AttnLive{Tkv: s.tkv.s, QPos: s.qPos.s, KVPos: s.kvPos.s}
	s.d = AttnDims{Batch: c.b, Tq: c.tq, Heads: c.h, HeadsKV: c.hkv, HeadDim: c.d, Capacity: c.capacity, Window: c.window, Scale: scale, Softcap: c.softcap}
	if c.sinks {
		s.host.Sinks = normals(r, c.h, 3)
		s.d.Sinks = newBuffer(t, rt, s.host.Sinks).s
	}
	return s
}

// allowed is the budget of each output: the weights of the values are off by what the scores are, relative to the sum
// of the terms of a score, plus some roundings of their own.
func (s *attnSetup) allowed() func(i int) float64 {
	size := s.host.Magnitude() // sum of p |v|
	// A score is a sum of D products in some 16 steps and 3 levels, each rounding 2^-24 of what there is; |q||k| bounds it. A
	// cap adds some roundings of itself.
	norm := func(x []float32) float64 {
		m := 0.0
		for i := 0; i < len(x); i += s.host.D {
			sum := 0.0
			for _, v := range x[i : i+s.host.D] {
				if v == v {
					sum += float64(v) * float64(v)
				}
			}
			m = max(m, math.Sqrt(sum))
		}
		return m
	}
	score := (norm(s.host.Q)*norm(s.host.K)*s.host.Scale + s.host.Softcap) * 4 / (1 << 24)
	return func(i int) float64 { return size[i]*(1e-6+2*score) + 1e-30 }
}

func TestFlashAttnRows(t *testing.T) {
	rt, r := open(t), source(51)
	var w32, w16 worst
	for _, c := range []attnCase{
		{b: 1, tq: 1, h: 2, hkv: 1, capacity: 1, tkv: 1},                                      // the first step
		{b: 1, tq: 1, h: 2, hkv: 1, capacity: 150, tkv: 100, qPos: 99, window: 64},            // a sliding layer
		{b: 1, tq: 1, h: 2, hkv: 1, capacity: 150, tkv: 150, qPos: 149},                       // a global layer, cache full
		{b: 1, tq: 1, h: 8, hkv: 4, capacity: 33, tkv: 33, qPos: 32, window: 1},               // sees itself only
		{b: 1, tq: 1, h: 3, hkv: 3, capacity: 64, tkv: 64, qPos: 63, window: 64},              // the window is the text
		{b: 1, tq: 3, h: 4, hkv: 2, capacity: 9, tkv: 7, qPos: 4},                             // fewer rows than a simdgroup
		{b: 2, tq: 4, h: 2, hkv: 1, capacity: 11, tkv: 6, qPos: 2, window: 3},                 // capacity is the stride of a batch
		{b: 1, tq: 5, h: 1, hkv: 1, capacity: 5, tkv: 5},                                      // a prompt from the start
		{b: 3, tq: 32, h: 1, hkv: 1, capacity: 40, tkv: 32, window: 7},                        // a full threadgroup
		{b: 1, tq: 33, h: 2, hkv: 2, capacity: 50, tkv: 33, window: 16},                       // one row more
		{b: 1, tq: 70, h: 1, hkv: 1, capacity: 70, tkv: 70},                                   // several threadgroups
		{b: 1, tq: 6, h: 2, hkv: 1, capacity: 20, tkv: 20, qPos: 100, kvPos: 90},              // a ring's tail: keys start at 90
		{b: 1, tq: 9, h: 2, hkv: 1, capacity: 12, tkv: 12, qPos: 3, kvPos: 8},                 // most rows before all keys
		{b: 1, tq: 4, h: 1, hkv: 1, capacity: 16, tkv: 4, qPos: 40, kvPos: 0, window: 8},      // keys all behind the window
		{b: 1, tq: 7, h: 2, hkv: 1, capacity: 8, tkv: 0, qPos: 5},                             // nothing in the cache
		{b: 1, tq: 2, h: 6, hkv: 2, capacity: 24, tkv: 24, qPos: 22, scale: 8},                // scores in the hundreds
		{b: 1, tq: 2, h: 2, hkv: 2, capacity: 24, tkv: 24, qPos: 22, scale: 1e-3},             // nearly equal weights
		{b: 1, tq: 2, h: 1, hkv: 1, capacity: 5, tkv: 5, qPos: math.MaxUint32 - 1, window: 3}, // positions at the limit of 32 bits, keys far behind
		{b: 1, tq: 2, h: 1, hkv: 1, capacity: 5, tkv: 5, qPos: math.MaxUint32, kvPos: math.MaxUint32 - 3, window: 3},
		{b: 1, tq: 0, h: 2, hkv: 1, capacity: 4, tkv: 4}, {b: 0, tq: 3, h: 2, hkv: 1, capacity: 4, tkv: 4}, // nothing to do
	} {
		s := newAttn(t, rt, r, c)
		where := fmt.Sprintf("%+v", c)
		n := c.b * c.tq * c.h * AttnHeadDim
		o32, o16 := output[float32](t, rt, n), output[half.BFloat16](t, rt, n)
		encode(t, rt, 2*min(n, 1), func(p *runtime.Pass) error {
			if err := FlashAttnRows(p, o32.s, s.q.s, s.k.s, s.v.s, s.live, s.d); err != nil {
				return err
			}
			return FlashAttnRows(p, o16.s, s.q.s, s.k.s, s.v.s, s.live, s.d)
		})
		want, allowed := s.host.Rows(), s.allowed()
		got := o32.written()
		w32.compare(t, where, widen(got), want, allowed)
		for i, b := range o16.written() {
			if b != half.BFloat16FromFloat32(got[i]) {
				t.Fatalf("%s: element %d: bfloat16 %v of float32 %v", where, i, b, got[i])
			}
		}
		w16.compare(t, where, widen(o16.get()), want, func(i int) float64 { return allowed(i) + math.Abs(want[i])/256 })

		// The output may be the queries.
		encode(t, rt, min(n, 1), func(p *runtime.Pass) error {
			return FlashAttnRows(p, s.q.s, s.q.s, s.k.s, s.v.s, s.live, s.d)
		})
		for i, v := range s.q.get() {
			if v != got[i] {
				t.Fatalf("%s: in place, element %d: %v, want %v", where, i, v, got[i])
			}
		}
	}
	w32.log(t, "1e-6 of the values, and the scores' errors,", "FlashAttnRows")
	w16.log(t, "the same and 2^-8 of the value", "FlashAttnRows")
}

// The live count of keys is not trusted past the capacity.
func TestFlashAttnRowsLimitsTkv(t *testing.T) {
	rt, r := open(t), source(52)
	for _, tkv := range []uint32{8, 9, 1 << 31, math.MaxUint32} {
		s := newAttn(t, rt, r, attnCase{b: 2, tq: 2, h: 1, hkv: 1, capacity: 8, tkv: tkv, qPos: 100})
		o := output[float32](t, rt, 2*2*AttnHeadDim)
		encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
		var w worst
		w.compare(t, fmt.Sprint(tkv), widen(o.written()), s.host.Rows(), s.allowed())
	}
}

// What a row does not see may be anything, and rows of one simdgroup see different keys.
func TestFlashAttnRowsIgnoresTheInvisible(t *testing.T) {
	rt, r := open(t), source(53)
	const capacity, tq, window, tkv = 24, 4, 4, 20
	for _, poison := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
		s := newAttn(t, rt, r, attnCase{b: 1, tq: tq, h: 2, hkv: 1, capacity: capacity, tkv: tkv, qPos: 12, window: window})
		seen := map[int]bool{}
		for row := range tq {
			for j := range capacity {
				if s.host.Visible(row, j) {
					seen[j] = true
				}
			}
		}
		// The last row of the simdgroup alone sees key 15: poison there may reach that row only.
		delete(seen, 15)
		for j := range capacity {
			if !seen[j] {
				for i := range AttnHeadDim {
					s.host.K[j*AttnHeadDim+i], s.host.V[j*AttnHeadDim+i] = poison, poison
				}
			}
		}
		s.k.set(s.host.K)
		s.v.set(s.host.V)
		o := output[float32](t, rt, tq*2*AttnHeadDim)
		encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
		n := (tq - 1) * 2 * AttnHeadDim
		var w worst
		got, want, allowed := widen(o.get()), s.host.Rows(), s.allowed()
		w.compare(t, fmt.Sprint(poison), got[:n], want[:n], allowed)
	}
}

func TestFlashAttnRowsRecorded(t *testing.T) {
	rt, r := open(t), source(54)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 2, h: 4, hkv: 2, capacity: 40, tkv: 10, qPos: 8, window: 6})
	o, o16 := output[float32](t, rt, s.q.n), output[half.BFloat16](t, rt, s.q.n)
	vary := func(i int) {
		s.tkv.set([]uint32{uint32(10 + 9*i)})
		s.qPos.set([]uint32{uint32(8 + 9*i)})
		s.kvPos.set([]uint32{uint32(i)})
	}
	call := func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) }
	replays(t, rt, []target{o}, vary, call)
	scalars := []scalar{{slot: 4, u: 1}, {slot: 5, u: 2}, {slot: 7, u: 4}, {slot: 8, u: 2}, {slot: 9, u: 6}, {slot: 10, f: s.d.Scale, float: true}, {slot: 13}, {slot: 14, u: 40}}
	twin(t, rt, []target{o}, scalars, call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeFlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d, bind)
	})
	call16 := func(p *runtime.Pass) error { return FlashAttnRows(p, o16.s, s.q.s, s.k.s, s.v.s, s.live, s.d) }
	replays(t, rt, []target{o16}, vary, call16)
	scalars[6].u = 1
	twin(t, rt, []target{o16}, scalars, call16, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeFlashAttnRows(p, o16.s, s.q.s, s.k.s, s.v.s, s.live, s.d, bind)
	})
}

func TestFlashAttnRowsRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(55)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 2, h: 2, hkv: 1, capacity: 8, tkv: 4})
	n := s.q.n
	o, o16 := output[float32](t, rt, n), output[half.BFloat16](t, rt, n+1)
	fx, fu := output[float32](t, foreign, 1024), output[uint32](t, foreign, 1)
	type args struct {
		o, q, k, v runtime.Slice[float32]
		live       AttnLive
		d          AttnDims
	}
	base := args{o.s, s.q.s, s.k.s, s.v.s, s.live, s.d}
	refusals := []refusal{
		{"no pass", func(*runtime.Pass) error {
			return FlashAttnRows(nil, base.o, base.q, base.k, base.v, base.live, base.d)
		}, runtime.ErrMisuse, nil},
	}
	for _, c := range []struct {
		name     string
		change   func(a *args)
		sentinel error
		parts    []string
	}{
		{"scale NaN", func(a *args) { a.d.Scale = float32(math.NaN()) }, runtime.ErrScalar, []string{"Scale"}},
		{"scale infinite", func(a *args) { a.d.Scale = float32(math.Inf(-1)) }, runtime.ErrScalar, []string{"Scale"}},
		{"batch negative", func(a *args) { a.d.Batch = -1 }, runtime.ErrShape, []string{"Batch"}},
		{"Tq negative", func(a *args) { a.d.Tq = -1 }, runtime.ErrShape, []string{"Tq"}},
		{"no heads", func(a *args) { a.d.Heads = 0 }, runtime.ErrShape, []string{"Heads"}},
		{"no key heads", func(a *args) { a.d.HeadsKV = 0 }, runtime.ErrShape, []string{"HeadsKV"}},
		{"heads not shared evenly", func(a *args) { a.d.Heads, a.d.HeadsKV = 3, 2 }, runtime.ErrShape, []string{"Heads", "multiple"}},
		{"head dimension", func(a *args) { a.d.HeadDim = 72 }, runtime.ErrShape, []string{"HeadDim", "72", "128"}},
		{"softcap negative", func(a *args) { a.d.Softcap = -1 }, runtime.ErrScalar, []string{"Softcap"}},
		{"softcap NaN", func(a *args) { a.d.Softcap = float32(math.NaN()) }, runtime.ErrScalar, []string{"Softcap"}},
		{"lanes", func(a *args) { a.d.Lanes = 4 }, runtime.ErrShape, []string{"Lanes", "4"}},
		{"groups", func(a *args) { a.d.Groups = 7 }, runtime.ErrShape, []string{"Groups", "7"}},
		{"lanes negative", func(a *args) { a.d.Lanes = -8 }, runtime.ErrShape, []string{"Lanes"}},
		{"no such setting with a softcap", func(a *args) { a.d.Lanes, a.d.Softcap = 16, 1 }, runtime.ErrShape, []string{"Lanes", "options"}},
		{"sinks short", func(a *args) { a.d.Sinks = a.v.Slice(0, 1) }, runtime.ErrShape, []string{"Sinks"}},
		{"sinks foreign", func(a *args) { a.d.Sinks = fx.s }, runtime.ErrForeign, []string{"Sinks"}},
		{"sinks in out", func(a *args) { a.d.Sinks = a.o.Slice(0, 2) }, runtime.ErrOverlap, []string{"out", "Sinks"}},
		{"no capacity", func(a *args) { a.d.Capacity = 0 }, runtime.ErrShape, []string{"Capacity"}},
		{"window negative", func(a *args) { a.d.Window = -1 }, runtime.ErrShape, []string{"Window"}},
		{"product huge", func(a *args) { a.d.Batch, a.d.Tq, a.d.Heads = math.MaxInt32, math.MaxInt32, math.MaxInt32 }, runtime.ErrLimit, []string{"Batch"}},
		{"grid huge", func(a *args) { a.d.Batch, a.d.Heads = 1<<20, 1<<20 }, runtime.ErrLimit, []string{"Batch * Heads"}},
		{"capacity beyond K", func(a *args) { a.d.Capacity = 9 }, runtime.ErrShape, []string{"k", "1024", "1152"}},
		{"V short", func(a *args) { a.v = a.v.Slice(0, 1020) }, runtime.ErrShape, []string{"v"}},
		{"q short", func(a *args) { a.q = a.q.Slice(0, n-4) }, runtime.ErrShape, []string{"q"}},
		{"q not aligned", func(a *args) { a.q, a.d.Tq = a.q.Slice(1, n), 1 }, runtime.ErrShape, []string{"q", "multiple of 16"}},
		{"out short", func(a *args) { a.o = a.o.Slice(0, n-1) }, runtime.ErrShape, []string{"out"}},
		{"Tkv empty", func(a *args) { a.live.Tkv = a.live.Tkv.Slice(0, 0) }, runtime.ErrShape, []string{"Tkv"}},
		{"KVPos zero", func(a *args) { a.live.KVPos = runtime.Slice[uint32]{} }, runtime.ErrShape, []string{"KVPos"}},
		{"q foreign", func(a *args) { a.q = fx.s }, runtime.ErrForeign, []string{"q"}},
		{"out foreign", func(a *args) { a.o = fx.s }, runtime.ErrForeign, []string{"out"}},
		{"QPos foreign", func(a *args) { a.live.QPos = fu.s }, runtime.ErrForeign, []string{"QPos"}},
		{"out is k", func(a *args) { a.o = a.k }, runtime.ErrOverlap, []string{"out", "k"}},
		{"out in v", func(a *args) { a.o = a.v.Slice(128, 128+n) }, runtime.ErrOverlap, []string{"out", "v"}},
		{"out across q", func(a *args) { a.d.Tq, a.o = 1, a.q.Slice(64, 64+n/2) }, runtime.ErrOverlap, []string{"out", "q"}},
	} {
		a := base
		c.change(&a)
		refusals = append(refusals, refusal{c.name, func(p *runtime.Pass) error { return FlashAttnRows(p, a.o, a.q, a.k, a.v, a.live, a.d) }, c.sentinel, c.parts})
		checkRefused(t, "nn.ValidateFlashAttnRows", refusal{c.name + ", validated", nil, c.sentinel, c.parts}, ValidateFlashAttnRows(rt, a.o, a.q, a.k, a.v, a.live, a.d))
	}
	outs := []target{o, o16, s.q, s.k, s.v}
	refuses(t, rt, "nn.FlashAttnRows", outs, refusals)
	call16 := func(o runtime.Slice[half.BFloat16]) func(p *runtime.Pass) error {
		return func(p *runtime.Pass) error { return FlashAttnRows(p, o, s.q.s, s.k.s, s.v.s, s.live, s.d) }
	}
	refuses(t, rt, "nn.FlashAttnRows", outs, []refusal{
		{"bfloat16 short", call16(o16.s.Slice(0, n-1)), runtime.ErrShape, []string{"out"}},
		{"bfloat16 not aligned", call16(o16.s.Slice(1, n+1)), runtime.ErrShape, []string{"out", "multiple of 4"}},
	})
	if err := ValidateFlashAttnRows(rt, o16.s, s.q.s, s.k.s, s.v.s, s.live, s.d); err != nil {
		t.Error(err)
	}
	if err := ValidateFlashAttnRows(nil, o16.s, s.q.s, s.k.s, s.v.s, s.live, s.d); err == nil {
		t.Error("no runtime: not refused")
	}
}
