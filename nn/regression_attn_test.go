package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Rows of a tile whose scores are left over from other work: every row of every head dimension is what it is alone, also
// after threadgroups that had more keys, and where the last tile is not full.
func TestRegressionNoStaleScores(t *testing.T) {
	rt, r := open(t), source(361)
	for _, d := range AttnHeadDims() {
		before := newAttn(t, rt, r, attnCase{b: 1, tq: 64, h: 1, hkv: 1, capacity: 16, tkv: 16, qPos: 15, scale: 8, d: d})
		s := newAttn(t, rt, r, attnCase{b: 1, tq: 37, h: 1, hkv: 1, capacity: 16, tkv: 3, qPos: 0, d: d})
		sink, o := output[float32](t, rt, before.q.n), output[float32](t, rt, s.q.n)
		encode(t, rt, 2, func(p *runtime.Pass) error {
			if err := FlashAttnRows(p, sink.s, before.q.s, before.k.s, before.v.s, before.live, before.d); err != nil {
				return err
			}
			return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d)
		})
		var w worst
		w.compare(t, "after others", widen(o.written()), s.host.Rows(), s.allowed())
	}
}

// exp(-inf - -inf) of rows and chunks without a key would be NaN: for every head dimension, with a cap and sinks or without.
func TestRegressionNothingToSee(t *testing.T) {
	rt, r := open(t), source(362)
	for _, d := range AttnHeadDims() {
		for _, sinks := range []bool{false, true} {
			// The window lies in the last chunk, and of three rows the last one alone sees a key.
			split := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 2, hkv: 1, capacity: 600, tkv: 600, qPos: 599, window: 2, d: d, sinks: sinks})
			var w worst
			decodeOnce(t, rt, split, cache[float32]{split.k, split.v}, "split", &w)
			rows := newAttn(t, rt, r, attnCase{b: 1, tq: 3, h: 2, hkv: 1, capacity: 4, tkv: 4, qPos: 0, kvPos: 2, d: d, sinks: sinks})
			o := output[float32](t, rt, rows.q.n)
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return FlashAttnRows(p, o.s, rows.q.s, rows.k.s, rows.v.s, rows.live, rows.d)
			})
			for i, v := range o.written() {
				if blind := i < 2*2*d; blind && v != 0 || v != v {
					t.Fatalf("head dimension %d: element %d is %v", d, i, v)
				}
			}
		}
	}
}

// A bfloat16 output of exactly its length, for every head dimension and both ways: all of it is written, in bfloat16.
func TestRegressionBFloatOutputOfEveryHeadDim(t *testing.T) {
	rt, r := open(t), source(363)
	for _, d := range AttnHeadDims() {
		s := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 2, hkv: 1, capacity: 2, tkv: 2, qPos: 1, d: d})
		scratch := output[float32](t, rt, AttnDecodeScratch(s.d))
		for _, call := range []func(p *runtime.Pass, o runtime.Slice[half.BFloat16]) error{
			func(p *runtime.Pass, o runtime.Slice[half.BFloat16]) error {
				return FlashAttnRows(p, o, s.q.s, s.k.s, s.v.s, s.live, s.d)
			},
			func(p *runtime.Pass, o runtime.Slice[half.BFloat16]) error {
				return FlashAttnDecode(p, o, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d)
			},
		} {
			exact, err := runtime.SliceOf(rt, output[half.BFloat16](t, rt, 2*d).image[pad:pad+2*d])
			if err != nil {
				t.Fatal(err)
			}
			if err := rt.Run(func(p *runtime.Pass) error { return call(p, exact) }); err != nil {
				t.Fatal(err)
			}
			got, want := make([]half.BFloat16, 2*d), s.host.Rows()
			if err := exact.Read(got); err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if e := math.Abs(float64(v.Float32()) - want[i]); !(e <= math.Abs(want[i])/256+1e-5) {
					t.Fatalf("head dimension %d: element %d is %v, want %v", d, i, v.Float32(), want[i])
				}
			}
		}
	}
}

