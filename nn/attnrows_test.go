package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// cache is a key-value cache of element type E with the content of a setup, which is rounded to it.
type cache[E interface {
	Float
	word
}] struct {
	k, v *buffer[E]
}

func narrow[E interface {
	Float
	word
}](x []float32) []E {
	out := make([]E, len(x))
	for i, v := range x {
		switch p := any(&out[i]).(type) {
		case *float32:
			*p = v
		case *half.Float16:
			*p = half.Float16FromFloat32(v)
		case *half.BFloat16:
			*p = half.BFloat16FromFloat32(v)
		}
	}
	return out
}

// cacheOf makes the setup one over a cache of E.
func cacheOf[E interface {
	Float
	word
}](t testing.TB, rt *runtime.Runtime, s *attnSetup) cache[E] {
	t.Helper()
	var zero E
	switch any(zero).(type) {
	case half.Float16:
		s.host = s.host.WithCache(oracle.RoundF16)
	case half.BFloat16:
		s.host = s.host.WithCache(oracle.RoundBF16)
	}
	return cache[E]{newBuffer(t, rt, narrow[E](s.host.K)), newBuffer(t, rt, narrow[E](s.host.V))}
}

// headDimCases are shapes for every head dimension; the odd ones have a cap and sinks.
var headDimCases = []attnCase{
	{b: 1, tq: 1, h: 2, hkv: 1, capacity: 1, tkv: 1},                                      // the first step
	{b: 1, tq: 1, h: 4, hkv: 1, capacity: 20, tkv: 13, qPos: 12, window: 5, softcap: 2},   // MQA, a sliding layer
	{b: 1, tq: 2, h: 6, hkv: 2, capacity: 9, tkv: 9, qPos: 7, window: 1},                  // each sees itself only
	{b: 2, tq: 3, h: 3, hkv: 3, capacity: 6, tkv: 5, qPos: 2, sinks: true},                // batches, every head its own keys
	{b: 1, tq: 5, h: 2, hkv: 1, capacity: 12, tkv: 5, window: 100},                        // a window longer than the text
	{b: 1, tq: 9, h: 1, hkv: 1, capacity: 12, tkv: 12, qPos: 3, kvPos: 8, sinks: true},    // most rows before all keys
	{b: 1, tq: 4, h: 2, hkv: 1, capacity: 8, tkv: 0, qPos: 5},                             // nothing in the cache
	{b: 1, tq: 4, h: 1, hkv: 1, capacity: 16, tkv: 4, qPos: 40, window: 8, sinks: true},   // keys all behind the window
	{b: 1, tq: 3, h: 2, hkv: 2, capacity: 7, tkv: math.MaxUint32, qPos: 50},               // a count beyond the capacity
	{b: 1, tq: 6, h: 2, hkv: 1, capacity: 20, tkv: 20, qPos: 100, kvPos: 90, softcap: 30}, // a ring's tail
	{b: 1, tq: 2, h: 5, hkv: 1, capacity: 24, tkv: 24, qPos: 22, scale: 8},                // scores in the hundreds
	{b: 2, tq: 2, h: 4, hkv: 2, capacity: 11, tkv: 11, qPos: 9, scale: 8, softcap: 50, sinks: true},
	{b: 1, tq: 65, h: 1, hkv: 1, capacity: 8, tkv: 8, qPos: math.MaxUint32 - 66, kvPos: math.MaxUint32 - 30}, // more rows than a threadgroup
	{b: 1, tq: 0, h: 2, hkv: 1, capacity: 4, tkv: 4},
}

func testHeadDims[E interface {
	Float
	word
}](t *testing.T, seed uint64) {
	rt, r := open(t), source(seed)
	var w worst
	for _, d := range AttnHeadDims() {
		for _, c := range headDimCases {
			c.d = d
			s := newAttn(t, rt, r, c)
			kv := cacheOf[E](t, rt, s)
			n := c.b * c.tq * c.h * d
			o, o16 := output[float32](t, rt, n), output[half.BFloat16](t, rt, n)
			encode(t, rt, 2*min(n, 1), func(p *runtime.Pass) error {
				if err := FlashAttnRows(p, o.s, s.q.s, kv.k.s, kv.v.s, s.live, s.d); err != nil {
					return err
				}
				return FlashAttnRows(p, o16.s, s.q.s, kv.k.s, kv.v.s, s.live, s.d)
			})
			got := o.written()
			w.compare(t, fmt.Sprintf("%+v", c), widen(got), s.host.Rows(), s.allowed())
			for i, b := range o16.written() {
				if b != half.BFloat16FromFloat32(got[i]) {
					t.Fatalf("%+v: element %d: bfloat16 %v of float32 %v", c, i, b, got[i])
				}
			}
		}
	}
	w.log(t, "1e-6 of the values, and the scores' errors,", "FlashAttnRows")
}

