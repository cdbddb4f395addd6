package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// ropeOptionCases are models that are not Gemma: without norms, with biases, with other pairs and with a factor.
var ropeOptionCases = []ropeCase{
	{t: 1, hq: 2, hkv: 1, d: 8, rotary: 8, pos: 3, pairing: RoPENeighbours, noQNorm: true, noKNorm: true},                                        // Llama from GGUF
	{t: 3, hq: 4, hkv: 2, d: 64, rotary: 64, pos: 11, noQNorm: true, noKNorm: true},                                                              // Llama from Hugging Face
	{t: 2, hq: 7, hkv: 1, d: 64, rotary: 64, pos: 5, noQNorm: true, noKNorm: true, qBias: true, kBias: true, vBias: true},                        // Qwen2
	{t: 1, hq: 3, hkv: 3, d: 80, rotary: 32, pos: 2, pairing: RoPERotaryHalves, noQNorm: true, noKNorm: true, qBias: true, vBias: true},          // Phi-2
	{t: 1, hq: 4, hkv: 1, d: 96, rotary: 96, pos: 300, noQNorm: true, noKNorm: true, factor: 1.19},                                               // Phi-3 with long texts
	{t: 2, hq: 2, hkv: 1, d: 128, rotary: 64, pos: 7, pairing: RoPENeighbours, noQNorm: true, noKNorm: true, kBias: true},                        // GLM-4
	{t: 17, hq: 2, hkv: 1, d: 10, rotary: 6, pos: 9, pairing: RoPERotaryHalves, vNorm: true, factor: 0.5},                                        // norms and a part that turns
	{t: 5, hq: 3, hkv: 1, d: 66, rotary: 34, pos: 1, pairing: RoPENeighbours, vNorm: true, qBias: true, kBias: true, vBias: true, factor: 2.5},   // everything
	{t: 2, hq: 1, hkv: 5, d: 62, rotary: 20, pos: 4, pairing: RoPERotaryHalves, vNorm: true, qBias: true, kBias: true, vBias: true, factor: 1.5}, // likewise
	{t: 1, hq: 9, hkv: 2, d: 256, rotary: 128, noKNorm: true, kBias: true},
	{t: 1, hq: 9, hkv: 2, d: 256, rotary: 256, pos: 6, noQNorm: true, vBias: true},
	{t: 4, hq: 2, hkv: 2, d: 62, rotary: 0, pairing: RoPERotaryHalves, noQNorm: true, noKNorm: true}, // nothing happens
	{t: 4, hq: 2, hkv: 2, d: 62, rotary: 0, pairing: RoPENeighbours, factor: 3, noKNorm: true, qBias: true},
	{t: 3, hq: 1, hkv: 1, d: 2, rotary: 2, pos: 8, pairing: RoPENeighbours},
	{t: 3, hq: 1, hkv: 1, d: 4, rotary: 2, pos: 8, pairing: RoPERotaryHalves, noQNorm: true, factor: 1e-3},
	{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, noQNorm: true, noKNorm: true, kBias: true, scale: 1e15},
	{t: 2, hq: 2, hkv: 1, d: 64, rotary: 0, pos: math.MaxUint32, noQNorm: true}, // two positions that do not fit
	{t: 0, hq: 1, hkv: 1, d: 128, rotary: 128, noQNorm: true},
}

func TestRMSQKVRoPEOptions(t *testing.T) {
	rt, r := open(t), source(351)
	var w, store worst
	for _, c := range ropeOptionCases {
		c.capacity = max(c.t*c.hkv*c.d, 1) + 3*c.d
		c.offset = uint32(2 * c.d)
		newRope(t, rt, r, c).check(t, rt, &store)
		newRope(t, rt, r, c).checkHeads(t, rt, &w)
	}
	w.log(t, "1e-6 of a pair and 2^-23 of the angle", "RMSQKVRoPE", "RMSQKVRoPEPosBuf")
	store.log(t, "1e-6 of a pair and 2^-23 of the angle", "RMSQKVRoPEKVStore")
}