// Queries only: simdgroups that pad the last threadgroup have no row, and a guard of caches that are not there holds nothing
// back. Each query is normalised once, whatever their number.
func TestRegressionQueriesOnly(t *testing.T) {
	rt, r := open(t), source(364)
	var w worst
	for hq := 1; hq <= 17; hq++ {
		s := newRope(t, rt, r, ropeCase{t: 1, hq: hq, hkv: 1, d: 8, rotary: 8, pos: 2, offset: math.MaxUint32, capacity: 8})
		a := s.queries()
		encode(t, rt, 1, func(p *runtime.Pass) error { return RMSQKVRoPEPosBuf(p, a, s.a.Position) })
		want := s.host.QOnly()
		w.compare(t, "queries", widen(s.q.written()), want.Q, s.allowed(want.Q))
		for _, b := range s.targets()[1:] {
			b.untouched()
		}
	}
}

// Live counts and positions at the end of 32 bits neither wrap nor lead out of a cache that ends where its memory ends; the
// capacity is the distance from batch to batch.
func TestRegressionAttnLiveValuesAreNotTrusted(t *testing.T) {
	rt, r := open(t), source(365)
	for _, d := range []int{8, 32, 64, 128, 256} {
		for _, c := range []struct{ tkv, qPos, kvPos uint32 }{
			{math.MaxUint32, math.MaxUint32, 0}, {math.MaxUint32, 0, math.MaxUint32}, {math.MaxUint32, math.MaxUint32, math.MaxUint32}, {1 << 31, 1 << 31, 1 << 31},
			{10, 9, 0}, {11, 10, 0}, {4, 3, 0}, {math.MaxUint32 - 127, 200, 190},
		} {
			s := newAttn(t, rt, r, attnCase{b: 3, tq: 1, h: 2, hkv: 1, capacity: 10, tkv: c.tkv, qPos: c.qPos, kvPos: c.kvPos, window: 6, d: d})
			exactK, err := runtime.SliceOf(rt, s.host.K)
			if err != nil {
				t.Fatal(err)
			}
			exactV, err := runtime.SliceOf(rt, s.host.V)
			if err != nil {
				t.Fatal(err)
			}
			o, od, scratch := output[float32](t, rt, s.q.n), output[float32](t, rt, s.q.n), output[float32](t, rt, AttnDecodeScratch(s.d))
			encode(t, rt, 3, func(p *runtime.Pass) error {
				if err := FlashAttnRows(p, o.s, s.q.s, exactK, exactV, s.live, s.d); err != nil {
					return err
				}
				return FlashAttnDecode(p, od.s, s.q.s, exactK, exactV, s.live, scratch.s, s.d)
			})
			var w worst
			w.compare(t, "rows", widen(o.written()), s.host.Rows(), s.allowed())
			w.compare(t, "decode", widen(od.written()), s.host.Rows(), s.allowed())
		}
	}
}

// Rows whose positions lie beyond 32 bits, behind a window: what they see does not wrap round to the first keys.
func TestRegressionAttnWindowBeyond32Bits(t *testing.T) {
	rt, r := open(t), source(366)
	for _, d := range []int{8, 32, 64, 128, 256} {
		s := newAttn(t, rt, r, attnCase{b: 1, tq: 9, h: 1, hkv: 1, capacity: 10, tkv: 10, qPos: math.MaxUint32 - 1, window: 2, d: d})
		o, tiled := output[float32](t, rt, s.q.n), output[float32](t, rt, s.q.n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
		got := map[string][]float32{"rows": o.written()}
		if d >= 128 {
			encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnTiled(p, tiled.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
			got["tiled"] = tiled.written()
		}
		for name, out := range got {
			for i, v := range out {
				if v != 0 {
					t.Fatalf("%s, head dimension %d: element %d is %v", name, d, i, v)
				}
			}
		}
	}
}