func TestFlashAttnRowsHeadDims(t *testing.T) {
	numbersOnly(t)
	t.Run("f32", func(t *testing.T) { testHeadDims[float32](t, 301) })
	t.Run("f16", func(t *testing.T) { testHeadDims[half.Float16](t, 302) })
	t.Run("bf16", func(t *testing.T) { testHeadDims[half.BFloat16](t, 303) })
}

// Every kernel that another setting chooses computes the same; groups change no bit.
func TestFlashAttnRowsSettings(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(304)
	var w worst
	setups, bits := map[int]*attnSetup{}, map[[2]int][]uint32{}
	for _, setting := range rowsSettings {
		s := setups[setting.dim]
		if s == nil {
			s = newAttn(t, rt, r, attnCase{b: 1, tq: 37, h: 2, hkv: 1, capacity: 40, tkv: 38, qPos: 1, window: 9, d: setting.dim})
			setups[setting.dim] = s
		}
		o := output[float32](t, rt, s.q.n)
		s.d.Lanes, s.d.Groups = setting.lanes, setting.n
		encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
		w.compare(t, setting.plain[0], widen(o.written()), s.host.Rows(), s.allowed())
		key := [2]int{setting.dim, setting.lanes}
		if bits[key] == nil {
			bits[key] = o.bits()
		}
		for i, b := range o.bits() {
			if b != bits[key][i] {
				t.Fatalf("%s: element %d differs with the groups", setting.plain[0], i)
			}
		}
	}
	w.log(t, "1e-6 of the values, and the scores' errors,", "FlashAttnRows")
}

// Devices that take fewer threads for a kernel get the one with eight groups, and the same bits.
func TestFlashAttnRowsFewerThreads(t *testing.T) {
	var want []uint32
	for _, threads := range []int{1024, 256} {
		rt, r := openOn(t, soft.Options{MaxThreads: threads}), source(305)
		s := newAttn(t, rt, r, attnCase{b: 1, tq: 40, h: 1, hkv: 1, capacity: 40, tkv: 40, d: 256})
		o := output[float32](t, rt, s.q.n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
		if want == nil {
			want = o.bits()
		}
		for i, b := range o.bits() {
			if b != want[i] {
				t.Fatalf("%d threads: element %d differs", threads, i)
			}
		}
	}
}

// With few lanes for a row, a threadgroup has more rows than the other shapes have: those of a second one, and of simdgroups
// that are half full.
func TestFlashAttnRowsManyRows(t *testing.T) {
	rt, r := open(t), source(310)
	var w worst
	for _, d := range []int{8, 16, 32} {
		rows := SIMDWidth / RowsLanesFor(d) * RowsGroupsFor(d)
		s := newAttn(t, rt, r, attnCase{b: 1, tq: rows + 3, h: 2, hkv: 1, capacity: rows + 5, tkv: uint32(rows) + 4, qPos: 1, window: 6, d: d, sinks: d == 16})
		o := output[float32](t, rt, s.q.n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
		w.compare(t, fmt.Sprint(d), widen(o.written()), s.host.Rows(), s.allowed())
	}
	w.log(t, "1e-6 of the values, and the scores' errors,", "FlashAttnRows")
}

// The options' scalars, and a program with them.
func TestFlashAttnRowsOptionsRecorded(t *testing.T) {
	rt, r := open(t), source(306)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 2, h: 4, hkv: 2, capacity: 40, tkv: 10, qPos: 8, window: 6, d: 64, softcap: 5, sinks: true})
	kv := cacheOf[half.BFloat16](t, rt, s)
	o := output[float32](t, rt, s.q.n)
	call := func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, kv.k.s, kv.v.s, s.live, s.d) }
	replays(t, rt, []target{o}, func(i int) {
		s.tkv.set([]uint32{uint32(10 + 9*i)})
		s.qPos.set([]uint32{uint32(8 + 9*i)})
		s.kvPos.set([]uint32{uint32(i)})
	}, call)
	twin(t, rt, []target{o}, []scalar{{slot: 4, u: 1}, {slot: 5, u: 2}, {slot: 7, u: 4}, {slot: 8, u: 2}, {slot: 9, u: 6}, {slot: 10, f: s.d.Scale, float: true},
		{slot: 13}, {slot: 14, u: 40}, {slot: 15, f: 5, float: true}, {slot: 17, u: 1}}, call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeFlashAttnRows(p, o.s, s.q.s, kv.k.s, kv.v.s, s.live, s.d, bind)
	})
}

