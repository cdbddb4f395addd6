package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func init() {
	kernelSlots["flash_attn_swa_h128"] = "0r 1r 2r 3w 4u 5u 6r 7u 8u 9u 10f 11r 12r 13u"
	kernelSlots["flash_attn_swa_h256"] = "0r 1r 2r 3w 4u 5u 6r 7u 8u 9u 10f 11r 12r 13u 14u"
	kernelSlots["flash_attn_global_h512"] = "0r 1r 2r 3w 4u 5u 6r 7u 8u 9f 10r 11r 12u 13u"
}

// tiledOnce runs FlashAttnTiled with every output it has and holds it against the oracle.
func tiledOnce(t *testing.T, rt *runtime.Runtime, s *attnSetup, where string, w *worst) []float32 {
	t.Helper()
	o := output[float32](t, rt, s.q.n)
	encode(t, rt, min(s.q.n, 1), func(p *runtime.Pass) error { return FlashAttnTiled(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
	got := o.written()
	w.compare(t, where, widen(got), s.host.Rows(), s.allowed())
	if s.d.HeadDim != 128 {
		o16 := output[half.BFloat16](t, rt, s.q.n)
		encode(t, rt, min(s.q.n, 1), func(p *runtime.Pass) error { return FlashAttnTiled(p, o16.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
		for i, b := range o16.written() {
			if b != half.BFloat16FromFloat32(got[i]) {
				t.Fatalf("%s: element %d: bfloat16 %v of float32 %v", where, i, b, got[i])
			}
		}
	}
	return got
}

func TestFlashAttnTiled(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(381)
	var w worst
	for _, d := range []int{128, 256, 512} {
		for _, c := range append(headDimCases,
			attnCase{b: 1, tq: 8, h: 1, hkv: 1, capacity: 40, tkv: 40, qPos: 30, window: 11},
			attnCase{b: 1, tq: 17, h: 2, hkv: 1, capacity: 30, tkv: 27, qPos: 3, kvPos: 1, window: 9},
		) {
			c.d, c.softcap, c.sinks = d, 0, false
			if d == 512 {
				c.window = 0
			}
			s := newAttn(t, rt, r, c)
			got := tiledOnce(t, rt, s, fmt.Sprintf("%+v", c), &w)
			encode(t, rt, min(s.q.n, 1), func(p *runtime.Pass) error {
				return FlashAttnTiled(p, s.q.s, s.q.s, s.k.s, s.v.s, s.live, s.d)
			})
			for i, v := range s.q.get() {
				if v != got[i] {
					t.Fatalf("%+v: in place, element %d: %v, want %v", c, i, v, got[i])
				}
			}
		}
	}
	w.log(t, "1e-6 of the values, and the scores' errors,", "FlashAttnTiled")
}

// Keys that no row of the tile sees, and keys that other rows of it see, may be anything.
func TestFlashAttnTiledIgnoresTheInvisible(t *testing.T) {
	rt, r := open(t), source(382)
	for _, poison := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
		for _, d := range []int{128, 256} {
			s := newAttn(t, rt, r, attnCase{b: 1, tq: 4, h: 2, hkv: 1, capacity: 24, tkv: 20, qPos: 12, window: 4, d: d})
			for j := range 24 {
				if seen := s.host.Visible(0, j) || s.host.Visible(1, j) || s.host.Visible(2, j); !seen { // of row 3 alone: key 15
					for i := range d {
						s.host.K[j*d+i], s.host.V[j*d+i] = poison, poison
					}
				}
			}
			s.k.set(s.host.K)
			s.v.set(s.host.V)
			o := output[float32](t, rt, s.q.n)
			encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnTiled(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
			var w worst
			n := 3 * 2 * d
			w.compare(t, fmt.Sprint(poison), widen(o.get())[:n], s.host.Rows()[:n], s.allowed())
		}
	}
}

// All 64 pairs of a tile are set anew, not only those that 32 threads reach at once: rows 4 to 7 are what they are alone,
// also after a tile with large scores.
func TestRegressionTiledScoresAreAllSet(t *testing.T) {
	rt, r := open(t), source(383)
	for _, d := range []int{128, 256, 512} {
		for _, tq := range []int{5, 8} {
			c := attnCase{b: 1, tq: tq, h: 1, hkv: 1, capacity: 30, tkv: 30, qPos: 20, d: d, scale: 4}
			if tq == 8 && d != 512 {
				c.window, c.scale = 11, 1 // tiles of keys do not start where the row's keys do
			}
			s := newAttn(t, rt, r, c)
			var w worst
			want := tiledOnce(t, rt, s, "together", &w)
			for row := range tq {
				one, pos := output[float32](t, rt, d), newBuffer(t, rt, []uint32{uint32(20 + row)})
				dims, live := s.d, s.live
				dims.Tq, live.QPos = 1, pos.s
				encode(t, rt, 1, func(p *runtime.Pass) error {
					return FlashAttnTiled(p, one.s, s.q.s.Slice(row*d, (row+1)*d), s.k.s, s.v.s, live, dims)
				})
				for i, v := range one.written() {
					if v != want[row*d+i] {
						t.Fatalf("head dimension %d, row %d of %d: element %d is %v alone, %v among others", d, row, tq, i, v, want[row*d+i])
					}
				}
			}
		}
	}
}

func TestFlashAttnTiledRecorded(t *testing.T) {
	rt, r := open(t), source(384)
	for d, scalars := range map[int][]scalar{
		128: {{slot: 9, u: 6}, {slot: 10, f: float32(1 / math.Sqrt(128)), float: true}, {slot: 13, u: 40}},
		256: {{slot: 9, u: 6}, {slot: 10, f: 0.0625, float: true}, {slot: 13}, {slot: 14, u: 40}},
		512: {{slot: 9, f: float32(1 / math.Sqrt(512)), float: true}, {slot: 12}, {slot: 13, u: 40}},
	} {
		c := attnCase{b: 1, tq: 2, h: 4, hkv: 2, capacity: 40, tkv: 10, qPos: 8, window: 6, d: d}
		if d == 512 {
			c.window = 0
		}
		s := newAttn(t, rt, r, c)
		o := output[float32](t, rt, s.q.n)
		call := func(p *runtime.Pass) error { return FlashAttnTiled(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) }
		replays(t, rt, []target{o}, func(i int) {
			s.tkv.set([]uint32{uint32(10 + 9*i)})
			s.qPos.set([]uint32{uint32(8 + 9*i)})
			s.kvPos.set([]uint32{uint32(i)})
		}, call)
		twin(t, rt, []target{o}, append([]scalar{{slot: 4, u: 1}, {slot: 5, u: 2}, {slot: 7, u: 4}, {slot: 8, u: 2}}, scalars...), call,
			func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
				return UnsafeFlashAttnTiled(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d, bind)
			})
	}
}

func TestFlashAttnTiledRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(385)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 2, h: 2, hkv: 1, capacity: 8, tkv: 4, d: 512})
	o, o16, fx := output[float32](t, rt, s.q.n), output[half.BFloat16](t, rt, s.q.n), output[float32](t, foreign, 8192)
	type args struct {
		o, q, k, v runtime.Slice[float32]
		live       AttnLive
		d          AttnDims
	}
	base := args{o.s, s.q.s, s.k.s, s.v.s, s.live, s.d}
	var refusals []refusal
	for _, c := range []struct {
		name     string
		change   func(a *args)
		sentinel error
		parts    []string
	}{
		{"head dimension", func(a *args) { a.d.HeadDim = 64 }, runtime.ErrShape, []string{"HeadDim", "64"}},
		{"window", func(a *args) { a.d.Window = 4 }, runtime.ErrShape, []string{"Window", "512"}},
		{"softcap", func(a *args) { a.d.Softcap = 4 }, runtime.ErrShape, []string{"Softcap"}},
		{"sinks", func(a *args) { a.d.Sinks = a.v.Slice(0, 2) }, runtime.ErrShape, []string{"Sinks"}},
		{"lanes", func(a *args) { a.d.Lanes = 32 }, runtime.ErrShape, []string{"Lanes"}},
		{"scale NaN", func(a *args) { a.d.Scale = float32(math.NaN()) }, runtime.ErrScalar, []string{"Scale"}},
		{"Tq negative", func(a *args) { a.d.Tq = -1 }, runtime.ErrShape, []string{"Tq"}},
		{"heads not shared evenly", func(a *args) { a.d.Heads, a.d.HeadsKV = 3, 2 }, runtime.ErrShape, []string{"Heads", "multiple"}},
		{"capacity beyond K", func(a *args) { a.d.Capacity = 9 }, runtime.ErrShape, []string{"k"}},
		{"q short", func(a *args) { a.q = a.q.Slice(0, s.q.n-4) }, runtime.ErrShape, []string{"q"}},
		{"out short", func(a *args) { a.o = a.o.Slice(0, s.q.n-1) }, runtime.ErrShape, []string{"out"}},
		{"k foreign", func(a *args) { a.k = fx.s }, runtime.ErrForeign, []string{"k"}},
		{"out in v", func(a *args) { a.o = a.v.Slice(128, 128+s.q.n) }, runtime.ErrOverlap, []string{"out", "v"}},
	} {
		a := base
		c.change(&a)
		refusals = append(refusals, refusal{c.name, func(p *runtime.Pass) error { return FlashAttnTiled(p, a.o, a.q, a.k, a.v, a.live, a.d) }, c.sentinel, c.parts})
		checkRefused(t, "nn.ValidateFlashAttnTiled", refusal{c.name, nil, c.sentinel, c.parts}, ValidateFlashAttnTiled(rt, a.o, a.q, a.k, a.v, a.live, a.d))
	}
	small := s.d
	small.HeadDim = 128
	refusals = append(refusals, refusal{"bfloat16 with 128", func(p *runtime.Pass) error { return FlashAttnTiled(p, o16.s, s.q.s, s.k.s, s.v.s, s.live, small) },
		runtime.ErrShape, []string{"out", "128"}},
		refusal{"no pass", func(*runtime.Pass) error { return FlashAttnTiled(nil, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) }, runtime.ErrMisuse, nil})
	refuses(t, rt, "nn.FlashAttnTiled", []target{o, o16, s.v}, refusals)
	if err := ValidateFlashAttnTiled(rt, o16.s, s.q.s, s.k.s, s.v.s, s.live, s.d); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ d, want int }{{128, 8}, {256, 8}, {512, 4}, {64, 0}, {0, 0}, {-128, 0}} {
		if got := AttnTile(c.d); got != c.want {
			t.Errorf("AttnTile(%d) = %d, want %d", c.d, got, c.want)
		}
	}
}