// A store that would not fit, and positions beyond 32 bits, are no-ops of the kernels with options too.
func TestRMSQKVRoPEOptionsLiveValues(t *testing.T) {
	rt, r := open(t), source(352)
	var w worst
	for _, c := range []struct{ pos, offset uint32 }{
		{0, 128}, {0, 129}, {0, 256}, {0, math.MaxUint32}, {0, math.MaxUint32 - 127}, {0, 1 << 31}, {math.MaxUint32, 0}, {math.MaxUint32 - 1, 0},
	} {
		newRope(t, rt, r, ropeCase{t: 2, hq: 3, hkv: 1, d: 64, pos: c.pos, offset: c.offset, capacity: 256, pairing: RoPENeighbours, noQNorm: true, kBias: true}).check(t, rt, &w)
	}
}

// storeOnce gives the bits of queries, keys and values.
func (s *ropeSetup) storeOnce(t *testing.T, rt *runtime.Runtime) [3][]uint32 {
	t.Helper()
	for _, b := range s.targets() {
		b.reset()
	}
	encode(t, rt, 1, func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, s.a) })
	return [3][]uint32{s.q.bits(), s.k.bits(), s.v.bits()}
}

func sameWords(t *testing.T, where string, got, want [3][]uint32) {
	t.Helper()
	for i := range want {
		for j := range want[i] {
			if got[i][j] != want[i][j] {
				t.Fatalf("%s: output %d, element %d: %#x, want %#x", where, i, j, got[i][j], want[i][j])
			}
		}
	}
}

// Options that change nothing leave every bit as it is without them, though another kernel computes it: a bias of zeros, a
// factor of 1, and halves of a head that turns as a whole.
func TestRMSQKVRoPEOptionsOfNoEffect(t *testing.T) {
	rt, r := open(t), source(353)
	for _, c := range []ropeCase{{t: 3, hq: 4, hkv: 2, d: 64, rotary: 64, pos: 11, capacity: 1024, vNorm: true}, {t: 2, hq: 1, hkv: 1, d: 6, rotary: 6, pos: 2, capacity: 64}} {
		s := newRope(t, rt, r, c)
		want, plain := s.storeOnce(t, rt), s.a
		zeros := newBuffer(t, rt, make([]float32, c.hq*c.d)).s
		for name, change := range map[string]func(a *QKVRoPE[float32]){
			"zeros": func(a *QKVRoPE[float32]) { a.QBias, a.KBias, a.VBias = zeros, zeros, zeros }, "one": func(a *QKVRoPE[float32]) { a.AttentionFactor = 1 },
			"halves": func(a *QKVRoPE[float32]) { a.Pairing = RoPERotaryHalves },
		} {
			s.a = plain
			change(&s.a)
			sameWords(t, name, s.storeOnce(t, rt), want)
		}
	}
}

// Heads without a norm, a bias and a turn pass bit for bit, whatever they are; and queries without a norm do not care for
// the keys' norm, nor keys for the queries'.
func TestRMSQKVRoPEWithoutNormsIsPlainRoPE(t *testing.T) {
	rt, r := open(t), source(354)
	for _, pairing := range []RoPEPairing{RoPEHalves, RoPERotaryHalves, RoPENeighbours} {
		c := ropeCase{t: 2, hq: 3, hkv: 1, d: 16, rotary: 0, pos: 5, capacity: 64, pairing: pairing, noQNorm: true, noKNorm: true}
		s := newRope(t, rt, r, c)
		odd := []float32{float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1)), 1e-45, math.MaxFloat32}
		x := append(odd, normals(r, s.q.n-len(odd), 1)...)
		s.q.set(x)
		got := s.storeOnce(t, rt)
		for i, v := range x {
			if got[0][i] != math.Float32bits(v) {
				t.Fatalf("%v: element %d: %#x of %#x", pairing, i, got[0][i], math.Float32bits(v))
			}
		}
		for i, v := range s.host.K {
			if got[1][i] != math.Float32bits(v) || got[2][i] != math.Float32bits(s.host.V[i]) {
				t.Fatalf("%v: element %d of keys or values changed", pairing, i)
			}
		}

		c = ropeCase{t: 2, hq: 3, hkv: 2, d: 64, rotary: 32, pos: 5, capacity: 256, pairing: pairing}
		s = newRope(t, rt, r, c)
		both, a := s.storeOnce(t, rt), s.a
		s.a.QWeight = runtime.Slice[float32]{}
		keys := s.storeOnce(t, rt)
		s.a.KWeight = runtime.Slice[float32]{}
		none := s.storeOnce(t, rt)
		s.a.QWeight = a.QWeight
		queries := s.storeOnce(t, rt)
		sameWords(t, "keys with a norm", keys, [3][]uint32{none[0], both[1], both[2]})
		sameWords(t, "queries with a norm", queries, [3][]uint32{both[0], none[1], both[2]})
	}
}