// A sink of -Inf takes no part, one that is large takes nearly everything.
func TestAttnSinksExtremes(t *testing.T) {
	rt, r := open(t), source(307)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 4, hkv: 1, capacity: 9, tkv: 9, qPos: 8, d: 64})
	plain, o, od := output[float32](t, rt, s.q.n), output[float32](t, rt, s.q.n), output[float32](t, rt, s.q.n)
	encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, plain.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
	s.host.Sinks = []float32{float32(math.Inf(-1)), -math.MaxFloat32, 200, math.MaxFloat32}
	s.d.Sinks = newBuffer(t, rt, s.host.Sinks).s
	scratch := output[float32](t, rt, AttnDecodeScratch(s.d))
	encode(t, rt, 3, func(p *runtime.Pass) error {
		if err := FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d); err != nil {
			return err
		}
		return FlashAttnDecode(p, od.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d)
	})
	var w worst
	for i, got := range o.written() {
		switch head := i / 64; {
		case head < 2 && got != plain.written()[i]:
			t.Fatalf("a sink of %v changes element %d: %v, want %v", s.host.Sinks[head], i, got, plain.written()[i])
		case head == 3 && got != 0:
			t.Fatalf("a sink of %v leaves %v", s.host.Sinks[head], got)
		}
	}
	want := s.host.Rows()
	w.compare(t, "rows", widen(o.written()), want, s.allowed())
	w.compare(t, "decode", widen(od.written()), want, s.allowed())
}

// A row that sees nothing is zero, whatever its head's sink is.
func TestAttnSinksOfNothing(t *testing.T) {
	rt, r := open(t), source(309)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 5, hkv: 1, capacity: 9, tkv: 0, qPos: 8, d: 64})
	s.d.Sinks = newBuffer(t, rt, []float32{float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32, 3, float32(math.Inf(-1))}).s
	o, od, scratch := output[float32](t, rt, s.q.n), output[float32](t, rt, s.q.n), output[float32](t, rt, AttnDecodeScratch(s.d))
	encode(t, rt, 3, func(p *runtime.Pass) error {
		if err := FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d); err != nil {
			return err
		}
		return FlashAttnDecode(p, od.s, s.q.s, s.k.s, s.v.s, s.live, scratch.s, s.d)
	})
	for name, out := range map[string][]float32{"rows": o.written(), "decode": od.written()} {
		for i, v := range out {
			if v != 0 {
				t.Fatalf("%s: element %d is %v", name, i, v)
			}
		}
	}
}

// A row gives the same bits alone and among others, in any batch.
func TestFlashAttnRowsDoNotDependOnOthers(t *testing.T) {
	rt, r := open(t), source(308)
	for _, d := range AttnHeadDims() {
		s := newAttn(t, rt, r, attnCase{b: 2, tq: 11, h: 2, hkv: 1, capacity: 16, tkv: 14, qPos: 2, window: 5, d: d})
		all := output[float32](t, rt, s.q.n)
		encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, all.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
		want := all.written()
		for b := range 2 {
			for row := range 11 {
				from := (b*11 + row) * 2 * d
				one, pos := output[float32](t, rt, 2*d), newBuffer(t, rt, []uint32{uint32(2 + row)})
				dims, live := s.d, s.live
				dims.Batch, dims.Tq, live.QPos = 1, 1, pos.s
				at := b * 16 * d
				encode(t, rt, 1, func(p *runtime.Pass) error {
					return FlashAttnRows(p, one.s, s.q.s.Slice(from, from+2*d), s.k.s.Slice(at, at+16*d), s.v.s.Slice(at, at+16*d), live, dims)
				})
				for i, v := range one.written() {
					if v != want[from+i] {
						t.Fatalf("head dimension %d, batch %d, row %d: element %d is %v alone, %v among others", d, b, row, i, v, want[from+i])
					}
				}
			}
		}
	}
}