// What the pairings have in common: a head whose elements are put where another pairing looks for them gives the same bits
// there.
func TestRoPEPairingsAreReorderings(t *testing.T) {
	rt, r := open(t), source(355)
	const d, rotary = 32, 20
	var bits [3][]uint32
	data := normals(r, 2*d, 1)
	for i, pairing := range []RoPEPairing{RoPEHalves, RoPERotaryHalves, RoPENeighbours} {
		// place[p] has the two places of pair p, and behind the pairs those of what does not turn.
		var place [d]int
		used := map[int]bool{}
		for p := range rotary / 2 {
			a, b := [3][2]int{{p, p + d/2}, {p, p + rotary/2}, {2 * p, 2*p + 1}}[i][0], [3][2]int{{p, p + d/2}, {p, p + rotary/2}, {2 * p, 2*p + 1}}[i][1]
			place[2*p], place[2*p+1] = a, b
			used[a], used[b] = true, true
		}
		for at, n := 0, rotary; at < d; at++ {
			if !used[at] {
				place[n] = at
				n++
			}
		}
		s := newRope(t, rt, r, ropeCase{t: 2, hq: 1, hkv: 1, d: d, rotary: rotary, pos: 9, capacity: 2 * d, pairing: pairing, noQNorm: true, noKNorm: true, factor: 1.25})
		x := make([]float32, 2*d)
		for j, v := range data {
			x[j/d*d+place[j%d]] = v
		}
		s.q.set(x)
		got := s.storeOnce(t, rt)[0]
		for j := range data {
			bits[i] = append(bits[i], got[j/d*d+place[j%d]])
		}
		for j, b := range bits[i] {
			if b != bits[0][j] {
				t.Fatalf("%v: number %d: %#x, %#x in halves", pairing, j, b, bits[0][j])
			}
			if turned := b != math.Float32bits(data[j]); turned != (j%d < rotary) {
				t.Fatalf("%v: number %d turned: %t", pairing, j, turned)
			}
		}
	}
}

// A factor of 2 doubles what turns, exactly, and nothing else.
func TestRMSQKVRoPEAttentionFactor(t *testing.T) {
	rt, r := open(t), source(356)
	s := newRope(t, rt, r, ropeCase{t: 2, hq: 2, hkv: 1, d: 16, rotary: 8, pos: 5, capacity: 64, pairing: RoPERotaryHalves})
	once := s.storeOnce(t, rt)
	s.a.AttentionFactor = 2
	for i, twice := range s.storeOnce(t, rt) {
		for j, b := range twice {
			want := math.Float32frombits(once[i][j])
			if i < 2 && j%16 < 8 {
				want *= 2
			}
			if math.Float32frombits(b) != want {
				t.Fatalf("output %d, element %d: %v, want %v", i, j, math.Float32frombits(b), want)
			}
		}
	}
}

// Biases in the kernel have the bits of AddBias before it.
func TestRMSQKVRoPEBiasIsAddBias(t *testing.T) {
	rt, r := open(t), source(357)
	s := newRope(t, rt, r, ropeCase{t: 3, hq: 4, hkv: 2, d: 32, rotary: 32, pos: 2, capacity: 256, qBias: true, kBias: true, vBias: true})
	inside, a := s.storeOnce(t, rt), s.a
	none := runtime.Slice[float32]{}
	s.a.QBias, s.a.KBias, s.a.VBias = none, none, none
	for _, b := range s.targets() {
		b.reset()
	}
	encode(t, rt, 4, func(p *runtime.Pass) error {
		for _, add := range []struct {
			x, bias runtime.Slice[float32]
			heads   int
		}{{a.Q, a.QBias, 4}, {a.K, a.KBias, 2}, {a.V, a.VBias, 2}} {
			if err := AddBias(p, add.x, add.x, add.bias, 3, add.heads*32); err != nil {
				return err
			}
		}
		return RMSQKVRoPEKVStore(p, s.a)
	})
	sameWords(t, "biases before", [3][]uint32{s.q.bits(), s.k.bits(), s.v.bits()}, inside)
}

// Caches of float16 and bfloat16 hold what the keys and values became, rounded.
func testNarrowOptions[E interface {
	Float
	word
}](t *testing.T, seed uint64) {
	rt, r := open(t), source(seed)
	for _, c := range ropeOptionCases {
		c.capacity = max(c.t*c.hkv*c.d, 1) + 3*c.d
		c.offset = uint32(2 * c.d)
		s := newRope(t, rt, r, c)
		n, at := c.t*c.hkv*c.d, int(c.offset)
		k, v := output[E](t, rt, c.capacity), output[E](t, rt, c.capacity)
		a := QKVRoPE[E]{Q: s.a.Q, K: s.a.K, V: s.a.V, QWeight: s.a.QWeight, KWeight: s.a.KWeight, VWeight: s.a.VWeight, VNorm: s.a.VNorm,
			QBias: s.a.QBias, KBias: s.a.KBias, VBias: s.a.VBias, CacheK: k.s, CacheV: v.s, Position: s.a.Position, CacheOffset: s.a.CacheOffset, InvFreq: s.a.InvFreq,
			T: c.t, HeadsQ: c.hq, HeadsKV: c.hkv, HeadDim: c.d, RotaryDim: c.rotary, Pairing: c.pairing, AttentionFactor: c.factor, Capacity: c.capacity, Eps: ropeEps}
		encode(t, rt, min(c.t, 1), func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, a) })
		if s.host.Live().Skipped || c.t == 0 {
			k.untouched()
			v.untouched()
			continue
		}
		for _, side := range []struct {
			cache     []E
			projected []float32
		}{{k.get(), s.k.get()}, {v.get(), s.v.get()}} {
			for i, want := range narrow[E](side.projected[:n]) {
				if side.cache[at+i] != want {
					t.Fatalf("%+v: element %d: %v, want %v", c, i, side.cache[at+i], want)
				}
			}
		}
	}
}

func TestRMSQKVRoPEOptionsNarrowCaches(t *testing.T) {
	t.Run("f16", func(t *testing.T) { testNarrowOptions[half.Float16](t, 358) })
	t.Run("bf16", func(t *testing.T) { testNarrowOptions[half.BFloat16](t, 359) })
}

func TestRMSQKVRoPEOptionsRecorded(t *testing.T) {
	rt, r := open(t), source(360)
	s := newRope(t, rt, r, ropeCase{t: 2, hq: 3, hkv: 1, d: 64, rotary: 32, pos: 5, capacity: 1024, pairing: RoPENeighbours, factor: 1.5, noKNorm: true, vNorm: true, qBias: true, vBias: true})
	scalars := []scalar{{slot: 6, u: 2}, {slot: 7, u: 3}, {slot: 8, u: 1}, {slot: 9, u: 64}, {slot: 10, u: 32}, {slot: 13, f: ropeEps, float: true}, {slot: 19, u: 1},
		{slot: 20, u: 2}, {slot: 21, f: 1.5, float: true}, {slot: 25, u: 1 + 4 + 16}}
	with := func(more ...scalar) []scalar { return append(scalars[:len(scalars):len(scalars)], more...) }
	vary := func(i int) {
		s.pos.set([]uint32{uint32(i * 2)})
		s.offset.set([]uint32{uint32(i * 128)})
		s.q.set(normals(r, s.q.n, 1))
	}
	store := func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, s.a) }
	replays(t, rt, s.targets(), vary, store)
	twin(t, rt, s.targets(), with(scalar{slot: 17, u: 1024}), store, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeRMSQKVRoPEKVStore(p, s.a, bind)
	})
	a := s.heads()
	live := func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, a, s.a.Position) }
	replays(t, rt, s.targets(), vary, live)
	twin(t, rt, s.targets(), scalars, live, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeRMSQKVRoPEPosBuf(p, a, s.a.Position, bind)
	})
	constant := func(p *runtime.Pass) error { return RMSQKVRoPE(p, a, 5) }
	replays(t, rt, s.targets(), vary, constant)
	twin(t, rt, s.targets(), with(scalar{slot: 11, u: 5}), constant, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeRMSQKVRoPE(p, a, 5, bind)
	})
	// Nothing but queries: what slots hold that have no operand does not matter.
	only := s.queries()
	only.QWeight, only.QBias, only.RotaryDim, only.InvFreq = runtime.Slice[float32]{}, runtime.Slice[float32]{}, 0, runtime.Slice[float32]{}
	bare := func(p *runtime.Pass) error { return RMSQKVRoPE(p, only, 5) }
	replays(t, rt, s.targets(), vary, bare)
	encode(t, rt, 1, bare)
}

func TestRMSQKVRoPEOptionsRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(361)
	s := newRope(t, rt, r, ropeCase{t: 2, hq: 2, hkv: 1, d: 64, rotary: 64, capacity: 256, qBias: true, kBias: true, vBias: true, noQNorm: true, noKNorm: true})
	fx := output[float32](t, foreign, 256)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	var store, heads []refusal
	for _, c := range []struct {
		name     string
		change   func(a *QKVRoPE[float32])
		sentinel error
		parts    []string
	}{
		{"pairing", func(a *QKVRoPE[float32]) { a.Pairing = 3 }, runtime.ErrScalar, []string{"Pairing", "RoPEPairing(3)", "RoPENeighbours"}},
		{"pairing negative", func(a *QKVRoPE[float32]) { a.Pairing = -1 }, runtime.ErrScalar, []string{"Pairing"}},
		{"factor negative", func(a *QKVRoPE[float32]) { a.AttentionFactor = -1 }, runtime.ErrScalar, []string{"AttentionFactor", "-1"}},
		{"factor NaN", func(a *QKVRoPE[float32]) { a.AttentionFactor = nan }, runtime.ErrScalar, []string{"AttentionFactor"}},
		{"factor infinite", func(a *QKVRoPE[float32]) { a.AttentionFactor = inf }, runtime.ErrScalar, []string{"AttentionFactor"}},
		{"eps NaN without norms", func(a *QKVRoPE[float32]) { a.Eps = nan }, runtime.ErrScalar, []string{"Eps"}},
		{"eps 0 with one", func(a *QKVRoPE[float32]) { a.Eps, a.KWeight = 0, a.V.Slice(0, 64) }, runtime.ErrScalar, []string{"Eps"}},
		{"eps 0 with one of values", func(a *QKVRoPE[float32]) { a.Eps, a.VNorm, a.VWeight = 0, true, a.V.Slice(0, 64) }, runtime.ErrScalar, []string{"Eps"}},
		{"QWeight empty", func(a *QKVRoPE[float32]) { a.QWeight = a.InvFreq.Slice(0, 0) }, runtime.ErrShape, []string{"QWeight"}},
		{"KWeight empty", func(a *QKVRoPE[float32]) { a.KWeight = a.InvFreq.Slice(0, 0) }, runtime.ErrShape, []string{"KWeight"}},
		{"QBias short", func(a *QKVRoPE[float32]) { a.QBias = a.QBias.Slice(0, 127) }, runtime.ErrShape, []string{"QBias", "127", "128"}},
		{"KBias short", func(a *QKVRoPE[float32]) { a.KBias = a.KBias.Slice(0, 63) }, runtime.ErrShape, []string{"KBias", "63"}},
		{"VBias empty", func(a *QKVRoPE[float32]) { a.VBias = a.VBias.Slice(0, 0) }, runtime.ErrShape, []string{"VBias"}},
		{"QBias foreign", func(a *QKVRoPE[float32]) { a.QBias = fx.s }, runtime.ErrForeign, []string{"QBias"}},
		{"QBias is Q", func(a *QKVRoPE[float32]) { a.QBias = a.Q }, runtime.ErrOverlap, []string{"Q", "QBias"}},
		{"KBias in V", func(a *QKVRoPE[float32]) { a.KBias = a.V.Slice(64, 128) }, runtime.ErrOverlap, []string{"V", "KBias"}},
		{"VBias in K", func(a *QKVRoPE[float32]) { a.VBias = a.K.Slice(0, 64) }, runtime.ErrOverlap, []string{"K", "VBias"}},
		{"InvFreq in Q without norms", func(a *QKVRoPE[float32]) { a.InvFreq = a.Q.Slice(0, 32) }, runtime.ErrOverlap, []string{"Q", "InvFreq"}},
	} {
		changed := *s
		c.change(&changed.a)
		a, h := changed.a, changed.heads()
		store = append(store, refusal{c.name, func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, a) }, c.sentinel, c.parts})
		heads = append(heads, refusal{c.name, func(p *runtime.Pass) error { return RMSQKVRoPE(p, h, 0) }, c.sentinel, c.parts})
		checkRefused(t, "nn.ValidateRMSQKVRoPEKVStore", refusal{c.name, nil, c.sentinel, c.parts}, ValidateRMSQKVRoPEKVStore(rt, a))
		checkRefused(t, "nn.ValidateRMSQKVRoPEPosBuf", refusal{c.name, nil, c.sentinel, c.parts}, ValidateRMSQKVRoPEPosBuf(rt, h, s.a.Position))
	}
	store = append(store, refusal{"bias in a cache", func(p *runtime.Pass) error {
		a := s.a
		a.VBias = a.CacheK.Slice(0, 64)
		return RMSQKVRoPEKVStore(p, a)
	}, runtime.ErrOverlap, []string{"CacheK", "VBias"}})
	for name, change := range map[string]func(a *QKVHeads){"KBias": func(a *QKVHeads) { a.KBias = s.a.KBias }, "VBias": func(a *QKVHeads) { a.VBias = s.a.VBias }} {
		a := s.queries()
		change(&a)
		heads = append(heads, refusal{"queries with " + name, func(p *runtime.Pass) error { return RMSQKVRoPE(p, a, 0) }, runtime.ErrShape, []string{name, "HeadsKV"}})
	}
	refuses(t, rt, "nn.RMSQKVRoPEKVStore", s.targets(), store)
	refuses(t, rt, "nn.RMSQKVRoPE", s.targets(), heads)
	without := s.a
	without.Eps = 0 // nothing is normalised
	if err := ValidateRMSQKVRoPEKVStore(rt, without); err != nil {
		t.Error(err)
	}
}

func TestRoPEPairingString(t *testing.T) {
	for p, want := range map[RoPEPairing]string{RoPEHalves: "RoPEHalves", RoPERotaryHalves: "RoPERotaryHalves", RoPENeighbours: "RoPENeighbours", 7: "RoPEPairing(7)"} {
		if got := fmt.Sprint(p); got != want {
			t.Errorf("%d: %s", int(p), got)
		}
	}
}
